"""Only what this program wrote is replaced and removed."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest

from scenarios import own_files
from scenarios.own_files import Workspace
from sim.errors import InputError, StorageError
from tests.trees import tree

MINE = re.compile(rb"\Ax")


@pytest.mark.parametrize("part", ["", ".", "..", "/", "a/b", "/a", "a\\b", "a\0", "a\n", "~ ", "x" * 201])
def test_word_that_is_no_component(part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        own_files.below(tmp_path, part, create=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("there", "replaced"), [(None, True), ("", True), ("x old", True), ("thesis", False)])
@pytest.mark.parametrize("by", ["name", "link"])
def test_a_file_that_the_user_names_replaces_none_but_its_own_kind(
    tmp_path: Path, there: str | None, replaced: bool, by: str
) -> None:
    file = tmp_path / "file"
    if there is not None:
        file.write_text(there)
    named = file if by == "name" else tmp_path / "link"
    if by == "link":
        named.symlink_to("file")
    if replaced:
        own_files.write(named, "x new", MINE)
        assert file.read_text() == "x new"
    else:
        with pytest.raises(InputError, match=f"{named} exists, and this command did not write it"):
            own_files.write(named, "x new", MINE)
        assert file.read_text() == there
    assert named.is_symlink() == (by == "link")


@pytest.mark.parametrize("name", ["/dev/null", "fifo"])
def test_devices_and_pipes_are_written_to(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    own_files.check_own(tmp_path / name, MINE)


def test_half_a_file_does_not_stay(tmp_path: Path) -> None:
    file = tmp_path / "file"
    own_files.write(file, "x before", MINE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"file cannot be written: File too large"):
            own_files.write(file, "x" * 100_000, MINE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [own_files.replace, own_files.remove])
@pytest.mark.parametrize("kind", ["file", "link", "folder", "pipe"])
def test_what_others_made_is_neither_replaced_nor_removed(tmp_path: Path, change: object, kind: str) -> None:
    place = tmp_path / "here" / "file"
    place.parent.mkdir()
    (tmp_path / "x").write_text("x theirs")
    match kind:
        case "file":
            place.write_text("thesis")
        case "link":
            place.symlink_to(tmp_path / "x")
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
    before = tree(tmp_path)
    if change is own_files.replace:
        with pytest.raises(InputError, match="was not written by highwater: move it elsewhere"):
            own_files.replace(place, b"x new", MINE)
    else:
        assert not own_files.remove(place, MINE)
    assert tree(tmp_path) == before


def test_own_files_are_replaced_and_removed(tmp_path: Path) -> None:
    own_files.replace(tmp_path / "file", b"x old", MINE)
    own_files.replace(tmp_path / "file", b"x new", MINE)
    assert (tmp_path / "file").read_text() == "x new"
    assert own_files.remove(tmp_path / "file", MINE)
    assert own_files.remove(tmp_path / "file", MINE)
    assert list(tmp_path.iterdir()) == []


def test_leftovers_are_recognised_by_name_and_content(tmp_path: Path) -> None:
    names = (
        "file.unfinished",
        ".file.0badcafe",
        ".other.0badcafe",
        ".file.bad",
        ".file.0badcafe.tmp",
        ".file.0000cafe",
    )
    for name in names:
        (tmp_path / name).write_text("x" if name != ".file.0000cafe" else "mine")
    (tmp_path / ".file.0123cafe").mkdir()
    (tmp_path / ".file.4567cafe").symlink_to(".file.bad")
    own_files.remove_leftovers(tmp_path, {"file": MINE})
    assert {path.name for path in tmp_path.iterdir()} == {*names, ".file.0123cafe", ".file.4567cafe"} - {
        ".file.0badcafe"
    }


def test_a_workspace_begins_empty_and_reaches_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "one").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(InputError, match="holds something"):
        Workspace(tmp_path)
    made = Workspace(tmp_path / "work")
    (made.root / "link").symlink_to(tmp_path / "thesis")
    for path in (tmp_path / "thesis", made.root / "link" / "one", made.root / ".." / "thesis", made.root):
        with pytest.raises(AssertionError):
            made.remove(path)
    made.write(made.root / "a" / "b", "x")
    made.remove(made.root / "link")
    made.remove(made.root / "a")
    assert list(made.root.iterdir()) == []
    made.end()
    assert tree(tmp_path) == before
