"""The rule table: every decision of the protocol that some release got different.

A rule is a name and one of a few values. A mode is a full set of values (`sim.protocol.modes`), a historical bug is
one rule switched to its broken value. Each broker has a table of its own, so that mixed versions are possible, and so
has the control plane. Partitions and fetchers turn the words into plain booleans once, when they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from sim.errors import InputError, did_you_mean, parse_pairs


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What a rule decides.

    Attributes:
        values: the values it may have, oldest behaviour first.
        meaning: the decision, in one or two sentences.
        source: KIP section, Kafka class or fix.
    """

    values: tuple[str, ...]
    meaning: str
    source: str


RULES: Final[dict[str, RuleSpec]] = {
    # Truncation.
    "follower_truncation": RuleSpec(
        ("high-watermark", "high-watermark-delayed", "leader-epoch", "leader-epoch-rounds", "on-fetch"),
        "What a new follower truncates to: its own HW at once; or its own HW, once the leader's records from there on "
        "have arrived (no release); or the end offset of its latest epoch as the leader tells it (one question, reply "
        "without epoch, undefined reply: HW); or the largest common (epoch, offset), found in several rounds; or the "
        "same found while fetching: each fetch carries the epoch of the last record, and a leader that disagrees "
        "answers with the diverging epoch and its end. A leader answers questions from leader-epoch on, and names the "
        "epoch from leader-epoch-rounds on; where it cannot, the follower falls back to its HW.",
        "ReplicaManager.makeFollowers 0.10.2; KIP-101 rejected alternatives; KIP-101 step 4, "
        "ReplicaFetcherThread.maybeTruncate 1.1; KIP-279, AbstractFetcherThread.getOffsetTruncationState 2.0.0; "
        "KIP-595, KAFKA-10554 (2.8), AbstractFetcherThread.truncateOnFetchResponse",
    ),
    "epoch_request_error": RuleSpec(
        ("high-watermark", "retries"),
        "What a follower does when its question for an epoch's end meets an error or a timeout: truncate to its HW "
        "(the text of KIP-279; no release), or ask again after the back-off.",
        "KIP-279 compatibility; AbstractFetcherThread.maybeTruncate from 0.11.0 on",
    ),
    "truncation_fencing": RuleSpec(
        ("no", "yes"),
        "Whether OffsetsForLeaderEpoch carries the follower's leader epoch, and the leader refuses another one with "
        "FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
        "KIP-320 (2.1), Partition.lastOffsetForLeaderEpoch",
    ),
    "truncate_at_leo": RuleSpec(
        ("keeps-epochs", "drops-epochs"),
        "Whether a truncation to the LEO or beyond, which removes no data, still removes cache entries that start "
        "there.",
        "UnifiedLog.truncateTo; KAFKA-10706 (2.7)",
    ),
    "epoch_recorded_at": RuleSpec(
        ("first-append", "election"),
        "When a leader writes its epoch into the cache: at its first append or when it is elected. The one change that "
        "moved it also made the cache remove contradicting entries where it had ignored new ones, and answer for an "
        "epoch below its first with (that epoch, first start offset) where it had no answer.",
        "KIP-101 step 3 asks for election; LeaderEpochFileCache, Log.append 0.11.0 to 2.0.0; KAFKA-7415 (2.0.1, 2.1.0)",
    ),
    # Fetching.
    "fetcher_restart": RuleSpec(
        ("leader-id-changed", "epoch-missed", "newer-epoch"),
        "Which LeaderAndIsr makes a follower truncate and fetch anew: one that names another leader; or also one that "
        "shows that a leader epoch was missed; or any newer leader epoch.",
        "Partition.makeFollower to 2.0.0; KAFKA-7164 (2.0.1); Partition.makeFollower 2.1",
    ),
    "fetch_fencing": RuleSpec(
        ("no", "last-epoch", "leader-epoch"),
        "What a leader compares in a follower's fetch: nothing; or the epoch of the follower's last record with its "
        "own log, so that one that disagrees must truncate first (the first draft of KIP-320; no release); or the "
        "follower's leader epoch with its own, refusing another one with FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
        "KIP-320 rejected alternatives, Kip320FirstTry.tla; KIP-320 (2.1), Partition.checkCurrentLeaderEpoch",
    ),
    "session_epoch": RuleSpec(
        ("first-fetch", "every-fetch"),
        "Which fetches of a fetch session carry the leader epoch: the first, full one, or every one.",
        "FetchSession.CachedPartition to 2.4.0; KAFKA-9338 (2.4.1, 2.5)",
    ),
    "fenced_fetcher": RuleSpec(
        ("removed", "failed", "retries"),
        "What becomes of a follower that is fenced under its own epoch: its partition leaves the fetcher, or is marked "
        "failed, until the next LeaderAndIsr; or it retries after the back-off (the text of KIP-320; no release).",
        "AbstractFetcherThread.processFetchRequest 2.1; onPartitionFenced 2.3; KIP-320 replica handling",
    ),
    "late_reply": RuleSpec(
        ("offset", "truncation-epoch", "leader-epoch"),
        "Which replies to requests of an earlier leader epoch a follower drops: fetches whose offset no longer fits; "
        "also answers about epochs; or all.",
        "AbstractFetcherThread.processFetchRequest; KIP-320 (2.1); KAFKA-18991 (4.1)",
    ),
    "append_check": RuleSpec(
        ("last-offset", "first-offset"),
        "Which offset of a batch a follower compares with its LEO before appending. By the last offset, a batch that "
        "begins below the LEO is taken, and offsets overlap.",
        "Log.append 0.10 (compressed sets); UnexpectedAppendOffsetException, UnifiedLog.append (KAFKA-6975)",
    ),
    "append_error": RuleSpec(
        ("thread-dies", "partition-fails"),
        "What an error while truncating or appending fetched batches ends: the fetcher thread with all its partitions, "
        "or the partition until the next leader change.",
        "ReplicaFetcherThread to 2.2; KIP-461 (2.3)",
    ),
    "overlap_recovery": RuleSpec(
        ("fails", "passes"),
        "Whether recovery after an unclean end fails on overlapping offsets, so that the broker cannot start.",
        "OffsetIndex.append InvalidOffsetException in LogSegment.recover (KAFKA-3919); not reachable later",
    ),
    "out_of_range": RuleSpec(
        ("halts", "truncates"),
        "What a follower does when the leader's LEO is below its own and unclean election is off: halt the broker, or "
        "truncate to the leader's LEO. No epoch is compared in either.",
        "ReplicaFetcherThread.handleOffsetOutOfRange to 2.0.0 (KAFKA-3410); KAFKA-7414 (2.0.1, 2.1.0)",
    ),
    # High watermark and ISR.
    "hw_needs_min_isr": RuleSpec(
        ("no", "yes"),
        "Whether the HW waits while the ISR is smaller than min.insync.replicas.",
        "Partition.maybeIncrementLeaderHW; KAFKA-15583 (3.7), KIP-966",
    ),
    "hw_needs_epoch": RuleSpec(
        ("no", "yes"),
        "Whether a leader counts, for the HW and for joining the ISR, only what followers of its own epoch fetch.",
        "KIP-320, Kip320.tla against Kip320FirstTry.tla; given by fetch_fencing=leader-epoch in releases",
    ),
    "isr_join": RuleSpec(
        ("high-watermark", "leader-epoch-start"),
        "What a follower's LEO must reach before it joins the ISR: the leader's HW, or also the start offset of the "
        "leader's epoch.",
        "Partition.maybeExpandIsr to 2.0.0; KAFKA-7128 (2.0.1, 2.1.0)",
    ),
    "isr_eligibility": RuleSpec(
        ("any", "alive", "registered"),
        "Who may join the ISR: anybody; or brokers that are alive in the leader's metadata; or brokers whose present "
        "registration is the one that fetched, which is checked where the ISR is persisted (and, if that is the "
        "controller, before it is asked).",
        "Partition.maybeExpandIsr to 3.2; KAFKA-14140 (3.3); KIP-841 (3.3), KIP-903 (3.5)",
    ),
    "isr_update": RuleSpec(
        ("zookeeper-write", "alter-partition"),
        "How a leader changes the ISR: it writes to ZooKeeper itself, conditional on the version that it knows, while "
        "the partition stands still; or it asks the controller, and meanwhile counts the members of both.",
        "ReplicationUtils.updateLeaderAndIsr to 2.6; KIP-497 (2.7), AlterPartitionManager",
    ),
    # Controller.
    "registration_epoch": RuleSpec(
        ("kept", "bumped"),
        "Whether the registration of a broker raises the leader epoch of its partitions, even if the leader stays (no "
        "release).",
        "KafkaController.onBrokerStartup; KIP-101, returning leaders",
    ),
    "missed_bounce": RuleSpec(
        ("unnoticed", "noticed"),
        "Whether controllers notice that a member of the ISR was started anew since it joined, by the processes that "
        "the ISR was written with: a new controller sees it as failure and start; who elects then waits for a member "
        "that ran all the time or, if all were started anew, takes the longest log. Otherwise a leader that lost its "
        "tail leads on (no release under ZooKeeper; in KRaft who registers anew is fenced first).",
        "PartitionStateMachine.initializePartitionState 2.6; ClusterControlManager.registerBroker",
    ),
    "broker_epoch": RuleSpec(
        ("ignored", "checked"),
        "Whether the controller tells a broker's registrations apart, sees a quick return as failure and start, and "
        "whether brokers refuse requests that were meant for their former registration.",
        "KafkaController to 2.1 (KAFKA-1120); KIP-380 (2.2)",
    ),
    "controller_writes": RuleSpec(
        ("unfenced", "fenced"),
        "Whether ZooKeeper refuses what a controller of an older epoch writes.",
        "KafkaController to 2.1 (KAFKA-6082); KafkaZkClient.retryRequestsUntilConnected, controller epoch (2.2)",
    ),
    "controller_startup": RuleSpec(
        ("live-replicas", "all-replicas"),
        "Which replicas a new controller looks at first: those on live brokers, which are told how things stand; or "
        "also those on dead ones, which leave the ISR.",
        "ReplicaStateMachine.startup 2.0.0; ReplicaStateMachine.startup 2.6",
    ),
    "broker_metadata": RuleSpec(
        ("last-arrived", "last-sent"),
        "Which UpdateMetadata a broker goes by: the one that arrived last, though it may be the copy of an older one, "
        "left behind in a connection that was given up (no release compares them; who is not alive by such a copy is "
        "not followed when it leads); or the one that its controller sent last (in KRaft metadata has offsets).",
        "MetadataCache.updateMetadata, ControllerChannelManager 2.6; BrokerMetadataListener",
    ),
    "stop_replica": RuleSpec(
        ("unchecked", "checked"),
        "Whether a broker refuses a StopReplica of an older leader epoch.",
        "KIP-570 (2.6), KAFKA-9539",
    ),
    # Clients.
    "list_offsets_guard": RuleSpec(
        ("no", "yes"),
        "Whether a new leader answers OFFSET_NOT_AVAILABLE to ListOffsets(latest) while its HW is below the start "
        "offset of its epoch.",
        "KIP-207 (2.2), Partition.fetchOffsetForTimestamp",
    ),
    "list_offsets_fencing": RuleSpec(
        ("no", "yes"),
        "Whether ListOffsets and fetches of clients carry the leader epoch of their metadata, and a leader refuses "
        "another one.",
        "KIP-320 (2.1 brokers, 2.3 clients), Partition.checkCurrentLeaderEpoch",
    ),
    "client_metadata": RuleSpec(
        ("latest-received", "newest-epoch"),
        "Which metadata a client keeps: the one received last, or the one with the newest leader epoch.",
        "KIP-232; KIP-320, Metadata.updateLastSeenEpochIfNewer (2.3)",
    ),
    "consumer_validation": RuleSpec(
        ("no", "yes"),
        "Whether a consumer that learns of a new leader or epoch asks it where the epoch of its last record ended, and "
        "goes back if that is before its position.",
        "KIP-320 (2.3), SubscriptionState.maybeValidatePositionForCurrentLeader",
    ),
    "producer_dedup": RuleSpec(
        ("no", "yes"),
        "Whether brokers remember the last five batches of each idempotent producer, and answer a repetition without "
        "appending it.",
        "KIP-98 (0.11), ProducerStateManager, ProducerAppendInfo",
    ),
    "producer_recovery": RuleSpec(
        ("new-producer-id", "epoch-bump"),
        "What an idempotent producer does when its sequence is refused: start anew with another producer id, or with "
        "the next producer epoch.",
        "Sender, TransactionManager.resetProducerId to 2.4; KIP-360 (2.5)",
    ),
    # KRaft.
    "control_plane": RuleSpec(
        ("zookeeper", "kraft"),
        "Who decides and how brokers hear of it: a controller elected in ZooKeeper, with requests to each broker; or a "
        "quorum of controllers, whose committed metadata each broker replays in order.",
        "KafkaController to 3.9; KIP-500, QuorumController, BrokerMetadataPublisher",
    ),
    "stale_fetch": RuleSpec(
        ("served", "refused"),
        "What a leader does with a fetch of another registration than its metadata shows: serve it, or refuse it, so "
        "that it does not count for the ISR.",
        "Partition.updateFollowerFetchState; KAFKA-15221 (3.5.2, 3.7)",
    ),
    "isr_shrink_epoch": RuleSpec(
        ("bumped", "kept"),
        "Whether a smaller ISR raises the leader epoch though the leader stays.",
        "PartitionChangeBuilder.triggerLeaderEpochBumpForIsrShrinkIfNeeded; KAFKA-15021 (3.6)",
    ),
    "reassignment_completes": RuleSpec(
        ("adding-in-isr", "targets-in-isr", "min-isr"),
        "When a reassignment completes: once the replicas that it adds are in the ISR, which may be left with one "
        "member; or once all replicas of the new assignment are; or (the text of KIP-966) once those that it adds are "
        "and the ISR has min.insync.replicas members, which a cancellation needs, too.",
        "PartitionReassignmentReplicas.maybeCompleteReassignment to 3.7; KAFKA-15665 (3.8); KIP-966 other behaviors 4",
    ),
    "elr": RuleSpec(
        ("off", "on"),
        "Whether replicas that leave an ISR below min.insync.replicas stay eligible for election, and the ISR may "
        "become empty.",
        "KIP-966, PartitionChangeBuilder.maybePopulateTargetElr (4.0, on by default for new clusters from 4.1)",
    ),
    "last_known_elr": RuleSpec(
        ("leader", "ejected-members"),
        "Who is remembered once ISR and ELR are empty: the last leader, until there is another; or also ELR members "
        "that registered after an unclean shutdown, until the ISR has min ISR members again.",
        "PartitionChangeBuilder.maybeUpdateLastKnownLeader (4.0); KIP-966 other behaviors 6a",
    ),
    "last_known_leader": RuleSpec(
        ("fenced-too", "unfenced"),
        "Which last known leader is elected when ISR and ELR are empty: any; or one that is not fenced.",
        "PartitionChangeBuilder.electAnyLeader 4.0; KAFKA-19522 (4.1)",
    ),
    "clean_shutdown": RuleSpec(
        ("ignored", "checked"),
        "Whether a registration that names the broker epoch of the one before it, from the clean-shutdown file, counts "
        "as clean; otherwise every new incarnation counts as unclean.",
        "KIP-966 detection of an unclean shutdown; ClusterControlManager.registerBroker, KAFKA-18635 (4.0)",
    ),
    "clean_shutdown_file": RuleSpec(
        ("always", "loaded-only"),
        "Whether a broker that stops before its logs are loaded leaves a clean-shutdown file.",
        "LogManager.shutdown; KAFKA-15375 (3.6), KAFKA-10471",
    ),
    "min_isr_change": RuleSpec(
        ("keeps-elr", "clears-elr", "clears-if-enough"),
        "Whether a change of min.insync.replicas clears the ELR: never, always, or if the ISR is as large as the new "
        "value asks. If it is always cleared, who left a small ISR is forgotten though the ISR is still small.",
        "ReplicationControlManager 4.0 snapshot; KAFKA-16540 (4.0); KIP-966 other behaviors 2 (no release)",
    ),
    "unclean_registration": RuleSpec(
        ("removes", "transitions"),
        "What an unclean registration does to a partition whose ISR or ELR holds the broker: with ELR it is taken out "
        "of the lists and nothing else (no release), and without ELR nothing happens; or the partition changes as "
        "after any other event, with an election and a leader epoch where they are due.",
        "ReplicationControlManager.handleBrokerUncleanShutdown to 3.9; KAFKA-18106 (4.0; with ELR before)",
    ),
    "unclean_recovery": RuleSpec(
        ("election", "first-replies", "log-inspection"),
        "What happens when neither ISR nor ELR can lead: an unclean election, if allowed; or the longest of the logs "
        "that answered first (rejected by the KIP); or, as unclean.recovery.strategy says, the longest log of those "
        "that have to answer.",
        "ReplicationControlManager; KIP-966 rejected alternatives; KIP-966 unclean recovery (no release)",
    ),
    "isr_floor": RuleSpec(
        ("none", "min-isr"),
        "Whether controller and leader keep members in an ISR that would fall below min.insync.replicas, unless they "
        "registered after an unclean shutdown.",
        "KIP-966 rejected alternatives, soft min ISR (no release)",
    ),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """A full set of rule values; names and values are those of `RULES`."""

    follower_truncation: str
    epoch_request_error: str
    truncation_fencing: str
    truncate_at_leo: str
    epoch_recorded_at: str
    fetcher_restart: str
    fetch_fencing: str
    session_epoch: str
    fenced_fetcher: str
    late_reply: str
    append_check: str
    append_error: str
    overlap_recovery: str
    out_of_range: str
    hw_needs_min_isr: str
    hw_needs_epoch: str
    isr_join: str
    isr_eligibility: str
    isr_update: str
    registration_epoch: str
    missed_bounce: str
    broker_epoch: str
    controller_writes: str
    controller_startup: str
    broker_metadata: str
    stop_replica: str
    list_offsets_guard: str
    list_offsets_fencing: str
    client_metadata: str
    consumer_validation: str
    producer_dedup: str
    producer_recovery: str
    control_plane: str
    stale_fetch: str
    isr_shrink_epoch: str
    reassignment_completes: str
    elr: str
    last_known_elr: str
    last_known_leader: str
    clean_shutdown: str
    clean_shutdown_file: str
    min_isr_change: str
    unclean_registration: str
    unclean_recovery: str
    isr_floor: str

    def __post_init__(self) -> None:
        for field in fields(self):
            check(field.name, getattr(self, field.name))

    def override(self, values: Mapping[str, str]) -> Rules:
        """These rules with some values replaced.

        Raises:
            InputError: unknown rule or value.
        """
        for name, value in values.items():
            check(name, value)
        return replace(self, **values) if values else self

    def as_dict(self) -> dict[str, str]:
        """Rule name -> value, in the order of `RULES`."""
        return {name: getattr(self, name) for name in RULES}


def check(name: str, value: str) -> None:
    """Refuse an unknown rule or value.

    Raises:
        InputError: names the nearest valid one.
    """
    spec = RULES.get(name)
    if spec is None:
        raise InputError(f"unknown rule {name!r}{did_you_mean(name, RULES)}")
    if value not in spec.values:
        raise InputError(f"rule {name} has no value {value!r}{did_you_mean(value, spec.values)}")


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` words.

    Raises:
        InputError: all that is wrong with them.
    """
    return parse_pairs(pairs, "--rule", "NAME=VALUE", _checked)


def _checked(name: str, value: str) -> str:
    check(name, value)
    return value
