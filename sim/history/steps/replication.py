"""Steps of replication: replicas lead, follow, and learn LEOs and HWs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sim.history.steps.base import ASIDE, TURN, InEpoch, Lane, Shown, Step, StepKind
from sim.protocol.batch import Batch
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

REPLICATED: Final[StepKind] = StepKind(
    "replicated", 2, Lane.BROKER,
    "a leader learnt a follower's LEO: follower, offset = LEO",
    "Broker {broker} learns that the LEO of broker {follower} is {offset}.",
    moments={"replicated": "a leader learnt a follower's LEO"},
)  # fmt: skip


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
        for listener in listeners:
            listener.on_replicated(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "follower": self.other, "offset": self.offset, "leader_epoch": self.epoch}


HW: Final[StepKind] = StepKind(
    "hw", 3, Lane.BROKER,
    "a broker's high watermark moved: offset = HW",
    "The HW of broker {broker} moves to {offset}.",
    kept=True,
    moments={"commit": "a leader's HW moved up", "hw": "a follower's HW moved, as a fetch told it"},
)  # fmt: skip


class HighWatermark(Step):
    """A high watermark moved to `offset` from `other`.

    Attributes:
        leads: whether the broker believes it leads.
        committed: batches that a leader's HW passed when it rose; None otherwise.
        isr: the ISR known to the leader.
        min_isr: effective ``min.insync.replicas`` known to the leader.
    """

    __slots__ = ("committed", "isr", "leads", "min_isr")

    kind = HW

    def __init__(self, broker: int, partition: Partition, previous: int) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = hw = partition.hw
        self.other = previous
        self.leads: bool = partition.is_leader
        self.isr: tuple[int, ...] = partition.state.isr
        self.min_isr: int = partition.min_insync_replicas
        self.committed: list[Batch] | None = None
        if self.leads and hw > previous:
            self.committed = partition.log.read_below(previous, hw)

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_hw(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "offset": self.offset, "leader_epoch": self.epoch, "leader": self.leads}

    def moments(self) -> Iterable[tuple[str, int]]:
        return [("commit" if self.leads else "hw", self.broker)]


LEAD: Final[StepKind] = StepKind(
    "lead", 6, Lane.BROKER,
    "a broker became leader: leader_epoch, offset = LEO",
    "Broker {broker} leads in leader epoch {leader_epoch}, with LEO {offset}.",
    weight=ASIDE,
    moments={"lead": "a broker is about to lead"},
)  # fmt: skip


class Lead(Step):
    """A broker becomes leader, with its LEO (`offset`) and HW (`other`) before any advance.

    Attributes:
        partition: the partition, as the broker leads it.
        decision: the LeaderAndIsr, or partition record, that makes it leader.
    """

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
        for listener in listeners:
            listener.on_lead(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "leader_epoch": self.epoch, "offset": self.offset, "hw": self.other}


FOLLOW: Final[StepKind] = StepKind(
    "follow", 7, Lane.BROKER,
    "a broker became follower: leader, leader_epoch, offset = LEO",
    "Broker {broker} follows {leader} in leader epoch {leader_epoch}, with LEO {offset}.",
    moments={"follow": "a broker follows a leader or an epoch that is new to it"},
)  # fmt: skip


class Follow(Step):
    """A broker follows a leader (`other`).

    Attributes:
        restarts: whether it truncates first, and fetches anew; otherwise it continues fetching.
    """

    __slots__ = ("restarts",)

    kind = FOLLOW

    def __init__(self, broker: int, partition: Partition, *, restarts: bool) -> None:
        self.broker = broker
        self.epoch = partition.leader_epoch
        self.offset = partition.log.leo
        self.other = partition.leader
        self.restarts = restarts

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_follow(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "leader": self.other, "leader_epoch": self.epoch, "offset": self.offset}


SETTLED: Final[StepKind] = StepKind(
    "settled", 8, Lane.BROKER,
    "a follower finished truncation: leader_epoch, rounds = answers about epoch ends that it took",
    "Broker {broker} has finished truncation in leader epoch {leader_epoch}.",
    weight=TURN,
    moments={"settled": "a follower finished truncation"},
)  # fmt: skip


class Settled(InEpoch):
    """A follower completed its truncation.

    Attributes:
        rounds: OffsetsForLeaderEpoch or diverging fetch responses that this took.
    """

    __slots__ = ("rounds",)

    kind = SETTLED

    def __init__(self, broker: int, epoch: int, rounds: int) -> None:
        self.broker = broker
        self.epoch = epoch
        self.offset = self.other = 0
        self.rounds = rounds

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_settled(self)

    def fields(self) -> Shown:
        return {"broker": self.broker, "leader_epoch": self.epoch, "rounds": self.rounds}
