"""A host that plays the broker for partitions and fetchers: it writes down what it is told, and does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    FetchRequest,
    LeaderAndIsr,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
)
from sim.protocol.modes import MODES
from sim.protocol.probes import PROBES
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_host import PartitionHost

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
    from sim.protocol.messages import Ask, Position
    from sim.protocol.replica.replica import Replica
    from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
    from sim.protocol.rules import Rules

HW = MODES["hw"].rules
KIP101 = MODES["kip101"].rules
LAG_US = 30_000_000


class Recorder(PartitionHost):
    """What is told, asked and sent.

    Attributes:
        calls: in order, as tuples that begin with the name of the call.
        sent: the fetchers' requests.
        dead: brokers that are not alive.
        registered: broker epochs of those whose registration is known.
        zookeeper: version that a write of the ISR has at once, None if it takes a while.
        transitions: names of those that were reached.
        decide: the rules of its partition.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.sent: list[Any] = []
        self.dead: set[int] = set()
        self.registered: dict[int, int] = {}
        self.zookeeper: int | None = None
        self.transitions: set[str] = set()
        self.decide = Decisions(HW)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """What was told by this name."""
        return [call[1:] for call in self.calls if call[0] == name]

    def appended(self, replica: Replica, batch: Batch) -> None:
        self.calls.append(("appended", batch.base_offset, batch.last_offset))

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        self.calls.append(("truncated", replica.log.leo, len(removed)))

    def hw_moved(self, replica: Replica, previous: int) -> None:
        self.calls.append(("hw", previous, replica.hw))

    def log_start_moved(self, replica: Replica) -> None:
        self.calls.append(("log-start", replica.log.log_start))

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        self.calls.append(("replicated", follower, leo))

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.calls.append(("isr", isr))
        if self.zookeeper is not None:
            partition.isr_persisted(isr, self.zookeeper, 0)

    def is_alive(self, broker: int) -> bool:
        return broker not in self.dead

    def registered_epoch(self, broker: int) -> int:
        return self.registered.get(broker, UNREGISTERED)

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        self.calls.append(("answer", request.first_id, error, base_offset))

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        self.sent.append(FetchRequest(1, fetcher.leader, 1, 1, positions, leader_epochs))
        return self.sent[-1]  # type: ignore[no-any-return]

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        self.sent.append(OffsetsForLeaderEpochRequest(1, asks, leader_epochs, with_epoch=with_epoch))
        return self.sent[-1]  # type: ignore[no-any-return]

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        self.sent.append(ListOffsetsRequest(1, 1, name, timestamp, leader_epoch))
        return self.sent[-1]  # type: ignore[no-any-return]

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        self.calls.append(("wake", at_us))

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        self.calls.append(("settled", leader_epoch, replica.log.leo, rounds))

    def halt(self, reason: str) -> None:
        self.calls.append(("halt", reason))

    def reached(self, probe: int) -> None:
        self.transitions.add(PROBES[probe].name)

    @property
    def probes(self) -> set[str]:
        """What was reached: transitions, and branches of rules."""
        return self.transitions | branches(self.decide)


def branches(decide: Decisions) -> set[str]:
    """The rules that have decided something, with their values: ``rule=value``."""
    return {f"{rule}={getattr(decide.rules, rule)}" for rule, _ in decide.parted()}


def partition(
    host: Recorder, rules: Rules = HW, *, hw: int = 0, min_insync_replicas: int = 1, name: str = "t-0"
) -> Partition:
    """An empty partition on broker 1."""
    host.decide = Decisions(rules)
    return Partition(
        1,
        name,
        Log(check_first_offset=rules.append_check == "first-offset"),
        LeaderEpochFileCache(LeaderEpochCheckpointFile(), strict=rules.epoch_recorded_at == "election"),
        hw,
        host.decide,
        host,
        min_insync_replicas=min_insync_replicas,
        lag_us=LAG_US,
    )


def filled(host: Recorder, epochs: dict[int, int], rules: Rules = HW, *, hw: int = 0, name: str = "t-0") -> Partition:
    """A partition whose log holds one record per offset: `epochs` maps each epoch to its number of records."""
    one = partition(host, rules, name=name)
    for epoch, count in epochs.items():
        for _ in range(count):
            one.append_new(one.log.leo, 1, epoch)
    one.set_hw(hw)
    host.calls.clear()
    return one


def decision(leader: int = 1, epoch: int = 1, isr: tuple[int, ...] = (1, 2, 3)) -> LeaderAndIsr:
    """A LeaderAndIsr for replicas 1, 2, 3."""
    return LeaderAndIsr("t-0", leader, epoch, isr, epoch, (1, 2, 3))


def produce(first_id: int, acks: int = -1, count: int = 1) -> ProduceRequest:
    """A client's request."""
    return ProduceRequest(1001, "t-0", first_id, count, acks)
