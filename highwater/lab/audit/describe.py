"""The output of ``kafka-topics.sh --describe``: the state of partitions at one moment, with their ELRs.

The tool prints ELRs from 3.8 on, as N/A where brokers name none: under ZooKeeper, and before 3.8. Kafka:
TopicCommand.PartitionDescription#printDescription.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.files import lines, number, shortened, unpacked
from highwater.lab.audit.image import CLUSTER_KEYS, TOPIC, BrokerState, ClusterImage, RegisteredPartition
from highwater.lab.audit.notes import Notes
from highwater.lab.audit.records import MEMBERS_MOST, NO_LEADER, is_setting
from sim.errors import InputError
from sim.plurals import counted
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PARTITION: Final = "Partition"
_NO_ELR: Final = (None, "N/A")
"""What stands for the ELR where none is shown."""
_LOOKED_AT: Final = 1 << 16
"""Bytes in which a description is recognised."""


def is_description(path: Path) -> bool:
    """Whether a file is such an output.

    Raises:
        InputError: there is no such file.
        StorageError: it cannot be read.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if not path.is_file():
        return False
    with unpacked(path) as file:
        begin = file.read(_LOOKED_AT).splitlines()
    return any(line.lstrip().startswith(b"Topic:") and b"\t" in line for line in begin)


@dataclass(slots=True)
class _Topic:
    """A topic's lines: the first of them, and of its header, and how many partitions that announces."""

    line: int
    header: int = 0
    partitions: int = 0
    found: dict[int, int] = field(default_factory=dict)
    """Partition -> its line."""


def read(path: Path) -> tuple[ClusterImage, Notes]:
    """The partitions as an image, and what this form leaves open.

    Raises:
        InputError: a line is malformed, or lines are missing or stand there twice.
        StorageError: the file cannot be read.
    """
    image = ClusterImage()
    topics: dict[str, _Topic] = {}
    has_elr = False
    for at, text in lines(path):
        line = text.lstrip()
        if not line.startswith("Topic:"):
            continue
        fields = {name.strip(): value.strip() for name, _, value in (part.partition(":") for part in line.split("\t"))}
        try:
            _read_line(image, topics, at, fields)
        except (KeyError, ValueError) as error:
            what = f"no field {error}" if isinstance(error, KeyError) else error
            raise InputError(f"{path}, line {at}: no description of a topic or partition: {what}") from None
        has_elr = has_elr or fields.get("Elr") not in _NO_ELR
    for (name, _), state in image.partitions.items():
        if state.elr:
            image.least_min_isr[name] = max(image.least_min_isr.get(name, 1), len(state.isr) + 1)
    image.features[ELR_FEATURE] = int(has_elr)
    _brokers(image)
    notes = Notes()
    for name, topic in topics.items():
        _check_whole(path, name, topic)
    if without := [topic for topic in topics.values() if not topic.header]:
        notes.gap(
            f"{path}: {counted(len(without), 'topic')} without the line that has PartitionCount and Configs (the first "
            f"in line {without[0].line}): which of their partitions are missing, and their settings, is unknown"
        )
    notes.note(
        "a snapshot without history: which brokers are fenced, and past risks, cannot be seen; the metadata log shows "
        "them (brokers in no ISR, or in one without a leader, are taken for fenced)"
    )
    if not has_elr:
        notes.note(
            "no ELR is shown: the cluster is older than 4.0, or kafka-topics.sh is older than 3.8, or the text was "
            "shortened"
        )
    return image, notes


def _read_line(image: ClusterImage, topics: dict[str, _Topic], line: int, fields: Mapping[str, str]) -> None:
    """Read the line of a topic or partition; raises KeyError and ValueError."""
    name = fields["Topic"]
    image.topics[name] = name
    topic = topics.setdefault(name, _Topic(line))
    if _PARTITION in fields:
        place = number(fields[_PARTITION])
        if place in topic.found:
            raise ValueError(f"line {topic.found[place]} is about the same partition")
        topic.found[place] = line
        image.partitions[name, place] = _state(fields)
        return
    if topic.header:
        raise ValueError(f"line {topic.header} is about the same topic")
    topic.header, topic.partitions = line, number(fields["PartitionCount"])
    pairs = dict(pair.partition("=")[::2] for pair in fields.get("Configs", "").split(",") if "=" in pair)
    settings: dict[str, str] = {key: pairs[key] for key in CLUSTER_KEYS if key in pairs}
    for key, value in settings.items():
        if not is_setting(key, value):
            raise ValueError(f"{key}={shortened(value)} is no value of {key}")
    image.settings[TOPIC, name] = settings


def _check_whole(path: Path, name: str, topic: _Topic) -> None:
    """Refuse a topic that has fewer or more lines than its header says."""
    if not topic.header:
        return
    where = f"{path}, line {topic.header}: PartitionCount of {shortened(name)} is {topic.partitions}"
    if beyond := [place for place in topic.found if place >= topic.partitions]:
        raise InputError(f"{where}, and line {topic.found[beyond[0]]} has partition {beyond[0]}")
    if len(topic.found) < topic.partitions:
        raise InputError(f"{where}, and the text has {counted(len(topic.found), 'partition')} of it: it is incomplete")


def _state(fields: Mapping[str, str]) -> RegisteredPartition:
    leader, last = fields["Leader"], fields.get("LastKnownElr", "")
    replicas = _brokers_of(fields["Replicas"])
    if not replicas:
        raise ValueError("it has no replicas")
    return RegisteredPartition(
        replicas,
        _brokers_of(fields["Isr"]),
        NO_LEADER if leader in ("none", "-1") else number(leader),
        adding=_brokers_of(fields.get("Adding Replicas", "")),
        removing=_brokers_of(fields.get("Removing Replicas", "")),
        elr=_brokers_of(fields.get("Elr", "")),
        last_known_elr=(NO_LEADER,) if last == str(NO_LEADER) else _brokers_of(last),
    )


def _brokers_of(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",", MEMBERS_MOST)]
    if len(words) > MEMBERS_MOST:
        raise ValueError(f"more than {MEMBERS_MOST:,} replicas")
    return tuple(number(word) for word in words if word not in ("", "N/A"))


def _brokers(image: ClusterImage) -> None:
    """Brokers that lead, or are in ISRs and in none without a leader, are taken for active, all others for fenced.

    A controller elects a member of the ISR that is active at once.
    """
    states = image.partitions.values()
    idle = {broker for state in states if state.leader == NO_LEADER for broker in state.isr}
    leaders = {state.leader for state in states}
    serving = leaders | ({broker for state in states for broker in state.isr} - idle)
    for state in image.partitions.values():
        for broker in state.replicas:
            image.brokers[broker] = BrokerState(0, "", broker not in serving, False, ())
