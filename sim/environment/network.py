"""Directed links between nodes, and the connections that use them.

A link lasts for the whole run: it has latency, loss and cuts. The latency of a message is a function of the seed, the
link and the message's subject (`sim.kernel.message.Message.about`), and does not depend on other traffic. A connection
(`Channel`) belongs to two incarnations and closes when either ends; messages in flight are lost. Messages of one
connection never overtake each other, except those that may be elided (`Channel.send_beside`). A message that arrives
while its link is cut is lost; its sender notices by timeout. A paused process runs nothing: its timers and incoming
messages are held, and delivered in order when it resumes. A broker whose partition is unusable
(`sim.hosts.partition_backlog`) holds back only the events that need the partition.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from sim.kernel.build import COMPILED
from sim.kernel.message import ALIKE, Message
from sim.kernel.mixing import BITS, FIRST_FACTOR, MASK, SECOND_FACTOR, mixed
from sim.kernel.scheduler import (
    SHIFT,
    Backlog,
    Call,
    ElidedExchange,
    Event,
    Gate,
    Handler,
    Kernel,
    Receiver,
    refuse,
)
from sim.kernel.streams import Streams

LATENCY_US: Final = tuple(200 + 1_800 * i**4 // 255**4 for i in range(256))
"""Quantiles of the one-way latency: 0.2 ms, median 0.3 ms, up to 2 ms."""
_LATENCY_SHIFT: Final = BITS - 8
"""Shift to the upper 8 bits of a message's random number, which choose its latency."""
_CHANCE_BITS: Final = 20
"""Number of bits of a random number that are compared with a probability."""
_CHANCE_MASK: Final = (1 << _CHANCE_BITS) - 1
_LOSS_SHIFT: Final = _LATENCY_SHIFT - _CHANCE_BITS
"""Shift to the next 20 bits, which decide whether the message is lost."""
_SENT_SHIFT: Final = 40
"""Shift of the per-subject sequence number in the message key."""
USUAL: Final = 128
"""Index of the median latency."""
FIXED_STEPS_US: Final = (7, 11)
"""With ``sim.network.latency = fixed`` each link has one latency: the median plus less than 0.2 ms, which depend on the
ids of its two ends, so that messages sent to several nodes at once arrive at different times.
"""
ANY_PEER: Final = -1
"""Of `HeldMessages.deliver`: whatever the other end of the link is."""
RESEND_US: Final = 1_000_000
"""The duplicate of a resendable request (`Message.again`) arrives within this time of the original."""
Target = TypeVar("Target")


class Node(Receiver):
    """A process on the network: a broker's incarnation, a client, the control plane.

    Attributes:
        node: its id: 0 control plane, brokers from 1, controllers that are processes from 100, clients from
            1001.
        life: gate of its timers, open while the process runs, is not paused and has no backlog (`waiting`).
        out: open connections to other nodes that are up, by node id.
        incoming: open connections from other nodes, by node id.
        network: the network, once the node has joined.
        frozen: whether the process is paused.
        frozen_us: when the pause began.
        waiting: the backlog that takes due events while a broker's partition is unusable; None: no event has to wait.
        timeout_us: time after which it considers the connection to a silent peer broken; 0: it has its own timers.
    """

    # Slots, here and in subclasses: Python is slower with objects that have more than thirty attributes in a dict.
    __slots__ = (
        "_freezes",
        "_missed",
        "frozen",
        "frozen_us",
        "incoming",
        "life",
        "network",
        "node",
        "out",
        "timeout_us",
        "waiting",
    )

    network: Network
    notes_peers = True
    """Whether the network calls `peer_up` of nodes of this class."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.life = Gate(node)
        self.out: dict[int, Channel[Any]] = {}
        self.timeout_us = 0
        self.frozen = False
        self.frozen_us = 0
        self.waiting: Backlog | None = None
        self._freezes = 0
        self._missed: Backlog | None = None
        self.incoming: dict[int, Channel[Any]] = {}

    def freeze(self, now_us: int) -> None:
        """Pause the process until `thaw` (SIGSTOP, a long garbage collection). Pauses nest."""
        self._freezes += 1
        if not self.frozen:
            self.frozen = True
            self.frozen_us = now_us
            self._missed = Backlog()
            self.update_gate()

    @property
    def held(self) -> int:
        """Number of events held back."""
        missed = 0 if self._missed is None else len(self._missed.events)
        return missed + (0 if self.waiting is None else len(self.waiting.events))

    def thaw(self) -> None:
        """Undo one pause; after the last, deliver held events in order and resume."""
        self._freezes -= 1
        paused = self._missed
        if paused is None or self._freezes:
            return
        while paused.events:
            gate, event = paused.events.popleft()
            self.deliver(gate, event)
        if self.frozen:  # The process has not ended meanwhile.
            self.frozen = False
            self._missed = None
            self.update_gate()

    def update_gate(self) -> None:
        """Close the gate while the process is paused or has events that must wait; otherwise open it."""
        held = self.waiting if self._missed is None else self._missed
        self.life.held = held
        self.life.open = held is None

    def perform(self, handler: Handler, argument: Any) -> None:
        """Call a handler in the process, as soon as it is not paused."""
        held = self.life.held
        self.end_elision()
        self.end_idle()
        if held is None:
            handler(argument)
        else:
            held.put(self.life, Call(handler, argument))

    def deliver(self, gate: Gate, event: Event) -> None:
        """Deliver an event now, unless it has to wait."""
        waiting = self.waiting
        if waiting is None:
            event.happen(gate)
        else:
            waiting.put(gate, event)

    def receive(self, message: Event) -> None:
        """Dispatch an arriving message to its handler; raises TypeError if there is none. Kafka: KafkaApis#handle."""
        raise TypeError(f"node {self.node} takes no {type(message)}")

    def end(self) -> None:
        """End the process; its held events are dropped."""
        if self._missed is not None:
            self._missed.events.clear()
        self._missed = self.waiting = None
        self.frozen = False
        self.life.open = False
        self.life.held = None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return not self.life.open and self.life.held is None

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""

    def end_elision(self, kind: type[ElidedExchange] = ElidedExchange) -> None:
        """End elided exchanges of a type, because this node is about to change without an event of its own."""
        elided = self.life.elided
        if not elided:
            return
        for exchange in elided[:]:
            if isinstance(exchange, kind):
                exchange.end(self.network.now_us)

    def end_idle(self) -> None:
        """End the elision of what a metadata quorum does while nothing changes, if this node takes part in it."""

    def reach(self, peer: int) -> Channel[Any] | None:
        """The connection to a node, opened if necessary; None while that node is down."""
        return self.out.get(peer) or self.network.connect(self, peer)

    def peer_up(self, peer: int) -> None:
        """A node that was down can be reached again."""

    def disconnected(self, peer: int) -> None:
        """This node has noticed that its connection to a peer broke."""

    def would_repeat(self, request: Any, place: int, hw: int, log_start: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the node, after an empty response with this HW and log start, would fetch the partition again from
        the same position. `place` is the index of the partition in the request.
        """
        return False

    def repeated_places(self, request: Any, results: Sequence[Any], changed: Sequence[int] | None) -> int:  # noqa: ARG002
        """The number of partitions of a fetch, counted from the first, for which `would_repeat` holds if the response
        has these empty results, of which only those at indexes `changed` may differ from the last response (None: any).
        """
        return 0

    def is_answered_in_time(self, peer: int, answered_us: int, period_us: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether neither the fetch in progress, answered at `answered_us`, nor its repeats, which take `period_us`
        each, time out.
        """
        return True

    def note_elided_rounds(self, request: Any, sent_us: int, answers: int) -> None:
        """Update state for elided rounds: `answers` empty responses arrived; the fetch was last sent at `sent_us`."""


class Effect(Enum):
    """What an interception does with its message."""

    LOSE = "lose"
    HOLD = "hold"
    COPY = "copy"


class Interception:
    """Intercepts one message: the next of a type on some links. Later ones pass.

    By its `Effect`, the message is lost; or it is held until `end`, so that others overtake it; or it arrives in time,
    and again at `end`.

    Attributes:
        struck: whether it has intercepted its message, or has ended without one.
    """

    __slots__ = ("_channel", "_effect", "_later", "_tell", "_type", "struck")

    def __init__(self, kind: type[Message], effect: Effect, tell: Callable[[int, int], None]) -> None:
        self._type = kind
        self._effect = effect
        self._tell = tell
        """Called with source and target of the message."""
        self.struck = False
        self._channel: Channel[Any] | None = None
        self._later: Message | None = None

    def takes(self, channel: Channel[Any], message: Message) -> bool:
        """Intercept the message, if it is the first of the type. Returns whether it does not arrive now."""
        if self.struck or type(message) is not self._type:
            return False
        effect = self._effect
        if effect is not Effect.LOSE:
            self._later = message.again() if effect is Effect.COPY else message
            if self._later is None:
                return False  # The sender of such a message never resends it, so it has no copy.
            self._channel = channel
        self.struck = True
        self._tell(channel.source, channel.owner)
        return effect is not Effect.COPY

    def end(self, kernel: Kernel) -> list[tuple[int, int]]:
        """Deliver the held message or the copy, and intercept no further message.

        Returns:
            Source and target of each message that is delivered.
        """
        channel, message = self._channel, self._later
        self._channel = self._later = None
        self.struck = True
        if channel is None or message is None:
            return []
        kernel.schedule(kernel.now_us, channel, message)
        return [(channel.source, channel.owner)]


class HeldMessages(Interception):
    """Holds back every message of a type on some links, until `deliver` lets one arrive, or `end` all of them.

    Messages of a connection that has closed meanwhile are lost.
    """

    __slots__ = ("_held", "_passing")

    def __init__(self, kind: type[Message], tell: Callable[[int, int], None]) -> None:
        super().__init__(kind, Effect.HOLD, tell)
        self._held: list[tuple[Channel[Any], Message]] = []
        self._passing: list[int] = []
        """For each message that is to pass as soon as it is sent: its peer, or `ANY_PEER`."""

    def takes(self, channel: Channel[Any], message: Message) -> bool:
        """See `Interception.takes`."""
        if type(message) is not self._type:
            return False
        for peer in self._passing:
            if peer in (ANY_PEER, channel.source, channel.owner):
                self._passing.remove(peer)
                return False
        self._held.append((channel, message))
        self._tell(channel.source, channel.owner)
        return True

    def deliver(self, kernel: Kernel, peer: int = ANY_PEER, *, newest: bool = False) -> list[tuple[int, int]]:
        """Deliver the oldest or newest held message, from or to a peer if one is given; if there is none, let the next
        one pass.

        Returns:
            As `end`.
        """
        self._drop_lost()
        places = range(len(self._held))
        for place in reversed(places) if newest else places:
            channel, message = self._held[place]
            if peer in (ANY_PEER, channel.source, channel.owner):
                del self._held[place]
                kernel.schedule(kernel.now_us, channel, message)
                return [(channel.source, channel.owner)]
        self._passing.append(peer)
        return []

    def end(self, kernel: Kernel) -> list[tuple[int, int]]:
        """See `Interception.end`: all held messages arrive, in the order in which they were sent."""
        self._drop_lost()
        held, self._held = self._held, []
        for channel, message in held:
            kernel.schedule(kernel.now_us, channel, message)
        return [(channel.source, channel.owner) for channel, _ in held]

    def _drop_lost(self) -> None:
        self._held = [(channel, message) for channel, message in self._held if channel.connected]


class Link:
    """A directed link between two nodes.

    Attributes:
        cuts: how many cuts are in force.
        loss: share of messages that are lost, per thousand.
        resent: share of resendable requests that arrive twice, per thousand.
        interceptions: the interceptions in force.
        disturbed: whether requests may arrive twice or an interception is in force.
        table: latency quantiles in us, 256 of them.
        channel: the current connection.
        key: key of its random numbers.
        sent: number of messages sent so far, by subject; `ALIKE` messages are not counted.
    """

    __slots__ = ("channel", "cuts", "disturbed", "interceptions", "key", "loss", "resent", "sent", "table")

    def __init__(self, key: int, loss: int, table: tuple[int, ...]) -> None:
        self.key = key
        self.sent: dict[int, int] = {}
        self.cuts = 0
        self.loss = loss
        self.resent = 0
        self.interceptions: list[Interception] = []
        self.disturbed = False
        self.table = table
        self.channel: Channel[Any] | None = None


class Channel(Gate, Generic[Target]):
    """A connection in one direction between two incarnations.

    Attributes:
        open: both processes run, the link is not cut, and the receiver's gate is open (`Node.life`).
        source: id of the sending node.
        target: the receiving node.
        usual_us: its median latency.
        longest_us: its maximum latency.
    """

    __slots__ = ("_kernel", "_last_us", "_link", "_node", "longest_us", "target", "usual_us")

    def __init__(self, network: Network, link: Link, source: int, target: Target, node: Node) -> None:
        self.source = source
        self.owner = node.node
        self.elided = node.life.elided
        self._node = self.receiver = node
        self._kernel = network.kernel
        self._link = link
        self._last_us = -1
        self.target = target
        self.held = None
        self.update()

    def update(self) -> None:
        """Update the gate after a change of latency, cuts or the receiver's gate."""
        table = self._link.table
        self.usual_us = table[USUAL]
        self.longest_us = table[-1]
        held = self._node.life.held
        cut = self._link.cuts > 0
        self.open = held is None and not cut
        self.held = None if cut else held

    def send(self, message: Message) -> None:
        """Deliver a message after its latency, unless it is lost."""
        link = self._link
        kernel = self._kernel
        now_us = kernel.now_us
        about = message.about()
        if about < ALIKE:
            sent = link.sent
            if COMPILED:
                subject: Any = about  # An int, typed as Any because compiled code would box it anew for each use.
                subjects = len(sent)
                before = sent.setdefault(subject, 1)
                if len(sent) == subjects:  # Not the first message with this subject.
                    sent[subject] = before + 1
                    about += before << _SENT_SHIFT
            else:
                before = sent.get(about, 0)
                sent[about] = before + 1
                if before:
                    about += before << _SENT_SHIFT
        if COMPILED:
            number = mixed(link.key, about)
        else:  # `mixed` without the call.
            number = link.key + about
            number = ((number ^ (number >> 30)) * FIRST_FACTOR) & MASK
            number = ((number ^ (number >> 27)) * SECOND_FACTOR) & MASK
        arrival_us = now_us + link.table[number >> _LATENCY_SHIFT]
        if link.loss and self._is_lost(number, about):
            return
        if arrival_us <= self._last_us:
            arrival_us = self._last_us + 1
        self._last_us = arrival_us
        if link.disturbed and self._is_disturbed(arrival_us, number, message):
            return
        if not kernel.is_plain:
            kernel.schedule(arrival_us, self, message)
        elif arrival_us < now_us:
            refuse(arrival_us, now_us, self, message)
        else:
            rank = kernel.number
            kernel.number = rank + 1
            if COMPILED:
                kernel.push((arrival_us << SHIFT) + rank, self, message)
            else:  # `Kernel.push` without the call.
                rank = -rank - (arrival_us << SHIFT)
                kernel.scheduled[rank] = self, message
                insort(kernel.numbers, rank)

    def _is_lost(self, number: int, about: int) -> bool:
        """Whether a message with this random number is lost. `ALIKE` messages share their number, so the time is mixed
        in.
        """
        if about >= ALIKE:
            number = mixed(number, self._kernel.now_us)
        return (number >> _LOSS_SHIFT & _CHANCE_MASK) * 1_000 < self._link.loss << _CHANCE_BITS

    def _is_disturbed(self, arrival_us: int, number: int, message: Message) -> bool:
        """Whether an interception keeps the message from arriving now. If none does, the message may be duplicated."""
        if self._is_intercepted(message):
            return True
        if self._link.resent:
            self._resend(arrival_us, number, message)
        return False

    def _is_intercepted(self, message: Message) -> bool:
        return any(interception.takes(self, message) for interception in self._link.interceptions)

    def _resend(self, arrival_us: int, number: int, message: Message) -> None:
        """Deliver a resendable request a second time, with the link's probability.

        The copy uses another connection, so other messages may come between. The response to it matches no request in
        flight.
        """
        copy = message.again()
        if copy is not None:
            chance = mixed(number, 1)
            if (chance >> (BITS - _CHANCE_BITS)) * 1_000 < self._link.resent << _CHANCE_BITS:
                later_us = (chance >> (BITS - 2 * _CHANCE_BITS) & _CHANCE_MASK) * RESEND_US >> _CHANCE_BITS
                self._kernel.schedule(arrival_us + 1 + later_us, self, copy)

    def latency_us(self, about: int) -> int:
        """Latency of `ALIKE` messages with this subject."""
        link = self._link
        return link.table[mixed(link.key, about) >> _LATENCY_SHIFT]

    @property
    def connected(self) -> bool:
        """Whether both processes still run; a cut does not close a connection."""
        return self._link.channel is self

    def send_beside(self, message: Message) -> None:
        """Send an `ALIKE` message that may be elided (`sim.environment.elision`): it neither waits for other messages
        nor holds them up.
        """
        link = self._link
        about = message.about()
        number = mixed(link.key, about)
        if link.loss and self._is_lost(number, about):
            return
        if not (link.disturbed and self._is_intercepted(message)):
            self.deliver_at(self._kernel.now_us + link.table[number >> _LATENCY_SHIFT], message)

    def send_usually(self, message: Message) -> None:
        """`send_beside` with the median latency, whatever the subject."""
        link = self._link
        if link.loss:
            about = message.about()
            if self._is_lost(mixed(link.key, about), about):
                return
        if link.disturbed and self._is_intercepted(message):
            return
        self.deliver_at(self._kernel.now_us + self.usual_us, message)

    def deliver_at(self, arrival_us: int, message: Message) -> None:
        """Deliver an elidable message at a given time."""
        self._kernel.schedule_first(arrival_us, self, message)

    def note_sent(self, about: int, count: int) -> None:
        """Count messages with this subject that were elided."""
        sent = self._link.sent
        sent[about] = sent.get(about, 0) + count

    def close(self) -> None:
        """Close the connection because a process ended; messages in flight are lost."""
        self.open = False
        self.held = None
        self._link.channel = None


class Network:
    """All links and the nodes that are up.

    Args:
        kernel: the kernel.
        streams: random streams.
        loss: messages lost on each link, per thousand.
        fixed: whether each link has one constant latency.
        elides: whether no-op exchanges are elided.

    Attributes:
        loss: see above; 0 after healing.
        elides: see above.
        idle_messages: simulated messages that could have been elided: pings and idle fetches with their responses.
        nodes: running nodes by id.
        kernel: the kernel.
        version: incremented whenever brokers' responses may have changed.
    """

    def __init__(
        self, kernel: Kernel, streams: Streams, loss: int = 0, *, fixed: bool = False, elides: bool = True
    ) -> None:
        self.kernel = self._kernel = kernel
        self.loss = loss
        self._cuts = 0
        self._has_lost = loss > 0
        """Whether loss or an interception was set on any link at some time."""
        self._fixed = fixed
        self.elides = elides
        self.idle_messages = 0
        self._key = streams.key("network")
        self._links: dict[tuple[int, int], Link] = {}
        self._waiting: list[tuple[int, Callable[[], int], Gate, Event]] = []
        self.nodes: dict[int, Node] = {}
        self._peers: dict[int, Node] = {}
        """The nodes whose `peer_up` is called: not clients, of which a cluster may have hundreds."""
        self.version = 0

    @property
    def now_us(self) -> int:
        """See `Kernel.now_us`."""
        return self._kernel.now_us

    def link(self, source: int, target: int) -> Link:
        """The link in that direction."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(
                self._link_key(source, target), self.loss, self._table(source, target)
            )
        return link

    def _link_key(self, source: int, target: int) -> int:
        """The key of a link's random numbers."""
        return mixed(mixed(self._key, source), target)

    def _table(self, source: int, target: int) -> tuple[int, ...]:
        if not self._fixed:
            return LATENCY_US
        source_us, target_us = FIXED_STEPS_US
        fixed_us = LATENCY_US[USUAL] + source * source_us % 97 + target * target_us % 89
        # Of a list: mypyc would spell out a tuple of 256 items.
        return tuple([fixed_us] * 256)

    @property
    def subjects(self) -> int:
        """Number of distinct subjects seen so far."""
        return sum([len(link.sent) for link in self._links.values()])

    @property
    def held(self) -> int:
        """Number of events held back by nodes, or until a broker's responses change."""
        return len(self._waiting) + sum([node.held for node in self.nodes.values()])

    def join(self, node: Node) -> None:
        """Add a process that starts."""
        node.network = self
        self.nodes[node.node] = node
        if node.notes_peers:
            self._peers[node.node] = node
        for other in list(self._peers.values()):
            if other.frozen:
                other.perform(other.peer_up, node.node)
            else:
                other.peer_up(node.node)

    def connect(self, source: Node, peer: int) -> Channel[Any] | None:
        """Open a connection; None while the peer is down."""
        target = self.nodes.get(peer)
        if target is None:
            return None
        link = self.link(source.node, peer)
        channel = Channel(self, link, source.node, target, target)
        link.channel = source.out[peer] = target.incoming[source.node] = channel
        return channel

    def leave(self, node: Node, *, silently: bool) -> None:
        """Remove a process that ended, with its connections and timers.

        With `silently` the machine went down too, so peers notice by timeout; otherwise they see the connection break
        at once.
        """
        node.end_elision()
        node.end_idle()
        del self.nodes[node.node]
        self._peers.pop(node.node, None)
        node.end()
        for channel in node.out.values():
            channel.close()
            del channel.target.incoming[node.node]
        for peer, other in self.nodes.items():
            lost = other.out.pop(node.node, None)
            if lost is None:
                continue
            lost.close()
            reset_us = 0 if self.is_cut(node.node, peer) else LATENCY_US[USUAL]
            notice_us = other.timeout_us if silently else reset_us
            if notice_us:
                self._kernel.call_at(self._kernel.now_us + notice_us, other.life, other.disconnected, node.node)
        node.out.clear()
        node.incoming.clear()

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        for node in self.nodes.values():
            node.out.clear()
            node.incoming.clear()
            node.life.elided.clear()
        self.nodes.clear()
        self._peers.clear()
        for link in self._links.values():
            link.channel = None
        self._waiting.clear()

    def note_broker_change(self) -> None:
        """Note that brokers' responses may have changed: schedule the retries elided by `retry_after_change`."""
        self.version += 1
        waiting, self._waiting = self._waiting, []
        now_us = self._kernel.now_us
        for since_us, backoff, gate, event in waiting:
            backoff_us = backoff()
            self._kernel.schedule(now_us + backoff_us - (now_us - since_us) % backoff_us, gate, event)

    def retry_after_change(self, backoff: Callable[[], int], gate: Gate, event: Event) -> None:
        """Elide retries that would fail like the last one, until some broker's responses change.

        Args:
            backoff: returns the time between retries in us; called when responses change. Retries are due at multiples
                of it, counted from now.
            gate: see `Kernel.schedule`.
            event: the first retry after the change.
        """
        self._waiting.append((self._kernel.now_us, backoff, gate, event))

    # Links.

    def end_elision(self) -> None:
        """End all elided exchanges, because anything may change."""
        for node in self.nodes.values():
            node.end_elision()
            node.end_idle()

    def end_idle(self) -> None:
        """End the elision of what a metadata quorum does while nothing changes."""
        for node in self.nodes.values():
            node.end_idle()

    def is_cut(self, source: int, target: int) -> bool:
        """Whether this direction is cut."""
        return self._cuts > 0 and self.link(source, target).cuts > 0

    def is_steady(self, one: Node, other: Node) -> bool:
        """Whether all messages between two nodes that are up arrive."""
        if one.frozen or other.frozen:
            return False
        if not (self._cuts or self._has_lost):
            return True
        links, first, second = self._links, one.node, other.node
        there, back = links.get((first, second)), links.get((second, first))
        return not (
            self.loss
            or (there and (there.cuts or there.loss or there.interceptions))
            or (back and (back.cuts or back.loss or back.interceptions))
        )

    def _end_elision_between(self, source: int, target: int) -> None:
        """End elided exchanges between two nodes, because a link is about to change."""
        one, other = self.nodes.get(source), self.nodes.get(target)
        if one is not None and other is not None:
            one.end_idle()
            other.end_idle()
            for exchange in one.life.elided[:]:
                if exchange in other.life.elided:
                    exchange.end(self._kernel.now_us)

    def pause(self, node: Node) -> None:
        """Pause a process; see `Node.freeze`."""
        node.end_elision()
        node.end_idle()
        node.freeze(self._kernel.now_us)
        self._update_channels(node)

    def resume(self, node: Node) -> None:
        """Resume a process; see `Node.thaw`."""
        node.thaw()
        self._update_channels(node)

    def set_backlog(self, node: Node, waiting: Backlog | None) -> None:
        """Set the backlog for events that have to wait, or None if none have to; see `Node.waiting`."""
        if self.nodes.get(node.node) is node:
            node.end_idle()
            node.waiting = waiting
            node.update_gate()
            self._update_channels(node)

    @staticmethod
    def _update_channels(node: Node) -> None:
        for channel in node.incoming.values():
            channel.update()

    def add_latency(self, source: int, target: int, by_us: int) -> None:
        """Add latency in this direction; a negative value removes it."""
        self._end_elision_between(source, target)
        link = self.link(source, target)
        link.table = tuple([latency_us + by_us for latency_us in link.table])
        if link.channel is not None:
            link.channel.update()

    def add_loss(self, source: int, target: int, permille: int) -> None:
        """Add loss per thousand in this direction; a negative value removes it.

        Not for links of clients: `loss` alone tells a consumer whether messages may be lost.
        """
        self._end_elision_between(source, target)
        self._has_lost = True
        self.link(source, target).loss += permille

    def add_duplicates(self, source: int, target: int, permille: int) -> None:
        """Add duplicates per thousand resendable requests; a negative value removes them."""
        link = self.link(source, target)
        link.resent += permille
        link.disturbed = link.resent > 0 or len(link.interceptions) > 0

    def intercept(self, source: int, target: int, interception: Interception) -> None:
        """Apply an interception to this direction. The two nodes elide no exchange until `release`, so that it meets
        `ALIKE` messages, too.
        """
        self._end_elision_between(source, target)
        self._has_lost = True
        link = self.link(source, target)
        link.interceptions.append(interception)
        link.disturbed = True

    def release(self, source: int, target: int, interception: Interception) -> None:
        """Undo `intercept`."""
        link = self.link(source, target)
        link.interceptions.remove(interception)
        link.disturbed = link.resent > 0 or len(link.interceptions) > 0

    def cut(self, source: int, target: int) -> None:
        """Cut this direction until `heal`. Cuts nest."""
        self._set_cuts(source, target, 1)

    def heal(self, source: int, target: int) -> None:
        """Undo one cut."""
        self._set_cuts(source, target, -1)

    def set_loss(self, loss: int) -> None:
        """Set the loss per thousand of every link."""
        self.end_elision()
        self._has_lost = True
        self.loss = loss
        for link in self._links.values():
            link.loss = loss

    def redraw(self, number: int) -> None:
        """Draw all latencies again; each `number`, from 1, gives other latencies. Messages in flight keep theirs."""
        self.end_elision()
        self._key = mixed(self._key, -number)
        for (source, target), link in self._links.items():
            link.key = self._link_key(source, target)

    def _set_cuts(self, source: int, target: int, change: int) -> None:
        self._end_elision_between(source, target)
        self._cuts += change
        link = self.link(source, target)
        link.cuts += change
        if link.channel is not None:
            link.channel.update()
