"""Stateless random numbers: each is a function of its key and number alone, not of earlier draws.

`mixed` is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
without its last step, which only improves the lower bits. Results have 62 bits, because a compiled build handles such
integers without allocating. All builds and Python versions get the same numbers. Key and number are added, so
neighbouring keys give overlapping sequences: mix a key first to get a family of numbers independent of the others.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

BITS: Final = 62
"""Bits of a mixed number."""
MASK: Final = (1 << BITS) - 1
FIRST_FACTOR: Final = 0x3F58476D1CE4E5B9
SECOND_FACTOR: Final = 0x14D049BB133111EB


def mixed(key: i64, number: i64) -> int:
    """A pseudorandom number in [0, 2**62); prefer its upper bits.

    Args:
        key: from 0 to below 2**62.
        number: at most 62 bits, signed or unsigned.
    """
    state = key + number  # The sum may wrap above 62 bits in a compiled build; the masks keep the same 62 bits in both.
    state = ((state ^ (state >> 30)) * FIRST_FACTOR) & MASK
    return ((state ^ (state >> 27)) * SECOND_FACTOR) & MASK


def key_of(text: str) -> int:
    """A key for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") >> 2
