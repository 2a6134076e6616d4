"""The cause of a violation: the set of single repairs that cure it.

A *repair* gives one rule a later release's value, or what a bug of a later release has replaced (`RuleSpec.values`), or
one setting the value that operators are told to choose. It *cures* a run if the same plan then lacks the violation. The
set of cures distinguishes bugs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scenarios.format.relevance import in_force
from scenarios.shrinking.case import Case
from sim.config import Value, shown
from sim.protocol.modes import Mode
from sim.protocol.rules import RULES, unmet

NO_REPAIRS: Final = ("control_plane", "elr", "hw_needs_min_isr", "unclean_recovery")
"""Rules that are not tried as repairs: another value is another control plane or promise, and would cure anything."""
FLUSH: Final = "log.flush.interval.messages"
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"
FACTOR: Final = "default.replication.factor"


@dataclass(frozen=True, slots=True, order=True)
class Repair:
    """Another value of one rule (`is_rule`), or of one setting."""

    name: str
    value: Value
    is_rule: bool

    def __str__(self) -> str:
        return f"{self.name}={shown(self.value)}"

    @property
    def what(self) -> str:
        """``rule`` or ``setting``."""
        return "rule" if self.is_rule else "setting"

    def is_possible(self, case: Case) -> bool:
        """Whether there are at least min ISR replicas; otherwise nothing is acknowledged, so nothing can be lost."""
        return self.name != MIN_ISR or int(self.value) <= int(case.scenario.config[FACTOR])

    def apply(self, case: Case) -> Case:
        """The repaired case."""
        if self.is_rule:
            return case.with_rule(self.name, str(self.value))
        repaired = case.with_settings({self.name: self.value})
        if self.name == "acks":  # The batches were drawn with the old value.
            return repaired.with_sends(tuple((first, count, -1, due) for first, count, _, due in case.sends))
        return repaired


def later_values(mode: Mode) -> list[tuple[str, str]]:
    """All later values of a mode's rules, except `NO_REPAIRS`: (rule, value)."""
    rules = mode.rules.as_dict()
    return [
        (name, value)
        for name, spec in RULES.items()
        if name not in NO_REPAIRS
        for value in spec.values[spec.values.index(rules[name]) + 1 :]
    ]


def repairs(case: Case) -> Iterator[Repair]:
    """Repairs to try on a case: rules that have an effect in its mode, then settings."""
    rule_sets = list(in_force(case.scenario, case.mode, case.rules))
    for name, value in later_values(case.mode.override(case.rules)):
        if not unmet(RULES[name].where, rule_sets):
            yield Repair(name, value, is_rule=True)
    config = case.scenario.config
    if any(acks != -1 for _, _, acks, _ in case.sends):
        yield Repair("acks", "all", is_rule=False)
    if int(config[MIN_ISR]) < int(config[FACTOR]):
        yield Repair(MIN_ISR, int(config[MIN_ISR]) + 1, is_rule=False)
    if int(config[FLUSH]) > 1:
        yield Repair(FLUSH, 1, is_rule=False)
    if config[UNCLEAN]:
        yield Repair(UNCLEAN, False, is_rule=False)
