"""Which requests a partition refuses because of the leader epoch that they carry (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.messages import FENCED_LEADER_EPOCH, NO_EPOCH, NONE, UNKNOWN_LEADER_EPOCH
from sim.protocol.probes import branch

if TYPE_CHECKING:
    from sim.protocol.replica.replica import ReplicaHost
    from sim.protocol.rules import Rules


class LeaderEpochFencing:
    """Which of its requests a partition fences.

    Args:
        rules: the broker's, of which ``fetch_fencing``, ``list_offsets_fencing`` and ``truncation_fencing`` decide.
        host: the broker.

    Attributes:
        fetches: whether those of followers, for data and for offsets.
        clients: whether those of clients.
        truncation: whether questions for an epoch's end.
    """

    __slots__ = ("_host", "clients", "fetches", "rules", "truncation")

    def __init__(self, rules: Rules, host: ReplicaHost) -> None:
        self.rules = rules
        self._host = host
        self.fetches = rules.fetch_fencing == "leader-epoch"
        self.clients = rules.list_offsets_fencing == "yes"
        self.truncation = rules.truncation_fencing == "yes"

    def check(self, current_leader_epoch: int, leader_epoch: int, *, client: bool) -> str:
        """Compare the epoch of a Fetch or ListOffsets, if fenced. Kafka: Partition#getLocalLog (2.6-4.3)."""
        if current_leader_epoch in (NO_EPOCH, leader_epoch) or not (self.clients if client else self.fetches):
            return NONE
        self._host.reached(branch(self.rules, "list_offsets_fencing" if client else "fetch_fencing"))
        return self.compare(current_leader_epoch, leader_epoch)

    def check_epoch_end(self, current_leader_epoch: int, leader_epoch: int) -> str:
        """Compare the epoch of an OffsetsForLeaderEpoch, if fenced. Kafka: Partition#getLocalLog (2.6-4.3)."""
        return self.compare(current_leader_epoch, leader_epoch) if self.truncation else NONE

    @staticmethod
    def compare(current_leader_epoch: int, leader_epoch: int) -> str:
        """Compare a request's epoch; `NO_EPOCH` passes. Kafka: Partition#checkCurrentLeaderEpoch (2.6-4.3)."""
        if current_leader_epoch in (NO_EPOCH, leader_epoch):
            return NONE
        return FENCED_LEADER_EPOCH if current_leader_epoch < leader_epoch else UNKNOWN_LEADER_EPOCH
