"""The properties that a search checks in each state of a KRaft cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.lab.explore.properties import VIOLATIONS, incomplete, mismatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.broker_machine import View
    from highwater.lab.explore.kraft.controller import ControllerView


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
            candidates = (*known.isr, *known.elr)
            found += incomplete(views, known.leader, known.epoch, candidates, acked & promised, committed & promised)
            if acked & promised & ~_union(views):
                found.append("global-loss")
        differences = mismatches(views)
        if needed & ~promised:  # Replicas may differ, but not once they have confirmed their logs.
            differences = [kind for kind in differences if kind in VIOLATIONS]
        found += differences
    for view in views:
        if view.leads and view.epoch == known.epoch and len(view.isr) >= view.min_isr:
            if not view.maximal_isr.issuperset(known.isr) or not view.maximal_isr.issuperset(known.elr):
                found.append("quorum-not-superset")
            break
    if remembers and not known.isr and not known.elr and len(known.last_known_elr) != known.min_isr:
        found.append("recovery-quorum")
    return tuple(found)


def _union(views: Sequence[View]) -> int:
    ids = 0
    for view in views:
        ids |= view.ids
    return ids
