"""The deletion of topics, driven directly: it waits for an answer about each replica."""

from __future__ import annotations

import pytest

from sim.protocol.messages import LEADER_DURING_DELETE, NONE, LeaderAndIsr
from sim.protocol.zookeeper.replica_state_machine import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    OFFLINE,
)
from tests.sim.protocol.controlling import Store, World

RELEASES = ("hw", "kip101", "kip279", "kip320")
ALL = {1: 11, 2: 12, 3: 13}
STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


def state(name: str, isr: tuple[int, ...], replicas: tuple[int, ...] = (), *, leader: int = -1) -> LeaderAndIsr:
    """A partition that the first member of its ISR leads, in leader epoch 5."""
    leader = isr[0] if leader < 0 else leader
    return LeaderAndIsr(name, leader, 5, isr, 1, replicas or isr, 1, dict.fromkeys(isr, 0))


def two(mode: str = "kip320", *further: LeaderAndIsr, dead: tuple[int, ...] = ()) -> World:
    """A controller of ``p`` and of a topic ``late``, whose partition 0 broker 2 leads, by default the only one."""
    registered = {broker: epoch for broker, epoch in ALL.items() if broker not in dead}
    store = Store(1, (1, 2, 3), registered=registered, further=further or (state("late-0", (2, 3)),))
    return World(store, mode).elected()


def delete(world: World) -> World:
    """An administrator requests the deletion of the topic."""
    world.requests.clear()
    world.store.deletions.append("late")
    world.controller.topics_deleted()
    return world.run()


def answer(world: World, broker: int, *names: str, error: str = NONE) -> World:
    """A broker answers StopReplica with deletion."""
    world.controller.replicas_deleted(broker, dict.fromkeys(names or ("late-0",), error))
    return world.run()


def go(world: World, broker: int) -> World:
    """A broker's registration ends."""
    del world.store.registered[broker]
    world.controller.brokers_changed()
    return world.run()


def come(world: World, broker: int) -> World:
    """A broker registers."""
    world.store.registered[broker] = 20 + broker
    world.controller.brokers_changed()
    return world.run()


def deletions(world: World) -> list[tuple[int, list[str]]]:
    """The brokers that were to delete replicas, and the partitions."""
    return [(broker, list(names)) for kind, broker, names in world.requests if kind == "delete"]


def states(world: World) -> dict[tuple[str, int], str]:
    return world.controller.context.replica_states


@pytest.mark.parametrize("mode", RELEASES)
def test_a_topic_is_gone_when_all_brokers_have_answered(mode: str) -> None:
    world = delete(two(mode))
    late = {"late-0": LEADER_DURING_DELETE}
    assert world.requests == [
        *[("metadata", broker, late) for broker in (1, 2, 3)],
        *[("stop", broker, late) for broker in (2, 3)],
        *[("delete", broker, late) for broker in (2, 3)],
    ]
    assert states(world) == {("late-0", 2): DELETION_STARTED, ("late-0", 3): DELETION_STARTED}
    assert (world.store.states["late-0"].leader, world.store.states["late-0"].isr) == (0, (3,))
    answer(world, 3)
    assert list(world.store.states) == ["p", "late-0"]
    assert states(world)["late-0", 3] == DELETION_SUCCESSFUL
    answer(world, 2)
    assert (list(world.store.states), world.store.deletions) == (["p"], [])
    assert (list(world.controller.context.states), states(world)) == (["p"], {})
    assert world.store.state == world.controller.context.states["p"]


def test_a_topic_is_deleted_with_all_its_partitions_and_no_other_one() -> None:
    world = delete(two("kip320", state("late-0", (2, 3)), state("late-1", (3, 1)), state("later-0", (3, 2))))
    assert deletions(world) == [(2, ["late-0"]), (3, ["late-0", "late-1"]), (1, ["late-1"])]
    answer(world, 3, "late-0", "late-1")
    answer(world, 2)
    assert world.store.deletions
    answer(world, 1, "late-1")
    assert list(world.store.states) == list(world.controller.context.states) == ["p", "later-0"]


@pytest.mark.parametrize("mode", RELEASES)
def test_a_dead_broker_delays_the_deletion_until_it_is_back(mode: str) -> None:
    world = delete(two(mode, dead=(3,)))
    assert deletions(world) == [(2, ["late-0"])]
    answer(world, 2)
    assert world.store.deletions == ["late"]
    come(go(world, 1), 1)  # A broker without a replica changes nothing.
    assert deletions(world) == [(2, ["late-0"])]
    world.requests.clear()
    come(world, 3)
    assert deletions(world) == [(3, ["late-0"])]  # The other one is deleted already.
    answer(world, 3)
    assert list(world.store.states) == ["p"]


@pytest.mark.parametrize("mode", RELEASES)
def test_a_broker_that_dies_before_it_answers_delays_the_deletion(mode: str) -> None:
    world = go(delete(two(mode)), 3)
    assert states(world) == {("late-0", 2): DELETION_STARTED, ("late-0", 3): DELETION_INELIGIBLE}
    answer(world, 2)
    assert states(world) == {("late-0", 2): DELETION_SUCCESSFUL, ("late-0", 3): OFFLINE}
    world.requests.clear()
    come(world, 3)
    leads = [names for kind, broker, names in world.requests if (kind, broker) == ("lead", 3)]
    assert "late-0" in leads[0]  # As to every broker that starts; it creates the replica, and deletes it.
    assert deletions(world) == [(3, ["late-0"])]
    assert list(answer(world, 3).store.states) == ["p"]


def test_a_bounce_between_request_and_answer_repeats_the_deletion() -> None:
    world = delete(two())
    world.requests.clear()
    come(world, 3)
    assert deletions(world) == []  # Until broker 2 has answered.
    answer(world, 2)
    assert deletions(world) == [(3, ["late-0"])]
    assert list(answer(world, 3).store.states) == ["p"]


def test_a_replica_that_could_not_be_deleted_waits_for_a_start_of_its_broker() -> None:
    world = delete(two())
    answer(world, 2)
    answer(world, 3, error=STORAGE_ERROR)
    assert deletions(world) == [(2, ["late-0"]), (3, ["late-0"])]
    assert world.store.deletions == ["late"]
    come(go(world, 3), 3)
    assert deletions(world)[2:] == [(3, ["late-0"])]
    assert list(answer(world, 3).store.states) == ["p"]


@pytest.mark.parametrize("mode", RELEASES)
@pytest.mark.parametrize("dead", [(), (3,)])
def test_the_next_controller_continues_a_deletion(mode: str, dead: tuple[int, ...]) -> None:
    world = delete(two(mode))
    answer(world, 2)
    world.controller.resign()
    assert not states(world)
    assert not world.controller.context.topics_to_be_deleted
    for broker in dead:
        del world.store.registered[broker]
    world.requests.clear()
    world.controller.elected(1)
    world.run()
    # It does not know that broker 2 has answered, and sends it the state that all brokers get.
    assert ("lead", 2, {"p": 1, "late-0": 0}) in world.requests
    for broker in dead:  # Which keeps it from beginning.
        assert deletions(world) == []
        come(world, broker)
    assert deletions(world) == [(2, ["late-0"]), (3, ["late-0"])]
    answer(world, 2)
    assert list(world.store.states) == ["p", "late-0"]
    assert list(answer(world, 3).store.states) == ["p"]


def test_a_deletion_that_is_complete_but_for_its_nodes_is_completed_by_the_next_controller() -> None:
    world = answer(delete(two()), 2)
    world.controller.replicas_deleted(3, {"late-0": NONE})
    world.store.newest = 2  # Elected before the node is deleted, which fences the write.
    world.run()
    assert (world.working, list(world.store.states)) == (False, ["p", "late-0"])
    world.controller.elected(2)
    world.run()
    assert list(answer(answer(world, 3), 2).store.states) == ["p"]


@pytest.mark.parametrize("mode", RELEASES)
def test_a_reassignment_is_completed_first(mode: str) -> None:
    world = two(mode)
    world.store.targets["late-0"] = (1, 2)
    world.controller.reassignment_requested(("late-0",))
    delete(world.run())
    assert deletions(world) == []
    assert world.controller.context.topics_ineligible_for_deletion == {"late"}
    world.store.update_state(
        1, "late-0", lambda old, _: (old.leader, (1, 2, 3), old.replicas), fenced=world.decide.has_quorum
    )
    world.controller.isr_changed(("late-0",))
    world.run()
    assert deletions(world) == [(3, ["late-0"]), (1, ["late-0"]), (2, ["late-0"])]  # The first by the reassignment.
    answer(world, 3)
    answer(world, 2)
    assert list(answer(world, 1).store.states) == ["p"]


@pytest.mark.parametrize(("mode", "dropped"), [("kip101", True), ("kip279", True), ("kip320", False)])
def test_the_next_controller_drops_a_reassignment_of_a_topic_to_be_deleted_in_older_releases(
    mode: str, *, dropped: bool
) -> None:
    """KafkaController.maybeTriggerPartitionReassignment 1.1: the topic stays ineligible until a broker starts."""
    world = two(mode)
    world.store.targets["late-0"] = (1, 2)
    world.controller.reassignment_requested(("late-0",))
    delete(world.run())
    world.controller.resign()
    world.elected()
    assert (world.store.targets == {}) is dropped
    assert deletions(world) == []
    come(go(world, 3), 3)  # In newer releases, too, although the reassignment is not complete.
    assert deletions(world) == [(1, ["late-0"]), (2, ["late-0"]), (3, ["late-0"])]


@pytest.mark.parametrize("mode", RELEASES)
def test_no_leader_of_a_topic_to_be_deleted_is_elected(mode: str) -> None:
    world = delete(two(mode, state("late-0", (2, 1, 3))))
    before = world.store.states["late-0"]
    go(world, 3)
    world.controller.preferred_election(("late-0", "p"))
    world.controller.settings_changed()
    world.run()
    assert world.store.states["late-0"].leader == before.leader == 0
    assert "late-0" not in world.controller.context.offline


def test_a_broker_that_shuts_down_keeps_nothing_of_a_topic_to_be_deleted() -> None:
    answers: list[tuple[str, int]] = []
    world = two("kip320", state("late-0", (2, 3)), state("q-0", (2, 3)), dead=(3,))
    delete(world)
    world.controller.controlled_shutdown(2, 12, lambda *answer: answers.append(answer))
    world.run()
    assert answers == [(NONE, 1)]  # It leads q-0, and cannot hand over.
    world = two("kip320", state("late-0", (2, 3)))
    world.controller.controlled_shutdown(3, 13, lambda *answer: answers.append(answer))
    world.run()
    assert deletions(delete(world)) == [(2, ["late-0"])]  # A broker that shuts down counts as dead.


def test_a_topic_that_never_had_a_leader_is_deleted_when_a_replica_comes() -> None:
    world = two(dead=(3,))
    world.store.states["new-0"] = LeaderAndIsr("new-0", 0, -1, (3,), 0, (3,))
    world.controller.topic_created(("new-0",))
    world.run().store.deletions.append("new")
    world.controller.topics_deleted()
    come(world.run(), 3)
    assert world.store.states["new-0"].leader_epoch == -1
    assert deletions(world) == [(3, ["new-0"])]
    assert "new-0" not in answer(world, 3, "new-0").store.states


def test_answers_about_a_reassignment_delete_nothing() -> None:
    world = two()
    world.store.targets["late-0"] = (2,)
    world.controller.reassignment_requested(("late-0",))
    answer(world.run(), 3)
    assert list(world.store.states) == ["p", "late-0"]
    assert deletions(world) == [(3, ["late-0"])]


def test_a_topic_stays_ineligible_for_the_next_one_of_its_name() -> None:
    """TopicDeletionManager.completeDeleteTopic leaves it in topicsIneligibleForDeletion."""
    world = delete(two())
    go(answer(world, 3), 3)  # It had deleted its replica before.
    assert list(answer(world, 2).store.states) == ["p"]
    come(world, 3)
    world.store.states["late-0"] = LeaderAndIsr("late-0", 0, -1, (2, 3), 0, (2, 3))
    world.controller.topic_created(("late-0",))
    delete(world.run())
    assert deletions(world) == []
    come(go(world, 2), 2)
    assert deletions(world) == [(2, ["late-0"]), (3, ["late-0"])]
