"""Named random streams: one `random.Random` for each name, seeded by seed and name alone.

Only `random()` and `getrandbits()` are used, which are the same in every Python version; `integer` and `chance` build
on them. The scenario is not part of the seed, so that runs pair across modes and settings.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

from sim.kernel.mixing import key_of

T = TypeVar("T")


class Streams:
    """The streams of one seed, each created when first used.

    Args:
        seed: any integer.
    """

    __slots__ = ("_streams", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def __call__(self, name: str) -> random.Random:
        """The stream of that name."""
        stream = self._streams.get(name)
        if stream is None:
            digest = blake2b(f"{self.seed}:{name}".encode(), digest_size=16).digest()
            stream = self._streams[name] = random.Random(int.from_bytes(digest, "little"))
        return stream

    def key(self, name: str) -> int:
        """A key for what needs no stream: see `sim.kernel.mixing.mixed`."""
        return key_of(f"{self.seed}:{name}")

    def number(self, name: str) -> float:
        """A number from 0 to below 1, for what is drawn once: a stream costs twenty times as much."""
        digest = blake2b(f"{self.seed}:{name}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def integer(stream: random.Random, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(stream.random() * (high - low + 1))


def choice(stream: random.Random, options: Sequence[T]) -> T:
    """One of the options."""
    return options[int(stream.random() * len(options))]


def sample(stream: random.Random, options: Sequence[T], count: int) -> list[T]:
    """So many different options, in drawn order."""
    left = list(options)
    return [left.pop(int(stream.random() * len(left))) for _ in range(count)]
