"""Kafka's text formats: checkpoint files, ``kafka-dump-log`` and ``kafka-topics --describe``.

Checkpoint files are byte for byte Kafka's. The other two have Kafka's labels and separators, without the fields that
are not modelled (crc, position, producer ids, topic ids).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERSION: Final = "0"
"""First line of each checkpoint file."""

DumpedBatch = tuple[int, int, int, int]
"""Base offset, last offset, partition leader epoch, id of the first record."""


def leader_epoch_checkpoint(entries: Iterable[tuple[int, int]]) -> str:
    """``leader-epoch-checkpoint``: (leader epoch, start offset) pairs."""
    return _checkpoint(f"{epoch} {start}" for epoch, start in entries)


def offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> str:
    """``replication-offset-checkpoint`` and its kin: (topic, partition) -> offset."""
    return _checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def _checkpoint(lines: Iterable[str]) -> str:
    entries = list(lines)
    return "\n".join([VERSION, str(len(entries)), *entries]) + "\n"


def dump_log(path: str, log_start: int, batches: Sequence[DumpedBatch]) -> str:
    """A log as ``kafka-dump-log --print-data-log`` prints it; payloads are record ids.

    Args:
        path: the segment's file name, for the first line.
        log_start: log start offset.
        batches: the log's batches in order.
    """
    lines = [f"Dumping {path}", f"Log starting offset: {log_start}"]
    for base, last, epoch, record in batches:
        count = last - base + 1
        lines.append(f"baseOffset: {base} lastOffset: {last} count: {count} partitionLeaderEpoch: {epoch}")
        lines.extend(f"| offset: {base + index} payload: {record + index}" for index in range(count))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with one partition, as ``kafka-topics --describe`` shows it.

    Attributes:
        name: topic name.
        leader: the leader, None if there is none.
        replicas: assigned brokers.
        isr: in-sync brokers.
        configs: the topic's own settings.
        leader_epoch: raised with each new leader.
        partition_epoch: raised with each change (the version of ZooKeeper's state node).
        controller_epoch: epoch of the controller that decided last.
        elr: eligible leader replicas (KIP-966), None in modes without them.
        last_known_elr: replicas that an unclean election may fall back on.
    """

    name: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    leader_epoch: int = 0
    partition_epoch: int = 0
    controller_epoch: int = 0
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


def describe(topic: Topic) -> str:
    """The two lines of ``kafka-topics --describe``, separated by tabs. Modes without ELR show ``N/A`` for it.

    Kafka does not print the epochs at the end; it stores them in the partition's state node.
    """
    configs = ",".join(f"{key}={value}" for key, value in topic.configs.items())
    head = {"Topic": topic.name, "PartitionCount": 1, "ReplicationFactor": len(topic.replicas), "Configs": configs}
    partition = {
        "Topic": topic.name,
        "Partition": 0,
        "Leader": "none" if topic.leader is None else topic.leader,
        "Replicas": ",".join(map(str, topic.replicas)),
        "Isr": ",".join(map(str, topic.isr)),
        "Elr": _known(topic.elr),
        "LastKnownElr": _known(topic.last_known_elr),
        "LeaderEpoch": topic.leader_epoch,
        "PartitionEpoch": topic.partition_epoch,
        "ControllerEpoch": topic.controller_epoch,
    }
    return f"{_fields(head)}\n\t{_fields(partition)}\n"


def _known(brokers: tuple[int, ...] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _fields(fields: Mapping[str, object]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in fields.items())
