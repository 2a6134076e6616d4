"""Runs as a Spark DataFrame or stream, for use in a job or notebook of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.option import as_function_of
from highwater.requests import RowsRequest, StreamRequest
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The active session; or a new one, as ``highwater sweep`` makes it.

    Args:
        master: a Spark master, or ``sc://`` for Spark Connect; None: the environment's, or all cores of this machine.
        conf: Spark settings.

    Raises:
        UserError: pyspark or Java is missing or too old, or Spark refuses a setting.
    """
    from scenarios.sweep import spark

    return spark.active_session() or spark.new_session(master, {spark.PUSHDOWN: "true", **(conf or {})})


@as_function_of(RowsRequest)
def runs(spark: SparkSession, asked: RowsRequest) -> DataFrame:
    """One row for each scenario, mode, combination of settings and seed; the columns are those of a sweep's folder.

    The DataFrame is lazy: each action on it runs the seeds again, unless it is cached or written. Order and
    partitioning do not affect the rows. A run that raises is a row with verdict ``error``. The workers of the session
    need Highwater (``highwater spark-package``), in the same version.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.sweep.extent import split
    from scenarios.sweep.spark import data_frame, task_count

    sweep = asked.sweep()
    pieces = sweep.extent().pieces()
    return data_frame(spark, sweep.to_text(), split(pieces, task_count(pieces, asked.tasks)))


def register(spark: SparkSession) -> None:
    """Let the session read ``spark.read.format("highwater")``, also in SQL: the rows of `runs`, by options.

    The options are the parameters of `runs`: names with commas between, numbers, ``true`` and ``false``, settings and
    rules as JSON objects; `plugin` names plug-ins. Where the session pushes filters down
    (``spark.sql.python.filterPushdown.enabled``, which `session` sets; Spark 4.1 and later), only the seeds, modes and
    scenarios run that a query asks for.

    Raises:
        UnavailableError: pyspark is older than 4.0.
    """
    import pyspark

    from scenarios.sweep.spark import takes_sources

    if not takes_sources():
        raise UnavailableError(
            f"pyspark {pyspark.__version__} has no data sources in Python, 4.0 has: take highwater.spark.runs"
        )
    from pyspark.errors import AnalysisException

    from highwater.spark_source import NarrowedSource, RunsSource, pushes_down

    narrows = pushes_down(spark)
    try:
        spark.dataSource.register(NarrowedSource if narrows else RunsSource)
    except AnalysisException as error:
        # Spark 4.0 keeps the source that it has found where Highwater is installed; both run all seeds.
        if narrows or "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


@as_function_of(StreamRequest)
def stream(spark: SparkSession, asked: StreamRequest) -> DataFrame:
    """The rows of ever further seeds, as a stream for ``writeStream``: seeds from Spark's source ``rate-micro-batch``.

    A query with a checkpoint goes on after a restart where it stopped. A sink that Spark writes exactly once, such as
    Parquet files, has each row once. With ``trigger(availableNow=True)`` the query ends after the next micro-batch: a
    job that adds `per_batch` seeds at each call. The columns are those of `runs`; the workers need Highwater, in the
    same version.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.sweep.spark import seed_stream

    return seed_stream(spark, asked.sweep().to_text(), asked.first, asked.per_batch, asked.tasks)
