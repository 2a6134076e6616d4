"""Stale settings: what an administrator has set is in force everywhere.

Verifies, at the end: the active controller of a quorum, and every running broker that the last change has reached, use
the values of ``min.insync.replicas``, ``unclean.leader.election.enable`` and ``eligible.leader.replicas.version`` that
were acknowledged last, also after a restart or a failover of the controller. The effective ``min.insync.replicas`` of a
replica may be smaller: the number of replicas.

Kafka promises it with Admin.incrementalAlterConfigs (KIP-339) and Admin.updateFeatures (KIP-584).

Does not verify: that a change reaches a broker, of which convergence judges what delays the metadata log; settings that
were never changed; values in force before the end; directories that are cordoned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.config import Value, shown
from sim.history.history import History
from sim.protocol.kraft.metadata import MIN_ISR


class StaleSetting(Checker):
    """Compares the settings in force at the end with those that were set."""

    FINDINGS: ClassVar = (Finding("stale-setting", ALWAYS),)

    def __init__(self, history: History) -> None:
        # Without this constructor, the compiled build (mypyc 2.4) kept the history of each run in memory. Why is not
        # known: other checkers inherit it, too, and are freed.
        super().__init__(history)

    def final(self, end: RunEnd) -> None:
        if not end.changed:
            return
        self.decided = True
        stale = [
            f"{f'broker {broker}' if broker else 'the controller'} uses {key}={shown(value)}, which was set to "
            f"{shown(end.changed[key])}"
            for broker, key, value in _stale(end)
        ]
        if stale:
            self._violates("stale-setting", end.now_us, "; ".join(stale))


def _stale(end: RunEnd) -> Iterator[tuple[int, str, Value]]:
    """Values in force that are not those that were set: broker (0: the controller), key, value."""
    for broker, in_force in sorted(end.in_force.items()):
        for key, wanted in end.changed.items():
            value = in_force.get(key, wanted)
            if key == MIN_ISR and value == wanted and broker in end.live:
                replica = end.live[broker]
                assert isinstance(wanted, int)
                if replica.min_insync_replicas != min(wanted, len(replica.replicas)):
                    value = replica.min_insync_replicas
            if value != wanted:
                yield broker, key, value
