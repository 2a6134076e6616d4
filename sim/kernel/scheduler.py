"""The scheduler: integer microseconds, and a queue of events; SimPy's processes run on the same queue.

An entry of the queue is a number, of its time and what orders it among others of that time, a gate and an event. The
event is a message, a timer of a node, or a call of anything else (`Call`); its class says what elision and waiting have
to know about it. The gate says whether the event still has anybody to reach: a connection whose process died or whose
link is cut, the life of a process that set a timer. The queue is a sorted list, the next entry last: of the few entries
that there are at a time, most are made for soon, so they are put in place for less than a heap costs.
A closed gate may hold events back instead of dropping them: its process is paused, or waits for something, and makes
them up when it goes on.
SimPy's own events and processes, which scripts are, come through `Environment.schedule`.

Time never goes back: whoever asks for a time before now gets a `PastEventError`.
Ties are broken first-in first-out. `ShuffledKernel` breaks them at random and `PriorityKernel` by drifting priorities
of the receivers (PCT), both by seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import simpy
from simpy.events import NORMAL
from simpy.events import Event as SimPyEvent

from sim.kernel.streams import Stream

if TYPE_CHECKING:
    from mypy_extensions import i64

Handler = Callable[[Any], object]


class Event:
    """Something that happens at a time.

    Attributes:
        elision_safe: the exchanges of its node that are not simulated may go on. It, or what it changes (a HW, an ISR,
            the metadata log), ends them itself.
        needs_partition: it reads or changes the partition of a broker.
    """

    # Class attributes, and fields of each event once compiled: read for less than a method is called.
    __slots__ = ()
    elision_safe = False
    needs_partition = False

    def happen(self, gate: Gate, /) -> None:
        """Its time has come.

        Args:
            gate: what it came through.
        """
        raise NotImplementedError

    def has_to_wait(self, *, registered: bool) -> bool:  # noqa: ARG002 - for subclasses
        """Whether it waits while its broker's partition cannot be used.

        Args:
            registered: whether the broker is.
        """
        return self.needs_partition


class Call(Event):
    """Calls something with an argument, for what no class of events was made."""

    __slots__ = ("argument", "handler")

    def __init__(self, handler: Handler, argument: Any) -> None:
        self.handler = handler
        self.argument = argument

    def happen(self, _: Gate) -> None:
        """See `Event.happen`."""
        self.handler(self.argument)


class IdleCall(Call):
    """A call that mostly finds nothing to do."""

    __slots__ = ()
    elision_safe = True


class Backlog:
    """Events that a closed gate holds back.

    Attributes:
        events: what was held back, with the gates that it came through, in order.
    """

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: deque[tuple[Gate, Event]] = deque()

    def put(self, gate: Gate, event: Event) -> None:
        """An event is due. A subclass may let some happen at once, and hold back the others."""
        self.events.append((gate, event))


class Gate:
    """Whether events scheduled through it still happen.

    Attributes:
        open: they do.
        held: where a closed gate puts them; None: they are dropped.
        owner: the node that receives them.
        source: the node that they come from, itself for its own; 0: none.
        elided: exchanges of the receiving node that are not simulated at present.
    """

    __slots__ = ("elided", "held", "open", "owner", "source")

    def __init__(self, owner: int = -1) -> None:
        self.open = True
        self.held: Backlog | None = None
        self.owner = owner
        self.source = max(owner, 0)
        self.elided: list[ElidedExchange] = []

    def receive(self, message: Event) -> None:
        """A message arrives through this connection."""
        raise NotImplementedError


class ElidedExchange:
    """What goes on between two nodes and is not simulated, as long as nothing else happens at either of them.

    Args:
        ends: a gate of each.
    """

    __slots__ = ("_ends",)

    def __init__(self, ends: tuple[Gate, Gate]) -> None:
        self._ends = ends

    def begin(self) -> None:
        """Stop simulating it."""
        for end in self._ends:
            end.elided.append(self)

    def end(self, now_us: int) -> None:
        """Simulate it again."""
        for end in self._ends:
            end.elided.remove(self)
        self.settle(now_us)

    def settle(self, now_us: int) -> None:
        """Work out where it is by now: what came of it so far, and what is under way."""
        raise NotImplementedError


class Entry:
    """An entry of the queue. (An object whose number compiled code reads without making an object of it; it is used
    again once its event has happened.)

    Attributes:
        number: of its time, and of what orders it among others of that time.
        gate: what its event comes through.
        event: what happens.
    """

    __slots__ = ("event", "gate", "number")

    def __init__(self, number: int, gate: Gate, event: Event) -> None:
        self.number = number
        self.gate = gate
        self.event = event


ALWAYS: Final = Gate()
FIRST: Final = 0
"""Tie key of SimPy's URGENT events, and of calls that come before others."""
CALL: Final = 1
"""Tie key of a call."""
_RANK: Final = 24
"""Bits of the number of an entry; no run has as many."""
_NUMBER: Final = (1 << _RANK) - 1
_SOURCE: Final = 21
"""Above the bits of a number that no run within its budget of events exceeds: the source of what is `FIRST`."""
_SOURCES: Final = 7
SHIFT: Final = _RANK + 2
"""Bits of what orders entries of one time: tie key and number."""
AUDIT_EVENTS: Final = 1_024
"""Events between two audits of a run (`Kernel.audit`)."""
_NEAR: Final = 4
"""Entries that are looked at one by one, the next first, for the place of a new one: seven of ten belong there."""
_LAST: Final = 3
"""Tie key of the end of `Kernel.run_until`: after everything else of that time."""


class PastEventError(Exception):
    """Something was to happen before now. Says who asked to be called, for when, and when that was."""


def refuse(at_us: int, now_us: int, gate: Gate, event: Event) -> NoReturn:
    """Refuse an event before now.

    Raises:
        PastEventError: always.
    """
    asked: object = event
    if isinstance(event, Call):
        asked = event.handler
    name = getattr(asked, "__qualname__", None) or type(asked).__qualname__
    node = f" of node {gate.owner}" if gate.owner >= 0 else ""
    raise PastEventError(f"{name}{node} asks to be called at {at_us} us, which is before now ({now_us} us)")


class BudgetError(Exception):
    """A run did, or holds, as much as it may.

    Args:
        key: the setting that says how much that is.
        budget: its value.
        what: what is counted.
        when: what it was enough for, after "by".
    """

    def __init__(self, key: str, budget: int, what: str, when: str) -> None:
        super().__init__(f"{key}: {budget:,} {what} by {when}")


class ObservedEvent(Event):
    """An event that is watched: it happens in the place of the other one.

    Args:
        kernel: whose event it is.
        watcher: who is told.
        number: see below.
        gate: see below.
        event: see below.

    Attributes:
        number: of its entry, in the order in which entries were made.
        gate: what it came through.
        event: what happens.
        at_us: when it was due.
        made_us: when it happened, later than it was due where a gate held it back; -1: it did not.
        first: number of the first entry that it made itself.
        end: the first number after those.
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
        """See `Event.has_to_wait`."""
        return self.event.has_to_wait(registered=registered)

    def happen(self, gate: Gate) -> None:
        """See `Event.happen`."""
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
    """Is told of each event of a kernel, and so of what causes what: an entry is made while an event happens.

    Attributes:
        current: the event that happens.
        calls: all that happened, in their order.
        dropped: those that nobody was there for, or whose link was cut.
    """

    def __init__(self) -> None:
        self.current: ObservedEvent | None = None
        self.calls: list[ObservedEvent] = []
        self.dropped: list[ObservedEvent] = []


class _Stop(Exception):  # noqa: N818 - not an error: it unwinds the run loop
    pass


class Kernel:
    """Lets events happen in time order, first-in first-out among equals.

    Args:
        event_budget: events after which `run_until` gives up.

    Attributes:
        now_us: simulated time in microseconds.
        events: entries of the queue processed so far.
        number: what the next entry is numbered.
        watcher: who is told of each event.
        audit: called after every `AUDIT_EVENTS` events; it may raise a `BudgetError`.
        is_plain: `schedule` does nothing but to `push` an entry of that time and the next number.
    """

    def __init__(self, event_budget: int = 2_000_000) -> None:
        self.now_us = 0
        self.events = 0
        self.watcher: Watcher | None = None
        self.audit: Callable[[], None] | None = None
        self._budget = event_budget
        self._shift = SHIFT
        self._last = _LAST
        self._queue: list[Entry] = []
        """The next one last: of the few that there are at a time, most are made for soon."""
        self._used: list[Entry] = []
        self.is_plain = type(self) is Kernel
        self.number = CALL << _RANK

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        """Let an event happen at a time, if the gate is open then.

        Raises:
            PastEventError: that time is before now; so in all ways to schedule an event.
        """
        if at_us < self.now_us:
            refuse(at_us, self.now_us, gate, event)
        number = self.number
        self.number = number + 1
        self.push((at_us << SHIFT) + number, gate, event)

    def push(self, number: int, gate: Gate, event: Event) -> None:
        """Put an entry of that number into the queue, for `schedule`; bulk schedulers may do without the rest of it."""
        if self._used:
            entry = self._used.pop()
            entry.number = number
            entry.gate = gate
            entry.event = event
        else:
            entry = Entry(number, gate, event)
        queue = self._queue
        high: i64 = len(queue)
        low: i64 = high - _NEAR
        while high > low:
            if not high or queue[high - 1].number > number:
                queue.insert(high, entry)
                return
            high -= 1
        low = 0
        while low < high:
            middle = (low + high) >> 1
            if queue[middle].number > number:
                low = middle + 1
            else:
                high = middle
        queue.insert(low, entry)

    def call_at(self, at_us: int, gate: Gate, handler: Handler, argument: Any) -> None:
        """Call `handler(argument)` at a time, if the gate is open then."""
        self.schedule(at_us, gate, Call(handler, argument))

    def schedule_first(self, at_us: int, gate: Gate, event: Event) -> None:
        """`schedule`, before other events of that time and in the order of the nodes that such events come from, for
        what elision concerns (`sim.environment.elision`); in kernels that break ties in another way, or do more in
        `schedule`, only that.
        """
        if self.is_plain:
            self.add(at_us, FIRST, gate, event)
        else:
            self.schedule(at_us, gate, event)

    def add(self, at_us: int, tie: int, gate: Gate, event: Event) -> None:
        """`schedule` with a tie key of its own, `CALL` being that of other events: for `Environment`.

        Those of `FIRST` are ordered by source, so the order is the same with and without elision.
        """
        if at_us < self.now_us:
            refuse(at_us, self.now_us, gate, event)
        number = self.number
        self.number = number + 1
        if tie == FIRST:
            number += (gate.source & _SOURCES) << _SOURCE
        self.push((at_us << self._shift) + ((tie - CALL) << _RANK) + number, gate, event)

    def stop(self) -> None:
        """End `run_until`; for use in a handler."""
        raise _Stop

    def run_until(self, until_us: int) -> None:
        """Let all events happen up to and including a time, or until `stop`; then it is that time.

        Raises:
            BudgetError: the budget is used up.
            PastEventError: that time is before now.
        """
        queue, used, shift = self._queue, self._used, self._shift
        end = Gate()
        self.add(until_us, self._last, end, Call(self._reached, None))
        made = 0
        try:
            if self.watcher is not None:
                self._run_watched(self.watcher)
            while self.events < self._budget:
                for made in range(1, self._until_audit() + 1):  # noqa: B007 - used below
                    entry = queue.pop()
                    used.append(entry)
                    gate, event = entry.gate, entry.event
                    self.now_us = entry.number >> shift
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
        """How many events there are until the next audit, or until the budget is used up; one that is due is made."""
        since = self.events % AUDIT_EVENTS
        if not since and self.audit is not None:
            self.audit()
        return min(AUDIT_EVENTS - since, self._budget - self.events)

    def end_elision(self, gate: Gate) -> None:
        """An event of a node is due: its exchanges are simulated again."""
        for exchange in gate.elided[:]:
            exchange.end(self.now_us)

    def _run_watched(self, watcher: Watcher) -> None:
        """The loop of `run_until`, telling a watcher of each event."""
        while self.events < self._budget:
            self._until_audit()
            entry = self._queue.pop()
            gate, event = entry.gate, entry.event
            self.events += 1
            self.now_us = entry.number >> self._shift
            is_first = (entry.number >> _RANK) & _LAST == FIRST
            number = entry.number & (((1 << _SOURCE) - 1) if is_first else _NUMBER)
            watched = ObservedEvent(self, watcher, number, gate, event)
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
        return len(self._queue)

    def dispose(self) -> None:
        """Forget what has not happened yet."""
        self._queue.clear()
        self._used.clear()
        self.audit = None

    def _reached(self, _: None) -> None:
        raise _Stop


class Environment(simpy.Environment):
    """SimPy's view of a kernel: its processes wait for the same time.

    Args:
        kernel: whose time and queue it is.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(0)
        self._kernel = kernel

    def schedule(self, event: SimPyEvent, priority: Any = NORMAL, delay: Any = 0) -> None:
        """Process an event after a delay in us."""
        self._kernel.add(self._kernel.now_us + delay, priority, ALWAYS, Call(_process, event))

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


_WIDE: Final = (_RANK + 34, 1 << 33)
"""Bits, and tie key of the end, where ties are broken by 30 random bits."""


class ShuffledKernel(Kernel):
    """Breaks ties at random."""

    def __init__(self, stream: Stream, event_budget: int = 2_000_000) -> None:
        super().__init__(event_budget)
        self._shift, self._last = _WIDE
        self._bits = stream.getrandbits

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        """See `Kernel.schedule`."""
        self.add(at_us, 1 + self._bits(30), gate, event)


class PriorityKernel(Kernel):
    """Breaks ties by a random priority of the receiver, lowered at a few random moments (PCT).

    Args:
        stream: where priorities and moments are drawn from.
        depth: the bug depth aimed at: depth - 1 moments at which a receiver falls behind all others.
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
        """See `Kernel.schedule`."""
        owner = gate.owner
        priority = self._priorities.get(owner)
        if priority is None:
            priority = self._priorities[owner] = 1 + self._bits(30)
        drop = self._drops.get(self._calls)
        if drop is not None:
            priority = self._priorities[owner] = (1 << 31) + drop
        self._calls += 1
        self.add(at_us, priority, gate, event)
