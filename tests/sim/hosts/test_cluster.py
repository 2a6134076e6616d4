from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.config import NEVER
from sim.history import steps
from sim.hosts.cluster import TOPIC
from sim.hosts.zookeeper import ScriptedZooKeeper
from sim.protocol.messages import NONE, UpdateMetadataRequest
from sim.protocol.probes import PROBES
from tests.sim.checkers.histories import ends, premises
from tests.sim.world import World

if TYPE_CHECKING:
    from sim.config import Value


def test_a_booted_cluster_elects_replicates_and_answers() -> None:
    world = World().ready()
    assert [step["broker"] for step in world.of("elected")] == [1]
    first = world.write(3)
    assert world.logs == [[0, 1, 2]] * 3
    assert world.of("ack", record=first, count=3, offset=0)
    assert world.of("read", record=first, last=2)


def test_a_loading_process_can_be_shut_down_unheard() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.kill(3)
    assert cluster.start(3)
    assert cluster.shut_down(3)
    world.run(20)
    assert world.of("shutdown", broker=3)
    assert 3 not in cluster.running


@pytest.mark.parametrize(("value", "knows"), [("last-arrived", False), ("last-sent", True)])
def test_metadata_that_a_broker_was_told_before_may_arrive_last(value: str, knows: bool) -> None:
    """A copy in a connection that was given up arrives after newer ones: then the leader is not alive, as it says."""
    world = World("kip320", rules={"broker_metadata": value}).ready()
    one = world.process(2)
    epoch = world.process(world.cluster.controller).module.controller.context.epoch
    old = {broker: known for broker, known in one.metadata.live.items() if broker != 1}
    late = UpdateMetadataRequest(epoch, one.broker_epoch, (one.metadata.known[TOPIC],), old, 1)
    assert one.update_metadata(late) == NONE
    assert (1 in one.metadata.live) is knows
    branches = {
        PROBES[index].name
        for index, bit in enumerate(f"{world.cluster.recorder.coverage.seen:0{len(PROBES)}b}")
        if bit == "1"
    }
    assert f"broker_metadata={value}" in branches
    world.cluster.kill(3)
    world.run(30)
    assert 3 not in one.metadata.live


def test_an_answer_to_a_dead_incarnation_is_no_concern_of_the_next() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.kill(3)
    cluster.start(3)
    world.run(0.4)  # It is up, and knows no leader yet; broker 1 still holds a fetch of its predecessor.
    world.write()
    world.run(30)
    assert world.logs == [[0]] * 3


def test_a_start_during_a_shutdown_happens_after_it() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.shut_down(2)
    assert not cluster.start(2)
    world.run()
    assert [step["step"] for step in world.steps if step.get("broker") == 2 and step["step"] in ("shutdown", "start")] \
        == ["start", "shutdown", "start"]  # fmt: skip


def test_fault_on_a_process_that_does_not_run_has_no_effect() -> None:
    world = World().ready()
    cluster = world.cluster
    assert not cluster.start(1)
    assert cluster.kill(1)
    assert not cluster.kill(1)
    assert not cluster.shut_down(1)
    assert not cluster.machines.lose_power(1)


def test_power_loss_drops_the_page_cache_of_a_stopped_process() -> None:
    world = World().ready()
    world.write(2)
    cluster = world.cluster
    cluster.kill(3)
    assert cluster.machines.lose_power(3)
    world.run(20)
    cluster.start(3)
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == [0, 1]
    found = [end for end in ends(cluster.recorder.history) if end.kind is not steps.EXIT]
    assert [(end.kind, sorted(end.lost)) for end in found] == [(steps.KILL, [0])]


def test_a_replaced_disk_costs_everything_whatever_was_synced() -> None:
    world = World(config={"log.flush.interval.messages": 1}).ready()
    world.write(2)
    world.write(1)
    cluster = world.cluster
    assert cluster.machines.replace_disk(3)
    assert cluster.machines.storages[3].log.batches == []
    world.run(20)
    cluster.start(3)
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == [0, 1, 2]
    found = [end for end in ends(cluster.recorder.history) if end.kind is not steps.EXIT]
    assert [(end.broker, end.kind, sorted(end.lost)) for end in found] == [(3, steps.DISK_REPLACED, [0, 2])]
    assert not premises(cluster.recorder.history).synced_lost
    world.run(30)
    assert world.logs == [[0, 1, 2]] * 3


def test_a_disk_replaced_while_down_belongs_to_the_former_end() -> None:
    world = World().ready()
    world.write(2)
    cluster = world.cluster
    cluster.shut_down(3)
    world.run()
    assert cluster.machines.replace_disk(3)
    assert [(end.kind, sorted(end.lost)) for end in ends(cluster.recorder.history)] == [(steps.SHUTDOWN, [0])]
    assert world.of("disk-replaced", broker=3)
    assert not cluster.machines.replace_disk(3)


class Flushes(steps.Listener):
    """Notes what a log has flushed: the number of batches, and whether the disk was damaged."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []

    def on_flushed(self, step: steps.Flushed) -> None:
        self.seen.append((step.count, step.damaged))


@pytest.mark.parametrize("directories", [1, 2])
def test_nothing_counts_as_flushed_once_the_disks_are_replaced(directories: int) -> None:
    world = World("elr", config={"log.flush.interval.messages": 1, "sim.log.dirs": directories}).ready()
    world.write(2)
    world.run(1)
    flushes = Flushes()
    world.cluster.recorder.attach([flushes])
    assert world.cluster.machines.lose_power(3)
    assert world.cluster.machines.replace_disk(3)
    assert flushes.seen == [(1, False), (0, True)]


@pytest.mark.parametrize("synced", [True, False])
def test_a_corrupt_tail_is_synced_data_or_not(synced: bool) -> None:
    world = World(config={"log.flush.interval.messages": 1 if synced else NEVER}).ready()
    world.write(2)
    world.write(1)
    cluster = world.cluster
    assert cluster.machines.corrupt_tail(3, 1)
    assert premises(cluster.recorder.history).synced_lost == synced
    world.run(20)
    cluster.start(3)
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == [2]
    world.run(30)
    assert world.logs == [[0, 1, 2]] * 3


def test_isr_write_that_may_be_under_way_is_not_sent_twice() -> None:
    world = World("kip320-repaired").ready()
    cluster = world.cluster
    cluster.links.worsen(steps.SLOW, 0, cluster.controller, 900_000)
    for _ in range(6):
        cluster.control.expire_session(3)
        world.run(7)
    epochs = [process.partition.leader_epoch for process in cluster.running.values() if process.partition]
    assert epochs == [cluster.control.state.leader_epoch] * 3


def test_unclean_election_is_a_fact_once_it_is_switched_on_or_happens() -> None:
    world = World().ready()
    history = world.cluster.recorder.history
    world.cluster.administrator.set_config("unclean.leader.election.enable", False)
    world.cluster.kill(1)
    world.run(30)
    assert [step["broker"] for step in world.of("elected") if step["broker"]] == [1, 2]
    assert not premises(history).unclean_election
    world.cluster.administrator.set_config("unclean.leader.election.enable", True)
    assert premises(history).unclean_election
    scripted = World(scripted=True).ready().cluster
    assert isinstance(scripted.control, ScriptedZooKeeper)
    scripted.control.decide(1, (1, 2))
    assert not premises(scripted.recorder.history).unclean_election
    scripted.control.decide(3, (3,))
    assert premises(scripted.recorder.history).unclean_election


def test_a_recovery_strategy_overrides_unclean_election() -> None:
    for strategy, ends_the_promise in (("Balanced", False), ("default", True)):
        cluster = World("elr-recovery", config={"unclean.recovery.strategy": strategy}).ready().cluster
        cluster.administrator.set_config("unclean.leader.election.enable", True)
        assert premises(cluster.recorder.history).unclean_election is ends_the_promise


def test_a_paused_broker_loses_its_session_and_finds_out_when_it_resumes() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.pause(1)
    world.run(25)
    assert world.of("session-end", broker=1)
    old = cluster.running[1]
    assert old.replicas[TOPIC].partition.is_leader
    leader = cluster.leader
    assert leader is not None
    assert leader.node == 2
    assert cluster.resume(1)
    assert not cluster.resume(1)
    world.run()
    assert not old.replicas[TOPIC].partition.is_leader
    assert [step["step"] for step in world.steps if step["step"] in ("pause", "resume")] == ["pause", "resume"]


def test_a_paused_broker_can_be_killed_and_its_successor_runs() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.pause(2)
    world.write(seconds=0.1)
    assert cluster.kill(2)
    assert not cluster.resume(2)
    assert not cluster.pause(2)
    cluster.start(2)
    world.run(60)
    assert world.logs == [[0]] * 3


def test_a_broker_paused_while_loading_continues_when_it_resumes() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.kill(2)
    cluster.start(2)
    assert cluster.pause(2)
    world.run(20)
    assert len(world.of("recovered", broker=2)) == 1
    assert cluster.resume(2)
    assert len(world.of("recovered", broker=2)) == 2


def test_a_paused_broker_begins_to_shut_down_when_it_resumes() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.pause(2)
    assert cluster.shut_down(2)
    world.run(5)
    assert 2 in cluster.running
    cluster.resume(2)
    world.run()
    assert world.of("shutdown", broker=2)


def test_a_paused_broker_writes_no_checkpoints() -> None:
    config: dict[str, Value] = {"zookeeper.session.timeout.ms": 60_000}
    world = World(config=config).ready()
    world.write()
    cluster = world.cluster
    partition = cluster.running[3].partition
    assert partition is not None
    assert partition.hw > 0
    assert cluster.machines.storages[3].hw_file.content == 0
    cluster.pause(3)
    world.run(20)
    cluster.kill(3)
    assert cluster.machines.storages[3].hw_file.content == 0


@pytest.mark.parametrize("mode", ["hw", "kip320"])
def test_the_hw_is_written_when_the_first_decision_was_taken(mode: str) -> None:
    world = World(mode).ready()
    world.write()
    world.cluster.kill(1)
    assert world.cluster.machines.storages[1].hw_file.content == 0


def test_in_kraft_the_hw_is_written_when_metadata_is_published_first() -> None:
    world = World("kraft").ready()
    world.write()
    cluster = world.cluster
    file = cluster.machines.storages[3].hw_file
    cluster.kill(3)
    assert file.content is None  # The topic came later than that, and the next write has not come.
    world.run(10)
    cluster.start(3)
    world.run()
    cluster.kill(3)
    assert file.content == 0


def test_a_paused_control_plane_decides_late() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.pause(0)
    cluster.kill(1)
    world.run(60)
    assert len(world.of("elected")) == 1
    assert cluster.resume(0)
    world.run(60)
    assert [step["broker"] for step in world.of("elected") if step["broker"]][1:]


def test_worse_link_is_mended_once() -> None:
    world = World().ready()
    cluster = world.cluster
    link = cluster.network.link(1, 2)
    table = link.table
    for step, value in ((steps.SLOW, 100_000), (steps.LOSSY, 200), (steps.RESENT, 300)):
        cluster.links.worsen(step, 1, 2, value)
    assert (link.table[0], link.loss, link.resent) == (table[0] + 100_000, 200, 300)
    assert cluster.links.mend(steps.LOSSY, 1, 2, 200)
    assert not cluster.links.mend(steps.LOSSY, 1, 2, 200)
    cluster.links.heal_all()
    assert (link.table, link.loss, link.resent) == (table, 0, 0)
    assert not cluster.links.mend(steps.SLOW, 1, 2, 100_000)
    assert world.of("slow", source=1, target=2, value=100_000)
    assert len(world.of("heal", source=1, target=2)) == 3


def test_the_supervisor_restarts_a_halted_broker_that_is_still_down() -> None:
    short = {"sim.supervisor.restart.ms": 3_000, "zookeeper.session.timeout.ms": 600, "sim.heartbeat.interval.ms": 200}
    world = World(config=short).ready()
    for wait in (4.0, 1.0):
        world.cluster.running[2].halt("told to")
        world.run(0.01)
        assert 2 not in world.cluster.running
        world.run(0.7)  # Until its session has expired.
        if wait < 3:
            world.cluster.start(2)
        starts = len(world.of("start", broker=2))
        world.run(wait)
        assert 2 in world.cluster.running
        assert len(world.of("start", broker=2)) == starts + (wait > 3)
        world.run(30)


def test_cuts_add_up_and_are_all_healed() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.links.cut(1, 2)
    cluster.links.cut(1, 2)
    assert cluster.links.heal(1, 2)
    assert cluster.network.link(1, 2).cuts == 1
    cluster.links.heal_all()
    assert cluster.network.link(1, 2).cuts == 0
    assert not cluster.links.heal(1, 2)


def test_the_leader_is_one_that_knows_the_latest_decision() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.leader is cluster.running[1]
    world.decide(1, (1, 2))
    world.until("isr", isr=[1, 2])
    assert cluster.leader is None
    world.run()
    assert cluster.leader is cluster.running[1]
    cluster.kill(1)
    assert cluster.leader is None


def test_a_fetcher_that_lost_its_partition_does_nothing_any_more() -> None:
    world = World("kip320", brokers=3).ready()
    one = world.cluster.running[3]
    (dropped,) = one.replica_manager.fetchers.fetchers.values()
    world.cluster.kill(dropped.leader)
    world.run(30)
    assert dropped not in one.replica_manager.fetchers.fetchers.values()
    dropped.in_flight = None
    one.replica_manager.fetchers._step_fetcher(dropped)  # Its back-off ends only now.
    assert dropped.in_flight is None


def test_flushers_of_different_machines_run_out_of_step() -> None:
    storages = World().cluster.machines.storages.values()
    assert len({storage._writeback_phase_us for storage in storages}) == len(storages) == 3
