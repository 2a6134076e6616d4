"""Power loss: one, several or all machines go off, nearly at the same instant; page caches are gone."""

from __future__ import annotations

from typing import ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import MACHINES, Targets
from faults.kinds.stops import Stop
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, integer, sample

SPREAD_US: Final = 50_000
"""Machines on one supply go off within this time."""


class PowerLoss(Stop):
    """See the module."""

    name: ClassVar[str] = "power-loss"
    meaning: ClassVar[str] = (
        "cut the power of machines at the same instant; without restart_ms they stay down until a start"
    )
    strikes: ClassVar[Targets] = MACHINES
    loses: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Turn one machine off; False if that cost nothing, since no process ran and nothing was unsynced."""
        return cluster.machines.lose_power(target)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """One broker (that which is given, or as usual), several or all, started again after the same while."""
        at_us = integer(stream, *limits.window_us)
        count = integer(stream, 1, 1 if limits.target else len(limits.brokers))
        targets = [aim(stream, limits)] if count == 1 else sample(stream, limits.brokers, count)
        delays_us = tuple([integer(stream, 0, SPREAD_US) for _ in targets])
        return Fault(self.name, at_us, tuple(targets), self.draw_lasts_us(stream, limits), delays_us)
