"""How far a partition is from a loss of acknowledged records, and from a state in which no replica can lead.

A search over `situations` by costs. It counts unclean ends apart from clean events: stops, starts, moves and preferred
elections. Neither kind outweighs the other, so a distance has each story that no other beats in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.situations import Model, Settings, Situation, SituationChange, Story, canonical, situation_of
from highwater.lab.audit.stories import recorded_approach, shortest_approach
from highwater.lab.explore.search import cheapest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.image import Key
    from highwater.lab.audit.stories import Approach
    from highwater.lab.explore.search import Costs

MOST_EVENTS: Final = 4
"""Longest story that is looked for, without `--most-events`."""
MOST_ASKED: Final = 40_000
"""Most events that the controller functions handle for one search; some seconds."""
USUAL_REPLICAS: Final = 5
"""Replicas, and spare brokers, up to which a search may handle that many."""

_LOSS: Final = "loss"
_LEADERLESS: Final = "leaderless"


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
            found = self._known[numbered] = self._search(numbered)
        return Distance(_renamed(found.loss, brokers), _renamed(found.leaderless, brokers), found.within)

    def _search(self, start: Situation) -> Distance:
        model = Model(self._settings)
        start = model.after_acknowledgement(start)
        # An event takes longer with more replicas.
        most = self._most_asked * USUAL_REPLICAS // max(USUAL_REPLICAS, len(start.replicas))
        world = _Losses(model, start)
        found = cheapest(world, ends=_LOSS, most_costs=self._most_events, is_over=lambda: model.asked >= most)
        loss, leaderless = (_sorted(found.found.get(kind, {})) for kind in (_LOSS, _LEADERLESS))
        return Distance(loss, leaderless, found.within)


class _Losses:
    """What may happen to a partition, as a world to search."""

    def __init__(self, model: Model, start: Situation) -> None:
        self._model = model
        self._start = start

    def first(self) -> Situation:
        return self._start

    def successors(self, situation: Situation) -> Iterator[tuple[SituationChange, Situation]]:
        return self._model.steps(situation)

    def findings(self, situation: Situation) -> tuple[str, ...]:
        if situation.has_lost:
            return (_LOSS,)
        return (_LEADERLESS,) if self._model.nobody_can_lead(situation) else ()

    def costs(self, step: SituationChange) -> Costs:
        return step.costs


def _sorted(found: Mapping[Costs, Sequence[SituationChange]]) -> tuple[Story, ...]:
    return tuple(Story(*costs, tuple(steps)) for costs, steps in sorted(found.items()))


def _renamed(stories: tuple[Story, ...], brokers: Mapping[int, int]) -> tuple[Story, ...]:
    return tuple(replace(story, steps=tuple(step.renamed(brokers) for step in story.steps)) for story in stories)
