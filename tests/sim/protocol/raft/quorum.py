"""Members of a metadata quorum in one process, with messages that are delayed, dropped and duplicated, and crashes.

After each event the invariants of Kafka's RaftEventSimulationTest are checked: MonotonicHighWatermark, MonotonicEpoch,
MajorityReachedHighWatermark, SingleLeader, SnapshotAtLogStart, LeaderNeverLoadSnapshot, ConsistentCommittedData. Two
are added: a leader has all committed records, and what a listener was told stands in its log. Snapshots contain all
batches below their end, so that these invariants see them.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import Any

from sim.protocol.decisions import Decisions
from sim.protocol.modes import MODES
from sim.protocol.raft.batch_accumulator import NotLeaderError
from sim.protocol.raft.election_state import ElectionState
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient, LeaderAndEpoch, QuorumConfig, RaftHost
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import IllegalRaftStateError, RaftBatch, RaftLog, RaftSnapshot
from sim.protocol.raft.raft_messages import RaftRequest, RaftResponse
from sim.protocol.raft.request_manager import NEVER
from sim.protocol.rules import Rules

RELEASES = {"3.9": "kraft", "4.1": "elr", "4.3": "elr-4.3"}
SECOND = 1_000_000


class PowerLossError(Exception):
    """The machine of a member loses power while it writes."""


class ViolationError(AssertionError):
    """An invariant does not hold; its name comes first."""


class Member(RaftHost):
    """A member's machine, with its disk, and its process if one runs.

    Attributes:
        disk: (log, number of its batches on disk), and quorum-state.
        loses_power_in: number of writes until it loses power, None for never.
        lies: whether its fsync does nothing.
        told: offsets and batches that were reported as committed to its process.
        leaders: what its listener was told of leaders.
    """

    def __init__(self, quorum: Quorum, number: int) -> None:
        self.quorum = quorum
        self.number = number
        self.stored: ElectionState | None = None
        self.log = RaftLog()
        self.client: KafkaRaftClient | None = None
        self.loses_power_in: int | None = None
        self.lies = False
        self.told: list[RaftBatch] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.wake_us = NEVER

    def begin(self) -> None:
        """A process starts."""
        self.told, self.leaders = [], []

    def send(self, node: int, message: RaftRequest | RaftResponse) -> None:
        self.quorum.send(self.number, node, message)

    def random_below(self, bound: int) -> int:
        return self.quorum.random.randrange(bound)

    def store(self, election: ElectionState) -> None:
        self._write()
        self.stored = election

    def flush(self) -> None:
        self._write()
        if not self.lies:
            self.log.flush()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        self.told += batches

    def handle_load_snapshot(self, snapshot: RaftSnapshot) -> None:
        if self.client is not None and self.client.is_leader and self.told:
            raise ViolationError(f"LeaderNeverLoadSnapshot: {self.number} loads {snapshot}")
        assert isinstance(snapshot.content, tuple)
        self.told = list(snapshot.content)

    def make_snapshot(self) -> bool:
        """Make a snapshot of what the process was told; False if there is nothing new in it."""
        latest = self.log.latest_snapshot
        if not self.told or (latest is not None and latest.id.offset >= self.told[-1].end_offset):
            return False
        self.log.add_snapshot(RaftSnapshot(self.told[-1], tuple(self.told), self.quorum.now_us))
        return True

    def all_batches(self) -> list[RaftBatch]:
        """All batches that its log stands for."""
        log, latest = self.log, self.log.latest_snapshot
        known: list[RaftBatch] = []
        if latest is not None and latest.id.offset >= log.base_offset > 0:
            assert isinstance(latest.content, tuple)
            known = [batch for batch in latest.content if batch.end_offset <= log.base_offset]
        return known + log.batches

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)

    def _write(self) -> None:
        if self.loses_power_in is not None:
            self.loses_power_in -= 1
            if self.loses_power_in < 0:
                raise PowerLossError


class Quorum:
    """A quorum, its network and its clock.

    Args:
        release: as in `RELEASES`, or rules.
        voters: number of voters, with ids from 1 on.
        observers: number of observers, with ids from 101 on.
        seed: of everything that is drawn.
        drops, duplicates: of 100 messages.
    """

    def __init__(
        self,
        release: str | Rules = "4.3",
        voters: int = 3,
        observers: int = 0,
        seed: int = 0,
        drops: int = 0,
        duplicates: int = 0,
        most_delay_us: int = 5_000,
        config: QuorumConfig | None = None,
        member: type[Member] | None = None,
    ) -> None:
        rules = MODES[RELEASES[release]].rules if isinstance(release, str) else release
        self.decide = Decisions(rules)
        self.random = random.Random(seed)
        self.drops, self.duplicates, self.most_delay_us = drops, duplicates, most_delay_us
        self.config = config or QuorumConfig()
        self.now_us = 0
        self.voters = tuple(range(1, voters + 1))
        kind = member or Member
        self.members: dict[int, Member] = {
            number: kind(self, number) for number in (*self.voters, *range(101, 101 + observers))
        }
        self.cut: set[int] = set()
        self.ended: list[str] = []
        """Processes that ended with an exception."""
        self.written: list[str] = []
        """Records that a leader took."""
        self._queue: list[tuple[int, int, int, Any]] = []
        self._number = 0
        self._leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._high_watermark = 0
        self._committed: list[RaftBatch] = []
        for number in self.members:
            self.start(number)

    # What a test does.

    def start(self, number: int) -> None:
        member = self.members[number]
        member.begin()
        try:
            member.client = KafkaRaftClient(
                number,
                self.voters,
                member.log,
                member.stored,
                self.decide,
                self.config,
                member,
                self.now_us,
            )
        except PowerLossError:
            self.stop(number)
            return
        self._act(number, None)

    def stop(self, number: int, *, power: bool = True) -> None:
        """End a process; without power, what is not on disk is gone."""
        member = self.members[number]
        member.client = None
        member.loses_power_in = None
        member.log = (member.log.after_power_loss() if power else member.log).reopened()

    def replace_disk(self, number: int) -> None:
        self.stop(number)
        self.members[number].log = RaftLog()
        self.members[number].stored = None
        self._epochs.pop(number, None)

    def append(self, size: int = 1) -> bool:
        """Let a leader whose controller is active append records."""
        for member in self.members.values():
            client = member.client
            if client is None or not client.is_leader or not member.leaders:
                continue
            if member.leaders[-1].leader != member.number or member.leaders[-1].epoch != client.quorum.epoch:
                continue
            records = [f"r{len(self.written) + place}" for place in range(size)]
            try:
                client.prepare_append(client.quorum.epoch, records, self.now_us)
            except NotLeaderError:
                continue
            self.written += records
            self._act(member.number, None)
            return True
        return False

    def run(self, for_us: int) -> None:
        until_us = self.now_us + for_us
        while self._queue and self._queue[0][0] <= until_us:
            self.now_us, _, node, message = heapq.heappop(self._queue)
            member = self.members[node]
            if message is None:
                if member.wake_us == self.now_us:
                    self._act(node, None)
            elif node not in self.cut and message.source not in self.cut:
                self._act(node, message)
        self.now_us = until_us

    def leader(self) -> int | None:
        """The leader of the latest epoch, if it knows of no later one."""
        epoch = max(member.client.quorum.epoch for member in self.members.values() if member.client)
        for number, member in self.members.items():
            if member.client and member.client.is_leader and member.client.quorum.epoch == epoch:
                return number
        return None

    def client(self, number: int) -> KafkaRaftClient:
        client = self.members[number].client
        assert client is not None
        return client

    # The network, and the threads.

    def send(self, source: int, node: int, message: RaftRequest | RaftResponse) -> None:
        if source in self.cut or node in self.cut:
            return
        copies = 0 if self.random.randrange(100) < self.drops else 1
        copies += self.random.randrange(100) < self.duplicates
        for _ in range(copies):
            delay_us = 0 if node == source else self.random.randrange(100, self.most_delay_us)
            self._schedule(self.now_us + delay_us, node, message)

    def _schedule(self, at_us: int, node: int, message: RaftRequest | RaftResponse | None) -> None:
        self._number += 1
        heapq.heappush(self._queue, (at_us, self._number, node, message))

    def _act(self, number: int, message: RaftRequest | RaftResponse | None) -> None:
        member = self.members[number]
        client = member.client
        if client is None:
            return
        try:
            if message is not None:
                client.handle(message, self.now_us)
            member.wake_us = client.poll(self.now_us)
        except PowerLossError:
            self.stop(number)
        except IllegalRaftStateError as error:
            self.ended.append(f"{number}: {error}")
            self.stop(number, power=False)
        else:
            if member.wake_us < NEVER:
                self._schedule(member.wake_us, number, None)
        self.check()

    # Invariants.

    def check(self) -> None:
        for number, member in self.members.items():
            if member.client is not None:
                self._check_member(number, member, member.client)

    def _check_member(self, number: int, member: Member, client: KafkaRaftClient) -> None:
        epoch = client.quorum.epoch
        stored = member.stored.epoch if member.stored else -1
        if stored != epoch or epoch < self._epochs.get(number, 0):
            raise ViolationError(f"MonotonicEpoch: {number} stores {stored}, is in {epoch}")
        self._epochs[number] = epoch
        if client.quorum.leader != -1:
            leader = self._leaders.setdefault(epoch, client.quorum.leader)
            if leader != client.quorum.leader:
                raise ViolationError(f"SingleLeader: {leader} and {client.quorum.leader} in epoch {epoch}")
        log = member.all_batches()
        for place, batch in enumerate(member.told):
            if place < len(self._committed) and self._committed[place] is not batch:
                raise ViolationError(f"ConsistentCommittedData: {self._committed[place]} and {batch}")
            if place >= len(log) or log[place] is not batch:
                raise ViolationError(f"ToldIsInLog: {number} lacks {batch}")
        start = client.log.start_offset
        if start and all(snapshot.id.offset != start for snapshot in client.log.snapshots):
            raise ViolationError(f"SnapshotAtLogStart: {number} has none at {start}, but {client.log.snapshots}")
        self._committed += member.told[len(self._committed) :]
        state = client.quorum.state
        if isinstance(state, LeaderState):
            self._check_leader(number, state, log)

    def _check_leader(self, number: int, state: LeaderState, log: list[RaftBatch]) -> None:
        newest = max(self._leaders)
        if state.epoch != newest or state.high_watermark is None:
            return
        if state.high_watermark < self._high_watermark:
            raise ViolationError(f"MonotonicHighWatermark: {self._high_watermark} -> {state.high_watermark}")
        committed = self._high_watermark = state.high_watermark
        have = [
            voter
            for voter in self.voters
            if _below(self.members[voter].all_batches(), committed) == _below(log, committed)
        ]
        if len(have) <= len(self.voters) // 2:
            raise ViolationError(f"MajorityReachedHighWatermark: {have} have {state.high_watermark} of leader {number}")
        if log[: len(self._committed)] != self._committed:
            raise ViolationError(f"LeaderCompleteness: leader {number} lacks committed records")


def _below(batches: list[RaftBatch], offset: int) -> list[RaftBatch]:
    return [batch for batch in batches if batch.end_offset <= offset]
