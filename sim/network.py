"""Directed links between nodes, and the connections that live on them.

A link lasts for the whole run: it has latency, loss and cuts. A connection (`Channel`) belongs to two incarnations and
dies with either; what was under way on it is gone. Messages of one connection never overtake each other. A message
that arrives while its link is cut is lost; who waits for an answer notices by its own timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final

from sim.kernel import CALL, Gate, Handler, Kernel
from sim.streams import Streams

LATENCY_US: Final = tuple(200 + 1_800 * i**4 // 255**4 for i in range(256))
"""Quantiles of the one-way latency: 0.2 ms, median 0.3 ms, up to 2 ms."""


class Node:
    """A process that can be reached: a broker's incarnation, a client, the control plane.

    Attributes:
        node: its id: 0 control plane, brokers from 1, clients from 1001.
        life: open while the process runs; gate of its timers.
        out: open connections to other nodes that are up, by node id.
        network: what it is part of, once it has joined.
        timeout_us: after which it takes a silent peer's connection for broken; 0: it has timers of its own.
    """

    timeout_us = 0
    network: Network

    def __init__(self, node: int) -> None:
        self.node = node
        self.life = Gate(node)
        self.out: dict[int, Channel] = {}

    def reach(self, peer: int) -> Channel | None:
        """The connection to a node, opened if need be; None while that node is down."""
        return self.out.get(peer) or self.network.connect(self, peer)

    def peer_up(self, peer: int) -> None:
        """A node that was down can be reached again."""

    def disconnected(self, peer: int) -> None:
        """The connection to a node broke, and this node has noticed."""


class Link:
    """One direction between two nodes.

    Attributes:
        cuts: how many cuts are in force.
        loss: messages of a thousand that are lost.
        table: latency quantiles in us, 256 of them.
        channel: the present connection.
    """

    __slots__ = ("channel", "cuts", "loss", "table")

    def __init__(self, loss: int) -> None:
        self.cuts = 0
        self.loss = loss
        self.table: tuple[int, ...] = LATENCY_US
        self.channel: Channel | None = None


class Channel(Gate):
    """A connection in one direction between two incarnations.

    Attributes:
        open: both processes run, and the link is not cut.
        target: the receiving node.
    """

    __slots__ = ("_bits", "_chance", "_kernel", "_last_us", "_link", "_numbers", "_queue", "target")

    def __init__(self, network: Network, link: Link, target: Node) -> None:
        self.owner = target.node
        self._kernel, self._queue, self._numbers, self._bits, self._chance = network.wiring
        self._link = link
        self._last_us = -1
        self.target = target
        self.open = not link.cuts

    def send(self, handler: Handler, message: Any) -> None:
        """Deliver `handler(message)` at the other end after a drawn latency, if it arrives.

        The latency is drawn before any fault is looked at, and losses have a stream of their own.
        """
        link = self._link
        arrival_us = self._kernel.now_us + link.table[self._bits(8)]
        if link.loss and self._chance() * 1_000 < link.loss:
            return
        if arrival_us <= self._last_us:
            arrival_us = self._last_us + 1
        self._last_us = arrival_us
        queue = self._queue
        if queue is None:
            self._kernel.call_at(arrival_us, self, handler, message)
        else:
            heappush(queue, (arrival_us, CALL, next(self._numbers), self, handler, message))

    def close(self) -> None:
        """One of the processes ended: what is under way is gone."""
        self.open = False
        self._link.channel = None


class Network:
    """All links and the nodes that are up.

    Args:
        kernel: time and delivery.
        streams: chance.
        loss: messages of a thousand that each link loses.

    Attributes:
        loss: see above; 0 after healing.
        nodes: who is up, by node id.
        wiring: what every connection works with.
        version: raised whenever a broker's answers may have changed.
    """

    def __init__(self, kernel: Kernel, streams: Streams, loss: int = 0) -> None:
        self._kernel = kernel
        self.loss = loss
        self._streams = streams
        self.wiring = (kernel, *kernel.plain_queue(), streams("network").getrandbits, self._chance)
        self._links: dict[tuple[int, int], Link] = {}
        self._waiting: list[tuple[int, Callable[[], int], Gate, Handler, Any]] = []
        self.nodes: dict[int, Node] = {}
        self.version = 0

    def link(self, source: int, target: int) -> Link:
        """The link in that direction."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self.loss)
        return link

    def _chance(self) -> float:
        return self._streams("loss").random()

    def join(self, node: Node) -> None:
        """A process starts."""
        node.network = self
        self.nodes[node.node] = node
        for other in list(self.nodes.values()):
            other.peer_up(node.node)
        self.changed()

    def connect(self, source: Node, peer: int) -> Channel | None:
        """Open a connection; None while the peer is down."""
        target = self.nodes.get(peer)
        if target is None:
            return None
        link = self.link(source.node, peer)
        link.channel = source.out[peer] = Channel(self, link, target)
        return link.channel

    def leave(self, node: Node, *, silently: bool) -> None:
        """A process ended: its connections and timers are gone.

        Args:
            node: the process.
            silently: the machine went with it, so nobody is told, and peers notice by their timeouts; else they hear
                of the broken connection at once.
        """
        del self.nodes[node.node]
        node.life.open = False
        for channel in node.out.values():
            channel.close()
        for peer, other in self.nodes.items():
            lost = other.out.pop(node.node, None)
            if lost is None:
                continue
            lost.close()
            heard_us = 0 if self.link(node.node, peer).cuts else LATENCY_US[128]
            notice_us = other.timeout_us if silently else heard_us
            if notice_us:
                self._kernel.call_at(self._kernel.now_us + notice_us, other.life, other.disconnected, node.node)

    def changed(self) -> None:
        """What brokers answer may be different from now on: those who wait for that try again at their times."""
        self.version += 1
        waiting, self._waiting = self._waiting, []
        now_us = self._kernel.now_us
        for since_us, backoff, gate, handler, argument in waiting:
            backoff_us = backoff()
            self._kernel.call_at(now_us + backoff_us - (now_us - since_us) % backoff_us, gate, handler, argument)

    def retry_after_change(self, backoff: Callable[[], int], gate: Gate, handler: Handler, argument: Any) -> None:
        """Leave out tries that would fail like the last one, as long as no broker's answers have changed.

        Args:
            backoff: us between tries, asked for at the change; tries are due at its multiples from now on.
            gate: see `Kernel.call_at`.
            handler: called for the first try after the change.
            argument: what it is called with.
        """
        self._waiting.append((self._kernel.now_us, backoff, gate, handler, argument))

    def cut(self, source: int, target: int) -> None:
        """Nothing arrives in this direction until `heal`; cuts add up."""
        self._set_cuts(source, target, 1)

    def heal(self, source: int, target: int) -> None:
        """Take one cut back."""
        self._set_cuts(source, target, -1)

    def lose(self, loss: int) -> None:
        """From now on every link loses so many messages of a thousand."""
        self.loss = loss
        for link in self._links.values():
            link.loss = loss

    def _set_cuts(self, source: int, target: int, change: int) -> None:
        link = self.link(source, target)
        link.cuts += change
        if link.channel is not None:
            link.channel.open = not link.cuts
