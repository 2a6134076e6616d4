"""What too few controllers have on disk; losses themselves are found in whole runs (test_seeded_quorum_bugs)."""

from __future__ import annotations

import pytest

from sim.checkers.metadata_loss import MetadataLoss
from sim.history import steps
from sim.history.history import History
from sim.protocol.raft.raft_log import RaftBatch


def found(lacks: int, *before: steps.Step, node: int = 100, elided: bool = False, controllers: int = 3) -> list[str]:
    """The warnings if a process knows a batch to be committed that so many controllers do not have on disk."""
    history = History()
    checker = MetadataLoss(history)
    processes = [
        steps.ControllerProcess(steps.CONTROLLER_START, steps.FIRST_CONTROLLER + place) for place in range(controllers)
    ]
    commit = steps.RaftCommit(node, 1, [RaftBatch(0, 1, 1, ())], elided=elided, lacks=lacks)
    for step in (*processes, *before, commit):
        step.at_us = 5
        step.tell([checker])
    return [warning.kind for warning in history.findings.warnings]


@pytest.mark.parametrize(("controllers", "most"), [(1, 1), (3, 2), (5, 3)])
def test_a_majority_without_the_leader_has_committed_metadata_on_disk(controllers: int, most: int) -> None:
    assert found(most, controllers=controllers) == []
    if most < controllers:
        assert found(most + 1, controllers=controllers) == ["metadata-unflushed"]


def test_brokers_idle_time_and_lost_disks_are_not_judged() -> None:
    assert found(3, node=1) == []
    assert found(3, elided=True) == []
    assert found(3, steps.ControllerProcess(steps.CONTROLLER_END, 101, "disk-replaced", 0)) == []
