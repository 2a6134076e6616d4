"""Messages between brokers and ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sim.config import Value
from sim.hosts.control_plane import CONTROL
from sim.kernel.message import ABOUT, ALIKE, KIND, REPLY, Message
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.election import BrokerInfo
from sim.protocol.zookeeper.zk_operations import Operation, Result

ZOOKEEPER: Final = CONTROL
"""Node id of ZooKeeper."""
SCRIPT: Final = -1
"""Id in the controller node while a script decides."""
REGISTER: Final = 64 << KIND
PING: Final = ALIKE + (65 << KIND)
NOTICE: Final = 66 << KIND
EXPIRED: Final = 67 << KIND
REQUEST: Final = 68 << KIND
DECISION: Final = 69 << KIND

ELECT: Final = 1
STEP: Final = 2
WRITE_ISR: Final = 3
NOTIFY_ISR: Final = 4
FIND_CONTROLLER: Final = 5
"""Kinds of requests (`ZooKeeperRequest.subject`): an election of a controller, a step of the controller, and requests
of leaders and of brokers that stop.
"""


class RegistrationRequest(Message):
    """A broker opens a session and registers in it."""

    __slots__ = ("broker", "info")

    def __init__(self, broker: int, info: BrokerInfo) -> None:
        self.broker: Final = broker
        self.info: Final = info

    def about(self) -> int:
        return REGISTER + self.info.incarnation


class RegistrationResponse(Message):
    """The broker epoch (czxid of the registration), or -1: another registration is in the way.

    `controller` is the broker that is controller, 0 if none is; `config` is the dynamic configuration.
    """

    __slots__ = ("broker_epoch", "config", "controller", "request")

    def __init__(
        self, request: RegistrationRequest, broker_epoch: int, controller: int, config: Mapping[str, Value]
    ) -> None:
        self.request: Final = request
        self.broker_epoch: Final = broker_epoch
        self.controller: Final = controller
        self.config: Final = config

    def about(self) -> int:
        return REPLY + self.request.about()


class Ping(Message):
    """Keeps a session.

    Attributes:
        broker: the broker.
        broker_epoch: identifies the session.
        last_event: number of the last watch event up to which all were received.
        partition_epoch: the newest one that the broker has received (for scripts).
    """

    __slots__ = ("broker", "broker_epoch", "last_event", "partition_epoch")
    elision_safe = True

    def __init__(self, broker: int, broker_epoch: int, last_event: int, partition_epoch: int) -> None:
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch
        self.last_event: Final = last_event
        self.partition_epoch: Final = partition_epoch

    def about(self) -> int:
        return PING


CONTROLLER_GONE: Final = 0
BROKERS_CHANGED: Final = 1
TOPIC_CREATED: Final = 2
ISR_CHANGED: Final = 3
PREFERRED_ELECTION: Final = 4
REASSIGNMENT_REQUESTED: Final = 5
CONFIG_CHANGED: Final = 6
TOPIC_DELETION_REQUESTED: Final = 7
"""Kinds of watch events (`WatchedEvent.what`)."""


class WatchedEvent(Message):
    """A watch fired. Events are numbered within a session.

    Attributes:
        broker_epoch: identifies the session.
        number: its number.
        what: the kind of event: `CONTROLLER_GONE`, ...
        change: key and new value, if that is `CONFIG_CHANGED`.
        sent_us: when it fired.
        partition_epoch: of the first partition's state when it fired.
        names: the partitions that it is about, if it is about partitions.
    """

    __slots__ = ("broker_epoch", "change", "names", "number", "partition_epoch", "sent_us", "what")

    def __init__(
        self,
        broker_epoch: int,
        number: int,
        what: int,
        change: tuple[str, Value] | None,
        sent_us: int,
        partition_epoch: int,
        names: tuple[str, ...] = (),
    ) -> None:
        self.names: Final = names
        self.broker_epoch: Final = broker_epoch
        self.number: Final = number
        self.what: Final = what
        self.change: Final = change
        self.sent_us: Final = sent_us
        self.partition_epoch: Final = partition_epoch

    def about(self) -> int:
        return NOTICE + (self.what << ABOUT) + self.partition_epoch


class ZooKeeperRequest(Message):
    """A broker's request to ZooKeeper. Kafka: ReplicationUtils#checkLeaderAndIsrZkData.

    Attributes:
        broker: the requesting broker.
        broker_epoch: identifies the session.
        number: numbers the requests of a broker's process; a resent request has the same one, and gets the same result.
            (Kafka compares what it reads with what it meant to write.)
        answered: number of the request up to which the broker waits for no response.
        operation: executed by ZooKeeper.
        subject: kind and subject of the operation as one number: see `Message.about`.
    """

    __slots__ = ("answered", "broker", "broker_epoch", "number", "operation", "subject")

    def __init__(
        self, broker: int, broker_epoch: int, number: int, answered: int, operation: Operation, subject: int
    ) -> None:
        self.broker: Final = broker
        self.broker_epoch: Final = broker_epoch
        self.number: Final = number
        self.answered: Final = answered
        self.operation: Final = operation
        self.subject: Final = subject

    def about(self) -> int:
        return REQUEST + self.subject


class ZooKeeperResponse(Message):
    """ZooKeeper's response to a request, with the result of its operation."""

    __slots__ = ("request", "result")

    def __init__(self, request: ZooKeeperRequest, result: Result) -> None:
        self.request: Final = request
        self.result: Final = result

    def about(self) -> int:
        return self.request.about()


class SessionExpired(Message):
    """A session has expired."""

    __slots__ = ("broker_epoch",)

    def __init__(self, broker_epoch: int) -> None:
        self.broker_epoch: Final = broker_epoch

    def about(self) -> int:
        return EXPIRED + self.broker_epoch


class ScriptedDecision(Message):
    """A script's decision, and the registered brokers with their broker epochs."""

    __slots__ = ("live", "state")
    needs_partition = True

    def __init__(self, state: LeaderAndIsr, live: Mapping[int, int]) -> None:
        self.state: Final = state
        self.live: Final = live

    def about(self) -> int:
        return DECISION + self.state.partition_epoch
