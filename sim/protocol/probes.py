"""Probes: places in the protocol that a run can reach. `sim.history.coverage` records which were reached.

There are three sorts. A *transition* is an event of a replica, a controller, a log or a client. A *branch* is one value
of one rule: it is reached when the rule has an effect, that is, when another value would have acted differently
(`sim.protocol.decisions`). A *check* is reached when a checker met a case in which its property could fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from sim.config import ELR, EVERYWHERE, KRAFT, RECOVERS_UNCLEANLY, SEVERAL_DIRECTORIES, ZOOKEEPER, Where
from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    LOG_TRUNCATION,
    NOT_CONTROLLER,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    STALE_BROKER_EPOCH,
    UNKNOWN_LEADER_EPOCH,
)
from sim.protocol.rules import RULES

RULE_BRANCH: Final = "rule branch"
"""The group of all branches."""
CHECK: Final = "check"
"""The group of all checks."""


class Probe(NamedTuple):
    """A probe's name, group, and the meaning of reaching it.

    `where` are rules under which alone it can be reached: of the control plane, ELR, log directories, and recovery.
    """

    group: str
    name: str
    meaning: str
    where: Where = EVERYWHERE


_found: list[Probe] = []


def _probe(group: str, name: str, meaning: str) -> int:
    """Define a probe; returns its number."""
    _found.append(Probe(group, name, meaning))
    return len(_found) - 1


_leadership = partial(_probe, "leadership")
LEADER_BEGINS: Final = _leadership("leader-begins", "a broker begins to lead")
LEADER_LEADS_ON: Final = _leadership("leader-leads-on", "a leader keeps leading in a newer epoch")
LEADER_BEHIND: Final = _leadership("leader-behind", "a new leader's HW is below its LEO")
LEADER_RESIGNS: Final = _leadership("leader-resigns", "a leader becomes a follower, or stops")
WRITES_DROPPED: Final = _leadership(
    "waiting-writes-refused", "a leader refuses writes that wait for the HW, because it resigns"
)
FOLLOWER_BEGINS: Final = _leadership("follower-begins", "a broker becomes a follower, and truncates first")
FOLLOWER_GOES_ON: Final = _leadership("follower-goes-on", "a follower keeps fetching in a newer epoch")
DECISION_OUTDATED: Final = _leadership("decision-outdated", "a LeaderAndIsr without a newer epoch is ignored")
DECISION_DEAD_LEADER: Final = _leadership("decision-dead-leader", "a LeaderAndIsr with a dead leader is ignored")
STALE_BROKER: Final = _leadership("stale-broker-epoch", "a broker refuses a request for its earlier registration")
STALE_CONTROLLER: Final = _leadership("stale-controller-epoch", "a broker refuses a request of an earlier controller")

_truncation = partial(_probe, "truncation")
TRUNCATES_TO_HW: Final = _truncation("truncates-to-hw", "a follower truncates to its HW, by its rule")
FALLS_BACK: Final = _truncation("falls-back", "a follower truncates to its HW: its leader knows no end offset")
ONE_ROUND: Final = _truncation("by-epoch-1-round", "a truncation takes 1 OffsetsForLeaderEpoch response")
TWO_ROUNDS: Final = _truncation("by-epoch-2-rounds", "a truncation takes 2 OffsetsForLeaderEpoch responses")
MORE_ROUNDS: Final = _truncation(
    "by-epoch-more-rounds", "a truncation takes more than 2 OffsetsForLeaderEpoch responses"
)
ROUNDS: Final = (ONE_ROUND, TWO_ROUNDS, MORE_ROUNDS)
TRUNCATION_REMOVES: Final = _truncation("removes-records", "a truncation removes batches")
TRUNCATION_SPLITS: Final = _truncation(
    "inside-batch", "a truncation to an offset within a batch removes the whole batch"
)
TRUNCATION_BELOW_HW: Final = _truncation("below-hw", "a truncation goes below the replica's HW")
OUT_OF_RANGE_TRUNCATES: Final = _truncation(
    "out-of-range-truncates", "an out-of-range follower truncates to the leader's LEO"
)
OUT_OF_RANGE_HALTS: Final = _truncation("out-of-range-halts", "an out-of-range follower halts its broker")
OUT_OF_RANGE_ANEW: Final = _truncation(
    "out-of-range-anew", "a follower drops its log and restarts at the leader's log start"
)
EPOCH_END_FENCED: Final = _truncation("epoch-end-fenced", "OffsetsForLeaderEpoch fails with FENCED_LEADER_EPOCH")
EPOCH_END_UNKNOWN: Final = _truncation(
    "epoch-end-unknown-epoch", "OffsetsForLeaderEpoch fails with UNKNOWN_LEADER_EPOCH"
)
EPOCH_END_NOT_LEADER: Final = _truncation(
    "epoch-end-not-leader", "OffsetsForLeaderEpoch fails: the broker does not lead"
)
EPOCH_ENDS: Final = {
    FENCED_LEADER_EPOCH: EPOCH_END_FENCED,
    UNKNOWN_LEADER_EPOCH: EPOCH_END_UNKNOWN,
    NOT_LEADER_OR_FOLLOWER: EPOCH_END_NOT_LEADER,
}

_fetching = partial(_probe, "fetching")
FETCH_FENCED: Final = _fetching("fetch-fenced", "a follower's fetch fails with FENCED_LEADER_EPOCH")
FETCH_UNKNOWN_EPOCH: Final = _fetching("fetch-unknown-epoch", "a follower's fetch fails with UNKNOWN_LEADER_EPOCH")
FETCH_NOT_LEADER: Final = _fetching("fetch-not-leader", "a follower's fetch fails: the broker does not lead")
FETCH_OUT_OF_RANGE: Final = _fetching("fetch-out-of-range", "a follower's fetch is outside the leader's log")
FETCH_DIVERGES: Final = _fetching("fetch-diverges", "a follower's fetch shows that its log diverges")
FETCHES: Final = {
    FENCED_LEADER_EPOCH: FETCH_FENCED,
    UNKNOWN_LEADER_EPOCH: FETCH_UNKNOWN_EPOCH,
    NOT_LEADER_OR_FOLLOWER: FETCH_NOT_LEADER,
    OFFSET_OUT_OF_RANGE: FETCH_OUT_OF_RANGE,
    LOG_TRUNCATION: FETCH_DIVERGES,
}
FETCH_OTHER_EPOCH: Final = _fetching("fetch-of-other-epoch", "a leader serves a follower of another leader epoch")
REQUEST_FAILS: Final = _fetching("request-fails", "a follower's request fails without a response")
LATE_REPLY: Final = _fetching("late-reply", "a follower gets a response to a request of an earlier epoch")
FETCHER_DIES: Final = _fetching("fetcher-dies", "an error ends a fetcher thread")
PARTITION_FAILS: Final = _fetching("partition-fails", "a partition is marked failed until the next leader change")
HW_GOES_BACK: Final = _fetching("hw-goes-back", "a follower's HW goes back")

_isr = partial(_probe, "isr")
ISR_SHRINKS: Final = _isr("isr-shrinks", "a smaller ISR is persisted")
ISR_EXPANDS: Final = _isr("isr-expands", "a larger ISR is persisted")
ISR_SINGLE: Final = _isr("isr-single", "an ISR of one member is persisted")
ISR_REFUSED_VERSION: Final = _isr("isr-refused-version", "an ISR is refused: its version is outdated")
ISR_REFUSED_MEMBER: Final = _isr("isr-refused-member", "an ISR is refused: a member registered again")
ISR_LOST: Final = _isr("isr-change-lost", "a leader's process ends while an ISR change is pending")

_election = partial(_probe, "election")
ELECTED_FIRST: Final = _election("elected-first", "a new partition gets its first leader")
ELECTED_OFFLINE: Final = _election("elected-offline", "the leader is gone: an ISR member is elected")
ELECTED_AGAIN: Final = _election("elected-again", "the leader is back before an election: it is elected again")
ELECTED_UNCLEAN: Final = _election("elected-unclean", "the leader is gone: a replica outside the ISR is elected")
ELECTED_NOBODY: Final = _election("elected-nobody", "the leader is gone, and there is no candidate")
ELECTED_PREFERRED: Final = _election("elected-preferred", "the preferred replica takes over")
PREFERRED_UNFIT: Final = _election("preferred-unfit", "the preferred replica cannot, or need not, take over")
ELECTED_SHUTDOWN: Final = _election("elected-shutdown", "a leader in controlled shutdown is replaced")
SHUTDOWN_NOBODY: Final = _election("shutdown-nobody", "a leader in controlled shutdown cannot be replaced")
ELECTED_REASSIGNED: Final = _election("elected-reassigned", "a reassignment moves the leader")
REASSIGNMENT_BEGINS: Final = _election("reassignment-begins", "a reassignment adds replicas")
REASSIGNMENT_DONE: Final = _election("reassignment-done", "a reassignment completes")
LEADER_REMOVED: Final = _election("leader-removed", "the leader goes offline, and the partition has no leader")
EPOCH_RAISED: Final = _election("epoch-raised", "only the leader epoch changes")

_controller = partial(_probe, "controller")
CONTROLLER_FAILOVER: Final = _controller("controller-failover", "another controller is elected")
CONTROLLER_WRITE_REFUSED: Final = _controller(
    "controller-write-refused", "ZooKeeper refuses a write of an earlier controller"
)
CONTROLLER_WRITE_STALE: Final = _controller(
    "controller-write-accepted", "ZooKeeper accepts a write of an earlier controller"
)
CONTROLLER_FINISHES: Final = _controller(
    "controller-finishes", "a controller finishes a step after its session expired"
)
BOUNCE: Final = _controller("bounce", "a controller sees that a broker registered again")
MISSED_BOUNCE: Final = _controller("missed-bounce", "an ISR member registered again while there was no controller")

_kraft = partial(_probe, "kraft")
ELECTED_FROM_ISR: Final = _kraft("elected-from-isr", "an ISR member is elected")
ELECTED_FROM_ELR: Final = _kraft("elected-from-elr", "the ISR is empty: an ELR member is elected")
ELECTED_LAST_KNOWN: Final = _kraft("elected-last-known", "ISR and ELR are empty: the last known leader is elected")
ELECTED_DESIGNATED: Final = _kraft(
    "elected-designated", "an administrator or an unclean recovery designates the leader"
)
LEFT_LEADERLESS: Final = _kraft("left-leaderless", "the leader cannot lead, and there is no candidate")
ELR_GROWS: Final = _kraft("elr-grows", "a replica leaves a small ISR and joins the ELR")
ELR_CLEARED: Final = _kraft(
    "elr-cleared", "the ELR is cleared: the ISR is large enough, or min.insync.replicas changed"
)
ELR_EJECTED: Final = _kraft("elr-ejected", "an ELR member registers after an unclean shutdown")
BROKER_FENCED: Final = _kraft("broker-fenced", "a broker is fenced")
BROKER_UNFENCED: Final = _kraft("broker-unfenced", "a broker is unfenced")
BROKER_BEHIND: Final = _kraft("broker-behind", "a broker stays fenced until it has replayed its registration")
BROKER_RELIEVED: Final = _kraft("broker-relieved", "a broker in controlled shutdown leaves all ISRs")
BROKER_MAY_STOP: Final = _kraft("broker-may-stop", "a broker in controlled shutdown may stop")
BROKER_MUST_WAIT: Final = _kraft(
    "broker-must-wait", "a broker in controlled shutdown must wait: for a new leader, or for other brokers' metadata"
)
REGISTERED_CLEAN: Final = _kraft("registered-clean", "a new incarnation registers after a clean shutdown")
REGISTERED_UNCLEAN: Final = _kraft("registered-unclean", "a new incarnation registers after an unclean shutdown")
REGISTRATION_DUPLICATE: Final = _kraft(
    "registration-duplicate", "a registration is refused: an earlier session is open"
)
ALTER_STALE_BROKER: Final = _kraft("alter-stale-broker", "an AlterPartition of an earlier registration is refused")
ALTER_NOT_CONTROLLER: Final = _kraft(
    "alter-not-controller", "an AlterPartition is refused: its sender knows newer epochs"
)
ALTER_FENCED: Final = _kraft("alter-fenced", "an AlterPartition is refused: its leader epoch is outdated")
ALTER_OUTDATED: Final = _kraft("alter-outdated", "an AlterPartition is refused: its partition epoch is outdated")
ALTER_INVALID: Final = _kraft(
    "alter-invalid", "an AlterPartition is refused: its ISR is invalid, or its sender does not lead"
)
ALTER_INELIGIBLE: Final = _kraft("alter-ineligible", "an AlterPartition is refused: a member is ineligible")
ALTERS: Final = {
    STALE_BROKER_EPOCH: ALTER_STALE_BROKER,
    NOT_CONTROLLER: ALTER_NOT_CONTROLLER,
    FENCED_LEADER_EPOCH: ALTER_FENCED,
    INVALID_UPDATE_VERSION: ALTER_OUTDATED,
    INVALID_REQUEST: ALTER_INVALID,
    INELIGIBLE_REPLICA: ALTER_INELIGIBLE,
}
ALTER_ELECTS: Final = _kraft("alter-elects", "an AlterPartition completes a reassignment that changes the leader")
REASSIGNMENT_WAITS: Final = _kraft("reassignment-waits", "a reassignment does not complete: the ISR is too small")
DIRECTORY_ASSIGNED: Final = _kraft("directory-assigned", "a broker reports another log directory of its replica")
CANCEL_REFUSED: Final = _kraft("cancel-refused", "a reassignment cannot be cancelled: the ISR would be too small")
ISR_HELD: Final = _kraft("isr-held", "a broker that is gone stays in a small ISR")
RECOVERY_BEGINS: Final = _kraft("recovery-begins", "an unclean recovery begins: replicas are asked for their log ends")
RECOVERY_ELECTS: Final = _kraft("recovery-elects", "an unclean recovery elects the longest log")
RECOVERY_DROPPED: Final = _kraft("recovery-dropped", "an unclean recovery ends without an election")
RECOVERY_REPLY_STALE: Final = _kraft("recovery-reply-stale", "a response about a log end is outdated")
DIRECTORY_OFFLINE: Final = _kraft("directory-offline", "a heartbeat reports a failed log directory")
OFFLINE_ASSIGNED: Final = _kraft("offline-assigned", "a replica is assigned to a log directory that has failed")
CONTROLLER_CRASHED: Final = _kraft("controller-crashed", "an event throws an exception, and the controller resigns")

_session = partial(_probe, "session")
SESSION_EXPIRES_ALIVE: Final = _session("expires-alive", "a session ends while its broker runs")
SESSION_EXPIRES_DEAD: Final = _session("expires-dead", "a session ends after its broker ended")
EXPIRY_HEARD: Final = _session("expiry-heard", "a broker is notified that its session expired")
REGISTRATION_REFUSED: Final = _session("registration-refused", "a registration is refused: an earlier one still exists")
REQUEST_REPEATED: Final = _session("request-repeated", "ZooKeeper gets a request again that it has executed")

_storage = partial(_probe, "storage")
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

_client = partial(_probe, "client")
WRITE_NOT_LEADER: Final = _client("write-not-leader", "a write fails: the broker does not lead")
WRITE_REFUSED: Final = _client("write-refused", "a write is refused: the ISR is too small")
WRITE_UNDER_MIN_ISR: Final = _client("write-under-min-isr", "a write is appended, and fails: the ISR is too small")
WRITES: Final = {
    NOT_LEADER_OR_FOLLOWER: WRITE_NOT_LEADER,
    NOT_ENOUGH_REPLICAS: WRITE_REFUSED,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: WRITE_UNDER_MIN_ISR,
}
WRITE_TIMES_OUT: Final = _client("write-times-out", "a write times out")
DEDUP_HIT: Final = _client("dedup-hit", "a leader recognises a duplicate batch")
DEDUP_REBUILT: Final = _client("producer-state-rebuilt", "a leader recognises a duplicate of an earlier leader's batch")
SEQUENCE_REFUSED: Final = _client("sequence-refused", "a batch is refused for its sequence")
PRODUCER_ANEW: Final = _client("producer-anew", "an idempotent producer continues with another id or epoch")
CONSUMER_VALIDATES: Final = _client("consumer-validates", "a consumer validates its position")
CONSUMER_TRUNCATION: Final = _client("truncation-detected", "a consumer reports a truncation to the application")
CONSUMER_REWINDS: Final = _client("consumer-rewinds", "a consumer silently goes back to where the log was truncated")
CONSUMER_RESETS: Final = _client("consumer-resets", "a consumer resets its position by auto.offset.reset")
CONSUMER_OUT_OF_RANGE: Final = _client("consumer-out-of-range", "a consumer's position is out of range")
CONSUMER_FENCED: Final = _client("consumer-fenced", "a consumer's request is refused for its leader epoch")
OFFSET_UNAVAILABLE: Final = _client("offset-not-available", "a new leader cannot answer ListOffsets(latest) yet")
METADATA_GOES_BACK: Final = _client("metadata-older", "a client gets older metadata than it has")

_topic = partial(_probe, "topic")
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

_WHERE: Final[Mapping[Where, Collection[str]]] = {
    ZOOKEEPER: (
        *("decision-outdated", "decision-dead-leader", "stale-broker-epoch", "stale-controller-epoch"),
        *("isr-refused-version", "isr-refused-member", "elected-offline", "elected-again", "elected-nobody"),
        *("preferred-unfit", "elected-shutdown", "shutdown-nobody", "elected-reassigned", "leader-removed"),
        *("controller-write-refused", "controller-write-accepted", "controller-finishes", "bounce", "missed-bounce"),
        *("expiry-heard", "request-repeated"),
    ),
    KRAFT: (
        *("isr-change-waits", "metadata-mismatch", "recovery-quorum"),
        *(probe.name for probe in _found if probe.group == "kraft"),
    ),
    ELR: ("elected-from-elr", "elr-grows", "elr-cleared", "elr-ejected"),
    SEVERAL_DIRECTORIES: (
        *("directory-assigned", "directory-offline", "offline-assigned", "directory-unreported", "replica-elsewhere"),
        *("replica-moved", "move-continued", "future-recovered", "copy-held-back", "assigned-behind", "copy-behind"),
        *("directory-cordoned", "log-skipped", "directory-fails", "directory-lost", "last-directory"),
        *("starts-without-directory", "replica-offline", "directory-stalls"),
    ),
    RECOVERS_UNCLEANLY: ("recovery-begins", "recovery-elects", "recovery-dropped", "recovery-reply-stale"),
}
"""Rules -> the probes that can be reached under these alone."""


def _with_where(probe: Probe) -> Probe:
    return probe._replace(where=tuple([one for where, names in _WHERE.items() if probe.name in names for one in where]))


_found[:] = map(_with_where, _found)
TRANSITIONS: Final = len(_found)
"""Number of transitions; probes from this number on are branches."""
BRANCHES: Final[dict[tuple[str, str], int]] = {}
"""(rule, value) -> number."""
CHECKS: Final[dict[str, int]] = {}
"""First kind of a checker's findings -> number."""
PROBES: Final = _found
"""By number; those of plug-ins last, which no wake of a fault has."""
_CHECKED: Final[Mapping[str, str]] = {
    "committed-loss": "a batch was acknowledged",
    "exposed-loss": "a consumer was shown a record",
    "duplicate": "the final log has a batch of an idempotent producer",
    "sequence-gap": "an idempotent producer gave up a batch of an epoch of which the final log has others",
    "consumer-skip": "a consumer passed offsets",
    "deleted-records-back": "a broker led after all ISR members had a log start above 0",
    "divergence": "two replicas of one leader epoch had records below both HWs",
    "hw-regression": "a consumer that knew an end offset was told another",
    "ack-under-min-isr": "a leader answered success for acks=all",
    "controller-crashes": "the active controller threw an exception (KRaft)",
    "stale-setting": "an administrator changed a setting",
    "two-leaders-one-epoch": "a broker began to lead",
    "log-mismatch": "a batch was copied to another log",
    "leader-incomplete": "a broker led or could be elected when a record was committed",
    "inconsistent-read": "a broker began to lead after a consumer was shown a record",
    "global-loss": "a committed batch was removed from a log",
    "quorum-not-superset": "a leader's quorum met the persisted ISR and ELR",
    "metadata-mismatch": "a broker replayed a metadata record (KRaft)",
    "recovery-quorum": "the ISR was smaller than min.insync.replicas (KRaft)",
    "ack-above-hw": "a leader answered success for acks=all",
    "hw-above-isr": "an HW was compared with the LEOs of the ISR",
    "flushed-loss": "a broker loaded a log of which batches had been flushed",
    "epoch-cache-mismatch": "a log was truncated or loaded",
}
"""First kind of a checker's findings -> when it has decided."""


def rebuild(added: Iterable[Probe] = ()) -> None:
    """Number the branches of all rules anew, and after them the probes of plug-ins."""
    del _found[TRANSITIONS:]
    BRANCHES.clear()
    for rule, spec in RULES.items():
        for value in spec.values:
            name, meaning = f"{rule}={value}", f"rule {rule} had an effect by its value {value}"
            BRANCHES[rule, value] = _probe(RULE_BRANCH, name, meaning)
    for kind, meaning in _CHECKED.items():
        CHECKS[kind] = _probe(CHECK, kind, meaning)
        _found[-1] = _with_where(_found[-1])
    _found.extend(added)


rebuild()
