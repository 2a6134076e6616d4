from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from highwater.lab.zoo.targets import names
from highwater.lab.zoo.walks import all_walks
from sim.protocol.mutants import MUTANTS
from tests.plain import needs_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_mutants_and_bugs_are_listed(highwater: Callable[..., Call]) -> None:
    listed = highwater("zoo", "list", "--json").json["targets"]
    assert [entry["name"] for entry in listed] == names()
    assert {entry["budget"] for entry in listed} == {10_000, 1_000_000}
    out = highwater("zoo", "list").out
    assert all(name in out for name in names())


def test_a_mutant_is_shown(highwater: Callable[..., Call]) -> None:
    out = highwater("zoo", "show", "join-below-epoch-start").out
    for words in (
        "KAFKA-7128",
        "Partition#isFollowerInSync",
        "1,000,000 seeds of chaos in elr-repaired, or walks in elr-repaired",
        "Mark: 0.4 CPU s; TLC's random simulation needs 3.9",
        "Hunt: highwater zoo hunt join-below-epoch-start\n",
        "Walk: highwater explore --mode elr-repaired --rule mutant=join-below-epoch-start --losses 0 --strict",
    ):
        assert words in out
    assert highwater("zoo", "show", "join-below-hw", "--json").json["place"] == "Partition#isFollowerInSync"


def test_a_bug_is_shown_with_its_repair(highwater: Callable[..., Call]) -> None:
    out = highwater("zoo", "show", "fetch-of-former-epoch").out
    for words in (
        "A fetch of a former epoch is served.",
        "Source: KAFKA-6880, KIP-320",
        "Repair: fetch_fencing=leader-epoch",
        "Not by: fetcher_restart=epoch-missed",
        "Violations: committed-loss, exposed-loss, divergence\n",
    ):
        assert words in out
    assert "Place" not in out


def test_an_unknown_mutant_is_refused(highwater: Callable[..., Call]) -> None:
    call = highwater("zoo", "show", "join-below-hv")
    assert (call.code, call.out) == (2, "")
    assert "unknown mutant or bug 'join-below-hv'; did you mean 'join-below-hw'" in call.err


def test_a_run_takes_a_mutant(highwater: Callable[..., Call]) -> None:
    words = ("run", "elr-chaos", "--mode", "elr-repaired", "--seed", "1")
    out, mutated = (highwater(*words, *more).out for more in ((), ("--rule", "mutant=join-without-fetch")))
    assert "elr-chaos, mode elr-repaired, seed 1" in out
    assert out != mutated


def test_a_hunt_stops_at_the_seed_that_finds_the_mutant(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "join-below-hw", "--method", "runs", "--seeds", "30000130..30000150")
    call = highwater(*words)
    assert call.code == 0
    assert "highwater run elr-chaos --mode elr-repaired --seed 30000134 --rule mutant=join-below-hw" in call.out
    (found,) = highwater(*words, "--ranges", "2", "--json").json["targets"]
    first, second = found["ranges"]
    assert (first["seed"], first["tried"]) == (30000134, 5)
    assert (second["first"], second["seed"], second["tried"]) == (30000140, -1, 10)
    assert (found["found"], found["median_seeds"], found["within_budget"]) == (1, None, None)


@pytest.mark.world
def test_a_hunt_walks_where_walks_find_sooner(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "hw-truncation", "--seeds", "100..200", "--ranges", "2")
    call = highwater(*words)
    assert call.code == 0
    assert "walks, kip320-repaired" in call.out
    line = next(line for line in call.out.splitlines() if "highwater explore" in line)
    assert line.endswith(" --brokers 3 --epochs 3 --records 2 --strict --walks 3 --seed 100")
    assert highwater(*line.split()[1:]).code == 1
    one, two = highwater(*words, "--json").json["targets"][0]["ranges"]
    assert (one["walked"], one["scenario"], one["mode"], one["tried"]) == (True, "walks", "kip320-repaired", 3)
    assert two["first"] == 150
    (runs,) = highwater(*words, "--method", "runs", "--seconds", "1s", "--json").json["targets"]
    assert (runs["walked"], runs["ranges"][0]["scenario"]) == (False, "power")


@needs_sources
def test_walks_hunt_only_what_they_are_known_to_find(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "--method", "walks", "--seeds", "100..101")
    call = highwater(*words, "--all", "--seconds", "1s", "--json")
    assert f"walks are not known to find {len(names()) - len(all_walks())} of {len(names())}" in call.err
    assert {one["target"] for one in call.json["targets"]} == set(all_walks())
    assert call.json["interrupted"] is False
    for more, problem in (
        (("hw-truncation", "missed-epoch"), "walks are not known to find missed-epoch"),
        (("hw-truncation", "--blows", "2"), "--scenario, --repair and blows are for runs"),
        (("hw-truncation", "--scenario", "chaos"), "--scenario, --repair and blows are for runs"),
    ):
        refused = highwater(*words, *more)
        assert refused.code == 2
        assert problem in refused.err


def test_a_hunt_with_processes_finds_the_same(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "join-below-hw", "--method", "runs", "--seeds", "30000130..30000140", "--json")
    one, two = (highwater(*words, *more).json["targets"][0]["ranges"] for more in ((), ("--local", "2")))
    assert [{**part, "seconds": 0} for part in one] == [{**part, "seconds": 0} for part in two]


def test_a_hunt_takes_another_scenario(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "join-below-hw", "--seeds", "0..3", "--scenario", "power", "--json")
    (part,) = highwater(*words).json["targets"][0]["ranges"]
    assert (part["scenario"], part["tried"]) == ("power", 3)


def test_a_hunt_that_ran_too_few_seeds_is_inconclusive(highwater: Callable[..., Call]) -> None:
    call = highwater("zoo", "hunt", "join-below-hw", "--method", "runs", "--seeds", "30000133..30000134")
    assert call.code == 3
    assert "0 of 1" in call.out


def test_a_hunt_names_what_it_lacks(highwater: Callable[..., Call]) -> None:
    for words, problem in (
        ((), "give mutants or bugs to hunt, or --all"),
        (("join-below-hw", "--all"), "give mutants or bugs to hunt, or --all"),
        (("join-below-hv",), "unknown mutant or bug 'join-below-hv'; did you mean 'join-below-hw'"),
        (("join-below-hw", "--seeds", "0..2", "--ranges", "3"), "too few seeds for --ranges 3"),
        (("join-below-hw", "--seconds", "soon"), "--budget 'soon' is not valid"),
        (("join-below-hw", "--scenario", "canary"), "--scenario canary: a scripted scenario"),
        (("join-below-hw", "--scenario", "caos"), "did you mean 'chaos'"),
    ):
        call = highwater("zoo", "hunt", *words)
        assert (call.code, call.out) == (2, "")
        assert problem in call.err


@pytest.mark.world
def test_runs_in_which_mutants_would_differ_are_counted(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "count", "elr-chaos", "--seeds", "0..2")
    kraft, zookeeper = highwater(*words, "--json").json["counts"]
    assert (kraft["mode"], zookeeper["mode"]) == ("elr-repaired", "kip320-repaired")
    assert set(kraft["mutants"]) | set(zookeeper["mutants"]) == set(MUTANTS)
    assert kraft["mutants"]["join-below-hw"]["took"] == 2
    assert all(count["differed"] <= count["took"] <= 2 for count in kraft["mutants"].values())
    assert all(name in highwater(*words).out for name in MUTANTS)


def test_mutants_are_not_counted_in_scripted_scenarios(highwater: Callable[..., Call]) -> None:
    call = highwater("zoo", "count", "kafka-2334")
    assert (call.code, call.err) == (2, "highwater: kafka-2334: a scripted scenario is the same at every seed\n")


def test_a_hunt_strikes_where_the_mutant_decides_otherwise(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ("zoo", "hunt", "join-below-epoch-start", "--scenario", "windows", "--seeds", "30000106..30000110")
    assert highwater(*words).code == 3
    call = highwater(*words, "--blows-at-difference", "8")
    assert call.code == 0
    line = next(line for line in call.out.splitlines() if "highwater replay windows" in line)
    assert "--blow difference:" in line
    again = highwater(*line.split()[1:], "--output", tmp_path)
    assert again.code == 1
    assert re.search("committed-loss +inside", again.out)


def test_a_hunt_takes_a_repair_in_place_of_a_mutant(highwater: Callable[..., Call]) -> None:
    words = ("zoo", "hunt", "--mode", "kip279", "--repair", "isr_join=leader-epoch-start", "--scenario", "chaos")
    call = highwater(*words, "--seeds", "0..3", "--blows-at-difference", "2", "--json")
    assert call.code == 3
    (part,) = call.json["targets"][0]["ranges"]
    assert (part["target"], part["scenario"], part["tried"], part["took"]) == (
        "isr_join=leader-epoch-start",
        "chaos",
        3,
        3,
    )
    for more in ((), ("--scenario", "chaos"), ("join-below-hw", "--mode", "kip279", "--scenario", "chaos")):
        refused = highwater("zoo", "hunt", "--repair", "isr_join=leader-epoch-start", *more)
        assert refused.code == 2
        assert "--repair takes one rule, with --mode and --scenario, and no mutants or bugs" in refused.err
    assert "go with --repair" in highwater("zoo", "hunt", "join-below-hw", "--mode", "kip279").err


@pytest.mark.world
def test_hunts_and_counts_resume_and_have_the_same_figures_in_any_number_of_processes(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    words = ("zoo", "hunt", "join-below-hw", "--method", "runs", "--seeds", "30000130..30000150", "--ranges", 2)
    kept = ("--output", tmp_path, "--json")
    first, again = highwater(*words, *kept, "--local", 2).json, highwater(*words, *kept).json
    assert again == first  # Times, too: nothing ran again.
    refused = highwater(*words, "--output", tmp_path, "--blows", 1)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "name another folder" in refused.err
    counts = ("zoo", "count", "elr-chaos", "--seeds", "0..3", "--json")
    assert highwater(*counts).json == highwater(*counts, "--local", 2, "--output", tmp_path).json
