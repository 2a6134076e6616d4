"""The metadata that a replicated quorum has committed: the state of the cluster, and its history.

A batch counts from the moment at which the first controller knows that it is committed. If another batch is committed
in its place later, metadata is lost: the ledger then goes back to what both have in common.
"""

from __future__ import annotations

from typing import Final

from sim.history import steps
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.control_plane import ControlPlane, ControlPlaneSetup
from sim.hosts.metadata_history import MetadataHistory
from sim.hosts.raft_machine import RaftMachine
from sim.hosts.raft_member import records_of
from sim.protocol.kraft.metadata import ConfigRecord, MetadataImage, NoOpRecord, Record
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.raft.raft_log import RaftBatch, VotersBatch
from sim.protocol.raft.voter_set import VoterSet
from sim.protocol.replica.partition import NO_LEADER


class _Unchanging:
    """The host of a `QuorumController` that only answers questions."""

    __slots__ = ()

    def reached(self, probe: int) -> None:
        """See `QuorumControllerHost.reached`."""

    def has_session(self, broker: int) -> bool:  # noqa: ARG002
        """See `QuorumControllerHost.has_session`."""
        return False

    def append(self, records: list[Record]) -> None:
        """See `ReplicationHost.append`."""
        raise NotImplementedError

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost.ask_log_info`."""

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicationHost.record_recoveries`."""


class _NoFencing:
    """In place of a controller, for the sessions that a ledger only names."""

    def __init__(self, plane: ControlPlane) -> None:
        self.life = plane.life

    def end_elision(self) -> None:
        """See `sim.hosts.broker_heartbeat_tracker.Quorum.end_elision`."""

    def fence(self, broker: int) -> None:
        """See `sim.hosts.broker_heartbeat_tracker.Quorum.fence`."""


class MetadataLedger:
    """See the module.

    Attributes:
        image: all that is committed.
        view: a controller with this image, for questions.
        history: notes what is committed.
        changed_at: end offset of the last record with contents.
        voters: the last voters of the quorum that are committed, None with a static quorum.
        configured_at: end offset of the last change of the configuration.
    """

    __deletable__ = ("_plane", "history", "view")

    history: MetadataHistory
    view: QuorumController

    def __init__(self, plane: ControlPlane, setup: ControlPlaneSetup) -> None:
        self._plane = plane
        self._setup: Final = setup
        self._batches: dict[int, RaftBatch] = {}
        self._end = self._last = 0
        self._waiting: list[Record] = []
        """Records that the history does not have yet: those without contents come with the next ones that have some."""
        self._noted = self.changed_at = self.configured_at = 0
        self.voters: VoterSet | None = None
        self.image = MetadataImage()
        self._renew_view()
        self._sessions = BrokerHeartbeatTracker(
            _NoFencing(plane),
            0,
            setup.kernel,
            keeps_fenced=False,
            begins_sessions=setup.decide.begins_sessions_at_activation,
            ranks={},
        )
        self.history = MetadataHistory(plane, setup.decide, self._sessions)

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        del self._plane, self.history, self.view

    def _renew_view(self) -> None:
        setup = self._setup
        self.view = QuorumController(self.image, setup.decide, _Unchanging(), setup.config, setup.min_isrs)
        self.view.end()

    def holds_all(self, machine: RaftMachine) -> bool:
        """Whether the disk of a machine has all that is committed."""
        if not self._batches:
            return True
        log, last = machine.log, self._batches[self._last]
        if log.misses_snapshot:
            return False
        if any(snapshot.last is last for snapshot in log.snapshots):
            return True
        return log.flushed_offset >= self._end and any(batch is last for batch in reversed(log.batches))

    def commit(self, node: int, batch: RaftBatch) -> bool:
        """Take over a batch that a controller knows to be committed. Returns whether it changes metadata."""
        known = self._batches.get(batch.base_offset)
        if known is batch:
            return False
        if batch.base_offset < self._end:
            self._roll_back(node, batch.base_offset)
        self._batches[batch.base_offset] = batch
        self._last = batch.base_offset
        self._end = batch.end_offset
        if isinstance(batch, VotersBatch):
            self._note_voters(batch)
        changes = configures = False
        for record in records_of(batch):
            self._waiting.append(record)
            self.image.replay(record)
            changes |= not isinstance(record, NoOpRecord)
            configures |= isinstance(record, ConfigRecord)
        if not changes:
            return False
        self.changed_at = self._end
        if configures:
            self.configured_at = self._end
            self._renew_view()
        records, first = self._waiting, self._noted
        self._waiting = []
        self._noted = self._end
        self.history.note(records, first, self.view)
        return True

    def _note_voters(self, batch: VotersBatch) -> None:
        self.voters = voters = batch.voters
        directories = [node.key.directory for node in voters.nodes]
        step = steps.VotersChanged(voters.ids, directories, batch.epoch, batch.base_offset)
        self._plane.recorder.record(step)

    def _roll_back(self, node: int, offset: int) -> None:
        """Forget what was committed from an offset on, because something else is committed there."""
        plane = self._plane
        plane.recorder.record_for_all(steps.MetadataLost(node, offset))
        self._batches = {base: batch for base, batch in sorted(self._batches.items()) if base < offset}
        self._last = max(self._batches, default=0)
        self.image = MetadataImage()
        left: list[Record] = []
        for batch in self._batches.values():
            left += records_of(batch)
            if isinstance(batch, VotersBatch):
                self.voters = batch.voters
        for record in left:
            self.image.replay(record)
        self._end = len(left)
        self._noted = min(self._noted, self._end)
        self._waiting = left[self._noted :]
        self.changed_at = min(self.changed_at, self._end)
        self.configured_at = min(self.configured_at, self._end)
        self._renew_view()
        self._sessions.unfenced = {broker for broker, entry in self.image.brokers.items() if not entry.fenced}
        for name, before in list(plane.states.items()):
            after = self.image.partitions.get(name)
            if after is None:
                setup = plane.setups[name]
                plane.states[name] = LeaderAndIsr(name, NO_LEADER, -1, setup.replicas, -1, setup.replicas)
                plane.record_state(name)
            elif after is not before:
                self.history.restore(after)
