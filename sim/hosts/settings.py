"""Settings of a cluster in the form that the simulation uses: resolved, typed, times in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.auto_offset_reset import duration_us
from sim.config import KEYS, NEVER, Value, integer
from sim.environment.storage import StorageSettings
from sim.protocol.log.producer_state_manager import RETAINED
from sim.protocol.rules import Rules, unmet

NO_FLUSH_MS: Final = 1 << 50
"""No run is that long, in ms, and its us are still machine words."""


def _us(config: Mapping[str, Value], key: str) -> int:
    return integer(config, key) * 1_000


def acks_number(acks: str) -> int:
    """The number of an ``acks`` value: ``all`` is -1."""
    return -1 if acks == "all" else int(acks)


@dataclass(slots=True)
class BrokerSettings:
    """One broker's settings; see `sim.config.KEYS` for the keys behind them."""

    min_insync_replicas: int
    unclean_election: bool
    lag_us: int
    fetch_wait_us: int
    consumer_wait_us: int
    fetch_backoff_us: int
    socket_timeout_us: int
    heartbeat_us: int
    session_us: int
    ping_us: int
    recovery_us: int
    supervisor_us: int
    auto_balance: bool
    balance_check_us: int
    controller_socket_timeout_us: int
    shutdown_tries: int
    shutdown_backoff_us: int
    directory_failure_us: int
    log_directories: int
    commit_timeout_us: int
    coordinator_delay_us: int
    storage: StorageSettings
    near_consumers: tuple[int, ...] = ()
    """Brokers in the rack of the consumers (`Cluster`); empty: consumers have none."""


def broker_settings(config: Mapping[str, Value]) -> BrokerSettings:
    """From a full configuration."""
    return BrokerSettings(
        min_insync_replicas=integer(config, "min.insync.replicas"),
        unclean_election=bool(config["unclean.leader.election.enable"]),
        lag_us=_us(config, "replica.lag.time.max.ms"),
        fetch_wait_us=_us(config, "replica.fetch.wait.max.ms"),
        consumer_wait_us=_us(config, "fetch.max.wait.ms"),
        fetch_backoff_us=_us(config, "replica.fetch.backoff.ms"),
        socket_timeout_us=_us(config, "replica.socket.timeout.ms"),
        heartbeat_us=_us(config, "broker.heartbeat.interval.ms"),
        session_us=_us(config, "broker.session.timeout.ms"),
        ping_us=_us(config, "sim.heartbeat.interval.ms"),
        recovery_us=_us(config, "sim.recovery.ms"),
        supervisor_us=_us(config, "sim.supervisor.restart.ms"),
        auto_balance=bool(config["auto.leader.rebalance.enable"]),
        balance_check_us=_us(config, "leader.imbalance.check.interval.seconds") * 1_000,
        controller_socket_timeout_us=_us(config, "controller.socket.timeout.ms"),
        shutdown_tries=integer(config, "controlled.shutdown.max.retries"),
        shutdown_backoff_us=_us(config, "controlled.shutdown.retry.backoff.ms"),
        directory_failure_us=_us(config, "log.dir.failure.timeout.ms"),
        log_directories=integer(config, "sim.log.dirs"),
        commit_timeout_us=_us(config, "offsets.commit.timeout.ms"),
        coordinator_delay_us=_us(config, "sim.coordinator.delay.ms"),
        storage=StorageSettings(
            flush_interval_messages=integer(config, "log.flush.interval.messages"),
            flush_interval_us=min(integer(config, "log.flush.interval.ms"), NO_FLUSH_MS) * 1_000,
            flush_scheduler_us=min(integer(config, "log.flush.scheduler.interval.ms"), NO_FLUSH_MS) * 1_000,
            segment_bytes=integer(config, "log.segment.bytes"),
            record_bytes=integer(config, "sim.record.bytes"),
            writeback_interval_us=_us(config, "sim.writeback.interval.ms"),
            writeback_expire_us=_us(config, "sim.writeback.expire.ms"),
            hw_checkpoint_us=_us(config, "replica.high.watermark.checkpoint.interval.ms"),
            recovery_point_us=_us(config, "log.flush.offset.checkpoint.interval.ms"),
            log_start_us=_us(config, "log.flush.start.offset.checkpoint.interval.ms"),
        ),
    )


@dataclass(slots=True)
class ClientSettings:
    """Settings of producers and consumers; see `sim.config.KEYS`."""

    acks: int
    request_timeout_us: int
    delivery_timeout_us: int
    retry_us: int
    retry_max_us: int
    max_in_flight: int
    idempotence: bool
    stops_after_failure: bool
    metadata_age_us: int
    offset_reset: str
    reset_duration_us: int
    discovers_late: bool
    auto_commit_us: int
    end_offsets_us: int


def client_settings(config: Mapping[str, Value]) -> ClientSettings:
    """From a full configuration."""
    idempotence = bool(config["enable.idempotence"])
    return ClientSettings(
        acks=acks_number(str(config["acks"])),
        request_timeout_us=_us(config, "request.timeout.ms"),
        delivery_timeout_us=_us(config, "delivery.timeout.ms"),
        retry_us=_us(config, "retry.backoff.ms"),
        retry_max_us=_us(config, "retry.backoff.max.ms"),
        max_in_flight=min(integer(config, "max.in.flight.requests.per.connection"), RETAINED if idempotence else NEVER),
        idempotence=idempotence,
        stops_after_failure=config["sim.producer.failure"] == "stops",
        metadata_age_us=_us(config, "metadata.max.age.ms"),
        offset_reset=str(config["auto.offset.reset"]),
        reset_duration_us=duration_us(str(config["auto.offset.reset"])),
        discovers_late=config["sim.partition.discovery"] == "metadata",
        auto_commit_us=_us(config, "auto.commit.interval.ms") if config["enable.auto.commit"] else 0,
        end_offsets_us=_us(config, "sim.end.offsets.interval.ms"),
    )


@dataclass(slots=True)
class QuorumSettings:
    """Settings of a KRaft quorum; see `sim.config.KEYS` for the keys behind them."""

    session_us: int
    election_us: int
    fetch_timeout_us: int
    snapshot_interval_us: int
    snapshot_retention_us: int
    auto_balance: bool
    balance_check_us: int
    unclean_check_us: int


def quorum_settings(config: Mapping[str, Value]) -> QuorumSettings:
    """From a full configuration."""
    return QuorumSettings(
        session_us=_us(config, "broker.session.timeout.ms"),
        election_us=_us(config, "controller.quorum.election.timeout.ms"),
        fetch_timeout_us=_us(config, "controller.quorum.fetch.timeout.ms"),
        snapshot_interval_us=_us(config, "metadata.log.max.snapshot.interval.ms"),
        snapshot_retention_us=_us(config, "metadata.max.retention.ms"),
        auto_balance=bool(config["auto.leader.rebalance.enable"]),
        balance_check_us=_us(config, "leader.imbalance.check.interval.seconds") * 1_000,
        unclean_check_us=_us(config, "unclean.leader.election.interval.ms"),
    )


def heeds_unclean_election(config: Mapping[str, Value], rules: Rules) -> bool:
    """Whether ``unclean.leader.election.enable`` applies; otherwise ``unclean.recovery.strategy`` does, if set."""
    return rules.unclean_recovery == "election" or config["unclean.recovery.strategy"] == "default"


def convergence_deadline_us(config: Mapping[str, Value], session_us: int) -> int:
    """Time after healing within which a cluster must converge: session timeout + 1.5 x replica.lag.time.max.ms +
    metadata.max.age.ms + recovery time + 60 s.
    """
    return (
        session_us
        + _us(config, "replica.lag.time.max.ms") * 3 // 2
        + _us(config, "metadata.max.age.ms")
        + _us(config, "sim.recovery.ms")
        + 60_000_000
    )


_WAITED_MS: Final = 60_000
_WAITED_FOR: Final = (
    "broker.heartbeat.interval.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.socket.timeout.ms",
    "controlled.shutdown.retry.backoff.ms",
    "log.dir.failure.timeout.ms",
    "replica.fetch.backoff.ms",
    "replica.socket.timeout.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "sim.supervisor.restart.ms",
    "unclean.leader.election.interval.ms",
    "unclean.recovery.timeout.ms",
)
"""Waits of brokers, controllers and clients that may delay convergence, and that its deadline does not depend on."""


def converges_in_time(config: Mapping[str, Value], rules: Rules) -> bool:
    """Whether a healthy cluster with these settings can be expected to converge before `convergence_deadline_us`.

    None of its waits is longer than a minute, or than its default, and brokers send heartbeats before sessions end.
    """
    in_force = [key for key in _WAITED_FOR if not unmet(KEYS[key].where, [rules])]
    if any(integer(config, key) > max(_WAITED_MS, integer({key: KEYS[key].default}, key)) for key in in_force):
        return False
    beats = integer(config, "broker.heartbeat.interval.ms") < integer(config, "broker.session.timeout.ms")
    return beats or "broker.heartbeat.interval.ms" not in in_force
