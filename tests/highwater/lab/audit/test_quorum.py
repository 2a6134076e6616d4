"""The disks of three controllers, with pieces of the metadata log of a real quorum (4.4.0)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from highwater.lab.audit.voters import read_quorum
from highwater.lab.confirm.files import frames
from sim import exit_codes
from tests.conftest import Call
from tests.places import FIXTURES

LOG = (FIXTURES / "metadata" / "quorum-4.4.0" / f"{0:020}.log").read_bytes()
BATCHES = [LOG[start:end] for start, end, _ in frames(LOG)]
WHOLE = len(BATCHES)
HALF = 26
VOTERS = [{"voterId": voter} for voter in (100, 101, 102)]


def controller(
    folder: Path, number: int, batches: int = WHOLE, *, vote: dict[str, object] | None = None, cluster: str = "one"
) -> Path:
    """A controller's log directory with the first batches of the log; `vote`: what is other in quorum-state."""
    place = folder / f"controller-{number}"
    log = place / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (place / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={number}\n")
    told = {"leaderId": 102, "leaderEpoch": 4, "votedId": -1, "currentVoters": VOTERS, "data_version": 0}
    (log / "quorum-state").write_text(json.dumps(told | (vote or {})))
    (log / f"{0:020}.log").write_bytes(b"".join(BATCHES[:batches]))
    return place


def quorum(folder: Path, first: int = WHOLE, second: int = WHOLE, third: int = WHOLE) -> list[Path]:
    return [controller(folder, 100 + place, batches) for place, batches in enumerate((first, second, third))]


def test_three_equal_disks_have_all_metadata(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    call = highwater("audit", *quorum(tmp_path))
    assert call.code == exit_codes.EXPECTED
    assert call.out.splitlines()[-1] == "3 of 3 voters have all metadata, up to record 85"


@pytest.mark.parametrize(
    ("lengths", "option", "voter", "is_safe"),
    [
        ((WHOLE, WHOLE, WHOLE), "--before-format", 101, True),
        ((WHOLE, WHOLE, WHOLE - 1), "--before-format", 101, True),  # It lacks a NoOpRecord.
        ((WHOLE, WHOLE, HALF), "--before-format", 101, False),
        ((WHOLE, WHOLE, HALF), "--before-format", 102, True),
        ((WHOLE, 0, HALF), "--before-format", 101, False),
        ((WHOLE, WHOLE, HALF), "--before-restart", 100, False),
        ((WHOLE, WHOLE, HALF), "--before-restart", 102, True),
    ],
)
def test_a_controller_can_go_if_a_majority_of_all_voters_has_all_metadata_without_it(
    tmp_path: Path,
    highwater: Callable[..., Call],
    lengths: tuple[int, int, int],
    option: str,
    voter: int,
    is_safe: bool,
) -> None:
    call = highwater("audit", *quorum(tmp_path, *lengths), option, voter)
    assert call.code == (exit_codes.EXPECTED if is_safe else exit_codes.UNEXPECTED)
    assert ("now? Yes" if is_safe else "now? No") in call.out
    assert ("Do: let" in call.out) == (not is_safe)


def test_what_a_controller_lacks_is_told_with_the_changes_among_it(
    tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    call = highwater("audit", *quorum(tmp_path, third=HALF), "--json")
    told = json.loads(call.out)
    assert told["answer"] == "2 of 3 voters have all metadata, up to record 85"
    assert [(one["controller"], one["has_all"], one["shares"]) for one in told["controllers"]] == [
        (100, True, 86),
        (101, True, 86),
        (102, False, 41),
    ]
    text = " ".join(highwater("audit", *sorted(tmp_path.iterdir())).out.split())
    assert "Controller 102 lacks records 41 to 85: 14 changes. Its log ends at record 40" in text


def test_records_that_only_one_disk_has_may_be_committed_if_another_one_is_empty(
    tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    call = highwater("audit", *quorum(tmp_path, second=0, third=HALF))
    assert call.code == exit_codes.UNEXPECTED
    text = " ".join(call.out.split())
    assert "No majority has the records from 41 on" in text
    assert "Controller 101 has no record, and lacks 38 changes." in text


def test_a_log_with_other_records_in_place_of_the_newest_ones_is_told(
    tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    folders = quorum(tmp_path)
    newer = [batch[:12] + struct.pack(">i", 9) + batch[16:] for batch in BATCHES[HALF:]]
    for folder in folders[1:]:
        (folder / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(b"".join([*BATCHES[:HALF], *newer]))
    found = read_quorum(folders)
    assert found.replaced(found.disks[100]) == (41, 86)
    assert not found.has_all(found.disks[100])
    assert "they were never committed, or were lost" in " ".join(highwater("audit", *folders).out.split())


def test_a_lost_or_old_vote_is_told(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    folders = quorum(tmp_path)
    (folders[0] / "__cluster_metadata-0" / "quorum-state").unlink()
    assert "may vote a second time in epoch 4" in " ".join(highwater("audit", *folders).out.split())
    old = [controller(tmp_path / "old", 100, vote={"leaderEpoch": 2}), *folders[1:]]
    assert "the file is an old copy" in " ".join(highwater("audit", *old).out.split())
    two = [controller(tmp_path / "two", 100, vote={"leaderId": 100}), *folders[1:]]
    assert "Epoch 4 has several leaders: controllers 100 and 102." in " ".join(highwater("audit", *two).out.split())


def snapshot(folder: Path, number: int, offset: int, *batches: bytes) -> Path:
    """A controller's log directory whose log goes on from a snapshot."""
    place = controller(folder, number, 0)
    log = place / "__cluster_metadata-0"
    (log / f"{0:020}.log").unlink()
    (log / f"{offset:020}-{4:010}.checkpoint").touch()
    (log / f"{offset:020}.log").write_bytes(b"".join(batches))
    return place


def test_what_a_snapshot_has_counts_also_if_nothing_was_written_since(
    tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    no_op = BATCHES[-1]
    (first,) = struct.unpack_from(">q", no_op)
    for place, batches in enumerate(([], [no_op])):
        folder = tmp_path / str(place)
        both = [snapshot(folder, number, first, *batches) for number in (100, 101)]
        empty = controller(folder, 102, 0)
        assert highwater("audit", *both, empty, "--before-format", 102).code == exit_codes.EXPECTED
        asked = highwater("audit", *both, empty, "--before-format", 101)
        assert asked.code == exit_codes.UNEXPECTED
        assert f"has no record, and lacks what the snapshot before record {first} has" in " ".join(asked.out.split())


def test_a_snapshot_beyond_the_log_takes_its_place(tmp_path: Path) -> None:
    folder = controller(tmp_path, 100, HALF)
    (folder / "__cluster_metadata-0" / f"{60:020}-{4:010}.checkpoint").touch()
    disk = read_quorum([folder]).disks[100]
    assert (disk.start_offset, disk.end_offset, disk.epochs, disk.changes) == (60, 60, [(4, 60)], [])


def test_what_is_no_quorum_is_refused_in_a_line(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    folders = quorum(tmp_path)
    broker = controller(tmp_path, 7)
    other = controller(tmp_path / "other", 101, cluster="two")
    cut = controller(tmp_path / "cut", 102)
    log = cut / "__cluster_metadata-0"
    (log / f"{0:020}.log").rename(log / f"{41:020}.log")
    by_log = [controller(tmp_path / "by-log", number, vote={"currentVoters": []}) for number in (100, 101, 102)]
    nothing = [controller(tmp_path / "nothing", number, 0) for number in (100, 101)]
    segment = folders[0] / "__cluster_metadata-0" / f"{0:020}.log"
    for words, problem in (
        ((*by_log, "--before-format", 101), "no file quorum-state names the voters"),
        (nothing, "no metadata record in any of them"),
        ((segment, folders[1], "--before-format", 101), "no such folder"),
        ((*folders, "--partition", "orders-0"), "--partition is about one metadata log"),
        ((*folders, folders[0]), "are both of node 100"),
        ((*folders, broker), "is of node 7, which is no voter: 100, 101, 102"),
        ((folders[0], other), "audit each quorum by itself"),
        ((folders[0], cut), "the log begins at record 41, and no snapshot has what was before it"),
        ((*folders, "--before-format", 103), "--before-format 103: there is no such voter"),
        ((folders[0], folders[1], "--before-format", 101), "the folders of controller 102 are needed, too"),
        ((folders[0], "--before-format", 101), "needs the log directories of the other controllers"),
        ((*folders, "--distance"), "--distance is about one metadata log"),
        ((*folders, "--before-format", 101, "--before-restart", 100), "are two questions"),
    ):
        call = highwater("audit", *words)
        assert call.code == exit_codes.BAD_INPUT
        assert problem in " ".join(call.err.split())
        assert len(call.err.splitlines()) == 1
