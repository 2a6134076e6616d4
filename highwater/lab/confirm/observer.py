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
from highwater.lab.confirm.cluster import TOPIC
from sim.history import steps as kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.confirm.cluster import KafkaCluster, KafkaNode
    from highwater.lab.confirm.files import Stored
    from sim.history.steps import Shown, StepKind

SEEN: Final = frozenset(
    kind.name
    for kind in (
        kinds.REGISTERED, kinds.UNFENCED, kinds.SESSION_END, kinds.CONTROLLER, kinds.ELECTED, kinds.ISR, kinds.ELR,
        kinds.APPEND, kinds.TRUNCATE, kinds.RECOVERED, kinds.LEAD, kinds.FOLLOW, kinds.SETTLED, kinds.REPLICATED,
        kinds.HW, kinds.DELETED, kinds.ACK, kinds.READ, kinds.END_OFFSET, kinds.START, *kinds.ENDS, kinds.PAUSE,
        kinds.RESUME, kinds.CUT, kinds.HEAL, kinds.SLOW, kinds.SEEK, kinds.OUT_OF_RANGE, kinds.RESET,
    )
)  # fmt: skip
"""Kinds of steps that are observable on real brokers."""

_NAME: Final = rf"{TOPIC}(?:-|,|, )0"
_LEAD: Final = re.compile(rf"{_NAME}.* starts at leader epoch (\d+) from offset (\d+)", re.IGNORECASE)
_LEAD_OLD: Final = re.compile(rf"completed LeaderAndIsr request .*become-leader transition for partition .*{_NAME}")
_FOLLOW: Final = re.compile(rf"Follower {_NAME}.* starts at leader epoch (\d+) from offset (\d+)")
_FOLLOW_OLD: Final = re.compile(rf"Added fetcher .*{_NAME}.*?(?:initOffset |offset=)\d+")
_FOLLOW_ON: Final = re.compile(rf"skipped the become-follower state change after marking .*{_NAME}", re.IGNORECASE)
"""Pattern: a new leader epoch of the same leader, under which fetching continues."""
_TRUNCATE: Final = re.compile(rf"{_NAME}.*Truncating to offset (\d+)|Truncating log {_NAME} to offset (\d+)")
_TRUNCATE_NOTHING: Final = re.compile(rf"{_NAME}.*Truncating to \d+ has no effect as the largest offset .*is (-?\d+)")
_LOADED: Final = re.compile(
    rf"Completed load of .*(?:{_NAME}|topic={TOPIC}, partition=0)?.*log[- ]?end[- ]?offset[ =](\d+)", re.IGNORECASE
)
_ALL_LOADED: Final = re.compile(r"Logs loading complete|Loaded 0 logs in")


_FIRST_ROUNDS: Final = (2,)
"""Up to this release a follower truncates once; in later ones it may have to ask again (KIP-279)."""
_GIVES_UP: Final = re.compile(r"Exiting because log truncation is not allowed")
"""Log output of a broker that exits by itself; some releases then deadlock while they exit (KAFKA-3924)."""
_HANGS_S: Final = 3.0
_DIRECTORY_FAILED: Final = re.compile(r"Stopped serving replicas in dir (\S+)")


class Observer:
    """Observes a cluster, and calls back with each step."""

    def __init__(self, cluster: KafkaCluster, on_step: Callable[[Shown], None]) -> None:
        self._cluster = cluster
        self._on_step = on_step
        self._begin_s = time.monotonic()
        self.queue: queue.SimpleQueue[Shown] = queue.SimpleQueue()
        self.steps: list[Shown] = []
        self._read: dict[int, int] = defaultdict(int)
        self._rest: dict[int, str] = defaultdict(str)
        self.logs: dict[int, list[Stored]] = defaultdict(list)
        self._stamps: dict[int, tuple[Any, ...]] = {}
        self._held: set[int] = set()
        self._loaded: dict[int, int] = {}
        self._giving_up: dict[int, tuple[int, float]] = {}
        self.in_session: set[int] = set()
        self._registered: dict[int, int] = {}
        self._unsettled: dict[int, int] = {}
        self._answered: dict[int, int] = {}
        self._leo_before = 0
        self._settled: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        self._hw: dict[int, int] = {}
        self._replicated: dict[tuple[int, int], int] = {}
        self._ended: dict[int, int] = {}
        self._without: dict[int, set[str]] = defaultdict(set)

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
        passed = []
        self._answered.clear()
        while not self.queue.empty():
            passed.append(self.queue.get())
            if passed[-1]["step"] == "epoch-end":  # Before the follower reports its reaction to the response.
                follower = passed[-1]["source"]
                asked = self._unsettled if follower in self._unsettled else self._answered
                asked[follower] = asked.get(follower, 0) + 1
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
            self._leo_before = self.leo(node.id)
            found += self._disk(node)
            found += self._log_output(node)
            found += self._life(node)
        for step in passed:
            found += self._passed(step)
        found += self._watermarks()
        self._cluster.look_at_disks(self._cluster.time_s)
        now_us = self.now_us
        for step in found:
            step["t"] = now_us
            self.steps.append(step)
            self._on_step(step)
        return found

    # Disks.

    def leo(self, broker: int) -> int:
        """The log end offset on a broker's disk."""
        log = self.logs[broker]
        return log[-1].last_offset + 1 if log else 0

    def _disk(self, node: KafkaNode) -> list[Shown]:
        if node.alive and node.id in self._held and not node.log_folder.is_dir():
            self._held.discard(node.id)
            self._stamps[node.id] = ()
            self.logs[node.id] = []
            return [_step(kinds.DELETED, node.id)]
        if node.log_folder.is_dir():
            self._held.add(node.id)
        stamp = tuple((path.name, *_stamp(path)) for path in files.segments(node.log_folder))
        if stamp == self._stamps.get(node.id, ()):
            return []
        self._stamps[node.id] = stamp
        before, after = self.logs[node.id], files.read_log(node.log_folder)
        self.logs[node.id] = after
        if not node.alive:
            return []
        same = 0
        while same < min(len(before), len(after)) and _identity(before[same]) == _identity(after[same]):
            same += 1
        return [
            _step(kinds.APPEND, node.id, offset=base, last=last, leader_epoch=epoch, record=record)
            for base, last, epoch, record in map(_identity, after[same:])
        ]

    def _watermarks(self) -> list[Shown]:
        found: list[Shown] = []
        for broker, answered in self._answers.items():
            hw = min(answered, self.leo(broker))
            if hw != self._hw.get(broker, 0):
                self._hw[broker] = hw
                found.append(_step(kinds.HW, broker, offset=hw, leader=False))
        return found

    # JavaProcesses.

    def _life(self, node: KafkaNode) -> list[Shown]:
        incarnation, said_s = self._giving_up.get(node.id, (0, 0.0))
        if node.alive and incarnation == node.incarnation and time.monotonic() > said_s + _HANGS_S:
            assert node.process is not None
            processes.end(node.process)
        if node.process is None or node.process.poll() is None or self._ended.get(node.id) == node.incarnation:
            return []
        self._ended[node.id] = node.incarnation
        self._answers.pop(node.id, None)
        self._hw.pop(node.id, None)
        self._unsettled.pop(node.id, None)
        self._settled.pop(node.id, None)
        if not node.stopped:
            node.stopped = True
            registered = self._registered.get(node.id) == node.incarnation
            return [_step(kinds.HALT if registered else kinds.EXIT, node.id)]
        if node.process.returncode in (0, 143):
            self._cluster.flushed(node)
            return [_step(kinds.SHUTDOWN, node.id)]
        return []

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
        broker, kraft = node.id, self._cluster.release.kraft
        if _GIVES_UP.search(line):
            self._giving_up[broker] = node.incarnation, time.monotonic()
        if TOPIC in line:
            if found := (_FOLLOW if kraft else _FOLLOW_OLD).search(line):
                self._unsettled[broker] = self._answered.pop(broker, 0)
                # Older releases log where fetching begins, not where the log ends.
                epoch, offset = (int(found[1]), int(found[2])) if kraft else (self._epoch, self.leo(broker))
                return [_step(kinds.FOLLOW, broker, offset=offset, leader_epoch=epoch)]
            if _FOLLOW_ON.search(line):
                if broker not in self._unsettled:
                    self._settled[broker] = self._epoch
                return [_step(kinds.FOLLOW, broker, offset=self.leo(broker), leader_epoch=self._epoch)]
            if (found := _LEAD.search(line)) and "Follower" not in line:
                return self._leads(broker, int(found[2]), int(found[1]))
            if _LEAD_OLD.search(line) and self._cluster.release.number < (1,):
                return self._leads(broker, self.leo(broker), self._cluster.history.states[-1].leader_epoch)
            if found := _TRUNCATE_NOTHING.search(line):
                return self._truncates(broker, int(found[1]) + 1)
            if found := _TRUNCATE.search(line):
                # It logs this beforehand: the disk may by now show the result.
                return self._truncates(broker, min(int(found[1] or found[2]), max(self._leo_before, self.leo(broker))))
            if "Completed load of" in line and f"{TOPIC}-0" in line and (found := _LOADED.search(line)):
                return self._recovered(node, int(found[1]))
        elif _ALL_LOADED.search(line):
            return self._recovered(node, 0)
        return []

    def _truncates(self, broker: int, offset: int) -> list[Shown]:
        step = _step(kinds.TRUNCATE, broker, offset=offset, leader_epoch=self._epoch)
        over = self._cluster.release.number < _FIRST_ROUNDS
        return [step, *(self._settles(broker) if over else ())]

    def _leads(self, broker: int, offset: int, epoch: int) -> list[Shown]:
        self._unsettled.pop(broker, None)
        self._answers.pop(broker, None)
        self._settled[broker] = self._epoch
        return [_step(kinds.LEAD, broker, leader_epoch=epoch, offset=offset)]

    def _recovered(self, node: KafkaNode, leo: int) -> list[Shown]:
        if self.has_recovered(node):
            return []
        self._loaded[node.id] = node.incarnation
        return [_step(kinds.RECOVERED, node.id, offset=leo)]

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
        return self._loaded.get(node.id) == node.incarnation

    # Links.

    def _passed(self, step: Shown) -> list[Shown]:
        kind = step["step"]
        if kind == "epoch-end":
            return []
        if kind == "fetched":
            self._answers[step["source"]] = step["hw"]
            return self._settles(step["source"]) if self._cluster.release.kraft else []
        if kind == "fetching":
            return [] if self._cluster.release.kraft else self._settles(step["source"])
        if kind == "fetch":
            return self._fetch(step)
        if kind == "leader-hw":
            return self._leader_hw(step["broker"], step["offset"])
        return [step]

    def _settles(self, follower: int) -> list[Shown]:
        """A follower that fetches has truncated; in KRaft the first response makes it truncate."""
        if follower not in self._unsettled:
            return []
        self._settled[follower] = self._epoch
        return [_step(kinds.SETTLED, follower, rounds=self._unsettled.pop(follower))]

    @property
    def _epoch(self) -> int:
        states = self._cluster.history.states
        return states[-1].leader_epoch if states else -1

    def is_settled(self, node: KafkaNode) -> bool:
        """Whether the broker runs, and leads or has truncated in the current leader epoch."""
        return node.alive and not node.paused and self._settled.get(node.id) == self._epoch

    def _leader_hw(self, broker: int, offset: int) -> list[Shown]:
        if self._hw.get(broker, 0) == offset:
            return []
        self._hw[broker] = offset
        return [_step(kinds.HW, broker, offset=offset, leader=True)]

    def _fetch(self, step: Shown) -> list[Shown]:
        follower, leader, offset = step["source"], step["target"], step.get("offset")
        if offset is None or self._replicated.get((leader, follower)) == offset:
            return []
        self._replicated[leader, follower] = offset
        return [_step(kinds.REPLICATED, leader, follower=follower, offset=offset)]


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
