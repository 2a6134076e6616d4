"""Steps of a metadata quorum whose controllers are processes: starts and ends, leaders, commits, and lost metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sim.history.steps.base import ASIDE, CHANGE, DETAIL, FACT, TURN, InEpoch, Lane, Shown, Step, StepKind
from sim.protocol.raft.raft_log import RaftBatch, RaftSnapshot

if TYPE_CHECKING:
    from sim.history.steps.listener import Listener

FIRST_CONTROLLER: Final = 100
"""Id of the first controller that is a process; the next ones follow. Brokers are below 100, clients above 1000."""
CONTROLLER_START: Final[StepKind] = StepKind(
    "controller-start", 55, Lane.CONTROL_PLANE,
    "the process of a controller started: node",
    "The process of controller {node} starts.",
    weight=DETAIL, kept=True, method="controller_process",
)  # fmt: skip
CONTROLLER_END: Final[StepKind] = StepKind(
    "controller-end", 56, Lane.CONTROL_PLANE,
    "the process of a controller ended: node, cause",
    "The process of controller {node} ends ({cause}).",
    weight=TURN, kept=True, method="controller_process",
)  # fmt: skip
CONTROLLER_PAUSE: Final[StepKind] = StepKind(
    "controller-pause", 57, Lane.CONTROL_PLANE,
    "the process of a controller was paused: node",
    "Controller {node} is paused.",
    weight=TURN, kept=True, method="controller_process",
)  # fmt: skip
CONTROLLER_RESUME: Final[StepKind] = StepKind(
    "controller-resume", 58, Lane.CONTROL_PLANE,
    "the process of a controller runs on: node",
    "Controller {node} runs on.",
    weight=CHANGE, kept=True, method="controller_process",
)  # fmt: skip


class ControllerProcess(Step):
    """The process of a controller starts, ends, is paused or runs on.

    Attributes:
        node: the controller's id.
        cause: why it ends: the kind of fault, or the exception; otherwise empty.
        lost: offset from which its fsynced log is gone, and its quorum-state with it; -1 if it keeps both.
        excuses: whether too few other controllers have all committed metadata, so that it may be lost by this end.
        crashed: whether it ends by an exception, and not by a fault.
    """

    __slots__ = ("cause", "crashed", "excuses", "kind", "lost", "node")

    def __init__(
        self,
        kind: StepKind,
        node: int,
        cause: str = "",
        lost: int = -1,
        *,
        excuses: bool = False,
        crashed: bool = False,
    ) -> None:
        self.kind = kind
        self.broker = 0
        self.node = node
        self.cause = cause
        self.lost = lost
        self.excuses = excuses
        self.crashed = crashed
        self.epoch = self.other = 0
        self.offset = node

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_controller_process(self)

    def fields(self) -> Shown:
        return {"broker": 0, "node": self.node, **({"cause": self.cause} if self.cause else {})}


RAFT_LEADER: Final[StepKind] = StepKind(
    "raft-leader", 59, Lane.CONTROL_PLANE,
    "a controller leads the metadata log's Raft: node, raft_epoch",
    "Controller {node} leads the quorum in epoch {raft_epoch}.",
    weight=ASIDE, kept=True,
)  # fmt: skip


class RaftLeader(InEpoch):
    """A controller becomes leader of the quorum.

    Attributes:
        node: the controller's id.
        epoch: the epoch of Raft.
    """

    __slots__ = ("node",)

    kind = RAFT_LEADER

    def __init__(self, node: int, epoch: int) -> None:
        super().__init__(0, epoch)
        self.offset = self.node = node

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_raft_leader(self)

    def fields(self) -> Shown:
        return {"broker": 0, "node": self.node, "raft_epoch": self.epoch}


RAFT_COMMIT: Final[StepKind] = StepKind(
    "raft-commit", FACT, Lane.NONE,
    "a member of the quorum, or a broker, knows that batches of the metadata log are committed",
)  # fmt: skip


class RaftCommit(Step):
    """A process knows that these batches are committed.

    Attributes:
        node: the process: a controller or a broker.
        incarnation: number of the process among those of its node.
        batches: the batches.
        elided: whether the quorum was idle since the last such step (`sim.hosts.idle_quorum`).
        lacks: number of controllers that do not have them on disk; a leader need not.
    """

    __slots__ = ("batches", "elided", "incarnation", "lacks", "node")

    kind = RAFT_COMMIT

    def __init__(
        self, node: int, incarnation: int, batches: Sequence[RaftBatch], *, elided: bool = False, lacks: int = 0
    ) -> None:
        self.broker = 0
        self.lacks = lacks
        self.elided = elided
        self.node = node
        self.incarnation = incarnation
        self.batches = batches

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_raft_commit(self)


SNAPSHOT_MADE: Final[StepKind] = StepKind(
    "snapshot-made", 70, Lane.CONTROL_PLANE,
    "a controller or broker wrote a snapshot of the metadata log: node, process, offset",
    "{process} makes a snapshot of the metadata up to offset {offset}.",
    weight=ASIDE, method="metadata_snapshot",
)  # fmt: skip
SNAPSHOT_LOADED: Final[StepKind] = StepKind(
    "snapshot-loaded", 71, Lane.CONTROL_PLANE,
    "a controller or broker loaded a snapshot of the metadata log in place of the records below its end: node, process,"
    " offset",
    "{process} loads a snapshot of the metadata up to offset {offset}.",
    weight=DETAIL, method="metadata_snapshot",
)  # fmt: skip


class MetadataSnapshot(Step):
    """A process wrote a snapshot of the metadata log, or loaded one.

    Attributes:
        node: the process: a controller or a broker.
        snapshot: the snapshot.
        incarnation: number of the process among those of its node, if it loaded one.
    """

    __slots__ = ("incarnation", "kind", "node", "snapshot")

    def __init__(self, kind: StepKind, node: int, snapshot: RaftSnapshot, incarnation: int = 0) -> None:
        self.kind = kind
        self.broker = 0
        self.other = self.node = node
        self.epoch, self.offset = snapshot.id.epoch, snapshot.id.offset
        self.snapshot = snapshot
        self.incarnation = incarnation

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_metadata_snapshot(self)

    def fields(self) -> Shown:
        process = f"{'Broker' if self.node < FIRST_CONTROLLER else 'Controller'} {self.node}"
        return {"broker": 0, "node": self.node, "process": process, "offset": self.offset}


METADATA_LOST: Final[StepKind] = StepKind(
    "metadata-lost", 60, Lane.CONTROL_PLANE,
    "committed metadata is gone: another record was committed in its place: node, offset",
    "Committed metadata is lost: at offset {offset}, controller {node} has another record committed.",
    weight=TURN, kept=True,
)  # fmt: skip


class MetadataLost(Step):
    """Another batch was committed at the offset of a committed one.

    Attributes:
        node: the process that knows it as committed.
        offset: the offset.
    """

    __slots__ = ("node",)

    kind = METADATA_LOST

    def __init__(self, node: int, offset: int) -> None:
        self.broker = 0
        self.other = self.node = node
        self.offset = offset
        self.epoch = 0

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_metadata_lost(self)

    def fields(self) -> Shown:
        return {"broker": 0, "node": self.node, "offset": self.offset}


VOTERS_CHANGED: Final[StepKind] = StepKind(
    "voters", 72, Lane.CONTROL_PLANE,
    "other voters of a quorum with kraft.version 1 are committed: voters",
    "The voters of the quorum are controllers {voters}.",
    weight=CHANGE, kept=True,
)  # fmt: skip


class VotersChanged(Step):
    """A VotersRecord is committed.

    Attributes:
        voters: ids of the voters.
        directories: directory ids of their disks.
    """

    __slots__ = ("directories", "voters")

    kind = VOTERS_CHANGED

    def __init__(self, voters: Sequence[int], directories: Sequence[int], epoch: int, offset: int) -> None:
        self.broker = 0
        self.voters = tuple(voters)
        self.directories = tuple(directories)
        self.epoch = epoch
        self.offset = offset
        self.other = sum([1 << (voter - FIRST_CONTROLLER) for voter in voters])

    def tell(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.on_voters(self)

    def fields(self) -> Shown:
        return {"broker": 0, "voters": list(self.voters)}
