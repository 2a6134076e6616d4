"""Losses per partition-year: incidents a year, stratum by stratum, times the share of them that lose records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from math import ceil, log, sqrt
from typing import Final

from highwater.lab.advise import incidents
from highwater.lab.advise.experiment import fingerprint, has_lost
from highwater.lab.advise.incidents import Exposure, Stratum
from reports.analysis.statistics import exact, weighted_shares
from reports.formatting import decimal
from scenarios.campaign.campaign import Campaign
from scenarios.campaign.record import Record
from scenarios.campaign.runner import AHEAD, Runner
from scenarios.single.run import run_row
from sim.plurals import counted

FEWEST: Final = 2
"""Incidents of a stratum, at least, unless the time is over."""
FIRST: Final = 100
"""Incidents of the first wave, about, if time decides; each further one has as many as all before it, at most."""
PIECE: Final = 2
"""Incidents of a case, at most."""
SPARE: Final = 0.8
"""Share of the time left that another wave is planned for."""
WORTH: Final = 0.05
"""A wave has at least this share of the incidents before it."""
SEEDS: Final = 1_000_000
"""Seeds of a stratum: those of the next one begin after them."""


Piece = tuple[str, int, int, int]
"""Fingerprint of cluster and rates, place of a stratum, number of its first incident, and how many."""


@dataclass(slots=True)
class Tally:
    """The simulated incidents of a stratum.

    Attributes:
        lost: those that lost acknowledged records.
        stalled: those after which an operator has to act; they lost nothing, or are in `lost`.
        exhausted: those that used up a budget.
    """

    stratum: Stratum
    runs: int = 0
    lost: int = 0
    stalled: int = 0
    exhausted: int = 0

    def add(self, runs: int, lost: int, stalled: int, exhausted: int) -> None:
        """Add incidents."""
        self.runs += runs
        self.lost += lost
        self.stalled += stalled
        self.exhausted += exhausted

    @property
    def share(self) -> tuple[float, float]:
        """The 95 % interval of the share that loses records (Clopper-Pearson)."""
        return exact(self.lost, self.runs) if self.runs else (0.0, 1.0)

    @property
    def losses_a_year(self) -> tuple[float, float, float]:
        """The stratum's losses a year, with their interval."""
        low, high = self.share
        a_year = self.stratum.a_year
        return a_year * self.lost / max(self.runs, 1), a_year * low, a_year * high

    @property
    def weight(self) -> float:
        """Losses a year that one lost run stands for."""
        return self.stratum.a_year / max(self.runs, 1)


@dataclass(frozen=True)
class Estimate:
    """Losses per partition-year.

    Attributes:
        tallies: the strata, in order of incidents a year.
        larger_a_year: incidents a year with more faults than were simulated: at most all of them lose records.
        run_s: seconds that an incident took, on average.
    """

    exposed: Exposure
    tallies: Sequence[Tally]
    larger_a_year: float
    run_s: float = 0.0

    @cached_property
    def losses_a_year(self) -> tuple[float, float, float]:
        """Losses a year, with the 95 % interval."""
        found, low, high = weighted_shares(
            [(tally.stratum.a_year, tally.lost, tally.runs) for tally in self.tallies if tally.runs]
        )
        return found, low, high + self.larger_a_year + self.unreached_a_year

    @property
    def unreached_a_year(self) -> float:
        """Incidents a year of strata of which none was simulated before the time was over."""
        return sum(tally.stratum.a_year for tally in self.tallies if not tally.runs)

    @property
    def runs(self) -> int:
        """Simulated incidents."""
        return sum(tally.runs for tally in self.tallies)

    @property
    def dominating(self) -> Tally | None:
        """The stratum with most of the losses; None if there is no loss."""
        found = max(self.tallies, key=lambda tally: tally.losses_a_year[0])
        return found if found.lost else None

    @property
    def widest(self) -> Tally:
        """The stratum in which one lost run stands for most: it sets the upper end while no run loses anything. Of
        those that were not reached, all incidents count.
        """
        return max(self.tallies, key=lambda tally: (tally.runs > 0, tally.weight))


def waves(
    exposed: Exposure, runs: int | None, until_s: float, runner: Runner, record: Record | None = None
) -> Iterator[Estimate]:
    """Simulate waves of incidents; after each, the estimate so far.

    How many incidents of a stratum are simulated depends on its incidents a year and on the time, and never on what was
    lost.

    Args:
        exposed: the cluster and its rates.
        runs: number of incidents, about; None: as many as the time allows.
        until_s: when the time is over (`time.monotonic`), if there is no number. A case that has begun ends.
        runner: where they are simulated.
        record: keeps what was simulated.
    """
    begin_s = time.monotonic()
    found, larger_a_year = incidents.strata(exposed)
    found = sorted(found, key=lambda stratum: -stratum.a_year)
    tallies = [Tally(stratum) for stratum in found]
    rates = exposed.rates
    lasting = [[*one.items()] for one in (rates.a_year, rates.lasts_s)]
    of = fingerprint(exposed.scenario.scenario_hash(), exposed.mode.name, *lasting, rates.batches_per_s)
    campaign = Campaign(partial(simulate, exposed, found), runner, record)
    total = FIRST if runs is None else runs
    while True:
        pieces: Iterable[Piece] = _in_turn(
            _pieces(of, place, tally.runs, count)
            for place, (tally, count) in enumerate(zip(tallies, allocated(found, total), strict=True))
        )
        if runs is None:
            pieces = takewhile(lambda _: time.monotonic() < until_s, pieces)
        for (_, place, *_), counts in campaign.run(pieces, ahead=1 if runs is None else AHEAD):
            tallies[place].add(*counts)
        done, now_s = sum(tally.runs for tally in tallies), time.monotonic()
        yield Estimate(exposed, tallies, larger_a_year, (now_s - begin_s) / max(done, 1))
        if runs is not None or now_s >= until_s:
            return
        more = min(done, int(SPARE * (until_s - now_s) * done / (now_s - begin_s)))
        if more < WORTH * done:
            return
        total += more


def _in_turn(strata: Iterable[Iterable[Piece]]) -> list[Piece]:
    """The pieces of strata: the first of each, then the second of each, so that all strata have some if time is
    short.
    """
    pieces = [(number, piece) for one in strata for number, piece in enumerate(one)]
    return [piece for _, piece in sorted(pieces, key=lambda one: one[0])]


def allocated(found: Sequence[Stratum], runs: int) -> list[int]:
    """Incidents of each stratum: half of all by how often they occur, and half by the square root of that.

    The first half bounds the losses of frequent incidents, such as planned restarts, the second is for rare ones, which
    lose more.
    """
    rates = [stratum.a_year for stratum in found]
    roots = [sqrt(rate) for rate in rates]
    shares = [(rate / sum(rates) + root / sum(roots)) / 2 for rate, root in zip(rates, roots, strict=True)]
    return [max(FEWEST, round(runs * share)) for share in shares]


def _pieces(of: str, place: int, first: int, end: int) -> Iterator[Piece]:
    """The incidents of a stratum in pieces of at most `PIECE`."""
    for number in range(first, end, PIECE):
        yield of, place, number, min(PIECE, end - number)


def simulate(exposed: Exposure, strata: Sequence[Stratum], piece: Piece) -> tuple[int, int, int, int]:
    """Run the incidents of a piece; return how many ran, lost records, wait for an operator, and used up a budget.

    Raises:
        RuntimeError: a run ended with an error.
    """
    _, place, first, count = piece
    found = Tally(strata[place])
    for seed in range(place * SEEDS + first, place * SEEDS + first + count):
        row = run_row(incidents.draw(exposed, found.stratum, seed), exposed.mode, seed)
        if row["verdict"] == "error":
            raise RuntimeError(f"{found.stratum.name}, seed {seed}: {row['error']}")
        found.add(1, has_lost(row), row["verdict"] == "stalled", row["verdict"] == "exhausted")
    return found.runs, found.lost, found.stalled, found.exhausted


def _batches(a_second: float) -> str:
    return "1 batch" if a_second == 1 else f"{decimal(a_second, 3)} batches"


def assumptions(estimate: Estimate) -> list[str]:
    """What the figure takes for granted, in sentences."""
    exposed = estimate.exposed
    lasts_s = exposed.rates.lasts_s
    lasts = ", ".join(f"{name} {lasts_s[name]} s" for name in exposed.a_year if lasts_s[name])
    return [
        "causes strike independently of each other, of the load and of the time of day; each broker or rack alike",
        f"after {exposed.gap_us / 1e6:,.0f} s without a fault, the partition is as if none had struck",
        f"a fault lasts from half of its time to all of it: {lasts}",
        f"{_batches(exposed.batches_per_s)} a second around faults, and a fifth of that in quiet times",
        "an operator repairs what waits for him; acknowledged records that come back then are not lost",
    ]


NOT_MODELLED: Final = (
    "bugs outside of replication, corrupted disks, full disks, mistakes of operators, deleted topics",
    "rolling restarts: planned restarts strike one broker at a time, but nobody waits for a full ISR between two",
    "other partitions: one incident may strike many of them at once, so their losses do not add up to incidents",
    "disks of one age or batch that fail together, machines that do not return",
)
"""What no rate of this estimate covers."""


def left_out(estimate: Estimate) -> list[str]:
    """Causes with rate 0, and why."""
    rates = estimate.exposed.rates
    return [f"{name}: 0 a year ({rates.sources[name]})" for name, rate in rates.a_year.items() if not rate]


USEFUL: Final = 3.0
"""A figure is useful whose upper end is at most so many times its lower one."""
BOUND: Final = 0.1
"""Losses a year, at most, that an upper bound without any loss has to exclude to be useful."""


def _useful(estimate: Estimate) -> Iterator[str]:
    """How many incidents, and how long, a useful figure takes; nothing if it is useful. The logarithm of the interval's
    width falls with the square root of the lost runs, and a bound without any with the number of runs.
    """
    found, low, high = estimate.losses_a_year
    floor = estimate.larger_a_year
    if found and low * USEFUL >= high - floor:
        return
    if found:
        width = log((high - floor) / low) if low else log(high / found) * 2
        times, useful = max(2.0, (width / log(USEFUL)) ** 2), f"narrow the interval to a factor of {USEFUL:g}"
    elif high <= BOUND:
        return
    else:
        times = max(2.0, (high - floor) / max(BOUND - floor, BOUND / 10))
        useful = f"show a bound of {decimal(floor + (high - floor) / times)} a year if none of them loses one"
    runs = ceil_to_two(estimate.runs * times)
    seconds = runs * estimate.run_s
    yield f"Too few to be useful: --incidents {runs} (some {_about(seconds)} with one process) would {useful}"


def ceil_to_two(value: float) -> int:
    """Round up to two significant digits."""
    unit = int(10 ** max(0, len(str(int(value))) - 2))
    return ceil(value / unit) * unit


def _about(seconds: float) -> str:
    """A duration in words."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size:
            return counted(round(seconds / size), unit)
    return "minute" if seconds > 30 else "half a minute"


def answer(estimate: Estimate) -> list[str]:
    """The figure with its interval, and which strata decide it, in sentences."""
    value, low, high = map(decimal, estimate.losses_a_year)
    lines = [
        f"A partition loses acknowledged records {value} times a year (95 %: {low} to {high})"
        if estimate.losses_a_year[0]
        else f"None of {estimate.runs:,} incidents lost a record: a partition loses some at most {high} times a year "
        "(95 %)",
        *_useful(estimate),
    ]
    if estimate.dominating is not None:
        name = estimate.dominating.stratum.name
        value, low, high = map(decimal, estimate.dominating.losses_a_year)
        lines.append(f"Most of it: {name}, {value} a year (95 %: {low} to {high})")
    widest = estimate.widest
    lines.append(
        f"The upper end is decided by {widest.stratum.name}: {decimal(widest.stratum.a_year)} incidents a year, of "
        f"which {widest.lost:,} of {widest.runs:,} simulated ones lose records; more --incidents narrow it"
    )
    lines.append(
        f"Incidents with more faults than were simulated: {decimal(estimate.larger_a_year)} a year; the upper end "
        "counts all"
    )
    unreached = sum(not tally.runs for tally in estimate.tallies)
    if unreached:
        lines.append(
            f"The time was over before {counted(unreached, 'stratum', 'strata')} with "
            f"{decimal(estimate.unreached_a_year)} incidents a year could be simulated; the upper end counts all "
            "of these"
        )
    stalled = sum(tally.stalled for tally in estimate.tallies)
    if stalled:
        lines.append(f"{stalled:,} of {estimate.runs:,} simulated incidents leave no leader until an operator acts")
    exhausted = sum(tally.exhausted for tally in estimate.tallies)
    if exhausted:
        lines.append(
            f"{exhausted:,} of {estimate.runs:,} incidents stopped at the event limit: what they lost later is missing"
        )
    return lines
