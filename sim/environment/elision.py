"""Elision: session pings and idle fetches are not simulated while nothing changes.

An idle follower's or consumer's fetch makes rounds: it waits at the leader for ``replica.fetch.wait.max.ms``, gets an
empty response, and is sent again. A broker's pings repeat likewise. Such an exchange is elided
(`sim.kernel.scheduler.ElidedExchange`) as long as nothing else happens at either node. The kernel ends the elision
before any other event of either node, unless the event is `Event.elision_safe`. Then the round in progress is computed
from phase and period, what has arrived so far takes effect with its original times, and the next message is simulated
again. Changes from outside end it too: cuts and pauses in `sim.environment.network.Network`, everything else by
`Node.end_elision`.

The history is that of a full simulation only if elidable messages do not depend on other messages in flight, elided
or not. They neither wait for other messages of their connection nor hold them up
(`sim.environment.network.Channel.send_beside`). Among events due at the same time, they and their timers come first,
ordered by source node (`sim.kernel.scheduler.Kernel.schedule_first`). All messages of a round have constant latency:
the subjects of fetches and their responses are `sim.kernel.message.ALIKE`, and pings take the median latency of their
link. An event that changes what an idle fetch or a ping would see must end the elision.

What would change the history:

- An elision-safe event that changes a HW, an ISR or the metadata log, and whose handler does not end the exchange.
  Other events cannot do this, because the kernel ends the exchange before them. Events that mostly change nothing are
  elision-safe, so that they do not end exchanges needlessly.
- A latency that depends on how many messages were sent before: the time of an elided round would depend on all earlier
  rounds, not only on phase and period.
- Equal latencies on all links: the order of followers that fetch at the same time would be arbitrary.
- A ping that does more than keep the session. A ping that resends a pending request is therefore simulated, and a
  broker in controlled shutdown ends elision for all brokers, because the metadata offsets in their heartbeats decide
  when it may stop.
- A periodic task that is scheduled only while it may find something (isr-expiration): its order among the events of the
  same microsecond must not depend on when it was scheduled (`sim.kernel.scheduler.Kernel.schedule_task`).
- A follower outside the ISR: each of its fetches may let it join, so they are always simulated.

What a replicated quorum does while nothing changes is elided as a whole: `sim.hosts.idle_quorum`.

With ``sim.elision = false`` everything is simulated, and the history must be the same; `make hunt` compares both. The
decisions and their tests are in sim/environment/DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.environment.network import Channel, Node
from sim.kernel.message import REPLY
from sim.kernel.scheduler import ElidedExchange
from sim.protocol.messages import FetchResult
from sim.protocol.replica.delayed_fetch import DelayedFetch


class FetchServer:
    """Where fetches wait, as elided ones see it."""

    __slots__ = ()

    def note_elided_fetches(self, delayed: DelayedFetch, at_us: int) -> None:
        """Update follower states for elided arrivals of the fetch, the last of them at `at_us`."""
        raise NotImplementedError

    def resume_wait(self, delayed: DelayedFetch, expires_us: int) -> None:
        """Resume the wait of the fetch, until `expires_us`."""
        raise NotImplementedError

    def deliver_response(
        self, delayed: DelayedFetch, results: Sequence[FetchResult], channel: Channel[Any], arrives_us: int
    ) -> None:
        """Schedule the arrival, at `arrives_us`, of the empty response to the fetch, which is in flight."""
        raise NotImplementedError

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        """End the wait of the fetch."""
        raise NotImplementedError


class ElidingBroker(Node):
    """A broker that sends pings, as elided ones see it."""

    __slots__ = ()

    @property
    def metadata_offset(self) -> int:
        """How far the broker has replayed the metadata log, as its heartbeats report it; 0 with ZooKeeper."""
        return 0

    def resume_pings(self, channel: Channel[Any], sent_us: int, next_us: int) -> None:
        """Resume pings, the next at `next_us`. The last was sent at `sent_us`; it or its response may be in flight."""
        raise NotImplementedError


class SessionKeeper(Node):
    """A node that keeps sessions by pings."""

    def suspend_expiry(self, broker: int) -> None:
        """Suspend session expiry of a broker whose pings are elided, until `resume_expiry`."""
        raise NotImplementedError

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """Resume session expiry: the last ping arrived at `last_us` (-1: none since elision began) and reported
        `metadata_offset`.
        """
        raise NotImplementedError


class ElidedFetch(ElidedExchange):
    """An idle fetch that is sent again and again, and gets the same empty response each time.

    The fetching node implements `Node.note_elided_rounds`.

    Args:
        server: where the fetch waits.
        delayed: the fetch.
        results: the results in each empty response.
        there: the connection to the server.
        back: the connection to the fetching node.
        wait_us: how long the fetch waits at the server in each round.
    """

    __slots__ = ("_arrived_us", "_back", "_results", "_server", "_there", "_wait_us", "delayed")

    def __init__(
        self,
        server: FetchServer,
        delayed: DelayedFetch,
        results: Sequence[FetchResult],
        there: Channel[Any],
        back: Channel[Any],
        wait_us: int,
    ) -> None:
        super().__init__(there, back)
        self._server = server
        self.delayed = delayed
        self._results = results
        self._there = there
        self._back = back
        self._arrived_us = delayed.since_us
        self._wait_us = wait_us

    def settle(self, now_us: int) -> None:
        """See `ElidedExchange.settle`. The wait is not resumed if the server is about to answer the fetch."""
        server, delayed, wait_us = self._server, self.delayed, self._wait_us
        asker: Node = self._back.target
        request = delayed.request
        if now_us < self._arrived_us + wait_us:
            asker.note_elided_rounds(request, -1, 0)
            if delayed.waits:
                server.resume_wait(delayed, self._arrived_us + wait_us)
            return
        about = request.about()
        there_us, back_us = self._there.latency_us(about), self._back.latency_us(REPLY + about)
        period_us = wait_us + back_us + there_us
        rounds, phase_us = divmod(now_us - self._arrived_us, period_us)
        arrived_us = self._arrived_us + rounds * period_us
        answered_us = arrived_us + wait_us + back_us
        if rounds:
            server.note_elided_fetches(delayed, arrived_us)
        if phase_us < wait_us:
            asker.note_elided_rounds(request, arrived_us - there_us, rounds)
            if delayed.waits:
                server.resume_wait(delayed, arrived_us + wait_us)
            return
        server.cancel_wait(delayed)
        if phase_us < wait_us + back_us:
            asker.note_elided_rounds(request, arrived_us - there_us, rounds)
            server.deliver_response(delayed, self._results, self._back, answered_us)
        else:
            asker.note_elided_rounds(request, answered_us, rounds + 1)
            self._there.deliver_at(answered_us + there_us, request)


class ElidedPings(ElidedExchange):
    """The pings of a broker to the node that keeps its session; the first would have been sent at `sent_us`."""

    __slots__ = ("_channel", "_interval_us", "_pinger", "_sent_us", "_sessions")

    def __init__(self, pinger: ElidingBroker, channel: Channel[Any], sent_us: int, interval_us: int) -> None:
        super().__init__(pinger.life, channel)
        self._pinger = pinger
        self._sessions: SessionKeeper = channel.target
        self._channel = channel
        self._sent_us = sent_us
        self._interval_us = interval_us

    def begin(self) -> None:
        self._sessions.suspend_expiry(self._pinger.node)
        super().begin()

    def settle(self, now_us: int) -> None:
        interval_us = self._interval_us
        sent_us = now_us - (now_us - self._sent_us) % interval_us
        arrives_us = sent_us + self._channel.usual_us
        last_us = arrives_us if arrives_us <= now_us else arrives_us - interval_us
        if last_us < self._sent_us:
            last_us = -1
        self._sessions.resume_expiry(self._pinger.node, last_us, self._pinger.metadata_offset)
        self._pinger.resume_pings(self._channel, sent_us, sent_us + interval_us)
