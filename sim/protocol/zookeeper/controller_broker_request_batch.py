"""The requests by which a controller sends the partition's state to brokers."""

from __future__ import annotations

from collections.abc import Iterable

from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost


class ControllerBrokerRequestBatch:
    """Requests of one controller; its host queues them, and sends them after a step of a handler.

    Kafka: ControllerBrokerRequestBatch.
    """

    def __init__(self, context: ControllerContext, host: ControllerHost) -> None:
        self._context = context
        self._host = host

    def send_state(self, replicas: Iterable[int], *, update: bool = True) -> None:
        """Send LeaderAndIsr to some replicas, then UpdateMetadata to all brokers.

        Kafka: ControllerBrokerRequestBatch#addLeaderAndIsrRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addLeaderAndIsrRequestForBrokers (2.6-3.9).
        """
        for broker in replicas:
            self._host.send_leader_and_isr(broker, self._context.state)
        if update:
            self.update_metadata()

    def update_metadata(self) -> None:
        """Send UpdateMetadata to all live brokers.

        Kafka: ControllerBrokerRequestBatch#addUpdateMetadataRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addUpdateMetadataRequestForBrokers (2.6-3.9),
        KafkaController#sendUpdateMetadataRequest.
        """
        live = dict(self._context.live)
        for broker in live:
            self._host.send_update_metadata(broker, self._context.state, live)

    def stop(self, broker: int, *, delete: bool) -> None:
        """Send StopReplica to a replica, if it is live.

        Kafka: ControllerBrokerRequestBatch#addStopReplicaRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addStopReplicaRequestForBrokers (2.6-3.9).
        """
        if broker in self._context.live:
            self._host.send_stop_replica(broker, self._context.state, delete=delete)
