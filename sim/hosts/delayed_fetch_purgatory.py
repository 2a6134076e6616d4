"""Fetches that find no data and wait for data, a new HW, a change of leadership or their timeout.

A new HW completes only consumers' fetches: an idle follower learns it with its next fetch.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from sim.environment.elision import ElidedFetch, FetchServer
from sim.environment.network import Channel
from sim.hosts.broker_node import BrokerNode
from sim.hosts.hosted_replica import NO_RESULT, HostedReplicas
from sim.kernel.scheduler import Event, Gate
from sim.protocol.messages import NONE, FetchRequest, FetchResponse, FetchResult
from sim.protocol.replica.delayed_fetch import DelayedFetch
from sim.protocol.replica.fetch_session import FetchSession


class _FetchExpiry(Event):
    """Timeout of a waiting fetch."""

    __slots__ = ("_delayed", "_purgatory", "_since_us")
    elision_safe = True
    needs_partition = True

    def __init__(self, purgatory: DelayedFetchPurgatory, delayed: DelayedFetch) -> None:
        self._purgatory = purgatory
        self._delayed = delayed
        self._since_us = delayed.since_us

    def needs(self, names: Container[str]) -> bool:
        """See `Event.needs`."""
        return self._delayed.request.needs(names)

    def happen(self, _: Gate) -> None:
        # If elided rounds have repeated the fetch since, another timer is set for its present round.
        if self._delayed.waits and self._delayed.since_us == self._since_us:
            self._purgatory.expire(self._delayed)


def _arrival(delayed: DelayedFetch) -> tuple[int, int]:
    return delayed.since_us, delayed.request.node


class DelayedFetchPurgatory(FetchServer):
    """The waiting fetches of a broker; see the module. Kafka: DelayedFetch, DelayedOperationPurgatory."""

    __slots__ = ("_broker", "_replicas")

    def __init__(self, broker: BrokerNode, replicas: HostedReplicas) -> None:
        self._broker = broker
        self._replicas = replicas

    def wait_on_all(self, delayed: DelayedFetch) -> None:
        """Let a fetch wait for each of its partitions: in its session, or in the list of each partition."""
        if delayed.session is not None:
            delayed.session.delayed = delayed
            return
        replicas = self._replicas.replicas
        for position in delayed.request.positions:
            replicas[position[0]].followers.append(delayed)

    def await_expiry(self, delayed: DelayedFetch) -> None:
        """Answer a waiting fetch at its timeout, or elide it."""
        if self._elide_if_idle(delayed):
            return
        wait_us = self._wait_us(delayed.request)
        if wait_us:
            self.resume_wait(delayed, delayed.since_us + wait_us)
        else:
            # A fetch with wait time 0 is answered at once (ReplicaManager.fetchMessages).
            self._broker.deliver(self._broker.life, _FetchExpiry(self, delayed))

    def _wait_us(self, request: FetchRequest) -> int:
        return self._broker.settings.fetch_wait_us if request.replica >= 0 else self._broker.settings.consumer_wait_us

    def expire(self, delayed: DelayedFetch) -> None:
        """Answer a fetch that timed out with an empty response; data or a change would have completed it earlier.

        Kafka: DelayedFetch#onComplete.
        """
        request = delayed.request
        wait_us = self._wait_us(request)
        if not wait_us or self._broker.kernel.now_us > delayed.since_us + wait_us or not self._elide_if_idle(delayed):
            self.cancel_wait(delayed)
            if request.replica < 0 and self.redirect(request):
                return
            self._broker.reply_beside(request.node, response(delayed, self.empty_results(delayed, {})))

    def redirect(self, request: FetchRequest) -> bool:
        """Name a consumer the follower from which to fetch, without records; returns whether there is one.

        Kafka: ReplicaManager#readFromLog (3.9-4.4), ReplicaManager#readFromLocalLog (0.10.2-2.6).
        """
        if not self._broker.settings.near_consumers:
            return False
        name, offset, epoch, last_epoch = request.positions[0]
        replica = self._replicas.replica(name)
        preferred = -1 if replica is None else replica.preferred_read_replica(offset)
        if replica is None or preferred < 0:
            return False
        partition = replica.partition
        error = partition.fencing.check(epoch, partition.leader_epoch, client=True)
        if error:
            self._broker.reply(request.node, FetchResponse(request, [replica.refusal(error, last_epoch)]))
        else:
            result = replica.result(NONE, [])
            self._broker.reply(request.node, FetchResponse(request, [result], preferred_read_replica=preferred))
        return True

    # Elision of idle fetches: see `sim.environment.elision`.

    def _elide_if_idle(self, delayed: DelayedFetch) -> bool:
        """Elide a waiting fetch if it would only get an empty response, be sent again, and so on; returns whether it
        did.

        The condition is that a round changes nothing at either side, and that its messages arrive in time. No other
        message delays them (`Channel.send_beside`), and at equal times they come first (`Kernel.schedule_first`).
        """
        broker, request = self._broker, delayed.request
        if broker.waiting is not None or not delayed.waits:
            return False
        network = broker.network
        asker = network.nodes.get(request.node)
        if asker is None or not network.is_steady(broker, asker):
            return False
        if len(request.positions) > 1:
            results = self.empty_results(delayed, {})
            changed = None if delayed.session is None else delayed.session.changed
            if not self._are_idle(delayed, results, asker.repeated_places(request, results, changed)):
                return False
        else:
            name, offset, epoch, last_epoch = request.positions[0]
            replica = self._replicas.replica(name)
            assert replica is not None
            partition = replica.partition
            if not asker.would_repeat(request, 0, partition.hw, partition.log.log_start):
                return False
            if request.replica >= 0 and not partition.fetch_is_noop(request.replica, offset, request.leader_epochs[0]):
                return False
            if delayed.since_us < broker.kernel.now_us and partition.check_fetch(
                offset, epoch, last_epoch, request.replica < 0
            ):
                return False  # The fetch was accepted and would be refused now.
            results = [replica.nothing()]
        if not network.elides:
            network.idle_messages += 2
            return False
        there, back = asker.out.get(broker.node), broker.reach(request.node)
        if there is None or back is None:
            return False
        wait_us = self._wait_us(request)
        answer_us = wait_us + back.longest_us
        if not asker.is_answered_in_time(broker.node, delayed.since_us + answer_us, there.longest_us + answer_us):
            return False
        ElidedFetch(self, delayed, results, there, back, wait_us).begin()
        return True

    def _are_idle(self, delayed: DelayedFetch, results: Sequence[FetchResult], repeated: int) -> bool:
        """Whether a round of a fetch of several partitions is a no-op for the leader and the follower, which would
        repeat its first `repeated` positions.
        """
        request, replicas, session = delayed.request, self._replicas.replicas, delayed.session
        waited = delayed.since_us < self._broker.kernel.now_us
        follower, leader_epochs = request.replica, request.leader_epochs
        for place in list(range(repeated)) if session is None else session.visited:
            if place >= repeated:
                break
            position = request.positions[place]
            partition = replicas[position[0]].partition
            if not partition.fetch_is_noop(follower, position[1], leader_epochs[place]):
                return False
            if waited and not partition.has_all(position) and partition.check_fetch(*position[1:]):
                return False  # The fetch was accepted and would be refused now.
        return repeated == len(results)

    def empty_results(self, delayed: DelayedFetch, found: dict[int, FetchResult]) -> list[FetchResult]:
        """The results of a fetch of which only those partitions have news whose results are given."""
        replicas, positions, session = self._replicas.replicas, delayed.request.positions, delayed.session
        if session is None:
            if not found:
                return [replicas[position[0]].nothing() for position in positions]
            results = [NO_RESULT] * len(positions)
        else:
            results = session.results
        for place in list(range(len(positions))) if session is None else session.visited:
            result = found.get(place)
            results[place] = replicas[positions[place][0]].nothing() if result is None else result
        return results

    def note_elided_fetches(self, delayed: DelayedFetch, at_us: int) -> None:
        delayed.since_us = at_us
        follower = delayed.request.replica
        if follower >= 0:
            replicas, positions, session = self._replicas.replicas, delayed.request.positions, delayed.session
            if session is not None:
                session.note_elided_fetches(at_us)
            for place in list(range(len(positions))) if session is None else session.visited:
                replicas[positions[place][0]].partition.followers.states[follower].note_elided_fetches(at_us)

    def resume_wait(self, delayed: DelayedFetch, expires_us: int) -> None:
        self._broker.kernel.schedule_first(expires_us, self._broker.life, _FetchExpiry(self, delayed))

    def deliver_response(
        self, delayed: DelayedFetch, results: Sequence[FetchResult], channel: Channel[Any], arrives_us: int
    ) -> None:
        channel.deliver_at(arrives_us, response(delayed, results))

    def cancel_wait(self, delayed: DelayedFetch) -> None:
        delayed.waits = False
        if delayed.session is not None:
            delayed.session.delayed = None
            return
        replicas = self._replicas.replicas
        for position in delayed.request.positions:
            replicas[position[0]].cancel_wait(delayed)

    def answer_waiting(self, fetches: list[DelayedFetch]) -> None:
        """See `HostedReplicas.answer_waiting`."""
        if self._broker.life.elided:
            for delayed in fetches[:]:
                for exchange in self._broker.life.elided[:]:
                    if isinstance(exchange, ElidedFetch) and exchange.delayed is delayed:
                        delayed.waits = False
                        exchange.end(self._broker.kernel.now_us)
            # The response of such an exchange may be in flight, so that the fetch waits no longer.
            fetches[:] = [fetch for fetch in fetches if fetch.session is None or fetch.session.delayed is fetch]
        waiting = sorted(fetches, key=_arrival) if len(fetches) > 1 else fetches[:]
        fetches.clear()
        for delayed in waiting:
            self._answer_fetch(delayed)

    def _answer_fetch(self, delayed: DelayedFetch) -> None:
        """Answer a fetch that waited, with current data, and remove it from the lists of its other partitions.

        Kafka: DelayedFetch#onComplete.
        """
        delayed.waits = False
        request = delayed.request
        if request.replica < 0 and self.redirect(request):
            return
        if delayed.session is not None:
            self._answer_in_session(delayed, delayed.session)
            return
        several = len(request.positions) != 1
        results: list[FetchResult] = []
        for position in request.positions:
            replica = self._replicas.replica(position[0])
            if replica is None:
                results.append(self._replicas.no_result(position[0]))
                continue
            if several:
                followers = replica.followers
                if len(followers) == 1:
                    if followers[0] is delayed:
                        followers.clear()
                elif delayed in followers:
                    followers.remove(delayed)
            results.append(replica.read(request, position))
        self._broker.reply(request.node, FetchResponse(request, results))

    def _answer_in_session(self, delayed: DelayedFetch, session: FetchSession) -> None:
        """As `_answer_fetch`; idle partitions have nothing to read."""
        session.delayed = None
        request = delayed.request
        results = session.results
        for place in session.visited:
            position = request.positions[place]
            replica = self._replicas.replicas.get(position[0])
            if replica is None:
                results[place] = self._replicas.no_result(position[0])
            else:
                results[place] = replica.read(request, position)
        self._broker.reply(request.node, FetchResponse(request, results, session.take_changed()))


def response(delayed: DelayedFetch, results: Sequence[FetchResult]) -> FetchResponse:
    """The response with these results, and with what they change in the fetch session, if the fetch has one."""
    session = delayed.session
    return FetchResponse(delayed.request, results, None if session is None else session.take_changed())
