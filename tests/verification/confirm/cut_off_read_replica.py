"""``python -m tests.verification.confirm.cut_off_read_replica``: a consumer whose follower is cut off, on brokers.

This performs scenario `cut-off-read-replica` with two of Kafka's own consumers, one in the rack of broker 3
(client.rack), and one in none; the consumer of `confirm` has no rack. Brokers have broker.rack and the
RackAwareReplicaSelector. All times are a fifth of the scenario's: metadata.max.age.ms is 12 s, and the link is healed
12 s after m3. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.partitions import KafkaPartition
from tests.verification.confirm.beside_broker import compiled
from tests.verification.confirm.java_client import JavaClient
from tests.verification.confirm.program import BrokerRun, Program

if TYPE_CHECKING:
    from highwater.lab.confirm.cluster import KafkaNode
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease

SCENARIO: Final = "cut-off-read-replica"
LEADER, FOLLOWER = 1, 3
PARTITION: Final = KafkaPartition(replicas=(1, 2, 3))
RACKS: Final = {1: "a", 2: "b", 3: "c"}
PACE: Final = 5
WHOLE_S: Final = 60.0
_AFTER_S: Final = 1.0
_HEALED_S: Final = 12.0
_LATE_S: Final = 2.0
_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
VARIANTS: Final = {"scenario": "as in the scenario"}


class RackCluster(KafkaCluster):
    """A cluster whose leaders send consumers to the follower in their rack."""

    def _broker_properties(self, node: KafkaNode) -> dict[str, object]:
        racks = {"broker.rack": RACKS[node.id], "replica.selector.class": _SELECTOR}
        return {**super()._broker_properties(node), **racks}


class Run(BrokerRun):
    """One run."""

    CLUSTER = RackCluster

    def __init__(self, release: InstalledRelease, processes: JavaProcesses, _: str) -> None:
        folder = processes.folder / "classes"
        processes.work.make(folder)
        self._class_path = compiled(map(str, release.jars), folder, "NearReader")
        super().__init__(release, processes, SCENARIO, PACE, WHOLE_S, None, (PARTITION,))
        self._client: JavaClient | None = None
        self.events: list[tuple[float, str]] = []

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        super().close()

    def so_far(self) -> dict[str, Any]:
        said = self._client.said if self._client is not None else []
        return {"events": self.events, "said": said, "seconds": self.seconds}

    def act(self) -> dict[str, Any]:
        self.boot()
        cluster = self.cluster
        self.admin.create_topic([list(PARTITION.replicas)], cluster.history.controller)
        self.wait("broker 1 leads", lambda: cluster.leader == LEADER)
        self.pass_time(_AFTER_S)
        servers = ",".join(f"127.0.0.1:{node.client_port}" for node in cluster.brokers.values())
        client = self._client = JavaClient(self._class_path, "NearReader", servers, cluster.folder / "reader.log")
        client.order("produce", "m1")
        self._wait_for("acknowledged m1")
        self.pass_time(_AFTER_S)
        client.order("read")
        self._wait_for("near m1", "far m1")
        self.pass_time(_AFTER_S / PACE)
        for link in ((LEADER, FOLLOWER), (FOLLOWER, LEADER)):
            cluster.proxies.cut(*link)
        self._event("both consumers have read m1, and the link is cut")
        client.order("produce", "m2")
        self._wait_for("acknowledged m2")
        if cluster.history.states[-1].isr != (1, 2):
            raise AssertionError(f"m2 is acknowledged with ISR {cluster.history.states[-1].isr}")
        self._event("m2 is acknowledged, and broker 3 is outside the ISR")
        self.pass_time(_AFTER_S)
        client.order("produce", "m3")
        self._wait_for("acknowledged m3")
        self.pass_time(_HEALED_S)
        before = bool(client.answer("near", "m2"))
        self._event("the link is healed")
        for link in ((LEADER, FOLLOWER), (FOLLOWER, LEADER)):
            cluster.proxies.heal(*link)
        self._wait_for("near m3", "far m3")
        acknowledged = float(client.answer("acknowledged", "m2"))
        late = {name: round(float(client.answer(name, "m2")) - acknowledged, 1) for name in ("near", "far")}
        shown = late["near"] > _LATE_S > late["far"]
        return {"late": late, "before": before, "shown": shown, "events": self.events, "seconds": self.seconds}

    def _wait_for(self, *lines: str) -> None:
        assert self._client is not None
        for line in lines:
            self.wait(line, lambda: self._client.answer(line) != "")  # type: ignore[union-attr]  # noqa: B023

    def _event(self, what: str) -> None:
        self.events.append((self.seconds, what))


def _text(one: dict[str, Any]) -> str:
    events = "".join(f"    {at_s:6.1f} s  {what}\n" for at_s, what in one["events"])
    head = f"{one['release']:9} {one['seconds']:6.1f} s  "
    if "failed" in one:
        return f"{head}not brought to the situation: {one['failed']}; {one['said']}\n{events}"
    near, far = (one["late"][name] for name in ("near", "far"))
    when = "before" if one["before"] else "after"
    said = f"the consumer in the rack read m2 {near} s after its acknowledgement, {when} the link was healed"
    return f"{head}{said}; the other one after {far} s\n{events}"


if __name__ == "__main__":
    sys.exit(Program("cut_off_read_replica", __doc__, VARIANTS, Run, _text, PACE, "shown").main())
