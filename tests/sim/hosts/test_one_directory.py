"""Faults of the disk of one log directory: it stalls, is replaced, or loses the ends of its logs; the others do not."""

from __future__ import annotations

import pytest

from sim.config import Value
from sim.history import steps
from sim.hosts.cluster import TOPIC
from sim.hosts.kraft_broker import KRaftBroker
from sim.protocol import probes
from sim.protocol.messages import NO_BROKER_EPOCH
from tests.sim.checkers.histories import ends
from tests.sim.hosts.test_log_directories import ORDERS, fail, reached, repair, state_of, world
from tests.sim.world import SECOND_US, World

SYNCED: dict[str, Value] = {"log.flush.interval.messages": 1}


def stall(found: World, broker: int, place: int = 1, seconds: float = 1) -> None:
    assert found.cluster.machines.stall_directory(broker, place, by="test")
    found.run(seconds)


def partitions(found: World, kind: str, broker: int) -> list[str]:
    """The partitions with such a step of a broker."""
    return [str(one.get("partition", TOPIC)) for one in found.of(kind, broker=broker)]


def unstall(found: World, broker: int, seconds: float = 1) -> None:
    assert found.cluster.machines.unstall_directory(broker, by="test")
    found.run(seconds)


def test_a_replaced_directory_comes_back_empty_and_the_others_keep_their_logs() -> None:
    found = world(config=SYNCED)
    first, second = found.write(seconds=1), found.write(partition=1, seconds=1)
    before = [directory.number for directory in found.cluster.machines.directories[3].all]
    assert found.cluster.machines.replace_directory(3, 1)
    assert found.logs == [[first], [first], []]
    assert found.logs_of(ORDERS) == [[second]] * 3
    assert [directory.number for directory in found.cluster.machines.directories[3].all] == [2, before[1]]
    assert partitions(found, "directory-replaced", 3) == [TOPIC]
    assert partitions(found, "kill", 3) == [TOPIC, ORDERS]
    found.run(20)
    found.cluster.start(3)
    found.run(40)
    assert state_of(found, TOPIC).directory(3) == 2
    assert found.logs == [[first]] * 3
    assert sorted(state_of(found, ORDERS).isr) == [1, 2, 3]


def test_what_a_replaced_directory_costs_is_lost_by_the_replicas_in_it_alone() -> None:
    found = world(config=SYNCED)
    first = found.write(seconds=1)
    found.write(partition=1, seconds=1)
    assert found.cluster.machines.replace_directory(3, 1)
    lost = [sorted(end.lost) for end in ends(found.cluster.recorder.history)]
    others = [sorted(end.lost) for end in ends(found.cluster.recorder.of(ORDERS).history)]
    assert (lost, others) == ([[first]], [[]])


def test_an_empty_directory_of_a_machine_that_is_down_cannot_be_replaced_with_an_effect() -> None:
    found = world()
    found.cluster.kill(3)
    assert not found.cluster.machines.replace_directory(3, 1)


def test_a_failed_directory_that_is_replaced_works_again_and_its_repair_finds_nothing() -> None:
    found = world(config=SYNCED)
    found.write(seconds=1)
    fail(found, 3)
    assert found.cluster.machines.replace_directory(3, 1)
    assert not found.cluster.repair_directory(3, replaced=False, by="test")
    found.cluster.start(3)
    found.run(40)
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


@pytest.mark.parametrize("mode", ["elr-4.3", "elr-repaired"])
def test_a_replaced_directory_makes_a_clean_shutdown_count_as_unclean(mode: str) -> None:
    """`elr-repaired` ignores the new directory for the replicas in the others (rule offline_directory)."""
    found = world(mode, config=SYNCED)
    found.write(partition=1, seconds=1)
    found.cluster.shut_down(3)
    found.run(5)
    directories = found.cluster.machines.directories[3]
    epoch = directories.clean_broker_epoch
    assert epoch >= 0
    found.cluster.machines.replace_directory(3, 1)
    assert directories.clean_broker_epoch == NO_BROKER_EPOCH
    assert directories.used_broker_epoch == epoch


@pytest.mark.parametrize("synced", [True, False])
def test_a_corrupt_tail_costs_the_logs_of_its_directory_alone(synced: bool) -> None:
    found = world(config=SYNCED if synced else {})
    first, later = found.write(seconds=1), found.write(seconds=1)
    second = found.write(partition=1, seconds=1)
    assert found.cluster.machines.corrupt_tail(3, 1, 1)
    assert found.logs == [[first, later], [first, later], [first]]
    assert found.logs_of(ORDERS) == [[second]] * 3
    assert partitions(found, "corrupt-tail", 3) == [TOPIC]
    assert partitions(found, "kill", 3) == [TOPIC, ORDERS]
    recorder = found.cluster.recorder
    facts = [
        any(isinstance(step, steps.Fact) and step.kind is steps.SYNCED_LOST for step in one.history.steps)
        for one in (recorder, recorder.of(ORDERS))
    ]
    assert facts == [synced, False]
    found.run(20)
    found.cluster.start(3)
    found.run(40)
    assert found.logs == [[first, later]] * 3


def test_a_directory_that_was_closed_cleanly_hides_its_corrupt_tail() -> None:
    found = world()
    found.write(seconds=1)
    found.cluster.shut_down(3)
    found.run(5)
    assert not found.cluster.machines.corrupt_tail(3, 1, 1)
    fail(found, 3)
    assert not found.cluster.machines.corrupt_tail(3, 1, 1)


def test_a_stalled_directory_holds_back_the_appends_of_its_replicas_alone() -> None:
    found = world()
    stall(found, 2)
    first, second = found.write(seconds=1), found.write(partition=1, seconds=1)
    assert [first in log for log in found.logs] == [True, False, True]
    assert found.logs_of(ORDERS)[0] == [second]
    assert reached(found, probes.DIRECTORY_STALLS)
    unstall(found, 2)
    assert found.logs == [[first]] * 3
    assert found.logs_of(ORDERS) == [[second]] * 3
    assert partitions(found, "disk-stalled", 2) == partitions(found, "disk-works", 2) == [TOPIC]


def test_the_leader_of_two_partitions_takes_writes_for_the_one_in_the_directory_that_answers() -> None:
    found = world(config={"leader.imbalance.check.interval.seconds": 5, "auto.leader.rebalance.enable": True})
    leader = state_of(found, ORDERS).leader
    stall(found, leader, 2)
    second = found.write(partition=1, seconds=1)
    first = found.write(seconds=1)
    assert found.of("ack", record=first)
    assert not found.of("ack", record=second)
    unstall(found, leader)
    assert found.of("ack", record=second)


def test_metadata_after_a_change_of_a_replica_in_a_stalled_directory_waits() -> None:
    found = world()
    stall(found, 2)
    process = found.cluster.running[2]
    assert isinstance(process, KRaftBroker)
    found.cluster.kill(3)
    found.run(12)
    assert sorted(state_of(found, TOPIC).isr) == sorted(state_of(found, ORDERS).isr) == [1, 2]
    assert process.image.offset < process.publisher.received
    assert 3 in process.metadata.known[TOPIC].isr
    unstall(found, 2)
    assert process.image.offset == process.publisher.received
    assert 3 not in process.metadata.known[TOPIC].isr


def test_a_stalled_directory_has_written_nothing_since() -> None:
    """Write-back reaches the other directory meanwhile, and its checkpoints are written."""
    found = world(config={"sim.writeback.expire.ms": 10_000, "sim.writeback.interval.ms": 1_000})
    first, second = found.write(seconds=0.1), found.write(partition=1, seconds=0.1)
    stall(found, 3, 1, seconds=15)
    assert found.cluster.machines.lose_power(3)
    assert found.cluster.machines.directories[3].log(TOPIC).batches == []
    assert [batch.first_id for batch in found.cluster.machines.directories[3].log(ORDERS).batches] == [second]
    assert [sorted(end.lost) for end in ends(found.cluster.recorder.history)] == [[first]]
    assert [directory.stalled_us for directory in found.cluster.machines.directories[3].all] == [-1, -1]
    assert not found.cluster.machines.unstall_directory(3, by="test")


def test_a_controlled_shutdown_closes_the_logs_once_the_directory_answers() -> None:
    found = world()
    leader = state_of(found, TOPIC).leader
    stall(found, leader, 2)
    found.cluster.shut_down(leader)
    found.run(20)
    assert leader in found.cluster.running
    unstall(found, leader, seconds=10)
    assert leader not in found.cluster.running
    assert found.cluster.machines.directories[leader].clean_shutdown


def test_a_stalled_directory_that_fails_stalls_no_longer() -> None:
    found = world()
    stall(found, 1)
    first = found.write(seconds=1)
    assert not found.of("ack", record=first)
    fail(found, 1, seconds=10)
    assert found.of("ack", record=first)
    assert partitions(found, "disk-works", 1) == [TOPIC]
    assert not found.cluster.machines.unstall_directory(1, by="test")
    repair(found, 1)
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def test_stalls_of_both_directories_and_of_the_disk_nest() -> None:
    found = world()
    machines = found.cluster.machines
    stall(found, 2, 1)
    assert not machines.stall_directory(2, 1, by="again")
    assert machines.stall_directory(2, 2, by="other")
    assert machines.stall_disk(2)
    assert not machines.stall_directory(2, 1, by="again")
    first, second = found.write(seconds=1), found.write(partition=1, seconds=1)
    assert machines.unstall_disk(2)
    found.run(1)
    assert [found.logs[1], found.logs_of(ORDERS)[1]] == [[], []]
    assert machines.unstall_directory(2, by="other")
    found.run(1)
    assert [found.logs[1], found.logs_of(ORDERS)[1]] == [[], [second]]
    unstall(found, 2)
    assert [found.logs[1], found.logs_of(ORDERS)[1]] == [[first], [second]]


def test_a_paused_process_notices_when_it_resumes_that_its_directory_answers() -> None:
    found = world()
    stall(found, 2)
    first = found.write(seconds=0.5)
    found.cluster.pause(2)
    unstall(found, 2)
    assert found.logs[1] == []
    found.cluster.resume(2)
    found.run(1)
    assert found.logs[1] == [first]


def test_a_process_that_loads_its_logs_has_no_stalled_directory() -> None:
    found = world()
    found.cluster.kill(2)
    assert not found.cluster.machines.stall_directory(2, 1)
    found.cluster.start(2)
    assert not found.cluster.machines.stall_directory(2, 1)


def test_a_replica_whose_directory_was_replaced_is_not_created_while_another_has_failed() -> None:
    found = world(config=SYNCED)
    first = found.write(seconds=1)
    fail(found, 3, 2)
    assert found.cluster.machines.replace_directory(3, 1)
    found.cluster.start(3)
    found.run(40)
    assert found.cluster.running[3].replica(TOPIC) is None
    assert sorted(state_of(found, TOPIC).isr) == [1, 2]
    assert found.cluster.machines.offline_replicas(TOPIC, (1, 2, 3)) == [3]
    repair(found, 3)
    assert found.logs == [[first]] * 3
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]
    assert found.cluster.machines.offline_replicas(TOPIC, (1, 2, 3)) == []


def moved_in_vain(rule: str) -> World:
    """The replica of broker 3 was assigned to its second directory, which fails before the copy replaces the log."""
    found = World("elr-4.3", rules={"skipped_log": rule}, config={"min.insync.replicas": 1, "sim.log.dirs": 2}).ready()
    found.write(seconds=1)
    found.cluster.control.delay_metadata(3, 30 * SECOND_US)
    assert found.cluster.move_replica(3, TOPIC, 2)
    found.run(2)
    assert state_of(found, TOPIC).directory(3) == 1
    found.cluster.kill(3)
    assert found.cluster.machines.fail_directory(3, 2, by="test")
    found.cluster.control.delay_metadata(3, -30 * SECOND_US)
    found.run(20)
    found.write(seconds=1)
    found.cluster.start(3)
    return found.run(40)


def test_a_log_that_the_metadata_has_in_a_failed_directory_is_not_fetched_for_until_the_next_leader_epoch() -> None:
    found = moved_in_vain("waits-for-epoch")
    assert reached(found, probes.LOG_SKIPPED)
    assert state_of(found, TOPIC).directory(3) == 0
    assert sorted(state_of(found, TOPIC).isr) == [1, 2]
    assert found.logs == [[0, 1], [0, 1], [0]]
    found.cluster.shut_down(state_of(found, TOPIC).leader)
    found.run(20)
    assert 3 in state_of(found, TOPIC).isr
    assert found.logs[2] == [0, 1]


def test_with_the_repair_such_a_log_is_used_at_once() -> None:
    found = moved_in_vain("used")
    assert not reached(found, probes.LOG_SKIPPED)
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]
    assert found.logs == [[0, 1]] * 3


def test_the_only_replica_leads_once_its_directory_is_assigned() -> None:
    config: dict[str, Value] = {"min.insync.replicas": 1, "sim.log.dirs": 2}
    found = World("elr-4.3", brokers=1, config=config).ready()
    found.write(seconds=1)
    found.cluster.control.delay_metadata(1, 30 * SECOND_US)
    assert found.cluster.move_replica(1, TOPIC, 2)
    found.run(2)
    found.cluster.kill(1)
    assert found.cluster.machines.fail_directory(1, 2, by="test")
    found.cluster.control.delay_metadata(1, -30 * SECOND_US)
    found.run(20)
    found.cluster.start(1)
    found.run(20)
    assert reached(found, probes.LOG_SKIPPED)
    later = found.write(seconds=5)
    assert found.of("ack", record=later)


def test_a_directory_that_fails_while_a_copy_is_held_back_is_assigned_again() -> None:
    """The metadata still has the directory of the copy (ReplicaAlterLogDirsThread.removePartitions)."""
    found = World("elr-repaired", config={"min.insync.replicas": 1, "sim.log.dirs": 2}).ready()
    found.write(seconds=1)
    assert found.cluster.throttle_moves(3, throttled=True)
    found.cluster.control.delay_metadata(3, 10 * SECOND_US)
    assert found.cluster.move_replica(3, TOPIC, 2)
    found.run(2)
    found.write(seconds=1)
    found.cluster.kill(3)
    found.run(20)
    found.cluster.start(3)
    found.run(11)
    assert [list(directory.storages) for directory in found.cluster.machines.directories[3].all] == [[TOPIC], []]
    assert state_of(found, TOPIC).directory(3) == 1
    fail(found, 3)
    assert state_of(found, TOPIC).directory(3) == 0
    assert 3 not in state_of(found, TOPIC).isr
