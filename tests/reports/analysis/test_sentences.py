from __future__ import annotations

import pytest

from reports.analysis import sentences
from reports.analysis.compare import ANY
from scenarios.single.rows import AVAILABILITY
from sim.checkers.registry import FINDINGS
from sim.errors import InputError
from tests.reports.analysis.test_compare import GRID, LOSS, compared, in_grid, run


def test_the_first_sentence_tells_rates_side_and_what_safety_costs() -> None:
    rows = [run("hw", seed, LOSS if seed < 6 else "", leaderless_ms=1_000) for seed in range(24)]
    rows += [run("elr", seed, LOSS if seed < 3 else "", kinds_inside="", leaderless_ms=3_500) for seed in range(24)]
    (power,) = compared(*rows)
    assert sentences.first(power) == (
        "On the same 24 seeds of power, hw loses records acknowledged with acks=all in 25 % of runs and elr in 12.5 %. "
        "Of these losses Kafka promises to prevent 6 with hw and none with elr. "
        "Price of elr against hw, mean of a run: +2.5 s without a leader."
    )


def test_runs_that_wait_for_an_operator_are_told() -> None:
    verdicts = ["stalled" if seed < 2 else "ok" for seed in range(24)]
    rows = [run("hw", seed) for seed in range(24)]
    rows += [run("elr", seed, verdict=verdict) for seed, verdict in enumerate(verdicts)]
    said = sentences.first(compared(*rows)[0])
    assert said.endswith(" 2 runs of elr end without a leader until an operator acts (stalled); with hw none.")


def test_runs_without_progress_are_told_beside_losses() -> None:
    kinds = {0: LOSS, 1: "no-progress"}
    rows = [run("hw", seed, LOSS if seed < 3 else "") for seed in range(24)]
    rows += [run("elr", seed, kinds.get(seed, "")) for seed in range(24)]
    said = sentences.first(compared(*rows)[0])
    assert " 1 run of elr makes no progress after all faults have ended (no-progress); with hw none." in said


def test_what_was_not_seen_has_its_upper_bound() -> None:
    rows = [run(mode, seed) for mode in ("hw", "kip101") for seed in range(100)]
    (power,) = compared(*rows)
    assert sentences.first(power) == (
        "On the same 100 seeds of power, hw violates something in none of 100 (<= 3.62 %) "
        "and kip101 in none of 100 (<= 3.62 %)."
    )


def test_few_runs_have_no_shares() -> None:
    (power,) = compared(*(run("hw", seed, LOSS if seed < 2 else "") for seed in range(19)), run("elr", 0))
    assert "%" not in sentences.first(power)
    assert "hw loses records acknowledged with acks=all in 2 of 19 and elr in none of 1" in sentences.first(power)
    assert "to prevent 2 with hw." in sentences.first(power)


def test_seeds_that_one_group_lacks_are_not_the_same() -> None:
    (power,) = compared(*(run("hw", seed) for seed in range(5)), *(run("elr", seed) for seed in range(3, 9)))
    assert power.common_seeds == 2
    assert sentences.first(power) == (
        "On 5 to 6 runs of power (2 seeds in common), hw violates something in none of 5 and elr in none of 6."
    )


def test_without_a_completed_run_nothing_is_compared() -> None:
    (power,) = compared(*(run(mode, seed, verdict="error") for mode in ("hw", "elr") for seed in range(3)))
    assert sentences.first(power) == "Each run of power ended with an error, so nothing can be compared."


def test_differences_that_may_be_chance_are_not_told() -> None:
    rows = [run("hw", seed, leaderless_ms=seed % 2) for seed in range(20)]
    rows += [run("elr", seed, leaderless_ms=(seed + 1) % 2) for seed in range(20)]
    assert "leader" not in sentences.first(compared(*rows)[0])


def test_values_of_a_setting_are_named_with_it() -> None:
    rows = [in_grid("hw", seed, least, 1, LOSS) for seed in range(4) for least in (1, 2)]
    (hw,) = compared(*rows, grid=GRID, by="min.insync.replicas")
    assert "min.insync.replicas = 2 loses records" in sentences.first(hw)
    assert "of power with mode = hw, log.flush.interval.messages = 1," in sentences.first(hw)


def test_all_of_it_outside_is_said() -> None:
    (power,) = compared(run("hw", 0, LOSS, kinds_inside=""), run("hw", 1))
    assert sentences.first(power).endswith(f"Kafka promises to prevent none of these losses: {sentences.BEYOND}.")


def test_each_measure_has_a_unit() -> None:
    assert {*sentences.MEASURES} == {*AVAILABILITY}
    assert sentences.measured("leaderless_ms", [27_350, 120_000_000]) == ("without a leader, s", ["27.35", "120000"])
    assert sentences.measured("another", [3], "+") == ("another", ["+3"])


def test_sentences_name_known_violations_and_others_by_kind() -> None:
    assert {*sentences.DOES} - {ANY} <= {kind for kind, finding in FINDINGS.items() if not finding.is_warning}
    assert sentences.does("global-loss") == "shows global-loss"


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    assert sentences.check_kind("divergence") == "divergence"
    assert [sentences.check_kind(kind) for kind in FINDINGS] == list(FINDINGS)
    with pytest.raises(InputError, match=r"no kind of violation; did you mean .committed-loss."):
        sentences.check_kind("comitted-loss")
