"""Runs and sweeps in modes that are named, as on a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenarios.single import run as single
from scenarios.sweep import units
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from scenarios.single.rows import Row
    from scenarios.sweep.units import Sweep
    from sim.kernel.scheduler import Kernel
    from sim.protocol.modes import Mode


def modes(*names: str) -> tuple[Mode, ...]:
    return tuple(map(mode_named, names))


def run(
    scenario: Scenario,
    mode: str,
    seed: int,
    rules: Mapping[str, str] | None = None,
    *,
    trace: bool = False,
    kernel: Kernel | None = None,
) -> RunResult:
    return single.run(scenario, mode_named(mode), seed, rules, trace=trace, kernel=kernel)


def run_row(scenario: Scenario, mode: str, seed: int, rules: Mapping[str, str] | None = None) -> Row:
    return single.run_row(scenario, mode_named(mode), seed, rules)


def sweep(scenarios: tuple[Scenario, ...], modes: Mapping[str, tuple[str, ...]], *rest: Any, **others: Any) -> Sweep:
    named = {name: tuple(map(mode_named, words)) for name, words in modes.items()}
    return units.Sweep(scenarios, named, *rest, **others)
