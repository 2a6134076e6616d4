"""KAFKA-19975: its sentence, and what the sentence does not prevent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.plugin import loaded
from scenarios.format.catalogue import load, mode
from scenarios.single.run import run_row
from sim import exit_codes
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call

PLUGIN = str(ROOT / "notebooks" / "proposals" / "kafka_19975.py")
CLAIM = "completion-shrinks-isr"


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    with loaded(PLUGIN):
        yield


@pytest.mark.parametrize("name", ["elr", "kafka-19975", "elr-4.3", "elr-repaired"])
def test_the_moved_back_replica_loses_as_expected(name: str) -> None:
    row = run_row(load("kafka-19975-moved-back"), mode(name), 0)
    assert row["error"] == ""
    lost = "committed-loss" in row["violations_inside"]
    assert lost == (name in ("kafka-19975", "elr-4.3"))
    assert CLAIM not in row["warnings"]  # The ISR keeps its size, and the record is lost all the same.


def test_the_sentence_does_not_hold_either() -> None:
    shrinks = load("reassignment-shrinks-isr")
    assert CLAIM in run_row(shrinks, mode("kafka-19975"), 0)["warnings"]
    assert CLAIM not in run_row(shrinks, mode("elr"), 0)["warnings"]


def test_the_mode_has_the_rule_of_the_release() -> None:
    assert mode("kafka-19975").rules.reassignment_completes == mode("elr-4.3").rules.reassignment_completes


def test_all_modes_end_as_the_scenario_expects(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "kafka-19975-moved-back", "--plugin", PLUGIN)
    assert call.code == exit_codes.EXPECTED
    assert "\n4 runs, all as expected; 2 show a known failure" in call.out
