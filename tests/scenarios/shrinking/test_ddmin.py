from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.shrinking.ddmin import ddmin

SUBSETS = st.lists(st.integers(0, 30), unique=True, max_size=20)


@given(SUBSETS, st.data())
def test_what_is_needed_is_what_is_left(items: list[int], data: st.DataObject) -> None:
    needed = set(data.draw(st.lists(st.sampled_from(items), unique=True))) if items else set()
    assert ddmin(items, lambda part: needed <= set(part)) == tuple(item for item in items if item in needed)


@given(SUBSETS, st.integers(0, 2**32))
def test_ddmin_results_are_1_minimal(items: list[int], salt: int) -> None:
    tried: dict[tuple[int, ...], bool] = {tuple(items): True}

    def holds(part: tuple[int, ...]) -> bool:
        return tried.setdefault(part, hash((salt, part)) % 5 == 0)

    found = ddmin(items, holds)
    assert tried[found]
    for place in range(len(found)):
        assert tried[found[:place] + found[place + 1 :]] is False


@given(SUBSETS)
def test_the_order_stays(items: list[int]) -> None:
    found = ddmin(items, lambda part: len(part) * 2 >= len(items))
    assert [item for item in items if item in found] == list(found)


def test_one_of_many_is_found_in_few_tests() -> None:
    tests: list[tuple[int, ...]] = []

    def holds(part: tuple[int, ...]) -> bool:
        tests.append(part)
        return 700 in part

    assert ddmin(range(1_000), holds) == (700,)
    assert len(tests) < 30


def test_nothing_is_left_of_what_is_not_needed() -> None:
    assert ddmin("abc", lambda _: True) == ()
    assert ddmin("", lambda _: False) == ()
