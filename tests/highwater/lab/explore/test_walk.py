"""Random walks, at bounds that take seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster
from highwater.lab.explore.properties import KINDS
from highwater.lab.explore.search import Found
from highwater.lab.explore.walk import walk
from highwater.lab.explore.zookeeper.cluster import ZooKeeperBounds, ZooKeeperCluster
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.lab.explore.search import Action

BOUNDS = KRaftBounds(losses=0, fences=2, records=2, isr=3)


def walked(mutant: str = "none", *, seed: int = 0, walks: int = 150) -> tuple[KRaftCluster, Found[int]]:
    """Walks that end at the first violation or early warning."""
    cluster = KRaftCluster(mode("elr-repaired").rules.override({"mutant": mutant}), BOUNDS)
    return cluster, walk(cluster, until=KINDS, walks=walks, most_events=50, seed=seed)


@pytest.mark.world
def test_walks_without_a_mutant_show_nothing() -> None:
    _, found = walked()
    assert (found.stopped, found.paths, found.walks) == (False, {}, 150)
    assert found.depth > 30


def test_a_walk_finds_a_mutant() -> None:
    cluster, found = walked("hw-ignores-min-isr")
    assert found.stopped
    assert "candidate-incomplete" in found.paths
    assert cluster.decide.mutants.by_name["hw-ignores-min-isr"].differed


def test_what_is_found_can_be_followed_and_has_no_event_too_many() -> None:
    cluster, found = walked("hw-ignores-min-isr")
    path = found.paths["candidate-incomplete"]
    state = cluster.first()
    for action, after in path:
        assert (action, after) in list(cluster.successors(state))
        assert cluster.findings(state) == ()
        state = after
    assert "candidate-incomplete" in cluster.findings(state)
    events = [cluster.event(action) for action, _ in path]
    assert any("appends r0" in event for event in events)
    for left_out in range(len(path) - 1):
        actions = [action for place, (action, _) in enumerate(path) if place != left_out]
        assert not _shows(cluster, actions, "candidate-incomplete")


def _shows(cluster: KRaftCluster, actions: list[Action], kind: str) -> bool:
    """Whether these events, as far as they are possible, can lead to a kind."""
    states = {cluster.first()}
    for action in actions:
        after = {state: [new for one, new in cluster.successors(state) if one == action] for state in states}
        states = {new for state in states for new in after[state] or [state]}
        if any(kind in cluster.findings(state) for state in states):
            return True
    return False


@pytest.mark.world
def test_two_elections_suffice_if_a_leader_replays_both_at_once() -> None:
    bounds = KRaftBounds(losses=0, fences=0, isr=3, elections=2)
    cluster = KRaftCluster(mode("elr-4.3").rules, bounds)
    found = walk(cluster, until=KINDS, walks=10_000, most_events=60, seed=5)
    path = found.paths["candidate-incomplete"]
    events = [cluster.event(action) for action, _ in path]
    assert sum("a preferred election" in event for event in events) == 2
    assert "broker 1 replays metadata transactions: 2" in events
    repaired = KRaftCluster(mode("elr-repaired").rules, bounds)
    assert not walk(repaired, until=KINDS, walks=found.walks, most_events=60, seed=5).stopped


def test_the_same_seed_draws_the_same_walks() -> None:
    one, same, other = (walked("hw-ignores-min-isr", seed=seed)[1] for seed in (3, 3, 4))
    assert (one.walks, one.transitions, one.paths) == (same.walks, same.transitions, same.paths)
    assert (one.walks, one.transitions) != (other.walks, other.transitions)


def test_walks_keep_no_more_states_than_they_may() -> None:
    cluster = KRaftCluster(mode("elr-repaired").rules, BOUNDS)
    found = walk(cluster, until=KINDS, walks=100, most_events=50, most_states=200)
    assert (found.states, found.stopped) == (200, False)
    assert found.walks < 100


def test_walks_end_when_their_time_is_over() -> None:
    cluster = KRaftCluster(mode("elr-repaired").rules, BOUNDS)
    assert walk(cluster, until=KINDS, walks=100, most_events=50, time_limit=0).walks == 0
    assert walk(cluster, until=KINDS, walks=100, most_events=50, cpu_limit=0).walks == 0


def test_a_zookeeper_mode_is_walked() -> None:
    world = ZooKeeperCluster(mode("hw").rules, ZooKeeperBounds(brokers=3, records=2, epochs=3))
    found = walk(world, until=["exposed-loss"], walks=2_000, most_events=60)
    assert found.stopped
    assert "exposed-loss" in found.paths


class Dice:
    """Ten steps of which each may be to the left, to the right, or a fall; two falls are found."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def first(self) -> tuple[int, int]:
        return 0, 0

    def successors(self, state: tuple[int, int]) -> Iterator[tuple[Action, tuple[int, int]]]:
        steps, falls = state
        if steps < 10:
            yield ("left",), (steps + 1, falls)
            yield ("right",), (steps + 1, falls)
            yield ("fall",), (steps + 1, falls + 1)

    def findings(self, state: tuple[int, int]) -> tuple[str, ...]:
        self.seen.append(state)
        return ("twice",) if state[1] == 2 else ()

    def is_fault(self, kind: str) -> bool:
        return kind == "fall"


@pytest.mark.parametrize("seed", range(5))
def test_events_that_do_not_matter_are_left_out(seed: int) -> None:
    found = walk(Dice(), until=["twice"], walks=1_000, most_events=10, seed=seed)
    assert [action for action, _ in found.paths["twice"]] == [("fall",), ("fall",)]


class Ladder:
    """The thirtieth rung is found, and every tenth one warns; a step is up or down to the ground."""

    def first(self) -> int:
        return 0

    def successors(self, state: int) -> Iterator[tuple[Action, int]]:
        yield ("up",), state + 1
        yield ("down",), 0

    def findings(self, state: int) -> tuple[str, ...]:
        return ("top",) if state == 30 else ("tenth",) if state % 10 == 0 and state else ()

    def is_fault(self, kind: str) -> bool:
        return kind == "never"


def test_walks_go_on_from_early_warnings() -> None:
    found = walk(Ladder(), until=["top"], walks=5_000, most_events=60)
    assert [action for action, _ in found.paths["top"]] == [("up",)] * 30


def test_faults_are_drawn_less_often() -> None:
    dice = Dice()
    walk(dice, until=["never"], walks=2_000, most_events=1)
    falls = sum(falls for _, falls in dice.seen)
    assert len(dice.seen) == 2_000
    assert 60 < falls < 180
