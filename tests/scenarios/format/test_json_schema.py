"""The JSON Schema accepts and refuses what ``scenarios validate`` does: shipped files, and each broken in one place."""

from __future__ import annotations

import copy
import json
import random
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format import catalogue, schema
from scenarios.format.json_schema import json_schema
from sim.errors import InputError
from tests.scenarios.format.json_validator import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call

SCHEMA = json_schema()
FILES = {name: tomllib.loads(catalogue.text(name)) for name in catalogue.names()}
BROKEN = 100


BETWEEN_TABLES = re.compile(
    "no line of the script sends it|more than one line sends it|there are only|that is more than 100|it needs the kind"
    "|it needs a kind|Kafka would not start|is drawn, and also set|the (brokers|replicas) are"
    "|a leader is one of|one of brokers"
    "|the lower bound first|does not run in|is in no rack|needs topology|no rule value cures it"
    "|the log directories of a broker are"
)
"""Problems between values that JSON Schema cannot compare."""


def problems(data: dict[str, Any]) -> tuple[str, ...]:
    """What ``scenarios validate`` says."""
    try:
        schema._scenario(copy.deepcopy(data))
    except InputError as error:
        return error.problems
    return ()


def validated(data: dict[str, Any]) -> bool:
    return not problems(data)


@pytest.mark.parametrize("name", FILES)
def test_shipped_files_are_valid(name: str) -> None:
    assert validated(FILES[name])
    assert list(errors(SCHEMA, FILES[name])) == []


@pytest.mark.parametrize("kind", ["scripted", "drawn"])
def test_templates_are_valid(kind: str) -> None:
    data = tomllib.loads(catalogue.template(kind, "mine"))
    assert validated(data)
    assert list(errors(SCHEMA, data)) == []


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values of a file, also of tables and lists."""
    yield path
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


def broken(data: dict[str, Any], chance: random.Random) -> tuple[str, dict[str, Any]]:
    """A copy with one mutation: a key that nobody has, a key less, or a value of another kind, out of bounds, or a word
    that is not in its list.
    """
    changed = copy.deepcopy(data)
    path = chance.choice([path for path in places(data) if path])
    *before, last = path
    parent: Any = changed
    for key in before:
        parent = parent[key]
    value = parent[last]
    options: list[Any] = [{"no": "such"}, [[]]]
    if isinstance(value, str):
        options += [7, "no such word", True]
    elif isinstance(value, int):
        options += ["many", -5, 1 << 62, 1.5, []]
    elif isinstance(value, list):
        options += [3, "x", [*value, {"a": 1}]]
    kind = chance.choice(("value", "value", "unknown", "missing"))
    if kind == "unknown" and isinstance(value, dict):
        value["no.such.key"] = 1
    elif kind == "missing" and isinstance(last, str):
        del parent[last]
    else:
        parent[last] = chance.choice(options)
    return f"{kind} at {path}", changed


@pytest.mark.world
def test_a_hundred_broken_files_are_refused_by_both() -> None:
    chance = random.Random(0)
    refused = 0
    names = list(FILES)
    while refused < BROKEN:
        name = chance.choice(names)
        what, data = broken(FILES[name], chance)
        found, by_schema = problems(data), list(errors(SCHEMA, data))
        if found and all(BETWEEN_TABLES.search(problem) for problem in found):
            continue
        assert bool(by_schema) == bool(found), f"{name}: {what}: {found}"
        refused += bool(found)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("[config]\nmin.insync.replicas = 2", True),
        ('[config]\n"min.insync.replicas" = 2', True),
        ('[config]\nmin."insync.replicas" = 2', True),
        ("[config]\nmin.insync.replica = 2", False),
        ('[config]\nlog.segment.bytes = "never"', True),
        ('[config]\nlog.segment.bytes = "ever"', False),
        ("[draw]\nmin.insync.replicas = []", False),
        ("[brokers.4]\nmin.insync.replicas = 2", True),
        ("[brokers.4]\nmode = 'hv'", False),
        ("[brokers.x]\nmin.insync.replicas = 2", False),
        ("[broken_by.elr]\nisr_join = 'high-watermark'", True),
        ("[broken_by.elr]\nisr_join = 'no'", False),
    ],
)
def test_tables_of_settings_and_rules(text: str, is_valid: bool) -> None:
    drawn = catalogue.template("drawn", "mine").replace("[draw]\nmin.insync.replicas = [1, 2, 2]\n", "[draw]\n")
    if text.startswith("[config]"):
        drawn = drawn.replace("[config]\n", f"{text}\n")
    elif text.startswith("[draw]"):
        drawn = drawn.replace("[draw]\n", f"{text}\n")
    else:
        drawn = f"{drawn}\n{text}\n"
    data = tomllib.loads(drawn)
    assert validated(data) == is_valid
    assert (not list(errors(SCHEMA, data))) == is_valid


@pytest.mark.parametrize("kind", ["scripted", "drawn"])
def test_new_writes_a_valid_scenario_once(highwater: Callable[..., Call], tmp_path: Any, kind: str) -> None:
    file = tmp_path / "mine.toml"
    assert highwater("scenarios", "new", file, f"--{kind}").code == 0
    checked = highwater("scenarios", "validate", file)
    assert (checked.code, checked.err) == (0, "")
    assert highwater("run", file, "--seed", 1, "-q").code == 0
    text = file.read_text()
    again = highwater("scenarios", "new", file, f"--{kind}")
    assert (again.code, again.err) == (2, f"highwater: {file} exists, and is never overwritten; name another file\n")
    assert file.read_text() == text


def test_a_scenario_whose_runs_are_vacuous_is_valid_with_a_warning(
    highwater: Callable[..., Call], tmp_path: Any
) -> None:
    file = tmp_path / "few.toml"
    text = catalogue.template("drawn", "few")
    file.write_text(text.replace("count = [4, 6]", "count = [2, 4]").replace("bursts = [5, 7]", "bursts = [1, 2]"))
    checked = highwater("scenarios", "validate", file)
    assert (checked.code, checked.out, checked.err.count("runs with fewer than 20 are vacuous")) == (
        0,
        f"{file}: valid\n",
        1,
    )
    assert "faults.count = [2, 4]: runs with fewer than 3 are vacuous" in checked.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("mine.toml",), "choose --scripted or --drawn"),
        (("mine.txt", "--drawn"), "mine.txt is not valid: the name of a scenario file ends in .toml"),
        (("My Scenario.toml", "--drawn"), "is no scenario's name"),
        (("nowhere/mine.toml", "--drawn"), "cannot be written: No such file or directory"),
    ],
)
def test_new_refuses(
    highwater: Callable[..., Call], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    called = highwater("scenarios", "new", *words)
    assert (called.code, called.err.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])
    assert problem in called.err


def test_show_prints_the_file(highwater: Callable[..., Call]) -> None:
    text = (files("scenarios") / "files" / "chaos.toml").read_text("utf-8")
    assert highwater("scenarios", "show", "chaos", "--toml").out == text
    assert highwater("scenarios", "show", "chaos", "--toml", "--json").code == 2


def test_schema_is_printed(highwater: Callable[..., Call]) -> None:
    assert json.loads(highwater("scenarios", "schema").out) == SCHEMA
