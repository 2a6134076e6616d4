"""Kafka's text forms: checkpoint files, ``kafka-dump-log`` and ``kafka-topics --describe``.

Checkpoint files are byte for byte Kafka's. The other two keep Kafka's labels and separators and leave out fields
that are not modelled (crc, position, producer ids, topic ids). Every form can be read back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERSION: Final = "0"
"""First line of each checkpoint file."""

DumpedBatch = tuple[int, int, int, int]
"""Base offset, last offset, partition leader epoch, id of the first record."""

_BATCH: Final = re.compile(r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) partitionLeaderEpoch: (-?\d+)")
_RECORD: Final = re.compile(r"\| offset: (\d+) payload: (\d+)")
_START: Final = "Log starting offset: "
_EPOCHS: Final = {
    "LeaderEpoch": "leader_epoch",
    "PartitionEpoch": "partition_epoch",
    "ControllerEpoch": "controller_epoch",
}


def leader_epoch_checkpoint(entries: Iterable[tuple[int, int]]) -> str:
    """``leader-epoch-checkpoint``: (leader epoch, start offset) pairs."""
    return _checkpoint(f"{epoch} {start}" for epoch, start in entries)


def read_leader_epoch_checkpoint(text: str) -> list[tuple[int, int]]:
    """Undo `leader_epoch_checkpoint`.

    Raises:
        ValueError: not such a file.
    """
    return [(int(epoch), int(start)) for epoch, start in _checkpoint_lines(text, 2)]


def offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> str:
    """``replication-offset-checkpoint`` and its kin: (topic, partition) -> offset."""
    return _checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_offset_checkpoint(text: str) -> dict[tuple[str, int], int]:
    """Undo `offset_checkpoint`.

    Raises:
        ValueError: not such a file.
    """
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _checkpoint_lines(text, 3)}


def _checkpoint(lines: Iterable[str]) -> str:
    entries = list(lines)
    return "\n".join([VERSION, str(len(entries)), *entries]) + "\n"


def _checkpoint_lines(text: str, words: int) -> list[list[str]]:
    version, count, *lines = text.splitlines() if text.count("\n") > 1 else ("", "")
    if version != VERSION:
        raise ValueError(f"checkpoint has version {version!r}; this version reads {VERSION!r}")
    entries = [line.split(" ") for line in lines]
    if len(entries) != int(count) or any(len(entry) != words for entry in entries):
        raise ValueError(f"checkpoint should have {count} lines of {words} words")
    return entries


def dump_log(path: str, log_start: int, batches: Sequence[DumpedBatch]) -> str:
    """A log as ``kafka-dump-log --print-data-log`` prints it; payloads are record ids.

    Args:
        path: the segment's file name, for the first line.
        log_start: log start offset.
        batches: the log's batches in order.
    """
    lines = [f"Dumping {path}", f"{_START}{log_start}"]
    for base, last, epoch, record in batches:
        count = last - base + 1
        lines.append(f"baseOffset: {base} lastOffset: {last} count: {count} partitionLeaderEpoch: {epoch}")
        lines.extend(f"| offset: {base + index} payload: {record + index}" for index in range(count))
    return "\n".join(lines) + "\n"


def read_dump_log(text: str) -> tuple[int, list[DumpedBatch]]:
    """Undo `dump_log`.

    Returns:
        Log start offset and batches.

    Raises:
        ValueError: a line is of another form.
    """
    _, start, *lines = text.splitlines()
    batches: list[DumpedBatch] = []
    rest = iter(lines)
    for line in rest:
        base, last, count, epoch = (int(word) for word in _match(_BATCH, line))
        records = [int(_match(_RECORD, next(rest, ""))[1]) for _ in range(count)]
        batches.append((base, last, epoch, records[0]))
    return int(start.removeprefix(_START)), batches


def _match(form: re.Pattern[str], line: str) -> tuple[str, ...]:
    match = form.fullmatch(line)
    if match is None:
        raise ValueError(f"not a line of a dumped log: {line!r}")
    return match.groups()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with one partition, as ``kafka-topics --describe`` shows it.

    Attributes:
        name: topic name.
        leader: broker that leads, None when there is no leader.
        replicas: assigned brokers.
        isr: in-sync brokers.
        configs: settings that were set.
        leader_epoch: raised with each leader.
        partition_epoch: raised with each change (the version of ZooKeeper's state node).
        controller_epoch: of the controller that decided last.
        elr: eligible leader replicas, None where there is no such thing (KIP-966).
        last_known_elr: whom an election may fall back on.
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

    The epochs at the end are not in Kafka's, which keeps them in the partition's state node.
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
        **{label: getattr(topic, name) for label, name in _EPOCHS.items()},
    }
    return f"{_fields(head)}\n\t{_fields(partition)}\n"


def read_describe(text: str) -> Topic:
    """Undo `describe`.

    Raises:
        ValueError: a field is missing or is not ``Name: value``.
    """
    head, partition = (_read_fields(line.removeprefix("\t")) for line in text.splitlines())
    try:
        leader = partition["Leader"]
        return Topic(
            name=head["Topic"],
            leader=None if leader == "none" else int(leader),
            replicas=_brokers(partition["Replicas"]),
            isr=_brokers(partition["Isr"]),
            configs=dict(_pair(pair) for pair in head["Configs"].split(",") if pair),
            **{name: int(partition[label]) for label, name in _EPOCHS.items()},
            elr=None if partition["Elr"] == "N/A" else _brokers(partition["Elr"]),
            last_known_elr=None if partition["LastKnownElr"] == "N/A" else _brokers(partition["LastKnownElr"]),
        )
    except KeyError as error:
        raise ValueError(f"description has no field {error}") from error


def _known(brokers: tuple[int, ...] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _fields(fields: Mapping[str, object]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in fields.items())


def _read_fields(line: str) -> dict[str, str]:
    return dict(_pair(part, ": ") for part in line.split("\t"))


def _pair(text: str, separator: str = "=") -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found:
        raise ValueError(f"{text!r} is not of the form name{separator}value")
    return name, value


def _brokers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)
