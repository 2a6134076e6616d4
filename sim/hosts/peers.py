"""What the nodes of a cluster can be sent: who sends says with `Channel[...]` what is at the other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sim.hosts.zk_messages import Ping
    from sim.protocol.kraft.quorum_messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse, MetadataRecords
    from sim.protocol.messages import (
        ControlledShutdownRequest,
        ControlledShutdownResponse,
        ControllerRequestBatch,
        ControlResponse,
        FetchRequest,
        ListOffsetsRequest,
        MetadataRequest,
        OffsetsForLeaderEpochRequest,
        ProduceRequest,
    )


class Server(Protocol):
    """A broker, for clients and followers.

    Attributes:
        epoch_end_version: newest version of OffsetsForLeaderEpoch that it knows, as far as clients care.
    """

    epoch_end_version: int

    def on_produce(self, request: ProduceRequest) -> None:
        """Produce."""

    def on_fetch(self, request: FetchRequest) -> None:
        """Fetch."""

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """OffsetsForLeaderEpoch."""

    def on_list_offsets(self, request: ListOffsetsRequest) -> None:
        """ListOffsets."""

    def on_metadata(self, request: MetadataRequest) -> None:
        """Metadata."""


class Controlled(Protocol):
    """A broker of a cluster with ZooKeeper, for controllers and for brokers that take it for the controller."""

    def on_control(self, batch: ControllerRequestBatch) -> None:
        """Requests of a controller."""

    def on_control_reply(self, reply: ControlResponse) -> None:
        """An answer to them."""

    def on_controlled_shutdown(self, request: ControlledShutdownRequest) -> None:
        """ControlledShutdown."""

    def on_controlled_shutdown_reply(self, reply: ControlledShutdownResponse) -> None:
        """An answer to it."""


class ZooKeeperSessions(Protocol):
    """ZooKeeper, for who keeps a session there."""

    def on_ping(self, ping: Ping) -> None:
        """A sign of life."""

    def has_heard(self, broker: int, broker_epoch: int, noticed: int, partition_epoch: int) -> bool:
        """Whether a ping would only keep the session."""

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a ping arrives then, and others follow at that interval."""


class QuorumSessions(Protocol):
    """The active controller of a quorum, for who sends heartbeats."""

    def on_heartbeat(self, heartbeat: BrokerHeartbeatRequest) -> None:
        """A sign of life."""

    def has_heard(self, broker: int, broker_epoch: int, metadata_offset: int) -> bool:
        """Whether a heartbeat would only keep the session."""

    def outlasts(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot end while a heartbeat arrives then, and others follow at that interval."""

    def answer_us(self, broker: int) -> int:
        """How long the answer to a heartbeat takes on its way to a broker."""

    def answered(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        """The answer to a heartbeat that only kept the session arrives at that time."""


class Heartbeating(Protocol):
    """A broker of a quorum, for the active controller.

    Attributes:
        metadata_offset: up to where it has replayed the metadata log.
    """

    @property
    def metadata_offset(self) -> int:
        """See above."""

    def on_metadata_records(self, message: MetadataRecords) -> None:
        """Records of the metadata log."""

    def on_heartbeat_reply(self, reply: BrokerHeartbeatResponse) -> None:
        """An answer to a heartbeat."""
