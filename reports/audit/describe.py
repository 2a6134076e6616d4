"""The output of ``kafka-topics.sh --describe``: the state of partitions at one moment, with ELRs from 4.0 on."""

from __future__ import annotations

import lzma
import re
from typing import TYPE_CHECKING, Final

from reports.audit.dumps import lines, opened
from reports.audit.image import CLUSTER_KEYS, TOPIC, BrokerState, ClusterImage, PartitionState
from reports.audit.records import NO_LEADER
from sim.errors import InputError, StorageError
from sim.protocol.kraft.metadata import ELR_FEATURE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FIELD: Final = re.compile(r"(?P<name>[A-Z][A-Za-z ]*?):(?P<value>[^\t]*)(?:\t|$)")
_PARTITION: Final = "Partition"
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
    try:
        with opened(path) as file:
            begin = file.read(_LOOKED_AT).splitlines()
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise StorageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return any(line.lstrip().startswith(b"Topic:") and b"\t" in line for line in begin)


def read(path: Path) -> tuple[ClusterImage, list[str]]:
    """The partitions as an image, and what this form leaves open.

    Raises:
        InputError: a line is malformed.
    """
    image = ClusterImage()
    has_elr = False
    with opened(path) as file:
        for number, text in lines(path, file):
            line = text.lstrip()
            if not line.startswith("Topic:"):
                continue
            fields = {found["name"].strip(): found["value"].strip() for found in _FIELD.finditer(line)}
            topic = fields["Topic"]
            image.topics[topic] = topic
            if _PARTITION not in fields:
                _settings(image, topic, fields.get("Configs", ""))
                continue
            has_elr = has_elr or "Elr" in fields
            try:
                image.partitions[topic, int(fields[_PARTITION])] = _state(fields)
            except (KeyError, ValueError) as error:
                raise InputError(f"{path}, line {number}: no description of a partition: {error}") from None
    image.features[ELR_FEATURE] = int(has_elr)
    _brokers(image)
    notes = ["one moment: how partitions came into their state, and which brokers are fenced, is unknown"]
    if not has_elr:
        notes.append("no ELR is shown: the cluster is older than 4.0, or its description was shortened")
    return image, notes


def _settings(image: ClusterImage, topic: str, configs: str) -> None:
    pairs = dict(pair.partition("=")[::2] for pair in configs.split(",") if "=" in pair)
    image.settings[TOPIC, topic] = {key: pairs[key] for key in CLUSTER_KEYS if key in pairs}


def _state(fields: Mapping[str, str]) -> PartitionState:
    leader = fields["Leader"]
    return PartitionState(
        _brokers_of(fields["Replicas"]),
        _brokers_of(fields["Isr"]),
        NO_LEADER if leader in ("none", "-1") else int(leader),
        adding=_brokers_of(fields.get("Adding Replicas", "")),
        removing=_brokers_of(fields.get("Removing Replicas", "")),
        elr=_brokers_of(fields.get("Elr", "")),
        last_known_elr=_brokers_of(fields.get("LastKnownElr", "")),
    )


def _brokers_of(text: str) -> tuple[int, ...]:
    return tuple(int(broker) for broker in text.split(",") if broker.strip() and broker.strip() != "N/A")


def _brokers(image: ClusterImage) -> None:
    """Brokers that are in an ISR or lead are taken for active, all others for fenced."""
    serving = {broker for state in image.partitions.values() for broker in (*state.isr, state.leader)}
    for state in image.partitions.values():
        for broker in state.replicas:
            image.brokers[broker] = BrokerState(0, "", broker not in serving, False, ())
