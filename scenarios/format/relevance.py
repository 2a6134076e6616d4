"""Finds given rules and settings that have no effect, because other rules exclude it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scenarios.format.scenario import Scenario
from sim.config import KEYS, Where
from sim.protocol.modes import Mode
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import RULES, Rules, unmet

SCRIPTED: Final = {"control_plane": "zookeeper"}
"""A scripted control plane imitates ZooKeeper in every mode."""


def idle(
    runs: Iterable[tuple[Scenario, Mode]],
    rules: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    named: Iterable[str] = (),
) -> list[str]:
    """Given rules and settings without effect in a run (a scenario in one of its modes), one line each.

    `named` are rules whose values the modes have already.
    """
    asked: dict[str, Where] = {f"rule {name}": RULES[name].where for name in (*(rules or ()), *named) if name in RULES}
    asked |= {f"setting {key}": KEYS[key].where for key in settings}
    brokers_of = [(mode, list(in_force(scenario, mode, rules or {}))) for scenario, mode in runs]
    lines = []
    for what, where in asked.items():
        decides = {mode.name for mode, brokers in brokers_of if not unmet(where, brokers)}
        reasons: dict[str, dict[str, None]] = {}
        for mode, brokers in brokers_of:
            if mode.name not in decides:
                (reason,) = (f"{name}={'|'.join(values)}" for name, values in unmet(where, brokers))
                reasons.setdefault(reason, {})[mode.name] = None
        lines += [f"{what} has no effect in {', '.join(names)}: it needs {reason}" for reason, names in reasons.items()]
    return lines


def in_force(scenario: Scenario, mode: Mode, rules: Mapping[str, str]) -> Iterator[Rules]:
    """The rules of all brokers, including those that they may start with."""
    older = scenario.upgraded_from if scenario.recorded is None else scenario.recorded.older.values()
    for one in (mode, *map(mode_named, (*scenario.broker_modes.values(), *older))):
        own = one.rules.override(rules)
        if own.control_plane == mode.rules.override(rules).control_plane:
            yield own
            if scenario.control == "scripted":
                yield own.override(SCRIPTED)
