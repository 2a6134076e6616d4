"""Brokers with several log directories, of which one fails while the broker lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.cluster import TOPIC
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.topics import TopicPartition
from sim.protocol import probes
from sim.protocol.kraft.broker_lifecycle_manager import RUNNING
from sim.protocol.kraft.metadata import UNASSIGNED, PartitionRegistration
from sim.protocol.messages import KAFKA_STORAGE_ERROR, NO_BROKER_EPOCH
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.config import Value

CONFIG: dict[str, Value] = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 2, "sim.log.dirs": 2}
ORDERS = "orders-0"


def world(mode: str = "elr-4.3", config: Mapping[str, Value] | None = None) -> World:
    """Three brokers with two directories each: the first partition is in the first, `orders-0` in the second."""
    found = World(mode, config={**CONFIG, **(config or {})}, further=[TopicPartition(ORDERS, 3)])
    found.run(2)
    return found.ready()


def state_of(found: World, name: str) -> PartitionRegistration:
    state = found.cluster.control.state_of(name)
    assert isinstance(state, PartitionRegistration)
    return state


def fail(found: World, broker: int, place: int = 1, seconds: float = 1) -> None:
    assert found.cluster.machines.fail_directory(broker, place, by="test")
    found.run(seconds)


def repair(found: World, broker: int, *, replaced: bool = False, seconds: float = 40) -> None:
    assert found.cluster.repair_directory(broker, replaced=replaced, by="test")
    found.run(seconds)


def reached(found: World, probe: int) -> bool:
    return bool(found.cluster.recorder.coverage.seen & 1 << (len(probes.PROBES) - 1 - probe))


def test_a_failed_directory_is_not_repaired_after_the_machine_got_new_disks() -> None:
    found = world()
    fail(found, 1)
    assert found.cluster.machines.replace_disk(1)
    assert not found.cluster.repair_directory(1, replaced=True, by="test")
    found.cluster.start(1)
    found.run(40)
    assert not any(directory.failed for directory in found.cluster.machines.directories[1].all)
    assert 1 in state_of(found, ORDERS).isr


def test_a_directory_that_fails_twice_while_its_broker_is_paused_is_replaced_once() -> None:
    found = world()
    machines = found.cluster.machines
    found.cluster.pause(1)
    assert machines.fail_directory(1, 1, by="one")
    assert machines.fail_directory(1, 1, by="other")
    found.cluster.resume(1)
    found.run(1)
    assert found.cluster.repair_directory(1, replaced=True, by="one")
    assert not found.cluster.repair_directory(1, replaced=True, by="other")
    assert not any(directory.failed for directory in machines.directories[1].all)


def test_partitions_are_spread_over_directories_and_reported() -> None:
    found = world()
    for broker in (1, 2, 3):
        directories = found.cluster.machines.directories[broker]
        assert [list(directory.storages) for directory in directories.all] == [[TOPIC], [ORDERS]]
        assert state_of(found, ORDERS).directory(broker) == 1
        assert state_of(found, TOPIC).directory(broker) == 0


def test_a_new_replica_is_unassigned_until_its_broker_reports_it() -> None:
    found = World("elr-4.3", config=CONFIG)
    found.cluster.kernel.run_until(218_400)
    assert [state_of(found, TOPIC).directory(broker) for broker in (1, 2, 3)] == [UNASSIGNED] * 3


def test_a_topic_may_name_its_directory() -> None:
    found = World("elr-4.3", config=CONFIG, further=[TopicPartition(ORDERS, 3)], places={"orders": 1, "highwater": 2})
    found.run(2)
    directories = found.cluster.machines.directories[2]
    assert [list(directory.storages) for directory in directories.all] == [[ORDERS], [TOPIC]]


@pytest.mark.parametrize("mode", ["kraft", "elr", "elr-4.3"])
def test_a_leader_in_a_failed_directory_is_replaced_and_the_broker_lives(mode: str) -> None:
    found = world(mode)
    before = state_of(found, ORDERS)
    fail(found, 1)
    state = state_of(found, TOPIC)
    assert (state.leader, sorted(state.isr)) == (2, [2, 3])
    assert state_of(found, ORDERS) is before
    process = found.cluster.running[1]
    assert process.replica_manager.offline.keys() == {TOPIC}
    assert (process.replica(TOPIC), process.replica(ORDERS) is not None) == (None, True)
    first = found.write(partition=0, seconds=3)
    assert found.of("ack", record=first)
    assert found.of("refused", record=first, error=KAFKA_STORAGE_ERROR) or first not in found.logs[0]
    assert reached(found, probes.DIRECTORY_OFFLINE)
    assert reached(found, probes.DIRECTORY_FAILS)


def test_a_repaired_directory_is_used_after_a_restart() -> None:
    found = world()
    lost = found.write(seconds=1)
    fail(found, 1)
    assert lost not in found.logs[0]
    kept = found.write(seconds=1)
    assert found.cluster.running[1].incarnation == 1
    repair(found, 1)
    assert found.cluster.running[1].incarnation == 2
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]
    assert found.logs == [[lost, kept]] * 3


def test_an_empty_directory_in_its_place_has_another_id() -> None:
    found = world()
    record = found.write(seconds=1)
    fail(found, 1)
    repair(found, 1, replaced=True)
    assert state_of(found, TOPIC).directory(1) == 2
    assert found.logs == [[record]] * 3
    assert found.of("directory-replaced", broker=1)


def test_a_broker_whose_last_directory_fails_exits_and_does_not_start() -> None:
    found = world()
    fail(found, 1, 1)
    fail(found, 1, 2, seconds=30)
    assert 1 not in found.cluster.running
    assert found.of("halt", broker=1)
    assert not found.cluster.start(1)
    assert reached(found, probes.LAST_DIRECTORY)
    repair(found, 1)
    assert 1 in found.cluster.running


def test_a_broker_with_one_directory_exits_when_it_fails() -> None:
    found = World("kip320", config={"sim.log.dirs": 3}).ready()
    assert len(found.cluster.machines.directories[1].all) == 1
    fail(found, 1)
    assert 1 not in found.cluster.running


def test_a_restart_leaves_out_a_directory_that_has_failed() -> None:
    found = world()
    record = found.write(partition=1, seconds=1)
    fail(found, 1)
    found.cluster.kill(1)
    found.cluster.start(1)
    found.run(30)
    process = found.cluster.running[1]
    assert (process.replica(TOPIC), process.replica(ORDERS) is not None) == (None, True)
    assert found.logs_of(ORDERS) == [[record]] * 3
    assert found.of("directory-offline", broker=1)
    assert sorted(state_of(found, ORDERS).isr) == [1, 2, 3]
    assert sorted(state_of(found, TOPIC).isr) == [2, 3]


def test_only_a_directory_without_marker_is_recovered() -> None:
    found = world()
    fail(found, 1)
    found.cluster.shut_down(1)
    found.run(5)
    directories = found.cluster.machines.directories[1]
    assert [directory.clean_shutdown for directory in directories.all] == [False, True]
    assert directories.clean_broker_epoch == -1


def test_a_failure_that_cannot_be_reported_stops_the_broker() -> None:
    found = world(config={"log.dir.failure.timeout.ms": 4_000})
    found.cluster.links.cut(1, 0)
    fail(found, 1, seconds=5)
    assert reached(found, probes.DIRECTORY_UNREPORTED)
    process = found.cluster.running.get(1)
    assert process is None or (isinstance(process, KRaftBroker) and process.lifecycle.manager.state != RUNNING)


@pytest.mark.parametrize("healed", [False, True])
def test_a_broker_that_shuts_down_by_itself_is_started_again_if_all_is_healed(healed: bool) -> None:
    found = world(config={"log.dir.failure.timeout.ms": 4_000})
    assert found.cluster.zombie(1)
    fail(found, 1, seconds=5)
    found.cluster.is_healed = healed
    found.cluster.unzombie(1)
    found.run(30)
    assert found.of("shutdown", broker=1)
    assert (1 in found.cluster.running) == healed


def test_a_paused_broker_notices_the_failure_when_it_resumes() -> None:
    found = world()
    found.cluster.pause(1)
    fail(found, 1)
    assert not found.of("directory-failed")
    found.cluster.resume(1)
    found.run(1)
    assert found.of("directory-failed", broker=1)


def test_a_paused_broker_does_not_notice_a_failure_that_was_repaired() -> None:
    found = world()
    found.cluster.pause(1)
    fail(found, 1)
    assert not found.cluster.repair_directory(1, replaced=True, by="test")
    found.cluster.resume(1)
    found.run(1)
    assert not found.of("directory-failed")
    assert not found.cluster.machines.directories[1].all[0].failed


def test_a_directory_fails_while_its_broker_is_down() -> None:
    found = world()
    found.cluster.kill(2)
    fail(found, 2)
    found.cluster.start(2)
    found.run(20)
    process = found.cluster.running[2]
    assert process.replica(TOPIC) is None
    assert not found.cluster.machines.fail_directory(2, 1)


def test_a_replica_that_was_not_reported_is_created_in_another_directory() -> None:
    found = World("elr-4.3", config=CONFIG)
    found.cluster.kernel.run_until(218_400)
    found.cluster.links.cut(1, 0)
    found.run(0.05)
    fail(found, 1, seconds=0.01)
    found.cluster.kill(1)
    found.cluster.links.heal(1, 0)
    found.cluster.start(1)
    found.run(30)
    assert reached(found, probes.REPLICA_ELSEWHERE)
    assert [list(directory.storages) for directory in found.cluster.machines.directories[1].all] == [[], [TOPIC]]
    state = state_of(found, TOPIC)
    assert (state.directory(1), sorted(state.isr)) == (1, [1, 2, 3])


def test_a_directory_that_was_repaired_gets_no_marker_from_the_process_that_lost_it() -> None:
    found = world()
    fail(found, 1)
    assert found.cluster.repair_directory(1, replaced=False, by="test")
    found.until("shutdown", broker=1)
    directories = found.cluster.machines.directories[1]
    assert [directory.clean_shutdown for directory in directories.all] == [False, True]
    assert found.cluster.running[1].incarnation == 2


def test_a_failure_that_a_paused_process_has_not_noticed_counts() -> None:
    cluster = World("elr-4.3", config=CONFIG).ready().cluster
    cluster.pause(1)
    assert cluster.fail_directory_for_good(1, 2, by="test")
    assert not cluster.machines.directories[1].all[1].failed
    assert not cluster.fail_directory_for_good(1, 1, by="test"), "the last directory of broker 1"


def test_a_replica_whose_failure_a_paused_process_has_not_noticed_does_not_count() -> None:
    cluster = World("elr-4.3", config=CONFIG).ready().cluster
    cluster.pause(1)
    assert cluster.fail_directory_for_good(1, 1, by="test")
    assert not cluster.fail_directory_for_good(2, 1, by="test"), "min.insync.replicas is 2"


def test_a_directory_fails_for_good_only_if_the_cluster_works_without_it() -> None:
    found = world()
    cluster = found.cluster
    assert cluster.fail_directory_for_good(1, 1, by="test")
    assert not cluster.fail_directory_for_good(1, 1, by="test")
    found.run(1)
    assert not cluster.fail_directory_for_good(1, 2, by="test"), "the last directory of broker 1"
    assert not cluster.fail_directory_for_good(2, 1, by="test"), "broker 3 alone would be less than min ISR"
    assert cluster.fail_directory_for_good(2, 2, by="test"), "brokers 1 and 3 have the partition in other directories"
    found.run(1)
    assert cluster.machines.offline_replicas(TOPIC, (1, 2, 3)) == [1]
    assert cluster.machines.offline_replicas(ORDERS, (1, 2, 3)) == [2]


def test_the_partition_with_the_directory_waits_for_an_operator_if_only_that_replica_can_be_elected() -> None:
    found = world("kraft")
    control = found.cluster.control
    for broker in (2, 3):
        found.cluster.kill(broker)
    found.run(30)
    assert state_of(found, TOPIC).isr == (1,)
    assert not control.waits_for_operator(state_of(found, TOPIC), [])
    fail(found, 1)
    assert state_of(found, TOPIC).leader == 0
    assert control.waits_for_operator(state_of(found, TOPIC), [1])
    assert not control.waits_for_operator(state_of(found, TOPIC), [2])


def test_a_last_known_leader_in_a_failed_directory_is_waited_for_in_vain() -> None:
    found = world()
    control, state = found.cluster.control, state_of(found, TOPIC).relisted((), (), (1,))
    assert control.waits_for_operator(state, [1])
    assert not control.waits_for_operator(state, [2])
    assert not control.waits_for_operator(state.relisted((), (2,), (1,)), [1])


def test_a_last_known_leader_is_elected_only_with_elr() -> None:
    for mode, waits in (("elr", False), ("kraft", True)):
        found = world(mode)
        for broker in (1, 2, 3):
            found.cluster.kill(broker)
        found.run(30)
        state = state_of(found, TOPIC).relisted((), (), (1,))
        assert state.leader == 0
        assert found.cluster.control.waits_for_operator(state, []) == waits


def move(found: World, broker: int, name: str = TOPIC, place: int = 0, seconds: float = 1) -> bool:
    began = found.cluster.move_replica(broker, name, place)
    found.run(seconds)
    return began


def directory_of(found: World, broker: int, name: str = TOPIC) -> int:
    return found.cluster.machines.place_of(broker, name, 0)


def test_a_replica_moves_with_its_records_when_the_metadata_has_its_directory() -> None:
    found = world()
    found.write()
    before = found.cluster.files(1, TOPIC).log.leo
    assert before == 1
    assert move(found, 1)
    assert directory_of(found, 1) == 2
    assert state_of(found, TOPIC).directory(1) == 1
    assert found.cluster.files(1, TOPIC).log.leo == before
    assert state_of(found, TOPIC).leader == 1
    assert reached(found, probes.REPLICA_MOVED)
    found.write()
    assert found.cluster.files(2, TOPIC).log.leo == before + 1
    assert not move(found, 1, place=2), "it is there already"


@pytest.mark.parametrize("moved", [False, True])
def test_a_log_that_was_moved_is_in_the_page_cache_again(moved: bool) -> None:
    found = world()
    found.write()
    found.run(60)
    assert not moved or move(found, 1)
    fail(found, 1, 2 if moved else 1)
    (end,) = (one for one in found.of("directory-failed", broker=1) if "partition" not in one)
    assert end["offset"] == int(moved), "it had been written back, but not in the other directory"


def test_a_replica_does_not_move_to_a_directory_that_fails_meanwhile() -> None:
    found = world()
    assert found.cluster.move_replica(1, TOPIC, 2)
    fail(found, 1, 2)
    found.run(5)
    assert directory_of(found, 1) == 1
    assert state_of(found, TOPIC).directory(1) == 0
    assert TOPIC in found.cluster.running[1].replicas
    assert not found.cluster.move_replica(1, TOPIC, 2), "that directory does not work"


def restart(found: World, broker: int, place: int = 0) -> None:
    """Kill and start a broker; meanwhile the directory of this number fails."""
    found.cluster.kill(broker)
    found.run(20)
    if place:
        fail(found, broker, place)
    found.cluster.start(broker)
    found.run(40)


def assign_unnoticed(found: World, broker: int, place: int = 2) -> None:
    """A replica of the first partition has a copy in another directory, and the controller assigns it there; the broker
    does not receive the metadata record.
    """
    assert move(found, broker, place=place, seconds=0.05)
    found.cluster.links.cut(0, broker)
    found.run(0.2)
    assert state_of(found, TOPIC).directory(broker) == place - 1
    assert directory_of(found, broker) != place


def test_a_move_goes_on_after_a_restart() -> None:
    found = world()
    first = found.write()
    assert found.cluster.move_replica(1, TOPIC, 2)
    restart(found, 1)
    assert reached(found, probes.MOVE_CONTINUED)
    assert not reached(found, probes.FUTURE_RECOVERED)
    assert directory_of(found, 1) == 2
    assert state_of(found, TOPIC).directory(1) == 1
    assert found.logs == [[first]] * 3
    assert not found.cluster.machines.directories[1].futures


@pytest.mark.parametrize("ends", ["kill", "lose_power"])
def test_a_copy_that_was_assigned_becomes_the_log_at_the_next_start(ends: str) -> None:
    found = world(config={"sim.writeback.expire.ms": 1_000})
    first = found.write()
    found.run(60)
    assign_unnoticed(found, 1)
    getattr(found.cluster.machines if ends == "lose_power" else found.cluster, ends)(1)
    found.cluster.links.heal(0, 1)
    found.run(30)
    assert 1 not in found.cluster.running
    assert [list(directory.storages) for directory in found.cluster.machines.directories[1].all] == [[TOPIC], [ORDERS]]
    found.cluster.start(1)
    found.run(30)
    assert reached(found, probes.FUTURE_RECOVERED)
    loaded = [step["offset"] for step in found.of("recovered", broker=1) if "partition" not in step]
    assert loaded == [0, 1, 0 if ends == "lose_power" else 1], "the log had been written back, but not the copy"
    assert directory_of(found, 1) == 2
    assert state_of(found, TOPIC).directory(1) == 1
    assert found.logs == [[first]] * 3
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def test_a_copy_that_was_assigned_replaces_a_log_whose_directory_failed() -> None:
    found = world()
    first = found.write()
    assign_unnoticed(found, 1)
    found.cluster.kill(1)
    found.cluster.links.heal(0, 1)
    restart(found, 1, place=1)
    assert reached(found, probes.FUTURE_RECOVERED)
    assert directory_of(found, 1) == 2
    assert found.logs == [[first]] * 3
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def test_a_copy_is_not_used_while_its_directory_does_not_work() -> None:
    found = world()
    assert found.cluster.move_replica(1, TOPIC, 2)
    restart(found, 1, place=2)
    assert directory_of(found, 1) == 1
    assert not reached(found, probes.MOVE_CONTINUED)
    repair(found, 1)
    assert directory_of(found, 1) == 2


def test_a_copy_is_gone_with_its_directory() -> None:
    found = world()
    assert found.cluster.move_replica(1, TOPIC, 2)
    restart(found, 1, place=2)
    repair(found, 1, replaced=True)
    assert not found.cluster.machines.directories[1].futures
    assert directory_of(found, 1) == 1


def test_a_move_from_a_directory_that_fails_is_taken_back() -> None:
    found = world()
    assign_unnoticed(found, 1)
    fail(found, 1, seconds=0.1)
    assert state_of(found, TOPIC).directory(1) == 0
    found.cluster.links.heal(0, 1)
    found.run(15)
    state = state_of(found, TOPIC)
    assert (state.directory(1), 1 in state.isr, state.leader) == (0, False, 2)
    repair(found, 1)
    assert reached(found, probes.MOVE_CONTINUED)
    assert directory_of(found, 1) == 2
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def throttled(mode: str = "elr-4.3") -> World:
    """A throttled move of broker 1 has copied the first record; the controller is about to assign the directory."""
    found = world(mode)
    found.write()
    assert found.cluster.throttle_moves(1, throttled=True)
    assert not found.cluster.throttle_moves(1, throttled=True)
    assert move(found, 1, place=2, seconds=0.15)
    return found


def test_a_copy_that_is_held_back_does_not_replace_the_log_and_the_log_is_assigned_again() -> None:
    found = throttled()
    assert state_of(found, TOPIC).directory(1) == 0
    found.run(0.08)
    assert state_of(found, TOPIC).directory(1) == 1
    found.write()
    found.run(1)
    assert reached(found, probes.ASSIGNED_BEHIND)
    assert state_of(found, TOPIC).directory(1) == 0
    assert directory_of(found, 1) == 1
    assert found.cluster.throttle_moves(1, throttled=False)
    found.run(1)
    assert (directory_of(found, 1), state_of(found, TOPIC).directory(1)) == (2, 1)
    assert found.cluster.files(1, TOPIC).log.leo == 2
    assert not found.cluster.machines.directories[1].futures


def test_a_copy_whose_quota_ends_while_it_is_assigned_replaces_the_log_at_once() -> None:
    found = throttled()
    found.run(0.1)
    assert (directory_of(found, 1), state_of(found, TOPIC).directory(1)) == (1, 1)
    found.cluster.throttle_moves(1, throttled=False)
    assert directory_of(found, 1) == 2
    found.run(20)
    assert state_of(found, TOPIC).directory(1) == 1


@pytest.mark.parametrize(("mode", "left"), [("elr-4.3", 1), ("elr-repaired", 2)])
def test_a_copy_that_lacks_records_replaces_the_log_at_the_next_start(mode: str, left: int) -> None:
    found = throttled(mode)
    found.cluster.links.cut(0, 1)
    second = found.write()
    assert (directory_of(found, 1), state_of(found, TOPIC).directory(1)) == (1, 1)
    found.cluster.kill(1)
    found.cluster.links.heal(0, 1)
    found.run(30)
    found.cluster.links.cut(2, 1)
    found.cluster.links.cut(3, 1)
    found.cluster.start(1)
    found.run(3)
    assert found.cluster.files(1, TOPIC).log.leo == left
    assert reached(found, probes.FUTURE_RECOVERED) == (left == 1)
    truncated = [step["offset"] for step in found.of("truncate", broker=1) if "partition" not in step]
    assert truncated == ([1] if left == 1 else [])
    assert directory_of(found, 1) == (2 if left == 1 else 1)
    for other in (2, 3):
        found.cluster.links.heal(other, 1)
    found.run(60)
    assert [log[-1] for log in found.logs] == [second] * 3
    found.cluster.throttle_moves(1, throttled=False)
    found.run(20)
    assert (directory_of(found, 1), state_of(found, TOPIC).directory(1)) == (2, 1)


def test_a_copy_that_is_held_back_is_truncated_with_its_log() -> None:
    found = throttled()
    found.cluster.running[1].replicas[TOPIC].partition.truncate_to(0)
    future = found.cluster.machines.directories[1].futures[TOPIC]
    assert future.storage is not None
    assert (future.leo, future.storage.log.leo) == (0, 0)


def test_an_empty_log_exceeds_no_quota() -> None:
    found = world()
    assert found.cluster.throttle_moves(1, throttled=True)
    assert move(found, 1, place=2)
    assert directory_of(found, 1) == 2


def test_a_controlled_shutdown_takes_the_assignment_of_a_copy_back() -> None:
    found = throttled()
    found.cluster.shut_down(1)
    found.run(0.12)
    assert 1 in found.cluster.running, "it would have sent the assignment by now"
    assert state_of(found, TOPIC).directory(1) == 0
    found.run(10)
    assert found.of("shutdown", broker=1)
    assert state_of(found, TOPIC).directory(1) == 0


@pytest.mark.parametrize(("mode", "epochs"), [("elr-4.3", [0]), ("elr-repaired", [0, 2])])
def test_a_moved_log_has_the_epochs_of_its_records_or_all_that_it_had(mode: str, epochs: list[int]) -> None:
    found = world(mode)
    found.write()
    found.cluster.shut_down(1)
    found.run(5)
    found.cluster.start(1)
    found.run(15)
    assert found.cluster.control.elect_preferred()
    found.run(1)
    assert state_of(found, TOPIC).leader == 1
    assert move(found, 1)
    assert [epoch for epoch, _ in found.cluster.files(1, TOPIC).epoch_checkpoint.entries] == epochs


def test_a_broker_starts_without_a_directory_that_was_removed() -> None:
    found = world()
    first = found.write()
    assert found.cluster.remove_directory(1, 1)
    assert not found.of("directory-replaced"), "its process uses it until it ends"
    found.run(10)
    assert found.of("shutdown", broker=1)
    found.cluster.start(1)
    assert found.of("directory-replaced", broker=1)
    assert not found.of("directory-offline")
    found.run(40)
    directories = found.cluster.machines.directories[1]
    assert [(directory.number, sorted(directory.storages)) for directory in directories.all] == [(1, [TOPIC, ORDERS])]
    assert state_of(found, TOPIC).directory(1) == 1
    assert found.logs == [[first]] * 3
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def test_a_directory_that_is_added_is_empty_and_makes_the_shutdown_count_as_unclean() -> None:
    found = world()
    first = found.write()
    assert found.cluster.add_directory(1)
    found.run(10)
    assert found.of("shutdown", broker=1)
    directories = found.cluster.machines.directories[1]
    assert len(directories.all) == 2, "the process that ends does not have it"
    assert directories.clean_shutdown
    found.cluster.start(1)
    assert [(directory.number, sorted(directory.storages)) for directory in directories.all] == [
        (0, [TOPIC]),
        (1, [ORDERS]),
        (2, []),
    ]
    process = found.cluster.running[1]
    assert isinstance(process, KRaftBroker)
    assert process.lifecycle.previous_broker_epoch == NO_BROKER_EPOCH
    found.run(40)
    assert directory_of(found, 1) == 1
    assert state_of(found, TOPIC).directory(1) == 0
    assert found.logs == [[first]] * 3
    assert move(found, 1, place=3)
    assert directory_of(found, 1) == 3


def test_a_broker_with_one_directory_gets_no_further_one() -> None:
    found = world(config={"sim.log.dirs": 1})
    assert found.cluster.add_directory(1), "it is shut down"
    found.run(10)
    found.cluster.start(1)
    assert len(found.cluster.machines.directories[1].all) == 1


def test_the_last_directory_that_works_is_not_removed() -> None:
    found = world()
    fail(found, 1, 2)
    assert found.cluster.remove_directory(1, 1)
    found.run(10)
    found.cluster.start(1)
    found.run(10)
    assert len(found.cluster.machines.directories[1].all) == 2
    assert not found.of("directory-replaced")
    found.cluster.kill(1)
    assert not found.cluster.remove_directory(1, 1)


def test_a_failed_directory_may_be_removed_and_is_not_repaired_then() -> None:
    found = world()
    fail(found, 1)
    assert found.cluster.remove_directory(1, 1)
    found.run(10)
    found.cluster.start(1)
    found.run(30)
    assert not found.cluster.repair_directory(1, replaced=False, by="test")
    assert sorted(state_of(found, TOPIC).isr) == [1, 2, 3]


def reassigned(replicas: tuple[int, ...]) -> World:
    """`orders-0`, of which two brokers have a replica, with other replicas."""
    found = World("elr-4.3", config=CONFIG, further=[TopicPartition(ORDERS, 2)])
    found.run(2)
    found.ready()
    assert found.cluster.control.reassign(replicas, ORDERS)
    found.run(5)
    assert set(state_of(found, ORDERS).replicas) == set(replicas)
    return found


def added(found: World) -> int:
    """The broker that had no replica before."""
    return next(broker for broker in (1, 2, 3) if state_of(found, ORDERS).directory(broker) == UNASSIGNED)


def test_the_directory_of_a_replica_that_a_reassignment_adds_is_reported_after_a_restart() -> None:
    found = reassigned((1, 2, 3))
    broker = added(found)
    assert ORDERS in found.cluster.running[broker].replicas
    found.cluster.kill(broker)
    found.cluster.start(broker)
    found.run(40)
    assert state_of(found, ORDERS).directory(broker) == directory_of(found, broker, ORDERS) - 1


def test_a_replica_that_was_reassigned_away_is_created_anew() -> None:
    found = reassigned((1, 2, 3))
    broker = added(found)
    others = tuple(other for other in (1, 2, 3) if other != broker)
    for replicas in (others, (1, 2, 3)):
        assert found.cluster.control.reassign(replicas, ORDERS)
        found.run(5)
        directories = found.cluster.machines.directories[broker].all
        held = [directory for directory in directories if ORDERS in directory.storages]
        assert len(held) == int(broker in replicas) == int(ORDERS in found.cluster.running[broker].replicas)
    assert broker in state_of(found, ORDERS).isr
