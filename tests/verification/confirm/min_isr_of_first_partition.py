"""``python -m tests.verification.confirm.min_isr_of_first_partition``: partitions of one topic that have different
numbers of replicas, on brokers.

This performs scenario `min-isr-of-first-partition`, and variants of it. Brokers, clients and files are those of
`confirm`. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import files, wire
from highwater.lab.confirm.partitions import FIRST, TOPIC, KafkaPartition
from highwater.lab.confirm.producer import Send
from tests.verification.confirm.program import BrokerRun, Program

if TYPE_CHECKING:
    from highwater.lab.confirm.history import PartitionSnapshot
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease

SCENARIO: Final = "min-isr-of-first-partition"
PACE: Final = 2
SECOND: Final = KafkaPartition("orders-1", 1, TOPIC, 1)
"""The partition that the scenario is about."""
LEADER: Final = 2
LAST: Final = 1
"""The broker that leaves the ISR last before the leader ends, and belongs in the ELR."""
REPLICAS: Final = (2, 1, 3)
WHOLE_S: Final = 60.0
SETTLE_S: Final = 2.0
_ANSWER_S: Final = 6.0
VARIANTS: Final = {
    "scenario": "both partitions have one replica at first; partition 1 gets three",
    "shrunk": "both partitions have three replicas at first; partition 0 keeps one",
    "new-disk": "as in the scenario, but broker 2 gets an empty disk in place of a power loss",
    "equal": "both partitions have three replicas",
}
"""Variant -> what happens in it. The first is the scenario; the last shows what happens without the failure."""


class Run(BrokerRun):
    """One run.

    Attributes:
        states: after what -> the partition's state in the metadata log.
    """

    def __init__(self, release: InstalledRelease, processes: JavaProcesses, variant: str) -> None:
        super().__init__(release, processes, SCENARIO, PACE, WHOLE_S, partitions=(FIRST, SECOND))
        self._variant = variant
        self.states: dict[str, str] = {}

    def so_far(self) -> dict[str, Any]:
        return {"states": self.states}

    def act(self) -> dict[str, Any]:
        self.boot()
        self._place()
        m1 = Send("m1", 0, 1, -1)
        self.wait("m1 is acknowledged", lambda: self._is_acked(m1))
        self.wait("all replicas have m1", lambda: all(self._names(broker) == ["m1"] for broker in REPLICAS))
        self.pass_time(SETTLE_S)
        self._note("m1 is acknowledged")
        for broker in (3, LAST):
            self.cluster.stop(broker)
            self._end_of(broker)
            self._note(f"broker {broker} is shut down in a controlled way")
        self._end_uncleanly()
        self.wait("the leader is fenced", lambda: LEADER not in self.observer.in_session)
        self._start(LEADER)
        self._note(f"broker {LEADER} is back without m1")
        for broker in (LAST, 3):
            self._start(broker)
        self.wait("all replicas are in sync", lambda: set(self._state.isr) == set(REPLICAS))
        self.pass_time(SETTLE_S)
        self._note("all brokers are back")
        logs = {broker: self._names(broker) for broker in sorted(REPLICAS)}
        return {
            "lost": [] if "m1" in logs[self._state.leader] else ["m1"],
            "states": self.states,
            "logs": logs,
            "seconds": self.seconds,
        }

    # Steps.

    def _place(self) -> None:
        """Create the topic, and bring its partitions to their numbers of replicas."""
        few = self._variant in ("scenario", "new-disk")
        self.admin.create_topic([[1], [LEADER]] if few else [[1, 2, 3], list(REPLICAS)], 0)
        self.wait("the topic is created", lambda: bool(self.cluster.history.states_of(SECOND)))
        if few:
            self.admin.reassign(REPLICAS, SECOND)
        elif self._variant == "shrunk":
            self.admin.reassign([1])
        of_first = (1, 2, 3) if self._variant == "equal" else (1,)
        self.wait("partition 0 has its replicas", lambda: self.cluster.history.states[-1].replicas == of_first)
        self.wait("partition 1 has its replicas", lambda: set(self._state.isr) == set(REPLICAS))

    def _is_acked(self, send: Send) -> bool:
        request = self.clients.producer.request(send)
        try:
            told = wire.ask(self.cluster.node(LEADER).client_port, request, _ANSWER_S)
        except wire.RETRIABLE:
            return False
        return not told.responses[0].partition_responses[0].error_code

    def _end_of(self, broker: int) -> None:
        node = self.cluster.node(broker)
        self.wait(f"broker {broker} has ended", lambda: not node.alive)
        self.wait(f"broker {broker} is out of the ISR", lambda: broker not in self._state.isr)
        self.pass_time(SETTLE_S)

    def _end_uncleanly(self) -> None:
        """Let the leader lose m1: no fsync, and no write-back by the kernel, is due so soon after it was appended."""
        if self._variant == "new-disk":
            self.cluster.replace_disk(LEADER)
            return
        self.cluster.kill([LEADER])
        for segment in files.segments(self.cluster.node(LEADER).folder_of(SECOND)):
            with segment.open("r+b") as file:
                file.truncate(0)

    def _start(self, broker: int) -> None:
        before = len(self.observer.steps)
        self.cluster.start(self.cluster.node(broker))
        self.wait(f"broker {broker} is unfenced", lambda: self.is_unfenced(broker, before))
        self.pass_time(SETTLE_S)

    # Outcome.

    @property
    def _state(self) -> PartitionSnapshot:
        return self.cluster.history.states_of(SECOND)[-1]

    def _names(self, broker: int) -> list[str]:
        return [batch.name for batch in files.read_log(self.cluster.node(broker).folder_of(SECOND))]

    def _note(self, when: str) -> None:
        state = self._state
        lists = f"ISR {list(state.isr)}, ELR {list(state.elr)}, last known {list(state.last_known_elr)}"
        self.states[when] = f"leader {state.leader}, {lists}"


def _text(one: dict[str, Any]) -> str:
    if "failed" in one:
        said = f"not brought to it: {one['failed']}"
    else:
        said = f"{one['seconds']:.1f} s, {', '.join(one['lost']) or 'nothing'} lost, logs {one['logs']}"
    states = "".join(f"    {when:42} {state}\n" for when, state in one["states"].items())
    return f"{one['release']:9} {one['variant']:9} {said}\n{states}"


if __name__ == "__main__":
    sys.exit(Program("min_isr_of_first_partition", __doc__, VARIANTS, Run, _text, PACE, "lost").main())
