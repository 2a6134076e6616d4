"""The events of a controller: one at a time, in order of arrival."""

from __future__ import annotations

from typing import Any

from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.zk_operations import Steps


class ControllerEventManager:
    """The queue of a controller's events, and the current handler. Kafka: ControllerEventManager (1.1-3.9).

    Attributes:
        accepts: whether new events are accepted.
        finishing: whether the current handler is the last.
    """

    def __init__(self, host: ControllerHost) -> None:
        self._host = host
        self._queue: list[Steps] = []
        self._handling: Steps | None = None
        self.accepts = False
        self.finishing = False

    @property
    def is_handling(self) -> bool:
        """Whether a handler waits for ZooKeeper."""
        return self._handling is not None

    def begin(self, steps: Steps) -> None:
        """Handle an event and accept others from now on, unless an earlier handler has yet to finish."""
        self.accepts = not self.finishing
        self.put(steps)

    def put(self, steps: Steps) -> None:
        """Queue an event, or drop it while none are accepted. Kafka: ControllerEventManager#put (1.1-3.9)."""
        if not self.accepts:
            return
        self._queue.append(steps)
        if self._handling is None:
            self.handle_next()

    def handle_next(self) -> None:
        """Handle events until a handler waits. Kafka: ControllerEventManager.ControllerEventThread#doWork (1.1-3.9)."""
        while self._queue:
            self._handling = self._queue.pop(0)
            if self._advance(None):
                return
        self._handling = None

    def _advance(self, result: Any) -> bool:
        """Run the current handler to its next request to ZooKeeper; False when it is done."""
        assert self._handling is not None
        try:
            operation = self._handling.send(result)
        except StopIteration:
            self._host.flush()
            return False
        self._host.flush()
        self._host.ask_zookeeper(operation)
        return True

    def on_zookeeper_result(self, result: Any) -> bool:
        """Resume the current handler with ZooKeeper's response; returns whether it is done."""
        return self._handling is not None and not self._advance(result)

    def fail(self) -> None:
        """Abort the current handler. Kafka: StateChangeFailedException."""
        self._handling = None

    def finish(self) -> None:
        """Accept no new events and drop queued ones; the current handler continues."""
        self._queue.clear()
        self.accepts = False
        self.finishing = True

    def clear(self) -> None:
        """Drop all events, including the current one. Kafka: ControllerEventManager#clearAndPut (1.1-3.9)."""
        self.accepts = False
        self.finishing = False
        self._queue.clear()
        self._handling = None
