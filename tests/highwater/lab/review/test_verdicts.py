"""Four made-up proposals, each judged by a review on few seeds. Scripted scenarios are left to test_review.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.review import page
from highwater.lab.review import review as reviewing
from highwater.lab.review.result import BREAKS_UPGRADE, COSTS, HARMLESS, LOSES, UNTESTED
from highwater.plugin import loaded
from scenarios.format.catalogue import mode
from scenarios.sweep import local
from tests.places import ROOT
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.lab.review.result import Review


def reviewed(name: str, base: str, scenario: str, seeds: int, folder: Path) -> tuple[Review, list[str]]:
    with pytest.MonkeyPatch.context() as patch, loaded(str(ROOT / "tests/fixtures/made_up.py")):
        patch.setattr(local, "LocalBackend", lambda _: Here())
        patch.setattr(reviewing, "_run_stories", lambda _: None)
        found = reviewing.review(mode(name), mode(base), folder, seeds=seeds, scenarios=[scenario], conforms=False)
        return found, list(page.answer(found))


@pytest.mark.world
def test_another_order_of_election_is_harmless(tmp_path: Path) -> None:
    found, said = reviewed("last-first", "elr", "elr-chaos", 8, tmp_path)
    assert (found.verdict, found.is_worse, found.unproven) == (HARMLESS, False, {})
    assert found.changed > 0
    assert said[0] == "No violation of last-first was found that elr does not have, and no loss of availability."


@pytest.mark.world
def test_an_hw_of_the_leader_alone_loses(tmp_path: Path) -> None:
    found, said = reviewed("leader-alone", "elr", "elr-chaos", 4, tmp_path)
    assert (found.verdict, found.is_worse) == (LOSES, True)
    lost = found.lost["committed-loss"]
    assert lost.only_mode == 1
    assert lost.again == (
        0,
        24,
        24,
    )  # With the faults of this seed it loses whatever the latencies, and the base never.
    assert "--mode leader-alone --seed 3" in lost.replay
    assert said[0] == "leader-alone breaks its promise where elr keeps it."


@pytest.mark.world
def test_an_hw_of_all_replicas_costs_availability_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "_moves", lambda *_: [])
    found, said = reviewed("all-replicas", "elr", "elr-chaos", 48, tmp_path)
    assert (found.verdict, found.is_worse, found.lost) == (COSTS, False, {})
    assert said[0] == "all-replicas keeps its promise where elr does, and costs availability."
    assert any(line.startswith("all-replicas costs availability in elr-chaos (+") for line in said)


@pytest.mark.world
def test_elr_without_a_feature_level_breaks_a_rolling_upgrade(tmp_path: Path) -> None:
    found, said = reviewed("early-elr", "kraft-3.5", "power", 9, tmp_path)
    assert (found.verdict, found.is_worse, found.lost) == (BREAKS_UPGRADE, True, {})
    assert found.broken["exposed-loss"].again == (0, 24, 24)
    assert {scenario.name for scenario in found.moved} >= {"power-upgrade", "power-downgrade"}
    assert said[0] == "early-elr keeps its promise, but not while brokers are upgraded to it from kraft-3.5, or back."


@pytest.mark.world
def test_rules_that_answer_otherwise_and_change_no_history_are_not_tested(tmp_path: Path) -> None:
    found, said = reviewed("elr-4.3+isr_lag=time", "elr-4.3", "chaos", 3, tmp_path)
    assert (found.verdict, found.is_worse) == (UNTESTED, False)
    assert sum(scenario.touched for scenario in found.swept) == 3
    assert any("decided otherwise on 3 of 3 seeds, and changed what happened on 0;" in line for line in said)
