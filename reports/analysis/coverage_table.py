"""Coverage of a sweep, from its ``summary.json``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sim.config import EVERYWHERE
from sim.errors import InputError
from sim.protocol.modes import MODES
from sim.protocol.probes import PROBES, RULE_BRANCH, TRANSITIONS
from sim.protocol.rules import Rules, unmet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scenarios.sweep.store import Store

COVERAGE_VERSION: Final = 2
"""Version 1 lacks `exhausted`."""
_MEANINGS: Final = {(probe.group, probe.name): probe.meaning for probe in PROBES if probe.group != RULE_BRANCH}
_CONDITIONS: Final = {(probe.group, probe.name): probe.where for probe in PROBES}
_OF_TRANSITIONS: Final = {probe.group for probe in PROBES[:TRANSITIONS]}
Runs = dict[str, int]
"""Mode -> number of runs; modes without runs are omitted."""


@dataclass(frozen=True, slots=True)
class ProbeGroup:
    """Probes that belong together.

    Attributes:
        name: name of the group.
        probes: name -> number of runs that reached it.
        never: names of probes that no run reached, though a mode of the sweep could.
        foreign: probes that no mode of the sweep can reach.
    """

    name: str
    probes: Mapping[str, Runs]
    never: tuple[str, ...]
    foreign: tuple[str, ...] = ()

    def meaning(self, probe: str) -> str:
        """Meaning of a transition; empty for branches, and if this version does not know it."""
        return _MEANINGS.get((self.name, probe), "")


@dataclass(frozen=True, slots=True)
class Wake:
    """A kind of fault that took effect.

    Attributes:
        kind: kind of fault.
        runs: number of runs in which it took effect.
        reached: transition -> number of runs that reached it after such a fault.
        never: transitions that no run reached after such a fault.
    """

    kind: str
    runs: Runs
    reached: Mapping[str, Runs]
    never: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """The coverage of a sweep.

    Attributes:
        runs: number of runs by mode.
        exhausted: runs that used up their budget, and might have reached more, by mode.
        shortcomings: why the sweep is incomplete, one sentence each.
        groups: groups of probes.
        wakes: kinds of faults that took effect.
        missing: transitions that no run reached after any fault.
        idle: kinds of faults that were drawn and took effect in no run.
        undrawn: kinds of faults that no scenario of the sweep draws or scripts.
    """

    runs: Runs
    exhausted: Runs
    shortcomings: tuple[str, ...]
    groups: tuple[ProbeGroup, ...]
    wakes: tuple[Wake, ...]
    missing: tuple[str, ...]
    idle: tuple[str, ...]
    undrawn: tuple[str, ...]


def check(store: Store) -> dict[str, Any]:
    """Check, without reading rows, that `read` can tell the coverage of a sweep; return its summary.

    Raises:
        InputError: it has no summary, its rows are older than coverage, or one of several scenarios is chosen and other
            code ran the sweep.
    """
    from scenarios.sweep.store import read_json
    from scenarios.sweep.store_checks import check_summary
    from scenarios.version import code_version

    folder = store.folder.shown
    summary = read_json(store.folder, "summary.json")
    check_summary(f"{folder}/summary.json", summary)
    if _is_part(store) and store.run["code_version"] != code_version():
        raise InputError(f"{folder}: only the code that ran the sweep can tell the coverage of one of its scenarios")
    return summary


def _is_part(store: Store) -> bool:
    """Whether not all scenarios of a sweep are chosen."""
    return len(store.scenarios) < len(store.sweep.scenarios)


def read(store: Store) -> CoverageReport:
    """Read the coverage of a sweep's chosen scenarios and modes.

    Raises:
        InputError: no wave of it is done and sound, or as `check`.
    """
    summary = check(store)
    found = summary["coverage"]
    if _is_part(store):
        found = _summed(store)
    else:
        for _ in store.tables(["seed"]):
            pass  # The counts are the summary's; reading the parts reveals damage.
        found = _of_modes(found, store.modes)
    if not store.covered or not any(found["runs"].values()):
        raise store.no_rows()
    results = [one for one in summary["results"] if one["scenario"] in store.scenarios and one["mode"] in store.modes]
    return _report(store, found, results)


def _summed(store: Store) -> dict[str, Any]:
    """The coverage of the chosen rows, as a summary has it of all rows."""
    from scenarios.single import coverage_column

    reached = {mode: coverage_column.Reached() for mode in store.modes}
    for _, table in store.tables(["mode", "coverage"]):
        for row in table.to_pylist():
            reached[row["mode"]].add(row["coverage"])
    return coverage_column.to_json(reached)


def _of_modes(found: Mapping[str, Any], modes: Sequence[str]) -> dict[str, Any]:
    """A summary's coverage without the counts of other modes."""
    return {
        key: _of_modes(value, modes) if isinstance(value, dict) else value
        for key, value in found.items()
        if isinstance(value, dict) or key in modes
    }


def _report(store: Store, found: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> CoverageReport:
    scenarios = [scenario for scenario in store.run["scenarios"] if scenario["name"] in store.scenarios]
    rules = _in_force(store, scenarios)
    transitions = [
        name
        for group, probes in found["probes"].items()
        if group in _OF_TRANSITIONS
        for name, runs in probes.items()
        if runs or _is_possible(group, name, rules)
    ]
    drawn = {kind for scenario in scenarios for kind in (scenario.get("faults") or {}).get("kinds", ())}
    faults, pairs = found["faults"], {kind: found["pairs"].get(kind, {}) for kind in found["faults"]}
    wakes = tuple(
        Wake(kind, runs, pairs[kind], tuple(name for name in transitions if not pairs[kind].get(name)))
        for kind, runs in faults.items()
        if runs
    )
    return CoverageReport(
        runs=found["runs"],
        exhausted=_exhausted(results),
        shortcomings=tuple(store.shortcomings()),
        groups=tuple(_group(name, probes, rules) for name, probes in found["probes"].items()),
        wakes=wakes,
        missing=tuple(name for name in transitions if wakes and all(name in wake.never for wake in wakes)),
        idle=tuple(kind for kind, runs in faults.items() if not runs and kind in drawn),
        undrawn=tuple(kind for kind, runs in faults.items() if not runs and kind not in drawn),
    )


def _exhausted(results: Iterable[Mapping[str, Any]]) -> Runs:
    """Exhausted runs by mode; empty for summaries of older versions."""
    found = Counter[str]()
    for result in results:
        found[result["mode"]] += result["verdicts"].get("exhausted", 0)
    return dict(found)


def _group(name: str, probes: Mapping[str, Runs], rules: Sequence[Rules]) -> ProbeGroup:
    missing = [probe for probe, runs in probes.items() if not runs]
    foreign = [probe for probe in missing if not _is_possible(name, probe, rules)]
    return ProbeGroup(name, probes, tuple(probe for probe in missing if probe not in foreign), tuple(foreign))


def _is_possible(group: str, probe: str, in_force: Sequence[Rules]) -> bool:
    """Whether a probe can be reached under the rules of some broker or client."""
    if group == RULE_BRANCH:
        rule, _, value = probe.partition("=")
        return any(rules.as_dict().get(rule) == value for rules in in_force)
    return not unmet(_CONDITIONS.get((group, probe), EVERYWHERE), in_force)


def _in_force(store: Store, scenarios: Iterable[Mapping[str, Any]]) -> list[Rules]:
    """The rules of all brokers and clients of the chosen scenarios and modes."""
    run, modes = store.run, set(store.modes)
    modes |= {mode for scenario in scenarios for mode in (scenario.get("broker_modes") or {}).values()}
    known = {name: mode.rules.as_dict() for name, mode in MODES.items()}
    known |= {name: mode["rules"] for name, mode in run.get("own_modes", {}).items()}
    return [Rules.of({**known[mode], **run["rules"]}) for mode in sorted(modes & known.keys())]


def as_json(report: CoverageReport) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "schema_version": COVERAGE_VERSION,
        "complete": not report.shortcomings,
        "shortcomings": list(report.shortcomings),
        "runs": report.runs,
        "exhausted": report.exhausted,
        "groups": [
            {
                "group": group.name,
                "probes": [
                    {"probe": probe, "meaning": group.meaning(probe), "runs": runs}
                    for probe, runs in group.probes.items()
                ],
                "never": list(group.never),
                "of_no_mode": list(group.foreign),
            }
            for group in report.groups
        ],
        "faults": [
            {"kind": wake.kind, "runs": wake.runs, "pairs": dict(wake.reached), "never": list(wake.never)}
            for wake in report.wakes
        ],
        "faults_without_effect": list(report.idle),
        "faults_not_drawn": list(report.undrawn),
    }
