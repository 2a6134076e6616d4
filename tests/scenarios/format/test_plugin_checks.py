"""Wrong declarations of rules and kinds of fault are refused when a plug-in is loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from faults.kind import PARAM_KINDS
from scenarios.format import plugins, schema, values
from scenarios.format.actions import ACTIONS
from scenarios.format.plugin_checks import RESERVED
from sim.errors import InputError
from sim.kernel.build import COMPILED
from tests.places import ROOT
from tests.plain import needs_sources

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "from highwater.plugin import *\nAPI_VERSION = 1\n"
FAULT = """
class F(FaultKind):
    name, meaning, targets, remains = "f", "m", BROKER, "r"
    {}

    def strike(self, cluster, fault, target):
        return True

    def undo(self, cluster, fault, target):
        pass

PLUGIN = Plugin(faults=[F])
"""


def refusal(folder: Path, text: str) -> str:
    """The one line with which a plug-in is refused."""
    file = folder / "mine.py"
    file.write_text(HEAD + text)
    with pytest.raises(InputError) as caught, plugins.loaded(str(file)):
        pass
    (line,) = caught.value.problems
    assert "\n" not in line
    return line.replace(str(file), "mine.py")


def test_every_kind_of_parameter_has_a_meaning() -> None:
    assert list(PARAM_KINDS) == list(values.PARAMS)


@needs_sources
def test_the_guide_names_every_kind_of_parameter() -> None:
    text = (ROOT / "notebooks" / "guide" / "plugins.md").read_text(encoding="utf-8")
    listed = text.partition("A `Param` is ")[2].partition(":")[0]
    assert re.findall(r"`([\w-]+)`", listed) == list(PARAM_KINDS)


def test_the_names_of_a_script_line_are_reserved() -> None:
    line = schema.line("kill")
    common = set.intersection(*(set(one.model_fields) for one in map(schema.line, ACTIONS)))
    methods = {name for name in dir(line) if not name.startswith(("_", "model_"))}
    assert common | methods <= {*RESERVED}


@pytest.mark.parametrize("kind", PARAM_KINDS)
def test_every_kind_of_parameter_can_be_a_targets_parameter(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + FAULT.format(f"targets = Targets('x', {{'other': Param({kind!r})}})"))
    text = (ROOT / "scenarios" / "files" / "canary.toml").read_text()
    with plugins.loaded(str(file)):
        assert schema.read(text, "canary").name == "canary"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "amount = Amount('peers', Param('number'), 'brokers', (1, 2))",
            "amount: Param: no kind of parameter is 'number'; did you mean 'broker'? One of: batch, ",
        ),
        (
            "amount = Amount('peers', Param('cont'), 'brokers', (1, 2))",
            "amount: Param: no kind of parameter is 'cont'; did you mean 'count'? One of: batch, ",
        ),
        (
            "targets = Targets('x', {'broker': Param('brokr')})",
            "parameter broker: no kind of parameter is 'brokr'; did you mean 'broker'?",
        ),
        (
            "targets = Targets('x', {'broker': Param('brokers')})",
            "targets: broker is Param('brokers'); use broker or leader or endpoint, or define targets_of",
        ),
        ("amount = Amount('do', Param('count'), 'b', (1, 2))", "'do' cannot be the name of a parameter: "),
        ("amount = Amount('json', Param('count'), 'b', (1, 2))", "'json' cannot be the name of a parameter: "),
        ("amount = Amount('model_x', Param('count'), 'b', (1, 2))", "'model_x' cannot be the name of a parameter: "),
        ("amount = Amount('b', Param('brokers'), 'b', (1, 2))", "amount: Param('brokers') is no number; use one of: "),
        ("amount = Amount('b', Param('count'), 'b', (2, 1))", "amount: bounds = (2, 1): two ints are needed"),
        pytest.param(  # Compiled code does not make a tuple of three an `Amount`.
            "amount = Amount('b', Param('count'), 'b', (1, 2, 3))",
            "amount: bounds = (1, 2, 3): two ints are needed",
            marks=needs_sources,
        ),
        ("amount = Amount('broker', Param('count'), 'b', (1, 2))", "two parameters are called 'broker'"),
        ("duration = Duration('replicas')", "duration: bounds = 'replicas' is no bound of durations"),
        (
            "duration = Duration('nonsense')",
            "duration: bounds = 'nonsense' is no bound of durations; one of: restart_us, cut_us, pause_us, slow_us",
        ),
        ("needs = ('a broker',)", "needs 'a broker'; KRAFT, OTHER_REPLICA and OTHER_BROKER are known"),
        ("roles = ('request',)", "roles: 'request': a Role is needed"),
    ],
)
def test_names_in_a_kind_of_fault_are_checked(tmp_path: Path, line: str, problem: str) -> None:
    assert refusal(tmp_path, FAULT.format(line)).startswith(f"--plugin mine.py: fault f: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("targets = Targets('x', {'broker': 5})", "parameter broker: 5: a Param is needed, as in Param('broker')"),
        ("targets = Targets('x', 5)", "targets: params = 5: Mapping is needed"),
        ("amount = Amount('peers', 'count', 'b', (1, 2))", "amount: given = 'count': Param is needed"),
        ("amount = Amount('peers', Param(['count']), 'b', (1, 2))", "amount: Param: kind = ['count']: str is needed"),
        ("amount = Amount(5, Param('count'), 'b', (1, 2))", "amount: param = 5: str is needed"),
        ("amount = Amount('b', Param('count'), 'b', 5)", "amount: bounds = 5: tuple or str is needed"),
        ("duration = Duration(5)", "duration: bounds = 5: str is needed"),
    ],
)
def test_types_in_a_kind_of_fault_are_checked(tmp_path: Path, line: str, problem: str) -> None:
    found = refusal(tmp_path, FAULT.format(line))
    assert found == f"--plugin mine.py: fault f: {problem}" or (COMPILED and "TypeError" in found)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("(('controlplane', ('kraft',)),)", "unknown rule 'controlplane'; did you mean 'control_plane'?"),
        (
            "(('control_plane', ('kraftt',)),)",
            "rule control_plane has no value 'kraftt'; did you mean 'kraft'?",
        ),
        ("(('control_plane', 'kraft'),)", "('control_plane', 'kraft'): a rule and a tuple of its values are needed"),
        ("('elr', ('on',))", "'elr': a rule and a tuple of its values are needed"),
        ("(('elr', ()),)", "no values of rule elr are named; it has off, on"),
    ],
)
def test_where_of_a_rule_is_checked(tmp_path: Path, where: str, problem: str) -> None:
    text = f"PLUGIN = Plugin(rules=[Rule('aa', {{'x': {{}}, 'y': {{}}}}, 'm', where={where})])"
    assert refusal(tmp_path, text).startswith(f"--plugin mine.py: rule aa: where: {problem}")


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("rules=Rule('aa', {'x': {}, 'y': {}}, 'm')", "rules = Rule("),
        ("modes='text'", "modes = 'text': a list is needed, as in modes = [...]"),
        ("rules=['aa']", "rules: 'aa': a Rule is needed"),
        ("rules=[Rule('aa', ['x', 'y'], 'm')]", "rule aa: values = ['x', 'y']: Mapping is needed"),
        ("rules=[Rule('aa', {'x': None, 'y': {}}, 'm')]", "rule aa, value x: None: a dict of decisions and functions"),
        ("rules=[Rule('aa', {'x': {}, 'y': {}}, 'm', where=5)]", "rule aa: where = 5: tuple or list is needed"),
        (
            "rule_values=[RuleValue('isr_join', 'aa', 'high-watermark', None, 'm')]",
            "rule isr_join, value aa: decisions = None: Mapping is needed",
        ),
    ],
)
def test_types_in_rules_are_checked(tmp_path: Path, declared: str, problem: str) -> None:
    found = refusal(tmp_path, f"PLUGIN = Plugin({declared})")
    assert found.startswith(f"--plugin mine.py: {problem}") or (COMPILED and "TypeError" in found)


@pytest.mark.parametrize("function", ["lambda answer: answer", "lambda: 1", "lambda answer, at, more: answer"])
def test_functions_of_decisions_take_two_arguments(tmp_path: Path, function: str) -> None:
    text = f"PLUGIN = Plugin(rules=[Rule('aa', {{'x': {{}}, 'y': {{'leader': {function}}}}}, 'm')])"
    begin, _, end = refusal(tmp_path, text).partition(" takes (")
    assert begin == "--plugin mine.py: rule aa, value y: decision 'leader'"
    assert end.endswith("), but is called with (answer, situation)")


def test_the_function_of_a_probe_takes_a_step(tmp_path: Path) -> None:
    line = refusal(tmp_path, "PLUGIN = Plugin(probes=[StepProbe('p', 'm', 'ack', lambda: True)])")
    assert line == "--plugin mine.py: probe p: when takes (), but is called with (step)"


@pytest.mark.parametrize(
    "text",
    [
        "PLUGIN = Plugin(rules=[Rule('r', {'a': {}, 'b': {}}, '\\ud800')])",
        "PLUGIN = Plugin(probes=[StepProbe('p', '\\ud800', 'isr')])",
        "PLUGIN = Plugin(modes=['# \\ud800'])",
        FAULT.format("meaning = '\\ud800'"),
    ],
)
def test_text_that_cannot_be_written_is_refused(tmp_path: Path, text: str) -> None:
    assert "is no text" in refusal(tmp_path, text)
