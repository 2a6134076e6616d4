"""The arms of a hunt: random scenarios in the mode of the release, and control arms, which should find nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from scenarios.format import catalogue
from scenarios.format.cluster_checks import check_control_plane
from sim.errors import InputError, did_you_mean
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from highwater.lab.hunt.state import ArmState, HuntState
    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

CONTROL_SHARE: Final = 0.1
"""Share of the simulated events that control arms get."""
FLOOR: Final = 0.5
"""What an arm that found nothing rare counts as having found."""
FIRST_EVENTS: Final = 100_000
"""Events that an arm counts as having had before its first run: it keeps the first weights from being wild."""
REPAIRED: Final = ("elr-repaired", "kip320-repaired")
WITHOUT_FAULTS: Final = "no-faults"
CANARY: Final = "canary"
"""A scenario that tests the installation, not the protocol."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Random runs of one scenario in one mode, some of whose `rules` have other values.

    `control`: a violation there means a defect of ours.
    """

    name: str
    scenario: Scenario
    mode: Mode
    control: bool = False
    rules: Mapping[str, str] = field(default_factory=dict)


def arms(mode: Mode, chosen: Sequence[str] = (), rules: Mapping[str, str] | None = None) -> dict[str, Arm]:
    """The arms of a mode, by name.

    Args:
        mode: the mode of the release.
        chosen: only these random scenarios; empty: all that the mode can run.
        rules: values of the mode's rules that a build changes.

    Raises:
        InputError: one of those chosen is none of them.
    """
    fitting = [scenario for scenario in _random(mode) if not chosen or scenario.name in chosen]
    if missing := [name for name in chosen if name not in {scenario.name for scenario in fitting}]:
        names = [scenario.name for scenario in _random(mode)]
        raise InputError(
            f"--scenarios {missing[0]}: {mode.name} runs no such random scenario{_near(missing[0], names)}"
        )
    rules = rules or {}
    found = [Arm(f"{scenario.name}/{mode.name}", scenario, mode, rules=rules) for scenario in fitting]
    for name in REPAIRED:
        repaired = MODES[name]
        if repaired.rules != mode.rules:
            alone = [scenario for scenario in fitting if not scenario.upgraded_from]  # Older brokers are not repaired.
            found += [
                Arm(f"{scenario.name}/{name}", scenario, repaired, control=True) for scenario in _fit(alone, repaired)
            ]
    for scenario in fitting:
        assert scenario.faults is not None
        quiet = replace(scenario, without_faults=scenario.faults.kinds)
        found.append(Arm(f"{scenario.name}/{mode.name}/{WITHOUT_FAULTS}", quiet, mode, control=True, rules=rules))
    return {arm.name: arm for arm in found}


def _near(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names)


def _random(mode: Mode) -> Iterator[Scenario]:
    """All random scenarios with faults that a mode can run."""
    names = (name for name in catalogue.names() if name != CANARY)
    drawn = (scenario for scenario in map(catalogue.load, names) if scenario.drawn and scenario.faults is not None)
    return _fit(drawn, mode)


def _fit(scenarios: Sequence[Scenario] | Iterator[Scenario], mode: Mode) -> Iterator[Scenario]:
    for scenario in scenarios:
        try:
            check_control_plane(scenario, [mode])
        except InputError:
            continue
        yield scenario


def next_arm(there: Mapping[str, Arm], state: HuntState) -> Arm:
    """The arm whose turn it is: a function of what was run and found.

    Control arms get their share. Of the others, the one that promises most per event: the causes that were seen once,
    in this arm, divided by its events. An arm that finds nothing rare is run less, but never given up.
    """
    own = [arm for arm in there.values() if not arm.control]
    control = [arm for arm in there.values() if arm.control]
    events = {name: state.arms[name].events if name in state.arms else 0 for name in there}
    of_control = sum(events[arm.name] for arm in control)
    if control and of_control < CONTROL_SHARE * sum(events.values()):
        return min(control, key=lambda arm: (events[arm.name], arm.name))
    once = dict.fromkeys(there, FLOOR)
    for cause in state.causes.values():
        if cause.count == 1 and cause.arm in once:
            once[cause.arm] += 1
    return max(own, key=lambda arm: (once[arm.name] / (events[arm.name] + FIRST_EVENTS), arm.name))


def share(arm: ArmState, all_events: int) -> float:
    """An arm's share of all simulated events."""
    return arm.events / all_events if all_events else 0.0
