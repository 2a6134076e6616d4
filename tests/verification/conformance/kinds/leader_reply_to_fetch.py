"""Driver of kind ``leader_reply_to_fetch``: a leader's response to the epoch of a follower's last record.

The followers' side of it is in kinds ``conversation`` and ``truncation_decision``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.messages import DIVERGING_EPOCH, NO_BROKER_EPOCH, LeaderAndIsr
from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.world import (
    FOLLOWER,
    LEADER,
    batches_of,
    entries_of,
    epoch_of,
    make_cache,
    make_log,
    make_partition,
)

if TYPE_CHECKING:
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

BROKERS = (LEADER, FOLLOWER)
NOW_US = 1


def says_divergence(answer: tuple[int, int] | None) -> Matching:
    """The divergence in a table: epoch and end offset, or only whether there is one."""
    return Matching(
        answer,
        lambda expected: (
            expected == (answer is not None)
            if isinstance(expected, bool)
            else expected == (list(answer) if answer else None)
        ),
    )


class LeaderOfOne:
    """The state of a case: a leader, and what it knows of its one follower."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        leader = given.part("leader") if "leader" in given else given
        if leader.get("role", "leader") != "leader":
            raise TableError(f"a broker that is {leader['role']!r} is not understood")
        batches = batches_of(leader["log"])
        start = leader.get("log_start", 0)
        entries = leader.like("epoch_cache")
        cache = make_cache(entries_of(batches) if entries is None else entries)
        cache.truncate_from_start(start)
        log = make_log([batch for batch in batches if batch.last_offset >= start], start=start, leo=leader.get("leo"))
        self.partition: Partition = make_partition(log, cache, rules)
        self.partition.become_leader(LeaderAndIsr("0", LEADER, leader["leader_epoch"], BROKERS, 0, BROKERS), NOW_US)

    def fetch(self, op: Fields) -> Seen:
        """Send a follower's fetch; the leader updates the follower's state unless it refuses the fetch."""
        partition, offset = self.partition, op["fetch_offset"]
        last_epoch = epoch_of(op.get("last_fetched_epoch"))
        current = epoch_of(op.get("current_leader_epoch"))
        error = partition.check_fetch(offset, current, last_epoch)
        diverging = None
        if error == DIVERGING_EPOCH:
            error, diverging = "", partition.diverging(last_epoch)
        elif not error:
            partition.follower_fetched(FOLLOWER, NO_BROKER_EPOCH, offset, current, NOW_US)
        batches = [] if error or diverging else partition.read_uncommitted(offset)
        return Seen(
            error=error or "NONE",
            diverging=says_divergence(diverging),
            records=sum(batch.count for batch in batches),
            recorded_follower_leo=partition.followers.states[FOLLOWER].leo,
            hw=partition.hw,
        )


KIND = Kind(begin=LeaderOfOne, ops={"follower_fetch": LeaderOfOne.fetch})
