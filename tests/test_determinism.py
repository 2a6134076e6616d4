"""A run is a function of scenario, mode and seed, and its digest notices whatever matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load, names
from sim.environment.network import Channel
from sim.hosts.consumer import Consumer
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Kernel
from sim.protocol.messages import FetchRequest, FetchResponse, ProduceRequest
from tests.named import run, run_row
from tests.places import ROOT
from tests.plain import needs_sources
from tests.test_metamorphic import without_faults

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.kernel.scheduler import Gate

ROWS = """
import json
from scenarios.format.catalogue import load, names
from tests.named import run_row
from tests.test_determinism import mode_of
rows = [run_row(load(name), mode_of(name), 1) for name in names()]
print(json.dumps(rows))
"""


def mode_of(name: str) -> str:
    return "hw" if "hw" in load(name).expect else "elr"


def rows_in_a_fresh_process(hash_seed: str) -> Any:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", ROWS], env=environment, capture_output=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


@cache
def row_of(name: str, mode: str, seed: int) -> Row:
    return run_row(load(name), mode, seed)


def test_rows_are_the_same_in_every_process_and_under_every_hash_seed() -> None:
    """The hash seed of this process is another one, unless chance has it."""
    rows = rows_in_a_fresh_process("1")
    again = [row_of(row["scenario"], row["mode"], row["seed"]) for row in reversed(rows)]
    assert rows == again[::-1]
    # mixed-versions in mode hw is kip101-scenario-1, and seed 1 of removals removes no directory, as in directories.
    others = [row for row in rows if row["scenario"] not in ("mixed-versions", "removals")]
    assert len({row["digest"] for row in others}) == len(others)


@pytest.mark.parametrize("name", names())
def test_a_run_is_unchanged_by_who_watches_it(name: str) -> None:
    mode = mode_of(name)
    assert run(load(name), mode, 1, trace=True).row == row_of(name, mode, 1)


MACHINE_KINDS = ("pause", "disk-stall", "slow", "lossy", "duplicate", "disk-replaced", "corrupt-tail", "retention")


def test_faults_of_every_kind_leave_a_run_a_function_of_its_seed(power: Scenario) -> None:
    assert power.faults is not None
    scenario = replace(power, faults=replace(power.faults, kinds=MACHINE_KINDS, count=(8, 8)))
    struck = set()
    for seed in range(12):  # Each enables some of the kinds.
        result = run(scenario, "kip101", seed)
        assert result.row["error"] == ""
        assert result.row == run_row(scenario, "kip101", seed)
        struck |= {fault["kind"] for fault in result.faults if fault["effective"]}
    assert struck == set(MACHINE_KINDS)


# Deliveries that matter, and what is done to one of them.


def brings_records(receiver: Any, message: Event) -> bool:
    """A fetch answer with records, to a follower or a consumer that waits for it."""
    if not isinstance(message, FetchResponse) or not message.results[0][2]:
        return False
    if isinstance(receiver, Consumer):
        return message.request is receiver._fetch
    fetcher = receiver.replica_manager.fetchers.fetchers.get(message.request.leader)
    return fetcher is not None and message.request is fetcher.in_flight


def brings_a_batch(leader: Any, message: Event) -> bool:
    """A producer's request that its leader appends at once: not refused, and held neither while the ISR is written nor
    behind another request of the connection.
    """
    if not isinstance(message, ProduceRequest):
        return False
    if (message.client, message.connection) in leader.socket_server._channels:
        return False
    partition = leader.partition
    if partition is None or not partition.is_leader or partition.state.locked:
        return False
    return bool(message.acks != -1 or len(partition.state.isr) >= partition.min_insync_replicas)


def brings_a_new_leo(leader: Any, message: Event) -> bool:
    """A follower's fetch from which its leader learns."""
    if not isinstance(message, FetchRequest) or message.replica < 0:
        return False
    partition = leader.partition
    if partition is None or not partition.is_leader or partition.state.locked:
        return False
    _, offset, epoch, last_epoch = message.positions[0]
    refused = partition.check_fetch(offset, epoch, last_epoch)
    return not refused and partition.followers.states[message.replica].leo != offset


class Delivery(Event):
    """Stands in the place of a message: its kernel decides what becomes of it."""

    def __init__(self, kernel: Meddling, message: Message) -> None:
        self.kernel = kernel
        self.message = message
        self.elision_safe = message.elision_safe

    def has_to_wait(self, *, registered: bool) -> bool:
        return self.message.has_to_wait(registered=registered)

    def happen(self, gate: Gate) -> None:
        assert isinstance(gate, Channel)
        self.kernel.deliver(gate, self.message)


class Meddling(Kernel):
    """Does something to the n-th delivery that matters.

    Args:
        matters: which deliveries count.
        which: of them; 0: none.
        deed: ``delay`` by 1 us or ``drop``.
    """

    def __init__(self, matters: Any, which: int = 0, deed: str = "") -> None:
        super().__init__()
        self.matters = matters
        self.which = which
        self.deed = deed
        self.count = 0

    def schedule(self, at_us: int, gate: Gate, event: Event) -> None:
        if isinstance(event, Message):
            event = Delivery(self, event)
        super().schedule(at_us, gate, event)

    def deliver(self, gate: Channel[Any], message: Message) -> None:
        matters = self.matters(gate.target, message)
        self.count += matters
        if not matters or self.count != self.which:
            message.happen(gate)
        elif self.deed == "delay":
            super().schedule(self.now_us + 1, gate, message)


@needs_sources
@pytest.mark.world
@pytest.mark.parametrize(
    ("matters", "deed"),
    [
        (brings_records, "delay"),
        (brings_a_batch, "delay"),
        (brings_a_new_leo, "delay"),
        (brings_a_new_leo, "drop"),
    ],
)
def test_the_digest_notices_a_delivery_that_came_later_or_not_at_all(power: Scenario, matters: Any, deed: str) -> None:
    untouched = Meddling(matters)
    digest = run(power, "kip101", 1, kernel=untouched).row["digest"]
    assert digest == run_row(power, "kip101", 1)["digest"]
    assert untouched.count > 15
    for number in range(1, untouched.count + 1):
        meddling = Meddling(matters, number, deed)
        row = run(power, "kip101", 1, kernel=meddling).row
        assert meddling.count >= number
        assert not row["error"]
        assert row["digest"] != digest, number


class Tying(Meddling):
    """Lets two followers' fetches that teach the leader something arrive at the same instant, in either order."""

    def __init__(self, *, swapped: bool) -> None:
        super().__init__(brings_a_new_leo)
        self.swapped = swapped
        self.held: Any = None
        self.tied = False

    def deliver(self, gate: Channel[Any], message: Any) -> None:
        if self.tied or not self.matters(gate.target, message):
            message.happen(gate)
        elif self.held is None:
            self.held = gate, message
        elif self.held[1].node != message.node:
            self.tied = True
            pair = [self.held, (gate, message)]
            for through, each in reversed(pair) if self.swapped else pair:
                each.happen(through)


@needs_sources
def test_the_digest_notices_which_of_two_ties_at_a_broker_came_first(power: Scenario) -> None:
    config = {**power.config, "default.replication.factor": 3}  # Two followers.
    draws = {key: values for key, values in power.draw_config.items() if key not in config}
    scenario = replace(without_faults(power), config=config, draw_config=draws)
    for seed in range(5):
        kernels = [Tying(swapped=swapped) for swapped in (False, True)]
        digests = [run(scenario, "kip101", seed, kernel=kernel).row["digest"] for kernel in kernels]
        assert all(kernel.tied for kernel in kernels)
        assert len(set(digests)) == 2
