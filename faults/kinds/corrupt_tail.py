"""Corrupt tail: a broker crashes, and the newest batches on its disk, or in one log directory, are unreadable, even if
fsynced.
"""

from __future__ import annotations

from typing import ClassVar, Final

from faults.kind import Amount, Param
from faults.kinds.directories import struck_alone
from faults.kinds.stops import BrokerStop
from faults.plan import Fault
from sim.hosts.cluster import Cluster

MOST_BATCHES: Final = 3


class CorruptTail(BrokerStop):
    """See the module."""

    name: ClassVar[str] = "corrupt-tail"
    meaning: ClassVar[str] = (
        "kill a process and make the newest batches of its logs unreadable, with directory only those in this log "
        "directory; without restart_ms it stays down until a start"
    )
    amount: ClassVar[Amount | None] = Amount("batches", Param("count", default=1), "batches", bounds=(1, MOST_BATCHES))
    loses_records: ClassVar[bool] = True
    of_directory: ClassVar[bool] = True

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Corrupt the logs; False if no process ran and no record was lost."""
        return cluster.machines.corrupt_tail(target, fault.value, struck_alone(cluster, fault, target))
