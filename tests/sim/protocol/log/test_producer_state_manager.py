from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.environment.storage import Storage, StorageSettings
from sim.protocol.batch import NO_SEQUENCE
from sim.protocol.decisions import Decisions
from sim.protocol.log.log import Log
from sim.protocol.log.producer_state_manager import RETAINED, ProducerStateManager, check, latest_batches
from sim.protocol.messages import (
    INVALID_PRODUCER_EPOCH,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    ProduceRequest,
)
from sim.protocol.modes import MODES
from sim.protocol.replica.partition import Partition
from tests.sim.protocol.recording import KIP101, Recorder, decision, partition


def log(*sequences: tuple[int, int, int], count: int = 2) -> Log:
    """Batches of two records, with these sequences."""
    one = Log()
    for place, sequence in enumerate(sequences):
        one.append_new(100 + count * place, count, 0, sequence)
    return one


def test_the_last_five_batches_of_the_latest_epoch_are_known() -> None:
    one = log((1, 0, 0), *((1, 1, 2 * number) for number in range(RETAINED + 1)), (2, 0, 0), NO_SEQUENCE)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == [10, 8, 6, 4, 2]
    assert latest_batches(one, 3) == []
    one.truncate_to(6)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == [2, 0]


@pytest.mark.parametrize(
    ("sequence", "error", "repeats"),
    [
        ((1, 3, 4), NONE, None),
        ((1, 3, 2), NONE, 1),
        ((1, 3, 0), NONE, 0),
        ((1, 3, 1), OUT_OF_ORDER_SEQUENCE_NUMBER, None),
        ((1, 3, 6), OUT_OF_ORDER_SEQUENCE_NUMBER, None),
        ((1, 2, 4), INVALID_PRODUCER_EPOCH, None),
        ((1, 4, 0), NONE, None),
        ((1, 4, 4), OUT_OF_ORDER_SEQUENCE_NUMBER, None),
        ((2, 0, 0), NONE, None),
        ((2, 0, 7), UNKNOWN_PRODUCER_ID, None),
    ],
)
def test_batch_is_appended_repeated_or_refused(sequence: tuple[int, int, int], error: str, repeats: int | None) -> None:
    one = log((1, 3, 0), (1, 3, 2))
    assert check(one, sequence, 2, forgets_deleted=False) == (error, None if repeats is None else one.batches[repeats])


def test_a_repetition_has_the_same_length() -> None:
    assert check(log((1, 0, 0), (1, 0, 2)), (1, 0, 0), 3, forgets_deleted=False) == (OUT_OF_ORDER_SEQUENCE_NUMBER, None)


def test_repetition_beyond_five_batches_is_out_of_order() -> None:
    one = log(*((1, 0, 2 * number) for number in range(6)))
    assert check(one, (1, 0, 2), 2, forgets_deleted=False) == (NONE, one.batches[1])
    assert check(one, (1, 0, 0), 2, forgets_deleted=False) == (OUT_OF_ORDER_SEQUENCE_NUMBER, None)


def test_a_snapshot_has_the_last_batch_of_each_producer() -> None:
    one = log((1, 0, 0), (2, 0, 0), (1, 0, 2), (1, 0, 4))
    one.producers.take_snapshot(6)
    assert check(one, (1, 0, 0), 2, forgets_deleted=False) == (NONE, one.batches[0])
    one.producers.load(0, 8, [0], keeps_all=False)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == [4, 2]
    assert check(one, (1, 0, 0), 2, forgets_deleted=False) == (OUT_OF_ORDER_SEQUENCE_NUMBER, None)
    assert check(one, (2, 0, 0), 2, forgets_deleted=False) == (NONE, one.batches[1])


def test_a_truncation_goes_back_to_a_snapshot_or_to_the_log() -> None:
    one = log(*((1, 0, 2 * number) for number in range(4)))
    one.roll(8)
    one.append_new(0, 2, 0, (1, 0, 8))
    one.truncate_to(8)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == [6]
    one.truncate_to(4)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == [2, 0]


@pytest.mark.parametrize(("rule", "known"), [("rolled", [2, 0]), ("kept", [2])])
def test_rule_decides_whether_a_truncation_takes_a_snapshot(rule: str, known: list[int]) -> None:
    decide = Decisions(KIP101.override({"producer_snapshots": rule}))
    one, _, _ = Storage(StorageSettings(*[1] * 10)).recover(decide, clean=True)
    for sequence in (0, 2, 4):
        one.append_new(0, 2, 0, (1, 0, sequence))
    one.truncate_to(4)
    one.append_new(0, 2, 0)
    one.append_new(0, 2, 0)
    one.truncate_to(6)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == known


def test_deleted_batches_are_known_until_the_log_is_read_again() -> None:
    one = log((1, 0, 0), (2, 0, 0), (1, 0, 2))
    one.advance_start(4)
    assert check(one, (2, 0, 0), 2, forgets_deleted=False) == (NONE, one.below[1])
    one.producers.load(4, 6, [0], keeps_all=False)
    assert latest_batches(one, 2) == []


def leader(host: Recorder, rule: str = "yes") -> Partition:
    one = partition(host, KIP101.override({"producer_dedup": rule}))
    one.become_leader(decision(), 0)
    return one


def send(one: Partition, sequence: int, *, acks: int = -1) -> None:
    one.produce(ProduceRequest(1001, "t-0", 10 + sequence, 1, acks, (1, 0, sequence)), 0)


def test_a_repetition_is_not_appended_and_waits_for_the_hw_like_the_first() -> None:
    host = Recorder()
    one = leader(host)
    for sequence in (0, 1, 0):
        send(one, sequence)
    assert one.log.leo == 2
    assert host.of("answer") == []
    for follower in (2, 3):
        one.follower_fetched(follower, 1, 1, one.leader_epoch, 5)
    assert host.of("answer") == [(10, NONE, 0), (10, NONE, 0)]
    send(one, 0)
    assert host.of("answer")[2:] == [(10, NONE, 0)]


def test_repetition_is_answered_at_once_with_acks_1() -> None:
    host = Recorder()
    one = leader(host)
    for sequence in (0, 1, 1):
        send(one, sequence, acks=1)
    assert host.of("answer") == [(10, NONE, 0), (11, NONE, 1), (11, NONE, 1)]


def test_a_gap_is_refused() -> None:
    host = Recorder()
    one = leader(host)
    send(one, 0)
    send(one, 2)
    assert one.log.leo == 1
    assert host.of("answer") == [(12, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


@pytest.mark.parametrize(
    ("rule", "answers"),
    [
        ("refused", [(15, UNKNOWN_PRODUCER_ID, 0)]),
        ("taken", [(15, NONE, 0)]),
        ("refused-by-empty-log", [(15, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]),
        ("out-of-order", [(15, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]),
    ],
)
def test_rule_decides_what_an_unknown_producer_may_begin_with(rule: str, answers: list[object]) -> None:
    host = Recorder()
    one = partition(host, KIP101.override({"unknown_producer": rule}))
    one.become_leader(decision(), 0)
    send(one, 5, acks=1)
    assert host.of("answer") == answers
    assert f"unknown_producer={rule}" in host.probes


@pytest.mark.parametrize(
    ("rule", "error"),
    [("taken", NONE), ("refused-by-empty-log", NONE), ("out-of-order", OUT_OF_ORDER_SEQUENCE_NUMBER)],
)
def test_rule_decides_how_an_unknown_producer_begins_in_a_log_of_others(rule: str, error: str) -> None:
    """4.5 refuses it only in a log that never held a record (KAFKA-15591)."""
    host = Recorder()
    one = partition(host, KIP101.override({"unknown_producer": rule}))
    one.become_leader(decision(), 0)
    one.append_new(7, 1, 0, (2, 0, 0))
    send(one, 5, acks=1)
    assert host.of("answer") == [(15, error, -1 if error else 1)]
    assert f"unknown_producer={rule}" in host.probes


@pytest.mark.parametrize(
    ("rule", "answer"), [("last", (10, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)), ("five", (10, NONE, 0))]
)
def test_rule_decides_which_batches_a_snapshot_has(rule: str, answer: tuple[int, str, int]) -> None:
    host = Recorder()
    one = partition(host, KIP101.override({"snapshot_batches": rule}))
    for place, sequence in enumerate((0, 1)):
        one.append_new(10 + place, 1, 0, (1, 0, sequence))
    one.log.producers.take_snapshot(2)
    one.log.producers.load(0, 2, [0], keeps_all=True)
    one.become_leader(decision(), 0)
    send(one, 0, acks=1)
    assert host.of("answer") == [answer]
    assert f"snapshot_batches={rule}" in host.probes
    send(one, 1, acks=1)
    assert host.of("answer")[1:] == [(11, NONE, 1)]  # The last batch is known in any case.


@pytest.mark.parametrize(("rule", "error"), [("refused", UNKNOWN_PRODUCER_ID), ("taken", OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_rule_decides_whether_a_producer_outlives_its_records(rule: str, error: str) -> None:
    host = Recorder()
    one = partition(host, KIP101.override({"unknown_producer": rule}))
    one.become_leader(decision(), 0)
    for sequence in (0, 1):
        send(one, sequence, acks=1)
    one.set_hw(2)
    one.advance_log_start(2)
    send(one, 3, acks=1)
    assert host.of("answer")[2:] == [(13, error, 2 if rule == "refused" else -1)]
    assert f"unknown_producer={rule}" in host.probes


def test_what_a_producer_sent_before_it_was_forgotten_is_no_repetition() -> None:
    host = Recorder()
    one = partition(host, KIP101.override({"unknown_producer": "refused"}))
    one.become_leader(decision(), 0)
    send(one, 0, acks=1)
    one.set_hw(1)
    one.advance_log_start(1)
    one.append_new(0, 2, 0, (1, 0, 0))
    assert [batch.base_offset for batch in latest_batches(one.log, 1, forgets_deleted=True)] == [1]
    send(one, 0, acks=1)
    assert host.of("answer")[1:] == [(10, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


@pytest.mark.parametrize(("keeps_all", "known"), [(True, [2]), (False, [2, 0])])
def test_rule_decides_which_snapshots_a_load_leaves(keeps_all: bool, known: list[int]) -> None:
    one = log((1, 0, 0), (1, 0, 2))
    one.producers.take_snapshot(4)
    one.append_new(0, 2, 0, (1, 0, 4))
    one.producers.take_snapshot(6)
    one.producers.load(0, 6, [0], keeps_all=keeps_all)
    one.truncate_to(4)
    assert [batch.base_sequence for batch in latest_batches(one, 1)] == known


@pytest.mark.parametrize(("forgets_deleted", "known"), [(True, []), (False, [0])])
def test_a_snapshot_has_no_producer_that_was_forgotten(forgets_deleted: bool, known: list[int]) -> None:
    one = log((1, 0, 0), NO_SEQUENCE)
    one.advance_start(2)
    one.producers.take_snapshot(4)
    one.log_start = 0  # As after a restart with a checkpoint that is out of date.
    one.set_batches([*one.below, *one.batches])
    one.producers.load(0, 4, [0], keeps_all=False)
    found = latest_batches(one, 1, forgets_deleted=forgets_deleted)
    assert [batch.base_sequence for batch in found] == known


def test_recovery_below_the_first_segment_reads_the_snapshot_at_its_start() -> None:
    one = log((1, 0, 0), NO_SEQUENCE)
    one.producers.take_snapshot(2)
    for checkpoint, snapshots in ((0, [2, 4]), (2, [4])):
        one.producers.recover_segment(checkpoint, 2, 2, 4)
        assert one.producers.snapshots == snapshots


def test_recovery_reads_nothing_below_the_first_segment() -> None:
    one = log((1, 0, 0), NO_SEQUENCE)
    one.producers.recover_segment(1, 2, 2, 4)
    assert one.producers.known_from == 2


def test_truncated_batches_are_forgotten() -> None:
    one = leader(Recorder())
    for sequence in (0, 1, 2):
        send(one, sequence)
    one.truncate_to(2)
    send(one, 2)
    assert one.log.leo == 3


def test_a_leader_knows_what_it_replicated() -> None:
    host = Recorder()
    one = partition(host, MODES["kip320"].rules)
    for batch in log((1, 0, 0), (1, 0, 1), count=1).batches:
        one.append_fetched(batch)
    one.become_leader(decision(epoch=2), 0)
    send(one, 1)
    send(one, 3)
    assert one.log.leo == 2
    assert host.of("answer") == [(13, OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


def test_repetition_is_appended_without_the_rule() -> None:
    one = leader(Recorder(), "no")
    for sequence in (0, 0, 5):
        send(one, sequence)
    assert one.log.leo == 3


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["append", "roll", "truncate", "restart", "start"]), st.integers(0, 6)), max_size=25
)


@given(OPERATIONS)
@example([("append", 6), ("truncate", 2), ("append", 6), ("roll", 0), ("restart", 0)])
def test_doubt_does_not_depend_on_the_snapshots_that_there_are(operations: list[tuple[str, int]]) -> None:
    """Otherwise a run with one value of ``producer_snapshots`` would record other queries than a run with another."""
    states = {(reloads, keeps_all): ProducerStateManager(0) for reloads in (True, False) for keeps_all in (True, False)}
    leo, log_start, segments = 0, 0, [0]
    for operation, amount in operations:
        if operation == "append":
            leo += amount
        elif operation == "roll" and leo > segments[-1]:
            segments.append(leo)
        elif operation == "truncate":
            leo = max(log_start, leo - amount)
            segments = [base for base in segments if base <= leo]
        elif operation == "start":
            log_start = min(leo, log_start + amount)
        for (reloads, keeps_all), state in states.items():
            state.snapshots_reloads = reloads
            if operation == "roll":
                state.take_snapshot(leo)
            elif operation == "truncate":
                state.reload(log_start, leo)
            elif operation == "restart":
                state.load(log_start, leo, segments, keeps_all=keeps_all)
            elif operation == "start":
                state.raise_log_start(log_start)
        assert len({(state.doubt, state.highest_start) for state in states.values()}) == 1


def test_log_that_is_truncated_fully_has_the_producers_that_it_gets_afterwards() -> None:
    """They count although the process had begun without producers, and with a higher LEO."""
    one = log((1, 0, 0))
    one.producers.snapshots.clear()
    one.producers.begin_empty(0, one.leo, one.segments)
    one.truncate_fully(1)
    one.append_new(0, 1, 0, (1, 1, 0))
    one.append_new(0, 1, 0)
    one.truncate_to(2)
    assert check(one, (1, 0, 3), 1, forgets_deleted=False) == (INVALID_PRODUCER_EPOCH, None)


def test_batch_that_repeats_two_is_answered_as_the_older_one() -> None:
    """A producer that was forgotten sent its first sequence again, and the whole log was read since."""
    one = log((1, 0, 0), (1, 0, 0))
    error, original = check(one, (1, 0, 0), 2, forgets_deleted=False)
    assert (error, original) == (NONE, one.batches[0])


def test_truncation_to_the_log_start_forgets_producers_whose_batches_lie_below() -> None:
    """The process had begun without producers, and the only one that sent something since is known from memory."""
    one = log()
    one.producers.begin_empty(0, one.leo, one.segments)
    one.append_new(0, 2, 0, (1, 0, 0))
    one.advance_start(2)
    one.append_new(0, 1, 0)
    assert latest_batches(one, 1)
    one.truncate_to(2)
    assert latest_batches(one, 1) == []
