from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from scenarios.sweep import ownership
from scenarios.sweep.folder import FILE, FOLDER, OTHER, Folder, LocalFolder, RemoteFolder, open_folder
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

ANY = re.compile(rb"")


def remote(path: Path) -> Folder:
    """A folder by pyarrow's own file system, as a bucket's would be."""
    return RemoteFolder(pafs.LocalFileSystem(), str(path), f"s3://bucket{path}", f"s3a://bucket{path}")


@pytest.fixture(params=[LocalFolder, remote])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    made: Folder = request.param(tmp_path / "made" / "here")
    return made


def test_files_come_and_go(folder: Folder) -> None:
    assert folder.files() == folder.files("results") == {}
    assert folder.entries() == {}
    folder.write("results/wave=1/part", b"one", ANY)
    folder.write("run.json", b"{}", ANY)
    folder.write("run.json", b"{...}", ANY)
    assert folder.read("run.json") == b"{...}"
    assert {name: entry.size for name, entry in folder.files().items()} == {"results/wave=1/part": 3, "run.json": 5}
    assert list(folder.files("results/wave=1")) == ["results/wave=1/part"]
    assert folder.entries() == {"results": FOLDER, "run.json": FILE}
    folder.remove("run.json", ANY)
    folder.remove("nothing", ANY)
    folder.prune("results/wave=1")
    assert list(folder.files()) == ["results/wave=1/part"]
    folder.remove("results/wave=1/part", ANY)
    folder.prune("results/wave=1")
    folder.prune("results")
    assert folder.entries() == {}
    with pytest.raises(FileNotFoundError):
        folder.read("run.json")


def test_a_folder_that_nothing_was_put_into_vanishes(folder: Folder, tmp_path: Path) -> None:
    folder.write("claims/one", b"", ANY)
    folder.remove("claims/one", ANY)
    folder.prune("claims")
    folder.vanish()
    assert not (tmp_path / "made" / "here").exists()


@pytest.mark.parametrize("make", [LocalFolder, remote])
def test_a_folder_that_was_there_stays(make: Callable[[Path], Folder], tmp_path: Path) -> None:
    folder = make(tmp_path)
    folder.write("one", b"", ANY)
    folder.remove("one", ANY)
    folder.vanish()
    assert tmp_path.is_dir()


def test_empty_folders_of_others_stay(folder: Folder, tmp_path: Path) -> None:
    here = tmp_path / "made" / "here" / "results"
    for name in ("sparks/_temporary/0/task_1", "ours/mine"):
        (here / name).mkdir(parents=True)
    folder.prune("results/sparks")
    folder.prune("results/ours")
    assert not (here / "sparks").exists()
    assert (here / "ours" / "mine").is_dir()


def test_nothing_is_changed_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("mine")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to("../elsewhere")
    (tmp_path / "here" / "file").symlink_to("../elsewhere/file")
    folder = LocalFolder(tmp_path / "here")
    with pytest.raises(OSError, match="it is a link, and links are not followed"):
        folder.write("link/file", b"", ANY)
    with pytest.raises(OSError, match="it is a link, and links are not followed"):
        folder.remove("link/file", ANY)
    folder.prune("link")
    assert folder.entries() == {"link": OTHER, "file": OTHER}
    assert [entry.regular for entry in folder.files().values()] == [False]
    assert (tmp_path / "elsewhere" / "file").read_text() == "mine"


def test_an_unfinished_file_takes_no_other_files_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.own_files.secrets.token_hex", lambda _: "0badcafe")
    (tmp_path / ".file.0badcafe").write_text("mine")
    with pytest.raises(FileExistsError):
        LocalFolder(tmp_path).write("file", b"ours", ANY)
    assert (tmp_path / ".file.0badcafe").read_text() == "mine"


def test_a_wave_is_cleared_of_what_this_program_wrote(folder: Folder) -> None:
    place = "results/wave=0badcafe-00000"
    folder.write(f"{place}/part-00000.parquet", b"PAR1torn", ANY)
    folder.write(f"{place}/_temporary/0/_temporary/attempt_1/part-00001-c000.zstd.parquet", b"", ANY)
    folder.write(f"{place}/notes.txt", b"mine", ANY)
    ownership.clear(folder, place)
    assert list(folder.files()) == [f"{place}/notes.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = LocalFolder(tmp_path)
    folder.write("file", b"old", ANY)

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        folder.write("file", b"new", ANY)
    assert folder.read("file") == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_that_would_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(OSError, match="no regular file"):
        LocalFolder(tmp_path).read("run.json")


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("store/power", "store/power"),
        ("store/a:b", "store/a:b"),
        ("C:stuff", "C:stuff"),
        ("file:/tmp/x", "/tmp/x"),  # noqa: S108 - only named
        ("file:///tmp/a%20b", "/tmp/a b"),  # noqa: S108
        ("file://localhost/x", "/x"),
    ],
)
def test_place_on_this_machine(place: str, path: str) -> None:
    assert open_folder(place).local == Path(path)


@pytest.mark.parametrize(("place", "uri"), [("s3://bucket/a b", "s3a://bucket/a b"), ("s3a://b/x/", "s3a://b/x")])
def test_s3_by_its_two_names(place: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    folder = open_folder(place)
    assert (folder.local, folder.shown, folder.spark_uri) == (None, place, uri)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3b://x/y", "a URI of s3b: is not known; did you mean 's3'?"),
        ("http://x/y", "is not known"),
        ("s3://", "names no bucket"),
        ("s3a://KEY:hunter2@bucket/x", "has credentials in it; give them by the environment or --conf"),
        ("file://elsewhere/x", "is not of the form file:///PATH"),
    ],
)
def test_name_that_is_no_place(place: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        open_folder(place)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_any_failure_of_a_storage_is_one_of_the_system() -> None:
    class Failing:
        def __getattr__(self, name: str) -> object:
            def fail(*_: object, **__: object) -> None:
                raise pa.ArrowException("no token")

            return fail

    folder = RemoteFolder(Failing(), "x", "abfss://c@h/x", "abfss://c@h/x")  # type: ignore[arg-type]
    for call in (
        lambda: folder.read("a"),
        lambda: folder.write("a", b"", ANY),
        folder.files,
        lambda: folder.remove("a", ANY),
    ):
        with pytest.raises(OSError, match="no token"):
            call()
