"""Named random streams: a number depends only on the seed, the stream's name and how many were generated before.

A stream is a key and a count (`sim.kernel.mixing`), so creating one is cheap, and numbers are the same in every build
and Python version. The scenario is not part of the seed, so runs of different modes and settings pair by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from sim.kernel.build import COMPILED
from sim.kernel.mixing import BITS, FIRST_FACTOR, MASK, SECOND_FACTOR, key_of, mixed

T = TypeVar("T")
SEED_END: Final = 1 << 63
"""Seeds are below this; rows hold them as signed 64 bits."""
_UNUSED: Final = BITS - 53
"""Bits of a mixed number that do not fit into a float's mantissa."""
_NAMES: Final[dict[str, int]] = {}
"""Cached keys of names: there are few, and every run uses them."""


class Stream:
    """A sequence of random numbers, identified by a key below 2**62."""

    __slots__ = ("_drawn", "_key")

    def __init__(self, key: int) -> None:
        self._key = mixed(0, key)  # So that neighbouring keys give independent streams.
        self._drawn = 0

    def random(self) -> float:
        """A random number in [0, 1)."""
        self._drawn = drawn = self._drawn + 1
        if COMPILED:
            return (mixed(self._key, drawn) >> _UNUSED) * 2.0**-53
        number = self._key + drawn  # `mixed` without the call.
        number = ((number ^ (number >> 30)) * FIRST_FACTOR) & MASK
        return ((((number ^ (number >> 27)) * SECOND_FACTOR) & MASK) >> _UNUSED) * 2.0**-53

    def getrandbits(self, bits: int) -> int:
        """A random number of `bits` bits, 62 at most."""
        self._drawn += 1
        return mixed(self._key, self._drawn) >> (BITS - bits)


class Streams:
    """The streams of one seed, each created when first used."""

    __slots__ = ("_key", "_streams", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._key = key_of(str(seed))
        self._streams: dict[str, Stream] = {}

    def __call__(self, name: str) -> Stream:
        """The stream of that name."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(self.key(name))
        return stream

    def key(self, name: str) -> int:
        """A key for stateless numbers: see `sim.kernel.mixing.mixed`."""
        of_name = _NAMES.get(name)
        if of_name is None:
            of_name = _NAMES[name] = key_of(name)
        return mixed(self._key, of_name)

    def number(self, name: str) -> float:
        """A random number in [0, 1), for a name that needs only one."""
        return (self.key(name) >> _UNUSED) * 2.0**-53


def integer(stream: Stream, low: int, high: int) -> int:
    """A random integer from `low` to `high`, both included."""
    return low + int(stream.random() * (high - low + 1))


def choice(stream: Stream, options: Sequence[T]) -> T:
    """A random one of the options."""
    return options[int(stream.random() * len(options))]


def sample(stream: Stream, options: Sequence[T], count: int) -> list[T]:
    """`count` distinct options in random order."""
    left = list(options)
    return [left.pop(int(stream.random() * len(left))) for _ in range(count)]
