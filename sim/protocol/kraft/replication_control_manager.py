"""Partitions under a KRaft controller: creation, ISR changes, elections, reassignments, settings.

The subclass in `sim.protocol.kraft.quorum_controller` adds the events of brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.kraft import reassignment, unclean_recovery
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, Result
from sim.protocol.kraft.isr_validation import IsrValidation
from sim.protocol.kraft.metadata import (
    ELR_FEATURE,
    FIRST_DIRECTORY,
    MIN_ISR,
    ConfigRecord,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
    Value,
)
from sim.protocol.kraft.partition_change_builder import (
    DESIGNATED,
    PREFERRED,
    UNCLEAN,
    PartitionChangeBuilder,
    PartitionChangeRules,
    content,
    without,
)
from sim.protocol.kraft.quorum_messages import GetReplicaLogInfoResponse
from sim.protocol.kraft.unclean_recovery import RecoveryHost, UncleanRecovery
from sim.protocol.messages import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    STALE_BROKER_EPOCH,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    first_partition,
    topic_of,
)
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.rules import RULES

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
LONGEST_BALANCED: Final = "LONGEST_LOG_BALANCED"
LONGEST_AGGRESSIVE: Final = "LONGEST_LOG_AGGRESSIVE"
LONGEST_LOG: Final = {
    LONGEST_BALANCED: unclean_recovery.BALANCED,
    LONGEST_AGGRESSIVE: unclean_recovery.AGGRESSIVE,
}
"""Kind of election that an administrator may request -> strategy of the unclean recovery that it starts."""


_REFUSES_CANCELLATION: Final = {value: value == "min-isr" for value in RULES["reassignment_completes"].values}
"""Rule value -> whether a cancellation is refused that would leave fewer than min ISR replicas in sync."""


class NotAssignedError(Exception):
    """The controller looked up the log directory of a broker that is not a replica.

    Kafka throws an IllegalArgumentException there: the event commits nothing, the response is `UNKNOWN_SERVER_ERROR`,
    and the controller resigns.
    Kafka: PartitionRegistration#directory, EventHandlerExceptionInfo.

    Attributes:
        name: the partition.
        broker: the broker.
    """

    def __init__(self, name: str, broker: int) -> None:
        super().__init__(f"no replica of {name} is on broker {broker}")
        self.name = name
        self.broker = broker


class ReplicationHost(RecoveryHost, Protocol):
    """Callbacks to the controller's node."""

    def append(self, records: list[Record]) -> None:
        """Commit records atomically; the image has them already. Kafka: QuorumController#appendWriteEvent."""

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """Record the counters of unclean recovery, which may be unchanged: see `UncleanRecovery`."""


class ReplicationControlManager:
    """Manages partitions. Kafka: ReplicationControlManager.

    Args:
        image: the committed state; commits here are replayed into it.
        decide: the controller's rules.
        host: its node.
        config: static values of configuration keys and features, which records override.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.

    Raises:
        NotAssignedError: an event would elect a broker that is no replica: a last known leader that a reassignment
            removed.

    Attributes:
        image: see above; to be read only.
        recovery: unclean recoveries, None unless rule ``unclean_recovery`` has them.
    """

    def __init__(
        self,
        image: MetadataImage,
        decide: Decisions,
        host: ReplicationHost,
        config: Mapping[str, Value],
        min_isrs: dict[str, int] | None = None,
    ) -> None:
        self._min_isrs = {} if min_isrs is None else min_isrs
        self.image = image
        self._decide = decide
        self._host = host
        self._config = dict(config)
        self._change_rules = PartitionChangeRules(decide, host.reached, elr=self.elr_enabled)
        self._validation = IsrValidation(image, decide)
        self.recovery = (
            None
            if decide.elects_uncleanly.answer
            else UncleanRecovery(self, host, takes_first=decide.recovery_takes_first.answer)
        )

    # Current settings.

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are recorded: rule ``elr`` is on and the feature not disabled.

        Kafka: ReplicationControlManager#isElrEnabled (3.9), FeatureControlManager#isElrFeatureEnabled (4.1-4.4).
        """
        return self._decide.elr.answer and bool(self.config_value(ELR_FEATURE, 1))

    def tracks_elr(self, state: PartitionRegistration) -> bool:
        """See `PartitionChangeRules.tracks_elr`."""
        return self._change_rules.tracks_elr(state)

    @property
    def unclean_enabled(self) -> bool:
        """``unclean.leader.election.enable``.

        Kafka: ConfigurationControlManager#uncleanLeaderElectionEnabledForTopic.
        """
        return bool(self.config_value(UNCLEAN_ELECTION, False))

    def min_isr(self, state: PartitionRegistration) -> int:
        """``min.insync.replicas`` by which the controller decides who is in the ELR.

        It is capped by the number of replicas: of the partition, or, by rule ``controller_min_isr``, of the first
        partition of its topic.
        Kafka: ReplicationControlManager#getTopicEffectiveMinIsr.
        """
        own = self.own_min_isr(state)
        image = self.image
        if len(image.partitions) == 1 or not self._decide.elr.answer:
            return own
        first = image.partitions.get(first_partition(state.name))
        if first is None or first is state or len(first.replicas) == len(state.replicas):
            return own
        of_first = min(self._min_isr_setting(state), len(first.replicas))
        return of_first if of_first != own and self._decide.caps_by_first_partition.yes() else own

    def own_min_isr(self, state: PartitionRegistration) -> int:
        """``min.insync.replicas``, capped by the partition's replicas, as its leader has it.

        Kafka: Partition#effectiveMinIsr.
        """
        return min(self._min_isr_setting(state), len(state.replicas))

    def _min_isr_setting(self, state: PartitionRegistration) -> int:
        own: Value | None = self._min_isrs.get(state.name)
        min_isr = self.config_value(MIN_ISR, 1) if own is None else own
        assert isinstance(min_isr, int)
        return min_isr

    def settings_in_force(self, state: PartitionRegistration) -> dict[str, Value]:
        """The dynamic settings that it uses for a partition; for observers."""
        return {
            MIN_ISR: self._min_isr_setting(state),
            UNCLEAN_ELECTION: self.unclean_enabled,
            ELR_FEATURE: int(self._change_rules.elr),
        }

    def config_value(self, key: str, default: Value) -> Value:
        """A dynamic configuration value, else the static one. Kafka: ConfigurationControlManager#getTopicConfig."""
        value = self.image.settings.get(key)
        return self._config.get(key, default) if value is None else value

    # Partitions.

    def create_partition(self, name: str, replicas: tuple[int, ...]) -> str:
        """Create a partition: replicas on active brokers are in sync, and the first of them leads. Returns an error.

        Kafka: ReplicationControlManager#createTopic, ReplicationControlManager#buildPartitionRegistration.
        """
        return self.create_topic({name: replicas})

    def create_topic(self, assignments: Mapping[str, tuple[int, ...]]) -> str:
        """Create several partitions in one transaction, like `create_partition`; returns the first error. All
        partitions of a topic need as many replicas as its first one has, or the first of these.

        Kafka: ReplicationControlManager#createTopic, ReplicationControlManager#createPartitions.
        """
        records: list[Record] = []
        factors: dict[str, int] = {}
        for name, replicas in assignments.items():
            if name in self.image.partitions:
                return TOPIC_ALREADY_EXISTS
            first = self.image.partitions.get(first_partition(name))
            factor = factors.setdefault(topic_of(name), len(replicas if first is None else first.replicas))
            isr = tuple(broker for broker in replicas if self.image.is_active(broker))
            if not isr or not self._is_assignment(replicas) or len(replicas) != factor:
                return INVALID_REPLICA_ASSIGNMENT
            directories = self._directories_of(replicas)
            records.append(PartitionRegistration(name, isr[0], 0, isr, 0, replicas, directories=directories))
        for _ in records:
            self._host.reached(probes.ELECTED_FIRST)
        self._commit(records)
        return NONE

    def place(
        self, brokers: tuple[int, ...], first: int, count: int, replication_factor: int
    ) -> tuple[str, list[tuple[int, ...]]]:
        """Assignments of new partitions: each begins at the next broker, and brokers that are not active come last.

        Kafka spreads replicas over racks and begins with a random broker. It refuses if fewer brokers are registered
        than replicas are asked for, or if none of them is active. Brokers whose log directories are all cordoned do not
        count.
        Kafka: StripedReplicaPlacer#place, ReplicationControlManager#createTopic,
        BrokerHeartbeatManager.UsableBrokerIterator.

        Args:
            brokers: all brokers, in the order in which replicas are placed.
            first: index of the broker with which the first new partition begins.
            count: number of new partitions.
            replication_factor: number of replicas of each.
        """
        known = self.image.brokers
        registered = [broker for broker in brokers if broker in known and known[broker].takes_replicas]
        if len(registered) < replication_factor or not any(map(self.image.is_active, registered)):
            return INVALID_REPLICATION_FACTOR, []
        found = []
        for place in range(first, first + count):
            start = place % len(registered)
            rotated = registered[start:] + registered[:start]
            rotated.sort(key=lambda broker: not self.image.is_active(broker))
            found.append(tuple(rotated[:replication_factor]))
        return NONE, found

    def delete_topic(self, names: tuple[str, ...]) -> str:
        """Delete a topic with these partitions; returns an error. Kafka: ReplicationControlManager#deleteTopic."""
        if any(name not in self.image.partitions for name in names):
            return UNKNOWN_TOPIC_ID
        self._commit([TopicRemoval(names)])
        return NONE

    def alter_partition(
        self, broker: int, broker_epoch: int, changes: Iterable[AlterPartitionItem]
    ) -> tuple[str, dict[str, Result]]:
        """Process a leader's ISR changes (KIP-497). Kafka: ReplicationControlManager#alterPartition.

        Returns:
            The error of the request as a whole, and the results by partition, for `AlterPartitionManager.on_reply`. A
            result with an error has no other values. `NEW_LEADER_ELECTED` is an error too, though the change was made:
            it completed a reassignment that elected another leader.
        """
        known = self.image.brokers.get(broker)
        if known is None or known.broker_epoch != broker_epoch:
            self._host.reached(probes.ALTER_STALE_BROKER)
            return STALE_BROKER_EPOCH, {}
        results: dict[str, Result] = {}
        records: list[Record] = []
        for wanted in changes:
            name = wanted.name
            error = self._validation.refusal(broker, wanted)
            if error:
                if error in probes.ALTERS:
                    self._host.reached(probes.ALTERS[error])
                results[name] = _refused(error)
                continue
            state = self.image.partitions[name]
            change = self._change(state)
            change.isr = wanted.isr
            change.recovering = wanted.recovering
            after = self._add(records, change) or state
            if after.leader != broker:
                self._host.reached(probes.ALTER_ELECTS)
                results[name] = _refused(NEW_LEADER_ELECTED)
            else:
                results[name] = (NONE, after.isr, after.partition_epoch, after.leader_epoch, self.own_min_isr(after))
        self._commit(records)
        return NONE, results

    def elect(self, name: str, kind: str, designated: int = NO_LEADER) -> str:
        """Process an administrator's request for an election; returns an error. Kafka:
        ReplicationControlManager#electLeader.

        Args:
            name: the partition.
            kind: `PREFERRED`; or, for a partition without a leader, `UNCLEAN`, `DESIGNATED` or one of `LONGEST_LOG`,
                which begins a recovery and returns.
            designated: the broker to elect, for `DESIGNATED`.
        """
        state = self.image.partitions.get(name)
        if state is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if state.leader == state.replicas[0] if kind == PREFERRED else state.leader != NO_LEADER:
            return ELECTION_NOT_NEEDED
        if kind in LONGEST_LOG:
            self._decide.elects_uncleanly.note()
            if self.recovery is None:
                return UNSUPPORTED_VERSION
            self.recovery.force(state, LONGEST_LOG[kind])
            self._count_recoveries(self.recovery)
            return NONE
        if kind == DESIGNATED and designated not in state.replicas:
            return INVALID_REQUEST
        if kind == DESIGNATED and not self.image.is_active(designated):
            return ELIGIBLE_LEADERS_NOT_AVAILABLE
        change = self._change(state)
        change.election = kind
        change.designated = designated
        if not self._commit_change(change):
            return PREFERRED_LEADER_NOT_AVAILABLE if kind == PREFERRED else ELIGIBLE_LEADERS_NOT_AVAILABLE
        return NONE

    def balance(self) -> int:
        """Preferred elections where another replica leads (every ``leader.imbalance.check.interval.seconds``). Returns
        their number.

        Kafka: ReplicationControlManager#maybeBalancePartitionLeaders.
        """
        states = [state for state in self.image.partitions.values() if state.leader != state.replicas[0]]
        return self._elect_in(states, PREFERRED)

    def check_unclean(self) -> int:
        """Unclean elections where there is no leader, if allowed. Returns the number of changed partitions.

        They come every ``unclean.leader.election.interval.ms``. Kafka:
        ReplicationControlManager#maybeElectUncleanLeaders (3.9-4.4).
        """
        states = [state for state in self.image.partitions.values() if state.leader == NO_LEADER]
        may_elect = bool(states) and self.unclean_enabled and self._decide.elects_uncleanly.yes()
        return self._elect_in(states, UNCLEAN) if may_elect and self._decide.checks_enabled_unclean.yes() else 0

    def _elect_in(self, states: list[PartitionRegistration], kind: str) -> int:
        """Kafka: ReplicationControlManager#maybeTriggerLeaderChangeForPartitionsWithoutPreferredLeader,
        ReplicationControlManager#maybeTriggerUncleanLeaderElectionForLeaderlessPartitions.
        """
        records: list[Record] = []
        for state in states:
            change = self._change(state)
            change.election = kind
            self._add(records, change)
        self._commit(records)
        return len(records)

    # Reassignment.

    def reassign(self, name: str, replicas: tuple[int, ...]) -> str:
        """Process an administrator's request for a reassignment; returns an error.

        Kafka looks up a candidate's log directory in the old assignment (LeaderAcceptor). The request fails if that
        candidate is an ELR member that only the new assignment has.
        Kafka: ReplicationControlManager#changePartitionReassignment.
        """
        state = self.image.partitions.get(name)
        if state is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if not self._is_assignment(replicas):
            return INVALID_REPLICA_ASSIGNMENT
        change = self._change(state)
        reassignment.begin(change, replicas, self._change_rules)
        adds = bool(change.adding)
        records: list[Record] = []
        try:
            self._add(records, change)
        except NotAssignedError:
            return UNKNOWN_SERVER_ERROR
        if adds:
            self._host.reached(probes.REASSIGNMENT_BEGINS)
        self._commit(records)
        return NONE

    def cancel_reassignment(self, name: str) -> str:
        """Restore the former assignment; returns an error.

        Kafka: ReplicationControlManager#cancelPartitionReassignment.
        """
        state = self.image.partitions.get(name)
        if state is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if not state.adding and not state.removing:
            return NO_REASSIGNMENT_IN_PROGRESS
        change = self._change(state)
        error = reassignment.revert(change, unclean=self.unclean_enabled)
        too_small = len(change.isr) < min(self.min_isr(state), len(change.replicas))
        if too_small and self._decide.reassignment_completes.pick(_REFUSES_CANCELLATION):
            self._host.reached(probes.CANCEL_REFUSED)
            return INVALID_REPLICA_ASSIGNMENT
        if not error:
            try:
                self._commit_change(change)
            except NotAssignedError:
                return UNKNOWN_SERVER_ERROR
        return error

    def _is_assignment(self, replicas: tuple[int, ...]) -> bool:
        """Kafka: ReplicationControlManager#validateManualPartitionAssignment."""
        return bool(replicas) and len(set(replicas)) == len(replicas) and set(replicas) <= self.image.brokers.keys()

    # Log directories.

    def assign_directory(self, name: str, broker: int, broker_epoch: int, directory: int) -> str:
        """Process a change of a replica's log directory; returns an error.

        An election in this change still uses the previous directories, so it does not elect the broker itself. If the
        directory has failed meanwhile, the broker leaves the ISR.
        Kafka: ReplicationControlManager#handleAssignReplicasToDirs.
        """
        known = self.image.brokers.get(broker)
        if known is None or known.broker_epoch != broker_epoch:
            return STALE_BROKER_EPOCH
        state = self.image.partitions.get(name)
        if state is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if broker not in state.replicas:
            return NOT_LEADER_OR_FOLLOWER
        others = {other: place for other, place in state.directories.items() if other != broker}
        directories = others if directory == FIRST_DIRECTORY else {**others, broker: directory}
        clears = self._decide.assignment_clears_elr
        if self.elr_enabled and self._outcome(state, directories, elr=True) != self._outcome(
            state, directories, elr=False
        ):
            clears.note()
        # Up to 4.2 the builder of this change ignored the ELR setting.
        elr = self.elr_enabled and not clears.answer
        self._host.reached(probes.DIRECTORY_ASSIGNED)
        records: list[Record] = []
        self._add(records, self._assignment(state, directories, self._host.reached, elr=elr))
        if not known.has_online_directory(directory):
            self._host.reached(probes.OFFLINE_ASSIGNED)
            self._add_beside(records, self._without(state, broker))
        self._commit(records)
        return NONE

    def _assignment(
        self, state: PartitionRegistration, directories: dict[int, int], reached: Callable[[int], None], *, elr: bool
    ) -> PartitionChangeBuilder:
        accepts = self._with_directory(state, self.image.is_active)
        rules = PartitionChangeRules(self._decide, reached, elr=elr)
        change = PartitionChangeBuilder(state, accepts, self.min_isr(state), rules)
        change.directories = directories
        return change

    def _outcome(self, state: PartitionRegistration, directories: dict[int, int], *, elr: bool) -> object:
        """The state that would result, with or without an ELR; None: no change, or an exception."""
        try:
            after = self._assignment(state, directories, _discard_probe, elr=elr).build()
        except NotAssignedError:
            return None
        return after and (after.leader_epoch, content(after))

    def _directories_of(self, replicas: Iterable[int]) -> dict[int, int]:
        """Log directories of new replicas other than `FIRST_DIRECTORY`. Kafka: ClusterControlManager#defaultDir."""
        brokers = self.image.brokers
        found = {replica: brokers[replica].default_directory for replica in replicas}
        return {one: directory for one, directory in found.items() if directory != FIRST_DIRECTORY}

    # Unclean recovery.

    def activate(self) -> None:
        """Start the unclean recoveries that are needed, and stop others: at activation, and after each commit."""
        if self.recovery is not None:
            self.recovery.update()
            self._count_recoveries(self.recovery)

    def _count_recoveries(self, recovery: UncleanRecovery) -> None:
        self._host.record_recoveries(recovery.partitions_count, recovery.finished, recovery.manual_count)

    def on_log_info(self, info: GetReplicaLogInfoResponse) -> None:
        """Handle a replica's response with its log end."""
        if self.recovery is not None:
            self.recovery.on_log_info(info)

    def end(self) -> None:
        """Forget unclean recoveries, which refer to this controller: it decides nothing more."""
        self.recovery = None

    def recovery_timed_out(self, timer: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        if self.recovery is not None:
            self.recovery.timed_out(timer)

    def elect_longest(self, name: str, broker: int) -> None:
        """Elect the replica with the longest log that a recovery has found."""
        change = self._change(self.image.partitions[name])
        change.election = DESIGNATED
        change.designated = broker
        self._commit_change(change)

    # Settings.

    def set(self, key: str, value: Value) -> str:
        """Set a dynamic configuration value, or the level of feature ``eligible.leader.replicas.version``.

        Setting the current value is a no-op. There is no election: a leaderless partition waits for the next event, or
        for `check_unclean`. An ELR that no longer fits ``min.insync.replicas`` is recomputed with the partition's next
        change; rule ``min_isr_change`` may clear it at once, or ``min_isr_change_while_disabled`` while the feature is
        disabled.
        Kafka: ConfigurationControlManager#incrementalAlterConfig,
        ConfigurationControlManager#createClearElrRecordsAsNeeded (4.1-4.4), FeatureControlManager#updateFeature.

        Returns:
            `NONE`; `INVALID_UPDATE_VERSION` for a level that the release does not have.
        """
        if key == ELR_FEATURE and (value not in (0, 1) or (value and not self._decide.elr.yes())):
            return INVALID_UPDATE_VERSION
        if self.image.settings.get(key) == value:
            return NONE
        if self._decide.mutants.restored_setting_not_recorded.when(self._config.get(key) == value):
            return NONE
        records: list[Record] = [ConfigRecord(key, value)]
        if key == MIN_ISR:
            for state in self.image.partitions.values():
                if (state.elr or state.last_known_elr) and state.name not in self._min_isrs:
                    change = self._clearing_record(state, int(value))
                    if change:
                        self._host.reached(probes.ELR_CLEARED)
                        is_clear = change == "ClearElrRecord"
                        records.append(state.cleared() if is_clear else state.relisted(state.isr, (), ()))
        self._commit(records)
        if key == ELR_FEATURE:
            self._change_rules = PartitionChangeRules(self._decide, self._host.reached, elr=self.elr_enabled)
        return NONE

    def _clearing_record(self, state: PartitionRegistration, min_isr: int) -> str:
        """The kind of record that a new ``min.insync.replicas`` adds for a partition with an ELR; empty for none."""
        enough = len(state.isr) >= min(min_isr, len(state.replicas))
        if not self.elr_enabled:
            return "PartitionChangeRecord" if enough and self._decide.clears_disabled_elr.yes() else ""
        return self._decide.min_isr_change.pick(
            {
                "keeps-elr": "",
                "clears-elr": "ClearElrRecord",
                "clears-if-enough": "PartitionChangeRecord" if enough else "",
            }
        )

    # Changes and commits.

    def _change(
        self, state: PartitionRegistration, acceptable: Callable[[int], bool] | None = None
    ) -> PartitionChangeBuilder:
        accepts = self._with_directory(state, acceptable or self.image.is_active)
        change = PartitionChangeBuilder(state, accepts, self.min_isr(state), self._change_rules)
        if self.unclean_enabled and self._decide.elects_uncleanly.answer:
            change.election = UNCLEAN
        return change

    def _without(self, state: PartitionRegistration, broker: int) -> PartitionChangeBuilder:
        """A change by which a broker leaves the ISR; it is not elected."""
        change = self._change(state, lambda other: other != broker and self.image.is_active(other))
        if len(state.isr) <= self.min_isr(state) and self._decide.holds_small_isr.yes():
            self._host.reached(probes.ISR_HELD)
            return change
        change.isr = without(state.isr, (broker,))
        return change

    def _with_directory(self, state: PartitionRegistration, acceptable: Callable[[int], bool]) -> Callable[[int], bool]:
        """Restrict candidates to brokers whose replica is in the directory of the metadata. Kafka: LeaderAcceptor."""
        return lambda broker: acceptable(broker) and self._has_directory(state, broker)

    def _has_directory(self, state: PartitionRegistration, broker: int) -> bool:
        """Whether the broker's replica is in the directory of the metadata, or the rules know no directories.

        Kafka: ClusterControlManager#hasOnlineDir, PartitionRegistration#directory.

        Raises:
            NotAssignedError: the broker is not a replica.
        """
        is_assigned = broker in state.replicas
        if is_assigned and self.image.has_online_directory(state, broker):
            return True
        if not self._decide.knows_directories.yes():
            return True
        if not is_assigned:
            raise NotAssignedError(state.name, broker)
        return False

    def _add(self, records: list[Record], change: PartitionChangeBuilder) -> PartitionRegistration | None:
        """Add a change to a transaction. Returns the new state; None if the change is a no-op."""
        before, after = change.state, change.build()
        if after is not None:
            if after.replicas != before.replicas:
                added = self._directories_of([replica for replica in after.replicas if replica not in before.replicas])
                kept = {broker: place for broker, place in after.directories.items() if broker in after.replicas}
                after.directories = {**kept, **added}
            records.append(after)
            if not set(after.elr) <= set(before.elr):
                self._host.reached(probes.ELR_GROWS)
            if before.elr and not after.elr:
                self._host.reached(probes.ELR_CLEARED)
        return after

    def _add_beside(self, records: list[Record], change: PartitionChangeBuilder) -> None:
        """Add a change to a transaction that may have another change of this partition, built from the same state."""
        before = change.state
        earlier = None
        for record in records:
            if isinstance(record, PartitionRegistration) and record.name == before.name:
                earlier = record
        after = self._add(records, change)
        if after is not None and earlier is not None:
            records[-1] = after.merged(before, earlier)

    def _commit_change(self, change: PartitionChangeBuilder) -> bool:
        """Commit a change alone; False if it is a no-op."""
        records: list[Record] = []
        self._add(records, change)
        self._commit(records)
        return bool(records)

    def _commit(self, records: list[Record]) -> None:
        if records:
            for record in records:
                self.image.replay(record)
            self._host.append(records)
            self.activate()


def _discard_probe(_: int) -> None:
    """Discards the probes of a change that is not made."""


def _refused(error: str) -> Result:
    return error, (), -1, -1, 0
