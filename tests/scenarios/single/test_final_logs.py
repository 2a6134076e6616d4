from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scenarios.format.scenario import FinalLog
from scenarios.single.script import RulesInForce, StoryError, check_final_logs
from sim.history.records import VALIDATION_IDS
from sim.protocol.log.log import Log
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RULES = RulesInForce(MODES["hw"].rules, {2: MODES["kip101"].rules})
BATCHES = {"m1": 0, "m2": 2, "m3": 5}


def log(*sends: tuple[int, int], hole: int = 0) -> Log:
    one = Log()
    for first_id, count in sends:
        one.append_new(first_id, count, 1)
    one.leo += hole
    one.append_new(VALIDATION_IDS, 1, 1)
    return one


def check(finals: Iterable[FinalLog], rules: RulesInForce, logs: Mapping[int, Log], batches: Mapping[str, int]) -> None:
    check_final_logs(finals, rules, lambda broker, partition: logs[broker] if partition is None else Log(), batches)


def test_logs_hold_the_scripted_batches_in_order() -> None:
    logs = {1: log((0, 2), (2, 3)), 2: log((2, 3), (0, 2))}
    finals = (FinalLog(1, ("m1", "m2")), FinalLog(1, ("m1", "m2"), leo=5), FinalLog(2, ("m2", "m1")))
    check(finals, RULES, logs, BATCHES)


@pytest.mark.parametrize(
    ("final", "problem"),
    [
        (FinalLog(1, ("m2",)), "final log of broker 1: m1 m2 up to 5, expected m2$"),
        (FinalLog(1, ("m2", "m1")), "m1 m2 up to 5, expected m2 m1$"),
        (FinalLog(1, ()), "m1 m2 up to 5, expected nothing$"),
        (FinalLog(1, ("m1", "m2"), leo=6), "m1 m2 up to 5, expected m1 m2 up to 6$"),
    ],
)
def test_another_log_is_not_the_story(final: FinalLog, problem: str) -> None:
    with pytest.raises(StoryError, match=problem):
        check([final], RULES, {1: log((0, 2), (2, 3))}, BATCHES)


def test_a_hole_shows() -> None:
    check([FinalLog(1, ("m1",), leo=4)], RULES, {1: log((0, 2), hole=2)}, BATCHES)


def test_only_logs_of_brokers_with_these_rules_are_looked_at() -> None:
    logs = {1: log((0, 2)), 2: log((0, 2))}
    epochs = {"follower_truncation": ("leader-epoch", "leader-epoch-rounds")}
    check([FinalLog(1, ("m3",), rules=epochs)], RULES, logs, BATCHES)
    with pytest.raises(StoryError, match="broker 2"):
        check([FinalLog(2, ("m3",), rules=epochs)], RULES, logs, BATCHES)
