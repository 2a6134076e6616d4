"""A cluster with ZooKeeper and an ideal controller.

The controller never fails and always knows ZooKeeper's state. All its elections are clean: it elects members of the
ISR that have a session, moves leadership while the old leader stays in the ISR (a preferred election), and, when a
session expires, takes the broker out of the ISR unless it is the last member. Each of that raises the leader epoch.
Decisions reach each broker in order and after any delay; what still waits in the controller's queue when a session
expires is dropped, and a broker that registers again receives the current state. Requests and replies between brokers
take any time and overtake each other; a leader changes the ISR by one atomic write to ZooKeeper, which fails if it
does not know the present version.

Nothing is ever lost from a log but by truncation: a crash keeps the page cache. So every loss is the protocol's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from highwater.lab.explore import cluster, wording
from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.cluster import ExploredCluster, Parts
from highwater.lab.explore.messages import Fetch
from highwater.lab.explore.properties import KINDS as ALL_KINDS
from highwater.lab.explore.properties import incomplete, mismatches
from highwater.lab.explore.wording import listed, role
from highwater.lab.explore.zookeeper.broker import ZooKeeperBrokerMachine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from highwater.lab.explore.broker_machine import BrokerOutcome, Event, View
    from highwater.lab.explore.cluster import Way
    from sim.protocol.rules import Rules

NOBODY: Final = 0
LOSS: Final = "exposed-loss"
DIVERGENCE: Final = "divergence"
INCOMPLETE: Final = "candidate-incomplete"
VIOLATIONS: Final = {kind: ALL_KINDS[kind] for kind in (LOSS, DIVERGENCE)}
"""Kind -> meaning."""
WARNINGS: Final = {INCOMPLETE: "a running member of the ISR lacks a record that a HW has passed"}
"""Kind -> meaning: what may lead to a violation (StrongIsr in github.com/hachikuji/kafka-specification)."""
KINDS: Final = {**VIOLATIONS, **WARNINGS}
"""All kinds."""

SENTENCES: Final = {
    **wording.SENTENCES,
    "elect": "the controller elects broker {0}, which is in the ISR",
    "expire": "the session of broker {0} expires; leader is {1}",
    "register": "broker {0} registers",
    "hear": "broker {0} receives the decision that broker {1} leads in {2}",
    "delete": "broker {0} deletes the records below offset {1}",
    "crash": "broker {0} crashes",
    "start": "broker {0} starts with HW {1}",
}
"""Kind of an event -> its sentence."""


@dataclass(frozen=True, slots=True)
class ZooKeeperBounds(cluster.ExploredBounds):
    """How much may happen, and what. All brokers are members of the first ISR; broker 1 leads first.

    Attributes:
        epochs: leader epochs, the first one included.
        crashes: processes that may end, and start again after their session is gone; started again, they know the HW
            that they had at the end or, if the checkpoint is old, 0.
        bounces: some of these crashes may go unnoticed: the process is back before its session is gone, stays in the
            ISR, and receives the current state (KIP-101 tells its scenario 1 so).
        zombies: sessions of running processes may expire; they go on as they did, and register again at any time.
        deletions: how often a leader may delete records (DeleteRecords, retention), up to its HW unless a mutant goes
            on to its LEO. With rule ``log_start_checkpoint`` periodic, a process that starts does not know of it: its
            file with the log start is up to a minute old.
        prompt: decisions reach all brokers with a session at once.
    """

    epochs: int = 3
    crashes: int = 0
    bounces: bool = False
    zombies: bool = False
    deletions: int = 0
    prompt: bool = False


class ZooKeeperDecision(NamedTuple):
    """A LeaderAndIsr."""

    leader: int
    epoch: int
    isr: tuple[int, ...]


class ZooKeeperControl(NamedTuple):
    """What ZooKeeper has stored, the controller's part of a state, and what has happened.

    Attributes:
        leader: of the partition, 0 without a leader.
        epoch: its leader epoch.
        isr: its ISR.
        live: brokers with a session.
        queues: decisions on their way to each broker, in the order of their ids.
        appended: records so far.
        committed: records that any leader's HW has passed, as a bit set.
        crashes: so far.
        lags: so far.
        deletions: so far.
        deleted: records that a leader has deleted, as a bit set: losing them is no loss.
    """

    leader: int
    epoch: int
    isr: tuple[int, ...]
    live: tuple[int, ...]
    queues: tuple[tuple[ZooKeeperDecision, ...], ...]
    appended: int = 0
    committed: int = 0
    crashes: int = 0
    lags: int = 0
    deletions: int = 0
    deleted: int = 0


class ZooKeeperCluster(ExploredCluster[ZooKeeperControl, ZooKeeperBounds]):
    """The possible events of a cluster with ZooKeeper.

    Args:
        rules: of every broker.
        bounds: how much may happen.
    """

    kinds: ClassVar[Mapping[str, str]] = KINDS
    violations: ClassVar[Collection[str]] = VIOLATIONS
    FAULTS: ClassVar[Collection[str]] = frozenset({"elect", "expire", "lag", "crash", "delete"})
    SERVES: ClassVar[str] = "serve"
    RECEIVES: ClassVar[str] = "receive"
    SENTENCES: ClassVar[Mapping[str, str]] = SENTENCES

    def __init__(self, rules: Rules, bounds: ZooKeeperBounds) -> None:
        super().__init__(rules, bounds)
        self.step = ZooKeeperStep
        self.machine = ZooKeeperBrokerMachine(self.decide, self.payloads, self.brokers)
        self._places: dict[int, tuple[Any, ...]] = {}

    # Words.

    def _elected(self, parts: Parts[ZooKeeperControl]) -> str:
        control = parts.control
        return f"leader {control.leader or 'none'} in {control.epoch}, ISR {listed(control.isr)}"

    def _role(self, broker: int, view: View, parts: Parts[ZooKeeperControl]) -> str:
        expired = "" if broker in parts.control.live else " without a session"
        return f"{expired} {role(view)}"

    # States.

    def first(self) -> int:
        """The first state: broker 1 leads in epoch 0, all others follow, the logs are empty."""
        brokers = self.brokers
        down = tuple(self.machine.create(broker) for broker in brokers)
        none: tuple[tuple[ZooKeeperDecision, ...], ...] = ((),) * len(brokers)
        step = ZooKeeperStep(self, Parts(down, ZooKeeperControl(1, 0, brokers, brokers, none), ()))
        for broker in brokers:
            step.run(broker, ("start", 0))
        for broker in brokers:
            step.run(broker, ("control", 1, 0, brokers))
        if self.bounds.prefix:
            step.appended = self.bounds.prefix
            step.run(1, ("append", 0, step.appended))
            for _ in range(2 * len(("truncate", "fetch", "acknowledge", "hear of it")) * len(brokers)):
                oldest = step.flights[0]
                if isinstance(self.messages[oldest], Fetch):
                    step.serve(oldest)
                else:
                    step.receive(oldest)
        return step.end()

    # Properties.

    def findings(self, state: int) -> tuple[str, ...]:
        """The kinds of violations and early warnings that a state shows."""
        parts = self.parts(state)
        control, views = parts.control, self.views(parts)
        needed = control.committed & ~control.deleted
        found = incomplete(views, control.leader, control.epoch, control.isr, 0, needed) + mismatches(views)
        return tuple([kind for kind in found if kind in KINDS])

    # What can happen.

    def successors(self, state: int) -> Iterator[Way]:
        """All possible next events, with the resulting states."""
        parts = self.parts(state)
        yield from self._sessions(parts)
        yield from self._decisions(parts)
        yield from self._deliveries(parts)
        yield from self._leaders(parts)
        if self.bounds.crashes:
            yield from self._processes(parts)

    def _sessions(self, parts: Parts[ZooKeeperControl]) -> Iterator[Way]:
        control = parts.control
        may_decide = control.epoch + 1 < self.bounds.epochs
        for broker, view in enumerate(self.views(parts), 1):
            is_up = view.state == UP
            if broker in control.live:
                if may_decide and broker in control.isr and control.leader not in (broker, NOBODY):
                    yield ("elect", broker), ZooKeeperStep(self, parts).decide(broker, control.isr).end()
                if not is_up or self.bounds.zombies:
                    yield from self._expire(parts, broker, may_decide=may_decide)
            elif is_up:
                step = ZooKeeperStep(self, parts)
                step.live = tuple(sorted((*control.live, broker)))
                step.queues[broker - 1] = ()
                if control.leader == NOBODY and broker in control.isr:
                    if not may_decide:
                        continue
                    step.decide(broker, control.isr)
                else:
                    step.notify(broker, ZooKeeperDecision(control.leader, control.epoch, control.isr))
                yield ("register", broker), step.end()

    def _expire(self, parts: Parts[ZooKeeperControl], broker: int, *, may_decide: bool) -> Iterator[Way]:
        control = parts.control
        rest = tuple(member for member in control.isr if member != broker)
        live = tuple(member for member in control.live if member != broker)
        leaders: tuple[int, ...]
        if control.leader == broker:
            leaders = tuple(member for member in rest if member in live) or (NOBODY,)
        else:
            leaders = (control.leader,)
        decides = broker in control.isr and control.leader != NOBODY
        if decides and not may_decide:
            return
        for leader in leaders:
            step = ZooKeeperStep(self, parts)
            step.live = live
            step.queues[broker - 1] = step.queues[broker - 1][:1]  # One may be on its way, the queue is dropped.
            if decides:
                step.decide(leader, rest or control.isr)
            yield ("expire", broker, leader), step.end()

    def _decisions(self, parts: Parts[ZooKeeperControl]) -> Iterator[Way]:
        for broker, view in enumerate(self.views(parts), 1):
            queue = parts.control.queues[broker - 1]
            if queue and view.state == UP:
                step = ZooKeeperStep(self, parts)
                step.queues[broker - 1] = queue[1:]
                step.run(broker, ("control", *queue[0]))
                yield ("hear", broker, queue[0].leader, queue[0].epoch), step.end()

    def _in_order(self, flights: tuple[int, ...]) -> Sequence[int]:
        """Messages by follower, leader and content."""
        return sorted(set(flights), key=self._place)

    def _place(self, number: int) -> tuple[Any, ...]:
        known = self._places.get(number)
        if known is None:
            message = self.messages[number]
            is_request = isinstance(message, Fetch)
            is_stale = is_request and message.stale
            known = self._places[number] = (message.follower, message.leader, not is_request, message.payload, is_stale)
        return known

    def _is_idle(self, follower: int, leader: int, message: Fetch, control: ZooKeeperControl) -> bool:
        machine = self.machine
        served = machine.step(leader, ("serve", message.follower, message.payload))
        snapshot, reply = served.snapshot, served.reply
        if served.proposal >= 0:
            isr = machine.payload(served.proposal)
            is_present = self.is_present(message.leader, snapshot, control)
            snapshot = machine.step(snapshot, ("persisted", isr) if is_present else ("refused",)).snapshot
        if reply < 0:
            reply = machine.step(snapshot, ("answer",)).reply
        after = machine.step(follower, ("reply", reply))
        return (snapshot, after.snapshot, after.requests) == (leader, follower, ((message.leader, message.payload),))

    def is_present(self, broker: int, snapshot: int, control: ZooKeeperControl | ZooKeeperStep) -> bool:
        """Whether ZooKeeper has stored a broker as leader in the leader epoch that it knows."""
        return control.leader == broker and control.epoch == self.machine.views[snapshot].epoch

    def _deletions(self, broker: int, view: View, parts: Parts[ZooKeeperControl]) -> Iterator[Way]:
        if parts.control.deletions < self.bounds.deletions:
            end = view.hw
            if view.hw < len(view.records) and self.decide.mutants.log_start_above_hw.differs():
                end = len(view.records)
            for offset in range(view.log_start + 1, end + 1):
                step = ZooKeeperStep(self, parts)
                step.delete(broker, offset)
                yield ("delete", broker, offset), step.end()

    def _processes(self, parts: Parts[ZooKeeperControl]) -> Iterator[Way]:
        for broker, view in enumerate(self.views(parts), 1):
            if view.state == UP:
                if parts.control.crashes < self.bounds.crashes:
                    step = ZooKeeperStep(self, parts)
                    step.crash(broker)
                    yield ("crash", broker), step.end()
            elif self.bounds.bounces or broker not in parts.control.live:
                for hw in sorted({0, view.hw}):
                    step = ZooKeeperStep(self, parts)
                    step.start(broker, hw)
                    yield ("start", broker, hw), step.end()


class ZooKeeperStep(cluster.ExploredStep[ZooKeeperCluster]):
    """A state that is being changed."""

    __slots__ = ZooKeeperControl._fields

    def __init__(self, world: ZooKeeperCluster, parts: Parts[ZooKeeperControl]) -> None:
        snapshots, control, flights = parts
        self.world = world
        self.snapshots = list(snapshots)
        self.flights = list(flights)
        self.leader, self.epoch, self.isr, self.live, queues, self.appended, self.committed, *counts = control
        self.crashes, self.lags, self.deletions, self.deleted = counts
        self.queues = list(queues)

    def note_appended(self, count: int) -> None:
        self.appended += count

    def note_lag(self) -> None:
        self.lags += 1

    def end(self) -> int:
        """The resulting state."""
        control = ZooKeeperControl(
            self.leader,
            self.epoch,
            self.isr,
            self.live,
            tuple(self.queues),
            self.appended,
            self.committed,
            self.crashes,
            self.lags,
            self.deletions,
            self.deleted,
        )
        return self.world.number(tuple(self.snapshots), control, tuple(sorted(self.flights)))

    def decide(self, leader: int, isr: tuple[int, ...]) -> ZooKeeperStep:
        """The controller writes another leader or ISR, and notifies every broker with a session."""
        self.leader = leader
        self.epoch += 1
        self.isr = isr
        decision = ZooKeeperDecision(leader, self.epoch, isr)
        views = self.world.machine.views
        for broker in self.live:
            if views[self.snapshots[broker - 1]].state == UP:
                self.notify(broker, decision)
        return self

    def notify(self, broker: int, decision: ZooKeeperDecision) -> None:
        """Send a decision to a broker."""
        if self.world.bounds.prompt:
            self.run(broker, ("control", *decision))
        else:
            self.queues[broker - 1] = (*self.queues[broker - 1], decision)

    def run(self, broker: int, event: Event) -> BrokerOutcome:
        """Run an event at a broker, with its immediate effects."""
        outcome = self.local(broker, event)
        self.committed |= outcome.committed
        if outcome.proposal >= 0:
            if self.world.is_present(broker, outcome.snapshot, self):
                self.isr = self.world.machine.payload(outcome.proposal)
                self.run(broker, ("persisted", self.isr))
            else:
                self.run(broker, ("refused",))
        if outcome.halted:
            self.crash(broker)
        return outcome

    def delete(self, broker: int, offset: int) -> None:
        """A leader deletes the records below an offset. Losing the committed ones is no loss."""
        self.deletions += 1
        view = self.world.machine.views[self.snapshots[broker - 1]]
        gone = view.records[: min(offset, view.hw)]
        self.deleted |= sum(1 << record[0] for record in gone if record is not None)
        self.run(broker, ("delete", offset))

    def crash(self, broker: int) -> None:
        """End a process and its connections."""
        self.crashes += 1
        self.snapshots[broker - 1] = self.world.machine.step(self.snapshots[broker - 1], ("end",)).snapshot
        self.queues[broker - 1] = ()
        self.disconnect(broker)

    def start(self, broker: int, hw: int) -> None:
        """Start a process; brokers that waited for its former one retry."""
        self.run(broker, ("start", hw))
        if broker in self.live:
            self.notify(broker, ZooKeeperDecision(self.leader, self.epoch, self.isr))
        self.retry(broker)
