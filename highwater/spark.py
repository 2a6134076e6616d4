"""Runs as a Spark DataFrame or stream, for use in a job or notebook of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from highwater.option import as_function_of
from highwater.requests import RowsRequest, StreamRequest
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

TASKS: Final = 64
"""Tasks, unless a number is given or there are fewer seeds."""
TASK_SEEDS_MAX: Final = 1_000
"""Most seeds of a task, unless the number of tasks is given: a failed task repeats them."""


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The active session; or a new one, as ``highwater sweep`` makes it.

    Args:
        master: a Spark master, or ``sc://`` for Spark Connect; None: the environment's, or all cores of this machine.
        conf: Spark settings.

    Raises:
        UserError: pyspark or Java is missing or too old, or Spark refuses a setting.
    """
    from scenarios.sweep import spark

    return spark.active_session() or spark.new_session(master, conf or {})


@as_function_of(RowsRequest)
def runs(spark: SparkSession, asked: RowsRequest) -> DataFrame:
    """One row for each scenario, mode, combination of settings and seed; the columns are those of a sweep's folder.

    The DataFrame is lazy: each action on it runs the seeds again, unless it is cached or written. Order and
    partitioning do not affect the rows. A run that raises is a row with verdict ``error``. The workers of the session
    need Highwater (``highwater spark-package``), in the same version.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.sweep.extent import split, units
    from scenarios.sweep.spark import data_frame

    if asked.tasks is not None and asked.tasks < 1:
        raise InputError(f"tasks = {asked.tasks} is not valid: at least 1 is needed")
    sweep = asked.sweep()
    pieces = sweep.extent().pieces()
    count = asked.tasks or max(TASKS, -(-units(pieces) // TASK_SEEDS_MAX))
    return data_frame(spark, sweep.to_text(), split(pieces, count))


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
