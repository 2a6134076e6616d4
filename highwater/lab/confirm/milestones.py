"""The simulation's progress at each script line, which real brokers must reach before the line is performed.

A scenario's waits are as long as things take in the simulation; JVMs on a busy machine take longer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from faults.kinds.file_damage import FileHalfWritten, FileLost, FileOld
from highwater.lab.confirm.comparison import DecidedChange, FurtherResult, simulated_changes, times_us, trace_of_all
from highwater.lab.confirm.files import Disk
from highwater.lab.confirm.observer import SEEN
from sim.history.steps import ACK, FILE_DAMAGED, SHUTDOWN, TRUNCATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from highwater.lab.confirm.partitions import KafkaPartition
    from scenarios.format.scenario import ScriptLine, StoryLine
    from scenarios.single.result import RunResult
    from sim.history.trace import Shown
    from sim.hosts.cluster import Cluster

ENDING: Final = ("kill", "power-loss", "corrupt-tail")
"""Actions that end processes, and so determine the disks that the next processes find."""
OF_FILES: Final = tuple(kind.name for kind in (FileLost, FileOld, FileHalfWritten))
"""Actions that damage a file."""
STOPPING: Final = ("controlled-restart", *OF_FILES)
"""Actions that shut a broker down."""
FAULTS: Final = (*ENDING, *STOPPING, "disk-replaced", "cut", "pause", "directory-failure")
"""Actions whose effect depends on the progress of other brokers."""

_NONE: Final[tuple[int, Sequence[str]]] = (0, ())


class Disks:
    """Records the disks of a simulated cluster after each step: what they hold of a partition, by default the first."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._times: list[int] = []
        self._disks: list[dict[int, Disk]] = []
        # Until a process has loaded its log, the simulated disk still holds what a power loss destroys.
        self._loaded: list[frozenset[int]] = []

    def watch(self, cluster: Cluster, name: str) -> Callable[[Shown], None]:
        """Follow a run (`scenarios.single.run.Watch`)."""
        if name != (self._name or cluster.name):
            return lambda _: None

        def see(step: Shown) -> None:
            found, loaded = {}, set()
            for broker in cluster.settings:
                storage, replica = cluster.files(broker, name), cluster.replica(broker, name)
                if replica is not None:
                    loaded.add(broker)
                    storage.hw_file.catch_up(replica.hw, cluster.kernel.now_us)
                leo = storage.log.leo
                found[broker] = Disk(leo, min(leo, storage.hw_file.content or 0))
            self._times.append(step["t"])
            self._disks.append(found)
            self._loaded.append(frozenset(loaded))

        return see

    def before(self, at_us: int) -> dict[int, Disk]:
        """The least contents of disks before a line, of brokers that had loaded their logs.

        HW files are the current ones, since they are written between steps.
        """
        place = bisect_left(self._times, at_us)
        if place == 0 or place == len(self._times):
            return {}
        logs, files = self._disks[place - 1], self._disks[place]
        # At the same instant a log may be truncated, and the line may wait for that.
        now = self._disks[bisect_right(self._times, at_us) - 1]
        least = {broker: min(logs[broker].leo, now[broker].leo) for broker in self._loaded[place - 1]}
        return {broker: Disk(leo, min(leo, files[broker].hw)) for broker, leo in least.items()}

    def after(self, at_us: int) -> dict[int, Disk]:
        """The disks right after a line."""
        return self._disks[min(bisect_right(self._times, at_us), len(self._disks) - 1)]


@dataclass(frozen=True, slots=True)
class Milestone:
    """The simulation's progress at a script line.

    Attributes:
        changes: states of the partition before the line.
        told: number of expected steps that had occurred, among those observable on real brokers.
        acked: first records of the batches that had been acknowledged, of all partitions.
        disks: least contents of the running brokers' disks before it, with the HW files that their next end finds.
        left: all disks right after it.
        ended: brokers that it ended.
        to_hw: ended brokers whose next truncation goes to the offset in their HW file.
        over: of a line that stalls a disk for a while: the number of states of the partition at the end of that, and
            how long in microseconds the last of them had lasted by then.
        further: that of each further partition, by name, of which states, disks and what follows from them are told.
    """

    changes: Sequence[DecidedChange] = ()
    told: int = 0
    disks: Mapping[int, Disk] = field(default_factory=dict)
    left: Mapping[int, Disk] = field(default_factory=dict)
    ended: Sequence[int] = ()
    to_hw: Sequence[int] = ()
    over: tuple[int, int] = (0, 0)
    acked: frozenset[int] = frozenset()
    further: Mapping[str, Milestone] = field(default_factory=dict)

    def of(self, partition: KafkaPartition) -> Milestone:
        """That of a partition."""
        return self.further.get(partition.name, Milestone()) if partition.place else self


def milestones(
    result: RunResult,
    script: Sequence[ScriptLine],
    story: Sequence[StoryLine],
    batches: Mapping[str, int],
    disks: Disks,
    *,
    elr: bool,
    further: Mapping[str, tuple[FurtherResult, Disks]] | None = None,
) -> list[Milestone]:
    """Compute a milestone for each script line from a traced run and the disks that were recorded during it; `further`
    has those of further partitions.
    """
    parts = further or {}
    trace = trace_of_all(result, {name: part for name, (part, _) in parts.items()})
    found = _of_partition(result, trace, script, story, batches, disks, elr=elr)
    for name, (part, its_disks) in parts.items():
        own = _of_partition(part.result, trace, script, story, batches, its_disks, elr=elr, replicas=part.replicas)
        found = [
            replace(milestone, further={**milestone.further, name: of_it})
            for milestone, of_it in zip(found, own, strict=True)
        ]
    return found


def _of_partition(
    result: RunResult,
    trace: Sequence[Shown],
    script: Sequence[ScriptLine],
    story: Sequence[StoryLine],
    batches: Mapping[str, int],
    disks: Disks,
    *,
    elr: bool,
    replicas: Sequence[int] = (),
) -> list[Milestone]:
    """The milestones of a partition; `trace` is that of all.

    A simulated process ends as soon as it may, a JVM a second later. If its end is the next expected step, the lines
    after the shutdown request wait for it, too, and for the damage to a file then.
    """
    assert result.trace is not None
    came = [
        (told["met_at_us"], line.pattern)
        for told, line in zip(result.story, story, strict=True)
        if told["met_at_us"] is not None and line.pattern.step in SEEN
    ]
    acks = [(step["record"], step["t"]) for step in trace if step["step"] == ACK.name]
    stopping: dict[int, tuple[int, Sequence[str]]] = {}
    """Broker that a line shuts down -> when, and the steps that come of it, until they have."""
    ends: dict[int, int] = {}
    found = []
    for line, at_us in zip(script, times_us(trace, script, batches), strict=True):
        told = sum(met_us < at_us for met_us, _ in came)
        # Steps of the same instant that precede the line.
        own = (
            place
            for place in range(told, len(came))
            if came[place][0] == at_us and came[place][1].step == line.do and came[place][1].broker in _brokers(line)
        )
        told = next(own, told)
        stopping = {one: end for one, end in stopping.items() if not _is_shut_down(trace, one, end[0], at_us)}
        for step in (SHUTDOWN.name, FILE_DAMAGED.name):
            following = came[told][1] if told < len(came) else None
            if following is not None and following.step == step:
                told += step in stopping.get(following.broker or 0, _NONE)[1]
        changes = simulated_changes(result, at_us - 1, elr=elr, replicas=replicas)
        left = disks.after(at_us)
        ended = [broker for broker in _brokers(line) if broker in left] if line.do in ENDING else []
        # Earlier lines may have ended other brokers at the same instant.
        just_ended = {broker for broker, ended_us in ends.items() if ended_us == at_us}
        before = {broker: disk for broker, disk in disks.before(at_us).items() if broker not in just_ended}
        to_hw = [broker for broker in ended if next_truncation(result.trace, broker, at_us) == left[broker].hw]
        over = (0, 0)
        if line.do == "disk-stall" and line.params.get("for_ms"):
            over = _over(result, at_us + 1000 * line.params["for_ms"], elr=elr)
        acked = frozenset(record for record, acked_us in acks if acked_us <= at_us)
        found.append(Milestone(changes, told, before, left, ended, to_hw, over, acked))
        ends |= dict.fromkeys(ended, at_us)
        if line.do in STOPPING:
            damaged = (FILE_DAMAGED.name,) if line.do in OF_FILES else ()
            stopping[line.params["broker"]] = at_us, (SHUTDOWN.name, *damaged)
    return _with_hw_files_that_matter(found)


def _is_shut_down(trace: Sequence[Shown], broker: int, since_us: int, at_us: int) -> bool:
    """Whether a broker was shut down from one time on and before another."""
    ends = (step["t"] for step in trace if (step["step"], step.get("broker")) == (SHUTDOWN.name, broker))
    return any(since_us <= end_us < at_us for end_us in ends)


def _over(result: RunResult, at_us: int, *, elr: bool) -> tuple[int, int]:
    """Number of states of the partition by a time, and how long the last of them had lasted."""
    assert result.trace is not None
    number = len(simulated_changes(result, at_us, elr=elr))
    times = (step["t"] for step in result.trace if step["t"] <= at_us)
    return number, at_us - next(us for us in times if len(simulated_changes(result, us, elr=elr)) == number)


def next_truncation(steps: Sequence[Shown], broker: int, at_us: int) -> int | None:
    """Offset of a broker's first truncation after a given time; None if it does not truncate."""
    after = (step for step in steps if step["step"] == TRUNCATE.name and step["t"] > at_us)
    return next((step["offset"] for step in after if step["broker"] == broker), None)


def _with_hw_files_that_matter(found: Sequence[Milestone]) -> list[Milestone]:
    """Keep only the HW files that brokers have at their next end: the others need not be waited for."""
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
    """The target brokers of a script line."""
    found: list[int] = line.params.get("brokers", [line.params.get("broker")])
    return found
