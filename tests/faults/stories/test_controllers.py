from __future__ import annotations

import pytest

from faults.plan import CONTROLLER, LEADER, Fault, Plan
from faults.stories.controllers import aim_at_controllers
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Streams

CONTROLLERS = (100, 101, 102)


def aimed(kind: str, targets: tuple[int, ...], percent: int, seed: int) -> Fault:
    plan = Plan((Fault(kind, 1, targets, 5, (3,)),))
    (fault,) = aim_at_controllers(plan, Streams(seed)("controllers"), percent, CONTROLLERS).faults
    return fault


@pytest.mark.parametrize("kind", ["kill", "power-loss", "pause", "disk-replaced", "cut", "slow"])
def test_a_share_of_faults_strikes_controllers(kind: str) -> None:
    targets = (LEADER, 2) if kind in ("cut", "slow") else (LEADER,)
    assert all(aimed(kind, targets, 0, seed).targets == targets for seed in range(50))
    found = {target for seed in range(300) for target in aimed(kind, targets, 100, seed).targets}
    assert found >= {*CONTROLLERS, CONTROLLER}
    assert (CONTROL in found) is (kind == "cut")
    share = sum(aimed(kind, targets, 30, seed).targets != targets for seed in range(1_000))
    assert 230 < share < 370


def test_other_faults_stay_what_they_are() -> None:
    for kind in ("session-expiry", "controlled-restart", "disk-stall"):
        assert all(aimed(kind, (2,), 100, seed) == Fault(kind, 1, (2,), 5, (3,)) for seed in range(30))


def test_a_lost_vote_is_always_that_of_a_controller() -> None:
    found = {target for seed in range(100) for target in aimed("quorum-state-lost", (2,), 0, seed).targets}
    assert found == {*CONTROLLERS, CONTROLLER}


def test_power_losses_strike_one_controller_or_several() -> None:
    assert {len(aimed("power-loss", (2,), 100, seed).targets) for seed in range(100)} == {1, 2, 3}
