"""The mutants of small modules."""

from __future__ import annotations

import ast
import builtins
from random import Random
from textwrap import dedent
from typing import Any

import pytest

from tests.places import ROOT
from tests.verification.mutants.__main__ import mutants_of
from tests.verification.mutants.operators import (
    CONSTANT,
    DROPPED,
    NEGATED,
    OFF_BY_ONE,
    OPERAND,
    OPERATORS,
    REACHED,
    RETURNED,
    SHIFTED,
    STALE_COPY,
    SWAPPED,
    Mutant,
    Source,
    drawn,
    fields_of,
)
from tests.verification.mutants.worker import mutated_files


def mutants(text: str, *classes: str) -> list[Mutant]:
    fields = fields_of(ast.parse(dedent(one)) for one in (text, *classes))
    return list(Source("sim/some.py", dedent(text).encode(), fields).mutants())


def texts(text: str, operator: str, *classes: str) -> set[tuple[str, str]]:
    return {(one.before, one.after) for one in mutants(text, *classes) if one.operator == operator}


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (NEGATED, {("leo > hw and ok", "not (leo > hw and ok)")}),
        (CONSTANT, {("leo > hw and ok", "True"), ("leo > hw and ok", "False")}),
        (SHIFTED, {("leo > hw", "leo >= hw")}),
        (
            OPERAND,
            {
                ("leo > hw and ok", "(ok)"),
                ("leo > hw and ok", "(leo > hw)"),
                ("leo > hw and ok", "(leo > hw) or (ok)"),
            },
        ),
        (SWAPPED, {("leo", "hw"), ("hw", "leo")}),
        (OFF_BY_ONE, {("leo", "leo + 1"), ("leo", "leo - 1"), ("hw", "hw + 1"), ("hw", "hw - 1")}),
        (DROPPED, {("self.advance()", "pass")}),
        (RETURNED, {("", "return")}),
    ],
)
def test_each_operator_makes_its_mistakes(operator: str, expected: set[tuple[str, str]]) -> None:
    text = """
        def f(self, leo: int, hw: int, ok: bool) -> None:
            if leo > hw and ok:
                self.advance()
    """
    assert texts(text, operator) == expected


def test_a_return_of_a_truth_value_is_constant() -> None:
    text = """
        def f(leo: int) -> bool:
            return leo == 3
    """
    assert texts(text, RETURNED) == {("leo == 3", "True"), ("leo == 3", "False")}


def test_an_attribute_becomes_its_neighbour_of_the_same_type() -> None:
    text = """
        def f(state) -> None:
            return g(state.isr)
    """
    one = """
        class State:
            isr: tuple[int, ...]
            epoch: int
            elr: tuple[int, ...]
    """
    other = """
        class Other:
            isr: tuple[int, ...]
            last: tuple[int, ...]
    """
    assert texts(text, SWAPPED, one) == {("state.isr", "state.elr")}
    assert texts(text, SWAPPED, one, other) == set()  # Which class it is does not show.


def test_types_of_attributes_are_those_that_are_passed_to_the_constructor() -> None:
    text = """
        class Log:
            def __init__(self, leo: int, hw: int, name: str) -> None:
                self.leo = leo
                self.hw = hw
                self.name = name
                self.open = True

            def first(self) -> int:
                return self.leo
    """
    assert ("self.leo", "self.hw") in texts(text, SWAPPED)


def test_what_no_run_depends_on_is_left_alone() -> None:
    text = '''
        def f(self, leo: int) -> int:
            """Text 1."""
            assert leo > 1
            self.host.reached(leo)
            if TYPE_CHECKING:
                raise ValueError(f"{leo} is 3")
            found: dict[int, 2] = cast("int", 4)
            return found
    '''
    assert {one.before for one in mutants(text)} == {"TYPE_CHECKING"}


def test_mutants_are_applied_and_note_that_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    text = dedent("""
        class Log:
            def __init__(self) -> None:
                self.hw = 5  # Größe

            def move(self, hw: int) -> list[int]:
                before = [self.hw]
                self.hw = hw
                if hw > 7:
                    before.append(self.hw)
                elif hw > 6:
                    before.clear()
                return list(before)

            def end(self) -> None:
                self.hw = 0
                self.hw = 1
    """)
    calls: list[int] = []
    monkeypatch.setattr(builtins, REACHED, lambda: calls.append(1), raising=False)

    def results(mutant: Mutant) -> tuple[list[int], int, bool]:
        names: dict[str, Any] = {}
        exec(mutant.applied(text.encode()), names)  # noqa: S102
        calls.clear()
        log = names["Log"]()
        moved = log.move(9)
        log.end()
        return moved, log.hw, bool(calls)

    found = {(one.operator, one.before, one.after): results(one) for one in mutants(text)}
    assert found[STALE_COPY, "self.hw", "self.hw of before"] == ([5, 5], 1, True)
    assert found[DROPPED, "self.hw = hw", "pass"] == ([5, 5], 1, True)
    assert found[NEGATED, "hw > 7", "not (hw > 7)"] == ([], 1, True)
    assert found[OFF_BY_ONE, "7", "8"] == ([5, 9], 1, True)
    assert found[NEGATED, "hw > 6", "not (hw > 6)"] == ([5, 9], 1, False)
    assert found[RETURNED, "", "return"] == ([5, 9], 0, True)


def test_a_constructor_sets_all_attributes() -> None:
    text = """
        class Log:
            def __init__(self) -> None:
                self.hw = 0
                self.leo = 0
    """
    assert {one.operator for one in mutants(text)} == {OFF_BY_ONE}


def test_the_draw_takes_operators_alike_and_nothing_twice() -> None:
    text = """
        def f(leo: int, hw: int) -> None:
            if leo > hw:
                g(1, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    every = mutants(text)
    found = drawn(every, Random(1), 12)
    assert len(set(found)) == 12
    assert found == drawn(every, Random(1), 12)
    assert {one.operator for one in found} >= {NEGATED, SHIFTED, CONSTANT}
    assert sorted(map(repr, drawn(every, Random(1), 10_000))) == sorted(map(repr, every))
    assert {one.operator for one in every} <= OPERATORS.keys()


def test_mutants_of_the_protocol_compile() -> None:
    every = mutants_of(mutated_files()[::9])
    assert {one.operator for one in every} == OPERATORS.keys()
    assert len({one.name for one in every}) == len(every)
    for mutant in drawn(every, Random(0), 60):
        compile(mutant.applied((ROOT / mutant.file).read_bytes()), mutant.file, "exec")
