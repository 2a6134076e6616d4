"""Cordoned log directories (KIP-1066), from 4.3 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.cluster import TOPIC
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.topics import ClusterTopic
from sim.protocol import probes
from sim.protocol.kraft.metadata import PartitionRegistration
from tests.sim.hosts.test_log_directories import reached
from tests.sim.world import World

if TYPE_CHECKING:
    from sim.config import Value

CONFIG: dict[str, Value] = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 1, "sim.log.dirs": 2}
FIRST = ClusterTopic("highwater", partitions=1, replication_factor=2, spared=True)
LATER = ClusterTopic("later", partitions=1, replication_factor=2, created=False)


def world(mode: str = "elr-4.3") -> World:
    """Three brokers; the first partition, with two replicas, is in the first directory."""
    config = {**CONFIG, "default.replication.factor": 2}
    found = World(mode, config=config, topics=(FIRST, LATER))
    found.run(2)
    return found.ready()


def cordon(found: World, broker: int, *places: int) -> None:
    for place in places:
        assert found.cluster.cordon_directory(broker, place, by=place)
    found.run(1)


def create(found: World) -> PartitionRegistration:
    assert found.cluster.topics.create("later")
    found.run(2)
    state = found.cluster.control.state_of("later-0")
    assert isinstance(state, PartitionRegistration)
    return state


def cordoned(found: World, broker: int) -> tuple[int, ...]:
    control = found.cluster.control
    assert isinstance(control, ControllerQuorum)
    return control.server.active.image.brokers[broker].cordoned


def places(found: World, broker: int) -> list[list[str]]:
    return [list(directory.storages) for directory in found.cluster.machines.directories[broker].all]


def test_a_new_replica_goes_to_the_directory_with_the_fewest_logs_that_is_not_cordoned() -> None:
    free, found = world(), world()
    assert 2 in create(free).replicas
    assert places(free, 2) == [[TOPIC], ["later-0"]]
    cordon(found, 2, 2)
    assert 2 in create(found).replicas
    assert places(found, 2) == [[TOPIC, "later-0"], []]
    assert reached(found, probes.DIRECTORY_CORDONED)


def test_a_broker_whose_directories_are_all_cordoned_gets_no_replica_of_a_new_partition() -> None:
    found = world()
    cordon(found, 2, 1, 2)
    assert cordoned(found, 2) == (0, 1)
    assert sorted(create(found).replicas) == [1, 3]
    assert 2 in found.cluster.control.state.isr, "existing replicas stay"


def test_the_controller_refuses_a_topic_if_too_few_brokers_take_replicas() -> None:
    found = world()
    for broker in (2, 3):
        cordon(found, broker, 1, 2)
    assert not found.cluster.topics.create("later")
    found.cluster.uncordon_directory(3, by=2)
    found.run(1)
    assert sorted(create(found).replicas) == [1, 3]
    assert places(found, 3)[1] == ["later-0"]


def test_no_replica_is_moved_to_a_cordoned_directory_but_one_may_leave_it() -> None:
    found = world()
    cordon(found, 2, 2)
    assert not found.cluster.move_replica(2, TOPIC, 2)
    found.cluster.uncordon_directory(2, by=2)
    cordon(found, 2, 1)
    assert found.cluster.move_replica(2, TOPIC, 2)
    found.run(2)
    assert places(found, 2) == [[], [TOPIC]]


def test_the_controller_learns_it_again_after_a_restart_of_the_broker() -> None:
    found = world()
    cordon(found, 2, 1, 2)
    found.cluster.kill(2)
    found.run(20)
    found.cluster.start(2)
    found.run(10)
    assert cordoned(found, 2) == (0, 1)
    found.cluster.uncordon_directory(2, by=1)
    found.run(1)
    assert cordoned(found, 2) == (1,)


def test_a_paused_broker_tells_of_it_when_it_resumes_and_one_that_is_down_takes_no_request() -> None:
    found = world()
    found.cluster.pause(2)
    cordon(found, 2, 1)
    assert cordoned(found, 2) == ()
    found.cluster.resume(2)
    found.run(1)
    assert cordoned(found, 2) == (0,)
    assert not found.cluster.cordon_directory(2, 1, by="again")
    found.cluster.kill(3)
    assert not found.cluster.cordon_directory(3, 1)


def test_a_replaced_disk_is_cordoned_as_its_path_and_an_added_directory_is_not() -> None:
    found = world()
    cordon(found, 2, 1)
    assert found.cluster.machines.replace_directory(2, 1)
    assert found.cluster.add_directory(2)
    found.cluster.start(2)
    found.run(20)
    assert [directory.cordoned for directory in found.cluster.machines.directories[2].all] == [True, False, False]
    assert cordoned(found, 2) == (2,)
    found.cluster.uncordon_directory(2, by=1)
    found.run(1)
    assert cordoned(found, 2) == ()


@pytest.mark.parametrize("mode", ["kraft", "elr", "kip320"])
def test_releases_before_4_3_know_no_cordoned_directories(mode: str) -> None:
    found = World(mode, config=CONFIG).ready()
    assert not found.cluster.cordon_directory(1, 1)


def test_if_all_are_cordoned_a_replica_that_was_placed_before_goes_to_the_first_directory() -> None:
    found = world()
    assert found.cluster.topics.create("later")
    for place in (1, 2):
        assert found.cluster.cordon_directory(2, place, by=place)
    found.run(2)
    assert places(found, 2) == [[TOPIC, "later-0"], []]
