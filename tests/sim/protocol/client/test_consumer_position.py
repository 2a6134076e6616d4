from __future__ import annotations

import pytest

from sim.protocol.client.consumer_position import (
    AWAIT_RESET,
    AWAIT_VALIDATION,
    FETCHING,
    INITIALIZING,
    ConsumerPosition,
    FetchPosition,
    LogTruncation,
)

HERE = FetchPosition(10, 5, 1, 7)


def at(position: FetchPosition = HERE, policy: str = "earliest") -> ConsumerPosition:
    """A position that awaits validation, if it has epochs."""
    one = ConsumerPosition(policy)
    one.seek_unvalidated(position)
    return one


def test_consumer_begins_without_a_position() -> None:
    one = ConsumerPosition("latest")
    assert (one.state, one.position) == (INITIALIZING, None)
    assert not one.leader_seen(1, 7)
    assert one.state == INITIALIZING
    one.complete_validation()
    assert one.state == INITIALIZING


@pytest.mark.parametrize(
    ("leader", "epoch", "doubtful"), [(1, 7, False), (2, 7, True), (1, 8, True), (1, 6, True), (2, -1, False)]
)
def test_another_leader_or_epoch_makes_it_doubtful(leader: int, epoch: int, doubtful: bool) -> None:
    one = ConsumerPosition("none")
    one.seek_validated(HERE)
    assert one.leader_seen(leader, epoch) == doubtful
    assert one.state == (AWAIT_VALIDATION if doubtful else FETCHING)
    assert one.position == HERE._replace(leader=leader, leader_epoch=epoch)


def test_no_leader_changes_nothing() -> None:
    one = at()
    assert not one.leader_seen(0, -1)
    assert (one.state, one.position) == (AWAIT_VALIDATION, HERE)


def test_position_without_an_epoch_is_not_asked_about() -> None:
    one = at(FetchPosition(10, -1, 1, 7))
    assert one.state == FETCHING
    assert not one.leader_seen(2, 8)
    one.consumed(12, 8)
    assert one.leader_seen(2, 9)


def test_consumer_that_cannot_ask_reads_on() -> None:
    one = at()
    assert not one.leader_seen(2, 8, can_validate=False)
    assert (one.state, one.position) == (FETCHING, FetchPosition(10, 5, 2, 8))


def test_the_log_still_reaches_as_far() -> None:
    one = at()
    assert one.epoch_end(HERE, 5, 10) is None
    assert (one.state, one.position) == (FETCHING, HERE)


def test_consumer_with_a_policy_goes_back_silently() -> None:
    one = at()
    assert one.epoch_end(HERE, 4, 8) is None
    assert (one.state, one.position) == (FETCHING, FetchPosition(8, 4, 1, 7))


def test_application_decides_without_a_policy() -> None:
    one = at(policy="none")
    assert one.epoch_end(HERE, 4, 8) == LogTruncation(HERE, 8, 4)
    assert (one.state, one.position) == (AWAIT_VALIDATION, HERE)
    one.seek_unvalidated(FetchPosition(8, 4, 1, 7))
    assert one.epoch_end(one.position, 4, 8) is None
    assert one.state == FETCHING


@pytest.mark.parametrize(("epoch", "end"), [(-1, -1), (-1, 20), (5, -1)])
def test_no_common_epoch(epoch: int, end: int) -> None:
    assert at(policy="none").epoch_end(HERE, epoch, end) == LogTruncation(HERE, -1, -1)
    one = at(policy="latest")
    assert one.epoch_end(HERE, epoch, end) is None
    assert (one.state, one.reset_strategy, one.position) == (AWAIT_RESET, "latest", None)


@pytest.mark.parametrize(
    "since",
    [FetchPosition(11, 5, 1, 7), FetchPosition(10, 6, 1, 7), FetchPosition(10, 5, 2, 7), FetchPosition(10, 5, 1, 8)],
)
def test_an_answer_about_another_position_is_dropped(since: FetchPosition) -> None:
    one = at(since)
    assert one.epoch_end(HERE, 4, 8) is None
    assert (one.state, one.position) == (AWAIT_VALIDATION, since)


def test_a_reset_ends_validation_and_is_not_interrupted_by_it() -> None:
    one = at()
    one.request_reset()
    assert not one.leader_seen(2, 8)
    assert one.epoch_end(HERE, 4, 8) is None
    assert (one.state, one.position) == (AWAIT_RESET, None)


def test_only_the_reset_that_is_wanted_is_carried_out() -> None:
    one = at()
    one.request_reset("latest")
    assert not one.reset_to("earliest", FetchPosition(0))
    assert one.reset_to("latest", FetchPosition(30, -1, 1, 7))
    assert (one.state, one.reset_strategy, one.offset) == (FETCHING, "", 30)
    assert not one.reset_to("latest", FetchPosition(40, -1, 1, 7))


def test_an_older_epoch_with_a_larger_end_passes() -> None:
    """The hole that Kafka has: records of epoch 5 were read and are gone, and nothing is noticed."""
    one = at()
    assert one.epoch_end(HERE, 4, 15) is None
    assert one.state == FETCHING
