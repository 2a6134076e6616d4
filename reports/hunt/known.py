"""The findings of FINDINGS.md as a hunt recognises them: by what cures a failure, and by its story.

The cure alone does not suffice: a repair may cure another bug by chance, or because it prevents the situation. The
story alone does not either: the same faults lead to several bugs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sim.errors import InputError, did_you_mean
from sim.protocol.rules import RULES, unmet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import Symptom, Trials

LOSS: Final = ("committed-loss", "exposed-loss")
Repair = tuple[str, str]
"""A rule, and its value."""
Part = tuple[frozenset[str], int]
"""Kinds of fault, and how many of them a story has at least."""


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding.

    Attributes:
        name: the scripted scenario that shows it.
        kinds: any of these violations.
        repair: the rule value that cures it.
        story: the faults without which it cannot happen.
        also_by: rule values each of which cures it as well.
        not_by: rule values none of which cures it by itself.
    """

    name: str
    kinds: tuple[str, ...]
    repair: Repair
    story: tuple[Part, ...]
    also_by: tuple[Repair, ...] = ()
    not_by: tuple[Repair, ...] = ()

    def is_told_by(self, faults: Iterable[str]) -> bool:
        """Whether the kinds of a run's faults contain its story."""
        there = Counter(faults)
        return all(sum(there[kind] for kind in kinds) >= least for kinds, least in self.story)

    def cures(self, case: Case, symptom: Symptom, trials: Trials) -> bool:
        """Whether its repairs, and no others of those that it names, cure a case."""
        if symptom.kind not in self.kinds:
            return False
        cured = (_cured(case, symptom, trials, one) for one in (self.repair, *self.also_by))
        return all(cured) and not any(_cured(case, symptom, trials, one) for one in self.not_by)


def _cured(case: Case, symptom: Symptom, trials: Trials, repair: Repair) -> bool:
    rules = case.mode.rules.override(case.rules)
    if unmet(RULES[repair[0]].where, [rules]) or rules.as_dict()[repair[0]] == repair[1]:
        return False
    row = trials.changed_row(case, case.with_rule(*repair))
    return row["digest"] != trials.row(case)["digest"] and symptom.cured_in(row)


_MOVE: Final = frozenset({"reassignment", "reassignment-cancel"})
_LATE: Final = frozenset({"metadata-lag", "slow", "message-hold", "message-loss", "pause", "cut", "zombie"})
_END: Final = _LATE | {
    "kill",
    "power-loss",
    "controlled-restart",
    "disk-replaced",
    "corrupt-tail",
    "disk-stall",
    "session-expiry",
    "unregistration",
    "power-domain-loss",
    "host-loss",
    "rack-cut",
}
"""By which a broker leaves the ISR, or the leadership."""
_DROPS: Final = ("elr_outside_assignment", "dropped")
_MARKS: Final = ("resubmitted_reassignment", "replaces-marks")
_TARGETS: Final = ("reassignment_completes", "targets-in-isr")
"""As up to 4.2."""
_ENOUGH: Final = ("reassignment_completes", "min-isr")
_MOVED_ONCE: Final[tuple[Part, ...]] = ((_MOVE, 1), (_END, 1))
_MOVED_TWICE: Final[tuple[Part, ...]] = ((_MOVE, 2), (_END, 1))
FINDINGS: Final[Mapping[str, KnownFinding]] = {
    one.name: one
    for one in (
        KnownFinding("reassignment-back", LOSS, _DROPS, _MOVED_TWICE, also_by=(_TARGETS,)),
        KnownFinding("reassignment-cancelled", LOSS, _DROPS, _MOVED_TWICE, also_by=(_ENOUGH,), not_by=(_TARGETS,)),
        KnownFinding("reassignment-to-one", LOSS, _DROPS, _MOVED_ONCE, not_by=(_TARGETS, _ENOUGH)),
        KnownFinding("reassignment-again", LOSS, _MARKS, _MOVED_TWICE, not_by=(_DROPS,)),
        KnownFinding(
            "reassignment-shrinks-isr", LOSS, _ENOUGH, _MOVED_ONCE, also_by=(_TARGETS,), not_by=(_DROPS, _MARKS)
        ),
        KnownFinding("reassignment-cancelled-power-loss", LOSS, _ENOUGH, _MOVED_ONCE, not_by=(_DROPS, _TARGETS)),
        KnownFinding("elr-outside-assignment", ("no-progress",), _DROPS, _MOVED_ONCE, not_by=(_MARKS,)),
        KnownFinding("reassignment-stuck", ("no-progress",), _MARKS, ((_MOVE, 2),), not_by=(_DROPS,)),
        KnownFinding(
            "directory-assignment",
            LOSS,
            ("directory_assignment", "keeps-elr"),
            ((frozenset({"disk-replaced"}), 1), (_END, 1)),
        ),
        KnownFinding(
            "forgotten-expansion", LOSS, ("equal_partition_epoch", "keeps-pending-isr"), ((_LATE, 1), (_END, 1))
        ),
        KnownFinding(
            "recreated-topic",
            (*LOSS, "divergence"),
            ("recreated_reply", "dropped"),
            ((frozenset({"topic-deletion"}), 1), (_LATE, 1)),
        ),
        KnownFinding(
            "leader-in-failed-directory",
            ("no-progress",),
            ("reported_directory", "excluded"),
            ((frozenset({"directory-unrepaired"}), 1), (_END, 1)),
        ),
        KnownFinding(
            "stale-log-start",
            ("divergence",),
            ("epoch_recorded_at", "first-append"),
            ((frozenset({"record-deletion", "retention"}), 1), (_END, 1)),
        ),
    )
}
"""By name, those first that need more cures to be recognised."""


def known(hidden: Iterable[str] = ()) -> tuple[KnownFinding, ...]:
    """All findings but the hidden ones; raises InputError if one of these is none."""
    hidden = frozenset(hidden)
    if wrong := next((name for name in sorted(hidden) if name not in FINDINGS), ""):
        raise InputError(f"--hide {wrong}: no known finding has this name{did_you_mean(wrong, FINDINGS)}")
    return tuple(one for one in FINDINGS.values() if one.name not in hidden)


def recognise(
    findings: Iterable[KnownFinding], case: Case, symptom: Symptom, faults: Iterable[str], trials: Trials
) -> str:
    """The name of the known finding that a failed run shows; empty: none."""
    kinds = list(faults)
    return next(
        (one.name for one in findings if one.is_told_by(kinds) and one.cures(case, symptom, trials)),
        "",
    )


def told_differently(name: str, faults: Iterable[str]) -> bool:
    """Whether a failure that is cured like a known finding has another story."""
    return name in FINDINGS and not FINDINGS[name].is_told_by(faults)
