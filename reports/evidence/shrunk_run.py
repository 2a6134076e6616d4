"""A shrunk run as text: its violation, its cure, and its size before and after."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import STALLED, OutOfTimeError, Trials, symptom
from scenarios.shrinking.script_export import NotScriptedError, to_toml
from scenarios.shrinking.shrink import shrink
from scenarios.single import recording
from scenarios.single.run import prepare_process
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reports.evidence.replay import Origin
    from scenarios.shrinking.shrink import ShrunkCase
    from sim.protocol.modes import Mode

PART: Final = "shrunk"
"""Folder of shrunk runs, beside ``seeds``."""


def failed_run(origin: Origin, mode: Mode, *, keeps_cluster: bool = False) -> Case:
    """Run the case to shrink, and record it.

    Args:
        origin: the run.
        mode: its mode.
        keeps_cluster: shrinking leaves brokers and settings as they are; so it does if the recorded run says so.

    Raises:
        InputError: it is scripted, or its digest differs from the known one.
    """
    what = f"{origin.scenario.name}, mode {mode.name}, seed {origin.seed}"
    if not origin.scenario.drawn:
        name = origin.scenario.name
        raise InputError(f"{name} is a script, and none of its lines is drawn: only drawn runs are shrunk")
    result = Case(origin.scenario, mode, origin.seed, origin.rules).run()
    digest, expected = result.row["digest"], origin.digests.get(mode.name)
    if expected not in (None, digest):
        raise InputError(f"{what}: the digest is {digest}, and was {expected}: other code ran then, or it was edited")
    found = Case(recording.of_run(origin.scenario, result).scenario, mode, origin.seed, origin.rules)
    return found.keeping_cluster() if keeps_cluster else found


def shrunk(
    case: Case, kind: str | None, budget_s: float, tell: Callable[[Case, int], None]
) -> tuple[ShrunkCase, float]:
    """Shrink a run within a time limit in seconds; return the result and the seconds that it took.

    The violation `kind` is kept, by default the first. `tell` is called with each smaller case and the runs so far.

    Raises:
        InputError: the run does not violate this kind, or the time limit is too short to find the cause.
    """
    prepare_process()
    begin = time.monotonic()
    trials = Trials(lambda: time.monotonic() - begin > budget_s)
    kept = symptom(case.row(), kind)
    try:
        found = shrink(case, kept, trials, tell)
    except OutOfTimeError:
        raise InputError(
            f"--budget: {budget_s:g} s were not enough to find the cause; a larger budget is needed"
        ) from None
    return found, time.monotonic() - begin


def as_found(found: ShrunkCase, plan: Path) -> Case:
    """The shrunk run as its plan file records it: its violations are expected."""
    case = found.case
    violated = case.row()["violations"]
    kinds = tuple(violated.split(",")) if violated else ()
    recorded = replace(case.recorded, kinds=kinds, words=("--plan", str(plan)))
    return case.with_scenario(recorded=recorded)


def script(found: ShrunkCase) -> tuple[str, str]:
    """The shrunk run as a scenario file, or an empty text and the reason why that is not possible."""
    try:
        return to_toml(found.case, found.symptom), ""
    except NotScriptedError as error:
        return "", str(error)


def sizes(found: ShrunkCase) -> str:
    """Sizes before and after."""
    before, after = found.before, found.after
    names = ("faults", "batches", "events")
    return ", ".join(f"{getattr(before, name)} -> {getattr(after, name)} {name}" for name in names)


def summary(found: ShrunkCase, seconds: float) -> str:
    """Sizes before and after, number of runs and time, in one line."""
    return f"{sizes(found)}, {found.runs} runs, {seconds:.1f} s"


def unfinished(found: ShrunkCase) -> str:
    """Note that the time limit was reached."""
    also = f", and is cured by {', '.join(map(str, found.besides))}, too" if found.besides else ""
    return f"The budget is used up: it may not be the smallest{also}; --budget 10m continues"


def kept(found: ShrunkCase) -> str:
    """The violation, and whether it is inside the promise."""
    kind, side = found.symptom.kind, "inside" if found.symptom.inside else "outside"
    return kind if kind == STALLED else f"{kind}, {side} the promise"


def cause(found: ShrunkCase) -> str:
    """The repairs that cure the failure, in one sentence."""
    if found.cause:
        return f"Cured by each of: {', '.join(map(str, found.cause))} (of {found.asked} repairs that have an effect)"
    return f"No single repair cures it, of {found.asked} that have an effect"


def as_json(found: ShrunkCase) -> dict[str, Any]:
    """The shrunk run as one JSON-able object."""
    return {
        **asdict(found.symptom),
        "cause": [str(repair) for repair in found.cause],
        "cured_besides_by": [str(repair) for repair in found.besides],
        "repairs_asked": found.asked,
        "before": asdict(found.before),
        "after": asdict(found.after),
        "runs": found.runs,
        "whole": found.whole,
    }
