"""Runs cases of one subject and release on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.verification.oracle.differences import Difference, listed
from tests.verification.oracle.kafka import Kafka, plain
from tests.verification.oracle.minimising import minimise
from tests.verification.oracle.subject import Case, Seen, Subject

BATCH: Final = 500
SHOWN: Final = 5
"""Most differences that are minimised and printed."""


def first_difference(kafka: Seen, core: Seen) -> int:
    """The first operation after which the two sides differ."""
    return next((at for at, (one, other) in enumerate(zip(kafka, core, strict=False)) if one != other), 0)


def signature(case: Case, kafka: Seen, core: Seen) -> tuple[Any, ...]:
    """The operation after which they differ, and in which parts of what it shows."""
    place = first_difference(kafka, core)
    one, other = kafka[place], core[place]
    if not isinstance(one, list) or not isinstance(other, list):
        return case[place][0], one, other
    return case[place][0], *(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


@dataclass(slots=True)
class Found:
    """A difference that is not listed.

    Attributes:
        seed: of the case that showed it.
        look: signature; differences with the same one mostly have the same cause.
        case: made small.
        kafka: what Kafka shows; so for `core`.
        place: the first operation after which they differ.
    """

    seed: int
    look: tuple[Any, ...]
    case: Case
    kafka: Seen
    core: Seen
    place: int

    def lines(self) -> list[str]:
        """For a reader."""
        kafka, core = self.kafka[self.place : self.place + 1], self.core[self.place : self.place + 1]
        steps = "; ".join(" ".join(map(str, operation)) for operation in self.case)
        return [f"  seed {self.seed}: {steps}", f"    Kafka {kafka}", f"    core  {core}"]


@dataclass(slots=True)
class Outcome:
    """Results of some cases.

    Attributes:
        cases: how many were compared; so for `operations`.
        unlisted: how many differ by nothing that is listed.
        found: the first of those that do not look alike, made small.
        explained: by the name of a listed difference, in how many cases it occurred.
        gone: listed differences that occur no more, or are not what makes their case differ.
        to_repair: listed differences that have to go.
    """

    cases: int = 0
    operations: int = 0
    unlisted: int = 0
    found: list[Found] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    gone: list[Difference] = field(default_factory=list)
    to_repair: list[Difference] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.unlisted or self.gone or self.to_repair)


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
        """Check that each listed difference occurs in its own case, and that imitating it removes it."""
        for entry in self._listed:
            shown = self._kafka.run(entry.case)[0]
            if shown == self._core(entry.case) or shown != self._core(entry.case, entry.name):
                outcome.gone.append(entry)
        outcome.to_repair += [entry for entry in self._listed if entry.to_repair]

    def go(self, first: int, count: int, outcome: Outcome) -> Iterator[Outcome]:
        """Compare the cases of that many seeds; yields the results so far from time to time."""
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
        look = signature(case, kafka, self._core(case, *names))
        if len(outcome.found) < SHOWN and look not in {known.look for known in outcome.found}:
            outcome.found.append(self._made_small(seed, case, names))

    def _made_small(self, seed: int, case: Case, imitated: Sequence[str]) -> Found:
        def first_differing(cases: Sequence[Case]) -> int | None:
            answers = self._kafka.run(*cases)
            differing = (at for at, case in enumerate(cases) if self._core(case, *imitated) != answers[at])
            return next(differing, None)

        look = signature(case, self._kafka.run(case)[0], self._core(case, *imitated))
        case = minimise(case, first_differing, numbers=not self._subject.names_brokers)
        kafka, core = self._kafka.run(case)[0], self._core(case, *imitated)
        return Found(seed, look, case, kafka, core, first_difference(kafka, core))
