"""``python -m tests.verification.confirm.min_isr_of_first_partition``: partitions of one topic that have different
numbers of replicas, on brokers.

`confirm` reassigns and observes the first partition only, so this performs scenario `min-isr-of-first-partition`.
Brokers, clients and files are those of `confirm`. Nothing in Kafka is changed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reports.brokers.confirm import files, wire
from reports.brokers.confirm.class_archive import archive_of, make_archive
from reports.brokers.confirm.clients import KafkaAdminClient, KafkaClients, Send
from reports.brokers.confirm.cluster import TOPIC, KafkaCluster
from reports.brokers.confirm.history import MetadataHistory
from reports.brokers.confirm.observer import Observer
from reports.brokers.confirm.processes import JavaProcesses
from reports.brokers.confirm.release import find, mode_of
from scenarios.format.selection import scenario
from sim.config import resolve
from sim.history.steps import UNFENCED

if TYPE_CHECKING:
    from collections.abc import Callable

    from reports.brokers.confirm.history import PartitionSnapshot
    from reports.brokers.confirm.release import Release

SCENARIO: Final = "min-isr-of-first-partition"
BROKERS: Final = 3
PACE: Final = 2
NUMBER: Final = 1
"""Number of the partition that the scenario is about."""
LEADER: Final = 2
LAST: Final = 1
"""The broker that leaves the ISR last before the leader ends, and belongs in the ELR."""
REPLICAS: Final = (2, 1, 3)
WHOLE_S: Final = 60.0
SETTLE_S: Final = 2.0
_LOOK_S: Final = 0.05
_ANSWER_S: Final = 6.0
VARIANTS: Final = {
    "scenario": "both partitions have one replica at first; partition 1 gets three",
    "shrunk": "both partitions have three replicas at first; partition 0 keeps one",
    "new-disk": "as in the scenario, but broker 2 gets an empty disk in place of a power loss",
    "equal": "both partitions have three replicas",
}
"""Variant -> what happens in it. The first is the scenario; the last shows what happens without the failure."""


class NotBroughtError(Exception):
    """The brokers could not be brought to the situation; the message says what was missing."""


class SecondHistory(MetadataHistory):
    """Reads of the partition that the scenario is about."""

    def _decoded(self, data: bytes) -> tuple[str, dict[str, Any]]:
        name, fields = super()._decoded(data)
        if "partition_id" in fields:
            fields["partition_id"] -= NUMBER
        return name, fields


class Run:
    """One run on a cluster of its own.

    Attributes:
        states: after what -> the partition's state in the metadata log.
    """

    def __init__(self, release: Release, processes: JavaProcesses, variant: str) -> None:
        wire.load()
        self.config = resolve({}, scenario(SCENARIO, {}).config)
        self._variant = variant
        self._begin_s = time.monotonic()
        self.cluster: KafkaCluster = KafkaCluster(
            release,
            processes,
            BROKERS,
            self.config,
            {},
            lambda *message: self.observer.on_message(*message),
            PACE,
            archive_of(release),
        )
        self.observer: Observer = Observer(self.cluster, lambda _: None)
        self.clients = KafkaClients(self.cluster, self.observer, self.config, mode_of(release)[0].rules)
        self._admin = KafkaAdminClient(self.cluster)
        self._second = SecondHistory(self.cluster.control.data / "__cluster_metadata-0", TOPIC, release.jars)
        self.states: dict[str, str] = {}

    def close(self) -> None:
        """Close clients and links."""
        self.clients.close()
        self.cluster.close()

    def act(self) -> dict[str, Any]:
        """Perform the scenario, and return what came of it.

        Raises:
            NotBroughtError: the situation did not come about.
        """
        self._boot()
        self._place()
        m1 = Send("m1", 0, 1, -1)
        self._wait("m1 is acknowledged", lambda: self._is_acked(m1))
        self._wait("all replicas have m1", lambda: all(self._names(broker) == ["m1"] for broker in REPLICAS))
        self._pass(SETTLE_S)
        self._note("m1 is acknowledged")
        for broker in (3, LAST):
            self.cluster.stop(broker)
            self._end_of(broker)
            self._note(f"broker {broker} is shut down in a controlled way")
        self._end_uncleanly()
        self._wait("the leader is fenced", lambda: LEADER not in self.observer.in_session)
        self._start(LEADER)
        self._note(f"broker {LEADER} is back without m1")
        for broker in (LAST, 3):
            self._start(broker)
        self._wait("all replicas are in sync", lambda: set(self._state.isr) == set(REPLICAS))
        self._pass(SETTLE_S)
        self._note("all brokers are back")
        logs = {broker: self._names(broker) for broker in sorted(REPLICAS)}
        return {
            "lost": [] if "m1" in logs[self._state.leader] else ["m1"],
            "states": self.states,
            "logs": logs,
            "seconds": round(time.monotonic() - self._begin_s, 1),
        }

    # Steps.

    def _boot(self) -> None:
        cluster = self.cluster
        cluster.prepare()
        cluster.start(cluster.control)
        for node in cluster.brokers.values():
            cluster.start(node)
        self._wait("all brokers are unfenced", lambda: all(self._is_unfenced(broker) for broker in cluster.brokers))

    def _place(self) -> None:
        """Create the topic, and bring its partitions to their numbers of replicas."""
        few = self._variant in ("scenario", "new-disk")
        self._admin.create_topic([[1], [LEADER]] if few else [[1, 2, 3], list(REPLICAS)], 0)
        self._wait("the topic is created", lambda: bool(self._second.states))
        if few:
            self._reassign_second()
        elif self._variant == "shrunk":
            self._admin.reassign([1])
        of_first = (1, 2, 3) if self._variant == "equal" else (1,)
        self._wait("partition 0 has its replicas", lambda: self.cluster.history.states[-1].replicas == of_first)
        self._wait("partition 1 has its replicas", lambda: set(self._state.isr) == set(REPLICAS))

    def _reassign_second(self) -> None:
        from kafka.protocol.admin import AlterPartitionReassignmentsRequest

        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = topic.ReassignablePartition(partition_index=NUMBER, replicas=list(REPLICAS))
        topics = [topic(name=TOPIC, partitions=[partition])]
        self._admin.ask(AlterPartitionReassignmentsRequest(version=0, timeout_ms=5_000, topics=topics))

    def _is_acked(self, send: Send) -> bool:
        request = self.clients.request(send, TOPIC, NUMBER)
        try:
            told = wire.ask(self.cluster.node(LEADER).client_port, request, _ANSWER_S)
        except wire.RETRIABLE:
            return False
        return not told.responses[0].partition_responses[0].error_code

    def _end_of(self, broker: int) -> None:
        node = self.cluster.node(broker)
        self._wait(f"broker {broker} has ended", lambda: not node.alive)
        self._wait(f"broker {broker} is out of the ISR", lambda: broker not in self._state.isr)
        self._pass(SETTLE_S)

    def _end_uncleanly(self) -> None:
        """Let the leader lose m1: no fsync, and no write-back by the kernel, is due so soon after it was appended."""
        if self._variant == "new-disk":
            self.cluster.replace_disk(LEADER)
            return
        self.cluster.kill([LEADER])
        for segment in files.segments(self._folder(LEADER)):
            with segment.open("r+b") as file:
                file.truncate(0)

    def _start(self, broker: int) -> None:
        before = len(self.observer.steps)
        self.cluster.start(self.cluster.node(broker))
        self._wait(f"broker {broker} is unfenced", lambda: self._is_unfenced(broker, before))
        self._pass(SETTLE_S)

    def _is_unfenced(self, broker: int, since: int = 0) -> bool:
        """Whether a broker was unfenced by one of the steps from this number on."""
        unfenced = (UNFENCED.name, broker)
        return any((step["step"], step.get("broker")) == unfenced for step in self.observer.steps[since:])

    # Waiting.

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + WHOLE_S
        while not is_so():
            if time.monotonic() > end_s:
                raise NotBroughtError(f"not within {WHOLE_S:g} s: {what}")
            self._pass(_LOOK_S)

    def _pass(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        self._look()
        while time.monotonic() < end_s:
            time.sleep(_LOOK_S)
            self._look()

    def _look(self) -> None:
        self.observer.poll()
        self._second.poll()

    # Outcome.

    @property
    def _state(self) -> PartitionSnapshot:
        return self._second.states[-1]

    def _folder(self, broker: int) -> Path:
        node = self.cluster.node(broker)
        log = f"{TOPIC}-{NUMBER}"
        return node.contents(node.place_of(log)) / log

    def _names(self, broker: int) -> list[str]:
        return [batch.name for batch in files.read_log(self._folder(broker))]

    def _note(self, when: str) -> None:
        state = self._state
        lists = f"ISR {list(state.isr)}, ELR {list(state.elr)}, last known {list(state.last_known_elr)}"
        self.states[when] = f"leader {state.leader}, {lists}"


def run(release: Release, variant: str, keep: Path | None) -> dict[str, Any]:
    """One run on a cluster of its own; what failed if it was not brought to the situation."""
    with closing(JavaProcesses(keep)) as processes, closing(Run(release, processes, variant)) as one:
        try:
            outcome = one.act()
        except (NotBroughtError, TimeoutError) as error:
            outcome = {"failed": str(error), "states": one.states}
        return {"release": release.name, "variant": variant, **outcome}


def _text(one: dict[str, Any]) -> str:
    if "failed" in one:
        said = f"not brought to it: {one['failed']}"
    else:
        said = f"{one['seconds']:.1f} s, {', '.join(one['lost']) or 'nothing'} lost, logs {one['logs']}"
    states = "".join(f"    {when:42} {state}\n" for when, state in one["states"].items())
    return f"{one['release']:9} {one['variant']:9} {said}\n{states}"


def main() -> int:
    """Run; 1 if m1 was lost, 3 if a run was not brought to the situation."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.verification.confirm.min_isr_of_first_partition", description=__doc__
    )
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
    make_archive(release, PACE, lambda text: print(text, file=sys.stderr))  # noqa: T201
    made = []
    for _ in range(arguments.repeat):
        made.append(run(release, arguments.variant, arguments.keep))
        sys.stdout.write(_text(made[-1]))
        sys.stdout.flush()
        if arguments.output is not None:
            with arguments.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"day": time.strftime("%Y-%m-%d"), **made[-1]}) + "\n")
    if any(one.get("lost") for one in made):
        return 1
    return 3 if any("failed" in one for one in made) else 0


if __name__ == "__main__":
    sys.exit(main())
