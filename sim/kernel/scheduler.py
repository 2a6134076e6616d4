"""The scheduler: a queue of events in integer microseconds. SimPy processes run on the same queue.

An entry of the queue consists of a number (time, then tie-breaker), a gate and an event. The event is a message, a
timer of a node, or any other call (`Call`); its class says whether it ends elided exchanges, and whether it waits while
a partition is unusable. The gate says whether the event still has a receiver: a connection's gate closes when a process
ends or the link is cut, a process's own gate when the process ends. A closed gate drops events; or, while its process
is paused or its partition is unusable, it holds them back, and they are delivered in order when the process resumes.

The queue is a sorted list with the next entry last. A run has few pending entries and most new ones are due soon, so
finding their place costs less than a heap. In compiled code it is a list of objects, searched here; in plain Python it
is a list of numbers, which `bisect` searches, and a dict from each number to its gate and event.

Scripts are SimPy processes; their events enter the queue through `Environment.schedule`.

Time never goes back: scheduling an event in the past raises `PastEventError`. Ties are broken first-in first-out.
`ShuffledKernel` breaks them at random and `PriorityKernel` by drifting priorities of the receivers (PCT), both by seed.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import simpy
from simpy.events import NORMAL
from simpy.events import Event as SimPyEvent

from sim.kernel.build import COMPILED
from sim.kernel.streams import Stream

if TYPE_CHECKING:
    from mypy_extensions import i64

Handler = Callable[[Any], object]


def noop(*_: object, **__: object) -> None:
    """No-op callback."""


class Event:
    """Something that happens at a scheduled time.

    Attributes:
        elision_safe: whether the kernel leaves its node's elided exchanges alone when the event happens. If the event
            changes something that must end them (a HW, an ISR, the metadata log), its handler ends them.
        needs_partition: whether the event reads or changes a broker's partition.
    """

    # Attributes, not methods, because reading one costs less. In compiled code each event has fields for them.
    __slots__ = ()
    elision_safe = False
    needs_partition = False

    def happen(self, gate: Gate, /) -> None:
        """Handle the event, which is due now, at the gate that it was scheduled through."""
        raise NotImplementedError

    def has_to_wait(self, *, registered: bool) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the event is held back while the partition of its broker, registered or not, is unusable."""
        return self.needs_partition

    def writes_to(self, names: Container[str]) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the event is held back while the log directory of these partitions does not answer, because it writes
        there.
        """
        return False

    def needs(self, names: Container[str]) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the event is held back while these of its broker's partitions are unusable, and others are not."""
        return self.needs_partition


class Call(Event):
    """Calls a handler with one argument: for events without a class of their own."""

    __slots__ = ("argument", "handler")

    def __init__(self, handler: Handler, argument: Any) -> None:
        self.handler = handler
        self.argument = argument

    def happen(self, _: Gate) -> None:
        self.handler(self.argument)


class IdleCall(Call):
    """A call that is usually a no-op, and so elision-safe."""

    __slots__ = ()
    elision_safe = True


class Backlog:
    """Events that a closed gate holds back, with their gates, in the order in which they were due."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: deque[tuple[Gate, Event]] = deque()

    def put(self, gate: Gate, event: Event) -> None:
        """Hold a due event back. A subclass may let some events happen at once instead."""
        self.events.append((gate, event))


class Receiver:
    """Where messages arrive: a node.

    Attributes:
        handlers: in plain Python, the handlers of frequent types of messages, which are called instead of `receive`.
    """

    __slots__ = ()
    handlers: ClassVar[dict[type[Event], Callable[[Any, Any], None]]] = {}

    def receive(self, message: Event) -> None:
        """Handle an arriving message."""
        raise NotImplementedError


NO_RECEIVER: Final = Receiver()


class Gate:
    """Decides, when an event is due, whether it happens, is held back or is dropped.

    Attributes:
        open: whether events happen.
        held: the backlog that takes events while the gate is closed; None: they are dropped.
        owner: the receiving node.
        source: the sending node, which is the owner for its own timers; 0: none.
        elided: the receiving node's elided exchanges.
        receiver: where messages arrive, if the gate is a connection.
    """

    __slots__ = ("elided", "held", "open", "owner", "receiver", "source")

    def __init__(self, owner: int = -1) -> None:
        self.open = True
        self.held: Backlog | None = None
        self.owner = owner
        self.source = max(owner, 0)
        self.elided: list[ElidedExchange] = []
        self.receiver = NO_RECEIVER


class ElidedExchange:
    """An exchange of two nodes that is not simulated while nothing else happens at the gate of either of them."""

    __slots__ = ("_one", "_other")

    def __init__(self, one: Gate, other: Gate) -> None:
        self._one = one
        self._other = other

    def begin(self) -> None:
        """Stop simulating the exchange."""
        self._one.elided.append(self)
        self._other.elided.append(self)

    def end(self, now_us: int) -> None:
        """Resume simulating the exchange."""
        self._one.elided.remove(self)
        self._other.elided.remove(self)
        self.settle(now_us)

    def settle(self, now_us: int) -> None:
        """Compute the state of the exchange now: apply the effects so far, and schedule the message in flight."""
        raise NotImplementedError


class Entry:
    """An entry of the queue. Compiled code reads its number without allocating; entries are reused after their events
    have happened.

    Attributes:
        number: its time, and in the lower bits the tie-breaker.
        gate: the gate of its event.
        event: its event.
        used: the next entry in the linked list of entries whose events have happened.
    """

    __slots__ = ("event", "gate", "number", "used")

    def __init__(self, number: int, gate: Gate, event: Event) -> None:
        self.number = number
        self.gate = gate
        self.event = event
        self.used: Entry | None = None


ALWAYS: Final = Gate()
TASK: Final = 0
"""Tie key of `Kernel.schedule_task`."""
FIRST: Final = 1
"""Tie key of SimPy's URGENT events, and of `Kernel.schedule_first`."""
CALL: Final = 2
"""Tie key of a call."""
_RANK: Final = 24
"""Number of bits of an entry's sequence number; no run makes more entries than fit."""
_NUMBER: Final = (1 << _RANK) - 1
_SOURCES: Final = 127
"""Mask of the source node in the number of a `TASK` or `FIRST` entry: brokers are below 100, controllers from 100,
clients from 1001.
"""
_TIE: Final = _RANK + 7
"""Shift of the tie key: below it the source node and the sequence number."""
_CALL_AFTER_FIRST: Final = (CALL - FIRST) << _TIE
SHIFT: Final = _TIE + 2
"""Number of bits below the time: tie key, source node, sequence number. Numbers of the first 536 s fit 62 bits."""
AUDIT_EVENTS: Final = 1_024
"""Events from one call of `Kernel.audit` to the next."""
_LAST: Final = 3
"""Tie key of the end of `Kernel.run_until`: after everything else of that time."""


class PastEventError(Exception):
    """An event was scheduled in the past. The message names the handler, the requested time and the current time."""


def refuse(at_us: int, now_us: int, gate: Gate, event: Event) -> NoReturn:
    """Refuse to schedule an event in the past, by a PastEventError."""
    asked: object = event
    if isinstance(event, Call):
        asked = event.handler
    name = getattr(asked, "__qualname__", None) or type(asked).__qualname__
    node = f" of node {gate.owner}" if gate.owner >= 0 else ""
    raise PastEventError(f"{name}{node} asks to be called at {at_us} us, which is before now ({now_us} us)")


class BudgetError(Exception):
    """A run has used up one of its budgets, which the setting `key` limits. `when` is the time, as text."""

    def __init__(self, key: str, budget: int, what: str, when: str) -> None:
        super().__init__(f"{key}: {budget:,} {what} by {when}")


class ObservedEvent(Event):
    """Wraps an event to record what it causes.

    Attributes:
        number: sequence number of its entry.
        gate: the gate it was scheduled through.
        at_us: when it was due.
        made_us: when it happened, which is after `at_us` if a gate held it back; -1: it has not happened.
        first: sequence number of the first entry that it scheduled.
        end: the sequence number after the last of those.
    """

    __slots__ = ("_kernel", "_watcher", "at_us", "end", "event", "first", "gate", "made_us", "number")

    def __init__(self, kernel: Kernel, watcher: Watcher, number: int, gate: Gate, event: Event) -> None:
        self._kernel = kernel
        self._watcher = watcher
        self.event = event
        self.number = number
        self.gate = gate
        self.at_us = kernel.now_us
        self.made_us = self.first = self.end = -1

    def has_to_wait(self, *, registered: bool) -> bool:
        return self.event.has_to_wait(registered=registered)

    def writes_to(self, names: Container[str]) -> bool:
        return self.event.writes_to(names)

    def needs(self, names: Container[str]) -> bool:
        return self.event.needs(names)

    def happen(self, gate: Gate) -> None:
        kernel, watcher = self._kernel, self._watcher
        around = watcher.current
        watcher.current = self
        watcher.calls.append(self)
        self.made_us = kernel.now_us
        self.first = kernel.number & _NUMBER
        try:
            if gate.elided and not self.event.elision_safe:
                kernel.end_elision(gate)
            self.event.happen(gate)
        finally:
            self.end = kernel.number & _NUMBER
            watcher.current = around


class Watcher:
    """Records each event of a kernel (`calls`) and what it caused: the entries scheduled while it happened.

    Attributes:
        dropped: events whose receiver had ended or whose link was cut.
    """

    def __init__(self) -> None:
        self.current: ObservedEvent | None = None
        self.calls: list[ObservedEvent] = []
        self.dropped: list[ObservedEvent] = []


class _Stop(Exception):  # noqa: N818 - not an error: it unwinds the run loop
    pass


class Kernel:
    """Runs events in time order, first-in first-out at equal times.

    Args:
        event_budget: events after which `run_until` gives up.

    Attributes:
        now_us: simulated time in microseconds.
        events: entries of the queue processed so far.
        number: tie key and sequence number of the next entry.
        watcher: the watcher of each event, if any.
        audit: called after every `AUDIT_EVENTS` events; it may raise a `BudgetError`.
        relives: whether it runs events of the past (`relive`).
        is_plain: whether `schedule` breaks ties by sequence number only, so that callers may `push` entries themselves.
        numbers: in plain Python, the numbers of the entries, negative, so that the next one is last.
        scheduled: in plain Python, gate and event of each of these numbers.
    """

    def __init__(self, event_budget: int = 2_000_000) -> None:
        self.now_us = 0
        self.events = 0
        self.watcher: Watcher | None = None
        self.audit: Callable[[], None] | None = None
        self._budget = event_budget
        self._shift = SHIFT
        self._last = _LAST
        if COMPILED:
            self._queue: list[Entry] = []
            """The next entry last; see the module."""
            self._used: Entry | None = None
            """The chain of entries whose events have happened."""
        else:
            self.numbers: list[int] = []
            self.scheduled: dict[int, tuple[Gate, Event]] = {}
        self.is_plain = type(self) is Kernel
        self.relives = False
        self.number = CALL << _TIE

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        """Schedule an event; it happens if the gate is open at that time. This and every other method that schedules
        raise PastEventError.
        """
        if at_us < self.now_us:
            refuse(at_us, self.now_us, gate, event)
        number = self.number
        self.number = number + 1
        if COMPILED:
            self.push((at_us << SHIFT) + number, gate, event)
        else:  # `push` without the call.
            number = -number - (at_us << SHIFT)
            self.scheduled[number] = gate, event
            insort(self.numbers, number)

    def push(self, number: int, gate: Gate, event: Event) -> None:
        """Insert an entry with that number. `schedule` calls this; bulk schedulers may call it directly."""
        if not COMPILED:
            self.scheduled[-number] = gate, event
            insort(self.numbers, -number)
            return
        entry = self._used
        if entry is not None:
            self._used = entry.used
            entry.number = number
            entry.gate = gate
            entry.event = event
        else:
            entry = Entry(number, gate, event)
        queue = self._queue
        if not queue or queue[-1].number > number:
            queue.append(entry)  # Two of five entries are due next when they are pushed.
            return
        low: i64 = 0
        high: i64 = len(queue) - 1
        while low < high:
            middle = (low + high) >> 1
            if queue[middle].number > number:
                low = middle + 1
            else:
                high = middle
        queue.insert(low, entry)

    def call_at(self, at_us: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """Schedule `handler(argument)`; see `schedule`."""
        self.schedule(at_us, gate, Call(handler, argument))

    def schedule_first(self, at_us: int, gate: Gate, event: Event) -> None:
        """Schedule an event that may be elided (`sim.environment.elision`): before other events of the same time,
        ordered by source node. Kernels with another tie-breaking or a `schedule` of their own just schedule it.
        """
        if not self.is_plain:
            self.schedule(at_us, gate, event)
            return
        if at_us < self.now_us:
            refuse(at_us, self.now_us, gate, event)
        number = self.number
        self.number = number + 1
        number += ((gate.source & _SOURCES) << _RANK) - _CALL_AFTER_FIRST
        if COMPILED:
            self.push((at_us << SHIFT) + number, gate, event)
        else:  # `push` without the call.
            number = -number - (at_us << SHIFT)
            self.scheduled[number] = gate, event
            insort(self.numbers, number)

    def schedule_task(self, at_us: int, gate: Gate, event: Event) -> None:
        """Schedule a check of a periodic task whose needless checks are not scheduled: before all other events of the
        same time, ordered by node. So its place among them does not depend on when it was scheduled. Other kernels: see
        `schedule_first`.
        """
        if self.is_plain:
            self.add(at_us, TASK, gate, event)
        else:
            self.schedule(at_us, gate, event)

    def add(self, at_us: int, tie: int, gate: Gate, event: Event) -> None:
        """`schedule` with a given tie key instead of `CALL`.

        `TASK` and `FIRST` events are ordered by source, so the order is the same with and without elision.
        """
        if at_us < self.now_us:
            refuse(at_us, self.now_us, gate, event)
        number = self.number
        self.number = number + 1
        if tie <= FIRST:
            number += (gate.source & _SOURCES) << _RANK
        self.push((at_us << self._shift) + ((tie - CALL) << _TIE) + number, gate, event)

    def stop(self) -> None:
        """End `run_until`; called from a handler."""
        raise _Stop

    def run_until(self, until_us: int) -> None:
        """Run all events up to and including a time, or until `stop`; the clock ends at that time.

        Raises:
            BudgetError: the event budget is used up.
            PastEventError: the time is in the past.
        """
        shift = self._shift
        if COMPILED:
            queue = self._queue
        else:
            pop_number, pop_event = self.numbers.pop, self.scheduled.pop
        end = Gate()
        self.add(until_us, self._last, end, Call(self._reached, None))
        made = 0
        try:
            if self.watcher is not None:
                self._run_watched(self.watcher)
            while self.events < self._budget:
                for made in range(1, self._until_audit() + 1):  # noqa: B007 - used below
                    if COMPILED:
                        entry = queue.pop()
                        entry.used = self._used
                        self._used = entry
                        gate, event = entry.gate, entry.event
                        self.now_us = entry.number >> shift
                    else:
                        number = pop_number()
                        gate, event = pop_event(number)
                        self.now_us = -number >> shift
                    if gate.open:
                        if gate.elided and not event.elision_safe:
                            self.end_elision(gate)
                        event.happen(gate)
                    elif gate.held is not None:
                        if gate.elided and not event.elision_safe:
                            self.end_elision(gate)
                        gate.held.put(gate, event)
                self.events += made
                made = 0
        except _Stop:
            return
        finally:
            end.open = False
            self.events += made
        raise BudgetError("sim.event.budget", self._budget, "events", f"{self.now_us / 1e6:.6f} s")

    def _until_audit(self) -> int:
        """Run an audit if one is due. Returns the number of events until the next, or until the budget is used up."""
        since = self.events % AUDIT_EVENTS
        if not since and self.audit is not None:
            self.audit()
        return min(AUDIT_EVENTS - since, self._budget - self.events)

    def end_elision(self, gate: Gate) -> None:
        """Resume simulating a node's elided exchanges, because an event of the node is due."""
        for exchange in gate.elided[:]:
            exchange.end(self.now_us)

    def relive(self, since_us: int, resume: Callable[[], None]) -> None:
        """Go back to a time, `resume` elided exchanges as they were then, and run what follows from that up to now.
        What is due later is scheduled.
        """
        now_us, shift = self.now_us, self._shift
        self.relives = True
        self.now_us = since_us
        if COMPILED:
            present = self._queue
            queue: list[Entry] = []
            self._queue = queue
        else:
            numbers, scheduled = self.numbers, self.scheduled
            self.numbers, self.scheduled = [], {}
        try:
            resume()
            while True:
                if COMPILED:
                    if not queue or queue[-1].number >> shift > now_us:
                        break
                    entry = queue.pop()
                    gate, event = entry.gate, entry.event
                    self.now_us = entry.number >> shift
                else:
                    if not self.numbers or -self.numbers[-1] >> shift > now_us:
                        break
                    number = self.numbers.pop()
                    gate, event = self.scheduled.pop(number)
                    self.now_us = -number >> shift
                self.events += 1
                if gate.open:
                    event.happen(gate)
        finally:
            self.now_us = now_us
            self.relives = False
            if COMPILED:
                self._queue = present
                for entry in queue:
                    self.push(entry.number, entry.gate, entry.event)
            else:
                later = self.scheduled
                self.numbers, self.scheduled = numbers, scheduled
                for number, (gate, event) in later.items():
                    self.push(-number, gate, event)

    def _run_watched(self, watcher: Watcher) -> None:
        """The loop of `run_until` with a watcher."""
        while self.events < self._budget:
            self._until_audit()
            if COMPILED:
                entry = self._queue.pop()
                number, gate, event = entry.number, entry.gate, entry.event
            else:
                number = -self.numbers.pop()
                gate, event = self.scheduled.pop(-number)
            self.events += 1
            self.now_us = number >> self._shift
            watched = ObservedEvent(self, watcher, number & _NUMBER, gate, event)
            if gate.open:
                watched.happen(gate)
            elif gate.held is not None:
                if gate.elided and not event.elision_safe:
                    self.end_elision(gate)
                gate.held.put(gate, watched)
            else:
                watcher.dropped.append(watched)

    @property
    def pending(self) -> int:
        """How many events are scheduled."""
        if COMPILED:
            return len(self._queue)
        return len(self.numbers)

    def dispose(self) -> None:
        """Drop all pending events."""
        if COMPILED:
            self._queue.clear()
            while self._used is not None:  # Released one by one: a chain would be released by recursion.
                self._used = self._used.used
        else:
            self.numbers.clear()
            self.scheduled.clear()
        self.audit = None

    def _reached(self, _: None) -> None:
        raise _Stop


class Environment(simpy.Environment):
    """Runs SimPy processes on a kernel's clock and queue."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(0)
        self._kernel = kernel

    def schedule(self, event: SimPyEvent, priority: Any = NORMAL, delay: Any = 0) -> None:
        """Process an event after a delay in us."""
        self._kernel.add(self._kernel.now_us + delay, FIRST + priority, ALWAYS, Call(_process, event))

    @property
    def now(self) -> int:
        """SimPy's name for `Kernel.now_us`."""
        return self._kernel.now_us


def _process(event: SimPyEvent) -> None:
    """Run a SimPy event's callbacks, as `simpy.Environment.step` does."""
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
    if not event._ok and not getattr(event, "_defused", False):  # noqa: SLF001 - SimPy's own protocol
        raise event._value  # noqa: SLF001


_WIDE: Final = (_TIE + 34, 1 << 33)
"""Shift of the time, and tie key of the end of `run_until`, where ties are broken by 30 random bits."""


class ShuffledKernel(Kernel):
    """Breaks ties at random."""

    def __init__(self, stream: Stream, event_budget: int = 2_000_000) -> None:
        super().__init__(event_budget)
        self._shift, self._last = _WIDE
        self._bits = stream.getrandbits

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        self.add(at_us, 1 + self._bits(30), gate, event)


class PriorityKernel(Kernel):
    """Breaks ties by a random priority of the receiver, lowered at a few random moments (PCT).

    Args:
        stream: source of random priorities and moments.
        depth: the bug depth aimed at: at depth - 1 moments a receiver gets the lowest priority.
        length: number of scheduled calls over which the moments are spread.
    """

    def __init__(self, stream: Stream, *, depth: int = 3, length: int = 4_000, event_budget: int = 2_000_000) -> None:
        super().__init__(event_budget)
        self._shift, self._last = _WIDE
        self._bits = stream.getrandbits
        self._priorities: dict[int, int] = {}
        self._calls = 0
        self._drops = {int(stream.random() * length): rank for rank in range(depth - 1)}

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        owner = gate.owner
        priority = self._priorities.get(owner)
        if priority is None:
            priority = self._priorities[owner] = 1 + self._bits(30)
        drop = self._drops.get(self._calls)
        if drop is not None:
            priority = self._priorities[owner] = (1 << 31) + drop
        self._calls += 1
        self.add(at_us, priority, gate, event)
