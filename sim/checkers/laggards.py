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

    __slots__ = ("_calm_us", "_counts_us", "_ends", "_leos", "_times_us", "leader", "since_us")

    def __init__(self) -> None:
        self.leader = 0
        self.since_us = 0
        self._ends: list[int] = []
        self._times_us: list[int] = []
        self._calm_us: list[int] = []
        self._leos: dict[int, int] = {}
        self._counts_us: dict[int, int] = {}
        """Broker -> since when it counts as a member that may lag: it joined the ISR, or its log lost records."""

    def lead(self, leader: int, leo: int, now_us: int) -> None:
        """A leader begins with a log."""
        self.leader, self.since_us = leader, now_us
        self._ends, self._times_us, self._calm_us = [leo], [now_us], [now_us]

    def append(self, broker: int, end: int, now_us: int, calm_us: int) -> None:
        """A log grows; `calm_us` is when something was last in the way of fetches."""
        self._leos[broker] = end
        if broker == self.leader:
            self._ends.append(end)
            self._times_us.append(now_us)
            self._calm_us.append(calm_us)

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
        place = self._place_lacked(broker)
        if place == len(self._ends):
            return NEVER_US
        return max(self._times_us[place], self._counts_us.get(broker, 0))

    def calm_before_us(self, broker: int) -> int:
        """For how long nothing had been in the way when the leader appended the first record that a member lacks, or -1
        if it lacks none, or has lost records or joined since.
        """
        place = self._place_lacked(broker)
        if place == len(self._ends) or self._times_us[place] < self._counts_us.get(broker, 0):
            return -1
        return self._times_us[place] - max(self._calm_us[place], self.since_us, self._counts_us.get(broker, 0))

    def _place_lacked(self, broker: int) -> int:
        """Place of the first end that a log has not reached."""
        leo, place = self._leos.get(broker, 0), len(self._ends)
        while place and self._ends[place - 1] > leo:
            place -= 1
        return place
