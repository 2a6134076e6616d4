"""Requests and replies between brokers, clients and the control plane: one slotted class per RPC.

A message is an immutable value of ids and data, equal to another with the same contents. A response carries its
request, and the requester compares it by identity with the request in flight: a response to an abandoned request is
dropped.
"""

from __future__ import annotations

from collections import abc
from typing import Final

from sim.kernel.message import ABOUT, ALIKE, KIND, NUMBER, REPLY, Message
from sim.protocol.batch import NO_SEQUENCE, Batch, Sequence

NONE: Final = ""
NOT_LEADER_OR_FOLLOWER: Final = "NOT_LEADER_OR_FOLLOWER"
KAFKA_STORAGE_ERROR: Final = "KAFKA_STORAGE_ERROR"
NOT_ENOUGH_REPLICAS: Final = "NOT_ENOUGH_REPLICAS"
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
REQUEST_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
INVALID_PRODUCER_EPOCH: Final = "INVALID_PRODUCER_EPOCH"
UNKNOWN_PRODUCER_ID: Final = "UNKNOWN_PRODUCER_ID"
OFFSET_OUT_OF_RANGE: Final = "OFFSET_OUT_OF_RANGE"
OFFSET_NOT_AVAILABLE: Final = "OFFSET_NOT_AVAILABLE"
FENCED_LEADER_EPOCH: Final = "FENCED_LEADER_EPOCH"
UNKNOWN_LEADER_EPOCH: Final = "UNKNOWN_LEADER_EPOCH"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"
STALE_CONTROLLER_EPOCH: Final = "STALE_CONTROLLER_EPOCH"
STALE_BROKER_EPOCH: Final = "STALE_BROKER_EPOCH"
INVALID_UPDATE_VERSION: Final = "INVALID_UPDATE_VERSION"
INVALID_REQUEST: Final = "INVALID_REQUEST"
INELIGIBLE_REPLICA: Final = "INELIGIBLE_REPLICA"
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
BROKER_ID_NOT_REGISTERED: Final = "BROKER_ID_NOT_REGISTERED"
DUPLICATE_BROKER_REGISTRATION: Final = "DUPLICATE_BROKER_REGISTRATION"
ELECTION_NOT_NEEDED: Final = "ELECTION_NOT_NEEDED"
PREFERRED_LEADER_NOT_AVAILABLE: Final = "PREFERRED_LEADER_NOT_AVAILABLE"
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = "ELIGIBLE_LEADERS_NOT_AVAILABLE"
INVALID_REPLICA_ASSIGNMENT: Final = "INVALID_REPLICA_ASSIGNMENT"
INVALID_REPLICATION_FACTOR: Final = "INVALID_REPLICATION_FACTOR"
NO_REASSIGNMENT_IN_PROGRESS: Final = "NO_REASSIGNMENT_IN_PROGRESS"
TOPIC_ALREADY_EXISTS: Final = "TOPIC_ALREADY_EXISTS"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"
NEW_LEADER_ELECTED: Final = "NEW_LEADER_ELECTED"
OPERATION_NOT_ATTEMPTED: Final = "OPERATION_NOT_ATTEMPTED"
LOG_TRUNCATION: Final = "LOG_TRUNCATION"
"""Rule ``fetch_fencing=last-epoch`` only: the follower's last record is not the leader's."""
UNKNOWN_TOPIC_ID: Final = "UNKNOWN_TOPIC_ID"
UNKNOWN_TOPIC_OR_PARTITION: Final = "UNKNOWN_TOPIC_OR_PARTITION"

DIVERGING_EPOCH: Final = "DIVERGING_EPOCH"
"""Not an error code, and never sent: marks a fetch response with a diverging epoch (see `FetchResult`)."""

NO_EPOCH: Final = -1
"""In a request: no leader epoch, so none is checked."""

NO_BROKER_EPOCH: Final = -1
"""No registration yet, or its epoch is unknown and not compared."""

LATEST: Final = -1
"""ListOffsets: the LEO for a replica, the HW for a client."""
EARLIEST: Final = -2
"""ListOffsets: the log start. A number from 0 on is a time, which requests the first record that is not older."""

TOPIC_ID: Final = "@"
"""Separates the name of a partition from the number that stands for its topic id: ``orders-0@2`` is a partition of the
second topic ``orders``, created after the first one was deleted. A name without it belongs to the first one.
"""

PRODUCE: Final = 1 << KIND
FETCH: Final = ALIKE + (2 << KIND)
FETCHED: Final = 3 << KIND
EPOCH_END: Final = ALIKE + (4 << KIND)
LIST_OFFSETS: Final = 5 << KIND
METADATA: Final = 6 << KIND
CONTROL: Final = 7 << KIND
CONTROLLED_SHUTDOWN: Final = 8 << KIND


def topic_partition(name: str) -> str:
    """Topic and number of a partition, which a topic that was deleted and another topic of its name have in common."""
    return name.partition(TOPIC_ID)[0]


def topic_of(name: str) -> str:
    """The topic of a partition."""
    return name.rpartition("-")[0]


def first_partition(name: str) -> str:
    """The first partition, of number 0, of the topic of a partition."""
    _, mark, number = name.partition(TOPIC_ID)
    return f"{topic_of(name)}-0{mark}{number}"


class ProduceRequest(Message):
    """A batch sent to the leader: records ``first_id ..``, `acks` 0, 1 or -1 (all); and batches for other partitions.

    `sequence` is an idempotent producer's.
    Kafka: requests.ProduceRequest.

    Attributes:
        client: node id of the producer.
        name: the partition.
        first_id: id of the batch's first record.
        count: number of records.
        acks: 0, 1 or -1 (all).
        sequence: producer id, producer epoch and base sequence of an idempotent producer.
        connection: number of the producer's connection to this broker: it counts those that it has closed.
        timeout_us: how long the leader may wait for followers (``request.timeout.ms`` of the producer).
        others: the batches for other partitions, with the same acks, each as if it were sent alone.
    """

    __slots__ = ("acks", "client", "connection", "count", "first_id", "name", "others", "sequence", "timeout_us")
    elision_safe = True
    needs_partition = True

    def __init__(
        self,
        client: int,
        name: str,
        first_id: int,
        count: int,
        acks: int,
        sequence: Sequence = NO_SEQUENCE,
        connection: int = 0,
        timeout_us: int = 30_000_000,
        others: abc.Sequence[ProduceRequest] = (),
    ) -> None:
        self.client: Final = client
        self.name: Final = name
        self.first_id: Final = first_id
        self.count: Final = count
        self.acks: Final = acks
        self.sequence: Final = sequence
        self.connection: Final = connection
        self.timeout_us: Final = timeout_us
        self.others: Final = others

    def again(self) -> ProduceRequest:
        """A resend of the same batches on a connection of its own; responses to it match no other request."""
        return ProduceRequest(
            self.client,
            self.name,
            self.first_id,
            self.count,
            self.acks,
            self.sequence,
            ~self.connection,
            self.timeout_us,
            [other.again() for other in self.others] if self.others else (),
        )

    def about(self) -> int:
        return PRODUCE + self.first_id

    def writes_to(self, names: abc.Container[str]) -> bool:
        return self.name in names or any(other.name in names for other in self.others)

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return self.writes_to(names)

    def has(self, batch: ProduceRequest) -> bool:
        """Whether this is the request itself, or one of its other batches."""
        return self is batch or any(other is batch for other in self.others)


class ProduceResponse(Message):
    """Response to a produce request: an error, or the offset of the batch's first record.

    With UNKNOWN_PRODUCER_ID it carries the log start instead.

    The time at which it was sent is for checkers, and not a field on the wire.
    Kafka: requests.ProduceResponse.

    Attributes:
        request: the request.
        error: Kafka's name of the error; empty for success.
        base_offset: offset of the batch's first record.
        answered_us: when the leader answered.
        others: those to the other batches of the request.
    """

    __slots__ = ("answered_us", "base_offset", "error", "others", "request")

    def __init__(
        self,
        request: ProduceRequest,
        error: str,
        base_offset: int,
        answered_us: int = 0,
        others: abc.Sequence[ProduceResponse] = (),
    ) -> None:
        self.request: Final = request
        self.error: Final = error
        self.base_offset: Final = base_offset
        self.answered_us: Final = answered_us
        self.others: Final = others

    def about(self) -> int:
        return REPLY + (self.base_offset << ABOUT) + self.request.about()


Position = tuple[str, int, int, int]
"""(partition, fetch offset, current leader epoch or `NO_EPOCH`, epoch of the last record or `NO_EPOCH`)"""


class Incremental:
    """What a fetch of several partitions, or its response, changes in the leader's fetch session (KIP-227).

    In Kafka, messages lack what does not change. Here they have it nevertheless, and these are its indexes.

    Attributes:
        session: the number of the session.
        epoch: the number of the fetch within the session, 0 for the first.
        places: the indexes of the partitions whose position or result may differ from that in the fetch before.
    """

    __slots__ = ("epoch", "places", "session")

    def __init__(self, session: int, epoch: int, places: abc.Sequence[int]) -> None:
        self.session: Final = session
        self.epoch: Final = epoch
        self.places: Final = places


class FetchRequest(Message):
    """A fetch of a follower or a consumer. Kafka: requests.FetchRequest.

    Attributes:
        node: the requesting node.
        leader: the receiving broker.
        replica: broker id of the follower, -1 for a consumer.
        broker_epoch: of the follower's registration, -1 for a consumer or if unknown.
        positions: the positions to fetch.
        leader_epochs: the leader epoch in which each position is fetched, whether the position carries it or not: the
            leader compares it under rule ``hw_needs_epoch``, the sender when the response arrives. Not a field on the
            wire.
        version: `sim.environment.network.Network.version` when it was sent. Not a field on the wire.
        incremental: what it changes in the leader's fetch session; None if it begins one, or has one partition.
        sent: the request that the leader received, if it took that for one about another topic of the same name (rule
            ``recreated_fetch``); else None.
    """

    __slots__ = (
        "broker_epoch",
        "incremental",
        "leader",
        "leader_epochs",
        "node",
        "positions",
        "replica",
        "sent",
        "version",
    )
    elision_safe = True
    needs_partition = True

    def __init__(
        self,
        node: int,
        leader: int,
        replica: int,
        broker_epoch: int,
        positions: abc.Sequence[Position],
        leader_epochs: abc.Sequence[int],
        version: int = -1,
        incremental: Incremental | None = None,
        sent: FetchRequest | None = None,
    ) -> None:
        self.node: Final = node
        self.leader: Final = leader
        self.replica: Final = replica
        self.broker_epoch: Final = broker_epoch
        self.positions: Final = positions
        self.leader_epochs: Final = leader_epochs
        self.version: Final = version
        self.incremental: Final = incremental
        self.sent: Final = sent

    def about(self) -> int:
        _, offset, epoch, _ = self.positions[0]
        return FETCH + (offset << ABOUT) + epoch

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return any(position[0] in names for position in self.positions)


Diverging = tuple[int, ...] | None
"""(diverging epoch, its end offset); `AGREES` without divergence, None from a leader that does not compare epochs."""
AGREES: Final[tuple[int, ...]] = ()

FetchResult = tuple[str, str, abc.Sequence[Batch], int, int, int, Diverging]
"""(partition, error, batches, the leader's HW, the leader's log start, the leader's epoch, where the logs diverge)

A leader compares epochs with rule ``follower_truncation=on-fetch``; in Kafka followers learn from version negotiation
(ApiVersions) whether it does.
"""


class FetchResponse(Message):
    """Response to a fetch, one result for each position. Kafka: requests.FetchResponse.

    Attributes:
        request: the request, as it was sent.
        results: the results.
        incremental: which results may differ from those of the session's last response; None without a session.
        preferred_read_replica: the broker from which the consumer shall fetch, -1 for the sender itself (KIP-392).
    """

    __slots__ = ("incremental", "preferred_read_replica", "request", "results")
    elision_safe = True
    needs_partition = True

    def __init__(
        self,
        request: FetchRequest,
        results: abc.Sequence[FetchResult],
        incremental: Incremental | None = None,
        preferred_read_replica: int = -1,
    ) -> None:
        self.preferred_read_replica: Final = preferred_read_replica
        self.request: Final = request if request.sent is None else request.sent
        self.results: Final = results
        self.incremental: Final = incremental

    def about(self) -> int:
        batches = self.results[0][2]
        return REPLY + (FETCHED + batches[0].first_id if batches else self.request.about())

    def writes_to(self, names: abc.Container[str]) -> bool:
        """See `Event.writes_to`: of batches, or by a truncation."""
        return any((result[2] or result[6]) and result[0] in names for result in self.results)

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return any(result[0] in names for result in self.results)


Ask = tuple[str, int, int]
"""(partition, current leader epoch or `NO_EPOCH`, requested epoch)"""


class OffsetsForLeaderEpochRequest(Message):
    """OffsetsForLeaderEpoch. Kafka: OffsetsForLeaderEpochRequest (1.1-4.4).

    Attributes:
        node: the requesting node.
        asks: the requested epochs.
        leader_epochs: see `FetchRequest`.
        with_epoch: whether this is version 1, whose response has the epoch that the offset belongs to (KIP-279).
        is_repeated: whether two equal requests before it had equal responses (KAFKA-10706). Such rounds may be elided,
            so neither request nor response delays other messages.
    """

    __slots__ = ("asks", "is_repeated", "leader_epochs", "node", "with_epoch")
    needs_partition = True

    def __init__(
        self,
        node: int,
        asks: abc.Sequence[Ask],
        leader_epochs: abc.Sequence[int],
        *,
        with_epoch: bool,
        is_repeated: bool = False,
    ) -> None:
        self.node: Final = node
        self.asks: Final = asks
        self.leader_epochs: Final = leader_epochs
        self.with_epoch: Final = with_epoch
        self.is_repeated: Final = is_repeated

    def about(self) -> int:
        _, current_epoch, epoch = self.asks[0]
        return EPOCH_END + (epoch << ABOUT) + current_epoch

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return any(ask[0] in names for ask in self.asks)


EpochEndResult = tuple[str, str, int, int]
"""(partition, error, epoch, end offset); -1 where undefined"""


class OffsetsForLeaderEpochResponse(Message):
    """Response to OffsetsForLeaderEpoch, one result for each ask. Kafka: OffsetsForLeaderEpochResponse (1.1-4.4)."""

    __slots__ = ("request", "results")
    needs_partition = True

    def __init__(self, request: OffsetsForLeaderEpochRequest, results: abc.Sequence[EpochEndResult]) -> None:
        self.request: Final = request
        self.results: Final = results

    def about(self) -> int:
        return REPLY + self.request.about()

    def writes_to(self, names: abc.Container[str]) -> bool:
        """See `Event.writes_to`: by a truncation."""
        return any(result[0] in names for result in self.results)

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return any(result[0] in names for result in self.results)


class ListOffsetsRequest(Message):
    """ListOffsets for one partition: `timestamp` is `LATEST` or `EARLIEST`; `replica` -1 for a client.

    Kafka: ListOffsetsRequest (3.9-4.4), requests.ListOffsetRequest (0.10.2-2.6).
    """

    __slots__ = ("leader_epoch", "name", "node", "replica", "timestamp")
    elision_safe = True
    needs_partition = True

    def __init__(self, node: int, replica: int, name: str, timestamp: int, leader_epoch: int) -> None:
        self.node: Final = node
        self.replica: Final = replica
        self.name: Final = name
        self.timestamp: Final = timestamp
        self.leader_epoch: Final = leader_epoch

    def about(self) -> int:
        when = min(self.timestamp, self.timestamp & NUMBER)  # Ids from `VALIDATION_IDS` on have more bits.
        return LIST_OFFSETS + (when << ABOUT) + self.leader_epoch

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return self.name in names


class ListOffsetsResponse(Message):
    """Response to ListOffsets: an error, or an offset with the responding leader's epoch.

    Kafka: ListOffsetsResponse (3.9-4.4), requests.ListOffsetResponse (0.10.2-2.6).
    """

    __slots__ = ("error", "leader_epoch", "offset", "request")
    elision_safe = True
    needs_partition = True

    def __init__(self, request: ListOffsetsRequest, error: str, offset: int, leader_epoch: int) -> None:
        self.request: Final = request
        self.error: Final = error
        self.offset: Final = offset
        self.leader_epoch: Final = leader_epoch

    def about(self) -> int:
        return REPLY + LIST_OFFSETS + (self.offset << ABOUT) + self.leader_epoch

    def writes_to(self, names: abc.Container[str]) -> bool:
        """See `Event.writes_to`: by a truncation."""
        return self.request.name in names

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return self.request.name in names


class MetadataRequest(Message):
    """A client's request for the leader of a partition. Kafka: requests.MetadataRequest."""

    __slots__ = ("name", "node")
    elision_safe = True

    def __init__(self, node: int, name: str) -> None:
        self.node: Final = node
        self.name: Final = name

    def has_to_wait(self, *, registered: bool) -> bool:
        """See `Event.has_to_wait`: an unregistered broker knows no leader."""
        return not registered

    def about(self) -> int:
        return METADATA


class MetadataResponse(Message):
    """Response: the leader (0: none) and its epoch in the broker's metadata. Kafka: requests.MetadataResponse."""

    __slots__ = ("leader", "leader_epoch", "request")

    def __init__(self, request: MetadataRequest, leader: int, leader_epoch: int) -> None:
        self.request: Final = request
        self.leader: Final = leader
        self.leader_epoch: Final = leader_epoch

    def about(self) -> int:
        return REPLY + METADATA + self.leader_epoch


LEADER_DURING_DELETE: Final = -2
"""The leader in an UpdateMetadata request about a topic that is being deleted."""
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch in a StopReplica request about such a topic, which no replica's leader epoch fences. (Requests
before 2.6 have no leader epoch.)"""


class LeaderAndIsr:
    """The state of one partition, as stored in ZooKeeper and sent to brokers. Kafka: LeaderAndIsr.

    Attributes:
        name: the partition.
        leader: broker id, 0 for none.
        leader_epoch: raised with every change of leader, and when a controller changes the ISR.
        isr: in-sync replicas, in assignment order.
        partition_epoch: raised with every change (ZooKeeper's version of the state).
        replicas: the assignment.
        controller_epoch: of the controller that made the last decision.
        joined: incarnation of each ISR member's process when it joined, for rule ``missed_bounce``; kept by ZooKeeper.
    """

    __slots__ = (
        "controller_epoch",
        "isr",
        "joined",
        "leader",
        "leader_epoch",
        "name",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        name: str,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        partition_epoch: int,
        replicas: tuple[int, ...],
        controller_epoch: int = 0,
        joined: abc.Mapping[int, int] | None = None,
    ) -> None:
        self.joined: Final[abc.Mapping[int, int]] = joined or {}
        self.name: Final = name
        self.leader: Final = leader
        self.leader_epoch: Final = leader_epoch
        self.isr: Final = isr
        self.partition_epoch: Final = partition_epoch
        self.replicas: Final = replicas
        self.controller_epoch: Final = controller_epoch

    def during_delete(self) -> LeaderAndIsr:
        """This state as a controller sends it while the topic is being deleted.

        Kafka: LeaderAndIsr#duringDelete (1.1-3.9).
        """
        return LeaderAndIsr(
            self.name, LEADER_DURING_DELETE, EPOCH_DURING_DELETE, self.isr, self.partition_epoch, self.replicas
        )

    def assigned(self, replicas: tuple[int, ...]) -> LeaderAndIsr:
        """This state with another assignment."""
        return LeaderAndIsr(
            self.name,
            self.leader,
            self.leader_epoch,
            self.isr,
            self.partition_epoch,
            replicas,
            self.controller_epoch,
            self.joined,
        )


class AbstractControlRequest:
    """Base of the controller's three requests. Kafka: AbstractControlRequest (2.6-3.9).

    Attributes:
        broker_epoch: of the registration that it is meant for.
        states: of the partitions that it is about.
    """

    __slots__ = ("broker_epoch", "controller_epoch", "states")

    needs_partition = True
    """Whether the broker handles it under the partitions' locks."""

    def __init__(self, controller_epoch: int, broker_epoch: int, states: tuple[LeaderAndIsr, ...]) -> None:
        self.controller_epoch: Final = controller_epoch
        self.broker_epoch: Final = broker_epoch
        self.states: Final = states


class LeaderAndIsrRequest(AbstractControlRequest):
    """Makes a broker leader or follower of partitions. Kafka: requests.LeaderAndIsrRequest (0.10.2-4.1)."""

    __slots__ = ()


class UpdateMetadataRequest(AbstractControlRequest):
    """The leaders, for clients; `live`: registered brokers with their broker epochs.

    `number`, with rule ``broker_metadata=last-sent``: its sequence number at this controller, from 1.
    Kafka: requests.UpdateMetadataRequest (0.10.2-3.9).
    """

    __slots__ = ("live", "number")
    needs_partition = False

    def __init__(
        self,
        controller_epoch: int,
        broker_epoch: int,
        states: tuple[LeaderAndIsr, ...],
        live: abc.Mapping[int, int],
        number: int,
    ) -> None:
        super().__init__(controller_epoch, broker_epoch, states)
        self.live: Final = live
        self.number: Final = number


class StopReplicaRequest(AbstractControlRequest):
    """Stops a follower of partitions; with `delete` its replicas are deleted.

    Kafka: requests.StopReplicaRequest (0.10.2-3.9).
    """

    __slots__ = ("delete",)

    def __init__(
        self, controller_epoch: int, broker_epoch: int, states: tuple[LeaderAndIsr, ...], *, delete: bool
    ) -> None:
        super().__init__(controller_epoch, broker_epoch, states)
        self.delete: Final = delete


class ControllerRequestBatch(Message):
    """Requests of one controller step to one broker, in order."""

    __slots__ = ("controller", "requests")

    def __init__(self, controller: int, requests: abc.Sequence[AbstractControlRequest]) -> None:
        self.controller: Final = controller
        self.requests: Final = requests

    def again(self) -> ControllerRequestBatch:
        """A resend of the same requests; responses to it match no other batch."""
        return ControllerRequestBatch(self.controller, self.requests)

    def has_to_wait(self, *, registered: bool) -> bool:
        """See `Event.has_to_wait`: a batch with only UpdateMetadata does not wait."""
        return not registered or any(request.needs_partition for request in self.requests)

    def needs(self, names: abc.Container[str]) -> bool:
        """See `Event.needs`."""
        return any(
            request.needs_partition and any(state.name in names for state in request.states)
            for request in self.requests
        )

    def about(self) -> int:
        state = self.requests[0].states[0]
        return CONTROL + (state.partition_epoch << ABOUT) + state.leader_epoch


NOTHING_DELETED: Final[abc.Mapping[str, str]] = {}


class ControlResponse(Message):
    """A broker's response to a batch; the controller ignores the errors of all requests but StopReplica with `delete`.

    `deleted` has an error or `NONE` for each partition of those; nothing of a request that was refused as a whole.
    """

    __slots__ = ("batch", "broker", "deleted")

    def __init__(
        self, broker: int, batch: ControllerRequestBatch, deleted: abc.Mapping[str, str] = NOTHING_DELETED
    ) -> None:
        self.broker: Final = broker
        self.batch: Final = batch
        self.deleted: Final = deleted

    def about(self) -> int:
        return REPLY + self.batch.about()


class ControlledShutdownRequest(Message):
    """A broker's request to move its leaderships away. Kafka: requests.ControlledShutdownRequest (0.10.2-3.9)."""

    __slots__ = ("broker", "broker_epoch")

    def __init__(self, broker: int, broker_epoch: int) -> None:
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch

    def about(self) -> int:
        return CONTROLLED_SHUTDOWN + self.broker_epoch


class ControlledShutdownResponse(Message):
    """Response: an error, and how many it still leads. Kafka: requests.ControlledShutdownResponse (0.10.2-3.9)."""

    __slots__ = ("error", "remaining", "request")

    def __init__(self, request: ControlledShutdownRequest, error: str, remaining: int) -> None:
        self.request: Final = request
        self.error: Final = error
        self.remaining: Final = remaining

    def about(self) -> int:
        return REPLY + self.request.about()
