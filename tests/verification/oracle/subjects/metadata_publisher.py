"""In which order metadata reaches replicas: Kafka's MetadataLoader, BrokerMetadataPublisher and ReplicaManager against
`BrokerMetadataPublisher` and `KRaftReplicaManager`. The broker is 1.

Operations: ``commit batches`` (records that the broker learns to be committed at once), ``begin`` (the broker's parts
start: what was committed before reaches them as one delta). Records: ``create topic replicas-of-each-partition``,
``change topic partition leader isr replicas`` (null: as before), ``remove topic``, ``config key min-isr``, ``none``.
To be seen are groups, in their order: replicas that are deleted, those that lead and those that follow, with leader
epoch and partition epoch, and the configuration.
"""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.kraft_replica_manager import KRaftReplicaManager
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import (
    MIN_ISR,
    NO_OP,
    ConfigRecord,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.quorum_messages import MetadataRecords
from tests.plain import StandsIn
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.messages import LeaderAndIsr
    from sim.protocol.rules import Rules

NODE: Final = 1
BROKERS: Final = (1, 2, 3)
TOPICS: Final = ("a", "b", "c")


class Replica:
    """A replica that notes what becomes of it; its own partition and log."""

    def __init__(self, name: str, noted: list[list[Any]]) -> None:
        self.name = name
        self.partition = self
        self.log = SimpleNamespace(leo=0)
        self.leader_epoch = -1
        self.partition_epoch = -1
        self._noted = noted

    def become_leader(self, state: LeaderAndIsr, _: int) -> None:
        """See `Partition.become_leader`."""
        self._become("lead", state)

    def become_follower(self, state: LeaderAndIsr) -> None:
        """See `Partition.become_follower`."""
        self._become("follow", state)

    def _become(self, kind: str, state: LeaderAndIsr) -> None:
        self._noted.append([kind, self.name, state.leader_epoch, state.partition_epoch])
        self.leader_epoch, self.partition_epoch = state.leader_epoch, state.partition_epoch

    def delete(self) -> None:
        """See `HostedReplica.delete`."""
        self._noted.append(["delete", self.name])
        self.leader_epoch = self.partition_epoch = -1


class Replicas(StandsIn, KRaftReplicaManager):
    """The replica manager, whose replicas only note what becomes of them."""

    def __init__(self, broker: Any, noted: list[list[Any]]) -> None:
        self.broker = broker
        self.replicas: dict[str, Any] = {}
        self._noted = noted
        self._lifecycle = cast("Any", SimpleNamespace(wants_shut_down=False))
        self._only_directory = 0
        self._uncreated = set()
        self._skipped = {}
        self._has_published = False
        self.assignments = cast("Any", SimpleNamespace(pending={}))
        manager = SimpleNamespace(keeps_idle=False, shut_down_idle=lambda: None)
        self.fetchers = cast("Any", SimpleNamespace(manager=manager))
        self.isr_expiration = cast("Any", SimpleNamespace(schedule=lambda: None))

    def replica(self, name: str) -> Any:
        return self.replicas.get(name)

    def create_replica(self, name: str) -> Any:
        return self.replicas.setdefault(name, Replica(name, self._noted))

    def remove_replica(self, replica: Any) -> None:
        del self.replicas[replica.name]
        if replica.leader_epoch >= 0:  # Otherwise its log was deleted before.
            self._noted.append(["delete", replica.name])

    def become_leader(self, replica: Any, decision: LeaderAndIsr) -> None:
        replica.become_leader(decision, 0)

    def become_follower(self, replica: Any, decision: LeaderAndIsr) -> None:
        replica.become_follower(decision)

    def _await_leader(self, replica: Any, state: PartitionRegistration) -> None:
        replica.become_follower(state)

    def checkpoint_hw(self, first_us: int) -> None:
        """No files."""


class Broker:
    """The broker, and the metadata log as its controller writes it."""

    def __init__(self, rules: Rules) -> None:
        self._noted: list[list[Any]] = []
        self._log: list[Record] = []
        self._written = MetadataImage()
        directory = SimpleNamespace(number=0)
        broker = SimpleNamespace(
            node=NODE,
            kernel=SimpleNamespace(now_us=0),
            network=SimpleNamespace(note_broker_change=lambda: None),
            recorder=SimpleNamespace(record=lambda _: None),
            decide=Decisions(rules),
            live_directories=[directory],
            directories=SimpleNamespace(all=[directory], futures={}, are_several=False),
            backlog=SimpleNamespace(stalled=(), is_partial=False),
            waiting=None,
            frozen=False,
            has_loaded=False,
            broker_epoch=0,
            deliver_backlog=lambda: None,
            on_config_changed=self._config,
        )
        self._broker = broker
        metadata = SimpleNamespace(image=MetadataImage(), live={}, forget=lambda _: None, update=lambda *_: None)
        lifecycle = SimpleNamespace(request_unfencing=lambda: None)
        parts: Any = broker, metadata, Replicas(broker, self._noted), lifecycle, self._log
        self._publisher = BrokerMetadataPublisher(*parts)
        self._append(NO_OP)  # The metadata version.
        self._publisher.on_metadata_records(MetadataRecords(0, 1, 0))

    def _config(self, setting: tuple[str, Any]) -> None:
        self._noted.append(["config", *setting])

    def do(self, operation: Operation) -> Any:
        """Carry out an operation; returns what is to be seen."""
        self._noted.clear()
        if operation[0] == "begin":
            if not self._broker.has_loaded:
                self._broker.has_loaded = True
                self._publisher.publish()
        else:
            first = len(self._log)
            for batch in operation[1]:
                for change in batch:
                    self._write(*change)
            if len(self._log) > first:
                self._publisher.on_metadata_records(MetadataRecords(first, len(self._log), 0))
        groups = groupby(self._noted, key=lambda what: what[0])
        return [sorted(group, key=lambda what: what[1]) for _, group in groups]

    # The records of a change; none if it is about a topic that does not exist.

    def _write(self, kind: str, topic: str, *change: Any) -> None:
        names = [name for name in self._written.partitions if name.startswith(f"{topic}-")]
        if kind == "create":
            if not names:
                for number, replicas in enumerate(change[0]):
                    ids = tuple(replicas)
                    self._append(PartitionRegistration(f"{topic}-{number}", ids[0], 0, ids, 0, ids))
        elif kind == "change":
            before = self._written.partitions.get(f"{topic}-{change[0]}")
            if before is not None:
                self._append(_changed(before, *change[1:]))
        elif kind == "remove":
            if names:
                self._append(TopicRemoval(tuple(names)))
        else:
            self._append(ConfigRecord(topic, change[0]) if kind == "config" else NO_OP)

    def _append(self, record: Record) -> None:
        self._log.append(record)
        self._written.replay(record)


def _changed(
    before: PartitionRegistration, leader: int | None, isr: list[int] | None, replicas: list[int] | None
) -> PartitionRegistration:
    return PartitionRegistration(
        before.name,
        before.leader if leader is None else leader,
        before.leader_epoch + (leader is not None),
        before.isr if isr is None else tuple(isr),
        before.partition_epoch + 1,
        before.replicas if replicas is None else tuple(replicas),
    )


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    broker = Broker(rules)
    return [broker.do(operation) for operation in case]


def draw(rng: Random, release: str) -> Case:
    """Commits of one to three batches; the broker begins among the first of them."""
    case: Case = [["commit", _batches(rng)] for _ in range(rng.randint(2, 8))]
    case.insert(rng.randint(0, 3), ["begin"])
    return case


def _batches(rng: Random) -> list[Any]:
    return [[_change(rng) for _ in range(rng.randint(1, 4))] for _ in range(rng.choice((1, 1, 1, 2, 3)))]


def _change(rng: Random) -> list[Any]:
    kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    topic = rng.choice(TOPICS)
    if kind == "create":
        return [kind, topic, [_some(rng) for _ in range(rng.randint(1, 3))]]
    if kind == "change":
        leader = rng.choice((*BROKERS, -1)) if rng.random() < 0.6 else None
        isr = _some(rng) if rng.random() < 0.5 else None
        replicas = _some(rng) if rng.random() < 0.35 else None
        return [kind, topic, rng.randint(0, 2), leader, isr, replicas]
    return [kind, MIN_ISR, rng.randint(1, 3)] if kind == "config" else [kind, topic]


def _some(rng: Random) -> list[int]:
    return rng.sample(BROKERS, rng.randint(1, 3))


_WEIGHTS: Final = {"create": 25, "change": 50, "remove": 12, "config": 8, "none": 3}


SUBJECT: Final = Subject(
    "metadata-publisher",
    "highwater.PublisherSubject",
    since("3.9.0"),
    draw,
    run,
    quick=300,
    usual=3_000,
    deep=20_000,
    recorded=18_000,
    names_brokers=True,
)
