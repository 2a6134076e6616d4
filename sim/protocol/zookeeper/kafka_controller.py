"""The elected controller: elects leaders, sends requests to brokers, and writes state to ZooKeeper.

Events are handled one at a time, in order of arrival. A handler is a generator: it yields a request to ZooKeeper and
resumes with the result, so everything may change between its steps. Controllers run in brokers; this module handles
neither messages nor time.
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
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine
from sim.protocol.zookeeper.replica_state_machine import ReplicaStateMachine
from sim.protocol.zookeeper.zk_operations import (
    DeleteReassignment,
    RaiseEpoch,
    ReadAll,
    ReadBrokers,
    ReadState,
    Steps,
)

BROKER_NOT_AVAILABLE: Final = "BROKER_NOT_AVAILABLE"


class KafkaController:
    """The controller of one broker, active while elected. Kafka: KafkaController."""

    def __init__(self, broker: int, decide: Decisions, host: ControllerHost, *, unclean_election: bool) -> None:
        self.broker = broker
        self.context = ControllerContext()
        self._host = host
        self._decide = decide
        self._events = ControllerEventManager(host)
        self._requests = ControllerBrokerRequestBatch(self.context, host)
        self.partitions = PartitionStateMachine(self.context, self._requests, unclean_election=unclean_election)
        self._replicas = ReplicaStateMachine(self.context, self._requests, self.partitions, decide)

    def on_zookeeper_result(self, result: Any) -> None:
        """Resume the current handler with ZooKeeper's response."""
        if self._events.on_zookeeper_result(result):
            self._handled()

    def on_controller_moved(self) -> None:
        """Handle a write refused because there is a newer controller.

        Without fencing, only the handler fails and the next event is handled.
        Kafka: errors.ControllerMovedException (0.10.2-4.4).
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

    # Election and resignation.

    def elected(self, epoch: int) -> None:
        """Become active after this broker was elected. Kafka: KafkaController#onControllerFailover."""
        self.context.epoch = epoch
        self._host.active(epoch)
        self._events.begin(self._failover())

    def session_lost(self) -> None:
        """Resign, because the broker's session has expired.

        Without fencing, the current handler finishes first, in the next session (KAFKA-6082).
        Kafka: KafkaController#processExpire (2.6-3.9), KafkaController.Expire#process (1.1-2.0).
        """
        if not self._events.is_handling or self._decide.fences_controller_writes.yes():
            self.resign()
        else:
            self._host.reached(probes.CONTROLLER_FINISHES)
            self._events.finish()

    def resign(self) -> None:
        """Resign: there is, or will be, another controller. Kafka: KafkaController#onControllerResignation."""
        if self.context.epoch < 0:
            return
        self._events.clear()
        self.context.reset()
        self._host.resigned()

    # Events.

    def brokers_changed(self) -> None:
        """Handle the watch on broker registrations.

        Kafka: BrokerChangeHandler#handleChildChange (1.1-3.9), BrokerChangeListener#doHandleChildChange (0.10.2).
        """
        self._events.put(self._brokers_changed())

    def topic_created(self) -> None:
        """Handle the watch on topics.

        Kafka: KafkaController#onNewTopicCreation (0.10.2), KafkaController#processTopicChange (2.6-3.9),
        TopicChangeHandler#handleChildChange (1.1-3.9), KafkaController.TopicChange#process (1.1-2.0).
        """
        self._events.put(self.partitions.create())

    def isr_changed(self) -> None:
        """Handle the watch on ISR changes by leaders, or on the ISR of a partition in reassignment.

        Kafka: IsrChangeNotificationHandler#handleChildChange (1.1-3.9),
        PartitionReassignmentIsrChangeHandler#handleDataChange (1.1-3.9).
        """
        self._events.put(self._isr_changed())

    def preferred_election(self) -> None:
        """Handle a preferred election requested by an administrator or auto leader rebalance.

        Kafka: KafkaController#onPreferredReplicaElection (0.10.2-2.0), KafkaController#onReplicaElection (2.6-3.9),
        PreferredReplicaElectionHandler#handleCreation (1.1-3.9), KafkaController.PreferredReplicaLeaderElection#process
        (1.1-2.0).
        """
        self._events.put(self.partitions.elect_preferred())

    def reassignment_requested(self) -> None:
        """Handle the watch on reassignment requests.

        Kafka: PartitionReassignmentHandler#handleCreation (1.1-3.9), PartitionsReassignedListener#doHandleDataChange
        (0.10.2).
        """
        self._events.put(self._reassignment_requested())

    def settings_changed(self) -> None:
        """Handle a configuration change, which may allow unclean election.

        Kafka: KafkaController#enableDefaultUncleanLeaderElection (2.0-3.9),
        KafkaController.UncleanLeaderElectionEnable#process (2.0), KafkaController#processUncleanLeaderElectionEnable
        (2.6-3.9).
        """
        self._events.put(self.partitions.elect_offline())

    def controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> None:
        """Handle a ControlledShutdown request; `answer` is called with an error and the number of partitions it still
        leads.

        Kafka: KafkaController#shutdownBroker (0.10.2), KafkaController#controlledShutdown (1.1-3.9).
        """
        if self.context.epoch < 0:
            answer(NOT_CONTROLLER, 0)
        else:
            self._events.put(self._controlled_shutdown(broker, broker_epoch, answer))

    # Handlers.

    def _failover(self) -> Steps:
        """Kafka: KafkaController#onControllerFailover, KafkaController#initializeControllerContext."""
        live, registry, (self.context.state, self.context.target) = yield ReadAll()
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
        yield from self._replicas.bring_online(self.context.replicas())
        dead = [replica for replica in state.replicas if replica not in self.context.live]
        if dead and self._decide.starts_with_all_replicas.yes():
            yield from self._take_replicas_offline(dead)
        yield from self.partitions.elect_offline()
        if missed:
            for broker in missed:
                self._add(broker, live[broker])
            yield from self._brokers_started(missed)
        yield from self._continue_reassignment()

    def _brokers_changed(self) -> Steps:
        """Read the registered brokers and handle the difference.

        Kafka: ReplicaStateMachine.BrokerChangeListener#handleChildChange (0.10.2), KafkaController.BrokerChange#process
        (1.1-2.0), KafkaController#processBrokerChange (2.6-3.9).
        """
        found: Mapping[int, int] = yield ReadBrokers()
        known = self.context.live
        came = sorted(broker for broker in found if broker not in known)
        went = sorted(broker for broker in known if broker not in found)
        bounced = sorted(broker for broker in found if broker in known and found[broker] > known[broker])
        tells_bounces = self._decide.checks_broker_epochs
        if went and (came or bounced):
            tells_bounces.note()
        if not tells_bounces.answer:  # The set of live brokers is replaced first (up to 2.1).
            self._remove(went)
        for broker in came:
            self._add(broker, found[broker])
        if came:
            yield from self._brokers_started(came)
        if bounced:
            self._host.reached(probes.BOUNCE)
        if bounced and tells_bounces.yes():
            self._remove(bounced)
            yield from self._brokers_failed(bounced)
            for broker in bounced:
                self._add(broker, found[broker])
            yield from self._brokers_started(bounced)
        elif bounced:  # The set of ids is unchanged, so the restart goes unnoticed (KAFKA-1120).
            for broker in bounced:
                known[broker] = found[broker]
        if went:
            if tells_bounces.answer:
                self._remove(went)
            yield from self._brokers_failed(went)
        yield from self._finish_reassignment()

    def _add(self, broker: int, broker_epoch: int) -> None:
        self.context.live[broker] = broker_epoch
        self._host.broker_added(broker)

    def _remove(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self.context.live[broker]
            self._host.broker_removed(broker)

    def _brokers_started(self, brokers: list[int]) -> Steps:
        """Kafka: KafkaController#onBrokerStartup."""
        self._requests.update_metadata()
        if not self.context.exists:
            yield from self.partitions.elect_offline()
            return
        started = [broker for broker in brokers if broker in self.context.state.replicas]
        if started:
            yield from self._replicas.bring_online(started)
        yield from self.partitions.elect_offline()
        if set(self.context.target) & set(brokers):
            yield from self._reassign()

    def _brokers_failed(self, brokers: list[int]) -> Steps:
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
        yield from self._take_replicas_offline([broker for broker in brokers if broker in self.context.state.replicas])

    def _take_replicas_offline(self, brokers: list[int]) -> Steps:
        """Take replicas offline one by one, in any order. Kafka: KafkaController#onReplicasBecomeOffline (1.1-3.9)."""
        for broker in brokers:
            yield from self._replicas.take_offline(broker)

    def _is_leader_gone(self, brokers: list[int]) -> bool:
        """Whether the partition needs an election because these brokers failed.

        From 1.0 on every leader is checked, and one that is shutting down counts as offline.
        Kafka: ControllerContext#isReplicaOnline (1.1-3.9).
        """
        leader = self.context.state.leader
        went, unwilling = leader in brokers, leader not in self.context.willing()
        if went == unwilling:
            return went
        return went if self._decide.stopping_leader_is_online.yes() else unwilling

    def _isr_changed(self) -> Steps:
        """Read the ISR that leaders wrote, and send it to all brokers.

        Kafka: IsrChangeNotificationListener#handleChildChange (0.10.2), KafkaController.IsrChangeNotification#process
        (1.1-2.0), KafkaController#processIsrChangeNotification (2.6-3.9).
        """
        self.context.state, _ = yield ReadState()
        if self.context.exists:
            self._requests.update_metadata()
            yield from self._finish_reassignment()

    def _controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> Steps:
        """Move leadership to another ISR member, and remove followers from the ISR.

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

    def _reassignment_requested(self) -> Steps:
        """Start a requested reassignment.

        Kafka: KafkaController.PartitionReassignment#process (1.1-2.0), KafkaController#processZkPartitionReassignment
        (2.6-3.9).
        """
        self.context.state, self.context.target = yield ReadState()
        whole = set(self.context.target) == set(self.context.state.replicas)
        yield from self._continue_reassignment(complete=whole and self._decide.keeps_reassignment_marks.yes())

    def _continue_reassignment(self, *, complete: bool = False) -> Steps:
        """Continue a reassignment that was requested or left by an earlier controller.

        If only its target is known, it is dropped when the assignment already equals the target, in sync or not.
        `complete`: whether it is complete although some of its replicas may not be in sync.
        Kafka: KafkaController#maybeTriggerPartitionReassignment.
        """
        target = self.context.target
        if not target or not self.context.exists:
            return
        if target == self.context.state.replicas and not self._decide.keeps_reassignment_marks.yes():
            yield DeleteReassignment()
            self.context.target = ()
        else:
            yield from self._reassign(complete=complete)

    def _finish_reassignment(self) -> Steps:
        """Finish the reassignment if the changed ISR completes it.

        Kafka: KafkaController.PartitionReassignmentIsrChange#process (1.1-2.0),
        KafkaController#processPartitionReassignmentIsrChange (2.6-3.9).
        """
        if self.context.target and set(self.context.target) <= set(self.context.state.isr):
            yield from self._reassign()

    def _reassign(self, *, complete: bool = False) -> Steps:
        """Assign all replicas, old and new; once the new ones are in the ISR, only those.

        From the final election on brokers get only the new replicas, and ZooKeeper is written last: the leader must not
        take a leaving replica back into the ISR, and the next controller must know which replicas leave (steps B2 to B6
        of KIP-455's onPartitionReassignment; 6 to 10 before). It continues even if no leader can be elected.
        Kafka: KafkaController#onPartitionReassignment.
        """
        target = self.context.target
        self.context.state, _ = yield ReadState()
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
            yield from self.partitions.update_state(RaiseEpoch(self.context.epoch))
            self._requests.send_state(self.context.replicas())
            return
        leaving = [broker for broker in state.replicas if broker not in target]
        yield from self.partitions.elect_reassigned(target)
        elected = self.context.state.leader_epoch > state.leader_epoch
        self.context.state = self.context.state.assigned(target)
        if elected:
            self._requests.send_state(self.context.replicas())
        for broker in leaving:
            yield from self._replicas.take_offline(broker, target)
        if not set(leaving).isdisjoint(self.context.state.isr):
            # Rule ``missed_bounce=noticed``: of those that stay, none is known to lack nothing.
            self.context.state = self.context.state.assigned(state.replicas)
            return
        for broker in leaving:
            self._requests.stop(broker, delete=True)
        yield from self.partitions.assign(target)
        yield DeleteReassignment()
        self._host.reached(probes.REASSIGNMENT_DONE)
        self.context.target = ()
        self._requests.update_metadata()
