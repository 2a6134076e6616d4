"""Messages of a run in Kafka's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.hosts.cluster import CONSUMER, PRODUCER, VALIDATOR
from sim.hosts.control_plane import CONTROL
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.kernel.message import Message

CLIENTS: Final = {PRODUCER: "producer", CONSUMER: "consumer", VALIDATOR: "validator"}
WORDS: Final[Mapping[str, str]] = {
    "on_produce": "Produce",
    "on_produce_reply": "Produce response",
    "on_fetch": "Fetch",
    "on_fetch_reply": "Fetch response",
    "on_epoch_end": "OffsetsForLeaderEpoch",
    "on_epoch_end_reply": "OffsetsForLeaderEpoch response",
    "on_list_offsets": "ListOffsets",
    "on_list_offsets_reply": "ListOffsets response",
    "on_metadata": "Metadata",
    "on_metadata_reply": "Metadata response",
    "on_control": "UpdateMetadata",
    "on_control_reply": "its response",
    "on_controlled_shutdown": "ControlledShutdown",
    "on_controlled_shutdown_reply": "ControlledShutdown response",
    "on_alter_partition": "AlterPartition",
    "on_alter_partition_reply": "AlterPartition response",
    "on_register": "registration",
    "on_registered": "registration response",
    "on_heartbeat": "BrokerHeartbeat",
    "on_heartbeat_reply": "BrokerHeartbeat response",
    "on_metadata_records": "metadata records",
    "on_get_replica_log_info": "GetReplicaLogInfo",
    "on_replica_log_info": "GetReplicaLogInfo response",
    "on_ping": "ZooKeeper ping",
    "on_request": "ZooKeeper request",
    "on_zookeeper_reply": "ZooKeeper response",
    "on_watched_event": "ZooKeeper watch event",
    "on_session_expired": "ZooKeeper session expired",
    "on_script": "decision",
}
"""Who handles a message -> what it is; of a controller's batch of requests, if nothing in it is more than that."""


def name_of(handler: str, message: Message) -> str:
    """What a message is called."""
    if isinstance(message, ControlResponse):
        return f"{name_of('on_control', message.batch)} response"
    if isinstance(message, ControllerRequestBatch):
        for kind, name in ((StopReplicaRequest, "StopReplica"), (LeaderAndIsrRequest, "LeaderAndIsr")):
            if any(isinstance(request, kind) for request in message.requests):
                return name
    return WORDS.get(handler, handler.removeprefix("on_").replace("_", " "))


def node(number: int) -> str:
    """A sender or receiver."""
    return CLIENTS.get(number) or (f"broker {number}" if number != CONTROL else "control plane")


def about(message: Message) -> dict[str, Any]:
    """What a message says, as far as stories are about it; empty of others."""
    if isinstance(message, ControlResponse):
        return about(message.batch)
    if isinstance(message, ControllerRequestBatch):
        state = message.requests[0].state
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
