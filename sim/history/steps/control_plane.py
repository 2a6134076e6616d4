"""Steps of the control plane: leaders, ISR and ELR, assignments, sessions, and records that a quorum commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sim.history.steps.base import ASIDE, CHANGE, DETAIL, FACT, TURN, InEpoch, Lane, Shown, Step, StepKind
from sim.protocol.kraft.metadata import PartitionRegistration, Record
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

ELECTED: Final[StepKind] = StepKind(
    "elected", 4, Lane.BROKER,
    "a leader was chosen and persisted (broker 0: none): leader_epoch",
    "The controller elects {elected} leader in leader epoch {leader_epoch}.",
    weight=TURN, kept=True,
    moments={"elected": "a leader was chosen and persisted"},
)  # fmt: skip


class Elected(InEpoch):
    """A leader was elected, 0 for none.

    Attributes:
        broker: the leader, 0 for none.
        by_isr: whether a leader from outside the ISR means an unclean election; without it, the control plane elects
            from the ELR, too, and records `UNCLEAN_ELECTION` itself.
        recovering: whether the partition recovers from an unclean election (LeaderRecoveryState), this one or an
            earlier one.
    """

    __slots__ = ("by_isr", "recovering")

    kind = ELECTED

    def __init__(self, leader: int, epoch: int, *, by_isr: bool = True, recovering: bool = False) -> None:
        self.broker = leader
        self.epoch = epoch
        self.offset = self.other = 0
        self.by_isr = by_isr
        self.recovering = recovering

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_elected(self)


EPOCH_RAISED: Final[StepKind] = StepKind(
    "epoch-raised", 27, Lane.BROKER,
    "the leader epoch was raised and nothing else: broker = leader, leader_epoch",
    "Without an election the leader epoch becomes {leader_epoch}; broker {broker} leads on.",
    weight=DETAIL, kept=True,
)  # fmt: skip


class EpochRaised(InEpoch):
    """The leader epoch was raised without another change.

    Attributes:
        broker: the leader.
    """

    __slots__ = ()

    kind = EPOCH_RAISED

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_epoch_raised(self)


ISR: Final[StepKind] = StepKind(
    "isr", 5, Lane.CONTROL_PLANE,
    "an ISR was persisted: isr, leader_epoch",
    "The ISR becomes {isr}.",
    weight=CHANGE, kept=True,
    moments={"isr": "an ISR was persisted", "joined": "an ISR was persisted that has one member more"},
)  # fmt: skip


class Isr(Step):
    """An ISR was persisted together with the ELR; an `Elr` follows if that changed. The first has no ISR `before`.

    Attributes:
        epoch: the leader epoch; -1 for the first ISR.
        isr: the ISR.
        before: the ISR before; None for the first.
        elr: the ELR.
    """

    __slots__ = ("before", "elr", "isr")

    kind = ISR

    def __init__(
        self, isr: tuple[int, ...], epoch: int, before: tuple[int, ...] | None = None, elr: tuple[int, ...] = ()
    ) -> None:
        self.broker = 0
        self.isr = isr
        self.epoch = epoch
        self.offset = _as_set(isr)
        self.other = 0
        self.before = before
        self.elr = elr

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_isr(self)

    def fields(self) -> Shown:
        return {"isr": list(self.isr), "leader_epoch": self.epoch}

    def moments(self) -> Iterable[tuple[str, int]]:
        before = self.before or ()
        moved = _moved(before, self.isr)
        return [("isr", moved), ("joined", moved)] if len(self.isr) > len(before) else [("isr", moved)]


ISR_SENT: Final[StepKind] = StepKind(
    "isr-sent", FACT, Lane.NONE,
    "a leader asks for another ISR; it is a step once it is persisted",
    moments={"isr-sent": "a leader asks for another ISR"},
)  # fmt: skip


class IsrSent(Step):
    """A leader proposes an ISR.

    Attributes:
        isr: the proposed ISR.
        before: the ISR that the leader knows.
    """

    __slots__ = ("before", "isr")

    kind = ISR_SENT

    def __init__(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.broker = partition.broker
        self.isr = isr
        self.before: tuple[int, ...] = partition.state.isr

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_isr_sent(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        return [("isr-sent", _moved(self.before, self.isr))]


ELR: Final[StepKind] = StepKind(
    "elr", 48, Lane.CONTROL_PLANE,
    "eligible leader replicas were persisted: elr, last_known_elr, leader_epoch",
    "The ELR becomes {elr}, the last known ELR {last_known_elr}.",
    weight=CHANGE, kept=True,
)  # fmt: skip


class Elr(Step):
    """Eligible leader replicas were persisted.

    Attributes:
        elr: the ELR.
        last_known_elr: the last known ELR.
    """

    __slots__ = ("elr", "last_known_elr")

    kind = ELR

    def __init__(self, elr: tuple[int, ...], last_known_elr: tuple[int, ...], epoch: int) -> None:
        self.broker = 0
        self.elr = elr
        self.last_known_elr = last_known_elr
        self.epoch = epoch
        self.offset = _as_set(elr)
        self.other = _as_set(last_known_elr)

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_elr(self)

    def fields(self) -> Shown:
        return {"elr": list(self.elr), "last_known_elr": list(self.last_known_elr), "leader_epoch": self.epoch}


DECIDED: Final[StepKind] = StepKind(
    "decided", FACT, Lane.NONE,
    "the control plane's decision is complete, or what it means for min ISR has changed",
)  # fmt: skip


class Decided(Step):
    """The control plane's decision is complete, or effective ``min.insync.replicas`` changed.

    Attributes:
        state: the partition's state.
        min_isr: effective ``min.insync.replicas``.
    """

    __slots__ = ("min_isr", "state")

    kind = DECIDED

    def __init__(self, state: LeaderAndIsr, min_isr: int) -> None:
        self.broker = state.leader
        self.state = state
        self.min_isr = min_isr

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_decided(self)


MIN_ISR: Final[StepKind] = StepKind(
    "min-isr", FACT, Lane.NONE,
    "effective min.insync.replicas as a promise of the ELR goes by it",
    kept=True,
)  # fmt: skip


class MinIsr(Step):
    """Effective ``min.insync.replicas``, changed or not.

    Attributes:
        size: effective ``min.insync.replicas``.
    """

    __slots__ = ("size",)

    kind = MIN_ISR

    def __init__(self, size: int) -> None:
        self.broker = 0
        self.size = size

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_min_isr(self)


ASSIGNED: Final[StepKind] = StepKind(
    "assigned", FACT, Lane.CONTROL_PLANE,
    "the assignment is another one, or a reassignment began or ended: replicas, target_replicas, reassignment = "
    "begins, goes on, completes, is cancelled",
    "The reassignment to {target_replicas} {reassignment}; the replicas are {replicas}.",
    weight=CHANGE, kept=True,
)  # fmt: skip


UNDER_WAY: Final = ("begins", "goes on")
"""Values of `ASSIGNED` with a reassignment in progress after it."""


class Assigned(Step):
    """The assignment changed, or a reassignment began, changed or ended.

    Without a reassignment in progress, `target` is empty. `before` are the previous assignment and target.

    Attributes:
        replicas: the assignment.
        target: the target of the reassignment; empty without one.
        before: the assignment and target before.
    """

    __slots__ = ("before", "replicas", "target")

    kind = ASSIGNED

    def __init__(
        self,
        replicas: tuple[int, ...],
        target: tuple[int, ...] = (),
        before: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    ) -> None:
        self.broker = 0
        self.replicas = replicas
        self.target = target
        self.before = before

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_assigned(self)

    def fields(self) -> Shown:
        _, aim = self.before
        if self.target:
            reassignment = UNDER_WAY[self.target == aim]
        else:
            reassignment = "completes" if sorted(self.replicas) == sorted(aim or self.replicas) else "is cancelled"
        target = self.target or aim or self.replicas
        return {"replicas": list(self.replicas), "target_replicas": list(target), "reassignment": reassignment}


DIRECTORY_ASSIGNED: Final[StepKind] = StepKind(
    "directory-assigned", FACT, Lane.CONTROL_PLANE,
    "a broker's replica is in another log directory (KIP-858): directory = disks that its machine had before",
    "The replica of broker {broker} is assigned to log directory {directory}.",
    weight=DETAIL,
    moments={"directory-assigned": "the metadata has another log directory of a replica"},
)  # fmt: skip


class DirectoryAssigned(Step):
    """A replica's log directory changed in the metadata.

    Attributes:
        directory: number of the log directory.
    """

    __slots__ = ("directory",)

    kind = DIRECTORY_ASSIGNED

    def __init__(self, broker: int, directory: int) -> None:
        self.broker = broker
        self.directory = directory

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_directory_assigned(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "directory": self.directory}


METADATA_SLOWED: Final[StepKind] = StepKind(
    "metadata-slowed", FACT, Lane.BROKER,
    "a broker receives metadata records later from now on: value = us",
    "From now on metadata reaches broker {broker} with a delay of {duration}.",
    weight=TURN, method="metadata_delay",
)  # fmt: skip
METADATA_SPED_UP: Final[StepKind] = StepKind(
    "metadata-sped-up", FACT, Lane.BROKER,
    "a former delay of a broker's metadata records is over: value = us",
    "From now on metadata reaches broker {broker} without the delay of {duration}.",
    weight=DETAIL, method="metadata_delay",
)  # fmt: skip


class MetadataDelay(Step):
    """Metadata records reach a broker later, or earlier again, by `delay_us`.

    Attributes:
        delay_us: by how much later, or earlier again.
    """

    __slots__ = ("delay_us", "kind")

    def __init__(self, broker: int, by_us: int) -> None:
        self.kind = METADATA_SLOWED if by_us > 0 else METADATA_SPED_UP
        self.broker = broker
        self.delay_us: int = abs(by_us)

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_metadata_delay(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "value": self.delay_us}


UNCLEAN_ELECTION: Final[StepKind] = StepKind(
    "unclean-election", FACT, Lane.NONE,
    "an administrator accepts the loss of records to get a leader",
    kept=True, method="fact",
)  # fmt: skip
ELR_OFF: Final[StepKind] = StepKind(
    "elr-off", FACT, Lane.NONE,
    "the feature is off, though the release has it",
    kept=True, method="fact",
)  # fmt: skip
UNREGISTERED: Final[StepKind] = StepKind(
    "unregistered", FACT, Lane.NONE,
    "an administrator unregisters a broker: its shutdown no longer counts as clean",
    kept=True, method="fact",
)  # fmt: skip


class Fact(Step):
    """A fact without fields of its own; broker 0 if it is not about a broker."""

    __slots__ = ("kind",)

    def __init__(self, kind: StepKind, broker: int) -> None:
        self.kind = kind
        self.broker = broker

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_fact(self)


COORDINATOR_LOADED: Final[StepKind] = StepKind(
    "coordinator-loaded", FACT, Lane.BROKER,
    "in the history of __consumer_offsets: a broker has loaded it, and is the group coordinator",
    "Broker {broker} has loaded the committed offsets, and is the group coordinator.",
    weight=CHANGE, method="coordinator",
)  # fmt: skip
COORDINATOR_EMPTY: Final[StepKind] = StepKind(
    "coordinator-empty", FACT, Lane.BROKER,
    "in the history of __consumer_offsets: a broker that no longer leads it begins to load it, loads nothing, and "
    "answers as the group coordinator",
    "Broker {broker} no longer leads, loads no committed offsets, and answers as the group coordinator.",
    weight=CHANGE, method="coordinator",
)  # fmt: skip
COORDINATOR_FAILED: Final[StepKind] = StepKind(
    "coordinator-failed", FACT, Lane.BROKER,
    "in the history of __consumer_offsets: a broker that no longer leads it begins to load it, and gives that up",
    "Broker {broker} no longer leads, and loads no committed offsets.",
    weight=CHANGE, method="coordinator",
)  # fmt: skip
COORDINATOR_UNLOADED: Final[StepKind] = StepKind(
    "coordinator-unloaded", FACT, Lane.BROKER,
    "in the history of __consumer_offsets: a broker has unloaded it, and is not the group coordinator any more",
    "Broker {broker} has unloaded the committed offsets.",
    weight=CHANGE, method="coordinator",
)  # fmt: skip


class CoordinatorStep(Step):
    """A broker loaded or unloaded the committed offsets, or did not load them."""

    __slots__ = ("kind",)

    def __init__(self, kind: StepKind, broker: int) -> None:
        self.kind = kind
        self.broker = broker

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_coordinator(self)

    def fields(self) -> Shown:
        return {"broker": self.broker}


TOPIC_CREATED: Final[StepKind] = StepKind(
    "topic-created", FACT, Lane.CONTROL_PLANE,
    "partitions were created: partitions",
    "The controller creates {partitions}.",
    weight=CHANGE, method="topic",
)  # fmt: skip
TOPIC_DELETED: Final[StepKind] = StepKind(
    "topic-deleted", FACT, Lane.CONTROL_PLANE,
    "a topic was deleted: partitions",
    "The controller deletes {partitions}.",
    weight=CHANGE, method="topic",
)  # fmt: skip


class TopicChange(Step):
    """Partitions of a topic were created, or a topic was deleted with its partitions.

    Attributes:
        names: its partitions.
    """

    __slots__ = ("kind", "names")

    def __init__(self, kind: StepKind, names: tuple[str, ...]) -> None:
        self.kind = kind
        self.broker = 0
        self.names = names

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_topic(self)

    def fields(self) -> Shown:
        return {"partitions": ", ".join(self.names)}


TOPIC_REFUSED: Final[StepKind] = StepKind(
    "topic-refused", FACT, Lane.CONTROL_PLANE,
    "the controller refused to create partitions: replication_factor",
    "The controller refuses to create partitions with {replication_factor} replicas each.",
    weight=CHANGE,
)  # fmt: skip


class TopicRefused(Step):
    """The controller refused to create a topic, or further partitions of one.

    Attributes:
        replication_factor: number of replicas of each partition.
        brokers: the brokers that have log directories for new replicas, whether they run or not.
    """

    __slots__ = ("brokers", "replication_factor")

    kind = TOPIC_REFUSED

    def __init__(self, replication_factor: int, brokers: Sequence[int]) -> None:
        self.broker = 0
        self.replication_factor = replication_factor
        self.brokers = brokers

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_topic_refused(self)

    def fields(self) -> Shown:
        return {"replication_factor": self.replication_factor}


CONTROLLER: Final[StepKind] = StepKind(
    "controller", 25, Lane.BROKER,
    "a broker became controller: controller_epoch",
    "{who} becomes controller, in controller epoch {controller_epoch}.",
    weight=ASIDE,
    moments={"controller": "a broker became controller"},
)  # fmt: skip


class Controller(InEpoch):
    """A broker became controller.

    Attributes:
        broker: the controller.
        epoch: the controller epoch.
    """

    __slots__ = ()

    kind = CONTROLLER

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_controller(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "controller_epoch": self.epoch}


CONTROLLER_CRASHED: Final[StepKind] = StepKind(
    "controller-crashed", FACT, Lane.CONTROL_PLANE,
    "an event of the active controller threw an exception, and the controller resigned: cause",
    "The active controller throws an exception ({cause}) and resigns.",
    weight=CHANGE,
)  # fmt: skip


class ControllerCrashed(Step):
    """An event of the active controller threw an exception, and the controller resigned.

    Attributes:
        cause: the exception.
    """

    __slots__ = ("cause",)

    kind = CONTROLLER_CRASHED

    def __init__(self, cause: str) -> None:
        self.broker = 0
        self.cause = cause

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_controller_crashed(self)

    def fields(self) -> Shown:
        return {"cause": self.cause}


REGISTERED: Final[StepKind] = StepKind(
    "registered", 19, Lane.BROKER,
    "a broker registered, and (ZooKeeper) its session is open",
    "Broker {broker} registers.",
    weight=DETAIL, kept=True,
    moments={"registered": "a broker registered"},
)  # fmt: skip
UNFENCED: Final[StepKind] = StepKind(
    "unfenced", 47, Lane.CONTROL_PLANE,
    "a broker was unfenced (KRaft): its session is open",
    "Broker {broker} is unfenced.",
    kept=True, method="registered",
)  # fmt: skip


class Registered(Step):
    """A process registered; `opens`: this opened its session. As `UNFENCED`: it had registered before.

    Attributes:
        incarnation: number of the process among those of its broker.
        opens: whether this opened its session.
    """

    __slots__ = ("incarnation", "kind", "opens")

    def __init__(self, kind: StepKind, broker: int, incarnation: int, *, opens: bool = True) -> None:
        self.kind = kind
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.incarnation = incarnation
        self.opens = opens

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_registered(self)


SESSION_END: Final[StepKind] = StepKind(
    "session-end", 20, Lane.CONTROL_PLANE,
    "a broker's session ended (KRaft: it was fenced)",
    "The session of broker {broker} ends.",
    weight=CHANGE, kept=True,
    moments={"session-end": "a broker's session ended"},
)  # fmt: skip


class SessionEnd(Step):
    """A session ended; `fenced`: its broker stays registered.

    Attributes:
        fenced: whether its broker stays registered.
    """

    __slots__ = ("fenced",)

    kind = SESSION_END

    def __init__(self, broker: int, *, fenced: bool = False) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.fenced = fenced

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_session_end(self)


# A quorum's metadata.

COMMITTED_METADATA: Final[StepKind] = StepKind(
    "committed-metadata", FACT, Lane.NONE,
    "a quorum committed records; what they lead to is a step",
    has_records=True, method="metadata",
)  # fmt: skip
REPLAYED_METADATA: Final[StepKind] = StepKind(
    "replayed-metadata", FACT, Lane.NONE,
    "a broker replayed records from an offset on",
    has_records=True, method="metadata",
)  # fmt: skip


class Metadata(Step):
    """Records that a quorum committed (broker 0) or a broker replayed, from an offset on.

    Attributes:
        offset: offset of the first record.
        entries: the records.
    """

    __slots__ = ("entries", "kind")

    def __init__(self, kind: StepKind, broker: int, offset: int, entries: Sequence[Record]) -> None:
        self.kind = kind
        self.broker = broker
        self.offset = offset
        self.entries = entries
        self.records = len(entries)

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_metadata(self)


PARTITION_CHANGED: Final[StepKind] = StepKind(
    "partition-changed", FACT, Lane.NONE,
    "a quorum committed a partition's registration",
)  # fmt: skip


class PartitionChanged(Step):
    """A quorum committed a partition's registration.

    Attributes:
        state: the partition after it.
        min_isr: effective ``min.insync.replicas``; 0 while there is no ELR.
        unclean: the broker that registered with this change, else 0.
        remembers: whether the controller keeps ejected members in `PartitionRegistration.last_known_elr`.
    """

    __slots__ = ("min_isr", "remembers", "state", "unclean")

    kind = PARTITION_CHANGED

    def __init__(self, state: PartitionRegistration, min_isr: int, unclean: int, *, remembers: bool) -> None:
        self.broker = 0
        self.state = state
        self.min_isr = min_isr
        self.unclean = unclean
        self.remembers = remembers

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_partition_changed(self)


RECOVERIES: Final[StepKind] = StepKind("recoveries", FACT, Lane.NONE, "the controller's counters of unclean recovery")


class Recoveries(Step):
    """The controller's counters of unclean recovery (`sim.history.metrics.METRICS`).

    Attributes:
        running: recoveries that run.
        finished: recoveries that have ended.
        manual: recoveries that wait for an operator.
    """

    __slots__ = ("finished", "manual", "running")

    kind = RECOVERIES

    def __init__(self, running: int, finished: int, manual: int) -> None:
        self.broker = 0
        self.running = running
        self.finished = finished
        self.manual = manual

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_recoveries(self)


_FOLD: Final = (1 << 63) - 1
"""Broker sets of ids above 62 are folded to fit into a digest's 64 bits."""


def _as_set(brokers: tuple[int, ...]) -> int:
    return sum([1 << broker for broker in brokers]) % _FOLD


def _moved(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """The subject of an ISR change: the first broker that joins, else the first that leaves, else 0."""
    for broker in after:
        if broker not in before:
            return broker
    for broker in before:
        if broker not in after:
            return broker
    return 0
