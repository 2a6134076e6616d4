"""Every order of events, at bounds that take seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster
from highwater.lab.explore.properties import KINDS, VIOLATIONS
from highwater.lab.explore.search import Found, search
from sim.protocol.modes import mode
from tests.highwater.lab.explore.kraft.facts import (
    AND_LAG,
    FEATURE,
    FEATURES,
    MIN_ISR,
    MIN_ISR_CHANGE,
    NO_FAULTS,
    ONE_ELECTION,
    ONE_FENCE,
    Fact,
    reductions_hide_nothing,
)

if TYPE_CHECKING:
    from highwater.lab.explore.kraft.cluster import KRaftPast


def explored(
    mode_name: str, mutant: str = "none", bounds: KRaftBounds = ONE_FENCE, most_states: int = 20_000
) -> tuple[KRaftCluster, Found[int]]:
    """A search that ends at the first violation or early warning."""
    cluster = KRaftCluster(mode(mode_name).rules.override({"mutant": mutant}), bounds)
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


@pytest.mark.world
@pytest.mark.parametrize(
    ("mode_name", "bounds"),
    [
        ("kraft", NO_FAULTS),
        ("elr-repaired", NO_FAULTS),
        ("elr-4.3", replace(MIN_ISR_CHANGE, records=0)),
        ("elr-repaired", replace(AND_LAG, records=0)),
        ("elr-repaired", replace(FEATURE, records=0, lags=1, isr=3)),
    ],
)
def test_reductions_hide_nothing(mode_name: str, bounds: KRaftBounds) -> None:
    assert reductions_hide_nothing(mode_name, bounds)


@pytest.mark.world
@pytest.mark.parametrize("fact", [fact for fact in (*MIN_ISR, *FEATURES) if not fact.walks], ids=lambda fact: fact.name)
def test_changes_of_an_administrator(fact: Fact) -> None:
    """`make explore` checks those that take walks, too."""
    _, found = fact.search()
    assert tuple(found.paths) == fact.kinds
    assert found.exhausted == (not fact.kinds)


def test_a_leader_goes_by_the_min_insync_replicas_that_it_has_replayed() -> None:
    cluster, found = Fact("elr-4.3", AND_LAG).search()
    (path,) = found.paths.values()
    told = [f"{cluster.event(action)}. {cluster.describe(after)}" for action, after in path]
    assert told[0].startswith(
        "an administrator sets min.insync.replicas to 3. leader 1 in 0, ISR [1, 2, 3], min ISR 3;"
    )
    assert "ISR [1, 3], ELR [2], min ISR 3; 1 leads in 0 by min ISR 2 [] HW 0" in told[-1]


def test_a_record_is_promised_by_the_smallest_min_insync_replicas_since_its_commit() -> None:
    bounds = replace(MIN_ISR_CHANGE, losses=1)
    cluster = KRaftCluster(mode("elr-repaired").rules, bounds)
    replicated = [
        "broker 1 appends r0",
        "broker 1 serves the fetch of broker 2 at offset 0 in leader epoch 0",
        "broker 2 receives r0 and HW 0 from broker 1",
        "broker 1 serves the fetch of broker 2 at offset 1 in leader epoch 0",
    ]
    lowers, raises = (f"an administrator sets min.insync.replicas to {value}" for value in (1, 3))
    loses = "broker 1 loses power, and starts again with 0 records"
    assert followed(cluster, [*replicated, loses]).smallest == (2,)
    assert followed(cluster, [*replicated, lowers, loses]).smallest == (1,)
    assert followed(cluster, [*replicated, raises, loses]).smallest == (2,)
    replays = "broker 1 replays metadata transactions: 1"
    assert followed(cluster, [lowers, *replicated]).smallest == (1,)
    assert followed(cluster, [raises, *replicated]).smallest == (2,)  # The leader's own value is 2 still.
    # It waits for as many ISR members as it has replayed.
    assert followed(cluster, [replicated[0], raises, replays, *replicated[1:]]).smallest == (0,)
    # A deposed leader shows late what it committed.
    cluster = KRaftCluster(mode("elr-repaired").rules, replace(bounds, fences=1, min_isr_changes=2))
    deposes, raises = "the session of broker 1 expires: it is fenced", "an administrator sets min.insync.replicas to 2"
    assert followed(cluster, [*replicated[:3], deposes, lowers, raises, replicated[3]]).smallest == (1,)
    assert followed(cluster, [*replicated, deposes]).smallest == (2,)


def test_while_the_feature_was_disabled_a_record_needs_another_isr_member() -> None:
    disables = "an administrator sets feature eligible.leader.replicas.version to 0"
    fenced = "the session of broker 2 expires: it is fenced"
    loses = "broker 1 loses power, and starts again with 0 records"
    registered = "the controller registers broker 1 after an unclean stop"
    cluster = KRaftCluster(mode("elr-repaired").rules, replace(FEATURE, losses=1, fences=1))
    assert followed(cluster, [disables, fenced, loses]).alone
    assert followed(cluster, [fenced, loses, disables]).alone
    assert followed(cluster, [disables, loses, fenced]).alone
    assert not followed(cluster, [disables, loses, registered, fenced]).alone
    assert cluster.describe(reached(cluster, [disables])).startswith("leader 1 in 0, ISR [1, 2], feature disabled;")
    # Modes without it have nothing to disable.
    kraft = KRaftCluster(mode("kraft").rules, FEATURE)
    assert "feature" not in [action[0] for action, _ in kraft.successors(kraft.first())]


def test_a_leader_that_committed_alone_and_lost_it_breaks_no_promise() -> None:
    events = [
        "broker 1 appends r0",
        "an administrator sets min.insync.replicas to 2",
        "broker 1 loses power, and starts again with 0 records",
    ]
    alone = replace(MIN_ISR_CHANGE, isr=1, losses=1)
    for min_isr, appended in ((1, 1), (2, 0)):
        cluster = KRaftCluster(mode("elr-repaired").rules, replace(alone, min_isr=min_isr))
        assert len([one for one, _ in cluster.successors(cluster.first()) if one[0] == "append"]) == appended
    cluster = KRaftCluster(mode("elr-repaired").rules, replace(alone, min_isr=1))
    past = followed(cluster, events)
    assert (past.acked, past.losses, past.smallest) == (1, 1, (1,))
    assert cluster.findings(reached(cluster, events)) == ()


def reached(cluster: KRaftCluster, events: list[str]) -> int:
    """The state after these events."""
    state = cluster.first()
    for event in events:
        state = next(after for action, after in cluster.successors(state) if cluster.event(action) == event)
    return state


def followed(cluster: KRaftCluster, events: list[str]) -> KRaftPast:
    """What has happened in the state after these events."""
    return cluster.parts(reached(cluster, events)).control.past


def test_each_event_and_state_is_told() -> None:
    cluster, found = explored("elr-repaired", "join-below-hw")
    (path,) = found.paths.values()
    told = [f"{cluster.event(action)}. {cluster.describe(after)}" for action, after in path]
    assert any("receives r0 and HW 0" in one for one in told)
    assert any("the controller receives AlterPartition of broker 1: ISR [1, 2, 3]" in one for one in told)


def test_the_shortest_way_is_told() -> None:
    cluster, found = explored("elr-repaired", "hw-ignores-min-isr")
    (path,) = found.paths.values()
    events = [cluster.event(action) for action, _ in path]
    assert events == [
        "the session of broker 2 expires: it is fenced",
        "broker 1 appends r0",
        "broker 1 replays metadata transactions: 1",
    ]
    assert cluster.describe(path[-1][1]).startswith("leader 1 in 0, ISR [1], ELR [2]; 1 leads in 0 [r0@0] HW 1; ")


def test_a_search_keeps_no_more_states_than_it_may() -> None:
    every = explored("kraft", bounds=NO_FAULTS)[1].states
    cut = explored("kraft", bounds=NO_FAULTS, most_states=every - 1)[1]
    assert (cut.states, cut.exhausted, cut.stopped) == (every - 1, False, False)
    whole = explored("kraft", bounds=NO_FAULTS, most_states=every)[1]
    assert (whole.states, whole.exhausted) == (every, True)


def test_a_search_ends_when_its_time_is_over() -> None:
    cluster = KRaftCluster(mode("kraft").rules, NO_FAULTS)
    cut = search(cluster, until=KINDS, time_limit=0)
    assert (cut.states, cut.exhausted, cut.stopped) == (1, False, False)
