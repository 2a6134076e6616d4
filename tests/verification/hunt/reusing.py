"""`make hunt-reuse`: rows that are taken over equal those of runs, in all columns.

A seed runs as a sweep runs it: in a mode, then in others with the rows that they have in common. Each row that was
taken over is compared with that of a run in its mode. The other modes are

* those of eight pairs, in both directions;
* those with one rule replaced, of which there are twenty;
* those with a value of a plug-in (`PLUGGED`), in both directions; for these the plug-in is loaded, and for no others.

Settings, faults, expectations and versions of single brokers vary with the seed; every seventh seed has blows.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios.format.blow import parse
from scenarios.format.plugins import loaded
from scenarios.format.scenario import Expectation
from scenarios.single.run import prepare_process, run_modes, run_row
from sim.protocol.modes import MODES, Mode
from tests.verification.hunt.deciding import scenario_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.format.scenario import Scenario

PAIRS: Final = (
    ("kip101", "kip279"),
    ("kip320-2.1", "kip320"),
    ("kip320", "kip320-2.6.1"),
    ("kip320", "kip320-repaired"),
    ("kraft", "kraft-3.9.1"),
    ("kraft-3.5", "kraft"),
    ("elr", "elr-4.3"),
    ("elr-4.3", "elr-repaired"),
)
CHANGES: Final = (
    ("hw", "isr_lag", "end-offset"),
    ("hw", "follower_truncation", "leader-epoch"),
    ("kip101", "late_reply", "truncation-epoch"),
    ("kip279", "producer_recovery", "epoch-bump"),
    ("kip279", "list_offsets_guard", "yes"),
    ("kip320", "isr_eligibility", "alive"),
    ("kip320", "session_epoch", "every-fetch"),
    ("kip320", "hw_needs_min_isr", "yes"),
    ("kip320", "stop_replica", "unchecked"),
    ("kip320", "truncation_fencing", "no"),
    ("kraft", "unclean_registration", "transitions"),
    ("kraft", "producer_dedup", "no"),
    ("kraft", "elr", "on"),
    ("elr", "last_known_leader", "fenced-too"),
    ("elr", "min_isr_change", "keeps-elr"),
    ("elr-4.3", "clean_shutdown", "ignored"),
    ("elr-4.3", "unclean_recovery", "log-inspection"),
    ("elr-4.3", "isr_floor", "min-isr"),
    ("elr-4.3", "consumer_validation", "no"),
    ("elr-4.3", "equal_partition_epoch", "keeps-pending-isr"),
)
"""A mode, and the rule that is replaced in it."""
PLUGIN: Final = str(Path(__file__).parents[2] / "fixtures" / "one_rule_each.py")
PLUGGED: Final = (
    ("hw", "my_truncation", "yes"),
    ("kip101", "my_fetcher_restart", "yes"),
    ("kip279", "my_epoch_recorded", "yes"),
    ("kip320", "follower_truncation", "not-below-hw"),
    ("kip320", "my_isr_join", "yes"),
    ("kip320", "my_leader", "yes"),
    ("kraft", "my_isr_leave", "yes"),
    ("kraft", "my_isr_accepted", "yes"),
    ("kraft", "my_end_offset_hidden", "yes"),
    ("kraft", "my_leader", "yes"),
    ("kraft", "my_replica_start", "yes"),
    ("elr", "my_high_watermark", "yes"),
    ("elr", "my_elr", "yes"),
    ("elr", "my_last_known_elr", "yes"),
    ("elr-4.3", "my_truncation", "yes"),
    ("elr-4.3", "my_elr", "yes"),
    ("elr-4.3", "my_reassignment_completes", "yes"),
    ("elr-4.3", "reassignment_completes", "enough"),
)
"""A mode, and the value of the plug-in that is put into force in it."""
SCENARIOS: Final = ("chaos", "elr-chaos", "operations", "reassignments", "partitions", "power", "rolling", "sessions")
EXPECTATIONS: Final = (
    Expectation("may-violate"),
    Expectation("clean"),
    Expectation("violates", ("committed-loss",)),
    Expectation("clean", ("committed-loss",)),
)
MIXED_EVERY: Final = 5
BLOWS_EVERY: Final = 7


def mine(place: int, changes: Sequence[tuple[str, str, str]] = CHANGES) -> Mode:
    """The mode of one of `CHANGES` or `PLUGGED`, which the command line knows by a file."""
    base, rule, value = changes[place]
    changed = MODES[base].override({rule: value})
    name = f"{'change' if changes is CHANGES else 'plugged'}-{place}"
    return replace(changed, name=name, release="none", follows="4.3", source=f"{name}.toml")


GROUPS: Final[dict[str, list[Mode]]] = {}
"""Mode that runs first -> the others."""
for _one, _other in PAIRS:
    GROUPS.setdefault(_one, []).append(MODES[_other])
    GROUPS.setdefault(_other, []).append(MODES[_one])
for _place, (_base, *_) in enumerate(CHANGES):
    GROUPS.setdefault(_base, []).append(mine(_place))
BASES: Final = tuple(dict.fromkeys(base for base, *_ in PLUGGED))


def modes_of(first: str) -> list[Mode]:
    """The modes that run, that of this name first; those with the plug-in's values need it to be loaded."""
    if first in GROUPS:
        return [MODES[first], *GROUPS[first]]
    kind, _, name = first.partition(":")
    if kind == BASE:
        return [MODES[name], *(mine(place, PLUGGED) for place, (base, *_) in enumerate(PLUGGED) if base == name)]
    return [mine(int(name), PLUGGED), MODES[PLUGGED[int(name)][0]]]


BASE: Final = "plugged base"
FIRSTS: Final = (
    *GROUPS,
    *(f"{BASE}:{name}" for name in BASES),
    *(f"plugged first:{place}" for place in range(len(PLUGGED))),
)
"""Groups of modes: the mode that runs first, or what `modes_of` makes of it."""


@dataclass(slots=True)
class Found:
    """Results of some seeds.

    Attributes:
        rows: rows of the modes that do not run first, by pair.
        reused: those of them that were taken over.
        blows: rows of runs with blows that were taken over.
        differ: (scenario, seed, blow, mode that ran, mode, columns) of rows that differ from those of a run.
    """

    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    reused: Counter[tuple[str, str]] = field(default_factory=Counter)
    blows: int = 0
    differ: list[tuple[str, int, str, str, str, list[str]]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add other results."""
        self.rows += other.rows
        self.reused += other.reused
        self.blows += other.blows
        self.differ += other.differ


def varied(name: str, seed: int, modes: Sequence[Mode]) -> Scenario:
    """A random scenario with the settings, expectations and versions of single brokers that a seed has."""
    scenario = scenario_of(name, seed)
    expect = {mode.name: EXPECTATIONS[(seed + place) % len(EXPECTATIONS)] for place, mode in enumerate(modes)}
    older = {2: modes[seed // MIXED_EVERY % len(modes)].name}
    mixed = older if seed % MIXED_EVERY == 0 and set(older.values()) <= MODES.keys() else {}
    return replace(scenario, expect=expect, broker_modes=mixed, strict=seed % 11 == 0)


def check(found: Found, name: str, first: str, seed: int) -> None:
    """Run a seed as a sweep does, and each row that was taken over by itself."""
    modes = modes_of(first)
    scenario = varied(name, seed, modes)
    by_name = {mode.name: mode for mode in modes}
    for row in run_modes(scenario, modes, seed, {}, 2 if seed % BLOWS_EVERY == 0 else 0):
        if row["mode"] == modes[0].name:
            assert not row["reused"]
            continue
        pair = modes[0].name, row["mode"]
        found.rows[pair] += 1
        if row["reused"]:
            found.reused[pair] += 1
            found.blows += bool(row["blow"])
            again = run_row(replace(scenario, blows=parse(row["blow"])), by_name[row["mode"]], seed)
            columns = [column for column in again if column != "reused" and again[column] != row[column]]
            if columns or list(row) != list(again):
                found.differ.append((name, seed, row["blow"], row["reused"], row["mode"], columns))


def hunt(task: tuple[str, str, int, int]) -> Found:
    """Check some seeds of a scenario in a mode."""
    name, first, begin, end = task
    prepare_process()
    found = Found()
    with loaded() if first in GROUPS else loaded(PLUGIN):
        for seed in range(begin, end):
            check(found, name, first, seed)
    return found


def _told(mode: str) -> str:
    kind, _, place = mode.rpartition("-")
    changes = {"change": CHANGES, "plugged": PLUGGED}.get(kind)
    return mode if changes is None else " ".join(changes[int(place)])


def main() -> int:
    """Compare rows until enough were taken over; print the results; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows to take over, at least")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--only", choices=["plugins", "others"], help="only with values of the plug-in, or only without"
    )
    options = parser.parse_args()
    found = Found()
    begin, step = options.first, 5
    firsts = [first for first in FIRSTS if options.only is None or (first in GROUPS) == (options.only == "others")]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        while found.reused.total() < options.rows and not found.differ:
            tasks = [(name, first, begin, begin + step) for name in SCENARIOS for first in firsts]
            for part in pool.map(hunt, tasks):
                found.add(part)
            begin += step
            sys.stderr.write(f"seeds below {begin}: {found.reused.total():,} rows taken over\n")
    for row in found.differ:
        sys.stderr.write(f"{row}\n")
    for pair, rows in sorted(found.rows.items()):
        one, other = (_told(name) for name in pair)
        sys.stdout.write(f"  {one:40} {other:40} {rows:6} rows, {found.reused[pair]:6} taken over\n")
    total = found.reused.total()
    sys.stdout.write(f"{total:,} rows taken over ({found.blows:,} with blows), {len(found.differ)} of them differ\n")
    return int(bool(found.differ))


if __name__ == "__main__":
    raise SystemExit(main())
