"""The log directories of a machine: where replicas are created, and the markers of clean shutdowns."""

from __future__ import annotations

from sim.config import resolve
from sim.environment.log_directories import LogDirectories
from sim.hosts.settings import broker_settings
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.messages import NO_BROKER_EPOCH
from sim.protocol.modes import mode

STORAGE = broker_settings(resolve()).storage


def several(count: int = 2, place: int = 1) -> LogDirectories:
    return LogDirectories(STORAGE, "p-0", 0, count, place)


def loaded(directories: LogDirectories, *names: str) -> None:
    """A process loads the logs of these partitions."""
    for name in names:
        directories.files(name).recover(Decisions(mode("elr-4.3").rules), clean=True)


def write(directories: LogDirectories, name: str, first_id: int) -> Batch:
    """A process appends a batch of one record."""
    storage = directories.files(name)
    offset = storage.log.leo
    batch = Batch(first_id, 1, 0, offset)
    storage.log.append(batch)
    storage.appended(batch, 0)
    return batch


def test_the_first_partition_is_where_its_topic_wants_it() -> None:
    assert [list(one.storages) for one in several(3).all] == [["p-0"], [], []]
    assert [list(one.storages) for one in several(3, 2).all] == [[], ["p-0"], []]


def test_a_replica_is_created_where_the_fewest_logs_are() -> None:
    directories = several(3)
    held = ["p-0"]
    places = []
    for name in ("q-0", "q-1", "q-2", "q-3"):
        directory = directories.next_directory(held)
        directories.add(name, directory)
        held.append(name)
        places.append(directories.all.index(directory) + 1)
    assert places == [2, 3, 1, 2]


def test_files_of_replicas_that_a_broker_does_not_hold_do_not_count() -> None:
    assert several().next_directory([]).number == 0


def test_a_failed_directory_gets_no_replica() -> None:
    directories = several()
    directories.fail(directories.all[1], 0)
    assert directories.next_directory(["p-0"]) is directories.all[0]
    assert (directories.ids, directories.have_failed) == ((0,), True)


def test_each_directory_has_a_marker_and_the_epoch_must_be_the_same() -> None:
    directories = several()
    directories.mark_clean(7)
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (True, 7)
    assert directories.all[0].take_marker()
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (False, NO_BROKER_EPOCH)
    directories.all[0].mark_clean(8)
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (True, NO_BROKER_EPOCH)


def test_a_failed_directory_gets_no_marker() -> None:
    directories = several()
    directories.mark_clean(7)
    directories.fail(directories.all[1], 0)
    directories.mark_clean(8)
    assert [one.clean_shutdown for one in directories.all] == [True, False]
    assert (directories.clean_shutdown, directories.clean_broker_epoch) == (False, NO_BROKER_EPOCH)


def test_a_directory_that_fails_loses_what_was_not_written_back() -> None:
    directories = several()
    directories.add("q-0", directories.all[1])
    loaded(directories, "p-0", "q-0")
    kept, lost = write(directories, "p-0", 1), write(directories, "q-0", 2)
    assert directories.fail(directories.all[1], 1_000) == {"q-0": [lost]}
    assert directories.files("p-0").log.batches == [kept]
    assert directories.files("q-0").log.batches == []
    assert directories.failed_names == ["q-0"]


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
    assert directories.abandon("p-0") == [batch]
    assert directories.abandon("p-0") == []
    assert directories.directory_of("p-0") is None
