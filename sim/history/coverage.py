"""Coverage: the probes that a run reached, and for each kind of fault the transitions in its wake.

A transition is in the wake of the last fault that took effect before it, for at most `WAKE_US`. This implies no cause;
a (fault, transition) pair that no run of a sweep has shows that the step was never tried under such a fault.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import ClassVar, Final

from sim.history import steps
from sim.kernel.scheduler import Kernel
from sim.protocol import probes
from sim.protocol.decisions import Decisions, decided
from sim.protocol.probes import PROBES, TRANSITIONS, branches

WAKE_US: Final = 20_000_000
"""Longer than the session timeout, which most elections wait for."""
NEVER_US: Final = (1 << 62) - 1
"""The greatest number that compiled code compares as a machine word."""
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")

_OF_CONSUMERS: Final = {
    steps.OUT_OF_RANGE: probes.CONSUMER_OUT_OF_RANGE,
    steps.RESET: probes.CONSUMER_RESETS,
    steps.TRUNCATION_DETECTED: probes.CONSUMER_TRUNCATION,
    steps.REWIND: probes.CONSUMER_REWINDS,
}
_OF_ENDS: Final = {
    steps.POWER_LOSS: probes.SUFFIX_LOST,
    steps.CORRUPT_TAIL: probes.CRC_DROPS,
    steps.DISK_REPLACED: probes.DISK_LOST,
    steps.DIRECTORY_FAILED: probes.DIRECTORY_LOST,
    steps.DIRECTORY_REPLACED: probes.DIRECTORY_LOST,
    steps.FILE_DAMAGED: probes.STRAY_LOG,
}

Wake = tuple[bytearray, int]
"""(array of reached probes, end of the wake in us)"""


class Coverage(steps.Listener):
    """Records what one run reaches; `decisions` are those of all participants, which know whether they were asked."""

    of_cluster: ClassVar[bool] = True

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.decisions: list[Decisions] = []
        self._seen = bytearray(len(PROBES))
        """All reached probes."""
        self._wakes: dict[str, bytearray] = {}
        self._wake = self._seen
        self._until_us = NEVER_US

    def on_truncate(self, step: steps.Truncate) -> None:
        if step.removed:
            self.reached(probes.TRUNCATION_REMOVES)
            if step.removed[0].base_offset < step.offset:
                self.reached(probes.TRUNCATION_SPLITS)
        if step.offset < step.hw:
            self.reached(probes.TRUNCATION_BELOW_HW)

    def on_log_start(self, step: steps.LogStart) -> None:  # noqa: ARG002
        self.reached(probes.LOG_START_MOVES)

    def on_hw(self, step: steps.HighWatermark) -> None:
        if step.offset < step.other:
            self.reached(probes.HW_GOES_BACK)

    def on_lead(self, step: steps.Lead) -> None:
        self.reached(probes.LEADER_LEADS_ON if step.partition.is_leader else probes.LEADER_BEGINS)
        if step.other < step.offset:
            self.reached(probes.LEADER_BEHIND)

    def on_follow(self, step: steps.Follow) -> None:
        self.reached(probes.FOLLOWER_BEGINS if step.restarts else probes.FOLLOWER_GOES_ON)

    def on_settled(self, step: steps.Settled) -> None:
        if step.rounds:
            self.reached(probes.ROUNDS[min(step.rounds, 3) - 1])

    def on_isr(self, step: steps.Isr) -> None:
        if step.before is None:
            return
        size, before = len(step.isr), len(step.before)
        if size != before:
            self.reached(probes.ISR_EXPANDS if size > before else probes.ISR_SHRINKS)
        if size == 1:
            self.reached(probes.ISR_SINGLE)

    def on_controller(self, step: steps.Controller) -> None:
        if step.epoch > 1:
            self.reached(probes.CONTROLLER_FAILOVER)

    def on_epoch_raised(self, step: steps.EpochRaised) -> None:  # noqa: ARG002
        self.reached(probes.EPOCH_RAISED)

    def on_deleted(self, step: steps.Deleted) -> None:  # noqa: ARG002
        self.reached(probes.REPLICA_DELETED)

    def on_position(self, step: steps.Position) -> None:
        probe = _OF_CONSUMERS.get(step.kind)
        if probe is not None:
            self.reached(probe)

    def on_end(self, step: steps.End) -> None:
        if step.lost and step.kind in _OF_ENDS:
            self.reached(_OF_ENDS[step.kind])

    def reached(self, probe: int) -> None:
        """Note a probe."""
        if self._kernel.now_us > self._until_us:
            self._wake, self._until_us = self._seen, NEVER_US
        self._seen[probe] = 1
        self._wake[probe] = 1

    def strikes(self, kind: str) -> Wake:
        """Begin the wake of a fault before it strikes, to include its own effects. Returns the previous wake."""
        before = self._wake, self._until_us
        self._wake = self._wakes.setdefault(kind, bytearray(len(PROBES)))
        self._until_us = self._kernel.now_us + WAKE_US
        return before

    def without_effect(self, before: Wake) -> None:
        """Resume the previous wake, because the fault had no effect."""
        self._wake, self._until_us = before

    @property
    def decided(self) -> int:
        """See `sim.protocol.decisions.decided`."""
        return decided(self.decisions)

    @property
    def seen(self) -> int:
        """A bit for each probe, the most significant first: whether it was reached."""
        seen = self._seen
        for table in self.decisions:
            own, bits = branches(table.rules), table.bits
            while bits:
                rest = bits & (bits - 1)
                seen[own[(bits ^ rest).bit_length() - 1]] = 1
                bits = rest
        return _number(seen)

    def bits(self, kinds: Mapping[str, int], effective: Container[str]) -> int:
        """All coverage as one number: bits of probes, of kinds of faults (numbered from 0) that took effect, and of the
        transitions in each kind's wake.
        """
        size = len(kinds) * (1 + TRANSITIONS)
        rest = 0
        for kind, noted in self._wakes.items():
            number = kinds[kind]
            if kind in effective:
                rest |= 1 << (size - 1 - number)
            rest |= _number(noted[:TRANSITIONS]) << (size - len(kinds) - (number + 1) * TRANSITIONS)
        return self.seen << size | rest


def _number(noted: bytes | bytearray) -> int:
    return int(noted.translate(_DIGITS), 2)
