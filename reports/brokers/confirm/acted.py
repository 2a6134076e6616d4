"""What happened when a script was acted out on real brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.brokers.confirm.clients import Send
    from reports.brokers.confirm.files import Stored
    from reports.brokers.confirm.history import State
    from sim.history.trace import Shown


@dataclass(slots=True)
class ReplicaFiles:
    """What a broker has on its disk.

    Attributes:
        batches: of its log.
        epochs: (leader epoch, start offset) of its ``leader-epoch-checkpoint``.
        hw: of its ``replication-offset-checkpoint``.
        settled: whether its process runs, and leads or has truncated in the present leader epoch.
    """

    batches: list[Stored]
    epochs: list[tuple[int, int]]
    hw: int | None
    settled: bool = True


@dataclass(slots=True)
class Acted:
    """What happened on real brokers.

    Attributes:
        steps: as a trace shows them.
        met: for each line of the story, whether it can be seen, and when it came true.
        states: of the partition until then.
        after_script: the brokers' disks then.
        final: the brokers' disks when all was healed.
        leader: in the end; 0: nobody.
        sends: what the producer sent.
        shown: (offset, record) that the consumer was shown until the script was over.
        shown_until_end: the same, to the end.
        end_offsets: that the consumer was told.
        batches: batch name -> first record.
        seconds: what the parts took.
        unlike: in what faults found disks otherwise than in the simulation, by when they were written.
    """

    steps: list[Shown] = field(default_factory=list)
    met: list[tuple[bool, int | None]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
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
