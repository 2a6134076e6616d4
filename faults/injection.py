"""Injecting a plan into a cluster, and recording what of it took effect."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from faults import (
    controlled_restart,
    controller_failover,
    controller_pause,
    corrupt_tail,
    cut,
    disk_replaced,
    disk_stall,
    duplicate,
    kill,
    lossy,
    pause,
    power_loss,
    preferred_election,
    reassignment,
    retention,
    session_expiry,
    slow,
    zombie,
)
from faults.plan import CONTROLLER, LEADER, Fault, Limits, Plan, hash_of
from sim.cluster import Cluster
from sim.kernel import ALWAYS
from sim.streams import Streams, integer, sample


class Injector(Protocol):
    """What each file of an injector offers."""

    KIND: str

    def draw(self, stream: random.Random, limits: Limits) -> Fault:
        """Draw a fault of this kind."""

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Do it to one target; whether it took effect."""

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Take it back."""


INJECTORS: Final[dict[str, Injector]] = {
    injector.KIND: injector
    for injector in (
        kill,
        power_loss,
        controlled_restart,
        disk_replaced,
        corrupt_tail,
        pause,
        disk_stall,
        cut,
        slow,
        lossy,
        duplicate,
        retention,
        session_expiry,
        zombie,
        controller_failover,
        controller_pause,
        preferred_election,
        reassignment,
    )
}
_LINKS: Final = frozenset({cut.KIND, slow.KIND, lossy.KIND})
"""Kinds whose targets are the two ends of one link."""
_STOPS: Final = frozenset({kill.KIND, power_loss.KIND, controlled_restart.KIND, disk_replaced.KIND, corrupt_tail.KIND})
"""Kinds that stop a broker. When their time is over it is started even if they had found it stopped."""


def draw_plan(streams: Streams, kinds: Sequence[str], count: tuple[int, int], limits: Limits) -> Plan:
    """Draw a plan: the number of faults, the kind of each, then each from a stream of its own.

    Kinds come from a bag that is filled again when it is empty, so that even a short plan mixes them.
    """
    stream = streams("plan")
    number = integer(stream, *count)
    drawn: list[str] = []
    while len(drawn) < number:
        drawn += sample(stream, kinds, min(len(kinds), number - len(drawn)))
    faults = [INJECTORS[kind].draw(streams(f"fault:{index}"), limits) for index, kind in enumerate(drawn)]
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at_us)))


@dataclass(frozen=True, slots=True)
class Realised:
    """A fault as it happened to one target (or to a link, from the first node to the second, perhaps both ways): when,
    and whether it took effect.
    """

    kind: str
    targets: tuple[int, ...]
    at_us: int
    effective: bool


class Injection:
    """Strikes a cluster.

    Args:
        cluster: what is struck.

    Attributes:
        realised: what happened so far.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.realised: list[Realised] = []
        self._in_force: list[tuple[Fault, int]] = []

    def schedule(self, plan: Plan) -> None:
        """Let all faults of a plan strike at their times."""
        for fault in plan.faults:
            self._cluster.kernel.call_at(fault.at_us, ALWAYS, self.strike, fault)

    def strike(self, fault: Fault) -> None:
        """Let a fault strike now, whatever its time says."""
        if LEADER in fault.targets:
            fault = replace(fault, targets=_put(fault.targets, LEADER, self._leader()))
        if CONTROLLER in fault.targets:
            fault = replace(fault, targets=_put(fault.targets, CONTROLLER, self._cluster.controller))
        kernel = self._cluster.kernel
        targets = fault.targets if fault.kind not in _LINKS else fault.targets[:1]
        for position, target in enumerate(targets):
            delay_us = fault.delays_us[position] if fault.delays_us else 0
            if delay_us:
                kernel.call_at(kernel.now_us + delay_us, ALWAYS, self._hit, (fault, target))
            else:
                self._hit((fault, target))

    def _hit(self, entry: tuple[Fault, int]) -> None:
        fault, target = entry
        kernel = self._cluster.kernel
        coverage = self._cluster.journal.coverage
        before = coverage.strikes(fault.kind)
        effective = INJECTORS[fault.kind].strike(self._cluster, fault, target)
        if not effective:
            coverage.spared(before)
        struck = fault.targets if fault.kind in _LINKS else (target,)
        self.realised.append(Realised(fault.kind, struck, kernel.now_us, effective))
        if effective or fault.kind in _STOPS:
            self._in_force.append(entry)
        if fault.lasts_us >= 0:
            kernel.call_at(kernel.now_us + fault.lasts_us, ALWAYS, self._undo, entry)

    def _leader(self) -> int:
        """Who leads by the control plane's decision; while nobody does, the first broker that runs."""
        leader = self._cluster.control.state.leader
        return leader or next((broker for broker in self._cluster.replicas if broker in self._cluster.running), 1)

    def _undo(self, entry: tuple[Fault, int]) -> None:
        if entry in self._in_force:
            self._in_force.remove(entry)
            fault, target = entry
            INJECTORS[fault.kind].undo(self._cluster, fault, target)

    def heal(self) -> None:
        """Undo everything: links are as they were, what stands still goes on, every stopped broker is started once.

        What runs is left alone.
        """
        self._cluster.heal_links()
        for entry in [entry for entry in self._in_force if entry[0].kind not in _STOPS]:
            self._undo(entry)
        for broker in self._cluster.settings:
            self._cluster.start(broker)

    @property
    def effective(self) -> int:
        """Number of strikes that took effect."""
        return sum(entry.effective for entry in self.realised)

    def faults_hash(self) -> str:
        """Hash of what happened (16 hex digits)."""
        return hash_of((entry.kind, *entry.targets, entry.at_us, entry.effective) for entry in self.realised)

    def to_json(self) -> list[dict[str, Any]]:
        """The realised faults as plain data."""
        return [{**asdict(entry), "targets": list(entry.targets)} for entry in self.realised]


def _put(targets: tuple[int, ...], name: int, node: int) -> tuple[int, ...]:
    return tuple(node if target == name else target for target in targets)
