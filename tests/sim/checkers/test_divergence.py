from __future__ import annotations

from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.driven import Divergence
from tests.sim.checkers.histories import kinds, replica

SAME = Batch(0, 1, 0, 10)
ONE, OTHER = Batch(2, 2, 1, 20), Batch(2, 2, 2, 30)


class Pair:
    """Two replicas and the checker that compares them."""

    def __init__(self, one: tuple[Batch, ...], two: tuple[Batch, ...], *, hw: int = 0) -> None:
        self.history = History()
        self.checker = Divergence(self.history)
        self.replicas = {1: replica(*one, hw=hw), 2: replica(*two, hw=hw)}
        for broker, loaded in self.replicas.items():
            self.checker.loaded(broker, loaded)

    def settle(self, broker: int, epoch: int = 5) -> list[str]:
        self.checker.settled(broker, epoch, 9)
        return kinds(self.history)


def test_equal_records_below_both_high_watermarks_are_fine() -> None:
    pair = Pair((SAME, ONE), (SAME, Batch(2, 2, 1, 20)))
    pair.settle(1)
    assert pair.settle(2) == []


def test_another_record_or_another_epoch_is_divergence() -> None:
    for other in (OTHER, Batch(2, 2, 2, 20), Batch(2, 2, 1, 21)):
        pair = Pair((SAME, ONE), (SAME, other))
        pair.settle(1)
        assert pair.settle(2) == ["divergence"]
    assert (
        "at offset 2 broker 1 has record 20 of epoch 1 and broker 2 has record 21"
        in pair.history.findings.violations[0].detail
    )


def test_records_that_the_leader_has_deleted_do_not_count() -> None:
    after = Batch(3, 3, 3, 40)
    pair = Pair((SAME, ONE, after), (SAME, OTHER, after), hw=2)
    pair.settle(1)
    pair.settle(2)
    pair.replicas[1].set_hw(4)
    pair.replicas[2].apply_leader_offsets(4, 3)
    pair.checker.compare(2, 9)
    assert kinds(pair.history) == []


def test_a_hole_in_one_of_them_is_divergence_and_in_both_is_not() -> None:
    after = Batch(3, 3, 3, 40)
    pair = Pair((SAME, ONE, after), (SAME, after))
    pair.settle(1)
    assert pair.settle(2) == ["divergence"]
    pair = Pair((SAME, after), (SAME, after, Batch(4, 4, 3, 50)))
    pair.settle(1)
    assert pair.settle(2) == []


def test_tails_above_a_high_watermark_may_differ_until_it_moves() -> None:
    pair = Pair((SAME, ONE), (SAME, OTHER), hw=2)
    pair.settle(1)
    assert pair.settle(2) == []
    for moved in pair.replicas.values():
        moved.set_hw(3)
    pair.checker.compare(1, 9)
    assert kinds(pair.history) == ["divergence"]


def test_only_settled_replicas_of_the_same_epoch_are_compared() -> None:
    pair = Pair((SAME, ONE), (SAME, OTHER))
    pair.settle(1, 4)
    assert pair.settle(2, 5) == []
    pair = Pair((SAME, ONE), (SAME, OTHER))
    pair.settle(1)
    pair.checker.unsettled(1)
    assert pair.settle(2) == []
    pair = Pair((SAME, ONE), (SAME, OTHER))
    pair.settle(1)
    pair.checker.ended(1)
    assert pair.settle(2) == []


def test_truncated_offsets_are_compared_again() -> None:
    pair = Pair((SAME, ONE), (SAME, ONE))
    pair.settle(1)
    assert pair.settle(2) == []
    pair.replicas[2].log.truncate_to(2)
    pair.checker.truncated(2, 2)
    pair.replicas[2].log.append(OTHER)
    pair.checker.compare(2, 9)
    assert kinds(pair.history) == ["divergence"]


def test_offsets_below_a_log_start_are_not_compared() -> None:
    pair = Pair((SAME, ONE), (OTHER, Batch(3, 3, 1, 21)))
    pair.replicas = {1: replica(SAME, ONE, Batch(3, 3, 1, 21)), 2: replica(SAME, OTHER, Batch(3, 3, 1, 21), start=3)}
    for broker, loaded in pair.replicas.items():
        pair.checker.loaded(broker, loaded)
    pair.settle(1)
    assert pair.settle(2) == []


def test_each_pair_is_reported_once_and_the_final_check_covers_all() -> None:
    pair = Pair((SAME, ONE), (SAME, OTHER))
    pair.checker.compare_all({**pair.replicas, 3: replica(SAME, ONE)}, 9)
    assert kinds(pair.history) == ["divergence"] * 2
    pair.checker.compare_all(pair.replicas, 9)
    assert kinds(pair.history) == ["divergence"] * 2


def test_without_a_leader_a_replica_may_have_to_truncate_yet() -> None:
    pair = Pair((SAME, ONE), (SAME, OTHER))
    pair.checker.compare_all(pair.replicas, 9, leader=0)
    assert kinds(pair.history) == []
