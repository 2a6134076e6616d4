"""Damaged replicas, which KIP-966 tolerates to some number, judged per record on the realised ends of incarnations.

For a committed record, a replica is damaged from an end of its process after the commit until it is back: a member of
the persisted ISR, by a registration after that end, with a LEO beyond the record. Either unclean ends count (without a
clean-shutdown marker with the broker epoch, which the controller can detect), or ends that lost the record. The record
is excused if at some instant min.insync.replicas of the assigned replicas are damaged, where min.insync.replicas is its
smallest effective value since the commit.

Once the last log has lost the record, later ends excuse nothing; a log in a failed log directory that is never repaired
has not lost it. An end before the commit counts, too, if the broker was in the persisted ISR or in the leader's ISR at
the commit: the commit relied on it, because the leader knew its LEO but not its end. An end before the record was
appended does not count. If a batch was appended twice, each copy is judged from its own commit on, by its own offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Final

from faults.promise.commitments import Commitments
from sim.history import steps
from sim.history.ends import Ends, IncarnationEnd
from sim.history.history import History
from sim.history.membership import Membership
from sim.protocol.batch import Batch

FOREVER_US: Final = 1 << 62


def registers_again_us(membership: Membership, end: IncarnationEnd) -> int:
    """The time at which a later process of the broker registered; `FOREVER_US` if none did."""
    registrations = membership.registrations.get(end.broker, ())
    place = bisect_right(registrations, end.at_us)
    return registrations[place] if place < len(registrations) else FOREVER_US


class _Logs(steps.Listener):
    """LEOs of logs, and when logs lost batches.

    Attributes:
        leos: broker -> (time, LEO); -1 from the end of a process until the next one has loaded its log.
        made_us: batch -> time of its first append.
        gone_us: first id -> the last time at which a log lost that batch, by an end or a truncation.
        dropped_us: the last time at which a replica was deleted.
        assignments: (time, replicas) of each change.
        offline: brokers whose log is in a failed log directory.
    """

    def __init__(self) -> None:
        self.leos: dict[int, list[tuple[int, int]]] = {}
        self.made_us: dict[Batch, int] = {}
        self.gone_us: dict[int, int] = {}
        self.dropped_us = 0
        self.assignments: list[tuple[int, tuple[int, ...]]] = []
        self.offline: dict[int, None] = {}
        self._held: dict[int, set[int]] = {}

    def holds_offline(self, first: int) -> bool:
        """Whether a log that is in a failed log directory at the end has the batch with this first id."""
        return any(first in self._held.get(broker, ()) for broker in self.offline)

    def on_append(self, step: steps.Append) -> None:
        self.made_us.setdefault(step.batch, step.at_us)
        self._held.setdefault(step.broker, set()).add(step.batch.first_id)
        self._note_leo(step, step.batch.last_offset + 1)

    def on_truncate(self, step: steps.Truncate) -> None:
        self._note_leo(step, step.offset)
        self._note_lost(step, step.removed)

    def on_recovered(self, step: steps.Recovered) -> None:
        self._note_leo(step, step.leo)
        self.offline.pop(step.broker, None)

    def on_deleted(self, step: steps.Deleted) -> None:
        self._note_leo(step, step.leo)
        self._held.pop(step.broker, None)
        self.dropped_us = step.at_us

    def on_end(self, step: steps.End) -> None:
        if not step.was_down:
            self._note_leo(step, -1)
        if step.kind is steps.DIRECTORY_FAILED:
            self.offline[step.broker] = None
        self._note_lost(step, step.lost)

    def on_assigned(self, step: steps.Assigned) -> None:
        replicas, _ = step.before
        if step.replicas != replicas:
            self.assignments.append((step.at_us, step.replicas))

    def _note_leo(self, step: steps.Step, leo: int) -> None:
        self.leos.setdefault(step.broker, []).append((step.at_us, leo))

    def _note_lost(self, step: steps.Step, batches: list[Batch]) -> None:
        held = self._held.get(step.broker)
        for batch in batches:
            self.gone_us[batch.first_id] = step.at_us
            if held is not None:
                held.discard(batch.first_id)


class _IsrLeos:
    """The LEO of a broker from each moment on; -1 outside the persisted ISR."""

    __slots__ = ("_moments", "_size", "_tree")

    def __init__(self, moments: list[int], leos: list[int]) -> None:
        self._moments = moments
        self._size = 1
        while self._size <= len(moments):
            self._size *= 2
        # A tree of maxima: the children of node n are 2 n and 2 n + 1, and node 1 is the root.
        self._tree = [-1] * self._size + leos + [-1] * (self._size - len(leos))
        for node in range(self._size - 1, 0, -1):
            self._tree[node] = max(self._tree[2 * node], self._tree[2 * node + 1])

    def first(self, begin_us: int, offset: int) -> int:
        """The first time, not before `begin_us`, at which the LEO was beyond an offset; `FOREVER_US` if none."""
        tree, size = self._tree, self._size
        place = bisect_right(self._moments, begin_us)
        if place and tree[size + place - 1] > offset:
            return begin_us
        node = size + place
        while tree[node] <= offset:
            while node % 2:
                node //= 2
            if not node:
                return FOREVER_US
            node += 1
        while node < size:
            node *= 2
            if tree[node] <= offset:
                node += 1
        return self._moments[node - size]


def _are_fewer(ends: list[IncarnationEnd], brokers: int) -> bool:
    """Whether these are ends of fewer brokers."""
    return len(ends) < brokers or len({end.broker for end in ends}) < brokers


class Damage:
    """Judges the committed records of one run."""

    def __init__(self, history: History, membership: Membership, ends: Ends, commitments: Commitments) -> None:
        self._history = history
        self._membership = membership
        self._ends = ends.ends
        self._commitments = commitments
        self._logs: _Logs | None = None
        self._isr_since = [since for since, _ in membership.isr_history]
        losses = ("committed-loss", "exposed-loss")
        violations = history.findings.violations
        self._lost = frozenset(
            record for violation in violations if violation.kind in losses for record in violation.ids
        )
        self._isr_leos: dict[int, _IsrLeos] = {}

    def excused(self, *, lossy: bool) -> frozenset[int]:
        """Ids of the committed records with too many replicas damaged at one instant, by lossy or by unclean ends."""
        commitments = self._commitments
        ends = [end for end in self._ends if (end.lost if lossy else end.unclean)]
        if not ends:
            return frozenset()
        smallest = min([size for _, size in commitments.min_isrs], default=1)
        fewest = min([smallest, *commitments.min_isr.values()])
        excused: set[int] = set()
        if _are_fewer(ends, fewest):
            return frozenset()
        for batch in self._history.commits.batches:
            own = [end for end in ends if batch.first_id in end.lost] if lossy else ends
            if not _are_fewer(own, fewest) and self._is_excused(batch, own, fewest):
                excused.update(batch.ids())
        return frozenset(excused)

    def _is_excused(self, batch: Batch, ends: list[IncarnationEnd], fewest: int) -> bool:
        commitments, first = self._commitments, batch.first_id
        committed_us = commitments.copies[batch]
        if ends[0].at_us < committed_us:
            isr = (*self._isr_at(committed_us), *commitments.isr.get(batch, ()))
            ends = [end for end in ends if end.at_us >= committed_us or end.broker in isr]
            if _are_fewer(ends, fewest):
                return False
        if self._logs is None:
            self._logs = _Logs()
            self._history.retell([self._logs])
        logs = self._logs
        is_gone = first in self._lost and not logs.holds_offline(first)
        gone_us = max(logs.gone_us.get(first, 0), logs.dropped_us) if is_gone else FOREVER_US
        made_us = logs.made_us.get(batch, 0)
        ends = [end for end in ends if made_us <= end.at_us <= gone_us]
        if _are_fewer(ends, fewest):
            return False
        spans = []
        for end in ends:
            back_us = self._back_us(end, logs, batch.last_offset)
            if back_us > committed_us:
                spans.append((max(end.at_us, committed_us), back_us, end.broker))
        if not spans:
            return False
        all_changes = (*commitments.min_isrs, *logs.assignments)
        changes = [since for since, _ in all_changes if committed_us < since <= gone_us]
        for now_us in (*[begin for begin, _, _ in spans], *changes):
            if self._count_damaged(spans, logs, now_us) >= self._smallest_min_isr(batch, committed_us, now_us):
                return True
        return False

    def _count_damaged(self, spans: list[tuple[int, int, int]], logs: _Logs, now_us: int) -> int:
        replicas = next((held for since, held in reversed(logs.assignments) if since <= now_us), None)
        damaged = {broker for begin, end, broker in spans if begin <= now_us < end}
        return len(damaged if replicas is None else damaged & set(replicas))

    def _smallest_min_isr(self, batch: Batch, committed_us: int, now_us: int) -> int:
        """The smallest effective min ISR from the commit until now, including that of the committing leader."""
        history = self._commitments.min_isrs
        at_first = next((size for since, size in reversed(history) if since <= committed_us), 1)
        later = [size for since, size in history if committed_us < since <= now_us]
        return min([at_first, *later, self._commitments.min_isr.get(batch, at_first)])

    def _isr_at(self, now_us: int) -> tuple[int, ...]:
        """The persisted ISR at a time."""
        return self._membership.isr_history[max(0, bisect_right(self._isr_since, now_us) - 1)][1]

    def _back_us(self, end: IncarnationEnd, logs: _Logs, offset: int) -> int:
        """The time at which the broker was in the ISR again with a LEO beyond an offset."""
        begin_us = registers_again_us(self._membership, end)
        if begin_us == FOREVER_US:
            return FOREVER_US
        if end.broker not in self._isr_leos:
            self._isr_leos[end.broker] = self._isr_leos_of(end.broker, logs.leos.get(end.broker, []))
        return self._isr_leos[end.broker].first(begin_us, offset)

    def _isr_leos_of(self, broker: int, leos: list[tuple[int, int]]) -> _IsrLeos:
        turns = {
            since
            for (_, before), (since, isr) in pairwise([(0, ()), *self._membership.isr_history])
            if (broker in before) != (broker in isr)
        }
        moments = sorted(turns.union(since for since, _ in leos))
        reached: list[int] = []
        history = self._membership.isr_history
        place = turn = 0
        for now_us in moments:
            while place < len(leos) and leos[place][0] <= now_us:
                place += 1
            while turn + 1 < len(history) and history[turn + 1][0] <= now_us:
                turn += 1
            reached.append(leos[place - 1][1] if place and broker in history[turn][1] else -1)
        return _IsrLeos(moments, reached)
