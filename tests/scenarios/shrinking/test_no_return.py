from __future__ import annotations

from functools import cache

import pytest

from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials, symptom
from scenarios.shrinking.no_return import CLOSE, CONTINUATIONS, FROM_THE_BEGINNING, Curve, Share, curve
from scenarios.shrinking.shrink import shrink
from tests.scenarios.shrinking.failing import failing


@cache
def small() -> tuple[Case, Symptom]:
    """One batch at 2 s is written by a lone broker, which loses power at 10 s."""
    case = failing("sessions", "kip320", 50_029)
    found = symptom(case.row())
    return shrink(case, found, Trials()).case, found


def times(case: Case) -> list[int]:
    return [step["t"] for step in case.run(trace=True).trace or ()]


@cache
def found() -> Curve:
    case, kind = small()
    return curve(case, kind, Trials(), times(case), times(case)[::4])


@pytest.mark.parametrize("faults", [False, True])
def test_a_continuation_is_as_it_was_until_then(faults: bool) -> None:
    case = failing("sessions", "kip320", 50_029)
    whole = case.run(trace=True)
    after_us = whole.faults[1]["at_us"]
    then = case.continued(after_us, 1, faults=faults).run(trace=True)
    before = [step for step in whole.trace or () if step["t"] <= after_us]
    assert [step for step in then.trace or () if step["t"] <= after_us] == before
    assert then.row["digest"] != whole.row["digest"]
    later = [fault for fault in then.faults if fault["at_us"] > after_us]
    assert bool(later) is faults
    assert then.row["error"] == ""


def test_latencies_of_a_continuation_are_its_own() -> None:
    case, _ = small()
    digests = [case.continued(FROM_THE_BEGINNING, number, faults=True).row()["digest"] for number in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]
    assert case.row()["digest"] not in digests


@pytest.mark.world
def test_an_unwritten_batch_is_lost_with_its_machines_power() -> None:
    step = found().step
    assert step is not None
    sooner, later = step
    assert (sooner.violating, later.violating) == (0, later.runs)
    assert later.after_us == small()[0].faults[0].at_us
    assert not [at_us for at_us in times(small()[0]) if sooner.after_us < at_us < later.after_us]


@pytest.mark.world
def test_both_sides_of_the_step_and_the_ends_are_looked_at_closely() -> None:
    shares = found().shares
    close = [share for share in shares if share.runs == CONTINUATIONS]
    assert {shares[0], shares[-1], *(found().step or ())} <= set(close)
    assert len(close) <= CLOSE
    assert shares[0].after_us == FROM_THE_BEGINNING
    assert list(shares) == sorted(shares, key=lambda share: share.after_us)
    assert found().whole


def test_a_used_up_budget_leaves_fewer_continuations_and_says_so() -> None:
    case, kind = small()
    begun = Trials(lambda: begun.runs >= 50)
    cut = curve(case, kind, begun, times(case), times(case)[::4])
    assert not cut.whole
    assert sum(share.runs for share in cut.shares) == 49  # One is the run itself, to know how long it is.
    begun = Trials(lambda: begun.runs >= 50)
    unmarked = curve(case, kind, begun, times(case), ())  # A story without a step, as of a run that sends nothing.
    assert [share.after_us for share in unmarked.shares][:: len(unmarked.shares) - 1] == [
        FROM_THE_BEGINNING,
        times(case)[-1],
    ]
    assert curve(case, kind, Trials(lambda: True), times(case), times(case)) == Curve((), None, whole=False)


@pytest.mark.world
def test_what_does_not_rise_has_no_point_of_no_return() -> None:
    case, kind = small()
    kept = case.with_faults(())
    flat = curve(kept, kind, Trials(), times(kept), times(kept)[::8])
    assert flat.step is None
    assert all(share.rate == 0 for share in flat.shares)


def test_a_share_is_that_of_its_continuations() -> None:
    assert Share(1, 50, 200).rate == 0.25
