"""Injects a plan into a cluster, and records which faults took effect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from faults.kind import OF_CONTROLLERS, STALLED, THE_CONTROLLER
from faults.kinds.message_faults import MessageFault
from faults.kinds.registry import KINDS, LINKS, details
from faults.plan import (
    CONTROLLER,
    FOLLOWERS,
    ISR_MEMBER,
    LAST_MEMBER,
    LAST_TARGET,
    OUTSIDER,
    STEP_BROKER,
    Fault,
    Plan,
    Trigger,
    hash_of,
)
from sim.environment.network import Node
from sim.history.recorder import Recorder
from sim.hosts.cluster import Cluster
from sim.kernel.scheduler import ALWAYS, FIRST, Call, Event, Gate, Kernel
from sim.protocol.messages import LeaderAndIsr


def is_always_undone(kind: str) -> bool:
    """Whether to undo a fault of this kind even if it had no effect: the broker is started when the fault is over."""
    duration = KINDS[kind].duration
    return duration is not None and duration.always


@dataclass(init=False, slots=True, unsafe_hash=True)
class RealisedFault:
    """A fault that struck one target (or a link, from the first node to the second, perhaps both ways), at a time, and
    whether it took effect; one that waits for a message takes effect if it meets one.
    """

    kind: str
    targets: tuple[int, ...]
    at_us: int
    effective: bool
    fault: Fault = field(compare=False)

    def __init__(self, fault: Fault, targets: tuple[int, ...], at_us: int, effective: bool) -> None:
        self.kind = fault.kind
        self.targets = targets
        self.at_us = at_us
        self.effective = effective
        self.fault = fault

    def row(self) -> str:
        """Its row in the hash of the realised faults."""
        targets = "".join([f",{target}" for target in self.targets])
        return f"{self.kind}{targets},{self.at_us},{self.effective}"

    def to_json(self) -> dict[str, Any]:
        """As plain data, with `details`."""
        found = {"kind": self.kind, "targets": list(self.targets), "at_us": self.at_us, "effective": self.effective}
        return {**found, **details(self.fault)}


class Strike(Event):
    """A planned fault strikes at its time."""

    __slots__ = ("_injection", "_number", "fault")

    def __init__(self, injection: Injection, number: int, fault: Fault) -> None:
        self._injection = injection
        self._number = number
        self.fault = fault

    def happen(self, _: Gate) -> None:
        self._injection.strike_planned(self._number)


class Injection:
    """Injects faults into a cluster; `realised` are those that struck so far."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.realised: list[RealisedFault] = []
        self._in_force: dict[int, tuple[Fault, int, Node | None]] = {}
        """Number among `realised`, from 1 -> fault, target, and the process that a stall struck."""
        self._struck = 0
        self._is_over = False
        self._planned = 0
        self._to_strike: dict[int, Fault] = {}
        """Number among the planned faults -> fault that has not struck yet."""
        self._begun: dict[int, Fault] = {}
        """Number among the planned faults -> fault that has struck."""
        self._before: dict[int, int] = {}
        """Number of a planned fault of a sequence -> number of the one before it."""
        self._last_of: dict[int, int] = {}
        """Sequence -> number of its last planned fault."""
        self._kept_back: dict[int, list[int]] = {}
        """Number of a planned fault -> numbers of those that wait until it has struck."""
        self._without_message: dict[object, RealisedFault] = {}
        """Fault and target -> the fault, as long as it has met no message."""
        cluster.links.struck = self._message_struck

    def schedule(self, plan: Plan) -> None:
        """Schedule all faults of a plan at their times, or for the steps that they wait for."""
        kernel = self._cluster.kernel
        for fault in plan.faults:
            kernel.schedule(fault.at_us, ALWAYS, self._event(fault))

    def _event(self, fault: Fault) -> Event:
        """The event at a planned fault's time."""
        number = self._planned
        self._planned = number + 1
        self._to_strike[number] = fault
        if fault.trigger is not None and fault.trigger.sequence:
            before = self._last_of.get(fault.trigger.sequence)
            if before is not None:
                self._before[number] = before
            self._last_of[fault.trigger.sequence] = number
        return Strike(self, number, fault) if fault.trigger is None else Call(self._await_step, number)

    def replace(self, plan: Plan) -> Plan:
        """Schedule another plan in place of the faults that have not struck yet; those that have keep striking their
        later targets. Returns the plan with which a run would have come here: the faults that have struck, and the new
        ones.
        """
        struck = [self._begun[number] for number in sorted(self._begun)]
        # Events of the faults that have not struck are still scheduled, and find nothing to strike.
        self._to_strike.clear()
        self._last_of.clear()
        kernel = self._cluster.kernel
        for fault in plan.faults:
            # Before other events of that time, as if it had been scheduled at the start.
            kernel.add(fault.at_us, FIRST, ALWAYS, self._event(fault))
        return Plan(tuple(sorted([*struck, *plan.faults], key=_time_of)))

    def stop(self) -> None:
        """Strike no more faults; those in force end at their time."""
        self._is_over = True

    def _await_step(self, number: int) -> None:
        fault = self._to_strike.get(number)
        if fault is not None:
            assert fault.trigger is not None
            before = self._before.get(number, -1)
            if before in self._to_strike:
                self._kept_back.setdefault(before, []).append(number)
                return
            recorder = self._cluster.recorder.of(fault.partition or self._cluster.name)
            _TriggeredFault(self, recorder, self._cluster.kernel, number, fault.trigger)

    def strike_planned(self, number: int, step_broker: int = 0) -> None:
        """Strike a scheduled fault, unless another plan replaced it; `step_broker` as in `strike`."""
        fault = self._to_strike.pop(number, None)
        if fault is not None:
            self._begun[number] = fault
            self.strike(fault, step_broker)
            for following in self._kept_back.pop(number, ()):
                self._await_step(following)

    def strike(self, fault: Fault, step_broker: int = 0) -> None:
        """Strike now, whatever the fault's time; `step_broker` is the broker of the step that it waited for, if any."""
        if self._is_over:
            return
        if fault.targets == (FOLLOWERS,):
            fault = fault.with_targets(self._followers(fault.partition))
        elif min(fault.targets) < 0:
            fault = fault.with_targets(tuple([self._resolve(target, fault, step_broker) for target in fault.targets]))
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
        process = self._cluster.running.get(target) if kind.duration is STALLED else None
        effective = kind.strike(self._cluster, fault, target)
        waits = effective and isinstance(kind, MessageFault)
        if waits or not effective:
            coverage.without_effect(before)
        struck = fault.targets if fault.kind in LINKS else (target,)
        self.realised.append(RealisedFault(fault, struck, kernel.now_us, effective and not waits))
        if waits:
            self._without_message[entry] = self.realised[-1]
        self._struck = target if target > 0 and effective else self._struck
        number = len(self.realised)
        if effective or is_always_undone(fault.kind):
            self._in_force[number] = fault, target, process
        if fault.lasts_us >= 0:
            kernel.call_at(kernel.now_us + fault.lasts_us, ALWAYS, self._undo, number)

    def _message_struck(self, by: object) -> None:
        """A fault has met the message that it waited for."""
        realised = self._without_message.pop(by, None)
        if realised is not None:
            realised.effective = True
            self._cluster.recorder.coverage.strikes(realised.kind)

    def _state(self, partition: str) -> LeaderAndIsr:
        """The state of the partition by whose roles a fault strikes; if it is gone, of the first that exists."""
        control = self._cluster.control
        return control.state_of(partition) if partition else control.state

    def _leader(self, state: LeaderAndIsr) -> int:
        """The leader that the control plane chose; without one, the first running broker."""
        return state.leader or next((broker for broker in state.replicas if broker in self._cluster.running), 1)

    def _followers(self, partition: str) -> tuple[int, ...]:
        """Running followers, ISR members last, so that the ISR shrinks one by one."""
        state = self._state(partition)
        leader, isr = self._leader(state), state.isr
        others = [broker for broker in state.replicas if broker != leader and broker in self._cluster.running]
        return tuple(sorted(others, key=lambda broker: broker in isr))

    def _can_strike(self, fault: Fault, node: int) -> bool:
        """Whether a node is a broker, or a controller that is a process and that this kind of fault can strike."""
        return node in self._cluster.settings or (node > 0 and KINDS[fault.kind].targets in OF_CONTROLLERS)

    def _resolve(self, target: int, fault: Fault, step_broker: int) -> int:
        """The broker that has a role now; 0 if there is none, for faults of the controller."""
        if target >= 0:
            return target
        if target == CONTROLLER:
            controller = self._cluster.controller
            if KINDS[fault.kind].targets is THE_CONTROLLER or self._can_strike(fault, controller):
                return controller
        if target == STEP_BROKER and self._can_strike(fault, step_broker):
            return step_broker
        if target == LAST_TARGET and self._can_strike(fault, self._struck):
            return self._struck
        state = self._state(fault.partition)
        leader, isr = self._leader(state), state.isr
        if target == LAST_MEMBER:
            return isr[0] if len(isr) == 1 else leader
        if target in (ISR_MEMBER, OUTSIDER):
            others = [broker for broker in state.replicas if broker != leader]
            fitting = [broker for broker in others if (broker in isr) == (target == ISR_MEMBER)]
            return next(iter(fitting or others), leader)
        return leader

    def _undo(self, number: int) -> None:
        if number not in self._in_force:
            return
        fault, target, process = self._in_force.pop(number)
        # Another fault may have stalled a later process.
        if process is None or self._cluster.running.get(target) is process:
            KINDS[fault.kind].undo(self._cluster, fault, target)

    def heal(self) -> None:
        """Undo every fault: heal links, end stalls, and start every stopped broker once."""
        self._cluster.links.heal_all()
        self._cluster.is_healed = True
        for number in [number for number, entry in self._in_force.items() if not is_always_undone(entry[0].kind)]:
            self._undo(number)
        for broker in self._cluster.settings:
            self._cluster.start(broker)
        for controller in self._cluster.controllers:
            self._cluster.start(controller)

    @property
    def effective(self) -> int:
        """Number of strikes that took effect."""
        return sum(entry.effective for entry in self.realised)

    def faults_hash(self) -> str:
        """Hash of the realised faults (16 hex digits)."""
        return hash_of([entry.row() for entry in self.realised])

    def to_json(self) -> list[dict[str, Any]]:
        """The realised faults as plain data."""
        return [entry.to_json() for entry in self.realised]


def _time_of(fault: Fault) -> int:
    return fault.at_us


class _TriggeredFault:
    """A planned fault that waits for a step. Its strike is a separate event, never part of the step."""

    __slots__ = ("_injection", "_kernel", "_number", "_recorder", "_step_broker", "_struck", "_trigger")

    def __init__(self, injection: Injection, recorder: Recorder, kernel: Kernel, number: int, trigger: Trigger) -> None:
        self._injection = injection
        self._recorder = recorder
        self._kernel = kernel
        self._number = number
        self._trigger = trigger
        self._step_broker = 0
        self._struck = False
        recorder.arm(trigger.moment, self._on_step, trigger.occurrence)
        kernel.call_at(max(trigger.until_us, kernel.now_us), ALWAYS, self._strike, None)

    def _on_step(self, broker: int) -> None:
        self._recorder.disarm(self._trigger.moment, self._on_step)
        self._step_broker = broker
        kernel = self._kernel
        at_us = kernel.now_us + self._trigger.after_us
        if at_us < self._trigger.until_us:
            kernel.call_at(at_us, ALWAYS, self._strike, None)

    def _strike(self, _: object) -> None:
        """Strike after the step, or at the fallback time, whichever is first."""
        if not self._struck:
            self._struck = True
            self._recorder.disarm(self._trigger.moment, self._on_step)
            self._injection.strike_planned(self._number, self._step_broker)
