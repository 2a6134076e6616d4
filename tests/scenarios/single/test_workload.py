from __future__ import annotations

from itertools import pairwise

import pytest

from scenarios.format.scenario import Bursts
from scenarios.single.draws import draw_sends
from sim.kernel.scheduler import BudgetError
from sim.kernel.streams import Streams

BURSTS = Bursts(bursts=(2, 3), batches=(3, 4), gap_ms=(10, 20), records=(1, 5), acks_one_every=5)
WINDOW_US = (1_000, 900_000)
DRAWN = [draw_sends(Streams(seed), BURSTS, WINDOW_US, -1) for seed in range(200)]


def test_batches_come_in_order_with_ids_that_count_records() -> None:
    for sends in DRAWN:
        assert [send.due_us for send in sends] == sorted(send.due_us for send in sends)
        assert sends[0].first_id == 0
        assert all(after.first_id == before.first_id + before.count for before, after in pairwise(sends))


def test_numbers_lie_within_their_bounds_and_reach_them() -> None:
    assert {len(sends) for sends in DRAWN} == set(range(6, 13))
    assert {send.count for sends in DRAWN for send in sends} == {1, 2, 3, 4, 5}
    last_us = WINDOW_US[1] + 3 * 20_000
    assert all(WINDOW_US[0] <= send.due_us <= last_us for sends in DRAWN for send in sends)


def test_one_batch_in_five_has_acks_1() -> None:
    acks = [send.acks for sends in DRAWN for send in sends]
    assert set(acks) == {1, -1}
    assert 0.15 < acks.count(1) / len(acks) < 0.25
    none = draw_sends(Streams(1), Bursts((2, 2), (3, 3), (1, 1), (1, 1)), WINDOW_US, -1)
    assert {send.acks for send in none} == {-1}


def test_a_seed_always_draws_the_same() -> None:
    def plain(seed: int) -> list[tuple[int, ...]]:
        sends = draw_sends(Streams(seed), BURSTS, WINDOW_US, -1)
        return [(send.first_id, send.count, send.acks, send.due_us) for send in sends]

    assert plain(7) == plain(7) != plain(8)


def test_bursts_come_near_the_moments_when_faults_begin() -> None:
    bursts = Bursts((4, 4), (1, 1), (1, 1), (1, 1), near_percent=75)
    window_us = (1_000_000, 1_000_000_000)
    moments = [0, 500_000_000]
    times = [send.due_us for seed in range(200) for send in draw_sends(Streams(seed), bursts, window_us, -1, moments)]
    near = sum(any(-1_000_000 <= at_us - moment <= 25_000_000 for moment in moments) for at_us in times)
    assert 0.7 < near / len(times) < 0.85
    assert min(times) == 1_000_000
    without = [send.due_us for seed in range(200) for send in draw_sends(Streams(seed), bursts, window_us, -1)]
    assert sum(at_us < 30_000_000 or 499_000_000 <= at_us <= 525_000_000 for at_us in without) < len(without) / 10


def test_each_burst_has_a_pace_and_a_size_of_its_own() -> None:
    bursts = Bursts((1, 1), (30, 30), (0, 500), (1, 6))
    paces, sizes = [], []
    for seed in range(100):
        sends = draw_sends(Streams(seed), bursts, WINDOW_US, -1)
        paces.append(max(after.due_us - before.due_us for before, after in pairwise(sends)))
        sizes.append(max(send.count for send in sends))
    assert min(paces) < 50_000
    assert max(paces) > 450_000
    assert set(sizes) == {1, 2, 3, 4, 5, 6}


BILLION = 10**9


@pytest.mark.parametrize(
    ("bursts", "used_up"),
    [
        (Bursts((1, 1), (BILLION, BILLION), (0, 0), (1, 1)), "record"),
        (Bursts((BILLION, BILLION), (0, 0), (0, 0), (1, 1)), "state"),
        (Bursts((1, 1), (1, 1), (0, 0), (BILLION, BILLION)), "record"),
        (Bursts((3, 3), (40, 40), (0, 0), (1, 1)), "record"),
        (Bursts((3, 3), (30, 30), (0, 0), (1, 1)), "state"),
    ],
)
def test_no_more_is_drawn_than_a_run_may_have(bursts: Bursts, used_up: str) -> None:
    with pytest.raises(BudgetError, match=rf"^sim\.{used_up}\.budget: .* by 0 s, "):
        draw_sends(Streams(1), bursts, WINDOW_US, -1, record_budget=100, state_budget=80)


def test_a_budget_that_is_enough_changes_nothing() -> None:
    for seed, drawn in enumerate(DRAWN):
        records = sum(send.count for send in drawn)
        again = draw_sends(Streams(seed), BURSTS, WINDOW_US, -1, record_budget=records)
        assert [(send.first_id, send.due_us) for send in again] == [(send.first_id, send.due_us) for send in drawn]
        with pytest.raises(BudgetError):
            draw_sends(Streams(seed), BURSTS, WINDOW_US, -1, record_budget=records - 1)
