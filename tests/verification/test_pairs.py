"""Each pair of features is drawn by some random scenario, or there is a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faults.kinds.registry import KINDS
from scenarios.format.catalogue import load
from tests.verification.pairs import (
    CLIENT,
    EVERYTHING,
    FAULT,
    REASONS,
    REQUEST,
    REQUESTS,
    SETTING,
    TOPOLOGY,
    Feature,
    all_pairs,
    features,
    occurring,
    of_setting,
    reason,
    undrawn,
)


def test_each_pair_is_drawn_or_has_a_reason() -> None:
    left = undrawn()
    assert [f"{one}, {other}" for one, other in left if not reason((one, other))] == []
    assert {feature.name for pair in left for feature in pair} >= REASONS.keys()  # Each reason is needed.


@pytest.mark.parametrize(
    "pair",
    [
        (Feature(SETTING, "sim.log.dirs=2", "sim.log.dirs"), Feature(REQUEST, "reassignment")),
        (Feature(CLIENT, "auto.offset.reset=earliest", "auto.offset.reset"), Feature(FAULT, "disk-replaced")),
        (
            Feature(TOPOLOGY, "partitions of one topic with different replication factors"),
            Feature(REQUEST, "min-isr-change"),
        ),
        (Feature(FAULT, "message-hold"), Feature(TOPOLOGY, "several topics")),
        (Feature(FAULT, "directory-failure"), Feature(REQUEST, "reassignment")),
    ],
)
def test_only_everything_draws_what_stood_apart(pair: tuple[Feature, Feature]) -> None:
    pair = min(pair), max(pair)
    assert pair in undrawn(without=EVERYTHING)
    assert pair not in undrawn()


def test_a_pair_that_is_drawn_no_more_is_noticed() -> None:
    scenario = load(EVERYTHING)
    assert scenario.faults is not None
    kinds = tuple(kind for kind in scenario.faults.kinds if kind != "reassignment")
    assert features(scenario) - features(replace(scenario, faults=replace(scenario.faults, kinds=kinds))) == {
        Feature(REQUEST, "reassignment"),
        Feature(TOPOLOGY, "partitions of one topic with different replication factors"),
    }


def test_features_are_what_differs_from_the_default() -> None:
    assert of_setting("replica.lag.time.max.ms", 30_000) is None
    lag = "replica.lag.time.max.ms"
    assert of_setting(lag, 10_000) == Feature(SETTING, f"{lag} below its default", lag)
    assert of_setting("enable.idempotence", value=True) is None or of_setting("enable.idempotence", value=False) is None
    assert set(REQUESTS) <= KINDS.keys()
    assert not any(one.key and one.key == other.key for one, other in all_pairs())


def test_a_seed_has_what_its_scenario_can_draw() -> None:
    scenario = load(EVERYTHING)
    for seed in range(20):
        assert occurring(scenario, seed) <= features(scenario)
