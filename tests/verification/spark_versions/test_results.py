"""The table of what was tried."""

from __future__ import annotations

from tests.verification.spark_versions import results
from tests.verification.spark_versions.columns import COLUMNS
from tests.verification.spark_versions.environments import VERSIONS

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


def test_the_page_has_the_table_of_the_kept_results() -> None:
    kept = results.kept()
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.BEGIN + results.table(kept) + results.END in page
    assert {column for found in kept.values() for column in found} <= COLUMNS.keys()
    assert tuple(kept) == VERSIONS
