"""Steps of the protocol, each declared once: its name, its number in the digest, what it holds, and what a trace shows.

A step says what happened; `sim.history.recorder` puts it into the digest, tells whoever asked for its kind, and keeps
it if labels are worked out from it when the run has ended. Objects that a step refers to (replicas, partitions) go on
changing: who is told may look at them at once, and who is told later reads numbers, tuples and batches only.

A *fact* is what checkers or metrics have to know, but is no step of the protocol: it is in no digest and no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sim.history.trace import Shown
from sim.protocol.batch import Batch
from sim.protocol.kraft.metadata import PartitionRegistration, Record
from sim.protocol.log.log import Log
from sim.protocol.messages import NO_EPOCH, LeaderAndIsr, ProduceRequest, ProduceResponse
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.replica import Replica

CLIENTS: Final = 1_000
"""Clients have node ids above this."""

_FACT: Final = -1


class Kind:
    """A kind of step, or of fact.

    Args:
        name: what traces call it.
        code: its number in digests, never changed once it was released; -1 for a fact.
        meaning: what its fields say.
        moments: name -> meaning of the moments that a fault may be aimed at.
        has_records: whether its records count for ``sim.record.budget``.
        kept: whether it is kept, for what is worked out when the run has ended (`sim.history.history.History`).
        method: what of a `Listener` is called.

    Attributes:
        number: of its method: listeners are told of kinds by methods.
    """

    __slots__ = ("code", "has_records", "kept", "meaning", "method", "moments", "name", "number")

    def __init__(
        self,
        name: str,
        code: int,
        meaning: str,
        moments: Mapping[str, str],
        *,
        has_records: bool,
        kept: bool,
        method: str,
    ) -> None:
        self.name = name
        self.code = code
        self.meaning = meaning
        self.moments = dict(moments)
        self.has_records = has_records
        self.kept = kept
        self.method = f"on_{method or name}".replace("-", "_")
        self.number = METHODS.setdefault(self.method, len(METHODS))
        KINDS.append(self)


KINDS: Final[list[Kind]] = []
METHODS: Final[dict[str, int]] = {}
"""What of a `Listener` is called -> its number."""


def _step(
    name: str,
    code: int,
    meaning: str,
    *,
    has_records: bool = False,
    kept: bool = False,
    method: str = "",
    **moments: str,
) -> Kind:
    named = {moment.replace("_", "-"): said for moment, said in moments.items()}
    return Kind(name, code, meaning, named, has_records=has_records, kept=kept, method=method)


def _fact(
    name: str, meaning: str, *, has_records: bool = False, kept: bool = False, method: str = "", **moments: str
) -> Kind:
    return _step(name, _FACT, meaning, has_records=has_records, kept=kept, method=method, **moments)


class Step:
    """Something that happened to a broker (0: to none).

    The digest holds time, kind, `broker`, `epoch`, `offset` and `other`; a fact has neither of the last three.

    Attributes:
        kind: what happened; most classes are of one kind.
        broker: where, or what the digest holds in its place.
        epoch: the leader's, mostly.
        offset: the step's offset, as its kind says.
        other: one number more.
        records: how many records it is about, if its kind has any.
        at_us: when; only the recorder says.
    """

    __slots__ = ("at_us", "broker", "epoch", "offset", "other", "records")

    kind: Kind
    at_us: int
    epoch: int
    offset: int
    other: int
    records: int

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        """Call the method of its kind."""
        for listener in listeners:
            listener.on_step(self)

    def fields(self) -> Shown:
        """What a trace shows of it besides time and name."""
        return {"broker": self.broker, "offset": 0}

    def shown(self) -> Sequence[Shown]:
        """What it is in a trace: mostly one entry."""
        return [self.fields()]

    def moments(self) -> Iterable[tuple[str, int]]:
        """The moments that it is, of those of its kind, and the broker that each is about."""
        return [(moment, self.broker) for moment in self.kind.moments]


class InEpoch(Step):
    """Something that a broker does in an epoch, the leader's or the controller's."""

    __slots__ = ()

    def __init__(self, broker: int, epoch: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = self.other = 0

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "leader_epoch": self.epoch}


# Logs.

APPEND: Final[Kind] = _step(
    "append",
    0,
    "a batch entered a broker's log: offset = base, last, leader_epoch of the batch, record = first id; "
    "producer_id, producer_epoch and sequence of an idempotent producer's",
    has_records=True,
    append="a batch entered a log, a leader's or a follower's",
    kept=True,
)


class Append(Step):
    """A batch entered a log.

    Attributes:
        batch: the batch; `other` is the id of its first record.
        before: the batch that it follows, or the log start.
    """

    __slots__ = ("batch", "before")

    kind = APPEND

    def __init__(self, broker: int, log: Log, batch: Batch) -> None:
        batches = log.batches
        self.broker = broker
        self.batch = batch
        self.before: Batch | int = batches[-2] if len(batches) > 1 else log.log_start
        self.epoch = batch.leader_epoch
        self.offset = base = batch.base_offset
        self.other = batch.first_id
        self.records = batch.last_offset - base + 1

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_append(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        batch = self.batch
        shown: Shown = {
            "broker": self.broker,
            "offset": batch.base_offset,
            "last": batch.last_offset,
            "leader_epoch": batch.leader_epoch,
            "record": batch.first_id,
            "leo": batch.last_offset + 1,
        }
        if batch.producer_id >= 0:
            shown["producer_id"] = batch.producer_id
            shown["producer_epoch"] = batch.producer_epoch
            shown["sequence"] = batch.base_sequence
        return shown


TRUNCATE: Final[Kind] = _step(
    "truncate",
    1,
    "a broker truncated, perhaps nothing: offset = resulting LEO, leader_epoch it follows",
    truncate="a follower truncated, perhaps nothing",
    kept=True,
)


class Truncate(Step):
    """A log was cut at its LEO (`offset`).

    Attributes:
        removed: the batches that were removed, perhaps none.
        hw: the HW before.
    """

    __slots__ = ("hw", "removed")

    kind = TRUNCATE

    def __init__(self, broker: int, partition: Partition, removed: list[Batch]) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = partition.log.leo
        self.other = len(removed)
        self.removed = removed
        self.hw = partition.hw

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_truncate(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "offset": self.offset, "leader_epoch": self.epoch, "removed": self.other}


LOG_START: Final[Kind] = _step("log-start", 21, "a broker's log start moved: offset", kept=True)


class LogStart(Step):
    """A log start moved."""

    __slots__ = ()

    kind = LOG_START

    def __init__(self, broker: int, offset: int) -> None:
        self.broker = broker
        self.offset = offset
        self.epoch = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_log_start(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "offset": self.offset}


RETENTION: Final[Kind] = _fact("retention", "a leader's retention deleted records")


class Retention(Step):
    """A leader's retention deleted records (`ids`)."""

    __slots__ = ("ids",)

    kind = RETENTION

    def __init__(self, broker: int, ids: list[int]) -> None:
        self.broker = broker
        self.ids = ids

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_retention(self)


# Replication.

REPLICATED: Final[Kind] = _step(
    "replicated",
    2,
    "a leader learnt a follower's LEO: follower, offset = LEO",
    replicated="a leader learnt a follower's LEO",
)


class Replicated(Step):
    """A leader learnt the LEO (`offset`) of a follower (`other`)."""

    __slots__ = ()

    kind = REPLICATED

    def __init__(self, broker: int, epoch: int, follower: int, leo: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = leo
        self.other = follower

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_replicated(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "follower": self.other, "offset": self.offset, "leader_epoch": self.epoch}


HW: Final[Kind] = _step(
    "hw",
    3,
    "a broker's high watermark moved: offset = HW",
    commit="a leader's HW moved up",
    hw="a follower's HW moved, as a fetch told it",
    kept=True,
)


class HighWatermark(Step):
    """A high watermark moved to `offset` from `other`.

    Attributes:
        leads: whether it is that of a broker that leads, as it believes.
        committed: batches that it passed, if it is a leader's and went up; None otherwise.
        isr: the ISR that this leader went by, and
        min_isr: effective ``min.insync.replicas``, as it knew them.
    """

    __slots__ = ("committed", "isr", "leads", "min_isr")

    kind = HW

    def __init__(self, broker: int, partition: Partition, previous: int) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = hw = partition.hw
        self.other = previous
        self.leads = partition.is_leader
        self.isr = partition.state.isr
        self.min_isr = partition.min_insync_replicas
        self.committed: list[Batch] | None = None
        if self.leads and hw > previous:
            self.committed = partition.log.read_below(previous, hw)

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_hw(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "offset": self.offset, "leader_epoch": self.epoch, "leader": self.leads}

    def moments(self) -> Iterable[tuple[str, int]]:
        """See `Step.moments`."""
        return [("commit" if self.leads else "hw", self.broker)]


LEAD: Final[Kind] = _step(
    "lead", 6, "a broker became leader: leader_epoch, offset = LEO", lead="a broker is about to lead"
)


class Lead(Step):
    """A broker is about to lead by a decision, with an LEO (`offset`) and an HW (`other`) that has yet to move."""

    __slots__ = ("decision", "partition")

    kind = LEAD

    def __init__(self, broker: int, partition: Partition, decision: LeaderAndIsr) -> None:
        self.broker = broker
        self.partition = partition
        self.decision = decision
        self.epoch = decision.leader_epoch
        self.offset = partition.log.leo
        self.other = partition.hw

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_lead(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "leader_epoch": self.epoch, "offset": self.offset, "hw": self.other}


FOLLOW: Final[Kind] = _step(
    "follow",
    7,
    "a broker became follower: leader, leader_epoch, offset = LEO",
    follow="a broker follows a leader or an epoch that is new to it",
)


class Follow(Step):
    """A broker follows a leader (`other`); unless it fetches on as before (`restarts`), it has yet to truncate."""

    __slots__ = ("restarts",)

    kind = FOLLOW

    def __init__(self, broker: int, partition: Partition, *, restarts: bool) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = partition.log.leo
        self.other = partition.leader
        self.restarts = restarts

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_follow(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "leader": self.other, "leader_epoch": self.epoch, "offset": self.offset}


SETTLED: Final[Kind] = _step(
    "settled",
    8,
    "a follower finished truncation: leader_epoch, rounds = answers about epoch ends that it took",
    settled="a follower finished truncation",
)


class Settled(InEpoch):
    """A follower completed its truncation, after so many answers about epochs (`rounds`)."""

    __slots__ = ("rounds",)

    kind = SETTLED

    def __init__(self, broker: int, epoch: int, rounds: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = self.other = 0
        self.rounds = rounds

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_settled(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "leader_epoch": self.epoch, "rounds": self.rounds}


# Control plane.

ELECTED: Final[Kind] = _step(
    "elected",
    4,
    "a leader was chosen and persisted (broker 0: none): leader_epoch",
    elected="a leader was chosen and persisted",
    kept=True,
)


class Elected(InEpoch):
    """A leader was chosen, 0 for none; `by_isr`: an election outside the ISR is an unclean one."""

    __slots__ = ("by_isr",)

    kind = ELECTED

    def __init__(self, leader: int, epoch: int, *, by_isr: bool = True) -> None:
        self.broker = leader
        self.epoch = epoch
        self.offset = self.other = 0
        self.by_isr = by_isr

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_elected(self)


EPOCH_RAISED: Final[Kind] = _step(
    "epoch-raised", 27, "the leader epoch was raised and nothing else: broker = leader, leader_epoch", kept=True
)


class EpochRaised(InEpoch):
    """The leader epoch was raised, and nothing else."""

    __slots__ = ()

    kind = EPOCH_RAISED

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_epoch_raised(self)


ISR: Final[Kind] = _step(
    "isr",
    5,
    "an ISR was persisted: isr, leader_epoch",
    isr="an ISR was persisted",
    joined="an ISR was persisted that has one member more",
    kept=True,
)


class Isr(Step):
    """An ISR was persisted, together with eligible leader replicas, which an `Elr` notes if they are others.

    Attributes:
        isr: its members.
        before: those of the one before it; None for the first.
        epoch: leader epoch.
        elr: eligible leader replicas.
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
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_isr(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"isr": list(self.isr), "leader_epoch": self.epoch}

    def moments(self) -> Iterable[tuple[str, int]]:
        """See `Step.moments`."""
        before = self.before or ()
        moved = _moved(before, self.isr)
        return [("isr", moved), ("joined", moved)] if len(self.isr) > len(before) else [("isr", moved)]


ISR_SENT: Final[Kind] = _fact(
    "isr-sent",
    "a leader asks for another ISR; it is a step once it is persisted",
    isr_sent="a leader asks for another ISR",
)


class IsrSent(Step):
    """A leader asks for another ISR."""

    __slots__ = ("before", "isr")

    kind = ISR_SENT

    def __init__(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.broker = partition.broker
        self.isr = isr
        self.before = partition.state.isr

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_isr_sent(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        """See `Step.moments`."""
        return [("isr-sent", _moved(self.before, self.isr))]


ELR: Final[Kind] = _step("elr", 48, "eligible leader replicas were persisted: elr, last_known_elr, leader_epoch")


class Elr(Step):
    """Eligible leader replicas were persisted."""

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
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_elr(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"elr": list(self.elr), "last_known_elr": list(self.last_known_elr), "leader_epoch": self.epoch}


DECIDED: Final[Kind] = _fact(
    "decided", "the control plane's decision is complete, or what it means for min ISR has changed"
)


class Decided(Step):
    """The control plane's decision is complete, or what it means for effective ``min.insync.replicas`` has changed."""

    __slots__ = ("min_isr", "state")

    kind = DECIDED

    def __init__(self, state: LeaderAndIsr, min_isr: int) -> None:
        self.broker = state.leader
        self.state = state
        self.min_isr = min_isr

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_decided(self)


MIN_ISR: Final[Kind] = _fact("min-isr", "effective min.insync.replicas as a promise of the ELR goes by it", kept=True)


class MinIsr(Step):
    """Effective ``min.insync.replicas``, which may be what it was."""

    __slots__ = ("size",)

    kind = MIN_ISR

    def __init__(self, size: int) -> None:
        self.broker = 0
        self.size = size

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_min_isr(self)


ASSIGNED: Final[Kind] = _fact("assigned", "the partition has another assignment", kept=True)


class Assigned(Step):
    """The partition has another assignment."""

    __slots__ = ("replicas",)

    kind = ASSIGNED

    def __init__(self, replicas: tuple[int, ...]) -> None:
        self.broker = 0
        self.replicas = replicas

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_assigned(self)


UNCLEAN_ELECTION: Final[Kind] = _fact(
    "unclean-election", "somebody prefers any leader to none", method="fact", kept=True
)
ELR_OFF: Final[Kind] = _fact("elr-off", "the feature is off, though the release has it", method="fact", kept=True)


class Fact(Step):
    """A fact without further words; broker 0 where it is no broker's."""

    __slots__ = ("kind",)

    def __init__(self, kind: Kind, broker: int) -> None:
        self.kind = kind
        self.broker = broker

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_fact(self)


CONTROLLER: Final[Kind] = _step(
    "controller", 25, "a broker became controller: controller_epoch", controller="a broker became controller"
)


class Controller(InEpoch):
    """A broker became controller."""

    __slots__ = ()

    kind = CONTROLLER

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_controller(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "controller_epoch": self.epoch}


REGISTERED: Final[Kind] = _step(
    "registered",
    19,
    "a broker registered, and (ZooKeeper) its session is open",
    registered="a broker registered",
    kept=True,
)
UNFENCED: Final[Kind] = _step(
    "unfenced", 47, "a broker was unfenced (KRaft): its session is open", method="registered", kept=True
)


class Registered(Step):
    """A process registered; `opens`: and with that has an open session. As `UNFENCED`: it had registered before."""

    __slots__ = ("incarnation", "kind", "opens")

    def __init__(self, kind: Kind, broker: int, incarnation: int, *, opens: bool = True) -> None:
        self.kind = kind
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.incarnation = incarnation
        self.opens = opens

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_registered(self)


SESSION_END: Final[Kind] = _step(
    "session-end",
    20,
    "a broker's session ended (KRaft: it was fenced)",
    session_end="a broker's session ended",
    kept=True,
)


class SessionEnd(Step):
    """A session is over; `fenced`: its broker stays registered."""

    __slots__ = ("fenced",)

    kind = SESSION_END

    def __init__(self, broker: int, *, fenced: bool = False) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.fenced = fenced

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_session_end(self)


# A quorum's metadata.

COMMITTED_METADATA: Final[Kind] = _fact(
    "committed-metadata",
    "a quorum committed records; what they lead to is a step",
    has_records=True,
    method="metadata",
)
REPLAYED_METADATA: Final[Kind] = _fact(
    "replayed-metadata",
    "a broker replayed records from an offset on",
    has_records=True,
    method="metadata",
)


class Metadata(Step):
    """Records that a quorum committed (broker 0), or that a broker replayed, the first of them at an offset."""

    __slots__ = ("entries", "kind")

    def __init__(self, kind: Kind, broker: int, offset: int, entries: Sequence[Record]) -> None:
        self.kind = kind
        self.broker = broker
        self.offset = offset
        self.entries = entries
        self.records = len(entries)

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_metadata(self)


PARTITION_CHANGED: Final[Kind] = _fact("partition-changed", "a quorum committed a partition's registration")


class PartitionChanged(Step):
    """A quorum committed a partition's registration.

    Attributes:
        state: the partition after it.
        min_isr: effective ``min.insync.replicas``; 0 while there is no ELR.
        unclean: the broker that registered with this change, else 0.
        remembers: whether the controller remembers those in `PartitionRegistration.last_known_elr`.
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
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_partition_changed(self)


RECOVERIES: Final[Kind] = _fact("recoveries", "the controller's counters of unclean recovery")


class Recoveries(Step):
    """The controller's counters of unclean recovery (`sim.history.metrics.METRICS`)."""

    __slots__ = ("finished", "manual", "running")

    kind = RECOVERIES

    def __init__(self, running: int, finished: int, manual: int) -> None:
        self.broker = 0
        self.running = running
        self.finished = finished
        self.manual = manual

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_recoveries(self)


# Clients.

ACKNOWLEDGES: Final[Kind] = _step(
    "acknowledges",
    29,
    "a leader answers success to acks=all: record = first id, min_isr that it goes by",
    acknowledges="a leader answers success to acks=all",
)


class Acknowledges(Step):
    """A leader answers success to acks=all, as far as it knows with min ISR members in the ISR.

    Attributes:
        reply: the answer.
        min_isr: effective ``min.insync.replicas``, as it knows it.
    """

    __slots__ = ("min_isr", "reply")

    kind = ACKNOWLEDGES

    def __init__(self, broker: int, reply: ProduceResponse, min_isr: int) -> None:
        self.broker = broker
        self.reply = reply
        self.epoch = self.min_isr = min_isr
        self.offset = reply.base_offset
        self.other = reply.request.first_id

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_acknowledges(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "record": self.other, "min_isr": self.min_isr}


ACK: Final[Kind] = _step(
    "ack",
    9,
    "a producer received success: record = first id, offset = base offset, acks, answered_at",
    ack="a producer received success",
)


class Ack(Step):
    """A producer received success.

    Attributes:
        reply: the answer.
        acks: how many replicas it had asked for, -1 for all of the ISR.
        base_offset: where the batch's first record stands.
        first_id: that record's id.
        count: how many records the batch has.
    """

    __slots__ = ("acks", "base_offset", "count", "first_id", "reply")

    kind = ACK

    def __init__(self, reply: ProduceResponse) -> None:
        request = reply.request
        self.reply = reply
        self.epoch = 0
        self.broker = self.acks = request.acks
        self.offset = self.base_offset = reply.base_offset
        self.other = self.first_id = request.first_id
        self.count = request.count

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_ack(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        """See `Step.moments`: it is no broker's."""
        return [("ack", 0)]

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {
            "record": self.first_id,
            "count": self.count,
            "offset": self.base_offset,
            "acks": self.acks,
            "answered_at": self.reply.answered_us,
        }


REFUSED: Final[Kind] = _fact("refused", "a producer received an error")


class Refused(Step):
    """A producer received an error."""

    __slots__ = ("error", "request")

    kind = REFUSED

    def __init__(self, request: ProduceRequest, error: str) -> None:
        self.broker = 0
        self.request = request
        self.error = error

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_refused(self)


PRODUCER_ID: Final[Kind] = _step(
    "producer-id", 37, "an idempotent producer goes on with another id or epoch: producer_id, producer_epoch"
)


class ProducerId(Step):
    """An idempotent producer has another id or epoch."""

    __slots__ = ("producer_epoch", "producer_id")

    kind = PRODUCER_ID

    def __init__(self, node: int, producer_id: int, producer_epoch: int) -> None:
        self.broker = 0
        self.epoch = self.producer_epoch = producer_epoch
        self.offset = self.producer_id = producer_id
        self.other = node

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_producer_id(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}


READ: Final[Kind] = _step(
    "read",
    10,
    "a consumer was shown records: offset = first, last, leader_epoch of the answer; position before it, "
    "batch_epoch of the leader that appended them",
    has_records=True,
    read="a consumer was shown records",
)


class Read(Step):
    """A consumer was shown batches, the first from its position on.

    Attributes:
        consumer: its node.
        batches: the batches.
        position: where it began to read.
        end: its position from now on.
        leader_epoch: of the leader that answered.
    """

    __slots__ = ("batches", "consumer", "end", "leader_epoch", "position")

    kind = READ

    def __init__(self, consumer: int, batches: list[Batch], position: int, leader_epoch: int) -> None:
        self.broker = consumer - CLIENTS
        self.consumer = consumer
        self.batches = batches
        self.epoch = self.leader_epoch = leader_epoch
        self.offset = self.position = position
        self.other = self.end = end = batches[-1].last_offset + 1
        self.records = end - position

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_read(self)

    def moments(self) -> Iterable[tuple[str, int]]:
        """See `Step.moments`: it is no broker's."""
        return [("read", 0)]

    def shown(self) -> Sequence[Shown]:
        """See `Step.shown`: one entry for each batch."""
        entries, before = [], self.position
        for batch in self.batches:
            start = max(self.position, batch.base_offset)
            entries.append(
                {
                    "consumer": self.consumer,
                    "offset": start,
                    "last": batch.last_offset,
                    "record": batch.first_id + start - batch.base_offset,
                    "leader_epoch": self.leader_epoch,
                    "position": before,
                    "batch_epoch": batch.leader_epoch,
                }
            )
            before = batch.last_offset + 1
        return entries


END_OFFSET: Final[Kind] = _step(
    "end-offset", 11, "a consumer received a ListOffsets(latest) answer: offset, leader_epoch, asked_at"
)


class EndOffset(Step):
    """A consumer received the latest offset.

    Attributes:
        known: what was exposed when it asked (`sim.history.clients.Clients.exposed`).
    """

    __slots__ = ("known",)

    kind = END_OFFSET

    def __init__(self, known: Exposed | None, asked_us: int, offset: int, leader_epoch: int) -> None:
        self.broker = 0
        self.known = known
        self.epoch = leader_epoch
        self.offset = offset
        self.other = asked_us

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_end_offset(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"offset": self.offset, "leader_epoch": self.epoch, "asked_at": self.other}


class Exposed:
    """End offsets that clients were told of, those of newer leader epochs before those of older ones.

    Only the highest are kept: a newer epoch's where it lies above all of older ones. Never changed, so that who asks
    can keep what was known at that time.

    Attributes:
        epoch: leader epoch of who told it.
        end: the offset.
        before: the next lower one, of an older epoch.
    """

    __slots__ = ("before", "end", "epoch")

    def __init__(self, epoch: int, end: int, before: Exposed | None) -> None:
        self.epoch = epoch
        self.end = end
        self.before = before

    def until(self, epoch: int) -> int:
        """The highest end offset of that epoch and older ones, -1 without any."""
        one: Exposed | None = self
        while one is not None and one.epoch > epoch:
            one = one.before
        return -1 if one is None else one.end


OUT_OF_RANGE: Final[Kind] = _step(
    "out-of-range", 12, "a consumer was told that its position is out of range: offset", method="position"
)
RESET: Final[Kind] = _step("reset", 30, "a consumer went where auto.offset.reset says: offset", method="position")
SEEK: Final[Kind] = _step(
    "seek",
    31,
    "an application chose where its consumer reads on: offset, leader_epoch of the record before (-1: unknown)",
    method="position",
)
TRUNCATION_DETECTED: Final[Kind] = _step(
    "truncation-detected",
    32,
    "a consumer's application was told that the log was truncated (LogTruncationException): "
    "offset = position, divergent_offset (-1: unknown), leader_epoch that ends there",
    method="position",
)
REWIND: Final[Kind] = _step(
    "rewind",
    33,
    "a consumer went back silently to where the log was truncated: offset, position before it",
    method="position",
)
COMMIT: Final[Kind] = _step(
    "commit",
    34,
    "a consumer committed: offset, leader_epoch of the record before (-1: unknown)",
    method="position",
)
RESTART_CONSUMER: Final[Kind] = _step(
    "restart-consumer",
    35,
    "a consumer's process began anew at the committed offset: offset (-1: none)",
    method="position",
)
OFFSET_FOR_TIME: Final[Kind] = _step(
    "offset-for-time",
    36,
    "a consumer received the offset of the first record from one on: record, offset (-1: none)",
    method="position",
)


class Position(Step):
    """What a consumer's position is about.

    Args:
        kind: what happened.
        consumer: its node.
        offset: the position.
        leader_epoch: of the record before it, as far as it is known.
        field: what else a trace shows, if anything.
        other: that.
    """

    __slots__ = ("consumer", "field", "kind")

    def __init__(
        self, kind: Kind, consumer: int, offset: int, leader_epoch: int = NO_EPOCH, field: str = "", other: int = 0
    ) -> None:
        self.kind = kind
        self.broker = consumer - CLIENTS
        self.consumer = consumer
        self.offset = offset
        self.epoch = leader_epoch
        self.field = field
        self.other = other

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_position(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        shown: Shown = {"consumer": self.consumer, "offset": self.offset, "leader_epoch": self.epoch}
        if self.field:
            shown[self.field] = self.other
        return shown


# Processes and faults.

START: Final[Kind] = _step("start", 17, "a process started", kept=True)


class Start(Step):
    """A process starts."""

    __slots__ = ("incarnation",)

    kind = START

    def __init__(self, broker: int, incarnation: int) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.incarnation = incarnation

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_start(self)


class NewLog(Step):
    """A broker has another log, with an LEO.

    Attributes:
        replica: whose it is.
        leo: its LEO now.
    """

    __slots__ = ("leo", "replica")

    replica: Replica
    leo: int


RECOVERED: Final[Kind] = _step(
    "recovered",
    18,
    "a broker loaded its logs: offset = LEO, log_start, hw, lost = ids of records lost since its last end",
    kept=True,
)


class Recovered(NewLog):
    """A process loaded its log; `lost` is what its last end cost."""

    __slots__ = ("lost",)

    kind = RECOVERED

    def __init__(self, broker: int, replica: Replica, lost: list[Batch]) -> None:
        self.broker = broker
        self.epoch = 0
        self.offset = self.leo = replica.log.leo
        self.other = replica.hw
        self.replica = replica
        self.lost = lost

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_recovered(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        replica = self.replica
        return {
            "broker": self.broker,
            "offset": self.leo,
            "log_start": replica.log.log_start,
            "hw": self.other,
            "lost": [record for batch in self.lost for record in batch.ids()],
        }


DELETED: Final[Kind] = _step("deleted", 26, "a broker deleted its replica, which was reassigned", kept=True)


class Deleted(NewLog):
    """A broker deleted its replica, with these batches: it has an empty one now."""

    __slots__ = ("removed",)

    kind = DELETED

    def __init__(self, broker: int, replica: Replica, removed: list[Batch]) -> None:
        self.broker = broker
        self.epoch = self.offset = self.other = 0
        self.leo = replica.log.leo
        self.replica = replica
        self.removed = removed

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_deleted(self)


ENDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        _step("kill", 13, "a process was killed", kept=True, method="end"),
        _step("power-loss", 14, "a machine lost power", kept=True, method="end"),
        _step("shutdown", 15, "a broker was shut down in a controlled way", kept=True, method="end"),
        _step("halt", 16, "a broker exited by itself", kept=True, method="end"),
        _step(
            "exit",
            24,
            "a broker exited at start-up, since an earlier registration was in the way",
            kept=True,
            method="end",
        ),
        _step("disk-replaced", 45, "a machine's disk was replaced by an empty one", kept=True, method="end"),
        _step(
            "corrupt-tail",
            46,
            "the newest batches of a log became unreadable while no process ran",
            kept=True,
            method="end",
        ),
    )
}
"""Name -> how an incarnation ends, or what befalls a machine whose process is down."""


class End(Step):
    """An incarnation ended, or its machine lost more while it was down (`was_down`).

    Attributes:
        lost: batches that went with it.
        unclean: whether no clean-shutdown marker that carries its broker epoch is left.
        was_down: whether its process had ended before.
    """

    __slots__ = ("kind", "lost", "unclean", "was_down")

    def __init__(
        self, broker: int, kind: str, lost: list[Batch], *, unclean: bool = True, was_down: bool = False
    ) -> None:
        self.kind = ENDS[kind]
        self.broker = broker
        self.epoch = self.other = 0
        self.offset = len(lost)
        self.lost = lost
        self.unclean = unclean
        self.was_down = was_down

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_end(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        return {"broker": self.broker, "offset": self.offset}


SYNCED_LOST: Final[Kind] = _fact(
    "synced-lost", "batches became unreadable although they had been fsynced", method="fact", kept=True
)

PAUSE: Final[Kind] = _step("pause", 38, "a process (0: the control plane) stands still", method="pause")
RESUME: Final[Kind] = _step("resume", 39, "a process goes on", method="pause")
DISK_STALLED: Final[Kind] = _step(
    "disk-stalled",
    40,
    "a broker's disk does not answer: its partition stands still, its session does not",
    method="pause",
)
DISK_WORKS: Final[Kind] = _step("disk-works", 41, "a broker's disk answers again", method="pause")


class Pause(Step):
    """A process was paused or goes on, or its disk stalls or works again."""

    __slots__ = ("kind",)

    def __init__(self, kind: Kind, broker: int) -> None:
        self.kind = kind
        self.broker = broker
        self.epoch = self.offset = self.other = 0

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_pause(self)


LINKS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        _step("cut", 22, "a directed link was cut: source, target", method="link"),
        _step("heal", 23, "a directed link works again: source, target", method="link"),
        _step("slow", 42, "a directed link takes longer: source, target, value = us", method="link"),
        _step("lossy", 43, "a directed link loses messages: source, target, value = of a thousand", method="link"),
        _step(
            "resent",
            44,
            "on a directed link requests arrive twice: source, target, value = of a thousand",
            method="link",
        ),
    )
}
"""Name -> what may happen to a directed link."""


class Link(Step):
    """A directed link, to a target (`offset`), was cut or healed, or became worse by some amount (`other`)."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, source: int, target: int, value: int = 0) -> None:
        self.kind = LINKS[kind]
        self.broker = source
        self.epoch = 0
        self.offset = target
        self.other = value

    def tell(self, listeners: list[Listener]) -> None:
        """See `Step.tell`."""
        for listener in listeners:
            listener.on_link(self)

    def fields(self) -> Shown:
        """See `Step.fields`."""
        shown: Shown = {"source": self.broker, "target": self.offset}
        if self.other:
            shown["value"] = self.other
        return shown


CONVERGED: Final[Kind] = _step(
    "converged", 28, "the cluster is whole again and answered a write and a read", method="step"
)


class Converged(Step):
    """The cluster is whole again."""

    __slots__ = ()

    kind = CONVERGED


class Listener:
    """Whoever is told of steps: it is told of those whose method it has of its own."""

    __slots__ = ()

    def on_step(self, step: Step) -> None:
        """Any step whose own method it has not."""

    def on_append(self, step: Append) -> None:
        """See `Append`."""
        self.on_step(step)

    def on_truncate(self, step: Truncate) -> None:
        """See `Truncate`."""
        self.on_step(step)

    def on_log_start(self, step: LogStart) -> None:
        """See `LogStart`."""
        self.on_step(step)

    def on_retention(self, step: Retention) -> None:
        """See `Retention`."""
        self.on_step(step)

    def on_replicated(self, step: Replicated) -> None:
        """See `Replicated`."""
        self.on_step(step)

    def on_hw(self, step: HighWatermark) -> None:
        """See `HighWatermark`."""
        self.on_step(step)

    def on_lead(self, step: Lead) -> None:
        """See `Lead`."""
        self.on_step(step)

    def on_follow(self, step: Follow) -> None:
        """See `Follow`."""
        self.on_step(step)

    def on_settled(self, step: Settled) -> None:
        """See `Settled`."""
        self.on_step(step)

    def on_elected(self, step: Elected) -> None:
        """See `Elected`."""
        self.on_step(step)

    def on_epoch_raised(self, step: EpochRaised) -> None:
        """See `EpochRaised`."""
        self.on_step(step)

    def on_isr(self, step: Isr) -> None:
        """See `Isr`."""
        self.on_step(step)

    def on_isr_sent(self, step: IsrSent) -> None:
        """See `IsrSent`."""
        self.on_step(step)

    def on_elr(self, step: Elr) -> None:
        """See `Elr`."""
        self.on_step(step)

    def on_decided(self, step: Decided) -> None:
        """See `Decided`."""
        self.on_step(step)

    def on_min_isr(self, step: MinIsr) -> None:
        """See `MinIsr`."""
        self.on_step(step)

    def on_assigned(self, step: Assigned) -> None:
        """See `Assigned`."""
        self.on_step(step)

    def on_fact(self, step: Fact) -> None:
        """See `Fact`."""
        self.on_step(step)

    def on_controller(self, step: Controller) -> None:
        """See `Controller`."""
        self.on_step(step)

    def on_registered(self, step: Registered) -> None:
        """See `Registered`."""
        self.on_step(step)

    def on_session_end(self, step: SessionEnd) -> None:
        """See `SessionEnd`."""
        self.on_step(step)

    def on_metadata(self, step: Metadata) -> None:
        """See `Metadata`."""
        self.on_step(step)

    def on_partition_changed(self, step: PartitionChanged) -> None:
        """See `PartitionChanged`."""
        self.on_step(step)

    def on_recoveries(self, step: Recoveries) -> None:
        """See `Recoveries`."""
        self.on_step(step)

    def on_acknowledges(self, step: Acknowledges) -> None:
        """See `Acknowledges`."""
        self.on_step(step)

    def on_ack(self, step: Ack) -> None:
        """See `Ack`."""
        self.on_step(step)

    def on_refused(self, step: Refused) -> None:
        """See `Refused`."""
        self.on_step(step)

    def on_producer_id(self, step: ProducerId) -> None:
        """See `ProducerId`."""
        self.on_step(step)

    def on_read(self, step: Read) -> None:
        """See `Read`."""
        self.on_step(step)

    def on_end_offset(self, step: EndOffset) -> None:
        """See `EndOffset`."""
        self.on_step(step)

    def on_position(self, step: Position) -> None:
        """See `Position`."""
        self.on_step(step)

    def on_start(self, step: Start) -> None:
        """See `Start`."""
        self.on_step(step)

    def on_recovered(self, step: Recovered) -> None:
        """See `Recovered`."""
        self.on_step(step)

    def on_deleted(self, step: Deleted) -> None:
        """See `Deleted`."""
        self.on_step(step)

    def on_end(self, step: End) -> None:
        """See `End`."""
        self.on_step(step)

    def on_pause(self, step: Pause) -> None:
        """See `Pause`."""
        self.on_step(step)

    def on_link(self, step: Link) -> None:
        """See `Link`."""
        self.on_step(step)


_HEARD: Final[dict[type, tuple[int, ...]]] = {}


def heard_by(listener: Listener) -> tuple[int, ...]:
    """Numbers of the methods that a listener's class has of its own; found out once for each."""
    kind = type(listener)
    heard = _HEARD.get(kind)
    if heard is None:
        own = [place for name, place in METHODS.items() if getattr(kind, name) is not getattr(Listener, name)]
        heard = _HEARD[kind] = tuple(own)
    return heard


_FOLD: Final = (1 << 63) - 1
"""Bits of more than 62 brokers are folded, so that a set fits into a digest's 64 bits."""


def _as_set(brokers: tuple[int, ...]) -> int:
    return sum([1 << broker for broker in brokers]) % _FOLD


def _moved(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """The broker that an ISR change is about: the first that joins, else the first that leaves, else 0."""
    for broker in after:
        if broker not in before:
            return broker
    for broker in before:
        if broker not in after:
            return broker
    return 0


STEPS: Final[dict[str, str]] = {
    kind.name: kind.meaning for kind in sorted(KINDS, key=lambda kind: kind.code) if kind.code >= 0
}
"""Step -> what its fields mean. Every step also has ``t`` (us) and, where it fits, ``broker``."""

MOMENTS: Final[dict[str, str]] = {moment: said for kind in KINDS for moment, said in kind.moments.items()}
"""Moments that a fault may be aimed at (`sim.history.recorder.Recorder.arm`): steps of the protocol in every mode. An
ISR that was asked for is no step of the trace."""
