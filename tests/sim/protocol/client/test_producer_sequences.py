from __future__ import annotations

import itertools

import pytest

from sim.hosts.producer import Send
from sim.protocol.client.producer_sequences import ProducerSequences
from sim.protocol.messages import NOT_LEADER_OR_FOLLOWER, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID
from sim.protocol.modes import MODES

GAP = OUT_OF_ORDER_SEQUENCE_NUMBER


class Sender:
    """Sequences of a producer, with what they were changed to."""

    def __init__(self, recovery: str = "epoch-bump") -> None:
        self.changes: list[tuple[int, int]] = []
        ids = itertools.count(7)
        rules = MODES["kip320"].rules.override({"producer_recovery": recovery})
        self.sequences = ProducerSequences(rules, lambda: next(ids), lambda *change: self.changes.append(change))

    def send(self, *counts: int) -> list[Send]:
        """New batches of so many records, all sent."""
        sends = [Send(10 * place, count, -1, 0) for place, count in enumerate(counts)]
        assert not any(self.sequences.leave(send, given_up=False) for send in sends)
        return sends

    def again(self, send: Send) -> None:
        assert self.sequences.may_send(send)
        assert not self.sequences.leave(send, given_up=False)


def test_sequences_count_records() -> None:
    sender = Sender()
    assert [send.sequence for send in sender.send(2, 1, 3)] == [(7, 0, 0), (7, 0, 2), (7, 0, 3)]
    assert sender.changes == []


def test_acks_0_is_not_numbered() -> None:
    sender = Sender()
    send = Send(0, 1, 0, 0)
    assert not sender.sequences.leave(send, given_up=False)
    assert send.sequence == (-1, -1, -1)
    assert sender.sequences.in_flight == []


def test_batches_are_sent_again_in_order_and_new_ones_behind_them() -> None:
    sender = Sender()
    one, two = sender.send(1, 1)
    for send in (two, one):
        assert sender.sequences.refused(send, NOT_LEADER_OR_FOLLOWER, -1)
    assert not sender.sequences.may_send(two)
    sender.again(one)
    assert not sender.sequences.may_send(two)
    sender.sequences.completed(one, 0)
    sender.again(two)
    assert (one.sequence, two.sequence) == ((7, 0, 0), (7, 0, 1))
    assert sender.changes == []


def test_a_gap_before_a_batch_that_is_not_next_in_line_may_close() -> None:
    sender = Sender()
    _, two = sender.send(1, 1)
    assert sender.sequences.refused(two, GAP, -1)
    assert sender.changes == []


def test_a_gap_before_the_next_batch_starts_a_new_epoch_for_all_in_flight() -> None:
    sender = Sender()
    one, two, three = sender.send(2, 1, 1)
    sender.sequences.completed(one, 0)
    assert sender.sequences.refused(two, GAP, -1)
    assert sender.changes == [(7, 1)]
    assert (two.sequence, three.sequence) == ((7, 1, 0), (7, 1, 1))
    assert sender.sequences.refused(three, GAP, -1)  # Of its former sequence: that says nothing about the new one.
    assert sender.changes == [(7, 1)]
    sender.again(two)
    sender.sequences.completed(two, 0)
    sender.again(three)
    assert sender.send(1)[0].sequence == (7, 1, 2)


def test_batch_fails_and_a_new_producer_id_begins_before_kip_360() -> None:
    sender = Sender("new-producer-id")
    one, two, three = sender.send(1, 1, 1)
    sender.sequences.completed(one, 0)
    assert not sender.sequences.refused(two, GAP, -1)
    assert sender.changes == [(8, 0)]
    assert not sender.sequences.refused(three, GAP, -1)
    assert sender.sequences.leave(three, given_up=False)
    assert sender.send(1)[0].sequence == (8, 0, 0)


@pytest.mark.parametrize(
    ("recovery", "log_start", "again", "first"),
    [
        ("new-producer-id", 5, False, (8, 0, 0)),
        ("new-producer-id", 6, True, (7, 0, 1)),
        ("epoch-bump", 5, True, (7, 1, 1)),
    ],
)
def test_who_is_unknown_begins_anew_and_fails_nothing_if_all_was_deleted(
    recovery: str, log_start: int, again: bool, first: tuple[int, int, int]
) -> None:
    sender = Sender(recovery)
    one, two = sender.send(1, 1)
    sender.sequences.completed(one, 5)
    assert sender.sequences.refused(two, UNKNOWN_PRODUCER_ID, log_start) == again
    if again:  # A second answer about the former sequence says nothing.
        assert sender.sequences.refused(two, UNKNOWN_PRODUCER_ID, log_start)
        assert two.sequence == (*first[:2], 0)
    assert sender.send(1)[0].sequence == first


def test_new_batches_wait_after_one_was_given_up_until_the_others_are_answered() -> None:
    sender = Sender()
    one, two = sender.send(1, 1)
    new = Send(50, 1, -1, 0)
    assert sender.sequences.leave(one, given_up=True)
    assert not sender.sequences.may_send(new)
    sender.sequences.completed(two, 0)  # So the log held the first one.
    assert sender.sequences.may_send(new)
    assert sender.changes == []


def test_new_epoch_begins_when_the_last_batches_were_given_up() -> None:
    sender = Sender()
    one, two = sender.send(1, 1)
    assert sender.sequences.leave(one, given_up=True)
    assert sender.sequences.leave(two, given_up=True)
    assert sender.changes == [(7, 1)]
    assert sender.send(1)[0].sequence == (7, 1, 0)


def test_a_gap_behind_a_batch_that_was_given_up_starts_a_new_epoch() -> None:
    sender = Sender()
    one, two, three = sender.send(1, 1, 1)
    assert sender.sequences.leave(one, given_up=True)
    assert sender.sequences.refused(three, GAP, -1)
    assert sender.changes == []
    assert sender.sequences.refused(two, GAP, -1)
    assert sender.changes == [(7, 1)]
    assert (two.sequence, three.sequence) == ((7, 1, 0), (7, 1, 1))
