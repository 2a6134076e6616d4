"""The properties that a search checks in every state, under the names that the checkers use."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.host import UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.broker_machine import View
    from highwater.lab.explore.controller_machine import ControllerView

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
"""All kinds; each is a property of the specification (README.md)."""


def kinds_of(
    views: Sequence[View],
    known: ControllerView,
    acked: int,
    committed: int,
    *,
    promised: int,
    remembers: bool,
) -> tuple[str, ...]:
    """The kinds that a state shows.

    Args:
        views: the brokers, in the order of their ids.
        known: the controller.
        acked: acknowledged records, as a bit set.
        committed: records that a leader's HW has passed, as a bit set.
        promised: records that KIP-966 promises, as a bit set.
        remembers: rule ``last_known_elr`` is ``ejected-members``, and ``min.insync.replicas`` was never changed.
    """
    found = []
    needed = acked | committed
    if needed:
        if promised:
            found += _incomplete(views, known, acked & promised, committed & promised)
            if acked & promised & ~_union(views):
                found.append("global-loss")
        mismatches = _mismatches(views)
        if needed & ~promised:  # Replicas may differ, but not once they have confirmed their logs.
            mismatches = [kind for kind in mismatches if kind in VIOLATIONS]
        found += mismatches
    for view in views:
        if view.leads and view.epoch == known.epoch and len(view.isr) >= view.min_isr:
            if not view.maximal_isr.issuperset(known.isr) or not view.maximal_isr.issuperset(known.elr):
                found.append("quorum-not-superset")
            break
    if remembers and not known.isr and not known.elr and len(known.last_known_elr) != known.min_isr:
        found.append("recovery-quorum")
    return tuple(found)


def _incomplete(views: Sequence[View], known: ControllerView, acked: int, committed: int) -> list[str]:
    """What the leader, or a replica that may be elected, lacks."""
    needed = acked | committed
    found = []
    leader = views[known.leader - 1] if known.leader else None
    if leader is not None and leader.state == UP and needed & ~leader.ids:
        found.append("leader-incomplete")
        if leader.leads and leader.epoch == known.epoch:
            if acked & ~leader.ids:
                found.append("committed-loss")
            if committed & ~leader.ids:
                found.append("exposed-loss")
    candidates = [views[broker - 1] for broker in (*known.isr, *known.elr)]
    if any(view.state == UP and needed & ~view.ids for view in candidates):
        found.append("candidate-incomplete")
    return found


def _union(views: Sequence[View]) -> int:
    ids = 0
    for view in views:
        ids |= view.ids
    return ids


def _mismatches(views: Sequence[View]) -> list[str]:
    newest = max(view.settled for view in views)
    found = []
    for one, other in combinations(views, 2):
        hw = min(one.hw, other.hw)
        if hw and one.records[:hw] != other.records[:hw]:
            found.append("log-mismatch")
            if one.settled == other.settled == newest != UNSETTLED:
                found.append("divergence")
    return list(dict.fromkeys(found))
