"""``python -m tests.verification.confirm.recreated_topic``: a late fetch response about a deleted topic, on brokers.

`confirm` cannot delete topics, so this performs scenario `recreated-topic`. A proxy holds the response; brokers,
clients and files are those of `confirm`. Nothing in Kafka is changed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reports.brokers.confirm import files, wire
from reports.brokers.confirm.class_archive import archive_of, make_archive
from reports.brokers.confirm.clients import KafkaAdminClient, KafkaClients, Send
from reports.brokers.confirm.cluster import TOPIC, KafkaCluster
from reports.brokers.confirm.observer import Observer
from reports.brokers.confirm.processes import JavaProcesses
from reports.brokers.confirm.release import find, mode_of
from scenarios.format.selection import scenario
from sim.config import integer, resolve
from sim.history.steps import APPEND, UNFENCED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reports.brokers.confirm.cluster import KafkaNode
    from reports.brokers.confirm.release import Release

SCENARIO: Final = "recreated-topic"
BROKERS: Final = 3
LEADER: Final = 3
FOLLOWER: Final = 2
IDLE: Final = "idle"
"""Another topic, for which the follower's fetcher thread goes on while the recreated one is gone."""
M1: Final = 0
"""The record of the deleted topic. Its follower gets it in the new topic only."""
PREFERRED: Final = 0
WHOLE_S: Final = 40.0
SETTLE_S: Final = 1.0
_LOOK_S: Final = 0.02
_ADMIN_S: Final = 15.0
VARIANTS: Final = {
    "scenario": "in both topics broker 2 leads first, in leader epoch 0, and then broker 3, in leader epoch 1",
    "same-leader": "broker 3 leads both topics from the start, so the log of broker 2 has no leader epoch",
    "other-epoch": "broker 3 leads the deleted topic in leader epoch 1, and the new one in leader epoch 3",
    "idle-thread": "the fetcher thread fetches no other partition",
    "timeout": "the topic is created again after replica.socket.timeout.ms",
}
"""Variant -> what happens in it. The first is the scenario; the others show what prevents the append."""


class NotBroughtError(Exception):
    """The brokers could not be brought to the situation; the message says what was missing."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A record as it stands in a log: offset, leader epoch and batch name."""

    offset: int
    leader_epoch: int
    name: str

    def __str__(self) -> str:
        return f"{self.name}@{self.leader_epoch}"


class Run:
    """One run on a cluster of its own.

    Attributes:
        logs: after what -> broker -> its log.
        events: what happened, with the seconds since the begin.
        warnings: broker -> what it had logged about the topic as a warning or an error until broker 3 was killed.
    """

    def __init__(self, release: Release, processes: JavaProcesses, variant: str) -> None:
        wire.load()
        self.config = resolve({"auto.leader.rebalance.enable": False}, scenario(SCENARIO, {}).config)
        self._variant = variant
        self._begin_s = time.monotonic()
        self.cluster: KafkaCluster = KafkaCluster(
            release,
            processes,
            BROKERS,
            self.config,
            {},
            lambda *message: self.observer.on_message(*message),
            1,
            archive_of(release),
        )
        self.observer: Observer = Observer(self.cluster, lambda _: None)
        rules = mode_of(release)[0].rules
        self.clients: KafkaClients = KafkaClients(self.cluster, self.observer, self.config, rules)
        self.later_reader: KafkaClients = KafkaClients(self.cluster, self.observer, self.config, rules)
        self._admin = KafkaAdminClient(self.cluster)
        self.logs: dict[str, dict[int, list[Logged]]] = {}
        self.events: list[tuple[float, str]] = []
        self.warnings: dict[int, list[str]] = {}

    def close(self) -> None:
        """Close clients and links."""
        self.clients.close()
        self.later_reader.close()
        self.cluster.close()

    def act(self) -> dict[str, Any]:
        """Perform the scenario, and return what came of it.

        Raises:
            NotBroughtError: the situation did not come about.
        """
        self._boot()
        if self._variant != "idle-thread":
            self._create(IDLE, [[3, 2, 1], [3, 2, 1]])
        self._topic_led_by_three(moves=1)
        proxies = self.cluster.proxies
        proxies.stall(FOLLOWER, stalled=True)
        m1 = Send("m1", M1, 1, 1)
        self.clients.produce(m1)
        self._wait("m1 is acknowledged", lambda: m1.offset is not None)
        self._wait("broker 1 has m1", lambda: self._names(1) == ["m1"])
        self._pass(SETTLE_S)
        if self._names(FOLLOWER):
            raise NotBroughtError("the follower got m1 before its response was held")
        self._note_logs("the response is held")
        self._delete()
        if self._variant == "timeout":
            self._pass(integer(self.config, "replica.socket.timeout.ms") / 1000 + SETTLE_S)
        self._topic_led_by_three(moves=3 if self._variant == "other-epoch" else 1)
        m2 = Send("m2", 1, 1, -1)
        self.clients.produce(m2)
        self._wait("the leader has m2", lambda: self._names(LEADER) == ["m2"])
        self._pass(SETTLE_S)
        self._note_logs("m2 is produced to the new topic")
        self.clients.begin()
        proxies.stall(FOLLOWER, stalled=False)
        self._event("the response is released")
        self._wait("m2 is acknowledged", lambda: m2.offset is not None)
        self._wait("the consumer has read", lambda: bool(self.clients.shown))
        self._pass(SETTLE_S)
        self._note_logs("m2 is acknowledged")
        self.warnings = {broker: warnings_of(node) for broker, node in self.cluster.brokers.items()}
        self._fail_over()
        m3 = Send("m3", 2, 1, -1)
        self.clients.produce(m3)
        self._wait("m3 is acknowledged", lambda: m3.offset is not None)
        self.later_reader.begin()
        self._wait("a new consumer has read", lambda: len(self.later_reader.shown) > 1)
        self.cluster.start(self.cluster.node(LEADER))
        self._wait("all replicas are in sync", lambda: self.cluster.history.states[-1].isr == (1, 2, 3))
        self._pass(SETTLE_S)
        self._note_logs("all brokers are back")
        return self._outcome([m1, m2, m3])

    # Steps.

    def _boot(self) -> None:
        cluster = self.cluster
        cluster.prepare()
        cluster.start(cluster.control)
        for node in cluster.brokers.values():
            cluster.start(node)
        self._wait("all brokers are up", lambda: self._unfenced() == set(cluster.brokers))

    def _unfenced(self) -> set[int]:
        return {step["broker"] for step in self.observer.steps if step["step"] == UNFENCED.name}

    def _topic_led_by_three(self, moves: int) -> None:
        """Create the topic, let broker 3 become its leader by so many changes of leader, and wait for the followers."""
        before = len(self.cluster.history.states)
        first = [3, 2, 1] if self._variant == "same-leader" else [2, 3, 1]
        self._create(TOPIC, [first])
        self._wait("the topic is created", lambda: len(self.cluster.history.states) > before)
        self._led_by(first[0], 0)
        if self._variant == "same-leader":
            return
        for move in range(moves):
            replicas = [3, 2, 1] if move % 2 == 0 else [2, 3, 1]
            self._admin.reassign(replicas)
            self._wait("the replicas' order", lambda: self.cluster.history.states[-1].replicas == tuple(replicas))  # noqa: B023
            self._admin.elect(PREFERRED)
            self._led_by(replicas[0], move + 1)

    def _led_by(self, leader: int, epoch: int) -> None:
        """Wait until a broker leads, and all others follow it and have fetched."""

        def is_so() -> bool:
            state = self.cluster.history.states[-1]
            known = all(self._is_told(node, leader, state.leader_epoch) for node in self.cluster.brokers.values())
            return (state.leader, state.leader_epoch) == (leader, epoch) and known

        self._wait(f"broker {leader} leads in leader epoch {epoch}", is_so)
        self._pass(SETTLE_S)

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
        self._until_accepted(f"topic {name} is created", lambda: self._admin.ask(request).topics[0].error_code)

    def _delete(self) -> None:
        from kafka.protocol.admin import DeleteTopicsRequest

        request = DeleteTopicsRequest(version=1, topic_names=[TOPIC], timeout_ms=10_000)
        self._until_accepted("the topic is deleted", lambda: self._admin.ask(request).responses[0].error_code)
        self._wait(
            "all replicas are deleted",
            lambda: not any(node.log_folder.is_dir() for node in self.cluster.brokers.values()),
        )

    def _fail_over(self) -> None:
        self.cluster.kill([LEADER])
        self._event(f"broker {LEADER} is killed")
        self._wait("another broker leads", lambda: self.cluster.history.states[-1].leader not in (-1, LEADER))
        self._event(f"broker {self.cluster.history.states[-1].leader} is elected")

    # Waiting.

    def _until_accepted(self, what: str, ask: Callable[[], int]) -> None:
        end_s = time.monotonic() + _ADMIN_S
        while error := ask():
            if time.monotonic() > end_s:
                raise NotBroughtError(f"not {what}: error {error}")
            self._pass(0.2)
        self._event(what)

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + WHOLE_S
        while not is_so():
            if time.monotonic() > end_s:
                raise NotBroughtError(f"not within {WHOLE_S:g} s: {what}")
            self._pass(_LOOK_S)
        self._event(what)

    def _pass(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        self.observer.poll()
        while time.monotonic() < end_s:
            time.sleep(_LOOK_S)
            self.observer.poll()

    def _event(self, what: str) -> None:
        self.events.append((round(time.monotonic() - self._begin_s, 1), what))

    # Outcome.

    def _log(self, broker: int) -> list[Logged]:
        return [
            Logged(offset, batch.leader_epoch, batch.name)
            for batch in files.read_log(self.cluster.node(broker).log_folder)
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
            "seconds": round(time.monotonic() - self._begin_s, 1),
        }


def warnings_of(node: KafkaNode) -> list[str]:
    """What a broker has logged as a warning or an error about the topic."""
    lines = node.output.read_text(errors="replace").splitlines()
    return [line for line in lines if f"{TOPIC}-0" in line and (" WARN " in line or " ERROR " in line)]


def run(release: Release, variant: str, keep: Path | None) -> dict[str, Any]:
    """One run on a cluster of its own; what failed if it was not brought to the situation."""
    with closing(JavaProcesses(keep)) as processes, closing(Run(release, processes, variant)) as one:
        try:
            outcome = one.act()
        except (NotBroughtError, TimeoutError) as error:
            outcome = {"failed": str(error), "events": one.events}
        return {"release": release.name, "variant": variant, **outcome}


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


def main() -> int:
    """Run; 1 if a record of the deleted topic was appended, 3 if a run was not brought to the situation."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.confirm.recreated_topic", description=__doc__)
    parser.add_argument("--kafka", default="4.3.1", help="a release, or a folder with Kafka's libraries")
    parser.add_argument(
        "--variant",
        choices=VARIANTS,
        default="scenario",
        help="; ".join(f"{name}: {what}" for name, what in VARIANTS.items()),
    )
    parser.add_argument("--repeat", type=int, default=1, help="number of runs")
    parser.add_argument("--keep", type=Path, help="keep the brokers' logs and data in this folder; with --repeat 1")
    parser.add_argument("--output", type=Path, help="add a line of JSON for each run to this file")
    arguments = parser.parse_args()
    release = find(arguments.kafka)
    make_archive(release, 5, lambda text: print(text, file=sys.stderr))  # noqa: T201
    made = []
    for _ in range(arguments.repeat):
        made.append(run(release, arguments.variant, arguments.keep))
        sys.stdout.write(_text(made[-1]))
        sys.stdout.flush()
        if arguments.output is not None:
            with arguments.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"day": time.strftime("%Y-%m-%d"), **made[-1]}) + "\n")
    if any(one.get("appended") for one in made):
        return 1
    return 3 if any("failed" in one for one in made) else 0


if __name__ == "__main__":
    sys.exit(main())
