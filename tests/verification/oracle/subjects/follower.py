"""A follower: Kafka's AbstractFetcherThread over a log against `ReplicaFetcherThread`, led by a whole partition.

Broker 1 leads, broker 2 follows. Operations: ``lead epoch in-sync`` (whether the follower is in the ISR), ``resign
epoch`` (another one leads), ``append count`` (the leader's clients), ``relay count epoch`` (broker 1 copies from
another leader), ``cut offset`` (broker 1 truncates its log to where the batch with that offset begins), ``delete
offset`` (the leader's log start moves), ``own count epoch`` and ``hw offset`` (the follower's log as it is before),
``follow epoch``, ``leave``, and ``work before after``: one round of the fetcher, truncation and fetch, with the
operations that happen before its first request is answered, and before that answer arrives. To be seen are the
requests, the state of the fetcher, the follower's log start, LEO, HW, leader epochs and batches, and the leader's
epochs, HW and LEO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol import probes
from sim.protocol.batch import Batch
from sim.protocol.decisions import Decisions
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED_EPOCH, LeaderEpochCheckpointFile, LeaderEpochFileCache
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
    OffsetsForLeaderEpochResponse,
    Position,
)
from sim.protocol.replica.partition_fetch_state import ASKS, FETCHES, TRUNCATING
from sim.protocol.replica.partition_host import PartitionHost
from sim.protocol.replica.replica import Replica
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject
from tests.verification.oracle.subjects import partition

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

LOCAL: Final = 2
REPLICAS: Final = [1, LOCAL]


class Driver(PartitionHost):
    """The core's fetcher, its log, and the leader."""

    def __init__(self, rules: Rules, imitated: Collection[str], of_leader: Collection[str]) -> None:
        self._asks_always = "empty-cache-asks" in imitated
        self._leader = partition.Driver(rules, of_leader)
        self._leader.do(["broker", LOCAL, "alive", 1])
        self._has_epochs = rules.follower_truncation != "high-watermark"
        self._asks_controller = rules.isr_update == "alter-partition"
        log = Log(check_first_offset=rules.append_check == "first-offset")
        epochs = LeaderEpochFileCache(LeaderEpochCheckpointFile(), strict=rules.epoch_recorded_at == "election")
        self._replica = Replica("t", log, epochs, 0, Decisions(rules), self)
        self._fetcher = ReplicaFetcherThread(1, Decisions(rules), self, backoff_us=0)
        self._died = self._halted = False
        self._requests: list[list[Any]] = []
        self._before: Case = []
        self._after: Case = []

    # The replica's host, and the fetcher's.

    def appended(self, replica: Replica, batch: Batch) -> None:
        """See `PartitionHost`."""

    def truncated(self, replica: Replica, removed: list[Batch]) -> None:
        """See `PartitionHost`."""

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""

    def log_start_moved(self, replica: Replica) -> None:
        """See `PartitionHost`."""

    def reached(self, probe: int) -> None:
        """See `PartitionHost`."""
        self._died |= probe == probes.FETCHER_DIES

    def truncation_completed(self, replica: Replica, leader_epoch: int, rounds: int) -> None:
        """See `FetcherHost`."""

    def halt(self, reason: str) -> None:
        """See `FetcherHost`."""
        self._halted = self._died = True

    def wake_fetcher(self, fetcher: ReplicaFetcherThread, at_us: int) -> None:
        """See `FetcherHost`."""

    def send_fetch(
        self, fetcher: ReplicaFetcherThread, positions: list[Position], leader_epochs: list[int]
    ) -> FetchRequest:
        """See `FetcherHost`."""
        return FetchRequest(LOCAL, 1, LOCAL, 1, positions, leader_epochs)

    def send_epoch_end(
        self, fetcher: ReplicaFetcherThread, asks: list[Ask], leader_epochs: list[int], *, with_epoch: bool
    ) -> OffsetsForLeaderEpochRequest:
        """See `FetcherHost`."""
        return OffsetsForLeaderEpochRequest(LOCAL, asks, leader_epochs, with_epoch=with_epoch)

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
        log, leader = self._replica.log, self._leader.partition
        epochs = [[epoch, start] for epoch, start in self._replica.epochs.entries] if self._has_epochs else None
        batches = [
            [batch.base_offset, batch.last_offset] + ([batch.leader_epoch] if self._has_epochs else [])
            for batch in log.batches
        ]
        epochs_of = [leader.leader_epoch] + ([max(leader.partition_epoch, 0)] if self._asks_controller else [])
        leading = [leader.is_leader, *epochs_of, leader.hw, leader.log.leo]
        if self._halted:
            return [self._requests, "halted", leading]
        shown = [self._requests, self._fetch_state(), log.log_start, log.leo, self._replica.hw, epochs, batches]
        return [*shown, leading]

    def _fetch_state(self) -> Any:
        fetch = self._fetcher.partitions.get("t")
        if fetch is None:
            return "failed" if "t" in self._fetcher.failed else None
        return ["fetching" if fetch.state in FETCHES else "truncating", fetch.leader_epoch]

    def _act(self, operation: Operation) -> None:
        name, *values = operation
        replica, fetcher = self._replica, self._fetcher
        match name:
            case "lead":
                epoch, in_sync = values
                self._leader.do(["lead", epoch, epoch, REPLICAS if in_sync else [1], REPLICAS])
            case "resign":
                self._leader.do(["follow", LOCAL, values[0], values[0], REPLICAS])
            case "append":
                self._leader.do(["append", values[0], False])
            case "relay":
                self._leader.do(["copy", *values])
            case "cut":
                self._leader.do(["truncate", *values])
            case "delete":
                self._leader.partition.advance_log_start(values[0])
            case "own":
                count, epoch = values
                replica.append_fetched(Batch(replica.log.leo, replica.log.leo + count - 1, epoch, 0))
            case "hw":
                replica.set_hw(values[0])
            case "follow":
                self._quietly(lambda: fetcher.add(replica, values[0], 0))
            case "leave":
                fetcher.remove("t")
                fetcher.failed.discard("t")
            case "work":
                self._before, self._after = values
                self._work()
            case _:
                raise ValueError(f"unknown operation {name!r}")

    def _quietly(self, act: Any) -> None:
        """Kafka's fetcher sends nothing before its next round, the core's at once."""
        self._fetcher.dead, dead = True, self._fetcher.dead
        act()
        self._fetcher.dead = dead or self._died

    def _work(self) -> None:
        """One round: truncate, then fetch, as AbstractFetcherThread.doWork. There are no sessions: see `fetcher`."""
        fetcher = self._fetcher
        fetcher.session.close()
        if self._asks_of_nothing():
            ask = ("t", NO_EPOCH, UNDEFINED_EPOCH)
            epoch = fetcher.partitions["t"].leader_epoch
            fetcher.in_flight = self.send_epoch_end(fetcher, [ask], [epoch], with_epoch=False)
        fetcher.step(0)
        if isinstance(request := fetcher.in_flight, OffsetsForLeaderEpochRequest):
            (_, leader_epoch, epoch) = request.asks[0]
            self._meanwhile(["ends", leader_epoch, epoch])
            error, found, end = self._leader.partition.end_offset_for(
                leader_epoch, epoch, with_epoch=request.with_epoch
            )
            self._arrives()
            self._quietly(
                lambda: fetcher.on_epoch_end_reply(
                    OffsetsForLeaderEpochResponse(request, [("t", error, found, end)]), 0
                )
            )
            if not self._asks_of_nothing():
                fetcher.step(0)
        if isinstance(request := fetcher.in_flight, FetchRequest):
            self._fetch(request)
        while self._is_out_of_range() and not self._died:
            fetcher.step(0)
            request = fetcher.in_flight
            assert isinstance(request, ListOffsetsRequest)
            latest = request.timestamp == LATEST
            self._requests.append(["latest" if latest else "earliest", request.leader_epoch])
            error, offset = self._leader.partition.list_offset(request.timestamp, request.leader_epoch, replica=True)
            reply = ListOffsetsResponse(request, error, offset, 0)
            self._quietly(lambda reply=reply: fetcher.on_list_offsets_reply(reply, 0))
        fetcher.in_flight = None

    def _asks_of_nothing(self) -> bool:
        """Whether a question for an epoch's end comes next though there is no epoch."""
        fetch = self._fetcher.partitions.get("t")
        return (
            self._asks_always
            and not self._died
            and fetch is not None
            and fetch.state is TRUNCATING
            and fetch.replica.epochs.latest is None
        )

    def _meanwhile(self, request: list[Any]) -> None:
        self._requests.append(request)
        now, self._before = self._before, []
        for operation in now:
            self._act(operation)

    def _arrives(self) -> None:
        now, self._after = self._after, []
        for operation in now:
            self._act(operation)

    def _fetch(self, request: FetchRequest) -> None:
        _, offset, leader_epoch, last_epoch = request.positions[0]
        self._meanwhile(["fetch", offset, leader_epoch, last_epoch])
        answer = self._leader.fetch(LOCAL, 1, offset, leader_epoch, last_epoch)
        self._leader.host.write()
        self._arrives()
        result: FetchResult
        if isinstance(answer, str):
            result = "t", answer, [], 0, 0, NO_EPOCH, AGREES
        elif answer[2] is not None:
            result = "t", NONE, [], answer[0], answer[1], NO_EPOCH, tuple(answer[2])
        else:
            batches = [Batch(base, last, epoch, 0) for base, last, epoch in answer[3]]
            result = "t", NONE, batches, answer[0], answer[1], NO_EPOCH, AGREES
        self._quietly(lambda: self._fetcher.on_fetch_reply(FetchResponse(request, [result]), 0))

    def _is_out_of_range(self) -> bool:
        fetch = self._fetcher.partitions.get("t")
        return fetch is not None and fetch.state in ASKS


class Drawing:
    """Draws a case, tracking roughly its state."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._deletes = release != "0.10.2.2"
        self._cuts = release not in since("2.6.0")
        self._epoch = 0
        self._leo = 0
        self._follower_leo = 0
        self.case: Case = []

    def draw(self) -> Case:
        """Two logs with a common prefix, then truncation and fetches."""
        rng = self._rng
        case = self.case
        for _ in range(rng.randint(0, 4)):
            epoch, count = rng.choice((0, 1)) + self._epoch, rng.choice((1, 1, 2, 3))
            self._epoch = epoch
            case.extend((["relay", count, epoch], ["own", count, epoch]))
            self._leo += count
        self._follower_leo = self._leo
        if self._leo:
            case.append(["hw", rng.randint(0, self._leo)])
        self._apart("relay")
        self._apart("own")
        self._epoch += 1
        case.append(self._lead())
        if rng.random() < 0.3 and self._deletes:
            case.append(["delete", rng.randint(1, 12)])
        case.append(["follow", self._epoch])
        for _ in range(rng.randint(2, 12)):
            self._step()
        return case

    def _lead(self) -> Operation:
        return ["lead", self._epoch, self._rng.random() < 0.5]

    def _apart(self, name: str) -> None:
        """Records that only one of the logs has."""
        rng = self._rng
        top = self._epoch
        for _ in range(rng.randint(0, 4)):
            top += rng.choice((0, 1, 1, 2))
            self.case.append([name, rng.choice((1, 1, 2, 3)), top])
        self._epoch = max(self._epoch, top)

    def _step(self) -> None:
        rng = self._rng
        roll = rng.random()
        if roll < 0.6:
            nested = rng.random() < 0.35
            self.case.append(["work", self._around() if nested else [], self._around() if nested else []])
        elif roll < 0.8:
            self.case.append(["append", rng.choice((1, 2, 3))])
        else:
            self.case.extend(self._around())

    def _around(self) -> Case:
        """A change of leadership or settings at the leader, the follower, or both."""
        rng = self._rng
        if self._cuts and rng.random() < 0.1:
            self._epoch += 2
            return [["resign", self._epoch - 1], ["cut", rng.randint(0, 12)], self._lead()]
        roll = rng.random()
        if roll < 0.2:
            return [["append", rng.choice((1, 2))]]
        if roll < 0.3:
            return [["delete", rng.randint(0, 12)]] if self._deletes else []
        if roll < 0.4:
            return [["leave"], ["follow", self._epoch]]
        if roll < 0.5:
            return []
        self._epoch += 1
        if roll < 0.6:
            return [["follow", self._epoch]]
        if roll < 0.7:
            return [self._lead()]
        if roll < 0.8:
            return [["resign", self._epoch]]
        steps: Case = [["resign", self._epoch], ["relay", rng.choice((1, 2)), self._epoch]] if roll < 0.9 else []
        if rng.random() < 0.5:
            steps += [["leave"], ["own", rng.choice((1, 2)), self._epoch]]
        self._epoch += 1
        return [*steps, self._lead(), ["follow", self._epoch]]


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    driver = Driver(rules, imitated, partition.differences_of_leader(release))
    return [driver.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "follower",
    "highwater.FollowerSubject",
    since("0.10.2.2"),
    draw,
    run,
    quick=120,
    usual=2_000,
    deep=20_000,
    uses=("batches", "logs", "partition"),
    names_brokers=True,
)
