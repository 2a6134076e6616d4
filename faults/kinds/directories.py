"""Which log directory of a broker a fault is about: by its number, or the one with the replica of the partition."""

from __future__ import annotations

from typing import Final

from faults.kind import Amount, Param
from faults.plan import ALL_DIRECTORIES, Fault
from sim.hosts.cluster import Cluster

NUMBER: Final = Amount("directory", Param("directory"), "number of the log directory; 0: that of the partition", (0, 2))


def numbered(cluster: Cluster, fault: Fault, broker: int, number: int) -> int:
    """The log directory of this number, counted on from 1 if the broker has fewer; with 0 that of the partition."""
    return cluster.machines.place_of(broker, fault.partition or cluster.name, number)


def struck_alone(cluster: Cluster, fault: Fault, broker: int) -> int:
    """The number of the log directory of a broker that a fault strikes alone; `ALL_DIRECTORIES` if it names none, or if
    the broker has one.
    """
    if fault.directory == ALL_DIRECTORIES or not cluster.machines.directories[broker].are_several:
        return ALL_DIRECTORIES
    return numbered(cluster, fault, broker, max(0, fault.directory))
