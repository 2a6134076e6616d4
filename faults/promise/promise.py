"""The faults that a mode promises to survive, judged per record on the realised faults.

P0, which every promise requires: no election takes a leader that may lack records rather than wait, no fsynced data is
corrupted, fsynced metadata survives. A replaced disk does not count as corrupted: it is a lossy end for all that it
held; and so is a lost ``partition.metadata``. Other lost files end the promise if a process then lacks something that
Kafka does not promise to do without (`sim.environment.storage.Storage.misses_files`).

Committed metadata must survive every end of controllers after which a majority of them still has it on disk. It may be
lost if a controller loses its disk or its file quorum-state while fewer than a majority of the others have all of it;
then P0 does not hold. A quorum that is one node loses nothing.

Modes without ELR (``hw``, ``kip101``, ...) promise a record under P0, from its commit on, if the following holds for
each lossy end (an end of a process that loses the record) of a member x of the persisted ISR: at every instant from
x's end until x's next registration, some other member of the persisted ISR is up and has not lost the record in a
crash. A replica that received the record again after a crash counts as having it, even if the protocol truncates it
later. *Up* means that the process runs and its session is open, which Kafka's documentation calls alive.

``elr`` and ``elr-recovery`` promise a record under P0 if at every instant from its commit on fewer replicas than
min.insync.replicas are damaged (`faults.promise.damage`): by unclean ends, or, if the controller inspects logs (rule
``unclean_recovery``), by ends that lost the record. If ELR was switched off for a while, the condition for modes
without ELR must hold as well, because no eligible replicas were kept. There, the ELR counts as the ISR while the ISR is
empty: without ELR, the last member would stay in the ISR.

`faults.promise.commitments` defines commits. The promise is computed from the steps of an ended run, and only for
records that were lost or whose replicas were damaged.

Divergence: a mode that searches for the largest common epoch (KIP-279; from 2.8 on while fetching) promises that
replicas never diverge, whatever was lost or elected, except leader epochs of a cache; older modes promise it under P0.
Modes whose brokers support idempotent producers promise that these have neither duplicates nor reordered batches.

No mode promises that acks=all succeeds only while the persisted ISR is large enough, because the leader decides by the
ISR that it knows; under P0 each promises that it does not succeed if the leader knew (``ack-under-min-isr``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from faults.promise.commitments import Commitments
from faults.promise.damage import FOREVER_US, Damage, registers_again_us
from sim.checkers import checker
from sim.checkers.registry import FINDINGS
from sim.config import Value
from sim.history import steps
from sim.history.ends import Ends, IncarnationEnd, Regained
from sim.history.findings import Violation
from sim.history.history import History
from sim.history.membership import Membership
from sim.hosts.settings import heeds_unclean_election
from sim.protocol.modes import Promised
from sim.protocol.rules import Rules

UNKNOWN = -1
"""Value of `inside_unclean` and `inside_lossy` in a mode without ELR."""


def elects_uncleanly(config: Mapping[str, Value], rules: Rules) -> bool:
    """Whether the configuration allows the election of replicas that may lack records."""
    if heeds_unclean_election(config, rules):
        return bool(config["unclean.leader.election.enable"])
    return config["unclean.recovery.strategy"] == "Aggressive"


class Premises(steps.Listener):
    """Preconditions of every promise.

    Attributes:
        unclean_election: whether unclean election was switched on, or a replica that may lack records was elected to
            avoid waiting.
        synced_lost: whether fsynced batches became unreadable.
        elr_was_off: whether ELR was off at some time, although the release has it.
        lossy: whether an end lost records.
        file_missed: whether a process lacked something of a damaged file that Kafka does not promise to do without.
        metadata_lost: whether committed metadata was lost after an end of a controller that excuses it.
        unclean: whether an end left no clean-shutdown marker with its broker epoch, or a broker was
            unregistered while it was down.
        ended_us: time of the last end of a process; -1: none.
    """

    def __init__(self) -> None:
        self.unclean_election = False
        self.synced_lost = False
        self.elr_was_off = False
        self.lossy = False
        self.unclean = False
        self.ended_us = -1
        self.metadata_lost = self.file_missed = False
        self._may_lose_metadata = False
        self._isr: tuple[int, ...] = ()

    def on_isr(self, step: steps.Isr) -> None:
        self._isr = step.isr

    def on_elected(self, step: steps.Elected) -> None:
        if step.by_isr and step.broker > 0 and step.broker not in self._isr:
            self.unclean_election = True

    def on_fact(self, step: steps.Fact) -> None:
        if step.kind is steps.UNCLEAN_ELECTION:
            self.unclean_election = True
        elif step.kind is steps.SYNCED_LOST:
            self.synced_lost = True
        elif step.kind is steps.FILE_MISSED:
            self.file_missed = True
        elif step.kind is steps.ELR_OFF:
            self.elr_was_off = True
        elif step.kind is steps.UNREGISTERED:
            self.unclean = True

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        self._may_lose_metadata |= step.excuses

    def on_metadata_lost(self, step: steps.MetadataLost) -> None:  # noqa: ARG002
        self.metadata_lost |= self._may_lose_metadata

    def on_end(self, step: steps.End) -> None:
        self.ended_us = step.at_us
        if step.lost:
            self.lossy = True
        if step.unclean:
            self.unclean = True


FEW_BATCHES: Final = 4
"""An idle partition has no more batches, because clients write to it only after all faults are undone."""


def _ended_before_records(history: History, premises: Premises) -> bool:
    """Whether the first record was appended after the last end of a process, as in an idle partition: then no end
    excuses a loss.
    """
    batches = history.commits.batches
    if len(batches) > FEW_BATCHES or premises.lossy:
        return False
    for step in history.steps:
        if step.kind is steps.APPEND:
            return premises.ended_us < step.at_us
    return not batches


class Promise:
    """Judges records and violations of one run. P0 does not hold if unclean election is configured, is switched on, or
    happens; or if fsynced batches became unreadable.
    """

    def __init__(self, history: History, promised: Promised, *, unclean_election: bool) -> None:
        premises = Premises()
        history.retell([premises])
        self._p0 = not (
            unclean_election
            or premises.unclean_election
            or premises.synced_lost
            or premises.metadata_lost
            or premises.file_missed
        )
        self._never_diverges = promised.never_diverges and not premises.file_missed
        self._promised = promised
        self._history = history
        self._membership = Membership()
        self._ends = Ends(self._membership)
        self._commitments = Commitments(self._membership)
        counts_damage = promised.counts_damage
        harmful = premises.lossy or (counts_damage and premises.unclean)
        if harmful and not _ended_before_records(history, premises):
            facts: list[steps.Listener] = [self._membership, self._ends, self._commitments]
            history.retell([*facts, Regained(self._ends)] if premises.lossy else facts)
        self._lossy = [end for end in self._ends.ends if end.lost]
        self._isr_since = [since for since, _ in self._membership.isr_history]
        self._up_since = {broker: [since for since, _ in periods] for broker, periods in self._membership.up.items()}
        self._changes = self._times_of_change()
        self._shown_us: dict[int, int] | None = None
        self._judged: dict[tuple[object, ...], bool] = {}
        self._unclean = self._lossy_ids = frozenset[int]()
        """Records of which as many replicas were damaged as excuses a loss: by unclean ends, by ends that lost them."""
        if counts_damage:
            damage = Damage(history, self._membership, self._ends, self._commitments)
            self._unclean, self._lossy_ids = damage.excused(lossy=False), damage.excused(lossy=True)
        self._excused_ids = self._lossy_ids if promised.damaged_by_loss else self._unclean
        self._excused_losses = self._lossy_ids
        if not counts_damage or premises.elr_was_off:
            by_isr = self._excused_by_isr()
            self._excused_ids |= by_isr
            self._excused_losses |= by_isr
        self._all_of: tuple[AbstractSet[int] | None, bool] = None, False
        """The last record ids given to `covers`, and whether all are promised: violations may share a set of ids."""
        self._acked_all = frozenset(
            record
            for ack in (history.clients.acks if self._lossy or self._unclean or history.findings.violations else ())
            if ack.acks == -1
            for record in range(ack.first_id, ack.first_id + ack.count)
        )

    def run_inside(self) -> bool:
        """Whether the promise covers all records acknowledged with acks=all."""
        return self._p0 and not (self._acked_all & self._excused_ids)

    @property
    def inside_unclean(self) -> int:
        """`run_inside` as 1 or 0, if unclean ends count as damage; `UNKNOWN` in a mode without ELR."""
        return self._by_damage(self._unclean)

    @property
    def inside_lossy(self) -> int:
        """`run_inside` as 1 or 0, if ends that lost the record count as damage; `UNKNOWN` in a mode without ELR."""
        return self._by_damage(self._lossy_ids)

    def _by_damage(self, excused: frozenset[int]) -> int:
        return int(self._p0 and not (self._acked_all & excused)) if self._promised.counts_damage else UNKNOWN

    def covers(self, violation: Violation) -> bool:
        """Whether a violation is inside the promise.

        For stuck replicas and lack of progress P0 suffices. Losses and skipped records are inside if the promise covers
        one of their records; HW regressions, if it covers all that retention did not delete. Early warnings about
        records are judged on all committed records, whether or not the producer received the success.
        """
        promised = violation.promised or FINDINGS[violation.kind].promised
        if promised == checker.NEVER_DIVERGES and self._never_diverges:
            return True
        if not self._p0 or promised == checker.NOT_PROMISED:
            return False
        if promised == checker.IDEMPOTENT:
            return self._promised.deduplicates and self._excused_losses.isdisjoint(violation.unless_lost)
        if promised == checker.ALL_RECORDS:
            if self._all_of[0] is not violation.ids:
                self._all_of = violation.ids, self._promises_all(violation.ids)
            return self._all_of[1]
        if promised == checker.READABLE:
            readable = violation.ids if self._promised.keeps_all_shown else violation.ids & self._acked_all
            return bool(readable - self._excused_ids)
        if promised == checker.RECORDS_OR_NONE and not violation.ids:
            return True
        if promised in (checker.ANY_RECORD, checker.RECORDS_OR_NONE):
            return bool(violation.ids - self._excused_ids)
        return True

    def _promises_all(self, ids: AbstractSet[int]) -> bool:
        concerned = ids - self._history.records.deleted
        return (bool(concerned) or not ids) and concerned.isdisjoint(self._excused_ids)

    def _excused_by_isr(self) -> frozenset[int]:
        """Ids of the records for which the condition of modes without ELR does not hold; see the module."""
        losing: dict[int, list[IncarnationEnd]] = {}
        for end in self._lossy:
            for first in end.lost:
                losing.setdefault(first, []).append(end)
        sizes = {batch.first_id: batch.count for end in self._lossy for batch in end.lost.values()}
        return frozenset(
            first + position
            for first, ends in losing.items()
            if self._is_excused(first, ends)
            for position in range(sizes[first])
        )

    def _is_excused(self, first_id: int, ends: list[IncarnationEnd]) -> bool:
        """Whether a batch that these ends lost is excused; computed once for all batches with the same ends."""
        committed_us = self._commitments.at_us.get(first_id)
        if committed_us is None:  # A checkpointed HW ahead of the log may cover batches that no HW has passed.
            if self._shown_us is None:
                self._shown_us = {one.batch.first_id: one.at_us for one in reversed(self._history.clients.shown)}
            committed_us = self._shown_us.get(first_id)
        if committed_us is None:
            return False
        # Batches with the same ends share a judgement: it does not matter how long before these they were committed.
        since_us = max(committed_us, min([end.at_us for end in ends]))
        fate = (since_us, *((end.broker, end.at_us, end.regained.get(first_id, FOREVER_US)) for end in ends))
        judged = self._judged.get(fate)
        if judged is None:
            judged = any(self._was_alone(end, first_id, since_us) for end in ends)
            self._judged[fate] = judged
        return judged

    def _was_alone(self, end: IncarnationEnd, first_id: int, committed_us: int) -> bool:
        """Whether at some instant between this end and the broker's next registration no other ISR member that was up
        had the record.
        """
        until_us = registers_again_us(self._membership, end)
        start_us = max(self._member_from(end), committed_us)
        regained = [each.regained[first_id] for each in self._lossy if first_id in each.regained]
        instants = [start_us, *(time for time in (*self._changes, *regained) if start_us < time < until_us)]
        return start_us < until_us and any(
            not self._other_member_has(end.broker, first_id, now_us) for now_us in instants
        )

    def _member_from(self, end: IncarnationEnd) -> int:
        """When, at its end or later, the broker was in the persisted ISR first; `FOREVER_US` if it was not.

        An ISR change that adds it may be in progress when it ends. A change after its session has expired is a bug of
        the protocol, which excuses nothing.
        """
        if end.in_isr or end.broker in self._members_at(end.at_us):
            return end.at_us
        forgotten_us = FOREVER_US if end.forgotten_us is None else end.forgotten_us
        history = self._membership.isr_history
        joins = (time for time, isr in history if end.at_us <= time < forgotten_us and end.broker in isr)
        return next(joins, FOREVER_US)

    def _times_of_change(self) -> list[int]:
        """Times at which the answer of `_other_member_has` may change, except for regained records."""
        times = self._isr_since[:]
        for periods in self._membership.up.values():
            times += [time for period in periods for time in period if time is not None]
        return times

    def _other_member_has(self, other_than: int, first_id: int, now_us: int) -> bool:
        return any(
            member != other_than and self._is_up(member, now_us) and not self._is_damaged(member, first_id, now_us)
            for member in self._members_at(now_us)
        )

    def _members_at(self, now_us: int) -> tuple[int, ...]:
        """The persisted ISR at a time, or the ELR if the ISR is empty."""
        isr = self._membership.isr_history[bisect_right(self._isr_since, now_us) - 1][1]
        if isr:
            return isr
        return next((elr for since, elr in reversed(self._membership.elr_history) if since <= now_us), ())

    def _is_up(self, broker: int, now_us: int) -> bool:
        place = bisect_right(self._up_since.get(broker, ()), now_us) - 1
        if place < 0:
            return False
        until = self._membership.up[broker][place][1]
        return until is None or now_us < until

    def _is_damaged(self, broker: int, first_id: int, now_us: int) -> bool:
        return any(
            end.broker == broker
            and end.at_us <= now_us
            and first_id in end.lost
            and end.regained.get(first_id, FOREVER_US) > now_us
            for end in self._lossy
        )
