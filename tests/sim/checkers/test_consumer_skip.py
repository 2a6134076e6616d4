from __future__ import annotations

from sim.checkers.checker import NOT_PROMISED
from sim.checkers.registry import FINDINGS
from sim.history import steps
from sim.history.history import History
from sim.hosts.client import CONSUMER
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import ConsumerSkip
from tests.sim.checkers.histories import kinds, log, tell

FIRST, SECOND, OTHER, LAST = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20), Batch(3, 4, 1, 30), Batch(5, 5, 1, 40)


class Reader:
    """A consumer that is shown batches, from these positions."""

    def __init__(self, *reads: tuple[Batch, int]) -> None:
        self.history = History()
        self.checker = ConsumerSkip(self.history)
        for batch, offset in reads:
            self.read(batch, offset)

    def read(self, batch: Batch, offset: int, consumer: int = CONSUMER) -> None:
        step = steps.Read(consumer, [batch], offset, 0)
        tell(self.history, step, 5)
        if consumer == CONSUMER:
            self.checker.on_read(step)

    def position(self, kind: steps.StepKind, offset: int) -> None:
        self.checker.on_position(steps.Position(kind, CONSUMER, offset))

    def reset(self, offset: int, policy: str) -> None:
        self.checker.on_position(steps.Position(steps.RESET, CONSUMER, offset, policy=policy))


def skipped(reader: Reader, hw: int = 6, start: int = 0) -> set[int]:
    """Records that it skips if it also reads the end of the final log."""
    history = reader.history
    reader.read(LAST, 5)
    reader.checker.check(log(FIRST, OTHER, LAST, start=start), hw, 9)
    assert kinds(history) in ([], ["consumer-skip"])
    return set(history.findings.violations[0].ids) if history.findings.violations else set()


def test_consumer_that_was_shown_everything_skipped_nothing() -> None:
    assert skipped(Reader((FIRST, 0), (OTHER, 3))) == set()
    assert skipped(Reader((Batch(0, 2, 7, 10), 0))) == set()


def test_record_replaced_behind_the_position_is_skipped() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    assert skipped(reader) == {30, 31}
    assert (
        f"consumer {CONSUMER} passed 2 records unseen, the first record 30 at offset 3"
        in reader.history.findings.violations[0].detail
    )


def test_a_gap_that_was_filled_is_skipped() -> None:
    reader = Reader((FIRST, 0), (LAST, 3))
    assert skipped(reader) == {30, 31}


def test_position_inside_a_batch_passes_only_what_follows() -> None:
    assert skipped(Reader((SECOND, 4))) == {31}


def test_another_consumer_does_not_help() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.read(OTHER, 3, 1003)
    assert skipped(reader) == {30, 31}


def test_consumer_that_was_told_skipped_nothing() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.SEEK, 0)
    assert skipped(reader) == set()


def test_records_it_went_back_over_are_ahead_again() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.REWIND, 4)
    assert skipped(reader) == {30}


def test_a_consumer_that_read_no_later_records_has_skipped_none() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == []
    before = Reader((FIRST, 0), (LAST, 5))
    before.position(steps.RESET, 0)
    before.read(SECOND, 3)
    before.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(before.history) == []


def test_batch_that_came_to_its_old_offset_once_more_was_not_read_there() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3), (Batch(5, 5, 0, 40), 5))
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == []
    assert skipped(reader) == {30, 31}


def test_offsets_beyond_the_hw_and_below_the_log_start_are_not_judged() -> None:
    assert skipped(Reader((FIRST, 0), (SECOND, 3)), hw=4) == {30}
    assert skipped(Reader((FIRST, 0), (SECOND, 3)), start=4) == {31}


def test_a_reset_after_a_partition_was_discovered_leaves_all_before_it_behind() -> None:
    late = Reader()
    late.position(steps.DISCOVERY, 0)
    late.reset(3, "latest")
    late.read(LAST, 5)
    late.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(late.history) == ["reset-skip"]
    early = Reader()
    early.position(steps.DISCOVERY, 0)
    early.reset(0, "latest")
    early.read(FIRST, 0)
    early.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(early.history) == []


def test_a_reset_that_leaves_records_behind_is_a_skip_that_nobody_promises() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(5, "latest")
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    (found,) = reader.history.findings.violations
    assert (found.kind, found.ids) == ("reset-skip", {30, 31})
    assert f"a reset (auto.offset.reset=latest) took consumer {CONSUMER} past 2 records unseen" in found.detail
    assert FINDINGS["reset-skip"].promised == NOT_PROMISED


def test_a_reset_over_offsets_that_were_not_reached_leaves_them_behind() -> None:
    reader = Reader((FIRST, 0))
    reader.position(steps.OUT_OF_RANGE, 3)
    reader.reset(5, "latest")
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == ["reset-skip"]


def test_a_reset_to_the_start_that_leaves_records_behind_went_elsewhere() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(5, "earliest")
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == ["consumer-skip"]


def test_what_is_read_after_a_reset_to_the_start_is_not_skipped() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(0, "earliest")
    assert skipped(reader) == set()  # Not yet read again.


def test_a_seek_to_the_own_position_does_not_excuse_a_reset() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.SEEK, 5)
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(5, "latest")
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == ["reset-skip"]


def test_what_a_seek_jumps_over_is_the_choice_of_the_application() -> None:
    reader = Reader((FIRST, 0))
    reader.position(steps.SEEK, 5)
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(5, "latest")
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == []


def test_an_exception_ends_what_was_passed_before() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.OUT_OF_RANGE, 5)  # No reset follows: auto.offset.reset=none.
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == []


def test_a_position_that_goes_back_reads_again_what_a_reset_left_behind() -> None:
    reader = Reader((FIRST, 0), (SECOND, 3))
    reader.position(steps.OUT_OF_RANGE, 5)
    reader.reset(5, "latest")
    reader.position(steps.REWIND, 3)
    reader.checker.check(log(FIRST, OTHER, LAST), 6, 9)
    assert kinds(reader.history) == []
