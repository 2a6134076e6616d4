"""A story of `distance` as a scripted scenario, which ``highwater run`` plays and ``highwater confirm`` acts out.

A script begins with a new partition, whose replicas are brokers 1, 2, ... So it first needs the events that lead to the
partition's present situation: not those of its history, but the fewest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.audit.image import RegisteredPartition
from highwater.lab.audit.situations import (
    Kind,
    Model,
    Situation,
    SituationChange,
    SituationMachine,
    SituationReplica,
    canonical,
    renamed,
)
from highwater.lab.explore.search import search
from reports.formatting import plain
from scenarios.shrinking.script_export import pairs
from sim.history.steps import ACK, FOLLOW, SESSION_END, SHUTDOWN, UNFENCED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from highwater.lab.audit.situations import Settings, Story

START: Final = re.compile(rb'\Aschema = 1\nname = "story-')
"""How the file of a story begins."""
MOST_BEFORE: Final = 4
"""Most events before the story, from a new partition to the present situation."""
MOST_BETWEEN: Final = 4
"""Most events between two situations that a log recorded."""
MOST_ASKED: Final = 60_000
"""Most events that the controller functions handle in one search."""
MOST_WAYS: Final = 100
"""Most ways to a recorded situation that are followed."""
LAG_MS: Final = 5_000
"""``replica.lag.time.max.ms`` of the scenario."""
AFTER_MS: Final = 2_000
"""Pause before a line, in which brokers replay what changed."""
FETCH_MS: Final = 8_000
"""Pause for a replica that is to join the ISR."""
LEAVE_MS: Final = 12_000
"""Pause for a follower that is to leave the ISR."""
HOUR_MS: Final = 3_600_000
Line = dict[str, Any]
_WANTED: Final = "wanted"
_LOST: Final = "lost"
_Ways = dict[Situation, tuple[SituationChange, ...]]
"""Situation -> the events that lead to it."""


def scenario(name: str, approach: Approach, story: Story, settings: Settings, mode: str, about: str) -> str:
    """The scenario file of a story that begins in the situation to which the approach leads.

    Args:
        name: of the scenario.
        approach: from a new partition to that situation.
        story: from there to a loss, or to no leader.
        settings: rules and settings.
        mode: the release's mode, for which the scenario has an expectation.
        about: name of the partition.
    """
    start = approach.start
    steps = [*approach.steps, *(step.renamed(approach.number) for step in story.steps)]
    writer = _Script(start, settings)
    lines = [*writer.begin(), *(line for step in steps for line in writer.lines(step)), writer.rest]
    names = ", ".join(f"{original} is {number} here" for original, number in sorted(approach.number.items()))
    told = [step.text for step in steps]
    loses = writer.situation.has_lost
    expected = "violates:committed-loss|exposed-loss" if loses else "may-violate"
    head = {
        "schema": 1,
        "name": name,
        "title": f"{' '.join(plain(about).split())}: {'a loss' if loses else 'no leader'} after {len(told)} events",
        "description": f"Brokers of the cluster and of this scenario: {names}. Events: {'; '.join(told)}.",
        "brokers.count": len(start.replicas),
        "control": "real",
    }
    parts = [
        *(f"{line}\n" for line in pairs(head)),
        "\n[config]\n",
        *(f"{line}\n" for line in pairs(_config(start, settings))),
        *("\n".join(["", "[[script]]", *pairs(line), ""]) for line in lines),
        f'\n[expect]\n"{mode}" = "{expected}"\n',
    ]
    return "".join(parts)


def _config(start: Situation, settings: Settings) -> dict[str, Any]:
    """Nothing is written back before a power loss, and no leader is elected because it is preferred."""
    return {
        "default.replication.factor": len(start.partition.replicas),
        "min.insync.replicas": settings.min_isr,
        "unclean.leader.election.enable": settings.unclean,
        "replica.lag.time.max.ms": LAG_MS,
        "replica.socket.timeout.ms": 2_000,
        "auto.leader.rebalance.enable": False,
        "sim.writeback.expire.ms": HOUR_MS,
    }


@dataclass(frozen=True, slots=True)
class Approach:
    """How a new partition comes to a situation.

    Attributes:
        start: of the new partition.
        steps: the events.
        number: broker of the situation -> its number in `start`.
    """

    start: Situation
    steps: tuple[SituationChange, ...]
    number: Mapping[int, int]


def shortest_approach(target: Situation, settings: Settings) -> Approach | None:
    """The fewest events that lead to a situation; None if `MOST_BEFORE` do not, or `MOST_ASKED` is exceeded."""
    wanted, names = canonical(target)
    start = new_partition(range(1, len(wanted.replicas) + 1), max(len(target.partition.target), 1))
    model = Model(settings)
    wanted = model.after_acknowledgement(wanted)
    ways: _Ways = {model.after_acknowledgement(start): ()}
    found = _search(model, ways, lambda situation: canonical(situation)[0] == wanted, MOST_BEFORE)
    if not found:
        return None
    reached, steps = next(iter(found.items()))
    return Approach(start, steps, {names[place]: number for place, number in canonical(reached)[1].items()})


def recorded_approach(path: Sequence[Situation], settings: Settings) -> Approach | None:
    """The events by which a partition came through situations that its log recorded; None if they are not found.

    The log does not tell clean stops from unclean ends: where both fit, the broker was stopped.

    Args:
        path: from a situation in which every replica is live and in the ISR.
        settings: rules and settings.
    """
    first = path[0].partition
    others = sorted({broker for situation in path for broker, _ in situation.replicas} - set(first.replicas))
    names = (first.leader, *(broker for broker in first.replicas if broker != first.leader), *others)
    number = {broker: place for place, broker in enumerate(names, start=1)}
    model = Model(settings)
    start = new_partition(range(1, len(names) + 1), len(first.replicas))
    ways: _Ways = {model.after_acknowledgement(start): ()}
    for before, waypoint in pairwise(path):
        if waypoint is path[-1] or not _only_registers(before, waypoint):
            ways = _next_ways(model, ways, renamed(waypoint, number))
    steps = next(iter(ways.values()), None)
    return None if steps is None else Approach(start, steps, number)


def _next_ways(model: Model, ways: _Ways, waypoint: Situation) -> _Ways:
    """All ways to what a log shows by the fewest further events; none if `MOST_BETWEEN` do not lead there."""
    wanted = _visible(waypoint)
    among = {broker for broker, _ in waypoint.replicas}
    targets = [waypoint.partition.target]
    return _search(model, ways, lambda situation: _visible(situation, among) == wanted, MOST_BETWEEN, targets)


def _only_registers(before: Situation, after: Situation) -> bool:
    """Whether a broker that is still fenced has left ISR or ELR: it registers, and what comes next shows it live."""
    old, new = before.partition, after.partition
    gone = {*old.isr, *old.elr} - {*new.isr, *new.elr}
    down = {broker for broker, replica in after.replicas if replica.machine != SituationMachine.UP}
    return old.leader == new.leader and old.replicas == new.replicas and bool(gone & down)


def _visible(situation: Situation, among: Collection[int] | None = None) -> tuple[object, tuple[tuple[int, bool], ...]]:
    """What a metadata log shows: the registration, and which brokers are up. The order of lists says nothing."""
    state = situation.partition
    partition = replace(
        state, isr=tuple(sorted(state.isr)), elr=tuple(sorted(state.elr)), replicas=tuple(sorted(state.replicas))
    )
    up = [
        (broker, replica.machine == SituationMachine.UP)
        for broker, replica in situation.replicas
        if among is None or broker in among
    ]
    return partition, tuple(up)


def new_partition(brokers: Sequence[int], factor: int) -> Situation:
    """A new partition on the first brokers."""
    replicas = tuple(brokers)[:factor]
    machines = [
        (broker, SituationReplica(SituationMachine.UP, broker in replicas, flushed=False)) for broker in brokers
    ]
    return Situation(RegisteredPartition(replicas, replicas, replicas[0]), tuple(machines))


def _search(
    model: Model,
    ways: _Ways,
    is_wanted: Callable[[Situation], bool],
    most: int,
    targets: Sequence[tuple[int, ...]] | None = None,
) -> _Ways:
    """The nearest wanted situations, all after equally many events, and how they come about."""
    limit = model.asked + MOST_ASKED
    found = search(
        _Approaches(model, ways, is_wanted, targets),
        until=(_WANTED,),
        ends=(_LOST,),
        most_events=most + 1,
        most_ways=MOST_WAYS,
        is_over=lambda: model.asked > limit,
    )
    nearest: _Ways = {}
    for (_, start), *events in found.ways:
        assert start is not None
        reached = events[-1][1] if events else start
        assert reached is not None
        nearest[reached] = (*ways[start], *[step for step, _ in events if isinstance(step, SituationChange)])
    return nearest


class _Approaches:
    """Situations that follow known ones, as a world to search. Its first state, None, comes before all of them."""

    def __init__(
        self,
        model: Model,
        ways: _Ways,
        is_wanted: Callable[[Situation], bool],
        targets: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self._model = model
        self._ways = ways
        self._is_wanted = is_wanted
        self._targets = targets

    def first(self) -> Situation | None:
        return None

    def successors(self, situation: Situation | None) -> Iterator[tuple[SituationChange | tuple[()], Situation | None]]:
        if situation is None:
            for start in self._ways:
                yield (), start
        else:
            yield from self._model.steps(situation, self._targets)
            yield from self._model.lagging(situation)

    def findings(self, situation: Situation | None) -> tuple[str, ...]:
        assert situation is not None
        lost = (_LOST,) if situation.has_lost else ()
        return (_WANTED, *lost) if self._is_wanted(situation) else lost


class _Script:
    """The lines of a script, and the situation that they lead to.

    Live replicas outside the ISR are cut off from the others, so that none joins before its step.
    """

    def __init__(self, start: Situation, settings: Settings) -> None:
        self._model = Model(settings)
        self._settings = settings
        self.situation = start
        self._cut: set[int] = set()
        self._batches = 0
        self._when: Line = {}

    def begin(self) -> Iterator[Line]:
        """The first batch, once all replicas follow."""
        self._when = {"when": {"step": FOLLOW.name, "broker": self.situation.partition.replicas[-1]}}
        yield from self._produce()

    def lines(self, step: SituationChange) -> Iterator[Line]:
        """The lines of a step."""
        after = self._model.apply(step, self.situation)
        assert after is not None, step
        kept_out = _kept_out(after)
        yield from self._links(kept_out - self._cut, "cut")
        yield from self._act(step)
        yield from self._links(self._cut - kept_out, "heal")
        if step.kind == Kind.JOIN:
            self._when = {"after_ms": FETCH_MS}
        self._cut, self.situation = kept_out, after
        yield from self._produce()

    def _act(self, step: SituationChange) -> Iterator[Line]:
        broker = step.brokers[0] if step.brokers else 0
        kind, when = step.kind, self._when
        self._when = {"after_ms": AFTER_MS}
        if kind == Kind.LOSE_POWER:
            yield {**when, "do": "power-loss", "brokers": [broker]}
            self._when = {"when": {"step": SESSION_END.name, "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.STOP:
            yield {**when, "do": "controlled-restart", "broker": broker}
            self._when = {"when": {"step": SHUTDOWN.name, "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.START:
            yield {**when, "do": "start", "broker": broker}
            self._when = {"when": {"step": UNFENCED.name, "broker": broker}, "after_ms": AFTER_MS}
        elif kind == Kind.MOVE:
            yield {**when, "do": "reassignment", "replicas": list(step.brokers)}
        elif kind == Kind.CANCEL:
            yield {**when, "do": "reassignment-cancel"}
        elif kind == Kind.ELECT:
            yield {**when, "do": "preferred-election"}
        elif kind == Kind.LEAVE:  # A follower lags only if it lacks something.
            self._batches += 1
            yield {**when, "do": "produce", "batch": f"m{self._batches}", "acks": "1"}
            self._when = {"after_ms": LEAVE_MS}
        else:
            self._when = when

    def _links(self, brokers: set[int], action: str) -> Iterator[Line]:
        """Cut brokers off from all others, or heal their links, except to those that stay cut off."""
        cut = self._cut if action == "cut" else self._cut - brokers
        done: set[frozenset[int]] = set()
        for broker in sorted(brokers):
            for other, _ in self.situation.replicas:
                link = frozenset((broker, other))
                if other != broker and other not in cut and link not in done:
                    done.add(link)
                    for source, destination in ((broker, other), (other, broker)):
                        yield {**self._when, "do": action, "from": source, "to": destination}
                        self._when = {}

    def _produce(self) -> Iterator[Line]:
        """A batch that is acknowledged, if the ISR is large enough."""
        state = self.situation.partition
        is_active = state.leader > 0 and not self.situation.has_lost
        if not is_active or len(state.isr) < min(self._settings.min_isr, len(state.replicas)):
            return
        self._batches += 1
        name = f"m{self._batches}"
        yield {**self._when, "do": "produce", "batch": name}
        self._when = {"when": {"step": ACK.name, "batch": name}, "after_ms": AFTER_MS}

    @property
    def rest(self) -> Line:
        """A last line, which waits."""
        return {**self._when, "do": "wait"}


def _kept_out(situation: Situation) -> set[int]:
    """Live replicas outside the ISR."""
    state = situation.partition
    return {
        broker
        for broker, replica in situation.replicas
        if replica.machine == SituationMachine.UP
        and broker in state.replicas
        and broker not in state.isr
        and broker != state.leader
    }
