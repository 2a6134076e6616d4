"""The one place where steps of the protocol are noted: for the digest, and for whoever asked for their kind.

Who is told sees steps in order, at once, and must not change anything; of those told of one step the order is that in
which they asked, but moments come first and traces last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

from sim.history.availability import Availability
from sim.history.counts import Counts
from sim.history.coverage import Coverage
from sim.history.history import History
from sim.history.metrics import Metrics
from sim.history.steps import KINDS, METHODS, Listener, Step, Truncate, heard_by
from sim.history.trace import Shown
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol.batch import Batch
from sim.protocol.replica.partition import Partition

DIGEST_BYTES: Final = 16
_PACK: Final = Struct("<qBhiqq").pack
_OF_MOMENTS: Final = {moment: kind for kind in KINDS for moment in kind.moments}


class _Trace(Listener):
    """Shows every step to those who want to see it, as a trace shows it."""

    __slots__ = ("observers",)

    def __init__(self) -> None:
        self.observers: list[Callable[[Shown], None]] = []

    def on_step(self, step: Step) -> None:
        """See `Listener`."""
        for fields in step.shown():
            entry = {"t": step.at_us, "step": step.kind.name, **fields}
            for observer in self.observers:
                observer(entry)


class _Moments(Listener):
    """Tells those who wait for a moment.

    Attributes:
        armed: who waits for which.
    """

    __slots__ = ("armed",)

    def __init__(self) -> None:
        self.armed: dict[str, list[Callable[[int], None]]] = {}

    def on_step(self, step: Step) -> None:
        """See `Listener`."""
        for moment, broker in step.moments():
            for waits in tuple(self.armed.get(moment, ())):
                waits(broker)


class Recorder:
    """Notes the steps of one run.

    Args:
        kernel: for the time.
        record_budget: records that may be appended to logs, shown to consumers, and replayed from a metadata log.

    Attributes:
        history: what is known for verdicts.
        availability: what clients had to wait for.
        metrics: Kafka's, of the partition.
        coverage: what was reached.
        counts: of elections and truncations.
    """

    __slots__ = (
        "_budget",
        "_buffer",
        "_kept",
        "_kernel",
        "_left",
        "_listeners",
        "_moments",
        "_nothing_removed",
        "_trace",
        "availability",
        "counts",
        "coverage",
        "history",
        "metrics",
    )

    def __init__(self, kernel: Kernel, record_budget: int = 1_000_000) -> None:
        self.history = History()
        self._kept = self.history.steps
        self._kernel = kernel
        self._budget = self._left = record_budget
        self._buffer = bytearray()
        self._listeners: list[list[Listener]] = [[] for _ in METHODS]
        self._trace = _Trace()
        self._moments = _Moments()
        self._nothing_removed: dict[int, tuple[int, int]] = {}
        self.coverage = Coverage(kernel)
        self.availability = Availability()
        self.metrics = Metrics()
        self.counts = Counts()
        history = self.history
        self.attach(
            [
                self.coverage,
                history.clients,
                history.commits,
                history.records,
                self.availability,
                self.metrics,
                self.counts,
            ]
        )

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._listeners.clear()
        self._trace.observers.clear()
        self.armed.clear()
        self.history.dispose()

    def digest(self) -> str:
        """Hash of all steps so far (32 hex digits)."""
        return blake2b(self._buffer, digest_size=DIGEST_BYTES).hexdigest()

    def record(self, step: Step) -> None:
        """Something happened.

        Raises:
            BudgetError: there are more records than a run may have.
        """
        kind = step.kind
        step.at_us = now_us = self._kernel.now_us
        if kind.has_records:
            self._left -= step.records
            if self._left < 0:
                raise BudgetError("sim.record.budget", self._budget, "records", f"{now_us / 1e6:.6f} s")
        if kind.code >= 0:
            self._buffer += _PACK(now_us, kind.code, step.broker, step.epoch, step.offset, step.other)
        if kind.kept:
            self._kept.append(step)
        listeners = self._listeners[kind.number]
        if listeners:
            step.tell(listeners)

    def truncated(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        """A log was cut at its LEO; that nothing is removed there again and again is noted once."""
        if not removed:
            place = partition.log.leo, partition.leader_epoch
            if self._nothing_removed.get(broker) == place:
                return
            self._nothing_removed[broker] = place
        self.record(Truncate(broker, partition, removed))

    # Who is told.

    def attach(self, listeners: Sequence[Listener]) -> None:
        """Tell listeners of all steps that they have methods for, from now on."""
        for listener in listeners:
            for number in heard_by(listener):
                self._listeners[number].append(listener)

    def observe(self, observer: Callable[[Shown], None]) -> None:
        """Show somebody every step, as a trace shows it."""
        if not self._trace.observers:
            for number in sorted({kind.number for kind in KINDS if kind.code >= 0}):
                self._listeners[number].append(self._trace)
        self._trace.observers.append(observer)

    @property
    def armed(self) -> dict[str, list[Callable[[int], None]]]:
        """Who waits for which of `sim.history.steps.MOMENTS`; empty while nobody does."""
        return self._moments.armed

    def arm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Let somebody know of a kind of moment: the broker where it happened, 0 where that is no broker's.

        Called from within the protocol's own step, so it may only put something on the kernel's queue.
        """
        number = _OF_MOMENTS[moment].number
        if self._moments not in self._listeners[number]:
            self._listeners[number] = [self._moments, *self._listeners[number]]
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
                    # Another list: the one that there was may be gone through at this moment.
                    others = [listener for listener in self._listeners[kind.number] if listener is not self._moments]
                    self._listeners[kind.number] = others
