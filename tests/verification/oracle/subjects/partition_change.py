"""One change of a partition's registration: Kafka's PartitionChangeBuilder against `PartitionChangeBuilder`.

Operations: ``state replicas leader isr elr last-known recovering`` lays down a registration; ``change acceptable
min-isr elr-enabled election isr unclean recovering``, ``reassign ... replicas`` and ``cancel ... unclean-allowed``
(their first four arguments alike) change it. To be seen is the registration. Nobody is 0.

Seeds that are even go through every combination for three replicas in an order of their own; odd ones draw several
changes of one partition, with reassignments.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decisions
from sim.protocol.kraft import reassignment
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.kraft.partition_change_builder import PartitionChangeBuilder, PartitionChangeRules
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

REPLICAS: Final = (1, 2, 3)
SUBSETS: Final = [list(some) for size in range(4) for some in combinations(REPLICAS, size)]
ELECTIONS: Final = ("ONLINE", "PREFERRED", "UNCLEAN")
STRIDE: Final = 7_919
"""A prime that divides no count of combinations: neighbouring seeds are far from each other."""


def _states(*, elr: bool) -> list[Operation]:
    """Registrations: a leader is in the ISR; without ELR the ISR is never empty, and nobody is remembered."""
    found: list[Operation] = []
    for isr in SUBSETS[0 if elr else 1 :]:
        others = [broker for broker in REPLICAS if broker not in isr]
        elrs = [some for some in SUBSETS if set(some) <= set(others)] if elr else [[]]
        knowns = [[], [1], [2], [0]] if elr else [[]]
        for leader, eligible, known, recovering in product([0, *isr], elrs, knowns, (0, 1)):
            if not (recovering and (leader == 0 or known)):
                found.append(["state", list(REPLICAS), leader, isr, eligible, known, recovering])
    return found


def _changes(enabled: tuple[int, ...]) -> list[Operation]:
    return [
        ["change", acceptable, min_isr, elr, election, isr, unclean, None]
        for acceptable, min_isr, elr, election, isr, unclean in product(
            SUBSETS, (1, 2, 3), enabled, ELECTIONS, [None, *SUBSETS], ([], [2])
        )
    ]


STATES: Final = {elr: _states(elr=elr) for elr in (False, True)}
CHANGES: Final = {False: _changes((0,)), True: _changes((0, 1))}


def _has_elr(release: str) -> bool:
    return release != "3.9.0"


def whole(seed: int, release: str) -> Case | None:
    """See the module."""
    states, changes = STATES[_has_elr(release)], CHANGES[_has_elr(release)]
    number = seed // 2
    if seed % 2 or number >= len(states) * len(changes):
        return None
    number = number * STRIDE % (len(states) * len(changes))
    return [states[number % len(states)], changes[number // len(states)]]


def draw(rng: Random, release: str) -> Case:
    """Changes in sequence, as a controller makes them; brokers 1 to 5."""
    elr = _has_elr(release)
    size = rng.choice((1, 2, 3, 3, 4))
    replicas = rng.sample(range(1, 6), size)
    alive = [broker for broker in replicas if rng.random() < 0.8]
    leader = rng.choice(alive) if alive else 0
    isr = [broker for broker in replicas if broker in alive] or replicas[:1]
    case: Case = [["state", replicas, leader, isr, [], [], 0]]
    min_isr, enabled = rng.randint(1, size), int(elr and rng.random() < 0.8)
    for _ in range(rng.randint(1, 8)):
        if rng.random() < 0.1:
            min_isr = rng.randint(1, size)
        acceptable = [broker for broker in range(1, 6) if rng.random() < rng.choice((0.3, 0.8))]
        head = [acceptable, min_isr, enabled, rng.choice(ELECTIONS)]
        kind = rng.random()
        if kind < 0.6:
            wanted = [broker for broker in replicas if rng.random() < 0.6]
            unclean = [broker for broker in replicas if rng.random() < 0.15]
            target: list[int] | None = wanted if rng.random() < 0.6 and (wanted or elr) else None
            case.append(["change", *head, target, unclean, rng.choice((None, None, 0))])
        elif kind < 0.85:
            wanted = rng.sample(range(1, 6), rng.choice((1, 2, 3, 3)))
            replicas = [*wanted, *(broker for broker in replicas if broker not in wanted)]
            case.append(["reassign", *head, wanted])
        else:
            case.append(["cancel", *head, rng.randint(0, 1)])
    return case


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    state = _registration([], 0, [1, 2, 3], [], [], 0)
    seen: Seen = []
    for name, *values in case:
        if name == "state":
            state = _registration(*values)
            seen.append(shown(state))
            continue
        acceptable, min_isr, enabled, election, *rest = values
        terms = PartitionChangeRules(Decisions(rules), lambda _: None, elr=bool(enabled))
        change = PartitionChangeBuilder(state, acceptable.__contains__, min_isr, terms)
        error = _prepare(change, name, rest, terms)
        change.election = election
        if not error:
            state = change.build() or state
        seen.append("refused" if error else shown(state))
    return seen


def _prepare(change: PartitionChangeBuilder, name: str, rest: list[Any], terms: PartitionChangeRules) -> str:
    match name:
        case "change":
            isr, unclean, recovering = rest
            change.isr = change.isr if isr is None else tuple(isr)
            change.unclean = tuple(unclean)
            change.recovering = change.recovering if recovering is None else bool(recovering)
        case "reassign":
            reassignment.begin(change, tuple(rest[0]), terms)
        case "cancel":
            return reassignment.revert(change, unclean=bool(rest[0]))
        case _:
            raise ValueError(f"unknown operation {name!r}")
    return ""


def _registration(
    replicas: list[int], leader: int, isr: list[int], elr: list[int], known: list[int], recovering: int
) -> PartitionRegistration:
    return PartitionRegistration(
        "p",
        leader,
        0,
        tuple(isr),
        0,
        tuple(replicas) or REPLICAS,
        elr=tuple(elr),
        last_known_elr=tuple(known),
        recovering=bool(recovering),
    )


def shown(state: PartitionRegistration) -> list[Any]:
    """What is compared of a partition."""
    return [
        state.leader,
        state.leader_epoch,
        list(state.isr),
        sorted(state.elr),
        sorted(state.last_known_elr),
        state.partition_epoch,
        list(state.replicas),
        list(state.adding),
        list(state.removing),
        state.recovering,
    ]


SUBJECT: Final = Subject(
    "partition-change",
    "org.apache.kafka.controller.PartitionChanges",
    since("3.9.0"),
    draw,
    run,
    quick=5_000,
    usual=60_000,
    deep=1_500_000,
    names_brokers=True,
    whole=whole,
)
