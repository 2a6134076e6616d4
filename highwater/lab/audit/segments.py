"""Segments and snapshots of a metadata log, read batch by batch and never written.

Kafka may append to the folder meanwhile: an incomplete last batch is left for the next reading. Kafka:
DefaultRecordBatch, DefaultRecord, Snapshots.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c

from highwater.lab.audit.files import opened
from highwater.lab.audit.records import CorruptRecordError, Cursor, MetadataBatch, MetadataRecord, decode
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
_LARGEST: Final = 1 << 24
"""Bytes of a batch, of which Kafka's controllers write 8 MB at most. Kafka: KafkaRaftClient#MAX_BATCH_SIZE_BYTES."""
_OFFSET_MAX: Final = (1 << 63) - 2
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CONTROL: Final = 0x20
_CODEC: Final = 0x07


def read_batches(path: Path) -> Iterator[MetadataBatch]:
    """Read the batches of a segment or snapshot.

    Raises:
        InputError: this is no metadata log.
        StorageError: the file cannot be read, or a batch in it is corrupt.
    """
    with opened(path) as file:
        position = 0
        while len(overhead := file.read(_OVERHEAD.size)) == _OVERHEAD.size:
            base_offset, length = _OVERHEAD.unpack(overhead)
            if length == 0 and base_offset == 0:
                return  # The unused end of a preallocated file.
            if not _HEADER.size <= length <= _LARGEST or base_offset < 0:
                if position == 0:
                    raise InputError(f"{path}: no log of Kafka's: it does not begin with a batch of records")
                raise StorageError(f"{path}: no batch of records at byte {position}")
            data = file.read(length)
            if len(data) < length:
                return
            yield _batch(path, base_offset, data)
            position += _OVERHEAD.size + length


def _batch(path: Path, base_offset: int, data: bytes) -> MetadataBatch:
    epoch, magic, checksum, attributes, last_delta, first_ms, _, _, _, _, count = _HEADER.unpack_from(data)
    where = f"{path}: the batch at offset {base_offset}"
    if magic != _MAGIC:
        raise InputError(f"{where} has format {magic}; metadata logs have format {_MAGIC}")
    if crc32c(data[_CHECKED:]) != checksum:
        raise StorageError(f"{where} is corrupt: its checksum is not that of its bytes")
    if count != last_delta + 1 or count < 1 or base_offset + last_delta > _OFFSET_MAX:
        raise StorageError(f"{where} is corrupt: {count} records up to offset {base_offset + last_delta}")
    if attributes & _CODEC:
        codec = _CODECS[attributes & _CODEC] if attributes & _CODEC < len(_CODECS) else "an unknown codec"
        raise InputError(f"{where} is compressed ({codec}); Kafka does not compress its metadata log")
    is_control = bool(attributes & _CONTROL)
    batch = MetadataBatch(base_offset, base_offset + last_delta + 1, first_ms, epoch, [], is_control)
    if is_control:
        return batch
    cursor = Cursor(data, _HEADER.size)
    try:
        for number in range(count):
            batch.records.append(_record(cursor, base_offset, number))
    except (CorruptRecordError, struct.error) as error:
        problem = f"{where} holds no metadata records: {error}"
        raise InputError(problem) if base_offset == 0 else StorageError(problem) from None
    return batch


def _record(cursor: Cursor, base_offset: int, number: int) -> MetadataRecord:
    """The next record of a batch; raises CorruptRecordError."""
    record = Cursor(cursor.take(cursor.zigzag()))
    record.take(1)
    record.zigzag()
    if (delta := record.zigzag()) != number:
        raise CorruptRecordError(f"record {base_offset + number} has offset {base_offset + delta}")
    record.take(max(record.zigzag(), 0))
    return decode(base_offset + number, record.take(max(record.zigzag(), 0)))
