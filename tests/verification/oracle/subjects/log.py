"""A log: Kafka's UnifiedLog against `Replica`, `Log`, the epoch cache, producer state and `Storage`.

Operations: ``append count epoch rolls`` (a leader's; whether a new segment begins with it, if the present one holds
anything), ``send producer producer-epoch sequence count epoch`` (a leader's, of an idempotent producer), ``copy base
count epoch`` (a follower's), ``truncate offset``, ``truncate-fully offset``, ``hw offset``, ``start offset`` (the log
start moves up, as far as the HW), ``delete`` (segments below the log start), ``restart`` (in order), ``crash lost
recovery-point start hw`` (so many of the newest batches are gone, and the checkpoint files say this, which may be out
of date; 0: nothing), ``lose file`` (the next restart or crash leaves the log without its leader-epoch-checkpoint,
without any producer snapshot, or with a half-written leader-epoch-checkpoint). To be seen are the answer, log start,
LEO, HW, leader epochs and batches.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from sim.environment.file_damage import EPOCHS, HALF_WRITTEN, LOST, SNAPSHOTS, FileDamage, damage_file
from sim.environment.storage import LogDirectory, RecoveryError, Storage, StorageSettings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log import producer_state_manager
from sim.protocol.log.log import UnexpectedAppendOffsetError
from sim.protocol.messages import UNKNOWN_PRODUCER_ID
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection

    from sim.protocol.rules import Rules

NEVER: Final = 1 << 60
DAMAGES: Final = {
    "epochs": (EPOCHS, LOST),
    "half-epochs": (EPOCHS, HALF_WRITTEN),
    "snapshots": (SNAPSHOTS, LOST),
}
"""What a case may lose."""
SETTINGS: Final = StorageSettings(NEVER, NEVER, NEVER, NEVER, 1, NEVER, NEVER, NEVER, NEVER, NEVER)


class Driver(PartitionHost):
    """The core's log, and the broker that it lives in."""

    def __init__(self, rules: Rules, imitated: Collection[str], *, has_hw: bool) -> None:
        self._rules = rules
        self._has_epochs = rules.follower_truncation != "high-watermark"
        self._imitated = imitated
        self._has_hw = has_hw
        self._is_down = False
        self._storage = Storage(SETTINGS)
        self._rolls = False
        self._to_lose: list[str] = []
        self._replica = self._load(clean=True)

    def _load(self, *, clean: bool) -> Replica:
        log, epochs, hw = self._storage.recover(Decisions(self._rules), clean=clean)
        return Replica("t", log, epochs, hw, Decisions(self._rules), self)

    # As `sim.hosts.broker` does it.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""
        self._storage.appended(batch, 0)
        if self._rolls:
            self._rolls = False
            self._storage.roll(batch, 0)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""
        self._storage.truncated(0)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""
        self._storage.log_start_moved(0)

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        if self._is_down:
            return []
        if operation[0] == "lose":
            self._to_lose.append(operation[1])
        answer = None if operation[0] == "lose" else self._answer(*operation)
        if self._is_down:
            return [answer]
        replica = self._replica
        log = replica.log
        epochs = [[epoch, start] for epoch, start in replica.epochs.entries] if self._has_epochs else None
        batches = [
            [batch.base_offset, batch.last_offset] + ([batch.leader_epoch] if self._has_epochs else [])
            for batch in log.batches
            if batch.last_offset >= log.log_start
        ]
        return [answer, log.log_start, log.leo, replica.hw if self._has_hw else None, epochs, batches]

    def _answer(self, name: str, *values: Any) -> Any:
        replica = self._replica
        match name:
            case "append":
                count, epoch, rolls = values
                log = replica.log
                self._rolls = rolls and log.data_end > log.segments[-1]
                replica.append_new(0, count, epoch)
            case "send":
                return self._send(*values)
            case "copy":
                base, count, epoch = values
                try:
                    replica.append_fetched(Batch(base, base + count - 1, epoch, 0))
                except UnexpectedAppendOffsetError:
                    return "refused"
            case "truncate":
                replica.truncate_to(*values)
            case "truncate-fully":
                replica.truncate_fully(*values)
            case "hw":
                replica.set_hw(*values)
            case "start":
                replica.advance_log_start(*values)
            case "delete":
                self._storage.delete_segments(0)
            case "restart":
                return self._restart()
            case "crash":
                return self._crash(*values)
            case _:
                raise ValueError(f"unknown operation {name!r}")
        return None

    def _send(self, producer: int, producer_epoch: int, sequence: int, count: int, epoch: int) -> Any:
        replica = self._replica
        which = producer, producer_epoch, sequence
        replica.note_epoch(epoch)
        takes_unknown = self._rules.unknown_producer == "taken"
        error, known = producer_state_manager.check(replica.log, which, count, forgets_deleted=not takes_unknown)
        if known is not None or (error and not (takes_unknown and error == UNKNOWN_PRODUCER_ID)):
            return error or (known and known.base_offset)
        replica.append_new(0, count, epoch, which)
        return None

    def _restart(self) -> str | None:
        replica = self._replica
        if "end-below-log-start" in self._imitated and self._ends_below(0, replica.log.log_start):
            return self._stop("ends below its start")
        self._storage.process_ended(replica.hw, 0)
        self._storage.close_cleanly(replica.hw)
        if self._lose():
            return self._stop("fails")
        self._replica = self._load(clean=True)
        return None

    def _lose(self) -> bool:
        """Lose what is to be lost; whether the log directory fails over it."""
        directory = LogDirectory(SETTINGS, ())
        directory.storages["t"] = self._storage
        outcomes = [
            damage_file(directory, FileDamage(*DAMAGES[name], "t", None), Decisions(self._rules))
            for name in self._to_lose
        ]
        self._to_lose.clear()
        return any(outcome.fails for outcome in outcomes)

    def _crash(self, lost: int, recovery_point: int, start: int, hw: int) -> str | None:
        storage = self._storage
        if failure := self._failure(lost, recovery_point, start):
            return self._stop(failure)
        rolled = len(storage.log.segments) - 1
        storage.process_ended(self._replica.hw, 0)
        storage.corrupt_tail(lost)
        storage.recovery_point_file.content = recovery_point
        storage.log_start_file.content = start
        storage.hw_file.content = hw
        place = storage.log.misindexed_segment(recovery_point)
        if "rolled-segment-emptied" in self._imitated and 0 <= place < rolled:
            self._empty(place)
        known = [epoch for epoch, since in storage.epoch_checkpoint.entries if since < start]
        fails = self._lose()
        knows_epochs = bool(storage.epoch_checkpoint.entries)
        begins_anew = self._ends_below(0, start)
        if fails:
            return self._stop("fails")
        try:
            self._replica = self._load(clean=False)
        except RecoveryError:
            return self._stop("fails")
        epochs = self._replica.epochs
        if "epoch-zero-recovered" in self._imitated and not knows_epochs and epochs.epochs[:1] == [0]:
            epochs.truncate_from_start(epochs.starts[1]) if epochs.starts[1:] else epochs.clear()
        if "begun-anew-keeps-epoch" in self._imitated and begins_anew and known:
            epochs.assign(known[-1], start)
        return None

    def _empty(self, place: int) -> None:
        """Recovery empties a segment that was rolled, and deletes those that follow."""
        storage = self._storage
        segments = storage.log.segments
        kept = segments[: place + 1]
        storage.corrupt_tail(sum(last >= segments[place] for last in storage.log.lasts))
        segments[:] = kept

    def _failure(self, lost: int, recovery_point: int, start: int) -> str | None:
        """What is listed of logs of which something lies below their start."""
        log = self._storage.log
        first, holding = (sum(base <= offset for base in log.segments) for offset in (recovery_point, start))
        if "recovery-below-log-start" in self._imitated and first < holding:
            return "fails"
        below = "end-below-log-start" in self._imitated and self._ends_below(lost, start)
        return "ends below its start" if below else None

    def _ends_below(self, lost: int, start: int) -> bool:
        """Whether the data that is left, or the segment that it lies in, ends below the log start."""
        log = self._storage.log
        batches = [*log.below, *log.batches][log.deleted :]
        left = batches[: max(0, len(batches) - lost)]
        end = left[-1].last_offset + 1 if left else 0
        last = batches[-lost].base_offset if 0 < lost <= len(batches) else log.segments[-1]
        segment = max((base for base in log.segments if base <= last), default=0)
        return max(end, segment) < start

    def _stop(self, why: str) -> str:
        """Stop comparing."""
        self._is_down = True
        return why


class Drawing:
    """Draws a case, tracking roughly its state."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._has_epochs = release != "0.10.2.2"
        self._losing = Random(rng.getstate()[1][1])
        """A stream of its own: cases that lose no file stay as they were."""
        self._loses = self._losing.random() < 0.25
        self._overlaps = False
        self._epoch = 0
        self._ends = [0]
        self._hw = 0
        self._start = 0
        self._starts = [0]
        """What a checkpoint may say of the log start."""
        self._sent: dict[int, list[tuple[int, int]]] = {}
        """Of each producer sequences that may come next, with the LEO that they had to come at."""
        self.case: Case = []

    @property
    def _leo(self) -> int:
        return self._ends[-1]

    def draw(self) -> Case:
        """A case."""
        rng = self._rng
        steps = (self._append, self._send, self._copy, self._hw_moves, self._truncate, self._start_moves, self._end)
        weights = rng.choice(
            (
                (25, 20, 20, 10, 10, 5, 10),
                (10, 50, 3, 7, 10, 5, 15),
                (5, 55, 0, 5, 20, 0, 15),
                (25, 8, 3, 22, 3, 25, 14),
            )
        )
        if not self._has_epochs:  # Nor producers, nor any log start but that of a segment.
            weights = (30, 0, 25, 0, 15, 0, 20)
        for _ in range(rng.randint(2, 25)):
            rng.choices(steps, weights)[0]()
        return self.case

    def _grow(self, count: int) -> None:
        self._ends.append(self._leo + count)

    def _append(self) -> None:
        rng = self._rng
        self._epoch += rng.choice((0, 0, 1, 2))
        count = rng.choice((1, 1, 2, 3))
        self.case.append(["append", count, self._epoch, rng.random() < 0.3])
        self._grow(count)

    def _send(self) -> None:
        """The next batch of a producer, an earlier one again, or one that leaves a gap."""
        rng = self._rng
        producer = rng.choice((1, 1, 1, 2))
        sent = self._sent.setdefault(producer, [(0, self._leo)])
        roll = rng.random()
        if roll < 0.55:
            count = 1
            sequence = sent[-1][0]
            self._grow(count)
            sent.append((sequence + count, self._leo))
        elif roll < 0.9:
            sequence, count = rng.choice(sent[-6:])[0], 1
        else:
            sequence, count = rng.randint(0, sent[-1][0] + 2), rng.choice((1, 2))
        self.case.append(["send", producer, int(rng.random() < 0.05), sequence, count, self._epoch])

    def _cut(self, offset: int) -> None:
        """What lies above is gone; producers may go on from there."""
        for sent in self._sent.values():
            sent[1:] = [(sequence, leo) for sequence, leo in sent[1:] if leo <= offset]

    def _copy(self) -> None:
        rng = self._rng
        self._epoch += rng.choice((0, 0, 1))
        base = self._leo if rng.random() < 0.85 else max(0, self._leo + rng.choice((-2, -1, 1, 2)))
        count = rng.choice((1, 2, 3))
        self._overlaps |= base < self._leo < base + count
        self.case.append(["copy", base, count, self._epoch if rng.random() < 0.95 else max(0, self._epoch - 1)])
        if base >= self._leo or (self._overlaps and not self._has_epochs):
            self._ends.append(max(self._leo, base + count))

    def _hw_moves(self) -> None:
        self._hw = self._rng.randint(min(self._start, self._leo), self._leo)
        self.case.append(["hw", self._hw])

    def _truncate(self) -> None:
        rng = self._rng
        if self._overlaps and not self._has_epochs:
            return
        if rng.random() < 0.1:
            offset = rng.randint(0, self._leo + 2)
            self.case.append(["truncate-fully", offset])
            self._cut(0)
            self._ends = [offset]
            self._start = self._hw = offset
            self._starts.append(offset)
            return
        ends = self._ends[-3:] if rng.random() < 0.5 else self._ends
        offset = rng.choice(ends) if rng.random() < 0.8 or not self._has_epochs else rng.randint(0, self._leo + 1)
        self.case.append(["truncate", offset])
        self._cut(offset)
        self._ends = [end for end in self._ends if end < offset] + [min(offset, self._leo)]
        self._hw, self._start = min(self._hw, offset), min(self._start, offset)

    def _start_moves(self) -> None:
        self._start = self._rng.randint(self._start, max(self._hw, self._start))
        self.case.append(["start", self._start])
        self._starts.append(self._start)
        if self._rng.random() < 0.4:
            self.case.append(["delete"])

    def _end(self) -> None:
        rng = self._rng
        if self._loses and self._has_epochs and self._losing.random() < 0.5:
            self.case.append(
                ["lose", self._losing.choice(("epochs", "epochs", "snapshots", "snapshots", "half-epochs"))]
            )
        if rng.random() < 0.5:
            if self._has_epochs or not self._overlaps:
                self.case.append(["restart"])
            return
        lost = min(rng.choice((0, 0, 1, 2)), sum(end > self._start for end in self._ends[:-1]))
        if lost:
            del self._ends[-lost:]
            self._cut(self._leo)
        recovery_point = rng.choice((0, self._leo, rng.choice(self._ends)))
        if self._has_epochs and rng.random() < 0.6:
            self._start = rng.choice(self._starts)
        start = self._start if self._has_epochs else 0
        self.case.append(["crash", lost, recovery_point, start, rng.choice((0, self._hw, rng.randint(0, self._hw)))])


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(rules, imitated, has_hw=release in since("2.6.0"))
    return [driver.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "log",
    "highwater.LogSubject",
    since("0.10.2.2"),
    draw,
    run,
    quick=250,
    usual=2_000,
    deep=20_000,
    uses=("batches", "logs"),
    names_brokers=True,
)
