"""The last replica standing: a leader that lost committed records comes back, and whoever has them must follow it.

That is the story which KIP-966 begins with. The ISR shrinks to one member; this one's process ends, and its log loses
records that were committed; it is chosen to lead again all the same, though another replica holds them. It is told here
by what happened, never by kinds of faults: from ISRs as persisted, logs before and after an end, and elections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.history import steps

if TYPE_CHECKING:
    from sim.history.ledger import End, Ledger
    from sim.protocol.batch import Batch
    from sim.protocol.log.log import Log


class LastStanding(steps.Listener):
    """Looks at each election.

    Args:
        ledger: what happened so far.

    Attributes:
        taken: ids of committed records that a leader lacked by its own loss, having been the last member of the ISR,
            when another replica had them. Whether they are lost in the end is not said here.
    """

    __slots__ = ("_ledger", "_logs", "taken")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._logs: dict[int, Log] = {}
        self.taken: set[int] = set()

    def on_elected(self, step: steps.Elected) -> None:
        """See `Elected`."""
        self.elected(step.broker)

    def on_epoch_raised(self, step: steps.EpochRaised) -> None:
        """See `EpochRaised`."""
        self.elected(step.broker)

    def on_recovered(self, step: steps.Recovered) -> None:
        """See `Recovered`."""
        self.loaded(step.broker, step.replica.log)

    def on_deleted(self, step: steps.Deleted) -> None:
        """See `Deleted`."""
        self.loaded(step.broker, step.replica.log)

    def loaded(self, broker: int, log: Log) -> None:
        """A broker has this log from now on."""
        self._logs[broker] = log

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._logs.clear()

    def elected(self, leader: int) -> None:
        """A leader was chosen, before the ISR that comes with it is noted; 0 for none."""
        missing = self._ledger.missing.get(leader)
        if not missing:
            return
        alone: dict[int, bool] = {}
        for first_id, ends in missing.items():
            for end in ends:
                if end.at_us not in alone:
                    alone[end.at_us] = self._was_last(end)
            batch = ends[-1].lost[first_id]
            stood_alone = any(alone[end.at_us] for end in ends)
            if stood_alone and first_id in self._ledger.commits and self._is_held(batch, leader):
                self.taken.update(batch.ids())

    def _was_last(self, end: End) -> bool:
        """Whether the broker was alone in the persisted ISR when it ended, or later on."""
        alone = (end.broker,)
        for since, isr in reversed(self._ledger.isr_history):
            if isr == alone:
                return True
            if since <= end.at_us:
                break
        return False

    def _is_held(self, batch: Batch, but_for: int) -> bool:
        lacking = self._ledger.missing
        return any(
            broker != but_for and batch.first_id not in lacking.get(broker, ()) and log.holds(batch)
            for broker, log in self._logs.items()
        )
