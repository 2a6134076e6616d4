"""Unclean elections: no replica from outside ISR and ELR leads, unless an administrator accepts that.

Verifies: a leader that is elected is in the persisted ISR or ELR, is the last known leader, or is in the ISR that the
leader before has proposed (which a reassignment may complete); unless ``unclean.leader.election.enable`` was true
at some time, or an administrator has requested the election.

Kafka promises it with ``unclean.leader.election.enable``: "whether to enable replicas not in the ISR set to be
elected as leader as a last resort". Other checkers excuse what such an election loses, because the members of the
ISR were gone.

Does not verify: runs whose settings allow unclean elections; unclean elections of a controller that recovers
uncleanly by itself (``unclean.recovery.strategy``); elections after committed metadata was lost; decisions of a script.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, Checker, Finding
from sim.history import steps
from sim.history.history import History
from sim.protocol.replica.partition import NO_LEADER


class CleanElections(Checker):
    """Remembers who may be elected.

    Args:
        recovers: whether the controller may recover uncleanly by itself, so that no election of a partition that
            recovers (`steps.Elected.recovering`) is a violation.
    """

    FINDINGS: ClassVar = (Finding("forbidden-election", ALWAYS),)

    def __init__(self, history: History, *, recovers: bool) -> None:
        super().__init__(history)
        self._recovers = recovers
        self._isr: tuple[int, ...] = ()
        self._elr: tuple[int, ...] = ()
        self._last_known: tuple[int, ...] = ()
        self._proposed: tuple[int, ...] = ()
        self._are_unclean_allowed = False

    def on_isr(self, step: steps.Isr) -> None:
        self._isr, self._elr, self._proposed = step.isr, step.elr, ()

    def on_elr(self, step: steps.Elr) -> None:
        self._elr, self._last_known = step.elr, step.last_known_elr

    def on_isr_sent(self, step: steps.IsrSent) -> None:
        self._proposed = step.isr

    def on_fact(self, step: steps.Fact) -> None:
        if step.kind is steps.UNCLEAN_ELECTION:
            self._are_unclean_allowed = True

    def on_metadata_lost(self, step: steps.MetadataLost) -> None:  # noqa: ARG002
        self._are_unclean_allowed = True

    def on_elected(self, step: steps.Elected) -> None:
        leader = step.broker
        allowed = {*self._isr, *self._elr, *self._last_known, *self._proposed}
        self._proposed = ()
        if leader == NO_LEADER or self._are_unclean_allowed or (self._recovers and step.recovering):
            return
        self.decided = True
        if leader not in allowed:
            detail = (
                f"broker {leader} was elected in leader epoch {step.epoch}, from outside ISR {sorted(self._isr)} "
                f"and ELR {sorted(self._elr)}, which nothing allows"
            )
            self._violates("forbidden-election", step.at_us, detail)
