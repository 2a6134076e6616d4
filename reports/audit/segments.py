"""Segments and snapshots of a metadata log, read batch by batch and never written.

Kafka may append to the folder meanwhile: an incomplete last batch is left for the next reading. Kafka:
DefaultRecordBatch, DefaultRecord, Snapshots.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c

from reports.audit.records import CorruptRecordError, Cursor, MetadataBatch, decode
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENT: Final = re.compile(r"(?P<offset>[0-9]{20})\.log")
SNAPSHOT: Final = re.compile(r"(?P<offset>[0-9]{20})-(?P<epoch>[0-9]{10})\.checkpoint")
"""Its name holds the offset after the last record that it includes, and that record's epoch."""
_OVERHEAD: Final = struct.Struct(">qi")
"""Base offset and length of a batch."""
_HEADER: Final = struct.Struct(">ibIhiqqqhii")
"""Leader epoch, magic, checksum, attributes, last offset delta, first and last time stamp, producer id, epoch and
sequence, number of records."""
_MAGIC: Final = 2
_CHECKED: Final = 9
"""The checksum, CRC-32C, covers a batch from this byte of `_HEADER` on: its attributes and all after."""
_LARGEST: Final = 1 << 30
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CONTROL: Final = 0x20
_CODEC: Final = 0x07


def read_batches(path: Path) -> Iterator[MetadataBatch]:
    """Read the batches of a segment or snapshot.

    Raises:
        InputError: this is no metadata log.
        StorageError: the file cannot be read, or a batch in it is corrupt.
    """
    try:
        with path.open("rb") as file:
            position = 0
            while len(overhead := file.read(_OVERHEAD.size)) == _OVERHEAD.size:
                base_offset, length = _OVERHEAD.unpack(overhead)
                if length == 0 and base_offset == 0:
                    return  # The unused end of a preallocated file.
                if not _HEADER.size <= length <= _LARGEST or base_offset < 0:
                    raise StorageError(f"{path}: no batch of records at byte {position}")
                data = file.read(length)
                if len(data) < length:
                    return
                yield _batch(path, base_offset, data)
                position += _OVERHEAD.size + length
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from None


def _batch(path: Path, base_offset: int, data: bytes) -> MetadataBatch:
    epoch, magic, checksum, attributes, last_delta, first_ms, _, _, _, _, count = _HEADER.unpack_from(data)
    where = f"{path}: the batch at offset {base_offset}"
    if magic != _MAGIC:
        raise InputError(f"{where} has format {magic}; metadata logs have format {_MAGIC}")
    if crc32c(data[_CHECKED:]) != checksum:
        raise StorageError(f"{where} is corrupt: its checksum is not that of its bytes")
    if count != last_delta + 1:
        raise StorageError(f"{where} is corrupt: {count} records up to offset {base_offset + last_delta}")
    if attributes & _CODEC:
        codec = _CODECS[attributes & _CODEC] if attributes & _CODEC < len(_CODECS) else "an unknown codec"
        raise InputError(f"{where} is compressed ({codec}); Kafka does not compress its metadata log")
    batch = MetadataBatch(base_offset, base_offset + last_delta + 1, first_ms, epoch, [])
    if attributes & _CONTROL:
        return batch
    cursor = Cursor(data, _HEADER.size)
    try:
        for _ in range(count):
            end = cursor.zigzag()
            end += cursor.at
            cursor.take(1)
            cursor.zigzag()
            delta = cursor.zigzag()
            cursor.take(max(cursor.zigzag(), 0))
            value = cursor.take(max(cursor.zigzag(), 0))
            batch.records.append(decode(base_offset + delta, value))
            cursor.at = end
    except (CorruptRecordError, struct.error) as error:
        problem = f"{where} holds no metadata records: {error}"
        raise InputError(problem) if base_offset == 0 else StorageError(problem) from None
    return batch
