"""Driver of kind ``follower_append``: fetched batches meet a follower's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.verification.conformance.conversation import make_replica
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.world import RecordingHost, batches_of, entries_of, make_log, shown

if TYPE_CHECKING:
    from sim.protocol.replica.replica import Replica
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields


def _begin(given: Fields, rules: Rules) -> Replica:
    follower = given["follower"]
    batches = batches_of(follower["log"])
    replica = make_replica("0", batches, rules, RecordingHost(), entries=entries_of(batches))
    replica.log = make_log(batches, start=follower.get("log_start"), leo=follower.get("leo"))
    return replica


def _append(replica: Replica, op: Fields) -> None:
    replica.append_fetched(*batches_of([op["batch"]]))


def _observe(replica: Replica) -> Seen:
    log = replica.log
    return Seen(leo=log.leo, log_start=log.log_start, log=shown(log.batches), epoch_entries=replica.epochs.entries)


KIND = Kind(begin=_begin, ops={"append_batch": _append}, observe=_observe)
