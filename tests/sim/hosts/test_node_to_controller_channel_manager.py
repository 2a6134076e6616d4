from __future__ import annotations

from sim.hosts.node_to_controller_channel_manager import NodeToControllerChannelManager
from sim.protocol.kraft.quorum_messages import AssignReplicasToDirsRequest
from tests.sim.world import World


def test_a_request_times_out_unless_it_was_answered() -> None:
    world = World("kraft").ready()
    late: list[int] = []
    channel = NodeToControllerChannelManager(world.cluster.running[1], 1_000_000, lambda: late.append(1))
    answered, lost = (AssignReplicasToDirsRequest(1, 1, "x-0", place) for place in (1, 2))
    channel.send(answered)
    assert channel.is_answered_by(answered)
    assert not channel.is_answered_by(answered)
    channel.send(lost)
    world.run(0.9)
    assert not late
    world.run(0.2)
    assert late == [1]
    assert channel.in_flight is None


def test_an_ended_process_waits_for_nothing() -> None:
    world = World("kraft").ready()
    late: list[int] = []
    channel = NodeToControllerChannelManager(world.cluster.running[1], 1_000_000, lambda: late.append(1))
    channel.send(AssignReplicasToDirsRequest(1, 1, "x-0", 1))
    channel.end()
    world.run(2)
    assert not late
