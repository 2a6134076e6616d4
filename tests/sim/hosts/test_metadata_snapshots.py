"""Snapshots of the metadata log in a cluster: who makes, fetches and loads them, and who needs one."""

from __future__ import annotations

import pytest

from faults.kinds.machines import replace_disk
from sim.hosts.raft_broker import RaftBroker
from sim.hosts.raft_machine import RaftMachine
from sim.hosts.raft_quorum import RaftQuorum
from sim.protocol.kraft.metadata import ConfigRecord, MetadataImage
from tests.sim.world import World

INTERVAL_S = 10


def made(mode: str = "elr-4.3", interval_s: int = INTERVAL_S) -> World:
    """Three brokers and three controllers that make a snapshot every ten seconds and remove the others each minute."""
    settings = {
        "min.insync.replicas": 2,
        "auto.leader.rebalance.enable": False,
        "metadata.log.max.snapshot.interval.ms": interval_s * 1000,
        "metadata.max.retention.ms": 0,
    }
    return World(mode, controllers=3, config=settings).ready()


def quorum(world: World) -> RaftQuorum:
    world.cluster.network.end_idle()
    found = world.cluster.quorum
    assert found is not None
    return found


def machines(world: World) -> dict[int, RaftMachine]:
    """The machines of controllers and brokers."""
    return {**quorum(world).controllers.machines, **quorum(world).observer.logs}


def image(world: World, number: int) -> MetadataImage:
    found = world.cluster.running[number]
    assert isinstance(found, RaftBroker)
    return found.image


@pytest.mark.parametrize("mode", ["kraft", "elr", "elr-4.3"])
def test_each_controller_and_broker_makes_snapshots_of_what_is_committed(mode: str) -> None:
    world = made(mode).run(25)
    assert len(machines(world)) == 6
    for machine in machines(world).values():
        assert len(machine.log.snapshots) == 2
        for snapshot in machine.log.snapshots:
            assert isinstance(snapshot.content, MetadataImage)
            assert snapshot.content.offset == snapshot.id.offset == snapshot.last.end_offset
        content = machine.log.snapshots[-1].content
        assert isinstance(content, MetadataImage)
        assert content.changes_to(quorum(world).ledger.image) == []


def test_no_snapshots_are_made_if_the_interval_is_0() -> None:
    world = made(interval_s=0).run(80)
    assert all(machine.log.snapshots == [] for machine in machines(world).values())


def test_all_snapshots_but_the_last_are_removed_once_they_are_older_than_the_retention() -> None:
    world = made().run(65)
    for machine in machines(world).values():
        assert len(machine.log.snapshots) in (1, 2)  # One may be later than the removal.
        assert machine.log.start_offset == machine.log.snapshots[0].id.offset > 0
        assert machine.log.base_offset == 0


def test_a_broker_that_was_cut_off_loads_a_snapshot_and_applies_what_it_changes() -> None:
    world = made().run(30)
    offset = image(world, 3).offset
    world.cluster.links.cut(3, 0)
    world.cluster.links.cut(0, 3)
    world.run(1)
    world.cluster.control.set_config("min.insync.replicas", 1)
    world.run(70)
    assert image(world, 3).offset - offset < 10
    assert 3 not in world.cluster.control.state.isr
    world.cluster.links.heal_all()
    world.run(20)
    machine = machines(world)[3]
    assert machine.log.base_offset > offset
    assert image(world, 3).changes_to(quorum(world).ledger.image) == []
    assert 3 in world.cluster.control.state.isr


def test_a_controller_with_an_empty_disk_loads_a_snapshot_and_leads_from_it() -> None:
    world = made().run(15)
    standby = next(node for node in world.cluster.controllers if node != world.cluster.controller)
    assert replace_disk(world.cluster, standby)
    world.cluster.start(standby)
    world.run(5)
    controllers = quorum(world).controllers
    assert machines(world)[standby].log.base_offset > 0
    assert controllers.running[standby].controller.image.changes_to(quorum(world).ledger.image) == []
    other = next(node for node in world.cluster.controllers if node not in (standby, world.cluster.controller))
    assert controllers.kill(other)
    assert controllers.kill(world.cluster.controller)
    world.cluster.start(other)
    world.run(20)
    assert world.cluster.controller in (standby, other)
    assert world.cluster.control.reassign((2, 1, 3))


def test_a_controller_whose_log_begins_with_a_lost_snapshot_does_not_start() -> None:
    world = made().run(15)
    standby = next(node for node in world.cluster.controllers if node != world.cluster.controller)
    assert quorum(world).controllers.lose_snapshots(standby)
    # Its log begins with the first record, so it does without.
    assert world.cluster.start(standby)
    assert replace_disk(world.cluster, standby)
    world.cluster.start(standby)
    world.run(5)
    assert quorum(world).controllers.lose_snapshots(standby)
    assert not quorum(world).controllers.lose_snapshots(standby)
    assert not world.cluster.start(standby)
    assert not quorum(world).ledger.holds_all(machines(world)[standby])
    world.cluster.is_healed = True
    assert world.cluster.start(standby)
    world.run(5)
    assert quorum(world).ledger.holds_all(machines(world)[standby])


def test_a_restarted_broker_begins_with_its_own_snapshot() -> None:
    world = made().run(15)
    before = machines(world)[3].log.snapshots[-1]
    assert world.cluster.kill(3)
    world.cluster.start(3)
    world.run(20)
    assert before in machines(world)[3].log.snapshots
    assert image(world, 3).changes_to(quorum(world).ledger.image) == []


def test_what_an_image_lacks_is_deleted_by_the_changes_to_it() -> None:
    world = made()
    full, empty = quorum(world).ledger.image, MetadataImage()
    after = empty.copy()
    for record in empty.changes_to(full):
        after.replay(record)
    assert after.brokers == full.brokers
    assert after.partitions == full.partitions
    assert after.settings == full.settings
    for record in full.changes_to(empty):
        after.replay(record)
    assert (after.brokers, after.partitions) == ({}, {})


def test_values_of_keys_are_among_the_changes() -> None:
    before, after = MetadataImage(), MetadataImage()
    after.replay(ConfigRecord("min.insync.replicas", 1))
    assert before.changes_to(after) == [ConfigRecord("min.insync.replicas", 1)]
    assert after.changes_to(after) == []
