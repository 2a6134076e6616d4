"""Controlled shutdown of a broker with ZooKeeper."""

from __future__ import annotations

from sim.hosts.broker import SHUTDOWN, Broker
from sim.hosts.zk_client import ZooKeeperClient
from sim.hosts.zk_messages import FIND_CONTROLLER, SCRIPT
from sim.kernel.message import ABOUT
from sim.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from sim.protocol.zookeeper.zk_operations import FindController


class ShutdownTries:
    """Requests controlled shutdown, with up to ``controlled.shutdown.max.retries`` retries. Kafka:
    KafkaServer#controlledShutdown.
    """

    def __init__(self, broker: Broker, zookeeper: ZooKeeperClient) -> None:
        self._broker: Broker | None = broker
        self._zookeeper = zookeeper
        self._request: ControlledShutdownRequest | None = None
        self._tries = 0

    def end(self) -> None:
        """Stop, because the process ended."""
        self._broker = None

    def begin(self) -> None:
        """Send the first request, unless shutdown has begun."""
        if not self._tries:
            self._try(None)

    def _try(self, _: object) -> None:
        broker = self._broker
        if broker is None:
            return
        settings, now_us = broker.settings, broker.kernel.now_us
        if self._tries == settings.shutdown_tries:
            broker.exit(SHUTDOWN)
            return
        self._tries += 1
        self._request = ControlledShutdownRequest(broker.node, broker.broker_epoch)
        self._zookeeper.ask(FindController(), self._ask_controller, FIND_CONTROLLER << ABOUT)
        broker.kernel.call_at(now_us + settings.shutdown_backoff_us, broker.life, self._time_out, self._request)

    def _ask_controller(self, controller: int) -> None:
        broker = self._broker
        if broker is None:
            return
        if controller == SCRIPT:  # A script moves leadership before.
            broker.exit(SHUTDOWN)
            return
        channel = broker.reach(controller) if controller else None
        if channel is not None and self._request is not None:
            channel.send(self._request)

    def _time_out(self, request: ControlledShutdownRequest) -> None:
        if request is self._request:
            self._try(None)

    def replied(self, reply: ControlledShutdownResponse) -> None:
        """Stop if all leaderships were moved; otherwise retry after the back-off."""
        if self._broker is not None and reply.request is self._request and not reply.error and not reply.remaining:
            self._broker.exit(SHUTDOWN)
