from __future__ import annotations

import pytest

from sim.protocol.batch import Batch
from sim.protocol.log.log import UnexpectedAppendOffsetError
from sim.protocol.replica.replica import Replica
from tests.sim.protocol.recording import HW, KIP101, Recorder, filled, partition


def test_a_high_watermark_from_a_file_is_brought_within_the_log() -> None:
    assert partition(Recorder(), hw=7).hw == 0


def test_truncation_takes_the_high_watermark_and_the_epochs_along() -> None:
    host = Recorder()
    one = filled(host, {0: 3, 2: 3}, hw=5)
    one.truncate_to(2)
    assert host.calls == [("truncated", 2, 4), ("hw", 5, 2)]
    assert one.epochs.entries == [(0, 0)]


@pytest.mark.parametrize(("rule", "left"), [("keeps-epochs", [(0, 0), (3, 2)]), ("drops-epochs", [(0, 0)])])
def test_truncation_to_the_leo_removes_no_data_and_perhaps_an_epoch(rule: str, left: list[tuple[int, int]]) -> None:
    host = Recorder()
    one = filled(host, {0: 2}, KIP101.override({"truncate_at_leo": rule}))
    one.epochs.assign(3, 2)
    one.truncate_to(5)
    assert host.calls == [("truncated", 2, 0)]
    assert one.epochs.entries == left


def test_a_full_truncation_begins_anew_at_its_offset() -> None:
    host = Recorder()
    one = filled(host, {0: 2}, hw=1)
    one.truncate_fully(9)
    assert (one.hw, one.log.log_start, one.log.leo, one.epochs.entries) == (9, 9, 9, [])


def test_a_leaders_hw_is_adopted_up_or_down_within_the_log() -> None:
    host = Recorder()
    one = filled(host, {0: 4}, hw=3)
    assert not one.set_hw(3)
    assert one.set_hw(1)
    assert one.set_hw(9)
    assert host.of("hw") == [(3, 1), (1, 4)]


def test_the_log_start_moves_no_further_than_the_high_watermark() -> None:
    host = Recorder()
    one = filled(host, {0: 4}, hw=2)
    one.advance_log_start(3)
    one.advance_log_start(1)
    assert host.calls == [("log-start", 2)]
    assert one.epochs.entries == [(0, 2)]


def test_hw_and_log_start_of_one_response_are_taken_together() -> None:
    class Watching(Recorder):
        def hw_moved(self, replica: Replica, previous: int) -> None:
            super().hw_moved(replica, previous)
            self.calls.append(("starts", replica.log.log_start))

    host = Watching()
    one = filled(host, {0: 4}, hw=1)
    one.apply_leader_offsets(3, 4)
    assert host.calls == [("hw", 1, 3), ("starts", 3), ("log-start", 3)]
    host.calls.clear()
    one.apply_leader_offsets(3, 2)
    assert host.calls == []


def test_a_first_batch_that_straddles_the_start_begins_the_log_anew() -> None:
    one = filled(Recorder(), {0: 4}, KIP101, hw=4)
    one.truncate_fully(5)
    one.append_fetched(Batch(3, 7, 7, 90))
    assert (one.log.log_start, one.log.leo, one.hw, one.epochs.entries) == (3, 8, 3, [(7, 3)])
    one.truncate_to(4)  # Empty, but its start is not its end.
    with pytest.raises(UnexpectedAppendOffsetError):
        one.append_fetched(Batch(3, 7, 8, 90))


def test_a_batch_that_is_refused_leaves_no_epoch_behind() -> None:
    one = filled(Recorder(), {0: 4}, KIP101)
    with pytest.raises(UnexpectedAppendOffsetError):
        one.append_fetched(Batch(2, 5, 7, 90))
    assert one.epochs.latest == 0
    before = filled(Recorder(), {0: 4}, HW)
    before.append_fetched(Batch(2, 5, 7, 90))
    assert before.log.overlaps()
