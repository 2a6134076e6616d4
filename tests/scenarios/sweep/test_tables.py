"""Tables that get a copy of a sweep's rows; `tests.verification.tables` writes real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scenarios.sweep import tables
from scenarios.sweep.tables import RowTable, parse
from sim.errors import InputError
from tests.scenarios.sweep.spark_session import session as session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.conftest import Call


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("delta:/shared/rows", RowTable("delta", "/shared/rows")),
        ("delta:s3a://bucket/rows", RowTable("delta", "s3a://bucket/rows")),
        ("iceberg:lake.db.rows", RowTable("iceberg", "lake.db.rows")),
    ],
)
def test_format_and_name(text: str, table: RowTable) -> None:
    assert parse(text) == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("detla:rows", "--table 'detla:rows' names no format before a colon; did you mean 'delta'"),
        ("/shared/rows", "names no format before a colon; one of: delta, iceberg"),
        ("iceberg:", "--table 'iceberg:' names no table: iceberg:NAME is needed"),
    ],
)
def test_what_names_no_table(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


def test_a_sweep_without_spark_has_no_table(highwater: Callable[..., Call], tmp_path: Path) -> None:
    call = highwater(
        *("sweep", "canary", "--modes", "hw", "--seeds", "0..1", "--output", tmp_path / "out"),
        *("--local", 1, "--table", "delta:/rows"),
    )
    assert call.code == 2
    assert "--local excludes Spark's options --master, --conf, --table and --mixed-builds" in call.err


@pytest.mark.world
def test_a_session_without_the_format_is_named_and_keeps_the_wave(
    session: SparkSession, highwater: Callable[..., Call], tmp_path: Path
) -> None:
    words: tuple[Any, ...] = ("sweep", "canary", "--modes", "hw", "--seeds", "0..4", "--output", tmp_path / "out")
    call = highwater(*words, "--table", f"delta:{tmp_path / 'rows'}")
    assert call.code == 74, call.err
    assert "Spark cannot append wave=" in call.err
    assert "Traceback" not in call.err
    assert len([*(tmp_path / "out" / "results").glob("wave=*/_MANIFEST.json")]) == 1
    assert highwater(*words).code == 0


@pytest.mark.world
def test_rows_whose_key_is_there_are_left_out(session: SparkSession) -> None:
    columns = "scenario string, mode string, seed long, warning_us long, variant long, blow string, verdict string"
    rows = session.createDataFrame([("power", "hw", seed, -1, 0, "", "ok") for seed in range(4)], columns)
    left = tables._without(rows, rows.where("seed < 3"), ())
    assert left.columns == rows.columns
    assert [row["seed"] for row in left.collect()] == [3]
