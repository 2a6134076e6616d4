from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sim.checkers.checker import RunEnd
from sim.checkers.stale_setting import StaleSetting
from sim.history.history import History
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.config import Value

SET: Mapping[str, Value] = {MIN_ISR: 2, UNCLEAN_ELECTION: False, ELR_FEATURE: 1}
CONTROLLER, BROKER = SET, {MIN_ISR: 2, UNCLEAN_ELECTION: False}


def found(changed: Mapping[str, Value], in_force: Mapping[int, Mapping[str, Value]], **effective: int) -> list[str]:
    """What is found at the end, where brokers 1 and 2 have replicas of which this is the effective min ISR."""
    live: Any = {
        broker: SimpleNamespace(min_insync_replicas=effective.get(f"broker_{broker}", 2), replicas=(1, 2))
        for broker in (1, 2)
    }
    history = History()
    checker = StaleSetting(history)
    checker.final(RunEnd(None, [], live, 9, changed, in_force))
    assert checker.decided == bool(changed)
    assert all(violation.kind == "stale-setting" and violation.at_us == 9 for violation in history.findings.violations)
    return [violation.detail for violation in history.findings.violations]


def test_settings_that_were_set_are_in_force() -> None:
    assert found(SET, {0: CONTROLLER, 1: BROKER, 2: BROKER}) == []


def test_a_broker_with_another_value_is_found() -> None:
    assert found(SET, {0: CONTROLLER, 1: BROKER, 2: {**BROKER, MIN_ISR: 1}}) == [
        "broker 2 uses min.insync.replicas=1, which was set to 2"
    ]
    assert found(SET, {1: {MIN_ISR: 2, UNCLEAN_ELECTION: True}}) == [
        "broker 1 uses unclean.leader.election.enable=true, which was set to false"
    ]


def test_a_controller_with_another_value_is_found() -> None:
    (detail,) = found(SET, {0: {**CONTROLLER, ELR_FEATURE: 0}, 1: {**BROKER, MIN_ISR: 3}})
    assert detail.split("; ") == [
        "the controller uses eligible.leader.replicas.version=0, which was set to 1",
        "broker 1 uses min.insync.replicas=3, which was set to 2",
    ]


def test_a_replica_that_uses_another_value_than_its_broker_is_found() -> None:
    assert found(SET, {1: BROKER, 2: BROKER}, broker_2=1) == ["broker 2 uses min.insync.replicas=1, which was set to 2"]


def test_the_effective_value_of_a_replica_may_be_capped() -> None:
    in_force = {1: {MIN_ISR: 3}}
    assert found({MIN_ISR: 3}, in_force, broker_1=2) == []
    assert found({MIN_ISR: 3}, in_force, broker_1=3) == []
    assert found({MIN_ISR: 3}, in_force, broker_1=1) != []


def test_what_was_never_set_is_not_judged() -> None:
    assert found({}, {0: CONTROLLER, 1: {MIN_ISR: 1}}) == []
    assert found({MIN_ISR: 2}, {1: {MIN_ISR: 2, UNCLEAN_ELECTION: True}}) == []


def test_a_broker_that_a_change_has_not_reached_is_not_judged() -> None:
    assert found(SET, {0: CONTROLLER, 2: BROKER}, broker_1=1) == []
