"""Metadata records as Kafka stores them: one format for segments, snapshots and dumps.

Fields are named as in Kafka's schemas (metadata/src/main/resources/common/metadata) and in the output of
``kafka-dump-log.sh``; a uuid is text as Kafka prints it. Only fields of the modelled record types are read. Records of
other types, and newer versions of these, are counted by name and never guessed.
"""

from __future__ import annotations

import base64
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.audit.files import shortened
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NO_LEADER: Final = -1
LEADER_UNCHANGED: Final = -2

Fields = dict[str, Any]


class MetadataRecord(NamedTuple):
    """One record.

    Attributes:
        offset: in the metadata log.
        type: Kafka's name, such as ``PARTITION_CHANGE_RECORD``.
        version: of its schema.
        fields: the fields that are read; absent ones have the value None, or the default of their schema.
        is_known: whether `fields` is complete; False for types and versions that are not modelled.
    """

    offset: int
    type: str
    version: int
    fields: Fields
    is_known: bool = True


@dataclass(slots=True)
class MetadataBatch:
    """A batch, which Kafka appends as a whole.

    Attributes:
        base_offset: offset of its first record.
        next_offset: offset after its last record.
        time_ms: when the controller appended it; -1 if the source does not say.
        controller_epoch: epoch of the active controller; -1 if the source does not say.
        records: its metadata records; none in control batches.
        is_control: whether it is a control batch, as at the election of a controller.
    """

    base_offset: int
    next_offset: int
    time_ms: int
    controller_epoch: int
    records: list[MetadataRecord]
    is_control: bool = False


class CorruptRecordError(ValueError):
    """The bytes are no metadata record."""


class Cursor:
    """A position in a buffer of Kafka's flexible encoding (KIP-482)."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else min(end, len(data))

    def varint(self) -> int:
        """An unsigned number of variable length."""
        value = shift = 0
        while True:
            if self.at >= self.end or shift > 63:
                raise CorruptRecordError("a number of variable length has no end")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self) -> int:
        """A signed number of variable length."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, length: int) -> bytes:
        """The next bytes."""
        begin = self.at
        self.at = begin + length
        if length < 0 or self.at > self.end:
            raise CorruptRecordError("a field is longer than its record")
        return self.data[begin : self.at]

    def number(self, form: struct.Struct) -> Any:
        """A number of fixed length."""
        return form.unpack(self.take(form.size))[0]


_INT8, _INT16, _INT32, _INT64 = (struct.Struct(f">{letter}") for letter in "bhiq")


def _string(cursor: Cursor) -> str | None:
    length = cursor.varint()
    return cursor.take(length - 1).decode(errors="replace") if length else None


def _uuid(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(cursor.take(16)).rstrip(b"=").decode()


def _list_of(read: Callable[[Cursor], Any]) -> Callable[[Cursor], list[Any] | None]:
    def read_all(cursor: Cursor) -> list[Any] | None:
        count = cursor.varint()
        return [read(cursor) for _ in range(count - 1)] if count else None

    return read_all


def _skip_tags(cursor: Cursor) -> None:
    for _ in range(cursor.varint()):
        cursor.varint()
        cursor.take(cursor.varint())


def _end_point(cursor: Cursor) -> None:
    """Name, host, port and security protocol, of which none is kept."""
    _string(cursor)
    _string(cursor)
    cursor.take(4)
    _skip_tags(cursor)


def _feature(cursor: Cursor) -> tuple[str | None, int, int]:
    found = _string(cursor), cursor.number(_INT16), cursor.number(_INT16)
    _skip_tags(cursor)
    return found


_READ: Final[Mapping[str, Callable[[Cursor], Any]]] = {
    "bool": lambda cursor: cursor.take(1) != b"\0",
    "int8": lambda cursor: cursor.number(_INT8),
    "int16": lambda cursor: cursor.number(_INT16),
    "int32": lambda cursor: cursor.number(_INT32),
    "int64": lambda cursor: cursor.number(_INT64),
    "string": _string,
    "uuid": _uuid,
    "[]int32": _list_of(lambda cursor: cursor.number(_INT32)),
    "[]uuid": _list_of(_uuid),
    "[]end_point": _list_of(_end_point),
    "[]feature": _list_of(_feature),
}


class _Field(NamedTuple):
    """A field: name, type, first version that has it, number of its tag (None: not tagged), default if absent."""

    name: str
    type: str
    since: int = 0
    tag: int | None = None
    default: Any = None


class _Schema(NamedTuple):
    type: str
    newest: int
    fields: tuple[_Field, ...] = ()


SCHEMAS: Final[Mapping[int, _Schema]] = {
    0: _Schema(
        "REGISTER_BROKER_RECORD",
        4,
        (
            _Field("brokerId", "int32"),
            _Field("isMigratingZkBroker", "bool", 2),
            _Field("incarnationId", "uuid"),
            _Field("brokerEpoch", "int64"),
            _Field("endPoints", "[]end_point"),
            _Field("features", "[]feature"),
            _Field("rack", "string"),
            _Field("fenced", "bool"),
            _Field("inControlledShutdown", "bool", 1, default=False),
            _Field("logDirs", "[]uuid", 3, 0),
            _Field("cordonedLogDirs", "[]uuid", 4, 1),
        ),
    ),
    1: _Schema("UNREGISTER_BROKER_RECORD", 0, (_Field("brokerId", "int32"), _Field("brokerEpoch", "int64"))),
    2: _Schema("TOPIC_RECORD", 0, (_Field("name", "string"), _Field("topicId", "uuid"))),
    3: _Schema(
        "PARTITION_RECORD",
        2,
        (
            _Field("partitionId", "int32"),
            _Field("topicId", "uuid"),
            _Field("replicas", "[]int32"),
            _Field("isr", "[]int32"),
            _Field("removingReplicas", "[]int32"),
            _Field("addingReplicas", "[]int32"),
            _Field("leader", "int32"),
            _Field("leaderRecoveryState", "int8", 0, 0, 0),
            _Field("leaderEpoch", "int32"),
            _Field("partitionEpoch", "int32"),
            _Field("directories", "[]uuid", 1),
            _Field("eligibleLeaderReplicas", "[]int32", 2, 1),
            _Field("lastKnownElr", "[]int32", 2, 2),
        ),
    ),
    4: _Schema(
        "CONFIG_RECORD",
        0,
        (
            _Field("resourceType", "int8"),
            _Field("resourceName", "string"),
            _Field("name", "string"),
            _Field("value", "string"),
        ),
    ),
    5: _Schema(
        "PARTITION_CHANGE_RECORD",
        2,
        (
            _Field("partitionId", "int32"),
            _Field("topicId", "uuid"),
            _Field("isr", "[]int32", 0, 0),
            _Field("leader", "int32", 0, 1, LEADER_UNCHANGED),
            _Field("replicas", "[]int32", 0, 2),
            _Field("removingReplicas", "[]int32", 0, 3),
            _Field("addingReplicas", "[]int32", 0, 4),
            _Field("leaderRecoveryState", "int8", 0, 5, -1),
            _Field("directories", "[]uuid", 1, 8),
            _Field("eligibleLeaderReplicas", "[]int32", 2, 6),
            _Field("lastKnownElr", "[]int32", 2, 7),
        ),
    ),
    7: _Schema("FENCE_BROKER_RECORD", 0, (_Field("id", "int32"), _Field("epoch", "int64"))),
    8: _Schema("UNFENCE_BROKER_RECORD", 0, (_Field("id", "int32"), _Field("epoch", "int64"))),
    9: _Schema("REMOVE_TOPIC_RECORD", 0, (_Field("topicId", "uuid"),)),
    12: _Schema("FEATURE_LEVEL_RECORD", 0, (_Field("name", "string"), _Field("featureLevel", "int16"))),
    17: _Schema(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        3,
        (
            _Field("brokerId", "int32"),
            _Field("brokerEpoch", "int64"),
            _Field("fenced", "int8", 0, 0, 0),
            _Field("inControlledShutdown", "int8", 1, 1, 0),
            _Field("logDirs", "[]uuid", 2, 2),
            _Field("cordonedLogDirs", "[]uuid", 3, 3),
        ),
    ),
    20: _Schema("NO_OP_RECORD", 0),
    23: _Schema("BEGIN_TRANSACTION_RECORD", 0),
    24: _Schema("END_TRANSACTION_RECORD", 0),
    25: _Schema("ABORT_TRANSACTION_RECORD", 0),
    28: _Schema("CLEAR_ELR_RECORD", 0, (_Field("topicName", "string"),)),
}
"""Number of a record type -> its schema, of Kafka 4.3."""

BY_TYPE: Final = {schema.type: schema for schema in SCHEMAS.values()}
OTHERS: Final[Mapping[int, str]] = {
    10: "DELEGATION_TOKEN_RECORD",
    11: "USER_SCRAM_CREDENTIAL_RECORD",
    14: "CLIENT_QUOTA_RECORD",
    15: "PRODUCER_IDS_RECORD",
    18: "ACCESS_CONTROL_ENTRY_RECORD",
    19: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    21: "ZK_MIGRATION_STATE_RECORD",
    22: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    26: "REMOVE_DELEGATION_TOKEN_RECORD",
    27: "REGISTER_CONTROLLER_RECORD",
}
"""Types of records that say nothing about replication."""


def decode(offset: int, data: bytes) -> MetadataRecord:
    """Decode the value of one record of the metadata log.

    Raises:
        CorruptRecordError: it is none.
    """
    cursor = Cursor(data)
    frame = cursor.varint()
    if frame != 1:
        raise CorruptRecordError(f"the frame of record {offset} has version {frame}, not 1")
    number, version = cursor.varint(), cursor.varint()
    schema = SCHEMAS.get(number)
    if schema is None:
        return MetadataRecord(offset, OTHERS.get(number, f"type {number}"), version, {}, number in OTHERS)
    if version > schema.newest:
        return MetadataRecord(offset, schema.type, version, {}, is_known=False)
    return MetadataRecord(offset, schema.type, version, _checked(offset, schema, _fields(cursor, schema, version)))


def _fields(cursor: Cursor, schema: _Schema, version: int) -> Fields:
    found: Fields = {}
    tagged = {}
    for name, kind, since, tag, default in schema.fields:
        if tag is None and version >= since:
            found[name] = _READ[kind](cursor)
        else:
            found[name] = default
            if tag is not None and version >= since:
                tagged[tag] = name, kind
    for _ in range(cursor.varint()):
        tag, length = cursor.varint(), cursor.varint()
        end = cursor.at + length
        if tag in tagged:
            name, kind = tagged[tag]
            found[name] = _READ[kind](Cursor(cursor.data, cursor.at, end))
        cursor.take(length)
    return found


def from_json(offset: int, payload: Mapping[str, Any]) -> MetadataRecord:
    """A record from the JSON that ``kafka-dump-log.sh`` prints, without tagged fields at their default.

    Raises:
        CorruptRecordError: a field that every version has is missing.
    """
    kind, version, data = payload.get("type"), payload.get("version", 0), payload.get("data") or {}
    if not isinstance(kind, str) or not _is_int(version, 16) or version < 0 or not isinstance(data, dict):
        raise CorruptRecordError(f"record {offset} has no type, version and data")
    schema = BY_TYPE.get(kind)
    if schema is None or version > schema.newest:
        return MetadataRecord(offset, kind, version, {}, schema is None and kind in OTHERS.values())
    fields = {field.name: data.get(field.name, field.default) for field in schema.fields}
    missing = [
        field.name for field in schema.fields if field.tag is None and field.since == 0 and field.name not in data
    ]
    if missing:
        raise CorruptRecordError(f"record {offset} has no field {missing[0]}")
    return MetadataRecord(offset, kind, version, _checked(offset, schema, fields))


# Limits, the same for each form of a log.

MEMBERS_MOST: Final = 250
"""Replicas of a partition, or log directories of a broker. Checks compare each with each."""
_UUID: Final = re.compile(r"[\w-]{22}", re.ASCII)
_NULLABLE: Final = ("rack", "value")
"""Fields of all versions that may be null."""


def _is_int(value: object, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1


def _is_list(value: object, is_member: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and len(value) <= MEMBERS_MOST and all(map(is_member, value))


_IS: Final[Mapping[str, Callable[[object], bool]]] = {
    "bool": lambda value: isinstance(value, bool),
    "int8": lambda value: _is_int(value, 8),
    "int16": lambda value: _is_int(value, 16),
    "int32": lambda value: _is_int(value, 32),
    "int64": lambda value: _is_int(value, 64),
    "string": lambda value: isinstance(value, str),
    "uuid": lambda value: isinstance(value, str) and _UUID.fullmatch(value) is not None,
    "[]int32": lambda value: _is_list(value, _IS["int32"]),
    "[]uuid": lambda value: _is_list(value, _IS["uuid"]),
    "[]end_point": lambda value: isinstance(value, list),
    "[]feature": lambda value: isinstance(value, list),
}
"""Type of a field -> whether a value is of it."""


def _checked(offset: int, schema: _Schema, fields: Fields) -> Fields:
    """The fields of a record.

    Raises:
        CorruptRecordError: one of them is of another type, or no Kafka writes such a value.
    """
    for field in schema.fields:
        value = fields[field.name]
        absent = value is None and (field.default is None and (field.tag is not None or field.since > 0))
        if not absent and not (value is None and field.name in _NULLABLE) and not _IS[field.type](value):
            most = f", or more than {MEMBERS_MOST:,}" if isinstance(value, list) else ""
            raise CorruptRecordError(f"record {offset}: {field.name} = {shortened(value)} is no {field.type}{most}")
    if "replicas" in fields and fields["replicas"] is not None and not fields["replicas"]:
        raise CorruptRecordError(f"record {offset} has no replicas")
    if (
        schema.type == "CONFIG_RECORD"
        and fields["value"] is not None
        and not is_setting(fields["name"], fields["value"])
    ):
        raise CorruptRecordError(f"record {offset}: {fields['name']} = {shortened(fields['value'])} is no value of it")
    return fields


def is_setting(key: str, value: str) -> bool:
    """Whether a text is a value of a key, if an audit uses the key."""
    if key == MIN_ISR:
        return value.isascii() and value.isdigit() and len(value) <= 10 and 0 < int(value) < 1 << 31
    return key != UNCLEAN_ELECTION or value in ("true", "false")
