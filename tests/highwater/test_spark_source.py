"""Runs as a data source of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="pyspark before 4.0 has no data sources in Python")

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import datasource as of
from pyspark.sql.datasource import DataSourceReader

import highwater as hw
from highwater import spark_source
from highwater.spark_source import NarrowedReader, RunsReader, narrowed, request
from scenarios.sweep.spark import PUSHDOWN
from sim.errors import InputError
from tests.scenarios.sweep.spark_session import session as session

if TYPE_CHECKING:
    from scenarios.sweep.units import Sweep

ASKED = {"scenarios": "power, canary", "modes": "hw,kip101", "seeds": "40..44"}
NARROWS = hasattr(DataSourceReader, "pushFilters")
needs_filters = pytest.mark.skipif(not NARROWS, reason="pyspark before 4.1 pushes no filters down")


def by_key(rows: list[Any]) -> dict[tuple[object, ...], dict[str, Any]]:
    found = [row.asDict() for row in rows]
    keyed: dict[tuple[object, ...], dict[str, Any]] = {
        (row["scenario"], row["mode"], row["min.insync.replicas"], row["seed"]): row for row in found
    }
    assert len(keyed) == len(found)
    return keyed


def test_the_rows_are_those_of_runs(session: SparkSession) -> None:
    hw.spark.register(session)
    settings = {"min.insync.replicas": [1, 2]}
    frame = session.read.format("highwater").options(**ASKED, settings='{"min.insync.replicas": [1, 2]}', tasks=2)
    expected = hw.spark.runs(session, ["power", "canary"], "hw,kip101", "40..44", settings=settings)
    assert frame.load().schema == expected.schema
    found = by_key(frame.load().collect())
    assert found == by_key(expected.collect())
    assert len(found) == 32


def test_what_spark_has_found_by_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    found = AnalysisException("[DATA_SOURCE_ALREADY_EXISTS] Data source 'highwater' already exists.")
    session = create_autospec(SparkSession, instance=True)
    for narrows, error in ((False, found), (False, AnalysisException("[OTHER] x")), (True, found)):
        session.dataSource.register.side_effect = error
        monkeypatch.setattr(spark_source, "pushes_down", lambda _, narrows=narrows: narrows)
        if error is found and not narrows:
            hw.spark.register(session)
            continue
        with pytest.raises(AnalysisException):
            hw.spark.register(session)


@pytest.mark.world
@needs_filters
def test_only_what_a_query_asks_for_runs(session: SparkSession) -> None:
    before = session.conf.get(PUSHDOWN, "false")
    session.conf.set(PUSHDOWN, "true")
    try:
        hw.spark.register(session)
        session.sql(
            "CREATE OR REPLACE TEMPORARY VIEW runs USING highwater "
            "OPTIONS (scenarios 'power', modes 'hw,kip101', seeds '0..1000000000')"
        )
        rows = session.sql("SELECT * FROM runs WHERE seed >= 40 AND seed < 43 AND mode = 'kip101'").collect()
        expected = hw.spark.runs(session, "power", "hw,kip101", "40..43").where("mode = 'kip101'").collect()
        assert sorted(rows) == sorted(expected)
        assert len(rows) == 3
    finally:
        session.conf.set(PUSHDOWN, before or "false")
        hw.spark.register(session)


def sweep_of(**options: str) -> Sweep:
    return request({**ASKED, "seeds": "10..100", **options}).sweep()


@needs_filters
@pytest.mark.parametrize(
    ("filtered", "seeds"),
    [
        (lambda: of.EqualTo(("seed",), 12), (12, 13)),
        (lambda: of.In(("seed",), (30, 20)), (20, 31)),
        (lambda: of.GreaterThan(("seed",), 12), (13, 100)),
        (lambda: of.GreaterThanOrEqual(("seed",), 12), (12, 100)),
        (lambda: of.LessThan(("seed",), 12), (10, 12)),
        (lambda: of.LessThanOrEqual(("seed",), 12), (10, 13)),
        (lambda: of.GreaterThan(("seed",), 2), (10, 100)),
        (lambda: of.EqualTo(("verdict",), "ok"), (10, 100)),
        (lambda: of.IsNotNull(("seed",)), (10, 100)),
        (lambda: of.LessThan(("seed",), 10), None),
        (lambda: of.EqualTo(("seed",), None), None),
    ],
)
def test_filters_on_seeds(filtered: Any, seeds: tuple[int, int] | None) -> None:
    sweep = narrowed(sweep_of(), filtered())
    assert (None if sweep is None else (sweep.first_seed, sweep.end_seed)) == seeds


@needs_filters
def test_filters_on_modes_keep_the_modes_from_which_rows_are_taken_over() -> None:
    for reuse, modes in (("true", ["hw", "kip101"]), ("false", ["kip101"])):
        sweep = narrowed(sweep_of(reuse=reuse), of.EqualTo(("mode",), "kip101"))
        assert sweep is not None
        assert [mode.name for mode in sweep.modes["power"]] == modes
    one = narrowed(sweep_of(), of.In(("mode",), ("hw", "kraft")))
    assert one is not None
    assert {name: len(modes) for name, modes in one.modes.items()} == {"power": 1, "canary": 1}
    assert narrowed(sweep_of(), of.EqualTo(("mode",), "kraft")) is None


@needs_filters
def test_filters_on_scenarios() -> None:
    sweep = narrowed(sweep_of(), of.EqualTo(("scenario",), "canary"))
    assert sweep is not None
    assert [scenario.name for scenario in sweep.scenarios] == ["canary"]
    assert narrowed(sweep_of(), of.EqualTo(("scenario",), "chaos")) is None


@needs_filters
def test_a_reader_leaves_all_filters_to_spark() -> None:
    filters: list[of.Filter] = [of.EqualTo(("seed",), 12), of.EqualTo(("mode",), "kraft")]
    reader = NarrowedReader(sweep_of(), None)
    assert list(reader.pushFilters(filters)) == filters
    assert reader.partitions() == []
    assert len(RunsReader(sweep_of(), 3).partitions()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenarois": "power"}, "unknown option 'scenarois'; did you mean 'scenarios'"),
        ({"seeds": ""}, "--seeds '' is not a range"),
        ({"scenarios": "powr"}, "unknown scenario 'powr'; did you mean 'power'"),
        ({"settings": "acks=all"}, "settings = 'acks=all' is not valid: a JSON object is needed"),
        ({"reuse": "yes"}, "reuse = 'yes' is not valid: true or false is needed"),
        ({"tasks": "few"}, "tasks = 'few' is not valid: a whole number is needed"),
        ({"tasks": "0"}, "tasks = 0 is not valid: at least 1 is needed"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        request({**ASKED, **options}).sweep()


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="option 'modes' is missing"):
        request({"scenarios": "power", "seeds": "0..1"})
    assert request({"scenarios": "power", "mode": "hw", "seeds": "0..1"}).modes == "hw"
    assert request({"scenarios": "power", "seeds": "0..1", "release": "3.9"}).sweep().modes["power"][0].name == "kraft"


def test_spark_finds_it_where_it_is_installed() -> None:
    from highwater import found_by_spark

    assert found_by_spark.DefaultSource is spark_source.RunsSource
    assert found_by_spark.DefaultSource.name() == "highwater"
