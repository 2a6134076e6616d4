"""Partitions besides the first: where they are, and what is seen of them, without brokers."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.confirm.cluster import KafkaNode
from highwater.lab.confirm.further_partitions import FurtherPartitions
from scenarios.format.catalogue import load
from scenarios.format.scenario import Topic
from sim.config import resolve
from tests.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("kafka")

CONFIG = resolve({}, {"default.replication.factor": 3})
ORDERS, AUDIT = Topic("orders", 2), Topic("audit", 2)


def further(folder: Path, *topics: Topic) -> tuple[FurtherPartitions, list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []
    brokers = {number: KafkaNode(number, folder / str(number), 0, directories=2) for number in (1, 2, 3)}
    cluster: Any = SimpleNamespace(brokers=brokers, node=lambda number: brokers[number])
    observer: Any = SimpleNamespace(add_step=lambda step, **fields: seen.append({"step": step, **fields}))
    return FurtherPartitions(cluster, observer, topics, CONFIG), seen


def test_without_topics_there_is_the_first_partition_only(tmp_path: Path) -> None:
    assert further(tmp_path)[0].replicas == {}


def test_replicas_are_placed_as_in_the_simulation(tmp_path: Path) -> None:
    found, _ = further(tmp_path, ORDERS, AUDIT)
    assert found.replicas == {"orders-1": [2, 3, 1], "audit-0": [3, 1, 2], "audit-1": [1, 2, 3]}
    assert [found.log_of(name) for name in ("orders-0", *found.replicas)] == [
        "partition-0", "partition-1", "audit-0", "audit-1",
    ]  # fmt: skip


def test_all_topics_are_made_the_first_one_under_its_name_here(tmp_path: Path) -> None:
    found, _ = further(tmp_path, ORDERS, AUDIT)
    made: dict[str, Any] = {}
    administrator: Any = SimpleNamespace(create_topic=lambda replicas, _, name: made.update({name: replicas}))
    found._cluster.history = SimpleNamespace(controller=0)  # type: ignore[assignment]
    found.make(administrator, [1, 2, 3])
    assert made == {"partition": [[1, 2, 3], [2, 3, 1]], "audit": [[3, 1, 2], [1, 2, 3]]}


def test_an_appended_batch_is_seen_once_in_whichever_directory_the_log_is(tmp_path: Path) -> None:
    found, seen = further(tmp_path, ORDERS)
    found.look()
    assert seen == []
    log = tmp_path / "2" / "data-2" / "partition-1"
    log.mkdir(parents=True)
    shutil.copy(FIXTURES / "brokers" / "segment-0.10.2.2.log", log / f"{0:020}.log")
    found.look()
    assert seen
    assert {(one["step"], one["broker"], one["partition"]) for one in seen} == {("append", 2, "orders-1")}
    assert seen[0]["offset"] == 0
    count = len(seen)
    found.look()
    assert len(seen) == count


def test_a_scenario_with_log_directories_can_be_acted_out(tmp_path: Path) -> None:
    found, _ = further(tmp_path, *load("directory-of-last-member").topics)
    assert list(found.replicas) == ["audit-0", "audit-1"]
    assert found.replicas["audit-1"] == [3, 1, 2]
