from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reports.analysis.compare import COLUMNS, Comparison, as_json, compare
from scenarios.single.rows import AVAILABILITY, BY_DAMAGE, UNKNOWN
from sim.config import NEVER
from sim.errors import InputError

if TYPE_CHECKING:
    from scenarios.format.grid import Grid

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
        **dict.fromkeys(BY_DAMAGE, UNKNOWN),
        "warnings": "",
        "rounds_1": 2,
        "rounds_2": 0,
        "rounds_more": 0,
        **dict.fromkeys(AVAILABILITY, 0),
    }
    return plain | other


def compared(*rows: dict[str, Any], grid: Grid | None = None, by: str = "mode") -> list[Comparison]:
    return compare({name: [row[name] for row in rows] for name in [*COLUMNS, *(grid or {})]}, grid, by)


def test_rates_count_runs_by_kind_and_promise() -> None:
    (power,) = compared(
        run("hw", 0, LOSS), run("hw", 1, f"{LOSS},divergence", kinds_inside="divergence"), run("hw", 2), run("hw", 3)
    )
    rates = {rate.kind: rate for rate in power.groups[0].rates}
    assert list(rates) == ["any", LOSS, "divergence"]
    assert (rates[LOSS].k, rates[LOSS].n, rates[LOSS].rate) == (2, 4, 0.5)
    assert (rates[LOSS].inside, rates[LOSS].outside) == (1, 1)
    assert (rates["any"].k, rates["any"].inside, rates["any"].outside) == (2, 2, 0)
    assert rates[LOSS].low < 0.5 < rates[LOSS].high


def test_runs_inside_by_damage_are_known_of_modes_with_elr_only() -> None:
    rows = [run("elr", seed, inside_unclean=int(seed < 1), inside_lossy=int(seed < 2)) for seed in range(3)]
    (power,) = compared(*rows, run("elr", 3, verdict="error"), run("hw", 0))
    assert [(group.name, group.inside_unclean, group.inside_lossy) for group in power.groups] == [
        ("elr", 1, 2),
        ("hw", None, None),
    ]


def test_a_kind_that_one_mode_lacks_has_an_upper_bound_there() -> None:
    (power,) = compared(run("hw", 0, LOSS), *(run("kip101", seed) for seed in range(100)))
    loss = power.groups[1].rates[1]
    assert (loss.kind, loss.k, loss.low) == (LOSS, 0, 0.0)
    assert loss.high == pytest.approx(1 - 0.025**0.01)


def test_errors_decide_nothing_and_vacuous_runs_stay() -> None:
    (power,) = compared(
        run("hw", 0, verdict="error"), run("hw", 1, vacuous=True), run("hw", 2, verdict="stalled", inside=False)
    )
    hw = power.groups[0]
    assert (hw.runs, hw.errors, hw.vacuous, hw.stalled) == (2, 1, 1, 1)
    assert hw.rates[0].n == 2


def test_runs_that_were_given_up_stay_and_tell_nothing_of_availability() -> None:
    (power,) = compared(
        run("hw", 0, LOSS, verdict="exhausted", leaderless_ms=9),
        run("hw", 1, leaderless_ms=4),
        run("hw", 2, verdict="exhausted"),
        *(run("kip101", seed, leaderless_ms=seed) for seed in range(3)),
    )
    hw, _ = power.groups
    assert (hw.runs, hw.exhausted, hw.errors) == (3, 2, 0)
    assert (hw.rates[0].k, hw.rates[0].n) == (1, 3)
    assert (hw.availability[0].mean, hw.availability[0].highest) == (4, 4)
    (pair,) = power.pairs
    assert (pair.n, pair.availability[0].mean) == (3, 3)


def test_warnings_and_rounds_are_counted() -> None:
    (power,) = compared(
        run("kip279", 0, warnings="leader-incomplete,log-mismatch", rounds_2=1),
        run("kip279", 1, warnings="log-mismatch", rounds_more=3),
        run("kip279", 2, verdict="error", warnings="log-mismatch"),
    )
    kip279 = power.groups[0]
    assert kip279.warnings == {"leader-incomplete": 1, "log-mismatch": 2}
    assert kip279.rounds == (4, 1, 3)


def test_share_of_runs_inside() -> None:
    rows = [run("hw", seed, inside=seed == 0) for seed in range(4)]
    assert compared(*rows)[0].groups[0].share_inside == 0.25


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
    assert power.groups[0].rates[0].rate is None
    assert power.groups[0].share_inside is None


def test_scenarios_stay_apart_and_come_in_order() -> None:
    rows = [run("hw", 0, scenario="power"), run("hw", 0, scenario="canary", violations=LOSS, verdict="violation")]
    canary, power = compared(*rows)
    assert (canary.scenario, power.scenario) == ("canary", "power")
    assert [rate.kind for rate in power.groups[0].rates] == ["any"]


LEAST, FLUSH = "min.insync.replicas", "log.flush.interval.messages"
GRID: Grid = {LEAST: (2, 1), FLUSH: (1, NEVER)}


def in_grid(mode: str, seed: int, least: int, flush: int, kinds: str = "", **other: Any) -> dict[str, Any]:
    return run(mode, seed, kinds, **{LEAST: least, FLUSH: flush, **other})


def test_modes_are_compared_at_each_point_of_a_grid() -> None:
    rows = [
        in_grid(mode, seed, least, flush, LOSS if (mode, least) == ("hw", 1) else "")
        for mode in ("hw", "kip101")
        for seed in range(3)
        for least in (1, 2)
        for flush in (NEVER, 1)
    ]
    found = compared(*rows, grid=GRID)
    assert [comparison.fixed for comparison in found] == [
        {LEAST: least, FLUSH: flush} for least in (2, 1) for flush in (1, NEVER)
    ]
    assert [[group.name for group in comparison.groups] for comparison in found] == [["hw", "kip101"]] * 4
    assert [comparison.pairs[0].n for comparison in found] == [3] * 4
    assert [comparison.groups[0].rates[0].k for comparison in found] == [0, 0, 3, 3]


def test_the_values_of_a_setting_are_compared_on_the_same_seeds() -> None:
    rows = [
        *(in_grid("hw", seed, least, 1, LOSS if least == 1 else "") for seed in range(4) for least in (1, 2)),
        in_grid("kip101", 0, 1, 1),
        in_grid("hw", 7, 2, 1),
    ]
    hw, kip101 = compared(*rows, grid=GRID, by=LEAST)
    assert (hw.by, hw.fixed, kip101.fixed) == (LEAST, {"mode": "hw", FLUSH: 1}, {"mode": "kip101", FLUSH: 1})
    assert [group.name for group in hw.groups] == ["2", "1"]
    (pair,) = hw.pairs
    assert (pair.a, pair.b, pair.n, pair.kinds[0].only_b) == ("2", "1", 4, 4)
    assert not kip101.pairs


def test_values_are_named_as_people_read_them() -> None:
    rows = [in_grid("hw", 0, 1, flush) for flush in (NEVER, 1)]
    assert [group.name for group in compared(*rows, grid=GRID, by=FLUSH)[0].groups] == ["1", "never"]


def test_only_what_varied_is_compared() -> None:
    with pytest.raises(InputError, match=r"--by 'min.insync' did not vary in this sweep; did you mean 'min.insync.rep"):
        compared(in_grid("hw", 0, 1, 1), grid=GRID, by="min.insync")
    with pytest.raises(InputError, match="--by 'acks' did not vary in this sweep; one of: mode"):
        compared(run("hw", 0), by="acks")


def test_availability_is_paired() -> None:
    waits = {"hw": (0, 10, 200), "kip101": (0, 30, 0)}
    rows = [run(mode, seed, hw_wait_ms=wait) for mode, found in waits.items() for seed, wait in enumerate(found)]
    (power,) = compared(*rows, run("hw", 3, hw_wait_ms=999, verdict="error"), run("kip101", 4, hw_wait_ms=10))
    level = {one.measure: one for one in power.groups[0].availability}["hw_wait_ms"]
    assert (level.mean, level.median, level.highest) == (70, 10, 200)
    found = {difference.measure: difference for difference in power.pairs[0].availability}
    assert list(found) == list(AVAILABILITY)
    wait = found["hw_wait_ms"]
    assert (wait.mean_a, wait.mean_b, wait.mean) == (70, 10, 60)
    assert wait.low is not None
    assert wait.high is not None
    assert wait.low < 0 < 60 < wait.high
    none = found["leaderless_ms"]
    assert (none.mean, none.low, none.high) == (0, 0, 0)


def test_rows_that_do_not_tell_of_availability_show_none() -> None:
    old: dict[str, Any] = dict.fromkeys(AVAILABILITY, UNKNOWN)
    (power,) = compared(run("hw", 0, **old), run("kip101", 0, **old))
    assert [*power.groups[0].availability, *power.pairs[0].availability] == []


def test_the_share_inside_stands_beside_each_rate() -> None:
    rows = [run("hw", seed, LOSS, inside=seed == 0) for seed in range(4)]
    assert {rate.share_inside for rate in compared(*rows)[0].groups[0].rates} == {0.25}


def test_json_says_its_version() -> None:
    data = as_json(compared(run("hw", 0)))
    assert data["schema_version"] == 5
    assert data["comparisons"][0]["groups"][0]["rates"][0]["kind"] == "any"
