from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from scenarios.format.catalogue import load
from sim.config import KEYS, NEVER, Value
from sim.environment.elision import Pings
from sim.hosts.zookeeper import ZooKeeper
from tests.hunt.settings import DRAWN, OWN, Case, drawn_case, first_difference, try_cases
from tests.named import run_row

PING, SESSION = "sim.heartbeat.interval.ms", "zookeeper.session.timeout.ms"


@cache
def cases() -> list[Case]:
    return [drawn_case(number) for number in range(1_000)]


def chaos(number: int, **settings: Value) -> Case:
    """Seed 27 of `chaos`, as it is."""
    case = Case(number, "chaos", "kip320-repaired", 27, 5, 450_000_000, all_kinds=False, settings=settings, own={})
    assert case.scenario() == load("chaos").with_settings(settings)
    return case


def test_all_settings_are_drawn_over_their_ranges_in_clusters_of_any_shape() -> None:
    shapes = {(case.brokers, case.settings["default.replication.factor"]) for case in cases()}
    assert shapes == {(brokers, factor) for brokers in range(1, 8) for factor in range(1, brokers + 1)}
    assert {case.name for case in cases()} == set(DRAWN)
    drawn = {key: {case.settings[key] for case in cases() if key in case.settings} for key in KEYS if key not in OWN}
    for key, values in drawn.items():
        spec = KEYS[key]
        if spec.choices or isinstance(spec.default, bool):
            assert values == set(spec.choices or (False, True)), key
        else:
            assert spec.minimum in values, key
    extremes = [key for key, values in drawn.items() if NEVER in values]
    assert len(extremes) > 25
    assert [drawn_case(case.number) for case in cases()[:20]] == cases()[:20]


def test_drawn_settings_end_no_run_and_elision_changes_no_history() -> None:
    found = try_cases(cases()[:50], event_budget=20_000)
    assert found.failures == []
    assert found.counts["equal"] >= 15
    assert found.counts["ok"] + found.counts["violation"] >= 15


@pytest.mark.parametrize(
    "settings",
    [{PING: 30_000}, {SESSION: 6_000}, {SESSION: 6_000, PING: 6_000}, {SESSION: 6_000, PING: 30_000}, {PING: NEVER}],
)
def test_a_session_no_longer_than_the_interval_of_pings(settings: dict[str, Value]) -> None:
    """Time ran backwards here, and a committed loss inside the promise was reported that never happened."""
    row = run_row(load("chaos").with_settings(settings), "kip320-repaired", 27)
    assert not row["error"]
    assert "loss" not in row["violations_inside"]
    found = try_cases([chaos(0, **settings)], event_budget=1_000_000)
    assert (found.failures, found.counts) == ([], {"equal": 1})


def test_time_that_would_go_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZooKeeper, "outlasts", lambda *_: True)
    found = try_cases([replace(chaos(1, **{PING: 30_000, SESSION: 6_000}), seed=29)])
    assert found.counts == {"error": 1}
    (failure,) = found.failures
    assert failure.startswith("1: chaos kip320-repaired seed 29, 5 brokers, 450000 ms, its kinds: ")
    assert "PastEventError: ZooKeeper._check_session of node 0 asks to be called at" in failure


def test_a_history_that_differs_is_found_also_before_a_run_is_exhausted(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Pings.settle

    def early(self: Pings, now_us: int) -> None:
        self._sent_us -= 1_000_000
        settle(self, now_us)

    monkeypatch.setattr(Pings, "settle", early)
    case = replace(chaos(0), seed=28)
    for event_budget in (1_000_000, 4_000):
        found = try_cases([case], event_budget)
        assert found.counts == {"differs": 1}
        assert "histories differ" in found.failures[0]
    assert 0 < first_difference(case, 1_000_000) < 450_000_000


def test_time_ends_before_its_numbers_do() -> None:
    """A deadline that is "never" away: a step after it had a time beyond 64 bits."""
    settings: dict[str, Value] = {
        "zookeeper.session.timeout.ms": 23_175,
        "metadata.max.age.ms": NEVER - 1,
        "auto.leader.rebalance.enable": False,
        "sim.supervisor.restart.ms": NEVER,
        "sim.end.offsets.interval.ms": NEVER,
    }
    case = Case(0, "rolling", "kip320", 862016254215, 3, 20_000_000, all_kinds=True, settings=settings, own={})
    assert try_cases([case]).failures == []


def test_a_fetch_that_does_not_want_to_wait_is_answered_before_what_comes_after_it() -> None:
    """A leader that goes on takes up a fetch and a write at one time: the fetch was answered with what it found."""
    settings: dict[str, Value] = {"default.replication.factor": 1, "fetch.max.wait.ms": 0}
    case = Case(0, "partitions", "hw", 768872872922, 4, 20_000_000, all_kinds=False, settings=settings, own={})
    assert try_cases([case]).failures == []
