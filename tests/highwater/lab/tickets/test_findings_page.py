"""The page of all findings."""

from __future__ import annotations

import re

import pytest

from highwater.lab.tickets.findings_page import concerned, findings_of, findings_page
from scenarios.format.findings import all_findings
from tests.places import ROOT


@pytest.fixture(scope="module")
def page() -> str:
    return findings_page()


def test_each_finding_has_a_row_and_a_section(page: str) -> None:
    assert re.findall(r"^\| \[`([a-z0-9-]+)`\]\(#\1\) \|", page, re.MULTILINE) == list(all_findings())
    assert re.findall(r"^###? (\S+)$", page, re.MULTILINE) == list(all_findings())
    assert page.count("**What decides in Kafka's code.**") == len(
        {finding.main for finding in all_findings().values() if all_findings()[finding.main].table.cause}
    )


def test_releases_are_those_of_recorded_runs(page: str) -> None:
    rows = {row[0].strip("[`").partition("`")[0]: row[2:] for row in map(_cells, page.splitlines()) if len(row) == 4}
    assert rows["reassignment-back"] == ["4.3.1, 4.4.0", "4.1.2, 4.2.1, 4.2.2"]
    assert rows["throttled-move-killed"][0] == "3.9.0"
    assert rows["throttled-move-killed"][1].startswith("4.1.2 (outside the promise), ")
    assert rows["recreated-topic"] == ["", ""]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| [`") else []


def test_it_has_methods_the_repair_and_the_text(page: str) -> None:
    section = page.partition("## leo-of-skipped-epoch\n")[2].partition("\n## ")[0]
    assert "**What decides in Kafka's code.** `Partition#makeLeader`: " in section
    assert "**The repair.** Rule `skipped_epoch` with value `forgets-leo`." in section
    assert "**Known upstream.** " in section
    assert "**What an operator sees.**" in section
    assert "**Replay.** `highwater explain leo-of-skipped-epoch --mode elr-4.3`" in section
    assert "### leo-of-skipped-epoch-paused\n" in section


def test_the_page_of_a_mode_has_the_findings_of_the_mode() -> None:
    assert "| [`leo-of-skipped-epoch-zookeeper`](../../reference/findings.md#leo-of-skipped-epoch-zookeeper) |" in (
        findings_of("hw")
    )
    assert "`leo-of-skipped-epoch`" not in findings_of("hw")
    assert findings_of("elr-repaired") == ""


@pytest.mark.world
def test_the_findings_begin_with_whom_they_concern() -> None:
    """The table of FINDINGS.md is what the scenarios say and do."""
    rows = list(concerned())
    page = (ROOT / "highwater" / "lab" / "confirm" / "FINDINGS.md").read_text(encoding="utf-8")
    assert "\n".join(["", *rows, ""]) in page.partition("## What they have in common")[0]
    table = [row for row in rows if row.startswith("| `")]
    numbered = [finding for finding in all_findings().values() if finding.table.number is not None]
    assert len(table) == len(numbered)
    assert all(finding.table.trigger and finding.table.avoid for finding in numbered)
    with_any, with_elr = ("\n".join(rows).partition("### Only with ELR\n")[place] for place in (0, 2))
    assert "| `forgotten-expansion` | 3.9 to 4.4 | " in with_any
    assert "| `recreated-topic` | 3.9 to 4.4 | " in with_any  # By a program of its own.
    assert "| `reassignment-back` | 4.3 to 4.4 | " in with_elr
