from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scenarios.format.catalogue import load
from sim.checkers.hw_above_isr import HwAboveIsr
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import Partition
from tests.named import run_row
from tests.sim.checkers.driven import made
from tests.sim.checkers.histories import commit, make, replica, warnings

FOUND = ["hw-above-isr"]
BATCHES = [Batch(offset, offset, 0, offset) for offset in range(10)]


class World:
    """Brokers 1 to 3 have 10 records each, the ISR is all of them, and 1 leads in epoch 0 with HW 0."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.history = History()
        self.checker = HwAboveIsr(self.history)
        self.partitions: dict[int, Partition] = {}
        for broker in (1, 2, 3):
            self.starts(broker, 10)
        make(self.history, *BATCHES)
        commit(self.history, BATCHES, 1)
        self.isr(isr)
        self.leads(1, 0)

    @property
    def found(self) -> list[str]:
        return warnings(self.history)

    @property
    def detail(self) -> str:
        return self.history.findings.warnings[0].detail

    def starts(self, broker: int, leo: int, hw: int = 0, lost: int = 0) -> list[str]:
        one = replica(*BATCHES[:leo], hw=hw or -1)
        assert isinstance(one, Partition)
        one.broker = broker
        one.hw = hw
        self.partitions[broker] = one
        gone = BATCHES[leo : leo + lost]
        step = made(steps.Recovered, broker=broker, _replica=one, other=hw, lost=gone, at_us=5)
        self.checker.on_recovered(step)
        return self.found

    def leads(self, broker: int, epoch: int, isr: tuple[int, ...] = (1, 2, 3)) -> list[str]:
        one = self.partitions[broker]
        decision = LeaderAndIsr("t-0", broker, epoch, isr, epoch, (1, 2, 3))
        step = steps.Lead(broker, one, decision)
        step.at_us = 6
        self.checker.on_lead(step)
        one.become_leader(decision, 0)
        return self.found

    def raises(self, broker: int, hw: int) -> list[str]:
        one = self.partitions[broker]
        previous, one.hw = one.hw, hw
        step = steps.HighWatermark(broker, one, previous)
        step.at_us = 7
        self.checker.on_hw(step)
        return self.found

    def isr(self, isr: tuple[int, ...], before: tuple[int, ...] = (), elr: tuple[int, ...] = ()) -> list[str]:
        step = steps.Isr(isr, 0, before, elr)
        step.at_us = 6
        self.checker.on_isr(step)
        return self.found

    def truncates(self, broker: int, leo: int) -> list[str]:
        one = self.partitions[broker]
        removed = one.log.truncate_to(leo)
        step = steps.Truncate(broker, one, removed)
        step.at_us = 8
        self.checker.on_truncate(step)
        return self.found

    def deletes(self, broker: int) -> list[str]:
        removed = self.partitions[broker].log.truncate_fully(0)
        step: Any = SimpleNamespace(broker=broker, replica=replica(), removed=removed, at_us=8)
        self.checker.on_deleted(step)
        return self.found

    def appends(self, broker: int, leo: int) -> None:
        log = self.partitions[broker].log
        for batch in BATCHES[log.leo : leo]:
            log.append(batch)


def test_an_hw_that_every_member_had() -> None:
    world = World()
    assert world.raises(1, 10) == []
    assert world.raises(2, 10) == []
    world.checker.on_read(made(steps.Read, consumer=1001, epoch=0, other=10, at_us=7))
    world.checker.on_end_offset(made(steps.EndOffset, epoch=0, offset=10, at_us=7))
    assert world.leads(2, 1) == []
    assert world.found == []


@pytest.mark.parametrize("broker", [1, 2])
def test_an_hw_above_the_leo_of_a_member(broker: int) -> None:
    world = World()
    world.truncates(3, 6)
    assert world.raises(broker, 6) == []
    assert world.raises(broker, 7) == FOUND
    assert f"broker {broker} {'leads' if broker == 1 else 'follows'} and raises its HW 7, " in world.detail
    assert "but broker 3 of the ISR [1, 2, 3] has LEO 6" in world.detail
    assert world.history.findings.warnings[0].ids == {6}
    assert world.raises(broker, 9) == FOUND  # Once for each member and leader epoch.


def test_an_hw_at_which_a_member_has_been_compared_before() -> None:
    world = World()
    assert world.raises(1, 8) == []
    world.truncates(3, 8)
    assert world.raises(2, 8) == []
    world.isr((1, 2), (1, 2, 3))
    world.truncates(3, 2)
    assert world.raises(1, 10) == []


def test_an_hw_that_goes_back_claims_nothing() -> None:
    world = World()
    world.truncates(3, 2)
    world.partitions[2].hw = 9
    assert world.raises(2, 5) == []


def test_a_restart_takes_its_hw_from_the_file_or_wrongly_from_the_leo() -> None:
    world = World()
    world.truncates(3, 4)
    assert world.starts(2, 10, hw=4) == []
    assert world.starts(2, 10, hw=10) == FOUND


def test_answers_to_consumers() -> None:
    world = World()
    world.truncates(3, 4)
    world.checker.on_read(made(steps.Read, consumer=1001, epoch=0, other=4, at_us=7))
    assert world.found == []
    world.checker.on_read(made(steps.Read, consumer=1001, epoch=0, other=5, at_us=7))
    world.checker.on_end_offset(made(steps.EndOffset, epoch=0, offset=5, at_us=7))
    assert world.found == FOUND * 2
    while_it_lacks_one = ", but broker 3 of the ISR [1, 2, 3] has LEO 4"
    assert [warning.detail for warning in world.history.findings.warnings] == [
        f"a consumer reads records below offset 5{while_it_lacks_one}",
        f"a consumer gets end offset 5{while_it_lacks_one}",
    ]


def test_a_leader_that_begins_with_an_hw_above_a_member() -> None:
    world = World()
    world.partitions[2].hw = 5
    world.truncates(3, 4)
    assert world.leads(2, 1) == FOUND
    assert "broker 2 begins to lead with HW 5" in world.detail


def test_a_member_that_truncates_below_the_leaders_hw() -> None:
    world = World()
    world.raises(1, 8)
    assert world.truncates(3, 8) == []
    assert world.truncates(2, 7) == FOUND


def test_a_replica_that_deletes_its_log() -> None:
    world = World((1, 2))
    world.raises(1, 8)
    assert world.deletes(3) == []
    assert world.deletes(2) == FOUND
    assert "broker 2 of the ISR [1, 2] has LEO 0" in world.detail


def test_a_broker_that_joins_below_the_hw() -> None:
    world = World((1, 2))
    world.truncates(3, 7)
    world.raises(1, 8)
    assert world.isr((1, 2, 3), (1, 2)) == FOUND


def test_what_a_machine_lost_counts_as_had() -> None:
    world = World()
    world.starts(3, 4, lost=6)
    assert world.raises(1, 10) == []
    assert world.truncates(3, 3) == FOUND


def test_a_broker_that_joins_needs_the_records_after_it_registered() -> None:
    world = World((1, 2))
    world.raises(1, 8)
    world.starts(3, 4, lost=6)
    assert world.isr((1, 2, 3), (1, 2)) == []
    world.isr((1, 2), (1, 2, 3))
    world.checker.on_registered(steps.Registered(steps.REGISTERED, 3, 2))
    assert world.isr((1, 2, 3), (1, 2)) == FOUND


def test_a_leader_whose_machine_lost_records() -> None:
    """The others may know greater HWs, of former leader epochs; those of its own epoch count."""
    world = World((1,))
    world.raises(1, 10)
    world.starts(1, 4, hw=4, lost=6)
    world.leads(1, 1, (1,))
    world.checker.on_read(made(steps.Read, consumer=1001, epoch=0, other=10, at_us=7))
    assert world.starts(2, 10, hw=10) == []
    world.checker.on_read(made(steps.Read, consumer=1001, epoch=1, other=10, at_us=7))
    assert world.found == FOUND


@pytest.mark.parametrize(("elr", "found"), [((), []), ((3,), FOUND)])
def test_a_leader_from_outside_isr_and_elr(elr: tuple[int, ...], found: list[str]) -> None:
    world = World((1, 2))
    world.truncates(3, 4)
    world.isr((1, 2), (1, 2), elr)
    world.raises(1, 8)
    world.checker.on_elected(steps.Elected(3, 1))
    world.isr((3,), (1, 2))
    world.leads(3, 1, (3,))
    world.raises(2, 9)
    assert world.found == found


def test_a_leader_counts_only_what_its_own_members_had() -> None:
    """A member that the leader still counts may have been removed from the ISR, and have deleted its log."""
    world = World((1, 2))
    world.deletes(3)
    assert world.raises(1, 10) == []
    world = World((1,))
    world.starts(2, 5)
    world.leads(1, 1)
    assert world.raises(1, 10) == FOUND


def test_leaders_that_are_deposed_or_gone_are_not_compared() -> None:
    world = World((1, 2))
    world.raises(1, 8)
    world.checker.on_elected(steps.Elected(2, 1))
    assert world.truncates(2, 3) == []
    world = World((1, 2))
    world.raises(1, 8)
    world.checker.on_end(steps.End(1, steps.KILL, []))
    assert world.truncates(2, 3) == []


@pytest.mark.parametrize(("mode", "found"), [("kip101", True), ("kip320", True), ("elr-4.3", False)])
def test_a_reassignment_lets_the_hw_pass_old_members(mode: str, *, found: bool) -> None:
    """ZooKeeper's controller shrinks the ISR only after it has sent the new assignment (B3 and B4)."""
    row = run_row(load("reassignments"), mode, 2132)
    assert ("hw-above-isr" in row["warnings"]) is found


def test_without_that_gap_no_hw_passes_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that also waits for ISR members outside the assignment."""

    original_lead = Partition.become_leader

    def waits_for_the_isr(partition: Partition, decision: LeaderAndIsr, now_us: int) -> None:
        replicas = (*decision.replicas, *(member for member in decision.isr if member not in decision.replicas))
        original_lead(partition, decision.assigned(replicas), now_us)

    monkeypatch.setattr(Partition, "become_leader", waits_for_the_isr)
    row = run_row(load("reassignments"), "kip320", 2132)
    assert "hw-above-isr" not in row["warnings"]
