"""Folders that were damaged in every way that came to mind: each is named, each is repaired."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from scenarios.sweep import checkup, store
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.folder import LocalFolder, open_folder
from sim.errors import InputError
from tests import named
from tests.places import FIXTURES
from tests.scenarios.sweep.here import Here
from tests.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable

CANARY = named.sweep((load("canary"),), {"canary": ("hw",)}, 0, 12)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three waves of two parts."""
    output = tmp_path_factory.mktemp("sound") / "out"
    run_sweep(CANARY, output, Here(), chunks=2, wave_units=4)
    return output


@pytest.fixture
def output(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "out")
    return tmp_path / "out"


def wave(output: Path, index: int = 1) -> Path:
    waves = sorted((output / "results").glob("wave=*"))
    return waves[index % len(waves)]


def part_of(folder: Path) -> Path:
    return max(folder.glob("part-*.parquet"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def damages(at: int = 1) -> dict[str, tuple[Callable[[Path], object], str, str]]:
    """Name -> what is done to a folder, the end of what is named for it, what is said of it; `at`: to which wave."""
    double, manifest, foreign = "part-00007.parquet", "_MANIFEST.json", checkup.FOREIGN

    def here(out: Path) -> Path:
        return wave(out, at)

    def part(out: Path) -> Path:
        return part_of(here(out))

    def borrowed(out: Path) -> None:
        shutil.copy(part_of(wave(out, at + 1)), part(out))

    def alien(out: Path) -> None:
        shutil.copy(next((FIXTURES / "store-v8").rglob("part-*")), here(out) / double)

    def again(out: Path) -> None:
        """Another driver did the same seeds, cut otherwise."""
        other = out.with_name("other")
        run_sweep(CANARY, other, Here(), wave_units=(6, 4, 12)[at % 3])
        for done in (other / "results").iterdir():
            done.rename(out / "results" / done.name)
        shutil.rmtree(other)

    return {
        "part missing": (lambda out: part(out).unlink(), ".parquet", "is missing"),
        "part truncated": (lambda out: part(out).write_bytes(b"PAR1"), ".parquet", "has 4 bytes in place of"),
        "part flipped": (lambda out: flip(part(out)), ".parquet", "differs from what was written"),
        "part empty": (lambda out: part(out).write_bytes(b""), ".parquet", "has 0 bytes in place of"),
        "part doubled": (lambda out: shutil.copy(part(out), here(out) / double), double, "is a copy of part-"),
        "part of another wave": (borrowed, ".parquet", ""),
        "foreign part": (alien, double, foreign),
        "foreign file": (lambda out: (here(out) / "notes.txt").touch(), "notes.txt", foreign),
        "foreign link": (lambda out: (here(out) / "link").symlink_to("nowhere"), "link", foreign),
        "foreign pipe": (lambda out: os.mkfifo(here(out) / double), double, foreign),
        "manifest beside waves": (lambda out: (out / "results" / manifest).touch(), manifest, foreign),
        "manifest replaced": (lambda out: replace_by_link(here(out) / manifest), manifest, "is missing"),
        "foreign file beside waves": (lambda out: (out / "results" / "notes.txt").touch(), "notes.txt", foreign),
        "wave doubled": (
            lambda out: shutil.copytree(here(out), out / "results" / "wave=00000000-00009"),
            manifest,
            "is of wave=",
        ),
        "waves done twice": (again, "", "has the same rows as other waves"),
        "manifest missing": (lambda out: (here(out) / manifest).unlink(), "", "has no _MANIFEST.json"),
        "manifest truncated": (lambda out: cut(here(out) / manifest), manifest, "is torn or was changed"),
        "manifest flipped": (lambda out: flip(here(out) / manifest), manifest, "is torn or was changed"),
        "wave missing": (lambda out: shutil.rmtree(here(out)), "", ""),
        "run missing": (lambda out: (out / "run.json").unlink(), "run.json", "is missing"),
        "run truncated": (lambda out: cut(out / "run.json"), "run.json", "is torn"),
        "run of another": (lambda out: change(out / "run.json", rules={"a": "b"}), "run.json", "another sweep"),
        "run of nothing": (lambda out: change(out / "run.json", seeds=5), "run.json", "is not what a sweep wrote"),
        "run with fewer seeds": (lambda out: change(out / "run.json", seeds=[[0, 4]]), "run.json", "fewer seeds"),
        "summary missing": (lambda out: (out / "summary.json").unlink(), "summary.json", "is missing"),
        "summary truncated": (lambda out: cut(out / "summary.json"), "summary.json", "is torn"),
        "summary of less": (lambda out: change(out / "summary.json", runs=4), "summary.json", "counts 4 of 12 runs"),
        "summary of nothing": (lambda out: change(out / "summary.json", runs=None), "summary.json", "is torn"),
        "list torn": (lambda out: cut(out / "violations.jsonl"), "violations.jsonl", "lists 0 of 12 runs"),
        "list of less": (
            lambda out: (out / "violations.jsonl").write_text('{"schema_version": 6, "scenario": "canary"}\n'),
            "violations.jsonl",
            "lists 1 of 12",
        ),
        "list missing": (lambda out: (out / "violations.jsonl").unlink(), "violations.jsonl", "is missing"),
    }


def damaged_and_repaired(name: str, at: int, sound: Path, output: Path) -> None:
    """Do a damage, find it, repair it, and compare the rows."""
    damage, where, what = damages(at)[name]
    damage(output)
    folder = open_folder(output)
    found = checkup.check(folder)
    if where or what:
        assert any(finding.where.endswith(where) and what in finding.what for finding in found.findings), found.findings
    else:
        assert (found.findings, found.missing) == ((), 4)
    assert checkup.repair(folder, found, Here())["complete"]
    left = checkup.check(folder)
    # Nobody else's file goes, and it is named for as long as it is there.
    assert {finding.where for finding in left.findings} == {
        finding.where for finding in found.findings if finding.what == checkup.FOREIGN
    }
    assert (left.missing, left.at_work) == (0, "")
    assert store.Store(output).rows() == store.Store(sound).rows()


@pytest.mark.parametrize("name", damages())
def test_damage_is_named_and_repaired(name: str, sound: Path, output: Path) -> None:
    damaged_and_repaired(name, 1, sound, output)


def test_only_the_damaged_wave_is_run_again(output: Path) -> None:
    kept = {path: path.stat().st_mtime_ns for path in output.rglob("part-*") if path.parent != wave(output)}
    flip(wave(output) / "part-00000.parquet")
    folder = open_folder(output)
    found = checkup.check(folder)
    assert found.missing == 4
    checkup.repair(folder, found, Here())
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize("name", ["run.json", "summary.json", "violations.jsonl"])
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_repair_replaces_no_file_of_others(output: Path, name: str, kind: str) -> None:
    place, other = output / name, output.parent / name
    place.rename(other)
    if kind == "link":
        place.symlink_to(other)
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_text('{"name": "mine"}')
        named = [str(defect) for defect in checkup.check(open_folder(output)).findings if defect.where == "run.json"]
        assert named == ([f"run.json {checkup.NOT_OURS}"] if name == "run.json" else [])
    flip(part_of(wave(output)))
    before = tree(output.parent)
    folder = open_folder(output)
    with pytest.raises(InputError, match=f"{name} was not written by highwater: move it elsewhere"):
        checkup.repair(folder, checkup.check(folder), Here())
    assert tree(output.parent) == before


def test_only_what_a_wave_may_hold_goes_with_it(output: Path) -> None:
    """Also where a file of ours was replaced by another's."""
    place = wave(output)
    torn, replaced = sorted(place.glob("part-*"))
    cut(torn)
    replaced.write_text("all of it")
    foreign = (FIXTURES / "store-v8" / "run.json").read_bytes()
    (place / "part-00009.parquet").write_bytes(b"PAR1" + foreign + b"PAR1")
    (place / ".part-00001.parquet.0badcafe").write_text("mine")
    (place / ".part-00001.parquet.00c0ffee").write_bytes(b"PAR1half")
    (place / "_SUCCESS").write_text("mine, too")
    (place / "mine").mkdir()
    folder = open_folder(output)
    checkup.repair(folder, checkup.check(folder), Here())
    assert sorted(path.name for path in place.iterdir()) == [
        ".part-00001.parquet.0badcafe",
        "_SUCCESS",
        "mine",
        replaced.name,
        "part-00009.parquet",
    ]
    assert replaced.read_text() == "all of it"
    assert not checkup.check(folder).missing


def test_folder_that_is_no_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is .* the folder of a sweep"):
        checkup.check(open_folder(tmp_path))


def test_what_a_driver_at_work_moves_is_no_finding(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of Spark's tasks are listed, and gone when they are read."""
    unfinished = wave(output) / "_temporary" / "0" / "task_1"
    unfinished.mkdir(parents=True)
    part = unfinished / "part-00000-1.zstd.parquet"
    shutil.copy(part_of(wave(output)), part)
    name = part.relative_to(output).as_posix()
    read = LocalFolder.read

    def moved(self: LocalFolder, path: str) -> bytes:
        if path == name:
            raise FileNotFoundError(path)
        return read(self, path)

    assert [finding.where for finding in checkup.check(LocalFolder(output)).findings] == [name]
    monkeypatch.setattr(LocalFolder, "read", moved)
    assert checkup.check(LocalFolder(output)).findings == ()
