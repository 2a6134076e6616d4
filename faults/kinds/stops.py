"""Kinds that stop a broker, which is then started again."""

from __future__ import annotations

from typing import ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import BROKER, MACHINES, STOPPED, Amount, Duration, FaultKind, Param, Targets
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, integer, sample

SPREAD_US: Final = 50_000
"""Machines of one power domain lose power within this time."""
MOST_BATCHES: Final = 3


class BrokerStop(FaultKind):
    """A broker is down for a while, then started, whichever fault stopped it."""

    targets: ClassVar[Targets] = BROKER
    duration: ClassVar[Duration | None] = STOPPED
    moves_leader: ClassVar[bool] = True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:  # noqa: ARG002
        """Start it, unless it is running."""
        cluster.start(target)


class Kill(BrokerStop):
    """A broker's process ends at once (SIGKILL). Its page cache stays, and its session until it expires."""

    name: ClassVar[str] = "kill"
    meaning: ClassVar[str] = "kill a process; without restart_ms it stays down until a start"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Kill the process; False if none ran."""
        return cluster.kill(target)


class PowerLoss(BrokerStop):
    """Machines lose power nearly at the same instant, and their page caches with it."""

    name: ClassVar[str] = "power-loss"
    meaning: ClassVar[str] = (
        "cut the power of machines at the same instant; without restart_ms they stay down until a start"
    )
    targets: ClassVar[Targets] = MACHINES
    loses_records: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cut the power of one machine; False if no process ran and all data was fsynced."""
        return cluster.machines.lose_power(target)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw one broker (the given one, or a target as usual), several or all, with one restart time."""
        at_us = integer(stream, *limits.window_us)
        count = integer(stream, 1, 1 if limits.target else len(limits.brokers))
        targets = [aim(stream, limits)] if count == 1 else sample(stream, limits.brokers, count)
        delays_us = tuple([integer(stream, 0, SPREAD_US) for _ in targets])
        return Fault(self.name, at_us, tuple(targets), self.draw_lasts_us(stream, limits), delays_us)


class ControlledRestart(BrokerStop):
    """A broker closes its session and its log, stops, and is started again."""

    name: ClassVar[str] = "controlled-restart"
    meaning: ClassVar[str] = "shut a broker down in a controlled way; without restart_ms it stays down until a start"

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Start the controlled shutdown; False if no process runs."""
        return cluster.shut_down(target)


class DiskReplaced(BrokerStop):
    """A machine dies and comes back with an empty disk."""

    name: ClassVar[str] = "disk-replaced"
    meaning: ClassVar[str] = (
        "stop a machine and replace its disk by an empty one; without restart_ms it stays down until a start"
    )
    loses_records: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Replace the disk; False if no process ran and the disk was empty."""
        return cluster.machines.replace_disk(target)


class CorruptTail(BrokerStop):
    """A broker crashes, and the newest batches on its disk are unreadable, even if fsynced."""

    name: ClassVar[str] = "corrupt-tail"
    meaning: ClassVar[str] = (
        "kill a process and make the newest batches of its log unreadable; without restart_ms it stays down until a "
        "start"
    )
    amount: ClassVar[Amount | None] = Amount("batches", Param("count", default=1), "batches", bounds=(1, MOST_BATCHES))
    loses_records: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Corrupt one log; False if no process ran and no record was lost."""
        return cluster.machines.corrupt_tail(target, fault.value)
