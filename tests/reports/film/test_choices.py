"""Choices of the next event: the same history up to it, exactly that message struck, and only what is possible."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest

from reports.drawing.observed_run import ObservedRun, observe
from reports.film import choices as choosing
from reports.film import chosen_script
from reports.film.choices import Choice, chosen, departs, offers, parse, sent_alone, to_text
from scenarios.format import selection
from scenarios.format.schema import read
from scenarios.shrinking.case import Case
from scenarios.single import run as single
from sim.errors import InputError
from sim.hosts.interceptions import MESSAGES, NAMES
from sim.protocol.modes import mode as mode_named
from tests.reports.film.test_film import case, shown

RUNS = [("chaos", "kip320", 1), ("elr-chaos", "elr", 11), ("reassignments", "elr-4.3", 253)]
KILL = Choice("kill", 40_000_000, 1)


def played(of: Case, run: ObservedRun, *choices: Choice) -> ObservedRun:
    other = chosen(of, run.result, choices, "plan.json")
    return observe(other.scenario, other.mode, other.seed, other.rules)


@cache
def observed(scenario: str, mode: str, seed: int) -> ObservedRun:
    return shown(scenario, mode, seed).observed


@pytest.mark.parametrize("name", RUNS)
def test_the_run_without_a_choice_is_the_same(name: tuple[str, str, int]) -> None:
    run = observed(*name)
    assert played(case(*name), run).result.row["digest"] == run.result.row["digest"]


@pytest.mark.parametrize("name", RUNS)
def test_a_message_that_is_dropped_is_the_one_and_nothing_before_differs(name: tuple[str, str, int]) -> None:
    run, of = observed(*name), case(*name)
    found = [entry for entry in sent_alone(run) if entry[0].sent_us < (run.result.horizon_us or 0)]
    struck = 0
    for message, broker, number in islice(found, 5, None, len(found) // 12):
        choice = Choice("message-loss", message.sent_us - 1, broker, number, 1_000)
        other = played(of, run, choice)
        if departs(run, other, [choice]):
            assert not choosing.meets(of, run, choice)
            continue
        struck += 1
        lost = [observation.step for observation in other.observations if observation.step["step"] == "message-lost"]
        new = [step for step in lost if step["t"] == message.sent_us]
        assert [(step["source"], step["target"], step["message"]) for step in new] == [
            (message.source, message.target, message.type)
        ]
        before = [observation.step for observation in run.observations if observation.at_us < message.sent_us]
        assert [observation.step for observation in other.observations][: len(before)] == before
    assert struck >= 8


@pytest.mark.parametrize("kind", ["kill", "power-loss", "pause", "cut"])
def test_up_to_the_step_the_run_stays_as_it_was(kind: str) -> None:
    name = RUNS[2]
    run, film = observed(*name), shown(*name)
    place = len(film.changes) // 3
    groups = offers(case(*name), film, place)
    choice = next(
        choice for offer in (*groups.brokers, *groups.links) for _, choice in offer.choices if choice.kind == kind
    )
    other = played(case(*name), run, choice)
    at_us = run.observations[place].at_us
    before = [observation.step for observation in run.observations if observation.at_us <= at_us]
    assert [observation.step for observation in other.observations][: len(before)] == before
    assert other.observations[len(before)].step["step"] == kind
    assert departs(run, other, [choice]) == ""


def test_each_offer_is_possible_and_only_running_brokers_are_struck() -> None:
    name = RUNS[2]
    film, of = shown(*name), case(*name)
    for place in range(40, len(film.changes), len(film.changes) // 6):
        groups = offers(of, film, place)
        for offer in (*groups.messages, *groups.brokers, *groups.links):
            for _, choice in offer.choices:
                assert parse(to_text([choice])) == (choice,)
                assert chosen(of, film.observed.result, [choice], "plan.json").fits
                assert choosing.sentence(choice).endswith(".")
        for offer in groups.messages:
            assert {choice.kind for _, choice in offer.choices} <= {"message-loss", "message-hold", "message-copy"}
            for _, choice in offer.choices:
                assert choice.kind != "message-copy" or MESSAGES[NAMES[choice.other]].is_resent
    assert offers(of, film, len(film.changes) - 1) == choosing.Offers([], [], [])


def test_choices_follow_one_another() -> None:
    name = RUNS[2]
    run, of = observed(*name), case(*name)
    first = Choice("pause", run.observations[100].at_us + 1, 1, 0, 1_000_000)
    second = Choice("kill", run.observations[140].at_us + 1, 2)
    once, twice = played(of, run, first), played(of, run, first, second)
    assert departs(run, twice, [first, second]) == ""
    assert departs(once, twice, [second]) == ""
    assert len(twice.result.plan["faults"]) == len(run.result.plan["faults"]) + 2


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("kill", "a choice is KIND"),
        ("kill.1.1.0", "a choice is KIND"),
        ("kill.1.1.0.-2", "a choice is KIND"),
        ("kill.-1.1.0.0", "a choice is KIND"),
        ("reassignment.1.1.0.0", "a choice is KIND"),
        ("kill.1.1.0.0_<script>", "a choice is KIND"),
        ("kill.\u0661.1.0.0", "a choice is KIND"),
        ("_".join(["kill.1.1.0.0"] * 9), "at most 8 choices"),
        ("kill.1.9.0.0", "strikes broker 9"),
        ("kill.1.0.0.0", "strikes broker 0"),
        ("cut.1.1.1.0", "strikes broker 1"),
        ("cut.1.1.99.0", "strikes broker 1"),
        ("kill.1.1.5.0", "has no amount"),
        ("message-loss.1.1.99.0", "strikes message 99"),
        ("message-loss.1.1.0.0", "strikes message 0"),
        ("message-copy.1.1.3.0", "strikes message 3"),
        ("kill.99999999999999.1.0.0", "everything is healed"),
    ],
)
def test_what_cannot_be_chosen_is_refused(word: str, problem: str) -> None:
    name = RUNS[2]
    with pytest.raises(InputError, match=problem):
        chosen(case(*name), observed(*name).result, parse(word), "plan.json")


SCRIPTS = [
    pytest.param("last-replica-standing", "elr-4.3", marks=pytest.mark.world),
    pytest.param("elr-cleared-power-loss", "elr", marks=pytest.mark.world),
    ("kip101-scenario-1", "kip101"),
]


@pytest.mark.parametrize(("scenario", "mode"), SCRIPTS)
def test_a_script_goes_on_as_written_up_to_each_choice(scenario: str, mode: str) -> None:
    name = scenario, mode, 0
    run, of, film = observed(*name), case(*name), shown(*name)
    kinds = set()
    for place in range(10, len(film.changes), 9):
        groups = offers(of, film, place)
        found = [choice for offer in (*groups.messages, *groups.brokers, *groups.links) for _, choice in offer.choices]
        for choice in islice(found, 0, None, 5):
            kinds.add(choice.kind)
            assert departs(run, played(of, run, choice), [choice]) == ""
    assert {"kill", "cut"} <= kinds


def test_a_script_after_choices_is_a_file_with_the_same_run() -> None:
    of, run = case("last-replica-standing", "elr-4.3", 0), observed("last-replica-standing", "elr-4.3", 0)
    choices = [Choice("pause", 1_000_001, 2, 0, 1_000_000), Choice("kill", 30_000_000, 1)]
    other = chosen(of, run.result, choices, "plan.json")
    row = other.row()
    text = chosen_script.to_toml(other.scenario, row, "elr-4.3")
    again = single.run_row(read(text, "here"), of.mode, 0, {})
    assert again["digest"] == row["digest"] != run.result.row["digest"]
    assert again["expected"]


def test_a_drawn_order_of_events_has_no_choices() -> None:
    scenario = selection.scenario("chaos", {"sim.ties": "random"}, strict=False)
    assert not choosing.is_possible(Case(scenario, mode_named("hw"), 1))
    assert choosing.is_possible(case(*RUNS[0]))


def test_a_partition_that_a_choice_keeps_from_being_created_is_named() -> None:
    of, run = case("recreated-topic", "kraft", 0), observed("recreated-topic", "kraft", 0)
    early, late = Choice("cut", 215_578, 3, 0, 5_000_000), Choice("kill", run.result.window_us[1] - 1, 3)
    assert "partition audit-0@2, which is not created" in departs(run, played(of, run, early), [early])
    assert departs(run, played(of, run, late), [late]) == ""
