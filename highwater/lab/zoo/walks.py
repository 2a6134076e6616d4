"""Random walks of `highwater.lab.explore`, in which mutants and bugs are hunted: the bounds of each.

Nothing guides walks to a bug, but their bounds are small and chosen for each one, as those of a specification's
configuration are: they allow little that it does not need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from highwater.lab.explore.modes.subject import STATES_MAX, WALK_EVENTS, Subject, subject_of
from highwater.lab.explore.search import Found
from highwater.lab.explore.walk import walk
from highwater.lab.zoo.runs import Rules
from scenarios.format.findings import recognised
from sim.protocol.modes import mode as mode_named

Bounds = tuple[tuple[str, int], ...]
"""Options of `highwater explore` with their values."""


@dataclass(frozen=True, slots=True)
class Walks:
    """Where walks hunt a mutant or a bug.

    Attributes:
        mode: a mode in which walks find nothing.
        wrong: rule values that bring the bug about.
        bounds: see there.
        is_strict: whether an early warning counts, too, as TLC's invariants do: a member of the ISR that lacks a
            committed record violates StrongIsr or LeaderCandidateCompletenessProperty of the public specifications.
    """

    mode: str
    wrong: Rules
    bounds: Bounds
    is_strict: bool = True

    def subject(self, *, repaired: bool = False) -> Subject:
        """The cluster, as it is wrong or without what is wrong."""
        return subject_of(self.mode, {} if repaired else dict(self.wrong), dict(self.bounds))

    def hunt(self, walks: int, seed: int, seconds: float | None = None, *, repaired: bool = False) -> Found[Any]:
        """Walk until the bug is found.

        A counterexample that the cluster shows also without the bug is no find; then the result has no paths.
        """
        subject = self.subject(repaired=repaired)
        found = walk(
            subject,
            until=self._until(subject),
            walks=walks,
            most_events=WALK_EVENTS,
            seed=seed,
            most_states=STATES_MAX,
            cpu_limit=seconds,
        )
        if found.stopped and not repaired and self._is_shown_without(subject, found):
            found.stopped = False
            found.paths = {}
        return found

    def _until(self, subject: Subject) -> frozenset[str]:
        return frozenset(subject.kinds if self.is_strict else subject.violations)

    def _is_shown_without(self, subject: Subject, found: Found[Any]) -> bool:
        """Whether these events, in this order, also lead to a violation without the bug; those that are impossible
        there are left out.
        """
        right = self.subject(repaired=True)
        kinds = self._until(right)
        states = {right.first()}
        path = next(iter(found.paths.values()))  # All kinds that a walk shows have the same path.
        for action, _ in path:
            wanted = subject.event(action)
            following = set()
            for state in states:
                after = {after for event, after in right.successors(state) if right.event(event) == wanted}
                following |= after or {state}
            if any(not kinds.isdisjoint(right.findings(state)) for state in following):
                return True
            states = following
        return False

    def command(self, walks: int, seed: int) -> str:
        """The command that walks so."""
        words = [f"highwater explore --mode {self.mode}", *(f"--rule {rule}={value}" for rule, value in self.wrong)]
        words += [f"--{name} {value}" for name, value in self.bounds]
        words += ["--strict"] if self.is_strict else []
        return " ".join([*words, f"--walks {walks} --seed {seed}"])


def _mutant(name: str, **bounds: int) -> Walks:
    return Walks("elr-repaired", (("mutant", name),), tuple(bounds.items()))


WALKS: Final[dict[str, Walks]] = {
    "hw-truncation": Walks(
        "kip320-repaired",
        (("follower_truncation", "high-watermark"),),
        (("brokers", 3), ("epochs", 3), ("records", 2)),
    ),
    "kip101-divergence": Walks(
        "kip320-repaired",
        (("follower_truncation", "leader-epoch"),),
        (("brokers", 3), ("epochs", 4), ("records", 3)),
    ),
    "kip279-join": Walks(
        "kip320-repaired",
        (("isr_join", "high-watermark"),),
        (("brokers", 3), ("epochs", 4), ("records", 2), ("stops", 1)),
    ),
    "hw-ignores-min-isr": _mutant("hw-ignores-min-isr", losses=0),
    "hw-without-joining-members": _mutant("hw-without-joining-members", losses=0, fences=1),
    "hw-without-leaving-members": _mutant("hw-without-leaving-members", losses=0, fences=1, isr=3, lags=1),
    "join-without-fetch": _mutant("join-without-fetch", losses=0),
    "join-below-hw": _mutant("join-below-hw", losses=0),
    "elr-kept-at-min-isr": _mutant("elr-kept-at-min-isr", losses=0),
    "alter-partition-of-earlier-partition-epoch": _mutant("alter-partition-of-earlier-partition-epoch", fences=0),
    "join-below-epoch-start": _mutant("join-below-epoch-start", losses=0),
    "unclean-registration-taken-for-clean": _mutant("unclean-registration-taken-for-clean", fences=0),
    "alter-partition-of-earlier-registration": _mutant("alter-partition-of-earlier-registration", fences=0),
    "leo-from-earlier-leadership": _mutant("leo-from-earlier-leadership", losses=0, fences=0, isr=3, elections=2),
    "log-start-above-hw": Walks(
        "kip320-repaired",
        (("mutant", "log-start-above-hw"),),
        (("brokers", 3), ("epochs", 3), ("records", 2), ("deletions", 1)),
    ),
}
"""Mutant, or bug that a later release repaired -> where walks hunt it."""


@cache
def all_walks() -> dict[str, Walks]:
    """Mutant or bug -> where walks hunt it."""
    found = {}
    for finding in recognised().values():
        table = finding.table
        if table.walks is not None and table.hunt is not None:
            rule, _ = finding.repair
            wrong = (rule, mode_named(table.hunt.mode).rules.as_dict()[rule])
            bounds = tuple(table.walks.bounds.items())
            found[finding.name] = Walks(table.walks.mode, (wrong,), bounds, table.walks.strict)
    return {**WALKS, **found}
