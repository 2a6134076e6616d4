"""All checkers: a new one is added here.

Early warnings check internal invariants of the protocol, which can show a problem before any client sees it; they are
kept apart from violations (`sim.history.findings.Findings.warnings`).
"""

from __future__ import annotations

from typing import Final

from sim.checkers.ack_above_hw import AckAboveHw
from sim.checkers.ack_under_min_isr import AckUnderMinIsr
from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.checkers.clean_elections import CleanElections
from sim.checkers.committed_loss import CommittedLoss
from sim.checkers.committed_offsets import CommittedOffsets
from sim.checkers.completeness import Completeness
from sim.checkers.consistent_reads import ConsistentReads
from sim.checkers.consumer_skip import ConsumerSkip
from sim.checkers.controller_crashes import ControllerCrashes
from sim.checkers.deleted_records import DeletedRecords
from sim.checkers.divergence import Divergence
from sim.checkers.epoch_cache import EpochCache
from sim.checkers.epoch_leaders import EpochLeaders
from sim.checkers.exposed_loss import ExposedLoss
from sim.checkers.flushed_loss import FlushedLoss
from sim.checkers.global_loss import GlobalLoss
from sim.checkers.hw_above_isr import HwAboveIsr
from sim.checkers.hw_regression import HwRegression
from sim.checkers.idempotence import Idempotence
from sim.checkers.log_matching import LogMatching
from sim.checkers.maximal_isr import MaximalIsr
from sim.checkers.metadata_loss import MetadataLoss
from sim.checkers.metadata_matching import MetadataMatching
from sim.checkers.needless_wait import NeedlessWait, Obstacles, WaitBounds
from sim.checkers.quorum_leaders import QuorumLeaders
from sim.checkers.quorum_progress import QuorumProgress
from sim.checkers.recovery_quorum import RecoveryQuorum
from sim.checkers.sequence_gap import SequenceGap
from sim.checkers.stale_setting import StaleSetting
from sim.history.recorder import Recorder
from sim.protocol.probes import CHECKS

CHECKERS: Final[list[type[Checker]]] = [
    CommittedLoss,
    ExposedLoss,
    Idempotence,
    SequenceGap,
    ConsumerSkip,
    DeletedRecords,
    Divergence,
    HwRegression,
    AckUnderMinIsr,
    ControllerCrashes,
    StaleSetting,
    EpochLeaders,
    LogMatching,
    Completeness,
    ConsistentReads,
    GlobalLoss,
    MaximalIsr,
    MetadataMatching,
    RecoveryQuorum,
    AckAboveHw,
    HwAboveIsr,
    FlushedLoss,
    EpochCache,
    MetadataLoss,
    QuorumLeaders,
    CommittedOffsets,
]
"""In the order in which they receive a step and make their final check; those of plug-ins last."""
_OWN: Final = len(CHECKERS)
LIVENESS: Final = (
    Finding("stuck-replica", ALWAYS),
    Finding("no-progress", ALWAYS),
    Finding("stuck-consumer", ALWAYS),
)
"""Findings of waiting for convergence (`scenarios.single.convergence`)."""
FINDINGS: Final[dict[str, Finding]] = {
    finding.kind: finding
    for finding in (
        *(one for kind in CHECKERS for one in kind.FINDINGS),
        *QuorumProgress.FINDINGS,
        *CleanElections.FINDINGS,
        *NeedlessWait.FINDINGS,
        *LIVENESS,
    )
}
"""Kinds of findings by name."""


class Checkers:
    """The checkers of a partition; `plugged`: those of plug-ins, too. `bounds` and `obstacles` are for `NeedlessWait`,
    which judges only runs that ask for it (``sim.judge.waits``); `election_us` and `idle_us` are the bounds of
    `QuorumProgress` for the first partition of a run whose controllers are processes, and otherwise 0;
    `judges_elections`: whether there is `CleanElections`; `recovers`: see there.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        plugged: bool = True,
        bounds: WaitBounds | None = None,
        obstacles: Obstacles | None = None,
        election_us: int = 0,
        idle_us: int = 0,
        judges_elections: bool = False,
        recovers: bool = False,
    ) -> None:
        self._coverage = recorder.coverage
        kinds = CHECKERS if plugged else CHECKERS[:_OWN]
        self._all = [kind(recorder.history) for kind in kinds]
        if bounds is not None and obstacles is not None:
            self._all.append(NeedlessWait(recorder.history, bounds, obstacles))
        if election_us:
            self._all.append(QuorumProgress(recorder.history, election_us, idle_us))
        if judges_elections:
            self._all.append(CleanElections(recorder.history, recovers=recovers))
        recorder.attach(self._all)

    def final(self, end: RunEnd) -> None:
        """Check the final state, and note which checkers have decided."""
        for checker in self._all:
            checker.final(end)
            if checker.decided and checker.FINDINGS[0].kind in CHECKS:
                self._coverage.reached(CHECKS[checker.FINDINGS[0].kind])

    def close(self) -> None:
        """See `Checker.close`."""
        for checker in self._all:
            checker.close()

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        for checker in self._all:
            checker.dispose()
