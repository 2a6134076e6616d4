"""The plain and the compiled build: which one runs, and of which sources it was made."""

from __future__ import annotations

import json
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scenarios import version
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(version.__file__).parents[1]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The record of a build that runs as compiled; of these sources."""
    file = tmp_path / "build.json"
    record = {"code_version": version.code_version(), "mypy": "2.4.1", "python": "cp311", "files": ["sim/errors.so"]}
    file.write_text(json.dumps(record))
    monkeypatch.setattr("sim.errors.__file__", "sim/errors.so")
    monkeypatch.setattr(version, "RECORD", str(file))
    forget()
    yield file
    forget()


def forget() -> None:
    for cached in (version.own_version, version.build, version.check_build):
        cached.cache_clear()


def test_sources_are_the_plain_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.errors.__file__", "sim/errors.py")
    assert version.build.__wrapped__() == "plain"
    assert version.compiled_files() == []


def test_a_compiled_build_is_named_by_its_record(compiled: Path) -> None:
    assert version.build() == "compiled (mypyc 2.4.1, cp311)"
    assert version.compiled_files() == ["sim/errors.so"]
    version.check_build()


def test_other_sources_beside_it_are_refused(compiled: Path) -> None:
    record = json.loads(compiled.read_text())
    compiled.write_text(json.dumps(record | {"code_version": "0123456789abcdef"}))
    for asked in (version.code_version, version.check_build):
        with pytest.raises(InputError, match=r"^the sources in .* are not those that were compiled there"):
            asked()


def test_compiled_build_without_its_record_is_refused(compiled: Path) -> None:
    compiled.unlink()
    for asked in (version.code_version, version.check_build, version.build):
        with pytest.raises(InputError, match=r"build\.json cannot be read"):
            asked()


@pytest.mark.parametrize("changed", ["sim/kernel/scheduler.py", "highwater/cli/main.py"])
def test_a_checkout_that_has_changed_since_is_refused(
    compiled: Path, changed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / ".venv" / "lib"
    for root, package in product((tmp_path, copy), version.PACKAGES):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr("importlib.resources.files", lambda name: copy / name)
    version.check_build()
    forget()
    with (tmp_path / changed).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(InputError, match=r"have changed since `make fast`"):
        version.check_build()
    forget()
    (tmp_path / "reports").rename(tmp_path / "other")
    version.check_build()
