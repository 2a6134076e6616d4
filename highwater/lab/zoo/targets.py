"""Targets: what a hunt looks for, a mutant or a bug of Kafka, and where: in runs of a random scenario, or in walks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from highwater.lab.zoo.bugs import bugs
from highwater.lab.zoo.runs import TargetRuns
from highwater.lab.zoo.walks import Walks, all_walks
from sim.config import Value
from sim.errors import InputError, did_you_mean, nearest
from sim.protocol.mutants import MUTANTS

BUDGETS: Final = {1: 10_000, 2: 1_000_000}
"""Tier -> number of seeds, or of walks, within which a target should be found."""


@dataclass(frozen=True, slots=True)
class TimeMark:
    """CPU time within which a target should be found.

    Attributes:
        seconds: that time.
        tlc: what TLC's random simulation of the public specifications needs on the same kind of machine, in CPU
            seconds; empty: not tried.
    """

    seconds: float
    tlc: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What is hunted: one thing that is wrong in a mode.

    Attributes:
        name: that of a mutant or bug, or the repair as ``RULE=VALUE``.
        sentence: what it does, or what goes wrong.
        source: tickets, proposals or a page.
        place: Kafka's class and method, of a mutant.
        tier: see `BUDGETS`; 0: there is no budget.
        runs: where runs hunt it.
        walks: where walks hunt it; None: nowhere.
    """

    name: str
    sentence: str
    source: str
    place: str
    tier: int
    runs: TargetRuns
    walks: Walks | None = None

    @property
    def budget(self) -> int | None:
        """Number of seeds, or of walks, within which it should be found."""
        return BUDGETS.get(self.tier)

    @property
    def mark(self) -> TimeMark | None:
        """The CPU time within which it should be found; None: there is no such time."""
        return MARKS.get(self.name)


def target(name: str) -> Target:
    """A mutant or a bug as target.

    Raises:
        InputError: neither has that name.
    """
    walks = all_walks().get(name)
    if name in MUTANTS:
        one = MUTANTS[name]
        runs = TargetRuns(one.scenario, one.mode, (("mutant", name),), (), one.settings)
        return Target(name, one.sentence, one.source, one.place, one.tier, runs, walks)
    if (bug := bugs().get(name)) is not None:
        return Target(name, bug.sentence, bug.source, "", bug.tier, bug.runs, walks)
    near = did_you_mean(name, names()) if nearest(name, names()) else "; 'highwater zoo list' lists them"
    raise InputError(f"unknown mutant or bug {name!r}{near}")


def repaired(mode: str, rule: str, value: str, scenario: str, settings: Mapping[str, Value]) -> Target:
    """What a value of a rule repairs in a mode, as target."""
    runs = TargetRuns(scenario, mode, (), ((rule, value),), tuple(settings.items()))
    return Target(f"{rule}={value}", "", "", "", 0, runs)


def names() -> list[str]:
    """The names of all mutants and bugs."""
    return [*MUTANTS, *bugs()]


def measured() -> dict[str, Any]:
    """What hunts needed: the tables of ``measured.toml``."""
    return tomllib.loads(files("highwater.lab.zoo").joinpath("measured.toml").read_text(encoding="utf-8"))


MARKS: Final = {name: TimeMark(mark["cpu_s"], mark.get("tlc", "")) for name, mark in measured()["marks"].items()}
"""Mutant or bug -> its mark."""
