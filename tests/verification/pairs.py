"""``python -m tests.verification.pairs``: which combinations of two features no random scenario can draw.

A *feature* is something in which seeds differ: a kind of fault, an incident pattern, a value of a setting that is not
the default, or a property of the topology. What each random scenario can draw follows from its file. A pair that no
scenario can draw hides every failure that needs both.

``--seeds N`` also draws N seeds of `everything`, without running them, and counts the pairs that occur.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

from faults.bounds import SHARES
from scenarios.format.catalogue import load, names
from scenarios.single.execution import Execution
from sim.config import KEYS, NEVER, Value, shown
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.format.scenario import Scenario, Topic

FAULT: Final = "fault"
REQUEST: Final = "request"
INCIDENT: Final = "incident"
SETTING: Final = "setting"
CLIENT: Final = "client"
TOPOLOGY: Final = "topology"

REQUESTS: Final = (
    *(
        "preferred-election",
        "admin-election",
        "reassignment",
        "reassignment-cancel",
        "min-isr-change",
        "feature-change",
    ),
    *("unclean-election-change", "unregistration", "record-deletion", "topic-creation", "topic-deletion"),
    *("partition-creation", "directory-move", "directory-cordoned", "move-throttle"),
)
"""Kinds of fault that an administrator asks for."""
CLIENTS: Final = (
    *(
        "acks",
        "auto.offset.reset",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "metadata.max.age.ms",
    ),
    *(
        "sim.end.offsets.interval.ms",
        "sim.partition.discovery",
        "sim.producer.failure",
        "sim.producer.shared",
        "sim.producers",
    ),
)
"""Settings of producers and consumers."""
NUMBERS: Final = (
    "default.replication.factor",
    "min.insync.replicas",
    "sim.log.dirs",
    "sim.spare.brokers",
    "sim.producers",
)
"""Settings each value of which is a feature; of other numbers, whether it is below or above the default."""
EVERYTHING: Final = "everything"

OF_ALL_RUNS: Final = "it is the same in all seeds of a scenario, and slows or changes each run: "
REASONS: Final = {
    "controllers as processes": OF_ALL_RUNS
    + "such a run takes ten times as long; `quorum` and `datacenter` draw what strikes controllers",
    "quorum-state-lost": "it needs controllers as processes",
    "snapshots-lost": "it needs controllers as processes",
    "remove-controller": "it needs controllers as processes",
    "metadata.log.max.snapshot.interval.ms below its default": "it needs controllers as processes",
    "metadata.max.retention.ms below its default": "it needs controllers as processes",
    "brokers of several releases": OF_ALL_RUNS + "with it, no run would be of one release; `rolling` draws upgrades",
    "acks=1": "Kafka refuses it with `enable.idempotence`, and the checkers judge acks=all only; `chaos` draws it",
}
"""Feature -> why it does not meet all others."""


@dataclass(frozen=True, slots=True, order=True)
class Feature:
    """See above.

    Attributes:
        group: kind of fault, request of an administrator, incident pattern, setting, setting of a client, or topology.
        name: its name.
        key: two features with the same key exclude each other; empty: none does.
    """

    group: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.group} {self.name}"

    def meets(self, other: Feature) -> bool:
        """Whether a run can have both."""
        return not self.key or self.key != other.key


Pair = tuple[Feature, Feature]


@cache
def random_scenarios() -> list[Scenario]:
    """All bundled ones."""
    return [scenario for scenario in map(load, names()) if scenario.drawn]


def of_fault(kind: str) -> Feature:
    """That of a kind of fault."""
    return Feature(REQUEST if kind in REQUESTS else FAULT, kind)


def of_setting(key: str, value: Value) -> Feature | None:
    """That of a setting; None for the default."""
    default = KEYS[key].default
    if value == default and type(value) is type(default):
        return None
    group = CLIENT if key in CLIENTS else SETTING
    if isinstance(value, int) and not isinstance(value, bool) and key not in NUMBERS and value != NEVER:
        return Feature(group, f"{key} {'below' if value < int(default) else 'above'} its default", key)
    return Feature(group, f"{key}={shown(value)}", key)


def of_topology(scenario: Scenario, topics: tuple[Topic, ...]) -> Iterator[Feature]:
    """Those of brokers, racks and topics, if the cluster has these topics."""
    place = scenario.topology
    flags = {
        "racks": place is not None and len(place.racks) > 1,
        "power domains": place is not None and bool(place.power_domains),
        "hosts": place is not None and bool(place.hosts),
        "controllers as processes": scenario.controller_count > 0,
        "brokers of several releases": bool(scenario.upgraded_from),
        "several topics": len(topics) > 1,
        "a topic with several partitions": any(topic.partitions > 1 for topic in topics),
        "a topic with a replication factor of its own": any(topic.replication_factor for topic in topics),
        "a topic with a min.insync.replicas of its own": any(topic.config for topic in topics),
        "a topic that is created later": any(not topic.created for topic in topics),
        # Partitions of one topic differ while, and after, some of them are reassigned to another number of brokers.
        "partitions of one topic with different replication factors": _differ(scenario, topics),
    }
    return (Feature(TOPOLOGY, name) for name, is_given in flags.items() if is_given)


def _differ(scenario: Scenario, topics: tuple[Topic, ...]) -> bool:
    faults = scenario.faults
    assert faults is not None
    several = any(topic.partitions > 1 for topic in topics) or "partition-creation" in faults.kinds
    return several and "reassignment" in faults.kinds and faults.others_percent > 0


def features(scenario: Scenario) -> frozenset[Feature]:
    """What seeds of a random scenario can have."""
    faults = scenario.faults
    assert faults is not None
    found = {of_fault(kind) for kind in faults.kinds}
    shares = [share for share in (*SHARES, "one_directory_percent", "others_percent") if getattr(faults, share)]
    found.update(Feature(INCIDENT, share.removesuffix("_percent")) for share in shares)
    values = [(key, value) for key, values in scenario.draw_config.items() for value in values]
    found.update(filter(None, (of_setting(key, value) for key, value in (*scenario.config.items(), *values))))
    found.update(of_topology(scenario, scenario.topics))
    return frozenset(found)


def all_pairs() -> list[Pair]:
    """All pairs of features of any random scenario that a run can have."""
    every = sorted(frozenset[Feature]().union(*map(features, random_scenarios())))
    return [(one, other) for one, other in combinations(every, 2) if one.meets(other)]


def undrawn(without: str = "") -> list[Pair]:
    """Those that no scenario can draw, perhaps without one of them."""
    found = [features(scenario) for scenario in random_scenarios() if scenario.name != without]
    return [pair for pair in all_pairs() if not any(pair[0] in one and pair[1] in one for one in found)]


def reason(pair: Pair) -> str:
    """Why no scenario can draw it; empty: there is none."""
    return next((REASONS[feature.name] for feature in pair if feature.name in REASONS), "")


def occurring(scenario: Scenario, seed: int) -> frozenset[Feature]:
    """What a seed has, as far as it shows before the run."""
    run = Execution(scenario, mode_named("elr-repaired"), seed, {}, None)
    run._begin()  # Draws the plan, and runs nothing.
    found = {of_fault(fault.kind) for fault in run.plan.faults}
    found.update(filter(None, (of_setting(key, value) for key, value in {**scenario.config, **run.drawn}.items())))
    found.update(of_topology(scenario, tuple(run.topics)))
    run.dispose()
    return frozenset(found)


def seeds_with(scenario: Scenario, seeds: int) -> Counter[Pair]:
    """Pair -> the number of seeds that have it."""
    counts: Counter[Pair] = Counter()
    for seed in range(seeds):
        counts.update(pair for pair in combinations(sorted(occurring(scenario, seed)), 2) if pair[0].meets(pair[1]))
    return counts


def table(pairs: list[Pair]) -> Iterator[str]:
    """Numbers of pairs by the groups of their features."""
    counts = Counter(f"{one.group} x {other.group}" for one, other in pairs)
    return (f"  {count:6} {groups}" for groups, count in counts.most_common())


def main() -> int:
    """Print the table; 1 if a pair has no reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help=f"seeds of `{EVERYTHING}` that are drawn, too")
    options = parser.parse_args()
    before, left = undrawn(without=EVERYTHING), undrawn()
    lines = [f"{len(all_pairs())} pairs; without `{EVERYTHING}`, no scenario can draw {len(before)}:", *table(before)]
    lines.append(f"With it, {len(left)}:")
    reasons: Mapping[str, int] = Counter(map(reason, left))
    lines += [f"  {count:6} {text or 'WITHOUT A REASON'}" for text, count in reasons.items()]
    lines += [f"         {one}, {other}" for one, other in left if not reason((one, other))]
    if options.seeds:
        scenario = load(EVERYTHING)
        counts = seeds_with(scenario, options.seeds)
        drawable = [pair for pair in all_pairs() if set(pair) <= features(scenario)]
        shown_early = [pair for pair in drawable if INCIDENT not in (pair[0].group, pair[1].group)]
        met = [pair for pair in shown_early if counts[pair]]
        lines.append(f"{options.seeds} seeds of `{EVERYTHING}` have {len(met)} of its {len(shown_early)} pairs:")
        lines += [f"         not: {one}, {other}" for one, other in shown_early if not counts[one, other]][:20]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(not reason(pair) for pair in left))


if __name__ == "__main__":
    raise SystemExit(main())
