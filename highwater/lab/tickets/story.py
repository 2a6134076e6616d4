"""A story to be told in a ticket: the scenario in one mode, its simulated run, and the rules that decide it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.comparison import times_us
from highwater.lab.confirm.release import InstalledRelease, mode_of
from scenarios.format import catalogue
from scenarios.format.findings import all_findings, causes
from scenarios.single.run import run
from scenarios.single.script import RulesInForce
from sim.config import Value, integer
from sim.errors import InputError
from sim.history import steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.format.scenario import Scenario, ScriptLine, StoryLine
    from scenarios.single.result import RunResult
    from sim.protocol.modes import Mode

CONFIRMED: Final = Path(__file__).with_name("confirmed.json")
"""Recorded runs on brokers: scenario -> hash of its file, and release -> how many agreed with the simulation, of how
many, the last day.
"""


@dataclass(frozen=True)
class Tried:
    """A release on whose brokers a story was performed.

    Attributes:
        violations: those of the release's mode, inside its promise; brokers that agreed have them, too.
        outside: those outside its promise.
        agreed: runs that agreed with the simulation, of `runs`.
    """

    release: str
    mode: Mode
    violations: tuple[str, ...]
    outside: tuple[str, ...]
    agreed: int
    runs: int
    day: str

    @property
    def fails(self) -> bool:
        """Whether the simulation, and brokers that agree with it, violate something inside the promise."""
        return bool(self.violations)


@dataclass(frozen=True)
class TicketStory:
    """A story: the scenario in the mode of the newest release on which it fails."""

    scenario: Scenario
    mode: Mode
    release: str
    result: RunResult
    lines: list[ScriptLine]
    expected: list[StoryLine]
    tried: list[Tried]

    @property
    def trace(self) -> list[dict[str, Any]]:
        """The steps of the run."""
        return list(self.result.trace or ())

    @property
    def times(self) -> list[int]:
        """When each line of the script was performed."""
        return times_us(self.trace, self.lines, self.batches)

    @property
    def batches(self) -> dict[str, int]:
        """Batch -> its first record."""
        sends = [line.params for line in self.lines if line.do == "produce"]
        firsts = accumulate((params.get("records", 1) for params in sends), initial=0)
        return {params["batch"]: first for params, first in zip(sends, firsts, strict=False)}

    def batch_of(self, record: int) -> str:
        """The batch that holds a record."""
        return [batch for batch, first in self.batches.items() if first <= record][-1]

    def lost_from(self, broker: int, at_us: int) -> str:
        """The first batch that a broker lacks when it has recovered from a power loss; empty: it lacks none."""
        recovered = next(
            step["offset"]
            for step in self.trace
            if step["t"] > at_us and step["step"] == steps.RECOVERED.name and step["broker"] == broker
        )
        return next((batch for batch, record in self.batches.items() if record >= recovered), "")

    @property
    def replicas(self) -> int:
        """Number of the partition's replicas at first."""
        return integer(self.result.settings, "default.replication.factor")

    def rules(self) -> list[str]:
        """The rules that decide it: those that break the repaired mode, or that tell kept from lost releases, and the
        rule of its finding's repair.
        """
        scenario = self.scenario
        repaired = [name for name in ("elr-repaired", "kraft-repaired") if name in scenario.broken_by]
        named = [rule for name in repaired or scenario.broken_by for rule in scenario.broken_by[name]]
        if (finding := all_findings().get(scenario.name)) is not None:
            named.append(finding.repair[0])
        return [rule for rule in causes() if rule in named]


def listed(numbers: Iterable[int]) -> str:
    """Numbers with commas, as people and Java list them."""
    return ", ".join(map(str, numbers))


def in_properties(value: Value) -> str:
    """A value as Kafka's tools and properties files take it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_tried() -> dict[str, dict[str, Any]]:
    """Scenario -> ``file``, its `Scenario.scenario_hash`, and its recorded ``releases``: release -> ``[agreed, runs,
    day]``.
    """
    found: dict[str, dict[str, Any]] = json.loads(CONFIRMED.read_text(encoding="utf-8"))["scenarios"]
    return found


def tell(word: str) -> TicketStory:
    """The story of a scenario, a name or file.

    Raises:
        InputError: there is no such scenario, no run of its file on brokers is recorded, or no release fails.
    """
    scenario = catalogue.load(word)
    if scenario.drawn or not scenario.script:
        raise InputError(f"{scenario.name} has no script: a ticket needs a story (see 'highwater shrink')")
    tried = tried_on(scenario)
    failing = [trial for trial in tried if trial.fails and trial.agreed]
    if not failing:
        raise InputError(f"{scenario.name}: no recorded release of Kafka fails in it")
    newest = failing[-1]
    rules = newest.mode.rules
    force = RulesInForce(rules, dict.fromkeys(range(1, scenario.brokers + 1), rules))
    lines = [line for line in scenario.script if force.fit(line.rules, None)]
    expected = [line for line in scenario.story if force.fit(line.rules, line.pattern.broker)]
    result = run(scenario, newest.mode, 0, {}, trace=True)
    return TicketStory(scenario, newest.mode, newest.release, result, lines, expected, tried)


def tried_on(scenario: Scenario) -> list[Tried]:
    """The releases on whose brokers a scenario was performed, the oldest first.

    Raises:
        InputError: no run of its file on brokers is recorded.
    """
    recorded = _recorded(scenario.name, scenario.scenario_hash())
    return [_tried(scenario, release, *recorded[release]) for release in sorted(recorded, key=_place)]


def is_tried(scenario: Scenario) -> bool:
    """Whether a run of the scenario's present script and settings on brokers is recorded."""
    return any(about["file"] == scenario.scenario_hash() for about in read_tried().values())


def _recorded(name: str, scenario_hash: str) -> dict[str, list[Any]]:
    """The recorded runs of the scenario with this hash.

    Raises:
        InputError: there is none.
    """
    known = read_tried()
    for about in known.values():
        if about["file"] == scenario_hash:
            releases: dict[str, list[Any]] = about["releases"]
            return releases
    if name in known:
        raise InputError(
            f"{name}: no run of this file on brokers is recorded. Those of the scenario {name} had another script or "
            f"other settings (hash {known[name]['file']}, and this one's is {scenario_hash})"
        )
    raise InputError(f"{name}: no run on brokers is recorded; known are {', '.join(sorted(known))}")


def _tried(scenario: Scenario, release: str, agreed: int, runs: int, day: str) -> Tried:
    mode, _ = mode_of(InstalledRelease(release, ()))
    violations = run(scenario, mode, 0, {}).violations
    inside = dict.fromkeys(violation["kind"] for violation in violations if violation["inside"])
    outside = dict.fromkeys(violation["kind"] for violation in violations if not violation["inside"])
    return Tried(release, mode, tuple(inside), tuple(outside), agreed, runs, day)


def _place(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
