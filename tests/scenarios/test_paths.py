from __future__ import annotations

import errno
import os
import time
import tracemalloc
from pathlib import Path

import pytest

from scenarios import paths
from sim.errors import InputError, StorageError


@pytest.mark.parametrize("name", ["canary", "kip101-scenario-2", "a.b", "..a", "0", "x" * 100])
def test_names(name: str) -> None:
    assert paths.name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "A", "a/b", "a b", "a\n", "é", "a_b", "x" * 101, None, 3, ["a"]]
)
def test_word_that_is_no_name(name: object) -> None:
    with pytest.raises(InputError, match=r"is no scenario's name: \[a-z0-9.-\]\+"):
        paths.name(name, "scenario's name")


@pytest.mark.parametrize("part", ["seeds", "0-hw", "acks=1,min.insync.replicas=2", "row.json"])
def test_components(part: str) -> None:
    assert paths.component(part) == part


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, InputError),
        (errno.ENOTDIR, InputError),
        (errno.EISDIR, InputError),
        (errno.ENAMETOOLONG, InputError),
        (errno.ENOSPC, StorageError),
        (errno.EDQUOT, StorageError),
        (errno.EACCES, StorageError),
        (errno.EROFS, StorageError),
        (errno.EIO, StorageError),
    ],
)
def test_errors_of_the_system_are_mistakes_or_troubles(number: int, kind: type[Exception]) -> None:
    found = paths.of_os(OSError(number, os.strerror(number)), "cannot read x")
    assert type(found) is kind
    assert str(found) == f"cannot read x: {os.strerror(number)}"


def test_files_of_no_other_kind_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, said in (
        (tmp_path, "Is a directory|no regular file"),
        (tmp_path / "fifo", "it is no regular file"),
        (Path("/dev/zero"), "it is no regular file"),
        (tmp_path / "none", "No such file"),
        (Path("a\0b"), "no file has such a name"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(InputError, match=said):
            paths.read(path, 10)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x" * 10)
    assert paths.read(file, 10) == b"x" * 10
    with pytest.raises(InputError, match="it has more than 9 bytes"):
        paths.read(file, 9)


def test_unreadable_file_is_a_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match="cannot be read: Permission denied"):
        paths.read(tmp_path / "x", 10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"9" * 5_000, "it is not JSON"),
        (b"[" * 100_000, "nested more than 100 deep"),
        (b"[" * 102 + b"]" * 102, "nested more than 100 deep"),
        (b'{"a": {"b": 9223372036854775808}}', "^a.b: a number is beyond 64 bits$"),
        (b'{"a": [-9223372036854775809]}', "^a: a number is beyond 64 bits$"),
        (b'{"a": NaN}', "^a: nan is no number$"),
        (b'{"a": [-Infinity]}', "^a: -inf is no number$"),
        (b'{"a": "\\ud800"}', "^a: .* is no text$"),
        (b'{"\\udfff": 1}', "^a key: .* is no text$"),
    ],
)
def test_json_that_nothing_takes(text: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        paths.parse_json(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "^not TOML: "),
        ("a = " + "[" * 5_000, "nested more than 100 deep"),
        ("a = " + "[" * 102 + "]" * 102, "nested more than 100 deep"),
        (f"[{'.'.join('a' * 16)}]\nx = {'{a = ' * 90}1{'}' * 90}", "nested more than 100 deep"),
        ("a = " + "9" * 5_000, "^not TOML: "),
        ("a = 0x" + "f" * 5_000, "^a: a number is beyond 64 bits$"),
        ("[a]\nb = [nan]", "^a.b: nan is no number$"),
        ("a = inf", "^a: inf is no number$"),
    ],
)
def test_toml_that_nothing_takes(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        paths.parse_toml(text)


def test_the_largest_numbers_are_taken() -> None:
    assert paths.parse_json(b"[9223372036854775807, -9223372036854775808]") == [(1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("dot", [".", " . ", '"."'])
@pytest.mark.parametrize("key", ["{} = 1", "[{}]", "x = {{{} = 1}}"])
def test_a_long_dotted_key_is_refused_before_it_costs_memory(dot: str, key: str) -> None:
    """`tomllib` takes 1.6 GB for one of 20,000 parts."""
    part = '"a"' if dot == '"."' else "a"
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"^line 2: a key of more than 16 parts$"):
            paths.parse_toml("x = 1\n" + key.format(dot.strip('"').join([part] * 20_000)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert paths.parse_toml(key.format(".".join(["a"] * 16)))


def test_a_long_word_takes_no_time_to_look_at() -> None:
    begin_s = time.process_time()
    for text in ("a" * paths.SCENARIO_BYTES, '"' * paths.SCENARIO_BYTES, "a " * (paths.SCENARIO_BYTES // 2)):
        with pytest.raises(InputError, match="not TOML"):
            paths.parse_toml(text)
    assert time.process_time() - begin_s < 10


def test_json_in_place_of_toml_is_named_with_the_command_that_takes_it(tmp_path: Path) -> None:
    from highwater.cli.main import main

    assert main(["replay", "power", "--mode", "hw", "--seed", "1", "--output", str(tmp_path), "-q"]) == 0
    (folder,) = (tmp_path / "seeds").iterdir()
    for name, said in (
        ("plan.json", "^not TOML, but a recorded run .*'highwater run --plan FILE'.* take it$"),
        ("row.json", "^not TOML, but the row or trace of a run: "),
        ("trace.jsonl", "^not TOML, but the row or trace of a run: "),
        ("metrics.json", "^not TOML, but JSON$"),
        ("history.txt", "^not TOML: "),
    ):
        with pytest.raises(InputError, match=said):
            paths.parse_toml((folder / name).read_text(encoding="utf-8"))
