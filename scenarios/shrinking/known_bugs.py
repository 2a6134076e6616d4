"""Bugs of Kafka that a later release repaired, identified by the repair that cures a run.

`scenarios.format.findings` has those that were found with this testbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A bug that a later release repaired: the failure, and Kafka's issue or improvement proposal."""

    name: str
    ticket: str


KNOWN: Final[Mapping[tuple[str, str], KnownBug]] = {
    ("follower_truncation", "leader-epoch"): KnownBug("truncation to the high watermark", "KAFKA-1211, KIP-101"),
    ("follower_truncation", "leader-epoch-rounds"): KnownBug(
        "one question does not find the common epoch", "KAFKA-6361, KIP-279"
    ),
    ("append_check", "first-offset"): KnownBug("misaligned batches are appended", "KAFKA-3919, KAFKA-6975"),
    ("overlap_recovery", "passes"): KnownBug("misaligned batches keep a broker from starting", "KAFKA-3919"),
    ("out_of_range", "truncates"): KnownBug("a follower ahead of its leader halts", "KAFKA-3410, KAFKA-7414"),
    ("registration_epoch", "bumped"): KnownBug("a returning leader keeps its leader epoch", "KIP-101"),
    ("missed_bounce", "noticed"): KnownBug("the controller misses a restart", "KAFKA-1120"),
    ("broker_epoch", "checked"): KnownBug("requests for an earlier incarnation are obeyed", "KAFKA-7235, KIP-380"),
    ("controller_writes", "fenced"): KnownBug("a former controller writes", "KAFKA-6082"),
    ("stop_replica", "checked"): KnownBug("a late StopReplica stops a replica", "KAFKA-9539, KIP-570"),
    ("epoch_recorded_at", "election"): KnownBug("a leader without data in its epoch misleads", "KAFKA-7415"),
    ("isr_lag", "end-offset"): KnownBug("a follower that has everything leaves the ISR", "KAFKA-7152"),
    ("isr_join", "leader-epoch-start"): KnownBug("a short follower joins the ISR", "KAFKA-7128"),
    ("fetcher_restart", "epoch-missed"): KnownBug("a missed epoch skips truncation", "KAFKA-7164"),
    ("fetch_fencing", "leader-epoch"): KnownBug("a fetch of a former epoch is served", "KAFKA-6880, KIP-320"),
    ("session_epoch", "every-fetch"): KnownBug("a fetch session drops the leader epoch", "KAFKA-9338"),
    ("late_reply", "truncation-epoch"): KnownBug("a reply of a former epoch truncates", "KAFKA-7786, KIP-320"),
    ("late_reply", "leader-epoch"): KnownBug("a late diverging epoch truncates", "KAFKA-18991"),
    ("list_offsets_guard", "yes"): KnownBug("offsets go back after an election", "KAFKA-2334, KIP-207"),
    ("client_metadata", "newest-epoch"): KnownBug("clients accept older metadata", "KAFKA-6262, KIP-232"),
    ("consumer_validation", "yes"): KnownBug("a consumer skips records after a truncation", "KAFKA-7747, KIP-320"),
    ("isr_eligibility", "alive"): KnownBug("a fenced replica joins the ISR", "KAFKA-13916, KIP-841"),
    ("isr_eligibility", "registered"): KnownBug("a former incarnation joins the ISR", "KAFKA-14139, KIP-903"),
    ("stale_fetch", "refused"): KnownBug("a fetch from before a restart counts", "KAFKA-15221"),
    ("last_known_leader", "unfenced"): KnownBug("a fenced last known leader is elected", "KAFKA-19522"),
    ("clean_shutdown_file", "loaded-only"): KnownBug("a clean shutdown file is wrong", "KAFKA-10471, KAFKA-15375"),
    ("min_isr_change", "clears-elr"): KnownBug("the ELR outlives a change of min ISR", "KAFKA-16540"),
    ("unclean_registration", "transitions"): KnownBug("an unclean registration bumps no epoch", "KAFKA-18106"),
    ("reassignment_completes", "targets-in-isr"): KnownBug("a reassignment completes too soon", "KAFKA-15665"),
    ("moved_log_epochs", "carried-over"): KnownBug("a move between log directories loses leader epochs", "KAFKA-20961"),
    ("producer_dedup", "yes"): KnownBug("retries are appended twice", "KIP-98"),
    ("unknown_producer", "taken"): KnownBug("a forgotten producer is refused", "KAFKA-7190, KAFKA-8710"),
    ("producer_recovery", "epoch-bump"): KnownBug("a new producer id forgets earlier batches", "KIP-360"),
    ("producer_recovery", "epoch-bump-when-fenced"): KnownBug(
        "a late response to an expired batch resets sequences", "KIP-588, KAFKA-13794"
    ),
}
"""Rule and value -> the bug that the value repairs."""


def known(rule: str, value: str) -> KnownBug | None:
    """The bug that a rule's value repairs; None if there is none listed."""
    return KNOWN.get((rule, value))
