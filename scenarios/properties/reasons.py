"""Why keys of Kafka are not modelled: one line for each group of keys."""

from __future__ import annotations

import re
from typing import Final

_TOPICS: Final = "the scenario says which topics and partitions there are"
_NO_LIMITS: Final = "requests and records have no largest size here, and no request waits for another"
_PLUGIN: Final = "it is read by a plug-in of the broker"

_GROUPS: Final = (
    (
        r"retries|timeout\.ms",
        "a producer here retries until delivery.timeout.ms; giving up sooner loses no acknowledged record",
    ),
    (r"replica\.selector\.class|client\.rack", "consumers read from the leader"),
    (
        r"broker\.rack",
        "the scenario places brokers in racks: [topology]; advise counts those of several files",
    ),
    (
        r"inter\.broker\.protocol\.version|(log\.)?message\.format\.version|unstable\..*\.enable",
        "the mode decides how brokers behave",
    ),
    (
        (
            r"process\.roles|zookeeper\.connect|zookeeper\.metadata\.migration\..*|controller\.quorum\.(voters|bootstrap"
            r"\.servers|auto\.join\.enable)"
        ),
        "the mode decides between ZooKeeper and KRaft; the controllers are not brokers here",
    ),
    (
        r"log\.(roll|retention)\..*|retention\..*|segment\.(ms|jitter\.ms)",
        "records do not get old during a run: segments roll by log.segment.bytes, and fault kinds move the log start",
    ),
    (
        r"(log\.)?(cleaner\..*|cleanup\.policy)|delete\.retention\.ms|(min|max)\.compaction\.lag\.ms|min\.cleanable\..*",
        "compaction is not modelled",
    ),
    (r"isolation\.level|transaction.*|add\.partitions\.to\.txn\..*|internal\.auto\.downgrade.*", "no transactions"),
    (
        r"(log\.)?remote\..*|follower\.fetch\.last\.tiered.*|(log\.)?local\.retention\..*",
        "tiered storage is not modelled",
    ),
    (
        r"log\.dirs?|log\.dir\.failure\.timeout\.ms|metadata\.log\.dir|cordoned\.log\.dirs|.*alter\.log\.dirs\..*",
        "sim.log.dirs is the number of a broker's log directories; new replicas are placed as [topics] says",
    ),
    (r"log\.initial\.task\.delay\.ms", "a broker's checkpoints begin 30 s after its start, as by default"),
    (r"num\.recovery\.threads\.per\.data\.dir", "loading the logs takes sim.recovery.ms"),
    (r"num\.replica\.fetchers", "a broker has one fetcher for each leader"),
    (
        r"leader\.imbalance\.per\.broker\.percentage",
        "a partition that another replica leads is balanced, however many others are not",
    ),
    (r"controlled\.shutdown\.enable", "a broker that is stopped and not killed always shuts down under control"),
    (r"producer\.id\..*", "a run is shorter than the time after which producer ids expire"),
    (r"(auto\.create|delete)\.topics?\.enable|allow\.auto\.create\.topics|num\.partitions", _TOPICS),
    # Identity and connections.
    (
        (
            r"broker\.id.*|node\.id|reserved\.broker\.max\.id|client\.id|host\.name|port|advertised\..*|.*listener.*"
            r"|bootstrap\.servers"
        ),
        "brokers are numbered from 1 and need no addresses",
    ),
    (
        (
            r"(.*\.)?(ssl|sasl)\..*|security\..*|password\.encoder\..*|delegation\.token\..*|principal\.builder\.class"
            r"|authorizer\.class\.name|zookeeper\.(ssl\..*|set\.acl)|zookeeper\.clientCnxnSocket"
            r"|connection\.failed\.authentication.*|connections\.max\.reauth\.ms"
        ),
        "everybody may do everything: no encryption, authentication or authorisation",
    ),
    (
        (
            r".*quota.*|(follower|leader)\.replication\.throttled\.replicas|max\.connection.*|connections\.max\.idle\.ms"
            r"|.*queued\.max\..*|num\.(io|network)\.threads|background\.threads|socket\..*|.*\.socket\..*buffer.*"
            r"|(receive|send)\.buffer\.bytes|reconnect\..*|max\.incremental\.fetch\.session\.cache\.slots"
        ),
        "connections, threads and quotas limit nothing here",
    ),
    (
        (
            r".*(max|min)\.(message|request|partition\.fetch)\..*|message\.max\.bytes|max\.request\.size|replica\.fetch\..*"
            r"|max\.decompressed\.message\.bytes"
            r"|fetch\.(max|min)\.bytes|max\.(message\.bytes|partition\.fetch\.bytes|poll\.records)"
        ),
        _NO_LIMITS,
    ),
    (
        r"retry\.backoff(\.max)?\.ms|metadata\.max\.age\.ms",
        "the consumer has the producer's value of this setting: --set, or a file of producer settings",
    ),
    (r".*purgatory.*", "requests that wait are found without a purge"),
    (r"request\.timeout\.ms", "brokers' requests to each other have timeouts of their own"),
    (
        (
            r"compression\..*|batch\.size|linger\.ms|buffer\.memory(\..*)?|block\.on\.buffer\.full|max\.block\.ms|partitioner\..*"
            r"|(key|value)\.(de)?serializer|interceptor\.classes|check\.crcs"
        ),
        "the workload decides which batches are sent",
    ),
    (
        (
            r"(log\.)?index\..*|segment\.index\..*|(log\.)?preallocate|log\.segment\.delete\.delay\.ms"
            r"|file\.delete\..*|internal\.segment\.bytes"
        ),
        "index files and deleted files have no effect",
    ),
    (
        r"(log\.)?message\.(timestamp\..*|downconversion\.enable)",
        "records have no timestamps and no old formats",
    ),
    # Parts of Kafka that are not there.
    (
        (
            r"group\..*|offsets?\..*|.*auto\.commit.*|session\.timeout\.ms|heartbeat\.interval\.ms|max\.poll\..*"
            r"|partition\.assignment\.strategy|exclude\.internal\.topics|internal\.(leave|throw)\..*"
        ),
        (
            "no members of groups and no rebalances; offsets are committed to a store without faults, or, with "
            "sim.group.offsets = partition, to a partition of __consumer_offsets"
        ),
    ),
    (r"share\..*|errors\.deadletterqueue\..*", "no share groups"),
    (
        r"metrics?\..*|kafka\.metrics\..*|.*jmx.*|enable\.metrics\.push|telemetry\..*|controller\.performance\..*",
        "metrics change nothing",
    ),
    (
        (
            r"controller\.quorum\..*|(internal\.)?metadata\.(log|delete|max\.(retention|batch|fetch))\..*"
            r"|metadata\.max\.idle\.interval\.ms"
            r"|initial\.broker\.registration.*|server\.max\.startup\..*"
        ),
        'controllers replicate the metadata log only with control = "quorum", with Kafka\'s default of this key',
    ),
    (r"zookeeper\..*", "ZooKeeper never fails, and answers at once"),
    (
        r"metadata\..*|bootstrap\.resolve\..*|client\.dns\.lookup|default\.api\.timeout\.ms",
        "clients know the brokers from the beginning",
    ),
    (
        (
            r"(alter\.config|create\.topic)\.policy\.class\.name|config\.providers(\..*)?|max\.request\.partition\..*"
            r"|early\.start\.listeners"
        ),
        "it changes no running partition",
    ),
)
"""Pattern of keys -> why they are not modelled; the first that matches a whole key counts."""
_COMPILED: Final = [(re.compile(pattern), why) for pattern, why in _GROUPS]

_EXTENSIONS: Final = (
    (r"confluent\..*", "it is a key of Confluent Server, not of Kafka"),
    (r"super\.users|allow\.everyone\.if\.no\.acl\.found|authorizer\..*|broker\.principal", _PLUGIN),
    (r"config\.providers\..*", "values that it provides are not read"),
    (
        (
            r"(cruise\.control\.metrics|strimzi|oauth|ldap|client\.quota\.callback|rlmm|rsm|kafka\.\w+\.metrics|jmx)\..*"
            r"|event\.logger\..*|external\.kafka\..*"
        ),
        _PLUGIN,
    ),
    (
        (
            r"log\.cleanup\.interval\.mins|controller\.message\.queue\.size|replica\.lag\.max\.messages|log\.default\.flush\..*"
            r"|log\.flush\.interval|log\.file\.size|enable\.zookeeper|brokerid|log\.delete\.delay\.ms"
        ),
        "only Kafka before 0.10 reads it",
    ),
)
"""Pattern of keys that are in no release's table, because a plug-in or another product reads them -> why."""
_COMPILED_EXTENSIONS: Final = [(re.compile(pattern), why) for pattern, why in _EXTENSIONS]


def why_not(key: str) -> str:
    """Why one of Kafka's keys is not modelled; empty if no group has it."""
    return next((why for pattern, why in _COMPILED if pattern.fullmatch(key)), "")


def extension(key: str) -> str:
    """Why a key that is not Kafka's own is not modelled; empty if it is of no known plug-in."""
    return next((why for pattern, why in _COMPILED_EXTENSIONS if pattern.fullmatch(key)), "")
