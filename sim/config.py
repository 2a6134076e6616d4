"""Kafka's configuration keys that are modelled, with one default table for every mode.

Spelling and units are Kafka's own. Keys of the testbed itself carry the prefix ``sim.``. Defaults are those
of the newest release (ReplicationConfigs, ServerLogConfigs, ZkConfigs, ProducerConfig, ConsumerConfig), so
that a comparison of modes compares protocols and not settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from sim import auto_offset_reset
from sim.errors import InputError, did_you_mean
from sim.kafka_keys import about

Value = int | str | bool
NEVER: Final = 9223372036854775807
"""Long.MAX_VALUE: Kafka's way to write "never"; scenario files may say ``"never"``."""
Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Where a rule or key has an effect: rules, each of which must have one of these values and itself an effect."""
EVERYWHERE: Final[Where] = ()
"""In every mode."""
ZOOKEEPER: Final[Where] = (("control_plane", ("zookeeper",)),)
"""In modes with ZooKeeper."""
KRAFT: Final[Where] = (("control_plane", ("kraft",)),)
"""In modes with KRaft."""
SEVERAL_DIRECTORIES: Final[Where] = (("directory_assignment", ("clears-elr", "keeps-elr")),)
"""In modes that know log directories."""
ELR: Final[Where] = (("elr", ("on",)),)
"""In modes with ELR."""
CHECKS_UNCLEAN: Final[Where] = (*KRAFT, ("enabled_unclean_election", ("checked",)))
"""In modes whose controller looks for partitions without a leader."""
READS_FROM_FOLLOWERS: Final[Where] = (("read_replica", ("any", "in-sync")),)
"""In modes whose followers serve consumers."""
RECOVERS_UNCLEANLY: Final[Where] = (("unclean_recovery", ("first-replies", "log-inspection")),)
CONTROLLER_KEYS: Final = frozenset({"metadata.log.max.snapshot.interval.ms", "metadata.max.retention.ms"})
"""Keys that have an effect only with ``control = "quorum"``, where controllers are processes with metadata logs."""


GROUP_OFFSETS: Final = "sim.group.offsets"
"""The key for where consumers commit."""
DIRECTORIES_MAX: Final = 16
"""Most log directories of a broker."""
PRODUCERS_MAX: Final = 9
"""Most producers of a partition."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key.

    Attributes:
        default: its value when a scenario does not set it.
        meaning: one line, with the unit.
        choices: allowed values of keys that are words.
        minimum: smallest allowed value of keys that are numbers.
        maximum: largest allowed value.
        where: where it has an effect.
        form: a form of further allowed words; empty if there is none.
        pattern: a regular expression for them.
    """

    default: Value
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = NEVER
    where: Where = EVERYWHERE
    form: str = ""
    pattern: str = ""


# In two functions: mypyc makes 7,000 lines of C of one table.


def _keys_of_topics_and_brokers() -> dict[str, Key]:
    return {
        "default.replication.factor": Key(1, "replicas of the partition", minimum=1),
        "min.insync.replicas": Key(1, "smallest ISR with which acks=all succeeds", minimum=1),
        "unclean.leader.election.enable": Key(False, "whether a replica outside the ISR may be elected"),
        "replica.lag.time.max.ms": Key(30_000, "ms without catching up until a follower leaves the ISR", minimum=1),
        "replica.fetch.wait.max.ms": Key(500, "ms that a follower's fetch waits for data"),
        "replica.fetch.backoff.ms": Key(1_000, "ms until a follower retries after an error", minimum=1),
        "replica.socket.timeout.ms": Key(30_000, "ms until a follower's request times out", minimum=1),
        "replica.high.watermark.checkpoint.interval.ms": Key(5_000, "ms between writes of the HW file", minimum=1),
        "log.flush.interval.messages": Key(NEVER, "records until a log is fsynced", minimum=1),
        "log.flush.interval.ms": Key(
            NEVER,
            "ms since a log's last fsync after which the flusher fsyncs it (unset: at each of its runs)",
            minimum=1,
        ),
        "log.flush.scheduler.interval.ms": Key(
            NEVER, "ms between runs of the flusher, of which the first is 30 s after a start", minimum=1
        ),
        "log.flush.offset.checkpoint.interval.ms": Key(60_000, "ms between writes of the recovery points", minimum=1),
        "log.flush.start.offset.checkpoint.interval.ms": Key(60_000, "ms between writes of the log starts", minimum=1),
        "log.segment.bytes": Key(1_073_741_824, "bytes until a segment rolls", minimum=14),
        "log.dir.failure.timeout.ms": Key(
            30_000,
            "ms until a broker that cannot report a failed log directory shuts down",
            minimum=1,
            where=SEVERAL_DIRECTORIES,
        ),
        "zookeeper.session.timeout.ms": Key(
            18_000, "ms without a ping until a session ends", minimum=1, where=ZOOKEEPER
        ),
        "broker.session.timeout.ms": Key(
            9_000, "ms without a heartbeat until KRaft fences a broker", minimum=1, where=KRAFT
        ),
        "broker.heartbeat.interval.ms": Key(2_000, "ms between a broker's heartbeats to KRaft", minimum=1, where=KRAFT),
        "controller.quorum.election.timeout.ms": Key(
            1_000, "ms until a quorum elects another controller", minimum=1, where=KRAFT
        ),
        "controller.quorum.fetch.timeout.ms": Key(
            2_000, "ms until a quorum notices a silent controller", minimum=1, where=KRAFT
        ),
        "metadata.log.max.snapshot.interval.ms": Key(
            3_600_000,
            "ms until a controller or broker makes another snapshot of the metadata log (0: none)",
            where=KRAFT,
        ),
        "metadata.max.retention.ms": Key(
            604_800_000,
            "ms until a snapshot of the metadata log is removed, if there is a later one (-1: never)",
            minimum=-1,
            where=KRAFT,
        ),
        "eligible.leader.replicas.version": Key(
            1, "feature level of ELR, in releases that have it (0: off)", maximum=1, where=ELR
        ),
        "unclean.leader.election.interval.ms": Key(
            300_000, "ms between checks for leaderless partitions", minimum=1, where=CHECKS_UNCLEAN
        ),
        "unclean.recovery.strategy": Key(
            "default",
            "how KIP-966 elects without a clean candidate (default: Aggressive with unclean election, else Balanced)",
            ("default", "None", "Balanced", "Aggressive"),
            where=RECOVERS_UNCLEANLY,
        ),
        "unclean.recovery.timeout.ms": Key(
            300_000, "ms that an unclean recovery waits for responses", minimum=1, where=RECOVERS_UNCLEANLY
        ),
        "auto.leader.rebalance.enable": Key(
            True, "whether the controller moves leadership back to the preferred replica"
        ),
        "leader.imbalance.check.interval.seconds": Key(
            300, "s between checks whether the preferred replica leads", minimum=1
        ),
        "offsets.topic.replication.factor": Key(
            3, "replicas of __consumer_offsets, at most one for each broker", minimum=1
        ),
        "offsets.commit.timeout.ms": Key(5_000, "ms that the coordinator waits for a commit's replicas", minimum=1),
        "controller.socket.timeout.ms": Key(
            30_000, "ms until an unanswered request of or to a controller is resent", minimum=1
        ),
        "controlled.shutdown.max.retries": Key(
            3, "tries of a controlled shutdown before the broker stops anyway", minimum=1, where=ZOOKEEPER
        ),
        "controlled.shutdown.retry.backoff.ms": Key(
            5_000, "ms between tries of a controlled shutdown", minimum=1, where=ZOOKEEPER
        ),
    }


def _keys_of_clients_and_the_testbed() -> dict[str, Key]:
    return {
        # Producer.
        "acks": Key("all", "replicas that must have a batch before it is acknowledged", ("0", "1", "all")),
        "request.timeout.ms": Key(30_000, "ms until a client's request times out", minimum=1),
        "delivery.timeout.ms": Key(
            120_000, "ms until a producer's batch expires (default: at least request.timeout.ms)", minimum=1
        ),
        "retry.backoff.ms": Key(100, "ms until a client's first retry", minimum=1),
        "retry.backoff.max.ms": Key(1_000, "longest back-off, in ms", minimum=1),
        "max.in.flight.requests.per.connection": Key(5, "largest number of unanswered produce requests", minimum=1),
        "enable.idempotence": Key(
            False,
            "whether the producer numbers its batches, with at most 5 in flight (Kafka's default is true from 3.0 on; "
            "here all modes share the workloads of 0.10.2, which lacks it)",
        ),
        "metadata.max.age.ms": Key(300_000, "ms between periodic metadata requests of a client", minimum=1),
        # Consumer.
        "auto.offset.reset": Key(
            "latest",
            "where a consumer continues if its position is out of range, or begins without one (by_duration: in Kafka "
            "from 4.0 on)",
            ("earliest", "latest", "none"),
            form=auto_offset_reset.FORM,
            pattern=auto_offset_reset.PATTERN,
        ),
        "enable.auto.commit": Key(
            False, "whether consumers commit their positions regularly (Kafka's default is true; here scripts commit)"
        ),
        "auto.commit.interval.ms": Key(5_000, "ms between commits with enable.auto.commit", minimum=1),
        "fetch.max.wait.ms": Key(500, "ms that a consumer's fetch waits for data"),
        "sim.partition.discovery": Key(
            "at-once",
            "when a consumer learns of a partition that is added while it runs: at once, with a position at its start; "
            "or at its next periodic metadata request, without a position",
            ("at-once", "metadata"),
        ),
        "sim.group.offsets": Key(
            "ideal",
            "where consumers commit: in a store that never fails, or in __consumer_offsets, a partition whose leader's "
            "broker is the coordinator of all groups",
            ("ideal", "partition"),
        ),
        "sim.coordinator.delay.ms": Key(
            20, "ms until a broker that is elected, or resigns, has loaded or unloaded __consumer_offsets"
        ),
        "sim.client.rack": Key(
            0,
            "rack of the consumers, by its number in the order of names (client.rack; replica.selector.class is the "
            "RackAwareReplicaSelector; 0: none, consumers read at leaders)",
            where=READS_FROM_FOLLOWERS,
        ),
        # The testbed's own.
        "sim.writeback.interval.ms": Key(5_000, "ms between runs of the kernel's flusher (dirty_writeback)", minimum=1),
        "sim.writeback.expire.ms": Key(30_000, "ms until a dirty page is written back (dirty_expire)"),
        "sim.heartbeat.interval.ms": Key(
            6_000, "ms between pings to ZooKeeper (default: a third of the session timeout)", minimum=1, where=ZOOKEEPER
        ),
        "sim.recovery.ms": Key(200, "ms from process start until the logs are loaded"),
        "sim.supervisor.restart.ms": Key(10_000, "ms until a process that exited by itself is restarted", minimum=1),
        "sim.record.bytes": Key(100, "bytes of a record", minimum=1),
        "sim.log.dirs": Key(
            1,
            "log directories of a broker, the number of paths in log.dirs",
            minimum=1,
            maximum=DIRECTORIES_MAX,
            where=SEVERAL_DIRECTORIES,
        ),
        "sim.network.loss.permille": Key(0, "messages lost, per thousand", maximum=1_000),
        "sim.network.latency": Key("drawn", "latency of messages: random, or always the median", ("drawn", "fixed")),
        "sim.elision": Key(True, "whether no-op pings and empty fetches are elided"),
        "sim.judge.waits": Key(
            False, "whether needless waits and ISR shrinks are violations (needless-wait, needless-shrink)"
        ),
        "sim.producers": Key(1, "producers of each partition", minimum=1, maximum=PRODUCERS_MAX),
        "sim.producer.shared": Key(
            False, "whether a producer sends to all partitions, over one connection to each broker"
        ),
        "sim.producer.failure": Key(
            "goes-on",
            "what an application does when a batch fails: it sends further ones, or none",
            ("goes-on", "stops"),
        ),
        "sim.spare.brokers": Key(NEVER, "largest number of brokers without a replica (never: no limit)"),
        "sim.ties": Key("fifo", "order of events at the same time", ("fifo", "random", "pct")),
        "sim.event.budget": Key(2_000_000, "events after which a run ends as exhausted", (), 1, 10_000_000),
        "sim.record.budget": Key(
            1_000_000,
            "records after which a run ends as exhausted: appended to each replica's log, read by consumers, committed "
            "to the metadata log, replayed by brokers, and covered by end offsets that went back",
            minimum=1,
            maximum=10_000_000,
        ),
        "sim.state.budget": Key(
            500_000,
            "objects after which a run ends as exhausted: batches queued or in flight, faults (planned ones count 50 "
            "each), pending or held calls (4 each), subjects of messages, and kept steps, decisions and findings",
            minimum=1,
            maximum=10_000_000,
        ),
        "sim.end.offsets.interval.ms": Key(5_000, "ms between a consumer's ListOffsets requests", minimum=1),
    }


KEYS: Final[dict[str, Key]] = {**_keys_of_topics_and_brokers(), **_keys_of_clients_and_the_testbed()}
"""Name -> key, in the order in which they are listed."""
_DEFAULTS: Final[dict[str, Value]] = {key: spec.default for key, spec in KEYS.items()}


FOLLOWING: Final[dict[str, tuple[str, Callable[[Any, Any], Value]]]] = {
    # ZooKeeper's client pings after half of its read timeout without traffic; the read timeout is two thirds of the
    # session's (ClientCnxn.onConnected).
    "sim.heartbeat.interval.ms": ("zookeeper.session.timeout.ms", lambda _, session: max(1, session // 3)),
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms", lambda _, scheduler: scheduler),
    "delivery.timeout.ms": ("request.timeout.ms", max),  # KafkaProducer.configureDeliveryTimeout.
}
"""Keys whose default depends on another key: that key, and a function of the table's default and its value."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A constraint of Kafka or its clients on several settings.

    Attributes:
        keys: the settings.
        holds: whether their values, in this order, satisfy it.
        text: the constraint in words.
        source: where Kafka checks it.
        otherwise: description of the violated constraint.
    """

    keys: tuple[str, ...]
    holds: Callable[..., bool]
    text: str
    source: str
    otherwise: str = "Kafka would not start"


NEEDED: Final = (
    Needed(
        ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
        lambda wait, timeout: wait <= timeout,
        "a follower's fetch must not wait longer than its timeout",
        "KafkaConfig.validateValues",
    ),
    Needed(
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        lambda wait, lag: wait <= lag,
        "a follower's fetch must not wait longer than a follower may lag",
        "KafkaConfig.validateValues",
    ),
    Needed(
        ("delivery.timeout.ms", "request.timeout.ms"),
        lambda delivery, request: delivery >= request,
        "a batch must not expire before its request times out",
        "KafkaProducer.configureDeliveryTimeout",
    ),
    Needed(
        ("enable.idempotence", "acks"),
        lambda idempotence, acks: not idempotence or acks == "all",
        "an idempotent producer needs acks=all",
        "ProducerConfig.postProcessAndValidateIdempotenceConfigs",
    ),
    Needed(
        ("enable.idempotence", "max.in.flight.requests.per.connection"),
        lambda idempotence, requests: not idempotence or requests <= 5,
        "an idempotent producer has at most 5 requests in flight",
        "ProducerConfig.postProcessAndValidateIdempotenceConfigs",
    ),
    Needed(
        ("sim.heartbeat.interval.ms", "zookeeper.session.timeout.ms"),
        lambda interval, session: interval < session,
        "a session must be pinged before it expires",
        "ClientCnxn.onConnected",
        otherwise="no ZooKeeper client does that",
    ),
)
"""Checked by every release that has the keys. (None compares ``broker.heartbeat.interval.ms`` with the session timeout.
Brokers with a longer interval start, and are fenced between heartbeats; 4.3 logs an error if it is longer than half the
timeout.) Kafka: KafkaConfig#validateValues.
"""


def parse(key: str, value: object) -> Value:
    """Check one setting.

    Args:
        key: a configuration key.
        value: what a file or ``--set`` gave for it (a string is converted).

    Returns:
        The value in the key's own type; ``"never"`` becomes `NEVER`.

    Raises:
        InputError: unknown key or unfitting value.
    """
    spec = KEYS.get(key)
    if spec is None:
        raise InputError(about(key) or f"unknown configuration key {key!r}{did_you_mean(key, KEYS)}")
    if spec.choices:
        word = "all" if str(value) == "-1" else str(value)
        if not isinstance(value, bool) and (word in spec.choices or is_of_form(spec, word)):
            return word
        valid = (*spec.choices, spec.form) if spec.form else spec.choices
        raise InputError(f"{key} = {value!r} is not valid{did_you_mean(str(value), valid)}")
    if isinstance(spec.default, bool):
        word = str(value).lower()
        if word not in ("true", "false"):
            raise InputError(f"{key} = {value!r} is not valid; one of: true, false")
        return word == "true"
    number = NEVER if value == "never" else _integer(value)
    if number is None or not spec.minimum <= number <= spec.maximum:
        most = "" if spec.maximum == NEVER else f" and at most {spec.maximum}"
        raise InputError(f"{key} = {value!r} is not valid: a whole number of at least {spec.minimum}{most} is needed")
    return number


def is_of_form(spec: Key, word: str) -> bool:
    """Whether a word has the form of the further words that a key allows."""
    return bool(spec.pattern) and re.fullmatch(spec.pattern, word) is not None


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def integer(config: Mapping[str, Value], key: str) -> int:
    """The value of a numeric key, in the key's own unit."""
    value = config[key]
    assert isinstance(value, int)
    return value


def resolve(*layers: Mapping[str, Value]) -> dict[str, Value]:
    """The default table overridden by layers, later ones winning; keys in the table's order.

    The default of a key that no layer sets may depend on another key (`FOLLOWING`).
    """
    merged = _DEFAULTS.copy()
    for layer in layers:
        merged.update(layer)
    for key, (other, follow) in FOLLOWING.items():
        for layer in layers:
            if key in layer:
                break
        else:
            merged[key] = follow(merged[key], merged[other])
    return merged


def refusals(
    config: Mapping[str, Value], drawn: Mapping[str, tuple[Value, ...]], needs: Iterable[Needed] = NEEDED
) -> list[str]:
    """Settings that Kafka refuses to start with, one line for each violated constraint.

    Args:
        config: the keys that are set.
        drawn: randomly chosen keys with their possible values; all combinations must be accepted.
        needs: the constraints to check.
    """
    found = []
    for needed in needs:
        given = {key: config[key] for key in needed.keys if key in config}
        varied = {key: drawn[key] for key in needed.keys if key in drawn}
        for values in product(*varied.values()):
            merged = resolve(given, dict(zip(varied, values, strict=True)))
            if not needed.holds(*(merged[key] for key in needed.keys)):
                words = [f"{key} = {shown(merged[key])}{' (drawn)' if key in varied else ''}" for key in needed.keys]
                found.append(f"{' with '.join(words)}: {needed.otherwise} ({needed.source}); {needed.text}")
                break
    return found


def shown(value: Value) -> str:
    """A value for people: `NEVER` as ``never``, booleans in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    return "never" if value == NEVER else str(value)


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    """Turn the nested tables that TOML makes of bare dotted keys back into dotted keys; an empty table is a value."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
