from __future__ import annotations

import pytest

from sim.protocol.decisions import Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import MODES
from sim.protocol.replica.abstract_fetcher_manager import AbstractFetcherManager
from sim.protocol.replica.partition import Partition
from tests.sim.protocol.recording import Recorder, filled

KIP320 = MODES["kip320"].rules


class Follower:
    """Broker 1, with partitions that follow."""

    def __init__(self) -> None:
        self.host = Recorder()
        self.manager = AbstractFetcherManager(self.host, Decisions(KIP320), 0)
        self.partitions: dict[str, Partition] = {}

    def follow(self, name: str, leader: int, epoch: int) -> bool:
        """Follow a leader; returns whether fetching restarts."""
        one = self.partitions.setdefault(name, filled(self.host, {0: 3}, KIP320, name=name))
        decision = LeaderAndIsr(name, leader, epoch, (2, 3), epoch, (1, 2, 3))
        restarts = self.manager.restarts(one, decision)
        one.become_follower(decision)
        if restarts:
            self.manager.add(one, decision, 0)
        else:
            self.manager.goes_on(name, decision)
        return restarts

    @property
    def fetched(self) -> dict[int, list[str]]:
        """The partitions of each fetcher."""
        return {leader: list(fetcher.partitions) for leader, fetcher in self.manager.fetchers.items()}


def test_each_leader_has_a_fetcher_which_ends_with_its_last_partition() -> None:
    one = Follower()
    assert one.follow("a-0", 2, 1)
    assert one.follow("b-0", 2, 1)
    assert one.follow("c-0", 3, 1)
    assert one.fetched == {2: ["a-0", "b-0"], 3: ["c-0"]}
    one.manager.remove("c-0")
    assert one.fetched == {2: ["a-0", "b-0"]}


def test_a_partition_moves_to_the_fetcher_of_its_next_leader() -> None:
    one = Follower()
    one.follow("a-0", 2, 1)
    one.follow("b-0", 2, 1)
    assert one.manager.is_fetching_from(2, "a-0")
    assert one.follow("a-0", 3, 2)
    assert one.fetched == {2: ["b-0"], 3: ["a-0"]}
    assert "fetcher-stays" in one.host.transitions  # Its request is in flight.
    assert not one.manager.is_fetching_from(2, "a-0")


@pytest.mark.parametrize(("epoch", "restarts"), [(1, False), (2, True)])
def test_a_newer_epoch_of_the_same_leader_restarts_fetching(epoch: int, restarts: bool) -> None:
    one = Follower()
    one.follow("a-0", 2, 1)
    assert one.follow("a-0", 2, epoch) is restarts
    assert one.manager.fetchers[2].partitions["a-0"].leader_epoch == epoch


def test_several_changes_share_a_request_and_keep_threads_without_partitions() -> None:
    one = Follower()
    one.follow("a-0", 2, 1)
    thread = one.manager.fetchers[2]
    thread.in_flight = None
    one.host.sent.clear()
    one.manager.begin_changes()
    one.manager.remove("a-0")
    assert one.manager.fetchers[2] is thread
    one.follow("b-0", 2, 1)
    one.follow("c-0", 2, 1)
    assert one.host.sent == []
    one.manager.end_changes(0)
    assert len(one.host.sent) == 1
    assert one.fetched == {2: ["b-0", "c-0"]}
    one.manager.keeps_idle = True
    one.manager.remove("b-0")
    one.manager.remove("c-0")
    assert one.fetched == {2: []}
    one.manager.shut_down_idle()
    assert one.fetched == {}
