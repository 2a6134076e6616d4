"""Fetch responses: whether they hold records, and those of KRaft's controller cut, so that a broker receives records of
the metadata log late.

The controller stamps each batch when it appends it, a few milliseconds before the commit.
"""

from __future__ import annotations

import struct
from typing import Final

from highwater.lab.confirm.history import varint

FLEXIBLE: Final = 12
"""From this version on, a fetch response has tagged fields and compact lengths."""
_IDS: Final = 13
"""From this version on, topics have ids instead of names."""
_BEGIN: Final = 4 + 1 + 4 + 2 + 4
"""Length of a response up to its topics: correlation id, tagged fields, throttle time, error, session."""
_PARTITION: Final = 4 + 2 + 8 + 8 + 8
"""Length of a partition up to its aborted transactions: index, error, high watermark, stable and start offsets."""
_ABORTED: Final = 16
_BATCH: Final = struct.Struct(">qi")
_STAMP: Final = struct.Struct(">q")
_STAMP_AT: Final = 27


def records_in(frame: bytes, version: int) -> tuple[int, int, int] | None:
    """Find the records of a fetch response of one partition: where their length begins, where they begin, where they
    end; None if it has none.
    """
    if version < FLEXIBLE or len(frame) <= _BEGIN:
        return None
    topics, at = varint(frame, _BEGIN)
    if topics != 2:
        return None
    if version >= _IDS:
        at += 16
    else:
        length, at = varint(frame, at)
        at += length - 1
    partitions, at = varint(frame, at)
    if partitions != 2:
        return None
    aborted, at = varint(frame, at + _PARTITION)
    for _ in range(aborted - 1):
        _, at = varint(frame, at + _ABORTED)
    begin = at + 4
    length, at = varint(frame, begin)
    return (begin, at, at + length - 1) if length > 1 else None


def may_append(frame: bytes, version: int) -> bool:
    """Whether the receiver of a fetch response may have something to append."""
    return version < FLEXIBLE or records_in(frame, version) is not None


def stamps_ms(records: bytes) -> list[tuple[int, int]]:
    """Of each whole batch: its time stamp, and where it ends."""
    found = []
    at = 0
    while at + _STAMP_AT + _STAMP.size <= len(records):
        _, size = _BATCH.unpack_from(records, at)
        end = at + _BATCH.size + size
        if end > len(records):
            break
        found.append((_STAMP.unpack_from(records, at + _STAMP_AT)[0], end))
        at = end
    return found


def first_ms(frame: bytes, version: int) -> int | None:
    """The time stamp of a response's first batch; None if it has none."""
    place = records_in(frame, version)
    stamps = stamps_ms(frame[place[1] : place[2]]) if place else ()
    return stamps[0][0] if stamps else None


def until(frame: bytes, version: int, last_ms: int) -> bytes:
    """A response without the first batch that is stamped later than a time, and without all after it."""
    place = records_in(frame, version)
    if place is None:
        return frame
    begin, at, end = place
    kept = 0
    for stamp_ms, batch_end in stamps_ms(frame[at:end]):
        if stamp_ms > last_ms:
            break
        kept = batch_end
    else:
        return frame
    return frame[:begin] + _as_unsigned(kept + 1) + frame[at : at + kept] + frame[end:]


def _as_unsigned(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
