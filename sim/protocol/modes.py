"""Modes: the replication behaviour of one Kafka release each, as a named set of rules, and its promise.

A mode sets only rules; configuration comes from the scenario, with one default table for all modes (`sim.config`).
Callers of `scenarios.single.run` may define other modes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sim.errors import InputError, did_you_mean
from sim.protocol.rules import RULES, Rules, RuleSpec, built_in, check, parse_overrides

__all__ = ["MODES", "NO_RELEASE", "RULES", "Mode", "Promised", "RuleSpec", "mode", "parse_overrides"]

NO_RELEASE: Final = "none"
"""The release of a mode that is not a release."""
NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}(\+[a-z_]{1,64}=[a-z0-9-]{1,64})*")
NAME_MAX: Final = 150
_RELEASE: Final = re.compile(r"[0-9]+(\.[0-9]+)*")


@dataclass(frozen=True, slots=True)
class Promised:
    """The parts of a mode's promise in which modes differ; `faults.promise.promise` has the rest, and judges.

    Attributes:
        keeps_all_shown: records that consumers read are kept like those acknowledged with acks=all (KAFKA-15583);
            otherwise records covered only by acks=1 may be read and lost.
        never_diverges: replicas never diverge, whatever was lost or elected (KIP-279).
        deduplicates: batches of an idempotent producer are neither duplicated nor reordered (KIP-98).
        counts_damage: records survive fewer than min.insync.replicas damaged replicas (KIP-966); otherwise they survive
            while the ISR has another member.
        damaged_by_loss: a replica counts as damaged if it ended and lost the record, not if it ended uncleanly, because
            the controller compares logs (KIP-966, unclean recovery).
    """

    keeps_all_shown: bool
    never_diverges: bool
    deduplicates: bool
    counts_damage: bool
    damaged_by_loss: bool

    def override(self, values: Mapping[str, str]) -> Promised:
        """The promise after some rules are set to other values."""
        changed: dict[str, Any] = {
            part: built_in(rule, values[rule]) in promising
            for part, (rule, promising) in _PROMISED_BY.items()
            if rule in values
        }
        return replace(self, **changed) if changed else self


_PROMISED_BY: Final = {
    "keeps_all_shown": ("hw_needs_min_isr", ("yes",)),
    "never_diverges": ("follower_truncation", ("leader-epoch-rounds", "on-fetch")),
    "deduplicates": ("producer_dedup", ("yes",)),
    "counts_damage": ("elr", ("on",)),
    "damaged_by_loss": ("unclean_recovery", ("first-replies", "log-inspection")),
}
"""Part of a promise -> the rule that it depends on, and the values with which it holds."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode.

    Attributes:
        name: ``[a-z0-9.-]+``; with ``+RULE=VALUE`` for each rule that was changed (`changed`).
        release: the Kafka release, `NO_RELEASE` if it is not one.
        follows: for a mode that is not a release, the release that it comes after.
        source: its word on the command line, if that is not its name: the path of a mode file.

    Raises:
        InputError: the name is invalid, or the mode has no position among releases.
    """

    name: str
    release: str
    summary: str
    rules: Rules
    promise: Promised
    follows: str = ""
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or len(self.name) > NAME_MAX:
            raise InputError(
                f"{self.name!r} is no mode's name: [a-z0-9.-]+, at most 64 characters, then +RULE=VALUE for rules that "
                f"differ, at most {NAME_MAX} characters together"
            )
        if not _RELEASE.fullmatch(self._beside):
            name = "follows" if self.release == NO_RELEASE else "release"
            raise InputError(f"mode {self.name}: {name} {self._beside!r} is no release, such as '2.6'")

    @property
    def _beside(self) -> str:
        return self.follows if self.release == NO_RELEASE else self.release

    @property
    def place(self) -> tuple[tuple[int, ...], bool]:
        """Its position among releases; a mode that is not a release comes right after the one it follows."""
        return tuple([int(number) for number in self._beside.split(".")]), self.release == NO_RELEASE

    def override(self, values: Mapping[str, str]) -> Mode:
        """This mode with other values of some rules, and the corresponding promise; raises InputError if one is
        unknown.
        """
        if not values:
            return self
        return replace(self, rules=self.rules.override(values), promise=self.promise.override(values))


_HW: Final = Rules(
    follower_truncation="high-watermark",
    epoch_request_error="retries",
    truncation_fencing="no",
    truncate_at_leo="keeps-epochs",
    log_start_checkpoint="periodic",
    epoch_recorded_at="first-append",
    fetcher_restart="leader-id-changed",
    fetch_fencing="no",
    session_epoch="first-fetch",
    fenced_fetcher="removed",
    late_reply="offset",
    recreated_reply="processed",
    recreated_fetch="counted",
    append_check="last-offset",
    append_error="thread-dies",
    overlap_recovery="fails",
    unreadable_checkpoint="ignored",
    missing_topic_id="kept",
    moved_log_epochs="of-records",
    lagging_future_log="replaces-log",
    skipped_log="waits-for-epoch",
    cordoned_directory="unknown",
    out_of_range="halts",
    hw_needs_min_isr="no",
    min_isr_cap="none",
    hw_needs_epoch="no",
    hw_at_fetch="every-fetch",
    caught_up="previous-fetch",
    isr_lag="time",
    lag_at_reelection="fetched",
    same_leader="keeps-leo",
    skipped_epoch="keeps-leo",
    unassigned_fetch="empty",
    refused_fetch="forgets-leo",
    isr_join="high-watermark",
    isr_eligibility="any",
    isr_update="zookeeper-write",
    registration_epoch="kept",
    missed_bounce="unnoticed",
    shutting_down_leader="online",
    shutdown_recipients="all-live",
    preferred_election="if-needed",
    reassignment_state="target",
    broker_epoch="ignored",
    newer_broker_epoch="accepted",
    control_retry="until-answered",
    controller_writes="unfenced",
    controller_startup="live-replicas",
    last_isr_member="leaves-if-unclean",
    broker_metadata="last-arrived",
    stop_replica="unchecked",
    stopped_writes="unanswered",
    deleted_replica="forgets-epoch",
    list_offsets_guard="no",
    list_offsets_fencing="no",
    client_metadata="latest-received",
    lost_requests="newest-first",
    consumer_validation="no",
    producer_dedup="no",
    unknown_producer="refused",
    snapshot_batches="last",
    producer_snapshots="rolled",
    producer_recovery="new-producer-id",
    control_plane="zookeeper",
    stale_fetch="served",
    newer_fetch="counted",
    isr_shrink_epoch="bumped",
    reassignment_completes="targets-in-isr",
    reassigned_replica="deleted",
    removed_voter="unexpected",
    directory_assignment="none",
    reported_directory="electable",
    offline_replica="joins",
    removed_directory="overlooked",
    offline_directory="unclean",
    resubmitted_reassignment="keeps-marks",
    elr="off",
    elr_outside_assignment="kept",
    disabled_elr="cleared",
    last_candidate="forgotten",
    last_known_elr="leader",
    last_known_leader="fenced-too",
    clean_shutdown="ignored",
    clean_shutdown_file="always",
    controller_min_isr="first-partition",
    min_isr_change="keeps-elr",
    min_isr_change_while_disabled="keeps-elr",
    unclean_shutdown_while_disabled="keeps-elr",
    unclean_registration="removes",
    fenced_session="none",
    activation_sessions="unfenced",
    lifecycle_retry="back-off",
    unclean_recovery="election",
    isr_floor="none",
    new_partition_reset="policy",
    duration_reset="retries",
    stopped_partition="stays",
    read_replica="leader",
    group_coordinator="cached",
    stopped_load="empty",
    coordinator_hw="any-replica",
    offset_fetch="unconfirmed",
    enabled_unclean_election="next-event",
    equal_partition_epoch="replaces-pending-isr",
    isr_response="without-min-isr",
    config_replay="after-topics",
    pre_vote="none",
    leader_search="observers",
    observer_fetch_timeout="bootstrap-only",
    raft_high_watermark="with-records",
    begin_quorum_epoch="all-voters",
)
_KIP101: Final = _HW.override(
    {
        "follower_truncation": "leader-epoch",
        "append_check": "first-offset",
        "unreadable_checkpoint": "fails-directory",
        "producer_dedup": "yes",
        "shutting_down_leader": "offline",
        "shutdown_recipients": "without-stopping",
        "last_isr_member": "stays",
        "preferred_election": "always",
    }
)
_KIP279: Final = _KIP101.override(
    {
        "follower_truncation": "leader-epoch-rounds",
        "producer_snapshots": "kept",
        "lost_requests": "oldest-first",
        "enabled_unclean_election": "checked",
    }
)
_KIP320_2_1: Final = _KIP279.override(
    {
        "stopped_partition": "begins-behind",
        "truncation_fencing": "yes",
        "shutdown_recipients": "all-live",
        "epoch_recorded_at": "election",
        "fetcher_restart": "newer-epoch",
        "fetch_fencing": "leader-epoch",
        "late_reply": "truncation-epoch",
        "out_of_range": "truncates",
        "isr_lag": "end-offset",
        "isr_join": "leader-epoch-start",
    }
)
_KIP320: Final = _KIP320_2_1.override(
    {
        "session_epoch": "every-fetch",
        "hw_needs_epoch": "yes",
        "hw_at_fetch": "moved-leo",
        "refused_fetch": "ignored",
        "fenced_fetcher": "failed",
        "append_error": "partition-fails",
        "preferred_election": "if-needed",
        "reassignment_state": "adding-and-removing",
        "broker_epoch": "checked",
        "controller_writes": "fenced",
        "controller_startup": "all-replicas",
        "stop_replica": "checked",
        "stopped_writes": "refused",
        "list_offsets_guard": "yes",
        "read_replica": "any",
        "group_coordinator": "refuses-unstable",
        "list_offsets_fencing": "yes",
        "client_metadata": "newest-epoch",
        "consumer_validation": "yes",
        "unknown_producer": "taken",
        "producer_recovery": "epoch-bump",
    }
)
_FIRST_TRY: Final = _KIP320.override({"fetch_fencing": "last-epoch", "hw_needs_epoch": "no"})
_REPAIRED: Final = _KIP320.override(
    {
        "stopped_load": "fails",
        "offset_fetch": "confirmed",
        "min_isr_cap": "replicas",
        "truncate_at_leo": "drops-epochs",
        "isr_eligibility": "registered",
        "registration_epoch": "bumped",
        "missed_bounce": "noticed",
        "broker_metadata": "last-sent",
        "skipped_epoch": "forgets-leo",
        "log_start_checkpoint": "at-once",
        "deleted_replica": "keeps-epoch",
        "recreated_reply": "dropped",
        "recreated_fetch": "refused",
        "unknown_producer": "out-of-order",
        "snapshot_batches": "five",
        "stopped_partition": "passed-over",
    }
)

_KRAFT_3_5: Final = _KIP320.override(
    {
        "control_plane": "kraft",
        "recreated_fetch": "refused",
        "stopped_partition": "begins-there",
        "broker_metadata": "last-sent",
        "follower_truncation": "on-fetch",
        "truncate_at_leo": "drops-epochs",
        "isr_eligibility": "registered",
        "isr_update": "alter-partition",
        "lag_at_reelection": "not-fetched",
        "unassigned_fetch": "refused",
        "read_replica": "in-sync",
        "enabled_unclean_election": "next-event",
        "producer_snapshots": "of-segments",
        "producer_recovery": "epoch-bump-when-fenced",
        "reassignment_completes": "adding-in-isr",
    }
)
_KRAFT: Final = _KRAFT_3_5.override(
    {
        "hw_needs_min_isr": "yes",
        "min_isr_cap": "replicas",
        "enabled_unclean_election": "checked",
        "stale_fetch": "refused",
        "isr_shrink_epoch": "kept",
        "reassignment_completes": "targets-in-isr",
        "clean_shutdown_file": "loaded-only",
        "missing_topic_id": "stray",
        "directory_assignment": "clears-elr",
    }
)
_ELR_SNAPSHOT: Final = _KRAFT.override({"elr": "on", "unclean_registration": "transitions"})
_ELR: Final = _ELR_SNAPSHOT.override(
    {
        "late_reply": "leader-epoch",
        "last_known_leader": "unfenced",
        "group_coordinator": "replayed",
        "stopped_load": "fails",
        "clean_shutdown": "checked",
        "min_isr_change": "clears-elr",
        "fenced_session": "kept",
        "lifecycle_retry": "interval",
        "pre_vote": "asked",
        "leader_search": "all-members",
        "raft_high_watermark": "at-once",
    }
)
_ELR_4_3: Final = _ELR.override(
    {
        "reassignment_completes": "targets-if-fewer",
        "directory_assignment": "keeps-elr",
        "last_known_elr": "lost-leader",
        "coordinator_hw": "leader",
        "cordoned_directory": "avoided",
        "observer_fetch_timeout": "leader-too",
        "begin_quorum_epoch": "silent-voters",
    }
)
_ELR_REPAIRED: Final = _ELR_4_3.override(
    {
        "stopped_partition": "passed-over",
        "removed_voter": "ignored",
        "offset_fetch": "confirmed",
        "reassignment_completes": "min-isr",
        "missing_topic_id": "kept",
        "reported_directory": "excluded",
        "offline_replica": "refused",
        "removed_directory": "unclean",
        "offline_directory": "ignored",
        "moved_log_epochs": "carried-over",
        "lagging_future_log": "keeps-log",
        "skipped_log": "used",
        "resubmitted_reassignment": "replaces-marks",
        "elr_outside_assignment": "dropped",
        "disabled_elr": "kept",
        "last_candidate": "remembered",
        "controller_min_isr": "own",
        "min_isr_change": "clears-if-enough",
        "min_isr_change_while_disabled": "clears-if-enough",
        "unclean_shutdown_while_disabled": "leaves-elr",
        "equal_partition_epoch": "keeps-pending-isr",
        "isr_response": "with-min-isr",
        "config_replay": "before-topics",
        "recreated_reply": "dropped",
        "newer_fetch": "refused",
        "skipped_epoch": "forgets-leo",
        "log_start_checkpoint": "at-once",
        "unknown_producer": "out-of-order",
        "snapshot_batches": "five",
    }
)
_ELR_RECOVERY: Final = _ELR.override(
    {
        "reassignment_completes": "min-isr",
        "directory_assignment": "keeps-elr",
        "elr_outside_assignment": "dropped",
        "last_known_elr": "ejected-members",
        "controller_min_isr": "own",
        "min_isr_change": "clears-if-enough",
        "unclean_recovery": "log-inspection",
    }
)

SINCE_4_1_1: Final = {"last_known_elr": "lost-leader"}
"""Where 4.1.1 to 4.2 differ from mode `elr` (PR 20629)."""

_NO_MORE: Final = Promised(
    keeps_all_shown=False,
    never_diverges=False,
    deduplicates=False,
    counts_damage=False,
    damaged_by_loss=False,
)
_DEDUPLICATES: Final = replace(_NO_MORE, deduplicates=True)
_NEVER_DIVERGES: Final = replace(_DEDUPLICATES, never_diverges=True)
_KEEPS_ALL_SHOWN: Final = replace(_NEVER_DIVERGES, keeps_all_shown=True)
_COUNTS_DAMAGE: Final = replace(_KEEPS_ALL_SHOWN, counts_damage=True)
_DAMAGED_BY_LOSS: Final = replace(_COUNTS_DAMAGE, damaged_by_loss=True)


def _modes() -> tuple[Mode, ...]:
    """All modes. A function, since the C of a module's own statements would be too long."""
    return (
        Mode("hw", "0.10.2", "a new follower truncates to its high watermark", _HW, _NO_MORE),
        Mode(
            "kip101",
            "1.1",
            "a new follower asks the leader where its latest leader epoch ended (KIP-101)",
            _KIP101,
            _DEDUPLICATES,
        ),
        Mode(
            "kip279",
            "2.0.0",
            "a new follower finds the largest common epoch, in rounds (KIP-279)",
            _KIP279,
            _NEVER_DIVERGES,
        ),
        Mode(
            "kip320",
            "2.6.0",
            "requests are fenced by leader epoch, consumers detect truncation (KIP-320)",
            _KIP320,
            _NEVER_DIVERGES,
        ),
        Mode(
            "kraft",
            "3.9.0",
            "a quorum of controllers; followers truncate while they fetch (KIP-500, 595, 903)",
            _KRAFT,
            _KEEPS_ALL_SHOWN,
        ),
        Mode(
            "elr", "4.1.0", "replicas that leave a small ISR stay eligible for election (KIP-966)", _ELR, _COUNTS_DAMAGE
        ),
        Mode(
            "elr-recovery",
            NO_RELEASE,
            "KIP-966 as written: unclean recovery by log inspection",
            _ELR_RECOVERY,
            _DAMAGED_BY_LOSS,
            follows="4.1.0",
        ),
        Mode(
            "elr-4.3",
            "4.3.1",
            "elr, but a reassignment completes once the replicas that it adds are in sync",
            _ELR_4_3,
            _COUNTS_DAMAGE,
        ),
        Mode(
            "kip320-2.1",
            "2.1",
            "KIP-320 for brokers, without its clients and KIP-207",
            _KIP320_2_1,
            _NEVER_DIVERGES,
        ),
        Mode(
            "kip320-first-try",
            NO_RELEASE,
            "first draft of KIP-320: fetches carry the last record's epoch",
            _FIRST_TRY,
            _NEVER_DIVERGES,
            follows="2.6.0",
        ),
        Mode(
            "kip320-repaired",
            NO_RELEASE,
            "kip320 with checked ISR members, and a new leader epoch for each registration",
            _REPAIRED,
            _NEVER_DIVERGES,
            follows="2.6.0",
        ),
        Mode(
            "elr-repaired",
            NO_RELEASE,
            "elr-4.3, but reassignments leave min.insync.replicas in sync, and the ELR has only replicas",
            _ELR_REPAIRED,
            _COUNTS_DAMAGE,
            follows="4.3.1",
        ),
        Mode(
            "kip320-2.6.1",
            "2.6.1",
            "kip320, but truncation to the LEO drops epochs that start there",
            _KIP320.override({"truncate_at_leo": "drops-epochs"}),
            _NEVER_DIVERGES,
        ),
        Mode(
            "kraft-3.9.1",
            "3.9.1",
            "kraft, but followers drop all responses to requests of an earlier leader epoch",
            _KRAFT.override({"late_reply": "leader-epoch"}),
            _KEEPS_ALL_SHOWN,
        ),
        Mode(
            "kraft-repaired",
            NO_RELEASE,
            "kraft, but a leader keeps the ISR that it has proposed, and followers compare topic ids",
            _KRAFT.override(
                {
                    "equal_partition_epoch": "keeps-pending-isr",
                    "stopped_partition": "passed-over",
                    "removed_voter": "ignored",
                    "stopped_load": "fails",
                    "offset_fetch": "confirmed",
                    "recreated_reply": "dropped",
                    "reported_directory": "excluded",
                    "offline_replica": "refused",
                    "moved_log_epochs": "carried-over",
                    "missing_topic_id": "kept",
                    "lagging_future_log": "keeps-log",
                    "skipped_log": "used",
                    "skipped_epoch": "forgets-leo",
                    "log_start_checkpoint": "at-once",
                    "unknown_producer": "out-of-order",
                    "snapshot_batches": "five",
                }
            ),
            _KEEPS_ALL_SHOWN,
            follows="3.9.0",
        ),
        Mode("kraft-3.5", "3.5", "kraft, before the HW waited for min.insync.replicas", _KRAFT_3_5, _NEVER_DIVERGES),
        Mode(
            "elr-4.0-snapshot",
            NO_RELEASE,
            "elr before 4.0: every restart is unclean, a change of min.insync.replicas keeps the ELR",
            _ELR_SNAPSHOT,
            _COUNTS_DAMAGE,
            follows="3.9.0",
        ),
    )


MODES: Final[dict[str, Mode]] = {entry.name: entry for entry in _modes()}
"""Releases first, in order, then variants."""


def changed(base: Mode, values: Mapping[str, str]) -> Mode:
    """A mode with other values of some rules, which has a name of its own: ``elr+clean_shutdown=ignored``.

    Values that the base has are omitted; without others it is the base.

    Raises:
        InputError: a rule or value is unknown, or the name would be too long.
    """
    for rule, value in values.items():
        if rule not in RULES:
            raise InputError(f"unknown rule {rule!r}{did_you_mean(rule, RULES)}")
        check(rule, value)
    own = base.rules.as_dict()
    words = [f"{name}={values[name]}" for name in RULES if name in values and values[name] != own[name]]
    if not words:
        return base
    name = "+".join([base.name, *words])
    follows = base.follows if base.release == NO_RELEASE else base.release
    source = f"{base.source}+{'+'.join(words)}" if base.source else name
    other = base.override(values)
    summary = f"{base.name} with {', '.join(words)}"
    return replace(other, name=name, release=NO_RELEASE, follows=follows, summary=summary, source=source)


def mode(name: str, known: Mapping[str, Mode] = MODES) -> Mode:
    """The mode of that name, also with changed rules (`changed`); raises InputError with the nearest name if there is
    none.
    """
    base, *rules = name.split("+") if name not in known else (name,)
    if rules and all("=" in rule for rule in rules):
        return changed(mode(base, known), parse_overrides(rules))
    if name not in known:
        of_release = [one.name for one in known.values() if f"{one.release}.".startswith(f"{name}.")]
        hint = f"; Kafka {name} is mode {' or '.join(of_release)}" if of_release else did_you_mean(name, known)
        raise InputError(f"unknown mode {name!r}{hint}")
    return known[name]
