"""All that a run shows: its row, its trace, and how it left the partition and its replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faults.kinds.injection import RealisedFault
from scenarios.format.scenario import PlannedSend
from scenarios.single.rows import Row
from sim.config import Value
from sim.history.findings import Violation
from sim.history.metrics import Series
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.protocol.modes import Mode
from sim.protocol.rules import Rules


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A broker's final log and checkpoint files; batches are (base, last, leader epoch, first record id)."""

    broker: int
    running: bool
    batches: list[tuple[int, int, int, int]]
    log_start: int
    leo: int
    high_watermark: int
    leader_epoch_checkpoint: list[tuple[int, int]]
    replication_offset_checkpoint: int | None
    recovery_point_offset_checkpoint: int | None
    log_start_offset_checkpoint: int | None
    clean_shutdown_marker: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """How things stood for the partition at the end, as the control plane keeps it; `leader` 0 is none, ELR None where
    there is no such thing.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    replicas: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(slots=True)
class RunResult:
    """All that a run shows.

    Attributes:
        story: what it says, with the time it came true or None.
        warnings: early warnings; those that count are among the violations, too.
        metrics: Kafka's metrics of the partition as time series: name -> [(time in us, value from then on)].
        window_us: the time over which the availability of the partition is measured.
        settings: the configuration that was in force, drawn keys included.
        mode: the mode, before rules were replaced.
        rules: rule values that replaced the mode's.
        horizon_us: when a drawn run was healed; None in a scripted one.
        older: brokers that began in an older mode.
        shown: the partition that trace, replicas, metrics and pictures are about, if there are several.
        unnamed: the partition that faults which name none are about, if there are several.
        stalled: whether there was no leader in the end, or too few replicas in working log directories, and the rules
            wait for an operator.
        played: the lines of the script that were performed, by number from 1, with their times.
        struck: the faults that struck, as `faults` shows them.
        traceback: of the exception that ended it with verdict ``error``; empty without one.
    """

    row: Row
    trace: list[Shown] | None
    partition: PartitionView
    mode: Mode
    faults: list[dict[str, Any]] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    story: list[dict[str, Any]] = field(default_factory=list)
    violations: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    replicas: list[ReplicaView] = field(default_factory=list)
    metrics: dict[str, Series] = field(default_factory=dict)
    window_us: tuple[int, int] = (0, 0)
    settings: dict[str, Value] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    sends: list[PlannedSend] = field(default_factory=list)
    further_sends: dict[str, list[PlannedSend]] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)
    horizon_us: int | None = None
    older: Mapping[int, str] = field(default_factory=dict)
    shown: str = ""
    unnamed: str = ""
    stalled: bool = False
    traceback: str = ""
    struck: Sequence[RealisedFault] = ()
    played: Sequence[tuple[int, int]] = ()


def replica_views(cluster: Cluster, name: str) -> list[ReplicaView]:
    """Each broker's log and checkpoints of a partition as they are now."""
    views = []
    for broker in cluster.settings:
        storage, partition = cluster.files(broker, name), cluster.replica(broker, name)
        log = storage.log
        if partition is not None:
            storage.catch_up(partition.hw, cluster.kernel.now_us)
        views.append(
            ReplicaView(
                broker=broker,
                running=broker in cluster.running,
                batches=[
                    (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.first_id) for batch in log.batches
                ],
                log_start=log.log_start,
                leo=log.leo,
                high_watermark=partition.hw if partition else storage.hw_file.content or 0,
                leader_epoch_checkpoint=list(storage.epoch_checkpoint.entries),
                replication_offset_checkpoint=storage.hw_file.content,
                recovery_point_offset_checkpoint=storage.recovery_point_file.content,
                log_start_offset_checkpoint=storage.log_start_file.content,
                clean_shutdown_marker=cluster.machines.directories[broker].clean_shutdown,
            )
        )
    return views


def partition_view(cluster: Cluster, name: str, rules: Rules) -> PartitionView:
    """A partition as the control plane has it now."""
    state = cluster.control.last_state_of(name)
    elr = last_known_elr = None
    eligible = cluster.control.eligible(state)
    if eligible is not None and rules.elr == "on":
        elr, last_known_elr = eligible
    return PartitionView(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.partition_epoch,
        state.controller_epoch,
        state.replicas,
        elr,
        last_known_elr,
    )


def entries(found: Sequence[Violation], *, judged: bool) -> list[dict[str, Any]]:
    """Violations or warnings as plain data; `inside` is None in a run that is not judged (`EndedRun.judged`), and only
    one of a run with several partitions has `partition`.
    """
    return [
        {
            "kind": entry.kind,
            "inside": entry.inside if judged else None,
            "at_us": entry.at_us,
            "detail": entry.detail,
            **({"partition": entry.partition} if entry.partition else {}),
        }
        for entry in found
    ]
