"""The rule table: every decision of the protocol in which releases differ.

A rule has a name and a few possible values. A mode is a full set of values (`sim.protocol.modes`); a historical bug is
one rule with the value of the releases that had the bug. Each broker and the control plane have their own `Rules`, so
that versions can be mixed. The protocol queries rules through `sim.protocol.decisions`.
"""

# Annotations are not postponed, because `RULES` is built from them.
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, Self, get_args

from sim.config import ELR, EVERYWHERE, KRAFT, ZOOKEEPER, Where
from sim.errors import InputError, did_you_mean, parse_pairs
from sim.protocol import mutants
from sim.protocol.mutants import NO_MUTANT


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """Specification of a rule.

    Attributes:
        meaning: the decision, in one or two sentences.
        source: KIP section, Kafka class or fix.
        where: the values of other rules that it needs to have an effect.
        values: its possible values, as in its type: oldest behaviour first. Where a later release brought a bug in, the
            bug comes before the behaviour that it replaced: later values are tried as repairs.
    """

    meaning: str
    source: str
    where: Where = EVERYWHERE
    values: tuple[str, ...] = ()


# Conditions for `RuleSpec.where`.
ASKS_FOR_EPOCHS: Final[Where] = (("follower_truncation", ("leader-epoch", "leader-epoch-rounds")),)
ANSWERS_ABOUT_EPOCHS: Final[Where] = (("follower_truncation", ("leader-epoch", "leader-epoch-rounds", "on-fetch")),)
FENCES_FETCHES: Final[Where] = (("fetch_fencing", ("leader-epoch",)),)
TAKES_OVERLAPS: Final[Where] = (("append_check", ("last-offset",)),)
KNOWS_DIRECTORIES: Final[Where] = (*KRAFT, ("directory_assignment", ("clears-elr", "keeps-elr")))
KEEPS_FENCED_SESSIONS: Final[Where] = (*KRAFT, ("fenced_session", ("kept",)))
CHECKS_BROKER_EPOCHS: Final[Where] = (*ZOOKEEPER, ("broker_epoch", ("checked",)))
DEDUPLICATES: Final[Where] = (("producer_dedup", ("yes",)),)
REPLAYS_OFFSETS: Final[Where] = (("group_coordinator", ("replayed",)),)
MUTANT: Final = "mutant"
ADDED: Final = "added"
NO_RULES: Final = (MUTANT, ADDED)
"""The fields of `Rules` that are not rules, and are not listed as such."""


@dataclass(frozen=True, slots=True)
class AddedValue:
    """A rule value of a plug-in.

    Attributes:
        like: the built-in value of the same rule, which applies where `functions` do not answer; for a rule of a
            plug-in, its first value.
        functions: name of a decision point (`sim.protocol.decision_points`) -> its function.
    """

    rule: str
    value: str
    like: str
    functions: Mapping[str, Callable[[Any, Any], Any]]


ADDED_VALUES: Final[dict[tuple[str, str], AddedValue]] = {}
"""(rule, value) -> the value of a plug-in."""
ADDED_RULES: Final[set[str]] = set()
"""Names of plug-ins' rules, which are not fields of `Rules`."""


def built_in(rule: str, value: str) -> str:
    """The built-in value that a plug-in's value is like; a built-in value itself."""
    added = ADDED_VALUES.get((rule, value))
    return value if added is None else added.like


@dataclass(frozen=True, slots=True)
class Rules:
    """A full set of rule values.

    Compare values with ``==``, not with ``in`` a tuple: then mypy reports words that are not values of the rule.

    Attributes:
        added: (rule, value) pairs of plug-ins, sorted. The attribute of such a rule has the built-in value
            (`AddedValue.like`), so that code which compares it need not know plug-ins. The first value of a plug-in's
            rule is not listed.
    """

    # Truncation.
    follower_truncation: Annotated[
        Literal["high-watermark", "high-watermark-delayed", "leader-epoch", "leader-epoch-rounds", "on-fetch"],
        RuleSpec(
            "Where a new follower truncates its log: at its HW, at once; at its HW, once the leader's records above it "
            "have arrived (no release); at the end offset that the leader gives for the follower's latest epoch (one "
            "request, a response without an epoch; without an answer, at the HW); at the last (epoch, offset) that "
            "both logs share, found in several rounds; or at the same point, found while fetching: each fetch carries "
            "the epoch of the last record, and a leader whose log differs responds with the diverging epoch and its "
            "end offset. Leaders answer OffsetsForLeaderEpoch from leader-epoch on, and name the epoch from "
            "leader-epoch-rounds on. If a leader cannot, the follower falls back to its HW, or stays where the "
            "previous round truncated.",
            "ReplicaManager.makeFollowers 0.10.2; KIP-101 rejected alternatives; KIP-101 step 4, "
            "ReplicaFetcherThread.maybeTruncate 1.1; KIP-279, AbstractFetcherThread.getOffsetTruncationState 2.0.0; "
            "KIP-595, KAFKA-10554 (2.8), AbstractFetcherThread.truncateOnFetchResponse",
        ),
    ]
    epoch_request_error: Annotated[
        Literal["high-watermark", "retries"],
        RuleSpec(
            "What a follower does if its OffsetsForLeaderEpoch request fails or times out: truncate to its HW (text of "
            "KIP-279; no release), or retry after the back-off.",
            "KIP-279 compatibility; AbstractFetcherThread.maybeTruncate from 0.11.0 on",
            ASKS_FOR_EPOCHS,
        ),
    ]
    truncation_fencing: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether OffsetsForLeaderEpoch carries the follower's leader epoch, so that a leader with another one "
            "responds with FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
            "KIP-320 (2.1), Partition.lastOffsetForLeaderEpoch",
            ANSWERS_ABOUT_EPOCHS,
        ),
    ]
    truncate_at_leo: Annotated[
        Literal["keeps-epochs", "drops-epochs"],
        RuleSpec(
            "Whether a truncation to the LEO or above, which removes no data, removes the epoch cache entries that "
            "start there.",
            "Log.truncateTo; KAFKA-10706 (2.6.1, 2.7)",
        ),
    ]
    log_start_checkpoint: Annotated[
        Literal["periodic", "at-once"],
        RuleSpec(
            "When a broker writes log-start-offset-checkpoint: every log.flush.start.offset.checkpoint.interval.ms, so "
            "that a process that ends before has deleted records again, whose leader epochs are gone; or as soon as "
            "the log start moves.",
            "LogManager.checkpointLogStartOffsets (to 4.4); no release",
        ),
    ]
    epoch_recorded_at: Annotated[
        Literal["first-append", "election"],
        RuleSpec(
            "When a leader adds its epoch to the epoch cache: at its first append, or at its election. The same change "
            "made the cache remove entries that contradict a new one, where it had ignored the new one, and answer for "
            "an epoch below its first with (that epoch, first start offset), where it had no answer.",
            "KIP-101 step 3 asks for election; LeaderEpochFileCache, Log.append 0.11.0 to 2.0.0; KAFKA-7415 (2.0.1, "
            "2.1.0)",
        ),
    ]
    # Fetching.
    fetcher_restart: Annotated[
        Literal["leader-id-changed", "epoch-missed", "newer-epoch"],
        RuleSpec(
            "Which LeaderAndIsr makes a follower truncate and restart its fetcher: one with another leader; also one "
            "that shows that the follower missed a leader epoch; or any with a newer leader epoch.",
            "Partition.makeFollower to 2.0.0; KAFKA-7164 (2.0.1); Partition.makeFollower 2.1",
        ),
    ]
    fetch_fencing: Annotated[
        Literal["no", "last-epoch", "leader-epoch"],
        RuleSpec(
            "What a leader compares in a follower's fetch: nothing; the epoch of the follower's last record with its "
            "own log, so that a follower whose log differs has to truncate first (first draft of KIP-320; no release); "
            "or the follower's leader epoch with its own, answering any other with FENCED_LEADER_EPOCH or "
            "UNKNOWN_LEADER_EPOCH.",
            "KIP-320 rejected alternatives, Kip320FirstTry.tla; KIP-320 (2.1), Partition.checkCurrentLeaderEpoch",
        ),
    ]
    session_epoch: Annotated[
        Literal["first-fetch", "every-fetch"],
        RuleSpec(
            "Which fetches of a fetch session carry the leader epoch: only the first, full one; or all.",
            "FetchSessionHandler.CachedPartition to 2.4.0; KAFKA-9338 (2.4.1, 2.5)",
            FENCES_FETCHES,
        ),
    ]
    fenced_fetcher: Annotated[
        Literal["removed", "failed", "retries"],
        RuleSpec(
            "What happens to a follower that gets FENCED_LEADER_EPOCH under its current epoch: its partition is "
            "removed from the fetcher, or marked as failed, until the next LeaderAndIsr; or it retries after the "
            "back-off (text of KIP-320; no release).",
            "AbstractFetcherThread.processFetchRequest 2.1; onPartitionFenced 2.3; KIP-320 replica handling",
        ),
    ]
    late_reply: Annotated[
        Literal["offset", "truncation-epoch", "leader-epoch"],
        RuleSpec(
            "Which responses to requests of an earlier leader epoch a follower drops: fetch responses whose offset no "
            "longer fits; also OffsetsForLeaderEpoch responses; or all.",
            "AbstractFetcherThread.processFetchRequest; KIP-320 (2.1); KAFKA-18991 (3.9.1, 4.1)",
        ),
    ]
    recreated_reply: Annotated[
        Literal["processed", "dropped"],
        RuleSpec(
            "What a follower of another topic of that name does with a fetch response about a deleted topic: processes "
            "it if offset and leader epoch fit, since fetchers know partitions by name; or drops it by the topic id "
            "(no release).",
            "AbstractFetcherThread.processFetchRequest",
        ),
    ]
    recreated_fetch: Annotated[
        Literal["counted", "refused"],
        RuleSpec(
            "What a leader does with a follower's late fetch request for a deleted topic, if it leads another topic of "
            "that name: counts it as one of that topic, or refuses it by the topic id.",
            "KafkaApis.handleFetchRequest; KIP-516, FetchRequest version 13 (3.1)",
        ),
    ]
    append_check: Annotated[
        Literal["last-offset", "first-offset"],
        RuleSpec(
            "Which offset of a fetched batch a follower compares with its LEO before it appends: the last or the "
            "first. By the last, a batch that begins below the LEO is appended, and offsets overlap.",
            "Log.append 0.10 (compressed sets); UnexpectedAppendOffsetException, UnifiedLog.append (KAFKA-6975)",
        ),
    ]
    append_error: Annotated[
        Literal["thread-dies", "partition-fails"],
        RuleSpec(
            "What an error while truncating, or while appending fetched batches, ends: the fetcher thread with all its "
            "partitions; or only that partition, until the next leader change.",
            "ReplicaFetcherThread to 2.2; KIP-461 (2.3)",
        ),
    ]
    overlap_recovery: Annotated[
        Literal["fails", "passes"],
        RuleSpec(
            "Whether recovery after an unclean shutdown fails on overlapping offsets, so that the broker cannot start.",
            "OffsetIndex.append InvalidOffsetException in LogSegment.recover (KAFKA-3919); not reachable later",
            TAKES_OVERLAPS,
        ),
    ]
    unreadable_checkpoint: Annotated[
        Literal["ignored", "fails-directory"],
        RuleSpec(
            "What a broker does at its start with a checkpoint file that is half written: it ignores a "
            "recovery-point-offset-checkpoint; or its log directory fails, over any of the checkpoint files and over "
            "partition.metadata, until an operator has removed or restored the file.",
            "OffsetCheckpoint.read, LogManager.loadLogs 0.10; KIP-112 (1.0), CheckpointFile.read, "
            "LogDirFailureChannel.maybeAddOfflineLogDir",
        ),
    ]
    missing_topic_id: Annotated[
        Literal["stray", "kept"],
        RuleSpec(
            "What a broker does at its start with a log without the file partition.metadata, which has the topic id: "
            "it takes the log for a stray one, renames it and begins an empty one, while its shutdown still counts as "
            "clean; or it keeps the log.",
            "3.5 only logs that a log has no topic id; LogManager.isStrayKraftReplica 3.9, "
            "BrokerMetadataPublisher.initializeManagers 4.3",
            KRAFT,
        ),
    ]
    moved_log_epochs: Annotated[
        Literal["of-records", "carried-over"],
        RuleSpec(
            "Which leader epochs a log has in its cache after it was moved to another log directory: those of its "
            "records, as the future replica noted them while it copied; or all that it had, also those in which "
            "nothing was appended (no release). Without these, a leader has no answer about such an epoch.",
            "LogManager.replaceCurrentWithFutureLog; KAFKA-15608, KAFKA-20961",
            KRAFT,
        ),
    ]
    lagging_future_log: Annotated[
        Literal["replaces-log", "keeps-log"],
        RuleSpec(
            "What a broker does at its start with a log and its unfinished copy in another log directory, if the "
            "metadata has the copy's directory and the copy lacks records of the log: it uses the copy and deletes the "
            "log, without comparing them; or it keeps the log, and copies it again (no release).",
            "LogManager.recoverAbandonedFutureLogs (KAFKA-16082, 3.7.1 to 4.4)",
            KNOWS_DIRECTORIES,
        ),
    ]
    skipped_log: Annotated[
        Literal["waits-for-epoch", "used"],
        RuleSpec(
            "What a broker does at its start with a log in a directory that works, if the metadata has another one "
            "that does not: it assigns the log's directory and uses the log once the metadata has it, but as a "
            "follower fetches only from the next leader epoch on; or it uses the log at once (no release).",
            "Partition.createLogInAssignedDirectoryId, ReplicaManager.applyLocalFollowersDelta (KIP-858, 3.7 to 4.4)",
            KNOWS_DIRECTORIES,
        ),
    ]
    cordoned_directory: Annotated[
        Literal["unknown", "avoided"],
        RuleSpec(
            "Whether an administrator can cordon log directories (cordoned.log.dirs): a broker creates no new replicas "
            "there and moves none to them, and a broker whose directories are all cordoned gets no replicas of new "
            "partitions.",
            "KIP-1066 (4.3): LogManager.nextLogDirs, ReplicaManager.alterReplicaLogDirs, "
            "BrokerHeartbeatManager.UsableBrokerIterator",
            KNOWS_DIRECTORIES,
        ),
    ]
    out_of_range: Annotated[
        Literal["halts", "truncates"],
        RuleSpec(
            "What a follower does if the leader's LEO is below its own and unclean election is off: halt the broker, "
            "or truncate to the leader's LEO. Neither compares epochs.",
            "ReplicaFetcherThread.handleOffsetOutOfRange to 2.0.0 (KAFKA-3410); KAFKA-7414 (2.0.1, 2.1.0)",
        ),
    ]
    # High watermark and ISR.
    hw_needs_min_isr: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether the HW stays where it is while the ISR is smaller than min.insync.replicas.",
            "Partition.maybeIncrementLeaderHW; KAFKA-15583 (3.7), KIP-966",
        ),
    ]
    min_isr_cap: Annotated[
        Literal["none", "replicas"],
        RuleSpec(
            "Whether a leader caps min.insync.replicas at the number of replicas. Without the cap it refuses every "
            "write with acks=all if there are fewer replicas.",
            "Partition.appendRecordsToLeader; Partition.effectiveMinIsr, KAFKA-15583 (3.7)",
        ),
    ]
    hw_needs_epoch: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a leader counts, for the HW and for joining the ISR, only fetches of followers in its own leader "
            "epoch.",
            "KIP-320, Kip320.tla against Kip320FirstTry.tla; given by fetch_fencing=leader-epoch in releases",
        ),
    ]
    hw_at_fetch: Annotated[
        Literal["every-fetch", "moved-leo"],
        RuleSpec(
            "After which fetches of followers a leader tries to advance the HW: after each; or only after those that "
            "show another LEO than before. Then a HW that a follower outside the ISR held back stays there although it "
            "could advance.",
            "Partition.maybeExpandIsr to 2.3; Partition.updateFollowerFetchState (2.4)",
        ),
    ]
    caught_up: Annotated[
        Literal["this-fetch", "previous-fetch"],
        RuleSpec(
            "When a follower counts as caught up: only at a fetch that reaches the leader's present LEO, so that one "
            "that fetches while records keep coming leaves the ISR, and as the HW does not wait for it, cannot join; "
            "or also at its previous fetch, if it now reaches the LEO of then, and the HW waits for it.",
            "Replica.updateLogReadResult, Partition.maybeIncrementLeaderHW to 0.10.1; KAFKA-4485 (0.10.2)",
        ),
    ]
    isr_lag: Annotated[
        Literal["time", "end-offset"],
        RuleSpec(
            "For which lagging members the leader shrinks the ISR: those that were last caught up too long ago, even "
            "if they lack no records now; or, of these, only those that lack records.",
            "Partition.getOutOfSyncReplicas to 2.0; KAFKA-7152 (2.1.0)",
        ),
    ]
    lag_at_reelection: Annotated[
        Literal["fetched", "not-fetched"],
        RuleSpec(
            "What a leader that is elected again notes about a follower outside the ISR: a fetch at the time of the "
            "election, so that the next fetch, if it reaches the LEO of that time, shows the follower as caught up "
            "then; or nothing.",
            "Replica.resetLastCaughtUpTime to 3.2; Replica.resetReplicaState, KAFKA-13790 (3.3)",
        ),
    ]
    same_leader: Annotated[
        Literal["forgets-leo", "keeps-leo"],
        RuleSpec(
            "What a leader knows of its followers' LEOs when it is elected again, as it is when the controller changes "
            "the ISR: nothing, so that HW and acks=all wait until each member has fetched again; or what it knew.",
            "Partition.makeLeader to 0.8.2; KAFKA-2721 (0.9)",
        ),
    ]
    skipped_epoch: Annotated[
        Literal["keeps-leo", "forgets-leo"],
        RuleSpec(
            "What a leader knows of its followers if it is elected again, and another broker led in an epoch between "
            "that it never replayed: the LEOs that they had before, though they may have truncated since, so that the "
            "HW passes records that only the leader has; or nothing until they fetch in the new epoch.",
            "Partition.makeLeader, Replica.resetReplicaState (to 4.4); no release",
        ),
    ]
    unassigned_fetch: Annotated[
        Literal["empty", "refused"],
        RuleSpec(
            "How a leader answers a follower's fetch from a broker that it does not know as a replica: with an empty "
            "response; or with an error, so that the broker retries.",
            "ReplicaManager.updateFollowerFetchState to 3.2; Partition.followerReplicaOrThrow, KAFKA-13837 (3.3)",
        ),
    ]
    refused_fetch: Annotated[
        Literal["forgets-leo", "ignored"],
        RuleSpec(
            "Whether a leader that refuses a follower's fetch forgets that follower's LEO, so that the HW stays where "
            "it is until the follower's next fetch.",
            "ReplicaManager.updateFollowerLogReadResults to 2.2; updateFollowerFetchState 2.6",
        ),
    ]
    isr_join: Annotated[
        Literal["high-watermark", "leader-epoch-start"],
        RuleSpec(
            "What a follower's LEO must reach before the follower joins the ISR: the leader's HW, or also the start "
            "offset of the leader epoch.",
            "Partition.maybeExpandIsr to 2.0.0; KAFKA-7128 (2.0.1, 2.1.0)",
        ),
    ]
    isr_eligibility: Annotated[
        Literal["any", "alive", "registered"],
        RuleSpec(
            "Which brokers may join the ISR: any; those that are alive in the leader's metadata; or those whose "
            "current registration sent the fetch. The last is checked where the ISR is persisted and, if that is the "
            "controller, also by the leader beforehand.",
            "Partition.maybeExpandIsr to 3.2; KAFKA-14140 (3.3); KIP-841 (3.3), KIP-903 (3.5)",
        ),
    ]
    isr_update: Annotated[
        Literal["zookeeper-write", "alter-partition"],
        RuleSpec(
            "How a leader changes the ISR: by a conditional write to ZooKeeper, during which the partition is locked; "
            "or by a request to the controller, during which the members of both ISRs count (maximal ISR).",
            "ReplicationUtils.updateLeaderAndIsr to 2.6; KIP-497 (2.7), AlterPartitionManager",
        ),
    ]
    # Controller.
    registration_epoch: Annotated[
        Literal["kept", "bumped"],
        RuleSpec(
            "Whether a broker's registration raises the leader epoch of its partitions even if the leader stays (no "
            "release).",
            "KafkaController.onBrokerStartup; KIP-101, returning leaders",
            ZOOKEEPER,
        ),
    ]
    missed_bounce: Annotated[
        Literal["unnoticed", "noticed"],
        RuleSpec(
            "Whether controllers notice that an ISR member restarted since it joined, because its incarnation is "
            "stored with the ISR: a new controller then treats the restart as a failure and a start, and an election "
            "waits for a member that did not restart or, if all did, takes the longest log. Otherwise a leader that "
            "lost the end of its log keeps leading. (No release with ZooKeeper; KRaft fences a broker that registers "
            "again first.)",
            "PartitionStateMachine.initializePartitionState 2.6; ClusterControlManager.registerBroker",
            ZOOKEEPER,
        ),
    ]
    shutting_down_leader: Annotated[
        Literal["online", "offline"],
        RuleSpec(
            "How the controller treats a leader in controlled shutdown that it could not replace, when any broker "
            "fails: as online; or as offline, so that another leader is elected, uncleanly if allowed.",
            "KafkaController.onBrokerFailure 0.10; onReplicasBecomeOffline, ControllerContext.isReplicaOnline (1.0)",
            ZOOKEEPER,
        ),
    ]
    shutdown_recipients: Annotated[
        Literal["without-stopping", "all-live"],
        RuleSpec(
            "Which replicas get LeaderAndIsr with the leader that was elected for a controlled shutdown: those on live "
            "brokers that are not shutting down, so that the former leader acts as leader until it ends; or those on "
            "all live brokers.",
            "PartitionStateMachine.leaderForControlledShutdown 1.1 to 2.0 (KAFKA-7482); 2.1, and "
            "ControlledShutdownLeaderSelector to 1.0",
            ZOOKEEPER,
        ),
    ]
    last_isr_member: Annotated[
        Literal["leaves-if-unclean", "stays"],
        RuleSpec(
            "Whether the last ISR member stays in the ISR when it goes offline while unclean election is allowed. If "
            "it leaves, the ISR is empty, and the first replica that is back leads.",
            "KafkaController.removeReplicaFromIsr to 1.0; ReplicaStateMachine.doRemoveReplicasFromIsr (1.1)",
            ZOOKEEPER,
        ),
    ]
    preferred_election: Annotated[
        Literal["if-needed", "always"],
        RuleSpec(
            "Whether a requested preferred election raises the leader epoch if the preferred replica already leads.",
            "PreferredReplicaPartitionLeaderSelector 0.10; PartitionStateMachine 1.1 to 2.3; KIP-460 (2.4)",
            ZOOKEEPER,
        ),
    ]
    reassignment_state: Annotated[
        Literal["target", "adding-and-removing"],
        RuleSpec(
            "What is stored about a reassignment: only its target, so that one whose target equals the assignment is "
            "dropped, by the next controller even if its replicas are not in sync; or the replicas that it adds and "
            "removes.",
            "KafkaController.maybeTriggerPartitionReassignment to 2.3; KIP-455 (2.4), ReplicaAssignment",
            ZOOKEEPER,
        ),
    ]
    broker_epoch: Annotated[
        Literal["ignored", "checked"],
        RuleSpec(
            "Whether broker epochs, which tell a broker's registrations apart, are checked: the controller then treats "
            "a quick restart as a failure and a start, and brokers refuse requests that were meant for their earlier "
            "registration.",
            "KafkaController to 2.1 (KAFKA-1120); KIP-380 (2.2)",
            ZOOKEEPER,
        ),
    ]
    newer_broker_epoch: Annotated[
        Literal["refused", "accepted"],
        RuleSpec(
            "What a broker does with a control request for a newer registration than it knows, because its response "
            "from ZooKeeper is still on the way: it throws, and the controller takes the error for an answer; or it "
            "handles the request.",
            "KafkaApis.isBrokerEpochStale 2.2 to 2.5.0; 2.5.1 (KAFKA-9839)",
            CHECKS_BROKER_EPOCHS,
        ),
    ]
    control_retry: Annotated[
        Literal["once", "until-answered"],
        RuleSpec(
            "How often the controller sends LeaderAndIsr, UpdateMetadata and StopReplica to a live broker: once, so "
            "that they are lost with a connection that breaks before the answer; or until they are answered.",
            "RequestSendThread to 0.8.1 (KAFKA-1187, KAFKA-1738); 0.8.2",
            ZOOKEEPER,
        ),
    ]
    controller_writes: Annotated[
        Literal["unfenced", "fenced"],
        RuleSpec(
            "Whether ZooKeeper refuses writes of a controller with an older epoch.",
            "KafkaController to 2.1 (KAFKA-6082); KafkaZkClient.retryRequestsUntilConnected, controller epoch (2.2)",
            ZOOKEEPER,
        ),
    ]
    controller_startup: Annotated[
        Literal["live-replicas", "all-replicas"],
        RuleSpec(
            "Which replicas a new controller handles first: those on live brokers, which it sends the state; or also "
            "those on dead brokers, which it removes from the ISR.",
            "ReplicaStateMachine.startup 2.0.0; ReplicaStateMachine.startup 2.6",
            ZOOKEEPER,
        ),
    ]
    broker_metadata: Annotated[
        Literal["last-arrived", "last-sent"],
        RuleSpec(
            "Which UpdateMetadata a broker applies: the last that arrived, perhaps a late copy of an older one, left "
            "in an abandoned connection (no release with ZooKeeper compares them; the broker does not follow a leader "
            "that is dead in such a copy); or the last that the controller sent (in KRaft metadata has offsets).",
            "MetadataCache.updateMetadata, ControllerChannelManager 2.6; BrokerMetadataListener",
            ZOOKEEPER,
        ),
    ]
    stop_replica: Annotated[
        Literal["unchecked", "checked"],
        RuleSpec(
            "Whether a broker refuses a StopReplica with an older leader epoch.",
            "KIP-570 (2.6), KAFKA-9539",
            ZOOKEEPER,
        ),
    ]
    stopped_writes: Annotated[
        Literal["unanswered", "refused"],
        RuleSpec(
            "What becomes of writes with acks=all that wait when a StopReplica deletes the leader's replica: they get "
            "no answer, so that the producer waits for its request.timeout.ms; or an error at once. (Fetches, which "
            "wait for 500 ms at most, get an error at once here.)",
            "ReplicaManager.stopReplica to 2.3 (KAFKA-9198); ReplicaManager.completeDelayedFetchOrProduceRequests 2.4",
            ZOOKEEPER,
        ),
    ]
    deleted_replica: Annotated[
        Literal["forgets-epoch", "keeps-epoch"],
        RuleSpec(
            "What a broker knows of a replica that it has deleted: nothing, so that a late copy of an earlier "
            "LeaderAndIsr, left in an abandoned connection, creates it again, even as leader; or its leader epoch, up "
            "to which it ignores LeaderAndIsr.",
            "ReplicaManager.stopReplicas, ReplicaManager.becomeLeaderOrFollower (2.6 to 3.9); no release",
            ZOOKEEPER,
        ),
    ]
    # Clients.
    list_offsets_guard: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a new leader answers ListOffsets(latest) with OFFSET_NOT_AVAILABLE while its HW is below the "
            "start offset of its leader epoch.",
            "KIP-207 (2.2), Partition.fetchOffsetForTimestamp",
        ),
    ]
    list_offsets_fencing: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether ListOffsets and Fetch requests of clients carry the leader epoch of their metadata, so that a "
            "leader with another one refuses them.",
            "KIP-320 (2.1 brokers, 2.3 clients), Partition.checkCurrentLeaderEpoch",
        ),
    ]
    client_metadata: Annotated[
        Literal["latest-received", "newest-epoch"],
        RuleSpec(
            "Which metadata a client keeps: the last received, or that with the newest leader epoch.",
            "KIP-232; KIP-320, Metadata.updateLastSeenEpochIfNewer (2.3)",
        ),
    ]
    lost_requests: Annotated[
        Literal["newest-first", "oldest-first"],
        RuleSpec(
            "In which order a producer requeues the batches of a lost connection, each at the head of the queue if it "
            "is not idempotent: newest first, which keeps their order; or oldest first, which reverses it.",
            "InFlightRequests.clearAll to 1.1; apache/kafka#4642 (2.0)",
        ),
    ]
    consumer_validation: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether a consumer that learns of a new leader or leader epoch asks that leader where the epoch of its "
            "last record ended, and goes back if that is before its position.",
            "KIP-320 (2.3), SubscriptionState.maybeValidatePositionForCurrentLeader",
        ),
    ]
    producer_dedup: Annotated[
        Literal["no", "yes"],
        RuleSpec(
            "Whether brokers remember the last five batches of each idempotent producer, and acknowledge a duplicate "
            "without appending it.",
            "KIP-98 (0.11), ProducerStateManager, ProducerAppendInfo",
        ),
    ]
    unknown_producer: Annotated[
        Literal["refused", "taken", "refused-by-empty-log", "out-of-order"],
        RuleSpec(
            "How a leader treats an idempotent producer without a batch in its log: it refuses sequences above 0 with "
            "UNKNOWN_PRODUCER_ID, and forgets a producer whose last batch is below the log start; or it accepts any "
            "sequence, and forgets no producer. A log that never held a record, or every log, may refuse "
            "sequences above 0 with OUT_OF_ORDER_SEQUENCE_NUMBER.",
            "ProducerAppendInfo.checkSequence, ProducerStateManager.isProducerRetained to 2.3; KAFKA-7190 (2.4), "
            "KAFKA-8710 (2.5), KIP-360; KAFKA-15591 (PR 23234, 4.5)",
            DEDUPLICATES,
        ),
    ]
    producer_snapshots: Annotated[
        Literal["rolled", "kept", "of-segments"],
        RuleSpec(
            "Which snapshots of its producers a log has: those of rolls, recoveries and clean shutdowns; also those of "
            "truncations; or, after it is loaded, only the latest one and those where a segment begins. After a "
            "truncation to a snapshot only the last batch of each producer is known.",
            "Log.loadProducerState to 1.1; Log.rebuildProducerState (2.0); ProducerStateManager.removeStraySnapshots, "
            "KAFKA-9393 (2.8)",
            DEDUPLICATES,
        ),
    ]
    snapshot_batches: Annotated[
        Literal["last", "five"],
        RuleSpec(
            "Which batches of each producer a snapshot has: the last one, so that after a load retries of earlier ones "
            "are refused with OUT_OF_ORDER_SEQUENCE_NUMBER; or the five that a leader remembers.",
            "KIP-98, ProducerStateManager.writeSnapshot",
            DEDUPLICATES,
        ),
    ]
    producer_recovery: Annotated[
        Literal["new-producer-id", "epoch-bump", "epoch-bump-when-fenced"],
        RuleSpec(
            "How an idempotent producer continues after a refused sequence: with a new producer id, or with the next "
            "producer epoch. With the first two values INVALID_PRODUCER_EPOCH ends the producer, and a late response "
            "to an expired batch changes current sequences. With the last value such an error fails one batch, and the "
            "next epoch begins.",
            "Sender, TransactionManager.resetProducerId to 2.4; KIP-360 (2.5); KIP-588 (2.7), KAFKA-13794, "
            "Sender.failBatch 3.9",
            DEDUPLICATES,
        ),
    ]
    stopped_partition: Annotated[
        Literal["stays", "begins-behind", "begins-there", "passed-over"],
        RuleSpec(
            "What a producer that sends to several partitions does when the next batch of one of them has to wait for "
            "another one in flight. It ends its request to that leader there, and begins the next one to any leader at "
            "the same place; or behind it; or the next one to that leader with this partition, so that it sends "
            "nothing for the others until then. Or it passes over the partition.",
            "RecordAccumulator.drain to 2.0, and 2.1 to 3.2; KAFKA-13834 (3.3); passed-over: no release",
            DEDUPLICATES,
        ),
    ]
    # KRaft.
    control_plane: Annotated[
        Literal["zookeeper", "kraft"],
        RuleSpec(
            "Which control plane a cluster has: a controller elected in ZooKeeper, which sends requests to each "
            "broker; or a quorum of controllers, whose committed metadata each broker replays in order.",
            "KafkaController to 3.9; KIP-500, QuorumController, BrokerMetadataPublisher",
        ),
    ]
    stale_fetch: Annotated[
        Literal["served", "refused"],
        RuleSpec(
            "How a leader answers a fetch from an earlier registration than the one in its metadata: it serves the "
            "fetch; or refuses it, so that it does not count for the ISR.",
            "Partition.updateFollowerFetchState; KAFKA-15221 (3.5.2, 3.7)",
        ),
    ]
    newer_fetch: Annotated[
        Literal["counted", "refused"],
        RuleSpec(
            "How a leader answers an ISR member's fetch from a later registration than the one in its metadata, after "
            "which the controller may have removed the member: it counts the fetch; or refuses it until it knows.",
            "Replica.updateFetchStateOrThrow to 4.4; no release refuses it",
        ),
    ]
    isr_shrink_epoch: Annotated[
        Literal["bumped", "kept"],
        RuleSpec(
            "Whether a smaller ISR raises the leader epoch although the leader stays.",
            "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded; KAFKA-15021 (3.6)",
            KRAFT,
        ),
    ]
    reassignment_completes: Annotated[
        Literal["adding-in-isr", "targets-in-isr", "targets-if-fewer", "min-isr"],
        RuleSpec(
            "When a reassignment completes: once the replicas that it adds are in the ISR, which may have only one "
            "member then; once all replicas of the new assignment are; once those that it adds are, or all if it adds "
            "fewer than it removes; or (text of KIP-966) once those that it adds are and the ISR has "
            "min.insync.replicas members, which a cancellation needs, too.",
            "PartitionReassignmentReplicas.maybeCompleteReassignment to 3.7; KAFKA-15665 (3.8); KAFKA-19975 (4.3); "
            "KIP-966 other behaviors 4",
            KRAFT,
        ),
    ]
    reassigned_replica: Annotated[
        Literal["runs-on", "deleted"],
        RuleSpec(
            "What a broker does with a replica that was reassigned away: nothing, so that it goes on leading, or "
            "following who led before; or it stops and deletes it.",
            "TopicsDelta before its release (KAFKA-13198); TopicsDelta.localChanges 3.0",
            KRAFT,
        ),
    ]
    removed_voter: Annotated[
        Literal["unexpected", "ignored"],
        RuleSpec(
            "What a leader of the metadata quorum does when a voter that was removed meanwhile answers its "
            "BeginQuorumEpoch: an exception ends its process; or it ignores the answer (no release).",
            "LeaderState.addAcknowledgementFrom, ensureValidVoter (3.9 to 4.4)",
            KRAFT,
        ),
    ]
    directory_assignment: Annotated[
        Literal["none", "clears-elr", "keeps-elr"],
        RuleSpec(
            "What happens if a replica is in another log directory than the metadata has, as on a new disk: brokers do "
            "not report it; the partition changes as if ELR were off, which clears the ELR; or the ELR is kept. Where "
            "brokers report it, a replica is not elected while its directory differs.",
            "KIP-858 (3.7), ReplicationControlManager.handleAssignReplicasToDirs, LeaderAcceptor; PR 20716 (4.3)",
            KRAFT,
        ),
    ]
    reported_directory: Annotated[
        Literal["electable", "excluded"],
        RuleSpec(
            "Whether a heartbeat that ends a broker's fencing and reports a failed log directory can make the broker "
            "leader of a partition in that directory: yes, since both changes are built from the state before; or no, "
            "another eligible replica is elected (no release).",
            "ReplicationControlManager.processBrokerHeartbeat, handleBrokerUnfenced (3.9 to 4.4)",
            KNOWS_DIRECTORIES,
        ),
    ]
    offline_replica: Annotated[
        Literal["joins", "refused"],
        RuleSpec(
            "Whether the controller accepts a new ISR member whose log directory has failed: yes, since it looks only "
            "at the broker's registration, so a fetch or an AlterPartition that is under way at the failure makes the "
            "replica join; or no (no release).",
            "ReplicationControlManager.ineligibleReplicasForIsr (3.7 to 4.4); KIP-841 for fenced replicas",
            KNOWS_DIRECTORIES,
        ),
    ]
    removed_directory: Annotated[
        Literal["overlooked", "unclean"],
        RuleSpec(
            "What a controlled shutdown counts as if the broker registers without a log directory in which the "
            "metadata has an eligible replica, because the directory was removed from log.dirs: a clean one, since the "
            "other directories have their markers, so the broker stays eligible, creates the replica empty, and is "
            "elected; or an unclean one, for the replicas in that directory (no release).",
            "ClusterControlManager.registerBroker, LogManager.readBrokerEpochFromCleanShutdownFiles (4.0 to 4.4)",
            (*KNOWS_DIRECTORIES, ("elr", ("on",)), ("clean_shutdown", ("checked",))),
        ),
    ]
    offline_directory: Annotated[
        Literal["unclean", "ignored"],
        RuleSpec(
            "What a controlled shutdown counts as if one of the broker's log directories does not work when it starts, "
            "or is new and empty: an unclean one, for the replicas in all its directories, so these are no longer "
            "eligible; or a clean one, if the other directories have their markers (no release).",
            "LogManager.readBrokerEpochFromCleanShutdownFiles (4.0 to 4.4)",
            (*KNOWS_DIRECTORIES, ("elr", ("on",)), ("clean_shutdown", ("checked",))),
        ),
    ]
    resubmitted_reassignment: Annotated[
        Literal["keeps-marks", "replaces-marks"],
        RuleSpec(
            "Which replicas are marked as added or removed if a reassignment replaces one in progress, and itself "
            "adds, or removes, none: those of the earlier one, so that replicas which joined long ago still count as "
            "added; or only those of the new one.",
            "ReplicationControlManager.changePartitionReassignment to 4.3.1; no release",
            KRAFT,
        ),
    ]
    elr: Annotated[
        Literal["off", "on"],
        RuleSpec(
            "Whether replicas that leave an ISR below min.insync.replicas stay eligible for election (ELR). The ISR "
            "may become empty then.",
            "KIP-966, PartitionChangeBuilder.maybePopulateTargetElr (4.0, on by default for new clusters from 4.1)",
            KRAFT,
        ),
    ]
    elr_outside_assignment: Annotated[
        Literal["kept", "dropped"],
        RuleSpec(
            "Whether a broker that a completed or cancelled reassignment removed stays in the ELR, although it deletes "
            "its log.",
            "PartitionChangeBuilder.maybePopulateTargetElr to 4.3.1; KIP-966 other behaviors 4 (no release)",
            ELR,
        ),
    ]
    last_known_elr: Annotated[
        Literal["leader", "lost-leader", "ejected-members"],
        RuleSpec(
            "Which brokers are remembered, until there is a leader, for an election with empty ISR and ELR: the leader "
            "when the last member left the ISR, perhaps none; the first leader that was lost; or also ELR members that "
            "registered after an unclean shutdown, until the ISR has min.insync.replicas members again.",
            "PartitionChangeBuilder.maybeUpdateLastKnownLeader (4.0); MINOR PR 20629 (4.1.1, 4.2); KIP-966 other "
            "behaviors 6a",
            ELR,
        ),
    ]
    disabled_elr: Annotated[
        Literal["cleared", "kept"],
        RuleSpec(
            "What becomes of the ELR of a partition whose ISR is empty when the feature "
            "eligible.leader.replicas.version is disabled: the partition's next change clears it, unless it elects a "
            "member, so that no broker is eligible, and only the last known leader stays; or the ELR counts as before "
            "until there is a leader.",
            "PartitionChangeBuilder.maybeUpdateRecordElr (4.0 to 4.4); no release",
            ELR,
        ),
    ]
    last_candidate: Annotated[
        Literal["forgotten", "remembered"],
        RuleSpec(
            "Whether the last member of ISR and ELR can be elected after an unclean shutdown if the partition lost its "
            "leader while the feature eligible.leader.replicas.version was disabled, and the feature is enabled now: "
            "no, because only a leader that is lost while it is enabled is remembered; or yes, as last known leader.",
            "PartitionChangeBuilder.maybeUpdateLastKnownLeader (4.0 to 4.4); no release",
            ELR,
        ),
    ]
    last_known_leader: Annotated[
        Literal["fenced-too", "unfenced"],
        RuleSpec(
            "Which last known leader may be elected when ISR and ELR are empty: any, or only an unfenced one.",
            "PartitionChangeBuilder.electAnyLeader 4.0; KAFKA-19522 (4.1)",
            ELR,
        ),
    ]
    clean_shutdown: Annotated[
        Literal["ignored", "checked"],
        RuleSpec(
            "Whether a registration that has the broker epoch of the previous one, from the clean-shutdown file, "
            "counts as clean. Otherwise every new incarnation counts as unclean.",
            "KIP-966 detection of an unclean shutdown; ClusterControlManager.registerBroker, KAFKA-18635 (4.0)",
            KRAFT,
        ),
    ]
    clean_shutdown_file: Annotated[
        Literal["always", "loaded-only"],
        RuleSpec(
            "Whether a broker that stops before its logs are loaded writes a clean-shutdown file.",
            "LogManager.shutdown; KAFKA-15375 (3.6), KAFKA-10471",
            KRAFT,
        ),
    ]
    controller_min_isr: Annotated[
        Literal["first-partition", "own"],
        RuleSpec(
            "Whose replicas cap min.insync.replicas where the controller decides who is in the ELR: those of the first "
            "partition of the topic, so that a partition with more replicas gets a smaller ELR than its leader's "
            "acknowledgements need; or its own, as in the leader.",
            "ReplicationControlManager.getTopicEffectiveMinIsr (3.9 to 4.4); no release",
            ELR,
        ),
    ]
    min_isr_change: Annotated[
        Literal["keeps-elr", "clears-elr", "clears-if-enough"],
        RuleSpec(
            "Whether a change of min.insync.replicas clears the ELR: never; always, so that replicas which left a "
            "small ISR are no longer eligible although the ISR is still small; or only if the ISR reaches the new "
            "value.",
            "ReplicationControlManager 4.0 snapshot; KAFKA-16540 (4.0); KIP-966 other behaviors 2 (no release)",
            ELR,
        ),
    ]
    min_isr_change_while_disabled: Annotated[
        Literal["keeps-elr", "clears-if-enough"],
        RuleSpec(
            "Whether a change of min.insync.replicas clears the ELR while the feature eligible.leader.replicas.version "
            "is disabled: no, so that an ELR whose members lack records counts again once the feature is enabled; or "
            "only if the ISR reaches the new value.",
            "ConfigurationControlManager.createClearElrRecordsAsNeeded (4.1 to 4.4); no release",
            ELR,
        ),
    ]
    unclean_shutdown_while_disabled: Annotated[
        Literal["keeps-elr", "leaves-elr"],
        RuleSpec(
            "Whether a broker leaves the ELR if it registers after an unclean shutdown while the feature "
            "eligible.leader.replicas.version is disabled: no, so that it is elected if the last member leaves the "
            "ISR, or once the feature is enabled again, whatever its disk has lost; or yes.",
            "ReplicationControlManager.handleBrokerShutdown, PartitionChangeBuilder.isValidNewLeader (4.0 to 4.4); no "
            "release",
            ELR,
        ),
    ]
    unclean_registration: Annotated[
        Literal["removes", "transitions"],
        RuleSpec(
            "How an unclean registration changes a partition with the broker in its ISR or ELR: with ELR it only "
            "removes the broker from both (no release), without ELR it changes nothing; or the partition changes as "
            "after any other event, with an election and a new leader epoch if they are due.",
            "ReplicationControlManager.handleBrokerUncleanShutdown to 3.9; KAFKA-18106 (4.0; with ELR before)",
            KRAFT,
        ),
    ]
    fenced_session: Annotated[
        Literal["none", "kept"],
        RuleSpec(
            "Whether a fenced broker has a session: no, so that a new incarnation is registered at once; or, from its "
            "first heartbeat on, as an unfenced broker has, even after it stopped or asked to be fenced, so that a new "
            "incarnation is refused until the session expires.",
            "BrokerHeartbeatManager.hasValidSession to 3.9; BrokerHeartbeatTracker.hasValidSession, KAFKA-17793 (4.0)",
            KRAFT,
        ),
    ]
    activation_sessions: Annotated[
        Literal["at-heartbeat", "unfenced"],
        RuleSpec(
            "Which brokers have a session when a controller becomes active: none before its first heartbeat, so that a "
            "broker that has died is never fenced, and leads until it is back; or all that are not fenced.",
            "BrokerHeartbeatTracker before its release (KAFKA-18138); ClusterControlManager.activate (4.1; in 4.0 also "
            "fenced brokers)",
            KEEPS_FENCED_SESSIONS,
        ),
    ]
    lifecycle_retry: Annotated[
        Literal["back-off", "interval"],
        RuleSpec(
            "When a broker retries a registration or heartbeat after an error, or after half a session timeout without "
            "a response: after 100 ms, which doubles with each failure up to the session timeout; or after the "
            "heartbeat interval.",
            "BrokerLifecycleManager.scheduleNextCommunicationAfterFailure to 4.0; 4.1",
            KRAFT,
        ),
    ]
    unclean_recovery: Annotated[
        Literal["election", "first-replies", "log-inspection"],
        RuleSpec(
            "What happens if neither ISR nor ELR has a candidate: an unclean election, if allowed; an election of the "
            "longest of the logs that respond first (rejected in KIP-966); or of the longest of the logs that "
            "unclean.recovery.strategy requires.",
            "ReplicationControlManager; KIP-966 rejected alternatives; KIP-966 unclean recovery (no release)",
            KRAFT,
        ),
    ]
    isr_floor: Annotated[
        Literal["none", "min-isr"],
        RuleSpec(
            "Whether controller and leader shrink an ISR below min.insync.replicas: they do; or they keep its members, "
            "unless these registered after an unclean shutdown.",
            "KIP-966 rejected alternatives, soft min ISR (no release)",
        ),
    ]
    new_partition_reset: Annotated[
        Literal["policy", "earliest"],
        RuleSpec(
            "Where a consumer with auto.offset.reset=latest begins to read a partition that was added while it ran: at "
            "the end, so that it skips what was written before it learned of the partition; or at the start.",
            "OffsetFetcherUtils.getOffsetResetTimestamp to 4.4, KAFKA-12478; KIP-1327 (no release)",
        ),
    ]
    duration_reset: Annotated[
        Literal["retries", "latest"],
        RuleSpec(
            "What a consumer with auto.offset.reset=by_duration does if no record is as new as that: it asks again "
            "after request.timeout.ms, for records since a later time, and has no position until then; or it begins at "
            "the end.",
            "OffsetFetcherUtils.handleListOffsetResponse, OffsetFetcher.resetPositionsAsync, "
            "AutoOffsetResetStrategy.timestamp (4.0 to 4.4); latest in no release",
        ),
    ]
    read_replica: Annotated[
        Literal["leader", "any", "in-sync"],
        RuleSpec(
            "Which replica a leader lets a consumer in a rack read from (client.rack, RackAwareReplicaSelector): "
            "always itself; or, if it is in another rack, the replica in the consumer's rack that has the consumer's "
            "position and the most records, whether it is in the ISR or not, or one in the ISR only. From any on, "
            "followers serve consumers up to their own HW.",
            "Partition.readRecords to 2.3; KIP-392 (2.4), ReplicaManager.findPreferredReadReplica, "
            "RackAwareReplicaSelector; KAFKA-14372 (3.4)",
        ),
    ]
    group_coordinator: Annotated[
        Literal["cached", "refuses-unstable", "replayed"],
        RuleSpec(
            "How a group coordinator keeps committed offsets: in a cache that a commit changes when all ISR members "
            "have it, and whose offset is answered at once; or not while a commit of the partition is being "
            "replicated; or as soon as the leader has appended the commit (acks=1), with commits and fetches answered "
            "when the HW has passed that.",
            "GroupMetadataManager.storeOffsets, getOffsets; KIP-447 (2.5); CoordinatorRuntime, KIP-848 (4.0)",
        ),
    ]
    stopped_load: Annotated[
        Literal["empty", "fails"],
        RuleSpec(
            "What becomes of a group coordinator whose broker no longer leads __consumer_offsets when it begins to "
            "load it: until it unloads it answers that nothing is committed; or that it is no coordinator.",
            "GroupMetadataManager.doLoadGroupsAndOffsets to 3.9; CoordinatorLoaderImpl.doLoad, KAFKA-16030 (4.0)",
        ),
    ]
    coordinator_hw: Annotated[
        Literal["any-replica", "leader"],
        RuleSpec(
            "Whose HW acknowledges commits to a group coordinator: that of its replica, also when this follows another "
            "leader, which may have truncated the commits; or that of the leader only.",
            "CoordinatorPartitionWriter.ListenerAdapter to 4.3.0; KAFKA-20634 (4.3.1)",
            REPLAYS_OFFSETS,
        ),
    ]
    offset_fetch: Annotated[
        Literal["unconfirmed", "confirmed"],
        RuleSpec(
            "Whether a group coordinator confirms that it still leads before it answers a committed offset: no, so "
            "that a deposed one answers old offsets; or by a record that the HW has to pass first.",
            "GroupCoordinator.handleFetchOffsets, GroupCoordinatorService.fetchOffsets to 4.4; confirmed: a proposal "
            "(no release)",
        ),
    ]
    enabled_unclean_election: Annotated[
        Literal["next-event", "checked"],
        RuleSpec(
            "When the controller elects a leader uncleanly after unclean.leader.election.enable was switched on, for a "
            "partition that has none: with the partition's next event, such as a broker's return, so that it may wait "
            "though a replica lives; or at once (ZooKeeper), or within unclean.leader.election.interval.ms (KRaft).",
            "KAFKA-6526 (2.0), KafkaController.UncleanLeaderElectionEnable; ReplicationControlManager."
            "maybeElectUncleanLeaders (3.9)",
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
    isr_response: Annotated[
        Literal["without-min-isr", "with-min-isr"],
        RuleSpec(
            "Whether the response to AlterPartition has the controller's min.insync.replicas. Without it, the leader "
            "compares the new ISR with the value that it has applied, which may be lower than the one by which the "
            "controller chose the ELR. With it, the leader uses that value until it has replayed the ISR.",
            "ReplicationControlManager.alterPartition, Partition.handleAlterPartitionUpdate 3.9 to 4.4; no release",
            KRAFT,
        ),
    ]
    config_replay: Annotated[
        Literal["after-topics", "before-topics"],
        RuleSpec(
            "When a broker applies the configuration changes of metadata records that it replays together: after those "
            "of partitions, so that a leader may act on a smaller ISR before it applies the min.insync.replicas that "
            "was raised before; or before those of partitions.",
            "BrokerMetadataPublisher.onMetadataUpdate 3.9 to 4.4; no release",
            KRAFT,
        ),
    ]
    pre_vote: Annotated[
        Literal["none", "asked"],
        RuleSpec(
            "Whether a voter of the metadata quorum asks the others, before it begins a new epoch, if they would vote "
            "for it. If so, its vote is also kept within the epoch once a leader is known, a candidate without a "
            "majority waits for the end of its election timeout instead of backing off, and a resigned leader begins "
            "the next epoch without standing for election.",
            "KIP-996 (4.0); QuorumState, KafkaRaftClient.pollCandidate and pollResigned 3.9, 4.1",
            KRAFT,
        ),
    ]
    leader_search: Annotated[
        Literal["observers", "all-members"],
        RuleSpec(
            "Which members of the metadata quorum fetch from any voter while they know no leader or the leader does "
            "not answer: observers only, or voters, too.",
            "KafkaRaftClient.pollUnattachedAsVoter, pollFollowerAsVoter 3.9, 4.1",
            KRAFT,
        ),
    ]
    observer_fetch_timeout: Annotated[
        Literal["bootstrap-only", "leader-too"],
        RuleSpec(
            "From whom an observer of the metadata quorum fetches once the leader has not answered for a fetch "
            "timeout: only from bootstrap servers, until the leader among them answers; or from the leader, too.",
            "KafkaRaftClient.pollFollowerAsObserver; KAFKA-19354 (4.2)",
            KRAFT,
        ),
    ]
    raft_high_watermark: Annotated[
        Literal["with-records", "at-once"],
        RuleSpec(
            "When members of the metadata quorum learn a new high watermark: with the next records, or when their "
            "fetch expires after 0.5 s; or at once, because it answers fetches that wait.",
            "KIP-1166, KAFKA-14145 (4.1); KafkaRaftClient.handleFetchRequest, onUpdateLeaderHighWatermark",
            KRAFT,
        ),
    ]
    begin_quorum_epoch: Annotated[
        Literal["all-voters", "silent-voters"],
        RuleSpec(
            "To which voters the leader of the metadata quorum repeats that it leads, every half fetch timeout: all, "
            "or those that have not fetched meanwhile.",
            "LeaderState.needToSendBeginQuorumRequests (4.2)",
            KRAFT,
        ),
    ]
    mutant: str = NO_MUTANT
    added: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in (*RULES, MUTANT):
            check(name, self.value(name))

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """The rules of `as_dict`; raises InputError for an unknown rule or value."""
        own = {name: value for name, value in values.items() if name not in ADDED_RULES}
        words: dict[str, Any] = {name: built_in(name, value) for name, value in own.items()}
        return cls(**words).override(values)

    def override(self, values: Mapping[str, str]) -> Self:
        """These rules with some values replaced; raises InputError for an unknown rule or value."""
        for name, value in values.items():
            check(name, value)
        if not values:
            return self
        words: dict[str, Any] = {
            name: built_in(name, value) for name, value in values.items() if name not in ADDED_RULES
        }
        kept = [pair for pair in self.added if pair[0] not in values]
        new = [pair for pair in values.items() if pair in ADDED_VALUES]
        return replace(self, **words, added=tuple(sorted([*kept, *new])))

    def without_added(self) -> Self:
        """These rules with each value of a plug-in replaced by the one that it is like."""
        return replace(self, added=())

    def value(self, name: str) -> str:
        """The value of a rule, which may be a plug-in's."""
        for rule, value in self.added:
            if rule == name:
                return value
        return RULES[name].values[0] if name in ADDED_RULES else str(getattr(self, name))

    @property
    def names_epochs(self) -> bool:
        """Whether OffsetsForLeaderEpoch responses name the epoch (KIP-279)."""
        return self.follower_truncation == "leader-epoch-rounds" or self.follower_truncation == "on-fetch"

    def as_dict(self) -> dict[str, str]:
        """Rule name -> value, in the order of `RULES`; and the mutant, if there is one."""
        values = {name: self.value(name) for name in RULES}
        return values if self.mutant == NO_MUTANT else {**values, MUTANT: self.mutant}


def _spec(annotation: Any) -> RuleSpec:
    literal: Any
    spec: RuleSpec
    literal, spec = get_args(annotation)
    return replace(spec, values=get_args(literal))


RULES: Final = {rule.name: _spec(rule.type) for rule in fields(Rules) if rule.name not in NO_RULES}
"""Name -> rule, in the order of `Rules`; those of plug-ins last."""


def check(name: str, value: str) -> None:
    """Refuse an unknown rule, value or mutant: raises InputError with the nearest valid one."""
    if name == MUTANT:
        if value != NO_MUTANT:
            mutants.named(value)
        return
    spec = RULES.get(name)
    if spec is None:
        raise InputError(f"unknown rule {name!r}{did_you_mean(name, RULES)}")
    if value not in spec.values:
        raise InputError(f"rule {name} has no value {value!r}{did_you_mean(value, spec.values)}")


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` words; raises InputError with all problems."""
    return parse_pairs(pairs, "--rule", "NAME=VALUE", _checked)


def _checked(name: str, value: str) -> str:
    check(name, value)
    return value


def unmet(where: Where, in_force: Sequence[Rules]) -> Where:
    """Why a rule or key has no effect: the first condition in `where` that the rules of no broker meet; empty if each
    condition is met. The conditions of the rules that `where` names are checked, too.
    """
    for name, values in where:
        if not any(built_in(name, rules.value(name)) in values for rules in in_force):
            return ((name, values),)
        if lacking := unmet(RULES[name].where, in_force):
            return lacking
    return EVERYWHERE
