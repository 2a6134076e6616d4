"""A release has a mode and its own defaults."""

from __future__ import annotations

import re

import pytest

from scenarios.properties import known
from scenarios.properties.releases import find
from sim.config import parse
from sim.errors import InputError


@pytest.mark.parametrize(
    ("release", "mode"),
    [
        *[("0.10.2", "hw"), ("1.1", "kip101"), ("2.0", "kip279"), ("2.1", "kip320-2.1"), ("2.6", "kip320")],
        *[("2.6.0", "kip320"), ("2.6.1", "kip320-2.6.1"), ("2.6.2", "kip320-2.6.1"), ("3.5", "kraft-3.5")],
        *[("3.9", "kraft"), ("3.9.0", "kraft"), ("3.9.1", "kraft-3.9.1"), ("4.1", "elr"), ("4.3", "elr-4.3")],
    ],
)
def test_a_modelled_release_has_its_mode(release: str, mode: str) -> None:
    assert find(release).mode.name == mode


@pytest.mark.parametrize(
    ("release", "plane", "mode", "note"),
    [
        ("3.7", "", "kraft-3.5", "no mode is Kafka 3.7: kraft-3.5 is Kafka 3.5, the nearest modelled release before"),
        ("3.9", "zookeeper", "kip320-2.6.1", "no mode is Kafka 3.9 under ZooKeeper"),
        ("3.4", "kraft", "kraft-3.5", "no mode is Kafka 3.4 under KRaft: kraft-3.5 is Kafka 3.5, the nearest modelled"),
        ("4.2.1", "", "elr", "no mode is Kafka 4.2: elr is Kafka 4.1.0"),
        ("2.0.1", "", "kip279", "kip279 is Kafka 2.0.0, the nearest modelled release to 2.0.1"),
    ],
)
def test_another_release_has_the_nearest_mode_and_a_note(release: str, plane: str, mode: str, note: str) -> None:
    found = find(release, plane)
    assert found.mode.name == mode
    assert found.notes[0].startswith(note)


def test_defaults_that_changed_between_releases() -> None:
    old = {"replica.lag.time.max.ms": 10_000, "zookeeper.session.timeout.ms": 6_000, "acks": "1"}
    assert find("0.10.2").defaults == {"unclean.leader.election.enable": True, **old, "retry.backoff.max.ms": 100}
    assert find("2.1").defaults == {**old, "retry.backoff.max.ms": 100}
    assert find("2.6").defaults == {"acks": "1", "retry.backoff.max.ms": 100}
    assert find("3.9").defaults == {"enable.idempotence": True}
    assert find("4.1").defaults == {"enable.idempotence": True}


def test_every_stored_default_is_a_value_here() -> None:
    for release in known.minors():
        for key, value in find(release).defaults.items():
            assert parse(key, value) == value


def test_a_scenario_and_the_user_come_before_defaults() -> None:
    release = find("2.1")
    chosen = release.beside({"acks": "all"}, {"replica.lag.time.max.ms": 1})
    assert chosen == {"zookeeper.session.timeout.ms": 6_000, "retry.backoff.max.ms": 100}


@pytest.mark.parametrize(
    ("given", "own"),
    [({"acks": "1"}, {}), ({}, {"acks": ("1", "all")}), ({}, {"max.in.flight.requests.per.connection": 6})],
)
def test_producers_are_idempotent_by_default_where_they_can_be(given: dict[str, str], own: dict[str, object]) -> None:
    assert find("3.9").beside({}, {}) == {"enable.idempotence": True}
    assert find("3.9").beside(given, own) == {}


def test_no_default_differs_that_the_user_overrides() -> None:
    release = find("3.9")
    assert release.differences({}) == "enable.idempotence = true (Highwater's default: false)"
    assert release.differences({"enable.idempotence": True}) == ""
    assert release.differences({"acks": "1"}) == ""
    assert find("2.6").differences({"acks": "all"}) == "retry.backoff.max.ms = 100 (Highwater's default: 1000)"


@pytest.mark.parametrize(
    ("release", "instead"),
    [
        ("5.0", "; the newest one is 4.4"),
        ("9.9", "; the newest one is 4.4"),
        ("4", "; one of: 4.0, 4.1, 4.2, 4.3, 4.4"),
        ("4.9", "; one of: 4.0, 4.1, 4.2, 4.3, 4.4"),
        ("3.9.x", "; one of: 3.0, "),
        ("0.10.1", "; one of: 0.10.2, 0.11"),
        ("v3.9", "; did you mean '3.9'?"),
        ("", "; one of: 0.10.2, "),
    ],
)
def test_an_unknown_release_is_refused(release: str, instead: str) -> None:
    problem = f"--release {release!r} is no release that Highwater knows{instead}"
    with pytest.raises(InputError, match=re.escape(problem)):
        find(release)


def test_the_last_release_of_each_line_is_known() -> None:
    assert [known.last_of(minor) for minor in ("0.10.2", "4.1")] == ["0.10.2.2", "4.1.2"]
    assert all(known.minor(known.last_of(minor)) == minor for minor in known.minors())
