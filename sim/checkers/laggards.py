"""Which members of the ISR lack records of their leader, and since when.

This is read from the logs, and not from what leaders know of their followers.
"""

from __future__ import annotations

from typing import Final

NEVER_US: Final = 1 << 60


class Laggards:
    """The LEOs of all replicas, and when the leader appended what some lack.

    Attributes:
        leader: the broker whose log counts; 0 before the first leader.
        since_us: when it began to lead.
    """

    __slots__ = ("_counts_us", "_ends", "_leos", "_times_us", "leader", "since_us")

    def __init__(self) -> None:
        self.leader = 0
        self.since_us = 0
        self._ends: list[int] = []
        self._times_us: list[int] = []
        self._leos: dict[int, int] = {}
        self._counts_us: dict[int, int] = {}
        """Broker -> since when it counts as a member that may lag: it joined the ISR, or its log lost records."""

    def lead(self, leader: int, leo: int, now_us: int) -> None:
        """A leader begins with a log."""
        self.leader, self.since_us = leader, now_us
        self._ends, self._times_us = [leo], [now_us]

    def append(self, broker: int, end: int, now_us: int) -> None:
        """A log grows."""
        self._leos[broker] = end
        if broker == self.leader:
            self._ends.append(end)
            self._times_us.append(now_us)

    def replace(self, broker: int, leo: int, now_us: int) -> None:
        """A log was loaded, truncated or deleted."""
        if leo < self._leos.get(broker, 0):
            self._counts_us[broker] = now_us
        self._leos[broker] = leo

    def join(self, broker: int, now_us: int) -> None:
        """A replica joins the ISR."""
        self._counts_us[broker] = now_us

    def lacks_since_us(self, broker: int) -> int:
        """Since when a member of the ISR lacks a record that the leader has appended; `NEVER_US`: it lacks none."""
        leo = self._leos.get(broker, 0)
        found_us = NEVER_US
        for place in range(len(self._ends) - 1, -1, -1):
            if self._ends[place] <= leo:
                break
            found_us = self._times_us[place]
        return found_us if found_us == NEVER_US else max(found_us, self._counts_us.get(broker, 0))
