"""Controllers whose voters can change (kraft.version 1, KIP-853)."""

from __future__ import annotations

import pytest

from sim.hosts.raft_quorum import RaftQuorum
from sim.protocol.raft.raft_messages import DUPLICATE_VOTER, REQUEST_TIMED_OUT, VOTER_NOT_FOUND
from sim.protocol.raft.voter_set import ReplicaKey, VoterNode
from tests.sim.world import World

MODES = ("kraft", "elr", "elr-4.3")


def made(mode: str = "elr-4.3", controllers: int = 3, *, dynamic: bool = True) -> World:
    world = World(mode, controllers=controllers, dynamic_voters=dynamic)
    world.run(8)
    return world


def quorum(world: World) -> RaftQuorum:
    found = world.cluster.quorum
    assert found is not None
    return found


def voters(world: World) -> list[tuple[int, int]]:
    """Ids and directory ids of the voters that are committed."""
    known = quorum(world).ledger.voters
    assert known is not None
    return [(node.key.id, node.key.directory) for node in known.nodes]


@pytest.mark.parametrize("mode", MODES)
def test_formatting_writes_the_first_voters_and_the_first_leader_appends_them(mode: str) -> None:
    world = made(mode)
    assert voters(world) == [(100, 1), (101, 1), (102, 1)]
    leader = quorum(world).controllers.leader
    assert leader is not None
    assert leader.member.client.partition.kraft_version == 1
    for broker in world.cluster.running.values():
        assert broker.member.client.quorum.voters == (100, 101, 102)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", MODES)
def test_a_controller_is_removed_and_added_again(mode: str) -> None:
    world = made(mode)
    leader = world.cluster.controller
    other = next(node for node in (100, 101, 102) if node != leader)
    assert quorum(world).change_voters(other, adds=False)
    world.run(2)
    assert len(voters(world)) == 2
    observer = quorum(world).controllers.running[other].member.client
    assert not observer.quorum.is_voter
    assert not quorum(world).change_voters(other, adds=False)
    assert quorum(world).change_voters(other, adds=True)
    world.run(2)
    assert voters(world) == [(100, 1), (101, 1), (102, 1)]
    assert world.cluster.controller == leader
    assert observer.quorum.is_voter


@pytest.mark.parametrize("mode", MODES)
def test_a_leader_that_is_removed_commits_that_and_resigns(mode: str) -> None:
    world = made(mode)
    leader = world.cluster.controller
    assert quorum(world).change_voters(leader, adds=False)
    world.run(6)
    assert [voter for voter, _ in voters(world)] == [node for node in (100, 101, 102) if node != leader]
    assert world.cluster.controller not in (0, leader)
    assert not quorum(world).controllers.running[leader].member.client.quorum.is_voter
    world.write()
    assert world.logs == [[0]] * 3


@pytest.mark.parametrize("mode", MODES)
def test_a_controller_with_an_empty_disk_is_no_voter(mode: str) -> None:
    """Under kraft.version 0 it would elect a leader together with the third one."""
    world = made(mode)
    leader = world.cluster.controller
    others = [node for node in (100, 101, 102) if node != leader]
    controllers = quorum(world).controllers
    assert controllers.replace_disk(others[0])
    assert controllers.start(others[0])
    assert controllers.kill(leader)
    world.run(20)
    assert controllers.leader is None
    assert controllers.start(leader)
    world.run(10)
    assert controllers.leader is not None
    assert quorum(world).change_voters(others[0], adds=False)
    world.run(4)
    assert quorum(world).change_voters(others[0], adds=True)
    world.run(4)
    assert (others[0], 2) in voters(world)
    assert not world.of("metadata-lost")


def test_a_leader_changes_one_voter_at_a_time() -> None:
    world = made()
    leader = quorum(world).controllers.leader
    assert leader is not None
    leader.end_idle()
    client, now_us = leader.member.client, world.cluster.kernel.now_us
    others = [node for node in (100, 101, 102) if node != leader.node]
    answers: list[str] = []
    client.add_voter(VoterNode(ReplicaKey(others[0], 1)), answers.append, now_us)
    client.remove_voter(ReplicaKey(others[0], 2), answers.append, now_us)
    assert answers == [DUPLICATE_VOTER, VOTER_NOT_FOUND]
    client.remove_voter(ReplicaKey(others[0], 1), answers.append, now_us)
    client.remove_voter(ReplicaKey(others[1], 1), answers.append, now_us)
    assert answers[2:] == [REQUEST_TIMED_OUT]
    leader.member.drive()
    world.run(2)
    assert answers[3:] == ["none"]


def test_the_voters_of_a_configuration_do_not_change() -> None:
    world = made(dynamic=False)
    assert not quorum(world).change_voters(101, adds=False)
    assert not quorum(world).change_voters(101, adds=True)
    assert quorum(world).ledger.voters is None
