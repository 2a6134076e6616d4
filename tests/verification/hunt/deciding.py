"""`make hunt`: two runs have equal histories if the rules in which they differ decided nothing in the first.


A plan is run with some rules and again with others: those of another mode, or with one value replaced. If the first
run made no decision against any of the replaced values (`sim.protocol.decisions`), the second must be equal in
everything except what depends on the mode's promise. For each pair of modes, the hunt prints how often histories are
equal, and how often the first run predicts it.

`sim/protocol/decisions.py` states what must hold. It breaks if a value acts differently in a situation in which the
protocol does not ask.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from faults.kinds.registry import KINDS
from scenarios.format.catalogue import load
from scenarios.single.ended_run import EndedRun
from scenarios.single.rows import row as row_of
from scenarios.single.run import _execute, prepare_process
from sim.protocol.decisions import to_values
from sim.protocol.modes import MODES, Mode
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.config import Value

ZOOKEEPER = ("hw", "kip101", "kip279", "kip320-2.1", "kip320", "kip320-2.6.1", "kip320-repaired", "kip320-first-try")
QUORUM = (
    "kraft-3.5",
    "kraft",
    "kraft-3.9.1",
    "kraft-repaired",
    "elr-4.0-snapshot",
    "elr",
    "elr-4.3",
    "elr-repaired",
    "elr-recovery",
)
SEVERAL = ("disks", "directories", "removals")
"""Scenarios with several log directories, which are modelled under KRaft only."""
SCENARIOS = tuple(
    (scenario, names)
    for scenario in (
        "chaos",
        "elr-chaos",
        "messages",
        "operations",
        "overtaking",
        "reassignments",
        "partitions",
        "power",
        "racks",
        "rolling",
        "sessions",
        "topics",
        "windows",
        *SEVERAL,
    )
    for names in (ZOOKEEPER, QUORUM)
    if scenario not in SEVERAL or names is QUORUM
)
"""Drawn scenarios, and modes that are compared in them."""
IDEMPOTENT: dict[str, Value] = {"enable.idempotence": True, "acks": "all"}
VARIANTS: tuple[dict[str, Value], ...] = (
    {},
    {},
    IDEMPOTENT,
    {"unclean.leader.election.enable": True},
    {"sim.ties": "random"},
    {**IDEMPOTENT, "max.in.flight.requests.per.connection": 2, "delivery.timeout.ms": 31_000},
    {"min.insync.replicas": 1, "default.replication.factor": 2},
    {"min.insync.replicas": 2, "sim.network.loss.permille": 5},
)
"""Settings of plans, in turn; every third plan has all kinds of faults."""
JUDGED = frozenset(
    {
        "mode", "coverage", "expected", "inside", "inside_unclean", "inside_lossy", "violations_inside", "replay",
        "verdict", "violations", "warnings", "first_violation_us", "signature", "stalled",
    }
)  # fmt: skip
"""Columns that depend on the promise, or on the mode's name."""
PAIRED = (
    ("chaos", "kip101", "kip279"),
    ("elr-chaos", "elr", "elr-4.3"),
    ("reassignments", "elr", "elr-4.3"),
    ("elr-chaos", "elr-4.3", "elr-repaired"),
)
"""Pairs that are always compared."""


@dataclass(slots=True)
class Found:
    """Results of some plans.

    Attributes:
        pairs: runs that were compared.
        told: pairs for which the first run predicts equal histories: no rule in which they differ had an effect.
        equal: those with equal histories.
        differ: contradictions: (scenario, seed, rules of the first run, of the second, columns).
    """

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    differ: list[tuple[str, int, str, str, list[str]]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add other results."""
        self.pairs += other.pairs
        self.told += other.told
        self.equal += other.equal
        self.differ += other.differ


@dataclass(slots=True)
class Ran:
    """One run.

    Attributes:
        row: its row.
        parted: values that would have acted differently.
        older: modes in which brokers began.
    """

    row: Row
    parted: set[tuple[str, str]]
    older: Mapping[int, str]


def scenario_of(name: str, seed: int) -> Scenario:
    """A drawn scenario with the settings that a seed has."""
    scenario = load(name)
    assert scenario.faults is not None
    variant = VARIANTS[seed // 16 % len(VARIANTS)]
    drawn = {key: values for key, values in scenario.draw_config.items() if key not in variant}
    kinds = tuple(KINDS) if seed % 3 == 1 and variant else scenario.faults.kinds
    faults = replace(scenario.faults, kinds=kinds)
    return replace(scenario, config={**scenario.config, **variant}, draw_config=drawn, faults=faults)


def ran(scenario: str, mode: Mode, seed: int) -> Ran:
    """Run one seed."""
    one, error = _execute(scenario_of(scenario, seed), mode, seed, {})
    found = Ran(row_of(EndedRun(one, error)), to_values(one.cluster.recorder.coverage.decided), one.older)
    one.dispose()
    return found


def differing(one: Mode, other: Mode) -> set[tuple[str, str]]:
    """The other mode's values that differ."""
    mine = one.rules.as_dict()
    return {(rule, value) for rule, value in other.rules.as_dict().items() if value != mine[rule]}


def compare(found: Found, scenario: str, seed: int, modes: tuple[Mode, Mode], runs: tuple[Ran, Ran]) -> None:
    """Check that the second run equals the first if the first predicts it."""
    one, other = modes
    first, second = runs
    if first.older != second.older:
        return
    pair = (scenario, f"{one.name} {other.name}")
    told = not differing(one, other) & first.parted
    equal = first.row["digest"] == second.row["digest"]
    found.pairs[pair] += 1
    found.told[pair] += told
    found.equal[pair] += equal
    columns = [name for name in first.row if name not in JUDGED and first.row[name] != second.row[name]]
    if told and columns:
        found.differ.append((scenario, seed, one.name, other.name, columns))


def neighbours(names: tuple[str, ...], turn: int) -> list[tuple[Mode, Mode]]:
    """Pairs of modes for one plan: neighbours, in turn, and a random pair."""
    around = list(pairwise(names))
    anywhere = list(combinations(names, 2))
    chosen = [around[turn % len(around)], anywhere[turn // 3 % len(anywhere)]]
    return [(MODES[one], MODES[other]) for one, other in chosen]


def overridden(mode: Mode, turn: int, count: int) -> Iterator[Mode]:
    """The mode with one value replaced, for some random values."""
    values = [(rule, value) for rule, spec in RULES.items() for value in spec.values if rule != "control_plane"]
    for place in range(turn * count, (turn + 1) * count):
        rule, value = values[place % len(values)]
        if getattr(mode.rules, rule) != value:
            changed = mode.override({rule: value})
            yield Mode(mode.name, changed.release, f"{rule}={value}", changed.rules, mode.promise, changed.follows)


def hunt(task: tuple[str, tuple[str, ...], int, int, int]) -> Found:
    """Check some seeds."""
    scenario, names, begin, end, overrides = task
    prepare_process()
    found = Found()
    for seed in range(begin, end):
        done: dict[str, Ran] = {}

        def get(mode: Mode, seed: int = seed, done: dict[str, Ran] = done) -> Ran:
            if mode.name not in done:
                done[mode.name] = ran(scenario, mode, seed)
            return done[mode.name]

        always = [(MODES[one], MODES[other]) for name, one, other in PAIRED if name == scenario and one in names]
        for one, other in [*always, *neighbours(names, seed)]:
            runs = get(one), get(other)
            compare(found, scenario, seed, (one, other), runs)
            if (one, other) not in always:
                compare(found, scenario, seed, (other, one), (runs[1], runs[0]))
        home = MODES[names[seed % len(names)]]
        for changed in overridden(home, seed, overrides):
            first = get(home)
            rules = differing(home, changed)
            told = not rules & first.parted
            found.pairs[scenario, "one value"] += 1
            found.told[scenario, "one value"] += told
            if not told and seed % 4:
                continue
            second = ran(scenario, changed, seed)
            found.equal[scenario, "one value"] += first.row["digest"] == second.row["digest"]
            columns = [name for name in first.row if name not in JUDGED and first.row[name] != second.row[name]]
            if told and columns:
                found.differ.append((scenario, seed, home.name, changed.summary, columns))
    return found


def main() -> int:
    """Compare runs and print the results; 1 if any contradicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default="", help="names of some, all without")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1_200, help="how many, of each scenario")
    parser.add_argument("--overrides", type=int, default=8, help="single values that are replaced, for each seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    end = options.first + options.seeds
    tasks = [
        (scenario, names, begin, min(begin + 20, end), options.overrides)
        for begin in range(options.first, end, 20)
        for scenario, names in SCENARIOS
        if scenario in (options.scenarios or scenario).split(",")
    ]
    found = Found()
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(hunt, tasks):
            found.add(part)
            for one in part.differ:
                sys.stderr.write(f"{one}\n")
                sys.stderr.flush()
    lines: list[Any] = []
    for pair, pairs in sorted(found.pairs.items()):
        told, equal = found.told[pair], found.equal[pair]
        lines.append(f"  {pair[0]:14} {pair[1]:34} {pairs:6} pairs: {equal:6} equal, {told:6} of them told")
    sys.stdout.write("\n".join(lines))
    total = sum(found.told.values())
    sys.stdout.write(f"\n{total:,} pairs without a rule that decided, {len(found.differ)} of them differ\n")
    return int(bool(found.differ))


if __name__ == "__main__":
    raise SystemExit(main())
