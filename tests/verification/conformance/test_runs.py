from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

import pytest

from tests.verification.conformance.cases import BUNDLED, TABLES, read_cases
from tests.verification.conformance.kinds import KINDS
from tests.verification.conformance.runs import rules_for

CASES = {case.id: case for case in read_cases(BUNDLED)}


def test_every_case_runs() -> None:
    assert not [name for name, case in CASES.items() if not rules_for(case) or case.kind not in KINDS]


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("ft-d14", ["kip101"]),
        ("ft-d16", ["kip101", "latest"]),
        ("ft-c08", ["latest", "kraft"]),
        ("ft-d11", ["latest", "kraft"]),
        ("ft-l02", ["kraft"]),
        ("ft-v11", ["kraft"]),
        ("ft-x01", ["latest"]),
        ("hi-07", ["kraft"]),
        ("hi-29", ["latest", "alter-partition"]),
    ],
)
def test_the_rules_are_those_of_its_time(name: str, rules: list[str]) -> None:
    assert list(rules_for(CASES[name])) == rules


def _expected(expect: object) -> Iterator[str]:
    """Keys of an expectation whose values are compared."""
    if isinstance(expect, Mapping):
        for key, value in expect.items():
            if isinstance(value, Mapping):
                yield from _expected(value)
            else:
                yield key


@pytest.mark.parametrize("table", TABLES)
def test_little_of_a_table_is_not_modelled(table: str) -> None:
    cases = [case for case in CASES.values() if case.table == table]
    expected = [(case.kind, key) for case in cases for op in case.ops for key in _expected(op.get("expect"))]
    unmodelled = [key for kind, key in expected if kind in KINDS and key in KINDS[kind].unmodelled]
    assert len(unmodelled) <= ceil(len(expected) / 20)


def test_unmodelled_values_are_expected_somewhere() -> None:
    expected = {(case.kind, key) for case in CASES.values() for op in case.ops for key in _expected(op.get("expect"))}
    for kind, driver in KINDS.items():
        others = {key for other, key in expected if KINDS.get(other) is driver}
        assert set(driver.unmodelled) <= others, kind
