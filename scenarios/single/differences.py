"""Where a run differs from its counterpart: the run of the same seed without a mutant, or with another rule value.

Both the place of a mutant and the query of a rule note each situation in which the counterpart acts differently
(`sim.protocol.mutants`, `sim.protocol.decisions`). Up to the first one, the two runs are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sim.history.steps import KINDS, Listener, Step
from sim.protocol.decisions import replaced

if TYPE_CHECKING:
    from scenarios.single.execution import Execution
    from sim.protocol.modes import Mode

MOST: Final = 1_000
"""Most differences of one run that are noted."""


@dataclass(frozen=True, slots=True)
class RunDifference:
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
        self.found: list[RunDifference] = []
        self._noted: list[tuple[int, int, int, bool]] = []
        """Time, broker (0: unknown), number of steps that the history had kept, and `RunDifference.matters`."""
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
                found.append(RunDifference(at_us, (broker,) if broker else (), matters))
        self._run = None
        self.found = list(dict.fromkeys(found))


class RuleWatch(Listener):
    """Notes the steps before which a rule value of the run's counterpart would have acted differently.

    The first of them is where the two runs part, or before: a rule is asked in every situation in which its values act
    differently, and a difference may have no effect.

    Attributes:
        found: set by `end`, as in `MutantWatch`.
    """

    def __init__(self, right: Mode) -> None:
        self.found: list[RunDifference] = []
        self._right = right
        self._noted: list[RunDifference] = []
        self._bits = 0
        self._run: Execution | None = None

    def begin(self, run: Execution) -> None:
        """Watch a run that has not begun."""
        self._run = run
        self._bits = replaced(run.rules, self._right.rules)
        run.cluster.recorder.attach_to(KINDS, self)

    def on_step(self, step: Step) -> None:
        run = self._run
        if run is None or not self._bits:
            return
        asked = [table.take(self._bits) for table in run.cluster.recorder.coverage.decisions]
        if any(asked) and run.clients_began and len(self._noted) < MOST:
            self._noted.append(RunDifference(step.at_us, (step.broker,) if step.broker > 0 else (), matters=True))

    def end(self) -> None:
        """The run has ended."""
        if self._run is not None:
            end_us = self._run.horizon_us
            self.found = list(dict.fromkeys([difference for difference in self._noted if difference.at_us < end_us]))
            self._run = None
