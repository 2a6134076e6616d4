"""The cluster of a mode, of either control plane, as a world to explore.

What it takes to build one is imported where that is done, so that a help text does not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from highwater.lab.explore.walk import WalkedWorld
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sim.protocol.decisions import Decisions
    from sim.protocol.rules import Rules

WALK_EVENTS: Final = 60
"""Most events of a random walk, unless another number is given."""
STATES_MAX: Final = 2_000_000
"""States that are kept, unless another number is given: 200 bytes each in KRaft."""
KRAFT: Final = {
    "isr": 2,
    "losses": 1,
    "stops": 0,
    "fences": 1,
    "lags": 0,
    "elections": 0,
    "min-isr": 2,
    "min-isr-changes": 0,
    "feature-changes": 0,
    "records": 1,
    "fixed-order": False,
}
"""Options of KRaft modes -> defaults: the bounds of the specification."""
QUORUM: Final = {
    "epochs": 2,
    "candidates": 2,
    "records": 1,
    "losses": 1,
    "wipes": 0,
    "forgets": 0,
    "snapshots": 0,
    "removals": 0,
}
"""Options of ``--quorum`` -> defaults."""
ZOOKEEPER: Final = {"brokers": 2, "epochs": 3, "records": 2, "stops": 0, "lags": 0, "deletions": 0}
"""Options of ZooKeeper modes -> defaults."""


class Subject(WalkedWorld[Any], Protocol):
    """What is searched: a world with its rules and its words."""

    @property
    def decide(self) -> Decisions:
        """Its rules."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Kinds of violations and early warnings -> meanings."""

    @property
    def violations(self) -> Collection[str]:
        """Kinds that end the search."""

    def event(self, action: Any) -> str:
        """An event in words."""

    def describe(self, state: Any) -> str:
        """A state in words."""


def subject_of(word: str, overrides: Mapping[str, str], given: Mapping[str, int], *, quorum: bool = False) -> Subject:
    """The cluster of a mode with these rules, within bounds given as options.

    Args:
        word: the mode.
        overrides: other values of rules.
        given: options -> values.
        quorum: whether to search the voters of the metadata quorum in place of brokers.

    Raises:
        InputError: an option is one of another cluster.
    """
    from scenarios.format.catalogue import mode

    rules = mode(word).rules.override(overrides)
    is_kraft = rules.control_plane == "kraft"
    if quorum and not is_kraft:
        raise InputError(f"--quorum has no effect in {word}, a mode with ZooKeeper")
    known = QUORUM if quorum else KRAFT if is_kraft else ZOOKEEPER
    for name in given:
        if name not in known:
            if quorum:
                raise InputError(f"--{name} has no effect with --quorum")
            if name not in (KRAFT, ZOOKEEPER)[is_kraft]:
                raise InputError(f"--{name} needs --quorum")
            plane = "KRaft" if is_kraft else "ZooKeeper"
            raise InputError(f"--{name} has no effect in {word}, a mode with {plane}")
    bounds = {**known, **given}
    if quorum:
        return _quorum(rules, bounds)
    return _kraft(rules, bounds) if is_kraft else _zookeeper(rules, bounds)


def _kraft(rules: Rules, given: Mapping[str, int]) -> Subject:
    from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster

    numbers: dict[str, Any] = {name.replace("-", "_"): value for name, value in given.items() if name != "fixed-order"}
    return KRaftCluster(rules, KRaftBounds(**numbers, any_order=not given["fixed-order"]))


def _quorum(rules: Rules, given: Mapping[str, int]) -> Subject:
    from highwater.lab.explore.raft.world import ExploredQuorum, QuorumBounds

    return ExploredQuorum(rules, QuorumBounds(**given))


def _zookeeper(rules: Rules, given: Mapping[str, int]) -> Subject:
    from highwater.lab.explore.zookeeper.cluster import ZooKeeperBounds, ZooKeeperCluster

    numbers: dict[str, Any] = {{"stops": "crashes"}.get(name, name): value for name, value in given.items()}
    return ZooKeeperCluster(rules, ZooKeeperBounds(**numbers))
