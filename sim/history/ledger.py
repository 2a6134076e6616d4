"""What happened in a run, as far as verdicts and promises depend on it.

Steps add to it; checkers and `faults.promise` read it. Times are simulated microseconds. Records are named by
their ids; a batch by the id of its first record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from sim.history import steps
from sim.history.steps import Exposed
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log

_TOLD: Final = (steps.OUT_OF_RANGE, steps.RESET, steps.SEEK, steps.TRUNCATION_DETECTED)
"""After these a consumer's application knows that it goes elsewhere."""
_REWOUND: Final = (steps.REWIND, steps.RESTART_CONSUMER)


@dataclass(slots=True)
class Violation:
    """A broken guarantee, or an early warning of one.

    Attributes:
        kind: ``committed-loss``, ``divergence``, ...
        at_us: when it was seen.
        detail: one sentence with offsets, epochs and brokers.
        ids: the records concerned (empty where the kind is not about records).
        inside: whether the mode's promise covers it; decided later.
    """

    kind: str
    at_us: int
    detail: str
    ids: AbstractSet[int] = frozenset()
    inside: bool = True


class Ack:
    """Success that a producer received for a batch; `acks` -1 is all."""

    __slots__ = ("acks", "at_us", "base_offset", "count", "first_id")

    def __init__(self, first_id: int, count: int, base_offset: int, acks: int, at_us: int) -> None:
        self.first_id = first_id
        self.count = count
        self.base_offset = base_offset
        self.acks = acks
        self.at_us = at_us


class Shown:
    """Records of a batch, from an offset on, that a consumer's application received."""

    __slots__ = ("at_us", "batch", "consumer", "from_offset")

    def __init__(self, batch: Batch, from_offset: int, at_us: int, consumer: int = 0) -> None:
        self.batch = batch
        self.from_offset = from_offset
        self.at_us = at_us
        self.consumer = consumer


@dataclass(slots=True)
class End:
    """How an incarnation ended.

    Attributes:
        broker: its id.
        at_us: when.
        kind: ``kill``, ``power-loss``, ``disk-replaced``, ``corrupt-tail``, ``shutdown``, ``exit`` or
            ``halt``.
        lost: first ids of the batches that its log held then and lacks after recovery. A record that was appended
            twice is lost with either copy.
        in_isr: whether the persisted ISR held it then.
        unclean: whether no clean-shutdown marker that carries its broker epoch is left.
        regained: first id -> when the broker had that batch again.
        forgotten_us: when its session ended, which may be later; None as long as it is open.
    """

    broker: int
    at_us: int
    kind: str
    lost: dict[int, Batch]
    in_isr: bool
    unclean: bool = True
    regained: dict[int, int] = field(default_factory=dict)
    forgotten_us: int | None = None


class LossCount:
    """What became of acknowledged records: `lost`, `acks1_lost`, `relocated`."""

    __slots__ = ("acks1_lost", "lost", "relocated")

    def __init__(self) -> None:
        self.lost = 0
        self.acks1_lost = 0
        self.relocated = 0


class Ledger(steps.Listener):
    """Facts of one run.

    Attributes:
        acks: successes in order of arrival.
        shown: what consumers were shown.
        passed: consumer -> ranges of offsets that its position went over, ascending, since its application was last
            told that it goes elsewhere.
        shown_when_told: consumer -> how long `shown` was then.
        exposed: what reads and ListOffsets answers have exposed.
        commits: first id -> when a leader's HW first passed the batch.
        deposed: broker -> when its session ended while it led, or another leader, or none, was chosen in its place;
            not while it is the chosen one and has a session.
        commits_deposed: first id -> of batches in `commits` that a deposed leader's HW passed, when it was deposed.
        committed: batches in the order in which leaders' HWs passed them.
        made: all batches, in the order in which leaders made them.
        deleted: ids of the records that a leader's retention deleted.
        isr_history: (time, persisted ISR), beginning with the assignment.
        ends: ends of incarnations.
        up: broker -> when its process ran with an open session: [(opened, ended or None)].
        registrations: broker -> when its processes registered, while they ran.
        elr: eligible leader replicas, as persisted.
        elr_was_off: whether the feature was off at some time, though the release has it.
        follows_leos: whether `leos` is kept.
        leos: broker -> (time, its LEO), -1 from the end of a process until the next one has loaded its log.
        min_isrs: (time, effective ``min.insync.replicas``), as the control plane has it.
        committed_under: first id -> the leader's own value, of batches that were committed under a smaller one.
        committed_by: first id -> the ISR that the leader went by, of batches that were committed while another was
            persisted.
        gone: first id -> when a log lost that batch last, by an end or a truncation, where LEOs are followed.
        dropped_us: when a replica was deleted last.
        assignments: (time, replicas), where a control plane tells of changes.
        violations: found so far.
        warnings: early warnings so far.
        missing: broker -> first id -> ends that lost that batch, until the broker has it again.
        unclean_election: whether unclean election was switched on during the run, or a replica was elected that must
            be taken to lack records, because somebody preferred that to waiting.
        synced_lost: whether batches became unreadable although they had been fsynced.
        under_min_isr: records for which acks=all succeeded under an ISR that was too small.
        stale_reads: ListOffsets answers of an older epoch below what was exposed.
        losses: what became of acknowledged records, once the run has ended.
    """

    def __init__(self) -> None:
        self.acks: list[Ack] = []
        self.shown: list[Shown] = []
        self.passed: dict[int, list[tuple[int, int]]] = {}
        self.shown_when_told: dict[int, int] = {}
        self.exposed: Exposed | None = None
        self.commits: dict[int, int] = {}
        self.deposed: dict[int, int] = {}
        self.commits_deposed: dict[int, int] = {}
        self.committed: list[Batch] = []
        self.made: list[Batch] = []
        self.deleted: set[int] = set()
        self.isr_history: list[tuple[int, tuple[int, ...]]] = []
        self.ends: list[End] = []
        self.up: dict[int, list[tuple[int, int | None]]] = {}
        self.registrations: dict[int, list[int]] = {}
        self.elr: tuple[int, ...] = ()
        self.elr_was_off = False
        self.follows_leos = False
        self.leos: dict[int, list[tuple[int, int]]] = {}
        self.gone: dict[int, int] = {}
        self.dropped_us = 0
        self.min_isrs: list[tuple[int, int]] = []
        self.committed_under: dict[int, int] = {}
        self.committed_by: dict[int, tuple[int, ...]] = {}
        self.assignments: list[tuple[int, tuple[int, ...]]] = []
        self.violations: list[Violation] = []
        self.unclean_election = False
        self.warnings: list[Violation] = []
        self.synced_lost = False
        self.stale_reads = 0
        self.losses = LossCount()
        self._leader = 0
        self.under_min_isr: set[int] = set()
        self._committed: set[Batch] = set()
        self._copies: dict[int, list[Batch]] = {}
        """First id -> the batches made of it: one, and another each time it was sent again; as far as was asked for."""
        self._indexed = 0
        """How much of `made` is in `_copies`."""
        self._ascents: list[int] = []
        """Where in `committed` offsets do not go on ascending."""
        self._ascending = 0
        """How much of `committed` has been looked at for that."""
        self._running: dict[int, int] = {}
        self.missing: dict[int, dict[int, list[End]]] = {}

    def on_append(self, step: steps.Append) -> None:
        """See `Append`."""
        if self.missing:
            self.appended(step.broker, step.batch, step.at_us)
        if self.follows_leos:
            self.leo(step.broker, step.batch.last_offset + 1, step.at_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        """See `Truncate`."""
        if self.follows_leos:
            self.leo(step.broker, step.leo, step.at_us)
            self.gone.update((batch.first_id, step.at_us) for batch in step.removed)

    def on_retention(self, step: steps.Retention) -> None:
        """See `Retention`."""
        self.deleted.update(step.ids)

    def on_hw(self, step: steps.HighWatermark) -> None:
        """See `HighWatermark`."""
        if step.commits:
            partition = step.partition
            self.committed_with(partition.min_insync_replicas, partition.state.isr, step.committed)
            self.commit(step.committed, step.at_us, step.broker)

    def on_elected(self, step: steps.Elected) -> None:
        """See `Elected`."""
        self.elected(step.broker, step.at_us)
        if step.by_isr and step.broker > 0 and step.broker not in self.isr:
            self.unclean_election = True

    def on_fact(self, step: steps.Fact) -> None:
        """See `Fact`."""
        if step.kind is steps.UNCLEAN_ELECTION:
            self.unclean_election = True
        elif step.kind is steps.SYNCED_LOST:
            self.synced_lost = True
        elif step.kind is steps.ELR_OFF:
            self.elr_was_off = self.follows_leos

    def on_isr(self, step: steps.Isr) -> None:
        """See `Isr`."""
        self.isr_history.append((step.at_us, step.isr))
        self.elr = step.elr

    def on_elr(self, step: steps.Elr) -> None:
        """See `Elr`."""
        self.elr = step.elr

    def on_min_isr(self, step: steps.MinIsr) -> None:
        """See `MinIsr`."""
        self.min_isr(step.size, step.at_us)

    def on_assigned(self, step: steps.Assigned) -> None:
        """See `Assigned`."""
        self.assignments.append((step.at_us, step.replicas))

    def on_registered(self, step: steps.Registered) -> None:
        """See `Registered`."""
        if step.kind is steps.UNFENCED:
            self.unfenced(step.broker, step.incarnation, step.at_us)
        else:
            self.registered(step.broker, step.incarnation, step.at_us, opens=step.opens)

    def on_session_end(self, step: steps.SessionEnd) -> None:
        """See `SessionEnd`."""
        self.session_ended(step.broker, step.at_us)

    def on_ack(self, step: steps.Ack) -> None:
        """See `Ack`."""
        reply, request = step.reply, step.reply.request
        self.acks.append(Ack(request.first_id, request.count, reply.base_offset, request.acks, step.at_us))

    def on_read(self, step: steps.Read) -> None:
        """See `Read`."""
        self.passed_over(step.consumer, step.position, step.end)
        for batch in step.batches:
            self.shown.append(Shown(batch, max(step.position, batch.base_offset), step.at_us, step.consumer))
        self.expose(step.leader_epoch, step.end)

    def on_end_offset(self, step: steps.EndOffset) -> None:
        """See `EndOffset`."""
        self.expose(step.leader_epoch, step.offset)

    def on_position(self, step: steps.Position) -> None:
        """See `Position`."""
        if step.kind in _TOLD:
            self.told(step.consumer)
        elif step.kind in _REWOUND:
            self.rewound(step.consumer, step.offset)

    def on_start(self, step: steps.Start) -> None:
        """See `Start`."""
        self.started(step.broker, step.incarnation)

    def on_recovered(self, step: steps.Recovered) -> None:
        """See `Recovered`."""
        if self.follows_leos:
            self.leo(step.broker, step.replica.log.leo, step.at_us)

    def on_deleted(self, step: steps.Deleted) -> None:
        """See `Deleted`."""
        if self.follows_leos:
            self.leo(step.broker, step.replica.log.leo, step.at_us)
            self.dropped_us = step.at_us

    def on_end(self, step: steps.End) -> None:
        """See `End`."""
        lost = {batch.first_id: batch for batch in step.lost}
        if step.was_down:
            self.lost_later(step.broker, lost, marker=not step.unclean)
            if self.follows_leos:
                self.gone.update(dict.fromkeys(lost, step.at_us))
        else:
            in_isr = step.broker in self.isr
            self.ended(End(step.broker, step.at_us, step.kind.name, lost, in_isr, step.unclean))

    def told(self, consumer: int) -> None:
        """A consumer's application heard that it goes elsewhere: what was passed before that is its own business."""
        self.passed.pop(consumer, None)
        self.shown_when_told[consumer] = len(self.shown)

    def passed_over(self, consumer: int, position: int, end: int) -> None:
        """A consumer's position went on to an offset."""
        ranges = self.passed.setdefault(consumer, [])
        if ranges and ranges[-1][1] == position:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((position, end))

    def rewound(self, consumer: int, offset: int) -> None:
        """A consumer went back without telling its application: what lies behind it is ahead again."""
        ranges = self.passed.get(consumer, [])
        self.passed[consumer] = [(start, min(end, offset)) for start, end in ranges if start < offset]

    def expose(self, leader_epoch: int, end_offset: int) -> None:
        """Clients know now that records below an offset are committed."""
        known = self.exposed
        if known is not None and known.epoch == leader_epoch:
            if end_offset > known.end:
                self.exposed = Exposed(leader_epoch, end_offset, known.before)
            return
        newer: list[Exposed] = []
        while known is not None and known.epoch > leader_epoch:
            newer.append(known)
            known = known.before
        if known is not None:
            if known.end >= end_offset:
                return
            if known.epoch == leader_epoch:
                known = known.before
        known = Exposed(leader_epoch, end_offset, known)
        for one in reversed(newer):
            if one.end > end_offset:
                known = Exposed(one.epoch, one.end, known)
        self.exposed = known

    def elected(self, leader: int, now_us: int) -> None:
        """A leader was chosen, 0 for none."""
        if leader != self._leader:
            self.deposed.setdefault(self._leader, now_us)
            self.deposed.pop(leader, None)
            self._leader = leader

    def commit(self, batches: list[Batch], now_us: int, leader: int = 0) -> None:
        """A leader's HW passed these batches."""
        if leader in self.deposed:
            for batch in batches:
                if batch.first_id not in self.commits:
                    self.commits_deposed[batch.first_id] = self.deposed[leader]
        for batch in batches:
            self.commits.setdefault(batch.first_id, now_us)
            if batch not in self._committed:
                self._committed.add(batch)
                self.committed.append(batch)

    def committed_between(self, offset: int, end: int) -> Iterator[Batch]:
        """Batches of `committed` with records at or above `offset` and below `end`."""
        committed = self.committed
        for place in range(self._ascending, len(committed)):
            if not place or committed[place].base_offset <= committed[place - 1].last_offset:
                self._ascents.append(place)
        self._ascending = len(committed)
        for begin, stop in pairwise([*self._ascents, len(committed)]):
            place = bisect_left(committed, offset, begin, stop, key=_last_offset)
            while place < stop and committed[place].base_offset < end:
                yield committed[place]
                place += 1

    def stands(self, batch: Batch, log: Log) -> bool:
        """Whether a batch's records are in a log, perhaps in a copy of it, or were deleted by a leader's retention."""
        made, copies = self.made, self._copies
        while self._indexed < len(made):
            copies.setdefault(made[self._indexed].first_id, []).append(made[self._indexed])
            self._indexed += 1
        return any(log.holds(copy) for copy in copies.get(batch.first_id, ())) or self.deleted.issuperset(batch.ids())

    def committed_with(self, min_isr: int, isr: tuple[int, ...], batches: list[Batch]) -> None:
        """These batches were committed by a leader with this effective min ISR and this ISR; told before `commit`."""
        if not self.min_isrs:
            return
        new = [batch.first_id for batch in batches if batch.first_id not in self.commits]
        if min_isr < self.min_isrs[-1][1]:
            self.committed_under.update(dict.fromkeys(new, min_isr))
        if isr != self.isr:
            self.committed_by.update(dict.fromkeys(new, isr))

    def min_isr(self, size: int, now_us: int) -> None:
        """The effective min ISR, which may be what it was."""
        if not self.min_isrs or self.min_isrs[-1][1] != size:
            self.min_isrs.append((now_us, size))

    def leo(self, broker: int, leo: int, now_us: int) -> None:
        """A log has another LEO (`leos`)."""
        self.leos.setdefault(broker, []).append((now_us, leo))

    def ended(self, end: End) -> None:
        """An incarnation is over."""
        if self.follows_leos:
            self.leo(end.broker, -1, end.at_us)
            self.gone.update(dict.fromkeys(end.lost, end.at_us))
        self.ends.append(end)
        self._running.pop(end.broker, None)
        self._note_missing(end, end.lost)
        self._up_no_more(end.broker, end.at_us)

    def session_ended(self, broker: int, now_us: int) -> None:
        """The control plane ended a session, perhaps that of an incarnation that is over."""
        if broker == self._leader:
            self.deposed.setdefault(broker, now_us)
        self._up_no_more(broker, now_us)
        last = next((end for end in reversed(self.ends) if end.broker == broker), None)
        registered_us = self.up[broker][-1][0] if self.up.get(broker) else -1
        if last is not None and last.forgotten_us is None and registered_us <= last.at_us:
            last.forgotten_us = now_us

    def _up_no_more(self, broker: int, now_us: int) -> None:
        periods = self.up.get(broker)
        if periods and periods[-1][1] is None:
            periods[-1] = (periods[-1][0], now_us)

    def lost_later(self, broker: int, lost: dict[int, Batch], *, marker: bool = True) -> None:
        """A machine whose process was down already lost its page cache: that belongs to the process's end.

        So does a clean-shutdown marker that went with it (`marker`: it did not).
        """
        for end in reversed(self.ends):
            if end.broker == broker:
                end.unclean = end.unclean or not marker
                end.lost.update(lost)
                self._note_missing(end, lost)
                return

    def _note_missing(self, end: End, lost: dict[int, Batch]) -> None:
        for first in lost:
            self.missing.setdefault(end.broker, {}).setdefault(first, []).append(end)

    def appended(self, broker: int, batch: Batch, now_us: int) -> None:
        """A batch entered a log: it may be one that the broker had lost."""
        for end in self.missing.get(broker, {}).pop(batch.first_id, ()):
            end.regained[batch.first_id] = now_us

    def started(self, broker: int, incarnation: int) -> None:
        """A process runs."""
        self._running[broker] = incarnation

    def runs(self, broker: int, incarnation: int) -> bool:
        """Whether a process runs."""
        return self._running.get(broker) == incarnation

    def registered(self, broker: int, incarnation: int, now_us: int, *, opens: bool = True) -> None:
        """A process registered, and perhaps has an open session with that."""
        if self.runs(broker, incarnation):
            self.registrations.setdefault(broker, []).append(now_us)
        if opens:
            self.unfenced(broker, incarnation, now_us)

    def unfenced(self, broker: int, incarnation: int, now_us: int) -> None:
        """The control plane opened a session; of a dead incarnation, or once more for a live one, it says nothing."""
        periods = self.up.setdefault(broker, [])
        if self.runs(broker, incarnation) and not (periods and periods[-1][1] is None):
            periods.append((now_us, None))
            if broker == self._leader:  # It is the chosen one still.
                self.deposed.pop(broker, None)

    @property
    def isr(self) -> tuple[int, ...]:
        """The persisted ISR."""
        return self.isr_history[-1][1]


def _last_offset(batch: Batch) -> int:
    return batch.last_offset
