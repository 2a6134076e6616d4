"""What a run has reached: probes, and for each kind of fault the transitions in its wake.

A transition is in the wake of the fault that took effect last before it, for `WAKE_US` at most. That says nothing about
causes; a pair that no run of a sweep has shows that a step was never even tried under such a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.probes import PROBES, TRANSITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.kernel import Kernel

WAKE_US: Final = 20_000_000
"""Longer than a session's timeout, which is what most elections wait for."""
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")

Wake = tuple[bytearray, int]
"""Where transitions are noted, until when."""


class Coverage:
    """Notes what one run reaches.

    Args:
        kernel: for the time.

    Attributes:
        seen: by number of the probe, whether it was reached.
    """

    __slots__ = ("_kernel", "_until_us", "_wake", "_wakes", "seen")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.seen = bytearray(len(PROBES))
        self._wakes: dict[str, bytearray] = {}
        self._wake = bytearray()
        self._until_us = -1

    def reached(self, probe: int) -> None:
        """Note a probe."""
        self.seen[probe] = 1
        if self._kernel.now_us <= self._until_us:
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

    def bits(self, kinds: Sequence[str], effective: Sequence[bool]) -> int:
        """All of it as one number; bit by bit, the most significant first, it is what `names` names.

        Args:
            kinds: all kinds of faults.
            effective: whether one of each took effect.
        """
        none = bytes(TRANSITIONS)
        wakes = [self._wakes.get(kind, none)[:TRANSITIONS] for kind in kinds]
        return int(b"".join([self.seen, bytes(effective), *wakes]).translate(_DIGITS), 2)
