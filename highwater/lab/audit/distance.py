"""How far a partition is from a loss of acknowledged records, and from a state in which no replica can lead.

A search over `situations`, shortest stories first. It counts unclean ends apart from clean events: stops, starts, moves
and preferred elections. Neither kind outweighs the other, so a distance has each story that no other beats in both.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.situations import Model, Settings, Situation, Step, Story, canonical, situation_of
from highwater.lab.audit.stories import recorded_approach, shortest_approach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.image import Key
    from highwater.lab.audit.stories import Approach

MOST_EVENTS: Final = 4
"""Longest story that is looked for, without `--most-events`."""
MOST_ASKED: Final = 40_000
"""Most events that the controller functions handle for one search; some seconds."""
USUAL_REPLICAS: Final = 5
"""Replicas, and spare brokers, up to which a search may handle that many."""

Costs = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Distance:
    """Of one partition.

    Attributes:
        loss: the cheapest stories after which a leader lacks acknowledged records; fewest unclean ends first.
        leaderless: likewise, after which no replica can lead.
        within: events within which all stories were looked at.
    """

    loss: tuple[Story, ...]
    leaderless: tuple[Story, ...]
    within: int

    @property
    def order(self) -> Costs:
        """Events of the shortest story of a loss, and its unclean ends; one more than `within` if none was found."""
        return min(((story.unclean + story.others, story.unclean) for story in self.loss), default=(self.within + 1, 0))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The situation of a partition, so far, from which the shortest story of a loss began.

    Attributes:
        offset: of the record after which it was first so.
        time_ms: of its batch.
        distance: from there.
    """

    offset: int
    time_ms: int
    distance: Distance


class AuditDistances:
    """Distances of the partitions of an audit.

    Args:
        audit: the audit, with histories if the past is asked about.
        most_events: the longest stories that are looked for.
    """

    def __init__(self, audit: Audit, most_events: int = MOST_EVENTS) -> None:
        self.audit = audit
        self._most_events = most_events
        self._searches: dict[Settings, Distances] = {}

    def settings(self, key: Key) -> Settings:
        """The present settings of a partition."""
        image = self.audit.image
        unclean = image.unclean_enabled(key)
        return Settings(self.audit.rules, image.min_isr_setting(key), elr=image.elr_enabled, unclean=unclean)

    def situation(self, key: Key) -> Situation:
        """The present situation of a partition."""
        return situation_of(self.audit.image, key, self.audit.facts.get(key))

    def now(self, key: Key) -> Distance:
        """The present distance of a partition."""
        return self._of(key).of(self.situation(key))

    def nearest(self, key: Key) -> Nearest | None:
        """When a partition was nearest to a loss, by the present rules and settings; None without history."""
        history = self.audit.histories.get(key)
        found = [
            Nearest(offset, time_ms, self._of(key).of(situation))
            for situation, (offset, time_ms) in (history.seen.items() if history is not None else ())
        ]
        return min(found, key=lambda one: (one.distance.order, one.offset), default=None)

    def approach(self, key: Key) -> Approach | None:
        """How a new partition comes to the present situation: as the log says, or else by the fewest events."""
        now, settings = self.situation(key), self.settings(key)
        history = self.audit.histories.get(key)
        found = recorded_approach([*history.path, now], settings) if history is not None and history.path else None
        return found or shortest_approach(now, settings)

    def _of(self, key: Key) -> Distances:
        settings = self.settings(key)
        return self._searches.setdefault(settings, Distances(settings, self._most_events))


class Distances:
    """Distances of partitions under the same settings; each situation is searched once.

    Args:
        settings: rules and settings of the partitions.
        most_events: the longest stories that are looked for.
        most_asked: see `MOST_ASKED`.
    """

    def __init__(self, settings: Settings, most_events: int = MOST_EVENTS, most_asked: int = MOST_ASKED) -> None:
        self._settings = settings
        self._most_events = most_events
        self._most_asked = most_asked
        self._known: dict[Situation, Distance] = {}

    def of(self, situation: Situation) -> Distance:
        """The distance of a situation."""
        numbered, brokers = canonical(situation)
        found = self._known.get(numbered)
        if found is None:
            found = self._known[numbered] = _Search(self._settings, self._most_events, self._most_asked).run(numbered)
        return Distance(_renamed(found.loss, brokers), _renamed(found.leaderless, brokers), found.within)


class _Search:
    """One search: Dijkstra by number of events, with several labels for each situation."""

    def __init__(self, settings: Settings, most_events: int, most_asked: int) -> None:
        self._model = Model(settings)
        self._most_events = most_events
        self._most_asked = most_asked
        self._left = most_asked
        self._labels: dict[Situation, list[Costs]] = {}
        self._queue: list[tuple[int, int, int, Situation]] = []
        self._came: dict[tuple[Situation, Costs], tuple[Situation, Costs, Step] | None] = {}
        self._loss: dict[Costs, Story] = {}
        self._leaderless: dict[Costs, Story] = {}

    def run(self, start: Situation) -> Distance:
        start = self._model.after_acknowledgement(start)
        # An event takes longer with more replicas.
        self._left = self._most_asked * USUAL_REPLICAS // max(USUAL_REPLICAS, len(start.replicas))
        self._push(start, (0, 0), None)
        within = self._most_events
        while self._queue:
            events, unclean, _, situation = heapq.heappop(self._queue)
            self._expand(situation, (unclean, events - unclean))
            if self._is_over:
                within = events - 1
                break
        return Distance(_sorted(self._loss), _sorted(self._leaderless), within)

    @property
    def _is_over(self) -> bool:
        return self._model.asked >= self._left

    def _expand(self, situation: Situation, costs: Costs) -> None:
        if costs not in self._labels[situation]:
            return
        if situation.has_lost:
            _keep(self._loss, costs, self._story(situation, costs))
            return
        if self._model.nobody_can_lead(situation):
            _keep(self._leaderless, costs, self._story(situation, costs))
        for step, after in self._model.steps(situation):
            total = costs[0] + step.costs[0], costs[1] + step.costs[1]
            if sum(total) <= self._most_events and not _is_beaten(self._loss, total):
                self._push(after, total, (situation, costs, step))
            if self._is_over:
                return

    def _push(self, situation: Situation, costs: Costs, came: tuple[Situation, Costs, Step] | None) -> None:
        labels = self._labels.setdefault(situation, [])
        if any(_beats(other, costs) for other in labels):
            return
        labels[:] = [other for other in labels if not _beats(costs, other)]
        labels.append(costs)
        self._came[situation, costs] = came
        heapq.heappush(self._queue, (sum(costs), costs[0], len(self._came), situation))

    def _story(self, situation: Situation, costs: Costs) -> Story:
        steps: list[Step] = []
        came = self._came[situation, costs]
        while came is not None:
            steps.append(came[2])
            came = self._came[came[0], came[1]]
        return Story(costs[0], costs[1], tuple(reversed(steps)))


def _beats(one: Costs, other: Costs) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]


def _is_beaten(found: Mapping[Costs, Story], costs: Costs) -> bool:
    return any(_beats(one, costs) for one in found)


def _keep(found: dict[Costs, Story], costs: Costs, story: Story) -> None:
    """Keep a story that no other beats; those that it beats go."""
    if not _is_beaten(found, costs):
        for other in [other for other in found if _beats(costs, other)]:
            del found[other]
        found[costs] = story


def _sorted(found: Mapping[Costs, Story]) -> tuple[Story, ...]:
    return tuple(story for _, story in sorted(found.items()))


def _renamed(stories: tuple[Story, ...], brokers: Mapping[int, int]) -> tuple[Story, ...]:
    return tuple(replace(story, steps=tuple(step.renamed(brokers) for step in story.steps)) for story in stories)
