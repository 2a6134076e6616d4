"""The causal past of a run's violations: the steps that may have led to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reports.drawing.observed_run import ObservedRun
from reports.drawing.picture import ABOUT_RECORDS, STRIKES, StepFilter
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.history.steps import kind_of


def past(observed: ObservedRun) -> frozenset[int] | None:
    """Find the steps of the trace that may have led to violations.

    These are the steps that happened before (Lamport 1978) a step about the first record that a violation concerns, or
    before one at the time of a violation or early warning. Steps that a picture shows only with ``--all`` are excluded:
    they are about other records.

    Returns:
        Their indices in the trace; None if the run violates nothing.
    """
    result = observed.result
    if not result.violations:
        return None
    marks = {entry["at_us"] for entry in (*result.violations, *result.warnings)}
    last_us = max(entry["at_us"] for entry in result.violations)
    choice = StepFilter(frozenset(sorted(observed.concerned)[:1]))
    shown, ends = [], set()
    for place, observation in enumerate(observed.observations):
        shows = choice.shows(observation)
        kind = kind_of(observation.step)
        if observation.at_us > last_us or not shows:
            continue
        if observation.at_us in marks or kind in ABOUT_RECORDS:
            ends.add(observation.call)
        if observation.at_us >= CLIENTS_BEGIN_US or kind in STRIKES:
            shown.append(place)
    calls = _before(observed.causes, ends)
    return frozenset(place for place in shown if observed.observations[place].call in calls)


def _before(causes: Mapping[int, tuple[int, ...]], ends: Iterable[int]) -> set[int]:
    """Return these calls and all that happened before them."""
    found = set(ends)
    waiting = list(found)
    while waiting:
        for number in causes.get(waiting.pop(), ()):
            if number not in found:
                found.add(number)
                waiting.append(number)
    return found
