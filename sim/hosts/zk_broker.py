"""A broker of a cluster with ZooKeeper: registration and session, the controller's requests, ISR writes.

`sim.hosts.zk_controller.ControllerModule` hosts the controller that may be elected in this broker.
"""

from __future__ import annotations

from sim.config import Value
from sim.environment.network import Channel
from sim.hosts.broker import REFUSED, SHUTDOWN, Broker, Startup
from sim.hosts.broker_metadata_cache import BrokerMetadataCache
from sim.hosts.peers import ZooKeeperSessions
from sim.hosts.zk_client import ZooKeeperClient
from sim.hosts.zk_controller import ControllerModule
from sim.hosts.zk_messages import (
    BROKERS_CHANGED,
    CONFIG_CHANGED,
    CONTROLLER_GONE,
    ISR_CHANGED,
    PREFERRED_ELECTION,
    REASSIGNMENT_REQUESTED,
    TOPIC_CREATED,
    TOPIC_DELETION_REQUESTED,
    ZOOKEEPER,
    Ping,
    RegistrationRequest,
    RegistrationResponse,
    ScriptedDecision,
    SessionExpired,
    WatchedEvent,
    ZooKeeperResponse,
)
from sim.hosts.zk_replica_manager import ZkReplicaManager
from sim.hosts.zk_shutdown import ShutdownTries
from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, Gate
from sim.protocol import probes
from sim.protocol.messages import (
    NONE,
    STALE_BROKER_EPOCH,
    STALE_CONTROLLER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    AbstractControlRequest,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControllerRequestBatch,
    ControlResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from sim.protocol.zookeeper.election import BrokerInfo


class _PingTimer(Event):
    """Timer of the next ping."""

    __slots__ = ("_broker",)
    elision_safe = True

    def __init__(self, broker: ZooKeeperBroker) -> None:
        self._broker = broker

    def happen(self, _: Gate) -> None:
        self._broker.ping()


class ZooKeeperBroker(Broker):
    """One incarnation of a ZooKeeper broker; see `Startup` for the arguments. Kafka: KafkaServer.

    Attributes:
        zookeeper: its session and requests.
        module: the controller that may be elected in it.
        zk_replicas: its replicas, as `Broker.replica_manager`.
    """

    __deletable__ = ("zk_replicas",)
    __slots__ = (
        "_controller_epoch",
        "_last_event",
        "_metadata_sent",
        "_registering",
        "_shutdown",
        "module",
        "zk_replicas",
        "zookeeper",
    )

    def __init__(self, startup: Startup) -> None:
        super().__init__(startup)
        self.zookeeper = ZooKeeperClient(self)
        metadata = BrokerMetadataCache(self.network)
        self.zk_replicas = ZkReplicaManager(self, metadata, self.zookeeper, startup.min_isrs, startup.places)
        self._compose(metadata, self.zk_replicas)
        self.module = ControllerModule(self, self.decide, self.settings, self.kernel, self.zookeeper.ask, self.reached)
        self._last_event = 0
        self._registering: RegistrationRequest | None = None
        self._controller_epoch = 0
        self._metadata_sent = (0, 0)
        self._shutdown = ShutdownTries(self, self.zookeeper)

    def logs_loaded(self) -> None:
        """See `Broker.logs_loaded`; the broker is reachable from now on."""
        self.network.join(self)
        self.zk_replicas.isr_manager.begin()
        self._register()
        first_us = self.kernel.now_us + self.first_interval_us(self.settings.ping_us)
        self.kernel.schedule_first(first_us, self.life, _PingTimer(self))

    @property
    def ready(self) -> bool:
        return self.broker_epoch >= 0

    def receive_other(self, message: Event) -> None:
        if isinstance(message, ControllerRequestBatch):
            self.on_control(message)
        elif isinstance(message, ControlResponse):
            self.module.on_control_reply(message)
        elif isinstance(message, ZooKeeperResponse):
            self.zookeeper.replied(message)
        elif isinstance(message, WatchedEvent):
            self.on_watched_event(message)
        elif isinstance(message, RegistrationResponse):
            self.on_registered(message)
        elif isinstance(message, SessionExpired):
            self.on_session_expired(message)
        elif isinstance(message, ControlledShutdownRequest):
            self.module.on_controlled_shutdown(message)
        elif isinstance(message, ControlledShutdownResponse):
            self._shutdown.replied(message)
        elif isinstance(message, ScriptedDecision):
            self.on_scripted_decision(message)
        else:
            super().receive_other(message)

    def end(self) -> None:
        super().end()
        self.zookeeper.end()
        self.module.end()
        self._shutdown.end()

    def dispose(self) -> None:
        super().dispose()
        self.module.dispose()
        del self.zk_replicas

    def peer_up(self, peer: int) -> None:
        super().peer_up(peer)
        self.module.peer_up(peer)

    # ZooKeeper.

    def _register(self) -> None:
        """Kafka: KafkaZkClient#registerBroker (2.6-3.9), KafkaZkClient#registerBrokerInZk (1.1-2.0),
        KafkaHealthcheck#register (0.10.2).
        """
        log_ends = {name: replica.partition.log.end for name, replica in self.replicas.items()}
        self._registering = RegistrationRequest(self.node, BrokerInfo(self.incarnation, log_ends))
        self.to_control(self._registering)

    def on_registered(self, reply: RegistrationResponse) -> None:
        """Handle registration: a session is open, or the broker exits because an earlier registration still exists."""
        if reply.request is not self._registering:
            return
        self._registering = None
        if reply.broker_epoch < 0:
            self.reached(probes.REGISTRATION_REFUSED)
            self.exit(REFUSED)
            return
        self.broker_epoch = self.zookeeper.session = reply.broker_epoch
        self._last_event = 0
        for key, value in reply.config.items():
            self.on_config_changed((key, value))
        self.zookeeper.resend()
        if not reply.controller:
            self.module.elect()
        self.deliver_backlog()

    def ping(self) -> None:
        """Ping, and resend unanswered requests; repeats until the process ends."""
        channel: Channel[ZooKeeperSessions] | None = self.out.get(ZOOKEEPER)
        interval_us = self.settings.ping_us
        if channel is not None and self._canelide_pings(channel) and self.elide_pings(channel, interval_us):
            return
        if not self.zombie:
            if self.zookeeper.session < 0:
                self._register()
            else:
                channel = self.reach(ZOOKEEPER)
                assert channel is not None
                channel.send_usually(self._new_ping())
                self.zookeeper.resend()
        self.kernel.schedule_first(self.kernel.now_us + interval_us, self.life, _PingTimer(self))

    def _new_ping(self) -> Ping:
        return Ping(self.node, self.zookeeper.session, self._last_event, self._first_epoch)

    @property
    def _first_epoch(self) -> int:
        """The partition epoch of the first partition; -1 without a replica, because its topic was deleted."""
        partition = self.partition
        return -1 if partition is None else partition.partition_epoch

    def _canelide_pings(self, channel: Channel[ZooKeeperSessions]) -> bool:
        """Whether this and later pings will arrive and report nothing new while nothing else happens."""
        client, server = self.zookeeper, channel.target
        if self.zombie or client.session < 0 or client.pending or channel.usual_us >= self.settings.ping_us:
            return False
        return (
            self.network.is_steady(self, server)
            and server.is_keepalive(self.node, client.session, self._last_event, self._first_epoch)
            and server.cannot_expire(self.node, self.kernel.now_us + channel.usual_us, self.settings.ping_us)
        )

    def resume_pings(self, channel: Channel[ZooKeeperSessions], sent_us: int, next_us: int) -> None:
        arrives_us = sent_us + channel.usual_us
        if arrives_us > self.kernel.now_us:
            channel.deliver_at(arrives_us, self._new_ping())
        self.kernel.schedule_first(next_us, self.life, _PingTimer(self))

    def on_session_expired(self, expired: SessionExpired) -> None:
        """Handle session expiry: resign as controller and register again.

        Kafka: zookeeper.ZooKeeperClient#reinitialize (1.1-3.9), KafkaHealthcheck.SessionExpireListener#handleNewSession
        (0.10.2).
        """
        if expired.broker_epoch != self.zookeeper.session or self.zombie:
            return
        self.reached(probes.EXPIRY_HEARD)
        self.zookeeper.expired()
        self.module.session_lost()
        self._register()

    def on_watched_event(self, notice: WatchedEvent) -> None:
        """Handle a watch event. A lost one is resent after reconnecting."""
        if notice.broker_epoch == self.zookeeper.session and notice.number > self._last_event and not self.zombie:
            if notice.number == self._last_event + 1:
                self._last_event = notice.number
            self._handle_event(notice)

    def _handle_event(self, notice: WatchedEvent) -> None:
        what, controller = notice.what, self.module.controller
        if what == CONTROLLER_GONE:
            self.module.on_controller_gone()
        elif what == BROKERS_CHANGED:
            controller.brokers_changed()
        elif what == TOPIC_CREATED:
            controller.topic_created(notice.names)
        elif what == TOPIC_DELETION_REQUESTED:
            controller.topics_deleted()
        elif what == ISR_CHANGED:
            controller.isr_changed(notice.names)
        elif what == PREFERRED_ELECTION:
            controller.preferred_election(notice.names)
        elif what == REASSIGNMENT_REQUESTED:
            controller.reassignment_requested(notice.names)
        else:
            assert what == CONFIG_CHANGED
            assert notice.change is not None
            self.on_config_changed(notice.change)

    def on_config_changed(self, change: tuple[str, Value]) -> None:
        """See `BrokerNode.on_config_changed`; a controller in this broker also handles a change of unclean election."""
        key, value = change
        if key == "unclean.leader.election.enable":
            self.module.controller.partitions.unclean_election = bool(value)
            self.module.controller.settings_changed()
        super().on_config_changed(change)

    @property
    def received_changes(self) -> int:
        return self._last_event

    def settings_in_force(self, name: str) -> dict[str, Value]:
        """See `Broker.settings_in_force`; whether elections may be unclean, as its controller knows it."""
        unclean = self.module.controller.partitions.unclean_election
        return {**super().settings_in_force(name), "unclean.leader.election.enable": unclean}

    # Requests of the controller.

    def on_control(self, batch: ControllerRequestBatch) -> None:
        """Handle a controller's requests.

        Kafka: KafkaApis#handleLeaderAndIsrRequest, KafkaApis#handleUpdateMetadataRequest,
        KafkaApis#handleStopReplicaRequest.
        """
        deleted: dict[str, str] = {}
        for request in batch.requests:
            if isinstance(request, LeaderAndIsrRequest):
                self.become_leader_or_follower(request)
            elif isinstance(request, UpdateMetadataRequest):
                self.update_metadata(request)
            else:
                assert isinstance(request, StopReplicaRequest)
                _, errors = self.stop_replicas(request)
                if request.delete:
                    deleted.update(errors)
        self.reply(batch.controller, ControlResponse(self.node, batch, deleted))

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> str:
        """Handle LeaderAndIsr; returns an error, if any. Kafka: ReplicaManager#becomeLeaderOrFollower (0.10.2-4.1)."""
        error = self._check_control(request)
        if not error:
            self.zk_replicas.become_leader_or_follower(request.states)
        return error

    def update_metadata(self, request: UpdateMetadataRequest) -> str:
        """Handle UpdateMetadata, which serves clients; returns an error, if any.

        Leader epochs are not compared, so metadata can go back, unless rule ``broker_metadata`` prevents that.
        Kafka: ReplicaManager#maybeUpdateMetadataCache, server.MetadataCache#updateCache (0.10.2-2.0),
        server.MetadataCache#updateMetadata (2.6).
        """
        error = self._check_control(request)
        if not error:
            sent = request.controller_epoch, request.number
            if sent < self._metadata_sent and self.decide.takes_last_sent_metadata.yes():
                return error
            self._metadata_sent = sent
            self.metadata.update(request.states, request.live)
        return error

    def stop_replicas(self, request: StopReplicaRequest) -> tuple[str, dict[str, str]]:
        """Handle StopReplica: stop following or delete the replicas. Returns an error, if the request is refused, and
        the errors by partition. That of a partition does not keep others from being stopped.

        Kafka: ReplicaManager#stopReplicas.
        """
        error = self._check_control(request)
        if error:
            return error, {}
        replicas, delete = self.zk_replicas, request.delete
        return NONE, {state.name: replicas.stop_replica(state, delete=delete) for state in request.states}

    def on_scripted_decision(self, decision: ScriptedDecision) -> None:
        """Handle a script's decision, which replaces the controller's."""
        self.metadata.update((decision.state,), decision.live)
        self.zk_replicas.become_leader_or_follower((decision.state,))

    def _check_control(self, request: AbstractControlRequest) -> str:
        """Kafka: KafkaApis#isBrokerEpochStale (2.6)."""
        if request.broker_epoch > self.broker_epoch and self.decide.refuses_newer_broker_epochs.yes():
            return UNKNOWN_SERVER_ERROR
        if request.broker_epoch < self.broker_epoch and self.decide.checks_broker_epochs.yes():
            self.reached(probes.STALE_BROKER)
            return STALE_BROKER_EPOCH
        is_former = request.controller_epoch < self._controller_epoch
        if self.decide.mutants.request_of_former_controller.keeps(is_former):
            self.reached(probes.STALE_CONTROLLER)
            return STALE_CONTROLLER_EPOCH
        self._controller_epoch = max(self._controller_epoch, request.controller_epoch)
        return NONE

    # Controlled shutdown.

    def begin_shutdown(self) -> None:
        if self.zookeeper.session < 0:
            self.exit(SHUTDOWN)
        else:
            self._shutdown.begin()


def _on_control_reply(broker: ZooKeeperBroker, reply: ControlResponse) -> None:
    broker.module.on_control_reply(reply)


def _on_zookeeper_reply(broker: ZooKeeperBroker, reply: ZooKeeperResponse) -> None:
    broker.zookeeper.replied(reply)


if not COMPILED:
    ZooKeeperBroker.handlers = {
        **Broker.handlers,
        ControllerRequestBatch: ZooKeeperBroker.on_control,
        ControlResponse: _on_control_reply,
        ZooKeeperResponse: _on_zookeeper_reply,
        WatchedEvent: ZooKeeperBroker.on_watched_event,
    }
