"""Observation of real brokers, in terms of the steps of a simulator trace.

Steps are derived from logs on disk, the control plane's log, the brokers' log output, the messages between them, and
the clients' results. Steps found in the same poll have no order.
"""

from __future__ import annotations

import queue
import re
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files, processes
from sim.history import steps as kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
    from highwater.lab.confirm.files import Stored
    from highwater.lab.confirm.partitions import KafkaPartition
    from sim.history.steps import Shown, StepKind

SEEN: Final = frozenset(
    kind.name
    for kind in (
        kinds.REGISTERED, kinds.UNFENCED, kinds.SESSION_END, kinds.CONTROLLER, kinds.ELECTED, kinds.ISR, kinds.ELR,
        kinds.APPEND, kinds.TRUNCATE, kinds.RECOVERED, kinds.LEAD, kinds.FOLLOW, kinds.SETTLED, kinds.REPLICATED,
        kinds.HW, kinds.DELETED, kinds.ACK, kinds.READ, kinds.END_OFFSET, kinds.START, *kinds.ENDS, kinds.PAUSE,
        kinds.RESUME, kinds.CUT, kinds.HEAL, kinds.SLOW, kinds.SEEK, kinds.OUT_OF_RANGE, kinds.RESET,
        kinds.METADATA_LOST, kinds.RAFT_LEADER, kinds.CONTROLLER_START, kinds.CONTROLLER_END,
    )
)  # fmt: skip
"""Kinds of steps that are observable on real brokers."""

_ALL_LOADED: Final = re.compile(r"Logs loading complete|Loaded \d+ logs in")


_FIRST_ROUNDS: Final = (2,)
"""Up to this release a follower truncates once; in later ones it may have to ask again (KIP-279)."""
_GIVES_UP: Final = re.compile(r"Exiting because log truncation is not allowed")
"""Log output of a broker that exits by itself; some releases then deadlock while they exit (KAFKA-3924)."""
_HANGS_S: Final = 3.0
_STRAY: Final = re.compile(r"-stray\b")
_DIRECTORY_FAILED: Final = re.compile(r"Stopped serving replicas in dir (\S+)")


class _Patterns:
    """What a broker logs about a partition, as patterns."""

    def __init__(self, partition: KafkaPartition) -> None:
        topic, number = re.escape(partition.topic), partition.number
        name = rf"(?<![\w.-]){topic}(?:-|,|, ){number}(?!\d)"
        self.name = re.compile(name)
        self.leads = re.compile(rf"{name}.* starts at leader epoch (\d+) from offset (\d+)", re.IGNORECASE)
        self.leads_old = re.compile(
            rf"completed LeaderAndIsr request .*become-leader transition for partition .*{name}"
        )
        self.follows = re.compile(rf"Follower {name}.* starts at leader epoch (\d+) from offset (\d+)")
        self.follows_old = re.compile(rf"Added fetcher .*{name}.*?(?:initOffset |offset=)\d+")
        self.follows_on = re.compile(rf"skipped the become-follower state change after marking .*{name}", re.IGNORECASE)
        """A new leader epoch of the same leader, under which fetching continues."""
        self.truncates = re.compile(rf"{name}.*Truncating to offset (\d+)|Truncating log {name} to offset (\d+)")
        self.truncates_nothing = re.compile(
            rf"{name}.*Truncating to \d+ has no effect as the largest offset .*is (-?\d+)"
        )
        self.log_start = re.compile(
            rf"{name}.*(?:Increment\w+ log start offset .*?to |log[- ]?start[- ]?offset[ =])(\d+)", re.IGNORECASE
        )
        """What it logs when the log start moves, and when it has loaded the log."""
        self.loaded = re.compile(
            rf"Completed load of .*(?:{name}|topic={topic}, partition={number})?.*log[- ]?end[- ]?offset[ =](\d+)",
            re.IGNORECASE,
        )


class PartitionObserver:
    """Observes a partition: its logs, what brokers log about it, and followers' fetches.

    Attributes:
        logs: broker -> its log.
        log_starts: broker -> its log start, as far as it has logged one.
    """

    def __init__(self, cluster: KafkaCluster, partition: KafkaPartition) -> None:
        self._cluster = cluster
        self._partition = partition
        self._patterns = _Patterns(partition)
        self.logs: dict[int, list[Stored]] = defaultdict(list)
        self.log_starts: dict[int, int] = {}
        self._stamps: dict[int, tuple[Any, ...]] = {}
        self._held: set[int] = set()
        self._loaded: dict[int, int] = {}
        self._unsettled: dict[int, int] = {}
        self._answered: dict[int, int] = {}
        self._leo_before = 0
        self._settled: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        self._hw: dict[int, int] = {}
        self._replicated: dict[tuple[int, int], int] = {}

    def begin(self) -> None:
        """A poll begins."""
        self._answered.clear()

    def epoch_end(self, follower: int) -> None:
        """A follower received an epoch's end offset."""
        asked = self._unsettled if follower in self._unsettled else self._answered
        asked[follower] = asked.get(follower, 0) + 1

    def _step(self, kind: StepKind, broker: int, **fields: Any) -> Shown:
        return {**_step(kind, broker, **fields), **self._partition.tag}

    # Disks.

    def leo(self, broker: int) -> int:
        """The log end offset on a broker's disk."""
        log = self.logs[broker]
        return log[-1].last_offset + 1 if log else 0

    def look_at_disk(self, node: KafkaNode) -> list[Shown]:
        """What changed in a broker's log."""
        self._leo_before = self.leo(node.id)
        folder = node.folder_of(self._partition)
        if node.alive and node.id in self._held and not folder.is_dir():
            self._held.discard(node.id)
            self._stamps[node.id] = ()
            self.logs[node.id] = []
            self.log_starts.pop(node.id, None)
            return [self._step(kinds.DELETED, node.id)]
        if folder.is_dir():
            self._held.add(node.id)
        stamp = tuple((path.name, *_stamp(path)) for path in files.segments(folder))
        if stamp == self._stamps.get(node.id, ()):
            return []
        self._stamps[node.id] = stamp
        before, after = self.logs[node.id], files.read_log(folder)
        self.logs[node.id] = after
        if not node.alive:
            return []
        same = 0
        while same < min(len(before), len(after)) and _identity(before[same]) == _identity(after[same]):
            same += 1
        return [
            self._step(kinds.APPEND, node.id, offset=base, last=last, leader_epoch=epoch, record=record)
            for base, last, epoch, record in map(_identity, after[same:])
        ]

    def watermarks(self) -> list[Shown]:
        """Followers' high watermarks that changed."""
        found: list[Shown] = []
        for broker, answered in self._answers.items():
            hw = min(answered, self.leo(broker))
            if hw != self._hw.get(broker, 0):
                self._hw[broker] = hw
                found.append(self._step(kinds.HW, broker, offset=hw, leader=False))
        return found

    # Processes.

    def ended(self, broker: int) -> None:
        """A broker's process ended."""
        for known in (self._answers, self._hw, self._unsettled, self._settled):
            known.pop(broker, None)

    def line(self, node: KafkaNode, line: str) -> list[Shown]:
        """What a broker's log line says of the partition."""
        if self._partition.topic in line and (found := self._line_of_topic(node, line)):
            return found
        return self._recovered(node, 0) if _ALL_LOADED.search(line) else []

    def _line_of_topic(self, node: KafkaNode, line: str) -> list[Shown]:
        broker, kraft, patterns = node.id, self._cluster.release.kraft, self._patterns
        if found := patterns.log_start.search(line):
            self.log_starts[broker] = 0 if _STRAY.search(line) else int(found[1])
        if found := (patterns.follows if kraft else patterns.follows_old).search(line):
            self._unsettled[broker] = self._answered.pop(broker, 0)
            # Older releases log where fetching begins, not where the log ends.
            epoch, offset = (int(found[1]), int(found[2])) if kraft else (self._epoch, self.leo(broker))
            return [self._step(kinds.FOLLOW, broker, offset=offset, leader_epoch=epoch)]
        if patterns.follows_on.search(line):
            if broker not in self._unsettled:
                self._settled[broker] = self._epoch
            return [self._step(kinds.FOLLOW, broker, offset=self.leo(broker), leader_epoch=self._epoch)]
        if (found := patterns.leads.search(line)) and "Follower" not in line:
            return self._leads(broker, int(found[2]), int(found[1]))
        if patterns.leads_old.search(line) and self._cluster.release.number < (1,):
            return self._leads(broker, self.leo(broker), self._epoch)
        if found := patterns.truncates_nothing.search(line):
            return self._truncates(broker, int(found[1]) + 1)
        if found := patterns.truncates.search(line):
            # It logs this beforehand: the disk may by now show the result.
            return self._truncates(broker, min(int(found[1] or found[2]), max(self._leo_before, self.leo(broker))))
        if "Completed load of" in line and patterns.name.search(line) and (found := patterns.loaded.search(line)):
            # A log that is taken for a stray one has another name by then: the broker begins an empty one.
            return self._recovered(node, 0 if _STRAY.search(line) else int(found[1]))
        return []

    def _truncates(self, broker: int, offset: int) -> list[Shown]:
        step = self._step(kinds.TRUNCATE, broker, offset=offset, leader_epoch=self._epoch)
        over = self._cluster.release.number < _FIRST_ROUNDS
        return [step, *(self._settles(broker) if over else ())]

    def _leads(self, broker: int, offset: int, epoch: int) -> list[Shown]:
        self._unsettled.pop(broker, None)
        self._answers.pop(broker, None)
        self._settled[broker] = self._epoch
        return [self._step(kinds.LEAD, broker, leader_epoch=epoch, offset=offset)]

    def _recovered(self, node: KafkaNode, leo: int) -> list[Shown]:
        if self.has_recovered(node):
            return []
        self._loaded[node.id] = node.incarnation
        if self._partition.place and not node.folder_of(self._partition).is_dir():
            return []  # Only the first partition has a log before its topic exists.
        return [self._step(kinds.RECOVERED, node.id, offset=leo)]

    def has_recovered(self, node: KafkaNode) -> bool:
        """Whether a node's current process has loaded its log."""
        return self._loaded.get(node.id) == node.incarnation

    # Links.

    def passed(self, step: Shown) -> list[Shown]:
        """What a message about the partition shows."""
        kind, source = step["step"], step["source"]
        kraft, alone = self._cluster.release.kraft, len(self._cluster.partitions) == 1
        if kind == "fetched":
            self._answers[source] = step["hw"]
            return self._settles(source) if kraft else []
        if kind == "fetching":
            # Which partitions it fetches is known when it passes.
            return self._settles(source) if alone and not kraft else []
        if kind == "fetch":
            settles = not alone and not kraft and "offset" in step
            return [*(self._settles(source) if settles else ()), *self._fetch(step)]
        return []

    def _settles(self, follower: int) -> list[Shown]:
        """A follower that fetches has truncated; in KRaft the first response makes it truncate."""
        if follower not in self._unsettled:
            return []
        self._settled[follower] = self._epoch
        return [self._step(kinds.SETTLED, follower, rounds=self._unsettled.pop(follower))]

    @property
    def _epoch(self) -> int:
        states = self._cluster.history.states_of(self._partition)
        return states[-1].leader_epoch if states else -1

    def is_settled(self, node: KafkaNode) -> bool:
        """Whether the broker runs, and leads or has truncated in the current leader epoch."""
        return node.alive and not node.paused and self._settled.get(node.id) == self._epoch

    def leader_hw(self, broker: int, offset: int) -> list[Shown]:
        """A leader told a consumer its high watermark."""
        if self._hw.get(broker, 0) == offset:
            return []
        self._hw[broker] = offset
        return [self._step(kinds.HW, broker, offset=offset, leader=True)]

    def _fetch(self, step: Shown) -> list[Shown]:
        follower, leader, offset = step["source"], step["target"], step.get("offset")
        if offset is None or self._replicated.get((leader, follower)) == offset:
            return []
        self._replicated[leader, follower] = offset
        return [self._step(kinds.REPLICATED, leader, follower=follower, offset=offset)]


class Observer:
    """Observes a cluster, and calls back with each step.

    Attributes:
        partitions: what is observed of each partition.
    """

    def __init__(self, cluster: KafkaCluster, on_step: Callable[[Shown], None]) -> None:
        self._cluster = cluster
        self._on_step = on_step
        self._begin_s = time.monotonic()
        self.queue: queue.SimpleQueue[Shown] = queue.SimpleQueue()
        self.steps: list[Shown] = []
        self.partitions = [PartitionObserver(cluster, partition) for partition in cluster.partitions]
        self._by_name = {
            partition.name: partition_observer
            for partition, partition_observer in zip(cluster.partitions, self.partitions, strict=True)
        }
        self._read: dict[int, int] = defaultdict(int)
        self._rest: dict[int, str] = defaultdict(str)
        self._giving_up: dict[int, tuple[int, float]] = {}
        self.in_session: set[int] = set()
        self._registered: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._without: dict[int, set[str]] = defaultdict(set)

    def _of(self, step: Shown) -> PartitionObserver:
        """The observer of a step's partition."""
        return self._by_name[step["partition"]] if "partition" in step else self.partitions[0]

    def has_stopped_serving(self, node: KafkaNode, place: int) -> bool:
        """Whether a broker said that it serves no replicas in a log directory any more."""
        return str(node.directory(place)) in self._without[node.id]

    def forget_failure(self, node: KafkaNode, place: int) -> None:
        """A log directory was repaired."""
        self._without[node.id].discard(str(node.directory(place)))

    @property
    def now_us(self) -> int:
        """Time since the beginning."""
        return int((time.monotonic() - self._begin_s) * 1_000_000)

    def add_step(self, step: str, **fields: Any) -> None:
        """Add a step from another source to the next poll; callable from any thread."""
        self.queue.put({"step": step, **fields})

    def on_message(self, what: str, source: int, target: int, fields: dict[str, Any]) -> None:
        """Take note of a message between brokers (`proxy.Told`)."""
        self.queue.put({"step": what, "source": source, "target": target, **fields})

    def poll(self) -> list[Shown]:
        """Return all steps since the last poll."""
        found: list[Shown] = []
        passed = self._told()
        decided = self._cluster.history.poll()
        for step in decided:
            if step["step"] == kinds.REGISTERED.name:
                self._registered[step["broker"]] = self._cluster.node(step["broker"]).incarnation
            if step["step"] in (kinds.REGISTERED.name, kinds.UNFENCED.name):
                self.in_session.add(step["broker"])
            elif step["step"] == kinds.SESSION_END.name:
                self.in_session.discard(step["broker"])
        found += decided
        for node in self._cluster.brokers.values():
            for partition in self.partitions:
                found += partition.look_at_disk(node)
            found += self._log_output(node)
            found += self._life(node)
        if self._cluster.is_quorum:
            found += [step for node in self._cluster.controllers.values() for step in self._controller_life(node)]
        for step in passed:
            found += self._passed(step)
        for partition in self.partitions:
            found += partition.watermarks()
        self._cluster.look_at_disks(self._cluster.time_s)
        now_us = self.now_us
        for step in found:
            step["t"] = now_us
            self.steps.append(step)
            self._on_step(step)
        return found

    def _told(self) -> list[Shown]:
        """The messages and steps from other sources since the last poll."""
        found = []
        for partition in self.partitions:
            partition.begin()
        while not self.queue.empty():
            found.append(self.queue.get())
            if found[-1]["step"] == "epoch-end":  # Before the follower reports its reaction to the response.
                self._of(found[-1]).epoch_end(found[-1]["source"])
        return found

    # Processes.

    def _life(self, node: KafkaNode) -> list[Shown]:
        incarnation, said_s = self._giving_up.get(node.id, (0, 0.0))
        if node.alive and incarnation == node.incarnation and time.monotonic() > said_s + _HANGS_S:
            assert node.process is not None
            processes.end(node.process)
        if node.process is None or node.process.poll() is None or self._ended.get(node.id) == node.incarnation:
            return []
        self._ended[node.id] = node.incarnation
        for partition in self.partitions:
            partition.ended(node.id)
        if not node.stopped:
            node.stopped = True
            registered = self._registered.get(node.id) == node.incarnation
            return [_step(kinds.HALT if registered else kinds.EXIT, node.id)]
        if node.process.returncode in (0, 143):
            self._cluster.flushed(node)
            return [_step(kinds.SHUTDOWN, node.id)]
        return []

    @staticmethod
    def _controller_life(node: KafkaNode) -> list[Shown]:
        """The end of a controller that nobody ended."""
        if node.alive or node.stopped:
            return []
        node.stopped = True
        return [{"step": kinds.CONTROLLER_END.name, "broker": 0, "node": node.id}]

    def _log_output(self, node: KafkaNode) -> list[Shown]:
        try:
            with node.output.open("rb") as file:
                file.seek(self._read[node.id])
                data = file.read()
        except FileNotFoundError:
            return []
        self._read[node.id] += len(data)
        *lines, self._rest[node.id] = (self._rest[node.id] + data.decode(errors="replace")).split("\n")
        if node.failed:
            self._without[node.id].update(found[1] for found in map(_DIRECTORY_FAILED.search, lines) if found)
        return [step for line in lines for step in self._line(node, line)]

    def _line(self, node: KafkaNode, line: str) -> list[Shown]:
        if _GIVES_UP.search(line):
            self._giving_up[node.id] = node.incarnation, time.monotonic()
        return [step for partition in self.partitions for step in partition.line(node, line)]

    def is_up(self, node: KafkaNode) -> bool:
        """Whether a node's current process has loaded its logs and registered."""
        return self.has_recovered(node) and self._registered.get(node.id) == node.incarnation

    def is_back_early(self, node: KafkaNode) -> bool:
        """Whether a node's new process starts while the session of its previous one is still open."""
        return (
            node.alive
            and not self.is_up(node)
            and node.id in self.in_session
            and self._registered.get(node.id, 0) == node.incarnation - 1
        )

    def has_recovered(self, node: KafkaNode) -> bool:
        """Whether a node's current process has loaded its logs."""
        return all(partition.has_recovered(node) for partition in self.partitions)

    # Links.

    def _passed(self, step: Shown) -> list[Shown]:
        kind = step["step"]
        if kind in ("epoch-end", "fetched", "fetching", "fetch"):
            return self._of(step).passed(step)
        if kind == "leader-hw":
            return self._of(step).leader_hw(step["broker"], step["offset"])
        return [step]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        told = path.stat()
    except FileNotFoundError:
        return 0, 0
    return told.st_size, told.st_mtime_ns


def _step(kind: StepKind, broker: int, **fields: Any) -> Shown:
    return {"step": kind.name, "broker": broker, **fields}


def _identity(batch: Stored) -> tuple[int, int, int, int]:
    return batch.base_offset, batch.last_offset, batch.leader_epoch, batch.first_id
