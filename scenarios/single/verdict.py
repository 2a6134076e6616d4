"""Whether a run is vacuous, and whether its violations are as the scenario expects."""

from __future__ import annotations

from scenarios.format.scenario import Expectation, Scenario
from sim.checkers.registry import FINDINGS
from sim.history.findings import Violation

MIN_BATCHES = 20
MIN_FAULTS = 3


def is_vacuous(scenario: Scenario, *, batches_acked: int, faults: int, elections: int) -> bool:
    """Whether too little happened in a random run: fewer than 20 acknowledged batches, fewer than 3 faults that took
    effect, or no election after warm-up.
    """
    return scenario.drawn and (batches_acked < MIN_BATCHES or faults < MIN_FAULTS or elections < 1)


def as_expected(scenario: Scenario, mode: str, violations: list[Violation], *, to_the_end: bool = True) -> bool:
    """Whether one run is as the scenario's [expect] says.

    A recorded run must have its recorded violations, in its own mode. If a random scenario must violate, it is judged
    as a whole, and any single run is as expected. In a scripted scenario, all other kinds must be listed in `also` with
    their label; early warnings only if the expected kind must not occur, because otherwise they precede it. An
    incomplete run is only judged by the violations that it has.
    """
    expectation = scenario.expect.get(mode, Expectation("may-violate"))
    kinds = {violation.kind for violation in violations}
    recorded = scenario.recorded
    if recorded is not None and recorded.mode:
        shown = kinds >= set(recorded.kinds) or not to_the_end if recorded.kinds else not kinds
        return mode != recorded.mode or shown
    if expectation.verdict == "may-violate":
        return True
    if scenario.drawn:
        watched = set(expectation.kinds) or kinds
        return expectation.verdict == "violates" or not any(
            violation.inside and violation.kind in watched for violation in violations
        )
    known = {(entry.kind, entry.label) for entry in scenario.also if mode in entry.modes}
    unlisted = [
        violation
        for violation in violations
        if violation.kind not in expectation.kinds
        and not (expectation.verdict == "violates" and FINDINGS[violation.kind].is_warning)
        and (violation.kind, "inside" if violation.inside else "outside") not in known
    ]
    occurs = bool(kinds & set(expectation.kinds))
    must = expectation.verdict == "violates"
    return not unlisted and (occurs == must or (must and not to_the_end))
