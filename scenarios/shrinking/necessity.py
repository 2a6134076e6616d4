"""Which single messages a violation takes: those without any one of which it is gone.

A message is left out as a network loses it: its sender notices by its timeout, if at all. What is left of a shrunk run,
its faults and batches, is asked about in the same way. Messages from before clients begin, without which there is no
cluster, are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from faults.plan import Fault
from scenarios.shrinking.criterion import BUDGET, OutOfTimeError
from scenarios.shrinking.no_return import FROM_THE_BEGINNING, SETUP
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.environment.network import Channel
from sim.kernel.choosing import ChoosingKernel
from sim.kernel.message import Message

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from scenarios.format.scenario import PlannedSend
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import Symptom, Trials
    from scenarios.single.result import RunResult
    from sim.kernel.scheduler import Gate, Handler

EVENTS: Final = 150_000
"""What asking about all messages, and the tries, may cost, in events of the simulation."""
TRIES: Final = 20
"""Runs in which all but what is necessary is other,"""
ENOUGH: Final = 18
"""and in how many of them the violation stays if that is enough."""


class Name(NamedTuple):
    """What a message is known by, in this run and in those that are a little different."""

    source: int
    target: int
    about: int
    before: int
    """How many messages of this link were about the same before."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of a run.

    Attributes:
        name: see `Name`.
        handler: what its receiver does with it: ``on_fetch``, ...
        sent_us: when it is sent,
        arrives_us: and when it arrives, if nothing is in its way.
        message: what it says.
    """

    name: Name
    handler: str
    sent_us: int
    arrives_us: int
    message: Message

    @property
    def way(self) -> tuple[str, int, int]:
        """What it is, from whom to whom."""
        return self.handler, self.name.source, self.name.target


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Messages of one kind from one node to another: the violation stays without any one, and is gone without all.

    Attributes:
        messages: in the order of their arrival.
    """

    messages: tuple[Sent, ...]


@dataclass(frozen=True, slots=True)
class Necessary:
    """What a violation takes.

    Attributes:
        faults: of the plan, and whether the violation is gone without each; without the others it is, but has another
            cause, or another side of the promise.
        sends: batches, in the same way.
        messages: without any one of which it is gone, in the order of their arrival.
        alternatives: where only several together are necessary.
        asked: how many messages were left out, each by itself,
        of: of how many until the violation.
        stays: in how many of so many tries it stays if faults and these messages keep their order, and all messages
            have other latencies.
        tries: how many.
        whole: whether there was time for all of it.
    """

    faults: tuple[tuple[Fault, bool], ...]
    sends: tuple[tuple[PlannedSend, bool], ...]
    messages: tuple[Sent, ...]
    alternatives: tuple[Alternatives, ...]
    asked: int
    of: int
    stays: int
    tries: int
    whole: bool

    @property
    def is_enough(self) -> bool:
        """Whether nothing else matters, as far as was tried."""
        return self.tries > 0 and self.stays * TRIES >= ENOUGH * self.tries


class _Names:
    """Names the messages of one run, and the faults that strike at a time.

    Attributes:
        sent: all messages.
    """

    def __init__(self, clock: list[ChoosingKernel]) -> None:
        self.sent: list[Sent] = []
        self._count: dict[tuple[int, int, int], int] = {}
        self._clock = clock

    def __call__(self, gate: Gate, handler: Handler, argument: Any, at_us: int) -> Hashable:
        if isinstance(gate, Channel) and isinstance(argument, Message):
            key = (gate.source, gate.owner, argument.about())
            before = self._count.get(key, 0)
            self._count[key] = before + 1
            name = Name(*key, before)
            word = getattr(handler, "__name__", "")
            self.sent.append(Sent(name, word, self._clock[0].now_us, at_us, argument))
            return name
        if isinstance(argument, Fault) and getattr(handler, "__name__", "") == "strike":
            return argument
        return None


class _Ways:
    """Identity of a message: type, source, target."""

    def __init__(self, clock: list[ChoosingKernel]) -> None:
        self._clock = clock

    def __call__(self, gate: Gate, handler: Handler, argument: Any, _at_us: int) -> Hashable:
        if self._clock[0].now_us >= CLIENTS_BEGIN_US and isinstance(gate, Channel) and isinstance(argument, Message):
            return getattr(handler, "__name__", ""), gate.source, gate.owner
        return None


def necessary(case: Case, symptom: Symptom, trials: Trials, until_us: int, turn_us: int) -> Necessary:
    """Leave out what a failed run consists of, one by one.

    Args:
        case: the run, best a shrunk one; its ties are broken first-in first-out.
        symptom: what it violates.
        trials: say when the time is over.
        until_us: when the violation is seen.
        turn_us: where there is no time for all messages, those nearest before this time are asked about, then those
            after it.
    """
    asking = _Asking(case, symptom, trials)
    whole = True
    try:
        asking.work(until_us, turn_us)
    except OutOfTimeError:
        whole = False
    return Necessary(
        tuple(asking.faults),
        tuple(asking.sends),
        tuple(asking.messages),
        tuple(asking.alternatives),
        asking.asked,
        asking.of,
        asking.stays,
        asking.tries,
        whole,
    )


class _Asking:
    """Holds what is known so far; attributes as of `Necessary`."""

    def __init__(self, case: Case, symptom: Symptom, trials: Trials) -> None:
        self.faults: list[tuple[Fault, bool]] = []
        self.sends: list[tuple[PlannedSend, bool]] = []
        self.messages: list[Sent] = []
        self.alternatives: list[Alternatives] = []
        self.asked = self.of = self.stays = self.tries = 0
        self._case = case
        self._symptom = symptom
        self._trials = trials

    def work(self, until_us: int, turn_us: int) -> None:
        """Ask about faults and batches, then messages, then whether that is enough."""
        self._parts()
        sent = [one for one in self._sent() if one.sent_us >= CLIENTS_BEGIN_US and one.arrives_us <= until_us]
        self.of = len(sent)
        most = max(TRIES, EVENTS // (self._trials.row(self._case)["events"] + SETUP) - TRIES)
        sent.sort(key=lambda one: (one.arrives_us > turn_us, abs(one.arrives_us - turn_us)))
        idle: list[Sent] = []
        for one in sorted(sent[:most], key=lambda one: one.arrives_us):
            gone = self._gone_without(one)
            self.asked += 1
            (self.messages if gone else idle).append(one)
        self._alternate(idle)
        for number in range(1, TRIES + 1):
            self.stays += self._stays(number)
            self.tries += 1

    def _parts(self) -> None:
        case = self._case
        for place, fault in enumerate(case.faults):
            row = self._trials.row(case.with_faults((*case.faults[:place], *case.faults[place + 1 :])))
            self.faults.append((fault, self._symptom.gone_from(row)))
        for place, send in enumerate(case.sends):
            row = self._trials.row(case.with_sends((*case.sends[:place], *case.sends[place + 1 :])))
            self.sends.append((send, self._symptom.gone_from(row)))

    def _sent(self) -> list[Sent]:
        """All messages, in the order of their arrival."""
        clock: list[ChoosingKernel] = []
        names = _Names(clock)
        clock.append(ChoosingKernel(self._budget, names))
        self._case.run(kernel=clock[0])
        return sorted(names.sent, key=lambda one: one.arrives_us)

    def _gone_without(self, one: Sent) -> bool:
        return self._symptom.gone_from(self._run(self._case, lost={one.name}).row)

    def _alternate(self, idle: Sequence[Sent]) -> None:
        """Leave out all messages of a kind between two nodes of which none is necessary by itself."""
        ways: dict[tuple[str, int, int], list[Sent]] = {}
        for one in idle:
            ways.setdefault(one.way, []).append(one)
        for one in self.messages:
            ways.pop(one.way, None)
        for way, group in ways.items():
            self._check_time()
            clock: list[ChoosingKernel] = []
            clock.append(ChoosingKernel(self._budget, _Ways(clock), {way}))
            if len(group) > 1 and self._symptom.gone_from(self._case.run(kernel=clock[0]).row):
                self.alternatives.append(Alternatives(tuple(group)))

    def _stays(self, number: int) -> bool:
        order: list[tuple[int, Hashable]] = [(one.arrives_us, one.name) for one in self.messages]
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
