"""The zoo: mutants of the protocol, each of which breaks one place that a Kafka release, or a specification, has right.

A mutant is the value of `sim.protocol.rules.Rules.mutant`. The mutated place asks its `Mutation`, with the situation in
which the mutant acts differently, or with the condition that it drops::

    if self.decide.mutants.read_above_hw.when(self.hw < self.log.leo):
    if self.decide.mutants.join_below_hw.keeps(follower.leo < self.hw):

Up to the first such situation a run with the mutant equals the run without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sim.config import Value
from sim.errors import InputError, did_you_mean

NO_MUTANT: Final = "none"
"""The value of `Rules.mutant` in all modes."""
SPECIFICATION: Final = "kafka_replication_kip_966.tla"
"""Vanlightly's specification of KIP-966, which marks the conditions that its author checked by removing them."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant.

    Attributes:
        name: the value of `Rules.mutant`.
        sentence: what the mutant does, in one sentence.
        source: ticket, proposal or specification that has the condition.
        place: what the mutant breaks: Kafka's class and method.
        tier: 1: random runs should find it within 10,000 seeds; 2: within 1,000,000.
        scenario: in which it is hunted.
        mode: the repaired mode in which it is hunted, and in which nothing is found without it.
        settings: laid over those of the scenario: (key, value).
    """

    name: str
    sentence: str
    source: str
    place: str
    tier: int
    scenario: str
    mode: str
    settings: tuple[tuple[str, Value], ...] = ()


_ELR: Final = ("elr-chaos", "elr-repaired")
_ELR_CHAOS: Final = ("chaos", "elr-repaired")
_OVERTAKING: Final = ("overtaking", "elr-repaired")
_WINDOWS: Final = ("windows", "elr-repaired")
_ZOOKEEPER: Final = ("chaos", "kip320-repaired")
_IDEMPOTENT: Final = (("enable.idempotence", True), ("acks", "all"))

MUTANTS: Final[dict[str, Mutant]] = {
    one.name: one
    for one in (
        Mutant(
            "registration-of-another-request",
            "A starting broker accepts the response to a registration request that is not its current one.",
            f"CHECK in {SPECIFICATION}, ReceiveBrokerRegResponse",
            "BrokerLifecycleManager.BrokerRegistrationResponseHandler#onComplete",
            2,
            *_OVERTAKING,
        ),
        Mutant(
            "leo-from-earlier-leadership",
            "A new leader begins with the LEOs of followers that it knew when it led before.",
            f"CHECK in {SPECIFICATION}, BecomeLeaderInNewEpoch",
            "Replica#resetReplicaState",
            2,
            *_WINDOWS,
        ),
        Mutant(
            "fetch-continues-in-new-epoch",
            "A follower whose leader stays continues to fetch in a newer leader epoch, without truncating first.",
            f"CHECK in {SPECIFICATION}, AddPartitionToFetcher; KAFKA-7164",
            "Partition#makeFollower",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "join-without-fetch",
            "A leader that expands the ISR also adds live followers that have not fetched from it yet.",
            f"CHECK in {SPECIFICATION}, FollowerIsCaughtUp",
            "Partition#maybeExpandIsr",
            1,
            *_ELR,
        ),
        Mutant(
            "join-below-hw",
            "A follower joins the ISR although its LEO is below the leader's high watermark.",
            f"CHECK in {SPECIFICATION}, FollowerIsCaughtUp",
            "Partition#isFollowerInSync",
            1,
            *_ELR,
        ),
        Mutant(
            "join-below-epoch-start",
            "A follower joins the ISR although its LEO is below the start offset of the leader epoch.",
            f"CHECK in {SPECIFICATION}, FollowerIsCaughtUp; KAFKA-7128",
            "Partition#isFollowerInSync",
            2,
            *_ELR_CHAOS,
        ),
        Mutant(
            "fetch-response-at-another-offset",
            "A follower processes a fetch response although its LEO is no longer the offset that it asked for.",
            f"CHECK in {SPECIFICATION}, ReceiveFetchResponse",
            "AbstractFetcherThread#processFetchRequest",
            2,
            *_ELR,
        ),
        Mutant(
            "fetch-response-of-earlier-epoch",
            "A follower processes the response to a fetch of an earlier leader epoch.",
            f"CHECK in {SPECIFICATION}, ReceiveFetchResponse; KAFKA-18991",
            "AbstractFetcherThread#processFetchRequest",
            2,
            *_OVERTAKING,
        ),
        Mutant(
            "alter-partition-of-earlier-registration",
            "The controller accepts an AlterPartition that adds a broker with the broker epoch of an earlier process.",
            f"CHECK in {SPECIFICATION}, ValidateAlterPartitionRequest; KIP-903",
            "ReplicationControlManager#ineligibleReplicasForIsr",
            2,
            *_OVERTAKING,
        ),
        Mutant(
            "alter-partition-of-earlier-partition-epoch",
            "The controller accepts an AlterPartition that was sent before the partition last changed.",
            f"CHECK in {SPECIFICATION}, ValidateAlterPartitionRequest; KAFKA-2729",
            "ReplicationControlManager#validateAlterPartitionData",
            1,
            *_OVERTAKING,
        ),
        Mutant(
            "ack-before-replication",
            "A leader acknowledges a write with acks=all as soon as it has appended it.",
            "KAFKA-50; acks=all waits for the ISR",
            "ReplicaManager#appendRecords",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "writes-kept-after-resignation",
            "A broker that stops leading keeps the writes that wait, and answers them when it leads again.",
            "KAFKA-20634",
            "ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "gap-in-sequences-accepted",
            "A leader appends a batch of an idempotent producer although an earlier one is missing.",
            "KIP-98, KAFKA-5494",
            "ProducerAppendInfo#checkSequence",
            1,
            *_ZOOKEEPER,
            _IDEMPOTENT,
        ),
        Mutant(
            "only-newest-batch-deduplicated",
            "A leader compares a batch of an idempotent producer only with the newest one, not with the last five.",
            "KAFKA-5494",
            "ProducerStateEntry#findDuplicateBatch",
            1,
            *_ZOOKEEPER,
            _IDEMPOTENT,
        ),
        Mutant(
            "hw-ignores-min-isr",
            "The high watermark advances while the ISR is smaller than min.insync.replicas.",
            "KAFKA-15583, KIP-966",
            "Partition#maybeIncrementLeaderHW",
            1,
            *_ELR,
        ),
        Mutant(
            "hw-without-joining-members",
            "The high watermark does not wait for a member of an ISR that is only proposed yet.",
            "KIP-497, maximal ISR; KAFKA-13790",
            "PartitionState#maximalIsr",
            2,
            *_WINDOWS,
        ),
        Mutant(
            "hw-without-leaving-members",
            "The high watermark no longer waits for an ISR member once the leader has proposed an ISR without it.",
            "KIP-497, maximal ISR",
            "PartitionState#maximalIsr",
            1,
            *_WINDOWS,
        ),
        Mutant(
            "hw-from-leo-at-restart",
            "A replica that is loaded begins with its LEO as high watermark, not with the checkpointed one.",
            "KAFKA-1647, KAFKA-769",
            "ReplicaManager#getOrCreatePartition",
            2,
            "rolling",
            "kip320-repaired",
        ),
        Mutant(
            "epoch-not-recorded-by-follower",
            "A follower does not add the leader epoch of a fetched batch to its cache.",
            "KIP-101 step 2",
            "UnifiedLog#append",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "epochs-kept-at-truncation",
            "A truncation keeps the leader epochs of the removed records in the cache.",
            "KIP-101 step 3",
            "LeaderEpochFileCache#truncateFromEnd",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "hw-kept-at-full-truncation",
            "A full truncation does not set the high watermark to the new log start.",
            "KAFKA-9491",
            "UnifiedLog#truncateFullyAndStartAt",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "log-start-above-hw",
            "Retention deletes records above the high watermark, and the log start advances beyond it.",
            "KAFKA-5634",
            "UnifiedLog#deletableSegments",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "end-of-next-epoch",
            "A leader that is asked where a leader epoch ended answers with the end of the next one.",
            "KIP-101 step 2, KIP-279",
            "LeaderEpochFileCache#endOffsetFor",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "read-above-hw",
            "A consumer reads records above the high watermark.",
            "KAFKA-9835",
            "UnifiedLog#read",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "list-offsets-above-hw",
            "ListOffsets answers a consumer with the LEO instead of the high watermark.",
            "KAFKA-2334, KIP-207",
            "Partition#fetchOffsetForTimestamp",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "hw-of-diverging-response",
            "A follower applies the high watermark of a diverging response before it truncates.",
            "KAFKA-14704",
            "ReplicaFetcherThread#processPartitionData",
            2,
            *_ELR,
        ),
        Mutant(
            "clean-stop-without-flush",
            "A controlled shutdown writes the clean-shutdown file without flushing the log.",
            "KAFKA-10471, KAFKA-15375",
            "LogManager#shutdown",
            1,
            "power",
            "elr-repaired",
        ),
        Mutant(
            "epoch-0-not-recovered",
            "Recovery after an unclean shutdown does not restore leader epoch 0 to the cache.",
            "KAFKA-10432",
            "LogLoader#recoverSegment",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "unclean-registration-taken-for-clean",
            "The controller takes every registration for one after a clean shutdown.",
            "KIP-966; KAFKA-18635",
            "ClusterControlManager#registerBroker",
            1,
            *_ELR,
        ),
        Mutant(
            "elr-kept-at-min-isr",
            "The ELR is kept although the ISR has min.insync.replicas members again.",
            "KIP-966, ELR update 1; KAFKA-16540",
            "PartitionChangeBuilder#maybePopulateTargetElr",
            1,
            *_ELR,
        ),
        Mutant(
            "elr-keeps-unclean-member",
            "A broker that registers after an unclean shutdown leaves the ISR and stays, or comes, into the ELR.",
            "KIP-966, ELR update 4",
            "PartitionChangeBuilder#maybePopulateTargetElr",
            1,
            *_ELR,
        ),
        Mutant(
            "election-outside-isr",
            "The controller elects any unfenced replica, whether it is in the ISR, in the ELR, or in neither.",
            "LeaderInIsr, Gustafson's Kip320.tla",
            "PartitionChangeBuilder#isValidNewLeader",
            1,
            *_ELR,
        ),
        Mutant(
            "last-known-leader-forgotten",
            "The controller does not remember the last known leader when ISR and ELR become empty.",
            "KIP-966 part 1; KAFKA-19522",
            "PartitionChangeBuilder#maybeUpdateLastKnownLeader",
            2,
            "operations",
            "elr-repaired",
        ),
        Mutant(
            "isr-written-over-newer-version",
            "ZooKeeper accepts the ISR of a leader that does not know the partition's newest state.",
            "KAFKA-1382, KAFKA-2729",
            "ReplicationUtils#updateLeaderAndIsr",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "request-of-former-controller",
            "A broker obeys requests of a controller that was replaced.",
            "KAFKA-6082",
            "KafkaApis#handleLeaderAndIsrRequest",
            2,
            *_ZOOKEEPER,
        ),
        Mutant(
            "preferred-leader-outside-isr",
            "A preferred election elects a replica that is not in the ISR.",
            "PreferredReplicaPartitionLeaderElectionStrategy",
            "PartitionLeaderElectionAlgorithms#preferredReplicaPartitionLeaderElection",
            1,
            *_ZOOKEEPER,
        ),
        Mutant(
            "restored-setting-not-recorded",
            "The controller writes no record of a setting that is set back to the value of its static configuration.",
            "KIP-339; KAFKA-14136",
            "ConfigurationControlManager#incrementalAlterConfigResource",
            1,
            "operations",
            "elr-repaired",
        ),
    )
}
"""Name -> mutant."""


def named(name: str) -> Mutant:
    """The mutant of that name; raises InputError with the nearest name if there is none."""
    if name not in MUTANTS:
        raise InputError(f"unknown mutant {name!r}{did_you_mean(name, MUTANTS)}")
    return MUTANTS[name]
