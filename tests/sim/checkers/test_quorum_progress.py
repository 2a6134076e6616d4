"""Whether a majority of controllers that run commits metadata."""

from __future__ import annotations

from sim.checkers.quorum_progress import QuorumProgress
from sim.history import steps
from sim.history.recorder import Recorder
from sim.kernel.scheduler import Kernel
from sim.protocol.raft.raft_log import RaftBatch

BOUND_US = 1_000
IDLE_US = 100


class Quorum:
    """Three controllers, which start at 0, and the checker."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.recorder = Recorder(self.kernel)
        self.checker = QuorumProgress(self.recorder.history, BOUND_US, IDLE_US)
        self.recorder.attach([self.checker])
        self._end = 0
        for node in (100, 101, 102):
            self.process(0, steps.CONTROLLER_START, node)

    def process(self, at_us: int, kind: steps.StepKind, node: int, *, crashed: bool = False) -> None:
        self.kernel.now_us = at_us
        self.recorder.record(steps.ControllerProcess(kind, node, crashed=crashed))

    def link(self, at_us: int, kind: steps.StepKind, source: int, target: int) -> None:
        self.kernel.now_us = at_us
        self.recorder.record(steps.LinkChange(kind, source, target))

    def commit(self, at_us: int, node: int = 100, *, epoch: int = 1, elided: bool = False) -> None:
        self.kernel.now_us = at_us
        batch = RaftBatch(self._end, epoch, 1, ())
        self._end = batch.end_offset
        self.recorder.record(steps.RaftCommit(node, 1, [batch], elided=elided))

    def found(self, at_us: int) -> list[str]:
        """The violations until a time."""
        self.checker._turn(at_us, BOUND_US)
        return [violation.kind for violation in self.recorder.history.findings.violations]


def test_a_quorum_that_commits_now_and_then_does_not_stall() -> None:
    quorum = Quorum()
    for at_us in range(0, 5_000, IDLE_US):
        quorum.commit(at_us)
    assert quorum.found(5_000) == []
    assert quorum.checker.decided


def test_a_leader_that_stays_and_commits_nothing_meanwhile_stalls() -> None:
    quorum = Quorum()
    quorum.commit(0)
    quorum.commit(IDLE_US + 1)
    assert quorum.found(IDLE_US + 2) == ["quorum-stalled"]


def test_a_leader_may_commit_late_after_an_election_a_fault_or_idle_time() -> None:
    quorum = Quorum()
    quorum.commit(0)
    quorum.commit(300, 101, epoch=2)
    quorum.process(310, steps.CONTROLLER_PAUSE, 100)
    quorum.commit(600, 101, epoch=2)
    quorum.commit(900, 101, epoch=2, elided=True)
    assert quorum.found(1_000) == []


def test_a_majority_that_runs_and_commits_nothing_stalls_once() -> None:
    quorum = Quorum()
    quorum.commit(0)
    quorum.process(10, steps.CONTROLLER_END, 100)
    assert quorum.found(10 + BOUND_US) == []
    assert quorum.found(20 + 2 * BOUND_US) == ["quorum-stalled"]
    assert quorum.found(9_000) == ["quorum-stalled"]


def test_a_minority_need_not_commit() -> None:
    quorum = Quorum()
    quorum.process(10, steps.CONTROLLER_END, 100)
    quorum.process(10, steps.CONTROLLER_PAUSE, 101)
    assert quorum.found(9_000) == []
    quorum.process(9_000, steps.CONTROLLER_RESUME, 101)
    assert quorum.found(9_001 + BOUND_US) == ["quorum-stalled"]


def test_controllers_that_do_not_reach_one_another_need_not_commit() -> None:
    quorum = Quorum()
    quorum.link(10, steps.CUT, 100, 0)
    assert quorum.found(9_000) == []
    quorum.link(9_000, steps.HEAL, 100, 0)
    quorum.link(9_000, steps.CUT, 3, 0)  # A broker's link.
    assert quorum.found(9_001 + BOUND_US) == ["quorum-stalled"]


def test_a_process_that_ends_by_an_exception_is_one_that_runs() -> None:
    quorum = Quorum()
    quorum.process(10, steps.CONTROLLER_END, 101)
    for at_us in range(100, 2_000, 100):
        quorum.process(at_us, steps.CONTROLLER_END, 100, crashed=True)
        quorum.process(at_us + 50, steps.CONTROLLER_START, 100)
    assert quorum.found(2_000) == ["quorum-stalled"]


def test_a_controller_that_commits_again_what_others_have_committed_is_no_progress() -> None:
    quorum = Quorum()
    quorum.commit(0)
    quorum.commit(1)
    for at_us in range(100, 2_000, 100):
        quorum._end = 0
        quorum.commit(at_us, node=101)
    assert quorum.found(2_000) == ["quorum-stalled"]
