"""A partition, the machines of its replicas, and what may happen to them next: the state space of `distance`.

The release's controller functions decide, as in `controller`; the machines and their logs are modelled here, as far as
the loss of acknowledged records depends on them:

- Some record was acknowledged, and every member of the ISR has it. While the ISR has ``min.insync.replicas`` members, a
  further record is acknowledged after each event: members have it, unflushed, and others lack it.
- An unclean end (a power loss) loses all that was not flushed; a clean stop flushes. A broker that ended, in either
  way, is fenced before anything else happens.
- A live replica may join the ISR at any moment, or not at all: both cases are followed.
- A broker that was fenced when the log ended had been stopped cleanly.
- Log directories, lagging followers, bugs of brokers, unclean elections, and moves that change the number of replicas
  are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from highwater.lab.audit import controller
from highwater.lab.audit.controller import listed, outcome
from highwater.lab.audit.image import BROKER, BrokerState, ClusterImage, RegisteredPartition
from highwater.lab.audit.records import NO_LEADER
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.kraft.partition_change_builder import PREFERRED
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from highwater.lab.audit.controller import ControllerEvent
    from highwater.lab.audit.facts import ReplicaFacts
    from highwater.lab.audit.image import Key
    from sim.protocol.rules import Rules

KEY: Final[Key] = ("", 0)
_EPOCH: Final = 1
_MOST_CANDIDATES: Final = 6
"""Most brokers that a partition may be moved to: replicas, members of the ELR, and one more."""


class SituationMachine(Enum):
    """What a broker is doing."""

    UP = "up"
    STOPPED = "stopped"
    """Down after a clean stop."""
    LOST_POWER = "lost power"
    """Down after an unclean end."""


@dataclass(frozen=True, slots=True)
class SituationReplica:
    """A broker and its log.

    Attributes:
        machine: what it is doing.
        complete: its log has all acknowledged records.
        flushed: it has them on disk.
    """

    machine: SituationMachine
    complete: bool
    flushed: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change: rules, ``min.insync.replicas``, whether ELRs are on, ``unclean.leader.election.enable``."""

    rules: Rules
    min_isr: int
    elr: bool
    unclean: bool


class Kind(Enum):
    """What happens."""

    LOSE_POWER = "loses power"
    STOP = "is stopped cleanly"
    START = "starts"
    MOVE = "the partition is moved to"
    CANCEL = "the move is cancelled"
    ELECT = "the preferred leader is elected"
    JOIN = "joins the ISR"
    LEAVE = "lags, and leaves the ISR"


class SituationChange(NamedTuple):
    """An event; `brokers` are the one that it concerns, or the replicas that a move leads to."""

    kind: Kind
    brokers: tuple[int, ...] = ()

    @property
    def costs(self) -> tuple[int, int]:
        """Unclean ends, and other events that somebody causes; replication goes on by itself."""
        if self.kind == Kind.LOSE_POWER:
            return 1, 0
        return 0, int(self.kind not in (Kind.JOIN, Kind.LEAVE))

    def renamed(self, number: Mapping[int, int]) -> SituationChange:
        """The step with other numbers of brokers."""
        return SituationChange(self.kind, tuple(number[broker] for broker in self.brokers))

    @property
    def text(self) -> str:
        """For readers."""
        if self.kind == Kind.MOVE:
            return f"{self.kind.value} {listed(self.brokers)}"
        return f"broker {self.brokers[0]} {self.kind.value}" if self.brokers else self.kind.value


@dataclass(frozen=True, slots=True)
class Story:
    """One of the cheapest ways to a bad state.

    Attributes:
        unclean: number of unclean ends.
        others: number of other events that somebody causes.
        steps: all events, those of replication included.
    """

    unclean: int
    others: int
    steps: tuple[SituationChange, ...]


@dataclass(frozen=True, slots=True)
class Situation:
    """A partition and its machines; epochs are left out, since no decision depends on them.

    Attributes:
        partition: its registration, with epochs 0.
        replicas: (broker, its machine and log), by broker: replicas, members of the ELR, and one broker that a move may
            add.
        has_lost: the leader lacks an acknowledged record.
    """

    partition: RegisteredPartition
    replicas: tuple[tuple[int, SituationReplica], ...]
    has_lost: bool = False


def situation_of(image: ClusterImage, key: Key, facts: ReplicaFacts | None) -> Situation:
    """The situation of a partition of a cluster.

    Without history, members of ISR and ELR have all acknowledged records.
    """
    state = image.partitions[key]
    complete_brokers = {*state.isr, *state.elr} if facts is None else facts.complete
    known = dict.fromkeys((*state.replicas, *state.isr, *state.elr, *state.last_known_elr))
    spare = min((broker for broker in image.brokers if broker not in known and image.is_active(broker)), default=None)
    replicas = {}
    for broker in (*known, *([] if spare is None else [spare])):
        complete = broker in complete_brokers
        is_up = image.is_active(broker)
        replicas[broker] = SituationReplica(
            SituationMachine.UP if is_up else SituationMachine.STOPPED, complete, complete and not is_up
        )
    partition = replace(state, leader_epoch=0, partition_epoch=0, directories=(), offset=-1)
    return Situation(partition, tuple(sorted(replicas.items())))


def canonical(situation: Situation) -> tuple[Situation, dict[int, int]]:
    """The situation with brokers numbered in the order of the assignment, and the brokers by number.

    Partitions that differ in their brokers' ids only have the same distance.
    """
    state = situation.partition
    others = [broker for broker, _ in situation.replicas if broker not in state.replicas]
    number = {broker: place for place, broker in enumerate((*state.replicas, *others), start=1)}
    found = renamed(situation, number)
    partition = replace(found.partition, isr=tuple(sorted(found.partition.isr)), elr=tuple(sorted(found.partition.elr)))
    return replace(found, partition=partition), {place: broker for broker, place in number.items()}


def renamed(situation: Situation, number: Mapping[int, int]) -> Situation:
    """The situation with other numbers of brokers."""

    def of(brokers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number[broker] for broker in brokers)

    state = situation.partition
    partition = replace(
        state,
        replicas=of(state.replicas),
        isr=of(state.isr),
        leader=number.get(state.leader, NO_LEADER),
        removing=of(state.removing),
        adding=of(state.adding),
        elr=of(state.elr),
        last_known_elr=of(state.last_known_elr),
    )
    replicas = tuple(sorted((number[broker], replica) for broker, replica in situation.replicas))
    return Situation(partition, replicas, situation.has_lost)


class Model:
    """What may happen to a partition under a release's rules."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._outcomes: dict[tuple[object, ...], list[RegisteredPartition]] = {}
        """Partition, brokers that are up, and event -> states after it: the logs do not matter to a controller."""

    @property
    def asked(self) -> int:
        """How many events the controller functions have handled."""
        return len(self._outcomes)

    def after_acknowledgement(self, situation: Situation) -> Situation:
        """A record is acknowledged, if the ISR is large enough."""
        state = situation.partition
        if state.leader == NO_LEADER or len(state.isr) < min(self.settings.min_isr, len(state.replicas)):
            return situation
        replicas = dict(situation.replicas)
        if any(replicas[broker].machine != SituationMachine.UP for broker in (state.leader, *state.isr)):
            return situation
        return replace(
            situation,
            replicas=tuple(
                (broker, SituationReplica(replica.machine, broker in state.isr, flushed=False))
                for broker, replica in situation.replicas
            ),
        )

    def steps(
        self, situation: Situation, targets: Iterable[tuple[int, ...]] | None = None
    ) -> Iterator[tuple[SituationChange, Situation]]:
        """Each event that can happen, and what it leads to.

        Args:
            situation: what is so now.
            targets: assignments to which the partition may be moved; by default all of as many replicas.
        """
        state = situation.partition
        for broker, replica in situation.replicas:
            if replica.machine == SituationMachine.UP:
                yield from self._of(SituationChange(Kind.STOP, (broker,)), situation)
                yield from self._of(SituationChange(Kind.LOSE_POWER, (broker,)), situation)
                if broker in state.replicas and broker not in state.isr:
                    yield from self._of(SituationChange(Kind.JOIN, (broker,)), situation)
            else:
                yield from self._of(SituationChange(Kind.START, (broker,)), situation)
        if state.adding or state.removing:
            yield from self._of(SituationChange(Kind.CANCEL), situation)
        for target in self._targets(situation) if targets is None else targets:
            yield from self._of(SituationChange(Kind.MOVE, target), situation)
        if state.leader not in (NO_LEADER, state.replicas[0]):
            yield from self._of(SituationChange(Kind.ELECT), situation)

    def lagging(self, situation: Situation) -> Iterator[tuple[SituationChange, Situation]]:
        """Each live follower that the leader may take out of the ISR."""
        state = situation.partition
        for broker in state.isr:
            if broker != state.leader:
                yield from self._of(SituationChange(Kind.LEAVE, (broker,)), situation)

    def nobody_can_lead(self, situation: Situation) -> bool:
        """Whether there is no leader, and none comes when all brokers start."""
        if situation.partition.leader != NO_LEADER:
            return False
        for broker, replica in situation.replicas:
            if replica.machine != SituationMachine.UP:
                situation = self._start(situation, broker)
                if situation.partition.leader != NO_LEADER:
                    return False
        return True

    def _of(self, step: SituationChange, situation: Situation) -> Iterator[tuple[SituationChange, Situation]]:
        after = self.apply(step, situation)
        if after is not None:
            yield step, after

    def apply(self, step: SituationChange, situation: Situation) -> Situation | None:
        """What an event leads to; None if the controller refuses it or nothing changes."""
        state = situation.partition
        kind = step.kind
        if kind == Kind.LOSE_POWER:
            after = self._lose_power(situation, *step.brokers)
        elif kind == Kind.STOP:
            after = self._stop(situation, *step.brokers)
        elif kind == Kind.START:
            after = self._start(situation, *step.brokers)
        else:
            before = _with(situation, *step.brokers, complete=True, flushed=False) if kind == Kind.JOIN else situation
            after = self._handled(before, self._event(step, state))
            if after == before:
                return None
        return self.after_acknowledgement(after)

    def _event(self, step: SituationChange, state: RegisteredPartition) -> ControllerEvent:
        if step.kind == Kind.JOIN:
            return controller.alter_partition(state, (*state.isr, *step.brokers))
        if step.kind == Kind.LEAVE:
            return controller.alter_partition(state, tuple(one for one in state.isr if one not in step.brokers))
        if step.kind == Kind.MOVE:
            return controller.reassign(step.brokers)
        return controller.cancel_reassignment() if step.kind == Kind.CANCEL else controller.elect(PREFERRED)

    def _lose_power(self, situation: Situation, broker: int) -> Situation:
        """The machine ends uncleanly, and its session expires."""
        one = dict(situation.replicas)[broker]
        after = self._handled(situation, controller.fence(broker))
        return _with(after, broker, machine=SituationMachine.LOST_POWER, complete=one.flushed, flushed=one.flushed)

    def _stop(self, situation: Situation, broker: int) -> Situation:
        """A controlled shutdown, after which the broker is fenced."""
        one = dict(situation.replicas)[broker]
        after = self._handled(situation, controller.shut_down(broker))
        after = self._handled(after, controller.fence(broker), stopping=broker)
        return _with(after, broker, machine=SituationMachine.STOPPED, flushed=one.complete)

    def _start(self, situation: Situation, broker: int) -> Situation:
        """The broker registers and is unfenced; if it is no replica any more, it deletes its log."""
        clean = dict(situation.replicas)[broker].machine == SituationMachine.STOPPED
        after = self._handled(situation, controller.register(broker, clean=clean))
        after = self._handled(after, controller.unfence(broker))
        after = _with(after, broker, machine=SituationMachine.UP)
        return after if broker in after.partition.replicas else _with(after, broker, complete=False, flushed=False)

    def _handled(self, situation: Situation, event: ControllerEvent, stopping: int = NO_LEADER) -> Situation:
        """The situation after the controller has handled an event, and brokers have replayed its records."""
        up = tuple([broker for broker, replica in situation.replicas if replica.machine == SituationMachine.UP])
        asked = situation.partition, up, event.text, stopping
        states = self._outcomes.get(asked)
        if states is None:
            image = self._image(situation, stopping)
            found = outcome(image, KEY, situation.partition, self.settings.rules, event)
            states = [replace(state, leader_epoch=0, partition_epoch=0) for state in found]
            self._outcomes[asked] = states
        for state in states:
            situation = _replayed(situation, state)
        return situation

    def _image(self, situation: Situation, stopping: int) -> ClusterImage:
        image = ClusterImage()
        image.partitions[KEY] = situation.partition
        image.settings[BROKER, ""] = {
            MIN_ISR: str(self.settings.min_isr),
            UNCLEAN_ELECTION: "true" if self.settings.unclean else "false",
        }
        image.features[ELR_FEATURE] = int(self.settings.elr)
        for broker, replica in situation.replicas:
            is_down = replica.machine != SituationMachine.UP
            image.brokers[broker] = BrokerState(_EPOCH, "", is_down, broker == stopping, ())
        return image

    def _targets(self, situation: Situation) -> Iterator[tuple[int, ...]]:
        """Assignments of as many replicas; replicas that stay keep their order."""
        state = situation.partition
        brokers = [broker for broker, _ in situation.replicas if broker not in state.replicas]
        candidates = (*state.replicas, *brokers)[:_MOST_CANDIDATES]
        for target in combinations(candidates, len(state.target) or 1):
            if target != state.target:
                yield target


def _replayed(before: Situation, state: RegisteredPartition) -> Situation:
    """Brokers replay a record: replicas that leave delete their logs; an elected leader may lack records."""
    after = replace(before, partition=state)
    for broker, replica in before.replicas:
        if (
            replica.machine == SituationMachine.UP
            and broker in before.partition.replicas
            and broker not in state.replicas
        ):
            after = _with(after, broker, complete=False, flushed=False)
    if state.leader not in (NO_LEADER, before.partition.leader) and not dict(after.replicas)[state.leader].complete:
        return replace(after, has_lost=True)
    return after


def _with(
    situation: Situation,
    broker: int,
    *,
    machine: SituationMachine | None = None,
    complete: bool | None = None,
    flushed: bool | None = None,
) -> Situation:
    """The situation with another state of a broker; what is not given stays."""

    def of(one: SituationReplica) -> SituationReplica:
        return SituationReplica(
            one.machine if machine is None else machine,
            one.complete if complete is None else complete,
            one.flushed if flushed is None else flushed,
        )

    replicas = tuple((number, of(replica) if number == broker else replica) for number, replica in situation.replicas)
    return replace(situation, replicas=replicas)
