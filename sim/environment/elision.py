"""Elision: pings that keep a session, and fetches that wait, expire empty and are sent again, are not simulated.

While nothing changes, the fetch of a follower or consumer makes rounds: it waits at the leader for
``replica.fetch.wait.max.ms``, is answered with nothing new, and the same fetch is sent again. The pings of a broker
arrive, one like the other. Each such exchange of two nodes is elided (`sim.kernel.scheduler.ElidedExchange`) as long as
nothing else happens at either of them. The kernel ends it before any other event of one of the two
(`Event.elision_safe` names the exceptions): the round that is under way by then follows from phase and period, what it
has told the receiver by then takes effect at the times at which it would have, and its next message is simulated again.
Whatever changes a node or a link from outside ends it, too: cuts and pauses in `sim.environment.network.Network`,
everything else by `Node.end_elision`.

So that this is exact, such messages depend on nothing else that is under way, whether they are elided or not: they
neither wait for others of their connection nor hold them up (`sim.environment.network.Channel.send_beside`), and of
what happens at the same microsecond, they and their timers come first, ordered by the node that they come from
(`sim.kernel.scheduler.Kernel.schedule_first`).

Messages of a round are alike (`sim.kernel.message.ALIKE`), so each round of a fetch takes as long as the one before;
pings take the median of their link. With ``sim.elision = false`` everything is simulated, and histories are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.environment.network import Channel, Node
from sim.kernel.message import REPLY
from sim.kernel.scheduler import ElidedExchange

if TYPE_CHECKING:
    from sim.protocol.messages import FetchRequest, FetchResult
    from sim.protocol.replica.delayed_fetch import DelayedFetch


class ElidingBroker(Node):
    """A node where fetches wait, and that pings."""

    __slots__ = ()

    def refetched(self, delayed: DelayedFetch, at_us: int) -> None:
        """The same fetch arrived once more, last at that time."""
        raise NotImplementedError

    def waits_until(self, delayed: DelayedFetch, expires_us: int) -> None:
        """It waits at present."""
        raise NotImplementedError

    def answered(self, request: FetchRequest, result: FetchResult, channel: Channel[Any], arrives_us: int) -> None:
        """Its empty response is under way."""
        raise NotImplementedError

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        """It does not wait any more."""
        raise NotImplementedError

    @property
    def metadata_offset(self) -> int:
        """What its pings tell, if they tell anything: up to where it has replayed the metadata log of a quorum."""
        return 0

    def ping_again(self, channel: Channel[Any], sent_us: int, next_us: int) -> None:
        """The last ping was sent at the one time, it or its response may be under way; the next is due at the other."""
        raise NotImplementedError


class SessionKeeper(Node):
    """A node that is pinged."""

    def suspend_expiry(self, broker: int) -> None:
        """The pings of a broker are elided: its session does not expire until `resume_expiry`."""
        raise NotImplementedError

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """The session was last kept at that time (-1: not since pings are elided), by a ping that told so much."""
        raise NotImplementedError


class ElidedFetch(ElidedExchange):
    """A fetch that makes rounds. Its asker is a node with `Node.fetched_again`.

    Args:
        server: where it waits.
        delayed: the fetch.
        result: what each empty response says.
        there: the connection to the server.
        back: the connection to the asker.
        wait_us: for how long it waits.

    Attributes:
        delayed: see above.
    """

    __slots__ = ("_arrived_us", "_back", "_result", "_server", "_there", "_wait_us", "delayed")

    def __init__(
        self,
        server: ElidingBroker,
        delayed: DelayedFetch,
        result: FetchResult,
        there: Channel[Any],
        back: Channel[Any],
        wait_us: int,
    ) -> None:
        super().__init__((there, back))
        self._server = server
        self.delayed = delayed
        self._result = result
        self._there = there
        self._back = back
        self._arrived_us = delayed.since_us
        self._wait_us = wait_us

    def settle(self, now_us: int) -> None:
        """See `ElidedExchange.settle`; a fetch that does not wait any more is about to be answered."""
        server, delayed, wait_us = self._server, self.delayed, self._wait_us
        asker: Node = self._back.target
        request = delayed.request
        if now_us < self._arrived_us + wait_us:
            asker.fetched_again(request, -1, 0)
            if delayed.waits:
                server.waits_until(delayed, self._arrived_us + wait_us)
            return
        about = request.about()
        there_us, back_us = self._there.latency_us(about), self._back.latency_us(REPLY + about)
        period_us = wait_us + back_us + there_us
        rounds, phase_us = divmod(now_us - self._arrived_us, period_us)
        arrived_us = self._arrived_us + rounds * period_us
        answered_us = arrived_us + wait_us + back_us
        if rounds:
            server.refetched(delayed, arrived_us)
        if phase_us < wait_us:
            asker.fetched_again(request, arrived_us - there_us, rounds)
            if delayed.waits:
                server.waits_until(delayed, arrived_us + wait_us)
            return
        server.cancel_wait(delayed)
        if phase_us < wait_us + back_us:
            asker.fetched_again(request, arrived_us - there_us, rounds)
            server.answered(request, self._result, self._back, answered_us)
        else:
            asker.fetched_again(request, answered_us, rounds + 1)
            self._there.deliver_at(answered_us + there_us, request)


class ElidedPings(ElidedExchange):
    """The pings of a broker.

    Args:
        pinger: the broker.
        channel: the connection to the node that keeps its session.
        sent_us: when the first ping is elided.
        interval_us: from one ping to the next.
    """

    __slots__ = ("_channel", "_interval_us", "_pinger", "_sent_us", "_sessions")

    def __init__(self, pinger: ElidingBroker, channel: Channel[Any], sent_us: int, interval_us: int) -> None:
        super().__init__((pinger.life, channel))
        self._pinger = pinger
        self._sessions: SessionKeeper = channel.target
        self._channel = channel
        self._sent_us = sent_us
        self._interval_us = interval_us

    def begin(self) -> None:
        """See `ElidedExchange.begin`."""
        self._sessions.suspend_expiry(self._pinger.node)
        super().begin()

    def settle(self, now_us: int) -> None:
        """See `ElidedExchange.settle`."""
        interval_us = self._interval_us
        sent_us = now_us - (now_us - self._sent_us) % interval_us
        arrives_us = sent_us + self._channel.usual_us
        heard_us = arrives_us if arrives_us <= now_us else arrives_us - interval_us
        if heard_us < self._sent_us:
            heard_us = -1
        self._sessions.resume_expiry(self._pinger.node, heard_us, self._pinger.metadata_offset)
        self._pinger.ping_again(self._channel, sent_us, sent_us + interval_us)
