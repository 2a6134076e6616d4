"""A broker's ZooKeeper session and requests, which are retried until answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.environment.elision import ElidedPings
from sim.hosts.zk_messages import ZooKeeperOperation, ZooKeeperRequest

if TYPE_CHECKING:
    from sim.hosts.zk_broker import ZooKeeperBroker


class ZooKeeperClient:
    """A ZooKeeper session; see the module. Kafka: zookeeper.ZooKeeperClient (1.1-3.9), KafkaZkClient (1.1-3.9).

    Attributes:
        session: the broker epoch of the open session, -1 without one.
        pending: operations whose requests are unanswered.
    """

    def __init__(self, broker: ZooKeeperBroker) -> None:
        self._broker: ZooKeeperBroker | None = broker
        self.session = -1
        self.pending: deque[ZooKeeperOperation] = deque()

    def end(self) -> None:
        """Drop all requests, because the process ended."""
        self._broker = None
        self.pending.clear()

    def expired(self) -> None:
        """Handle session expiry: drop requests that do not outlive the session."""
        self.session = -1
        self.pending = deque(operation for operation in self.pending if operation.outlives_session)

    def ask(
        self,
        execute: Callable[[Any], Any],
        done: Callable[[Any], None],
        subject: int,
        *,
        outlives_session: bool = False,
    ) -> None:
        """Send a request: `execute` is called with ZooKeeper, `done` with the result. See `ZooKeeperOperation`.

        Kafka: zookeeper.ZooKeeperClient#handleRequests (1.1-3.9), KafkaZkClient#retryRequestsUntilConnected (1.1-3.9).
        """
        broker = self._broker
        if broker is None:
            return
        operation = ZooKeeperOperation(broker.node, execute, done, subject, outlives_session=outlives_session)
        broker.end_elision(ElidedPings)  # Each ping resends it.
        self.pending.append(operation)
        self._send(operation)

    def resend(self) -> None:
        """Resend unanswered requests."""
        for operation in self.pending:
            self._send(operation)

    def _send(self, operation: ZooKeeperOperation) -> None:
        broker = self._broker
        if broker is not None and self.session >= 0 and not broker.zombie:
            operation.broker_epoch = self.session
            broker.to_control(ZooKeeperRequest(operation))

    def replied(self, operation: ZooKeeperOperation) -> None:
        """Handle the response to a request for an operation."""
        if operation in self.pending:
            self.pending.remove(operation)
            operation.done(operation.result)
