"""The rules under which a case runs, by its fields."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from sim.protocol.modes import MODES
from sim.protocol.rules import Rules
from tests.verification.conformance.cases import Case
from tests.verification.conformance.releases import quorum_rules
from tests.verification.conformance.world import ALTER_PARTITION, KIP101, KRAFT, LATEST

_ON_ZOOKEEPER: Final = frozenset(
    {"acceptance", "acks", "zk_leader_election", "leader_epoch_cache", "hw_checkpoint", "alter_partition_sender"}
)
"""Kinds whose drivers need a ZooKeeper, or which do not depend on the rules."""

MODE_OF: Final = {"3.9": "kraft", "4.1": "elr", "4.3": "elr-4.3"}
"""Mode of each release that cases of table ``raft`` name."""


def _is_only_for(case: Case, *words: str) -> bool:
    return bool(case.applies_to) and case.applies_to <= set(words)


def _protocol(case: Case) -> tuple[int, ...]:
    """The inter-broker protocol that a case names, or one of those with a truncation phase of its own."""
    version: str = case.given.get("inter_broker_protocol", "2.6")
    return (sys.maxsize,) if version == "latest" else tuple(int(part) for part in version.split("."))


def _names(case: Case, word: str) -> bool:
    """Whether an operation, or one of its fields, has this word in its name."""
    return any(word in op["op"] or any(word in key for key in op) for op in case.ops)


def _truncates_on_fetch(case: Case) -> bool:
    """Whether fetches have to find divergence. What a follower makes of an answer is the same without that."""
    if not _is_only_for(case, "truncate_on_fetch"):
        return _protocol(case) >= (2, 7) or _names(case, "last_fetched_epoch")
    return any(op["op"] != "truncation_state" or "next_state" in op.get("expect", {}) for op in case.ops)


def _is_of_kraft(case: Case) -> bool:
    """Whether a case is about something that only KRaft has."""
    return (
        _truncates_on_fetch(case)
        or _is_only_for(case, "kraft")
        or case.given.get("mode") == "kraft"
        or _names(case, "metadata_delta")
        or _names(case, "broker_epoch")
    )


def _is_for_all(case: Case) -> bool:
    """Whether a case applies to all releases."""
    if {"truncate_on_fetch", "kraft"} & case.applies_to:
        return True
    times = ("mode", "isr_update_path", "inter_broker_protocol")
    return not case.applies_to and not any(word in case.given for word in times) and case.kind not in _ON_ZOOKEEPER


def _asks_controller(case: Case) -> bool:
    """Whether it shows an ISR change under way to the controller, while which HW and ISR may move."""
    shown = {"maximal_isr", "in_flight", "requested_isr", "requests_outstanding", "state"}
    changes = any(op["op"].startswith("alter_partition_") for op in case.ops) or bool(shown & case.expectations)
    return changes and "isr_update_path" not in case.given


def _rules_with_zookeeper(case: Case) -> Mapping[str, Rules]:
    """The rules of KIP-101, the newest ones with ZooKeeper, later ones, or several of these."""
    if _asks_controller(case):
        return {"alter-partition": ALTER_PARTITION}
    if case.given.get("mode") == "zk" and "isr_update_path" not in case.given:
        return {"latest": LATEST, "alter-partition": ALTER_PARTITION}
    if _is_only_for(case, "kip101") or _protocol(case) < (2,):
        return {"kip101": KIP101}
    return {"kip101": KIP101, "latest": LATEST} if "kip101" in case.applies_to else {"latest": LATEST}


def rules_for(case: Case) -> Mapping[str, Rules]:
    """The rules under which a case runs, by name."""
    if case.table.startswith("elr_partition_change"):
        return quorum_rules(case)
    if case.table == "raft":
        return {MODE_OF[release]: MODES[MODE_OF[release]].rules for release in sorted(case.applies_to)}
    if case.table == "replica_4_3":
        return {"elr-4.3": MODES["elr-4.3"].rules}
    if _is_of_kraft(case):
        return {"kraft": KRAFT}
    return {**_rules_with_zookeeper(case), **({"kraft": KRAFT} if _is_for_all(case) else {})}
