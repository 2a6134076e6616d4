"""Whether a partition that the rules leave without a leader waits for an operator with reason.

It does only where a committed record can be missing in every live replica: then an operator has to decide to go on. It
does not if a live replica has all that was committed, or nothing ever was, and fewer than ``min.insync.replicas``
brokers ended uncleanly while they were in ISR or ELR, by the value at the time of each end. An end of a broker that was
in neither does not count: no commit relied on it. Such a partition is unavailable without need, and the run's verdict
is `no-progress`.
"""

from __future__ import annotations

from bisect import bisect_right

from faults.promise.commitments import Commitments
from sim.history.ends import Ends
from sim.history.history import History
from sim.history.membership import Membership
from sim.plurals import counted
from sim.protocol.log.log import Log


def complete_replica(history: History, live: dict[int, Log]) -> int:
    """A broker with a replica that has all that was committed, 0 if none. `live` are the logs of assigned replicas on
    running brokers.
    """
    committed, records = history.commits.batches, history.records
    for broker, log in sorted(live.items()):
        if all(records.survive_in(log, batch) for batch in log.missing(committed)):
            return broker
    return 0


def needless_wait(history: History, live: dict[int, Log]) -> str:
    """Why no operator should be needed; "" if the wait has a reason. For `live` see `complete_replica`."""
    membership = Membership()
    ends, commitments = Ends(membership), Commitments(membership)
    history.retell([membership, ends, commitments])
    min_isrs, elrs = commitments.min_isrs, membership.elr_history
    unclean: set[int] = set()
    for end in ends.ends:
        place = bisect_right(elrs, end.at_us, key=lambda one: one[0])
        eligible = place > 0 and end.broker in elrs[place - 1][1]
        if end.unclean and (end.in_isr or eligible):
            unclean.add(end.broker)
            place = bisect_right(min_isrs, end.at_us, key=lambda one: one[0])
            if len(unclean) >= (min_isrs[place - 1][1] if place else 1):
                return ""
    broker = complete_replica(history, live)
    if not broker:
        return ""
    ended = f"{counted(len(unclean), 'broker') if unclean else 'no broker'} of ISR and ELR ended uncleanly"
    return f"no leader at the deadline after healing, though broker {broker} has all committed records and {ended}"
