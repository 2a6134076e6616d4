"""Records the steps of the protocol: adds them to the digest, and passes them to listeners.

Listeners receive steps synchronously and in order, and must not change the simulation. Listeners of the same step are
called in order of attachment, except that callbacks of moments come first and traces last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from sim.history.availability import Availability
from sim.history.coverage import Coverage
from sim.history.digest import PACK, PACK_TWO, STEPS, Digest
from sim.history.history import History
from sim.history.metrics import Counts, Metrics
from sim.history.steps import (
    KINDS,
    METHODS,
    OF_REPLICAS,
    UNREGISTERED,
    End,
    Fact,
    Listener,
    Refused,
    Registered,
    SessionEnd,
    Start,
    Step,
    StepKind,
    Truncate,
    places_by_method,
)
from sim.history.trace import Shown
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Kernel
from sim.protocol.batch import Batch
from sim.protocol.messages import ProduceRequest
from sim.protocol.replica.partition import Partition

_OF_FURTHER: Final = 255
"""Marks an entry of the digest that is no step: it has the index of the partition that the next step is about, if that
is not the first.
"""
_NOBODY: Final[list[Listener]] = []
"""The listeners of a step that has none; stays empty. A recorder of each partition would have many such lists."""
_OF_MOMENTS: Final = {moment: kind for kind in KINDS for moment in kind.moments}


class _Trace(Listener):
    """Passes every step to observers, as a trace shows it. `named` is the field that names the partition, if it is not
    the first one.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        self.observers: list[Callable[[Shown], None]] = []
        self.named = named

    def on_step(self, step: Step) -> None:
        for fields in step.shown():
            entry = {"t": step.at_us, "step": step.kind.name, **self.named, **fields}
            for observer in self.observers:
                observer(entry)


class _TraceOfAll(_Trace):
    """The part of a trace of all partitions that one recorder has."""

    of_cluster: ClassVar[bool] = True


class _Moments(Listener):
    """Calls back at the awaited occurrence of a moment; `armed`: moment -> callback -> number of that occurrence."""

    of_cluster: ClassVar[bool] = True

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
    """Records the steps of one run; verdicts are based on its `history`.

    A run with several partitions has a recorder for each of them, with its own history. They share digest, record
    budget and coverage. Coverage listens to the steps of the first partition only.

    Args:
        record_budget: ``sim.record.budget``.
        first: the recorder of the first partition, if this one is for another (`add_partition`).
        name: the partition.

    Attributes:
        name: the partition.
        further: the recorders of the partitions besides the first, also of those that were deleted.
        closed: whether its partition was deleted, so that its history has ended.
    """

    def __init__(
        self, kernel: Kernel, record_budget: int = 1_000_000, *, first: Recorder | None = None, name: str = ""
    ) -> None:
        self.history: History = History(record_budget) if first is None else History(budget=first.history.budget)
        self.name = name
        self.further: dict[str, Recorder] = {}
        self.closed = False
        self._everywhere: list[Callable[[Shown], None]] = []
        self._observed: list[Callable[[str], Callable[[Shown], None]]] = []
        self._first = first
        self._place = 0 if first is None else len(first.further) + 1
        self._kept = self.history.steps
        self._kernel = kernel
        self._budget = self.history.budget
        self._digest: Digest = Digest() if first is None else first.shared_digest
        if not COMPILED:
            self._packed = self._digest.packed
        self._listeners: list[list[Listener]] = [_NOBODY] * len(METHODS)
        self._trace = _TraceOfAll({} if first is None else {"partition": name})
        self._alone = _Trace({})
        self._moments = _Moments()
        self._nothing_removed: dict[int, tuple[int, int]] = {}
        self._refusals: dict[int, str] = {}
        self.coverage: Coverage = Coverage(kernel) if first is None else first.coverage
        self.availability = Availability()
        self.metrics = Metrics()
        self.counts = Counts()
        history = self.history
        if first is None:
            self.attach([self.coverage])
        self.attach([history.clients, history.commits, history.records, self.availability, self.metrics, self.counts])

    def add_partition(self, name: str) -> Recorder:
        """The recorder of another partition."""
        recorder = self.further[name] = Recorder(self._kernel, first=self, name=name)
        for observer in self._everywhere:
            recorder.observe(observer, everywhere=True)
        for observer_of in self._observed:
            recorder.observe(observer_of(name))
        return recorder

    def catch_up(self, late: Recorder) -> None:
        """Pass the steps so far that concern all partitions to the recorder of a partition that is created late."""
        without_replica: set[int] = set()
        for step in self._kept:
            if isinstance(step, End):
                if step.kind in OF_REPLICAS:
                    if not step.was_down:
                        without_replica.add(step.broker)
                    continue
                was_down = step.was_down and step.broker not in without_replica
                without_replica.discard(step.broker)
                past = End(step.broker, step.kind, [], unclean=step.unclean, was_down=was_down)
                past.at_us = step.at_us
                late.hear(past)
            elif isinstance(step, Fact):
                if step.kind is UNREGISTERED or not step.broker:
                    late.hear(step)
            elif isinstance(step, Start | Registered | SessionEnd):
                late.hear(step)

    def close(self) -> None:
        """End the history of a partition, because its topic was deleted; later steps are only added to the digest.

        Steps of the whole cluster still pass the recorder of the first partition, for the listeners to which they
        matter.
        """
        self.closed = True
        if self._place:
            self._kept = []
            self._listeners = [_NOBODY] * len(METHODS)
            return
        self._kept = self._kept.copy()  # For `catch_up`.
        kept = [[listener for listener in listeners if listener.of_cluster] for listeners in self._listeners]
        self._listeners = [listeners or _NOBODY for listeners in kept]

    @property
    def open(self) -> list[Recorder]:
        """This recorder, and those of the other partitions that were not deleted."""
        return [self, *[recorder for recorder in self.further.values() if not recorder.closed]]

    def of(self, name: str) -> Recorder:
        """The recorder of a partition."""
        return self.further.get(name, self)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._listeners.clear()
        self._trace.observers.clear()
        self._alone.observers.clear()
        self._everywhere.clear()
        self._observed.clear()
        self.armed.clear()
        self.history.dispose()
        for recorder in self.further.values():
            recorder.dispose()
        self._first = None

    @property
    def shared_digest(self) -> Digest:
        """The digest of all partitions."""
        return self._digest

    def digest(self) -> str:
        """Hash of all steps so far (32 hex digits)."""
        return self._digest.hexdigest()

    def record(self, step: Step) -> None:
        """Record a step; raises BudgetError if the record budget is used up."""
        kind = step.kind
        step.at_us = now_us = self._kernel.now_us
        if kind.has_records:
            budget = self._budget
            budget.left -= step.records  # `RecordBudget.take` without the call.
            if budget.left < 0:
                budget.end(now_us)
        code = kind.code
        if code >= 0:
            place = self._place
            if COMPILED:
                if place:
                    self._digest.add(now_us, _OF_FURTHER, place, 0, 0, 0)
                self._digest.add(now_us, code, step.broker, step.epoch, step.offset, step.other)
            else:
                packed = self._packed
                if place:
                    packed.append(
                        PACK_TWO(
                            now_us,
                            _OF_FURTHER,
                            place,
                            0,
                            0,
                            0,
                            now_us,
                            code,
                            step.broker,
                            step.epoch,
                            step.offset,
                            step.other,
                        )
                    )
                else:
                    packed.append(PACK(now_us, code, step.broker, step.epoch, step.offset, step.other))
                if len(packed) >= STEPS:
                    self._digest.flush()
        if kind.kept:
            self._kept.append(step)
        listeners = self._listeners[kind.number]
        if listeners:
            step.tell(listeners)

    def record_for_all(self, step: Step) -> None:
        """Record a step of a process or the control plane, which concerns all partitions."""
        self.record(step)
        for recorder in self.further.values():
            if not recorder.closed:
                recorder.hear(step)

    def hear(self, step: Step) -> None:
        """Receive a step that was recorded for all partitions: keep it and pass it to listeners, but not to the trace,
        which has it from the first partition.
        """
        kind = step.kind
        if kind.kept:
            self._kept.append(step)
        listeners = self._listeners[kind.number]
        if self._trace.observers and self._place:
            listeners = [listener for listener in listeners if listener is not self._trace]
        if listeners:
            step.tell(listeners)

    def truncated(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        """Record a truncation; if it removes nothing, like the last one at this LEO and epoch, it is not repeated."""
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
        size = len(self._kept) + len(findings.violations) + len(findings.warnings) + self.metrics.size
        for recorder in self.further.values():
            size += recorder.size
        return size

    # Listeners.

    def attach(self, listeners: Sequence[Listener]) -> None:
        """Attach listeners; from now on they receive the steps for which they override a method."""
        by_number = self._listeners
        every = list(listeners)  # Compiled code reads a list faster than a sequence.
        for number, places in places_by_method(every):
            hearing = by_number[number]
            if hearing is _NOBODY:
                by_number[number] = hearing = []
            for place in places:
                hearing.append(every[place])

    def _attach(self, number: int, listener: Listener) -> None:
        listeners = self._listeners[number]
        if listeners is _NOBODY:
            self._listeners[number] = [listener]
        else:
            listeners.append(listener)

    def attach_to(self, kinds: Iterable[StepKind], listener: Listener) -> None:
        """Attach a listener to these kinds of steps; `on_step` receives those for which it overrides no method."""
        for number in sorted({kind.number for kind in kinds}):
            self._attach(number, listener)

    def observe(self, observer: Callable[[Shown], None], *, everywhere: bool = False) -> None:
        """Pass every step of this partition, or with `everywhere` of all partitions, to an observer, in the form of a
        trace.
        """
        trace = self._trace if everywhere else self._alone
        if not trace.observers:
            for number in sorted({kind.number for kind in KINDS if kind.is_traced}):
                self._attach(number, trace)
        trace.observers.append(observer)
        if everywhere:
            self._everywhere.append(observer)
        for recorder in self.further.values() if everywhere else ():
            recorder.observe(observer, everywhere=True)

    def observe_each(self, observer_of: Callable[[str], Callable[[Shown], None]]) -> None:
        """Pass every step of each partition to an observer of its own, which `observer_of` makes of the name of the
        partition: now, or when the partition is created.
        """
        self.observe(observer_of(self.name))
        for name, recorder in self.further.items():
            recorder.observe(observer_of(name))
        self._observed.append(observer_of)

    @property
    def armed(self) -> dict[str, dict[Callable[[int], None], int]]:
        """Callbacks by moment (`sim.history.steps.MOMENTS`); empty if there are none."""
        return self._moments.armed

    def arm(self, moment: str, waits: Callable[[int], None], occurrence: int = 1) -> None:
        """Call back once, at the next or a later occurrence of a moment, with the broker where it happened (0: none).
        `disarm` cancels it.

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
                    # A new list, because `record` may be iterating over the old one.
                    others = [listener for listener in self._listeners[kind.number] if listener is not self._moments]
                    self._listeners[kind.number] = others
