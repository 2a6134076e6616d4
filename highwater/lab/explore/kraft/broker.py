"""The events that a broker has in KRaft: registration, replayed metadata, AlterPartition.

A follower outside of the ISR never holds the HW back: `replica.lag.time.max.ms` has passed for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.broker_machine import (
    DOWN,
    NAME,
    STARTING,
    BrokerMachine,
    BrokerOutcome,
    ExploredDisk,
    Process,
)
from highwater.lab.explore.host import NOW_US, UNSETTLED, RecordingHost, follow, stop_following
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager, proposed_isr
from sim.protocol.kraft.broker_lifecycle_manager import adopts_registration
from sim.protocol.kraft.local_replica_change import AWAITS, FOLLOWS, LEADS, LEADS_ON, OUTDATED, local_replica_change
from sim.protocol.kraft.metadata import MIN_ISR, BrokerRegistration, ConfigRecord, PartitionRegistration
from sim.protocol.kraft.metadata_delta import MetadataDelta
from sim.protocol.messages import NO_BROKER_EPOCH, NONE, ProduceRequest
from sim.protocol.replica.followers import NEVER_US
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from highwater.lab.explore.interning import InternTable
    from sim.protocol.decisions import Decisions
    from sim.protocol.kraft.metadata import Record
    from sim.protocol.replica.replica import Replica

CONSTANTS: Final[dict[str, Any]] = {
    "caught_up_us": NEVER_US,
    "fetch_us": NOW_US,
    "leader_leo_at_fetch": -1,
    "delayed_until_us": NOW_US,
    "version": -1,
    "rounds": 0,
    "is_open": True,
}
"""Times, numbers that only reports read, and whether a fetch session is open, which only ZooKeeper's brokers read."""
_FORMER_FOLLOWERS: Final = "leo-from-earlier-leadership"
"""The mutant that reads the followers of an earlier leadership."""


class KRaftBrokerHost(RecordingHost):
    """Records what partition, fetcher and AlterPartition manager ask of their broker."""

    def __init__(
        self, broker: int, incarnation: int, broker_epoch: int, registrations: dict[int, BrokerRegistration]
    ) -> None:
        super().__init__(broker, broker_epoch)
        self.incarnation = incarnation
        self.registrations = registrations
        self.manager = AlterPartitionManager(self)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """Note as committed what a leader's HW passes, and the ``min.insync.replicas`` by which it does."""
        super().hw_moved(replica, previous)
        if self.committed:
            assert isinstance(replica, Partition)
            self.min_isr = min(replica.min_insync_replicas, self.min_isr or replica.min_insync_replicas)

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:  # noqa: ARG002
        """Note acknowledged records; a refused write is not sent again."""
        if not error:
            self.acked |= ((1 << request.count) - 1) << request.first_id

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache.is_alive`."""
        known = self.registrations.get(broker)
        return known is not None and not known.fenced and not known.shutting_down

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache.registered_epoch`."""
        known = self.registrations.get(broker)
        return UNREGISTERED if known is None or known.fenced else known.broker_epoch

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """As `AlterPartitionChannel.propose_isr`."""
        self.manager.submit(partition, proposed_isr(partition, isr, self.broker_epoch), NOW_US)

    # AlterPartitionHost.

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost.send_alter_partition`."""
        assert self.proposal is None
        (item,) = changes
        self.proposal = self.broker_epoch, item

    def retry_alter_partition(self, after_us: int) -> None:  # noqa: ARG002
        """See `AlterPartitionHost.retry_alter_partition`."""
        raise AssertionError("a request with a stale broker epoch is not delivered")

    # FetcherHost.

    def halt(self, reason: str) -> None:
        """See `FetcherHost.halt`."""
        raise AssertionError(f"KRaft brokers do not halt: {reason}")


class StartedBroker(NamedTuple):
    """A broker that starts, frozen.

    Attributes:
        state: `STARTING`.
        disk: what it loads.
        incarnation: of its process.
        clean_epoch: see `View`.
        broker_epoch: see `View`.
        metadata: what the controller had committed when it registered the broker, None before that.
    """

    state: int
    disk: ExploredDisk
    incarnation: int
    clean_epoch: int
    broker_epoch: int = NO_BROKER_EPOCH
    metadata: Any = None


class KRaftBrokerMachine(BrokerMachine[KRaftBrokerHost]):
    """All snapshots of the brokers of a KRaft cluster, and what events make of them.

    Args:
        decide: the rules of all brokers.
        payloads: contents of messages.
        records: contents of metadata records.
        min_isr_changes: whether ``min.insync.replicas`` may change.
    """

    def __init__(
        self, decide: Decisions, payloads: InternTable, records: InternTable, *, min_isr_changes: bool
    ) -> None:
        constants = dict(CONSTANTS)
        if decide.rules.mutant != _FORMER_FOLLOWERS:
            constants["_former"] = {}
        super().__init__(decide, payloads, constants)
        self._records = records
        self._keeps_answered = min_isr_changes and decide.adopts_answered_min_isr.answer
        self._thawed: list[Record] = []
        self._handlers |= {"replay": self._replay, "altered": self._altered}

    def record(self, number: int) -> Record:
        """A metadata record."""
        while len(self._thawed) <= number:
            self._thawed.append(self._freezer.thaw(self._records[len(self._thawed)], None))
        return self._thawed[number]

    # Snapshots.

    def _host(self, own: Any) -> KRaftBrokerHost:
        broker, incarnation, broker_epoch, registrations, _ = own
        return KRaftBrokerHost(broker, incarnation, broker_epoch, self._freezer.thaw(registrations, None))

    def _thaw(self, frozen: Any) -> Process[KRaftBrokerHost]:
        process = super()._thaw(frozen)
        *_, pending = frozen[-1]
        if pending is not None:
            process.host.manager.submit(process.partition, self._freezer.thaw(pending, None), NOW_US)
            process.host.proposal = None  # It has been sent before.
        return process

    def _own(self, process: Process[KRaftBrokerHost]) -> Any:
        host, partition = process.host, process.partition
        freeze = self._freezer.freeze
        if not partition.is_leader:
            # Only a leader reads these, and it gets new ones when it is elected. Records arrive in order.
            partition.state.commit(())
            partition.epoch_start = 0
            partition.partition_epoch = -1
        if not partition.state.pending:
            # Only a proposal reads these.
            partition.state.broker_epochs = {}
            partition.state.advances_hw = False
        if not self._keeps_answered:
            partition.answered_min_isr = 0
        pending = host.manager.pending.get(NAME)
        registrations = freeze(dict(sorted(host.registrations.items())))
        return host.broker, host.incarnation, host.broker_epoch, registrations, pending and freeze(pending)

    def _details(self, process: Process[KRaftBrokerHost]) -> tuple[Any, ...]:
        partition, host = process.partition, process.host
        state, leads, leo = partition.state, partition.is_leader, partition.log.leo
        states = partition.followers.states.values()
        lagging = [follower.broker for follower in states if follower.in_isr and follower.leo != leo]
        return (
            tuple(lagging) if leads and not state.pending else (),
            partition.partition_epoch,
            state.isr if leads else (),
            frozenset({*state.isr, *state.pending}) if leads else frozenset(),
            host.broker_epoch,
            host.incarnation,
            NO_BROKER_EPOCH,
            True,
            partition.min_insync_replicas if leads else 0,
            partition.answered_min_isr,
        )

    # Life cycle.

    def _end(self, process: Process[KRaftBrokerHost], kept: int, clean: bool) -> int:
        """The process ends, and `kept` offsets of its log remain."""
        host = process.host
        return self._number_ended(process, kept, host.incarnation, host.broker_epoch if clean else NO_BROKER_EPOCH)

    def _before_up(self, snapshot: int, kind: str, *details: Any) -> BrokerOutcome:
        frozen = self._snapshots[snapshot]
        if frozen[0] == DOWN:
            assert kind == "start"
            # The process registers with the broker epoch in its clean-shutdown file.
            _, disk, incarnation, clean_epoch = frozen
            return self._begun(snapshot, StartedBroker(STARTING, disk, incarnation + 1, clean_epoch))
        if kind == "end":
            return BrokerOutcome(self._end_starting(frozen, *details))
        if kind == "publish":
            return self._outcome(self._publish(frozen, *details))
        if kind == "committed":
            return self._begun(snapshot, frozen._replace(metadata=details))
        assert kind == "registered"
        answered, epoch = details
        is_answer = frozen.broker_epoch < 0 and answered == frozen.incarnation
        if adopts_registration(self.decide, frozen.broker_epoch, is_answer=is_answer):
            frozen = frozen._replace(broker_epoch=epoch)
        return self._begun(snapshot, frozen)

    def _begun(self, before: int, start: StartedBroker) -> BrokerOutcome:
        number = self._numbers.get(start)
        if number is None:
            view = replace(
                self.views[before],
                state=STARTING,
                incarnation=start.incarnation,
                broker_epoch=start.broker_epoch,
                knows_metadata=start.metadata is not None,
            )
            number = self._add(start, view)
        return BrokerOutcome(number)

    def _end_starting(self, start: StartedBroker, kept: int, _: bool) -> int:
        """A process that has not published metadata ends: its clean-shutdown file is gone."""
        log = self._load(start.disk)[0]
        log.truncate_to(kept)
        file = self._freezer.thaw(start.disk.epochs, None)
        return self._number_down(start.disk.broker, log, file, min(start.disk.hw, log.leo), start.incarnation)

    def _publish(self, start: StartedBroker, image: Any, numbers: tuple[int, ...]) -> Process[KRaftBrokerHost]:
        """The first replay of metadata, with the broker's own registration."""
        registrations, record, min_isr = image if start.metadata is None else start.metadata
        for number in numbers:  # The configuration at the start.
            known = self.record(number)
            if isinstance(known, ConfigRecord) and known.key == MIN_ISR:
                min_isr = known.value
        broker = start.disk.broker
        host = KRaftBrokerHost(broker, start.incarnation, start.broker_epoch, self._freezer.thaw(registrations, None))
        process = self._start_process(start.disk, host, start.disk.hw, min_isr, NOW_US)
        self._replay(process, (record, *numbers) if record >= 0 else numbers, begins=True)
        return process

    # Metadata (`BrokerMetadataPublisher`).

    def _replay(self, process: Process[KRaftBrokerHost], numbers: tuple[int, ...], *, begins: bool = False) -> None:
        delta = MetadataDelta([self.record(number) for number in numbers])
        for record in delta.registrations:
            assert isinstance(record, BrokerRegistration)
            process.host.registrations[record.broker] = record
        last = delta.applies_configs_last(self.decide, begins=begins)
        min_isr = delta.configs.get(MIN_ISR, 0)
        assert isinstance(min_isr, int)
        if min_isr and not last:
            process.partition.set_min_isr(min_isr)
        for state in delta.partitions.values():
            self._apply(process, state)
        if min_isr and last:
            process.partition.set_min_isr(min_isr)

    def _apply(self, process: Process[KRaftBrokerHost], state: PartitionRegistration) -> None:
        """As `KRaftReplicaManager` does by the same changes."""
        partition, host, fetchers = process.partition, process.host, process.fetchers
        change = local_replica_change(partition.broker, partition, state, shutting_down=False)
        if change == OUTDATED:
            return
        if change in (LEADS, LEADS_ON):
            if change == LEADS:
                stop_following(NAME, fetchers)
                host.settled_epoch = state.leader_epoch
            partition.become_leader(state, NOW_US)
        elif change == AWAITS:
            stop_following(NAME, fetchers)
            partition.become_follower(state)
            host.settled_epoch = UNSETTLED
        elif change == FOLLOWS:
            follow(partition, state, fetchers, host)
        else:
            partition.become_follower(state)

    # Leading.

    def _lag(self, process: Process[KRaftBrokerHost], follower: int) -> None:
        """One ISR member has not been caught up for ``replica.lag.time.max.ms``."""
        followers = process.partition.followers
        for state in followers.states.values():
            state.caught_up_us = NEVER_US if state.broker == follower else NOW_US
        process.partition.shrink_isr(NOW_US)

    def _altered(self, process: Process[KRaftBrokerHost], payload: int) -> None:
        results = self.payload(payload)
        process.host.manager.on_reply(NONE, {NAME: results}, NOW_US)
