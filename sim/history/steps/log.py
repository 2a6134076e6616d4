"""Steps of logs: appends, truncations, log starts, deleted records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.history.steps.base import CHANGE, FACT, TURN, Lane, Shown, Step, StepKind
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

APPEND: Final[StepKind] = StepKind(
    "append", 0, Lane.BROKER,
    "a batch entered a broker's log: offset = base, last, leader_epoch of the batch, record = first id; "
    "producer_id, producer_epoch and sequence of an idempotent producer's",
    "Broker {broker} appends {records} at offset {offset} in leader epoch {leader_epoch}.",
    weight=CHANGE, changes_log=True, has_records=True, kept=True,
    moments={"append": "a batch entered a log, a leader's or a follower's"},
)  # fmt: skip


class Append(Step):
    """A batch was appended to a log, after another batch or the log start; `other` is the id of its first record.

    Attributes:
        batch: the batch.
        before: the batch before it in this log, or the log start if it is the first.
    """

    __slots__ = ("batch", "before")

    kind = APPEND

    def __init__(self, broker: int, log: Log, batch: Batch) -> None:
        batches = log.batches
        self.broker = broker
        self.batch = batch
        self.before: Batch | int = batches[-2] if len(batches) > 1 else log.log_start
        self.epoch = batch.leader_epoch
        self.offset = base = batch.base_offset
        self.other = batch.first_id
        self.records = batch.last_offset - base + 1

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_append(self)

    def fields(self) -> Shown:
        batch = self.batch
        shown: Shown = {
            "broker": self.broker,
            "offset": batch.base_offset,
            "last": batch.last_offset,
            "leader_epoch": batch.leader_epoch,
            "record": batch.first_id,
            "leo": batch.last_offset + 1,
        }
        if batch.producer_id >= 0:
            shown["producer_id"] = batch.producer_id
            shown["producer_epoch"] = batch.producer_epoch
            shown["sequence"] = batch.base_sequence
        return shown


TRUNCATE: Final[StepKind] = StepKind(
    "truncate", 1, Lane.BROKER,
    "a broker truncated, perhaps nothing: offset = resulting LEO, leader_epoch it follows",
    "Broker {broker} truncates to offset {offset} in leader epoch {leader_epoch}, and drops {batches}.",
    weight=TURN, changes_log=True, kept=True,
    moments={"truncate": "a follower truncated, perhaps nothing"},
)  # fmt: skip


class Truncate(Step):
    """A log was truncated to `offset`, and perhaps no batch removed; `hw` is the HW before.

    Attributes:
        hw: the HW before.
        removed: the removed batches.
    """

    __slots__ = ("hw", "removed")

    kind = TRUNCATE

    def __init__(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = partition.log.leo
        self.other = len(removed)
        self.removed = removed
        self.hw: int = partition.hw

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_truncate(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "offset": self.offset, "leader_epoch": self.epoch, "removed": self.other}


LOG_START: Final[StepKind] = StepKind(
    "log-start", 21, Lane.BROKER,
    "a broker's log start moved: offset",
    "The log start of broker {broker} moves to offset {offset}.",
    changes_log=True, kept=True,
)  # fmt: skip


class LogStart(Step):
    """A log start moved.

    Attributes:
        offset: the log start.
    """

    __slots__ = ()

    kind = LOG_START

    def __init__(self, broker: int, offset: int) -> None:
        self.broker = broker
        self.offset = offset
        self.epoch = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_log_start(self)


RETENTION: Final[StepKind] = StepKind(
    "retention", FACT, Lane.BROKER,
    "a leader deleted records, by retention or DeleteRecords: offset = log start, deleted = how many",
    "Broker {broker} deletes {deleted} below offset {offset} (DeleteRecords or retention).",
    weight=CHANGE, changes_log=True,
)  # fmt: skip


class Retention(Step):
    """A leader deleted records (`ids`), by retention or DeleteRecords, up to its new log start.

    Attributes:
        ids: ids of the deleted records.
        log_start: the new log start.
    """

    __slots__ = ("ids", "log_start")

    kind = RETENTION

    def __init__(self, broker: int, ids: list[int], log_start: int) -> None:
        self.broker = broker
        self.ids = ids
        self.log_start = log_start

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_retention(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "offset": self.log_start, "deleted": len(self.ids)}
