"""Only events that matter: pings that keep a session, and fetches that wait, expire empty and are sent again.

While nothing changes, a follower's or consumer's fetch goes round: it waits at the leader for
``replica.fetch.wait.max.ms``, is answered with nothing new, and the same fetch is sent again. A broker's pings arrive,
one like the other. Such rounds are not simulated: each is an omission (`sim.kernel.scheduler.Omission`) of the two
nodes that it goes on between, and holds only as long as nothing is called at either of them. Any call that comes to one
of them first ends what that node leaves out: the round that is under way by then is worked out from phase and period,
what it has told the receiver by then takes effect at the times at which it would have, and its next message is
simulated again. The kernel sees to that, for all calls but those of `LOOKS`. What is done to a node or
link from outside ends it, too: cuts and pauses in `sim.environment.network.Network`, else `Node.end_omissions`.

So that this is exact, what may be left out depends on nothing else that is under way, whether it is left out or not:
such messages neither wait for others of their connection nor hold them up
(`sim.environment.network.Channel.send_beside`), and of what happens at the same microsecond, they and their timers come
first, in the order of the nodes that they come from (`sim.kernel.scheduler.Kernel.call_first`).

Messages of a round are alike (`sim.kernel.message.ALIKE`), so each round of a fetch takes as long as the one before;
pings take the median of their link. With ``sim.elision = false`` everything is simulated, and histories are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from sim.environment.network import Channel
from sim.kernel.message import REPLY
from sim.kernel.scheduler import Gate, Omission

if TYPE_CHECKING:
    from sim.protocol.messages import FetchRequest, FetchResponse, FetchResult

LOOKS: Final = frozenset(
    {
        # What may be left out itself, and the most frequent of what it depends on.
        "on_fetch",
        "_expire_fetch",
        "on_fetch_reply",
        "on_produce",
        "_ping",
        "on_ping",
        "_communicate",
        "on_heartbeat",
        "on_heartbeat_reply",
        # Timers that find nothing to do, mostly.
        "_time_out",
        "_unanswered",
        "_registration_timed_out",
        "_send_lost",
        "_metadata_timed_out",
        "_age",
        "_check_session",
        "_check",
        "_shrink_isr",
        "_periodic",
        "_balance",
        "_announce_isr",
        # Questions whose answers change nothing where they are asked, nor where they are heard.
        "ask_regularly",
        "on_list_offsets",
        "on_list_offsets_reply",
        "on_metadata",
    }
)
"""Handlers before which nothing ends: they, or what they change (a HW, an ISR, the metadata log), see to that."""


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

    def on_fetch_reply(self, reply: FetchResponse) -> None:
        """An answer arrives."""

    def fetched_again(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        """So many empty answers came, after each of which the same fetch was sent, last at that time if any came."""


class Fetch(Omission):
    """A fetch that goes round.

    Args:
        server: where it waits.
        request: the fetch.
        result: what each empty answer says.
        there: the connection to the server.
        back: the connection to the asker.
        arrived_us: when it began to wait.
        wait_us: for how long it waits.
    """

    __slots__ = ("_arrived_us", "_asker", "_back", "_request", "_result", "_server", "_there", "_wait_us")

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
        super().__init__((there, back))
        self._server = server
        self._asker = back.target
        self._request = request
        self._result = result
        self._there = there
        self._back = back
        self._arrived_us = arrived_us
        self._wait_us = wait_us

    def begin(self) -> None:
        """See `Omission.begin`."""
        self._request.omission = self
        super().begin()

    def dispose(self) -> None:
        """See `Omission.dispose`."""
        self._request.omission = None

    def settle(self, now_us: int) -> None:
        """See `Omission.settle`; one that is not `delayed` any more is about to be answered, if it waits."""
        server, asker, request, wait_us = self._server, self._asker, self._request, self._wait_us
        request.omission = None
        if now_us < self._arrived_us + wait_us:
            asker.fetched_again(request, -1, 0)
            if request.delayed:
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
            asker.fetched_again(request, arrived_us - there_us, rounds)
            if request.delayed:
                server.waits_until(request, arrived_us + wait_us)
            return
        server.left(request)
        if phase_us < wait_us + back_us:
            asker.fetched_again(request, arrived_us - there_us, rounds)
            server.answered(request, self._result, self._back, answered_us)
        else:
            asker.fetched_again(request, answered_us, rounds + 1)
            self._there.deliver_at(answered_us + there_us, self._there.target.on_fetch, request)


class Pinger(Protocol):
    """Who pings.

    Attributes:
        metadata_offset: what its pings tell, if they tell anything.
    """

    node: int
    life: Gate

    @property
    def metadata_offset(self) -> int:
        """See above."""

    def ping_again(self, channel: Channel[Any], sent_us: int, next_us: int) -> None:
        """The last ping was sent at the one time, it or its answer may be under way; the next is due at the other."""


class Sessions(Protocol):
    """Who is pinged."""

    def goes_on(self, broker: int) -> None:
        """A broker's pings are left out, and its session goes on until `heard`."""

    def heard(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """A session was last heard of at that time (-1: not since pings were left out), by a ping that told so much."""


class Pings(Omission):
    """A broker's pings.

    Args:
        pinger: the broker.
        channel: the connection to who keeps its session.
        sent_us: when the first ping is left out.
        interval_us: from one ping to the next.
    """

    __slots__ = ("_channel", "_interval_us", "_pinger", "_sent_us", "_sessions")

    def __init__(self, pinger: Pinger, channel: Channel[Any], sent_us: int, interval_us: int) -> None:
        super().__init__((pinger.life, channel))
        self._pinger = pinger
        self._sessions: Sessions = channel.target
        self._channel = channel
        self._sent_us = sent_us
        self._interval_us = interval_us

    def begin(self) -> None:
        """See `Omission.begin`."""
        self._sessions.goes_on(self._pinger.node)
        super().begin()

    def settle(self, now_us: int) -> None:
        """See `Omission.settle`."""
        interval_us = self._interval_us
        sent_us = now_us - (now_us - self._sent_us) % interval_us
        arrives_us = sent_us + self._channel.usual_us
        heard_us = arrives_us if arrives_us <= now_us else arrives_us - interval_us
        if heard_us < self._sent_us:
            heard_us = -1
        self._sessions.heard(self._pinger.node, heard_us, self._pinger.metadata_offset)
        self._pinger.ping_again(self._channel, sent_us, sent_us + interval_us)
