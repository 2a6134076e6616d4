from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from scenarios.sweep.folder import Folder, LocalFolder, RemoteFolder, clear, open_folder
from sim.errors import InputError


def remote(path: Path) -> Folder:
    """A folder by pyarrow's own file system, as a bucket's would be."""
    return RemoteFolder(pafs.LocalFileSystem(), str(path), f"s3://bucket{path}", f"s3a://bucket{path}")


@pytest.fixture(params=[LocalFolder, remote])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    made: Folder = request.param(tmp_path / "made" / "here")
    return made


def test_files_come_and_go(folder: Folder) -> None:
    assert folder.files() == folder.files("results") == {}
    folder.write("results/wave=1/part", b"one")
    folder.write("run.json", b"{}")
    folder.write("run.json", b"{...}")
    assert folder.read("run.json") == b"{...}"
    assert {name: entry.size for name, entry in folder.files().items()} == {"results/wave=1/part": 3, "run.json": 5}
    assert list(folder.files("results/wave=1")) == ["results/wave=1/part"]
    folder.move("run.json", "set-aside/run.json")
    folder.remove("nothing")
    clear(folder, "results")
    assert list(folder.files()) == ["set-aside/run.json"]
    with pytest.raises(FileNotFoundError):
        folder.read("run.json")


def test_a_folder_that_nothing_was_put_into_vanishes(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "made" / "here")
    folder.write("claims/one", b"")
    clear(folder, "claims")
    folder.vanish()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    LocalFolder(tmp_path / "there").vanish()
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = LocalFolder(tmp_path)
    folder.write("file", b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        folder.write("file", b"new")
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
    for call in (lambda: folder.read("a"), lambda: folder.write("a", b""), folder.files, lambda: folder.remove("a")):
        with pytest.raises(OSError, match="no token"):
            call()
