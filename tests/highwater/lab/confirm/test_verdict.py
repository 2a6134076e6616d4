"""What attempts decide, without brokers."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.lab.confirm.request import exit_code


def attempt(*rows: tuple[str, str], failed: str = "") -> dict[str, Any]:
    """One that differs in some rows, or was not brought to its story; otherwise one that agrees."""
    equal = {"what": "log of broker 1", "real": "0:m1", "agrees": True}
    differing = [{"what": what, "real": real, "agrees": False} for what, real in rows]
    return {"agrees": not rows and not failed, "failed": failed, "rows": [equal, *differing]}


AGREES, LATE = attempt(), attempt(failed="line 3 waited in vain")
LOST, VERDICT = ("log of broker 2", "-"), ("verdict", "committed-loss")


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ([AGREES], 0),
        ([LATE], None),
        ([LATE, AGREES], 0),
        ([LATE, LATE], None),
        ([LATE, LATE, LATE], 3),
        ([attempt(LOST)], None),
        ([attempt(LOST), attempt(LOST, VERDICT)], 1),
        ([attempt(LOST), LATE, attempt(LOST)], 1),
        ([attempt(LOST), AGREES], 3),
        ([attempt(LOST), attempt(VERDICT)], None),
        ([attempt(LOST), attempt(("log of broker 2", "0:m1")), attempt(VERDICT)], 3),
        ([attempt(LOST), LATE, LATE], 3),
        ([attempt(LOST, failed="the ISR shrank")] * 2, None),
        ([attempt(LOST, failed="the ISR shrank"), AGREES], 0),
    ],
)
def test_a_difference_counts_if_it_comes_again(made: list[dict[str, Any]], code: int | None) -> None:
    assert exit_code(made, 3) == code


def test_one_attempt_that_differs_counts_if_it_is_the_only_one() -> None:
    assert exit_code([attempt(LOST)], 1) == 1
    assert exit_code([LATE], 1) == 3
