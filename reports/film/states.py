"""The state of a cluster at each step of a run, read from the running cluster right after the step.

A film shows three things that no trace contains: how far each log is flushed (a flush is no step), the HW checkpoint
of a broker that is down, and whether a paused process has really resumed (calls that it held back run before). So the
film reads the cluster, while the bands of a picture are folded from the steps (`reports.drawing.bands`).

Only changed fields are kept: a film has thousands of steps, and most change one field of one broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sim.history import steps
from sim.history.steps import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.environment.storage import Storage
    from sim.history.steps import Shown, StepKind
    from sim.hosts.broker import Broker
    from sim.hosts.cluster import Cluster
    from sim.protocol.batch import Batch
    from sim.protocol.replica.partition import Partition

Fields = dict[str, Any]
Cell = tuple[int, int, int, int]
"""A batch of a log: (base offset, last offset, leader epoch, first record)."""

DOWN: Final = "down"
STARTING: Final = "starting"
RUNNING: Final = "running"
PAUSED: Final = "paused"
DIRECTORY_FAILED: Final = "log directory failed"
"""The process runs, without the log directory of its replica."""


@dataclass(slots=True)
class StateChange:
    """The fields that one step changed.

    Attributes:
        partition: fields of the partition's state in the control plane.
        brokers: broker -> its changed fields. ``log`` is (batches kept, batches dropped in front of them, new batches).
        controllers: controller -> its changed fields, if the controllers are processes.
        acked: first record of a batch that was acknowledged to the producer; -1 for none.
    """

    partition: Fields = field(default_factory=dict)
    brokers: dict[int, Fields] = field(default_factory=dict)
    controllers: dict[int, Fields] = field(default_factory=dict)
    acked: int = -1


class Sampler:
    """Compares a cluster with its state at the previous step.

    Args:
        cluster: the cluster.
        name: the partition, before its first step.
        opens: the step after which a broker may lead and join an ISR: registration (ZooKeeper), unfencing (KRaft).
    """

    def __init__(self, cluster: Cluster, name: str, opens: StepKind) -> None:
        self._cluster = cluster
        self._name = name
        self._opens = opens
        self._partition: Fields = {}
        self._brokers: dict[int, Fields] = {broker: {} for broker in cluster.settings}
        self._controllers: dict[int, Fields] = {node: {} for node in cluster.controllers}
        self._logs: dict[int, list[Batch]] = {broker: [] for broker in cluster.settings}
        self._fenced = dict.fromkeys(cluster.settings, True)

    def take(self, step: Shown) -> StateChange:
        """Return what this step changed; call it once for each step, in order."""
        self._note_session(step)
        change = StateChange(_changed(self._partition, _partition(self._cluster, self._name)))
        for broker in self._brokers:
            storage = self._cluster.files(broker, self._name)
            process = self._cluster.running.get(broker)
            replica = self._cluster.replica(broker, self._name)
            fields = _broker(self._name, storage, process, replica, fenced=self._fenced[broker])
            found = _changed(self._brokers[broker], fields)
            log = self._log(broker, storage.log.batches)
            if log is not None:
                found["log"] = log
            if found:
                change.brokers[broker] = found
        for node, before in self._controllers.items():
            found = _changed(before, _controller(self._cluster, node))
            if found:
                change.controllers[node] = found
        if kind_of(step) is steps.ACK:
            change.acked = step["record"]
        return change

    def _note_session(self, step: Shown) -> None:
        """Keep track of sessions by their steps: KRaft fences a broker, ZooKeeper ends its session."""
        kind = kind_of(step)
        if kind is steps.SESSION_END:
            self._fenced[step["broker"]] = True
        elif kind is self._opens:
            self._fenced[step["broker"]] = False

    def _log(self, broker: int, batches: list[Batch]) -> tuple[int, int, list[Cell]] | None:
        """How a log changed since the previous step; None if it did not.

        Batches are shared and immutable: a log with the same length, first and last batch is unchanged.
        """
        before = self._logs[broker]
        if len(before) == len(batches) and (not batches or (before[0] is batches[0] and before[-1] is batches[-1])):
            return None
        dropped = _dropped(before, batches)
        kept = 0
        for old, new in zip(before[dropped:], batches, strict=False):
            if old is not new:
                break
            kept += 1
        self._logs[broker] = batches[:]
        return kept, dropped, [_cell(batch) for batch in batches[kept:]]


def _dropped(before: list[Batch], batches: list[Batch]) -> int:
    """Number of batches deleted at the beginning of a log."""
    if not batches:
        return 0
    first = batches[0].base_offset
    return sum(batch.base_offset < first for batch in before)


def _cell(batch: Batch) -> Cell:
    return batch.base_offset, batch.last_offset, batch.leader_epoch, batch.first_id


def _changed(before: Fields, now: Mapping[str, Any]) -> Fields:
    """Return the fields whose value changed, and update `before` with them."""
    found = {name: value for name, value in now.items() if name not in before or before[name] != value}
    before.update(found)
    return found


def _partition(cluster: Cluster, name: str) -> Fields:
    control = cluster.control
    state = control.last_state_of(name)
    elr, last_known_elr = control.eligible(state) or ((), ())
    adding, removing = control.reassignment(state)
    return {
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "elr": elr,
        "last_known_elr": last_known_elr,
        "replicas": state.replicas,
        "adding": adding,
        "removing": removing,
    }


def _broker(
    name: str, storage: Storage, process: Broker | None, partition: Partition | None, *, fenced: bool
) -> Fields:
    batches, synced, log = storage.log.batches, storage.synced, storage.log
    leads = partition is not None and partition.is_leader
    # A crash takes batches off the end, and the log's own LEO follows when it is loaded.
    end = batches[-1].last_offset + 1 if batches else log.log_start
    return {
        "state": _state(process, name),
        "disk_stalled": process is not None and process.disk_stalled_us is not None,
        "fenced": fenced,
        "leads": leads,
        "knows_epoch": -1 if partition is None else partition.leader_epoch,
        "hw": storage.hw_file.content or 0 if partition is None else partition.hw,
        "leo": end if partition is None else log.leo,
        "log_start": log.log_start,
        "flushed": batches[synced - 1].last_offset + 1 if 0 < synced <= len(batches) else log.log_start,
    }


def _controller(cluster: Cluster, node: int) -> Fields:
    """The state of a controller in the metadata quorum, and the ends of its metadata log."""
    assert cluster.quorum is not None
    controllers = cluster.quorum.controllers
    controllers.end_idle()
    log, process = controllers.machines[node].log, controllers.running.get(node)
    ends = {"leo": log.end_offset, "flushed": log.flushed_offset}
    if process is None:
        return {"state": DOWN, "epoch": -1, "active": False, "hw": -1, **ends}
    state = process.member.client.quorum.state
    hw = state.high_watermark
    return {
        "state": PAUSED if process.frozen else type(state).__name__.removesuffix("State").lower(),
        "epoch": state.epoch,
        "active": process.active is not None,
        "hw": -1 if hw is None else hw,
        **ends,
    }


def _state(process: Broker | None, name: str) -> str:
    if process is None:
        return DOWN
    if process.frozen:
        return PAUSED
    if name in process.replica_manager.offline:
        return DIRECTORY_FAILED
    return RUNNING if process.has_loaded else STARTING
