"""A KRaft cluster whose every order of events can be tried: brokers, a controller, and what is in flight between them.

An event is one of: a message arrives, a broker replays metadata records, a producer's write is appended, a session
expires, a heartbeat unfences a broker, a follower lags, a process ends or starts. Messages take any time and overtake
each other; a broker's connections end with its process. The cluster's actions mirror those of the public specification
of KIP-966 (README.md).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.broker_machine import DOWN, STARTING, UP, BrokerMachine
from highwater.lab.explore.controller_machine import ControllerMachine
from highwater.lab.explore.interning import Table
from highwater.lab.explore.properties import kinds_of
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import (
    ELR_FEATURE,
    MIN_ISR,
    BrokerRegistration,
    ConfigRecord,
    PartitionRegistration,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.lab.explore.broker_machine import Event, Outcome, View
    from highwater.lab.explore.controller_machine import Decided
    from sim.protocol.kraft.metadata import Record
    from sim.protocol.rules import Rules

REQUEST_OF_ANOTHER_PROCESS: Final = "registration-of-another-request"
"""The mutant to which a response to an ended process matters."""
FAULTS: Final = frozenset({"expire", "lose", "stop", "kill", "lag", "elect", "configure", "feature"})
"""Kinds of events that the bounds count."""
Action = tuple[Any, ...]
ALL: Final = -1
"""All records, as a bit set."""
_BITS: Final = 28
_MASK: Final = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen; the defaults are those of the specification's shipped configuration.

    Attributes:
        records: records that producers send in all; a refused one is not sent again.
        isr: members of the ISR at first; the others are fenced, and have not replayed that.
        losses: ends of a process that lose the newest records of its log, down to any record.
        stops: ends of a process that lose nothing, with or without a clean-shutdown file.
        fences: sessions of running brokers that expire.
        lags: times that a leader finds a follower to lag.
        elections: preferred elections, each of a running ISR member.
        min_isr: ``min.insync.replicas`` at first.
        min_isr_changes: times that an administrator sets it to another value, from 1 to the number of brokers.
        feature_changes: times that an administrator disables or enables feature ``eligible.leader.replicas.version``.
        brokers: brokers, all of them replicas.
        any_order: elections try the candidates in any order; otherwise in that of the assignment 1, 2, 3.
    """

    records: int = 1
    isr: int = 2
    losses: int = 1
    stops: int = 0
    fences: int = 1
    lags: int = 0
    elections: int = 0
    min_isr: int = 2
    min_isr_changes: int = 0
    feature_changes: int = 0
    brokers: int = 3
    any_order: bool = True

    @property
    def sentence(self) -> str:
        """The bounds that differ from the defaults."""
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return ", ".join(f"{one.name.replace('_', ' ')} {getattr(self, one.name)}" for one in changed)


class Fetch(NamedTuple):
    """A follower's request in flight; it is stale if the follower no longer waits for the response."""

    follower: int
    leader: int
    payload: int
    epoch: int
    stale: bool
    kind: str = "Fetch"


class Fetched(NamedTuple):
    """A leader's response in flight."""

    follower: int
    leader: int
    payload: int
    kind: str = "Fetched"


class Alter(NamedTuple):
    """An AlterPartition request in flight."""

    broker: int
    broker_epoch: int
    payload: int
    kind: str = "Alter"


class Altered(NamedTuple):
    """An AlterPartition response in flight."""

    broker: int
    payload: int
    kind: str = "Altered"


class Register(NamedTuple):
    """A registration request in flight."""

    broker: int
    incarnation: int
    clean_epoch: int
    kind: str = "Register"


class Registered(NamedTuple):
    """A registration response in flight."""

    broker: int
    incarnation: int
    broker_epoch: int
    kind: str = "Registered"


class Control(NamedTuple):
    """The controller's part of a state, and what has happened.

    Attributes:
        controller: snapshot of the controller.
        tail: the newest transactions of the metadata log, as far as some broker has not replayed them: the numbers of
            their records.
        behind: number of transactions that each broker has not replayed; 0 for one that has not registered.
        appended: records that producers have sent.
        acked: records that were acknowledged, as a bit set.
        committed: records that a leader's HW has passed, as a bit set.
        losses: see `Bounds`; so for `stops`, `fences`, `lags`, `elections`, `min_isr_changes` and `feature_changes`.
        kills: those of the stops that leave no clean-shutdown file.
        smallest: by record: the smallest ``min.insync.replicas`` since a leader's HW passed it, 0 before that; empty if
            that decides nothing: it does not change, or no process ends.
        lowest: the smallest ``min.insync.replicas`` so far; 0 if `smallest` is empty.
        alone: with `feature_changes`: a process ended uncleanly, and before it registered again there was a time when
            no other member of the ISR was running and unfenced.
    """

    controller: int
    tail: tuple[tuple[int, ...], ...]
    behind: tuple[int, ...]
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


class Cluster:
    """The possible events of a cluster. A state is a number.

    Args:
        rules: of brokers and controller.
        bounds: how much may happen.
        reduced: leave out orders of events that make no difference (README.md).
    """

    def __init__(self, rules: Rules, bounds: Bounds, *, reduced: bool = True) -> None:
        self.bounds = bounds
        self.decide = Decisions(rules)
        self.brokers = tuple(range(1, bounds.brokers + 1))
        self.payloads = Table()
        self.records = Table()
        changes = bounds.min_isr_changes > 0
        self.machine = BrokerMachine(self.decide, self.payloads, self.records, min_isr_changes=changes)
        self.controller = ControllerMachine(self.decide, self.payloads, self.records, bounds.min_isr, self.brokers)
        self.reduced = reduced
        self.keeps_responses = not reduced or rules.mutant == REQUEST_OF_ANOTHER_PROCESS
        self._orders = tuple(permutations(self.brokers)) if bounds.any_order else (self.brokers,)
        self._decisions: dict[tuple[int, Event], tuple[Decided, ...]] = {}
        self._idle: dict[tuple[int, int, int, int], bool] = {}
        self._silent: dict[tuple[int, tuple[int, ...]], bool] = {}
        self.messages = Table()
        self.stale: set[int] = set()
        """Numbers of stale fetches."""
        self._snapshots = Table()
        self._controls = Table()
        self._flights = Table()

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
        step = Step(
            self,
            down,
            Control(controller, (), nobody, *(0,) * 11, smallest, self.bounds.min_isr if smallest else 0, False),
            (),
        )
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

    def number(self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]) -> int:
        """The state with these parts."""
        one = self._snapshots.number(snapshots)
        two = self._controls.number(control)
        three = self._flights.number(flights)
        return one | two << _BITS | three << 2 * _BITS

    def parts(self, state: int) -> tuple[tuple[int, ...], Control, tuple[int, ...]]:
        """The snapshots of the brokers, the control part, and the messages in flight."""
        return (
            self._snapshots[state & _MASK],
            self._controls[state >> _BITS & _MASK],
            self._flights[state >> 2 * _BITS],
        )

    # What can happen.

    def successors(self, state: int) -> Iterator[tuple[Action, int]]:
        """All possible next events, with the resulting states."""
        snapshots, control, flights = self.parts(state)
        yield from self._deliveries(snapshots, control, flights)
        yield from self._replays(snapshots, control, flights)
        yield from self._sessions(snapshots, control, flights)
        yield from self._administration(snapshots, control, flights)
        yield from self._leaders(snapshots, control, flights)
        yield from self._processes(snapshots, control, flights)

    def _deliveries(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        for number in flights:
            message = self.messages[number]
            kind = type(message)
            if kind is Fetch:
                leader = snapshots[message.leader - 1]
                if self.machine.views[leader].state != UP:
                    continue
                if not message.stale and self._is_idle(snapshots[message.follower - 1], leader, message):
                    continue
                step = Step(self, snapshots, control, flights)
                step.serve(number)
            elif kind is Fetched:
                step = Step(self, snapshots, control, flights)
                step.flights.remove(number)
                step.run(message.follower, ("reply", message.payload))
            elif kind is Alter:
                yield from self._alter(number, snapshots, control, flights)
                continue
            elif kind is Altered:
                step = Step(self, snapshots, control, flights)
                step.flights.remove(number)
                step.run(message.broker, ("altered", message.payload))
            elif kind is Register:
                yield from self._register(number, snapshots, control, flights)
                continue
            else:
                state = self.machine.views[snapshots[message.broker - 1]].state
                if state == DOWN:
                    continue
                step = Step(self, snapshots, control, flights)
                step.flights.remove(number)
                if state == STARTING:  # One that is up waits for no registration.
                    step.local(message.broker, ("registered", message.incarnation, message.broker_epoch))
            yield ("arrive", number), step.end()

    def _is_idle(self, follower: int, leader: int, message: Fetch) -> bool:
        """Whether request and response change nothing and lead to the same request: it may as well arrive later."""
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

    def decisions(self, controller: int, event: Event) -> tuple[Decided, ...]:
        """The different outcomes of an event at the controller, over the orders of the assignment."""
        key = controller, event
        known = self._decisions.get(key)
        if known is None:
            outcomes = [self.controller.step(controller, event, order) for order in self._orders]
            known = self._decisions[key] = tuple(dict.fromkeys(outcomes))
        return known

    def _alter(
        self, number: int, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        message = self.messages[number]
        for decided in self.decisions(control.controller, ("alter", message.broker, message.payload)):
            if decided.error:
                continue  # A stale broker epoch: the request would be sent again and again.
            step = Step(self, snapshots, control, flights)
            step.flights.remove(number)
            view = self.machine.views[snapshots[message.broker - 1]]
            if view.state == UP and view.broker_epoch == message.broker_epoch:
                step.send(Altered(message.broker, decided.reply))
            step.commit(decided)
            yield ("arrive", number), step.end()

    def _register(
        self, number: int, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        message = self.messages[number]
        for decided in self.decisions(control.controller, ("register", *message[:3])):
            if decided.error:
                continue  # An earlier process has a session: the broker tries again.
            step = Step(self, snapshots, control, flights)
            step.flights.remove(number)
            step.commit(decided)
            view = self.machine.views[snapshots[message.broker - 1]]
            if view.state == STARTING and view.incarnation == message.incarnation:
                image = self.controller.views[step.controller].image
                step.local(message.broker, ("committed", *image))
                if not self.keeps_responses:
                    step.local(message.broker, ("registered", message.incarnation, decided.reply))
                    step.replay(message.broker, 0)
            if self.keeps_responses:
                step.send(Registered(message.broker, message.incarnation, decided.reply))
            for other in flights:
                old = self.messages[other]
                if type(old) is Alter and old.broker == message.broker:
                    step.flights.remove(other)  # It would be refused for ever.
            yield ("arrive", number), step.end()

    def _replays(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        for broker in self.brokers:
            view = self.machine.views[snapshots[broker - 1]]
            behind = control.behind[broker - 1]
            first = 1
            if view.state == STARTING and view.broker_epoch >= 0:
                first = 0
            elif view.state != UP:
                continue
            seen = set()
            for count in range(first, behind + 1):
                step = Step(self, snapshots, control, flights)
                step.replay(broker, count)
                after = step.end()
                if after not in seen:
                    seen.add(after)
                    yield ("replay", broker, count), after

    def _sessions(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        known = self.controller.views[control.controller]
        for broker in self.brokers:
            view = self.machine.views[snapshots[broker - 1]]
            registered = known.brokers[broker]
            if view.state != UP:
                continue
            if not registered.fenced:
                if control.fences < self.bounds.fences:
                    for decided in self.decisions(control.controller, ("fence", broker)):
                        step = Step(self, snapshots, control, flights)
                        step.fences += 1
                        step.commit(decided)
                        yield ("expire", broker), step.end()
            else:
                for decided in self.decisions(
                    control.controller, ("heartbeat", broker, view.broker_epoch, view.broker_epoch)
                ):
                    if decided.error:
                        continue  # A stale broker epoch.
                    step = Step(self, snapshots, control, flights)
                    step.commit(decided)
                    yield ("heartbeat", broker), step.end()

    def _administration(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        known = self.controller.views[control.controller]
        if control.elections < self.bounds.elections:
            for decided in self.decisions(control.controller, ("elect",)):
                elected = self.controller.views[decided.snapshot].leader
                if decided.error or elected == known.leader:
                    continue
                step = Step(self, snapshots, control, flights)
                step.elections += 1
                step.commit(decided)
                yield ("elect", elected), step.end()
        if control.min_isr_changes < self.bounds.min_isr_changes:
            for value in self.brokers:
                if value == known.min_isr:
                    continue
                (decided,) = self.decisions(control.controller, ("configure", MIN_ISR, value))
                step = Step(self, snapshots, control, flights)
                step.min_isr_changes += 1
                step.commit(decided)
                yield ("configure", value), step.end()
        if control.feature_changes < self.bounds.feature_changes:
            level = 1 - known.elr_level
            (decided,) = self.decisions(control.controller, ("configure", ELR_FEATURE, level))
            if not decided.error:
                step = Step(self, snapshots, control, flights)
                step.feature_changes += 1
                step.commit(decided)
                yield ("feature", level), step.end()

    def _leaders(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        for broker in self.brokers:
            view = self.machine.views[snapshots[broker - 1]]
            if not view.leads:
                continue
            if control.appended < self.bounds.records and len(view.isr) >= view.min_isr:
                step = Step(self, snapshots, control, flights)
                step.appended += 1
                step.run(broker, ("append", control.appended))
                yield ("append", broker, control.appended), step.end()
            if control.lags < self.bounds.lags:
                for follower in view.may_lag:
                    step = Step(self, snapshots, control, flights)
                    step.lags += 1
                    step.run(broker, ("lag", follower))
                    yield ("lag", broker, follower), step.end()

    def _processes(
        self, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> Iterator[tuple[Action, int]]:
        """A process ends, its session expires, and it starts again: see README.md why that is one event."""
        for broker in self.brokers:
            view = self.machine.views[snapshots[broker - 1]]
            leo = len(view.records)
            ends = []
            if control.losses < self.bounds.losses:
                ends += [("lose", kept, False) for kept in range(max(leo, 1))]
            if control.stops < self.bounds.stops:
                ends += [("kill", leo, False), ("stop", leo, True)]
            fenced = self.controller.views[control.controller].brokers[broker].fenced
            for kind, kept, clean in ends:
                decisions = (None,) if fenced else self.decisions(control.controller, ("fence", broker))
                for decided in decisions:
                    step = Step(self, snapshots, control, flights)
                    if kind == "lose":
                        step.losses += 1
                    else:
                        step.stops += 1
                        step.kills += not clean
                    step.stop(broker, kept, clean=clean)
                    if decided is not None:
                        step.commit(decided)
                    step.start(broker)
                    yield (kind, broker, kept), step.end()

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
            records = [self.machine.record(record) for record in transaction]
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

    def is_fault(self, kind: str) -> bool:
        """See `World.is_fault`."""
        return kind in FAULTS

    # Properties.

    def findings(self, state: int) -> tuple[str, ...]:
        """The kinds of violations and early warnings that a state shows."""
        snapshots, control, _ = self.parts(state)
        views = self.machine.views
        return kinds_of(
            [views[snapshot] for snapshot in snapshots],
            self.controller.views[control.controller],
            control.acked,
            control.committed,
            promised=self._promised(control),
            remembers=self.decide.rules.last_known_elr == "ejected-members"
            and not (control.min_isr_changes or control.feature_changes),
        )

    def _promised(self, control: Control) -> int:
        """The records that KIP-966 promises, as a bit set: fewer ends so far without a clean-shutdown file, lossy or
        not, than the smallest ``min.insync.replicas`` since the record was committed.

        Without the feature no eligible replicas are kept. So another ISR member has to be there while one is damaged.
        """
        unclean = control.losses + control.kills
        if control.feature_changes and (control.alone or unclean > 1):
            return 0
        if not control.smallest:
            return ALL if unclean < self.bounds.min_isr else 0
        return sum([1 << record for record, size in enumerate(control.smallest) if unclean < size])


class Step:
    """A state that is being changed."""

    __slots__ = (
        "_cluster",
        "acked",
        "alone",
        "appended",
        "behind",
        "committed",
        "controller",
        "elections",
        "feature_changes",
        "fences",
        "flights",
        "kills",
        "lags",
        "losses",
        "lowest",
        "min_isr_changes",
        "smallest",
        "snapshots",
        "stops",
        "tail",
    )

    def __init__(
        self, cluster: Cluster, snapshots: tuple[int, ...], control: Control, flights: tuple[int, ...]
    ) -> None:
        self._cluster = cluster
        self.snapshots = list(snapshots)
        self.flights = list(flights)
        (
            self.controller,
            self.tail,
            behind,
            self.appended,
            self.acked,
            self.committed,
            *counts,
            self.smallest,
            self.lowest,
            self.alone,
        ) = control
        self.losses, self.stops, self.fences, self.lags, self.elections, self.kills, *changes = counts
        self.min_isr_changes, self.feature_changes = changes
        self.behind = list(behind)

    def end(self) -> int:
        """The resulting state: brokers replay what makes no difference, records that no broker needs are dropped."""
        cluster = self._cluster
        for place, behind in enumerate(self.behind):
            while behind and cluster.is_silent(self.snapshots[place], place + 1, self.tail[-behind]):
                self.replay(place + 1, 1)
                behind -= 1
        self._drop_refused()
        longest = max(self.behind)
        control = Control(
            self.controller,
            self.tail[len(self.tail) - longest :],
            tuple(self.behind),
            self.appended,
            self.acked,
            self.committed,
            self.losses,
            self.stops,
            self.fences,
            self.lags,
            self.elections,
            self.kills,
            self.min_isr_changes,
            self.feature_changes,
            self.smallest,
            self.lowest,
            self.alone or self._is_alone(),
        )
        return cluster.number(tuple(self.snapshots), control, tuple(sorted(self.flights)))

    def _is_alone(self) -> bool:
        """Whether a process has ended uncleanly and not registered yet while no other ISR member is running."""
        cluster = self._cluster
        if not (cluster.bounds.feature_changes and self.losses + self.kills):
            return False
        known = cluster.controller.views[self.controller]
        views = [cluster.machine.views[snapshot] for snapshot in self.snapshots]
        running = {
            member
            for member in known.isr or known.elr
            if views[member - 1].state == UP and not known.brokers[member].fenced
        }
        return any(
            view.state == STARTING and not view.knows_metadata and view.clean_epoch < 0 and not running - {broker}
            for broker, view in zip(cluster.brokers, views, strict=True)
        )

    def _drop_refused(self) -> None:
        """Drop stale requests of a leader epoch below the receiver's: they are refused, and no sender waits."""
        cluster = self._cluster
        if not cluster.reduced or cluster.stale.isdisjoint(self.flights):
            return
        kept = []
        for number in self.flights:
            if number in cluster.stale:
                message = cluster.messages[number]
                if message.epoch < cluster.machine.views[self.snapshots[message.leader - 1]].epoch:
                    continue
            kept.append(number)
        self.flights = kept

    # Messages.

    def send(self, message: Fetch | Fetched | Alter | Altered | Register | Registered) -> None:
        """Send a message."""
        self.flights.append(self._cluster.messages.number(message))

    def drop(self, kind: type[Any], broker: int) -> None:
        """Drop the messages of a kind that concern a broker."""
        messages = self._cluster.messages

        def concerns(number: int) -> bool:
            message = messages[number]
            return type(message) is kind and broker in message[: 2 if kind in (Fetch, Fetched) else 1]

        self.flights = [number for number in self.flights if not concerns(number)]

    def serve(self, number: int) -> None:
        """A leader serves a fetch; the response sets out."""
        self.flights.remove(number)
        request = self._cluster.messages[number]
        outcome = self.run(request.leader, ("serve", request.follower, request.payload))
        if not request.stale:
            self.send(Fetched(request.follower, request.leader, outcome.reply))

    # Brokers.

    def local(self, broker: int, event: Event) -> Outcome:
        """Run an event at a broker that sends nothing but fetches."""
        cluster = self._cluster
        outcome = cluster.machine.step(self.snapshots[broker - 1], event)
        self.snapshots[broker - 1] = outcome.snapshot
        view = cluster.machine.views[outcome.snapshot]
        if outcome.requests or not view.waits:
            self._outdate(broker)
        for leader, payload in outcome.requests:
            if cluster.machine.views[self.snapshots[leader - 1]].state == UP:
                self.send(Fetch(broker, leader, payload, view.epoch, stale=False))
        return outcome

    def run(self, broker: int, event: Event) -> Outcome:
        """Run an event at a broker, with its immediate effects."""
        outcome = self.local(broker, event)
        self.acked |= outcome.acked
        self.committed |= outcome.committed
        if outcome.committed and self.smallest:
            self._note_smallest(broker, outcome.min_isr, outcome.committed)
        if outcome.proposal >= 0:
            epoch = self._cluster.machine.views[outcome.snapshot].broker_epoch
            self.send(Alter(broker, epoch, outcome.proposal))
        return outcome

    def _note_smallest(self, broker: int, min_isr: int, committed: int) -> None:
        """Note the ``min.insync.replicas`` at a commit: the leader's, or the controller's if smaller.

        A commit by a deposed leader counts from when it was deposed (`faults.promise.commitments`).
        """
        known = self._cluster.controller.views[self.controller]
        epoch = self._cluster.machine.views[self.snapshots[broker - 1]].epoch
        leads = known.leader == broker and known.epoch == epoch and not known.brokers[broker].fenced
        size = min(min_isr, known.min_isr if leads else self.lowest)
        self.smallest = tuple(
            [(known or size) if committed >> record & 1 else known for record, known in enumerate(self.smallest)]
        )

    def _outdate(self, follower: int) -> None:
        """A follower no longer waits for what is in flight: requests become stale, responses are dropped."""
        messages = self._cluster.messages
        kept = []
        for number in self.flights:
            message = messages[number]
            if type(message) is Fetched and message.follower == follower:
                continue
            if type(message) is Fetch and message.follower == follower and not message.stale:
                stale = messages.number(message._replace(stale=True))
                self._cluster.stale.add(stale)
                if stale not in kept:
                    kept.append(stale)
                continue
            kept.append(number)
        self.flights = kept

    def replay(self, broker: int, count: int) -> None:
        """A broker replays its next transactions together."""
        cluster = self._cluster
        behind = self.behind[broker - 1]
        end = len(self.tail)
        records = tuple(chain.from_iterable(self.tail[end - behind : end - behind + count]))
        self.behind[broker - 1] = behind - count
        view = cluster.machine.views[self.snapshots[broker - 1]]
        if view.state == UP:
            self.run(broker, ("replay", records))
            return
        image = None if view.knows_metadata else cluster.controller.views[self.controller].image
        self.run(broker, ("publish", image, records))
        for follower in cluster.brokers:  # Unanswered requests are sent again.
            other = cluster.machine.views[self.snapshots[follower - 1]]
            if other.follows == broker and other.waits and not self._in_flight(follower):
                self.run(follower, ("failed",))

    def _in_flight(self, follower: int) -> bool:
        messages = self._cluster.messages
        for number in self.flights:
            message = messages[number]
            kind = type(message)
            if kind in (Fetch, Fetched) and message.follower == follower and (kind is Fetched or not message.stale):
                return True
        return False

    def start(self, broker: int) -> None:
        """A process starts, and registers."""
        outcome = self.local(broker, ("start",))
        view = self._cluster.machine.views[outcome.snapshot]
        self.send(Register(broker, view.incarnation, view.clean_epoch))

    def stop(self, broker: int, kept: int, *, clean: bool) -> None:
        """A process ends, and its connections with it. Requests to the controller may have arrived."""
        self.snapshots[broker - 1] = self._cluster.machine.step(
            self.snapshots[broker - 1], ("end", kept, clean)
        ).snapshot
        self.behind[broker - 1] = 0
        for kind in (Fetch, Fetched, Altered):
            self.drop(kind, broker)
        if not self._cluster.keeps_responses:
            self.drop(Registered, broker)

    # The controller.

    def commit(self, decided: Decided) -> None:
        """The controller has committed records, which every broker that has registered will replay."""
        self.controller = decided.snapshot
        if self.smallest:
            size = self._cluster.controller.views[decided.snapshot].min_isr
            self.smallest = tuple([min(known, size) for known in self.smallest])
            self.lowest = min(self.lowest, size)
        if not decided.records:
            return
        self.tail += (decided.records,)
        for place, snapshot in enumerate(self.snapshots):
            view = self._cluster.machine.views[snapshot]
            if view.state == UP or (view.state == STARTING and view.knows_metadata):
                self.behind[place] += 1
