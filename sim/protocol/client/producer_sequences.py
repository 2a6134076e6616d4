"""An idempotent producer's side: which sequence a batch gets, which batch may be sent, and what a refusal means.

Kafka class: TransactionManager (without transactions); RecordAccumulator.shouldStopDrainBatchesForPartition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.messages import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.protocol.batch import Sequence
    from sim.protocol.rules import Rules

SEQUENCE_ERRORS: Final = (OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID)


class Sequenced(Protocol):
    """A batch that a producer sends.

    Attributes:
        acks: 0 is never answered, and gets no sequence.
        count: number of records.
        sequence: what it was given, `NO_SEQUENCE` before that.
        rewritten: it got another sequence after it was sent last.
    """

    acks: int
    count: int
    sequence: Sequence
    rewritten: bool


class ProducerSequences:
    """Sequences of one producer in one partition.

    Args:
        rules: ``producer_recovery`` says what a gap leads to.
        new_id: gives producer ids.
        changed: called with each later (producer id, producer epoch).

    Attributes:
        producer_id: the present one.
        producer_epoch: its epoch.
        in_flight: batches that have a sequence and were not answered for good, in order of their sequences.
    """

    def __init__(self, rules: Rules, new_id: Callable[[], int], changed: Callable[[int, int], None]) -> None:
        self._bumps = rules.producer_recovery == "epoch-bump"
        self._new_id = new_id
        self._changed = changed
        self.producer_id = new_id()
        self.producer_epoch = 0
        self.in_flight: list[Sequenced] = []
        self._next = 0
        self._last_acked = self._last_acked_offset = -1
        self._unresolved = -1

    def may_send(self, batch: Sequenced) -> bool:
        """A batch that is sent again waits for all before it; a new one until no sequence is in doubt."""
        if batch.sequence == NO_SEQUENCE:
            return self._unresolved < 0
        return batch is self.in_flight[0] if self._is_current(batch) else True

    def leave(self, batch: Sequenced, *, given_up: bool) -> bool:
        """A batch leaves the queue: it is given up, or about to be sent, and gets the next sequence unless it has one.

        Returns:
            Whether it is given up. One that has a sequence of an abandoned producer id has failed for the application.
        """
        if batch.sequence == NO_SEQUENCE:
            if not given_up and batch.acks:
                batch.sequence = (self.producer_id, self.producer_epoch, self._next)
                self._next += batch.count
                self.in_flight.append(batch)
        elif not self._is_current(batch):
            return True
        elif given_up:
            self._expired(batch)
        batch.rewritten = False
        return given_up

    def completed(self, batch: Sequenced, base_offset: int) -> None:
        """A leader took a batch, now or before, and has it at an offset."""
        if self._is_current(batch):
            self._last_acked = max(self._last_acked, batch.sequence[2] + batch.count - 1)
            self._last_acked_offset = max(self._last_acked_offset, base_offset + batch.count - 1)
            self._forget(batch)

    def refused(self, batch: Sequenced, error: str, log_start: int) -> bool:
        """A leader refused a batch; whether it is sent again (TransactionManager.canRetry).

        Only a refusal of the batch that is next in line shows a gap in the log. Before KIP-360 that batch fails, and
        with it all others that have yet to be sent again.

        Args:
            batch: which.
            error: why.
            log_start: of the leader that does not know the producer: if all that it acknowledged lies below, sequences
                begin anew, and nothing fails.
        """
        if not self._is_current(batch):
            return False
        if error == UNKNOWN_PRODUCER_ID:
            return self._unknown(batch, log_start)
        base_sequence = batch.sequence[2]
        in_doubt = self._unresolved >= 0
        if error not in SEQUENCE_ERRORS or (
            not in_doubt and (batch.rewritten or base_sequence != self._last_acked + 1)
        ):
            return True
        if not self._bumps or not in_doubt or base_sequence == self._unresolved:
            self._start_anew()
        return self._bumps

    def _unknown(self, batch: Sequenced, log_start: int) -> bool:
        if batch.rewritten:
            return True
        if self._bumps or self._last_acked_offset >= log_start:
            self._start_anew()
            return self._bumps
        self._count_anew()
        return True

    def _expired(self, batch: Sequenced) -> None:
        """The producer gave a batch up: whether the log holds it is in doubt (markSequenceUnresolved)."""
        self._unresolved = max(self._unresolved, batch.sequence[2] + batch.count)
        self._forget(batch)

    def _is_current(self, batch: Sequenced) -> bool:
        return batch.sequence[0] == self.producer_id

    def _forget(self, batch: Sequenced) -> None:
        self.in_flight.remove(batch)
        if self._unresolved >= 0 and not self.in_flight:
            self._unresolved = -1
            if self._next != self._last_acked + 1:
                self._start_anew()

    def _start_anew(self) -> None:
        """Next producer epoch, and batches in flight get new sequences; or another producer id (before KIP-360)."""
        if self._bumps:
            self.producer_epoch += 1
        else:
            self.producer_id = self._new_id()
            self.producer_epoch = 0
            self.in_flight.clear()
        self._unresolved = self._last_acked_offset = -1
        self._count_anew()
        self._changed(self.producer_id, self.producer_epoch)

    def _count_anew(self) -> None:
        """Batches in flight get sequences from 0 on (TransactionManager.startSequencesAtBeginning)."""
        self._next = 0
        self._last_acked = -1
        for batch in self.in_flight:
            batch.sequence = (self.producer_id, self.producer_epoch, self._next)
            batch.rewritten = True
            self._next += batch.count
