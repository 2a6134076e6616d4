"""A fetcher with several partitions of one leader, in a fetch session.

Kafka's AbstractFetcherThread, FetchSessionHandler and FetchManager against `ReplicaFetcherThread`,
`FetchSessionHandler` and `FetchSession`.

Broker 1 leads partitions 0 to 2 (first of a case: ``partitions count``), broker 2 follows them with one fetcher, whose
partitions are delayed, fail, and are removed and added again one by one, also while a request or its answer is under
way. Operations: as those of `follower`, each with the partition as its first argument, ``break partition`` (truncations
and appends of the follower fail from now on, but not those for an offset out of range), ``elapse`` (all back-offs are
over), and ``work rounds``: of each round what happens before its fetch arrives, what happens before the answer does,
and which of the two is lost ("" for none). Rounds of one operation follow one another at once, as those of a fetch
session in which nothing else changes. To be seen are the requests, and of each partition what `follower` shows, and
whether it is delayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import (
    AGREES,
    LATEST,
    NO_EPOCH,
    NONE,
    Ask,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    Position,
)
from sim.protocol.replica.fetch_session import FetchSession
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_fetch_state import ASKS, FETCHES
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject
from tests.verification.oracle.subjects import partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from random import Random

    from sim.protocol.rules import Rules

LOCAL: Final = 2
REPLICAS: Final = [1, LOCAL]
MOST: Final = 3
BACKOFF_US: Final = 1_000_000
NO_RESULT: Final[FetchResult] = ("", NONE, [], -1, -1, -1, None)


class LeadersHost(partition.Host):
    """The host of a leader whose partition is in fetch sessions, as `sim.hosts.hosted_replica` is one."""

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""
        _note_change(replica)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""
        _note_change(replica)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""
        _note_change(replica)

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""
        _note_change(replica)


def _note_change(replica: Replica) -> None:
    assert isinstance(replica, Partition)
    replica.followers.note_change()


class Leader:
    """The broker that leads, as `sim.hosts.kafka_apis` answers its follower; fetches never wait."""

    def __init__(self, count: int, rules: Rules, imitated: Collection[str]) -> None:
        self.drivers = [partition.Driver(rules, imitated, LeadersHost(asks_controller=True)) for _ in range(count)]
        for driver in self.drivers:
            driver.do(["broker", LOCAL, "alive", 1])
        self._session: FetchSession | None = None
        self._sessions = 0

    def _session_of(self, request: FetchRequest) -> FetchSession | None:
        session = self._session
        if session is not None:
            if session.is_continued_by(request):
                return session
            session.close()
        self._session = None
        if len(request.positions) > 1:
            self._sessions += 1
            partitions = [self.drivers[number_of(position[0])].partition for position in request.positions]
            self._session = FetchSession(self._sessions, request, partitions, [NO_RESULT] * len(partitions))
        return self._session

    def serve(self, request: FetchRequest) -> FetchResponse:
        """Answer a fetch."""
        session = self._session_of(request)
        positions, places = request.positions, list(range(len(request.positions)))
        found: dict[int, FetchResult] = {}
        for place in places if session is None else session.begin_fetch(request, 0):
            position, leader_epoch = positions[place], request.leader_epochs[place]
            driver = self.drivers[number_of(position[0])]
            if len(positions) > 1 and driver.partition.note_idle_fetch(LOCAL, position, leader_epoch, 1, 0):
                if session is not None:
                    session.note_idle(place, driver.partition, self._nothing(position[0]))
                continue
            answer = driver.fetch(LOCAL, 1, *position[1:])
            driver.host.write()
            found[place] = _result(position[0], answer)
        results = [NO_RESULT] * len(positions) if session is None else session.results
        for place in places if session is None else session.visited:
            results[place] = found.get(place) or self._nothing(positions[place][0])
        return FetchResponse(request, results, None if session is None else session.take_changed())

    def _nothing(self, name: str) -> FetchResult:
        led = self.drivers[number_of(name)].partition
        return name, NONE, (), led.hw, led.log.log_start, led.leader_epoch, led.agrees


def number_of(name: str) -> int:
    """The number of a partition."""
    return int(name.rpartition("-")[2])


def _result(name: str, answer: Any) -> FetchResult:
    if isinstance(answer, str):
        return name, answer, [], 0, 0, NO_EPOCH, AGREES
    hw, log_start, diverging = answer[:3]
    if diverging is not None:
        return name, NONE, [], hw, log_start, NO_EPOCH, tuple(diverging)
    batches = [Batch(base, last, epoch, 0) for base, last, epoch in answer[3]]
    return name, NONE, batches, hw, log_start, NO_EPOCH, AGREES


class Driver(PartitionHost):
    """The core's fetcher, its logs, and the leader."""

    def __init__(self, count: int, rules: Rules, of_leader: Collection[str]) -> None:
        self._leader = Leader(count, rules, of_leader)
        self._replicas = [self._replica(f"t-{number}", rules) for number in range(count)]
        self._broken: set[str] = set()
        self._fetcher = ReplicaFetcherThread(1, Decisions(rules), self, backoff_us=BACKOFF_US)
        self._now_us = 0
        self._requests: list[list[Any]] = []

    def _replica(self, name: str, rules: Rules) -> Replica:
        log = Log(check_first_offset=rules.append_check == "first-offset")
        epochs = LeaderEpochFileCache(LeaderEpochCheckpointFile(), strict=rules.epoch_recorded_at == "election")
        return Replica(name, log, epochs, 0, Decisions(rules), self)

    # The replicas' host, and the fetcher's.

    def _write(self, replica: Replica) -> None:
        fetch = self._fetcher.partitions.get(replica.name)
        if replica.name in self._broken and not (fetch is not None and fetch.state in ASKS):
            raise OSError("broken")

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""
        self._write(replica)

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""
        self._write(replica)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost`."""

    def halt(self, reason: str) -> None:
        """See `FetcherHost`."""
        raise AssertionError(reason)

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """See `FetcherHost`."""

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost`."""
        return FetchRequest(LOCAL, 1, LOCAL, 1, positions, leader_epochs, -1, fetcher.session.incremental)

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost`."""
        raise AssertionError("the leader compares epochs in fetches")

    def send_list_offsets(
        self, fetcher: ReplicaFetcherThread, name: str, timestamp: int, leader_epoch: int
    ) -> ListOffsetsRequest:
        """See `FetcherHost`."""
        return ListOffsetsRequest(LOCAL, LOCAL, name, timestamp, leader_epoch)

    # What happens.

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        self._requests = []
        self._act(operation)
        return [self._requests, *(self._shown(number) for number in range(len(self._replicas)))]

    def _shown(self, number: int) -> list[Any]:
        replica, leader = self._replicas[number], self._leader.drivers[number].partition
        epochs_of = [leader.leader_epoch, max(leader.partition_epoch, 0)]
        leading = [leader.is_leader, *epochs_of, leader.hw, leader.log.leo]
        if self._is_lost(replica):
            return ["failed", "lost", leading]
        log = replica.log
        epochs = [[epoch, start] for epoch, start in replica.epochs.entries]
        batches = [[batch.base_offset, batch.last_offset, batch.leader_epoch] for batch in log.batches]
        return [self._fetch_state(replica.name), log.log_start, log.leo, replica.hw, epochs, batches, leading]

    def _fetch_state(self, name: str) -> Any:
        fetch = self._fetcher.partitions.get(name)
        if fetch is None:
            return "failed" if name in self._fetcher.failed else None
        doing = "fetching" if fetch.state in FETCHES else "truncating"
        return [doing, fetch.leader_epoch, fetch.delayed_until_us > self._now_us]

    def _is_lost(self, replica: Replica) -> bool:
        """Whether a write to its broken disk failed."""
        return replica.name in self._broken and replica.name in self._fetcher.failed

    def _act(self, operation: Operation) -> None:
        name, *values = operation
        match name:
            case "partitions":
                pass
            case "elapse":
                self._now_us += BACKOFF_US
            case "work":
                self._work(values[0])
            case _:
                if values[0] < len(self._replicas):
                    self._act_on(name, *values)

    def _act_on(self, name: str, number: int, *values: Any) -> None:
        leader = self._leader.drivers[number]
        match name:
            case "lead":
                epoch, in_sync = values
                leader.do(["lead", epoch, epoch, REPLICAS if in_sync else [1], REPLICAS])
            case "resign":
                leader.do(["follow", LOCAL, values[0], values[0], REPLICAS])
            case "append":
                leader.do(["append", values[0], False])
            case "relay":
                leader.do(["copy", *values])
            case "delete":
                leader.partition.advance_log_start(values[0])
            case _:
                self._act_on_follower(name, self._replicas[number], *values)

    def _act_on_follower(self, name: str, replica: Replica, *values: Any) -> None:
        fetcher = self._fetcher
        match name:
            case "own":
                count, epoch = values
                leo = replica.log.leo
                if replica.name not in self._broken and replica.name not in fetcher.partitions:
                    replica.append_fetched(Batch(leo, leo + count - 1, epoch, 0))
            case "hw":
                replica.set_hw(values[0])
            case "follow":
                if not self._is_lost(replica):
                    self._quietly(lambda: fetcher.add(replica, values[0], self._now_us))
            case "leave":
                if not self._is_lost(replica):
                    fetcher.remove(replica.name)
                    fetcher.failed.discard(replica.name)
            case "break":
                self._broken.add(replica.name)
            case _:
                raise ValueError(f"unknown operation {name!r}")

    def _quietly(self, act: Callable[[], None]) -> None:
        """Kafka's fetcher sends nothing before its next round, the core's at once."""
        self._fetcher.dead = True
        act()
        self._fetcher.dead = False

    def _work(self, rounds: list[list[Any]]) -> None:
        """Rounds: truncate, fetch and process the answer, as AbstractFetcherThread.doWork."""
        fetcher = self._fetcher
        fetcher.step(self._now_us)
        for number, (before, after, lost) in enumerate(rounds):
            request = fetcher.in_flight
            if not isinstance(request, FetchRequest):
                break
            self._requests.append(["fetch", sorted([number_of(name), *rest] for name, *rest in request.positions)])
            is_last = number == len(rounds) - 1
            response = self._exchange(request, before, after, lost)
            fetcher.dead = is_last
            if response is None:
                fetcher.request_failed(request, self._now_us)
            else:
                fetcher.on_fetch_reply(response, self._now_us)
            fetcher.dead = False
            self._ask_for_offsets(is_last=is_last)
        fetcher.in_flight = None

    def _exchange(self, request: FetchRequest, before: Case, after: Case, lost: str) -> FetchResponse | None:
        for operation in before:
            self._act(operation)
        if lost == "request":
            return None
        response = self._leader.serve(request)
        for operation in after:
            self._act(operation)
        return None if lost == "answer" else response

    def _ask_for_offsets(self, *, is_last: bool) -> None:
        """Ask for the offsets of partitions that are out of range."""
        fetcher = self._fetcher
        asked: list[list[Any]] = []
        while any(fetch.state in ASKS for fetch in fetcher.partitions.values()):
            fetcher.step(self._now_us)
            request = fetcher.in_flight
            assert isinstance(request, ListOffsetsRequest)
            number = number_of(request.name)
            asked.append(["latest" if request.timestamp == LATEST else "earliest", number, request.leader_epoch])
            leader = self._leader.drivers[number].partition
            error, offset = leader.list_offset(request.timestamp, request.leader_epoch, replica=True)
            fetcher.dead = is_last
            fetcher.on_list_offsets_reply(ListOffsetsResponse(request, error, offset, 0), self._now_us)
            fetcher.dead = False
        self._requests += sorted(asked, key=lambda request: request[1])


class Tracked:
    """Roughly the state of a partition."""

    def __init__(self) -> None:
        self.epoch = 0
        self.leo = 0


class Drawing:
    """Draws a case."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._partitions = [Tracked() for _ in range(rng.choice((1, 2, 2, 2, 3, 3)))]
        self.case: Case = []

    def draw(self) -> Case:
        """Of each partition two logs with a common prefix, then truncation and fetches."""
        rng, case = self._rng, self.case
        case.append(["partitions", len(self._partitions)])
        for number, tracked in enumerate(self._partitions):
            self._begin(number, tracked)
        for _ in range(rng.randint(3, 14)):
            self._step()
        return case

    def _begin(self, number: int, tracked: Tracked) -> None:
        rng, case = self._rng, self.case
        for _ in range(rng.randint(0, 3)):
            tracked.epoch += rng.choice((0, 1))
            count = rng.choice((1, 1, 2, 3))
            case.extend((["relay", number, count, tracked.epoch], ["own", number, count, tracked.epoch]))
            tracked.leo += count
        if tracked.leo and rng.random() < 0.8:
            case.append(["hw", number, rng.randint(0, tracked.leo)])
        if rng.random() < 0.5:
            self._apart("relay", number, tracked)
            self._apart("own", number, tracked)
        tracked.epoch += 1
        case.append(self._lead(number))
        if rng.random() < 0.3:
            case.append(["delete", number, rng.randint(1, 12)])
        if rng.random() < 0.9:
            case.append(["follow", number, tracked.epoch])

    def _apart(self, name: str, number: int, tracked: Tracked) -> None:
        """Records that only one of the logs has."""
        rng = self._rng
        top = tracked.epoch
        for _ in range(rng.randint(0, 3)):
            top += rng.choice((0, 1, 1, 2))
            self.case.append([name, number, rng.choice((1, 1, 2, 3)), top])
        tracked.epoch = max(tracked.epoch, top)

    def _lead(self, number: int) -> Operation:
        return ["lead", number, self._partitions[number].epoch, self._rng.random() < 0.5]

    def _step(self) -> None:
        rng = self._rng
        roll = rng.random()
        if roll < 0.6:
            self.case.append(["work", [self._round() for _ in range(rng.choice((1, 1, 1, 2, 3, 4)))]])
        elif roll < 0.75:
            self.case.append(self._append())
        elif roll < 0.87:
            self.case.append(["elapse"])
        else:
            self.case.extend(self._around())

    def _round(self) -> Operation:
        rng = self._rng
        before = self._around() if rng.random() < 0.2 else []
        if rng.random() < 0.3:
            before = [*before, self._append()]
        after = self._around() if rng.random() < 0.2 else []
        lost = rng.choice(("request", "answer")) if rng.random() < 0.05 else ""
        return [before, after, lost]

    def _append(self) -> Operation:
        rng = self._rng
        return ["append", rng.randrange(len(self._partitions)), rng.choice((1, 2, 3))]

    def _around(self) -> Case:
        """A change of leadership of a partition, or of what is fetched; sometimes of several partitions."""
        rng = self._rng
        count = len(self._partitions)
        numbers = rng.sample(range(count), count) if rng.random() < 0.15 else [rng.randrange(count)]
        return [operation for number in numbers for operation in self._around_one(number)]

    def _around_one(self, number: int) -> Case:
        rng = self._rng
        tracked = self._partitions[number]
        roll = rng.random()
        if roll < 0.2:
            return [["append", number, rng.choice((1, 2))]]
        if roll < 0.28:
            return [["delete", number, rng.randint(0, 12)]]
        if roll < 0.36:
            return [["leave", number], ["follow", number, tracked.epoch]]
        if roll < 0.43:
            return [["leave", number]]
        if roll < 0.5:
            return [["follow", number, tracked.epoch]]
        if roll < 0.52:
            return [["break", number]]
        tracked.epoch += 1
        if roll < 0.6:
            return [["follow", number, tracked.epoch]]
        if roll < 0.7:
            return [self._lead(number)]
        if roll < 0.78:
            return [["resign", number, tracked.epoch]]
        steps: Case = []
        if roll < 0.88:
            steps = [["resign", number, tracked.epoch], ["relay", number, rng.choice((1, 2)), tracked.epoch]]
        if rng.random() < 0.4:
            steps += [["leave", number], ["own", number, rng.choice((1, 2)), tracked.epoch]]
        tracked.epoch += 1
        return [*steps, self._lead(number), ["follow", number, tracked.epoch]]


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    count = next((operation[1] for operation in case if operation[0] == "partitions"), MOST)
    driver = Driver(count, rules, partition.differences_of_leader(release))
    return [driver.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "fetcher",
    "highwater.FetcherSubject",
    since("3.9.0"),
    draw,
    run,
    quick=120,
    usual=1_000,
    deep=20_000,
    uses=("batches", "logs", "partition", "follower"),
    recorded=45_000,
    names_brokers=True,
)
