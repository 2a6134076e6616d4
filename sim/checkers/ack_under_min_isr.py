"""Acknowledgement under min ISR: acks=all succeeded although the persisted ISR was too small.

Verifies, for every success that a producer receives for acks=all: the persisted ISR had at least as many members as the
leader's effective ``min.insync.replicas`` when the leader answered.

Does not verify: the ISR that the leader knew. A leader checks the ISR it knows, so every release may acknowledge while
a change of the ISR is in flight to it; no mode promises otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import NOT_PROMISED, Checker, Finding
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
        self._short: list[tuple[ProduceResponse, tuple[int, ...]]] = []
        """Successes with a persisted ISR that was too small, with that ISR."""
        self._ids: set[int] = set()
        """Records concerned; one violation collects them all."""

    def on_isr(self, step: steps.Isr) -> None:
        self._isr = step.isr

    def on_acknowledges(self, step: steps.Acknowledges) -> None:
        self.decided = True
        isr = self._isr
        if len(isr) < step.min_isr:
            self._short.append((step.reply, isr))

    def on_ack(self, step: steps.Ack) -> None:
        for reply, isr in self._short:
            if reply is not step.reply:
                continue
            if not self._ids:
                detail = f"record {step.first_id} was acknowledged while the persisted ISR was {list(isr)}"
                self._findings.violations.append(Violation("ack-under-min-isr", step.at_us, detail, self._ids))
            self._ids.update(range(step.first_id, step.first_id + step.count))
