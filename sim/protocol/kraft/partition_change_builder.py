"""One change of a partition's registration: reassignment, ELR, election, epochs, in the order of Kafka's code.

The attributes of a `PartitionChangeBuilder` describe the requested change; `PartitionChangeBuilder.build` computes the
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from sim.protocol import probes
from sim.protocol.decision_points import (
    ELIGIBLE_REPLICAS,
    LAST_KNOWN_REPLICAS,
    LEADER,
    REASSIGNMENT_COMPLETES,
    Election,
    EligibleReplicas,
    Reassignment,
)
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.rules import RULES

PREFERRED: Final = "PREFERRED"
"""Elect the first replica if that is a clean election."""
ONLINE: Final = "ONLINE"
"""Elect a leader cleanly if there is none."""
UNCLEAN: Final = "UNCLEAN"
"""As `ONLINE`, and uncleanly if necessary."""
DESIGNATED: Final = "DESIGNATED"
"""Elect the designated replica, whatever its log."""

Replicas = tuple[int, ...]


class ElectionResult(NamedTuple):
    """Result: leader (0: none), whether unclean, and the probe. Kafka: PartitionChangeBuilder.ElectionResult."""

    leader: int
    unclean: bool
    probe: int


NOBODY: Final = ElectionResult(NO_LEADER, unclean=False, probe=probes.LEFT_LEADERLESS)


class PartitionChangeRules:
    """Parameters of all changes.

    Args:
        decide: the controller's rules.
        reached: notes a probe.
        elr: whether eligible leader replicas are recorded: rule ``elr`` is on and the feature not disabled.
        marks_recovery: whether an unclean election is marked until the leader has confirmed it (from 3.2 on).
    """

    __slots__ = (
        "decide",
        "elr",
        "marks_recovery",
        "reached",
    )

    def __init__(
        self, decide: Decisions, reached: Callable[[int], None], *, elr: bool, marks_recovery: bool = True
    ) -> None:
        self.decide = decide
        self.reached = reached
        self.elr = elr
        self.marks_recovery = marks_recovery

    def tracks_elr(self, state: PartitionRegistration) -> bool:
        """Whether eligible replicas of a partition are recorded, and count.

        If the feature is disabled while the ISR is empty, there is nobody else to elect. Rule ``disabled_elr`` decides.
        """
        return self.elr or (not state.isr and self.decide.keeps_disabled_elr.yes())


class PartitionChangeBuilder:
    """A change under construction. Kafka: PartitionChangeBuilder.

    Args:
        state: the current state of the partition.
        acceptable: whether a broker may lead: registered, not fenced, not shutting down.
        min_isr: effective ``min.insync.replicas``.
        change_rules: parameters of all changes.

    Attributes:
        isr: the requested ISR; so for `replicas`, `removing`, `adding`, `recovering` and `directories`.
        elr: eligible leader replicas; computed by `build`.
        last_known_elr: computed by `build`.
        unclean: brokers with a known unclean shutdown, which cannot stay in the ELR.
        election: kind of election.
        designated: the broker that `DESIGNATED` elects.
    """

    def __init__(
        self,
        state: PartitionRegistration,
        acceptable: Callable[[int], bool],
        min_isr: int,
        change_rules: PartitionChangeRules,
    ) -> None:
        self.state = state
        self.isr: Replicas = state.isr
        self.replicas: Replicas = state.replicas
        self.removing: Replicas = state.removing
        self.adding: Replicas = state.adding
        self.recovering = state.recovering
        self.directories = state.directories
        self.elr: Replicas = state.elr
        self.last_known_elr: Replicas = state.last_known_elr
        self.unclean: Replicas = ()
        self.election = ONLINE
        self.designated = NO_LEADER
        self._acceptable = acceptable
        self._min_isr = min_isr
        self._change_rules = change_rules
        self._decide = change_rules.decide
        self._tracks_elr = change_rules.tracks_elr(state)

    # The steps, in their order.

    def build(self) -> PartitionRegistration | None:
        """The resulting registration, None if nothing changes.

        Every change raises the partition epoch. The leader epoch is raised with a change of leader, when a replica
        leaves the assignment and, as rule ``isr_shrink_epoch`` says, when one leaves the ISR.
        Kafka: PartitionChangeBuilder#build.
        """
        state = self.state
        self._complete_reassignment()
        shrinks = len(self.isr) < self._min_isr and bool(without(state.isr, self.isr))
        self._populate_elr()
        self.elr = self._elr_by_plugins(ELIGIBLE_REPLICAS, self.elr)
        leader, is_unclean = self._try_election()
        self._note_elr(leader, loses=shrinks or is_unclean)
        if is_unclean or not self._tracks_elr:
            self._forget_elr()
        if not self.isr and not self._tracks_elr:
            self.isr = state.isr  # Without ELR the last member stays, and has to come back.
        bumps = leader != state.leader or self.drops_replica() or self.shrink_bumps()
        self._remember_last_leader(leader, bumps=bumps)
        return self._changed(leader, bumps=bumps)

    def _try_election(self) -> tuple[int, bool]:
        """Elect; returns the leader, and whether it is another one than before, elected uncleanly.

        Kafka: PartitionChangeBuilder#tryElection.
        """
        leader, is_unclean, probe = self._election_by_plugins(self.elect())
        if leader == self.state.leader:
            return leader, False
        self._change_rules.reached(probe)
        if leader in self.elr:
            self.isr = (leader,)
            self.elr = without(self.elr, (leader,))
            self._clear_elr()
        if is_unclean:
            self.isr = (leader,)
            if not self.state.recovering:
                self.recovering = self._change_rules.marks_recovery
        return leader, is_unclean

    def _note_elr(self, leader: int, *, loses: bool) -> None:
        """Note that rule ``elr`` decides, unless the change is the same with its other value.

        Args:
            leader: the leader after the change.
            loses: whether a member leaves an ISR that is below min ISR then, or the leader is elected uncleanly.
        """
        state = self.state
        if self._tracks_elr == self._decide.elr.answer and (
            loses or leader == NO_LEADER or not self.isr or self.elr or state.elr or state.last_known_elr
        ):
            self._decide.elr.note()

    def _complete_reassignment(self) -> None:
        """Kafka: PartitionChangeBuilder#completeReassignmentIfNeeded,
        PartitionReassignmentReplicas#maybeCompleteReassignment.
        """
        if not self.removing and not self.adding:
            return
        replicas = without(self.replicas, self.removing)
        isr = without(self.isr, self.removing)
        if not replicas or (self.removing and not isr):
            return
        completes = {
            "adding-in-isr": set(self.adding) <= set(isr),
            "targets-in-isr": set(replicas) <= set(isr),
            "targets-if-fewer": set(self.adding) <= set(isr)
            and (len(self.adding) >= len(self.removing) or set(replicas) <= set(isr)),
            # A replica that was added and is being removed again will never join.
            "min-isr": set(without(self.adding, self.removing)) <= set(isr)
            and len(isr) >= min(self._min_isr, len(replicas)),
        }
        change_rules = self._change_rules
        done = self._decide.reassignment_completes.pick(completes)
        if self._completion_by_plugins(replicas, isr, done):
            change_rules.reached(probes.REASSIGNMENT_DONE)
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()
        elif completes["adding-in-isr"]:
            change_rules.reached(probes.REASSIGNMENT_WAITS)

    def _populate_elr(self) -> None:
        """Members leaving an ISR below min ISR stay electable. Kafka: PartitionChangeBuilder#maybePopulateTargetElr."""
        change_rules = self._change_rules
        if not self._tracks_elr:
            return
        mutants = self._decide.mutants
        is_enough, kept = len(self.isr) >= self._min_isr, without(self.elr, self.isr)
        is_kept = mutants.elr_kept_at_min_isr.when(is_enough and bool(kept))
        if is_enough:
            self.elr = kept if is_kept else ()
            self.last_known_elr = ()
            return
        electable = [*self.elr, *without(self.state.isr, self.elr)]
        if not set(electable) <= set(self.replicas) and self._decide.drops_elr_outsiders.yes():
            electable = [broker for broker in electable if broker in self.replicas]
        unclean = self.unclean
        if unclean and mutants.elr_keeps_unclean_member.when(not set(unclean).isdisjoint(electable)):
            unclean = ()
        self.elr = self._ordered(without(without(electable, self.isr), unclean))
        known = [*electable, *without(self.last_known_elr, electable)]
        self.last_known_elr = self._ordered(without(without(known, self.isr), self.elr))
        if any(broker in self.unclean for broker in self.state.elr):
            change_rules.reached(probes.ELR_EJECTED)

    def elect(self) -> ElectionResult:
        """The leader that would be elected.

        Kafka: PartitionChangeBuilder#electLeader, PartitionChangeBuilder#electPreferredLeader,
        PartitionChangeBuilder#electAnyLeader.
        """
        if self.election == DESIGNATED and not self._is_valid(self.designated):
            return ElectionResult(self.designated, unclean=True, probe=probes.ELECTED_DESIGNATED)
        if self.election == PREFERRED and self._is_valid(self.replicas[0]):
            return ElectionResult(self.replicas[0], unclean=False, probe=probes.ELECTED_PREFERRED)
        first = self.designated if self.election == DESIGNATED else self.state.leader
        for broker in (first, *self.replicas):  # The current leader may stay, even outside the assignment.
            if self._is_valid(broker):
                probe = probes.ELECTED_FROM_ISR if self.isr else probes.ELECTED_FROM_ELR
                return ElectionResult(broker, unclean=False, probe=probe)
        self._decide.elects_uncleanly.note()
        self._decide.recovery_takes_first.note()
        if self._is_last_known_elected():
            return ElectionResult(self.state.last_known_elr[0], unclean=True, probe=probes.ELECTED_LAST_KNOWN)
        if self.election == UNCLEAN:
            for broker in self.replicas:
                if self._acceptable(broker):
                    return ElectionResult(broker, unclean=True, probe=probes.ELECTED_UNCLEAN)
        return NOBODY

    def _is_valid(self, broker: int) -> bool:
        """Whether electing it is clean; the old ELR counts too. Kafka: PartitionChangeBuilder#isValidNewLeader."""
        is_member, mutant = broker in (self.isr or self.elr), self._decide.mutants.election_outside_isr
        # The directories of other brokers are looked up, and that decides a rule, only with the mutant.
        is_other = mutant.is_on and not is_member and broker in self.state.replicas and self._acceptable(broker)
        return mutant.when(is_other) or (is_member and self._acceptable(broker))

    def _is_last_known_elected(self) -> bool:
        """Whether the last known leader may lead. Kafka: PartitionChangeBuilder#canElectLastKnownLeader."""
        known = self.state.last_known_elr
        if not self._tracks_elr or self.isr or self.elr or len(known) != 1:
            return False
        if not self._decide.elects_uncleanly.yes():
            return False
        return self._acceptable(known[0]) or not self._decide.last_known_must_be_unfenced.yes()

    def drops_replica(self) -> bool:
        """Whether a replica leaves the assignment, which raises the leader epoch.

        Kafka: PartitionChangeBuilder#triggerLeaderEpochBumpForReplicaReassignmentIfNeeded.
        """
        return not set(self.state.replicas) <= set(self.replicas)

    def shrink_bumps(self) -> bool:
        """Whether a member leaves the ISR, and that raises the leader epoch (KAFKA-15021).

        Kafka: PartitionChangeBuilder#triggerLeaderEpochBumpForIsrShrinkIfNeeded.
        """
        return not set(self.state.isr) <= set(self.isr) and self._decide.shrink_bumps_epoch.yes()

    def _forget_elr(self) -> None:
        """Kafka clears ELR and last known ELR at an unclean election.

        By the text of KIP-966 (other behaviors 6a) the last known ELR is cleared when the ISR reaches min ISR: until
        then the other replicas that may have all records stay known, in case the new leader fails before it has
        followers.
        Kafka: PartitionChangeBuilder#maybeUpdateRecordElr.
        """
        known, self.elr = (*self.elr, *self.last_known_elr), ()
        kept = self._tracks_elr and len(self.isr) < self._min_isr
        self.last_known_elr = self._ordered(set(known).difference(self.isr)) if kept else ()

    def _clear_elr(self) -> None:
        """By the text of KIP-966 (ELR update 1) the ELR is empty while the ISR is large enough.

        Kafka computes the ELR before the election and need not check again: its changes of min ISR clear the ELR, and
        without one the ISR of an elected member is too small.
        """
        if len(self.isr) < self._min_isr or not (self.elr or self.last_known_elr):
            return
        if self._decide.min_isr_change.pick(_CLEARS):
            self.elr = self.last_known_elr = ()

    def _remember_last_leader(self, leader: int, *, bumps: bool) -> None:
        """Keep the last leader as last known ELR; with ejected members it is one of several.

        The last known ELR stays as it was when the feature was disabled.
        Kafka: PartitionChangeBuilder#maybeUpdateLastKnownLeader.
        """
        state = self.state
        by_leader = by_lost = known = state.last_known_elr
        if self._tracks_elr:
            if state.isr and not self.isr and known != (state.leader,):
                by_leader = (state.leader,)
            elif leader != NO_LEADER:
                by_leader = ()
            if bumps and leader != NO_LEADER:
                by_lost = ()
            elif bumps and not known:
                by_lost = (state.leader,)
        self.last_known_elr = self._decide.last_known_elr.pick(
            {"leader": by_leader, "lost-leader": by_lost, "ejected-members": self.last_known_elr}
        )
        if self._tracks_elr and self._loses_last_candidate(leader) and self._decide.remembers_last_candidate.yes():
            self.last_known_elr = state.isr or state.elr
        self.last_known_elr = self._elr_by_plugins(LAST_KNOWN_REPLICAS, self.last_known_elr)
        if self._decide.mutants.last_known_leader_forgotten.when(bool(self.last_known_elr)):
            self.last_known_elr = ()

    def _loses_last_candidate(self, leader: int) -> bool:
        """Whether a partition that had no leader before is left without anybody to elect.

        That happens only if it lost its leader while the feature was disabled: otherwise, that leader is remembered.
        """
        state = self.state
        if leader != NO_LEADER or state.leader != NO_LEADER or self.isr or self.elr:
            return False
        return len(state.isr + state.elr) == 1 and self.last_known_elr in ((), (NO_LEADER,))

    def _changed(self, leader: int, *, bumps: bool) -> PartitionRegistration | None:
        state = self.state
        after = PartitionRegistration(
            state.name,
            leader,
            state.leader_epoch + bumps,
            self.isr,
            state.partition_epoch + 1,
            self.replicas or state.replicas,
            elr=self.elr,
            last_known_elr=self.last_known_elr,
            adding=self.adding,
            removing=self.removing,
            recovering=self.recovering,
            directories=self.directories,
        )
        return after if bumps or content(after) != content(state) else None

    # Decision points of plug-ins.

    def _completion_by_plugins(self, replicas: Replicas, isr: Replicas, done: bool) -> bool:
        """Whether a reassignment completes with these replicas and this ISR."""
        if not self._decide.plugged:
            return done
        at = Reassignment(replicas, self.adding, self.removing, isr, self._min_isr)
        return self._decide.by_plugins(REASSIGNMENT_COMPLETES, done, at)

    def _elr_by_plugins(self, point: str, elr: Replicas) -> Replicas:
        """The ELR, or the last known ELR."""
        if not (self._decide.plugged and self._tracks_elr):
            return elr
        state = self.state
        at = EligibleReplicas(state.isr, state.elr, self.isr, self.replicas, self.unclean, state.leader, self._min_isr)
        return self._decide.by_plugins(point, elr, at)

    def _election_by_plugins(self, elected: ElectionResult) -> ElectionResult:
        """The leader."""
        if not self._decide.plugged:
            return elected
        state = self.state
        # Kafka would look up the directory of a broker that is no replica yet, and fail.
        own = state.replicas
        at = Election(
            state.leader,
            self.replicas,
            tuple([broker for broker in self.replicas if broker in own and self._acceptable(broker)]),
            self.isr,
            self.elr,
            state.last_known_elr,
            self.election in (UNCLEAN, DESIGNATED),
            self._min_isr,
        )
        leader = self._decide.by_plugins(LEADER, elected.leader, at)
        if leader == elected.leader:
            return elected
        if leader == NO_LEADER:
            return NOBODY
        if leader in (self.isr or self.elr):
            probe = probes.ELECTED_FROM_ISR if self.isr else probes.ELECTED_FROM_ELR
            return ElectionResult(leader, unclean=False, probe=probe)
        return ElectionResult(leader, unclean=True, probe=probes.ELECTED_UNCLEAN)

    def _ordered(self, brokers: Iterable[int]) -> Replicas:
        """Brokers in assignment order; those outside it last."""
        places = {broker: place for place, broker in enumerate(self.replicas)}
        return tuple(sorted(brokers, key=lambda broker: (places.get(broker, len(places)), broker)))


_CLEARS: Final = {value: value == "clears-if-enough" for value in RULES["min_isr_change"].values}
"""Whether an election clears an ELR that is no longer needed."""


def content(state: PartitionRegistration) -> tuple[object, ...]:
    """The fields that a change may modify, without the epochs."""
    return (
        state.isr,
        state.elr,
        state.last_known_elr,
        state.leader,
        state.replicas,
        state.removing,
        state.adding,
        state.recovering,
        state.directories,
    )


def without(brokers: Iterable[int], leaving: Iterable[int]) -> Replicas:
    """The brokers in order, without some."""
    gone = tuple(leaving)
    return tuple(broker for broker in brokers if broker not in gone)
