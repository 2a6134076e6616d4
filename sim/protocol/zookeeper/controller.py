"""The elected controller: which broker leads, who is told, and what is kept in ZooKeeper.

Kafka classes: KafkaController, PartitionStateMachine, ReplicaStateMachine, ControllerBrokerRequestBatch. Events are
handled one at a time, in order of arrival. A handler is a generator: it yields what it wants done at ZooKeeper, and
goes on with the result, so that everything may change between its steps. Controllers live in brokers; this one knows
neither messages nor time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final, Protocol

from sim.protocol import probes
from sim.protocol.messages import NONE, NOT_CONTROLLER, STALE_BROKER_EPOCH, LeaderAndIsr
from sim.protocol.probes import branch
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.rules import Rules
from sim.protocol.zookeeper import election

BROKER_NOT_AVAILABLE: Final = "BROKER_NOT_AVAILABLE"

Change = tuple[int, tuple[int, ...], tuple[int, ...]]
"""What a decision makes of a partition's state: (leader, ISR, assignment)."""
Decide = Callable[[LeaderAndIsr, election.Registry], Change | None]
"""A decision on the state, and on the registrations, as ZooKeeper has them; None: leave it."""


class ControllerMovedError(Exception):
    """ZooKeeper refused a write since another controller was elected."""


class Coordination(Protocol):
    """What a controller does at ZooKeeper; each call is a round trip."""

    def brokers(self) -> Mapping[int, int]:
        """Registered brokers and their broker epochs; sets the watch again."""

    def read(self) -> tuple[LeaderAndIsr, tuple[int, ...]]:
        """The partition's state, and the assignment that is asked for (empty: none)."""

    def registry(self) -> election.Registry:
        """The latest registration of each broker, those included whose session is over."""

    def amend(self, controller_epoch: int, decide: Decide, *, fenced: bool) -> LeaderAndIsr:
        """Read the state, decide, and write it unless somebody else wrote meanwhile: then all over again.

        Returns:
            The state afterwards.

        Raises:
            ControllerMovedError: a newer controller stands in the way.
        """

    def reassigned(self) -> None:
        """The assignment that was asked for is in place."""


NOTHING: Final = LeaderAndIsr("", NO_LEADER, -1, (), -1, ())
"""What a controller knows before it has read anything."""

Operation = Callable[[Coordination], Any]
Steps = Generator[Operation, Any, None]


class ControllerHost(Protocol):
    """What a controller asks of its broker."""

    def at_zookeeper(self, operation: Operation) -> None:
        """Have something done; `Controller.answered` or `Controller.moved` follows."""

    def broker_added(self, broker: int) -> None:
        """Requests to this broker may be sent from now on."""

    def broker_removed(self, broker: int) -> None:
        """Requests to this broker that are not sent yet are dropped."""

    def send_leader_and_isr(self, broker: int, state: LeaderAndIsr) -> None:
        """Queue a request for a live broker."""

    def send_update_metadata(self, broker: int, state: LeaderAndIsr, live: dict[int, int]) -> None:
        """Queue a request for a live broker."""

    def send_stop_replica(self, broker: int, state: LeaderAndIsr, *, delete: bool) -> None:
        """Queue a request for a live broker."""

    def flush(self) -> None:
        """Send what was queued since the last step (sendRequestsToBrokers)."""

    def active(self, epoch: int) -> None:
        """This controller begins to work."""

    def resigned(self) -> None:
        """This controller works no more; nothing of its queues is sent."""

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""


class Controller:
    """The controller of one broker, at work while it is elected.

    Args:
        broker: the broker that it lives in.
        rules: that broker's rules.
        host: that broker.
        unclean_election: ``unclean.leader.election.enable``.

    Attributes:
        epoch: its controller epoch, -1 while it is not elected.
        live: brokers that it knows to be registered, with their broker epochs.
        shutting_down: those of them that announced a controlled shutdown.
        state: the partition as it knows it; leader epoch -1 before the topic exists.
        unclean_election: see above; may change.
    """

    def __init__(self, broker: int, rules: Rules, host: ControllerHost, *, unclean_election: bool) -> None:
        self.broker = broker
        self.epoch = -1
        self.live: dict[int, int] = {}
        self.shutting_down: dict[int, None] = {}
        self.state = NOTHING
        self.unclean_election = unclean_election
        self._host = host
        self._rules = rules
        self._bumps = rules.registration_epoch == "bumped"
        self._notices_missed = rules.missed_bounce == "noticed"
        self._tells_bounces = rules.broker_epoch == "checked"
        self._fenced = rules.controller_writes == "fenced"
        self._starts_with_all = rules.controller_startup == "all-replicas"
        self._queue: deque[Steps] = deque()
        self._handling: Steps | None = None
        self._finishing = False
        self._target: tuple[int, ...] = ()
        self._is_offline = False

    # The event queue.

    def _put(self, steps: Steps) -> None:
        if self.epoch < 0 or self._finishing:
            return
        self._queue.append(steps)
        if self._handling is None:
            self._next()

    def _next(self) -> None:
        while self._queue:
            self._handling = self._queue.popleft()
            if self._go_on(None):
                return
        self._handling = None

    def _go_on(self, result: Any) -> bool:
        """Run the present handler to its next wish; False when it is done."""
        assert self._handling is not None
        try:
            operation = self._handling.send(result)
        except StopIteration:
            self._host.flush()
            return False
        self._host.flush()
        self._host.at_zookeeper(operation)
        return True

    def answered(self, result: Any) -> None:
        """ZooKeeper did what the present handler wanted."""
        if self._handling is not None and not self._go_on(result):
            self._handled()

    def _handled(self) -> None:
        if self._finishing:
            self.resign()
        else:
            self._next()

    def moved(self) -> None:
        """ZooKeeper refused a write since there is a newer controller (ControllerMovedException)."""
        self._host.reached(probes.CONTROLLER_WRITE_REFUSED)
        self._decides("controller_writes")
        if self._fenced:
            self.resign()
        else:  # The handler fails, the next event is looked at (StateChangeFailedException).
            self._handling = None
            self._handled()

    def _decides(self, rule: str) -> None:
        self._host.reached(branch(self._rules, rule))

    # Life.

    def elected(self, epoch: int) -> None:
        """This broker was elected (KafkaController.onControllerFailover)."""
        self.epoch = epoch
        self._host.active(epoch)
        self._put(self._failover())

    def session_lost(self) -> None:
        """The broker's session has expired: resign.

        Unfenced, the handler at work is finished first, in the next session (KAFKA-6082).
        """
        if self._fenced or self._handling is None:
            self.resign()
        else:
            self._host.reached(probes.CONTROLLER_FINISHES)
            self._queue.clear()
            self._finishing = True

    def resign(self) -> None:
        """Another controller works, or is to be elected (onControllerResignation)."""
        if self.epoch < 0:
            return
        self.epoch = -1
        self._finishing = False
        self._queue.clear()
        self._handling = None
        self.live.clear()
        self.shutting_down.clear()
        self.state = NOTHING
        self._target = ()
        self._is_offline = False
        self._host.resigned()

    # Events.

    def brokers_changed(self) -> None:
        """A watch told that brokers came or went."""
        self._put(self._brokers_changed())

    def topic_created(self) -> None:
        """A watch told of the topic."""
        self._put(self._topic_created())

    def isr_changed(self) -> None:
        """A watch told that leaders changed their ISR, or that the ISR of a partition under reassignment changed."""
        self._put(self._isr_changed())

    def preferred_election(self) -> None:
        """An administrator, or the regular check of balance, wants the preferred leader."""
        self._put(self._preferred_election())

    def reassignment_asked(self) -> None:
        """A watch told that an administrator wants another assignment."""
        self._put(self._isr_changed())

    def settings_changed(self) -> None:
        """Unclean election may be allowed now."""
        self._put(self._elect_offline())

    def controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> None:
        """A broker asks to be relieved; `answer` is called with an error and how many partitions it still leads."""
        if self.epoch < 0:
            answer(NOT_CONTROLLER, 0)
        else:
            self._put(self._controlled_shutdown(broker, broker_epoch, answer))

    # Handlers.

    def _failover(self) -> Steps:
        live, registry, (self.state, self._target) = yield lambda zookeeper: (
            zookeeper.brokers(),
            zookeeper.registry(),
            zookeeper.read(),
        )
        for broker, broker_epoch in sorted(live.items()):
            self._add(broker, broker_epoch)
        state = self.state
        missed = [
            member for member in sorted(state.isr) if member in live and election.restarted(member, state, registry)
        ]
        if missed:
            self._host.reached(probes.MISSED_BOUNCE)
            self._decides("missed_bounce")
            if self._notices_missed:
                self._remove(missed)
            else:
                missed = []
        self._update_metadata()
        if not self._exists:
            yield from self._topic_created()
            return
        yield from self._tell_started(self._replicas())
        if any(replica not in self.live for replica in state.replicas):
            self._decides("controller_startup")
        if self._starts_with_all:
            for replica in state.replicas:
                if replica not in self.live:
                    yield from self._replica_offline(replica)
        yield from self._elect_offline()
        if missed:
            for broker in missed:
                self._add(broker, live[broker])
            yield from self._brokers_came(missed)
        yield from self._reassign()

    def _read(self) -> Steps:
        self.state, self._target = yield lambda zookeeper: zookeeper.read()

    @property
    def _exists(self) -> bool:
        return self.state.leader_epoch >= 0

    def _topic_created(self) -> Steps:
        """A new partition: all live replicas are in sync, the first of them leads."""

        def decide(state: LeaderAndIsr, _: election.Registry) -> Change | None:
            isr = tuple(broker for broker in state.replicas if broker in self.live)
            created = state.partition_epoch >= 0 > state.leader_epoch
            if not (isr and created):
                return None
            self._host.reached(probes.ELECTED_FIRST)
            return isr[0], isr, state.replicas

        yield from self._amend(decide)
        if self._exists:
            self._tell(self._replicas())

    def _brokers_changed(self) -> Steps:
        found: Mapping[int, int] = yield lambda zookeeper: zookeeper.brokers()
        known = self.live
        came = sorted(broker for broker in found if broker not in known)
        went = sorted(broker for broker in known if broker not in found)
        bounced = sorted(broker for broker in found if broker in known and found[broker] > known[broker])
        for broker in came:
            self._add(broker, found[broker])
        if came:
            yield from self._brokers_came(came)
        if bounced:
            self._host.reached(probes.BOUNCE)
            self._decides("broker_epoch")
        if bounced and self._tells_bounces:
            self._remove(bounced)
            yield from self._brokers_went(bounced)
            for broker in bounced:
                self._add(broker, found[broker])
            yield from self._brokers_came(bounced)
        elif bounced:  # The set of ids looks unchanged, so nothing is done (KAFKA-1120).
            for broker in bounced:
                known[broker] = found[broker]
        if went:
            self._remove(went)
            yield from self._brokers_went(went)

    def _add(self, broker: int, broker_epoch: int) -> None:
        self.live[broker] = broker_epoch
        self._host.broker_added(broker)

    def _remove(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self.live[broker]
            self._host.broker_removed(broker)

    def _brokers_came(self, brokers: list[int]) -> Steps:
        """KafkaController.onBrokerStartup."""
        self._update_metadata()
        if not self._exists:
            return
        started = [broker for broker in brokers if broker in self.state.replicas]
        if started:
            self._decides("registration_epoch")
            yield from self._tell_started(started)
        yield from self._elect_offline()
        yield from self._reassign()

    def _tell_started(self, replicas: list[int]) -> Steps:
        """Replicas are live now: they are told how things stand, or all are told of a new leader epoch.

        Without a leader the next one has a new leader epoch anyway.
        """
        if self._bumps and not self._is_offline and self.state.leader in self.live:
            yield from self._amend(_same)
            self._tell(self._replicas())
        else:
            self._tell(replicas, update=False)

    def _brokers_went(self, brokers: list[int]) -> Steps:
        """KafkaController.onBrokerFailure, onReplicasBecomeOffline."""
        for broker in brokers:
            self.shutting_down.pop(broker, None)
        if not self._exists or self.state.leader in self.live:
            self._update_metadata()
        if not self._exists:
            return
        yield from self._elect_offline()
        for broker in brokers:
            if broker in self.state.replicas:
                yield from self._replica_offline(broker)

    def _elect_offline(self) -> Steps:
        """Elect a leader if there is none that lives (PartitionStateMachine.triggerOnlinePartitionStateChange).

        A partition whose leader died is offline until the next election, also when that leader is back before.
        """
        if not self._exists:
            return
        self._is_offline |= self.state.leader not in self.live
        if not self._is_offline:
            return

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.offline(state.replicas, state.isr, self._electable(state, registry))
            if choice is None and self.unclean_election:
                choice = election.offline(state.replicas, (), self._willing(), unclean=True)
            self._host.reached(_outcome(state, choice))
            return choice and (*choice, state.replicas)

        yield from self._amend_and_tell(decide)

    def _replica_offline(self, replica: int, assigned: tuple[int, ...] = ()) -> Steps:
        """A replica goes: it stops following, leaves the ISR and leads no more (OfflineReplica).

        `assigned`: the assignment that others are told of, if it is not the one in ZooKeeper.
        """

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            if replica not in state.isr:
                return None
            if replica == state.leader:
                self._host.reached(probes.LEADER_REMOVED)
            leader, isr = election.without(replica, state.leader, state.isr)
            if self._notices_missed and not election.relied_upon(state, registry, set(self.live) - {replica}):
                isr = state.isr
            return leader, isr, state.replicas

        if replica in self.live:
            self._host.send_stop_replica(replica, self.state, delete=False)
        epoch = self.state.leader_epoch
        yield from self._amend(decide)
        if assigned:
            self.state = self.state.assigned(assigned)
        if self.state.leader_epoch > epoch:  # Kafka sends it again in any case; it would be ignored.
            self._tell([broker for broker in self._replicas() if broker != replica])

    def _isr_changed(self) -> Steps:
        """Leaders wrote their ISR: learn it, and let everybody know (IsrChangeNotification)."""
        yield from self._read()
        if self._exists:
            self._update_metadata()
            yield from self._reassign()

    def _preferred_election(self) -> Steps:
        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            choice = election.preferred(state.replicas, state.isr, self._electable(state, registry))
            if choice is None or choice[0] == state.leader:
                self._host.reached(probes.PREFERRED_UNFIT)
                return None
            self._host.reached(probes.ELECTED_PREFERRED)
            return *choice, state.replicas

        if self._exists:
            yield from self._amend_and_tell(decide)

    def _controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> Steps:
        """KafkaController.doControlledShutdown: leadership moves to another ISR member, followers leave the ISR."""
        if broker not in self.live:
            answer(BROKER_NOT_AVAILABLE, 0)
            return
        if self._tells_bounces and broker_epoch < self.live[broker]:
            answer(STALE_BROKER_EPOCH, 0)
            return
        self.shutting_down[broker] = None
        if self._exists and broker in self.state.replicas and len(self.state.replicas) > 1:
            if self.state.leader == broker:
                yield from self._amend_and_tell(self._move_leader)
            else:
                yield from self._replica_offline(broker)
        answer(NONE, int(self.state.leader == broker))

    def _move_leader(self, state: LeaderAndIsr, registry: election.Registry) -> Change | None:
        electable = self._electable(state, registry)
        choice = election.controlled_shutdown(state.replicas, state.isr, electable, self.shutting_down)
        self._host.reached(probes.SHUTDOWN_NOBODY if choice is None else probes.ELECTED_SHUTDOWN)
        return choice and (*choice, state.replicas)

    # Reassignment.

    def _reassign(self) -> Steps:
        """KafkaController.onPartitionReassignment: first all replicas, old and new; then, once the new ones are in
        the ISR, those alone.

        Brokers are told of those alone from the last election on, ZooKeeper last of all: the leader is not to take one
        that leaves back into the ISR, and the next controller is to know who leaves (steps B2 to B6 of KIP-455's
        onPartitionReassignment; 6 to 10 before).
        """
        state, target = self.state, self._target
        if not target or not self._exists:
            return
        if not set(target) <= set(state.isr):
            both = (*target, *(broker for broker in state.replicas if broker not in target))
            if set(both) != set(state.replicas):
                self._host.reached(probes.REASSIGNMENT_BEGINS)
                yield from self._amend(lambda state, _: (state.leader, state.isr, both))
                self._tell(self._replicas())
            return
        leaving = [broker for broker in state.replicas if broker not in target]

        def decide(state: LeaderAndIsr, registry: election.Registry) -> Change | None:
            if state.leader in target and state.leader in self.live:
                return state.leader, state.isr, state.replicas
            choice = election.reassigned(target, state.isr, self._electable(state, registry))
            if choice is not None:
                self._host.reached(probes.ELECTED_REASSIGNED)
            return choice and (*choice, state.replicas)

        yield from self._amend(decide)
        if self.state.leader not in target:
            return
        self.state = self.state.assigned(target)
        self._tell(self._replicas())
        for broker in leaving:
            yield from self._replica_offline(broker, target)
        for broker in leaving:
            if broker in self.live:
                self._host.send_stop_replica(broker, self.state, delete=True)
        yield from self._amend(lambda state, _: (state.leader, state.isr, target))
        yield lambda zookeeper: zookeeper.reassigned()
        self._host.reached(probes.REASSIGNMENT_DONE)
        self._target = ()
        self._tell(self._replicas())

    # Decisions and requests.

    def _amend(self, decide: Decide) -> Steps:
        epoch, fenced, before = self.epoch, self._fenced, self.state.leader_epoch
        self.state = yield lambda zookeeper: zookeeper.amend(epoch, decide, fenced=fenced)
        if self.state.leader_epoch > before and self.state.leader in self.live:
            self._is_offline = False

    def _amend_and_tell(self, decide: Decide) -> Steps:
        epoch = self.state.leader_epoch
        yield from self._amend(decide)
        if self.state.leader_epoch > epoch:
            self._tell(self._replicas())

    def _willing(self) -> list[int]:
        return [broker for broker in self.live if broker not in self.shutting_down]

    def _electable(self, state: LeaderAndIsr, registry: election.Registry) -> list[int]:
        willing = self._willing()
        if not self._notices_missed:
            return willing
        relied = election.relied_upon(state, registry, self.live)
        return [broker for broker in willing if broker in relied]

    def _replicas(self) -> list[int]:
        """Live replicas of the partition, those that shut down included."""
        return [broker for broker in self.state.replicas if broker in self.live]

    def _tell(self, replicas: Iterable[int], *, update: bool = True) -> None:
        """LeaderAndIsr to some replicas, then UpdateMetadata to all brokers."""
        for broker in replicas:
            self._host.send_leader_and_isr(broker, self.state)
        if update:
            self._update_metadata()

    def _update_metadata(self) -> None:
        live = dict(self.live)
        for broker in live:
            self._host.send_update_metadata(broker, self.state, live)


def _outcome(state: LeaderAndIsr, choice: election.Choice) -> int:
    """What an election for an offline partition has come to."""
    if choice is None:
        return probes.ELECTED_NOBODY
    leader = choice[0]
    if leader not in state.isr:
        return probes.ELECTED_UNCLEAN
    return probes.ELECTED_AGAIN if leader == state.leader else probes.ELECTED_OFFLINE


def _same(state: LeaderAndIsr, _: election.Registry) -> Change:
    """A new leader epoch and nothing else."""
    return state.leader, state.isr, state.replicas
