"""The table of what was tried."""

from __future__ import annotations

import sys

import pytest

from tests.verification.spark_versions import __main__ as program
from tests.verification.spark_versions import results
from tests.verification.spark_versions.columns import COLUMNS
from tests.verification.spark_versions.environments import VERSIONS, NotInstalledError

FOUND: results.Results = {
    "3.5.9": {
        "sweep": {"result": "ok", "run": "800 rows", "date": "2026-11-30"},
        "source": {"result": "-", "run": "from 4.0 on", "date": "2026-12-01"},
    },
    "4.0.5": {"sweep": {"result": "FAILED", "run": "exits with 70:\nTraceback", "date": "2026-11-30"}},
}


def test_what_was_not_tried_or_failed_is_named() -> None:
    assert results.table(FOUND).splitlines() == [
        "| | PySpark 3.5.9 | PySpark 4.0.5 |",
        "|---|---|---|",
        "| A sweep on two cores | 800 rows | FAILED exits with 70: |",
        '| `spark.read.format("highwater")` | - from 4.0 on | not tried |',
        "",
        "Tried on 2026-11-30 to 2026-12-01.",
    ]


def test_a_version_that_cannot_be_installed_is_named_and_has_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(version: str) -> None:
        raise NotInstalledError(f"pyspark=={version}: no matching distribution")

    monkeypatch.setattr(program, "environment", refuse)
    monkeypatch.setattr(program, "unpack_wheel", lambda: None)
    monkeypatch.setattr(sys, "argv", ["spark_versions", "oldest"])
    assert program.main() == program.NOT_INSTALLED
    said = f"is not tried, for it cannot be installed: pyspark=={VERSIONS[0]}: no matching distribution\n"
    assert capsys.readouterr().out.endswith(said)


def test_the_page_has_the_table_of_the_kept_results() -> None:
    kept = results.kept()
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.BEGIN + results.table(kept) + results.END in page
    assert {column for found in kept.values() for column in found} <= COLUMNS.keys()
    assert tuple(kept) == VERSIONS
