"""Incidents are drawn by their rates, and strata share out all of them."""

from __future__ import annotations

from itertools import pairwise
from math import exp

import pytest

from highwater.lab.advise import incidents
from highwater.lab.advise.answers import Answers
from highwater.lab.advise.experiment import design
from highwater.lab.advise.incidents import SIZE_MAX, WARM_UP_US, Exposure, Stratum
from highwater.lab.advise.rates import ASKED, CAUSES, YEAR_S, of_data
from sim.errors import InputError

RACKS = Answers(together="rack", moves=1)
SEEDS = range(400)


def exposed(rate: float = 1.0, answers: Answers = RACKS, **changed: float) -> Exposure:
    """A cluster of four brokers in three racks, since partitions move."""
    given = {**{name: rate for name in CAUSES if name not in ASKED}, **changed}
    return incidents.exposure(design(answers, {}, None), of_data({"a_year": given}, answers))


def test_rates_count_the_brokers_and_racks_of_the_cluster() -> None:
    found = exposed(1.0, planned_restarts=2, moves=3)
    assert found.a_year["process_crashes"] == 4
    assert found.a_year["planned_restarts"] == 8
    assert (found.a_year["rack_cuts"], found.a_year["outages"], found.a_year["moves"]) == (3, 1, 3)
    assert found.density == pytest.approx(sum(found.a_year.values()) * found.gap_us / (YEAR_S * 1e6))


@pytest.mark.parametrize("rate", [0.1, 200.0])
def test_strata_share_out_all_incidents(rate: float) -> None:
    found = exposed(rate)
    strata, larger = incidents.strata(found)
    number = found.faults_a_year * exp(-found.density)
    assert sum(stratum.a_year for stratum in strata) + larger == pytest.approx(number)
    in_them = sum(len(stratum.slots) * stratum.a_year for stratum in strata)
    assert in_them <= found.faults_a_year
    assert in_them == pytest.approx(found.faults_a_year, rel=1e-4)
    assert len({stratum.name for stratum in strata}) == len(strata)
    assert max(len(stratum.slots) for stratum in strata) <= SIZE_MAX


def test_weights_of_pairs_follow_the_rates() -> None:
    found = exposed(1.0, disk_losses=2, planned_restarts=0, moves=0)
    strata = {stratum.name: stratum.a_year for stratum in incidents.strata(found)[0]}
    pair = strata["1 process crash, 1 disk loss"]
    assert pair == pytest.approx(4 * strata["2 process crashes"])
    assert pair == pytest.approx(strata["2 disk losses"])


def test_a_seed_has_one_incident_with_the_faults_of_its_stratum() -> None:
    found = exposed(50.0)
    for stratum in incidents.strata(found)[0]:
        scenario = incidents.draw(found, stratum, 3)
        assert scenario == incidents.draw(found, stratum, 3)
        recorded = scenario.recorded
        assert recorded is not None
        assert recorded.sends is not None
        times = sorted({fault.at_us for fault in recorded.plan.faults})
        assert len(times) <= len(stratum.slots)
        assert times[0] >= WARM_UP_US
        assert all(after - before <= found.gap_us for before, after in pairwise(times))
        assert recorded.horizon_us == times[-1] + found.gap_us
        ends = [fault.at_us + fault.lasts_us for fault in recorded.plan.faults]
        assert max(ends) < recorded.horizon_us
        due_us = [send[3] for send in recorded.sends]
        assert due_us == sorted(due_us)
        assert due_us[-1] < recorded.horizon_us


@pytest.mark.world
def test_gaps_are_exponential_and_cut_off() -> None:
    found = exposed(2000.0)
    assert 0.3 < found.density < 1
    pair = Stratum("", (("pauses",), ("pauses",)), 1.0)
    gaps = []
    for seed in range(3000):
        recorded = incidents.draw(found, pair, seed).recorded
        assert recorded is not None
        first, second = recorded.plan.faults
        gaps.append((second.at_us - first.at_us) / found.gap_us)
    x = found.density
    mean = 1 / x - exp(-x) / (1 - exp(-x))
    assert sum(gaps) / len(gaps) == pytest.approx(mean, abs=0.02)


def test_without_moves_only_the_partition_s_brokers_count() -> None:
    answers = Answers(together="rack")
    given = {name: 1.0 for name in CAUSES if name not in ASKED}
    found = incidents.exposure(design(answers, {}, None), of_data({"a_year": given}, answers))
    assert (found.scenario.brokers, found.a_year["process_crashes"], found.a_year["rack_cuts"]) == (3, 3, 3)
    assert found.scenario.topology is not None
    assert found.scenario.topology.racks == {"r1": (1,), "r2": (2,), "r3": (3,)}
    two = Answers(replicas=2, racks=3, together="rack")
    found = incidents.exposure(design(two, {}, None), of_data({"a_year": given}, two))
    assert (found.scenario.brokers, found.a_year["rack_power_losses"]) == (2, 2)


def test_brokers_and_orders_are_equally_likely() -> None:
    found = exposed(1.0)
    pair = Stratum("", (("machine_crashes",), ("pauses",)), 1.0)
    firsts, targets = [], []
    for seed in SEEDS:
        recorded = incidents.draw(found, pair, seed).recorded
        assert recorded is not None
        firsts.append(recorded.plan.faults[0].kind)
        targets.append(recorded.plan.faults[0].targets)
    assert 150 < firsts.count("pause") < 250
    assert sorted(set(targets)) == [(1,), (2,), (3,), (4,)]
    assert all(60 < targets.count(target) < 140 for target in set(targets))


def test_racks_and_clusters_are_struck_as_one() -> None:
    found = exposed(1.0)
    struck = {
        cause: {
            incidents.draw(found, Stratum("", ((cause,),), 1.0), seed).recorded.plan.faults[0].targets  # type: ignore[union-attr]
            for seed in range(40)
        }
        for cause in ("rack_power_losses", "outages", "moves")
    }
    assert struck["rack_power_losses"] == {(1, 4), (2,), (3,)}
    assert struck["outages"] == {(1, 2, 3, 4)}
    assert struck["moves"] == {(0,)}


def test_faults_that_never_end_are_refused() -> None:
    with pytest.raises(InputError, match="faults a year are too many"):
        exposed(100_000.0)
