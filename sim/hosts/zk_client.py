"""A broker's ZooKeeper session and requests, which are retried until answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.environment.elision import ElidedPings
from sim.hosts.zk_messages import ZooKeeperRequest

if TYPE_CHECKING:
    from sim.hosts.zk_broker import ZooKeeperBroker


class ZooKeeperClient:
    """A ZooKeeper session; see the module. Kafka: zookeeper.ZooKeeperClient (1.1-3.9), KafkaZkClient (1.1-3.9).

    Attributes:
        session: the broker epoch of the open session, -1 without one.
        pending: unanswered requests.
    """

    def __init__(self, broker: ZooKeeperBroker) -> None:
        self._broker: ZooKeeperBroker | None = broker
        self.session = -1
        self.pending: list[ZooKeeperRequest] = []

    def end(self) -> None:
        """Drop all requests, because the process ended."""
        self._broker = None
        self.pending.clear()

    def expired(self) -> None:
        """Handle session expiry: drop requests that do not outlive the session."""
        self.session = -1
        self.pending = [request for request in self.pending if request.outlives_session]

    def ask(
        self,
        operation: Callable[[Any], Any],
        done: Callable[[Any], None],
        subject: int,
        *,
        outlives_session: bool = False,
    ) -> None:
        """Send a request: `operation` is called with ZooKeeper, `done` with the result. See `ZooKeeperRequest`.

        Kafka: zookeeper.ZooKeeperClient#handleRequests (1.1-3.9), KafkaZkClient#retryRequestsUntilConnected (1.1-3.9).
        """
        broker = self._broker
        if broker is None:
            return
        request = ZooKeeperRequest(broker.node, operation, done, subject, outlives_session=outlives_session)
        broker.end_elision(ElidedPings)  # Each ping resends it.
        self.pending.append(request)
        self._send(request)

    def resend(self) -> None:
        """Resend unanswered requests."""
        for request in self.pending:
            self._send(request)

    def _send(self, request: ZooKeeperRequest) -> None:
        broker = self._broker
        if broker is not None and self.session >= 0 and not broker.zombie:
            request.broker_epoch = self.session
            broker.to_control(request)

    def replied(self, request: ZooKeeperRequest) -> None:
        """Handle the response to a request."""
        if request in self.pending:
            self.pending.remove(request)
            request.done(request.result)
