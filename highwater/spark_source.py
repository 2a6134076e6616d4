"""`spark.read.format("highwater")`: runs as a data source of Spark, for SQL and for programs in other languages.

Spark 4.0 and later have data sources in Python. Registered by `highwater.spark.register`, or found by Spark where
Highwater is installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from highwater.option import told_in_python, words
from highwater.requests import RowsRequest
from scenarios.format import plugins
from scenarios.single.rows import ddl
from scenarios.sweep import spark
from scenarios.sweep.extent import split
from scenarios.sweep.units import Sweep
from scenarios.version import code_version
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter

LISTS: Final = ("scenarios", "without_faults", "server_properties")
NAMES: Final = ("modes", "seeds", "release")
MAPPINGS: Final = ("settings", "rules")
"""JSON objects, as the settings and rules of `highwater.spark.runs` are mappings."""
OPTIONS: Final = (*LISTS, *NAMES, *MAPPINGS, "blows", "tasks", "reuse", "strict", "plugin")
"""What the source takes: the parameters of `highwater.spark.runs`, and plug-ins, as --plugin takes them."""


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"{name} = {text!r} is not valid: a whole number is needed")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InputError(f"{name} = {text!r} is not valid: true or false is needed")
    return text.lower() == "true"


def _mapping(name: str, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f'{name} = {text!r} is not valid: a JSON object is needed, as in {{"acks": "all"}}')
    return found


def request(options: Mapping[str, str]) -> RowsRequest:
    """The request that the options of a source make; loads their plug-ins.

    Raises:
        InputError: an option is unknown, missing or not valid.
    """
    synonyms = words(RowsRequest)
    given = {synonyms.get(name.lower(), name.lower()): text for name, text in options.items()}
    for name in given:
        if name not in OPTIONS:
            raise InputError(f"unknown option {name!r}{did_you_mean(name, OPTIONS)}")
    for missing in [name for name in ("scenarios", "modes", "seeds") if name not in given]:
        if missing != "modes" or "release" not in given:
            raise InputError(f"option {missing!r} is missing")
    for named in _words(given.pop("plugin", "")):
        plugins.load(named)
    asked: dict[str, Any] = {"modes": ()}
    asked |= {name: _words(given[name]) for name in LISTS if name in given}
    asked |= {name: given[name] for name in NAMES if name in given}
    asked |= {name: _mapping(name, given[name]) for name in MAPPINGS if name in given}
    asked |= {name: _number(name, given[name]) for name in ("blows", "tasks") if name in given}
    asked |= {name: _flag(name, given[name]) for name in ("reuse", "strict") if name in given}
    return RowsRequest(**asked)


def _words(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]


class RunsReader(DataSourceReader):
    """Runs all seeds of the request, each time that Spark reads."""

    def __init__(self, sweep: Sweep, tasks: int | None) -> None:
        self.sweep: Sweep | None = sweep
        self.tasks = tasks
        self.text = sweep.to_text()
        self.code = code_version()

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each task."""
        if self.sweep is None:
            return []
        self.text = self.sweep.to_text()
        pieces = self.sweep.extent().pieces()
        return [InputPartition(chunk) for chunk in split(pieces, spark.task_count(pieces, self.tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; its worker must run the code of the driver."""
        return spark.batches_of(self.text, partition.value, self.code)


class NarrowedReader(RunsReader):
    """Runs only the seeds, modes and scenarios that the filters of a query let through (Spark 4.1 and later)."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - as Spark calls it
        """Narrow the sweep. Spark applies all filters again, so each may let too much through."""
        for each in filters:
            self.sweep = None if self.sweep is None else narrowed(self.sweep, each)
        return filters


def narrowed(sweep: Sweep, filtered: Filter) -> Sweep | None:
    """The part of a sweep that has all rows of a filter; None if there is no such row.

    A row that is taken over from an earlier mode names it, so the modes before the last one that is asked for stay,
    unless no row is taken over.
    """
    from pyspark.sql import datasource as of

    column = ".".join(getattr(filtered, "attribute", ()))
    value = getattr(filtered, "value", None)
    values = value if isinstance(filtered, of.In) else (value,) if isinstance(filtered, of.EqualTo) else None
    if column == "seed":
        first, end = _seeds(sweep, filtered, values)
        return replace(sweep, first_seed=first, end_seed=end) if first < end else None
    if column == "scenario" and values is not None:
        chosen = tuple(scenario for scenario in sweep.scenarios if scenario.name in values)
        return replace(sweep, scenarios=chosen) if chosen else None
    if column == "mode" and values is not None:
        modes = {}
        for scenario, named in sweep.modes.items():
            places = [place for place, mode in enumerate(named) if mode.name in values]
            if places and not sweep.reuses:
                modes[scenario] = tuple(named[place] for place in places)
            elif places:
                modes[scenario] = named[: places[-1] + 1]
        chosen = tuple(scenario for scenario in sweep.scenarios if scenario.name in modes)
        return replace(sweep, scenarios=chosen, modes=modes) if chosen else None
    return sweep


def _seeds(sweep: Sweep, filtered: Filter, values: Sequence[Any] | None) -> tuple[int, int]:
    """First and end seed of the rows of a filter on seeds."""
    from pyspark.sql import datasource as of

    first, end = sweep.first_seed, sweep.end_seed
    if values is not None:
        seeds = [value for value in values if value is not None]
        return max(first, min(seeds, default=end)), min(end, max(seeds, default=-1) + 1)
    if isinstance(filtered, of.GreaterThan):
        return max(first, filtered.value + 1), end
    if isinstance(filtered, of.GreaterThanOrEqual):
        return max(first, filtered.value), end
    if isinstance(filtered, of.LessThan):
        return first, min(end, filtered.value)
    if isinstance(filtered, of.LessThanOrEqual):
        return first, min(end, filtered.value + 1)
    return first, end


class RunsSource(DataSource):
    """The source ``highwater``; see `request` for its options."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return "highwater"

    def schema(self) -> str:
        """The columns of a sweep's folder."""
        with told_in_python(RowsRequest):
            return ddl(list(request(self.options).sweep().grid))

    def reader(self, schema: object) -> RunsReader:  # noqa: ARG002 - Spark gives it
        """A reader of the whole sweep."""
        return self._reader(RunsReader)

    def _reader(self, kind: type[RunsReader]) -> RunsReader:
        with told_in_python(RowsRequest):
            asked = request(self.options)
            return kind(asked.sweep(), asked.tasks)


class NarrowedSource(RunsSource):
    """The source for sessions that push filters down: in others, Spark refuses each query of such a reader."""

    def reader(self, schema: object) -> RunsReader:  # noqa: ARG002
        """A reader of what a query asks for."""
        return self._reader(NarrowedReader)


def pushes_down(session: SparkSession) -> bool:
    """Whether a session offers the filters of a query to a source in Python."""
    return hasattr(DataSourceReader, "pushFilters") and session.conf.get(spark.PUSHDOWN, "false") == "true"


DefaultSource = RunsSource
"""What Spark finds by itself in a package whose name begins with ``pyspark_``."""
