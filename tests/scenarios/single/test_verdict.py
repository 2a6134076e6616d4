from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scenarios.format.catalogue import load
from scenarios.format.scenario import AlsoOccurs, Expectation
from scenarios.single.ended_run import as_expected
from scenarios.single.vacuity import is_vacuous
from sim.history.findings import Violation
from tests.named import run_row

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

LOSS, LOSS_OUTSIDE = Violation("committed-loss", 1, ""), Violation("committed-loss", 1, "", inside=False)
OTHER = Violation("divergence", 1, "")
WARNING = Violation("leader-incomplete", 1, "")


def scripted(verdict: str, *, also: str = "") -> Scenario:
    known = (AlsoOccurs("divergence", ("hw",), also, "why"),) if also else ()
    return replace(load("canary"), expect={"hw": Expectation(verdict, ("committed-loss",))}, also=known)


@pytest.mark.parametrize(
    ("scenario", "violations", "expected"),
    [
        (scripted("violates"), [LOSS], True),
        (scripted("violates"), [LOSS_OUTSIDE], True),
        (scripted("violates"), [], False),
        (scripted("violates"), [OTHER], False),
        (scripted("violates"), [LOSS, OTHER], False),
        (scripted("violates", also="inside"), [LOSS, OTHER], True),
        (scripted("violates", also="outside"), [LOSS, OTHER], False),
        (scripted("clean"), [], True),
        (scripted("clean"), [LOSS_OUTSIDE], False),
        (scripted("clean"), [OTHER], False),
        (scripted("clean", also="inside"), [OTHER], True),
        (scripted("clean", also="inside"), [], True),
        (scripted("violates"), [LOSS, WARNING], True),
        (scripted("violates"), [WARNING], False),
        (scripted("clean"), [WARNING], False),
        (scripted("may-violate"), [LOSS, OTHER], True),
        (replace(scripted("clean"), expect={}), [LOSS], True),
    ],
)
def test_a_scripted_run_is_judged_by_expected_and_listed_kinds(
    scenario: Scenario, violations: list[Violation], expected: bool
) -> None:
    assert as_expected(scenario, "hw", violations) == expected


@pytest.mark.parametrize(
    ("expectation", "violations", "expected"),
    [
        (Expectation("may-violate"), [LOSS], True),
        (Expectation("violates", ("committed-loss",)), [], True),
        (Expectation("clean"), [LOSS], False),
        (Expectation("clean"), [LOSS_OUTSIDE], True),
        (Expectation("clean", ("divergence",)), [LOSS], True),
        (Expectation("clean", ("divergence",)), [OTHER], False),
        (Expectation("clean"), [WARNING], False),
        (Expectation("clean", ("divergence",)), [WARNING], True),
    ],
)
def test_a_drawn_run_is_judged_by_what_lies_inside_the_promise(
    power: Scenario, expectation: Expectation, violations: list[Violation], expected: bool
) -> None:
    assert as_expected(replace(power, expect={"hw": expectation}), "hw", violations) == expected


@pytest.mark.parametrize(
    ("batches", "faults", "elections", "vacuous"),
    [(20, 3, 1, False), (19, 3, 1, True), (20, 2, 1, True), (20, 3, 0, True)],
)
def test_a_drawn_run_in_which_too_little_happened_does_not_count(
    power: Scenario, batches: int, faults: int, elections: int, vacuous: bool
) -> None:
    assert is_vacuous(power, batches_acked=batches, faults=faults, elections=elections) == vacuous
    assert not is_vacuous(load("canary"), batches_acked=0, faults=0, elections=0)


@pytest.mark.parametrize(
    ("verdict", "violations", "expected"),
    [
        ("violates", [], True),
        ("violates", [LOSS], True),
        ("violates", [OTHER], False),
        ("clean", [], True),
        ("clean", [LOSS], False),
    ],
)
def test_a_run_that_was_given_up_may_have_yet_to_violate(
    verdict: str, violations: list[Violation], expected: bool
) -> None:
    assert as_expected(scripted(verdict), "hw", violations, to_the_end=False) == expected


def test_a_stalled_run_has_a_replay_line() -> None:
    """The scenario lets it stall, so it is as expected; somebody may want to know what it waits for."""
    row = run_row(load("elr-chaos"), "elr", 57)
    assert (row["verdict"], row["violations"], row["expected"]) == ("stalled", "", True)
    assert row["replay"] == f"highwater replay elr-chaos --mode elr --seed 57 --expect-digest {row['digest']}"
