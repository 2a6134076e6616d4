"""`make audit-histories`: audits logs that Kafka's controller classes wrote, and altered ones.

A true history must be clean: an event explains each record, and the final state is Kafka's. Of altered ones the share
that an audit finds is counted, and the others by the reason. Exit 1 if a true history is not clean.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from highwater.lab.audit.audit import audit
from highwater.lab.audit.results import difference
from sim.errors import UserError
from tests.verification.audit import alterations, histories
from tests.verification.audit.alterations import DROPPED, ELR, KINDS, RELEASE
from tests.verification.oracle.subjects.kraft_controller import SUBJECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.verification.audit.histories import History

SAME = "it changes no state"
BOTH = "both releases act alike in this history"
LAST = "nothing follows that depends on it"
EVENT = "another event explains it"


@dataclass
class Tally:
    """What was found in the histories of a release."""

    records: Counter[str] = field(default_factory=Counter)
    clean: int = 0
    altered: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit the histories of each release."""
    parser = argparse.ArgumentParser(prog="make audit-histories", description=__doc__)
    parser.add_argument("--release", choices=histories.RELEASES, help="only this release of Kafka")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--histories", type=int, default=2_000, help="of each release; as many are altered")
    given = parser.parse_args(arguments)
    is_clean = True
    try:
        for release in [given.release] if given.release else histories.RELEASES:
            tally = _count(release, given.first, given.histories)
            is_clean = is_clean and tally.clean == given.histories
            sys.stdout.write("".join(f"{line}\n" for line in _lines(release, given.histories, tally)))
            sys.stdout.flush()
    except UserError as error:
        sys.stderr.write("".join(f"audit-histories: {problem}\n" for problem in error.problems))
        return error.exit_code
    return int(not is_clean)


def _count(release: str, first: int, count: int) -> Tally:
    tally = Tally()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory, prefix="audit-") as name:
        folder = Path(name)
        for history in histories.histories(release, first, count):
            problems = list(_audit_true(history, folder, tally))
            tally.clean += not problems
            for problem in problems:
                sys.stdout.write(f"{release}, seed {history.seed}: {problem}\n")
            _audit_altered(history, folder, tally)
    return tally


def _audit_true(history: History, folder: Path, tally: Tally) -> Iterator[str]:
    found = audit([history.write(folder)])
    tally.records.update(found.explained)
    for explanation in found.unexplained:
        yield f"record {explanation.offset}: {explanation.problem}" + (
            f": {difference(explanation)}" if explanation.after else ""
        )
    yield from found.notes
    if histories.shown(found.image) != history.partitions:
        yield f"the final state {histories.shown(found.image)} is not Kafka's: {history.partitions}"


def _audit_altered(history: History, folder: Path, tally: Tally) -> None:
    """One alteration of a history. Its kind follows from the seed; a history without such a member loses a record."""
    rng = Random(f"audit-histories/{history.release}/{history.seed}")
    batches = history.batches(folder)
    kinds = [kind for kind in KINDS if kind != ELR or history.release != "3.9.0"]
    kind = kinds[history.seed % len(kinds)]
    release, place, after = None, (0, 0), batches
    if kind == RELEASE:
        release = rng.choice([other for other in histories.RELEASES if other != history.release])
    else:
        change = alterations.altered(batches, kind, rng) or alterations.altered(batches, kind := DROPPED, rng)
        assert change is not None
        after, place = change
    file = folder / "dump.txt"
    file.write_text(histories.dump(after), encoding="utf-8")
    found = audit([file], release=release)
    tally.altered[kind] += 1
    if found.unexplained or found.notes:
        tally.found[kind] += 1
    elif release is not None:
        alike = SUBJECT.core(history.case, release) == SUBJECT.core(history.case, history.release)
        tally.reasons[kind, BOTH if alike else EVENT] += 1
    elif not alterations.has_effect(batches, after):
        tally.reasons[kind, SAME] += 1
    elif kind == DROPPED and not alterations.follows(batches, place):
        tally.reasons[kind, LAST] += 1
    else:
        tally.reasons[kind, EVENT] += 1


def _lines(release: str, count: int, tally: Tally) -> Iterator[str]:
    words = ("one event", "several events", "no event", "known bug")
    yield f"{release}: {tally.clean:,} of {count:,} histories clean; records of partitions: " + ", ".join(
        f"{tally.records[word]:,} {word}" for word in words
    )
    for kind in KINDS:
        if tally.altered[kind]:
            reasons = ", ".join(
                f"{number:,} {reason}" for (of, reason), number in tally.reasons.most_common() if of == kind
            )
            yield f"  {kind}: {tally.found[kind]:,} of {tally.altered[kind]:,} found" + (
                f"; {reasons}" if reasons else ""
            )


if __name__ == "__main__":
    sys.exit(main())
