"""The elected controller: which broker leads, who is told, and what is kept in ZooKeeper.

Events are handled one at a time, in order of arrival. A handler is a generator: it yields what it wants done at
ZooKeeper, and goes on with the result, so that everything may change between its steps. Controllers live in brokers;
this one knows neither messages nor time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.messages import NONE, NOT_CONTROLLER, STALE_BROKER_EPOCH
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_event_manager import ControllerEventManager
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.kafka_zk_client import Steps
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine, raised
from sim.protocol.zookeeper.replica_state_machine import ReplicaStateMachine

BROKER_NOT_AVAILABLE: Final = "BROKER_NOT_AVAILABLE"


class KafkaController:
    """The controller of one broker, at work while it is elected. Kafka: KafkaController.

    Args:
        broker: the broker that it lives in.
        decide: that broker's rules.
        host: that broker.
        unclean_election: ``unclean.leader.election.enable``.

    Attributes:
        context: what it knows.
        partitions: changes the partition's state.
    """

    def __init__(self, broker: int, decide: Decisions, host: ControllerHost, *, unclean_election: bool) -> None:
        self.broker = broker
        self.context = ControllerContext()
        self._host = host
        self._decide = decide
        self._events = ControllerEventManager(host)
        self._requests = ControllerBrokerRequestBatch(self.context, host)
        self.partitions = PartitionStateMachine(
            self.context, self._requests, decide, host, unclean_election=unclean_election
        )
        self._replicas = ReplicaStateMachine(self.context, self._requests, self.partitions, decide, host)

    def answered(self, result: Any) -> None:
        """ZooKeeper did what the present handler wanted."""
        if self._events.answered(result):
            self._handled()

    def moved(self) -> None:
        """ZooKeeper refused a write since there is a newer controller.

        Unfenced, the handler fails and the next event is looked at.
        Kafka: errors.ControllerMovedException (0.10.2-4.3).
        """
        self._host.reached(probes.CONTROLLER_WRITE_REFUSED)
        if self._decide.fences_controller_writes.yes():
            self.resign()
        else:
            self._events.fail()
            self._handled()

    def _handled(self) -> None:
        if self._events.finishing:
            self.resign()
        else:
            self._events.handle_next()

    # Life.

    def elected(self, epoch: int) -> None:
        """This broker was elected. Kafka: KafkaController#onControllerFailover."""
        self.context.epoch = epoch
        self._host.active(epoch)
        self._events.begin(self._failover())

    def session_lost(self) -> None:
        """The broker's session has expired: resign.

        Unfenced, the handler at work is finished first, in the next session (KAFKA-6082).
        Kafka: KafkaController#processExpire (2.6-3.9), KafkaController.Expire#process (1.1-2.0).
        """
        if not self._events.is_handling or self._decide.fences_controller_writes.yes():
            self.resign()
        else:
            self._host.reached(probes.CONTROLLER_FINISHES)
            self._events.finish()

    def resign(self) -> None:
        """Another controller works, or is to be elected. Kafka: KafkaController#onControllerResignation."""
        if self.context.epoch < 0:
            return
        self._events.clear()
        self.context.reset()
        self._host.resigned()

    # Events.

    def brokers_changed(self) -> None:
        """A watch told that brokers came or went.

        Kafka: BrokerChangeHandler#handleChildChange (1.1-3.9), BrokerChangeListener#doHandleChildChange (0.10.2).
        """
        self._events.put(self._brokers_changed())

    def topic_created(self) -> None:
        """A watch told of the topic.

        Kafka: KafkaController#onNewTopicCreation (0.10.2), KafkaController#processTopicChange (2.6-3.9),
        TopicChangeHandler#handleChildChange (1.1-3.9), KafkaController.TopicChange#process (1.1-2.0).
        """
        self._events.put(self.partitions.create())

    def isr_changed(self) -> None:
        """A watch told that leaders changed their ISR, or that the ISR of a partition under reassignment changed.

        Kafka: IsrChangeNotificationHandler#handleChildChange (1.1-3.9),
        PartitionReassignmentIsrChangeHandler#handleDataChange (1.1-3.9).
        """
        self._events.put(self._isr_changed())

    def preferred_election(self) -> None:
        """An administrator, or the regular check of balance, wants the preferred leader.

        Kafka: KafkaController#onPreferredReplicaElection (0.10.2-2.0), KafkaController#onReplicaElection (2.6-3.9),
        PreferredReplicaElectionHandler#handleCreation (1.1-3.9), KafkaController.PreferredReplicaLeaderElection#process
        (1.1-2.0).
        """
        self._events.put(self.partitions.elect_preferred())

    def reassignment_asked(self) -> None:
        """A watch told that an administrator wants another assignment.

        Kafka: PartitionReassignmentHandler#handleCreation (1.1-3.9), PartitionsReassignedListener#doHandleDataChange
        (0.10.2).
        """
        self._events.put(self._reassignment_asked())

    def settings_changed(self) -> None:
        """Unclean election may be allowed now.

        Kafka: KafkaController#enableDefaultUncleanLeaderElection (2.0-3.9),
        KafkaController.UncleanLeaderElectionEnable#process (2.0), KafkaController#processUncleanLeaderElectionEnable
        (2.6-3.9).
        """
        self._events.put(self.partitions.elect_offline())

    def controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> None:
        """A broker asks to be relieved; `answer` is called with an error and how many partitions it still leads.

        Kafka: KafkaController#shutdownBroker (0.10.2), KafkaController#controlledShutdown (1.1-3.9).
        """
        if self.context.epoch < 0:
            answer(NOT_CONTROLLER, 0)
        else:
            self._events.put(self._controlled_shutdown(broker, broker_epoch, answer))

    # Handlers.

    def _failover(self) -> Steps:
        """Kafka: KafkaController#onControllerFailover, KafkaController#initializeControllerContext."""
        live, registry, (self.context.state, self.context.target) = yield lambda zookeeper: (
            zookeeper.brokers(),
            zookeeper.registry(),
            zookeeper.read(),
        )
        for broker, broker_epoch in sorted(live.items()):
            self._add(broker, broker_epoch)
        state = self.context.state
        missed = [
            member for member in sorted(state.isr) if member in live and election.restarted(member, state, registry)
        ]
        if missed:
            self._host.reached(probes.MISSED_BOUNCE)
            if self._decide.notices_missed_bounces.yes():
                self._remove(missed)
            else:
                missed = []
        self._requests.update_metadata()
        if not self.context.exists:
            yield from self.partitions.create()
            return
        self.context.is_offline = state.leader not in self.context.live
        yield from self._replicas.tell_started(self.context.replicas())
        dead = [replica for replica in state.replicas if replica not in self.context.live]
        if dead and self._decide.starts_with_all_replicas.yes():
            yield from self._replicas_went(dead)
        yield from self.partitions.elect_offline()
        if missed:
            for broker in missed:
                self._add(broker, live[broker])
            yield from self._brokers_came(missed)
        yield from self._go_on_reassigning()

    def _brokers_changed(self) -> Steps:
        """Learn who is registered.

        Kafka: ReplicaStateMachine.BrokerChangeListener#handleChildChange (0.10.2), KafkaController.BrokerChange#process
        (1.1-2.0), KafkaController#processBrokerChange (2.6-3.9).
        """
        found: Mapping[int, int] = yield lambda zookeeper: zookeeper.brokers()
        known = self.context.live
        came = sorted(broker for broker in found if broker not in known)
        went = sorted(broker for broker in known if broker not in found)
        bounced = sorted(broker for broker in found if broker in known and found[broker] > known[broker])
        tells_bounces = self._decide.checks_broker_epochs
        if went and (came or bounced):
            tells_bounces.note()
        if not tells_bounces.answer:  # All that is live is replaced before anything else (to 2.1).
            self._remove(went)
        for broker in came:
            self._add(broker, found[broker])
        if came:
            yield from self._brokers_came(came)
        if bounced:
            self._host.reached(probes.BOUNCE)
        if bounced and tells_bounces.yes():
            self._remove(bounced)
            yield from self._brokers_went(bounced)
            for broker in bounced:
                self._add(broker, found[broker])
            yield from self._brokers_came(bounced)
        elif bounced:  # The set of ids looks unchanged, so nothing is done (KAFKA-1120).
            for broker in bounced:
                known[broker] = found[broker]
        if went:
            if tells_bounces.answer:
                self._remove(went)
            yield from self._brokers_went(went)
        yield from self._finish_reassignment()

    def _add(self, broker: int, broker_epoch: int) -> None:
        self.context.live[broker] = broker_epoch
        self._host.broker_added(broker)

    def _remove(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self.context.live[broker]
            self._host.broker_removed(broker)

    def _brokers_came(self, brokers: list[int]) -> Steps:
        """Kafka: KafkaController#onBrokerStartup."""
        self._requests.update_metadata()
        if not self.context.exists:
            yield from self.partitions.elect_offline()
            return
        started = [broker for broker in brokers if broker in self.context.state.replicas]
        if started:
            yield from self._replicas.tell_started(started)
        yield from self.partitions.elect_offline()
        if set(self.context.target) & set(brokers):
            yield from self._reassign()

    def _brokers_went(self, brokers: list[int]) -> Steps:
        """Kafka: KafkaController#onBrokerFailure, KafkaController#onReplicasBecomeOffline (1.1-3.9)."""
        for broker in brokers:
            self.context.shutting_down.pop(broker, None)
        exists = self.context.exists
        leaderless = exists and self._is_leader_gone(brokers)
        if not leaderless:
            self._requests.update_metadata()
        if not exists:
            return
        self.context.is_offline |= leaderless
        yield from self.partitions.elect_offline()
        yield from self._replicas_went([broker for broker in brokers if broker in self.context.state.replicas])

    def _replicas_went(self, brokers: list[int]) -> Steps:
        """Replicas go offline one by one, in any order. Kafka: KafkaController#onReplicasBecomeOffline (1.1-3.9)."""
        for broker in brokers:
            yield from self._replicas.take_offline(broker)

    def _is_leader_gone(self, brokers: list[int]) -> bool:
        """Whether the partition waits for an election, since these brokers have failed.

        From 1.0 on every leader is looked at, and one that shuts down is none.
        Kafka: ControllerContext#isReplicaOnline (1.1-3.9).
        """
        leader = self.context.state.leader
        went, unwilling = leader in brokers, leader not in self.context.willing()
        if went == unwilling:
            return went
        return went if self._decide.stopping_leader_is_online.yes() else unwilling

    def _isr_changed(self) -> Steps:
        """Leaders wrote their ISR: learn it, and let everybody know.

        Kafka: IsrChangeNotificationListener#handleChildChange (0.10.2), KafkaController.IsrChangeNotification#process
        (1.1-2.0), KafkaController#processIsrChangeNotification (2.6-3.9).
        """
        self.context.state, _ = yield lambda zookeeper: zookeeper.read()
        if self.context.exists:
            self._requests.update_metadata()
            yield from self._finish_reassignment()

    def _controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> Steps:
        """Leadership moves to another ISR member, followers leave the ISR.

        Kafka: KafkaController#shutdownBroker (0.10.2), KafkaController.ControlledShutdown#doControlledShutdown
        (1.1-2.0), KafkaController#doControlledShutdown (2.6-3.9).
        """
        if broker not in self.context.live:
            answer(BROKER_NOT_AVAILABLE, 0)
            return
        if broker_epoch < self.context.live[broker] and self._decide.checks_broker_epochs.yes():
            answer(STALE_BROKER_EPOCH, 0)
            return
        self.context.shutting_down[broker] = None
        if self.context.exists and broker in self.context.state.replicas and len(self.context.state.replicas) > 1:
            if self.context.state.leader == broker:
                yield from self.partitions.elect_for_shutdown()
            else:
                yield from self._replicas.take_offline(broker)
        answer(NONE, int(self.context.state.leader == broker and len(self.context.state.replicas) > 1))
        yield from self._finish_reassignment()

    # Reassignment.

    def _reassignment_asked(self) -> Steps:
        """An administrator wants another assignment.

        Kafka: KafkaController.PartitionReassignment#process (1.1-2.0), KafkaController#processZkPartitionReassignment
        (2.6-3.9).
        """
        self.context.state, self.context.target = yield lambda zookeeper: zookeeper.read()
        whole = set(self.context.target) == set(self.context.state.replicas)
        yield from self._go_on_reassigning(complete=whole and self._decide.keeps_reassignment_marks.yes())

    def _go_on_reassigning(self, *, complete: bool = False) -> Steps:
        """A reassignment was asked for, or an earlier controller has left it.

        Where its target alone is known, it is given up if the assignment is that one, be it in sync or not; `complete`:
        whether it is complete though some of its replicas may not be in sync.
        Kafka: KafkaController#maybeTriggerPartitionReassignment.
        """
        target = self.context.target
        if not target or not self.context.exists:
            return
        if target == self.context.state.replicas and not self._decide.keeps_reassignment_marks.yes():
            yield lambda zookeeper: zookeeper.reassigned()
            self.context.target = ()
        else:
            yield from self._reassign(complete=complete)

    def _finish_reassignment(self) -> Steps:
        """The ISR has changed: perhaps a reassignment is complete.

        Kafka: KafkaController.PartitionReassignmentIsrChange#process (1.1-2.0),
        KafkaController#processPartitionReassignmentIsrChange (2.6-3.9).
        """
        if self.context.target and set(self.context.target) <= set(self.context.state.isr):
            yield from self._reassign()

    def _reassign(self, *, complete: bool = False) -> Steps:
        """First all replicas, old and new; then, once the new ones are in the ISR, those alone.

        Brokers are told of those alone from the last election on, ZooKeeper last of all: the leader is not to take one
        that leaves back into the ISR, and the next controller is to know who leaves (steps B2 to B6 of KIP-455's
        onPartitionReassignment; 6 to 10 before). It goes on when nobody can be elected.
        Kafka: KafkaController#onPartitionReassignment.
        """
        target = self.context.target
        self.context.state, _ = yield lambda zookeeper: zookeeper.read()
        state = self.context.state
        if not complete and not set(target) <= set(state.isr):
            both = (*target, *(broker for broker in state.replicas if broker not in target))
            ordered = election.in_set_order(both)
            if ordered != both and not self._decide.keeps_reassignment_marks.yes():
                both = ordered
            if set(both) != set(state.replicas):
                self._host.reached(probes.REASSIGNMENT_BEGINS)
            if both != state.replicas:
                yield from self.partitions.assign(both)
            yield from self.partitions.amend(raised)
            self._requests.tell(self.context.replicas())
            return
        leaving = [broker for broker in state.replicas if broker not in target]
        yield from self.partitions.elect_reassigned(target)
        elected = self.context.state.leader_epoch > state.leader_epoch
        self.context.state = self.context.state.assigned(target)
        if elected:
            self._requests.tell(self.context.replicas())
        for broker in leaving:
            yield from self._replicas.take_offline(broker, target)
        for broker in leaving:
            self._requests.stop(broker, delete=True)
        yield from self.partitions.assign(target)
        yield lambda zookeeper: zookeeper.reassigned()
        self._host.reached(probes.REASSIGNMENT_DONE)
        self.context.target = ()
        self._requests.update_metadata()
