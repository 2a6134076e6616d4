from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.format import catalogue, schema
from scenarios.sweep import stored
from sim.errors import InputError

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("store-v*/run.json"))


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.parent.name)
def test_what_every_version_wrote_is_sound(file: Path) -> None:
    data = json.loads(file.read_text())
    assert stored.check_run(str(file), data) is data
    for scenario in data["scenarios"]:
        assert schema.of_store(scenario).name == scenario["name"]


@pytest.mark.parametrize("name", catalogue.names())
def test_every_bundled_scenario_comes_back_from_a_store(name: str) -> None:
    scenario = catalogue.load(name)
    assert schema.of_store(json.loads(json.dumps(scenario.to_json()))) == scenario


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"brokers": 0}, "brokers.count = 0"),
        ({"brokers": "3"}, "brokers.count = '3'"),
        ({"config": {"acks": 5}}, "acks = 5 is not valid"),
        ({"config": []}, "."),
        ({"story": 1}, "it holds a scenario that highwater did not write"),
        ({"expect": {}}, "expect"),
        ({"settle_us": 1}, "1 us are no whole ms"),
        ({"nonsense": 1}, "."),
        ({"source": ["a"]}, "source = .*: input should be a valid string"),
        ({"overrides": [1]}, "overrides = 1: input should be a valid string"),
        ({"strict": 1}, "strict = 1: input should be a valid boolean"),
        ({"schema_version": 2}, "schema_version 2"),
        ({"name": ".."}, "'..' is no scenario's name"),
    ],
)
def test_what_a_store_says_of_a_scenario_is_checked_like_a_file(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        schema.of_store({**json.loads(json.dumps(catalogue.load("canary").to_json())), **change})
