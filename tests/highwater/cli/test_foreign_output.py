"""Every command that writes leaves what others have in the same folder, also if it is refused or interrupted."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from highwater.cli.main import COMMANDS, highwater
from tests.places import ROOT
from tests.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from tests.conftest import Call

pytestmark = pytest.mark.usefixtures("few_continuations")

SEED = ("--mode", "hw", "--seed", 313)
BUDGET = ("--budget", "4s")
"""Also finds the cause, which takes 0.3 s alone, on a busy machine; with less, the command is refused."""
PATHS = {"FILE", "DIR", "DIR|URI"}
READ = {"--answers", "--server-properties", "--plan", "--reuse", "--broker-log", "--confirmed"}
"""Options that name a file or folder to read."""
DISTANCES = ("--distance", "--partition", "partition-0", "--most-events", 2)
LOG = ROOT / "tests" / "fixtures" / "metadata" / "reassignment-again-4.3.1.txt.xz"
FOLDERS: dict[tuple[str, str], tuple[object, ...]] = {
    ("advise", "--output"): ("advise", "--replicas", 3, "--seeds", 2),
    ("sweep", "--output"): ("sweep", "power", "--modes", "hw", "--seeds", "313..315", "--local", 1, "-q"),
    ("review", "--output"): (
        *("review", "kip320+stop_replica=unchecked", "--against", "kip320", "--scenarios", "power", "--seeds", 2),
    ),
    ("replay", "--output"): ("replay", "power", *SEED),
    ("shrink", "--output"): ("shrink", "power", *SEED, *BUDGET),
    ("explain", "--output"): ("explain", "power", *SEED, *BUDGET),
    ("hunt", "--output"): (*("hunt", "--kafka", "4.4.0", "--scenarios", "rolling", "--for", "1s", "--confirm", 0),),
    ("audit", "--stories"): ("audit", LOG, *DISTANCES),
    ("confirm", "--keep"): ("confirm", "canary", "--kafka", "4.4.0"),
    ("ticket", "--output"): ("ticket", "reassignment-back"),
    ("spark-package", "--output"): ("spark-package",),
    ("claims", "--output"): ("claims", "acks-all", "--seeds", "0..2"),
    ("zoo", "--output"): ("zoo", "count", "elr-chaos", "--seeds", "0..1"),
}
"""Command and option that names a folder to write to -> the command's words without the option."""
FILES: dict[tuple[str, str], tuple[object, ...]] = {
    ("run", "--junit-xml"): ("run", "canary", "--mode", "hw"),
    ("run", "--trace"): ("run", "canary", "--mode", "hw"),
    ("run", "--show"): ("run", "canary", "--mode", "hw"),
    ("report", "--output"): ("report", "swept", "--triage", 0),
    ("show", "--output"): ("show", "power", *SEED, *BUDGET),
    ("draw", "--output"): ("draw", "power", *SEED),
    ("explore", "--output"): (
        *("explore", "--mode", "elr-repaired", "--strict", "--losses", 0, "--rule", "mutant=hw-ignores-min-isr"),
    ),
    ("audit", "--output"): ("audit", LOG),
}
"""Command and option that names a file to write -> the command's words without the option."""
SLOW = {
    ("review", "--output"),
    ("hunt", "--output"),
    ("audit", "--stories"),
    ("explain", "--output"),
    ("shrink", "--output"),
}
OF_FOLDERS = [pytest.param(key, marks=pytest.mark.world) if key in SLOW else key for key in FOLDERS]
TEMPTING = (
    *("thesis.unfinished/ch1", "thesis.unfinished/.hidden/ch2", "notes.tmp", "row.json.tmp", "report.html~", "x.bak"),
    *(".hunt.json.0badcafe", ".run.json.0badcafe", ".plan.json.0badcafe", "part-00000.parquet", "_SUCCESS"),
    *("run.json", "summary.json", "violations.jsonl", "claims/jan.json", "claims/deadbeef.json", "claims/probe-1/x"),
    *("results/wave=1/part-00000.parquet", "results/wave=0badcafe-00000/_MANIFEST.json", "results/notes.txt"),
    *("hunt.json", "hunt.md", "hunt.html", "hunt.json.unfinished", "findings/1/plan.json", "findings/1.unfinished/x"),
    *("findings/jan.tmp", "findings/1/notes.txt", "review.md", "review.html", "back.toml", "power-upgrade.toml"),
    *("power/run.json", "power/notes.txt", "advice.toml", "loss.json", "story-1-loss.toml", "story-2-loss.toml"),
    *("seeds/313-hw/row.json", "seeds/313-hw/mine", "shrunk/313-hw/plan.json", "shrunk/313-hw/mine", "seeds/mine"),
    *("reassignment-back.md", "reassignment-back.sh", "highwater-driver.py", "highwater-environment.tar.gz"),
    *("claims.jsonl", "advice.jsonl", "zoo-count.jsonl"),
    *("broker-1/data/partition-0/log", "transcript.jsonl", "attempt-2/x", "control/server.properties", "format/x"),
)
"""Paths of others: names that commands write, too, or that they might take for leftovers of their own."""
HARMLESS = [path for path in TEMPTING if path.startswith(("thesis", "notes", "report", "x."))]


def options(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Options of a command and its subcommands whose value is a file or folder."""
    for param in command.params:
        if isinstance(param, click.Option) and param.metavar in PATHS:
            yield name, max(param.opts, key=len)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from options(inner, name)


def test_each_option_that_writes_is_tested_below() -> None:
    context = click.Context(highwater)
    found: list[tuple[str, str]] = []
    for name in COMMANDS:
        command = highwater.get_command(context, name)
        assert command is not None
        found += options(command, name)
    assert {one for one in found if one[1] not in READ} == FOLDERS.keys() | FILES.keys()
    assert {option for _, option in found if option in READ} == READ


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, swept: Path, sweeps_here: None) -> Path:
    """A folder of a user with nothing in it yet; an archive for Spark has no packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HIGHWATER_IVY_SETTINGS", "nowhere")  # No Kafka is fetched.
    monkeypatch.setattr("scenarios.sweep.archive.closure", lambda _: [])
    monkeypatch.setattr("scenarios.sweep.archive._own", dict)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "swept").symlink_to(swept)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").write_text("mine")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work" / "proj"


def strew(place: Path, names: tuple[str, ...] | list[str], kind: str) -> dict[str, object]:
    """Put files, links or folders of others at paths where nothing is; returns what is there then of others."""
    made = []
    for name in names:
        path = place / name
        if os.path.lexists(path) or not all(above.is_dir() for above in path.parents if os.path.lexists(above)):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "file":
                path.write_text(f"mine: {name}")
            case "empty":
                (path.parent / f"{path.name}.tmp").touch()
                path = path.parent / f"{path.name}.tmp"
            case "link":
                path.symlink_to(place.parents[1] / "elsewhere" / "mine")
            case "folder":
                path.mkdir()
                (path / "mine").write_text("mine")
        made += [path, path / "mine", *path.parents[: -len(place.parents)]]
    mine = set(map(str, made))
    return {path: what for path, what in tree(place.parents[1]).items() if path in mine or "elsewhere" in path}


def still_there(place: Path, before: dict[str, object]) -> bool:
    after = tree(place.parents[1])
    return {path: after.get(path) for path in before} == before


@pytest.mark.world
@pytest.mark.parametrize("kind", ["file", "empty", "link", "folder"])
@pytest.mark.parametrize("key", OF_FOLDERS, ids="".join)
def test_a_folder_of_others_stays_as_it_is(
    highwater: Callable[..., Call], place: Path, key: tuple[str, str], kind: str
) -> None:
    place.mkdir()
    before = strew(place, TEMPTING, kind)
    call = highwater(*FOLDERS[key], key[1], place)
    assert call.code in (0, 1, 2, 3), call.err
    assert still_there(place, before)


@pytest.mark.parametrize("key", OF_FOLDERS, ids="".join)
def test_what_others_put_beside_results_stays(
    highwater: Callable[..., Call], place: Path, key: tuple[str, str]
) -> None:
    """The command goes on, or is refused; its own files of an earlier time are not in the way."""
    words = (*FOLDERS[key], key[1], place)
    assert highwater(*words).code in ({2} if key[0] == "confirm" else {0, 1, 3})
    before = strew(place, TEMPTING, "file")
    call = highwater(*words)
    assert call.code in (0, 1, 2, 3), call.err
    assert still_there(place, before)


@pytest.mark.world
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("key", FOLDERS, ids="".join)
def test_what_others_have_stays_if_a_command_is_interrupted(
    highwater: Callable[..., Call], place: Path, key: tuple[str, str]
) -> None:
    """An interrupt in a callback, as of the garbage collector, is lost: the command goes on, as without one. (The
    installed command ends there: `highwater.cli.entry`.)
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    rng = random.Random(str(key))
    words = (*FOLDERS[key], key[1], place)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(2):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for names in (HARMLESS, TEMPTING):
                mine = strew(place, names, "file")
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.01, 1.0))
                try:
                    highwater(*words)
                except KeyboardInterrupt:  # Outside of the command.
                    pass
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert still_there(place, mine)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.world
@pytest.mark.parametrize("key", FILES, ids="".join)
def test_a_file_of_others_is_not_replaced(highwater: Callable[..., Call], place: Path, key: tuple[str, str]) -> None:
    place.mkdir()
    before = strew(place, TEMPTING, "file")
    for name in ("run.json", "notes.tmp", "seeds/313-hw/row.json"):
        call = highwater(*FILES[key], key[1], place / name)
        assert (call.code, "did not write it" in call.err) == (2, True), call.err
        assert still_there(place, before)
    before |= strew(place, ["linked"], "link")
    assert highwater(*FILES[key], key[1], place / "linked").code == 2
    assert highwater(*FILES[key], key[1], place / "seeds").code == 2
    assert still_there(place, before)
    assert highwater(*FILES[key], key[1], place / "new").code in (0, 1, 3)
    assert (place / "new").is_file()
    assert still_there(place, before)


def test_a_hunt_into_a_folder_of_others_is_refused_with_everything_in_it(
    highwater: Callable[..., Call], place: Path
) -> None:
    for name in ("thesis.unfinished/ch1", "findings/1.unfinished"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")
    before = tree(place)
    words = ("hunt", "--kafka", "4.4.0", "--for", "1s", "--confirm", 0, "--output", place)
    call = highwater(*words)
    assert call.code == 2
    assert "holds something else than a hunt (findings); choose another folder" in call.err
    assert tree(place) == before
