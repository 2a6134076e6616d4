"""Settings of brokers, and what their disks hold, without brokers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
from highwater.lab.confirm.files import Disk
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
from highwater.lab.confirm.release import InstalledRelease
from scenarios.own_files import Workspace
from sim.config import resolve
from tests.places import FIXTURES

pytest.importorskip("kafka")

BROKERS = FIXTURES / "brokers"
HW, LAG = "replica.high.watermark.checkpoint.interval.ms", "replica.lag.time.max.ms"


@pytest.mark.parametrize(
    ("release", "key", "pace", "ms"),
    [
        ("0.10.2.2", HW, 1, 20_000),
        ("0.10.2.2", HW, 5, 16_000),
        ("0.10.2.2", LAG, 5, 2_000),
        ("1.1.1", HW, 5, 1_000),
        ("4.1.0", HW, 5, 1_000),
    ],
)
def test_where_hw_files_decide_none_is_written_while_a_process_starts(
    release: str, key: str, pace: int, ms: int
) -> None:
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.release, cluster._pace, cluster.is_quorum = InstalledRelease(release, ()), pace, False
    assert KafkaCluster._time_ms(cluster, resolve({}, {"replica.lag.time.max.ms": 10_000}), key) == ms


@pytest.mark.parametrize(("entry", "hw"), [("", 0), ("partition 0 2\n", 2), ("partition 0 9\n", 3)])
def test_a_disk_holds_a_log_and_the_hw_that_a_process_takes_from_it(tmp_path: Path, entry: str, hw: int) -> None:
    (tmp_path / "partition-0").mkdir()
    shutil.copy(BROKERS / "segment-0.10.2.2.log", tmp_path / "partition-0" / f"{0:020}.log")
    (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\n{entry}")
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.brokers = {2: SimpleNamespace(data=tmp_path, folder_of=lambda partition: tmp_path / partition.log)}
    assert cluster.disk(2) == Disk(3, hw)


def cluster_of_two_directories(folder: Path) -> tuple[Any, KafkaNode]:
    """A cluster of broker 1, whose partition is in the second of its two log directories."""
    node = KafkaNode(1, folder, 0, directories=2)
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.brokers, cluster.release, cluster.cluster_id = {1: node}, InstalledRelease("4.3.1", ()), "id"
    cluster.controllers, cluster.watched = {}, set()
    cluster._work, cluster.partitions = Workspace(folder), [FIRST]
    cluster.config, cluster._broker_config, cluster._pace, cluster.loading_s = resolve({}, {}), {}, 1, 0.0
    cluster.format(node)
    log = node.directory(2) / "partition-0"
    log.mkdir()
    shutil.copy(BROKERS / "segment-0.10.2.2.log", log / f"{0:020}.log")
    return cluster, node


def test_each_directory_is_formatted_and_the_metadata_log_is_in_none_of_them(tmp_path: Path) -> None:
    cluster, node = cluster_of_two_directories(tmp_path)
    folders = [node.directory(1), node.directory(2), node.metadata]
    lines = [line for folder in folders for line in (folder / "meta.properties").read_text().splitlines()]
    assert len({line for line in lines if line.startswith("directory.id=")}) == 3
    properties = cluster._of_several_directories(node)
    assert properties["metadata.log.dir"] == node.metadata
    assert node.folder_of(FIRST) == tmp_path / "data-2" / "partition-0"


def test_a_failed_directory_keeps_what_was_flushed_and_comes_back(tmp_path: Path) -> None:
    cluster, node = cluster_of_two_directories(tmp_path)
    cluster.fail_directory(1, 2)
    assert node.directory(2).is_file(), "neither this process nor the next can write to it"
    assert cluster.offline("partition-0") == {1}
    assert cluster.offline("other-0") == set()
    cluster.lose_in_directory(1, 1)
    assert cluster.disk(1).leo == 3, "the other directory failed"
    cluster.lose_in_directory(1, 2)
    assert cluster.disk(1).leo == 0, "nothing had been flushed"
    cluster.repair_directory(1, 2, replaced=False)
    assert (node.directory(2) / "partition-0").is_dir()
    assert cluster.offline("partition-0") == set()


def test_a_directory_may_come_back_empty_with_another_id(tmp_path: Path) -> None:
    cluster, node = cluster_of_two_directories(tmp_path)
    before = (node.directory(2) / "meta.properties").read_text()
    cluster.fail_directory(1, 2)
    cluster.repair_directory(1, 2, replaced=True)
    assert [path.name for path in node.directory(2).iterdir()] == ["meta.properties"]
    assert (node.directory(2) / "meta.properties").read_text() != before


AUDIT = KafkaPartition("audit-0", 1, "audit", 0)


def cluster_of_two_partitions(folder: Path) -> tuple[Any, KafkaNode]:
    cluster, node = cluster_of_two_directories(folder)
    cluster.partitions = [FIRST, AUDIT]
    log = node.directory(1) / AUDIT.log
    log.mkdir()
    shutil.copy(BROKERS / "segment-0.10.2.2.log", log / f"{0:020}.log")
    return cluster, node


def test_a_power_loss_cuts_each_log_to_what_had_reached_the_disk(tmp_path: Path) -> None:
    cluster, _ = cluster_of_two_partitions(tmp_path)
    cluster.look_at_disks(0.0)
    cluster.flushed(cluster.brokers[1])
    segment = cluster.brokers[1].folder_of(AUDIT) / f"{0:020}.log"
    segment.write_bytes(segment.read_bytes() * 2)
    cluster.lose_power([1])
    assert [cluster.disk(1, partition).leo for partition in (FIRST, AUDIT)] == [3, 3]
    cluster.brokers[1].sizes.clear()
    cluster.lose_power([1])
    assert [cluster.disk(1, partition).leo for partition in (FIRST, AUDIT)] == [0, 0], "nothing had been flushed"


def test_a_failed_directory_loses_only_what_is_in_it(tmp_path: Path) -> None:
    cluster, _ = cluster_of_two_partitions(tmp_path)
    cluster.fail_directory(1, 2)
    cluster.lose_in_directory(1, 2)
    assert [cluster.disk(1, partition).leo for partition in (FIRST, AUDIT)] == [0, 3]


def test_the_tail_of_each_log_is_corrupted(tmp_path: Path) -> None:
    cluster, _ = cluster_of_two_partitions(tmp_path)
    cluster.corrupt_tail(1, 2)
    assert [cluster.disk(1, partition).leo for partition in (FIRST, AUDIT)] == [1, 1]


def test_hw_files_have_an_entry_for_each_partition(tmp_path: Path) -> None:
    cluster, node = cluster_of_two_partitions(tmp_path)
    (node.directory(1) / "replication-offset-checkpoint").write_text("0\n2\naudit 0 2\naudit 1 3\n")
    assert cluster.hw_file(1, AUDIT) == 2
    assert cluster.hw_file(1, replace(AUDIT, number=1)) == 3
    assert cluster.hw_file(1) is None, "it is in the other directory"


def test_proxies_know_several_partitions_by_topic_and_by_its_id(tmp_path: Path) -> None:
    cluster, _ = cluster_of_two_partitions(tmp_path)
    cluster.proxies = SimpleNamespace(observed={})
    cluster.history = SimpleNamespace(topic_ids={"audit": 7})
    cluster.observe_fetches()
    audit = {"partition": "audit-0"}
    assert cluster.proxies.observed == {("partition", 0): {}, ("audit", 0): audit, (7, 0): audit}
    cluster.partitions, cluster.proxies.observed = [FIRST], {}
    cluster.observe_fetches()
    assert cluster.proxies.observed == {}


@pytest.mark.parametrize(
    ("controllers", "ends", "links"),
    [
        ((0,), (3, 0), [(3, 0)]),
        ((0,), (3, 1), [(3, 1)]),
        ((100, 101, 102), (3, 0), [(3, 100), (3, 101), (3, 102)]),
        ((100, 101, 102), (0, 101), [(100, 101), (102, 101)]),
        ((100, 101, 102), (100, 102), [(100, 102)]),
    ],
)
def test_the_control_plane_as_an_end_of_a_link_stands_for_all_other_controllers(
    controllers: tuple[int, ...], ends: tuple[int, int], links: list[tuple[int, int]]
) -> None:
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.controllers, cluster.is_quorum = dict.fromkeys(controllers), len(controllers) > 1
    assert cluster.links(*ends) == links
