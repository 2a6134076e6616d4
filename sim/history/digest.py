"""The digest of a run: a hash of its steps, in the order in which they happen."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

from sim.kernel.build import COMPILED

if COMPILED:
    from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le

DIGEST_BYTES: Final = 16
_PACKED: Final = Struct("<qBhiqq")
PACK: Final = _PACKED.pack
"""Packs a step: the arguments of `Digest.add`."""
PACK_TWO: Final = Struct("<" + 2 * "qBhiqq").pack
"""Packs two steps."""
STEPS: Final = 256
"""Number of steps that are hashed together."""
_BUFFER_BYTES: Final = STEPS * _PACKED.size


class Digest:
    """The hash of the steps so far. A buffer gathers the steps that are hashed together.

    Attributes:
        packed: in plain Python, steps that are not hashed yet. `sim.history.recorder` adds to them without a call of
            `add`.
    """

    __slots__ = ("_hash", "_writer", "packed")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        if COMPILED:
            self._writer = BytesWriter()
        else:
            self.packed: list[bytes] = []

    def add(self, at_us: int, code: int, broker: int, epoch: int, offset: int, other: int) -> None:
        """Add a step: its time, the code of its kind, and its fields, whose meaning depends on the kind (`Step`).

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
                self.flush()
        else:
            self.packed.append(PACK(at_us, code, broker, epoch, offset, other))
            if len(self.packed) >= STEPS:
                self.flush()

    def flush(self) -> None:
        """Hash the steps that were gathered."""
        if COMPILED:
            self._hash.update(self._writer.getvalue())
            self._writer.truncate(0)
        else:
            self._hash.update(b"".join(self.packed))
            self.packed.clear()

    def hexdigest(self) -> str:
        """The hash of all steps so far (32 hex digits)."""
        self.flush()
        return self._hash.hexdigest()
