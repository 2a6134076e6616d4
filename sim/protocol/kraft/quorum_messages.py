"""Requests and replies between brokers and the active controller of a quorum: one slotted class per RPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sim.kernel.message import ABOUT, ALIKE, KIND, REPLY, Message
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, Result
from sim.protocol.kraft.metadata import (
    BrokerRegistration,
    BrokerUnregistration,
    PartitionRegistration,
    Record,
    TopicRemoval,
)

BROKER_REGISTRATION: Final = 32 << KIND
HEARTBEAT: Final = ALIKE + (33 << KIND)
PARTITION_RECORD: Final = 34 << KIND
BROKER_RECORD: Final = 35 << KIND
SETTING_RECORD: Final = 36 << KIND
ALTER_PARTITION: Final = 37 << KIND
REPLICA_LOG_INFO: Final = 38 << KIND
ASSIGN_REPLICAS_TO_DIRS: Final = 39 << KIND
TOPIC_RECORD: Final = 40 << KIND


class BrokerRegistrationRequest(Message):
    """Registers a broker process. Kafka: requests.BrokerRegistrationRequest.

    Attributes:
        incarnation: of the process (incarnation id).
        previous_broker_epoch: broker epoch in the clean-shutdown file, -1 without one (KIP-966).
        directories: ids of its log directories that work (KIP-858).
    """

    __slots__ = ("broker", "directories", "incarnation", "previous_broker_epoch")

    def __init__(self, broker: int, incarnation: int, previous_broker_epoch: int, directories: tuple[int, ...]) -> None:
        self.directories: Final = directories
        self.broker: Final = broker
        self.incarnation: Final = incarnation
        self.previous_broker_epoch: Final = previous_broker_epoch

    def again(self) -> BrokerRegistrationRequest:
        """A resend over another connection, whose response matches no request. Kafka: NodeToControllerRequestThread."""
        return BrokerRegistrationRequest(self.broker, self.incarnation, self.previous_broker_epoch, self.directories)

    def about(self) -> int:
        return BROKER_REGISTRATION + self.incarnation


class BrokerRegistrationResponse(Message):
    """Response: an error, or the broker epoch. Kafka: requests.BrokerRegistrationResponse."""

    __slots__ = ("broker_epoch", "error", "request")

    def __init__(self, request: BrokerRegistrationRequest, error: str, broker_epoch: int) -> None:
        self.request: Final = request
        self.error: Final = error
        self.broker_epoch: Final = broker_epoch

    def about(self) -> int:
        return REPLY + self.request.about()


class BrokerHeartbeatRequest(Message):
    """A broker's heartbeat. Kafka: requests.BrokerHeartbeatRequest.

    Attributes:
        metadata_offset: number of metadata records it has replayed.
        want_fence: it is not ready to be unfenced.
        want_shut_down: it requests controlled shutdown.
        offline_directories: ids of its log directories that have failed since its start (offlineLogDirs, KIP-858).
        cordoned: ids of its cordoned log directories (cordonedLogDirs, KIP-1066); none until it has caught up.
    """

    __slots__ = (
        "broker",
        "broker_epoch",
        "cordoned",
        "metadata_offset",
        "offline_directories",
        "want_fence",
        "want_shut_down",
    )
    elision_safe = True

    def __init__(
        self,
        broker: int,
        broker_epoch: int,
        metadata_offset: int,
        *,
        want_fence: bool,
        want_shut_down: bool,
        offline_directories: tuple[int, ...] = (),
        cordoned: tuple[int, ...] = (),
    ) -> None:
        self.offline_directories: Final = offline_directories
        self.cordoned: Final = cordoned
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch
        self.metadata_offset: Final = metadata_offset
        self.want_fence: Final = want_fence
        self.want_shut_down: Final = want_shut_down

    def about(self) -> int:
        return HEARTBEAT


class BrokerHeartbeatResponse(Message):
    """Response: an error, or whether it has caught up, is fenced, may stop. Kafka: requests.BrokerHeartbeatResponse."""

    __slots__ = ("error", "is_caught_up", "is_fenced", "request", "should_shut_down")
    elision_safe = True

    def __init__(
        self,
        request: BrokerHeartbeatRequest,
        error: str,
        *,
        is_caught_up: bool = False,
        is_fenced: bool = False,
        should_shut_down: bool = False,
    ) -> None:
        self.request: Final = request
        self.error: Final = error
        self.is_caught_up: Final = is_caught_up
        self.is_fenced: Final = is_fenced
        self.should_shut_down: Final = should_shut_down

    def about(self) -> int:
        return REPLY + HEARTBEAT


class MetadataRecords(Message):
    """Committed records, as in the response to a broker's fetch of the metadata log.

    Records are given by their positions in the log, which is append-only: copies would take unbounded memory.

    Attributes:
        first: position of the first record.
        end: position after the last record.
        subject: subject of the first record (`subject_of`).
    """

    __slots__ = ("end", "first", "subject")

    def __init__(self, first: int, end: int, subject: int) -> None:
        self.first: Final = first
        self.end: Final = end
        self.subject: Final = subject

    def about(self) -> int:
        return self.subject


def subject_of(record: Record) -> int:
    """The subject of a message that begins with this record: see `Message.about`."""
    if isinstance(record, PartitionRegistration):
        return PARTITION_RECORD + (record.partition_epoch << ABOUT) + record.leader_epoch
    if isinstance(record, BrokerRegistration):
        return BROKER_RECORD + (record.broker << ABOUT) + record.incarnation
    if isinstance(record, BrokerUnregistration):
        return BROKER_RECORD + (record.broker << ABOUT)
    if isinstance(record, TopicRemoval):
        return TOPIC_RECORD
    return SETTING_RECORD


class AssignReplicasToDirsRequest(Message):
    """Reports a replica's new log directory (KIP-858). Kafka: requests.AssignReplicasToDirsRequest."""

    __slots__ = ("broker", "broker_epoch", "directory", "name")

    def __init__(self, broker: int, broker_epoch: int, name: str, directory: int) -> None:
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch
        self.name: Final = name
        self.directory: Final = directory

    def about(self) -> int:
        return ASSIGN_REPLICAS_TO_DIRS + self.directory


class AlterPartitionRequest(Message):
    """ISR changes proposed by a broker's leaders (KIP-497). Kafka: requests.AlterPartitionRequest."""

    __slots__ = ("broker", "broker_epoch", "changes")

    def __init__(self, broker: int, broker_epoch: int, changes: Sequence[AlterPartitionItem]) -> None:
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch
        self.changes: Final = changes

    def again(self) -> AlterPartitionRequest:
        """A resend over another connection, whose response matches no request. Kafka: NodeToControllerRequestThread."""
        return AlterPartitionRequest(self.broker, self.broker_epoch, self.changes)

    def about(self) -> int:
        change = self.changes[0]
        return ALTER_PARTITION + (change.partition_epoch << ABOUT) + change.leader_epoch


class AlterPartitionResponse(Message):
    """Response: an error of the whole request, or one result per partition. Kafka: requests.AlterPartitionResponse."""

    __slots__ = ("error", "request", "results")
    needs_partition = True

    def __init__(self, request: AlterPartitionRequest, error: str, results: Mapping[str, Result]) -> None:
        self.request: Final = request
        self.error: Final = error
        self.results: Final = results

    def about(self) -> int:
        return REPLY + self.request.about()


class GetReplicaLogInfoRequest(Message):
    """Asks a broker for the end of its log of a partition (KIP-966, unclean recovery)."""

    __slots__ = ("broker", "name")
    needs_partition = True

    def __init__(self, broker: int, name: str) -> None:
        self.broker: Final = broker
        self.name: Final = name

    def about(self) -> int:
        return REPLICA_LOG_INFO


class GetReplicaLogInfoResponse(Message):
    """Response to GetReplicaLogInfo; the last epoch of an empty log is -1, and the leader epoch that in the broker's
    metadata.
    """

    __slots__ = ("broker_epoch", "last_epoch", "leader_epoch", "leo", "request")

    def __init__(
        self, request: GetReplicaLogInfoRequest, broker_epoch: int, last_epoch: int, leo: int, leader_epoch: int
    ) -> None:
        self.request: Final = request
        self.broker_epoch: Final = broker_epoch
        self.last_epoch: Final = last_epoch
        self.leo: Final = leo
        self.leader_epoch: Final = leader_epoch

    def about(self) -> int:
        return REPLY + REPLICA_LOG_INFO


class NotControllerResponse(Message):
    """Response of a controller that is not active to a request that only the active one answers (NOT_CONTROLLER).

    Kafka: NodeToControllerRequestThread#handleResponse.
    """

    __slots__ = ("request",)

    def __init__(
        self,
        request: BrokerHeartbeatRequest
        | BrokerRegistrationRequest
        | AlterPartitionRequest
        | AssignReplicasToDirsRequest,
    ) -> None:
        self.request: Final = request

    def about(self) -> int:
        return REPLY + self.request.about()
