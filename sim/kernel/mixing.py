"""Chance without a stream: a number that is a function of what it is for, and of nothing that came before.

`mixed` is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
but for its last step, which only the lower bits would need, kept to 62 bits: such integers cost a compiled build
nothing. Plain and compiled builds and all Pythons get the same numbers. A key that is itself mixed makes a family of
numbers that knows nothing of other families; keys that are neighbours do not, since key and number are added.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

BITS: Final = 62
"""Of a mixed number."""


def mixed(key: i64, number: i64) -> int:
    """A number from 0 to below 2**62 that looks drawn for this key and number; take the upper bits first.

    Args:
        key: from 0 to below 2**62.
        number: of 62 bits at most, with a sign or without.
    """
    state = key + number  # Both builds keep the same 62 bits of what follows, whatever wraps above them.
    state = ((state ^ (state >> 30)) * 0x3F58476D1CE4E5B9) & 0x3FFFFFFFFFFFFFFF
    return ((state ^ (state >> 27)) * 0x14D049BB133111EB) & 0x3FFFFFFFFFFFFFFF


def key_of(text: str) -> int:
    """A key for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") >> 2
