"""Which control plane a cluster has."""

from __future__ import annotations

from typing import Final

from sim.hosts.control_plane import ControlPlane, Setup
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.zookeeper import ScriptedZooKeeper, ZooKeeper

CONTROL_PLANES: Final[dict[str, type[ControlPlane]]] = {"zookeeper": ZooKeeper, "kraft": ControllerQuorum}
"""By the values of rule ``control_plane``."""


def control_plane(setup: Setup, *, scripted: bool) -> ControlPlane:
    """The control plane of a cluster: the one that its rules name, or one that leaves decisions to a script."""
    kind = ScriptedZooKeeper if scripted else CONTROL_PLANES[setup.decide.rules.control_plane]
    return kind(setup)
