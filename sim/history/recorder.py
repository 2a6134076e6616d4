"""Records the steps of the protocol, in the digest, and passes them to listeners.

Listeners receive steps synchronously and in order, and must not change anything. Listeners of the same step are called
in order of attachment, except that moments come first and traces last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

from sim.history.availability import Availability
from sim.history.coverage import Coverage
from sim.history.history import History
from sim.history.metrics import Counts, Metrics
from sim.history.steps import KINDS, METHODS, Listener, Refused, Step, StepKind, Truncate, heard_by
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
    """Passes every step to observers, as a trace shows it."""

    def __init__(self) -> None:
        self.observers: list[Callable[[Shown], None]] = []

    def on_step(self, step: Step) -> None:
        for fields in step.shown():
            entry = {"t": step.at_us, "step": step.kind.name, **fields}
            for observer in self.observers:
                observer(entry)


class _Moments(Listener):
    """Calls back when an awaited occurrence of a moment happens; `armed`: moment -> callback -> number of the
    occurrence.
    """

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
        """Cancel a callback."""
        waiting = self.armed[moment]
        due = moment, waiting.pop(waits)
        if not waiting:
            del self.armed[moment]
        if due in self._due:
            self._due[due].pop(waits, None)
            if not self._due[due]:
                del self._due[due]

    def on_step(self, step: Step) -> None:
        for moment, broker in step.moments():
            count = self._counts[moment] = self._counts.get(moment, 0) + 1
            for waits in self._due.pop((moment, count), ()):
                waits(broker)


class Recorder:
    """Records the steps of one run; `history` is what verdicts are based on."""

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
        """Record a step; raises BudgetError if the record budget is used up."""
        kind = step.kind
        step.at_us = now_us = self._kernel.now_us
        if kind.has_records:
            self._budget.take(step.records, now_us)
        code = kind.code
        if code >= 0:
            # Packed in place: appending bytes objects to the buffer costs twice as much.
            used = self._used
            _PACK_INTO(self._buffer, used, now_us, code, step.broker, step.epoch, step.offset, step.other)
            used += _STEP_BYTES
            if used == _BUFFER_BYTES:
                self._hash.update(self._buffer)
                used = 0
            self._used = used
        if kind.kept:
            self._kept.append(step)
        listeners = self._listeners[kind.number]
        if listeners:
            step.tell(listeners)

    def truncated(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        """Record a truncation; repeated truncations that remove nothing are recorded once."""
        if not removed:
            place = partition.log.leo, partition.leader_epoch
            if self._nothing_removed.get(broker) == place:
                return
            self._nothing_removed[broker] = place
        self.record(Truncate(broker, partition, removed))

    def refused(self, request: ProduceRequest, error: str) -> None:
        """Record that a producer received an error for a batch."""
        is_new = self._refusals.get(request.first_id) != error
        self._refusals[request.first_id] = error
        self.record(Refused(request, error, is_new=is_new))

    @property
    def size(self) -> int:
        """Number of objects kept of the run."""
        findings = self.history.findings
        return len(self._kept) + len(findings.violations) + len(findings.warnings) + self.metrics.size

    # Listeners.

    def attach(self, listeners: Sequence[Listener]) -> None:
        """Attach listeners; from now on they receive the steps that they have methods for."""
        for listener in listeners:
            for number in heard_by(listener):
                self._listeners[number].append(listener)

    def attach_to(self, kinds: Iterable[StepKind], listener: Listener) -> None:
        """Attach a listener to some kinds of steps; methods that it does not override lead to `Listener.on_step`."""
        for number in sorted({kind.number for kind in kinds}):
            self._listeners[number].append(listener)

    def observe(self, observer: Callable[[Shown], None]) -> None:
        """Pass every step to an observer, as a trace shows it."""
        if not self._trace.observers:
            for number in sorted({kind.number for kind in KINDS if kind.is_traced}):
                self._listeners[number].append(self._trace)
        self._trace.observers.append(observer)

    @property
    def armed(self) -> dict[str, dict[Callable[[int], None], int]]:
        """Callbacks by moment (`sim.history.steps.MOMENTS`); empty if there are none."""
        return self._moments.armed

    def arm(self, moment: str, waits: Callable[[int], None], occurrence: int = 1) -> None:
        """Call back once at an occurrence of a moment, the next or a later one, with the broker where it happened (0 if
        none). `disarm` cancels it.

        The callback runs within the protocol's step, so it may only schedule events.
        """
        number = _OF_MOMENTS[moment].number
        if self._moments not in self._listeners[number]:
            self._listeners[number] = [self._moments, *self._listeners[number]]
        self._moments.arm(moment, occurrence, waits)

    def disarm(self, moment: str, waits: Callable[[int], None]) -> None:
        """Cancel a callback of `arm`; a no-op if it was called or cancelled."""
        if waits in self.armed.get(moment, ()):
            self._moments.disarm(moment, waits)
            if moment not in self.armed:
                kind = _OF_MOMENTS[moment]
                if self.armed.keys().isdisjoint(kind.moments):
                    # A new list, because the old one may be being iterated.
                    others = [listener for listener in self._listeners[kind.number] if listener is not self._moments]
                    self._listeners[kind.number] = others
