"""The controller driven directly: what it writes, and whom it tells what."""

from __future__ import annotations

from typing import Any

from sim.protocol.controller import Controller, ControllerMovedError, Decide, Operation
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import mode


class Store:
    """ZooKeeper as a controller sees it."""

    def __init__(self, leader: int, isr: tuple[int, ...], *, epoch: int = 5, registered: dict[int, int]) -> None:
        self.state = LeaderAndIsr("p", leader, epoch, isr, 1, (1, 2, 3))
        self.registered = registered
        self.target: tuple[int, ...] = ()
        self.newest = 1

    def brokers(self) -> dict[int, int]:
        return dict(self.registered)

    def read(self) -> tuple[LeaderAndIsr, tuple[int, ...]]:
        return self.state, self.target

    def amend(self, controller_epoch: int, decide: Decide, *, fenced: bool) -> LeaderAndIsr:
        if (self.newest if fenced else self.state.controller_epoch) > controller_epoch:
            raise ControllerMovedError
        change = decide(self.state)
        if change is not None:
            old = self.state
            leader, isr, replicas = change
            self.state = LeaderAndIsr(
                "p", leader, old.leader_epoch + 1, isr, old.partition_epoch + 1, replicas, controller_epoch
            )
        return self.state

    def reassigned(self) -> None:
        self.target = ()


class World:
    """A controller whose wishes are fulfilled one by one, when `run` is called."""

    def __init__(self, store: Store, name: str = "kip320", rules: dict[str, str] | None = None) -> None:
        self.store = store
        self.told: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.deleted: list[int] = []
        self.stopped: list[int] = []
        self.working = False
        self._wish: Operation | None = None
        chosen = mode(name).rules.override(rules or {})
        self.controller = Controller(1, chosen, self, unclean_election=False)

    def at_zookeeper(self, operation: Operation) -> None:
        assert self._wish is None
        self._wish = operation

    def step(self) -> bool:
        wish, self._wish = self._wish, None
        if wish is None:
            return False
        try:
            result: Any = wish(self.store)
        except ControllerMovedError:
            self.controller.moved()
        else:
            self.controller.answered(result)
        return True

    def run(self) -> World:
        while self.step():
            pass
        return self

    def elected(self) -> World:
        self.controller.elected(1)
        return self.run()

    def broker_added(self, broker: int, broker_epoch: int) -> None:
        pass

    def broker_removed(self, broker: int) -> None:
        pass

    def send_leader_and_isr(self, broker: int, state: LeaderAndIsr) -> None:
        self.told.append(("lead", broker, state.leader_epoch, state.isr))

    def send_update_metadata(self, broker: int, state: LeaderAndIsr, live: Any) -> None:
        self.told.append(("metadata", broker, state.leader_epoch, tuple(live)))

    def send_stop_replica(self, broker: int, state: LeaderAndIsr, *, delete: bool) -> None:
        (self.deleted if delete else self.stopped).append(broker)

    def active(self, epoch: int) -> None:
        self.working = True

    def resigned(self) -> None:
        self.working = False

    def of(self, kind: str) -> list[tuple[int, int]]:
        return [(broker, epoch) for what, broker, epoch, _ in self.told if what == kind]

    @property
    def decided(self) -> tuple[int, tuple[int, ...], int]:
        state = self.store.state
        return state.leader, state.isr, state.leader_epoch


ALL = {1: 11, 2: 12, 3: 13}


def test_a_living_leader_is_told_its_old_epoch_again() -> None:
    world = World(Store(1, (1, 2, 3), registered=ALL)).elected()
    assert world.decided == (1, (1, 2, 3), 5)
    assert world.of("lead") == [(1, 5), (2, 5), (3, 5)]


def test_metadata_comes_before_decisions() -> None:
    world = World(Store(1, (1, 2, 3), registered=ALL)).elected()
    assert [kind for kind, *_ in world.told] == ["metadata"] * 3 + ["lead"] * 3


def test_an_epoch_for_each_registration() -> None:
    world = World(Store(1, (1, 2), registered={1: 11, 2: 12}), rules={"registration_epoch": "bumped"}).elected()
    assert world.decided == (1, (1, 2), 6)
    world.store.registered[3] = 14
    world.controller.brokers_changed()
    assert world.run().decided == (1, (1, 2), 7)


def test_a_new_controller_elects_where_the_leader_is_gone() -> None:
    world = World(Store(3, (2, 3), registered={1: 11, 2: 12})).elected()
    assert world.decided == (2, (2,), 7)  # The dead replica left first, then somebody was elected.


def test_an_older_controller_does_not_look_at_dead_replicas_when_it_starts() -> None:
    store = Store(1, (1, 2, 3), registered={1: 11, 2: 12})
    assert World(store, "kip279").elected().decided == (1, (1, 2, 3), 5)
    assert World(store).elected().decided == (1, (1, 2), 6)


def test_a_dead_follower_leaves_the_isr_with_a_new_leader_epoch() -> None:
    world = World(Store(1, (1, 2, 3), registered=dict(ALL))).elected()
    del world.store.registered[2]
    world.controller.brokers_changed()
    assert world.run().decided == (1, (1, 3), 6)


def test_the_last_member_keeps_its_place_and_leads_again_when_it_is_back() -> None:
    world = World(Store(2, (2,), registered=dict(ALL))).elected()
    del world.store.registered[2]
    world.controller.brokers_changed()
    assert world.run().decided == (0, (2,), 6)
    world.store.registered[2] = 20
    world.controller.brokers_changed()
    assert world.run().decided == (2, (2,), 7)


def test_a_bounce_is_missed_without_broker_epochs() -> None:
    for name, decided in (("kip279", (2, (1, 2, 3), 5)), ("kip320", (1, (1, 3), 6))):
        world = World(Store(2, (1, 2, 3), registered=dict(ALL)), name).elected()
        world.store.registered[2] = 20
        world.controller.brokers_changed()
        assert world.run().decided == decided


def test_a_bounce_that_no_controller_saw() -> None:
    for value, leader in (("unnoticed", 2), ("noticed", 1)):
        store = Store(2, (1, 2, 3), registered={1: 11, 2: 20, 3: 13})
        store.state.registrations.update(ALL)
        world = World(store, rules={"missed_bounce": value}).elected()
        assert world.decided[0] == leader


def test_a_leader_that_shuts_down_hands_over() -> None:
    answers: list[tuple[str, int]] = []
    world = World(Store(1, (1, 2, 3), registered=ALL)).elected()
    world.controller.controlled_shutdown(1, 11, lambda *answer: answers.append(answer))
    assert world.run().decided == (2, (2, 3), 6)
    assert answers == [("", 0)]


def test_the_sole_member_cannot_hand_over() -> None:
    answers: list[tuple[str, int]] = []
    world = World(Store(1, (1,), registered=ALL)).elected()
    world.controller.controlled_shutdown(1, 11, lambda *answer: answers.append(answer))
    assert world.run().decided == (1, (1,), 5)
    assert answers == [("", 1)]


def test_a_follower_that_shuts_down_is_stopped_and_leaves_the_isr() -> None:
    answers: list[tuple[str, int]] = []
    world = World(Store(1, (1, 2, 3), registered=ALL)).elected()
    world.controller.controlled_shutdown(2, 12, lambda *answer: answers.append(answer))
    assert world.run().decided == (1, (1, 3), 6)
    assert world.stopped == [2]
    world.controller.controlled_shutdown(3, 1, lambda *answer: answers.append(answer))
    world.run()
    assert answers == [("", 0), ("STALE_BROKER_EPOCH", 0)]


def test_the_preferred_leader_takes_over() -> None:
    world = World(Store(2, (1, 2), registered=ALL)).elected()
    world.controller.preferred_election()
    assert world.run().decided == (1, (1, 2), 6)
    world.controller.preferred_election()
    assert world.run().decided == (1, (1, 2), 6)


def test_unclean_election_can_be_allowed_later() -> None:
    world = World(Store(3, (3,), registered={1: 11, 2: 12})).elected()
    assert world.decided[0] == 0
    world.controller.unclean_election = True
    world.controller.settings_changed()
    assert world.run().decided == (1, (1,), 7)


def test_a_reassignment_waits_for_the_new_replica_and_drops_the_old_one() -> None:
    world = World(Store(1, (1, 2, 3), registered={**ALL, 4: 14})).elected()
    world.store.target = (4, 2, 3)
    world.controller.reassignment_asked()
    world.run()
    assert set(world.store.state.replicas) == {1, 2, 3, 4}
    assert world.decided[0] == 1
    world.store.amend(1, lambda state: (1, (1, 2, 3, 4), state.replicas), fenced=True)
    world.controller.isr_changed()
    world.run()
    assert world.store.state.replicas == (4, 2, 3)
    assert world.decided[:2] == (4, (2, 3, 4))
    assert world.deleted == [1]
    assert world.store.target == ()


def test_a_controller_that_was_replaced_is_refused_at_once_or_when_the_other_has_written() -> None:
    for name, leader, working in (("kip320", 3, False), ("kip279", 1, True)):
        world = World(Store(3, (1, 2, 3), registered=dict(ALL)), name).elected()
        world.store.newest = 2
        del world.store.registered[3]
        world.controller.brokers_changed()
        assert world.run().decided[0] == leader
        assert world.working == working
    world.store.state.controller_epoch = 2
    del world.store.registered[1]
    world.controller.brokers_changed()
    assert world.run().decided[0] == 1


def test_what_is_at_work_when_the_session_ends_is_given_up_or_finished() -> None:
    for name, leader in (("kip320", 3), ("kip279", 1)):
        world = World(Store(3, (1, 2, 3), registered=dict(ALL)), name).elected()
        del world.store.registered[3]
        world.controller.brokers_changed()
        world.step()
        world.controller.session_lost()
        assert world.run().decided[0] == leader
        assert not world.working


def test_events_are_handled_one_after_the_other() -> None:
    world = World(Store(1, (1, 2, 3), registered=dict(ALL))).elected()
    del world.store.registered[2]
    world.controller.brokers_changed()
    world.controller.preferred_election()
    del world.store.registered[3]
    world.controller.brokers_changed()
    assert world.run().decided == (1, (1,), 7)
