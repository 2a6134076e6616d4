"""Failed log directories at the controller: heartbeats that report them, and assignments to them."""

from __future__ import annotations

import pytest

from sim.protocol.kraft.metadata import UNASSIGNED, PartitionRegistration
from sim.protocol.messages import INELIGIBLE_REPLICA, NONE
from tests.sim.protocol.quorum_host import QuorumHost


def quorum(mode: str = "elr-4.3") -> QuorumHost:
    """Three brokers with directories 0 and 1, and partition `p`, which each has in directory 0."""
    host = QuorumHost(mode)
    for broker in (1, 2, 3):
        assert not host.controller.register(broker, 50 + broker, -1, (0, 1)).error
    host.unfence(1, 2, 3)
    host.controller.create_partition("p", (1, 2, 3))
    for broker in (1, 2, 3):
        assert assign(host, broker, 0) == NONE
    return host


def assign(host: QuorumHost, broker: int, directory: int) -> str:
    return host.controller.assign_directory("p", broker, host.image.brokers[broker].broker_epoch, directory)


def report(host: QuorumHost, broker: int, *directories: int) -> None:
    epoch = host.image.brokers[broker].broker_epoch
    host.controller.heartbeat(broker, epoch, host.image.offset, offline_directories=directories)


def test_a_new_replica_of_a_broker_with_several_is_unassigned() -> None:
    host = quorum()
    host.controller.create_partition("q", (1, 2))
    assert [host.image.partitions["q"].directory(broker) for broker in (1, 2)] == [UNASSIGNED] * 2
    assert host.image.has_online_directory(host.image.partitions["q"], 1)


def test_a_leader_in_a_failed_directory_leaves_the_isr() -> None:
    host = quorum()
    report(host, 1, 0)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
    assert host.image.brokers[1].directories == (1,)
    assert not host.image.has_online_directory(state, 1)
    offset = host.image.offset
    report(host, 1, 0)
    assert host.image.offset == offset


def test_partitions_in_other_directories_stay_as_they_are() -> None:
    host = quorum()
    before = host.image.partitions["p"]
    report(host, 1, 1)
    assert host.image.partitions["p"] is before


def test_a_replica_whose_directory_was_not_reported_stays_in_the_isr_until_it_is() -> None:
    host = quorum()
    host.controller.create_partition("q", (1, 2, 3))
    report(host, 1, 0)
    assert host.image.partitions["q"].isr == (1, 2, 3)
    epoch = host.image.brokers[1].broker_epoch
    assert host.controller.assign_directory("q", 1, epoch, 0) == NONE
    state = host.image.partitions["q"]
    assert (state.leader, state.isr, state.directory(1)) == (2, (2, 3), 0)


def test_the_last_member_stays_without_elr_and_is_not_elected() -> None:
    host = quorum("kraft")
    host.fence(2, 3)
    report(host, 1, 0)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr) == (0, (1,))
    host.unfence(2, 3)
    assert host.image.partitions["p"].leader == 0


@pytest.mark.parametrize("mode", ["kraft", "elr-4.3"])
def test_a_heartbeat_that_ends_fencing_may_elect_a_leader_in_the_directory_that_it_reports(mode: str) -> None:
    """Both changes start from the same state, and the later one changes nothing: Kafka 4.3.1."""
    host = quorum(mode)
    host.fence(2, 3, 1)
    assert host.image.partitions["p"].leader == 0
    report(host, 1, 0)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, host.image.brokers[1].directories) == (1, (1,), (1,))
    assert not host.image.brokers[1].fenced
    report(host, 1, 0)
    host.unfence(2, 3)
    assert host.image.partitions["p"].leader == 1


@pytest.mark.parametrize(("mode", "error"), [("elr-4.3", NONE), ("elr-repaired", INELIGIBLE_REPLICA)])
def test_a_replica_may_join_the_isr_after_its_directory_has_failed(mode: str, error: str) -> None:
    host = quorum(mode)
    report(host, 2, 0)
    assert host.image.partitions["p"].isr == (1, 3)
    assert host.alter(1, 2, 3) == error
    assert host.image.partitions["p"].isr == ((1, 2, 3) if error == NONE else (1, 3))


@pytest.mark.parametrize("mode", ["elr-4.3", "elr-repaired"])
def test_a_replica_in_another_directory_joins_the_isr(mode: str) -> None:
    host = quorum(mode)
    report(host, 2, 1)
    host.fence(2)
    host.unfence(2)
    assert host.alter(1, 2, 3) == NONE
    assert host.image.partitions["p"].isr == (1, 2, 3)


def test_with_the_reported_directory_excluded_another_eligible_replica_is_elected() -> None:
    host = quorum("elr-repaired")
    host.fence(2, 3, 1)
    assert host.image.partitions["p"].elr == (1, 3)
    report(host, 1, 0)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, state.elr) == (0, (), (1, 3))
    assert not host.image.brokers[1].fenced
    host.unfence(2)
    assert host.image.partitions["p"].leader == 0
    host.unfence(3)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, state.elr) == (3, (3,), (1,))
    assert "reported_directory=excluded" in host.probes


@pytest.mark.parametrize("mode", ["elr-4.3", "elr-repaired"])
def test_a_heartbeat_that_ends_fencing_elects_in_directories_that_it_does_not_report(mode: str) -> None:
    host = quorum(mode)
    host.fence(2, 3, 1)
    report(host, 1, 1)
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, state.elr) == (1, (1,), (3,))
    assert not any(probe.startswith("reported_directory=") for probe in host.probes)


def test_without_elr_an_unclean_election_takes_another_replica_than_the_reported_one() -> None:
    for mode, elected in (("kraft", 1), ("kraft-repaired", 2)):
        host = quorum(mode)
        host.fence(2, 3, 1)
        host.controller.set("unclean.leader.election.enable", True)
        report(host, 1, 0)
        assert host.image.partitions["p"].leader == (elected if mode == "kraft" else 0)
        host.unfence(2)
        assert host.image.partitions["p"].leader == elected


def test_a_heartbeat_that_begins_fencing_counts_its_changes_once_in_the_isr_and_twice_in_the_epoch() -> None:
    host = quorum("kraft-3.9.1")
    known = host.image.brokers[1]
    host.controller.heartbeat(1, known.broker_epoch, host.image.offset, want_fence=True, offline_directories=(0,))
    state = host.image.partitions["p"]
    assert (state.leader, state.isr, state.leader_epoch, state.partition_epoch) == (2, (2, 3), 2, 5)
    assert host.image.brokers[1].fenced
    assert host.image.brokers[1].directories == (1,)


def test_after_a_report_another_broker_waits_for_the_next_heartbeat_before_it_may_stop() -> None:
    """Replaying the record clears the metadata offset of the broker that reports."""
    host = quorum()
    host.controller.heartbeat(2, host.image.brokers[2].broker_epoch, host.image.offset)
    host.controller.heartbeat(3, host.image.brokers[3].broker_epoch, host.image.offset)
    epoch = host.image.brokers[1].broker_epoch
    assert not host.controller.heartbeat(1, epoch, host.image.offset, want_shut_down=True).should_shut_down
    for broker in (2, 3):
        host.controller.heartbeat(broker, host.image.brokers[broker].broker_epoch, host.image.offset)
    report(host, 2, 1)
    assert not host.controller.heartbeat(1, epoch, host.image.offset).should_shut_down
    host.controller.heartbeat(2, host.image.brokers[2].broker_epoch, host.image.offset)
    assert host.controller.heartbeat(1, epoch, host.image.offset).should_shut_down


def test_a_report_of_the_last_directory_leaves_the_registration_as_it_is() -> None:
    """An empty list in the record means no change; the leader leaves the ISR nevertheless."""
    host = quorum()
    report(host, 1, 0, 1)
    assert host.image.brokers[1].directories == (0, 1)
    assert host.image.partitions["p"].isr == (2, 3)


@pytest.mark.parametrize(
    ("mode", "directories", "elr"),
    [("elr-4.3", (1,), (1, 3)), ("elr-repaired", (1,), (3,)), ("elr-repaired", (0,), (1, 3))],
)
def test_a_clean_shutdown_counts_if_no_eligible_replica_is_missing(
    mode: str, directories: tuple[int, ...], elr: tuple[int, ...]
) -> None:
    host = quorum(mode)
    host.fence(2, 3, 1)
    assert host.image.partitions["p"].elr == (1, 3)
    reply = host.controller.register(1, 99, host.image.brokers[1].broker_epoch, directories)
    assert not reply.error
    assert host.image.partitions["p"].elr == elr
    assert ("removed_directory=unclean" in host.probes) == (1 not in elr)


def test_a_directory_that_failed_before_it_was_removed_is_missing() -> None:
    host = quorum("elr-repaired")
    host.fence(2, 3)
    report(host, 1, 0)
    assert (host.image.partitions["p"].elr, host.image.brokers[1].directories) == ((1, 3), (1,))
    host.fence(1)
    assert not host.controller.register(1, 99, host.image.brokers[1].broker_epoch, (1,)).error
    assert host.image.partitions["p"].elr == (3,)


def test_replicas_in_the_other_directories_of_a_broker_stay_eligible() -> None:
    host = quorum("elr-repaired")
    host.controller.create_partition("q", (1, 2, 3))
    assert host.controller.assign_directory("q", 1, host.image.brokers[1].broker_epoch, 1) == NONE
    host.fence(2, 3, 1)
    assert [host.image.partitions[name].elr for name in "pq"] == [(1, 3), (1, 3)]
    assert host.controller.register(1, 99, host.image.brokers[1].broker_epoch, (1,)).detected_unclean
    assert [host.image.partitions[name].elr for name in "pq"] == [(3,), (1, 3)]


def test_an_assignment_is_taken_back_by_a_reassignment_that_completes_in_the_same_event() -> None:
    """The second record has the directories that the replicas had before the first. Found by comparing with Kafka."""
    host = QuorumHost("elr-4.3")
    for broker in (1, 2, 3):
        assert not host.controller.register(broker, 50 + broker, -1).error
    host.unfence(1)
    host.controller.create_partition("p", (3, 1))
    host.controller.set("unclean.leader.election.enable", True)
    host.controller.reassign("p", (1, 2))
    epoch = host.image.brokers[1].broker_epoch
    host.controller.heartbeat(1, epoch, host.image.offset, want_shut_down=True)
    host.unfence(2)
    assert assign(host, 1, 3) == NONE
    state = host.image.partitions["p"]
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (2,), 2)
    assert [state.directory(broker) for broker in state.replicas] == [0, 0]


def test_directories_of_the_same_list_are_kept_by_place() -> None:
    """As records of Kafka have a list of directories, and only if it changes."""
    before = PartitionRegistration("p", 1, 0, (1,), 4, (1, 2))
    assigned = PartitionRegistration("p", 1, 0, (1,), 5, (1, 2), directories={1: 3})
    reordered = PartitionRegistration("p", 1, 0, (1,), 5, (2, 1))
    assert reordered.merged(before, assigned).directories == {2: 3}
    isr_only = PartitionRegistration("p", 1, 0, (1, 2), 5, (1, 2))
    assert isr_only.merged(before, assigned).directories == {1: 3}
    fewer = PartitionRegistration("p", 1, 0, (1,), 5, (1,))
    assert fewer.merged(before, assigned).directories == {}
