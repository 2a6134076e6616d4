"""Nothing of the user's is changed or removed: files, links and folders of others, in every place of a store."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from highwater.lab.confirm.processes import JavaProcesses
from highwater.lab.confirm.request import check_keep
from highwater.lab.kafka import releases
from scenarios.format.catalogue import load
from scenarios.sweep import claim, parts
from scenarios.sweep.driver import Interrupted, run_sweep
from scenarios.sweep.folder import open_folder
from sim.errors import InputError
from tests import named
from tests.places import ROOT
from tests.scenarios.sweep.here import Here
from tests.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call

POWER = named.sweep((load("power"),), {"power": ("hw",)}, 313, 315)
"""A seed that fails, and one more."""
SEED = ("--mode", "hw", "--seed", 313)
OLD_S = 3_600
THEIRS = '{"schema_version": 1, "mine": true}'
"""What another program may write."""


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with everything in it: waves, a replay, a shrunk run."""
    from highwater.cli.main import main

    before = signal.getsignal(signal.SIGTERM)
    folder = tmp_path_factory.mktemp("whole") / "out"
    for seed in ("313", "314"):  # A wave each; few runs are inconclusive.
        words = ["sweep", "power", "--modes", "hw", "--seed", seed, "--local", "1", "--output", str(folder), "-q"]
        assert main(words) in (0, 3)
    words = [str(word) for word in (folder, *SEED)]
    assert main(["replay", *words]) == 0
    # As `shrink` would leave it, which takes its time.
    shutil.copytree(folder / "seeds", folder / "shrunk")
    (folder / "shrunk" / "313-hw" / "scenario.toml").write_text("schema = 1\nShrunk from a run of power, seed 313.\n")
    signal.signal(signal.SIGTERM, before)
    return folder


def folders(store: Path) -> Iterator[Path]:
    """Every folder of a store, and those that come and go."""
    yield store
    yield from sorted(path for path in store.rglob("*") if path.is_dir())
    yield store / "claims"
    yield store / "claims" / "probe-0badcafe"
    yield store / "results" / "wave=0badcafe-00000"
    yield store / "results" / "wave=0badcafe-00000" / "_temporary"


def strew(store: Path, outside: Path) -> dict[str, object]:
    """Put files, links and empty folders of others into every folder of a store; what they are."""
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "part-00000.parquet").write_bytes(b"PAR1mine")
    (outside / "run.json").write_text("{}")
    made: list[Path] = [outside]
    for number, folder in enumerate(dict.fromkeys(folders(store))):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("jan.json", ".hidden", "wave=1", "part-mine.parquet", "_MANIFEST.json.bak", "deadbeef.json"):
            (folder / name).write_text(f"mine {number}")
            made.append(folder / name)
        for name, aim in (("link", outside / "folder"), ("link.json", outside / "run.json"), ("dangling", "nowhere")):
            (folder / name).symlink_to(aim)
            made.append(folder / name)
        (folder / "empty").mkdir()
        made.append(folder / "empty")
    for path in made:
        if path.is_file() and not path.is_symlink():
            os.utime(path, (time.time() - OLD_S,) * 2)
    mine = {str(path) for path in made}
    return {path: what for path, what in tree(store.parent).items() if path in mine or path.startswith(str(outside))}


def leave_a_dead_driver(store: Path) -> None:
    """Its claim, and an attempt at a wave."""
    dead = claim.Owner("elsewhere", "", 1, "1", "2026-01-01T00:00:00Z")
    place = store / "claims" / "0badcafe.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"state": "working", **asdict(dead)}))
    os.utime(place, (0, 0))
    parts.write_part(open_folder(store), "wave=0badcafe-00000", 0, [])


COMMANDS: dict[str, tuple[object, ...]] = {
    "sweep": ("sweep", "power", "--modes", "hw", "--seeds", "313..317", "--local", 1, "--output", "out"),
    "repair": ("doctor", "out", "--repair", "--local", 1),
    "doctor": ("doctor", "out"),
    "replay": ("replay", "out", *SEED),
    "shrink": ("shrink", "out", *SEED, "--budget", "1s"),
    "explain": ("explain", "out", *SEED, "--budget", "1s"),
    "triage": ("triage", "out", "--most", 1),
    "report": ("report", "out", "-o", "out/jan.json", "--triage", 0),
    "report by a link": ("report", "out", "-o", "out/link.json", "--triage", 0),
    "draw": ("draw", "out", *SEED, "--output", "out/results/jan.json"),
    "show": ("show", "out", *SEED, "--budget", "1s", "--output", "out/results/jan.json"),
    "draw a trace": ("draw", "out", *SEED, "--format", "perfetto", "--output", "out/jan.json"),
    "trace": ("run", "canary", "--mode", "hw", "--trace", "out/jan.json"),
    "a run's trace": ("run", "canary", "--mode", "hw", "--trace", "out/run.json"),
    "compare": ("compare", "out"),
    "coverage": ("coverage", "out"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("damaged", [pytest.param(False, marks=pytest.mark.world), True])
def test_files_of_others_stay_in_every_place_of_a_store(
    highwater: Callable[..., Call],
    sweeps_here: None,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damaged: bool,
) -> None:
    store = tmp_path / "work" / "out"
    shutil.copytree(whole, store)
    monkeypatch.chdir(store.parent)
    leave_a_dead_driver(store)
    if damaged:
        part = max(store.glob("results/wave=*/part-00000.parquet"))
        part.write_bytes(part.read_bytes()[:-9])
        (store / "summary.json").unlink()
    before = strew(store, tmp_path / "work" / "outside")
    run = (store / "run.json").read_bytes()
    call = highwater(*COMMANDS[name])
    code = call.code
    assert code in (0, 1, 2, 3), call.err
    if name in ("replay", "shrink", "explain", "report", "report by a link", "draw", "draw a trace", "trace"):
        assert code == 2
    after = tree(store.parent)
    assert {path: after.get(path) for path in before} == before
    if name == "a run's trace":
        assert (code, (store / "run.json").read_bytes()) == (2, run)
    if name == "sweep":
        assert code in (0, 3), call.err
        assert not (store / "claims" / "0badcafe.json").exists()
        assert not (store / "results" / "wave=0badcafe-00000" / "part-00000.parquet").exists()


@pytest.mark.parametrize("how", ["interrupted", "full", "taken over"])
def test_files_of_others_stay_when_a_sweep_is_given_up(tmp_path: Path, how: str) -> None:
    store = tmp_path / "out"
    run_sweep(POWER, store, Here(), wave_units=1)
    before: dict[str, object] = {}

    def disturb(wave: int) -> None:
        if wave == 1:
            (name,) = (name for name, *_ in claim.others(open_folder(store)))
            (store / "results" / f"wave={name}-00001").mkdir()
            before.update(strew(store, tmp_path / "outside"))
            if how == "taken over":
                claim.take_over(open_folder(store), [name])
            else:
                raise Interrupted if how == "interrupted" else OSError(errno.ENOSPC, "No space left on device")

    more = named.sweep((load("power"),), {"power": ("hw",)}, 313, 320)
    with pytest.raises(BaseException, match=r"no space left|another driver has taken over|3 runs of"):
        run_sweep(more, store, Here(disturb), wave_units=1)
    assert before
    after = tree(tmp_path)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize(
    "name", ["claims/jan.json", "claims/deadbeef.json", "thesis.txt", ".env", "results/x/y", "run.json"]
)
@pytest.mark.parametrize("kind", ["file", "link", "folder", "linked folder"])
def test_a_folder_of_others_is_refused_before_anything_is_written(
    highwater: Callable[..., Call], tmp_path: Path, name: str, kind: str
) -> None:
    place, other = tmp_path / "proj" / name, tmp_path / "other"
    other.mkdir()
    (other / "jan.json").write_text("{}")
    (tmp_path / "proj").mkdir()
    if kind == "linked folder":
        (tmp_path / "proj" / name.partition("/")[0]).symlink_to(other)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(other / "jan.json")
        elif kind == "folder":
            place.mkdir()
        else:
            place.write_text("{}")
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (time.time() - OLD_S,) * 2)
    before = tree(tmp_path)
    call = highwater("sweep", "canary", "--seeds", "0..2", "--local", 1, "--output", tmp_path / "proj")
    assert (call.code, call.out) == (2, "")
    assert "is not empty and contains no sweep" in call.err or "was not written by highwater" in call.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["claims", "results", "run.json", "summary.json", "violations.jsonl"])
@pytest.mark.parametrize("kind", ["file", "another program's", "link"])
def test_a_store_in_which_something_else_stands_is_refused(
    highwater: Callable[..., Call], sweeps_here: None, whole: Path, tmp_path: Path, name: str, kind: str
) -> None:
    store = tmp_path / "out"
    shutil.copytree(whole, store)
    if (store / name).exists():
        (store / name).rename(tmp_path / "moved")
    else:
        (tmp_path / "moved").mkdir()
    if kind == "link":
        (store / name).symlink_to(tmp_path / "moved")
    else:
        (store / name).write_text("mine" if kind == "file" else THEIRS)
    before = tree(tmp_path)
    call = highwater("sweep", "power", "--modes", "hw", "--seeds", "313..316", "--local", 1, "--output", store)
    assert (call.code, f"{store / name} was not written by highwater: move it elsewhere" in call.err) == (2, True)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("content", ["mine", THEIRS])
@pytest.mark.parametrize("name", ["row.json", "history.txt", "scenario.toml", "broker-1/replication-offset-checkpoint"])
def test_a_replay_replaces_no_file_that_only_has_its_name(
    highwater: Callable[..., Call], whole: Path, tmp_path: Path, name: str, content: str
) -> None:
    store = tmp_path / "out"
    shutil.copytree(whole, store)
    assert highwater("replay", store, *SEED).code == 0
    (store / "seeds" / "313-hw" / name).write_text(content)
    before = tree(store)
    call = highwater("replay", store, *SEED)
    assert (call.code, f"something else than a replay ({name})" in call.err or "replay" in call.err) == (2, True)
    assert tree(store) == before


def test_outputs_are_replaced_by_their_own_kind(
    highwater: Callable[..., Call], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ("report", whole, "--triage", 0),
        ("draw", whole, *SEED),
        ("draw", whole, *SEED, "--format", "perfetto", "--output", "p.json"),
        ("run", "canary", "--mode", "hw", "--trace", "t.jsonl"),
    ):
        assert highwater(*words).code == 0
        assert highwater(*words).code == 0
    assert highwater("report", whole, "--triage", 0, "-o", "power-hw-313.svg").code == 2
    assert highwater("draw", whole, *SEED, "--output", "report.html").code == 2


def test_an_archive_replaces_none_of_others(highwater: Callable[..., Call], tmp_path: Path) -> None:
    for name in ("highwater-environment.tar.gz", "highwater-driver.py"):
        (tmp_path / name).write_text("mine")
        before = tree(tmp_path)
        assert highwater("spark-package", "-o", tmp_path).code == 2
        assert tree(tmp_path) == before
        (tmp_path / name).unlink()


def test_an_archive_replaces_an_older_one(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.sweep.archive.write_archive", lambda path: path.touch())  # It takes a while.
    for _ in range(2):
        assert highwater("spark-package", "-o", tmp_path).code == 0
    driver = tmp_path / "highwater-driver.py"
    driver.write_text(driver.read_text().replace("highwater.cli.main", "reports.cli"))
    assert highwater("spark-package", "-o", tmp_path).code == 0
    assert "highwater.cli.main" in driver.read_text()


def test_confirm_keeps_out_of_folders_of_others(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is there already, and holds something"):
        check_keep(tmp_path)
    if not shutil.which("java"):
        pytest.skip("there is no Java")
    (tmp_path / "link").symlink_to("notes.txt")
    with closing(JavaProcesses(None)) as processes:
        (processes.folder / "link").symlink_to(tmp_path)
    assert not processes.folder.exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_cache_keeps_what_others_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from highwater.cli import crash
    from scenarios.own_files import put
    from scenarios.sweep.java import kept

    folder = tmp_path / "cache" / "highwater" / "tracebacks"
    folder.mkdir(parents=True)
    (folder / "traceback-of-mine.txt").write_text("Traceback (most recent call last):")
    (folder / f"traceback-{0:019}-1.txt").write_text("mine")
    (folder / f"traceback-{0:019}-2.txt").symlink_to(tmp_path / "nowhere")
    before = tree(folder)
    monkeypatch.setattr(crash, "KEPT", 2)
    for _ in range(4):
        crash._write("Traceback (most recent call last):\n")
    assert {path: what for path, what in tree(folder).items() if path in before} == before
    assert len(list(folder.iterdir())) == len(before) + 2
    place = kept("spark", "log4j2.properties", "a = b\n")
    (place / "log4j2.properties").write_text("a = mine\n")
    with pytest.raises(InputError, match="was changed; move it elsewhere"):
        kept("spark", "log4j2.properties", "a = b\n")
    assert (place / "log4j2.properties").read_text() == "a = mine\n"
    jar = releases.jar_folder() / "one.jar"
    jar.symlink_to("nowhere")
    put(jar, b"ours")
    assert jar.is_symlink()


def test_make_deletes_nothing_of_others(tmp_path: Path) -> None:
    """`demo` goes on with the sweep that is there; `clean` and `venv` know what they made."""
    import subprocess

    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".venv/mine", "store/demo/mine", "dist/mine.whl", "build/mine"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / ".ci").mkdir()
    for name in ("pyproject.toml", ".ci/constraints.txt", ".ci/build_hook.py"):
        (tmp_path / name).touch()
    before = tree(tmp_path)
    assert subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True).returncode == 0
    assert tree(tmp_path) == before
    done = subprocess.run(["make", "venv"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "make did not make it" in done.stdout) == (2, True)
    assert tree(tmp_path) == before
    demo = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True).stdout
    assert "highwater sweep " in demo
    assert "rm " not in demo


def test_a_foreign_file_at_the_summarys_path_stops_a_sweep(tmp_path: Path) -> None:
    """It came while the sweep ran."""

    def put(wave: int) -> None:
        if wave == 1:
            (tmp_path / "out" / "summary.json").write_text("mine")

    with pytest.raises(InputError, match=r"summary.json was not written by highwater"):
        run_sweep(POWER, tmp_path / "out", Here(put), wave_units=1)
    assert (tmp_path / "out" / "summary.json").read_text() == "mine"
