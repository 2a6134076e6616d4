"""Driver of kind ``become_follower``: which decisions restart a broker's fetcher.

The broker is the simulated one; the leader that it follows is a stand-in. Metadata that is replayed goes to a partition
and a fetcher of the core. Cases about a leader have the driver of kind ``leader_reply_to_fetch``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sim.protocol import decisions
from sim.protocol.messages import FetchRequest, LeaderAndIsr
from sim.protocol.replica.become_follower import restarts_fetcher
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.kinds.leader_reply_to_fetch import LeaderOfOne
from tests.verification.conformance.simulated import FollowingBroker
from tests.verification.conformance.world import (
    FOLLOWER,
    LEADER,
    RecordingHost,
    entries_of,
    fill,
    make_cache,
    make_log,
    make_partition,
    records,
)

if TYPE_CHECKING:
    from sim.environment.storage import Storage
    from sim.protocol.batch import Batch
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules


class Decisions:
    """The state of a case: a broker that follows already, and agrees with its leader about its log."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        follower = given.part("follower") if "follower" in given else given
        if given.get("role", "follower") != "follower" or given.get("leader", LEADER) != LEADER:
            raise TableError("the broker follows broker 1")
        given.get("inter_broker_protocol")  # It says why truncation has a phase of its own.
        self.leo = follower.get("leo", 0)
        self.latest_epoch = follower.get("latest_epoch", 0)
        self.leader_epoch = follower["leader_epoch"]
        self.partition_epoch = given.get("partition_epoch", 0)
        self.reply = given.part("leader_reply")
        self.rules = rules

    @cached_property
    def broker(self) -> FollowingBroker:
        """The broker, which has heard of its leader."""
        broker = FollowingBroker(self.rules, self._fill, (self.latest_epoch, self.leo))
        broker.decide(self.leader_epoch, self.partition_epoch)
        return broker

    @cached_property
    def replay(self) -> Replaying:
        """A replica that has replayed who leads."""
        replay = Replaying(self.rules, records(self.leo, self.latest_epoch))
        replay.replay(self.leader_epoch, self.partition_epoch)
        return replay

    def _fill(self, storage: Storage) -> None:
        fill(storage, records(self.leo, self.latest_epoch))
        storage.close_cleanly(self.leo)
        if self.leo:
            storage.epoch_checkpoint.write([(self.latest_epoch, 0)])

    def decide(self, op: Fields) -> Seen:
        """Handle a LeaderAndIsr; if only its leader epoch is given, its partition epoch is newer, too."""
        if op.get("leader", LEADER) not in (LEADER, "same"):
            raise TableError("the leader never changes")
        broker = self.broker
        self.partition_epoch = op.get("partition_epoch", self.partition_epoch + 1)
        reply = op.part("leader_reply") or self.reply
        if reply:
            broker.leader.answer = (reply["epoch"], reply["end_offset"])
        restarted = broker.decide(op["leader_epoch"], self.partition_epoch)
        partition = broker.partition
        return Seen(
            restart_fetcher=restarted,
            fetcher_restarted=restarted,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leo=partition.log.leo,
            truncated_to=broker.truncated_to,
        )

    def take_delta(self, op: Fields) -> Seen:
        """A change of the partition is replayed."""
        if op.get("leader", LEADER) not in (LEADER, "same"):
            raise TableError("the leader never changes")
        replay = self.replay
        self.partition_epoch = op.get("partition_epoch", self.partition_epoch + 1)
        lands = op.get("in_flight_append_lands_while_fetcher_stops", 0)
        restarted = replay.replay(op["leader_epoch"], self.partition_epoch, lands=lands)
        return Seen(
            restart_fetcher=restarted,
            fetcher_restarted=restarted,
            leader_epoch=replay.partition.leader_epoch,
            partition_epoch=replay.partition.partition_epoch,
            leo=replay.partition.log.leo,
            new_fetcher_initial_offset=replay.fetches_from,
        )


class Replaying:
    """A replica that follows, and its fetcher (ReplicaManager.applyLocalFollowersDelta)."""

    def __init__(self, rules: Rules, batches: list[Batch]) -> None:
        self.rules = rules
        self.host = RecordingHost()
        self.partition: Partition = make_partition(
            make_log(batches), make_cache(entries_of(batches)), rules, host=self.host, broker=FOLLOWER
        )
        self.fetcher = ReplicaFetcherThread(LEADER, decisions.Decisions(rules), self.host, backoff_us=0)

    def replay(self, leader_epoch: int, partition_epoch: int, *, lands: int = 0) -> bool:
        """Apply the partition's next state.

        Args:
            leader_epoch: in it.
            partition_epoch: in it.
            lands: records of an append that is under way while the fetcher stops.

        Returns:
            Whether the fetcher restarts.
        """
        partition = self.partition
        brokers = (LEADER, FOLLOWER)
        state = LeaderAndIsr(partition.name, LEADER, leader_epoch, brokers, partition_epoch, brokers)
        restarts = restarts_fetcher(decisions.Decisions(self.rules), partition.leader, partition.leader_epoch, state)
        partition.become_follower(state)
        if restarts:
            self.fetcher.remove(partition.name)
            for batch in records(partition.log.leo + lands, leader_epoch)[partition.log.leo :]:
                partition.append_fetched(batch)
            self.fetcher.in_flight = None  # One of the fetcher before.
            self.fetcher.add(partition, leader_epoch, 0)
        return restarts

    @property
    def fetches_from(self) -> int | None:
        """Offset of the fetch under way."""
        request = self.fetcher.in_flight
        return request.positions[0][1] if isinstance(request, FetchRequest) else None


def _begin(given: Fields, rules: Rules) -> Decisions | LeaderOfOne:
    return LeaderOfOne(given, rules) if given.get("role") == "leader" else Decisions(given, rules)


KIND = Kind(
    begin=_begin,
    ops={
        **dict.fromkeys(("become_follower", "make_follower", "leader_and_isr"), Decisions.decide),
        "metadata_delta": Decisions.take_delta,
        "follower_fetch": LeaderOfOne.fetch,
    },
)
