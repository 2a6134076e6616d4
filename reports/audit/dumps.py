"""The output of ``kafka-dump-log.sh --cluster-metadata-decoder``, with or without ``--skip-record-metadata``."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from typing import IO, TYPE_CHECKING, Any, Final

from reports.audit.records import CorruptRecordError, MetadataBatch, from_json
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BATCH: Final = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+).*"
    r" partitionLeaderEpoch: (?P<epoch>-?\d+).* isControl: (?P<control>true|false)"
    r".* CreateTime: (?P<time>-?\d+).* compresscodec: (?P<codec>\w+)(?:.* isvalid: (?P<valid>true|false))?"
)
_RECORD: Final = re.compile(r"\| (?:offset: (?P<offset>\d+) .*?)?payload: (?P<payload>\{.*)")
_UNREADABLE: Final = re.compile(r"\| .*Error at (?P<offset>\d+), skipping")
_SNAPSHOT: Final = re.compile(r"Snapshot end offset: (\d+)")
_BEGINS: Final = "Dumping "
_BOOTSTRAP: Final = "KRaft bootstrap snapshot"
NO_SNAPSHOT: Final = -1
"""Of the batches of a segment."""
_NOT_READ: Final = -2
"""Of the batches of ``bootstrap.checkpoint``, which are no part of the log."""
_PACKED: Final[dict[bytes, Callable[[Path], Any]]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
"""First bytes of a compressed file -> its reader."""


LONGEST: Final = 1 << 24
"""Bytes of a line, of which Kafka's tools write at most some thousand."""


def opened(path: Path) -> IO[bytes]:
    """Open a text file that may be compressed with gzip, bzip2 or xz."""
    with path.open("rb") as file:
        first = file.read(6)
    return next((unpack(path) for magic, unpack in _PACKED.items() if first.startswith(magic)), None) or path.open("rb")


def lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """The numbered lines of an open text file.

    Raises:
        InputError: a line is too long for text.
    """
    number = 0
    while raw := file.readline(LONGEST):
        number += 1
        if len(raw) == LONGEST:
            raise InputError(f"{path}, line {number}: longer than {LONGEST:,} bytes; this is no text")
        yield number, raw.decode(errors="replace").rstrip("\r\n")


def parts(path: Path) -> tuple[int | None, list[int]]:
    """The first offset of a dump's segments, None without any, and the offsets after its snapshots.

    Raises:
        InputError: the file is no text.
        StorageError: it cannot be read.
    """
    first: int | None = None
    snapshots: set[int] = set()
    section = NO_SNAPSHOT
    try:
        with opened(path) as file:
            for _, line in lines(path, file):
                if line.startswith(("| ", "baseOffset:")):
                    if section == NO_SNAPSHOT and first is None and (found := _BATCH.match(line)):
                        first = int(found["base"])
                else:
                    section = _section(line, section)
                    if section >= 0:
                        snapshots.add(section)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise StorageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return first, sorted(snapshots)


def _section(line: str, before: int) -> int:
    """Which part of a dump this line begins, or else still the one before: a segment, or the snapshot of an offset."""
    if line.startswith(_BEGINS):
        return NO_SNAPSHOT
    if line.startswith(_BOOTSTRAP):
        return _NOT_READ
    found = _SNAPSHOT.match(line)
    return int(found[1]) if found else before


def read_dump(path: Path, notes: list[str], snapshot: int = NO_SNAPSHOT) -> Iterator[MetadataBatch]:
    """Read the batches of a dump's segments, or of one of its snapshots. Lines that are missing in a batch are reported
    in `notes`.

    Raises:
        InputError: the file is no such dump.
        StorageError: it cannot be read, or Kafka found a corrupt batch.
    """
    batch: MetadataBatch | None = None
    expected = 0
    section = NO_SNAPSHOT
    try:
        with opened(path) as file:
            for number, line in lines(path, file):
                if not line.startswith(("| ", "baseOffset:")):
                    section = _section(line, section)
                elif section != snapshot:
                    continue
                elif found := _BATCH.match(line):
                    yield from _complete(path, batch, expected, notes)
                    if found["codec"].lower() != "none":
                        raise InputError(
                            f"{path}, line {number}: the batch is compressed ({found['codec']}); "
                            "Kafka does not compress its metadata log"
                        )
                    if found["valid"] == "false":
                        raise StorageError(f"{path}, line {number}: the batch is corrupt, says Kafka (isvalid: false)")
                    base = int(found["base"])
                    batch = MetadataBatch(base, int(found["last"]) + 1, int(found["time"]), int(found["epoch"]), [])
                    expected = 0 if found["control"] == "true" else int(found["count"])
                elif batch is not None and expected and (said := _RECORD.match(line)):
                    offset = int(said["offset"] or batch.base_offset + len(batch.records))
                    batch.records.append(_record(path, number, offset, said["payload"]))
                elif unread := _UNREADABLE.match(line):
                    notes.append(f"{path}: Kafka could not decode record {unread['offset']}")
        yield from _complete(path, batch, expected, notes)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise StorageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _record(path: Path, number: int, offset: int, payload: str) -> Any:
    try:
        return from_json(offset, json.loads(payload))
    except (ValueError, CorruptRecordError, AttributeError) as error:
        raise InputError(f"{path}, line {number}: no metadata record: {error}") from None


def _complete(path: Path, batch: MetadataBatch | None, expected: int, notes: list[str]) -> Iterator[MetadataBatch]:
    if batch is None:
        return
    if len(batch.records) < expected:
        missing = expected - len(batch.records)
        notes.append(f"{path}: {missing} of {expected} records of the batch at offset {batch.base_offset} are missing")
    yield batch
