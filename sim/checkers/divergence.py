"""Divergence: two replicas that follow the same leader epoch disagree below both their high watermarks.

Verifies, whenever an HW moves or a truncation completes: for each two live replicas that completed truncation in the
current leader epoch, every offset in [max log start, min(HW, HW)) holds the same (record id, batch epoch) in both, and
neither lacks it. Compares only offsets that were not compared before. The final check covers all live replicas.

Does not verify: tails above the HW, which may differ until the next fetch; replicas of older epochs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import ClassVar

from sim.checkers.checker import NEVER_DIVERGES, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.protocol.replica.replica import Replica


def record_at(replica: Replica, offset: int) -> tuple[int, int] | None:
    """(record id, leader epoch) at an offset of a replica's log, None in a hole."""
    batch = replica.log.batch_at(offset)
    if batch is None:
        return None
    return batch.first_id + offset - batch.base_offset, batch.leader_epoch


def first_difference(one: Replica, other: Replica, start: int, end: int) -> int | None:
    """The first offset in [start, end) at which two logs differ, None when they agree."""
    ones, others = one.log.batches, other.log.batches
    if ones and others:
        # Mostly the same objects: seen at the last one, or by comparing what lies there without a look at each offset.
        if ones[-1] is others[-1] and ones[-1].base_offset <= start:
            return None
        lasts = one.log.lasts
        place = bisect_left(lasts, start)
        if place < len(ones) and ones[place].base_offset <= start:
            stop = bisect_left(lasts, end - 1, place)
            if stop < len(ones) and ones[place : stop + 1] == others[place : stop + 1]:
                return None
    offset = max(start, one.log.log_start, other.log.log_start)
    while offset < end:
        batch = one.log.batch_at(offset)
        if batch is not None and batch is other.log.batch_at(offset):
            offset = batch.last_offset + 1
        elif record_at(one, offset) == record_at(other, offset):
            offset += 1
        else:
            return offset
    return None


class Divergence(Checker):
    """Compares replicas as they move.

    Args:
        history: where violations go.
    """

    __slots__ = ("_checked", "_epoch", "_replicas", "_reported", "_settled")

    FINDINGS: ClassVar = (Finding("divergence", NEVER_DIVERGES),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._replicas: dict[int, Replica] = {}
        self._settled: dict[int, int] = {}
        self._checked: dict[tuple[int, int], int] = {}
        self._reported: set[tuple[int, int]] = set()
        self._epoch = -1

    def on_hw(self, step: steps.HighWatermark) -> None:
        """See `HighWatermark`."""
        self.compare(step.broker, step.at_us)

    def on_lead(self, step: steps.Lead) -> None:
        """See `Lead`."""
        self.settled(step.broker, step.epoch, step.at_us)

    def on_follow(self, step: steps.Follow) -> None:
        """See `Follow`."""
        if step.restarts:
            self.unsettled(step.broker)

    def on_settled(self, step: steps.Settled) -> None:
        """See `Settled`."""
        self.settled(step.broker, step.epoch, step.at_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        """See `Truncate`."""
        self.truncated(step.broker, step.offset)

    def on_recovered(self, step: steps.Recovered) -> None:
        """See `Recovered`."""
        self.loaded(step.broker, step.replica)

    def on_deleted(self, step: steps.Deleted) -> None:
        """See `Deleted`."""
        self.ended(step.broker)
        self.loaded(step.broker, step.replica)

    def on_end(self, step: steps.End) -> None:
        """See `End`."""
        if not step.was_down:
            self.ended(step.broker)

    def final(self, end: RunEnd) -> None:
        """See `Checker.final`."""
        self.compare_all(end.live, end.now_us)

    def loaded(self, broker: int, replica: Replica) -> None:
        """A process loaded its log; what was compared of it before may have been lost."""
        self._replicas[broker] = replica
        self.truncated(broker, 0)

    def ended(self, broker: int) -> None:
        """A process is gone."""
        self._replicas.pop(broker, None)
        self._settled.pop(broker, None)

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self._replicas.clear()

    def settled(self, broker: int, epoch: int, now_us: int) -> None:
        """A replica leads in an epoch, or completed its truncation for it."""
        self._settled[broker] = epoch
        self._epoch = max(self._epoch, epoch)
        self.compare(broker, now_us)

    def unsettled(self, broker: int) -> None:
        """A replica has yet to truncate."""
        self._settled.pop(broker, None)

    def truncated(self, broker: int, leo: int) -> None:
        """What a replica appends from here on has not been compared."""
        for pair, checked in self._checked.items():
            if checked > leo and broker in pair:
                self._checked[pair] = leo

    def compare(self, broker: int, now_us: int) -> None:
        """Compare one replica with all others of the current epoch, up to the lower HW of each two."""
        settled = self._settled
        current = self._epoch
        if settled.get(broker) != current:
            return
        replicas = self._replicas
        replica = replicas[broker]
        hw = replica.hw
        checked = self._checked
        for other, epoch in settled.items():
            if other == broker or epoch != current:
                continue
            pair = (broker, other) if broker < other else (other, broker)
            start = checked.get(pair, 0)
            peer = replicas[other]
            end = hw if hw < peer.hw else peer.hw
            if end > start:
                checked[pair] = end
                offset = first_difference(replica, peer, start, end)
                if offset is not None:
                    self._report(pair, offset, now_us)

    def compare_all(self, replicas: Mapping[int, Replica], now_us: int) -> None:
        """Compare all live replicas, whatever epoch they follow."""
        brokers = sorted(replicas)
        for position, broker in enumerate(brokers):
            for other in brokers[position + 1 :]:
                one, two = replicas[broker], replicas[other]
                offset = first_difference(one, two, 0, min(one.hw, two.hw))
                if offset is not None:
                    self._report((broker, other), offset, now_us)

    def _report(self, pair: tuple[int, int], offset: int, now_us: int) -> None:
        if pair in self._reported:
            return
        self._reported.add(pair)
        ones = [None if broker not in self._replicas else record_at(self._replicas[broker], offset) for broker in pair]
        said = " and ".join(
            f"broker {broker} has " + ("nothing" if one is None else f"record {one[0]} of epoch {one[1]}")
            for broker, one in zip(pair, ones, strict=True)
        )
        ids = frozenset(one[0] for one in ones if one is not None)
        self._violates("divergence", now_us, f"at offset {offset} {said}", ids)
