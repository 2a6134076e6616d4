from __future__ import annotations

from typing import Any

import pytest

from faults.plan import Fault, Plan
from tests.verification.hunt.causal import IDLE, LATER, UNMET, Observed, differs, is_unmet, lost_at, outside

SECOND_US = 1_000_000


def step(at_s: float, name: str, **fields: Any) -> dict[str, Any]:
    return {"t": round(at_s * SECOND_US), "step": name, **fields}


def append(at_s: float, broker: int, record: int, offset: int, count: int = 1) -> dict[str, Any]:
    return step(at_s, "append", broker=broker, record=record, offset=offset, last=offset + count - 1)


def ack(at_s: float, record: int, count: int = 1, acks: int = -1) -> dict[str, Any]:
    return step(at_s, "ack", record=record, count=count, acks=acks)


TWO_COPIES = [append(1, 1, 0, 0, 2), append(2, 2, 0, 0, 2), ack(3, 0, 2)]


@pytest.mark.parametrize(
    ("steps", "lost_s"),
    [
        ([*TWO_COPIES, step(4, "truncate", broker=2, removed=1)], None),
        ([*TWO_COPIES, step(4, "truncate", broker=2, removed=1), step(5, "power-loss", broker=1, offset=1)], 5),
        ([*TWO_COPIES, step(4, "deleted", broker=1), step(5, "disk-replaced", broker=2, offset=1)], 5),
        ([*TWO_COPIES, step(4, "kill", broker=1, offset=0), step(5, "power-loss", broker=2, offset=1)], None),
        ([append(1, 1, 0, 0), step(2, "power-loss", broker=1, offset=1), ack(3, 0)], 3),
        ([append(1, 1, 0, 0), step(2, "power-loss", broker=1, offset=1), append(3, 1, 0, 0), ack(4, 0)], None),
        ([append(1, 1, 0, 0), ack(2, 0, acks=1), step(3, "power-loss", broker=1, offset=1)], None),
        ([append(1, 1, 0, 0), append(1, 1, 1, 1), ack(2, 0), step(3, "truncate", broker=1, removed=1)], None),
        ([append(1, 1, 0, 0), append(1, 1, 1, 1), ack(2, 0), step(3, "log-start", broker=1, offset=1)], 3),
    ],
)
def test_a_record_is_lost_with_its_last_copy(steps: list[dict[str, Any]], lost_s: int | None) -> None:
    assert lost_at(steps).get("committed-loss") == (None if lost_s is None else lost_s * SECOND_US)


def test_shown_record_is_lost_where_it_was_shown() -> None:
    read = step(2, "read", record=0, offset=0, last=0)
    moved = [append(1, 1, 0, 0), read, step(3, "truncate", broker=1, removed=1), append(4, 1, 0, 5), ack(5, 0)]
    assert lost_at(moved) == {"exposed-loss": 5 * SECOND_US}
    # Without a success it may be sent again, and come to the same place.
    assert lost_at(moved[:-1]) == {}


CUT = Fault("cut", 10 * SECOND_US, (1, 2), lasts_us=5 * SECOND_US)


@pytest.mark.parametrize(
    ("sent", "steps", "unmet"),
    [
        ([], [], True),
        ([(12, 1, 2)], [], False),
        ([(9.999, 1, 2)], [], False),
        ([(9, 1, 2), (16, 1, 2), (12, 2, 1), (12, 1, 3)], [], True),
        ([], [step(12, "kill", broker=2)], False),
        ([], [step(12, "kill", broker=3), step(16, "halt", broker=1)], True),
    ],
)
def test_a_cut_is_met_by_messages_in_its_direction_and_by_ends(
    sent: list[tuple[float, int, int]], steps: list[dict[str, Any]], unmet: bool
) -> None:
    seen = Observed(plan=Plan((CUT,)), strikes={0: [(CUT.at_us, True)]})
    seen.trace = [step(10, "cut", source=1, target=2), *steps]
    seen.sent = [(round(at_s * SECOND_US), source, target) for at_s, source, target in sent]
    assert is_unmet(seen, 0) == unmet


def test_faults_are_sorted() -> None:
    kinds = {"divergence": 20 * SECOND_US, "no-progress": 90 * SECOND_US}
    faults = [
        Fault("session-expiry", 5, (1,)),
        Fault("kill", 6, (1,)),
        Fault("kill", 7, (1,)),
        CUT,
        Fault("kill", 8, (2,)),
    ]
    strikes = {0: [(5, False)], 1: [(6, True)], 2: [(7, False)], 3: [(CUT.at_us, True)], 4: [(30 * SECOND_US, True)]}
    seen = Observed(kinds, Plan(tuple(faults)), strikes)
    # The kill of broker 1 that found it stopped starts it all the same.
    assert outside(seen) == [(0, IDLE, [*kinds]), (3, UNMET, [*kinds]), (4, LATER, ["divergence"])]


def test_steps_that_must_be_the_same() -> None:
    seen = Observed(strikes={0: [(3 * SECOND_US, True)]}, trace=[step(1, "hw"), step(4, "hw")])
    other = Observed(trace=[step(1, "hw"), step(5, "hw")])
    assert differs(seen, other, 0, LATER) == ""
    assert "steps differ" in differs(seen, other, 0, IDLE)
    cut = Observed(trace=[*seen.trace, step(4, "cut"), step(5, "heal")])
    assert differs(cut, seen, 0, UNMET) == ""
    assert "steps differ" in differs(cut, seen, 0, IDLE)
