"""A broker as its parts see it: one process, its settings, its log directories and its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sim.config import Value
from sim.environment.elision import ElidedPings, ElidingBroker
from sim.environment.log_directories import LogDirectories
from sim.environment.network import Channel, Network
from sim.environment.storage import LogDirectory
from sim.history.recorder import Recorder
from sim.hosts.control_plane import CONTROL
from sim.hosts.settings import BrokerSettings
from sim.hosts.socket_server import SocketServer
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Kernel, noop
from sim.protocol.decisions import Decisions
from sim.protocol.messages import ProduceResponse

PHASE_BITS: Final = 31
"""Size of the argument `phase` of a broker."""


class BrokerNode(ElidingBroker):
    """One incarnation of a broker; see the module.

    Attributes:
        incarnation: number of earlier incarnations on this machine.
        decide: its rules.
        directories: the log directories of its machine.
        live_directories: those that worked at its start, and have not failed since; it uses no others.
        has_loaded: whether the logs are loaded.
        socket_server: reads the requests of producers.
        broker_epoch: of its registration, -1 before the first, until which it answers no requests.
        zombie: its session expired, and its pings or heartbeats no longer arrive.
    """

    __slots__ = (
        "_exits",
        "_phase",
        "broker_epoch",
        "decide",
        "directories",
        "has_loaded",
        "incarnation",
        "kernel",
        "live_directories",
        "reached",
        "recorder",
        "settings",
        "socket_server",
        "zombie",
    )

    def __init__(
        self,
        broker: int,
        incarnation: int,
        directories: LogDirectories,
        live_directories: list[LogDirectory],
        decide: Decisions,
        settings: BrokerSettings,
        kernel: Kernel,
        network: Network,
        recorder: Recorder,
        exits: Callable[[int, str], None],
        phase: int,
    ) -> None:
        super().__init__(broker)
        self.incarnation = incarnation
        self.directories = directories
        self.live_directories = live_directories
        self.decide = decide
        self.settings = settings
        self.kernel = kernel
        self.network = network
        self.recorder = recorder
        self.reached = recorder.coverage.reached
        self.socket_server = SocketServer(kernel, self.life)
        self.has_loaded = False
        self.broker_epoch = -1
        self.zombie = False
        self._exits = exits
        self._phase = phase

    def first_interval_us(self, interval_us: int) -> int:
        """The first interval of its pings or heartbeats, a part of the others: otherwise those of brokers that started
        together would stay in step, and their sessions would always end in one order.
        """
        return 1 + (interval_us * self._phase >> PHASE_BITS)

    def end(self) -> None:
        super().end()
        self._exits = noop

    def halt(self, reason: str) -> None:
        """Exit after the current call."""
        self.kernel.call_at(self.kernel.now_us, self.life, self.exit, reason)

    def exit(self, reason: str) -> None:
        """Exit at once."""
        self._exits(self.node, reason)

    @property
    def ready(self) -> bool:
        """Whether it answers requests, as far as registration is concerned."""
        raise NotImplementedError

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """The dynamic configuration changed."""
        raise NotImplementedError

    def put_back(self, event: Event) -> None:
        """Let an event wait until the ISR that is being written to ZooKeeper is written."""
        raise NotImplementedError

    def deliver_backlog(self) -> None:
        """Deliver events that waited for the partition, as far as they need not wait any more."""
        raise NotImplementedError

    def checkpoints_begin(self) -> None:
        """The checkpoint files of its log directories are written for the first time."""
        raise NotImplementedError

    # Messages.

    def to_control(self, message: Message) -> None:
        """Send a message to the control plane."""
        channel = self.out.get(CONTROL) or self.reach(CONTROL)
        assert channel is not None
        channel.send(message)

    def reply(self, node: int, reply: Message) -> None:
        """Send a response."""
        channel = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send(reply)

    def reply_produce(self, response: ProduceResponse) -> None:
        """Answer a produce request, once all its batches are dealt with, and read its connection again."""
        request = response.request
        whole = self.socket_server.whole(response)
        if whole is not None:
            self.reply(request.client, whole)
            self.socket_server.answered(request)

    def reply_beside(self, node: int, reply: Message) -> None:
        """Send a response that may be elided, as `Channel.send_beside` does."""
        channel: Channel[Any] | None = self.out.get(node) or self.reach(node)
        if channel is not None:
            channel.send_beside(reply)

    def elide_pings(self, channel: Channel[Any], interval_us: int) -> bool:
        """Elide pings that only keep the session, from this one on (`sim.environment.elision`). Returns whether they
        are elided; otherwise the ping is counted as idle.
        """
        if self.network.elides:
            ElidedPings(self, channel, self.kernel.now_us, interval_us).begin()
            return True
        self.network.idle_messages += 1
        return False
