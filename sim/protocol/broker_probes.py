"""Probes of storage, clients and topics."""

from __future__ import annotations

from typing import Final

from sim.protocol.messages import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER
from sim.protocol.probe import probe


def _storage(name: str, meaning: str) -> int:
    return probe("storage", name, meaning)


LOADED_CLEAN: Final = _storage("loaded-clean", "a log is loaded after a clean shutdown")
LOADED_UNCLEAN: Final = _storage("loaded-unclean", "a log is recovered after an unclean shutdown")
RECOVERY_FAILS: Final = _storage("recovery-fails", "a log cannot be recovered")
HW_FILE_BEHIND: Final = _storage("hw-checkpoint-behind", "a broker starts with a checkpointed HW below its LEO")
HW_FILE_AHEAD: Final = _storage("hw-checkpoint-ahead", "a broker starts with a checkpointed HW above its LEO")
SUFFIX_LOST: Final = _storage("suffix-lost", "a power loss removes the end of a log")
CRC_DROPS: Final = _storage("crc-drops-suffix", "recovery removes the end of a log by its CRC")
SYNCED_LOST: Final = _storage("synced-lost", "fsynced records become unreadable")
DISK_LOST: Final = _storage("disk-lost", "a disk that has records is replaced")
CACHE_CUT: Final = _storage("epoch-cache-cut", "recovery removes epochs above the LEO from the cache")
CACHE_REBUILT: Final = _storage("epoch-cache-rebuilt", "recovery adds epochs of batches to the cache")
REPLICA_DELETED: Final = _storage("replica-deleted", "a broker deletes its replica")
LOG_START_MOVES: Final = _storage("log-start-moves", "a log start advances")
DIRECTORY_FAILS: Final = _storage("directory-fails", "one of several log directories fails while the broker runs")
DIRECTORY_LOST: Final = _storage("directory-lost", "a log directory that fails or is replaced loses records")
LAST_DIRECTORY: Final = _storage("last-directory", "a broker exits because its last log directory has failed")
DIRECTORY_UNREPORTED: Final = _storage(
    "directory-unreported", "a broker shuts down because it could not report a failed log directory"
)
STARTS_WITHOUT_DIRECTORY: Final = _storage("starts-without-directory", "a broker starts without a failed log directory")
REPLICA_OFFLINE: Final = _storage("replica-offline", "a request meets a replica in a failed log directory")
REPLICA_ELSEWHERE: Final = _storage(
    "replica-elsewhere", "a broker creates a replica whose files may be in a failed log directory in another one"
)
REPLICA_MOVED: Final = _storage("replica-moved", "a future replica in another log directory replaces the log")
MOVE_CONTINUED: Final = _storage("move-continued", "a broker continues a move to another log directory after a restart")
FUTURE_RECOVERED: Final = _storage(
    "future-recovered", "a broker starts with a future replica whose log directory the metadata already has"
)
COPY_HELD_BACK: Final = _storage("copy-held-back", "a quota holds back a future replica that has caught up")
ASSIGNED_BEHIND: Final = _storage(
    "assigned-behind", "the metadata has the log directory of a future replica that cannot replace the log yet"
)
COPY_BEHIND: Final = _storage(
    "copy-behind", "a broker starts with a future replica that lacks records which the log has"
)
DIRECTORY_CORDONED: Final = _storage(
    "directory-cordoned", "the controller notes the cordoned log directories of a broker"
)
LOG_SKIPPED: Final = _storage(
    "log-skipped", "a broker does not use a log because the metadata has a log directory that does not work"
)
DIRECTORY_STALLS: Final = _storage("directory-stalls", "one of several log directories does not answer for a while")
STRAY_LOG: Final = _storage("stray-log", "a log that has records is taken for a stray one, without partition.metadata")


def _client(name: str, meaning: str) -> int:
    return probe("client", name, meaning)


WRITE_NOT_LEADER: Final = _client("write-not-leader", "a write fails: the broker does not lead")
WRITE_REFUSED: Final = _client("write-refused", "a write is refused: the ISR is too small")
WRITE_UNDER_MIN_ISR: Final = _client("write-under-min-isr", "a write is appended, and fails: the ISR is too small")
WRITES: Final = {
    NOT_LEADER_OR_FOLLOWER: WRITE_NOT_LEADER,
    NOT_ENOUGH_REPLICAS: WRITE_REFUSED,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: WRITE_UNDER_MIN_ISR,
}
WRITE_TIMES_OUT: Final = _client("write-times-out", "a write times out")
REQUEST_OF_SEVERAL: Final = _client("request-of-several", "one request has batches for several partitions")
PARTITION_STOPS_OTHERS: Final = _client(
    "partition-stops-others",
    "a producer holds batches back because one of another partition with the same leader has to wait",
)
DEDUP_HIT: Final = _client("dedup-hit", "a leader recognises a duplicate batch")
DEDUP_REBUILT: Final = _client("producer-state-rebuilt", "a leader recognises a duplicate of an earlier leader's batch")
SEQUENCE_REFUSED: Final = _client("sequence-refused", "a batch is refused for its sequence")
PRODUCER_ANEW: Final = _client("producer-anew", "an idempotent producer continues with another id or epoch")
CONSUMER_VALIDATES: Final = _client("consumer-validates", "a consumer validates its position")
CONSUMER_TRUNCATION: Final = _client("truncation-detected", "a consumer reports a truncation to the application")
CONSUMER_REWINDS: Final = _client("consumer-rewinds", "a consumer silently goes back to where the log was truncated")
CONSUMER_FINDS_NO_RECORD: Final = _client(
    "consumer-finds-no-record", "a consumer finds no record that is as new as by_duration asks for"
)
CONSUMER_RESETS: Final = _client("consumer-resets", "a consumer resets its position by auto.offset.reset")
CONSUMER_OUT_OF_RANGE: Final = _client("consumer-out-of-range", "a consumer's position is out of range")
READS_FROM_FOLLOWER: Final = _client("reads-from-follower", "a consumer fetches from a follower in its rack")
CONSUMER_FENCED: Final = _client("consumer-fenced", "a consumer's request is refused for its leader epoch")
OFFSET_UNAVAILABLE: Final = _client("offset-not-available", "a new leader cannot answer ListOffsets(latest) yet")
METADATA_GOES_BACK: Final = _client("metadata-older", "a client gets older metadata than it has")
COORDINATOR_REFUSES: Final = _client("coordinator-refuses", "a group coordinator refuses a commit or a fetch")
LOADED_ABOVE_HW: Final = _client("coordinator-loads-above-hw", "a group coordinator loads records above its HW")
LOAD_STOPPED: Final = _client("coordinator-load-stopped", "a group coordinator loads when its broker no longer leads")
COMMITTED_BY_FOLLOWER: Final = _client("commit-of-follower", "a group coordinator acknowledges by the HW of a follower")


def _topic(name: str, meaning: str) -> int:
    return probe("topic", name, meaning)


UNKNOWN_TOPIC: Final = _topic("unknown-topic", "a broker refuses a fetch: its metadata does not have the topic id")
RECREATED_REPLY: Final = _topic(
    "recreated-reply", "a follower gets a response about a deleted topic, and follows another topic of that name"
)
FETCHER_STAYS: Final = _topic(
    "fetcher-stays", "a partition leaves a fetcher that has a request in flight and goes on with other partitions"
)
ISR_CHANGE_WAITS: Final = _topic("isr-change-waits", "an ISR change waits for the response about another partition")
MIXED_RESPONSE: Final = _topic(
    "mixed-response", "a fetch response has an error or a diverging epoch of one partition and records of another"
)
OWN_MIN_ISR: Final = _topic(
    "own-min-isr", "min.insync.replicas of a topic decides about a write otherwise than that of the cluster would"
)
