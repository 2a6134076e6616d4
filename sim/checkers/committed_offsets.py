"""Committed offsets: a coordinator answered an older offset than it, or another one, had acknowledged.

Verifies, in the history of the offsets partition, each answer to a new process that asks what its group has committed:
it is the commit that the application was last told has succeeded, or one that was sent later.

``committed-offset-back``: it is an older one, or none. The record of the acknowledged commit may be lost (then there is
a ``committed-loss`` of it, too), or a coordinator that lacks it answers. The promise covers it as it covers the record.
Kafka says of its answer that "it should never return a stale offset".
Kafka: GroupMetadataManager#getOffsets (0.10.2-3.9), GroupCoordinatorService#fetchOffsets (3.9-4.4).

Does not verify: an acknowledged commit that no new process asks for, except that its record is kept (`CommittedLoss`);
what an ideal offset store answers.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ANY_RECORD, Checker, Finding
from sim.history import steps
from sim.history.history import History


class CommittedOffsets(Checker):
    """Compares what new processes are answered with what was acknowledged."""

    FINDINGS: ClassVar = (Finding("committed-offset-back", ANY_RECORD),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._told: dict[int, tuple[int, int, int]] = {}
        """Consumer -> record and offset of the newest commit of which it was told, and when. Record ids ascend in the
        order of sending.
        """

    def on_ack(self, step: steps.Ack) -> None:
        if isinstance(step, steps.CommitAck):
            self._told[step.consumer] = step.first_id, step.committed, step.at_us

    def on_offsets_answer(self, step: steps.OffsetsAnswer) -> None:
        told = self._told.get(step.consumer)
        if told is None:
            return
        self.decided = True
        record, offset, at_us = told
        if step.record < record:
            answered = f"offset {step.offset}" if step.record else "no offset"
            detail = (
                f"consumer {step.consumer} committed offset {offset} at {at_us / 1e6:.3f} s; "
                f"its next process was answered {answered}"
            )
            self._violates("committed-offset-back", step.at_us, detail, (record,))
        self._told[step.consumer] = step.record, step.offset, step.at_us
