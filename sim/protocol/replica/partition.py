"""A partition on one broker: leading or following, the ISR, the high watermark, writes that wait for it.

Kafka classes: cluster.Partition, cluster.Replica, DelayedProduce. Sources of the rules are in `sim.protocol.rules`.
"""

from __future__ import annotations

from bisect import insort
from operator import itemgetter
from typing import Final, Protocol

from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.log import producer_state
from sim.protocol.log.epochs import UNDEFINED, UNDEFINED_OFFSET, EpochCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    AGREES,
    DIVERGING_EPOCH,
    EARLIEST,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    LATEST,
    LOG_TRUNCATION,
    NEW_LEADER_ELECTED,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    Diverging,
    LeaderAndIsr,
    ProduceRequest,
)
from sim.protocol.probes import branch
from sim.protocol.replica.replica import Replica, ReplicaHost
from sim.protocol.rules import Rules

UNKNOWN_LEO: Final = -1
UNREGISTERED: Final = -1
NEVER_US: Final = -(1 << 62)
NO_LEADER: Final = 0
_ROLLED_BACK: Final = frozenset({OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA})
_AWAIT_METADATA: Final = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
        FENCED_LEADER_EPOCH,
        INVALID_UPDATE_VERSION,
        INVALID_REQUEST,
        NEW_LEADER_ELECTED,
    }
)
"""What becomes of an AlterPartition that met these errors (Partition.handleAlterPartitionError); others are retried."""


class PartitionHost(ReplicaHost, Protocol):
    """What a partition asks of its broker."""

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """The leader learnt that a follower has everything below `leo`."""

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """The leader wants another ISR.

        The answer is a call of `Partition.isr_persisted` or `Partition.isr_refused`, now or later. With rule
        ``isr_update=zookeeper-write`` the partition is `Partition.locked` until then, and the host holds back every
        request, reply, LeaderAndIsr and timer that needs it.
        """

    def is_alive(self, broker: int) -> bool:
        """Whether the leader's metadata lists that broker as alive (rule ``isr_eligibility``).

        In KRaft that is one that is neither fenced nor shutting down.
        """

    def registered_epoch(self, broker: int) -> int:
        """Broker epoch of that broker in the leader's metadata, `UNREGISTERED` if it is not there, or fenced.

        KRaftMetadataCache.getAliveBrokerEpoch.
        """

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """A write is done with."""


class FollowerState:
    """What a leader knows of a follower (cluster.Replica).

    Attributes:
        broker: its id.
        broker_epoch: of the registration that sent its last fetch, -1 if unknown.
        leo: its LEO as its last fetch showed it, `UNKNOWN_LEO` before the first in this epoch.
        caught_up_us: when it last had everything (lastCaughtUpTimeMs).
        fetch_us: time of its last fetch.
        leader_leo_at_fetch: the leader's LEO at that time.
        holds_hw: whether the HW waits for it: member of the ISR in memory, or of a larger one proposed (maximal ISR).
        in_isr: member of the ISR in memory.
    """

    __slots__ = (
        "broker",
        "broker_epoch",
        "caught_up_us",
        "fetch_us",
        "holds_hw",
        "in_isr",
        "leader_leo_at_fetch",
        "leo",
    )

    def __init__(self, broker: int, now_us: int, *, in_isr: bool) -> None:
        self.broker = broker
        self.broker_epoch = NO_BROKER_EPOCH
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

    Attributes:
        isr: the ISR that was last persisted, as far as this broker knows.
        pending: the ISR that it proposed and that is neither persisted nor given up, () without one.
        agrees: the last field of an answer to a fetch that shows no divergence (see `messages.FetchResult`).
        checks_broker_epochs: whether a follower's fetch is compared with its registration (rule ``stale_fetch``).
        locked: a write of the ISR is under way, and nothing of the partition may move (leaderIsrUpdateLock).
        delayed: writes that wait for the HW: (HW needed, request, base offset), in order.
        epoch_start: LEO when the leader epoch began.
        process: the broker.
    """

    __slots__ = (
        "_answers_epochs",
        "_asks_controller",
        "_checks_alive",
        "_checks_registration",
        "_compares_last_epoch",
        "_dedups",
        "_epoch_at_election",
        "_fences_clients",
        "_fences_fetches",
        "_fences_truncation",
        "_guards_latest",
        "_holds_isr",
        "_hw_needs_epoch",
        "_hw_needs_min_isr",
        "_join_epoch_start",
        "_lag_us",
        "_names_epochs",
        "agrees",
        "broker",
        "checks_broker_epochs",
        "delayed",
        "epoch_start",
        "followers",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "locked",
        "min_insync_replicas",
        "partition_epoch",
        "pending",
        "process",
        "replicas",
    )

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
    ) -> None:
        super().__init__(name, log, epochs, hw, rules, host)
        self.process = host
        self.broker = broker
        self.min_insync_replicas = min_insync_replicas
        self._lag_us = lag_us
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.epoch_start = 0
        self.followers: dict[int, FollowerState] = {}
        self.delayed: list[tuple[int, ProduceRequest, int]] = []
        self.pending: tuple[int, ...] = ()
        self.locked = False
        self._epoch_at_election = rules.epoch_recorded_at == "election"
        self._join_epoch_start = rules.isr_join == "leader-epoch-start"
        self._asks_controller = rules.isr_update == "alter-partition"
        # What a leader writes to ZooKeeper is checked there; its own metadata may be stale for as long as nothing else
        # changes, since the last UpdateMetadata that it hears may be a late copy of an older one.
        self._checks_alive = rules.isr_eligibility == "alive" or (
            rules.isr_eligibility == "registered" and self._asks_controller
        )
        self._checks_registration = rules.isr_eligibility == "registered" and self._asks_controller
        self._hw_needs_min_isr = rules.hw_needs_min_isr == "yes"
        self._holds_isr = rules.isr_floor == "min-isr"
        self._guards_latest = rules.list_offsets_guard == "yes"
        self._hw_needs_epoch = rules.hw_needs_epoch == "yes"
        self._fences_fetches = rules.fetch_fencing == "leader-epoch"
        self._compares_last_epoch = rules.fetch_fencing == "last-epoch"
        self._fences_truncation = rules.truncation_fencing == "yes"
        self._fences_clients = rules.list_offsets_fencing == "yes"
        self.agrees: Diverging = AGREES if rules.follower_truncation == "on-fetch" else None
        self._names_epochs = rules.names_epochs
        self._answers_epochs = self._names_epochs or rules.follower_truncation == "leader-epoch"
        self.checks_broker_epochs = rules.stale_fetch == "refused"
        self._dedups = rules.producer_dedup == "yes"

    # Leadership.

    def become_leader(self, decision: LeaderAndIsr, now_us: int) -> None:
        """Take a LeaderAndIsr that names this broker (Partition.makeLeader).

        A newer leader epoch resets what is known of the followers; their LEOs are kept only if this broker led before
        (Replica.resetReplicaState), so that a new leader's HW is frozen until every ISR member has fetched from it.
        The local HW stays as it is, however far it lies below what the former leader exposed. Under an equal leader
        epoch, which ZooKeeper's controller never sends, only ISR and assignment are taken, unless they are outdated.
        """
        if self._is_outdated(decision):
            return
        self._adopt(decision)
        isr = decision.isr
        others = [broker for broker in decision.replicas if broker != self.broker]
        if decision.leader_epoch > self.leader_epoch:
            self.leader_epoch = decision.leader_epoch
            self.epoch_start = self.log.leo
            self.process.reached(branch(self.rules, "epoch_recorded_at"))
            if self._epoch_at_election:
                self.epochs.assign(self.leader_epoch, self.log.leo)
            known = self.followers if self.is_leader else {}
            self.followers = {broker: FollowerState(broker, now_us, in_isr=broker in isr) for broker in others}
            for broker, follower in self.followers.items():
                state = known.get(broker)
                if state is None:
                    continue
                follower.leo = state.leo
                follower.broker_epoch = state.broker_epoch
                follower.leader_leo_at_fetch = self.log.leo
                follower.fetch_us = now_us if follower.in_isr else NEVER_US
        else:
            known = self.followers
            self.followers = {
                broker: known.get(broker) or FollowerState(broker, now_us, in_isr=False) for broker in others
            }
            for broker, follower in self.followers.items():
                follower.in_isr = follower.holds_hw = broker in isr
        self.is_leader = True
        self.advance_hw(now_us)

    def become_follower(self, decision: LeaderAndIsr) -> None:
        """Take a LeaderAndIsr that names another leader, or none (Partition.makeFollower).

        Waiting writes are refused: whether their records survive is open. Truncation is the fetcher's business.
        """
        if self._is_outdated(decision):
            return
        self._adopt(decision)
        self.leader_epoch = max(self.leader_epoch, decision.leader_epoch)
        self._resign()

    def stop(self) -> None:
        """Take a StopReplica that deletes the partition here (Partition.delete); the log is the host's to delete.

        One that deletes nothing only stops the fetcher.
        """
        self.leader = NO_LEADER
        self.isr = self.pending = ()
        self.locked = False
        self._resign()

    def _resign(self) -> None:
        if self.is_leader:
            self.process.reached(probes.LEADER_RESIGNS)
        self.is_leader = False
        self.followers = {}
        delayed, self.delayed = self.delayed, []
        if delayed:
            self.process.reached(probes.WRITES_DROPPED)
        for _, request, _ in delayed:
            self.process.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)

    def _is_outdated(self, decision: LeaderAndIsr) -> bool:
        return decision.leader_epoch <= self.leader_epoch and decision.partition_epoch < self.partition_epoch

    def _adopt(self, decision: LeaderAndIsr) -> None:
        self.leader = decision.leader
        self.isr = decision.isr
        self.pending = ()
        self.locked = False
        self.replicas = decision.replicas
        self.partition_epoch = decision.partition_epoch

    def check_epoch(self, current_leader_epoch: int) -> str:
        """Compare the epoch in a request with ours (Partition.checkCurrentLeaderEpoch); `NO_EPOCH` always passes."""
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return NONE
        return FENCED_LEADER_EPOCH if current_leader_epoch < self.leader_epoch else UNKNOWN_LEADER_EPOCH

    # Writes.

    def produce(self, request: ProduceRequest, now_us: int) -> None:
        """Append a client's batch and answer it now or when the HW has passed it (ReplicaManager.appendRecords).

        acks=all is refused before the append while the ISR is below ``min.insync.replicas``. Of an idempotent producer
        what the log holds already is not appended again, and what leaves a gap is refused.
        """
        if not self.is_leader:
            self.process.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)
            return
        acks_all = request.acks == -1
        if acks_all and len(self.isr) < self.min_insync_replicas:
            self.process.answer_produce(request, NOT_ENOUGH_REPLICAS, -1)
            return
        sequence = request.sequence
        if self._dedups and sequence[0] >= 0:
            error, known = producer_state.check(self.log.batches, sequence, request.count)
            if error or known is not None:
                self._answer_known(request, error, known)
                return
        elif sequence[0] >= 0:
            self.process.reached(branch(self.rules, "producer_dedup"))
        batch = self.append_new(request.first_id, request.count, self.leader_epoch, sequence)
        if acks_all:
            self.delayed.append((batch.last_offset + 1, request, batch.base_offset))
        elif request.acks == 1:
            self.process.answer_produce(request, NONE, batch.base_offset)
        if len(self.isr) == 1:
            self.advance_hw(now_us)

    def _answer_known(self, request: ProduceRequest, error: str, known: Batch | None) -> None:
        """Refuse a batch, or answer a repetition as if it had been appended now: acks=all waits for the HW."""
        reached = self.process.reached
        reached(branch(self.rules, "producer_dedup"))
        if known is None:
            reached(probes.SEQUENCE_REFUSED)
            self.process.answer_produce(request, error, -1)
            return
        reached(probes.DEDUP_HIT)
        if known.leader_epoch < self.leader_epoch:
            reached(probes.DEDUP_REBUILT)
        if request.acks == -1:
            insort(self.delayed, (known.last_offset + 1, request, known.base_offset), key=itemgetter(0))
            self._complete_writes()
        else:
            self.process.answer_produce(request, NONE, known.base_offset)

    def _complete_writes(self) -> None:
        needed = self.min_insync_replicas
        enough = len(self.isr) >= needed or len(self.pending) >= needed
        if not enough and not self._hw_needs_min_isr:
            self.process.reached(branch(self.rules, "hw_needs_min_isr"))
        delayed = self.delayed
        while delayed and delayed[0][0] <= self.hw:
            _, request, base_offset = delayed.pop(0)
            if enough:
                self.process.answer_produce(request, NONE, base_offset)
            else:
                self.process.answer_produce(request, NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)

    # Replication.

    def check_fetch(
        self,
        offset: int,
        current_leader_epoch: int,
        last_epoch: int = NO_EPOCH,
        client: bool = False,
    ) -> str:
        """Whether a fetch may be served: leader epoch, leadership, range, then the epoch of the last record.

        Returns:
            An error, or `DIVERGING_EPOCH`: then `diverging` says what to answer, and the fetch teaches nothing
            (Partition.readRecords).
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch) and (
            self._fences_clients if client else self._fences_fetches
        ):
            self.process.reached(branch(self.rules, "list_offsets_fencing" if client else "fetch_fencing"))
            return self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            return NOT_LEADER_OR_FOLLOWER
        if last_epoch != NO_EPOCH and self.agrees is not None:
            return self._check_divergence(offset, last_epoch)
        log = self.log
        if not log.log_start <= offset <= log.leo:
            return OFFSET_OUT_OF_RANGE
        if self._compares_last_epoch and last_epoch != NO_EPOCH:
            own = self.epochs.epoch_for_offset(offset - 1)
            if own is not None and own != last_epoch:
                self.process.reached(branch(self.rules, "fetch_fencing"))
                return LOG_TRUNCATION
        return NONE

    def _check_divergence(self, offset: int, last_epoch: int) -> str:
        """Compare the epoch of the last record below a fetch offset with this log.

        A fetch from below the log start is out of range, diverging or not; one from beyond the LEO diverges.
        """
        log = self.log
        epochs = self.epochs.epochs
        if epochs and epochs[-1] == last_epoch and log.log_start <= offset <= log.leo:
            return NONE
        found, end_offset = self.epochs.end_offset_for(last_epoch, log.leo)
        if end_offset == UNDEFINED_OFFSET or offset < log.log_start:
            return OFFSET_OUT_OF_RANGE
        if found < last_epoch or end_offset < offset:
            self.process.reached(branch(self.rules, "follower_truncation"))
            return DIVERGING_EPOCH
        return NONE

    def diverging(self, last_epoch: int) -> tuple[int, int]:
        """What a fetch is answered whose last record is of an epoch that ends elsewhere here: (epoch, end offset)."""
        return self.epochs.end_offset_for(last_epoch, self.log.leo)

    def is_stale(self, follower: int, broker_epoch: int) -> bool:
        """Whether a follower's fetch is of an earlier registration than the leader's metadata shows.

        Such a fetch is answered NOT_LEADER_OR_FOLLOWER and teaches nothing (Replica.updateFetchStateOrThrow,
        KAFKA-15221); asked only with rule ``stale_fetch=refused``, after `check_fetch`.
        """
        if broker_epoch == NO_BROKER_EPOCH or self.process.registered_epoch(follower) <= broker_epoch:
            return False
        self.process.reached(branch(self.rules, "stale_fetch"))
        return True

    def follower_fetched(self, follower: int, broker_epoch: int, offset: int, leader_epoch: int, now_us: int) -> None:
        """Learn from a fetch that passed `check_fetch` that the follower has everything below its fetch offset.

        Replica.updateFetchState, then ISR expansion, then the HW (Partition.updateFollowerFetchState). With rule
        ``hw_needs_epoch`` a follower of another leader epoch teaches nothing.
        """
        state = self.followers.get(follower)
        if state is None or (leader_epoch != self.leader_epoch and self._ignores_other_epoch()):
            return
        leader_leo = self.log.leo
        if offset >= leader_leo:
            state.caught_up_us = now_us
        elif offset >= state.leader_leo_at_fetch >= 0:
            state.caught_up_us = max(state.caught_up_us, state.fetch_us)
        state.leader_leo_at_fetch = leader_leo
        state.fetch_us = now_us
        state.broker_epoch = broker_epoch
        if offset != state.leo:
            state.leo = offset
            self.process.replicated(self, follower, offset)
            if state.in_isr or not self._maybe_expand(state):
                self.advance_hw(now_us)
        elif not state.in_isr:
            self._maybe_expand(state)

    def knows(self, follower: int, offset: int, leader_epoch: int) -> bool:
        """Whether a fetch that shows this offset could tell the leader only that the follower is still there."""
        state = self.followers.get(follower)
        if state is None or (self._hw_needs_epoch and leader_epoch != self.leader_epoch):
            return False
        return state.in_isr and state.leo == offset == self.log.leo

    def refetched(self, follower: int, at_us: int) -> None:
        """Such a fetch came, last at that time."""
        state = self.followers[follower]
        state.caught_up_us = state.fetch_us = at_us
        state.leader_leo_at_fetch = state.leo

    def _ignores_other_epoch(self) -> bool:
        """Whether a follower of another leader epoch, which no fence has kept away, teaches nothing."""
        self.process.reached(probes.FETCH_OTHER_EPOCH)
        if not self._fences_fetches:
            self.process.reached(branch(self.rules, "fetch_fencing"))
        elif self.rules.session_epoch == "first-fetch":
            self.process.reached(branch(self.rules, "session_epoch"))
        self.process.reached(branch(self.rules, "hw_needs_epoch"))
        return self._hw_needs_epoch

    def advance_hw(self, now_us: int) -> None:
        """Raise the HW to the smallest LEO among the leader, the maximal ISR and followers that are catching up.

        Partition.maybeIncrementLeaderHW. It never lowers the HW. Of followers that are catching up, only those count
        that may join the ISR.
        """
        if self._hw_needs_min_isr and len(self.isr) < self.min_insync_replicas:
            self.process.reached(branch(self.rules, "hw_needs_min_isr"))
            return
        candidate = self.log.leo
        for state in self.followers.values():
            if state.leo < candidate and (
                state.holds_hw or (now_us - state.caught_up_us <= self._lag_us and self._may_join(state))
            ):
                candidate = state.leo
        if candidate > self.hw and self.set_hw(candidate):
            self._complete_writes()

    def settings_changed(self, now_us: int) -> None:
        """`min_insync_replicas` has another value: look at the HW and at waiting writes again."""
        if self.is_leader:
            self.advance_hw(now_us)

    # ISR.

    def _may_join(self, state: FollowerState) -> bool:
        """Whether a follower is eligible (Partition.isReplicaIsrEligible)."""
        if not self._checks_alive:
            return True
        return self.process.is_alive(state.broker) and self._is_registered(state)

    def _is_registered(self, state: FollowerState) -> bool:
        """Whether the registration that fetched is the one in the leader's metadata (KIP-903)."""
        if not self._checks_registration:
            return True
        if state.leo == UNKNOWN_LEO:
            return False
        return state.broker_epoch in (NO_BROKER_EPOCH, self.process.registered_epoch(state.broker))

    def broker_epochs(self, isr: tuple[int, ...], own: int) -> dict[int, int]:
        """Broker epochs of the members of a proposed ISR, as an AlterPartition names them (KIP-903).

        That of each follower's last fetch, -1 of those that have not fetched from this leader; `own` for the leader.
        """
        epochs = {broker: state.broker_epoch for broker, state in self.followers.items()}
        epochs[self.broker] = own
        return {broker: epochs.get(broker, NO_BROKER_EPOCH) for broker in isr}

    def _maybe_expand(self, state: FollowerState) -> bool:
        """Propose an ISR with a follower that is far enough (Partition.maybeExpandIsr).

        Returns:
            Whether the partition is locked now.
        """
        if self.pending or state.leo < self.hw:
            return False
        if state.leo < self.epoch_start:
            self.process.reached(branch(self.rules, "isr_join"))
            if self._join_epoch_start:
                return False
        if not self.process.is_alive(state.broker):
            self.process.reached(branch(self.rules, "isr_eligibility"))
            if self._checks_alive:
                return False
        if not self._is_registered(state):
            self.process.reached(branch(self.rules, "isr_eligibility"))
            return False
        members = {*self.isr, state.broker}
        return self._propose(tuple(broker for broker in self.replicas if broker in members))

    def shrink_isr(self, now_us: int) -> None:
        """Propose an ISR without members that lag (Partition.maybeShrinkIsr); called every half lag time.

        With rule ``isr_floor=min-isr`` only as many leave as there are too many, those first that lag for longest.
        """
        if self.pending:
            return
        lagging = self.out_of_sync(now_us)
        if self._holds_isr and lagging:
            lagging = self._beyond_floor(lagging)
        if lagging:
            self._propose(tuple(broker for broker in self.isr if broker not in lagging))

    def _beyond_floor(self, lagging: tuple[int, ...]) -> tuple[int, ...]:
        spare = max(len(self.isr) - self.min_insync_replicas, 0)
        if spare < len(lagging):
            self.process.reached(branch(self.rules, "isr_floor"))
        return tuple(sorted(lagging, key=lambda broker: self.followers[broker].caught_up_us)[:spare])

    @property
    def has_laggards(self) -> bool:
        """Whether an ISR member misses something, or the ISR is being changed."""
        leo = self.log.leo
        return bool(self.pending) or any(state.in_isr and state.leo != leo for state in self.followers.values())

    def out_of_sync(self, now_us: int) -> tuple[int, ...]:
        """ISR members that miss something, and have missed something for longer than the lag allows."""
        leo = self.log.leo
        return tuple(
            state.broker
            for state in self.followers.values()
            if state.in_isr and state.leo != leo and now_us - state.caught_up_us > self._lag_us
        )

    def _propose(self, isr: tuple[int, ...]) -> bool:
        """Ask for an ISR. Until it is decided the HW waits for members of both (maximal ISR)."""
        self.pending = isr
        self.locked = not self._asks_controller
        self.process.reached(branch(self.rules, "isr_update"))
        for state in self.followers.values():
            state.holds_hw = state.in_isr or state.broker in isr
        self.process.propose_isr(self, isr)
        return self.locked

    def isr_persisted(
        self, isr: tuple[int, ...], partition_epoch: int, now_us: int, *, leader_epoch: int = NO_EPOCH
    ) -> None:
        """The proposed ISR is persisted: it counts from now on, and may let the HW move (KAFKA-13091).

        Ignored if something newer came first: other metadata, a newer partition epoch or, where the answer of a
        controller names one, another leader epoch (Partition.handleAlterPartitionUpdate). An equal partition epoch is
        that of a change which changed nothing.
        """
        if not self.pending or partition_epoch < self.partition_epoch:
            return
        if leader_epoch not in (NO_EPOCH, self.leader_epoch):
            return
        self.isr = isr
        self.partition_epoch = partition_epoch
        self._end_proposal()
        self.advance_hw(now_us)

    def isr_refused(self, error: str, now_us: int) -> None:
        """The proposed ISR is not persisted.

        A failed ZooKeeper write leaves everything as it was ("skip updating ISR"); with a stale partition epoch it will
        fail again until the next LeaderAndIsr (KAFKA-2729). Of the controller's errors some undo the proposal, most
        leave it pending until newer metadata comes, and unknown ones have it sent again (KIP-497).
        """
        if not self.pending:
            return
        if not self._asks_controller:
            self._end_proposal()
            self.advance_hw(now_us)
        elif error in _ROLLED_BACK:
            self._end_proposal()
        elif error not in _AWAIT_METADATA:
            self.process.propose_isr(self, self.pending)

    def _end_proposal(self) -> None:
        self.pending = ()
        self.locked = False
        isr = self.isr
        for state in self.followers.values():
            state.in_isr = state.holds_hw = state.broker in isr

    # Reads.

    def end_offset_for(self, current_leader_epoch: int, epoch: int, *, with_epoch: bool) -> tuple[str, int, int]:
        """Answer OffsetsForLeaderEpoch: (error, epoch, end offset), -1 where undefined.

        Version 0 (KIP-101) names no epoch, nor does a leader that does not know version 1. The epoch check comes before
        the leadership check.
        """
        error = self.check_epoch(current_leader_epoch) if self._fences_truncation else NONE
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if not error and not self._answers_epochs:
            error = UNSUPPORTED_VERSION
        if error:
            return error, *UNDEFINED
        found, end_offset = self.epochs.end_offset_for(epoch, self.log.leo)
        return NONE, found if with_epoch and self._names_epochs else -1, end_offset

    def list_offset(self, timestamp: int, current_leader_epoch: int, *, replica: bool) -> tuple[str, int]:
        """Answer ListOffsets: (error, offset). Latest is the LEO for a replica, the HW for a client (KIP-207 guard).

        A time is a record's id: the offset is that of the first record from it on that a client may read, or -1.
        """
        fences = self._fences_fetches if replica else self._fences_clients
        error = self.check_epoch(current_leader_epoch) if fences else NONE
        if error:
            self.process.reached(branch(self.rules, "fetch_fencing" if replica else "list_offsets_fencing"))
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if error:
            return error, -1
        if timestamp == EARLIEST:
            return NONE, self.log.log_start
        if replica:
            return NONE, self.log.leo
        if self.hw < self.epoch_start:
            self.process.reached(branch(self.rules, "list_offsets_guard"))
            if self._guards_latest:
                return OFFSET_NOT_AVAILABLE, -1
        return NONE, self.hw if timestamp == LATEST else self._offset_for_time(timestamp)

    def _offset_for_time(self, timestamp: int) -> int:
        for batch in self.log.batches:
            newest = batch.first_id + batch.count - 1
            if newest >= timestamp:
                offset = max(batch.base_offset + max(timestamp - batch.first_id, 0), self.log.log_start)
                return offset if offset < self.hw else -1
        return -1

    def read_uncommitted(self, offset: int) -> list[Batch]:
        """All batches from the one that contains an offset on, for a follower."""
        return self.log.read(offset) if offset < self.log.leo else []

    def read_committed(self, offset: int) -> list[Batch]:
        """The batches that lie below the HW, from the one that contains an offset on, for a consumer."""
        return self.log.read_below(offset, self.hw)
