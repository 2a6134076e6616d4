"""`make walks`: CPU seconds that random walks of `highwater explore` need to find known failures.

Each case lays one rule value or mutant over a mode that has its repair, or allows one kind of event, so what the walks
find comes from it alone.
Prints the second table of `scenarios/zoo/MARKS.md`. Needs plain Python.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from highwater.cli.commands.explore import WALK_EVENTS, WALKS_MAX, subject_of
from scenarios.exploring.walk import walk
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenarios.exploring.search import Found

SEEDS: Final = 5
FIRST_SEED: Final = 100
NOT_TRIED: Final = "not tried"
UNLIMITED: Final = 100_000_000
"""States: only time limits the walks."""


@dataclass(frozen=True, slots=True)
class Case:
    """A known failure, and how soon random walks should find it.

    Attributes:
        about: what the failure is called in the table.
        mode: a mode that repairs it, or lacks it as long as `without` holds.
        broken: the rule value, or the mutant, that brings it about.
        options: bounds, as options of `highwater explore`.
        without: other values of these, with which it cannot happen.
        tlc: CPU seconds that TLC's random simulation of the public specifications needed.
        mark: CPU seconds that walks should need at most.
        strict: an early warning counts, too, as TLC's invariants do.
    """

    about: str
    mode: str
    broken: Mapping[str, str]
    options: Mapping[str, int]
    tlc: str
    mark: float
    strict: bool = True
    without: Mapping[str, int] = field(default_factory=dict)

    def walk(self, seed: int, seconds: float, *, repaired: bool = False) -> Found[int]:
        """Walk until the failure is found, or for these seconds."""
        broken, options = ({}, {**self.options, **self.without}) if repaired else (self.broken, self.options)
        subject = subject_of(self.mode, broken, options)
        until = subject.meanings if self.strict else subject.violations
        return walk(
            subject.world,
            until=until,
            walks=WALKS_MAX,
            most_events=WALK_EVENTS,
            seed=seed,
            most_states=UNLIMITED,
            time_limit=seconds,
        )

    @property
    def command(self) -> str:
        """The options of `highwater explore` that walk so."""
        words = [f"--mode {self.mode}", *(f"--rule {rule}={value}" for rule, value in self.broken.items())]
        words += [f"--{name} {value}" for name, value in self.options.items()]
        return " ".join([*words, *(["--strict"] if self.strict else [])])


def _mutant(about: str, name: str, options: Mapping[str, int], tlc: str, mark: float) -> Case:
    return Case(about, "elr-repaired", {"mutant": name}, options, tlc, mark)


CASES: Final = (
    Case(
        "HW-truncation loss, 3 replicas",
        "kip320-repaired",
        {"follower_truncation": "high-watermark"},
        {"brokers": 3, "epochs": 3, "records": 2},
        "1.5-7.8",
        0.1,
    ),
    Case(
        "KIP-101 divergence",
        "kip320-repaired",
        {"follower_truncation": "leader-epoch"},
        {"brokers": 3, "epochs": 4, "records": 3},
        "3.8-4.5",
        0.4,
    ),
    Case(
        "KIP-101 / KIP-279 loss by the join rule, 3 replicas",
        "kip320-repaired",
        {"isr_join": "high-watermark"},
        {"brokers": 3, "epochs": 4, "records": 2, "stops": 1},
        "44 once, else missed in 51-113",
        1,
    ),
    _mutant("HW under min ISR", "hw-ignores-min-isr", {"losses": 0}, "1.2", 0.1),
    _mutant(
        "no partition epoch in AlterPartition", "alter-partition-of-earlier-partition-epoch", {"fences": 0}, "2.3", 0.5
    ),
    _mutant("no leader-epoch-start check", "join-below-epoch-start", {"losses": 0}, "3.9", 0.4),
    _mutant("unclean registration ignored", "unclean-registration-taken-for-clean", {"fences": 0}, "33", 0.5),
    _mutant(
        "no broker epoch in AlterPartition",
        "alter-partition-of-earlier-registration",
        {"fences": 0},
        "27, or missed in 57",
        3,
    ),
    _mutant(
        "a follower's LEO kept over a re-election",
        "leo-from-earlier-leadership",
        {"losses": 0, "fences": 0, "isr": 3, "elections": 2},
        NOT_TRIED,
        3,
    ),
    Case(
        "stale-log-start (divergence, clean elections)",
        "kip320-repaired",
        {},
        {"brokers": 2, "epochs": 4, "records": 3, "stops": 2, "deletions": 1},
        NOT_TRIED,
        10,
        without={"deletions": 0},
    ),
    Case(
        "forgotten expansion of the ISR, as a loss",
        "elr-repaired",
        {"equal_partition_epoch": "replaces-pending-isr"},
        {"losses": 1, "fences": 1},
        NOT_TRIED,
        60,
        strict=False,
    ),
)


@dataclass(slots=True)
class Result:
    """The walks of one case: of each seed, CPU seconds until the failure was found (None: it was not), and walks."""

    seconds: list[float | None] = field(default_factory=list)
    walks: list[int] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """The median over the seeds; None if it is beyond the limit."""
        middle = median(float("inf") if one is None else one for one in self.seconds)
        return None if middle == float("inf") else middle


def measure(case: Case, seeds: Sequence[int], seconds: float, *, repaired: bool = False) -> Result:
    """Walk with each of the seeds."""
    result = Result()
    for seed in seeds:
        found = case.walk(seed, seconds, repaired=repaired)
        result.seconds.append(found.seconds if found.stopped else None)
        result.walks.append(found.walks)
    return result


def row(case: Case, result: Result) -> str:
    """A case as a row of the table."""
    middle = result.median
    there = sum(one is not None for one in result.seconds)
    figure = "-" if middle is None else f"{middle:.2g}"
    kept = "yes" if middle is not None and middle <= case.mark else "**no**"
    cells = [case.about, f"`{case.command}`", case.tlc, f"{case.mark:g}", figure]
    cells += [f"{there} of {len(result.seconds)}", f"{round(median(result.walks)):,}", kept]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a mark is missed, or if walks without what is wrong show anything."""
    parser = argparse.ArgumentParser(prog="walks", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--seconds", type=float, default=12.0, help="time of a seed, at most")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="first seed")
    parser.add_argument("--repaired", action="store_true", help="walk without what is wrong: nothing may be found")
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + SEEDS)
    code = exit_codes.EXPECTED
    for case in CASES:
        if given.only not in case.about:
            continue
        result = measure(case, seeds, given.seconds, repaired=given.repaired)
        sys.stdout.write(f"{row(case, result)}\n")
        sys.stdout.flush()
        middle = result.median
        if any(one is not None for one in result.seconds) if given.repaired else middle is None or middle > case.mark:
            code = exit_codes.UNEXPECTED
    return code


if __name__ == "__main__":
    sys.exit(main())
