from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from faults.bounds import FaultBounds
from faults.kind import KRAFT, OTHER_BROKER, OTHER_REPLICA, REPLICAS, FaultKind, Role
from faults.kinds.cut import Cut
from faults.kinds.kill import Kill
from faults.kinds.min_isr_change import MinIsrChange
from faults.kinds.pause import PauseFault
from faults.kinds.registry import KINDS, kinds_with
from faults.kinds.session_expiry import SessionExpiry
from sim.kernel.streams import Streams
from sim.protocol.kraft.metadata import MIN_ISR
from tests.faults.limits import LIMITS
from tests.faults.traces import MODES, left_over, sample, undeclared

if TYPE_CHECKING:
    from faults.plan import Fault
    from sim.hosts.cluster import Cluster

# How it ends.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_a_fault_that_is_undone_leaves_nothing_behind(name: str, mode: str) -> None:
    kind = KINDS[name]
    effective, found = left_over(kind, mode)
    assert found == {}
    if kind.duration is not None:
        assert effective is (mode == "elr-4.3" or KRAFT not in kind.needs)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_how_it_ends(name: str) -> None:
    assert undeclared(KINDS[name]) == []


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.duration is not None])
def test_undoing_that_is_left_out_is_seen(name: str) -> None:
    forgets = type("Forgets", (type(KINDS[name]),), {"undo": FaultKind.undo})()
    assert undeclared(forgets) == [f"{name} has a duration, but no undo"]
    assert any(left_over(forgets, mode)[1] for mode in MODES)


class HealsOneWay(Cut):
    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        cluster.links.heal(*fault.targets)


class RestoresNothing(MinIsrChange):
    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        cluster.administrator.change_setting(MIN_ISR, 3)


class WakesAnother(PauseFault):
    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        cluster.resume(target + 1)


@pytest.mark.parametrize(
    ("broken", "seen"), [(HealsOneWay(), "link 2-1"), (RestoresNothing(), "min ISR"), (WakesAnother(), "still")]
)
def test_a_wrong_undo_is_found(broken: FaultKind, seen: str) -> None:
    assert undeclared(broken) == []
    effective, found = left_over(broken, "kip320")
    assert effective
    assert seen in found


def test_an_incomplete_or_contradictory_declaration_is_found() -> None:
    class Silent(SessionExpiry):
        remains = ""

    class Both(Kill):
        remains = "the cache"

    class Undone(SessionExpiry):
        def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
            cluster.start(target)

    assert undeclared(Silent()) == ["session-expiry must declare either duration or remains"]
    assert undeclared(Both()) == ["kill must declare either duration or remains"]
    assert undeclared(Undone()) == ["session-expiry has an undo, but no duration"]


# What it declares.


@pytest.mark.parametrize("name", KINDS)
def test_declarations_name_existing_bounds_and_needs(name: str) -> None:
    kind = KINDS[name]
    drawn = {field.name for field in fields(FaultBounds)}
    assert kind.meaning
    assert set(kind.needs) <= {KRAFT, OTHER_REPLICA, OTHER_BROKER}
    assert kind.duration is None or kind.duration.bounds in drawn
    bounds = None if kind.amount is None else kind.amount.bounds
    assert not isinstance(bounds, str) or bounds in {*drawn, REPLICAS}


@pytest.mark.parametrize("name", KINDS)
def test_drawn_and_scripted_faults_are_valid_in_a_plan(name: str) -> None:
    kind = KINDS[name]
    for fault in (sample(kind), *(kind.draw(Streams(seed)("fault"), LIMITS) for seed in range(100))):
        assert fault.kind == name
        assert kind.problem(fault.targets, fault.value) == ""


def test_a_kind_gets_the_roles_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    class Joins(Kill):
        name = "joins"
        roles = (Role.STRIKE_LAST, Role.STOP_LEADER)

    monkeypatch.setitem(KINDS, "joins", Joins())
    assert {role for role in Role if "joins" in kinds_with(role)} == {Role.STRIKE_LAST, Role.STOP_LEADER}
