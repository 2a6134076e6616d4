"""A log: Kafka's UnifiedLog against `Replica`, `Log`, the epoch cache, producer state and `Storage`.

Operations: ``append count epoch rolls`` (a leader's; whether a new segment begins with it), ``send producer
producer-epoch sequence count epoch`` (a leader's, of an idempotent producer), ``copy base count epoch`` (a follower's),
``truncate offset``, ``truncate-fully offset``, ``hw offset``, ``start offset`` (the log start moves up, as far as the
HW), ``restart`` (in order), ``crash lost recovery-point start hw`` (so many of the newest batches are gone, and the
checkpoint files say this). To be seen are the answer, log start, LEO, HW, leader epochs and batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.environment.storage import Storage, StorageSettings
from sim.protocol.batch import Batch
from sim.protocol.log import producer_state
from sim.protocol.log.log import UnexpectedAppendOffsetError
from sim.protocol.replica.replica import Replica
from tests.oracle.releases import since
from tests.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

NEVER: Final = 1 << 60
SETTINGS: Final = StorageSettings(NEVER, NEVER, 1, NEVER, NEVER, NEVER, NEVER, NEVER)


class Driver:
    """The core's log, and the broker that it lives in."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._storage = Storage(SETTINGS)
        self._rolls = False
        self._replica = self._load()

    def _load(self) -> Replica:
        log, epochs, hw = self._storage.recover(self._rules)
        return Replica("t", log, epochs, hw, self._rules, self)

    # As `sim.hosts.broker` does it.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `ReplicaHost`."""
        self._storage.appended(batch, 0)
        if self._rolls:
            self._rolls = False
            self._storage.roll(batch, 0)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `ReplicaHost`."""
        self._storage.truncated(len(removed), 0)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `ReplicaHost`."""

    def log_start_moved(self, replica: Replica, previous: int, dropped: int) -> None:
        """See `ReplicaHost`."""
        self._storage.front_dropped(dropped, previous, 0)

    def reached(self, probe: int) -> None:
        """See `ReplicaHost`."""

    def do(self, operation: Operation) -> list[Any]:
        """One operation, and what is to be seen after it."""
        answer = self._answer(*operation)
        replica = self._replica
        log = replica.log
        epochs = [[epoch, start] for epoch, start in replica.epochs.entries]
        batches = [
            [batch.base_offset, batch.last_offset, batch.leader_epoch]
            for batch in log.batches
            if batch.last_offset >= log.log_start
        ]
        return [answer, log.log_start, log.leo, replica.hw, epochs, batches]

    def _answer(self, name: str, *values: Any) -> Any:
        replica = self._replica
        match name:
            case "append":
                count, epoch, rolls = values
                if rolls:
                    self._rolls = True
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
            case "restart":
                self._storage.process_ended(replica.hw, 0)
                self._storage.close_cleanly(replica.hw)
                self._replica = self._load()
            case "crash":
                self._crash(*values)
            case _:
                raise ValueError(f"unknown operation {name!r}")
        return None

    def _send(self, producer: int, producer_epoch: int, sequence: int, count: int, epoch: int) -> Any:
        replica = self._replica
        which = producer, producer_epoch, sequence
        replica.note_epoch(epoch)
        error, known = producer_state.check(replica.log, which, count)
        if error or known is not None:
            return error or (known and known.base_offset)
        replica.append_new(0, count, epoch, which)
        return None

    def _crash(self, lost: int, recovery_point: int, start: int, hw: int) -> None:
        storage = self._storage
        storage.process_ended(self._replica.hw, 0)
        storage.corrupt_tail(lost)
        storage.recovery_point_file.content = recovery_point
        storage.log_start_file.content = start
        storage.hw_file.content = hw
        self._replica = self._load()


class Drawing:
    """Draws a case, following roughly what it leads to."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._epoch = 0
        self._ends = [0]
        self._hw = 0
        self._start = 0
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
        weights = rng.choice(((25, 20, 20, 10, 10, 5, 10), (10, 50, 3, 7, 10, 5, 15), (5, 55, 0, 5, 20, 0, 15)))
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
        self.case.append(["copy", base, count, self._epoch if rng.random() < 0.95 else max(0, self._epoch - 1)])
        if base >= self._leo:
            self._ends.append(base + count)

    def _hw_moves(self) -> None:
        self._hw = self._rng.randint(min(self._start, self._leo), self._leo)
        self.case.append(["hw", self._hw])

    def _truncate(self) -> None:
        rng = self._rng
        if rng.random() < 0.1:
            offset = rng.randint(0, self._leo + 2)
            self.case.append(["truncate-fully", offset])
            self._cut(0)
            self._ends = [offset]
            self._start = self._hw = offset
            return
        ends = self._ends[-3:] if rng.random() < 0.5 else self._ends
        offset = rng.choice(ends) if rng.random() < 0.8 else rng.randint(0, self._leo + 1)
        self.case.append(["truncate", offset])
        self._cut(offset)
        self._ends = [end for end in self._ends if end < offset] + [min(offset, self._leo)]
        self._hw, self._start = min(self._hw, offset), min(self._start, offset)

    def _start_moves(self) -> None:
        self._start = self._rng.randint(self._start, max(self._hw, self._start))
        self.case.append(["start", self._start])

    def _end(self) -> None:
        rng = self._rng
        if rng.random() < 0.5:
            self.case.append(["restart"])
            return
        lost = min(rng.choice((0, 0, 1, 2)), sum(end > self._start for end in self._ends[:-1]))
        if lost:
            del self._ends[-lost:]
            self._cut(self._leo)
        recovery_point = rng.choice((0, self._leo, rng.choice(self._ends)))
        self.case.append(["crash", lost, recovery_point, self._start, rng.choice((0, self._hw))])


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(rules)
    return [driver.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "log",
    "highwater.LogSubject",
    since("3.9.0"),
    draw,
    run,
    quick=250,
    usual=2_000,
    deep=20_000,
    uses=("logs",),
    names_brokers=True,
)
