"""A consumer's side of its group: finds the coordinator, commits offsets, and asks for committed ones.

One request is under way at a time. The consumer is assigned its partition by the application (`assign()`): it does not
join the group. A new process goes on from what is committed. So a partition has one member of the group at a time, and
a rebalance takes no time; what rebalances themselves do is not modelled.
"""

from __future__ import annotations

from typing import Final

from sim.history import steps
from sim.hosts.client import Client, OffsetsTopic
from sim.kernel.scheduler import Event, Gate
from sim.protocol import probes
from sim.protocol.group.group_messages import (
    COORDINATOR_LOAD_IN_PROGRESS,
    UNSTABLE_OFFSET_COMMIT,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommit,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.protocol.replica.partition import NO_LEADER

API_TIMEOUT_US: Final = 60_000_000
"""``default.api.timeout.ms``: how long a commit is retried."""
_SAME_COORDINATOR: Final = (COORDINATOR_LOAD_IN_PROGRESS, UNSTABLE_OFFSET_COMMIT)
"""Errors after which a consumer asks the same coordinator again."""

Request = FindCoordinatorRequest | OffsetCommitRequest | OffsetFetchRequest


class GroupMember(Client):
    """A consumer that commits by a coordinator."""

    __slots__ = ()

    def committed(self, commit: OffsetCommit | None) -> None:
        """The group's coordinator has named the committed offset; None: there is none."""
        raise NotImplementedError


class _Again(Event):
    """The back-off after an error has elapsed."""

    __slots__ = ("_group",)

    def __init__(self, group: ConsumerCoordinator) -> None:
        self._group = group

    def happen(self, _: Gate) -> None:
        self._group.retry()


class ConsumerCoordinator:
    """See the module. Kafka: ConsumerCoordinator, AbstractCoordinator.

    Attributes:
        processes: number of the consumer's processes so far that were replaced.
    """

    __slots__ = (
        "_broker",
        "_consumer",
        "_coordinator",
        "_failures",
        "_next_broker",
        "_request",
        "_retrying",
        "_sent",
        "_since_us",
        "_topic",
        "_wanted",
        "_wanted_us",
        "_wants_offset",
        "processes",
    )

    def __init__(self, consumer: GroupMember, topic: OffsetsTopic) -> None:
        self._consumer = consumer
        self._topic = topic
        self.processes = 0
        self._coordinator = NO_LEADER
        self._request: Request | None = None
        self._broker = NO_LEADER
        """Where `_request` is."""
        self._wanted: tuple[int, int] | None = None
        """Offset and leader epoch to be committed."""
        self._wanted_us = 0
        self._wants_offset = False
        self._next_broker = consumer.node
        self._retrying = False
        self._failures = 0
        self._sent = 0
        self._since_us = -1
        """When it began to ask without any success; -1: it has no failure."""

    @property
    def waits(self) -> bool:
        """Whether an answer about the committed offset is awaited, or will be asked for again."""
        return self._wants_offset

    def replaced(self) -> None:
        """The process is replaced by a new one."""
        self.processes += 1
        self._coordinator = NO_LEADER
        self._request = self._wanted = None
        self._wants_offset = False
        self._failures = 0
        self._since_us = -1

    def commit(self, offset: int, epoch: int) -> None:
        """Commit a position; it replaces one that is not sent yet. Kafka: ConsumerCoordinator#commitOffsetsSync,
        ConsumerCoordinator#sendOffsetCommitRequest.
        """
        self._wanted = offset, epoch
        self._wanted_us = self._consumer.kernel.now_us
        self._advance()

    def fetch(self) -> None:
        """Ask for the committed offset, unless that is under way; then call `GroupMember.committed`.

        Kafka: ConsumerCoordinator#fetchCommittedOffsets.
        """
        self._wants_offset = True
        self._advance()

    def _advance(self) -> None:
        if self._request is not None or self._retrying or not (self._wants_offset or self._wanted is not None):
            return
        if self._coordinator == NO_LEADER:
            self._find()
        elif self._wants_offset:
            self._sent += 1
            consumer = self._consumer
            self._send(self._coordinator, OffsetFetchRequest(consumer.node, consumer.topic, self._sent))
        else:
            assert self._wanted is not None
            record = next(self._topic.offsets.ids)
            commit = OffsetCommit(record, self._consumer.topic, *self._wanted)
            self._send(self._coordinator, OffsetCommitRequest(self._consumer.node, commit))

    def _find(self) -> None:
        """Ask the next reachable broker. Kafka: AbstractCoordinator#lookupCoordinator."""
        self._sent += 1
        brokers = self._consumer.bootstrap
        for _ in brokers:
            self._next_broker += 1
            broker = brokers[self._next_broker % len(brokers)]
            if self._consumer.reach(broker) is not None:
                self._send(broker, FindCoordinatorRequest(self._consumer.node, self._sent))
                return
        self._fail()

    def _send(self, broker: int, request: Request) -> None:
        consumer = self._consumer
        channel = consumer.out.get(broker) or consumer.reach(broker)
        if channel is None:
            self._coordinator = NO_LEADER
            self._fail()
            return
        self._request, self._broker = request, broker
        if self._since_us < 0:
            self._since_us = consumer.kernel.now_us
        consumer.end_elision()
        channel.send(request)
        consumer.kernel.call_at(consumer.kernel.now_us + consumer.timeout_us, consumer.life, self._time_out, request)

    def _time_out(self, request: Request) -> None:
        if request is self._request:
            self._fail(lost=True)

    def disconnected(self, broker: int) -> None:
        """The connection to a broker broke."""
        if broker == self._coordinator:
            self._coordinator = NO_LEADER
        if broker == self._broker and self._request is not None:
            self._fail(lost=True)

    def _fail(self, *, lost: bool = False) -> None:
        """Try again after the back-off; with another coordinator if the request was lost."""
        self._request = None
        if lost:
            self._coordinator = NO_LEADER
        if not self._retrying:
            self._retrying = True
            self._failures += 1
            consumer = self._consumer
            self._topic.recorder.record(steps.GroupRefused(consumer.node, self._since_us))
            at_us = consumer.kernel.now_us + consumer.backoff_after_us(self._failures)
            consumer.kernel.schedule(at_us, consumer.life, _Again(self))

    def retry(self) -> None:
        """The back-off has elapsed."""
        self._retrying = False
        if self._wanted is not None and self._consumer.kernel.now_us >= self._wanted_us + API_TIMEOUT_US:
            self._wanted = None  # The application gets a TimeoutException; an automatic commit comes again.
        self._advance()

    # Responses.

    def receive(self, message: Event) -> bool:
        """Handle a response; False if the message is none."""
        if isinstance(message, FindCoordinatorResponse):
            self._on_found(message)
        elif isinstance(message, OffsetCommitResponse):
            self._on_committed(message)
        elif isinstance(message, OffsetFetchResponse):
            self._on_fetched(message)
        else:
            return False
        return True

    def _on_found(self, reply: FindCoordinatorResponse) -> None:
        if reply.request is not self._request:
            return
        self._request = None
        if reply.error:
            self._fail()
        else:
            self._coordinator = reply.coordinator
            self._advance()

    def _on_committed(self, reply: OffsetCommitResponse) -> None:
        """Kafka: ConsumerCoordinator.OffsetCommitResponseHandler."""
        if reply.request is not self._request:
            return
        commit = reply.request.commit
        if reply.error:
            self._refused(reply.error)
        else:
            self._succeeded()
            if self._wanted == (commit.offset, commit.leader_epoch):
                self._wanted = None
            self._note_ack(reply)
            committed = steps.Position(steps.COMMIT, self._consumer.node, commit.offset, commit.leader_epoch)
            self._consumer.recorder.record(committed)
            self._advance()

    def _note_ack(self, reply: OffsetCommitResponse) -> None:
        """The application was told that the commit succeeded: as good as an ack with acks=all."""
        assert reply.write is not None
        offset = reply.request.commit.offset
        self._topic.recorder.record(steps.CommitAck(reply.write, self._consumer.node, offset))

    def _on_fetched(self, reply: OffsetFetchResponse) -> None:
        """Kafka: ConsumerCoordinator.OffsetFetchResponseHandler."""
        if reply.request is not self._request:
            return
        if reply.error:
            self._refused(reply.error)
            return
        self._succeeded()
        self._wants_offset = False
        commit = reply.commit
        record, offset = (0, -1) if commit is None else (commit.record, commit.offset)
        self._topic.recorder.record(steps.OffsetsAnswer(self._consumer.node, record, offset))
        self._consumer.committed(commit)
        self._advance()

    def _succeeded(self) -> None:
        self._request = None
        self._failures = 0
        self._since_us = -1

    def _refused(self, error: str) -> None:
        self._consumer.reached(probes.COORDINATOR_REFUSES)
        self._fail(lost=error not in _SAME_COORDINATOR)
