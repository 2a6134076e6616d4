"""`make mutants`: mutants drawn by a seed, hunted by random runs in the repaired modes.

A mutant is found by a violation inside the promise, or an early warning that the promise covers, of a kind that the
scenario does not have without it; by an exception; or by a run that exceeds a bound. Unit tests take no part. One that
changes no digest in `--runs` runs counts as equivalent, or as never reached; all others are hunted for `--seconds` CPU
seconds in plain Python. Results are lines of JSON in `--folder`, one file for a seed and a state of the sources: the
same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.places import ROOT
from tests.verification.mutants import marks, operators
from tests.verification.mutants.operators import OPERATORS, Mutant, Source
from tests.verification.mutants.worker import BOUND, ERROR, FOUND, SURVIVED, UNCHANGED, Right, Task, mutated_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLUGIN: Final = "tests.verification.mutants.plugin"
TESTED: Final = "TESTED_MUTANT"
"""The environment variable from which the plug-in takes its mutant."""
TESTS: Final = ("tests/sim/protocol", "tests/sim/hosts", "tests/sim/environment")
"""Unit tests."""
TESTS_S: Final = 900
"""Several times as long as the unit tests take: a mutant may loop."""
RIGHT_RUNS: Final = 1_000
"""Runs without a mutant, more than fit into a hunt."""
PATIENCE_S: Final = 300
"""Seconds beyond a hunt's own, after which its process is ended: a loop in machine code, or a start that hangs."""
NOTICED: Final = (FOUND, ERROR, BOUND)
OUTCOMES: Final = (*NOTICED, SURVIVED, UNCHANGED)


def mutants_of(files: Sequence[str]) -> list[Mutant]:
    """All mutants of these files; types of attributes are those that are declared in them."""
    texts = texts_of(files)
    fields = operators.fields_of(map(ast.parse, texts.values()))
    return [mutant for file, text in texts.items() for mutant in Source(file, text, fields).mutants()]


def texts_of(files: Sequence[str]) -> dict[str, bytes]:
    """The text of each file."""
    return {file: (ROOT / file).read_bytes() for file in files}


def run(task: Task, seconds: float | None = None) -> Any:
    """The output of a process for a task; None: it was ended after so many seconds."""
    words = [sys.executable, "-m", "tests.verification.mutants.worker"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            words, input=json.dumps(asdict(task)), capture_output=True, text=True, check=False, cwd=ROOT,
            env=environment, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"the process ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def is_found_by_tests(mutant: Mutant, tests: Sequence[str] = TESTS) -> bool:
    """Whether a unit test fails with a mutant, or the tests do not end in `TESTS_S`."""
    environment = {**os.environ, TESTED: json.dumps(asdict(mutant))}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not world", "-p", PLUGIN, *tests]
    try:
        done = subprocess.run(words, capture_output=True, check=False, cwd=ROOT, env=environment, timeout=TESTS_S)
    except subprocess.TimeoutExpired:
        return True
    return bool(done.returncode)


class Round:
    """The mutants of one seed, and what came of them."""

    def __init__(
        self, folder: Path, seed: int, version: str, right_runs: int = RIGHT_RUNS, only: Sequence[str] = ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._right_runs = right_runs
        self._only = only
        self._right_file = folder / f"right-{version}.json"
        self._file = folder / f"{seed}-{version}.jsonl"

    def right(self) -> list[Right]:
        """Results of the runs without a mutant, kept for the next round."""
        if not self._right_file.exists():
            found = run(Task(None, self._right_runs, only=self._only))
            self._right_file.write_text(json.dumps(found))
        return [Right(*one) for one in json.loads(self._right_file.read_text())]

    def known(self) -> dict[str, dict[str, Any]]:
        """Mutant -> its result, of those that are finished."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return {line["mutant"]: line for line in map(json.loads, lines)}

    def hunts(self, mutants: Sequence[Mutant], runs: int, seconds: float) -> Iterator[dict[str, Any]]:
        """The results of all mutants; those that were not known are kept."""
        known, right = self.known(), self.right()
        blocks, executed = marks.blocks(texts_of(mutated_files())), [int(one.blocks, 16) for one in right]
        for mutant in mutants:
            if mutant.name in known:
                yield known[mutant.name]
                continue
            bit = marks.block_of(blocks, mutant.file, mutant.line)
            reached = [bool(bits >> bit & 1) for bits in executed]
            found = run(Task(mutant, runs, seconds, right, reached, self._only), seconds + PATIENCE_S)
            if found is None:
                found = {"outcome": BOUND, "kinds": f"more than {seconds + PATIENCE_S:.0f} s"}
            line = {"mutant": mutant.name, "function": mutant.function, "operator": mutant.operator, **found}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
            yield line


def sentence(number: int, line: dict[str, Any]) -> str:
    """One line about a result."""
    where = f" by {line['scenario']} {line['mode']} {line['seed']}" if line.get("scenario") else ""
    kinds = f" ({line['kinds'][:120]})" if line.get("kinds") else ""
    effort = f"{line.get('runs', 0)} runs, {line.get('reached', 0)} reached, {line.get('changed', 0)} changed"
    return f"{number}. {line['mutant']}\n   {line['outcome']}{where}{kinds}; {effort}, {line.get('seconds', 0)} s"


def table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The counts by operator, and the share of those that change anything."""
    yield f"{'operator':12} {'mutants':>7} " + " ".join(f"{outcome:>9}" for outcome in OUTCOMES)
    for operator in OPERATORS:
        counts = Counter(line["outcome"] for line in lines if line["operator"] == operator)
        yield f"{operator:12} {counts.total():7} " + " ".join(f"{counts[outcome]:9}" for outcome in OUTCOMES)
    counts = Counter(line["outcome"] for line in lines)
    yield f"{'all':12} {counts.total():7} " + " ".join(f"{counts[outcome]:9}" for outcome in OUTCOMES)
    effective = counts.total() - counts[UNCHANGED]
    noticed = effective - counts[SURVIVED]
    if effective:
        yield f"{noticed} of {effective} that change a digest are found: {noticed / effective:.0%}"


def main() -> int:
    """Draw, hunt and print; 1 if fewer than 90 % of those that change a digest are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="draws the mutants")
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of the hunt of one mutant")
    parser.add_argument("--runs", type=int, default=500, help="runs in which an equivalent mutant changes no digest")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--tests", type=int, default=0, metavar="N", help="unit tests of the first N mutants instead")
    parser.add_argument("--list", action="store_true", help="print the mutants only")
    options = parser.parse_args()
    drawn = operators.drawn(mutants_of(mutated_files()), Random(options.seed), options.mutants)
    if options.list:
        sys.stdout.writelines(f"{mutant.name}\n" for mutant in drawn)
        return 0
    if options.tests:
        found = 0
        for mutant in drawn[: options.tests]:
            noticed = is_found_by_tests(mutant)
            found += noticed
            sys.stdout.write(f"{mutant.name}\n   {'found' if noticed else 'not found'} by {' '.join(TESTS)}\n")
            sys.stdout.flush()
        sys.stdout.write(f"{found} of {options.tests}\n")
        return 0
    from scenarios.version import code_version

    lines = []
    for line in Round(options.folder, options.seed, code_version()).hunts(drawn, options.runs, options.seconds):
        lines.append(line)
        sys.stdout.write(f"{sentence(len(lines), line)}\n")
        sys.stdout.flush()
    sys.stdout.writelines(f"{text}\n" for text in table(lines))
    counts = Counter(line["outcome"] for line in lines)
    return int(counts[SURVIVED] * 10 > counts.total() - counts[UNCHANGED])


if __name__ == "__main__":
    raise SystemExit(main())
