"""The record of a script performed on real brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from highwater.lab.confirm.files import Stored
    from highwater.lab.confirm.history import PartitionSnapshot
    from highwater.lab.confirm.producer import Send
    from sim.history.trace import Shown


@dataclass(slots=True)
class ReplicaFiles:
    """The partition's files on a broker's disk.

    Attributes:
        batches: batches of its log.
        epochs: (leader epoch, start offset) of its ``leader-epoch-checkpoint``.
        hw: high watermark in its ``replication-offset-checkpoint``.
        settled: whether its process runs, and leads or has truncated in the current leader epoch.
        log_start: records below it are deleted, and may still be in `batches`.
    """

    batches: list[Stored]
    epochs: list[tuple[int, int]]
    hw: int | None
    settled: bool = True
    log_start: int = 0


@dataclass(slots=True)
class RealRun:
    """What happened on real brokers: to the first partition, and to all else.

    Attributes:
        steps: steps of all partitions, in the form of a trace.
        met: for each expected step, whether it is observable, and when it occurred.
        states: states of the partition until the script ended; `after_script` are the brokers' disks at that time.
        final: the brokers' disks after everything was healed.
        leader: the final leader; 0 for none.
        shown: (offset, record) that the consumer read until the script ended, and `shown_until_end` in the whole run.
        end_offsets: end offsets returned to the consumer.
        batches: batch name -> first record.
        unlike: faults that found disks in another state than in the simulation, because of write times.
        held_s: for each performed line, how long the script's clock stood still before it since the line before.
        further: what happened to each further partition, by its name, which steps, batches and so on are about.
    """

    steps: list[Shown] = field(default_factory=list)
    met: list[tuple[bool, int | None]] = field(default_factory=list)
    states: list[PartitionSnapshot] = field(default_factory=list)
    after_script: dict[int, ReplicaFiles] = field(default_factory=dict)
    final: dict[int, ReplicaFiles] = field(default_factory=dict)
    leader: int = 0
    sends: list[Send] = field(default_factory=list)
    shown: list[tuple[int, int]] = field(default_factory=list)
    shown_until_end: list[tuple[int, int]] = field(default_factory=list)
    end_offsets: list[int] = field(default_factory=list)
    batches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    unlike: list[str] = field(default_factory=list)
    held_s: list[float] = field(default_factory=list)
    further: dict[str, RealRun] = field(default_factory=dict)

    @property
    def all_batches(self) -> dict[str, int]:
        """Batch name -> first record, of all partitions."""
        of_others = [partition.batches.items() for partition in self.further.values()]
        return dict(sum(map(list, of_others), list(self.batches.items())))
