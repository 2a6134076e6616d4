"""Direct runs have faults at random times and steady batches; the comparison itself is `make hunt-rates`."""

from __future__ import annotations

from math import exp
from statistics import mean

import pytest

from faults.plan import Fault
from tests.verification.losses import CASES, FIRST_SEED, cut, direct, history, losing_share


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_direct_runs_have_as_many_faults_as_the_rates_say(case) -> None:  # type: ignore[no-untyped-def]
    exposed = case.exposed()
    numbers = []
    for seed in range(FIRST_SEED, FIRST_SEED + 100):
        recorded = history(exposed, case.gaps, seed).recorded
        assert recorded is not None
        numbers.append(len({fault.at_us for fault in recorded.plan.faults}))
    expected = exposed.density * case.gaps
    assert mean(numbers) == pytest.approx(expected, rel=0.1)


def test_batches_of_direct_runs_are_steady() -> None:
    exposed = CASES[0].exposed()
    recorded = history(exposed, 5, FIRST_SEED).recorded
    assert recorded is not None
    assert recorded.sends is not None
    window_s = (recorded.sends[-1][3] - recorded.sends[0][3]) / 1e6
    assert len(recorded.sends) / window_s == pytest.approx(exposed.batches_per_s, rel=0.05)


def test_the_share_of_losing_incidents_follows_from_runs_without_a_loss() -> None:
    assert losing_share(0.5, [1, 1, 1]) == pytest.approx(0.5)
    assert losing_share(0.75, [2, 2]) == pytest.approx(0.5)
    assert losing_share(0.0, [2, 3]) == pytest.approx(0, abs=1e-9)
    assert losing_share((0.5 + 0.75) / 2, [1, 2]) == pytest.approx(0.5)


def test_a_run_is_cut_where_no_fault_follows_in_time() -> None:
    exposed = CASES[0].exposed()
    times = (0, 5, exposed.gap_us + 5, 2 * exposed.gap_us + 6)
    faults = [Fault("kill", at_us, (1,)) for at_us in times]
    assert [len(one) for one in cut(exposed, faults)] == [3, 1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_incidents_are_as_many_as_the_rates_say(case) -> None:  # type: ignore[no-untyped-def]
    exposed = case.exposed()
    numbers = []
    for seed in range(FIRST_SEED, FIRST_SEED + 100):
        recorded = history(exposed, case.gaps, seed).recorded
        assert recorded is not None
        numbers.append(len(cut(exposed, recorded.plan.faults)))
    expected = exposed.density * exp(-exposed.density) * case.gaps
    assert mean(numbers) == pytest.approx(expected, rel=0.1)


def test_a_direct_run_loses_as_its_incidents_do() -> None:
    exposed = CASES[1].exposed()
    results = [direct(exposed, CASES[1].gaps, number, apart=True) for number in range(4)]
    assert [result.lost for result in results] == [result.lost_apart > 0 for result in results]
    assert {result.lost for result in results} == {True, False}
