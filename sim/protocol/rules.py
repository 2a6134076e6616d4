"""The rule table: every decision of the protocol in which releases differ.

A rule has a name and a few possible values. A mode is a full set of values (`sim.protocol.modes`), a historical bug is
one rule set to its broken value. Each broker and the control plane have their own table, so that versions can be mixed.
The protocol queries rules through `sim.protocol.decisions`.
"""

# Annotations are not postponed, because `RULES` is built from them.
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, Self, get_args

from sim.config import ELR, EVERYWHERE, KRAFT, ZOOKEEPER, Where
from sim.errors import InputError, did_you_mean, parse_pairs


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """Specification of a rule.

    Attributes:
        meaning: the decision, in one or two sentences.
        source: KIP section, Kafka class or fix.
        where: where it has an effect.
        values: its possible values, oldest behaviour first, as in its type.
    """

    meaning: str
    source: str
    where: Where = EVERYWHERE
    values: tuple[str, ...] = ()


ASKS_FOR_EPOCHS: Final[Where] = (("follower_truncation", ("leader-epoch", "leader-epoch-rounds")),)
ANSWERS_ABOUT_EPOCHS: Final[Where] = (("follower_truncation", ("leader-epoch", "leader-epoch-rounds", "on-fetch")),)
FENCES_FETCHES: Final[Where] = (("fetch_fencing", ("leader-epoch",)),)
TAKES_OVERLAPS: Final[Where] = (("append_check", ("last-offset",)),)
DEDUPLICATES: Final[Where] = (("producer_dedup", ("yes",)),)


@dataclass(frozen=True, slots=True)
class Rules:
    """A full set of rule values.

    Compare values with ``==``, not with ``in`` a tuple: mypy then finds words that are not values of the rule.
    """

    # Truncation.
    follower_truncation: Annotated[
        Literal["high-watermark", "high-watermark-delayed", "leader-epoch", "leader-epoch-rounds", "on-fetch"],
        RuleSpec(
            "What a new follower truncates to: its own HW at once; or its own HW, once the leader's records from there "
            "on have arrived (no release); or the end offset of its latest epoch as the leader tells it (one question, "
            "reply without epoch, undefined reply: HW); or the largest common (epoch, offset), found in several "
            "rounds; or the same found while fetching: each fetch carries the epoch of the last record, and a leader "
            "that disagrees answers with the diverging epoch and its end. A leader answers questions from leader-epoch "
            "on, and names the epoch from leader-epoch-rounds on; where it cannot, the follower falls back to its HW, "
            "or stays where the round before left it.",
            "ReplicaManager.makeFollowers 0.10.2; KIP-101 rejected alternatives; KIP-101 step 4, "
            "ReplicaFetcherThread.maybeTruncate 1.1; KIP-279, AbstractFetcherThread.getOffsetTruncationState 2.0.0; "
            "KIP-595, KAFKA-10554 (2.8), AbstractFetcherThread.truncateOnFetchResponse",
        ),
    ]
    epoch_request_error: Annotated[
        Literal["high-watermark", "retries"],
        RuleSpec(
            "What a follower does when its question for an epoch's end meets an error or a timeout: truncate to its HW "
            "(the text of KIP-279; no release), or ask again after the back-off.",
            "KIP-279 compatibility; AbstractFetcherThread.maybeTruncate from 0.11.0 on",
            ASKS_FOR_EPOCHS,
        ),
    ]
    truncation_fencing: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether OffsetsForLeaderEpoch carries the follower's leader epoch, and the leader refuses another one "
            "with FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
            "KIP-320 (2.1), Partition.lastOffsetForLeaderEpoch",
            ANSWERS_ABOUT_EPOCHS,
        ),
    ]
    truncate_at_leo: Annotated[
        Literal["keeps-epochs", "drops-epochs"],
        RuleSpec(
            "Whether a truncation to the LEO or beyond, which removes no data, still removes cache entries that start "
            "there.",
            "Log.truncateTo; KAFKA-10706 (2.6.1, 2.7)",
        ),
    ]
    epoch_recorded_at: Annotated[
        Literal["first-append", "election"],
        RuleSpec(
            "When a leader writes its epoch into the cache: at its first append or when it is elected. The one change "
            "that moved it also made the cache remove contradicting entries where it had ignored new ones, and answer "
            "for an epoch below its first with (that epoch, first start offset) where it had no answer.",
            "KIP-101 step 3 asks for election; LeaderEpochFileCache, Log.append 0.11.0 to 2.0.0; KAFKA-7415 (2.0.1, "
            "2.1.0)",
        ),
    ]
    # Fetching.
    fetcher_restart: Annotated[
        Literal["leader-id-changed", "epoch-missed", "newer-epoch"],
        RuleSpec(
            "Which LeaderAndIsr makes a follower truncate and fetch anew: one that names another leader; or also one "
            "that shows that a leader epoch was missed; or any newer leader epoch.",
            "Partition.makeFollower to 2.0.0; KAFKA-7164 (2.0.1); Partition.makeFollower 2.1",
        ),
    ]
    fetch_fencing: Annotated[
        Literal["no", "last-epoch", "leader-epoch"],
        RuleSpec(
            "What a leader compares in a follower's fetch: nothing; or the epoch of the follower's last record with "
            "its own log, so that one that disagrees must truncate first (the first draft of KIP-320; no release); or "
            "the follower's leader epoch with its own, refusing another one with FENCED_LEADER_EPOCH or "
            "UNKNOWN_LEADER_EPOCH.",
            "KIP-320 rejected alternatives, Kip320FirstTry.tla; KIP-320 (2.1), Partition.checkCurrentLeaderEpoch",
        ),
    ]
    session_epoch: Annotated[
        Literal["first-fetch", "every-fetch"],
        RuleSpec(
            "Which fetches of a fetch session carry the leader epoch: the first, full one, or every one.",
            "FetchSessionHandler.CachedPartition to 2.4.0; KAFKA-9338 (2.4.1, 2.5)",
            FENCES_FETCHES,
        ),
    ]
    fenced_fetcher: Annotated[
        Literal["removed", "failed", "retries"],
        RuleSpec(
            "What becomes of a follower that is fenced under its own epoch: its partition leaves the fetcher, or is "
            "marked failed, until the next LeaderAndIsr; or it retries after the back-off (the text of KIP-320; no "
            "release).",
            "AbstractFetcherThread.processFetchRequest 2.1; onPartitionFenced 2.3; KIP-320 replica handling",
        ),
    ]
    late_reply: Annotated[
        Literal["offset", "truncation-epoch", "leader-epoch"],
        RuleSpec(
            "Which replies to requests of an earlier leader epoch a follower drops: fetches whose offset no longer "
            "fits; also answers about epochs; or all.",
            "AbstractFetcherThread.processFetchRequest; KIP-320 (2.1); KAFKA-18991 (3.9.1, 4.1)",
        ),
    ]
    append_check: Annotated[
        Literal["last-offset", "first-offset"],
        RuleSpec(
            "Which offset of a batch a follower compares with its LEO before appending. By the last offset, a batch "
            "that begins below the LEO is taken, and offsets overlap.",
            "Log.append 0.10 (compressed sets); UnexpectedAppendOffsetException, UnifiedLog.append (KAFKA-6975)",
        ),
    ]
    append_error: Annotated[
        Literal["thread-dies", "partition-fails"],
        RuleSpec(
            "What an error while truncating or appending fetched batches ends: the fetcher thread with all its "
            "partitions, or the partition until the next leader change.",
            "ReplicaFetcherThread to 2.2; KIP-461 (2.3)",
        ),
    ]
    overlap_recovery: Annotated[
        Literal["fails", "passes"],
        RuleSpec(
            "Whether recovery after an unclean end fails on overlapping offsets, so that the broker cannot start.",
            "OffsetIndex.append InvalidOffsetException in LogSegment.recover (KAFKA-3919); not reachable later",
            TAKES_OVERLAPS,
        ),
    ]
    out_of_range: Annotated[
        Literal["halts", "truncates"],
        RuleSpec(
            "What a follower does when the leader's LEO is below its own and unclean election is off: halt the broker, "
            "or truncate to the leader's LEO. No epoch is compared in either.",
            "ReplicaFetcherThread.handleOffsetOutOfRange to 2.0.0 (KAFKA-3410); KAFKA-7414 (2.0.1, 2.1.0)",
        ),
    ]
    # High watermark and ISR.
    hw_needs_min_isr: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether the HW waits while the ISR is smaller than min.insync.replicas.",
            "Partition.maybeIncrementLeaderHW; KAFKA-15583 (3.7), KIP-966",
        ),
    ]
    min_isr_cap: Annotated[
        Literal["none", "replicas"],
        RuleSpec(
            "Whether a leader takes min.insync.replicas for no more than there are replicas; otherwise it refuses "
            "every write with acks=all where there are fewer.",
            "Partition.appendRecordsToLeader; Partition.effectiveMinIsr, KAFKA-15583 (3.7)",
        ),
    ]
    hw_needs_epoch: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a leader counts, for the HW and for joining the ISR, only what followers of its own epoch fetch.",
            "KIP-320, Kip320.tla against Kip320FirstTry.tla; given by fetch_fencing=leader-epoch in releases",
        ),
    ]
    hw_at_fetch: Annotated[
        Literal["every-fetch", "moved-leo"],
        RuleSpec(
            "After which fetches of followers a leader looks at the HW: after every one; or only after those that show "
            "another LEO than the one before, so that a HW that somebody outside the ISR held back goes on standing "
            "still once it may move.",
            "Partition.maybeExpandIsr to 2.3; Partition.updateFollowerFetchState (2.4)",
        ),
    ]
    isr_lag: Annotated[
        Literal["time", "end-offset"],
        RuleSpec(
            "Which member of the ISR lags: one that had everything too long ago, though it has everything now; or only "
            "one that misses something, too.",
            "Partition.getOutOfSyncReplicas to 2.0; KAFKA-7152 (2.1.0)",
        ),
    ]
    lag_at_reelection: Annotated[
        Literal["fetched", "not-fetched"],
        RuleSpec(
            "What a leader that is elected again in place notes of a follower outside the ISR: that it fetched just "
            "now, so that its next fetch, if it shows what the leader has by now, counts as if it had caught up then; "
            "or nothing.",
            "Replica.resetLastCaughtUpTime to 3.2; Replica.resetReplicaState, KAFKA-13790 (3.3)",
        ),
    ]
    unassigned_fetch: Annotated[
        Literal["empty", "refused"],
        RuleSpec(
            "What a leader answers a broker that fetches as a follower and is no replica, as far as the leader knows: "
            "nothing new; or an error, so that it tries again later.",
            "ReplicaManager.updateFollowerFetchState to 3.2; Partition.followerReplicaOrThrow, KAFKA-13837 (3.3)",
        ),
    ]
    refused_fetch: Annotated[
        Literal["forgets-leo", "ignored"],
        RuleSpec(
            "Whether a leader that refuses a follower's fetch no longer knows how far that follower's log reaches, so "
            "that the HW stands still until the next one.",
            "ReplicaManager.updateFollowerLogReadResults to 2.2; updateFollowerFetchState 2.6",
        ),
    ]
    isr_join: Annotated[
        Literal["high-watermark", "leader-epoch-start"],
        RuleSpec(
            "What a follower's LEO must reach before it joins the ISR: the leader's HW, or also the start offset of "
            "the leader's epoch.",
            "Partition.maybeExpandIsr to 2.0.0; KAFKA-7128 (2.0.1, 2.1.0)",
        ),
    ]
    isr_eligibility: Annotated[
        Literal["any", "alive", "registered"],
        RuleSpec(
            "Who may join the ISR: anybody; or brokers that are alive in the leader's metadata; or brokers whose "
            "present registration is the one that fetched, which is checked where the ISR is persisted (and, if that "
            "is the controller, before it is asked).",
            "Partition.maybeExpandIsr to 3.2; KAFKA-14140 (3.3); KIP-841 (3.3), KIP-903 (3.5)",
        ),
    ]
    isr_update: Annotated[
        Literal["zookeeper-write", "alter-partition"],
        RuleSpec(
            "How a leader changes the ISR: it writes to ZooKeeper itself, conditional on the version that it knows, "
            "while the partition stands still; or it asks the controller, and meanwhile counts the members of both.",
            "ReplicationUtils.updateLeaderAndIsr to 2.6; KIP-497 (2.7), AlterPartitionManager",
        ),
    ]
    # Controller.
    registration_epoch: Annotated[
        Literal["kept", "bumped"],
        RuleSpec(
            "Whether the registration of a broker raises the leader epoch of its partitions, even if the leader stays "
            "(no release).",
            "KafkaController.onBrokerStartup; KIP-101, returning leaders",
            ZOOKEEPER,
        ),
    ]
    missed_bounce: Annotated[
        Literal["unnoticed", "noticed"],
        RuleSpec(
            "Whether controllers notice that a member of the ISR was started anew since it joined, by the processes "
            "that the ISR was written with: a new controller sees it as failure and start; who elects then waits for a "
            "member that ran all the time or, if all were started anew, takes the longest log. Otherwise a leader that "
            "lost its tail leads on (no release under ZooKeeper; in KRaft who registers anew is fenced first).",
            "PartitionStateMachine.initializePartitionState 2.6; ClusterControlManager.registerBroker",
            ZOOKEEPER,
        ),
    ]
    shutting_down_leader: Annotated[
        Literal["online", "offline"],
        RuleSpec(
            "What a leader in a controlled shutdown that nobody could relieve is when any broker fails: online; or "
            "offline, so that another is elected, uncleanly where that is allowed.",
            "KafkaController.onBrokerFailure 0.10; onReplicasBecomeOffline, ControllerContext.isReplicaOnline (1.0)",
            ZOOKEEPER,
        ),
    ]
    last_isr_member: Annotated[
        Literal["leaves-if-unclean", "stays"],
        RuleSpec(
            "Whether the last member of the ISR stays in it when it goes while unclean election is allowed: otherwise "
            "the ISR is empty, and the first replica that is back leads.",
            "KafkaController.removeReplicaFromIsr to 1.0; ReplicaStateMachine.doRemoveReplicasFromIsr (1.1)",
            ZOOKEEPER,
        ),
    ]
    preferred_election: Annotated[
        Literal["if-needed", "always"],
        RuleSpec(
            "Whether a preferred election that is asked for raises the leader epoch where the preferred replica leads "
            "already.",
            "PreferredReplicaPartitionLeaderSelector 0.10; PartitionStateMachine 1.1 to 2.3; KIP-460 (2.4)",
            ZOOKEEPER,
        ),
    ]
    reassignment_state: Annotated[
        Literal["target", "adding-and-removing"],
        RuleSpec(
            "What is known of a reassignment: its target alone, so that one whose assignment is the target already is "
            "given up, by the next controller also if its replicas are not in sync; or what it adds and removes.",
            "KafkaController.maybeTriggerPartitionReassignment to 2.3; KIP-455 (2.4), ReplicaAssignment",
            ZOOKEEPER,
        ),
    ]
    broker_epoch: Annotated[
        Literal["ignored", "checked"],
        RuleSpec(
            "Whether the controller tells a broker's registrations apart, sees a quick return as failure and start, "
            "and whether brokers refuse requests that were meant for their former registration.",
            "KafkaController to 2.1 (KAFKA-1120); KIP-380 (2.2)",
            ZOOKEEPER,
        ),
    ]
    controller_writes: Annotated[
        Literal["unfenced", "fenced"],
        RuleSpec(
            "Whether ZooKeeper refuses what a controller of an older epoch writes.",
            "KafkaController to 2.1 (KAFKA-6082); KafkaZkClient.retryRequestsUntilConnected, controller epoch (2.2)",
            ZOOKEEPER,
        ),
    ]
    controller_startup: Annotated[
        Literal["live-replicas", "all-replicas"],
        RuleSpec(
            "Which replicas a new controller looks at first: those on live brokers, which are told how things stand; "
            "or also those on dead ones, which leave the ISR.",
            "ReplicaStateMachine.startup 2.0.0; ReplicaStateMachine.startup 2.6",
            ZOOKEEPER,
        ),
    ]
    broker_metadata: Annotated[
        Literal["last-arrived", "last-sent"],
        RuleSpec(
            "Which UpdateMetadata a broker goes by: the one that arrived last, though it may be the copy of an older "
            "one, left behind in a connection that was given up (no release compares them; who is not alive by such a "
            "copy is not followed when it leads); or the one that its controller sent last (in KRaft metadata has "
            "offsets).",
            "MetadataCache.updateMetadata, ControllerChannelManager 2.6; BrokerMetadataListener",
            ZOOKEEPER,
        ),
    ]
    stop_replica: Annotated[
        Literal["unchecked", "checked"],
        RuleSpec(
            "Whether a broker refuses a StopReplica of an older leader epoch.",
            "KIP-570 (2.6), KAFKA-9539",
            ZOOKEEPER,
        ),
    ]
    # Clients.
    list_offsets_guard: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a new leader answers OFFSET_NOT_AVAILABLE to ListOffsets(latest) while its HW is below the start "
            "offset of its epoch.",
            "KIP-207 (2.2), Partition.fetchOffsetForTimestamp",
        ),
    ]
    list_offsets_fencing: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether ListOffsets and fetches of clients carry the leader epoch of their metadata, and a leader refuses "
            "another one.",
            "KIP-320 (2.1 brokers, 2.3 clients), Partition.checkCurrentLeaderEpoch",
        ),
    ]
    client_metadata: Annotated[
        Literal["latest-received", "newest-epoch"],
        RuleSpec(
            "Which metadata a client keeps: the one received last, or the one with the newest leader epoch.",
            "KIP-232; KIP-320, Metadata.updateLastSeenEpochIfNewer (2.3)",
        ),
    ]
    lost_requests: Annotated[
        Literal["newest-first", "oldest-first"],
        RuleSpec(
            "In which order a producer takes back the requests of a lost connection. Without idempotence it puts each "
            "before all that wait: from the newest on, batches are sent again in their order, from the oldest on in "
            "the opposite one.",
            "InFlightRequests.clearAll to 1.1; apache/kafka#4642 (2.0)",
        ),
    ]
    consumer_validation: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a consumer that learns of a new leader or epoch asks it where the epoch of its last record ended, "
            "and goes back if that is before its position.",
            "KIP-320 (2.3), SubscriptionState.maybeValidatePositionForCurrentLeader",
        ),
    ]
    producer_dedup: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether brokers remember the last five batches of each idempotent producer, and answer a repetition "
            "without appending it.",
            "KIP-98 (0.11), ProducerStateManager, ProducerAppendInfo",
        ),
    ]
    unknown_producer: Annotated[
        Literal["refused", "taken"],
        RuleSpec(
            "What a leader makes of an idempotent producer that its log does not hold. It refuses a sequence above 0 "
            "with UNKNOWN_PRODUCER_ID, and forgets a producer whose last batch lies below the log start; or it takes "
            "any sequence, and forgets nobody.",
            "ProducerAppendInfo.checkSequence, ProducerStateManager.isProducerRetained to 2.3; KAFKA-7190 (2.4), "
            "KAFKA-8710 (2.5), KIP-360",
            DEDUPLICATES,
        ),
    ]
    producer_snapshots: Annotated[
        Literal["rolled", "kept", "of-segments"],
        RuleSpec(
            "Which snapshots of its producers a log has: those of rolls, recoveries and clean ends; of truncations, "
            "too; or, once it is loaded, only the latest and those where a segment begins. After a truncation to a "
            "snapshot only the last batch of each producer is known.",
            "Log.loadProducerState to 1.1; Log.rebuildProducerState (2.0); ProducerStateManager.removeStraySnapshots, "
            "KAFKA-9393 (2.8)",
            DEDUPLICATES,
        ),
    ]
    producer_recovery: Annotated[
        Literal["new-producer-id", "epoch-bump", "epoch-bump-when-fenced"],
        RuleSpec(
            "What an idempotent producer does when its sequence is refused: start anew with another producer id, or "
            "with the next producer epoch. With the first two values INVALID_PRODUCER_EPOCH ends the producer, and an "
            "answer to a batch that was given up changes present sequences; with the last one such an error fails one "
            "batch, and the next epoch begins.",
            "Sender, TransactionManager.resetProducerId to 2.4; KIP-360 (2.5); KIP-588 (2.7), KAFKA-13794, "
            "Sender.failBatch 3.9",
            DEDUPLICATES,
        ),
    ]
    # KRaft.
    control_plane: Annotated[
        Literal["zookeeper", "kraft"],
        RuleSpec(
            "Who decides and how brokers hear of it: a controller elected in ZooKeeper, with requests to each broker; "
            "or a quorum of controllers, whose committed metadata each broker replays in order.",
            "KafkaController to 3.9; KIP-500, QuorumController, BrokerMetadataPublisher",
        ),
    ]
    stale_fetch: Annotated[
        Literal["served", "refused"],
        RuleSpec(
            "What a leader does with a fetch of another registration than its metadata shows: serve it, or refuse it, "
            "so that it does not count for the ISR.",
            "Partition.updateFollowerFetchState; KAFKA-15221 (3.5.2, 3.7)",
        ),
    ]
    isr_shrink_epoch: Annotated[
        Literal["bumped", "kept"],
        RuleSpec(
            "Whether a smaller ISR raises the leader epoch though the leader stays.",
            "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded; KAFKA-15021 (3.6)",
            KRAFT,
        ),
    ]
    reassignment_completes: Annotated[
        Literal["adding-in-isr", "targets-in-isr", "targets-if-fewer", "min-isr"],
        RuleSpec(
            "When a reassignment completes: once the replicas that it adds are in the ISR, which may be left with one "
            "member; or once all replicas of the new assignment are; or once those that it adds are, and all, too, if "
            "it adds fewer than it removes; or (the text of KIP-966) once those that it adds are and the ISR has "
            "min.insync.replicas members, which a cancellation needs, too.",
            "PartitionReassignmentReplicas.maybeCompleteReassignment to 3.7; KAFKA-15665 (3.8); KAFKA-19975 (4.3); "
            "KIP-966 other behaviors 4",
            KRAFT,
        ),
    ]
    directory_assignment: Annotated[
        Literal["none", "clears-elr", "keeps-elr"],
        RuleSpec(
            "What follows when a broker tells the controller that its replica is in another log directory than the "
            "metadata says, as on a new disk: brokers tell nothing of directories; or the partition is changed as if "
            "there were no ELR, which is cleared; or it is kept. Where they tell, a replica whose directory is not "
            "there is not elected.",
            "KIP-858 (3.7), ReplicationControlManager.handleAssignReplicasToDirs, LeaderAcceptor; PR 20716 (4.3)",
            KRAFT,
        ),
    ]
    resubmitted_reassignment: Annotated[
        Literal["keeps-marks", "replaces-marks"],
        RuleSpec(
            "What becomes of the replicas that a reassignment under way adds and removes, when another one comes "
            "that adds, or removes, nothing itself: they stay marked, so that who has long joined counts as added; or "
            "only what the new one adds and removes is marked.",
            "ReplicationControlManager.changePartitionReassignment to 4.3.1; no release",
            KRAFT,
        ),
    ]
    elr: Annotated[
        Literal["off", "on"],
        RuleSpec(
            "Whether replicas that leave an ISR below min.insync.replicas stay eligible for election, and the ISR may "
            "become empty.",
            "KIP-966, PartitionChangeBuilder.maybePopulateTargetElr (4.0, on by default for new clusters from 4.1)",
            KRAFT,
        ),
    ]
    elr_outside_assignment: Annotated[
        Literal["kept", "dropped"],
        RuleSpec(
            "Whether who is no replica any more, once a reassignment was completed or cancelled, stays eligible for "
            "election though it deletes its log.",
            "PartitionChangeBuilder.maybePopulateTargetElr to 4.3.1; KIP-966 other behaviors 4 (no release)",
            ELR,
        ),
    ]
    last_known_elr: Annotated[
        Literal["leader", "lost-leader", "ejected-members"],
        RuleSpec(
            "Who is remembered for an election when ISR and ELR are empty, until there is a leader: who led when the "
            "last member left the ISR, which may have been nobody; or the first leader that was lost; or also ELR "
            "members that registered after an unclean shutdown, until the ISR has min ISR members again.",
            "PartitionChangeBuilder.maybeUpdateLastKnownLeader (4.0); MINOR PR 20629 (4.1.1, 4.2); KIP-966 other "
            "behaviors 6a",
            ELR,
        ),
    ]
    last_known_leader: Annotated[
        Literal["fenced-too", "unfenced"],
        RuleSpec(
            "Which last known leader is elected when ISR and ELR are empty: any; or one that is not fenced.",
            "PartitionChangeBuilder.electAnyLeader 4.0; KAFKA-19522 (4.1)",
            ELR,
        ),
    ]
    clean_shutdown: Annotated[
        Literal["ignored", "checked"],
        RuleSpec(
            "Whether a registration that names the broker epoch of the one before it, from the clean-shutdown file, "
            "counts as clean; otherwise every new incarnation counts as unclean.",
            "KIP-966 detection of an unclean shutdown; ClusterControlManager.registerBroker, KAFKA-18635 (4.0)",
            KRAFT,
        ),
    ]
    clean_shutdown_file: Annotated[
        Literal["always", "loaded-only"],
        RuleSpec(
            "Whether a broker that stops before its logs are loaded leaves a clean-shutdown file.",
            "LogManager.shutdown; KAFKA-15375 (3.6), KAFKA-10471",
            KRAFT,
        ),
    ]
    min_isr_change: Annotated[
        Literal["keeps-elr", "clears-elr", "clears-if-enough"],
        RuleSpec(
            "Whether a change of min.insync.replicas clears the ELR: never, always, or if the ISR is as large as the "
            "new value asks. If it is always cleared, who left a small ISR is forgotten though the ISR is still small.",
            "ReplicationControlManager 4.0 snapshot; KAFKA-16540 (4.0); KIP-966 other behaviors 2 (no release)",
            ELR,
        ),
    ]
    unclean_registration: Annotated[
        Literal["removes", "transitions"],
        RuleSpec(
            "What an unclean registration does to a partition whose ISR or ELR holds the broker: with ELR it is taken "
            "out of the lists and nothing else (no release), and without ELR nothing happens; or the partition changes "
            "as after any other event, with an election and a leader epoch where they are due.",
            "ReplicationControlManager.handleBrokerUncleanShutdown to 3.9; KAFKA-18106 (4.0; with ELR before)",
            KRAFT,
        ),
    ]
    fenced_session: Annotated[
        Literal["none", "kept"],
        RuleSpec(
            "Whether a fenced broker has a session: none, so that a new incarnation is registered at once; or, from "
            "its first heartbeat on, one as an unfenced broker has, also when it has stopped or asked to be fenced, so "
            "that a new incarnation is refused until the session is over.",
            "BrokerHeartbeatManager.hasValidSession to 3.9; BrokerHeartbeatTracker.hasValidSession, KAFKA-17793 (4.0)",
            KRAFT,
        ),
    ]
    lifecycle_retry: Annotated[
        Literal["back-off", "interval"],
        RuleSpec(
            "When a broker registers or sends a heartbeat again after an error, or no answer for half a session: "
            "100 ms later, then twice that and so on up to the session timeout; or an interval of heartbeats later.",
            "BrokerLifecycleManager.scheduleNextCommunicationAfterFailure to 4.0; 4.1",
            KRAFT,
        ),
    ]
    unclean_recovery: Annotated[
        Literal["election", "first-replies", "log-inspection"],
        RuleSpec(
            "What happens when neither ISR nor ELR can lead: an unclean election, if allowed; or the longest of the "
            "logs that answered first (rejected by the KIP); or, as unclean.recovery.strategy says, the longest log of "
            "those that have to answer.",
            "ReplicationControlManager; KIP-966 rejected alternatives; KIP-966 unclean recovery (no release)",
            KRAFT,
        ),
    ]
    isr_floor: Annotated[
        Literal["none", "min-isr"],
        RuleSpec(
            "Whether controller and leader keep members in an ISR that would fall below min.insync.replicas, unless "
            "they registered after an unclean shutdown.",
            "KIP-966 rejected alternatives, soft min ISR (no release)",
        ),
    ]
    equal_partition_epoch: Annotated[
        Literal["replaces-pending-isr", "keeps-pending-isr"],
        RuleSpec(
            "What a leader does with a proposed ISR if a partition record arrives whose partition epoch it already has "
            "from the response to its former AlterPartition: replace the proposal by the record's ISR, so that the HW "
            "no longer waits for the proposed member; or keep it, because the record says nothing new of the ISR.",
            "Partition.makeLeader, KAFKA-13790 (3.3) to 4.4; no release",
            KRAFT,
        ),
    ]

    def __post_init__(self) -> None:
        for name in RULES:
            check(name, getattr(self, name))

    def override(self, values: Mapping[str, str]) -> Self:
        """These rules with some values replaced.

        Raises:
            InputError: unknown rule or value.
        """
        for name, value in values.items():
            check(name, value)
        words: dict[str, Any] = dict(values)
        return replace(self, **words) if values else self

    @property
    def names_epochs(self) -> bool:
        """Whether OffsetsForLeaderEpoch responses name the epoch (KIP-279)."""
        return self.follower_truncation == "leader-epoch-rounds" or self.follower_truncation == "on-fetch"

    def as_dict(self) -> dict[str, str]:
        """Rule name -> value, in the order of `RULES`."""
        return {name: getattr(self, name) for name in RULES}


def _spec(annotation: Any) -> RuleSpec:
    literal: Any
    spec: RuleSpec
    literal, spec = get_args(annotation)
    return replace(spec, values=get_args(literal))


RULES: Final = {rule.name: _spec(rule.type) for rule in fields(Rules)}
"""Name -> rule, in the order of `Rules`."""


def check(name: str, value: str) -> None:
    """Refuse an unknown rule or value.

    Raises:
        InputError: unknown; the message names the nearest valid one.
    """
    spec = RULES.get(name)
    if spec is None:
        raise InputError(f"unknown rule {name!r}{did_you_mean(name, RULES)}")
    if value not in spec.values:
        raise InputError(f"rule {name} has no value {value!r}{did_you_mean(value, spec.values)}")


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` words.

    Raises:
        InputError: all problems with them.
    """
    return parse_pairs(pairs, "--rule", "NAME=VALUE", _checked)


def _checked(name: str, value: str) -> str:
    check(name, value)
    return value


def unmet(where: Where, in_force: Sequence[Rules]) -> Where:
    """Why a rule or key has no effect.

    Args:
        where: where it has an effect.
        in_force: the rules of all brokers.

    Returns:
        The first condition that no broker meets, including conditions of the conditions' own rules; empty: all are met,
        and it may have an effect.
    """
    for name, values in where:
        if not any(getattr(rules, name) in values for rules in in_force):
            return ((name, values),)
        if lacking := unmet(RULES[name].where, in_force):
            return lacking
    return EVERYWHERE
