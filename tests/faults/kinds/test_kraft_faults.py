from __future__ import annotations

import pytest

from faults.kinds.injection import Injection
from faults.plan import Fault
from sim.history import steps
from sim.hosts.broker import Broker
from sim.hosts.control_plane import ELECTIONS
from sim.hosts.controller_quorum import ControllerQuorum
from tests.sim.checkers.histories import commitments, ends, premises
from tests.sim.world import SECOND_US, World

KINDS = tuple(ELECTIONS)


def kraft(mode: str = "elr", brokers: int = 3, **config: int | bool) -> World:
    """A cluster whose topic is there, with one record everywhere."""
    keys = {key.replace("_", "."): value for key, value in config.items()}
    world = World(mode, brokers=brokers, config=keys)
    world.run(10)
    world.write()
    assert world.cluster.control.state.leader == 1
    return world


def strike(world: World, fault: Fault, seconds: float = 0.5) -> bool:
    injection = Injection(world.cluster)
    injection.strike(fault)
    world.run(seconds)
    return injection.realised[0].effective


def replayed(world: World, broker: int) -> int:
    process = world.cluster.running[broker]
    assert process.partition is not None
    return process.partition.min_insync_replicas


def running(world: World, broker: int) -> Broker:
    return world.cluster.running[broker]


# Metadata lag.


def test_a_broker_that_lags_replays_what_others_have_replayed_later() -> None:
    world = kraft()
    assert strike(world, Fault("metadata-lag", 0, (2,), 20 * SECOND_US, value=5 * SECOND_US))
    world.cluster.administrator.set_config("min.insync.replicas", 2)
    world.run(4)
    assert [replayed(world, broker) for broker in (1, 2, 3)] == [2, 1, 2]
    world.run(2)
    assert [replayed(world, broker) for broker in (1, 2, 3)] == [2, 2, 2]


def test_lags_add_up_and_end() -> None:
    world = kraft()
    injection = Injection(world.cluster)
    for lasts_us in (3 * SECOND_US, 6 * SECOND_US):
        injection.strike(Fault("metadata-lag", 0, (2,), lasts_us, value=2 * SECOND_US))
    world.cluster.administrator.set_config("min.insync.replicas", 2)
    world.run(3)
    assert replayed(world, 2) == 1
    world.run(4)
    assert replayed(world, 2) == 2
    world.cluster.administrator.set_config("min.insync.replicas", 3)
    world.run(0.1)
    assert replayed(world, 2) == 3


def test_a_broker_that_lags_keeps_its_session_and_is_unfenced_late() -> None:
    world = kraft()
    strike(world, Fault("metadata-lag", 0, (2,), value=12 * SECOND_US))
    world.run(60)
    assert not world.of("session-end")
    world.cluster.kill(2)
    world.run(20)
    world.cluster.start(2)
    unfenced = len(world.of("unfenced", broker=2))
    world.run(10)
    assert len(world.of("unfenced", broker=2)) == unfenced
    world.run(10)
    assert len(world.of("unfenced", broker=2)) == unfenced + 1


def test_under_zookeeper_no_metadata_log_lags() -> None:
    world = World().ready()
    assert not strike(world, Fault("metadata-lag", 0, (2,), value=SECOND_US))


# Change of min ISR.


@pytest.mark.parametrize("mode", ["kip320", "elr"])
def test_min_isr_is_another_for_a_while(mode: str) -> None:
    world = World(mode, config={"min.insync.replicas": 2})
    world.run(10)
    assert strike(world, Fault("min-isr-change", 0, (0,), 5 * SECOND_US, value=3))
    assert [replayed(world, broker) for broker in (1, 2, 3)] == [3, 3, 3]
    world.run(6)
    assert [replayed(world, broker) for broker in (1, 2, 3)] == [2, 2, 2]
    assert [size for _, size in commitments(world.cluster.recorder.history).min_isrs] == [2, 3, 2]


def test_a_value_that_is_in_force_is_no_change() -> None:
    world = kraft()
    assert not strike(world, Fault("min-isr-change", 0, (0,), SECOND_US, value=1))
    world.run(5)
    assert replayed(world, 1) == 1


def test_changes_that_overlap_end_in_any_order() -> None:
    world = kraft()
    injection = Injection(world.cluster)
    injection.strike(Fault("min-isr-change", 0, (0,), 2 * SECOND_US, value=2))
    injection.strike(Fault("min-isr-change", 0, (0,), 4 * SECOND_US, value=3))
    world.run(3)
    assert replayed(world, 1) == 3
    world.run(2)
    assert replayed(world, 1) == 1


@pytest.mark.parametrize(("value", "after"), [(1, 2), (3, 3)])
def test_a_value_that_is_set_for_good_is_what_a_change_goes_by(value: int, after: int) -> None:
    world = kraft()
    administrator = world.cluster.administrator
    administrator.set_config("min.insync.replicas", 2)
    assert strike(world, Fault("min-isr-change", 0, (0,), SECOND_US, value=value))
    assert replayed(world, 1) == value
    if after == value:
        administrator.set_config("min.insync.replicas", after)
    world.run(3)
    assert replayed(world, 1) == after


def test_healing_takes_it_back() -> None:
    world = kraft()
    injection = Injection(world.cluster)
    injection.strike(Fault("min-isr-change", 0, (0,), value=3))
    world.run(1)
    injection.heal()
    world.run(1)
    assert replayed(world, 1) == 1


# Elections that an operator asks for.


def leaderless(mode: str) -> World:
    """Broker 1, alone in the ISR, is down for good; the others are back."""
    world = kraft(mode)
    for broker in (2, 3):
        world.cluster.kill(broker)
    world.run(20)
    world.cluster.kill(1)
    world.run(20)
    for broker in (2, 3):
        world.cluster.start(broker)
    world.run(20)
    return world


def election(kind: str, broker: int = 2) -> Fault:
    return Fault("admin-election", 0, (broker,), value=KINDS.index(kind))


@pytest.mark.parametrize(("kind", "leader"), [("unclean", 2), ("designated", 3)])
def test_an_operator_elects_who_is_there_and_that_ends_the_promise(kind: str, leader: int) -> None:
    world = leaderless("kraft")
    assert world.cluster.control.state.leader == 0
    assert not premises(world.cluster.recorder.history).unclean_election
    assert strike(world, election(kind, leader))
    assert world.cluster.control.state.leader == leader
    assert premises(world.cluster.recorder.history).unclean_election


@pytest.mark.parametrize("unclean", [True, False])
def test_a_cancellation_that_gives_up_the_whole_isr_ends_the_promise(unclean: bool) -> None:
    config: dict[str, int | str] = {"default.replication.factor": 2, "unclean.recovery.strategy": "Balanced"}
    config["unclean.leader.election.enable"] = unclean
    world = World("elr-recovery", brokers=4, config=config).ready()
    cluster = world.cluster
    cluster.kill(4)
    assert cluster.control.reassign((3, 4))
    world.run(30)
    cluster.kill(1)
    cluster.kill(2)
    world.run(30)
    record = world.write(1)
    assert not premises(cluster.recorder.history).unclean_election
    assert cluster.control.cancel_reassignment() is unclean
    cluster.start(1)
    cluster.start(2)
    world.run(60)
    assert (record in world.logs[0]) is not unclean
    assert premises(cluster.recorder.history).unclean_election is unclean


def test_leader_that_leads_already_is_left_alone() -> None:
    world = kraft()
    assert not strike(world, election("unclean"))
    assert not strike(world, election("designated", 3))
    assert not premises(world.cluster.recorder.history).unclean_election


def test_an_election_without_losses_keeps_the_promise() -> None:
    world = leaderless("kraft")
    assert not strike(world, election("designated", 1))  # It is down.
    world.cluster.start(1)
    world.run(20)
    assert world.cluster.control.state.leader == 1
    world.cluster.kill(1)
    world.run(20)
    assert not premises(world.cluster.recorder.history).unclean_election


def test_under_zookeeper_nobody_hears_of_it() -> None:
    assert not strike(World().ready(), election("unclean"))


# What elections under KRaft say about the promise.


def test_a_last_known_leader_that_is_elected_ends_no_promise() -> None:
    world = leaderless("elr-4.0-snapshot")  # Whoever returns counts as unclean.
    world.cluster.start(1)
    world.run(20)
    assert world.cluster.control.state.leader
    assert not premises(world.cluster.recorder.history).unclean_election


# Disks.


@pytest.mark.parametrize("mode", ["kip320", "elr"])
def test_the_disk_of_a_stopped_broker_can_be_replaced(mode: str) -> None:
    world = World(mode)
    world.run(10)
    world.write()
    world.cluster.shut_down(3)
    world.run(10)
    end = ends(world.cluster.recorder.history)[-1]
    assert (end.kind, end.unclean, end.lost) == (steps.SHUTDOWN, False, {})
    assert strike(world, Fault("disk-replaced", 0, (3,), SECOND_US))
    end = ends(world.cluster.recorder.history)[-1]
    assert (end.kind, end.unclean, list(end.lost)) == (steps.SHUTDOWN, True, [0])
    world.run(30)
    assert world.of("recovered", broker=3)[-1]["lost"] == [0]


# Feature change, change of unclean election.


@pytest.mark.parametrize(("mode", "level"), [("elr", 1), ("elr", 0), ("kraft", 1)])
def test_the_feature_has_its_other_level_for_a_while(mode: str, level: int) -> None:
    world = kraft(mode, eligible_leader_replicas_version=level)
    control = world.cluster.control
    assert isinstance(control, ControllerQuorum)
    assert strike(world, Fault("feature-change", 0, (0,), 3 * SECOND_US)) == (mode == "elr")
    assert control.server.active.elr_enabled == (mode == "elr" and not level)
    world.run(4)
    assert control.server.active.elr_enabled == (mode == "elr" and bool(level))
    assert premises(world.cluster.recorder.history).elr_was_off == (mode == "elr" or not level)


def test_while_unclean_election_is_on_an_election_may_lose_records() -> None:
    world = kraft()
    control = world.cluster.control
    assert isinstance(control, ControllerQuorum)
    assert strike(world, Fault("unclean-election-change", 0, (0,), 3 * SECOND_US))
    assert control.server.active.unclean_enabled
    assert premises(world.cluster.recorder.history).unclean_election
    world.run(4)
    assert not control.server.active.unclean_enabled


def test_unclean_election_that_is_on_is_no_change() -> None:
    assert not strike(kraft(unclean_leader_election_enable=True), Fault("unclean-election-change", 0, (0,), SECOND_US))


# Unregistration.


def test_an_unregistered_broker_registers_anew_after_an_unclean_shutdown() -> None:
    world = kraft(min_insync_replicas=2)
    world.cluster.shut_down(3)
    world.run(3)
    assert strike(world, Fault("unregistration", 0, (3,)))
    control = world.cluster.control
    assert isinstance(control, ControllerQuorum)
    assert 3 not in control.server.active.image.brokers
    assert all(3 not in running(world, broker).metadata.live for broker in (1, 2))
    assert [end.unclean for end in ends(world.cluster.recorder.history)] == [True]
    assert not strike(world, Fault("unregistration", 0, (3,)))
    world.cluster.start(3)
    world.run(15)
    assert set(control.state.isr) == {1, 2, 3}
    assert all(3 in running(world, broker).metadata.live for broker in (1, 2, 3))


def test_a_broker_that_runs_is_not_unregistered() -> None:
    assert not strike(kraft(), Fault("unregistration", 0, (3,)))


def test_a_killed_leader_that_is_unregistered_leads_no_longer() -> None:
    """Kafka: ReplicationControlManager#handleBrokerUnregistered, which removes the broker as fencing does."""
    world = kraft()
    world.cluster.kill(1)
    assert strike(world, Fault("unregistration", 0, (1,)))
    assert (world.cluster.control.state.leader, world.cluster.control.state.isr) == (2, (2, 3))
    world.cluster.start(1)
    world.run(15)
    assert world.cluster.control.state.leader != 0
    assert set(world.cluster.control.state.isr) == {1, 2, 3}
