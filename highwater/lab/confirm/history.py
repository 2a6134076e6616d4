"""The control plane's decisions, read from KRaft's metadata log or ZooKeeper's transaction log.

Both hold every change, in order and with its time. Polling the state by requests could miss some.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.files import frames
from sim.history import steps as kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from highwater.lab.confirm.partitions import KafkaPartition
    from sim.history.trace import Shown

NOBODY: Final = -1
_LOG_OVERHEAD: Final = 12


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """The partition's state in the control plane; ISR and ELRs are in order of broker ids, `leader` is -1 for none."""

    leader: int = NOBODY
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()

    def steps_from(self, before: PartitionSnapshot | None) -> list[Shown]:
        """The steps by which a trace shows the change to this state."""
        steps: list[Shown] = []
        epoch = self.leader_epoch
        if before is None or self.leader != before.leader:
            steps.append({"step": kinds.ELECTED.name, "broker": max(self.leader, 0), "leader_epoch": epoch})
        if before is None:
            return steps
        if self.isr != before.isr:
            steps.append({"step": kinds.ISR.name, "isr": list(self.isr), "leader_epoch": epoch})
        if (self.elr, self.last_known_elr) != (before.elr, before.last_known_elr):
            known = {"elr": list(self.elr), "last_known_elr": list(self.last_known_elr)}
            steps.append({"step": kinds.ELR.name, **known, "leader_epoch": epoch})
        return steps


class ControlPlaneHistory(ABC):
    """Reads the log from where the last poll ended.

    Args:
        partitions: those whose states are read.

    Attributes:
        controller: the broker that is controller; 0 for none, or KRaft's.
        topic_ids: topic -> its id, once it exists, in KRaft.
    """

    def __init__(self, partitions: Sequence[KafkaPartition]) -> None:
        self._partitions = {(partition.topic, partition.number): partition for partition in partitions}
        self._states: dict[str, list[PartitionSnapshot]] = {partition.log: [] for partition in partitions}
        self._first = partitions[0]
        self.controller = 0
        self.topic_ids: dict[str, Any] = {}
        self._done: dict[Path, int] = {}
        """File -> how far it was read."""

    @property
    def states(self) -> list[PartitionSnapshot]:
        """All states of the first partition, in order."""
        return self.states_of(self._first)

    def states_of(self, partition: KafkaPartition) -> list[PartitionSnapshot]:
        """All states of a partition, in order."""
        return self._states[partition.log]

    def _changed_to(self, partition: KafkaPartition, state: PartitionSnapshot) -> list[Shown]:
        """Add a state of a partition; return the steps by which a trace shows the change."""
        states = self.states_of(partition)
        before = states[-1] if states else None
        states.append(state)
        return [{**step, **partition.tag} for step in state.steps_from(before)]

    @abstractmethod
    def poll(self) -> list[Shown]:
        """Return the steps since the last poll."""


# KRaft.


class MetadataLogReads(ControlPlaneHistory):
    """Reads of partitions in the metadata log of a controller, its folder ``__cluster_metadata-0``.

    The release's jars contain the schemas of its records.
    """

    def __init__(self, folder: Path, partitions: Sequence[KafkaPartition], jars: Sequence[Path]) -> None:
        super().__init__(partitions)
        self._folder = folder
        self._topics = {partition.topic for partition in partitions}
        self._schemas = _schemas(tuple(jars))
        self._epoch = -1

    def poll(self) -> list[Shown]:
        steps: list[Shown] = []
        for segment in sorted(self._folder.glob("[0-9]*.log")):
            data = segment.read_bytes()
            for start, end, _ in frames(data, self._done.get(segment, 0)):
                self._done[segment] = end
                steps += self._committed(data[start:end])
        return steps

    def _committed(self, data: bytes) -> list[Shown]:
        """Apply a committed batch; return its steps."""
        from kafka.record import MemoryRecords

        batch: Any = MemoryRecords(data).next_batch()
        steps: list[Shown] = []
        if batch.leader_epoch != self._epoch:
            if self._epoch >= 0:
                steps.append({"step": kinds.CONTROLLER.name, "broker": 0})
            self._epoch = batch.leader_epoch
        if batch.is_control_batch:
            steps += self._control(batch)
        else:
            for record in batch:
                steps += self._applied(record.value)
        return steps

    def _control(self, batch: Any) -> list[Shown]:  # noqa: ARG002 - for several controllers
        """The steps of a committed batch of the quorum's own."""
        return []

    def _applied(self, data: bytes) -> list[Shown]:
        name, fields = self._decoded(data)
        if name == "TopicRecord" and fields["name"] in self._topics:
            self.topic_ids[fields["name"]] = fields["topic_id"]
        elif name in ("PartitionRecord", "PartitionChangeRecord"):
            topic = next((topic for topic, its_id in self.topic_ids.items() if its_id == fields["topic_id"]), "")
            partition = self._partitions.get((topic, fields["partition_id"]))
            return [] if partition is None else self._partition(partition, name, fields)
        elif name == "ClearElrRecord":
            return self._without_elr(fields["topic_name"])
        elif name == "RegisterBrokerRecord":
            return [{"step": kinds.REGISTERED.name, "broker": fields["broker_id"]}]
        elif name in ("UnfenceBrokerRecord", "FenceBrokerRecord"):
            return [_fencing(fields["id"], fenced=name.startswith("Fence"))]
        elif name == "BrokerRegistrationChangeRecord" and fields.get("fenced"):
            return [_fencing(fields["broker_id"], fenced=fields["fenced"] > 0)]
        return []

    def _without_elr(self, topic: str) -> list[Shown]:
        """Clear the ELRs of a topic, or of all topics if it is empty."""
        steps = []
        for partition in self._partitions.values():
            before = self.states_of(partition)[-1:]
            if topic in ("", partition.topic) and before and (before[0].elr or before[0].last_known_elr):
                steps += self._changed_to(partition, replace(before[0], elr=(), last_known_elr=()))
        return steps

    def _partition(self, partition: KafkaPartition, name: str, fields: dict[str, Any]) -> list[Shown]:
        states = self.states_of(partition)
        old = states[-1] if states else PartitionSnapshot()
        names = {"isr": "isr", "elr": "eligible_leader_replicas", "last_known_elr": "last_known_elr"}
        given = {key: fields.get(field) for key, field in names.items()}
        changed: dict[str, Any] = {key: tuple(sorted(value)) for key, value in given.items() if value is not None}
        leader = fields.get("leader")
        if name == "PartitionRecord":
            changed |= {"leader": leader, "leader_epoch": fields["leader_epoch"]}
        elif leader is not None and leader != -2:
            changed |= {"leader": leader, "leader_epoch": old.leader_epoch + 1}
        if fields.get("replicas") is not None:
            changed["replicas"] = tuple(fields["replicas"])
        return self._changed_to(partition, replace(old, **changed))

    def _decoded(self, data: bytes) -> tuple[str, dict[str, Any]]:
        _, at = varint(data, 0)  # Version of the frame.
        key, at = varint(data, at)
        version, at = varint(data, at)
        name, schema = self._schemas.get(key, ("", None))
        if schema is None:
            return name, {}
        return name, schema.decode(io.BytesIO(data[at:]), version=version, compact=True, tagged=True)


def _fencing(broker: int, *, fenced: bool) -> Shown:
    return {"step": kinds.SESSION_END.name if fenced else kinds.UNFENCED.name, "broker": broker}


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


@cache
def _schemas(jars: tuple[Path, ...]) -> dict[int, tuple[str, Any]]:
    """Type number of a metadata record -> its name and reader, from the release's own schemas."""
    from kafka.protocol.schemas import StructField

    found = {}
    for text in schema_texts(jars, "common/metadata/"):
        schema = json.loads(re.sub(r"(?m)^\s*//.*\n", "", text))
        if schema["type"] == "metadata":
            found[schema["apiKey"]] = (schema["name"], StructField(schema) if schema["fields"] else None)
    return found


def schema_texts(jars: Iterable[Path], folder: str) -> Iterator[str]:
    """Kafka's message schemas, from its jars."""
    for jar in jars:
        with zipfile.ZipFile(jar) as opened:
            for name in opened.namelist():
                if name.startswith(folder) and name.endswith(".json"):
                    yield opened.read(name).decode()


# ZooKeeper.


_CREATE: Final = (1, 15, 19, 21)
"""Kinds of transactions that create a znode: create, create2, container, with a time to live."""
_DELETE: Final = 2
_SET_DATA: Final = 5
_CLOSE_SESSION: Final = -11
_MULTI: Final = 14
_FILE_HEADER: Final = 16


class ZooKeeperHistory(ControlPlaneHistory):
    """Reads of partitions in the transaction log of a ZooKeeper, its folder ``version-2``.

    A file holds a header of 16 bytes, then each transaction as checksum (8 bytes), length (4), header (session, cxid,
    zxid, time, kind) and body, and a byte ``B``; zeros fill it up (FileTxnLog).
    """

    def __init__(self, folder: Path, partitions: Sequence[KafkaPartition]) -> None:
        super().__init__(partitions)
        self._folder = folder
        self._at = {
            f"/brokers/topics/{topic}/partitions/{number}/state": partition
            for (topic, number), partition in self._partitions.items()
        }
        self._sessions: dict[int, set[str]] = {}
        self._replicas: dict[str, tuple[int, ...]] = {}

    def poll(self) -> list[Shown]:
        steps: list[Shown] = []
        for path in sorted(self._folder.glob("log.*"), key=lambda one: int(one.name.partition(".")[2], 16)):
            done = self._done.get(path, _FILE_HEADER)
            with path.open("rb") as file:
                file.seek(done)
                data = file.read()
            for body, end in _transactions(data):
                self._done[path] = done + end
                session, _, _, _, kind = struct.unpack_from(">qiqqi", body)
                steps += self._applied(kind, session, body[32:])
        return steps

    def _applied(self, kind: int, session: int, body: bytes) -> list[Shown]:
        if kind in _CREATE:
            path, at = _buffer(body, 0)
            data, at = _buffer(body, at)
            (acls,) = struct.unpack_from(">i", body, at)
            at += 4
            for _ in range(max(acls, 0)):
                _, at = _buffer(body, at + 4)
                _, at = _buffer(body, at)
            ephemeral = kind in _CREATE[:2] and at < len(body) and body[at] == 1
            return self._created(path.decode(), data, session if ephemeral else 0)
        if kind == _DELETE:
            return self._deleted(_buffer(body, 0)[0].decode())
        if kind == _SET_DATA:
            path, at = _buffer(body, 0)
            data, at = _buffer(body, at)
            return self._changed(path.decode(), data)
        if kind == _CLOSE_SESSION:
            return [step for path in sorted(self._sessions.pop(session, ())) for step in self._deleted(path)]
        if kind == _MULTI:
            return self._several(session, body)
        return []

    def _several(self, session: int, body: bytes) -> list[Shown]:
        (count,) = struct.unpack_from(">i", body)
        at, steps = 4, []
        for _ in range(count):
            (kind,) = struct.unpack_from(">i", body, at)
            part, at = _buffer(body, at + 4)
            steps += self._applied(kind, session, part)
        return steps

    def _created(self, path: str, data: bytes, session: int) -> list[Shown]:
        if session:
            self._sessions.setdefault(session, set()).add(path)
        if path.startswith("/brokers/ids/"):
            return [{"step": kinds.REGISTERED.name, "broker": int(path.rpartition("/")[2])}]
        if path == "/controller":
            self.controller = json.loads(data)["brokerid"]
            return [{"step": kinds.CONTROLLER.name, "broker": self.controller}]
        return self._changed(path, data)

    def _changed(self, path: str, data: bytes) -> list[Shown]:
        for (topic, number), partition in self._partitions.items():
            if path == f"/brokers/topics/{topic}":
                self._replicas[partition.name] = tuple(json.loads(data)["partitions"][str(number)])
        changed = self._at.get(path)
        if changed is None:
            return []
        told = json.loads(data)
        isr, replicas = tuple(sorted(told["isr"])), self._replicas.get(changed.name, ())
        state = PartitionSnapshot(told["leader"], told["leader_epoch"], isr, replicas=replicas)
        return self._changed_to(changed, state)

    def _deleted(self, path: str) -> list[Shown]:
        for paths in self._sessions.values():
            paths.discard(path)
        if path.startswith("/brokers/ids/"):
            return [{"step": kinds.SESSION_END.name, "broker": int(path.rpartition("/")[2])}]
        if path == "/controller":
            self.controller = 0
        return []


def _transactions(data: bytes) -> Iterator[tuple[bytes, int]]:
    at = 0
    while at + _LOG_OVERHEAD <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        end = at + _LOG_OVERHEAD + length + 1
        if length <= 0 or end > len(data) or data[end - 1] != ord("B"):
            return
        yield data[at + _LOG_OVERHEAD : end - 1], end
        at = end


def _buffer(data: bytes, at: int) -> tuple[bytes, int]:
    """A string or buffer: its length (-1: none), then its bytes."""
    (length,) = struct.unpack_from(">i", data, at)
    length = max(length, 0)
    return data[at + 4 : at + 4 + length], at + 4 + length
