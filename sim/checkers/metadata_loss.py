"""Metadata loss: what a controller or broker knows to be committed in a replicated quorum is never lost or changed.

Verifies: all processes commit the same batch at each offset of the metadata log (RaftEventSimulationTest:
ConsistentCommittedData); a process commits batches in order and none twice, so that neither its high watermark nor a
broker's image goes back (MonotonicHighWatermark); a snapshot that a process loads is one of this log.

Warns ``metadata-unflushed``: a controller knows a batch to be committed, and too few controllers have it on disk. The
leader counts itself before it has flushed, the others flush before they fetch on (KafkaRaftClient#flushLeaderLog).

A loss is outside the promise if a controller had lost its disk or its file quorum-state while fewer than a majority of
the others had all committed metadata on disk.

Does not verify: batches that no process gets to know as committed; that a request was answered before its records were
committed.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import ALWAYS, NOT_PROMISED, Checker, Finding, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.raft.raft_log import RaftBatch


class MetadataLoss(Checker):
    """Keeps the committed batches, and how far each process has come."""

    FINDINGS: ClassVar = (Finding("metadata-loss", ALWAYS), warning("metadata-unflushed"))
    of_cluster: ClassVar[bool] = True

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._batches: dict[int, RaftBatch] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        """Node -> incarnation of its last process, and the offset up to which that knows batches to be committed."""
        self._reported: set[tuple[int, int]] = set()
        """Nodes and incarnations of the processes with which something is wrong."""
        self._is_excused = False
        self._controllers: set[int] = set()
        self._is_warned = False

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        self._is_excused |= step.excuses
        self._controllers.add(step.node)
        self._is_warned |= step.lost >= 0  # A disk that was lost has nothing that was flushed.

    def on_metadata_snapshot(self, step: steps.MetadataSnapshot) -> None:
        if step.kind is steps.SNAPSHOT_MADE:
            return
        incarnation, end = self._ends.get(step.node, (step.incarnation, 0))
        snapshot = step.snapshot
        if incarnation == step.incarnation and snapshot.id.offset < end:
            self._report(step, f"has committed up to offset {end}, and loads a snapshot of offset {snapshot.id.offset}")
        known = self._batches.get(snapshot.last.base_offset)
        if known is not None and known is not snapshot.last:
            there = f"offset {snapshot.last.base_offset} has another batch than is committed"
            self._report(step, f"loads a snapshot of a log in which {there}")
        self._ends[step.node] = step.incarnation, snapshot.id.offset

    def on_raft_commit(self, step: steps.RaftCommit) -> None:
        incarnation, end = self._ends.get(step.node, (step.incarnation, 0))
        if incarnation != step.incarnation:
            end = 0
        for batch in step.batches:
            if batch.base_offset != end:
                self._report(step, f"has committed up to offset {end}, and next commits offset {batch.base_offset}")
            end = batch.end_offset
            known = self._batches.get(batch.base_offset)
            if known is not batch:
                if known is not None:
                    self._report(step, f"has committed offset {batch.base_offset}, where another batch was committed")
                self._batches[batch.base_offset] = batch
            elif batch.records:
                self.decided = True
        self._ends[step.node] = step.incarnation, end
        # Idle time is accounted for one process after the other.
        is_new = step.node >= steps.FIRST_CONTROLLER and not step.elided
        if is_new and step.lacks > len(self._controllers) // 2 + 1 and not self._is_warned:
            self._is_warned = True
            detail = f"controller {step.node} has committed up to offset {end}, which {step.lacks} of "
            detail += f"{len(self._controllers)} controllers do not have on disk"
            self._warns("metadata-unflushed", step.at_us, detail)

    def _report(self, step: steps.RaftCommit | steps.MetadataSnapshot, what: str) -> None:
        process = step.node, step.incarnation
        if process in self._reported:
            return
        self._reported.add(process)
        kind = "broker" if step.node < steps.FIRST_CONTROLLER else "controller"
        promised = NOT_PROMISED if self._is_excused else ""
        self._violates("metadata-loss", step.at_us, f"{kind} {step.node} {what}", promised=promised)
