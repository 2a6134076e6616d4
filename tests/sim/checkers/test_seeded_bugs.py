"""Each kind is found within a few seeds when its bug is put in; without it the same seeds keep the promise."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from scenarios.single.run import run
from sim import checkers
from sim.checkers.registry import FINDINGS
from sim.environment.storage import Storage
from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.replica_manager import ReplicaManager
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochFileCache
from sim.protocol.messages import NONE, LeaderAndIsr
from sim.protocol.modes import mode
from sim.protocol.replica.followers import FollowerState
from sim.protocol.replica.partition import Partition
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.kafka_controller import KafkaController
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.format.scenario import Scenario
    from sim.hosts.hosted_replica import HostedReplica
    from sim.protocol.batch import Batch
    from sim.protocol.decisions import Decisions
    from sim.protocol.log.log import Log

SEEDS = range(250)
REPAIRED = {"truncate_at_leo": "drops-epochs", "late_reply": "leader-epoch"}
"""What later releases repaired, on top of kip320-repaired."""


def commits_at_once(partition: Partition, now_us: int) -> None:
    partition.set_hw(partition.log.leo)
    partition._complete_writes()


def answers_at_once(partition: Partition, *_: Any) -> None:
    partition.delayed.complete(partition.log.leo, enough=True)


def calls_every_epoch_unended(partition: Partition, *_: Any, **__: Any) -> tuple[str, int, int]:
    return NONE, -1, partition.log.leo


def forgets_the_end(partition: Partition, timestamp: int, epoch: int, *, replica: bool) -> tuple[str, int]:
    return NONE, partition.log.leo if replica else partition.hw // 2


def takes_the_hw_from_the_leo(
    storage: Storage, decide: Decisions, *, clean: bool
) -> tuple[Log, LeaderEpochFileCache, int]:
    log, epochs, _ = original_recover(storage, decide, clean=clean)
    return log, epochs, log.leo


def loses_what_was_flushed(storage: Storage, now_us: int) -> list[Batch]:
    storage._synced = 0
    return original_power_lost(storage, now_us)


def keeps_all_epochs(*_: object) -> None:
    pass


def lets_nobody_join(partition: Partition, *_: Any, **__: Any) -> None:
    pass


def waits_for_nobody(partition: Partition, decision: LeaderAndIsr, now_us: int) -> None:
    original_lead(partition, decision, now_us)
    partition.state.isr = partition.state.pending = (partition.broker,)  # And it proposes no other one.
    for state in partition.followers.states.values():
        state.in_isr = state.in_maximal_isr = False


def leads_as_well(replicas: ReplicaManager, replica: HostedReplica, decision: LeaderAndIsr) -> None:
    replicas.become_leader(replica, decision)


def elects_nobody(*_: object, **__: object) -> None:
    pass


def never(*_: object) -> Iterator[Any]:
    """A handler of the controller without a step."""
    return iter(())


original_lead = Partition.become_leader
original_recover = Storage.recover
original_power_lost = Storage.power_lost


def inside(scenario: Scenario, seed: int, rules: dict[str, str] | None = None) -> set[str]:
    """Kinds that are found inside the promise, early warnings among them."""
    row = run_row(replace(scenario, strict=True), "kip320-repaired", seed, {**REPAIRED, **(rules or {})})
    assert not row["error"]
    return set(row["violations_inside"].split(",")) - {""}


@cache
def with_broken_rule(rule: str, value: str, seed: int) -> set[str]:
    """`inside` of `power` with one rule's value: several kinds are looked for in the same seeds."""
    return inside(load("power"), seed, {rule: value})


@pytest.mark.parametrize(
    ("kind", "owner", "name", "broken"),
    [
        ("committed-loss", Partition, "advance_hw", commits_at_once),
        ("exposed-loss", Partition, "advance_hw", commits_at_once),
        ("divergence", Partition, "end_offset_for", calls_every_epoch_unended),
        ("hw-regression", Partition, "list_offset", forgets_the_end),
        ("stuck-replica", Partition, "_maybe_expand", lets_nobody_join),
        ("no-progress", election, "offline", elects_nobody),
        ("leader-incomplete", Partition, "advance_hw", commits_at_once),
        ("candidate-incomplete", Partition, "advance_hw", commits_at_once),
        ("quorum-not-superset", Partition, "become_leader", waits_for_nobody),
        ("log-mismatch", Partition, "end_offset_for", calls_every_epoch_unended),
        ("two-leaders-one-epoch", ReplicaManager, "become_follower", leads_as_well),
        ("inconsistent-read", Partition, "advance_hw", commits_at_once),
        ("global-loss", Partition, "advance_hw", commits_at_once),
        ("ack-above-hw", Partition, "advance_hw", answers_at_once),
        ("hw-above-isr", Partition, "advance_hw", commits_at_once),
        ("hw-above-isr", Storage, "recover", takes_the_hw_from_the_leo),
        ("hw-without-isr-member", Partition, "become_leader", waits_for_nobody),
        ("flushed-loss", Storage, "power_lost", loses_what_was_flushed),
        ("epoch-cache-mismatch", LeaderEpochFileCache, "truncate_from_end", keeps_all_epochs),
    ],
)
def test_a_defect_is_found(
    power: Scenario,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    owner: Any,
    name: str,
    broken: Callable[..., Any],
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert any(kind in inside(power, seed) for seed in SEEDS)


@pytest.mark.parametrize(
    ("kind", "rule", "broken"),
    [
        ("committed-loss", "follower_truncation", "high-watermark"),
        ("exposed-loss", "follower_truncation", "high-watermark"),
        ("divergence", "follower_truncation", "high-watermark"),
        ("hw-regression", "list_offsets_guard", "no"),
        ("candidate-incomplete", "follower_truncation", "high-watermark"),
        ("leader-incomplete", "follower_truncation", "high-watermark"),
        ("log-mismatch", "follower_truncation", "high-watermark"),
        ("inconsistent-read", "follower_truncation", "high-watermark"),
        ("global-loss", "follower_truncation", "high-watermark"),
        ("hw-above-isr", "follower_truncation", "high-watermark"),
    ],
)
def test_a_rule_with_its_broken_value_is_found(kind: str, rule: str, broken: str) -> None:
    assert any(kind in with_broken_rule(rule, broken, seed) for seed in SEEDS)


@pytest.mark.parametrize(
    ("wait", "owner", "name"),
    [
        ("elect", election, "offline"),
        ("lead", ReplicaManager, "become_leader"),
        ("rejoin", Partition, "_maybe_expand"),
        ("acknowledge", Partition, "advance_hw"),
        ("request", KafkaController, "_finish_reassignments"),
    ],
)
def test_what_never_happens_is_a_needless_wait(
    monkeypatch: pytest.MonkeyPatch, wait: str, owner: Any, name: str
) -> None:
    monkeypatch.setattr(owner, name, never if wait == "request" else lets_nobody_join)
    scenario = load("reassignments" if wait == "request" else "power").with_settings({"sim.judge.waits": True})
    results = (run(scenario, mode("kip320-repaired"), seed) for seed in range(20))
    found = (violation for result in results for violation in result.violations)
    assert any(one["kind"] == "needless-wait" and one["detail"].startswith(f"{wait}:") for one in found)


def test_a_member_that_lags_and_stays_in_the_isr_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IsrExpiration, "check", lets_nobody_join)
    scenario = load("disks").with_settings({"sim.judge.waits": True})
    found = run(scenario, mode("kip320-repaired"), 1).violations
    assert any(one["kind"] == "needless-wait" and "leave: " in one["detail"] for one in found)


def test_a_leader_that_forgets_when_followers_had_caught_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(state: FollowerState, offset: int, leader_leo: int, broker_epoch: int, now_us: int) -> None:
        known_us = state.caught_up_us
        original(state, offset, leader_leo, broker_epoch, now_us)
        state.caught_up_us = known_us

    def kinds() -> list[str]:
        return [violation["kind"] for violation in run(scenario, mode("elr-repaired"), 2).violations]

    original = FollowerState.fetched
    scenario = load("groups").with_settings({"sim.judge.waits": True})
    assert kinds() == []
    monkeypatch.setattr(FollowerState, "fetched", forgets)
    assert "needless-shrink" in kinds()


def test_a_log_that_is_not_flushed_by_the_number_of_its_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load("chaos").with_settings({"log.flush.interval.messages": 2})
    assert "unflushed" not in inside(scenario, 0)
    monkeypatch.setattr(Storage, "_flush", lets_nobody_join)
    assert "unflushed" in inside(scenario, 0)


def test_every_kind_has_a_defect_that_shows_it_and_is_on_the_page() -> None:
    """The other files are about clients, KRaft and settings."""
    files = sorted(Path(__file__).parent.glob("test_seeded_*.py"))
    named = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    page = (Path(checkers.__file__).parent / "README.md").read_text(encoding="utf-8")
    assert {*FINDINGS} - named == set()
    assert {kind for kind in FINDINGS if f"`{kind}`" not in page} == set()


@pytest.mark.world
def test_seeds_are_clean_without_the_defects(power: Scenario) -> None:
    assert not any(inside(power, seed) for seed in SEEDS)
