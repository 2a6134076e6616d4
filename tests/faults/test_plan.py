from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from faults.bounds import FaultBounds, Limits
from faults.kinds.registry import KINDS
from faults.plan import (
    ALL_DIRECTORIES,
    CONTROLLER,
    ISR_MEMBER,
    ITS_DIRECTORY,
    LAST_MEMBER,
    LEADER,
    OUTSIDER,
    STEP_BROKER,
    Fault,
    Plan,
    Trigger,
    plan_from_json,
)
from sim.kernel.streams import Streams

DRAW = FaultBounds(
    horizon_us=9_000,
    count=(1, 1),
    kinds=(),
    restart_us=(100, 200),
    cut_us=(30, 60),
    pause_us=(300, 400),
    slow_us=(10, 20),
    loss_permille=(50, 70),
)
LIMITS = Limits(DRAW, (1, 2, 3), (1, 2, 3, 4), (5_000, 9_000))
FIRST = ("kill", "power-loss", "controlled-restart", "cut")
"""What version 1 of plans had."""
SECOND = tuple(KINDS)[:18]
"""What version 2 had."""
LASTS = {
    **dict.fromkeys(("kill", "power-loss", "controlled-restart", "disk-replaced", "corrupt-tail"), DRAW.restart_us),
    **dict.fromkeys(("cut", "slow", "lossy", "duplicate", "metadata-lag", "min-isr-change"), DRAW.cut_us),
    "remove-controller": DRAW.cut_us,
    **dict.fromkeys(("move-throttle", "directory-cordoned"), DRAW.cut_us),
    **dict.fromkeys(("feature-change", "unclean-election-change"), DRAW.cut_us),
    **dict.fromkeys(("power-domain-loss", "host-loss"), DRAW.restart_us),
    **dict.fromkeys(
        ("directory-failure", "directory-replaced", "directory-removed", "directory-added", "disk-full"),
        DRAW.restart_us,
    ),
    **dict.fromkeys(
        ("quorum-state-lost", "snapshots-lost", "file-lost", "file-old", "file-half-written"), DRAW.restart_us
    ),
    "rack-cut": DRAW.cut_us,
    "topic-deletion": DRAW.cut_us,
    **dict.fromkeys(("message-loss", "message-hold", "message-copy"), DRAW.cut_us),
    **dict.fromkeys(("pause", "disk-stall", "zombie", "controller-pause"), DRAW.pause_us),
}
"""How long faults of a kind last; the others are over at once."""
VALUES = {
    "slow": DRAW.slow_us,
    "lossy": DRAW.loss_permille,
    "duplicate": (1, 1_000),
    "retention": (1, 1_000),
    "record-deletion": (1, 1_000),
    "corrupt-tail": (1, 3),
    "metadata-lag": DRAW.slow_us,
    "min-isr-change": (1, 3),
    "next-batches": (1, 3),
    "admin-election": (0, 3),
    **dict.fromkeys(("file-lost", "file-old", "file-half-written"), (1, 7)),
    "message-loss": (1, 17),
    "message-hold": (1, 17),
    "message-copy": (1, 12),
    **dict.fromkeys(("topic-creation", "topic-deletion", "partition-creation"), (0, 65_535)),
    **dict.fromkeys(
        (
            *("directory-failure", "directory-replaced", "directory-unrepaired", "directory-move"),
            *("directory-removed", "directory-cordoned"),
        ),
        (0, 2),
    ),
}
AIMED = {
    "retention": {LEADER},
    "record-deletion": {LEADER},
    "feature-change": {0},
    "unclean-election-change": {0},
    "controller-failover": {CONTROLLER},
    "controller-pause": {CONTROLLER},
    "preferred-election": {0},
    "reassignment": {0},
    "reassignment-cancel": {0},
    "min-isr-change": {0},
    "next-batches": {0},
    "consumer-restart": {0},
    **{kind: {0} for kind in ("topic-creation", "topic-deletion", "partition-creation")},
}
LINKS = ("cut", "slow", "lossy")
NAMES = {LEADER, ISR_MEMBER, OUTSIDER, LAST_MEMBER, CONTROLLER}


def draw(kind: str, seed: int, limits: Limits = LIMITS) -> Fault:
    return KINDS[kind].draw(Streams(seed)("fault"), limits)


@pytest.mark.parametrize("kind", KINDS)
def test_faults_lie_within_their_limits(kind: str) -> None:
    faults = [draw(kind, seed) for seed in range(300)]
    low, high = LASTS.get(kind, (-1, -1))
    least, most = VALUES.get(kind, (0, 0))
    for fault in faults:
        assert fault.kind == kind
        assert 5_000 <= fault.at_us <= 9_000
        assert low <= fault.lasts_us <= high, f"LASTS says otherwise of {kind}"
        assert least <= fault.value <= most, f"VALUES says otherwise of {kind}"
        assert len(set(fault.targets)) == len(fault.targets)
    assert len({fault.value for fault in faults}) > (kind in VALUES)
    targets = {target for fault in faults for target in fault.targets}
    aimed = AIMED.get(kind, NAMES | {1, 2, 3} | ({0} if kind in LINKS else set()))
    assert targets == aimed, f"AIMED says otherwise of {kind}"


@pytest.mark.parametrize("kind", ["kill", "cut"])
def test_only_a_fault_that_waits_for_a_step_is_aimed_at_where_it_happens(kind: str) -> None:
    limits = replace(LIMITS, triggered=True)
    faults = [draw(kind, seed, limits) for seed in range(150)]
    assert {target for fault in faults for target in fault.targets} >= NAMES | {STEP_BROKER, 1, 2, 3}


def test_a_reassignment_draws_as_many_replicas_in_any_order() -> None:
    drawn = {draw("reassignment", seed).replicas for seed in range(500)}
    assert drawn == set(permutations((1, 2, 3, 4), 3))


@pytest.mark.parametrize("kind", ["kill", "power-loss", "pause", "zombie", "cut"])
def test_target_may_be_given(kind: str) -> None:
    limits = replace(LIMITS, target=LEADER, peer=0)
    faults = [draw(kind, seed, limits) for seed in range(50)]
    single = [fault for fault in faults if kind != "power-loss" or len(fault.targets) == 1]
    assert all(set(fault.targets) == ({LEADER, 0} if kind == "cut" else {LEADER}) for fault in single)


def test_cuts_join_two_nodes_in_one_direction_or_both() -> None:
    cuts = [draw("cut", seed) for seed in range(150)]
    assert {len(fault.targets) for fault in cuts} == {2}
    assert {fault.both_ways for fault in cuts} == {True, False}
    assert {fault.targets.index(0) for fault in cuts if 0 in fault.targets} == {0, 1}
    assert max(target for fault in cuts for target in fault.targets) <= max(LIMITS.brokers)  # Never a client.


def test_power_goes_for_one_two_or_all_within_50_ms() -> None:
    losses = [draw("power-loss", seed) for seed in range(150)]
    assert {len(fault.targets) for fault in losses} == {1, 2, 3}
    for fault in losses:
        assert len(fault.delays_us) == len(fault.targets)
        assert all(0 <= delay <= 50_000 for delay in fault.delays_us)


def test_a_plan_survives_json() -> None:
    trigger = Trigger("append", 2, 3, 4, 5)
    plans = [
        Plan(tuple(replace(draw(kind, seed), trigger=trigger if seed % 2 else None) for kind in KINDS))
        for seed in range(20)
    ]
    for plan in plans:
        again = plan_from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        assert again.plan_hash() == plan.plan_hash()
    assert len({plan.plan_hash() for plan in plans}) == len(plans)


def test_a_plan_of_version_1_is_read_and_has_the_hash_that_it_had() -> None:
    stored = json.loads((Path(__file__).parent / "plan-v1.json").read_text(encoding="utf-8"))
    plan = plan_from_json(stored["plan"])
    assert {fault.kind for fault in plan.faults} == set(FIRST)
    assert plan.plan_hash() == stored["plan_hash"]


def test_a_plan_of_version_2_is_read_and_has_the_hash_that_it_had() -> None:
    stored = json.loads((Path(__file__).parent / "plan-v2.json").read_text(encoding="utf-8"))
    plan = plan_from_json(stored["plan"])
    assert {fault.kind for fault in plan.faults} == set(SECOND)
    assert plan.plan_hash() == stored["plan_hash"]


def test_a_plan_of_version_4_is_read_and_has_the_hash_that_it_had() -> None:
    stored = json.loads((Path(__file__).parent / "plan-v4.json").read_text(encoding="utf-8"))
    plan = plan_from_json(stored["plan"])
    assert {fault.trigger.sequence for fault in plan.faults if fault.trigger} == {0}
    assert plan.plan_hash() == stored["plan_hash"]


def test_a_plan_of_version_5_is_read_and_has_the_hash_that_it_had() -> None:
    stored = json.loads((Path(__file__).parent / "plan-v5.json").read_text(encoding="utf-8"))
    plan = plan_from_json(stored["plan"])
    assert {fault.directory for fault in plan.faults} == {ALL_DIRECTORIES}
    assert {fault.kind for fault in plan.faults} > {"disk-stall", "corrupt-tail", "disk-replaced"}
    assert plan.plan_hash() == stored["plan_hash"]


def test_a_newer_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="schema_version 7"):
        plan_from_json({"schema_version": 7, "faults": []})


def test_a_plan_hash_notices_every_field() -> None:
    fault = Fault("cut", 1, (1, 2), 3, (4,), both_ways=True)
    others = [
        Fault("kill", 1, (1, 2), 3, (4,), both_ways=True),
        Fault("cut", 2, (1, 2), 3, (4,), both_ways=True),
        Fault("cut", 1, (2, 1), 3, (4,), both_ways=True),
        Fault("cut", 1, (1, 2), 4, (4,), both_ways=True),
        Fault("cut", 1, (1, 2), 3, (5,), both_ways=True),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=False),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, value=5),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, replicas=(5,)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, value=5, replicas=(5,)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, trigger=Trigger("hw", 1, 2, 3)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, trigger=Trigger("isr", 1, 2, 3)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, trigger=Trigger("hw", 2, 2, 3)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, trigger=Trigger("hw", 1, 3, 3)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, trigger=Trigger("hw", 1, 2, 4)),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, partition="orders-0"),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, directory=1),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=True, directory=ITS_DIRECTORY),
    ]
    assert len({Plan((one,)).plan_hash() for one in (fault, *others)}) == 18
