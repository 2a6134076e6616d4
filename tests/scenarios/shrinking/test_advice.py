from __future__ import annotations

import pytest

from scenarios.format.findings import all_findings
from scenarios.shrinking.advice import advice, of_mode, releases
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.known_bugs import KNOWN
from sim.protocol.modes import MODES

EPOCHS = Repair("follower_truncation", "leader-epoch", is_rule=True)
MIN_ISR = Repair("min.insync.replicas", 2, is_rule=False)
FLUSH = Repair("log.flush.interval.messages", 1, is_rule=False)
FLOOR = Repair("isr_floor", "min-isr", is_rule=True)


@pytest.mark.parametrize(
    ("mode", "rule", "value", "said"),
    [
        ("hw", "follower_truncation", "leader-epoch", "Kafka 1.1 and later"),
        ("kip101", "follower_truncation", "leader-epoch-rounds", "Kafka 2.0.0 and later"),
        ("kip320", "isr_eligibility", "registered", "Kafka 3.5 and later (KRaft)"),
        # The code with the bug is ZooKeeper's.
        ("kip320", "missed_bounce", "noticed", "Kafka 3.5 and later (KRaft)"),
        # 4.3 lets reassignments complete sooner again.
        ("kraft-3.5", "reassignment_completes", "targets-in-isr", "Kafka 3.9.0 to 4.1.0"),
        ("elr", "directory_assignment", "keeps-elr", "Kafka 4.3.1 and later"),
        ("elr-4.3", "elr_outside_assignment", "dropped", "no release yet"),
        ("elr-repaired", "isr_floor", "min-isr", "no release yet"),
    ],
)
def test_the_release_with_a_repair(mode: str, rule: str, value: str, said: str) -> None:
    assert releases(rule, value, MODES[mode]) == said


def test_settings_come_before_releases() -> None:
    assert advice([], MODES["hw"]) == "no single repair"
    assert advice([MIN_ISR, FLUSH], MODES["hw"]) == "min.insync.replicas=2 or log.flush.interval.messages=1"
    assert advice([EPOCHS, MIN_ISR], MODES["hw"]) == "min.insync.replicas=2, or Kafka 1.1 and later"
    assert advice([EPOCHS], MODES["hw"]) == "Kafka 1.1 and later"
    assert advice([FLOOR, FLUSH], MODES["elr-4.3"]) == (
        "log.flush.interval.messages=1 (the bug is repaired in no release yet)"
    )
    assert advice([FLOOR], MODES["elr-4.3"]) == "no release yet"
    assert [of_mode(MODES[name]) for name in ("elr-4.3", "elr-repaired")] == ["Kafka 4.3.1", "no release yet"]


def test_every_known_bug_is_repaired_in_a_release() -> None:
    assert [pair for pair in KNOWN if releases(*pair, MODES["hw"]) == "no release yet"] == []
    found = [all_findings()[name].repair for name in ("forgotten-expansion", "reassignment-back", "reassignment-again")]
    assert {releases(*repair, MODES["elr-4.3"]) for repair in found} == {"no release yet"}
