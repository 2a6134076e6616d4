"""A script with one fault more at a time of a run of it: up to then, each line is performed when it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from scenarios.format import toml_text
from scenarios.format.scenario import Expectation, ScriptLine
from scenarios.shrinking.script_export import params_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from faults.plan import Fault
    from scenarios.format.scenario import Scenario
    from scenarios.shrinking.case import Case
    from scenarios.single.result import RunResult

_OF_STORY: Final[Mapping[str, Any]] = {
    "story": (), "final": (), "also": (), "broken_by": {}, "confirm": None, "finding": None, "source": "",
}  # fmt: skip
"""What is no longer expected after a choice."""
REST_US: Final = 60_000_000
"""Time from the last line that is performed until everything is healed, if the next one waits in vain."""
_IN_VAIN: Final = "waited in vain"


def with_fault(case: Case, result: RunResult, fault: Fault) -> Case:
    """The case of a scripted run with a further fault, and without a story; `result` is of the case.

    The line after the fault waits for the rest of its time if its step had come by then, and else for its step.
    """
    lines = list(case.scenario.script)
    before = [(number, at_us) for number, at_us in result.played if at_us <= fault.at_us]
    after = [(number, at_us) for number, at_us in result.played if at_us > fault.at_us]
    place, since_us = before[-1] if before else (0, 0)
    if after:
        number, at_us = after[0]
        line = lines[number - 1]
        if line.when is None or at_us - line.after_us <= fault.at_us:
            lines[number - 1] = replace(line, when=None, after_us=at_us - fault.at_us)
    further = ScriptLine(fault.kind, after_us=fault.at_us - since_us, params=params_of(fault, fault.targets))
    lines.insert(place, further)
    expect = {case.mode.name: Expectation("may-violate")}
    return case.with_scenario(script=tuple(lines), expect=expect, **_OF_STORY)


def ended(case: Case) -> Case:
    """The case of a script, without the lines that are not performed because one of them waits in vain: in their place
    it waits for some time. A script that comes to its end is as it was.
    """
    result = case.run()
    if not result.played or _IN_VAIN not in str(result.row["error"]):
        return case
    lines = case.scenario.script[: result.played[-1][0]]
    return case.with_scenario(script=(*lines, ScriptLine("wait", after_us=REST_US)))


def to_toml(scenario: Scenario, row: Mapping[str, Any], mode: str) -> str:
    """The scenario file of a script, which expects what a run in a mode came to."""
    kinds = "|".join(str(row["violations"]).split(","))
    expected = f"violates:{kinds}" if kinds else "clean:committed-loss"
    return toml_text.to_toml({**scenario.as_file(), "expect": {mode: expected}})
