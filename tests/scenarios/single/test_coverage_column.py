from __future__ import annotations

import random

import pytest

from faults.kinds.registry import KINDS
from scenarios.format.catalogue import load
from scenarios.single import coverage_column as coverage
from scenarios.single.coverage_column import Reached, width
from scenarios.single.result import RunResult
from sim.protocol.probes import PROBES
from tests.named import run, run_row


def counted(*rows: str) -> Reached:
    reached = Reached()
    for row in rows:
        reached.add(row)
    return reached


@pytest.mark.parametrize("runs", [0, 1, 2, 3, 7, 8, 100])
def test_counting_is_counting(runs: int) -> None:
    stream = random.Random(runs)
    numbers = [stream.getrandbits(width()) & stream.getrandbits(width()) for _ in range(runs)]
    reached = counted(*(f"{number:x}" for number in numbers))
    assert reached.runs == runs
    assert reached.counts() == [sum(number >> place & 1 for number in numbers) for place in reversed(range(width()))]


def test_rows_without_the_column_do_not_count() -> None:
    assert counted("", "1").runs == 1


def test_names_and_counts() -> None:
    results = {mode: run(load("chaos"), mode, 3) for mode in ("hw", "kip320")}
    rows = {mode: result.row["coverage"] for mode, result in results.items()}
    found = coverage.to_json({mode: counted(row, row) for mode, row in rows.items()} | {"kip101": counted()})
    assert found["runs"] == {"hw": 2, "kip320": 2, "kip101": 0}
    assert found["probes"]["leadership"]["leader-begins"] == {"hw": 2, "kip320": 2}
    branches = found["probes"]["rule branch"]
    assert branches["follower_truncation=high-watermark"] == {"hw": 2}
    assert branches["follower_truncation=leader-epoch"] == {}
    assert list(found["faults"]) == list(found["pairs"]) == list(KINDS)
    for kind, runs in found["faults"].items():
        struck = [mode for mode, result in results.items() if (kind, True) in _struck(result)]
        assert runs == dict.fromkeys(struck, 2)
        assert struck or not found["pairs"][kind]
    assert sum(map(len, found["probes"].values())) == len(PROBES)


def _struck(result: RunResult) -> set[tuple[str, bool]]:
    return {(fault["kind"], fault["effective"]) for fault in result.faults}


@pytest.mark.parametrize(
    ("scenario", "mode", "probe"),
    [
        ("kip903", "hw", "out-of-range-halts"),
        ("kip101-appendix", "kip279", "by-epoch-2-rounds"),
        ("canary", "hw", "truncates-to-hw"),
    ],
)
def test_stories_reach_what_they_tell(scenario: str, mode: str, probe: str) -> None:
    found = coverage.to_json({mode: counted(run_row(load(scenario), mode, 0)["coverage"])})
    assert {name for probes in found["probes"].values() for name, runs in probes.items() if runs} >= {probe}
