"""Convergence: waits until a healed cluster is whole again, and proves it with a write and a read.

Converged means: there is a leader that knows it; the ISR contains all assigned replicas; their logs end equally; one
acks=all write was acknowledged and read back. Equal logs (`sim.checkers.divergence`) either all contain an
acknowledged write, or none does (`sim.checkers.committed_loss`).

With a quorum, Vanlightly's specification adds: all brokers are unfenced and have replayed the whole metadata log; no
leader waits for an ISR change; no reassignment is under way; every write was answered or has expired.

Afterwards, the consumer of the partition must read on (`stuck-consumer`): the write is read by another one.

Nothing polls: the control plane's decisions, the write and the read trigger the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sim.history.findings import Violation
from sim.history.steps import Converged
from sim.hosts.broker import Broker
from sim.hosts.cluster import Cluster
from sim.hosts.topics import ClusterPartition
from sim.kernel.scheduler import ALWAYS
from sim.protocol.batch import Batch
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.messages import LeaderAndIsr

RETRY_US: Final = 5_000_000
"""Time until a validation that did not show convergence is repeated."""
ATTEMPT_US: Final = 60_000_000
"""Timeout of a validation, whose write or read may be lost."""


class Convergence:
    """Waits for convergence of a healed cluster, and stops the kernel when each partition has converged.

    `partitions` has the convergence of each of them.
    """

    def __init__(self, cluster: Cluster, first_id: int) -> None:
        self._cluster = cluster
        self._first_id = first_id
        self.partitions = [
            PartitionConvergence(cluster, partition, first_id, self._note) for partition in cluster.partitions
        ]

    def add(self, partition: ClusterPartition, first_id: int) -> None:
        """Wait for a new partition, too."""
        self.partitions.append(PartitionConvergence(self._cluster, partition, self._first_id + first_id, self._note))

    def remove(self, partition: ClusterPartition) -> None:
        """Wait no longer for a partition, because its topic was deleted."""
        self.partitions = [convergence for convergence in self.partitions if convergence.name != partition.name]

    def begin(self) -> None:
        """Start watching."""
        self._cluster.control.changed = self._check
        self._check()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.partitions.clear()

    @property
    def converged(self) -> bool:
        """Whether all partitions have converged."""
        # From the last one, which mostly converges last.
        return all(convergence.converged for convergence in reversed(self.partitions))

    def _check(self) -> None:
        settled = not self.partitions[0].unsettled_brokers()
        for partition in self.partitions:
            if not (partition.converged or partition.writing):
                partition.check(settled=settled)

    def _note(self) -> None:
        """A partition has converged."""
        if self.converged:
            self._cluster.kernel.stop()


class PartitionConvergence:
    """Waits for convergence of a partition and validates it, by writes of records from `first_id` on; then calls
    `done`.

    Attributes:
        writing: whether a validation is under way.
    """

    def __init__(self, cluster: Cluster, partition: ClusterPartition, first_id: int, done: Callable[[], None]) -> None:
        self._cluster = cluster
        self._partition = partition
        self.name = partition.name
        self._done = done
        self._next_id = first_id
        self.writing = False
        self._checks_again = False
        self._awaited = -1
        self.converged = False
        self.acked = False

    @property
    def _state(self) -> LeaderAndIsr:
        return self._cluster.control.state_of(self._partition.name)

    @property
    def _leader(self) -> Broker | None:
        return self._cluster.leader_of(self._partition.name)

    def _replicas(self) -> tuple[int, ...]:
        """The replicas that can be in sync: all but those in log directories that were not repaired."""
        replicas = self._state.replicas
        offline = self._cluster.machines.offline_replicas(self.name, replicas)
        return tuple([broker for broker in replicas if broker not in offline]) if offline else replicas

    def _is_whole(self, *, before_write: bool = False) -> bool:
        """Whether the ISR has all these replicas and no other, and they run.

        A replica in a failed directory may be in the ISR until the next write, because it lags only then
        (Kafka: Partition.isFollowerOutOfSync).
        """
        isr, replicas = self._state.isr, self._replicas()
        if before_write and len(replicas) < len(self._state.replicas):
            isr = tuple([broker for broker in isr if broker in replicas])
        if len(isr) != len(replicas) or (isr != replicas and sorted(isr) != sorted(replicas)):
            return False
        running = self._cluster.running
        return all(broker in running for broker in replicas)

    def check(self, *, settled: bool | None = None) -> None:
        """Write once the ISR is full; `settled` is whether all brokers are, if that is known."""
        if not self.writing and not self.converged and self._is_whole(before_write=True):
            if self._is_untouched:
                self._check_untouched(settled=not self.unsettled_brokers() if settled is None else settled)
                return
            self._partition.join()
            self.writing = True
            record = self._next_id
            self._next_id += 1
            kernel = self._cluster.kernel
            self._partition.producer.send(ProducerBatch(record, 1, -1, kernel.now_us, partial(self._written, record)))
            kernel.call_at(kernel.now_us + ATTEMPT_US, ALWAYS, self._give_up, record)

    def _give_up(self, record: int) -> None:
        if self.writing and record == self._next_id - 1:
            self.writing = False
            self.check()

    def _written(self, record: int, offset: int) -> None:
        self.acked = True
        self._awaited = record
        validator = self._partition.validator(offset, self._read)
        validator.fetch()

    def _read(self, batches: Sequence[Batch]) -> None:
        self.writing = False
        led = self._leader is not None  # A leader that knows the latest decision.
        whole = led and self._is_whole() and batches[0].first_id == self._awaited and self._have_equal_ends()
        if whole and not (self.unsettled_brokers() or self._unsettled_work()):
            self._converge()
        kernel = self._cluster.kernel
        kernel.call_at(kernel.now_us + RETRY_US, ALWAYS, lambda _: self.check(), None)

    @property
    def _is_untouched(self) -> bool:
        """Whether an idle partition is in the state in which it was created: then a write would show nothing."""
        return self._partition.idle and self._state.partition_epoch == 0

    def _check_untouched(self, *, settled: bool) -> None:
        """Wait until all brokers know such a partition."""
        if settled and self._leader is not None and self._have_equal_ends():
            self._converge()
        elif not self._checks_again:
            self._checks_again = True
            kernel = self._cluster.kernel
            kernel.call_at(kernel.now_us + RETRY_US, ALWAYS, self._check_again, None)

    def _check_again(self, _: object) -> None:
        self._checks_again = False
        self.check()

    def _converge(self) -> None:
        self.converged = True
        self._partition.recorder.record(Converged(0))
        self._done()

    def _have_equal_ends(self) -> bool:
        running, name = self._cluster.running, self._partition.name
        replicas = [running[broker].replica(name) for broker in self._replicas()]
        return len({replica.partition.log.leo if replica else -1 for replica in replicas}) == 1

    def unsettled_brokers(self) -> str:
        """See `ControlPlane.unsettled_brokers`."""
        cluster = self._cluster
        return cluster.control.unsettled_brokers(cluster.settings, cluster.running)

    def _unsettled_work(self) -> str:
        leader, answered = self._leader, self._partition.writes_answered
        changes_isr = leader is not None and leader.changes_isr
        return self._cluster.control.unsettled_work(self._state, changes_isr=changes_isr, writes_answered=answered)

    @property
    def waits_for_directory(self) -> bool:
        """Whether nothing is left but a reassignment, and one of its target replicas is in a log directory that stays
        broken: since 3.8 it completes when all of them are in the ISR.
        """
        cluster, state = self._cluster, self._state
        adding, removing = cluster.control.reassignment(state)
        offline = cluster.machines.offline_replicas(self.name, state.replicas)
        reassigning = cluster.control.unsettled_work(state, changes_isr=False, writes_answered=True)
        is_broken = any(broker in offline and broker not in removing for broker in state.replicas)
        return bool(adding or removing) and is_broken and self._unsettled_work() == reassigning

    def failure(self, now_us: int) -> Violation | None:
        """The violation at the deadline: no-progress or stuck-replica; None if converged."""
        if self.converged:
            return None
        if self._leader is None:
            return Violation("no-progress", now_us, "no leader at the deadline after healing")
        isr, replicas = self._state.isr, self._replicas()
        missing = [broker for broker in replicas if broker not in isr]
        down = [broker for broker in replicas if broker not in self._cluster.running]
        if missing or down:
            detail = f"at the deadline after healing, out of the ISR: {missing}, not running: {down}"
            return Violation("stuck-replica", now_us, detail)
        if not self.acked and not self._is_untouched:
            return Violation("no-progress", now_us, "no acks=all write was acknowledged after healing")
        brokers, work = self.unsettled_brokers(), self._unsettled_work()
        if brokers:
            return Violation("stuck-replica", now_us, f"at the deadline after healing, {brokers}")
        if work:
            return Violation("no-progress", now_us, f"at the deadline after healing, {work}")
        return Violation("stuck-replica", now_us, "a write was acknowledged after healing, but not read or replicated")

    def stuck_consumer(self, now_us: int) -> Violation | None:
        """The violation of a partition that converged and whose consumer reads no further; a consumer begins with the
        first batch.
        """
        if not self.converged or self._partition.idle or not self._partition.consumer.is_stuck:
            return None
        at = self._partition.consumer.cursor
        detail = f"when all was whole again, the consumer at offset {at.offset} waited for nothing"
        return Violation("stuck-consumer", now_us, detail)
