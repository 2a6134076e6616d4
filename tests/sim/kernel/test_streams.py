from __future__ import annotations

from sim.kernel.streams import Stream, Streams, choice, integer, sample


def test_streams_depend_on_seed_and_name_alone() -> None:
    one, other = Streams(7), Streams(7)
    other("b").random()
    assert [one("a").random() for _ in range(5)] == [other("a").random() for _ in range(5)]
    assert one("a") is one("a")
    first = {(seed, name): Streams(seed)(name).getrandbits(62) for seed in range(20) for name in "abc"}
    assert len(set(first.values())) == len(first)


def test_the_first_numbers_of_a_stream_stay_what_they_are() -> None:
    stream = Streams(1)("network")
    assert [stream.getrandbits(8) for _ in range(6)] == NETWORK_1


NETWORK_1 = [99, 163, 52, 28, 245, 37]


def test_integers_reach_both_bounds_and_nothing_else() -> None:
    stream = Stream(1)
    assert {integer(stream, -1, 2) for _ in range(200)} == {-1, 0, 1, 2}
    assert integer(stream, 5, 5) == 5


def test_choice_reaches_all_and_sample_repeats_none() -> None:
    stream = Stream(1)
    assert {choice(stream, "abc") for _ in range(100)} == {"a", "b", "c"}
    drawn = [tuple(sample(stream, (1, 2, 3), 2)) for _ in range(100)]
    assert len(set(drawn)) == 6
    assert all(len(set(pair)) == 2 for pair in drawn)
    assert sorted(sample(stream, (1, 2, 3), 3)) == [1, 2, 3]


def test_a_number_drawn_once_is_the_same_for_a_name_and_spread_evenly() -> None:
    assert Streams(5).number("a") == Streams(5).number("a")
    numbers = [Streams(seed).number(name) for seed in range(500) for name in ("a", "b")]
    assert len(set(numbers)) == 1000
    assert all(0 <= number < 1 for number in numbers)
    tenths = [sum(int(number * 10) == tenth for number in numbers) for tenth in range(10)]
    assert min(tenths) > 70
