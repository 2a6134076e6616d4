"""Each mutant, driven directly: the right decision without it, another one with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sim.errors import InputError
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.quorum_messages import BrokerRegistrationRequest, BrokerRegistrationResponse
from sim.protocol.messages import INELIGIBLE_REPLICA, INVALID_UPDATE_VERSION, NONE
from sim.protocol.modes import MODES
from sim.protocol.mutants import MUTANTS, NO_MUTANT
from sim.protocol.replica.become_follower import restarts_fetcher
from sim.protocol.replica.followers import UNKNOWN_LEO
from tests.sim.protocol.quorum_host import QuorumHost
from tests.sim.protocol.recording import Recorder, decision, filled, partition
from tests.sim.protocol.replica.test_replica_fetcher_thread import Follower
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.protocol.rules import Rules

ELR = MODES["elr-repaired"].rules
EARLY_US, LATE_US = 10, 50_000_000
Scene = tuple[object, Decisions]
"""The outcome, and the rules that decided."""


def registration_of_another_request(rules: Rules) -> Scene:
    world = World("elr-repaired", rules=rules.as_dict())
    world.run(0.0051)
    broker: Any = world.cluster.running[1]
    assert broker.broker_epoch == -1
    other = BrokerRegistrationRequest(1, 77, -1, 0)
    broker.on_registered(BrokerRegistrationResponse(other, NONE, 99))
    return broker.broker_epoch, broker.decide


def leo_from_earlier_leadership(rules: Rules) -> Scene:
    host = Recorder()
    one = filled(host, {1: 3}, rules)
    one.become_leader(decision(epoch=2), EARLY_US)
    one.follower_fetched(2, 1, 3, 2, EARLY_US)
    one.become_follower(decision(leader=2, epoch=3))
    one.become_leader(decision(epoch=4), LATE_US)
    return one.followers.states[2].leo, host.decide


def fetch_continues_in_new_epoch(rules: Rules) -> Scene:
    decide = Decisions(rules)
    return restarts_fetcher(decide, 2, 4, decision(leader=2, epoch=5)), decide


def join_without_fetch(rules: Rules) -> Scene:
    host = Recorder()
    host.registered = {2: 1, 3: 1}
    one = filled(host, {1: 3}, rules)
    one.become_leader(decision(epoch=2, isr=(1,)), EARLY_US)
    one.follower_fetched(2, 1, 3, 2, EARLY_US)
    return host.of("isr"), host.decide


def join_below_hw(rules: Rules) -> Scene:
    host = Recorder()
    host.registered = {2: 1, 3: 1}
    one = partition(host, rules)
    one.become_leader(decision(epoch=2, isr=(1,)), EARLY_US)
    one.append_new(0, 3, 2)
    one.advance_hw(EARLY_US)
    assert one.hw == 3
    one.follower_fetched(2, 1, 1, 2, LATE_US)
    return host.of("isr"), host.decide


def join_below_epoch_start(rules: Rules) -> Scene:
    host = Recorder()
    host.registered = {2: 1, 3: 1}
    one = filled(host, {1: 3}, rules, hw=1)
    one.become_leader(decision(epoch=2, isr=(1, 3)), EARLY_US)
    one.follower_fetched(2, 1, 1, 2, EARLY_US)
    return host.of("isr"), host.decide


def fetch_response_at_another_offset(rules: Rules) -> Scene:
    follower = Follower({1: 2}, rules).follow(1)
    asked = follower.asked
    follower.replica.truncate_to(1)
    follower.answers(asked, Batch(2, 2, 1, 40))
    return follower.replica.log.leo, follower.host.decide


def fetch_response_of_earlier_epoch(rules: Rules) -> Scene:
    follower = Follower({1: 4}, rules, hw=4).follow(5)
    late = follower.asked
    follower.fetcher.remove("t-0")
    follower.follow(7)
    follower.answers(late, diverging=(1, 2))
    return follower.replica.log.leo, follower.host.decide


def alter_partition_of_earlier_registration(rules: Rules) -> Scene:
    quorum = QuorumHost(rules).create(1, 2, 3)
    quorum.fence(3)
    old = quorum.image.brokers[3].broker_epoch
    quorum.start(3)
    return quorum.alter(1, 2, 3, broker_epochs={3: old}), quorum.decide


def alter_partition_of_earlier_partition_epoch(rules: Rules) -> Scene:
    quorum = QuorumHost(rules).create(1, 2, 3)
    before = quorum.state.partition_epoch
    assert not quorum.alter(1, 2)
    return quorum.alter(1, 3, partition_epoch=before), quorum.decide


SCENES: dict[str, tuple[Callable[[Rules], Scene], object, object]] = {
    "registration-of-another-request": (registration_of_another_request, -1, 99),
    "leo-from-earlier-leadership": (leo_from_earlier_leadership, UNKNOWN_LEO, 3),
    "fetch-continues-in-new-epoch": (fetch_continues_in_new_epoch, True, False),
    "join-without-fetch": (join_without_fetch, [((1, 2),)], [((1, 2, 3),)]),
    "join-below-hw": (join_below_hw, [], [((1, 2),)]),
    "join-below-epoch-start": (join_below_epoch_start, [], [((1, 2, 3),)]),
    "fetch-response-at-another-offset": (fetch_response_at_another_offset, 1, 3),
    "fetch-response-of-earlier-epoch": (fetch_response_of_earlier_epoch, 4, 2),
    "alter-partition-of-earlier-registration": (alter_partition_of_earlier_registration, INELIGIBLE_REPLICA, NONE),
    "alter-partition-of-earlier-partition-epoch": (
        alter_partition_of_earlier_partition_epoch,
        INVALID_UPDATE_VERSION,
        NONE,
    ),
}
"""Mutant -> a scene, its outcome without the mutant, and with it."""


def test_every_mutant_has_a_scene_and_a_place() -> None:
    assert list(SCENES) == list(MUTANTS) == list(Decisions(ELR).mutants.by_name)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_decides_otherwise(name: str) -> None:
    scene, right, wrong = SCENES[name]
    rules = MODES[MUTANTS[name].mode].rules
    outcome, decide = scene(rules)
    assert outcome == right
    assert name in decide.mutants.took
    assert name in decide.mutants.differed
    outcome, decide = scene(rules.override({"mutant": name}))
    assert outcome == wrong
    assert name in decide.mutants.differed


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_names_its_source_place_and_hunt(name: str) -> None:
    mutant = MUTANTS[name]
    assert mutant.sentence.endswith(".")
    assert mutant.source
    assert mutant.place.count("#") == 1
    assert mutant.tier in (1, 2)
    assert mutant.mode in MODES


def test_no_mode_has_a_mutant() -> None:
    assert {mode.rules.mutant for mode in MODES.values()} == {NO_MUTANT}


def test_a_mutant_is_no_rule_but_goes_where_rules_go() -> None:
    assert "mutant" not in ELR.as_dict()
    assert ELR.override({"mutant": "join-below-hw"}).as_dict()["mutant"] == "join-below-hw"
    with pytest.raises(InputError, match="unknown mutant 'join-below-hv'; did you mean 'join-below-hw'"):
        ELR.override({"mutant": "join-below-hv"})
