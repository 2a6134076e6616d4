"""What a picture of a run shows: lanes, rows, messages between them, and how things stood over time.

Time runs downwards, a row for each step that is shown; between rows it is stretched or squeezed. The text of a row
stands beside it, so that the picture can be read, searched and copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reports.drawing.observed import ZOOKEEPER
from reports.evidence.story import step_text, violation_line
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.hosts.cluster import CONSUMER, PRODUCER, VALIDATOR
from sim.hosts.control_plane import CONTROL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reports.drawing.observed import LogView, Message, Observation, Observed

CLIENTS: Final = {PRODUCER: "producer", CONSUMER: "consumer", VALIDATOR: "validator"}
DECIDED: Final = frozenset({"isr", "elr", "assigned", "session-end", "unfenced"})
"""Steps that the control plane takes; elections are shown at who is elected."""
ABOUT_RECORDS: Final = frozenset({"append", "hw", "ack", "acknowledges", "read"})
"""Steps that are shown if they are about the first record that a violation is about."""
ASIDE: Final = frozenset(
    {"replicated", "end-offset", "log-start", "settled", "commit", "seek", "offset-for-time", "producer-id"}
)
"""Steps that are shown only when all are asked for."""
LINKS: Final = frozenset({"cut", "heal", "slow", "lossy", "resent"})
TURNING: Final = frozenset({"truncate", "recovered", "lead", "deleted", "ack", "retention"})
"""Steps after which the log is drawn, beside ends of processes."""
ENDS: Final = frozenset({"kill", "power-loss", "shutdown", "halt", "exit", "disk-replaced", "corrupt-tail"})
FAULTS: Final = (ENDS - {"exit", "halt"}) | LINKS - {"heal"} | {"pause", "disk-stalled"}
PAINTED: Final = ("isr", "elr", "down", "up", "fenced", "leader")
"""Kinds of bands in the order in which they cover each other."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row.

    Attributes:
        at_us: when.
        node: whose lane has the mark; -1 for none.
        text: what happened.
        kind: the step's name, ``violation`` or ``warning``.
        call: number of the call that the step was a part of.
        log: the log to be drawn, if any.
        acked: first ids of batches that were acknowledged by then.
    """

    at_us: int
    node: int
    text: str
    kind: str
    call: int = -1
    log: LogView | None = None
    acked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message that is drawn.

    Attributes:
        message: which.
        source_row: the row in which it was sent, if that is drawn; else None.
        target_row: the row in which it arrived, if that is drawn; else None.
    """

    message: Message
    source_row: int | None
    target_row: int | None


@dataclass(frozen=True, slots=True)
class Band:
    """How things stood for a broker for a while.

    Attributes:
        node: the broker.
        kind: one of `PAINTED`.
        since_us: from when,
        until_us: until when; None: to the end.
        epoch: of a leader.
    """

    node: int
    kind: str
    since_us: int
    until_us: int | None
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, but for its measures.

    Attributes:
        title: what was run and how it ended.
        lanes: names of nodes by their ids, from left to right.
        rows: from top to bottom.
        arrows: messages.
        bands: of brokers.
    """

    title: list[str]
    lanes: dict[int, str]
    rows: list[Row]
    arrows: list[Arrow]
    bands: list[Band]


def picture(observed: Observed, title: list[str], *, everything: bool) -> Picture:
    """Choose what is shown.

    Args:
        observed: the run.
        title: lines above it.
        everything: all steps and messages; else those that a violation may come from: steps of the control plane, of
            processes and links, those of the first record that a violation is about, and the messages that led to them.
    """
    rows = list(_rows(observed, everything=everything))
    if len(observed.concerned) > 1 and not everything:
        first = min(observed.concerned)
        title = [*title, f"of {len(observed.concerned)} records that violations are about, the first: record {first}"]
    shown = {row.call: place for place, row in reversed(list(enumerate(rows))) if row.call >= 0}
    messages = observed.messages if everything else _that_led_to(observed.messages, shown)
    between = [one for one in messages if one.source != one.target]  # The controller's broker is told as others are.
    arrows = [Arrow(one, shown.get(one.sent_in), shown.get(one.call)) for one in between]
    if rows and not everything:
        arrows = [one for one in arrows if rows[0].at_us <= one.message.sent_us <= rows[-1].at_us]
    nodes = {row.node for row in rows} | {node for one in messages for node in (one.source, one.target)}
    brokers = {replica.broker for replica in observed.result.replicas}
    lanes = {node: name for node, name in CLIENTS.items() if node in nodes} | {CONTROL: observed.control}
    lanes |= {broker: f"broker {broker}" for broker in sorted(brokers)}
    bands = _Bands(observed)
    for one in observed.observations:
        bands.take(one.step)
    return Picture(title, lanes, rows, arrows, bands.all())


def _node(step: Mapping[str, Any]) -> int:
    """In whose lane a step is; -1: in none."""
    name = step["step"]
    if name in DECIDED:
        return CONTROL
    if name in ("ack", "refused"):
        return PRODUCER
    if name == "end-offset":
        return CONSUMER
    return -1 if name == "converged" else int(step.get("consumer", step.get("broker", -1)))


def _text(step: Mapping[str, Any]) -> str:
    """What a row says; a decision of the control plane about a broker names it."""
    about = f" broker={step['broker']}" if _node(step) == CONTROL and "broker" in step else ""
    return step_text(step) + about


def _rows(observed: Observed, *, everything: bool) -> Iterator[Row]:
    """Rows in the order of time; a violation after the steps of its time."""
    found = [(one, "violation") for one in observed.result.violations]
    found += [(one, "warning") for one in observed.result.warnings if one not in observed.result.violations]
    marks = sorted([(one["at_us"], violation_line(one, kind.upper()), kind) for one, kind in found])
    last_us = marks[-1][0] if marks and not everything else None
    acked: set[int] = set()
    for row in _steps(observed, acked, last_us, everything=everything):
        while marks and marks[0][0] < row.at_us:
            yield _mark(*marks.pop(0))
        yield row
    for mark in marks:
        yield _mark(*mark)


def _mark(at_us: int, text: str, kind: str) -> Row:
    return Row(at_us, -1, text, kind)


def _steps(observed: Observed, acked: set[int], last_us: int | None, *, everything: bool) -> Iterator[Row]:
    choice = Choice(frozenset(sorted(observed.concerned)[:1]))
    waiting: Row | None = None
    for one in observed.observations:
        name = one.step["step"]
        if name == "ack":
            acked.add(one.step["record"])
        shows = choice.shows(one)
        early = one.at_us < CLIENTS_BEGIN_US and one.step["step"] not in ENDS | LINKS
        if (last_us is not None and one.at_us > last_us) or not (everything or (shows and not early)):
            continue
        turns = name in ENDS or (name in TURNING and (name != "truncate" or one.step.get("removed", 1)))
        row = Row(
            one.at_us, _node(one.step), _text(one.step), name, one.call, one.log if turns else None, frozenset(acked)
        )
        if waiting is not None and name in LINKS and (waiting.kind, waiting.at_us) == (name, one.at_us):
            words = row.text.removeprefix(name)
            waiting = Row(waiting.at_us, -1, f"{waiting.text};{words}", name, waiting.call)
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if name in LINKS:
            waiting = Row(row.at_us, -1, row.text, name, row.call)
        else:
            yield row
    if waiting is not None:
        yield waiting


@dataclass(slots=True)
class Choice:
    """Decides which steps are shown without being asked for.

    Attributes:
        concerned: the record that a violation is about; empty: all are.
        hws: what each broker's HW was.
    """

    concerned: frozenset[int]
    hws: dict[int, int] = field(default_factory=dict)

    def shows(self, one: Observation) -> bool:
        """Whether a step is; steps are to be asked about in their order."""
        step, name = one.step, one.step["step"]
        if name in ASIDE:
            return False
        if name not in ABOUT_RECORDS or not self.concerned:
            return True
        if name == "hw":
            before = self.hws.get(step["broker"], 0)
            self.hws[step["broker"]] = step["offset"]
            return any(before <= base < step["offset"] for base in self._offsets(one.log))
        if name == "read":
            return any(step["offset"] <= base <= step["last"] for base in self._offsets(one.log))
        return step["record"] in self.concerned or self._spans(one)

    def _spans(self, one: Observation) -> bool:
        """Whether a batch that begins with another record holds one."""
        step = one.step
        count = step["last"] - step["offset"] + 1 if "last" in step else 1
        return not self.concerned.isdisjoint(range(step["record"], step["record"] + count))

    def _offsets(self, log: LogView | None) -> list[int]:
        """Base offsets of the batches in a log that hold one."""
        return [
            base
            for base, last, _, first in (log.batches if log else ())
            if not self.concerned.isdisjoint(range(first, first + last - base + 1))
        ]


def _that_led_to(messages: Iterable[Message], rows: Mapping[int, int]) -> list[Message]:
    """Messages in whose handling something happened that is shown, and the request that each answers."""
    by_call = {message.call: message for message in messages}
    chosen = {}
    for message in by_call.values():
        if message.call in rows or (message.lost and message.sent_in in rows):
            chosen[message.call] = message
            asked = by_call.get(message.sent_in)
            if asked is not None:
                chosen[asked.call] = asked
    return sorted(chosen.values(), key=lambda message: (message.arrived_us, message.call))


class _Bands:
    """Bands from the steps that begin and end them.

    Attributes:
        ended: those that have ended.
    """

    def __init__(self, observed: Observed) -> None:
        self.ended: list[Band] = []
        self._opens = "registered" if observed.control == ZOOKEEPER else "unfenced"
        self._open: dict[tuple[int, str], tuple[int, int]] = {}
        for member in observed.isr:
            self._begin(member, "isr", 0)

    def take(self, step: Mapping[str, Any]) -> None:
        """Take note of a step."""
        name, at_us, broker = step["step"], step["t"], step.get("broker", 0)
        if name == "start":
            self._end(broker, "down", at_us)
            self._begin(broker, "up", at_us)
        elif name in ENDS:
            self._end(broker, "up", at_us)
            self._begin(broker, "down", at_us)
        elif name == "session-end":
            self._begin(broker, "fenced", at_us)
        elif name == self._opens:
            self._end(broker, "fenced", at_us)
        elif name == "elected":
            self._stay("leader", [], at_us)
            if broker:
                self._begin(broker, "leader", at_us, step["leader_epoch"])
        elif name == "lead" and (broker, "leader") in self._open and step["leader_epoch"] > self._epoch(broker):
            self._end(broker, "leader", at_us)
            self._begin(broker, "leader", at_us, step["leader_epoch"])
        for kind in ("isr", "elr"):
            if kind in step:
                self._stay(kind, step[kind], at_us)

    def all(self) -> list[Band]:
        """All bands, in the order in which they cover each other."""
        still = [Band(node, kind, since[0], None, since[1]) for (node, kind), since in self._open.items()]
        return sorted([*self.ended, *still], key=lambda band: PAINTED.index(band.kind))

    def _begin(self, node: int, kind: str, at_us: int, epoch: int = -1) -> None:
        self._open.setdefault((node, kind), (at_us, epoch))

    def _end(self, node: int, kind: str, at_us: int) -> None:
        since = self._open.pop((node, kind), None)
        if since is not None:
            self.ended.append(Band(node, kind, since[0], at_us, since[1]))

    def _epoch(self, leader: int) -> int:
        """In which it is known to lead; without an election it may lead on in a newer one."""
        return self._open[leader, "leader"][1]

    def _stay(self, kind: str, members: Collection[int], at_us: int) -> None:
        """These brokers are what it is from now on, and no other."""
        for node in [node for node, other in self._open if other == kind and node not in members]:
            self._end(node, kind, at_us)
        for node in members:
            self._begin(node, kind, at_us)
