"""Elections under ZooKeeper: Kafka's PartitionLeaderElectionAlgorithms against `sim.protocol.zookeeper.election`.

A case is one election: ``kind assignment isr live shutting-down``. To be seen is the leader, 0 for none. All
combinations of three brokers are tried, in an order of their own; the seeds after them draw from five brokers.
"""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.zookeeper import election
from tests.verification.oracle.releases import rules
from tests.verification.oracle.subject import Case, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

BROKERS: Final = (1, 2, 3, 4, 5)
KINDS: Final = ("offline", "unclean", "preferred", "reassigned", "shutdown")
SUBSETS: Final = [list(some) for size in range(4) for some in combinations((1, 2, 3), size)]
ASSIGNMENTS: Final = [list(some) for size in (1, 2, 3) for some in permutations((1, 2, 3), size)]
ALL: Final = len(KINDS) * len(ASSIGNMENTS) * len(SUBSETS) ** 3
STRIDE: Final = 7_919
"""A prime that does not divide their number: neighbouring seeds are far from each other."""
CASES: Final = [list(case) for case in product(KINDS, ASSIGNMENTS, SUBSETS, SUBSETS, SUBSETS)]


def whole(seed: int, release: str) -> Case | None:
    """See the module."""
    return [CASES[seed * STRIDE % ALL]] if seed < ALL else None


def draw(rng: Random, release: str) -> Case:
    """See the module."""
    assignment = rng.sample(BROKERS, rng.randint(1, 5))
    isr, live, stopping = ([one for one in BROKERS if rng.random() < 0.5] for _ in range(3))
    return [[rng.choice(KINDS), assignment, isr, live, stopping]]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    seen: Seen = []
    for kind, assignment, isr, live, stopping in case:
        choice = _choice(kind, tuple(assignment), tuple(isr), live, stopping)
        seen.append(choice[0] if choice is not None else 0)
    return seen


def _choice(kind: str, assignment: tuple[int, ...], isr: tuple[int, ...], live: Any, stopping: Any) -> Any:
    willing = [broker for broker in live if broker not in stopping]
    match kind:
        case "offline" | "unclean":
            return election.offline(assignment, isr, willing, unclean=kind == "unclean")
        case "preferred":
            return election.preferred(assignment, isr, willing)
        case "reassigned":
            return election.reassigned(assignment, isr, willing)
    return election.controlled_shutdown(assignment, isr, live, stopping)


SUBJECT: Final = Subject(
    "zk-election",
    "kafka.controller.ZkElection",
    rules("1.1.1", "2.0.0", "2.6.0"),
    draw,
    run,
    quick=ALL,
    usual=ALL,
    deep=3 * ALL,
    names_brokers=True,
    whole=whole,
)
