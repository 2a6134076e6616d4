"""The partitions of a scenario: where they are, how their topics are created, without brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm import topics
from highwater.lab.confirm.cluster import KafkaNode
from highwater.lab.confirm.partitions import FIRST, KafkaPartition, partitions_of
from highwater.lab.confirm.simulation import partitions_in
from scenarios.format.catalogue import load
from scenarios.format.scenario import Topic
from sim.config import resolve

CONFIG = resolve({}, {"default.replication.factor": 3})
ORDERS, AUDIT = Topic("orders", 2, directory=1), Topic("audit", 2, directory=2, replication_factor=2, idle=True)
BROKERS = (1, 2, 3)


def test_without_topics_there_is_one_partition() -> None:
    (partition,) = partitions_of((), CONFIG, BROKERS)
    assert (partition.log, partition.replicas, partition.tag) == (FIRST.log, BROKERS, {})


def test_replicas_are_placed_as_in_the_simulation() -> None:
    found = partitions_of((ORDERS, AUDIT), CONFIG, BROKERS)
    assert [(partition.name, partition.log, partition.replicas, partition.idle) for partition in found] == [
        ("orders-0", "partition-0", (1, 2, 3), False),
        ("orders-1", "partition-1", (2, 3, 1), False),
        ("audit-0", "audit-0", (3, 1), True),
        ("audit-1", "audit-1", (1, 2), True),
    ]
    assert [partition.tag for partition in found[:2]] == [{}, {"partition": "orders-1"}]


def test_a_scenario_with_log_directories_has_its_partitions() -> None:
    found = partitions_in(load("directory-of-last-member"))
    assert [(partition.name, partition.replicas) for partition in found] == [
        ("orders-0", (1, 2, 3)),
        ("audit-0", (2, 3, 1)),
        ("audit-1", (3, 1, 2)),
    ]


@pytest.fixture
def cluster() -> Any:
    partitions = partitions_of((ORDERS, AUDIT), CONFIG, BROKERS)
    return SimpleNamespace(brokers={1: None, 2: None}, history=SimpleNamespace(controller=0), partitions=partitions)


def test_all_topics_are_created_the_first_one_under_its_name_here(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[tuple[int, str, list[int]]] = []
    made: dict[str, Any] = {}

    def place(_: KafkaNode, place: int, topic: str, numbers: range) -> None:
        placed.append((place, topic, list(numbers)))

    monkeypatch.setattr(topics, "alter_log_directory", place)
    administrator: Any = SimpleNamespace(create_topic=lambda replicas, _, name: made.update({name: replicas}))
    topics.create_topics(cluster, administrator, (ORDERS, AUDIT))
    assert made == {"partition": [[1, 2, 3], [2, 3, 1]], "audit": [[3, 1], [1, 2]]}
    assert placed == [(1, "partition", [0, 1])] * 2 + [(2, "audit", [0, 1])] * 2


def test_a_partition_without_topics_is_created() -> None:
    made: list[Any] = []
    partitions = (KafkaPartition(replicas=(1, 2)),)
    cluster: Any = SimpleNamespace(history=SimpleNamespace(controller=3), partitions=partitions)
    administrator: Any = SimpleNamespace(create_topic=lambda *asked: made.append(asked))
    topics.create_topics(cluster, administrator, ())
    assert made == [([[1, 2]], 3, "partition")]
