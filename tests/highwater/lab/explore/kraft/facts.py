"""Claims about KRaft modes within bounds, and about the conditions that the specification of KIP-966 marks CHECK."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster
from highwater.lab.explore.properties import KINDS, VIOLATIONS
from highwater.lab.explore.search import Found, search
from highwater.lab.explore.walk import walk
from sim.protocol.modes import mode

SPECIFICATION: Final = KRaftBounds()
"""The bounds of the specification's shipped configuration."""
ONE_LOSS: Final = KRaftBounds(fences=0)
ONE_FENCE: Final = KRaftBounds(losses=0)
NO_FAULTS: Final = KRaftBounds(losses=0, fences=0)
TWO_FENCES: Final = KRaftBounds(records=2, isr=3, losses=0, fences=2)
ONE_ELECTION: Final = KRaftBounds(isr=3, losses=0, fences=0, elections=1)
TWO_ELECTIONS: Final = KRaftBounds(isr=3, losses=0, fences=0, elections=2)
MIN_ISR_CHANGE: Final = KRaftBounds(losses=0, fences=0, min_isr_changes=1)
AND_LAG: Final = replace(MIN_ISR_CHANGE, isr=3, lags=1)
AND_FENCE: Final = replace(MIN_ISR_CHANGE, isr=3, fences=1)
AND_LOSS: Final = replace(MIN_ISR_CHANGE, losses=1, fences=1)
FEATURE: Final = KRaftBounds(losses=0, fences=0, feature_changes=1)
WALK_EVENTS: Final = 60


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim.

    Attributes:
        mode: of controller and brokers.
        bounds: how much may happen.
        kinds: violations and early warnings of the first state that shows any; none: no state does.
        mutant: the mutant that is on.
        rules: other rule values than the mode's.
        differs: whether its place decides otherwise within the bounds.
        walks: random walks of at most `WALK_EVENTS` events instead of a search of all; 0: search.
    """

    mode: str
    bounds: KRaftBounds
    kinds: tuple[str, ...] = ()
    mutant: str = "none"
    differs: bool = True
    walks: int = 0
    rules: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """For readers."""
        rules = [f"{rule}={value}" for rule, value in self.rules]
        return " ".join([self.mode, self.mutant, *rules, f"({self.bounds.sentence or 'specification'})"])

    def search(
        self, *, most_states: int | None = None, time_limit: float | None = None
    ) -> tuple[KRaftCluster, Found[int]]:
        """Search until the first violation or early warning."""
        cluster = KRaftCluster(mode(self.mode).rules.override({"mutant": self.mutant, **dict(self.rules)}), self.bounds)
        if self.walks:
            return cluster, walk(
                cluster,
                until=KINDS,
                walks=self.walks,
                most_events=WALK_EVENTS,
                most_states=most_states,
                time_limit=time_limit,
            )
        found = search(cluster, until=KINDS, ends=VIOLATIONS, most_states=most_states, time_limit=time_limit)
        return cluster, found

    def is_decided_as_claimed(self, cluster: KRaftCluster) -> bool:
        """Whether the mutant's place decided otherwise, or never, as claimed."""
        return self.mutant == "none" or cluster.decide.mutants.by_name[self.mutant].differed == self.differs

    def mark(self, cluster: KRaftCluster) -> str:
        """What the mutant's place did."""
        if self.mutant == "none":
            return ""
        place = cluster.decide.mutants.by_name[self.mutant]
        if place.differed:
            return "; the mutant decided otherwise"
        return "; the mutant's place never decided otherwise" if place.took else "; the mutant's place was not executed"


def reductions_hide_nothing(mode_name: str, bounds: KRaftBounds) -> bool:
    """Whether the same states of controller, logs and high watermarks are reached without the reductions, as far as
    every broker is up.
    """
    rules = mode(mode_name).rules
    return _projections(KRaftCluster(rules, bounds)) == _projections(KRaftCluster(rules, bounds, reduced=False))


def _projections(cluster: KRaftCluster) -> set[object]:
    """What all reachable states show of controller, logs and high watermarks."""
    shown: set[object] = set()
    ahead, seen = [cluster.first()], set()
    while ahead:
        state = ahead.pop()
        if state in seen:
            continue
        seen.add(state)
        snapshots, control, _ = cluster.parts(state)
        known = cluster.controller.views[control.controller]
        views = [cluster.machine.views[snapshot] for snapshot in snapshots]
        if any(view.state != UP for view in views):
            ahead += [after for _, after in cluster.successors(state)]
            continue
        brokers = tuple((view.leads, view.epoch, view.records, view.hw, view.min_isr) for view in views)
        partition = known.leader, known.epoch, known.isr, known.elr, known.min_isr
        shown.add((partition, control.past.acked, control.past.committed, brokers))
        ahead += [after for _, after in cluster.successors(state)]
    return shown


_CANDIDATE: Final = ("candidate-incomplete",)
_QUORUM: Final = ("quorum-not-superset",)
_LEADER: Final = ("leader-incomplete", "candidate-incomplete")
_CONFIGS_LAST: Final = (("config_replay", "after-topics"),)
MIN_ISR: Final[tuple[Fact, ...]] = (
    Fact("elr-repaired", MIN_ISR_CHANGE),
    Fact("elr-repaired", AND_LAG),
    Fact("elr-4.3", MIN_ISR_CHANGE),
    Fact("elr-4.3", AND_LAG, _QUORUM),
    Fact("elr-4.3", AND_FENCE, _CANDIDATE),
    Fact("elr-repaired", AND_LAG, _QUORUM, rules=(("isr_response", "without-min-isr"),)),
    Fact("elr-repaired", AND_FENCE, _CANDIDATE, rules=_CONFIGS_LAST),
    Fact("elr-repaired", replace(MIN_ISR_CHANGE, fences=1), _QUORUM, rules=(("min_isr_change", "keeps-elr"),)),
    Fact("elr-repaired", AND_LOSS, _LEADER, rules=(("min_isr_change", "clears-elr"),), walks=10_000),
)
"""Changes of min.insync.replicas, at bounds that take seconds."""
_KEPT: Final = (("min_isr_change_while_disabled", "keeps-elr"),)
_LEFT: Final = (("unclean_shutdown_while_disabled", "keeps-elr"),)
FEATURES: Final[tuple[Fact, ...]] = (
    Fact("elr-repaired", replace(FEATURE, feature_changes=2, min_isr_changes=1)),
    Fact("elr-repaired", replace(FEATURE, fences=1, min_isr_changes=1), _QUORUM, rules=_KEPT),
    Fact("elr-repaired", replace(FEATURE, fences=1, losses=1), _CANDIDATE, rules=_LEFT, walks=10_000),
)
"""Changes of feature eligible.leader.replicas.version, at bounds that take seconds."""
BOUNDED: Final[tuple[Fact, ...]] = (
    Fact("elr-repaired", NO_FAULTS),
    Fact("elr-repaired", ONE_FENCE),
    Fact("elr-repaired", ONE_LOSS),
    Fact("elr-4.3", ONE_FENCE, ("quorum-not-superset",)),
    Fact("elr-4.3", ONE_LOSS, ("quorum-not-superset",)),
    Fact("kraft", ONE_FENCE, ("quorum-not-superset",)),
    Fact("kraft", ONE_LOSS, ("quorum-not-superset",)),
    Fact("elr-repaired", ONE_ELECTION),
    Fact("elr-repaired", TWO_ELECTIONS),
    Fact("elr-4.3", ONE_ELECTION),
    Fact("elr-4.3", TWO_ELECTIONS, _CANDIDATE),
    *MIN_ISR,
    Fact("elr-repaired", replace(MIN_ISR_CHANGE, fences=1)),
    Fact("elr-repaired", replace(AND_FENCE, fences=1)),
    Fact("elr-repaired", replace(MIN_ISR_CHANGE, losses=1)),
    *FEATURES,
    Fact("elr-repaired", replace(FEATURE, losses=1)),
    Fact("elr-repaired", replace(FEATURE, fences=1, isr=3, feature_changes=2)),
)
MARKS: Final[tuple[Fact, ...]] = (
    Fact("elr-repaired", ONE_FENCE, _CANDIDATE, "join-below-hw"),
    Fact("elr-repaired", ONE_FENCE, _CANDIDATE, "join-below-epoch-start"),
    Fact("elr-repaired", ONE_FENCE, _CANDIDATE, "join-without-fetch"),
    Fact("elr-repaired", ONE_LOSS, ("quorum-not-superset",), "alter-partition-of-earlier-partition-epoch"),
    Fact("elr-repaired", ONE_LOSS, _CANDIDATE, "alter-partition-of-earlier-registration"),
    Fact("elr-repaired", ONE_FENCE, (), "fetch-response-of-earlier-epoch", differs=False),
    Fact("elr-repaired", ONE_LOSS, (), "fetch-response-of-earlier-epoch", differs=False),
    Fact("elr-repaired", ONE_FENCE, (), "fetch-response-at-another-offset", differs=False),
    Fact("elr-repaired", ONE_LOSS, (), "fetch-response-at-another-offset", differs=False),
    Fact("elr-repaired", ONE_FENCE, (), "fetch-continues-in-new-epoch", differs=False),
    Fact("elr-repaired", ONE_LOSS, (), "fetch-continues-in-new-epoch", differs=False),
    Fact("elr-repaired", ONE_FENCE, (), "registration-of-another-request", differs=False),
    Fact("elr-repaired", ONE_LOSS, (), "registration-of-another-request", differs=False),
    Fact("elr-repaired", KRaftBounds(stops=1, fences=0), _CANDIDATE, "registration-of-another-request"),
    Fact("elr-repaired", ONE_LOSS, (), "leo-from-earlier-leadership", differs=False),
    Fact("elr-repaired", TWO_FENCES, _CANDIDATE, "leo-from-earlier-leadership", walks=200_000),
    Fact("elr-repaired", TWO_ELECTIONS, _CANDIDATE, "leo-from-earlier-leadership", walks=10_000),
    Fact("elr-repaired", TWO_ELECTIONS, (), "fetch-response-of-earlier-epoch"),
    Fact("elr-repaired", TWO_ELECTIONS, (), "fetch-continues-in-new-epoch"),
    Fact("elr-repaired", TWO_ELECTIONS, (), "fetch-response-at-another-offset", differs=False),
)
