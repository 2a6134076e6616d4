"""Single changes that would have prevented a violation: rules, settings and newer modes, tried on the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from scenarios.format.cluster_checks import check_control_plane
from scenarios.format.findings import all_findings
from scenarios.shrinking.advice import advice, of_mode
from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import FACTOR, Repair, repairs
from scenarios.shrinking.criterion import Symptom, Trials, has_effect
from sim.config import Value
from sim.errors import InputError
from sim.protocol.modes import MODES, Mode


@dataclass(frozen=True, slots=True)
class Remedy:
    """A tried change.

    Attributes:
        what: ``rule``, ``setting`` or ``mode``.
        advice: what a user can do (`scenarios.shrinking.advice`).
        keeps: whether the run lacks the violation with it.
        decides: whether it changes the run at all.
    """

    what: str
    change: str
    advice: str
    keeps: bool
    decides: bool

    @property
    def told(self) -> tuple[str, str, str]:
        """What, change and advice."""
        return self.what, self.change, "set it" if self.what == "setting" else self.advice


def remedies(
    case: Case, symptom: Symptom, trials: Trials, first_config: Mapping[str, Value] | None = None
) -> list[Remedy]:
    """Try each rule, setting and newer mode.

    A newer mode may promise more, so its violations count on both sides of its promise. `first_config` are the settings
    of the run before it was shrunk, which failed: a setting that it had already is no remedy.
    """
    failed = trials.row(case)
    found = []
    for what, change, told, changed in _changes(case, first_config or {}):
        if not changed.fits:
            continue
        row = trials.changed_row(case, changed)
        kept = symptom if what != "mode" else replace(symptom, inside=False)
        found.append(Remedy(what, change, told, kept.cured_in(row), has_effect(row, failed)))
    return found


def newer_modes(case: Case, symptom: Symptom) -> list[Remedy]:
    """Try the mode of each newer release on a scripted scenario, the oldest first.

    Modes that `[expect]` does not name are tried, too, but say nothing if the script does not play as written there.
    """
    failed = case.row()
    kept = replace(symptom, inside=False)
    found = []
    for mode in sorted(MODES.values(), key=lambda mode: mode.place):
        if mode.place > case.mode.place and not mode.follows and _fits(case, mode):
            row = replace(case, mode=mode).row()
            if row["verdict"] not in ("error", "exhausted"):
                found.append(Remedy("mode", mode.name, of_mode(mode), kept.cured_in(row), has_effect(row, failed)))
    return found


def declared_repairs(case: Case, symptom: Symptom) -> list[Remedy]:
    """Try the repair of a scripted scenario's finding, and newer modes that are no release, with their `[broken_by]`.

    Each rule is tried in the mode that fails. The modes, which may promise more, are tried after the rules.
    """
    failed = case.row()
    repaired = [
        mode
        for mode in MODES.values()
        if mode.name in case.scenario.broken_by and mode.follows and mode.place > case.mode.place
    ]
    finding = all_findings().get(case.scenario.name)
    values = [finding.repair] if finding is not None else []
    values += [(rule, mode.rules.as_dict()[rule]) for mode in repaired for rule in case.scenario.broken_by[mode.name]]
    found = []
    for rule, value in dict.fromkeys(values):
        row = case.with_rule(rule, value).row()
        repair = Repair(rule, value, is_rule=True)
        found.append(
            Remedy("rule", str(repair), advice([repair], case.mode), symptom.cured_in(row), has_effect(row, failed))
        )
    kept = replace(symptom, inside=False)
    for mode in repaired:
        row = replace(case, mode=mode).row()
        found.append(Remedy("mode", mode.name, of_mode(mode), kept.cured_in(row), has_effect(row, failed)))
    return found


def _fits(case: Case, mode: Mode) -> bool:
    """Whether the control plane of a mode can do what the scenario needs."""
    try:
        check_control_plane(case.scenario, [mode])
    except InputError:
        return False
    return True


def _changes(case: Case, first_config: Mapping[str, Value]) -> Iterator[tuple[str, str, str, Case]]:
    for repair in repairs(case):
        had_it = not repair.is_rule and repair.value == first_config.get(repair.name)
        if repair.is_possible(case) and not had_it:
            yield repair.what, str(repair), advice([repair], case.mode), repair.apply(case)
    factor = max(int(config[FACTOR]) for config in (case.scenario.config, first_config) if FACTOR in config)
    larger = case.with_scenario(brokers=max(case.scenario.brokers, factor + 1))
    more = Repair(FACTOR, factor + 1, is_rule=False)
    yield more.what, str(more), advice([more], case.mode), more.apply(larger)
    for mode in MODES.values():
        if mode.place > case.mode.place and not mode.follows and _fits(case, mode):
            yield "mode", mode.name, of_mode(mode), replace(case, mode=mode)
