"""ZooKeeper's nodes that Kafka's controllers and leaders use, with their watches."""

from __future__ import annotations

from collections.abc import Mapping

from sim.config import Value
from sim.history import steps
from sim.hosts.control_plane import ControlPlane
from sim.hosts.zk_messages import (
    BROKERS_CHANGED,
    CONTROLLER_GONE,
    ISR_CHANGED,
    SCRIPT,
    TOPIC_DELETION_REQUESTED,
    WatchedEvent,
)
from sim.kernel.message import Message
from sim.protocol import decisions, probes
from sim.protocol.messages import (
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    LeaderAndIsr,
)
from sim.protocol.mutations import Mutation
from sim.protocol.zookeeper.election import BrokerInfo, Registry
from sim.protocol.zookeeper.kafka_zk_client import ControllerMovedError, Decide
from sim.protocol.zookeeper.zk_operations import Result


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


class ZkTree:
    """See the module; implements `sim.protocol.zookeeper.kafka_zk_client.KafkaZkClient`.

    Attributes:
        sessions: open sessions by broker.
        registrations: the latest registration of each broker.
        controller: the broker that is controller, 0 if none is, `SCRIPT` if a script decides.
        controller_epoch: epoch of the latest controller.
        targets: the requested reassignments, by partition.
        reached: called with a probe that was reached.
    """

    __slots__ = (
        "_plane",
        "_watches_brokers",
        "_zxid",
        "controller",
        "controller_epoch",
        "reached",
        "registrations",
        "sessions",
        "targets",
    )

    def __init__(self, plane: ControlPlane, controller: int) -> None:
        self._plane = plane
        self.reached = plane.reached
        self.sessions: dict[int, Session] = {}
        self.registrations: dict[int, BrokerInfo] = {}
        self.controller = controller
        self.controller_epoch = 0
        self.targets: dict[str, tuple[int, ...]] = {}
        self._zxid = 0
        self._watches_brokers = False

    def next_zxid(self) -> int:
        """The transaction id of a write."""
        self._zxid += 1
        return self._zxid

    def keep(self, state: LeaderAndIsr) -> None:
        """Keep the new state of a partition."""
        self._plane.states[state.name] = state

    def notify(
        self, broker: int, what: int, change: tuple[str, Value] | None = None, names: tuple[str, ...] = ()
    ) -> None:
        """Send a watch event to a broker; `names` are the partitions that it is about."""
        session = self.sessions.get(broker)
        if session is not None:
            self._plane.end_elision()
            session.events_sent += 1
            now_us, partition_epoch = self._plane.kernel.now_us, self._plane.state.partition_epoch
            notice = WatchedEvent(
                session.broker_epoch, session.events_sent, what, change, now_us, partition_epoch, names
            )
            session.unacknowledged.append(notice)
            self.send(broker, notice)

    def send(self, broker: int, message: Message) -> None:
        """Send a message to a broker."""
        channel = self._plane.out.get(broker) or self._plane.reach(broker)
        if channel is not None:
            channel.send(message)

    # The controller node.

    def elect(self, broker: int) -> int:
        """See `KafkaZkClient.elect`."""
        if self.controller:
            return self.controller_epoch if self.controller == broker else 0
        self.controller = broker
        self.controller_epoch += 1
        self._plane.recorder.record_for_all(steps.Controller(broker, self.controller_epoch))
        return self.controller_epoch

    def vacate(self) -> None:
        """Delete the controller node and notify its watchers."""
        self.controller = 0
        self._watches_brokers = False
        for broker in sorted(self.sessions):
            self.notify(broker, CONTROLLER_GONE)

    def notify_controller(self, what: int, names: tuple[str, ...] = ()) -> None:
        """Send a watch event to the controller."""
        self.notify(self.controller, what, None, names)

    def brokers_changed(self) -> None:
        """Notify the controller of a change of registrations, if it watches them."""
        if self._watches_brokers:
            self._watches_brokers = False
            self.notify_controller(BROKERS_CHANGED)

    # Operations of a controller: see `sim.protocol.zookeeper.kafka_zk_client.KafkaZkClient`.

    def brokers(self) -> dict[int, int]:
        """See `KafkaZkClient.brokers`."""
        self._watches_brokers = True
        return {broker: session.broker_epoch for broker, session in sorted(self.sessions.items())}

    def registry(self) -> Registry:
        """See `KafkaZkClient.registry`."""
        return self.registrations.copy()

    def read(self, names: tuple[str, ...] = ()) -> list[tuple[LeaderAndIsr, tuple[int, ...]]]:
        """See `KafkaZkClient.read`."""
        plane = self._plane
        names = names or tuple(plane.states)
        return [(plane.states[name], self.targets.get(name, ())) for name in names if name in plane.states]

    def exists(self, name: str) -> bool:
        """See `KafkaZkClient.exists`."""
        return name in self._plane.states

    def update_state(
        self, controller_epoch: int, name: str, decide: Decide, *, fenced: decisions.Decision
    ) -> LeaderAndIsr:
        """See `KafkaZkClient.update_state`.

        Without fencing, a controller of an older epoch is detected only once a newer one has written.
        """
        is_older, state = self.controller_epoch > controller_epoch, self._plane.state_of(name)
        if state.controller_epoch > controller_epoch or (is_older and fenced.yes()):
            raise ControllerMovedError
        change = decide(state, self.registrations)
        if change is None:
            return state
        self._check_stale(controller_epoch)
        leader, isr, replicas = change
        return self.write(state, leader, state.leader_epoch + 1, isr, replicas, controller_epoch)

    def assign(
        self, controller_epoch: int, name: str, replicas: tuple[int, ...], *, fenced: decisions.Decision
    ) -> LeaderAndIsr:
        """See `KafkaZkClient.assign`: without fencing, the writer's epoch is not checked."""
        if self.controller_epoch > controller_epoch and fenced.yes():
            raise ControllerMovedError
        if not self.exists(name):
            return self._plane.last_state_of(name)
        self._check_stale(controller_epoch)
        self._zxid += 1
        before = self.assignment(name)
        state = self._plane.state_of(name).assigned(replicas)
        self.keep(state)
        self.note_assignment(name, before)
        self._plane.record_state(name)
        if self._plane.changed is not None:
            self._plane.changed()
        return state

    def _check_stale(self, controller_epoch: int) -> None:
        if self.controller_epoch > controller_epoch:
            self.reached(probes.CONTROLLER_WRITE_STALE)

    def delete_reassignment(self, name: str) -> None:
        """See `KafkaZkClient.delete_reassignment`."""
        if not self.exists(name):
            return
        before = self.assignment(name)
        self.targets.pop(name, None)
        self.note_assignment(name, before)

    def request_deletion(self, topic: str) -> None:
        """Create the node in /admin/delete_topics that requests the deletion of a topic."""
        self._zxid += 1
        self._plane.deletions[topic] = None
        self.notify_controller(TOPIC_DELETION_REQUESTED)

    def topic_deletions(self) -> tuple[str, ...]:
        """See `KafkaZkClient.topic_deletions`."""
        return tuple(self._plane.deletions)

    def delete_topic(
        self, controller_epoch: int, topic: str, names: tuple[str, ...], *, fenced: decisions.Decision
    ) -> None:
        """See `KafkaZkClient.delete_topic`. An older controller does not delete a new topic of that name, which Kafka
        without fencing would do.
        """
        if self.controller_epoch > controller_epoch and fenced.yes():
            raise ControllerMovedError
        plane, found = self._plane, tuple([name for name in names if self.exists(name)])
        if not found:
            return
        self._check_stale(controller_epoch)
        self._zxid += 1
        del plane.deletions[topic]
        plane.recorder.record(steps.TopicChange(steps.TOPIC_DELETED, found))
        for name in found:
            self.targets.pop(name, None)
            plane.forget(name)
        if plane.changed is not None:
            plane.changed()
        if plane.gone is not None:
            plane.gone(topic)

    def assignment(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The assignment of a partition, and the requested one."""
        return self._plane.state_of(name).replicas, self.targets.get(name, ())

    def note_assignment(self, name: str, before: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        """Record that an assignment changed, if it differs from `before`."""
        after = self.assignment(name)
        if after != before:
            self._plane.recorder.of(name).record(steps.Assigned(*after, before))

    # Operations of a leader.

    def write_isr(
        self,
        known: LeaderAndIsr,
        isr: tuple[int, ...],
        members: Mapping[int, int],
        checks: decisions.Decision,
        mutant: Mutation,
    ) -> tuple[str, LeaderAndIsr]:
        """See `KafkaZkClient.write_isr`; while a script decides, no leader writes the ISR."""
        if (
            self.controller == SCRIPT
        ):  # An error that undoes the proposal, also with rule ``isr_update=alter-partition``.
            return OPERATION_NOT_ATTEMPTED, self._plane.state
        if not self.exists(known.name):  # The topic is deleted: there is no version to be equal.
            return INVALID_UPDATE_VERSION, self._plane.last_state_of(known.name)
        state = self._plane.state_of(known.name)
        if mutant.keeps(state.partition_epoch != known.partition_epoch):
            self.reached(probes.ISR_REFUSED_VERSION)
            return INVALID_UPDATE_VERSION, state
        for member, broker_epoch in members.items():
            session = self.sessions.get(member)
            is_registered = session is not None and session.broker_epoch == broker_epoch
            if not is_registered and checks.yes():
                self.reached(probes.ISR_REFUSED_MEMBER)
                return INELIGIBLE_REPLICA, state
        written = self.write(state, state.leader, state.leader_epoch, isr, state.replicas, known.controller_epoch)
        if known.name in self.targets:
            self.notify_controller(ISR_CHANGED, (known.name,))
        return NONE, written

    def notify_isr_change(self, names: tuple[str, ...]) -> None:
        """See `KafkaZkClient.notify_isr_change`."""
        self.notify_controller(ISR_CHANGED, names)

    def write(
        self,
        old: LeaderAndIsr,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        controller_epoch: int,
    ) -> LeaderAndIsr:
        """Write the state of a partition, which was `old`."""
        name, recorder = old.name, self._plane.recorder.of(old.name)
        self._zxid += 1
        joined = {}
        for member in isr:
            joins = old.leader_epoch < 0 or member not in old.isr or member == leader != old.leader
            info = self.registrations.get(member)
            if joins and info is not None:
                joined[member] = info.incarnation
            elif member in old.joined:
                joined[member] = old.joined[member]
        state = LeaderAndIsr(
            name, leader, leader_epoch, isr, old.partition_epoch + 1, replicas, controller_epoch, joined
        )
        self.keep(state)
        if leader != old.leader:
            recorder.record(steps.Elected(leader, leader_epoch))
        if isr != old.isr:
            recorder.record(steps.Isr(isr, leader_epoch, old.isr))
        elif leader == old.leader and leader_epoch > old.leader_epoch:
            recorder.record(steps.EpochRaised(leader, leader_epoch))
        self.note_assignment(name, (old.replicas, self.targets.get(name, ())))
        self._plane.record_state(name)
        if self._plane.changed is not None:
            self._plane.changed()
        return state
