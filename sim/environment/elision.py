"""Only events that matter: pings that keep a session, and fetches that wait, expire empty and are sent again.

While nothing changes, a follower's or consumer's fetch goes round: it waits at the leader for
``replica.fetch.wait.max.ms``, is answered with nothing new, and the same fetch is sent again. A broker's pings arrive,
one like the other. Such rounds are not simulated. What begins one notes when; whatever could change its course first
*settles* it: the round that is under way by then is worked out from phase and period, what it has told the receiver by
then takes effect at the times at which it would have, and its next message is simulated again.

So that this is exact, what may be left out depends on nothing else that is under way, whether it is left out or not:
such messages neither wait for others of their connection nor hold them up
(`sim.environment.network.Channel.send_beside`), and of what happens at the same microsecond, they and their timers come
first (`sim.kernel.scheduler.Kernel.call_first`).

Messages of a round are alike (`sim.kernel.message.ALIKE`), so each round of a fetch takes as long as the one before;
pings take the median of their link. With ``sim.elision = false`` everything is simulated, and histories are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sim.kernel.message import REPLY

if TYPE_CHECKING:
    from sim.environment.network import Channel
    from sim.protocol.messages import FetchReply, FetchRequest, FetchResult


class Server(Protocol):
    """Where fetches wait."""

    node: int

    def on_fetch(self, request: FetchRequest) -> None:
        """It arrives."""

    def refetched(self, request: FetchRequest, at_us: int) -> None:
        """The same fetch arrived once more, last at that time."""

    def waits_until(self, request: FetchRequest, expires_us: int) -> None:
        """It waits at present."""

    def answered(self, request: FetchRequest, result: FetchResult, channel: Channel[Asker], arrives_us: int) -> None:
        """Its empty answer is under way."""

    def left(self, request: FetchRequest) -> None:
        """It does not wait any more."""


class Asker(Protocol):
    """Who fetches."""

    node: int

    def on_fetch_reply(self, reply: FetchReply) -> None:
        """An answer arrives."""

    def fetched_again(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        """So many empty answers came, after each of which the same fetch was sent, last at that time if any came."""


class Fetch:
    """A fetch that goes round.

    Args:
        server: where it waits.
        request: the fetch.
        result: what each empty answer says.
        there: the connection to the server.
        back: the connection to the asker.
        arrived_us: when it began to wait.
        wait_us: for how long it waits.

    Attributes:
        server: see above.
        asker: whose it is.
    """

    __slots__ = (
        "_arrived_us",
        "_back",
        "_request",
        "_result",
        "_there",
        "_wait_us",
        "asker",
        "server",
    )

    def __init__(
        self,
        server: Server,
        request: FetchRequest,
        result: FetchResult,
        there: Channel[Server],
        back: Channel[Asker],
        arrived_us: int,
        wait_us: int,
    ) -> None:
        self.server = server
        self.asker = back.target
        self._request = request
        self._result = result
        self._there = there
        self._back = back
        self._arrived_us = arrived_us
        self._wait_us = wait_us

    def settle(self, now_us: int, *, answered: bool = False) -> None:
        """Go on for real from where it is by now.

        Args:
            now_us: the time.
            answered: whether the server is about to answer it, if it waits.
        """
        server, request, wait_us = self.server, self._request, self._wait_us
        if now_us < self._arrived_us + wait_us:
            self.asker.fetched_again(request, -1, 0)
            if not answered:
                server.waits_until(request, self._arrived_us + wait_us)
            return
        about = request.about()
        there_us, back_us = self._there.latency_us(about), self._back.latency_us(REPLY + about)
        period_us = wait_us + back_us + there_us
        rounds, phase_us = divmod(now_us - self._arrived_us, period_us)
        arrived_us = self._arrived_us + rounds * period_us
        answered_us = arrived_us + wait_us + back_us
        if rounds:
            server.refetched(request, arrived_us)
        if phase_us < wait_us:
            self.asker.fetched_again(request, arrived_us - there_us, rounds)
            if not answered:
                server.waits_until(request, arrived_us + wait_us)
            return
        server.left(request)
        if phase_us < wait_us + back_us:
            self.asker.fetched_again(request, arrived_us - there_us, rounds)
            server.answered(request, self._result, self._back, answered_us)
        else:
            self.asker.fetched_again(request, answered_us, rounds + 1)
            self._there.deliver_at(answered_us + there_us, self._there.target.on_fetch, request)


class Pinger(Protocol):
    """Who pings."""

    node: int

    def ping_again(self, channel: Channel[Any], arrives_us: int, next_us: int) -> None:
        """A ping is under way until the one time (-1: none is), and the next one is sent at the other."""

    def had_read(self, at_us: int) -> int:
        """How much it could tell then, since pings were left out: see `Sessions.heard`."""


class Sessions(Protocol):
    """Who is pinged."""

    def heard(self, broker: int, last_us: int, had_read: int) -> None:
        """A session was last heard of at that time (-1: not since pings were left out), by a ping that told so much."""


class Pings:
    """A broker's pings.

    Args:
        pinger: the broker.
        channel: the connection to who keeps its session.
        sent_us: when the first ping is left out.
        interval_us: ``sim.heartbeat.interval.ms`` in us.
    """

    __slots__ = ("_channel", "_interval_us", "_pinger", "_sent_us", "_sessions")

    def __init__(self, pinger: Pinger, channel: Channel[Any], sent_us: int, interval_us: int) -> None:
        self._pinger = pinger
        self._sessions: Sessions = channel.target
        self._channel = channel
        self._sent_us = sent_us
        self._interval_us = interval_us

    def next_us(self, now_us: int) -> int:
        """When the next ping is sent."""
        return now_us + self._interval_us - (now_us - self._sent_us) % self._interval_us

    def settle(self, now_us: int) -> None:
        """Ping for real from now on."""
        interval_us = self._interval_us
        sent_us = now_us - (now_us - self._sent_us) % interval_us
        arrives_us = sent_us + self._channel.usual_us
        if arrives_us <= now_us:
            heard_us, under_way_us = arrives_us, -1
        else:
            heard_us, under_way_us = (arrives_us - interval_us if sent_us > self._sent_us else -1), arrives_us
        had_read = 0 if heard_us < 0 else self._pinger.had_read(heard_us - self._channel.usual_us)
        self._sessions.heard(self._pinger.node, heard_us, had_read)
        self._pinger.ping_again(self._channel, under_way_us, sent_us + interval_us)


class Idle:
    """What goes round at present.

    Args:
        elides: ``sim.elision``.

    Attributes:
        elides: see above.
        fetches: by request.
        pings: by broker.
        messages: pings, and fetches with their answers, that were simulated though nothing could come of them.
    """

    __slots__ = ("elides", "fetches", "messages", "pings")

    def __init__(self, *, elides: bool) -> None:
        self.elides = elides
        self.fetches: dict[FetchRequest, Fetch] = {}
        self.pings: dict[int, Pings] = {}
        self.messages = 0

    def settle_fetches(self, node: int, now_us: int, other: int = -1) -> None:
        """Settle the fetches of a node and those that wait at it, or only those between it and another one."""
        for request, fetch in list(self.fetches.items()):
            ends = (fetch.server.node, fetch.asker.node)
            if node in ends and (other < 0 or other in ends):
                del self.fetches[request]
                fetch.settle(now_us)

    def settle_waiting(self, requests: list[FetchRequest], now_us: int) -> None:
        """Settle fetches of which those that wait are about to be answered."""
        for request in list(requests):
            fetch = self.fetches.pop(request, None)
            if fetch is not None:
                fetch.settle(now_us, answered=True)

    def settle_pings(self, broker: int, now_us: int) -> None:
        """Settle a broker's pings."""
        pings = self.pings.pop(broker, None)
        if pings is not None:
            pings.settle(now_us)
