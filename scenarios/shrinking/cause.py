"""Causes: which single repairs cure a violation.

A *repair* gives one rule the value that a later release has, or one setting the value that operators are told to
choose. It *cures* a run whose plan is otherwise the same if the violation is gone. The set of repairs that cure is what
tells one bug from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scenarios.format.relevance import in_force
from sim.config import shown
from sim.protocol.rules import RULES, unmet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenarios.shrinking.case import Case
    from sim.config import Value
    from sim.protocol.modes import Mode

NO_REPAIRS: Final = ("control_plane", "elr", "hw_needs_min_isr", "unclean_recovery")
"""Rules that are no repair of a bug: with another value another world is simulated, or something else is promised, so
that they would cure anything.
"""
FLUSH: Final = "log.flush.interval.messages"
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"
FACTOR: Final = "default.replication.factor"


@dataclass(frozen=True, slots=True, order=True)
class Repair:
    """One rule or setting with another value.

    Attributes:
        name: of the rule, or the key of the setting.
        value: that it gets.
        is_rule: which of the two it is.
    """

    name: str
    value: Value
    is_rule: bool

    def __str__(self) -> str:
        return f"{self.name}={shown(self.value)}"

    def is_possible(self, case: Case) -> bool:
        """Whether there are enough replicas: with fewer than min ISR nothing is acknowledged, and so nothing lost."""
        return self.name != MIN_ISR or int(self.value) <= int(case.scenario.config[FACTOR])

    def apply(self, case: Case) -> Case:
        """The case with it."""
        if self.is_rule:
            return case.with_rule(self.name, str(self.value))
        repaired = case.with_settings({self.name: self.value})
        if self.name == "acks":  # What is sent was drawn with the setting's value.
            return repaired.with_sends(tuple((first, count, -1, due) for first, count, _, due in case.sends))
        return repaired


def later_values(mode: Mode) -> list[tuple[str, str]]:
    """All later values of a mode's rules, but for `NO_REPAIRS`: (rule, value)."""
    rules = mode.rules.as_dict()
    return [
        (name, value)
        for name, spec in RULES.items()
        if name not in NO_REPAIRS
        for value in spec.values[spec.values.index(rules[name]) + 1 :]
    ]


def repairs(case: Case) -> Iterator[Repair]:
    """Repairs that a case may have: of rules, without those that decide nothing in its mode; then of settings."""
    everybody = list(in_force(case.scenario, case.mode, case.rules))
    for name, value in later_values(case.mode.override(case.rules)):
        if not unmet(RULES[name].where, everybody):
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
