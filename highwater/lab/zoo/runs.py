"""Runs of a random scenario, in which mutants and bugs are hunted."""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.format.catalogue import load
from scenarios.format.scenario import Scenario
from sim.config import Value, shown
from sim.protocol.modes import Mode
from sim.protocol.modes import mode as mode_named

Rules = tuple[tuple[str, str], ...]
"""Rules with their values."""


@dataclass(frozen=True, slots=True)
class TargetRuns:
    """Runs in which a target is hunted.

    Attributes:
        scenario: a random scenario.
        base: the mode that rule values are laid over.
        wrong: those of the runs.
        right: those of their counterparts.
        settings: laid over those of the scenario.
        kinds: the violations that count; empty: any.
        is_promised: whether they have to be inside the promise of the mode, or outside.
        also_by: rule values each of which has to cure them, too.
        not_by: rule values none of which may cure them alone.
        lossy_ends: most incarnations that may have ended with losses; None: any number.
    """

    scenario: str
    base: str
    wrong: Rules = ()
    right: Rules = ()
    settings: tuple[tuple[str, Value], ...] = ()
    kinds: tuple[str, ...] = ()
    is_promised: bool = True
    also_by: Rules = ()
    not_by: Rules = ()
    lossy_ends: int | None = None

    def load(self) -> Scenario:
        """The scenario with the settings."""
        return load(self.scenario).with_settings(dict(self.settings))

    @property
    def modes(self) -> tuple[Mode, Mode]:
        """The mode of the runs, and that of their counterparts."""
        base = mode_named(self.base)
        return base.override(dict(self.wrong)), base.override(dict(self.right))

    def command(self, seed: int, blow: str = "") -> str:
        """The command that repeats the run of a seed, with a blow."""
        words = [f"highwater {'replay' if blow else 'run'} {self.scenario} --mode {self.base} --seed {seed}"]
        words += [f"--rule {name}={value}" for name, value in self.wrong]
        words += [f"--set {key}={shown(value)}" for key, value in self.settings]
        return " ".join([*words, f"--blow {blow}"] if blow else words)
