"""The verdict of a run in words."""

from __future__ import annotations

from typing import Any

import pytest

from reports.evidence.story import HAPPENED, outcome
from sim.checkers.registry import FINDINGS
from sim.protocol.modes import MODES


def row(**fields: Any) -> dict[str, Any]:
    given = {
        "mode": "hw",
        "verdict": "violation",
        "violations": "committed-loss",
        "violations_inside": "committed-loss",
    }
    rest = {"inside": True, "expected": True, "error": "", "replay": "highwater replay canary --mode hw --seed 0"}
    return {**given, **rest, **fields}


def test_every_kind_of_violation_has_words() -> None:
    assert {*HAPPENED} == {kind for kind, finding in FINDINGS.items() if not finding.is_warning}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {},
            (
                "acknowledged record LOST (committed-loss). Expected here: Kafka 0.10.2 has this bug "
                "(it promises to survive these faults)"
            ),
        ),
        (
            {"expected": False},
            (
                "acknowledged record LOST (committed-loss). NOT expected here "
                "(Kafka 0.10.2 promises to survive these faults)"
            ),
        ),
        (
            {"violations_inside": "", "inside": False},
            (
                "acknowledged record LOST (committed-loss). Expected here: "
                "Kafka 0.10.2 does not promise to survive these faults"
            ),
        ),
        (
            {"violations": "ack-under-min-isr,committed-loss", "violations_inside": "ack-under-min-isr"},
            (
                "acknowledged record LOST (ack-under-min-isr, committed-loss). Expected here: Kafka 0.10.2 has this "
                "bug (it promises to prevent ack-under-min-isr, and not the others)"
            ),
        ),
        (
            {"verdict": "ok", "violations": "", "violations_inside": ""},
            "no violation, as expected. Kafka 0.10.2 promises to survive these faults",
        ),
        (
            {"verdict": "stalled", "violations": "", "violations_inside": "", "inside": False, "expected": False},
            (
                "no leader until an operator acts (stalled), NOT as expected. "
                "Kafka 0.10.2 does not promise to survive these faults"
            ),
        ),
        (
            {"verdict": "exhausted", "violations": "", "violations_inside": ""},
            (
                "stopped at the event limit (exhausted). Expected or not: undecided "
                "(Kafka 0.10.2 promises to survive these faults)"
            ),
        ),
    ],
)
def test_a_verdict_says_what_happened_and_what_kafka_promises(fields: dict[str, Any], said: str) -> None:
    assert outcome(row(**fields)) == said


@pytest.mark.parametrize("mode", ["elr-repaired", "mine", "hw+isr_lag=time"])
def test_the_name_of_a_mode_that_is_no_release_stays_as_it_is(mode: str) -> None:
    assert mode not in MODES or MODES[mode].release == "none"
    said = outcome(row(mode=mode, verdict="ok", violations="", violations_inside=""))
    assert f"Mode {mode} promises" in said
    replay = "highwater replay canary --mode hw --seed 0 --rule isr_lag=time"
    assert "mode hw has this bug" in outcome(row(replay=replay))
