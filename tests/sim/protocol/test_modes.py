from __future__ import annotations

from dataclasses import fields, replace

import pytest

from sim.errors import InputError
from sim.protocol.modes import MODES, NO_RELEASE, Mode, Promised, changed

LADDER = (
    "hw",
    "kip101",
    "kip279",
    "kip320-2.1",
    "kip320",
    "kip320-2.6.1",
    "kraft-3.5",
    "kraft",
    "kraft-3.9.1",
    "elr",
    "elr-recovery",
    "elr-4.3",
)


def test_places_are_those_of_releases() -> None:
    places = [MODES[name].place for name in LADDER]
    assert places == sorted(set(places))


def test_an_unreleased_mode_comes_right_after_the_one_it_follows() -> None:
    assert MODES["kip320"].place < MODES["kip320-repaired"].place < MODES["kraft-3.5"].place
    assert MODES["kraft"].place < MODES["kraft-repaired"].place < MODES["kraft-3.9.1"].place
    assert MODES["kraft"].place < MODES["elr-4.0-snapshot"].place < MODES["elr"].place
    assert MODES["elr-4.3"].place < MODES["elr-repaired"].place
    assert replace(MODES["kraft"], release="3.10").place > MODES["kraft"].place


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_the_promise_of_a_mode_goes_with_its_rules(mode: Mode) -> None:
    assert mode.promise.override(mode.rules.as_dict()) == mode.promise


@pytest.mark.parametrize(
    ("name", "part", "rule", "value"),
    [
        ("kip320", "keeps_all_shown", "hw_needs_min_isr", "yes"),
        ("kip101", "never_diverges", "follower_truncation", "on-fetch"),
        ("kip101", "never_diverges", "follower_truncation", "leader-epoch-rounds"),
        ("hw", "deduplicates", "producer_dedup", "yes"),
        ("kraft", "counts_damage", "elr", "on"),
        ("elr", "damaged_by_loss", "unclean_recovery", "first-replies"),
    ],
)
def test_another_value_of_a_rule_changes_what_is_promised(name: str, part: str, rule: str, value: str) -> None:
    mode = MODES[name]
    changed = mode.override({rule: value})
    differ = [
        field.name
        for field in fields(Promised)
        if getattr(changed.promise, field.name) != getattr(mode.promise, field.name)
    ]
    assert (differ, getattr(changed.promise, part)) == ([part], True)
    assert changed.override({rule: getattr(mode.rules, rule)}) == mode


def test_declarations_of_a_mode_stay_where_its_rules_do() -> None:
    careful = replace(MODES["kip320"], promise=MODES["hw"].promise)
    assert careful.override({"isr_join": "high-watermark"}).promise == MODES["hw"].promise


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "Mine"}, r"'Mine' is no mode's name: \[a-z0-9.-\]\+"),
        ({"name": "../mine"}, "is no mode's name"),
        ({"release": "next"}, "mode kip320: release 'next' is no release, such as '2.6'"),
        ({"release": "none"}, "mode kip320: follows '' is no release"),
        ({"release": "none", "follows": "kip320"}, "follows 'kip320' is no release"),
    ],
)
def test_a_mode_needs_a_name_and_a_place(change: dict[str, str], problem: str) -> None:
    kip320 = MODES["kip320"]
    words = {"name": kip320.name, "release": kip320.release, "follows": "", **change}
    with pytest.raises(InputError, match=problem):
        Mode(words["name"], words["release"], "", kip320.rules, kip320.promise, words["follows"])


def test_a_mode_with_changed_rules_has_a_name_of_its_own() -> None:
    values = {"stop_replica": "unchecked", "isr_lag": "time", "elr": "off"}
    mine = changed(MODES["kip320"], values)
    assert mine.name == "kip320+isr_lag=time+stop_replica=unchecked"
    assert mine.rules == MODES["kip320"].rules.override(values)
    assert (mine.release, mine.follows) == (NO_RELEASE, MODES["kip320"].release)
    assert mine.place > MODES["kip320"].place
    assert changed(MODES["elr-repaired"], {"elr": "off"}).follows == MODES["elr-repaired"].follows
    assert not changed(MODES["elr"], {"elr": "off"}).promise.counts_damage


def test_a_mode_without_changed_rules_is_the_mode() -> None:
    assert changed(MODES["kip320"], {"elr": "off"}) is MODES["kip320"]
    assert changed(MODES["kip320"], {}) is MODES["kip320"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"isr_lags": "time"}, "unknown rule 'isr_lags'; did you mean 'isr_lag'"),
        ({"isr_lag": "times"}, "rule isr_lag has no value 'times'"),
        ({"mutant": "join-below-hw"}, "unknown rule 'mutant'"),
    ],
)
def test_an_unknown_rule_of_a_changed_mode_is_refused(values: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        changed(MODES["kip320"], values)


def test_too_many_changed_rules_make_no_name() -> None:
    with pytest.raises(InputError, match="at most 150 characters together"):
        changed(MODES["hw"], MODES["kraft"].rules.as_dict())
