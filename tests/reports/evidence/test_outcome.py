from __future__ import annotations

from pathlib import Path

from reports.evidence.outcome import rule_effects, waits_for
from scenarios.format import catalogue
from scenarios.single.run import run

FLOOR = """
schema = 1
name = "floor"
base = "elr-4.3"
title = "The ISR keeps min.insync.replicas members"
[rules]
isr_floor = "min-isr"
"""


def test_a_run_tells_which_changed_rules_changed_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "floor.toml"
    path.write_text(FLOOR)
    floor = catalogue.mode(str(path))
    told = {}
    for seed in (0, 46):
        result = run(catalogue.load("elr-chaos"), floor, seed, {"reassignment_completes": "min-isr"})
        assert rule_effects(run(catalogue.load("elr-chaos"), catalogue.mode("elr-4.3"), seed), None) == []
        told[seed] = rule_effects(result, catalogue.base_of(floor))
    never = "reassignment_completes=min-isr decided alike in this run (elr-4.3: targets-if-fewer)"
    assert told[46] == [never, "isr_floor=min-isr decided otherwise in this run (elr-4.3: none)"]
    assert told[0][1].startswith("isr_floor=min-isr decided ")


def test_a_mode_without_a_base_is_compared_with_its_own_rules() -> None:
    mode = catalogue.mode("kip101")
    assert catalogue.base_of(mode) is None
    result = run(catalogue.load("canary"), mode, 0, {"follower_truncation": "high-watermark"})
    assert rule_effects(result, None) == [
        "follower_truncation=high-watermark decided otherwise in this run (kip101: leader-epoch)"
    ]


def test_a_stalled_run_says_whether_the_isr_is_empty() -> None:
    """Broker 2 is the last member of the ISR, and its log directory has failed."""
    failed = run(catalogue.load("isr-with-failed-directory"), catalogue.mode("kraft"), 0)
    assert "the ISR is [2], and none of its members can be elected." in waits_for(failed)[0]
    assert waits_for(run(catalogue.load("isr-with-failed-directory"), catalogue.mode("kraft-repaired"), 0)) == []
