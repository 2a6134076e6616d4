"""Scripts of shrunk runs in which lines wait for steps, and not for times, so that real brokers can perform them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import LINKS
from highwater.lab.confirm.observer import SEEN
from scenarios.format.schema import read
from scenarios.format.toml_text import to_toml
from scenarios.shrinking.passes import EARLIEST_US
from scenarios.single.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from faults.plan import Fault
    from scenarios.format.scenario import Scenario
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.cause import Repair
    from scenarios.shrinking.criterion import Symptom
    from sim.protocol.modes import Mode

BEFORE_MS: Final = 5_000
"""Nothing happens before the first line: so much of the wait for it is kept."""
AFTER_MS: Final = 15_000
"""What is started again by then is back before the script ends, on brokers as well."""
STOPPING: Final = ("kill", "power-loss", "controlled-restart")
"""Faults after which a broker is started again."""
FIELDS: Final = ("broker", "batch", "offset")
"""The fields by which a step that is waited for is known; epochs have other numbers on brokers."""


LASTING_US: Final = 25_000_000
"""A fault that is undone earlier is made to last so long: the session of a stopped broker has ended by then. Brokers
may skip a state that lasts for milliseconds, such as that between the end of a session and the next registration. No
multiple of `APART_US`, so that a broker is not started when the next fault strikes.
"""

APART_US: Final = 10_000_000
"""Faults that strike sooner after another one are made to strike so much later, because brokers take longer than the
simulation to restart, to catch up, or to apply metadata.
"""


def expressible(case: Case, symptom: Symptom, repairs: Sequence[Repair] = ()) -> Case:
    """The case with named brokers in place of roles such as the leader, with a batch if it has none, and with faults
    that last longer and are further apart.

    It is the same case where that would end otherwise, or if one of the repairs would no longer cure it.
    """
    for changed in (_with_batch, _with_names, *_lasting(case), *_apart(case)):
        other = changed(case)
        if other is not case and symptom.shown_by(other.row()):
            cured = all(symptom.cured_in(repair.apply(other).row()) for repair in repairs)
            case = other if cured else case
    return case


def _lasting(case: Case) -> Iterator[Callable[[Case], Case]]:
    """Functions that make all faults of a case last longer, then each of them."""
    places = range(len(case.faults))
    for chosen in (places, *([place] for place in places)):
        yield partial(_with_longer, chosen)


def _with_longer(places: Container[int], case: Case) -> Case:
    faults = tuple(_longer(fault) if place in places else fault for place, fault in enumerate(case.faults))
    return case if faults == case.faults else case.with_faults(faults)


def _longer(fault: Fault) -> Fault:
    return replace(fault, lasts_us=LASTING_US) if 0 <= fault.lasts_us < LASTING_US else fault


def _apart(case: Case) -> Iterator[Callable[[Case], Case]]:
    """Functions that delay all faults of a case from one of them on, from the second one on."""
    for place in range(1, len(case.faults)):
        yield partial(_delayed_from, place)


def _delayed_from(place: int, case: Case) -> Case:
    faults = sorted(case.faults, key=lambda fault: fault.at_us)
    by_us = APART_US - (faults[place].at_us - faults[place - 1].at_us)
    if by_us <= 0 or any(fault.trigger is not None for fault in faults):
        return case
    later = [replace(fault, at_us=fault.at_us + by_us) for fault in faults[place:]]
    return case.with_horizon(case.horizon_us + by_us).with_faults((*faults[:place], *later))


def _with_batch(case: Case) -> Case:
    return case if case.sends else case.with_sends(((0, 1, -1, EARLIEST_US),))


def _with_names(case: Case) -> Case:
    if all(min(fault.targets) >= 0 for fault in case.faults):
        return case
    struck = case.run().faults
    return case.with_faults(tuple(_named(fault, struck) for fault in case.faults))


def _named(fault: Fault, struck: Sequence[dict[str, Any]]) -> Fault:
    """A fault at a fixed time with the brokers that it struck."""
    if fault.trigger is not None or min(fault.targets) >= 0 or fault.kind in LINKS:
        return fault
    times = [fault.at_us + fault.delay_us(place) for place in range(len(fault.targets))]
    found = [entry["targets"] for entry in struck if entry["kind"] == fault.kind and entry["at_us"] in times]
    return fault.with_targets(tuple(chain(*found))) if len(found) == len(times) else fault


def by_steps(text: str, mode: Mode) -> str:
    """The same script, in which lines wait for the last step of the story before them, and not for a time.

    The wait for the first line is cut short, and what comes last has time to end; lines of the story that were of the
    earlier end do not happen then, and are left out. No controller goes back to the preferred leader in that time: none
    does on brokers.

    Raises:
        ValueError: it no longer ends as it did.
    """
    told = tomllib.loads(text)
    script = told["script"] = _with_starts(told["script"])
    first_ms = script[0].get("after_ms", 0)
    script[0]["after_ms"] = min(first_ms, BEFORE_MS)
    result = run(_scenario(told), mode, 0, trace=True)
    came = [
        (line["met_at_us"], probe)
        for line, probe in zip(result.story, told.get("story", ()), strict=True)
        if line["met_at_us"] is not None and probe["step"] in SEEN
    ]
    before_us = at_us = script[0]["after_ms"] * 1_000
    for line in script[1:]:
        at_us += _after_us(line)
        between = [(met_us, place) for place, (met_us, _) in enumerate(came) if before_us < met_us < at_us]
        last = max(between, default=None)
        if last is not None and line["do"] != "produce":
            met_us, place = last
            probe = came[place][1]
            line["when"] = {"step": probe["step"], **{name: probe[name] for name in FIELDS if name in probe}}
            line.pop("after_us", None)
            line["after_ms"] = (at_us - met_us) // 1_000
        before_us = at_us
    script.append({"after_ms": AFTER_MS, "do": "wait"})
    told.setdefault("config", {})["auto.leader.rebalance.enable"] = False
    while True:
        again = run(_scenario(told), mode, 0)
        missed = next((place for place, line in enumerate(again.story) if line["met_at_us"] is None), None)
        if missed is None:
            break
        del told["story"][missed]
    if not again.row["expected"]:
        raise ValueError(again.row["error"] or again.row["violations"] or again.row["verdict"])
    return to_toml(told)


def _with_starts(script: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The script with a line for each start of a stopped broker that is not the last event.

    On brokers, sessions end later, so a start after `restart_ms` may come before a line that waits for such a state.
    """
    at_us, timed = 0, list[tuple[int, dict[str, Any]]]()
    for line in script:
        at_us += _after_us(line)
        timed.append((at_us, line))
    for begin_us, line in list(timed):
        start_us = begin_us + line.get("restart_ms", 0) * 1_000
        if line["do"] in STOPPING and begin_us < start_us < at_us:
            del line["restart_ms"]
            stopped = line["brokers"] if "brokers" in line else [line["broker"]]
            timed += [(start_us, {"do": "start", "broker": broker}) for broker in stopped]
    timed.sort(key=lambda entry: entry[0])
    before_us = 0
    for start_us, line in timed:
        _set_after(line, start_us - before_us)
        before_us = start_us
    return [line for _, line in timed]


def _after_us(line: Mapping[str, Any]) -> int:
    return int(line.get("after_ms", 0) * 1_000 + line.get("after_us", 0))


def _set_after(line: dict[str, Any], us: int) -> None:
    for key, value in zip(("after_ms", "after_us"), divmod(us, 1_000), strict=True):
        line.pop(key, None)
        if value:
            line[key] = value


def _scenario(told: dict[str, Any]) -> Scenario:
    return read(to_toml(told), "the script")
