"""A consumer: reads below the high watermark from a position on, at the leader or at a follower in its rack (KIP-392),
and asks for offsets periodically.

A group commits to an ideal offset store, or by a coordinator (`sim.hosts.consumer_coordinator`). Each retry of a
consumer costs a metadata request, also where Kafka would not send one (UNKNOWN_LEADER_EPOCH).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sim.environment.network import Channel
from sim.history import steps
from sim.history.steps import Exposed
from sim.hosts.client import ClientSetup, Regularly
from sim.hosts.consumer_coordinator import ConsumerCoordinator
from sim.hosts.peers import Server
from sim.hosts.position_requests import PositionRequests
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.client.consumer_position import (
    AWAIT_RESET,
    AWAIT_VALIDATION,
    FETCHING,
    INITIALIZING,
    ConsumerPosition,
    FetchPosition,
    LogTruncation,
)
from sim.protocol.group.group_messages import OffsetCommit
from sim.protocol.messages import (
    EARLIEST,
    FENCED_LEADER_EPOCH,
    LATEST,
    NO_EPOCH,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from sim.protocol.replica.partition import NO_LEADER


class Consumer(PositionRequests):
    """Reads one partition, from a first offset on. Kafka: consumer.internals.Fetcher, OffsetFetcher (3.9-4.4),
    ConsumerCoordinator.

    Attributes:
        paused: whether the application has paused reading.
    """

    __slots__ = (
        "_committed",
        "_end_offset_asked_us",
        "_end_offset_request",
        "_exposed_when_asked",
        "_group",
        "_is_new",
        "_lookup",
        "_named",
        "_observe",
        "_prepared_us",
        "_timed_fetch",
        "paused",
    )

    def __init__(
        self,
        node: int,
        setup: ClientSetup,
        *,
        position: int = 0,
        observe: Callable[[Sequence[Batch]], None] | None = None,
    ) -> None:
        super().__init__(node, setup)
        self.cursor.seek_validated(FetchPosition(position))
        self.paused = False
        self.decide.fences_clients.note()  # This decides whether its requests carry an epoch.
        self._observe = observe
        self._committed: tuple[int, int] | None = None
        self._group: ConsumerCoordinator | None = None
        if setup.offsets is not None and observe is None:
            self._group = ConsumerCoordinator(self, setup.offsets)
        self._is_new = False
        self._named = NO_LEADER
        """The follower of the last step about one."""
        self._timed_fetch: FetchRequest | None = None
        self._prepared_us = 0
        self._end_offset_request: ListOffsetsRequest | None = None
        self._exposed_when_asked: Exposed | None = None
        self._end_offset_asked_us = 0
        self._lookup: ListOffsetsRequest | None = None

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._group = None

    def receive(self, message: Event) -> None:
        if isinstance(message, FetchResponse):
            self.on_fetch_reply(message)
        elif isinstance(message, ListOffsetsResponse):
            self.on_list_offsets_reply(message)
        elif isinstance(message, OffsetsForLeaderEpochResponse):
            self.on_epoch_end_reply(message)
        elif self._group is None or not self._group.receive(message):
            super().receive(message)

    # Reading.

    def fetch(self, *, again: bool = False) -> None:
        """Fetch from the position, or first find or validate it; a no-op if a request is in flight. If the last
        response was empty (`again`), the fetch may be elided (`sim.environment.elision`). Kafka:
        consumer.internals.Fetcher#sendFetches.
        """
        if self._fetch is not None or self.paused or self.has_error:
            return
        at = self.cursor
        leader = self._position_leader() if at.state in (FETCHING, AWAIT_VALIDATION) else self.leader
        channel = None if leader == NO_LEADER else self.out.get(leader) or self.reach(leader)
        if channel is None:
            self.retry_later()
            return
        if at.state != FETCHING:
            self._prepare(channel)
            return
        replica = leader if self._read_replica() == self.leader else self._preferred
        if replica in self._late_fetches:
            if replica != leader:  # Until it reads from the leader again.
                self.kernel.call_at(self._preferred_until_us + 1, self.life, self._preference_expired, replica)
            return
        if replica != leader:
            at_follower = self.out.get(replica) or self.reach(replica)
            if at_follower is None:
                self._preferred = NO_LEADER
                self.retry_later(always=True)
                return
            channel = at_follower
        position = (self.topic, at.offset, self._fetch_epoch(), NO_EPOCH)
        self._fetch = FetchRequest(self.node, replica, -1, -1, [position], [])
        if self.network.loss:
            self._timed_fetch = self._fetch
            self.kernel.call_at(self.kernel.now_us + self.timeout_us, self.life, self._fetch_timed_out, self._fetch)
        if again:
            channel.send_beside(self._fetch)
        else:
            channel.send(self._fetch)

    def _prefer(self, replica: int) -> None:
        """Fetch from a follower for ``metadata.max.age.ms``. Kafka: SubscriptionState#updatePreferredReadReplica
        (2.6-4.4).
        """
        if replica != self._preferred:
            self._preferred = replica
            self._preferred_until_us = self.kernel.now_us + self.settings.metadata_age_us
        if replica != self._named:
            self._named = replica
            self.reached(probes.READS_FROM_FOLLOWER)
            chosen = steps.Position(
                steps.PREFERRED_REPLICA, self.node, self.cursor.offset, NO_EPOCH, "read_replica", replica
            )
            self.recorder.record(chosen)

    def _preference_expired(self, replica: int) -> None:
        if self._preferred == replica and self.kernel.now_us > self._preferred_until_us:
            self.fetch()

    def would_repeat(self, request: FetchRequest, place: int, hw: int, log_start: int) -> bool:  # noqa: ARG002
        at = self.cursor
        position = request.positions[place]
        return (
            request is self._fetch
            and self._preferred == NO_LEADER
            and not (self.paused or self.has_error)
            and at.state == FETCHING
            and (at.offset, self._fetch_epoch(), self._position_leader()) == (position[1], position[2], request.leader)
        )

    def note_elided_rounds(self, request: FetchRequest, sent_us: int, answers: int) -> None:  # noqa: ARG002
        if answers and request is self._fetch:
            self._timed_fetch = None
            self.reset_backoff()

    def _fetch_timed_out(self, fetch: FetchRequest) -> None:
        """Fetch again after a timeout: with message loss a waiting fetch looks like a lost one."""
        if fetch is self._fetch and fetch is self._timed_fetch:  # Not an equal fetch sent since.
            self._preferred = NO_LEADER
            self.connection_lost()
            self.retry_later(always=True)

    def on_fetch_reply(self, reply: FetchResponse) -> None:
        """Handle a response of the leader, or of a follower, which cannot say that the position is out of range.

        Kafka: FetchCollector#handleInitializeErrors (3.9-4.4). To 3.3 a consumer stays with the follower after other
        errors (KAFKA-14379); here none does.
        """
        request = reply.request
        is_late = request is not self._fetch
        if not is_late:
            self._fetch = None
        elif self._late_fetches.get(request.leader) is request:
            del self._late_fetches[request.leader]
        else:
            return
        _, error, batches, _, _, leader_epoch, _ = reply.results[0]
        if not self._fits(request, error):
            self.fetch()
            return
        at_follower = self._preferred != NO_LEADER
        if error:
            self._preferred = NO_LEADER
        if error == OFFSET_OUT_OF_RANGE and not at_follower:
            self._out_of_range()
        elif error:
            self._refused(error)
            self.retry_later(always=at_follower)
            if is_late or self.cursor.offset != request.positions[0][1]:
                self.fetch()
        elif reply.preferred_read_replica >= 0:
            self._prefer(reply.preferred_read_replica)
            self.fetch()
        else:
            self.reset_backoff()
            if batches:
                at = self.cursor
                last = batches[-1]
                self.recorder.record(steps.Read(self.node, batches, at.offset, leader_epoch))
                at.consumed(last.last_offset + 1, last.leader_epoch)
                if self._observe is not None:
                    self._observe(batches)
            self.fetch(again=not batches)

    def _refused(self, error: str) -> None:
        if error in (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH):
            self.reached(probes.CONSUMER_FENCED)

    def _out_of_range(self) -> None:
        """Reset the position by ``auto.offset.reset`` and notify the application.

        Kafka: consumer.internals.Fetcher#handleOffsetOutOfRange (2.6), FetchCollector#handleInitializeErrors (3.9-4.4).
        """
        self.recorder.record(steps.Position(steps.OUT_OF_RANGE, self.node, self.cursor.offset))
        self._reset_by_policy()

    def _reset_by_policy(self) -> None:
        if self.settings.offset_reset == "none":
            self.has_error = True
        else:
            self._reset.from_us = 0
            self._leave_fetch()
            self.cursor.request_reset()
            self.fetch()

    # Before reading.

    def _prepare(self, channel: Channel[Server]) -> None:
        """Find a position, or validate it."""
        if self.cursor.state == AWAIT_VALIDATION:
            self._validate(channel)
        elif self.cursor.state != AWAIT_RESET:
            self._initialize()
        elif self._is_due(self._reset_request) and self.kernel.now_us >= self._reset.from_us:
            timestamp = self._reset.timestamp(self.cursor.reset_strategy, self.kernel.now_us)
            request = self._ask_offset(channel, timestamp)
            self._reset_request = request, self.cursor.changes
            self._resets.append(request)
            self._set_timeout(request)

    def discover(self) -> None:
        """Begin with a partition that was added while the consumer ran: without a position, since its group has
        committed none. The rebalance that assigns the partition takes no time here.

        Kafka: ConsumerCoordinator#maybeUpdateSubscriptionMetadata (2.6-4.4), SubscriptionState.TopicPartitionState.
        """
        self.cursor = ConsumerPosition(self.settings.offset_reset)
        self._is_new = True
        self._reset.from_us = 0
        self.recorder.record(steps.Position(steps.DISCOVERY, self.node, 0))
        self.begin()

    def _initialize(self, *, is_told: bool = False) -> None:
        """Read on from the committed offset, once the group's coordinator has named it (`is_told`).

        Kafka: ConsumerCoordinator#refreshCommittedOffsetsIfNeeded (0.10.2-2.6),
        ConsumerCoordinator#initWithCommittedOffsetsIfNeeded (3.9-4.4).
        """
        if self._group is not None and not is_told:
            self._group.fetch()
        elif self._committed is None and self._is_new and self.settings.offset_reset == "latest":
            self.cursor.request_reset("earliest" if self.decide.reads_new_partitions.yes() else "")
            self.fetch()
        elif self._committed is None:
            self._reset_by_policy()
        else:
            self._place(*self._committed)

    def committed(self, commit: OffsetCommit | None) -> None:
        if self.cursor.state != INITIALIZING:
            return
        self._committed = None if commit is None else (commit.offset, commit.leader_epoch)
        offset, record = (-1, 0) if commit is None else (commit.offset, commit.record)
        self.recorder.record(steps.Position(steps.COMMITTED_OFFSET, self.node, offset, NO_EPOCH, "commit", record))
        self._initialize(is_told=True)

    def _place(self, offset: int, epoch: int) -> None:
        """Set the position; an epoch ahead of the metadata makes it wait for newer metadata."""
        self._leave_fetch()
        self._reset.from_us = 0
        self.note_epoch(epoch)
        self.cursor.seek_unvalidated(FetchPosition(offset, epoch, *self.current_leader))
        self.fetch()

    def _validate(self, channel: Channel[Server]) -> None:
        """Validate the position: ask where the epoch of the last record ended.

        Kafka: consumer.internals.Fetcher#validateOffsetsAsync (2.6), OffsetFetcher#validatePositionsAsync (3.9-4.4).
        """
        at = self.cursor
        if not self.can_validate(channel):
            at.complete_validation()
            self.fetch()
        elif self._is_due(self._validation):
            position = at.position
            assert position is not None
            asks = [(self.topic, at.leader_epoch, at.offset_epoch)]
            request = OffsetsForLeaderEpochRequest(self.node, asks, [], with_epoch=True)
            self._validation = request, at.changes
            self._validations.append((request, position))
            self.reached(probes.CONSUMER_VALIDATES)
            channel.send(request)
            self._set_timeout(request)

    def on_epoch_end_reply(self, reply: OffsetsForLeaderEpochResponse) -> None:
        """Handle the end offset of an epoch. All errors are retriable."""
        sent = next((one for one in self._validations if one[0] is reply.request), None)
        if sent is None:
            return
        self._validations.remove(sent)
        asked = sent[1]
        if self._validation is not None and self._validation[0] is reply.request:
            self._validation = None
        _, error, epoch, end_offset = reply.results[0]
        if error:
            self._request_failed()
            self.retry_later()
            return
        if self.cursor.state != AWAIT_VALIDATION:
            return
        truncation = self.cursor.epoch_end(asked, epoch, end_offset)
        if truncation is not None:
            self._truncated(truncation)
        elif self.cursor.state == FETCHING and self.cursor.offset < asked.offset:
            went_back = steps.Position(steps.REWIND, self.node, self.cursor.offset, NO_EPOCH, "position", asked.offset)
            self.recorder.record(went_back)
        self.fetch()

    def _truncated(self, truncation: LogTruncation) -> None:
        self.has_error = True
        offset, epoch, divergent = truncation.position.offset, truncation.divergent_epoch, truncation.divergent_offset
        self.recorder.record(
            steps.Position(steps.TRUNCATION_DETECTED, self.node, offset, epoch, "divergent_offset", divergent)
        )

    def _set_timeout(self, request: object) -> None:
        self._prepared_us = self.kernel.now_us
        self.kernel.call_at(self.kernel.now_us + self.timeout_us, self.life, self._time_out, request)

    def _time_out(self, request: object) -> None:
        last = (self._reset_request, self._validation)
        if any(one is not None and one[0] is request for one in last):
            self.connection_lost()
            self.retry_later(always=True)

    @property
    def is_stuck(self) -> bool:
        """Whether it has begun and reads no further, though the application neither paused it nor got an error: no
        response is under way that has not timed out, and no retry.
        """
        has_begun = self._tries > 0
        if not has_begun or self.paused or self.has_error or self._refreshing:
            return False
        if self._asked is not None or self._fetch is not None or (self._group is not None and self._group.waits):
            return False
        if self.kernel.now_us < self._reset.from_us or self._waits_for_late_fetch():
            return False
        is_preparing = self._reset_request is not None or self._validation is not None
        return not is_preparing or self.kernel.now_us > self._prepared_us + self.timeout_us

    # Calls of the application.

    def pause(self) -> None:
        """Stop reading; responses in flight are dropped."""
        self.paused = True
        self._fetch = None

    def resume(self) -> None:
        """Resume reading."""
        self.paused = False
        self.fetch()

    def seek(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Read on from an offset, with the epoch of the record before it if the application has stored it."""
        self.recorder.record(steps.Position(steps.SEEK, self.node, offset, epoch))
        self.has_error = False
        self._place(offset, epoch if epoch != NO_EPOCH and self.decide.validates_position.yes() else NO_EPOCH)

    def commit(self) -> None:
        """Store the position, with the last record's epoch if known. Kafka: ConsumerCoordinator#commitOffsetsSync."""
        at = self.cursor
        if at.state == FETCHING:
            offset, epoch = at.offset, at.offset_epoch
            if epoch != NO_EPOCH and not self.decide.validates_position.yes():
                epoch = NO_EPOCH
            if self._group is not None:
                self._group.commit(offset, epoch)
            else:
                self._committed = offset, epoch
                self.recorder.record(steps.Position(steps.COMMIT, self.node, offset, epoch))

    def commit_regularly_from(self, first_us: int) -> None:
        """Commit the position at a time, and again every ``auto.commit.interval.ms``.

        Kafka: ConsumerCoordinator#maybeAutoCommitOffsetsAsync.
        """
        act = partial(_commit_if_reading, self)
        self.kernel.schedule(first_us, self.life, Regularly(self.kernel, self.settings.auto_commit_us, act))

    def restart(self) -> bool:
        """Replace the process by a new one, which begins at the committed offset; False if it has not begun."""
        if self._tries == 0:
            return False
        self.end_elision()  # Successful fetches reset the back-off.
        self._preferred = NO_LEADER
        self.connection_lost()
        self._late_fetches.clear()
        self._end_offset_request = self._lookup = None
        self.forget_leader()
        self._newest_epoch = NO_EPOCH
        self.cursor = ConsumerPosition(self.settings.offset_reset)
        self.paused = self.has_error = False
        self._reset.from_us = 0
        if self._group is not None:
            self._group.replaced()
            self.recorder.record(steps.Position(steps.NEXT_PROCESS, self.node, self._group.processes))
        else:
            offset = -1 if self._committed is None else self._committed[0]
            self.recorder.record(steps.Position(steps.RESTART_CONSUMER, self.node, offset))
        self.refresh()
        return True

    # Offsets.

    def _ask_offset(self, channel: Channel[Server], timestamp: int) -> ListOffsetsRequest:
        request = ListOffsetsRequest(self.node, -1, self.topic, timestamp, self._epoch())
        channel.send(request)
        return request

    def ask_end_offset(self, _: object = None) -> None:
        """Send ListOffsets(latest) now, replacing an unanswered earlier one. Kafka: KafkaConsumer#endOffsets."""
        channel = self.channel()
        if channel is not None:
            self._exposed_when_asked = self.recorder.history.clients.exposed
            self._end_offset_asked_us = self.kernel.now_us
            self._end_offset_request = self._ask_offset(channel, LATEST)

    def ask_regularly_from(self, first_us: int) -> None:
        """Send ListOffsets(latest) at a time, and again every ``sim.end.offsets.interval.ms``."""
        self.kernel.schedule(
            first_us, self.life, Regularly(self.kernel, self.settings.end_offsets_us, self.ask_end_offset)
        )

    def offset_for_time(self, timestamp: int) -> None:
        """Ask for the first record from a time on; a record's time is its id. Kafka: KafkaConsumer#offsetsForTimes."""
        channel = self.channel()
        if channel is not None:
            self._lookup = self._ask_offset(channel, timestamp)

    def on_list_offsets_reply(self, reply: ListOffsetsResponse) -> None:
        """Handle an offset: for the application, or to reset the position."""
        request = reply.request
        if request is not self._end_offset_request:
            self.end_elision()
        if request is self._end_offset_request:
            self._end_offset_request = None
            if not reply.error:
                self.recorder.record(
                    steps.EndOffset(
                        self._exposed_when_asked, self._end_offset_asked_us, reply.offset, reply.leader_epoch
                    )
                )
            elif reply.error == OFFSET_NOT_AVAILABLE:
                self.reached(probes.OFFSET_UNAVAILABLE)
            else:
                self._refused(reply.error)
                self.retry_later()
        elif request is self._lookup:
            self._lookup = None
            if reply.error:
                self.retry_later()
            else:
                epoch, record = reply.leader_epoch, request.timestamp
                found = steps.Position(steps.OFFSET_FOR_TIME, self.node, reply.offset, epoch, "record", record)
                self.recorder.record(found)
        elif any(one is request for one in self._resets):
            self._resets = [one for one in self._resets if one is not request]
            last = self._reset_request
            is_current = False
            if last is not None and last[0] is request:
                is_current = last[1] == self.cursor.changes != self._failed_at
                self._reset_request = None
            if reply.error:
                self._request_failed()
                self.retry_later(always=True)
            elif reply.offset >= 0 or is_current:
                self._reset_to(request.timestamp, reply)

    def _reset_to(self, timestamp: int, reply: ListOffsetsResponse) -> None:
        """Kafka: consumer.internals.Fetcher#resetOffsetIfNeeded (1.1-2.6), OffsetFetcherUtils#resetPositionIfNeeded
        (3.9-4.4).

        If no record is as new as by_duration asks for, the consumer asks again ``request.timeout.ms`` after it asked:
        OffsetFetcherUtils#handleListOffsetResponse, SubscriptionState#setNextAllowedRetry.
        """
        if reply.offset < 0:
            policy = self.settings.offset_reset
            self.reached(probes.CONSUMER_FINDS_NO_RECORD)
            self.recorder.record(steps.Position(steps.NO_RECORD_IN_TIME, self.node, -1, policy=policy))
            if self.decide.resets_to_latest_unless_in_time.yes():
                self.cursor.request_reset("latest")
                self.fetch()
            else:
                self._reset.from_us = self._prepared_us + self.timeout_us
                self.kernel.call_at(self._reset.from_us, self.life, _fetch, self)
            return
        strategy = {EARLIEST: "earliest", LATEST: "latest"}.get(timestamp, self.settings.offset_reset)
        # Without a last epoch, so that the position is not validated.
        position = FetchPosition(reply.offset, NO_EPOCH, *self.current_leader)
        self.note_epoch(reply.leader_epoch)
        if self.cursor.state != AWAIT_RESET:
            return
        if self.cursor.reset_to(strategy, position):
            policy = self.settings.offset_reset
            self.recorder.record(steps.Position(steps.RESET, self.node, reply.offset, policy=policy))
        self.fetch()

    # Connections.

    def leader_unknown(self) -> None:
        """See `Client.leader_unknown`: go on with the leader of the position."""
        self._try_again()
        if self.cursor.state in (FETCHING, AWAIT_VALIDATION) and self._position_leader() != NO_LEADER:
            self.fetch()

    def leader_known(self) -> None:
        """See `Client.leader_known`: a fetch waiting at another leader, or in another epoch, is abandoned."""
        self._try_again()
        channel = self.channel()
        assert channel is not None
        fetch, at = self._fetch, self.cursor
        moved = self.leader != at.leader or self.leader_epoch != at.leader_epoch
        if (moved and at.offset_epoch != NO_EPOCH) or at.state == AWAIT_VALIDATION:
            self.decide.validates_position.note()
        if moved:
            self._preferred = NO_LEADER
        doubtful = self.cursor.leader_seen(self.leader, self.leader_epoch, can_validate=self.can_validate(channel))
        if fetch is not None and (
            doubtful or fetch.leader != self._read_replica() or fetch.positions[0][2] != self._fetch_epoch()
        ):
            self._leave_fetch()
        self.fetch()

    def disconnected(self, peer: int) -> None:
        self._late_fetches.pop(peer, None)
        if self._group is not None:
            self._group.disconnected(peer)
        is_fetching = self._fetch is not None and self._fetch.leader == peer
        if peer != self.leader and (is_fetching or self._preferred == peer):
            self._preferred = NO_LEADER
            if is_fetching:  # Also from a former leader, while none is known.
                self._fetch = None
            self.retry_later(always=True)
        super().disconnected(peer)

    def connection_lost(self) -> None:
        """See `Client.connection_lost`; a fetch that waits at a follower goes on."""
        if self._preferred == NO_LEADER:
            self._fetch = None
            self._late_fetches.pop(self.leader, None)
        self._reset_request = self._validation = None
        if self._resets or self._validations:  # SubscriptionState.requestFailed ends the wait.
            self._reset.from_us = 0
        self._resets.clear()
        self._validations.clear()


def _fetch(consumer: Consumer) -> None:
    consumer.fetch()


def _commit_if_reading(consumer: Consumer) -> None:
    if not (consumer.paused or consumer.has_error):
        consumer.commit()


if not COMPILED:
    Consumer.handlers = {
        FetchResponse: Consumer.on_fetch_reply,
        MetadataResponse: Consumer.on_metadata_reply,
    }
