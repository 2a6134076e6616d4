"""ZooKeeper: sessions with their ephemeral nodes, and the few nodes that Kafka's controller and leaders use.

One ideal server: it is linearizable, and loses nothing when paused. Clients keep a session by pings; a broker's
registration and the controller node are ephemeral. Watch events are messages and may arrive late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sim.config import Value
from sim.history import steps
from sim.hosts.control_plane import ControlPlaneSetup, PartitionSetup
from sim.hosts.peers import ZooKeeperSessions
from sim.hosts.zk_messages import (
    CONFIG_CHANGED,
    PREFERRED_ELECTION,
    REASSIGNMENT_REQUESTED,
    SCRIPT,
    TOPIC_CREATED,
    Ping,
    RegistrationRequest,
    RegistrationResponse,
    ScriptedDecision,
    SessionExpired,
    ZooKeeperRequest,
    ZooKeeperResponse,
)
from sim.hosts.zk_tree import Executed, Session, ZkTree
from sim.kernel.scheduler import Event, Gate
from sim.protocol import decisions, probes
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.messages import LeaderAndIsr, topic_of
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.zookeeper.election import BrokerInfo
from sim.protocol.zookeeper.kafka_zk_client import ControllerMovedError
from sim.protocol.zookeeper.zk_operations import MOVED, Result

LOST_US: Final = 1_000_000
"""A watch event that was not acknowledged after this time is taken for lost."""


class _SessionTimeout(Event):
    """Checks whether a session has expired."""

    __slots__ = ("_broker", "_session", "_zookeeper")
    elision_safe = True

    def __init__(self, zookeeper: ZooKeeper, broker: int, session: Session) -> None:
        self._zookeeper = zookeeper
        self._broker = broker
        self._session = session

    def happen(self, _: Gate) -> None:
        self._zookeeper.check_session(self._broker, self._session)


class ZooKeeper(ZooKeeperSessions):
    """The ZooKeeper server.

    Attributes:
        tree: its nodes.
        sessions: open sessions by broker.
        config: dynamic configuration.
    """

    __deletable__ = ("tree",)

    first_controller = 0
    """What the controller node has at the start."""
    tree: ZkTree

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        session_ms = setup.config["zookeeper.session.timeout.ms"]
        assert isinstance(session_ms, int)
        self.session_us = session_ms * 1_000
        self.tree = ZkTree(self, self.first_controller)
        self.sessions = self.tree.sessions
        self._decide = setup.decide
        self._in_order = setup.in_order
        self.config: dict[str, Value] = {}
        self._executed: dict[int, Executed] = {}
        """The executed requests of the newest process of each broker. An ended process may have an open session, which
        refers to those of that process.
        """

    @property
    def controller(self) -> int:
        return self.tree.controller

    def dispose(self) -> None:
        del self.tree

    def note_process(self, broker: int, decide: decisions.Decisions) -> None:
        """Note a new process of a broker, by whose rules its requests are executed."""
        self._executed[broker] = Executed(decide)

    def receive(self, message: Event) -> None:
        if isinstance(message, ZooKeeperRequest):
            self.on_request(message)
        elif isinstance(message, Ping):
            self.on_ping(message)
        elif isinstance(message, RegistrationRequest):
            self.on_register(message)
        else:
            super().receive(message)

    # Sessions.

    def on_register(self, request: RegistrationRequest) -> None:
        """Open a session, unless an earlier session holds the broker's registration.

        Kafka: KafkaZkClient#registerBroker (2.6-3.9), KafkaZkClient#registerBrokerInZk (1.1-2.0).
        """
        broker = request.broker
        session = self.sessions.get(broker)
        if session is None:
            broker_epoch = self._register(broker, request.info)
        elif session.incarnation == request.info.incarnation:
            broker_epoch = session.broker_epoch  # The first response was lost.
        else:
            broker_epoch = -1
        self.tree.send(broker, RegistrationResponse(request, broker_epoch, self.controller, dict(self.config)))

    def _register(self, broker: int, info: BrokerInfo) -> int:
        now_us, zxid = self.kernel.now_us, self.tree.next_zxid()
        session = self.sessions[broker] = Session(info.incarnation, self._executed[broker], zxid, now_us)
        self.tree.registrations[broker] = info
        self._schedule_expiry(broker, session)
        self.recorder.record_for_all(steps.Registered(steps.REGISTERED, broker, info.incarnation))
        self.tree.brokers_changed()
        if self.state.partition_epoch < 0 and len(self.sessions) == self._brokers:
            self._create(tuple(self.states))
        if self.changed is not None:
            self.changed()
        return session.broker_epoch

    def _create(self, names: tuple[str, ...]) -> None:
        """Create the nodes of new partitions. Kafka: KafkaZkClient#createTopicAssignment (1.1-3.9)."""
        for name in names:
            state = self.state_of(name)
            self.tree.keep(LeaderAndIsr(name, NO_LEADER, -1, state.isr, 0, state.replicas))
        self.tree.notify_controller(TOPIC_CREATED, names)

    def on_ping(self, ping: Ping) -> None:
        """Keep a session; if it has expired, notify the broker."""
        session = self.sessions.get(ping.broker)
        if session is None or session.broker_epoch != ping.broker_epoch:
            self.notify_expired(ping.broker, ping.broker_epoch)
            return
        session.last_us = self.kernel.now_us
        session.unacknowledged = [notice for notice in session.unacknowledged if notice.number > ping.last_event]
        for notice in session.unacknowledged:  # A reconnecting client receives watch events that fired meanwhile.
            if notice.sent_us < session.last_us - LOST_US:
                self.tree.send(ping.broker, notice)

    def is_keepalive(self, broker: int, broker_epoch: int, last_event: int, partition_epoch: int) -> bool:  # noqa: ARG002
        """Whether a ping with these fields would only keep the session."""
        session = self.sessions.get(broker)
        return session is not None and session.broker_epoch == broker_epoch and session.events_sent == last_event

    def cannot_expire(self, broker: int, arrives_us: int, interval_us: int) -> bool:
        """Whether a session cannot expire if a ping arrives at that time and others follow at that interval."""
        return max(arrives_us - self.sessions[broker].last_us, interval_us) < self.session_us

    def suspend_expiry(self, broker: int) -> None:
        self.sessions[broker].expiry_suspended = True

    def resume_expiry(self, broker: int, last_us: int, metadata_offset: int) -> None:  # noqa: ARG002 - for a quorum
        """See `SessionKeeper.resume_expiry`; an expiry timer that is already set stays."""
        session = self.sessions[broker]
        session.expiry_suspended = False
        session.last_us = max(session.last_us, last_us)
        if not session.timer_set:
            self._schedule_expiry(broker, session)

    def _schedule_expiry(self, broker: int, session: Session) -> None:
        session.timer_set = True
        due_us = session.last_us + self.session_us
        self.kernel.schedule(due_us, self.life, _SessionTimeout(self, broker, session))

    def check_session(self, broker: int, session: Session) -> None:
        """Expire a session after its timeout."""
        session.timer_set = False
        if self.sessions.get(broker) is not session or session.expiry_suspended:
            return
        if session.last_us + self.session_us > self.kernel.now_us:
            self._schedule_expiry(broker, session)
        else:
            self._end_stale()

    def _end_stale(self) -> None:
        """Expire all sessions that timed out, by broker id: after `renew_sessions` several may expire at once."""
        self.end_elision()
        last_us = self.kernel.now_us - self.session_us
        for broker, session in sorted(self.sessions.items()):
            if session.last_us <= last_us:
                self.end_session(broker)

    def end_session(self, broker: int) -> bool:
        """End a session and delete its ephemeral nodes; False if there is none."""
        self.end_elision()
        session = self.sessions.pop(broker, None)
        if session is None:
            return False
        self.recorder.record_for_all(steps.SessionEnd(broker))
        if self.controller == broker:
            self.tree.vacate()
        self.tree.brokers_changed()
        if self.ended is not None:
            self.ended(broker)
        return True

    def expire_session(self, broker: int) -> bool:
        """See `ControlPlane.expire_session`: the broker registers again once notified."""
        session = self.sessions.get(broker)
        if session is None:
            return False
        self.end_session(broker)
        self.notify_expired(broker, session.broker_epoch)
        return True

    def expire_silently(self, broker: int) -> bool:
        return self.end_session(broker)

    def close_session(self, broker: int, broker_epoch: int) -> None:
        session = self.sessions.get(broker)
        if session is not None and session.broker_epoch == broker_epoch:
            self.end_session(broker)

    def has_session(self, broker: int) -> bool:
        return broker in self.sessions

    def notify_expired(self, broker: int, broker_epoch: int) -> None:
        """Tell a broker that its session has expired."""
        self.tree.send(broker, SessionExpired(broker_epoch))

    def renew_sessions(self) -> None:
        """See `ControlPlane.renew_sessions`: all sessions are renewed."""
        for session in self.sessions.values():
            session.last_us = self.kernel.now_us

    # Requests.

    def on_request(self, request: ZooKeeperRequest) -> None:
        """Execute a broker's request, if its session is open."""
        session = self.sessions.get(request.broker)
        if session is None or session.broker_epoch != request.broker_epoch:
            self.notify_expired(request.broker, request.broker_epoch)
            return
        executed = session.executed
        results = executed.results
        number = request.number
        result: Result
        if number in results:
            self.reached(probes.REQUEST_REPEATED)
            result = results[number]
        else:
            try:
                result = request.operation.apply(self.tree, executed.decide)
            except ControllerMovedError:
                result = MOVED
            while results and (earliest := next(iter(results))) <= request.answered:
                del results[earliest]
            results[number] = result
        self.tree.send(request.broker, ZooKeeperResponse(request, result))

    # The controller node.

    def fail_over(self) -> bool:
        """See `ControlPlane.fail_over`: the controller node is deleted, and another election follows."""
        if self.controller <= 0:
            return False
        self.tree.vacate()
        return True

    def reassignment(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """See `ControlPlane.reassignment`: target members that are not in the ISR, and replicas outside the target."""
        target = self.tree.targets.get(state.name)
        if not target:
            return (), ()
        adding = tuple([broker for broker in target if broker not in state.isr])
        return adding, tuple([broker for broker in state.replicas if broker not in target])

    def unsettled_work(self, state: LeaderAndIsr, *, changes_isr: bool, writes_answered: bool) -> str:  # noqa: ARG002
        """See `ControlPlane.unsettled_work`: topics that are still to be deleted."""
        return f"topics are still to be deleted: {', '.join(self.deletions)}" if self.deletions else ""

    # Operations of an administrator.

    def elect_preferred(self, name: str = "") -> bool:
        if not self.exists(name):
            return False
        self.tree.notify_controller(PREFERRED_ELECTION, (name or self.first,))
        return self.controller in self.sessions

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """See `ControlPlane.reassign`: before KIP-455, one node has all requests, and none is added until it is gone.

        Kafka: KafkaZkClient#createPartitionReassignment (1.1-3.9).
        """
        if not self.exists(name):
            return False
        name = name or self.first
        before = self.tree.assignment(name)
        if name in self.tree.targets or replicas == before[0]:
            return False
        if self.tree.targets and not self._decide.keeps_reassignment_marks.yes():
            return False
        self.tree.targets[name] = replicas
        self.tree.note_assignment(name, before)
        self.tree.notify_controller(REASSIGNMENT_REQUESTED, (name,))
        return True

    def place(self, first: int, count: int, replication_factor: int) -> list[tuple[int, ...]]:
        """See `ControlPlane.place`: none before the first topic is created, or with fewer live brokers than replicas.

        Kafka spreads replicas over racks and begins with a random broker.
        Kafka: AdminUtils#assignReplicasToBrokers (0.10.2-3.9).
        """
        live = [broker for broker in self._in_order if broker in self.sessions]
        has_controller = not self.frozen and self.controller in self.sessions
        if not has_controller or self.state.partition_epoch < 0 or len(live) < replication_factor:
            return []
        found = []
        for place in range(first, first + count):
            start = place % len(live)
            found.append(tuple((live[start:] + live[:start])[:replication_factor]))
        return found

    def create_partitions(self, setups: Sequence[PartitionSetup]) -> None:
        """See `ControlPlane.create_partitions`. Kafka: AdminZkClient#createTopicWithAssignment (2.6-3.9)."""
        super().create_partitions(setups)
        self._create(tuple([setup.name for setup in setups]))

    def delete_topic(self, names: tuple[str, ...]) -> bool:
        """See `ControlPlane.delete_topic`: the deletion is requested, and the topic's history ends.

        Kafka: AdminZkClient#deleteTopic (1.1-3.9), AdminUtils#deleteTopic (0.10.2-2.0).
        """
        has_controller = not self.frozen and self.controller in self.sessions
        if not has_controller or self.state.partition_epoch < 0:
            return False
        self.tree.request_deletion(topic_of(names[0]))
        for name in names:
            self.recorder.of(name).close()
        if self.first in names:
            self.first = next(name for name in self.states if self.exists(name))
        return True

    def exists(self, name: str) -> bool:
        """See `ControlPlane.exists`: no partition of a topic that is to be deleted."""
        return super().exists(name) and topic_of(name) not in self.deletions

    def set_config(self, key: str, value: Value) -> None:
        """See `ControlPlane.set_config`: all brokers are notified."""
        self.config[key] = self.acknowledged[key] = value
        if key == MIN_ISR:
            assert isinstance(value, int)
            for setup in self.setups.values():
                if setup.min_isr is None:
                    setup.recorder.record(steps.MinIsr(min(value, len(self.state_of(setup.name).replicas))))
            self.set_min_isr(value)
        for broker in sorted(self.sessions):
            self.tree.notify(broker, CONFIG_CHANGED, (key, value))

    def settings_arrived(self, broker: int, broker_epoch: int, received: int) -> bool:
        session = self.sessions.get(broker)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and not any(notice.what == CONFIG_CHANGED and notice.number > received for notice in session.unacknowledged)
        )


class ScriptedZooKeeper(ZooKeeper):
    """Leaves decisions to a script until `release`: the script replaces the controller, and no leader writes the ISR.

    A broker that starts is registered at once and receives the current state over its connection to this node; a lost
    state is resent when it pings.
    """

    first_controller = SCRIPT

    @property
    def _scripted(self) -> bool:
        return self.controller == SCRIPT

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """See `ControlPlane.decide`: a new leader epoch, sent to all registered brokers."""
        self.tree.write(self.state, leader, self.state.leader_epoch + 1, isr, self.state.replicas, 0)
        for broker in self.state.replicas:
            if broker in self.sessions:
                self._send_state(broker)

    def _send_state(self, broker: int) -> None:
        """Send over the connection of the registered incarnation."""
        channel = self.reach(broker)
        if channel is None or self.state.leader_epoch < 0:
            return
        process: Any = channel.target
        session = self.sessions[broker]
        if process.incarnation == session.incarnation:
            live = {node: entry.broker_epoch for node, entry in sorted(self.sessions.items())}
            channel.send(ScriptedDecision(self.state, live))

    def on_register(self, request: RegistrationRequest) -> None:
        session = self.sessions.get(request.broker)
        if self._scripted and session is not None and session.incarnation < request.info.incarnation:
            self.end_session(request.broker)
        super().on_register(request)
        if self._scripted:
            self._send_state(request.broker)

    def is_keepalive(self, broker: int, broker_epoch: int, last_event: int, partition_epoch: int) -> bool:
        current = not self._scripted or partition_epoch >= self.state.partition_epoch
        return current and super().is_keepalive(broker, broker_epoch, last_event, partition_epoch)

    def on_ping(self, ping: Ping) -> None:
        super().on_ping(ping)
        if self._scripted and ping.partition_epoch < self.state.partition_epoch and ping.broker in self.sessions:
            self._send_state(ping.broker)

    def release(self) -> None:
        """See `ControlPlane.release`: the controller node is free."""
        if self._scripted:
            self.tree.vacate()
