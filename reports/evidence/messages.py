"""Names and contents of a run's messages, in Kafka's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sim.hosts.client import CONSUMER, PRODUCER, VALIDATOR, like_first
from sim.hosts.control_plane import CONTROL, FIRST_CONTROLLER
from sim.hosts.zk_messages import (
    Ping,
    RegistrationRequest,
    RegistrationResponse,
    ScriptedDecision,
    SessionExpired,
    WatchedEvent,
    ZooKeeperRequest,
    ZooKeeperResponse,
)
from sim.kernel.message import Message
from sim.protocol.kraft.quorum_messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    MetadataRecords,
)
from sim.protocol.messages import (
    NO_EPOCH,
    ControllerRequestBatch,
    ControlResponse,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
)

CLIENTS: Final = {PRODUCER: "producer", CONSUMER: "consumer", VALIDATOR: "validator"}
WORDS: Final[Mapping[type[Message], str]] = {
    ControllerRequestBatch: "UpdateMetadata",
    BrokerRegistrationRequest: "registration",
    BrokerRegistrationResponse: "registration response",
    RegistrationRequest: "registration",
    RegistrationResponse: "registration response",
    MetadataRecords: "metadata records",
    Ping: "ZooKeeper ping",
    ZooKeeperRequest: "ZooKeeper request",
    ZooKeeperResponse: "ZooKeeper response",
    WatchedEvent: "ZooKeeper watch event",
    SessionExpired: "ZooKeeper session expired",
    ScriptedDecision: "decision",
}
"""Message type -> its name, if its class is not called like Kafka's message; for a controller's batch of requests, the
name unless a request in it has a better one.
"""


def name_of(message: Message) -> str:
    """The name of a message: ``Fetch`` for `FetchRequest`, ``Fetch response`` for `FetchResponse`."""
    if isinstance(message, ControlResponse):
        return f"{name_of(message.batch)} response"
    if isinstance(message, ControllerRequestBatch):
        for kind, name in ((StopReplicaRequest, "StopReplica"), (LeaderAndIsrRequest, "LeaderAndIsr")):
            if any(isinstance(request, kind) for request in message.requests):
                return name
    own = type(message).__name__
    return WORDS.get(type(message)) or own.removesuffix("Request").replace("Response", " response")


def node(number: int) -> str:
    """The name of a sender or receiver; clients of all partitions are called alike."""
    if FIRST_CONTROLLER <= number < PRODUCER:
        return f"controller {number}"
    return CLIENTS.get(like_first(number)) or (f"broker {number}" if number != CONTROL else "control plane")


def about(message: Message) -> dict[str, Any]:
    """The fields of a message that matter to stories; empty if it has none."""
    if isinstance(message, ControlResponse):
        return about(message.batch)
    if isinstance(message, ControllerRequestBatch):
        state = message.requests[0].states[0]
        return {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": list(state.isr)}
    if isinstance(message, MetadataResponse):
        return {"leader": message.leader, "leader_epoch": message.leader_epoch}
    return _of_log(message)


def _of_log(message: Message) -> dict[str, Any]:
    if isinstance(message, ProduceRequest):
        return {"record": message.first_id, "records": message.count}
    if isinstance(message, ProduceResponse):
        return {"record": message.request.first_id, **_error(message.error), "offset": message.base_offset}
    if isinstance(message, FetchRequest):
        _, offset, epoch, _ = message.positions[0]
        return {"offset": offset} | ({"leader_epoch": epoch} if epoch != NO_EPOCH else {})
    if isinstance(message, FetchResponse):
        _, error, batches, hw, _, epoch, _ = message.results[0]
        return {**_error(error), "records": [batch.first_id for batch in batches], "hw": hw, "leader_epoch": epoch}
    if isinstance(message, OffsetsForLeaderEpochRequest):
        return {"leader_epoch": message.asks[0][2]}
    if isinstance(message, OffsetsForLeaderEpochResponse):
        _, error, epoch, end = message.results[0]
        return {**_error(error), "leader_epoch": epoch, "end_offset": end}
    return {}


def _error(error: str) -> dict[str, str]:
    return {"error": error} if error else {}
