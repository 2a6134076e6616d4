from __future__ import annotations

import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scenarios.format import catalogue
from scenarios.format.scenario import Expectation
from scenarios.format.schema import read
from sim.errors import InputError
from tests.named import run_row

ROOT = Path(catalogue.__file__).parents[2]


def test_names() -> None:
    files = {file.stem for file in (ROOT / "scenarios/files").iterdir()}
    assert set(catalogue.names()) == files
    assert catalogue.names() == sorted(files)


@pytest.mark.parametrize("name", catalogue.names())
def test_a_bundled_scenario_is_called_like_its_file(name: str) -> None:
    assert catalogue.load(name).name == name


@pytest.mark.parametrize("name", catalogue.names())
def test_a_bundled_scenario_is_valid(name: str) -> None:
    """So that it can be read without checks."""
    assert read(catalogue.text(name), name) == catalogue.load(name)


def test_power_may_violate() -> None:
    assert catalogue.load("power").expect == dict.fromkeys(
        ("hw", "kip101", "kip279", "kip320", "kraft", "elr", "elr-recovery"), Expectation("may-violate")
    )


DRAWN = ("chaos", "sessions", "partitions", "power", "racks", "rolling")


@pytest.mark.world
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("mode", ["hw", "kip320"])
def test_drawn_scenarios_make_something_happen(name: str, mode: str) -> None:
    rows = [run_row(catalogue.load(name), mode, seed) for seed in range(30)]
    floors = {"batches_acked": 30, "records_acked": 60, "elections": 3, "faults": 5}
    for column, floor in floors.items():
        assert statistics.median(row[column] for row in rows) >= floor, column
    assert sum(row["vacuous"] for row in rows) <= 3  # Of 30; of all, fewer than 5 %.
    assert sum(row["inside"] for row in rows) >= (18 if name == "power" else 12)
    assert statistics.median(row["sim_us"] for row in rows) >= 300_000_000
    assert [row["error"] for row in rows if row["error"]] == []


@pytest.mark.world
@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, "kip320-repaired") for name in ("chaos", "sessions", "partitions", "racks")]
    + [(name, "elr-repaired") for name in ("racks", "reassignments", "topics", "disks", "directories", "removals")],
)
def test_the_repaired_mode_keeps_its_promise(name: str, mode: str) -> None:
    scenario = catalogue.load(name)
    assert scenario.expect[mode] == Expectation("clean")
    for seed in range(40):
        row = run_row(scenario, mode, seed)
        assert row["expected"], (seed, row["violations_inside"])


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes((ROOT / "scenarios/files/canary.toml").read_bytes())
    assert catalogue.load(str(file)) == catalogue.load("canary")


def test_the_mode_that_another_is_based_on(tmp_path: Path) -> None:
    assert catalogue.base_of(catalogue.mode("elr")) is None
    named = catalogue.base_of(catalogue.mode("kip279+follower_truncation=high-watermark"))
    assert named is not None
    assert named.name == "kip279"
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('schema = 1\nname = "first"\nbase = "elr"\ntitle = "x"\n')
    second.write_text('schema = 1\nname = "second"\nbase = "./first.toml"\ntitle = "x"\n')
    mode = catalogue.mode(str(second))
    base = catalogue.base_of(mode)
    assert base is not None
    assert base.name == "first"
    second.unlink()
    assert catalogue.base_of(mode) is None


def test_an_unknown_name() -> None:
    for word, hint in (
        ("zz", "; 'highwater scenarios list' lists the valid ones"),
        ("4.3", ": it is a release, and releases"),
    ):
        with pytest.raises(InputError, match=f"^unknown scenario '{word}'{hint}"):
            catalogue.load(word)
    with pytest.raises(InputError, match=r"^unknown scenario 'cannary'; did you mean 'canary'\?$"):
        catalogue.load("cannary")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^no/such\.toml: cannot be read: No such file or directory$"):
        catalogue.load("no/such.toml")
    with pytest.raises(InputError, match="is a folder, not a scenario"):
        catalogue.load(f"{tmp_path}/")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(InputError, match=r"latin\.toml: not UTF-8 text$"):
        catalogue.load(str(tmp_path / "latin.toml"))


def python(*code: str, path: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", "\n".join(code)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=path.parent, env={"PYTHONPATH": str(path)}
    ).stdout


@pytest.mark.world
def test_scenarios_load_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "highwater.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        for package in ("sim", "faults", "scenarios"):
            for file in sorted((ROOT / package).rglob("*.*")):
                bundle.write(file, file.relative_to(ROOT))
    code = ("from scenarios.format.catalogue import load, names", "print(*(load(name).name for name in names()))")
    assert python(*code, path=archive).split() == catalogue.names()


def test_names_do_without_pydantic() -> None:
    code = ("import sys", "from scenarios.format.catalogue import names", "names()", "print('pydantic' in sys.modules)")
    assert python(*code, path=ROOT) == "False\n"


@pytest.mark.world
@pytest.mark.parametrize("command", ["run kip101-scenario-1", "run chaos --seed 1", "explain kip101-scenario-1"])
def test_bundled_scenarios_run_without_pydantic(command: str) -> None:
    words = [*command.split(), "--mode", "hw", "-q"]
    code = ("import sys", "from highwater.cli.main import main", f"main({words!r})", "print('pydantic' in sys.modules)")
    assert python(*code, path=ROOT).splitlines()[-1] == "False"
