"""The replicas of a broker with ZooKeeper, which lead and follow as the controller's requests say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.hosts.broker import Broker
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.replica_manager import ReplicaManager
from sim.hosts.zk_client import ZooKeeperClient
from sim.hosts.zk_isr_manager import ZkIsrManager
from sim.protocol import probes
from sim.protocol.messages import EPOCH_DURING_DELETE, FENCED_LEADER_EPOCH, NONE, LeaderAndIsr


class ZkReplicaManager(ReplicaManager):
    """See the module. Kafka: ReplicaManager (0.10.2-4.4).

    Attributes:
        isr_manager: writes ISR changes.
    """

    __deletable__ = ("isr_manager",)
    __slots__ = ("_deleted_epochs", "isr_manager")

    def __init__(
        self,
        broker: Broker,
        metadata: BrokerMetadataCache,
        zookeeper: ZooKeeperClient,
        min_isrs: Mapping[str, int],
        places: Mapping[str, int],
    ) -> None:
        super().__init__(broker, metadata, min_isrs, places)
        self.isr_manager = ZkIsrManager(broker, self, zookeeper)
        self._deleted_epochs: dict[str, int] = {}
        """Partition -> highest leader epoch known of the replica that it deleted last."""

    def dispose(self) -> None:
        super().dispose()
        del self.isr_manager

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        self.isr_manager.propose_isr(replica, isr)

    def become_leader_or_follower(self, decisions: Sequence[LeaderAndIsr]) -> None:
        """Lead or follow partitions whose leader epochs are newer; ignore the other decisions with their partition
        epochs.

        The broker first leads all that it is to lead, then follows the others. Fetchers keep running meanwhile, and get
        all their partitions before they send the next request.
        Kafka: ReplicaManager#becomeLeaderOrFollower (0.10.2-4.1).
        """
        broker = self.broker
        newer: list[tuple[HostedReplica, LeaderAndIsr]] = []
        for decision in decisions:
            known = self.replica(decision.name)
            leader_epoch = -1 if known is None else known.partition.leader_epoch
            is_outdated = decision.leader_epoch <= leader_epoch
            if not is_outdated and decision.leader_epoch <= self._deleted_epochs.get(decision.name, -1):
                is_outdated = broker.decide.keeps_epoch_of_deleted.yes()
            if is_outdated or broker.node not in decision.replicas:
                broker.reached(probes.DECISION_OUTDATED)
            else:
                newer.append((self.create_replica(decision.name) if known is None else known, decision))
        if len(newer) == 1:
            replica, decision = newer[0]
            self._apply(replica, decision)
        elif newer:
            fetchers = self.fetchers.manager
            fetchers.begin_changes()
            led = [entry for entry in newer if entry[1].leader == broker.node]
            for replica, _ in led:
                fetchers.remove(replica.name)
            for replica, decision in led:
                self._apply(replica, decision)
            for replica, decision in newer:
                if decision.leader != broker.node:
                    self._apply(replica, decision)
            fetchers.end_changes(broker.kernel.now_us)
        if newer:
            self.checkpoint_hw(broker.kernel.now_us)

    def _apply(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        """Lead or follow; ignore a decision without a leader, or with one that is not alive in this broker's metadata.

        Kafka: ReplicaManager#makeLeaders (0.10.2-4.1), ReplicaManager#makeFollowers (0.10.2-4.1).
        """
        decided_by = self.isr_manager.decided_by
        if decision.leader == self.broker.node:
            decided_by[replica.name] = decision.controller_epoch
            self.become_leader(replica, decision)
            self.broker.network.note_broker_change()
        elif decision.leader in self.metadata.live:
            decided_by[replica.name] = decision.controller_epoch
            self.become_follower(replica, decision)
        else:
            self.broker.reached(probes.DECISION_DEAD_LEADER)

    def stop_replica(self, state: LeaderAndIsr, *, delete: bool) -> str:
        """Stop following a partition, or delete its replica; returns an error, if any.

        Rule ``stopped_writes`` decides whether writes that wait are answered. Those that are not are looked at again
        when the broker leads or follows this partition anew.
        """
        replica = self.replica(state.name)
        if replica is None:
            return NONE
        # Negative epochs: the topic is to be deleted, or the sender gives none.
        is_older = 0 <= state.leader_epoch < replica.partition.leader_epoch
        if is_older and self.broker.decide.checks_stop_replica.yes():
            return FENCED_LEADER_EPOCH
        if delete:
            writes = replica.partition.delayed
            keeps_writes = bool(writes.waiting) and not self.broker.decide.answers_stopped_writes.yes()
            kept = writes.take() if keeps_writes else []
            self._deleted_epochs[replica.name] = max(replica.partition.leader_epoch, state.leader_epoch)
            if state.leader_epoch == EPOCH_DURING_DELETE:
                self.remove_replica(replica)
                self.broker.network.note_broker_change()
            else:
                replica.delete()
                replica.partition.delayed.waiting = kept
        else:
            self.fetchers.manager.remove(replica.name)
        return NONE
