"""Several producers of one partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.blow import Blow
from scenarios.format.catalogue import load
from scenarios.format.schema import read
from scenarios.shrinking.case import Case
from scenarios.shrinking.script_export import _lines
from scenarios.single import recording
from scenarios.single.draws import producer_of
from sim.errors import InputError
from sim.protocol.log import producer_state_manager
from sim.protocol.modes import mode as mode_named
from tests.named import run, run_row
from tests.plain import needs_sources
from tests.verification.judge import disagreement, run_judged

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from sim.protocol.batch import Batch
    from sim.protocol.log.log import Log

SCENARIO = load("producers")
IDS = {1, 2, 3}
WARNS = 43
"""A seed with an early warning in kip320."""


def appended(scenario: Scenario, mode: str, seed: int = 0) -> Counter[int]:
    """Producer id -> batches that leaders appended, each counted on each broker."""
    trace = run(scenario, mode, seed, trace=True).trace or []
    return Counter(step["producer_id"] for step in trace if step["step"] == "append")


@pytest.mark.parametrize("mode", ["kip320", "elr-4.3"])
def test_each_producer_has_an_id_and_sends(mode: str) -> None:
    found = appended(SCENARIO, mode)
    assert set(found) >= IDS
    assert min(found[producer] for producer in IDS) > 10


def test_the_default_is_one_producer() -> None:
    assert set(appended(SCENARIO.with_settings({"sim.producers": 1}), "kip320")) == {1}


def test_the_first_record_decides_who_sends() -> None:
    assert {producer_of(first, 1) for first in range(100)} == {1}
    numbers = Counter(producer_of(first, 3) for first in range(3_000))
    assert set(numbers) == IDS
    assert all(900 < count < 1_100 for count in numbers.values())


def test_a_recording_has_the_same_senders(tmp_path: Path) -> None:
    result = run(SCENARIO, "kip320", 1)
    file = tmp_path / "plan.json"
    file.write_text(recording.to_text(recording.to_json(SCENARIO, result)))
    found = recording.read(file)
    assert run_row(found.scenario, "kip320", 1)["digest"] == result.row["digest"]
    case = Case(found.scenario, mode_named("kip320"), 1).with_faults(())
    assert {line["do"] for _, line in _lines(case)} == {"produce"}
    assert {line.get("producer", 1) for _, line in _lines(case)} == IDS


def test_a_blow_replaces_what_is_left_of_all_producers(tmp_path: Path) -> None:
    warning = run(SCENARIO, "kip320", WARNS).warnings[0]
    scenario = replace(SCENARIO, blows=(Blow(warning["kind"], warning["at_us"], 2),))
    result = run(scenario, "kip320", WARNS)
    assert not result.row["error"]
    file = tmp_path / "plan.json"
    file.write_text(recording.to_text(recording.to_json(scenario, result)))
    assert run_row(recording.read(file).scenario, "kip320", WARNS)["digest"] == result.row["digest"]


@pytest.mark.parametrize("mode", ["kip320", "kraft", "elr-4.3"])
def test_the_judge_agrees(mode: str) -> None:
    assert [text for seed in range(5) if (text := disagreement(*run_judged("producers", mode, seed)))] == []


@needs_sources
def test_a_leader_that_takes_all_producers_for_one_is_found_with_several_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_the_last(log: Log, producer_id: int, **forgets: Any) -> list[Batch]:
        """The state of the producer that appended last, whoever sends."""
        newest = log.batches[-1].producer_id if log.batches else producer_id
        return original(log, producer_id, **forgets) if newest == producer_id else []

    original = producer_state_manager.latest_batches
    monkeypatch.setattr(producer_state_manager, "latest_batches", only_the_last)
    found = run_row(load("two-producers"), "kip320", 0, {"unknown_producer": "taken"})
    assert found["violations_inside"] == "duplicate"
    alone = load("idempotent-retry")
    assert run_row(alone, "kip320", 0, {"unknown_producer": "taken"})["violations"] == ""


@pytest.mark.parametrize(("number", "fits"), [(0, False), (1, True), (9, True), (10, False)])
def test_a_script_names_one_of_nine(number: int, fits: bool) -> None:
    text = """
schema = 1
name = "named"
title = "A producer is named"
description = "A producer is named."
control = "real"
brokers = 1
script = [{ do = "produce", batch = "m", producer = NUMBER }, { do = "restart-producer", producer = NUMBER }]
[expect]
kraft = "clean:duplicate"
""".replace("NUMBER", str(number))
    if fits:
        assert not run_row(read(text, "named"), "kraft", 0)["error"]
    else:
        with pytest.raises(InputError, match="producer"):
            read(text, "named")
