"""Kinds by which a process, a disk, a session or the metadata stream stands still or ends while the process lives."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import (
    BROKER,
    DISTURBED,
    KRAFT,
    PROCESS,
    STALLED,
    THE_CONTROLLER,
    Amount,
    Duration,
    FaultKind,
    Param,
    Targets,
)
from faults.plan import Fault
from sim.hosts.cluster import Cluster


class PauseFault(FaultKind):
    """A process does not run for a while (SIGSTOP, a long garbage collection), then handles what it missed."""

    name: ClassVar[str] = "pause"
    meaning: ClassVar[str] = "pause a process; without for_ms until a resume"
    targets: ClassVar[Targets] = PROCESS
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause a broker (0: the control plane); False if no process runs."""
        return cluster.pause(target, fault)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Resume it, unless it ended."""
        cluster.resume(target, fault)


class DiskStall(FaultKind):
    """A disk does not respond for a while; its broker's partition is blocked, its session stays open."""

    name: ClassVar[str] = "disk-stall"
    meaning: ClassVar[str] = "stall a broker's disk; without for_ms until the end"
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Stall the disk; False if no process serves, or it is stalled already."""
        return cluster.machines.stall_disk(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """End the stall, unless the process ended."""
        cluster.machines.unstall_disk(target)


class SessionExpiry(FaultKind):
    """The session of a live broker ends; the broker registers again when it learns of it."""

    name: ClassVar[str] = "session-expiry"
    meaning: ClassVar[str] = "end a broker's session while its process lives"
    targets: ClassVar[Targets] = BROKER
    remains: ClassVar[str] = "the broker registers again by itself"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Expire the session; False if there is none."""
        return cluster.control.expire_session(target)


class Zombie(FaultKind):
    """A broker's session ends, and for a while the broker neither notices nor registers again (KAFKA-6879).

    Only its pings or, in KRaft, its heartbeats are lost meanwhile; metadata and data arrive (KIP-966, trade-off 3a:
    fenced though it could serve).
    """

    name: ClassVar[str] = "zombie"
    meaning: ClassVar[str] = (
        "end a broker's session unnoticed by the broker: only its pings or heartbeats are lost; without for_ms until "
        "the end"
    )
    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STALLED
    moves_leader: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """End the session and block its renewal; False if there is none."""
        return cluster.zombie(target)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Let the broker notice."""
        cluster.unzombie(target)


class ControllerFailover(FaultKind):
    """The znode /controller is deleted, and the brokers elect another controller."""

    name: ClassVar[str] = "controller-failover"
    meaning: ClassVar[str] = "delete the controller's znode, or make it resign in KRaft, so that another is elected"
    targets: ClassVar[Targets] = THE_CONTROLLER
    remains: ClassVar[str] = "the next controller stays"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Delete the znode; False if there was none."""
        return cluster.control.fail_over()


class ControllerPause(FaultKind):
    """The active controller's process is paused, and may resume as a zombie controller."""

    name: ClassVar[str] = "controller-pause"
    meaning: ClassVar[str] = "pause the controller's process; without for_ms until the end"
    targets: ClassVar[Targets] = THE_CONTROLLER
    duration: ClassVar[Duration | None] = STALLED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Pause it; False if there is no controller."""
        return cluster.control.pause_controller(target, lambda broker: cluster.pause(broker, fault))

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Resume it; a quorum has another active controller by then."""
        if target > 0:
            cluster.resume(target, fault)


class MetadataLag(FaultKind):
    """A broker of a KRaft cluster replays the metadata log late.

    Committed metadata reaches the broker late; heartbeats and data are not delayed. Under ZooKeeper it has no effect:
    `faults.kinds.links.Slow` on the link between controller and broker does the same.
    """

    name: ClassVar[str] = "metadata-lag"
    meaning: ClassVar[str] = (
        "in KRaft, delay a broker's replay of the metadata log by by_ms; without for_ms until the end"
    )
    targets: ClassVar[Targets] = BROKER
    amount: ClassVar[Amount | None] = Amount("by_ms", Param("ms", required=True), "us", bounds="slow_us", scale=1_000)
    duration: ClassVar[Duration | None] = DISTURBED
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Delay metadata to the broker, also to later processes of it; False under ZooKeeper."""
        return cluster.control.delay_metadata(target, fault.value)

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Stop delaying metadata that is committed from now on."""
        cluster.control.delay_metadata(target, -fault.value)
