"""Nobody gets out of the folder of the results: whatever a store, a plan or a link says, nothing else changes."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reports.evidence import folder as evidence
from scenarios.format.catalogue import load
from scenarios.sweep import manifest
from sim.errors import InputError
from tests.named import run
from tests.places import ROOT
from tests.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call

REPLAY = ("--scenario", "canary", "--mode", "hw", "--seed", "0")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that looks like a replay's, as far as any that somebody else owns may."""
    folder = tmp_path / "outside"
    (folder / "0-hw").mkdir(parents=True)
    for file in ("row.json", "history.txt", "0-hw/row.json", "0-hw/history.txt"):
        (folder / file).write_text("{}")
    return folder


@pytest.fixture
def store(swept: Path, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "inner" / "store"
    shutil.copytree(swept, folder)
    shutil.rmtree(folder / "canary", ignore_errors=True)
    monkeypatch.chdir(tmp_path / "inner")
    return folder


def change(store: Path, *path: Any, to: object) -> None:
    """Put a value into run.json."""
    data = json.loads((store / "run.json").read_text())
    where = data
    for key in path[:-1]:
        where = where[key]
    where[path[-1]] = to
    (store / "run.json").write_text(json.dumps(data))


def renamed(store: Path, name: str) -> None:
    """Give the scenario canary another name, wherever the store says it."""
    text = (store / "run.json").read_text().replace('"canary"', json.dumps(name))
    (store / "run.json").write_text(text)


NAMES = (
    *("..", ".", "../../outside", "/etc", "a/b", "a\\b", "\0", "a\0b", "\n", "\x1b[31m", "", " ", "x" * 101, "~", "A"),
    *("canary/../../../outside", "..\\..", "-\u202e", "canary\udcff"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_of_a_store_cannot_be_called_so(
    highwater: Callable[..., Call], store: Path, outside: Path, name: str
) -> None:
    renamed(store, name)
    before = tree(outside.parent)
    call = highwater("replay", store, "--mode", "hw", "--seed", "0", "--scenario", name)
    assert (call.code, call.out) == (2, "")
    assert tree(outside.parent) == before


@pytest.mark.parametrize("name", ["..", ".", "a/b", "x" * 101, "A", ""])
def test_a_scenario_file_cannot_be_called_so(
    highwater: Callable[..., Call], store: Path, tmp_path: Path, name: str
) -> None:
    text = ROOT.joinpath("scenarios/files/canary.toml").read_text()
    (tmp_path / "x.toml").write_text(text.replace('name = "canary"', f"name = {json.dumps(name)}"))
    before = tree(tmp_path)
    assert highwater("replay", tmp_path / "x.toml", "--mode", "hw", "--seed", "0").code == 2
    assert tree(tmp_path) == before


@pytest.mark.parametrize("mode", ["../../../outside", "..", "/etc", "a/b", "hw/../../..", "hw\0"])
def test_a_mode_of_a_store_leads_nowhere(highwater: Callable[..., Call], store: Path, outside: Path, mode: str) -> None:
    change(store, "modes", "canary", to=[mode])
    before = tree(outside.parent)
    assert highwater("replay", store, "--scenario", "canary", "--seed", "0").code == 2
    assert tree(outside.parent) == before


@pytest.mark.parametrize(
    "grid",
    [
        {"../../outside": ["1", "all"]},
        {"acks": ["../../outside", "all"]},
        {"acks": ["all", "/etc"]},
        {"min.insync.replicas": ["1", "2"]},
        {"acks": [["1"], "all"]},
        {"acks": "../.."},
    ],
)
def test_a_grid_of_a_store_leads_nowhere(
    highwater: Callable[..., Call], store: Path, outside: Path, grid: dict[str, Any]
) -> None:
    change(store, "grid", to=grid)
    before = tree(outside.parent)
    for key, values in grid.items():
        assert highwater("replay", store, *REPLAY, "--set", f"{key}={values[0]}").code == 2
    assert tree(outside.parent) == before


@pytest.mark.parametrize("source", ["/dev/zero", "../../outside/row.json", "fifo.toml", "/proc/self/mem", "\0"])
def test_the_source_of_a_scenario_is_not_trusted(
    highwater: Callable[..., Call], store: Path, outside: Path, source: str
) -> None:
    """It is only compared with, if it can be: a file that never ends, or waits, is not read."""
    os.mkfifo("fifo.toml")
    place = [one["name"] for one in json.loads((store / "run.json").read_text())["scenarios"]].index("canary")
    change(store, "scenarios", place, "source", to=source)
    before = tree(outside)
    assert highwater("replay", store, *REPLAY).code == 0
    assert tree(outside) == before


def forge_manifests(store: Path) -> None:
    for path in store.rglob(manifest.NAME):
        true = manifest.from_bytes(path.name, path.read_bytes())
        contents = {part.name: (path.parent / part.name).read_bytes() for part in true.parts}
        parts = [
            replace(part, bytes=len(contents[part.name]), digest=manifest.digest_of(contents[part.name]))
            for part in true.parts
        ]
        path.write_bytes(replace(true, parts=tuple(parts)).to_bytes())


@pytest.mark.parametrize("column", ["scenario", "mode", "replay", "digest", "error"])
@pytest.mark.parametrize("text", ["../../outside", "/etc", "\x1b[2J"])
def test_rows_lead_nowhere(highwater: Callable[..., Call], store: Path, outside: Path, column: str, text: str) -> None:
    for part in store.rglob("part-*.parquet"):
        table = pq.read_table(part)
        changed = pa.array([text] * len(table))
        table = table.set_column(table.column_names.index(column), table.schema.field(column), changed)
        pq.write_table(table, part)
    before = tree(outside)
    call = highwater("replay", store, *REPLAY)
    assert (call.code, "differs from what was written" in call.err or "bytes in place of" in call.err) == (0, True)
    # Whoever can change a part can change what its manifest says of it.
    forge_manifests(store)
    call = highwater("replay", store, *REPLAY)
    assert call.code == (4 if column == "digest" else 0)
    assert "\x1b" not in call.out + call.err
    assert tree(outside) == before
    assert {path.name for path in (store / "canary" / "seeds").iterdir()} == {"0-hw"}


@pytest.mark.parametrize("name", ["canary", "canary/seeds", "canary/seeds/0-hw"])
@pytest.mark.parametrize("aim", ["folder", "file", "nothing", "loop", "inside"])
def test_links_are_not_followed(
    highwater: Callable[..., Call], store: Path, outside: Path, name: str, aim: str
) -> None:
    place = store / name
    place.parent.mkdir(parents=True, exist_ok=True)
    aims = {"folder": outside, "file": outside / "row.json", "nothing": Path("/nonexistent"), "loop": place}
    place.symlink_to(aims.get(aim, store / "results"))
    before = tree(outside.parent)
    call = highwater("replay", store, *REPLAY)
    assert (call.code, call.out) == (2, "")
    assert "is a link, which is not followed" in call.err
    assert tree(outside.parent) == before


@pytest.mark.parametrize("name", ["row.json", "history.txt", "broker-1", "broker-1/highwater-0", "broker-1/x"])
@pytest.mark.parametrize("aim", ["file", "folder"])
def test_links_in_a_replay_are_neither_followed_nor_removed(
    highwater: Callable[..., Call], store: Path, outside: Path, name: str, aim: str
) -> None:
    assert highwater("replay", store, *REPLAY).code == 0
    place = store / "canary" / "seeds" / "0-hw" / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(outside / "row.json" if aim == "file" else outside)
    before = tree(outside.parent)
    call = highwater("replay", store, *REPLAY)
    assert (call.code, "holds something else than a replay" in call.err) == (2, True)
    assert tree(outside.parent) == before


@pytest.mark.parametrize(
    "name", ["notes.txt", "broker-1/notes.txt", "broker-1/highwater-0/notes.txt", "seeds/x", ".git/x"]
)
def test_files_that_no_replay_made_stay(highwater: Callable[..., Call], store: Path, name: str) -> None:
    assert highwater("replay", store, *REPLAY).code == 0
    folder = store / "canary" / "seeds" / "0-hw"
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("mine")
    before = tree(store)
    call = highwater("replay", store, *REPLAY)
    assert call.code == 2
    assert f"something else than a replay ({name.replace('seeds/x', 'seeds').replace('.git/x', '.git')})" in call.err
    assert tree(store) == before
    (folder / name).unlink()
    if name in ("seeds/x", ".git/x"):
        (folder / name).parent.rmdir()
    assert highwater("replay", store, *REPLAY).code == 0


def test_hard_links_keep_their_other_end(highwater: Callable[..., Call], store: Path, outside: Path) -> None:
    assert highwater("replay", store, *REPLAY).code == 0
    place = store / "canary" / "seeds" / "0-hw" / "history.txt"
    other = outside / "history.txt"
    other.write_text(place.read_text() + "a remark")
    place.unlink()
    place.hardlink_to(other)
    assert highwater("replay", store, *REPLAY).code == 0
    assert other.read_text() == place.read_text() + "a remark"


def test_a_link_that_comes_while_a_replay_runs_is_not_followed(
    tmp_path: Path, outside: Path, highwater: Callable[..., Call]
) -> None:
    canary = load("canary")
    place = evidence.ReplayFolder(tmp_path / "root", ("seeds", "0-hw"))
    evidence.prepare(place)
    result = run(canary, "hw", 0, trace=True)
    place.path.rmdir()
    place.path.symlink_to(outside)
    before = tree(outside)
    with pytest.raises(InputError, match="is a link, which is not followed"):
        evidence.write(place, canary, result)
    assert tree(outside) == before


@pytest.mark.parametrize("name", ["../../outside", "/etc", "..", "a\0", "x" * 101])
def test_a_plan_cannot_be_called_so(
    highwater: Callable[..., Call], store: Path, outside: Path, tmp_path: Path, name: str
) -> None:
    assert highwater("replay", store, "--scenario", "power", "--mode", "hw", "--seed", "0").code in (0, 1)
    plan = store / "power" / "seeds" / "0-hw" / "plan.json"
    data = json.loads(plan.read_text())
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({**data, "scenario": name}))
    before = tree(tmp_path)
    call = highwater("run", "--plan", file)
    assert (call.code, "scenario = " in call.err) == (2, True)
    assert tree(tmp_path) == before


def test_the_folder_that_the_user_names_may_be_a_link(
    highwater: Callable[..., Call], store: Path, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert highwater("replay", store, *REPLAY, "--output", tmp_path / "link").code == 0
    assert (tmp_path / "real" / "seeds" / "0-hw" / "row.json").is_file()
