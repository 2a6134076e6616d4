"""Directed links between nodes, and the connections that live on them.

A link lasts for the whole run: it has latency, loss and cuts. How long a message takes on it is a function of the seed,
the link and what the message is about (`sim.kernel.message.Message.about`), not of what else is sent. A connection
(`Channel`) belongs to two incarnations and dies with either; what was under way on it is gone. Messages of one
connection never overtake each other, but for those that may be elided (`Channel.send_beside`). A message that arrives
while its link is cut is lost; who waits for an answer notices by its own timeout. A paused process runs nothing: its
timers and what arrives for it are held, and handed over in their order when it resumes. Of one that waits for something
only that part is held which needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from sim.kernel.message import ALIKE, Message
from sim.kernel.mixing import BITS, mixed
from sim.kernel.scheduler import (
    SHIFT,
    Backlog,
    Call,
    ElidedExchange,
    Event,
    Gate,
    Handler,
    Kernel,
    refuse,
)
from sim.kernel.streams import Streams

LATENCY_US: Final = tuple(200 + 1_800 * i**4 // 255**4 for i in range(256))
"""Quantiles of the one-way latency: 0.2 ms, median 0.3 ms, up to 2 ms."""
_QUANTILE: Final = BITS - 8
"""The upper 8 bits of the number that is mixed for a message choose its latency."""
_CHANCE: Final = 20
_CHANCES: Final = (1 << _CHANCE) - 1
_LOST: Final = _QUANTILE - _CHANCE
"""The 20 bits below those decide whether it is lost."""
_BEFORE: Final = 40
"""Shift of the per-subject sequence number in the message key."""
USUAL: Final = 128
"""Index of the median."""
FIXED_STEPS_US: Final = (7, 11)
"""With ``sim.network.latency = fixed`` a link takes the median and so much more by the numbers of its two ends, so that
what is sent to several nodes at once does not arrive at once.
"""
RESEND_US: Final = 1_000_000
"""A request that its sender resends (`Message.again`) arrives again within this time."""
Target = TypeVar("Target")


class Node:
    """A process that can be reached: a broker's incarnation, a client, the control plane.

    Attributes:
        node: its id: 0 control plane, brokers from 1, clients from 1001.
        life: open while the process runs and nothing holds it up; gate of its timers.
        out: open connections to other nodes that are up, by node id.
        incoming: open connections from other nodes, by node id.
        network: what it is part of, once it has joined.
        frozen: whether the process stands still for now.
        frozen_us: since when, while it does.
        waiting: what keeps the part of its events that has to wait, while it is not paused; None: nothing has to.
        timeout_us: after which it takes a silent peer's connection for broken; 0: it has timers of its own.
    """

    # Here and in its subclasses because Python is slower with objects that have more than thirty attributes in a dict.
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
        """Stand still until `thaw` (SIGSTOP, a long garbage collection); pauses add up."""
        self._freezes += 1
        if not self.frozen:
            self.frozen = True
            self.frozen_us = now_us
            self._missed = Backlog()
            self.update_gate()

    @property
    def held(self) -> int:
        """How many events are held back."""
        missed = 0 if self._missed is None else len(self._missed.events)
        return missed + (0 if self.waiting is None else len(self.waiting.events))

    def thaw(self) -> None:
        """Take one pause back; after the last do what was held back, in its order, and go on."""
        self._freezes -= 1
        paused = self._missed
        if paused is None or self._freezes:
            return
        while paused.events:
            gate, event = paused.events.popleft()
            self.make(gate, event)
        if self.frozen:  # It did not end itself.
            self.frozen = False
            self._missed = None
            self.update_gate()

    def update_gate(self) -> None:
        """The gate is closed while the process stands still, or part of what it does has to wait."""
        held = self.waiting if self._missed is None else self._missed
        self.life.held = held
        self.life.open = held is None

    def perform(self, handler: Handler, argument: Any) -> None:
        """Let the process do something, as soon as it is not paused."""
        held = self.life.held
        self.end_elision()
        if held is None:
            handler(argument)
        else:
            held.put(self.life, Call(handler, argument))

    def make(self, gate: Gate, event: Event) -> None:
        """Let an event happen now, unless it has to wait."""
        waiting = self.waiting
        if waiting is None:
            event.happen(gate)
        else:
            waiting.put(gate, event)

    def receive(self, message: Event) -> None:
        """A message arrives: hand it to its handler. Kafka: KafkaApis#handle.

        Raises:
            TypeError: nobody sends such a message to such a node.
        """
        raise TypeError(f"node {self.node} takes no {type(message)}")

    def end(self) -> None:
        """The process is over, and what it would have done."""
        if self._missed is not None:
            self._missed.events.clear()
        self._missed = self.waiting = None
        self.frozen = False
        self.life.open = False
        self.life.held = None

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""

    def end_elision(self, kind: type[ElidedExchange] = ElidedExchange) -> None:
        """Something about this node is about to change that no event of it tells: simulate its exchanges of a kind."""
        for exchange in self.life.elided[:]:
            if isinstance(exchange, kind):
                exchange.end(self.network.now_us)

    def reach(self, peer: int) -> Channel[Any] | None:
        """The connection to a node, opened if need be; None while that node is down."""
        return self.out.get(peer) or self.network.connect(self, peer)

    def peer_up(self, peer: int) -> None:
        """A node that was down can be reached again."""

    def disconnected(self, peer: int) -> None:
        """The connection to a node broke, and this node has noticed."""

    def would_repeat(self, request: Any, hw: int, log_start: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether all that an empty response to a fetch would lead to is that the same fetch is sent again."""
        return False

    def outlasts_timeout(self, peer: int, answered_us: int, period_us: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether it gives up neither a fetch that a peer answers at that time, nor those that then take so long."""
        return True

    def fetched_again(self, request: Any, sent_us: int, answers: int) -> None:
        """So many empty responses came, after each of which the same fetch was sent, last at that time if any came."""


class Link:
    """One direction between two nodes.

    Attributes:
        cuts: how many cuts are in force.
        loss: messages of a thousand that are lost.
        resent: of a thousand requests that their senders resend, those that arrive again.
        table: latency quantiles in us, 256 of them.
        channel: the present connection.
        key: what makes its chances its own.
        sent: how many messages were sent that were about the same, but for those that are `ALIKE`.
    """

    __slots__ = ("channel", "cuts", "key", "loss", "resent", "sent", "table")

    def __init__(self, key: int, loss: int, table: tuple[int, ...]) -> None:
        self.key = key
        self.sent: dict[int, int] = {}
        self.cuts = 0
        self.loss = loss
        self.resent = 0
        self.table = table
        self.channel: Channel[Any] | None = None


class Channel(Gate, Generic[Target]):
    """A connection in one direction between two incarnations. Who sends knows what messages the other end takes.

    Attributes:
        open: both processes run, the link is not cut, and nothing holds up the receiver.
        source: id of the sending node.
        target: the receiving node.
        usual_us: median of its latency.
    """

    __slots__ = ("_kernel", "_last_us", "_link", "_node", "target", "usual_us")

    def __init__(self, network: Network, link: Link, source: int, target: Target, node: Node) -> None:
        self.source = source
        self.owner = node.node
        self.elided = node.life.elided
        self._node = node
        self._kernel = network.kernel
        self._link = link
        self._last_us = -1
        self.target = target
        self.held = None
        self.update()

    def update(self) -> None:
        """Latency, cuts or the receiver's gate changed."""
        self.usual_us = self._link.table[USUAL]
        held = self._node.life.held
        cut = self._link.cuts > 0
        self.open = held is None and not cut
        self.held = None if cut else held

    def receive(self, message: Event) -> None:
        """See `Gate.receive`."""
        self._node.receive(message)

    def send(self, message: Message) -> None:
        """Deliver a message at the other end after its latency, if it arrives."""
        link = self._link
        kernel = self._kernel
        now_us = kernel.now_us
        about = message.about()
        if about < ALIKE:
            sent = link.sent
            subject: Any = about  # An int; but compiled code would make a new object of it for each use.
            before = sent.get(subject, 0)
            sent[subject] = before + 1
            about += before << _BEFORE
        number = mixed(link.key, about)
        arrival_us = now_us + link.table[number >> _QUANTILE]
        if link.loss and self._is_lost(number, about):
            return
        if arrival_us <= self._last_us:
            arrival_us = self._last_us + 1
        self._last_us = arrival_us
        if link.resent:
            self._resend(arrival_us, number, message)
        if not kernel.is_plain:
            kernel.schedule(arrival_us, self, message)
        elif arrival_us < now_us:
            refuse(arrival_us, now_us, self, message)
        else:
            rank = kernel.number
            kernel.number = rank + 1
            kernel.push((arrival_us << SHIFT) + rank, self, message)

    def _is_lost(self, number: int, about: int) -> bool:
        """Whether the message of a mixed number is lost; of those that are alike each time another one."""
        if about >= ALIKE:
            number = mixed(number, self._kernel.now_us)
        return (number >> _LOST & _CHANCES) * 1_000 < self._link.loss << _CHANCE

    def _resend(self, arrival_us: int, number: int, message: Message) -> None:
        """Deliver a request that its sender resends once more, if chance has it.

        It comes over another connection, so others may come between. Answers to the copy match no request.
        """
        copy = message.again()
        if copy is not None:
            chance = mixed(number, 1)
            if (chance >> (BITS - _CHANCE)) * 1_000 < self._link.resent << _CHANCE:
                later_us = (chance >> (BITS - 2 * _CHANCE) & _CHANCES) * RESEND_US >> _CHANCE
                self._kernel.schedule(arrival_us + 1 + later_us, self, copy)

    def latency_us(self, about: int) -> int:
        """How long messages take that are about this, and `ALIKE`."""
        link = self._link
        return link.table[mixed(link.key, about) >> _QUANTILE]

    @property
    def longest_us(self) -> int:
        """How long messages take at most."""
        return self._link.table[-1]

    def send_beside(self, message: Message) -> None:
        """`send` what is `ALIKE` and may be elided (`sim.environment.elision`): it waits for no other message and holds
        none up.
        """
        link = self._link
        about = message.about()
        number = mixed(link.key, about)
        if not link.loss or not self._is_lost(number, about):
            self.deliver_at(self._kernel.now_us + link.table[number >> _QUANTILE], message)

    def send_usually(self, message: Message) -> None:
        """`send_beside` what takes the median, whatever it is about."""
        link = self._link
        if link.loss:
            about = message.about()
            if self._is_lost(mixed(link.key, about), about):
                return
        self.deliver_at(self._kernel.now_us + self.usual_us, message)

    def deliver_at(self, arrival_us: int, message: Message) -> None:
        """Deliver what may be elided, and arrives at that time."""
        self._kernel.schedule_first(arrival_us, self, message)

    def latest_us(self) -> int:
        """When what is sent now arrives at the latest."""
        return max(self._kernel.now_us + self.longest_us, self._last_us + 1)

    def close(self) -> None:
        """One of the processes ended: what is under way is gone."""
        self.open = False
        self.held = None
        self._link.channel = None


class Network:
    """All links and the nodes that are up.

    Args:
        kernel: time and delivery.
        streams: chance.
        loss: messages of a thousand that each link loses.
        fixed: whether each message takes as long as the others of its link.
        elides: whether exchanges that change nothing are elided.

    Attributes:
        loss: see above; 0 after healing.
        elides: see above.
        idle_messages: pings, and fetches with their answers, that were simulated though nothing could come of them.
        nodes: who is up, by node id.
        kernel: what all of it happens on.
        version: raised whenever a broker's answers may have changed.
    """

    def __init__(
        self, kernel: Kernel, streams: Streams, loss: int = 0, *, fixed: bool = False, elides: bool = True
    ) -> None:
        self.kernel = self._kernel = kernel
        self.loss = loss
        self._cuts = 0
        self._has_lost = loss > 0
        """Whether a link loses messages, or has lost some."""
        self._fixed = fixed
        self.elides = elides
        self.idle_messages = 0
        self._key = streams.key("network")
        self._links: dict[tuple[int, int], Link] = {}
        self._waiting: list[tuple[int, Callable[[], int], Gate, Event]] = []
        self.nodes: dict[int, Node] = {}
        self.version = 0

    @property
    def now_us(self) -> int:
        """See `Kernel.now_us`."""
        return self._kernel.now_us

    def link(self, source: int, target: int) -> Link:
        """The link in that direction."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self._own(source, target), self.loss, self._table(source, target))
        return link

    def _own(self, source: int, target: int) -> int:
        """A link's key."""
        return mixed(mixed(self._key, source), target)

    def _table(self, source: int, target: int) -> tuple[int, ...]:
        if not self._fixed:
            return LATENCY_US
        source_us, target_us = FIXED_STEPS_US
        return (LATENCY_US[USUAL] + source * source_us % 97 + target * target_us % 89,) * 256

    @property
    def subjects(self) -> int:
        """How many subjects of messages are told apart."""
        return sum([len(link.sent) for link in self._links.values()])

    @property
    def held(self) -> int:
        """How many events nodes hold back, or are held back until a broker's answers change."""
        return len(self._waiting) + sum([node.held for node in self.nodes.values()])

    def join(self, node: Node) -> None:
        """A process starts."""
        node.network = self
        self.nodes[node.node] = node
        for other in list(self.nodes.values()):
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
        """A process ended: its connections and timers are gone.

        Args:
            node: the process.
            silently: the machine went with it, so nobody is told, and peers notice by their timeouts; else they hear
                of the broken connection at once.
        """
        node.end_elision()
        del self.nodes[node.node]
        node.end()
        for channel in node.out.values():
            channel.close()
            del channel.target.incoming[node.node]
        for peer, other in self.nodes.items():
            lost = other.out.pop(node.node, None)
            if lost is None:
                continue
            lost.close()
            heard_us = 0 if self.link(node.node, peer).cuts else LATENCY_US[128]
            notice_us = other.timeout_us if silently else heard_us
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
        for link in self._links.values():
            link.channel = None
        self._waiting.clear()

    def changed(self) -> None:
        """What brokers answer may be different from now on: those who wait for that try again at their times."""
        self.version += 1
        waiting, self._waiting = self._waiting, []
        now_us = self._kernel.now_us
        for since_us, backoff, gate, event in waiting:
            backoff_us = backoff()
            self._kernel.schedule(now_us + backoff_us - (now_us - since_us) % backoff_us, gate, event)

    def retry_after_change(self, backoff: Callable[[], int], gate: Gate, event: Event) -> None:
        """Leave out tries that would fail like the last one, as long as no broker's answers have changed.

        Args:
            backoff: us between tries, asked for at the change; tries are due at its multiples from now on.
            gate: see `Kernel.schedule`.
            event: the first try after the change.
        """
        self._waiting.append((self._kernel.now_us, backoff, gate, event))

    # Links.

    def end_elision(self) -> None:
        """Anything may change: simulate all exchanges."""
        for node in self.nodes.values():
            node.end_elision()

    def steady(self, first: int, second: int) -> bool:
        """Whether all that two nodes say to each other arrives."""
        nodes, links = self.nodes, self._links
        one, other = nodes.get(first), nodes.get(second)
        if one is None or other is None or one.frozen or other.frozen:
            return False
        if not (self._cuts or self._has_lost):
            return True
        there, back = links.get((first, second)), links.get((second, first))
        return not (self.loss or (there and (there.cuts or there.loss)) or (back and (back.cuts or back.loss)))

    def _end_elision_between(self, source: int, target: int) -> None:
        """A link is about to change."""
        one, other = self.nodes.get(source), self.nodes.get(target)
        if one is not None and other is not None:
            for exchange in one.life.elided[:]:
                if exchange in other.life.elided:
                    exchange.end(self._kernel.now_us)

    def pause(self, node: Node) -> None:
        """A process stands still; see `Node.freeze`."""
        node.end_elision()
        node.freeze(self._kernel.now_us)
        self._update_channels(node)

    def resume(self, node: Node) -> None:
        """It goes on, with what was held back for it."""
        node.thaw()
        self._update_channels(node)

    def wait(self, node: Node, waiting: Backlog | None) -> None:
        """Part of what a process does has to wait from now on, or (None) nothing has to: see `Node.waiting`."""
        if self.nodes.get(node.node) is node:
            node.waiting = waiting
            node.update_gate()
            self._update_channels(node)

    @staticmethod
    def _update_channels(node: Node) -> None:
        for channel in node.incoming.values():
            channel.update()

    def slow(self, source: int, target: int, by_us: int) -> None:
        """Messages in this direction take longer from now on; what is negative takes that back."""
        self._end_elision_between(source, target)
        link = self.link(source, target)
        link.table = tuple([latency_us + by_us for latency_us in link.table])
        if link.channel is not None:
            link.channel.update()

    def lossy(self, source: int, target: int, permille: int) -> None:
        """So many more messages of a thousand are lost in this direction; what is negative takes that back.

        Not for links of clients, which must know (`loss`).
        """
        self._end_elision_between(source, target)
        self._has_lost = True
        self.link(source, target).loss += permille

    def resend(self, source: int, target: int, permille: int) -> None:
        """Of a thousand requests that senders resend, so many more arrive twice; what is negative takes that back."""
        self.link(source, target).resent += permille

    def cut(self, source: int, target: int) -> None:
        """Nothing arrives in this direction until `heal`; cuts add up."""
        self._set_cuts(source, target, 1)

    def heal(self, source: int, target: int) -> None:
        """Take one cut back."""
        self._set_cuts(source, target, -1)

    def lose(self, loss: int) -> None:
        """From now on every link loses so many messages of a thousand."""
        self.end_elision()
        self._has_lost = True
        self.loss = loss
        for link in self._links.values():
            link.loss = loss

    def redraw(self, number: int) -> None:
        """From now on messages take other times, those of a number from 1; what is under way arrives as it was to."""
        self.end_elision()
        self._key = mixed(self._key, -number)
        for (source, target), link in self._links.items():
            link.key = self._own(source, target)

    def _set_cuts(self, source: int, target: int, change: int) -> None:
        self._end_elision_between(source, target)
        self._cuts += change
        link = self.link(source, target)
        link.cuts += change
        if link.channel is not None:
            link.channel.update()
