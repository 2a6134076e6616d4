"""Runs as a Spark DataFrame."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest

import highwater as hw
from scenarios.sweep import spark
from sim.errors import InputError
from tests.scenarios.sweep.spark_session import session as session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    (key, "ascending") for key in ("scenario", "mode", "min.insync.replicas", "seed")
]


@pytest.mark.parametrize("tasks", [pytest.param(None, marks=pytest.mark.world), 3])
def test_the_rows_are_those_of_a_sweep(session: SparkSession, tmp_path: Path, tasks: int | None) -> None:
    settings = {"min.insync.replicas": [1, 2]}
    frame = hw.spark.runs(session, ["power", "chaos"], "hw,kip101", "40..46", settings=settings, tasks=tasks)
    hw.sweep(["power", "chaos"], "40..46", tmp_path / "out", modes="hw,kip101", settings=settings)
    expected = hw.rows(tmp_path / "out")
    found = pa.Table.from_pylist([row.asDict() for row in frame.collect()], expected.schema)
    assert frame.rdd.getNumPartitions() == (tasks or 24)
    assert found.num_rows == 48
    assert found.sort_by(ORDER).to_pylist() == expected.sort_by(ORDER).to_pylist()


def test_it_is_lazy_and_a_task_for_each_1000_seeds_at_most(session: SparkSession) -> None:
    frame = hw.spark.runs(session, "chaos", ["kip320"], range(1_000_000))
    assert frame.rdd.getNumPartitions() == 1_000
    assert frame.where("seed < 0").schema == frame.schema
    few = hw.spark.runs(session, "chaos", ["kip320"], range(3), release="2.6")
    assert {row["mode"] for row in few.select("mode").collect()} == {"kip320"}


def test_a_release_names_the_mode(session: SparkSession) -> None:
    frame = hw.spark.runs(session, "power", (), "0..1", release="0.10.2")
    assert [row["mode"] for row in frame.select("mode").collect()] == ["hw"]


def test_a_worker_with_other_code_says_so(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "code_version", lambda: "c0de")
    with pytest.raises(Exception, match=r"this worker of Spark has other code \(\w+\) than the driver \(c0de\)"):
        hw.spark.runs(session, "power", "hw", "0..1").collect()


def test_the_active_session_is_used(session: SparkSession) -> None:
    assert hw.spark.session() is session


def test_bad_input_is_refused_before_anything_runs(session: SparkSession) -> None:
    with pytest.raises(InputError, match="unknown scenario 'powr'; did you mean 'power'"):
        hw.spark.runs(session, "powr", "hw", "0..1")
    with pytest.raises(InputError, match="tasks = 0 is not valid"):
        hw.spark.runs(session, "power", "hw", "0..1", tasks=0)


def test_importing_the_library_does_not_import_spark() -> None:
    import subprocess

    told = "import sys, highwater; highwater.spark; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def streamed(session: SparkSession, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows in a folder after one more micro-batch."""
    frame = hw.spark.stream(session, ["power", "canary"], "hw,kip101", first=40, per_batch=4, tasks=2, **options)
    writing = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writing.trigger(availableNow=True).start(str(folder / "rows")).awaitTermination()
    return [row.asDict() for row in session.read.parquet(str(folder / "rows")).collect()]


def test_a_stream_adds_seeds_at_each_start(session: SparkSession, tmp_path: Path) -> None:
    hw.sweep(["power", "canary"], "40..48", tmp_path / "out", modes="hw,kip101")
    expected = {(row["scenario"], row["mode"], row["seed"]): row for row in hw.rows(tmp_path / "out").to_pylist()}
    for batches in (1, 2):
        rows = streamed(session, tmp_path)
        assert {row["seed"] for row in rows} == set(range(40, 40 + 4 * batches))
        assert len(rows) == 16 * batches
        assert all(row == expected[row["scenario"], row["mode"], row["seed"]] for row in rows)


def test_a_stream_without_seeds_is_refused(session: SparkSession) -> None:
    with pytest.raises(InputError, match="per_batch = 0 is not valid: at least 1 is needed"):
        hw.spark.stream(session, "power", "hw", per_batch=0)
    with pytest.raises(InputError, match="unknown mode 'hv'"):
        hw.spark.stream(session, "power", "hv")
