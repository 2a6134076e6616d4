from __future__ import annotations

from typing import Any

import pytest

from reports.compare import COLUMNS, Comparison, as_json, compare

LOSS = "committed-loss"


def run(mode: str, seed: int, kinds: str = "", *, kinds_inside: str | None = None, **other: Any) -> dict[str, Any]:
    """A row of the scenario `power`; its kinds are inside the promise unless told otherwise."""
    plain = {
        "scenario": "power",
        "mode": mode,
        "seed": seed,
        "verdict": "violation" if kinds else "ok",
        "inside": True,
        "violations": kinds,
        "violations_inside": kinds if kinds_inside is None else kinds_inside,
        "vacuous": False,
        "faults_hash": f"f{seed}",
        "warnings": "",
        "rounds_1": 2,
        "rounds_2": 0,
        "rounds_more": 0,
    }
    return plain | other


def compared(*rows: dict[str, Any]) -> list[Comparison]:
    return compare({name: [row[name] for row in rows] for name in COLUMNS})


def test_rates_count_runs_by_kind_and_promise() -> None:
    (power,) = compared(
        run("hw", 0, LOSS), run("hw", 1, f"{LOSS},divergence", kinds_inside="divergence"), run("hw", 2), run("hw", 3)
    )
    rates = {rate.kind: rate for rate in power.modes[0].rates}
    assert list(rates) == ["any", LOSS, "divergence"]
    assert (rates[LOSS].k, rates[LOSS].n, rates[LOSS].rate) == (2, 4, 0.5)
    assert (rates[LOSS].inside, rates[LOSS].outside) == (1, 1)
    assert (rates["any"].k, rates["any"].inside, rates["any"].outside) == (2, 2, 0)
    assert rates[LOSS].low < 0.5 < rates[LOSS].high


def test_a_kind_that_one_mode_lacks_has_an_upper_bound_there() -> None:
    (power,) = compared(run("hw", 0, LOSS), *(run("kip101", seed) for seed in range(100)))
    loss = power.modes[1].rates[1]
    assert (loss.kind, loss.k, loss.low) == (LOSS, 0, 0.0)
    assert loss.high == pytest.approx(1 - 0.025**0.01)


def test_errors_decide_nothing_and_vacuous_runs_stay() -> None:
    (power,) = compared(
        run("hw", 0, verdict="error"), run("hw", 1, vacuous=True), run("hw", 2, verdict="stalled", inside=False)
    )
    hw = power.modes[0]
    assert (hw.runs, hw.errors, hw.vacuous, hw.stalled) == (2, 1, 1, 1)
    assert hw.rates[0].n == 2


def test_warnings_and_rounds_are_counted() -> None:
    (power,) = compared(
        run("kip279", 0, warnings="leader-incomplete,log-mismatch", rounds_2=1),
        run("kip279", 1, warnings="log-mismatch", rounds_more=3),
        run("kip279", 2, verdict="error", warnings="log-mismatch"),
    )
    kip279 = power.modes[0]
    assert kip279.warnings == {"leader-incomplete": 1, "log-mismatch": 2}
    assert kip279.rounds == (4, 1, 3)


def test_share_of_runs_inside() -> None:
    rows = [run("hw", seed, inside=seed == 0) for seed in range(4)]
    assert compared(*rows)[0].modes[0].share_inside == 0.25


def test_pairs_are_made_of_common_seeds() -> None:
    rows = [run("hw", seed, LOSS) for seed in range(6)] + [run("kip101", seed) for seed in range(5)]
    rows[6] = run("kip101", 0, LOSS)
    (pair,) = compared(*rows)[0].pairs
    assert (pair.a, pair.b, pair.n) == ("hw", "kip101", 5)
    loss = pair.kinds[1]
    assert (loss.kind, loss.both, loss.only_a, loss.only_b, loss.neither) == (LOSS, 1, 4, 0, 0)
    assert loss.p == pytest.approx(0.125)


def test_pairs_leave_errors_out_and_tell_equal_faults() -> None:
    (pair,) = compared(
        *(run("hw", seed) for seed in range(3)),
        run("kip101", 0, faults_hash="other"),
        run("kip101", 1),
        run("kip101", 2, verdict="error"),
    )[0].pairs
    assert (pair.n, pair.equal_faults, pair.share_equal_faults) == (2, 1, 0.5)


def test_a_mode_of_errors_only_has_no_rate() -> None:
    (power,) = compared(run("hw", 0, verdict="error"))
    assert power.modes[0].rates[0].rate is None
    assert power.modes[0].share_inside is None


def test_scenarios_stay_apart_and_come_in_order() -> None:
    rows = [run("hw", 0, scenario="power"), run("hw", 0, scenario="canary", violations=LOSS, verdict="violation")]
    canary, power = compared(*rows)
    assert (canary.scenario, power.scenario) == ("canary", "power")
    assert [rate.kind for rate in power.modes[0].rates] == ["any"]


def test_json_says_its_version() -> None:
    data = as_json(compared(run("hw", 0)))
    assert data["schema_version"] == 1
    assert data["scenarios"][0]["modes"][0]["rates"][0]["kind"] == "any"
