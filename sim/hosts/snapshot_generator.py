"""When a process makes a snapshot of the metadata, and what the snapshot has."""

from __future__ import annotations

from typing import Final

from sim.environment.network import Node
from sim.history import steps
from sim.history.recorder import Recorder
from sim.kernel.scheduler import IdleCall, Kernel
from sim.protocol.kraft.metadata import MetadataImage, Record
from sim.protocol.raft.kraft_control_record_state_machine import KRaftControlRecordStateMachine
from sim.protocol.raft.raft_log import RaftLog, RaftSnapshot
from sim.protocol.raft.request_manager import NEVER

APPROACH_US: Final = 1_000_000
"""No idle time of the quorum begins or lasts within this time before a snapshot is made or removed."""


class SnapshotGenerator:
    """Makes a snapshot with the first records that are committed after an interval. Kafka: SnapshotGenerator.

    A snapshot has what the one before has, and what the records since then change: the image that the process has.
    Snapshots after a number of bytes are not modelled.

    Args:
        owner: the process.
        log: its log.
        interval_us: ``metadata.log.max.snapshot.interval.ms``; 0: no snapshots.

    Attributes:
        partition: knows the voters, which a snapshot has, too.
    """

    __slots__ = ("_interval_us", "_kernel", "_log", "_owner", "_recorder", "_since_us", "partition")

    def __init__(self, owner: Node, log: RaftLog, interval_us: int, kernel: Kernel, recorder: Recorder) -> None:
        self._owner = owner
        self._log = log
        self._interval_us: Final = interval_us
        self._kernel = kernel
        self._recorder = recorder
        self.partition: KRaftControlRecordStateMachine | None = None
        self._reset()

    def due_us(self) -> int:
        """From when on it makes a snapshot with the next records that are committed."""
        return self._since_us + self._interval_us if self._interval_us else NEVER

    def _reset(self) -> None:
        """Count the interval from now on. Kafka: SnapshotGenerator#resetSnapshotCounters."""
        self._since_us = self._kernel.now_us
        if self._interval_us:
            self.approach(self.due_us())

    def approach(self, due_us: int) -> None:
        """Let no idle time of the quorum last until then."""
        at_us = max(self._kernel.now_us, due_us - APPROACH_US)
        self._kernel.schedule(at_us, self._owner.life, IdleCall(self._end_idle, None))

    def _end_idle(self, _: object) -> None:
        self._owner.end_idle()

    def loaded(self) -> None:
        """The process has loaded a snapshot. Kafka: SnapshotGenerator#publishSnapshot."""
        self._reset()

    def published(self, offset: int) -> None:
        """The process has applied all records up to an end offset. Kafka: SnapshotGenerator#publishLogDelta.

        Nothing is written in the middle of a batch (KAFKA-14619), nor of less than the last snapshot has, which a log
        may end before after committed metadata was lost.
        """
        now_us = self._kernel.now_us
        if now_us < self.due_us():
            return
        log, before = self._log, self._log.latest_snapshot
        first = 0 if before is None else before.id.offset
        batches = log.read(first, offset) if first < offset else []
        if not batches or batches[-1].end_offset != offset:
            return
        self._reset()
        image = MetadataImage() if before is None else image_of(before)
        for batch in batches:
            records: list[Record] = list(batch.records)  # type: ignore[arg-type]
            for record in records:
                image.replay(record)
            image.offset = batch.end_offset
        assert self.partition is not None
        voters, version = self.partition.voter_set_at(offset - 1), self.partition.kraft_version_at(offset - 1)
        snapshot = RaftSnapshot(batches[-1], image, now_us, voters, version)
        log.add_snapshot(snapshot)
        self.partition.truncate_old_entries(offset)
        self._recorder.record(steps.MetadataSnapshot(steps.SNAPSHOT_MADE, self._owner.node, snapshot))


def image_of(snapshot: RaftSnapshot) -> MetadataImage:
    """A copy of what a snapshot has."""
    content = snapshot.content
    assert isinstance(content, MetadataImage)
    return content.copy()
