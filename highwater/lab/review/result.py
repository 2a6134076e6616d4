"""What a review has found, and its verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reports.analysis.statistics import mcnemar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from highwater.lab.review.conformance import Conformance
    from reports.analysis import paired
    from reports.analysis.compare import AvailabilityDifference, Group, Pair
    from sim.protocol.modes import Mode

LIVENESS: Final = ("no-progress", "stuck-replica", "stuck-consumer")
SURE: Final = 1.8
"""A difference in availability counts if it exceeds half the width of its 95 % interval by this factor. A review makes
a hundred such comparisons, of which five would exceed the half itself by chance."""
CHANCE: Final = 0.01
"""Significance level of McNemar tests of the mode against the base."""

LOSES: Final = "breaks its promise"
BREAKS_UPGRADE: Final = "breaks the promise while brokers of both modes run"
OFTENER: Final = "shows violations of the base on more seeds"
UNPROVEN: Final = "shows a violation that may be chance"
UNTESTED: Final = "was not tested"
COSTS: Final = "costs availability"
WAITS: Final = "waits for an operator on more seeds"
UNANSWERED: Final = "does not answer clients in a scripted scenario"
HARMLESS: Final = "is not worse"
"""Verdicts, the most serious first."""


@dataclass(frozen=True, slots=True)
class StoryEnd:
    """How a scripted scenario ends in both modes; `worse` and `better` are about violations inside the promise.

    Attributes:
        gone: kinds that only the base violates, inside the promise, if a step does not occur in the mode.
        lacks_step: whether a step does not occur in the mode.
        unanswered: whether this step is an acknowledgement or a read, in a script that plays to its end with the base.
    """

    scenario: str
    base: str
    mode: str
    command: str
    worse: bool
    better: bool
    gone: tuple[str, ...] = ()
    lacks_step: bool = False
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class SeedCounts:
    """Seeds on which a kind of violation inside the promise was found: in both modes, or in one of them only.

    Attributes:
        again: for a kind that the base never shows, and the mode on few seeds: (base, mode, n), how many of n runs of
            each show it, with the first seed's faults and other latencies; None if that was not tried.
        known: (repair, n): the later rule value that prevents it on the tried seeds of the base, and on n of those that
            only the mode shows; None if there is none, or none was tried.
        replay: the command that replays the first seed on which only the mode shows it.
        explain: the command that explains that seed.
    """

    both: int = 0
    only_base: int = 0
    only_mode: int = 0
    again: tuple[int, int, int] | None = None
    known: tuple[str, int] | None = None
    replay: str = ""
    explain: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the mode shows it more often, not by chance, even without the seeds that `known` explains."""
        rest = self if self.known is None else replace(self, only_mode=self.only_mode - self.known[1], known=None)
        return self.is_sure and rest.is_sure

    @property
    def is_sure(self) -> bool:
        """Whether the mode shows it more often, not by chance."""
        if self.only_mode <= self.only_base:
            return False
        if self.both or self.only_base or self.again is None:
            return mcnemar(self.only_base, self.only_mode) < CHANCE or not (self.both or self.only_base)
        base, mode, _ = self.again
        return mcnemar(base, mode) < CHANCE


def summed(counts: Iterable[SeedCounts]) -> SeedCounts:
    """The counts of several scenarios."""
    every = list(counts)
    first = next((one for one in every if one.only_mode), SeedCounts())
    known = [one.known for one in every if one.known]
    repairs = " or ".join(dict.fromkeys(repair for repair, _ in known))
    return SeedCounts(
        sum(one.both for one in every),
        sum(one.only_base for one in every),
        sum(one.only_mode for one in every),
        next((one.again for one in every if one.again), None),
        (repairs, sum(seeds for _, seeds in known)) if known else None,
        first.replay,
        first.explain,
    )


@dataclass(frozen=True, slots=True)
class SweptScenario:
    """A random scenario on the same seeds in both modes.

    Attributes:
        effects: differing rule -> runs of the base in which the mode's value would have acted differently.
        touched: runs of the base in which any of the mode's values would have acted differently.
        changed: seeds on which both modes have different histories.
        inside: kind of violation inside the promise -> seeds.
        stalled: seeds on which the partition waits for an operator at the end.
        claim: seeds on which the kind was found that contradicts the claim.
        checks: checker, by its first kind -> runs in which it had something to decide.
        command: repeats the sweep.
    """

    name: str
    answer: paired.Answer
    pair: Pair
    groups: dict[str, Group]
    effects: dict[str, int]
    touched: int
    changed: int
    inside: dict[str, SeedCounts]
    stalled: SeedCounts
    claim: SeedCounts
    checks: dict[str, int]
    command: str

    @property
    def costs(self) -> list[AvailabilityDifference]:
        """Measures of availability that surely differ."""
        return [
            difference
            for difference in self.pair.availability
            if difference.low is not None
            and difference.high is not None
            and abs(difference.mean) > SURE * (difference.high - difference.low) / 2
        ]


@dataclass(slots=True)
class Review:
    """A finished review.

    Attributes:
        claim: what its author claims, and in `claim_kind` the kind of violation or warning that contradicts it.
        rules: rules that differ: name, value of the base, of the mode.
        story_count: number of scripted scenarios that ran; `stories` are those that end otherwise.
        claim_stories: scripted scenarios that contradict the claim in the mode, and not in the base.
        conformance: Kafka's own test cases whose results change; or why that is not known.
        swept: random scenarios.
        moved: upgrades and downgrades.
        skipped: what was not done, and why.
        seconds: how long it took.
    """

    base: Mode
    mode: Mode
    claim: str = ""
    claim_kind: str = ""
    rules: list[tuple[str, str, str]] = field(default_factory=list)
    story_count: int = 0
    stories: list[StoryEnd] = field(default_factory=list)
    claim_stories: list[str] = field(default_factory=list)
    conformance: Conformance | str = ""
    swept: list[SweptScenario] = field(default_factory=list)
    moved: list[SweptScenario] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def seeds(self) -> int:
        """Seeds of random scenarios, without upgrades."""
        return sum(scenario.pair.n for scenario in self.swept)

    @property
    def inside(self) -> dict[str, SeedCounts]:
        """Kind of violation inside the promise -> seeds, over all random scenarios."""
        return _by_kind(self.swept)

    @property
    def lost(self) -> dict[str, SeedCounts]:
        """Kinds inside the promise that the mode shows more often, not by chance, and for a cause of its own."""
        return {kind: counts for kind, counts in self.inside.items() if counts.is_new}

    @property
    def oftener(self) -> dict[str, SeedCounts]:
        """Kinds inside the promise that the mode shows more often, not by chance, for a cause that the base has."""
        found = {**_by_kind(self.moved), **self.inside}
        return {kind: counts for kind, counts in found.items() if counts.is_sure and not counts.is_new}

    @property
    def broken(self) -> dict[str, SeedCounts]:
        """`lost`, over upgrades and downgrades."""
        return {kind: counts for kind, counts in _by_kind(self.moved).items() if counts.is_new}

    @property
    def unproven(self) -> dict[str, SeedCounts]:
        """Kinds that the base never shows, and the mode on so few seeds that it may be chance."""
        found = {**_by_kind(self.moved), **self.inside}
        return {
            kind: counts
            for kind, counts in found.items()
            if counts.only_mode and not (counts.both or counts.only_base or counts.is_sure)
        }

    @property
    def saved(self) -> dict[str, SeedCounts]:
        """Kinds inside the promise that the base shows more often, not by chance."""
        swapped = {
            kind: SeedCounts(counts.both, counts.only_mode, counts.only_base)
            for kind, counts in self.inside.items()
            if counts.only_base
        }
        return {kind: counts for kind, counts in swapped.items() if counts.is_sure}

    @property
    def changed(self) -> int:
        """Seeds on which the mode has another history than the base."""
        return sum(scenario.changed for scenario in [*self.swept, *self.moved])

    def more(self, one: SweptScenario, cost: AvailabilityDifference) -> float:
        """By how much a measure is higher in the mode."""
        return -cost.mean if one.pair.a != self.mode.name else cost.mean

    @property
    def costly(self) -> list[tuple[SweptScenario, AvailabilityDifference]]:
        """Measures of availability that are surely worse in the mode."""
        return [(scenario, cost) for scenario in self.swept for cost in scenario.costs if self.more(scenario, cost) > 0]

    @property
    def waits(self) -> SeedCounts:
        """Seeds on which the partition waits for an operator at the end."""
        return summed(scenario.stalled for scenario in self.swept)

    @property
    def unanswered(self) -> list[StoryEnd]:
        """Scripted scenarios in which a client gets an answer with the base, and none with the mode."""
        return [story for story in self.stories if story.unanswered]

    @property
    def verdict(self) -> str:
        """The verdict: one of the constants of this module."""
        if self.lost or any(story.worse for story in self.stories):
            return LOSES
        if self.broken:
            return BREAKS_UPGRADE
        if self.oftener:
            return OFTENER
        if self.unproven:
            return UNPROVEN
        if not (self.changed or self.stories):
            return UNTESTED
        if self.costly:
            return COSTS
        if self.waits.is_sure:
            return WAITS
        return UNANSWERED if self.unanswered else HARMLESS

    @property
    def is_worse(self) -> bool:
        """Whether the mode breaks its promise where the base does not, or more often."""
        return self.verdict in (LOSES, BREAKS_UPGRADE, OFTENER)


def _by_kind(swept: Sequence[SweptScenario]) -> dict[str, SeedCounts]:
    kinds = Counter(kind for scenario in swept for kind in scenario.inside)
    return {
        kind: summed(scenario.inside[kind] for scenario in swept if kind in scenario.inside) for kind in sorted(kinds)
    }
