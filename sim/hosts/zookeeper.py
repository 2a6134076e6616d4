"""ZooKeeper: sessions with their ephemeral nodes, and the few nodes that Kafka's controller and leaders use.

One ideal server: it is linearizable, and loses nothing when paused. Clients keep a session by pings; a broker's
registration and the controller node are ephemeral. Watch events are messages and may arrive late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sim.config import Value
from sim.history import steps
from sim.hosts.control_plane import ControlPlaneSetup, PartitionSetup
from sim.hosts.peers import ZooKeeperSessions
from sim.hosts.zk_messages import (
    BROKERS_CHANGED,
    CONFIG_CHANGED,
    CONTROLLER_GONE,
    ISR_CHANGED,
    PREFERRED_ELECTION,
    REASSIGNMENT_REQUESTED,
    SCRIPT,
    TOPIC_CREATED,
    Ping,
    RegistrationRequest,
    RegistrationResponse,
    ScriptedDecision,
    SessionExpired,
    WatchedEvent,
    ZooKeeperRequest,
    ZooKeeperResponse,
)
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Gate
from sim.protocol import decisions, probes
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.messages import (
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    LeaderAndIsr,
)
from sim.protocol.mutants import Mutation
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.zookeeper.election import BrokerInfo, Registry
from sim.protocol.zookeeper.kafka_zk_client import ControllerMovedError, Decide
from sim.protocol.zookeeper.zk_operations import MOVED, Result

LOST_US: Final = 1_000_000
"""A watch event that was not acknowledged after this time is taken for lost."""


class Executed:
    """The executed requests of one broker process, in all its sessions.

    Attributes:
        decide: the rules of that broker, by which ZooKeeper executes its requests.
        results: the result of each request, by its number, until the broker waits for it no longer.
    """

    def __init__(self, decide: decisions.Decisions) -> None:
        self.decide = decide
        self.results: dict[int, Result] = {}


class Session:
    """A broker's session.

    Attributes:
        incarnation: of the broker's process.
        executed: the executed requests of that process.
        broker_epoch: czxid of its registration.
        expiry_suspended: whether elided pings keep it.
        last_us: time of the last ping.
        unacknowledged: watch events that are not acknowledged.
    """

    def __init__(self, incarnation: int, executed: Executed, broker_epoch: int, last_us: int) -> None:
        self.incarnation = incarnation
        self.executed = executed
        self.broker_epoch = broker_epoch
        self.expiry_suspended = False
        self.last_us = last_us
        self.unacknowledged: list[WatchedEvent] = []
        self.events_sent = 0
        self.timer_set = False


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
        sessions: open sessions by broker.
        controller: the broker that is controller, 0 if none is, `SCRIPT` if a script decides.
        controller_epoch: epoch of the latest controller.
        targets: the requested reassignments, by partition.
        config: dynamic configuration.
    """

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        session_ms = setup.config["zookeeper.session.timeout.ms"]
        assert isinstance(session_ms, int)
        self.session_us = session_ms * 1_000
        self.sessions: dict[int, Session] = {}
        self.controller_epoch = 0
        self.targets: dict[str, tuple[int, ...]] = {}
        self._decide = setup.decide
        self._in_order = setup.in_order
        self.config: dict[str, Value] = {}
        self._zxid = 0
        self._registry: dict[int, BrokerInfo] = {}
        self._executed: dict[int, Executed] = {}
        """The executed requests of the newest process of each broker. An ended process may have an open session, which
        refers to those of that process.
        """
        self._watches_brokers = False

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
        self._send(broker, RegistrationResponse(request, broker_epoch, self.controller, dict(self.config)))

    def _register(self, broker: int, info: BrokerInfo) -> int:
        self._zxid += 1
        now_us = self.kernel.now_us
        session = self.sessions[broker] = Session(info.incarnation, self._executed[broker], self._zxid, now_us)
        self._registry[broker] = info
        self._schedule_expiry(broker, session)
        self.recorder.record_for_all(steps.Registered(steps.REGISTERED, broker, info.incarnation))
        self._brokers_changed()
        if self.state.partition_epoch < 0 and len(self.sessions) == self._brokers:
            self._create((self._topic, *self.further))
        if self.changed is not None:
            self.changed()
        return session.broker_epoch

    def _create(self, names: tuple[str, ...]) -> None:
        """Create the nodes of new partitions. Kafka: KafkaZkClient#createTopicAssignment (1.1-3.9)."""
        for name in names:
            state = self.state_of(name)
            self._keep(LeaderAndIsr(name, NO_LEADER, -1, state.isr, 0, state.replicas))
        self._notify_controller(TOPIC_CREATED, names)

    def _keep(self, state: LeaderAndIsr) -> None:
        """Keep the new state of a partition."""
        if state.name in self.further:
            self.further[state.name] = state
        else:
            self.state = state

    def _record_decided(self, name: str) -> None:
        """Record that a partition's state changed."""
        if name in self.further:
            self.record_further(self.setups[name])
        else:
            self.record_state()

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
                self._send(ping.broker, notice)

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
            self.vacate()
        self._brokers_changed()
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
        self._send(broker, SessionExpired(broker_epoch))

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
                result = request.operation.apply(self, executed.decide)
            except ControllerMovedError:
                result = MOVED
            while results and (earliest := next(iter(results))) <= request.answered:
                del results[earliest]
            results[number] = result
        self._send(request.broker, ZooKeeperResponse(request, result))

    def _notify(
        self, broker: int, what: int, change: tuple[str, Value] | None = None, names: tuple[str, ...] = ()
    ) -> None:
        """Send a watch event to a broker; `names` are the partitions that it is about."""
        session = self.sessions.get(broker)
        if session is not None:
            self.end_elision()
            session.events_sent += 1
            now_us, partition_epoch = self.kernel.now_us, self.state.partition_epoch
            notice = WatchedEvent(
                session.broker_epoch, session.events_sent, what, change, now_us, partition_epoch, names
            )
            session.unacknowledged.append(notice)
            self._send(broker, notice)

    def _send(self, broker: int, message: Message) -> None:
        channel = self.out.get(broker) or self.reach(broker)
        if channel is not None:
            channel.send(message)

    # The controller node.

    def elect(self, broker: int) -> int:
        """See `KafkaZkClient.elect`."""
        if self.controller:
            return self.controller_epoch if self.controller == broker else 0
        self.controller = broker
        self.controller_epoch += 1
        self.recorder.record_for_all(steps.Controller(broker, self.controller_epoch))
        return self.controller_epoch

    def vacate(self) -> None:
        """Delete the controller node and notify its watchers."""
        self.controller = 0
        self._watches_brokers = False
        for broker in sorted(self.sessions):
            self._notify(broker, CONTROLLER_GONE)

    def fail_over(self) -> bool:
        """See `ControlPlane.fail_over`: the controller node is deleted, and another election follows."""
        if self.controller <= 0:
            return False
        self.vacate()
        return True

    def _notify_controller(self, what: int, names: tuple[str, ...] = ()) -> None:
        self._notify(self.controller, what, None, names)

    def _brokers_changed(self) -> None:
        if self._watches_brokers:
            self._watches_brokers = False
            self._notify_controller(BROKERS_CHANGED)

    # Operations of a controller: see `sim.protocol.zookeeper.kafka_zk_client.KafkaZkClient`.

    def brokers(self) -> dict[int, int]:
        """See `KafkaZkClient.brokers`."""
        self._watches_brokers = True
        return {broker: session.broker_epoch for broker, session in sorted(self.sessions.items())}

    def registry(self) -> Registry:
        """See `KafkaZkClient.registry`."""
        return self._registry.copy()

    def read(self, names: tuple[str, ...] = ()) -> list[tuple[LeaderAndIsr, tuple[int, ...]]]:
        """See `KafkaZkClient.read`."""
        return [(self.state_of(name), self.targets.get(name, ())) for name in names or (self._topic, *self.further)]

    def update_state(
        self, controller_epoch: int, name: str, decide: Decide, *, fenced: decisions.Decision
    ) -> LeaderAndIsr:
        """See `KafkaZkClient.update_state`.

        Without fencing, a controller of an older epoch is detected only once a newer one has written.
        """
        is_older, state = self.controller_epoch > controller_epoch, self.state_of(name)
        if state.controller_epoch > controller_epoch or (is_older and fenced.yes()):
            raise ControllerMovedError
        change = decide(state, self._registry)
        if change is None:
            return state
        self._check_stale(controller_epoch)
        leader, isr, replicas = change
        return self._write(state, leader, state.leader_epoch + 1, isr, replicas, controller_epoch)

    def assign(
        self, controller_epoch: int, name: str, replicas: tuple[int, ...], *, fenced: decisions.Decision
    ) -> LeaderAndIsr:
        """See `KafkaZkClient.assign`: without fencing, the writer's epoch is not checked."""
        if self.controller_epoch > controller_epoch and fenced.yes():
            raise ControllerMovedError
        self._check_stale(controller_epoch)
        self._zxid += 1
        before = self._assignment(name)
        state = self.state_of(name).assigned(replicas)
        self._keep(state)
        self._note_assignment(name, before)
        self._record_decided(name)
        if self.changed is not None:
            self.changed()
        return state

    def _check_stale(self, controller_epoch: int) -> None:
        if self.controller_epoch > controller_epoch:
            self.reached(probes.CONTROLLER_WRITE_STALE)

    def delete_reassignment(self, name: str) -> None:
        """See `KafkaZkClient.delete_reassignment`."""
        before = self._assignment(name)
        self.targets.pop(name, None)
        self._note_assignment(name, before)

    def _assignment(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The assignment of a partition, and the requested one."""
        return self.state_of(name).replicas, self.targets.get(name, ())

    def _note_assignment(self, name: str, before: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        after = self._assignment(name)
        if after != before:
            self.recorder.of(name).record(steps.Assigned(*after, before))

    # Operations of a leader.

    def write_isr(
        self,
        known: LeaderAndIsr,
        isr: tuple[int, ...],
        members: Mapping[int, int],
        checks: decisions.Decision,
        mutant: Mutation,
    ) -> tuple[str, LeaderAndIsr]:
        """See `KafkaZkClient.write_isr`."""
        state = self.state_of(known.name)
        mutant.took = True
        if state.partition_epoch != known.partition_epoch and not mutant.differs():
            self.reached(probes.ISR_REFUSED_VERSION)
            return INVALID_UPDATE_VERSION, state
        for member, broker_epoch in members.items():
            session = self.sessions.get(member)
            is_registered = session is not None and session.broker_epoch == broker_epoch
            if not is_registered and checks.yes():
                self.reached(probes.ISR_REFUSED_MEMBER)
                return INELIGIBLE_REPLICA, state
        written = self._write(state, state.leader, state.leader_epoch, isr, state.replicas, known.controller_epoch)
        if known.name in self.targets:
            self._notify_controller(ISR_CHANGED, (known.name,))
        return NONE, written

    def notify_isr_change(self, names: tuple[str, ...]) -> None:
        """See `KafkaZkClient.notify_isr_change`."""
        self._notify_controller(ISR_CHANGED, names)

    def _write(
        self,
        old: LeaderAndIsr,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        controller_epoch: int,
    ) -> LeaderAndIsr:
        """Write the state of a partition, which was `old`."""
        name, recorder = old.name, self.recorder.of(old.name)
        self._zxid += 1
        joined = {}
        for member in isr:
            joins = old.leader_epoch < 0 or member not in old.isr or member == leader != old.leader
            info = self._registry.get(member)
            if joins and info is not None:
                joined[member] = info.incarnation
            elif member in old.joined:
                joined[member] = old.joined[member]
        state = LeaderAndIsr(
            name, leader, leader_epoch, isr, old.partition_epoch + 1, replicas, controller_epoch, joined
        )
        self._keep(state)
        if leader != old.leader:
            recorder.record(steps.Elected(leader, leader_epoch))
        if isr != old.isr:
            recorder.record(steps.Isr(isr, leader_epoch, old.isr))
        elif leader == old.leader and leader_epoch > old.leader_epoch:
            recorder.record(steps.EpochRaised(leader, leader_epoch))
        self._note_assignment(name, (old.replicas, self.targets.get(name, ())))
        self._record_decided(name)
        if self.changed is not None:
            self.changed()
        return state

    def reassignment(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """See `ControlPlane.reassignment`: target members that are not in the ISR, and replicas outside the target."""
        target = self.targets.get(state.name)
        if not target:
            return (), ()
        adding = tuple([broker for broker in target if broker not in state.isr])
        return adding, tuple([broker for broker in state.replicas if broker not in target])

    # Operations of an administrator.

    def elect_preferred(self, name: str = "") -> bool:
        if not self.exists(name):
            return False
        self._notify_controller(PREFERRED_ELECTION, (name or self._topic,))
        return self.controller in self.sessions

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """See `ControlPlane.reassign`: before KIP-455, one node has all requests, and none is added until it is gone.

        Kafka: KafkaZkClient#createPartitionReassignment (1.1-3.9).
        """
        if not self.exists(name):
            return False
        name = name or self._topic
        before = self._assignment(name)
        if name in self.targets or replicas == before[0]:
            return False
        if self.targets and not self._decide.keeps_reassignment_marks.yes():
            return False
        self.targets[name] = replicas
        self._note_assignment(name, before)
        self._notify_controller(REASSIGNMENT_REQUESTED, (name,))
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
        for one in setups:
            self.setups[one.name] = one
            self._note_further(one)
            min_isr = self._min_isr if one.min_isr is None else one.min_isr
            one.recorder.record(steps.MinIsr(min(min_isr, len(one.replicas))))
        self._create(tuple([one.name for one in setups]))

    def set_config(self, key: str, value: Value) -> None:
        """See `ControlPlane.set_config`: all brokers are notified."""
        self.config[key] = value
        if key == MIN_ISR:
            assert isinstance(value, int)
            self.recorder.record(steps.MinIsr(min(value, len(self.state.replicas))))
            for one in self.setups.values():
                if one.min_isr is None:
                    one.recorder.record(steps.MinIsr(min(value, len(self.state_of(one.name).replicas))))
            self.set_min_isr(value)
        for broker in sorted(self.sessions):
            self._notify(broker, CONFIG_CHANGED, (key, value))


class ScriptedZooKeeper(ZooKeeper):
    """Leaves decisions to a script until `release`: the script replaces the controller, and no leader writes the ISR.

    A broker that starts is registered at once and receives the current state over its connection to this node; a lost
    state is resent when it pings.
    """

    controller = SCRIPT

    @property
    def _scripted(self) -> bool:
        return self.controller == SCRIPT

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """See `ControlPlane.decide`: a new leader epoch, sent to all registered brokers."""
        self._write(self.state, leader, self.state.leader_epoch + 1, isr, self.state.replicas, 0)
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

    def write_isr(
        self,
        known: LeaderAndIsr,
        isr: tuple[int, ...],
        members: Mapping[int, int],
        checks: decisions.Decision,
        mutant: Mutation,
    ) -> tuple[str, LeaderAndIsr]:
        if self._scripted:  # An error that undoes the proposal, also with rule ``isr_update=alter-partition``.
            return OPERATION_NOT_ATTEMPTED, self.state
        return super().write_isr(known, isr, members, checks, mutant)

    def release(self) -> None:
        """See `ControlPlane.release`: the controller node is free."""
        if self._scripted:
            self.vacate()
