"""Faults of the machine of a broker, or of a controller that is a process."""

from __future__ import annotations

from sim.hosts.cluster import Cluster


def lose_power(cluster: Cluster, node: int) -> bool:
    """Cut the power of a machine; False if no process ran and nothing was lost, or without a machine."""
    quorum = cluster.quorum
    if quorum is None:
        return cluster.machines.lose_power(node)
    if node in cluster.controllers:
        return quorum.controllers.lose_power(node)
    if node not in cluster.settings:  # No controller is active.
        return False
    quorum.observer.lose_log(node, replaced=False)
    return cluster.machines.lose_power(node)


def replace_disk(cluster: Cluster, node: int) -> bool:
    """Replace all disks of a machine; False if no process ran and nothing was lost, or without a machine."""
    quorum = cluster.quorum
    if quorum is None:
        return cluster.machines.replace_disk(node)
    if node in cluster.controllers:
        return quorum.controllers.replace_disk(node)
    if node not in cluster.settings:
        return False
    quorum.observer.lose_log(node, replaced=True)
    return cluster.machines.replace_disk(node)
