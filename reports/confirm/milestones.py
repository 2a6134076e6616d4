"""How far a simulated run had come before each line of its script: brokers are to come as far before it is performed.

A scenario's waits say how long something takes in the simulation. Processes of Java on a busy machine take longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.confirm.comparing import simulated_changes, times_us
from reports.confirm.observer import SEEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenarios.format.scenario import ScriptLine, StoryLine
    from scenarios.single.run import RunResult


@dataclass(frozen=True, slots=True)
class Milestone:
    """What has happened before a line of the script is performed.

    Attributes:
        changes: how many states the partition has gone through.
        told: how many lines of the story have come true, of those that can be seen on brokers.
    """

    changes: int = 0
    told: int = 0


def milestones(
    result: RunResult,
    script: Sequence[ScriptLine],
    story: Sequence[StoryLine],
    batches: Mapping[str, int],
    *,
    elr: bool,
) -> list[Milestone]:
    """One for each line of the script.

    In the simulation a process ends as soon as it may, one of Java a second later: where its end is what the story
    tells of next, what follows the request waits for it as well.

    Args:
        result: the simulated run, with its trace.
        script: lines that are performed.
        story: lines that are meant.
        batches: batch name -> first record.
        elr: whether there is an ELR.
    """
    assert result.trace is not None
    came = [
        (told["met_at_us"], line.pattern)
        for told, line in zip(result.story, story, strict=True)
        if told["met_at_us"] is not None and line.pattern.step in SEEN
    ]
    stopping: set[int] = set()
    found = []
    for line, at_us in zip(script, times_us(result.trace, script, batches), strict=True):
        told = sum(met_us < at_us for met_us, _ in came)
        # What comes at the same moment, but is told of before the line is.
        own = (
            place
            for place in range(told, len(came))
            if came[place][0] == at_us and came[place][1].step == line.do and came[place][1].broker in _brokers(line)
        )
        told = next(own, told)
        following = came[told][1] if told < len(came) else None
        if following is not None and following.step == "shutdown" and following.broker in stopping:
            told += 1
        found.append(Milestone(len(simulated_changes(result, at_us - 1, elr=elr)), told))
        if line.do == "controlled-restart":
            stopping.add(line.params["broker"])
    return found


def _brokers(line: ScriptLine) -> Sequence[int]:
    """The brokers that a line of a script strikes."""
    found: list[int] = line.params.get("brokers", [line.params.get("broker")])
    return found
