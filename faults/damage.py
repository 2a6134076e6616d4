"""Damaged replicas: what KIP-966 tolerates, judged per record on the ends of incarnations as they were realised.

A replica is damaged, for a committed record, after an end of its process since the commit until it is back: a member of
the persisted ISR, by a registration after that end, with a LEO beyond the record. Which ends count is one of two
things: those that were unclean (no clean-shutdown marker that carries the broker epoch is left: that is what the
controller can find out), or those that lost the record. The record is excused if at some instant min.insync.replicas of
the assigned replicas are damaged, by the smallest effective value since the commit.

What happens to replicas once a record is gone from the last log excuses nothing: it was lost by what came before. An
end before the commit counts, too, if the broker was in the persisted ISR when the record was committed, or in the one
that the leader went by: the commit rested upon it, since the leader had heard of its LEO and not of its end.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.history.ledger import End, Ledger
    from sim.protocol.batch import Batch

FOREVER_US: Final = 1 << 62


def registers_again_us(ledger: Ledger, end: End) -> int:
    """When a later process of the broker registered, `FOREVER_US` if none did."""
    registrations = ledger.registrations.get(end.broker, ())
    place = bisect_right(registrations, end.at_us)
    return registrations[place] if place < len(registrations) else FOREVER_US


class Damage:
    """Judges the committed records of one run.

    Args:
        ledger: what happened; it must have followed LEOs (`Ledger.follows_leos`).
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._isr_since = [since for since, _ in ledger.isr_history]
        losses = ("committed-loss", "exposed-loss")
        self._lost = frozenset(record for one in ledger.violations if one.kind in losses for record in one.ids)
        self._returns: dict[int, tuple[list[int], list[int]]] = {}
        """By number of an end: the LEOs that the broker reached as a member of the ISR after it, and when."""

    def excused(self, *, lossy: bool) -> frozenset[int]:
        """Ids of the committed records of which too many replicas were damaged at once.

        Args:
            lossy: whether only ends count that lost the record; else those that were unclean.
        """
        ledger = self._ledger
        ends = [(number, end) for number, end in enumerate(ledger.ends) if (end.lost if lossy else end.unclean)]
        smallest = min((size for _, size in ledger.min_isrs), default=1)
        if len({end.broker for _, end in ends}) < min([smallest, *ledger.committed_under.values()]):
            return frozenset()
        return frozenset(
            record
            for batch in ledger.committed
            if self._is_excused(batch, [one for one in ends if not lossy or batch.first_id in one[1].lost])
            for record in batch.ids()
        )

    def _is_excused(self, batch: Batch, ends: list[tuple[int, End]]) -> bool:
        ledger, first = self._ledger, batch.first_id
        committed_us = ledger.commits_deposed.get(first, ledger.commits[first])
        gone_us = max(ledger.gone.get(first, 0), ledger.dropped_us) if first in self._lost else FOREVER_US
        isr = (*self._at(committed_us), *ledger.committed_by.get(first, ()))
        spans = []
        for number, end in ends:
            if end.at_us < committed_us and end.broker not in isr:
                continue
            back_us = self._back(number, end, batch.last_offset)
            if back_us > committed_us and end.at_us <= gone_us:
                spans.append((max(end.at_us, committed_us), back_us, end.broker))
        if not spans:
            return False
        steps = (*ledger.min_isrs, *ledger.assignments)
        changes = [since for since, _ in steps if committed_us < since <= gone_us]
        return any(
            self._damaged(spans, now_us) >= self._smallest(first, committed_us, now_us)
            for now_us in (*(begin for begin, _, _ in spans), *changes)
        )

    def _damaged(self, spans: list[tuple[int, int, int]], now_us: int) -> int:
        replicas = next((held for since, held in reversed(self._ledger.assignments) if since <= now_us), None)
        damaged = {broker for begin, end, broker in spans if begin <= now_us < end}
        return len(damaged if replicas is None else damaged & set(replicas))

    def _smallest(self, first_id: int, committed_us: int, now_us: int) -> int:
        """The smallest effective min ISR from the commit until now, that of the leader that committed it included."""
        history = self._ledger.min_isrs
        at_first = next((size for since, size in reversed(history) if since <= committed_us), 1)
        later = [size for since, size in history if committed_us < since <= now_us]
        return min([at_first, *later, self._ledger.committed_under.get(first_id, at_first)])

    def _at(self, now_us: int) -> tuple[int, ...]:
        """The persisted ISR."""
        return self._ledger.isr_history[max(0, bisect_right(self._isr_since, now_us) - 1)][1]

    def _back(self, number: int, end: End, offset: int) -> int:
        """When the broker was in the ISR again with a LEO beyond an offset."""
        if number not in self._returns:
            self._returns[number] = self._after(end)
        leos, times = self._returns[number]
        place = bisect_right(leos, offset)
        return times[place] if place < len(leos) else FOREVER_US

    def _after(self, end: End) -> tuple[list[int], list[int]]:
        ledger, broker = self._ledger, end.broker
        begin_us = registers_again_us(ledger, end)
        steps = ledger.leos.get(broker, [])
        moments = sorted({begin_us, *self._isr_since, *(since for since, _ in steps)})
        leos: list[int] = []
        times: list[int] = []
        place = -1
        for now_us in moments[moments.index(begin_us) :]:
            if now_us == FOREVER_US:
                break
            while place + 1 < len(steps) and steps[place + 1][0] <= now_us:
                place += 1
            leo = steps[place][1] if place >= 0 else -1
            if leo > (leos[-1] if leos else -1) and broker in self._at(now_us):
                leos.append(leo)
                times.append(now_us)
        return leos, times
