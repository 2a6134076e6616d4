"""What a leader knows of idempotent producers: exactly what its log holds.

Kafka keeps the last five batches of each producer id beside the log, rebuilds them from it after a load or a
truncation, and lets followers build them from what they replicate; so the state is a function of the log, and is read
off its end when a batch with a producer id arrives. Kafka classes: ProducerStateManager, ProducerStateEntry,
ProducerAppendInfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.messages import INVALID_PRODUCER_EPOCH, NONE, OUT_OF_ORDER_SEQUENCE_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    from sim.protocol.batch import Batch, Sequence

RETAINED: Final = 5
"""Batches of a producer that a repetition is compared with (ProducerStateEntry.NumBatchesToRetain)."""


def latest_batches(batches: Listed[Batch], producer_id: int) -> list[Batch]:
    """The last batches of a producer's latest epoch, newest first and at most `RETAINED` of them.

    Args:
        batches: a log.
        producer_id: whose.
    """
    found: list[Batch] = []
    for batch in reversed(batches):
        if batch.producer_id != producer_id:
            continue
        if found and batch.producer_epoch != found[0].producer_epoch:
            break
        found.append(batch)
        if len(found) == RETAINED:
            break
    return found


def check(batches: Listed[Batch], sequence: Sequence, count: int) -> tuple[str, Batch | None]:
    """Judge a batch of an idempotent producer before it is appended.

    A repetition is looked for first (ProducerStateEntry.findDuplicateBatch), then epoch and sequence are checked
    (ProducerAppendInfo.checkProducerEpoch, checkSequence). From a producer that the log does not know any sequence is
    taken.

    Args:
        batches: the leader's log.
        sequence: producer id, producer epoch and first sequence of the new batch.
        count: its number of records.

    Returns:
        The error, `NONE` to append it; and the batch of which it is a repetition.
    """
    producer_id, producer_epoch, base_sequence = sequence
    known = latest_batches(batches, producer_id)
    if not known:
        return NONE, None
    newest = known[0]
    if producer_epoch < newest.producer_epoch:
        return INVALID_PRODUCER_EPOCH, None
    if producer_epoch > newest.producer_epoch:
        return OUT_OF_ORDER_SEQUENCE_NUMBER if base_sequence else NONE, None
    for batch in known:
        if batch.base_sequence == base_sequence and batch.count == count:
            return NONE, batch
    if base_sequence != newest.base_sequence + newest.count:
        return OUT_OF_ORDER_SEQUENCE_NUMBER, None
    return NONE, None
