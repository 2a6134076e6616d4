from __future__ import annotations

from scenarios.format.catalogue import load
from scenarios.shrinking.cause import NO_REPAIRS, later_values
from sim.protocol.modes import MODES
from tests.named import run_row
from tests.verification.hunt.explained import cures, inside


def test_rules_of_a_repaired_mode_are_repairs() -> None:
    releases = MODES["kip320"].rules.as_dict()
    repaired = set(MODES["kip320-repaired"].rules.as_dict().items()) - set(releases.items())
    assert repaired <= set(later_values(MODES["kip320"]))


def test_another_world_or_another_promise_explains_nothing() -> None:
    chaos = load("chaos")
    seed, kinds = next(
        (seed, kinds) for seed in range(1_150, 3_000) if (kinds := inside(run_row(chaos, "kip320", seed)))
    )
    found = cures(chaos, "kip320", seed, kinds, {}, 1)
    assert found
    assert not inside(run_row(chaos, "kip320", seed, {"control_plane": "kraft"}))
    assert all(cure.split("=")[0] not in NO_REPAIRS for cure in found)
