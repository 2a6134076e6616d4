from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.config import NEVER, resolve
from sim.environment.storage import LogDirectory, PeriodicFile, RecoveryError, Storage
from sim.hosts.settings import broker_settings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.producer_state_manager import latest_batches
from sim.protocol.messages import NO_BROKER_EPOCH
from sim.protocol.modes import MODES
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica

if TYPE_CHECKING:
    from sim.config import Value
    from sim.protocol.rules import Rules

KIP101 = MODES["kip101"].rules
KRAFT = MODES["kraft"].rules
SECOND_US = 1_000_000
DURABLE_AFTER_US = 35 * SECOND_US
"""Write-back is due after 30 s and runs every 5 s."""


class Machine(PartitionHost):
    """A machine with one process on it at a time; does with storage what a broker does."""

    def __init__(self, rules: Rules = KIP101, **config: Value) -> None:
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.directory = LogDirectory(broker_settings(resolve(keys)).storage, ("t-0",))
        self.decide = Decisions(rules)
        self.now_us = 0
        self.next_id = 0
        self.epoch = 0
        self.start()

    @property
    def storage(self) -> Storage:
        return self.directory.storages["t-0"]

    def start(self) -> None:
        log, epochs, hw = self.storage.recover(self.decide, clean=self.directory.take_marker())
        self.replica = Replica("t-0", log, epochs, hw, self.decide, self)
        self.storage.log_manager_started(self.now_us)
        self.storage.begin_hw_checkpoints(self.now_us, self.now_us)

    # The replica's host.

    def appended(self, replica: Replica, batch: Batch) -> None:
        self.storage.appended(batch, self.now_us)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        self.storage.truncated(self.now_us)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        self.storage.hw_file.catch_up(previous, self.now_us)

    def log_start_moved(self, replica: Replica) -> None:
        self.storage.log_start_moved(self.now_us, written=self.decide.writes_log_start_at_once.yes())

    def reached(self, probe: int) -> None:
        pass

    # What happens.

    def write(self, count: int = 1, seconds: float = 1) -> None:
        self.replica.append_new(self.next_id, count, self.epoch)
        self.next_id += count
        self.wait(seconds)

    def wait(self, seconds: float) -> None:
        self.now_us += int(seconds * SECOND_US)

    def kill(self) -> None:
        self.storage.process_ended(self.replica.hw, self.now_us)

    def lose_power(self) -> list[Batch]:
        self.kill()
        return self.storage.power_lost(self.now_us)

    def shut_down(self) -> None:
        self.kill()
        self.storage.close_cleanly(self.replica.hw)
        self.directory.mark_clean()

    @property
    def bases(self) -> list[int]:
        return [batch.base_offset for batch in self.replica.log.batches]


# Page cache and disk.


def test_the_page_cache_survives_a_kill_and_not_a_power_loss() -> None:
    machine = Machine()
    for _ in range(3):
        machine.write()
    machine.kill()
    machine.start()
    assert machine.bases == [0, 1, 2]
    assert [batch.base_offset for batch in machine.lose_power()] == [0, 1, 2]
    machine.start()
    assert (machine.bases, machine.replica.log.leo) == ([], 0)


def test_write_back_saves_what_has_been_dirty_for_long() -> None:
    machine = Machine()
    machine.write(seconds=DURABLE_AFTER_US / SECOND_US)
    machine.write(seconds=29)
    assert [batch.base_offset for batch in machine.lose_power()] == [1]


@pytest.mark.parametrize(("interval", "lost"), [(1, []), (2, [6]), (5, [5, 6]), (NEVER, [0, 2, 4, 5, 6])])
def test_flushes_save_what_was_written_before(interval: int, lost: list[int]) -> None:
    machine = Machine(log_flush_interval_messages=interval)
    for count in (2, 2, 1, 1, 1):
        machine.write(count)
    assert [batch.base_offset for batch in machine.lose_power()] == lost


def test_a_roll_saves_the_segments_before() -> None:
    machine = Machine(log_segment_bytes=300, sim_record_bytes=100)
    for _ in range(5):
        machine.write()
    assert machine.storage.log.segments == [0, 3]
    assert machine.storage.recovery_point == 3
    assert [batch.base_offset for batch in machine.lose_power()] == [3, 4]


def test_a_controlled_shutdown_saves_everything() -> None:
    machine = Machine()
    machine.write(3)
    machine.shut_down()
    assert machine.storage.power_lost(machine.now_us) == []


# Log start, segments and producers.


def test_a_log_start_between_batches_stays_where_it_is() -> None:
    machine = Machine()
    machine.write(2)
    machine.replica.append_fetched(Batch(5, 6, 0, 9))
    machine.replica.set_hw(7)
    machine.replica.advance_log_start(3)
    machine.shut_down()
    machine.start()
    assert (machine.replica.log.log_start, machine.replica.log.leo, machine.bases) == (3, 7, [5])


def test_an_emptied_segment_says_where_the_log_ends() -> None:
    machine = Machine()
    machine.write(3)
    machine.replica.truncate_to(1)
    machine.write(2)
    machine.storage.roll(machine.replica.log.batches[-1], machine.now_us)
    machine.replica.truncate_to(1)
    machine.shut_down()
    machine.start()
    assert (machine.replica.log.leo, machine.replica.log.segments) == (1, [0, 1])


def test_a_log_that_ends_below_its_start_begins_anew() -> None:
    machine = Machine()
    machine.write(2)
    machine.write(4)
    machine.replica.truncate_to(4)
    machine.replica.set_hw(4)
    machine.replica.advance_log_start(3)
    machine.shut_down()
    machine.start()
    log = machine.replica.log
    assert (log.log_start, log.leo, log.segments, machine.replica.epochs.entries) == (3, 3, [3], [])


@pytest.mark.parametrize(("seconds", "start", "bases"), [(29, 0, [0, 1, 2]), (31, 2, [2])])
def test_deleted_records_come_back_until_the_log_start_is_written(seconds: float, start: int, bases: list[int]) -> None:
    machine = Machine()
    for _ in range(3):
        machine.write(seconds=0)
    machine.replica.set_hw(3)
    machine.replica.advance_log_start(2)
    machine.wait(seconds)
    machine.kill()
    machine.start()
    assert (machine.replica.log.log_start, machine.bases) == (start, bases)


@pytest.mark.parametrize(("start", "left"), [(2, 2), (3, 2)])
def test_what_lay_in_deleted_segments_does_not_come_back(start: int, left: int) -> None:
    machine = Machine(log_segment_bytes=100, sim_record_bytes=51)
    for _ in range(4):
        machine.write(2, seconds=0)
    assert machine.storage.log.segments == [0, 2, 4, 6]
    machine.replica.set_hw(8)
    machine.replica.advance_log_start(start)
    machine.storage.delete_segments(machine.now_us)
    machine.kill()
    machine.start()
    assert (machine.replica.log.log_start, machine.bases) == (left, [2, 4, 6])


def test_a_log_start_that_is_written_at_once_brings_no_deleted_record_back() -> None:
    machine = Machine(KIP101.override({"log_start_checkpoint": "at-once"}))
    for _ in range(3):
        machine.write(seconds=0)
    machine.replica.set_hw(3)
    machine.replica.advance_log_start(2)
    machine.lose_power()
    machine.start()
    assert (machine.replica.log.log_start, machine.bases) == (2, [])


def test_a_log_start_at_a_segment_is_not_written() -> None:
    machine = Machine()
    machine.replica.truncate_fully(10)
    machine.wait(61)
    machine.kill()
    assert machine.storage.log_start_file.content is None
    machine.start()
    assert machine.replica.log.log_start == 10


def test_the_recovery_point_follows_the_log_start() -> None:
    machine = Machine()
    machine.write(3)
    machine.replica.set_hw(3)
    machine.replica.advance_log_start(2)
    assert machine.storage.recovery_point == 2
    machine.wait(61)
    machine.kill()
    machine.storage.recovery_point_file.content = 0
    machine.start()
    assert machine.storage.recovery_point == 2


def test_a_truncation_of_what_an_earlier_one_left_of_a_batch_writes_the_recovery_point() -> None:
    """The LEO is above the data after a truncation into a batch; the oracle found it (4.4.0, seed 150017262)."""
    machine = Machine()
    machine.write()
    machine.storage.roll(machine.replica.log.batches[-1], machine.now_us)
    machine.write(2)
    machine.shut_down()
    machine.start()
    contents = []
    for offset in (2, 1, 1):
        machine.replica.truncate_to(offset)
        contents.append(machine.storage.recovery_point_file.content)
    assert contents == [2, 1, 1]


@pytest.mark.parametrize(("offset", "content"), [(3, None), (2, 0)])
def test_a_truncation_that_removes_something_writes_the_recovery_point(offset: int, content: int | None) -> None:
    machine = Machine()
    machine.write(2)
    machine.write()
    machine.replica.truncate_to(offset)
    machine.kill()
    assert machine.storage.recovery_point_file.content == content


@pytest.mark.parametrize(("seconds", "content"), [(29, None), (31, 2)])
def test_a_written_log_start_outlives_a_new_log_that_starts_below(seconds: float, content: int | None) -> None:
    machine = Machine()
    machine.write(3, seconds=0)
    machine.replica.set_hw(3)
    machine.replica.advance_log_start(2)
    machine.wait(seconds)
    machine.replica.truncate_fully(0)
    machine.write()
    machine.kill()
    assert machine.storage.log_start_file.content == content
    machine.start()
    log = machine.replica.log
    assert (log.log_start, log.leo) == ((0, 1) if content is None else (2, 2))


def test_a_power_loss_takes_what_lay_below_the_log_start_too() -> None:
    machine = Machine()
    machine.write(seconds=DURABLE_AFTER_US / SECOND_US)
    machine.write(2)
    machine.write()
    machine.replica.set_hw(4)
    machine.replica.advance_log_start(3)
    assert [batch.base_offset for batch in machine.lose_power()] == [3]
    machine.start()
    assert (machine.replica.log.log_start, machine.replica.log.leo, machine.bases) == (0, 1, [0])


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_leaves_the_last_batch_of_each_producer(clean: bool) -> None:
    machine = Machine()
    for sequence in range(3):
        machine.replica.append_new(sequence, 1, 0, (7, 0, sequence))
    assert len(latest_batches(machine.replica.log, 7)) == 3
    machine.shut_down() if clean else machine.kill()
    machine.start()
    assert latest_batches(machine.replica.log, 7) == machine.replica.log.batches[-1:]


# Damage.


@pytest.mark.parametrize("synced", [True, False])
def test_a_corrupt_tail_costs_the_newest_batches_whether_synced_or_not(synced: bool) -> None:
    machine = Machine(log_flush_interval_messages=1 if synced else NEVER)
    for _ in range(4):
        machine.write(2)
    machine.kill()
    assert machine.storage.synced == (4 if synced else 0)
    assert [batch.base_offset for batch in machine.storage.corrupt_tail(3)] == [2, 4, 6]
    assert machine.storage.synced == int(synced)
    machine.start()
    assert (machine.bases, machine.replica.log.leo, machine.storage.recovery_point) == ([0], 2, 0)
    machine.write()
    assert len(machine.lose_power()) == (0 if synced else 2)


def test_a_corrupt_tail_may_reach_into_older_segments() -> None:
    machine = Machine(log_segment_bytes=300, sim_record_bytes=100)
    for _ in range(8):
        machine.write()
    assert machine.storage.log.segments == [0, 3, 6]
    machine.kill()
    assert len(machine.storage.corrupt_tail(6)) == 6
    machine.start()
    assert (machine.bases, machine.storage.log.segments) == ([0, 1], [0])
    assert len(machine.storage.corrupt_tail(99)) == 2
    machine.start()
    assert machine.replica.log.leo == 0


def test_tail_is_not_looked_at_after_a_clean_shutdown() -> None:
    machine = Machine()
    machine.write()
    machine.shut_down()
    assert machine.directory.corrupt_tails(1) == {"t-0": []}


def test_an_empty_disk_has_neither_log_nor_checkpoints() -> None:
    machine = Machine()
    machine.write(5)
    machine.replica.set_hw(5)
    machine.shut_down()
    machine.directory = machine.directory.new_empty_disk(1)
    machine.start()
    assert (machine.bases, machine.replica.log.leo, machine.replica.hw) == ([], 0, 0)
    assert machine.storage.epoch_checkpoint.entries == []
    assert machine.storage.recovery_point_file.content is None


def test_a_shutdown_without_partitions_keeps_the_hw_file() -> None:
    machine = Machine()
    machine.write(5)
    machine.replica.set_hw(3)
    machine.shut_down()
    machine.replica.set_hw(5)
    machine.storage.close_cleanly(None)
    machine.directory.mark_clean()
    assert machine.storage.hw_file.content == 3
    assert machine.directory.clean_shutdown


def test_the_marker_carries_the_broker_epoch_until_logs_are_loaded() -> None:
    machine = Machine()
    machine.directory.mark_clean(7)
    assert machine.directory.clean_broker_epoch == 7
    machine.start()
    assert machine.directory.clean_broker_epoch == NO_BROKER_EPOCH
    machine.directory.mark_clean()
    assert (machine.directory.clean_shutdown, machine.directory.clean_broker_epoch) == (True, NO_BROKER_EPOCH)


def test_a_disk_that_replaces_another_has_no_marker() -> None:
    machine = Machine()
    machine.directory.mark_clean(7)
    other = machine.directory.new_empty_disk(1)
    assert (other.clean_shutdown, other.clean_broker_epoch) == (False, NO_BROKER_EPOCH)


def test_a_deletion_while_a_process_runs_writes_no_marker() -> None:
    machine = Machine()
    machine.write(3)
    machine.storage.delete_log(machine.decide)
    assert (machine.directory.clean_shutdown, machine.directory.clean_broker_epoch) == (False, NO_BROKER_EPOCH)


def test_a_stop_before_loading_restores_the_clean_shutdown_marker() -> None:
    machine = Machine(KRAFT)
    machine.directory.mark_clean(7)
    machine.directory.close_unloaded(Decisions(KRAFT), 8)
    assert (machine.directory.clean_shutdown, machine.directory.clean_broker_epoch) == (True, 8)


@pytest.mark.parametrize(("rule", "trusted"), [("always", True), ("loaded-only", False)])
def test_rule_decides_whether_a_lying_marker_is_left(rule: str, *, trusted: bool) -> None:
    rules = KRAFT.override({"clean_shutdown_file": rule})
    machine = Machine(rules)
    machine.write(seconds=DURABLE_AFTER_US / SECOND_US)
    machine.write()
    assert machine.lose_power()
    machine.storage.epoch_checkpoint.write([])
    machine.directory.close_unloaded(Decisions(rules), 8)
    assert machine.directory.clean_broker_epoch == (8 if trusted else NO_BROKER_EPOCH)
    machine.start()
    assert machine.bases == [0]
    # Nobody has looked at what is there: it is not scanned, and the epochs that it names are not taken.
    assert machine.storage.recovery_point == (1 if trusted else 0)
    assert machine.replica.epochs.entries == ([] if trusted else [(0, 0)])


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("epoch"), st.just(0)),
        st.tuples(st.sampled_from(["truncate", "start", "hw"]), st.integers(0, 9)),
        st.tuples(st.sampled_from(["kill", "shut down", "lose power"]), st.just(0)),
    ),
    max_size=30,
)


@given(ACTIONS, st.sampled_from([1, 3, 10, NEVER]), st.sampled_from([300, 1_000_000]))
def test_storage_after_any_history_holds_what_was_written(
    history: list[tuple[str, int]], interval: int, segment: int
) -> None:
    machine = Machine(log_flush_interval_messages=interval, log_segment_bytes=segment)
    written_us: dict[Batch, int] = {}
    for action, number in history:
        log = machine.replica.log
        if action == "write":
            machine.write(number)
            written_us[log.batches[-1]] = machine.now_us - SECOND_US
        elif action == "wait":
            machine.wait(number)
        elif action == "epoch":
            machine.epoch += 1
        elif action == "truncate":
            machine.replica.truncate_to(max(0, log.leo - number))
        elif action == "hw":
            machine.replica.set_hw(log.log_start + number)
        elif action == "start":
            machine.replica.advance_log_start(log.log_start + number)
        else:
            before, start, clean = [*log.below, *log.batches], log.log_start, action == "shut down"
            below = len(log.below)
            lost: list[Batch] = []
            if action == "kill":
                machine.kill()
            elif clean:
                machine.shut_down()
            else:
                lost = machine.lose_power()
            checkpoints = [file.content for file in (machine.storage.hw_file, machine.storage.log_start_file)]
            machine.start()
            log = machine.replica.log
            kept = [*log.below, *log.batches]
            assert kept == before[: len(kept)]
            assert lost == before[max(below, len(kept)) :]
            assert all(machine.now_us - written_us[batch] < DURABLE_AFTER_US for batch in lost)
            assert not (lost and interval == 1)
            assert (checkpoints[1] or 0) <= log.log_start <= start
            assert machine.replica.hw == min(max(checkpoints[0] or 0, log.log_start), log.leo)
            epochs = machine.replica.epochs
            assert all(log.log_start <= offset <= log.leo for offset in epochs.starts)
            for batch in log.batches:
                if batch.base_offset >= start:  # Of those that came back, epochs may be missing, as in Kafka.
                    assert epochs.epoch_for_offset(batch.base_offset) == batch.leader_epoch
            entries, hw = epochs.entries, machine.replica.hw
            machine.kill()
            machine.start()  # Recovery of what was just recovered changes nothing.
            assert (machine.replica.log.batches, machine.replica.log.leo) == (log.batches, log.leo)
            assert (machine.replica.epochs.entries, machine.replica.hw) == (entries, hw)


# Files.


def test_a_periodic_file_says_what_held_at_its_last_write() -> None:
    file = PeriodicFile(5)
    file.catch_up(1, 100)
    assert file.content is None
    file.begin(105, 100)
    file.catch_up(1, 104)
    assert file.content is None
    file.catch_up(1, 105)
    file.catch_up(2, 109)
    assert file.content == 1
    file.catch_up(3, 121)
    assert file.content == 3
    file.end()
    file.catch_up(4, 999)
    assert file.content == 3


def test_a_periodic_file_is_written_first_when_its_task_is_due() -> None:
    file = PeriodicFile(5)
    file.begin(100, 100)
    file.catch_up(1, 100)
    file.catch_up(2, 104)
    assert file.content == 1
    file.catch_up(3, 105)
    assert file.content == 3


def test_a_task_that_found_nothing_to_write_goes_on_in_its_rhythm() -> None:
    file = PeriodicFile(5)
    file.begin(100, 106)
    file.catch_up(1, 109)
    assert file.content is None
    file.catch_up(1, 110)
    assert file.content == 1


@pytest.mark.parametrize(("seconds", "recovery_point"), [(29, None), (31, 1), (89, 1), (91, 2)])
def test_recovery_points_are_written_after_30_s_and_then_every_minute(
    seconds: float, recovery_point: int | None
) -> None:
    machine = Machine(log_flush_interval_messages=1)
    machine.write(seconds=0)
    machine.wait(min(seconds, 31))
    if seconds > 31:
        machine.write(seconds=seconds - 31)
    machine.kill()
    assert machine.storage.recovery_point_file.content == recovery_point


def test_the_high_watermark_file_lags_behind_and_a_shutdown_writes_it() -> None:
    machine = Machine()
    machine.write(4, seconds=0)
    machine.replica.set_hw(1)
    machine.wait(6)
    machine.replica.set_hw(3)
    machine.kill()
    machine.start()
    assert machine.replica.hw == 1
    machine.replica.set_hw(4)
    machine.shut_down()
    machine.start()
    assert machine.replica.hw == 4


def test_the_marker_is_written_by_a_shutdown_and_removed_by_a_start() -> None:
    machine = Machine()
    assert not machine.directory.clean_shutdown
    machine.kill()
    assert not machine.directory.clean_shutdown
    machine.start()
    machine.shut_down()
    assert machine.directory.clean_shutdown
    machine.start()
    assert not machine.directory.clean_shutdown


def test_epochs_missing_from_the_file_are_taken_from_the_batches() -> None:
    machine = Machine()
    machine.write()
    machine.epoch = 3
    machine.write()
    machine.storage.epoch_checkpoint.write([(0, 0)])
    machine.kill()
    machine.start()
    assert machine.replica.epochs.entries == [(0, 0), (3, 1)]


def test_epochs_of_a_lost_tail_are_dropped() -> None:
    machine = Machine()
    machine.write(seconds=40)
    machine.epoch = 3
    machine.write()
    machine.lose_power()
    assert machine.storage.epoch_checkpoint.entries == [(0, 0), (3, 1)]
    machine.start()
    assert machine.replica.epochs.entries == [(0, 0)]


@pytest.mark.parametrize(("end", "rule", "fails"), [
    ("kill", "fails", True), ("kill", "passes", False), ("shut_down", "fails", False),
])  # fmt: skip
def test_overlapping_offsets_fail_recovery_after_an_unclean_end(end: str, rule: str, fails: bool) -> None:
    machine = Machine(MODES["hw"].rules.override({"overlap_recovery": rule}))
    machine.write(2)
    machine.write(2)
    machine.replica.append_fetched(Batch(2, 6, 1, 50))
    getattr(machine, end)()
    if fails:
        with pytest.raises(RecoveryError, match="no larger than the last offset"):
            machine.start()
    else:
        machine.start()
        assert machine.replica.log.leo == 7


def test_each_process_loads_a_log_of_its_own_also_of_an_empty_one() -> None:
    machine = Machine()
    logs = [machine.storage.log]
    for _ in range(2):
        machine.start()
        logs.append(machine.storage.log)
    assert len(set(map(id, logs))) == 3
    assert all((log.leo, log.log_start, log.segments, log.batches) == (0, 0, [0], []) for log in logs)
    assert machine.storage.recovery_point == 0


# Flushing by time.


def flushed(**config: Value) -> Machine:
    """A record each 10 s, from 0 to 90 s; the time is 100 s."""
    machine = Machine(KRAFT, **config)
    for _ in range(10):
        machine.write(seconds=10)
    return machine


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({}, 8),  # What write-back has reached: the kernel ran at 100 s, and took what was older than 30 s.
        ({"sim_writeback_expire_ms": 200_000}, 0),
        # The flusher runs at 30 s, then each 20 s: what was appended before 90 s is durable.
        ({"sim_writeback_expire_ms": 200_000, "log_flush_scheduler_interval_ms": 20_000}, 9),
        # The log was loaded at 0 s: not before 45 s, so at 50 s, and not again before 95 s.
        (
            {
                "sim_writeback_expire_ms": 200_000,
                "log_flush_scheduler_interval_ms": 20_000,
                "log_flush_interval_ms": 45_000,
            },
            5,
        ),
        # Without a schedule it runs once, 30 s after the start.
        ({"sim_writeback_expire_ms": 200_000, "log_flush_interval_ms": 1_000}, 3),
    ],
)
def test_the_flusher_makes_durable_what_was_appended_before_its_run(config: dict[str, Value], kept: int) -> None:
    machine = flushed(**config)
    machine.lose_power()
    machine.start()
    assert len(machine.bases) == kept


def test_the_flusher_moves_the_recovery_point_and_begins_anew_with_a_process() -> None:
    machine = flushed(log_flush_scheduler_interval_ms=20_000)
    machine.kill()
    assert machine.storage.recovery_point == 9
    assert machine.storage.recovery_point_file.content == 9  # Written at 90 s: the flush at 90 s came first.
    machine.wait(1_000)
    machine.start()
    machine.write(seconds=29)
    machine.kill()
    assert machine.storage.recovery_point == 9


def test_a_truncation_finds_the_log_flushed() -> None:
    machine = flushed(sim_writeback_expire_ms=200_000, log_flush_scheduler_interval_ms=20_000)
    machine.replica.truncate_to(5)
    assert (machine.storage.recovery_point, machine.storage.synced) == (5, 5)
    machine.write(seconds=9)
    assert len(machine.lose_power()) == 1
