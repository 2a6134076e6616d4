"""``python -m tests.verification.confirm.empty_coordinator``: a coordinator that loads nothing, on brokers.

This performs scenario `empty-coordinator` with Kafka's own consumers, whose groups `confirm` does not have. A group's
partition of __consumer_offsets goes to a broker that is busy with another one, and back, and the broker has a third one
to load after that. Instead of kills, the controller elects preferred leaders. Both other partitions have thousands of
commits of a batch each, and offsets.load.buffer.size is 1, so that each batch is read by itself, and a load takes some
seconds.
The consumer has known its coordinator from before: it has asked it for another partition. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.partitions import KafkaPartition
from tests.verification.confirm.beside_broker import compiled
from tests.verification.confirm.java_client import JavaClient
from tests.verification.confirm.program import BrokerRun, NotBroughtError, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.confirm.cluster import KafkaNode
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease

SCENARIO: Final = "empty-coordinator"
GROUP: Final = "application"
BUSY, OTHER, THIRD = 3, 2, 1
"""The broker that loads too late, the one that leads before and after, and the third broker."""
PARTITIONS: Final = 3
RECORDS: Final = 3_000
RECORDS_LOADED_FAST: Final = 20_000
"""Commits in each of the other partitions, and the same from 4.0 on, whose coordinators load faster."""
PREFERRED: Final = 0
WHOLE_S: Final = 90.0
_SETTLE_S: Final = 1.0
_NEW_COORDINATOR: Final = (4, 0)
"""From this release on, a partition is unloaded while others are loaded."""
VARIANTS: Final = {"scenario": "as in the scenario"}
ORDERS: Final = KafkaPartition("orders-0", 0, "orders", 0, (THIRD, OTHER, BUSY))


def partition_of(group: str) -> int:
    """The number of a group's partition. Kafka: GroupMetadataManager#partitionFor."""
    found = 0
    for letter in group:
        found = (31 * found + ord(letter)) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF if found < 1 << 31 else (1 << 32) - found) % PARTITIONS


OF_GROUP, FIRST_LOADED, LAST_LOADED = (
    KafkaPartition(f"__consumer_offsets-{number}", 1 + number, "__consumer_offsets", number)
    for number in ((partition_of(GROUP) + place) % PARTITIONS for place in range(PARTITIONS))
)
"""The group's partition, the one that the broker loads before it, and the one that it loads after it."""


class OffsetsCluster(KafkaCluster):
    """A cluster with three replicated partitions of __consumer_offsets, which take long to load."""

    def _broker_properties(self, node: KafkaNode) -> dict[str, object]:
        return {
            **super()._broker_properties(node),
            "offsets.topic.num.partitions": PARTITIONS,
            "offsets.topic.replication.factor": 3,
            "offsets.load.buffer.size": 1,
        }


class Run(BrokerRun):
    """One run."""

    CLUSTER = OffsetsCluster

    def __init__(self, release: InstalledRelease, processes: JavaProcesses, _: str) -> None:
        folder = processes.folder / "classes"
        processes.work.make(folder)
        self._class_path = compiled(map(str, release.jars), folder, "Groups")
        of_offsets = sorted((OF_GROUP, FIRST_LOADED, LAST_LOADED), key=lambda partition: partition.number)
        super().__init__(release, processes, SCENARIO, 5, WHOLE_S, None, (ORDERS, *of_offsets))
        del self.observer.partitions[1:]  # Records of __consumer_offsets are not a scenario's.
        self._client: JavaClient | None = None
        self._is_new = release.number >= _NEW_COORDINATOR
        self._records = RECORDS_LOADED_FAST if self._is_new else RECORDS
        self.events: list[tuple[float, str]] = []

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        super().close()

    def so_far(self) -> dict[str, Any]:
        said = self._client.said if self._client is not None else []
        return {"events": self.events, "said": said[-5:], "seconds": self.seconds}

    def act(self) -> dict[str, Any]:
        self.boot()
        cluster = self.cluster
        controller = cluster.history.controller
        self.admin.create_topic([list(ORDERS.replicas)] * 2, controller, ORDERS.topic)
        leaders = {OF_GROUP: BUSY, FIRST_LOADED: OTHER, LAST_LOADED: OTHER}
        assigned = sorted(leaders, key=lambda partition: partition.number)
        self.admin.create_topic([_led_by(leaders[one]) for one in assigned], controller, OF_GROUP.topic)
        for partition, leader in leaders.items():
            self._wait_for_leader(partition, leader)
        self.pass_time(_SETTLE_S)
        servers = ",".join(f"127.0.0.1:{node.client_port}" for node in cluster.brokers.values())
        client = self._client = JavaClient(self._class_path, "Groups", servers, cluster.folder / "groups.log")
        self._order("know", answer="known")
        self._event("the consumer knows broker 3 as its coordinator")
        self._order("produce", "m1", answer="produced m1")
        self._order("commit", 1, answer="committed 1")
        for partition in (FIRST_LOADED, LAST_LOADED):
            self._order("fill", partition.number, self._records, answer=f"filled {partition.number}")
        self._move(OF_GROUP, OTHER)
        self._order("produce", "m2", answer="produced m2")
        self.pass_time(_SETTLE_S)
        before = self._loads(OF_GROUP)
        self._event("broker 2 leads the group's partition, and m2 is written")
        for partition, leader in ((FIRST_LOADED, BUSY), (OF_GROUP, BUSY), (LAST_LOADED, BUSY), (OF_GROUP, OTHER)):
            self._move(partition, leader)
        self._event(f"broker 3 is busy with {FIRST_LOADED.name}, and broker 2 leads the group's partition again")
        if self._loads(OF_GROUP) > before and not self._is_new:
            raise NotBroughtError("broker 3 had loaded the group's partition before it led no more")
        self.wait("broker 3 has loaded or unloaded", lambda: self._loads(OF_GROUP) > before)
        self._event(f"broker 3: {self._last_load(OF_GROUP)}")
        client.order("read")
        self.wait("the consumer has a position", lambda: client.answer("position") != "")
        position = next(line for line in client.said if line.startswith("position"))
        is_late = self._loads(LAST_LOADED) > 0
        self._event(f"the consumer has {position}{', after the last load' if is_late else ''}")
        self._order("produce", "m3", answer="produced m3")
        self.wait("the consumer has read m3", lambda: client.answer("read", "m3") != "")
        read = [line.split()[1] for line in client.said if line.startswith("read")]
        return {"read": read, "skipped": "m2" not in read, "events": self.events, "seconds": self.seconds}

    def _order(self, *words: object, answer: str) -> None:
        assert self._client is not None
        self._client.order(*words)
        self.wait(answer, lambda: any(line.startswith(answer) for line in self._client.said))  # type: ignore[union-attr]

    def _move(self, partition: KafkaPartition, leader: int) -> None:
        """Make a broker the preferred leader of a partition, and let it be elected."""
        self.admin.reassign(_led_by(leader), partition)
        self.wait("the new order of replicas", lambda: self._replicas(partition) == tuple(_led_by(leader)))
        self.admin.elect(PREFERRED, partition)
        self._wait_for_leader(partition, leader)

    def _replicas(self, partition: KafkaPartition) -> tuple[int, ...]:
        return self.cluster.history.states_of(partition)[-1].replicas

    def _wait_for_leader(self, partition: KafkaPartition, leader: int) -> None:
        self.wait(f"broker {leader} leads {partition.name}", lambda: self.cluster.leader_of(partition) == leader)

    def _finished(self, partition: KafkaPartition) -> list[str]:
        """What broker 3 says of the loads of a partition that are over, and from 4.0 on of the unloads."""
        lines = self.cluster.node(BUSY).output.read_text(errors="replace").splitlines()
        words = ("Finished loading", "Failed to load", "Finished unloading metadata")
        return [line for line in lines if f"{partition.name} " in f"{line} " and any(word in line for word in words)]

    def _loads(self, partition: KafkaPartition) -> int:
        return len(self._finished(partition))

    def _last_load(self, partition: KafkaPartition) -> str:
        return self._finished(partition)[-1].partition(" - ")[2][:150]

    def _event(self, what: str) -> None:
        self.events.append((self.seconds, what))


def _led_by(leader: int) -> Sequence[int]:
    return [leader, *(broker for broker in (OTHER, BUSY, THIRD) if broker != leader)]


def _text(one: dict[str, Any]) -> str:
    events = "".join(f"    {at_s:6.1f} s  {what}\n" for at_s, what in one["events"])
    head = f"{one['release']:9} {one['seconds']:6.1f} s  "
    if "failed" in one:
        return f"{head}not brought to the situation: {one['failed']}; {one['said']}\n{events}"
    said = "SKIPPED m2" if one["skipped"] else "skipped nothing"
    return f"{head}the consumer {said}: it read {' '.join(one['read'])}\n{events}"


if __name__ == "__main__":
    sys.exit(Program("empty_coordinator", __doc__, VARIANTS, Run, _text, 5, "skipped").main())
