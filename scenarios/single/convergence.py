"""Convergence: waits until a healed cluster is whole again, and proves it with a write and a read.

Converged means: there is a leader that knows it; the ISR contains all assigned replicas; their logs end equally; one
acks=all write was acknowledged and read back. Equal logs (`sim.checkers.divergence`) either all contain an
acknowledged write, or none does (`sim.checkers.committed_loss`).

With a quorum, Vanlightly's specification adds: all brokers are unfenced and have replayed the whole metadata log; no
leader waits for an ISR change; no reassignment is under way; every write was answered or has expired.

Nothing polls: the control plane's decisions, the write and the read trigger the checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from sim.history.findings import Violation
from sim.history.steps import Converged
from sim.hosts.cluster import Cluster
from sim.kernel.scheduler import ALWAYS
from sim.protocol.batch import Batch
from sim.protocol.client.sender import ProducerBatch

RETRY_US: Final = 5_000_000
"""Time until a validation that did not show convergence is repeated."""
ATTEMPT_US: Final = 60_000_000
"""Timeout of a validation, whose write or read may be lost."""


class Convergence:
    """Waits for convergence of a healed cluster and validates it, by writes of records from `first_id` on; then stops
    the kernel.
    """

    def __init__(self, cluster: Cluster, first_id: int) -> None:
        self._cluster = cluster
        self._next_id = first_id
        self._writing = False
        self._awaited = -1
        self.converged = False
        self.acked = False

    def begin(self) -> None:
        """Start watching."""
        self._cluster.control.changed = self._check
        self._check()

    def _is_whole(self) -> bool:
        cluster = self._cluster
        return sorted(cluster.control.state.isr) == sorted(cluster.replicas) and all(
            broker in cluster.running for broker in cluster.replicas
        )

    def _check(self) -> None:
        """Write once the ISR is full."""
        if not self._writing and not self.converged and self._is_whole():
            self._writing = True
            record = self._next_id
            self._next_id += 1
            kernel = self._cluster.kernel
            self._cluster.producer.send(ProducerBatch(record, 1, -1, kernel.now_us, partial(self._written, record)))
            kernel.call_at(kernel.now_us + ATTEMPT_US, ALWAYS, self._give_up, record)

    def _give_up(self, record: int) -> None:
        if self._writing and record == self._next_id - 1:
            self._writing = False
            self._check()

    def _written(self, record: int, offset: int) -> None:
        self.acked = True
        self._awaited = record
        validator = self._cluster.validator(offset, self._read)
        validator.fetch()

    def _read(self, batches: Sequence[Batch]) -> None:
        self._writing = False
        led = self._cluster.leader is not None  # A leader that knows the latest decision.
        whole = led and self._is_whole() and batches[0].first_id == self._awaited and self._have_equal_ends()
        if whole and not (self._unsettled_brokers() or self._unsettled_work()):
            self.converged = True
            self._cluster.recorder.record(Converged(0))
            self._cluster.kernel.stop()
        kernel = self._cluster.kernel
        kernel.call_at(kernel.now_us + RETRY_US, ALWAYS, lambda _: self._check(), None)

    def _have_equal_ends(self) -> bool:
        partitions = [self._cluster.running[broker].partition for broker in self._cluster.replicas]
        return len({partition.log.leo if partition else -1 for partition in partitions}) == 1

    def _unsettled_brokers(self) -> str:
        cluster = self._cluster
        return cluster.control.unsettled_brokers(cluster.settings, cluster.running)

    def _unsettled_work(self) -> str:
        cluster = self._cluster
        return cluster.control.unsettled_work(cluster.leader, writes_answered=cluster.producer.idle)

    def failure(self, now_us: int) -> Violation | None:
        """The violation at the deadline: no-progress or stuck-replica; None if converged."""
        if self.converged:
            return None
        cluster = self._cluster
        if cluster.leader is None:
            return Violation("no-progress", now_us, "no leader at the deadline after healing")
        missing = [broker for broker in cluster.replicas if broker not in cluster.control.state.isr]
        down = [broker for broker in cluster.replicas if broker not in cluster.running]
        if missing or down:
            detail = f"at the deadline after healing, out of the ISR: {missing}, not running: {down}"
            return Violation("stuck-replica", now_us, detail)
        if not self.acked:
            return Violation("no-progress", now_us, "no acks=all write was acknowledged after healing")
        brokers, work = self._unsettled_brokers(), self._unsettled_work()
        if brokers:
            return Violation("stuck-replica", now_us, f"at the deadline after healing, {brokers}")
        if work:
            return Violation("no-progress", now_us, f"at the deadline after healing, {work}")
        return Violation("stuck-replica", now_us, "a write was acknowledged after healing, but not read or replicated")
