"""Kafka's metrics of a partition's health, as time series, under Kafka's names.

Values change only when the control plane decides, so nothing is polled: decisions are kept, and the series are computed
at the end. Integrals are value times ms, over the window of `sim.history.availability`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.history import steps
from sim.history.steps import BatchFailed, ControllerCrashed, Elected, End, Listener, Settled, Truncate
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.messages import LeaderAndIsr

METRICS: Final[dict[str, str]] = {
    "UnderReplicatedPartitions": "1 while a replica is not in the ISR",
    "UnderMinIsrPartitionCount": "1 while the ISR is smaller than min.insync.replicas",
    "OfflinePartitionsCount": "1 while the control plane has chosen no leader",
    "ElectableLeaders": "members of ISR and ELR (KIP-966)",
    "UncleanRecoveryPartitionsCount": "unclean recoveries that run or wait (KIP-966)",
    "UncleanRecoveryFinishedCount": "unclean recoveries that elected a leader (KIP-966)",
    "ManualLeaderElectionRequiredPartitionCount": "1 while only an administrator can choose a leader (KIP-966)",
}
"""Name -> meaning, for one partition."""

Series = list[tuple[int, int]]
"""(time in us, value from then on), without repetitions."""


class Metrics(steps.Listener):
    """Keeps the decisions from which metrics are computed."""

    def __init__(self) -> None:
        self._decisions: list[tuple[int, LeaderAndIsr, int]] = []
        self._recoveries: list[tuple[int, int, int, int]] = []

    def on_decided(self, step: steps.Decided) -> None:
        self._decisions.append((step.at_us, step.state, step.min_isr))

    def on_recoveries(self, step: steps.Recoveries) -> None:
        self._recoveries.append((step.at_us, step.running, step.finished, step.manual))

    @property
    def size(self) -> int:
        """Number of kept entries."""
        return len(self._decisions) + len(self._recoveries)

    def series(self) -> dict[str, Series]:
        """Name -> points; of several values at the same time the last counts."""
        found: dict[str, Series] = {name: [] for name in METRICS}
        for now_us, state, min_isr in self._decisions:
            isr = len(state.isr)
            elr = len(state.elr) if isinstance(state, PartitionRegistration) else 0
            _note(found["UnderReplicatedPartitions"], int(isr < len(state.replicas)), now_us)
            _note(found["UnderMinIsrPartitionCount"], int(isr < min_isr), now_us)
            _note(found["OfflinePartitionsCount"], int(state.leader == 0), now_us)
            _note(found["ElectableLeaders"], isr + elr, now_us)
        for now_us, running, finished, manual in self._recoveries:
            _note(found["UncleanRecoveryPartitionsCount"], running, now_us)
            _note(found["UncleanRecoveryFinishedCount"], finished, now_us)
            _note(found["ManualLeaderElectionRequiredPartitionCount"], manual, now_us)
        return found

    def under_min_isr_us(self, window_us: tuple[int, int]) -> int:
        """How long the ISR was smaller than ``min.insync.replicas``, within a span of time."""
        total_us, until_us = 0, window_us[1]
        for now_us, state, min_isr in reversed(self._decisions):
            if len(state.isr) < min_isr:
                total_us += max(0, until_us - max(now_us, window_us[0]))
            until_us = min(until_us, now_us)
        return total_us


def _note(points: Series, value: int, now_us: int) -> None:
    if points and points[-1][0] == now_us:
        points.pop()
    if not points or points[-1][1] != value:
        points.append((now_us, value))


def integral_ms(points: Series, window_us: tuple[int, int]) -> int:
    """Integral of a metric over a span of time: for a 0/1 metric, how many ms it was 1."""
    begin_us, end_us = window_us
    ends = [at_us for at_us, _ in points[1:]] + [end_us]
    spans = zip(points, ends, strict=True) if points else ()
    return sum(value * max(0, min(until, end_us) - max(at_us, begin_us)) for (at_us, value), until in spans) // 1_000


class Counts(Listener):
    """Counts of a run.

    Attributes:
        elections: leaders elected by the control plane.
        truncations: truncations that removed records.
        lossy_ends: incarnations that lost records at their end or while their machine was down, each by its broker and
            the time of its end in us: several partitions may lose records with one.
        batches_failed: batches that a producer gave up.
        controller_crashes: exceptions by which an active controller resigned.
        rounds: completed truncations that took one, two, or more OffsetsForLeaderEpoch responses.
    """

    of_cluster: ClassVar[bool] = True

    def __init__(self) -> None:
        self.elections = 0
        self.truncations = 0
        self.rounds = [0, 0, 0]
        self.lossy_ends: set[tuple[int, int]] = set()
        self.batches_failed = 0
        self.controller_crashes = 0
        self._ended: dict[int, tuple[int, int]] = {}
        """Broker -> its last incarnation that ended, as in `lossy_ends`."""

    def on_elected(self, step: Elected) -> None:
        self.elections += step.broker > 0

    def on_truncate(self, step: Truncate) -> None:
        self.truncations += bool(step.removed)

    def on_batch_failed(self, step: BatchFailed) -> None:  # noqa: ARG002
        self.batches_failed += 1

    def on_controller_crashed(self, step: ControllerCrashed) -> None:  # noqa: ARG002
        self.controller_crashes += 1

    def on_settled(self, step: Settled) -> None:
        if step.rounds:
            self.rounds[min(step.rounds, 3) - 1] += 1

    def on_end(self, step: End) -> None:
        if not step.was_down:
            self._ended[step.broker] = step.broker, step.at_us
        if step.lost and step.broker in self._ended:
            self.lossy_ends.add(self._ended[step.broker])
