"""Contents of a run's picture: lanes, rows, messages between them, and states over time.

Time runs downwards, not to scale: each step shown has a row, with its text beside it, so that the picture can be read,
searched and copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from reports.drawing.bands import Band, ClusterState, bands
from reports.drawing.observed_run import ZOOKEEPER, DrawnMessage, LogView, Observation, ObservedRun
from reports.evidence.messages import CLIENTS
from reports.evidence.sentences import sentence
from reports.evidence.story import violation_line
from reports.formatting import seconds
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.history import steps
from sim.history.steps import Lane, Shown, StepKind, kind_of
from sim.hosts.client import CONSUMER, PRODUCER, like_first
from sim.hosts.control_plane import CONTROL
from sim.plurals import counted

ABOUT_RECORDS: Final = frozenset({steps.APPEND, steps.HW, steps.ACK, steps.ACKNOWLEDGES, steps.READ, steps.REFUSED})
"""Steps that are shown only if they concern the first record that a violation is about."""
HIDDEN: Final = frozenset(
    {
        steps.REPLICATED,
        steps.END_OFFSET,
        steps.LOG_START,
        steps.SETTLED,
        steps.COMMIT,
        steps.SEEK,
        steps.OFFSET_FOR_TIME,
        steps.PRODUCER_ID,
    }
)
"""Steps that are shown only in a picture of everything."""
STRIKES: Final = frozenset({*steps.ENDS, *steps.LINKS})
"""Steps that are shown even before the clients start."""
FAULTS: Final = STRIKES - {steps.EXIT, steps.HALT, steps.HEAL} | {steps.PAUSE, steps.DISK_STALLED}
BATCHES: Final = frozenset({steps.APPEND, steps.READ, steps.ACK, steps.REFUSED, steps.ACKNOWLEDGES})
"""Steps that are each about one batch."""
MOST_ROWS: Final = 110
"""Maximum number of rows unless everything is shown; keeps the picture below 4,000 px."""
REPEATS: Final = 9
"""From this number on, rows that differ only in time are folded into one."""
ALIKE: Final = 3
"""From this number on, successive rows of one lane about single batches are merged into one."""


@dataclass(frozen=True, slots=True)
class PictureRow:
    """A row of the picture: a step, a violation or an early warning.

    Attributes:
        node: node whose lane has the mark; -1 for none.
        kind: kind of the step; None if the row is not a step.
        mark: ``violation`` or ``warning`` if the row is not a step.
        call: number of the call in which the step happened.
        log: the log to draw, if any.
        acked: first ids of the batches acknowledged by then.
    """

    at_us: int
    node: int
    text: str
    kind: StepKind | None = None
    mark: str = ""
    call: int = -1
    log: LogView | None = None
    acked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Arrow:
    """The arrow of a message, with the rows in which it was sent and arrived; None if they are not shown."""

    message: DrawnMessage
    source_row: int | None
    target_row: int | None


@dataclass(frozen=True, slots=True)
class Picture:
    """The contents of a picture, without its layout.

    Attributes:
        title: lines that name the run and its outcome.
        lanes: node id -> name, from left to right.
        rows: from top to bottom.
        bands: states of brokers, up to the last row.
        logs: broker -> its log at the last row.
        acked: first ids of the batches acknowledged by then.
    """

    title: list[str]
    lanes: dict[int, str]
    rows: list[PictureRow]
    arrows: list[Arrow]
    bands: list[Band]
    logs: dict[int, LogView]
    acked: frozenset[int]


def picture(observed: ObservedRun, title: list[str], *, everything: bool) -> Picture:
    """Select what a picture shows.

    Args:
        observed: the run.
        title: lines above it.
        everything: show all steps and messages; otherwise only those that may have led to a violation: steps of the
            control plane, processes and links, steps about the first record that a violation concerns, and the messages
            that led to them.
    """
    rows = _rows(observed, everything=everything)
    if len(observed.concerned) > 1 and not everything:
        first = min(observed.concerned)
        concerned = counted(len(observed.concerned), "record")
        title = [*title, f"of {concerned} that violations are about, the first: record {first}"]
    if not everything:
        whole, rows = rows, _part(_folded(rows))
        if rows:
            title = [*title, *_which(rows, len(whole), len(observed.observations))]
    shown = {row.call: place for place, row in reversed(list(enumerate(rows))) if row.call >= 0}
    messages = observed.messages if everything else _that_led_to(observed.messages, shown)
    # The controller's own broker is notified like the others.
    between = [message for message in messages if message.source != message.target]
    arrows = [Arrow(message, shown.get(message.sent_in), shown.get(message.call)) for message in between]
    if rows and not everything:
        arrows = [arrow for arrow in arrows if rows[0].at_us <= arrow.message.sent_us <= rows[-1].at_us]
    nodes = {row.node for row in rows} | {node for message in messages for node in (message.source, message.target)}
    brokers = {replica.broker for replica in observed.result.replicas}
    lanes = {node: name for node, name in CLIENTS.items() if node in nodes} | {CONTROL: observed.control}
    lanes |= {broker: f"broker {broker}" for broker in sorted(brokers)}
    last_us = rows[-1].at_us if rows else 0
    seen = [observation for observation in observed.observations if observation.at_us <= last_us]
    logs = {observation.step["broker"]: observation.log for observation in seen if observation.log is not None}
    acked = frozenset(observation.step["record"] for observation in seen if kind_of(observation.step) is steps.ACK)
    state = ClusterState(observed.isr, zookeeper=observed.control == ZOOKEEPER)
    shaded = bands(sorted(brokers), state, [observation.step for observation in seen])
    return Picture(title, lanes, rows, arrows, shaded, dict(sorted(logs.items())), acked)


def _folded(rows: list[PictureRow]) -> list[PictureRow]:
    """Fold `REPEATS` or more rows with the same text into one, at the time of the first."""
    times: dict[tuple[object, ...], list[PictureRow]] = {}
    for row in rows:
        times.setdefault((row.node, row.text, row.kind, row.mark), []).append(row)
    found = []
    for row in rows:
        alike = times[row.node, row.text, row.kind, row.mark]
        if len(alike) < REPEATS:
            found.append(row)
        elif row is alike[0]:
            found.append(replace(row, text=f"{row.text} ({len(alike)} times until {seconds(alike[-1].at_us)})"))
    return list(_merged(found))


def _merged(rows: list[PictureRow]) -> Iterator[PictureRow]:
    """Merge `ALIKE` or more successive batches of a lane: the first row says how many follow."""
    for (_, kind), group in groupby(rows, key=lambda row: (row.node, row.kind)):
        alike = list(group)
        if kind in BATCHES and len(alike) >= ALIKE:
            more = f"(and {counted(len(alike) - 1, 'batch', 'batches')} more until {seconds(alike[-1].at_us)})"
            yield replace(alike[0], text=f"{alike[0].text} {more}", log=alike[-1].log)
        else:
            yield from alike


def _part(rows: list[PictureRow]) -> list[PictureRow]:
    """Cut to the maximum number of rows: the last ones, or without a violation those from the first fault on."""
    if any(row.mark for row in rows):
        return rows[-MOST_ROWS:]
    first = next((place for place, row in enumerate(rows) if row.kind in FAULTS), 0)
    return rows[first : first + MOST_ROWS]


def _which(rows: list[PictureRow], of: int, steps_of_all: int) -> Iterator[str]:
    """Say which part of the run is shown, and why."""
    violated = any(row.mark for row in rows)
    why = "what the violation may follow from" if violated else "replication is left out"
    if len(rows) >= MOST_ROWS:
        why += f", and of {of} rows {MOST_ROWS}, {'the last' if violated else 'from the first fault on'}"
    span = f"from {seconds(rows[0].at_us)} to {seconds(rows[-1].at_us)}"
    yield f"{span}, of {steps_of_all} steps: {why}; --all shows the rest"


def node_of(step: Shown) -> int:
    """The node in whose lane a step is shown; -1 for none."""
    lane = kind_of(step).lane
    if lane is Lane.CONTROL_PLANE:
        return CONTROL
    if lane is Lane.PRODUCER:
        return PRODUCER
    if lane is Lane.CONSUMER:
        return like_first(int(step.get("consumer", CONSUMER)))
    return int(step["broker"]) if lane is Lane.BROKER else -1


def _rows(observed: ObservedRun, *, everything: bool) -> list[PictureRow]:
    """All rows in order of time; a violation follows the steps of the same time."""
    found = [(violation, "violation") for violation in observed.result.violations]
    found += [(warning, "warning") for warning in observed.result.warnings if warning not in observed.result.violations]
    marks = sorted((one["at_us"], violation_line(one, kind.upper()), kind) for one, kind in found)
    last_us = marks[-1][0] if marks and not everything else None
    rows = [*_joined(_steps(observed, last_us, everything=everything))]
    rows += [PictureRow(at_us, -1, text, mark=kind) for at_us, text, kind in marks]
    return sorted(rows, key=lambda row: row.at_us)


def _joined(rows: Iterable[PictureRow]) -> Iterator[PictureRow]:
    """Join successive rows about links of one kind and time into one."""
    for (kind, _), group in groupby(rows, key=lambda row: (row.kind, row.at_us)):
        alike = list(group)
        if kind in steps.LINKS:
            yield replace(alike[0], text=" ".join(row.text for row in alike))
        else:
            yield from alike


def _steps(observed: ObservedRun, last_us: int | None, *, everything: bool) -> Iterator[PictureRow]:
    choice = StepFilter(frozenset(sorted(observed.concerned)[:1]))
    marked_us = {entry["at_us"] for entry in (*observed.result.violations, *observed.result.warnings)}
    acked: set[int] = set()
    for observation in observed.observations:
        kind = kind_of(observation.step)
        if kind is steps.ACK:
            acked.add(observation.step["record"])
        shows = choice.shows(observation) or (kind is steps.END_OFFSET and observation.at_us in marked_us)
        early = observation.at_us < CLIENTS_BEGIN_US and kind not in STRIKES
        if (last_us is not None and observation.at_us > last_us) or not (everything or (shows and not early)):
            continue
        turns = (
            kind.changes_log and kind is not steps.APPEND and observation.step.get("removed", 1)
        ) or kind is steps.LEAD
        log = observation.log if turns else None
        text = sentence(observation.step)
        yield PictureRow(
            observation.at_us,
            node_of(observation.step),
            text,
            kind,
            call=observation.call,
            log=log,
            acked=frozenset(acked),
        )


@dataclass(slots=True)
class StepFilter:
    """Decides which steps a picture shows unless it shows everything.

    Attributes:
        concerned: the record that a violation is about; empty: all records.
        hws: broker -> its last HW.
    """

    concerned: frozenset[int]
    hws: dict[int, int] = field(default_factory=dict)

    def shows(self, one: Observation) -> bool:
        """Whether to show a step; to be called for each step, in order."""
        step, kind = one.step, kind_of(one.step)
        if kind in HIDDEN:
            return False
        if kind not in ABOUT_RECORDS or not self.concerned:
            return True
        if kind is steps.HW:
            before = self.hws.get(step["broker"], 0)
            self.hws[step["broker"]] = step["offset"]
            return any(before <= base < step["offset"] for base in self._offsets(one.log))
        if kind is steps.READ:
            return any(step["offset"] <= base <= step["last"] for base in self._offsets(one.log))
        return step["record"] in self.concerned or self._spans(one)

    def _spans(self, one: Observation) -> bool:
        """Whether the step is about a batch that contains a concerned record."""
        step = one.step
        count = step["last"] - step["offset"] + 1 if "last" in step else step.get("count", 1)
        return not self.concerned.isdisjoint(range(step["record"], step["record"] + count))

    def _offsets(self, log: LogView | None) -> list[int]:
        """Base offsets of the batches in a log that contain a concerned record."""
        return [
            base
            for base, last, _, first in (log.batches if log else ())
            if not self.concerned.isdisjoint(range(first, first + last - base + 1))
        ]


def _that_led_to(messages: Iterable[DrawnMessage], rows: Mapping[int, int]) -> list[DrawnMessage]:
    """Messages during whose handling a shown step happened, and the request that each of them answers."""
    by_call = {message.call: message for message in messages}
    chosen = {}
    for message in by_call.values():
        if message.call in rows or (message.lost and message.sent_in in rows):
            chosen[message.call] = message
            asked = by_call.get(message.sent_in)
            if asked is not None:
                chosen[asked.call] = asked
    return sorted(chosen.values(), key=lambda message: (message.arrived_us, message.call))
