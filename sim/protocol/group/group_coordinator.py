"""The group coordinator on one broker: committed offsets in memory, loaded from the partition that the broker leads.

To 3.9, a commit is a write with acks=all, whose success updates the memory; what the memory has is answered at once.
From 4.0 on, a commit updates the memory when the leader has appended it, and commits and fetches are answered when the
HW has passed what the memory had then.

Loading and unloading are tasks, which other offsets partitions of the broker may delay (``sim.coordinator.delay.ms``).
While a load waits, a coordinator to 3.9 is none (NOT_COORDINATOR): it says only while it reads that it is loading. From
4.0 on it says so at once.
Consumers are such as Kafka's with `assign()`: they do not join their group, so that the coordinator neither knows nor
fences them. (Members that join have a record written first, by which a coordinator learns whether it still leads.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.group.group_messages import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    UNSTABLE_OFFSET_COMMIT,
    CommittedOffsets,
    OffsetCommit,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from sim.protocol.messages import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sim.protocol.replica.partition import Partition

NO_EPOCH_GIVEN: Final = -1
"""To `GroupCoordinator.resigned`: the replica is gone."""
INITIAL: Final = "initial"
"""Not the coordinator."""
LOADING: Final = "loading"
ACTIVE: Final = "active"
FAILED: Final = "failed"
"""It could not load, and waits for the next election."""

EMPTY: Final = "empty"

COMMIT_ERRORS: Final = {
    UNKNOWN_TOPIC_OR_PARTITION: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: COORDINATOR_NOT_AVAILABLE,
    NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
}
"""Error of the append -> error of the commit.

Kafka: GroupMetadataManager#maybeConvertOffsetCommitError (3.9), CoordinatorOperationExceptionHelper (4.1-4.4).
"""

GroupRequest = OffsetCommitRequest | OffsetFetchRequest


class CoordinatorHost:
    """What a coordinator needs of its broker."""

    __slots__ = ()

    def append(self, record: int, *, waits: bool) -> None:
        """Append a record to the partition, with acks=all if `waits`, else with acks=1; then call
        `GroupCoordinator.appended`. After ``offsets.commit.timeout.ms``, call `GroupCoordinator.expire`.
        """
        raise NotImplementedError

    def await_commit(self, request: GroupRequest) -> None:
        """Call `GroupCoordinator.expire` after ``offsets.commit.timeout.ms``."""
        raise NotImplementedError

    def forget_append(self, record: int) -> None:
        """Wait no longer for followers to replicate a record."""
        raise NotImplementedError

    def answer_commit(self, request: OffsetCommitRequest, error: str, base_offset: int) -> None:
        """Answer a commit, of which the record is at an offset (-1 with an error)."""
        raise NotImplementedError

    def answer_fetch(self, request: OffsetFetchRequest, error: str, commit: OffsetCommit | None) -> None:
        """Answer a request for the committed offset."""
        raise NotImplementedError

    def run_later(self, task: Callable[[int], None], epoch: int) -> None:
        """Call a task with an epoch, after those that wait already."""
        raise NotImplementedError

    def partition(self) -> Partition | None:
        """The broker's replica of the offsets partition."""
        raise NotImplementedError

    def reached(self, probe: int) -> None:
        """Note a probe."""
        raise NotImplementedError

    def state_changed(self, state: str) -> None:
        """Note the coordinator's new state, `EMPTY` for one that is `ACTIVE` without a load."""
        raise NotImplementedError


class _Deferred:
    """An answer that waits for the HW."""

    __slots__ = ("commit", "end", "request")

    def __init__(self, end: int, request: GroupRequest, commit: OffsetCommit | None) -> None:
        self.end = end
        self.request = request
        self.commit = commit


class GroupCoordinator:
    """See the module.

    Kafka: GroupCoordinator#doCommitOffsets (0.10.2-3.9), GroupMetadataManager#storeOffsets (1.1-3.9),
    CoordinatorRuntime (3.9-4.4), OffsetMetadataManager (3.9-4.4).

    Attributes:
        state: `INITIAL`, `LOADING`, `ACTIVE` or `FAILED`.
        epoch: leader epoch of the newest load or unload.
    """

    __slots__ = (
        "_appending",
        "_cache",
        "_committed",
        "_decide",
        "_deferred",
        "_elected",
        "_has_followed",
        "_host",
        "_offsets",
        "_pending",
        "_places",
        "_written",
        "epoch",
        "state",
    )

    def __init__(self, decide: Decisions, host: CoordinatorHost, offsets: CommittedOffsets) -> None:
        self._decide = decide
        self._host = host
        self._offsets = offsets
        self.state = INITIAL
        self.epoch = -1
        self._elected = -1
        self._has_followed = False
        """Whether the broker has followed another leader since the last load."""
        self._cache: dict[str, OffsetCommit] = {}
        """Partition -> the commit that is answered."""
        self._places: dict[str, int] = {}
        """Partition -> the offset of that commit's record."""
        self._pending: dict[str, OffsetCommit] = {}
        """To 3.9: partition -> the last commit that is being replicated."""
        self._appending: dict[int, GroupRequest] = {}
        """Record -> the request that waits for it to be appended, or with acks=all to be replicated."""
        self._deferred: list[_Deferred] = []
        self._written = self._committed = 0
        """From 4.0 on: the end of the log that the memory has, and how much of it the HW has passed."""

    # Leadership.

    def elected(self, epoch: int) -> None:
        """The broker leads the partition in an epoch: load. Kafka: GroupCoordinator#handleGroupImmigration
        (0.10.2-2.0), GroupMetadataManager#scheduleLoadGroupAndOffsets (2.0-3.9),
        CoordinatorRuntime#scheduleLoadOperation (3.9-4.4).
        """
        if epoch > self._elected:
            self._elected = epoch
            self._decide.replays_offsets.note()
            if self.state in (INITIAL, FAILED) and self._decide.replays_offsets.answer:
                self.state = LOADING
            self._host.run_later(self.load, epoch)

    def resigned(self, epoch: int) -> None:
        """The broker no longer leads: unload. Kafka: GroupCoordinator#handleGroupEmigration (0.10.2-2.0),
        GroupMetadataManager#removeGroupsForPartition (0.10.2-3.9),
        CoordinatorRuntime#scheduleUnloadOperation (3.9-4.4).
        """
        if self._elected >= 0:
            self._has_followed = True
            self._host.run_later(self.unload, epoch)

    def load(self, epoch: int) -> None:
        """Read the log up to its end, beyond the HW. Rule ``stopped_load`` decides what becomes of a coordinator that
        no longer leads when it begins.

        Kafka: GroupMetadataManager#doLoadGroupsAndOffsets (2.0-3.9), CoordinatorLoaderImpl#doLoad (3.9-4.4).
        """
        if epoch < self.epoch:
            return
        self.epoch = epoch
        partition = self._host.partition()
        replays = self._decide.replays_offsets.answer
        if self.state == ACTIVE and (replays or self._cache):
            return
        if partition is None or not partition.is_leader:
            self._host.reached(probes.LOAD_STOPPED)
            fails = self._decide.stopped_load_fails.yes()
            self.state = FAILED if fails else ACTIVE
            self._host.state_changed(FAILED if fails else EMPTY)
            return
        log = partition.log
        for batch in log.between(log.log_start, log.leo):
            commit = self._offsets.records.get(batch.first_id)
            if commit is not None and commit.name:
                self._cache[commit.name] = commit
                self._places[commit.name] = batch.base_offset
        self._has_followed = False
        self._written, self._committed = log.leo, min(partition.hw, log.leo)
        if partition.hw < log.leo:
            self._host.reached(probes.LOADED_ABOVE_HW)
        self.state = ACTIVE
        self._host.state_changed(ACTIVE)

    def unload(self, epoch: int) -> None:
        """Forget everything, unless a newer epoch was loaded since. Kafka: GroupMetadataManager#removeGroupsAndOffsets
        (3.9), CoordinatorRuntime.CoordinatorContext#unload (3.9-4.4).
        """
        if epoch != NO_EPOCH_GIVEN and epoch < self.epoch:
            return
        self.epoch = max(epoch, self.epoch)
        if self.state != INITIAL:
            self._host.state_changed(INITIAL)
        self.state = INITIAL
        self._forget()

    def _forget(self) -> None:
        self._cache.clear()
        self._places.clear()
        self._pending.clear()
        self._written = self._committed = 0
        deferred, self._deferred = self._deferred, []
        for one in deferred:
            self._answer(one.request, NOT_COORDINATOR)

    def _error(self) -> str:
        """Kafka: GroupCoordinator#validateGroupStatus (2.0-3.9), CoordinatorRuntime#withActiveContextOrThrow
        (3.9-4.4).
        """
        if self.state == LOADING:
            return COORDINATOR_LOAD_IN_PROGRESS
        return NONE if self.state == ACTIVE else NOT_COORDINATOR

    # Commits.

    def commit(self, request: OffsetCommitRequest) -> None:
        """Handle a commit: append it. Kafka: GroupMetadataManager#storeOffsets (1.1-3.9),
        OffsetMetadataManager#commitOffset (3.9-4.4).
        """
        commit = request.commit
        error = self._error()
        if error:
            self._host.answer_commit(request, error, -1)
            return
        if not self._decide.replays_offsets.answer:
            self._pending[commit.name] = commit
        self._append(commit, request)

    def _append(self, commit: OffsetCommit, request: GroupRequest) -> None:
        self._offsets.records[commit.record] = commit
        self._appending[commit.record] = request
        self._host.append(commit.record, waits=not self._decide.replays_offsets.answer)

    def appended(self, record: int, error: str, base_offset: int) -> None:
        """A record was appended, with acks=all replicated, or refused.

        Kafka: GroupMetadataManager#createPutCacheCallback (3.9),
        CoordinatorRuntime.CoordinatorContext#flushCurrentBatch (3.9-4.4).
        """
        request = self._appending.pop(record, None)
        if request is None:
            return
        commit = self._offsets.records[record]
        if self._decide.replays_offsets.answer:
            self._appended_early(request, commit, error, base_offset)
            return
        was_staged = commit.name in self._pending
        if was_staged and self._pending[commit.name] is commit:
            del self._pending[commit.name]
        if error:
            self._answer(request, COMMIT_ERRORS.get(error, error))
            return
        if was_staged and self.state == ACTIVE and base_offset > self._places.get(commit.name, -1):
            self._cache[commit.name] = commit
            self._places[commit.name] = base_offset
        self._answer(request, NONE, self._confirmed(request), base_offset)

    def waiting_for(self, record: int) -> GroupRequest | None:
        """The request that waits for a record to be appended, or with acks=all to be replicated."""
        return self._appending.get(record)

    def _appended_early(self, request: GroupRequest, commit: OffsetCommit, error: str, base_offset: int) -> None:
        """From 4.0 on: the leader has appended a record, which the HW may not have passed."""
        if error:
            self._answer(request, COMMIT_ERRORS.get(error, error))
            return
        if base_offset != self._written:  # The memory is not that of the log: load it again.
            self._forget()
            self.state = LOADING
            self._host.run_later(self.load, self.epoch)
            self._answer(request, NOT_COORDINATOR)
            return
        if commit.name:
            self._cache[commit.name] = commit
        self._written = base_offset + 1
        self._defer(request, self._confirmed(request))

    def _defer(self, request: GroupRequest, commit: OffsetCommit | None) -> None:
        """Answer when the HW has passed what the memory has now. Kafka: DeferredEventQueue#add (3.9-4.4)."""
        self._deferred.append(_Deferred(self._written, request, commit))
        self._host.await_commit(request)

    def hw_moved(self, hw: int, *, leads: bool) -> None:
        """The HW of the broker's replica rose: from 4.0 on, answer what waited for it. A HW that the memory cannot have
        reached changes nothing: Kafka logs an exception.

        Rule ``coordinator_hw`` decides on the HW of a follower, whose log may have lost what the coordinator wrote, and
        of a leader that has followed since.
        Kafka: CoordinatorRuntime.HighWatermarkListener#onHighWatermarkUpdated (3.9-4.4),
        SnapshottableCoordinator#updateLastCommittedOffset (3.9-4.4).
        """
        if self.state != ACTIVE or hw <= self._committed or not self._decide.replays_offsets.answer:
            return
        leads = leads and not self._has_followed
        if not leads and hw <= self._written and self._decide.ignores_follower_hw.yes():
            return
        if leads:
            self._written = max(self._written, hw)  # The testbed's own write proves convergence.
        if hw > self._written:
            return
        self._committed = hw
        deferred = self._deferred
        while deferred and deferred[0].end <= hw:
            one = deferred.pop(0)
            if not leads:
                self._host.reached(probes.COMMITTED_BY_FOLLOWER)
            self._answer(one.request, NONE, one.commit, one.end - 1)

    def expire(self, request: GroupRequest) -> None:
        """A request waited for ``offsets.commit.timeout.ms``. Its record stays in the log. Kafka:
        DelayedProduce#onExpiration, CoordinatorRuntime.OperationTimeout (3.9-4.4).
        """
        for place, one in enumerate(self._deferred):
            if one.request is request:
                del self._deferred[place]
                is_fetch = isinstance(request, OffsetFetchRequest)
                self._answer(request, NOT_COORDINATOR if is_fetch else COORDINATOR_NOT_AVAILABLE)
                return
        for record, waiting in self._appending.items():
            if waiting is request:
                self._host.forget_append(record)
                self.appended(record, REQUEST_TIMED_OUT, -1)
                return

    # Fetches.

    def fetch(self, request: OffsetFetchRequest) -> None:
        """Answer the committed offset. Kafka: GroupMetadataManager#getOffsets (0.10.2-3.9),
        GroupCoordinatorService#fetchOffsets (3.9-4.4).

        Rule ``offset_fetch`` decides whether the coordinator confirms first that it still leads.
        """
        error = self._error()
        if error:
            self._host.answer_fetch(request, error, None)
            return
        name = request.name
        if name in self._pending and self._decide.refuses_unstable.yes():
            self._host.answer_fetch(request, UNSTABLE_OFFSET_COMMIT, None)
        elif self._decide.confirms_fetches.yes():
            self._append(OffsetCommit(next(self._offsets.ids), ""), request)
        elif self._decide.replays_offsets.answer and self._committed < self._written:
            self._defer(request, self._cache.get(name))
        else:
            self._host.answer_fetch(request, NONE, self._cache.get(name))

    def _confirmed(self, request: GroupRequest) -> OffsetCommit | None:
        """What is answered to a fetch that a record has confirmed."""
        return self._cache.get(request.name) if isinstance(request, OffsetFetchRequest) else None

    def _answer(
        self, request: GroupRequest, error: str, commit: OffsetCommit | None = None, base_offset: int = -1
    ) -> None:
        if isinstance(request, OffsetFetchRequest):
            self._host.answer_fetch(request, NOT_COORDINATOR if error == REQUEST_TIMED_OUT else error, commit)
        else:
            self._host.answer_commit(request, error, base_offset)
