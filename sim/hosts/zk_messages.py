"""What a broker and ZooKeeper say to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sim.config import Value
from sim.hosts.control_plane import CONTROL
from sim.protocol.zookeeper.election import BrokerInfo

ZOOKEEPER: Final = CONTROL
"""Node id of ZooKeeper."""
SCRIPT: Final = -1
"""Holder of the controller's seat while a script decides."""


class Register:
    """A broker opens a session and registers in it."""

    __slots__ = ("broker", "info")

    def __init__(self, broker: int, info: BrokerInfo) -> None:
        self.broker = broker
        self.info = info


class Registered:
    """Answer to `Register`: the broker epoch (czxid of the registration), or -1: another registration is in the way.

    `controller` is whose seat it is, 0 if nobody's; `config` is the dynamic configuration.
    """

    __slots__ = ("broker_epoch", "config", "controller", "request")

    def __init__(self, request: Register, broker_epoch: int, controller: int, config: dict[str, Value]) -> None:
        self.request = request
        self.broker_epoch = broker_epoch
        self.controller = controller
        self.config = config


class Ping:
    """A sign of life of a session.

    Attributes:
        broker: whose.
        broker_epoch: which session.
        noticed: number of the last notice up to which all were heard.
        partition_epoch: the newest that the broker was told (for scripts).
    """

    __slots__ = ("broker", "broker_epoch", "noticed", "partition_epoch")

    def __init__(self, broker: int, broker_epoch: int, noticed: int, partition_epoch: int) -> None:
        self.broker = broker
        self.broker_epoch = broker_epoch
        self.noticed = noticed
        self.partition_epoch = partition_epoch


class Notice:
    """A watch fired: what to call at the broker, and with what. Numbered within its session."""

    __slots__ = ("argument", "broker_epoch", "handler", "number", "sent_us")

    def __init__(self, broker_epoch: int, number: int, handler: str, argument: object, sent_us: int) -> None:
        self.broker_epoch = broker_epoch
        self.number = number
        self.handler = handler
        self.argument = argument
        self.sent_us = sent_us


class Request:
    """Something that a broker wants done at ZooKeeper.

    Attributes:
        broker: who asks.
        broker_epoch: in which session.
        operation: what is done, with ZooKeeper as its argument.
        done: called with the result, at the broker.
        lasting: whether it outlives the session.
        result: what came of it, once it was done; asked again, that is the answer. (Kafka finds out by comparing what
            it reads with what it meant to write, ReplicationUtils.checkLeaderAndIsrZkData.)
    """

    __slots__ = ("broker", "broker_epoch", "done", "lasting", "operation", "result")

    def __init__(
        self, broker: int, operation: Callable[[Any], Any], done: Callable[[Any], None], *, lasting: bool
    ) -> None:
        self.broker = broker
        self.broker_epoch = -1
        self.operation = operation
        self.done = done
        self.lasting = lasting
        self.result: Any = PENDING


PENDING: Final = object()
"""Result of what was not done yet."""
MOVED: Final = object()
"""Result of a write that was refused since the controller moved."""
