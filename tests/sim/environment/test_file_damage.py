from __future__ import annotations

from typing import Any

import pytest

from sim.config import resolve
from sim.environment.file_damage import (
    EPOCHS,
    FILES,
    HALF_WRITTEN,
    HW,
    LOG_START,
    LOST,
    MARKER,
    OLD,
    PARTITION_METADATA,
    RECOVERY_POINT,
    SNAPSHOTS,
    FileDamage,
    Outcome,
    damage_file,
    load_in_vain,
    repair_file,
)
from sim.environment.log_directories import LogDirectories
from sim.hosts.settings import broker_settings
from sim.protocol.decisions import Decisions
from sim.protocol.messages import NO_BROKER_EPOCH
from sim.protocol.modes import MODES
from tests.sim.environment.test_storage import Machine

CHECKPOINTS = (EPOCHS, HW, RECOVERY_POINT, LOG_START)


class Damaged(Machine):
    """Epoch 0 has the offsets 0 and 1, epoch 1 those from 2 to 4, of which 3 and 4 are in a further segment; the HW is
    4, and records below 1 are deleted. Each file has a former version.
    """

    def __init__(self, mode: str = "elr-4.3") -> None:
        super().__init__(MODES[mode].rules, log_segment_bytes=300)
        for self.epoch in (0, 0, 1, 1, 1):
            self.write(seconds=100)
        self.replica.set_hw(4)
        self.replica.advance_log_start(1)

    def damage(self, file: str, how: str) -> Outcome:
        return damage_file(self.directory, FileDamage(file, how, "t-0", None), self.decide)

    def end(self, *, clean: bool) -> None:
        if clean:
            self.shut_down()
        else:
            self.kill()

    def misses(self) -> bool:
        """Start, and say whether something is missing."""
        self.start()
        return self.storage.misses_files(self.replica.log, self.replica.epochs)


@pytest.mark.parametrize(
    ("clean", "entries"),
    [
        (True, []),  # Recovery, which would have added them, is skipped.
        (False, [(0, 0), (1, 2)]),  # The log start had not been written.
    ],
)
def test_a_lost_epoch_file_is_rebuilt_from_what_recovery_scans(clean: bool, entries: list[Any]) -> None:
    machine = Damaged()
    machine.end(clean=clean)
    machine.damage(RECOVERY_POINT, LOST)
    assert machine.damage(EPOCHS, LOST).effective
    assert machine.misses() is clean
    assert machine.replica.epochs.entries == entries


def test_recovery_rebuilds_only_the_epochs_of_segments_from_the_recovery_point_on() -> None:
    machine = Damaged()
    machine.kill()
    machine.storage.recovery_point_file.content = 4
    machine.damage(EPOCHS, LOST)
    assert machine.misses()
    assert machine.replica.epochs.entries == [(1, 3)]
    machine.kill()
    machine.damage(RECOVERY_POINT, LOST)
    assert not machine.misses()
    assert machine.replica.epochs.entries == [(1, 3)]  # Only epochs above the latest one are added.


def test_an_old_epoch_file_lacks_the_last_epoch() -> None:
    machine = Damaged()
    machine.epoch = 2
    machine.write()
    machine.shut_down()
    assert machine.damage(EPOCHS, OLD).effective
    assert machine.misses()
    assert machine.replica.epochs.entries == [(0, 1), (1, 2)]


def test_without_a_hw_file_the_hw_begins_at_the_log_start() -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(HW, LOST).effective
    assert not machine.misses()
    assert machine.replica.hw == 1
    assert not Damaged().damage(HW, OLD).effective  # The running process has not written it twice.


def test_without_the_log_start_file_deleted_records_reappear() -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(LOG_START, LOST).effective
    assert machine.misses()
    assert machine.replica.log.log_start == 0


@pytest.mark.parametrize(
    ("how", "clean", "marker"),
    [
        (LOST, True, (False, NO_BROKER_EPOCH)),
        (HALF_WRITTEN, True, (True, NO_BROKER_EPOCH)),
        (OLD, True, (True, 7)),
        (OLD, False, (True, 8)),
    ],
)
def test_the_marker_is_lost_or_has_an_earlier_or_no_broker_epoch(
    how: str, clean: bool, marker: tuple[bool, int]
) -> None:
    machine = Damaged()
    for broker_epoch in (7, 8):
        machine.kill()
        machine.directory.mark_clean(broker_epoch)
        if broker_epoch == 7 or not clean:
            machine.start()
    assert machine.damage(MARKER, how).effective
    assert (machine.directory.clean_shutdown, machine.directory.clean_broker_epoch) == marker


def test_a_log_without_partition_metadata_is_stray_in_kraft_alone() -> None:
    machine = Damaged()
    machine.shut_down()
    held = machine.replica.log.batches[:]
    assert not machine.damage(PARTITION_METADATA, OLD).effective
    assert machine.damage(PARTITION_METADATA, LOST).lost == held
    machine.start()
    assert (machine.bases, machine.replica.log.leo, machine.replica.epochs.entries) == ([], 0, [])
    older = Damaged("kip320")
    older.shut_down()
    assert not older.damage(PARTITION_METADATA, LOST).effective


@pytest.mark.parametrize("clean", [True, False])
def test_without_snapshots_a_clean_start_knows_no_producer(clean: bool) -> None:
    machine = Damaged()
    machine.end(clean=clean)
    assert machine.damage(SNAPSHOTS, LOST).effective
    assert machine.misses() is clean
    assert machine.replica.log.producers.known_from == (5 if clean else 0)
    machine.replica.truncate_to(4)
    assert machine.replica.log.producers.known_from == (4 if clean else 0)  # A state without producers stays empty.


def test_a_truncation_reads_the_log_again_once_there_is_a_producer() -> None:
    machine = Damaged()
    machine.shut_down()
    machine.damage(SNAPSHOTS, LOST)
    machine.start()
    machine.replica.append_new(9, 1, 1, (7, 0, 0))
    machine.replica.truncate_to(4)
    assert machine.replica.log.producers.known_from == 3  # From the empty snapshot of the last segment.


def test_an_old_snapshot_loses_nothing() -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(SNAPSHOTS, OLD).effective
    assert not machine.misses()
    assert machine.replica.log.producers.known_from == 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_half_written_snapshot_is_skipped_and_the_log_is_read(clean: bool) -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(SNAPSHOTS, HALF_WRITTEN).effective
    machine.storage.log.producers.snapshots[:] = machine.storage.log.producers.snapshots[-1:]  # The only one.
    machine.directory.clean_shutdown = clean
    assert not machine.misses()
    assert machine.replica.log.producers.known_from <= 1  # The log start.
    assert machine.replica.log.producers.unreadable == -1


def test_a_marker_put_back_after_a_kill_hides_the_producers() -> None:
    machine = Machine(MODES["elr-4.3"].rules)
    machine.shut_down()
    machine.start()
    machine.write()
    machine.kill()
    assert damage_file(machine.directory, FileDamage(MARKER, OLD, "t-0", None), machine.decide).effective
    machine.start()
    assert machine.replica.log.leo == machine.replica.log.producers.known_from == 1
    assert machine.storage.misses_files(machine.replica.log, machine.replica.epochs)


def test_checkpoints_keep_the_entries_of_a_stray_log_for_the_start_after_next() -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(PARTITION_METADATA, LOST).lost
    machine.start()
    assert (machine.replica.log.log_start, machine.replica.log.leo, machine.replica.hw) == (0, 0, 0)
    machine.kill()  # Before the checkpoints are written.
    machine.start()
    assert (machine.replica.log.log_start, machine.replica.log.leo) == (1, 1)


def test_process_that_does_not_come_up_renames_a_stray_log_and_makes_no_other() -> None:
    machine = Damaged()
    machine.shut_down()
    assert machine.damage(PARTITION_METADATA, LOST).lost
    load_in_vain(machine.directory, machine.decide)
    machine.start()
    assert (machine.replica.log.log_start, machine.replica.log.leo, machine.replica.hw) == (0, 0, 0)


def test_a_process_reads_the_broker_epoch_before_a_file_fails_the_directory() -> None:
    directories = LogDirectories(broker_settings(resolve({})).storage, "t-0", count=2)
    for directory in directories.all:
        directory.mark_clean(7)
    first = directories.all[0]
    first.storages["t-0"].recovery_point_file.content = 0
    decide = Decisions(MODES["elr-4.3"].rules)
    outcome = damage_file(first, FileDamage(RECOVERY_POINT, HALF_WRITTEN, "t-0", None), decide)
    assert (outcome.fails, outcome.stops, first.clean_shutdown) == (True, False, False)
    first.failed = True
    assert directories.clean_broker_epoch == 7
    directories.forget_epochs_before_failure()
    assert directories.clean_broker_epoch == NO_BROKER_EPOCH


@pytest.mark.parametrize("file", [*CHECKPOINTS, PARTITION_METADATA])
@pytest.mark.parametrize("mode", ["hw", "kip320", "elr-4.3"])
def test_a_half_written_file_fails_its_directory_from_1_0_on(mode: str, file: str) -> None:
    machine = Damaged(mode)
    machine.shut_down()
    outcome = machine.damage(file, HALF_WRITTEN)
    exists = file != PARTITION_METADATA or mode == "elr-4.3"
    assert outcome.fails is (exists and mode != "hw")
    assert outcome.effective is (outcome.fails or (mode == "hw" and file == RECOVERY_POINT))
    assert outcome.stops is (outcome.fails and file == PARTITION_METADATA)
    assert not outcome.lost
    # KRaft takes the marker before it loads any log; earlier releases do not over a log that they cannot load.
    assert machine.directory.clean_shutdown is (not outcome.fails or (mode == "kip320" and file == EPOCHS))
    if outcome.fails:
        repair_file(machine.directory, FileDamage(file, HALF_WRITTEN, "t-0", None), machine.decide)
        machine.start()
        assert machine.bases == [0, 1, 2, 3, 4][file != LOG_START :]


@pytest.mark.parametrize("file", [file for file in FILES if file not in (MARKER, PARTITION_METADATA)])
@pytest.mark.parametrize("how", [LOST, OLD, HALF_WRITTEN])
def test_a_file_that_was_never_written_cannot_be_damaged(file: str, how: str) -> None:
    machine = Machine(MODES["elr-4.3"].rules)
    outcome = damage_file(machine.directory, FileDamage(file, how, "t-0", None), machine.decide)
    assert (outcome.effective, outcome.fails, outcome.lost) == (False, False, [])
