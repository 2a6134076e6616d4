"""Whether a partition that the rules leave without a leader waits for an operator with reason.

It does if a committed record may be on no live replica, or if as many brokers ended uncleanly as the mode tolerates at
most to lose: then only an operator can decide to go on. It does not if a live replica has everything that was committed
and fewer than ``min.insync.replicas`` brokers ended uncleanly during the run (the smallest value in effect counts).
Such a partition is unavailable without need, and the run's verdict is `no-progress`.
"""

from __future__ import annotations

from faults.promise.commitments import Commitments
from sim.history.ends import Ends
from sim.history.history import History
from sim.history.membership import Membership
from sim.plurals import counted
from sim.protocol.log.log import Log


def needless_wait(history: History, live: dict[int, Log]) -> str:
    """Why no operator should be needed; "" if the wait has a reason. `live` are the logs of assigned replicas on
    running brokers.
    """
    membership = Membership()
    ends, commitments = Ends(membership), Commitments(membership)
    history.retell([membership, ends, commitments])
    unclean = {end.broker for end in ends.ends if end.unclean}
    if len(unclean) >= min((size for _, size in commitments.min_isrs), default=1):
        return ""
    committed, records = history.commits.batches, history.records
    for broker, log in sorted(live.items()):
        if all(records.survive_in(log, batch) for batch in log.missing(committed)):
            ended = f"{counted(len(unclean), 'broker') if unclean else 'no broker'} ended uncleanly"
            return (
                f"no leader at the deadline after healing, though broker {broker} has all committed records and {ended}"
            )
    return ""
