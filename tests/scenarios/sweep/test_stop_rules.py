"""Rules that stop a sweep before its last seed: what they read, and where they stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.analysis.statistics import wilson
from scenarios.format.catalogue import load
from scenarios.sweep import stop_rules
from scenarios.sweep.driver import Interrupted, run_sweep
from scenarios.sweep.folder import open_folder
from scenarios.sweep.stop_rules import StopRules, parse
from scenarios.sweep.store import Store, read_json
from sim.errors import InputError
from tests import named
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from pathlib import Path

POWER = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 0, 60)
LOSSES = 4


def test_rules_are_read_from_words() -> None:
    found = parse(["committed-loss=20", "inside=3", "width=0.1%", "8h"])
    assert found == StopRules({"committed-loss": 20, "inside": 3}, 0.001, 8 * 3600)
    assert parse(["90s"]).seconds == 90
    assert parse(["1.5m"]).seconds == 90


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("commited-loss=2", "is no kind of violation.*committed-loss"),
        ("committed-loss=0", "a number of runs is needed"),
        ("committed-loss=x", "a number of runs is needed"),
        ("width=0%", "a width in percent is needed"),
        ("width=0.1", "a width in percent is needed"),
        ("0h", "is not valid"),
        ("8d", "is not valid"),
        ("", "is not valid"),
    ],
)
def test_words_that_are_no_rules_are_refused(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse([word])


@given(first=st.integers(0, 2**40), length=st.integers(1, 10**6))
def test_steps_cover_the_seeds_and_grow(first: int, length: int) -> None:
    ends = list(stop_rules.ends(first, first + length))
    sizes = [end - begin for begin, end in zip([first, *ends], ends, strict=False)]
    assert ends[-1] == first + length
    assert sum(sizes) == length
    assert sorted(sizes[:-1]) == sizes[:-1]
    assert all(size >= stop_rules.STEP_SEEDS for size in sizes[:-1])


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_widths_are_those_of_wilsons_intervals(counts: tuple[int, int]) -> None:
    low, high = wilson(*counts)
    assert stop_rules._width(*counts) == pytest.approx(high - low, abs=1e-9)


def result(runs: int, inside: int, errors: int = 0, **kinds: int) -> dict[str, Any]:
    found = {kind.replace("_", "-"): {"n": number} for kind, number in kinds.items()}
    return {"runs": runs, "inside": inside, "verdicts": {"error": errors}, "kinds": found}


def test_a_rule_looks_at_all_results() -> None:
    results = [result(100, 0, committed_loss=12), result(100, 50, committed_loss=8)]
    assert parse(["committed-loss=21"]).met(results, 0) is None
    assert str(parse(["committed-loss=20"]).met(results, 0)).startswith("committed-loss in 20 runs")
    assert parse(["inside=51"]).met(results, 0) is None
    assert parse(["inside=50"]).met(results, 0) is not None
    assert parse(["width=19%"]).met(results, 0) is None  # The second interval decides: 0.19 wide at 50 of 100.
    assert parse(["width=20%"]).met(results, 0) is not None
    assert parse(["width=99%"]).met([result(3, 0, errors=3)], 0) is None
    assert parse(["2s"]).met(results, 1.9) is None
    assert parse(["2s"]).met(results, 2.0) is not None


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_rules, "STEP_SEEDS", 10)


def stopped(
    output: Path, chunks: int = 1, wave_units: int | None = None, backend: Here | None = None
) -> dict[str, Any]:
    rules = parse([f"committed-loss={LOSSES}"])
    return run_sweep(POWER, output, backend or Here(), chunks=chunks, wave_units=wave_units, until=rules)


@pytest.mark.world
@pytest.mark.usefixtures("short_steps")
def test_it_stops_after_the_same_seeds_however_it_is_divided(tmp_path: Path) -> None:
    whole = run_sweep(POWER, tmp_path / "whole", Here())
    rows = Store(tmp_path / "whole").rows()
    losing = [seed for seed, kinds in zip(rows["seed"], rows["violations"], strict=True) if "committed-loss" in kinds]
    assert len(losing) > LOSSES
    end = sorted(losing)[LOSSES - 1] // 10 * 10 + 10
    assert 10 < end < 60
    one, many = stopped(tmp_path / "one"), stopped(tmp_path / "many", 3, 4)
    for name, found in (("one", one), ("many", many)):
        store = Store(tmp_path / name)
        assert found["complete"]
        assert (found["runs"], found["runs_asked"]) == (2 * end, 2 * end)
        assert max(store.rows()["seed"]) == end - 1
        assert "--until committed-loss=4 is met" in found["stopped"]
        assert read_json(open_folder(tmp_path / name), "run.json")["seeds"] == [[0, end]]
        assert not store.missing
    assert "stopped" not in whole
    assert Store(tmp_path / "one").rows() == Store(tmp_path / "many").rows()


@pytest.mark.world
@pytest.mark.usefixtures("short_steps")
def test_an_interrupted_step_is_completed_before_its_counts_matter(tmp_path: Path) -> None:
    expected = stopped(tmp_path / "undisturbed", 1, 4)

    def interrupt(wave: int) -> None:
        if wave == 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        stopped(tmp_path / "out", 1, 4, Here(interrupt))
    found = stopped(tmp_path / "out", 1, 7)
    assert (found["runs"], found["stopped"]) == (expected["runs"], expected["stopped"])
    again = Here()
    assert stopped(tmp_path / "out", backend=again)["stopped"] == expected["stopped"]
    assert again.waves == []


@pytest.mark.world
@pytest.mark.usefixtures("short_steps")
def test_a_stopped_sweep_goes_on_without_the_rule(tmp_path: Path) -> None:
    stopped(tmp_path / "out")
    whole = run_sweep(POWER, tmp_path / "out", Here())
    assert (whole["complete"], whole["runs"], "stopped" in whole) == (True, 120, False)
    shorter = run_sweep(replace(POWER, end_seed=5), tmp_path / "few", Here(), until=parse(["committed-loss=1000"]))
    assert (shorter["runs"], "stopped" in shorter) == (10, False)
