"""Direct calls between nodes, besides messages, that decide whether an exchange may be elided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sim.hosts.control_plane import ControlPlane
from sim.hosts.quorum_plane import QuorumPlane

if TYPE_CHECKING:
    from sim.protocol.kraft.quorum_messages import BrokerHeartbeatRequest


class Server(Protocol):
    """A broker as clients see it.

    Attributes:
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it supports for clients.
    """

    epoch_end_version: int


class ZooKeeperSessions(ControlPlane):
    """ZooKeeper as nodes with a session see it."""

    def is_keepalive(self, broker: int, broker_epoch: int, last_event: int, partition_epoch: int) -> bool:
        """Whether a ping would only keep the session."""
        raise NotImplementedError

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot expire if a ping arrives at that time and others follow at that interval."""
        raise NotImplementedError


class QuorumSessions(QuorumPlane):
    """The active controller of a quorum as brokers with a session see it."""

    def is_keepalive(self, broker: int, broker_epoch: int, metadata_offset: int, *, want_fence: bool) -> bool:
        """Whether a heartbeat would only keep the session."""
        raise NotImplementedError

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot expire if a heartbeat arrives at that time and others follow at that interval."""
        raise NotImplementedError

    def response_latency_us(self, broker: int) -> int:
        """Latency of the response to a heartbeat."""
        raise NotImplementedError

    def deliver_response(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        """Schedule the response to an elided heartbeat, which arrives at that time."""
        raise NotImplementedError

    def fetch_metadata(self, fetch: tuple[int, int]) -> None:
        """Handle the fetch of the metadata log that a broker sends when it resumes: its id, and its position."""
        raise NotImplementedError
