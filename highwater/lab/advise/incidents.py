"""Incidents: faults that strike at random, none of them more than an interaction time after the one before.

Faults of all causes together are a Poisson process with rate L a year. If no fault strikes for the interaction time T,
the partition has recovered, and what happened before does not matter any more. So a year falls into incidents, which
are independent of each other. Those with m faults begin at a rate of L exp(-2 L T) (1 - exp(-L T))^(m-1) a year; the
causes of the m faults are drawn independently, by their rates; and each gap is exponential, cut off at T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb, exp, expm1, factorial, prod
from typing import TYPE_CHECKING, Final

from faults.kinds.controlled_restart import ControlledRestart
from faults.kinds.cut import Cut
from faults.kinds.disk_replaced import DiskReplaced
from faults.kinds.groups import RackCut
from faults.kinds.kill import Kill
from faults.kinds.pause import PauseFault
from faults.kinds.power_loss import SPREAD_US, PowerLoss
from faults.kinds.reassignment import ReassignmentFault
from faults.plan import Fault, Plan
from highwater.lab.advise.rates import BATCHES_MAX, CAUSES, YEAR_S, Rates, in_words
from scenarios.format.scenario import PlannedSend, Recorded, Scenario
from sim.config import Value, resolve
from sim.config import integer as number_of
from sim.environment.topology import Topology
from sim.errors import InputError
from sim.hosts.control_plane import CONTROL
from sim.hosts.settings import acks_number, convergence_deadline_us
from sim.kernel.streams import Stream, Streams, choice, integer, sample
from sim.protocol.modes import Mode

if TYPE_CHECKING:
    from highwater.lab.advise.experiment import Change, Experiment

WARM_UP_US: Final = 60_000_000
"""The first fault strikes after this: the ISR is full, and the first batches are on the disks."""
FIRST_SEND_US: Final = 1_000_000
SIZE_MAX: Final = 12
"""Faults of an incident that is simulated, at most."""
SEPARATE_MAX: Final = 2
"""Up to so many faults, each combination of causes is a stratum of its own."""
NEGLIGIBLE: Final = 1e-6
"""Share of the faults in incidents that are larger than those simulated, unless `SIZE_MAX` is reached."""
CROWDED: Final = 1.0
"""Faults in an interaction time, at most: with more, incidents hardly ever end."""
RECORDS: Final = (1, 6)
"""Records of a batch."""
QUIET: Final = 5
"""One in so many batches is sent while nothing happens."""
BEFORE_US: Final = 40_000_000
"""All batches are sent from so long before a fault, which is longer than the kernel keeps data unwritten, ..."""
AFTER_US: Final = 60_000_000
"""... until so long after it is over: sessions expire, the ISR shrinks, and replicas rejoin it."""
PHASE_US: Final = 10_000_000
"""Bound of the random part of the first fault's time."""
_ONE_BROKER: Final = {
    "process_crashes": Kill.name,
    "machine_crashes": PowerLoss.name,
    "disk_losses": DiskReplaced.name,
    "pauses": PauseFault.name,
    "planned_restarts": ControlledRestart.name,
}
"""Cause -> kind of a fault that strikes one broker."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Incidents with certain faults.

    Attributes:
        slots: for each fault, the causes that it may have; their rates decide which.
        a_year: such incidents a year.
    """

    name: str
    slots: tuple[tuple[str, ...], ...]
    a_year: float


@dataclass(frozen=True, slots=True)
class Exposure:
    """A cluster that faults strike at given rates.

    Attributes:
        a_year: cause -> faults a year in the whole cluster; only causes that occur.
        gap_us: the interaction time T.
        batches_per_s: batches sent to the partition.
    """

    scenario: Scenario
    mode: Mode
    rates: Rates
    a_year: Mapping[str, float]
    gap_us: int
    batches_per_s: float

    @property
    def faults_a_year(self) -> float:
        """L: faults of all causes a year."""
        return sum(self.a_year.values())

    @property
    def density(self) -> float:
        """L T: faults in an interaction time."""
        return self.faults_a_year * self.gap_us / (YEAR_S * 1e6)

    def larger_a_year(self, size: int) -> float:
        """Incidents a year with more faults than that."""
        return self.faults_a_year * exp(-self.density) * (-expm1(-self.density)) ** size

    def incidents_a_year(self, size: int) -> float:
        """Incidents a year with so many faults."""
        return self.larger_a_year(size - 1) - self.larger_a_year(size)


def exposure(experiment: Experiment, rates: Rates, change: Change | None = None, mode: Mode | None = None) -> Exposure:
    """The brokers of a partition in a cluster of an experiment, by default the present one, under some rates.

    Other brokers matter only if partitions move: to the table's spare broker, then.

    Raises:
        InputError: faults are so dense that they never end.
    """
    scenario = experiment.scenario if change is None else experiment.variant(change)
    if not rates.a_year["moves"]:
        scenario = without_spare_brokers(scenario)
    return of_scenario(scenario, mode or experiment.modes[0], rates)


def without_spare_brokers(scenario: Scenario) -> Scenario:
    """The cluster without brokers that have no replica, and without racks and power domains of such brokers only."""
    factor = number_of(resolve(scenario.config), "default.replication.factor")
    topology = scenario.topology or Topology()
    kept = topology.placed(range(1, scenario.brokers + 1), factor)
    if set(kept) != set(range(1, factor + 1)):
        return scenario

    def within(groups: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        left = {name: tuple([broker for broker in members if broker in kept]) for name, members in groups.items()}
        return {name: members for name, members in left.items() if members}

    racks, domains, hosts = map(within, (topology.racks, topology.power_domains, topology.hosts))
    smaller = replace(topology, racks=racks, power_domains=domains, hosts=hosts)
    return replace(scenario, brokers=factor, topology=None if scenario.topology is None else smaller)


def of_scenario(scenario: Scenario, mode: Mode, rates: Rates) -> Exposure:
    """A cluster under some rates; see `exposure`."""
    numbers = {"broker": scenario.brokers, "rack": len(racks_of(scenario)), "cluster": 1, "partition": 1}
    a_year = {name: rate * numbers[CAUSES[name].per] for name, rate in rates.a_year.items() if rate}
    gap_us = interaction_us(scenario.config, mode, max(rates.lasts_s[name] for name in a_year))
    batches = rates.batches_per_s
    if batches is None:
        batches = min(1.0, BATCHES_MAX / (gap_us / 1e6))
    found = Exposure(scenario, mode, rates, a_year, gap_us, batches)
    if found.density > CROWDED:
        raise InputError(
            f"{found.faults_a_year:,.0f} faults a year are too many: with {gap_us / 1e6:,.0f} s until the cluster has "
            f"recovered from one, incidents would hardly ever end; at most {found.faults_a_year / found.density:,.0f}"
        )
    return found


def interaction_us(config: Mapping[str, Value], mode: Mode, lasts_s: int) -> int:
    """The interaction time: until the longest fault is over, and the cluster must have converged after it."""
    resolved = resolve(config)
    kraft = mode.rules.control_plane == "kraft"
    session_us = 1_000 * number_of(resolved, "broker.session.timeout.ms" if kraft else "zookeeper.session.timeout.ms")
    return lasts_s * 1_000_000 + convergence_deadline_us(resolved, session_us)


def strata(exposed: Exposure) -> tuple[list[Stratum], float]:
    """The strata that are simulated, and the incidents a year with more faults than those."""
    faults_a_year = exposed.faults_a_year
    names = list(exposed.a_year)
    shares = {name: rate / faults_a_year for name, rate in exposed.a_year.items()}
    size_max = 1
    while size_max < SIZE_MAX and exposed.larger_a_year(size_max) > NEGLIGIBLE * faults_a_year:
        size_max += 1
    found: list[Stratum] = []
    for size in range(1, size_max + 1):
        a_year = exposed.incidents_a_year(size)
        if size <= SEPARATE_MAX:
            found += [_separate(mix, a_year, shares) for mix in combinations_with_replacement(names, size)]
        else:
            found += _by_losses(size, a_year, shares)
    return found, exposed.larger_a_year(size_max)


def _separate(mix: Sequence[str], a_year: float, shares: Mapping[str, float]) -> Stratum:
    counts = {name: mix.count(name) for name in dict.fromkeys(mix)}
    orders = factorial(len(mix)) // prod(map(factorial, counts.values()))
    share = orders * prod(shares[name] for name in mix)
    return Stratum(in_words(counts), tuple((name,) for name in mix), a_year * share)


def _by_losses(size: int, a_year: float, shares: Mapping[str, float]) -> list[Stratum]:
    losing = tuple(name for name in shares if CAUSES[name].loses)
    others = tuple(name for name in shares if not CAUSES[name].loses)
    share = sum(shares[name] for name in losing)
    found = []
    for number in range(size + 1):
        slots = (losing,) * number + (others,) * (size - number)
        if all(slots):
            weight = comb(size, number) * share**number * (1 - share) ** (size - number)
            found.append(Stratum(f"{size} faults, {number or 'none'} with data at risk", slots, a_year * weight))
    return found


def draw(exposed: Exposure, stratum: Stratum, seed: int) -> Scenario:
    """An incident of a stratum as a scenario to be run with that seed."""
    streams = Streams(seed)
    own = streams("incident")
    causes = [_by_rate(own, slot, exposed.a_year) for slot in stratum.slots]
    at_us = WARM_UP_US + integer(own, 0, PHASE_US)
    faults: list[Fault] = []
    for place, name in enumerate(sample(own, causes, len(causes))):
        at_us += _gap_us(own, exposed) if place else 0
        faults += strike(exposed, name, at_us, streams(f"incident:{place}"))
    return scenario_of(exposed, streams("incident:batches"), faults, at_us + exposed.gap_us)


def scenario_of(exposed: Exposure, stream: Stream, faults: Sequence[Fault], horizon_us: int) -> Scenario:
    """A scenario with these faults, healed at the horizon; batches are steady, and fewer while nothing happens."""
    acks = acks_number(str(resolve(exposed.scenario.config)["acks"]))
    period_us = round(1e6 / exposed.batches_per_s)
    plan = Plan(tuple(sorted(faults, key=lambda fault: fault.at_us)))
    busy = [(fault.at_us - BEFORE_US, fault.at_us + max(fault.lasts_us, 0) + AFTER_US) for fault in plan.faults]
    sends: list[PlannedSend] = []
    first_id = 0
    for number, begin_us in enumerate(range(FIRST_SEND_US, horizon_us, period_us)):
        due_us, count = begin_us + integer(stream, 0, period_us - 1), integer(stream, *RECORDS)
        quiet = not any(since_us <= due_us <= until_us for since_us, until_us in busy)
        if due_us >= horizon_us or (quiet and number % QUIET):
            continue
        sends.append((first_id, count, acks, due_us))
        first_id += count
    return replace(exposed.scenario, recorded=Recorded(plan, tuple(sends), horizon_us))


def strike(exposed: Exposure, name: str, at_us: int, stream: Stream) -> list[Fault]:
    """The faults of one cause: on any broker or rack, for a random time."""
    scenario = exposed.scenario
    brokers = range(1, scenario.brokers + 1)
    most_us = 1_000_000 * exposed.rates.lasts_s[name]
    lasts_us = integer(stream, most_us // 2, most_us)
    broker = choice(stream, brokers)
    if name in _ONE_BROKER:
        return [Fault(_ONE_BROKER[name], at_us, (broker,), lasts_us)]
    if name == "broker_cuts":
        others = (CONTROL, *[other for other in brokers if other != broker])
        return [Fault(Cut.name, at_us, (broker, other), lasts_us, both_ways=True) for other in others]
    if name == "moves":
        topology = scenario.topology or Topology()
        replicas = topology.placed(sample(stream, brokers, len(brokers)), replication_factor(exposed))
        return [Fault(ReassignmentFault.name, at_us, (CONTROL,), replicas=replicas)]
    rack = choice(stream, list(racks_of(scenario).values()))
    if name == "rack_cuts":
        return [Fault(RackCut.name, at_us, rack[:1], lasts_us)]
    struck = rack if name == "rack_power_losses" else tuple(brokers)
    delays_us = tuple([integer(stream, 0, SPREAD_US) for _ in struck])
    return [Fault(PowerLoss.name, at_us, struck, lasts_us, delays_us)]


def replication_factor(exposed: Exposure) -> int:
    """Replicas of the partition."""
    return number_of(resolve(exposed.scenario.config), "default.replication.factor")


def racks_of(scenario: Scenario) -> Mapping[str, tuple[int, ...]]:
    """Racks with their brokers; without any, each broker is in one of its own."""
    racks = (scenario.topology or Topology()).racks
    return racks or {f"r{broker}": (broker,) for broker in range(1, scenario.brokers + 1)}


def _by_rate(stream: Stream, names: Sequence[str], a_year: Mapping[str, float]) -> str:
    left = stream.random() * sum(a_year[name] for name in names)
    for name in names:
        left -= a_year[name]
        if left < 0:
            return name
    return names[-1]


def _gap_us(stream: Stream, exposed: Exposure) -> int:
    """An exponential gap, cut off at T: each gap within T is accepted with probability exp(-L gap).

    That probability comes from comparisons alone (von Neumann 1951), since logarithms differ between machines.
    """
    while True:
        gap = stream.random()
        bound, accepted = exposed.density * gap, True
        while (next_one := stream.random()) < bound:
            bound, accepted = next_one, not accepted
        if accepted:
            return int(gap * exposed.gap_us)
