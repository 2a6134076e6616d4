"""Every order of events, at bounds that take seconds."""

from __future__ import annotations

import pytest

from scenarios.exploring import wording
from scenarios.exploring.cluster import Bounds, Cluster
from scenarios.exploring.properties import KINDS, VIOLATIONS
from scenarios.exploring.search import Found, search
from sim.protocol.modes import mode
from tests.plain import needs_sources
from tests.scenarios.exploring.kraft_facts import NO_FAULTS, ONE_ELECTION, ONE_FENCE, reductions_hide_nothing

pytestmark = needs_sources


def explored(
    mode_name: str, mutant: str = "none", bounds: Bounds = ONE_FENCE, most_states: int = 20_000
) -> tuple[Cluster, Found[int]]:
    """A search that ends at the first violation or early warning."""
    cluster = Cluster(mode(mode_name).rules.override({"mutant": mutant}), bounds)
    return cluster, search(cluster, until=KINDS, ends=VIOLATIONS, most_states=most_states)


@pytest.mark.parametrize("mode_name", ["kraft", "elr-4.3", "elr-repaired"])
def test_without_faults_no_order_of_events_shows_anything(mode_name: str) -> None:
    _, found = explored(mode_name, bounds=NO_FAULTS)
    assert (found.exhausted, found.paths) == (True, {})


@pytest.mark.parametrize("mode_name", ["elr-4.3", "elr-repaired"])
def test_one_election_of_a_running_broker_does_no_harm(mode_name: str) -> None:
    _, found = explored(mode_name, bounds=ONE_ELECTION)
    assert (found.exhausted, found.paths) == (True, {})


def test_a_search_is_deterministic() -> None:
    one, other = (explored("elr-repaired", bounds=NO_FAULTS)[1] for _ in range(2))
    assert (one.states, one.transitions, one.depth) == (other.states, other.transitions, other.depth)


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        ("hw-ignores-min-isr", "candidate-incomplete"),
        ("election-outside-isr", "leader-incomplete"),
        ("elr-kept-at-min-isr", "quorum-not-superset"),
    ],
)
def test_a_mutant_is_found(mutant: str, kind: str) -> None:
    cluster, found = explored("elr-repaired", mutant)
    assert found.stopped
    assert kind in found.paths
    assert cluster.decide.mutants.by_name[mutant].differed


@pytest.mark.parametrize("mode_name", ["kraft", "elr-repaired"])
def test_reductions_hide_nothing(mode_name: str) -> None:
    assert reductions_hide_nothing(mode_name, NO_FAULTS)


def test_each_event_and_state_is_told() -> None:
    cluster, found = explored("elr-repaired", "join-below-hw")
    (path,) = found.paths.values()
    told = [f"{wording.event(cluster, action)}. {wording.state(cluster, after)}" for action, after in path]
    assert any("receives r0 and HW 0" in one for one in told)
    assert any("the controller receives AlterPartition of broker 1: ISR [1, 2, 3]" in one for one in told)


def test_the_shortest_way_is_told() -> None:
    cluster, found = explored("elr-repaired", "hw-ignores-min-isr")
    (path,) = found.paths.values()
    events = [wording.event(cluster, action) for action, _ in path]
    assert events == [
        "the session of broker 2 expires: it is fenced",
        "broker 1 appends r0",
        "broker 1 replays metadata transactions: 1",
    ]
    assert wording.state(cluster, path[-1][1]).startswith("leader 1 in 0, ISR [1], ELR [2]; 1 leads in 0 [r0@0] HW 1; ")


def test_a_search_keeps_no_more_states_than_it_may() -> None:
    every = explored("kraft", bounds=NO_FAULTS)[1].states
    cut = explored("kraft", bounds=NO_FAULTS, most_states=every - 1)[1]
    assert (cut.states, cut.exhausted, cut.stopped) == (every - 1, False, False)
    whole = explored("kraft", bounds=NO_FAULTS, most_states=every)[1]
    assert (whole.states, whole.exhausted) == (every, True)


def test_a_search_ends_when_its_time_is_over() -> None:
    cluster = Cluster(mode("kraft").rules, NO_FAULTS)
    cut = search(cluster, until=KINDS, time_limit=0)
    assert (cut.states, cut.exhausted, cut.stopped) == (1, False, False)
