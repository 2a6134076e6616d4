"""The one place where steps of the protocol are noted: for the digest, and for whoever asked for their kind.

Who is told sees steps in order, at once, and must not change anything; of those told of one step the order is that in
which they asked, but moments come first and traces last.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from typing import Any, Final

from sim.history.availability import Availability
from sim.history.counts import Counts
from sim.history.coverage import Coverage
from sim.history.last_standing import LastStanding
from sim.history.ledger import Ledger
from sim.history.metrics import Metrics
from sim.history.steps import KINDS, Kind, Step, Truncate
from sim.history.trace import Shown
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol.batch import Batch
from sim.protocol.replica.partition import Partition

Hears = Callable[[Any], None]
"""Is told of steps of one kind."""
_PACK: Final = Struct("<qBhiqq").pack
_OF_MOMENTS: Final = {moment: kind for kind in KINDS for moment in kind.moments}


class Recorder:
    """Notes the steps of one run.

    Args:
        kernel: for the time.
        record_budget: records that may be appended to logs, shown to consumers, and replayed from a metadata log.

    Attributes:
        ledger: the facts for verdicts.
        availability: what clients had to wait for.
        metrics: Kafka's, of the partition.
        coverage: what was reached.
        counts: of elections and truncations.
        last_standing: what leaders lacked who had been the last members of the ISR.
        armed: who waits for which of `sim.history.steps.MOMENTS`; empty while nobody does.
    """

    __slots__ = (
        "_budget",
        "_buffer",
        "_hearers",
        "_kernel",
        "_left",
        "_nothing_removed",
        "_observers",
        "armed",
        "availability",
        "counts",
        "coverage",
        "last_standing",
        "ledger",
        "metrics",
    )

    def __init__(self, kernel: Kernel, record_budget: int = 1_000_000) -> None:
        self._kernel = kernel
        self._budget = self._left = record_budget
        self._buffer = bytearray()
        self._hearers: list[tuple[Hears, ...]] = [()] * len(KINDS)
        self._observers: list[Callable[[Shown], None]] = []
        self._nothing_removed: dict[int, tuple[int, int]] = {}
        self.armed: dict[str, list[Callable[[int], None]]] = {}
        self.coverage = Coverage(kernel)
        self.ledger = Ledger()
        self.last_standing = LastStanding(self.ledger)
        self.availability = Availability()
        self.metrics = Metrics()
        self.counts = Counts()
        self.coverage.attach(self.hear)
        self.ledger.attach(self.hear)
        self.last_standing.attach(self.hear)
        self.availability.attach(self.hear)
        self.metrics.attach(self.hear)
        self.counts.attach(self.hear)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._hearers.clear()
        self._observers.clear()
        self.armed.clear()
        self.last_standing.dispose()

    def digest(self) -> str:
        """Hash of all steps so far (32 hex digits)."""
        return blake2b(self._buffer, digest_size=16).hexdigest()

    def record(self, step: Step) -> None:
        """Something happened.

        Raises:
            BudgetError: there are more records than a run may have.
        """
        kind = step.kind
        step.at_us = now_us = self._kernel.now_us
        if kind.has_records:
            self._left -= step.records()
            if self._left < 0:
                raise BudgetError("sim.record.budget", self._budget, "records", f"{now_us / 1e6:.6f} s")
        if kind.code >= 0:
            broker, epoch, offset, other = step.packed()
            self._buffer += _PACK(now_us, kind.code, broker, epoch, offset, other)
        for hears in self._hearers[kind.number]:
            hears(step)

    def truncated(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        """A log was cut at its LEO; that nothing is removed there again and again is noted once."""
        if not removed:
            place = partition.log.leo, partition.leader_epoch
            if self._nothing_removed.get(broker) == place:
                return
            self._nothing_removed[broker] = place
        self.record(Truncate(broker, partition, removed))

    # Who is told.

    def hear(self, kind: Kind, hears: Hears) -> None:
        """Tell somebody of all steps of a kind from now on."""
        self._hearers[kind.number] = (*self._hearers[kind.number], hears)

    def observe(self, observer: Callable[[Shown], None]) -> None:
        """Show somebody every step, as a trace shows it."""
        if not self._observers:
            for kind in KINDS:
                if kind.code >= 0:
                    self.hear(kind, self._show)
        self._observers.append(observer)

    def _show(self, step: Step) -> None:
        for fields in step.shown():
            entry = {"t": step.at_us, "step": step.kind.name, **fields}
            for observer in self._observers:
                observer(entry)

    # Moments.

    def arm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Let somebody know of a kind of moment: the broker where it happened, 0 where that is no broker's.

        Called from within the protocol's own step, so it may only put something on the kernel's queue.
        """
        number = _OF_MOMENTS[moment].number
        if self._fire not in self._hearers[number]:
            self._hearers[number] = (self._fire, *self._hearers[number])
        self.armed.setdefault(moment, []).append(waits)

    def disarm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Take that back; nothing if it was done."""
        waiting = self.armed.get(moment, [])
        if waits in waiting:
            waiting.remove(waits)
            if not waiting:
                del self.armed[moment]
                kind = _OF_MOMENTS[moment]
                if self.armed.keys().isdisjoint(kind.moments):
                    others = [hears for hears in self._hearers[kind.number] if hears != self._fire]
                    self._hearers[kind.number] = tuple(others)

    def _fire(self, step: Step) -> None:
        for moment, broker in step.moments():
            for waits in tuple(self.armed.get(moment, ())):
                waits(broker)
