"""A partition as leader and follower: Kafka's Partition against `sim.protocol.replica.partition.Partition`.

Broker 1 has it, on an empty log. Operations: ``lead leader-epoch partition-epoch isr replicas``, ``follow leader
leader-epoch partition-epoch replicas``, ``append count acks-all``, ``copy count epoch`` (a follower appends),
``truncate offset`` (to where the batch with it begins), ``fetch follower broker-epoch offset leader-epoch last-epoch``
(-1: not given), ``read offset leader-epoch`` (a consumer), ``ends leader-epoch epoch``, ``latest leader-epoch client``,
``shrink``, ``wait ms``, ``broker id state epoch`` (what the metadata say of it: alive, fenced or stopping), ``min-isr
value``, ``persist leader-epoch partition-epoch`` and ``refuse error`` (the answer to the ISR that was proposed first);
up to 2.6 instead ``zookeeper works`` (whether an ISR can be written from now on). To be seen are the answer, writes
with acks=all that are done with, epochs, HW, LEO, and of a leader its followers, the ISR and what it proposes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    DIVERGING_EPOCH,
    LATEST,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    LeaderAndIsr,
    ProduceRequest,
)
from sim.protocol.replica.isr import UNREGISTERED
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_host import PartitionHost
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from random import Random

    from sim.protocol.replica.replica import Replica
    from sim.protocol.rules import Rules

LOCAL: Final = 1
OTHERS: Final = (2, 3, 4)
LAG_MS: Final = 10_000
ERRORS: Final = (
    "OPERATION_NOT_ATTEMPTED",
    "INELIGIBLE_REPLICA",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "FENCED_LEADER_EPOCH",
    "INVALID_UPDATE_VERSION",
    "INVALID_REQUEST",
    "NEW_LEADER_ELECTED",
    "REQUEST_TIMED_OUT",
)


class Host(PartitionHost):
    """The broker: its time, its metadata, and what it has asked the controller."""

    def __init__(self, *, asks_controller: bool) -> None:
        self.now_us = 0
        self.works = True
        self.written: tuple[Partition, tuple[int, ...]] | None = None
        self.wanted: list[Any] = []
        self._asks_controller = asks_controller
        self.brokers: dict[int, tuple[str, int]] = {}
        self.manager = AlterPartitionManager(self)
        self.proposals = 0
        self.completed: list[list[Any]] = []

    def is_alive(self, broker: int) -> bool:
        """See `MetadataCache`; Kafka asks whether it is known by its epoch alone."""
        return self.brokers.get(broker, ("", 0))[0] == "alive"

    def registered_epoch(self, broker: int) -> int:
        """See `MetadataCache`."""
        state, epoch = self.brokers.get(broker, ("fenced", 0))
        return UNREGISTERED if state == "fenced" else epoch

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""

    def replicated(self, partition: Partition, follower: int, leo: int) -> None:
        """See `PartitionHost`."""

    def answer_produce(self, request: ProduceRequest, error: str, base_offset: int) -> None:
        """See `PartitionHost.answer_produce`; `first_id` holds the LEO after the write."""
        if request.acks == -1:
            self.completed.append([request.first_id, error or "NONE"])

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost`."""
        self.proposals += 1
        if not self._asks_controller:
            self.written = partition, isr
            self.wanted = [sorted(isr), partition.leader_epoch, partition.partition_epoch]
            return
        epochs = {LOCAL: 1, **partition.state.broker_epochs}
        change = AlterPartitionItem(partition.name, isr, partition.leader_epoch, partition.partition_epoch, epochs)
        self.manager.submit(partition, change, self.now_us)

    def write(self) -> None:
        """Accept or reject the ISR written to ZooKeeper."""
        if self.written is None:
            return
        (partition, isr), self.written = self.written, None
        if self.works:
            partition.isr_persisted(isr, partition.partition_epoch + 1, self.now_us)
        else:
            partition.isr_refused("CONNECTION_LOSS", self.now_us)

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost`: it is in flight until the case answers."""

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""


def differences_of_leader(release: str) -> list[str]:
    """The listed differences that another subject's leader has: Kafka 4 takes the start of the batch in which a fetch
    offset lies for the follower's LEO.
    """
    return ["fetch-inside-batch"] if release in since("4.1.0") else []


class Driver:
    """The core's partition; on a host of its own unless told."""

    def __init__(self, rules: Rules, imitated: Collection[str], host: Host | None = None, name: str = "t") -> None:
        self._counts_batches = "fetch-inside-batch" in imitated
        self._fails_unassigned = "unassigned-fetch-fails" in imitated
        self._asks_controller = rules.isr_update == "alter-partition"
        self._has_epochs = rules.follower_truncation != "high-watermark"
        self.host = Host(asks_controller=self._asks_controller) if host is None else host
        log = Log(check_first_offset=rules.append_check == "first-offset")
        strict = rules.epoch_recorded_at == "election"
        self.partition = Partition(
            LOCAL,
            name,
            log,
            LeaderEpochFileCache(LeaderEpochCheckpointFile(), strict=strict),
            0,
            Decisions(rules),
            self.host,
            min_insync_replicas=1,
            lag_us=LAG_MS * 1000,
        )

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        self.host.completed = []
        answer = self.answer(*operation)
        self.host.write()
        return [answer, sorted(self.host.completed), *self.state(), *self._in_flight()]

    def answer(self, name: str, *values: Any) -> Any:
        """Run one operation; what is answered."""
        if name in ("fetch", "read", "ends", "latest"):
            return self._asked(name, *values)
        if name in ("wait", "broker", "zookeeper", "persist", "refuse"):
            return self._around(name, *values)
        partition, host = self.partition, self.host
        match name:
            case "lead":
                leader_epoch, partition_epoch, isr, replicas = values
                decision = LeaderAndIsr("t", LOCAL, leader_epoch, tuple(isr), partition_epoch, tuple(replicas))
                partition.become_leader(decision, host.now_us)
            case "follow":
                leader, leader_epoch, partition_epoch, replicas = values
                decision = LeaderAndIsr("t", leader, leader_epoch, tuple(replicas), partition_epoch, tuple(replicas))
                partition.become_follower(decision)
            case "append":
                return self._append(*values)
            case "copy":
                count, epoch = values
                leo = partition.log.leo
                partition.append_fetched(Batch(leo, leo + count - 1, epoch, 0))
            case "truncate":
                log = partition.log
                holding = (
                    batch for batch in (*log.below, *log.batches) if batch.base_offset <= values[0] <= batch.last_offset
                )
                partition.truncate_to(next((batch.base_offset for batch in holding), values[0]))
            case "shrink":
                if partition.is_leader:
                    partition.shrink_isr(host.now_us)
            case "min-isr":
                partition.set_min_isr(values[0])
            case _:
                raise ValueError(f"unknown operation {name!r}")
        return None

    def _asked(self, name: str, *values: Any) -> Any:
        """A query."""
        partition = self.partition
        if name == "fetch":
            return self.fetch(*values)
        if name == "read":
            offset, leader_epoch = values
            if error := partition.check_fetch(offset, leader_epoch, -1, True):
                return error
            return self._read(partition.hw, partition.read_committed(offset))
        if name == "ends":
            leader_epoch, epoch = values
            error, found, end = partition.end_offset_for(leader_epoch, epoch, with_epoch=True)
            return [error or "NONE", found, end]
        leader_epoch, client = values
        error, offset = partition.list_offset(LATEST, leader_epoch, replica=not client)
        return error or offset

    def _around(self, name: str, *values: Any) -> None:
        """A change of the partition's environment."""
        host = self.host
        match name:
            case "wait":
                host.now_us += values[0] * 1000
            case "broker":
                host.brokers[values[0]] = values[1], values[2]
            case "zookeeper":
                host.works = values[0]
            case "persist":
                self._decide(NONE, *values)
            case "refuse":
                self._decide(values[0], -1, -1)

    def _append(self, count: int, acks_all: bool) -> str | None:
        leo = self.partition.log.leo
        request = ProduceRequest(0, "t", leo + count, count, -1 if acks_all else 0)
        refused = len(self.host.completed)
        self.partition.produce(request, self.host.now_us)
        if self.partition.log.leo > leo:
            return None
        if acks_all:
            error: str = self.host.completed.pop(refused)[1]
            return error
        return NOT_LEADER_OR_FOLLOWER

    def fetch(self, follower: int, broker_epoch: int, offset: int, leader_epoch: int, last_epoch: int) -> Any:
        """As `sim.hosts.kafka_apis` does it."""
        partition = self.partition
        hw = partition.hw
        if self._fails_unassigned and follower not in partition.replicas:
            return "UNKNOWN"
        if follower not in partition.followers.states:
            error = partition.check_unassigned(offset, leader_epoch, last_epoch)
            return error or self._read(hw, [])
        error = partition.check_fetch(offset, leader_epoch, last_epoch, False)
        if error and error != DIVERGING_EPOCH:
            partition.note_refused_fetch(follower)
        if error == DIVERGING_EPOCH:
            return [hw, partition.log.log_start, list(partition.diverging(last_epoch))]
        if error:
            return error
        if partition.refuses_registration(follower, broker_epoch):
            return NOT_LEADER_OR_FOLLOWER
        batches = partition.read_uncommitted(offset)
        if self._counts_batches and batches:
            offset = min(offset, batches[0].base_offset)
        own_epoch = partition.leader_epoch if leader_epoch < 0 else leader_epoch
        partition.follower_fetched(follower, broker_epoch, offset, own_epoch, self.host.now_us)
        return self._read(hw, batches)

    def _read(self, hw: int, batches: Sequence[Batch]) -> list[Any]:
        shown = [
            [batch.base_offset, batch.last_offset, batch.leader_epoch if self._has_epochs else 0] for batch in batches
        ]
        return [hw, self.partition.log.log_start, None, shown]

    def _decide(self, error: str, leader_epoch: int, partition_epoch: int) -> None:
        changes = self.host.manager.in_flight
        if changes:
            result = (error, changes[0].isr, partition_epoch, leader_epoch, 0)
            self.host.manager.on_reply(NONE, {"t": result}, self.host.now_us)

    def state(self) -> list[Any]:
        """What is to be seen of the partition, but for what it asks of the controller."""
        partition, host = self.partition, self.host
        shown: list[Any] = [partition.is_leader, partition.leader_epoch]
        shown += [max(partition.partition_epoch, 0)] if self._asks_controller else []
        shown += [partition.hw, partition.log.leo, host.proposals]
        if not partition.is_leader:
            return shown
        leo, lag_us = partition.log.leo, LAG_MS * 1000
        shown.append(
            [
                [state.broker, state.leo, state.is_caught_up(leo, host.now_us, lag_us)]
                + ([state.broker_epoch] if self._asks_controller else [])
                for _, state in sorted(partition.followers.states.items())
            ]
        )
        shown.append(sorted(partition.state.isr))
        if not self._asks_controller:
            return [*shown, host.wanted] if host.wanted else shown
        return [*shown, bool(partition.state.pending)]

    def _in_flight(self) -> list[Any]:
        """What a leader asks of the controller, if anything."""
        changes = self.host.manager.in_flight
        if not changes or not self.partition.is_leader:
            return []
        change = changes[0]
        members = [[broker, change.broker_epochs[broker]] for broker in sorted(change.isr)]
        return [[members, change.leader_epoch, change.partition_epoch]]


class Drawing:
    """Draws a case, tracking roughly its state."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._kraft = release in since("3.9.0")
        self._answers_epochs = release != "0.10.2.2"
        self._leader_epoch = 0
        self._partition_epoch = 0
        self._leads = False
        self._leo = 0
        self._others = list(OTHERS[: rng.choice((1, 2, 2, 3))])
        self._isr = [LOCAL, *self._others]
        self._ends = [0]
        self._leos = dict.fromkeys(self._others, 0)
        self._epochs = dict.fromkeys(OTHERS, 10)
        self.case: Case = []

    def draw(self) -> Case:
        """A case."""
        rng = self._rng
        for broker in OTHERS:
            if self._kraft and rng.random() < 0.9:
                self.case.append(["broker", broker, "alive", 10])
        self._lead()
        for _ in range(rng.randint(4, 40)):
            self._step()
        return self.case

    def _lead(self) -> None:
        """Leadership, mostly in a newer epoch; otherwise a repeated decision, or another ISR or assignment."""
        rng = self._rng
        kind = rng.random()
        if not self._leads or kind < 0.5 or not self._kraft:
            self._leader_epoch += rng.choice((1, 1, 2))
            self._partition_epoch += rng.choice((1, 1, 2))
        elif kind < 0.85:
            self._partition_epoch += rng.choice((0, 1, 1))
        if rng.random() < 0.15:
            self._others = rng.sample(OTHERS, rng.choice((1, 2, 3)))
        replicas = [LOCAL, *self._others]
        rng.shuffle(replicas)
        self._isr = [broker for broker in replicas if broker == LOCAL or rng.random() < 0.7]
        late = self._kraft and self._leads and rng.random() < 0.05
        leader_epoch = max(self._leader_epoch - late, 0)
        self.case.append(["lead", leader_epoch, max(self._partition_epoch - late, 0), list(self._isr), replicas])
        self._leads = True

    def _follow(self) -> None:
        rng = self._rng
        self._leader_epoch += rng.choice((1, 1, 2)) if self._leads or not self._kraft or rng.random() < 0.5 else 0
        self._partition_epoch += 1
        replicas = [LOCAL, *self._others]
        self.case.append(["follow", rng.choice(self._others), self._leader_epoch, self._partition_epoch, replicas])
        self._leads = False

    def _fetch(self) -> None:
        rng = self._rng
        follower = rng.choice(self._others) if rng.random() < 0.95 else rng.choice(OTHERS)
        before = self._leos.get(follower, 0)
        offset = rng.choice((before, min(before + 1, self._leo), self._leo, self._leo, rng.randint(0, self._leo + 1)))
        self._leos[follower] = offset
        epoch = self._epoch(0.9)
        last = rng.randint(0, self._leader_epoch) if self._kraft and rng.random() < 0.3 else -1
        broker_epoch = self._epochs[follower] - (rng.random() < 0.05) * rng.choice((1, self._epochs[follower] + 1, -1))
        self.case.append(["fetch", follower, broker_epoch, offset, epoch, last])

    def _epoch(self, right: float) -> int:
        """The leader epoch of a request; `right`: how often it is the leader's."""
        rng = self._rng
        return self._leader_epoch if rng.random() < right else self._leader_epoch + rng.choice((-1, 1))

    def _step(self) -> None:
        """One operation; seldom none."""
        rng = self._rng
        steps = [
            self._lead,
            self._follow,
            self._truncate,
            self._write,
            self._fetch,
            self._time,
            self._around,
            self._ask,
        ]
        weights = [5, 3, 2, 18, 32, 16, 17, 7]
        if not self._kraft:
            steps.append(self._hold_back)
            weights.append(1)
        rng.choices(steps, weights)[0]()

    def _hold_back(self) -> None:
        """A follower that cannot join the ISR holds the HW back, until it lags."""
        rng = self._rng
        if len(self._others) < 2:
            return
        member, outside = rng.sample(self._others, 2)
        self._leader_epoch += 1
        self._partition_epoch += 1
        self._isr = [LOCAL, member]
        self._leads = True
        epochs = self._leader_epoch, self._partition_epoch
        self.case += [["zookeeper", False], ["lead", *epochs, list(self._isr), [LOCAL, *self._others]]]
        self._fetch_all(outside)
        self._write()
        self._fetch_all(member)
        self.case.append(["wait", rng.choice((9_999, 10_001))])
        self._fetch_all(rng.choice((member, member, outside)))

    def _fetch_all(self, follower: int) -> None:
        """A follower's fetch at the leader's LEO."""
        self._leos[follower] = self._leo
        self.case.append(["fetch", follower, self._epochs[follower], self._leo, self._leader_epoch, -1])

    def _truncate(self) -> None:
        """To where a batch begins: into one is for subject log."""
        if not self._leads:
            del self._ends[self._rng.randint(1, len(self._ends)) :]
            self._leo = self._ends[-1]
            self.case.append(["truncate", self._leo])

    def _write(self) -> None:
        rng = self._rng
        count = rng.choice((1, 1, 2, 3))
        self.case.append(["append", count, rng.random() < 0.6] if self._leads else ["copy", count, self._leader_epoch])
        self._leo += count
        self._ends.append(self._leo)

    def _time(self) -> None:
        rng = self._rng
        passing = ["wait", rng.choice((1, 2_000, 5_000, 9_999, 10_000, 10_001))]
        self.case.append(passing if rng.random() < 0.6 else ["shrink"])

    def _around(self) -> None:
        rng = self._rng
        roll = rng.random()
        if roll < 0.15:
            self.case.append(["min-isr", rng.choice((1, 2, 3, 4))])
        elif not self._kraft:
            self.case.append(["zookeeper", rng.random() < 0.7])
        elif roll < 0.35:
            broker = rng.choice(OTHERS)
            self._epochs[broker] += rng.choice((0, 0, 1))
            state = rng.choice(("alive", "alive", "fenced", "stopping"))
            self.case.append(["broker", broker, state, self._epochs[broker]])
        elif roll < 0.8:
            self._partition_epoch += rng.choice((0, 1, 1, 1))
            self.case.append(["persist", self._leader_epoch - (rng.random() < 0.05), self._partition_epoch])
        else:
            self.case.append(["refuse", rng.choice(ERRORS)])

    def _ask(self) -> None:
        rng = self._rng
        epoch = self._epoch(0.8)
        kind = rng.choice(("ends", "latest", "read") if self._answers_epochs else ("latest", "read"))
        if kind == "ends":
            self.case.append([kind, epoch, rng.randint(0, self._leader_epoch + 1)])
        elif kind == "latest":
            self.case.append([kind, epoch, rng.random() < 0.7])
        else:
            self.case.append([kind, rng.randint(0, self._leo), epoch])


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(rules, imitated)
    return [driver.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "partition",
    "highwater.PartitionSubject",
    since("0.10.2.2"),
    draw,
    run,
    quick=250,
    usual=1_000,
    deep=20_000,
    uses=("batches", "logs"),
    names_brokers=True,
)
