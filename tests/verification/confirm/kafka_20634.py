"""``python -m tests.verification.confirm.kafka_20634``: a coordinator acknowledges a truncated commit, on brokers.

This performs scenario `kafka-20634` with Kafka's own consumers, whose groups `confirm` does not have. Broker 3 leads
__consumer_offsets. What the scenario calls a coordinator that is unloaded late is a coordinator whose only thread
assigns partitions to a large group: an assignor of the program's (`group.consumer.assignors`), which takes 12 s, stands
for that. To 3.9 there are no such assignors, and nothing takes its place. Links are cut by proxies, and heartbeats of
broker 3 are dropped until its session has ended. Nothing in Kafka is changed.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

from highwater.lab.confirm import files
from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.partitions import KafkaPartition
from highwater.lab.confirm.proxy import HEARTBEAT
from tests.verification.confirm.beside_broker import compiled
from tests.verification.confirm.java_client import JavaClient
from tests.verification.confirm.program import BrokerRun, Program

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.lab.confirm.cluster import KafkaNode
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease

SCENARIO: Final = "kafka-20634"
OLD, NEW, THIRD = 3, 1, 2
"""The leader of __consumer_offsets before and after, and the third broker."""
ORDERS: Final = KafkaPartition("orders-0", 0, "orders", 0, (NEW, THIRD, OLD))
OFFSETS: Final = KafkaPartition("__consumer_offsets-0", 1, "__consumer_offsets", 0, (OLD, NEW, THIRD))
WHOLE_S: Final = 60.0
_SETTLE_S: Final = 1.0
_NEW_COORDINATOR: Final = (4, 0)
_FRAME: Final = struct.Struct(">q")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23
VARIANTS: Final = {"scenario": "as in the scenario"}


class OffsetsCluster(KafkaCluster):
    """A cluster with one replicated partition of __consumer_offsets, and the slow assignor."""

    def _broker_properties(self, node: KafkaNode) -> dict[str, object]:
        slow = {"group.consumer.assignors": "SlowAssignor", "group.coordinator.threads": 1}
        return {
            **super()._broker_properties(node),
            "offsets.topic.replication.factor": 3,
            "offsets.commit.timeout.ms": 60_000,
            **(slow if self.release.number >= _NEW_COORDINATOR else {}),
        }


def log_end(folder: Path) -> int:
    """The log end offset of any partition, whose records need not be of a scenario."""
    data = files.segments(folder)[-1].read_bytes()
    starts = [start for start, _, _ in files.frames(data)]
    if not starts:
        return int(files.segments(folder)[-1].stem)
    start = starts[-1]
    base, delta = _FRAME.unpack_from(data, start)[0], _LAST_OFFSET_DELTA.unpack_from(data, start + _DELTA_AT)[0]
    return int(base + delta + 1)


class Run(BrokerRun):
    """One run."""

    CLUSTER = OffsetsCluster

    def __init__(self, release: InstalledRelease, processes: JavaProcesses, _: str) -> None:
        self._slow = release.number >= _NEW_COORDINATOR
        folder = processes.folder / "classes"
        processes.work.make(folder)
        programs = ("Commits", "SlowAssignor") if self._slow else ("Commits",)
        self._class_path = compiled(map(str, release.jars), folder, *programs)
        jar = processes.folder / "classes.jar"
        with ZipFile(jar, "w") as file:
            for path in folder.glob("*.class"):
                file.write(path, path.name)
        super().__init__(
            replace(release, jars=(*release.jars, jar)), processes, SCENARIO, 5, WHOLE_S, None, (ORDERS, OFFSETS)
        )
        del self.observer.partitions[1:]  # Records of __consumer_offsets are not a scenario's.
        self._client: JavaClient | None = None
        self.events: list[tuple[float, str]] = []

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        super().close()

    def so_far(self) -> dict[str, Any]:
        said = self._client.said if self._client is not None else []
        return {"events": self.events, "said": said, "ends": self._ends(), "seconds": self.seconds}

    def act(self) -> dict[str, Any]:
        self.boot()
        cluster = self.cluster
        controller = cluster.history.controller
        for partition in cluster.partitions:
            self.admin.create_topic([list(partition.replicas)], controller, partition.topic)
        self.wait("broker 3 leads", lambda: cluster.leader_of(OFFSETS) == OLD)
        self.pass_time(_SETTLE_S)
        servers = ",".join(f"127.0.0.1:{cluster.node(broker).client_port}" for broker in (OLD, NEW, THIRD))
        client = self._client = JavaClient(self._class_path, "Commits", servers, cluster.folder / "commits.log")
        client.order("commit", "application", 1)
        self.wait("offset 1 is committed", lambda: client.answer("committed", "application", 1) != "")
        self.wait("all have it", lambda: len(set(self._ends())) == 1)
        before = self._ends()[0]
        self._event("offset 1 is committed")
        others = [link for other in (NEW, THIRD) for link in ((OLD, other), (other, OLD))]
        for link in others:
            cluster.proxies.cut(*link)
        client.order("commit", "application", 2)
        self.wait("broker 3 has appended offset 2", lambda: self._end(OLD) > before)
        lost_at = self._end(OLD)
        if self._slow:
            client.order("join", "large")
            self.wait("the coordinator's thread is busy", lambda: "SlowAssignor begins" in self._output())
        self._event("broker 3 alone has offset 2, and its coordinator is busy")
        cluster.proxies.silence(OLD, [HEARTBEAT])
        self.wait("broker 1 leads", lambda: cluster.leader_of(OFFSETS) == NEW)
        cluster.proxies.silence(OLD, ())
        for link in others:
            cluster.proxies.heal(*link)
        self._event("broker 1 leads, and the links are healed")
        self.wait("broker 3 has truncated offset 2", lambda: self._end(OLD) == before)
        client.order("commit", "other", 0)
        self.wait("another application has committed", lambda: client.answer("committed", "other", 0) != "")
        self.wait("broker 3 has copied that", lambda: self._end(OLD) >= lost_at)
        self._event(
            f"broker 3 has another commit in its place{', and its coordinator is busy' if self._is_busy else ''}"
        )
        self.wait("the application has an answer", lambda: self._answer != "")
        self._event(f"the application is told: {self._answer}")
        if self._slow:
            self.wait("the assignment is done", lambda: not self._is_busy)
        self.pass_time(_SETTLE_S)
        client.order("offset", "application")
        self.wait("the next process asks", lambda: client.answer("offset", "application") != "")
        offset = client.answer("offset", "application").split()[0]
        acknowledged = self._answer.startswith("committed")
        return {
            "answer": self._answer,
            "offset": offset,
            "lost": acknowledged and offset == "1",
            "events": self.events,
            "seconds": self.seconds,
        }

    @property
    def _answer(self) -> str:
        assert self._client is not None
        found = [(word, self._client.answer(word, "application", 2)) for word in ("committed", "refused")]
        return next((f"{word} 2 after {rest} s" for word, rest in found if rest), "")

    def _output(self) -> str:
        return self.cluster.node(OLD).output.read_text(errors="replace")

    @property
    def _is_busy(self) -> bool:
        output = self._output()
        return output.count("SlowAssignor begins") > output.count("SlowAssignor ends")

    def _end(self, broker: int) -> int:
        folder = self.cluster.node(broker).folder_of(OFFSETS)
        return log_end(folder) if files.segments(folder) else -1

    def _ends(self) -> list[int]:
        return [self._end(broker) for broker in self.cluster.brokers]

    def _event(self, what: str) -> None:
        self.events.append((self.seconds, what))


def _text(one: dict[str, Any]) -> str:
    head = f"{one['release']:9} {one.get('seconds', 0):6.1f} s  "
    if "failed" in one:
        return (
            f"{head}not brought to the situation: {one['failed']}\n  {one['events']}\n  {one['said']} {one['ends']}\n"
        )
    events = "".join(f"    {at_s:6.1f} s  {what}\n" for at_s, what in one["events"])
    said = "LOST" if one["lost"] else "not lost"
    return f"{head}{one['answer']}; the next process begins at offset {one['offset']}: the commit is {said}\n{events}"


if __name__ == "__main__":
    sys.exit(Program("kafka_20634", __doc__, VARIANTS, Run, _text, 5, "lost").main())
