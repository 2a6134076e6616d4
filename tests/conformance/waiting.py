"""Which cases wait for rules that do not exist yet, and why: read from their fields, and listed for those at hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from sim.protocol.rules import Rules
from tests.conformance.cases import Case
from tests.conformance.releases import quorum_rules
from tests.conformance.world import ALTER_PARTITION, KIP101, LATEST

ON_FETCH: Final = "needs truncation on fetch: a last-fetched epoch in fetches, diverging epochs in replies (2.8)"
KRAFT: Final = "needs metadata deltas and a partition epoch of its own (KRaft)"
FETCH_EPOCH: Final = "needs leaders that compare broker epochs of fetches with their metadata (KIP-903, 3.5)"
BROKER_EPOCH: Final = "needs broker epochs in the clean-shutdown marker (KIP-966, 3.7)"


def _only(*releases: str) -> Callable[[Case], bool]:
    return lambda case: bool(case.applies_to) and case.applies_to <= set(releases)


def _protocol(case: Case) -> tuple[int, ...]:
    """The inter-broker protocol that a case names, or one of those with a truncation phase of its own."""
    version: str = case.given.get("inter_broker_protocol", "2.6")
    return (sys.maxsize,) if version == "latest" else tuple(int(part) for part in version.split("."))


def _asks_on_fetch(case: Case) -> bool:
    """Whether fetches find divergence. What a follower makes of the leader's answer is the same in both protocols."""
    if not _only("truncate_on_fetch")(case):
        return _protocol(case) >= (2, 7) or any("last_fetched_epoch" in op for op in case.ops)
    return any(op["op"] != "truncation_state" or "next_state" in op.get("expect", {}) for op in case.ops)


def _names_broker_epochs(case: Case) -> bool:
    return any("broker_epoch" in op for op in case.ops)


_REASONS: Final[tuple[tuple[Callable[[Case], bool], str], ...]] = (
    (_asks_on_fetch, ON_FETCH),
    (_only("kraft"), KRAFT),
    (lambda case: any("metadata_delta" in op["op"] for op in case.ops), KRAFT),
    (lambda case: case.given.get("mode") == "kraft" and _names_broker_epochs(case), FETCH_EPOCH),
    (lambda case: any("broker_epoch" in op for op in case.ops), BROKER_EPOCH),
)


def waiting_reason(case: Case) -> str | None:
    """Why a case cannot run yet, None if it can."""
    if case.table == "elr_partition_change":
        return None
    return next((reason for applies, reason in _REASONS if applies(case)), None)


def _asks_controller(case: Case) -> bool:
    """Whether it shows an ISR change under way to the controller, while which HW and ISR may move."""
    shown = {"maximal_isr", "in_flight", "requested_isr", "requests_outstanding", "state"}
    changes = any(op["op"].startswith("alter_partition_") for op in case.ops) or bool(shown & case.expectations)
    return changes and "isr_update_path" not in case.given


def rules_for(case: Case) -> Mapping[str, Rules]:
    """The rules under which a case runs: those of KIP-101, the newest ones with a ZooKeeper, later ones, or several."""
    if case.table == "elr_partition_change":
        return quorum_rules(case)
    if _asks_controller(case):
        return {"alter-partition": ALTER_PARTITION}
    if case.given.get("mode") == "zk" and "isr_update_path" not in case.given:
        return {"latest": LATEST, "alter-partition": ALTER_PARTITION}
    if _only("kip101")(case) or _protocol(case) < (2,):
        return {"kip101": KIP101}
    return {"kip101": KIP101, "latest": LATEST} if "kip101" in case.applies_to else {"latest": LATEST}


WAITING: Final[dict[str, str]] = {
    "ft-c13": ON_FETCH,
    "ft-d24": ON_FETCH,
    "ft-l02": ON_FETCH,
    "ft-l04": ON_FETCH,
    "ft-l06": ON_FETCH,
    "ft-l07": ON_FETCH,
    "ft-l09": ON_FETCH,
    "ft-l11": ON_FETCH,
    "ft-l12": ON_FETCH,
    "ft-l13": ON_FETCH,
    "ft-l14": ON_FETCH,
    "ft-l15": ON_FETCH,
    "ft-v11": ON_FETCH,
    "ft-b02": ON_FETCH,
    "ft-b07": ON_FETCH,
    "ft-b05": KRAFT,
    "ft-b06": KRAFT,
    "ft-r04": BROKER_EPOCH,
    "hi-07": FETCH_EPOCH,
    "hi-08": FETCH_EPOCH,
    "hi-59": KRAFT,
}
"""The cases at hand that wait."""
