"""Runs as a Spark DataFrame, for use in a job or notebook of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from highwater import requests
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

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


def runs(
    spark: SparkSession,
    scenarios: str | Sequence[str],
    modes: str | Iterable[str],
    seeds: str | range,
    *,
    rules: Mapping[str, str | Sequence[str]] | None = None,
    settings: Mapping[str, object] | None = None,
    release: str | None = None,
    server_properties: str | Path | Sequence[str | Path] = (),
    without_faults: Sequence[str] = (),
    blows: int = 0,
    reuse: bool = True,
    tasks: int | None = None,
) -> DataFrame:
    """One row for each scenario, mode, combination of settings and seed; the columns are those of a sweep's folder.

    The DataFrame is lazy: each action on it runs the seeds again, unless it is cached or written. Order and
    partitioning do not affect the rows. A run that raises is a row with verdict ``error``.

    Args:
        spark: the session. Its workers need Highwater (``highwater spark-package``), in the same version.
        scenarios: names or files.
        modes: modes, as a list or as ``hw,kip101``; none: the release's, or those of each scenario's ``[expect]``.
        seeds: a range without gaps, or as ``0..100``.
        rules: rules to override; lists or tuples of values are run in every combination, as modes of their own.
        settings: settings to override; lists or tuples of values are run in every combination.
        release: Kafka's release, such as ``3.9``: its mode, if no modes are given, and its own defaults.
        server_properties: files with the settings of your brokers and topic, below `settings`.
        without_faults: kinds of fault that do not strike.
        blows: blows after early warnings; their runs have rows of their own.
        reuse: take a row over from an earlier mode in which the seed has the same history, instead of running it again.
        tasks: number of Spark tasks, at most one for each seed.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.sweep.extent import split, units
    from scenarios.sweep.spark import data_frame

    if tasks is not None and tasks < 1:
        raise InputError(f"tasks = {tasks} is not valid: at least 1 is needed")
    sweep = requests.sweep_request(
        scenarios,
        modes,
        seeds,
        rules=rules,
        settings=settings,
        release=release,
        server_properties=server_properties,
        without_faults=without_faults,
        blows=blows,
        reuse=reuse,
    ).sweep()
    pieces = sweep.extent().pieces()
    count = tasks or max(TASKS, -(-units(pieces) // TASK_SEEDS_MAX))
    return data_frame(spark, sweep.to_text(), split(pieces, count))
