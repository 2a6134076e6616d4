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
from sim.history.steps import KINDS, METHODS, Listener, Refused, Step, Truncate, heard_by
from sim.history.trace import Shown
from sim.kernel.scheduler import Kernel
from sim.protocol.batch import Batch
from sim.protocol.messages import ProduceRequest
from sim.protocol.replica.partition import Partition

DIGEST_BYTES: Final = 16
_PACKED: Final = Struct("<qBhiqq")
_PACK_INTO: Final = _PACKED.pack_into
_STEP_BYTES: Final = _PACKED.size
_BUFFER_BYTES: Final = 256 * _STEP_BYTES
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
    """Tells those who wait for a moment; at each one only those for whom it is the last that they wait for.

    Attributes:
        armed: moment -> who waits for it -> the number of the one that is waited for, of all that were counted.
    """

    __slots__ = ("_counts", "_due", "armed")

    def __init__(self) -> None:
        self.armed: dict[str, dict[Callable[[int], None], int]] = {}
        self._counts: dict[str, int] = {}
        self._due: dict[tuple[str, int], dict[Callable[[int], None], None]] = {}

    def arm(self, moment: str, occurrence: int, waits: Callable[[int], None]) -> None:
        """See `Recorder.arm`."""
        due = self._counts.get(moment, 0) + occurrence
        self.armed.setdefault(moment, {})[waits] = due
        self._due.setdefault((moment, due), {})[waits] = None

    def disarm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Take that back."""
        waiting = self.armed[moment]
        due = moment, waiting.pop(waits)
        if not waiting:
            del self.armed[moment]
        if due in self._due:
            self._due[due].pop(waits, None)
            if not self._due[due]:
                del self._due[due]

    def on_step(self, step: Step) -> None:
        """See `Listener`."""
        for moment, broker in step.moments():
            count = self._counts[moment] = self._counts.get(moment, 0) + 1
            for waits in self._due.pop((moment, count), ()):
                waits(broker)


class Recorder:
    """Notes the steps of one run.

    Args:
        kernel: for the time.
        record_budget: see `History`.

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
        "_hash",
        "_kept",
        "_kernel",
        "_listeners",
        "_moments",
        "_nothing_removed",
        "_refusals",
        "_trace",
        "_used",
        "availability",
        "counts",
        "coverage",
        "history",
        "metrics",
    )

    def __init__(self, kernel: Kernel, record_budget: int = 1_000_000) -> None:
        self.history = History(record_budget)
        self._kept = self.history.steps
        self._kernel = kernel
        self._budget = self.history.budget
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._buffer = bytearray(_BUFFER_BYTES)
        self._used = 0
        self._listeners: list[list[Listener]] = [[] for _ in METHODS]
        self._trace = _Trace()
        self._moments = _Moments()
        self._nothing_removed: dict[int, tuple[int, int]] = {}
        self._refusals: dict[int, str] = {}
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
        self._hash.update(self._buffer[: self._used])
        self._used = 0
        return self._hash.hexdigest()

    def record(self, step: Step) -> None:
        """Something happened.

        Raises:
            BudgetError: there are more records than a run may have.
        """
        kind = step.kind
        step.at_us = now_us = self._kernel.now_us
        if kind.has_records:
            self._budget.take(step.records, now_us)
        if kind.code >= 0:
            # Packed in place: making bytes of each step and adding them to the buffer costs twice as much.
            used = self._used
            _PACK_INTO(self._buffer, used, now_us, kind.code, step.broker, step.epoch, step.offset, step.other)
            self._used = used + _STEP_BYTES
            if self._used == _BUFFER_BYTES:
                self._hash.update(self._buffer)
                self._used = 0
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

    def refused(self, request: ProduceRequest, error: str) -> None:
        """A producer received an error for a batch."""
        is_new = self._refusals.get(request.first_id) != error
        self._refusals[request.first_id] = error
        self.record(Refused(request, error, is_new=is_new))

    @property
    def size(self) -> int:
        """Objects that are kept of the run."""
        findings = self.history.findings
        return len(self._kept) + len(findings.violations) + len(findings.warnings) + self.metrics.size

    # Who is told.

    def attach(self, listeners: Sequence[Listener]) -> None:
        """Tell listeners of all steps that they have methods for, from now on."""
        for listener in listeners:
            for number in heard_by(listener):
                self._listeners[number].append(listener)

    def observe(self, observer: Callable[[Shown], None]) -> None:
        """Show somebody every step, as a trace shows it."""
        if not self._trace.observers:
            for number in sorted({kind.number for kind in KINDS if kind.is_traced}):
                self._listeners[number].append(self._trace)
        self._trace.observers.append(observer)

    @property
    def armed(self) -> dict[str, dict[Callable[[int], None], int]]:
        """Who waits for which of `sim.history.steps.MOMENTS`; empty while nobody does."""
        return self._moments.armed

    def arm(self, moment: str, waits: Callable[[int], None], occurrence: int = 1) -> None:
        """Let somebody know, once, of a moment, the next one of its kind or a later one: the broker where it happened,
        0 where that is no broker's. It ends with `disarm`.

        Called from within the protocol's own step, so it may only put something on the kernel's queue.
        """
        number = _OF_MOMENTS[moment].number
        if self._moments not in self._listeners[number]:
            self._listeners[number] = [self._moments, *self._listeners[number]]
        self._moments.arm(moment, occurrence, waits)

    def disarm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Take that back; nothing if it was done."""
        if waits in self.armed.get(moment, ()):
            self._moments.disarm(moment, waits)
            if moment not in self.armed:
                kind = _OF_MOMENTS[moment]
                if self.armed.keys().isdisjoint(kind.moments):
                    # Another list: the one that there was may be gone through at this moment.
                    others = [listener for listener in self._listeners[kind.number] if listener is not self._moments]
                    self._listeners[kind.number] = others
