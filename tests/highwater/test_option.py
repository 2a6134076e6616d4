"""An option is declared once: as a field of a request, from which command line and Python function derive it."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, field
from typing import Annotated, Any

import click
import pytest

import highwater as hw
from highwater import values
from highwater.cli.commands import compare
from highwater.cli.console import Ui
from highwater.cli.options import Command, takes
from highwater.option import Argument, Option, as_function, declared
from highwater.requests import CompareRequest
from sim.errors import InputError
from tests.places import ROOT


@dataclass(frozen=True, kw_only=True)
class More(CompareRequest):
    """A request of `compare` with one more option."""

    top: Annotated[int, Option(metavar="N", type=int, before="by", help="Only the first N.")] = 3


@as_function(More)
def more(asked: More) -> More:
    """Compare more."""
    return asked


@click.command("compare", cls=Command)
@takes(More)
def command(asked: More) -> Any:
    return asked


def given(*words: str) -> Any:
    with command.make_context("compare", list(words), obj=Ui()) as context:
        return command.invoke(context)


def test_one_more_option_of_compare_is_one_more_field() -> None:
    text = command.get_help(click.Context(command, info_name="compare"))
    assert text.index("--top N  ") < text.index("--by mode|KEY")
    assert "Only the first N." in text
    assert given("store", "--top", "5") == more("store", top=5) == More("store", top=5)
    assert given("store") == more("store") == More("store")
    assert inspect.signature(more).parameters["top"].annotation is int
    assert "    top: Only the first N." in str(more.__doc__)


def test_compare_declares_each_option_in_one_place() -> None:
    fields = [one.name for one, _, _ in declared(compare.CompareOptions)]
    params = [param.name for param in compare.command.params if param.expose_value]
    assert params == fields
    files = [ROOT / "highwater" / "requests.py", ROOT / "highwater" / "cli" / "commands" / "compare.py"]
    declarations = [
        node.target.id
        for file in files
        for owner in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(owner, ast.ClassDef) and owner.name in ("StoreRequest", "CompareRequest", "CompareOptions")
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    assert sorted(declarations) == sorted(fields)
    assert "click.option" not in files[1].read_text(encoding="utf-8")


def test_a_function_has_the_signature_of_its_request() -> None:
    names = list(inspect.signature(CompareRequest).parameters)
    assert list(inspect.signature(hw.compare).parameters) == names == ["folder", "by", "kind", "scenario", "mode"]
    first = list(inspect.signature(hw.spark.runs).parameters)[:4]
    assert first == ["spark", "scenarios", "modes", "seeds"]


def test_callers_are_checked() -> None:
    """By mypy, too: otherwise it would find these comments unused."""
    with pytest.raises(TypeError, match="kinds"):
        hw.compare("store", kinds="any")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="output"):
        hw.sweep("power", "0..2")  # type: ignore[call-arg]


def test_a_function_takes_the_words_of_an_option_and_names_parameters() -> None:
    assert hw.rows.__doc__ is not None
    also = more("store", modes="hw")  # type: ignore[call-arg]
    assert also == more("store", mode="hw") == More("store", mode="hw")
    with pytest.raises(TypeError, match=r"more\(\) has no parameter 'mods'; did you mean 'modes'\?"):
        more("store", mods="hw")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="the parameter 'mode' twice, once as 'modes'"):
        more("store", mode="hw", modes="kraft")  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"choose one with mode: hw, "):
        hw.shrink("kip101-scenario-1", ["hw", "kip101"])


def test_a_function_describes_each_parameter_with_a_default_that_can_be_written() -> None:
    for function in (hw.run, hw.sweep, hw.runs, hw.rows, hw.compare, hw.report, hw.shrink, hw.explain, hw.spark.stream):
        assert not re.findall(r"^    \w+: *$", str(function.__doc__), re.MULTILINE)
        assert "factory" not in str(inspect.signature(function))


@pytest.mark.parametrize(
    ("given", "seeds"), [(3, range(3)), ([4, 5, 6], range(4, 7)), ((7,), range(7, 8)), (range(2, 4), range(2, 4))]
)
def test_seeds_of_python(given: Any, seeds: range) -> None:
    assert values.seed_range(given) == seeds


@pytest.mark.parametrize("given", [[1, 3], [2, 1], [], 1.5, True, None, ["1"]])
def test_what_is_no_range_of_seeds(given: Any) -> None:
    with pytest.raises(InputError, match="is not valid"):
        values.seed_range(given)


def rule_pairs(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.split("=") for word in words)


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A request with a field of each kind."""

    last: Annotated[bool, Option("--all")] = False
    pairs: Annotated[
        dict[str, str], Option(multiple=True, read=lambda words: dict(word.split("=") for word in words))
    ] = field(default_factory=dict)
    only_python: Annotated[int, "Not on the command line."] = 1
    names: Annotated[tuple[str, ...], Argument(nargs=-1, required=False, before="last")] = ()
    early: Annotated[str, Option(before="pairs")] = "x"
    homeless: Annotated[str, Option(before="no_field")] = "y"


def test_help_has_the_order_of_the_fields_unless_they_say_otherwise() -> None:
    assert [one.name for one, _, _ in declared(Odd)] == ["names", "last", "early", "pairs", "homeless"]


def test_what_is_not_given_has_the_default_of_its_field() -> None:
    odd = click.command(cls=Command)(takes(Odd)(lambda asked: asked))

    def read(*words: str) -> Any:
        with odd.make_context("odd", list(words), obj=Ui()) as context:
            return odd.invoke(context)

    assert read() == Odd()
    assert read("a", "b", "--all", "--pairs", "k=v", "--early", "") == Odd(
        names=("a", "b"), last=True, pairs={"k": "v"}, early=""
    )
