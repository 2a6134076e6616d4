"""Processes that run mutants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.places import ROOT
from tests.verification.mutants.__main__ import NOTICED, Round, mutants_of, run, sentence, table
from tests.verification.mutants.operators import DROPPED, NEGATED, SHIFTED
from tests.verification.mutants.worker import BOUND, ERROR, SURVIVED, UNCHANGED, Right, Task, schedule

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verification.mutants.operators import Mutant

ONLY = ("partitions",)
RUNS = 24


def mutant(file: str, function: str, operator: str, before: str) -> Mutant:
    every = mutants_of([file])
    return next(one for one in every if (one.function, one.operator, one.before) == (function, operator, before))


def test_each_round_has_every_scenario_in_every_repaired_mode_that_it_runs_in() -> None:
    first = []
    for scenario, mode, seed in schedule():
        if seed:
            break
        assert scenario.drawn
        assert scenario.strict
        first.append((scenario.name, mode.name))
    assert ("chaos", "kip320-repaired") in first
    assert ("quorum", "elr-repaired") in first
    assert ("quorum", "kip320-repaired") not in first
    assert len(set(first)) == len(first)


@pytest.mark.world
def test_hunts_find_a_mutant_or_say_that_nothing_changes(tmp_path: Path) -> None:
    partition = "sim/protocol/replica/partition.py"
    harmful = mutant(partition, "Partition.advance_hw", NEGATED, "candidate > self.hw and self.set_hw(candidate)")
    unreached = mutant("sim/hosts/administrator.py", "Administrator.set_config", DROPPED, "self._set(key, value)")
    broken = mutant(partition, "Partition.advance_hw", DROPPED, "self._complete_writes()")
    round_of_one = Round(tmp_path, 7, "version", RUNS, ONLY)
    right = round_of_one.right()
    assert len({one.digest for one in right}) > RUNS // 2
    lines = list(round_of_one.hunts([harmful, unreached, broken], RUNS, 20))
    assert lines[0]["outcome"] in NOTICED
    assert lines[0]["scenario"] == ONLY[0]
    assert 0 < lines[0]["changed"] <= lines[0]["runs"] <= RUNS
    assert lines[0]["reached"] == lines[0]["runs"] == lines[0]["by_scenario"][ONLY[0]]
    assert lines[1] | {"seconds": 0} == {
        "mutant": unreached.name, "function": unreached.function, "operator": DROPPED,
        "outcome": UNCHANGED, "scenario": "", "mode": "", "seed": -1, "kinds": "", "runs": RUNS, "reached": 0,
        "changed": 0, "first_changed": "", "seconds": 0, "by_scenario": {},
    }  # fmt: skip
    assert lines[2]["outcome"] in NOTICED
    # A second time, nothing is run.
    assert list(Round(tmp_path, 7, "version", RUNS, ONLY).hunts([harmful, unreached, broken], RUNS, 20)) == lines
    assert sentence(1, lines[1]).splitlines() == [
        f"1. {unreached.name}", f"   unchanged; {RUNS} runs, 0 reached, 0 changed, {lines[1]['seconds']} s"
    ]  # fmt: skip
    assert list(table(lines))[-1] == "2 of 2 that change a digest are found: 100%"


def test_a_run_with_many_more_events_than_without_the_mutant_is_found() -> None:
    """The leader answers a consumer's fetch at once though it has nothing for it."""
    function, before = "KafkaApis._on_fetch_of_consumer", "offset < partition.hw"
    busy = mutant("sim/hosts/kafka_apis.py", function, SHIFTED, before)
    task = Task(busy, 1, 20, [Right("", "", 0.1, "1", 1_000)], [True], ONLY)
    found = run(task)
    assert (found["outcome"], found["kinds"].split()[-1]) == (BOUND, "events")
    assert run(replace(task, right=[Right("", "", 0.1, "1", 1 << 40)]))["outcome"] == SURVIVED


def test_an_exception_and_a_loop_are_found_and_said_apart() -> None:
    hw = mutant("sim/protocol/replica/partition.py", "Partition.advance_hw", DROPPED, "self._complete_writes()")
    raises = run(Task(replace(hw, code="(1 / 0)"), RUNS, 20, only=ONLY))
    assert raises["outcome"] == ERROR
    assert raises["kinds"].startswith("ZeroDivisionError")
    allocates = run(Task(replace(hw, code="len('0' * (1 << 40))"), RUNS, 20, only=ONLY))
    assert (allocates["outcome"], allocates["kinds"]) == (BOUND, "memory")
    end = len((ROOT / hw.file).read_bytes())
    at_end = replace(hw, source=(end, end))
    unimported = run(Task(replace(at_end, code="1 / 0\n"), RUNS, 20, only=ONLY))
    assert unimported["outcome"] == ERROR
    assert unimported["kinds"].startswith("at the start: ZeroDivisionError")
    assert run(Task(replace(at_end, code="while True: pass\n"), RUNS, 20, only=ONLY), 1.0) is None
