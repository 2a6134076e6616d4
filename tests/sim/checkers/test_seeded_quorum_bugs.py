"""A replicated quorum: a violation is found within a few seeds when its bug is put in, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from sim.hosts.raft_member import RaftMember
from sim.protocol.raft.epoch_states import UnattachedState
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = range(20)


@pytest.fixture(scope="module")
def without_a_defect() -> set[str]:
    """Kinds of violations inside the promise in all seeds."""
    return set().union(*map(inside, SEEDS))


def inside(seed: int) -> set[str]:
    row = run_row(replace(load("quorum"), strict=True), "kraft", seed)
    assert not row["error"]
    return set(row["violations_inside"].split(","))


def never_flushes(_: RaftMember) -> None:
    """Voters count what is in their page caches."""


def votes_twice(state: UnattachedState, _: int, *, up_to_date: bool, pre_vote: bool) -> bool:
    """A voter gives its vote to every candidate of an epoch."""
    return up_to_date and not pre_vote


@pytest.mark.world
@pytest.mark.parametrize(
    ("kind", "owner", "name", "broken"),
    [
        ("metadata-loss", RaftMember, "flush", never_flushes),
        ("metadata-unflushed", RaftMember, "flush", never_flushes),
        ("quorum-leaders", UnattachedState, "can_grant_vote", votes_twice),
    ],
)
def test_a_defect_is_found(
    monkeypatch: pytest.MonkeyPatch,
    without_a_defect: set[str],
    kind: str,
    owner: Any,
    name: str,
    broken: Callable[..., Any],
) -> None:
    assert kind not in without_a_defect
    monkeypatch.setattr(owner, name, broken)
    assert any(kind in inside(seed) for seed in SEEDS)


def test_a_stall_by_pre_votes_is_found_and_there_is_none_without_them() -> None:
    scenario = load("quorum-empty-leader")
    assert "quorum-stalled" in run_row(scenario, "elr-4.3", 0)["violations_inside"].split(",")
    assert "quorum-stalled" not in run_row(scenario, "elr-4.3", 0, {"pre_vote": "none"})["violations"].split(",")
