"""Finds given rules and settings that have no effect, because other rules exclude it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scenarios.format.scenario import Scenario
from sim.config import CONTROLLER_KEYS, KEYS, Where
from sim.protocol.modes import Mode
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import RULES, Rules, unmet

SCRIPTED: Final = {"control_plane": "zookeeper"}
"""A scripted control plane imitates ZooKeeper in every mode."""
OF_CONTROLLERS: Final = CONTROLLER_KEYS | {
    "pre_vote",
    "leader_search",
    "observer_fetch_timeout",
    "raft_high_watermark",
    "begin_quorum_epoch",
    "removed_voter",
}
"""Rules and keys that have an effect only with ``control = "quorum"``, where controllers are processes."""


def idle(
    runs: Iterable[tuple[Scenario, Mode]],
    rules: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    named: Iterable[str] = (),
) -> list[str]:
    """Given rules and settings without effect in a run (a scenario in one of its modes), one line each.

    `named` are rules whose values the modes have already.
    """
    asked = {("rule", name): RULES[name].where for name in (*(rules or ()), *named) if name in RULES}
    asked |= {("setting", key): KEYS[key].where for key in settings}
    brokers_of = [(scenario, mode, list(in_force(scenario, mode, rules or {}))) for scenario, mode in runs]
    lines = []
    for (kind, word), where in asked.items():
        missing = [(mode.name, _missing(word, where, scenario, brokers)) for scenario, mode, brokers in brokers_of]
        decides = {name for name, reason in missing if not reason}
        reasons: dict[str, dict[str, None]] = {}
        for name, reason in missing:
            if name not in decides:
                reasons.setdefault(reason, {})[name] = None
        lines += [
            f"{kind} {word} has no effect in {', '.join(names)}: it needs {reason}" for reason, names in reasons.items()
        ]
    return lines


def _missing(name: str, where: Where, scenario: Scenario, brokers: list[Rules]) -> str:
    """What a rule or key needs to have an effect in a run; empty if it has one."""
    if conditions := [f"{rule}={'|'.join(values)}" for rule, values in unmet(where, brokers)]:
        return conditions[0]
    return 'control = "quorum"' if name in OF_CONTROLLERS and not scenario.controller_count else ""


def in_force(scenario: Scenario, mode: Mode, rules: Mapping[str, str]) -> Iterator[Rules]:
    """The rules of all brokers, including those that they may start with."""
    older = scenario.upgraded_from if scenario.recorded is None else scenario.recorded.older.values()
    for one in (mode, *map(mode_named, (*scenario.broker_modes.values(), *older))):
        own = one.rules.override(rules)
        if own.control_plane == mode.rules.override(rules).control_plane:
            yield own
            if scenario.control == "scripted":
                yield own.override(SCRIPTED)
