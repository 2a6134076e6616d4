"""What is compared: one class of Kafka's, and what stands for it in the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from sim.protocol.rules import Rules

Operation = list[Any]
"""Its name and arguments, as JSON has them."""
Case = list[Operation]
Seen = list[Any]
"""What is to be seen after each operation."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject.

    Attributes:
        name: ``[a-z-]+``; its Java sources are in the folder of that name, with underscores.
        java: its class there, by its full name.
        rules: release -> the rules under which the core is to do as it does.
        draw: makes a case for a release; any of its operations may be left out, and the rest is a case still.
        run: the core's side. Imitates the listed differences that are named (`tests.verification.oracle.differences`).
        quick: cases of a release with ``QUICK=1``; so for `usual` and `deep`.
        options: of Java.
        uses: folders of Java sources besides its own.
        names_brokers: whether numbers in its cases do, so that lowering one makes another case, not a smaller one.
        recorded: length of a file of recorded cases, in bytes.
        whole: of a subject of which everything is tried, the case of a seed; None has one drawn.
    """

    name: str
    java: str
    rules: Mapping[str, Rules]
    draw: Callable[[Random, str], Case]
    run: Callable[[Case, str, Rules, Collection[str]], Seen]
    quick: int
    usual: int
    deep: int
    options: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    names_brokers: bool = False
    recorded: int = 100_000
    whole: Callable[[int, str], Case | None] | None = None

    def case(self, release: str, seed: int) -> Case:
        """The case of a seed."""
        if self.whole is not None and (case := self.whole(seed, release)) is not None:
            return case
        return self.draw(Random(f"{self.name}/{release}/{seed}"), release)

    def core(self, case: Case, release: str, imitated: Collection[str] = ()) -> Seen:
        """What the core does."""
        return self.run(case, release, self.rules[release], imitated)
