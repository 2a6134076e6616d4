"""The active controller of a KRaft quorum: how each event changes the committed metadata.

For partitions see `ReplicationControlManager`. Each public method is one event: it decides on the current image,
commits the result as one transaction (`append` of its host), and returns its reply. Time and the quorum are left to the
host: it reports expired sessions, and an appended record is committed. Only the image survives a change of the active
controller; other state (brokers' metadata offsets, recoveries in progress) starts empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.kraft import broker_heartbeat_manager
from sim.protocol.kraft.broker_heartbeat_manager import (
    CONTROLLED_SHUTDOWN,
    FENCED,
    SHUTDOWN_NOW,
    UNFENCED,
    BrokerHeartbeatManager,
    BrokerHeartbeatReply,
)
from sim.protocol.kraft.metadata import (
    ONLY_FIRST,
    UNASSIGNED,
    BrokerRegistration,
    BrokerUnregistration,
    MetadataImage,
    PartitionRegistration,
    Record,
    Value,
)
from sim.protocol.kraft.partition_change_builder import PartitionChangeBuilder, without
from sim.protocol.kraft.replication_control_manager import ReplicationControlManager, ReplicationHost
from sim.protocol.messages import BROKER_ID_NOT_REGISTERED, DUPLICATE_BROKER_REGISTRATION, NONE, STALE_BROKER_EPOCH
from sim.protocol.replica.partition import NO_LEADER


class QuorumControllerHost(ReplicationHost, Protocol):
    """Callbacks to the controller's node."""

    def has_session(self, broker: int) -> bool:
        """Whether the last heartbeat of a broker's current incarnation is younger than ``broker.session.timeout.ms``.

        For a new active controller, unfenced brokers count as heard from at that time, and fenced ones as never.
        Kafka: BrokerHeartbeatManager#hasValidSession.
        """


class BrokerRegistrationReply(NamedTuple):
    """Answer to a registration. Kafka: metadata.BrokerRegistrationReply.

    Attributes:
        error: `NONE` or `DUPLICATE_BROKER_REGISTRATION`.
        broker_epoch: offset of its record, -1 with an error.
        detected_unclean: whether the controller assumes an unclean shutdown of the former incarnation.
    """

    error: str
    broker_epoch: int
    detected_unclean: bool


class QuorumController(ReplicationControlManager):
    """The active controller.

    Offsets of records begin at 1, so that `MetadataImage.offset` is the offset of the last replayed record.
    Kafka: QuorumController, ClusterControlManager.

    Args:
        image: the committed state, into which the controller replays what it commits.
        decide: the controller's rules.
        host: the controller's node.
        config: values of configuration keys and features while no record sets them.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own.
    """

    def __init__(
        self,
        image: MetadataImage,
        decide: Decisions,
        host: QuorumControllerHost,
        config: Mapping[str, Value],
        min_isrs: dict[str, int] | None = None,
    ) -> None:
        super().__init__(image, decide, host, config, min_isrs)
        self._has_session = host.has_session
        self._heartbeats = BrokerHeartbeatManager(image)

    def register(
        self, broker: int, incarnation: int, previous_broker_epoch: int, directories: tuple[int, ...] = ONLY_FIRST
    ) -> BrokerRegistrationReply:
        """Register a broker process.

        It is fenced at first. If the same incarnation registers again, it gets the same response, leaves its controlled
        shutdown, and has to replay another registration record. Another incarnation is refused while the session of the
        former is valid, even in controlled shutdown; rule ``fenced_session`` decides whether a fenced broker has a
        session.
        Kafka: ClusterControlManager#registerBroker.

        Args:
            broker: its id.
            incarnation: of its process.
            previous_broker_epoch: broker epoch in its clean-shutdown file, -1 without one.
            directories: ids of its log directories that work.
        """
        known = self.image.brokers.get(broker)
        if known is None:
            # If it was unregistered, the controller knows nothing of its former process: the shutdown was not clean.
            records = self._shutdown_changes(broker, clean=False)
            return self._commit_registration(broker, incarnation, directories, records, unclean=bool(records))
        if known.incarnation == incarnation:
            self._heartbeats.registered(broker)
            self._commit([replace(known, directories=directories, registered_offset=self.image.offset + 1)])
            return BrokerRegistrationReply(NONE, known.broker_epoch, detected_unclean=False)
        if self._has_session(broker) and (not known.fenced or self._decide.keeps_fenced_sessions.yes()):
            self._host.reached(probes.REGISTRATION_DUPLICATE)
            return BrokerRegistrationReply(DUPLICATE_BROKER_REGISTRATION, -1, detected_unclean=False)
        clean = previous_broker_epoch == known.broker_epoch and self._decide.reads_clean_shutdown.yes()
        missing = self._in_missing_directories(broker, directories) if clean else []
        if missing and not self._decide.misses_directories.yes():
            missing = []
        clean = self._decide.mutants.unclean_registration_taken_for_clean.when(not clean) or clean
        self._host.reached(probes.REGISTERED_CLEAN if clean and not missing else probes.REGISTERED_UNCLEAN)
        records = self._shutdown_changes(broker, missing, clean=clean)
        return self._commit_registration(broker, incarnation, directories, records, unclean=not clean or bool(missing))

    def _in_missing_directories(self, broker: int, directories: tuple[int, ...]) -> list[str]:
        """The partitions of which the metadata has a broker's replica in another directory than these, and in the ISR
        or ELR. The registration may lack the directory already, if it failed before it was removed.
        """
        found = []
        for state in self.image.partitions.values():
            place = state.directory(broker)
            if place not in directories and place != UNASSIGNED and (broker in state.isr or broker in state.elr):
                found.append(state.name)
        return found

    def _shutdown_changes(self, broker: int, missing: Sequence[str] = (), *, clean: bool) -> list[Record]:
        """Changes of partitions before a new incarnation is registered; for those `missing` its shutdown was unclean.

        After an unclean shutdown each partition is changed once for its ISR and once for each time that Kafka counts
        the broker into its ELR, all starting from the same state. While the feature is disabled, rule
        ``unclean_shutdown_while_disabled`` decides whether it leaves the ELR, too.
        Kafka: ReplicationControlManager#handleBrokerShutdown (4.1-4.4),
        ReplicationControlManager#handleBrokerUncleanShutdown (3.9).
        """
        records: list[Record] = []
        for state in self.image.partitions.values():
            is_clean = clean and state.name not in missing
            if not is_clean and self._leaves_disabled_elr(state, broker):
                records.append(self._removed_from_lists(state, broker))
                continue
            counts = not is_clean and self.tracks_elr(state)
            changes = int(broker in state.isr) + int(counts and broker in state.elr)
            cleared = self.image.cleared_elr.get(state.name, ()).count(broker) if counts else 0
            if not (changes or cleared):
                continue
            if not is_clean:
                self._decide.elr.note()
            if self._decide.unclean_registration_changes.yes():
                if counts:
                    self._add_repeated(records, self._without_unclean(state, broker), changes + cleared)
                else:
                    self._add(records, self._without(state, broker))
            elif counts and changes:
                records.append(self._removed_from_lists(state, broker))
        return records

    def _leaves_disabled_elr(self, state: PartitionRegistration, broker: int) -> bool:
        """Whether a broker that was shut down uncleanly leaves an ELR that does not count at present."""
        return broker in state.elr and not self.tracks_elr(state) and self._decide.leaves_disabled_elr.yes()

    def unregister(self, broker: int) -> str:
        """Process an administrator's request to unregister a broker; returns an error.

        It leaves every ISR, as a fenced broker does, and leads no longer. A partition is changed once for its ISR, and
        once for each time that Kafka counts the broker into its ELR.
        Kafka: ReplicationControlManager#unregisterBroker, ReplicationControlManager#handleBrokerUnregistered.
        """
        known = self.image.brokers.get(broker)
        if known is None:
            return BROKER_ID_NOT_REGISTERED
        records: list[Record] = []
        for state in self.image.partitions.values():
            cleared = self.image.cleared_elr.get(state.name, ()).count(broker)
            changes = int(broker in state.isr) + int(broker in state.elr) + cleared
            if changes:
                self._add_repeated(records, self._without(state, broker), changes)
        records.append(BrokerUnregistration(broker, known.broker_epoch))
        self._heartbeats.unregistered(broker)
        self._commit(records)
        return NONE

    def _add_repeated(self, records: list[Record], change: PartitionChangeBuilder, times: int) -> None:
        """Add the same change to a transaction several times."""
        before, after = change.state, self._add(records, change)
        for _ in range(times - 1):
            if after is not None:
                before, after = after, after.repeated(before)
                records.append(after)

    def _without_unclean(self, state: PartitionRegistration, broker: int) -> PartitionChangeBuilder:
        change = self._change(state, lambda other: other != broker and self.image.is_active(other))
        change.isr = without(state.isr, (broker,))
        change.unclean = (broker,)
        return change

    def _removed_from_lists(self, state: PartitionRegistration, broker: int) -> PartitionRegistration:
        """The partition with only a broker removed from its lists.

        For ``unclean_registration=removes`` and ``unclean_shutdown_while_disabled=leaves-elr``.
        """
        if broker in state.elr:
            self._host.reached(probes.ELR_EJECTED)
        return state.relisted(without(state.isr, (broker,)), without(state.elr, (broker,)), state.last_known_elr)

    def _commit_registration(
        self,
        broker: int,
        incarnation: int,
        directories: tuple[int, ...],
        records: list[Record],
        *,
        unclean: bool,
    ) -> BrokerRegistrationReply:
        broker_epoch = self.image.offset + len(records) + 1
        records.append(BrokerRegistration(broker, incarnation, broker_epoch, directories=directories))
        self._heartbeats.registered(broker)
        self._commit(records)
        return BrokerRegistrationReply(NONE, broker_epoch, unclean)

    def heartbeat(
        self,
        broker: int,
        broker_epoch: int,
        metadata_offset: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_directories: tuple[int, ...] = (),
        cordoned: tuple[int, ...] = (),
    ) -> BrokerHeartbeatReply:
        """Process a heartbeat.

        With `want_fence` the broker is not ready to serve (its logs are not loaded), or no longer is; with
        `want_shut_down` it requests controlled shutdown; `offline_directories` have failed since its start,
        and those that are `cordoned` get no new replicas.
        Kafka: ReplicationControlManager#processBrokerHeartbeat.
        """
        known = self.image.brokers.get(broker)
        if known is None or known.broker_epoch != broker_epoch:
            return BrokerHeartbeatReply(STALE_BROKER_EPOCH, is_caught_up=False, is_fenced=True, should_shut_down=False)
        caught_up = metadata_offset >= known.registered_offset
        before = self._heartbeats.state(known)
        stops = want_shut_down or before == CONTROLLED_SHUTDOWN
        after = self._heartbeats.next_state(
            known,
            caught_up=caught_up,
            leads=stops and self._leads(broker),
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )
        gone: list[int] = []
        if after != before or offline_directories:
            gone = [directory for directory in known.directories if directory in offline_directories]
            records = self._state_change_records(known, after, gone) if after != before else []
            self._add_offline(records, known, gone)
            self._commit(records)
        elif after == CONTROLLED_SHUTDOWN:
            self._host.reached(probes.BROKER_MUST_WAIT)
        elif after == FENCED and not want_fence:
            self._host.reached(probes.BROKER_BEHIND)
        self._note_cordoned(broker, cordoned)
        changed = (before == FENCED and after == UNFENCED) or len(gone) > 0
        self._heartbeats.touch(broker, metadata_offset, after, changed=changed)
        return broker_heartbeat_manager.heartbeat_reply(after, caught_up=caught_up)

    def _note_cordoned(self, broker: int, cordoned: tuple[int, ...]) -> None:
        """Note the cordoned log directories of a broker, if they have changed.

        Kafka: ReplicationControlManager#handleDirectoriesCordoned (4.3-4.4).
        """
        known = self.image.brokers[broker]
        if cordoned != known.cordoned:
            self._host.reached(probes.DIRECTORY_CORDONED)
            self._commit([known.with_cordoned(cordoned)])

    def _state_change_records(self, known: BrokerRegistration, state: str, gone: list[int]) -> list[Record]:
        """Records for a broker's change of state; `gone` are the log directories that the same heartbeat reports.

        Kafka: ReplicationControlManager#processBrokerHeartbeat.
        """
        if state == CONTROLLED_SHUTDOWN:
            return self._shutdown_records(known)
        if state == SHUTDOWN_NOW:
            self._host.reached(probes.BROKER_MAY_STOP)
            return self._fence_records(known) if not known.fenced or self._is_in_sync(known.broker) else []
        return self._fence_records(known) if state == FENCED else self._unfence_records(known, gone)

    def _add_offline(self, records: list[Record], known: BrokerRegistration, gone: list[int]) -> None:
        """Process failed log directories that a heartbeat reports first: the broker leaves the ISRs of the partitions
        that the metadata has there. A replica whose directory was not reported yet stays where it is.

        These changes start from the same state as those of the broker's own state in the same heartbeat. If no
        directory is left, the registration keeps those that it had, because an empty list in the record means no change
        (a broker exits before it reports its last one).
        Kafka: ReplicationControlManager#handleDirectoriesOffline.
        """
        broker = known.broker
        if not gone:
            return
        self._host.reached(probes.DIRECTORY_OFFLINE)
        for directory in gone:
            for state in self.image.partitions.values():
                if broker in state.replicas and state.directory(broker) == directory:
                    self._add_beside(records, self._without(state, broker))
        latest = known
        for record in records:
            if isinstance(record, BrokerRegistration):
                latest = record
        left = tuple([directory for directory in known.directories if directory not in gone])
        records.append(latest.with_directories(left or known.directories))

    def note_metadata_offset(self, broker: int, metadata_offset: int) -> None:
        """Note the metadata offset from elided heartbeats."""
        self._heartbeats.note_metadata_offset(broker, metadata_offset)

    def fence(self, broker: int) -> None:
        """Fence a broker whose session has expired: it loses leadership and leaves every ISR.

        If fenced brokers have sessions, a fenced one may be fenced again.
        Kafka: ReplicationControlManager#maybeFenceOneStaleBroker.
        """
        known = self.image.brokers.get(broker)
        if known is not None and (not known.fenced or self._decide.keeps_fenced_sessions.yes()):
            self._heartbeats.fenced(broker)
            self._commit(self._fence_records(known))

    def _fence_records(self, known: BrokerRegistration) -> list[Record]:
        """Kafka: ReplicationControlManager#handleBrokerFenced."""
        self._host.reached(probes.BROKER_FENCED)
        return [*self._removal_records(known.broker), known.in_state(fenced=True, shutting_down=known.shutting_down)]

    def _unfence_records(self, known: BrokerRegistration, gone: list[int]) -> list[Record]:
        """End a broker's fencing: it may lead partitions without a leader.

        Rule ``reported_directory`` decides about those in the directories of `gone`, which fail with this heartbeat.
        Kafka: ReplicationControlManager#handleBrokerUnfenced.
        """
        self._host.reached(probes.BROKER_UNFENCED)
        records: list[Record] = [known.in_state(fenced=False, shutting_down=known.shutting_down)]
        for state in self.image.partitions.values():
            if state.leader == NO_LEADER:
                self._add(records, self._change(state, self._accepts_returning(state, known.broker, gone)))
        return records

    def _accepts_returning(self, state: PartitionRegistration, broker: int, gone: list[int]) -> Callable[[int], bool]:
        """Whether a broker may lead a partition while this broker's fencing ends."""
        if not (gone and broker in state.replicas and state.directory(broker) in gone):
            return lambda one: one == broker or self.image.is_active(one)
        excludes = self._decide.excludes_reported
        return lambda one: not excludes.yes() if one == broker else self.image.is_active(one)

    def _shutdown_records(self, known: BrokerRegistration) -> list[Record]:
        """Begin controlled shutdown; before 3.3 (KIP-841) the registration did not show it.

        Kafka: ReplicationControlManager#handleBrokerInControlledShutdown.
        """
        self._host.reached(probes.BROKER_RELIEVED)
        if self._decide.admits_any_member.yes():
            return self._removal_records(known.broker)
        return [known.in_state(fenced=known.fenced, shutting_down=True), *self._removal_records(known.broker)]

    def _removal_records(self, broker: int) -> list[Record]:
        """Remove a broker from all ISRs. Kafka: ReplicationControlManager#generateLeaderAndIsrUpdates."""
        records: list[Record] = []
        for state in self.image.partitions.values():
            if broker in state.isr:
                self._add(records, self._without(state, broker))
        return records

    def _is_in_sync(self, broker: int) -> bool:
        """Whether a broker is in an ISR; a new incarnation may be, if registration did not remove it."""
        return any(broker in state.isr for state in self.image.partitions.values())

    def _leads(self, broker: int) -> bool:
        """Kafka: BrokersToIsrs#hasLeaderships."""
        return any(state.leader == broker for state in self.image.partitions.values())
