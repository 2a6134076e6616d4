"""Films: what a page shows at a step was so at that step, and watching changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import pytest

from reports.film.film import Film, as_json, compared, film, first_difference, of_cases
from reports.film.states import DIRECTORY_FAILED, RUNNING, StateChange
from scenarios.format import selection
from scenarios.shrinking.case import Case
from scenarios.single.run import run
from sim.errors import InputError
from sim.protocol.modes import mode as mode_named
from tests.reports.film.truth import played, problems

LOSES = ("reassignments", "elr-4.3", 253)
DRAWN = [
    *(("chaos", mode, seed) for mode in ("hw", "kip320") for seed in (1, 4)),
    *(("elr-chaos", mode, 11) for mode in ("kraft", "elr", "elr-recovery")),
    *(("reassignments", mode, 5) for mode in ("kip320", "elr-4.3")),
    ("rolling", "kip101", 5),
    ("sessions", "kip279", 2),
    ("directory-of-last-member", "kraft", 0),
    *(("disks", "elr-4.3", seed) for seed in (2, 3)),
]


def case(scenario: str, mode: str, seed: int) -> Case:
    return Case(selection.scenario(scenario, {}, strict=False), mode_named(mode), seed)


@cache
def shown(scenario: str, mode: str, seed: int) -> Film:
    return film(case(scenario, mode, seed))


@pytest.mark.parametrize(("scenario", "mode", "seed"), DRAWN)
def test_at_each_row_the_state_is_that_of_the_history(scenario: str, mode: str, seed: int) -> None:
    assert list(islice(problems(shown(scenario, mode, seed)), 3)) == []


def test_a_broker_whose_directory_failed_goes_on() -> None:
    film_of = shown("directory-of-last-member", "kraft", 0)
    states = [brokers[1]["state"] for _, brokers in played(film_of)]
    names = [observation.step["step"] for observation in film_of.observed.observations]
    failed = names.index("directory-failed")
    assert {*states[failed : names.index("shutdown")]} == {DIRECTORY_FAILED}
    assert states[failed - 1] == states[-1] == RUNNING


def test_a_state_that_was_not_so_is_found() -> None:
    whole = shown(*LOSES)
    grows = [any("log" in fields for fields in change.brokers.values()) for change in whole.changes]
    place = grows.index(True)
    without = [*whole.changes[:place], StateChange(), *whole.changes[place + 1 :]]
    assert list(islice(problems(replace(whole, changes=without)), 1)) != []


def test_filming_a_run_changes_nothing_in_it() -> None:
    scenario, mode, seed = LOSES
    row = run(selection.scenario(scenario, {}, strict=False), mode_named(mode), seed).row
    assert shown(*LOSES).observed.result.row == row


def test_a_reassignment_under_way_names_who_is_added_and_removed() -> None:
    moves = {(tuple(one["adding"]), tuple(one["removing"])) for one, _ in played(shown(*LOSES))}
    assert moves - {((), ())}
    zookeeper = {
        (tuple(one["adding"]), tuple(one["removing"])) for one, _ in played(shown("reassignments", "kip320", 5))
    }
    assert zookeeper - {((), ())}


def test_messages_of_the_page_are_in_flight_at_some_step_or_lost() -> None:
    found = as_json(shown("chaos", "kip320", 1))
    times = [frame[0] for frame in found["frames"]]
    assert found["messages"]
    for _, _, _, sent_us, arrives_us, lost, _ in found["messages"]:
        assert lost or any(sent_us <= at_us <= arrives_us for at_us in times)


def test_each_violation_leads_to_the_early_warning_before_it() -> None:
    marks = as_json(shown(*LOSES))["marks"]
    loss = next(mark for mark in marks if mark["kind"] == "committed-loss")
    warning = next(mark for mark in marks if not mark["violation"])
    assert loss["cause"] == warning["frame"] < loss["frame"]


def test_the_first_difference_is_the_first_step_that_differs() -> None:
    one, other = shown(*LOSES).observed, shown("reassignments", "elr-repaired", 253).observed
    found = first_difference(one, other)
    assert found is not None
    place = found[0]
    assert [step.step for step in one.observations[:place]] == [step.step for step in other.observations[:place]]
    assert one.observations[place].step != other.observations[place].step
    assert first_difference(one, one) is None


@pytest.mark.world
def test_a_failed_run_gets_its_point_of_no_return() -> None:
    (found,) = of_cases([case("power", "hw", 20)], None, 12, budget_s=60)
    assert found.curve is not None
    rates = [share.rate for share in found.curve.shares]
    assert (rates[0], rates[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("against", "problem"),
    [("elr-4.3", "is what is shown already"), ("elr-5", "unknown mode 'elr-5'"), ("isr_floor=9", "has no value '9'")],
)
def test_against_needs_another_mode_or_rule_value(against: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        compared(case(*LOSES), against)


def test_each_controller_of_a_quorum_has_a_lane_and_its_state() -> None:
    found = shown("quorum-voter-restarted", "elr-4.3", 0)
    page = as_json(found)
    assert page["controllers"] == [100, 101, 102]
    states: dict[int, dict[str, Any]] = {node: {} for node in page["controllers"]}
    active: set[int] = set()
    for frame in page["frames"]:
        for node, fields in frame[4].get("c", {}).items():
            states[node] |= fields
        if frame[2] == "controller-end":
            assert states[frame[1]]["state"] == "down"
        active |= {node for node, fields in states.items() if fields["active"]}
        assert all(fields["flushed"] <= fields["leo"] for fields in states.values())
    assert len(active) > 1
    assert as_json(shown(*LOSES))["controllers"] == []


def test_a_replaced_disk_of_a_controller_is_empty_from_that_step_on() -> None:
    page = as_json(shown("quorum-snapshot-lost", "elr-4.3", 0))
    logs: dict[int, dict[str, Any]] = {node: {} for node in page["controllers"]}
    replaced = 0
    for frame in page["frames"]:
        for node, fields in frame[4].get("c", {}).items():
            logs[node] |= fields
        if frame[2] == "controller-end" and "disk-replaced" in frame[3]:
            replaced += 1
            assert (logs[frame[1]]["leo"], logs[frame[1]]["flushed"]) == (0, 0)
    assert replaced > 0
