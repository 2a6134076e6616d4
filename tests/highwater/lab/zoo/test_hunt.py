from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from highwater.lab.zoo.hunt import NOT_FOUND, TargetHunt, TargetSummary, caused, hunt, ranges, replay, same_plan
from highwater.lab.zoo.targets import repaired, target
from scenarios.format.blow import parse
from scenarios.single.run import run_row

if TYPE_CHECKING:
    from highwater.lab.zoo.targets import Target


def hunted(tried: int, seed: int = NOT_FOUND, name: str = "join-below-hw") -> TargetHunt:
    return TargetHunt(target(name), False, 0, tried, tried / 100, tried, 3, 0, seed, ("committed-loss",))


def in_scenario(name: str, scenario: str) -> Target:
    one = target(name)
    return replace(one, runs=replace(one.runs, scenario=scenario))


def test_ranges_are_disjoint_and_equally_long() -> None:
    assert ranges(range(10, 21), 3) == [range(10, 13), range(13, 16), range(16, 19)]


def test_ranges_without_a_find_count_as_the_longest() -> None:
    summary = TargetSummary([hunted(500), hunted(40, 39), hunted(90, 89)])
    assert (summary.found, summary.seeds, summary.seconds) == (2, 90, 0.9)
    assert summary.within_budget is True
    assert TargetSummary([hunted(500), hunted(40, 39)]).seeds is None


def test_a_budget_is_missed_only_when_it_is_used_up() -> None:
    assert TargetSummary([hunted(500)]).within_budget is None
    assert TargetSummary([hunted(10_000)]).within_budget is False
    assert TargetSummary([hunted(10_001, 10_000)]).within_budget is False


def test_counts_are_those_of_all_ranges() -> None:
    summary = TargetSummary([hunted(500), hunted(40, 39)])
    assert (summary.runs, summary.took, summary.differed, summary.errors) == (540, 540, 6, 0)
    assert summary.first_find == hunted(40, 39)


def test_a_mark_is_open_until_it_is_passed() -> None:
    assert hunted(9, 8, "hw-truncation").seconds == 0.09
    kept = [
        TargetSummary([hunted(tried, seed, "hw-truncation")]).keeps_mark for tried, seed in ((9, 8), (11, 10), (9, -1))
    ]
    assert kept == [True, False, None]
    assert TargetSummary([hunted(11, NOT_FOUND, "hw-truncation")]).keeps_mark is False
    assert TargetSummary([hunted(9, 8)]).keeps_mark is None


EPOCH_START: Final = in_scenario("join-below-epoch-start", "windows")
FINDS: Final = range(30_000_106, 30_000_110)


def test_a_blow_at_the_difference_finds_what_the_plain_run_of_the_seed_does_not() -> None:
    assert not hunt(EPOCH_START, FINDS).found
    found = hunt(EPOCH_START, FINDS, at_difference=8)
    assert found.found
    assert found.continued > 0
    assert found.blow.startswith("difference:")
    assert replay(found).endswith(f"--seed {found.seed} --rule mutant=join-below-epoch-start --blow {found.blow}")


def test_a_find_is_repeated_from_its_blow_and_its_plan_is_clean_without_the_mutant() -> None:
    found = hunt(EPOCH_START, FINDS, at_difference=8)
    runs = EPOCH_START.runs
    scenario, (wrong, right) = runs.load(), runs.modes
    row = run_row(replace(scenario, blows=parse(found.blow)), wrong, found.seed)
    assert set(found.kinds) <= set(row["violations_inside"].split(","))
    recorded = same_plan(scenario, wrong, row)
    assert not recorded.blows
    assert run_row(recorded, wrong, found.seed)["digest"] == row["digest"]
    assert set(found.kinds).isdisjoint(run_row(recorded, right, found.seed)["violations"].split(","))
    assert caused(runs, scenario, row) == found.kinds
    assert caused(replace(runs, right=runs.wrong), scenario, row) == ()


def test_a_mutant_that_decides_nothing_otherwise_finds_nothing() -> None:
    found = hunt(target("fetch-response-at-another-offset"), range(20), at_difference=5)
    assert (found.differed, found.continued, found.found) == (0, 0, False)


def test_a_repair_is_hunted_where_the_repaired_run_differs() -> None:
    join = repaired("kip279", "isr_join", "leader-epoch-start", "chaos", {"default.replication.factor": 3})
    found = hunt(join, range(31_000_610, 31_000_616), at_difference=8)
    assert found.took == found.tried
    assert 0 < found.differed < found.tried
    assert found.continued >= 1
    wrong, right = join.runs.modes
    assert wrong.rules.isr_join != right.rules.isr_join == "leader-epoch-start"
    alike = repaired("kip320", "isr_join", "leader-epoch-start", "chaos", {})
    assert hunt(alike, range(3), at_difference=8).continued == 0


def test_a_bug_is_found_where_its_repairs_cure_the_run_and_other_repairs_do_not() -> None:
    one = target("reassignment-back")
    scenario = one.runs.load()
    row = run_row(scenario, one.runs.modes[0], 253)
    kinds = caused(one.runs, scenario, row)
    assert kinds
    assert set(kinds) <= {"committed-loss", "exposed-loss"}
    for runs in (
        replace(one.runs, kinds=("divergence",)),
        replace(one.runs, is_promised=False),
        replace(one.runs, right=(("resubmitted_reassignment", "replaces-marks"),)),
        replace(one.runs, also_by=(("resubmitted_reassignment", "replaces-marks"),)),
        replace(one.runs, not_by=one.runs.right),
        replace(one.runs, lossy_ends=-1),
    ):
        assert caused(runs, scenario, row) == ()


def test_a_bug_that_no_promise_covers_is_found_outside_the_promise() -> None:
    one = target("last-replica-standing")
    found = hunt(one, range(60_000_000, 60_000_020))
    assert found.kinds == ("committed-loss",)
    assert replay(found) == f"highwater run elr-chaos --mode kraft --seed {found.seed}"
