from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from scenarios.format.validation import OpenTable, StrictTable, checked, validated
from sim.errors import InputError


def even(value: int, least: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    if value < least:
        raise InputError(f"number {value} is below {least}")
    return value * 10


class Inner(StrictTable):
    number: Annotated[int, AfterValidator(checked(even))]


class Outer(StrictTable):
    word: str
    faults: list[Inner] = []  # noqa: RUF012 (pydantic copies it)
    inner: Inner | None = None


class Loose(OpenTable):
    word: str


TABLES: dict[str, type[StrictTable]] = {"": Outer, "faults": Inner, "inner": Inner}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], ["it = []: a table is needed"]),
        ({}, ["'word' is missing"]),
        ({"word": True}, ["word = True: input should be a valid string"]),
        ({"word": "a", "wrd": 1}, ["unknown key 'wrd'; did you mean 'word'?"]),
        ({"word": "a", "inner": {}}, ["inner: 'number' is missing"]),
        ({"word": "a", "inner": {"number": True}}, ["inner.number = True: input should be a valid integer"]),
        ({"word": "a", "inner": {"number": 3}}, ["inner.number = 3: it is odd"]),
        ({"word": "a", "inner": {"number": 2}}, ["inner: number 2 is below 4"]),
        ({"word": 1, "faults": [{"number": 4}, {"numbr": 4}]},
         ["word = 1: input should be a valid string", "faults 2: 'number' is missing",
          "faults 2: unknown key 'numbr'; did you mean 'number'?"]),
    ],
)  # fmt: skip
def test_validated_names_all_that_is_wrong(data: Any, said: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        validated(Outer, data, 4, TABLES)
    assert list(caught.value.problems) == said


def test_validated_gives_what_checks_give() -> None:
    assert validated(Outer, {"word": "a", "inner": {"number": 4}}, 4).inner == Inner.model_construct(number=40)


def test_open_table_reads_what_it_names_and_nothing_else() -> None:
    assert validated(Loose, {"word": "a", "more": []}).model_dump() == {"word": "a"}
    with pytest.raises(InputError, match="'word' is missing"):
        validated(Loose, {"more": []})
