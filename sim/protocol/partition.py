"""A partition on one broker: leading or following, the ISR, the high watermark, writes that wait for it.

Kafka classes: cluster.Partition, cluster.Replica, DelayedProduce. Sources of the rules are in `sim.protocol.rules`.
"""

from __future__ import annotations

from typing import Final, Protocol

from sim.protocol.batch import Batch
from sim.protocol.epochs import UNDEFINED, EpochCache
from sim.protocol.log import Log
from sim.protocol.messages import (
    EARLIEST,
    FENCED_LEADER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    LeaderAndIsr,
    ProduceRequest,
)
from sim.protocol.replica import Replica, ReplicaHost
from sim.protocol.rules import Rules

UNKNOWN_LEO: Final = -1
NEVER_US: Final = -(1 << 62)
NO_LEADER: Final = 0


class PartitionHost(ReplicaHost, Protocol):
    """What a partition asks of its broker."""

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """The leader learnt that a follower has everything below `leo`."""

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """The leader wants another ISR; the answer comes as a LeaderAndIsr, or not at all."""

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """A write is done with."""


class FollowerState:
    """What a leader knows of a follower (cluster.Replica).

    Attributes:
        broker: its id.
        incarnation: of its last fetch.
        leo: its LEO as its last fetch showed it, `UNKNOWN_LEO` before the first in this epoch.
        caught_up_us: when it last had everything (lastCaughtUpTimeMs).
        fetch_us: time of its last fetch.
        leader_leo_at_fetch: the leader's LEO at that time.
        holds_hw: whether the HW waits for it: member of the ISR, persisted or proposed (maximal ISR).
        in_isr: member of the persisted ISR.
    """

    __slots__ = (
        "broker",
        "caught_up_us",
        "fetch_us",
        "holds_hw",
        "in_isr",
        "incarnation",
        "leader_leo_at_fetch",
        "leo",
    )

    def __init__(self, broker: int, now_us: int, *, in_isr: bool) -> None:
        self.broker = broker
        self.incarnation = 0
        self.leo = UNKNOWN_LEO
        self.caught_up_us = now_us if in_isr else NEVER_US
        self.fetch_us = NEVER_US
        self.leader_leo_at_fetch = UNKNOWN_LEO
        self.holds_hw = in_isr
        self.in_isr = in_isr


class Partition(Replica):
    """Replica state and leadership of one partition on one broker.

    Args:
        broker: id of the broker.
        name: the partition's name.
        log: its log, as recovery left it.
        epochs: its epoch cache.
        hw: the checkpointed HW (0 without an entry).
        rules: the broker's rules.
        host: the broker.
        min_insync_replicas: effective ``min.insync.replicas``.
        lag_us: ``replica.lag.time.max.ms`` in us.
        isr_retry_us: after which an unanswered ISR change is proposed again.
    """

    __slots__ = (
        "_answers_epochs",
        "_epoch_at_election",
        "_fencing",
        "_guards_latest",
        "_hw_needs_min_isr",
        "_isr_retry_us",
        "_join_epoch_start",
        "_lag_us",
        "_proposed_us",
        "broker",
        "delayed",
        "epoch_start",
        "followers",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
    )

    host: PartitionHost

    def __init__(
        self,
        broker: int,
        name: str,
        log: Log,
        epochs: EpochCache,
        hw: int,
        rules: Rules,
        host: PartitionHost,
        *,
        min_insync_replicas: int,
        lag_us: int,
        isr_retry_us: int,
    ) -> None:
        super().__init__(name, log, epochs, hw, rules, host)
        self.broker = broker
        self.min_insync_replicas = min_insync_replicas
        self._lag_us = lag_us
        self._isr_retry_us = isr_retry_us
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.epoch_start = 0
        self.followers: dict[int, FollowerState] = {}
        self.delayed: list[tuple[int, ProduceRequest, int]] = []
        self._proposed_us = NEVER_US
        self._epoch_at_election = rules.epoch_recorded_at == "election"
        self._join_epoch_start = rules.isr_join == "leader-epoch-start"
        self._hw_needs_min_isr = rules.hw_needs_min_isr == "yes"
        self._guards_latest = rules.list_offsets_guard == "yes"
        self._fencing = rules.fetch_fencing == "leader-epoch"
        self._answers_epochs = rules.follower_truncation != "high-watermark"

    # Leadership.

    def become_leader(self, decision: LeaderAndIsr, now_us: int) -> None:
        """Take a LeaderAndIsr that names this broker (Partition.makeLeader).

        A newer leader epoch resets what is known of the followers; their LEOs are kept only if this broker led before
        (Replica.resetReplicaState), so that a new leader's HW is frozen until every ISR member has fetched from it.
        The local HW stays as it is, however far it lies below what the former leader exposed.
        """
        self._adopt(decision)
        isr = decision.isr
        if decision.leader_epoch > self.leader_epoch:
            self.leader_epoch = decision.leader_epoch
            self.epoch_start = self.log.leo
            if self._epoch_at_election:
                self.epochs.assign(self.leader_epoch, self.log.leo)
            known = self.followers if self.is_leader else {}
            self.followers = {
                broker: FollowerState(broker, now_us, in_isr=broker in isr)
                for broker in decision.replicas
                if broker != self.broker
            }
            for broker, state in known.items():
                follower = self.followers[broker]
                follower.leo = state.leo
                follower.incarnation = state.incarnation
                follower.leader_leo_at_fetch = self.log.leo
                follower.fetch_us = now_us if follower.in_isr else NEVER_US
        else:
            for broker, state in self.followers.items():
                state.in_isr = state.holds_hw = broker in isr
        self.is_leader = True
        self._proposed_us = NEVER_US
        self.advance_hw(now_us)

    def become_follower(self, decision: LeaderAndIsr) -> None:
        """Take a LeaderAndIsr that names another leader, or none (Partition.makeFollower).

        Waiting writes are refused: whether their records survive is open. Truncation is the fetcher's business.
        """
        self._adopt(decision)
        self.leader_epoch = max(self.leader_epoch, decision.leader_epoch)
        self.is_leader = False
        self.followers = {}
        delayed, self.delayed = self.delayed, []
        for _, request, _ in delayed:
            self.host.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)

    def _adopt(self, decision: LeaderAndIsr) -> None:
        self.leader = decision.leader
        self.isr = decision.isr
        self.replicas = decision.replicas
        self.partition_epoch = decision.partition_epoch

    def check_epoch(self, current_leader_epoch: int) -> str:
        """Compare the epoch in a request with ours (Partition.checkCurrentLeaderEpoch); `NO_EPOCH` always passes."""
        if not self._fencing or current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return NONE
        return FENCED_LEADER_EPOCH if current_leader_epoch < self.leader_epoch else UNKNOWN_LEADER_EPOCH

    # Writes.

    def produce(self, request: ProduceRequest, now_us: int) -> None:
        """Append a client's batch and answer it now or when the HW has passed it (ReplicaManager.appendRecords).

        acks=all is refused before the append while the ISR is below ``min.insync.replicas``.
        """
        if not self.is_leader:
            self.host.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)
            return
        acks_all = request.acks == -1
        if acks_all and len(self.isr) < self.min_insync_replicas:
            self.host.answer_produce(request, NOT_ENOUGH_REPLICAS, -1)
            return
        batch = self.append_new(request.first_id, request.count, self.leader_epoch)
        if acks_all:
            self.delayed.append((batch.last_offset + 1, request, batch.base_offset))
        elif request.acks == 1:
            self.host.answer_produce(request, NONE, batch.base_offset)
        if len(self.isr) == 1:
            self.advance_hw(now_us)

    def _complete_writes(self) -> None:
        enough = len(self.isr) >= self.min_insync_replicas
        delayed = self.delayed
        while delayed and delayed[0][0] <= self.hw:
            _, request, base_offset = delayed.pop(0)
            if enough:
                self.host.answer_produce(request, NONE, base_offset)
            else:
                self.host.answer_produce(request, NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)

    # Replication.

    def check_fetch(self, offset: int, current_leader_epoch: int) -> str:
        """Whether a fetch may be served: leadership, epoch, then range (the epoch check comes first)."""
        if self._fencing:
            error = self.check_epoch(current_leader_epoch)
            if error:
                return error
        if not self.is_leader:
            return NOT_LEADER_OR_FOLLOWER
        log = self.log
        if log.log_start <= offset <= log.leo:
            return NONE
        return OFFSET_OUT_OF_RANGE

    def follower_fetched(self, follower: int, incarnation: int, offset: int, now_us: int) -> None:
        """Learn from a fetch that passed `check_fetch` that the follower has everything below its fetch offset.

        Replica.updateFetchState, then ISR expansion, then the HW (Partition.updateFollowerFetchState).
        """
        state = self.followers.get(follower)
        if state is None:
            return
        leader_leo = self.log.leo
        if offset >= leader_leo:
            state.caught_up_us = now_us
        elif offset >= state.leader_leo_at_fetch >= 0:
            state.caught_up_us = max(state.caught_up_us, state.fetch_us)
        state.leader_leo_at_fetch = leader_leo
        state.fetch_us = now_us
        state.incarnation = incarnation
        if offset != state.leo:
            state.leo = offset
            self.host.replicated(self, follower, offset)
            if not state.in_isr:
                self._maybe_expand(state, now_us)
            self.advance_hw(now_us)
        elif not state.in_isr:
            self._maybe_expand(state, now_us)

    def advance_hw(self, now_us: int) -> None:
        """Raise the HW to the smallest LEO among the leader, the maximal ISR and followers that are catching up.

        Partition.maybeIncrementLeaderHW. It never lowers the HW.
        """
        if self._hw_needs_min_isr and len(self.isr) < self.min_insync_replicas:
            return
        candidate = self.log.leo
        for state in self.followers.values():
            if state.leo < candidate and (state.holds_hw or now_us - state.caught_up_us <= self._lag_us):
                candidate = state.leo
        if candidate > self.hw and self.set_hw(candidate):
            self._complete_writes()

    # ISR.

    def _maybe_expand(self, state: FollowerState, now_us: int) -> None:
        if state.leo < self.hw or (self._join_epoch_start and state.leo < self.epoch_start):
            return
        if now_us - self._proposed_us < self._isr_retry_us:
            return
        members = {*self.isr, state.broker}
        self._propose(tuple(broker for broker in self.replicas if broker in members), now_us)

    def shrink_isr(self, now_us: int) -> None:
        """Propose an ISR without members that lag (Partition.maybeShrinkIsr); called every half lag time."""
        leo = self.log.leo
        lagging = {
            state.broker
            for state in self.followers.values()
            if state.in_isr and state.leo != leo and now_us - state.caught_up_us > self._lag_us
        }
        if lagging and now_us - self._proposed_us >= self._isr_retry_us:
            self._propose(tuple(broker for broker in self.isr if broker not in lagging), now_us)

    def _propose(self, isr: tuple[int, ...], now_us: int) -> None:
        """Ask for an ISR. Until it is decided the HW waits for members of both (maximal ISR)."""
        self._proposed_us = now_us
        for state in self.followers.values():
            state.holds_hw = state.in_isr or state.broker in isr
        self.host.propose_isr(self, isr)

    # Reads.

    def end_offset_for(self, current_leader_epoch: int, epoch: int, *, with_epoch: bool) -> tuple[str, int, int]:
        """Answer OffsetsForLeaderEpoch: (error, epoch, end offset), -1 where undefined.

        Version 0 (KIP-101) names no epoch. The epoch check comes before the leadership check.
        """
        error = self.check_epoch(current_leader_epoch)
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if not error and not self._answers_epochs:
            error = UNSUPPORTED_VERSION
        if error:
            return error, *UNDEFINED
        found, end_offset = self.epochs.end_offset_for(epoch, self.log.leo)
        return NONE, found if with_epoch else -1, end_offset

    def list_offset(self, timestamp: int, current_leader_epoch: int, *, replica: bool) -> tuple[str, int]:
        """Answer ListOffsets: (error, offset). Latest is the LEO for a replica, the HW for a client (KIP-207 guard)."""
        error = self.check_epoch(current_leader_epoch)
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if error:
            return error, -1
        if timestamp == EARLIEST:
            return NONE, self.log.log_start
        if replica:
            return NONE, self.log.leo
        if self._guards_latest and self.hw < self.epoch_start:
            return OFFSET_NOT_AVAILABLE, -1
        return NONE, self.hw

    def read_uncommitted(self, offset: int) -> list[Batch]:
        """All batches from the one that contains an offset on, for a follower."""
        return self.log.read(offset) if offset < self.log.leo else []

    def read_committed(self, offset: int) -> list[Batch]:
        """The batches that lie below the HW, from the one that contains an offset on, for a consumer."""
        hw = self.hw
        batches = self.log.read(offset) if offset < hw else []
        while batches and batches[-1].last_offset >= hw:
            batches.pop()
        return batches
