"""A quorum under random faults keeps the invariants; each invariant finds a bug that was put in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import CandidateState, FollowerState
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftBatch, RaftLog
from tests.sim.protocol.raft.quorum import RELEASES, SECOND, Member, Quorum, ViolationError

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = ("power", "kill", "write", "start", "cut", "heal", "append", "append", "append", "wait")


def play(quorum: Quorum, plan: list[tuple[str, int, int]]) -> None:
    """Let faults strike, then heal everything; there has to be a leader, and writes have to commit."""
    for what, pick, wait_ms in plan:
        number = list(quorum.members)[pick % len(quorum.members)]
        running = quorum.members[number].client is not None
        if what == "append":
            quorum.append(pick % 3 + 1)
        elif what == "cut":
            quorum.cut ^= {number}
        elif what == "heal":
            quorum.cut.clear()
        elif what == "start" and not running:
            quorum.start(number)
        elif what == "write" and running:
            quorum.members[number].loses_power_in = pick % 4
        elif what in ("power", "kill") and running:
            quorum.stop(number, power=what == "power")
        quorum.run(wait_ms * 1000)
    quorum.cut.clear()
    quorum.drops = quorum.duplicates = 0
    quorum.most_delay_us = 5_000
    for number, member in quorum.members.items():
        member.loses_power_in = None
        if member.client is None:
            quorum.start(number)
    quorum.run(30 * SECOND)
    assert quorum.append(), "no active controller"
    quorum.run(2 * SECOND)  # With 3.9, two fetches may have to expire until a follower learns the high watermark.
    logs = [quorum.client(number).log.batches for number in quorum.members]
    assert all(log == logs[0] for log in logs)
    assert {quorum.client(number).high_watermark for number in quorum.members} == {logs[0][-1].end_offset}


plans = st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 11), st.integers(1, 4000)), max_size=40)


@settings(max_examples=40, deadline=None)
@given(
    release=st.sampled_from(sorted(RELEASES)),
    voters=st.sampled_from([1, 2, 3, 4, 5]),
    observers=st.integers(0, 2),
    seed=st.integers(0, 1 << 30),
    drops=st.sampled_from([0, 0, 5, 30]),
    duplicates=st.sampled_from([0, 10]),
    delay_us=st.sampled_from([2_000, 50_000, 800_000]),
    plan=plans,
)
def test_invariants_hold_under_faults_and_the_quorum_recovers(
    release: str,
    voters: int,
    observers: int,
    seed: int,
    drops: int,
    duplicates: int,
    delay_us: int,
    plan: list[tuple[str, int, int]],
) -> None:
    if voters == 1:  # A sole voter reports records before they are on disk: see below.
        plan = [step for step in plan if step[0] != "write"]
    quorum = Quorum(release, voters, observers, seed, drops, duplicates, delay_us)
    play(quorum, plan)
    assert quorum.ended == []


# Seeded bugs.


def no_epoch_start(leader: LeaderState) -> bool:
    """Commits records of earlier epochs by their number of copies."""
    offset = leader._by_descending_offset()[len(leader._voters) // 2].end_offset
    if offset < 0 or (leader.high_watermark is not None and offset <= leader.high_watermark):
        return False
    leader.high_watermark = offset
    return True


def no_majority(leader: LeaderState) -> bool:
    """Commits what the leader has."""
    leader.high_watermark = max(leader.high_watermark or 0, leader._by_descending_offset()[0].end_offset)
    return True


def forgets_vote(member: Member, election: object) -> None:
    """Stores the epoch and the leader without the vote."""
    member.stored = election._replace(voted=-1)  # type: ignore[attr-defined]


def stores_nothing_first(member: Member, election: object) -> None:
    """Writes quorum-state later."""


def any_log(_: OffsetAndEpoch, __: OffsetAndEpoch) -> bool:
    """Votes for candidates with shorter logs."""
    return True


def never_diverges(_: RaftLog, __: int, ___: int) -> None:
    """A leader that compares no epochs."""


BUGS: dict[str, tuple[object, str, Callable[..., object], set[str]]] = {
    "stores nothing": (Member, "store", stores_nothing_first, {"MonotonicEpoch"}),
    "no epoch start": (LeaderState, "_maybe_update_high_watermark", no_epoch_start, {"MonotonicHighWatermark"}),
    "no majority": (LeaderState, "_maybe_update_high_watermark", no_majority, {"MajorityReachedHighWatermark"}),
    "elects any log": (OffsetAndEpoch, "is_up_to_date", any_log, {"LeaderCompleteness", "ConsistentCommittedData"}),
    "no divergence": (
        RaftLog,
        "diverging",
        never_diverges,
        {"ConsistentCommittedData", "MajorityReachedHighWatermark"},
    ),
}


def random_plan(seed: int) -> tuple[Quorum, list[tuple[str, int, int]]]:
    quorum = Quorum(["3.9", "4.1", "4.3"][seed % 3], 3, 0, seed, seed % 2 * 10, 0, 50_000)
    draw = quorum.random
    plan = [(draw.choice(FAULTS), draw.randrange(12), draw.choice([10, 200, 1500, 3000])) for _ in range(50)]
    return quorum, plan


def found_by(seeds: range, sought: set[str]) -> set[str]:
    found = set()
    for seed in seeds:
        try:
            play(*random_plan(seed))
        except ViolationError as error:
            found.add(str(error).partition(":")[0])
        except AssertionError:
            found.add("no progress")
        if found & sought:
            break
    return found


@pytest.mark.world
def test_the_plans_that_find_the_bugs_find_nothing_without_them() -> None:
    assert found_by(range(40), set()) == set()


@pytest.mark.parametrize("bug", BUGS)
def test_an_invariant_finds_a_seeded_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken, expected = BUGS[bug]
    monkeypatch.setattr(owner, name, broken)
    assert found_by(range(40), expected) & expected


def vote_twice() -> Quorum:
    """Voters 1 and 2 stand in epoch 1. Voter 3 votes for 1, is killed, starts, and gets the request of 2."""
    quorum = Quorum("3.9")
    quorum.now_us = 3 * SECOND
    for candidate in (1, 2):
        quorum._act(candidate, None)
    requests = {message.source: message for _, _, node, message in quorum._queue if message is not None and node == 3}
    for candidate in (1, 2):
        quorum._queue.clear()
        quorum._act(3, requests[candidate])
        (response,) = [message for _, _, node, message in quorum._queue if message is not None]
        quorum._act(candidate, response)
        quorum.stop(3, power=False)
        quorum.start(3)
    return quorum


def test_a_voter_that_restarts_keeps_its_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = vote_twice()
    assert quorum.client(1).is_leader
    assert not quorum.client(2).is_leader
    monkeypatch.setattr(Member, "store", forgets_vote)
    with pytest.raises(ViolationError, match="SingleLeader"):
        vote_twice()


def leader_of_a_quiet_cluster(release: str) -> int:
    """How often the leader of a cluster that nothing strikes changes in two minutes after the first election."""
    quorum = Quorum(release, 3, 1, 7)
    quorum.run(10 * SECOND)
    first = quorum.leader()
    changes = 0
    for _ in range(240):
        quorum.append()
        quorum.run(SECOND // 2)
        changes += quorum.leader() != first
    return changes


@pytest.mark.parametrize("release", RELEASES)
def test_leadership_is_stable_while_nothing_strikes(release: str) -> None:
    assert leader_of_a_quiet_cluster(release) == 0


def test_a_check_of_the_quorum_that_no_fetch_renews_makes_leadership_unstable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderState, "update_check_quorum_for_following_voter", lambda *_: None)
    assert leader_of_a_quiet_cluster("4.3") > 0


def test_records_of_one_voter_are_committed_before_they_are_on_disk() -> None:
    """Power is lost in the fsync: the listener was told, and after a restart the records are gone."""
    quorum = Quorum("4.3", 1)
    quorum.run(SECOND)
    assert quorum.append()
    member = quorum.members[1]
    member.loses_power_in = 0
    quorum.run(SECOND)
    assert member.client is None
    assert [record for batch in member.told for record in batch.records] == ["r0"]
    assert [record for batch in member.log.batches for record in batch.records] == []


def test_records_of_three_voters_are_on_a_majority_of_disks_when_they_commit() -> None:
    quorum = Quorum("4.3", 3)
    quorum.run(5 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    assert quorum.append()
    quorum.members[leader].loses_power_in = 0
    quorum.run(10 * SECOND)
    assert quorum.members[leader].client is None
    assert quorum.leader() not in (None, leader)
    others = [quorum.members[number].told for number in quorum.voters if number != leader]
    assert others[0] == others[1] != []
    quorum.start(leader)
    quorum.run(5 * SECOND)
    assert quorum.members[leader].told == others[0]


def test_a_voter_that_stood_for_election_may_end_after_a_restart() -> None:
    """Kafka 4.3.1's classes do the same: found by `highwater explore --quorum`, and run with RaftClientTestContext.

    The vote for itself outlives the election, so the voter starts as a candidate of an epoch that has a leader, and of
    which it has a record. Its request is invalid. If the voter that answers first knows no leader, the process ends.
    """
    quorum = Quorum("4.3")
    quorum.stop(2)
    member = quorum.members[2]
    member.log.append(RaftBatch(0, 1, 1, (), is_control=True))
    member.log.flush()
    member.stored = ElectionState(1, leader=1, voted=2)
    quorum.members[3].stored = ElectionState(1, voted=1)
    quorum.stop(3)
    quorum._queue.clear()
    for number in (2, 3):
        quorum.start(number)
    assert isinstance(quorum.client(2).quorum.state, CandidateState)
    quorum.cut = {1}
    quorum.run(SECOND)
    assert quorum.ended == ["2: an invalid request was answered so"]


def test_up_to_3_9_it_follows_the_leader_that_it_knew() -> None:
    quorum = Quorum("3.9")
    quorum.stop(2)
    quorum.members[2].stored = ElectionState(1, leader=1)
    quorum.start(2)
    assert isinstance(quorum.client(2).quorum.state, FollowerState)
