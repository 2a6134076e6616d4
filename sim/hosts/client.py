"""The common base of producers and consumers: metadata, retries with exponential back-off, and timeouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sim.auto_offset_reset import NO_DURATION
from sim.environment.network import Channel, Network, Node
from sim.history.recorder import Recorder
from sim.hosts.peers import Server
from sim.hosts.settings import ClientSettings
from sim.kernel.scheduler import Event, Gate, IdleCall, Kernel
from sim.protocol import probes
from sim.protocol.client.offset_reset import CreationTimes
from sim.protocol.decisions import Decisions
from sim.protocol.group.group_messages import CommittedOffsets
from sim.protocol.messages import NO_EPOCH, MetadataRequest, MetadataResponse
from sim.protocol.replica.partition import NO_LEADER

PRODUCER: Final = 1001
CONSUMER: Final = 1002
VALIDATOR: Final = 1003
"""Nodes of the first partition's clients; those of the other partitions follow, in the same order."""
CLIENTS_EACH: Final = 3
"""Clients of a partition: producer, consumer, validator. Further producers of it have higher nodes."""


def like_first(node: int) -> int:
    """The client of the first partition that corresponds to a client; another node is returned as it is."""
    return node if node < PRODUCER else PRODUCER + (node - PRODUCER) % CLIENTS_EACH


class OffsetsTopic:
    """Where a cluster's consumers commit.

    Attributes:
        offsets: contents of the records.
        recorder: records steps of the offsets partition.
    """

    __slots__ = ("offsets", "recorder")

    def __init__(self, offsets: CommittedOffsets, recorder: Recorder) -> None:
        self.offsets = offsets
        self.recorder = recorder


@dataclass(init=False, slots=True)
class ClientSetup:
    """Shared arguments of one partition's clients; the ids of all brokers are their ``bootstrap.servers``.

    Attributes:
        producers: number of the partition's producers.
        offsets: where consumers commit; None: in an ideal store.
        created: when records were created; None unless ``auto.offset.reset`` is a duration.
    """

    topic: str
    brokers: tuple[int, ...]
    settings: ClientSettings
    kernel: Kernel
    network: Network
    recorder: Recorder
    decide: Decisions
    producers: int
    offsets: OffsetsTopic | None
    created: CreationTimes | None = field(init=False)

    # Written by hand, because each partition has one: compiled, that of a dataclass takes ten times as long.
    def __init__(
        self,
        topic: str,
        brokers: tuple[int, ...],
        settings: ClientSettings,
        kernel: Kernel,
        network: Network,
        recorder: Recorder,
        decide: Decisions,
        producers: int = 1,
        offsets: OffsetsTopic | None = None,
    ) -> None:
        self.topic = topic
        self.brokers = brokers
        self.settings = settings
        self.kernel = kernel
        self.network = network
        self.recorder = recorder
        self.decide = decide
        self.producers = producers
        self.offsets = offsets
        self.created = None if settings.reset_duration_us == NO_DURATION else CreationTimes()


class _Retry(Event):
    """The back-off after a failure has elapsed."""

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        self._client = client

    def happen(self, _: Gate) -> None:
        self._client.retry()


class Regularly(Event):
    """Something that a client does at regular intervals, from the time of this event on; it ends elision itself."""

    __slots__ = ("_act", "_interval_us", "_kernel")
    elision_safe = True

    def __init__(self, kernel: Kernel, interval_us: int, act: Callable[[], None]) -> None:
        self._kernel = kernel
        self._interval_us = interval_us
        self._act = act

    def happen(self, gate: Gate) -> None:
        self._act()
        self._kernel.schedule(self._kernel.now_us + self._interval_us, gate, self)


class Client(Node):
    """A client of one partition; its node id is above 1000. Kafka: NetworkClient, clients.Metadata.

    Attributes:
        leader: the leader according to its current metadata, `NO_LEADER` if unknown.
        leader_epoch: its epoch, `NO_EPOCH` if unknown.
        bootstrap: the brokers that it may ask.
    """

    __slots__ = (
        "_asked",
        "_asked_us",
        "_failures",
        "_metadata_timer_set",
        "_newest_epoch",
        "_next_broker",
        "_refreshing",
        "_tries",
        "_version",
        "bootstrap",
        "decide",
        "kernel",
        "leader",
        "leader_epoch",
        "reached",
        "recorder",
        "settings",
        "topic",
    )
    notes_peers = False

    def __init__(self, node: int, setup: ClientSetup) -> None:
        super().__init__(node)
        self.topic = setup.topic
        self.settings = setup.settings
        self.decide = setup.decide
        self.kernel = setup.kernel
        self.recorder = setup.recorder
        self.reached = setup.recorder.coverage.reached
        self.network = setup.network
        self.timeout_us = self.settings.request_timeout_us
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self._newest_epoch = NO_EPOCH
        self.bootstrap = setup.brokers
        self._next_broker = 0
        self._asked: MetadataRequest | None = None
        self._asked_us = 0
        self._metadata_timer_set = False
        self._failures = 0
        self._refreshing = False
        self._version = -1
        self._tries = 0

    def receive(self, message: Event) -> None:
        if isinstance(message, MetadataResponse):
            self.on_metadata_reply(message)
        else:
            super().receive(message)

    def begin(self) -> None:
        """Request metadata now and at each multiple of ``metadata.max.age.ms``."""
        self.refresh()
        now_us, age_us = self.kernel.now_us, self.settings.metadata_age_us
        self.kernel.schedule(now_us + age_us - now_us % age_us, self.life, IdleCall(self._refresh_periodically, None))

    def _refresh_periodically(self, _: object) -> None:
        self.refresh()
        self.kernel.schedule(
            self.kernel.now_us + self.settings.metadata_age_us, self.life, IdleCall(self._refresh_periodically, None)
        )

    # For subclasses.

    def leader_known(self) -> None:
        """Called when metadata named a reachable leader."""
        raise NotImplementedError

    def leader_unknown(self) -> None:
        """Called when metadata named none."""

    def connection_lost(self) -> None:
        """Called when requests to the leader will not be answered."""
        raise NotImplementedError

    def channel(self) -> Channel[Server] | None:
        """The connection to the leader, or None."""
        leader = self.leader
        return None if leader == NO_LEADER else self.out.get(leader) or self.reach(leader)

    @property
    def current_leader(self) -> tuple[int, int]:
        """The leader and its epoch; without a leader, the newest epoch seen. Kafka: clients.Metadata#currentLeader
        (2.6-4.4).
        """
        return self.leader, self._newest_epoch if self.leader == NO_LEADER else self.leader_epoch

    def reset_backoff(self) -> None:
        """Reset the back-off after a successful response."""
        self._failures = 0

    def retry_later(self, *, always: bool = False) -> None:
        """Request metadata after the back-off (``retry.backoff.ms``, doubling to its maximum).

        Once every broker was asked, asking again fails the same way until some broker changes. Those retries are
        elided: the next one simulated is the first after a change. With `always`, the failure may pass without one (a
        lost message), so the retry is not elided.
        """
        self.end_elision()  # Successful fetches reset the back-off.
        if always:
            self._version = -1
        if not self._refreshing:
            self._refreshing = True
            self._failures += 1
            self.kernel.schedule(self.kernel.now_us + self._backoff_us(), self.life, _Retry(self))

    def _backoff_us(self) -> int:
        return self.backoff_after_us(self._failures)

    def backoff_after_us(self, failures: int) -> int:
        """The back-off after so many failures in a row, from ``retry.backoff.ms`` to ``retry.backoff.max.ms``."""
        return min(self.settings.retry_us << min(max(failures - 1, 0), 20), self.settings.retry_max_us)

    def retry(self) -> None:
        """Request metadata, unless that would fail like the last time."""
        if self._version == self.network.version and self._tries >= len(self.bootstrap):
            self.network.retry_after_change(self._backoff_us, self.life, _Retry(self))
        else:
            self._refreshing = False
            self.refresh()

    # Metadata.

    def refresh(self) -> None:
        """Request metadata from the next reachable broker. Kafka: NetworkClient#leastLoadedNode."""
        if self._asked is not None:
            return
        if self._version != self.network.version:
            self._version = self.network.version
            self._tries = 0
        self._tries += 1
        for _ in self.bootstrap:
            broker = self.bootstrap[self._next_broker % len(self.bootstrap)]
            self._next_broker += 1
            channel = self.reach(broker)
            if channel is not None:
                self._asked = MetadataRequest(self.node, self.topic)
                channel.send(self._asked)
                self._asked_us = self.kernel.now_us
                self._set_metadata_timeout()
                return
        self.retry_later()

    def _set_metadata_timeout(self) -> None:
        """Time out a metadata request; one timer serves all of them."""
        if not self._metadata_timer_set:
            self._metadata_timer_set = True
            due_us = self._asked_us + self.settings.request_timeout_us
            self.kernel.schedule(due_us, self.life, IdleCall(self._metadata_timed_out, None))

    def _metadata_timed_out(self, _: object) -> None:
        self._metadata_timer_set = False
        if self._asked is None:
            return
        if self._asked_us + self.settings.request_timeout_us <= self.kernel.now_us:
            self._asked = None
            self.refresh()
        else:
            self._set_metadata_timeout()

    def on_metadata_reply(self, reply: MetadataResponse) -> None:
        """Handle metadata; older metadata may be ignored (KIP-232). Kafka: clients.Metadata#update."""
        if reply.request is not self._asked:
            return
        self._asked = None
        epoch = reply.leader_epoch
        older = NO_EPOCH < epoch < self._newest_epoch
        if older:
            self.reached(probes.METADATA_GOES_BACK)
        if not (older and self.decide.keeps_newest_metadata.yes()):
            self.leader = reply.leader
            self.leader_epoch = epoch
            self._newest_epoch = max(self._newest_epoch, epoch)
        if self.channel() is None:
            self.retry_later()
            self.leader_unknown()
        else:
            self.leader_known()

    def note_epoch(self, epoch: int) -> None:
        """Note a leader epoch seen in a response: metadata of older epochs is no longer accepted.

        Only if the client compares epochs and knows one to compare with.
        Kafka: clients.Metadata#updateLastSeenEpochIfNewer (2.6-4.4).
        """
        if NO_EPOCH < self._newest_epoch < epoch and self.decide.keeps_newest_metadata.yes():
            self._newest_epoch = epoch
            self.forget_leader()
            self.refresh()

    def forget_leader(self) -> None:
        """Forget the leader until metadata names one."""
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH

    # Connections.

    def disconnected(self, peer: int) -> None:
        is_asking = self._asked is not None and self.channel() is None
        if is_asking:
            self._asked = None
        if peer == self.leader:
            self.connection_lost()
            self.retry_later(always=True)
        elif is_asking:  # Kafka: NetworkClient.DefaultMetadataUpdater#handleServerDisconnect.
            self.retry_later(always=True)
