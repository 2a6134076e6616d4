"""The output of ``kafka-dump-log.sh --cluster-metadata-decoder``, with or without ``--skip-record-metadata``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.files import lines, shortened
from highwater.lab.audit.notes import Notes
from highwater.lab.audit.records import CorruptRecordError, MetadataBatch, MetadataRecord, from_json
from scenarios import paths
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BEGIN: Final = "baseOffset:"
_HEADER_MOST: Final = 2_000
"""Characters of the line of a batch that are read: twice what Kafka prints."""
_INT64_MAX: Final = (1 << 63) - 1
_RECORD: Final = re.compile(r"\| (?:offset: (?P<offset>\d{1,19}) )?")
_PAYLOAD: Final = "payload: {"
_UNREADABLE: Final = re.compile(r"Error at (?P<offset>\d{1,19}), skipping")
_SNAPSHOT: Final = re.compile(r"Snapshot end offset: (\d{1,18})")
_BEGINS: Final = "Dumping "
_BOOTSTRAP: Final = "KRaft bootstrap snapshot"
NO_SNAPSHOT: Final = -1
"""Of the batches of a segment."""
_NOT_READ: Final = -2
"""Of the batches of ``bootstrap.checkpoint``, which are no part of the log."""


def parts(path: Path) -> tuple[int | None, list[int]]:
    """The first offset of a dump's segments, None without any, and the offsets after its snapshots.

    Raises:
        InputError: the file is no text.
        StorageError: it cannot be read.
    """
    first: int | None = None
    snapshots: set[int] = set()
    section = NO_SNAPSHOT
    for number, line in lines(path):
        if line.startswith(("| ", _BEGIN)):
            if section == NO_SNAPSHOT and first is None and line.startswith(_BEGIN):
                first = _batch(path, number, line).base_offset
        else:
            section = _section(line, section)
            if section >= 0:
                snapshots.add(section)
    return first, sorted(snapshots)


def _section(line: str, before: int) -> int:
    """Which part of a dump this line begins, or else still the one before: a segment, or the snapshot of an offset."""
    if line.startswith(_BEGINS):
        return NO_SNAPSHOT
    if line.startswith(_BOOTSTRAP):
        return _NOT_READ
    found = _SNAPSHOT.match(line)
    return int(found[1]) if found else before


def read_dump(path: Path, notes: Notes, snapshot: int = NO_SNAPSHOT) -> Iterator[MetadataBatch]:
    """Read the batches of a dump's segments, or of one of its snapshots. Lines that are missing in a batch are reported
    in `notes`.

    Raises:
        InputError: the file is no such dump.
        StorageError: it cannot be read, or Kafka found a corrupt batch.
    """
    batch: MetadataBatch | None = None
    expected = 0
    section = NO_SNAPSHOT
    for number, line in lines(path):
        if not line.startswith(("| ", _BEGIN)):
            section = _section(line, section)
        elif section != snapshot:
            continue
        elif line.startswith(_BEGIN):
            yield from _complete(path, batch, expected, notes)
            batch = _batch(path, number, line)
            expected = 0 if batch.is_control else batch.next_offset - batch.base_offset
        elif batch is not None and expected and (at := line.find(_PAYLOAD)) >= 0:
            if len(batch.records) == expected:
                raise InputError(f"{path}, line {number}: the batch at offset {batch.base_offset} has no more records")
            named = _RECORD.match(line)
            offset = int((named and named["offset"]) or batch.base_offset + len(batch.records))
            batch.records.append(_record(path, number, offset, line[at + len(_PAYLOAD) - 1 :]))
        elif unread := _UNREADABLE.search(line):
            notes.gap(f"{path}: Kafka could not decode record {unread['offset']}")
    yield from _complete(path, batch, expected, notes)


def _batch(path: Path, number: int, line: str) -> MetadataBatch:
    """The batch that a line begins, without its records.

    Raises:
        InputError: it is no line of a batch that Kafka prints, or the batch is compressed.
        StorageError: Kafka found it corrupt.
    """
    where = f"{path}, line {number}"
    words = line[:_HEADER_MOST].split(" ")
    fields = dict(zip(words[::2], words[1::2], strict=False))
    base, last, count, epoch, time_ms = (
        _int64(where, fields, name)
        for name in ("baseOffset:", "lastOffset:", "count:", "partitionLeaderEpoch:", "CreateTime:")
    )
    codec = fields.get("compresscodec:", "none")
    if codec.lower() != "none":
        raise InputError(
            f"{where}: the batch is compressed ({shortened(codec)}); Kafka does not compress its metadata log"
        )
    if fields.get("isvalid:") == "false":
        raise StorageError(f"{where}: the batch is corrupt, says Kafka (isvalid: false)")
    if base < 0 or count != last - base + 1 or count < 1:
        raise StorageError(f"{where}: the batch is corrupt: {count} records from offset {base} to {last}")
    return MetadataBatch(base, last + 1, time_ms, epoch, [], is_control=fields.get("isControl:") == "true")


def _int64(where: str, fields: Mapping[str, str], name: str) -> int:
    text = fields.get(name, "")
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 20:
        raise InputError(f"{where}: {name} {shortened(text)} is no number: this is no batch that Kafka prints")
    found = int(text)
    if abs(found) > _INT64_MAX:
        raise InputError(f"{where}: {name} {text} is beyond 64 bits")
    return found


def _record(path: Path, number: int, offset: int, payload: str) -> MetadataRecord:
    try:
        return from_json(offset, paths.parse_json(payload.encode()))
    except (CorruptRecordError, InputError) as error:
        raise InputError(f"{path}, line {number}: no metadata record: {error}") from None


def _complete(path: Path, batch: MetadataBatch | None, expected: int, notes: Notes) -> Iterator[MetadataBatch]:
    if batch is None:
        return
    if len(batch.records) < expected:
        missing = expected - len(batch.records)
        notes.gap(f"{path}: {missing} of {expected} records of the batch at offset {batch.base_offset} are missing")
    yield batch
