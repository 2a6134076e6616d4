"""Success under min ISR: acks=all succeeded although the persisted ISR was too small.

Verifies, for every success that a producer receives for acks=all: the persisted ISR had at least as many members as the
leader's effective ``min.insync.replicas`` when the leader answered.

Does not verify: what the leader knew of it. It judges by the ISR that it knows, so that every release may do this while
a change of the ISR is on its way to it; no mode promises otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import NOT_PROMISED, Checker, Finding
from sim.history import steps
from sim.history.ledger import Ledger, Violation


def check_ack(ledger: Ledger, records: range, isr: tuple[int, ...], now_us: int) -> None:
    """Note a success that was answered under an ISR that was too small; one violation collects all records."""
    ids = ledger.under_min_isr
    if not ids:
        detail = f"record {records.start} was acknowledged while the persisted ISR was {list(isr)}"
        ledger.violations.append(Violation("ack-under-min-isr", now_us, detail, ids))
    ids.update(records)


class AckUnderMinIsr(Checker):
    """Compares each success for acks=all with the ISR that was persisted when it was answered."""

    FINDINGS: ClassVar = (Finding("ack-under-min-isr", NOT_PROMISED),)

    def on_acknowledges(self, step: steps.Acknowledges) -> None:
        """See `Acknowledges`."""
        isr = self._ledger.isr
        if len(isr) < step.min_isr:
            step.reply.short_isr = isr

    def on_ack(self, step: steps.Ack) -> None:
        """See `Ack`."""
        reply, request = step.reply, step.reply.request
        if reply.short_isr is not None:
            records = range(request.first_id, request.first_id + request.count)
            check_ack(self._ledger, records, reply.short_isr, step.at_us)
