"""Explanation of a failed run: its story, what would have prevented it, its point of no return, what it requires."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from reports.drawing.observed_run import ObservedRun, observe
from reports.evidence import narrative
from reports.evidence.narrative import Sentence
from reports.evidence.outcome import since_us
from reports.evidence.story import worst_kind
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials
from scenarios.shrinking.necessity import Necessity, find_necessity
from scenarios.shrinking.no_return import Curve, curve
from scenarios.shrinking.prevention import Remedy, remedies
from scenarios.shrinking.shrink import ShrunkCase
from scenarios.single.result import RunResult


@dataclass(frozen=True, slots=True)
class RunExplanation:
    """The result of `explain`.

    Attributes:
        remedies: changes that were tried in order to prevent the violation.
        curve: how likely the violation was at each time; shows the point of no return.
        necessary: faults, batches and messages without which the violation does not occur.
    """

    observed: ObservedRun
    story: list[Sentence]
    remedies: list[Remedy]
    curve: Curve
    necessary: Necessity


def told(
    observed: ObservedRun, kind: str, most: int | None = narrative.SENTENCES, concerned: Collection[int] = ()
) -> list[Sentence]:
    """Narrative of a traced run about one kind of violation, by default the worst; see `reports.evidence.narrative`.

    The story of a run without a violation is about the records `concerned`.
    """
    kind = kind or worst_kind(observed.result.violations)
    flushed = [None if observation.log is None else observation.log.flushed for observation in observed.observations]
    return narrative.story(observed.result, kind, observed.about(kind) or concerned, flushed, most)


def explain(found: ShrunkCase, case: Case, trials: Trials, most: int | None = narrative.SENTENCES) -> RunExplanation:
    """Explain a shrunk run, as its plan file records it (`case`), in at most so many sentences.

    `trials` hold the time limit, to which remedies and story are not subject.
    """
    symptom = found.symptom
    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
    story = told(observed, symptom.kind, most)
    tried = remedies(case, symptom, Trials(), found.first_config)
    shares = course(case, symptom, trials, observed.result, story)
    seen_us = _seen_us(observed.result, symptom)
    turn_us = seen_us if shares.step is None else shares.step[1].after_us
    return RunExplanation(observed, story, tried, shares, find_necessity(case, symptom, trials, seen_us, turn_us))


def course(case: Case, symptom: Symptom, trials: Trials, result: RunResult, story: Iterable[Sentence]) -> Curve:
    """How likely the violation was at the steps of a traced run, above all at those of its story."""
    seen_us = _seen_us(result, symptom)
    times = [step["t"] for step in result.trace or () if step["t"] <= seen_us]
    landmarks = [sentence.at_us for sentence in story if sentence.line and sentence.at_us <= seen_us]
    return curve(case, symptom, trials, times, landmarks)


def _seen_us(result: RunResult, symptom: Symptom) -> int:
    """The time of the violation, or since when a stalled run has had no leader."""
    marks = [entry["at_us"] for entry in result.violations if entry["kind"] == symptom.kind]
    return min(marks) if marks else since_us(result)
