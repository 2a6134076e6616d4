"""``python -m tests.verification.confirm.recreated_topic``: a late fetch response about a deleted topic, on brokers.

`confirm` cannot delete topics, so this performs scenario `recreated-topic`. A proxy holds the response; brokers,
clients and files are those of `confirm`. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files
from highwater.lab.confirm.partitions import FIRST, TOPIC
from highwater.lab.confirm.producer import Send
from sim.config import integer
from sim.history.steps import APPEND
from tests.verification.confirm.program import BrokerRun, NotBroughtError, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from highwater.lab.confirm.cluster import KafkaNode
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease

SCENARIO: Final = "recreated-topic"
LEADER: Final = 3
FOLLOWER: Final = 2
IDLE: Final = "idle"
"""Another topic, for which the follower's fetcher thread goes on while the recreated one is gone."""
M1: Final = 0
"""The record of the deleted topic. Its follower gets it in the new topic only."""
PREFERRED: Final = 0
WHOLE_S: Final = 40.0
SETTLE_S: Final = 1.0
_ADMIN_S: Final = 15.0
VARIANTS: Final = {
    "scenario": "in both topics broker 2 leads first, in leader epoch 0, and then broker 3, in leader epoch 1",
    "same-leader": "broker 3 leads both topics from the start, so the log of broker 2 has no leader epoch",
    "other-epoch": "broker 3 leads the deleted topic in leader epoch 1, and the new one in leader epoch 3",
    "idle-thread": "the fetcher thread fetches no other partition",
    "timeout": "the topic is created again after replica.socket.timeout.ms",
}
"""Variant -> what happens in it. The first is the scenario; the others show what prevents the append."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A record as it stands in a log: offset, leader epoch and batch name."""

    offset: int
    leader_epoch: int
    name: str

    def __str__(self) -> str:
        return f"{self.name}@{self.leader_epoch}"


class Run(BrokerRun):
    """One run.

    Attributes:
        logs: after what -> broker -> its log.
        events: what happened, with the seconds since the begin.
        warnings: broker -> what it had logged about the topic as a warning or an error until broker 3 was killed.
    """

    def __init__(self, release: InstalledRelease, processes: JavaProcesses, variant: str) -> None:
        super().__init__(release, processes, SCENARIO, 1, WHOLE_S, {"auto.leader.rebalance.enable": False})
        self._variant = variant
        self.later_reader = self.new_clients(release)
        self.logs: dict[str, dict[int, list[Logged]]] = {}
        self.events: list[tuple[float, str]] = []
        self.warnings: dict[int, list[str]] = {}

    def close(self) -> None:
        self.later_reader.close()
        super().close()

    def so_far(self) -> dict[str, Any]:
        return {"events": self.events}

    def act(self) -> dict[str, Any]:
        self.boot()
        if self._variant != "idle-thread":
            self._create(IDLE, [[3, 2, 1], [3, 2, 1]])
        self._topic_led_by_three(moves=1)
        proxies = self.cluster.proxies
        proxies.stall(FOLLOWER, stalled=True)
        m1 = Send("m1", M1, 1, 1)
        self.clients.produce(m1)
        self.wait("m1 is acknowledged", lambda: m1.offset is not None)
        self.wait("broker 1 has m1", lambda: self._names(1) == ["m1"])
        self.pass_time(SETTLE_S)
        if self._names(FOLLOWER):
            raise NotBroughtError("the follower got m1 before its response was held")
        self._note_logs("the response is held")
        self._delete()
        if self._variant == "timeout":
            self.pass_time(integer(self.config, "replica.socket.timeout.ms") / 1000 + SETTLE_S)
        self._topic_led_by_three(moves=3 if self._variant == "other-epoch" else 1)
        m2 = Send("m2", 1, 1, -1)
        self.clients.produce(m2)
        self.wait("the leader has m2", lambda: self._names(LEADER) == ["m2"])
        self.pass_time(SETTLE_S)
        self._note_logs("m2 is produced to the new topic")
        self.clients.begin()
        proxies.stall(FOLLOWER, stalled=False)
        self._event("the response is released")
        self.wait("m2 is acknowledged", lambda: m2.offset is not None)
        self.wait("the consumer has read", lambda: bool(self.clients.shown))
        self.pass_time(SETTLE_S)
        self._note_logs("m2 is acknowledged")
        self.warnings = {broker: warnings_of(node) for broker, node in self.cluster.brokers.items()}
        self._fail_over()
        m3 = Send("m3", 2, 1, -1)
        self.clients.produce(m3)
        self.wait("m3 is acknowledged", lambda: m3.offset is not None)
        self.later_reader.begin()
        self.wait("a new consumer has read", lambda: len(self.later_reader.shown) > 1)
        self.cluster.start(self.cluster.node(LEADER))
        self.wait("all replicas are in sync", lambda: self.cluster.history.states[-1].isr == (1, 2, 3))
        self.pass_time(SETTLE_S)
        self._note_logs("all brokers are back")
        return self._outcome([m1, m2, m3])

    # Steps.

    def _topic_led_by_three(self, moves: int) -> None:
        """Create the topic, let broker 3 become its leader by so many changes of leader, and wait for the followers."""
        before = len(self.cluster.history.states)
        first = [3, 2, 1] if self._variant == "same-leader" else [2, 3, 1]
        self._create(TOPIC, [first])
        self.wait("the topic is created", lambda: len(self.cluster.history.states) > before)
        self._led_by(first[0], 0)
        if self._variant == "same-leader":
            return
        for move in range(moves):
            replicas = [3, 2, 1] if move % 2 == 0 else [2, 3, 1]
            self.admin.reassign(replicas)
            self.wait("the replicas' order", lambda: self.cluster.history.states[-1].replicas == tuple(replicas))  # noqa: B023
            self.admin.elect(PREFERRED)
            self._led_by(replicas[0], move + 1)

    def _led_by(self, leader: int, epoch: int) -> None:
        """Wait until a broker leads, and all others follow it and have fetched."""

        def is_so() -> bool:
            state = self.cluster.history.states[-1]
            known = all(self._is_told(node, leader, state.leader_epoch) for node in self.cluster.brokers.values())
            return (state.leader, state.leader_epoch) == (leader, epoch) and known

        self.wait(f"broker {leader} leads in leader epoch {epoch}", is_so)
        self.pass_time(SETTLE_S)

    def _is_told(self, node: KafkaNode, leader: int, epoch: int) -> bool:
        """Whether a broker has logged, of the present topic, that it leads or follows in this epoch."""
        text = node.output.read_text(errors="replace").lower()
        present = text[text.rfind(f"created log for partition {TOPIC}-0") :]
        role = "leader" if node.id == leader else "follower"
        return f"{role} {TOPIC}-0" in present and f"starts at leader epoch {epoch} from offset" in present

    def _create(self, name: str, assignments: Sequence[Sequence[int]]) -> None:
        from kafka.protocol.admin import CreateTopicsRequest

        topic = CreateTopicsRequest.CreatableTopic
        placed = [
            topic.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignments)
        ]
        request = CreateTopicsRequest(
            version=2,
            topics=[topic(name=name, num_partitions=-1, replication_factor=-1, assignments=placed, configs=[])],
            timeout_ms=10_000,
            validate_only=False,
        )
        self._until_accepted(f"topic {name} is created", lambda: self.admin.ask(request).topics[0].error_code)

    def _delete(self) -> None:
        from kafka.protocol.admin import DeleteTopicsRequest

        request = DeleteTopicsRequest(version=1, topic_names=[TOPIC], timeout_ms=10_000)
        self._until_accepted("the topic is deleted", lambda: self.admin.ask(request).responses[0].error_code)
        self.wait(
            "all replicas are deleted",
            lambda: not any(node.folder_of(FIRST).is_dir() for node in self.cluster.brokers.values()),
        )

    def _fail_over(self) -> None:
        self.cluster.kill([LEADER])
        self._event(f"broker {LEADER} is killed")
        self.wait("another broker leads", lambda: self.cluster.history.states[-1].leader not in (-1, LEADER))
        self._event(f"broker {self.cluster.history.states[-1].leader} is elected")

    # Waiting.

    def _until_accepted(self, what: str, ask: Callable[[], int]) -> None:
        end_s = time.monotonic() + _ADMIN_S
        while error := ask():
            if time.monotonic() > end_s:
                raise NotBroughtError(f"not {what}: error {error}")
            self.pass_time(0.2)
        self._event(what)

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        super().wait(what, is_so)
        self._event(what)

    def _event(self, what: str) -> None:
        self.events.append((self.seconds, what))

    # Outcome.

    def _log(self, broker: int) -> list[Logged]:
        return [
            Logged(offset, batch.leader_epoch, batch.name)
            for batch in files.read_log(self.cluster.node(broker).folder_of(FIRST))
            for offset in range(batch.base_offset, batch.last_offset + 1)
        ]

    def _names(self, broker: int) -> list[str]:
        return [record.name for record in self._log(broker)]

    def _note_logs(self, when: str) -> None:
        self._event(when)
        self.logs[when] = {broker: self._log(broker) for broker in self.cluster.brokers}

    def _outcome(self, sends: Sequence[Send]) -> dict[str, Any]:
        final = self.logs["all brokers are back"]
        leader = self.cluster.history.states[-1].leader
        held = {record.name for record in final[leader]}
        return {
            "appended": any(
                step["step"] == APPEND.name and step["broker"] == FOLLOWER and step["record"] == M1
                for step in self.observer.steps
            ),
            "kept": "m1" in [record.name for record in self.logs["m2 is acknowledged"][FOLLOWER]],
            "diverged": len({tuple(log) for log in final.values()}) > 1,
            "lost": [send.name for send in sends if send.name == "m2" and send.name not in held],
            "leader": leader,
            "logs": {
                when: {broker: [str(record) for record in log] for broker, log in logs.items()}
                for when, logs in self.logs.items()
            },
            "acknowledged": {send.name: send.offset for send in sends},
            "warnings": self.warnings,
            "consumer": [[offset, sends[record].name] for offset, record in self.clients.shown],
            "later consumer": [[offset, sends[record].name] for offset, record in self.later_reader.shown],
            "events": self.events,
            "seconds": self.seconds,
        }


def warnings_of(node: KafkaNode) -> list[str]:
    """What a broker has logged as a warning or an error about the topic."""
    lines = node.output.read_text(errors="replace").splitlines()
    return [line for line in lines if f"{TOPIC}-0" in line and (" WARN " in line or " ERROR " in line)]


def _text(one: dict[str, Any]) -> str:
    if "failed" in one:
        return f"{one['release']:9} {one['variant']:12} not brought to it: {one['failed']}\n"
    logs = "".join(
        f"    {when:34} "
        + "   ".join(f"{broker}: {' '.join(log) or '-'}" for broker, log in sorted(logs.items()))
        + "\n"
        for when, logs in one["logs"].items()
    )
    found = ["appended" if one["kept"] else "appended and truncated"] if one["appended"] else []
    found += (["diverged"] if one["diverged"] else []) + [f"{name} is lost" for name in one["lost"]]
    read = f"    consumer {one['consumer']}, a new one afterwards {one['later consumer']}\n"
    said = ", ".join(found) or "nothing of the deleted topic was appended"
    return f"{one['release']:9} {one['variant']:12} {one['seconds']:6.1f} s  {said}\n{logs}{read}"


if __name__ == "__main__":
    sys.exit(Program("recreated_topic", __doc__, VARIANTS, Run, _text, 5, "appended").main())
