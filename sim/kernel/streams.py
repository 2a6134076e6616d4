"""Named random streams: numbers that depend on the seed, the name and how many were drawn before, and on nothing else.

A stream is a key and a count (`sim.kernel.mixing`): none has to be seeded, and all are the same in every build and on
every Python. The scenario is not part of the seed, so that runs pair across modes and settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from sim.kernel.mixing import BITS, key_of, mixed

T = TypeVar("T")
SEED_END: Final = 1 << 63
"""Seeds are below this; rows hold them as signed 64 bits."""
_UNUSED: Final = BITS - 53
"""Bits that a float has no place for."""
_NAMES: Final[dict[str, int]] = {}
"""Keys of names: there are few, and each is used by every run."""


class Stream:
    """Random numbers, one after the other.

    Args:
        key: what makes them its own, below 2**62.
    """

    __slots__ = ("_drawn", "_key")

    def __init__(self, key: int) -> None:
        self._key = mixed(0, key)  # So that keys may be neighbours.
        self._drawn = 0

    def random(self) -> float:
        """A number from 0 to below 1."""
        self._drawn = drawn = self._drawn + 1
        return (mixed(self._key, drawn) >> _UNUSED) * 2.0**-53

    def getrandbits(self, bits: int) -> int:
        """A number of so many bits, 62 at most."""
        self._drawn += 1
        return mixed(self._key, self._drawn) >> (BITS - bits)


class Streams:
    """The streams of one seed, each created when first used.

    Args:
        seed: any integer.
    """

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
        """A key for what needs no stream: see `sim.kernel.mixing.mixed`."""
        of_name = _NAMES.get(name)
        if of_name is None:
            of_name = _NAMES[name] = key_of(name)
        return mixed(self._key, of_name)

    def number(self, name: str) -> float:
        """A number from 0 to below 1, for what is drawn once."""
        return (self.key(name) >> _UNUSED) * 2.0**-53


def integer(stream: Stream, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(stream.random() * (high - low + 1))


def choice(stream: Stream, options: Sequence[T]) -> T:
    """One of the options."""
    return options[int(stream.random() * len(options))]


def sample(stream: Stream, options: Sequence[T], count: int) -> list[T]:
    """So many different options, in drawn order."""
    left = list(options)
    return [left.pop(int(stream.random() * len(left))) for _ in range(count)]
