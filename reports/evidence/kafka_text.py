"""Kafka's text formats: checkpoint files, ``kafka-dump-log`` and ``kafka-topics --describe``.

Checkpoint files are byte for byte Kafka's. The other two have Kafka's labels and separators, without the fields that
are not modelled (crc, position, producer ids, topic ids).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scenarios.single.result import PartitionView

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
    """A log as ``kafka-dump-log --print-data-log`` prints it; payloads are record ids, `path` is the segment's name."""
    lines = [f"Dumping {path}", f"Log starting offset: {log_start}"]
    for base, last, epoch, record in batches:
        count = last - base + 1
        lines.append(f"baseOffset: {base} lastOffset: {last} count: {count} partitionLeaderEpoch: {epoch}")
        lines.extend(f"| offset: {base + index} payload: {record + index}" for index in range(count))
    return "\n".join(lines) + "\n"


def describe(topic: str, partition: PartitionView, configs: Mapping[str, str]) -> str:
    """The two lines of ``kafka-topics --describe``, separated by tabs, of a topic with one partition and some settings.
    Modes without ELR show ``N/A`` for it.

    Kafka does not print the epochs at the end; it stores them in the partition's state node.
    """
    own = ",".join(f"{key}={value}" for key, value in configs.items())
    head = {"Topic": topic, "PartitionCount": 1, "ReplicationFactor": len(partition.replicas), "Configs": own}
    state = {
        "Topic": topic,
        "Partition": 0,
        "Leader": partition.leader or "none",
        "Replicas": _known(partition.replicas),
        "Isr": _known(partition.isr),
        "Elr": _known(partition.elr),
        "LastKnownElr": _known(partition.last_known_elr),
        "LeaderEpoch": partition.leader_epoch,
        "PartitionEpoch": partition.partition_epoch,
        "ControllerEpoch": partition.controller_epoch,
    }
    return f"{_fields(head)}\n\t{_fields(state)}\n"


def _known(brokers: tuple[int, ...] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _fields(fields: Mapping[str, object]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in fields.items())
