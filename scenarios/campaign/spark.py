"""Judges the cases of a campaign on Spark: a job for some cases, a task for each."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from scenarios import plugged
from scenarios.campaign.runner import AHEAD
from scenarios.format.plugins import ensure
from scenarios.single.run import prepare_process
from scenarios.sweep import spark as sessions
from scenarios.version import code_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


class SparkRunner:
    """See `scenarios.campaign.runner.Runner`: results are JSON values. Sessions are found as sweeps find theirs.

    Args:
        master: a Spark master, or ``sc://`` for Spark Connect; None: that of the session, or this machine.
        conf: Spark settings. They may contain credentials, so they are passed on and never stored.
        title: what is run, for the name of Spark's application.

    Raises:
        InputError: Spark refuses a setting.
        UnavailableError: pyspark, Java or a worker's code is missing or has another version.
    """

    def __init__(self, master: str | None, conf: Mapping[str, str], title: str) -> None:
        there = sessions.active_session()
        self._own = there is None
        self._spark: SparkSession = there or sessions.new_session(
            master, {"spark.app.name": f"highwater: {title}"} | dict(conf)
        )
        self.processes = sessions.check_workers(self._spark, mixed_builds=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._own:
            self._spark.stop()

    def map(self, judge: Callable[[T], R], cases: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
        """See `Runner`; the next job begins when all cases of the last one are judged."""
        left = iter(cases)
        while some := list(islice(left, ahead * self.processes)):
            tasks = self._spark.range(0, len(some), 1, len(some))
            judged = tasks.mapInArrow(_Judge(judge, some), "place long, result string").collect()
            texts = {row["place"]: row["result"] for row in judged}
            yield from (json.loads(texts[place]) for place in range(len(some)))


class _Judge:
    """Judges the cases of a task. A class of this module, so that Spark ships its name and not its content."""

    def __init__(self, judge: Callable[[Any], Any], cases: list[Any]) -> None:
        self._judge = judge
        self._cases = cases
        self._code = code_version()
        self._plug_ins = plugged.shipped()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ensure(self._plug_ins)
        prepare_process()
        sessions.check_code(self._code)
        for batch in batches:
            for row in batch.to_pylist():
                result = json.dumps(self._judge(self._cases[row["id"]]))
                yield pa.RecordBatch.from_pylist([{"place": row["id"], "result": result}])
