"""Early warning ``ack-above-hw``: a leader answered success to acks=all for a record that its HW had not passed.

With acks=all, a write waits until the HW of the leader that took it has passed its last record. A response before that
may be about a record that only the leader has.

Verifies: every success for acks=all, when the leader answers, whether or not the producer receives it: the last offset
of the batch lies below the leader's own HW at that time. All records are collected in one warning.

Does not verify: whether that HW is right, nor the size of the ISR
(`sim.checkers.ack_under_min_isr`).
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.findings import Violation
from sim.history.history import History


class AckAboveHw(Checker):
    """Compares each success for acks=all with the HW of the broker that answers."""

    FINDINGS: ClassVar = (warning("ack-above-hw"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._hw: dict[int, int] = {}
        self._ids: set[int] = set()
        """Records concerned."""

    def on_recovered(self, step: steps.Recovered) -> None:
        self._hw[step.broker] = step.other

    def on_deleted(self, step: steps.Deleted) -> None:
        self._hw[step.broker] = step.replica.hw

    def on_lead(self, step: steps.Lead) -> None:
        self._hw[step.broker] = step.other

    def on_hw(self, step: steps.HighWatermark) -> None:
        self._hw[step.broker] = step.offset

    def on_acknowledges(self, step: steps.Acknowledges) -> None:
        self.decided = True
        request, hw = step.reply.request, self._hw.get(step.broker, 0)
        end = step.reply.base_offset + request.count
        if end <= hw:
            return
        if not self._ids:
            detail = (
                f"broker {step.broker} answered success for record {request.first_id} at offset {end - request.count} "
                f"(acks=all) with HW {hw}"
            )
            found = Violation("ack-above-hw", step.at_us, detail, self._ids, weak=(step.broker,))
            self._findings.warnings.append(found)
        self._ids.update(range(request.first_id, request.first_id + request.count))
