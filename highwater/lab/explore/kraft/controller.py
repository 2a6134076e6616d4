"""The active KRaft controller as a function: a snapshot and an event go in, the next snapshot, the committed records
and the response come out.

The code is `sim.protocol.kraft.quorum_controller`. A registered broker has a session exactly while it is unfenced. The
quorum itself is not modelled: what the controller appends is committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.broker_machine import NAME
from highwater.lab.explore.freezing import Freezer
from sim.protocol.kraft.alter_partition_manager import Result
from sim.protocol.kraft.metadata import (
    ELR_FEATURE,
    MIN_ISR,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
)
from sim.protocol.kraft.partition_change_builder import PREFERRED
from sim.protocol.kraft.quorum_controller import QuorumController

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.interning import InternTable
    from sim.protocol.decisions import Decisions
    from sim.protocol.kraft.metadata import Record

Event = tuple[Any, ...]
Order = tuple[int, ...]


class KRaftControllerHost:
    """Records what the controller commits."""

    def __init__(self) -> None:
        self.controller: QuorumController | None = None
        self.records: list[Record] = []

    def append(self, records: list[Record]) -> None:
        """See `ReplicationHost.append`."""
        self.records += records

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost.has_session`."""
        assert self.controller is not None
        return not self.controller.image.brokers[broker].fenced

    def reached(self, probe: int) -> None:
        """See `RecoveryHost.reached`."""

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicationHost.record_recoveries`."""

    def ask_log_info(self, broker: int, name: str) -> None:  # noqa: ARG002
        """See `RecoveryHost.ask_log_info`."""
        raise AssertionError("unclean recovery is not explored")

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:  # noqa: ARG002
        """See `RecoveryHost.schedule_recovery_timeout`."""
        raise AssertionError("unclean recovery is not explored")


@dataclass(frozen=True, slots=True)
class RegistrationOutcome:
    """A broker as the controller knows it."""

    incarnation: int
    fenced: bool


@dataclass(frozen=True, slots=True)
class ControllerView:
    """Properties of a snapshot for the search.

    Attributes:
        leader: of the partition, 0 for none.
        epoch: its leader epoch.
        partition_epoch: its partition epoch.
        isr: in-sync replicas.
        elr: eligible leader replicas.
        last_known_elr: fallback candidates.
        brokers: by id.
        min_isr: ``min.insync.replicas``.
        elr_level: of feature ``eligible.leader.replicas.version``.
        image: all registrations, the partition's record and `min_isr`, for a broker that starts.
    """

    leader: int
    epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    brokers: dict[int, RegistrationOutcome]
    min_isr: int
    elr_level: int
    image: tuple[Any, int, int]


class ControllerDecision(NamedTuple):
    """The result of an event at the controller.

    Attributes:
        snapshot: its next snapshot.
        records: numbers of the committed records.
        error: of the request.
        reply: broker epoch of a registration, or payload of an AlterPartition response.
    """

    snapshot: int
    records: tuple[int, ...]
    error: str = ""
    reply: int = -1


class ControllerMachine:
    """All snapshots of the controller, and what events make of them.

    Args:
        decide: the rules of the controller.
        payloads: contents of messages.
        records: contents of metadata records.
        min_isr: ``min.insync.replicas`` at first.
        brokers: ids of the brokers.
    """

    def __init__(
        self, decide: Decisions, payloads: InternTable, records: InternTable, min_isr: int, brokers: tuple[int, ...]
    ) -> None:
        self.views: list[ControllerView] = []
        self._decide = decide
        self._payloads = payloads
        self._records = records
        self._min_isr: Final = min_isr
        self._brokers = brokers
        self._freezer = Freezer(decide, {})
        self._snapshots: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._outcomes: dict[tuple[int, Event, Order], ControllerDecision] = {}

    def create(self) -> int:
        """The snapshot of a new cluster: all brokers are registered and unfenced, the first one leads."""
        host = KRaftControllerHost()
        image = MetadataImage()
        image.settings[MIN_ISR] = self._min_isr
        image.settings[ELR_FEATURE] = int(self._decide.elr.answer)
        controller = self._controller(image, host)
        for broker in self._brokers:
            controller.register(broker, 1, -1)
            _canonical(controller.image)
            controller.heartbeat(broker, 1, 1)
        controller.create_partition(NAME, self._brokers)
        return self._number(_canonical(controller.image))

    def step(self, snapshot: int, event: Event, order: Order) -> ControllerDecision:
        """The outcome of an event, where elections try the replicas in this order."""
        key = snapshot, event, order
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._compute(snapshot, event, order)
        return known

    def _controller(self, image: MetadataImage, host: KRaftControllerHost) -> QuorumController:
        host.controller = controller = QuorumController(image, self._decide, host, {})
        controller.recovery = None
        return controller

    def _compute(self, snapshot: int, event: Event, order: Order) -> ControllerDecision:
        image: MetadataImage = self._freezer.thaw(self._snapshots[snapshot], None)
        image.partitions[NAME] = _reordered(image.partitions[NAME], order)
        host = KRaftControllerHost()
        controller = self._controller(image, host)
        kind, *details = event
        error, reply = "", -1
        if kind == "fence":
            controller.fence(*details)
        elif kind == "elect":
            error = controller.elect(NAME, PREFERRED)
        elif kind == "heartbeat":
            error = controller.heartbeat(*details).error
        elif kind == "register":
            broker, incarnation, clean_epoch = details
            error = controller.register(broker, incarnation, clean_epoch).error
            reply = incarnation
        elif kind == "configure":
            error = controller.set(*details)
        else:
            assert kind == "alter"
            broker, payload = details
            broker_epoch, item = self._freezer.thaw(self._payloads[payload], None)
            error, results = controller.alter_partition(broker, broker_epoch, [item])
            if not error:
                reply = self._payloads.number(self._freezer.freeze(self._sorted(results[NAME])))
        _canonical(image)
        image.partitions[NAME] = _reordered(image.partitions[NAME], self._brokers)
        return ControllerDecision(
            self._number(image), tuple([self._record(record) for record in host.records]), error, reply
        )

    def _sorted(self, result: Result) -> Result:
        error, isr, partition_epoch, leader_epoch, min_isr = result
        return error, tuple(sorted(isr)), partition_epoch, leader_epoch, min_isr

    def _record(self, record: Record) -> int:
        if isinstance(record, PartitionRegistration):
            record = _reordered(record, self._brokers)
        elif isinstance(record, BrokerRegistration):
            record = _renumbered(record)
        return self._records.number(self._freezer.freeze(record))

    def _number(self, image: MetadataImage) -> int:
        frozen = self._freezer.freeze(image)
        number = self._numbers.get(frozen)
        if number is None:
            number = self._numbers[frozen] = len(self._snapshots)
            self._snapshots.append(frozen)
            self.views.append(self._view(image))
        return number

    def _view(self, image: MetadataImage) -> ControllerView:
        state, min_isr, level = image.partitions[NAME], image.settings[MIN_ISR], image.settings[ELR_FEATURE]
        assert isinstance(min_isr, int)
        assert isinstance(level, int)
        return ControllerView(
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.isr,
            state.elr,
            state.last_known_elr,
            {
                broker: RegistrationOutcome(registration.incarnation, registration.fenced)
                for broker, registration in image.brokers.items()
            },
            min_isr,
            level,
            (self._freezer.freeze(image.brokers), self._record(state), min_isr),
        )


def _canonical(image: MetadataImage) -> MetadataImage:
    """Number registrations by incarnation and forget offsets, in place.

    A broker epoch is compared with others of the same broker only, and increases with the incarnation. A heartbeat's
    offset is compared with that of the registration, which every running broker has replayed.
    """
    image.offset = 0
    for name, cleared in image.cleared_elr.items():
        image.cleared_elr[name] = tuple(sorted(cleared))  # Only the number of times that each is in it matters.
    for broker, known in image.brokers.items():
        image.brokers[broker] = _renumbered(known)
    return image


def _renumbered(known: BrokerRegistration) -> BrokerRegistration:
    return BrokerRegistration(known.broker, known.incarnation, known.incarnation, known.fenced, known.shutting_down)


def _reordered(state: PartitionRegistration, order: Order) -> PartitionRegistration:
    """The same state with another order of the assignment."""

    def ordered(brokers: Sequence[int]) -> tuple[int, ...]:
        return tuple([broker for broker in order if broker in brokers])

    return PartitionRegistration(
        state.name,
        state.leader,
        state.leader_epoch,
        ordered(state.isr),
        state.partition_epoch,
        ordered(state.replicas),
        elr=ordered(state.elr),
        last_known_elr=ordered(state.last_known_elr),
        recovering=state.recovering,
    )
