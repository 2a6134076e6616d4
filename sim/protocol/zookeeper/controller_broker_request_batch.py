"""The requests by which a controller sends the partitions' states to brokers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost


class ControllerBrokerRequestBatch:
    """Requests of one controller; its host queues them, and sends them after a step of a handler.

    A request has the states of several partitions, if they change together. Kafka: ControllerBrokerRequestBatch.
    """

    def __init__(self, context: ControllerContext, host: ControllerHost) -> None:
        self._context = context
        self._host = host

    def send_to_replicas(self, names: Iterable[str], *, besides: Container[int] = ()) -> None:
        """`send_states` to all live replicas of partitions but some brokers."""
        context = self._context
        self.send_states(
            {name: [replica for replica in context.replicas(name) if replica not in besides] for name in names}
        )

    def send_states(self, replicas: Mapping[str, Sequence[int]], *, update: bool = True) -> None:
        """Send LeaderAndIsr of partitions to some of their replicas, then UpdateMetadata to all brokers.

        Kafka: ControllerBrokerRequestBatch#addLeaderAndIsrRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addLeaderAndIsrRequestForBrokers (2.6-3.9).
        """
        states = self._context.states
        of_brokers: dict[int, list[LeaderAndIsr]] = {}
        for name, brokers in replicas.items():
            for broker in brokers:
                of_brokers.setdefault(broker, []).append(states[name])
        for broker, sent in of_brokers.items():
            self._host.send_leader_and_isr(broker, tuple(sent))
        if update and replicas:
            self._update_metadata([states[name] for name in replicas])

    def update_metadata(self, names: Iterable[str] | None = None) -> None:
        """Send UpdateMetadata to all live brokers, with these partitions or by default all.

        Kafka: ControllerBrokerRequestBatch#addUpdateMetadataRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addUpdateMetadataRequestForBrokers (2.6-3.9),
        KafkaController#sendUpdateMetadataRequest.
        """
        context = self._context
        states = [context.states[name] for name in (context.existing if names is None else names)]
        self._update_metadata(states or [context.first])

    def _update_metadata(self, states: Sequence[LeaderAndIsr]) -> None:
        live, sent = dict(self._context.live), self._during_delete(states)
        for broker in live:
            self._host.send_update_metadata(broker, sent, live)

    def stop(self, broker: int, names: Iterable[str], *, delete: bool) -> None:
        """Send StopReplica of partitions to one of their replicas, if it is live.

        Kafka: ControllerBrokerRequestBatch#addStopReplicaRequestForBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#addStopReplicaRequestForBrokers (2.6-3.9).
        """
        if broker in self._context.live:
            states = self._context.states
            sent = self._during_delete([states[name] for name in names])
            self._host.send_stop_replica(broker, sent, delete=delete)

    def _during_delete(self, states: Sequence[LeaderAndIsr]) -> tuple[LeaderAndIsr, ...]:
        """These states, those of topics to be deleted as UpdateMetadata and StopReplica have them."""
        context = self._context
        if not context.topics_to_be_deleted:
            return tuple(states)
        return tuple([state.during_delete() if context.is_queued(state.name) else state for state in states])
