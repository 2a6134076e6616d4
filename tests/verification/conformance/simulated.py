"""Cases that need more than a protocol class: a whole simulated cluster, or one broker of it among stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sim.config import Value, resolve
from sim.environment.network import Node
from sim.environment.storage import Storage
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.hosts.zk_messages import ScriptedDecision
from sim.kernel.message import Message
from sim.kernel.scheduler import Event, Kernel
from sim.kernel.streams import Streams
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.messages import (
    AGREES,
    NONE,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceResponse,
    StopReplicaRequest,
)
from sim.protocol.replica.partition import NO_LEADER, Partition
from sim.protocol.replica.partition_fetch_state import PartitionFetchState
from sim.protocol.rules import Rules
from tests.plain import StandsIn
from tests.verification.conformance.world import FOLLOWER, LEADER

SECOND_US: Final = 1_000_000
ASKER: Final = 2001
SEED: Final = 3
"""Of latencies. Where shutdowns race with fetches the tables tell the common outcome, and few seeds end otherwise: with
0 a leader that shuts down is back in the ISR for its last millisecond, which costs ft-x01 one more leader epoch.
"""
_STEP_US: Final = 50_000
_LIMIT_US: Final = 300 * SECOND_US


def make_cluster(
    brokers: int, rules: Rules, settings: Mapping[str, Value], *, scripted: bool = False, controller_apart: bool = False
) -> Cluster:
    """A cluster with one partition that has a replica on every broker; the controller may be one broker more."""
    total = brokers + controller_apart
    return Cluster(
        brokers=total,
        config=resolve({"default.replication.factor": brokers}, settings),
        broker_config={},
        rules=dict.fromkeys(range(1, total + 1), rules),
        client_rules=rules,
        scripted=scripted,
        first=total if controller_apart else 1,
        kernel=Kernel(),
        streams=Streams(SEED),
    )


class RunningCluster:
    """A cluster that runs operations one after the other, and waits for each.

    Args:
        brokers: how many.
        rules: of all of them.
        settings: configuration that differs from the defaults.
        acks: of all writes.
        controller_apart: whether the controller is one broker more.
    """

    def __init__(
        self,
        brokers: int,
        rules: Rules,
        settings: Mapping[str, Value],
        acks: int = -1,
        *,
        controller_apart: bool = False,
    ) -> None:
        self.cluster = make_cluster(brokers, rules, settings, controller_apart=controller_apart)
        self.acks = acks
        self.written = 0
        self.cluster.boot()
        self.until(self._whole)

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until a condition holds."""
        kernel = self.cluster.kernel
        deadline_us = kernel.now_us + _LIMIT_US
        while not holds():
            if kernel.now_us >= deadline_us:
                raise AssertionError(f"{holds.__qualname__} has not come about in simulated minutes")
            kernel.run_until(kernel.now_us + _STEP_US)

    def _whole(self) -> bool:
        """Whether all replicas run, are in the ISR, and have equal LEOs."""
        cluster = self.cluster
        in_sync = cluster.leader is not None and set(cluster.control.state.isr) == set(cluster.replicas)
        return in_sync and len({self.partition(broker).log.leo for broker in cluster.replicas}) == 1

    def _led(self) -> bool:
        return self.cluster.leader is not None

    def quiet(self) -> None:
        """Wait until all replicas run, are in the ISR and have all records."""
        self.until(self._whole)

    def partition(self, broker: int) -> Partition:
        """A running broker's partition."""
        partition = self.cluster.running[broker].partition
        assert partition is not None
        return partition

    def write(self, batches: int, size: int = 1) -> None:
        """Batches of so many records, acknowledged and on all members of the ISR."""
        self.until(self._led)
        cluster = self.cluster
        for _ in range(batches):
            cluster.producer.send(ProducerBatch(self.written, size, self.acks, cluster.kernel.now_us))
            self.written += size
        self.until(self._written)

    def _written(self) -> bool:
        state = self.cluster.control.state
        running = [broker for broker in state.isr if broker in self.cluster.running]
        return self.cluster.producer.idle and len({self.partition(broker).log.leo for broker in running}) == 1

    def stop(self, broker: int) -> None:
        """Shut a broker down in a controlled way."""
        self.cluster.shut_down(broker)
        self.until(lambda: broker not in self.cluster.running)

    def start(self, broker: int) -> None:
        """Start a broker; it is up when it knows who leads."""
        self.cluster.start(broker)
        self.until(lambda: self._knows(broker))

    def _knows(self, broker: int) -> bool:
        partition = self.cluster.running[broker].partition
        return partition is not None and partition.leader == self.cluster.control.state.leader != NO_LEADER

    def bounce(self, broker: int) -> None:
        """Stop, start, and wait until the ISR is full again."""
        self.stop(broker)
        self.start(broker)
        self.quiet()

    @property
    def leader(self) -> int:
        """Who leads."""
        return self.cluster.control.state.leader

    def lose_tail(self, broker: int, records: int) -> None:
        """A stopped broker's machine loses its newest records, whole batches, and the clean-shutdown marker."""
        storage = self.cluster.machines.storages[broker]
        log = storage.log
        while records > 0 and log.batches:
            records -= log.batches.pop().count
            log.lasts.pop()
        self.cluster.machines.directories[broker].all[0].clean_shutdown = False
        storage.recovery_point = 0


class LoadingBroker:
    """A broker that is stopped during a long recovery, and its disk."""

    def __init__(self, rules: Rules, *, clean: bool) -> None:
        self._cluster = make_cluster(1, rules, {"sim.recovery.ms": 60_000})
        self.directory = self._cluster.machines.directories[1].all[0]
        self.directory.clean_shutdown = clean

    def shut_down(self) -> None:
        """Start, stop during recovery, and wait until the process is gone."""
        kernel = self._cluster.kernel
        self._cluster.boot()
        kernel.run_until(SECOND_US)
        self._cluster.shut_down(1)
        kernel.run_until(30 * SECOND_US)
        assert not self._cluster.running


class StandIn(StandsIn, Node):
    """A leader broker without new records.

    Attributes:
        answer: epoch and end offset that it answers to every epoch request.
    """

    def __init__(self, kernel: Kernel, answer: tuple[int, int]) -> None:
        super().__init__(LEADER)
        self._kernel = kernel
        self.answer = answer

    def receive(self, message: Event) -> None:
        """See `Node.receive`."""
        if isinstance(message, FetchRequest):
            self.on_fetch(message)
        else:
            assert isinstance(message, OffsetsForLeaderEpochRequest)
            self.on_epoch_end(message)

    def on_epoch_end(self, request: OffsetsForLeaderEpochRequest) -> None:
        """A follower asks where an epoch ended."""
        results = [(name, NONE, *self.answer) for name, _, _ in request.asks]
        self._send(request.node, OffsetsForLeaderEpochResponse(request, results))

    def on_fetch(self, request: FetchRequest) -> None:
        """A follower fetches; the answer waits for data that does not come."""
        self._kernel.call_at(self._kernel.now_us + SECOND_US // 2, self.life, self._answer_fetch, request)

    def _answer_fetch(self, request: FetchRequest) -> None:
        results: list[FetchResult] = [(name, NONE, [], 0, 0, epoch, AGREES) for name, _, epoch, _ in request.positions]
        self._send(request.node, FetchResponse(request, results))

    def _send(self, node: int, reply: Message) -> None:
        channel = self.reach(node)
        assert channel is not None
        channel.send(reply)


class Asker(StandsIn, Node):
    """A client that sends requests to one broker and records the responses.

    Attributes:
        answers: replies in the order of their arrival.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(ASKER)
        self.answers: list[ProduceResponse | FetchResponse | OffsetsForLeaderEpochResponse] = []
        cluster.network.join(self)

    def send(self, broker: int, request: Message) -> None:
        """Send a request."""
        channel = self.reach(broker)
        assert channel is not None
        channel.send(request)

    def receive(self, message: Event) -> None:
        """See `Node.receive`."""
        assert isinstance(message, ProduceResponse | FetchResponse | OffsetsForLeaderEpochResponse)
        self.answers.append(message)


class ScriptedBroker:
    """The only running broker of a cluster; it gets decisions directly.

    Args:
        rules: the broker's.
        broker: its id.

    Attributes:
        asker: who sends it requests.
        replies: errors that it answered a controller.
    """

    def __init__(self, rules: Rules, broker: int = LEADER) -> None:
        self._cluster = make_cluster(2, rules, {}, scripted=True)
        self._broker = broker
        self.replies: list[str] = []
        self._cluster.network.join(self._cluster.control)
        self._cluster.start(broker)
        self.asker = Asker(self._cluster)
        self.pass_time(SECOND_US)

    def pass_time(self, span_us: int) -> None:
        """Let time pass."""
        self._cluster.kernel.run_until(self._cluster.kernel.now_us + span_us)

    @property
    def process(self) -> ZooKeeperBroker:
        """The broker."""
        process = self._cluster.running[self._broker]
        assert isinstance(process, ZooKeeperBroker)
        return process

    @property
    def partition(self) -> Partition:
        """Its partition."""
        assert self.process.partition is not None
        return self.process.partition

    def _state(self, leader: int, leader_epoch: int) -> LeaderAndIsr:
        brokers = self._cluster.replicas
        return LeaderAndIsr(self.partition.name, leader, leader_epoch, brokers, leader_epoch, brokers)

    def decide(self, leader: int, leader_epoch: int) -> None:
        """Apply a LeaderAndIsr."""
        state = self._state(leader, leader_epoch)
        self.process.on_scripted_decision(ScriptedDecision(state, dict.fromkeys(self._cluster.replicas, 1)))
        self.pass_time(SECOND_US // 10)

    def stop_replica(self, leader_epoch: int, *, delete: bool) -> str:
        """Apply a StopReplica.

        Returns:
            The error in its response.
        """
        process = self.process
        request = StopReplicaRequest(1, process.broker_epoch, (self._state(LEADER, leader_epoch),), delete=delete)
        error, errors = process.stop_replicas(request)
        self.pass_time(SECOND_US // 10)
        return error or errors[self.partition.name]


class FollowingBroker:
    """A broker whose leader is a stand-in; it gets decisions directly.

    Args:
        rules: the broker's.
        prepare: puts what it has on its disk.
        answer: the stand-in's first answer.

    Attributes:
        leader: the stand-in.
        truncated_to: LEO after the last truncation that removed anything since the last decision.
    """

    def __init__(self, rules: Rules, prepare: Callable[[Storage], None], answer: tuple[int, int]) -> None:
        self._cluster = make_cluster(2, rules, {}, scripted=True)
        prepare(self._cluster.machines.storages[FOLLOWER])
        self.leader = StandIn(self._cluster.kernel, answer)
        self.truncated_to: int | None = None
        self._cluster.recorder.observe(self._observe)
        for node in (self._cluster.control, self.leader):
            self._cluster.network.join(node)
        self._cluster.start(FOLLOWER)
        self._pass_time()

    def _observe(self, step: Shown) -> None:
        if step["step"] == "truncate" and step["removed"]:
            self.truncated_to = step["offset"]

    def _pass_time(self) -> None:
        self._cluster.kernel.run_until(self._cluster.kernel.now_us + SECOND_US)

    @property
    def partition(self) -> Partition:
        """Its partition."""
        partition = self._cluster.running[FOLLOWER].partition
        assert partition is not None
        return partition

    def decide(self, leader_epoch: int, partition_epoch: int) -> bool:
        """Apply a LeaderAndIsr with the stand-in as leader, and wait for its effect.

        Returns:
            Whether the fetcher restarted.
        """
        before = self._fetch()
        self.truncated_to = None
        brokers = self._cluster.replicas
        decision = LeaderAndIsr(self.partition.name, LEADER, leader_epoch, brokers, partition_epoch, brokers)
        process = self._cluster.running[FOLLOWER]
        assert isinstance(process, ZooKeeperBroker)
        process.on_scripted_decision(ScriptedDecision(decision, dict.fromkeys(brokers, 1)))
        self._pass_time()
        return self._fetch() is not before

    def _fetch(self) -> PartitionFetchState | None:
        fetcher = self._cluster.running[FOLLOWER].replica_manager.fetchers.fetchers.get(LEADER)
        return fetcher.partitions.get(self.partition.name) if fetcher else None
