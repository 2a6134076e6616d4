"""A quorum under random faults keeps the invariants; each invariant finds a bug that was put in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.epoch_states import CandidateState, FollowerState
from sim.protocol.raft.kafka_raft_client import QuorumConfig
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftBatch, RaftLog, RaftSnapshot
from tests.sim.protocol.raft.quorum import RELEASES, SECOND, Member, Quorum, ViolationError

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = ("power", "kill", "write", "start", "cut", "heal", "append", "append", "append", "wait", "snapshot", "clean")


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
        elif what == "snapshot" and running:
            quorum.members[number].make_snapshot()
        elif what == "clean" and running and quorum.members[number].log.latest_snapshot is not None:
            quorum.members[number].log.delete_before_snapshot(quorum.members[number].log.snapshots[-1].id)
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
    logs = [member.all_batches() for member in quorum.members.values()]
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


def forgets_snapshot(log: RaftLog, id: OffsetAndEpoch) -> bool:  # noqa: A002
    """Lets the log begin at a snapshot, and removes that, too."""
    if log.snapshot(id) is None or not log.start_offset < id.offset <= log.high_watermark:
        return False
    log.start_offset = id.offset
    log.snapshots = [snapshot for snapshot in log.snapshots if snapshot.id.offset > id.offset]
    return True


def of_its_log(member: Member) -> None:
    """Makes a snapshot of all that its log has, committed or not."""
    log = member.all_batches()
    if log and all(snapshot.id.offset < log[-1].end_offset for snapshot in member.log.snapshots):
        member.log.add_snapshot(RaftSnapshot(log[-1], tuple(log), 0))


BUGS: dict[str, tuple[object, str, Callable[..., object], set[str]]] = {
    "stores nothing": (Member, "store", stores_nothing_first, {"MonotonicEpoch"}),
    "no epoch start": (LeaderState, "_maybe_update_high_watermark", no_epoch_start, {"MonotonicHighWatermark"}),
    "no majority": (LeaderState, "_maybe_update_high_watermark", no_majority, {"MajorityReachedHighWatermark"}),
    "elects any log": (OffsetAndEpoch, "is_up_to_date", any_log, {"LeaderCompleteness", "ConsistentCommittedData"}),
    "forgets snapshot": (RaftLog, "delete_before_snapshot", forgets_snapshot, {"SnapshotAtLogStart"}),
    "snapshot of what is not committed": (
        Member,
        "make_snapshot",
        of_its_log,
        {"ConsistentCommittedData", "no progress"},
    ),
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


# Snapshots.


def with_a_snapshot(release: str) -> tuple[Quorum, int, int]:
    """A quorum whose logs begin at a snapshot, but that of a follower which was cut off and lacks records.

    Returns the quorum, the leader and the follower.
    """
    quorum = Quorum(release, 3, 1)
    quorum.run(5 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    late = next(number for number in quorum.voters if number != leader)
    quorum.cut = {late}
    for _ in range(3):
        assert quorum.append(2)
        quorum.run(SECOND // 2)
    for number in quorum.voters:
        if number != late:
            make_the_only_snapshot(quorum.members[number])
    return quorum, leader, late


def make_the_only_snapshot(member: Member) -> None:
    assert member.make_snapshot()
    snapshot = member.log.snapshots[-1]
    member.log.delete_before_snapshot(snapshot.id)
    assert member.log.start_offset == snapshot.id.offset
    assert member.log.snapshots == [snapshot]


@pytest.mark.parametrize("release", RELEASES)
def test_a_follower_that_lacks_what_the_log_lacks_fetches_a_snapshot(release: str) -> None:
    quorum, leader, late = with_a_snapshot(release)
    assert quorum.append()
    quorum.cut.clear()
    quorum.run(10 * SECOND)
    log = quorum.client(late).log
    starts = {quorum.members[number].log.start_offset for number in quorum.voters if number != late}
    assert log.start_offset == log.base_offset
    assert log.start_offset in starts - {0}
    assert quorum.members[late].told == quorum.members[leader].told == quorum.members[101].told
    # What its process finds after a restart begins with the snapshot, too.
    quorum.stop(late)
    quorum.start(late)
    assert quorum.client(late).log.end == log.end
    quorum.run(5 * SECOND)
    assert quorum.members[late].told == quorum.members[leader].told


def test_a_snapshot_that_is_gone_is_asked_for_again() -> None:
    quorum, leader, late = with_a_snapshot("4.3")
    assert quorum.append()
    quorum.run(SECOND)
    quorum.cut.clear()
    while (first := fetched_by(quorum, late)) is None:
        quorum.run(1000)
    make_the_only_snapshot(quorum.members[leader])
    quorum.run(10 * SECOND)
    assert quorum.client(late).log.start_offset > first.offset
    assert quorum.members[late].told == quorum.members[leader].told


def fetched_by(quorum: Quorum, number: int) -> OffsetAndEpoch | None:
    """The snapshot that a member fetches."""
    state = quorum.client(number).quorum.state
    return state.fetching_snapshot if isinstance(state, FollowerState) else None


def test_a_snapshot_outlives_records_that_were_not_flushed() -> None:
    """A single voter commits before its fsync; a snapshot is on disk at once."""
    quorum = Quorum("4.3", 1)
    quorum.run(SECOND)
    assert quorum.append()
    member = quorum.members[1]
    member.lies = True
    quorum.run(SECOND)
    assert member.make_snapshot()
    told = list(member.told)
    quorum.stop(1)
    assert member.log.flushed_offset == member.log.end_offset == told[-1].end_offset
    assert member.all_batches() == told


def test_a_log_without_the_snapshot_that_it_begins_with_cannot_be_opened() -> None:
    quorum, _, late = with_a_snapshot("4.3")
    quorum.cut.clear()
    quorum.run(10 * SECOND)
    log = quorum.client(late).log
    assert not log.misses_snapshot
    assert RaftLog(log.batches, (), log.base_offset).misses_snapshot


def test_old_snapshots_are_removed_once_a_minute() -> None:
    quorum = Quorum("4.3", 1, config=QuorumConfig(snapshot_retention_us=50 * SECOND))
    quorum.run(SECOND)
    member = quorum.members[1]
    for _ in range(3):
        assert quorum.append()
        quorum.run(20 * SECOND)
        assert member.make_snapshot()
    assert len(member.log.snapshots) == 3
    offsets = [snapshot.id.offset for snapshot in member.log.snapshots]
    quorum.run(50 * SECOND)
    assert [snapshot.id.offset for snapshot in member.log.snapshots] == offsets
    assert member.log.start_offset == 0
    quorum.run(20 * SECOND)
    assert [snapshot.id.offset for snapshot in member.log.snapshots] == offsets[2:]
    assert member.log.start_offset == offsets[2]
