from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from sim.protocol.client.producer_sequences import ProducerIdAndEpoch, ProducerSequences
from sim.protocol.client.sender import NETWORK_EXCEPTION, NEVER_US, ProducerBatch, Sender
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    INVALID_PRODUCER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
    UNKNOWN_PRODUCER_ID,
)
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from sim.protocol.batch import Sequence

GAP = OUT_OF_ORDER_SEQUENCE_NUMBER
TIMEOUT_US = 100


class Driver:
    """A sender that is always ready, unless told otherwise."""

    def __init__(self, mode: str = "kraft", *, idempotent: bool = True, keeps_order: bool = False) -> None:
        decide = Decisions(MODES[mode].rules)
        self.changes: list[tuple[int, int]] = []
        ids = itertools.count(7)
        sequences = None
        if idempotent:
            producer = ProducerIdAndEpoch(lambda: next(ids))
            sequences = ProducerSequences(decide, producer, lambda *change: self.changes.append(change))
        self.sender = Sender(decide, sequences, keeps_order=keeps_order, delivery_timeout_us=TIMEOUT_US)
        self.now_us = 0
        self.added = 0

    def add(self, *counts: int, acks: int = -1) -> list[ProducerBatch]:
        sends = [
            ProducerBatch(10 * (self.added + place), count, acks, self.now_us) for place, count in enumerate(counts)
        ]
        self.added += len(sends)
        self.sender.queue.extend(sends)
        return sends

    def run(self, *, ready: bool = True) -> list[ProducerBatch]:
        """All that can be sent now."""
        sent: list[ProducerBatch] = []
        while (send := self.sender.run_once(self.now_us, ready=ready)) is not None:
            sent.append(send)
        return sent

    def send(self, *counts: int) -> list[ProducerBatch]:
        sends = self.add(*counts)
        assert self.run() == sends
        return sends

    def refuse(self, *sends: ProducerBatch, error: str = NOT_LEADER_OR_FOLLOWER, log_start: int = -1) -> list[bool]:
        return [self.sender.refused(send, error, log_start, self.now_us) for send in sends]

    def wait(self, us: int) -> list[ProducerBatch]:
        self.now_us += us
        return self.run()

    @property
    def queued(self) -> list[ProducerBatch]:
        return list(self.sender.queue)


def sequences_of(*sends: ProducerBatch) -> list[Sequence]:
    return [send.sequence for send in sends]


# Without idempotence.


def test_refused_batches_are_sent_again_in_the_opposite_order() -> None:
    driver = Driver(idempotent=False)
    one, two, three = driver.send(1, 1, 1)
    assert driver.refuse(one, two, three) == [True] * 3
    new = driver.add(1)
    assert driver.run() == [three, two, one, *new]


@pytest.mark.parametrize(
    ("mode", "turned_round"), [("hw", False), ("kip101", False), ("kip279", True), ("kraft", True)]
)
def test_a_lost_connection_turns_batches_round_since_2_0(mode: str, turned_round: bool) -> None:
    driver = Driver(mode, idempotent=False)
    sends = driver.send(1, 1, 1)
    driver.sender.connection_lost(sends, 0)
    assert driver.run() == (sends[::-1] if turned_round else sends)


def test_one_batch_at_a_time_keeps_the_order() -> None:
    driver = Driver(idempotent=False, keeps_order=True)
    one, two = driver.add(1, 1)
    assert driver.run() == [one]
    assert driver.refuse(one) == [True]
    assert driver.run() == [one]
    assert driver.sender.completed(one, 0)
    assert driver.run() == [two]


def test_acks_0_is_done_when_it_is_sent_and_not_numbered() -> None:
    driver = Driver()
    (send,) = driver.add(1, acks=0)
    assert driver.run() == [send]
    assert (send.is_done, send.error, send.sequence) == (True, "", (-1, -1, -1))
    assert driver.sender.in_flight == []


@pytest.mark.parametrize("idempotent", [False, True])
def test_batches_fail_when_they_are_overdue_wherever_they_are(idempotent: bool) -> None:
    driver = Driver(idempotent=idempotent)
    assert driver.sender.next_expiry_us >= NEVER_US
    (sent,) = driver.send(1)
    driver.now_us = 10
    (waiting,) = driver.add(1)
    assert driver.run(ready=False) == []
    assert driver.sender.next_expiry_us == TIMEOUT_US
    driver.now_us = TIMEOUT_US - 1
    assert driver.run(ready=False) == []
    assert not sent.is_done
    driver.now_us = TIMEOUT_US
    assert driver.run(ready=False) == []
    assert (sent.error, waiting.is_done) == (REQUEST_TIMED_OUT, False)
    driver.now_us = TIMEOUT_US + 10
    assert driver.run(ready=False) == []
    assert waiting.error == REQUEST_TIMED_OUT
    assert not driver.sender.completed(sent, 0)  # Too late for the application.


def test_a_batch_that_is_just_overdue_is_sent_though_it_fails() -> None:
    driver = Driver(idempotent=False)
    (send,) = driver.add(1)
    assert driver.wait(TIMEOUT_US) == [send]
    assert send.error == REQUEST_TIMED_OUT


def test_a_batch_behind_one_that_may_wait_longer_is_not_looked_at() -> None:
    driver = Driver(idempotent=False)
    (one,) = driver.send(1)
    driver.now_us = 10
    (two,) = driver.send(1)
    assert driver.refuse(one, two) == [True, True]
    driver.now_us = TIMEOUT_US
    assert driver.run(ready=False) == []
    assert (driver.queued, one.is_done) == ([two, one], False)
    assert driver.run() == [two]
    assert one.error == REQUEST_TIMED_OUT


def test_an_overdue_batch_is_not_sent_again() -> None:
    driver = Driver(idempotent=False)
    (send,) = driver.send(1)
    driver.now_us = TIMEOUT_US
    assert driver.refuse(send, error=NETWORK_EXCEPTION) == [False]
    assert send.error == NETWORK_EXCEPTION


# With idempotence.


def test_sequences_count_records() -> None:
    driver = Driver()
    assert sequences_of(*driver.send(2, 1, 3)) == [(7, 0, 0), (7, 0, 2), (7, 0, 3)]
    assert driver.changes == []


def test_batches_are_resent_one_by_one_before_new_ones() -> None:
    driver = Driver()
    one, two = driver.send(1, 1)
    (new,) = driver.add(1)
    assert driver.refuse(two, one) == [True, True]
    assert driver.queued == [one, two, new]
    assert driver.run() == [one]
    driver.sender.completed(one, 0)
    assert driver.run() == [two, new]
    assert sequences_of(one, two, new) == [(7, 0, 0), (7, 0, 1), (7, 0, 2)]
    assert driver.changes == []


def test_a_gap_before_a_batch_that_is_not_next_in_line_may_close() -> None:
    driver = Driver()
    _, two = driver.send(1, 1)
    assert driver.refuse(two, error=GAP) == [True]
    assert driver.run() == []
    assert driver.changes == []


def test_a_gap_before_the_next_batch_starts_a_new_epoch_for_all_in_flight() -> None:
    driver = Driver()
    one, two, three = driver.send(2, 1, 1)
    driver.sender.completed(one, 0)
    assert driver.refuse(two, error=GAP) == [True]
    assert driver.changes == []
    assert driver.run() == [two]
    assert driver.changes == [(7, 1)]
    assert sequences_of(two, three) == [(7, 1, 0), (7, 1, 1)]
    assert driver.refuse(three, error=GAP) == [True]  # Of its former sequence: that says nothing about the new one.
    assert driver.run() == []
    assert driver.changes == [(7, 1)]
    driver.sender.completed(two, 0)
    assert driver.run() == [three]
    assert driver.send(1)[0].sequence == (7, 1, 2)


def test_batch_fails_and_a_new_producer_id_begins_before_kip_360() -> None:
    driver = Driver("kip279")
    one, two, three, four = driver.send(1, 1, 1, 1)
    driver.sender.completed(one, 0)
    assert driver.refuse(three) == [True]
    assert driver.refuse(two, error=GAP) == [False]
    assert two.error == GAP
    (new,) = driver.add(1)
    assert driver.run() == [three, new]  # The one keeps its sequence, whatever becomes of it.
    assert driver.changes == [(8, 0)]
    assert sequences_of(three, new) == [(7, 0, 2), (8, 0, 0)]
    assert driver.refuse(four) == [False]  # It would be sent again, but for the other producer id.
    assert four.error == GAP
    driver.sender.completed(three, 2)
    assert driver.send(1)[0].sequence == (8, 0, 1)


def test_before_kip_360_a_batch_of_an_old_id_takes_sequences_back() -> None:
    driver = Driver("kip279")
    one, two = driver.send(1, 1)
    assert driver.refuse(one, error=GAP) == [False]
    assert sequences_of(*driver.send(1, 1)) == [(8, 0, 0), (8, 0, 1)]
    assert driver.refuse(two, error=GAP) == [False]
    assert driver.send(1)[0].sequence == (8, 0, 1)


def test_negative_sequences_keep_a_batch_in_flight_before_kip_360() -> None:
    driver = Driver("kip279")
    one, two = driver.send(1, 2)
    assert driver.refuse(one, error=GAP) == [False]
    driver.send(1)
    assert driver.refuse(two, error=GAP) == [False]
    assert not two.is_done
    driver.wait(TIMEOUT_US)
    assert two.error == REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("mode", "log_start", "again", "next_sequence"),
    [
        ("kip279", 5, False, (8, 0, 0)),
        ("kip279", 6, True, (7, 0, 1)),
        ("kip279", -1, True, (7, 0, 2)),
        ("kraft", 5, True, (7, 1, 1)),
        ("kraft", -1, True, (7, 0, 2)),
    ],
)
def test_who_is_unknown_begins_anew_and_fails_nothing_if_all_was_deleted(
    mode: str, log_start: int, again: bool, next_sequence: Sequence
) -> None:
    driver = Driver(mode)
    one, two = driver.send(1, 1)
    driver.sender.completed(one, 5)
    assert driver.refuse(two, error=UNKNOWN_PRODUCER_ID, log_start=log_start) == [again]
    (new,) = driver.add(1)
    assert driver.run() == ([two, new] if again else [new])
    assert new.sequence == next_sequence


def test_a_second_answer_about_the_former_sequence_says_nothing() -> None:
    driver = Driver()
    one, two = driver.send(1, 1)
    assert driver.refuse(one, error=UNKNOWN_PRODUCER_ID, log_start=5) == [True]
    assert driver.run() == [one]
    assert driver.refuse(two, error=UNKNOWN_PRODUCER_ID, log_start=5) == [True]
    driver.run()
    assert driver.changes == [(7, 1)]


def fenced(mode: str) -> tuple[Driver, ProducerBatch, ProducerBatch]:
    driver = Driver(mode)
    one, two = driver.send(1, 1)
    assert driver.refuse(one, error=INVALID_PRODUCER_EPOCH) == [False]
    assert one.error == INVALID_PRODUCER_EPOCH
    return driver, one, two


@pytest.mark.parametrize("mode", ["kip279", "kip320"])
def test_a_fenced_producer_is_dead(mode: str) -> None:
    driver, _, two = fenced(mode)
    (new,) = driver.add(1)
    assert driver.run() == []
    assert (two.error, new.error, driver.queued) == (INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_EPOCH, [])
    assert driver.changes == []


def test_a_fenced_producer_goes_on_with_the_next_epoch_since_kip_588() -> None:
    driver, _, two = fenced("kraft")
    (new,) = driver.add(1)
    assert driver.run() == [new]
    assert driver.changes == [(7, 1)]
    assert sequences_of(two, new) == [(7, 1, 0), (7, 1, 1)]


def overdue(mode: str) -> tuple[Driver, ProducerBatch, ProducerBatch, ProducerBatch]:
    """The first of three batches has been given up on its second try; the others are in flight."""
    driver = Driver(mode)
    (one,) = driver.send(1)
    assert driver.refuse(one) == [True]
    assert driver.run() == [one]
    driver.now_us = 50
    two, three = driver.send(1, 1)
    assert driver.wait(50) == []
    assert one.error == REQUEST_TIMED_OUT
    return driver, one, two, three


def test_after_an_expiry_new_batches_wait_for_those_in_flight() -> None:
    driver, _, two, three = overdue("kraft")
    (new,) = driver.add(1)
    driver.sender.completed(two, 1)
    assert driver.run() == []
    driver.sender.completed(three, 2)  # So the log held the first one.
    assert driver.run() == [new]
    assert driver.changes == []


def test_new_epoch_begins_when_the_last_batches_were_given_up() -> None:
    driver, _, two, three = overdue("kraft")
    for send in (two, three):
        assert driver.refuse(send) == [True]
    assert driver.run() == [two]
    assert driver.wait(50) == []
    assert [send.error for send in (two, three)] == [REQUEST_TIMED_OUT] * 2
    assert driver.send(1)[0].sequence == (7, 1, 0)


def test_a_gap_behind_a_batch_that_was_given_up_starts_a_new_epoch() -> None:
    driver, _, two, three = overdue("kraft")
    assert driver.refuse(three, error=GAP) == [True]
    driver.run()
    assert driver.changes == []
    assert driver.refuse(two, error=GAP) == [True]
    driver.run()
    assert driver.changes == [(7, 1)]
    assert sequences_of(two, three) == [(7, 1, 0), (7, 1, 1)]


def test_a_first_try_that_is_given_up_leaves_nothing_in_doubt() -> None:
    driver = Driver()
    driver.send(1)
    assert driver.wait(TIMEOUT_US) == []
    assert driver.send(1)[0].sequence == (7, 0, 1)
    assert driver.changes == []


@pytest.mark.parametrize(("mode", "sequence"), [("kip320", (7, 1, 0)), ("kraft", (7, 1, 3))])
def test_a_late_success_begins_sequences_anew_until_kafka_13794(mode: str, sequence: Sequence) -> None:
    driver, one, two, three = overdue(mode)
    assert driver.refuse(two, error=GAP) == [True]
    assert driver.run() == [two]
    driver.sender.completed(two, 0)
    driver.sender.completed(three, 1)
    (new,) = driver.send(1)
    assert new.sequence == (7, 1, 2)
    driver.sender.completed(new, 2)
    assert not driver.sender.completed(one, 9)
    assert driver.send(1)[0].sequence == sequence


@pytest.mark.parametrize(("mode", "changes"), [("kip320", [(7, 1)]), ("kraft", [])])
def test_a_late_failure_starts_a_new_epoch_until_kafka_13794(mode: str, changes: list[tuple[int, int]]) -> None:
    driver, one, two, three = overdue(mode)
    assert driver.refuse(one) == [False]
    driver.run()
    assert driver.changes == changes
    assert not two.is_done
    assert not three.is_done
