"""What was tried with each version, kept in results.json, and the table of it on the page about platforms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.places import ROOT
from tests.verification.spark_versions.columns import COLUMNS
from tests.verification.spark_versions.environments import VERSIONS

FILE: Final = Path(__file__).with_name("results.json")
"""Version -> column -> result, what was run, date, and version of Highwater."""
PAGE: Final = ROOT / "notebooks" / "guide" / "spark-platforms.md"
BEGIN: Final = "<!-- Of tests.verification.spark_versions: begin -->\n"
END: Final = "<!-- end -->\n"

Results = dict[str, dict[str, dict[str, Any]]]


def kept() -> Results:
    """The results that are kept."""
    found: Results = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def keep(results: Results) -> None:
    """Write results, and their table into the page."""
    ordered = {version: results.get(version, {}) for version in VERSIONS}
    FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(head + BEGIN + table(ordered) + END + rest.partition(END)[2], encoding="utf-8")


def table(results: Results) -> str:
    """Versions as columns, what was tried as rows, in Markdown."""
    versions = list(results)
    columns = [column for column in COLUMNS if any(column in found for found in results.values())]
    head = "| | " + " | ".join(f"PySpark {version}" for version in versions) + " |"
    lines = [head, "|---" * (1 + len(versions)) + "|"]
    for column in columns:
        cells = (_cell(results[version].get(column)) for version in versions)
        lines.append(f"| {_label(column)} | " + " | ".join(cells) + " |")
    dates = sorted({each["date"] for found in results.values() for each in found.values()})
    return "\n".join(lines) + f"\n\nTried on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}.\n"


def _label(column: str) -> str:
    return (COLUMNS[column].__doc__ or column).rstrip(".")


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not tried"
    return found["run"] if found["result"] == "ok" else f"{found['result']} {found['run'].splitlines()[0][:200]}"
