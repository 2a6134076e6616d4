"""Checkers and listeners that are told of steps by what matters of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from sim.checkers import (
    committed_loss,
    completeness,
    consistent_reads,
    consumer_skip,
    divergence,
    epoch_leaders,
    exposed_loss,
    global_loss,
    hw_regression,
    idempotence,
    log_matching,
    maximal_isr,
    recovery_quorum,
)
from sim.checkers.checker import LogsChecker, RunEnd
from sim.history import availability, metrics, steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sim.history.findings import LossCount
    from sim.history.history import History
    from sim.protocol.batch import Batch
    from sim.protocol.kraft.metadata import PartitionRegistration
    from sim.protocol.log.log import Log
    from sim.protocol.messages import LeaderAndIsr
    from sim.protocol.replica.partition import Partition
    from sim.protocol.replica.replica import Replica

S = TypeVar("S", bound=steps.Step)


def made(kind: type[S], **fields: Any) -> S:
    """A step that has only these fields."""
    step = kind.__new__(kind)
    for name, value in fields.items():
        setattr(step, name, value)
    return step


def end_of(log: Log | None = None, hw: int = 0, *, logs: Sequence[Log] = (), now_us: int = 0) -> RunEnd:
    """The end of a run whose leader has this log, if it has one."""
    leader: Any = None if log is None else SimpleNamespace(log=log, hw=hw)
    return RunEnd(leader, logs, {}, now_us)


class Completeness(completeness.Completeness):
    def elected(self, epoch: int) -> None:
        self.on_elected(made(steps.Elected, epoch=epoch))

    def lead(self, broker: int, epoch: int, now_us: int) -> None:
        self.on_lead(made(steps.Lead, broker=broker, epoch=epoch, at_us=now_us))

    def told(self, broker: int, now_us: int) -> None:
        self.on_follow(made(steps.Follow, broker=broker, at_us=now_us))

    def isr(self, isr: tuple[int, ...], elr: tuple[int, ...], now_us: int) -> None:
        self.on_isr(made(steps.Isr, isr=isr, elr=elr, at_us=now_us))

    def committed(self, broker: int, epoch: int, batches: list[Batch], now_us: int) -> None:
        self.on_hw(made(steps.HighWatermark, broker=broker, epoch=epoch, committed=batches, at_us=now_us))

    def truncated(self, broker: int, removed: list[Batch], now_us: int) -> None:
        self.on_truncate(made(steps.Truncate, broker=broker, removed=removed, at_us=now_us))

    def session(self, broker: int, now_us: int = 0, kind: steps.StepKind = steps.REGISTERED) -> None:
        self.on_start(steps.Start(broker, 1))
        step = steps.Registered(kind, broker, 1)
        step.at_us = now_us
        self.on_registered(step)

    def unfenced(self, broker: int, now_us: int) -> None:
        self.session(broker, now_us, steps.UNFENCED)

    def session_end(self, broker: int) -> None:
        self.on_session_end(steps.SessionEnd(broker))

    def ended(self, broker: int) -> None:
        self.on_end(steps.End(broker, steps.KILL, []))


class ConsistentReads(consistent_reads.ConsistentReads):
    @property
    def epoch(self) -> int:
        return self._epoch

    def elected(self, epoch: int) -> None:
        self.on_elected(made(steps.Elected, epoch=epoch))

    def lead(self, broker: int, epoch: int, log: Log, now_us: int) -> None:
        partition: Any = SimpleNamespace(log=log)
        self.on_lead(made(steps.Lead, broker=broker, epoch=epoch, partition=partition, at_us=now_us))

    def read(self, fresh: int, now_us: int) -> None:
        self.on_read(made(steps.Read, epoch=-2, batches=[None] * fresh, at_us=now_us))

    def ended(self, broker: int) -> None:
        self.on_end(steps.End(broker, steps.KILL, []))


class ConsumerSkip(consumer_skip.ConsumerSkip):
    def check(self, log: Log, hw: int, now_us: int) -> None:
        self.final(end_of(log, hw, now_us=now_us))


class Divergence(divergence.Divergence):
    def unsettled(self, broker: int) -> None:
        self.on_follow(made(steps.Follow, broker=broker, restarts=True))

    def compare_all(self, replicas: Mapping[int, Replica], now_us: int, leader: int = 1) -> None:
        """The end of a run that this broker leads; 0: none does."""
        live: Any = replicas
        self.final(RunEnd(live.get(leader), [], live, now_us))


class EpochLeaders(epoch_leaders.EpochLeaders):
    def lead(self, broker: int, epoch: int, now_us: int) -> None:
        self.on_lead(made(steps.Lead, broker=broker, epoch=epoch, at_us=now_us))


class _Logs(LogsChecker):
    def loaded(self, broker: int, replica: Replica) -> None:
        self.on_recovered(made(steps.Recovered, broker=broker, _replica=replica))

    def lost(self, broker: int, batches: list[Batch], now_us: int = 0) -> None:
        step = steps.End(broker, steps.KILL, batches)
        step.at_us = now_us
        self.on_end(step)


class GlobalLoss(_Logs, global_loss.GlobalLoss):
    def removed(self, batches: list[Batch], now_us: int) -> None:
        self.on_truncate(made(steps.Truncate, removed=batches, at_us=now_us))


class LogMatching(_Logs, log_matching.LogMatching):
    pass


class MaximalIsr(maximal_isr.MaximalIsr):
    def elected(self, epoch: int) -> None:
        self.on_elected(made(steps.Elected, epoch=epoch))

    def lead(self, partition: Partition, decision: LeaderAndIsr, now_us: int) -> None:
        self.on_lead(made(steps.Lead, partition=partition, decision=decision, at_us=now_us))


class RecoveryQuorum(recovery_quorum.RecoveryQuorum):
    def changed(
        self, state: PartitionRegistration, min_isr: int, unclean: int, now_us: int, *, remembers: bool
    ) -> None:
        step = steps.PartitionChanged(state, min_isr, unclean, remembers=remembers)
        step.at_us = now_us
        self.on_partition_changed(step)


def check_committed(history: History, logs: Sequence[Log], now_us: int) -> LossCount:
    committed_loss.CommittedLoss(history).final(end_of(logs=logs, now_us=now_us))
    return history.findings.losses


def check_exposed(history: History, log: Log, now_us: int) -> None:
    exposed_loss.ExposedLoss(history).final(end_of(log, now_us=now_us))


def check_idempotence(history: History, log: Log, now_us: int) -> None:
    idempotence.Idempotence(history).final(end_of(log, now_us=now_us))


def check_answer(history: History, known: steps.Exposed | None, end: int, leader_epoch: int, now_us: int) -> None:
    step = steps.EndOffset(known, 0, end, leader_epoch)
    step.at_us = now_us
    hw_regression.HwRegression(history).on_end_offset(step)


class Availability(availability.Availability):
    def elected(self, leader: int, epoch: int, now_us: int) -> None:
        self.on_elected(made(steps.Elected, broker=leader, epoch=epoch, at_us=now_us))

    def leads(self, broker: int, epoch: int, now_us: int) -> None:
        self.on_lead(made(steps.Lead, broker=broker, epoch=epoch, at_us=now_us))

    def leads_no_more(self, broker: int, now_us: int) -> None:
        self.on_follow(made(steps.Follow, broker=broker, at_us=now_us))

    def ended(self, broker: int, now_us: int) -> None:
        self.on_end(made(steps.End, broker=broker, was_down=False, at_us=now_us))

    def stands_still(self, broker: int, now_us: int, by: int) -> None:
        step = steps.Pause(steps.PAUSE if by > 0 else steps.RESUME, broker)
        step.at_us = now_us
        self.on_pause(step)

    def told(self, first_id: int, error: str) -> None:
        self.on_refused(made(steps.Refused, request=SimpleNamespace(first_id=first_id), error=error))


class Metrics(metrics.Metrics):
    def decided(self, state: LeaderAndIsr, min_isr: int, now_us: int) -> None:
        self.on_decided(made(steps.Decided, state=state, min_isr=min_isr, at_us=now_us))
