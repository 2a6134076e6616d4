from __future__ import annotations

from typing import Any

import pytest

from scenarios.format.catalogue import load
from scenarios.single.draws import draw
from sim.kernel.scheduler import BudgetError

SCENARIO = load("reassignments")
assert SCENARIO.faults is not None
GIVEN: dict[str, Any] = {
    "seed": 1,
    "faults": SCENARIO.faults,
    "workload": SCENARIO.workload,
    "brokers": (1, 2, 3),
    "all_brokers": (1, 2, 3, 4),
    "acks": -1,
    "event_budget": 1_000_000,
    "record_budget": 1_000_000,
    "state_budget": 500_000,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 2), ("workload", None), ("brokers", (1, 2)), ("all_brokers", (1, 2, 3)), ("acks", 1)],
)
def test_what_was_drawn_before_decides_nothing(name: str, value: Any) -> None:
    first, second = draw(*GIVEN.values()), draw(*{**GIVEN, name: value}.values())
    assert first != second
    draw.cache_clear()
    assert second == draw(*{**GIVEN, name: value}.values())
    assert first == draw(*GIVEN.values())


def test_the_modes_of_a_seed_share_what_is_drawn() -> None:
    first = draw(*GIVEN.values())
    assert draw(*GIVEN.values()) is first
    assert draw(*{**GIVEN, "seed": 2}.values()) is not first


def test_a_budget_that_is_used_up_is_told_each_time() -> None:
    for name in ("event", "record", "state"):
        for _ in range(2):
            with pytest.raises(BudgetError, match=rf"sim\.{name}\.budget"):
                draw(*{**GIVEN, f"{name}_budget": 1}.values())
