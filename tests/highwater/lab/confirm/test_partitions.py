"""Several partitions: each is compared, and what is wrong with one is told of this one, without brokers."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.confirm import comparison, milestones, processes, script_runner
from highwater.lab.confirm.comparison import FurtherResult
from highwater.lab.confirm.milestones import Disks
from highwater.lab.confirm.release import InstalledRelease
from highwater.lab.confirm.request import Confirmation, ConfirmRequest
from highwater.lab.confirm.simulation import simulate
from scenarios.format.schema import read
from scenarios.single.script import RulesInForce
from sim.exit_codes import EXPECTED, INCONCLUSIVE, UNEXPECTED
from sim.protocol.modes import MODES
from tests.highwater.lab.confirm.test_comparison import as_acted
from tests.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.confirm.real_run import RealRun
    from scenarios.single.result import RunResult

PARTITIONS = FIXTURES / "partitions"
FILES = sorted(PARTITIONS.glob("*.toml"))
MODE = "elr-4.3"
OTHER = "orders-1"
BATCHES = {"orders-0": {"o1": 0, "o2": 2}, OTHER: {"p1": 1, "p2": 3, "p3": 4}}
SCENARIO = read((PARTITIONS / "second-partition-loses.toml").read_text(encoding="utf-8"), "second-partition-loses.toml")


@pytest.fixture(scope="module")
def simulated() -> tuple[RunResult, dict[str, FurtherResult]]:
    return simulate(SCENARIO, MODES[MODE], 0, {})


@pytest.fixture
def acted(simulated: tuple[RunResult, dict[str, FurtherResult]]) -> RealRun:
    """Brokers that do just what the simulation does."""
    result, further = simulated
    found = as_acted(result, MODE, SCENARIO.script, BATCHES["orders-0"])
    part = further[OTHER]
    found.further = {OTHER: as_acted(part.result, MODE, SCENARIO.script, BATCHES[OTHER])}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_is_as_it_says_in_each_mode(path: Path) -> None:
    scenario = read(path.read_text(encoding="utf-8"), path.name)
    for mode in scenario.expect:
        result, further = simulate(scenario, MODES[mode], 0, {})
        assert result.row["expected"], mode
        views = [result, *(part.result for part in further.values())]
        assert all(any(first < 1 << 40 for _, _, _, first in view.replicas[0].batches) for view in views)
        assert all(view.partition.leader_epoch > 0 for view in views), "each partition has another leader"


def differing(simulated: tuple[RunResult, dict[str, FurtherResult]], acted: RealRun) -> list[str]:
    result, further = simulated
    rows = comparison.compare(result, acted, SCENARIO.script, elr=True, epochs=True, further=further)
    return [row.what for row in rows if not row.agrees]


def test_each_row_names_its_partition(simulated: tuple[RunResult, dict[str, FurtherResult]], acted: RealRun) -> None:
    result, further = simulated
    rows = comparison.compare(result, acted, SCENARIO.script, elr=True, epochs=True, further=further)
    told = [row.what for row in rows]
    assert {what.partition(": ")[0] for what in told} == {"story", "orders-0", OTHER}
    assert len(set(told)) == len(told)
    assert {"orders-0: state 1", f"{OTHER}: state 9", f"{OTHER}: log of broker 2"} <= set(told)
    assert f"{OTHER}: p3 acknowledged at" in told
    assert "orders-0: p3 acknowledged at" not in told
    verdicts = {row.what: row.real for row in rows if row.what.endswith(": verdict")}
    assert verdicts == {
        "orders-0: verdict": "none that can be seen",
        f"{OTHER}: verdict": "committed-loss, exposed-loss",
    }
    assert differing(simulated, acted) == []


def another_leader(acted: RealRun) -> None:
    acted.states[-1] = replace(acted.states[-1], leader=3)


def an_elr_too_few(acted: RealRun) -> None:
    place = next(place for place, state in enumerate(acted.states) if state.elr)
    acted.states[place] = replace(acted.states[place], elr=())


def another_record(acted: RealRun) -> None:
    acted.final[3].batches[0] = replace(acted.final[3].batches[0], first_id=5)


def no_acknowledgement(acted: RealRun) -> None:
    acted.sends[1].offset = None


def nothing_lost(acted: RealRun) -> None:
    log = acted.final[acted.leader].batches
    log[1:2] = [replace(log[1], first_id=3, name="p2")]


@pytest.mark.parametrize(
    ("tamper", "row"),
    [
        (another_leader, "state 10"),
        (an_elr_too_few, "state 4"),
        (another_record, "log of broker 3"),
        (no_acknowledgement, "p2 acknowledged at"),
        (nothing_lost, "verdict"),
    ],
)
def test_what_differs_in_the_second_partition_is_told_of_it(
    simulated: tuple[RunResult, dict[str, FurtherResult]],
    acted: RealRun,
    tamper: Callable[[RealRun], None],
    row: str,
) -> None:
    tamper(acted.further[OTHER])
    found = differing(simulated, acted)
    assert f"{OTHER}: {row}" in found
    assert all(what.startswith(f"{OTHER}: ") for what in found)


def test_what_differs_in_the_first_partition_is_told_of_it(
    simulated: tuple[RunResult, dict[str, FurtherResult]], acted: RealRun
) -> None:
    another_leader(acted)
    assert differing(simulated, acted) == ["orders-0: state 7"]


# From the request to its exit code.


def confirm(
    monkeypatch: pytest.MonkeyPatch, scenario: Any, acted: Callable[[], RealRun], **rules: str
) -> dict[str, Any]:
    """What is told of brokers that act like this in each attempt; `rules` are those of the simulation."""

    class Actor:
        def __init__(self, *_: object) -> None:
            self.observer = SimpleNamespace(steps=[])

        def act(self, *_: object) -> RealRun:
            return acted()

        def close(self) -> None:
            pass

    monkeypatch.setattr(script_runner, "Actor", Actor)
    monkeypatch.setattr(processes, "JavaProcesses", lambda _: SimpleNamespace(close=lambda: None))
    mode = MODES[MODE]
    result, further = simulate(scenario, mode, 0, rules)
    parts = {name: (part, Disks(name)) for name, part in further.items()}
    monkeypatch.setattr(milestones, "milestones", lambda *_args, **_named: [])
    request = ConfirmRequest("second-partition-loses.toml", "4.3.1")
    force = RulesInForce(mode.override(rules).rules, {})
    release, lines = InstalledRelease("4.3.1", ()), list(scenario.script)
    made = Confirmation(
        request, scenario, release, mode, rules, force, lines, [], result, Disks(), lambda _: None, parts
    )
    return made.run(1)


def without_story(acted: RealRun, result: RunResult) -> RealRun:
    """The story is of both partitions: it shall not be what differs."""
    acted.met = [(False, None)] * len(result.story)
    return acted


def test_brokers_that_do_as_simulated_are_confirmed(monkeypatch: pytest.MonkeyPatch, acted: RealRun) -> None:
    told = confirm(monkeypatch, SCENARIO, lambda: acted)
    assert (told["exit_code"], told["failed"]) == (EXPECTED, "")
    assert told["leader_epochs_of"].keys() == {"orders-0", OTHER}
    assert json.loads(json.dumps(told["leader_epochs_of"][OTHER])) == {"simulated": [0, 1, 2], "real": [10, 11, 12]}


@pytest.mark.parametrize("tamper", [another_leader, another_record, nothing_lost])
def test_a_false_expectation_of_the_second_partition_is_noticed(
    monkeypatch: pytest.MonkeyPatch, acted: RealRun, tamper: Callable[[RealRun], None]
) -> None:
    """No other timing of the simulation does what these brokers do, in two attempts of two."""
    tamper(acted.further[OTHER])
    told = confirm(monkeypatch, SCENARIO, lambda: deepcopy(acted))
    assert (told["exit_code"], told["failed"], len(told["before"])) == (UNEXPECTED, "", 1)
    assert {row["what"].partition(": ")[0] for row in told["rows"] if not row["agrees"]} == {OTHER}


def test_a_false_rule_that_shows_in_the_second_partition_alone_is_noticed(
    monkeypatch: pytest.MonkeyPatch, simulated: tuple[RunResult, dict[str, FurtherResult]], acted: RealRun
) -> None:
    without_story(acted, simulated[0])
    told = confirm(monkeypatch, SCENARIO, lambda: deepcopy(acted), last_known_leader="fenced-too")
    assert (told["exit_code"], told["failed"]) == (UNEXPECTED, "")
    assert {row["what"].partition(": ")[0] for row in told["rows"] if not row["agrees"]} == {OTHER}


def test_an_early_exit_from_the_isr_explains_no_difference_of_another_partition(
    monkeypatch: pytest.MonkeyPatch, acted: RealRun
) -> None:
    """Both partitions differ, and only the first one by a follower that lagged sooner."""
    acted.states[1:1] = [replace(acted.states[0], isr=(1, 3))]
    shrunk = confirm(monkeypatch, SCENARIO, lambda: deepcopy(acted))
    assert shrunk["exit_code"] == INCONCLUSIVE
    assert "orders-0: the ISR shrank from 1 2 3 to 1 3 under leader 1" in shrunk["failed"]
    another_record(acted.further[OTHER])
    assert confirm(monkeypatch, SCENARIO, lambda: deepcopy(acted))["exit_code"] == UNEXPECTED
