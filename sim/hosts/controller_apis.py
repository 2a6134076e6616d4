"""How the active controller of a quorum answers the requests of brokers.

Requests that arrive while another controller takes over wait, as brokers resend requests until they are answered.
"""

from __future__ import annotations

from sim.history import steps
from sim.hosts.control_plane import ControlPlane
from sim.hosts.controller_server import ControllerServer
from sim.protocol.kraft.metadata import BrokerRegistration
from sim.protocol.kraft.quorum_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    GetReplicaLogInfoResponse,
)
from sim.protocol.kraft.replication_control_manager import NotAssignedError
from sim.protocol.messages import NONE, UNKNOWN_SERVER_ERROR


class ControllerApis:
    """See the module. Kafka: ControllerApis."""

    __slots__ = ("_plane", "_server")

    def __init__(self, plane: ControlPlane, server: ControllerServer) -> None:
        self._plane = plane
        self._server = server

    # Registrations and heartbeats.

    def on_register(self, request: BrokerRegistrationRequest) -> None:
        """Handle a registration.

        Kafka: ControllerApis#handleBrokerRegistration, QuorumController#registerBroker.
        """
        broker, server = request.broker, self._server
        known = server.active.image.brokers.get(broker)
        again = known is not None and known.incarnation == request.incarnation
        error, broker_epoch = UNKNOWN_SERVER_ERROR, -1
        try:
            registered = server.active.register(
                broker, request.incarnation, request.previous_broker_epoch, request.directories
            )
            error, broker_epoch = registered.error, registered.broker_epoch
        except NotAssignedError as exception:
            server.event_failed(exception)
        if not error and again:
            server.sessions.note_reregistration(broker)
        elif not error:
            server.sessions.registered(broker)
            step = steps.Registered(steps.REGISTERED, broker, request.incarnation, opens=False)
            self._plane.recorder.record_for_all(step)
        server.send(broker, BrokerRegistrationResponse(request, error, broker_epoch))
        if not error:
            server.log.send(broker, 0)

    def on_heartbeat(self, heartbeat: BrokerHeartbeatRequest) -> bool:
        """Handle a heartbeat; False if the broker is not registered by this incarnation, or the controller resigns.

        Kafka: ControllerApis#handleBrokerHeartBeatRequest, QuorumController#processBrokerHeartbeat.
        """
        broker, server = heartbeat.broker, self._server
        known = server.active.image.brokers.get(broker)
        if known is None or known.broker_epoch != heartbeat.broker_epoch:
            return False
        offline = heartbeat.offline_directories
        changes = offline or heartbeat.cordoned != known.cordoned
        if changes or not self._keeps_alive(known, heartbeat.metadata_offset, want_fence=heartbeat.want_fence):
            self._plane.end_elision()
        server.sessions.note_heartbeat(broker, self._plane.kernel.now_us)
        try:
            answer = server.active.heartbeat(
                broker,
                heartbeat.broker_epoch,
                heartbeat.metadata_offset,
                want_fence=heartbeat.want_fence,
                want_shut_down=heartbeat.want_shut_down,
                offline_directories=offline,
                cordoned=heartbeat.cordoned,
            )
        except NotAssignedError as exception:
            self._answer_heartbeat(BrokerHeartbeatResponse(heartbeat, UNKNOWN_SERVER_ERROR))
            server.event_failed(exception)
            return False
        self._answer_heartbeat(
            BrokerHeartbeatResponse(
                heartbeat,
                answer.error,
                is_caught_up=answer.is_caught_up,
                is_fenced=answer.is_fenced,
                should_shut_down=answer.should_shut_down,
            )
        )
        return True

    def _answer_heartbeat(self, reply: BrokerHeartbeatResponse) -> None:
        channel = self._plane.reach(reply.request.broker)
        if channel is not None:
            channel.send_usually(reply)

    # Elision of heartbeats: see `sim.environment.elision`.

    def is_keepalive(self, broker: int, broker_epoch: int, metadata_offset: int, *, want_fence: bool) -> bool:
        """Whether a heartbeat with these fields would only keep the session.

        A broker that has replayed the whole log gets later records in time while its link is steady. One that starts
        stays fenced, and its offset matters only when it has read its registration.
        """
        known = self._server.active.image.brokers.get(broker)
        return (
            known is not None
            and known.broker_epoch == broker_epoch
            and self._keeps_alive(known, metadata_offset, want_fence=want_fence)
        )

    def _keeps_alive(self, known: BrokerRegistration, metadata_offset: int, *, want_fence: bool) -> bool:
        """`is_keepalive` for the current incarnation of a broker."""
        server = self._server
        if known.fenced:
            starts = want_fence and metadata_offset < known.registered_offset
            return starts and server.sessions.is_open(known.broker)
        for entry in server.active.image.brokers.values():
            if entry.shutting_down:
                return False
        return server.log.keeps_up(known.broker, metadata_offset)

    def deliver_response(self, heartbeat: BrokerHeartbeatRequest, arrives_us: int) -> None:
        """See `QuorumSessions.deliver_response`."""
        channel = self._plane.reach(heartbeat.broker)
        assert channel is not None
        starts = heartbeat.want_fence
        reply = BrokerHeartbeatResponse(heartbeat, NONE, is_caught_up=not starts, is_fenced=starts)
        channel.deliver_at(arrives_us, reply)

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """See `SessionKeeper.resume_expiry`; each elided heartbeat reported the metadata offset."""
        sessions = self._server.sessions
        sessions.suspended.discard(broker)
        if last_us >= 0:
            sessions.note_heartbeat(broker, last_us)
            self._server.active.note_metadata_offset(broker, metadata_offset)
        sessions.schedule_check(broker)

    # The metadata log.

    def fetch_metadata(self, fetch: tuple[int, int]) -> None:
        """See `QuorumSessions.fetch_metadata`; the log is sent to registered brokers only."""
        broker, first = fetch
        if broker in self._server.sessions.brokers:
            self._server.log.fetch(broker, first)

    # Replicas.

    def on_alter_partition(self, request: AlterPartitionRequest) -> None:
        """Handle a leader's proposal of another ISR.

        Kafka: ControllerApis#handleAlterPartitionRequest, QuorumController#alterPartition.
        """
        server = self._server
        error, results = server.active.alter_partition(request.broker, request.broker_epoch, request.changes)
        server.send(request.broker, AlterPartitionResponse(request, error, results))

    def on_assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> None:
        """Handle a change of a replica's log directory; the outcome is in the metadata log.

        Kafka: ControllerApis#handleAssignReplicasToDirs, QuorumController#assignReplicasToDirs.
        """
        server = self._server
        try:
            server.active.assign_directory(request.name, request.broker, request.broker_epoch, request.directory)
        except NotAssignedError as exception:
            server.event_failed(exception)

    def on_replica_log_info(self, info: GetReplicaLogInfoResponse) -> None:
        """Handle a broker's log end offset and epoch."""
        self._server.active.on_log_info(info)
