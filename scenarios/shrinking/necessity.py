"""The messages, faults and batches that a violation needs: without any one of them, the run lacks it.

To test a message, the network loses it, and its sender notices by its timeout, if at all. Messages from before the
clients start are not tested, because they set up the cluster.

For the next author. What must hold: a message has the same `Name` in every variant of the run, so losing it removes
that message and no other; hence names count messages with the same subject, not all messages of a link. The tests of
one message do not depend on each other. A message counts only if the violation is gone on both sides of the promise.

Why it is so: a set of single necessities may not suffice, so at last `TRIES` runs with other latencies keep only the
order of these messages and of faults at fixed times; the result says how many still show the violation. If none of
several messages on one route is necessary, they are tested together (`Alternatives`).

What breaks it: a message whose subject (`Message.about`) depends on other faults. Elided exchanges are not tested,
because they change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from faults.kinds.injection import Strike
from faults.plan import Fault
from scenarios.format.scenario import PlannedSend
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import BUDGET, OutOfTimeError, Symptom, Trials
from scenarios.shrinking.no_return import FROM_THE_BEGINNING, SETUP
from scenarios.single.execution import CLIENTS_BEGIN_US
from scenarios.single.result import RunResult
from sim.kernel.choosing import ChoosingKernel
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate

EVENTS: Final = 150_000
"""Budget for testing messages and for the tries, in events."""
TRIES: Final = 20
"""Runs with other latencies that keep only the order of what is necessary."""
ENOUGH: Final = 18
"""The necessary set suffices if the violation occurs in at least this many of them."""


Route = tuple[type[Message], int, int]
"""(class, sender, receiver) of a message"""


class Name(NamedTuple):
    """Identity of a message in this run and in variants of it."""

    source: int
    target: int
    about: int
    before: int
    """Number of earlier messages of this link with the same subject."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of a run. `arrives_us` holds if no fault prevents its arrival."""

    name: Name
    sent_us: int
    arrives_us: int
    message: Message

    @property
    def route(self) -> Route:
        """Class, source, target."""
        return type(self.message), self.name.source, self.name.target


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Messages on one route, in order of arrival: the violation occurs without any one of them, but not without all of
    them.
    """

    messages: tuple[SentMessage, ...]


@dataclass(slots=True)
class Necessity:
    """The faults, batches and messages that a violation needs.

    Attributes:
        faults: faults of the plan, and whether the violation is gone without each; otherwise it has another cause or
            another side of the promise then.
        sends: batches, in the same way.
        messages: necessary messages, in order of arrival.
        alternatives: sets of messages that are necessary together.
        asked: number of messages tested.
        of: number of messages until the violation.
        stays: tries in which the violation occurs, although all messages have other latencies and only faults and the
            necessary messages keep their order.
        tries: number of tries.
        whole: whether the time sufficed.
    """

    faults: list[tuple[Fault, bool]] = field(default_factory=list)
    sends: list[tuple[PlannedSend, bool]] = field(default_factory=list)
    messages: list[SentMessage] = field(default_factory=list)
    alternatives: list[Alternatives] = field(default_factory=list)
    asked: int = 0
    of: int = 0
    stays: int = 0
    tries: int = 0
    whole: bool = True

    @property
    def is_enough(self) -> bool:
        """Whether the tries show that nothing else matters."""
        return self.tries > 0 and self.stays * TRIES >= ENOUGH * self.tries


class _Names:
    """Names the messages of a run, and its faults at fixed times; collects all messages (`sent`)."""

    def __init__(self, clock: list[ChoosingKernel]) -> None:
        self.sent: list[SentMessage] = []
        self._count: dict[tuple[int, int, int], int] = {}
        self._clock = clock

    def __call__(self, gate: Gate, event: Event, at_us: int) -> Hashable:
        if isinstance(event, Message):
            key = (gate.source, gate.owner, event.about())
            before = self._count.get(key, 0)
            self._count[key] = before + 1
            name = Name(*key, before)
            self.sent.append(SentMessage(name, self._clock[0].now_us, at_us, event))
            return name
        if isinstance(event, Strike):
            return event.fault
        return None


class _Routes:
    """Names messages by their route: handler, source, target."""

    def __init__(self, clock: list[ChoosingKernel]) -> None:
        self._clock = clock

    def __call__(self, gate: Gate, event: Event, _at_us: int) -> Hashable:
        if self._clock[0].now_us >= CLIENTS_BEGIN_US and isinstance(event, Message):
            return type(event), gate.source, gate.owner
        return None


def find_necessity(case: Case, symptom: Symptom, trials: Trials, until_us: int, turn_us: int) -> Necessity:
    """Test the faults, batches and messages of a failed run, one by one, until the time of the violation.

    The run should be shrunk; its ties are broken first-in first-out. If there are too many messages, those nearest
    before `turn_us` are tested, then those after it.
    """
    search = _NecessitySearch(case, symptom, trials)
    try:
        search.work(until_us, turn_us)
    except OutOfTimeError:
        search.found.whole = False
    return search.found


class _NecessitySearch:
    """Tests the parts of a run; `found` is the result so far."""

    def __init__(self, case: Case, symptom: Symptom, trials: Trials) -> None:
        self.found = Necessity()
        self._case = case
        self._symptom = symptom
        self._trials = trials

    def work(self, until_us: int, turn_us: int) -> None:
        """Test faults and batches, then messages, then whether these suffice."""
        self._parts()
        sent = [
            message
            for message in self._sent()
            if message.sent_us >= CLIENTS_BEGIN_US and message.arrives_us <= until_us
        ]
        self.found.of = len(sent)
        most = max(TRIES, EVENTS // (self._trials.row(self._case)["events"] + SETUP) - TRIES)
        sent.sort(key=lambda message: (message.arrives_us > turn_us, abs(message.arrives_us - turn_us)))
        idle: list[SentMessage] = []
        for message in sorted(sent[:most], key=lambda message: message.arrives_us):
            gone = self._gone_without(message)
            self.found.asked += 1
            (self.found.messages if gone else idle).append(message)
        self._alternate(idle)
        for number in range(1, TRIES + 1):
            self.found.stays += self._stays(number)
            self.found.tries += 1

    def _parts(self) -> None:
        case = self._case
        for place, fault in enumerate(case.faults):
            row = self._trials.row(case.with_faults((*case.faults[:place], *case.faults[place + 1 :])))
            self.found.faults.append((fault, self._symptom.gone_from(row)))
        for place, send in enumerate(case.sends):
            row = self._trials.row(case.with_sends((*case.sends[:place], *case.sends[place + 1 :])))
            self.found.sends.append((send, self._symptom.gone_from(row)))

    def _sent(self) -> list[SentMessage]:
        """All messages, in order of arrival."""
        clock: list[ChoosingKernel] = []
        names = _Names(clock)
        clock.append(ChoosingKernel(self._budget, names))
        self._case.run(kernel=clock[0])
        return sorted(names.sent, key=lambda message: message.arrives_us)

    def _gone_without(self, one: SentMessage) -> bool:
        return self._symptom.gone_from(self._run(self._case, lost={one.name}).row)

    def _alternate(self, idle: Sequence[SentMessage]) -> None:
        """For each route without a necessary message, lose all of its messages."""
        routes: dict[Route, list[SentMessage]] = {}
        for message in idle:
            routes.setdefault(message.route, []).append(message)
        for message in self.found.messages:
            routes.pop(message.route, None)
        for route, group in routes.items():
            self._check_time()
            clock: list[ChoosingKernel] = []
            clock.append(ChoosingKernel(self._budget, _Routes(clock), {route}))
            if len(group) > 1 and self._symptom.gone_from(self._case.run(kernel=clock[0]).row):
                self.found.alternatives.append(Alternatives(tuple(group)))

    def _stays(self, number: int) -> bool:
        order: list[tuple[int, Hashable]] = [(message.arrives_us, message.name) for message in self.found.messages]
        order += [(fault.at_us, fault) for fault in self._case.faults if fault.trigger is None]
        order.sort(key=lambda entry: entry[0])
        case = self._case.continued(FROM_THE_BEGINNING, number, faults=True)
        return self._symptom.shown_by(self._run(case, order=[name for _, name in order]).row)

    def _run(self, case: Case, lost: Collection[Hashable] = (), order: Sequence[Hashable] = ()) -> RunResult:
        self._check_time()
        clock: list[ChoosingKernel] = []
        clock.append(ChoosingKernel(self._budget, _Names(clock), lost, order))
        return case.run(kernel=clock[0])

    def _check_time(self) -> None:
        if self._trials.is_over:
            raise OutOfTimeError

    @property
    def _budget(self) -> int:
        return int(self._case.scenario.config[BUDGET])
