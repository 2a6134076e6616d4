"""Runs in which too little happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

MIN_BATCHES: Final = 20
MIN_FAULTS: Final = 3
VACUOUS_MAX: Final = 0.05
"""Share of vacuous runs of a random scenario above which a sweep is inconclusive."""
VACUOUS: Final = (
    f"a random run with fewer than {MIN_BATCHES} acknowledged batches, with fewer than {MIN_FAULTS} faults that took "
    "effect, or without an election after the first"
)
"""What `is_vacuous` calls vacuous, in words."""


def is_vacuous(scenario: Scenario, *, batches_acked: int, faults: int, elections: int) -> bool:
    """Whether too little happened in a run, over all partitions (`VACUOUS`)."""
    return scenario.drawn and (batches_acked < MIN_BATCHES or faults < MIN_FAULTS or elections < 1)


def warnings(scenario: Scenario) -> list[str]:
    """Why many runs of a scenario will be vacuous, one sentence each."""
    faults, workload = scenario.faults, scenario.workload
    if faults is None:
        return []
    found = []
    if faults.count[0] < MIN_FAULTS:
        found.append(f"faults.count = {[*faults.count]}: runs with fewer than {MIN_FAULTS} are vacuous")
    if workload is not None and (most := workload.bursts[1] * workload.batches[1]) < MIN_BATCHES:
        found.append(
            f"workload: bursts and batches permit {most} batches; runs with fewer than {MIN_BATCHES} are vacuous"
        )
    share = f"{VACUOUS_MAX * 100:.0f} %"
    return [f"{reason}, and a sweep with more than {share} of these is inconclusive" for reason in found]
