"""A cluster whose every order of events can be tried: brokers, and the messages between them.

Messages take any time and overtake each other; a broker's connections end with its process. Each control plane adds its
part of a state and its events: `kraft.cluster`, `zookeeper.cluster`. A state is a number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from highwater.lab.explore import wording
from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.interning import InternTable
from highwater.lab.explore.messages import Fetch, Fetched
from sim.protocol.decisions import Decisions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from highwater.lab.explore.broker_machine import BrokerMachine, BrokerOutcome, Event, View
    from highwater.lab.explore.search import Action
    from sim.protocol.rules import Rules

_BITS: Final = 28
_MASK: Final = (1 << _BITS) - 1
_BETWEEN_BROKERS: Final = frozenset({Fetch, Fetched})
Way = tuple["Action", int]
"""An event, and the state after it."""
C = TypeVar("C", bound="ExploredControl")
B = TypeVar("B", bound="ExploredBounds")
W = TypeVar("W", bound="ExploredCluster[Any, Any]")


@dataclass(frozen=True, slots=True)
class ExploredBounds:
    """How much may happen under either control plane.

    Attributes:
        records: records that producers send in all; a refused one is not sent again.
        lags: times that a leader finds a follower to lag.
        batches: sizes that a batch may have.
        prefix: records that every broker has at first, and knows to be committed.
        strays: messages may arrive while leader and follower are in different leader epochs, and requests after the
            follower has given them up.
        brokers: brokers, all of them replicas.
    """

    records: int = 1
    lags: int = 0
    batches: tuple[int, ...] = (1,)
    prefix: int = 0
    strays: bool = True
    brokers: int = 3

    @property
    def sentence(self) -> str:
        """The bounds that differ from the defaults."""
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return ", ".join(f"{field.name.replace('_', ' ')} {getattr(self, field.name)}" for field in changed)


class ExploredControl(Protocol):
    """The control plane's part of a state, and what has happened: as far as either control plane has it."""

    @property
    def appended(self) -> int:
        """Records that producers have sent."""

    @property
    def lags(self) -> int:
        """See `ExploredBounds`."""


class Parts(NamedTuple, Generic[C]):
    """The parts of a state.

    Attributes:
        snapshots: of the brokers, in the order of their ids.
        control: the control plane's part, and what has happened.
        flights: numbers of the messages in flight, sorted.
    """

    snapshots: tuple[int, ...]
    control: C
    flights: tuple[int, ...]


class ExploredCluster(Generic[C, B]):
    """The possible events of a cluster. A state is a number.

    Args:
        rules: of brokers and controller.
        bounds: how much may happen.
    """

    kinds: ClassVar[Mapping[str, str]]
    """Kinds of violations and early warnings -> meanings."""
    violations: ClassVar[Collection[str]]
    """Kinds that end a search."""
    FAULTS: ClassVar[Collection[str]]
    """Kinds of events that the bounds count."""
    SERVES: ClassVar[str]
    """The kind of event in which a request arrives. A walk draws a kind first."""
    RECEIVES: ClassVar[str]
    """The kind of event in which a response arrives."""
    SENTENCES: ClassVar[Mapping[str, str]]
    """Kinds of events, without arrivals -> sentences."""
    step: Callable[[Any, Parts[C]], ExploredStep[Any]]
    """The class whose objects change a state."""
    machine: BrokerMachine[Any]

    def __init__(self, rules: Rules, bounds: B) -> None:
        self.bounds = bounds
        self.decide = Decisions(rules)
        self.brokers = tuple(range(1, bounds.brokers + 1))
        self.payloads = InternTable()
        self.messages = InternTable()
        self.stale: set[int] = set()
        """Numbers of stale fetches."""
        self._most_records = bounds.prefix + bounds.records
        self._snapshots = InternTable()
        self._controls = InternTable()
        self._flights = InternTable()

    # States.

    def number(self, snapshots: tuple[int, ...], control: C, flights: tuple[int, ...]) -> int:
        """The state with these parts."""
        one = self._snapshots.number(snapshots)
        two = self._controls.number(control)
        three = self._flights.number(flights)
        return one | two << _BITS | three << 2 * _BITS

    def parts(self, state: int) -> Parts[C]:
        """The parts of a state."""
        return Parts(
            self._snapshots.values[state & _MASK],
            self._controls.values[state >> _BITS & _MASK],
            self._flights.values[state >> 2 * _BITS],
        )

    def views(self, parts: Parts[C]) -> list[View]:
        """The views of the brokers."""
        views = self.machine.views
        return [views[snapshot] for snapshot in parts.snapshots]

    def is_fault(self, kind: str) -> bool:
        """See `highwater.lab.explore.walk.WalkedWorld.is_fault`."""
        return kind in self.FAULTS

    # Words.

    def event(self, action: Action) -> str:
        """An event in words."""
        kind, *details = action
        if kind in (self.SERVES, self.RECEIVES):
            return self._arrival(self.messages[details[0]])
        return self.SENTENCES[kind].format(*details)

    def _arrival(self, message: Any) -> str:
        """The arrival of a message in words."""
        return wording.arrival(self.machine, message)

    def describe(self, state: int) -> str:
        """A state in words: what the control plane has, then each broker's role, leader epoch, log and HW."""
        parts = self.parts(state)
        brokers = [f"{broker}{self._role(broker, view, parts)}" for broker, view in enumerate(self.views(parts), 1)]
        return "; ".join([self._elected(parts), *brokers])

    def _role(self, broker: int, view: View, parts: Parts[C]) -> str:
        """A broker in words."""
        raise NotImplementedError

    def _elected(self, parts: Parts[C]) -> str:
        """What the control plane has, in words."""
        raise NotImplementedError

    # What can happen under either control plane.

    def _deliveries(self, parts: Parts[C]) -> Iterator[Way]:
        snapshots, control, flights = parts
        messages, views, strays = self.messages.values, self.machine.views, self.bounds.strays
        for number in self._in_order(flights):
            message = messages[number]
            kind = type(message)
            if kind is not Fetch and kind is not Fetched:
                yield from self._arrivals(number, message, parts)
                continue
            follower, leader = snapshots[message.follower - 1], snapshots[message.leader - 1]
            if not strays and views[follower].epoch != views[leader].epoch:
                continue
            if kind is Fetch:
                if views[leader].state != UP or (
                    not message.stale and self._is_idle(follower, leader, message, control)
                ):
                    continue
                step = self.step(self, parts)
                step.serve(number)
                yield (self.SERVES, number), step.end()
            else:
                step = self.step(self, parts)
                step.receive(number)
                yield (self.RECEIVES, number), step.end()

    def _in_order(self, flights: tuple[int, ...]) -> Sequence[int]:
        """The messages in flight, in the order in which their arrivals are tried."""
        return flights

    def _arrivals(self, number: int, message: Any, parts: Parts[C]) -> Iterator[Way]:
        """A message to or from the control plane arrives."""
        raise NotImplementedError

    def _is_idle(self, follower: int, leader: int, message: Fetch, control: C) -> bool:
        """Whether request and response change nothing and lead to the same request: it may as well arrive later."""
        raise NotImplementedError

    def _leaders(self, parts: Parts[C]) -> Iterator[Way]:
        bounds, appended = self.bounds, parts.control.appended
        for broker in self.brokers:
            view = self.machine.views[parts.snapshots[broker - 1]]
            if not view.leads:
                continue
            if appended < self._most_records and len(view.isr) >= view.min_isr:
                for count in bounds.batches:
                    if appended + count <= self._most_records:
                        step = self.step(self, parts)
                        step.note_appended(count)
                        step.run(broker, ("append", appended, count))
                        yield ("append", broker, appended, count), step.end()
            yield from self._deletions(broker, view, parts)
            if parts.control.lags < bounds.lags:
                for follower in view.may_lag:
                    step = self.step(self, parts)
                    step.note_lag()
                    step.run(broker, ("lag", follower))
                    yield ("lag", broker, follower), step.end()

    def _deletions(self, broker: int, view: View, parts: Parts[C]) -> Iterable[Way]:  # noqa: ARG002
        """A leader deletes records."""
        return ()


class ExploredStep(Generic[W]):
    """A state that is being changed. Its control plane adds what its `ExploredControl` has, and sets all attributes."""

    __slots__ = ("flights", "snapshots", "world")

    world: W
    snapshots: list[int]
    flights: list[int]

    # What a control plane adds.

    def note_appended(self, count: int) -> None:
        """Producers have sent more records."""
        raise NotImplementedError

    def note_lag(self) -> None:
        """A leader has found that a follower lags."""
        raise NotImplementedError

    def run(self, broker: int, event: Event) -> BrokerOutcome:
        """Run an event at a broker, with its immediate effects."""
        raise NotImplementedError

    def end(self) -> int:
        """The resulting state."""
        raise NotImplementedError

    # Messages.

    def send(self, message: Any) -> None:
        """Send a message."""
        self.flights.append(self.world.messages.number(message))

    def serve(self, number: int) -> None:
        """A leader serves a fetch; the response sets out."""
        self.flights.remove(number)
        request = self.world.messages.values[number]
        reply = self.run(request.leader, ("serve", request.follower, request.payload)).reply
        if reply < 0:  # The ISR is settled now.
            reply = self.run(request.leader, ("answer",)).reply
        if not request.stale:
            self.send(Fetched(request.follower, request.leader, reply))

    def receive(self, number: int) -> None:
        """A response arrives at the follower."""
        self.flights.remove(number)
        response = self.world.messages.values[number]
        self.run(response.follower, ("reply", response.payload))

    def local(self, broker: int, event: Event) -> BrokerOutcome:
        """Run an event at a broker, and send what its fetcher sends."""
        machine = self.world.machine
        outcome = machine.step(self.snapshots[broker - 1], event)
        self.snapshots[broker - 1] = outcome.snapshot
        if outcome.requests or not machine.views[outcome.snapshot].waits:
            self._outdate(broker)
        for leader, payload in outcome.requests:
            if machine.views[self.snapshots[leader - 1]].state == UP:
                self.send(Fetch(broker, leader, payload))
        return outcome

    def _outdate(self, follower: int) -> None:
        """A follower no longer waits for what is in flight: requests become stale, responses are dropped."""
        world = self.world
        numbers, messages = world.messages.number, world.messages.values
        kept = []
        for number in self.flights:
            message = messages[number]
            kind = type(message)
            if kind is Fetched and message.follower == follower:
                continue
            if kind is Fetch and message.follower == follower and not message.stale:
                if world.bounds.strays:
                    stale = numbers(message._replace(stale=True))
                    world.stale.add(stale)
                    if stale not in kept:
                        kept.append(stale)
                continue
            kept.append(number)
        self.flights = kept

    def disconnect(self, broker: int) -> None:
        """Drop the messages between a broker and others: its connections end with its process."""
        messages = self.world.messages.values
        self.flights = [
            number
            for number in self.flights
            if type(messages[number]) not in _BETWEEN_BROKERS or broker not in messages[number][:2]
        ]

    def retry(self, broker: int) -> None:
        """Followers that waited for a former process of a broker send their requests again."""
        for follower in self.world.brokers:
            view = self.world.machine.views[self.snapshots[follower - 1]]
            if view.follows == broker and view.waits and not self._in_flight(follower):
                self.run(follower, ("failed",))

    def _in_flight(self, follower: int) -> bool:
        """Whether a follower's request, or the response to it, is in flight."""
        messages = self.world.messages.values
        for number in self.flights:
            message = messages[number]
            kind = type(message)
            if kind in _BETWEEN_BROKERS and message.follower == follower and (kind is Fetched or not message.stale):
                return True
        return False
