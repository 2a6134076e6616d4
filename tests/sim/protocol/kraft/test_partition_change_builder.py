"""One change of a partition: what the table of conformance cases does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.kraft.partition_change_builder import (
    DESIGNATED,
    ONLINE,
    PREFERRED,
    UNCLEAN,
    PartitionChangeBuilder,
    PartitionChangeRules,
)
from sim.protocol.modes import mode
from sim.protocol.probes import PROBES
from tests.sim.protocol.recording import branches

if TYPE_CHECKING:
    from sim.protocol.rules import Rules

ALL = (1, 2, 3, 4)
ELR = mode("elr").rules
KRAFT = mode("kraft").rules
KIP = mode("elr-recovery").rules


def state(leader: int = 1, isr: tuple[int, ...] = ALL, **more: Any) -> PartitionRegistration:
    """Four replicas under leader epoch 7 and partition epoch 9."""
    return PartitionRegistration("p", leader, 7, isr, 9, more.pop("replicas", ALL), **more)


class Made:
    """A change, what it made of a partition, and which probes it reached.

    Args:
        before: the partition.
        alive: brokers that are unfenced.
        rules: of the controller.
        min_isr: effective.
        wanted: attributes of the change.
    """

    def __init__(
        self,
        before: PartitionRegistration,
        alive: tuple[int, ...],
        rules: Rules = ELR,
        *,
        min_isr: int = 3,
        elr: bool | None = None,
        **wanted: Any,
    ) -> None:
        found: list[str] = []
        decide = Decisions(rules)
        has_elr = rules.elr == "on" if elr is None else elr
        terms = PartitionChangeRules(decide, lambda probe: found.append(PROBES[probe].name), elr=has_elr)
        change = PartitionChangeBuilder(before, lambda broker: broker in alive, min_isr, terms)
        for name, value in wanted.items():
            setattr(change, name, value)
        self.after = change.build()
        self.probes = set(found) | branches(decide)

    @property
    def lists(self) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Leader, ISR, ELR, last known ELR."""
        assert self.after is not None
        return self.after.leader, self.after.isr, self.after.elr, self.after.last_known_elr

    @property
    def epochs(self) -> tuple[int, int]:
        assert self.after is not None
        return self.after.leader_epoch, self.after.partition_epoch


# Epochs.


def test_change_of_nothing_is_none() -> None:
    assert Made(state(), ALL).after is None


def test_a_smaller_isr_raises_the_leader_epoch_before_3_6_only() -> None:
    assert Made(state(), ALL, isr=(1, 2, 3)).epochs == (7, 10)
    old = Made(state(), ALL, KRAFT.override({"isr_shrink_epoch": "bumped"}), isr=(1, 2, 3))
    assert old.epochs == (8, 10)
    assert "isr_shrink_epoch=bumped" in old.probes
    larger = Made(state(isr=(1, 2, 3)), ALL, KRAFT.override({"isr_shrink_epoch": "bumped"}), isr=ALL)
    assert larger.epochs == (7, 10)


# The ELR.


def test_the_elr_takes_who_leaves_a_small_isr_dead_or_alive() -> None:
    made = Made(state(), (1, 2, 3), isr=(1, 2))
    assert made.lists == (1, (1, 2), (3, 4), ())
    assert "elr=on" in made.probes


def test_the_elr_keeps_who_is_in_it() -> None:
    assert Made(state(isr=(1, 2), elr=(4,)), ALL, isr=(1,)).lists == (1, (1,), (2, 4), ())


def test_the_elr_is_empty_with_an_isr_of_min_isr() -> None:
    assert Made(state(isr=(1,), elr=(2, 4), last_known_elr=(3,)), ALL, KIP, isr=(1, 2, 3)).lists == (
        1,
        (1, 2, 3),
        (),
        (),
    )


def test_last_member_is_waited_for_without_elr() -> None:
    made = Made(state(isr=(1,)), (2, 3), KRAFT, isr=())
    assert made.lists == (0, (1,), (), ())
    assert "left-leaderless" in made.probes


def test_elr_that_is_left_goes_once_the_feature_is_off() -> None:
    before = state(isr=(1,), elr=(2,), last_known_elr=(3,))
    assert Made(before, ALL, elr=False).lists == (1, (1,), (), (3,))


def test_what_is_left_of_the_elr_is_elected_from_once_it_is_off() -> None:
    made = Made(state(isr=(1,), elr=(2,)), (2, 3), elr=False, isr=())
    assert made.lists == (2, (2,), (), ())


def test_a_member_of_the_elr_leads_cleanly_when_the_isr_is_empty() -> None:
    made = Made(state(isr=(1,), elr=(3, 4)), (2, 4), isr=())
    assert made.lists == (4, (4,), (1, 3), ())
    assert made.after is not None
    assert not made.after.recovering
    assert "elected-from-elr" in made.probes


# Who is remembered.


@pytest.mark.parametrize(("rule", "known"), [("leader", (0,)), ("lost-leader", ())])
def test_nobody_may_be_the_last_leader(rule: str, known: tuple[int, ...]) -> None:
    """The last member leaves the ISR of a partition that had no leader then."""
    made = Made(state(0, isr=(1,)), (), ELR.override({"last_known_elr": rule}), isr=(), unclean=(1,))
    assert made.lists == (0, (), (), known)


@pytest.mark.parametrize(("rule", "known"), [("leader", ()), ("lost-leader", (1,))])
def test_a_leader_is_lost_while_a_member_stays(rule: str, known: tuple[int, ...]) -> None:
    made = Made(state(isr=(1, 2)), (), ELR.override({"last_known_elr": rule}), isr=(2,))
    assert made.lists == (0, (2,), (1,), known)


@pytest.mark.parametrize(
    ("adding", "removing", "isr", "completes"),
    [
        ((4,), (1,), (2, 4), True),
        ((4,), (1,), (2, 3), False),
        ((4,), (1, 2), (2, 4), False),
        ((4,), (1, 2), (2, 3, 4), True),
        ((4,), (2, 4), (1, 4), False),
    ],
)
def test_who_adds_as_many_as_it_removes_waits_for_those_alone(
    adding: tuple[int, ...], removing: tuple[int, ...], isr: tuple[int, ...], completes: bool
) -> None:
    """KAFKA-19975; what is added and is to go again never gets there."""
    rules = ELR.override({"reassignment_completes": "targets-if-fewer"})
    made = Made(state(isr[0], isr=isr, adding=adding, removing=removing), ALL, rules, min_isr=1, isr=isr)
    assert (made.after is not None) == completes


def test_the_last_leader_is_remembered_until_there_is_another() -> None:
    gone = Made(state(isr=(1,), elr=(2, 3)), (), isr=())
    assert gone.lists == (0, (), (1, 2, 3), (1,))
    assert gone.after is not None
    back = Made(gone.after, (3,))
    assert back.lists == (3, (3,), (1, 2), ())


@pytest.mark.parametrize(
    ("rules", "known"),
    [(ELR, (4,)), (ELR.override({"last_known_elr": "ejected-members"}), (2, 4)), (KIP, (2, 4))],
)
def test_broker_ejected_from_the_elr_is_remembered_as_the_text_has_it(rules: Rules, known: tuple[int, ...]) -> None:
    before = state(0, (), elr=(1, 2), last_known_elr=(4,))
    made = Made(before, (), rules, unclean=(2,))
    assert made.lists == (0, (), (1,), known)
    assert {"elr-ejected", f"last_known_elr={rules.last_known_elr}"} <= made.probes


@pytest.mark.parametrize(("rules", "leader"), [(mode("elr-4.0-snapshot").rules, 2), (ELR, 0)])
def test_a_fenced_last_leader_is_elected_by_the_snapshot_only(rules: Rules, leader: int) -> None:
    made = Made(state(0, (), elr=(3,), last_known_elr=(2,)), (1, 4), rules, unclean=(3,))
    assert made.lists[0] == leader
    assert f"last_known_leader={rules.last_known_leader}" in made.probes


def test_an_unfenced_last_leader_is_elected_and_marked() -> None:
    made = Made(state(0, (), last_known_elr=(2,)), (2, 4))
    assert made.lists == (2, (2,), (), ())
    assert made.after is not None
    assert made.after.recovering
    assert {"elected-last-known", "unclean_recovery=election"} <= made.probes


def test_last_leader_is_one_of_those_asked_by_unclean_recovery() -> None:
    assert Made(state(0, (), last_known_elr=(2,)), (2, 4), KIP).after is None


# Elections.


@pytest.mark.parametrize(
    ("election", "leader"), [(ONLINE, 0), (UNCLEAN, 2), (PREFERRED, 0), (DESIGNATED, 4)], ids=lambda value: str(value)
)
def test_elections_without_a_clean_candidate(election: str, leader: int) -> None:
    made = Made(state(1, (1,)), (2, 4), KRAFT, isr=(), election=election, designated=4)
    assert made.lists[0] == leader
    assert made.after is not None
    assert made.after.recovering == (leader > 0)
    assert made.lists[1] == ((leader,) if leader else (1,))


def test_designated_leader_leads_cleanly_from_the_isr() -> None:
    made = Made(state(0, (2, 3)), ALL, KRAFT, election=DESIGNATED, designated=3)
    assert made.lists == (3, (2, 3), (), ())
    assert "elected-from-isr" in made.probes


def test_a_leader_outside_the_assignment_stays_while_it_is_electable() -> None:
    made = Made(state(leader=5, isr=(5,)), (2, 5), isr=())
    assert made.lists == (5, (), (5,), (5,))


def test_the_preferred_leader_takes_over() -> None:
    made = Made(state(3), ALL, election=PREFERRED)
    assert made.lists == (1, ALL, (), ())
    assert "elected-preferred" in made.probes


# The feature is disabled and enabled.

KEEPS = ELR.override({"disabled_elr": "kept"})


def test_the_elr_of_a_disabled_feature_is_cleared_though_the_isr_is_empty() -> None:
    before = state(leader=0, isr=(), elr=(2, 3), last_known_elr=(2,))
    cleared = Made(before, (1,), elr=False)
    assert cleared.lists == (0, (), (), (2,))
    assert "disabled_elr=cleared" in cleared.probes
    kept = Made(before, (1,), KEEPS, elr=False)
    assert kept.after is None
    assert "disabled_elr=kept" in kept.probes
    for rules in (ELR, KEEPS):
        assert Made(before, (1, 3), rules, elr=False).lists[:2] == (3, (3,))


def test_an_elr_that_is_kept_loses_who_ends_uncleanly() -> None:
    before = state(leader=0, isr=(), elr=(2, 3), last_known_elr=(2,))
    assert Made(before, (1,), KEEPS, elr=False, unclean=(2,)).lists == (0, (), (3,), (2,))
    last = state(leader=0, isr=(), elr=(2,), last_known_elr=(2,))
    assert Made(last, (1,), KEEPS, elr=False, unclean=(2,)).lists == (0, (), (), (2,))


def test_the_elr_of_a_disabled_feature_is_cleared_once_there_is_an_isr() -> None:
    for rules in (ELR, KEEPS):
        assert Made(state(1, (1,), elr=(2, 3)), ALL, rules, elr=False, isr=(1, 4)).lists == (1, (1, 4), (), ())
        assert Made(state(1, (1,), elr=(2, 3)), (4,), rules, elr=False, isr=()).lists == (0, (1,), (), ())


@pytest.mark.parametrize(("isr", "elr"), [((1,), ()), ((), (1,))])
def test_the_last_candidate_of_a_leaderless_partition_is_remembered(isr: tuple[int, ...], elr: tuple[int, ...]) -> None:
    before = state(leader=0, isr=isr, elr=elr)
    forgets = mode("elr-4.3").rules
    forgotten = Made(before, (2,), forgets, isr=(), unclean=(1,))
    assert forgotten.lists == (0, (), (), ())
    assert "last_candidate=forgotten" in forgotten.probes
    remembers = forgets.override({"last_candidate": "remembered"})
    assert Made(before, (2,), remembers, isr=(), unclean=(1,)).lists == (0, (), (), (1,))
    known = state(leader=0, isr=isr, elr=elr, last_known_elr=(2,))
    assert Made(known, (3,), remembers, isr=(), unclean=(1,)).lists[3] != (1,)


# Reassignment (D16).


@pytest.mark.parametrize(
    ("completes", "done"), [("adding-in-isr", True), ("targets-in-isr", False), ("min-isr", False)]
)
def test_a_reassignment_may_not_leave_one_member(completes: str, done: bool) -> None:
    """1, 2, 3 become 4, 2, 3, of which only 4 is in sync."""
    before = state(1, (1,), replicas=(4, 2, 3, 1), adding=(4,), removing=(1,))
    rules = KRAFT.override({"reassignment_completes": completes})
    made = Made(before, ALL, rules, min_isr=2, isr=(1, 4))
    assert made.after is not None
    assert made.after.replicas == ((4, 2, 3) if done else (4, 2, 3, 1))
    assert made.lists[:2] == ((4, (4,)) if done else (1, (1, 4)))
    assert ("reassignment-waits" in made.probes) != done
    assert f"reassignment_completes={completes}" in made.probes


def test_reassignment_completes_with_min_isr_by_the_text_of_the_kip() -> None:
    before = state(1, (1, 2), replicas=(4, 2, 3, 1), adding=(4,), removing=(1,))
    for completes, done in (("targets-in-isr", False), ("min-isr", True)):
        made = Made(before, ALL, KRAFT.override({"reassignment_completes": completes}), min_isr=2, isr=(1, 2, 4))
        assert made.after is not None
        assert (not made.after.adding) == done


def test_only_final_replicas_stay_electable_as_the_text_has_it() -> None:
    before = state(2, (1, 2), replicas=(2, 3, 1), adding=(), removing=(1,))
    for outside, elr in (("kept", (1,)), ("dropped", ())):
        rules = ELR.override({"elr_outside_assignment": outside})
        made = Made(before, ALL, rules, min_isr=3, isr=(2,), replicas=(2, 3), removing=())
        assert made.lists == (2, (2,), elr, ())


def test_a_removed_replica_raises_the_leader_epoch() -> None:
    made = Made(state(2, replicas=(4, 2, 3, 1), removing=(1,)), ALL, KRAFT, min_isr=2)
    assert made.after is not None
    assert made.after.replicas == (4, 2, 3)
    assert made.epochs == (8, 10)
    assert made.lists[0] == 2


def test_isr_that_is_large_enough_empties_the_elr_by_the_text() -> None:
    """Min ISR was lowered while the ISR was empty: the HW moves with the elected member alone."""
    before = state(leader=0, isr=(), elr=(2, 3), last_known_elr=(1,))
    assert Made(before, (2,), KIP, min_isr=1).lists == (2, (2,), (), ())
    assert Made(before, (2,), KIP, min_isr=2).lists == (2, (2,), (3,), (1,))
    assert Made(before, (2,), mode("elr-4.0-snapshot").rules, min_isr=1).lists == (2, (2,), (3,), ())


def test_last_known_elr_is_kept_by_the_text_until_the_isr_is_large_enough() -> None:
    before = state(leader=0, isr=(), last_known_elr=(1, 2, 3))
    assert Made(before, ALL, KIP, election=DESIGNATED, designated=2).lists == (2, (2,), (), (1, 3))
    assert Made(before, ALL, KIP, election=DESIGNATED, designated=2, min_isr=1).lists == (2, (2,), (), ())
    assert Made(before, ALL, ELR, election=DESIGNATED, designated=2).lists == (2, (2,), (), ())
