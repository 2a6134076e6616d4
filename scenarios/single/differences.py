"""Where a run begins to differ from its counterpart: the run of the same seed without a mutant, or with another rule.

A mutant notes each time at which its answer differs from the right one. It differs again and again, and only its first
time is surely one up to which both runs are equal. For two modes, the steps of both runs are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sim.history.digest import FIELDS, unpacked

if TYPE_CHECKING:
    from scenarios.single.execution import Execution

MOST: Final = 1_000
"""Most differences of one run that are noted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """When two runs differ.

    Attributes:
        at_us: the time.
        brokers: those that it is about, as far as known.
        matters: whether a broker lacks records that it is taken to have, as far as known.
    """

    at_us: int
    brokers: tuple[int, ...]
    matters: bool = False


class MutantWatch:
    """Notes when the answers of a run's mutant differ from the right ones.

    Attributes:
        found: set by `end`: the differences while clients run and faults strike, one for each time and broker.
    """

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self._noted: list[tuple[int, int, int, bool]] = []
        """Time, broker (0: unknown), number of steps that the history had kept, and `Difference.matters`."""
        self._run: Execution | None = None

    def begin(self, run: Execution) -> None:
        """Watch a run that has not begun."""
        self._run = run
        for table in run.cluster.recorder.coverage.decisions:
            for mutation in table.mutants.by_name.values():
                if mutation.is_on:
                    mutation.watch = self._note

    def _note(self, about: int, leo: int) -> None:
        run = self._run
        if run is not None and run.clients_began and len(self._noted) < MOST:
            steps = run.cluster.recorder.history.steps
            self._noted.append((run.kernel.now_us, about, len(steps), not about or self._lacks(run, about, leo)))

    def _lacks(self, run: Execution, broker: int, leo: int) -> bool:
        """Whether a broker's log ends before an offset; -1: before the leader's."""
        cluster = run.cluster
        leader, directories = cluster.control.state.leader, cluster.machines.directories
        wanted = directories[leader].log(cluster.name).leo if leo < 0 < leader else leo
        return directories[broker].log(cluster.name).leo < wanted

    def end(self) -> None:
        """The run has ended. Where the place of the mutant does not know the broker, it is that of the next step."""
        run = self._run
        if run is None:
            return
        steps = run.cluster.recorder.history.steps
        found = []
        for at_us, about, place, matters in self._noted:
            broker = about or (steps[place].broker if place < len(steps) else 0)
            if at_us < run.horizon_us:
                found.append(Difference(at_us, (broker,) if broker else (), matters))
        self._run = None
        self.found = list(dict.fromkeys(found))


class StepsKept:
    """Keeps the digested steps of a run."""

    def __init__(self) -> None:
        self._run: Execution | None = None
        self._kept: list[bytes] = []
        self._horizon_us = 0

    def begin(self, run: Execution) -> None:
        """Keep the steps of a run that has not begun."""
        self._run = run
        run.cluster.recorder.shared_digest.kept = self._kept

    def end(self) -> None:
        """The run has ended."""
        if self._run is not None:
            self._run.cluster.recorder.shared_digest.flush()
            self._horizon_us = self._run.horizon_us
            self._run = None

    def first_difference(self, other: StepsKept) -> Sequence[Difference]:
        """The first step in which another run differs, while faults strike; about the brokers of both steps."""
        one, two = b"".join(self._kept), b"".join(other._kept)
        place = _first_other(one, two)
        steps = [unpacked(steps, place) for steps in (one, two) if place + FIELDS.size <= len(steps)]
        if not steps:
            return ()
        at_us = min([step[0] for step in steps])
        brokers = dict.fromkeys([step[2] for step in steps if step[2] > 0])
        return (Difference(at_us, tuple(brokers), matters=True),) if at_us < self._horizon_us else ()


def _first_other(one: bytes, two: bytes) -> int:
    """Index of the first step in which two sequences of steps differ; the end of the shorter one if none does."""
    size = FIELDS.size
    low, high = 0, min(len(one), len(two)) // size
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * size] == two[: middle * size]:
            low = middle
        else:
            high = middle - 1
    return low * size
