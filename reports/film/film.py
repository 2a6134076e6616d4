"""A film: the steps of one run with the state at each, messages in flight, the story, and the violations."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reports.drawing.explanation import course, told
from reports.drawing.observed_run import observe
from reports.drawing.picture import node_of
from reports.evidence.messages import CLIENTS
from reports.evidence.narrative import FIRST_LINE
from reports.evidence.sentences import sentence
from reports.evidence.story import heading, worst_kind
from reports.film.states import Sampler
from scenarios.format import catalogue
from scenarios.shrinking.criterion import Trials, symptom
from scenarios.single import recording
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.errors import InputError
from sim.history import steps
from sim.hosts.client import PRODUCER
from sim.hosts.control_plane import CONTROL, FIRST_CONTROLLER
from sim.protocol.rules import parse_overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from reports.drawing.observed_run import DrawnMessage, ObservedRun
    from reports.evidence.narrative import Sentence
    from reports.film.states import StateChange
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.no_return import Curve
    from sim.history.steps import Shown
    from sim.hosts.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Film:
    """A film of one run: what was observed, what each step changed, and its story.

    `curve` is the share of failing continuations, by the time up to which the run is kept; None: not computed. `label`
    tells it from another run in the same mode.
    """

    observed: ObservedRun
    changes: list[StateChange]
    story: list[Sentence]
    curve: Curve | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """Its name beside another run."""
        return self.label or f"mode {self.observed.result.row['mode']}"

    @property
    def heads(self) -> Iterator[str]:
        """Lines that name the run and its outcome."""
        return heading(self.observed.result)


def compared(case: Case, against: str | None) -> list[Case]:
    """The run and, if any, the run to compare it with: in another mode, or with ``RULE=VALUE``.

    Raises:
        InputError: there is no such mode, rule or value, or it changes nothing.
    """
    if against is None:
        return [case]
    if "=" not in against or "+" in against:
        other = replace(case, mode=catalogue.mode(against))
    else:
        other = replace(case, rules={**case.rules, **parse_overrides([against])})
    if other.mode.override(other.rules) == case.mode.override(case.rules):
        raise InputError(f"--against {against!r} is what is shown already; another mode or rule value is needed")
    return [case, other]


def of_cases(chosen: Sequence[Case], kind: str | None, most: int | None, budget_s: float) -> list[Film]:
    """Film runs; the first film includes its point of no return, with a time limit in seconds, if the run fails.

    The stories are about a kind of violation, by default the worst, and have at most `most` sentences.

    Raises:
        InputError: the first run does not violate that kind.
    """
    case = chosen[0]
    first = film(case, kind or "", most)
    others = chosen[1:]
    if case.scenario.blows:  # Another mode may not raise the warning, but can run the same plan.
        scenario = recording.of_run(case.scenario, first.observed.result).scenario
        others = [replace(other, scenario=scenario) for other in others]
    observed = first.observed
    concerned = observed.about(kind or worst_kind(observed.result.violations))
    films = [first, *(film(other, kind or "", most, concerned) for other in others)]
    row = observed.result.row
    if kind is not None:
        symptom(row, kind)
    if not row["violations"] or not case.scenario.drawn:
        return films
    begin = time.monotonic()
    trials = Trials(lambda: time.monotonic() - begin > budget_s)
    recorded = replace(case, scenario=recording.of_run(case.scenario, observed.result).scenario)
    shares = course(recorded, symptom(row, kind), trials, observed.result, first.story)
    return [replace(first, curve=shares), *films[1:]]


def film(case: Case, kind: str = "", most: int | None = None, concerned: Collection[int] = ()) -> Film:
    """Run a case and film it; `kind` and `most` as in `of_cases`.

    The story of a run without a violation follows the records `concerned`, which the run that it is compared with lost.
    """
    changes: dict[str, list[StateChange]] = {}
    opens = steps.REGISTERED if case.mode.rules.control_plane == "zookeeper" else steps.UNFENCED

    def sample(cluster: Cluster, name: str) -> Callable[[Shown], None]:
        sampler, changes[name] = Sampler(cluster, name, opens), []
        return lambda step: changes[name].append(sampler.take(step))

    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True, sample=sample)
    return Film(observed, changes[observed.partition], told(observed, kind, most, concerned))


def as_json(shown: Film) -> dict[str, Any]:
    """The film as the page reads it; times are in us, and frames are numbered from 0."""
    observed = shown.observed
    times = [observation.at_us for observation in observed.observations]
    row = observed.result.row
    controllers = sorted({node for change in shown.changes for node in change.controllers})
    return {
        "title": list(shown.heads),
        "mode": row["mode"],
        "name": shown.name,
        "control": "control plane" if controllers else observed.control,
        "has_elr": any(
            change.partition.get("elr") or change.partition.get("last_known_elr") for change in shown.changes
        ),
        "controllers": controllers,
        "brokers": sorted(replica.broker for replica in observed.result.replicas),
        "clients": {str(node): name for node, name in CLIENTS.items()},
        "min_isr": observed.result.settings["min.insync.replicas"],
        "begin": min(bisect_right(times, CLIENTS_BEGIN_US), len(times) - 1),
        "frames": [
            _frame(observation.step, change)
            for observation, change in zip(observed.observations, shown.changes, strict=True)
        ],
        "messages": list(_messages(observed, times)),
        "story": [[sentence.at_us, _frame_at(times, sentence), sentence.text] for sentence in shown.story],
        "marks": list(_marks(observed, times)),
        "curve": None if shown.curve is None else _curve(shown.curve),
        "replay": row["replay"],
    }


def _frame(step: Shown, change: StateChange) -> list[Any]:
    """Time, lane, name and sentence of a step, and its change."""
    delta: dict[str, Any] = {}
    if change.partition:
        delta["p"] = change.partition
    if change.brokers:
        delta["b"] = change.brokers
    if change.acked >= 0:
        delta["a"] = change.acked
    if change.controllers:
        delta["c"] = change.controllers
    return [step["t"], _lane(step), step["step"], sentence(step), delta]


def _lane(step: Shown) -> int:
    """The node in whose lane a film shows a step: unlike a picture, it has a lane for each controller."""
    node = int(step.get("node", CONTROL))
    return node if FIRST_CONTROLLER <= node < PRODUCER else max(node_of(step), CONTROL)


def _messages(observed: ObservedRun, times: Sequence[int]) -> Iterator[list[Any]]:
    """Messages that are in flight at a step, or lost, in the order in which they were sent."""
    for one in sorted(observed.messages, key=lambda message: (message.sent_us, message.call)):
        if one.source != one.target and (one.lost or _is_seen(one, times)):
            yield [one.name, one.source, one.target, one.sent_us, one.arrived_us, int(one.lost), one.about]


def _is_seen(message: DrawnMessage, times: Sequence[int]) -> bool:
    place = bisect_right(times, message.sent_us - 1)
    return place < len(times) and times[place] <= message.arrived_us


def _frame_at(times: Sequence[int], sentence: Sentence) -> int:
    """The frame of a sentence: its step, or the last step up to its time."""
    return sentence.line - FIRST_LINE if sentence.line else _last_until(times, sentence.at_us)


def _last_until(times: Sequence[int], at_us: int) -> int:
    """The last frame up to a time, or the first one."""
    return max(bisect_right(times, at_us) - 1, 0)


def _marks(observed: ObservedRun, times: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Violations and early warnings, each violation with the frame of the first early warning before it."""
    result = observed.result
    warnings = sorted(result.warnings, key=lambda entry: entry["at_us"])
    for entry in sorted([*result.violations, *warnings], key=lambda entry: entry["at_us"]):
        is_violation = entry in result.violations
        before = (warning["at_us"] for warning in warnings if warning.get("partition") == entry.get("partition"))
        cause_us = next((at_us for at_us in before if at_us < entry["at_us"]), -1)
        yield {
            "at": entry["at_us"],
            "frame": _last_until(times, entry["at_us"]),
            "kind": entry["kind"],
            "detail": entry["detail"],
            "inside": entry["inside"],
            "violation": is_violation,
            "cause": _last_until(times, cause_us) if is_violation and cause_us >= 0 else -1,
        }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "shares": [[share.after_us, share.violating, share.runs] for share in curve.shares],
        "step": None if curve.step is None else [share.after_us for share in curve.step],
    }


def first_difference(one: ObservedRun, other: ObservedRun) -> tuple[int, int] | None:
    """The first frames in which two runs differ; None if they are equal throughout."""
    there = [observation.step for observation in one.observations]
    here = [observation.step for observation in other.observations]
    for place, (step, against) in enumerate(zip(there, here, strict=False)):
        if step != against:
            return place, place
    if len(there) == len(here):
        return None
    shorter = min(len(there), len(here))
    return min(shorter, len(there) - 1), min(shorter, len(here) - 1)
