"""A branch is reached where its rule decides, and not before."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scenarios.format.catalogue import load
from scenarios.single import coverage_column
from scenarios.single.run import run_row
from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    LATEST,
    NO_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    LeaderAndIsr,
)
from sim.protocol.modes import MODES
from sim.protocol.probes import PROBES, TRANSITIONS
from sim.protocol.rules import RULES, unmet
from tests.sim.protocol.controlling import Store, World
from tests.sim.protocol.recording import HW, KIP101, LAG_US, Recorder, decision, filled, partition, produce
from tests.sim.protocol.replica.test_replica_fetcher_thread import Follower, out_of_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sim.protocol.rules import Rules

    Scene = Callable[[Rules], Iterator[set[str]]]

SIM = Path(probes.__file__).parents[1]
EPOCHS = KIP101.override({"follower_truncation": "leader-epoch-rounds"})
FENCED = HW.override({"fetch_fencing": "leader-epoch"})


def joining(rules: Rules) -> Iterator[set[str]]:
    """A follower that has reached the HW, and not the start of the leader's epoch."""
    host = Recorder()
    one = filled(host, {0: 3}, rules, hw=1)
    one.become_leader(decision(isr=(1, 3)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    yield host.probes
    one.follower_fetched(2, 1, 1, one.leader_epoch, LAG_US * 2)
    yield host.probes


def joining_dead(rules: Rules) -> Iterator[set[str]]:
    """A follower that is not alive in the leader's metadata."""
    host = Recorder()
    host.dead = {2}
    one = partition(host, rules)
    one.become_leader(decision(isr=(1,)), 0)
    one.follower_fetched(3, 1, 0, one.leader_epoch, 0)
    one.isr_persisted((1, 3), 2, 0)
    yield host.probes
    one.follower_fetched(2, 1, 0, one.leader_epoch, 0)
    yield host.probes


def proposing(rules: Rules) -> Iterator[set[str]]:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(isr=(1,)), 0)
    yield host.probes
    one.follower_fetched(2, 1, 0, one.leader_epoch, 0)
    yield host.probes


def fetching_with_another_epoch(rules: Rules) -> Iterator[set[str]]:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(epoch=3, isr=(1, 2)), 0)
    one.follower_fetched(2, 1, 0, 3, 30)
    yield host.probes
    if not one.check_fetch(0, 2):
        one.follower_fetched(2, 1, 0, 2, 30)
    yield host.probes


def asking_a_new_leader(rules: Rules) -> Iterator[set[str]]:
    host = Recorder()
    one = filled(host, {1: 3}, rules, hw=1)
    one.become_leader(decision(epoch=4), 0)
    one.list_offset(LATEST, NO_EPOCH, replica=True)
    yield host.probes
    one.list_offset(LATEST, NO_EPOCH, replica=False)
    yield host.probes


def committing_with_a_small_isr(rules: Rules) -> Iterator[set[str]]:
    host = Recorder()
    one = partition(host, rules, min_insync_replicas=2)
    one.become_leader(decision(isr=(1, 2)), 0)
    one.produce(produce(0), 0)
    one.follower_fetched(2, 1, 1, one.leader_epoch, 0)
    yield host.probes
    one.produce(produce(1), 0)
    one.shrink_isr(2 * LAG_US)
    one.isr_persisted((1,), 2, 2 * LAG_US)
    yield host.probes


def replaying_an_answered_change(rules: Rules) -> Iterator[set[str]]:
    """A record with the leader's partition epoch, without and with a proposed ISR."""
    host = Recorder()
    host.registered = {2: 1, 3: 1}
    one = partition(host, rules)
    one.become_leader(decision(isr=(1,)), 0)
    one.become_leader(decision(isr=(1,)), 0)
    yield host.probes
    one.follower_fetched(2, 1, 0, one.leader_epoch, 0)
    one.become_leader(decision(isr=(1,)), 0)
    yield host.probes


def truncating_to_the_end(rules: Rules) -> Iterator[set[str]]:
    """An epoch that begins at the LEO: elected, and nothing written."""
    host = Recorder()
    one = filled(host, {1: 3}, rules)
    one.truncate_to(3)
    yield host.probes
    one.epochs.assign(2, 3)
    one.truncate_to(3)
    yield host.probes


def appending_an_overlap(rules: Rules) -> Iterator[set[str]]:
    follower = Follower({1: 4}, rules, hw=4).follow()
    follower.brings(Batch(4, 4, 5, 19), hw=5)
    yield follower.host.probes
    follower.brings(Batch(3, 6, 5, 20), hw=7)
    yield follower.host.probes


def failing_to_append(rules: Rules) -> Iterator[set[str]]:
    yield from appending_an_overlap(rules.override({"append_check": "first-offset"}))


def being_fenced(rules: Rules) -> Iterator[set[str]]:
    follower = Follower({1: 2}, rules, hw=2).follow()
    follower.brings(error=UNKNOWN_LEADER_EPOCH)
    yield follower.host.probes
    follower.back_off()
    follower.brings(error=FENCED_LEADER_EPOCH)
    yield follower.host.probes


def ending_earlier(rules: Rules) -> Iterator[set[str]]:
    follower = out_of_range(rules)
    yield follower.host.probes
    follower.lists(2)
    yield follower.host.probes


def asking_in_vain(rules: Rules) -> Iterator[set[str]]:
    follower = Follower({1: 4}, rules, hw=4).follow()
    yield follower.host.probes
    follower.ends(-1, error=NOT_LEADER_OR_FOLLOWER)
    yield follower.host.probes


def bouncing(rules: Rules) -> Iterator[set[str]]:
    world = World(Store(1, (1, 2), registered={1: 11, 2: 12}), rules=rules.as_dict()).elected()
    yield set(world.probes)
    world.store.registered[2] = 20
    world.controller.brokers_changed()
    yield world.run().probes


def coming_back(rules: Rules) -> Iterator[set[str]]:
    world = World(Store(0, (1,), registered={1: 11}), rules=rules.as_dict()).elected()
    yield set(world.probes)
    world.store.registered[2] = 20
    world.controller.brokers_changed()
    yield world.run().probes


def moving(rules: Rules) -> Iterator[set[str]]:
    """Another controller has been elected, and has written."""
    store = Store(1, (1, 2, 3), registered={1: 11, 2: 12, 3: 13})
    world = World(store, rules=rules.as_dict()).elected()
    yield set(world.probes)
    store.newest = 2
    state = store.state
    store.state = LeaderAndIsr(
        state.name, state.leader, state.leader_epoch, state.isr, state.partition_epoch, state.replicas, 2, state.joined
    )
    del store.registered[1]
    world.controller.brokers_changed()
    yield world.run().probes


def starting_with_a_dead_replica(rules: Rules) -> Iterator[set[str]]:
    yield World(Store(1, (1, 2), registered={1: 11, 2: 12, 3: 13}), rules=rules.as_dict()).elected().probes
    yield World(Store(1, (1, 2), registered={1: 11, 2: 12}), rules=rules.as_dict()).elected().probes


def losing_the_last_member(rules: Rules) -> Iterator[set[str]]:
    world = World(Store(2, (2,), registered={1: 11, 2: 12}), rules=rules.as_dict(), unclean=True).elected()
    yield set(world.probes)
    world.store.registered.clear()
    world.controller.brokers_changed()
    yield world.run().probes


SCENES: list[tuple[str, Rules, Scene]] = [
    ("isr_join", HW, joining),
    ("isr_eligibility", HW, joining_dead),
    ("isr_update", HW, proposing),
    ("fetch_fencing", HW.override({"session_epoch": "every-fetch"}), fetching_with_another_epoch),
    ("hw_needs_epoch", HW, fetching_with_another_epoch),
    ("list_offsets_guard", HW, asking_a_new_leader),
    ("hw_needs_min_isr", HW, committing_with_a_small_isr),
    ("equal_partition_epoch", HW.override({"isr_update": "alter-partition"}), replaying_an_answered_change),
    ("truncate_at_leo", EPOCHS, truncating_to_the_end),
    ("append_check", HW, appending_an_overlap),
    ("append_error", HW, failing_to_append),
    ("fenced_fetcher", FENCED, being_fenced),
    ("out_of_range", HW, ending_earlier),
    ("epoch_request_error", EPOCHS, asking_in_vain),
    ("broker_epoch", HW, bouncing),
    ("registration_epoch", HW, coming_back),
    ("controller_writes", HW, moving),
    ("controller_startup", HW, starting_with_a_dead_replica),
    ("last_isr_member", HW, losing_the_last_member),
]
NOT_SEEN = {("fetch_fencing", "last-epoch")}
"""That one compares other epochs."""


@pytest.mark.parametrize(
    ("rule", "value", "rules", "scene"),
    [
        (rule, value, rules, scene)
        for rule, rules, scene in SCENES
        for value in RULES[rule].values
        if (rule, value) not in NOT_SEEN
    ],
)
def test_a_branch_is_reached_where_it_decides(rule: str, value: str, rules: Rules, scene: Scene) -> None:
    before, after = (set(probes) for probes in scene(rules.override({rule: value})))
    assert not any(name.startswith(f"{rule}=") for name in before)
    assert {name for name in after if name.startswith(f"{rule}=")} == {f"{rule}={value}"}


def test_transitions_of_a_follower() -> None:
    follower = Follower({1: 4}, EPOCHS, hw=2).follow()
    follower.ends(-1)
    assert "falls-back" in follower.host.probes
    follower.brings(error=OFFSET_OUT_OF_RANGE)
    assert "fetch-out-of-range" in follower.host.probes
    late = Follower({1: 4}, EPOCHS, hw=2).follow()
    late.fetcher.partitions["t-0"].leader_epoch = 6
    late.ends(4, 1)
    assert {"late-reply", "late_reply=offset"} <= late.host.probes


def test_transitions_of_a_leader() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(), 0)
    one.become_follower(decision(2, 2))
    assert "leader-resigns" in host.probes
    assert "waiting-writes-refused" not in host.probes
    one.become_leader(decision(1, 3), 0)
    one.produce(produce(0), 0)
    one.become_follower(decision(2, 4))
    assert "waiting-writes-refused" in host.probes


def used_in_sim() -> set[str]:
    """Names that the product reads: of variables, and of attributes."""
    found = set[str]()
    for file in SIM.rglob("*.py"):
        if file.name != "probes.py":
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute | ast.Name):
                    found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


def test_something_reaches_each_transition() -> None:
    used = used_in_sim()
    tables = [value for name, value in vars(probes).items() if name in used and name.isupper()]
    reached = {one for one in tables if isinstance(one, int)}
    for table in tables:
        reached |= set(table.values() if isinstance(table, dict) else table if isinstance(table, tuple) else ())
    assert [PROBES[number].name for number in range(TRANSITIONS) if number not in reached] == []


def test_transitions_come_first() -> None:
    assert PROBES[0].name == "leader-begins"
    assert "=" not in PROBES[TRANSITIONS - 1].name
    assert "=" in PROBES[TRANSITIONS].name


@pytest.mark.world
@pytest.mark.parametrize("mode", ["hw", "kip320", "kraft", "elr", "elr-4.3", "elr-recovery", "kraft-repaired"])
def test_no_run_reaches_what_its_rules_exclude(mode: str) -> None:
    """Otherwise `where` of a probe is too narrow."""
    reached = 0
    for name in ("chaos", "operations", "disks", "directories", "reassignments"):
        scenario = load(name)
        if mode in scenario.expect or name == "chaos":
            for seed in range(12):
                reached |= int(run_row(scenario, MODES[mode], seed)["coverage"] or "0", 16)
    bits = f"{reached:0{coverage_column.width()}b}"
    names = {probe.name for probe, bit in zip(PROBES, bits, strict=False) if bit == "1"}
    assert "leader-begins" in names
    excluded = {probe.name for probe in PROBES if unmet(probe.where, [MODES[mode].rules])}
    assert excluded
    assert not names & excluded
