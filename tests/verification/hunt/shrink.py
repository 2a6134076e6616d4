"""`make hunt-shrink`: shrink many failures, and check the properties of the results.

Its plan, written and read, runs by itself with the same digest; it is 1-minimal in faults and batches, which is tried
by leaving out each; it violates the same kind on the same side of the promise, cured by the same single repairs. How
large they were and are is printed; half of them should be left with two faults and two batches at most.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Final

from reports.evidence.story import history
from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Criterion, Trials, symptom
from scenarios.shrinking.shrink import ShrunkCase, shrink
from scenarios.single import recording
from scenarios.single.run import prepare_process
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Iterator

SCENARIOS: Final = "chaos,sessions,partitions,power,elr-chaos"
MODES: Final = "hw,kip101,kip279,kip320,kraft,elr"
MARK: Final = {"faults": 2, "batches": 2}
"""Medians that should not be exceeded."""


@dataclass
class Tried:
    """One failure.

    Attributes:
        what: which.
        kind: of its violation.
        cause: of it.
        before: how large it was, and
        after: how large it is.
        seconds: of CPU that it took.
        wrong: what does not hold.
    """

    what: str
    kind: str
    cause: str
    before: dict[str, int]
    after: dict[str, int]
    seconds: float
    wrong: list[str] = field(default_factory=list)


def failures(name: str, mode: str, first: int, count: int) -> Iterator[Case]:
    """Recorded runs with violations, from a seed on."""
    scenario, seed, found = load(name), first, 0
    while found < count:
        case = Case(scenario, mode_named(mode), seed)
        if case.row()["violations"]:
            found += 1
            yield Case(recording.of_run(scenario, case.run()).scenario, case.mode, seed)
        seed += 1


def sizes(case: Case) -> dict[str, int]:
    result = case.run(trace=True)
    lines = sum(1 for _ in history(result))
    return {"faults": len(case.faults), "batches": len(case.sends), "events": result.row["events"], "lines": lines}


def attempt(case: Case, name: str) -> Tried:
    """Shrink one."""
    begin = time.process_time()
    trials = Trials()
    found = shrink(case, symptom(trials.row(case)), trials)
    seconds = time.process_time() - begin
    return Tried(
        f"{name} {case.mode.name} {case.seed}",
        f"{found.symptom.kind} {'inside' if found.symptom.inside else 'outside'}",
        ", ".join(map(str, found.cause)),
        sizes(case),
        sizes(found.case),
        seconds,
        list(wrong(case, found)),
    )


def wrong(case: Case, found: ShrunkCase) -> Iterator[str]:
    """Properties that a shrunk run lacks."""
    result = found.case.run()
    if not found.symptom.shown_by(result.row):
        yield "another violation"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        file.write_text(recording.to_text(recording.to_json(found.case.scenario, result)), encoding="utf-8")
        again = recording.read(file)
    read = Case(again.scenario, found.case.mode, again.seed or 0, again.rules or {})
    if {read.row()["digest"], again.digest} != {result.row["digest"]}:
        yield "another digest when it is replayed"
    criterion = Criterion(Trials(), case, found.symptom)
    if not criterion.cause == found.cause == criterion.cause_of(found.case):
        yield "another cause"
    criterion.is_strict = criterion.is_thorough = True
    faults, sends = found.case.faults, found.case.sends
    for place in range(len(faults)):
        if criterion.holds(found.case.with_faults(faults[:place] + faults[place + 1 :])):
            yield f"fault {place} is not needed"
    for place in range(len(sends)):
        if criterion.holds(found.case.with_sends(sends[:place] + sends[place + 1 :])):
            yield f"batch {place} is not needed"


def hunt(chunk: tuple[str, str], first: int, count: int) -> list[Tried]:
    prepare_process()
    return [attempt(case, chunk[0]) for case in failures(*chunk, first, count)]


def spread(values: list[float]) -> str:
    """Smallest, quartiles and largest."""
    quarters = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return " ".join(
        f"{value:g}" for value in (min(values), *(round(quarter, 2) for quarter in quarters), round(max(values), 2))
    )


def main() -> int:
    """Hunt and print; 1 if a property does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--failures", type=int, default=7, help="of each scenario in each mode")
    parser.add_argument("--first", type=int, default=50_000, help="seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    chunks = [(name, mode) for name in options.scenarios.split(",") for mode in options.modes.split(",")]
    tried: list[Tried] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for chunk, part in zip(
            chunks, pool.map(partial(hunt, first=options.first, count=options.failures), chunks), strict=True
        ):
            tried += part
            medians = {name: sorted(trial.after[name] for trial in part)[len(part) // 2] for name in MARK}
            said = ", ".join(f"{value} {name}" for name, value in medians.items())
            sys.stdout.write(f"{' '.join(chunk)}: {len(part)} failures, median {said}\n")
            sys.stdout.write("".join(f"  {trial.what}: {line}\n" for trial in part for line in trial.wrong))
            sys.stdout.flush()
    sys.stdout.write(f"{len(tried)} failures: least, quartiles, most\n")
    for name in tried[0].before:
        before, after = ([float(getattr(trial, side)[name]) for trial in tried] for side in ("before", "after"))
        sys.stdout.write(f"  {name:8} {spread(before)} -> {spread(after)}\n")
    sys.stdout.write(f"  CPU s    {spread([trial.seconds for trial in tried])}\n")
    for kind, number in Counter(trial.kind for trial in tried).most_common():
        sys.stdout.write(f"  {kind}: {number}\n")
    sys.stdout.write(f"  cured by no single repair: {sum(not trial.cause for trial in tried)}\n")
    count = sum(bool(trial.wrong) for trial in tried)
    above = [
        name for name, most in MARK.items() if sorted(trial.after[name] for trial in tried)[len(tried) // 2] > most
    ]
    sys.stdout.write(f"{count} went wrong; medians above the mark: {', '.join(above) or 'none'}\n")
    return int(bool(count or above))


if __name__ == "__main__":
    raise SystemExit(main())
