"""A broker of a cluster with ZooKeeper: registration and session, the controller's requests, ISR writes.

`sim.hosts.zk_controller.ControllerModule` hosts the controller that may be elected in this broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.config import Value
from sim.environment.network import Channel
from sim.hosts.broker import REFUSED, SHUTDOWN, Broker, Startup
from sim.hosts.hosted_replica import HostedReplica
from sim.hosts.peers import ZooKeeperSessions
from sim.hosts.zk_client import ZooKeeperClient
from sim.hosts.zk_controller import ControllerModule
from sim.hosts.zk_messages import (
    BROKERS_CHANGED,
    CONFIG_CHANGED,
    CONTROLLER_GONE,
    ISR_CHANGED,
    NOTIFY_ISR,
    PREFERRED_ELECTION,
    REASSIGNMENT_REQUESTED,
    TOPIC_CREATED,
    WRITE_ISR,
    ZOOKEEPER,
    Ping,
    RegistrationRequest,
    RegistrationResponse,
    ScriptedDecision,
    SessionExpired,
    WatchedEvent,
    ZooKeeperResponse,
)
from sim.hosts.zk_shutdown import ShutdownTries
from sim.kernel.build import COMPILED
from sim.kernel.message import ABOUT
from sim.kernel.scheduler import Event, Gate, IdleCall, noop
from sim.protocol import probes
from sim.protocol.messages import (
    FENCED_LEADER_EPOCH,
    NONE,
    STALE_BROKER_EPOCH,
    STALE_CONTROLLER_EPOCH,
    AbstractControlRequest,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControllerRequestBatch,
    ControlResponse,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from sim.protocol.zookeeper.election import BrokerInfo
from sim.protocol.zookeeper.zk_operations import NotifyIsrChange, WriteIsr

ISR_CHECK_US: Final = 2_500_000
ISR_QUIET_US: Final = 5_000_000
ISR_LATEST_US: Final = 60_000_000
"""Longest delay of ISR change notifications. Checked every 2.5 s: they are sent 5 s after the last change, or 60 s
after the last notification.

Kafka: ReplicaManager#maybePropagateIsrChanges (0.10.2-2.6), IsrChangePropagationConfig (3.9).
"""


class _PingTimer(Event):
    """Timer of the next ping."""

    __slots__ = ("_broker",)
    elision_safe = True

    def __init__(self, broker: ZooKeeperBroker) -> None:
        self._broker = broker

    def happen(self, _: Gate) -> None:
        self._broker.ping()


class ZooKeeperBroker(Broker):
    """One incarnation of a ZooKeeper broker; see `sim.hosts.broker.Broker` for the arguments. Kafka: KafkaServer."""

    __slots__ = (
        "_controller_epoch",
        "_decided_by",
        "_deleted_epochs",
        "_isr_announced_us",
        "_isr_changed_us",
        "_isr_changes",
        "_last_event",
        "_metadata_sent",
        "_registering",
        "_shutdown",
        "module",
        "zookeeper",
    )

    def __init__(self, startup: Startup) -> None:
        super().__init__(startup)
        self.zookeeper = ZooKeeperClient(self)
        self.module = ControllerModule(self, self.decide, self.settings, self.kernel, self.zookeeper.ask, self.reached)
        self._last_event = 0
        self._registering: RegistrationRequest | None = None
        self._controller_epoch = 0
        self._metadata_sent = (0, 0)
        self._decided_by: dict[str, int] = {}
        """Partition -> epoch of the controller that made the decision which it has adopted."""
        self._deleted_epochs: dict[str, int] = {}
        """Partition -> highest leader epoch known of the replica that it deleted last."""
        self._isr_changes: dict[str, None] = {}
        """The partitions whose ISRs it has changed since the last ISR change notification."""
        self._isr_changed_us = -1
        self._isr_announced_us = 0
        self._shutdown = ShutdownTries(self, self.zookeeper)

    def logs_loaded(self) -> None:
        """See `Broker.logs_loaded`; the broker is reachable from now on."""
        self.network.join(self)
        self._isr_announced_us = self.kernel.now_us
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
        self.module.dispose()

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
        self._deliver_backlog()

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
        assert self.partition is not None
        return Ping(self.node, self.zookeeper.session, self._last_event, self.partition.partition_epoch)

    def _canelide_pings(self, channel: Channel[ZooKeeperSessions]) -> bool:
        """Whether this and later pings will arrive and report nothing new while nothing else happens."""
        client, server = self.zookeeper, channel.target
        if self.zombie or client.session < 0 or client.pending or channel.usual_us >= self.settings.ping_us:
            return False
        partition = self.partition
        assert partition is not None
        return (
            self.network.is_steady(self, server)
            and server.is_keepalive(self.node, client.session, self._last_event, partition.partition_epoch)
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
        """See `Broker.on_config_changed`; a controller in this broker also handles a change of unclean election."""
        key, value = change
        if key == "unclean.leader.election.enable":
            self.module.controller.partitions.unclean_election = bool(value)
            self.module.controller.settings_changed()
        super().on_config_changed(change)

    # Requests of the controller.

    def on_control(self, batch: ControllerRequestBatch) -> None:
        """Handle a controller's requests.

        Kafka: KafkaApis#handleLeaderAndIsrRequest, KafkaApis#handleUpdateMetadataRequest,
        KafkaApis#handleStopReplicaRequest.
        """
        for request in batch.requests:
            if isinstance(request, LeaderAndIsrRequest):
                self.become_leader_or_follower(request)
            elif isinstance(request, UpdateMetadataRequest):
                self.update_metadata(request)
            else:
                assert isinstance(request, StopReplicaRequest)
                self.stop_replica(request)
        self.reply(batch.controller, ControlResponse(self.node, batch))

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> str:
        """Handle LeaderAndIsr; returns an error, if any. Kafka: ReplicaManager#becomeLeaderOrFollower (0.10.2-4.1)."""
        error = self._check_control(request)
        if not error:
            self._apply_decisions(request.states)
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
            self._set_metadata(request.states, request.live)
        return error

    def stop_replica(self, request: StopReplicaRequest) -> str:
        """Handle StopReplica: stop following or delete the replicas; returns an error, if any. That of a partition does
        not keep others from being stopped. Kafka: ReplicaManager#stopReplicas.
        """
        error = self._check_control(request)
        return error or max([self._stop(state, delete=request.delete) for state in request.states])

    def _stop(self, state: LeaderAndIsr, *, delete: bool) -> str:
        replica = self.replica(state.name)
        if replica is None:
            return NONE
        # Negative epochs: the topic is deleted, or the sender gives none.
        is_older = 0 <= state.leader_epoch < replica.partition.leader_epoch
        if is_older and self.decide.checks_stop_replica.yes():
            return FENCED_LEADER_EPOCH
        if delete:
            self._deleted_epochs[replica.name] = max(replica.partition.leader_epoch, state.leader_epoch)
            replica.delete()
        else:
            self.stop_fetching(replica.name)
        return NONE

    def on_scripted_decision(self, decision: ScriptedDecision) -> None:
        """Handle a script's decision, which replaces the controller's."""
        self._set_metadata((decision.state,), decision.live)
        self._apply_decisions((decision.state,))

    def _check_control(self, request: AbstractControlRequest) -> str:
        """Kafka: KafkaApis#isBrokerEpochStale (2.6)."""
        if request.broker_epoch < self.broker_epoch and self.decide.checks_broker_epochs.yes():
            self.reached(probes.STALE_BROKER)
            return STALE_BROKER_EPOCH
        mutant = self.decide.mutants.request_of_former_controller
        mutant.took = True
        if request.controller_epoch < self._controller_epoch and not mutant.differs():
            self.reached(probes.STALE_CONTROLLER)
            return STALE_CONTROLLER_EPOCH
        self._controller_epoch = max(self._controller_epoch, request.controller_epoch)
        return NONE

    def _apply_decisions(self, decisions: Sequence[LeaderAndIsr]) -> None:
        """Lead or follow partitions whose leader epochs are newer; ignore the other decisions with their partition
        epochs.

        The broker first leads all that it is to lead, then follows the others. Fetchers keep running meanwhile, and get
        all their partitions before they send the next request.
        Kafka: ReplicaManager#becomeLeaderOrFollower (0.10.2-4.1).
        """
        newer: list[tuple[HostedReplica, LeaderAndIsr]] = []
        for decision in decisions:
            known = self.replica(decision.name)
            leader_epoch = -1 if known is None else known.partition.leader_epoch
            is_outdated = decision.leader_epoch <= leader_epoch
            if not is_outdated and decision.leader_epoch <= self._deleted_epochs.get(decision.name, -1):
                is_outdated = self.decide.keeps_epoch_of_deleted.yes()
            if is_outdated or self.node not in decision.replicas:
                self.reached(probes.DECISION_OUTDATED)
            else:
                newer.append((self._create_replica(decision.name) if known is None else known, decision))
        if len(newer) == 1:
            replica, decision = newer[0]
            self._apply_decision(replica, decision)
        elif newer:
            self.begin_changes()
            led = [entry for entry in newer if entry[1].leader == self.node]
            for replica, _ in led:
                self.stop_fetching(replica.name)
            for replica, decision in led:
                self._apply_decision(replica, decision)
            for replica, decision in newer:
                if decision.leader != self.node:
                    self._apply_decision(replica, decision)
            self.end_changes()
        if newer:
            self._checkpoint_hw(self.kernel.now_us)

    def _apply_decision(self, replica: HostedReplica, decision: LeaderAndIsr) -> None:
        """Lead or follow; ignore a decision without a leader, or with one that is not alive in this broker's metadata.

        Kafka: ReplicaManager#makeLeaders (0.10.2-4.1), ReplicaManager#makeFollowers (0.10.2-4.1).
        """
        if decision.leader == self.node:
            self._decided_by[replica.name] = decision.controller_epoch
            self._become_leader(replica, decision)
            self.network.note_broker_change()
        elif decision.leader in self.live:
            self._decided_by[replica.name] = decision.controller_epoch
            self._become_follower(replica, decision)
        else:
            self.reached(probes.DECISION_DEAD_LEADER)

    # The ISR.

    def propose_isr(self, replica: HostedReplica, isr: tuple[int, ...]) -> None:
        """See `Broker.propose_isr`: write the ISR to ZooKeeper, conditional on the version this leader knows.

        Kafka: ZkPartitionStateStore#expandIsr (2.6), ZkPartitionStateStore#shrinkIsr (2.6), Partition#updateIsr
        (0.10.2-2.0).
        """
        partition = replica.partition
        known = LeaderAndIsr(
            partition.name,
            self.node,
            partition.leader_epoch,
            isr,
            partition.partition_epoch,
            (),
            self._decided_by.get(partition.name, 0),
        )
        followers = partition.followers.states
        members = {member: followers[member].broker_epoch for member in isr if member in followers}
        subject = (WRITE_ISR << ABOUT) + partition.partition_epoch
        self.zookeeper.ask(WriteIsr(known, isr, members), self._isr_written, subject, outlives_session=True)
        if partition.state.locked:
            self._set_waiting(waits=True)

    def _isr_written(self, answer: tuple[str, LeaderAndIsr]) -> None:
        """Kafka: ReplicaManager#recordIsrChange (0.10.2-2.6)."""
        error, state = answer
        replica = self.replica(state.name)
        assert replica is not None
        partition = replica.partition
        now_us = self.kernel.now_us
        if error:
            partition.isr_refused(error, now_us)
        else:
            if self._isr_changed_us < 0:
                self._announce_after(now_us)
            self._isr_changed_us = now_us
            self._isr_changes[partition.name] = None
            partition.isr_persisted(state.isr, state.partition_epoch, now_us)
            self.isr_expiration.schedule()
            self.network.note_broker_change()
        self._deliver_backlog()

    def _announce_after(self, now_us: int) -> None:
        """Schedule the next check, at the next multiple of the interval."""
        waits_us = ISR_CHECK_US - (now_us - self._isr_announced_us) % ISR_CHECK_US
        self.kernel.schedule(now_us + waits_us, self.life, IdleCall(self._announce_isr, None))

    def _announce_isr(self, _: object) -> None:
        """Kafka: ReplicaManager#maybePropagateIsrChanges (0.10.2-2.6)."""
        now_us = self.kernel.now_us
        if now_us <= self._isr_changed_us + ISR_QUIET_US and now_us <= self._isr_announced_us + ISR_LATEST_US:
            self._announce_after(now_us)
            return
        self._isr_changed_us = -1
        self._isr_announced_us = now_us
        assert self.partition is not None
        subject = (NOTIFY_ISR << ABOUT) + self.partition.partition_epoch
        names = tuple(self._isr_changes)
        self._isr_changes.clear()
        self.zookeeper.ask(NotifyIsrChange(names), noop, subject, outlives_session=True)

    def put_back(self, event: Event) -> None:
        """See `HostingBroker.put_back`."""
        self.backlog.put(self.life, event)

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
