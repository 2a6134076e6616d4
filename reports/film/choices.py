"""Choices of the next event at a step of a run: a fault that strikes one message, process or link there.

The run that goes on from a choice is the recorded run with one fault more (`scenarios.single.recording`), or the script
with one line more (`reports.film.chosen_script`). Latencies are
mixed from links and subjects and not drawn in turn, so that run has the same history up to the fault's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import KINDS
from faults.plan import Fault
from reports.film import chosen_script
from reports.film.states import DOWN, PAUSED
from reports.formatting import moment, seconds
from scenarios.single import recording
from sim.errors import InputError
from sim.history import steps
from sim.hosts.client import PRODUCER
from sim.hosts.control_plane import CONTROL
from sim.hosts.interceptions import MESSAGES, NAMES

if TYPE_CHECKING:
    from reports.drawing.observed_run import DrawnMessage, ObservedRun
    from reports.film.film import Film
    from scenarios.shrinking.case import Case
    from scenarios.single.result import RunResult

MOST: Final = 8
"""Most choices that follow one another."""
MESSAGES_MOST: Final = 20
"""Most messages of which one can be chosen at a step: those sent last."""
_STRUCK: Final = {
    "message-loss": steps.MESSAGE_LOST,
    "message-hold": steps.MESSAGE_HELD,
    "message-copy": steps.MESSAGE_COPIED,
}
"""Kind of a fault of one message -> the step at which it meets it."""
_OF_BROKERS: Final = ("kill", "power-loss", "pause")
_WORD: Final = re.compile(
    rf"(?P<kind>{'|'.join((*_STRUCK, *_OF_BROKERS, 'cut'))})"
    r"\.(?P<at_us>\d{1,14})\.(?P<broker>\d{1,5})\.(?P<other>\d{1,5})\.(?P<lasts_us>\d{1,12}|-1)",
    re.ASCII,
)
_APART: Final = "_"
_LOSS_US: Final = 1_000
"""A fault that loses a message waits no longer for it."""
_BACK_US: Final = 5_000_000
"""Time after which a broker that was ended starts again."""
_DELAYS_US: Final = (100_000, 1_000_000, 10_000_000)
"""Delays of a message or of its copy."""
_PAUSES_US: Final = (1_000_000, 30_000_000)
_CUTS_US: Final = (5_000_000, 60_000_000)
_FOR_GOOD: Final = -1
"""Duration of a fault that is undone when everything is healed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A fault at a step of a run.

    Attributes:
        kind: its kind.
        at_us: when it strikes.
        broker: the broker that it strikes; of a message, the one whose next message of the type it strikes.
        other: of a cut, the other end; of a message, the number of its type (`sim.hosts.interceptions.NAMES`).
        lasts_us: its duration; -1: until everything is healed.
    """

    kind: str
    at_us: int
    broker: int
    other: int = 0
    lasts_us: int = _FOR_GOOD

    @property
    def fault(self) -> Fault:
        """The fault, as a plan has it."""
        if self.kind == "cut":
            return Fault(self.kind, self.at_us, (self.broker, self.other), self.lasts_us, both_ways=True)
        return Fault(self.kind, self.at_us, (self.broker,), self.lasts_us, value=self.other)

    @property
    def is_of_message(self) -> bool:
        """Whether it strikes one message."""
        return self.kind in _STRUCK


def to_text(choices: Sequence[Choice]) -> str:
    """Choices as a word of an address."""
    return _APART.join(
        f"{choice.kind}.{choice.at_us}.{choice.broker}.{choice.other}.{choice.lasts_us}" for choice in choices
    )


def parse(text: str) -> tuple[Choice, ...]:
    """Read `to_text`.

    Raises:
        InputError: the text is malformed, or has too many choices.
    """
    words = text.split(_APART, MOST) if text else []
    found = [_WORD.fullmatch(word) for word in words[:MOST]]
    if len(words) > MOST:
        raise InputError(f"at most {MOST} choices follow one another")
    if not all(found):
        raise InputError("a choice is KIND.TIME.BROKER.OTHER.DURATION, as the page of choices writes it")
    return tuple(
        Choice(match["kind"], *(int(match[name]) for name in ("at_us", "broker", "other", "lasts_us")))
        for match in found
        if match is not None
    )


def is_possible(case: Case) -> bool:
    """Whether a run can go on from a choice: the order of events at the same time is not drawn, which a further fault
    would change from the beginning.
    """
    return case.scenario.config.get("sim.ties", "fifo") == "fifo"


def chosen(case: Case, result: RunResult, choices: Sequence[Choice], file: str) -> Case:
    """The recorded run or script with the faults of choices. The replay line of a recorded run names `file` as its
    plan.

    Raises:
        InputError: a fault is not possible in this cluster, or would strike after everything is healed.
    """
    if result.settings["sim.ties"] != "fifo":
        raise InputError("the order of events at the same time is drawn here (sim.ties): a choice would change it")
    brokers = [replica.broker for replica in result.replicas]
    for choice in choices:
        _check(choice, brokers, _healed_us(result))
    # Otherwise another partition might be shown, that of another violation.
    shown = result.shown or case.scenario.shown
    if not case.scenario.drawn:
        case = case.with_scenario(shown=shown)
        for choice in choices:
            case = chosen_script.with_fault(case, result, choice.fault)
            result = case.run() if choice is not choices[-1] else result
        return chosen_script.ended(case) if choices else case
    recorded = replace(case, scenario=recording.of_run(case.scenario, result).scenario)
    faults = sorted([*recorded.faults, *(choice.fault for choice in choices)], key=_time_of)
    found = recorded.with_faults(tuple(faults))
    words = ("--plan", file)
    return found.with_scenario(recorded=replace(found.recorded, words=words), shown=shown)


def _healed_us(result: RunResult) -> int:
    """When everything is healed."""
    return result.window_us[1] if result.horizon_us is None else result.horizon_us


def _time_of(fault: Fault) -> int:
    return fault.at_us


def _check(choice: Choice, brokers: Sequence[int], horizon_us: int) -> None:
    if choice.at_us >= horizon_us:
        raise InputError(f"everything is healed at {moment(horizon_us)}: no fault strikes after that")
    ends = (choice.broker, choice.other) if choice.kind == "cut" else (choice.broker,)
    if choice.broker not in brokers or not all(end in (CONTROL, *brokers) for end in ends) or len({*ends}) < len(ends):
        raise InputError(f"a choice strikes broker {choice.broker}, which this run cannot")
    if choice.is_of_message:
        name = NAMES[choice.other] if choice.other < len(NAMES) else ""
        if not name or (choice.kind == "message-copy" and not MESSAGES[name].is_resent):
            raise InputError(f"a choice strikes message {choice.other}, which a {choice.kind} cannot")
    elif choice.kind != "cut" and choice.other:
        raise InputError(f"a {choice.kind} has no amount")
    if problem := KINDS[choice.kind].problem(choice.fault.targets, choice.fault.value):
        raise InputError(problem)


def departs(original: ObservedRun, other: ObservedRun, choices: Sequence[Choice]) -> str:
    """What is wrong with the run of choices: it has another history before the first of them, or one has met no
    message; empty if nothing is.
    """
    if original.partition != other.partition:
        return f"The original run shows partition {original.partition}, which is not created in this one."
    until_us = min(choice.at_us for choice in choices)
    before, after = (
        [observation.step for observation in run.observations if observation.at_us < until_us]
        for run in (original, other)
    )
    if before != after:
        return "The two runs differ before the chosen event: this is not the same run."
    met = {(step["t"], step["step"], step.get("message")) for step in _steps(other)}
    for choice in choices:
        if choice.is_of_message and (choice.at_us + 1, _STRUCK[choice.kind].name, NAMES[choice.other]) not in met:
            return f"No {NAMES[choice.other]} was sent where the choice struck: the run is as it was."
    return ""


def meets(case: Case, run: ObservedRun, choice: Choice) -> bool:
    """Whether the fault of a choice strikes its message in the observed run of a case. It misses one that was not sent
    as such, but in flight when an exchange without effect was no longer elided.
    """
    from reports.drawing.observed_run import observe

    other = chosen(case, run.result, [choice], "plan.json")
    return not departs(run, observe(other.scenario, other.mode, other.seed, other.rules), [choice])


def _steps(run: ObservedRun) -> Iterator[dict[str, Any]]:
    return (observation.step for observation in run.observations)


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be chosen of one message, broker or link: a sentence for each duration, and the choice."""

    about: str
    choices: tuple[tuple[str, Choice], ...]


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be chosen at a step."""

    messages: list[Offer]
    brokers: list[Offer]
    links: list[Offer]


def offers(case: Case, shown: Film, place: int) -> Offers:
    """The choices that are possible at the step of a frame of a case's film, which stays as it was. Whether a fault
    meets a message is tried.

    A fault of a process or link strikes right after all steps of that time. A message that is in flight was sent
    before: its fault begins right before it was sent, and waits for the next of its type, which is this one.
    """
    observed = shown.observed
    at_us = observed.observations[place].at_us
    if at_us + 1 >= _healed_us(observed.result):
        return Offers([], [], [])
    states = dict.fromkeys(sorted(replica.broker for replica in observed.result.replicas), DOWN)
    for change in shown.changes[: place + 1]:
        states |= {broker: fields["state"] for broker, fields in change.brokers.items() if "state" in fields}
    flying = sorted(_of_messages(observed, at_us), key=_begin_of)[-MESSAGES_MOST:]
    messages = [offer for offer in flying if meets(case, observed, offer.choices[0][1])]
    up = {broker: state for broker, state in states.items() if state != DOWN}
    brokers = [offer for broker, state in up.items() for offer in _of_broker(broker, state, at_us + 1)]
    return Offers(messages, brokers, list(_of_links(list(states), at_us + 1)))


def sent_alone(observed: ObservedRun) -> Iterator[tuple[DrawnMessage, int, int]]:
    """The messages that a fault can strike, each with the broker and the number of its type: none other of the type was
    sent or received by that broker right before.
    """
    late = {(step["t"], step["source"], step["target"]) for step in _steps(observed) if _is_late(step)}
    brokers = [replica.broker for replica in observed.result.replicas]
    sent: dict[tuple[str, int], list[int]] = {}
    fitting = []
    for message in observed.messages:
        if message.type in MESSAGES:
            broker = _broker_of(message)
            # A consumer fetches, too.
            ends = message.source, message.target
            if broker in brokers and ends in MESSAGES[message.type].links(broker, brokers, [PRODUCER]):
                sent.setdefault((message.type, broker), []).append(message.sent_us)
                fitting.append(message)
    for message in fitting:
        if message.lost or message.sent_in < 0 or message.sent_us < 1:
            continue
        broker = _broker_of(message)
        near = [at_us for at_us in sent[message.type, broker] if message.sent_us - 1 <= at_us <= message.sent_us]
        if len(near) == 1 and (message.sent_us, message.source, message.target) not in late:
            yield message, broker, NAMES.index(message.type)


def _is_late(step: dict[str, Any]) -> bool:
    return bool(step["step"] == steps.MESSAGE_LATE.name)


def _broker_of(message: DrawnMessage) -> int:
    """The broker by which a fault finds the message."""
    return message.source if MESSAGES[message.type].is_sent else message.target


def _begin_of(offer: Offer) -> int:
    return offer.choices[0][1].at_us


def _of_messages(observed: ObservedRun, at_us: int) -> Iterator[Offer]:
    from reports.evidence.messages import node

    for message, broker, number in sent_alone(observed):
        if not message.sent_us <= at_us <= message.arrived_us:
            continue
        begin_us = message.sent_us - 1
        found = [("drop", Choice("message-loss", begin_us, broker, number, _LOSS_US))]
        found += [
            (f"delay by {_span(delay_us)}", Choice("message-hold", begin_us, broker, number, delay_us))
            for delay_us in _DELAYS_US
        ]
        about = (
            f"{message.name}, {node(message.source)} to {node(message.target)}, sent at {message.sent_us / 1e6:.6f} s"
        )
        yield Offer(about, tuple(found))
        if MESSAGES[message.type].is_resent:
            copies = [
                (f"again after {_span(delay_us)}", Choice("message-copy", begin_us, broker, number, delay_us))
                for delay_us in _DELAYS_US
            ]
            yield Offer(f"{about}: a second time", tuple(copies))


def _of_broker(broker: int, state: str, at_us: int) -> Iterator[Offer]:
    for kind, text in (("kill", "kill"), ("power-loss", "power loss of")):
        back = (f"back after {_span(_BACK_US)}", Choice(kind, at_us, broker, 0, _BACK_US))
        yield Offer(f"{text} broker {broker} ({state})", (back, ("down until the end", Choice(kind, at_us, broker))))
    if state != PAUSED:
        choices = tuple((f"for {_span(us)}", Choice("pause", at_us, broker, 0, us)) for us in _PAUSES_US)
        yield Offer(f"pause broker {broker}", choices)


def _of_links(brokers: Sequence[int], at_us: int) -> Iterator[Offer]:
    for broker in brokers:
        for other in (CONTROL, *(peer for peer in brokers if peer > broker)):
            name = f"broker {other}" if other else "the control plane"
            choices = tuple(
                (f"cut for {_span(cut_us)}", Choice("cut", at_us, broker, other, cut_us)) for cut_us in _CUTS_US
            )
            yield Offer(f"broker {broker} and {name}", choices)


def _span(us: int) -> str:
    return f"{us / 1e6:g} s"


def sentence(choice: Choice) -> str:
    """A choice in a sentence."""
    lasts = "until everything is healed" if choice.lasts_us < 0 else f"for {_span(choice.lasts_us)}"
    at = seconds(choice.at_us)
    if choice.is_of_message:
        way = "sends" if MESSAGES[NAMES[choice.other]].is_sent else "receives"
        does = {
            "message-loss": "is lost",
            "message-hold": f"is held back {lasts}",
            "message-copy": f"arrives again after {_span(max(choice.lasts_us, 0))}",
        }[choice.kind]
        return f"The next {NAMES[choice.other]} that broker {choice.broker} {way} from {at} on {does}."
    if choice.kind == "cut":
        other = f"broker {choice.other}" if choice.other else "the control plane"
        return f"At {at} the link between broker {choice.broker} and {other} is cut {lasts}."
    does = {"kill": "is killed", "power-loss": "loses power", "pause": "is paused"}[choice.kind]
    return f"At {at} broker {choice.broker} {does}, {lasts}."
