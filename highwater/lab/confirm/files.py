"""Brokers' files: log segments and checkpoint files, read while they are being written."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sim.protocol.batch import NO_SEQUENCE, Sequence
from sim.protocol.messages import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_HEAD: Final = struct.Struct(">qiib")
"""Base offset, length, then leader epoch (magic 2) or checksum (magic 0 and 1), magic: alike in all formats."""
_OVERHEAD: Final = 12
_EPOCHS: Final = 2
"""Record format that holds leader epochs (KIP-101)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch in a log.

    Attributes:
        leader_epoch: epoch of the leader that appended it; -1 if the record format has none.
        first_id: number of its first record.
        end: its end in the segment, in bytes.
        sequence: its producer id, producer epoch and first sequence, from an idempotent producer.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    name: str
    first_id: int
    end: int
    sequence: Sequence = NO_SEQUENCE

    def is_continued_by(self, offset: int, record: int, name: str, epoch: int) -> bool:
        """Whether a record is the next one of this batch."""
        following = self.last_offset + 1, self.first_id + offset - self.base_offset, self.name, self.leader_epoch
        return (offset, record, name, epoch) == following


@dataclass(frozen=True, slots=True)
class Disk:
    """The partition's state on a broker's disk.

    Attributes:
        leo: log end offset.
        hw: high watermark that a starting process reads from ``replication-offset-checkpoint``: 0 without an entry, and
            at most the log end offset.
    """

    leo: int = 0
    hw: int = 0


def key_of(name: str) -> bytes:
    """The key of all records of a batch."""
    return name.encode()


def value_of(record: int, size: int) -> bytes:
    """The value of a record: its number, padded to a size."""
    return str(record).encode().ljust(size)


def batches_in(data: bytes) -> list[Stored]:
    """The batches of a segment or fetch response, up to the first incomplete or corrupt one.

    Record formats before 2 have no batches: successive records with the same name count as one.
    """
    found: list[Stored] = []
    for start, end, epoch in frames(data):
        batch = _batch(data[start:end])
        if batch is None:
            break
        sequence, records = batch
        for offset, key, value in records:
            name, record = key.decode(), int(value)
            last = found[-1] if found else None
            if last is not None and last.is_continued_by(offset, record, name, epoch):
                found[-1] = replace(last, last_offset=offset, end=end)
            else:
                found.append(Stored(offset, offset, epoch, name, record, end, sequence))
    return found


def boundaries(data: bytes) -> list[int]:
    """Ends of complete batches in a segment, in bytes."""
    return [end for _, end, _ in frames(data)]


def frames(data: bytes, start: int = 0) -> Iterator[tuple[int, int, int]]:
    """Beginning, end and leader epoch of each whole batch of a segment, from a byte on."""
    while start + _HEAD.size <= len(data):
        _, length, epoch, magic = _HEAD.unpack_from(data, start)
        end = start + _OVERHEAD + length
        if length <= 0 or end > len(data):
            return
        yield start, end, epoch if magic >= _EPOCHS else NO_EPOCH
        start = end


def _batch(data: bytes) -> tuple[Sequence, list[tuple[int, bytes, bytes]]] | None:
    """The sequence of a batch, and offset, key and value of each record; None if it is corrupt."""
    from kafka.errors import KafkaError
    from kafka.record import MemoryRecords

    try:
        batch = MemoryRecords(data).next_batch()
        if batch is None or not batch.validate_crc():
            return None
        records = [(one.offset, one.key or b"", one.value or b"0") for one in batch]
        has_sequence = _HEAD.unpack_from(data)[3] >= _EPOCHS
    except (KafkaError, ValueError, struct.error, IndexError):
        return None
    if not has_sequence:
        return NO_SEQUENCE, records
    return (batch.producer_id, batch.producer_epoch, batch.base_sequence), records


def segments(folder: Path) -> list[Path]:
    """The segments of a log, in order of offset; empty if the log is deleted meanwhile."""
    try:
        return sorted(folder.glob("[0-9]*.log"))
    except FileNotFoundError:
        return []


def read_log(folder: Path) -> list[Stored]:
    """The batches of a log; empty if there is no log."""
    return [batch for segment in segments(folder) for batch in batches_in(_bytes(segment))]


def log_end(folder: Path) -> int:
    """The log end offset; an emptied log ends at its segment's base offset."""
    log, names = read_log(folder), segments(folder)
    return max(log[-1].last_offset + 1 if log else 0, int(names[-1].stem) if names else 0)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _lines(path: Path) -> list[str]:
    return _bytes(path).decode(errors="replace").splitlines()


def offset_in_checkpoint(path: Path, topic: str, number: int = 0) -> int | None:
    """The offset of a topic's partition in a checkpoint file (``replication-offset-checkpoint``, ...).

    The file holds a version, a count, and then lines ``topic partition offset``.
    """
    for line in _lines(path)[2:]:
        words = line.split()
        if len(words) == 3 and words[:2] == [topic, str(number)]:
            return int(words[2])
    return None


def epochs_in_checkpoint(path: Path) -> list[tuple[int, int]]:
    """Leader epochs with their start offsets, of a ``leader-epoch-checkpoint``."""
    return [(int(epoch), int(offset)) for epoch, offset in (line.split() for line in _lines(path)[2:] if line.strip())]


def properties(values: Mapping[str, object]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{key}={value}\n" for key, value in values.items())
