"""The quorum and its brokers together: registration, sessions, replay, ISR changes, failover."""

from __future__ import annotations

import pytest

from sim.config import Value
from sim.history.steps import REPLAYED_METADATA, Listener, Metadata
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.kraft_broker import KRaftBroker
from sim.protocol.kraft.metadata import BrokerRegistration, PartitionRegistration
from tests.sim.world import World


def kraft(mode: str = "kraft", **more: int) -> World:
    """Three brokers, min.insync.replicas 2, no rebalancing."""
    config = {"min.insync.replicas": 2, "auto.leader.rebalance.enable": False, "replica.lag.time.max.ms": 10_000}
    return World(mode, config={**config, **{key.replace("_", "."): value for key, value in more.items()}}).ready()


def quorum(world: World) -> ControllerQuorum:
    assert isinstance(world.cluster.control, ControllerQuorum)
    return world.cluster.control


def process(world: World, broker: int) -> KRaftBroker:
    one = world.cluster.running[broker]
    assert isinstance(one, KRaftBroker)
    return one


def state(world: World) -> PartitionRegistration:
    found = world.cluster.control.state
    assert isinstance(found, PartitionRegistration)
    return found


def changes(world: World, broker: int) -> list[BrokerRegistration]:
    return [
        record
        for record in quorum(world).server.log.records
        if isinstance(record, BrokerRegistration) and record.broker == broker
    ]


def test_a_broker_is_fenced_until_it_has_logs_and_its_registration() -> None:
    world = World("kraft")
    world.run(0.1)  # Logs are loaded after 0.2 s.
    assert [registration.fenced for registration in changes(world, 1)] == [True]
    assert not world.of("recovered")
    world.run(0.3)
    assert [registration.fenced for registration in changes(world, 1)] == [True, False]
    assert [step["broker"] for step in world.of("unfenced")] == [1, 2, 3]
    assert (state(world).leader, state(world).isr) == (1, (1, 2, 3))
    assert all(process(world, broker).image.offset == len(quorum(world).server.log.records) for broker in (1, 2, 3))


def test_a_session_ends_9_s_after_the_last_heartbeat_elided_or_not() -> None:
    world = kraft()
    world.run(20)
    assert 1 in quorum(world).server.sessions.suspended  # Heartbeats are left out by now.
    world.cluster.kill(1)
    killed_us = world.cluster.kernel.now_us
    world.run(12)
    (fenced,) = world.of("session-end", broker=1)
    assert 7_000_000 < fenced["t"] - killed_us <= 9_000_000
    assert (state(world).leader, state(world).isr, state(world).leader_epoch) == (2, (2, 3), 1)


def test_a_quick_restart_waits_for_the_former_session() -> None:
    world = kraft()
    world.run(20)
    world.cluster.kill(2)
    world.cluster.start(2)
    world.run(5)
    assert len(changes(world, 2)) == 2  # The first registration, unfenced.
    world.run(15)
    assert [registration.fenced for registration in changes(world, 2)] == [True, False, True, True, False]
    assert changes(world, 2)[-1].incarnation == 2
    assert state(world).isr == (1, 2, 3)
    assert state(world).leader_epoch == 0  # A smaller ISR raises no leader epoch from 3.6 on.


@pytest.mark.parametrize(("value", "runs_on"), [("runs-on", True), ("deleted", False)])
def test_a_leader_that_is_reassigned_away_leads_on_unless_it_is_deleted(value: str, runs_on: bool) -> None:
    """KAFKA-13198."""
    config = {"min.insync.replicas": 1, "auto.leader.rebalance.enable": False}
    world = World("kraft", config=config, rules={"reassigned_replica": value}).ready()
    record = world.write()
    assert quorum(world).reassign((2, 3))
    world.run(10)
    assert (state(world).leader, state(world).replicas) == (2, (2, 3))
    partition = process(world, 1).replicas[world.cluster.name].partition
    assert partition.is_leader is runs_on
    assert world.logs == [[record] if runs_on else [], [record], [record]]


def test_a_controlled_shutdown_hands_over_and_closes_the_log_cleanly() -> None:
    world = kraft("elr")
    world.run(20)
    epoch = process(world, 1).broker_epoch
    world.cluster.shut_down(1)
    world.run(5)
    assert 1 not in world.cluster.running
    assert (state(world).leader, state(world).isr, state(world).elr) == (2, (2, 3), ())
    directory = world.cluster.machines.directories[1]
    assert (directory.clean_shutdown, directory.clean_broker_epoch) == (True, epoch)
    world.cluster.shut_down(2)
    world.run(5)
    assert (state(world).isr, state(world).elr) == ((3,), (2,))
    world.cluster.start(2)
    world.run(1)
    assert state(world).isr == (3,)  # The session of who has stopped is open yet.
    world.run(12)
    assert state(world).isr == (2, 3)
    assert directory.clean_broker_epoch == epoch


@pytest.mark.parametrize(("kill", "elr"), [(True, ()), (False, (2,))])
def test_only_who_went_cleanly_stays_eligible(kill: bool, elr: tuple[int, ...]) -> None:
    world = kraft("elr")
    world.run(20)
    stop = world.cluster.kill if kill else world.cluster.shut_down
    world.cluster.kill(1)
    world.run(12)
    stop(2)
    world.run(12)
    assert (state(world).isr, state(world).elr) == ((3,), (2,))
    world.cluster.links.cut(2, 3)  # It cannot catch up.
    world.cluster.start(2)
    world.run(1)
    assert state(world).elr == elr


def test_records_that_were_lost_are_sent_again_and_applied_at_once() -> None:
    world = kraft()
    world.run(20)
    world.cluster.links.cut(0, 3)
    assert world.cluster.control.elect_preferred() is False  # It leads already.
    for broker in (1, 2):
        quorum(world).expire_session(broker)
        world.run(3)
    assert not world.of("follow", broker=3)[1:]
    world.cluster.links.heal_all()
    world.run(3)
    assert process(world, 3).image.offset == len(quorum(world).server.log.records)
    follows = world.of("follow", broker=3)[1:]
    assert [step["leader_epoch"] for step in follows] == [state(world).leader_epoch]
    assert state(world).leader_epoch > 1


def test_a_broker_whose_requests_do_not_arrive_reads_nothing() -> None:
    world = kraft()
    world.run(20)
    world.cluster.links.cut(3, 0)
    before = process(world, 3).image.offset
    quorum(world).expire_session(2)
    world.run(5)
    assert process(world, 3).image.offset == before
    assert process(world, 1).image.offset > before


class Replays(Listener):
    """The numbers of records that each broker has replayed together so far, oldest first."""

    def __init__(self, world: World) -> None:
        self.counts: dict[int, list[int]] = {broker: [] for broker in world.cluster.running}
        world.cluster.recorder.attach([self])

    def on_metadata(self, step: Metadata) -> None:
        if step.kind is REPLAYED_METADATA:
            self.counts[step.broker].append(step.records)


def commit(world: World, *values: int) -> None:
    """Commit a record for each value, 10 ms apart."""
    for value in values:
        quorum(world).server.active.set("flush.ms", value)
        world.run(0.01)


@pytest.mark.parametrize("first_ms", [0, 300, 1_000])
@pytest.mark.parametrize("paused_ms", [1_100, 1_900, 5_000])
def test_a_broker_that_resumes_replays_together_what_was_committed_meanwhile(first_ms: int, paused_ms: int) -> None:
    world = kraft().run(20)
    replays = Replays(world)
    world.cluster.pause(2)
    world.run(first_ms / 1_000)
    commit(world, 1, 2, 3)
    end = len(quorum(world).server.log.records)
    world.run((paused_ms - first_ms) / 1_000)
    assert replays.counts == {1: [1, 1, 1], 2: [], 3: [1, 1, 1]}
    world.cluster.resume(2)
    world.run(0.0005)
    assert replays.counts[2] == []  # The fetch takes a round trip.
    world.run(0.1)
    assert replays.counts[2] == [3]
    assert process(world, 2).image.offset == end
    commit(world, 4, 5)
    assert replays.counts[2] == [3, 1, 1]


@pytest.mark.parametrize(("paused_ms", "together"), [(100, [1, 2]), (1_999, [1, 2]), (2_000, [3])])
def test_a_response_in_flight_when_a_pause_begins_is_read_first_unless_its_request_has_timed_out(
    paused_ms: int, together: list[int]
) -> None:
    world = kraft().run(20)
    replays = Replays(world)
    quorum(world).server.active.set("flush.ms", 1)
    world.cluster.pause(2)
    world.run(0.01)
    commit(world, 2, 3)
    world.run((paused_ms - 30) / 1_000)
    world.cluster.resume(2)
    world.run(0.1)
    assert replays.counts[2] == together


def test_of_two_responses_in_flight_when_a_pause_begins_a_broker_reads_one() -> None:
    world = kraft().run(20)
    replays = Replays(world)
    for value in (1, 2):
        quorum(world).server.active.set("flush.ms", value)
    world.cluster.pause(2)
    world.run(1)
    commit(world, 3)
    world.cluster.resume(2)
    world.run(0.1)
    assert replays.counts[2] == [1, 2]


def test_a_broker_fetches_when_the_last_of_its_pauses_ends() -> None:
    world = kraft().run(20)
    replays = Replays(world)
    world.cluster.pause(2, "first")
    commit(world, 1)
    world.cluster.pause(2, "second")
    world.cluster.resume(2, "first")
    world.run(3)
    assert replays.counts[2] == []
    commit(world, 2)
    world.cluster.resume(2, "second")
    world.run(0.1)
    assert replays.counts[2] == [2]


def test_a_pause_that_begins_before_the_response_arrives_adds_to_the_one_before() -> None:
    world = kraft().run(20)
    replays = Replays(world)
    world.cluster.pause(2)
    commit(world, 1, 2)
    world.cluster.resume(2)
    world.run(0.0001)  # The fetch has not arrived.
    world.cluster.pause(2)
    commit(world, 3)
    world.run(1)
    world.cluster.resume(2)
    world.run(0.1)
    assert replays.counts[2] == [3]


def test_a_broker_that_resumes_without_reaching_the_controller_fetches_later() -> None:
    world = kraft().run(20)
    replays = Replays(world)
    world.cluster.pause(2)
    commit(world, 1, 2)
    world.cluster.links.cut(2, 0)
    world.run(1)
    world.cluster.resume(2)
    world.run(1)
    world.cluster.links.heal(2, 0)
    assert replays.counts[2] == []
    world.run(2)
    assert replays.counts[2] == [2]


def test_a_broker_with_late_metadata_that_resumes_gets_what_is_due() -> None:
    world = kraft().run(20)
    replays = Replays(world)
    quorum(world).delay_metadata(2, 3_000_000)
    world.cluster.pause(2)
    commit(world, 1, 2)
    world.run(2.5)
    commit(world, 3)
    world.run(1)
    world.cluster.resume(2)
    world.run(0.1)
    assert replays.counts[2] == [2]
    world.run(3)
    assert replays.counts[2] == [2, 1]


def test_the_successor_of_a_paused_process_reads_the_whole_log() -> None:
    world = kraft().run(20)
    world.cluster.pause(2)
    commit(world, 1)
    world.cluster.kill(2)
    world.run(12)
    world.cluster.start(2)
    world.run(3)
    assert process(world, 2).image.offset == len(quorum(world).server.log.records)
    assert not process(world, 2).lifecycle.fenced


def test_another_controller_has_the_log_and_begins_all_sessions_anew() -> None:
    world = kraft()
    world.run(20)
    world.cluster.kill(2)
    world.run(5)
    assert world.cluster.control.fail_over()
    assert not world.cluster.control.fail_over()  # Nobody is active just now.
    world.run(8)
    assert quorum(world).server.epoch == 2
    assert not world.of("session-end", broker=2)  # Nine seconds after its predecessor's.
    world.run(4)
    assert state(world).isr == (1, 3)
    assert quorum(world).server.active.image.offset == len(quorum(world).server.log.records)


def test_a_controller_that_stands_still_commits_nothing_and_is_replaced() -> None:
    world = kraft()
    world.run(20)
    assert world.cluster.control.pause_controller(0, world.cluster.pause)
    length = len(quorum(world).server.log.records)
    assert not quorum(world).expire_session(2)
    assert not quorum(world).elect_preferred()
    world.cluster.administrator.set_config("min.insync.replicas", 1)  # Waits until somebody answers.
    world.run(2)
    assert len(quorum(world).server.log.records) == length
    world.run(2)
    assert quorum(world).server.epoch == 2
    assert len(quorum(world).server.log.records) == length + 1
    assert process(world, 1).settings.min_insync_replicas == 1


def test_an_isr_change_that_got_lost_is_asked_for_again() -> None:
    world = kraft(controller_socket_timeout_ms=5_000, broker_session_timeout_ms=30_000)
    world.run(20)
    world.cluster.links.cut(1, 3)
    world.write(seconds=0.1)
    world.run(9)
    world.cluster.links.cut(1, 0)
    world.run(6)  # The leader has found the laggard, and nobody heard it.
    assert state(world).isr == (1, 2, 3)
    world.cluster.links.heal(1, 0)
    world.run(5)
    assert state(world).isr == (1, 2)


def test_a_fenced_broker_does_not_join_the_isr() -> None:
    world = kraft()
    world.run(20)
    world.cluster.zombie(3)  # Its heartbeats do not arrive; it fetches on.
    world.run(5)
    assert state(world).isr == (1, 2)
    world.write()
    assert world.logs[2] == world.logs[0]
    world.cluster.unzombie(3)
    world.run(5)  # The heartbeat that did not arrive is given up after 4.5 s, and another one sent 0.1 s later.
    assert state(world).isr == (1, 2, 3)


def test_a_reassignment_moves_the_replica_and_its_log_is_deleted() -> None:
    world = World("kraft", brokers=4, config={"default.replication.factor": 3}).ready()
    world.write()
    assert world.cluster.control.reassign((4, 2, 3))
    world.run(3)
    assert (state(world).replicas, state(world).leader, state(world).adding, state(world).removing) == (
        (4, 2, 3), state(world).isr[0], (), ()
    )  # fmt: skip
    assert 1 not in state(world).isr
    assert world.of("deleted", broker=1)
    assert world.logs[0] == []
    assert world.logs[3] == world.logs[1]


def test_the_preferred_leader_is_gone_back_to() -> None:
    world = World("kraft", config={"leader.imbalance.check.interval.seconds": 30}).ready()
    quorum(world).expire_session(1)
    world.run(5)
    assert state(world).leader == 2
    world.run(30)
    assert state(world).leader == 1


def test_a_heartbeat_that_is_left_out_tells_how_far_the_broker_has_read() -> None:
    world = kraft()
    world.run(20)
    quorum(world).expire_session(3)  # Records that no heartbeat has told of.
    world.run(10)
    world.cluster.shut_down(1)  # It waits until the others have read that it goes.
    world.run(5)
    assert 1 not in world.cluster.running
    assert state(world).leader == 2


def test_partition_that_waits_for_an_administrator_is_counted() -> None:
    config: dict[str, Value] = {"min.insync.replicas": 2, "unclean.recovery.strategy": "None"}
    world = World("elr-recovery", config=config).ready()
    for broker in (1, 2, 3):
        world.cluster.kill(broker)
    world.run(12)
    for broker in (1, 2, 3):  # All of them unclean: nobody is electable.
        world.cluster.start(broker)
    world.run(5)
    assert (state(world).leader, state(world).isr, state(world).elr) == (0, (), ())
    series = world.cluster.recorder.metrics.series()
    assert series["ManualLeaderElectionRequiredPartitionCount"][-1][1] == 1
    assert series["ElectableLeaders"][-1][1] == 0
    assert quorum(world).elect_leader("LONGEST_LOG_BALANCED")
    world.run(310)
    assert state(world).leader > 0
    series = world.cluster.recorder.metrics.series()
    assert series["UncleanRecoveryFinishedCount"][-1][1] == 1
    assert series["ManualLeaderElectionRequiredPartitionCount"][-1][1] == 0


def test_a_controller_resigns_when_one_of_its_events_throws() -> None:
    world = kraft("elr")
    control = quorum(world)
    (name,) = control.server.active.image.partitions
    state_before = PartitionRegistration(name, 0, 3, (), 4, (2, 3), last_known_elr=(1,))
    control.server.active.image.replay(state_before)
    control.server.append([state_before])
    assert not control.elect_leader("UNCLEAN")
    assert control.frozen
    world.run(5)
    assert control.server.epoch == 2
    assert state(world).leader == 0


@pytest.mark.parametrize(("value", "hw"), [("after-topics", 1), ("before-topics", 0)])
def test_a_smaller_isr_is_replayed_together_with_a_larger_min_isr(value: str, hw: int) -> None:
    config: dict[str, Value] = {"min.insync.replicas": 1}
    world = World("elr-4.3", brokers=2, rules={"config_replay": value}, config=config).ready()
    world.cluster.links.cut(1, 2)
    world.write(seconds=0.1)
    world.cluster.links.cut(1, 0)
    world.cluster.administrator.set_config("min.insync.replicas", 2)
    world.run(0.1)
    world.cluster.shut_down(2)
    world.run(0.1)
    world.cluster.links.heal(1, 0)
    world.run(3)
    assert (state(world).isr, state(world).elr) == ((1,), (2,))
    leader = process(world, 1).partition
    assert leader is not None
    assert (leader.state.isr, leader.min_insync_replicas, leader.hw) == ((1,), 2, hw)


def test_without_partitions_a_configuration_is_applied_at_once() -> None:
    world = kraft()
    world.cluster.administrator.set_config("min.insync.replicas", 3)
    world.run(1)
    assert all(process(world, broker).settings.min_insync_replicas == 3 for broker in (1, 2, 3))
