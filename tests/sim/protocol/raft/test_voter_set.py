"""Sets of voters, as Kafka's VoterSetTest has them."""

from __future__ import annotations

from sim.protocol.raft.kraft_control_record_state_machine import KRaftControlRecordStateMachine
from sim.protocol.raft.raft_log import RaftLog, VotersBatch, bootstrap_snapshot
from sim.protocol.raft.voter_set import ReplicaKey, VoterNode, VoterSet, static_voters


def made(*keys: tuple[int, int]) -> VoterSet:
    return VoterSet([VoterNode(ReplicaKey(*key)) for key in keys])


THREE = made((1, 11), (2, 12), (3, 13))


def test_a_voter_is_known_by_id_and_directory() -> None:
    assert THREE.is_voter(ReplicaKey(1, 11))
    assert not THREE.is_voter(ReplicaKey(1, 12))
    assert not THREE.is_voter(ReplicaKey(1))
    assert not THREE.is_voter(ReplicaKey(4, 11))
    assert static_voters((1, 2)).is_voter(ReplicaKey(1, 11))
    assert made((1, 11)).is_only_voter(ReplicaKey(1, 11))
    assert not THREE.is_only_voter(ReplicaKey(1, 11))


def test_a_voter_is_added_once() -> None:
    added = THREE.add_voter(VoterNode(ReplicaKey(4, 14)))
    assert added is not None
    assert added.ids == (1, 2, 3, 4)
    assert THREE.add_voter(VoterNode(ReplicaKey(1, 15))) is None


def test_the_last_voter_is_not_removed() -> None:
    removed = THREE.remove_voter(ReplicaKey(1, 11))
    assert removed is not None
    assert removed.ids == (2, 3)
    assert THREE.remove_voter(ReplicaKey(1, 12)) is None
    assert THREE.remove_voter(ReplicaKey(4, 11)) is None
    assert made((1, 11)).remove_voter(ReplicaKey(1, 11)) is None


def test_a_voter_is_updated() -> None:
    updated = VoterNode(ReplicaKey(2, 12), listeners=1)
    assert THREE.needs_update(updated)
    found = THREE.update_voter(updated)
    assert found is not None
    assert found.node(2) == updated
    assert not found.needs_update(updated)
    assert THREE.update_voter(VoterNode(ReplicaKey(2, 13))) is None


def test_sets_that_differ_in_one_voter_have_overlapping_majorities() -> None:
    assert THREE.has_overlapping_majority(THREE)
    assert THREE.has_overlapping_majority(made((1, 11), (2, 12)))
    assert THREE.has_overlapping_majority(made((1, 11), (2, 12), (3, 13), (4, 14)))
    assert not THREE.has_overlapping_majority(made((1, 11)))
    assert THREE.has_overlapping_majority(made((1, 15), (2, 12), (3, 13)))
    assert not THREE.has_overlapping_majority(made((1, 15), (2, 16), (3, 13)))


def test_voters_count_from_their_append_until_they_are_truncated() -> None:
    log = RaftLog()
    log.add_snapshot(bootstrap_snapshot(THREE))
    partition = KRaftControlRecordStateMachine(static_voters(()), log)
    assert (partition.voters, partition.voters_offset, partition.kraft_version) == (THREE, -1, 1)
    fewer = VotersBatch(0, 1, 1, made((1, 11), (2, 12)), 0)
    log.append(fewer)
    partition.appended(fewer)
    assert (partition.voters, partition.voters_offset) == (fewer.voters, 0)
    log.truncate_to(0)
    partition.truncate_new_entries(1, 0)
    assert (partition.voters, partition.voters_offset) == (THREE, -1)


def test_voters_that_take_the_place_of_truncated_ones_are_not_read_until_a_restart() -> None:
    """KRaftControlRecordStateMachine#truncateNewEntries leaves the offset up to which it has read the log."""
    log = RaftLog()
    log.add_snapshot(bootstrap_snapshot(THREE))
    partition = KRaftControlRecordStateMachine(static_voters(()), log)
    first, second = (VotersBatch(0, epoch, 1, made((1, 11), (epoch, epoch + 10)), 0) for epoch in (2, 3))
    log.append(first)
    partition.appended(first)
    log.truncate_to(0)
    partition.truncate_new_entries(1, 0)
    log.append(second)
    partition.appended(second)
    assert partition.voters is THREE
    assert KRaftControlRecordStateMachine(static_voters(()), log).voters is second.voters
