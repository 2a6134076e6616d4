from __future__ import annotations

import pytest

from sim.protocol.messages import (
    AGREES,
    DIVERGING_EPOCH,
    EARLIEST,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    LATEST,
    LOG_TRUNCATION,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    LeaderAndIsr,
)
from sim.protocol.modes import MODES
from sim.protocol.replica.partition import Partition
from tests.sim.protocol.recording import (
    HW,
    KIP101,
    LAG_US,
    Recorder,
    decision,
    filled,
    partition,
    produce,
)

# The high watermark and what waits for it.


def test_the_high_watermark_is_the_smallest_leo_in_the_isr() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(isr=(1, 2)), 0)
    one.produce(produce(0, count=3), 0)
    one.follower_fetched(2, 1, 2, one.leader_epoch, LAG_US * 2)
    assert one.hw == 2
    one.follower_fetched(2, 1, 3, one.leader_epoch, LAG_US * 2)
    assert host.of("hw") == [(0, 2), (2, 3)]


def test_high_watermark_waits_for_a_follower_that_is_catching_up() -> None:
    one = partition(Recorder())
    one.become_leader(decision(isr=(1, 2)), 0)
    one.follower_fetched(3, 1, 0, one.leader_epoch, 10)  # Caught up, and proposed to join; that is refused:
    one.become_leader(decision(isr=(1, 2)), 10)
    one.produce(produce(0, acks=1), 10)
    one.follower_fetched(2, 1, 1, one.leader_epoch, 10 + LAG_US)
    assert one.hw == 0
    one.advance_hw(11 + LAG_US)
    assert one.hw == 1


def test_a_new_leaders_is_frozen_until_every_member_has_fetched() -> None:
    one = filled(Recorder(), {0: 5}, hw=2)
    one.become_leader(decision(), 0)
    one.follower_fetched(2, 1, 5, one.leader_epoch, 1)
    assert one.hw == 2
    one.follower_fetched(3, 1, 4, one.leader_epoch, 1)
    assert one.hw == 4


@pytest.mark.parametrize(("value", "hw"), [("forgets-leo", 2), ("keeps-leo", 5)])
def test_a_leader_in_another_epoch_remembers_what_it_knew(value: str, hw: int) -> None:
    """KAFKA-2721: to 0.8.2 it waits until each member has fetched again."""
    one = filled(Recorder(), {0: 5}, HW.override({"same_leader": value}), hw=2)
    one.become_leader(decision(), 0)
    one.follower_fetched(2, 1, 5, one.leader_epoch, 1)
    one.become_leader(decision(epoch=2, isr=(1, 2)), LAG_US * 2)
    assert one.hw == hw
    one.follower_fetched(2, 1, 5, one.leader_epoch, LAG_US * 2)
    assert one.hw == 5


def test_a_lone_leader_commits_at_once() -> None:
    one = partition(Recorder())
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.produce(produce(0, acks=1), LAG_US * 2)
    assert one.hw == 1


@pytest.mark.parametrize(("rule", "hw"), [("no", 1), ("yes", 0)])
def test_rule_decides_whether_the_high_watermark_waits_for_min_isr(rule: str, hw: int) -> None:
    one = partition(Recorder(), HW.override({"hw_needs_min_isr": rule}), min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.produce(produce(0, acks=1), LAG_US * 2)
    assert one.hw == hw


def test_acks_decide_when_a_write_is_answered() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(isr=(1, 2)), 0)
    for first_id, acks in enumerate((0, 1, -1)):
        one.produce(produce(first_id, acks), 0)
    assert host.of("answer") == [(1, NONE, 1)]
    one.follower_fetched(2, 1, 2, one.leader_epoch, LAG_US * 2)
    assert host.of("answer")[1:] == []
    one.follower_fetched(2, 1, 3, one.leader_epoch, LAG_US * 2)
    assert host.of("answer")[1:] == [(2, NONE, 2)]


def test_below_min_isr_only_acks_all_is_refused_before_the_append() -> None:
    host = Recorder()
    one = partition(host, min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), 0)
    one.produce(produce(0), 0)
    one.produce(produce(1, acks=1), 0)
    assert host.of("answer") == [(0, NOT_ENOUGH_REPLICAS, -1), (1, NONE, 0)]
    assert one.log.leo == 1


def test_a_write_is_refused_after_the_isr_shrank_though_committed() -> None:
    host = Recorder()
    one = partition(host, min_insync_replicas=2)
    one.become_leader(decision(isr=(1, 2)), 0)
    one.produce(produce(0), 0)
    one.become_leader(decision(epoch=2, isr=(1,)), LAG_US * 2)
    assert one.hw == 1
    assert host.of("answer") == [(0, NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)]


def test_a_leader_that_steps_down_refuses_what_waits() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(), 0)
    one.produce(produce(0), 0)
    one.become_follower(decision(leader=2, epoch=2))
    one.produce(produce(1), 0)
    assert host.of("answer") == [(0, NOT_LEADER_OR_FOLLOWER, -1), (1, NOT_LEADER_OR_FOLLOWER, -1)]
    assert (one.is_leader, one.leader, one.leader_epoch, one.log.leo) == (False, 2, 2, 1)


# The ISR.


@pytest.mark.parametrize(("rule", "needed"), [("high-watermark", 1), ("leader-epoch-start", 3)])
def test_follower_needs_this_to_join(rule: str, needed: int) -> None:
    host = Recorder()
    one = filled(host, {0: 3}, HW.override({"isr_join": rule}), hw=1)
    one.become_leader(decision(isr=(1, 3)), LAG_US * 2)
    one.follower_fetched(2, 1, needed - 1, one.leader_epoch, LAG_US * 2)
    assert host.of("isr") == []
    one.follower_fetched(2, 1, needed, one.leader_epoch, LAG_US * 2)
    assert host.of("isr") == [((1, 2, 3),)]


def test_a_locked_partition_proposes_nothing_until_the_write_is_persisted() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    assert (one.state.locked, one.state.isr, one.state.pending) == (True, (1,), (1, 2))
    one.follower_fetched(3, 1, 0, one.leader_epoch, LAG_US * 2)
    one.shrink_isr(LAG_US * 4)
    assert host.of("isr") == [((1, 2),)]
    one.isr_persisted((1, 2), 7, LAG_US * 4)
    assert (one.state.locked, one.state.isr, one.state.pending, one.partition_epoch, one.leader_epoch) == (
        False,
        (1, 2),
        (),
        7,
        1,
    )
    one.produce(produce(0), LAG_US * 6)
    assert one.hw == 0


def test_a_refused_write_changes_nothing_and_is_retried_with_reason() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    one.isr_refused(INVALID_UPDATE_VERSION, LAG_US * 2)
    assert (one.state.locked, one.state.isr, one.state.pending, one.partition_epoch) == (False, (1,), (), 1)
    one.produce(produce(0), LAG_US * 4)
    assert one.hw == 1
    one.follower_fetched(2, 1, 1, one.leader_epoch, LAG_US * 4)
    assert host.of("isr") == [((1, 2),), ((1, 2),)]


def test_a_zookeeper_that_answers_at_once_is_no_different() -> None:
    host = Recorder()
    host.zookeeper = 2
    one = filled(host, {0: 2})
    one.become_leader(decision(isr=(1, 3)), 0)
    one.follower_fetched(3, 1, 2, one.leader_epoch, 0)
    one.follower_fetched(2, 1, 2, one.leader_epoch, 0)
    assert (one.state.isr, one.state.locked, one.hw) == ((1, 2, 3), False, 2)


@pytest.mark.parametrize("rule", ["zookeeper-write", "alter-partition"])
def test_a_shrunk_isr_lets_the_high_watermark_move_and_writes_complete(rule: str) -> None:
    host = Recorder()
    one = partition(host, HW.override({"isr_update": rule}), min_insync_replicas=2)
    one.become_leader(decision(), 0)
    one.produce(produce(0), 0)
    one.follower_fetched(2, 1, 1, one.leader_epoch, 0)
    one.shrink_isr(LAG_US + 1)
    assert (one.hw, host.of("answer")) == (0, [])
    one.isr_persisted((1, 2), 2, LAG_US + 1)
    assert (one.hw, host.of("answer")) == (1, [(0, NONE, 0)])


KRAFT = MODES["kraft"].rules
ALTER = HW.override({"isr_update": "alter-partition"})


def test_a_pending_expansion_holds_the_hw_but_is_not_in_sync() -> None:
    host = Recorder()
    one = partition(host, ALTER, min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    assert (one.state.locked, one.state.isr, one.state.pending) == (False, (1,), (1, 2))
    one.produce(produce(0), LAG_US * 4)
    one.produce(produce(1, acks=1), LAG_US * 4)
    assert (one.hw, host.of("answer")) == (0, [(0, NOT_ENOUGH_REPLICAS, -1), (1, NONE, 0)])
    one.isr_persisted((1, 2), 2, LAG_US * 4)
    one.follower_fetched(2, 1, 1, one.leader_epoch, LAG_US * 4)
    assert (one.hw, one.state.isr) == (1, (1, 2))


@pytest.mark.parametrize(
    ("error", "pending", "proposals"),
    [
        (OPERATION_NOT_ATTEMPTED, (), 1),
        (INELIGIBLE_REPLICA, (), 1),
        (INVALID_UPDATE_VERSION, (1, 2), 1),
        (FENCED_LEADER_EPOCH, (1, 2), 1),
        ("UNKNOWN_SERVER_ERROR", (1, 2), 2),
    ],
)
def test_proposal_ends_or_stays_by_the_controllers_error(error: str, pending: tuple[int, ...], proposals: int) -> None:
    host = Recorder()
    one = partition(host, ALTER)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    one.isr_refused(error, LAG_US * 2)
    assert (one.state.pending, one.state.isr, len(host.of("isr"))) == (pending, (1,), proposals)
    assert one.followers.states[2].in_maximal_isr == bool(pending)


def test_newer_metadata_ends_a_proposal_and_its_late_answer_is_ignored() -> None:
    one = partition(Recorder(), ALTER)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    one.become_leader(decision(epoch=2, isr=(1,)), LAG_US * 2)
    one.isr_persisted((1, 2), 9, LAG_US * 2)
    one.isr_refused("UNKNOWN_SERVER_ERROR", LAG_US * 2)
    assert [one.state.isr, one.state.pending, one.partition_epoch] == [(1,), (), 2]


@pytest.mark.parametrize(
    ("value", "pending", "hw"), [("replaces-pending-isr", (), 2), ("keeps-pending-isr", (1, 2, 3), 1)]
)
def test_the_record_of_an_answered_change_meets_a_newer_proposal(value: str, pending: tuple[int, ...], hw: int) -> None:
    host = Recorder()
    host.registered = {2: 4, 3: 4}
    one = partition(host, KRAFT.override({"equal_partition_epoch": value}), min_insync_replicas=2)
    one.become_leader(decision(), 0)
    one.produce(produce(0), 0)
    one.follower_fetched(2, 4, 1, 1, LAG_US)
    one.shrink_isr(LAG_US + 1)
    one.isr_persisted((1, 2), 2, LAG_US + 1, leader_epoch=1)
    one.produce(produce(1), LAG_US + 1)
    one.follower_fetched(3, 4, 1, 1, 2 * LAG_US)  # It has the HW, not the log end.
    assert (one.state.isr, one.state.pending, one.hw) == ((1, 2), (1, 2, 3), 1)
    record = LeaderAndIsr("t-0", 1, 1, (1, 2), 2, (1, 2, 3))
    one.become_leader(record, 2 * LAG_US)
    assert (one.state.isr, one.state.pending) == ((1, 2), pending)
    one.follower_fetched(2, 4, 2, 1, 2 * LAG_US)
    assert one.hw == hw
    one.isr_persisted((1, 2, 3), 3, 2 * LAG_US, leader_epoch=1)
    assert one.state.isr == ((1, 2, 3) if pending else (1, 2))


def shrunk(value: str, min_isr: int) -> Partition:
    """A leader whose min.insync.replicas is 1, with one record that broker 2 lacks. It knows from the response to
    AlterPartition that the ISR is broker 1 alone, and that the controller's min.insync.replicas is `min_isr`.
    """
    rules = MODES["elr-4.3"].rules.override({"isr_response": value})
    one = partition(Recorder(), rules, min_insync_replicas=1)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1, 2), 1, (1, 2, 3)), 0)
    one.produce(produce(0), 0)
    one.shrink_isr(LAG_US + 1)
    one.isr_persisted((1,), 2, LAG_US + 1, leader_epoch=1, min_isr=min_isr)
    assert one.state.isr == (1,)
    return one


@pytest.mark.parametrize(
    ("value", "min_isr", "hw"), [("without-min-isr", 2, 1), ("with-min-isr", 2, 0), ("with-min-isr", 1, 1)]
)
def test_an_isr_that_the_leader_knows_from_a_response_only(value: str, min_isr: int, hw: int) -> None:
    one = shrunk(value, min_isr)
    assert one.hw == hw
    one.set_min_isr(min_isr)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 2, (1, 2, 3)), LAG_US + 2)
    assert (one.answered_min_isr, one.min_insync_replicas, one.hw) == (0, min_isr, hw)


def test_the_answered_min_isr_counts_until_its_isr_is_replayed() -> None:
    one = shrunk("with-min-isr", 2)
    one.set_min_isr(3)  # Earlier values, replayed late.
    one.set_min_isr(1)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1, 2), 1, (1, 2, 3)), LAG_US + 2)  # Outdated.
    assert (one.min_insync_replicas, one.hw) == (2, 0)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 2, (1, 2, 3)), LAG_US + 2)
    assert (one.min_insync_replicas, one.hw) == (1, 1)


def test_an_answered_min_isr_may_be_lower_than_the_leaders() -> None:
    one = partition(Recorder(), MODES["elr-repaired"].rules, min_insync_replicas=2)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1, 2), 1, (1, 2, 3)), 0)
    one.produce(produce(0), 0)
    one.shrink_isr(LAG_US + 1)
    one.isr_persisted((1,), 2, LAG_US + 1, leader_epoch=1, min_isr=1)
    assert (one.min_insync_replicas, one.hw) == (1, 1)


@pytest.mark.parametrize(("partition_epoch", "leader_epoch"), [(0, NO_EPOCH), (5, 2)])
def test_an_outdated_response_leaves_a_proposal_pending(partition_epoch: int, leader_epoch: int) -> None:
    one = partition(Recorder(), ALTER)
    one.become_leader(decision(isr=(1,)), LAG_US * 2)
    one.follower_fetched(2, 1, 0, one.leader_epoch, LAG_US * 2)
    one.isr_persisted((1, 2), partition_epoch, LAG_US * 2, leader_epoch=leader_epoch)
    assert (one.state.isr, one.state.pending) == ((1,), (1, 2))
    one.isr_persisted((1, 2), 1, LAG_US * 2, leader_epoch=1)
    assert (one.state.isr, one.state.pending) == ((1, 2), ())


@pytest.mark.parametrize(
    ("rule", "update", "joins"),
    [
        ("any", "zookeeper-write", True),
        ("alive", "zookeeper-write", False),
        ("registered", "zookeeper-write", True),  # ZooKeeper checks it.
        ("any", "alter-partition", True),
        ("alive", "alter-partition", False),
        ("registered", "alter-partition", False),
    ],
)
def test_rule_decides_whether_a_dead_follower_joins_and_holds_the_hw(rule: str, update: str, *, joins: bool) -> None:
    host = Recorder()
    host.dead = {2}
    one = partition(host, HW.override({"isr_eligibility": rule, "isr_update": update}))
    one.become_leader(decision(isr=(1,)), 0)
    one.follower_fetched(2, 1, 0, one.leader_epoch, 0)
    assert bool(host.of("isr")) == joins
    one.isr_refused(INVALID_UPDATE_VERSION, 0)
    one.produce(produce(0), 0)
    one.advance_hw(1)
    assert one.hw == (0 if joins else 1)


@pytest.mark.parametrize(
    ("registered", "fetched", "joins"),
    [(4, 4, True), (5, 4, False), (4, 5, False), (None, 4, False), (4, NO_BROKER_EPOCH, True)],
)
def test_registration_that_fetched_joins_and_is_waited_for_in_kraft(
    registered: int | None, fetched: int, *, joins: bool
) -> None:
    host = Recorder()
    host.registered = {} if registered is None else {2: registered}
    one = partition(host, KRAFT)
    one.become_leader(decision(isr=(1,)), 0)
    one.follower_fetched(2, fetched, 0, 1, 0)
    assert bool(host.of("isr")) == joins
    one.isr_refused(INELIGIBLE_REPLICA, 0)
    one.produce(produce(0), 0)
    one.advance_hw(1)
    assert one.hw == (0 if joins else 1)


def test_a_member_that_left_before_it_fetched_is_not_waited_for() -> None:
    one = partition(Recorder(), KRAFT)
    one.become_leader(decision(isr=(1, 2)), 0)
    one.produce(produce(0, acks=1), 0)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 2, (1, 2, 3)), 1)
    assert one.hw == 1


def test_a_proposal_names_the_broker_epoch_of_each_members_last_fetch() -> None:
    host = Recorder()
    host.registered = {2: 4}
    one = partition(host, KRAFT)
    one.become_leader(decision(isr=(1, 3)), 0)
    one.follower_fetched(2, 4, 0, 1, 0)
    assert one.followers.broker_epochs((1, 2, 3)) == {2: 4, 3: NO_BROKER_EPOCH}


@pytest.mark.parametrize(("registered", "stale"), [(4, False), (5, True), (3, False), (None, False)])
def test_a_fetch_of_an_earlier_registration_than_metadata_shows_is_stale(
    registered: int | None, *, stale: bool
) -> None:
    host = Recorder()
    host.registered = {} if registered is None else {2: registered}
    one = partition(host, KRAFT)
    one.become_leader(decision(), 0)
    assert one.refuses_registration(2, 4) == stale
    assert not one.refuses_registration(2, NO_BROKER_EPOCH)


@pytest.mark.parametrize("registered", [3, None])
def test_a_repaired_leader_refuses_a_member_whose_registration_it_does_not_know(registered: int | None) -> None:
    host = Recorder()
    host.registered = {} if registered is None else {2: registered}
    one = partition(host, MODES["elr-repaired"].rules)
    one.become_leader(decision(isr=(1, 2)), 0)
    assert one.refuses_registration(2, 4)
    assert not one.refuses_registration(3, 4)
    assert not one.refuses_registration(2, NO_BROKER_EPOCH)
    host.registered = {2: 4}
    assert not one.refuses_registration(2, 4)


def test_the_committed_isr_gates_the_hw_and_the_maximal_isr_bounds_it() -> None:
    host = Recorder()
    host.registered = {2: 4, 3: 4}
    one = partition(host, KRAFT, min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), 0)
    one.produce(produce(0, acks=1), 0)
    one.follower_fetched(2, 4, 1, 1, 1)
    assert (one.state.pending, one.hw) == ((1, 2), 0)
    one.isr_persisted((1, 2), 2, 1, leader_epoch=1)
    assert one.hw == 1
    one.follower_fetched(3, 4, 1, 1, 1)
    one.produce(produce(1, acks=1), 1)
    one.follower_fetched(2, 4, 2, 1, LAG_US * 2)
    assert (one.state.pending, one.hw) == ((1, 2, 3), 1)
    one.follower_fetched(3, 4, 2, 1, LAG_US * 2)
    assert one.hw == 2


@pytest.mark.parametrize(("cap", "min_isr"), [("none", 3), ("replicas", 1)])
def test_rule_decides_whether_min_isr_may_be_more_than_there_are_replicas(cap: str, min_isr: int) -> None:
    host = Recorder()
    one = partition(host, HW.override({"min_isr_cap": cap}), min_insync_replicas=3)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 1, (1,)), 0)
    assert one.min_insync_replicas == min_isr
    assert f"min_isr_cap={cap}" in host.probes
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 2, (1, 2, 3)), 0)
    assert one.min_insync_replicas == 3


def test_a_lower_min_isr_moves_the_hw_with_the_next_append() -> None:
    host = Recorder()
    one = partition(host, HW.override({"hw_needs_min_isr": "yes"}), min_insync_replicas=2)
    one.become_leader(decision(isr=(1,)), 0)
    one.produce(produce(0, acks=1), LAG_US)
    assert one.hw == 0
    one.set_min_isr(1)
    assert one.hw == 0
    one.produce(produce(1, acks=1), LAG_US * 2)
    assert one.hw == 2


def test_an_equal_leader_epoch_keeps_what_is_known_of_the_followers() -> None:
    one = filled(Recorder(), {0: 5}, hw=2)
    one.become_leader(decision(isr=(1,)), 0)
    one.produce(produce(0, acks=1), 0)
    one.follower_fetched(2, 1, 5, one.leader_epoch, 1)
    once = decision(isr=(1, 2))
    again = LeaderAndIsr(once.name, once.leader, once.leader_epoch, once.isr, 8, once.replicas)
    one.become_leader(again, 9)
    assert (one.partition_epoch, one.epoch_start, one.state.isr) == (8, 5, (1, 2))
    assert (one.followers.states[2].leo, one.followers.states[2].in_isr, one.state.pending) == (5, True, ())


def test_replayed_state_of_an_equal_leader_epoch_ends_a_proposal() -> None:
    host = Recorder()
    host.registered = {2: 4}
    one = partition(host, KRAFT)
    one.become_leader(decision(isr=(1, 3)), 0)
    one.follower_fetched(3, 4, 0, 1, 1)
    one.follower_fetched(2, 4, 0, 1, 1)
    assert one.state.pending == (1, 2, 3)
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 2, (1, 2, 3)), 2)
    assert [one.state.isr, one.state.pending, one.partition_epoch] == [(1,), (), 2]
    assert [(state.in_maximal_isr, state.leo) for state in one.followers.states.values()] == [(False, 0), (False, 0)]
    one.isr_persisted((1, 2, 3), 3, 2, leader_epoch=1)
    assert (one.state.isr, one.partition_epoch) == ((1,), 2)


def test_a_follower_takes_a_newer_partition_epoch_of_one_leader_epoch() -> None:
    one = partition(Recorder(), KRAFT)
    one.become_follower(LeaderAndIsr("t-0", 2, 3, (1, 2), 5, (1, 2, 3)))
    one.become_follower(LeaderAndIsr("t-0", 2, 3, (2,), 6, (1, 2)))
    assert (one.leader_epoch, one.partition_epoch, one.state.isr, one.replicas) == (3, 6, (2,), (1, 2))
    one.become_follower(LeaderAndIsr("t-0", 2, 3, (1, 2), 5, (1, 2, 3)))
    assert (one.partition_epoch, one.state.isr) == (6, (2,))


def test_an_older_decision_is_ignored() -> None:
    one = partition(Recorder())
    one.become_leader(LeaderAndIsr("t-0", 1, 3, (1, 2), 5, (1, 2, 3)), 0)
    one.become_leader(LeaderAndIsr("t-0", 1, 3, (1,), 4, (1, 2, 3)), 0)
    one.become_follower(LeaderAndIsr("t-0", 2, 3, (2,), 4, (1, 2, 3)))
    assert (one.state.isr, one.partition_epoch, one.is_leader) == ((1, 2), 5, True)


@pytest.mark.parametrize("epoch", [1, 2])
def test_followers_come_and_go_with_the_assignment(epoch: int) -> None:
    one = filled(Recorder(), {0: 5}, hw=5)
    one.become_leader(decision(isr=(1, 3)), 0)
    one.follower_fetched(3, 1, 5, 1, 1)
    one.become_leader(LeaderAndIsr("t-0", 1, epoch, (1, 3), 9, (1, 3, 4)), 9)
    assert {broker: (state.leo, state.in_isr) for broker, state in one.followers.states.items()} == {
        3: (5, True),
        4: (-1, False),
    }


def test_a_stopped_partition_leads_no_more_and_refuses_what_waits() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(), 0)
    one.produce(produce(0), 0)
    one.stop()
    assert host.of("answer") == [(0, NOT_LEADER_OR_FOLLOWER, -1)]
    assert (one.is_leader, one.leader, one.followers.states, one.log.leo) == (False, 0, {}, 1)


@pytest.mark.parametrize(("value", "isr"), [("this-fetch", (1,)), ("previous-fetch", (1, 2))])
def test_a_member_that_fetches_while_records_keep_coming(value: str, isr: tuple[int, ...]) -> None:
    """KAFKA-4485: each fetch reaches only the LEO of the fetch before. A member leaves, and cannot join again."""
    host = Recorder()
    one = partition(host, HW.override({"caught_up": value}))
    one.become_leader(decision(isr=(1, 2)), 0)

    def replicate(begin: int) -> None:
        for turn in range(begin, begin + 5):
            now_us = turn * LAG_US // 4
            one.produce(produce(turn, acks=1), now_us)
            one.follower_fetched(2, 1, turn, one.leader_epoch, now_us)

    replicate(0)
    one.shrink_isr(5 * LAG_US // 4)
    assert (one.state.pending or one.state.isr) == isr
    if one.state.pending:
        one.isr_persisted(isr, 1, 5 * LAG_US // 4)
    replicate(5)
    assert one.state.isr == isr
    assert not one.state.pending
    assert one.hw == (10 if isr == (1,) else 9)


def test_members_that_lag_are_proposed_to_leave() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(), 0)
    one.follower_fetched(2, 1, 0, one.leader_epoch, 5)
    one.follower_fetched(3, 1, 0, one.leader_epoch, 5)
    one.produce(produce(0, acks=1), 10)
    one.follower_fetched(3, 1, 1, one.leader_epoch, 20)
    one.shrink_isr(5 + LAG_US)
    assert host.of("isr") == []
    one.shrink_isr(6 + LAG_US)
    assert host.of("isr") == [((1, 3),)]


@pytest.mark.parametrize(("rule", "isr"), [("none", [((1,),)]), ("min-isr", [((1, 3),)])])
def test_rule_decides_whether_members_that_lag_are_held_at_min_isr(
    rule: str, isr: list[tuple[tuple[int, ...]]]
) -> None:
    host = Recorder()
    one = partition(host, KRAFT.override({"isr_floor": rule}), min_insync_replicas=2)
    one.become_leader(decision(), 0)
    one.follower_fetched(3, 1, 0, 1, 1)
    one.produce(produce(0), 2)
    one.shrink_isr(LAG_US * 2)
    assert host.of("isr") == isr
    if rule == "min-isr":
        one.isr_persisted((1, 3), 2, LAG_US * 2, leader_epoch=1)
        one.shrink_isr(LAG_US * 3)
        assert host.of("isr") == isr


def test_a_silent_follower_that_has_everything_stays() -> None:
    host = Recorder()
    one = partition(host, HW.override({"isr_lag": "end-offset"}))
    one.become_leader(decision(), 0)
    one.follower_fetched(2, 1, 0, one.leader_epoch, 5)
    one.follower_fetched(3, 1, 0, one.leader_epoch, 5)
    one.shrink_isr(LAG_US * 9)
    assert host.of("isr") == []


def test_reaching_the_leo_of_the_previous_fetch_counts_as_caught_up() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(isr=(1, 2)), 0)
    one.follower_fetched(2, 1, 0, one.leader_epoch, 0)
    for fetched in range(1, 5):
        one.produce(produce(fetched, acks=1), fetched * LAG_US)
        one.follower_fetched(2, 1, fetched - 1, one.leader_epoch, fetched * LAG_US)
    one.shrink_isr(4 * LAG_US)
    assert host.of("isr") == []


@pytest.mark.parametrize(("rule", "known"), [("no", (0, 30, True)), ("yes", (-1, 0, False))])
def test_rule_decides_whether_fetches_of_another_leader_epoch_count(rule: str, known: tuple[int, int, bool]) -> None:
    host = Recorder()
    one = partition(host, HW.override({"hw_needs_epoch": rule}))
    one.become_leader(decision(epoch=3, isr=(1, 2)), 0)
    one.follower_fetched(2, 1, 0, 2, 30)
    one.follower_fetched(3, 1, 0, 2, 30)
    state = one.followers.states[2]
    assert (state.leo, state.caught_up_us, bool(host.of("isr"))) == known


def test_fetches_of_strangers_teach_nothing() -> None:
    host = Recorder()
    one = partition(host)
    one.become_leader(decision(), 0)
    one.follower_fetched(9, 1, 0, one.leader_epoch, 0)
    assert host.of("replicated") == []


# Requests.


def test_a_fetch_is_checked_for_epoch_then_leadership_then_range() -> None:
    one = filled(Recorder(), {1: 3}, HW.override({"fetch_fencing": "leader-epoch"}))
    one.become_leader(decision(epoch=4), 0)
    assert [one.check_fetch(9, 3), one.check_fetch(9, 5), one.check_fetch(9, 4), one.check_fetch(3, 4)] == [
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        OFFSET_OUT_OF_RANGE,
        NONE,
    ]
    one.become_follower(decision(leader=2, epoch=5))
    assert one.check_fetch(9, 4) == FENCED_LEADER_EPOCH
    assert one.check_fetch(9, NO_EPOCH) == NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("rule", "error"), [("no", NONE), ("yes", FENCED_LEADER_EPOCH)])
def test_epochs_of_clients_have_a_rule_of_their_own(rule: str, error: str) -> None:
    rules = HW.override({"list_offsets_fencing": rule})
    one = filled(Recorder(), {1: 3}, rules)
    one.become_leader(decision(epoch=4, isr=(1,)), 0)
    assert one.check_fetch(3, 3, client=True) == error
    assert one.list_offset(LATEST, 3, replica=False)[0] == error
    assert (one.check_fetch(3, 3), one.list_offset(LATEST, 3, replica=True)[0]) == (NONE, NONE)


@pytest.mark.parametrize(("rule", "error"), [("no", NONE), ("yes", FENCED_LEADER_EPOCH)])
def test_epochs_of_questions_about_epochs_have_a_rule_of_their_own(rule: str, error: str) -> None:
    one = filled(Recorder(), {1: 3}, KIP101.override({"truncation_fencing": rule}))
    one.become_leader(decision(epoch=4), 0)
    assert one.end_offset_for(3, 1, with_epoch=False)[0] == error
    assert one.check_fetch(3, 3) == NONE


def test_the_first_draft_of_kip_320_compares_the_epoch_of_the_last_record() -> None:
    rules = KIP101.override({"fetch_fencing": "last-epoch"})
    one = filled(Recorder(), {1: 3, 4: 2}, rules)
    one.become_leader(decision(epoch=5), 0)
    fetches = ((5, 4), (5, 3), (3, 1), (4, 1), (3, NO_EPOCH), (9, 3))
    assert [one.check_fetch(offset, 2, last) for offset, last in fetches] == [
        NONE,
        LOG_TRUNCATION,
        NONE,
        LOG_TRUNCATION,
        NONE,
        OFFSET_OUT_OF_RANGE,
    ]


@pytest.mark.parametrize(
    ("offset", "last", "answer"),
    [
        (7, 4, NONE),
        (5, 4, NONE),
        (5, 2, NONE),  # It ends there.
        (6, 2, (2, 5)),
        (4, 3, (2, 5)),
        (8, 4, (4, 7)),  # From beyond the LEO it diverges, too.
        (4, 1, (1, 2)),  # Below the first epoch its start is said to be the end.
        (2, 1, NONE),
        (1, 1, OFFSET_OUT_OF_RANGE),
        (7, 9, OFFSET_OUT_OF_RANGE),
        (7, NO_EPOCH, NONE),
    ],
)
def test_a_leader_compares_the_epoch_of_the_last_record_with_its_own_log(
    offset: int, last: int, answer: str | tuple[int, int]
) -> None:
    one = filled(Recorder(), {0: 2, 2: 3, 4: 2}, KRAFT, hw=7)
    one.advance_log_start(2)
    one.epochs.truncate_from_start(2)
    one.is_leader, one.leader_epoch = True, 4
    assert one.epochs.entries == [(2, 2), (4, 5)]
    for client in (False, True):
        error = one.check_fetch(offset, 4, last, client)
        assert (one.diverging(last) if error == DIVERGING_EPOCH else error) == answer


def test_a_leader_that_truncates_in_a_phase_of_its_own_compares_nothing() -> None:
    one = filled(Recorder(), {0: 2}, KIP101)
    one.is_leader = True
    assert one.check_fetch(2, NO_EPOCH, 1) == NONE
    assert (one.agrees, filled(Recorder(), {0: 2}, KRAFT).agrees) == (None, AGREES)


def test_any_epoch_will_do_without_fencing() -> None:
    one = filled(Recorder(), {1: 3}, hw=2)
    one.become_leader(decision(epoch=4), 0)
    one.advance_log_start(2)
    assert [one.check_fetch(offset, 0) for offset in (1, 2, 3, 4)] == [
        OFFSET_OUT_OF_RANGE,
        NONE,
        NONE,
        OFFSET_OUT_OF_RANGE,
    ]


def test_the_end_of_an_epoch_is_told_by_a_leader_that_knows_epochs() -> None:
    one = filled(Recorder(), {1: 3, 2: 2}, KIP101)
    assert one.end_offset_for(NO_EPOCH, 1, with_epoch=True) == (NOT_LEADER_OR_FOLLOWER, -1, -1)
    one.become_leader(decision(epoch=4), 0)
    assert one.end_offset_for(NO_EPOCH, 1, with_epoch=False) == (NONE, -1, 3)
    assert one.end_offset_for(NO_EPOCH, 4, with_epoch=True) == (NONE, -1, -1)
    for before in ("high-watermark", "high-watermark-delayed"):
        old = filled(Recorder(), {1: 3}, HW.override({"follower_truncation": before}))
        old.become_leader(decision(epoch=4), 0)
        assert old.end_offset_for(NO_EPOCH, 1, with_epoch=False) == (UNSUPPORTED_VERSION, -1, -1)


@pytest.mark.parametrize(("rule", "epoch"), [("leader-epoch", -1), ("leader-epoch-rounds", 2)])
def test_a_leader_names_the_epoch_if_it_would_ask_for_it_itself(rule: str, epoch: int) -> None:
    one = filled(Recorder(), {1: 3, 2: 2}, KIP101.override({"follower_truncation": rule}))
    one.become_leader(decision(epoch=4), 0)
    assert one.end_offset_for(NO_EPOCH, 2, with_epoch=True) == (NONE, epoch, 5)
    assert one.end_offset_for(NO_EPOCH, 2, with_epoch=False) == (NONE, -1, 5)


@pytest.mark.parametrize(("rule", "last"), [("first-append", 2), ("election", 4)])
def test_leader_notes_its_epoch_when_its_rule_says(rule: str, last: int) -> None:
    one = filled(Recorder(), {2: 2}, KIP101.override({"epoch_recorded_at": rule}))
    one.become_leader(decision(epoch=4), 0)
    assert one.epochs.latest == last
    one.produce(produce(0, acks=1), 0)
    assert one.epochs.entry(4) == (4, 2)


@pytest.mark.parametrize(("rule", "answer"), [("no", (NONE, 1)), ("yes", (OFFSET_NOT_AVAILABLE, -1))])
def test_rule_decides_whether_a_new_leader_answers_latest(rule: str, answer: tuple[str, int]) -> None:
    one = filled(Recorder(), {1: 3}, HW.override({"list_offsets_guard": rule}), hw=1)
    assert one.list_offset(LATEST, NO_EPOCH, replica=False) == (NOT_LEADER_OR_FOLLOWER, -1)
    one.become_leader(decision(epoch=4), 0)
    assert one.list_offset(LATEST, NO_EPOCH, replica=False) == answer
    assert one.list_offset(LATEST, NO_EPOCH, replica=True) == (NONE, 3)
    assert one.list_offset(EARLIEST, NO_EPOCH, replica=False) == (NONE, 0)


def test_consumers_get_batches_below_the_hw_and_followers_get_all() -> None:
    one = partition(Recorder())
    for _ in range(3):
        one.append_new(one.log.leo, 4, 0)
    one.set_hw(7)
    assert [batch.base_offset for batch in one.read_committed(2)] == [0]
    assert [batch.base_offset for batch in one.read_committed(7)] == []
    assert [batch.base_offset for batch in one.read_uncommitted(7)] == [4, 8]
    assert one.read_uncommitted(12) == []


def test_rule_decides_whether_who_has_everything_may_lag() -> None:
    for rule, pending in (("time", (1,)), ("end-offset", ())):
        one = partition(Recorder(), HW.override({"isr_lag": rule}))
        one.become_leader(decision(isr=(1, 2)), 0)
        one.follower_fetched(2, 1, 0, 1, 0)
        one.shrink_isr(LAG_US)
        assert one.state.pending == ()
        one.shrink_isr(LAG_US + 1)
        assert one.state.pending == pending


def test_rule_decides_whether_a_reelection_keeps_followers_caught_up() -> None:
    for rule, hw in (("fetched", 2), ("not-fetched", 3)):
        host = Recorder()
        one = partition(host, HW.override({"lag_at_reelection": rule, "isr_join": "leader-epoch-start"}))
        one.become_leader(decision(isr=(1,)), 0)
        one.produce(produce(0, acks=1), 0)
        one.follower_fetched(2, 1, 0, 1, LAG_US * 2)
        again = LeaderAndIsr("t-0", 1, 2, (1,), 2, (1, 2))
        one.become_leader(again, LAG_US * 3)
        one.produce(produce(1, acks=1), LAG_US * 3)
        one.state.propose((1,), {}, locks=False, advances_hw=False)  # It does not join meanwhile.
        one.follower_fetched(2, 1, 1, 2, LAG_US * 3 + 1)
        one.produce(produce(2, acks=1), LAG_US * 3 + 1)
        assert one.hw == hw
        assert f"lag_at_reelection={rule}" in host.probes


@pytest.mark.parametrize(
    ("value", "epoch", "hw"), [("keeps-leo", 3, 1), ("forgets-leo", 3, 0), ("keeps-leo", 2, 1), ("forgets-leo", 2, 1)]
)
def test_a_leader_that_skips_epochs_counts_what_followers_fetched_before(value: str, epoch: int, hw: int) -> None:
    host = Recorder()
    one = partition(host, HW.override({"skipped_epoch": value}))
    one.become_leader(decision(isr=(1, 2, 3)), 0)
    one.produce(produce(0), 0)
    one.follower_fetched(3, 1, 1, 1, 0)
    assert one.hw == 0  # Broker 2 lacks it.
    one.become_leader(LeaderAndIsr("t-0", 1, epoch, (1, 3), epoch, (1, 2, 3)), 1)
    assert one.hw == hw
    assert (f"skipped_epoch={value}" in host.probes) == (epoch == 3)
    one.follower_fetched(3, 1, 1, epoch, 2)
    assert one.hw == 1


@pytest.mark.parametrize(
    ("rule", "epoch", "error"),
    [("empty", 1, NONE), ("refused", 1, "UNKNOWN_LEADER_EPOCH"), ("refused", -1, "NOT_LEADER_OR_FOLLOWER")],
)
def test_rule_decides_whether_who_is_no_replica_is_refused(rule: str, epoch: int, error: str) -> None:
    one = partition(Recorder(), HW.override({"unassigned_fetch": rule}))
    assert one.check_unassigned(0, epoch, -1) == "NOT_LEADER_OR_FOLLOWER"
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1,), 1, (1, 2)), 0)
    assert one.check_unassigned(0, epoch, -1) == error


def test_rule_decides_whether_a_refused_fetch_forgets_the_leo() -> None:
    for rule, leo in (("forgets-leo", -1), ("ignored", 0)):
        one = partition(Recorder(), HW.override({"refused_fetch": rule}))
        one.become_leader(decision(isr=(1, 2)), 0)
        one.follower_fetched(2, 1, 0, 1, 0)
        one.note_refused_fetch(2)
        one.note_refused_fetch(3)
        assert one.followers.states[2].leo == leo


@pytest.mark.parametrize(("rule", "hw"), [("every-fetch", 1), ("moved-leo", 0)])
def test_rule_decides_whether_an_idle_follower_outside_moves_the_hw(rule: str, hw: int) -> None:
    host = Recorder()
    one = partition(host, HW.override({"hw_at_fetch": rule}))
    one.become_leader(LeaderAndIsr("t-0", 1, 1, (1, 3), 1, (1, 2, 3)), 0)
    one.follower_fetched(2, 1, 0, 1, 0)
    one.isr_refused("BAD_VERSION", 0)
    one.produce(produce(0, acks=1), 0)
    one.follower_fetched(3, 1, 1, 1, 0)
    one.follower_fetched(2, 1, 0, 1, LAG_US + 1)
    one.isr_refused("BAD_VERSION", LAG_US + 1)
    assert one.hw == hw
    assert f"hw_at_fetch={rule}" in host.probes
    assert one.fetch_is_noop(3, 1, 1)
    one.produce(produce(1, acks=1), 0)
    one.follower_fetched(3, 1, 2, 1, 0)
    assert one.fetch_is_noop(3, 2, 1) == (rule == "moved-leo")
