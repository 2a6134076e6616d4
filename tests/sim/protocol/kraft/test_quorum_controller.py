"""The active controller, event by event."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sim.protocol.kraft.broker_heartbeat_manager import BrokerHeartbeatReply
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR, PartitionRegistration
from sim.protocol.kraft.partition_change_builder import DESIGNATED, PREFERRED, UNCLEAN
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION, NotAssignedError
from sim.protocol.messages import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INELIGIBLE_REPLICA,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    STALE_BROKER_EPOCH,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from sim.protocol.modes import mode
from sim.protocol.rules import RULES, Rules
from tests.sim.protocol.quorum_host import QuorumHost

ELR = mode("elr").rules
KRAFT = mode("kraft").rules
RECOVERY = mode("elr-recovery").rules
SNAPSHOT = mode("elr-4.0-snapshot").rules


def three(rules: Rules | str = ELR, **config: int | bool) -> QuorumHost:
    """Replicas 1, 2, 3 with min ISR 2."""
    keys = {"min_isr": MIN_ISR, "unclean": UNCLEAN_ELECTION}
    return QuorumHost(rules, {MIN_ISR: 2} | {keys[key]: value for key, value in config.items()}).create(1, 2, 3)


# Registration.


def test_a_broker_epoch_is_the_offset_of_the_record() -> None:
    quorum = QuorumHost(ELR)
    first = quorum.controller.register(1, 7, -1)
    assert (first.error, first.broker_epoch, first.detected_unclean) == (NONE, 1, False)
    assert quorum.image.offset == len(quorum.records) == 1
    assert quorum.controller.register(2, 8, -1).broker_epoch == 2


def test_a_repeated_registration_keeps_the_epoch_with_more_to_read() -> None:
    quorum = three()
    quorum.controller.heartbeat(1, quorum.image.brokers[1].broker_epoch, quorum.image.offset, want_shut_down=True)
    known = quorum.image.brokers[1]
    again = quorum.controller.register(1, known.incarnation, -1)
    assert (again.error, again.broker_epoch) == (NONE, known.broker_epoch)
    assert quorum.image.brokers[1].registered_offset == quorum.image.offset
    reply = quorum.controller.heartbeat(1, known.broker_epoch, quorum.image.offset - 1)
    assert (reply.is_caught_up, reply.is_fenced, reply.should_shut_down) == (False, False, False)


def test_a_new_incarnation_waits_for_the_end_of_the_session() -> None:
    quorum = three()
    assert quorum.controller.register(2, 1, -1) == (DUPLICATE_BROKER_REGISTRATION, -1, False)
    assert "registration-duplicate" in quorum.probes
    quorum.fence(2)
    assert quorum.controller.register(2, 1, -1).detected_unclean


def test_an_unregistered_member_of_the_elr_is_ejected_when_it_registers_again() -> None:
    quorum = three()
    quorum.fence(3)
    quorum.fence(2)
    state = next(iter(quorum.image.partitions.values()))
    assert (state.isr, state.elr) == ((1,), (2,))
    epoch = quorum.image.brokers[2].broker_epoch
    assert quorum.controller.unregister(2) == NONE
    assert next(iter(quorum.image.partitions.values())) is state
    assert quorum.controller.unregister(2) == BROKER_ID_NOT_REGISTERED
    assert quorum.controller.register(2, 9, epoch).detected_unclean
    assert next(iter(quorum.image.partitions.values())).elr == ()


@pytest.mark.parametrize("broker", [2, 3])
@pytest.mark.parametrize(("rules", "error"), [(KRAFT, NONE), (ELR, DUPLICATE_BROKER_REGISTRATION)])
def test_a_fenced_broker_has_a_session_from_4_0_on(rules: Rules, error: str, broker: int) -> None:
    """One that has stopped, and one that only registered and was heard of once."""
    quorum = QuorumHost(rules).create(1, 2)
    if broker == 3:
        quorum.register(3)
        assert quorum.controller.register(3, 1, -1).error == NONE
        quorum.heard(3, want_fence=True)
    else:
        quorum.heard(2, want_shut_down=True)
    assert quorum.image.brokers[broker].fenced
    assert quorum.controller.register(broker, 2, -1).error == error
    assert f"fenced_session={rules.fenced_session}" in quorum.probes
    quorum.sessions.discard(broker)
    assert quorum.controller.register(broker, 3, -1).error == NONE


@pytest.mark.parametrize("rules", [ELR, KRAFT])
def test_who_is_shutting_down_is_replaced_when_its_session_is_over(rules: Rules) -> None:
    quorum = three(rules)
    quorum.controller.heartbeat(1, quorum.image.brokers[1].broker_epoch, quorum.image.offset, want_shut_down=True)
    assert quorum.image.brokers[1].shutting_down
    assert not quorum.image.brokers[1].fenced
    assert quorum.controller.register(1, 1, -1).error == DUPLICATE_BROKER_REGISTRATION
    quorum.sessions.discard(1)
    assert quorum.controller.register(1, 1, -1).error == NONE


def test_a_new_incarnation_that_stops_at_once_leaves_the_isr() -> None:
    quorum = three(KRAFT)
    quorum.sessions.discard(1)
    quorum.register(1)
    assert quorum.lists() == (1, (1, 2, 3), (), ())
    quorum.controller.heartbeat(1, quorum.image.brokers[1].broker_epoch, quorum.image.offset, want_shut_down=True)
    assert quorum.lists() == (2, (2, 3), (), ())


def test_a_former_replica_of_the_elr_cannot_come_back_as_leader() -> None:
    """Its log directory is looked up in the assignment that it is not in."""
    quorum = three(min_isr=3)
    quorum.fence(3)
    assert quorum.controller.reassign("p", (1,)) == NONE
    quorum.fence(1)
    assert quorum.lists() == (0, (), (1, 2, 3), (1,))
    before = quorum.state
    assert quorum.controller.reassign("p", (2, 1)) == UNKNOWN_SERVER_ERROR
    assert quorum.state is before
    quorum.unfence(1)
    assert quorum.controller.reassign("p", (2, 1)) == NONE


def test_electing_a_last_known_leader_that_is_no_replica_throws() -> None:
    quorum = three()
    quorum.fence(3)
    quorum.image.partitions["p"] = PartitionRegistration("p", 0, 3, (), 4, (2, 3), last_known_elr=(1,))
    events = (
        lambda: quorum.controller.elect("p", UNCLEAN),
        quorum.controller.balance,
        lambda: quorum.heard(3),
    )
    before = quorum.state
    for event in events:
        with pytest.raises(NotAssignedError):
            event()
    assert quorum.controller.reassign("p", (2, 1)) == UNKNOWN_SERVER_ERROR
    assert quorum.state is before
    quorum.controller.set(UNCLEAN_ELECTION, True)
    quorum.fence(1)
    assert quorum.controller.check_unclean() == 1
    assert quorum.state.leader == 2


@pytest.mark.parametrize(("rules", "clean"), [(ELR, True), (SNAPSHOT, False)])
def test_a_clean_shutdown_is_one_of_the_registration_before(rules: Rules, clean: bool) -> None:
    quorum = three(rules)
    epoch = quorum.image.brokers[3].broker_epoch
    quorum.fence(3, 2)
    assert quorum.lists()[2] == (2,)
    assert quorum.controller.register(3, 1, epoch).detected_unclean != clean
    assert f"clean_shutdown={rules.clean_shutdown}" in quorum.probes
    epoch = quorum.image.brokers[2].broker_epoch
    assert quorum.controller.register(2, 2, epoch).detected_unclean != clean
    assert quorum.lists()[2] == ((2,) if clean else ())
    quorum.fence(2)
    assert quorum.controller.register(2, 3, epoch).detected_unclean
    assert quorum.lists()[2] == ()


def _bounced_leader(rules: Rules) -> QuorumHost:
    """The leader's process ends uncleanly, and registers anew before its end was acted upon."""
    quorum = three(rules)
    quorum.sessions.discard(1)
    assert quorum.controller.register(1, 1, -1).detected_unclean
    return quorum


def test_an_unclean_registration_is_a_transition() -> None:
    """D12: the leader is another one, under another leader epoch."""
    quorum = _bounced_leader(ELR)
    assert quorum.lists() == (2, (2, 3), (), ())
    assert quorum.state.leader_epoch == 1
    assert "unclean_registration=transitions" in quorum.probes


def test_an_unclean_registration_may_keep_the_leader_epoch() -> None:
    """D12 (KAFKA-18106): a leader outside the ISR, which leads on under the same epoch whatever it lost."""
    quorum = _bounced_leader(ELR.override({"unclean_registration": "removes"}))
    quorum.unfence(1)
    assert quorum.lists() == (1, (2, 3), (), ())
    assert quorum.state.leader_epoch == 0
    assert "unclean_registration=removes" in quorum.probes


def test_registration_changes_no_partition_without_elr() -> None:
    quorum = three(KRAFT)
    quorum.fence(2, 3, 1)
    assert quorum.lists() == (0, (1,), (), ())
    quorum.start(1)
    assert quorum.lists() == (1, (1,), (), ())


@pytest.mark.parametrize(("change", "more"), [("clears-elr", 1), ("clears-if-enough", 0)])
def test_who_was_in_a_cleared_elr_counts_on_as_its_member(change: str, more: int) -> None:
    """Kafka clears the partition's ELR, and not its map of brokers to ELRs."""
    quorum = three(ELR.override({"min_isr_change": change}))
    quorum.fence(1, 2)
    assert quorum.lists() == (3, (3,), (2,), ())
    quorum.controller.set(MIN_ISR, 1)
    assert quorum.lists() == (3, (3,), (), ())
    quorum.fail_over()
    quorum.unfence(2)
    quorum.alter(2, 3)
    before = quorum.state
    quorum.sessions.discard(2)
    quorum.controller.register(2, 1, -1)
    assert quorum.lists() == (3, (3,), (), ())
    assert quorum.state.partition_epoch == before.partition_epoch + 1 + more
    assert quorum.state.leader_epoch == before.leader_epoch


def test_a_clean_new_incarnation_leaves_the_isr_and_stays_electable() -> None:
    quorum = three()
    quorum.fence(3)
    epoch = quorum.image.brokers[2].broker_epoch
    quorum.sessions.discard(2)
    assert not quorum.controller.register(2, 1, epoch).detected_unclean
    assert quorum.lists() == (1, (1,), (2,), ())


# Heartbeats.


def fields(reply: BrokerHeartbeatReply) -> tuple[str, bool, bool, bool]:
    return reply.error, reply.is_caught_up, reply.is_fenced, reply.should_shut_down


def test_a_broker_is_unfenced_when_it_has_read_of_its_registration() -> None:
    quorum = QuorumHost(ELR)
    epoch = quorum.controller.register(1, 7, -1).broker_epoch
    beat = quorum.controller.heartbeat
    assert fields(beat(1, epoch, epoch - 1)) == (NONE, False, True, False)
    assert "broker-behind" in quorum.probes
    assert fields(beat(1, epoch, epoch, want_fence=True)) == (NONE, True, True, False)
    assert fields(beat(1, epoch, epoch)) == (NONE, True, False, False)
    assert beat(1, epoch + 1, epoch).error == STALE_BROKER_EPOCH
    assert beat(2, epoch, epoch).error == STALE_BROKER_EPOCH


def test_a_broker_that_wants_to_be_fenced_is() -> None:
    quorum = three()
    assert quorum.controller.heartbeat(1, 1, quorum.image.offset, want_fence=True).is_fenced
    assert quorum.lists() == (2, (2, 3), (), ())


def test_a_leader_stops_when_the_others_have_read_that_it_does_not_lead() -> None:
    quorum = three()
    controller, epoch = quorum.controller, quorum.image.brokers[1].broker_epoch
    reply = controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True)
    assert fields(reply) == (NONE, True, False, False)
    assert quorum.lists() == (2, (2, 3), (), ())
    assert quorum.image.brokers[1].shutting_down
    assert not controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True).should_shut_down
    assert "broker-must-wait" in quorum.probes
    quorum.unfence(2)
    assert not controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True).should_shut_down
    controller.note_metadata_offset(3, quorum.image.offset)
    assert fields(controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True)) == (NONE, True, True, True)
    assert quorum.image.brokers[1].fenced


def test_broker_that_leads_nothing_stops_at_once() -> None:
    quorum = three()
    epoch = quorum.image.brokers[3].broker_epoch
    assert quorum.controller.heartbeat(3, epoch, quorum.image.offset, want_shut_down=True).should_shut_down
    assert quorum.lists() == (1, (1, 2), (), ())
    assert quorum.controller.heartbeat(3, epoch, quorum.image.offset, want_shut_down=True).should_shut_down


def test_another_controller_lets_who_leads_nothing_any_more_stop_at_once() -> None:
    quorum = three()
    epoch = quorum.image.brokers[1].broker_epoch
    quorum.controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True)
    quorum.fail_over()
    assert quorum.lists() == (2, (2, 3), (), ())
    assert quorum.controller.heartbeat(1, epoch, quorum.image.offset, want_shut_down=True).should_shut_down


def test_shutdown_is_not_recorded_before_3_3() -> None:
    quorum = three(KRAFT.override({"isr_eligibility": "any"}))
    quorum.controller.heartbeat(1, quorum.image.brokers[1].broker_epoch, quorum.image.offset, want_shut_down=True)
    assert not quorum.image.brokers[1].shutting_down
    assert quorum.lists() == (2, (2, 3), (), ())


@pytest.mark.parametrize(("rules", "records"), [(KRAFT, 0), (ELR, 1)])
def test_a_session_of_a_fenced_broker_ends_with_a_record_from_4_0_on(rules: Rules, records: int) -> None:
    quorum = three(rules)
    quorum.fence(3)
    offset, partition = quorum.image.offset, quorum.state
    quorum.fence(3, 9)
    assert quorum.image.offset == offset + records
    assert quorum.state is partition


# The ELR, step by step.


def test_the_elr_of_four_brokers_with_min_isr_three() -> None:
    """KIP-966's setup, and each of its rules (the figure with its steps is not part of the text)."""
    quorum = QuorumHost(ELR, {MIN_ISR: 3}).create(1, 2, 3, 4)
    quorum.fence(4)
    assert quorum.lists() == (1, (1, 2, 3), (), ()), "the ISR has min ISR members: nobody else is electable"
    quorum.fence(3)
    assert quorum.lists() == (1, (1, 2), (3,), ())
    assert quorum.alter(1) == NONE
    assert quorum.lists() == (1, (1,), (2, 3), ()), "2 lags, and is electable"
    quorum.start(4)
    assert quorum.alter(1, 4) == NONE
    assert quorum.lists() == (1, (1, 4), (2, 3), ()), "still below min ISR: the ELR is kept"
    quorum.fence(1)
    assert quorum.lists() == (4, (4,), (1, 2, 3), ())
    quorum.register(1)
    assert quorum.lists() == (4, (4,), (2, 3), ()), "1 ended uncleanly"
    assert quorum.state.leader_epoch == 1, "a change of the ELR alone raises no leader epoch"
    quorum.fence(4)
    assert quorum.lists() == (2, (2,), (3, 4), ()), "2 is unfenced, and leads cleanly"
    assert not quorum.state.recovering
    quorum.fence(2)
    assert quorum.lists() == (0, (), (2, 3, 4), (2,)), "nobody is left; 2 led last"
    quorum.unfence(1)
    assert quorum.lists()[0] == 0, "1 is not electable"
    quorum.start(3, clean=True)
    assert quorum.lists() == (3, (3,), (2, 4), ())
    quorum.start(4, clean=True)
    assert quorum.alter(3, 4) == NONE
    assert quorum.lists() == (3, (3, 4), (2,), ())
    assert quorum.alter(1, 3, 4) == NONE
    assert quorum.lists() == (3, (1, 3, 4), (), ())


def test_all_members_end_uncleanly_and_the_last_leader_is_elected() -> None:
    """D11: 2 lost nothing, and 3, which did, leads."""
    quorum = three()
    quorum.fence(1, 2, 3)
    assert quorum.lists() == (0, (), (2, 3), (3,))
    quorum.start(2)
    assert quorum.lists() == (0, (), (3,), (3,))
    quorum.start(3)
    assert quorum.lists() == (3, (3,), (), ())
    assert quorum.state.recovering
    assert "elected-last-known" in quorum.probes


def test_unclean_election_does_not_wait_for_fenced_elr_members() -> None:
    quorum = three(unclean=True)
    quorum.fence(1, 2, 3)
    quorum.start(1)
    assert quorum.lists() == (1, (1,), (), ())
    assert quorum.state.recovering


@pytest.mark.parametrize(("rules", "leader", "elr"), [(ELR, 0, (1,)), (SNAPSHOT, 2, (1,))])
def test_a_change_of_min_isr_clears_the_elr(rules: Rules, leader: int, elr: tuple[int, ...]) -> None:
    """D9: ELR member 2 may lack what 1 committed alone while min ISR was 1."""
    quorum = three(rules)
    quorum.fence(3)
    assert quorum.alter(1) == NONE
    assert quorum.lists() == (1, (1,), (2,), ())
    quorum.controller.set(MIN_ISR, 1)
    quorum.controller.set(MIN_ISR, 2)
    assert f"min_isr_change={rules.min_isr_change}" in quorum.probes
    quorum.fence(1)
    assert quorum.lists()[0] == leader
    assert quorum.lists()[2] == elr


@pytest.mark.parametrize(
    ("rules", "min_isr", "elr"),
    [
        (SNAPSHOT, 3, (2,)),
        (ELR, 3, ()),
        (RECOVERY, 3, (2,)),
        (RECOVERY, 1, ()),
    ],
)
def test_an_elr_that_is_still_needed_is_kept_by_the_text_of_the_kip(
    rules: Rules, min_isr: int, elr: tuple[int, ...]
) -> None:
    """Who left the ISR of one has all that is committed: while it is forgotten, one loss is one too many."""
    quorum = three(rules)
    quorum.fence(3)
    assert quorum.alter(1) == NONE
    quorum.controller.set(MIN_ISR, min_isr)
    assert quorum.lists() == (1, (1,), elr, ())


def test_the_feature_is_switched_off_and_on() -> None:
    quorum = three()
    quorum.fence(3)
    quorum.alter(1)
    controller = quorum.controller
    assert controller.set(ELR_FEATURE, 0) == NONE
    assert not controller.elr_enabled
    assert quorum.lists() == (1, (1,), (2,), ())
    quorum.controller.set(MIN_ISR, 2)
    assert quorum.lists() == (1, (1,), (2,), ()), "nothing is cleared while it is off"
    quorum.fence(1)
    assert quorum.lists() == (2, (2,), (), ()), "who was in the ELR is elected still"
    quorum.fence(2)
    assert quorum.lists() == (0, (2,), (), ())
    quorum.unfence(2)
    assert controller.set(ELR_FEATURE, 1) == NONE
    assert quorum.lists() == (2, (2,), (), ())
    quorum.fence(2)
    assert quorum.lists() == (0, (), (2,), (2,))
    quorum.fail_over()
    assert quorum.controller.elr_enabled
    assert controller.set(ELR_FEATURE, 2) == INVALID_UPDATE_VERSION
    assert three(KRAFT).controller.set(ELR_FEATURE, 1) == INVALID_UPDATE_VERSION
    assert not QuorumHost(ELR, {ELR_FEATURE: 0}).controller.elr_enabled


@pytest.mark.parametrize(
    ("value", "elr", "after"),
    [("keeps-elr", (2,), (2, (2,), (), ())), ("leaves-elr", (), (0, (1,), (), ()))],
    ids=["as in Kafka", "repaired"],
)
def test_a_broker_registers_uncleanly_while_the_feature_is_disabled(
    value: str, elr: tuple[int, ...], after: tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
) -> None:
    quorum = three(ELR.override({"unclean_shutdown_while_disabled": value}))
    quorum.fence(3, 2)
    assert quorum.lists() == (1, (1,), (2,), ())
    assert quorum.controller.set(ELR_FEATURE, 0) == NONE
    quorum.start(2)
    assert quorum.lists() == (1, (1,), elr, ())
    quorum.fence(1)
    assert quorum.lists() == after


def test_only_the_broker_itself_leaves_the_elr_of_a_disabled_feature() -> None:
    quorum = three(ELR.override({"unclean_shutdown_while_disabled": "leaves-elr"}), min_isr=3)
    quorum.fence(3, 2)
    assert quorum.lists() == (1, (1,), (2, 3), ())
    assert quorum.controller.set(ELR_FEATURE, 0) == NONE
    quorum.start(3, clean=True)
    assert quorum.lists() == (1, (1,), (2, 3), ())
    quorum.start(2)
    assert quorum.lists() == (1, (1,), (3,), ())


def test_an_elr_that_outlives_its_feature_loses_who_registers_uncleanly() -> None:
    quorum = three(ELR.override({"disabled_elr": "kept"}))
    quorum.fence(3, 2, 1)
    assert quorum.lists()[:3] == (0, (), (1, 2))
    assert quorum.controller.set(ELR_FEATURE, 0) == NONE
    quorum.unfence(3)
    assert quorum.lists()[:3] == (0, (), (1, 2))
    quorum.start(1)
    assert quorum.lists()[:3] == (0, (), (2,))
    quorum.unfence(2)
    assert quorum.lists() == (2, (2,), (), ())


@pytest.mark.parametrize(("value", "elr"), [("first-partition", ()), ("own", (2,))], ids=["as in Kafka", "repaired"])
@pytest.mark.parametrize("suffix", ["", "@2"], ids=["first topic", "another topic of its name"])
def test_whose_replicas_cap_min_isr(value: str, elr: tuple[int, ...], suffix: str) -> None:
    """Partition 0 has one replica, so by it one member of the ISR is enough."""
    quorum = QuorumHost(ELR.override({"controller_min_isr": value}))
    quorum.create(1, 2, 3, name=f"t-0{suffix}").create(1, 2, 3, name=f"t-1{suffix}")
    quorum.create(1, 2, 3, name="other-0")
    assert quorum.controller.reassign(f"t-0{suffix}", (1,)) == NONE
    of_second = quorum.image.partitions[f"t-1{suffix}"]
    assert quorum.controller.own_min_isr(of_second) == 2
    assert quorum.controller.min_isr(of_second) == (2 if elr else 1)
    quorum.fence(3, 2)
    second, alone = quorum.image.partitions[f"t-1{suffix}"], quorum.image.partitions["other-0"]
    assert (second.isr, second.elr) == ((1,), elr)
    assert (alone.isr, alone.elr) == ((1,), (2,))
    assert f"controller_min_isr={value}" in quorum.probes


def test_the_first_partition_counts_as_it_is_at_the_time() -> None:
    quorum = QuorumHost(ELR)
    quorum.create(1, 2, 3, name="t-0").create(1, 2, 3, name="t-1")
    second = quorum.image.partitions["t-1"]
    assert quorum.controller.min_isr(second) == 2
    assert "controller_min_isr=first-partition" not in quorum.probes
    assert quorum.controller.reassign("t-0", (1,)) == NONE
    assert quorum.image.partitions["t-0"].replicas == (1,)
    assert quorum.controller.min_isr(second) == 1
    assert quorum.controller.own_min_isr(second) == 2


def test_a_first_partition_with_more_replicas() -> None:
    """The leader of a partition with one replica acknowledges alone, but the controller takes two for needed."""
    quorum = QuorumHost(ELR)
    quorum.create(1, 2, 3, name="t-0").create(1, 2, 3, name="t-1")
    assert quorum.controller.reassign("t-1", (1,)) == NONE
    second = quorum.image.partitions["t-1"]
    assert (quorum.controller.min_isr(second), quorum.controller.own_min_isr(second)) == (2, 1)


def test_without_elr_the_first_partition_does_not_count() -> None:
    quorum = QuorumHost(KRAFT)
    quorum.create(1, 2, 3, name="t-0").create(1, 2, 3, name="t-1")
    assert quorum.controller.reassign("t-0", (1,)) == NONE
    assert quorum.controller.min_isr(quorum.image.partitions["t-1"]) == 2
    assert "controller_min_isr=first-partition" not in quorum.probes


@pytest.mark.parametrize(
    ("value", "elr"), [("keeps-elr", (3,)), ("clears-if-enough", ())], ids=["as in Kafka", "repaired"]
)
def test_min_isr_is_lowered_while_the_feature_is_disabled(value: str, elr: tuple[int, ...]) -> None:
    quorum = three(ELR.override({"min_isr_change_while_disabled": value}), min_isr=3)
    quorum.fence(3)
    assert quorum.lists() == (1, (1, 2), (3,), ())
    assert quorum.controller.set(ELR_FEATURE, 0) == NONE
    assert quorum.controller.set(MIN_ISR, 2) == NONE
    assert quorum.lists() == (1, (1, 2), elr, ())
    assert quorum.controller.set(ELR_FEATURE, 1) == NONE
    quorum.fence(2, 1)
    assert set(quorum.state.elr) == {1, 2, *elr}


def test_min_isr_is_lowered_while_the_feature_is_disabled_but_the_isr_is_too_small() -> None:
    quorum = three(ELR.override({"min_isr_change_while_disabled": "clears-if-enough"}), min_isr=3)
    quorum.fence(3, 2)
    assert quorum.controller.set(ELR_FEATURE, 0) == NONE
    elr = quorum.state.elr
    assert elr
    assert quorum.controller.set(MIN_ISR, 2) == NONE
    assert quorum.state.elr == elr


def test_how_far_a_broker_has_read_is_not_known_when_it_is_unfenced() -> None:
    """Another one that waits to stop goes on waiting until it tells."""
    quorum = three(KRAFT)
    quorum.fence(3)
    controller, epochs = quorum.controller, {one: known.broker_epoch for one, known in quorum.image.brokers.items()}
    controller.heartbeat(1, epochs[1], quorum.image.offset, want_shut_down=True)
    controller.heartbeat(2, epochs[2], quorum.image.offset)
    controller.heartbeat(3, epochs[3], quorum.image.offset)
    assert not controller.heartbeat(1, epochs[1], quorum.image.offset, want_shut_down=True).should_shut_down
    controller.heartbeat(3, epochs[3], quorum.image.offset)
    assert controller.heartbeat(1, epochs[1], quorum.image.offset, want_shut_down=True).should_shut_down


def test_the_min_isr_that_is_set_already_clears_nothing() -> None:
    quorum = three()
    quorum.controller.set(MIN_ISR, 2)
    quorum.fence(3)
    assert quorum.alter(1) == NONE
    before = quorum.controller.image.offset
    assert quorum.controller.set(MIN_ISR, 2) == NONE
    assert quorum.controller.image.offset == before
    assert quorum.lists() == (1, (1,), (2,), ())


def test_min_isr_is_no_more_than_there_are_replicas() -> None:
    quorum = three(min_isr=7)
    assert quorum.controller.min_isr(quorum.state) == 3
    quorum.fence(3)
    assert quorum.lists() == (1, (1, 2), (3,), ())


def test_members_are_held_in_a_small_isr() -> None:
    """The rejected "soft" min ISR."""
    quorum = three(KRAFT.override({"isr_floor": "min-isr"}))
    quorum.fence(3)
    assert quorum.lists() == (1, (1, 2), (), ())
    quorum.fence(1)
    assert quorum.lists() == (2, (1, 2), (), ())
    assert {"isr-held", "isr_floor=min-isr"} <= quorum.probes
    quorum.unfence(3)
    assert quorum.alter(1, 2, 3) == NONE, "a member that is held may stay, fenced as it is"


def test_an_unclean_shutdown_leaves_even_an_isr_that_is_held() -> None:
    quorum = three(ELR.override({"isr_floor": "min-isr"}))
    quorum.fence(3, 1)
    assert quorum.lists() == (2, (1, 2), (), ())
    quorum.start(1)
    assert quorum.lists() == (2, (2,), (), ())


# ISR changes.


def test_an_isr_change_is_answered_with_how_things_stand() -> None:
    assert three().request(1, 2) == (NONE, (1, 2), 1, 0, 2)
    assert three(min_isr=4).request(1, 2) == (NONE, (1, 2), 1, 0, 3)


def test_a_stale_sender_is_refused_as_a_whole() -> None:
    quorum = three()
    assert quorum.controller.alter_partition(1, 99, []) == (STALE_BROKER_EPOCH, {})
    assert quorum.controller.alter_partition(9, 1, []) == (STALE_BROKER_EPOCH, {})
    assert "alter-stale-broker" in quorum.probes


@pytest.mark.parametrize(
    ("eligibility", "fenced", "moved"),
    [("any", NONE, NONE), ("alive", INELIGIBLE_REPLICA, NONE), ("registered", INELIGIBLE_REPLICA, INELIGIBLE_REPLICA)],
)
def test_brokers_that_may_join_the_isr(eligibility: str, fenced: str, moved: str) -> None:
    """D1 and D2 (KIP-841, KIP-903)."""
    quorum = three(KRAFT.override({"isr_eligibility": eligibility}))
    epochs = {broker: quorum.image.brokers[broker].broker_epoch for broker in (1, 2, 3)}
    quorum.fence(3)
    assert quorum.alter(1, 2, 3, broker_epochs=epochs) == fenced
    assert f"isr_eligibility={eligibility}" in quorum.probes
    quorum = three(KRAFT.override({"isr_eligibility": eligibility}))
    quorum.fence(3)
    quorum.start(3)
    assert quorum.alter(1, 2, 3, broker_epochs=epochs) == moved
    assert quorum.alter(1, 2, 3, broker_epochs={}) == NONE


@pytest.mark.parametrize("isr", [(), (2, 3), (1, 1), (1, 9)], ids=str)
def test_an_isr_that_cannot_be(isr: tuple[int, ...]) -> None:
    quorum = three()
    assert quorum.alter(*isr) == INVALID_REQUEST
    assert "alter-invalid" in quorum.probes


def test_a_leader_that_recovers_is_alone() -> None:
    quorum = three(unclean=True)
    quorum.fence(2, 3, 1)
    quorum.start(3)
    assert quorum.state.recovering
    assert quorum.alter(3, recovering=True) == NONE
    quorum.start(2)
    assert quorum.alter(2, 3, recovering=True) == INVALID_REQUEST
    assert quorum.alter(2, 3) == NONE
    assert not quorum.state.recovering
    assert quorum.alter(3, recovering=True) == INVALID_REQUEST


def test_an_unknown_partition() -> None:
    controller = three().controller
    assert controller.elect("q", PREFERRED) == UNKNOWN_TOPIC_OR_PARTITION
    assert controller.reassign("q", (1,)) == UNKNOWN_TOPIC_OR_PARTITION
    assert controller.cancel_reassignment("q") == UNKNOWN_TOPIC_OR_PARTITION


# Partitions and elections.


def test_a_partition_begins_with_its_active_replicas() -> None:
    quorum = QuorumHost(ELR)
    quorum.start(1, 2)
    quorum.register(3)
    assert quorum.controller.create_partition("p", (3, 2, 1)) == NONE
    assert quorum.lists() == (2, (2, 1), (), ())
    assert (quorum.state.leader_epoch, quorum.state.partition_epoch) == (0, 0)
    assert quorum.controller.create_partition("p", (1,)) == TOPIC_ALREADY_EXISTS
    for replicas in ((), (3,), (1, 1), (1, 9)):
        assert quorum.controller.create_partition("q", replicas) == INVALID_REPLICA_ASSIGNMENT


def test_partitions_of_a_topic_have_equally_many_replicas_when_they_are_created() -> None:
    """A manual assignment with other numbers is refused as a whole; a later partition goes by the first one."""
    quorum = QuorumHost(ELR)
    quorum.start(1, 2, 3)
    create = quorum.controller.create_topic
    assert create({"t-0": (1, 2), "t-1": (2, 3), "t-2": (1, 2, 3)}) == INVALID_REPLICA_ASSIGNMENT
    assert not quorum.image.partitions
    assert create({"t-0": (1, 2), "u-0": (1, 2, 3)}) == NONE
    assert create({"t-1": (3,)}) == INVALID_REPLICA_ASSIGNMENT
    assert quorum.controller.reassign("t-0", (1,)) == NONE
    assert create({"t-1": (2, 3)}) == INVALID_REPLICA_ASSIGNMENT
    assert create({"t-1": (3,)}) == NONE


def test_elections_that_are_not_needed_or_not_possible() -> None:
    quorum = three(KRAFT)
    elect = quorum.controller.elect
    assert [elect("p", kind, 2) for kind in (PREFERRED, UNCLEAN, DESIGNATED)] == [ELECTION_NOT_NEEDED] * 3
    quorum.fence(1)
    assert elect("p", PREFERRED) == PREFERRED_LEADER_NOT_AVAILABLE
    quorum.fence(2, 3)
    assert elect("p", UNCLEAN) == ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elect("p", DESIGNATED, 9) == INVALID_REQUEST
    assert elect("p", DESIGNATED, 2) == ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elect("p", "LONGEST_LOG_BALANCED") == UNSUPPORTED_VERSION
    assert quorum.lists() == (0, (3,), (), ())


def test_an_administrator_names_the_leader() -> None:
    quorum = three()
    quorum.fence(1, 2, 3)
    quorum.unfence(1)
    assert quorum.lists()[0] == 0
    assert quorum.controller.elect("p", DESIGNATED, 1) == NONE
    assert quorum.lists() == (1, (1,), (), ())
    assert quorum.state.recovering
    assert "elected-designated" in quorum.probes


def test_to_3_8_an_unclean_election_waits_for_an_event() -> None:
    quorum = three(mode("kraft-3.5").rules)
    quorum.fence(1, 2, 3)
    quorum.unfence(1)
    assert quorum.controller.set(UNCLEAN_ELECTION, True) == NONE
    assert quorum.controller.check_unclean() == 0
    assert quorum.lists()[0] == 0
    quorum.unfence(2)
    assert quorum.lists()[0] == 1


def test_an_unclean_election_is_asked_for() -> None:
    quorum = three()
    quorum.fence(1, 2, 3)
    quorum.unfence(1)
    assert quorum.controller.check_unclean() == 0
    assert quorum.controller.set(UNCLEAN_ELECTION, True) == NONE
    assert quorum.lists()[0] == 0
    assert quorum.controller.check_unclean() == 1
    assert quorum.lists() == (1, (1,), (), ())
    assert "elected-unclean" in quorum.probes


def test_balance() -> None:
    quorum = three()
    assert quorum.lists()[0] == 1
    quorum.fence(1)
    quorum.start(1)
    assert quorum.controller.balance() == 0
    assert quorum.alter(1, 2, 3) == NONE
    assert quorum.lists()[0] != 1
    assert quorum.controller.balance() == 1
    assert quorum.lists()[0] == 1


# Log directories.


def assign(quorum: QuorumHost, broker: int, directory: int) -> str:
    return quorum.controller.assign_directory("p", broker, quorum.image.brokers[broker].broker_epoch, directory)


@pytest.mark.parametrize(("name", "elr"), [("elr", ()), ("elr-4.3", (2,)), ("elr-recovery", (2,))])
@pytest.mark.parametrize("broker", [2, 3])
def test_an_assignment_of_a_directory_clears_the_elr_up_to_4_2(name: str, elr: tuple[int, ...], broker: int) -> None:
    quorum = three(mode(name).rules)
    quorum.fence(3, 2)
    assert quorum.lists() == (1, (1,), (2,), ())
    before = quorum.state
    assert assign(quorum, broker, 1) == NONE
    assert quorum.lists() == (1, (1,), elr, ())
    assert (quorum.state.partition_epoch, quorum.state.leader_epoch) == (
        before.partition_epoch + 1,
        before.leader_epoch,
    )
    assert {"directory-assigned", f"directory_assignment={quorum.rules.directory_assignment}"} <= quorum.probes


@pytest.mark.parametrize("name", ["kraft", "elr", "elr-4.3"])
def test_a_replica_on_a_new_disk_is_electable_only_after_assignment(name: str) -> None:
    quorum = three(mode(name).rules)
    quorum.fence(3, 2, 1)
    assert quorum.lists()[0] == 0
    quorum.register(1, clean=True, directory=1)
    quorum.unfence(1)
    assert quorum.lists()[0] == 0
    assert assign(quorum, 1, 1) == NONE
    assert quorum.lists()[0] == 0
    assert quorum.controller.balance() == 1
    assert quorum.lists()[0] == 1


def test_an_assignment_is_refused() -> None:
    quorum = three()
    quorum.start(4)
    assert assign(quorum, 4, 1) == NOT_LEADER_OR_FOLLOWER
    assert quorum.controller.assign_directory("p", 1, 99, 1) == STALE_BROKER_EPOCH
    assert quorum.controller.assign_directory("q", 1, quorum.image.brokers[1].broker_epoch, 1) == (
        UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_replica_that_is_added_is_in_the_directory_that_its_broker_has() -> None:
    quorum = three()
    quorum.register(4, directory=2)
    quorum.unfence(4)
    quorum.controller.reassign("p", (4, 2, 3))
    assert quorum.state.directories == {4: 2}
    assert quorum.alter(1, 2, 3, 4) == NEW_LEADER_ELECTED
    assert (quorum.state.leader, quorum.state.directories) == (4, {4: 2})
    quorum.controller.reassign("p", (2, 3))
    assert (quorum.state.replicas, quorum.state.directories) == ((2, 3), {})


# Reassignment.


def test_a_reassignment_moves_the_leader() -> None:
    quorum = three()
    quorum.start(4)
    assert quorum.controller.reassign("p", (4, 2, 3)) == NONE
    state = quorum.state
    assert (state.replicas, state.adding, state.removing) == ((4, 2, 3, 1), (4,), (1,))
    assert quorum.alter(1, 2, 3, 4) == NEW_LEADER_ELECTED
    assert quorum.state.replicas == (4, 2, 3)
    assert quorum.lists() == (4, (2, 3, 4), (), ())
    assert {"reassignment-begins", "reassignment-done", "alter-elects"} <= quorum.probes


def test_a_reassignment_is_cancelled() -> None:
    quorum = three()
    quorum.start(4)
    assert quorum.controller.cancel_reassignment("p") == NO_REASSIGNMENT_IN_PROGRESS
    quorum.controller.reassign("p", (4, 2, 3))
    quorum.alter(1, 4)
    assert quorum.controller.cancel_reassignment("p") == NONE
    assert quorum.state.replicas == (2, 3, 1)
    assert quorum.lists()[:2] == (1, (1,))
    assert quorum.controller.reassign("p", (2, 9)) == INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("marks", "left"), [("keeps-marks", ((1, 2, 3, 4), (4,), (4,))), ("replaces-marks", ((1, 2, 3), (), ()))]
)
def test_a_second_reassignment_marks_anew_what_it_adds(marks: str, left: tuple[tuple[int, ...], ...]) -> None:
    quorum = three(mode("elr-4.3").rules.override({"resubmitted_reassignment": marks}))
    quorum.start(4)
    assert quorum.controller.reassign("p", (1, 2, 3, 4)) == NONE
    assert quorum.controller.reassign("p", (1, 2, 3)) == NONE
    assert (quorum.state.replicas, quorum.state.adding, quorum.state.removing) == left


@pytest.mark.parametrize(("outside", "elr"), [("kept", (1, 2)), ("dropped", (1,))])
def test_a_removed_replica_stays_electable_though_it_has_no_log(outside: str, elr: tuple[int, ...]) -> None:
    quorum = three(mode("elr-4.3").rules.override({"elr_outside_assignment": outside}))
    quorum.start(4)
    quorum.fence(3)
    quorum.fence(1)
    assert quorum.lists() == (2, (2,), (1,), ())
    assert quorum.controller.reassign("p", (1, 3, 4)) == NONE
    assert quorum.alter(2, 4) == NEW_LEADER_ELECTED
    assert quorum.state.replicas == (1, 3, 4)
    assert quorum.lists() == (4, (4,), elr, ())


@pytest.mark.parametrize("mode", ["kraft", "elr", "elr-recovery"])
def test_a_reassignment_there_and_back_completes(mode: str) -> None:
    quorum = three(mode)
    quorum.start(4)
    quorum.controller.reassign("p", (4, 2, 3))
    quorum.controller.reassign("p", (1, 2, 3))
    assert (quorum.state.replicas, quorum.state.adding, quorum.state.removing) == ((1, 2, 3), (), ())


def test_a_cancellation_needs_min_isr_as_the_text_has_it() -> None:
    quorum = three("elr-recovery")
    quorum.start(4)
    quorum.controller.reassign("p", (4, 2, 3))
    quorum.alter(1, 4)
    assert quorum.state.adding == (4,), "4 alone is too few"
    assert quorum.controller.cancel_reassignment("p") == INVALID_REPLICA_ASSIGNMENT
    assert {"cancel-refused", "reassignment_completes=min-isr"} <= quorum.probes


@pytest.mark.parametrize(("unclean", "error"), [(False, INVALID_REPLICA_ASSIGNMENT), (True, NONE)])
def test_an_isr_of_added_replicas_is_given_up_uncleanly(unclean: bool, error: str) -> None:
    quorum = three(KRAFT, unclean=unclean)
    quorum.start(4)
    quorum.controller.reassign("p", (4, 2, 3))
    quorum.alter(1, 4)
    quorum.fence(1)
    assert quorum.lists()[:2] == (4, (4,))
    assert quorum.controller.cancel_reassignment("p") == error
    assert quorum.lists()[:2] == ((2, (2,)) if unclean else (4, (4,)))


# Where rules decide.

DECIDED_HERE = (
    "isr_eligibility",
    "isr_shrink_epoch",
    "reassignment_completes",
    "elr",
    "last_known_elr",
    "last_known_leader",
    "clean_shutdown",
    "min_isr_change",
    "unclean_registration",
    "fenced_session",
    "unclean_recovery",
    "isr_floor",
)


def eventful(rules: Rules) -> set[str]:
    """A story in which every rule of the controller decides; which probes it reaches."""
    quorum = three(rules)
    quorum.start(4)
    quorum.controller.reassign("p", (4, 2, 3))
    quorum.alter(1, 4)
    quorum.fence(3)
    quorum.alter(1, 3, 4)
    if quorum.state.adding:
        quorum.controller.cancel_reassignment("p")
    quorum.controller.set(MIN_ISR, 3)
    for broker in (1, 2, 4):
        quorum.sessions.discard(broker)
        quorum.fence(broker)
    quorum.controller.set(MIN_ISR, 2)
    quorum.controller.register(4, 1, quorum.image.brokers[4].broker_epoch)
    quorum.register(2, 1)
    quorum.heard(2, want_fence=True)
    quorum.controller.register(2, 2, -1)
    return quorum.probes


@pytest.mark.parametrize(("rule", "value"), [(rule, value) for rule in DECIDED_HERE for value in RULES[rule].values])
def test_a_branch_is_reached_where_the_controller_decides(rule: str, value: str) -> None:
    probes = eventful(SNAPSHOT.override({rule: value}))
    assert {name for name in probes if name.startswith(f"{rule}=")} == {f"{rule}={value}"}


def test_no_branch_is_reached_where_nothing_is_to_be_decided() -> None:
    quorum = three(SNAPSHOT)
    quorum.fence(3)
    quorum.start(3)
    quorum.alter(1, 2, 3)
    assert {name for name in quorum.probes if "=" in name} <= {"isr_shrink_epoch=kept"}


# Whatever happens.

BROKERS = st.sampled_from((1, 2, 3, 4, 5))
KINDS = st.sampled_from((PREFERRED, UNCLEAN, DESIGNATED))


class Happenings(RuleBasedStateMachine):
    """A partition of four replicas with min ISR 3, and events in any order."""

    era = ELR

    def __init__(self) -> None:
        super().__init__()
        self.quorum = QuorumHost(self.era, {MIN_ISR: 3})
        self.seen = 0

    @initialize()
    def begins(self) -> None:
        self.quorum.create(1, 2, 3, 4).start(5)
        self._done(excused=True)

    def _done(self, *, excused: bool = False, joined: tuple[int, ...] = ()) -> None:
        """What each change has to keep.

        Args:
            excused: there may be fewer members of ISR and ELR than before.
            joined: what the leader wanted as ISR.
        """
        states = [record for record in self.quorum.records if isinstance(record, PartitionRegistration)]
        first = self.seen
        for before, after in pairwise(states[first:]):
            assert after.partition_epoch == before.partition_epoch + 1
            assert before.leader_epoch <= after.leader_epoch <= before.leader_epoch + 1
            assert before.leader == after.leader or after.leader_epoch > before.leader_epoch
            if after.leader not in (0, before.leader) and not after.recovering:
                assert after.leader in {*before.isr, *before.elr, *joined}
        before, after = states[first], states[-1]
        self.seen = len(states) - 1
        if self.era.elr == "on" and not (excused or after.recovering) and len(before.isr) + len(before.elr) >= 3:
            assert len(after.isr) + len(after.elr) >= 3

    @rule(broker=BROKERS)
    def ends(self, broker: int) -> None:
        self.quorum.fence(broker)
        self._done()

    @rule(broker=BROKERS, clean=st.booleans(), late=st.booleans())
    def comes(self, broker: int, clean: bool, late: bool) -> None:
        self.quorum.sessions.discard(broker)
        if not late:
            self.quorum.fence(broker)
        self.quorum.start(broker, clean=clean)
        self._done(excused=not clean)

    @rule(broker=BROKERS)
    def wakes(self, broker: int) -> None:
        self.quorum.unfence(broker)
        self._done()

    @rule(broker=BROKERS)
    def stops(self, broker: int) -> None:
        known = self.quorum.image.brokers[broker]
        self.quorum.controller.heartbeat(broker, known.broker_epoch, self.quorum.image.offset, want_shut_down=True)
        self._done()

    @precondition(lambda self: self.quorum.state.leader)
    @rule(members=st.sets(BROKERS))
    def changes_isr(self, members: set[int]) -> None:
        isr = sorted(members | {self.quorum.state.leader})
        completes = bool(self.quorum.state.adding or self.quorum.state.removing)
        self.quorum.alter(*isr)
        self._done(excused=completes, joined=tuple(isr))

    @rule(kind=KINDS, broker=BROKERS)
    def elects(self, kind: str, broker: int) -> None:
        self.quorum.controller.elect("p", kind, broker)
        self._done()

    @rule()
    def balances(self) -> None:
        self.quorum.controller.balance()
        self._done()

    @rule(replicas=st.permutations((1, 2, 3, 4, 5)))
    def reassigns(self, replicas: list[int]) -> None:
        self.quorum.controller.reassign("p", tuple(replicas[:4]))
        self._done(excused=True)

    @rule()
    def cancels(self) -> None:
        self.quorum.controller.cancel_reassignment("p")
        self._done(excused=True)

    @rule()
    def fails_over(self) -> None:
        before = self.quorum.lists()
        self.quorum.fail_over()
        assert self.quorum.lists() == before

    @invariant()
    def the_elr_is_what_it_is(self) -> None:
        if not self.quorum.image.partitions:
            return
        state = self.quorum.state
        assert not set(state.isr) & set(state.elr)
        if state.elr:
            assert len(state.isr) < self.quorum.controller.min_isr(state)
        assert state.leader == 0 or state.leader in state.isr
        if self.era.elr == "off":
            assert state.isr
            assert not state.elr


class WithoutElr(Happenings):
    era = KRAFT


class AsWritten(Happenings):
    era = mode("elr-recovery").rules


FEW = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestHappenings = Happenings.TestCase
TestHappenings.settings = FEW
TestWithoutElr = WithoutElr.TestCase
TestWithoutElr.settings = FEW
TestAsWritten = AsWritten.TestCase
TestAsWritten.settings = FEW
