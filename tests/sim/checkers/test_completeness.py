from __future__ import annotations

from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import Completeness
from tests.sim.checkers.histories import make, replica, warnings

FIRST, SECOND, THIRD = Batch(0, 2, 0, 10), Batch(3, 4, 0, 20), Batch(5, 5, 0, 30)
OTHER = Batch(3, 4, 1, 40)


class World:
    """Three brokers with logs of their own, all known and in the ISR; broker 1 leads and has committed."""

    def __init__(self, *logs: tuple[Batch, ...], isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.history = History()
        self.checker = Completeness(self.history)
        self.checker.isr(isr, (), 0)
        self.replicas = {broker: replica(*log) for broker, log in enumerate(logs, 1)}
        for broker, loaded in self.replicas.items():
            make(self.history, *loaded.log.batches)
            self.checker.loaded(broker, loaded)
            self.checker.session(broker)
            self.checker.told(broker, 0)
        self.checker.elected(0)
        self.checker.lead(1, 0, 0)

    def commit(self, *batches: Batch, broker: int = 1, epoch: int = 0) -> list[str]:
        self.checker.committed(broker, epoch, list(batches), 5)
        return self.found

    @property
    def found(self) -> list[str]:
        return warnings(self.history)


def test_record_that_the_whole_isr_has_is_complete() -> None:
    world = World((FIRST, SECOND, THIRD), (FIRST, SECOND), (FIRST, SECOND, THIRD))
    assert world.commit(FIRST, SECOND) == []
    world.checker.lead(2, 1, 6)
    assert world.found == []


def test_a_commit_that_a_candidate_lacks() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    assert world.commit(FIRST) == []
    assert world.commit(SECOND) == ["candidate-incomplete"]
    assert world.history.findings.warnings[0].ids == {20, 21}
    assert "broker 3 is in the ISR but lacks 2 committed records" in world.history.findings.warnings[0].detail
    assert world.commit(SECOND) == ["candidate-incomplete"]


def test_broker_out_of_the_isr_or_down_may_lack_it() -> None:
    assert World((FIRST, SECOND), (FIRST, SECOND), (FIRST,), isr=(1, 2)).commit(FIRST, SECOND) == []
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    world.checker.ended(3)
    assert world.commit(FIRST, SECOND) == []
    world.checker.loaded(3, world.replicas[3])
    assert world.found == []
    world.checker.told(3, 6)
    assert world.found == []
    world.checker.session(3)
    world.checker.told(3, 6)
    assert world.found == ["candidate-incomplete"]


def test_candidate_needs_a_session() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    world.checker.session_end(3)
    assert world.commit(FIRST, SECOND) == []


def test_an_unfenced_member_is_a_candidate_even_when_it_is_fenced_again() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,))
    world.checker.ended(3)
    world.checker.told(3, 6)
    assert world.commit(FIRST, SECOND) == []
    world.checker.unfenced(3, 7)
    assert world.found == ["candidate-incomplete"]


def test_eligible_leader_replicas_must_have_it_all() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,), isr=(1, 2))
    world.checker.isr((1,), (2,), 4)
    assert world.commit(FIRST, SECOND) == []
    world.checker.truncated(2, world.replicas[2].log.truncate_to(3), 6)
    assert world.found == ["candidate-incomplete"]
    assert "broker 2 is in the ELR but lacks 2 committed records" in world.history.findings.warnings[0].detail
    world.checker.isr((), (1, 2, 3), 7)
    assert [warning.detail[:8] for warning in world.history.findings.warnings] == ["broker 2", "broker 3"]


def test_broker_ejected_from_the_elr_may_lack_it() -> None:
    world = World((FIRST, SECOND), (FIRST,), (FIRST,), isr=(1,))
    assert world.commit(FIRST, SECOND) == []
    world.checker.ended(1)
    world.checker.isr((), (), 6)
    world.checker.unfenced(1, 7)
    assert world.found == []


def test_broker_that_joins_the_isr_must_have_it_all() -> None:
    world = World((FIRST, SECOND), (FIRST, SECOND), (FIRST,), isr=(1, 2))
    assert world.commit(FIRST, SECOND) == []
    world.checker.isr((1, 2, 3), (), 6)
    assert world.found == ["candidate-incomplete"]


def test_a_candidate_must_not_truncate_what_is_committed() -> None:
    world = World((FIRST, SECOND, THIRD), (FIRST, SECOND, THIRD), (FIRST, SECOND, THIRD))
    world.commit(FIRST, SECOND)
    world.checker.truncated(3, world.replicas[3].log.truncate_to(5), 6)
    assert world.found == []
    world.checker.truncated(3, world.replicas[3].log.truncate_to(3), 6)
    assert world.found == ["candidate-incomplete"]


def test_a_leader_must_have_it_all_and_what_it_lacks_is_given_up() -> None:
    world = World((FIRST, SECOND), (FIRST,), (FIRST,), isr=(1,))
    assert world.commit(FIRST, SECOND) == []
    world.checker.elected(1)
    world.checker.lead(2, 1, 6)
    assert world.found == ["leader-incomplete"]
    world.checker.lead(3, 2, 7)
    assert world.found == ["leader-incomplete"]


def test_an_older_leader_must_not_commit_what_the_newest_lacks() -> None:
    world = World((FIRST, SECOND), (FIRST,), (FIRST,), isr=(1,))
    world.checker.elected(2)
    world.checker.lead(3, 1, 6)
    world.checker.lead(2, 2, 6)
    assert world.commit(FIRST) == []
    assert world.commit(SECOND) == ["leader-incomplete"]


def test_records_count_at_any_offset_but_not_below_a_log_start() -> None:
    world = World((FIRST, SECOND), (FIRST, Batch(3, 4, 1, 20)), (FIRST, OTHER))
    world.replicas[3].set_hw(5)
    world.replicas[3].advance_log_start(5)
    assert world.commit(FIRST, SECOND) == []
