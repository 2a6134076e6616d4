"""Callbacks of a controller to its broker."""

from __future__ import annotations

from sim.native import mypyc_attr
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.zk_operations import Operation


@mypyc_attr(allow_interpreted_subclasses=True)
class ControllerHost:
    """Callbacks to the controller's broker."""

    __slots__ = ()

    def ask_zookeeper(self, operation: Operation) -> None:
        """Send a request to ZooKeeper; `KafkaController.on_zookeeper_result` or `on_controller_moved` follows."""
        raise NotImplementedError

    def broker_added(self, broker: int) -> None:
        """Requests to this broker may be sent from now on. Kafka: ControllerChannelManager#addBroker."""
        raise NotImplementedError

    def broker_removed(self, broker: int) -> None:
        """Drop unsent requests to this broker. Kafka: ControllerChannelManager#removeBroker."""
        raise NotImplementedError

    def send_leader_and_isr(self, broker: int, states: tuple[LeaderAndIsr, ...]) -> None:
        """Queue a request about partitions to a live broker. Kafka: ControllerChannelManager#sendRequest."""
        raise NotImplementedError

    def send_update_metadata(self, broker: int, states: tuple[LeaderAndIsr, ...], live: dict[int, int]) -> None:
        """Queue a request about partitions to a live broker. Kafka: ControllerChannelManager#sendRequest."""
        raise NotImplementedError

    def send_stop_replica(self, broker: int, states: tuple[LeaderAndIsr, ...], *, delete: bool) -> None:
        """Queue a request about partitions to a live broker. Kafka: ControllerChannelManager#sendRequest."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send the requests queued since the last step.

        Kafka: ControllerBrokerRequestBatch#sendRequestsToBrokers (0.10.2-2.0),
        AbstractControllerBrokerRequestBatch#sendRequestsToBrokers (2.6-3.9).
        """
        raise NotImplementedError

    def active(self, epoch: int) -> None:
        """This controller becomes active."""
        raise NotImplementedError

    def resigned(self) -> None:
        """This controller resigned; its queued requests are dropped."""
        raise NotImplementedError

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""
        raise NotImplementedError
