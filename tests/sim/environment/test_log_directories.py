"""The log directories of a machine: where replicas are created, and the markers of clean shutdowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.config import resolve
from sim.environment.log_directories import FutureReplica, LogDirectories, next_directory
from sim.hosts.settings import broker_settings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import NO_BROKER_EPOCH
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.environment.storage import LogDirectory

SECOND = 1_000_000
RULES = Decisions(mode("elr-4.3").rules)
STORAGE = broker_settings(resolve()).storage


def several(count: int = 2, place: int = 1) -> LogDirectories:
    return LogDirectories(STORAGE, "p-0", 0, count, place)


def loaded(directories: LogDirectories, *names: str) -> None:
    """A process loads the logs of these partitions."""
    for name in names:
        directories.files(name).recover(RULES, clean=True)


def mark_clean(directories: LogDirectories, broker_epoch: int) -> None:
    """A process shuts down."""
    for directory in directories.online:
        directory.mark_clean(broker_epoch)


def write(directories: LogDirectories, name: str, first_id: int) -> Batch:
    """A process appends a batch of one record."""
    storage = directories.files(name)
    offset = storage.log.leo
    batch = Batch(first_id, 1, 0, offset)
    storage.log.append(batch)
    storage.appended(batch, 0)
    return batch


def test_the_first_partition_is_where_its_topic_wants_it() -> None:
    assert [list(directory.storages) for directory in several(3).all] == [["p-0"], [], []]
    assert [list(directory.storages) for directory in several(3, 2).all] == [[], ["p-0"], []]


def test_a_replica_is_created_where_the_fewest_logs_are() -> None:
    directories = several(3)
    held = ["p-0"]
    places = []
    for name in ("q-0", "q-1", "q-2", "q-3"):
        directory = next_directory(directories.online, held)
        directories.add(name, directory)
        held.append(name)
        places.append(directories.all.index(directory) + 1)
    assert places == [2, 3, 1, 2]


def test_files_of_replicas_that_a_broker_does_not_hold_do_not_count() -> None:
    assert next_directory(several().all, []).number == 0


def test_a_failed_directory_gets_no_replica() -> None:
    directories = several()
    directories.fail(directories.all[1], 0)
    assert next_directory(directories.online, ["p-0"]) is directories.all[0]
    assert directories.ids == (0,)


def test_a_replica_that_was_created_again_is_not_in_the_failed_directory() -> None:
    directories = several()
    failed, other = directories.all
    loaded(directories, "p-0")
    write(directories, "p-0", 1)
    directories.fail(failed, 0)
    assert directories.directory_of("p-0") is failed
    assert directories.has_failed("p-0")
    storage = directories.add("p-0", other)
    assert directories.directory_of("p-0") is other
    assert directories.files("p-0") is directories.storages["p-0"] is storage
    assert not directories.has_failed("p-0")


def test_each_directory_has_a_marker_and_the_epoch_must_be_the_same() -> None:
    directories = several()
    mark_clean(directories, 7)
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (True, 7)
    assert directories.all[0].take_marker()
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (False, NO_BROKER_EPOCH)
    directories.all[0].mark_clean(8)
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (True, NO_BROKER_EPOCH)


def test_a_failed_directory_gets_no_marker_and_keeps_its_own() -> None:
    directories = several()
    mark_clean(directories, 7)
    failed = directories.all[1]
    directories.fail(failed, 0)
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (False, NO_BROKER_EPOCH)
    failed.failed = False
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (True, 7), "it was repaired"
    directories.fail(failed, 0)
    mark_clean(directories, 8)
    assert directories.used_broker_epoch == 8
    assert failed.clean_broker_epoch == 7
    failed.failed = False
    assert directories.clean_broker_epoch == NO_BROKER_EPOCH, "a process has ended without it"


def test_the_markers_of_the_directories_that_work_have_to_agree() -> None:
    directories = several()
    assert directories.used_broker_epoch == NO_BROKER_EPOCH
    mark_clean(directories, 7)
    assert directories.used_broker_epoch == 7
    directories.all[1].mark_clean(8)
    assert directories.used_broker_epoch == NO_BROKER_EPOCH
    directories.all[0].mark_clean(8)
    directories.replace(directories.all[1])
    assert (directories.clean_broker_epoch, directories.used_broker_epoch) == (NO_BROKER_EPOCH, 8), "one is new"
    directories.all[1].take_marker()
    assert directories.used_broker_epoch == NO_BROKER_EPOCH, "a process has used it"
    for directory in directories.all:
        directories.fail(directory, 0)
    assert directories.used_broker_epoch == NO_BROKER_EPOCH


def test_a_directory_that_fails_loses_what_was_not_written_back() -> None:
    directories = several()
    directories.add("q-0", directories.all[1])
    loaded(directories, "p-0", "q-0")
    kept, lost = write(directories, "p-0", 1), write(directories, "q-0", 2)
    assert directories.fail(directories.all[1], 1_000) == {"q-0": [lost]}
    assert directories.files("p-0").log.batches == [kept]
    assert directories.files("q-0").log.batches == []
    assert directories.names_outside(directories.online) == ["q-0"]


def test_a_power_loss_is_one_of_all_directories() -> None:
    directories = several()
    directories.add("q-0", directories.all[1])
    loaded(directories, "p-0", "q-0")
    lost = {name: [write(directories, name, first_id)] for first_id, name in enumerate(("p-0", "q-0"), 1)}
    assert directories.power_lost(1_000) == lost


def test_an_empty_directory_in_place_of_one_has_another_id() -> None:
    directories = several()
    directories.add("q-0", directories.all[1])
    loaded(directories, "q-0")
    lost = write(directories, "q-0", 1)
    assert directories.replace(directories.all[1]) == {"q-0": [lost]}
    assert (directories.ids, list(directories.all[1].storages)) == ((0, 2), [])
    assert directories.replace_all() == {"p-0": []}
    assert directories.ids == (3, 4)


def test_files_in_a_failed_directory_go_when_the_replica_is_elsewhere() -> None:
    directories = several()
    loaded(directories, "p-0")
    batch = write(directories, "p-0", 1)
    directories.files("p-0").close_cleanly(0)
    directories.fail(directories.all[0], 0)
    assert directories.abandon("p-0", directories.online) == [batch]
    assert directories.abandon("p-0", directories.online) == []
    assert directories.directory_of("p-0") is None


class Process:
    """A process over the directories of a machine; `names` are the partitions in them, one in each."""

    def __init__(self, directories: LogDirectories, names: Sequence[str]) -> None:
        self.directories = directories
        self.names = names
        self.first_id = 0
        self.now_us = 0
        self.live: list[LogDirectory] = []
        self.clean: dict[str, bool] = {}
        self.start()

    def start(self) -> None:
        """Load the logs of the directories that work."""
        self.live = self.directories.online
        self.clean = {}
        for directory in self.live:
            clean = directory.take_marker()
            for name, storage in directory.storages.items():
                storage.recover(RULES, clean=clean)
                self.clean[name] = clean

    def do(self, what: str, name: str) -> None:
        """One operation; those of a directory are about the one with a partition."""
        self.now_us += 2_000_000
        self.first_id += 1
        directory = self.directories.directory_of(name)
        if directory is None:
            return
        storage = directory.storages[name]
        if what == "write" and directory in self.live:
            batch = Batch(self.first_id, 1, 0, storage.log.leo)
            storage.log.append(batch)
            storage.appended(batch, self.now_us)
        elif what == "flush" and directory in self.live:
            storage.close_cleanly(0)
        elif what == "fail" and not directory.failed:
            self.live = [one for one in self.live if one is not directory]
            self.directories.fail(directory, self.now_us)
        elif what == "repair":
            directory.failed = False

    def restart(self, how: str) -> None:
        """The process ends, cleanly, by a kill or by a power loss, and the next one starts."""
        self.now_us += 2_000_000
        if how == "power":
            self.directories.power_lost(self.now_us)
        elif how == "clean":
            for directory in self.live:
                for storage in directory.storages.values():
                    storage.close_cleanly(0)
                directory.mark_clean(7)
        self.start()

    @property
    def seen(self) -> dict[str, tuple[list[int], bool | None]]:
        """Of each partition: its records, and whether its last load was after a clean shutdown."""
        return {
            name: ([batch.first_id for batch in self.directories.files(name).log.batches], self.clean.get(name))
            for name in self.names
        }


NAMES = ("p-0", "p-1", "p-2")
OF_DIRECTORIES = st.tuples(st.sampled_from(("write", "write", "flush", "fail", "repair")), st.sampled_from(NAMES))
OF_PROCESSES = st.tuples(st.sampled_from(("clean", "kill", "power")), st.just(""))


@given(st.lists(st.one_of(OF_DIRECTORIES, OF_DIRECTORIES, OF_PROCESSES), max_size=40))
def test_each_directory_of_several_is_like_the_only_one_of_a_machine(operations: list[tuple[str, str]]) -> None:
    """What happens in one directory does not depend on the others: neither records, nor marker, nor recovery."""
    directories = several(3)
    for place, name in enumerate(NAMES):
        directories.add(name, directories.all[place])
    together = Process(directories, NAMES)
    alone = {name: Process(LogDirectories(STORAGE, name), [name]) for name in NAMES}
    for what, name in operations:
        if name:
            together.do(what, name)
            for process in alone.values():
                process.do(what if process.names == [name] else "", process.names[0])
        else:
            for process in (together, *alone.values()):
                process.restart(what)
        assert together.seen == {name: process.seen[name] for name, process in alone.items()}


def copying(copied_us: int) -> LogDirectories:
    """A log with a batch, written at time 0, is being copied to the second directory."""
    directories = several()
    loaded(directories, "p-0")
    write(directories, "p-0", 0)
    directories.files("p-0").epoch_checkpoint.write([(0, 0), (1, 1)])
    directories.futures["p-0"] = FutureReplica(directories.all[1], copied_us)
    return directories


def test_a_copy_that_had_not_caught_up_has_no_files() -> None:
    assert copying(copied_us=5).end_following("p-0", RULES, 4) is None


@pytest.mark.parametrize(("name", "epochs"), [("elr-4.3", [(0, 0)]), ("elr-repaired", [(0, 0), (1, 1)])])
def test_a_copy_has_the_batches_and_its_own_epochs(name: str, epochs: list[tuple[int, int]]) -> None:
    directories = copying(copied_us=5)
    copy = directories.end_following("p-0", Decisions(mode(name).rules), 5)
    assert copy is not None
    assert copy.log.batches == directories.files("p-0").log.batches
    assert copy.epoch_checkpoint.entries == epochs
    assert copy is directories.end_following("p-0", RULES, 9), "it stays as it was when the process ended"
    former, files = directories.recover_future("p-0")
    assert (former, files) == (copy.log.batches, copy)
    assert [list(directory.storages) for directory in directories.all] == [[], ["p-0"]]
    assert not directories.futures


def test_a_copy_was_written_when_it_was_made() -> None:
    directories = copying(copied_us=20 * SECOND)
    copy = directories.end_following("p-0", RULES, 30 * SECOND)
    assert copy is not None
    assert directories.power_lost(49 * SECOND) == {"p-0": []}
    assert copy.log.batches == []
    assert len(directories.files("p-0").log.batches) == 1


def test_a_copy_goes_with_its_directory_or_its_replica() -> None:
    directories = copying(copied_us=0)
    directories.end_following("p-0", RULES, 0)
    directories.replace(directories.all[0])
    assert set(directories.futures) == {"p-0"}
    directories.remove("p-0")
    assert not directories.futures
    directories = copying(copied_us=0)
    directories.replace(directories.all[1])
    assert not directories.futures
