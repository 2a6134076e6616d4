"""What a plug-in declares: see `highwater.plugin`, which has all names that a plug-in may rely on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from faults.kind import FaultKind
from sim.checkers.checker import Checker
from sim.config import EVERYWHERE, Where
from sim.protocol import decision_points as points

API_VERSION: Final = 1
"""The version of the interface. A plug-in states the one that it was written for, and is refused by any other."""


class DecisionFunctions(TypedDict, total=False):
    """Decision point -> function of a rule value. A function takes the answer of Highwater's own values and the
    situation, and returns its own answer; it must be pure.
    """

    truncation: Callable[[tuple[int, bool], points.Truncation], tuple[int, bool]]
    fetcher_restart: Callable[[bool, points.FetcherRestart], bool]
    epoch_recorded: Callable[[bool, points.EpochRecorded], bool]
    isr_join: Callable[[bool, points.IsrJoin], bool]
    isr_leave: Callable[[tuple[int, ...], points.IsrLeave], tuple[int, ...]]
    isr_accepted: Callable[[bool, points.IsrAccepted], bool]
    high_watermark: Callable[[int, points.HighWatermark], int]
    end_offset_hidden: Callable[[bool, points.EndOffsetHidden], bool]
    replica_start: Callable[[int, points.ReplicaStart], int]
    leader: Callable[[int, points.Election], int]
    elr: Callable[[tuple[int, ...], points.EligibleReplicas], tuple[int, ...]]
    last_known_elr: Callable[[tuple[int, ...], points.EligibleReplicas], tuple[int, ...]]
    reassignment_completes: Callable[[bool, points.Reassignment], bool]


@dataclass(frozen=True, slots=True)
class RuleValue:
    """A new value of one of Highwater's rules.

    Attributes:
        rule: name of the rule.
        value: the new value.
        like: the value that it equals wherever `decisions` has no function.
        decisions: its functions by decision point.
        meaning: one sentence, for ``highwater modes show``.
        source: where it is proposed or discussed.
    """

    rule: str
    value: str
    like: str
    decisions: DecisionFunctions
    meaning: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A new rule.

    Attributes:
        name: its name.
        values: value -> its functions by decision point. The first value is the one of every mode that names none, and
            changes nothing.
        meaning: one sentence.
        source: where it is proposed or discussed.
        where: the rules and values with which it has an effect.
    """

    name: str
    values: Mapping[str, DecisionFunctions]
    meaning: str
    source: str = ""
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class StepProbe:
    """A new probe: it is reached at a step of a kind (`sim.history.steps.STEPS`) for which `when` is true.

    Attributes:
        name: its name.
        meaning: one sentence.
        step: the kind of step.
        when: takes a step, returns a bool.
    """

    name: str
    meaning: str
    step: str
    when: Callable[[Any], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Plugin:
    """The declarations of a plug-in, which its module has as `PLUGIN`.

    Attributes:
        rule_values: new values of rules.
        rules: new rules.
        modes: texts of mode files.
        faults: classes of new kinds of fault.
        checkers: classes of new checkers.
        probes: new probes.
        scenarios: texts of scenario files.
    """

    rule_values: Sequence[RuleValue] = ()
    rules: Sequence[Rule] = ()
    modes: Sequence[str] = ()
    faults: Sequence[type[FaultKind]] = ()
    checkers: Sequence[type[Checker]] = ()
    probes: Sequence[StepProbe] = ()
    scenarios: Sequence[str] = ()
