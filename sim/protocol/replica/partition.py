"""A partition on one broker: leadership, writes, followers' fetches, and the high watermark.

`sim.protocol.rules` gives the source of each rule.
"""

from __future__ import annotations

from typing import Final

from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log import producer_state_manager
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    EARLIEST,
    LATEST,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_PRODUCER_ID,
    LeaderAndIsr,
    Position,
    ProduceRequest,
)
from sim.protocol.replica import plugin_points
from sim.protocol.replica.delayed_produce import DelayedProduces
from sim.protocol.replica.followers import Followers, FollowerState
from sim.protocol.replica.isr import AWAIT_METADATA, ROLLED_BACK, IsrMembership, PartitionState
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.readable_replica import ReadableReplica

NO_LEADER: Final = 0


class Partition(ReadableReplica):
    """Replica state and leadership of one partition on one broker. Kafka: cluster.Partition.

    Args:
        broker: id of the broker.
        name: the partition's name.
        log: its log, as recovery left it.
        epochs: its epoch cache.
        hw: the checkpointed HW (0 without an entry).
        decide: the broker's rules.
        host: receives callbacks.
        min_insync_replicas: ``min.insync.replicas``.
        lag_us: ``replica.lag.time.max.ms`` in us.

    Attributes:
        state: the ISR and its pending change.
        followers: the other replicas, while this broker leads.
        membership: decides which of them may join the ISR.
        delayed: writes that wait for the HW.
        configured_min_isr: ``min.insync.replicas``, as last set.
        min_insync_replicas: effective ``min.insync.replicas`` (rules ``min_isr_cap`` and ``isr_response``).
        answered_min_isr: that of the controller, with an ISR which the leader knows from a response to AlterPartition
            and has not replayed; 0 otherwise.
        process: see `host`.
    """

    __slots__ = (
        "answered_min_isr",
        "broker",
        "configured_min_isr",
        "delayed",
        "followers",
        "leader",
        "membership",
        "min_insync_replicas",
        "partition_epoch",
        "process",
        "replicas",
        "state",
    )

    def __init__(
        self,
        broker: int,
        name: str,
        log: Log,
        epochs: LeaderEpochFileCache,
        hw: int,
        decide: Decisions,
        host: PartitionHost,
        *,
        min_insync_replicas: int,
        lag_us: int,
    ) -> None:
        super().__init__(name, log, epochs, hw, decide, host)
        self.process = host
        self.broker = broker
        self.min_insync_replicas = self.configured_min_isr = min_insync_replicas
        self.answered_min_isr = 0
        self.leader = NO_LEADER
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.state = PartitionState()
        self.followers = Followers(lag_us, decide)
        self.delayed = DelayedProduces(host)
        self.membership = IsrMembership(decide, host)

    # Leadership.

    def become_leader(self, decision: LeaderAndIsr, now_us: int) -> None:
        """Apply a LeaderAndIsr with this broker as leader.

        A newer leader epoch resets the followers' state. Their LEOs are kept only if this broker leads already (rule
        ``same_leader``: never in early releases), so the HW of a new leader does not move until every ISR member has
        fetched from it. Until then it may be far below the HW that the former leader exposed. A broker that replays two
        elections together leads already, although another broker led between: rule ``skipped_epoch``. With an equal
        leader epoch, which ZooKeeper's controller never sends, only ISR and assignment are applied, unless they are
        outdated.
        Kafka: Partition#makeLeader.
        """
        if self._is_outdated(decision):
            return
        self._adopt(decision)
        others = [broker for broker in decision.replicas if broker != self.broker]
        if decision.leader_epoch > self.leader_epoch:
            leads = self.is_leader
            if leads and decision.leader_epoch > self.leader_epoch + 1 and self.decide.forgets_at_skipped_epoch.yes():
                leads = False
            if leads and not self.decide.same_leader_keeps_leos.yes():
                leads = False
            self.leader_epoch = decision.leader_epoch
            self.epoch_start = self.log.leo
            if plugin_points.epoch_recorded(self, self.decide.records_epoch_at_election.yes()):
                self.epochs.assign(self.leader_epoch, self.log.leo)
            self.followers.begin_epoch(others, decision.isr, self.log.leo, now_us, leads=leads)
        else:
            self.followers.assign(others, now_us)
            self.followers.note_isr(self.state)
        self.is_leader = True
        self.advance_hw(now_us)

    def become_follower(self, decision: LeaderAndIsr) -> None:
        """Apply a LeaderAndIsr with another leader, or none.

        Waiting writes are refused; their records may or may not survive. Truncation is up to the fetcher.
        Kafka: Partition#makeFollower.
        """
        if self._is_outdated(decision):
            return
        self._adopt(decision)
        self.leader_epoch = max(self.leader_epoch, decision.leader_epoch)
        self._resign()

    def stop(self) -> None:
        """Apply a StopReplica with delete; the host deletes the log.

        A StopReplica without delete only stops the fetcher.
        Kafka: Partition#delete.
        """
        self.leader = NO_LEADER
        self.state.commit(())
        self._resign()

    def _resign(self) -> None:
        if self.is_leader:
            self.process.reached(probes.LEADER_RESIGNS)
            self.is_leader = False
            self.followers.forget()
        if self.decide.mutants.writes_kept_after_resignation.keeps(bool(self.delayed.waiting)):
            self.delayed.refuse()

    def _is_outdated(self, decision: LeaderAndIsr) -> bool:
        return decision.leader_epoch <= self.leader_epoch and decision.partition_epoch < self.partition_epoch

    def _adopt(self, decision: LeaderAndIsr) -> None:
        """Apply leader, ISR and assignment. Kafka: Partition#updateAssignmentAndIsr (2.6-4.4).

        With rule ``equal_partition_epoch=keeps-pending-isr`` a record with the leader's own partition epoch does not
        replace the pending ISR: such a record is about an earlier ISR change, whose AlterPartition response came first.
        """
        self.leader = decision.leader
        if not (
            self.state.pending
            and decision.partition_epoch == self.partition_epoch
            and decision.leader_epoch == self.leader_epoch
            and self.decide.keeps_pending_isr.yes()
        ):
            self.state.commit(decision.isr)
        if self.answered_min_isr or len(decision.replicas) != len(self.replicas):
            self.answered_min_isr = 0
            self.replicas = decision.replicas
            self._find_min_isr()
        self.replicas = decision.replicas
        self.partition_epoch = decision.partition_epoch

    def _find_min_isr(self) -> None:
        """Kafka: Partition#effectiveMinIsr (3.9-4.4)."""
        value = self.configured_min_isr
        if len(self.replicas) < value and self.decide.caps_min_isr.yes():
            value = len(self.replicas)
        answered = self.answered_min_isr
        if answered and answered != value and self.decide.adopts_answered_min_isr.yes():
            value = answered
        self.min_insync_replicas = value

    def min_isr_by(self, decision: LeaderAndIsr) -> int:
        """Effective ``min.insync.replicas`` once a decision is adopted; for observers."""
        caps = self.decide.caps_min_isr.answer
        return min(self.configured_min_isr, len(decision.replicas)) if caps else self.configured_min_isr

    # Writes.

    def produce(self, request: ProduceRequest, now_us: int) -> None:
        """Append a client's batch, and answer the request now or when the HW has passed the batch.

        acks=all is refused before the append while the ISR is below ``min.insync.replicas``. For an idempotent
        producer, duplicates are not appended again, and a sequence gap is refused (KIP-98).
        Kafka: Partition#appendRecordsToLeader.
        """
        if not self.is_leader:
            self.process.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)
            return
        acks_all = request.acks == -1
        isr = self.state.isr
        if acks_all and len(isr) < self.min_insync_replicas:
            self.process.answer_produce(request, NOT_ENOUGH_REPLICAS, -1)
            return
        sequence = request.sequence
        if sequence[0] >= 0:
            self.note_epoch(self.leader_epoch)
            error, known = self._check_sequence(request)
            if (error or known is not None) and self.decide.dedups.yes():
                self._answer_known(request, error, known)
                return
        batch = self.append_new(request.first_id, request.count, self.leader_epoch, sequence)
        acks_early = self.decide.mutants.ack_before_replication.when(acks_all and len(isr) > 1)
        if acks_all and not acks_early:
            self.delayed.add(batch.last_offset + 1, request, batch.base_offset)
        elif acks_all or request.acks == 1:
            self.process.answer_produce(request, NONE, batch.base_offset)
        self.advance_hw(now_us)

    def _check_sequence(self, request: ProduceRequest) -> tuple[str, Batch | None]:
        """Check a batch of an idempotent producer. Returns the error, if any, and the batch that it duplicates."""
        self._note_producer_state(request.sequence[0])
        log, sequence = self.log, request.sequence
        takes_unknown = self.decide.takes_unknown_producer
        forgets_deleted, count = not takes_unknown.answer, request.count
        error, known = producer_state_manager.check(log, sequence, count, forgets_deleted=forgets_deleted)
        if error == OUT_OF_ORDER_SEQUENCE_NUMBER and log.producers.loaded_at > 0:
            whole = producer_state_manager.check(
                log, sequence, count, forgets_deleted=forgets_deleted, snapshots_have_last=False
            )
            if whole[0] != error and not self.decide.snapshots_have_last.yes():
                error, known = whole
        mutants = self.decide.mutants
        is_newest = known is None or known is producer_state_manager.latest_batches(log, sequence[0])[0]
        is_gap = mutants.gap_in_sequences_accepted.when(error == OUT_OF_ORDER_SEQUENCE_NUMBER)
        if mutants.only_newest_batch_deduplicated.when(not is_newest) or is_gap:
            return NONE, None
        if error == UNKNOWN_PRODUCER_ID and takes_unknown.yes():
            taken = self.decide.takes_any_first_sequence if log.leo else self.decide.empty_log_takes_unknown
            return NONE if taken.yes() else OUT_OF_ORDER_SEQUENCE_NUMBER, None
        return error, known

    def _note_producer_state(self, producer_id: int) -> None:
        """Note the rules about producer state on which the check of a producer's batch depends."""
        log, decide = self.log, self.decide
        if producer_state_manager.is_doubtful(log, producer_id):
            decide.snapshots_reloads.note()
            decide.keeps_all_snapshots.note()
        if log.below or log.producers.loaded_start > log.log_start:
            decide.takes_unknown_producer.note()

    def _answer_known(self, request: ProduceRequest, error: str, known: Batch | None) -> None:
        """Refuse a batch, or answer a duplicate as if it had been appended now: acks=all waits for the HW.

        Kafka: Log#append (0.10.2-2.6), UnifiedLog#append (3.9-4.4).
        """
        self.followers.note_change()  # The leader epoch may be new in the cache.
        reached = self.process.reached
        if known is None:
            reached(probes.SEQUENCE_REFUSED)
            self.process.answer_produce(request, error, self.log.log_start if error == UNKNOWN_PRODUCER_ID else -1)
            return
        reached(probes.DEDUP_HIT)
        if known.leader_epoch < self.leader_epoch:
            reached(probes.DEDUP_REBUILT)
        if request.acks == -1:
            self.delayed.add(known.last_offset + 1, request, known.base_offset)
            self._complete_writes()
        else:
            self.process.answer_produce(request, NONE, known.base_offset)

    def _complete_writes(self) -> None:
        """Answer waiting writes that the HW has passed.

        They succeed if the persisted or the proposed ISR is large enough.
        Kafka: Partition#checkEnoughReplicasReachOffset.
        """
        needed, state = self.min_insync_replicas, self.state
        enough = len(state.isr) >= needed or len(state.pending) >= needed
        if self.delayed.waiting:
            self.delayed.complete(self.hw, enough=enough)

    # Replication.

    def refuses_registration(self, follower: int, broker_epoch: int) -> bool:
        """Whether the leader refuses a follower's fetch because its metadata has another registration of the follower.

        Rule ``stale_fetch`` decides on fetches from an earlier registration (KAFKA-15221), and rule ``newer_fetch`` on
        those of ISR members from a later one. Refused fetches get NOT_LEADER_OR_FOLLOWER and do not update the
        follower's state. Called after `check_fetch`.
        Kafka: Replica#updateFetchStateOrThrow (3.9-4.4).
        """
        if broker_epoch == NO_BROKER_EPOCH:
            return False
        known = self.process.registered_epoch(follower)
        if known == broker_epoch:
            return False
        if known > broker_epoch:
            return self.decide.refuses_stale_fetches.yes()
        state = self.followers.states.get(follower)
        return state is not None and state.in_maximal_isr and self.decide.refuses_newer_fetches.yes()

    def follower_fetched(self, follower: int, broker_epoch: int, offset: int, leader_epoch: int, now_us: int) -> None:
        """Update a follower's state after a fetch that passed `check_fetch`: it has all records below its fetch offset.

        Then the ISR may expand, and then the HW may advance; if the follower's LEO is unchanged, rule ``hw_at_fetch``
        decides on the latter. With rule ``hw_needs_epoch`` a fetch in another leader epoch is ignored.
        Kafka: Partition#updateFollowerFetchState (2.6-4.4), Partition#updateReplicaLogReadResult (0.10.2-2.0).
        """
        state = self.followers.states.get(follower)
        if state is None or (leader_epoch != self.leader_epoch and self._ignores_other_epoch()):
            return
        known = state.leo
        self.followers.note_fetch(state, offset, self.log.leo, broker_epoch, now_us)
        advances_hw = offset != known
        if advances_hw:
            self.process.replicated(self, follower, offset)
        elif self.hw < self.log.leo:
            advances_hw = self.decide.hw_at_every_fetch.yes()
        if (state.in_isr or not self._maybe_expand(state, advances_hw=advances_hw)) and advances_hw:
            self.advance_hw(now_us)

    def check_unassigned(self, offset: int, current_leader_epoch: int, last_epoch: int) -> str:
        """The error for a fetch from a broker that this leader does not know as a follower.

        The check precedes the read. A fetch that passes it gets no records.
        Kafka: Partition#followerReplicaOrThrow (3.9-4.4).
        """
        if not self.is_leader or not self.decide.refuses_unassigned.yes():
            return self.check_fetch(offset, current_leader_epoch, last_epoch)
        error = self.fencing.check(current_leader_epoch, self.leader_epoch, client=False)
        if error:
            return error
        return NOT_LEADER_OR_FOLLOWER if current_leader_epoch == NO_EPOCH else UNKNOWN_LEADER_EPOCH

    def note_refused_fetch(self, follower: int) -> None:
        """Note that a follower's fetch was refused (rule ``refused_fetch``).

        Kafka: ReplicaManager#updateFollowerLogReadResults (0.10.2-2.0).
        """
        state = self.followers.states.get(follower)
        if state is not None and self.decide.forgets_refused.yes():
            self.followers.forget_fetch(state)

    def fetch_is_noop(self, follower: int, offset: int, leader_epoch: int) -> bool:
        """Whether a fetch at this offset is a no-op for the leader, except for the follower's fetch time."""
        state = self.followers.states.get(follower)
        if state is None or not (state.in_isr and state.leo == offset == self.log.leo):
            return False
        if leader_epoch != self.leader_epoch and self.decide.hw_needs_epoch.yes():
            return False
        return self.hw >= self.log.leo or not self.decide.hw_at_every_fetch.yes()

    def note_idle_fetch(
        self, follower: int, position: Position, leader_epoch: int, broker_epoch: int, now_us: int
    ) -> bool:
        """Process an idle fetch, one that is a no-op for the leader and finds no records, as `follower_fetched` would.
        For any other fetch, returns False and does nothing.
        """
        # `has_all` and `FollowerState.fetched`, inlined: a broker with many idle partitions does little else.
        state = self.followers.states.get(follower)
        if state is None or leader_epoch != self.leader_epoch or not (state.in_isr and self.is_leader):
            return False
        leo = self.log.leo
        _, offset, epoch, last_epoch = position
        if not (state.leo == offset == leo == self.hw) or (epoch != leader_epoch and epoch != NO_EPOCH):
            return False
        if last_epoch != NO_EPOCH:
            epochs = self.epochs.epochs
            if not epochs or epochs[-1] != last_epoch or self.agrees is None:
                return False
        state.caught_up_us = state.fetch_us = now_us
        state.leader_leo_at_fetch = leo
        state.broker_epoch = broker_epoch
        return True

    def _ignores_other_epoch(self) -> bool:
        """Whether a fetch in another leader epoch, which was not fenced, is ignored."""
        self.process.reached(probes.FETCH_OTHER_EPOCH)
        return self.decide.hw_needs_epoch.yes()

    def advance_hw(self, now_us: int) -> None:
        """Raise the HW to the smallest LEO among the leader, the maximal ISR and followers that are catching up.

        The HW never goes down here. Of followers that are catching up, only those that may join the ISR count, and with
        rule ``caught_up=this-fetch`` none. With
        rule ``hw_needs_min_isr`` it does not advance while the ISR is below ``min.insync.replicas`` (KIP-966).
        Kafka: Partition#maybeIncrementLeaderHW.
        """
        candidate = self.log.leo
        lag_us = self.followers.lag_us
        for state in self.followers.states.values():
            if state.leo < candidate and (
                state.in_maximal_isr
                or (
                    now_us - state.caught_up_us <= lag_us
                    and self.membership.is_eligible(state)
                    and self.decide.counts_previous_fetch.yes()
                )
            ):
                candidate = state.leo
        if candidate > self.hw and self._waits_for_min_isr():
            candidate = self.hw
        candidate = plugin_points.high_watermark(self, candidate)
        if candidate > self.hw and self.set_hw(candidate):
            self._complete_writes()

    def _waits_for_min_isr(self) -> bool:
        """Whether the HW may not advance, because the ISR is too small."""
        waits = len(self.state.isr) < self.min_insync_replicas and self.decide.hw_needs_min_isr.yes()
        return self.decide.mutants.hw_ignores_min_isr.keeps(waits)

    def set_min_isr(self, value: int) -> None:
        """Apply a change of ``min.insync.replicas``, which does not advance the HW.

        Kafka: UnifiedLog#updateConfig (3.9-4.4), Log#updateConfig (1.1-2.6).
        """
        self.configured_min_isr = value
        self._find_min_isr()

    # Offsets.

    def list_offset(self, timestamp: int, current_leader_epoch: int, *, replica: bool) -> tuple[str, int]:
        """Answer ListOffsets: (error, offset). Latest is the LEO for a replica, the HW for a client (KIP-207 guard).

        A record's time is its id: the result is the offset of the first readable record from that time on, or -1.
        Kafka: Partition#fetchOffsetForTimestamp (2.6-4.4).
        """
        error = self.fencing.check(current_leader_epoch, self.leader_epoch, client=not replica)
        if not error and not self.is_leader:
            error = NOT_LEADER_OR_FOLLOWER
        if error:
            return error, -1
        if timestamp == EARLIEST:
            return NONE, plugin_points.replica_start(self, self.log.log_start) if replica else self.log.log_start
        if replica:
            return NONE, self.log.leo
        hides = self.hw < self.epoch_start and self.decide.guards_list_offsets.yes()
        if plugin_points.end_offset_hidden(self, hides):
            return OFFSET_NOT_AVAILABLE, -1
        if timestamp != LATEST:
            return NONE, self._offset_for_time(timestamp)
        above_hw = self.decide.mutants.list_offsets_above_hw.when(self.hw < self.log.leo)
        return NONE, self.log.leo if above_hw else self.hw

    def _offset_for_time(self, timestamp: int) -> int:
        """Kafka: UnifiedLog#fetchOffsetByTimestamp (3.9-4.4), Log#fetchOffsetByTimestamp (2.6),
        Log#fetchOffsetsByTimestamp (0.10.2-2.0).
        """
        for batch in self.log.batches:
            newest = batch.first_id + batch.count - 1
            if newest >= timestamp:
                offset = max(batch.base_offset + max(timestamp - batch.first_id, 0), self.log.log_start)
                return offset if offset < self.hw else -1
        return -1

    # The ISR.

    @property
    def has_laggards(self) -> bool:
        """Whether an ISR member lacks records, or an ISR change is pending."""
        return bool(self.state.pending) or self.followers.any_member_behind(self.log.leo)

    def shrink_isr(self, now_us: int) -> None:
        """Propose an ISR without lagging members; called every half lag time. Kafka: Partition#maybeShrinkIsr."""
        state = self.state
        if state.pending:
            return
        lagging = self.followers.out_of_sync(self.log.leo, now_us)
        if lagging:
            spare = len(state.isr) - self.min_insync_replicas
            leaving = self.membership.members_to_remove(lagging, self.followers, spare)
            leaving = plugin_points.isr_leave(self, lagging, leaving)
            if leaving:
                self._propose(tuple(broker for broker in state.isr if broker not in leaving), advances_hw=True)

    def _maybe_expand(self, follower: FollowerState, *, advances_hw: bool) -> bool:
        """Propose an ISR with a follower that has reached the HW and may join. Kafka: Partition#maybeExpandIsr.

        Args:
            follower: the follower.
            advances_hw: whether its fetch may advance the HW.

        Returns:
            Whether an ISR write to ZooKeeper now locks the partition (leaderIsrUpdateLock).
        """
        if self.state.pending:
            return False
        joins = self.membership.may_join(follower, self.hw, self.epoch_start)
        if not plugin_points.isr_join(self, follower, joins):
            return False
        unfetched = self.membership.joining_without_fetch(self.followers, self.hw)
        members = {*self.state.isr, follower.broker, *unfetched}
        return self._propose(tuple(broker for broker in self.replicas if broker in members), advances_hw=advances_hw)

    def _propose(self, isr: tuple[int, ...], *, advances_hw: bool) -> bool:
        """Propose an ISR; returns whether that locks the partition, as `_maybe_expand` does.

        Until the proposal is accepted or rejected, the HW waits for members of both ISRs (maximal ISR, KIP-497).
        Kafka: Partition#submitAlterPartition (3.9-4.4), ZkPartitionStateStore#expandIsr (2.6),
        ZkPartitionStateStore#shrinkIsr (2.6), Partition#updateIsr (0.10.2-2.0).
        """
        epochs = self.followers.broker_epochs(isr)
        self.state.propose(isr, epochs, locks=not self.decide.asks_controller.yes(), advances_hw=advances_hw)
        self.followers.note_isr(self.state)
        self.process.propose_isr(self, isr)
        return self.state.locked

    def isr_persisted(
        self, isr: tuple[int, ...], partition_epoch: int, now_us: int, *, leader_epoch: int = NO_EPOCH, min_isr: int = 0
    ) -> None:
        """Adopt the proposed ISR, now persisted; the HW may advance (KAFKA-13091).

        The result is ignored if something newer came first: metadata, a newer partition epoch or, if the controller's
        response has one, another leader epoch. After a no-op change the partition epoch is unchanged. `min_isr` is the
        controller's, 0 if unknown: rule ``isr_response`` decides whether the leader adopts it, too.
        Kafka: Partition#handleAlterPartitionUpdate (3.9-4.4).
        """
        if not self.state.pending or partition_epoch < self.partition_epoch:
            return
        if leader_epoch not in (NO_EPOCH, self.leader_epoch):
            return
        self.partition_epoch = partition_epoch
        if min_isr:
            self.answered_min_isr = min_isr
            self._find_min_isr()
        self._end_proposal(isr)
        if self.decide.asks_controller.answer or self.state.advances_hw:
            self.advance_hw(now_us)

    def isr_refused(self, error: str, now_us: int) -> None:
        """Handle a rejected ISR.

        After a failed ZooKeeper write the ISR stays ("skip updating ISR"), and the HW may advance. Writes of a leader
        with a stale partition epoch fail until its next LeaderAndIsr (KAFKA-2729). Some errors of the controller undo
        the proposal, most leave it pending until newer metadata arrives, and unknown ones are retried (KIP-497).
        Kafka: Partition#handleAlterPartitionError (3.9-4.4).
        """
        state = self.state
        if not state.pending:
            return
        if not self.decide.asks_controller.answer:
            self._end_proposal(state.isr)
            if state.advances_hw:
                self.advance_hw(now_us)
        elif error in ROLLED_BACK:
            self._end_proposal(state.isr)
        elif error not in AWAIT_METADATA:
            self.process.propose_isr(self, state.pending)

    def _end_proposal(self, isr: tuple[int, ...]) -> None:
        self.state.commit(isr)
        self.followers.note_isr(self.state)
