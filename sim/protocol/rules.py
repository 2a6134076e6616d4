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
    "follower_truncation": RuleSpec(
        ("high-watermark", "leader-epoch", "leader-epoch-rounds"),
        "What a new follower truncates to: its own HW at once; or the end offset of its latest epoch as the leader "
        "tells it (one question, reply without epoch, undefined reply: HW); or the largest common (epoch, offset), "
        "found in several rounds. A leader answers such questions from leader-epoch on; where it cannot, the follower "
        "falls back to its HW.",
        "ReplicaManager.makeFollowers 0.10.2; KIP-101 step 4, ReplicaFetcherThread.maybeTruncate 1.1; "
        "KIP-279, AbstractFetcherThread.getOffsetTruncationState 2.0.0",
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
    "fetcher_restart": RuleSpec(
        ("leader-id-changed", "newer-epoch"),
        "Which LeaderAndIsr makes a follower truncate and fetch anew: one that names another leader, or any newer "
        "leader epoch.",
        "Partition.makeFollower to 2.0.0; KAFKA-7164 and later Partition.makeFollower",
    ),
    "late_reply": RuleSpec(
        ("offset", "leader-epoch"),
        "Which replies to requests of an earlier leader epoch a follower drops: those whose fetch offset no longer "
        "fits, or all.",
        "AbstractFetcherThread.processFetchRequest; KIP-320 for truncation replies, KAFKA-18991 for fetches",
    ),
    "append_check": RuleSpec(
        ("last-offset", "first-offset"),
        "Which offset of a batch a follower compares with its LEO before appending. By the last offset, a batch that "
        "begins below the LEO is taken, and offsets overlap.",
        "Log.append 0.10 (compressed sets); UnexpectedAppendOffsetException, UnifiedLog.append (KAFKA-6975)",
    ),
    "append_error": RuleSpec(
        ("thread-dies", "partition-fails"),
        "What an error while appending fetched batches ends: the fetcher thread with all its partitions, or the "
        "partition until the next leader change.",
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
    "hw_needs_min_isr": RuleSpec(
        ("no", "yes"),
        "Whether the HW waits while the ISR is smaller than min.insync.replicas.",
        "Partition.maybeIncrementLeaderHW; KAFKA-15583 (3.7), KIP-966",
    ),
    "isr_join": RuleSpec(
        ("high-watermark", "leader-epoch-start"),
        "What a follower's LEO must reach before it joins the ISR: the leader's HW, or also the start offset of the "
        "leader's epoch.",
        "Partition.maybeExpandIsr to 2.0.0; KAFKA-7128 (2.0.1, 2.1.0)",
    ),
    "isr_eligibility": RuleSpec(
        ("any", "registered"),
        "Whom the control plane lets into the ISR: anybody the leader names, or only brokers whose session is open "
        "and whose incarnation is the one that fetched.",
        "KIP-841 (3.3), KIP-903 (3.5)",
    ),
    "list_offsets_guard": RuleSpec(
        ("no", "yes"),
        "Whether a new leader answers OFFSET_NOT_AVAILABLE to ListOffsets(latest) while its HW is below the start "
        "offset of its epoch.",
        "KIP-207 (2.2), Partition.fetchOffsetForTimestamp",
    ),
    "fetch_fencing": RuleSpec(
        ("no", "yes"),
        "Whether requests of a follower carry its leader epoch, and the leader refuses another one with "
        "FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
        "KIP-320 (2.1), Partition.checkCurrentLeaderEpoch",
    ),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """A full set of rule values; names and values are those of `RULES`."""

    follower_truncation: str
    truncate_at_leo: str
    epoch_recorded_at: str
    fetcher_restart: str
    late_reply: str
    append_check: str
    append_error: str
    overlap_recovery: str
    out_of_range: str
    hw_needs_min_isr: str
    isr_join: str
    isr_eligibility: str
    list_offsets_guard: str
    fetch_fencing: str

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
