"""What a simulated run had come to at each line of its script: brokers are to come as far before it is performed.

A scenario's waits say how long something takes in the simulation. Processes of Java on a busy machine take longer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reports.brokers.confirm.comparison import DecidedChange, simulated_changes, times_us
from reports.brokers.confirm.files import Disk
from reports.brokers.confirm.observer import SEEN
from sim.history.steps import SHUTDOWN, TRUNCATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scenarios.format.scenario import ScriptLine, StoryLine
    from scenarios.single.result import RunResult
    from sim.history.trace import Shown
    from sim.hosts.cluster import Cluster

ENDING: Final = ("kill", "power-loss", "corrupt-tail")
"""Lines that end processes, and leave their disks as the next process finds them."""
FAULTS: Final = (*ENDING, "disk-replaced", "controlled-restart", "cut", "pause")
"""Lines after which it matters how far others had come."""


class Disks:
    """The disks of a simulated cluster, after each step of its run."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._disks: list[dict[int, Disk]] = []
        # Until a process has loaded its log, the disk of the simulation still holds what a power loss takes.
        self._loaded: list[frozenset[int]] = []

    def watch(self, cluster: Cluster) -> Callable[[Shown], None]:
        """Follow a run (`scenarios.single.run.Watch`)."""

        def see(step: Shown) -> None:
            found, loaded = {}, set()
            for broker, storage in cluster.machines.storages.items():
                process = cluster.running.get(broker)
                if process is not None and process.partition is not None:
                    loaded.add(broker)
                    storage.hw_file.catch_up(process.partition.hw, cluster.kernel.now_us)
                leo = storage.log.leo
                found[broker] = Disk(leo, min(leo, storage.hw_file.content or 0))
            self._times.append(step["t"])
            self._disks.append(found)
            self._loaded.append(frozenset(loaded))

        return see

    def before(self, at_us: int) -> dict[int, Disk]:
        """What the disks of brokers that had loaded their logs before a line was performed hold at least. HW files are
        those of the moment: they are written between steps.
        """
        place = bisect_left(self._times, at_us)
        if place == 0 or place == len(self._times):
            return {}
        logs, files = self._disks[place - 1], self._disks[place]
        # At the moment itself a log may be truncated, which the line may wait for.
        now = self._disks[bisect_right(self._times, at_us) - 1]
        least = {broker: min(logs[broker].leo, now[broker].leo) for broker in self._loaded[place - 1]}
        return {broker: Disk(leo, min(leo, files[broker].hw)) for broker, leo in least.items()}

    def after(self, at_us: int) -> dict[int, Disk]:
        """The disks as a line left them."""
        return self._disks[min(bisect_right(self._times, at_us), len(self._disks) - 1)]


@dataclass(frozen=True, slots=True)
class Milestone:
    """What the simulation had come to at a line of the script.

    Attributes:
        changes: the states that the partition had gone through before it.
        told: how many lines of the story had come true, of those that can be seen on brokers.
        disks: what those of the brokers that ran before it held at least, and of HW files what their next end finds.
        left: all disks as it left them.
        ended: brokers that it ended.
        to_hw: those of them that next truncate to what their HW files say.
    """

    changes: Sequence[DecidedChange] = ()
    told: int = 0
    disks: Mapping[int, Disk] = field(default_factory=dict)
    left: Mapping[int, Disk] = field(default_factory=dict)
    ended: Sequence[int] = ()
    to_hw: Sequence[int] = ()


def milestones(
    result: RunResult,
    script: Sequence[ScriptLine],
    story: Sequence[StoryLine],
    batches: Mapping[str, int],
    disks: Disks,
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
        disks: that followed the run.
        elr: whether there is an ELR.
    """
    assert result.trace is not None
    came = [
        (told["met_at_us"], line.pattern)
        for told, line in zip(result.story, story, strict=True)
        if told["met_at_us"] is not None and line.pattern.step in SEEN
    ]
    stopping: set[int] = set()
    ends: dict[int, int] = {}
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
        if following is not None and following.step == SHUTDOWN.name and following.broker in stopping:
            told += 1
        changes = simulated_changes(result, at_us - 1, elr=elr)
        ended = _brokers(line) if line.do in ENDING else ()
        # Lines before this one may have ended others at the same moment.
        just_ended = {broker for broker, ended_us in ends.items() if ended_us == at_us}
        before = {broker: disk for broker, disk in disks.before(at_us).items() if broker not in just_ended}
        left = disks.after(at_us)
        to_hw = [broker for broker in ended if next_truncation(result.trace, broker, at_us) == left[broker].hw]
        found.append(Milestone(changes, told, before, left, ended, to_hw))
        ends |= dict.fromkeys(ended, at_us)
        if line.do == "controlled-restart":
            stopping.add(line.params["broker"])
    return _with_hw_files_that_matter(found)


def next_truncation(steps: Sequence[Shown], broker: int, at_us: int) -> int | None:
    """Where a broker's first truncation after a moment leaves the end of its log; None if it does not truncate."""
    after = (step for step in steps if step["step"] == TRUNCATE.name and step["t"] > at_us)
    return next((step["offset"] for step in after if step["broker"] == broker), None)


def _with_hw_files_that_matter(found: Sequence[Milestone]) -> list[Milestone]:
    """Of what HW files say, what the brokers are ended with next: for nothing else of them is waited."""
    ending: dict[int, int] = {}
    kept = []
    for one in reversed(found):
        ending |= {broker: one.left[broker].hw for broker in one.ended}
        disks = {
            broker: replace(disk, hw=disk.hw if ending.get(broker) == disk.hw else 0)
            for broker, disk in one.disks.items()
        }
        kept.append(replace(one, disks=disks))
    return kept[::-1]


def _brokers(line: ScriptLine) -> Sequence[int]:
    """The brokers that a line of a script strikes."""
    found: list[int] = line.params.get("brokers", [line.params.get("broker")])
    return found
