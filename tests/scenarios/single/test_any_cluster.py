"""Every drawn scenario runs in every mode, in clusters of 1 to 7 brokers, with every replication factor up to that."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from scenarios.format.catalogue import load, names
from scenarios.format.schema import read
from sim.protocol.modes import MODES
from tests.named import run, run_row
from tests.places import ROOT

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

DRAWN = [name for name in names() if load(name).drawn]
FILES = ROOT / "scenarios" / "files"
FACTOR = "default.replication.factor"
SHAPES = [(brokers, factor) for brokers in range(1, 8) for factor in range(1, brokers + 1)]
ODD = ((1, 1), (7, 1))
HORIZON_US = 10_000_000


def shaped(name: str, brokers: int, factor: int) -> Scenario:
    found = load(name).with_settings({FACTOR: factor, "sim.spare.brokers": brokers})
    assert found.faults is not None
    return replace(found, brokers=brokers, faults=replace(found.faults, horizon_us=HORIZON_US))


@pytest.mark.world
@pytest.mark.parametrize("name", DRAWN)
def test_every_shape_runs(name: str) -> None:
    """All shapes, with modes taking turns, and some shapes in a third of the modes; three scenarios have all."""
    modes = list(MODES)
    third = modes[DRAWN.index(name) % 3 :: 3]
    turns = [(shape, modes[number % len(modes)]) for number, shape in enumerate(SHAPES)]
    for (brokers, factor), mode in (*turns, *product(ODD, third)):
        row = run_row(shaped(name, brokers, factor), mode, brokers)
        assert not row["error"], (brokers, factor, mode)
        assert row["verdict"] in ("ok", "violation", "stalled")


@pytest.mark.world
@pytest.mark.parametrize("name", DRAWN)
def test_one_broker_is_struck_and_serves(name: str) -> None:
    struck = acked = 0
    for seed in range(6):
        row = run_row(shaped(name, 1, 1), "kip320" if "kip320" in load(name).expect else "kraft", seed)
        struck += row["faults"]
        acked += row["batches_acked"]
    assert struck >= 6
    assert acked >= 6


@pytest.mark.parametrize("brokers", range(1, 8))
def test_a_file_says_how_many_brokers_there_are(brokers: int) -> None:
    text = (FILES / "power.toml").read_text()
    one = text.replace("brokers.count = 3", f"brokers = {brokers}").replace(
        f"{FACTOR} = [2, 3, 3]", f"{FACTOR} = [1, {brokers}]"
    )
    scenario = read(one, "x.toml")
    assert scenario.brokers == brokers
    for seed in range(3):
        result = run(scenario, "kip320", seed)
        assert not result.row["error"]
        factor, spare = result.settings[FACTOR], result.settings["sim.spare.brokers"]
        assert isinstance(factor, int)
        assert isinstance(spare, int)
        assert [replica.broker for replica in result.replicas] == list(range(1, min(brokers, factor + spare) + 1))


@pytest.mark.world
@pytest.mark.parametrize("name", DRAWN)
def test_one_replica_of_several_brokers(name: str) -> None:
    for seed, mode in product(range(4), ("kip320-repaired", "elr")):
        assert not run_row(load(name).with_settings({FACTOR: 1}), mode, seed)["error"]
