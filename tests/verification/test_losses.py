"""Direct runs have faults at random times and steady batches; the comparison itself is `make hunt-rates`."""

from __future__ import annotations

from math import inf, log
from statistics import mean

import pytest

from tests.verification.losses import CASES, FIRST_SEED, a_year, history


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


def test_losses_a_year_follow_from_runs_without_a_loss() -> None:
    assert a_year(0.5, 2.0) == pytest.approx(log(2) / 2)
    assert a_year(0.0, 2.0) == 0
    assert a_year(1.0, 2.0) == inf
