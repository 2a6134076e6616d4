"""A follower's fetcher: truncates and fetches all partitions that follow one leader broker.

One request is in flight at a time. Each partition is in one of a few states; an error of one partition delays or fails
only that one, unless the rules let the whole thread die.

With rule ``follower_truncation=on-fetch`` there is no separate truncation phase: a follower whose log has an epoch
fetches at its LEO at once, and each fetch carries the latest epoch of its log. If the leader's log lacks that epoch, or
has it only up to a lower offset, the leader responds without records and with the diverging epoch: its largest epoch up
to that one, and where that ended. The follower truncates as after an OffsetsForLeaderEpoch response, and fetches again.
The HW of such a response is ignored (KAFKA-14704), and the session's later responses lack it until it moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.decision_points import BY_EPOCH, BY_FETCH, BY_HW, FALLS_BACK, OUT_OF_RANGE
from sim.protocol.decisions import Decision, Decisions
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from sim.protocol.log.log import UnexpectedAppendOffsetError
from sim.protocol.messages import (
    AGREES,
    EARLIEST,
    FENCED_LEADER_EPOCH,
    LATEST,
    LOG_TRUNCATION,
    NO_EPOCH,
    OFFSET_OUT_OF_RANGE,
    UNSUPPORTED_VERSION,
    Ask,
    Diverging,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Incremental,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Position,
    topic_partition,
)
from sim.protocol.replica import plugin_points
from sim.protocol.replica.fetch_session_handler import FetchSessionHandler
from sim.protocol.replica.partition_fetch_state import (
    ASKS,
    AWAITING,
    COMPARING,
    FETCHES,
    FETCHING,
    TRUNCATING,
    PartitionFetchState,
    ReplicaState,
)
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.truncation import truncation_state
from sim.protocol.rules import RULES

Request = FetchRequest | OffsetsForLeaderEpochRequest | ListOffsetsRequest

FIRST_PLACE: Final = (0,)
"""The indexes of the results of a fetch of one partition."""
_FENCED: Final = {value: value for value in RULES["fenced_fetcher"].values}
"""For `Choice.pick`: each value of rule ``fenced_fetcher`` acts differently."""


class FetcherHost(Protocol):
    """Callbacks to the fetcher's broker."""

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """Send a fetch to the leader broker.

        Kafka: RemoteLeaderEndPoint#fetch (3.9-4.4), ReplicaFetcherThread#fetchFromLeader (2.6),
        ReplicaFetcherThread#fetch (0.10.2-2.0).
        """

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """Send OffsetsForLeaderEpoch to the leader broker.

        Kafka: RemoteLeaderEndPoint#fetchEpochEndOffsets (3.9-4.4), ReplicaFetcherThread#fetchEpochEndOffsets (2.6),
        ReplicaFetcherThread#fetchEpochsFromLeader (1.1-2.0).
        """

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """Send ListOffsets to the leader broker.

        Kafka: RemoteLeaderEndPoint#fetchOffset (3.9-4.4), ReplicaFetcherThread#fetchOffsetFromLeader (2.6),
        ReplicaFetcherThread#earliestOrLatestOffset (0.10.2-2.0).
        """

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """Call `ReplicaFetcherThread.step` at that time."""

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """Truncation for this leader epoch is complete, after `rounds` OffsetsForLeaderEpoch or diverging responses.

        By rule ``follower_truncation``, the log was truncated to the HW, or to the leader's end offset. With on-fetch
        the leader answered a fetch of this leader epoch without a diverging epoch: judged by the last epoch, the logs
        match from the leader's log start to the fetch offset. A response to a fetch of an earlier leader epoch does not
        complete truncation, though rule ``late_reply`` may let it be processed.
        """

    def halt(self, reason: str) -> None:
        """The broker exits."""

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""


class ReplicaFetcherThread:
    """Follows one leader broker. Kafka: ReplicaFetcherThread, AbstractFetcherThread.

    Args:
        leader: id of the leader broker.
        decide: the follower's rules.
        host: the follower's broker.
        backoff_us: ``replica.fetch.backoff.ms`` in us.
        unclean_election: ``unclean.leader.election.enable``, with which an out-of-range follower does not halt.

    Attributes:
        partitions: followed partitions.
        failed: partitions failed or fenced until their next leader change.
        dead: whether an error ended the thread (rule ``append_error``).
        in_flight: the request in flight.
        session: its fetch session.
        unclean_election: see above; may change.
    """

    __slots__ = (
        "_asked",
        "_backoff_us",
        "_complete",
        "_decide",
        "_host",
        "_is_out_of_range",
        "_unsettled",
        "dead",
        "failed",
        "in_flight",
        "leader",
        "partitions",
        "session",
        "unclean_election",
    )

    def __init__(
        self, leader: int, decide: Decisions, host: FetcherHost, *, backoff_us: int, unclean_election: bool = False
    ) -> None:
        self.leader = leader
        self._decide = decide
        self.partitions: dict[str, PartitionFetchState] = {}
        self.failed: set[str] = set()
        self.dead = False
        self.in_flight: Request | None = None
        self._complete: FetchRequest | None = None
        """The last fetch, if it had several partitions, and all that are followed."""
        self._unsettled: Sequence[int] | None = None
        """The indexes of the partitions that the last response changed, if any; None if that says nothing about the
        next one, because something else changed them.
        """
        self._is_out_of_range = False
        """Whether a partition may have to be asked for its offsets."""
        self._asked = False
        """Whether a round of truncations has just ended: before the next, partitions that need none are fetched."""
        self._host = host
        self._backoff_us = backoff_us
        self.unclean_election = unclean_election
        self.session = FetchSessionHandler(decide)

    def add(self, replica: Replica, leader_epoch: int, now_us: int, *, steps: bool = True) -> None:
        """Add a partition; with an unchanged leader epoch the current state is kept. Without `steps`, the caller calls
        `step` once it has added all partitions.

        0.10 truncates to the HW here, without asking the leader: KIP-101 scenario 1. A request in flight stays in
        flight, and its response may arrive in the newer epoch.
        Kafka: AbstractFetcherThread#addPartitions.
        """
        present = self.partitions.get(replica.name)
        if present is not None and present.leader_epoch == leader_epoch:
            return
        self.failed.discard(replica.name)
        fetch = PartitionFetchState(replica, leader_epoch, replica.hw, TRUNCATING)
        self.partitions[replica.name] = fetch
        self._complete = self._unsettled = None
        decide = self._decide
        # These rules decide whether requests carry an epoch, on which their latencies depend, too.
        decide.compares_last_epoch.note()
        if decide.fences_fetches.yes():
            decide.fences_first_fetch_only.note()
        if decide.truncates_to_hw.yes():
            self._host.reached(probes.TRUNCATES_TO_HW)
            if decide.awaits_records.yes():
                fetch.state = AWAITING
            else:
                self._truncate(fetch, replica.hw, complete=True, cause=BY_HW)
        elif decide.truncates_on_fetch.yes() and replica.epochs.latest is not None:
            fetch.state = COMPARING
        if steps:
            self.step(now_us)

    def remove(self, name: str) -> None:
        """Stop fetching a partition; drop responses in flight. Kafka: AbstractFetcherThread#removePartitions."""
        if self.partitions.pop(name, None) is not None:
            self._complete = self._unsettled = None

    def note_change(self) -> None:
        """Note that something besides this fetcher changed a partition's log or leader epoch."""
        self._complete = self._unsettled = None

    def step(self, now_us: int) -> None:
        """Send the next request, unless one is in flight.

        Kafka: AbstractFetcherThread#doWork, AbstractFetcherThread#maybeTruncate (1.1-4.4),
        AbstractFetcherThread#maybeFetch (2.6-4.4).
        """
        if self.in_flight is not None or self.dead or (self._is_out_of_range and self._ask_for_offsets(now_us)):
            return
        positions: list[Position] = []
        fetched_epochs: list[int] = []
        asks: list[Ask] = []
        asked_epochs: list[int] = []
        wake_us = 0
        for name, fetch in self.partitions.items():
            if fetch.delayed_until_us > now_us:
                wake_us = min(wake_us or fetch.delayed_until_us, fetch.delayed_until_us)
                continue
            epoch = fetch.leader_epoch
            if fetch.state is FETCHING and self.session.is_plain:
                positions.append((name, fetch.replica.log.leo, epoch if self.session.fences else NO_EPOCH, NO_EPOCH))
                fetched_epochs.append(epoch)
                continue
            if fetch.state is TRUNCATING:
                latest = fetch.replica.epochs.latest
                if latest is not None:
                    asks.append((name, epoch if self._decide.fences_truncation.yes() else NO_EPOCH, latest))
                    asked_epochs.append(epoch)
                    continue
                if not self._fall_back(fetch, fetch.fetch_offset):
                    self.step(now_us)
                    return
            positions.append(self.session.position(name, fetch))
            fetched_epochs.append(epoch)
        if asks and not (self._asked and positions):
            # With on-fetch, only a leader that does not compare epochs gets this request.
            with_epoch = self._decide.names_epochs.answer
            self.in_flight = self._host.send_epoch_end(self, asks, asked_epochs, with_epoch=with_epoch)
        elif positions:
            self.session.forget_others(positions)
            request = self._host.send_fetch(self, positions, fetched_epochs)
            self.in_flight = request
            self._complete = request if 1 < len(positions) == len(self.partitions) else None
        else:
            self.session.forget_others(positions)
            if wake_us:
                self._host.wake_fetcher(self, wake_us)

    def _ask_for_offsets(self, now_us: int) -> bool:
        """Ask for an offset of the first partition that is out of range; returns whether there is one. Kafka does so
        while it processes the response of the fetch, before it truncates or fetches anything else.

        Kafka: AbstractFetcherThread#handleOutOfRangeError (2.6-4.4).
        """
        self._is_out_of_range = False
        for name, fetch in self.partitions.items():
            if fetch.state in ASKS:
                self._is_out_of_range = True
                if fetch.delayed_until_us <= now_us:
                    timestamp = LATEST if fetch.state is ReplicaState.ASKING_LATEST else EARLIEST
                    fence = fetch.leader_epoch if self._decide.fences_fetches.answer else NO_EPOCH
                    self.in_flight = self._host.send_list_offsets(self, name, timestamp, fence)
                    return True
        return False

    def would_repeat(self, request: FetchRequest, place: int, log_start: int) -> bool:
        """Whether, after an empty response with this log start and the follower's HW, the follower would fetch the
        partition at index `place` of the request from the same position again.
        """
        if (
            request is not self.in_flight
            or self.dead
            or len(self.partitions) != len(request.positions)
            or not self.session.is_open
        ):
            return False
        position, epoch = request.positions[place], request.leader_epochs[place]
        fetch = self.partitions.get(position[0])
        return (
            fetch is not None
            and fetch.state is FETCHING
            and fetch.leader_epoch == epoch
            and fetch.replica.log.log_start >= log_start
            and self.session.position(position[0], fetch) == position
        )

    def repeated_places(
        self, request: FetchRequest, results: Sequence[FetchResult], changed: Sequence[int] | None
    ) -> int:
        """The number of partitions of a fetch, counted from the first, for which `would_repeat` holds and these empty
        results have the follower's HW. Only results at indexes `changed` differ from the last response (None: any may).
        """
        positions, leader_epochs = request.positions, request.leader_epochs
        if (
            request is not self.in_flight
            or self.dead
            or len(self.partitions) != len(positions)
            or not self.session.is_open
        ):
            return 0
        for place in list(range(len(results))) if changed is None else self._to_check(request, changed):
            position, result = positions[place], results[place]
            fetch = self.partitions.get(position[0])
            if fetch is None or fetch.state is not FETCHING or fetch.leader_epoch != leader_epochs[place]:
                return place
            replica = fetch.replica
            if replica.hw != result[3] or replica.log.log_start < result[4]:
                return place
            if self.session.position(position[0], fetch) != position:
                return place
        return len(results)

    def _to_check(self, request: FetchRequest, changed: Sequence[int]) -> list[int]:
        """The indexes of the partitions for which a response may have news, if its session names those `changed`."""
        unsettled = self._unsettled
        if request.incremental is None or unsettled is None:
            return list(range(len(request.positions)))
        return sorted({*changed, *unsettled}) if unsettled else list(changed)

    def request_failed(self, request: Request, now_us: int) -> None:
        """Handle a broken connection or timeout: retry after the back-off, in a new session.

        Truncates only with rule ``epoch_request_error=high-watermark``.
        Kafka: AbstractFetcherThread#handlePartitionsWithErrors.
        """
        if request is not self.in_flight:
            return
        self.in_flight = None
        self.session.close()
        self._host.reached(probes.REQUEST_FAILS)
        for fetch in list(self.partitions.values()):
            asked = fetch.state is TRUNCATING and isinstance(request, OffsetsForLeaderEpochRequest)
            if asked and self._decide.truncates_on_error.yes():
                self._fall_back(fetch, fetch.replica.hw)
            self._delay(fetch, now_us)
        self.step(now_us)

    # Truncation.

    def on_epoch_end_reply(self, reply: OffsetsForLeaderEpochResponse, now_us: int) -> None:
        """Truncate by the leader's response.

        Kafka: AbstractFetcherThread#maybeTruncateToEpochEndOffsets (2.6-4.4),
        AbstractFetcherThread#truncateToEpochEndOffsets (2.6-4.4), ReplicaFetcherThread#maybeTruncate (1.1-2.0).

        Raises:
            ValueError: the response has a partition that was not requested.
        """
        if reply.request is not self.in_flight:
            return
        self.in_flight = None
        asks = zip(reply.request.asks, reply.request.leader_epochs, strict=True)
        asked = {name: leader_epoch for (name, _, _), leader_epoch in asks}
        for name, error, epoch, end_offset in reply.results:
            if name not in asked:
                raise ValueError(f"reply for partition {name!r}, which was not asked for")
            fetch = self.partitions.get(name)
            if fetch is None or fetch.state is not TRUNCATING:
                continue
            if asked[name] != fetch.leader_epoch and self._is_too_late(self._decide.drops_late_epoch_ends):
                continue
            if error == UNSUPPORTED_VERSION:
                self._fall_back(fetch, fetch.fetch_offset)
            elif error:
                if self._decide.truncates_on_error.yes():
                    self._fall_back(fetch, fetch.replica.hw)
                else:
                    self._on_error(fetch, name, error, asked[name], now_us)
            elif end_offset == UNDEFINED_OFFSET:
                fetch.rounds += 1
                self._fall_back(fetch, fetch.fetch_offset)
            else:
                fetch.rounds += 1
                replica = fetch.replica
                offset, complete = truncation_state(
                    replica.epochs, replica.log.leo, fetch.fetch_offset, epoch, end_offset
                )
                self._truncate(fetch, offset, complete=complete, cause=BY_EPOCH, epoch=epoch, end_offset=end_offset)
        self._asked = True
        self.step(now_us)
        self._asked = False

    def _is_too_late(self, drops: Decision) -> bool:
        """Whether a response to a request of an earlier leader epoch is dropped."""
        self._host.reached(probes.LATE_REPLY)
        return drops.yes()

    def _fall_back(self, fetch: PartitionFetchState, offset: int) -> bool:
        """Truncate to an offset (the HW, or where the previous round truncated), for want of an end offset.

        Kafka: AbstractFetcherThread#truncateToHighWatermark (2.6-4.4).
        """
        if offset < fetch.replica.log.leo:
            self._host.reached(probes.FALLS_BACK)
        return self._truncate(fetch, offset, complete=True, cause=FALLS_BACK)

    def _truncate(
        self,
        fetch: PartitionFetchState,
        offset: int,
        *,
        complete: bool,
        cause: str,
        epoch: int = UNDEFINED_EPOCH,
        end_offset: int = UNDEFINED_OFFSET,
    ) -> bool:
        """Truncate; False if the disk fails.

        Kafka: AbstractFetcherThread#doTruncate (2.6-4.4), AbstractFetcherThread#truncate (2.6-4.4).
        """
        replica = fetch.replica
        offset, complete = plugin_points.truncation(
            replica, fetch.leader_epoch, cause, epoch, end_offset, (offset, complete)
        )
        if cause == BY_EPOCH:
            fetch.fetch_offset = offset
        try:
            replica.truncate_to(offset)
        except OSError:
            self._give_up(replica.name)
            return False
        if complete:
            self._complete_truncation(fetch)
        return True

    def _complete_truncation(self, fetch: PartitionFetchState) -> None:
        """Complete truncation; a later one in this leader epoch counts its rounds from 0.

        Kafka: AbstractFetcherThread#updateFetchOffsetAndMaybeMarkTruncationComplete (2.0-4.4),
        AbstractFetcherThread#markTruncationCompleteAndUpdateFetchOffset (1.1).
        """
        fetch.state = FETCHING
        rounds, fetch.rounds = fetch.rounds, 0
        self._host.truncation_completed(fetch.replica, fetch.leader_epoch, rounds)

    # Fetching.

    def on_fetch_reply(self, reply: FetchResponse, now_us: int) -> None:
        """Append records, apply HW and log start, fetch again. Kafka: AbstractFetcherThread#processFetchRequest."""
        request = reply.request
        if request is not self.in_flight:
            return
        self.in_flight = None
        positions, leader_epochs, results = request.positions, request.leader_epochs, reply.results
        changed = self._changed_places(reply)
        for place in changed:
            self._process_result(positions[place], leader_epochs[place], results[place], now_us)
        self._fetch_again(reply, changed, now_us)

    def _process_result(self, position: Position, leader_epoch: int, result: FetchResult, now_us: int) -> None:
        """Process a partition's result of a fetch from a position, sent in a leader epoch.

        Kafka: AbstractFetcherThread#processFetchRequest, ReplicaFetcherThread#processPartitionData.
        """
        is_told = self.session.tells(result)
        fetch = self.partitions.get(position[0]) or self._recreated(position[0])
        if fetch is None or not self._awaits(fetch, position[1], leader_epoch):
            return
        _, error, batches, hw, log_start, _, diverging = result
        replica = fetch.replica
        if fetch.state is not FETCHING and not error and not self._confirms_truncation(fetch, diverging, leader_epoch):
            return
        if error:
            self._on_error(fetch, replica.name, error, leader_epoch, now_us)
        elif diverging:
            if self._decide.mutants.hw_of_diverging_response.when(replica.hw < hw):
                replica.set_hw(hw)
            self._truncate_on_fetch(fetch, position, diverging, now_us)
        elif is_told and (not batches or self._append(replica, batches)):
            replica.apply_leader_offsets(hw, log_start)

    def _awaits(self, fetch: PartitionFetchState, offset: int, leader_epoch: int) -> bool:
        """Whether a partition still waits for the result of a fetch at an offset, sent in a leader epoch.

        Kafka: AbstractFetcherThread#processFetchRequest.
        """
        if fetch.state not in FETCHES:
            return False
        mutants = self._decide.mutants
        expected = fetch.fetch_offset if fetch.state is AWAITING else fetch.replica.log.leo
        if offset != expected and not mutants.fetch_response_at_another_offset.differs():
            return False
        is_late = leader_epoch != fetch.leader_epoch and self._is_too_late(self._decide.drops_late_fetches)
        return not is_late or mutants.fetch_response_of_earlier_epoch.differs()

    def _changed_places(self, reply: FetchResponse) -> Sequence[int]:
        """The indexes of the results that change something at the follower.

        A leader leaves the other partitions out of an incremental response (KIP-227).
        """
        if len(reply.results) == 1:
            return FIRST_PLACE
        request, results, incremental = reply.request, reply.results, reply.incremental
        positions, leader_epochs, asked = request.positions, request.leader_epochs, request.incremental
        if incremental is not None and asked is not None and asked.session == incremental.session:
            places = self._to_check(request, incremental.places)
        else:
            places = list(range(len(results)))
        changed = []
        for place in places:
            position, result = positions[place], results[place]
            fetch = self.partitions.get(position[0])
            if fetch is None or not fetch.learns_nothing(position[1], leader_epochs[place], result):
                changed.append(place)
        self._unsettled = changed
        return changed

    def _fetch_again(self, reply: FetchResponse, changed: Sequence[int], now_us: int) -> None:
        """`step` after a fetch response. If the fetch had all partitions, only those at indexes `changed` differ."""
        request = reply.request
        if request is not self._complete or not self.session.is_open:
            self.session.is_open = True
            self.step(now_us)
            return
        if self.in_flight is not None or self.dead:
            return
        positions, fetched_epochs = list(request.positions), list(request.leader_epochs)
        for place in changed:
            name = positions[place][0]
            fetch = self.partitions.get(name)
            if fetch is None or fetch.state is not FETCHING or fetch.delayed_until_us > now_us:
                self.step(now_us)
                return
            positions[place] = self.session.position(name, fetch)
            fetched_epochs[place] = fetch.leader_epoch
        session, incremental = self.session, reply.incremental
        if incremental is not None:
            session.incremental = Incremental(incremental.session, incremental.epoch + 1, changed)
        self.in_flight = self._complete = self._host.send_fetch(self, positions, fetched_epochs)
        session.incremental = None

    def _recreated(self, name: str) -> PartitionFetchState | None:
        """The followed partition with the same topic name and number, if the topic was deleted and recreated since.

        Fetchers know partitions by name, and do not compare topic ids: a late response about the deleted topic is
        processed if offset and leader epoch match, unless rule ``recreated_reply`` drops it.
        Kafka: AbstractFetcherThread#processFetchRequest.
        """
        wanted = topic_partition(name)
        for other, fetch in self.partitions.items():
            if topic_partition(other) == wanted:
                self._host.reached(probes.RECREATED_REPLY)
                return None if self._decide.drops_recreated.yes() else fetch
        return None

    def _confirms_truncation(self, fetch: PartitionFetchState, diverging: Diverging, asked_epoch: int) -> bool:
        """Whether to process a response that may complete truncation.

        A leader that does not compare epochs confirms nothing; the follower asks it for the end of the latest epoch.
        """
        if fetch.state is AWAITING:
            return self._truncate(fetch, fetch.fetch_offset, complete=True, cause=BY_HW)
        if diverging is None:
            fetch.state = TRUNCATING
            return False
        if diverging == AGREES and asked_epoch == fetch.leader_epoch:
            self._complete_truncation(fetch)
        return True

    def _truncate_on_fetch(
        self, fetch: PartitionFetchState, position: Position, diverging: Diverging, now_us: int
    ) -> None:
        """Truncate by the diverging epoch in a fetch response.

        The next fetch shows whether that was enough. If nothing was truncated, as when the epoch cache keeps entries
        without data (rule ``truncate_at_leo=keeps-epochs``), the same exchange would repeat at network speed, so the
        back-off applies.
        Kafka: AbstractFetcherThread#truncateOnFetchResponse (3.9-4.4).
        """
        assert diverging
        self._host.reached(probes.FETCH_DIVERGES)
        fetch.rounds += 1
        replica = fetch.replica
        offset, _ = truncation_state(replica.epochs, replica.log.leo, fetch.fetch_offset, *diverging)
        if self._truncate(fetch, offset, complete=False, cause=BY_FETCH, epoch=diverging[0], end_offset=diverging[1]):
            fetch.state = COMPARING
            if self.session.position(replica.name, fetch) == position:
                self._delay(fetch, now_us)

    def _append(self, replica: Replica, batches: Sequence[Batch]) -> bool:
        """Append fetched batches; False if that fails. Kafka: ReplicaFetcherThread#processPartitionData."""
        self._decide.mutants.note_append()
        try:
            for batch in batches:
                replica.append_fetched(batch)
        except (UnexpectedAppendOffsetError, OSError):
            self._give_up(replica.name)
            return False
        return True

    def _give_up(self, name: str) -> None:
        """End the thread, or fail the partition. Kafka: AbstractFetcherThread#markPartitionFailed (2.6-4.4)."""
        if self._decide.error_kills_thread.yes():
            self._host.reached(probes.FETCHER_DIES)
            self.dead = True
        else:
            self._fail(name)

    # Errors.

    def _on_error(self, fetch: PartitionFetchState, name: str, error: str, asked_epoch: int, now_us: int) -> None:
        """Kafka: AbstractFetcherThread#processFetchRequest, AbstractFetcherThread#handleOutOfRangeError (2.6-4.4)."""
        probe = (probes.EPOCH_ENDS if fetch.state is TRUNCATING else probes.FETCHES).get(error)
        if probe is not None:
            self._host.reached(probe)
        if error == OFFSET_OUT_OF_RANGE:
            fetch.state = ReplicaState.ASKING_LATEST
            self._is_out_of_range = True
            fetch.out_of_range_epoch = asked_epoch
        elif error == LOG_TRUNCATION:
            fetch.state = TRUNCATING
            fetch.fetch_offset = fetch.replica.hw
        elif error == FENCED_LEADER_EPOCH and asked_epoch == fetch.leader_epoch:
            self._on_fenced(name, fetch, now_us)
        else:
            self._delay(fetch, now_us)

    def _on_fenced(self, name: str, fetch: PartitionFetchState, now_us: int) -> None:
        """Fenced: the leader has a newer epoch. Kafka: AbstractFetcherThread#onPartitionFenced (2.6-4.4)."""
        value = self._decide.fenced_fetcher.pick(_FENCED)
        if value == "retries":
            self._delay(fetch, now_us)
        elif value == "failed":
            self._fail(name)
        else:
            self.remove(name)

    def _fail(self, name: str) -> None:
        """Kafka: AbstractFetcherThread#markPartitionFailed (2.6-4.4)."""
        self._host.reached(probes.PARTITION_FAILS)
        self.remove(name)
        self.failed.add(name)

    def _delay(self, fetch: PartitionFetchState, now_us: int) -> None:
        """Kafka: AbstractFetcherThread#delayPartitions."""
        fetch.delayed_until_us = now_us + self._backoff_us

    # Out of range.

    def on_list_offsets_reply(self, reply: ListOffsetsResponse, now_us: int) -> None:
        """Continue after OFFSET_OUT_OF_RANGE, with the leader's latest or earliest offset.

        If the leader's log ends below the follower's LEO, halt, or truncate to the leader's LEO without comparing
        epochs. If it begins above, drop the whole log and begin there. Otherwise fetch at the follower's LEO.
        Kafka: AbstractFetcherThread#fetchOffsetAndTruncate (2.6-4.4), ReplicaFetcherThread#handleOffsetOutOfRange
        (0.10.2-2.0).
        """
        request = reply.request
        if request is not self.in_flight:
            return
        self.in_flight = None
        fetch = self.partitions.get(request.name)
        if fetch is not None and fetch.state in ASKS:
            if reply.error:
                # It fetches again, and may be in range by then (AbstractFetcherThread.handleOutOfRangeError).
                fetch.state = COMPARING if self._decide.truncates_on_fetch.answer else FETCHING
                self._on_error(fetch, request.name, reply.error, fetch.out_of_range_epoch, now_us)
            elif request.timestamp == LATEST:
                self._on_latest(fetch, reply.offset)
            else:
                self._on_earliest(fetch, reply.offset)
        self.step(now_us)

    def _on_latest(self, fetch: PartitionFetchState, leader_leo: int) -> None:
        """Kafka: AbstractFetcherThread#fetchOffsetAndTruncate (2.6-4.4), ReplicaFetcherThread#handleOffsetOutOfRange
        (0.10.2-2.0).
        """
        replica = fetch.replica
        if leader_leo >= replica.log.leo:
            fetch.state = ReplicaState.ASKING_EARLIEST
            return
        if not self.unclean_election and self._decide.halts_out_of_range.yes():
            self._host.reached(probes.OUT_OF_RANGE_HALTS)
            self.dead = True
            self._host.halt(f"leader's latest offset {leader_leo} is less than replica's {replica.log.leo}")
        else:
            self._host.reached(probes.OUT_OF_RANGE_TRUNCATES)
            if self._truncate(fetch, leader_leo, complete=False, cause=OUT_OF_RANGE, end_offset=leader_leo):
                self._begin_fetching(fetch)

    def _on_earliest(self, fetch: PartitionFetchState, leader_start: int) -> None:
        """Kafka: AbstractFetcherThread#fetchOffsetAndTruncate (2.6-4.4), ReplicaFetcherThread#handleOffsetOutOfRange
        (0.10.2-2.0).
        """
        if leader_start > fetch.replica.log.leo:
            self._host.reached(probes.OUT_OF_RANGE_ANEW)
            fetch.replica.truncate_fully(leader_start)
        self._begin_fetching(fetch)

    def _begin_fetching(self, fetch: PartitionFetchState) -> None:
        """Fetch, though the remaining log was not compared with the leader's. With on-fetch the next fetch does that;
        otherwise truncation counts as complete.
        """
        if self._decide.truncates_on_fetch.answer:
            fetch.state = COMPARING
        else:
            self._complete_truncation(fetch)
