"""A recorded run whose parts can be replaced, so that it can be shrunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from faults.kinds.registry import KINDS
from faults.plan import Fault, Plan
from scenarios.format.scenario import Continuation, Expectation, PlannedSend, Recorded, Scenario
from scenarios.single import run as single
from scenarios.single.result import RunResult
from scenarios.single.rows import Row
from sim.config import Value, refusals
from sim.kernel.scheduler import Kernel
from sim.protocol.modes import Mode


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded scenario in a mode, with the seed of latencies and overridden rules."""

    scenario: Scenario
    mode: Mode
    seed: int
    rules: Mapping[str, str] = field(default_factory=dict)

    @property
    def recorded(self) -> Recorded:
        """Plan, batches and horizon."""
        assert self.scenario.recorded is not None
        return self.scenario.recorded

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the plan."""
        return self.recorded.plan.faults

    @property
    def sends(self) -> tuple[PlannedSend, ...]:
        """The producer's batches, ordered by time."""
        assert self.recorded.sends is not None
        return self.recorded.sends

    @property
    def horizon_us(self) -> int:
        """The time at which everything is healed."""
        assert self.recorded.horizon_us is not None
        return self.recorded.horizon_us

    def with_faults(self, faults: tuple[Fault, ...]) -> Case:
        """A copy with another plan."""
        return self._recording(plan=Plan(faults))

    def with_sends(self, sends: tuple[PlannedSend, ...]) -> Case:
        """A copy with other batches."""
        return self._recording(sends=sends)

    def with_horizon(self, horizon_us: int) -> Case:
        """A copy that is healed at another time, without later faults and batches; no fault waits longer."""
        faults = tuple(_until(fault, horizon_us) for fault in self.faults if fault.at_us < horizon_us)
        sends = tuple(send for send in self.sends if send[3] < horizon_us)
        further = {
            name: tuple(send for send in planned if send[3] < horizon_us)
            for name, planned in self.recorded.further_sends.items()
        }
        return self._recording(plan=Plan(faults), sends=sends, further_sends=further, horizon_us=horizon_us)

    def with_further_sends(self, further: Mapping[str, tuple[PlannedSend, ...]]) -> Case:
        """A copy with other batches for the partitions besides the first."""
        return self._recording(further_sends=further)

    def with_older(self, older: Mapping[int, str]) -> Case:
        """A copy in which other brokers start in an older mode."""
        return self._recording(older=older)

    def continued(self, after_us: int, number: int, *, faults: bool = False) -> Case:
        """A copy with other latencies from that time on: see `scenarios.format.scenario.Continuation`."""
        return self._recording(continued=Continuation(after_us, number, faults))

    def keeping_cluster(self) -> Case:
        """A copy of which shrinking leaves brokers and settings as they are."""
        return self._recording(keeps_cluster=True)

    def expecting(self, kinds: tuple[str, ...]) -> Case:
        """A copy that expects these violations."""
        recorded = replace(self.recorded, kinds=kinds)
        return self.with_scenario(expect={self.mode.name: Expectation("violates", kinds)}, recorded=recorded)

    def with_scenario(self, **changes: Any) -> Case:
        """A copy with other fields of the scenario."""
        return replace(self, scenario=replace(self.scenario, **changes))

    def with_settings(self, settings: Mapping[str, Value]) -> Case:
        """A copy with other values of some settings."""
        return self.with_scenario(config={**self.scenario.config, **settings})

    def with_rule(self, name: str, value: str) -> Case:
        """A copy with another value of one rule."""
        return replace(self, rules={**self.rules, name: value})

    def _recording(self, **changes: Any) -> Case:
        return self.with_scenario(recorded=replace(self.recorded, **changes))

    @property
    def key(self) -> str:
        """Equal for equal runs."""
        about = self.scenario
        per_broker = about.broker_config, about.broker_modes
        cluster = about.brokers, about.first, about.settle_us, about.config, per_broker, about.topics, about.topology
        return repr((self.recorded, cluster, self.mode.name, self.seed, self.rules))

    @property
    def fits(self) -> bool:
        """Whether all named brokers exist, and Kafka would start with these settings."""
        about = self.scenario
        named = [about.first, int(about.config["default.replication.factor"])]
        named += [*about.broker_config, *about.broker_modes, *self.recorded.older]
        named += [topic.replication_factor or 1 for topic in about.topics]
        for fault in self.faults:
            named += [*fault.targets, *fault.replicas]
            if KINDS[fault.kind].problem(fault.targets, fault.value):
                return False
        own = [{**about.config, **keys} for keys in about.broker_config.values()]
        return max(named) <= about.brokers and not any(refusals(config, {}) for config in (about.config, *own))

    def row(self) -> Row:
        """Run it; return the row."""
        return single.run_row(self.scenario, self.mode, self.seed, self.rules)

    def run(self, *, trace: bool = False, kernel: Kernel | None = None) -> RunResult:
        """Run it; return everything. A fresh kernel of another kind may be given."""
        return single.run(self.scenario, self.mode, self.seed, self.rules, trace=trace, kernel=kernel)


def _until(fault: Fault, horizon_us: int) -> Fault:
    trigger = fault.trigger
    if trigger is None or trigger.until_us <= horizon_us:
        return fault
    return fault.with_trigger(replace(trigger, until_us=horizon_us))
