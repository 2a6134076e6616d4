"""What a fault leaves behind in a cluster, as far as that can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from faults.kind import FaultKind
from faults.plan import CONTROLLER, LEADER
from sim.hosts.client import CONSUMER, PRODUCER
from sim.hosts.control_plane import CONTROL
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.topics import ClusterTopic, TopicPartition
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from faults.kind import Param
    from faults.plan import Fault
    from sim.hosts.cluster import Cluster
    from sim.hosts.raft_quorum import RaftQuorum

MODES: Final = ("kip320", "elr-4.3")
"""One under ZooKeeper, one of KRaft."""
NEED_DIRECTORIES: Final = ("move-throttle", "directory-added", "directory-cordoned")
"""Kinds that are undone, and have an effect only on brokers with several log directories."""
NEED_CONTROLLERS: Final = ("quorum-state-lost", "snapshots-lost", "remove-controller", "add-controller")
"""Kinds that have an effect only on controllers that are processes."""
NEED_DYNAMIC_VOTERS: Final = ("remove-controller", "add-controller")
"""Kinds that have an effect only on a quorum whose voters can change."""
SAMPLES: Final[Mapping[str, Any]] = {
    "broker": 2,
    "brokers": [2, 1, 3],
    "machine": 2,
    "machines": [2, 1, 3],
    "controller": 101,
    "endpoint": 2,
    "flag": True,
    "ms": 300,
    "permille": 500,
    "count": 2,
    "directory": 1,
    "election": "unclean",
    "message": "AlterPartitionRequest",
    "file": "leader-epoch-checkpoint",
    "partition": "",
    "topic": "audit",
    "deletable-topic": "orders",
}
"""Type of a script parameter -> a value that has an effect."""


def sample(kind: FaultKind) -> Fault:
    """A scripted fault of that kind, without a duration."""
    params: Mapping[str, Param] = kind.params()
    lasts = "" if kind.duration is None else kind.duration.param
    line = {name: 1 if name == "from" else SAMPLES[param.kind] for name, param in params.items() if name != lasts}
    return kind.scripted(line, 0)


def undeclared(kind: FaultKind) -> list[str]:
    """Problems of a kind's declaration of its end."""
    undone = type(kind).undo is not FaultKind.undo
    found = []
    if kind.duration is not None and not undone:
        found.append(f"{kind.name} has a duration, but no undo")
    if kind.duration is None and undone:
        found.append(f"{kind.name} has an undo, but no duration")
    if (kind.duration is None) != bool(kind.remains):
        found.append(f"{kind.name} must declare either duration or remains")
    return found


def state(cluster: Cluster) -> dict[str, object]:
    """What no fault may have changed for good; who leads, and what is in the logs, it may."""
    control, brokers = cluster.control, list(cluster.settings)
    nodes = (CONTROL, *brokers, PRODUCER, CONSUMER)
    links = {}
    for source in nodes:
        for target in nodes:
            link = cluster.network.link(source, target)
            links[f"link {source}-{target}"] = (link.cuts, link.loss, link.resent, link.table, link.disturbed)
    running = cluster.running
    return {
        **links,
        "running": sorted(running),
        "still": [node for node in (control, *running.values()) if node.frozen],
        "stalled disks": [broker for broker, process in running.items() if process.backlog.disk_stalled],
        "zombies": [broker for broker, process in running.items() if process.zombie],
        "sessions": [broker for broker in brokers if control.has_session(broker)],
        "ISR": sorted(control.state.isr),
        "replicas": sorted(control.state.replicas),
        "orders": bool(cluster.topics.names("orders")),
        "min ISR": (cluster.administrator.setting(MIN_ISR), control._min_isr),
        "settings": [cluster.administrator.setting(key) for key in (UNCLEAN_ELECTION, ELR_FEATURE)],
        "late": [broker for broker, by_us in control.server.log._delays_us.items() if by_us]
        if isinstance(control, ControllerQuorum)
        else [],
        "cordoned": [broker for broker, found in cluster.machines.directories.items() if found.cordoned],
        "throttled": [broker for broker, found in cluster.machines.directories.items() if found.throttled],
        "controllers": [] if cluster.quorum is None else sorted(cluster.quorum.controllers.running),
        "voters": [] if cluster.quorum is None else _voters(cluster.quorum),
        "logs alike": len({str(storage.log.batches) for storage in cluster.machines.storages.values()}) == 1,
    }


def _voters(quorum: RaftQuorum) -> list[int]:
    voters = quorum.ledger.voters
    return [] if voters is None else list(voters.ids)


def world(mode: str, directories: int = 1, controllers: int = 0, *, dynamic: bool = False) -> World:
    """A cluster of two topics with some records; under KRaft it may have several log directories, or controllers that
    are processes.
    """
    names = {"highwater": True, "orders": True, "audit": False}
    topics = [ClusterTopic(name, 1, 3, created=created, spared=name == "highwater") for name, created in names.items()]
    config = {"sim.log.dirs": directories if mode == MODES[1] else 1}
    controllers = controllers if mode == MODES[1] else 0
    if controllers:
        config["metadata.log.max.snapshot.interval.ms"] = 2_000
    further = [TopicPartition("orders-0", 3)]
    made = World(mode, config=config, further=further, topics=topics, controllers=controllers, dynamic_voters=dynamic)
    made.run(8)
    made.ready()
    for _ in range(4):
        made.write()
    return made


def left_over(kind: FaultKind, mode: str) -> tuple[bool, dict[str, object]]:
    """Strike a fresh cluster, undo it, and compare it with one that was never struck.

    Returns:
        Whether it took effect, and what is not as it was.
    """
    directories = 2 if kind.name in NEED_DIRECTORIES else 1
    controllers = 3 if kind.name in NEED_CONTROLLERS else 0
    dynamic = kind.name in NEED_DYNAMIC_VOTERS
    struck, never = (world(mode, directories, controllers, dynamic=dynamic) for _ in range(2))
    fault, cluster = sample(kind), struck.cluster
    names = {LEADER: cluster.control.state.leader, CONTROLLER: cluster.controller}
    targets = [names.get(target, target) for target in fault.targets]
    hit = targets[:1] if kind.targets.count else targets
    fault = fault.with_targets(tuple(targets))
    effective = [kind.strike(cluster, fault, target) for target in hit]
    struck.run(0.5)
    for target, took in zip(hit, effective, strict=True):
        if took:
            kind.undo(cluster, fault, target)
    for one in (struck, never):
        one.run(60)
        one.write(seconds=10)
    after = state(cluster)
    return any(effective), {what: after[what] for what, was in state(never.cluster).items() if after[what] != was}
