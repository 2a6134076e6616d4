"""A broker's controller module: connects the controller to ZooKeeper and to brokers.

Each broker has its own queue; one batch of requests is in flight at a time, and is resent until it is answered or the
broker is gone (rule ``control_retry``: in early releases, it may be lost).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sim.environment.network import Node
from sim.hosts.settings import BrokerSettings
from sim.hosts.zk_messages import ELECT, STEP
from sim.kernel.message import ABOUT
from sim.kernel.scheduler import IdleCall, Kernel, noop
from sim.protocol.decisions import Decisions
from sim.protocol.messages import (
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
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.kafka_controller import KafkaController
from sim.protocol.zookeeper.zk_operations import MOVED, ElectController, Operation

RETRY_US: Final = 100_000
"""Back-off of RequestSendThread."""
FIRST_BALANCE_US: Final = 5_000_000
"""Delay of a new controller's first auto leader rebalance."""
IMBALANCE_PERCENT: Final = 10
"""The default of ``leader.imbalance.per.broker.percentage``, which is not modelled as a setting."""


class _Queue:
    """Batches for one broker: the first is in flight if `is_sent`; `gathered` are the requests of the next batch."""

    __slots__ = ("batches", "gathered", "is_sent", "sent_us", "timer_set")

    def __init__(self) -> None:
        self.batches: list[ControllerRequestBatch] = []
        self.gathered: list[AbstractControlRequest] = []
        self.sent_us = -1
        self.is_sent = False
        self.timer_set = False


NO_NODE: Final = Node(-1)
"""The node of a module whose process has ended."""


class ControllerModule(ControllerHost):
    """The controller's host in one broker. Kafka: ControllerChannelManager, RequestSendThread."""

    __deletable__ = ("controller",)

    def __init__(
        self,
        node: Node,
        decide: Decisions,
        settings: BrokerSettings,
        kernel: Kernel,
        ask_zookeeper: Callable[..., None],
        reached: Callable[[int], None],
    ) -> None:
        self._reached = reached
        self._node = node
        self._settings = settings
        self._kernel = kernel
        self._ask = ask_zookeeper
        self._queues: dict[int, _Queue] = {}
        self._decide = decide
        self._electing = False
        self._outlives_session = not decide.fences_controller_writes.answer
        self._term = 0
        self._metadata_sent = 0
        self.controller = KafkaController(node.node, decide, self, unclean_election=settings.unclean_election)

    def end(self) -> None:
        """Stop, because the process ended."""
        self._node = NO_NODE
        self._ask = noop
        self._queues.clear()

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        del self.controller

    # The election.

    def elect(self) -> None:
        """Run for controller. Kafka: KafkaController#elect (1.1-3.9), ZookeeperLeaderElector#elect (0.10.2)."""
        if self.controller.context.epoch < 0 and not self._electing:
            self._electing = True
            self._ask(ElectController(self._node.node), self._elected, ELECT << ABOUT)

    def _elected(self, epoch: int) -> None:
        self._electing = False
        if epoch:
            self.controller.elected(epoch)

    def on_controller_gone(self) -> None:
        """Handle the deletion of the controller node: resign if active, then run for controller."""
        self.controller.resign()
        self.elect()

    def session_lost(self) -> None:
        """Handle expiry of the broker's session."""
        self._electing = False
        self.controller.session_lost()

    # Implementation of `sim.protocol.zookeeper.controller_host.ControllerHost`.

    def ask_zookeeper(self, operation: Operation) -> None:
        """See `ControllerHost.ask_zookeeper`."""
        subject = (STEP << ABOUT) + self.controller.context.first.partition_epoch
        done = partial(self.on_zookeeper_result, self._term)
        self._ask(operation, done, subject, outlives_session=self._outlives_session)

    def on_zookeeper_result(self, term: int, result: Any) -> None:
        """Handle the result of an operation that the controller requested in a term."""
        if term != self._term:
            return  # Requested before it resigned.
        if isinstance(result, str) and result == MOVED:
            self.controller.on_controller_moved()
        else:
            self.controller.on_zookeeper_result(result)

    def active(self, epoch: int) -> None:  # noqa: ARG002 - ZooKeeper has noted it
        """See `ControllerHost.active`."""
        self._term += 1
        if self._settings.auto_balance:
            self._balance_after(FIRST_BALANCE_US)

    def resigned(self) -> None:
        """See `ControllerHost.resigned`."""
        self._term += 1
        self._queues.clear()

    def _balance_after(self, delay_us: int) -> None:
        self._kernel.schedule(self._kernel.now_us + delay_us, self._node.life, IdleCall(self._balance, self._term))

    def _balance(self, term: int) -> None:
        """Auto leader rebalance: a preferred election of the partitions that a live broker should lead and does not, if
        they are more than the allowed share of those that it should lead.

        Kafka: KafkaController#checkAndTriggerAutoLeaderRebalance (1.1-3.9),
        KafkaController#checkAndTriggerPartitionRebalance (0.10.2).
        """
        if term == self._term:
            context = self.controller.context
            preferred: dict[int, list[LeaderAndIsr]] = {}
            for name in context.without_queued(list(context.states)):
                state = context.states[name]
                preferred.setdefault(state.replicas[0], []).append(state)
            for broker, states in preferred.items():
                names = [state.name for state in states if state.leader_epoch >= 0 and state.leader != broker]
                if broker in context.live and 100 * len(names) > IMBALANCE_PERCENT * len(states):
                    self.controller.preferred_election(tuple(names))
            self._balance_after(self._settings.balance_check_us)

    # Queues.

    def reached(self, probe: int) -> None:
        """See `ControllerHost.reached`."""
        self._reached(probe)

    def broker_added(self, broker: int) -> None:
        """See `ControllerHost.broker_added`."""
        self._queues[broker] = _Queue()

    def broker_removed(self, broker: int) -> None:
        """See `ControllerHost.broker_removed`."""
        self._queues.pop(broker, None)

    def send_leader_and_isr(self, broker: int, states: tuple[LeaderAndIsr, ...]) -> None:
        """See `ControllerHost.send_leader_and_isr`."""
        context = self.controller.context
        self._gather(broker, LeaderAndIsrRequest(context.epoch, context.live.get(broker, -1), states))

    def send_update_metadata(self, broker: int, states: tuple[LeaderAndIsr, ...], live: dict[int, int]) -> None:
        """See `ControllerHost.send_update_metadata`."""
        context = self.controller.context
        self._metadata_sent += 1
        broker_epoch = context.live.get(broker, -1)
        self._gather(broker, UpdateMetadataRequest(context.epoch, broker_epoch, states, live, self._metadata_sent))

    def send_stop_replica(self, broker: int, states: tuple[LeaderAndIsr, ...], *, delete: bool) -> None:
        """See `ControllerHost.send_stop_replica`."""
        context = self.controller.context
        broker_epoch = context.live.get(broker, -1)
        self._gather(broker, StopReplicaRequest(context.epoch, broker_epoch, states, delete=delete))

    def _gather(self, broker: int, request: AbstractControlRequest) -> None:
        self._queues[broker].gathered.append(request)

    def flush(self) -> None:
        """See `ControllerHost.flush`."""
        for broker, queue in self._queues.items():
            if queue.gathered:
                queue.batches.append(ControllerRequestBatch(self._node.node, queue.gathered))
                queue.gathered = []
                if len(queue.batches) == 1:
                    self._send(broker, queue)

    def _send(self, broker: int, queue: _Queue) -> None:
        """Kafka: RequestSendThread#doWork."""
        node = self._node
        channel = node.out.get(broker) or node.reach(broker)
        if channel is None:
            return  # Sent when the broker comes up (`peer_up`), if it does.
        queue.sent_us = self._kernel.now_us
        queue.is_sent = True
        channel.send(queue.batches[0])
        if not queue.timer_set:
            queue.timer_set = True
            due_us = queue.sent_us + self._settings.controller_socket_timeout_us
            self._kernel.schedule(due_us, self._node.life, IdleCall(self._time_out, (broker, queue)))

    def _time_out(self, entry: tuple[int, _Queue]) -> None:
        broker, queue = entry
        queue.timer_set = False
        if self._queues.get(broker) is not queue or not queue.batches:
            return
        due_us = queue.sent_us + self._settings.controller_socket_timeout_us
        if due_us <= self._kernel.now_us:
            self._send_again(broker, queue)
        else:
            queue.timer_set = True
            self._kernel.schedule(due_us, self._node.life, IdleCall(self._time_out, entry))

    def _send_again(self, broker: int, queue: _Queue) -> None:
        """Send the first batch once more, or the next one if an unanswered one is lost."""
        if queue.is_sent and not self._decide.resends_unanswered_requests.yes():
            queue.batches.pop(0)
            queue.is_sent = False
        if queue.batches:
            self._send(broker, queue)

    def on_control_reply(self, reply: ControlResponse) -> None:
        """Handle a broker's response; the next request follows even after an error."""
        broker = reply.broker
        queue = self._queues.get(broker)
        if queue is not None and queue.batches and queue.batches[0] is reply.batch:
            queue.batches.pop(0)
            queue.is_sent = False
            if queue.batches:
                self._send(broker, queue)
            if reply.deleted:
                self.controller.replicas_deleted(broker, reply.deleted)

    def peer_up(self, broker: int) -> None:
        """Resend unanswered requests to a broker that is reachable again."""
        queue = self._queues.get(broker)
        if queue is not None and queue.batches:
            self._kernel.call_at(self._kernel.now_us + RETRY_US, self._node.life, self._retry, (broker, queue))

    def _retry(self, entry: tuple[int, _Queue]) -> None:
        broker, queue = entry
        if self._queues.get(broker) is queue and queue.batches:
            self._send_again(broker, queue)

    # Requests to the controller.

    def on_controlled_shutdown(self, request: ControlledShutdownRequest) -> None:
        """Handle a ControlledShutdown request. Kafka: KafkaApis#handleControlledShutdownRequest (0.10.2-3.9)."""

        def answer(error: str, remaining: int) -> None:
            channel = self._node.reach(request.broker)
            if channel is not None:
                reply = ControlledShutdownResponse(request, error, remaining)
                channel.send(reply)

        self.controller.controlled_shutdown(request.broker, request.broker_epoch, answer)
