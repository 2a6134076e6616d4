"""A tiny cluster whose every order of events can be tried: brokers, messages between them, and an ideal controller.

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

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, NamedTuple

from highwater.lab.explore.host import UNSETTLED
from highwater.lab.explore.zookeeper.machine import Machine
from sim.protocol.messages import (
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)

if TYPE_CHECKING:
    from highwater.lab.explore.zookeeper.machine import Event, Outcome, View
    from sim.protocol.rules import Rules

NOBODY: Final = 0
LOSS: Final = "exposed-loss"
DIVERGENCE: Final = "divergence"
INCOMPLETE: Final = "candidate-incomplete"
VIOLATIONS: Final = {
    LOSS: "the leader of the newest leader epoch leads without a record that a HW has passed",
    DIVERGENCE: "two replicas that have completed truncation in the newest leader epoch differ below both HWs",
}
"""Kind -> meaning."""
WARNINGS: Final = {INCOMPLETE: "a running member of the ISR lacks a record that a HW has passed"}
"""Kind -> meaning: what may lead to a violation (StrongIsr in github.com/hachikuji/kafka-specification)."""
KINDS: Final = {**VIOLATIONS, **WARNINGS}
"""All kinds."""
FAULTS: Final = frozenset({"elect", "expire", "lag", "crash", "delete"})
"""Kinds of events that the bounds count."""
Action = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen, and what.

    Attributes:
        replicas: brokers, all of them replicas and members of the first ISR; broker 1 leads first.
        records: records appended in all.
        epochs: leader epochs, the first one included.
        batches: sizes that a batch may have.
        crashes: processes that may end, and start again after their session is gone; started again, they know the HW
            that they had at the end or, if the checkpoint is old, 0.
        bounces: some of these crashes may go unnoticed: the process is back before its session is gone, stays in the
            ISR, and receives the current state (KIP-101 tells its scenario 1 so).
        zombies: sessions of running processes may expire; they go on as they did, and register again at any time.
        lags: how often a follower may lag, so that the leader takes it out of the ISR.
        deletions: how often a leader may delete records (DeleteRecords, retention), up to its HW unless a mutant goes
            on to its LEO. With rule ``log_start_checkpoint`` periodic, a process that starts does not know of it: its
            file with the log start is up to a minute old.
        prompt: decisions reach all brokers with a session at once.
        strays: messages may arrive while leader and follower are in different leader epochs, and requests after the
            follower has given them up.
        prefix: records that everybody has at first, and knows to be committed.
    """

    replicas: int
    records: int
    epochs: int
    batches: tuple[int, ...] = (1,)
    crashes: int = 0
    bounces: bool = False
    zombies: bool = False
    lags: int = 0
    deletions: int = 0
    prompt: bool = False
    strays: bool = True
    prefix: int = 0

    @property
    def name(self) -> str:
        """What differs from the defaults, for people."""
        return " ".join(
            field.name if value is True else f"{field.name}={value}".replace(" ", "")
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        )


class Decision(NamedTuple):
    """A LeaderAndIsr."""

    leader: int
    epoch: int
    isr: tuple[int, ...]


class Message(NamedTuple):
    """A request or response in flight; a request is stale if its sender no longer waits for the response."""

    follower: int
    leader: int
    is_reply: bool
    number: int
    stale: bool


class State(NamedTuple):
    """A state of the cluster.

    Attributes:
        leader: what ZooKeeper has stored, 0 without a leader.
        epoch: its leader epoch.
        isr: its ISR.
        live: brokers with a session.
        snapshots: of the brokers, in order.
        queues: decisions on their way to each of them.
        messages: between brokers, sorted.
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
    snapshots: tuple[int, ...]
    queues: tuple[tuple[Decision, ...], ...]
    messages: tuple[Message, ...]
    appended: int
    committed: int
    crashes: int
    lags: int
    deletions: int
    deleted: int


class World:
    """The possible events of a tiny cluster.

    Args:
        rules: of every broker.
        bounds: how much may happen.
    """

    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        self.bounds = bounds
        self.brokers = tuple(range(1, bounds.replicas + 1))
        self.machine = Machine(rules, self.brokers)
        self._compared: dict[tuple[int, int], bool] = {}

    def first(self) -> State:
        """The first state: broker 1 leads in epoch 0, all others follow, the logs are empty."""
        brokers = self.brokers
        down = tuple(self.machine.create(broker) for broker in brokers)
        none: tuple[tuple[Decision, ...], ...] = ((),) * len(brokers)
        step = _Step(self, State(1, 0, brokers, brokers, down, none, (), *(0,) * 6))
        for broker in brokers:
            step.run(broker, ("start", 0))
        for broker in brokers:
            step.run(broker, ("control", 1, 0, brokers))
        if self.bounds.prefix:
            step.appended = self.bounds.prefix
            step.run(1, ("append", 0, step.appended))
            for _ in range(2 * len(("truncate", "fetch", "acknowledge", "hear of it")) * len(brokers)):
                step.deliver(step.messages[0])
        return step.end()

    # Violations.

    def findings(self, state: State) -> tuple[str, ...]:
        """The kinds of violations and early warnings that a state shows."""
        found = []
        if self.loses(state):
            found.append(LOSS)
        if self.diverges(state):
            found.append(DIVERGENCE)
        if self.may_lose(state):
            found.append(INCOMPLETE)
        return tuple(found)

    def loses(self, state: State) -> bool:
        """Whether the leader of the newest epoch leads and lacks a committed record: a leader never gets it back."""
        if state.leader == NOBODY:
            return False
        view = self.machine.views[state.snapshots[state.leader - 1]]
        return view.leads and view.epoch == state.epoch and self._lacks(state, view)

    def may_lose(self, state: State) -> bool:
        """Whether a running member of the ISR, which may be elected, lacks a committed record."""
        members = [self.machine.views[state.snapshots[broker - 1]] for broker in state.isr]
        return any(member.up and self._lacks(state, member) for member in members)

    def _lacks(self, state: State, view: View) -> bool:
        """Whether a broker lacks a committed record that is not deleted. What others have below its log start is."""
        lacks = state.committed & ~state.deleted & ~view.ids
        if lacks and view.log_start:
            for snapshot in state.snapshots:
                for record in self.machine.views[snapshot].records[: view.log_start]:
                    lacks &= -1 if record is None else ~(1 << record[0])
        return bool(lacks)

    def diverges(self, state: State) -> bool:
        """Whether two brokers that are settled in the current epoch differ below both HWs (sim.checkers.divergence)."""
        views = self.machine.views
        current = max(views[number].settled for number in state.snapshots)
        if current == UNSETTLED:
            return False
        settled = [number for number in state.snapshots if views[number].settled == current]
        return any(self._differ(one, other) for at, one in enumerate(settled) for other in settled[at + 1 :])

    def _differ(self, one: int, other: int) -> bool:
        known = self._compared.get((one, other))
        if known is None:
            ones, others = self.machine.views[one], self.machine.views[other]
            start, hw = max(ones.log_start, others.log_start), min(ones.hw, others.hw)
            known = self._compared[one, other] = ones.records[start:hw] != others.records[start:hw]
        return known

    # What can happen.

    def successors(self, state: State) -> Iterator[tuple[Action, State]]:
        """All possible next events, with the resulting states."""
        yield from self._controller(state)
        yield from self._decisions(state)
        yield from self._deliveries(state)
        yield from self._leaders(state)
        if self.bounds.crashes:
            yield from self._processes(state)

    def _controller(self, state: State) -> Iterator[tuple[Action, State]]:
        views = self.machine.views
        may_decide = state.epoch + 1 < self.bounds.epochs
        for broker in self.brokers:
            up = views[state.snapshots[broker - 1]].up
            if broker in state.live:
                if may_decide and broker in state.isr and state.leader not in (broker, NOBODY):
                    yield ("elect", broker), _Step(self, state).decide(broker, state.isr).end()
                if not up or self.bounds.zombies:
                    yield from self._expire(state, broker, may_decide=may_decide)
            elif up:
                step = _Step(self, state)
                step.live = tuple(sorted((*state.live, broker)))
                step.queues[broker - 1] = ()
                if state.leader == NOBODY and broker in state.isr:
                    if not may_decide:
                        continue
                    step.decide(broker, state.isr)
                else:
                    step.send(broker, Decision(state.leader, state.epoch, state.isr))
                yield ("register", broker), step.end()

    def _expire(self, state: State, broker: int, *, may_decide: bool) -> Iterator[tuple[Action, State]]:
        rest = tuple(member for member in state.isr if member != broker)
        live = tuple(member for member in state.live if member != broker)
        leaders: tuple[int, ...]
        if state.leader == broker:
            leaders = tuple(member for member in rest if member in live) or (NOBODY,)
        else:
            leaders = (state.leader,)
        decides = broker in state.isr and state.leader != NOBODY
        if decides and not may_decide:
            return
        for leader in leaders:
            step = _Step(self, state)
            step.live = live
            step.queues[broker - 1] = step.queues[broker - 1][:1]  # One may be on its way, the queue is dropped.
            if decides:
                step.decide(leader, rest or state.isr)
            yield ("expire", broker, leader), step.end()

    def _decisions(self, state: State) -> Iterator[tuple[Action, State]]:
        for broker in self.brokers:
            queue = state.queues[broker - 1]
            if queue and self.machine.views[state.snapshots[broker - 1]].up:
                step = _Step(self, state)
                step.queues[broker - 1] = queue[1:]
                step.run(broker, ("control", *queue[0]))
                yield ("hear", broker, queue[0].leader, queue[0].epoch), step.end()

    def _deliveries(self, state: State) -> Iterator[tuple[Action, State]]:
        previous = None
        for message in state.messages:
            if message == previous:
                continue
            previous = message
            if not self.bounds.strays:
                follower, leader = (state.snapshots[broker - 1] for broker in (message.follower, message.leader))
                views = self.machine.views
                if views[follower].epoch != views[leader].epoch:
                    continue
            step = _Step(self, state)
            step.deliver(message)
            after = step.end()
            if message.is_reply:
                yield ("receive", message.follower, message.leader, message.number), after
            elif message.stale or not self._is_idle(state, after, message.follower):
                yield ("serve", message.follower, message.leader, message.number), after

    def _is_idle(self, before: State, after: State, follower: int) -> bool:
        """Whether a request changes nothing, now and when its reply arrives: it may as well arrive later."""
        step = _Step(self, after)
        step.deliver(next(message for message in step.messages if message.follower == follower and message.is_reply))
        return step.end() == before

    def _leaders(self, state: State) -> Iterator[tuple[Action, State]]:
        bounds = self.bounds
        for broker in self.brokers:
            view = self.machine.views[state.snapshots[broker - 1]]
            if not view.leads:
                continue
            for count in bounds.batches:
                if state.appended + count <= bounds.prefix + bounds.records:
                    step = _Step(self, state)
                    step.appended += count
                    step.run(broker, ("append", state.appended, count))
                    yield ("append", broker, state.appended, count), step.end()
            if state.deletions < bounds.deletions:
                end = view.hw
                if view.hw < len(view.records) and self.machine.decide.mutants.log_start_above_hw.differs():
                    end = len(view.records)
                for offset in range(view.log_start + 1, end + 1):
                    step = _Step(self, state)
                    step.delete(broker, offset)
                    yield ("delete", broker, offset), step.end()
            if state.lags < bounds.lags:
                for follower in view.may_lag:
                    step = _Step(self, state)
                    step.lags += 1
                    step.run(broker, ("lag", follower))
                    yield ("lag", broker, follower), step.end()

    def _processes(self, state: State) -> Iterator[tuple[Action, State]]:
        for broker in self.brokers:
            view = self.machine.views[state.snapshots[broker - 1]]
            if view.up:
                if state.crashes < self.bounds.crashes:
                    step = _Step(self, state)
                    step.crash(broker)
                    yield ("crash", broker), step.end()
            elif self.bounds.bounces or broker not in state.live:
                for hw in sorted({0, view.hw}):
                    step = _Step(self, state)
                    step.start(broker, hw)
                    yield ("start", broker, hw), step.end()

    def is_fault(self, kind: str) -> bool:
        """See `highwater.lab.explore.search.World.is_fault`."""
        return kind in FAULTS

    # In words.

    def event(self, action: Action) -> str:
        """An event in words."""
        kind, *details = action
        what = {
            "elect": "the controller elects {0}, which is in the ISR",
            "expire": "the session of {0} expires; leader is {1}",
            "register": "{0} registers",
            "hear": "{0} hears that {1} leads in epoch {2}",
            "serve": "{1} serves {0}:",
            "receive": "{0} receives from {1}:",
            "append": "{0} appends r{1} ({2})",
            "delete": "{0} deletes the records below offset {1}",
            "lag": "{0} sees {1} lag",
            "crash": "{0} crashes",
            "start": "{0} starts with HW {1}",
        }[str(kind)].format(*details)
        if kind in ("serve", "receive"):
            what += f" {self._content(int(details[2]))}"
        return what

    def describe(self, state: State) -> str:
        """A state in words: ZooKeeper, then each broker's role, epoch, log with epochs, and HW."""
        parts = [f"zk {state.leader}@{state.epoch} isr {','.join(map(str, state.isr))}"]
        for broker, number in zip(self.brokers, state.snapshots, strict=True):
            view = self.machine.views[number]
            role = ("leads" if view.leads else f"follows {view.follows}") if view.up else "down"
            log = " ".join("-" if record is None else f"r{record[0]}e{record[1]}" for record in view.records)
            start = f" log start {view.log_start}" if view.log_start else ""
            parts.append(f"{broker} {role} @{view.epoch} [{log}]{start} hw {view.hw}")
        return " | ".join(parts)

    def _content(self, number: int) -> str:
        message = self.machine.message(number)
        if isinstance(message, FetchRequest):
            return f"Fetch at offset {message.positions[0][1]}"
        if isinstance(message, FetchResponse):
            _, error, batches, hw, *_ = message.results[0]
            held = ", ".join(f"r{one}" for batch in batches for one in batch.ids())
            return error or f"{held or 'no records'} and HW {hw}"
        if isinstance(message, OffsetsForLeaderEpochRequest):
            return f"OffsetsForLeaderEpoch {message.asks[0][2]}"
        if isinstance(message, OffsetsForLeaderEpochResponse):
            _, error, _, offset = message.results[0]
            return error or f"end offset {offset}"
        return "ListOffsets"


class _Step:
    """A state that is being changed."""

    __slots__ = (
        "appended",
        "committed",
        "crashes",
        "deleted",
        "deletions",
        "epoch",
        "isr",
        "lags",
        "leader",
        "live",
        "messages",
        "queues",
        "snapshots",
        "world",
    )

    def __init__(self, world: World, state: State) -> None:
        self.world = world
        self.leader, self.epoch, self.isr, self.live = state.leader, state.epoch, state.isr, state.live
        self.snapshots = list(state.snapshots)
        self.queues = list(state.queues)
        self.messages = list(state.messages)
        self.appended, self.committed = state.appended, state.committed
        self.crashes, self.lags = state.crashes, state.lags
        self.deletions, self.deleted = state.deletions, state.deleted

    def end(self) -> State:
        """The resulting state."""
        return State(
            self.leader,
            self.epoch,
            self.isr,
            self.live,
            tuple(self.snapshots),
            tuple(self.queues),
            tuple(sorted(self.messages)),
            self.appended,
            self.committed,
            self.crashes,
            self.lags,
            self.deletions,
            self.deleted,
        )

    def decide(self, leader: int, isr: tuple[int, ...]) -> _Step:
        """The controller writes another leader or ISR, and notifies every broker with a session."""
        self.leader = leader
        self.epoch += 1
        self.isr = isr
        decision = Decision(leader, self.epoch, isr)
        views = self.world.machine.views
        for broker in self.live:
            if views[self.snapshots[broker - 1]].up:
                self.send(broker, decision)
        return self

    def send(self, broker: int, decision: Decision) -> None:
        """Send a decision to a broker."""
        if self.world.bounds.prompt:
            self.run(broker, ("control", *decision))
        else:
            self.queues[broker - 1] = (*self.queues[broker - 1], decision)

    def run(self, broker: int, event: Event) -> Outcome:
        """Run an event at a broker, with its immediate effects."""
        machine = self.world.machine
        outcome = machine.step(self.snapshots[broker - 1], event)
        self.snapshots[broker - 1] = outcome.snapshot
        self.committed |= outcome.committed
        view = machine.views[outcome.snapshot]
        if outcome.requests or not view.waits:
            self._outdate(broker)
        for leader, number in outcome.requests:
            if machine.views[self.snapshots[leader - 1]].up:
                self.messages.append(Message(broker, leader, False, number, False))
        if outcome.isr is not None:
            if self.leader == broker and self.epoch == view.epoch:
                self.isr = outcome.isr
                self.run(broker, ("persisted", outcome.isr))
            else:
                self.run(broker, ("refused",))
        if outcome.halted:
            self.crash(broker)
        return outcome

    def _outdate(self, follower: int) -> None:
        """Mark all requests of a follower as stale."""
        others = [message for message in self.messages if message.follower != follower or message.stale]
        if len(others) < len(self.messages):
            if self.world.bounds.strays:
                mine = (one for one in self.messages if one.follower == follower and not one.stale)
                others += [message._replace(stale=True) for message in mine if not message.is_reply]
            self.messages = others

    def deliver(self, message: Message) -> None:
        """A message arrives."""
        self.messages.remove(message)
        if message.is_reply:
            self.run(message.follower, ("reply", message.number))
        else:
            self._serve(message)

    def _serve(self, request: Message) -> None:
        """A request arrives; the reply sets out."""
        follower, leader = request.follower, request.leader
        reply = self.run(leader, ("serve", follower, request.number)).reply
        if reply < 0:
            reply = self.run(leader, ("answer",)).reply
        if not request.stale:
            self.messages.append(Message(follower, leader, True, reply, False))

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
        self.snapshots[broker - 1] = self.world.machine.step(self.snapshots[broker - 1], ("crash",)).snapshot
        self.queues[broker - 1] = ()
        self.messages = [message for message in self.messages if broker not in (message.follower, message.leader)]

    def start(self, broker: int, hw: int) -> None:
        """Start a process; brokers that waited for its former one retry."""
        self.run(broker, ("start", hw))
        if broker in self.live:
            self.send(broker, Decision(self.leader, self.epoch, self.isr))
        views = self.world.machine.views
        for follower in self.world.brokers:
            view = views[self.snapshots[follower - 1]]
            waits = view.follows == broker and view.waits
            if waits and not any(message.follower == follower and not message.stale for message in self.messages):
                self.run(follower, ("failed",))
