"""The decisions of several controllers, read from the metadata log of each.

A batch counts as committed once a majority of the disks has it, no disk has a batch of a newer epoch that the majority
lacks, and all before it are committed. If a majority has another batch in its place later, metadata is lost: the
states go back to what both have in common (`sim.hosts.metadata_ledger`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.confirm.files import frames
from highwater.lab.confirm.history import MetadataLogReads, PartitionSnapshot
from sim.history import steps as kinds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from highwater.lab.confirm.partitions import KafkaPartition
    from sim.history.trace import Shown

_BASE_OFFSET: Final = struct.Struct(">q")
_LAST_OFFSET: Final = struct.Struct(">i")
_LAST_OFFSET_AT: Final = 23
_KIND: Final = struct.Struct(">hh")
"""Key of a control record: version and kind."""
_LEADER_CHANGE: Final = 2
_LEADER: Final = struct.Struct(">hi")
"""Value of a control record about a new leader: version and the leader's id."""


class LoggedBatch(NamedTuple):
    """A batch of a metadata log: its offsets, the epoch of the quorum's leader that appended it, and its bytes."""

    base_offset: int
    last_offset: int
    epoch: int
    data: bytes

    @property
    def identity(self) -> tuple[int, int]:
        """What tells it from others: Raft has one batch for an offset and epoch."""
        return self.base_offset, self.epoch


class _Applied(NamedTuple):
    """A committed batch, and what was known after it."""

    identity: tuple[int, int]
    end_offset: int
    states: dict[str, PartitionSnapshot]
    topic_ids: dict[str, Any]


class QuorumLogReads(MetadataLogReads):
    """See the module.

    Args:
        folders: controller -> its folder ``__cluster_metadata-0``.

    Attributes:
        leader: the controller that leads by the last committed batch that says so; 0: none has.
    """

    def __init__(self, folders: Mapping[int, Path], partitions: Sequence[KafkaPartition], jars: Sequence[Path]) -> None:
        super().__init__(next(iter(folders.values())), partitions, jars)
        self._folders = folders
        self.leader = 0
        self._stamps: dict[int, object] = {}
        self._logs: dict[int, dict[int, LoggedBatch]] = {controller: {} for controller in folders}
        """Controller -> base offset -> batch."""
        self._batches: list[_Applied] = []

    def poll(self) -> list[Shown]:
        changed = [controller for controller in self._folders if self._has_changed(controller)]
        if not changed:
            return []
        steps: list[Shown] = []
        agreed = self._agreed()
        kept = 0
        while kept < min(len(agreed), len(self._batches)) and agreed[kept].identity == self._batches[kept].identity:
            kept += 1
        if kept < min(len(agreed), len(self._batches)):
            steps += self._go_back(kept)
        for batch in agreed[len(self._batches) :]:
            steps += self._committed(batch.data)
            now = {partition.log: self.states_of(partition)[-1] for partition in self._known()}
            self._batches.append(_Applied(batch.identity, batch.last_offset + 1, now, dict(self.topic_ids)))
        return steps

    def _control(self, batch: Any) -> list[Shown]:
        steps: list[Shown] = []
        for record in batch:
            if _KIND.unpack_from(record.key)[1] == _LEADER_CHANGE:
                self.leader = _LEADER.unpack_from(record.value)[1]
                told = {"node": self.leader, "raft_epoch": batch.leader_epoch}
                steps.append({"step": kinds.RAFT_LEADER.name, "broker": 0, **told})
        return steps

    def _known(self) -> list[KafkaPartition]:
        """The partitions that exist."""
        return [partition for partition in self._partitions.values() if self.states_of(partition)]

    def _has_changed(self, controller: int) -> bool:
        """Read a controller's log again if its files have changed."""
        segments = sorted(self._folders[controller].glob("[0-9]*.log"))
        try:
            stamp = [(path, path.stat().st_size, path.stat().st_mtime_ns) for path in segments]
            if stamp == self._stamps.get(controller, []):
                return False
            contents = [path.read_bytes() for path in segments]
        except FileNotFoundError:  # The folder is being removed.
            return False
        self._stamps[controller] = stamp
        found = self._logs[controller] = {}
        for data in contents:
            for start, end, epoch in frames(data):
                (base,) = _BASE_OFFSET.unpack_from(data, start)
                (delta,) = _LAST_OFFSET.unpack_from(data, start + _LAST_OFFSET_AT)
                found[base] = LoggedBatch(base, base + delta, epoch, data[start:end])
        return True

    def _agreed(self) -> list[LoggedBatch]:
        """The batches that are committed now, from the first one on.

        A batch of an older epoch counts only below one of the newest epoch: before, the leader of that epoch may still
        replace it.
        """
        majority = len(self._folders) // 2 + 1
        newest = max((batch.epoch for log in self._logs.values() for batch in log.values()), default=-1)
        found: list[LoggedBatch] = []
        certain = offset = 0
        while True:
            there = [log[offset] for log in self._logs.values() if offset in log]
            batch = next((one for one in there if sum(one.epoch == other.epoch for other in there) >= majority), None)
            if batch is None:
                return found[:certain]
            found.append(batch)
            offset = batch.last_offset + 1
            if batch.epoch == newest:
                certain = len(found)

    def _go_back(self, kept: int) -> list[Shown]:
        """Forget the committed batches behind the first so many: a majority has another one in place of the next."""
        offset = self._batches[kept].identity[0]
        del self._batches[kept:]
        before = self._batches[-1] if self._batches else _Applied((-1, -1), 0, {}, {})
        self.topic_ids = dict(before.topic_ids)
        steps: list[Shown] = [{"step": kinds.METADATA_LOST.name, "broker": 0, "offset": offset}]
        for partition in self._known():
            state = before.states.get(partition.log, PartitionSnapshot())
            if state != self.states_of(partition)[-1]:
                steps += self._changed_to(partition, state)
        return steps
