"""ISR changes of a leader in a cluster with ZooKeeper: they are written there, and announced to the controller."""

from __future__ import annotations

from typing import Final

from sim.hosts.broker import Broker
from sim.hosts.hosted_replica import HostedReplica, HostedReplicas
from sim.hosts.zk_client import ZooKeeperClient
from sim.hosts.zk_messages import NOTIFY_ISR, WRITE_ISR
from sim.kernel.message import ABOUT
from sim.kernel.scheduler import IdleCall, noop
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.zk_operations import NotifyIsrChange, WriteIsr

ISR_CHECK_US: Final = 2_500_000
ISR_QUIET_US: Final = 5_000_000
ISR_LATEST_US: Final = 60_000_000
"""Longest delay of ISR change notifications. Checked every 2.5 s: they are sent 5 s after the last change, or 60 s
after the last notification.

Kafka: ReplicaManager#maybePropagateIsrChanges (0.10.2-2.6), IsrChangePropagationConfig (3.9).
"""


class ZkIsrManager:
    """See the module. Kafka: ZkPartitionStateStore (2.6).

    Attributes:
        decided_by: partition -> epoch of the controller that made the decision which the broker has adopted.
    """

    __slots__ = ("_announced_us", "_broker", "_changed_us", "_changes", "_replicas", "_zookeeper", "decided_by")

    def __init__(self, broker: Broker, replicas: HostedReplicas, zookeeper: ZooKeeperClient) -> None:
        self._broker = broker
        self._replicas = replicas
        self._zookeeper = zookeeper
        self.decided_by: dict[str, int] = {}
        self._changes: dict[str, None] = {}
        """The partitions whose ISRs it has changed since the last ISR change notification."""
        self._changed_us = -1
        self._announced_us = 0

    def begin(self) -> None:
        """Begin to announce changes."""
        self._announced_us = self._broker.kernel.now_us

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        """See `HostedReplicas.propose_isr`: write the ISR to ZooKeeper, conditional on the version this leader knows.

        Kafka: ZkPartitionStateStore#expandIsr (2.6), ZkPartitionStateStore#shrinkIsr (2.6), Partition#updateIsr
        (0.10.2-2.0).
        """
        partition = replica.partition
        known = LeaderAndIsr(
            partition.name,
            self._broker.node,
            partition.leader_epoch,
            isr,
            partition.partition_epoch,
            (),
            self.decided_by.get(partition.name, 0),
        )
        followers = partition.followers.states
        members = {member: followers[member].broker_epoch for member in isr if member in followers}
        subject = (WRITE_ISR << ABOUT) + partition.partition_epoch
        self._zookeeper.ask(WriteIsr(known, isr, members), self._isr_written, subject, outlives_session=True)
        if partition.state.locked:
            self._broker.backlog.set_waiting(waits=True)

    def _isr_written(self, answer: tuple[str, LeaderAndIsr]) -> None:
        """Kafka: ReplicaManager#recordIsrChange (0.10.2-2.6)."""
        error, state = answer
        broker, replica = self._broker, self._replicas.replica(state.name)
        if replica is None:  # The topic is deleted.
            broker.deliver_backlog()
            return
        partition = replica.partition
        now_us = broker.kernel.now_us
        if error:
            partition.isr_refused(error, now_us)
        else:
            if self._changed_us < 0:
                self._announce_after(now_us)
            self._changed_us = now_us
            self._changes[partition.name] = None
            partition.isr_persisted(state.isr, state.partition_epoch, now_us)
            self._replicas.isr_expiration.schedule()
            broker.network.note_broker_change()
        broker.deliver_backlog()

    def _announce_after(self, now_us: int) -> None:
        """Schedule the next check, at the next multiple of the interval."""
        waits_us = ISR_CHECK_US - (now_us - self._announced_us) % ISR_CHECK_US
        self._broker.kernel.schedule(now_us + waits_us, self._broker.life, IdleCall(self._announce, None))

    def _announce(self, _: object) -> None:
        """Kafka: ReplicaManager#maybePropagateIsrChanges (0.10.2-2.6)."""
        now_us, first = self._broker.kernel.now_us, self._broker.partition
        if now_us <= self._changed_us + ISR_QUIET_US and now_us <= self._announced_us + ISR_LATEST_US:
            self._announce_after(now_us)
            return
        self._changed_us = -1
        self._announced_us = now_us
        subject = (NOTIFY_ISR << ABOUT) + (-1 if first is None else first.partition_epoch)
        names = tuple(self._changes)
        self._changes.clear()
        self._zookeeper.ask(NotifyIsrChange(names), noop, subject, outlives_session=True)
