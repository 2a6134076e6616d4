from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.kraft.alter_partition_manager import RETRY_US, AlterPartitionItem, AlterPartitionManager
from sim.protocol.messages import INVALID_UPDATE_VERSION, NONE
from tests.sim.protocol.recording import HW, LAG_US, Recorder, decision, partition

if TYPE_CHECKING:
    from sim.protocol.replica.partition import Partition


class Broker(Recorder):
    """A host whose ISR changes go through a sender."""

    def __init__(self) -> None:
        super().__init__()
        self.sender = AlterPartitionManager(self)

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        super().propose_isr(partition, isr)
        change = AlterPartitionItem(partition.name, isr, partition.leader_epoch, partition.partition_epoch, {})
        self.sender.submit(partition, change, 0)

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        self.calls.append(("alter", [change.name for change in changes], [change.isr for change in changes]))

    def retry_alter_partition(self, after_us: int) -> None:
        self.calls.append(("retry", after_us))


def leading(host: Broker) -> Partition:
    """A leader that wants broker 2 in its ISR."""
    one = partition(host, HW.override({"isr_update": "alter-partition"}))
    one.become_leader(decision(isr=(1,)), LAG_US)
    one.follower_fetched(2, -1, 0, 1, LAG_US)
    return one


def test_a_change_is_sent_and_decided() -> None:
    host = Broker()
    one = leading(host)
    assert host.of("alter") == [(["t-0"], [(1, 2)])]
    host.sender.on_reply(NONE, {"t-0": (NONE, (1, 2), 2, 1, 0)}, 0)
    assert (one.state.isr, one.state.pending, host.sender.pending, host.sender.in_flight) == ((1, 2), (), {}, None)


def test_a_refused_change_is_told_and_makes_room_for_another() -> None:
    host = Broker()
    one = leading(host)
    host.sender.on_reply(NONE, {"t-0": (INVALID_UPDATE_VERSION, (), -1, -1, 0)}, 0)
    assert (one.state.isr, one.state.pending, host.sender.pending) == ((1,), (1, 2), {})


def test_an_error_that_the_partition_retries_is_sent_once_more() -> None:
    host = Broker()
    leading(host)
    host.sender.on_reply(NONE, {"t-0": ("UNKNOWN_SERVER_ERROR", (), -1, -1, 0)}, 0)
    assert host.of("alter") == [(["t-0"], [(1, 2)])] * 2


def test_a_failed_request_is_resent_later_with_all_changes() -> None:
    host = Broker()
    one = leading(host)
    host.sender.on_reply("NOT_CONTROLLER", {}, 0)
    assert (host.of("retry"), one.state.pending) == ([(RETRY_US,)], (1, 2))
    host.sender.send()
    assert len(host.of("alter")) == 2


def test_a_change_proposed_while_one_is_under_way_is_refused_at_once() -> None:
    host = Broker()
    one = leading(host)
    one.become_leader(decision(epoch=2, isr=(1,)), LAG_US)
    one.follower_fetched(3, -1, 0, 2, LAG_US)
    assert (one.state.pending, len(host.of("alter")), len(host.of("isr"))) == ((), 1, 2)
    host.sender.on_reply(NONE, {"t-0": (NONE, (1, 2), 2, 1, 0)}, 0)
    assert one.state.isr == (1,)
    one.follower_fetched(3, -1, 0, 2, LAG_US)
    assert one.state.pending == (1, 3)


def test_a_partition_that_the_answer_leaves_out_is_sent_again() -> None:
    host = Broker()
    leading(host)
    host.sender.on_reply(NONE, {}, 0)
    assert host.of("alter") == [(["t-0"], [(1, 2)])] * 2
