"""What nodes ask each other beside messages, to find out whether an exchange may be elided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sim.protocol.kraft.quorum_messages import BrokerHeartbeatRequest


class Server(Protocol):
    """A broker, for clients.

    Attributes:
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it knows, as far as clients care.
    """

    epoch_end_version: int


class ZooKeeperSessions(Protocol):
    """ZooKeeper, for who keeps a session there."""

    def has_heard(self, broker: int, broker_epoch: int, noticed: int, partition_epoch: int) -> bool:
        """Whether a ping would only keep the session."""

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a ping arrives then, and others follow at that interval."""


class QuorumSessions(Protocol):
    """The active controller of a quorum, for who sends heartbeats."""

    def has_heard(self, broker: int, broker_epoch: int, metadata_offset: int) -> bool:
        """Whether a heartbeat would only keep the session."""

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a heartbeat arrives then, and others follow at that interval."""

    def answer_us(self, broker: int) -> int:
        """How long the answer to a heartbeat takes on its way to a broker."""

    def answered(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        """The answer to a heartbeat that only kept the session arrives at that time."""
