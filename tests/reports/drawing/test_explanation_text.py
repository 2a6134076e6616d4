"""The point of no return in words."""

from __future__ import annotations

from reports.drawing import explanation_text
from scenarios.shrinking.no_return import FROM_THE_BEGINNING, Curve, Share


def test_times_that_milliseconds_do_not_tell_apart_have_microseconds() -> None:
    begin, before, at, end = (Share(us, 0, 20) for us in (FROM_THE_BEGINNING, 9_999_999, 10_000_001, 14_625_000))
    curve = Curve((begin, before, at, end), (before, at), whole=True)
    assert [row[0] for row in explanation_text.shares(curve)] == [
        "the beginning",
        "9.999999 s",
        "10.000001 s",
        "14.625 s",
    ]
    (turn,) = explanation_text.turn(curve, "committed-loss")
    assert turn.startswith("From 10.000001 s on ")
    assert "; from 9.999999 s, " in turn
