"""The control plane of a KRaft cluster: a quorum of controllers, as brokers and administrators see it.

Brokers reach the active one: `ControllerServer` is its process, and `ControllerApis` answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sim.config import Value
from sim.environment.elision import ElidingBroker
from sim.history import steps
from sim.hosts.control_plane import ControlPlaneSetup, PartitionSetup
from sim.hosts.controller_apis import ControllerApis
from sim.hosts.controller_server import ControllerServer
from sim.hosts.metadata_history import candidates
from sim.hosts.peers import QuorumSessions
from sim.hosts.quorum_plane import unsettled
from sim.kernel.scheduler import Event
from sim.protocol.kraft.metadata import MIN_ISR, ConfigRecord, PartitionRegistration
from sim.protocol.kraft.partition_change_builder import DESIGNATED, UNCLEAN
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    GetReplicaLogInfoResponse,
)
from sim.protocol.kraft.replication_control_manager import LONGEST_AGGRESSIVE, NotAssignedError
from sim.protocol.messages import UNKNOWN_SERVER_ERROR
from sim.protocol.replica.partition import NO_LEADER

FORCED: Final = (UNCLEAN, DESIGNATED, LONGEST_AGGRESSIVE)
"""Kinds of elections by which an administrator accepts data loss."""


class ControllerQuorum(QuorumSessions):
    """See the module.

    Attributes:
        server: the process of the active controller.
        apis: answers brokers.
    """

    __deletable__ = ("apis", "server")

    server: ControllerServer
    apis: ControllerApis

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        self.server = ControllerServer(self, setup)
        self.session_us = self.server.settings.session_us
        self.apis = ControllerApis(self, self.server)

    def dispose(self) -> None:
        self.server.dispose()
        del self.apis, self.server

    def receive(self, message: Event) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            if self.apis.on_heartbeat(message) and self.state.partition_epoch < 0:
                self._create()
        elif isinstance(message, AlterPartitionRequest):
            self.apis.on_alter_partition(message)
        elif isinstance(message, BrokerRegistrationRequest):
            self.apis.on_register(message)
        elif isinstance(message, GetReplicaLogInfoResponse):
            self.apis.on_replica_log_info(message)
        elif isinstance(message, AssignReplicasToDirsRequest):
            self.apis.on_assign_replicas_to_dirs(message)
        else:
            super().receive(message)

    def _create(self) -> None:
        """Create all partitions, once all brokers are unfenced."""
        active = self.server.active
        brokers = active.image.brokers
        if len(brokers) == self._brokers and all(active.image.is_active(broker) for broker in brokers):
            first, *others = self.setups.values()
            active.create_partition(first.name, first.replicas)
            active.create_topic({setup.name: setup.replicas for setup in others})

    # Faults of controllers.

    def fail_over(self) -> bool:
        return self.server.fail_over(self.server.settings.election_us)

    def pause_controller(self, broker: int, pause: Callable[[int], bool]) -> bool:  # noqa: ARG002
        """See `ControlPlane.pause_controller`: the others elect one of them; the paused one can no longer commit."""
        settings = self.server.settings
        return self.server.fail_over(settings.fetch_timeout_us + settings.election_us)

    def renew_sessions(self) -> None:
        """See `ControlPlane.renew_sessions`: all sessions are renewed."""
        self.server.sessions.renew_sessions()

    def delay_metadata(self, broker: int, by_us: int) -> bool:
        self.end_elision()
        self.server.log.delay(broker, by_us)
        self.recorder.record(steps.MetadataDelay(broker, by_us))
        return True

    # Sessions.

    def has_session(self, broker: int) -> bool:
        return self.server.has_session(broker)

    def is_keepalive(self, broker: int, broker_epoch: int, metadata_offset: int, *, want_fence: bool) -> bool:
        return self.apis.is_keepalive(broker, broker_epoch, metadata_offset, want_fence=want_fence)

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """See `BrokerHeartbeatTracker.cannot_expire`."""
        return self.server.sessions.cannot_expire(broker, arrives_us, interval_us)

    def response_latency_us(self, broker: int) -> int:
        """See `QuorumSessions.response_latency_us`."""
        channel = self.reach(broker)
        assert channel is not None
        return channel.usual_us

    def deliver_response(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        self.apis.deliver_response(heartbeat, arrives_us)

    def fetch_metadata(self, fetch: tuple[int, int]) -> None:
        self.apis.fetch_metadata(fetch)

    def suspend_expiry(self, broker: int) -> None:
        self.server.sessions.suspended.add(broker)

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:
        self.apis.resume_expiry(broker, last_us, metadata_offset)

    def expire_silently(self, broker: int) -> bool:
        known = self.server.active.image.brokers.get(broker)
        if known is None or known.fenced or self.frozen:
            return False
        self.end_elision()
        self.server.sessions.end(broker)
        self.server.active.fence(broker)
        return True

    # State of the quorum.

    def _judge(self) -> QuorumController:
        return self.server.active

    def unsettled_brokers(self, brokers: Iterable[int], running: Mapping[int, ElidingBroker]) -> str:
        end = len(self.server.log.records)
        behind = sorted(broker for broker, process in running.items() if process.metadata_offset != end)
        return unsettled(self.server.active.image, brokers, behind)

    # Operations of an administrator.

    def _is_known(self, name: str) -> bool:
        """Whether an active controller knows a partition."""
        return not self.frozen and self.state.partition_epoch >= 0 and self.exists(name)

    def elect_leader(self, kind: str, desired: int = NO_LEADER, name: str = "") -> bool:
        """See `ControlPlane.elect_leader`. Kafka: QuorumController#electLeaders."""
        if not self._is_known(name):
            return False
        before, self.server.history.forced = self.server.history.forced, self.server.history.forced or kind in FORCED
        try:
            error = self.server.active.elect(name or self.first, kind, desired)
        except NotAssignedError as exception:
            error = UNKNOWN_SERVER_ERROR
            self.server.event_failed(exception)
        if error:
            self.server.history.forced = before
        return not error

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """See `ControlPlane.reassign`. Kafka: QuorumController#alterPartitionReassignments."""
        return self._is_known(name) and not self.server.active.reassign(name or self.first, replicas)

    def cancel_reassignment(self, name: str = "") -> bool:
        """See `ControlPlane.cancel_reassignment`: unclean if no electable replica is in the resulting ISR."""
        if not self._is_known(name):
            return False
        before = candidates(self.state_of(name))
        if self.server.active.cancel_reassignment(name or self.first):
            return False
        after = self.state_of(name).isr
        if after and set(before).isdisjoint(after):
            self.recorder.of(name).record(steps.Fact(steps.UNCLEAN_ELECTION, after[0]))
        return True

    def place(self, first: int, count: int, replication_factor: int) -> list[tuple[int, ...]]:
        """See `ControlPlane.place`: none before the first topic is created."""
        if not self._is_known(""):
            return []
        _, found = self.server.active.place(self._in_order, first, count, replication_factor)
        return found

    def create_partitions(self, setups: Sequence[PartitionSetup]) -> None:
        """See `ControlPlane.create_partitions`. Kafka: QuorumController#createTopics."""
        super().create_partitions(setups)
        self.server.active.create_topic({setup.name: setup.replicas for setup in setups})

    def delete_topic(self, names: tuple[str, ...]) -> bool:
        """See `ControlPlane.delete_topic`. Kafka: QuorumController#deleteTopics."""
        return not self.frozen and not self.server.active.delete_topic(names)

    def unregister(self, broker: int) -> bool:
        """See `ControlPlane.unregister`. Kafka: QuorumController#unregisterBroker."""
        if self.frozen or self.state.partition_epoch < 0:
            return False
        return not self.server.active.unregister(broker)

    def set_config(self, key: str, value: Value) -> None:
        """See `ControlPlane.set_config`. Kafka: QuorumController#incrementalAlterConfigs."""
        self.perform(self._set_config, (key, value))

    def _set_config(self, change: tuple[str, Value]) -> None:
        key, value = change
        if not self.server.active.set(key, value):
            self.acknowledged[key] = value
        if key == MIN_ISR:
            self.set_min_isr(int(value))

    def settings_in_force(self, name: str) -> dict[str, Value]:
        state = self.state_of(name)
        return self.server.active.settings_in_force(state) if isinstance(state, PartitionRegistration) else {}

    def settings_arrived(self, broker: int, broker_epoch: int, received: int) -> bool:  # noqa: ARG002 - for ZooKeeper
        return not any(isinstance(record, ConfigRecord) for record in self.server.log.records[received:])
