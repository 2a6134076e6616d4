"""Findings as a hunt recognises them: by the repairs that cure a failure, and by its faults.

The repairs alone do not suffice: one may cure another bug by chance, or because it prevents the situation. The faults
alone do not either: the same faults lead to several bugs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scenarios.format.finding import pairs
from scenarios.format.findings import recognised
from sim.errors import InputError, did_you_mean
from sim.protocol.rules import RULES, unmet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.format.finding import Repair
    from scenarios.format.findings import KnownFinding
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import Symptom, Trials


def has_needed(finding: KnownFinding, faults: Iterable[str]) -> bool:
    """Whether faults of these kinds include those that a finding needs."""
    there = Counter(faults)
    return all(sum(there[kind] for kind in part.all_kinds) >= part.least for part in finding.table.needs)


def cures(finding: KnownFinding, case: Case, symptom: Symptom, trials: Trials) -> bool:
    """Whether the repair of a finding and each of `also_by` cure a failure, and none of `not_by` does."""
    table = finding.table
    if symptom.kind not in table.kinds:
        return False
    cured = (_cures_alone(case, symptom, trials, one) for one in (finding.repair, *pairs(table.also_by)))
    return all(cured) and not any(_cures_alone(case, symptom, trials, pair) for pair in pairs(table.not_by))


def _cures_alone(case: Case, symptom: Symptom, trials: Trials, repair: Repair) -> bool:
    from scenarios.shrinking.criterion import has_effect

    rules = case.mode.rules.override(case.rules)
    if unmet(RULES[repair[0]].where, [rules]) or rules.as_dict()[repair[0]] == repair[1]:
        return False
    row = trials.changed_row(case, case.with_rule(*repair))
    return has_effect(row, trials.row(case)) and symptom.cured_in(row)


def known(hidden: Iterable[str] = ()) -> tuple[KnownFinding, ...]:
    """All findings but the hidden ones; raises InputError if a hidden name is not that of a finding."""
    hidden, found = frozenset(hidden), recognised()
    if wrong := next((name for name in sorted(hidden) if name not in found), ""):
        raise InputError(f"--hide {wrong}: no known finding has this name{did_you_mean(wrong, found)}")
    return tuple(finding for finding in found.values() if finding.name not in hidden)


def recognise(
    findings: Iterable[KnownFinding], case: Case, symptom: Symptom, faults: Iterable[str], trials: Trials
) -> str:
    """The name of the known finding that a failed run shows; empty: none."""
    kinds = list(faults)
    return next(
        (finding.name for finding in findings if has_needed(finding, kinds) and cures(finding, case, symptom, trials)),
        "",
    )


def lacks_needed(name: str, faults: Iterable[str]) -> bool:
    """Whether a failure that the repairs of a known finding cure lacks the faults that the finding needs."""
    found = recognised()
    return name in found and not has_needed(found[name], faults)
