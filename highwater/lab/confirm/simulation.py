"""The simulation of a scenario that real brokers perform: what it shows of each partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from highwater.lab.confirm.comparison import FurtherResult
from highwater.lab.confirm.partitions import partitions_of
from scenarios.single.execution import broker_count
from scenarios.single.run import run
from sim.config import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from highwater.lab.confirm.partitions import KafkaPartition
    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from scenarios.single.run import Watch
    from sim.protocol.modes import Mode


def partitions_in(scenario: Scenario) -> tuple[KafkaPartition, ...]:
    """The partitions of a scenario."""
    config = resolve({}, scenario.config)
    return partitions_of(scenario.topics, config, range(1, broker_count(scenario, config) + 1))


def simulate(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str],
    watch: Watch | None = None,
) -> tuple[RunResult, dict[str, FurtherResult]]:
    """Run a scenario with a trace; return what it shows of the first partition, and of each further one.

    A run shows one partition, so it is repeated for each of several: with the same history, whichever it shows.
    """
    found = []
    partitions = partitions_in(scenario)
    for partition in partitions:
        shown = replace(scenario, shown=partition.name) if len(partitions) > 1 else scenario
        found.append(run(shown, mode, seed, rules, trace=True, watch=watch))
    first, *others = found
    further = zip(partitions[1:], others, strict=True)
    return first, {partition.name: FurtherResult(result, partition.replicas) for partition, result in further}
