"""Fencing: requests that a partition refuses because of their leader epoch (KIP-320)."""

from __future__ import annotations

from sim.protocol.decisions import Decisions
from sim.protocol.messages import FENCED_LEADER_EPOCH, NO_EPOCH, NONE, UNKNOWN_LEADER_EPOCH


class LeaderEpochFencing:
    """Fences a partition's requests by rules ``fetch_fencing``, ``list_offsets_fencing`` and ``truncation_fencing``."""

    __slots__ = ("_decide",)

    def __init__(self, decide: Decisions) -> None:
        self._decide = decide

    def check(self, current_leader_epoch: int, leader_epoch: int, *, client: bool) -> str:
        """Compare the epoch of a Fetch or ListOffsets, if fenced. Kafka: Partition#getLocalLog (2.6-4.4)."""
        if current_leader_epoch in (NO_EPOCH, leader_epoch):
            return NONE
        fences = self._decide.fences_clients if client else self._decide.fences_fetches
        return self.compare(current_leader_epoch, leader_epoch) if fences.yes() else NONE

    def check_epoch_end(self, current_leader_epoch: int, leader_epoch: int) -> str:
        """Compare the epoch of an OffsetsForLeaderEpoch, if fenced. Kafka: Partition#getLocalLog (2.6-4.4)."""
        if current_leader_epoch in (NO_EPOCH, leader_epoch) or not self._decide.fences_truncation.yes():
            return NONE
        return self.compare(current_leader_epoch, leader_epoch)

    @staticmethod
    def compare(current_leader_epoch: int, leader_epoch: int) -> str:
        """Compare a request's epoch; `NO_EPOCH` passes. Kafka: Partition#checkCurrentLeaderEpoch (2.6-4.4)."""
        if current_leader_epoch in (NO_EPOCH, leader_epoch):
            return NONE
        return FENCED_LEADER_EPOCH if current_leader_epoch < leader_epoch else UNKNOWN_LEADER_EPOCH
