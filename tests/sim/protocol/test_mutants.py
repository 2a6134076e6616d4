"""Each mutant, driven directly: the right decision without it, another one with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sim.errors import InputError
from sim.hosts.cluster import TOPIC
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.kraft.quorum_messages import BrokerRegistrationRequest, BrokerRegistrationResponse
from sim.protocol.messages import (
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    LATEST,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    STALE_CONTROLLER_EPOCH,
    LeaderAndIsr,
    ProduceRequest,
    UpdateMetadataRequest,
)
from sim.protocol.modes import MODES
from sim.protocol.mutants import MUTANTS, NO_MUTANT
from sim.protocol.mutations import Mutation
from sim.protocol.replica.become_follower import restarts_fetcher
from sim.protocol.replica.followers import UNKNOWN_LEO
from sim.protocol.replica.replica import Replica
from tests.sim.protocol.controlling import Store
from tests.sim.protocol.controlling import World as Controlling
from tests.sim.protocol.quorum_host import QuorumHost
from tests.sim.protocol.recording import Recorder, decision, filled, partition, produce
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
    other = BrokerRegistrationRequest(1, 77, -1, (0,))
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


def ack_before_replication(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(), EARLY_US)
    one.produce(produce(0), EARLY_US)
    return host.of("answer"), host.decide


def writes_kept_after_resignation(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(), EARLY_US)
    one.produce(produce(0), EARLY_US)
    one.become_follower(decision(leader=2, epoch=2))
    return host.of("answer"), host.decide


def numbered(rules: Rules, *sequences: int) -> tuple[list[str], Decisions]:
    """The errors of batches of one record with these sequences."""
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(), EARLY_US)
    for first_id, sequence in enumerate(sequences):
        one.produce(ProduceRequest(1001, "t-0", first_id, 1, 1, (7, 0, sequence)), EARLY_US)
    return [error for _, error, _ in host.of("answer")] + [str(one.log.leo)], host.decide


def gap_in_sequences_accepted(rules: Rules) -> Scene:
    return numbered(rules, 0, 5)


def only_newest_batch_deduplicated(rules: Rules) -> Scene:
    return numbered(rules, 0, 1, 2, 0)


def hw_ignores_min_isr(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules, min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), EARLY_US)
    one.append_new(0, 3, 1)
    one.advance_hw(EARLY_US)
    return one.hw, host.decide


def hw_without_joining_members(rules: Rules) -> Scene:
    host = Recorder()
    host.registered = {2: 1, 3: 1}
    one = partition(host, rules)
    one.become_leader(decision(isr=(1, 2)), EARLY_US)
    one.follower_fetched(3, 1, 0, 1, EARLY_US)
    assert one.state.pending == (1, 2, 3)
    return one.followers.states[3].in_maximal_isr, host.decide


def hw_without_leaving_members(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(), EARLY_US)
    one.append_new(0, 3, 1)
    one.follower_fetched(2, 1, 3, 1, LATE_US)
    one.shrink_isr(LATE_US)
    assert one.state.pending == (1, 2)
    return one.followers.states[3].in_maximal_isr, host.decide


def hw_from_leo_at_restart(rules: Rules) -> Scene:
    host = Recorder()
    before = filled(host, {1: 3}, rules)
    decide = Decisions(rules)
    return Replica("t-0", before.log, before.epochs, 1, decide, host).hw, decide


def epoch_not_recorded_by_follower(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules)
    one.append_fetched(Batch(0, 0, 4, 1))
    return one.epochs.latest, host.decide


def epochs_kept_at_truncation(rules: Rules) -> Scene:
    host = Recorder()
    one = filled(host, {1: 2, 2: 2}, rules)
    one.truncate_to(2)
    return one.epochs.latest, host.decide


def hw_kept_at_full_truncation(rules: Rules) -> Scene:
    host = Recorder()
    one = filled(host, {1: 2}, rules)
    one.truncate_fully(10)
    return one.hw, host.decide


def log_start_above_hw(rules: Rules) -> Scene:
    host = Recorder()
    one = filled(host, {1: 4}, rules, hw=2)
    one.advance_log_start(4)
    return one.log.log_start, host.decide


def end_of_next_epoch(rules: Rules) -> Scene:
    host = Recorder()
    return filled(host, {1: 2, 2: 2, 3: 2}, rules).diverging(1), host.decide


def read_above_hw(rules: Rules) -> Scene:
    host = Recorder()
    return len(filled(host, {1: 3}, rules, hw=1).read_committed(0)), host.decide


def list_offsets_above_hw(rules: Rules) -> Scene:
    host = Recorder()
    one = partition(host, rules)
    one.become_leader(decision(), EARLY_US)
    one.append_new(0, 3, 1)
    return one.list_offset(LATEST, 1, replica=False), host.decide


def hw_of_diverging_response(rules: Rules) -> Scene:
    follower = Follower({1: 4}, rules, hw=1).follow(5)
    follower.brings(hw=3, diverging=(1, 3))
    return follower.replica.hw, follower.host.decide


def clean_stop_without_flush(rules: Rules) -> Scene:
    world = World("elr-repaired", rules=rules.as_dict()).ready()
    world.write(3)
    decide = world.cluster.running[2].decide
    assert world.cluster.shut_down(2)
    world.run(20)
    assert 2 not in world.cluster.running
    return world.cluster.machines.storages[2].is_flushed, decide


def epoch_0_not_recovered(rules: Rules) -> Scene:
    world = World("kip320-repaired", rules=rules.as_dict()).ready()
    world.write(3)
    assert world.cluster.kill(2)
    storage = world.cluster.machines.storages[2]
    storage.epoch_checkpoint.write([])
    decide = Decisions(rules)
    _, epochs, _ = storage.recover(decide, clean=False)
    return epochs.latest, decide


def unclean_registration_taken_for_clean(rules: Rules) -> Scene:
    quorum = QuorumHost(rules).create(1, 2, 3)
    quorum.fence(3)
    return quorum.controller.register(3, 555, -1).detected_unclean, quorum.decide


def small_isr(rules: Rules) -> QuorumHost:
    """ISR [1], ELR [3]."""
    quorum = QuorumHost(rules).create(1, 2, 3)
    quorum.fence(2, 3)
    assert quorum.lists() == (1, (1,), (3,), ())
    return quorum


def elr_kept_at_min_isr(rules: Rules) -> Scene:
    quorum = small_isr(rules)
    quorum.start(2)
    assert not quorum.alter(1, 2)
    return quorum.state.elr, quorum.decide


def elr_keeps_unclean_member(rules: Rules) -> Scene:
    quorum = small_isr(rules)
    quorum.register(3)
    return quorum.state.elr, quorum.decide


def election_outside_isr(rules: Rules) -> Scene:
    quorum = QuorumHost(rules).create(1, 2, 3)
    quorum.fence(2)
    quorum.start(2)
    quorum.fence(1)
    return quorum.state.leader, quorum.decide


def last_known_leader_forgotten(rules: Rules) -> Scene:
    quorum = small_isr(rules)
    quorum.fence(1)
    return quorum.state.last_known_elr, quorum.decide


def isr_written_over_newer_version(rules: Rules) -> Scene:
    world = World("kip320-repaired", rules=rules.as_dict()).ready()
    decide, state = world.process(1).decide, world.zookeeper.state
    old = LeaderAndIsr(state.name, 1, state.leader_epoch, (1, 2), state.partition_epoch - 1, ())
    mutant = decide.mutants.isr_written_over_newer_version
    return world.zookeeper.tree.write_isr(old, (1, 2), {}, decide.admits_registered_members, mutant)[0], decide


def request_of_former_controller(rules: Rules) -> Scene:
    world = World("kip320-repaired", rules=rules.as_dict()).ready()
    one = world.process(2)
    epoch = world.process(world.cluster.controller).module.controller.context.epoch
    late = UpdateMetadataRequest(epoch - 1, one.broker_epoch, (one.metadata.known[TOPIC],), one.metadata.live, 1)
    return one.update_metadata(late), one.decide


def preferred_leader_outside_isr(rules: Rules) -> Scene:
    store = Store(2, (2, 3), registered={1: 11, 2: 12, 3: 13})
    world = Controlling(store, "kip320-repaired", rules=rules.as_dict()).elected()
    world.controller.preferred_election(("p",))
    return world.run().decided[0], world.decide


def restored_setting_not_recorded(rules: Rules) -> Scene:
    quorum = QuorumHost(rules).create(1, 2, 3)
    for value in (1, 2):
        assert quorum.controller.set(MIN_ISR, value) == NONE
    return quorum.controller.own_min_isr(quorum.state), quorum.decide


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
    "ack-before-replication": (ack_before_replication, [], [(0, NONE, 0)]),
    "writes-kept-after-resignation": (writes_kept_after_resignation, [(0, NOT_LEADER_OR_FOLLOWER, -1)], []),
    "gap-in-sequences-accepted": (
        gap_in_sequences_accepted,
        [NONE, OUT_OF_ORDER_SEQUENCE_NUMBER, "1"],
        [NONE, NONE, "2"],
    ),
    "only-newest-batch-deduplicated": (
        only_newest_batch_deduplicated,
        [NONE, NONE, NONE, NONE, "3"],
        [NONE, NONE, NONE, NONE, "4"],
    ),
    "hw-ignores-min-isr": (hw_ignores_min_isr, 0, 3),
    "hw-without-joining-members": (hw_without_joining_members, True, False),
    "hw-without-leaving-members": (hw_without_leaving_members, True, False),
    "hw-from-leo-at-restart": (hw_from_leo_at_restart, 1, 3),
    "epoch-not-recorded-by-follower": (epoch_not_recorded_by_follower, 4, None),
    "epochs-kept-at-truncation": (epochs_kept_at_truncation, 1, 2),
    "hw-kept-at-full-truncation": (hw_kept_at_full_truncation, 10, 0),
    "log-start-above-hw": (log_start_above_hw, 2, 4),
    "end-of-next-epoch": (end_of_next_epoch, (1, 2), (1, 4)),
    "read-above-hw": (read_above_hw, 1, 3),
    "list-offsets-above-hw": (list_offsets_above_hw, (NONE, 0), (NONE, 3)),
    "hw-of-diverging-response": (hw_of_diverging_response, 1, 3),
    "clean-stop-without-flush": (clean_stop_without_flush, True, False),
    "epoch-0-not-recovered": (epoch_0_not_recovered, 0, None),
    "unclean-registration-taken-for-clean": (unclean_registration_taken_for_clean, True, False),
    "elr-kept-at-min-isr": (elr_kept_at_min_isr, (), (3,)),
    "elr-keeps-unclean-member": (elr_keeps_unclean_member, (), (3,)),
    "election-outside-isr": (election_outside_isr, 3, 2),
    "last-known-leader-forgotten": (last_known_leader_forgotten, (1,), ()),
    "isr-written-over-newer-version": (isr_written_over_newer_version, INVALID_UPDATE_VERSION, NONE),
    "request-of-former-controller": (request_of_former_controller, STALE_CONTROLLER_EPOCH, NONE),
    "preferred-leader-outside-isr": (preferred_leader_outside_isr, 2, 1),
    "restored-setting-not-recorded": (restored_setting_not_recorded, 2, 1),
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
    outcome, decide = scene(rules.override({"mutant": name}))
    assert outcome == wrong
    assert name in decide.mutants.differed


@pytest.mark.parametrize("is_on", [False, True])
def test_a_place_notes_that_it_was_executed_and_the_situations_in_which_the_mutant_differs(is_on: bool) -> None:
    one, other = Mutation(is_on=is_on), Mutation(is_on=is_on)
    seen: list[tuple[int, int]] = []
    one.watch = lambda about, leo: seen.append((about, leo))
    assert (one.when(False, 2, 5), other.keeps(False)) == (False, False)
    assert (one.took, one.differed, other.took, other.differed) == (True, False, True, False)
    assert (one.when(True, 2, 5), other.keeps(True)) == (is_on, not is_on)
    assert (one.differed, other.differed, seen) == (True, True, [(2, 5)])


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
