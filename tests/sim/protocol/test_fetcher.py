from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sim.protocol.batch import Batch
from sim.protocol.fetcher import Fetcher, truncation_state
from sim.protocol.messages import (
    EARLIEST,
    FENCED_LEADER_EPOCH,
    LATEST,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    EpochEndReply,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
)
from tests.sim.protocol.recording import HW, KIP101, Recorder, filled

if TYPE_CHECKING:
    from sim.protocol.partition import Partition
    from sim.protocol.rules import Rules

BACKOFF_US = 1_000
KIP279 = KIP101.override({"follower_truncation": "leader-epoch-rounds"})


class Follower:
    """A replica with its fetcher, and the leader's answers."""

    def __init__(self, epochs: dict[int, int], rules: Rules, *, hw: int = 0, unclean: bool = False) -> None:
        self.host = Recorder()
        self.replica: Partition = filled(self.host, epochs, rules, hw=hw)
        self.now_us = 10
        self.fetcher = Fetcher(2, rules, self.host, backoff_us=BACKOFF_US, unclean_election=unclean)

    def follow(self, epoch: int = 5) -> Follower:
        self.fetcher.add(self.replica, epoch, 0)
        return self

    def back_off(self) -> None:
        """Time passes until the fetcher tries again."""
        assert self.host.of("wake")[-1] == (self.now_us + BACKOFF_US,)
        self.now_us += BACKOFF_US
        self.fetcher.step(self.now_us)

    @property
    def asked(self) -> Any:
        """The latest request."""
        return self.host.sent[-1]

    def ends(self, end: int, epoch: int = -1, error: str = NONE) -> None:
        """The leader says where an epoch ends."""
        self.fetcher.on_epoch_end_reply(EpochEndReply(self.asked, [("t-0", error, epoch, end)]), self.now_us)

    def brings(self, *batches: Batch, hw: int = 0, start: int = 0, error: str = NONE) -> None:
        """The leader answers a fetch."""
        self.fetcher.on_fetch_reply(FetchReply(self.asked, [("t-0", error, list(batches), hw, start, 5)]), self.now_us)

    def lists(self, offset: int, error: str = NONE) -> None:
        """The leader answers ListOffsets."""
        self.fetcher.on_list_offsets_reply(ListOffsetsReply(self.asked, error, offset, 5), self.now_us)

    @property
    def fetches_from(self) -> int | None:
        """Offset of the latest request, if that is a fetch."""
        return self.asked.positions[0][1] if isinstance(self.asked, FetchRequest) else None


# Truncation.


def test_hw_truncates_to_its_high_watermark_before_it_asks_anybody() -> None:
    follower = Follower({1: 4}, HW, hw=2).follow()
    assert follower.host.calls == [("truncated", 2, 2), ("settled", 5, 2)]
    assert follower.fetches_from == 2


def test_kip101_asks_where_its_latest_epoch_ended_and_truncates_to_that() -> None:
    follower = Follower({1: 4, 3: 4}, KIP101, hw=2).follow()
    assert follower.asked.asks == [("t-0", NO_EPOCH, 3)]
    assert not follower.asked.with_epoch
    assert follower.replica.log.leo == 8
    follower.ends(6)
    assert follower.host.of("settled") == [(5, 6)]
    assert follower.fetches_from == 6


def test_an_answer_beyond_the_leo_removes_nothing() -> None:
    follower = Follower({1: 4}, KIP101).follow()
    follower.ends(9)
    assert follower.fetches_from == 4


@pytest.mark.parametrize("error", [NONE, UNSUPPORTED_VERSION])
def test_without_an_answer_it_falls_back_to_its_high_watermark(error: str) -> None:
    follower = Follower({1: 4}, KIP101, hw=3).follow()
    follower.ends(-1, error=error)
    assert follower.fetches_from == 3


def test_without_epochs_it_truncates_to_its_high_watermark_unasked() -> None:
    follower = Follower({}, KIP101).follow()
    assert follower.fetches_from == 0
    assert follower.host.of("settled") == [(5, 0)]


def test_an_error_delays_and_never_truncates() -> None:
    follower = Follower({1: 4}, KIP101, hw=1).follow()
    follower.ends(-1, error=NOT_LEADER_OR_FOLLOWER)
    assert follower.host.calls == [("wake", 10 + BACKOFF_US)]
    follower.back_off()
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1)]
    follower.ends(2)
    assert follower.fetches_from == 2


def test_kip279_asks_again_until_the_epochs_agree() -> None:
    follower = Follower({1: 4, 3: 4, 4: 4}, KIP279).follow()
    assert follower.asked.with_epoch
    follower.ends(6, epoch=2)
    assert follower.replica.log.leo == 4
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1)]
    assert follower.host.of("settled") == []
    follower.ends(3, epoch=1)
    assert follower.host.of("settled") == [(5, 3)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((-1, -1), (5, True)),
        ((-1, 7), (7, True)),
        ((3, 20), (12, True)),
        ((3, 9), (9, True)),
        ((2, 9), (4, False)),
        ((0, 2), (2, True)),
    ],
)
def test_what_an_answer_means(reply: tuple[int, int], expected: tuple[int, bool]) -> None:
    epochs = Follower({1: 4, 3: 8}, KIP279).replica.epochs
    assert truncation_state(epochs, 12, 5, *reply) == expected


def test_an_answer_for_a_stranger_is_an_error() -> None:
    follower = Follower({1: 4}, KIP101).follow()
    with pytest.raises(ValueError, match="'x-1'"):
        follower.fetcher.on_epoch_end_reply(EpochEndReply(follower.asked, [("x-1", NONE, -1, 2)]), 10)


def test_the_same_leader_epoch_changes_nothing_and_a_newer_one_begins_anew() -> None:
    follower = Follower({1: 4}, KIP101).follow(5)
    follower.ends(4)
    follower.follow(5)
    assert len(follower.host.sent) == 2
    follower.follow(6)
    follower.brings()
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1)]


# Fetching.


def test_a_fetch_brings_batches_the_high_watermark_and_the_log_start() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.brings(Batch(2, 4, 5, 20), Batch(5, 5, 5, 23), hw=4, start=1)
    replica = follower.replica
    assert (replica.log.leo, replica.hw, replica.log.log_start, replica.epochs.latest) == (6, 4, 1, 5)
    assert follower.fetches_from == 6


def test_a_lower_high_watermark_is_adopted() -> None:
    follower = Follower({1: 3}, HW, hw=3).follow()
    follower.brings(hw=1)
    assert follower.replica.hw == 1


def test_late_answers_are_dropped() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    late = follower.asked
    follower.fetcher.request_failed(late, follower.now_us)
    follower.back_off()
    follower.fetcher.on_fetch_reply(FetchReply(late, [("t-0", NONE, [Batch(2, 2, 5, 9)], 3, 0, 5)]), 20)
    assert follower.replica.log.leo == 2


def test_an_answer_whose_offset_no_longer_fits_is_dropped() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.replica.truncate_to(1)
    follower.brings(Batch(2, 2, 5, 9))
    assert follower.replica.log.leo == 1
    assert follower.fetches_from == 1


@pytest.mark.parametrize(("rule", "leo"), [("offset", 3), ("leader-epoch", 2)])
def test_whether_an_answer_to_an_earlier_epoch_is_taken_is_a_rule(rule: str, leo: int) -> None:
    follower = Follower({1: 2}, HW.override({"late_reply": rule, "fetch_fencing": "leader-epoch"}), hw=2).follow(5)
    assert follower.asked.positions == [("t-0", 2, 5)]
    follower.follow(6)
    follower.brings(Batch(2, 2, 5, 9))
    assert follower.replica.log.leo == leo


def test_what_is_no_longer_followed_takes_nothing() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.fetcher.remove("t-0")
    follower.brings(Batch(2, 2, 5, 9), hw=3)
    assert follower.replica.log.leo == 2
    assert follower.fetcher.in_flight is None


@pytest.mark.parametrize("error", [NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH])
def test_a_passing_error_delays(error: str) -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.brings(error=error)
    assert follower.host.of("wake") == [(10 + BACKOFF_US,)]


def test_a_fenced_partition_is_given_up_until_its_next_leader() -> None:
    follower = Follower({1: 2}, HW.override({"fetch_fencing": "leader-epoch"}), hw=2).follow(5)
    follower.brings(error=FENCED_LEADER_EPOCH)
    assert follower.fetcher.failed == {"t-0"}
    follower.follow(6)
    assert follower.fetcher.failed == set()
    assert follower.asked.positions == [("t-0", 2, 6)]


@pytest.mark.parametrize(
    ("rule", "dead", "failed"), [("thread-dies", True, set()), ("partition-fails", False, {"t-0"})]
)
def test_what_an_append_error_ends_is_a_rule(rule: str, dead: bool, failed: set[str]) -> None:
    follower = Follower({1: 4}, KIP101.override({"append_error": rule}), hw=4).follow()
    follower.ends(4)
    follower.brings(Batch(2, 6, 5, 20), hw=7)
    assert (follower.fetcher.dead, follower.fetcher.failed, follower.replica.hw) == (dead, failed, 4)
    sent = len(follower.host.sent)
    follower.fetcher.step(99)
    assert len(follower.host.sent) == sent


def test_0_10_takes_a_batch_that_begins_below_its_leo() -> None:
    follower = Follower({1: 4}, HW, hw=4).follow()
    follower.brings(Batch(2, 6, 5, 20), hw=7)
    assert follower.replica.log.overlaps()
    assert follower.replica.log.leo == 7


# Out of range.


def out_of_range(rules: Rules, *, unclean: bool = False) -> Follower:
    follower = Follower({1: 4}, rules, hw=4, unclean=unclean).follow()
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    assert follower.asked.timestamp == LATEST
    return follower


def test_a_leader_that_ends_earlier_halts_the_broker() -> None:
    follower = out_of_range(HW)
    follower.lists(2)
    assert follower.host.of("halt") == [("leader's latest offset 2 is less than replica's 4",)]
    assert follower.fetcher.dead


@pytest.mark.parametrize(("rule", "unclean"), [("halts", True), ("truncates", False)])
def test_or_it_truncates_to_the_leaders_end(rule: str, unclean: bool) -> None:
    follower = out_of_range(HW.override({"out_of_range": rule}), unclean=unclean)
    follower.lists(2)
    assert follower.fetches_from == 2
    assert follower.host.of("halt") == []


@pytest.mark.parametrize(("start", "fetched"), [(9, 9), (3, 4)])
def test_a_leader_that_begins_later_means_starting_anew(start: int, fetched: int) -> None:
    follower = out_of_range(HW)
    follower.lists(12)
    assert follower.asked.timestamp == EARLIEST
    follower.lists(start)
    assert follower.fetches_from == fetched
    assert follower.replica.log.log_start == (9 if start == 9 else 0)
    assert follower.host.of("settled")[-1] == (5, fetched)


def test_an_error_while_asking_for_offsets_delays() -> None:
    follower = out_of_range(HW)
    follower.lists(-1, error=NOT_LEADER_OR_FOLLOWER)
    follower.back_off()
    assert follower.asked.timestamp == LATEST
