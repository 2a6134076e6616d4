"""The properties that a search checks in every state, under the names that the checkers use."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.host import UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.broker_machine import View

VIOLATIONS: Final = {
    "committed-loss": "the leader of the newest leader epoch leads without an acknowledged record",
    "exposed-loss": "the leader of the newest leader epoch leads without a record that a HW has passed",
    "divergence": "two replicas that have confirmed their logs in the newest leader epoch differ below both HWs",
    "global-loss": "an acknowledged record is in no log, after fewer than min.insync.replicas unclean ends",
}
"""Kind -> meaning."""
WARNINGS: Final = {
    "leader-incomplete": "the elected leader runs without a committed record",
    "candidate-incomplete": "a running member of the ISR or the ELR lacks a committed record",
    "quorum-not-superset": "the HW of the newest leader does not wait for a member of the ISR or the ELR",
    "log-mismatch": "two replicas differ below both HWs",
    "recovery-quorum": "ISR and ELR are empty, and the last known ELR has not min.insync.replicas members",
}
"""Kind -> meaning: what may lead to a violation."""
KINDS: Final = {**VIOLATIONS, **WARNINGS}
"""All kinds; each is a property of the specification of KIP-966 (README.md)."""


def incomplete(
    views: Sequence[View], leader: int, epoch: int, candidates: Sequence[int], acked: int, committed: int
) -> list[str]:
    """What the leader, or a replica that may be elected, lacks.

    Args:
        views: the brokers, in the order of their ids.
        leader: the elected one, 0 for none.
        epoch: its leader epoch.
        candidates: brokers that may be elected next.
        acked: acknowledged records that must not be lost, as a bit set.
        committed: such records that a leader's HW has passed, as a bit set.
    """
    needed = acked | committed
    found = []
    if leader:
        view = views[leader - 1]
        if view.state == UP and needed & ~view.ids and _lacks(view, needed, views):
            found.append("leader-incomplete")
            if view.leads and view.epoch == epoch:
                if _lacks(view, acked, views):
                    found.append("committed-loss")
                if _lacks(view, committed, views):
                    found.append("exposed-loss")
    for broker in candidates:
        view = views[broker - 1]
        if view.state == UP and needed & ~view.ids and _lacks(view, needed, views):
            found.append("candidate-incomplete")
            break
    return found


def _lacks(view: View, needed: int, views: Sequence[View]) -> bool:
    """Whether a broker lacks a record. It lacks none that another broker has below this broker's log start."""
    lacking = needed & ~view.ids
    if lacking and view.log_start:
        for other in views:
            for record in other.records[: view.log_start]:
                if record is not None:
                    lacking &= ~(1 << record[0])
    return lacking != 0


def mismatches(views: Sequence[View]) -> list[str]:
    """How replicas differ below both HWs."""
    newest = max([view.settled for view in views])
    found = []
    for view, other in combinations(views, 2):
        hw = min(view.hw, other.hw)
        if hw:
            start = max(view.log_start, other.log_start)
            if view.records[start:hw] != other.records[start:hw]:
                found.append("log-mismatch")
                if view.settled == other.settled == newest != UNSETTLED:
                    found.append("divergence")
    return list(dict.fromkeys(found))
