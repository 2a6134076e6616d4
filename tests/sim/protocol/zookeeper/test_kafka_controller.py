"""The controller driven directly: what it writes, and whom it tells what."""

from __future__ import annotations

import pytest

from sim.protocol.decisions import Decision
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.election import BrokerInfo
from tests.sim.protocol.controlling import Store, World

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


def test_an_older_controller_ignores_dead_replicas_at_start() -> None:
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


def test_the_last_member_leaves_in_0_10_where_unclean_election_is_allowed() -> None:
    """KafkaController.removeReplicaFromIsr 0.10.2."""
    for name, unclean, isr in (("hw", True, ()), ("hw", False, (2,)), ("kip101", True, (2,))):
        world = World(Store(2, (2,), registered={2: 12}), name, unclean=unclean).elected()
        del world.store.registered[2]
        world.controller.brokers_changed()
        assert world.run().decided == (0, isr, 6), name
        world.store.registered.update({1: 21, 2: 22})
        world.controller.brokers_changed()
        leader = 2 if isr else 1
        assert world.run().decided == (leader, (leader,), 7), name


def test_an_empty_isr_without_unclean_election_has_no_leader() -> None:
    world = World(Store(2, (2,), registered={2: 12}), "hw", unclean=True).elected()
    del world.store.registered[2]
    world.controller.brokers_changed()
    world.run().controller.partitions.unclean_election = False
    world.store.registered.update(ALL)
    world.controller.brokers_changed()
    assert world.run().decided == (0, (), 6)


def test_a_leader_that_was_gone_is_elected_anew_when_it_is_back() -> None:
    store = Store(1, (1,), registered={2: 12, 3: 13})
    world = World(store, "kip279").elected()
    assert world.decided == (1, (1,), 5)  # Nobody looked at the dead replica.
    store.registered[1] = 20
    world.controller.brokers_changed()
    assert world.run().decided == (1, (1,), 6)
    assert world.of("lead")[-3:] == [(1, 6), (2, 6), (3, 6)]


def test_a_bounce_is_missed_without_broker_epochs() -> None:
    for name, decided in (("kip279", (2, (1, 2, 3), 5)), ("kip320", (1, (1, 3), 6))):
        world = World(Store(2, (1, 2, 3), registered=dict(ALL)), name).elected()
        world.store.registered[2] = 20
        world.controller.brokers_changed()
        assert world.run().decided == decided


def _bounced(leader: int, registered: dict[int, int], logs: dict[int, tuple[int, int]]) -> World:
    """A controller is elected after some members were started anew, with these logs; rule missed_bounce=noticed."""
    store = Store(leader, (1, 2, 3), registered=registered)
    for broker, log_end in logs.items():
        store.registrations[broker] = BrokerInfo(broker + 10, {"p": log_end})
    return World(store, rules={"missed_bounce": "noticed"}).elected()


def test_a_bounce_that_no_controller_saw() -> None:
    for value, leader in (("unnoticed", 2), ("noticed", 1)):
        store = Store(2, (1, 2, 3), registered={1: 11, 2: 20, 3: 13})
        store.registrations[2] = BrokerInfo(20, {"p": (4, 9)})
        world = World(store, rules={"missed_bounce": value}).elected()
        assert world.decided[0] == leader


def test_a_session_that_expired_is_no_bounce() -> None:
    world = World(Store(2, (1, 2, 3), registered={1: 11, 2: 20, 3: 13}), rules={"missed_bounce": "noticed"})
    assert world.elected().decided[:2] == (2, (1, 2, 3))


def test_bounce_before_the_topic_exists_is_none() -> None:
    store = Store(0, (1, 2), epoch=-1, registered={1: 11})
    store.state = LeaderAndIsr("p", 0, -1, (1, 2), 1, (1, 2, 3))
    world = World(store, rules={"missed_bounce": "noticed"}).elected()
    assert list(world.controller.context.live) == [1]


def test_a_member_that_ran_all_the_time_is_waited_for() -> None:
    world = _bounced(1, {1: 21, 2: 22}, {1: (4, 0), 2: (4, 9)})
    assert world.decided[:2] == (0, (1, 2, 3))
    world.store.registered[3] = 23
    world.controller.brokers_changed()
    assert world.run().decided[:2] == (3, (3,))


def test_longest_log_leads_when_all_members_were_started_anew() -> None:
    world = _bounced(1, {1: 21, 3: 23}, {1: (4, 7), 2: (3, 9), 3: (4, 8)})
    assert world.decided[:2] == (0, (1, 2, 3))  # Who is not back may have the longest.
    world.store.registered[2] = 22
    world.controller.brokers_changed()
    assert world.run().decided[:2] == (3, (3,))


def test_unclean_election_does_not_wait() -> None:
    store = Store(1, (1, 2), registered={1: 21, 3: 13})
    store.registrations[1] = BrokerInfo(11, {"p": (4, 0)})
    world = World(store, rules={"missed_bounce": "noticed"}, unclean=True).elected()
    assert world.decided[0] == 3


@pytest.mark.parametrize(("mode", "leader"), [("hw", 0), ("kip101", 0), ("kip279", 3), ("kip320", 3)])
def test_a_partition_that_may_be_elected_uncleanly_waits_for_an_event_to_1_1(mode: str, leader: int) -> None:
    world = World(Store(1, (1,), registered={1: 11, 3: 13}), mode).elected()
    del world.store.registered[1]
    world.controller.brokers_changed()
    assert world.run().decided[0] == 0
    world.controller.partitions.unclean_election = True
    world.controller.settings_changed()
    assert world.run().decided[0] == leader
    world.store.registered[2] = 12
    world.controller.brokers_changed()
    assert world.run().decided[0] == (leader or 2)


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
    world.controller.preferred_election(("p",))
    assert world.run().decided == (1, (1, 2), 6)
    world.controller.preferred_election(("p",))
    assert world.run().decided == (1, (1, 2), 6)


def test_unclean_election_can_be_allowed_later() -> None:
    world = World(Store(3, (3,), registered={1: 11, 2: 12})).elected()
    assert world.decided[0] == 0
    world.controller.partitions.unclean_election = True
    world.controller.settings_changed()
    assert world.run().decided == (1, (1,), 7)


def test_a_reassignment_waits_for_the_new_replica_and_drops_the_old_one() -> None:
    world = World(Store(1, (1, 2, 3), registered={**ALL, 4: 14})).elected()
    world.store.target = (4, 2, 3)
    world.controller.reassignment_requested(("p",))
    world.run()
    assert set(world.store.state.replicas) == {1, 2, 3, 4}
    assert world.decided[0] == 1
    world.store.update_state(1, "p", lambda state, _: (1, (1, 2, 3, 4), state.replicas), fenced=Decision(answer=True))
    world.controller.isr_changed(("p",))
    world.run()
    assert world.store.state.replicas == (4, 2, 3)
    assert world.decided[:2] == (4, (2, 3, 4))
    assert world.deleted == [1]
    assert not world.store.target


@pytest.mark.parametrize(("name", "decided"), [("hw", (1, (1, 2), 6)), ("kip320", (2, (2,), 7))])
def test_a_leader_that_shuts_down_is_offline_when_a_bystander_fails(
    name: str, decided: tuple[int, tuple[int, ...], int]
) -> None:
    world = World(Store(1, (1,), registered=dict(ALL)), name).elected()
    world.controller.controlled_shutdown(1, 11, lambda *_: None)
    world.run()
    assert world.decided == (1, (1,), 5)
    world.store.update_state(1, "p", lambda state, _: (1, (1, 2), state.replicas), fenced=Decision(answer=True))
    del world.store.registered[3]
    world.controller.brokers_changed()
    assert world.run().decided == decided


@pytest.mark.parametrize(("name", "isr"), [("hw", ()), ("kip101", (1,))])
def test_the_last_member_leaves_an_isr_that_is_not_needed(name: str, isr: tuple[int, ...]) -> None:
    world = World(Store(1, (1,), replicas=(1, 2), registered={1: 11}), name, unclean=True).elected()
    del world.store.registered[1]
    world.controller.brokers_changed()
    assert world.run().decided == (0, isr, 6)


@pytest.mark.parametrize(("name", "leads"), [("hw", [2, 3]), ("kip101", [2]), ("kip279", [2]), ("kip320-2.1", [2, 3])])
def test_from_1_1_to_2_0_a_broker_that_shuts_down_does_not_learn_of_its_successor(name: str, leads: list[int]) -> None:
    """KAFKA-7482. Metadata goes to all live brokers in each release."""
    answers: list[tuple[str, int]] = []
    world = World(Store(3, (2, 3), replicas=(2, 3), registered=dict(ALL)), name).elected()
    world.told.clear()
    world.controller.controlled_shutdown(3, 13, lambda error, remaining: answers.append((error, remaining)))
    assert world.run().decided == (2, (2,), 6)
    assert answers == [("", 0)]
    assert world.of("lead") == [(broker, 6) for broker in leads]
    assert world.of("metadata") == [(1, 6), (2, 6), (3, 6)]


@pytest.mark.parametrize("name", ["hw", "kip101", "kip320"])
def test_a_broker_that_shuts_down_does_not_learn_of_an_election_after_a_failure(name: str) -> None:
    world = World(Store(1, (1, 2, 3), registered=dict(ALL)), name).elected()
    world.controller.controlled_shutdown(3, 13, lambda *_: None)
    assert world.run().decided[:2] == (1, (1, 2))
    world.told.clear()
    del world.store.registered[1]
    world.controller.brokers_changed()
    assert world.run().decided[0] == 2
    assert world.of("lead") == [(2, world.decided[2])]
    assert world.of("metadata")[-1][0] == 3


@pytest.mark.parametrize(("name", "epoch"), [("hw", 5), ("kip101", 6), ("kip320", 5)])
def test_a_preferred_leader_that_leads_is_elected_again_in_some_releases(name: str, epoch: int) -> None:
    world = World(Store(1, (1, 2), registered=dict(ALL)), name).elected()
    world.controller.preferred_election(("p",))
    assert world.run().decided == (1, (1, 2), epoch)


@pytest.mark.parametrize(("name", "left"), [("kip279", ()), ("kip320", (1, 2, 4))])
def test_the_next_controller_abandons_a_reassignment_that_is_not_in_sync(name: str, left: tuple[int, ...]) -> None:
    world = World(Store(1, (1, 2), replicas=(1, 2), registered=dict(ALL)), name).elected()
    world.store.target = (1, 2, 4)
    world.controller.reassignment_requested(("p",))
    assert world.run().decided == (1, (1, 2), 6)
    assert world.store.state.replicas == (1, 2, 4)
    world.controller.resign()
    world.elected()
    assert world.store.target == left


def test_a_reassignment_begins_anew_when_a_replica_comes_that_it_adds() -> None:
    world = World(Store(1, (1, 2), replicas=(1, 2), registered=dict(ALL))).elected()
    world.store.target = (1, 4)
    world.controller.reassignment_requested(("p",))
    assert world.run().decided[2] == 6
    for broker, epoch in ((5, 6), (4, 7)):
        world.store.registered[broker] = 20
        world.controller.brokers_changed()
        assert world.run().decided[2] == epoch


def test_a_reassignment_goes_on_when_nobody_can_lead() -> None:
    world = World(Store(1, (1, 2), replicas=(1, 2), registered={1: 11})).elected()
    world.store.update_state(1, "p", lambda state, _: (1, (1, 2), state.replicas), fenced=Decision(answer=True))
    world.store.target = (2,)
    world.controller.reassignment_requested(("p",))
    assert world.run().decided[:2] == (0, (2,))
    assert world.store.state.replicas == (2,)
    assert not world.store.target


@pytest.mark.parametrize("name", ["kip320", "kip320-repaired"])
def test_a_reassignment_waits_until_a_member_that_stays_is_known_to_lack_nothing(name: str) -> None:
    """Both members have ended; the one that is to stay is back, started anew."""
    store = Store(1, (1, 2), replicas=(1, 2), registered={2: 22})
    store.registrations[2] = BrokerInfo(22, {"p": (4, 0)})
    store.target = (2,)
    world = World(store, name).elected()
    waits = name == "kip320-repaired"
    assert (world.decided[0], store.state.isr) == ((0, (1, 2)) if waits else (2, (2,)))
    assert (set(store.state.replicas), store.target) == (({1, 2}, (2,)) if waits else ({2}, ()))
    if waits:
        store.registered[1] = 21
        store.registrations[1] = BrokerInfo(21, {"p": (4, 7)})
        world.controller.brokers_changed()
        assert world.run().decided[:2] == (1, (1,))
        assert store.target == (2,)
        before = store.state
        epochs = before.leader_epoch, before.partition_epoch + 1
        store.state = LeaderAndIsr("p", 1, epochs[0], (1, 2), epochs[1], before.replicas, joined={1: 21, 2: 22})
        world.controller.isr_changed(("p",))
        assert world.run().decided[:2] == (2, (2,))
        assert store.state.replicas == (2,)
        assert not store.target


def test_a_topic_without_live_replicas_waits_for_one() -> None:
    store = Store(0, (), epoch=-1, registered={3: 13})
    store.state = store.state.assigned((1, 2))
    world = World(store).elected()
    assert world.decided == (0, (), -1)
    store.registered[2] = 12
    world.controller.brokers_changed()
    assert world.run().decided == (2, (2,), 0)


def test_a_leader_does_not_learn_again_of_replicas_that_leave() -> None:
    world = World(Store(1, (1, 2, 3, 4), replicas=(1, 2, 3, 4), registered={**ALL, 4: 14})).elected()
    world.store.target = (1, 4)
    world.controller.reassignment_requested(("p",))
    while len(world.assigned) > 2:
        assert world.step()
    assert len(world.store.state.replicas) == 4  # A new controller would go on from here.
    while world.step():
        assert world.assigned == (1, 4)
    state = world.store.state
    assert (state.isr, state.replicas) == ((1, 4), (1, 4))
    assert world.deleted == [2, 3]


def test_a_replaced_controller_is_refused_at_once_or_after_a_write() -> None:
    for name, leader, working in (("kip320", 3, False), ("kip279", 1, True)):
        world = World(Store(3, (1, 2, 3), registered=dict(ALL)), name).elected()
        world.store.newest = 2
        del world.store.registered[3]
        world.controller.brokers_changed()
        assert world.run().decided[0] == leader
        assert world.working == working
    state = world.store.state
    world.store.state = LeaderAndIsr(
        state.name, state.leader, state.leader_epoch, state.isr, state.partition_epoch, state.replicas, 2, state.joined
    )
    del world.store.registered[1]
    world.controller.brokers_changed()
    assert world.run().decided[0] == 1


def test_event_at_work_when_the_session_ends_is_given_up_or_finished() -> None:
    for name, leader in (("kip320", 3), ("kip279", 1)):
        world = World(Store(3, (1, 2, 3), registered=dict(ALL)), name).elected()
        del world.store.registered[3]
        world.controller.brokers_changed()
        world.step()
        world.session_lost()
        assert world.run().decided[0] == leader
        assert not world.working


def test_events_are_handled_one_after_the_other() -> None:
    world = World(Store(1, (1, 2, 3), registered=dict(ALL))).elected()
    del world.store.registered[2]
    world.controller.brokers_changed()
    world.controller.preferred_election(("p",))
    del world.store.registered[3]
    world.controller.brokers_changed()
    assert world.run().decided == (1, (1,), 7)
