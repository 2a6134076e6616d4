from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from faults.kinds.registry import KINDS
from scenarios import plugged
from scenarios.format import catalogue, mode_file, plugins
from scenarios.single.run import run, run_row
from scenarios.version import code_version, own_version
from sim.checkers.registry import CHECKERS, FINDINGS
from sim.errors import InputError
from sim.protocol.decision_points import POINTS
from sim.protocol.decisions import VALUES, to_values
from sim.protocol.modes import MODES
from sim.protocol.probes import BRANCHES, PROBES
from sim.protocol.rules import RULES
from tests.golden import stored
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLE = str(ROOT / "tests" / "fixtures" / "max_of_both.py")
HEAD = "from highwater.plugin import *\nAPI_VERSION = 1\n"


@pytest.fixture
def example() -> Iterator[None]:
    with plugins.loaded(EXAMPLE):
        yield


def written(folder: Path, text: str) -> str:
    file = folder / "mine.py"
    file.write_text(text)
    return str(file)


def refusal(folder: Path, text: str) -> str:
    """The one line with which a plug-in is refused; nothing of it stays."""
    word = written(folder, text)
    before = [len(table) for table in (RULES, MODES, KINDS, FINDINGS, CHECKERS, PROBES, VALUES, BRANCHES)]
    with pytest.raises(InputError) as caught:
        plugins.load(word)
    assert [len(table) for table in (RULES, MODES, KINDS, FINDINGS, CHECKERS, PROBES, VALUES, BRANCHES)] == before
    assert not plugged.LOADED
    (line,) = caught.value.problems
    assert "\n" not in line
    return line.replace(word, "mine.py")


# What a plug-in adds.


@pytest.mark.usefixtures("example")
def test_all_declarations_are_taken_up() -> None:
    assert RULES["follower_truncation"].values[-1] == "max-of-both"
    assert list(RULES)[-1] == "hw_quorum"
    assert MODES["kip320-max"].rules.value("follower_truncation") == "max-of-both"
    assert "blink" in KINDS
    assert "truncation-below-hw" in FINDINGS
    assert PROBES[-1].name == "long-truncation"
    assert "blinks" in catalogue.names()
    assert catalogue.load("blinks").name == "blinks"


def test_nothing_stays_after_a_plugin_is_unloaded() -> None:
    before = [list(table) for table in (RULES, MODES, KINDS, FINDINGS, CHECKERS, PROBES, VALUES, BRANCHES)]
    row = run_row(catalogue.load("chaos"), MODES["kip320"], 3)
    with plugins.loaded(EXAMPLE):
        assert code_version() != own_version()
    assert [list(table) for table in (RULES, MODES, KINDS, FINDINGS, CHECKERS, PROBES, VALUES, BRANCHES)] == before
    assert code_version() == own_version()
    assert run_row(catalogue.load("chaos"), MODES["kip320"], 3) == row


def test_a_run_without_its_values_has_the_same_history() -> None:
    before = run_row(catalogue.load("chaos"), MODES["kip320"], 5)
    with plugins.loaded(EXAMPLE):
        assert run_row(catalogue.load("chaos"), MODES["kip320"], 5)["digest"] == before["digest"]


@pytest.mark.usefixtures("example")
def test_a_value_decides_where_its_function_differs() -> None:
    scenario = catalogue.load("canary")
    mine = MODES["kip320"].override({"follower_truncation": "max-of-both"})
    rows = {name: run_row(scenario, mode, 0) for name, mode in (("mine", mine), ("kip320", MODES["kip320"]))}
    pair = ("follower_truncation", "max-of-both")
    asked = pair in to_values(int(rows["kip320"]["decided"], 16))
    assert asked == (rows["mine"]["digest"] != rows["kip320"]["digest"])


@pytest.mark.world
@pytest.mark.usefixtures("example")
def test_values_that_were_noted_alike_have_equal_histories() -> None:
    scenario, pair = catalogue.load("power"), ("follower_truncation", "max-of-both")
    mine = MODES["kip320-max"]
    seen = set()
    for seed in range(22, 34):
        rows = [run_row(scenario, mode, seed) for mode in (MODES["kip320"], mine)]
        differs = pair in to_values(int(rows[0]["decided"], 16))
        seen.add(differs)
        if not differs:
            assert rows[0]["digest"] == rows[1]["digest"]
    assert seen == {True, False}


@pytest.mark.usefixtures("example")
def test_a_mode_file_may_use_its_values(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('schema = 1\nname = "mine"\ntitle = "t"\nbase = "elr"\n[rules]\nhw_quorum = "majority"\n')
    found = mode_file.read(str(file)).mode
    assert found.rules.value("hw_quorum") == "majority"
    assert found.rules.as_dict()["hw_quorum"] == "majority"
    assert found.rules.of(found.rules.as_dict()) == found.rules


@pytest.mark.usefixtures("example")
def test_rules_that_are_set_back_are_equal() -> None:
    rules = MODES["kip320"].rules
    there = rules.override({"follower_truncation": "max-of-both", "hw_quorum": "majority"})
    assert there != rules
    assert there.follower_truncation == "leader-epoch-rounds"
    assert there.override({"follower_truncation": "leader-epoch-rounds", "hw_quorum": "isr"}) == rules


@pytest.mark.usefixtures("example")
def test_a_promise_follows_the_value_that_it_is_like() -> None:
    assert MODES["hw"].override({"follower_truncation": "max-of-both"}).promise.never_diverges


@pytest.mark.usefixtures("example")
def test_the_replay_line_loads_the_plugin() -> None:
    rows = (run_row(catalogue.load("power"), MODES["kip320-max"], seed) for seed in range(40))
    line = next(row["replay"] for row in rows if row["replay"])
    assert f"--plugin {EXAMPLE}" in line


def test_worker_processes_load_the_same_from_its_content(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "fixtures" / "max_of_both.py").read_text()
    word = written(tmp_path, text)
    with plugins.loaded(word):
        shipped, version = plugged.shipped(), code_version()
    (tmp_path / "mine.py").unlink()
    plugins.ensure(shipped)
    try:
        assert "kip320-max" in MODES
        assert code_version() == version
    finally:
        plugins.ensure([])
    assert "kip320-max" not in MODES


def test_a_changed_plugin_is_other_code(tmp_path: Path) -> None:
    versions = set()
    for text in ("", "# changed\n"):
        with plugins.loaded(
            written(tmp_path, f"{HEAD}{text}PLUGIN = Plugin(scenarios=[], probes=[StepProbe('p', 'm', 'ack')])")
        ):
            versions.add(code_version())
    assert len(versions) == 2


# Errors in its code.


def test_an_error_in_a_run_is_a_row_with_the_last_line(tmp_path: Path) -> None:
    text = """
def broken(answer, at):
    return answer.nothing

PLUGIN = Plugin(rule_values=[RuleValue("follower_truncation", "broken", "on-fetch", {"truncation": broken}, "m")])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        mine = MODES["hw"].override({"follower_truncation": "broken"})
        row = run_row(catalogue.load("kip101-scenario-1"), mine, 0)
        other = run_row(catalogue.load("kip101-scenario-1"), MODES["hw"], 0)
    assert row["verdict"] == "error"
    assert row["error"] == (
        "AttributeError: 'tuple' object has no attribute 'nothing' "
        "(plug-in, mine.py:5 in broken: return answer.nothing)"
    )
    assert other["verdict"] == "violation"


def test_an_error_in_a_checker_is_a_row(tmp_path: Path) -> None:
    text = """
class Mine(Checker):
    FINDINGS = (warning("mine"),)

    def __init__(self, history):
        super().__init__(history)
        raise KeyError("nothing")

PLUGIN = Plugin(checkers=[Mine])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        row = run_row(catalogue.load("chaos"), MODES["kip320"], 0)
    assert row["error"] == "KeyError: 'nothing' (plug-in, mine.py:9 in __init__: raise KeyError(\"nothing\"))"


def test_an_error_is_not_judged_by_the_promise(tmp_path: Path) -> None:
    text = """
class Mine(Checker):
    FINDINGS = (Finding("mine", ALWAYS),)

    def on_ack(self, step):
        self._violates("mine", step.at_us, "detail", [step.first_id])

    def final(self, end):
        raise KeyError("nothing")

PLUGIN = Plugin(checkers=[Mine])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        result = run(catalogue.load("chaos"), MODES["kip320"], 0)
    row = result.row
    assert (row["verdict"], row["violations"]) == ("error", "mine")
    assert (row["inside"], row["violations_inside"]) == (False, "")
    assert {violation["inside"] for violation in result.violations} == {None}
    assert result.traceback.endswith("    raise KeyError(\"nothing\")\nKeyError: 'nothing'\n")


def test_a_kind_that_is_not_declared_is_an_error(tmp_path: Path) -> None:
    text = """
class Mine(Checker):
    FINDINGS = (warning("mine"),)

    def on_ack(self, step):
        self._warns("other", step.at_us, "detail", [step.first_id])

PLUGIN = Plugin(checkers=[Mine])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        row = run_row(catalogue.load("chaos"), MODES["kip320"], 0)
    assert row["error"].startswith("ValueError: Mine reports 'other', which is not among its FINDINGS")


@pytest.mark.parametrize(
    ("declared", "method", "what"),
    [
        ('warning("mine")', "_violates", "an early warning"),
        ('Finding("mine", "always")', "_warns", "a violation"),
    ],
)
def test_a_kind_is_reported_as_what_it_is_declared(tmp_path: Path, declared: str, method: str, what: str) -> None:
    text = f"""
class Mine(Checker):
    FINDINGS = ({declared},)

    def on_ack(self, step):
        self.{method}("mine", step.at_us, "detail", [step.first_id])

PLUGIN = Plugin(checkers=[Mine])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        row = run_row(catalogue.load("chaos"), MODES["kip320"], 0)
    assert row["error"].startswith(
        f"PluginError: checker Mine: {method} gets kind = 'mine', which FINDINGS declares as {what}"
    )


def test_a_strike_that_returns_nothing_is_an_error(tmp_path: Path) -> None:
    text = """
class Mine(FaultKind):
    name, meaning, targets, remains = "mine", "do nothing", BROKER, "nothing"

    def strike(self, cluster, fault, target):
        pass

PLUGIN = Plugin(faults=[Mine])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        chaos = catalogue.load("chaos")
        assert chaos.faults is not None
        row = run_row(replace(chaos, faults=replace(chaos.faults, kinds=("mine",))), MODES["kip320"], 0)
    assert row["error"].startswith(
        "PluginError: fault mine: strike returned None, where True or False is expected (plug-in, mine.py:7 in strike: "
    )


def test_an_answer_of_another_type_is_an_error(tmp_path: Path) -> None:
    text = """
PLUGIN = Plugin(rules=[Rule("mine", {"no": {}, "yes": {"high_watermark": lambda answer, at: float(answer)}}, "m")])
"""
    with plugins.loaded(written(tmp_path, HEAD + text)):
        row = run(catalogue.load("chaos"), MODES["kraft"].override({"mine": "yes"}), 0).row
    assert row["error"].startswith(
        "PluginError: high_watermark of mine=yes returned 0.0, where an offset up to the LEO 0"
    )


# What is refused.


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 +", "--plugin mine.py does not import: line 1: invalid syntax"),
        (
            "API_VERSION = 1\nx = 1 / 0",
            "--plugin mine.py does not import: ZeroDivisionError: division by zero (mine.py:2 in <module>: x = 1 / 0)",
        ),
        (
            "API_VERSION = 1\nimport sys\nsys.exit(3)",
            "--plugin mine.py does not import: SystemExit: 3 (mine.py:3 in <module>: sys.exit(3))",
        ),
        ("x = 1", "--plugin mine.py does not say for which version it was written: API_VERSION = 1 is missing"),
        (
            "API_VERSION = 2",
            (
                "--plugin mine.py: API_VERSION = 2: it was written for another version of the plug-in interface; this "
                "highwater has 1"
            ),
        ),
        ("API_VERSION = 1", "--plugin mine.py has no declarations: PLUGIN = Plugin(...) is missing"),
        (f"{HEAD}PLUGIN = Plugin()", "--plugin mine.py has no declarations: PLUGIN is empty"),
        (
            f"{HEAD}PLUGIN = Plugin(rule_values=[RuleValue('follower_trunc', 'a', 'b', {{}}, '')])",
            "--plugin mine.py: rule_values: unknown rule 'follower_trunc'; did you mean 'follower_truncation'?",
        ),
        (
            f"{HEAD}PLUGIN = Plugin(rule_values=[RuleValue('isr_join', 'b', 'high-waterm', {{}}, '')])",
            (
                "--plugin mine.py: rule isr_join, value b: like = 'high-waterm': the rule has no such value; "
                "did you mean 'high-watermark'?"
            ),
        ),
        (
            f"{HEAD}PLUGIN = Plugin(rule_values=[RuleValue('elr', 'on', 'off', {{'elr': max}}, '')])",
            "--plugin mine.py: rule elr: value 'on' exists already; choose another name",
        ),
        (
            f"{HEAD}PLUGIN = Plugin(rule_values=[RuleValue('elr', 'new', 'off', {{'erl': max}}, '')])",
            "--plugin mine.py: rule elr, value new: there is no decision 'erl'; did you mean 'elr'?",
        ),
        (
            f"{HEAD}PLUGIN = Plugin(rule_values=[RuleValue('elr', 'new', 'off', {{'truncation': max}}, '')])",
            (
                "--plugin mine.py: rule elr, value new: decision 'truncation' belongs to follower_truncation, "
                "epoch_request_error, out_of_range; declare a rule of your own for it"
            ),
        ),
        (
            f"{HEAD}PLUGIN = Plugin(rules=[Rule('isr_join', {{'a': {{}}, 'b': {{}}}}, '')])",
            "--plugin mine.py: rules: 'isr_join' is a rule already; choose another name",
        ),
        (
            f'{HEAD}PLUGIN = Plugin(modes=[\'schema = 1\\nname = "kraft"\\ntitle = "t"\\nbase = "elr"\'])',
            "--plugin mine.py: name = 'kraft' is a mode of Highwater; choose another name",
        ),
        (f"{HEAD}PLUGIN = Plugin(checkers=[3])", "--plugin mine.py: checkers: 3 is no class derived from Checker"),
        (
            f"{HEAD}class C(Checker):\n    FINDINGS = (warning('committed-loss'),)\nPLUGIN = Plugin(checkers=[C])",
            "--plugin mine.py: checker C: kind 'committed-loss' exists already; choose another name",
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def on_kill(self, step): pass\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            "--plugin mine.py: checker C: no step comes to on_kill: kill comes to on_end",
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def on_acknowleges(self, step): pass\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            "--plugin mine.py: checker C: no step comes to on_acknowleges; did you mean 'on_acknowledges'?",
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def on_isr_change(self, step): pass\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            "--plugin mine.py: checker C: no step comes to on_isr_change; did you mean 'on_isr'?",
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def on_ack(self): pass\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            "--plugin mine.py: checker C: on_ack takes (self), but is called with (self, step)",
        ),
        (
            (
                f"{HEAD}class F(FaultKind):\n    name, meaning, targets, remains = 'f', 'm', BROKER, 'r'\n"
                "    needz = (OTHER_BROKER,)\n    def strike(self, *given): return True\nPLUGIN = Plugin(faults=[F])"
            ),
            (
                "--plugin mine.py: fault f: needz is not used; did you mean 'needs'? A name of your own begins with an "
                "underscore"
            ),
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def finall(self, end): pass\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            (
                "--plugin mine.py: checker C: finall is not used; did you mean 'final'? A name of your own begins with "
                "an underscore"
            ),
        ),
        (
            (
                f"{HEAD}class F(FaultKind):\n    name, meaning, targets, remains = 'f', 'm', BROKER, 'r'\n"
                "    def strike(self, cluster, fault): return True\nPLUGIN = Plugin(faults=[F])"
            ),
            (
                "--plugin mine.py: fault f: strike takes (self, cluster, fault), but is called with (self, cluster, "
                "fault, target)"
            ),
        ),
        (
            (
                f"{HEAD}class C(Checker):\n    FINDINGS = (warning('w'),)\n    def on_ack(self, step): yield\n"
                "PLUGIN = Plugin(checkers=[C])"
            ),
            (
                "--plugin mine.py: checker C: on_ack is a generator or a coroutine; a function that returns its result "
                "is needed"
            ),
        ),
        (
            f"{HEAD}class C(Checker):\n    FINDINGS = warning('w')\nPLUGIN = Plugin(checkers=[C])",
            "--plugin mine.py: checker C: FINDINGS is no tuple of Finding(...)",
        ),
        (
            (
                f"{HEAD}class F(FaultKind):\n    name, meaning, targets, duration = 'f', 'm', BROKER, 'short'\n"
                "PLUGIN = Plugin(faults=[F])"
            ),
            "--plugin mine.py: fault f: duration = 'short': Duration or None is needed",
        ),
        (
            (
                f"{HEAD}class F(FaultKind):\n    name, meaning, targets, remains = 'f', 'm', BROKER, 'r'\n"
                "    duration = Duration('cut_ms')\nPLUGIN = Plugin(faults=[F])"
            ),
            "--plugin mine.py: fault f: duration: bounds = 'cut_ms' is no bound of durations; did you mean 'cut_us'?",
        ),
        (
            (f"{HEAD}class C(Checker):\n    FINDINGS = (Finding('w', 'alway'),)\nPLUGIN = Plugin(checkers=[C])"),
            "--plugin mine.py: checker C: unknown promised word 'alway'; did you mean 'always'?",
        ),
        (
            (
                f"{HEAD}class F(FaultKind):\n"
                "    name, meaning, targets, duration = 'f', 'm', BROKER, DISTURBED\nPLUGIN = Plugin(faults=[F])"
            ),
            "--plugin mine.py: fault f has a duration, but no undo",
        ),
        (
            f"{HEAD}class F(FaultKind):\n    name, meaning, targets = 'kill', 'm', BROKER\nPLUGIN = Plugin(faults=[F])",
            "--plugin mine.py: fault 'kill' exists already; choose another name",
        ),
        (
            f"{HEAD}PLUGIN = Plugin(probes=[StepProbe('p', 'm', 'truncat')])",
            "--plugin mine.py: probe p: no step is called 'truncat'; did you mean 'truncate'?",
        ),
    ],
)
def test_bad_plugins_are_refused_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    assert refusal(tmp_path, text) == line


def test_a_scenario_that_shadows_one_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "scenarios" / "files" / "chaos.toml").read_text()
    line = refusal(tmp_path, f"{HEAD}PLUGIN = Plugin(scenarios=[{text!r}])")
    assert line == "--plugin mine.py: scenarios: 'chaos' is a scenario already; choose another name"


def test_a_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"--plugin none\.py: cannot be read: No such file"):
        plugins.load("none.py")
    with pytest.raises(InputError, match="--plugin none_at_all: there is no file and no module of this name"):
        plugins.load("none_at_all")


# A value that answers as its model.

UNCHANGED: dict[str, tuple[str, ...]] = {
    "truncation": ("kip101-scenario-1/hw/0", "kip279-scenario-3/kip101/0", "chaos/kip320/1", "messages/elr-4.3/6"),
    "fetcher_restart": ("sessions/hw/5", "sessions/kip101/2", "sessions/kip320/1"),
    "epoch_recorded": ("kip101-appendix/kip101/0", "chaos/kip320/2"),
    "isr_join": ("jepsen-2013/hw/0", "chaos/kraft/0"),
    "isr_leave": ("jepsen-2013/hw/0", "sessions/kip320/1", "kip966-first-replies/kraft/1"),
    "isr_accepted": ("kafka-20961/kraft/1", "messages/elr-4.3/6"),
    "high_watermark": ("jepsen-2013/hw/0", "last-replica-standing/elr-4.3/1", "elr-chaos/elr/0", "messages/elr-4.3/6"),
    "end_offset_hidden": ("power/kip279/1", "elr-chaos/kraft/7"),
    "replica_start": ("kafka-20961/kraft/0", "kafka-20961/elr/1"),
    "leader": ("jepsen-2013/hw/0", "sessions/kip320/1", "last-replica-standing/elr-4.3/1", "rolling/elr-recovery/7"),
    "elr": ("last-replica-standing/elr-4.3/1", "elr-chaos/elr/0"),
    "last_known_elr": ("messages/elr-4.3/6", "rolling/elr-recovery/7"),
    "reassignment_completes": ("reassignment-to-one/kraft/1", "reassignments/elr-4.3/0"),
}
"""Decision point -> golden runs that ask at it."""


@pytest.mark.world
@pytest.mark.parametrize("point", POINTS)
def test_a_value_that_answers_as_its_model_leaves_golden_digests_as_they_are(point: str, tmp_path: Path) -> None:
    golden = stored()
    for key in UNCHANGED[point]:
        name, mode, seed = key.split("/")
        for rule in POINTS[point].rules:
            model = MODES[mode].rules.value(rule)
            text = f"""
ASKED = []
def as_its_model(answer, at):
    ASKED.append(at)
    return answer
PLUGIN = Plugin(rule_values=[RuleValue("{rule}", "as-model", "{model}", {{"{point}": as_its_model}}, "as it")])
"""
            with plugins.loaded(written(tmp_path, HEAD + text)):
                row = run_row(catalogue.load(name), MODES[mode].override({rule: "as-model"}), int(seed))
                assert sys.modules["highwater_plugin_mine"].ASKED, (key, rule)
            assert (row["error"], row["digest"]) == ("", golden[key]), (key, rule)
