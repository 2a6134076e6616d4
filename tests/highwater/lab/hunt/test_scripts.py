"""Scripts of shrunk runs for real brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults.plan import LEADER, Fault
from highwater.lab.hunt import acting, scripts
from highwater.lab.hunt.acting import CONFIRMED, DIFFERS, NOT_EXPRESSIBLE, NOT_TRIED, UNDECIDED
from highwater.lab.hunt.state import Written
from scenarios.format.schema import read
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.criterion import Symptom
from scenarios.shrinking.script_export import to_toml
from sim import exit_codes
from sim.protocol.modes import MODES
from tests.scenarios.shrinking.test_script_export import LOSS, POWER, small


def test_roles_become_the_brokers_that_were_struck() -> None:
    case = small(replace(POWER, targets=(LEADER,)))
    named = scripts.expressible(case, LOSS)
    assert [fault.targets for fault in named.faults] == [(1,)]
    assert LOSS.shown_by(named.row())
    assert 'do = "power-loss"' in to_toml(named, LOSS)


def test_faults_last_longer_than_a_session_if_the_run_still_ends_so() -> None:
    assert [fault.lasts_us for fault in scripts.expressible(small(POWER), LOSS).faults] == [scripts.LASTING_US]
    forever = replace(POWER, lasts_us=-1)
    assert scripts.expressible(small(forever), LOSS).faults == (forever,)


def test_faults_are_apart_if_the_run_still_ends_so() -> None:
    soon = Fault("kill", POWER.at_us + 1_000_000, (2,), scripts.LASTING_US)
    found = scripts.expressible(small(replace(POWER, lasts_us=scripts.LASTING_US), soon), LOSS)
    assert [fault.at_us for fault in found.faults] == [POWER.at_us, POWER.at_us + scripts.APART_US]
    assert LOSS.shown_by(found.row())


def test_faults_stay_short_if_a_repair_would_cure_no_more() -> None:
    nothing = Repair("isr_join", "high-watermark", is_rule=True)
    assert [fault.lasts_us for fault in scripts.expressible(small(POWER), LOSS, (nothing,)).faults] == [POWER.lasts_us]


def test_a_case_that_would_end_otherwise_stays() -> None:
    case = small(replace(POWER, lasts_us=scripts.LASTING_US))
    assert scripts.expressible(case, LOSS) is case
    assert scripts.expressible(case.with_sends(()), Symptom("divergence", inside=True)).sends == ()


def test_a_case_without_batches_gets_one() -> None:
    assert len(scripts.expressible(small(POWER).with_sends(()), LOSS).sends) == 1


def test_lines_wait_for_steps_and_the_script_ends_alike() -> None:
    case = small(POWER)
    scenario = read(scripts.by_steps(to_toml(case, LOSS), MODES["kip320"]), "here")
    assert [line.when.step for line in scenario.script if line.when is not None]
    assert scenario.expect["kip320"].kinds == ("committed-loss",)


def test_a_stopped_broker_is_started_by_a_line_of_its_own() -> None:
    lines: list[dict[str, Any]] = [
        {"after_ms": 2000, "do": "kill", "broker": 1, "restart_ms": 5000},
        {"after_us": 1500, "do": "power-loss", "brokers": [2, 3], "restart_ms": 20000},
        {"after_ms": 8000, "do": "wait"},
    ]
    assert scripts._with_starts(lines) == [
        {"after_ms": 2000, "do": "kill", "broker": 1},
        {"after_ms": 1, "after_us": 500, "do": "power-loss", "brokers": [2, 3], "restart_ms": 20000},
        {"after_ms": 4998, "after_us": 500, "do": "start", "broker": 1},
        {"after_ms": 3001, "after_us": 500, "do": "wait"},
    ]


def written(*results: str, obstacle: str = "") -> Written:
    runs = [{"result": result, "told": f"{result} because"} for result in results]
    return Written("key", "committed-loss", [], [], [], "", script=True, folder="1", obstacle=obstacle, runs=runs)


@pytest.mark.parametrize(
    ("one", "lacks", "name", "why"),
    [
        (written(CONFIRMED, CONFIRMED, CONFIRMED), "", CONFIRMED, "3 of 3 runs"),
        (written(CONFIRMED), "", CONFIRMED, "1 run so far"),
        (written(CONFIRMED, DIFFERS), "", DIFFERS, f"{DIFFERS} because"),
        (written(CONFIRMED, UNDECIDED, CONFIRMED), "", UNDECIDED, f"2 of 3 runs agree; {UNDECIDED} because"),
        (written(obstacle="no action"), "", NOT_EXPRESSIBLE, "no action"),
        (written(), "no Java", NOT_TRIED, "no Java"),
        (written(), "", NOT_TRIED, "not yet"),
    ],
)
def test_runs_on_brokers_are_judged(one: Written, lacks: str, name: str, why: str) -> None:
    assert acting.judged(one, 3, lacks) == (name, why)


def test_the_first_difference_is_told() -> None:
    rows = [
        {"what": "log of broker 1", "simulated": "0 1", "real": "0 1", "agrees": True},
        {"what": "verdict", "simulated": "committed-loss", "real": "ok", "agrees": False},
    ]
    run = {"exit_code": exit_codes.UNEXPECTED, "failed": "", "rows": rows, "before": []}
    told = "verdict: committed-loss in the simulation, ok on brokers"
    assert acting.outcome(run) == {"result": DIFFERS, "told": told}
    assert acting.outcome({**run, "exit_code": exit_codes.INCONCLUSIVE}) == {"result": UNDECIDED, "told": told}
    agreed = {**run, "exit_code": exit_codes.INCONCLUSIVE, "rows": rows[:1], "before": [run]}
    assert acting.outcome(agreed) == {"result": UNDECIDED, "told": told}
    assert acting.outcome({**run, "exit_code": exit_codes.EXPECTED}) == {"result": CONFIRMED, "told": ""}
