"""Explanation of a failed run: its story, what would have prevented it, its point of no return, what it requires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.drawing.observed import observe
from reports.evidence import narrative
from reports.evidence.waiting import since_us
from scenarios.shrinking.criterion import Trials
from scenarios.shrinking.necessity import find_necessity
from scenarios.shrinking.no_return import curve
from scenarios.shrinking.prevention import remedies

if TYPE_CHECKING:
    from reports.drawing.observed import Observed
    from reports.evidence.narrative import Sentence
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import Symptom
    from scenarios.shrinking.necessity import Necessity
    from scenarios.shrinking.no_return import Curve
    from scenarios.shrinking.prevention import Remedy


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of `explain`.

    Attributes:
        observed: the run.
        story: what happened, in sentences.
        remedies: changes that were tried in order to prevent the violation.
        curve: how likely the violation was at each time; shows the point of no return.
        necessary: faults, batches and messages without which the violation does not occur.
    """

    observed: Observed
    story: list[Sentence]
    remedies: list[Remedy]
    curve: Curve
    necessary: Necessity


def told(observed: Observed, kind: str, most: int | None = narrative.SENTENCES) -> list[Sentence]:
    """Narrative of a traced run about one kind of violation, by default the first; see `reports.evidence.narrative`."""
    kind = kind or next((one["kind"] for one in observed.result.violations), "")
    flushed = [None if one.log is None else one.log.flushed for one in observed.observations]
    return narrative.story(observed.result, kind, observed.about(kind), flushed, most)


def explain(case: Case, symptom: Symptom, trials: Trials, most: int | None = narrative.SENTENCES) -> Explained:
    """Explain a failed run, preferably a shrunk one.

    Args:
        case: the run.
        symptom: what it violates.
        trials: hold the time limit, to which remedies and story are not subject.
        most: maximum number of sentences; None: all.
    """
    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
    story = told(observed, symptom.kind, most)
    result = observed.result
    marks = [one["at_us"] for one in result.violations if one["kind"] == symptom.kind]
    seen_us = min(marks) if marks else since_us(result)
    tried = remedies(case, symptom, Trials())
    shares = curve(
        case,
        symptom,
        trials,
        [step["t"] for step in result.trace or () if step["t"] <= seen_us],
        [sentence.at_us for sentence in story if sentence.line and sentence.at_us <= seen_us],
    )
    turn_us = seen_us if shares.step is None else shares.step[1].after_us
    return Explained(observed, story, tried, shares, find_necessity(case, symptom, trials, seen_us, turn_us))
