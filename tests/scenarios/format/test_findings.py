"""All findings: each has a place, a repair that cures its scenario, and words for each use."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from scenarios.format import catalogue
from scenarios.format.findings import all_findings, causes, documented, recognised, shown_by
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES
from tests.named import run_row
from tests.places import ROOT

RECOGNISED = [name for name, finding in all_findings().items() if all_findings()[finding.main].table.kinds]


def test_what_is_read_without_checks_is_what_the_checked_file_says() -> None:
    for name, finding in all_findings().items():
        scenario = catalogue.load(name)
        assert (finding.title, finding.table, finding.broken_by) == (
            scenario.title,
            scenario.finding,
            scenario.broken_by,
        )
        assert finding.expect.keys() == scenario.expect.keys()


def test_each_finding_has_a_place_of_its_own() -> None:
    numbers = Counter(finding.table.number for finding in all_findings().values() if finding.table.number is not None)
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert set(numbers.values()) == {1}
    known = all_findings()
    assert all(not known[finding.main].table.of for finding in known.values())
    assert [name for name, finding in known.items() if finding.table.kinds and finding.table.number is None] == []


def test_each_finding_has_a_cause_in_kafkas_code() -> None:
    known = all_findings()
    assert [name for name, finding in known.items() if not known[finding.main].table.kafka] == []
    assert [name for name, finding in known.items() if bool(finding.table.cause) != bool(finding.table.kafka)] == []
    assert [name for name, finding in known.items() if bool(finding.table.cause) != bool(finding.table.upstream)] == []
    assert {known[finding.main].repair[0] for finding in known.values()} == causes().keys()
    told = [finding.repair[0] for finding in known.values() if finding.table.cause]
    assert len(told) == len(causes())  # Another finding by the same rule names the first with `of`.


def test_findings_with_more_repairs_to_check_come_first() -> None:
    checks = [bool(finding.table.also_by or finding.table.not_by) for finding in recognised().values()]
    assert checks == sorted(checks, reverse=True)
    assert list(recognised())[:2] == ["reassignment-back", "reassignment-cancelled"]


def test_scenarios_of_a_repair() -> None:
    assert shown_by("skipped_epoch", "forgets-leo") == (
        "leo-of-skipped-epoch",
        "leo-of-skipped-epoch-paused",
        "leo-of-skipped-epoch-zookeeper",
    )
    assert shown_by("isr_floor", "min-isr") == ()
    assert documented()["skipped_epoch", "forgets-leo"] == ("committed-loss", "exposed-loss")
    assert documented()["elr_outside_assignment", "dropped"] == ()


def test_a_finding_without_kinds_is_recognised_by_nothing() -> None:
    assert "kafka-20961" in all_findings()
    assert "kafka-20961" not in recognised()
    assert shown_by(*all_findings()["kafka-20961"].repair) == ()


@pytest.mark.parametrize("name", RECOGNISED)
def test_the_repair_of_a_finding_cures_its_scenario(name: str) -> None:
    one, scenario = all_findings()[name], catalogue.load(name)
    rule, value = one.repair
    mode, expected = next(
        (mode, expected)
        for mode, expected in scenario.expect.items()
        if expected.verdict == "violates" and mode != "kraft"
    )
    (kind,) = expected.kinds
    assert kind in (one.table.kinds or all_findings()[one.main].table.kinds)
    assert kind in run_row(scenario, mode, 0)["violations"].split(",")
    repaired = run_row(scenario, mode, 0, {rule: value})
    assert kind not in repaired["violations"].split(",")
    assert value in RULES[rule].values
    assert MODES[mode].rules.as_dict()[rule] != value


def test_findings_are_read_when_somebody_asks_and_without_pydantic() -> None:
    code = (
        "import sys",
        "import highwater, scenarios.format.findings as findings",
        "print(findings._resolved.cache_info().currsize, 'pydantic' in sys.modules)",
        "findings.all_findings()",
        "print(findings._resolved.cache_info().currsize, 'pydantic' in sys.modules)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "0 False\n1 False\n"
