"""Damage to files of a broker that is down, and what they were before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faults.kinds.file_damage import FileHalfWritten, FileLost, FileOld
from highwater.lab.confirm import actions
from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
from highwater.lab.confirm.file_damage import FormerVersions, damage, paths
from highwater.lab.confirm.partitions import FIRST
from scenarios.own_files import Workspace
from sim.environment.file_damage import (
    EPOCHS,
    FILES,
    HALF_WRITTEN,
    HW,
    LOG_START,
    LOST,
    MARKER,
    OLD,
    PARTITION_METADATA,
    SNAPSHOTS,
)

CONTENT = {
    EPOCHS: "0\n2\n0 0\n1 5\n",
    MARKER: '{"version":0,"brokerEpoch":7}',
    PARTITION_METADATA: "version: 0\ntopic_id: abc\n",
}
ENTRY = "0\n1\npartition 0 5\n"
EMPTY = "0\n0\n"


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def log(work: Workspace) -> Path:
    """The folder of a replica's log, with all files, in the only log directory of broker 2."""
    folder = work.root / "data" / FIRST.log
    folder.mkdir(parents=True)
    for file in FILES:
        if file != SNAPSHOTS:
            (path,) = paths(folder, file)
            path.write_text(CONTENT.get(file, ENTRY))
    for offset in (3, 5):
        (folder / f"{offset:020}.snapshot").write_bytes(b"producers!")
    return folder


def read(log: Path, file: str) -> list[str]:
    return [path.read_text() for path in paths(log, file) if path.is_file()]


@pytest.mark.parametrize("file", FILES)
def test_a_lost_file_is_gone_and_others_are_not(work: Workspace, log: Path, file: str) -> None:
    before = {name: read(log, name) for name in FILES}
    assert damage(work, log, file, LOST, FormerVersions())
    assert {name: read(log, name) for name in FILES} == {**before, file: []}
    assert not damage(work, log, file, LOST, FormerVersions())


@pytest.mark.parametrize(
    ("file", "left"),
    [
        (EPOCHS, ["0\n2\n"]),
        (HW, ["0\n1\n"]),
        (LOG_START, ["0\n1\n"]),
        (MARKER, ['{"version":0,"']),
        (PARTITION_METADATA, ["version: 0\n"]),
        (SNAPSHOTS, ["producers!", "produ"]),
    ],
)
def test_a_half_written_file_has_its_first_lines(work: Workspace, log: Path, file: str, left: list[str]) -> None:
    assert damage(work, log, file, HALF_WRITTEN, FormerVersions())
    assert read(log, file) == left


def test_a_checkpoint_without_entries_is_like_none(work: Workspace, log: Path) -> None:
    (log.parent / LOG_START).write_text(EMPTY)
    assert not damage(work, log, LOG_START, LOST, FormerVersions())
    assert not damage(work, log, LOG_START, HALF_WRITTEN, FormerVersions())
    assert read(log, LOG_START) == [EMPTY]


def test_a_marker_may_be_empty(work: Workspace, log: Path) -> None:
    """As that of releases without ELR is."""
    (log.parent / MARKER).write_bytes(b"")
    assert not damage(work, log, MARKER, HALF_WRITTEN, FormerVersions())
    assert damage(work, log, MARKER, LOST, FormerVersions())
    assert read(log, MARKER) == []
    assert not damage(work, log, MARKER, LOST, FormerVersions())


def rewrite(path: Path, text: str) -> None:
    """Write a file anew, as brokers do: another file takes its name."""
    new = path.with_suffix(".tmp")
    new.write_text(text)
    new.replace(path)


def test_the_former_version_is_that_before_the_last_write(work: Workspace, log: Path) -> None:
    path, versions = log / EPOCHS, FormerVersions()
    for text in ("0\n1\n0 0\n", CONTENT[EPOCHS]):
        rewrite(path, text)
        versions.look(path)
        versions.look(path)
    assert damage(work, log, EPOCHS, OLD, versions)
    assert read(log, EPOCHS) == ["0\n1\n0 0\n"]


def test_a_file_that_was_written_again_with_the_same_content_is_its_former_version(work: Workspace, log: Path) -> None:
    path, versions = log.parent / HW, FormerVersions()
    for text in ("0\n1\npartition 0 4\n", ENTRY, ENTRY):
        rewrite(path, text)
        versions.look(path)
    assert not damage(work, log, HW, OLD, versions)


def test_a_file_that_was_written_once_has_no_former_version(work: Workspace, log: Path) -> None:
    versions = FormerVersions()
    for file in (HW, MARKER, PARTITION_METADATA):
        versions.look(*paths(log, file))
    assert damage(work, log, HW, OLD, versions), "before the first write there was no file"
    assert read(log, HW) == []
    assert not damage(work, log, MARKER, OLD, versions)
    assert not damage(work, log, PARTITION_METADATA, OLD, versions)


def test_the_former_marker_is_the_one_that_a_start_removed(work: Workspace, log: Path) -> None:
    path, versions = log.parent / MARKER, FormerVersions()
    versions.look(path)
    path.unlink()
    versions.look(path)
    assert damage(work, log, MARKER, OLD, versions)
    assert read(log, MARKER) == [CONTENT[MARKER]]


def test_the_former_snapshot_is_the_one_before_the_last(work: Workspace, log: Path) -> None:
    assert damage(work, log, SNAPSHOTS, OLD, FormerVersions())
    assert [path.name for path in paths(log, SNAPSHOTS)] == [f"{3:020}.snapshot"]


def cluster_of(work: Workspace, log: Path) -> Any:
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.brokers = {2: KafkaNode(2, log.parents[1], 0)}
    cluster.controllers, cluster.partitions, cluster.watched = {}, [FIRST], {HW}
    cluster.versions, cluster._work = FormerVersions(), work
    return cluster


def test_a_cluster_keeps_the_former_versions_of_watched_files(work: Workspace, log: Path) -> None:
    cluster = cluster_of(work, log)
    cluster.look_at_disks(0.0)
    rewrite(log.parent / HW, "0\n1\npartition 0 9\n")
    assert cluster.damage_file(2, FIRST, HW, OLD)
    assert read(log, HW) == [ENTRY]


def test_half_written_files_are_removed_and_partition_metadata_is_written_again(work: Workspace, log: Path) -> None:
    cluster = cluster_of(work, log)
    for file in (EPOCHS, PARTITION_METADATA, MARKER):
        assert cluster.damage_file(2, FIRST, file, HALF_WRITTEN)
    cluster.repair_files(2)
    assert read(log, EPOCHS) == []
    assert read(log, PARTITION_METADATA) == [CONTENT[PARTITION_METADATA]]
    assert read(log, MARKER) == ['{"version":0,"'], "a broker starts with it"
    assert not cluster.node(2).half_written


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("kind", [FileLost, FileOld, FileHalfWritten])
def test_a_broker_that_runs_is_shut_down_first(kind: type[FileLost], alive: bool) -> None:
    done: list[Any] = []
    downs: list[Any] = []

    def damage_file(*what: Any) -> bool:
        done.append(what)
        return True

    cluster = SimpleNamespace(
        node=lambda _: SimpleNamespace(alive=alive),
        stop=lambda broker: done.append(("stop", broker)),
        damage_file=damage_file,
        paced_ms=lambda value: value // 5,
    )
    actor: Any = SimpleNamespace(
        cluster=cluster,
        partition_of=lambda _: FIRST,
        when_down=lambda _, work: downs.append(work),
        note=lambda step, **fields: done.append((step, fields)),
        later=lambda seconds, work: done.append(seconds),
    )
    actions.ACTIONS[kind.name](actor, {"broker": 2, "file": HW, "restart_ms": 5_000})
    assert done[:1] == [("stop", 2)] if alive else not downs
    for work in downs:
        work()
    told = {"broker": 2, "file": HW, "damage": kind.damage}
    assert done[alive:] == [(2, FIRST, HW, kind.damage), ("file-damaged", told), 1.0]
