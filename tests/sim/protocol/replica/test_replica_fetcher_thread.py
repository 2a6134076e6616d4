from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
    AGREES,
    DIVERGING_EPOCH,
    EARLIEST,
    FENCED_LEADER_EPOCH,
    LATEST,
    LOG_TRUNCATION,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    Diverging,
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    OffsetsForLeaderEpochResponse,
)
from sim.protocol.modes import MODES
from sim.protocol.replica.become_follower import restarts_fetcher, stops_fetcher
from sim.protocol.replica.partition_fetch_state import ReplicaState
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from sim.protocol.replica.truncation import truncation_state
from tests.sim.protocol.recording import HW, KIP101, Recorder, decision, filled

if TYPE_CHECKING:
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules

BACKOFF_US = 1_000
KIP279 = KIP101.override({"follower_truncation": "leader-epoch-rounds"})
ON_FETCH = MODES["kraft"].rules


class Follower:
    """A replica with its fetcher, and the leader's answers."""

    def __init__(self, epochs: dict[int, int], rules: Rules, *, hw: int = 0, unclean: bool = False) -> None:
        self.host = Recorder()
        self.replica: Partition = filled(self.host, epochs, rules, hw=hw)
        self.now_us = 10
        decide = self.host.decide
        self.fetcher = ReplicaFetcherThread(2, decide, self.host, backoff_us=BACKOFF_US, unclean_election=unclean)

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
        self.fetcher.on_epoch_end_reply(
            OffsetsForLeaderEpochResponse(self.asked, [("t-0", error, epoch, end)]), self.now_us
        )

    def brings(
        self, *batches: Batch, hw: int = 0, start: int = 0, error: str = NONE, diverging: Diverging = AGREES
    ) -> None:
        """The leader answers a fetch."""
        self.answers(self.asked, *batches, hw=hw, start=start, error=error, diverging=diverging)

    def answers(
        self,
        request: FetchRequest,
        *batches: Batch,
        hw: int = 0,
        start: int = 0,
        error: str = NONE,
        diverging: Diverging = AGREES,
    ) -> None:
        """It answers a certain one."""
        result = ("t-0", error, list(batches), hw, start, 5, diverging)
        self.fetcher.on_fetch_reply(FetchResponse(request, [result]), self.now_us)

    def lists(self, offset: int, error: str = NONE) -> None:
        """The leader answers ListOffsets."""
        self.fetcher.on_list_offsets_reply(ListOffsetsResponse(self.asked, error, offset, 5), self.now_us)

    @property
    def fetches_from(self) -> int | None:
        """Offset of the latest request, if that is a fetch."""
        return self.asked.positions[0][1] if isinstance(self.asked, FetchRequest) else None


# Truncation.


def test_hw_truncates_to_its_high_watermark_before_it_asks_anybody() -> None:
    follower = Follower({1: 4}, HW, hw=2).follow()
    assert follower.host.calls == [("truncated", 2, 2), ("settled", 5, 2, 0)]
    assert follower.fetches_from == 2


def test_kip101_asks_where_its_latest_epoch_ended_and_truncates_to_that() -> None:
    follower = Follower({1: 4, 3: 4}, KIP101, hw=2).follow()
    assert follower.asked.asks == [("t-0", NO_EPOCH, 3)]
    assert not follower.asked.with_epoch
    assert follower.replica.log.leo == 8
    follower.ends(6)
    assert follower.host.of("settled") == [(5, 6, 1)]
    assert follower.fetches_from == 6


def test_an_answer_beyond_the_leo_removes_nothing() -> None:
    follower = Follower({1: 4}, KIP101).follow()
    follower.ends(9)
    assert follower.fetches_from == 4


@pytest.mark.parametrize("error", [NONE, UNSUPPORTED_VERSION])
def test_follower_without_an_answer_falls_back_to_its_high_watermark(error: str) -> None:
    follower = Follower({1: 4}, KIP101, hw=3).follow()
    follower.ends(-1, error=error)
    assert follower.fetches_from == 3


def test_without_a_second_answer_a_follower_keeps_the_first_round() -> None:
    """AbstractFetcherThread.getOffsetTruncationState: UNDEFINED is the fetch offset, which is the HW in the first."""
    follower = Follower({1: 4, 3: 4}, KIP279, hw=1).follow()
    follower.ends(6, epoch=2)
    follower.ends(-1)
    assert follower.replica.log.leo == 4
    assert follower.fetches_from == 4
    assert follower.host.of("settled") == [(5, 4, 2)]


def test_the_text_of_kip_279_falls_back_to_the_hw_in_any_round() -> None:
    follower = Follower({1: 4, 3: 4}, KIP279.override({"epoch_request_error": "high-watermark"}), hw=1).follow()
    follower.ends(6, epoch=2)
    follower.ends(-1, error=NOT_LEADER_OR_FOLLOWER)
    assert follower.fetches_from == 1


def test_follower_without_epochs_truncates_to_its_high_watermark_unasked() -> None:
    follower = Follower({}, KIP101).follow()
    assert follower.fetches_from == 0
    assert follower.host.of("settled") == [(5, 0, 0)]


@pytest.mark.parametrize("error", [NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, None])
def test_the_text_of_kip_279_falls_back_to_the_hw_after_any_error(error: str | None) -> None:
    follower = Follower({1: 4}, KIP279.override({"epoch_request_error": "high-watermark"}), hw=3).follow()
    if error is None:
        follower.fetcher.request_failed(follower.asked, follower.now_us)
        follower.back_off()
    else:
        follower.ends(-1, error=error)
    assert follower.fetches_from == 3
    assert follower.host.of("settled") == [(5, 3, 0)]


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
    assert follower.host.of("settled") == [(5, 3, 2)]


def test_others_are_fetched_between_two_rounds_of_a_truncation() -> None:
    """AbstractFetcherThread.doWork: maybeTruncate, then maybeFetch."""
    follower = Follower({1: 4, 3: 4, 4: 4}, KIP279)
    other = filled(follower.host, {1: 2}, KIP279, name="t-1")
    follower.follow()
    follower.fetcher.add(other, 5, 0)
    reply = follower.fetcher.on_epoch_end_reply
    reply(OffsetsForLeaderEpochResponse(follower.asked, [("t-0", NONE, 2, 6)]), follower.now_us)
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1), ("t-1", NO_EPOCH, 1)]  # The other was added meanwhile.
    reply(OffsetsForLeaderEpochResponse(follower.asked, [("t-0", NONE, 0, 6), ("t-1", NONE, 1, 2)]), follower.now_us)
    fetch = follower.asked
    assert [position[0] for position in fetch.positions] == ["t-0", "t-1"]
    follower.fetcher.remove("t-0")
    follower.fetcher.add(filled(follower.host, {1: 4, 3: 4, 4: 4}, KIP279), 6, 0)
    empty = [(name, NONE, (), 0, 0, 5, None) for name in ("t-0", "t-1")]
    follower.fetcher.on_fetch_reply(FetchResponse(fetch, empty), follower.now_us)
    assert follower.asked.asks == [("t-0", NO_EPOCH, 4)]
    reply(OffsetsForLeaderEpochResponse(follower.asked, [("t-0", NONE, 2, 6)]), follower.now_us)
    fetch = follower.asked
    assert [position[0] for position in fetch.positions] == ["t-1"]  # Before the next round.
    follower.fetcher.on_fetch_reply(FetchResponse(fetch, empty[1:]), follower.now_us)
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1)]


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
def test_answer_about_an_epoch_means_an_offset(reply: tuple[int, int], expected: tuple[int, bool]) -> None:
    epochs = Follower({1: 4, 3: 8}, KIP279).replica.epochs
    assert truncation_state(epochs, 12, 5, *reply) == expected


def test_an_answer_for_a_stranger_is_an_error() -> None:
    follower = Follower({1: 4}, KIP101).follow()
    with pytest.raises(ValueError, match="'x-1'"):
        follower.fetcher.on_epoch_end_reply(OffsetsForLeaderEpochResponse(follower.asked, [("x-1", NONE, -1, 2)]), 10)


def test_an_equal_leader_epoch_changes_nothing_and_a_newer_one_restarts() -> None:
    follower = Follower({1: 4}, KIP101).follow(5)
    follower.ends(4)
    follower.follow(5)
    assert len(follower.host.sent) == 2
    follower.follow(6)
    follower.brings()
    assert follower.asked.asks == [("t-0", NO_EPOCH, 1)]


def test_delayed_truncation_keeps_the_log_until_records_arrive() -> None:
    follower = Follower({1: 4}, HW.override({"follower_truncation": "high-watermark-delayed"}), hw=2).follow()
    assert (follower.fetches_from, follower.host.calls) == (2, [])
    follower.brings(error=NOT_LEADER_OR_FOLLOWER)
    assert follower.replica.log.leo == 4
    follower.back_off()
    follower.brings(Batch(2, 2, 5, 20), hw=2)
    assert follower.host.of("truncated") == [(2, 2)]
    assert follower.host.of("settled") == [(5, 2, 0)]
    assert (follower.replica.log.leo, follower.replica.log.batches[-1].first_id) == (3, 20)
    assert follower.fetches_from == 3


def test_delayed_truncation_happens_if_the_leader_ends_at_the_hw() -> None:
    follower = Follower({1: 4}, HW.override({"follower_truncation": "high-watermark-delayed"}), hw=2).follow()
    follower.brings(hw=1)
    assert (follower.replica.log.leo, follower.replica.hw) == (2, 1)


def test_delayed_truncation_uses_the_leaders_end_before_the_hw() -> None:
    rules = HW.override({"follower_truncation": "high-watermark-delayed", "out_of_range": "truncates"})
    follower = Follower({1: 4}, rules, hw=3).follow()
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    follower.lists(1)
    assert follower.fetches_from == 1


@pytest.mark.parametrize(("rule", "carried"), [("no", NO_EPOCH), ("yes", 5)])
def test_rule_decides_whether_questions_carry_the_leader_epoch(rule: str, carried: int) -> None:
    follower = Follower({1: 4}, KIP101.override({"truncation_fencing": rule})).follow()
    assert follower.asked.asks == [("t-0", carried, 1)]
    assert follower.asked.leader_epochs == [5]
    follower.ends(4)
    assert follower.asked.positions == [("t-0", 4, NO_EPOCH, NO_EPOCH)]


@pytest.mark.parametrize(("rule", "leo"), [("offset", 2), ("truncation-epoch", 4), ("leader-epoch", 4)])
def test_rule_decides_whether_a_late_response_truncates(rule: str, leo: int) -> None:
    follower = Follower({1: 4}, KIP101.override({"late_reply": rule})).follow(5)
    follower.follow(6)
    follower.ends(2)
    assert follower.replica.log.leo == leo


@pytest.mark.parametrize(
    ("rule", "restarts"),
    [
        ("leader-id-changed", [True, False, False, False]),
        ("epoch-missed", [True, False, False, True]),
        ("newer-epoch", [True, False, True, True]),
    ],
)
def test_rule_decides_which_decisions_restart_the_fetcher(rule: str, restarts: list[bool]) -> None:
    rules = HW.override({"fetcher_restart": rule})
    cases = [(3, decision(2, 6)), (2, decision(2, 5)), (2, decision(2, 6)), (2, decision(2, 7))]
    assert [restarts_fetcher(Decisions(rules), leader, 5, newer) for leader, newer in cases] == restarts


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
    follower.fetcher.on_fetch_reply(FetchResponse(late, [("t-0", NONE, [Batch(2, 2, 5, 9)], 3, 0, 5, AGREES)]), 20)
    assert follower.replica.log.leo == 2


def test_an_answer_whose_offset_no_longer_fits_is_dropped() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.replica.truncate_to(1)
    follower.brings(Batch(2, 2, 5, 9))
    assert follower.replica.log.leo == 1
    assert follower.fetches_from == 1


@pytest.mark.parametrize(("rule", "leo"), [("offset", 3), ("truncation-epoch", 3), ("leader-epoch", 2)])
def test_rule_decides_whether_an_answer_to_an_earlier_epoch_is_taken(rule: str, leo: int) -> None:
    follower = Follower({1: 2}, HW.override({"late_reply": rule, "fetch_fencing": "leader-epoch"}), hw=2).follow(5)
    assert follower.asked.positions == [("t-0", 2, 5, NO_EPOCH)]
    follower.follow(6)
    follower.brings(Batch(2, 2, 5, 9))
    assert follower.replica.log.leo == leo


def test_partition_that_is_no_longer_followed_takes_nothing() -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.fetcher.remove("t-0")
    follower.brings(Batch(2, 2, 5, 9), hw=3)
    assert follower.replica.log.leo == 2
    assert follower.fetcher.in_flight is None


@pytest.mark.parametrize("error", [NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION])
def test_a_passing_error_delays(error: str) -> None:
    follower = Follower({1: 2}, HW, hw=2).follow()
    follower.brings(error=error)
    assert follower.host.of("wake") == [(10 + BACKOFF_US,)]


@pytest.mark.parametrize(("rule", "followed", "failed"), [("removed", False, set()), ("failed", False, {"t-0"})])
def test_a_fenced_partition_waits_for_its_next_leader(rule: str, followed: bool, failed: set[str]) -> None:
    rules = HW.override({"fetch_fencing": "leader-epoch", "fenced_fetcher": rule, "session_epoch": "every-fetch"})
    follower = Follower({1: 2}, rules, hw=2).follow(5)
    follower.brings(error=FENCED_LEADER_EPOCH)
    assert ("t-0" in follower.fetcher.partitions, follower.fetcher.failed) == (followed, failed)
    follower.follow(6)
    assert follower.fetcher.failed == set()
    assert follower.asked.positions == [("t-0", 2, 6, NO_EPOCH)]


def test_the_text_of_kip_320_retries_when_fenced() -> None:
    rules = HW.override({"fetch_fencing": "leader-epoch", "fenced_fetcher": "retries"})
    follower = Follower({1: 2}, rules, hw=2).follow(5)
    follower.brings(error=FENCED_LEADER_EPOCH)
    follower.back_off()
    assert follower.fetches_from == 2


@pytest.mark.parametrize(("rule", "later"), [("first-fetch", NO_EPOCH), ("every-fetch", 5)])
def test_rule_decides_which_fetches_of_a_session_carry_the_leader_epoch(rule: str, later: int) -> None:
    rules = HW.override({"fetch_fencing": "leader-epoch", "session_epoch": rule})
    follower = Follower({1: 2}, rules, hw=2).follow(5)
    carried = [follower.asked.positions[0][2]]
    for error in (NONE, NOT_LEADER_OR_FOLLOWER):
        follower.brings(error=error)
        if error:
            follower.back_off()
        carried.append(follower.asked.positions[0][2])
    follower.fetcher.request_failed(follower.asked, follower.now_us)
    follower.back_off()
    assert [*carried, follower.asked.positions[0][2]] == [5, later, later, 5]


def test_the_first_draft_of_kip_320_sends_the_last_records_epoch() -> None:
    follower = Follower({1: 2, 3: 1}, KIP279.override({"fetch_fencing": "last-epoch"}), hw=3).follow(5)
    follower.ends(3, epoch=3)
    assert follower.asked.positions == [("t-0", 3, NO_EPOCH, 3)]
    follower.replica.set_hw(1)
    follower.brings(error=LOG_TRUNCATION)
    assert follower.asked.asks == [("t-0", NO_EPOCH, 3)]
    follower.ends(-1)
    assert follower.asked.positions == [("t-0", 1, NO_EPOCH, 1)]


@pytest.mark.parametrize(
    ("rule", "dead", "failed"), [("thread-dies", True, set()), ("partition-fails", False, {"t-0"})]
)
def test_rule_decides_what_an_append_error_ends(rule: str, dead: bool, failed: set[str]) -> None:
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


@pytest.mark.parametrize(
    ("rule", "dead", "failed"), [("thread-dies", True, set()), ("partition-fails", False, {"t-0"})]
)
@pytest.mark.parametrize("epochs", [{1: 4}, {}])
def test_truncation_that_fails_ends_what_an_append_error_ends(
    epochs: dict[int, int], rule: str, dead: bool, failed: set[str]
) -> None:
    follower = Follower(epochs, KIP101.override({"append_error": rule}), hw=2)
    with patch.object(Replica, "truncate_to", side_effect=OSError):
        follower.follow()
        if epochs:
            follower.ends(1)
    assert (follower.fetcher.dead, follower.fetcher.failed) == (dead, failed)
    assert follower.host.of("settled") == []


# Truncation on fetch.


def test_a_follower_fetches_at_its_leo_with_its_latest_epoch() -> None:
    follower = Follower({1: 2, 3: 2}, ON_FETCH, hw=1).follow()
    assert follower.asked.positions == [("t-0", 4, 5, 3)]
    assert follower.host.calls == []
    follower.brings(Batch(4, 4, 5, 40), hw=2)
    assert follower.host.of("settled") == [(5, 4, 0)]
    assert follower.asked.positions == [("t-0", 5, 5, 5)]


def test_the_epoch_of_an_election_that_wrote_nothing_is_the_last_one_too() -> None:
    follower = Follower({1: 2}, ON_FETCH)
    follower.replica.epochs.assign(4, 2)
    follower.follow()
    assert follower.asked.positions == [("t-0", 2, 5, 4)]
    follower.brings(diverging=(1, 3))
    assert follower.host.of("truncated") == [(2, 0)]
    assert follower.asked.positions == [("t-0", 2, 5, 1)]


def test_a_diverging_answer_truncates_and_its_high_watermark_is_ignored() -> None:
    follower = Follower({1: 2, 3: 2}, ON_FETCH, hw=1).follow()
    follower.brings(hw=4, diverging=(3, 3))
    assert (follower.replica.log.leo, follower.replica.hw) == (3, 1)
    assert follower.host.of("settled") == []
    assert follower.asked.positions == [("t-0", 3, 5, 3)]
    follower.brings(hw=2)
    assert follower.replica.hw == 2
    assert follower.host.of("settled") == [(5, 3, 1)]


def test_a_session_tells_no_high_watermark_twice() -> None:
    follower = Follower({1: 2, 3: 2}, ON_FETCH, hw=1).follow()
    follower.brings(hw=2, diverging=(3, 3))
    follower.brings(hw=2)
    assert (follower.replica.hw, follower.host.of("settled")) == (1, [(5, 3, 1)])
    follower.brings(hw=3)
    assert follower.replica.hw == 3


def test_a_high_watermark_that_came_too_late_is_not_told_again() -> None:
    follower = Follower({1: 4}, ON_FETCH.override({"late_reply": "leader-epoch"}), hw=1).follow()
    late = follower.asked
    follower.follow(6)
    follower.answers(late, hw=2)
    follower.brings(hw=2)
    assert follower.replica.hw == 1
    follower.brings(hw=2, start=1)
    assert (follower.replica.hw, follower.replica.log.log_start) == (2, 1)


@pytest.mark.parametrize("how", ["connection", "error", "forgotten"])
def test_a_high_watermark_is_told_again(how: str) -> None:
    follower = Follower({1: 2, 3: 2}, ON_FETCH, hw=1).follow()
    follower.brings(hw=2, diverging=(3, 3))
    match how:
        case "connection":
            follower.fetcher.request_failed(follower.asked, follower.now_us)
            follower.back_off()
        case "error":
            follower.brings(hw=2, error="NOT_LEADER_OR_FOLLOWER")
            follower.back_off()
        case _:
            follower.fetcher.remove("t-0")
            follower.brings(hw=2)
            follower.follow(6)
    follower.brings(hw=2)
    assert follower.replica.hw == 2


def test_follower_looks_back_by_fetching() -> None:
    follower = Follower({1: 4, 3: 2, 4: 2}, ON_FETCH).follow()
    follower.brings(diverging=(2, 5))
    assert follower.asked.positions == [("t-0", 4, 5, 1)]
    follower.brings(diverging=(1, 3))
    assert follower.asked.positions == [("t-0", 3, 5, 1)]
    follower.brings()
    assert follower.host.of("settled") == [(5, 3, 2)]


def test_a_log_without_epochs_is_cut_at_its_high_watermark_unasked() -> None:
    follower = Follower({}, ON_FETCH).follow()
    assert follower.asked.positions == [("t-0", 0, 5, NO_EPOCH)]
    assert follower.host.of("settled") == [(5, 0, 0)]


def test_a_diverging_answer_is_taken_whenever_it_comes() -> None:
    follower = Follower({1: 4}, ON_FETCH, hw=4).follow()
    follower.brings(hw=4)
    follower.brings(diverging=(1, 2))
    assert (follower.replica.log.leo, follower.replica.hw) == (2, 2)
    assert follower.host.of("settled") == [(5, 4, 0)]
    follower.brings()
    assert follower.host.of("settled") == [(5, 4, 0), (5, 2, 1)]


@pytest.mark.parametrize(("rule", "leo"), [("truncation-epoch", 2), ("leader-epoch", 4)])
def test_a_late_diverging_response_truncates_without_epoch_comparison(rule: str, leo: int) -> None:
    # KAFKA-18991. The leader that was asked under epoch 5 leads again under 7, and has what this follower has by then.
    follower = Follower({1: 4}, ON_FETCH.override({"late_reply": rule}), hw=4).follow(5)
    late = follower.asked
    follower.fetcher.remove("t-0")
    follower.follow(7)
    assert follower.asked is late
    follower.answers(late, diverging=(1, 2))
    assert (follower.replica.log.leo, follower.replica.hw) == (leo, leo)
    assert follower.asked.positions == [("t-0", leo, 7, 1)]
    assert "late-reply" in follower.host.probes


@pytest.mark.parametrize(("rule", "leo"), [("truncation-epoch", 3), ("leader-epoch", 2)])
def test_a_late_answer_completes_no_truncation(rule: str, leo: int) -> None:
    follower = Follower({1: 2}, ON_FETCH.override({"late_reply": rule})).follow(5)
    late = follower.asked
    follower.follow(7)
    follower.answers(late, Batch(2, 2, 5, 9))
    assert follower.replica.log.leo == leo
    assert follower.host.of("settled") == []
    follower.brings()
    assert follower.host.of("settled") == [(7, leo, 0)]


def test_a_leader_that_compares_no_epochs_is_asked_where_they_end() -> None:
    follower = Follower({1: 4}, ON_FETCH, hw=1).follow()
    follower.brings(Batch(4, 4, 5, 40), diverging=None)
    assert follower.asked.asks == [("t-0", 5, 1)]
    follower.ends(2, 1)
    assert follower.host.of("settled") == [(5, 2, 1)]
    follower.brings(Batch(2, 2, 5, 40), diverging=None)
    assert follower.fetches_from == 3


@pytest.mark.parametrize(("latest", "earliest", "leo"), [(2, None, 2), (6, 5, 5), (6, 0, 4)])
def test_log_that_was_out_of_range_is_compared_next(latest: int, earliest: int | None, leo: int) -> None:
    follower = Follower({1: 4}, ON_FETCH).follow()
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    follower.lists(latest)
    if earliest is not None:
        follower.lists(earliest)
    assert follower.asked.positions == [("t-0", leo, 5, 1 if leo < 5 else NO_EPOCH)]
    assert follower.host.of("settled") == []
    follower.brings()
    assert follower.host.of("settled") == [(5, leo, 0)]


def test_a_truncation_that_changes_nothing_is_not_repeated_at_once() -> None:
    follower = Follower({1: 2}, ON_FETCH.override({"truncate_at_leo": "keeps-epochs"}))
    follower.replica.epochs.assign(4, 2)
    follower.follow()
    for _ in range(2):
        follower.brings(diverging=(1, 3))
        assert follower.host.of("settled") == []
        follower.back_off()
        assert follower.asked.positions == [("t-0", 2, 5, 4)]


def test_only_a_fetch_that_was_agreed_with_goes_round() -> None:
    follower = Follower({1: 2}, ON_FETCH, hw=2).follow()
    follower.brings(diverging=(1, 1))
    assert not follower.fetcher.would_repeat(follower.asked, 0, 0)
    follower.brings(hw=1)
    assert follower.fetcher.would_repeat(follower.asked, 0, 0)


@pytest.mark.parametrize(
    ("leader", "isr", "shutting_down", "stops"),
    [(0, (1, 2), False, True), (2, (2,), False, False), (2, (1, 2), True, False), (2, (2,), True, True)],
)
def test_fetcher_stops_when(leader: int, isr: tuple[int, ...], *, shutting_down: bool, stops: bool) -> None:
    assert stops_fetcher(1, decision(leader, isr=isr), shutting_down=shutting_down) == stops


class History:
    """Three logs as elections and replication leave them: one record per offset, epochs never reused."""

    def __init__(self) -> None:
        self.epoch = 0
        self.leader = 0
        self.replicas = [filled(Recorder(), {}, ON_FETCH) for _ in range(3)]

    def elect(self, leader: int, records: int) -> None:
        self.epoch += 1
        self.leader = leader
        replica = self.replicas[leader]
        replica.epochs.assign(self.epoch, replica.log.leo)
        for _ in range(records):
            replica.append_new(100 * self.epoch + replica.log.leo, 1, self.epoch)

    def follow(self, follower: int, records: int) -> None:
        """Truncate to what both have, then fetch so many records."""
        leader, replica = self.replicas[self.leader], self.replicas[follower]
        if leader is replica:
            return
        replica.truncate_to(self.agreed(follower))
        for batch in leader.log.batches[replica.log.leo :][:records]:
            replica.append_fetched(batch)

    def agreed(self, follower: int) -> int:
        """How far a log is like the leader's."""
        pairs = zip(self.replicas[self.leader].log.batches, self.replicas[follower].log.batches, strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 3)), max_size=16)


@given(STEPS, st.integers(0, 2), st.integers(0, 2), st.integers(1, 3))
def test_a_follower_ends_with_its_leaders_log_and_keeps_the_shared_part(
    steps: list[tuple[bool, int, int]], leader: int, other: int, size: int
) -> None:
    history = History()
    for elects, broker, records in steps:
        (history.elect if elects else history.follow)(broker, records)
    history.elect(leader, 1)
    follower = (leader + 1 + other % 2) % 3
    common = history.agreed(follower)
    lead, replica = history.replicas[leader], history.replicas[follower]
    lead.is_leader, lead.leader_epoch = True, history.epoch
    host = Recorder()
    replica.host = replica.process = host
    fetcher = ReplicaFetcherThread(2, Decisions(ON_FETCH), host, backoff_us=BACKOFF_US)
    fetcher.add(replica, history.epoch, 0)
    for _ in range(40):
        request = host.sent[-1]
        ((name, offset, epoch, last),) = request.positions
        assert (epoch, last) == (history.epoch, replica.epochs.epochs[-1] if replica.epochs.epochs else NO_EPOCH)
        error = lead.check_fetch(offset, epoch, last)
        diverging = lead.diverging(last) if error == DIVERGING_EPOCH else AGREES
        assert error in (NONE, DIVERGING_EPOCH)
        batches = [] if error else lead.read_uncommitted(offset)[:size]
        fetcher.on_fetch_reply(FetchResponse(request, [(name, NONE, batches, 0, 0, epoch, diverging)]), 0)
        if host.of("settled"):
            # What completes truncation: up to where it was fetched from both logs are one.
            ((_, settled, _),) = host.of("settled")
            assert replica.log.batches[:settled] == lead.log.batches[:settled]
    assert replica.log.batches == lead.log.batches
    assert replica.epochs.entries == lead.epochs.entries
    assert min((leo for leo, _ in host.of("truncated")), default=common) >= common


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
def test_out_of_range_follower_truncates_to_the_leaders_end(rule: str, unclean: bool) -> None:
    follower = out_of_range(HW.override({"out_of_range": rule}), unclean=unclean)
    follower.lists(2)
    assert follower.fetches_from == 2
    assert follower.host.of("halt") == []


def test_each_truncation_has_rounds_of_its_own() -> None:
    follower = Follower({1: 4}, KIP101.override({"out_of_range": "truncates"})).follow()
    follower.ends(4)
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    follower.lists(2)
    assert follower.host.of("settled") == [(5, 4, 1), (5, 2, 0)]


@pytest.mark.parametrize(("start", "fetched"), [(9, 9), (3, 4)])
def test_a_leader_that_begins_later_means_starting_anew(start: int, fetched: int) -> None:
    follower = out_of_range(HW)
    follower.lists(12)
    assert follower.asked.timestamp == EARLIEST
    follower.lists(start)
    assert follower.fetches_from == fetched
    assert follower.replica.log.log_start == (9 if start == 9 else 0)
    assert follower.host.of("settled")[-1] == (5, fetched, 0)


def test_offsets_are_asked_for_before_anything_else_is_truncated() -> None:
    follower, other = Follower({1: 2}, ON_FETCH), Follower({}, ON_FETCH)
    other.replica.name = "t-1"
    follower.fetcher.add(other.replica, 5, 0)
    first = follower.asked
    assert [position[0] for position in first.positions] == ["t-1"]
    follower.follow()
    follower.fetcher.remove("t-1")
    follower.fetcher.on_fetch_reply(FetchResponse(first, [("t-1", NONE, [], 0, 0, 5, AGREES)]), 0)
    follower.fetcher.add(other.replica, 6, 0)
    assert follower.fetcher.partitions["t-1"].state is ReplicaState.TRUNCATING
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    assert follower.asked.timestamp == LATEST
    assert follower.fetcher.partitions["t-1"].state is ReplicaState.TRUNCATING
    follower.lists(4)
    follower.lists(0)
    assert [position[0] for position in follower.asked.positions] == ["t-0", "t-1"]


def test_after_an_error_while_asking_for_offsets_it_fetches_again() -> None:
    follower = out_of_range(HW)
    follower.lists(-1, error=NOT_LEADER_OR_FOLLOWER)
    follower.back_off()
    assert follower.fetches_from == 4
