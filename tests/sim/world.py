"""Small clusters for tests of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.checkers.registry import Checkers
from sim.config import Value, integer, resolve
from sim.history.recorder import Recorder
from sim.hosts.cluster import TOPIC, Cluster
from sim.hosts.topics import ClusterTopic, TopicPartition
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Streams
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.modes import mode as mode_named
from sim.protocol.zookeeper.zk_operations import UpdateState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sim.environment.topology import Topology
    from sim.history.trace import Shown
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import LeaderAndIsr
    from sim.protocol.zookeeper.election import Registry
    from sim.protocol.zookeeper.kafka_zk_client import Change
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.hosts.zookeeper import ZooKeeper

SECOND_US = 1_000_000


class ElectThis(UpdateState):
    """Elects a leader with an ISR."""

    def __init__(self, controller_epoch: int, names: tuple[str, ...], leader: int, isr: tuple[int, ...]) -> None:
        super().__init__(controller_epoch, names)
        self._leader = leader
        self._isr = isr

    def change(
        self, state: LeaderAndIsr, registry: Registry, decide: Decisions, reached: Callable[[int], None]
    ) -> Change | None:
        return self._leader, self._isr, state.replicas


class World:
    """A booted cluster, its steps, and a hand to move time.

    Attributes:
        cluster: what is tested.
        steps: all steps so far.
    """

    def __init__(
        self,
        mode: str = "kip101",
        *,
        brokers: int = 3,
        seed: int = 1,
        scripted: bool = False,
        first: int = 1,
        rules: Mapping[str, str] | None = None,
        config: Mapping[str, Value] | None = None,
        further: Sequence[TopicPartition] = (),
        topics: Sequence[ClusterTopic] = (),
        places: Mapping[str, int] | None = None,
        controllers: int = 0,
        dynamic_voters: bool = False,
        topology: Topology | None = None,
    ) -> None:
        resolved = resolve({"default.replication.factor": brokers}, config or {})
        factor = integer(resolved, "default.replication.factor")
        chosen = mode_named(mode).rules.override(rules or {})
        kernel = Kernel()
        recorder = Recorder(kernel)
        Checkers(recorder)
        self.cluster = Cluster(
            brokers=brokers,
            config=resolved,
            broker_config={},
            rules=dict.fromkeys(range(1, brokers + 1), chosen),
            client_rules=chosen,
            scripted=scripted,
            first=first,
            partitions=(TopicPartition(TOPIC, factor), *further),
            topics=topics,
            places=places,
            controllers=controllers,
            dynamic_voters=dynamic_voters,
            topology=topology,
            kernel=kernel,
            streams=Streams(seed),
            recorder=recorder,
        )
        self.steps: list[Shown] = []
        self.cluster.recorder.observe(self.steps.append, everywhere=True)
        self._next_id = 0
        self.cluster.boot()

    def run(self, seconds: float = 1) -> World:
        """Let time pass."""
        self.cluster.kernel.run_until(self.cluster.kernel.now_us + int(seconds * SECOND_US))
        return self

    def until(self, kind: str, **fields: object) -> Shown:
        """Let time pass until such a step happens."""
        before = len(self.of(kind, **fields))
        for _ in range(200):
            self.run(0.0001)
            if len(self.of(kind, **fields)) > before:
                return self.of(kind, **fields)[-1]
        raise AssertionError(f"no {kind} with {fields} within 20 ms")

    def write(self, count: int = 1, *, acks: int = -1, seconds: float = 1, partition: int = 0) -> int:
        """Let a partition's producer send a batch, and time pass; the id of its first record."""
        first, self._next_id = self._next_id, self._next_id + count
        self.cluster.partitions[partition].producer.send(ProducerBatch(first, count, acks, self.cluster.kernel.now_us))
        self.run(seconds)
        return first

    def ready(self) -> World:
        """A leader and clients that know it."""
        self.run()
        for partition in self.cluster.partitions:
            partition.join()
            partition.producer.begin()
            if not partition.idle:
                partition.consumer.begin()
        return self.run()

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """Let the controller persist a decision, and tell brokers of it."""
        controller = self.process(self.cluster.controller).module.controller
        controller._events.put(
            controller.partitions.elect_and_send(ElectThis(controller.context.epoch, (self.cluster.name,), leader, isr))
        )

    def process(self, broker: int) -> ZooKeeperBroker:
        """A broker that runs."""
        process = self.cluster.running[broker]
        assert isinstance(process, ZooKeeperBroker)
        return process

    @property
    def zookeeper(self) -> ZooKeeper:
        """The control plane."""
        assert isinstance(self.cluster.control, ZooKeeper)
        return self.cluster.control

    def of(self, kind: str, **fields: object) -> list[Shown]:
        """Steps of a kind with these fields."""
        return [step for step in self.steps if step["step"] == kind and fields.items() <= step.items()]

    @property
    def logs(self) -> list[list[int]]:
        """Record ids in each machine's log of the first partition, in offset order."""
        return self.logs_of(self.cluster.name)

    def logs_of(self, name: str) -> list[list[int]]:
        """Record ids in each machine's log of a partition, in offset order."""
        return [
            [record for batch in directory.files(name).log.batches for record in batch.ids()]
            for directory in self.cluster.machines.directories.values()
        ]
