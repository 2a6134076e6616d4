"""The findings of FINDINGS.md as a hunt recognises them: by the repairs that cure a failure, and by its faults.

The repairs alone do not suffice: one may cure another bug by chance, or because it prevents the situation. The faults
alone do not either: the same faults lead to several bugs.
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
_LOSS_OR_REGRESSION: Final = (*LOSS, "hw-regression")
"""A loss, which may first show as a high watermark that goes back."""
Repair = tuple[str, str]
"""A rule, and its value."""
Part = tuple[frozenset[str], int]
"""Kinds of fault, and the least number of faults of these kinds."""


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding.

    Attributes:
        name: the scripted scenario that shows it.
        kinds: kinds of violation, of which a failure has one.
        repair: the rule value that cures it.
        story: the faults that it needs.
        also_by: rule values each of which cures it, too.
        not_by: rule values that do not cure it, each tried alone.
    """

    name: str
    kinds: tuple[str, ...]
    repair: Repair
    story: tuple[Part, ...]
    also_by: tuple[Repair, ...] = ()
    not_by: tuple[Repair, ...] = ()

    def is_told_by(self, faults: Iterable[str]) -> bool:
        """Whether a run with faults of these kinds has the faults that the finding needs."""
        there = Counter(faults)
        return all(sum(there[kind] for kind in kinds) >= least for kinds, least in self.story)

    def cures(self, case: Case, symptom: Symptom, trials: Trials) -> bool:
        """Whether `repair` and each of `also_by` cure a failure, and none of `not_by` does."""
        if symptom.kind not in self.kinds:
            return False
        cured = (_cures_alone(case, symptom, trials, one) for one in (self.repair, *self.also_by))
        return all(cured) and not any(_cures_alone(case, symptom, trials, one) for one in self.not_by)


def _cures_alone(case: Case, symptom: Symptom, trials: Trials, repair: Repair) -> bool:
    rules = case.mode.rules.override(case.rules)
    if unmet(RULES[repair[0]].where, [rules]) or rules.as_dict()[repair[0]] == repair[1]:
        return False
    row = trials.changed_row(case, case.with_rule(*repair))
    return row["digest"] != trials.row(case)["digest"] and symptom.cured_in(row)


_REASSIGNMENTS: Final = frozenset({"reassignment", "reassignment-cancel"})
_DELAYS: Final = frozenset({"metadata-lag", "slow", "message-hold", "message-loss", "pause", "cut", "zombie"})
_DEPARTURES: Final = _DELAYS | {
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
"""Kinds of fault by which a broker leaves the ISR, or loses leadership."""
_LOSSY_ENDS: Final = frozenset({"power-loss", "disk-replaced", "corrupt-tail", "power-domain-loss", "host-loss"})
_DIRECTORY_FAILURES: Final = frozenset({"directory-failure", "directory-unrepaired", "directory-replaced"})
_UNMARKED: Final = _DIRECTORY_FAILURES | {"directory-added", "disk-replaced"}
"""Kinds of fault after which a directory in use has no clean-shutdown marker, and the broker or replica has stopped."""
_ELR_DROPS: Final = ("elr_outside_assignment", "dropped")
_ELR_KEPT: Final = ("disabled_elr", "kept")
_MARKS_REPLACED: Final = ("resubmitted_reassignment", "replaces-marks")
_TARGETS_IN_ISR: Final = ("reassignment_completes", "targets-in-isr")
"""The behaviour of releases up to 4.2."""
_MIN_ISR: Final = ("reassignment_completes", "min-isr")
_MOVED_ONCE: Final[tuple[Part, ...]] = ((_REASSIGNMENTS, 1), (_DEPARTURES, 1))
_MOVED_TWICE: Final[tuple[Part, ...]] = ((_REASSIGNMENTS, 2), (_DEPARTURES, 1))
_FEATURE_CHANGED: Final[tuple[Part, ...]] = ((frozenset({"feature-change"}), 1), (_DEPARTURES, 1))
FINDINGS: Final[Mapping[str, KnownFinding]] = {
    one.name: one
    for one in (
        KnownFinding("reassignment-back", LOSS, _ELR_DROPS, _MOVED_TWICE, also_by=(_TARGETS_IN_ISR,)),
        KnownFinding(
            "reassignment-cancelled", LOSS, _ELR_DROPS, _MOVED_TWICE, also_by=(_MIN_ISR,), not_by=(_TARGETS_IN_ISR,)
        ),
        KnownFinding("reassignment-to-one", LOSS, _ELR_DROPS, _MOVED_ONCE, not_by=(_TARGETS_IN_ISR, _MIN_ISR)),
        KnownFinding("reassignment-again", LOSS, _MARKS_REPLACED, _MOVED_TWICE, not_by=(_ELR_DROPS,)),
        KnownFinding(
            "reassignment-shrinks-isr",
            LOSS,
            _MIN_ISR,
            _MOVED_ONCE,
            also_by=(_TARGETS_IN_ISR,),
            not_by=(_ELR_DROPS, _MARKS_REPLACED),
        ),
        KnownFinding(
            "reassignment-cancelled-power-loss", LOSS, _MIN_ISR, _MOVED_ONCE, not_by=(_ELR_DROPS, _TARGETS_IN_ISR)
        ),
        KnownFinding("elr-outside-assignment", ("no-progress",), _ELR_DROPS, _MOVED_ONCE, not_by=(_MARKS_REPLACED,)),
        KnownFinding(
            "reassignment-stuck", ("no-progress",), _MARKS_REPLACED, ((_REASSIGNMENTS, 2),), not_by=(_ELR_DROPS,)
        ),
        KnownFinding(
            "directory-assignment",
            LOSS,
            ("directory_assignment", "keeps-elr"),
            ((frozenset({"disk-replaced"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "elr-cleared",
            ("no-progress",),
            ("min_isr_change", "clears-if-enough"),
            ((frozenset({"min-isr-change"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "elr-cleared-power-loss",
            LOSS,
            ("min_isr_change", "clears-if-enough"),
            ((frozenset({"min-isr-change"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "isr-with-failed-directory",
            ("no-progress",),
            ("offline_replica", "refused"),
            ((_DIRECTORY_FAILURES, 1), (_DEPARTURES, 1)),
        ),
        KnownFinding("elr-disabled", ("no-progress",), _ELR_KEPT, _FEATURE_CHANGED),
        KnownFinding("elr-disabled-loss", LOSS, _ELR_KEPT, _FEATURE_CHANGED),
        KnownFinding("elr-enabled", ("no-progress",), ("last_candidate", "remembered"), _FEATURE_CHANGED),
        KnownFinding(
            "elr-kept-while-disabled",
            LOSS,
            ("min_isr_change_while_disabled", "clears-if-enough"),
            (*_FEATURE_CHANGED, (frozenset({"min-isr-change"}), 1)),
        ),
        KnownFinding(
            "elr-kept-after-unclean-shutdown",
            LOSS,
            ("unclean_shutdown_while_disabled", "leaves-elr"),
            ((frozenset({"feature-change"}), 1), (_LOSSY_ENDS, 1)),
        ),
        KnownFinding(
            "min-isr-of-first-partition",
            LOSS,
            ("controller_min_isr", "own"),
            _MOVED_ONCE,
        ),
        KnownFinding(
            "min-isr-raised-late",
            LOSS,
            ("isr_response", "with-min-isr"),
            ((frozenset({"min-isr-change"}), 1), (_DELAYS, 1)),
        ),
        KnownFinding(
            "min-isr-applied-last",
            LOSS,
            ("config_replay", "before-topics"),
            ((frozenset({"min-isr-change"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "forgotten-expansion",
            LOSS,
            ("equal_partition_epoch", "keeps-pending-isr"),
            ((_DELAYS, 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "leo-of-skipped-epoch",
            LOSS,
            ("skipped_epoch", "forgets-leo"),
            ((_DEPARTURES, 2),),
        ),
        KnownFinding(
            "counted-after-removal",
            LOSS,
            ("newer_fetch", "refused"),
            ((_DEPARTURES, 2),),
        ),
        KnownFinding(
            "recreated-topic",
            (*LOSS, "divergence"),
            ("recreated_reply", "dropped"),
            ((frozenset({"topic-deletion"}), 1), (_DELAYS, 1)),
        ),
        KnownFinding(
            "removed-directory",
            _LOSS_OR_REGRESSION,
            ("removed_directory", "unclean"),
            ((frozenset({"directory-removed"}), 1),),
        ),
        KnownFinding(
            "offline-directory",
            (*_LOSS_OR_REGRESSION, "no-progress"),
            ("offline_directory", "ignored"),
            ((_UNMARKED, 1), (_UNMARKED | _DEPARTURES | {"directory-removed"}, 2)),
        ),
        KnownFinding(
            "throttled-move",
            _LOSS_OR_REGRESSION,
            ("lagging_future_log", "keeps-log"),
            ((frozenset({"directory-move"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "skipped-log",
            ("stuck-replica",),
            ("skipped_log", "used"),
            ((frozenset({"directory-move"}), 1), (_DIRECTORY_FAILURES, 1)),
        ),
        KnownFinding(
            "leader-in-failed-directory",
            ("no-progress",),
            ("reported_directory", "excluded"),
            ((frozenset({"directory-unrepaired"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "stale-log-start",
            ("divergence", "deleted-records-back"),
            ("log_start_checkpoint", "at-once"),
            ((frozenset({"record-deletion", "retention"}), 1), (_DEPARTURES, 1)),
        ),
        KnownFinding(
            "kafka-15591", ("sequence-gap", "reordered-across-epochs"), ("unknown_producer", "out-of-order"), ()
        ),
        KnownFinding("duplicates-across-epochs", ("duplicate-across-epochs",), ("snapshot_batches", "five"), ()),
    )
}
"""Name -> finding. The first that matches counts, so those with more repairs to check come first."""


def known(hidden: Iterable[str] = ()) -> tuple[KnownFinding, ...]:
    """All findings but the hidden ones; raises InputError if a hidden name is not that of a finding."""
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
    """Whether a failure that the repairs of a known finding cure lacks the faults that the finding needs."""
    return name in FINDINGS and not FINDINGS[name].is_told_by(faults)
