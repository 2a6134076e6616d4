from __future__ import annotations

from functools import cache

from faults.plan import Fault
from scenarios.format.catalogue import load
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Criterion, Symptom, Trials
from scenarios.shrinking.pairs import pairs
from scenarios.single import recording
from sim.protocol.modes import MODES

STUCK = Symptom("no-progress", inside=True)
AT_US = 10_000_000


@cache
def masked() -> Case:
    """A reassignment that is replaced by one to the leader alone, whose machine then loses power.

    The first never completes, because a replica is marked both as added and as removed. With that repaired, the
    partition has one replica, and an ELR with another broker: it never gets a leader.
    """
    scenario, mode = load("reassignments"), MODES["elr-4.3"]
    result = Case(scenario, mode, 2_000_000_095).run()
    case = Case(recording.of_run(scenario, result).scenario, mode, 2_000_000_095)
    moves = [Fault("reassignment", AT_US, (0,), -1, replicas=replicas) for replicas in ((2, 4), (1,))]
    return case.with_faults((*moves, Fault("power-loss", AT_US, (1,), 1_000_000))).with_sends(())


def test_no_single_rule_value_cures_the_run() -> None:
    trials = Trials()
    assert STUCK.shown_by(trials.row(masked()))
    assert not any(repair.is_rule for repair in Criterion(trials, masked(), STUCK).cause)


def test_the_second_of_a_pair_cures_what_the_first_leaves() -> None:
    trials = Trials()
    found = list(pairs(masked(), STUCK, trials))
    assert "resubmitted_reassignment=replaces-marks elr_outside_assignment=dropped" in [
        " ".join(map(str, pair)) for pair in found
    ]
    for first, second in found:
        left = first.apply(masked())
        assert STUCK.shown_by(trials.row(left))
        assert STUCK.cured_in(trials.row(second.apply(left)))


def test_each_pair_is_named_once() -> None:
    found = [frozenset(pair) for pair in pairs(masked(), STUCK, Trials())]
    assert len(found) == len(set(found)) > 0
