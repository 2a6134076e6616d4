from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.sweep.extent import Extent, Piece, merged, runs_of, split, take, units

PIECES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 5)).map(lambda one: (one[0], one[1], sum(one[1:]))),
    max_size=8,
)


def seeds(pieces: list[Piece] | tuple[Piece, ...]) -> list[tuple[int, int]]:
    return [(variant, seed) for variant, first, end in pieces for seed in range(first, end)]


@given(PIECES, PIECES)
def test_an_extent_is_a_set_of_seeds(some: list[Piece], others: list[Piece]) -> None:
    one, other = set(seeds(some)), set(seeds(others))
    extent = Extent(some)
    assert seeds(extent.pieces()) == sorted(one)
    assert seeds(extent.plus(others).pieces()) == sorted(one | other)
    assert seeds(extent.minus(Extent(others)).pieces()) == sorted(one - other)
    assert bool(extent) == bool(one)
    assert (extent == Extent(others)) == (one == other)
    assert all(extent.has(variant, seed) == ((variant, seed) in one) for variant in range(3) for seed in range(20))
    # As few pieces as can be: none touches the next.
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in zip(extent.pieces(), extent.pieces()[1:], strict=False))


@given(PIECES, st.integers(1, 9))
def test_shares_are_even_and_lose_nothing(pieces: list[Piece], count: int) -> None:
    whole = Extent(pieces).pieces()
    shares = split(whole, count)
    assert [seed for share in shares for seed in seeds(share)] == seeds(whole)
    sizes = [units(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert len(shares) == max(1, min(count, units(whole)))


@given(PIECES, st.integers(1, 30))
def test_taken_part_and_rest_are_the_whole(pieces: list[Piece], number: int) -> None:
    whole = Extent(pieces).pieces()
    head, rest = take(whole, number)
    assert seeds(head) + seeds(rest) == seeds(whole)
    assert units(head) == min(number, units(whole))


@given(st.sets(st.integers(0, 30)))
def test_seeds_become_ranges(found: set[int]) -> None:
    ranges = runs_of(sorted(found))
    assert [seed for first, end in ranges for seed in range(first, end)] == sorted(found)
    assert ranges == merged(ranges)
