"""Metadata logs for tests: records as Kafka encodes them, in batches, segments, snapshots, and as a dump."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google_crc32c import value as crc32c

from highwater.lab.audit.records import BY_TYPE, SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NUMBERS = {schema.type: number for number, schema in SCHEMAS.items()}
TOPIC_ID = "zgf6HJciR8eg93g0qO1O6Q"
Json = dict[str, Any]


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value: str | None) -> bytes:
    return b"\0" if value is None else varint(len(value.encode()) + 1) + value.encode()


def uuid(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")


def many(values: list[Any] | None, one: Any) -> bytes:
    return b"\0" if values is None else varint(len(values) + 1) + b"".join(map(one, values))


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


WRITE: dict[str, Any] = {
    "bool": lambda value: bytes([bool(value)]),
    "int8": lambda value: struct.pack(">b", value),
    "int16": lambda value: struct.pack(">h", value),
    "int32": int32,
    "int64": lambda value: struct.pack(">q", value),
    "string": text,
    "uuid": uuid,
    "[]int32": lambda values: many(values, int32),
    "[]uuid": lambda values: many(values, uuid),
    "[]end_point": lambda values: many(values, lambda one: text(one) + text("localhost") + b"\x23\x84\0\0" + b"\0"),
    "[]feature": lambda values: many(values, lambda one: text(one) + struct.pack(">hh", 1, 2) + b"\0"),
}


def encoded(kind: str, data: Json, version: int | None = None) -> bytes:
    """A record's value."""
    schema = BY_TYPE[kind]
    version = schema.newest if version is None else version
    out = varint(1) + varint(NUMBERS[kind]) + varint(version)
    tags = []
    for name, form, since, tag, default in schema.fields:
        value = data.get(name, default)
        if version < since:
            continue
        if tag is None:
            out += WRITE[form](value)
        elif value != default:
            body = WRITE[form](value)
            tags.append((tag, varint(tag) + varint(len(body)) + body))
    return out + varint(len(tags)) + b"".join(body for _, body in sorted(tags))


def batch(base: int, values: list[bytes], *, time_ms: int = 0, epoch: int = 1, attributes: int = 0) -> bytes:
    """A batch of records."""
    records = b""
    for delta, value in enumerate(values):
        body = b"\0" + zigzag(0) + zigzag(delta) + zigzag(-1) + zigzag(len(value)) + value + zigzag(0)
        records += zigzag(len(body)) + body
    body = struct.pack(">hiqqqhii", attributes, len(values) - 1, time_ms, time_ms, -1, -1, -1, len(values)) + records
    header = struct.pack(">ibI", epoch, 2, crc32c(body))
    return struct.pack(">qi", base, len(header) + len(body)) + header + body


@dataclass
class Written:
    """A log under construction: batches of (type, data)."""

    batches: list[list[tuple[str, Json]]] = field(default_factory=list)
    offset: int = 0

    def add(self, *records: tuple[str, Json]) -> int:
        """Append a batch; returns the offset of its first record."""
        first = self.offset
        self.batches.append(list(records))
        self.offset += len(records)
        return first

    def bytes(self, first: int = 0) -> bytes:
        """The batches from an offset on."""
        out, base = b"", 0
        for records in self.batches:
            if base >= first:
                out += batch(base, [encoded(kind, data) for kind, data in records], time_ms=1_700_000_000_000 + base)
            base += len(records)
        return out

    def segment(self, folder: Path, first: int = 0) -> Path:
        """Write a folder with one segment."""
        place = folder / "__cluster_metadata-0"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{first:020}.log").write_bytes(self.bytes(first))
        return place

    def dump(self, file: Path) -> Path:
        """Write what kafka-dump-log.sh prints."""
        lines, base = ["Dumping somewhere", "Log starting offset: 0"], 0
        for records in self.batches:
            last = base + len(records) - 1
            lines.append(
                f"baseOffset: {base} lastOffset: {last} count: {len(records)} baseSequence: -1 lastSequence: -1 "
                f"producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 1 isTransactional: false isControl: false "
                f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: {1_700_000_000_000 + base} size: 1 "
                "magic: 2 compresscodec: none crc: 1 isvalid: true"
            )
            lines += [_line(base + place, kind, data) for place, (kind, data) in enumerate(records)]
            base += len(records)
        file.write_text("\n".join(lines) + "\n")
        return file


def _line(offset: int, kind: str, data: Json) -> str:
    payload = json.dumps({"type": kind, "version": BY_TYPE[kind].newest, "data": data})
    return (
        f"| offset: {offset} CreateTime: 1700000000000 keySize: -1 valueSize: 1 sequence: -1 headerKeys: [] "
        f"payload: {payload}"
    )


# Records.


def registered(broker: int, epoch: int, incarnation: str = "wmohUkrPSLWuCj1HfDyhMg") -> tuple[str, Json]:
    data = {
        "brokerId": broker,
        "isMigratingZkBroker": False,
        "incarnationId": incarnation,
        "brokerEpoch": epoch,
        "endPoints": ["PLAINTEXT"],
        "features": ["metadata.version"],
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
    }
    return "REGISTER_BROKER_RECORD", data


def unfenced(broker: int, epoch: int) -> tuple[str, Json]:
    return "BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": broker, "brokerEpoch": epoch, "fenced": -1}


def fenced(broker: int, epoch: int) -> tuple[str, Json]:
    return "BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": broker, "brokerEpoch": epoch, "fenced": 1}


def topic(name: str = "orders", topic_id: str = TOPIC_ID) -> tuple[str, Json]:
    return "TOPIC_RECORD", {"name": name, "topicId": topic_id}


def partition(replicas: list[int], number: int = 0, **other: Any) -> tuple[str, Json]:
    data = {
        "partitionId": number,
        "topicId": TOPIC_ID,
        "replicas": replicas,
        "isr": replicas,
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": replicas[0],
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": [],
    }
    return "PARTITION_RECORD", {**data, **other}


def change(number: int = 0, **fields: Any) -> tuple[str, Json]:
    return "PARTITION_CHANGE_RECORD", {"partitionId": number, "topicId": TOPIC_ID, **fields}


def config(key: str, value: str | None, kind: int = 4, name: str = "") -> tuple[str, Json]:
    return "CONFIG_RECORD", {"resourceType": kind, "resourceName": name, "name": key, "value": value}


def feature(name: str, level: int) -> tuple[str, Json]:
    return "FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": level}


def begun(replicas: Iterable[int] = (1, 2, 3), *, min_isr: int = 2, level: int = 30) -> Written:
    """Brokers 1 to 3, unfenced, and a partition on them."""
    log = Written()
    log.add(
        feature("metadata.version", level),
        feature("eligible.leader.replicas.version", 1),
        config("min.insync.replicas", str(min_isr)),
    )
    for broker in (1, 2, 3):
        log.add(registered(broker, log.offset))
    for place, broker in enumerate((1, 2, 3)):
        log.add(unfenced(broker, 3 + place))
    log.add(topic(), partition(list(replicas)))
    return log
