"""Timeouts of the requests that a broker's fetchers send to leaders."""

from __future__ import annotations

from collections.abc import Mapping

from sim.environment.elision import ElidedFetch
from sim.hosts.broker_node import BrokerNode
from sim.kernel.scheduler import Event, Gate
from sim.protocol.messages import FetchRequest
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread


class _RequestTimeout(Event):
    """Checks whether a request to a leader has timed out."""

    __slots__ = ("_leader", "_sender", "_until_us")
    elision_safe = True

    def __init__(self, sender: BrokerBlockingSender, leader: int, until_us: int) -> None:
        self._sender = sender
        self._leader = leader
        self._until_us = until_us

    def happen(self, _: Gate) -> None:
        self._sender.time_out(self, self._leader, self._until_us)


class BrokerBlockingSender:
    """Times requests out after ``replica.socket.timeout.ms``; one timer serves all requests to a leader.

    Kafka: server.ReplicaFetcherBlockingSend (1.1-2.6), BrokerBlockingSender (3.9-4.4).

    Args:
        broker: the follower's broker.
        fetchers: its fetchers, by leader.
    """

    __slots__ = ("_broker", "_fetchers", "_sent_us", "_timers_set")

    def __init__(self, broker: BrokerNode, fetchers: Mapping[int, ReplicaFetcherThread]) -> None:
        self._broker = broker
        self._fetchers = fetchers
        self._sent_us: dict[int, int] = {}
        self._timers_set: set[int] = set()

    def note_sent(self, leader: int) -> None:
        """Note that a request to a leader was sent now."""
        self._note_sent_at(leader, self._broker.kernel.now_us)

    def _note_sent_at(self, leader: int, sent_us: int) -> None:
        self._sent_us[leader] = sent_us
        if leader not in self._timers_set:
            self._set_timeout_at(leader, sent_us + self._broker.settings.socket_timeout_us)

    def _set_timeout_at(self, leader: int, due_us: int) -> None:
        self._timers_set.add(leader)
        kernel = self._broker.kernel
        timeout = _RequestTimeout(self, leader, due_us)
        kernel.schedule(max(due_us, kernel.now_us), self._broker.life, timeout)

    def time_out(self, timeout: Event, leader: int, until_us: int) -> None:
        """Time out requests to a leader; `until_us` is the deadline as of the last check."""
        broker = self._broker
        if broker.frozen:  # The broker is resuming: it first handles received messages (NetworkClient.poll).
            broker.kernel.schedule(broker.kernel.now_us, broker.life, timeout)
            return
        self._timers_set.discard(leader)
        fetcher = self._fetchers.get(leader)
        request = fetcher.in_flight if fetcher is not None else None
        if fetcher is None or request is None or leader not in broker.out:
            return  # Requests to a peer that is down are retried when it is up.
        for exchange in broker.life.elided:
            if isinstance(exchange, ElidedFetch) and exchange.delayed.request is request:
                return  # Its elided rounds are answered in time.
        due_us = self._sent_us[leader] + broker.settings.socket_timeout_us
        if due_us <= until_us:
            fetcher.request_failed(request, broker.kernel.now_us)
        else:
            self._set_timeout_at(leader, due_us)

    # Elision of idle fetches: see `sim.environment.elision`.

    def is_answered_in_time(self, leader: int, answered_us: int, period_us: int) -> bool:
        """See `Node.is_answered_in_time`."""
        timeout_us = self._broker.settings.socket_timeout_us
        return answered_us < self._sent_us[leader] + timeout_us and period_us < timeout_us

    def note_elided_rounds(self, request: FetchRequest, sent_us: int, answers: int) -> None:
        """See `Node.note_elided_rounds`. Without an answer the noted send time stays: `sent_us`, counted back from the
        wait, is too late if the leader held the fetch back before.
        """
        leader = request.leader
        self._note_sent_at(leader, sent_us if answers else self._sent_us[leader])
