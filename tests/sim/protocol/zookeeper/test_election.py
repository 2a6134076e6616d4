from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper import election

ISRS = st.lists(st.sampled_from([1, 2, 3]), unique=True).map(lambda isr: tuple(sorted(isr)))
LIVE = st.sets(st.sampled_from([1, 2, 3]))


def test_the_first_live_member_leads_and_dead_ones_leave_the_isr() -> None:
    assert election.offline((3, 1, 2), (1, 2, 3), [1, 2]) == (1, (1, 2))


def test_without_live_members_only_an_unclean_election_finds_a_leader() -> None:
    assert election.offline((1, 2, 3), (1,), [3, 2]) is None
    assert election.offline((1, 2, 3), (1,), [3, 2], unclean=True) == (2, (2,))
    assert election.offline((1, 2, 3), (1,), [], unclean=True) is None


@given(ISRS, LIVE)
def test_a_clean_election_never_adds_a_member_and_never_empties_the_isr(isr: tuple[int, ...], live: set[int]) -> None:
    choice = election.offline((1, 2, 3), isr, live)
    assert (choice is None) == (not live & set(isr))
    if choice is not None:
        leader, members = choice
        assert leader in members
        assert set(members) == live & set(isr)


@pytest.mark.parametrize(
    ("isr", "live", "choice"),
    [((1, 2), [1, 2], (1, (1, 2))), ((1, 2), [2], None), ((2,), [1, 2], None)],
)
def test_the_preferred_leader_is_the_head_of_the_assignment_or_none(
    isr: tuple[int, ...], live: list[int], choice: election.ElectionResult
) -> None:
    assert election.preferred((1, 2), isr, live) == choice


def test_first_new_replica_in_sync_leads_after_a_reassignment() -> None:
    assert election.reassigned((4, 3, 2), (2, 3), [1, 2, 3, 4]) == (3, (2, 3))
    assert election.reassigned((4,), (2, 3), [1, 2, 3, 4]) is None


def test_broker_that_shuts_down_hands_over_and_leaves_the_isr() -> None:
    assert election.controlled_shutdown((1, 2, 3), (1, 2, 3), [1, 2, 3], {1: None}) == (2, (2, 3))
    assert election.controlled_shutdown((1, 2), (1,), [1, 2], {1: None}) is None


def test_the_last_member_is_waited_for() -> None:
    assert election.without(1, 1, (1,)) == (0, (1,))
    assert election.without(1, 1, (1,), to_the_last=True) == (0, ())
    assert election.without(1, 1, (1, 2)) == (0, (2,))
    assert election.without(2, 1, (1, 2)) == (1, (1,))


@given(st.dictionaries(st.sampled_from([1, 2, 3]), st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3), LIVE)
def test_eligible_members_never_stopped_or_have_the_longest_log(
    logs: dict[int, tuple[int, int]], live: set[int]
) -> None:
    for started in (set(), {1}, {1, 2}, {1, 2, 3}):
        state = LeaderAndIsr("p", 1, 0, (1, 2, 3), 0, (1, 2, 3), joined={1: 0, 2: 0, 3: 0})
        registry = {broker: election.BrokerInfo(int(broker in started), {"p": logs[broker]}) for broker in (1, 2, 3)}
        relied = election.eligible_members(state, registry, live)
        if len(started) < 3 or len(live) < 3:
            assert set(relied) == live - started
        else:
            assert [logs[broker] for broker in relied] == [max(logs.values())]


def test_nobody_waits_for_a_member_that_is_no_replica() -> None:
    joined = {1: 0, 2: 0}
    registry = {broker: election.BrokerInfo(1, {"p": (0, 5)}) for broker in (1, 2)}
    assigned, removed = (LeaderAndIsr("p", 0, 1, (1, 2), 0, replicas, joined=joined) for replicas in ((1, 2), (2,)))
    assert election.eligible_members(assigned, registry, {2}) == ()
    assert election.eligible_members(removed, registry, {2}) == (2,)


def test_an_assignment_passes_through_a_set() -> None:
    assert election.in_set_order((4, 1, 3, 2)) == (4, 1, 3, 2)
    assert election.in_set_order((3, 4, 5, 1, 2)) == (5, 1, 2, 3, 4)
