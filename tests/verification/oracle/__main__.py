"""`make oracle`: compares the core with Kafka's released classes, and says where they differ.

Ends with code 1 if they do in a way that is not listed, or if something listed occurs no more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

from highwater.lab.kafka.releases import check_release
from sim.errors import InputError, UserError, did_you_mean
from tests.verification.oracle import names, recording, tally
from tests.verification.oracle.comparing import Comparison, Outcome
from tests.verification.oracle.kafka import Kafka
from tests.verification.oracle.releases import LIKE, RULES
from tests.verification.oracle.subject import Subject
from tests.verification.oracle.subjects import SUBJECTS

NAMES: Final = "names"
"""Of Kafka's classes and methods, in docstrings: what is checked before all subjects, or alone."""
STRIDE: Final = 10_000
"""Of so many seeds ``DEEP=1`` makes a line of its tally."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    options = _parser().parse_args(arguments)
    try:
        pairs = [] if options.subject == NAMES else _chosen(options.subject, options.release)
        if options.record:
            return recording.record((subject, each) for subject, each in pairs if each not in LIKE)
        wrong = [] if options.subject not in (None, NAMES) else [not _look_up_names(options.release)]
        wrong += [not _compare(subject, release, options) for subject, release in pairs]
    except UserError as error:
        sys.stderr.write("".join(f"oracle: {problem}\n" for problem in error.problems))
        return error.exit_code
    return int(any(wrong))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make oracle", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cases of everything")
    parser.add_argument("--deep", action="store_true", help="many cases; goes on where it stopped")
    parser.add_argument("--subject", help="only this one")
    parser.add_argument("--release", help="only this release of Kafka")
    parser.add_argument("--seed", type=int, help="of the first case, 0 unless told")
    parser.add_argument("--cases", type=int, help="so many of each subject and release")
    parser.add_argument("--record", action="store_true", help="write the vectors of `make test` anew")
    return parser


def _chosen(name: str | None, release: str | None) -> list[tuple[Subject, str]]:
    if name is not None and name not in SUBJECTS:
        raise InputError(f"SUBJECT {name!r} is none{did_you_mean(name, (NAMES, *SUBJECTS))}")
    if release is not None:
        check_release(release)
    subjects = [SUBJECTS[name]] if name else list(SUBJECTS.values())
    pairs = [(subject, each) for subject in subjects for each in subject.rules if release in (None, each)]
    if not pairs:
        raise InputError(f"RELEASE {release} has no {name}{did_you_mean('', subjects[0].rules)}")
    return pairs


def _look_up_names(release: str | None) -> bool:
    """Look up all of Kafka's names in the jars; returns whether all were found."""
    if release is not None:
        check_release(release)
    found = names.references()
    told = [(f"sources of rules: {len(names.sources())} names", names.wrong_sources())] if release is None else []
    for each in RULES if release is None else (release,):
        count = len({reference.kafka for reference in found if each in reference.releases})
        told.append((f"{each}: {count} names", names.wrong(found, each)))
    for what, lines in told:
        sys.stdout.write(f"{NAMES} {what}, {len(lines) or 'none'} wrong\n" + "".join(f"  {line}\n" for line in lines))
    sys.stdout.flush()
    return not any(lines for _, lines in told)


def _compare(subject: Subject, release: str, options: argparse.Namespace) -> bool:
    """Compare one subject with one release; returns whether nothing is wrong."""
    count = options.cases or (subject.quick if options.quick else subject.deep if options.deep else subject.usual)
    first = options.seed or 0
    outcome = Outcome()
    began = time.monotonic()
    with Kafka(subject, release) as kafka:
        comparison = Comparison(subject, kafka, release)
        comparison.look_at_listed(outcome)
        if options.deep:
            done = tally.entries(subject, release)
            first = max([first, *(entry.first_seed + entry.cases for entry in done)])
            count -= sum(entry.cases for entry in done)
            for start in range(first, first + count, STRIDE):
                part = min(STRIDE, first + count - start)
                before = outcome.operations, outcome.unlisted
                for _ in comparison.go(start, part, outcome):
                    pass
                tally.add(subject, release, start, part, outcome.operations - before[0], outcome.unlisted - before[1])
        else:
            for _ in comparison.go(first, count, outcome):
                pass
    _tell(subject, release, outcome, time.monotonic() - began)
    return outcome.agrees


def _tell(subject: Subject, release: str, outcome: Outcome, seconds: float) -> None:
    said = f"{subject.name} {release}: {outcome.cases:,} cases, {outcome.operations:,} operations, {seconds:.0f} s: "
    said += f"{outcome.unlisted:,} differ" if outcome.unlisted else "no difference"
    said += "".join(f"; {count:,} by {name}" for name, count in sorted(outcome.explained.items()))
    lines = [said, *(line for found in outcome.found for line in found.lines())]
    lines += [f"  to be repaired: {entry.name}: {entry.effect}" for entry in outcome.to_repair]
    lines += [f"  listed, but occurs no more: {entry.name}" for entry in outcome.gone]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
