from __future__ import annotations

import pytest

from sim.history.metrics import METRICS, integral_ms
from sim.protocol.kraft.metadata import PartitionRegistration
from tests.sim.checkers.driven import Metrics


def state(leader: int, isr: tuple[int, ...], elr: tuple[int, ...] = ()) -> PartitionRegistration:
    return PartitionRegistration("p", leader, 0, isr, 0, (1, 2, 3), elr=elr)


def test_equal_values_are_one_point_and_of_one_instant_the_last_counts() -> None:
    one = Metrics()
    one.decided(state(1, (1, 2, 3)), 2, 0)
    one.decided(state(1, (1, 2, 3)), 2, 5_000)
    one.decided(state(0, (1, 2, 3)), 2, 9_000)  # A leader is chosen in two steps.
    one.decided(state(2, (2,), (3,)), 2, 9_000)
    one.decided(state(2, (2,), (3,)), 1, 11_000)
    series = one.series()
    assert series["UnderReplicatedPartitions"] == [(0, 0), (9_000, 1)]
    assert series["UnderMinIsrPartitionCount"] == [(0, 0), (9_000, 1), (11_000, 0)]
    assert series["OfflinePartitionsCount"] == [(0, 0)]
    assert series["ElectableLeaders"] == [(0, 3), (9_000, 2)]
    assert one.under_min_isr_us((0, 20_000)) == 2_000
    assert one.under_min_isr_us((10_000, 10_500)) == 500


@pytest.mark.parametrize(
    ("window_us", "total_ms"), [((0, 20_000), 9), ((0, 12_000), 5), ((10_000, 20_000), 6), ((30_000, 40_000), 10)]
)
def test_an_integral_counts_within_its_window(window_us: tuple[int, int], total_ms: int) -> None:
    assert integral_ms([(7_000, 1), (12_000, 0), (16_000, 1)], window_us) == total_ms


def test_metric_that_was_never_noted_is_nothing() -> None:
    assert Metrics().series() == {name: [] for name in METRICS}
    assert integral_ms([], (0, 1_000)) == 0
    assert Metrics().under_min_isr_us((0, 1_000)) == 0
