from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest

from sim.kernel.message import ABOUT, KIND
from sim.kernel.mixing import BITS, key_of, mixed

MANY = 20_000
KEYS = (mixed(0, 1), mixed(0, 2), key_of("a"), key_of("b"))
NUMBERS = {
    "counted": range(MANY),
    "offsets": [offset << ABOUT for offset in range(MANY)],
    "offsets and epochs": [(offset << ABOUT) + epoch for offset in range(MANY // 20) for epoch in range(-1, 19)],
    "kinds": [(kind << KIND) + first for kind in range(100) for first in range(MANY // 100)],
    "negative": range(-MANY, 0),
}


def is_even(cells: list[int], size: int) -> bool:
    """Whether so many cells are hit evenly: chi-square within five standard deviations."""
    expected = len(cells) / size
    count = Counter(cells)
    chi = sum((count[cell] - expected) ** 2 / expected for cell in range(size))
    return abs(chi - (size - 1)) < 5 * math.sqrt(2 * (size - 1))


def test_numbers_stay_what_they_are() -> None:
    """In all builds, on all Pythons."""
    assert [mixed(0, 0), mixed(0, 1), mixed(1, 0)] == [0, *[PINNED[0]] * 2]
    assert [mixed(key_of("a"), number) for number in (-1, 0, 1 << 61)] == PINNED[1:]


PINNED = [2558316639043922398, 2672176502474130291, 1900257990479981621, 2397476448441427045]


@pytest.mark.parametrize("what", NUMBERS)
@pytest.mark.parametrize("key", KEYS)
def test_the_upper_bits_are_uniform_and_neighbours_independent(key: int, what: str) -> None:
    drawn = [mixed(key, number) for number in NUMBERS[what]]
    assert all(0 <= number < 1 << BITS for number in drawn)
    assert len(set(drawn)) == len(drawn)
    for shift in range(BITS - 8, 26, -4):
        assert is_even([number >> shift & 255 for number in drawn], 256), shift
    top = BITS - 4
    assert is_even([(one >> top) * 16 + (other >> top) for one, other in pairwise(drawn)], 256)
    assert is_even([(number >> top) * 16 + (number >> 34 & 15) for number in drawn], 256)


def test_seeds_and_links_that_are_neighbours_are_independent() -> None:
    """What one message draws over many seeds, on one link and the next, in one seed and the next."""
    draws = [
        [mixed(mixed(mixed(key_of(f"{seed}:network"), source), 2), 7 << KIND) for source in (1, 3)]
        for seed in range(MANY)
    ]
    top = BITS - 4
    assert is_even([(one >> top) * 16 + (other >> top) for one, other in draws], 256)
    assert is_even([(one[0] >> top) * 16 + (other[0] >> top) for one, other in pairwise(draws)], 256)
    mean = (1 << (BITS - 1)) - 0.5
    links = sum((one - mean) * (other - mean) for one, other in draws) / MANY
    seeds = sum((one[0] - mean) * (other[0] - mean) for one, other in pairwise(draws)) / MANY
    deviation = (1 << BITS) ** 2 / 12
    assert abs(links / deviation) < 5 / MANY**0.5
    assert abs(seeds / deviation) < 5 / MANY**0.5


def test_one_number_in_many_families_has_the_spacings_of_birthdays() -> None:
    """Marsaglia's test: of n birthdays in a year of m days, equal spacings are Poisson with a mean of n**3 / 4m."""
    year, birthdays, rounds = 24, 512, 200
    mean = birthdays**3 / 4 / (1 << year)
    for days in (
        [[mixed(key_of(str(seed)), n) for n in range(birthdays)] for seed in range(rounds)],
        [[mixed(mixed(mixed(0, seed), n), 1) for n in range(birthdays)] for seed in range(rounds)],
    ):
        equal = 0
        for numbers in days:
            sorted_days = sorted(number >> (BITS - year) for number in numbers)
            spacings = [later - day for day, later in pairwise(sorted_days)]
            equal += len(spacings) - len(set(spacings))
        assert abs(equal - rounds * mean) < 5 * (rounds * mean) ** 0.5


def test_every_input_bit_changes_half_of_the_upper_output_bits() -> None:
    tries = 200
    for bit in range(BITS):
        changed = [0] * BITS
        for number in range(tries):
            key = mixed(1, number)
            difference = mixed(key, number) ^ mixed(key ^ 1 << bit, number)
            for place in range(BITS):
                changed[place] += difference >> place & 1
        upper = changed[34:]
        assert 0.25 * tries < min(upper)
        assert max(upper) < 0.75 * tries
