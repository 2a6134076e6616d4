"""The requests by which a controller tells brokers how things stand.

Kafka class: ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_host import ControllerHost


class ControllerBrokerRequestBatch:
    """Requests of one controller; its host queues them, and sends them when a step of a handler is over.

    Args:
        context: what the controller knows.
        host: its broker.
    """

    def __init__(self, context: ControllerContext, host: ControllerHost) -> None:
        self._context = context
        self._host = host

    def tell(self, replicas: Iterable[int], *, update: bool = True) -> None:
        """LeaderAndIsr to some replicas, then UpdateMetadata to all brokers."""
        for broker in replicas:
            self._host.send_leader_and_isr(broker, self._context.state)
        if update:
            self.update_metadata()

    def update_metadata(self) -> None:
        """UpdateMetadata to all live brokers."""
        live = dict(self._context.live)
        for broker in live:
            self._host.send_update_metadata(broker, self._context.state, live)

    def stop(self, broker: int, *, delete: bool) -> None:
        """StopReplica to a replica, if it is live."""
        if broker in self._context.live:
            self._host.send_stop_replica(broker, self._context.state, delete=delete)
