"""The states that are folded from the steps of a run are those of the cluster, after every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.drawing.bands import ClusterState
from scenarios.format.catalogue import load
from scenarios.single.run import run
from sim.history import steps
from sim.history.steps import kind_of
from sim.hosts.zookeeper import ZooKeeper
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.history.steps import Shown
    from sim.hosts.cluster import Cluster

DECIDED = (
    steps.ELECTED, steps.ISR, steps.ELR, steps.ASSIGNED, steps.EPOCH_RAISED, steps.DIRECTORY_ASSIGNED
)  # fmt: skip
"""Steps of one decision follow each other, and the control plane's state is the one after all of them."""


class Comparison:
    """Compares, after each step of a run, what is folded with what is there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.state = ClusterState(
            cluster.control.state_of(name).replicas, zookeeper=isinstance(cluster.control, ZooKeeper)
        )
        self.steps = 0
        self._resumed: dict[int, int] = {}

    def see(self, step: Shown) -> None:
        self.steps += 1
        self.state.take(step)
        kind = kind_of(step)
        if kind is steps.RESUME:
            self._resumed[step["broker"]] = step["t"]
        if kind not in DECIDED and self.state.leader_epoch >= 0:
            self._compare_decisions(step)
        for number in self.cluster.settings:
            self._compare(number, step)

    def _compare_decisions(self, step: Shown) -> None:
        state, there = self.state, self.cluster.control.state_of(self.name)
        members = {kind: tuple(brokers) for kind, brokers in state.members.items()}
        assert (state.leader, state.leader_epoch) == (there.leader, there.leader_epoch), step
        assert (members["isr"], members["replica"]) == (there.isr, there.replicas), step
        if isinstance(there, PartitionRegistration):
            assert members["elr"] == there.elr

    def _compare(self, number: int, step: Shown) -> None:
        process, state = self.cluster.running.get(number), self.state
        assert (number in state.running) == (process is not None), (number, step)
        if process is None or not process.has_loaded or self.name in process.replica_manager.offline:
            return
        resumes = self._resumed.get(number) == step["t"]  # What was held back is handled before it counts as going on.
        assert resumes or (state.pauses[number] > 0) == process.frozen, (number, step)
        directories = self.cluster.machines.directories[number].all
        stalls = any(directory.stalled_us >= 0 and self.name in directory.storages for directory in directories)
        assert (state.stalls[number] > 0) == (stalls or process.disk_stalled_us is not None), (number, step)


def check(scenario: str, mode: str, seed: int) -> int:
    """Compares after every step of a run; how many there were."""
    compared: list[Comparison] = []

    def watch(cluster: Cluster, name: str) -> Callable[[Shown], None]:
        compared.append(Comparison(cluster, name))
        return compared[-1].see

    result = run(load(scenario), mode_named(mode), seed, watch=watch)
    assert not result.row["error"], result.row["error"]
    return min(one.steps for one in compared)


@pytest.mark.parametrize(
    ("scenario", "mode"),
    [
        ("chaos", "hw"),
        ("chaos", "kip320"),
        ("elr-chaos", "elr"),
        ("reassignments", "kip320"),
        ("reassignments", "kraft"),
        ("disks", "elr-4.3"),
    ],
)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_what_is_folded_is_what_is_there(scenario: str, mode: str, seed: int) -> None:
    assert check(scenario, mode, seed) > 100


def test_a_run_with_deleted_records_is_folded() -> None:
    assert check("stale-log-start", "kip101", 0)
