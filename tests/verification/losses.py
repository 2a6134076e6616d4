"""Losses per partition-year, estimated by incidents and by direct simulation, in six clusters.

Rates are so high that long runs show losses: faults strike as a Poisson process for hours of simulated time, several of
them at once, and batches are sent steadily. The share of such runs that lose nothing gives the losses a year, without
strata; ``make hunt-rates`` runs it on the compiled build.

That share is no rate: at such rates incidents are crowded. They begin at least an interaction time apart, so losing
ones are more regular than a Poisson process, and fewer runs are spared than exp(-losses a year x years) of them. Taking
it for a Poisson process gives up to a tenth too many losses. Each run's number of incidents is known, so `losing_share`
finds the share of incidents that lose records instead.

With ``--cut``, each direct run is also cut into its incidents, which are run by themselves, with fewer batches in quiet
times, as in an estimate. So errors of the interaction time, of edges and of batches show, apart from chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log1p
from typing import Final

from faults.plan import Fault, Plan
from highwater.lab.advise import incidents, yearly
from highwater.lab.advise.answers import Answers
from highwater.lab.advise.experiment import design, has_lost
from highwater.lab.advise.incidents import FIRST_SEND_US, PHASE_US, RECORDS, WARM_UP_US, Exposure
from highwater.lab.advise.rates import CAUSES, YEAR_S, of_data
from reports.analysis.statistics import interval
from scenarios.campaign.runner import LocalRunner
from scenarios.format.scenario import PlannedSend, Recorded, Scenario
from scenarios.properties.releases import find
from scenarios.single.run import run_row
from sim.config import Value, resolve
from sim.hosts.settings import acks_number
from sim.kernel.streams import Stream, Streams, choice, integer

GAPS: Final = 20
"""Interaction times in a direct run."""
FIRST_SEED: Final = 1 << 40
"""Seeds of direct runs begin here, far from those of incidents."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster with rates.

    Attributes:
        a_day: cause -> faults a day, of each broker, rack, ...
        gaps: interaction times in a direct run.
    """

    name: str
    release: str
    a_day: Mapping[str, float]
    answers: Answers = field(default_factory=Answers)
    settings: Mapping[str, Value] = field(default_factory=dict)
    gaps: int = GAPS

    def exposed(self) -> Exposure:
        """The cluster under its rates."""
        answers = replace(self.answers, return_s=20, restarts=0, moves=0)
        a_year = {name: 365.25 * self.a_day.get(name, 0) for name in CAUSES}
        lasts_s = dict.fromkeys(("pauses", "broker_cuts", "rack_cuts", "planned_restarts"), 20)
        rates = of_data({"batches_per_s": 0.2, "a_year": a_year, "lasts_s": lasts_s}, answers)
        settings = {"metadata.max.age.ms": 30_000, **self.settings}
        return incidents.exposure(design(answers, settings, find(self.release)), rates)


CASES: Final = (
    Case("cuts, acks=1", "3.9", {"broker_cuts": 20, "process_crashes": 20}, settings={"acks": "1"}),
    Case("machines and outages", "4.3", {"machine_crashes": 40, "outages": 10}),
    Case(
        "power of racks, two replicas in two racks",
        "4.3",
        {"rack_power_losses": 120, "rack_cuts": 20, "planned_restarts": 20},
        Answers(replicas=2, racks=2, together="rack"),
        gaps=40,
    ),
    Case("HW truncation", "0.10.2", {"process_crashes": 40, "machine_crashes": 20, "pauses": 20}),
    Case(
        "unclean election, two replicas",
        "3.9",
        {"machine_crashes": 60, "disk_losses": 5, "process_crashes": 20},
        Answers(replicas=2, racks=1, unclean=True),
        gaps=40,
    ),
    Case(
        "stretched over two racks, with moves",
        "4.1",
        {"rack_power_losses": 80, "machine_crashes": 40, "moves": 40},
        Answers(racks=2, together="rack"),
        gaps=40,
    ),
)


def history(exposed: Exposure, gaps: int, seed: int) -> Scenario:
    """A direct run: faults of all causes at random times, and steady batches."""
    streams = Streams(seed)
    own = streams("direct")
    names = list(exposed.a_year)
    mean_us = YEAR_S * 1e6 / exposed.faults_a_year
    end_us = WARM_UP_US + gaps * exposed.gap_us
    faults: list[Fault] = []
    at_us = WARM_UP_US
    while (at_us := at_us - int(mean_us * log1p(-own.random()))) < end_us:
        faults += incidents.strike(exposed, _weighted(own, names, exposed), at_us, streams(f"direct:{len(faults)}"))
    acks = acks_number(str(resolve(exposed.scenario.config)["acks"]))
    period_us = round(1e6 / exposed.batches_per_s)
    sends: list[PlannedSend] = []
    first_id = 0
    for begin_us in range(FIRST_SEND_US, end_us, period_us):
        count = integer(own, *RECORDS)
        sends.append((first_id, count, acks, begin_us + integer(own, 0, period_us - 1)))
        first_id += count
    plan = Plan(tuple(sorted(faults, key=lambda fault: fault.at_us)))
    return replace(exposed.scenario, recorded=Recorded(plan, tuple(sends), end_us + exposed.gap_us))


def _weighted(stream: Stream, names: list[str], exposed: Exposure) -> str:
    """A cause by its rate: rejection, unlike in incidents."""
    most = max(exposed.a_year.values())
    while True:
        name = choice(stream, names)
        if stream.random() * most < exposed.a_year[name]:
            return name


def cut(exposed: Exposure, faults: Sequence[Fault]) -> list[list[Fault]]:
    """The incidents of a run: faults that are at most an interaction time apart."""
    found: list[list[Fault]] = []
    for fault in faults:
        if not found or fault.at_us - found[-1][-1].at_us > exposed.gap_us:
            found.append([])
        found[-1].append(fault)
    return found


@dataclass(frozen=True, slots=True)
class Direct:
    """A direct run.

    Attributes:
        lost: whether it loses acknowledged records.
        incidents: how many incidents it has.
        lost_apart: how many of these lose some by themselves; -1: not asked.
    """

    lost: bool
    verdict: str
    incidents: int
    lost_apart: int


def direct(exposed: Exposure, gaps: int, number: int, *, apart: bool = False) -> Direct:
    """Run one, and if `apart`, also each of its incidents by itself."""
    seed = FIRST_SEED + number
    whole = history(exposed, gaps, seed)
    assert whole.recorded is not None
    parts = cut(exposed, whole.recorded.plan.faults)
    row = run_row(whole, exposed.mode, seed)
    assert row["verdict"] != "error", row["error"]
    lost_apart = sum(_loses_apart(exposed, faults, seed, place) for place, faults in enumerate(parts)) if apart else -1
    return Direct(has_lost(row), row["verdict"], len(parts), lost_apart)


def _loses_apart(exposed: Exposure, faults: Sequence[Fault], seed: int, place: int) -> bool:
    """Whether an incident of a direct run loses records by itself."""
    streams = Streams(seed)
    by_us = WARM_UP_US + integer(streams(f"apart:{place}"), 0, PHASE_US) - faults[0].at_us
    moved = [replace(fault, at_us=fault.at_us + by_us) for fault in faults]
    batches = streams(f"apart:{place}:batches")
    own = incidents.scenario_of(exposed, batches, moved, moved[-1].at_us + exposed.gap_us)
    return has_lost(run_row(own, exposed.mode, seed))


def losing_share(lost: float, numbers: Sequence[int]) -> float:
    """The share of incidents that lose records, by the share of runs with so many incidents each that do.

    A run with n incidents is spared with probability (1 - share)^n.
    """
    if not lost:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(1 - (1 - middle) ** number for number in numbers) < lost * len(numbers):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def main() -> None:
    """Print a table; exit code 1 if an estimate is outside the interval of its direct simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--incidents", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--local", type=int, default=1)
    parser.add_argument("--cut", action="store_true", help="also run the incidents of direct runs by themselves")
    parser.add_argument("--only", type=int, help="number of a case, from 1")
    given = parser.parse_args()
    outside = 0
    for number, case in enumerate(CASES, start=1):
        if given.only not in (None, number):
            continue
        exposed = case.exposed()
        years = case.gaps * exposed.gap_us / 1e6 / YEAR_S
        with LocalRunner(given.local) as runner:
            *_, estimate = yearly.waves(exposed, given.incidents, 0, runner)
            results = list(runner.map(partial(direct, exposed, case.gaps, apart=given.cut), range(given.runs)))
        lost = sum(result.lost for result in results)
        others = sum(result.verdict in ("stalled", "exhausted") for result in results)
        numbers = [result.incidents for result in results]
        a_day = exposed.larger_a_year(0) / 365.25
        found, low, high = (value / 365.25 for value in estimate.losses_a_year)
        shares = (lost / given.runs, *interval(lost, given.runs))
        bounds = [a_day * losing_share(share, numbers) for share in shares]
        is_within = bounds[1] <= found <= bounds[2]
        outside += not is_within
        sys.stdout.write(
            f"{number} {case.name} (Kafka {case.release}), {exposed.density:.2f} faults in "
            f"{exposed.gap_us / 1e6:.0f} s: "
            f"losses a day by {estimate.runs:,} incidents {found:.3g} ({low:.3g} to {high:.3g}), by {given.runs} "
            f"direct runs of {years * YEAR_S:,.0f} s {bounds[0]:.3g} ({bounds[1]:.3g} to {bounds[2]:.3g}; {lost} lose, "
            f"{others} stalled or exhausted): {'within' if is_within else 'OUTSIDE'}\n"
        )
        if given.cut:
            apart = [result for result in results if result.lost_apart > 0]
            sys.stdout.write(
                f"  cut into {sum(numbers):,} incidents, of which {sum(result.lost_apart for result in results)} lose, "
                f"{len(apart)} runs lose, and {sum(one.lost for one in apart)} of these as a whole, too\n"
            )
        sys.stdout.flush()
    sys.exit(outside > 0)


if __name__ == "__main__":
    # By this name, the functions of this module can be found in other processes.
    from tests.verification import losses

    losses.main()
