from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from scenarios.single.standstill import complete_replica, needless_wait
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.modes import mode
from tests.sim.checkers.histories import commit, log, tell

COMMITTED = Batch(0, 2, 0, 10)


def history(min_isr: int, *unclean: int, clean: tuple[int, ...] = ()) -> History:
    """Three replicas in the ISR, one committed batch, then ends of brokers."""
    told = History()
    tell(told, steps.MinIsr(min_isr), 0)
    tell(told, steps.Isr((1, 2, 3), 0), 0)
    for broker in (1, 2, 3):
        tell(told, steps.Start(broker, 0), 0)
    commit(told, [COMMITTED], 10)
    for broker in unclean:
        tell(told, steps.End(broker, steps.KILL, [], unclean=True), 20)
    for broker in clean:
        tell(told, steps.End(broker, steps.SHUTDOWN, [], unclean=False), 20)
    return told


def live(*whole: int, empty: tuple[int, ...] = ()) -> dict[int, Log]:
    return {broker: log(COMMITTED) for broker in whole} | {broker: log() for broker in empty}


def test_nobody_is_needed_while_a_live_replica_has_everything() -> None:
    assert needless_wait(history(2, 1), live(3, empty=(1, 2))).endswith(
        "broker 3 has all committed records and 1 broker of ISR and ELR ended uncleanly"
    )


def test_clean_ends_do_not_count() -> None:
    assert "no broker of ISR and ELR ended uncleanly" in needless_wait(history(1, clean=(1, 2, 3)), live(1))


def test_a_wait_has_a_reason_if_no_live_replica_has_everything() -> None:
    assert needless_wait(history(2, 1), live(empty=(1, 2, 3))) == ""


def test_a_wait_has_a_reason_if_min_isr_brokers_ended_uncleanly() -> None:
    assert needless_wait(history(2, 1, 2), live(1, 2, 3)) == ""
    assert needless_wait(history(1, 1), live(1, 2, 3)) == ""


def test_one_broker_that_ends_twice_counts_once() -> None:
    assert needless_wait(history(2, 1, 1), live(3)) != ""


def test_min_isr_counts_as_it_is_at_the_time_of_each_end() -> None:
    lowered, raised = history(2), history(2)
    tell(lowered, steps.MinIsr(1), 15)
    for told in (lowered, raised):
        tell(told, steps.End(1, steps.KILL, [], unclean=True), 20)
    tell(raised, steps.MinIsr(1), 30)
    assert needless_wait(lowered, live(3)) == ""
    assert needless_wait(raised, live(3)) != ""


def test_an_end_counts_only_in_isr_or_elr() -> None:
    told = history(1)
    tell(told, steps.Isr((2, 3), 0), 15)
    tell(told, steps.End(1, steps.KILL, [], unclean=True), 20)
    assert needless_wait(told, live(3)) != ""
    tell(told, steps.Elr((1,), (), 0), 25)
    tell(told, steps.Start(1, 1), 26)
    tell(told, steps.End(1, steps.KILL, [], unclean=True), 30)
    assert needless_wait(told, live(3)) == ""


def test_where_nothing_was_committed_any_live_replica_is_complete() -> None:
    assert complete_replica(History(), live(empty=(2,))) == 2
    assert complete_replica(history(2), live(empty=(2,))) == 0


def test_a_cluster_in_which_nobody_ended_uncleanly_does_not_wait_for_an_operator() -> None:
    """Three live brokers, of which none has lost anything, and no leader for good."""
    row = run_row(load("messages"), mode("elr-4.3"), 30001298)
    assert (row["verdict"], row["violations_inside"], row["needless_stall"]) == ("violation", "no-progress", 1)


@pytest.mark.parametrize("seed", [10000263, 10002511, 10002790])
def test_a_first_value_of_min_isr_leaves_no_leader(seed: int) -> None:
    """The value is set while the ISR is empty, and clears the ELR, though no broker was killed or lost power."""
    row = run_row(load("elr-chaos"), mode("elr-4.3"), seed)
    assert (row["verdict"], row["violations_inside"]) == ("violation", "no-progress")
    repaired = run_row(load("elr-chaos"), mode("elr-4.3"), seed, {"min_isr_change": "clears-if-enough"})
    assert (repaired["verdict"], repaired["violations"]) == ("ok", "")
