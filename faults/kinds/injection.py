"""Injecting a plan into a cluster, and recording what of it took effect."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from faults.kind import STALLED, THE_CONTROLLER
from faults.kinds.registry import KINDS, LINKS
from faults.plan import (
    AGAIN,
    CONTROLLER,
    FOLLOWERS,
    ISR_MEMBER,
    LAST,
    OUTSIDER,
    THERE,
    Fault,
    Plan,
    Trigger,
    hash_of,
)
from sim.environment.network import Node
from sim.hosts.cluster import Cluster
from sim.kernel.scheduler import ALWAYS


def restarts(kind: str) -> bool:
    """Whether a broker is started when a fault of this kind is over, even if the fault found it stopped."""
    lasts = KINDS[kind].lasts
    return lasts is not None and lasts.always


@dataclass(init=False, slots=True, unsafe_hash=True)
class Realised:
    """A fault as it happened to one target (or to a link, from the first node to the second, perhaps both ways): when,
    and whether it took effect.
    """

    kind: str
    targets: tuple[int, ...]
    at_us: int
    effective: bool

    def __init__(self, kind: str, targets: tuple[int, ...], at_us: int, effective: bool) -> None:
        self.kind = kind
        self.targets = targets
        self.at_us = at_us
        self.effective = effective


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
        self._in_force: dict[int, tuple[Fault, int, Node | None]] = {}
        """By their numbers among `realised`, from 1."""
        self._struck = 0
        self._is_over = False

    def schedule(self, plan: Plan) -> None:
        """Let all faults of a plan strike at their times, or when the steps come that they wait for."""
        for fault in plan.faults:
            begin = self.strike if fault.trigger is None else self._wait
            self._cluster.kernel.call_at(fault.at_us, ALWAYS, begin, fault)

    def stop(self) -> None:
        """Nothing strikes any more; what struck ends at its time."""
        self._is_over = True

    def _wait(self, fault: Fault) -> None:
        assert fault.trigger is not None
        _Aimed(self, self._cluster, fault, fault.trigger)

    def strike(self, fault: Fault, there: int = 0) -> None:
        """Let a fault strike now, whatever its time says.

        Args:
            fault: what strikes.
            there: the broker at which the step happened that it waited for, 0 if none.
        """
        if self._is_over:
            return
        if fault.targets == (FOLLOWERS,):
            fault = fault.aimed(self._followers())
        elif min(fault.targets) < 0:
            fault = fault.aimed(tuple([self._found(target, fault.kind, there) for target in fault.targets]))
        kernel = self._cluster.kernel
        targets = fault.targets if fault.kind not in LINKS else fault.targets[:1]
        for place, target in enumerate(targets):
            delay_us = fault.delay_us(place)
            if delay_us:
                kernel.call_at(kernel.now_us + delay_us, ALWAYS, self._hit, (fault, target))
            else:
                self._hit((fault, target))

    def _hit(self, entry: tuple[Fault, int]) -> None:
        if self._is_over:
            return
        fault, target = entry
        kernel = self._cluster.kernel
        coverage = self._cluster.recorder.coverage
        before = coverage.strikes(fault.kind)
        kind = KINDS[fault.kind]
        process = self._cluster.running.get(target) if kind.lasts is STALLED else None
        effective = kind.strike(self._cluster, fault, target)
        if not effective:
            coverage.without_effect(before)
        struck = fault.targets if fault.kind in LINKS else (target,)
        self.realised.append(Realised(fault.kind, struck, kernel.now_us, effective))
        self._struck = target if target > 0 and effective else self._struck
        number = len(self.realised)
        if effective or restarts(fault.kind):
            self._in_force[number] = fault, target, process
        if fault.lasts_us >= 0:
            kernel.call_at(kernel.now_us + fault.lasts_us, ALWAYS, self._undo, number)

    def _leader(self) -> int:
        """Who leads by the control plane's decision; while nobody does, the first broker that runs."""
        leader = self._cluster.control.state.leader
        return leader or next((broker for broker in self._cluster.replicas if broker in self._cluster.running), 1)

    def _followers(self) -> tuple[int, ...]:
        """Replicas that run and do not lead; those of the ISR last, so that it shrinks one by one."""
        leader, isr = self._leader(), self._cluster.control.state.isr
        others = [broker for broker in self._cluster.replicas if broker != leader and broker in self._cluster.running]
        return tuple(sorted(others, key=lambda broker: broker in isr))

    def _found(self, target: int, kind: str, there: int) -> int:
        """The broker that a target's name stands for now; faults of the controller itself may find none (0)."""
        if target >= 0:
            return target
        if target == CONTROLLER and (self._cluster.controller or KINDS[kind].strikes is THE_CONTROLLER):
            return self._cluster.controller
        if target == THERE and there > 0:
            return there
        if target == AGAIN and self._struck > 0:
            return self._struck
        leader = self._leader()
        isr = self._cluster.control.state.isr
        if target == LAST:
            return isr[0] if len(isr) == 1 else leader
        if target in (ISR_MEMBER, OUTSIDER):
            others = [broker for broker in self._cluster.replicas if broker != leader]
            fitting = [broker for broker in others if (broker in isr) == (target == ISR_MEMBER)]
            return next(iter(fitting or others), leader)
        return leader

    def _undo(self, number: int) -> None:
        if number not in self._in_force:
            return
        fault, target, process = self._in_force.pop(number)
        if process is None or self._cluster.running.get(target) is process:  # The next one may stand still by itself.
            KINDS[fault.kind].undo(self._cluster, fault, target)

    def heal(self) -> None:
        """Undo everything: links are as they were, what stands still goes on, every stopped broker is started once.

        What runs is left alone.
        """
        self._cluster.links.heal_all()
        for number in [number for number, entry in self._in_force.items() if not restarts(entry[0].kind)]:
            self._undo(number)
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


class _Aimed:
    """A fault that waits for a step.

    Whatever strikes does so as an event of its own, never within the protocol's step.
    """

    __slots__ = ("_cluster", "_fault", "_injection", "_struck", "_there", "_trigger")

    def __init__(self, injection: Injection, cluster: Cluster, fault: Fault, trigger: Trigger) -> None:
        self._injection = injection
        self._cluster = cluster
        self._fault = fault
        self._trigger = trigger
        self._there = 0
        self._struck = False
        cluster.recorder.arm(trigger.moment, self._seen, trigger.occurrence)
        cluster.kernel.call_at(max(trigger.until_us, cluster.kernel.now_us), ALWAYS, self._strike, None)

    def _seen(self, broker: int) -> None:
        self._cluster.recorder.disarm(self._trigger.moment, self._seen)
        self._there = broker
        kernel = self._cluster.kernel
        at_us = kernel.now_us + self._trigger.after_us
        if at_us < self._trigger.until_us:
            kernel.call_at(at_us, ALWAYS, self._strike, None)

    def _strike(self, _: object) -> None:
        """At the step, or at the latest time, whichever is first."""
        if not self._struck:
            self._struck = True
            self._cluster.recorder.disarm(self._trigger.moment, self._seen)
            self._injection.strike(self._fault, self._there)
