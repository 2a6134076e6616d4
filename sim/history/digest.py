"""The digest of a run: a hash of its steps, in the order in which they happen."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

COMPILED: Final = __file__.endswith((".so", ".pyd"))
"""Whether this module is compiled; the compiler takes it for true (`.ci/build_hook.py`) and drops other branches."""

if COMPILED:
    from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le

DIGEST_BYTES: Final = 16
_PACKED: Final = Struct("<qBhiqq")
_PACK_INTO: Final = _PACKED.pack_into
_STEP_BYTES: Final = _PACKED.size
_BUFFER_BYTES: Final = 256 * _STEP_BYTES


class Digest:
    """The hash of the steps so far, which a buffer gathers."""

    __slots__ = ("_buffer", "_hash", "_used", "_writer")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        if COMPILED:
            self._writer = BytesWriter()
        else:
            self._buffer = bytearray(_BUFFER_BYTES)
            self._used = 0

    def add(self, at_us: int, code: int, broker: int, epoch: int, offset: int, other: int) -> None:
        """Add a step: its time, the number of its kind, and what its kind says of `Step`'s other fields.

        Raises:
            struct.error, OverflowError: a number is out of the range of its field.
        """
        # Compiled code writes machine words; `Struct` would need an object for each number.
        if COMPILED:
            writer = self._writer
            write_i64_le(writer, at_us)
            writer.append(code)
            write_i16_le(writer, broker)
            write_i32_le(writer, epoch)
            write_i64_le(writer, offset)
            write_i64_le(writer, other)
            if len(writer) >= _BUFFER_BYTES:
                self._hash.update(writer.getvalue())
                writer.truncate(0)
        else:
            used = self._used
            # Packed in place: appending bytes objects to the buffer costs twice as much.
            _PACK_INTO(self._buffer, used, at_us, code, broker, epoch, offset, other)
            used += _STEP_BYTES
            if used == _BUFFER_BYTES:
                self._hash.update(self._buffer)
                used = 0
            self._used = used

    def hexdigest(self) -> str:
        """The hash of all steps so far (32 hex digits)."""
        if COMPILED:
            self._hash.update(self._writer.getvalue())
            self._writer.truncate(0)
        else:
            self._hash.update(self._buffer[: self._used])
            self._used = 0
        return self._hash.hexdigest()
