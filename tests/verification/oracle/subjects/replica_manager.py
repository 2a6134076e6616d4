"""A broker's replicas: Kafka's ReplicaManager, LogManager and BrokerMetadataPublisher against `KRaftReplicaManager` and
`BrokerMetadataPublisher` of a `KRaftBroker`. The broker is 1; others exist in its metadata alone.

Operations: ``directories count`` (of logs; one unless told), ``start`` (a process loads the logs and publishes the
metadata), ``stop`` (in order), ``crash``, ``ending`` (it begins a controlled shutdown), ``commit changes`` (published
together; also while no process runs), ``wait ms`` (high watermarks are written every 5 s), ``append topic partition
count acks-all``, ``fetch topic partition follower batches leader-epoch last-epoch`` (from where the last batches begin;
-1: beyond the end), ``copy topic partition count committed`` (the leader answers a fetch), ``shrink topic partition``,
``fail directory`` and ``mend directory`` (an operator deletes the logs in it that are in the other one, too). Changes:
``create topic replicas-of-each-partition``, ``change topic partition leader isr replicas directory`` (null: as before;
the directory is that of the broker's replica) and ``remove topic``. As a controller has it, members of an ISR are
replicas, and a leader is in it and has a directory that works; otherwise there is none. To be seen are the answer,
faults, the directories that the controller is to know, the logs in each directory, and of each partition whether it is
hosted, leads or follows whom, with its epochs, ISR, log and directory, and from where its fetcher fetches.

A partition without a log, which may be in a failed directory, counts as offline. When a replica is deleted, the files
of high watermarks are written, whose entry of it would otherwise stay.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from sim.config import resolve
from sim.environment.log_directories import LogDirectories
from sim.environment.network import Network
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.broker import Startup
from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.kraft_metadata_cache import KRaftMetadataCache
from sim.hosts.kraft_replica_manager import KRaftReplicaManager
from sim.hosts.process_files import ProcessFiles
from sim.hosts.settings import broker_settings
from sim.kernel.scheduler import Kernel, noop
from sim.kernel.streams import Streams
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import (
    FIRST_DIRECTORY,
    UNASSIGNED,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    Record,
    TopicRemoval,
)
from sim.protocol.kraft.quorum_messages import MetadataRecords
from sim.protocol.messages import (
    AGREES,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProduceRequest,
    ProduceResponse,
)
from sim.protocol.replica.partition_fetch_state import TRUNCATING
from tests.plain import StandsIn
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.hosts.hosted_replica import HostedReplica
    from sim.kernel.message import Message
    from sim.protocol.rules import Rules

NODE: Final = 1
BROKERS: Final = (1, 2, 3, 4)
TOPICS: Final = ("a", "b", "c")
MOST: Final = 2
"""Most partitions of a topic."""
CLIENT: Final = 1001
START_US: Final = 1_000_000
SETTINGS: Final = broker_settings(
    resolve(
        {
            "min.insync.replicas": 1,
            "replica.lag.time.max.ms": 10_000,
            "replica.high.watermark.checkpoint.interval.ms": 5_000,
            "replica.fetch.backoff.ms": 0,
        }
    )
)


class HashOrder:
    """The replica manager, which gets the new states of a delta in the order of Kafka's hash maps."""

    def __init__(self, replicas: KRaftReplicaManager, ids: dict[str, int]) -> None:
        self._replicas = replicas
        self._ids = ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replicas, name)

    def apply_delta(self, states: list[PartitionRegistration], *further: Any) -> None:
        """See `KRaftReplicaManager`."""
        ours = [state for state in states if NODE in state.replicas]
        led = [state for state in ours if state.leader == NODE]
        followed = [state for state in ours if state.leader != NODE]
        others = [state for state in states if NODE not in state.replicas]
        self._replicas.apply_delta([*others, *self._ordered(led), *self._ordered(followed)], *further)

    def _ordered(self, states: list[PartitionRegistration]) -> list[PartitionRegistration]:
        """Kafka: TopicsDelta#localChanges."""
        topics: dict[int, list[PartitionRegistration]] = {}
        for state in states:
            topics.setdefault(self._ids[state.name], []).append(state)
        size, count = 0, 0
        ordered: list[PartitionRegistration] = []
        for number in sorted(topics, key=lambda number: (1 ^ number) % 16):
            added = sorted(topics[number], key=lambda state: _hash(state.name) % 16)
            if not size:
                size = 1 << int(len(added) / 0.75).bit_length()
            ordered += added
            count += len(added)
            while count > int(0.75 * size):
                size *= 2
        return sorted(ordered, key=lambda state: _hash(state.name) % size) if size else []


def _hash(name: str) -> int:
    """Kafka: TopicPartition#hashCode."""
    topic, _, number = _plain(name).partition("-")
    return 31 * (31 + int(number)) + ord(topic)


class Process(StandsIn, KRaftBroker):
    """A process of the broker, whose requests reach nobody."""

    def __init__(self, startup: Startup, log: list[Record], ids: dict[str, int]) -> None:
        self.ids = ids
        super().__init__(startup, log)
        self.answers: list[Any] = []
        self.kraft_replicas.assignments = self  # type: ignore[assignment]
        self.pending: dict[str, int] = {}
        """See `AssignmentsManager`."""

    def assign(self, name: str, directory: int, delay_us: int = 0) -> None:
        """See `AssignmentsManager`, which would send it."""
        self.pending[name] = directory

    def new_lifecycle(self) -> Any:
        parts = dict.fromkeys(("request_unfencing", "exit_if_ending", "end"), lambda: None)
        return SimpleNamespace(wants_shut_down=False, **parts)

    def new_publisher(self, metadata: KRaftMetadataCache, log: list[Record]) -> BrokerMetadataPublisher:
        replicas: Any = HashOrder(self.kraft_replicas, self.ids)
        return BrokerMetadataPublisher(self, metadata, replicas, self.lifecycle, log)

    def reach(self, peer: int) -> None:
        return None

    def to_control(self, message: Message) -> None:
        """Nobody is there."""

    def reply(self, node: int, reply: Message) -> None:
        self.answers.append(reply)

    def reply_produce(self, response: ProduceResponse) -> None:
        self.answers.append(response)


class Broker:
    """The broker's machine, the metadata log as its controller writes it, and the process that runs, if any."""

    def __init__(self, rules: Rules, directories: int) -> None:
        self._rules = rules
        self._kernel = Kernel()
        self._kernel.now_us = START_US
        self._network = Network(self._kernel, Streams(0), elides=False)
        self._directories = LogDirectories(SETTINGS.storage, "", count=directories, place=0)
        self._recorder = Recorder(self._kernel, name="")
        self._files = ProcessFiles(self._kernel, self._recorder.coverage)
        self._process: Process | None = None
        self._incarnations = 0
        self._log: list[Record] = [BrokerRegistration(broker, 1, broker, fenced=False) for broker in BROKERS]
        self._written = MetadataImage()
        for record in self._log:
            self._written.replay(record)
        self._topics: dict[str, list[str]] = {}
        """Topic -> its partitions, which have the topic's id in their names."""
        self._created: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        """Partition -> number of its topic."""
        self._blank: set[str] = set()
        """Replicas that were reassigned away, whose empty files the core keeps."""

    def do(self, operation: Operation) -> list[Any]:
        """Carry out an operation; returns what is to be seen."""
        kind, *values = operation
        process = self._process
        if process is not None:
            process.answers.clear()
        answer = None
        if kind in ("append", "fetch", "copy", "shrink"):
            name = self._name(*values[:2])
            if process is not None and name in self._written.partitions:
                answer = getattr(self, f"_{kind}")(process, name, *values[2:])
                if isinstance(answer, str) and self._lacks_log(process, name):
                    answer = NOT_LEADER_OR_FOLLOWER
        elif kind != "directories":
            getattr(self, f"_{kind}")(*values)
        return [answer, *self._shown()]

    def _name(self, topic: str, number: int) -> str:
        names = self._topics.get(topic, [])
        return names[number] if number < len(names) else f"{topic}-{number}{TOPIC_ID}unknown"

    # The process.

    def _start(self) -> None:
        live = self._directories.online
        if self._process is not None or not live:
            return
        self._resign()
        self._incarnations += 1
        startup = Startup(
            NODE,
            self._incarnations,
            self._directories,
            live,
            Decisions(self._rules),
            SETTINGS,
            self._kernel,
            self._network,
            self._recorder,
            noop,
            noop,
            {},
            {},
            0,
        )
        process = self._process = Process(startup, self._log, self._ids)
        process.broker_epoch = 1
        process.publisher.received = len(self._log)
        self._network.join(process)
        process._load(None)

    def _end(self, kind: steps.StepKind) -> None:
        process = self._process
        if process is None:
            return
        self._process = None
        self._files.close_all(process, kind)
        if kind is steps.SHUTDOWN:
            for directory in process.live_directories:
                directory.mark_clean(process.broker_epoch)
        self._network.leave(process, silently=False)

    def _stop(self) -> None:
        self._end(steps.SHUTDOWN)

    def _crash(self) -> None:
        self._end(steps.KILL)

    def _ending(self) -> None:
        if self._process is not None:
            self._process.lifecycle.wants_shut_down = True

    def _wait(self, ms: int) -> None:
        self._kernel.now_us += ms * 1_000

    def _fail(self, place: int) -> None:
        """As `Machines` fails a directory."""
        directories, process = self._directories, self._process
        if place >= len(directories.all) or directories.all[place].failed or len(directories.online) == 1:
            return
        directory = directories.all[place]
        if process is not None and directory in process.live_directories:
            for name in directory.storages:
                replica = process.replicas.get(name)
                if replica is not None:
                    self._files.close(process, replica, steps.DIRECTORY_FAILED, self._kernel.now_us)
            process.replica_manager.stop_serving(directory)
        directories.fail(directory, self._kernel.now_us, keeps=True)

    def _mend(self, place: int) -> None:
        """An operator deletes the logs that are in the other directory, too, with which LogManager does not start."""
        directories = self._directories.all
        if self._process is not None or place >= len(directories) or not directories[place].failed:
            return
        directories[place].failed = False
        others = {_plain(name) for name in directories[1 - place].storages}
        for name in [name for name in directories[place].storages if _plain(name) in others]:
            del directories[place].storages[name]

    # Metadata.

    def _commit(self, changes: list[list[Any]]) -> None:
        first = len(self._log)
        before = {name: NODE in state.replicas for name, state in self._written.partitions.items()}
        for kind, topic, *change in changes:
            if kind == "create":
                self._create(topic, *change)
            elif kind == "change":
                self._change(topic, *change)
            elif names := self._topics.pop(topic, None):
                self._append_record(TopicRemoval(tuple(names)))
        if self._process is not None and len(self._log) > first:
            self._process.publisher.on_metadata_records(MetadataRecords(first, len(self._log), 0))
            known = self._written.partitions
            if any(held and (name not in known or NODE not in known[name].replicas) for name, held in before.items()):
                for replica in self._process.replicas.values():
                    replica.storage.hw_file.write(replica.partition.hw)

    def _append_record(self, record: Record) -> None:
        self._log.append(record)
        self._written.replay(record)

    def _create(self, topic: str, partitions: list[list[int]]) -> None:
        if topic in self._topics:
            return
        created = self._created[topic] = self._created.get(topic, 0) + 1
        suffix = f"{TOPIC_ID}{created}" if created > 1 else ""
        names = self._topics[topic] = [f"{topic}-{number}{suffix}" for number in range(len(partitions))]
        number = 1 + len(set(self._ids.values()))
        for name, replicas in zip(names, partitions, strict=True):
            self._ids[name] = number
            self._recorder.add_partition(name)
            ids = tuple(replicas)
            places = {NODE: self._first_directory()}
            self._append_record(PartitionRegistration(name, ids[0], 0, ids, 0, ids, directories=places))

    def _first_directory(self) -> int:
        return UNASSIGNED if self._directories.are_several else FIRST_DIRECTORY

    def _is_failed(self, place: int) -> bool:
        return place != UNASSIGNED and self._directories.all[place].failed

    def _resign(self) -> None:
        """The controller elects no leader whose log directory has failed."""
        for name, state in sorted(self._written.partitions.items()):
            if state.leader == NODE and self._is_failed(state.directory(NODE)):
                topic, _, number = _plain(name).partition("-")
                self._change(topic, int(number), -1, None, None, None)

    def _change(
        self,
        topic: str,
        number: int,
        leader: int | None,
        isr: list[int] | None,
        replicas: list[int] | None,
        place: int | None,
    ) -> None:
        before = self._written.partitions.get(self._name(topic, number))
        if before is None:
            return
        ids = before.replicas if replicas is None else tuple(replicas)
        leads = before.leader if leader is None else max(leader, 0)
        places = {NODE: before.directory(NODE) if NODE in before.replicas else self._first_directory()}
        if place is not None and place < len(self._directories.all):
            places = {NODE: place}
        if leads and (leads not in ids or (leads == NODE and self._is_failed(places[NODE]))):
            leads = leader = 0
        members = tuple(one for one in (before.isr if isr is None else isr) if one in ids) or ids[:1]
        if leads and leads not in members:
            members = leads, *members
        leader_epoch = before.leader_epoch + (leader is not None)
        partition_epoch = before.partition_epoch + 1
        self._append_record(
            PartitionRegistration(before.name, leads, leader_epoch, members, partition_epoch, ids, directories=places)
        )

    # Requests.

    def _append(self, process: Process, name: str, count: int, acks_all: bool) -> str | None:
        replica = process.replica(name)
        leo = 0 if replica is None else replica.partition.log.leo
        process.apis.on_produce(ProduceRequest(CLIENT, name, leo, count, -1 if acks_all else 1))
        return next((one.error for one in process.answers if isinstance(one, ProduceResponse) and one.error), None)

    def _fetch(self, process: Process, name: str, follower: int, batches: int, epoch: int, last_epoch: int) -> Any:
        replica = process.replica(name)
        offset = 0 if replica is None else _offset(replica, batches)
        hw = -1 if replica is None else replica.partition.hw
        leader_epoch = epoch if epoch >= 0 or replica is None else replica.partition.leader_epoch
        positions = [(name, offset, epoch, last_epoch)]
        process.apis.on_fetch(FetchRequest(follower, NODE, follower, follower, positions, [leader_epoch]))
        results = [one.results[0] for one in process.answers if isinstance(one, FetchResponse)]
        if not results:
            assert replica is not None
            return [hw, replica.partition.log.log_start, None, []]
        _, error, found, hw, log_start, _, diverging = results[0]
        if error:
            return UNKNOWN_TOPIC_OR_PARTITION if error == UNKNOWN_TOPIC_ID else error
        if diverging:
            return [hw, log_start, list(diverging)]
        shown = [[batch.base_offset, batch.last_offset, batch.leader_epoch] for batch in found]
        return [hw, log_start, None, shown]

    def _copy(self, process: Process, name: str, count: int, committed: bool) -> bool:
        fetchers = process.replica_manager.fetchers
        fetcher = next((one for one in fetchers.fetchers.values() if name in one.partitions), None)
        if fetcher is None:
            return False
        for answered in (False, True):  # What is in flight may be from before.
            request = fetcher.in_flight
            if not isinstance(request, FetchRequest):
                return True
            results = [
                self._result(process, position, answered, name, count, committed) for position in request.positions
            ]
            fetchers.on_fetch_reply(FetchResponse(request, results))
        return True

    def _result(
        self, process: Process, position: Any, answered: bool, name: str, count: int, committed: bool
    ) -> FetchResult:
        known = process.replica(position[0])
        if known is None:
            return position[0], NONE, [], 0, 0, 0, AGREES
        partition = known.partition
        if not answered or position[0] != name:
            return position[0], NONE, [], partition.hw, 0, partition.leader_epoch, AGREES
        offset, epoch = position[1], partition.leader_epoch
        batches = [Batch(offset, offset + count - 1, epoch, 0)] if count else []
        hw = offset + count if committed else offset
        return position[0], NONE, batches, hw, 0, epoch, AGREES

    def _shrink(self, process: Process, name: str) -> None:
        replica = process.replica(name)
        if replica is not None and replica.partition.is_leader:
            replica.partition.shrink_isr(self._kernel.now_us)

    # What is to be seen.

    def _shown(self) -> list[Any]:
        process = self._process
        shown: list[Any] = [[], [] if process is None else self._unknown(process)]
        if process is not None:
            self._blank = {
                name
                for name, replica in process.replicas.items()
                if replica.partition.leader_epoch < 0 and not replica.partition.log.leo
            }
        for directory in self._directories.all:
            names = [] if process is None or directory.failed else [*directory.storages]
            shown.append(sorted(_plain(name) for name in names if name not in self._blank))
        for topic in TOPICS:
            names = [f"{topic}-{number}" for number in range(MOST)]
            shown += [None if process is None else self._state(process, name) for name in names]
        return shown

    def _unknown(self, process: Process) -> list[list[Any]]:
        """What AssignmentsManager would send: directories that the metadata do not have."""
        known = self._written.partitions
        return sorted(
            [_plain(name), place]
            for name, place in process.pending.items()
            if name in known and NODE in known[name].replicas and known[name].directory(NODE) != place
        )

    def _lacks_log(self, process: Process, name: str) -> bool:
        """Whether it adopted a state without a log, because the log may be in a directory that has failed."""
        replicas = process.kraft_replicas
        return name in self._written.partitions and (name in replicas._uncreated or name in replicas._skipped)

    def _state(self, process: Process, plain: str) -> list[Any]:
        current = self._topics.get(plain[0], [])
        name = next((one for one in current if _plain(one) == plain), plain)
        replica = process.replica(name)
        if self._lacks_log(process, name):
            return ["offline"]
        if replica is None or replica.partition.leader_epoch < 0:
            is_offline = name in self._written.partitions and name in process.replica_manager.offline
            return ["offline" if is_offline else "none"]
        partition = replica.partition
        place = self._directories.directory_of(name)
        assert place is not None
        shown: list[Any] = [
            partition.is_leader,
            partition.leader,
            partition.leader_epoch,
            partition.partition_epoch,
            bool(partition.state.pending),
            sorted(partition.state.isr) if partition.is_leader else [],
            self._directories.all.index(place),
            *_log(replica),
        ]
        for leader, fetcher in process.replica_manager.fetchers.fetchers.items():
            fetch = fetcher.partitions.get(name)
            if fetch is not None:
                offset = fetch.fetch_offset if fetch.state is TRUNCATING else partition.log.leo
                shown.append(["fetched", leader, offset, fetch.leader_epoch, "fetching"])
        return shown


def _plain(name: str) -> str:
    return name.partition(TOPIC_ID)[0]


def _log(replica: HostedReplica) -> list[Any]:
    partition = replica.partition
    log, epochs = partition.log, partition.epochs
    batches = [[batch.base_offset, batch.last_offset, batch.leader_epoch] for batch in log.batches]
    return [log.log_start, log.leo, partition.hw, [list(entry) for entry in epochs.entries], batches]


def _offset(replica: HostedReplica, batches: int) -> int:
    """Where the last batches begin, -1 for beyond the end."""
    log = replica.partition.log
    if batches <= 0:
        return log.leo - batches
    return log.batches[-batches].base_offset if batches <= len(log.batches) else log.log_start


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    counts = [operation[1] for operation in case if operation[0] == "directories"]
    broker = Broker(rules, counts[-1] if counts else 1)
    return [broker.do(operation) for operation in case]


class Drawing:
    """Draws a case, tracking roughly the metadata."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._topics: dict[str, list[list[int]]] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._directories = 1
        self.case: Case = []

    def draw(self) -> Case:
        """A case."""
        rng = self._rng
        if rng.random() < 0.4:
            self._directories = 2
            self.case.append(["directories", 2])
        self._commit()
        self.case.insert(rng.randint(0, len(self.case)), ["start"])
        for _ in range(rng.randint(4, 30)):
            roll = rng.random()
            if roll < 0.4:
                self._commit()
            elif roll < 0.88:
                self._request()
            elif roll < 0.91:
                self.case.append(["wait", rng.choice((1, 4_999, 5_000, 10_001))])
            elif roll < 0.92:
                self.case.append(["ending"])
            elif roll < 0.94 and self._directories > 1:
                self.case.append(["fail", rng.randrange(2)])
            else:
                self._restart()
        return self.case

    def _restart(self) -> None:
        rng = self._rng
        self.case.append([rng.choice(("stop", "crash"))])
        if rng.random() < 0.5:
            self._commit()
        if self._directories > 1 and rng.random() < 0.5:
            self.case.append(["mend", rng.randrange(2)])
        self.case.append(["start"])

    def _commit(self) -> None:
        self.case.append(["commit", [self._changed() for _ in range(self._rng.choice((1, 1, 1, 2, 3)))]])

    def _changed(self) -> list[Any]:
        rng = self._rng
        missing = [topic for topic in TOPICS if topic not in self._topics]
        if missing and (len(missing) == len(TOPICS) or rng.random() < 0.3):
            return self._created(rng.choice(missing))
        topic = rng.choice(list(self._topics))
        if rng.random() < 0.08:
            for number in range(len(self._topics.pop(topic))):
                for known in (self._leaders, self._epochs):
                    known.pop((topic, number), None)
            return ["remove", topic]
        number = rng.randrange(len(self._topics[topic]))
        return self._changed_partition(topic, number)

    def _created(self, topic: str) -> list[Any]:
        rng = self._rng
        partitions = [self._some() for _ in range(rng.randint(1, MOST))]
        self._topics[topic] = partitions
        for number, replicas in enumerate(partitions):
            self._leaders[topic, number], self._epochs[topic, number] = replicas[0], 0
        return ["create", topic, partitions]

    def _some(self) -> list[int]:
        """Replicas; mostly of the broker, too."""
        others = self._rng.sample(BROKERS[1:], self._rng.randint(1, 3))
        if self._rng.random() < 0.85:
            others.insert(self._rng.randint(0, len(others)), NODE)
        return others

    def _changed_partition(self, topic: str, number: int) -> list[Any]:
        rng = self._rng
        replicas = None
        if rng.random() < 0.2:
            replicas = self._topics[topic][number] = self._some()
        members = self._topics[topic][number]
        leader = None
        if replicas is not None and self._leaders[topic, number] not in (*members, -1):
            leader = rng.choice(members)
        elif rng.random() < 0.6:
            leader = -1 if rng.random() < 0.1 else rng.choice(members)
        if leader is not None:
            self._leaders[topic, number] = leader
            self._epochs[topic, number] += 1
        leads = self._leaders[topic, number]
        isr = None
        if replicas is not None or leader is not None or rng.random() < 0.5:
            isr = [one for one in members if one == leads or rng.random() < 0.7] or members[:1]
        place = rng.randrange(2) if self._directories > 1 and NODE in members and rng.random() < 0.1 else None
        return ["change", topic, number, leader, isr, replicas, place]

    def _request(self) -> None:
        rng = self._rng
        if not self._leaders or rng.random() < 0.02:
            self.case.append(["append", rng.choice(TOPICS), rng.randrange(MOST), 1, False])
            return
        topic, number = rng.choice(list(self._leaders))
        ours = [key for key, leader in self._leaders.items() if leader == NODE]
        theirs = [key for key, leader in self._leaders.items() if leader != NODE]
        kind = rng.choices(("append", "fetch", "copy", "shrink"), (30, 40, 30, 5))[0]
        mine = theirs if kind == "copy" else ours
        if mine and rng.random() < 0.85:
            topic, number = rng.choice(mine)
        epoch = self._epochs[topic, number]
        if kind == "append":
            self.case.append([kind, topic, number, rng.randint(1, 3), rng.random() < 0.5])
        elif kind == "fetch":
            back = rng.choice((0, 0, 0, 0, 1, 1, 2, -1))
            asked = epoch if rng.random() < 0.85 else rng.choice((NO_EPOCH, max(epoch - 1, 0), epoch + 1))
            last = NO_EPOCH if rng.random() < 0.8 else rng.randint(0, epoch)
            self.case.append([kind, topic, number, rng.choice(BROKERS[1:]), back, asked, last])
        elif kind == "copy":
            self.case.append([kind, topic, number, rng.randint(0, 3), rng.random() < 0.5])
        else:
            self.case.append([kind, topic, number])


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


SUBJECT: Final = Subject(
    "replica-manager",
    "highwater.ReplicaManagerSubject",
    since("3.9.0"),
    draw,
    run,
    quick=150,
    usual=1_000,
    deep=20_000,
    uses=("batches", "logs", "partition", "metadata_publisher"),
    recorded=45_000,
    names_brokers=True,
)
