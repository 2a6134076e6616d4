from __future__ import annotations

from sim.history.history import History
from sim.protocol.kraft.metadata import PartitionRegistration
from tests.sim.checkers.driven import RecoveryQuorum
from tests.sim.checkers.histories import warnings

Brokers = tuple[int, ...]


class World:
    """Three replicas, all in the ISR, min ISR 2; changes come one by one."""

    def __init__(self, *, remembers: bool = False) -> None:
        self.history = History()
        self.checker = RecoveryQuorum(self.history)
        self.remembers = remembers
        self.epoch = 0
        self.change(1, (1, 2, 3))

    def change(
        self,
        leader: int,
        isr: Brokers,
        elr: Brokers = (),
        *,
        known: Brokers = (),
        unclean: int = 0,
        min_isr: int = 2,
        replicas: Brokers = (1, 2, 3),
    ) -> list[str]:
        self.epoch += 1
        state = PartitionRegistration(
            "t-0", leader, self.epoch, isr, self.epoch, replicas, elr=elr, last_known_elr=known
        )
        self.checker.changed(state, min_isr, unclean, 5, remembers=self.remembers)
        return warnings(self.history)


def test_member_that_leaves_a_small_isr_stays_eligible() -> None:
    world = World()
    assert world.change(1, (1, 2)) == []
    assert world.change(1, (1,), (2,)) == []
    assert world.change(0, (), (1, 2)) == []
    assert world.change(2, (2,), (1,)) == []
    assert world.change(2, (2, 3)) == []


def test_somebody_is_forgotten() -> None:
    world = World()
    assert world.change(1, (1,), ()) == ["recovery-quorum"]
    assert "ISR [1], ELR [] and those ejected after an unclean shutdown [] are 1 assigned replicas" in (
        world.history.findings.warnings[0].detail
    )
    assert world.change(0, (), (1,)) == ["recovery-quorum"]
    assert world.change(1, (1, 2)) == ["recovery-quorum"]
    assert world.change(1, (1,)) == ["recovery-quorum"] * 2


def test_only_a_registration_after_an_unclean_shutdown_ejects() -> None:
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (), unclean=2) == []
    assert world.change(0, (), (1,)) == []
    assert world.change(0, (), (), unclean=1) == []
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (), unclean=3) == ["recovery-quorum"]


def test_the_ejected_count_as_far_as_they_are_remembered() -> None:
    world = World(remembers=True)
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (), known=(2,), unclean=2) == []
    assert world.change(0, (), (), known=(1, 2), unclean=1) == []
    assert world.change(0, (), (), known=(1,)) == ["recovery-quorum"]


def test_after_electing_a_remembered_member_the_others_stay() -> None:
    world = World(remembers=True)
    world.change(1, (1,), (2,))
    world.change(0, (), (), known=(1, 2), unclean=1)
    assert world.change(1, (1,), known=(2,)) == []
    assert world.change(0, (), (1,), known=(2,)) == []
    assert world.change(1, (1,)) == ["recovery-quorum"]


def test_broker_that_is_no_replica_any_more_does_not_count() -> None:
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (2,), replicas=(1, 3, 4)) == ["recovery-quorum"]


def test_quorum_is_not_asked_for_after_an_unclean_election() -> None:
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(3, (3,)) == []
    assert world.change(0, (), (3,)) == []
    assert world.change(3, (1, 3)) == []
    assert world.change(3, (3,)) == ["recovery-quorum"]


def test_the_smallest_min_isr_counts() -> None:
    world = World()
    assert world.change(1, (1, 2), min_isr=3) == []
    assert world.change(1, (1,), min_isr=3) == ["recovery-quorum"]
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(0, (), (1,), min_isr=1) == []
    assert world.change(0, (), (), known=(1,), min_isr=1) == ["recovery-quorum"]


def test_nothing_is_decided_while_no_member_leaves() -> None:
    """The history is then the same without ELR, where the checker is not told of changes."""
    world = World()
    assert world.change(1, (1, 2, 3), min_isr=4, replicas=(1, 2, 3, 4)) == []
    assert not world.checker.decided
    assert world.change(1, (1, 2), (3,), min_isr=4, replicas=(1, 2, 3, 4)) == []
    assert world.checker.decided


def test_a_change_of_min_isr_that_clears_the_elr_forgets_who_has_it() -> None:
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (), min_isr=3) == ["recovery-quorum"]
    world = World()
    world.change(1, (1,), (2,))
    assert world.change(1, (1,), (), min_isr=1) == []


def test_quorum_is_not_asked_for_without_elr() -> None:
    world = World()
    assert world.change(1, (1,), min_isr=0) == []
