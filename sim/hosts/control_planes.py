"""Choosing a cluster's control plane, and the class of its brokers."""

from __future__ import annotations

from typing import Final

from sim.hosts.broker import Broker, Startup
from sim.hosts.control_plane import ControlPlane, ControlPlaneSetup
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.raft_broker import RaftBroker
from sim.hosts.raft_quorum import RaftQuorum
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.hosts.zookeeper import ScriptedZooKeeper, ZooKeeper

CONTROL_PLANES: Final[dict[str, type[ControlPlane]]] = {"zookeeper": ZooKeeper, "kraft": ControllerQuorum}
"""Value of rule ``control_plane`` -> class."""


def control_plane(setup: ControlPlaneSetup, *, scripted: bool) -> ControlPlane:
    """A cluster's control plane: the one that its rules name, or one driven by a script."""
    if setup.controllers:
        return RaftQuorum(setup)
    kind = ScriptedZooKeeper if scripted else CONTROL_PLANES[setup.decide.rules.control_plane]
    return kind(setup)


def new_broker(control: ControlPlane, startup: Startup) -> Broker:
    """A new broker process of the class for a control plane."""
    if isinstance(control, ControllerQuorum):
        return KRaftBroker(startup, control.server.log.records)
    if isinstance(control, RaftQuorum):
        return RaftBroker(startup, control.observer)
    assert isinstance(control, ZooKeeper)
    control.note_process(startup.broker, startup.decide)
    return ZooKeeperBroker(startup)
