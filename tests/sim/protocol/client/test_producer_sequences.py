"""What the partitions of an idempotent producer share, and what each has of its own."""

from __future__ import annotations

import itertools

import pytest

from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.client.producer_sequences import ProducerIdAndEpoch, ProducerSequences
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID
from sim.protocol.modes import MODES

FROM_KIP_360 = ("kip320", "kraft", "elr-4.3")
"""Modes whose producers raise their epoch; those of the last two (KAFKA-13794) ask only before they send."""


class Pair:
    """A producer with two partitions."""

    def __init__(self, mode: str) -> None:
        ids = itertools.count(7)
        self.producer = ProducerIdAndEpoch(lambda: next(ids))
        self.changes: list[tuple[int, int, int]] = []
        decide = Decisions(MODES[mode].rules)
        self.partitions = [
            ProducerSequences(
                decide,
                self.producer,
                lambda *change, place=place: self.changes.append((place, *change)),
            )
            for place in range(2)
        ]

    def send(self, place: int) -> ProducerBatch:
        """A batch of one record with the next sequence."""
        batch = ProducerBatch(0, 1, -1, 0)
        assert self.partitions[place].may_send(batch)
        self.partitions[place].assign(batch)
        return batch

    def go_on(self) -> None:
        """What a sender does before it sends."""
        for partition in self.partitions:
            partition.resolve()
        self.producer.go_on()

    def raise_epoch(self, place: int) -> ProducerBatch:
        """A batch whose refusal raises the epoch."""
        gap = self.send(place)
        assert self.partitions[place].may_retry(gap, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        self.go_on()
        return gap


def test_each_partition_counts_by_itself() -> None:
    pair = Pair("elr-4.3")
    assert [pair.send(place).sequence for place in (0, 1, 0)] == [(7, 0, 0), (7, 0, 0), (7, 0, 1)]


@pytest.mark.parametrize("mode", FROM_KIP_360)
def test_a_raised_epoch_renumbers_only_the_partition_that_required_it(mode: str) -> None:
    pair = Pair(mode)
    acked, other = pair.send(1), pair.send(1)
    pair.partitions[1].completed(acked, 0)
    gap = pair.raise_epoch(0)
    assert gap.sequence == (7, 1, 0)
    assert other.sequence == (7, 0, 1)
    assert pair.changes == [(0, 7, 1), (1, 7, 1)]


@pytest.mark.parametrize("mode", FROM_KIP_360)
def test_no_new_batch_is_sent_while_one_of_the_former_epoch_is_in_flight(mode: str) -> None:
    pair = Pair(mode)
    other = pair.send(1)
    pair.raise_epoch(0)
    assert not pair.partitions[1].may_send(ProducerBatch(0, 1, -1, 0))
    assert pair.partitions[1].may_send(other)
    pair.partitions[1].completed(other, 0)
    assert pair.send(1).sequence == (7, 1, 0)


@pytest.mark.parametrize(("mode", "sequence"), [("kip320", (7, 1, 1)), ("kraft", (7, 1, 0)), ("elr-4.3", (7, 1, 0))])
def test_a_partition_with_nothing_in_flight_begins_the_epoch_since_kafka_13794(
    mode: str, sequence: tuple[int, int, int]
) -> None:
    """Before, it went on with its sequence, which a leader refuses at the beginning of an epoch."""
    pair = Pair(mode)
    pair.partitions[1].completed(pair.send(1), 0)
    pair.raise_epoch(0)
    assert pair.send(1).sequence == sequence


def test_before_kip_360_another_producer_id_begins_in_all_partitions() -> None:
    pair = Pair("kip279")
    gap, other = pair.send(0), pair.send(1)
    assert pair.partitions[0].failed(gap, UNKNOWN_PRODUCER_ID) == UNKNOWN_PRODUCER_ID
    pair.go_on()
    assert other.sequence == (7, 0, 0)
    assert [pair.send(place).sequence for place in (0, 1)] == [(8, 0, 0), (8, 0, 0)]
    assert ProducerBatch(0, 1, -1, 0).sequence == NO_SEQUENCE


def test_a_fenced_producer_is_dead_in_all_partitions() -> None:
    pair = Pair("kip320")
    pair.partitions[0].failed(pair.send(0), INVALID_PRODUCER_EPOCH)
    pair.go_on()
    assert pair.producer.is_dead
    assert pair.changes == []
