"""Probes: places in the protocol that a run can reach. `sim.history.coverage` records which were reached.

There are two sorts. A *transition* is an event of a replica, a controller, a log or a client. A *branch* is one value
of one rule: it is reached when the rule has an effect, that is, when another value would have acted differently
(`sim.protocol.decisions`).
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

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


class Probe(NamedTuple):
    """A probe's name, group, and the meaning of reaching it."""

    group: str
    name: str
    meaning: str


_found: list[Probe] = []


def _probe(group: str, name: str, meaning: str) -> int:
    """Define a probe; returns its number."""
    _found.append(Probe(group, name, meaning))
    return len(_found) - 1


_leadership = partial(_probe, "leadership")
LEADER_BEGINS: Final = _leadership("leader-begins", "a broker begins to lead")
LEADER_LEADS_ON: Final = _leadership("leader-leads-on", "a leader leads on under a newer epoch")
LEADER_BEHIND: Final = _leadership("leader-behind", "a broker begins to lead with its HW below its LEO")
LEADER_RESIGNS: Final = _leadership("leader-resigns", "a leader is told to follow, or to stop")
WRITES_DROPPED: Final = _leadership("waiting-writes-refused", "a leader resigns while writes wait for the HW")
FOLLOWER_BEGINS: Final = _leadership("follower-begins", "a broker begins to follow, and has to truncate first")
FOLLOWER_GOES_ON: Final = _leadership("follower-goes-on", "a follower goes on fetching under a newer epoch")
DECISION_OUTDATED: Final = _leadership("decision-outdated", "a LeaderAndIsr of an epoch that is known is ignored")
DECISION_DEAD_LEADER: Final = _leadership("decision-dead-leader", "a LeaderAndIsr is ignored: its leader is not alive")
STALE_BROKER: Final = _leadership("stale-broker-epoch", "a request for a former registration of a broker is refused")
STALE_CONTROLLER: Final = _leadership("stale-controller-epoch", "a request of a former controller is refused")

_truncation = partial(_probe, "truncation")
TRUNCATES_TO_HW: Final = _truncation("truncates-to-hw", "a follower truncates to its own HW, as its rule says")
FALLS_BACK: Final = _truncation("falls-back", "a follower truncates to its own HW: nobody can name an epoch's end")
ONE_ROUND: Final = _truncation("by-epoch-1-round", "a truncation is complete after one answer about an epoch's end")
TWO_ROUNDS: Final = _truncation("by-epoch-2-rounds", "after two")
MORE_ROUNDS: Final = _truncation("by-epoch-more-rounds", "after more")
ROUNDS: Final = (ONE_ROUND, TWO_ROUNDS, MORE_ROUNDS)
TRUNCATION_REMOVES: Final = _truncation("removes-records", "a truncation removes batches")
TRUNCATION_SPLITS: Final = _truncation("inside-batch", "a truncation ends inside a batch, which goes as a whole")
TRUNCATION_BELOW_HW: Final = _truncation("below-hw", "a truncation goes below the replica's own HW")
OUT_OF_RANGE_TRUNCATES: Final = _truncation("out-of-range-truncates", "an out-of-range follower takes the leader's LEO")
OUT_OF_RANGE_HALTS: Final = _truncation("out-of-range-halts", "an out-of-range follower halts its broker")
OUT_OF_RANGE_ANEW: Final = _truncation("out-of-range-anew", "a follower drops all and starts at the leader's log start")
EPOCH_END_FENCED: Final = _truncation("epoch-end-fenced", "a question for an epoch's end meets FENCED_LEADER_EPOCH")
EPOCH_END_UNKNOWN: Final = _truncation("epoch-end-unknown-epoch", "it meets UNKNOWN_LEADER_EPOCH")
EPOCH_END_NOT_LEADER: Final = _truncation("epoch-end-not-leader", "it meets a broker that does not lead")
EPOCH_ENDS: Final = {
    FENCED_LEADER_EPOCH: EPOCH_END_FENCED,
    UNKNOWN_LEADER_EPOCH: EPOCH_END_UNKNOWN,
    NOT_LEADER_OR_FOLLOWER: EPOCH_END_NOT_LEADER,
}

_fetching = partial(_probe, "fetching")
FETCH_FENCED: Final = _fetching("fetch-fenced", "a follower's fetch meets FENCED_LEADER_EPOCH")
FETCH_UNKNOWN_EPOCH: Final = _fetching("fetch-unknown-epoch", "it meets UNKNOWN_LEADER_EPOCH")
FETCH_NOT_LEADER: Final = _fetching("fetch-not-leader", "it meets a broker that does not lead")
FETCH_OUT_OF_RANGE: Final = _fetching("fetch-out-of-range", "it lies outside the leader's log")
FETCH_DIVERGES: Final = _fetching("fetch-diverges", "it carries another last epoch than the leader's log has there")
FETCHES: Final = {
    FENCED_LEADER_EPOCH: FETCH_FENCED,
    UNKNOWN_LEADER_EPOCH: FETCH_UNKNOWN_EPOCH,
    NOT_LEADER_OR_FOLLOWER: FETCH_NOT_LEADER,
    OFFSET_OUT_OF_RANGE: FETCH_OUT_OF_RANGE,
    LOG_TRUNCATION: FETCH_DIVERGES,
}
FETCH_OTHER_EPOCH: Final = _fetching("fetch-of-other-epoch", "a leader serves a follower that has another epoch")
REQUEST_FAILS: Final = _fetching("request-fails", "a follower's request is not answered")
LATE_REPLY: Final = _fetching("late-reply", "a follower gets an answer to a request of an earlier epoch")
FETCHER_DIES: Final = _fetching("fetcher-dies", "an error ends a fetcher thread")
PARTITION_FAILS: Final = _fetching("partition-fails", "a partition leaves its fetcher until the next leader")
HW_GOES_BACK: Final = _fetching("hw-goes-back", "the HW of a follower goes back")

_isr = partial(_probe, "isr")
ISR_SHRINKS: Final = _isr("isr-shrinks", "a smaller ISR is persisted")
ISR_EXPANDS: Final = _isr("isr-expands", "a larger ISR is persisted")
ISR_SINGLE: Final = _isr("isr-single", "an ISR of one member is persisted")
ISR_REFUSED_VERSION: Final = _isr("isr-refused-version", "an ISR is refused: somebody wrote since")
ISR_REFUSED_MEMBER: Final = _isr("isr-refused-member", "an ISR is refused: a member has another registration")
ISR_LOST: Final = _isr("isr-change-lost", "a leader's process ends while it changes the ISR")

_election = partial(_probe, "election")
ELECTED_FIRST: Final = _election("elected-first", "the first leader of a new partition")
ELECTED_OFFLINE: Final = _election("elected-offline", "the leader is gone: a member of the ISR is elected")
ELECTED_AGAIN: Final = _election("elected-again", "the leader was gone and is back: it is elected again")
ELECTED_UNCLEAN: Final = _election("elected-unclean", "the leader is gone: a replica outside the ISR is elected")
ELECTED_NOBODY: Final = _election("elected-nobody", "the leader is gone, and nobody can be elected")
ELECTED_PREFERRED: Final = _election("elected-preferred", "the preferred leader takes over")
PREFERRED_UNFIT: Final = _election("preferred-unfit", "the preferred leader cannot, or need not, take over")
ELECTED_SHUTDOWN: Final = _election("elected-shutdown", "a leader that shuts down hands over")
SHUTDOWN_NOBODY: Final = _election("shutdown-nobody", "a leader that shuts down finds nobody to hand over to")
ELECTED_REASSIGNED: Final = _election("elected-reassigned", "a reassignment moves the leader")
REASSIGNMENT_BEGINS: Final = _election("reassignment-begins", "new replicas are added")
REASSIGNMENT_DONE: Final = _election("reassignment-done", "old replicas are removed")
LEADER_REMOVED: Final = _election("leader-removed", "a leader goes offline and leaves the partition without one")
EPOCH_RAISED: Final = _election("epoch-raised", "the leader epoch is raised, and nothing else")

_controller = partial(_probe, "controller")
CONTROLLER_FAILOVER: Final = _controller("controller-failover", "another controller is elected")
CONTROLLER_WRITE_REFUSED: Final = _controller("controller-write-refused", "a write of a former controller is refused")
CONTROLLER_WRITE_STALE: Final = _controller("controller-write-accepted", "a write of a former controller is accepted")
CONTROLLER_FINISHES: Final = _controller("controller-finishes", "a controller works on after its session has expired")
BOUNCE: Final = _controller("bounce", "a controller sees that a broker has another registration than before")
MISSED_BOUNCE: Final = _controller("missed-bounce", "a member of the ISR registered anew while there was no controller")

_kraft = partial(_probe, "kraft")
ELECTED_FROM_ISR: Final = _kraft("elected-from-isr", "the leader cannot lead: a member of the ISR is elected")
ELECTED_FROM_ELR: Final = _kraft("elected-from-elr", "the ISR is empty: an eligible leader replica is elected")
ELECTED_LAST_KNOWN: Final = _kraft("elected-last-known", "ISR and ELR are empty: the last leader is elected")
ELECTED_DESIGNATED: Final = _kraft(
    "elected-designated", "a replica outside ISR and ELR is chosen by name or by its log"
)
LEFT_LEADERLESS: Final = _kraft("left-leaderless", "the leader cannot lead, and nobody can be elected")
ELR_GROWS: Final = _kraft("elr-grows", "a replica leaves a small ISR and stays electable")
ELR_CLEARED: Final = _kraft(
    "elr-cleared", "the ISR is large enough again, or min ISR changes: nobody else is electable"
)
ELR_EJECTED: Final = _kraft("elr-ejected", "an eligible leader replica registers after an unclean shutdown")
BROKER_FENCED: Final = _kraft("broker-fenced", "a broker is fenced")
BROKER_UNFENCED: Final = _kraft("broker-unfenced", "a broker is unfenced")
BROKER_BEHIND: Final = _kraft("broker-behind", "a broker stays fenced: it has not read of its own registration yet")
BROKER_RELIEVED: Final = _kraft("broker-relieved", "a broker that shuts down is relieved of its partitions")
BROKER_MAY_STOP: Final = _kraft("broker-may-stop", "a broker that shuts down may stop")
BROKER_MUST_WAIT: Final = _kraft("broker-must-wait", "it must wait: it leads, or others have not read that it does not")
REGISTERED_CLEAN: Final = _kraft("registered-clean", "a new incarnation registers after a clean shutdown")
REGISTERED_UNCLEAN: Final = _kraft("registered-unclean", "a new incarnation registers after an unclean shutdown")
REGISTRATION_DUPLICATE: Final = _kraft("registration-duplicate", "it is refused: the former one's session is valid")
ALTER_STALE_BROKER: Final = _kraft("alter-stale-broker", "an AlterPartition of a former registration is refused")
ALTER_NOT_CONTROLLER: Final = _kraft("alter-not-controller", "it is refused: the leader knows newer epochs")
ALTER_FENCED: Final = _kraft("alter-fenced", "it is refused: its leader epoch is over")
ALTER_OUTDATED: Final = _kraft("alter-outdated", "it is refused: the partition has changed since")
ALTER_INVALID: Final = _kraft("alter-invalid", "it is refused: its ISR cannot be, or its sender does not lead")
ALTER_INELIGIBLE: Final = _kraft("alter-ineligible", "it is refused: a member may not join the ISR")
ALTERS: Final = {
    STALE_BROKER_EPOCH: ALTER_STALE_BROKER,
    NOT_CONTROLLER: ALTER_NOT_CONTROLLER,
    FENCED_LEADER_EPOCH: ALTER_FENCED,
    INVALID_UPDATE_VERSION: ALTER_OUTDATED,
    INVALID_REQUEST: ALTER_INVALID,
    INELIGIBLE_REPLICA: ALTER_INELIGIBLE,
}
ALTER_ELECTS: Final = _kraft("alter-elects", "an AlterPartition completes a reassignment, which moves the leader")
REASSIGNMENT_WAITS: Final = _kraft(
    "reassignment-waits", "a reassignment does not complete: the ISR is too small for it"
)
DIRECTORY_ASSIGNED: Final = _kraft("directory-assigned", "a replica is in another log directory than before")
CANCEL_REFUSED: Final = _kraft("cancel-refused", "a reassignment cannot be cancelled: the ISR would be too small")
ISR_HELD: Final = _kraft("isr-held", "a broker that is gone stays in an ISR that is small already")
RECOVERY_BEGINS: Final = _kraft("recovery-begins", "replicas are asked for their logs, to find the longest")
RECOVERY_ELECTS: Final = _kraft("recovery-elects", "the replica with the longest log is elected")
RECOVERY_DROPPED: Final = _kraft("recovery-dropped", "a recovery ends without: it is not wanted any more")
RECOVERY_REPLY_STALE: Final = _kraft("recovery-reply-stale", "an answer about a log is too old to count")

_session = partial(_probe, "session")
SESSION_EXPIRES_ALIVE: Final = _session("expires-alive", "a session ends while its broker lives")
SESSION_EXPIRES_DEAD: Final = _session("expires-dead", "a session ends after its broker")
EXPIRY_HEARD: Final = _session("expiry-heard", "a broker hears that its session has expired")
REGISTRATION_REFUSED: Final = _session("registration-refused", "a broker exits: an earlier registration is in the way")
REQUEST_REPEATED: Final = _session("request-repeated", "ZooKeeper is asked again for what it did: the answer is late")

_storage = partial(_probe, "storage")
LOADED_CLEAN: Final = _storage("loaded-clean", "a log is loaded after a clean shutdown")
LOADED_UNCLEAN: Final = _storage("loaded-unclean", "a log is recovered after an unclean end")
RECOVERY_FAILS: Final = _storage("recovery-fails", "a log cannot be recovered")
HW_FILE_BEHIND: Final = _storage("hw-checkpoint-behind", "a broker starts with the HW of a checkpoint, below its LEO")
HW_FILE_AHEAD: Final = _storage("hw-checkpoint-ahead", "the checkpoint's HW is above the LEO that is left")
SUFFIX_LOST: Final = _storage("suffix-lost", "a power loss takes the end of a log")
CRC_DROPS: Final = _storage("crc-drops-suffix", "recovery drops the end of a log by its CRC")
SYNCED_LOST: Final = _storage("synced-lost", "what was fsynced becomes unreadable")
DISK_LOST: Final = _storage("disk-lost", "a disk with records is replaced")
CACHE_CUT: Final = _storage("epoch-cache-cut", "recovery removes epochs beyond the log's end")
CACHE_REBUILT: Final = _storage("epoch-cache-rebuilt", "recovery takes epochs from the batches")
REPLICA_DELETED: Final = _storage("replica-deleted", "a broker deletes its replica")
LOG_START_MOVES: Final = _storage("log-start-moves", "a log start moves up")

_client = partial(_probe, "client")
WRITE_NOT_LEADER: Final = _client("write-not-leader", "a write meets a broker that does not lead")
WRITE_REFUSED: Final = _client("write-refused", "a write is refused: the ISR is too small")
WRITE_UNDER_MIN_ISR: Final = _client("write-under-min-isr", "a write is appended, then the ISR is too small")
WRITES: Final = {
    NOT_LEADER_OR_FOLLOWER: WRITE_NOT_LEADER,
    NOT_ENOUGH_REPLICAS: WRITE_REFUSED,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: WRITE_UNDER_MIN_ISR,
}
WRITE_TIMES_OUT: Final = _client("write-times-out", "a write is not answered in time")
DEDUP_HIT: Final = _client("dedup-hit", "a leader finds that it has a batch already")
DEDUP_REBUILT: Final = _client("producer-state-rebuilt", "it does so by a batch of an earlier leader")
SEQUENCE_REFUSED: Final = _client("sequence-refused", "a batch is refused by its sequence")
PRODUCER_ANEW: Final = _client("producer-anew", "an idempotent producer goes on with another id or epoch")
CONSUMER_VALIDATES: Final = _client("consumer-validates", "a consumer has its position validated")
CONSUMER_TRUNCATION: Final = _client("truncation-detected", "an application is told that the log was truncated")
CONSUMER_REWINDS: Final = _client("consumer-rewinds", "a consumer goes back silently to where the log was truncated")
CONSUMER_RESETS: Final = _client("consumer-resets", "a consumer goes where auto.offset.reset says")
CONSUMER_OUT_OF_RANGE: Final = _client("consumer-out-of-range", "a consumer's position is out of range")
CONSUMER_FENCED: Final = _client("consumer-fenced", "a consumer's request is refused by its leader epoch")
OFFSET_UNAVAILABLE: Final = _client("offset-not-available", "a leader does not know the latest offset yet")
METADATA_GOES_BACK: Final = _client("metadata-older", "a client is given older metadata than it had")

TRANSITIONS: Final = len(_found)
"""Number of transitions; probes from this number on are branches."""
BRANCHES: Final = {
    (rule, value): _probe(RULE_BRANCH, f"{rule}={value}", f"rule {rule} decides by its value {value}")
    for rule, spec in RULES.items()
    for value in spec.values
}
"""(rule, value) -> number."""
PROBES: Final = tuple(_found)
"""By number."""
