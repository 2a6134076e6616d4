"""The partitions of a scenario, as they are on real brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scenarios.single.execution import partitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenarios.format.scenario import Topic
    from sim.config import Value

TOPIC: Final = "partition"
"""Name of the first topic here, whatever its name in the scenario is."""


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """A partition; by default the first one of a scenario without topics.

    Attributes:
        name: its name in the scenario.
        place: its place among the scenario's partitions, from 0 on.
        topic: its topic here; so its `number`.
        replicas: its replicas, the preferred leader first.
        idle: whether nothing is written to it, or read, before everything is healed.
    """

    name: str = f"{TOPIC}-0"
    place: int = 0
    topic: str = TOPIC
    number: int = 0
    replicas: tuple[int, ...] = ()
    idle: bool = False

    @property
    def log(self) -> str:
        """The folder of its logs."""
        return f"{self.topic}-{self.number}"

    @property
    def tag(self) -> dict[str, str]:
        """What its steps have in addition: nothing if it is the first, as in a trace."""
        return {"partition": self.name} if self.place else {}


FIRST: Final = KafkaPartition()


def partitions_of(
    topics: Sequence[Topic], config: Mapping[str, Value], brokers: Sequence[int]
) -> tuple[KafkaPartition, ...]:
    """The partitions of a scenario's topics, with their replicas placed as in the simulation; `config` is that of the
    cluster.
    """
    found = []
    for place, partition in enumerate(partitions(topics, config)):
        start = place % len(brokers)
        replicas = (*brokers[start:], *brokers[:start])[: partition.replication_factor]
        topic, number = TOPIC, 0
        if topics:
            topic, _, text = partition.name.rpartition("-")
            topic, number = TOPIC if topic == topics[0].name else topic, int(text)
        found.append(KafkaPartition(partition.name, place, topic, number, replicas, idle=partition.idle))
    return tuple(found)
