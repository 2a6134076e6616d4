"""Power loss: machines lose power nearly at the same instant, and their page caches with it."""

from __future__ import annotations

from typing import ClassVar, Final

from faults.bounds import Limits, aim
from faults.kind import MACHINES, Targets
from faults.kinds.machines import lose_power
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, integer, sample

SPREAD_US: Final = 50_000
"""Machines of one power domain lose power within this time."""


class PowerLoss(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "power-loss"
    meaning: ClassVar[str] = (
        "cut the power of machines at the same instant; without restart_ms they stay down until a start"
    )
    targets: ClassVar[Targets] = MACHINES
    loses_records: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002
        """Cut the power of one machine; False if no process ran and all data was fsynced."""
        return lose_power(cluster, target)

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw one broker (the given one, or a target as usual), several or all, with one restart time."""
        at_us = integer(stream, *limits.window_us)
        count = integer(stream, 1, 1 if limits.target else len(limits.brokers))
        targets = [aim(stream, limits)] if count == 1 else sample(stream, limits.brokers, count)
        delays_us = tuple([integer(stream, 0, SPREAD_US) for _ in targets])
        return Fault(self.name, at_us, tuple(targets), self.draw_lasts_us(stream, limits), delays_us)
