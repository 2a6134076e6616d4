"""A broker's session at ZooKeeper, and what it wants done there: asked again until it is answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.environment.elision import ElidedPings
from sim.hosts.zk_messages import Request

if TYPE_CHECKING:
    from sim.hosts.zk_broker import ZooKeeperBroker


class ZooKeeperClient:
    """See the module. Kafka: zookeeper.ZooKeeperClient (1.1-3.9), KafkaZkClient (1.1-3.9).

    Args:
        broker: whose.

    Attributes:
        session: the broker epoch that it was opened with, -1 while there is none.
        pending: what was not answered yet.
    """

    __slots__ = ("_broker", "pending", "session")

    def __init__(self, broker: ZooKeeperBroker) -> None:
        self._broker: ZooKeeperBroker | None = broker
        self.session = -1
        self.pending: deque[Request] = deque()

    def end(self) -> None:
        """The process is over."""
        self._broker = None
        self.pending.clear()

    def expired(self) -> None:
        """The session is gone, and with it what does not outlive it."""
        self.session = -1
        self.pending = deque(request for request in self.pending if request.lasting)

    def ask(
        self, operation: Callable[[Any], Any], done: Callable[[Any], None], concerns: int, *, lasting: bool = False
    ) -> None:
        """Have something done.

        Kafka: zookeeper.ZooKeeperClient#handleRequests (1.1-3.9), KafkaZkClient#retryRequestsUntilConnected (1.1-3.9).

        Args:
            operation: what is done, with ZooKeeper as its argument.
            done: called with the result.
            concerns: see `Request`.
            lasting: asked again also in the next session.
        """
        broker = self._broker
        if broker is None:
            return
        request = Request(broker.node, operation, done, concerns, lasting=lasting)
        broker.end_elision(ElidedPings)  # With each ping it is asked again.
        self.pending.append(request)
        self._send(request)

    def ask_again(self) -> None:
        """Repeat what was not answered."""
        for request in self.pending:
            self._send(request)

    def _send(self, request: Request) -> None:
        broker = self._broker
        if broker is not None and self.session >= 0 and not broker.zombie:
            request.broker_epoch = self.session
            broker.to_control(request)

    def replied(self, request: Request) -> None:
        """Something was done."""
        if request in self.pending:
            self.pending.remove(request)
            request.done(request.result)
