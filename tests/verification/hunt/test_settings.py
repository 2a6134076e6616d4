from __future__ import annotations

import json
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

from faults.kinds.groups import GROUPINGS
from faults.kinds.registry import KINDS
from faults.kinds.topic_changes import OF_TOPICS
from scenarios.format.catalogue import load
from scenarios.single import run as runs
from sim.config import KEYS, NEVER, Value
from sim.environment.elision import ElidedPings
from sim.errors import InputError
from sim.hosts.zookeeper import ZooKeeper
from tests.named import run_row
from tests.verification.hunt import settings as hunt
from tests.verification.hunt.settings import (
    DRAWN,
    OWN,
    PING,
    SESSION,
    Case,
    compared,
    drawn_case,
    first_difference,
    measured,
    toml,
)

if TYPE_CHECKING:
    from pathlib import Path


@cache
def cases() -> list[Case]:
    return [drawn_case(number) for number in range(1_200)]


def case(name: str, mode: str, seed: int, settings: dict[str, Value], **tables: dict[str, Any]) -> Case:
    """A case of a bundled scenario with other values in some tables."""
    file = json.loads(json.dumps(DRAWN[name]))
    for table, values in tables.items():
        file[table] |= values
    return Case(0, mode, seed, file, settings)


def chaos(**settings: Value) -> Case:
    """Seed 27 of `chaos`, as it is."""
    found = case("chaos", "kip320-repaired", 27, settings)
    assert replace(found.scenario(), source="") == replace(load("chaos").with_settings(settings), source="")
    return found


def freshly_measured(one: Case, **most: float) -> hunt.Measured:
    """Measured in a copy of a new process: one of this process begins with all its memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, one, **most).result()


def test_all_settings_are_drawn_in_clusters_of_any_shape() -> None:
    shapes = {(one.file["brokers"]["count"], one.settings["default.replication.factor"]) for one in cases()}
    assert shapes >= {(brokers, factor) for brokers in range(1, 8) for factor in range(1, brokers + 1)}
    assert max(shapes)[0] > 90
    assert {one.file["name"] for one in cases()} == set(DRAWN)
    drawn = {key: {one.settings[key] for one in cases() if key in one.settings} for key in KEYS if key not in OWN}
    for key, values in drawn.items():
        spec = KEYS[key]
        if spec.choices or isinstance(spec.default, bool):
            assert values == set(spec.choices or (False, True)), key
        else:
            assert spec.minimum in values, key
    extremes = [key for key, values in drawn.items() if NEVER in values]
    assert len(extremes) > 25
    assert [drawn_case(one.number) for one in cases()[:20]] == cases()[:20]


def test_most_of_what_is_drawn_passes_the_checks_of_the_command_line() -> None:
    refused: list[str] = []
    for one in cases()[:150]:
        assert tomllib.loads(toml(one.file)) == one.file
        try:
            one.scenario()
        except InputError as error:
            refused += error.problems
    assert 0 < len(refused) < 40
    expected = ("would not start", "decides", "pinged", "is that of KRaft", "no ZooKeeper client", "there are only")
    assert all(any(word in problem for word in expected) for problem in refused)


@pytest.mark.world
def test_what_a_run_comes_to_and_takes_is_measured_as_a_user_runs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = chaos()
    row = run_row(load("chaos"), "kip320-repaired", 27)
    found = freshly_measured(one)
    assert (found.verdict, found.why) == (row["verdict"], "")
    assert 0.05 < found.cpu_s < 30
    assert 20 < found.memory_mb < 500
    assert one.words(tmp_path)[2:] == ["--mode", "kip320-repaired", "--seed", "27"]
    assert "s of 0 s" in measured(one, cpu_s=0).why
    assert "MB of 1 MB" in measured(one, memory_mb=1).why
    assert measured(case("chaos", "hw", 1, {"default.replication.factor": 6})).verdict == "refused"

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(runs, "run", fails)
    assert "exit code 70" in measured(one).why


@pytest.mark.world
def test_a_run_without_end_or_bound_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "KILLED_S", 1)

    def circles(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(runs, "run", circles)
    found = measured(chaos())
    assert found.verdict == "killed"
    assert 0.5 < found.cpu_s < 10

    def grows(*_: object, **__: object) -> None:
        bytearray(2 * hunt.KILLED_BYTES)

    monkeypatch.setattr(runs, "run", grows)
    assert "exit code 69: highwater: out of memory" in measured(chaos()).why


@pytest.mark.world
@pytest.mark.parametrize(
    ("number", "settings", "verdict", "digest"),
    [
        (-1, {"sim.event.budget": 150_000}, "exhausted", "22f9f85ce6ac0efd291b1ba25d082822"),
        (-2, {}, "violation", "34f0df5ebfe9de8bdbd8820f3928d9d7"),
    ],
)
def test_what_once_took_more_than_any_machine_has(
    number: int, settings: dict[str, Value], verdict: str, digest: str
) -> None:
    one = drawn_case(number)
    one = replace(one, settings={**one.settings, **settings})
    found = freshly_measured(one, cpu_s=10, memory_mb=200)
    assert (found.verdict, found.why) == (verdict, "")
    assert run_row(one.scenario(), one.mode, one.seed)["digest"] == digest


@pytest.mark.world
def test_drawn_settings_end_no_run_and_elision_changes_no_history() -> None:
    small = [one for one in cases() if one.file["brokers"]["count"] <= 7 and one.file["faults"]["count"][1] <= 60]
    found = [compared(one, event_budget=4_000) for one in small[:16]]
    assert [why for _, why in found if why] == []
    assert sum(kind.startswith("equal") for kind, _ in found) >= 8


@pytest.mark.parametrize(
    "settings",
    [{PING: 17_999}, {SESSION: 6_000}, {SESSION: 6_000, PING: 5_999}],
)
def test_a_session_hardly_longer_than_the_interval_of_pings(settings: dict[str, Value]) -> None:
    """Time ran backwards here, and a committed loss inside the promise was reported that never happened."""
    row = run_row(load("chaos").with_settings(settings), "kip320-repaired", 27)
    assert not row["error"]
    assert "loss" not in row["violations_inside"]
    assert compared(chaos(**settings), event_budget=1_000_000) == ("equal", "")


def test_time_that_would_go_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZooKeeper, "cannot_expire", lambda *_: True)
    monkeypatch.setattr("scenarios.format.selection.check_settings", lambda *_: None)
    kind, why = compared(replace(chaos(), seed=29, settings={PING: 30_000, SESSION: 6_000}))
    assert kind == "error"
    assert why.startswith("PastEventError: _SessionTimeout of node 0 asks to be called at")


def test_a_history_that_differs_is_found_also_before_a_run_is_exhausted(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = ElidedPings.settle

    def early(self: ElidedPings, now_us: int) -> None:
        self._sent_us -= 1_000_000
        settle(self, now_us)

    monkeypatch.setattr(ElidedPings, "settle", early)
    one = replace(chaos(), seed=28)
    for event_budget in (1_000_000, 4_000):
        kind, why = compared(one, event_budget)
        assert kind == "differs"
        assert "histories differ" in why
    assert 0 < first_difference(one, 1_000_000) < 450_000_000


def test_time_ends_before_its_numbers_do() -> None:
    """A deadline that is "never" away: a step after it had a time beyond 64 bits."""
    settings: dict[str, Value] = {
        "zookeeper.session.timeout.ms": 23_175,
        "metadata.max.age.ms": NEVER - 1,
        "auto.leader.rebalance.enable": False,
        "sim.supervisor.restart.ms": NEVER,
        "sim.end.offsets.interval.ms": NEVER,
    }
    kinds = [kind for kind in KINDS if kind not in GROUPINGS and kind not in OF_TOPICS]
    faults: dict[str, Any] = {"horizon_ms": 20_000, "kinds": kinds}
    one = case("rolling", "kip320", 862016254215, settings, brokers={"count": 3}, faults=faults)
    assert compared(one) == ("equal", "")


def test_a_fetch_without_wait_is_answered_before_later_requests() -> None:
    """A leader that goes on takes up a fetch and a write at one time: the fetch was answered with what it found."""
    settings: dict[str, Value] = {"default.replication.factor": 1, "fetch.max.wait.ms": 0}
    one = case("partitions", "hw", 768872872922, settings, brokers={"count": 4}, faults={"horizon_ms": 20_000})
    assert compared(one) == ("equal until exhausted", "")
