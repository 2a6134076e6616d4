"""A leader's ISR changes on their way to the active controller: sends what `AlterPartitionManager` decides."""

from __future__ import annotations

from collections.abc import Sequence

from sim.hosts.broker_node import BrokerNode
from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.node_to_controller_channel_manager import NodeToControllerChannelManager
from sim.protocol import probes
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager, proposed_isr
from sim.protocol.kraft.quorum_messages import AlterPartitionRequest, AlterPartitionResponse
from sim.protocol.replica.partition import Partition


class AlterPartitionChannel:
    """See the module. Kafka: DefaultAlterPartitionManager.

    Attributes:
        manager: collects changes.
    """

    __deletable__ = ("manager",)
    __slots__ = ("_broker", "_channel", "_isr_expiration", "manager")

    def __init__(self, broker: BrokerNode, isr_expiration: IsrExpiration) -> None:
        self._broker = broker
        self._isr_expiration = isr_expiration
        self.manager = AlterPartitionManager(self)
        self._channel = NodeToControllerChannelManager(
            broker, broker.settings.controller_socket_timeout_us, self._send_again
        )

    def end(self) -> None:
        """Drop all changes, because the process ended."""
        self.manager = AlterPartitionManager(self)
        self._channel.end()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        del self.manager

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `HostedReplicas.propose_isr`: send an AlterPartition to the controller."""
        broker, manager = self._broker, self.manager
        change = proposed_isr(partition, isr, broker.broker_epoch)
        in_flight = manager.in_flight
        if in_flight is not None and all(other.name != change.name for other in in_flight):
            broker.reached(probes.ISR_CHANGE_WAITS)
        manager.submit(partition, change, broker.kernel.now_us)

    def send_alter_partition(self, changes: Sequence[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost.send_alter_partition`.

        Kafka: DefaultAlterPartitionManager#sendRequest.
        """
        self._channel.send(AlterPartitionRequest(self._broker.node, self._broker.broker_epoch, changes))

    def _send_again(self) -> None:
        """Send the changes of a request that timed out again, unchanged."""
        self.send_alter_partition(self.manager.in_flight or ())

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost.retry_alter_partition`."""
        kernel = self._broker.kernel
        kernel.call_at(kernel.now_us + after_us, self._broker.life, self._retry, None)

    def _retry(self, _: object) -> None:
        self.manager.send()

    def on_reply(self, reply: AlterPartitionResponse) -> None:
        """Handle the response to an AlterPartition."""
        if self._channel.is_answered_by(reply.request):
            broker = self._broker
            self.manager.on_reply(reply.error, reply.results, broker.kernel.now_us)
            self._isr_expiration.schedule()
            broker.network.note_broker_change()
