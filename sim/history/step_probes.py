"""Probes of plug-ins: a step of a kind for which a function is true."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from sim.history.coverage import Coverage
from sim.history.steps import Listener, Step, StepKind
from sim.protocol.probes import PROBES


class Watched:
    """A probe: its name, the kind of step, and the function that says whether a step of this kind reaches it."""

    def __init__(self, name: str, kind: StepKind, when: Callable[[Step], bool]) -> None:
        self.name = name
        self.kind = kind
        self.when = when
        self.number = -1


ADDED: Final[list[Watched]] = []


def rebuild() -> None:
    """Look the numbers of the probes up."""
    numbers = {probe.name: number for number, probe in enumerate(PROBES)}
    for watched in ADDED:
        watched.number = numbers[watched.name]


class StepProbes(Listener):
    """Notes the probes of plug-ins that the steps of one run reach."""

    of_cluster: ClassVar[bool] = True

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self.kinds = list(dict.fromkeys([watched.kind for watched in ADDED]))

    def on_step(self, step: Step) -> None:
        for watched in ADDED:
            if watched.kind is step.kind and watched.when(step):
                self._coverage.reached(watched.number)
