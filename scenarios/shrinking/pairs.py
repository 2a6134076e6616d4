"""Pairs of rule values that together cure a failure which neither of them cures.

With one bug repaired, another may make the same run fail in the same way. Then no single repair cures it, and the
failure looks like a new one, although both bugs are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.shrinking.case import Case
from scenarios.shrinking.cause import Repair, repairs
from scenarios.shrinking.criterion import Criterion, Symptom, Trials, has_effect


def pairs(case: Case, symptom: Symptom, trials: Trials) -> Iterator[tuple[Repair, Repair]]:
    """The pairs, in the order of the rules: the first value has an effect on the run, the second cures what remains."""
    failed = trials.row(case)
    found: set[frozenset[Repair]] = set()
    for repair in repairs(case):
        if not repair.is_rule:
            continue
        repaired = repair.apply(case)
        row = trials.changed_row(case, repaired)
        if not has_effect(row, failed) or not symptom.shown_by(row):
            continue
        for other in Criterion(trials, repaired, symptom).cause:
            both = frozenset((repair, other))
            if other.is_rule and other.name != repair.name and both not in found:
                found.add(both)
                yield repair, other
