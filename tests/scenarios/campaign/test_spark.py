"""On Spark, the same cases have the same results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from highwater.lab.advise.experiment import of_seed
from highwater.lab.claims.claims import run_case
from scenarios.campaign.campaign import Campaign
from scenarios.campaign.record import Record
from scenarios.campaign.runner import LocalRunner
from scenarios.campaign.spark import SparkRunner
from scenarios.format.catalogue import load
from sim.protocol.modes import MODES
from tests.scenarios.sweep.spark_session import session  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("session")
def test_spark_judges_as_this_process_does_and_fills_a_record(tmp_path: Path) -> None:
    cases = [("power", "hw", (), (seed, seed + 1)) for seed in range(0, 10, 2)]
    here = list(Campaign(run_case, LocalRunner()).run(cases))
    with Record(tmp_path, "claims", {}) as record, SparkRunner(None, {}, "claims") as runner:
        assert list(Campaign(run_case, runner, record).run(cases, ahead=1)) == here
    with Record(tmp_path, "claims", {}) as record:
        assert len(record.results) == 5


@pytest.mark.usefixtures("session")
def test_modes_and_scenarios_reach_the_workers() -> None:
    judge = partial(of_seed, {"as it is": load("power")}, [MODES["hw"], MODES["kip101"]])
    with SparkRunner(None, {}, "advice") as runner:
        assert list(runner.map(judge, [("", 0), ("", 1)])) == [judge(("", 0)), judge(("", 1))]
