"""`make hunt`: number of seeds that random scenarios need to find each known bug.

Seeds are swept until one shows a kind that the bug causes, in a mode that has it, and the kind is gone when the bug
alone is repaired: one rule, or one setting, has its other value. What a second repair must, or must not, cure tells two
bugs of one kind apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from reports.hunt.known import FINDINGS, LOSS
from scenarios.format.catalogue import load
from scenarios.format.scenario import Scenario
from scenarios.single.run import prepare_process
from scenarios.sweep import store
from sim.config import Value
from tests.named import run_row

CHUNK: Final = 100
DRAWN: Final = ("chaos", "sessions", "partitions", "power")
UNCLEAN: Final = ("chaos", "partitions")
"""Scenarios with unclean elections in some seeds."""
ANY_NUMBER: Final = 99
"""More incarnations than a run has."""
TARGETS: Final = {"reassignment_completes": "targets-in-isr"}
"""As up to 4.2."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A known bug, and how to recognise it.

    Attributes:
        name: what it is called here.
        mode: a mode that has it.
        kinds: any of these violations.
        rules: the repair.
        inside: whether they must be inside the promise.
        scenarios: where it is looked for.
        settings: the repair, if it is none of rules; or settings without which nothing counts.
        also_by: rule values each of which cures it as well.
        not_by: rule values none of which cures it alone.
        given: settings that are laid over the scenario's.
        lossy_ends: most incarnations that may have ended with losses.
    """

    name: str
    mode: str
    kinds: tuple[str, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    inside: bool = True
    scenarios: tuple[str, ...] = DRAWN
    settings: Mapping[str, Value] = field(default_factory=dict)
    also_by: tuple[Mapping[str, str], ...] = ()
    not_by: tuple[Mapping[str, str], ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict)
    lossy_ends: int = ANY_NUMBER


def _of_finding(
    number: str, name: str, *, also_by: tuple[Mapping[str, str], ...] = (), lossy_ends: int = ANY_NUMBER
) -> Bug:
    """A finding of reassignments in 4.3 (`reports.hunt.known`); `also_by`: further rule values that cure it."""
    finding = FINDINGS[name]
    return Bug(
        f"{number} {name}",
        "elr-4.3",
        finding.kinds,
        dict([finding.repair]),
        scenarios=("reassignments",),
        also_by=(*(dict([one]) for one in finding.also_by), *also_by),
        not_by=tuple(dict([one]) for one in finding.not_by),
        lossy_ends=lossy_ends,
    )


BUGS: Final = (
    Bug("A1 HW truncation, then an election", "hw", LOSS, {"follower_truncation": "leader-epoch"}),
    Bug("A2 divergence after power losses", "hw", ("divergence",), {"follower_truncation": "leader-epoch"}),
    Bug("A3 misaligned batches", "hw", ("stuck-replica", "divergence"), {"append_check": "first-offset"}),
    Bug(
        "A11 isolated leader, unclean election",
        "kip320",
        LOSS,
        inside=False,
        scenarios=UNCLEAN,
        settings={"unclean.leader.election.enable": False},
    ),
    Bug("A13 returning leader keeps its epoch", "kip320", ("divergence",), {"registration_epoch": "bumped"}),
    Bug("B1 divergence, clean elections", "kip101", ("divergence",), {"follower_truncation": "leader-epoch-rounds"}),
    Bug(
        "B2 divergence, unclean elections",
        "kip101",
        ("divergence",),
        {"follower_truncation": "leader-epoch-rounds"},
        inside=False,
        scenarios=UNCLEAN,
    ),
    Bug(
        "B3 joins the ISR below the epoch's start",
        "kip279",
        (*LOSS, "divergence", "hw-regression"),
        {"isr_join": "leader-epoch-start"},
    ),
    Bug("B4 missed epoch, same leader", "kip279", (*LOSS, "divergence"), {"fetcher_restart": "epoch-missed"}),
    Bug(
        "B5 zombie fetch",
        "kip279",
        (*LOSS, "divergence"),
        {"fetch_fencing": "leader-epoch"},
        not_by=({"fetcher_restart": "epoch-missed"},),
    ),
    Bug("B10 offsets go back", "kip279", ("hw-regression",), {"list_offsets_guard": "yes"}),
    Bug("B12 consumer's silent skip", "kip279", ("consumer-skip",), {"consumer_validation": "yes"}),
    Bug("D1 fenced replica in the ISR", "kip320", LOSS, {"isr_eligibility": "alive"}),
    Bug(
        "D2 stale broker epoch",
        "kip320",
        LOSS,
        {"isr_eligibility": "registered"},
        not_by=({"isr_eligibility": "alive"},),
    ),
    Bug(
        "D6 last replica standing",
        "kip320",
        ("committed-loss",),
        inside=False,
        given={"min.insync.replicas": 2, "unclean.leader.election.enable": False, "default.replication.factor": 3},
        settings={"log.flush.interval.messages": 1},
        lossy_ends=1,
    ),
    Bug(
        "D21 a directory assignment empties the ELR",
        "elr",
        ("committed-loss",),
        {"directory_assignment": "keeps-elr"},
        scenarios=("elr-chaos",),
    ),
    _of_finding("R1", "reassignment-back", lossy_ends=0),
    _of_finding("R2", "reassignment-again"),
    _of_finding("R3", "reassignment-shrinks-isr"),
    _of_finding("R4", "reassignment-cancelled", lossy_ends=0),
    _of_finding("R5", "reassignment-cancelled-power-loss", lossy_ends=1),
    _of_finding("R6", "elr-outside-assignment", also_by=(TARGETS,)),
    _of_finding("R7", "reassignment-stuck"),
    _of_finding("R8", "reassignment-to-one", lossy_ends=0),
)


def laid_over(scenario: Scenario, settings: Mapping[str, Value]) -> Scenario:
    """A scenario with other settings, as with ``--set``."""
    drawn = {key: values for key, values in scenario.draw_config.items() if key not in settings}
    return replace(scenario, config={**scenario.config, **settings}, draw_config=drawn)


def seen(bug: Bug, row: Mapping[str, Any]) -> set[str]:
    """The bug's kinds of violations in a row, inside or outside the promise as the bug requires."""
    inside = set(row["violations_inside"].split(","))
    found = inside if bug.inside else set(row["violations"].split(",")) - inside
    return found & set(bug.kinds)


def attributed(bug: Bug, scenario: Scenario, row: Mapping[str, Any]) -> set[str]:
    """The bug's kinds of violations in a row of its mode; none if there is none, or another cause."""
    seed = row["seed"]
    kinds = seen(bug, row)
    if not kinds or row["lossy_ends"] > bug.lossy_ends:
        return set()
    kinds -= seen(bug, run_row(laid_over(scenario, bug.settings), bug.mode, seed, bug.rules))
    for rules in bug.also_by if kinds else ():
        kinds -= seen(bug, run_row(scenario, bug.mode, seed, rules))
    for rules in bug.not_by if kinds else ():
        kinds &= seen(bug, run_row(scenario, bug.mode, seed, rules))
    return kinds


def search(chunk: tuple[int, str, list[int]]) -> tuple[int, str]:
    """Search some seeds of a scenario for one bug: the first seed with its kinds, or -1."""
    number, name, seeds = chunk
    prepare_process()
    bug = BUGS[number]
    scenario = laid_over(load(name), bug.given)
    for seed in seeds:
        kinds = attributed(bug, scenario, run_row(scenario, bug.mode, seed))
        if kinds:
            return seed, ",".join(sorted(kinds))
    return -1, ""


def suspects(store_of: Path, bug: Bug, name: str) -> list[int]:
    """Seeds whose rows in a sweep have one of the bug's kinds."""
    columns = ("mode", "seed", "violations", "violations_inside", "lossy_ends")
    rows = store.Store(store_of).rows(columns, name)
    entries = [dict(zip(columns, values, strict=True)) for values in zip(*(rows[key] for key in columns), strict=True)]
    return [entry["seed"] for entry in entries if entry["mode"] == bug.mode and seen(bug, entry)]


def main() -> int:
    """Search and print; 1 if a bug was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", default="", help="first words of their names, with commas; all without")
    parser.add_argument("--scenarios", default="", help="look for them there")
    parser.add_argument("--seeds", type=int, default=30_000, help="of each scenario, at most")
    parser.add_argument("--store", type=Path, help="a sweep: only seeds that violate there are tried")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    wanted = options.bugs.split(",") if options.bugs else [bug.name.split()[0] for bug in BUGS]
    missing = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for number, bug in enumerate(BUGS):
            if bug.name.split()[0] not in wanted:
                continue
            found = False
            for name in options.scenarios.split(",") if options.scenarios else bug.scenarios:
                swept = options.store is not None and not bug.given
                seeds = suspects(options.store, bug, name) if swept else list(range(options.seeds))
                size = 8 if swept else CHUNK
                chunks = [(number, name, seeds[first : first + size]) for first in range(0, len(seeds), size)]
                seed, kinds = -1, ""
                for start in range(0, len(chunks), options.processes):
                    hits = list(pool.map(search, chunks[start : start + options.processes]))
                    seed, kinds = next((hit for hit in hits if hit[0] >= 0), (-1, ""))
                    if seed >= 0:
                        break
                found |= seed >= 0
                said = f"seed {seed}: {kinds}" if seed >= 0 else f"in none of {len(seeds)} seeds"
                sys.stdout.write(f"{bug.name:42} {bug.mode:8} {name:11} {said}\n")
                sys.stdout.flush()
            missing += not found
    return int(missing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
