"""The controller functions of a release, asked about one partition of a real cluster at a time.

`sim.protocol.kraft` decides here as in a simulation: the audit gives it a partition's state and an event, and reads the
records that it would append. Broker ids are raised by one, because the simulation's 0 means "no leader".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.image import RegisteredPartition
from highwater.lab.audit.records import NO_LEADER
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem
from sim.protocol.kraft.metadata import (
    ELR_FEATURE,
    FIRST_DIRECTORY,
    MIN_ISR,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
)
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION, NotAssignedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from highwater.lab.audit.image import ClusterImage, Key
    from sim.protocol.kraft.metadata import Record
    from sim.protocol.rules import Rules

NAME: Final = "p"
_OTHER: Final = "other"
_OFFLINE: Final = FIRST_DIRECTORY + 1
"""Stands for a log directory that is not online."""
_FUTURE: Final = 1 << 60

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ControllerEvent:
    """What a controller may have handled.

    Attributes:
        text: for readers.
        ask: lets a controller handle it.
        unfenced: a broker that was fenced before this event, though the record of its unfencing comes before the
            partition's.
        serving: a broker that was not shutting down before this event.
        unclean: unclean elections are allowed, though no record says so.
    """

    text: str
    ask: Callable[[PartitionController], object]
    unfenced: int = -1
    serving: int = -1
    unclean: bool = False


class _Host:
    """The node of a controller that is asked one question: keeps the records that it appends."""

    def __init__(self) -> None:
        self.appended: list[Record] = []

    def append(self, records: list[Record]) -> None:
        self.appended += records

    def has_session(self, _: int) -> bool:
        return False

    def reached(self, _: int) -> None:
        pass

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        pass

    def ask_log_info(self, broker: int, name: str) -> None:
        pass

    def schedule_recovery_timeout(self, timer: int, after_us: int = 0) -> None:
        pass


class PartitionController:
    """A controller that knows one partition of an image, before an event."""

    def __init__(
        self, image: ClusterImage, key: Key, state: RegisteredPartition, decide: Decisions, event: ControllerEvent
    ) -> None:
        self._host = _Host()
        metadata = MetadataImage()
        metadata.offset = image.next_offset
        for broker, known in image.brokers.items():
            metadata.brokers[broker + 1] = BrokerRegistration(
                broker + 1,
                broker + 1,
                known.broker_epoch,
                known.fenced or broker == event.unfenced,
                known.shutting_down and broker != event.serving,
            )
        offline = {
            broker + 1: _OFFLINE
            for broker, directory in zip(state.replicas, state.directories, strict=False)
            if broker in image.brokers and not image.brokers[broker].has_online(directory)
        }
        metadata.partitions[NAME] = PartitionRegistration(
            NAME,
            state.leader + 1,
            state.leader_epoch,
            _raised(state.isr),
            state.partition_epoch,
            _raised(state.replicas),
            elr=_raised(state.elr),
            last_known_elr=_raised(state.last_known_elr),
            adding=_raised(state.adding),
            removing=_raised(state.removing),
            recovering=state.recovering,
            directories=offline,
        )
        settings = {
            MIN_ISR: image.min_isr_setting(key),
            UNCLEAN_ELECTION: event.unclean or image.unclean_enabled(key),
            ELR_FEATURE: int(image.elr_enabled),
        }
        self._metadata = metadata
        self.controller = QuorumController(metadata, decide, self._host, settings)

    def epoch_of(self, broker: int) -> int:
        """The broker's epoch; -1 if it is not registered."""
        known = self._metadata.brokers.get(broker + 1)
        return -1 if known is None else known.broker_epoch

    def lead_another(self, broker: int) -> None:
        """Let the broker lead another partition, so that its controlled shutdown takes time."""
        self._metadata.partitions[_OTHER] = PartitionRegistration(
            _OTHER, broker + 1, 0, (broker + 1,), 0, (broker + 1,)
        )

    def states(self, event: ControllerEvent) -> list[RegisteredPartition]:
        """The partition's states after each of its records that the event appends; none if it appends none."""
        try:
            event.ask(self)
        except NotAssignedError:
            return []
        return [
            RegisteredPartition(
                _lowered(record.replicas),
                _lowered(record.isr),
                record.leader - 1,
                record.leader_epoch,
                record.partition_epoch,
                _lowered(record.removing),
                _lowered(record.adding),
                record.recovering,
                _lowered(record.elr),
                _lowered(record.last_known_elr),
            )
            for record in self._host.appended
            if isinstance(record, PartitionRegistration) and record.name == NAME
        ]


def outcome(
    image: ClusterImage, key: Key, state: RegisteredPartition, rules: Rules, event: ControllerEvent
) -> list[RegisteredPartition]:
    """The states that a release's controller would give the partition for an event, in order."""
    return PartitionController(image, key, state, _decisions(rules), event).states(event)


@lru_cache(maxsize=16)
def _decisions(rules: Rules) -> Decisions:
    """The decisions of a release, made once: that takes as long as an event."""
    return Decisions(rules)


def _raised(brokers: Iterable[int]) -> Replicas:
    return tuple([broker + 1 for broker in brokers])


def _lowered(brokers: Iterable[int]) -> Replicas:
    return tuple([broker - 1 for broker in brokers])


# Events.


def alter_partition(state: RegisteredPartition, isr: Replicas) -> ControllerEvent:
    """The leader proposes an ISR. Kafka: ReplicationControlManager#alterPartition."""

    def ask(one: PartitionController) -> object:
        item = AlterPartitionItem(NAME, _raised(isr), state.leader_epoch, state.partition_epoch, {})
        return one.controller.alter_partition(state.leader + 1, one.epoch_of(state.leader), [item])

    return ControllerEvent(f"leader {state.leader} proposes ISR {listed(isr)} (AlterPartition)", ask)


def fence(broker: int) -> ControllerEvent:
    """A broker's session expires, or its controlled shutdown ends.

    Kafka: ReplicationControlManager#handleBrokerFenced.
    """
    return ControllerEvent(f"broker {broker} is fenced", lambda owner: owner.controller.fence(broker + 1))


def unfence(broker: int) -> ControllerEvent:
    """A broker's heartbeat unfences it. Kafka: ReplicationControlManager#handleBrokerUnfenced."""

    def ask(one: PartitionController) -> object:
        return one.controller.heartbeat(broker + 1, one.epoch_of(broker), _FUTURE)

    return ControllerEvent(f"broker {broker} is unfenced", ask, unfenced=broker)


def shut_down(broker: int) -> ControllerEvent:
    """A broker asks for controlled shutdown. Kafka: ReplicationControlManager#handleBrokerInControlledShutdown."""

    def ask(one: PartitionController) -> object:
        one.lead_another(broker)
        return one.controller.heartbeat(broker + 1, one.epoch_of(broker), _FUTURE, want_shut_down=True)

    return ControllerEvent(f"broker {broker} begins controlled shutdown", ask, serving=broker)


def register(broker: int, *, clean: bool) -> ControllerEvent:
    """Another incarnation of a broker registers. Kafka: ReplicationControlManager#handleBrokerShutdown."""

    def ask(one: PartitionController) -> object:
        epoch = one.epoch_of(broker)
        return one.controller.register(broker + 1, -1, epoch if clean else -1)

    how = "clean" if clean else "unclean"
    return ControllerEvent(f"broker {broker} registers after {'a' if clean else 'an'} {how} shutdown", ask)


def reassign(replicas: Replicas) -> ControllerEvent:
    """Kafka: ReplicationControlManager#changePartitionReassignment."""
    return ControllerEvent(
        f"reassignment to {listed(replicas)} is requested",
        lambda owner: owner.controller.reassign(NAME, _raised(replicas)),
    )


def cancel_reassignment() -> ControllerEvent:
    """Kafka: ReplicationControlManager#cancelPartitionReassignment."""
    return ControllerEvent("the reassignment is cancelled", lambda owner: owner.controller.cancel_reassignment(NAME))


def elect(kind: str, designated: int = NO_LEADER) -> ControllerEvent:
    """Kafka: ReplicationControlManager#electLeader."""
    return ControllerEvent(
        f"{kind.lower()} election",
        lambda owner: owner.controller.elect(NAME, kind, designated + 1),
    )


def assign_directory(broker: int) -> ControllerEvent:
    """A broker reports another log directory of its replica.

    Kafka: ReplicationControlManager#handleAssignReplicasToDirs.
    """
    return ControllerEvent(
        f"broker {broker} reports the log directory of its replica",
        lambda owner: owner.controller.assign_directory(NAME, broker + 1, owner.epoch_of(broker), FIRST_DIRECTORY),
    )


def set_min_isr(value: int) -> ControllerEvent:
    """``min.insync.replicas`` changes. Kafka: ConfigurationControlManager#incrementalAlterConfig."""
    return ControllerEvent(f"min.insync.replicas is set to {value}", lambda owner: owner.controller.set(MIN_ISR, value))


def listed(brokers: Sequence[int]) -> str:
    """Brokers for readers."""
    return " ".join(map(str, brokers)) if brokers else "(empty)"
