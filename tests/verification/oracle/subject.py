"""A subject of comparison: a class of Kafka's, and its counterpart in `sim/protocol` (the core).

For the next author. What must hold: both sides get the same operations and return what is visible after each; any
subset of a case is a valid case, because differing cases are minimised; a case depends on subject, release and seed
alone; the core runs with the rules of its release and nothing else. A listed difference is imitated by the driver, so
that any other difference shows, and must still occur in its own case.

What breaks it: an operation whose meaning depends on chance or time in Kafka (hash order, jitter, other threads), which
the harness has to fix; a driver that decides something which the core should decide, because then Kafka is compared
with the driver; a visible state that omits what the operation changes. `mutants.py` measures the latter: a mutant that
is not found points at state that is not visible, or at operations that are not drawn.
"""

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
"""The visible state after each operation."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject.

    Attributes:
        name: ``[a-z-]+``; its Java sources are in the folder of that name, with underscores.
        java: the full name of its class there.
        rules: release -> rules of the core for it.
        draw: draws a case for a release; any subset of its operations is a case, too.
        run: runs a case on the core, imitating the named differences (`tests.verification.oracle.differences`).
        quick: cases of a release with ``QUICK=1``.
        usual: cases without an option.
        deep: cases with ``DEEP=1``.
        options: options of Java.
        uses: further folders of Java sources.
        names_brokers: whether numbers in cases are brokers, so that lowering one does not make a smaller case.
        recorded: length of a file of recorded cases, in bytes.
        whole: for exhaustive subjects, seed -> case; None: draw one.
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
        """The visible states of the core."""
        return self.run(case, release, self.rules[release], imitated)
