"""Acknowledgement under min ISR: acks=all succeeded although the persisted ISR was too small.

Verifies, for every success that a producer receives for acks=all: the persisted ISR had at least as many members as the
leader's effective ``min.insync.replicas`` when the leader answered.

A leader checks the ISR it knows, so every release may acknowledge while a change of the ISR or of
``min.insync.replicas`` is in flight to it: outside every promise. If the leader knew the persisted ISR, and had
proposed no other, it broke its own condition: inside.

Does not verify: the ISR that the leader knew, unless the persisted one is too small.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, NOT_PROMISED, Checker, Finding
from sim.history import steps
from sim.history.findings import Violation
from sim.history.history import History
from sim.protocol.messages import ProduceResponse


class AckUnderMinIsr(Checker):
    """Compares each success for acks=all with the ISR persisted at the time of the response."""

    FINDINGS: ClassVar = (Finding("ack-under-min-isr", NOT_PROMISED),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._isr: tuple[int, ...] = ()
        self._short: list[tuple[ProduceResponse, tuple[int, ...], bool]] = []
        """Successes with a persisted ISR that was too small, with that ISR, and whether the leader knew it."""
        self._ids: dict[bool, set[int]] = {}
        """Records concerned, by whether the leader knew; one violation of each sort collects them all."""

    def on_isr(self, step: steps.Isr) -> None:
        self._isr = step.isr

    def on_acknowledges(self, step: steps.Acknowledges) -> None:
        self.decided = True
        isr = self._isr
        if len(isr) < step.min_isr:
            self._short.append((step.reply, isr, step.isr is not None and sorted(step.isr) == sorted(isr)))

    def on_ack(self, step: steps.Ack) -> None:
        for reply, isr, knew in self._short:
            if reply is not step.reply:
                continue
            if knew not in self._ids:
                ids = self._ids[knew] = set()
                detail = f"record {step.first_id} was acknowledged while the persisted ISR was {list(isr)}"
                if knew:
                    detail += ", which the leader knew"
                found = Violation("ack-under-min-isr", step.at_us, detail, ids, promised=ALWAYS if knew else "")
                self._findings.violations.append(found)
            self._ids[knew].update(range(step.first_id, step.first_id + step.count))
