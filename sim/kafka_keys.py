"""Kafka keys that are not modelled, to tell them from misspelt ones.

Source: Kafka's documentation, broker, topic, producer and consumer configuration of 0.10 to 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SYNONYMS: Final[Mapping[str, str]] = {
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "segment.bytes": "log.segment.bytes",
    "replication.factor": "default.replication.factor",
    "eligible.leader.replicas.enable": "eligible.leader.replicas.version",
}
"""Topic-level or alternative name of a setting -> the broker's name, which is modelled."""
_NAMES: Final = """
advertised.listeners background.threads broker.id broker.rack cleanup.policy client.id client.rack
compression.type connections.max.idle.ms controlled.shutdown.enable controller.listener.names
controller.quorum.append.linger.ms controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
controller.quorum.request.timeout.ms controller.quorum.voters delete.retention.ms delete.topic.enable
buffer.memory batch.size linger.ms max.block.ms max.request.size partitioner.class retries transactional.id
transaction.timeout.ms transaction.state.log.min.isr transaction.state.log.replication.factor
fetch.max.bytes fetch.min.bytes group.id group.instance.id
group.initial.rebalance.delay.ms heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms
max.poll.records session.timeout.ms receive.buffer.bytes send.buffer.bytes reconnect.backoff.ms
reconnect.backoff.max.ms file.delete.delay.ms fetch.purgatory.purge.interval.requests
index.interval.bytes inter.broker.listener.name inter.broker.protocol.version leader.imbalance.per.broker.percentage
listener.security.protocol.map listeners local.retention.bytes local.retention.ms log.cleaner.backoff.ms
log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.size
log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms
log.cleaner.threads log.cleanup.policy log.dir log.dirs
log.index.interval.bytes log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
log.message.format.version log.message.timestamp.type log.preallocate log.retention.bytes
log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms log.roll.hours
log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.delete.delay.ms max.compaction.lag.ms
max.connections max.connections.per.ip max.message.bytes message.downconversion.enable message.format.version
message.max.bytes message.timestamp.type metadata.log.dir metadata.log.segment.bytes metadata.max.retention.bytes
min.cleanable.dirty.ratio min.compaction.lag.ms node.id num.io.threads
num.network.threads num.partitions num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
num.replica.fetchers offset.metadata.max.bytes offsets.commit.required.acks
offsets.retention.minutes offsets.topic.num.partitions port preallocate
process.roles producer.id.expiration.ms producer.purgatory.purge.interval.requests queued.max.requests
remote.log.storage.system.enable remote.storage.enable replica.fetch.max.bytes replica.fetch.min.bytes
replica.fetch.response.max.bytes replica.selector.class replica.socket.receive.buffer.bytes retention.bytes
retention.ms segment.index.bytes segment.jitter.ms segment.ms socket.connection.setup.timeout.ms
socket.receive.buffer.bytes socket.request.max.bytes socket.send.buffer.bytes zookeeper.connect
zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.set.acl zookeeper.sync.time.ms
"""
NOT_MODELLED: Final = frozenset(_NAMES.split())
"""Keys that Kafka has and no run depends on."""


def about(key: str) -> str:
    """A note on a key that is not modelled; empty if Kafka has no such key."""
    if key in SYNONYMS:
        return f"{key!r} is called {SYNONYMS[key]!r} here"
    return f"{key!r} is a key of Kafka that is not modelled" if key in NOT_MODELLED else ""
