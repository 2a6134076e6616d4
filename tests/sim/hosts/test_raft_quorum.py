"""A quorum whose controllers are processes, with brokers that observe it: elections, commits, failover, lost disks."""

from __future__ import annotations

import pytest

from faults.kinds.machines import lose_power, replace_disk
from sim.hosts.control_plane import FIRST_CONTROLLER
from sim.hosts.interceptions import MESSAGES
from sim.hosts.raft_broker import RaftBroker
from sim.hosts.raft_quorum import RaftQuorum
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.raft.epoch_states import FollowerState, ResignedState
from tests.sim.world import World

MODES = ("kraft", "elr", "elr-4.3")
FETCH_TIMEOUT_S = 2


def made(mode: str = "elr-4.3", controllers: int = 3) -> World:
    """Three brokers that have run for some seconds."""
    config = {"min.insync.replicas": 2, "auto.leader.rebalance.enable": False}
    return World(mode, controllers=controllers, config=config).ready().run(5)


def quorum(world: World) -> RaftQuorum:
    world.cluster.network.end_idle()
    found = world.cluster.quorum
    assert found is not None
    return found


def broker(world: World, number: int) -> RaftBroker:
    found = world.cluster.running[number]
    assert isinstance(found, RaftBroker)
    return found


def others(world: World) -> list[int]:
    """The controllers that are not active."""
    return [node for node in world.cluster.controllers if node != world.cluster.controller]


def isolate(world: World, node: int) -> None:
    """Cut a controller off from the others."""
    world.cluster.links.cut(node, 0)
    world.cluster.links.cut(0, node)


@pytest.mark.parametrize("controllers", [1, 3, 5])
@pytest.mark.parametrize("mode", MODES)
def test_brokers_register_with_the_leader_and_follow_its_log(mode: str, controllers: int) -> None:
    world = made(mode, controllers)
    active = quorum(world).active
    assert active is not None
    assert len(world.cluster.controllers) == controllers
    assert world.cluster.control.state.isr == (1, 2, 3)
    for number in (1, 2, 3):
        member = broker(world, number).member
        assert isinstance(member.client.quorum.state, FollowerState)
        assert member.leader == active.node
        assert broker(world, number).metadata_offset >= quorum(world).ledger.changed_at
    world.write()
    assert world.logs == [[0]] * 3


@pytest.mark.parametrize(("mode", "least_us", "most_us"), [("kraft", 20_000, 600_000), ("elr", 0, 10_000)])
def test_before_4_1_brokers_learn_the_high_watermark_with_the_next_records(
    mode: str, least_us: int, most_us: int
) -> None:
    """KIP-1166: since 4.1 an advance of the high watermark answers fetches that wait."""
    world = made(mode)
    ledger, kernel = quorum(world).ledger, world.cluster.kernel
    before = ledger.changed_at
    assert world.cluster.control.reassign((2, 1, 3))
    while ledger.changed_at == before:
        world.run(0.0001)
    committed_us = kernel.now_us
    while broker(world, 1).metadata_offset < ledger.changed_at:
        world.run(0.0001)
    assert least_us <= kernel.now_us - committed_us <= most_us


def test_a_killed_leader_is_replaced_after_the_fetch_timeout() -> None:
    world = made()
    before = world.cluster.controller
    killed_us = world.cluster.kernel.now_us
    assert world.cluster.kill(before)
    assert not world.cluster.kill(before)
    world.run(8)
    after = world.of("controller")[-1]
    assert FETCH_TIMEOUT_S * 1_000_000 - 500_000 < after["t"] - killed_us < 6_000_000
    assert world.cluster.controller != before
    assert world.cluster.start(before)
    world.run(5)
    member = quorum(world).controllers.running[before].member
    assert member.leader == world.cluster.controller
    world.write()
    assert world.logs == [[0]] * 3


def test_a_paused_leader_still_believes_that_it_is_active_and_learns_otherwise() -> None:
    world = made()
    before = world.cluster.controller
    assert world.cluster.pause(before)
    world.run(8)
    after = world.cluster.controller
    assert after != before
    paused = quorum(world).controllers.running[before]
    assert paused.active is not None  # Two active controllers, in two epochs.
    assert world.cluster.resume(before)
    world.run(2)
    assert paused.active is None
    assert paused.member.leader == after


def test_an_isolated_leader_commits_nothing_and_resigns() -> None:
    world = made()
    before = world.cluster.controller
    old = quorum(world).controllers.running[before]
    end = old.controller.stable_offset
    isolate(world, before)
    world.run(2)
    assert old.active is not None
    assert old.member.client.log.end_offset > end
    world.run(2)
    assert isinstance(old.member.client.quorum.state, ResignedState)
    world.run(4)
    assert old.controller.stable_offset == end
    assert old.active is None
    assert world.cluster.controller not in (0, before)
    world.cluster.links.heal_all()
    world.run(5)
    assert old.member.leader == world.cluster.controller
    assert not world.of("metadata-lost")


def test_a_power_loss_of_all_controllers_loses_nothing_that_was_committed() -> None:
    world = made()
    world.cluster.kill(3)
    world.run(12)
    assert world.cluster.control.state.isr == (1, 2)
    for node in world.cluster.controllers:
        assert lose_power(world.cluster, node)
    world.run(1)
    assert world.cluster.controller == 0
    assert not world.cluster.control.fail_over()
    for node in world.cluster.controllers:
        assert world.cluster.start(node)
    world.run(8)
    assert world.cluster.controller >= FIRST_CONTROLLER
    assert world.cluster.control.state.isr == (1, 2)
    assert not world.of("metadata-lost")


def test_a_voter_that_comes_back_empty_elects_a_leader_without_committed_metadata() -> None:
    """A static quorum matches voters by their ids alone."""
    world = made()
    empty, behind = others(world)
    isolate(world, behind)
    world.cluster.kill(2)
    world.run(13)
    assert set(world.cluster.control.state.isr) == {1, 3}
    old = world.cluster.controller
    assert replace_disk(world.cluster, empty)
    lose_power(world.cluster, old)
    world.cluster.links.heal_all()
    world.cluster.start(empty)
    world.run(8)
    assert world.cluster.controller == behind
    assert world.of("metadata-lost")
    assert set(world.cluster.control.state.isr) == {1, 2, 3}  # As if broker 2 had never been fenced.
    ends = [step for step in world.of("controller-end") if step["node"] == empty]
    assert [step["cause"] for step in ends] == ["disk-replaced"]


@pytest.mark.parametrize("controllers", [1, 3])
def test_only_a_single_controller_commits_before_its_fsync(controllers: int) -> None:
    world = made(controllers=controllers)
    before = quorum(world).ledger.changed_at
    assert world.cluster.control.reassign((1, 2))
    while quorum(world).ledger.changed_at == before:
        world.run(0.0001)
    node = world.cluster.controller
    lose_power(world.cluster, node)
    world.run(1)
    world.cluster.start(node)
    world.run(10)
    assert bool(world.of("metadata-lost")) is (controllers == 1)


def test_sessions_begin_anew_with_each_failover_so_a_dead_broker_may_lead_on() -> None:
    world = made()
    leader = world.cluster.control.state.leader
    world.cluster.kill(leader)
    for _ in range(4):
        world.run(5)
        assert world.cluster.control.fail_over()
    assert world.cluster.control.state.leader == leader
    world.run(12)
    assert world.cluster.control.state.leader != leader


@pytest.mark.parametrize("controllers", [0, 3])
@pytest.mark.parametrize(("value", "leads_on"), [("at-heartbeat", True), ("unfenced", False)])
def test_a_broker_that_died_before_a_failover_leads_on_if_only_heartbeats_begin_sessions(
    value: str, leads_on: bool, controllers: int
) -> None:
    """KAFKA-18138."""
    config = {"min.insync.replicas": 2, "auto.leader.rebalance.enable": False}
    rules = {"activation_sessions": value}
    world = World("elr-4.3", controllers=controllers, rules=rules, config=config).ready().run(5)
    leader = world.cluster.control.state.leader
    world.cluster.kill(leader)
    assert world.cluster.control.fail_over()
    world.run(40)
    assert (world.cluster.control.state.leader == leader) is leads_on


def test_a_broker_sends_again_what_another_controller_refuses() -> None:
    """Brokers reach the old leader, which answers NOT_CONTROLLER once it knows."""
    world = made()
    isolate(world, world.cluster.controller)
    world.run(20)
    assert not world.of("session-end")
    assert all(quorum(world).ledger.image.is_active(number) for number in (1, 2, 3))


def test_metadata_reaches_a_broker_late() -> None:
    world = made()
    assert world.cluster.control.delay_metadata(2, 3_000_000)
    assert world.cluster.control.reassign((2, 1))
    world.run(1)
    state = world.cluster.control.state
    assert isinstance(state, PartitionRegistration)
    assert broker(world, 1).metadata_offset >= quorum(world).ledger.changed_at > broker(world, 2).metadata_offset
    assert world.cluster.control.delay_metadata(2, -3_000_000)
    world.run(5)
    assert broker(world, 2).metadata_offset >= quorum(world).ledger.changed_at


def test_a_broker_that_restarts_reads_its_own_copy_of_the_log() -> None:
    world = made()
    world.cluster.kill(2)
    world.run(1)
    world.cluster.start(2)
    assert broker(world, 2).member.client.log.end_offset > 0
    lose_power(world.cluster, 2)
    world.cluster.start(2)
    assert broker(world, 2).member.client.log.end_offset == 0
    world.run(25)
    assert world.cluster.control.state.isr == (1, 2, 3)


def test_the_whole_control_plane_can_be_cut_off_paused_and_slowed() -> None:
    world = made()
    cluster = world.cluster
    cluster.links.cut(1, 0)
    assert all(cluster.network.is_cut(1, node) for node in cluster.controllers)
    cluster.links.heal_all()
    assert cluster.pause(0)
    assert all(process.frozen for process in quorum(world).controllers.running.values())
    world.run(3)
    assert cluster.resume(0)
    world.run(6)
    assert cluster.controller >= FIRST_CONTROLLER


def test_a_controller_whose_raft_thread_fails_is_started_again() -> None:
    world = made()
    node = others(world)[0]
    quorum(world).controllers.running[node].member._crash("two leaders")
    world.run(1)
    assert node not in quorum(world).controllers.running
    assert world.of("controller-end")[-1]["cause"] == "two leaders"
    world.run(10)
    assert node in quorum(world).controllers.running


@pytest.mark.parametrize("mode", MODES)
def test_equal_seeds_have_equal_histories(mode: str) -> None:
    def digest() -> str:
        world = made(mode)
        world.cluster.kill(world.cluster.controller)
        world.run(10)
        return world.cluster.recorder.digest()

    assert digest() == digest()


def test_messages_of_raft_can_be_lost() -> None:
    """Without the answers of the others, no controller becomes leader."""
    world = made()
    cluster = world.cluster
    for node in others(world):
        cluster.links.hold("VoteRequest", MESSAGES["VoteRequest"].links(node, cluster.settings, ()), node)
    cluster.kill(cluster.controller)
    world.run(10)
    assert cluster.controller == 0
    for node in cluster.controllers:
        cluster.links.release(node)
    world.run(10)
    assert cluster.controller >= FIRST_CONTROLLER


def test_an_answered_request_is_forgotten_in_every_build() -> None:
    """In plain Python, frequent messages are dispatched without `receive`."""
    world = made()
    assert {broker(world, number).requests._pending[0] for number in (1, 2, 3)} == {None}


def test_a_setting_without_an_answer_may_be_in_force_or_not() -> None:
    world = made()
    control = world.cluster.control
    control.set_config("min.insync.replicas", 1)
    assert control.acknowledged == {}
    world.run(1)
    assert control.acknowledged == {"min.insync.replicas": 1}
    control.set_config("min.insync.replicas", 2)
    assert control.fail_over()
    world.run(8)
    assert control.acknowledged == {}
