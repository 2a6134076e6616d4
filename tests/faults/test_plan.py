from __future__ import annotations

import json

import pytest

from faults.injection import INJECTORS, draw_plan
from faults.plan import LEADER, Fault, Limits, Plan, plan_from_json
from scenarios.actions import FAULT_KINDS
from sim.streams import Streams

LIMITS = Limits((1, 2, 3), (5_000, 9_000), (100, 200), (30, 60))
KINDS = tuple(INJECTORS)
DRAWN = [draw_plan(Streams(seed), KINDS, (3, 8), LIMITS) for seed in range(150)]
FAULTS = [fault for plan in DRAWN for fault in plan.faults]


def test_every_kind_of_the_scenarios_has_an_injector() -> None:
    assert set(KINDS) == set(FAULT_KINDS)


def test_plans_are_sorted_and_of_every_allowed_length() -> None:
    assert {len(plan.faults) for plan in DRAWN} == set(range(3, 9))
    assert all(list(plan.faults) == sorted(plan.faults, key=lambda fault: fault.at_us) for plan in DRAWN)


def test_even_short_plans_mix_kinds() -> None:
    for plan in DRAWN:
        assert len({fault.kind for fault in plan.faults}) == min(len(KINDS), len(plan.faults))


@pytest.mark.parametrize("kind", KINDS)
def test_faults_lie_within_their_limits(kind: str) -> None:
    faults = [fault for fault in FAULTS if fault.kind == kind]
    low, high = LIMITS.cut_us if kind == "cut" else LIMITS.restart_us
    assert len(faults) > 100
    for fault in faults:
        assert 5_000 <= fault.at_us <= 9_000
        assert low <= fault.lasts_us <= high
        assert set(fault.targets) <= {LEADER, 0, 1, 2, 3}
        assert len(set(fault.targets)) == len(fault.targets)
        assert (0 in fault.targets) <= (kind == "cut")
    assert any(LEADER in fault.targets for fault in faults)
    assert {target for fault in faults for target in fault.targets} >= {1, 2, 3}


def test_cuts_join_two_nodes_in_one_direction_or_both() -> None:
    cuts = [fault for fault in FAULTS if fault.kind == "cut"]
    assert {len(fault.targets) for fault in cuts} == {2}
    assert {fault.both_ways for fault in cuts} == {True, False}
    assert {fault.targets.index(0) for fault in cuts if 0 in fault.targets} == {0, 1}


def test_power_goes_for_one_two_or_all_within_50_ms() -> None:
    losses = [fault for fault in FAULTS if fault.kind == "power-loss"]
    assert {len(fault.targets) for fault in losses} == {1, 2, 3}
    for fault in losses:
        assert len(fault.delays_us) == len(fault.targets)
        assert all(0 <= delay <= 50_000 for delay in fault.delays_us)


def test_a_plan_survives_json() -> None:
    for plan in DRAWN[:20]:
        again = plan_from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        assert again.plan_hash() == plan.plan_hash()
    assert len({plan.plan_hash() for plan in DRAWN}) == len(DRAWN)


def test_a_newer_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="schema_version 2"):
        plan_from_json({"schema_version": 2, "faults": []})


def test_a_plan_hash_notices_every_field() -> None:
    fault = Fault("cut", 1, (1, 2), 3, (4,), both_ways=True)
    others = [
        Fault("kill", 1, (1, 2), 3, (4,), both_ways=True),
        Fault("cut", 2, (1, 2), 3, (4,), both_ways=True),
        Fault("cut", 1, (2, 1), 3, (4,), both_ways=True),
        Fault("cut", 1, (1, 2), 4, (4,), both_ways=True),
        Fault("cut", 1, (1, 2), 3, (5,), both_ways=True),
        Fault("cut", 1, (1, 2), 3, (4,), both_ways=False),
    ]
    assert len({Plan((one,)).plan_hash() for one in (fault, *others)}) == 7


def test_a_fault_is_drawn_from_a_stream_of_its_own() -> None:
    class Disturbed(Streams):
        """The first fault draws one number more."""

        def __call__(self, name: str) -> object:  # type: ignore[override]
            stream = super().__call__(name)
            if name == "fault:0":
                stream.random()
            return stream

    differing = 0
    for seed in range(20):
        plain = draw_plan(Streams(seed), KINDS, (5, 5), LIMITS).faults
        disturbed = draw_plan(Disturbed(seed), KINDS, (5, 5), LIMITS).faults
        assert len(set(plain) & set(disturbed)) >= 4
        differing += set(plain) != set(disturbed)
    assert differing == 20
