"""All checkers: whoever adds one adds it here.

Early warnings look at what the protocol rests on inside, where a violation may come from before anybody is told
anything wrong; they are kept apart from violations (`sim.history.findings.Findings.warnings`).
"""

from __future__ import annotations

from typing import Final

from sim.checkers.ack_under_min_isr import AckUnderMinIsr
from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.checkers.committed_loss import CommittedLoss
from sim.checkers.completeness import Completeness
from sim.checkers.consistent_reads import ConsistentReads
from sim.checkers.consumer_skip import ConsumerSkip
from sim.checkers.divergence import Divergence
from sim.checkers.epoch_leaders import EpochLeaders
from sim.checkers.exposed_loss import ExposedLoss
from sim.checkers.global_loss import GlobalLoss
from sim.checkers.hw_regression import HwRegression
from sim.checkers.idempotence import Idempotence
from sim.checkers.log_matching import LogMatching
from sim.checkers.maximal_isr import MaximalIsr
from sim.checkers.metadata_matching import MetadataMatching
from sim.checkers.recovery_quorum import RecoveryQuorum
from sim.history.recorder import Recorder

CHECKERS: Final[tuple[type[Checker], ...]] = (
    CommittedLoss,
    ExposedLoss,
    Idempotence,
    ConsumerSkip,
    Divergence,
    HwRegression,
    AckUnderMinIsr,
    EpochLeaders,
    LogMatching,
    Completeness,
    ConsistentReads,
    GlobalLoss,
    MaximalIsr,
    MetadataMatching,
    RecoveryQuorum,
)
"""In the order in which they are told of one step, and look at the end."""
LIVENESS: Final = (Finding("stuck-replica", ALWAYS), Finding("no-progress", ALWAYS))
"""What waiting for convergence may find (`scenarios.single.convergence`)."""
FINDINGS: Final[dict[str, Finding]] = {
    finding.kind: finding for finding in (*(one for kind in CHECKERS for one in kind.FINDINGS), *LIVENESS)
}
"""All kinds of findings, by their names."""


class Checkers:
    """The checkers of one run.

    Args:
        recorder: what tells them of steps.
    """

    __slots__ = ("_all",)

    def __init__(self, recorder: Recorder) -> None:
        self._all = [kind(recorder.history) for kind in CHECKERS]
        recorder.attach(self._all)

    def final(self, end: RunEnd) -> None:
        """The run has ended."""
        for checker in self._all:
            checker.final(end)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        for checker in self._all:
            checker.dispose()
