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
from sim.protocol.messages import NONE, NOT_CONTROLLER, STALE_BROKER_EPOCH, LeaderAndIsr, topic_of
from sim.protocol.zookeeper import election
from sim.protocol.zookeeper.controller_broker_request_batch import ControllerBrokerRequestBatch
from sim.protocol.zookeeper.controller_context import ControllerContext
from sim.protocol.zookeeper.controller_event_manager import ControllerEventManager
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.partition_state_machine import PartitionStateMachine
from sim.protocol.zookeeper.replica_state_machine import ReplicaStateMachine
from sim.protocol.zookeeper.topic_deletion_manager import TopicDeletionManager
from sim.protocol.zookeeper.zk_operations import (
    DeleteReassignment,
    RaiseEpoch,
    ReadAll,
    ReadBrokers,
    ReadStates,
    ReadTopicDeletions,
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
        self.partitions = PartitionStateMachine(self.context, self._requests, decide, unclean_election=unclean_election)
        self._replicas = ReplicaStateMachine(self.context, self._requests, self.partitions, decide)
        self._deletion = TopicDeletionManager(self.context, self._requests, self._replicas)

    def on_zookeeper_result(self, result: Any) -> None:
        """Resume the current handler with ZooKeeper's response."""
        if self._events.on_zookeeper_result(result):
            self._handled()

    def on_controller_moved(self) -> None:
        """Handle a write refused because there is a newer controller.

        Without fencing, only the handler fails and the next event is handled. With several partitions the handler goes
        on, because it may be about others, too.
        Kafka: errors.ControllerMovedException (0.10.2-4.4), StateChangeFailedException.
        """
        self._host.reached(probes.CONTROLLER_WRITE_REFUSED)
        if self._decide.fences_controller_writes.yes():
            self.resign()
        elif len(self.context.states) > 1:
            self.on_zookeeper_result([])
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

    def topic_created(self, names: tuple[str, ...]) -> None:
        """Handle the watch on topics: these partitions are new.

        Kafka: KafkaController#onNewTopicCreation (0.10.2), KafkaController#processTopicChange (2.6-3.9),
        TopicChangeHandler#handleChildChange (1.1-3.9), KafkaController.TopicChange#process (1.1-2.0).
        """
        self._events.put(self.partitions.create(names))

    def topics_deleted(self) -> None:
        """Handle the watch on requests to delete topics.

        Kafka: TopicDeletionHandler#handleChildChange (1.1-3.9),
        PartitionStateMachine.DeleteTopicsListener#doHandleChildChange (0.10.2).
        """
        self._events.put(self._topics_deleted())

    def replicas_deleted(self, broker: int, errors: Mapping[str, str]) -> None:
        """Handle a broker's response to StopReplica with deletion: its errors by partition.

        Those of a reassignment are ignored.
        Kafka: AbstractControllerBrokerRequestBatch#sendStopReplicaRequests (2.6-3.9).
        """
        started = self.context.topics_with_deletion_started
        deleted = {name: error for name, error in errors.items() if topic_of(name) in started}
        if deleted:
            self._events.put(self._deletion.stop_replica_answered(broker, deleted))

    def isr_changed(self, names: tuple[str, ...]) -> None:
        """Handle the watch on ISR changes of partitions by leaders, or on the ISR of a partition in reassignment.

        Kafka: IsrChangeNotificationHandler#handleChildChange (1.1-3.9),
        PartitionReassignmentIsrChangeHandler#handleDataChange (1.1-3.9).
        """
        self._events.put(self._isr_changed(names))

    def preferred_election(self, names: tuple[str, ...]) -> None:
        """Handle a preferred election of partitions, requested by an administrator or auto leader rebalance.

        Kafka: KafkaController#onPreferredReplicaElection (0.10.2-2.0), KafkaController#onReplicaElection (2.6-3.9),
        PreferredReplicaElectionHandler#handleCreation (1.1-3.9), KafkaController.PreferredReplicaLeaderElection#process
        (1.1-2.0).
        """
        self._events.put(self.partitions.elect_preferred(names))

    def reassignment_requested(self, names: tuple[str, ...]) -> None:
        """Handle the watch on reassignment requests, of partitions.

        Kafka: PartitionReassignmentHandler#handleCreation (1.1-3.9), PartitionsReassignedListener#doHandleDataChange
        (0.10.2).
        """
        self._events.put(self._reassignment_requested(names))

    def settings_changed(self) -> None:
        """Handle a configuration change, which may allow unclean election.

        Kafka: KafkaController#enableDefaultUncleanLeaderElection (2.0-3.9),
        KafkaController.UncleanLeaderElectionEnable#process (2.0), KafkaController#processUncleanLeaderElectionEnable
        (2.6-3.9).
        """
        if self._decide.checks_enabled_unclean.yes():
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
        context = self.context
        live, registry, known, deletions = yield ReadAll()
        for state, target in known:
            self._note(state, target)
        for broker, broker_epoch in sorted(live.items()):
            self._add(broker, broker_epoch)
        missed = sorted({member for state, _ in known for member in _restarted(state, live, registry)})
        if missed:
            self._host.reached(probes.MISSED_BOUNCE)
            if self._decide.notices_missed_bounces.yes():
                self._remove(missed)
            else:
                missed = []
        self._deletion.init([topic for topic in deletions if context.partitions_of(topic)])
        self._requests.update_metadata()
        existing = context.existing
        if not existing:
            yield from self.partitions.create(context.without_queued(list(context.states)))
            yield from self._deletion.resume_deletions()
            return
        context.offline.update([name for name in existing if context.states[name].leader not in context.live])
        yield from self._replicas.bring_online(context.live)
        replicas = [broker for name in existing for broker in context.states[name].replicas]
        dead = list(dict.fromkeys([broker for broker in replicas if broker not in context.live]))
        if dead and self._decide.starts_with_all_replicas.yes():
            yield from self._take_brokers_offline(dead)
            yield from self._replicas.take_offline_for_deletion(context.replicas_to_be_deleted(dead))
        yield from self.partitions.elect_offline()
        if missed:
            for broker in missed:
                self._add(broker, live[broker])
            yield from self._brokers_started(missed)
        for name in list(context.targets):
            yield from self._continue_reassignment(name)
        yield from self._deletion.resume_deletions()

    def _note(self, state: LeaderAndIsr, target: tuple[int, ...]) -> None:
        """Note a partition's state and requested reassignment, as ZooKeeper has them."""
        self.context.states[state.name] = state
        if target:
            self.context.targets[state.name] = target
        else:
            self.context.targets.pop(state.name, None)

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
        yield from self._finish_reassignments(list(self.context.targets))

    def _add(self, broker: int, broker_epoch: int) -> None:
        self.context.live[broker] = broker_epoch
        self._host.broker_added(broker)

    def _remove(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self.context.live[broker]
            self._host.broker_removed(broker)

    def _brokers_started(self, brokers: list[int]) -> Steps:
        """Kafka: KafkaController#onBrokerStartup."""
        context = self.context
        self._requests.update_metadata()
        if context.existing:
            yield from self._replicas.bring_online(brokers)
        yield from self.partitions.elect_offline()
        for name, target in list(context.targets.items()):
            if set(target) & set(brokers):
                yield from self._reassign(name)
        to_be_deleted = [name for name, _ in context.replicas_to_be_deleted(brokers)]
        yield from self._deletion.resume_deletion_for(dict.fromkeys([topic_of(name) for name in to_be_deleted]))

    def _brokers_failed(self, brokers: list[int]) -> Steps:
        """Elections for all partitions that lost their leaders, then the replicas go offline.

        Brokers learn of the failure from the elections, or from UpdateMetadata if there is none.
        Kafka: KafkaController#onBrokerFailure, KafkaController#onReplicasBecomeOffline (1.1-3.9).
        """
        context = self.context
        for broker in brokers:
            context.shutting_down.pop(broker, None)
        existing = context.without_queued(context.existing)
        leaderless = [name for name in existing if self._is_leader_gone(name, brokers)]
        if not leaderless:
            self._requests.update_metadata()
        if existing:
            context.offline.update(leaderless)
            yield from self.partitions.elect_offline()
            yield from self._take_brokers_offline(brokers)
        yield from self._deletion.fail_deletion(context.replicas_to_be_deleted(brokers))

    def _take_brokers_offline(self, brokers: list[int]) -> Steps:
        """Take the replicas of brokers offline, broker by broker, in any order, but those of topics to be deleted.

        Kafka: KafkaController#onReplicasBecomeOffline (1.1-3.9).
        """
        for broker in brokers:
            names = self.context.without_queued(self.context.partitions_on(broker))
            yield from self._replicas.take_offline(broker, names)

    def _is_leader_gone(self, name: str, brokers: list[int]) -> bool:
        """Whether a partition needs an election because these brokers failed.

        From 1.0 on every leader is checked, and one that is shutting down counts as offline.
        Kafka: ControllerContext#isReplicaOnline (1.1-3.9).
        """
        leader = self.context.states[name].leader
        went, unwilling = leader in brokers, leader not in self.context.willing()
        if went == unwilling:
            return went
        return went if self._decide.stopping_leader_is_online.yes() else unwilling

    def _isr_changed(self, names: tuple[str, ...]) -> Steps:
        """Read the ISRs that leaders wrote, and send them to all brokers.

        Kafka: IsrChangeNotificationListener#handleChildChange (0.10.2), KafkaController.IsrChangeNotification#process
        (1.1-2.0), KafkaController#processIsrChangeNotification (2.6-3.9).
        """
        for state, _ in (yield ReadStates(names)):
            self.context.states[state.name] = state
        existing = [name for name in names if self.context.exists(name)]
        if existing:
            self._requests.update_metadata(existing)
            yield from self._finish_reassignments(existing)

    def _controlled_shutdown(self, broker: int, broker_epoch: int, answer: Callable[[str, int], None]) -> Steps:
        """Move leadership to another ISR member, and remove followers from the ISR.

        The requests are sent before the answer, with which the broker ends.
        Kafka: KafkaController#shutdownBroker (0.10.2), KafkaController.ControlledShutdown#doControlledShutdown
        (1.1-2.0), KafkaController#doControlledShutdown (2.6-3.9).
        """
        context = self.context
        if broker not in context.live:
            answer(BROKER_NOT_AVAILABLE, 0)
            return
        if broker_epoch < context.live[broker] and self._decide.checks_broker_epochs.yes():
            answer(STALE_BROKER_EPOCH, 0)
            return
        context.shutting_down[broker] = None
        here = context.without_queued(context.partitions_on(broker))
        several = [name for name in here if len(context.states[name].replicas) > 1]
        led = [name for name in several if context.states[name].leader == broker]
        yield from self.partitions.elect_for_shutdown(led)
        yield from self._replicas.take_offline(broker, [name for name in several if name not in led])
        led = [name for name, state in context.states.items() if state.leader == broker and len(state.replicas) > 1]
        remaining = context.without_queued(led)
        self._host.flush()
        answer(NONE, len(remaining))
        yield from self._finish_reassignments(list(context.targets))

    def _topics_deleted(self) -> Steps:
        """Read the requests to delete topics, and begin with those that are eligible.

        Kafka: KafkaController.TopicDeletion#process (1.1-2.0), KafkaController#processTopicDeletion (2.6-3.9).
        """
        topics: tuple[str, ...] = yield ReadTopicDeletions()
        yield from self._deletion.enqueue([topic for topic in topics if self.context.partitions_of(topic)])

    # Reassignment.

    def _reassignment_requested(self, names: tuple[str, ...]) -> Steps:
        """Start requested reassignments, one after the other.

        Kafka: KafkaController.PartitionReassignment#process (1.1-2.0), KafkaController#processZkPartitionReassignment
        (2.6-3.9).
        """
        for state, target in (yield ReadStates(names)):
            self._note(state, target)
        for name in [name for name in names if name in self.context.states]:
            whole = set(self.context.targets.get(name, ())) == set(self.context.states[name].replicas)
            complete = whole and self._decide.keeps_reassignment_marks.yes()
            yield from self._continue_reassignment(name, complete=complete)

    def _continue_reassignment(self, name: str, *, complete: bool = False) -> Steps:
        """Continue a reassignment of a partition that was requested or left by an earlier controller.

        If only its target is known, it is dropped when the assignment already equals the target, in sync or not, and
        when the topic is to be deleted (which stays ineligible until a broker with one of its replicas starts).
        `complete`: whether it is complete although some of its replicas may not be in sync.
        Kafka: KafkaController#maybeTriggerPartitionReassignment.
        """
        target = self.context.targets.get(name, ())
        if not target or not self.context.exists(name):
            return
        is_moot = target == self.context.states[name].replicas or self.context.is_queued(name)
        if is_moot and not self._decide.keeps_reassignment_marks.yes():
            yield DeleteReassignment(name)
            self.context.targets.pop(name, None)
        else:
            yield from self._reassign(name, complete=complete)

    def _finish_reassignments(self, names: list[str]) -> Steps:
        """Finish the reassignments of those partitions that their changed ISRs complete.

        Kafka: KafkaController.PartitionReassignmentIsrChange#process (1.1-2.0),
        KafkaController#processPartitionReassignmentIsrChange (2.6-3.9).
        """
        for name in names:
            target = self.context.targets.get(name)
            if target and set(target) <= set(self.context.states[name].isr):
                yield from self._reassign(name)

    def _reassign(self, name: str, *, complete: bool = False) -> Steps:
        """Assign all replicas, old and new; once the new ones are in the ISR, only those.

        From the final election on brokers get only the new replicas, and ZooKeeper is written last: the leader must not
        take a leaving replica back into the ISR, and the next controller must know which replicas leave (steps B2 to B6
        of KIP-455's onPartitionReassignment; 6 to 10 before). It continues even if no leader can be elected.
        Kafka: KafkaController#onPartitionReassignment.
        """
        context = self.context
        target = context.targets[name]
        self._deletion.mark_ineligible(topic_of(name))
        for read, _ in (yield ReadStates((name,))):
            context.states[name] = read
        state = context.states[name]
        if not complete and not set(target) <= set(state.isr):
            both = (*target, *(broker for broker in state.replicas if broker not in target))
            ordered = election.in_set_order(both)
            if ordered != both and not self._decide.keeps_reassignment_marks.yes():
                both = ordered
            if set(both) != set(state.replicas):
                self._host.reached(probes.REASSIGNMENT_BEGINS)
            if both != state.replicas:
                yield from self.partitions.assign(name, both)
            yield from self.partitions.update_states(RaiseEpoch(context.epoch, (name,)))
            if name not in self.partitions.refused:
                self._requests.send_to_replicas((name,))
            return
        leaving = [broker for broker in state.replicas if broker not in target]
        yield from self.partitions.elect_reassigned(name, target)
        if name in self.partitions.refused:
            return
        elected = context.states[name].leader_epoch > state.leader_epoch
        context.states[name] = context.states[name].assigned(target)
        if elected:
            self._requests.send_to_replicas((name,))
        for broker in leaving:
            yield from self._replicas.take_offline(broker, (name,), target)
        if not set(leaving).isdisjoint(context.states[name].isr):
            # Rule ``missed_bounce=noticed``: of those that stay, none is known to lack nothing.
            context.states[name] = context.states[name].assigned(state.replicas)
            return
        for broker in leaving:
            self._requests.stop(broker, (name,), delete=True)
        yield from self.partitions.assign(name, target)
        yield DeleteReassignment(name)
        self._host.reached(probes.REASSIGNMENT_DONE)
        context.targets.pop(name, None)
        self._requests.update_metadata((name,))
        yield from self._deletion.resume_deletion_for((topic_of(name),))


def _restarted(state: LeaderAndIsr, live: Mapping[int, int], registry: election.Registry) -> list[int]:
    """The live members of a partition's ISR that restarted since they joined it."""
    return [member for member in state.isr if member in live and election.restarted(member, state, registry)]
