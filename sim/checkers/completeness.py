"""Early warnings ``leader-incomplete`` and ``candidate-incomplete``: a committed record is missing where it must be.

A record is committed once the HW of a broker which believes it leads has passed it, with any acks, acknowledged or not.
Unless a log start has passed it, the record must then be, at any offset,

- in the log of each broker that begins to lead in the newest leader epoch, and of the current leader of that epoch when
  a leader of an older epoch commits something (Vanlightly: LeaderCompleteness). Records that such a leader lacks are
  given up: its log is the partition's from then on, and later leaders are not checked for them;
- in the log of each candidate: a running member of the persisted ISR or of the eligible leader replicas (ELR) that the
  control plane knows to be available (Gustafson: StrongIsr, over the true ISR; Vanlightly:
  LeaderCandidateCompleteness). With ZooKeeper it has a session and has received the partition's state in it. With KRaft
  its process was unfenced once; if fenced again it may still be elected later while it stays in ISR or ELR.

Verifies: leaders when they begin to lead; candidates when they enter ISR or ELR, receive the state, are unfenced or
truncate, for all committed records; both at each commit, for the records it adds. Each record is reported once per kind
and broker.

Does not verify: members that are down, or restarted without the control plane's knowledge (a controller that recognises
new registrations removes those from the ISR first, one that requires a clean shutdown from the ELR too); replicas that
only an unclean election could elect, as a last known leader; whether the record reappears, which is why this is no
violation.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.checkers.checker import Checker, warning
from sim.history import steps
from sim.history.history import History
from sim.plurals import named
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.replica.replica import Replica

_NO_LOG: Final = Log()
"""The log of a broker that has not created its replica yet."""


class Completeness(Checker):
    """Looks for committed records in the logs of leaders and candidates."""

    FINDINGS: ClassVar = (warning("leader-incomplete"), warning("candidate-incomplete"))

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._records = history.records
        self._logs: dict[int, Log] = {}
        self._running: dict[int, int] = {}
        """Broker -> incarnation of its process."""
        self._up: set[int] = set()
        self._sessions: set[int] = set()
        self._isr: tuple[int, ...] = ()
        self._candidates: tuple[int, ...] = ()
        self._epoch = -1
        self._leader = 0
        self._required: dict[Batch, int] = {}
        """Index in `_order` of each batch that is still required."""
        self._order: list[Batch] = []
        """All batches that were ever required."""
        self._sound: dict[int, tuple[int, int]] = {}
        """Broker -> (length of the prefix of `_order` that its log was found to hold, its log start then)."""
        self._reported: set[tuple[str, int, int]] = set()

    def on_elected(self, step: steps.Elected) -> None:
        # Leaders of older epochs are no longer the newest leader.
        if step.epoch > self._epoch:
            self._epoch, self._leader = step.epoch, 0

    def on_lead(self, step: steps.Lead) -> None:
        broker = step.broker
        if broker in self._sessions:
            self._up.add(broker)
        if step.epoch >= self._epoch:
            self._epoch, self._leader = step.epoch, broker
            self._give_up(self._judge_all("leader-incomplete", broker, step.at_us))

    def on_follow(self, step: steps.Follow) -> None:
        # It adopted the control plane's state: it may be elected if it is a member with a session.
        if step.broker in self._sessions:
            self._arrives(step.broker, step.at_us)

    def on_isr(self, step: steps.Isr) -> None:
        self._persisted(step.isr, step.elr, step.at_us)

    def on_elr(self, step: steps.Elr) -> None:
        self._persisted(self._isr, step.elr, step.at_us)

    def on_hw(self, step: steps.HighWatermark) -> None:
        batches = step.committed
        if not batches:
            return
        required = self._required
        order = self._order
        for batch in batches:
            if batch not in required:
                required[batch] = len(order)
                order.append(batch)
        newest = batches[-1]
        for member in self._candidates:
            if member != step.broker and member in self._up:
                log = self._logs.get(member, _NO_LOG).batches
                if not log or log[-1] is not newest:
                    self._judge("candidate-incomplete", member, batches, step.at_us)
        if step.epoch < self._epoch and self._leader not in (0, step.broker):
            self._give_up(self._judge("leader-incomplete", self._leader, batches, step.at_us))

    def on_truncate(self, step: steps.Truncate) -> None:
        broker, removed = step.broker, step.removed
        if removed:
            self.removed(broker, removed)
            if broker in self._candidates and broker in self._up:
                required = self._required
                self._judge(
                    "candidate-incomplete", broker, [batch for batch in removed if batch in required], step.at_us
                )

    def on_start(self, step: steps.Start) -> None:
        self._running[step.broker] = step.incarnation

    def on_registered(self, step: steps.Registered) -> None:
        if step.opens and self._running.get(step.broker) == step.incarnation:
            self._sessions.add(step.broker)
            # With ZooKeeper, it becomes a candidate when it receives the partition's state.
            if step.kind is steps.UNFENCED:
                self._arrives(step.broker, step.at_us)

    def on_session_end(self, step: steps.SessionEnd) -> None:
        # It is not elected until it receives the state in its next session.
        if not step.fenced:
            self._up.discard(step.broker)
            self._sessions.discard(step.broker)

    def on_recovered(self, step: steps.Recovered) -> None:
        self.loaded(step.broker, step.replica)

    def on_deleted(self, step: steps.Deleted) -> None:
        self.removed(step.broker, step.removed)
        self.loaded(step.broker, step.replica)

    def on_end(self, step: steps.End) -> None:
        broker = step.broker
        if not step.was_down:
            self._running.pop(broker, None)
            self._up.discard(broker)
            self._sessions.discard(broker)
            if broker == self._leader:
                self._leader = 0
        self.removed(broker, step.lost)

    def loaded(self, broker: int, replica: Replica) -> None:
        """A process loaded its log, or has a new one."""
        known = self._logs.get(broker)
        if known is not None and known.batches is not replica.log.batches:
            self._sound.pop(broker, None)
        self._logs[broker] = replica.log

    def _arrives(self, broker: int, now_us: int) -> None:
        if broker in self._up:
            return
        self._up.add(broker)
        if broker in self._candidates:
            self._judge_all("candidate-incomplete", broker, now_us)

    def _persisted(self, isr: tuple[int, ...], elr: tuple[int, ...], now_us: int) -> None:
        before, self._isr = self._candidates, isr
        self._candidates = (*isr, *elr) if elr else isr
        for broker in self._candidates:
            if broker not in before and broker in self._up:
                self._judge_all("candidate-incomplete", broker, now_us)

    def removed(self, broker: int, batches: list[Batch]) -> None:
        """Batches were removed from a log: shorten the prefix that it was found to hold."""
        required = self._required
        found, log_start = self._sound.get(broker, (0, 0))
        if found:
            gone = min([required[batch] for batch in batches if batch in required], default=found)
            self._sound[broker] = (min(found, gone), log_start)

    def _give_up(self, batches: list[Batch]) -> None:
        for batch in batches:
            del self._required[batch]

    def _judge_all(self, kind: str, broker: int, now_us: int) -> list[Batch]:
        """`_judge` all required batches, except those that the broker's log was found to hold and still has."""
        order = self._order
        if not order:
            return []
        required, log = self._required, self._logs.get(broker, _NO_LOG)
        found, log_start = self._sound.get(broker, (0, 0))
        if log.log_start < log_start:
            found = 0
        self.decided = True
        if found == len(order):
            return []
        wanted = [batch for place, batch in enumerate(order[found:], found) if required.get(batch) == place]
        absent = [batch for batch in log.missing(wanted) if batch.last_offset >= log.log_start]
        self._sound[broker] = (required[absent[0]] if absent else len(order), log.log_start)
        return self._judge(kind, broker, absent, now_us)

    def _judge(self, kind: str, broker: int, batches: list[Batch], now_us: int) -> list[Batch]:
        """Look for batches in a broker's log; report and return those that are missing."""
        log = self._logs.get(broker, _NO_LOG)
        lacking = [
            batch
            for batch in log.missing(batches)
            if batch.last_offset >= log.log_start and not self._records.survive_in(log, batch)
        ]
        fresh = [batch for batch in lacking if (kind, broker, batch.first_id) not in self._reported]
        if fresh:
            self._reported.update((kind, broker, batch.first_id) for batch in fresh)
            ids = frozenset(record for batch in fresh for record in batch.ids())
            where = "ISR" if broker in self._isr else "ELR"
            place = f"leader {broker}" if kind == "leader-incomplete" else f"broker {broker} is in the {where} but"
            first = min(fresh, key=lambda batch: batch.first_id)
            detail = f"{place} lacks {named(ids, first.base_offset, 'committed record')}"
            self._warns(kind, now_us, detail, ids, (broker,))
        return lacking
