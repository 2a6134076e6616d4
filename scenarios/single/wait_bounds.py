"""Bounds of waits (`sim.checkers.needless_wait`), derived from the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sim.checkers.laggards import NEVER_US
from sim.checkers.needless_wait import WaitBounds
from sim.config import Value, integer
from sim.environment.network import LATENCY_US
from sim.hosts.idle_quorum import NO_OP_US
from sim.hosts.settings import ClientSettings, broker_settings, client_settings, quorum_settings
from sim.protocol.raft.kafka_raft_client import QuorumConfig
from sim.protocol.rules import Rules

_EXCHANGES: Final = 100
"""Requests with their responses that a step of the protocol takes at most, one after another: those of the rounds of a
truncation, for example, one for each leader epoch.
"""
_EXCHANGES_US: Final = _EXCHANGES * 2 * LATENCY_US[-1]


_REFUSALS: Final = 10
"""Brokers that a consumer asks for the coordinator, one after another, before one knows it."""
_ELECTIONS: Final = 10
"""Elections in a row that may fail, because votes are split."""


def elections_us(config: Mapping[str, Value]) -> int:
    """How long a majority of controllers may need to elect a leader that commits a batch: until they notice the end of
    the former one, which itself resigns after 1.5 times ``controller.quorum.fetch.timeout.ms`` (LeaderState); then
    elections of up to twice ``controller.quorum.election.timeout.ms`` and a back-off each (QuorumState).
    """
    quorum = quorum_settings(config)
    election_us = 2 * quorum.election_us + QuorumConfig().election_backoff_max_us
    return quorum.fetch_timeout_us * 3 // 2 + _ELECTIONS * election_us


def idle_quorum_us(config: Mapping[str, Value]) -> int:
    """How long a leader of controllers that stays may need to commit the next batch: until its next NoOpRecord
    (``metadata.max.idle.interval.ms``), and until a majority fetches it; without any fetch of a majority, it resigns
    after 1.5 times ``controller.quorum.fetch.timeout.ms`` (LeaderState).
    """
    return NO_OP_US + quorum_settings(config).fetch_timeout_us * 3 // 2 + _EXCHANGES_US // 10


def _client_us(client: ClientSettings) -> int:
    return _EXCHANGES_US + 2 * (client.request_timeout_us + client.retry_max_us)


def wait_bounds(configs: Sequence[Mapping[str, Value]], rules: Rules) -> WaitBounds:
    """The bounds with the settings of a run's brokers, the longest of them.

    A turn (see `NeedlessWait`) may have met any request on its way, so that it is sent again after its timeout:

    - a controller that is followed by another one: ``controller.quorum.fetch.timeout.ms`` and
      ``controller.quorum.election.timeout.ms`` (RaftConfig), none under ZooKeeper, whose sessions are turns;
    - a request between broker and controller: ``controller.socket.timeout.ms``;
    - a fetch: ``replica.socket.timeout.ms``, and ``replica.fetch.backoff.ms`` after the error; then one that waits
      ``replica.fetch.wait.max.ms``, and one that shows the leader what the former brought;
    - a controlled shutdown, in which a broker is no candidate: three ``broker.heartbeat.interval.ms`` until the
      controller allows it (BrokerLifecycleManager), or the session timeout if a process has ended meanwhile, as the
      controller waits until each unfenced broker has the metadata (BrokerHeartbeatManager);
    - a member of the ISR that does not fetch: ``replica.lag.time.max.ms``, and half of it until the leader looks
      (ReplicaManager: isr-expiration);
    - a batch that a producer sends again: ``retry.backoff.max.ms``;
    - the check of leaders: ``leader.imbalance.check.interval.seconds``;
    - a client's requests: two ``request.timeout.ms``, one for the metadata and one for the request itself, the
      back-offs between them, and what a follower that it reads from waits for (``replica.fetch.wait.max.ms``);
    - a consumer's request to the coordinator of its group: one ``request.timeout.ms``, the back-offs after some brokers
      that do not know the coordinator yet, and the time that the coordinator may need to load what is committed
      (``sim.coordinator.delay.ms``).
    """
    is_quorum = rules.control_plane == "kraft"
    session_us = elect_us = lead_us = leave_us = balance_us = retry_us = rejoin_us = request_us = acknowledge_us = 0
    session = "broker.session.timeout.ms" if is_quorum else "zookeeper.session.timeout.ms"
    for config in configs:
        own, quorum = broker_settings(config), quorum_settings(config)
        session_us = max(session_us, integer(config, session) * 1_000)
        failover_us = quorum.fetch_timeout_us + quorum.election_us if is_quorum else 0
        elect_us = max(elect_us, _EXCHANGES_US + failover_us + 3 * own.heartbeat_us)
        lead_us = max(lead_us, _EXCHANGES_US + failover_us + own.controller_socket_timeout_us + own.recovery_us)
        fetches_us = own.socket_timeout_us + own.fetch_backoff_us + 2 * own.fetch_wait_us
        rejoin_us = max(rejoin_us, lead_us + fetches_us + own.controller_socket_timeout_us)
        # ReplicaManager checks the ISR each half of replica.lag.time.max.ms.
        leave_us = max(leave_us, _EXCHANGES_US + own.lag_us * 3 // 2 if rules.isr_floor == "none" else NEVER_US)
        balances = bool(config["auto.leader.rebalance.enable"])
        balance_us = max(balance_us, elect_us + quorum.balance_check_us if balances else NEVER_US)
        retry_us = max(retry_us, own.controller_socket_timeout_us, fetches_us)
        request_us = max(request_us, lead_us + own.controller_socket_timeout_us)
        acknowledge_us = max(acknowledge_us, rejoin_us + own.lag_us * 3 // 2)
    clients = [client_settings(config) for config in configs]
    fetch_wait_us = max([broker_settings(config).fetch_wait_us for config in configs])
    return WaitBounds(
        elect_us=elect_us,
        session_us=session_us + elect_us,
        lead_us=lead_us,
        stay_us=max(min([own.lag_us - own.fetch_wait_us for own in map(broker_settings, configs)]) - _EXCHANGES_US, 0),
        leave_us=leave_us,
        balance_us=balance_us,
        retry_us=retry_us,
        rejoin_us=rejoin_us,
        acknowledge_us=acknowledge_us,
        request_us=request_us,
        send_us=max([client.retry_max_us for client in clients]),
        client_us=fetch_wait_us + max([_client_us(client) for client in clients]),
        group_us=_EXCHANGES_US
        + max([client.request_timeout_us + _REFUSALS * client.retry_max_us for client in clients])
        + max([integer(config, "sim.coordinator.delay.ms") * 1_000 for config in configs]),
        waits_for_restarted=rules.missed_bounce == "noticed",
    )
