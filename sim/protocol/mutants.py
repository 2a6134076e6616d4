"""The zoo: mutants of the protocol, each of which breaks one place that a Kafka release, or a specification, has right.

A mutant is the value of `sim.protocol.rules.Rules.mutant`. The mutated place asks its `Mutation` last, in a situation
in which the mutant acts differently, so a run without a mutant pays nothing for it, and knows nevertheless which
mutants would have acted differently (`Mutations.differed`)::

    if follower.leo < self.hw and not self.decide.mutants.join_below_hw.differs():

Up to the first such situation a run with the mutant equals the run without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

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
    """

    name: str
    sentence: str
    source: str
    place: str
    tier: int
    scenario: str
    mode: str

    @property
    def budget(self) -> int:
        """Number of seeds within which random runs should find it."""
        return _BUDGETS[self.tier]


_BUDGETS: Final = {1: 10_000, 2: 1_000_000}
_ELR: Final = ("elr-chaos", "elr-repaired")
_ZOOKEEPER: Final = ("chaos", "kip320-repaired")

MUTANTS: Final[dict[str, Mutant]] = {
    one.name: one
    for one in (
        Mutant(
            "registration-of-another-request",
            "A starting broker accepts the response to a registration request that is not its current one.",
            f"CHECK in {SPECIFICATION}, ReceiveBrokerRegResponse",
            "BrokerLifecycleManager.BrokerRegistrationResponseHandler#onComplete",
            2,
            *_ELR,
        ),
        Mutant(
            "leo-from-earlier-leadership",
            "A new leader begins with the LEOs of followers that it knew when it led before.",
            f"CHECK in {SPECIFICATION}, BecomeLeaderInNewEpoch",
            "Replica#resetReplicaState",
            2,
            *_ELR,
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
            *_ELR,
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
            *_ELR,
        ),
        Mutant(
            "alter-partition-of-earlier-registration",
            "The controller accepts an AlterPartition that adds a broker with the broker epoch of an earlier process.",
            f"CHECK in {SPECIFICATION}, ValidateAlterPartitionRequest; KIP-903",
            "ReplicationControlManager#ineligibleReplicasForIsr",
            2,
            *_ELR,
        ),
        Mutant(
            "alter-partition-of-earlier-partition-epoch",
            "The controller accepts an AlterPartition that was sent before the partition last changed.",
            f"CHECK in {SPECIFICATION}, ValidateAlterPartitionRequest; KAFKA-2729",
            "ReplicationControlManager#validateAlterPartitionData",
            1,
            *_ELR,
        ),
    )
}
"""Name -> mutant."""


def named(name: str) -> Mutant:
    """The mutant of that name; raises InputError with the nearest name if there is none."""
    if name not in MUTANTS:
        raise InputError(f"unknown mutant {name!r}{did_you_mean(name, MUTANTS)}")
    return MUTANTS[name]


@final
class Mutation:
    """A place that a mutant breaks.

    Attributes:
        is_on: whether the mutant is on.
        took: whether the place was executed.
        differed: whether the mutant's answer differed from the right one.
    """

    __slots__ = ("differed", "is_on", "took")

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self.took = False
        self.differed = False

    def differs(self) -> bool:
        """Ask, in a situation in which the mutant acts differently, whether it is on."""
        self.took = self.differed = True
        return self.is_on


@final
class Mutations:
    """All places that mutants break, as attributes with the mutants' names.

    Args:
        mutant: the one that is on, or `NO_MUTANT`.
    """

    def __init__(self, mutant: str) -> None:
        self._mutant = mutant
        self.by_name: dict[str, Mutation] = {}
        self.registration_of_another_request = self._of("registration-of-another-request")
        self.leo_from_earlier_leadership = self._of("leo-from-earlier-leadership")
        self.fetch_continues_in_new_epoch = self._of("fetch-continues-in-new-epoch")
        self.join_without_fetch = self._of("join-without-fetch")
        self.join_below_hw = self._of("join-below-hw")
        self.join_below_epoch_start = self._of("join-below-epoch-start")
        self.fetch_response_at_another_offset = self._of("fetch-response-at-another-offset")
        self.fetch_response_of_earlier_epoch = self._of("fetch-response-of-earlier-epoch")
        self.alter_partition_of_earlier_registration = self._of("alter-partition-of-earlier-registration")
        self.alter_partition_of_earlier_partition_epoch = self._of("alter-partition-of-earlier-partition-epoch")

    def _of(self, name: str) -> Mutation:
        mutation = self.by_name[name] = Mutation(is_on=name == self._mutant)
        return mutation

    @property
    def took(self) -> set[str]:
        """The mutants whose places were executed."""
        return {name for name, mutation in self.by_name.items() if mutation.took}

    @property
    def differed(self) -> set[str]:
        """The mutants whose answers differed, or would have, from the right ones."""
        return {name for name, mutation in self.by_name.items() if mutation.differed}
