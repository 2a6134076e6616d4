"""Rules by which findings come about: what Kafka's code does there, and what its developers know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule that decides whether a story fails.

    Attributes:
        kafka: the deciding methods, as in KAFKA.md.
        text: what they do.
        upstream: tickets and pull requests about it, as far as they could be searched.
    """

    kafka: tuple[str, ...]
    text: str
    upstream: str


CAUSES: Final[dict[str, Cause]] = {
    "elr_outside_assignment": Cause(
        ("PartitionChangeBuilder#maybePopulateTargetElr",),
        "If the new ISR has fewer than min.insync.replicas members, it adds the old ISR to the old ELR, without "
        "dropping brokers that the assignment no longer has. A removed replica deletes its log and stays eligible.",
        "We found no ticket. On trunk of 2026-08-23 the method is the same.",
    ),
    "reassignment_completes": Cause(
        ("PartitionReassignmentReplicas#maybeCompleteReassignment",),
        "Since 4.3.0, a reassignment that removes no more replicas than it adds completes when the added replicas are "
        "in the ISR. Other replicas of the new assignment may be missing from it, and min.insync.replicas is not "
        "consulted.",
        "KAFKA-15665: PR 14604 asked for min.insync.replicas (closed), PR 15359 for all targets (3.8). KAFKA-19975 (PR "
        '21114, 4.3.0) asks for less: "this is safe because completing the reassignment would not decrease the ISR '
        'size".',
    ),
    "resubmitted_reassignment": Cause(
        ("ReplicationControlManager#changePartitionReassignment",),
        "It sets the lists of adding and removing replicas only if they are not empty. A reassignment that replaces "
        "one under way and adds nothing keeps the list of the former one.",
        "We found no ticket.",
    ),
    "directory_assignment": Cause(
        ("ReplicationControlManager#handleAssignReplicasToDirs",),
        "Up to 4.2, it builds the partition's change without setEligibleLeaderReplicasEnabled. So the change empties "
        "the ELR, whichever broker has assigned a directory.",
        "Repaired in 4.3.0 by PR 20716, which makes the flag an argument of the constructor.",
    ),
    "reported_directory": Cause(
        ("ReplicationControlManager#processBrokerHeartbeat", "ReplicationControlManager#handleDirectoriesOffline"),
        "A heartbeat may end a broker's fencing and report a failed log directory. handleBrokerUnfenced elects the "
        "broker, because its registration still has the directory. handleDirectoriesOffline starts from the same "
        "state, in which the broker neither leads nor is in the ISR, and changes nothing.",
        "We found no ticket. KAFKA-15364 (PR 14902) added handleDirectoriesOffline.",
    ),
    "removed_directory": Cause(
        ("ClusterControlManager#registerBroker", "LogManager#readBrokerEpochFromCleanShutdownFiles"),
        "A broker reads the broker epoch of its last shutdown from the directories in log.dirs. If one was taken out, "
        "the others agree, and the controller counts the shutdown as clean, although it has the broker's replicas in "
        "a directory that is not registered. The broker stays in the ELR. It creates the replicas anew, since no "
        "directory is offline, and reports where; from then on it can be elected.",
        "We found no ticket. KAFKA-15586 (PR 14706) made the controller compare broker epochs.",
    ),
    "offline_directory": Cause(
        ("LogManager#readBrokerEpochFromCleanShutdownFiles",),
        "It returns no broker epoch if any log directory is not live (liveLogDirs.size < logDirs.size). So the "
        "controller takes a controlled shutdown for an unclean one, and removes the broker from the ISR and ELR of "
        "all partitions, also of those in directories that work and have the marker of that shutdown.",
        "We found no ticket. KAFKA-15586 (PR 14706) made the controller compare broker epochs.",
    ),
    "lagging_future_log": Cause(
        ("LogManager#recoverAbandonedFutureLogs", "ReplicaAlterLogDirsThread#maybePromoteFutureReplica"),
        "A future log that has caught up is assigned to its directory before it replaces the log. While that is under "
        "way, records are appended to the log; the quota may keep them from the future log. If the process ends before "
        "the replacement, the metadata has the directory of the future log. The next process renames it to the log, "
        "and deletes the log, without comparing their ends.",
        "We found no ticket. KAFKA-16082 (PR 15136, 3.7.1) added recoverAbandonedFutureLogs. KAFKA-16297 (PR 15557) "
        'reverts the assignment of a move that is cancelled "before the future replica catches up again".',
    ),
    "skipped_log": Cause(
        ("Partition#createLogInAssignedDirectoryId", "ReplicaManager#applyLocalFollowersDelta"),
        "makeFollower sets the leader epoch, then does not use the log, because a log directory is offline and the "
        "metadata has none that is online. The broker assigns the directory in which it has the log "
        "(maybeUpdateTopicAssignment). With that record makeFollower uses the log, but returns that the leader epoch "
        "is not new, so no fetcher is started.",
        "We found no ticket. KAFKA-16157 (PR 15263) and KAFKA-16234 (PR 15335) made the broker skip the log.",
    ),
    "min_isr_change": Cause(
        ("ConfigurationControlManager#createClearElrRecordsAsNeeded",),
        "It adds a ClearElrRecord for every record that sets min.insync.replicas, of one topic or of the cluster, "
        "whatever the value and the ISR are. So members of the ELR that have every committed record are no longer "
        'eligible. KIP-966 says "if the new min ISR <= current ISR, the ELR will be removed".',
        "We found no ticket for the loss. That nobody can be elected is a documented cost: KAFKA-16540 (PR 17952, 4.0) "
        "clears the ELR on purpose, even if the value stays as it was, as a committer says in the review of PR 20237: "
        "ReplicationControlManagerTest.testElrsRemovedOnMinIsrUpdate requires it of a lower value.",
    ),
    "offline_replica": Cause(
        ("ReplicationControlManager#ineligibleReplicasForIsr", "Partition#isReplicaIsrEligible"),
        "Controller and leader refuse a replica in the ISR if its broker is fenced, shuts down or was started again, "
        "but not if its log directory has failed. The failure of a follower's directory does not raise the leader "
        "epoch, so the leader accepts a fetch that was sent before it, and proposes the replica again.",
        "We found no ticket. KIP-841 (KAFKA-13916) closed the same gap for fenced brokers.",
    ),
    "min_isr_change_while_disabled": Cause(
        ("ConfigurationControlManager#createClearElrRecordsAsNeeded",),
        "It returns at once if the feature eligible.leader.replicas.version is disabled. But when the feature is "
        "disabled, a partition keeps its ELR until it changes for another reason, and that ELR counts again once the "
        "feature is enabled. If min.insync.replicas is lowered in between, the ISR acknowledges records that members "
        "of the ELR lack.",
        "We found no ticket. Kafka's manual says that downgrades are safe (PR 18898).",
    ),
    "unclean_shutdown_while_disabled": Cause(
        ("ReplicationControlManager#handleBrokerShutdown", "PartitionChangeBuilder#isValidNewLeader"),
        "When a broker registers after an unclean shutdown, it leaves its ELRs only while the feature "
        "eligible.leader.replicas.version is enabled. But when the feature is disabled, a partition keeps its ELR "
        "until it changes. If that change is that the last member leaves the ISR, a member of the ELR is elected "
        "before the ELR is cleared, whatever the level of the feature is. So a broker whose disk lost records is "
        "elected.",
        "We found no ticket. Kafka's manual says that downgrades are safe (PR 18898), and KIP-966 that the controller "
        "ignores the ELR after a downgrade of metadata.version.",
    ),
    "disabled_elr": Cause(
        ("PartitionChangeBuilder#maybeUpdateRecordElr",),
        "If the feature eligible.leader.replicas.version is disabled, it empties the ELR with the next change of the "
        "partition. That is right while the ISR has members, which then wait for their return as before ELR. But the "
        "ISR may be empty, and if that change elects no eligible replica, nobody is eligible any longer. The last "
        "known leader stays, and is elected if the feature is enabled again, whatever its log has.",
        "We found no ticket. Kafka's manual says that downgrades are safe (PR 18898).",
    ),
    "last_candidate": Cause(
        ("PartitionChangeBuilder#maybeUpdateLastKnownLeader", "ReplicationControlManager#handleBrokerUncleanShutdown"),
        "It remembers the leader when that is lost while the feature eligible.leader.replicas.version is enabled. A "
        "partition that lost its leader before has no last known leader. Its last ISR member leaves the ISR when it "
        "registers after an unclean shutdown, because the feature is enabled now, and then nobody can be elected.",
        "We found no ticket.",
    ),
    "isr_response": Cause(
        ("Partition#handleAlterPartitionUpdate", "PartitionChangeBuilder#maybePopulateTargetElr"),
        "If the ISR becomes smaller than the min.insync.replicas in the controller's metadata, the controller puts the "
        "replica that leaves into the ELR. The leader adopts the ISR from the response to AlterPartition, which has "
        "no min.insync.replicas, and compares it with the value that it has replayed. If that value is lower, the HW "
        "advances without the eligible replica, and acks=all is answered.",
        "We found no ticket. KIP-966 requires that the HW advances only if the ISR has min.insync.replicas members "
        "(KAFKA-15583, PR 14594); KAFKA-16540 removes values of single brokers, because brokers that disagree about "
        "them break the invariants of KIP-966.",
    ),
    "config_replay": Cause(
        ("BrokerMetadataPublisher#onMetadataUpdate",),
        "It applies all changes of partitions (ReplicaManager#applyDelta) before those of configurations "
        "(DynamicConfigPublisher#onMetadataUpdate), also if the record of min.insync.replicas is the earlier one. "
        "Partition#makeLeader adopts the smaller ISR, advances the HW and completes acks=all by the old value.",
        "We found no ticket. KIP-966 requires that the HW advances only if the ISR has min.insync.replicas members "
        "(KAFKA-15583, PR 14594).",
    ),
    "newer_fetch": Cause(
        ("Replica#updateFetchStateOrThrow", "PartitionChangeBuilder#triggerLeaderEpochBumpForIsrShrinkIfNeeded"),
        "A fetch has the broker epoch of its sender. The leader refuses it only if that is lower than the one in its "
        "metadata. If it is higher, the controller may have removed the follower from the ISR when it registered, and "
        "since 3.6 (KAFKA-15021) that does not raise the leader epoch: a leader that has not replayed it counts the "
        "follower as an ISR member.",
        "We found no ticket. KAFKA-15221 (PR 14053) made leaders refuse lower broker epochs; its review mentions a "
        "comparison for equality.",
    ),
    "moved_log_epochs": Cause(
        ("LogManager#replaceCurrentWithFutureLog",),
        "The future log has the leader epochs of the records that were copied. An epoch in which nothing was appended "
        "is gone, and a leader has no end offset for a follower whose last epoch is that one or an earlier one that "
        "the log does not have either.",
        "KAFKA-20961 (PR 23205, open) and KAFKA-15608 (PR 14553, closed).",
    ),
    "equal_partition_epoch": Cause(
        ("Partition#makeLeader",),
        "It ignores a record only if the record's partition epoch is lower than the leader's. A record with an equal "
        "epoch replaces the partition's state, and with it a proposed ISR that is under way.",
        'Equal epochs are accepted since KAFKA-13790 (PR 12085): "we accept an update from the metadata log with the '
        'same partition epoch". We found no ticket for the consequence. Near: KAFKA-12686 (PR 12181), KAFKA-19996 (PR '
        "23024, open).",
    ),
    "skipped_epoch": Cause(
        ("Partition#makeLeader",),
        "For a newer leader epoch, it resets the LEOs of the followers only if the broker was not the leader before "
        "(isNewLeader = !isLeader). A broker that learns two elections together, or ignores one, was the leader "
        "before, although another broker led in between, and a follower may have truncated since. The HW passes "
        "records that only the leader has, before any follower has fetched in the new epoch.",
        "We found no ticket. KAFKA-7164 (PR 5436, 2.0.1) repaired the same for followers: a follower whose leader "
        "epoch rises by more than one truncates again. The public TLA+ specification of KIP-966 keeps the LEOs of ISR "
        "members there, too, in a line marked CHECK.",
    ),
    "unknown_producer": Cause(
        ("ProducerAppendInfo#checkSequence",),
        "A leader accepts any first sequence of a producer of which its log has no batch (since KIP-360). If the first "
        "of two batches in flight is refused or lost, it appends the second one. Each retry of the first is then "
        "OUT_OF_ORDER_SEQUENCE_NUMBER, and TransactionManager#canRetry repeats it until delivery.timeout.ms.",
        "KAFKA-15591, KAFKA-14312, KAFKA-18202 and KAFKA-19880 report it for new topics. PR 23234 (4.5) refuses a "
        "first sequence above 0 in a log that never held a record. A log that holds records of other producers still "
        "accepts it.",
    ),
    "snapshot_batches": Cause(
        ("ProducerStateManager#writeSnapshot", "TransactionManager#canRetry"),
        "A leader remembers the last five batches of each producer, but a snapshot has only the last one. After a "
        "restart that lost nothing, the leader does not recognise a retry of an earlier batch and answers "
        "OUT_OF_ORDER_SEQUENCE_NUMBER. The producer takes that for a gap, raises its epoch (KIP-360) and sends all its "
        "batches in flight again, although they are in the log.",
        "We found no ticket of Kafka. librdkafka#4953 reports the symptom.",
    ),
    "log_start_checkpoint": Cause(
        ("UnifiedLog#maybeIncrementLogStartOffset", "LeaderEpochFileCache#endOffsetFor"),
        "DeleteRecords removes entries below the new log start from the epoch cache and its file at once, but the log "
        "start is written once a minute. After a kill, the log begins at its former start, and the cache does not. "
        "Asked for an epoch before its first entry, the leader answers with that entry's start (since KAFKA-7415).",
        "We found no ticket. LeaderEpochFileCache says: \"it's guaranteed that the checkpoint file always has no "
        'missing entries".',
    ),
}
"""Rule -> cause."""
