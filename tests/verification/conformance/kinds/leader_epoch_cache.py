"""Driver of the table leader_epoch_cache: a cache, and a log that owns it.

Operations on the cache are methods of `LeaderEpochFileCache`; those on a log (``log_...``) are methods of a `Partition`
on one broker, whose cache it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.messages import LeaderAndIsr
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.world import LEADER, batches_of, make_cache, make_log, make_partition, record_id

if TYPE_CHECKING:
    from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields


class CachedLog:
    """The state of a case: a partition, and the checkpoint file of its epoch cache."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.strict = rules.epoch_recorded_at == "election"
        epochs = make_cache(given["entries"], strict=self.strict)
        self.checkpoint: LeaderEpochCheckpointFile = epochs._checkpoint
        self.partition: Partition = make_partition(make_log([]), epochs, rules)
        self.decisions = 0

    def reopen(self, _: Fields) -> None:
        """Read the file in a new process."""
        self.partition.epochs = make_cache(self.checkpoint.entries, strict=self.strict)

    def become_leader(self, op: Fields) -> None:
        """A LeaderAndIsr arrives, its partition epoch newer each time."""
        self.decisions += 1
        decision = LeaderAndIsr("0", LEADER, op["epoch"], (LEADER,), self.decisions, (LEADER,))
        self.partition.become_leader(decision, 0)

    def append_leader(self, op: Fields) -> None:
        """Append records as one batch."""
        epoch = op.get("epoch", self.partition.leader_epoch)
        self.partition.append_new(record_id(self.partition.log.leo, epoch), op["records"], epoch)

    def append_follower(self, op: Fields) -> None:
        """Append fetched batches."""
        for batch in batches_of(op["batches"]):
            self.partition.append_fetched(batch)

    def advance_log_start(self, op: Fields) -> None:
        """Retention removed what lies below an offset.

        The source tests append records of epoch 0 and then assign the epochs by hand, so the data that the table
        leaves out goes into the log without touching the cache.
        """
        log, offset = self.partition.log, op["offset"]
        if log.leo < offset:
            log.append_new(record_id(log.leo, 0), offset - log.leo, 0)
        self.partition.set_hw(offset)
        self.partition.advance_log_start(offset)


def _end_offset_for(state: CachedLog, op: Fields) -> Seen:
    partition = state.partition
    epoch, end_offset = partition.epochs.end_offset_for(op["epoch"], op.get("leo", partition.log.leo))
    return Seen(epoch=epoch, end_offset=end_offset)


def _previous_entry(state: CachedLog, epoch: int | None) -> tuple[int, int] | None:
    return None if epoch is None else state.partition.epochs.previous(epoch)


def _next_epoch_of(state: CachedLog, op: Fields) -> int | None:
    return next((epoch for epoch in state.partition.epochs.epochs if epoch > op["epoch"]), None)


def _previous_epoch(state: CachedLog, epoch: int | None) -> int | None:
    entry = _previous_entry(state, epoch)
    return entry[0] if entry else None


KIND = Kind(
    begin=CachedLog,
    ops={
        "assign": lambda state, op: state.partition.epochs.assign(op["epoch"], op["start_offset"]),
        "truncate_from_end": lambda state, op: state.partition.epochs.truncate_from_end(op["offset"]),
        "truncate_from_start": lambda state, op: state.partition.epochs.truncate_from_start(op["offset"]),
        "clear": lambda state, _: state.partition.epochs.clear(),
        "reopen_from_checkpoint": CachedLog.reopen,
        "entries": lambda state, _: state.partition.epochs.entries,
        # The file is written at once, so after every flush it says what it says now.
        "checkpoint_entries_after_async_flush": lambda state, _: state.checkpoint.entries,
        "latest_epoch": lambda state, _: state.partition.epochs.latest,
        "previous_epoch": lambda state, _: _previous_epoch(state, state.partition.epochs.latest),
        "previous_epoch_of": lambda state, op: _previous_epoch(state, op["epoch"]),
        "previous_entry_of": lambda state, op: _previous_entry(state, op["epoch"]),
        "next_epoch_of": _next_epoch_of,
        "entry": lambda state, op: state.partition.epochs.entry(op["epoch"]),
        "end_offset_for": _end_offset_for,
        "epoch_for_offset": lambda state, op: state.partition.epochs.epoch_for_offset(op["offset"]),
        "log_append_follower": CachedLog.append_follower,
        "log_append_leader": CachedLog.append_leader,
        "log_become_leader": CachedLog.become_leader,
        "log_truncate_to": lambda state, op: state.partition.truncate_to(op["offset"]),
        "log_start_offset_advanced_to": CachedLog.advance_log_start,
        "log_end_offset": lambda state, _: state.partition.log.leo,
    },
    observe=lambda state: Seen(entries=state.partition.epochs.entries, leo=state.partition.log.leo),
)
