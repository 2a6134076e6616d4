"""Driver of kind ``become_follower``: which decisions make a broker's fetcher begin anew.

The broker is the simulated one; the leader that it follows is a stand-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.cases import Fields, TableError
from tests.conformance.driving import Kind, Seen
from tests.conformance.simulated import FollowingBroker
from tests.conformance.world import LEADER, fill, records

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from sim.storage import Storage


class Decisions:
    """The state of a case: a broker that follows already, and agrees with its leader about its log."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        follower = given.part("follower") if "follower" in given else given
        if given.get("role", "follower") != "follower" or given.get("leader", LEADER) != LEADER:
            raise TableError("the broker follows broker 1")
        given.get("inter_broker_protocol")  # It says why truncation has a phase of its own.
        self.leo = follower.get("leo", 0)
        self.latest_epoch = follower.get("latest_epoch", 0)
        self.broker = FollowingBroker(rules, self._fill, (self.latest_epoch, self.leo))
        self.partition_epoch = given.get("partition_epoch", 0)
        self.broker.decide(follower["leader_epoch"], self.partition_epoch)
        self.reply = given.part("leader_reply")

    def _fill(self, storage: Storage) -> None:
        fill(storage, records(self.leo, self.latest_epoch))
        storage.close_cleanly(self.leo)
        if self.leo:
            storage.epoch_checkpoint.write([(self.latest_epoch, 0)])

    def decide(self, op: Fields) -> Seen:
        """A LeaderAndIsr arrives; where only its leader epoch is given, its partition epoch is newer, too."""
        if op.get("leader", LEADER) not in (LEADER, "same"):
            raise TableError("the leader never changes")
        self.partition_epoch = op.get("partition_epoch", self.partition_epoch + 1)
        reply = op.part("leader_reply") or self.reply
        if reply:
            self.broker.leader.answer = (reply["epoch"], reply["end_offset"])
        restarted = self.broker.decide(op["leader_epoch"], self.partition_epoch)
        partition = self.broker.partition
        return Seen(
            restart_fetcher=restarted,
            fetcher_restarted=restarted,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leo=partition.log.leo,
            truncated_to=self.broker.truncated_to,
        )


KIND = Kind(
    begin=Decisions,
    ops=dict.fromkeys(("become_follower", "make_follower", "leader_and_isr"), Decisions.decide),
)
