"""Whatever a plug-in's functions return or raise, commands end as documented, and each seed has its row."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from highwater.cli import main
from scenarios import plugged
from scenarios.format import catalogue, plugin_border, plugins
from scenarios.single.rows import is_internal
from scenarios.single.run import run_blows, run_row
from scenarios.sweep.store import Store
from sim.errors import InputError, PluginError
from sim.history import steps
from sim.protocol.decision_points import POINTS
from sim.protocol.modes import MODES
from tests.fixtures import max_of_both
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Call

HEARD: Final = sorted(one for one in dir(steps.Listener) if one.startswith("on_"))
OTHERS: Final = ("__init__", "final", "decided", "kind", "at_us", "detail", "ids", "weak", "when")
HOOKS: Final = (*POINTS, *HEARD, *plugin_border.KIND, *OTHERS)
VALUES: Final = (
    *("None", "True", "0", "-1", "3", "10**30", "2.5", "'x'", "b'x'", "()", "(1,)", "(1, 1)", "(9, 99)", "(None,)"),
    *("(5, True)", "(-5, True)", "(0, 1)", "[]", "{}", "{'x': 1}", "object()", "float('nan')", "Odd()", "act", "Fault"),
    *("Fault('odd', 0, (1,))", "Fault('odd', 0, (99,))", "Fault('kill', 0, (1,))", "Fault('odd', -7, ())"),
)
ERRORS: Final = (
    *("ValueError('x')", "KeyError(1)", "SystemExit(3)", "GeneratorExit()", "StopIteration()", "RecursionError()"),
    *("AssertionError()", "NotImplementedError", "OSError(5, 'x')", "Unprintable()", "BaseException('x')"),
)
ACTS: Final = (*(f"return {value}" for value in VALUES), *(f"raise {error}" for error in ERRORS), "return act()")

TEXT: Final = """
from highwater.plugin import *

API_VERSION = 1


class Odd:
    def __repr__(self):
        raise ValueError("no text")

    def __eq__(self, other):
        raise ValueError("not comparable")

    __hash__ = None

    def __bool__(self):
        raise ValueError("neither")


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no message")


def act(*_):
    {act}


HOOK = "{hook}"


class Mine(Checker):
    FINDINGS = (warning("odd-warning"), Finding("odd", ALWAYS))

    def __init__(self, *given):
        super().__init__(*given)
        if HOOK == "__init__":
            return act()

    def on_ack(self, step):
        if HOOK == "decided":
            self.decided = act()
        wrong = {{HOOK: act()}} if HOOK in ("kind", "at_us", "detail", "ids") else {{}}
        self._violates(**{{"kind": "odd", "at_us": step.at_us, "detail": "x", "ids": (), **wrong}})
        weak = {{"weak": act()}} if HOOK == "weak" else {{}}
        self._warns("odd-warning", step.at_us, "x", **weak)


class Kind(FaultKind):
    name, meaning, targets, duration, moves_leader = "odd", "kill a process", BROKER, STOPPED, True
    amount = Amount("most", MS, "ms", (1, 3))

    def strike(self, cluster, fault, target):
        return cluster.kill(target)

    def undo(self, cluster, fault, target):
        return cluster.start(target)


if HOOK in {kind}:
    setattr(Kind, HOOK, lambda self, *given: act())
elif hasattr(Mine, HOOK) and HOOK not in ("__init__", "decided"):
    setattr(Mine, HOOK, lambda self, *given: act())
elif HOOK in POINTS:
    RULES = [Rule("odd", {{"no": {{}}, "yes": {{HOOK: act}}}}, "x")]

PLUGIN = Plugin(
    rules=globals().get("RULES", []),
    checkers=[Mine],
    faults=[Kind],
    probes=[StepProbe("odd-probe", "x", "isr", when=act if HOOK == "when" else lambda step: True)],
)
"""
SCENARIO: Final = (
    max_of_both.SCENARIO.replace('"blink", "power-loss", "cut"', '"odd", "kill", "reassignment", "cut"')
    .replace("restart_ms = ", "moving_percent = 40\nrestart_ms = ")
    .replace('kip320-max = "may-violate"\n', "")
)
"""That of the fixture, with this plug-in's kind of fault."""


@pytest.fixture(autouse=True)
def _nothing_stays_loaded() -> Iterator[None]:
    yield
    plugins.ensure([])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("odd")
    (found / "odd.toml").write_text(SCENARIO)
    return found


def written(folder: Path, hook: str, act: str) -> str:
    file = folder / "mine.py"
    file.write_text(TEXT.format(hook=hook, act=act, kind=tuple(plugin_border.KIND)))
    return str(file)


def arguments(folder: Path, hook: str, act: str) -> list[str]:
    mode = "kip320" if hook in ("truncation", "fetcher_restart", "epoch_recorded") else "elr-4.3"
    rule = ["--rule", "odd=yes"] if hook in POINTS else []
    return [str(folder / "odd.toml"), "--mode", mode, *rule, "--plugin", written(folder, hook, act)]


def rows_of(folder: Path, hook: str, act: str, seeds: range) -> list[dict[str, object]]:
    """The rows of some seeds, in this process; none if the plug-in is refused."""
    plugins.ensure([])
    with plugins.loaded(written(folder, hook, act)):
        mode = MODES["kip320" if hook in ("truncation", "fetcher_restart", "epoch_recorded") else "elr-4.3"]
        rules = {"odd": "yes"} if hook in POINTS else {}
        scenario = catalogue.load(str(folder / "odd.toml"))
        return [run_row(scenario, mode, seed, rules) for seed in seeds]


@pytest.mark.world
@settings(max_examples=50)
@given(hook=st.sampled_from(HOOKS), act=st.sampled_from(ACTS), seed=st.integers(0, 99))
@example(hook="on_isr", act="return step.before.isr", seed=0)
@example(hook="strike", act="return None", seed=0)
@example(hook="draw", act="return None", seed=0)
@example(hook="when", act="raise ValueError('x')", seed=0)
def test_a_run_ends_with_a_row_that_blames_the_plugin(folder: Path, hook: str, act: str, seed: int) -> None:
    try:
        (row,) = rows_of(folder, hook, act, range(seed, seed + 1))
    except InputError:
        assert not plugged.LOADED
        return
    assert row["verdict"] in ("ok", "violation", "stalled", "exhausted", "error")
    assert (row["verdict"] == "error") == (row["error"] != "") or row["verdict"] == "exhausted"
    assert row["verdict"] != "error" or re.search(r" \(plug-in, mine\.py:\d+ in \S+", str(row["error"])), row["error"]
    assert not row["error"] or not is_internal(str(row["error"]))


UNUSED: Final = (
    *("params", "scripted", "targets_of", "value_of", "param_of", "problem"),  # Of script lines, and of plans in files.
    *("isr_leave", "replica_start"),
)
"""Functions that these runs need not call."""
SOME_STEPS: Final = ("on_step", "on_isr", "on_ack", "on_end", "on_truncate")


@pytest.mark.parametrize("hook", [hook for hook in (*POINTS, *plugin_border.KIND, *OTHERS) if hook not in UNUSED])
def test_an_exception_of_each_function_ends_the_run(folder: Path, hook: str) -> None:
    errors = {str(row["error"]) for row in rows_of(folder, hook, "raise LookupError('odd')", range(3))}
    assert errors - {""} == {"LookupError: odd (plug-in, mine.py:26 in act: raise LookupError('odd'))"}


def test_a_drawn_target_is_a_broker_or_a_role(folder: Path) -> None:
    errors = {str(row["error"]) for row in rows_of(folder, "draw_target", "return 77", range(3))} - {""}
    begin = "PluginError: fault odd: draw_target returned 77, where a broker up to "
    assert [error[: len(begin)] for error in errors] == [begin]
    errors = {str(row["error"]) for row in rows_of(folder, "draw_target", "return 2", range(3))}
    assert errors == {""}


@pytest.mark.parametrize("hook", SOME_STEPS)
def test_an_exception_of_a_checker_ends_the_run(folder: Path, hook: str) -> None:
    errors = {str(row["error"]) for row in rows_of(folder, hook, "raise LookupError('odd')", range(3))}
    assert errors - {""} == {"LookupError: odd (plug-in, mine.py:26 in act: raise LookupError('odd'))"}


@pytest.mark.usefixtures("sweeps_here")
@pytest.mark.parametrize(
    ("hook", "act"),
    [
        ("on_isr", "raise ValueError('x')"),
        ("on_isr", "return 3"),
        ("strike", "return None"),
        ("draw", "return None"),
        ("draw", "raise SystemExit(3)"),
        ("leader", "return 99"),
        ("when", "return None"),
        ("ids", "return (None,)"),
        ("__init__", "raise GeneratorExit()"),
        ("params", "return None"),
        ("problem", "raise Unprintable()"),
    ],
)
def test_commands_end_as_documented_and_each_seed_has_its_row(
    folder: Path, tmp_path: Path, highwater: Callable[..., Call], hook: str, act: str
) -> None:
    words = arguments(folder, hook, act)
    ran = highwater("run", "--seed", 1, *words)
    out = tmp_path / "out"
    swept = highwater("sweep", "--seeds", "0..3", "--blows", 1, "--local", 1, "--output", out, *words)
    assert ran.code in (0, 1, 2)
    assert swept.code in ((2,) if ran.code == 2 else (0, 1, 3))  # 3: too little happened in these few runs.
    assert "Traceback" not in ran.out + ran.err + swept.out + swept.err
    if swept.code == 2:
        assert swept.err.startswith(f"highwater: --plugin {folder / 'mine.py'}: ")
        return
    with plugins.loaded(str(folder / "mine.py")):
        rows = [row for _, table in Store(str(out)).tables() for row in table.to_pylist()]
    assert {row["seed"] for row in rows} == {0, 1, 2}
    errors = {row["error"] for row in rows} - {""}
    assert all("(plug-in, mine.py:" in error for error in errors)
    assert (swept.code == 1) == bool(errors)


def test_an_answer_that_depends_on_earlier_runs_is_an_error_of_the_run(folder: Path) -> None:
    """A run with blows is repeated up to its early warnings; the repetition fails, and the seed has its row."""
    text = TEXT.format(hook="", act="pass", kind=()).replace('self._violates(**{"kind": "odd"', 'dict(**{"kind": "odd"')
    again = "ROUND.append(1)\n        if len(ROUND) > 1:\n            raise LookupError('again')"
    text = text.replace('if HOOK == "__init__":\n            return act()', again).replace(
        'HOOK = "', 'ROUND = []\nHOOK = "'
    )
    (folder / "again.py").write_text(text)
    with plugins.loaded(str(folder / "again.py")):
        scenario = catalogue.load(str(folder / "odd.toml"))
        (row,) = run_blows(scenario, MODES["elr-4.3"], 0, blows=1)
    assert row["verdict"] == "error"
    assert row["error"].startswith("LookupError: again (plug-in, again.py:")


def test_an_error_outside_of_a_run_ends_the_command_in_one_line(
    monkeypatch: pytest.MonkeyPatch, highwater: Callable[..., Call]
) -> None:
    def fail(*_: object) -> int:
        raise PluginError("fault odd: problem returned 3", "mine.py:3 in problem: return 3")

    monkeypatch.setattr(main, "_called", fail)
    call = highwater("modes", "list")
    line = "highwater: PluginError: fault odd: problem returned 3 (plug-in, mine.py:3 in problem: return 3)\n"
    assert (call.code, call.out, call.err) == (2, "", line)


def test_a_function_that_does_not_return_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugged, "TICK_S", 0.02)
    endless = "\n    while True: pass"
    for hook in ("leader", "on_ack", "draw"):
        (error,) = {str(row["error"]) for row in rows_of(folder, hook, endless, range(2))} - {""}
        assert error.startswith("PluginHangsError: does not return: ")
        assert error.endswith(" (plug-in, mine.py:27 in act: while True: pass)")


def test_a_function_that_is_called_often_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugged, "TICK_S", 0.002)
    (row,) = rows_of(folder, "on_ack", "return sum(range(2000))", range(1))
    assert row["error"] == ""


@pytest.mark.parametrize(
    ("hook", "act"),
    [("detail", r"return '\ud800'"), ("on_ack", r"raise ValueError('\ud800')"), ("kind", r"return '\ud800'")],
)
def test_text_that_cannot_be_written_is_an_error_of_the_plugin(
    folder: Path, tmp_path: Path, highwater: Callable[..., Call], hook: str, act: str
) -> None:
    words = arguments(folder, hook, act)
    errors = {str(row["error"]) for row in rows_of(folder, hook, act, range(2))} - {""}
    assert all(error.encode() for error in errors)
    (error,) = errors
    assert "ud800" in error
    assert "mine.py:" in error
    for command, output in (("run", "--trace"), ("show", "--output"), ("draw", "--output")):
        call = highwater(command, output, tmp_path / command, "--seed", 1, *words)
        assert call.code in (0, 1, 2)
        assert "Traceback" not in call.err


CHANCE: Final = "import random; return (_[1].log_start if random.random() < 0.5 else _[0][0], _[0][1])"
COUNTS: Final = "act.n = getattr(act, 'n', 0) + 1; return (_[1].log_start if act.n % 3 else _[0][0], _[0][1])"


@pytest.mark.world
@pytest.mark.usefixtures("sweeps_here")
@pytest.mark.parametrize("act", [CHANCE, COUNTS])
def test_a_plugin_that_is_not_pure_is_noticed_by_a_sweep(
    folder: Path, tmp_path: Path, highwater: Callable[..., Call], act: str
) -> None:
    words = arguments(folder, "truncation", act)
    call = highwater("sweep", "--seeds", "0..40", "--local", 1, "--output", tmp_path / "out", "-q", *words)
    assert call.code == 2
    assert "plug-in mine is not pure: " in call.err
    assert "ended in two ways (verdict " in call.err
    assert not list((tmp_path / "out").rglob("_MANIFEST.json"))
    pure = arguments(folder, "truncation", "return _[0]")
    call = highwater("sweep", "--seeds", "0..40", "--local", 1, "--output", tmp_path / "pure", "-q", *pure)
    assert call.code in (0, 1, 3), call.err


@pytest.mark.world
@pytest.mark.parametrize("call", ["_exit(0)", "abort()", "execv('/bin/true', ['true'])"])
def test_a_plugin_does_not_end_the_process(folder: Path, tmp_path: Path, call: str) -> None:
    """Otherwise a sweep would print nothing, and exit with 0."""
    words = arguments(folder, "truncation", f"import os; os.{call}")
    command = ["sweep", "--seeds", "0..4", "--local", "1", "--output", str(tmp_path / "out"), *words]
    done = subprocess.run([sys.executable, "-m", "highwater", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    name = call.partition("(")[0]
    assert f"PluginError: os.{name} would end the process (plug-in, mine.py:26 in act" in done.stdout
