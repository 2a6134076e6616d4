from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from sim.kernel.scheduler import (
    ALWAYS,
    AUDIT_EVENTS,
    BudgetError,
    Call,
    Environment,
    Gate,
    Kernel,
    PastEventError,
    PriorityKernel,
    ShuffledKernel,
    Watcher,
)
from sim.kernel.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from simpy.events import Event

END_US = 100


def ties(kernel: Kernel, owners: list[int]) -> list[tuple[int, int]]:
    """Calls at one instant, named (owner, number), in the order in which they were made."""
    gates = {owner: Gate(owner) for owner in owners}
    made: list[tuple[int, int]] = []
    for number, owner in enumerate(owners):
        kernel.call_at(10, gates[owner], made.append, (owner, number))
    kernel.run_until(END_US)
    return made


def test_time_goes_forward_and_ties_are_first_in_first_out() -> None:
    kernel = Kernel()
    made: list[object] = []
    for at_us in (30, 10, 20, 10, 30):
        kernel.call_at(at_us, ALWAYS, made.append, (at_us, kernel.pending))
    kernel.run_until(END_US)
    assert made == [(10, 1), (10, 3), (20, 2), (30, 0), (30, 4)]
    assert kernel.now_us == END_US


def test_early_calls_are_ordered_by_source_then_first_in_first_out() -> None:
    kernel = Kernel()
    kernel.watcher = Watcher()
    made: list[object] = []
    kernel.call_at(10, Gate(1), made.append, "last")
    for source, name in ((3, "c"), (1, "a"), (2, "b"), (1, "a again")):
        kernel.schedule_first(10, Gate(source), Call(made.append, name))
    kernel.run_until(END_US)
    assert made == ["a", "a again", "b", "c", "last"]
    assert [call.number for call in kernel.watcher.calls[:-1]] == [2, 4, 3, 1, 0]


def test_tasks_come_before_early_calls_and_are_ordered_by_node() -> None:
    kernel = Kernel()
    kernel.watcher = Watcher()
    made: list[object] = []
    for node in (1_001, 99, 9, 1):  # The lowest bits of 1, 9 and 1,001 are equal.
        kernel.schedule_first(10, Gate(node), Call(made.append, node))
    for node in (99, 9, 1):
        kernel.schedule_task(10, Gate(node), Call(made.append, -node))
    kernel.run_until(END_US)
    assert made == [-1, -9, -99, 1, 9, 99, 1_001]
    assert [call.number for call in kernel.watcher.calls[:-1]] == [6, 5, 4, 3, 2, 1, 0]


def test_the_end_is_included_and_what_comes_later_waits() -> None:
    kernel = Kernel()
    made: list[object] = []
    for at_us in (END_US, END_US + 1):
        kernel.call_at(at_us, ALWAYS, made.append, at_us)
    kernel.run_until(END_US)
    assert made == [END_US]
    kernel.run_until(END_US * 2)
    assert made == [END_US, END_US + 1]


def test_a_closed_gate_swallows_calls() -> None:
    kernel, gate = Kernel(), Gate()
    made: list[object] = []
    kernel.call_at(1, gate, made.append, "before")
    kernel.call_at(2, ALWAYS, lambda _: setattr(gate, "open", False), None)
    kernel.call_at(3, gate, made.append, "after")
    kernel.run_until(END_US)
    assert made == ["before"]


def test_a_handler_can_end_the_run() -> None:
    kernel = Kernel()
    made: list[object] = []
    kernel.call_at(5, ALWAYS, lambda _: kernel.stop(), None)
    kernel.call_at(6, ALWAYS, made.append, "late")
    kernel.run_until(END_US)
    assert (kernel.now_us, made) == (5, [])
    kernel.run_until(END_US)
    assert made == ["late"]


def test_going_round_in_circles_is_an_error() -> None:
    kernel = Kernel(event_budget=50)

    def again(_: object) -> None:
        kernel.call_at(kernel.now_us, ALWAYS, again, None)

    again(None)
    with pytest.raises(BudgetError, match=r"^sim\.event\.budget: 50 events by 0\.000000 s$"):
        kernel.run_until(END_US)
    assert kernel.events == 50


class Node:
    def wake(self, _: object) -> None: ...


KERNELS: list[Callable[[], Kernel]] = [
    Kernel,
    lambda: ShuffledKernel(Stream(1)),
    lambda: PriorityKernel(Stream(1)),
]
SCHEDULERS: list[Callable[[Kernel, int, Gate], None]] = [
    lambda kernel, at_us, gate: kernel.call_at(at_us, gate, Node().wake, None),
    lambda kernel, at_us, gate: kernel.schedule_first(at_us, gate, Call(Node().wake, None)),
    lambda kernel, at_us, gate: kernel.schedule_task(at_us, gate, Call(Node().wake, None)),
    lambda kernel, at_us, gate: kernel.add(at_us, 0, gate, Call(Node().wake, None)),
]


@pytest.mark.parametrize("make", KERNELS)
@pytest.mark.parametrize("schedule", SCHEDULERS)
def test_an_event_before_now_is_refused_and_names_who_asks(
    make: Callable[[], Kernel], schedule: Callable[[Kernel, int, Gate], None]
) -> None:
    kernel = make()
    kernel.run_until(END_US)
    said = "Node.wake of node 7 asks to be called at 99 us, which is before now (100 us)"
    with pytest.raises(PastEventError, match=re.escape(said)):
        schedule(kernel, END_US - 1, Gate(7))
    schedule(kernel, END_US, Gate(7))
    kernel.run_until(END_US)
    assert kernel.now_us == END_US


@pytest.mark.parametrize("make", KERNELS)
def test_a_run_cannot_end_before_now(make: Callable[[], Kernel]) -> None:
    kernel = make()
    kernel.run_until(END_US)
    with pytest.raises(PastEventError, match=f"_reached asks .* {END_US - 1} us"):
        kernel.run_until(END_US - 1)


def test_a_simpy_event_before_now_is_refused() -> None:
    kernel = Kernel()
    environment = Environment(kernel)
    kernel.run_until(END_US)
    with pytest.raises(PastEventError, match="_process asks to be called at 98 us"):
        environment.schedule(environment.event(), delay=-2)


def test_simpy_processes_run_on_the_same_queue() -> None:
    kernel = Kernel()
    environment = Environment(kernel)
    made: list[object] = []
    kernel.call_at(7, ALWAYS, made.append, "call at 7")

    def process() -> Generator[Event, Any, None]:
        yield environment.timeout(5)
        made.append(f"process at {environment.now}")
        yield environment.timeout(5)
        made.append(f"process at {environment.now}")

    environment.process(process())
    kernel.run_until(END_US)
    assert made == ["process at 5", "call at 7", "process at 10"]


@pytest.mark.parametrize("watcher", [None, Watcher()])
def test_an_audit_is_made_whenever_so_many_events_were_made(watcher: Watcher | None) -> None:
    kernel, audits, ran = Kernel(), list[int](), list[object]()
    kernel.watcher = watcher
    kernel.audit = lambda: audits.append(len(ran))
    for number in range(3 * AUDIT_EVENTS):
        kernel.call_at(number, ALWAYS, ran.append, number)
    assert kernel.pending == 3 * AUDIT_EVENTS
    kernel.run_until(10)
    kernel.run_until(3 * AUDIT_EVENTS)
    # The end of the first `run_until` is an event, too.
    assert audits == [0, AUDIT_EVENTS - 1, 2 * AUDIT_EVENTS - 1, 3 * AUDIT_EVENTS - 1]
    assert len(ran) == 3 * AUDIT_EVENTS


def test_a_process_that_fails_fails_the_run() -> None:
    kernel = Kernel()
    environment = Environment(kernel)

    def process() -> Generator[Event, Any, None]:
        yield environment.timeout(5)
        raise LookupError("told")

    environment.process(process())
    with pytest.raises(LookupError, match="told"):
        kernel.run_until(END_US)


def test_shuffled_ties_are_by_seed_and_keep_time() -> None:
    owners = list(range(6))
    orders = [tuple(ties(ShuffledKernel(Stream(seed)), owners)) for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    kernel = ShuffledKernel(Stream(1))
    made: list[object] = []
    for at_us in range(20, 0, -1):
        kernel.call_at(at_us, ALWAYS, made.append, at_us)
    kernel.run_until(END_US)
    assert made == list(range(1, 21))


def test_priorities_put_one_receiver_before_another_wherever_they_meet() -> None:
    orders = set()
    for seed in range(8):
        made = ties(PriorityKernel(Stream(seed), depth=1), [1, 2, 1, 2, 1, 2])
        assert made in (sorted(made), sorted(made, key=lambda entry: (-entry[0], entry[1])))
        assert made == ties(PriorityKernel(Stream(seed), depth=1), [1, 2, 1, 2, 1, 2])
        orders.add(made[0][0])
    assert orders == {1, 2}


def test_receiver_falls_behind_all_others_at_a_drawn_moment() -> None:
    owners = [1, 2, 3, 4] * 3
    fell = 0
    for seed in range(20):
        made = ties(PriorityKernel(Stream(seed), depth=2, length=len(owners)), owners)
        by_rank = ties(PriorityKernel(Stream(seed), depth=1), owners)
        assert sorted(made) == sorted(by_rank)
        fell += [owner for owner, _ in made] != sorted((owner for owner, _ in made), key=[o for o, _ in made].index)
    assert fell
