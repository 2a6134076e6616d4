"""`make marks`: CPU seconds that random runs need to find known failures, beside TLC's random simulation.

Each case is a failure that one repair cures, or that one mutant causes. In each of five disjoint ranges of seeds, runs
go on until one violates and does not violate without that cause, or until the mark is passed by far. Cases of one
scenario and mode share runs. Prints the table of `scenarios/zoo/MARKS.md`; with ``--at-difference`` that of hunts which
know where the bug is, and which keep no mark, because TLC's simulation does not know it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from reports.hunt.known import LOSS
from scenarios.format.catalogue import load
from scenarios.single.run import (
    prepare_process,
    run_at_differences,
    run_blows,
    run_compared,
    run_mutated,
    run_row,
)
from scenarios.version import build
from scenarios.zoo.hunt import caused, same_plan
from sim import exit_codes
from sim.config import shown
from sim.protocol.modes import mode as mode_named
from sim.protocol.mutants import MUTANTS
from tests.verification.hunt.finds import BUGS, Bug, attributed, laid_over, seen

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.config import Value
    from sim.protocol.modes import Mode

RANGES: Final = 5
FIRST_SEED: Final = 60_000_000
APART: Final = 1_000_000
THREE_REPLICAS: Final[Mapping[str, Value]] = {"default.replication.factor": 3}
UNCLEAN: Final[Mapping[str, Value]] = {"unclean.leader.election.enable": True}
NOT_TRIED: Final = "not tried"


@dataclass(frozen=True, slots=True)
class Case:
    """A known failure, and how soon random runs should find it.

    Attributes:
        about: what the failure is called in the table.
        bug: how it is recognised. Its scenarios are hunted in, one after the other.
        tlc: CPU seconds that TLC's random simulation of the public specifications needed.
        mark: CPU seconds that random runs should need at most.
        broken: rule values that are laid over the mode of the bug, which repairs them.
        blows: blows after each early warning.
        at_difference: blows where a run differs from its counterpart: a hunt that knows where the bug is.
    """

    about: str
    bug: Bug
    tlc: str
    mark: float
    broken: Mapping[str, str] = field(default_factory=dict)
    blows: int = 0
    at_difference: int = 0

    @property
    def runs(self) -> tuple[object, ...]:
        """What its runs depend on."""
        bug = self.bug
        how = self.blows, self.at_difference
        return bug.scenarios, bug.mode, tuple(self.broken.items()), tuple(bug.given.items()), how


def _mutant(about: str, name: str, tlc: str, mark: float, scenario: str = "", blows: int = 0) -> Case:
    """A case of a mutant, in its home scenario or another one."""
    spec = MUTANTS[name]
    bug = Bug(name, spec.mode, (), scenarios=(scenario or spec.scenario,), given=dict(spec.settings))
    return Case(about, bug, tlc, mark, {"mutant": name}, blows)


def _failure(name: str, scenario: str, kinds: Sequence[str], rule: str, value: str) -> Case:
    """A case of a failure of today's Kafka that one rule value cures."""
    return Case(name, Bug(name, "elr-4.3", tuple(kinds), {rule: value}, scenarios=(scenario,)), NOT_TRIED, 60)


def _finding(name: str) -> Case:
    """A case of a failure of today's Kafka that `finds` recognises."""
    bug = next(bug for bug in BUGS if bug.name.split()[-1] == name)
    return Case(name, bug, NOT_TRIED, 60)


JOINS: Final = {"isr_join": "leader-epoch-start"}
ROUNDS: Final = {"follower_truncation": "leader-epoch-rounds"}
CASES: Final = (
    Case(
        "HW-truncation loss, 3 replicas",
        Bug(
            "A1", "hw", LOSS, {"follower_truncation": "leader-epoch"}, scenarios=("power",), given=THREE_REPLICAS
        ),
        "1.5-7.8",
        0.1,
    ),
    Case(
        "KIP-101 divergence, clean elections",
        Bug("B1", "kip101", ("divergence",), ROUNDS, scenarios=("chaos",)),
        "3.8-4.5",
        0.4,
    ),
    Case(
        "KIP-101 divergence, unclean elections",
        Bug("B2", "kip101", ("divergence",), ROUNDS, inside=False, scenarios=("chaos",), given=UNCLEAN),
        "3.8-4.5",
        0.4,
    ),
    Case(
        "KIP-101 / KIP-279 loss by the join rule, 3 replicas",
        Bug("B3", "kip279", LOSS, JOINS, scenarios=("chaos",), given=THREE_REPLICAS),
        "44 once, else missed in 51-113",
        1,
    ),
    Case(
        "last replica standing",
        Bug(
            "D6",
            "kraft",
            ("committed-loss",),
            {"elr": "on", "clean_shutdown": "checked"},
            inside=False,
            scenarios=("elr-chaos",),
        ),
        "3",
        0.1,
    ),
    _mutant("HW under min ISR", "hw-ignores-min-isr", "1.2", 0.1),
    _mutant(
        "no partition epoch in AlterPartition", "alter-partition-of-earlier-partition-epoch", "2.3", 0.5, "windows", 6
    ),
    _mutant("no leader-epoch-start check", "join-below-epoch-start", "3.9", 0.4, "windows", 6),
    _mutant("unclean registration ignored", "unclean-registration-taken-for-clean", "33", 0.5),
    _mutant(
        "no broker epoch in AlterPartition",
        "alter-partition-of-earlier-registration",
        "27, or missed in 57",
        3,
        "messages",
    ),
    _mutant("a follower's LEO kept over a re-election", "leo-from-earlier-leadership", NOT_TRIED, 3, "windows", 6),
    Case(
        "stale-log-start (divergence, clean elections)",
        Bug(
            "stale-log-start",
            "elr-repaired",
            ("divergence",),
            {"epoch_recorded_at": "first-append"},
            scenarios=("operations",),
        ),
        NOT_TRIED,
        10,
    ),
    Case(
        "forgotten expansion of the ISR, as a loss",
        Bug("D23", "kraft", LOSS, {"equal_partition_epoch": "keeps-pending-isr"}, scenarios=("operations",)),
        NOT_TRIED,
        60,
    ),
    _failure("counted-after-removal", "windows", LOSS, "newer_fetch", "refused"),
    _failure("elr-cleared", "elr-chaos", ("no-progress",), "min_isr_change", "clears-if-enough"),
    _failure("elr-cleared-power-loss", "elr-chaos", LOSS, "min_isr_change", "clears-if-enough"),
    _failure("removed-directory", "removals", LOSS, "removed_directory", "unclean"),
    _failure("offline-directory", "directories", LOSS, "offline_directory", "ignored"),
    _failure("throttled-move", "directories", LOSS, "lagging_future_log", "keeps-log"),
    replace(_finding("ELR"), about="directory-assignment"),
    *map(
        _finding,
        (
            "reassignment-back",
            "reassignment-again",
            "reassignment-shrinks-isr",
            "reassignment-cancelled",
            "reassignment-cancelled-power-loss",
            "elr-outside-assignment",
            "reassignment-stuck",
            "reassignment-to-one",
        ),
    ),
)  # fmt: skip


BLOWS_AT_DIFFERENCE: Final = 12


def _at_difference(about: str, scenario: str = "") -> Case:
    """A case that runs without this miss, or need long for, with blows at the difference, in its scenario or another
    one.
    """
    case = next(case for case in CASES if case.about == about)
    bug = replace(case.bug, scenarios=(scenario,)) if scenario else case.bug
    return replace(case, bug=bug, blows=0, at_difference=BLOWS_AT_DIFFERENCE)


AT_DIFFERENCE: Final = (
    _at_difference("KIP-101 divergence, clean elections"),
    _at_difference("KIP-101 / KIP-279 loss by the join rule, 3 replicas"),
    _at_difference("no partition epoch in AlterPartition", "overtaking"),
    _at_difference("no leader-epoch-start check"),
    _at_difference("no broker epoch in AlterPartition", "overtaking"),
    _at_difference("a follower's LEO kept over a re-election"),
    _at_difference("forgotten expansion of the ISR, as a loss"),
)


@dataclass(slots=True)
class Found:
    """What the ranges of one case gave, in CPU seconds until it was found; None: not within the limit."""

    seconds: list[float | None] = field(default_factory=list)
    runs: int = 0
    replay: str = ""

    @property
    def median(self) -> float | None:
        """The median of all `RANGES`; None if it is beyond the limit."""
        there = sorted(value for value in self.seconds if value is not None)
        missing = len(self.seconds) - len(there)
        return median([*there, *[float("inf")] * missing]) if 2 * missing < len(self.seconds) else None

    @property
    def is_decided(self) -> bool:
        """Whether so many ranges have missed it that the others do not matter."""
        return 2 * sum(value is None for value in self.seconds) > RANGES


def hunt(cases: Sequence[Case], seeds: Iterator[int], limit: float) -> dict[str, tuple[float | None, int, str]]:
    """Look for cases with the same runs: of each, the CPU seconds until it was found, the runs, and the command."""
    one = cases[0]
    scenarios = [laid_over(load(name), one.bug.given) for name in one.bug.scenarios]
    mode = mode_named(one.bug.mode).override(one.broken)
    found: dict[str, tuple[float | None, int, str]] = {}
    begun = time.process_time()
    runs = 0
    for seed in seeds:
        for scenario in scenarios:
            for row in _rows(one, scenario, mode, seed):
                runs += 1
                for case in cases:
                    if case.about not in found and _is_hit(case, scenario, row):
                        found[case.about] = time.process_time() - begun, runs, _command(case, row)
        spent = time.process_time() - begun
        for case in cases:
            if case.about not in found and spent > min(limit, case.mark * SLACK):
                found[case.about] = None, runs, ""
        if len(found) == len(cases):
            break
    return found


def _rows(case: Case, scenario: Scenario, mode: Mode, seed: int) -> Iterator[Row]:
    """The rows of a seed."""
    if case.blows:
        yield from run_blows(scenario, mode, seed, blows=case.blows)
    elif not case.at_difference:
        yield run_row(scenario, mode, seed)
    else:
        if case.broken:
            row, mutants = run_mutated(scenario, mode, seed)
            differences = mutants.differences
        else:
            row, differences = run_compared(scenario, mode, mode.override(case.bug.rules), seed)
        yield row
        yield from run_at_differences(scenario, mode, seed, differences, case.at_difference)


def _is_hit(case: Case, scenario: Scenario, row: Row) -> bool:
    """Whether a row violates because of the case."""
    right = mode_named(case.bug.mode)
    wrong = right.override(case.broken)
    if case.broken:
        return bool(caused(scenario, row, wrong, right))
    return bool(seen(case.bug, row) and attributed(case.bug, same_plan(scenario, wrong, row), row))


def _command(case: Case, row: Row) -> str:
    """The command that repeats a run."""
    program = "replay" if row["blow"] else "run"
    words = [f"highwater {program} {row['scenario']} --mode {row['mode']} --seed {row['seed']}"]
    words += [f"--rule {name}={value}" for name, value in case.broken.items()]
    words += [f"--set {key}={shown(value)}" for key, value in case.bug.given.items()]
    return " ".join([*words, *([f"--blow {row['blow']}"] if row["blow"] else [])])


SLACK: Final = 30
"""A range ends after this multiple of the mark, or the limit."""


def main() -> int:
    """Print the table; 1 if a mark is missed, 3 if a range ended too early to say so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of a range, at most")
    parser.add_argument("--at-difference", action="store_true", help="hunts with blows at the difference")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="first seed")
    options = parser.parse_args()
    prepare_process()
    groups: dict[tuple[object, ...], list[Case]] = {}
    chosen = AT_DIFFERENCE if options.at_difference else CASES
    for case in chosen:
        if options.only in case.about:
            groups.setdefault(case.runs, []).append(case)
    total = {case.about: Found() for cases in groups.values() for case in cases}
    for cases in groups.values():
        for number in range(RANGES):
            left = [case for case in cases if not total[case.about].is_decided]
            if not left:
                break
            first = options.first + number * APART
            for about, (seconds, runs, replay) in hunt(
                left, iter(range(first, first + APART)), options.seconds
            ).items():
                one = total[about]
                one.seconds.append(seconds)
                one.runs += runs
                one.replay = one.replay or replay
        for case in cases:
            sys.stderr.write(f"{case.about}: {total[case.about].seconds} {total[case.about].replay}\n")
    rows = [(case, total[case.about]) for case in chosen if case.about in total]
    sys.stdout.write(f"{build()}\n\n{table(rows, options.seconds)}\n")
    if options.at_difference:
        return exit_codes.EXPECTED
    answers = [_is_kept(case, found, options.seconds) for case, found in rows]
    if False in answers:
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if None in answers else exit_codes.EXPECTED


def _is_kept(case: Case, found: Found, limit: float) -> bool | None:
    """Whether a case was found within its mark; None if its ranges ended too early to say so."""
    middle = found.median
    if middle is not None:
        return middle <= case.mark
    return False if limit >= case.mark else None


def table(rows: Sequence[tuple[Case, Found]], limit: float) -> str:
    """The table as Markdown; `limit` is the CPU time after which a range ended."""
    lines = [
        "| case | hunted in | TLC random, CPU s | mark, CPU s | median, CPU s | found | runs | mark kept |",
        "|---|---|---|---:|---:|---|---:|---|",
    ]
    for case, found in rows:
        middle = found.median
        there = sum(value is not None for value in found.seconds)
        where = f"`{', '.join(case.bug.scenarios)}`, `{case.bug.mode}`"
        if case.broken:
            where += f" with `{next(iter(case.broken.values()))}`"
        if case.blows:
            where += f", {case.blows} blows"
        if case.at_difference:
            where += f", {case.at_difference} blows at the difference"
        figure = "-" if middle is None else f"{middle:.2g}" if middle < 10 else f"{middle:.0f}"
        kept = {True: "yes", False: "**no**", None: f"open after {limit:g} s"}[_is_kept(case, found, limit)]
        if case.at_difference:
            kept = f"not asked; {limit:g} s"
        lines.append(
            f"| {case.about} | {where} | {case.tlc} | {case.mark:g} | {figure} | {there} of {len(found.seconds)} | "
            f"{found.runs:,} | {kept} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
