"""Modes: named sets of rules, each what one Kafka release did.

A mode sets rules only; configuration comes from the scenario, with one default table for all (`sim.config`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sim.errors import InputError, did_you_mean
from sim.protocol.rules import RULES, Rules, RuleSpec, parse_overrides

__all__ = ["MODES", "RULES", "Mode", "RuleSpec", "mode", "parse_overrides"]


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode: its name, the release that it equals, one line about it, and its rules."""

    name: str
    release: str
    summary: str
    rules: Rules


_HW: Final = Rules(
    follower_truncation="high-watermark",
    epoch_request_error="retries",
    truncation_fencing="no",
    truncate_at_leo="keeps-epochs",
    epoch_recorded_at="first-append",
    fetcher_restart="leader-id-changed",
    fetch_fencing="no",
    session_epoch="first-fetch",
    fenced_fetcher="removed",
    late_reply="offset",
    append_check="last-offset",
    append_error="thread-dies",
    overlap_recovery="fails",
    out_of_range="halts",
    hw_needs_min_isr="no",
    hw_needs_epoch="no",
    isr_join="high-watermark",
    isr_eligibility="any",
    isr_update="zookeeper-write",
    registration_epoch="kept",
    missed_bounce="unnoticed",
    broker_epoch="ignored",
    controller_writes="unfenced",
    controller_startup="live-replicas",
    broker_metadata="last-arrived",
    stop_replica="unchecked",
    list_offsets_guard="no",
    list_offsets_fencing="no",
    client_metadata="latest-received",
    consumer_validation="no",
    producer_dedup="no",
    producer_recovery="new-producer-id",
    control_plane="zookeeper",
    stale_fetch="served",
    isr_shrink_epoch="bumped",
    reassignment_completes="targets-in-isr",
    elr="off",
    last_known_elr="leader",
    last_known_leader="fenced-too",
    clean_shutdown="ignored",
    clean_shutdown_file="always",
    min_isr_change="keeps-elr",
    unclean_registration="removes",
    unclean_recovery="election",
    isr_floor="none",
)
_KIP101: Final = _HW.override(
    {"follower_truncation": "leader-epoch", "append_check": "first-offset", "producer_dedup": "yes"}
)
_KIP279: Final = _KIP101.override({"follower_truncation": "leader-epoch-rounds"})
_KIP320_2_1: Final = _KIP279.override(
    {
        "truncation_fencing": "yes",
        "epoch_recorded_at": "election",
        "fetcher_restart": "newer-epoch",
        "fetch_fencing": "leader-epoch",
        "late_reply": "truncation-epoch",
        "out_of_range": "truncates",
        "isr_join": "leader-epoch-start",
    }
)
_KIP320: Final = _KIP320_2_1.override(
    {
        "session_epoch": "every-fetch",
        "hw_needs_epoch": "yes",
        "fenced_fetcher": "failed",
        "append_error": "partition-fails",
        "broker_epoch": "checked",
        "controller_writes": "fenced",
        "controller_startup": "all-replicas",
        "stop_replica": "checked",
        "list_offsets_guard": "yes",
        "list_offsets_fencing": "yes",
        "client_metadata": "newest-epoch",
        "consumer_validation": "yes",
        "producer_recovery": "epoch-bump",
    }
)
_FIRST_TRY: Final = _KIP320.override({"fetch_fencing": "last-epoch", "hw_needs_epoch": "no"})
_REPAIRED: Final = _KIP320.override(
    {
        "truncate_at_leo": "drops-epochs",
        "isr_eligibility": "registered",
        "registration_epoch": "bumped",
        "missed_bounce": "noticed",
        "broker_metadata": "last-sent",
    }
)

_KRAFT_3_5: Final = _KIP320.override(
    {
        "control_plane": "kraft",
        "broker_metadata": "last-sent",
        "follower_truncation": "on-fetch",
        "truncate_at_leo": "drops-epochs",
        "isr_eligibility": "registered",
        "isr_update": "alter-partition",
        "reassignment_completes": "adding-in-isr",
    }
)
_KRAFT: Final = _KRAFT_3_5.override(
    {
        "hw_needs_min_isr": "yes",
        "stale_fetch": "refused",
        "isr_shrink_epoch": "kept",
        "reassignment_completes": "targets-in-isr",
        "clean_shutdown_file": "loaded-only",
    }
)
_ELR_SNAPSHOT: Final = _KRAFT.override({"elr": "on", "unclean_registration": "transitions"})
_ELR: Final = _ELR_SNAPSHOT.override(
    {
        "late_reply": "leader-epoch",
        "last_known_leader": "unfenced",
        "clean_shutdown": "checked",
        "min_isr_change": "clears-elr",
    }
)
_ELR_RECOVERY: Final = _ELR.override(
    {
        "reassignment_completes": "min-isr",
        "last_known_elr": "ejected-members",
        "min_isr_change": "clears-if-enough",
        "unclean_recovery": "log-inspection",
    }
)

MODES: Final[dict[str, Mode]] = {
    entry.name: entry
    for entry in (
        Mode("hw", "0.10.2", "a new follower truncates to its own high watermark", _HW),
        Mode("kip101", "1.1", "a new follower asks the leader where its latest leader epoch ended (KIP-101)", _KIP101),
        Mode("kip279", "2.0.0", "a new follower looks for the largest common epoch, in rounds (KIP-279)", _KIP279),
        Mode("kip320", "2.6", "requests are fenced by leader epoch, consumers detect truncation (KIP-320)", _KIP320),
        Mode(
            "kraft", "3.9", "a quorum of controllers; followers truncate while they fetch (KIP-500, 595, 903)", _KRAFT
        ),
        Mode("elr", "4.1", "replicas that leave a small ISR stay electable (KIP-966)", _ELR),
        Mode("elr-recovery", "none", "KIP-966 as written: unclean recovery by log inspection", _ELR_RECOVERY),
        Mode("kip320-2.1", "2.1", "the brokers' half of KIP-320, before its clients and KIP-207", _KIP320_2_1),
        Mode(
            "kip320-first-try", "none", "the first draft of KIP-320: fetches carry the last record's epoch", _FIRST_TRY
        ),
        Mode(
            "kip320-repaired", "none", "kip320 with checked ISR members and an epoch for each registration", _REPAIRED
        ),
        Mode("kraft-3.5", "3.5", "kraft before the HW needed min ISR", _KRAFT_3_5),
        Mode(
            "elr-4.0-snapshot",
            "none",
            "elr before 4.0: every restart counts as unclean, min ISR keeps the ELR",
            _ELR_SNAPSHOT,
        ),
    )
}
"""The ladder of releases first, then the variants."""


def mode(name: str) -> Mode:
    """The mode of that name.

    Raises:
        InputError: there is none; names the nearest.
    """
    if name not in MODES:
        raise InputError(f"unknown mode {name!r}{did_you_mean(name, MODES)}")
    return MODES[name]
