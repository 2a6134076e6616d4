"""A broker's ZooKeeper session and requests, which are retried until answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.environment.elision import ElidedPings
from sim.hosts.broker import Broker
from sim.hosts.zk_messages import ZooKeeperRequest, ZooKeeperResponse
from sim.protocol.zookeeper.zk_operations import Operation

_Pending = tuple[Operation, int, Callable[[Any], None], bool]
"""An unanswered request: (operation, subject, called with the result, whether it outlives the session)."""


class ZooKeeperClient:
    """A ZooKeeper session; see the module. Kafka: zookeeper.ZooKeeperClient (1.1-3.9), KafkaZkClient (1.1-3.9).

    Attributes:
        session: the broker epoch of the open session, -1 without one.
        pending: unanswered requests, by ascending number.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker: Broker | None = broker
        self.session = -1
        self.pending: dict[int, _Pending] = {}
        self._requests = 0

    def end(self) -> None:
        """Drop all requests, because the process ended."""
        self._broker = None
        self.pending.clear()

    def expired(self) -> None:
        """Handle session expiry: drop requests that do not outlive the session."""
        self.session = -1
        self.pending = {number: request for number, request in self.pending.items() if request[3]}

    def ask(
        self,
        operation: Operation,
        done: Callable[[Any], None],
        subject: int,
        *,
        outlives_session: bool = False,
    ) -> None:
        """Send a request; `done` is called with the result of the operation.

        Args:
            operation: executed by ZooKeeper.
            done: called with the result.
            subject: see `ZooKeeperRequest`.
            outlives_session: whether the request is also sent in the broker's next session.

        Kafka: zookeeper.ZooKeeperClient#handleRequests (1.1-3.9), KafkaZkClient#retryRequestsUntilConnected (1.1-3.9).
        """
        broker = self._broker
        if broker is None:
            return
        self._requests += 1
        broker.end_elision(ElidedPings)  # Each ping resends it.
        self.pending[self._requests] = operation, subject, done, outlives_session
        self._send(self._requests, operation, subject)

    def resend(self) -> None:
        """Resend unanswered requests."""
        for number, (operation, subject, _, _) in self.pending.items():
            self._send(number, operation, subject)

    def _send(self, number: int, operation: Operation, subject: int) -> None:
        broker = self._broker
        if broker is not None and self.session >= 0 and not broker.zombie:
            answered = next(iter(self.pending)) - 1
            broker.to_control(ZooKeeperRequest(broker.node, self.session, number, answered, operation, subject))

    def replied(self, response: ZooKeeperResponse) -> None:
        """Handle the response to a request; one that was dropped, or answered before, is ignored."""
        request = self.pending.pop(response.request.number, None)
        if request is not None:
            _, _, done, _ = request
            done(response.result)
