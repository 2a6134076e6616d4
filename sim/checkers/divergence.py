"""Divergence: two replicas that follow the same leader epoch disagree below both their high watermarks.

Verifies, whenever an HW moves or a truncation completes: any two live replicas that completed truncation in the current
leader epoch have the same (record id, batch epoch) at every offset in [max log start, min(HW, HW)), and neither lacks
one. Only offsets not compared before are compared. The final check covers all live replicas, if there is a leader.

Does not verify: tails above the HW, which may differ until the next fetch; replicas of older epochs; those of a
partition that ends without a leader, of which one may not have reached the last leader, and truncates when it follows
the next one.
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.checker import NEVER_DIVERGES, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.history import History
from sim.kernel.build import COMPILED
from sim.protocol.log.log import place_of
from sim.protocol.replica.replica import Replica


def record_at(replica: Replica, offset: int) -> tuple[int, int] | None:
    """(record id, leader epoch) at an offset of a replica's log, None in a hole."""
    batch = replica.log.batch_at(offset)
    if batch is None:
        return None
    return batch.first_id + offset - batch.base_offset, batch.leader_epoch


def first_difference(one: Replica, other: Replica, start: int, end: int) -> int | None:
    """The first offset in [start, end) at which two logs differ, None if they agree."""
    # Logs mostly hold the same few batch objects: compare batches backwards from the end of the range, without
    # comparing each offset.
    log, peer = one.log, other.log
    start = max(start, max(log.log_start, peer.log_start))  # Compiled code calls no function for a max of two.
    ones, others, lasts = log.batches, peer.batches, log.lasts
    place, last = len(lasts) - 1, end - 1
    if place >= 0 and lasts[place] >= last:
        if COMPILED:
            while place and lasts[place - 1] >= last:
                place -= 1
        else:
            place = place_of(lasts, last)
        if place < len(others):
            while ones[place] is others[place]:
                if ones[place].base_offset <= start:
                    return None
                if not place:
                    break
                place -= 1
    offset = start
    while offset < end:
        batch = one.log.batch_at(offset)
        if batch is not None and batch is other.log.batch_at(offset):
            offset = batch.last_offset + 1
        elif record_at(one, offset) == record_at(other, offset):
            offset += 1
        else:
            return offset
    return None


class _Settled:
    """A live replica that leads in an epoch or completed its truncation for it."""

    __slots__ = ("broker", "epoch", "replica")

    def __init__(self, broker: int, replica: Replica, epoch: int) -> None:
        self.broker = broker
        self.replica = replica
        self.epoch = epoch


class Divergence(Checker):
    """Compares replicas as their HWs move."""

    FINDINGS: ClassVar = (Finding("divergence", NEVER_DIVERGES),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._replicas: dict[int, Replica] = {}
        self._settled: dict[int, _Settled] = {}
        self._checked: dict[int, dict[int, int]] = {}
        """Broker -> broker with a greater id -> offset up to which their replicas were compared."""
        self._reported: set[tuple[int, int]] = set()
        self._epoch = -1

    def on_hw(self, step: steps.HighWatermark) -> None:
        self.compare(step.broker, step.at_us)

    def on_lead(self, step: steps.Lead) -> None:
        self.settled(step.broker, step.epoch, step.at_us)

    def on_follow(self, step: steps.Follow) -> None:
        if step.restarts:
            self._settled.pop(step.broker, None)

    def on_settled(self, step: steps.Settled) -> None:
        self.settled(step.broker, step.epoch, step.at_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        self.truncated(step.broker, step.offset)

    def on_recovered(self, step: steps.Recovered) -> None:
        self.loaded(step.broker, step.replica)

    def on_deleted(self, step: steps.Deleted) -> None:
        self.ended(step.broker)
        self.loaded(step.broker, step.replica)

    def on_end(self, step: steps.End) -> None:
        if not step.was_down:
            self.ended(step.broker)

    def final(self, end: RunEnd) -> None:
        if end.leader is None:
            return
        # All live replicas, of any epoch.
        brokers = sorted(end.live)
        for position, broker in enumerate(brokers):
            for other in brokers[position + 1 :]:
                one, two = end.live[broker], end.live[other]
                offset = first_difference(one, two, 0, min(one.hw, two.hw))
                if offset is not None:
                    self._report((broker, other), offset, end.now_us)

    def loaded(self, broker: int, replica: Replica) -> None:
        """A process loaded its log, which may have lost compared records."""
        self._replicas[broker] = replica
        known = self._settled.get(broker)
        if known is not None:
            known.replica = replica
        self.truncated(broker, 0)

    def ended(self, broker: int) -> None:
        """A process ended."""
        self._replicas.pop(broker, None)
        self._settled.pop(broker, None)

    def dispose(self) -> None:
        self._replicas.clear()
        self._settled.clear()

    def settled(self, broker: int, epoch: int, now_us: int) -> None:
        """A replica leads in an epoch, or completed its truncation for it."""
        known = self._settled.get(broker)
        if known is None:
            self._settled[broker] = _Settled(broker, self._replicas[broker], epoch)
        else:
            known.epoch = epoch
        self._epoch = max(self._epoch, epoch)
        self.compare(broker, now_us)

    def truncated(self, broker: int, leo: int) -> None:
        """A replica truncated: records from here on have to be compared again."""
        for one, checked in self._checked.items():
            for other, end in checked.items():
                if end > leo and broker in (one, other):
                    checked[other] = leo

    def compare(self, broker: int, now_us: int) -> None:
        """Compare one replica with all others of the current epoch, each pair up to the lower HW."""
        known = self._settled.get(broker)
        current = self._epoch
        if known is None or known.epoch != current:
            return
        replica = known.replica
        hw = replica.hw
        if hw == 0:
            return
        for peer in self._settled.values():
            if peer is known or peer.epoch != current:
                continue
            one, other = (broker, peer.broker) if broker < peer.broker else (peer.broker, broker)
            checked = self._checked.get(one)
            if checked is None:
                checked = self._checked[one] = {}
            start = checked.get(other, 0)
            end = peer.replica.hw
            if hw < end:
                end = hw
            if end > start:
                self.decided = True
                checked[other] = end
                offset = first_difference(replica, peer.replica, start, end)
                if offset is not None:
                    self._report((one, other), offset, now_us)

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
