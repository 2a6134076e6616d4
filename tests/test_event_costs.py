"""The table of event costs in sim/DESIGN.md: counts must not grow, and the table must not flatter."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import sim
from sim.config import resolve
from sim.hosts.cluster import Cluster
from sim.hosts.delayed_fetch_purgatory import _FetchExpiry
from sim.hosts.zk_broker import _PingTimer
from sim.hosts.zk_messages import Ping
from sim.hosts.zookeeper import _SessionTimeout
from sim.kernel.scheduler import Event, Gate, Kernel
from sim.kernel.streams import Streams
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.messages import FetchRequest, FetchResponse
from sim.protocol.modes import mode as mode_named

WAITING = (FetchRequest, FetchResponse, _FetchExpiry, _PingTimer, Ping, _SessionTimeout)


class CountingKernel(Kernel):
    """Counts what is scheduled, by class."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[type[Event]] = Counter()

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        self.count[type(event)] += 1
        super().schedule(at_us, gate, event)


def running_cluster(mode: str) -> tuple[Cluster, CountingKernel]:
    kernel = CountingKernel()
    rules = mode_named(mode).rules
    cluster = Cluster(
        brokers=3,
        config=resolve({"default.replication.factor": 3}),
        broker_config={},
        rules=dict.fromkeys((1, 2, 3), rules),
        client_rules=rules,
        scripted=False,
        kernel=kernel,
        streams=Streams(1),
    )
    cluster.boot()
    kernel.run_until(500_000)
    cluster.producer.begin()
    cluster.consumer.begin()
    kernel.run_until(2_000_000)
    kernel.count.clear()
    return cluster, kernel


def table() -> dict[str, int]:
    text = (Path(sim.__file__).parent / "DESIGN.md").read_text()
    rows = re.findall(r"^\| (acked batch|election|restart)[^|]*\| (\d+) \|$", text, re.MULTILINE)
    return {name: int(count) for name, count in rows}


@pytest.mark.parametrize("mode", ["hw", "kip101", "kip279", "kip320"])
def test_counts_are_those_of_the_table(mode: str) -> None:
    cluster, kernel = running_cluster(mode)
    cluster.producer.send(ProducerBatch(0, 3, -1, kernel.now_us))
    kernel.run_until(kernel.now_us + 100_000)
    assert len(cluster.recorder.history.clients.acks) == 1
    batch = kernel.count.total()

    cluster, kernel = running_cluster(mode)
    cluster.kill(1)
    kernel.run_until(kernel.now_us + 25_000_000)
    assert cluster.leader is not None
    election = sum(count for kind, count in kernel.count.items() if kind not in WAITING)

    kernel.count.clear()
    cluster.start(1)
    kernel.run_until(kernel.now_us + 400_000)
    assert cluster.control.state.isr == (1, 2, 3)
    counts = {"acked batch": batch, "election": election, "restart": kernel.count.total()}
    assert all(count <= table()[what] + (what == "restart") for what, count in counts.items()), counts
    assert mode != "kip320" or counts == table()
