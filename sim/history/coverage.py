"""What a run has reached: probes, and for each kind of fault the transitions in its wake.

A transition is in the wake of the fault that took effect last before it, for `WAKE_US` at most. That says nothing about
causes; a pair that no run of a sweep has shows that a step was never even tried under such a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.probes import PROBES, TRANSITIONS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from sim.kernel.scheduler import Kernel

WAKE_US: Final = 20_000_000
"""Longer than a session's timeout, which is what most elections wait for."""
NEVER_US: Final = 1 << 62
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")

Wake = tuple[bytearray, int]
"""Where probes are noted, until when."""


class Coverage:
    """Notes what one run reaches.

    Args:
        kernel: for the time.
    """

    __slots__ = ("_calm", "_kernel", "_until_us", "_wake", "_wakes")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._calm = bytearray(len(PROBES))
        """Where probes are noted in nobody's wake."""
        self._wakes: dict[str, bytearray] = {}
        self._wake = self._calm
        self._until_us = NEVER_US

    def reached(self, probe: int) -> None:
        """Note a probe."""
        if self._kernel.now_us > self._until_us:
            self._wake, self._until_us = self._calm, NEVER_US
        self._wake[probe] = 1

    def strikes(self, kind: str) -> Wake:
        """A fault is about to strike; what it does is in its wake already.

        Returns:
            For `spared`.
        """
        before = self._wake, self._until_us
        self._wake = self._wakes.setdefault(kind, bytearray(len(PROBES)))
        self._until_us = self._kernel.now_us + WAKE_US
        return before

    def spared(self, before: Wake) -> None:
        """It took no effect: the wake of the one before goes on."""
        self._wake, self._until_us = before

    @property
    def seen(self) -> int:
        """All probes as one number: bit by bit, the most significant first, whether each was reached."""
        seen = 0
        for noted in (self._calm, *self._wakes.values()):
            seen |= _number(noted)
        return seen

    def bits(self, kinds: Mapping[str, int], effective: Container[str]) -> int:
        """Everything as one number, likewise: probes, kinds of faults, and for each kind the transitions in its wake.

        Args:
            kinds: all kinds of faults, numbered from 0.
            effective: those of which one took effect.
        """
        rest = bytearray(len(kinds) * (1 + TRANSITIONS))
        for kind, noted in self._wakes.items():
            number = kinds[kind]
            rest[number] = kind in effective
            start = len(kinds) + number * TRANSITIONS
            rest[start : start + TRANSITIONS] = noted[:TRANSITIONS]
        return self.seen << len(rest) | _number(rest)


def _number(noted: bytes | bytearray) -> int:
    return int(noted.translate(_DIGITS), 2)
