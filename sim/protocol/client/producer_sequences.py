"""Sequences of an idempotent producer: assigning them, holding batches back, and handling responses.

Kafka's TransactionManager without transactions. `ProducerIdAndEpoch` is what all partitions of a producer share,
`ProducerSequences` what each has of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from sim.protocol.batch import NO_SEQUENCE, Sequence
from sim.protocol.decisions import Decisions
from sim.protocol.messages import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID

SEQUENCE_ERRORS: Final = (OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID)
"""The errors that are not retriable as such; all others that a producer meets are."""
NO_PRODUCER_ID: Final = -1


class Sequenced(Protocol):
    """A batch that a producer sends. Kafka: ProducerBatch (1.1-4.4).

    Attributes:
        count: number of records.
        sequence: its assigned sequence, `NO_SEQUENCE` before that.
        rewritten: whether it got another sequence after it was last sent.
        is_retry: whether it was sent before.
    """

    count: int
    sequence: Sequence
    rewritten: bool
    is_retry: bool


class ProducerIdAndEpoch:
    """The producer id and epoch of a producer, which its partitions share. Kafka: TransactionManager (1.1-4.4).

    Args:
        new_id: allocates producer ids.

    Attributes:
        producer_id: the current one, `NO_PRODUCER_ID` from its reset until the next `go_on`.
        producer_epoch: its epoch.
        is_dead: the producer was fatally fenced and cannot send any more.
        partitions: the sequences in each partition to which it sends.
    """

    __slots__ = ("_new_id", "is_dead", "partitions", "producer_epoch", "producer_id")

    def __init__(self, new_id: Callable[[], int]) -> None:
        self._new_id = new_id
        self.producer_id = new_id()
        self.producer_epoch = 0
        self.is_dead = False
        self.partitions: list[ProducerSequences] = []

    def go_on(self) -> None:
        """Bump the epoch if a partition requires it, or take a new producer id after a reset. A bump renumbers the
        batches in flight of those partitions only; the others go on with the former epoch until none of theirs is in
        flight. A no-op for a fatally fenced producer.

        Kafka: TransactionManager#bumpIdempotentEpochAndResetIdIfNeeded (2.6-4.4).
        """
        if self.is_dead:
            return
        bumps = False
        for partition in self.partitions:
            bumps = bumps or partition.wants_bump
        if bumps:
            self.producer_epoch += 1
            for partition in self.partitions:
                if partition.wants_bump:
                    partition.begin_epoch()
        elif self.producer_id == NO_PRODUCER_ID:
            self.producer_id = self._new_id()
        else:
            return
        for partition in self.partitions:
            partition.changed(self.producer_id, self.producer_epoch)

    def reset(self) -> None:
        """Forget the producer id, with the sequences of all partitions; batches keep theirs.

        Kafka: TransactionManager#resetProducerId (1.1-2.0), TransactionManager#resetIdempotentProducerId (2.6-4.4).
        """
        self.producer_id = NO_PRODUCER_ID
        for partition in self.partitions:
            partition.forget()


class ProducerSequences:
    """Sequences of one producer in one partition. Kafka: TransactionManager (1.1-4.4), TxnPartitionEntry (3.9-4.4).

    Args:
        decide: rule ``producer_recovery`` decides the reaction to a gap and to a fenced epoch.
        producer: what the partitions of the producer share.
        changed: called with each new (producer id, producer epoch) after the first.

    Attributes:
        producer: as given.
        changed: as given.
        in_flight: batches with a sequence and no final response, by sequence; before KIP-360 as in a
            java.util.PriorityQueue, where only the first is sure to be the least.
        wants_bump: whether the producer has to bump its epoch because of this partition. Kafka:
            TransactionManager#requestEpochBumpForPartition (2.6-3.9),
            TransactionManager#requestIdempotentEpochBumpForPartition (4.1-4.4).
        last_acked: last acknowledged sequence, -1 if none.
    """

    def __init__(self, decide: Decisions, producer: ProducerIdAndEpoch, changed: Callable[[int, int], None]) -> None:
        self._bumps = decide.bumps_producer_epoch
        self._survives_fencing = decide.producer_survives_fencing
        self.producer = producer
        self.changed = changed
        producer.partitions.append(self)
        self._of_producer_id = producer.producer_id
        self._of_epoch = producer.producer_epoch
        self.in_flight: list[Sequenced] = []
        self.wants_bump = False
        self._next = 0
        self.last_acked = self._last_acked_offset = -1
        self._unresolved = -1

    @property
    def next_sequence(self) -> int:
        """The sequence of the next new batch. Kafka: TransactionManager#sequenceNumber (1.1-4.4)."""
        return max(self._next, 0)

    def handles_late_failures(self) -> bool:
        """Whether an error response to a batch that had already failed also changes sequences."""
        return not self._survives_fencing.yes()

    @property
    def is_in_doubt(self) -> bool:
        """Whether an expired batch may be in the log. Kafka: TransactionManager#hasUnresolvedSequence (1.1-4.4)."""
        return self._unresolved >= 0

    def resolve(self) -> None:
        """Require another epoch, or reset the producer id, if the last batches in flight expired and the log may lack
        them. `ProducerIdAndEpoch.go_on` follows.

        Kafka: TransactionManager#maybeResolveSequences (2.6-4.4),
        TransactionManager#shouldResetProducerStateAfterResolvingSequences (1.1-2.0).
        """
        if self._unresolved >= 0 and not self.in_flight:
            self._next = max(self._next, 0)
            if self._next == self.last_acked + 1:
                self._unresolved = -1
            elif self._bumps.yes():
                self._unresolved = -1
                self.wants_bump = True
            else:
                self.producer.reset()

    def begin_epoch(self) -> None:
        """Number the batches in flight anew, in the epoch that this partition required."""
        self.wants_bump = False
        self._unresolved = -1
        self._renumber()

    def may_send(self, batch: Sequenced) -> bool:
        """Whether a batch may be sent: a retry waits for all earlier batches, a new batch until no sequence is
        unresolved, and none of a former epoch is in flight.

        Kafka: RecordAccumulator#shouldStopDrainBatchesForPartition (2.6-4.4).
        """
        if batch.sequence == NO_SEQUENCE:
            return self._unresolved < 0 and not (self.in_flight and not self._is_current(self.in_flight[0]))
        return not self.in_flight or batch.sequence[2] == self.in_flight[0].sequence[2]

    def assign(self, batch: Sequenced) -> None:
        """Assign the next sequence to a batch about to be sent, unless it has one.

        Kafka: ProducerBatch#setProducerState (1.1-4.4), TransactionManager#incrementSequenceNumber (1.1-4.4),
        TransactionManager#addInFlightBatch (1.1-4.4).
        """
        if batch.sequence == NO_SEQUENCE:
            producer = self.producer
            self._next = max(self._next, 0)
            is_stale = self._of_epoch != producer.producer_epoch or self._of_producer_id != producer.producer_id
            if is_stale and not self.in_flight and self._survives_fencing.yes():
                # Another partition has required the epoch: TransactionManager#maybeUpdateProducerIdAndEpoch.
                self._renumber()
            batch.sequence = (producer.producer_id, producer.producer_epoch, self._next)
            self._next += batch.count
            self.in_flight.append(batch)
            if not self._bumps.answer:
                self._sift_up(len(self.in_flight) - 1)
        batch.rewritten = False

    def completed(self, batch: Sequenced, base_offset: int) -> None:
        """Handle a success.

        Since KIP-360 a late success of an expired batch of a former epoch counts like any other. At first, sequences
        even restarted under the current epoch if nothing was in flight.
        Kafka: TransactionManager#handleCompletedBatch (2.6-4.4), Sender#completeBatch.

        Args:
            batch: the batch.
            base_offset: offset of its first record, -1 if not in the response.
        """
        is_current = self._is_current(batch)
        if is_current or self._bumps.yes():
            self.last_acked = max(self.last_acked, batch.sequence[2] + batch.count - 1)
        if base_offset >= 0:
            self._last_acked_offset = max(self._last_acked_offset, base_offset + batch.count - 1)
        self._remove_in_flight(batch)
        if is_current or self.in_flight or not self._bumps.answer:
            return
        if not self._survives_fencing.yes():
            self._renumber()

    def may_retry(self, batch: Sequenced, error: str, log_start: int) -> bool:
        """Whether a refused batch is retried. The response may lack a leader's log start (-1), which it has for an
        unknown producer.

        Only a refusal of the next batch in sequence shows a gap in the log. Kafka: TransactionManager#canRetry
        (1.1-4.4).
        """
        if not self._is_current(batch) and not self._bumps.yes():
            return False
        if error == UNKNOWN_PRODUCER_ID:
            return log_start < 0 or batch.rewritten or self._may_retry_unknown(log_start)
        if error == OUT_OF_ORDER_SEQUENCE_NUMBER:
            in_doubt = self._unresolved >= 0
            base_sequence = batch.sequence[2]
            if not in_doubt and (batch.rewritten or base_sequence != self.last_acked + 1):
                return True
            if not in_doubt or base_sequence == self._unresolved:
                self.wants_bump = self._bumps.yes()
            return self._bumps.yes()
        return error not in SEQUENCE_ERRORS

    def _may_retry_unknown(self, log_start: int) -> bool:
        if self._bumps.yes():
            self.wants_bump = True
            return True
        if self._last_acked_offset < log_start:  # All acknowledged records are deleted, so none is missing.
            self._renumber()
            return True
        return False

    def failed(self, batch: Sequenced, error: str) -> str:
        """Handle a batch's failure; returns the error for the application, "" if Kafka throws before it reports one.

        Kafka: TransactionManager#handleFailedBatch (2.6-4.4), Sender#failBatch (1.1-4.4).
        """
        if error == INVALID_PRODUCER_EPOCH and not self._survives_fencing.yes():
            self.producer.is_dead = True
        is_current = self._is_current(batch)
        if self._bumps.yes():
            self._remove_in_flight(batch)
            if is_current or self._survives_fencing.yes():
                self.wants_bump = True
            return error
        if is_current and error in (OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID):
            self.producer.reset()
            return error
        if not is_current and error not in SEQUENCE_ERRORS:
            return OUT_OF_ORDER_SEQUENCE_NUMBER
        self._remove_in_flight(batch)
        return error if self._close_gap(batch) else ""

    def _close_gap(self, batch: Sequenced) -> bool:
        """Decrement later sequences, although they may be of another producer id.

        Kafka: TransactionManager#adjustSequencesDueToFailedBatch (1.1-2.6),
        TxnPartitionMap#adjustSequencesDueToFailedBatch (3.9-4.4).
        """
        if self._next < 0:
            return True
        if self._next < batch.count:
            return False
        self._next -= batch.count
        for one in self.in_flight:
            producer_id, producer_epoch, base_sequence = one.sequence
            if base_sequence >= batch.sequence[2]:
                if base_sequence < batch.count:
                    return False
                one.sequence = (producer_id, producer_epoch, base_sequence - batch.count)
                one.rewritten = True
        return True

    def expired(self, batch: Sequenced) -> None:
        """Note an expired batch, which a retry may have logged. Kafka: TransactionManager#markSequenceUnresolved
        (1.1-4.4).
        """
        self._remove_in_flight(batch)
        if batch.is_retry:
            self._unresolved = max(self._unresolved, batch.sequence[2] + batch.count)

    def _is_current(self, batch: Sequenced) -> bool:
        """Kafka: TransactionManager#hasProducerIdAndEpoch (1.1-2.0), TransactionManager#hasStaleProducerIdAndEpoch
        (3.9-4.4).
        """
        producer = self.producer
        return batch.sequence[0] == producer.producer_id and batch.sequence[1] == producer.producer_epoch

    def _remove_in_flight(self, batch: Sequenced) -> None:
        """Remove a batch from those in flight.

        Until KAFKA-13794 some releases identified batches by sequence alone, without the epoch.
        Kafka: TransactionManager#removeInFlightBatch (1.1-4.4).
        """
        in_flight = self.in_flight
        bumps = self._bumps.answer
        for place, one in enumerate(in_flight):
            is_alike = one is not batch and one.sequence[2] == batch.sequence[2]
            if is_alike:
                self._bumps.note()
            if one is batch or (is_alike and bumps and not self._survives_fencing.yes()):
                if bumps:
                    del in_flight[place]
                else:
                    self._heap_remove(place)
                return

    # A PriorityQueue, before KIP-360.

    def _heap_remove(self, place: int) -> None:
        """The last element takes its place, and is sifted down or up (PriorityQueue.removeAt)."""
        in_flight = self.in_flight
        last = in_flight.pop()
        if place == len(in_flight):
            return
        in_flight[place] = last
        sunk = place
        while (child := 2 * sunk + 1) < len(in_flight):
            if child + 1 < len(in_flight) and in_flight[child + 1].sequence[2] < in_flight[child].sequence[2]:
                child += 1
            if last.sequence[2] <= in_flight[child].sequence[2]:
                break
            in_flight[sunk], in_flight[child] = in_flight[child], last
            sunk = child
        if sunk == place:
            self._sift_up(place)

    def _sift_up(self, place: int) -> None:
        in_flight = self.in_flight
        while place and in_flight[place].sequence[2] < in_flight[(place - 1) // 2].sequence[2]:
            above = (place - 1) // 2
            in_flight[place], in_flight[above] = in_flight[above], in_flight[place]
            place = above

    def forget(self) -> None:
        """Forget all state, with the producer id; see `ProducerIdAndEpoch.reset`."""
        self.in_flight.clear()
        self._next = self._unresolved = self.last_acked = self._last_acked_offset = -1

    def _renumber(self) -> None:
        """Renumber batches in flight from 0, in their order in the queue.

        Kafka: TransactionManager#startSequencesAtBeginning (1.1-2.0), TxnPartitionMap#startSequencesAtBeginning
        (3.9-4.4).
        """
        producer = self.producer
        self._of_producer_id = producer.producer_id
        self._of_epoch = producer.producer_epoch
        self._next = 0
        self.last_acked = -1
        for batch in self.in_flight:
            batch.sequence = (producer.producer_id, producer.producer_epoch, self._next)
            batch.rewritten = True
            self._next += batch.count
