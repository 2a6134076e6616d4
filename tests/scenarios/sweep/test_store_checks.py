from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.format import catalogue, schema
from scenarios.sweep import store_checks
from sim.errors import InputError
from tests.places import FIXTURES

RUNS = sorted(FIXTURES.glob("store-v*/run.json"))


@pytest.mark.parametrize("file", RUNS, ids=lambda file: file.parent.name)
def test_run_json_of_every_version_is_sound(file: Path) -> None:
    data = json.loads(file.read_text())
    assert store_checks.check_run(str(file), data) is data
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
        ({"story": 1}, "it contains a scenario that highwater did not write"),
        ({"expect": {}}, "expect"),
        ({"settle_us": 1}, "1 us is no whole number of ms"),
        ({"nonsense": 1}, "."),
        ({"source": ["a"]}, "source = .*: input should be a valid string"),
        ({"overrides": [1]}, "overrides = 1: input should be a valid string"),
        ({"strict": 1}, "strict = 1: input should be a valid boolean"),
        ({"schema_version": 2}, "schema_version 2"),
        ({"name": ".."}, "'..' is no scenario's name"),
    ],
)
def test_scenario_in_a_store_is_checked_like_a_file(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        schema.of_store({**json.loads(json.dumps(catalogue.load("canary").to_json())), **change})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"code_version": 1}, "run.json: code_version = 1: input should be a valid string"),
        ({"scenarios": []}, "run.json: scenarios = []: list should have at least 1 item"),
        ({"scenarios": [{"name": ".."}]}, "run.json: scenarios: '..' is no scenario's name"),
        ({"scenarios": [{"name": "power"}] * 2}, "run.json: two scenarios have the same name"),
        ({"modes": {}}, "run.json: two scenarios have the same name, or one has no modes"),
        ({"modes": {"power": ["/"]}}, "run.json: modes.power: '/' is no mode"),
        ({"seeds": []}, "run.json: seeds = []: ranges of two whole numbers are needed"),
        ({"seeds": [1, "2"]}, "run.json: seeds = [1, '2']: ranges of two whole numbers are needed"),
        ({"seeds": [[1, 2], [3]]}, "ranges of two whole numbers are needed"),
        ({"seeds": [[0, 2], [4, 4]]}, "run.json: seeds = [[0, 2], [4, 4]]: a range is empty"),
        ({"rules": {"isr_join": 1}}, "run.json: rules.isr_join = 1: input should be a valid string"),
        ({"grid": {"acks": [1]}}, "run.json: grid: acks = 1: a value of another type is needed"),
        ({"grid": {"ack": ["1"]}}, "run.json: grid: unknown configuration key 'ack'; did you mean 'acks'?"),
    ],
)
def test_run_json_is_refused_by_what_is_wrong_with_it(change: dict[str, Any], said: str) -> None:
    sound = {"code_version": "x", "scenarios": [{"name": "power"}], "modes": {"power": ["hw"]}, "seeds": [[0, 2]]}
    assert store_checks.check_run("run.json", {**sound, "rules": {}})
    with pytest.raises(InputError) as caught:
        store_checks.check_run("run.json", {**sound, "rules": {}, **change})
    assert said in str(caught.value)
