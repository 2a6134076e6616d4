"""Plug-ins on the command line, as notebooks/guide/plugins.md has them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import highwater.plugin
from scenarios import plugged
from scenarios.format import catalogue, plugins
from scenarios.single.run import run_row
from scenarios.sweep.store import Store
from sim.checkers.checker import PROMISED
from sim.protocol.modes import MODES
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tests.conftest import Call

PAGE = (ROOT / "notebooks" / "guide" / "plugins.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.M | re.S))
EXAMPLE = ROOT / "tests" / "fixtures" / "max_of_both.py"


@pytest.fixture(autouse=True)
def _nothing_stays_loaded() -> Iterator[None]:
    yield
    plugins.ensure([])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(folder: Path) -> list[dict[str, Any]]:
    store = Store(str(folder))
    found = [row for _, table in store.tables() for row in table.to_pylist()]
    return sorted(found, key=lambda row: (row["scenario"], row["mode"], row["seed"]))


def test_the_page_lists_the_words_of_a_promise() -> None:
    words = set(re.findall(r"^\| `([A-Z_]+)` \| ", PAGE, re.M)) - {"FINDINGS"}
    known = {name for name in highwater.plugin.__all__ if getattr(highwater.plugin, name) in PROMISED}
    assert words == known


@pytest.mark.usefixtures("folder")
def test_an_empty_plugin_is_refused(highwater: Callable[..., Call]) -> None:
    call = highwater("modes", "list", "--plugin", "empty.py")
    assert (call.code, call.err) == (2, "highwater: --plugin empty.py has no declarations: PLUGIN is empty\n")


@pytest.mark.usefixtures("folder")
def test_a_rule_value_of_the_page_is_listed_and_runs(highwater: Callable[..., Call]) -> None:
    plugin = ("--plugin", "max_of_both.py")
    assert "max-of-both" in highwater("modes", "show", "kip320", *plugin).out
    shown = highwater("modes", "show", "quorum", "--plugin", "hw_quorum.py").out
    assert "Those of elr-4.3, except:\n  hw_quorum = majority" in shown
    assert "Source: \n" not in shown
    rule = ("--rule", "follower_truncation=max-of-both")
    call = highwater("run", "chaos", "--seed", "3", "--mode", "kip320", *rule, *plugin, "--json")
    assert call.json["runs"][0]["row"]["verdict"] in ("ok", "violation")
    assert highwater("run", "chaos", "--seed", "3", "--mode", "kip320", *rule).code == 2


@pytest.mark.usefixtures("folder")
def test_values_of_a_plugin_run_side_by_side(highwater: Callable[..., Call]) -> None:
    modes = re.search(r"--modes (kip320,kip320\+\S+)", PAGE)
    assert modes is not None
    call = highwater("run", "chaos", "--seed", "3", "--modes", modes[1], "--plugin", "max_of_both.py", "--json")
    assert [one["row"]["mode"] for one in call.json["runs"]] == modes[1].split(",")
    assert call.code in (0, 1)


@pytest.mark.usefixtures("folder")
def test_a_rule_of_the_page_changes_runs_of_its_mode(highwater: Callable[..., Call]) -> None:
    call = highwater(
        "run", "elr-chaos", "--seed", "3", "--modes", "quorum,elr-4.3", "--plugin", "hw_quorum.py", "--json"
    )
    quorum, other = (one["row"]["digest"] for one in call.json["runs"])
    assert quorum != other


@pytest.mark.usefixtures("folder")
def test_a_checker_of_the_page_warns(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "kip101-scenario-1", "--mode", "hw", "--plugin", "below_hw.py")
    assert "truncation-below-hw" not in call.out
    call = highwater("run", "kip903", "--mode", "hw", "--plugin", "below_hw.py", "--json")
    assert call.code in (0, 1)


@pytest.mark.usefixtures("folder")
def test_a_fault_and_a_scenario_of_the_page_run(highwater: Callable[..., Call]) -> None:
    both = ("--plugin", "blink.py", "--plugin", "blinks.py")
    assert "blinks" in highwater("scenarios", "list", *both).out
    call = highwater("run", "blinks", "--seed", "1", "--mode", "elr-4.3", *both, "--json")
    assert call.code == 0
    assert "blink" in call.json["runs"][0]["row"]["fault_kinds"]
    assert "no such fault kind" in highwater("scenarios", "list", "--plugin", "blinks.py").err


@pytest.mark.usefixtures("folder")
def test_a_violation_of_a_new_kind_is_named(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    file = tmp_path / "new_kind.py"
    file.write_text("""
from highwater.plugin import ALWAYS, Checker, Finding, Plugin

API_VERSION = 1


class Mine(Checker):
    FINDINGS = (Finding("new-kind", ALWAYS),)

    def on_ack(self, step):
        self._violates("new-kind", step.at_us, "an ack", [step.first_id])


PLUGIN = Plugin(checkers=[Mine])
""")
    call = highwater("run", "canary", "--plugin", file)
    assert call.code == 1
    assert "the scenario expects violates:committed-loss; it had that, and new-kind, which " in call.out


@pytest.mark.usefixtures("folder")
def test_a_fault_of_the_page_is_undone() -> None:
    with plugins.loaded("lonely.py"):
        chaos = catalogue.load("chaos")
        assert chaos.faults is not None
        lonely = replace(chaos, faults=replace(chaos.faults, kinds=("lonely",)))
        rows = [run_row(lonely, MODES["elr-4.3"], seed) for seed in range(3)]
    assert {(row["error"], row["fault_kinds"]) for row in rows} == {("", "lonely")}
    assert all(row["verdict"] == "ok" for row in rows)


@pytest.mark.world
@pytest.mark.usefixtures("folder")
def test_a_sweep_tells_how_often_a_value_decided(highwater: Callable[..., Call]) -> None:
    words = ("sweep", "chaos", "--modes", "kip279", "--seeds", "45..48", "--local", "1", "--json", "--output")
    plugin, value = ("--plugin", "max_of_both.py"), ("--rule", "follower_truncation=max-of-both")
    without = highwater(*words, "out", *plugin).json["results"][0]["decided"]
    within = highwater(*words, "max", *plugin, *value).json["results"][0]["decided"]
    (one,), (other,) = without, within
    assert (one["rule"], one["value"], one["in_force"]) == ("follower_truncation", "max-of-both", False)
    assert other == {**one, "in_force": True}
    highwater("modes", "list", *plugin)
    digests = [[row["digest"] for row in rows(Path(folder))] for folder in ("out", "max")]
    assert one["runs"] == sum(first != second for first, second in zip(*digests, strict=True)) > 0


@pytest.mark.world
def test_an_installed_package_needs_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, highwater: Callable[..., Call]
) -> None:
    project = re.search(r"^```toml\n(\[build-system\].*?)^```", PAGE, re.M | re.S)
    assert project is not None
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "pyproject.toml").write_text(project[1])
    (source / "my_kip.py").write_text(FILES["hw_quorum.py"])
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", *words, "--target", target, source], check=True)
    monkeypatch.syspath_prepend(target)
    monkeypatch.chdir(tmp_path)
    call = highwater("run", "elr-chaos", "--seed", "3", "--mode", "quorum", "--json")
    row = call.json["runs"][0]["row"]
    assert row["mode"] == "quorum"
    assert "--plugin" not in row["replay"]
    swept = highwater("sweep", "elr-chaos", "--seed", "3", "--mode", "quorum", "--local", "1", "--output", "out")
    assert swept.code in (0, 1)
    assert rows(Path("out")) == [row]
    assert plugged.hashes().keys() == {"my_kip"}


@pytest.mark.world
def test_rows_do_not_depend_on_the_number_of_workers(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    words = ("sweep", "blinks", "--modes", "kip320,kip320-max", "--seeds", "0..8", "--plugin", str(EXAMPLE))
    for workers in ("1", "2"):
        highwater(*words, "--local", workers, "--output", str(tmp_path / workers))
    highwater("modes", "list", "--plugin", str(EXAMPLE))
    assert rows(tmp_path / "1") == rows(tmp_path / "2")
    assert len(rows(tmp_path / "1")) == 16


def test_a_changed_plugin_is_refused_as_other_code(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    plugin = tmp_path / "mine.py"
    text = EXAMPLE.read_text()
    plugin.write_text(text)
    folder = str(tmp_path / "store")
    words = ("sweep", "blinks", "--modes", "kip320-max", "--seeds", "0..2", "--local", "1", "--output", folder)
    highwater(*words, "--plugin", str(plugin))
    plugin.write_text(f"{text}\n# changed\n")
    call = highwater(*words, "--plugin", str(plugin))
    assert (call.code, call.err) == (
        2,
        f"highwater: {folder} holds another sweep: plug-in mine has changed; choose another --output\n",
    )
    call = highwater("compare", folder)
    assert (call.code, call.err) == (2, "highwater: the sweep has plug-in mine: load it with --plugin\n")


def test_errors_of_a_plugin_are_told_by_sweep_compare_and_triage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, highwater: Callable[..., Call]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from highwater.plugin import Checker, Plugin, warning\n\nAPI_VERSION = 1\n\n\n"
        "class Mine(Checker):\n    FINDINGS = (warning('mine'),)\n\n"
        "    def on_ack(self, step):\n        raise ValueError(step.offset)\n\n\nPLUGIN = Plugin(checkers=[Mine])\n"
    )
    plugin = ("--plugin", "mine.py")
    line = "(plug-in, mine.py:10 in on_ack: raise ValueError(step.offset))"
    swept = highwater("sweep", "chaos", "--mode", "hw", "--seeds", "0..3", "--local", "1", "--output", "out", *plugin)
    compared = highwater("compare", "out", *plugin)
    triaged = highwater("triage", "out", *plugin)
    assert (swept.code, compared.code, triaged.code) == (1, 3, 3)
    for text in (swept.out, compared.out, triaged.err):
        assert text.count(line) == 1
        assert "3 runs: ValueError: " in text
        assert "highwater replay chaos --mode hw --seed 0 --plugin mine.py --expect-digest " in text
    again = highwater("run", "chaos", "--mode", "hw", "--seed", "0", "-v", *plugin)
    assert again.code == 1
    assert "raise ValueError(step.offset)\nValueError: " in again.err
