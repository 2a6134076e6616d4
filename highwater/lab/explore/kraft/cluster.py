"""A KRaft cluster: a controller, and what is in flight between it and the brokers.

Its events: a broker replays metadata records, a session expires, a heartbeat unfences a broker, an administrator
changes a setting, a process ends and starts. They mirror those of the public specification of KIP-966 (README.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from highwater.lab.explore import cluster
from highwater.lab.explore.broker_machine import DOWN, STARTING, UP
from highwater.lab.explore.cluster import ExploredCluster, Parts
from highwater.lab.explore.interning import InternTable
from highwater.lab.explore.kraft import wording
from highwater.lab.explore.kraft.broker import KRaftBrokerMachine
from highwater.lab.explore.kraft.controller import ControllerMachine
from highwater.lab.explore.kraft.messages import Alter, Altered, Register, RegistrationAnswer
from highwater.lab.explore.kraft.properties import kinds_of
from highwater.lab.explore.properties import KINDS, VIOLATIONS
from highwater.lab.explore.wording import listed, role
from sim.protocol.kraft.metadata import (
    ELR_FEATURE,
    MIN_ISR,
    BrokerRegistration,
    ConfigRecord,
    PartitionRegistration,
)
from sim.protocol.messages import ListOffsetsRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from highwater.lab.explore.broker_machine import BrokerOutcome, Event, View
    from highwater.lab.explore.cluster import Way
    from highwater.lab.explore.kraft.controller import ControllerDecision, ControllerView
    from highwater.lab.explore.messages import Fetch
    from sim.protocol.kraft.metadata import Record
    from sim.protocol.rules import Rules

REQUEST_OF_ANOTHER_PROCESS: Final = "registration-of-another-request"
"""The mutant to which a response to an ended process matters."""
ALL: Final = -1
"""All records, as a bit set."""


@dataclass(frozen=True, slots=True)
class KRaftBounds(cluster.ExploredBounds):
    """How much may happen; the defaults are those of the specification's shipped configuration.

    Attributes:
        isr: members of the ISR at first; the others are fenced, and have not replayed that.
        losses: ends of a process that lose the newest records of its log, down to any record.
        stops: ends of a process that lose nothing, with or without a clean-shutdown file.
        fences: sessions of running brokers that expire.
        elections: preferred elections, each of a running ISR member.
        min_isr: ``min.insync.replicas`` at first.
        min_isr_changes: times that an administrator sets it to another value, from 1 to the number of brokers.
        feature_changes: times that an administrator disables or enables feature ``eligible.leader.replicas.version``.
        any_order: elections try the candidates in any order; otherwise in that of the assignment 1, 2, 3.
    """

    isr: int = 2
    losses: int = 1
    stops: int = 0
    fences: int = 1
    elections: int = 0
    min_isr: int = 2
    min_isr_changes: int = 0
    feature_changes: int = 0
    any_order: bool = True


class KRaftPast(NamedTuple):
    """What has happened.

    Attributes:
        appended: records that producers have sent.
        acked: records that were acknowledged, as a bit set.
        committed: records that a leader's HW has passed, as a bit set.
        losses: see `KRaftBounds`; so for `stops`, `fences`, `lags`, `elections`, `min_isr_changes` and
            `feature_changes`.
        kills: those of the stops that leave no clean-shutdown file.
        smallest: by record: the smallest ``min.insync.replicas`` since a leader's HW passed it, 0 before that; empty if
            that decides nothing: it does not change, or no process ends.
        lowest: the smallest ``min.insync.replicas`` so far; 0 if `smallest` is empty.
        alone: with `feature_changes`: a process ended uncleanly, and before it registered again there was a time when
            no other member of the ISR was running and unfenced.
    """

    appended: int
    acked: int
    committed: int
    losses: int
    stops: int
    fences: int
    lags: int
    elections: int
    kills: int
    min_isr_changes: int
    feature_changes: int
    smallest: tuple[int, ...]
    lowest: int
    alone: bool


class KRaftControl(NamedTuple):
    """The controller's part of a state.

    Attributes:
        controller: snapshot of the controller.
        tail: the newest transactions of the metadata log, as far as some broker has not replayed them: the numbers of
            their records.
        behind: number of transactions that each broker has not replayed; 0 for one that has not registered.
        past: what has happened. Most events leave it as it is.
    """

    controller: int
    tail: tuple[tuple[int, ...], ...]
    behind: tuple[int, ...]
    past: KRaftPast

    @property
    def appended(self) -> int:
        """See `ExploredControl`."""
        return self.past.appended

    @property
    def lags(self) -> int:
        """See `ExploredControl`."""
        return self.past.lags


class KRaftCluster(ExploredCluster[KRaftControl, KRaftBounds]):
    """The possible events of a KRaft cluster.

    Args:
        rules: of brokers and controller.
        bounds: how much may happen.
        reduced: leave out orders of events that make no difference (README.md).
    """

    kinds: ClassVar[Mapping[str, str]] = KINDS
    violations: ClassVar[Collection[str]] = VIOLATIONS
    FAULTS: ClassVar[Collection[str]] = frozenset(
        {"expire", "lose", "stop", "kill", "lag", "elect", "configure", "feature"}
    )
    SERVES: ClassVar[str] = "arrive"
    RECEIVES: ClassVar[str] = "arrive"
    SENTENCES: ClassVar[Mapping[str, str]] = wording.SENTENCES

    def __init__(self, rules: Rules, bounds: KRaftBounds, *, reduced: bool = True) -> None:
        super().__init__(rules, bounds)
        self.reduced = reduced
        self.step = KRaftStep
        self.records = InternTable()
        changes = bounds.min_isr_changes > 0
        self._kraft = KRaftBrokerMachine(self.decide, self.payloads, self.records, min_isr_changes=changes)
        self.machine = self._kraft
        self.controller = ControllerMachine(self.decide, self.payloads, self.records, bounds.min_isr, self.brokers)
        self.keeps_responses = not reduced or rules.mutant == REQUEST_OF_ANOTHER_PROCESS
        self._remembers = rules.last_known_elr == "ejected-members"
        self._orders = tuple(permutations(self.brokers)) if bounds.any_order else (self.brokers,)
        self._decisions: dict[tuple[int, Event], tuple[ControllerDecision, ...]] = {}
        self._idle: dict[tuple[int, int, int, int], bool] = {}
        self._silent: dict[tuple[int, tuple[int, ...]], bool] = {}
        self._sent_in: dict[int, int] = {}
        """Numbers of fetches -> the leader epochs in which they were sent."""

    def known(self, parts: Parts[KRaftControl]) -> ControllerView:
        """The view of the controller."""
        return self.controller.views[parts.control.controller]

    # Words.

    def _arrival(self, message: Any) -> str:
        return wording.arrival(self._kraft, message)

    def _elected(self, parts: Parts[KRaftControl]) -> str:
        known = self.known(parts)
        text = f"leader {known.leader or 'none'} in {known.epoch}, ISR {listed(known.isr)}"
        if known.elr:
            text += f", ELR {listed(known.elr)}"
        if self.bounds.min_isr_changes:
            text += f", min ISR {known.min_isr}"
        if not known.elr_level and self.bounds.feature_changes:
            text += ", feature disabled"
        return text

    def _role(self, broker: int, view: View, parts: Parts[KRaftControl]) -> str:
        known = self.known(parts)
        fenced = " fenced" if known.brokers[broker].fenced else ""
        note = "" if view.min_isr == known.min_isr else f" by min ISR {view.min_isr}"
        return f"{fenced} {role(view, note)}"

    # States.

    def first(self) -> int:
        """The first state: broker 1 leads, the log is empty, and some brokers have left the ISR, which they do not know
        yet.
        """
        down = tuple(self.machine.create(broker) for broker in self.brokers)
        controller = self.controller.create()
        image = self.controller.views[controller].image
        nobody = (0,) * len(self.brokers)
        smallest = (
            (0,) * self.bounds.records if self.bounds.min_isr_changes and self.bounds.losses + self.bounds.stops else ()
        )
        past = KRaftPast(*(0,) * 11, smallest, self.bounds.min_isr if smallest else 0, alone=False)
        control = KRaftControl(controller, (), nobody, past)
        step = KRaftStep(self, Parts(down, control, ()))
        for broker in self.brokers:
            step.local(broker, ("start",))
            step.local(broker, ("registered", 1, 1))
            step.local(broker, ("committed", *image))
            step.local(broker, ("publish", None, ()))
        for broker in self.brokers[self.bounds.isr :]:
            (decided,) = self.decisions(step.controller, ("fence", broker))[:1]
            step.commit(decided)
        for broker in self.brokers[: self.bounds.isr]:
            step.replay(broker, step.behind[broker - 1])
        return step.end()

    # What can happen.

    def successors(self, state: int) -> Iterator[Way]:
        """All possible next events, with the resulting states."""
        parts = self.parts(state)
        yield from self._deliveries(parts)
        yield from self._replays(parts)
        yield from self._sessions(parts)
        yield from self._administration(parts)
        yield from self._leaders(parts)
        yield from self._processes(parts)

    def _arrivals(self, number: int, message: Any, parts: Parts[KRaftControl]) -> Iterator[Way]:
        kind = type(message)
        if kind is Alter:
            yield from self._alter(number, parts)
        elif kind is Register:
            yield from self._register(number, parts)
        elif kind is Altered:
            step = KRaftStep(self, parts)
            step.flights.remove(number)
            step.run(message.broker, ("altered", message.payload))
            yield ("arrive", number), step.end()
        else:
            state = self.machine.views[parts.snapshots[message.broker - 1]].state
            if state != DOWN:
                step = KRaftStep(self, parts)
                step.flights.remove(number)
                if state == STARTING:  # One that is up waits for no registration.
                    step.local(message.broker, ("registered", message.incarnation, message.broker_epoch))
                yield ("arrive", number), step.end()

    def _is_idle(self, follower: int, leader: int, message: Fetch, control: KRaftControl) -> bool:  # noqa: ARG002
        if not self.reduced:
            return False
        key = follower, leader, message.follower, message.payload
        known = self._idle.get(key)
        if known is None:
            served = self.machine.step(leader, ("serve", message.follower, message.payload))
            known = False
            if served.snapshot == leader and served.proposal < 0:
                after = self.machine.step(follower, ("reply", served.reply))
                known = after.snapshot == follower and after.requests == ((message.leader, message.payload),)
            self._idle[key] = known
        return known

    def decisions(self, controller: int, event: Event) -> tuple[ControllerDecision, ...]:
        """The different outcomes of an event at the controller, over the orders of the assignment."""
        key = controller, event
        known = self._decisions.get(key)
        if known is None:
            outcomes = [self.controller.step(controller, event, order) for order in self._orders]
            known = self._decisions[key] = tuple(dict.fromkeys(outcomes))
        return known

    def _alter(self, number: int, parts: Parts[KRaftControl]) -> Iterator[Way]:
        message = self.messages.values[number]
        for decided in self.decisions(parts.control.controller, ("alter", message.broker, message.payload)):
            if decided.error:
                continue  # A stale broker epoch: the request would be sent again and again.
            step = KRaftStep(self, parts)
            step.flights.remove(number)
            view = self.machine.views[parts.snapshots[message.broker - 1]]
            if view.state == UP and view.broker_epoch == message.broker_epoch:
                step.send(Altered(message.broker, decided.reply))
            step.commit(decided)
            yield ("arrive", number), step.end()

    def _register(self, number: int, parts: Parts[KRaftControl]) -> Iterator[Way]:
        message = self.messages.values[number]
        for decided in self.decisions(parts.control.controller, ("register", *message[:3])):
            if decided.error:
                continue  # An earlier process has a session: the broker tries again.
            step = KRaftStep(self, parts)
            step.flights.remove(number)
            step.commit(decided)
            view = self.machine.views[parts.snapshots[message.broker - 1]]
            if view.state == STARTING and view.incarnation == message.incarnation:
                image = self.controller.views[step.controller].image
                step.local(message.broker, ("committed", *image))
                if not self.keeps_responses:
                    step.local(message.broker, ("registered", message.incarnation, decided.reply))
                    step.replay(message.broker, 0)
            if self.keeps_responses:
                step.send(RegistrationAnswer(message.broker, message.incarnation, decided.reply))
            for other in parts.flights:
                old = self.messages.values[other]
                if type(old) is Alter and old.broker == message.broker:
                    step.flights.remove(other)  # It would be refused for ever.
            yield ("arrive", number), step.end()

    def _replays(self, parts: Parts[KRaftControl]) -> Iterator[Way]:
        for broker in self.brokers:
            view = self.machine.views[parts.snapshots[broker - 1]]
            behind = parts.control.behind[broker - 1]
            first = 1
            if view.state == STARTING and view.broker_epoch >= 0:
                first = 0
            elif view.state != UP:
                continue
            seen = set()
            for count in range(first, behind + 1):
                step = KRaftStep(self, parts)
                step.replay(broker, count)
                after = step.end()
                if after not in seen:
                    seen.add(after)
                    yield ("replay", broker, count), after

    def _sessions(self, parts: Parts[KRaftControl]) -> Iterator[Way]:
        known = self.known(parts)
        for broker in self.brokers:
            view = self.machine.views[parts.snapshots[broker - 1]]
            registered = known.brokers[broker]
            if view.state != UP:
                continue
            if not registered.fenced:
                if parts.control.past.fences < self.bounds.fences:
                    for decided in self.decisions(parts.control.controller, ("fence", broker)):
                        step = KRaftStep(self, parts)
                        step.past = step.past._replace(fences=step.past.fences + 1)
                        step.commit(decided)
                        yield ("expire", broker), step.end()
            else:
                for decided in self.decisions(
                    parts.control.controller, ("heartbeat", broker, view.broker_epoch, view.broker_epoch)
                ):
                    if decided.error:
                        continue  # A stale broker epoch.
                    step = KRaftStep(self, parts)
                    step.commit(decided)
                    yield ("heartbeat", broker), step.end()

    def _administration(self, parts: Parts[KRaftControl]) -> Iterator[Way]:
        known, past = self.known(parts), parts.control.past
        if past.elections < self.bounds.elections:
            for decided in self.decisions(parts.control.controller, ("elect",)):
                elected = self.controller.views[decided.snapshot].leader
                if decided.error or elected == known.leader:
                    continue
                step = KRaftStep(self, parts)
                step.past = past._replace(elections=past.elections + 1)
                step.commit(decided)
                yield ("elect", elected), step.end()
        if past.min_isr_changes < self.bounds.min_isr_changes:
            for value in self.brokers:
                if value == known.min_isr:
                    continue
                (decided,) = self.decisions(parts.control.controller, ("configure", MIN_ISR, value))
                step = KRaftStep(self, parts)
                step.past = past._replace(min_isr_changes=past.min_isr_changes + 1)
                step.commit(decided)
                yield ("configure", value), step.end()
        if past.feature_changes < self.bounds.feature_changes:
            level = 1 - known.elr_level
            (decided,) = self.decisions(parts.control.controller, ("configure", ELR_FEATURE, level))
            if not decided.error:
                step = KRaftStep(self, parts)
                step.past = past._replace(feature_changes=past.feature_changes + 1)
                step.commit(decided)
                yield ("feature", level), step.end()

    def _processes(self, parts: Parts[KRaftControl]) -> Iterator[Way]:
        """A process ends, its session expires, and it starts again: see README.md why that is one event."""
        past = parts.control.past
        for broker in self.brokers:
            view = self.machine.views[parts.snapshots[broker - 1]]
            leo = len(view.records)
            ends = []
            if past.losses < self.bounds.losses:
                ends += [("lose", kept, False) for kept in range(max(leo, 1))]
            if past.stops < self.bounds.stops:
                ends += [("kill", leo, False), ("stop", leo, True)]
            fenced = self.known(parts).brokers[broker].fenced
            for kind, kept, clean in ends:
                decisions = (None,) if fenced else self.decisions(parts.control.controller, ("fence", broker))
                for decided in decisions:
                    step = KRaftStep(self, parts)
                    if kind == "lose":
                        step.past = past._replace(losses=past.losses + 1)
                    else:
                        step.past = past._replace(stops=past.stops + 1, kills=past.kills + (not clean))
                    step.stop(broker, kept, clean=clean)
                    if decided is not None:
                        step.commit(decided)
                    step.start(broker)
                    yield (kind, broker, kept), step.end()

    def sent_in(self, number: int) -> int:
        """The leader epoch in which a follower sent a fetch."""
        known = self._sent_in.get(number)
        if known is None:
            request = self.machine.payload(self.messages[number].payload)
            is_list = isinstance(request, ListOffsetsRequest)
            known = self._sent_in[number] = request.leader_epoch if is_list else request.positions[0][2]
        return known

    def is_silent(self, snapshot: int, broker: int, transaction: tuple[int, ...]) -> bool:
        """Whether a broker may replay a transaction at once: the order of this and other events changes nothing.

        A follower acts on another leader or leader epoch only, and needs the registrations when it leads, after
        replaying that. A leader does not ask for its own registration, and a record that it knows from an
        AlterPartition response changes nothing with rule ``equal_partition_epoch=keeps-pending-isr``, unless it ends
        the use of the response's ``min.insync.replicas``. A follower needs that when it leads; with rule
        ``config_replay=before-topics`` it does not matter whether it replays it before or with that.
        """
        if not self.reduced:
            return False
        key = snapshot, transaction
        known = self._silent.get(key)
        if known is None:
            view = self.machine.views[snapshot]
            records = [self._kraft.record(record) for record in transaction]
            known = view.state == UP and all(self._is_silent_record(view, broker, record) for record in records)
            self._silent[key] = known
        return known

    def _is_silent_record(self, view: View, broker: int, record: Record) -> bool:
        if isinstance(record, BrokerRegistration):
            return not view.leads or record.broker == broker
        if isinstance(record, ConfigRecord):
            if record.key == ELR_FEATURE:
                return True  # Brokers do not act on it.
            return not view.leads and not self.decide.applies_configs_last.answer
        assert isinstance(record, PartitionRegistration)
        if record.leader_epoch != view.epoch:
            return False
        if not view.leads:
            return record.leader != broker
        if record.partition_epoch == view.partition_epoch and view.answered_min_isr:
            return False
        return record.partition_epoch <= view.partition_epoch and self.decide.keeps_pending_isr.answer

    # Properties.

    def findings(self, state: int) -> tuple[str, ...]:
        """The kinds of violations and early warnings that a state shows."""
        parts = self.parts(state)
        past = parts.control.past
        return kinds_of(
            self.views(parts),
            self.known(parts),
            past.acked,
            past.committed,
            promised=self._promised(past),
            remembers=self._remembers and not (past.min_isr_changes or past.feature_changes),
        )

    def _promised(self, past: KRaftPast) -> int:
        """The records that KIP-966 promises, as a bit set: fewer ends so far without a clean-shutdown file, lossy or
        not, than the smallest ``min.insync.replicas`` since the record was committed.

        Without the feature no eligible replicas are kept. So another ISR member has to be there while one is damaged.
        """
        unclean = past.losses + past.kills
        if past.feature_changes and (past.alone or unclean > 1):
            return 0
        if not past.smallest:
            return ALL if unclean < self.bounds.min_isr else 0
        return sum([1 << record for record, size in enumerate(past.smallest) if unclean < size])


class KRaftStep(cluster.ExploredStep[KRaftCluster]):
    """A state that is being changed."""

    __slots__ = KRaftControl._fields

    def __init__(self, world: KRaftCluster, parts: Parts[KRaftControl]) -> None:
        snapshots, control, flights = parts
        self.world = world
        self.snapshots = list(snapshots)
        self.flights = list(flights)
        self.controller, self.tail, behind, self.past = control
        self.behind = list(behind)

    def note_appended(self, count: int) -> None:
        self.past = self.past._replace(appended=self.past.appended + count)

    def note_lag(self) -> None:
        self.past = self.past._replace(lags=self.past.lags + 1)

    def end(self) -> int:
        """The resulting state: brokers replay what makes no difference, records that no broker needs are dropped."""
        world = self.world
        for place, behind in enumerate(self.behind):
            while behind and world.is_silent(self.snapshots[place], place + 1, self.tail[-behind]):
                self.replay(place + 1, 1)
                behind -= 1
        if world.stale and world.reduced and not world.stale.isdisjoint(self.flights):
            self._drop_refused()
        if self.tail:
            self.tail = self.tail[len(self.tail) - max(self.behind) :]
        if world.bounds.feature_changes > 0 and not self.past.alone and self._is_alone():
            self.past = self.past._replace(alone=True)
        control = KRaftControl(self.controller, self.tail, tuple(self.behind), self.past)
        return world.number(tuple(self.snapshots), control, tuple(sorted(self.flights)))

    def _is_alone(self) -> bool:
        """Whether a process has ended uncleanly and not registered yet while no other ISR member is running."""
        world = self.world
        if not self.past.losses + self.past.kills:
            return False
        known = world.controller.views[self.controller]
        views = [world.machine.views[snapshot] for snapshot in self.snapshots]
        running = {
            member
            for member in known.isr or known.elr
            if views[member - 1].state == UP and not known.brokers[member].fenced
        }
        return any(
            view.state == STARTING and not view.knows_metadata and view.clean_epoch < 0 and not running - {broker}
            for broker, view in zip(world.brokers, views, strict=True)
        )

    def _drop_refused(self) -> None:
        """Drop stale requests of a leader epoch below the receiver's: they are refused, and no sender waits."""
        world = self.world
        kept = []
        for number in self.flights:
            if number in world.stale:
                leader = world.messages[number].leader
                if world.sent_in(number) < world.machine.views[self.snapshots[leader - 1]].epoch:
                    continue
            kept.append(number)
        self.flights = kept

    # Brokers.

    def run(self, broker: int, event: Event) -> BrokerOutcome:
        """Run an event at a broker, with its immediate effects."""
        outcome = self.local(broker, event)
        if outcome.acked or outcome.committed:
            acked, committed = self.past.acked | outcome.acked, self.past.committed | outcome.committed
            self.past = self.past._replace(acked=acked, committed=committed)
            if outcome.committed and self.past.smallest:
                self._note_smallest(broker, outcome.min_isr, outcome.committed)
        if outcome.proposal >= 0:
            epoch = self.world.machine.views[outcome.snapshot].broker_epoch
            self.send(Alter(broker, epoch, outcome.proposal))
        return outcome

    def _note_smallest(self, broker: int, min_isr: int, committed: int) -> None:
        """Note the ``min.insync.replicas`` at a commit: the leader's, or the controller's if smaller.

        A commit by a deposed leader counts from when it was deposed (`faults.promise.commitments`).
        """
        known = self.world.controller.views[self.controller]
        epoch = self.world.machine.views[self.snapshots[broker - 1]].epoch
        leads = known.leader == broker and known.epoch == epoch and not known.brokers[broker].fenced
        size = min(min_isr, known.min_isr if leads else self.past.lowest)
        smallest = [
            (before or size) if committed >> record & 1 else before for record, before in enumerate(self.past.smallest)
        ]
        self.past = self.past._replace(smallest=tuple(smallest))

    def replay(self, broker: int, count: int) -> None:
        """A broker replays its next transactions together."""
        world = self.world
        behind = self.behind[broker - 1]
        end = len(self.tail)
        records = tuple(chain.from_iterable(self.tail[end - behind : end - behind + count]))
        self.behind[broker - 1] = behind - count
        view = world.machine.views[self.snapshots[broker - 1]]
        if view.state == UP:
            self.run(broker, ("replay", records))
            return
        image = None if view.knows_metadata else world.controller.views[self.controller].image
        self.run(broker, ("publish", image, records))
        self.retry(broker)

    def start(self, broker: int) -> None:
        """A process starts, and registers."""
        outcome = self.local(broker, ("start",))
        view = self.world.machine.views[outcome.snapshot]
        self.send(Register(broker, view.incarnation, view.clean_epoch))

    def stop(self, broker: int, kept: int, *, clean: bool) -> None:
        """A process ends, and its connections with it. Requests to the controller may have arrived."""
        self.snapshots[broker - 1] = self.world.machine.step(self.snapshots[broker - 1], ("end", kept, clean)).snapshot
        self.behind[broker - 1] = 0
        self.disconnect(broker)
        gone = (Altered,) if self.world.keeps_responses else (Altered, RegistrationAnswer)
        messages = self.world.messages.values
        self.flights = [
            number for number in self.flights if type(messages[number]) not in gone or messages[number].broker != broker
        ]

    # The controller.

    def commit(self, decided: ControllerDecision) -> None:
        """The controller has committed records, which every broker that has registered will replay."""
        self.controller = decided.snapshot
        past = self.past
        if past.smallest:
            size = self.world.controller.views[decided.snapshot].min_isr
            smallest = tuple([min(known, size) for known in past.smallest])
            self.past = past._replace(smallest=smallest, lowest=min(past.lowest, size))
        if not decided.records:
            return
        self.tail += (decided.records,)
        for place, snapshot in enumerate(self.snapshots):
            view = self.world.machine.views[snapshot]
            if view.state == UP or (view.state == STARTING and view.knows_metadata):
                self.behind[place] += 1
