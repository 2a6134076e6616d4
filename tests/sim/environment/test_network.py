from __future__ import annotations

from typing import Any

import pytest

from sim.environment.network import LATENCY_US, HeldMessages, Network, Node
from sim.kernel.message import ALIKE, KIND, Message
from sim.kernel.mixing import key_of
from sim.kernel.scheduler import Backlog, Call, Event, Gate, Kernel, PastEventError, ShuffledKernel
from sim.kernel.streams import Stream, Streams
from sim.protocol.messages import ControllerRequestBatch, LeaderAndIsr, LeaderAndIsrRequest, ProduceRequest

END_US = 1_000_000


class Said(Message):
    """What one peer tells another one: a number or a word."""

    def __init__(self, what: Any, *, alike: bool = False) -> None:
        self.what = what
        self.alike = alike

    def about(self) -> int:
        number = self.what if isinstance(self.what, int) else key_of(str(self.what)) % (1 << KIND)
        return number + ALIKE * self.alike


def words(message: Any) -> Any:
    """What was said; a timer says it by itself."""
    return message.what if isinstance(message, Said) else message


def said(event: Event) -> Any:
    return words(event.argument if isinstance(event, Call) else event)


class Peer(Node):
    """Writes down what arrives, when, and which connections it heard to break."""

    def __init__(self, node: int, kernel: Kernel) -> None:
        super().__init__(node)
        self.kernel = kernel
        self.got: list[Any] = []
        self.at_us: list[int] = []
        self.broken: list[int] = []
        self.came: list[int] = []

    def receive(self, message: Any) -> None:
        self.take(message)

    def take(self, message: Any) -> None:
        self.got.append(words(message))
        self.at_us.append(self.kernel.now_us)

    def tell(self, peer: int, what: Any, *, alike: bool = False) -> bool:
        channel = self.reach(peer)
        if channel is not None:
            channel.send(Said(what, alike=alike))
        return channel is not None

    def disconnected(self, peer: int) -> None:
        self.broken.append(peer)

    def peer_up(self, peer: int) -> None:
        self.came.append(peer)


class Net:
    """Three peers that are up."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.network = Network(self.kernel, Streams(1))
        self.one, self.two, self.three = (Peer(node, self.kernel) for node in (1, 2, 3))
        for peer in (self.one, self.two, self.three):
            self.network.join(peer)

    def run(self, for_us: int = END_US) -> None:
        self.kernel.run_until(self.kernel.now_us + for_us)


def test_messages_of_one_connection_never_overtake_each_other() -> None:
    net = Net()
    for number in range(50):
        assert net.one.tell(2, number)
    net.run()
    assert net.two.got == list(range(50))
    assert len(set(net.two.at_us)) == 50


def test_messages_of_different_connections_do() -> None:
    net = Net()
    for number in range(0, 50, 2):
        net.one.tell(3, number)
        net.two.tell(3, number + 1)
    net.run()
    assert sorted(net.three.got) == list(range(50)) != net.three.got


def test_latency_is_within_its_table() -> None:
    net = Net()
    for peer in (2, 3):
        net.one.tell(peer, "hello")
    net.run()
    assert all(LATENCY_US[0] <= at_us <= LATENCY_US[-1] for at_us in (*net.two.at_us, *net.three.at_us))
    net.network.link(1, 2).table = (7,) * 256
    sent_us = net.kernel.now_us
    net.one.tell(2, "quickly")
    net.run()
    assert net.two.at_us[-1] == sent_us + 7


def test_a_cut_loses_what_arrives_in_its_direction_while_it_lasts() -> None:
    net = Net()
    net.one.tell(2, "under way")
    net.network.cut(1, 2)
    net.two.tell(1, "the other way")
    net.run(LATENCY_US[-1])
    net.one.tell(2, "lost")
    net.run(LATENCY_US[-1])
    net.network.heal(1, 2)
    net.one.tell(2, "after")
    net.run()
    assert net.two.got == ["after"]
    assert net.one.got == ["the other way"]


def test_a_connection_over_a_cut_link_works_once_all_cuts_heal() -> None:
    net = Net()
    net.network.cut(1, 2)
    net.network.cut(1, 2)
    net.one.tell(2, "lost")
    net.run()
    net.network.heal(1, 2)
    net.one.tell(2, "lost, too")
    net.run()
    net.network.heal(1, 2)
    net.one.tell(2, "arrives")
    net.run()
    assert net.two.got == ["arrives"]


def test_a_cut_changes_no_latency() -> None:
    def arrivals(*, cut: bool) -> list[int]:
        net = Net()
        if cut:
            net.network.cut(1, 2)
        for number in range(20):
            net.one.tell(2, number)
            net.one.tell(3, number)
        net.run()
        return net.three.at_us

    assert arrivals(cut=True) == arrivals(cut=False)


def test_loss_is_by_chance() -> None:
    net = Net()
    net.network.link(1, 2).loss = 500
    for number in range(100):
        net.one.tell(2, number)
    net.run()
    assert 20 < len(net.two.got) < 80


def test_messages_in_flight_die_with_either_process() -> None:
    for dies in (1, 2):
        net = Net()
        net.one.tell(2, "under way")
        net.network.leave(net.network.nodes[dies], silently=False)
        again = Peer(dies, net.kernel)
        net.network.join(again)
        net.run()
        assert net.two.got == again.got == []
        speaker = again if dies == 1 else net.one
        assert speaker.tell(2, "anew")
        net.run()
        assert net.network.nodes[2].got == ["anew"]  # type: ignore[attr-defined]


def test_process_that_is_down_cannot_be_reached() -> None:
    net = Net()
    net.network.leave(net.two, silently=True)
    assert not net.one.tell(2, "hello")


def test_peers_notice_a_crash_at_once_and_a_power_loss_by_timeout() -> None:
    net = Net()
    net.one.tell(2, "hello")
    net.run()
    net.network.leave(net.two, silently=False)
    net.run()
    assert (net.one.broken, net.three.broken) == ([2], [])
    net.one.tell(3, "hello")
    net.run()
    net.network.leave(net.three, silently=True)
    net.run()
    assert net.one.broken == [2]
    net.network.join(Peer(3, net.kernel))
    net.one.timeout_us = 500
    net.one.tell(3, "hello")
    net.network.leave(net.network.nodes[3], silently=True)
    net.run(499)
    assert net.one.broken == [2]
    net.run(1)
    assert net.one.broken == [2, 3]


def test_crash_goes_unnoticed_over_a_cut_link() -> None:
    net = Net()
    net.one.tell(2, "hello")
    net.network.cut(2, 1)
    net.network.leave(net.two, silently=False)
    net.run()
    assert net.one.broken == []


def test_timers_of_a_dead_process_never_fire() -> None:
    net = Net()
    net.kernel.call_at(10, net.one.life, net.one.take, "timer")
    net.network.leave(net.one, silently=False)
    net.run()
    assert net.one.got == []


def test_everybody_hears_who_is_up() -> None:
    net = Net()
    assert (net.one.came, net.two.came, net.three.came) == ([1, 2, 3], [2, 3], [3])


# Pauses.


def test_a_resumed_process_handles_all_held_calls_in_order() -> None:
    net = Net()
    net.one.tell(2, "before")
    net.run()
    net.network.pause(net.two)
    net.kernel.call_at(net.kernel.now_us + 5_000, net.two.life, net.two.take, "timer")
    net.one.tell(2, "first")
    net.run(4_000)
    net.run(4_000)
    net.three.tell(2, "by a connection that was opened meanwhile")
    net.run()
    assert net.two.got == ["before"]
    now_us = net.kernel.now_us
    net.network.resume(net.two)
    missed = ["first", "timer", "by a connection that was opened meanwhile"]
    assert net.two.got == ["before", *missed]
    assert net.two.at_us[1:] == [now_us] * 3
    net.one.tell(2, "after")
    net.run()
    assert net.two.got[-1] == "after"


def test_a_message_at_resume_does_not_overtake_held_calls() -> None:
    net = Net()
    net.network.link(1, 2).table = (100,) * 256
    net.network.pause(net.two)
    net.one.tell(2, "held")
    net.kernel.call_at(net.kernel.now_us + 101, net.three.life, net.network.resume, net.two)
    net.one.tell(2, "arrives at the same instant")
    net.run()
    assert net.two.got == ["held", "arrives at the same instant"]
    assert net.two.at_us == [net.two.at_us[0]] * 2


def test_pauses_add_up() -> None:
    net = Net()
    net.network.pause(net.two)
    net.network.pause(net.two)
    net.one.tell(2, "late")
    net.run()
    net.network.resume(net.two)
    net.run()
    assert net.two.frozen
    assert net.two.got == []
    net.network.resume(net.two)
    assert not net.two.frozen
    assert net.two.got == ["late"]


def test_a_cut_loses_messages_to_a_paused_process_and_a_pause_outlives_it() -> None:
    net = Net()
    net.one.tell(2, "hello")
    net.run()
    net.network.pause(net.two)
    net.one.tell(2, "arrived")
    net.run()
    net.network.cut(1, 2)
    net.one.tell(2, "lost")
    net.run()
    net.network.heal(1, 2)
    net.one.tell(2, "after the cut")
    net.run()
    assert net.two.got == ["hello"]
    net.network.cut(1, 2)
    net.network.resume(net.two)
    assert net.two.got == ["hello", "arrived", "after the cut"]
    net.one.tell(2, "cut again")
    net.run()
    assert len(net.two.got) == 3


def test_a_paused_process_that_dies_does_nothing_any_more() -> None:
    net = Net()
    net.network.pause(net.two)
    net.one.tell(2, "never")
    net.kernel.call_at(net.kernel.now_us + 10, net.two.life, net.two.take, "never")
    net.run()
    net.network.leave(net.two, silently=True)
    net.one.tell(2, "nobody there")
    net.kernel.call_at(net.kernel.now_us + 10, net.two.life, net.two.take, "never")
    net.run()
    assert net.two.got == []
    assert not net.two.frozen


def test_a_process_that_ends_while_resuming_runs_no_further_call() -> None:
    net = Net()
    net.network.pause(net.two)
    net.two.perform(lambda _: net.network.leave(net.two, silently=False), None)
    net.two.perform(net.two.take, "never")
    net.network.resume(net.two)
    assert net.two.got == []
    assert not net.two.life.open


class Fragile(Backlog):
    """Holds back what mentions glass."""

    def put(self, gate: Gate, event: Event) -> None:
        if "glass" in said(event):
            super().put(gate, event)
        else:
            event.happen(gate)


def test_what_has_to_wait_is_held_back_and_the_rest_happens() -> None:
    net = Net()
    net.one.tell(2, "before")
    net.run()
    waits = Fragile()
    net.network.set_backlog(net.two, waits)
    net.one.tell(2, "glass")
    net.one.tell(2, "wood")
    net.three.tell(2, "steel, by a connection that was opened meanwhile")
    net.kernel.call_at(net.kernel.now_us + 10_000, net.two.life, net.two.take, "timer of glass")
    net.two.perform(net.two.take, "stone")
    net.run()
    assert sorted(net.two.got) == ["before", "steel, by a connection that was opened meanwhile", "stone", "wood"]
    assert [said(event) for _, event in waits.events] == ["glass", "timer of glass"]
    assert net.network.is_steady(net.one, net.two)
    net.network.set_backlog(net.two, None)
    net.one.tell(2, "more glass")
    net.run()
    assert net.two.got[-1] == "more glass"


def test_a_pause_holds_back_all_and_hands_over_what_still_has_to_wait() -> None:
    net = Net()
    net.network.pause(net.two)
    waits = Fragile()
    net.network.set_backlog(net.two, waits)
    net.one.tell(2, "glass")
    net.one.tell(2, "wood")
    net.run()
    assert (net.two.got, len(waits.events)) == ([], 0)
    net.network.resume(net.two)
    assert net.two.got == ["wood"]
    assert [said(event) for _, event in waits.events] == ["glass"]


def test_a_process_that_is_over_waits_for_nothing() -> None:
    net = Net()
    net.network.leave(net.two, silently=True)
    net.network.set_backlog(net.two, Fragile())
    assert not net.two.life.open
    assert net.two.life.held is None


def test_a_paused_process_learns_late_of_peers_and_connections() -> None:
    net = Net()
    net.one.tell(2, "hello")
    net.two.tell(1, "hello")
    net.run()
    net.network.pause(net.two)
    net.network.leave(net.one, silently=False)
    late = Peer(4, net.kernel)
    net.network.join(late)
    net.run()
    assert (net.two.broken, 4 in net.two.came) == ([], False)
    net.network.resume(net.two)
    assert (net.two.broken, 4 in net.two.came) == ([1], True)


# Links that got worse.


def test_a_slow_link_takes_longer_in_its_direction_and_keeps_the_order() -> None:
    net = Net()
    net.network.add_latency(1, 2, 500_000)
    sent_us = net.kernel.now_us
    net.one.tell(2, "slow")
    net.two.tell(1, "quick")
    net.network.add_latency(1, 2, -500_000)
    net.one.tell(2, "quick, yet behind")
    net.run()
    assert net.two.got == ["slow", "quick, yet behind"]
    assert min(net.two.at_us) >= sent_us + 500_000 + LATENCY_US[0]
    assert net.one.at_us[0] <= sent_us + LATENCY_US[-1]
    assert net.network.link(1, 2).table == LATENCY_US


def test_one_lossy_link_loses_its_share_and_no_other_link_does() -> None:
    net = Net()
    net.network.add_loss(1, 2, 300)
    for number in range(400):
        net.one.tell(2, number)
        net.one.tell(3, number)
    net.run()
    assert 200 < len(net.two.got) < 340
    assert net.two.got == sorted(net.two.got)
    assert len(net.three.got) == 400
    net.network.add_loss(1, 2, -300)
    net.one.tell(2, "safe")
    net.run()
    assert net.two.got[-1] == "safe"
    assert net.network.loss == 0


class Request(Message):
    """Something that its sender repeats."""

    def __init__(self, copy_of: Request | None = None) -> None:
        self.copy_of = copy_of

    def about(self) -> int:
        return 1 << KIND

    def again(self) -> Request:
        return Request(self)


def test_only_resent_request_types_are_duplicated() -> None:
    kernel = Kernel()
    network = Network(kernel, Streams(1))
    one, two = Peer(1, kernel), Peer(2, kernel)
    network.join(one)
    network.join(two)
    network.add_duplicates(1, 2, 1_000)
    channel = one.reach(2)
    assert channel is not None
    request = Request()
    channel.send(request)
    channel.send(Said("a reply"))
    kernel.run_until(2 * END_US)
    assert len(two.got) == 3
    assert two.got[0] is request
    assert two.got[1] == "a reply"
    assert two.got[2].copy_of is request
    network.add_duplicates(1, 2, -1_000)
    channel.send(request)
    kernel.run_until(5 * END_US)
    assert len(two.got) == 4


def test_messages_of_a_type_are_held_back_until_each_is_delivered() -> None:
    net = Net()
    told: list[tuple[int, int]] = []
    held = HeldMessages(Said, lambda source, target: told.append((source, target)))
    for source in (1, 2):
        net.network.intercept(source, 3, held)
    for number in range(4):
        net.one.tell(3, number)
    net.two.tell(3, "other peer")
    net.run()
    assert (net.three.got, told) == ([], [(1, 3)] * 4 + [(2, 3)])
    assert held.deliver(net.kernel, 2) == [(2, 3)]
    assert held.deliver(net.kernel) == [(1, 3)]
    net.run()
    assert net.three.got == ["other peer", 0]
    assert held.deliver(net.kernel, newest=True) == [(1, 3)]
    net.run()
    assert net.three.got == ["other peer", 0, 3]
    assert held.end(net.kernel) == [(1, 3)] * 2
    net.run()
    assert net.three.got == ["other peer", 0, 3, 1, 2]


def test_a_message_that_is_to_be_delivered_before_it_is_sent_passes() -> None:
    net = Net()
    held = HeldMessages(Said, lambda *_: None)
    for source in (1, 2):
        net.network.intercept(source, 3, held)
    assert held.deliver(net.kernel, 2) == []
    net.one.tell(3, "held")
    net.two.tell(3, "passes")
    net.two.tell(3, "held, too")
    net.run()
    assert net.three.got == ["passes"]


def test_held_messages_of_a_closed_connection_are_lost() -> None:
    net = Net()
    held = HeldMessages(Said, lambda *_: None)
    net.network.intercept(1, 3, held)
    net.network.intercept(2, 3, held)
    net.one.tell(3, "lost")
    net.two.tell(3, "arrives")
    net.network.leave(net.one, silently=False)
    assert held.deliver(net.kernel) == [(2, 3)]
    assert held.end(net.kernel) == []
    net.run()
    assert net.three.got == ["arrives"]


def test_copies_are_as_what_was_sent_but_not_the_same() -> None:
    control = ControllerRequestBatch(2, [LeaderAndIsrRequest(1, 5, (LeaderAndIsr("p", 2, 0, (2,), 0, (2,)),))])
    sent: tuple[Any, ...] = (ProduceRequest(1_001, "p", 7, 3, -1, (8, 0, 4)), control)
    for request in sent:
        copy = request.again()
        assert copy is not request
        assert type(copy) is type(request)
        differ = [name for name in type(request).__slots__ if getattr(copy, name) != getattr(request, name)]
        assert differ == (["connection"] if isinstance(request, ProduceRequest) else [])


@pytest.mark.parametrize("kernel", [Kernel(), ShuffledKernel(Stream(1))])
def test_a_message_that_would_arrive_before_it_is_sent_is_refused(kernel: Kernel) -> None:
    network = Network(kernel, Streams(1))
    one, two = Peer(1, kernel), Peer(2, kernel)
    network.join(one)
    network.join(two)
    kernel.run_until(END_US)
    network.add_latency(1, 2, -5_000)
    with pytest.raises(PastEventError, match=r"Said of node 2 asks .* before now \(1000000 us\)"):
        one.tell(2, "early")


# Latencies.


def latencies(net: Net, said: list[tuple[Any, bool]]) -> dict[tuple[Any, int], int]:
    """How long each message from 1 to 2 takes, one sent after the other; those about the same are numbered."""
    found: dict[tuple[Any, int], int] = {}
    for what, alike in said:
        sent_us = net.kernel.now_us
        net.one.tell(2, what, alike=alike)
        net.run()
        number = sum(key[0] == what for key in found)
        found[what, number] = net.two.at_us[-1] - sent_us
    return found


def test_a_latency_depends_on_the_subject_alone() -> None:
    said: list[tuple[Any, bool]] = [(number % 20, False) for number in range(60)]
    whole = latencies(Net(), said)
    assert len(set(whole.values())) > 20
    fewer = latencies(Net(), [one for one in said if one[0] % 3])
    assert fewer == {key: whole[key] for key in fewer}
    other = Net()
    other.three.tell(2, 1)
    other.run()
    assert latencies(other, said) == whole


def test_messages_of_one_subject_have_own_latencies_unless_alike() -> None:
    assert len(set(latencies(Net(), [("again", False)] * 40).values())) > 10
    net = Net()
    (alike_us,) = set(latencies(net, [("again", True)] * 40).values())
    channel = net.one.reach(2)
    assert channel is not None
    assert channel.latency_us(Said("again", alike=True).about()) == alike_us


def test_what_is_alike_is_lost_by_a_chance_of_its_own_each_time() -> None:
    net = Net()
    net.network.link(1, 2).loss = 500
    for _ in range(100):
        net.one.tell(2, "again", alike=True)
        net.run(1_000)
    net.run()
    assert 20 < len(net.two.got) < 80


def test_redrawn_latencies_are_those_of_what_is_sent_later() -> None:
    def arrivals(*numbers: int) -> list[int]:
        net = Net()
        net.one.tell(2, "under way")
        for number in numbers:
            net.network.redraw(number)
        for about in range(20):
            net.one.tell(3, about)
        net.two.tell(3, "another link")
        net.run()
        return [*net.two.at_us, *net.three.at_us]

    recorded, first, second = arrivals(), arrivals(1), arrivals(2)
    assert recorded[0] == first[0] == second[0]
    assert recorded != first != second != recorded
    assert arrivals(1) == first
