from __future__ import annotations

import pytest

from sim.auto_offset_reset import NO_DURATION, duration_us
from sim.config import parse
from sim.errors import InputError


@pytest.mark.parametrize(
    ("policy", "expected_us"),
    [
        ("by_duration:PT5S", 5_000_000),
        ("by_duration:PT1H30M", 5_400_000_000),
        ("by_duration:P2DT0.5S", 172_800_500_000),
        ("by_duration:P1D", 86_400_000_000),
        ("by_duration:PT0S", 0),
        ("latest", NO_DURATION),
        ("by_duration:", NO_DURATION),
        ("by_duration:P", NO_DURATION),
        ("by_duration:PT", NO_DURATION),
        ("by_duration:PT-5S", NO_DURATION),
        ("by_duration:5s", NO_DURATION),
    ],
)
def test_durations_are_those_of_java(policy: str, expected_us: int) -> None:
    assert duration_us(policy) == expected_us


def test_a_setting_takes_the_words_and_the_form() -> None:
    assert parse("auto.offset.reset", "by_duration:PT5S") == "by_duration:PT5S"
    with pytest.raises(InputError, match=r"did you mean 'by_duration:PnDTnHnMn\.nS'"):
        parse("auto.offset.reset", "by_duration:5s")
    with pytest.raises(InputError, match="did you mean 'latest'"):
        parse("auto.offset.reset", "lastest")
