"""The controller with several partitions: what travels together, and what one of them does to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.zk_operations import UpdateState
from tests.sim.protocol.controlling import Store, World

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = {1: 11, 2: 12, 3: 13}


def state(name: str, leader: int, isr: tuple[int, ...], *, epoch: int = 5, by: int = 0) -> LeaderAndIsr:
    replicas = tuple(isr) + tuple(broker for broker in (1, 2, 3) if broker not in isr)
    return LeaderAndIsr(name, leader, epoch, isr, 1, replicas, by, dict.fromkeys(isr, 0))


def several(name: str = "kip320", *further: LeaderAndIsr, registered: dict[int, int] | None = None) -> World:
    """A controller of ``p``, which broker 1 leads, and of others."""
    store = Store(1, (1, 2, 3), registered=dict(registered or ALL), further=further)
    return World(store, name).elected()


def of(world: World, name: str) -> tuple[int, tuple[int, ...], int]:
    """Leader, ISR and leader epoch of a partition."""
    found = world.store.states[name]
    return found.leader, found.isr, found.leader_epoch


def test_one_request_has_all_partitions_that_a_dead_broker_led() -> None:
    world = several("kip320", state("q", 1, (1, 3, 2)), state("r", 2, (2, 3)))
    world.requests.clear()
    del world.store.registered[1]
    world.controller.brokers_changed()
    world.run()
    elected = {"p": 2, "q": 3}
    assert [entry for entry in world.requests if entry[0] == "lead"] == [("lead", 2, elected), ("lead", 3, elected)]
    assert [entry for entry in world.requests if entry[0] == "metadata"] == [
        ("metadata", 2, elected),
        ("metadata", 3, elected),
    ]
    assert [of(world, name) for name in "pqr"] == [(2, (2, 3), 6), (3, (3, 2), 6), (2, (2, 3), 5)]


def test_followers_leave_all_isrs_together() -> None:
    world = several("kip320", state("q", 2, (2, 3, 1)))
    world.requests.clear()
    del world.store.registered[3]
    world.controller.brokers_changed()
    world.run()
    assert [of(world, name) for name in "pq"] == [(1, (1, 2), 6), (2, (2, 1), 6)]
    leads = {"p": 1, "q": 2}
    # Nothing was to be elected, so the brokers first learn who is gone.
    assert world.requests == [
        *[("metadata", broker, leads) for broker in (1, 2)],
        *[("lead", broker, leads) for broker in (1, 2)],
        *[("metadata", broker, leads) for broker in (1, 2)],
    ]


def test_a_partition_for_which_nobody_can_be_elected_does_not_keep_others_waiting() -> None:
    world = several("kip320", state("q", 1, (1,)))
    del world.store.registered[1]
    world.controller.brokers_changed()
    world.run()
    assert [of(world, name) for name in "pq"] == [(2, (2, 3), 6), (0, (1,), 6)]
    assert world.controller.context.offline == {"q"}


def test_a_new_partition_is_created_while_another_is_offline() -> None:
    world = several("kip320", state("q", 0, (3,)), registered={1: 11, 2: 12})
    world.store.states["r"] = LeaderAndIsr("r", 0, -1, (), 0, (2, 1))
    world.controller.topic_created(("r",))
    assert [of(world.run(), name) for name in "qr"] == [(0, (3,), 6), (2, (2, 1), 0)]
    assert world.controller.context.existing == ["p", "q", "r"]


def test_a_partition_without_live_replicas_is_created_when_one_comes() -> None:
    world = several("kip320", registered={1: 11, 2: 12})
    world.store.states["r"] = LeaderAndIsr("r", 0, -1, (), 0, (3,))
    world.controller.topic_created(("r",))
    assert of(world.run(), "r") == (0, (), -1)
    world.store.registered[3] = 13
    world.controller.brokers_changed()
    assert of(world.run(), "r") == (3, (3,), 0)


def test_a_broker_that_shuts_down_hands_over_what_it_leads_and_leaves_the_rest() -> None:
    answers: list[tuple[str, int]] = []
    world = several("kip320", state("q", 2, (2, 1, 3)), state("r", 1, (1,)))
    world.requests.clear()
    world.controller.controlled_shutdown(1, 11, lambda *answer: answers.append(answer))
    world.run()
    assert [of(world, name) for name in "pqr"] == [(2, (2, 3), 6), (2, (2, 3), 6), (1, (1,), 5)]
    assert answers == [("", 1)]  # It still leads r.
    assert world.requests[0] == ("lead", 1, {"p": 2})
    assert [entry for entry in world.requests if entry[0] == "stop"] == [("stop", 1, {"q": 2})]


def test_leaders_isrs_are_read_of_the_partitions_that_changed() -> None:
    world = several("kip320", state("q", 2, (2, 1, 3)))
    for name in "pq":
        old = world.store.states[name]
        world.store.states[name] = LeaderAndIsr(name, old.leader, 5, old.isr[:2], 2, old.replicas)
    world.requests.clear()
    world.controller.isr_changed(("q",))
    world.run()
    cached = world.controller.context.states
    assert [cached[name].isr for name in "pq"] == [(1, 2, 3), (2, 1)]
    assert world.requests == [("metadata", broker, {"q": 2}) for broker in (1, 2, 3)]


def test_reassignments_of_several_partitions_complete_one_by_one() -> None:
    world = several("kip320", state("q", 1, (1, 2)))
    world.store.targets = {"p": (2, 3), "q": (2, 3)}
    world.controller.reassignment_requested(("p", "q"))
    world.run()
    assert [world.store.states[name].replicas for name in "pq"] == [(2, 3), (2, 3, 1)]
    assert world.store.targets == {"q": (2, 3)}
    world.store.update_state(1, "q", lambda old, _: (1, (1, 2, 3), old.replicas), fenced=world.decide.has_quorum)
    world.controller.isr_changed(("q",))
    world.run()
    assert (world.store.states["q"].replicas, world.store.targets) == ((2, 3), {})
    assert world.deleted == [1, 1]


def test_the_next_controller_continues_all_reassignments() -> None:
    world = several("kip320", state("q", 1, (1, 2, 3)))
    world.controller.resign()
    world.store.targets = {"p": (2, 3), "q": (3, 2)}
    world.elected()
    assert [world.store.states[name].replicas for name in "pq"] == [(2, 3), (3, 2)]


@pytest.mark.parametrize(("name", "epochs", "working"), [("kip320", (5, 5), False), ("kip279", (6, 5), True)])
def test_a_partition_that_a_newer_controller_has_written_is_refused_alone_without_fencing(
    name: str, epochs: tuple[int, int], working: bool
) -> None:
    """ZkPartitionStateMachine.doElectLeaderForPartitions: a StateChangeFailedException is about one partition."""
    world = several(name, state("q", 3, (3, 2, 1), by=0))
    world.store.states["q"] = state("q", 3, (3, 2, 1), by=2)
    world.store.newest = 2
    del world.store.registered[3]
    world.controller.brokers_changed()
    world.run()
    assert (of(world, "p")[2], of(world, "q")[2]) == epochs
    assert world.working == working


def test_an_operation_without_partitions_changes_nothing() -> None:
    world = several()
    assert UpdateState(1, ()).apply(world.store, world.decide) == []


PLACES = ((1, 2, 3), (2, 3, 1), (3, 1))
CHANGE = st.one_of(
    st.tuples(st.just("down"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("up"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("bounce"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("shutdown"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("isr"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("prefer"), st.just(0)),
    st.tuples(st.just("reassign"), st.sampled_from((1, 2, 3))),
    st.tuples(st.just("fail-over"), st.just(0)),
)


def _carry_out(world: World, changes: Sequence[tuple[str, int]]) -> None:
    store, controller = world.store, world.controller
    for number, (kind, broker) in enumerate(changes, 20):
        names = tuple(store.states)
        match kind:
            case "down" | "up" | "bounce":
                _register(store, kind, broker, number)
                controller.brokers_changed()
            case "shutdown":
                controller.controlled_shutdown(broker, 1 << 30, lambda *_: None)
            case "isr":
                for name in names:
                    _leave(store, name, broker)
                controller.isr_changed(names)
            case "prefer":
                controller.preferred_election(names)
            case "reassign":
                for name in names:
                    _reassign(store, name, broker)
                controller.reassignment_requested(names)
            case _:
                controller.resign()
                controller.elected(1)
        world.run()


def _register(store: Store, kind: str, broker: int, number: int) -> None:
    if kind == "down":
        store.registered.pop(broker, None)
    elif kind == "up" or broker in store.registered:
        store.registered[broker] = number if kind == "bounce" else store.registered.get(broker, number)


def _reassign(store: Store, name: str, broker: int) -> None:
    """The partition is to leave a broker."""
    replicas = store.states[name].replicas
    if name not in store.targets and len(replicas) > 1:
        store.targets[name] = tuple(replica for replica in replicas if replica != broker)


def _leave(store: Store, name: str, broker: int) -> None:
    """The leader writes an ISR without a follower."""
    old = store.states[name]
    if old.leader in store.registered and broker in old.isr and broker != old.leader:
        isr = tuple(one for one in old.isr if one != broker)
        store.states[name] = LeaderAndIsr(
            name, old.leader, old.leader_epoch, isr, old.partition_epoch + 1, old.replicas, old.controller_epoch
        )


@given(
    changes=st.lists(CHANGE, max_size=12),
    name=st.sampled_from(("hw", "kip101", "kip279", "kip320", "kip320-repaired")),
    unclean=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_each_partition_is_decided_on_as_if_it_were_alone(
    changes: list[tuple[str, int]], name: str, unclean: bool
) -> None:
    def controlled(places: dict[str, tuple[int, ...]]) -> World:
        store = Store(0, (), epoch=-1, registered=dict(ALL))
        store.states = {one: LeaderAndIsr(one, 0, -1, (), 0, replicas) for one, replicas in places.items()}
        world = World(store, name, {"missed_bounce": "unnoticed"}, unclean=unclean).elected()
        _carry_out(world, changes)
        return world

    places = dict(zip("pqr", PLACES, strict=True))
    together = controlled(places).store
    for one, replicas in places.items():
        alone = controlled({one: replicas}).store
        assert _seen(together, one) == _seen(alone, one)


def _seen(store: Store, name: str) -> tuple[object, ...]:
    found = store.states[name]
    return found.leader, found.leader_epoch, found.isr, found.replicas, store.targets.get(name)
