"""What a mode promises to survive, judged per record on the faults as they were realised.

P0, always needed: no unclean election in effect, no corruption of synced data, synced metadata survives. A disk that is
replaced corrupts nothing: it is a lossy end for all that it held.

``hw``, ``kip101`` (and later modes without ELR) promise a record under P0, from its commit on, if for every lossy end
of a member x of the persisted ISR that held it: from x's end until x's next registration, at every instant another
member of the persisted ISR is up that has not itself lost the record by a crash. Truncation by the protocol never
excuses: a replica that was given the record back after a crash counts as one that has it. *Up* means that its process
runs and that its session is open: that is what Kafka's documentation calls alive.

``elr`` and ``elr-recovery`` promise a record under P0 if at every instant from its commit on fewer replicas are damaged
than min.insync.replicas (`faults.promise.damage`): by unclean ends where the controller goes by what it knows of them,
by ends that lost the record where it looks at logs (rule ``unclean_recovery``). In a run in which the feature was
switched off for a while, records must keep to the ISR as well: nobody kept eligible replicas then.

When a record counts as committed, `faults.promise.commitments` says. All of it is worked out from the steps of a run
once it has ended, and only of what something was lost of, or damaged.

Divergence: a mode that looks for the largest common epoch (KIP-279; from 2.8 on while it fetches) promises that there
is none whatever was lost or elected; older ones under P0. What idempotent producers are promised is promised by brokers
that know them.

No mode promises that acks=all only succeeds while the persisted ISR is large enough (``ack-under-min-isr``): every
leader judges by the ISR that it knows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

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
"""Whether a run is inside, where the mode has no eligible leader replicas."""


def elects_uncleanly(config: Mapping[str, Value], rules: Rules) -> bool:
    """Whether the configuration lets replicas lead that are known to lack records."""
    if heeds_unclean_election(config, rules):
        return bool(config["unclean.leader.election.enable"])
    return config["unclean.recovery.strategy"] == "Aggressive"


class Premises(steps.Listener):
    """What any promise depends on, as far as it was told.

    Attributes:
        unclean_election: whether unclean election was switched on during the run, or a replica was elected that must
            be taken to lack records, because somebody preferred that to waiting.
        synced_lost: whether batches became unreadable although they had been fsynced.
        elr_was_off: whether the feature was off at some time, though the release has it.
        lossy: whether some end lost records.
        unclean: whether some end left no clean-shutdown marker that carries its broker epoch.
    """

    __slots__ = ("_isr", "elr_was_off", "lossy", "synced_lost", "unclean", "unclean_election")

    def __init__(self) -> None:
        self.unclean_election = False
        self.synced_lost = False
        self.elr_was_off = False
        self.lossy = False
        self.unclean = False
        self._isr: tuple[int, ...] = ()

    def on_isr(self, step: steps.Isr) -> None:
        """See `Isr`."""
        self._isr = step.isr

    def on_elected(self, step: steps.Elected) -> None:
        """See `Elected`."""
        if step.by_isr and step.broker > 0 and step.broker not in self._isr:
            self.unclean_election = True

    def on_fact(self, step: steps.Fact) -> None:
        """See `Fact`."""
        if step.kind is steps.UNCLEAN_ELECTION:
            self.unclean_election = True
        elif step.kind is steps.SYNCED_LOST:
            self.synced_lost = True
        elif step.kind is steps.ELR_OFF:
            self.elr_was_off = True

    def on_end(self, step: steps.End) -> None:
        """See `End`."""
        if step.lost:
            self.lossy = True
        if step.unclean:
            self.unclean = True


class Promise:
    """Judges records and violations of one run.

    Args:
        history: what happened.
        promised: what the mode promises.
        unclean_election: whether unclean election is configured. That breaks P0, as does one that was switched on or
            that happened.
    """

    def __init__(self, history: History, promised: Promised, *, unclean_election: bool) -> None:
        premises = Premises()
        history.retell([premises])
        self._p0 = not (unclean_election or premises.unclean_election or premises.synced_lost)
        self._promised = promised
        self._history = history
        self._membership = Membership()
        self._ends = Ends(self._membership)
        self._commitments = Commitments(self._membership)
        counts_damage = promised.counts_damage
        if premises.lossy or (counts_damage and premises.unclean):
            facts: list[steps.Listener] = [self._membership, self._ends, self._commitments]
            history.retell([*facts, Regained(self._ends)] if premises.lossy else facts)
        self._lossy = [end for end in self._ends.ends if end.lost]
        self._isr_since = [since for since, _ in self._membership.isr_history]
        self._up_since = {broker: [since for since, _ in periods] for broker, periods in self._membership.up.items()}
        self._changes = self._times_of_change()
        self._shown_us: dict[int, int] | None = None
        self._judged: dict[tuple[object, ...], bool] = {}
        self._unclean = self._lossy_ids = frozenset[int]()
        if counts_damage:
            damage = Damage(history, self._membership, self._ends, self._commitments)
            self._unclean, self._lossy_ids = damage.excused(lossy=False), damage.excused(lossy=True)
        self._excused_ids = self._lossy_ids if promised.damaged_by_loss else self._unclean
        if not counts_damage or premises.elr_was_off:
            self._excused_ids |= self._excused_by_isr()
        self._all_of: tuple[AbstractSet[int] | None, bool] = None, False
        """Whether the records that `covers` was asked about last are all promised: violations share their sets."""
        self._acked_all = frozenset(
            record
            for ack in (history.clients.acks if self._lossy or self._unclean or history.findings.violations else ())
            if ack.acks == -1
            for record in range(ack.first_id, ack.first_id + ack.count)
        )

    def run_inside(self) -> bool:
        """Whether all records that were acknowledged with acks=all are inside."""
        return self._p0 and not (self._acked_all & self._excused_ids)

    @property
    def inside_unclean(self) -> int:
        """Whether they are (1 or 0) if damage is what unclean ends do; `UNKNOWN` in a mode without ELR."""
        return self._by_damage(self._unclean)

    @property
    def inside_lossy(self) -> int:
        """Whether they are (1 or 0) if damage is what ends do that lose the record; `UNKNOWN` in a mode without ELR."""
        return self._by_damage(self._lossy_ids)

    def _by_damage(self, excused: frozenset[int]) -> int:
        return int(self._p0 and not (self._acked_all & excused)) if self._promised.counts_damage else UNKNOWN

    def covers(self, violation: Violation) -> bool:
        """Whether a violation is inside the promise.

        Stuck replicas and lack of progress need P0 only. Losses, records that a consumer skipped, and regressions are
        inside if a record concerned is (regressions: if all are, but for those that retention had deleted).
        So are early warnings, if they are about records: about all that are committed, since a success that was sent
        counts there, received or not.
        """
        promised = FINDINGS[violation.kind].promised
        if promised == checker.NEVER_DIVERGES and self._promised.never_diverges:
            return True
        if not self._p0 or promised == checker.NOT_PROMISED:
            return False
        if promised == checker.IDEMPOTENT:
            return self._promised.deduplicates
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
        """Whether a batch is excused that these ends lost; worked out once for all that share their fate."""
        committed_us = self._commitments.at_us.get(first_id)
        if committed_us is None:  # A HW of a checkpoint that was ahead of the log may cover what none has passed.
            if self._shown_us is None:
                self._shown_us = {one.batch.first_id: one.at_us for one in reversed(self._history.clients.shown)}
            committed_us = self._shown_us.get(first_id)
        if committed_us is None:
            return False
        # When it was committed before the first of these ends decides nothing.
        since_us = max(committed_us, min([end.at_us for end in ends]))
        fate = (since_us, *((end.broker, end.at_us, end.regained.get(first_id, FOREVER_US)) for end in ends))
        judged = self._judged.get(fate)
        if judged is None:
            judged = any(self._left_alone(end, first_id, since_us) for end in ends)
            self._judged[fate] = judged
        return judged

    def _left_alone(self, end: IncarnationEnd, first_id: int, committed_us: int) -> bool:
        """Whether at some instant between this end and the next registration nobody else in the ISR had the record."""
        until_us = registers_again_us(self._membership, end)
        start_us = max(self._member_from(end), committed_us)
        regained = [each.regained[first_id] for each in self._lossy if first_id in each.regained]
        instants = [start_us, *(time for time in (*self._changes, *regained) if start_us < time < until_us)]
        return start_us < until_us and any(not self._somebody(end.broker, first_id, now_us) for now_us in instants)

    def _member_from(self, end: IncarnationEnd) -> int:
        """From when on the broker that ended was in the persisted ISR.

        A write that puts it there may be under way when it ends. Once its session is over, no write may, and one that
        does is the protocol's mistake, which excuses nothing.
        """
        if end.in_isr:
            return end.at_us
        forgotten_us = FOREVER_US if end.forgotten_us is None else end.forgotten_us
        history = self._membership.isr_history
        joins = (time for time, isr in history if end.at_us <= time < forgotten_us and end.broker in isr)
        return next(joins, FOREVER_US)

    def _times_of_change(self) -> list[int]:
        """Times at which the answer to `_somebody` may change, but for records that came back."""
        times = self._isr_since[:]
        for periods in self._membership.up.values():
            times += [time for period in periods for time in period if time is not None]
        return times

    def _somebody(self, other_than: int, first_id: int, now_us: int) -> bool:
        isr = self._membership.isr_history[bisect_right(self._isr_since, now_us) - 1][1]
        return any(
            member != other_than and self._is_up(member, now_us) and not self._is_damaged(member, first_id, now_us)
            for member in isr
        )

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
