"""Runs cases of one subject and release on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.oracle.differences import Difference, listed
from tests.oracle.kafka import Kafka, plain
from tests.oracle.minimising import minimise
from tests.oracle.subject import Case, Seen, Subject

BATCH: Final = 500
SHOWN: Final = 5
"""So many differences are made small and shown."""


@dataclass(slots=True)
class Found:
    """A difference that is not listed.

    Attributes:
        seed: of the case that showed it.
        case: made small.
        kafka: what Kafka shows; so for `core`.
        place: the first operation after which they differ.
    """

    seed: int
    case: Case
    kafka: Seen
    core: Seen
    place: int

    @property
    def signature(self) -> tuple[Any, ...]:
        """Differences that look alike have the same cause, more often than not: the operations by name."""
        return tuple(operation[0] for operation in self.case)

    def lines(self) -> list[str]:
        """For a reader."""
        kafka, core = self.kafka[self.place : self.place + 1], self.core[self.place : self.place + 1]
        steps = "; ".join(" ".join(map(str, operation)) for operation in self.case)
        return [f"  seed {self.seed}: {steps}", f"    Kafka {kafka}", f"    core  {core}"]


@dataclass(slots=True)
class Outcome:
    """What some cases came to.

    Attributes:
        cases: how many were compared; so for `operations`.
        unlisted: how many differ by nothing that is listed.
        found: the first of those that do not look alike, made small.
        explained: by the name of a listed difference, in how many cases it occurred.
        gone: listed differences that occur no more, or are not what makes their case differ.
    """

    cases: int = 0
    operations: int = 0
    unlisted: int = 0
    found: list[Found] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    gone: list[Difference] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong."""
        return not self.unlisted and not self.gone


class Comparison:
    """Compares one subject with one release.

    Args:
        subject: which.
        kafka: the release, running.
        release: its number.
    """

    def __init__(self, subject: Subject, kafka: Kafka, release: str) -> None:
        self._subject = subject
        self._kafka = kafka
        self._release = release
        self._listed = listed(subject.name, release)

    def look_at_listed(self, outcome: Outcome) -> None:
        """Every listed difference has to occur in its own case, and imitating it has to be enough."""
        for entry in self._listed:
            shown = self._kafka.run(entry.case)[0]
            if shown == self._core(entry.case) or shown != self._core(entry.case, entry.name):
                outcome.gone.append(entry)

    def go(self, first: int, count: int, outcome: Outcome) -> Iterator[Outcome]:
        """Compare the cases of so many seeds; yields from time to time, with what was found by then."""
        for start in range(first, first + count, BATCH):
            seeds = range(start, min(start + BATCH, first + count))
            cases = [self._subject.case(self._release, seed) for seed in seeds]
            self._kafka.ask(cases)
            ours = [self._core(case) for case in cases]
            for seed, case, kafka, core in zip(seeds, cases, self._kafka.answers(len(cases)), ours, strict=True):
                outcome.cases += 1
                outcome.operations += len(case)
                if kafka != core:
                    self._differs(seed, case, kafka, outcome)
            yield outcome

    def _core(self, case: Case, *imitated: str) -> Seen:
        return plain(self._subject.core(case, self._release, imitated))

    def _differs(self, seed: int, case: Case, kafka: Seen, outcome: Outcome) -> None:
        names = [entry.name for entry in self._listed]
        for imitated in ([name] for name in names) if len(names) > 1 else []:
            if self._core(case, *imitated) == kafka:
                outcome.explained.update(imitated)
                return
        if names and self._core(case, *names) == kafka:
            outcome.explained[" + ".join(names)] += 1
            return
        outcome.unlisted += 1
        if len(outcome.found) < SHOWN:
            found = self._made_small(seed, case, names)
            if found.signature not in {known.signature for known in outcome.found}:
                outcome.found.append(found)

    def _made_small(self, seed: int, case: Case, imitated: Sequence[str]) -> Found:
        def first_differing(cases: Sequence[Case]) -> int | None:
            answers = self._kafka.run(*cases)
            differing = (at for at, case in enumerate(cases) if self._core(case, *imitated) != answers[at])
            return next(differing, None)

        case = minimise(case, first_differing)
        kafka, core = self._kafka.run(case)[0], self._core(case, *imitated)
        place = next((at for at in range(len(case)) if kafka[at : at + 1] != core[at : at + 1]), 0)
        return Found(seed, case, kafka, core, place)
