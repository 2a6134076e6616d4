"""Early warning ``hw-above-isr``: an HW lies above the records that a member of the ISR had.

Records below an HW are committed: every ISR member has them, so that none is lost whichever member is elected.

Verifies, against the log end offset (LEO) of every member of the persisted ISR: an HW that rises at a leader, or at a
follower as a fetch told it; the HW that a restart takes from the checkpoint file; the HW with which a broker begins to
lead; the end of the records that a consumer was shown, and the end offset that it was told. The HW of the current
leader is also compared when a member joins the persisted ISR, truncates, or deletes its log. When a leader's HW rises,
each member of the ISR in the leader's memory must have had these records, now or earlier: the persisted ISR may lack
that member by now, and the member may have removed the records since.

Records that a machine lost with its page cache or disk still count as the member's: only truncations and deletions by
the protocol remove records. A member that registers again before it joins the ISR counts with its actual LEO. HWs of
earlier leader epochs are no longer compared once a leader begins without records that its machine lost, or a broker
outside ISR and ELR is elected.

Does not verify: which records are below the LEO (`sim.checkers.completeness` does); a lower HW than possible; the HW in
a response that changes nothing at the follower.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.replica.partition import Partition


class HwAboveIsr(Checker):
    """Compares HWs with the LEOs of ISR members."""

    FINDINGS: ClassVar = (warning("hw-above-isr"),)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._logs: dict[int, Log] = {}
        self._lost: dict[int, int] = {}
        """Broker -> LEO before its machine lost records, until it truncates or leads."""
        self._peaks: dict[int, int] = {}
        """Broker -> greatest LEO before a truncation, deletion or loss."""
        self._registered: set[int] = set()
        """Brokers that registered again after their machines lost records."""
        self._isr: tuple[int, ...] = ()
        self._elr: tuple[int, ...] = ()
        self._epoch = -1
        self._leading: Partition | None = None
        """The partition of the newest leader, while its process lives."""
        self._leaders: dict[int, Partition] = {}
        """Broker -> its partition, once it has led."""
        self._floor = 0
        """All members of the persisted ISR had all records below."""
        self._top = 0
        """The greatest HW so far."""
        self._since = -1
        """Leader epoch from which HWs are compared."""
        self._excused = 0
        """`_top` when that epoch began."""
        self._reported: set[tuple[int, int, int]] = set()

    def on_hw(self, step: steps.HighWatermark) -> None:
        hw = step.offset
        if hw <= step.other:
            return
        if hw > self._top:
            self._top = hw
        if hw > self._floor and step.epoch >= self._since:
            what = "leads and raises its HW" if step.leads else "follows and raises its HW"
            self._compare(step.broker, hw, self._isr, what, step.at_us)
        if step.leads and step.isr != self._isr:
            for follower in self._leaders[step.broker].followers.states.values():
                member = follower.broker
                if follower.in_isr and max(self._had(member), self._peaks.get(member, 0)) < hw:
                    self._report(step.broker, hw, member, "leads and raises its HW", step.at_us)

    def on_recovered(self, step: steps.Recovered) -> None:
        broker, hw = step.broker, step.other
        if step.lost:
            end = max([batch.last_offset for batch in step.lost]) + 1
            self._lost[broker] = max(self._lost.get(broker, 0), end)
            self._registered.discard(broker)
            self._note_peak(broker, end)
        self._logs[broker] = step.replica.log
        self._floor = 0
        if hw > self._excused:
            self._compare(broker, hw, self._isr, "starts with HW", step.at_us)

    def on_registered(self, step: steps.Registered) -> None:
        if step.kind is steps.REGISTERED and step.broker in self._lost:
            self._registered.add(step.broker)

    def on_deleted(self, step: steps.Deleted) -> None:
        self._logs[step.broker] = step.replica.log
        self._removes(step.broker, step.removed, 0, step.at_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        if step.removed:
            self._removes(step.broker, step.removed, step.offset, step.at_us)

    def on_end(self, step: steps.End) -> None:
        leading = self._leading
        if leading is not None and leading.broker == step.broker and not step.was_down:
            self._leading = None

    def on_lead(self, step: steps.Lead) -> None:
        broker, epoch = step.broker, step.epoch
        self._leaders[broker] = step.partition
        if epoch < self._epoch:
            return
        self._epoch = epoch
        self._leading = step.partition
        if step.offset < self._lost.get(broker, 0):
            self._excuse(epoch)
        self._lost.pop(broker, None)
        self._floor = 0
        if step.other > self._excused:
            self._compare(broker, step.other, self._isr, "begins to lead with HW", step.at_us)

    def on_elected(self, step: steps.Elected) -> None:
        self._epoch = max(self._epoch, step.epoch)
        if step.broker > 0 and step.broker not in self._isr and step.broker not in self._elr:
            self._excuse(step.epoch)

    def on_isr(self, step: steps.Isr) -> None:
        self._isr, self._elr = step.isr, step.elr
        self._floor = 0
        leading = self._current_leader()
        if leading is not None:
            before = step.before or ()
            for member in step.isr:
                if member in before:
                    continue
                end = self._leo(member) if member in self._registered else self._had(member)
                if end < leading.hw:
                    self._report(leading.broker, leading.hw, member, "leads with HW", step.at_us)

    def on_elr(self, step: steps.Elr) -> None:
        self._elr = step.elr

    def on_read(self, step: steps.Read) -> None:
        if step.other > self._floor and step.epoch >= self._since:
            self._compare(step.consumer, step.other, self._isr, "reads records below offset", step.at_us)

    def on_end_offset(self, step: steps.EndOffset) -> None:
        if step.offset > self._floor and step.epoch >= self._since:
            self._compare(0, step.offset, self._isr, "gets end offset", step.at_us)

    def dispose(self) -> None:
        self._logs.clear()
        self._leaders.clear()
        self._leading = None

    def _current_leader(self) -> Partition | None:
        leading = self._leading
        if leading is None or not leading.is_leader or leading.leader_epoch < self._epoch:
            return None
        return leading

    def _leo(self, broker: int) -> int:
        log = self._logs.get(broker)
        return log.leo if log is not None else 0

    def _had(self, broker: int) -> int:
        """The LEO, with the records that the machine lost."""
        log = self._logs.get(broker)
        leo = log.leo if log is not None else 0
        return max(leo, self._lost.get(broker, 0)) if self._lost else leo

    def _note_peak(self, broker: int, end: int) -> None:
        self._peaks[broker] = max(self._peaks.get(broker, 0), end)

    def _excuse(self, epoch: int) -> None:
        self._since, self._excused = epoch, self._top

    def _removes(self, broker: int, removed: list[Batch], leo: int, now_us: int) -> None:
        """A broker removes records by order of the protocol."""
        if removed:
            self._note_peak(broker, removed[-1].last_offset + 1)
        self._lost.pop(broker, None)
        if broker in self._isr:
            self._floor = 0
            leading = self._current_leader()
            if leading is not None and leo < leading.hw and leading.broker != broker:
                self._report(leading.broker, leading.hw, broker, "leads with HW", now_us)

    def _compare(self, node: int, hw: int, members: Iterable[int], what: str, now_us: int) -> None:
        """Compare an HW of a broker, or of a consumer: its node, or 0 where the step names none."""
        self.decided = True
        floor = hw
        for member in members:
            had = self._had(member)
            if had < hw:
                self._report(node, hw, member, what, now_us)
            if had < floor:
                floor = had
        if floor > self._floor:
            self._floor = floor

    def _report(self, node: int, hw: int, member: int, what: str, now_us: int) -> None:
        key = node, member, self._epoch
        if key in self._reported:
            return
        self._reported.add(key)
        had = self._had(member)
        who = f"broker {node}" if 0 < node < steps.CLIENTS else "a consumer"
        detail = f"{who} {what} {hw}, but broker {member} of the ISR {sorted(self._isr)} has LEO {had}"
        self._warns("hw-above-isr", now_us, detail, self._history.commits.ids_between(had, hw), (member,))
