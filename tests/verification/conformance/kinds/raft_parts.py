"""Drivers of kinds ``raft_log``, ``batch_accumulator``, ``request_manager``, ``epoch_election``, ``purgatory`` and
``deferred_events``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.kraft.replicated_controller import DeferredEvent, DeferredEventQueue
from sim.protocol.messages import NONE
from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.epoch_election import EpochElection
from sim.protocol.raft.fetch_purgatory import FetchPurgatory
from sim.protocol.raft.raft_log import IllegalRaftStateError, OffsetAndEpoch, RaftBatch, RaftLog, RaftSnapshot
from sim.protocol.raft.raft_messages import BeginQuorumEpochRequest, RaftFetchRequest, RaftFetchResponse
from sim.protocol.raft.request_manager import NEVER, RequestManager
from tests.verification.conformance.driving import Kind, Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.protocol.raft.raft_messages import RaftRequest
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

MS: Final = 1000


def snapshot_of(offset: int, epoch: int) -> RaftSnapshot:
    """An empty snapshot of a log that ends there."""
    return RaftSnapshot(RaftBatch(offset - 1, epoch, 1, ()), None, 0)


class Clock:
    """A case with a time."""

    def __init__(self) -> None:
        self.now_us = 0

    def sleep(self, op: Fields) -> None:
        self.now_us += op["ms"] * MS

    def show(self, _: Fields) -> None:
        """Only look."""

    def until_ms(self, at_us: int) -> int | None:
        """Time until then, None if it does not come."""
        return None if at_us == NEVER else max(0, at_us - self.now_us) // MS


class Log:
    """The state of a case: a log."""

    def __init__(self, given: Fields, _: Rules) -> None:
        self.log = RaftLog(base_offset=given.get("base_offset", 0))

    def append(self, op: Fields) -> None:
        offset = op.get("at", self.log.end_offset)
        control = op.get("control", False)
        self.log.append(RaftBatch(offset, op["epoch"], op["records"], (), is_control=control))

    def truncate(self, op: Fields) -> None:
        self.log.truncate_to(op["offset"])

    def high_watermark(self, op: Fields) -> None:
        self.log.update_high_watermark(op["offset"])

    def end_offset_for(self, op: Fields) -> object:
        return self.log.end_offset_for_epoch(op["epoch"])

    def diverging(self, op: Fields) -> object:
        return self.log.diverging(op["offset"], op["epoch"])

    def read(self, op: Fields) -> Seen:
        end = self.log.high_watermark if op["committed"] else self.log.end_offset
        batches = self.log.read(op["from"], end)
        return Seen(
            offsets=[batches[0].base_offset, batches[-1].end_offset - 1] if batches else None,
            control=[batch.is_control for batch in batches],
        )

    def flush(self, _: Fields) -> None:
        self.log.flush()

    def reopen(self, _: Fields) -> None:
        self.log = self.log.after_power_loss().reopened()

    def snapshot(self, op: Fields) -> None:
        self.log.add_snapshot(snapshot_of(*op["id"]))

    def snapshot_instead(self, op: Fields) -> object:
        return self.log.snapshot_instead(op["offset"], op["epoch"])

    def truncate_to_snapshot(self, _: Fields) -> Seen:
        return Seen(truncated=self.log.truncate_to_latest_snapshot())

    def delete_before(self, op: Fields) -> Seen:
        before = self.log.start_offset
        self.log.delete_before_snapshot(OffsetAndEpoch(*op["id"]))
        return Seen(deleted=self.log.start_offset > before)

    def has_snapshot(self, op: Fields) -> object:
        return self.log.snapshot(OffsetAndEpoch(*op["id"])) is not None

    def observe(self) -> Mapping[str, object]:
        log = self.log
        return {
            "start": log.start_offset,
            "end": log.end_offset,
            "last_epoch": last_epoch(log),
            "hw": log.high_watermark,
            "snapshots": [snapshot.id for snapshot in log.snapshots],
            "misses_snapshot": log.misses_snapshot,
        }


def last_epoch(log: RaftLog) -> int | None:
    """The epoch of the last record, None where Kafka throws."""
    try:
        return log.last_fetched_epoch
    except IllegalRaftStateError:
        return None


class Accumulator(Clock):
    """The state of a case: what a leader of epoch 17 is to append from offset 157 on."""

    def __init__(self, given: Fields, _: Rules) -> None:
        super().__init__()
        self.accumulator = BatchAccumulator(17, given["base_offset"], given["linger_ms"] * MS)

    def append(self, op: Fields) -> Seen:
        return Seen(offset=self.accumulator.append(op.get("epoch", 17), ("record",) * op["records"], self.now_us))

    def leader_change(self, _: Fields) -> None:
        self.accumulator.append_control_message()

    def drain(self, _: Fields) -> Seen:
        drained = self.accumulator.drain()
        return Seen(
            batches=[[batch.base_offset, batch.size] for batch in drained],
            control=[batch.is_control for batch in drained],
        )

    def observe(self) -> Mapping[str, object]:
        at_us = self.accumulator.drain_at_us()
        left_ms = self.until_ms(at_us)
        return {"empty": self.accumulator.is_empty, "drain_ms": left_ms, "needs_drain": left_ms == 0}


class Requests(Clock):
    """The state of a case: the connections of a member. Requests go by numbers."""

    def __init__(self, given: Fields, _: Rules) -> None:
        super().__init__()
        self.first = 0
        backoff_us, timeout_us = given["backoff_ms"] * MS, given["timeout_ms"] * MS
        self.manager = RequestManager(given["bootstrap"], backoff_us, timeout_us, lambda _: 0)
        self.requests: dict[int, RaftRequest] = {}

    def request(self, op: Fields) -> RaftRequest:
        """The request of that number."""
        return self.requests.setdefault(op["request"], BeginQuorumEpochRequest(0, 0))

    def send(self, op: Fields) -> None:
        self.manager.on_request_sent(op["node"], self.request(op), self.now_us)

    def result(self, op: Fields) -> None:
        self.manager.on_response_result(op["node"], self.request(op), self.now_us, success=op["success"])

    def reset_all(self, _: Fields) -> None:
        self.manager.reset_all()

    def is_ready(self, op: Fields) -> object:
        return self.manager.is_ready(op["node"], self.now_us)

    def is_expected(self, op: Fields) -> object:
        return self.manager.is_response_expected(op["node"], self.request(op))

    def has_timed_out(self, op: Fields) -> object:
        return self.manager.has_request_timed_out(op["node"], self.now_us)

    def has_any_inflight(self, _: Fields) -> object:
        return self.manager.has_any_inflight_request(self.now_us)

    def find_bootstrap(self, _: Fields) -> object:
        return self.manager.find_ready_bootstrap_server(self.now_us)

    def bootstrap_ms(self, _: Fields) -> object:
        return self.until_ms(self.manager.bootstrap_server_at_us(self.now_us))


class Election:
    """The state of a case: the votes of an election."""

    def __init__(self, given: Fields, _: Rules) -> None:
        self.election = EpochElection(given["voters"])

    def vote(self, op: Fields) -> Seen:
        return Seen(first=self.election.record_vote(op["voter"], granted=op["granted"]))

    def show(self, _: Fields) -> None:
        """Only look."""

    def voter(self, op: Fields) -> Seen:
        election = self.election
        return Seen(granted=election.is_granted(op["voter"]), rejected=election.is_rejected(op["voter"]))

    def observe(self) -> Mapping[str, object]:
        election = self.election
        return {
            "granting": election.granting_voters(),
            "rejecting": election.rejecting_voters(),
            "unrecorded": election.unrecorded_voters(),
            "granted": election.is_vote_granted,
            "rejected": election.is_vote_rejected,
        }


class Purgatory(Clock):
    """The state of a case: fetches that wait, by number."""

    def __init__(self, _: Fields, __: Rules) -> None:
        super().__init__()
        self.purgatory = FetchPurgatory()
        self.waiting: list[RaftFetchRequest] = []
        self.taken: list[int] = []

    def wait(self, op: Fields) -> None:
        request = RaftFetchRequest(1, 0, op["offset"], 0, -1, op["ms"] * MS)
        self.waiting.append(request)
        response = RaftFetchResponse(request, 0, "none", 0, 0, (), -1, None)
        self.purgatory.wait(request, response, self.now_us + op["ms"] * MS)

    def appended(self, op: Fields) -> None:
        self.taken = [self._number(parked.request) for parked in self.purgatory.take_below(op["end"])]

    def take_all(self, _: Fields) -> None:
        self.taken = [self._number(parked.request) for parked in self.purgatory.take_all()]

    def sleep(self, op: Fields) -> None:
        super().sleep(op)
        self.taken = [self._number(parked.request) for parked in self.purgatory.take_expired(self.now_us)]

    def _number(self, request: RaftFetchRequest) -> int:
        return next(number for number, waits in enumerate(self.waiting, 1) if waits is request)

    def observe(self) -> Mapping[str, object]:
        purgatory = self.purgatory
        return {"waiting": len(purgatory.parked), "taken": self.taken, "empty": purgatory.is_empty}


class Deferred:
    """The state of a case: events that wait for commits, by number, and those that were answered."""

    def __init__(self, _: Fields, __: Rules) -> None:
        self.queue = DeferredEventQueue()
        self.completed: list[object] = []
        self.failed: list[object] = []

    def add(self, op: Fields) -> None:
        self.queue.add(DeferredEvent(op["offset"], self._answer, op["event"]))

    def _answer(self, error: str, result: object) -> None:
        (self.completed if error == NONE else self.failed).append(result)

    def complete(self, op: Fields) -> None:
        self.queue.complete_up_to(op["offset"])

    def fail_all(self, op: Fields) -> None:
        self.queue.fail_all(op["error"])

    def observe(self) -> Mapping[str, object]:
        highest = self.queue.highest_pending_offset()
        return {"highest": highest if highest >= 0 else None, "completed": self.completed, "failed": len(self.failed)}


LOG: Final = Kind(
    begin=Log,
    ops={
        "append": Log.append,
        "truncate": Log.truncate,
        "high_watermark": Log.high_watermark,
        "end_offset_for": Log.end_offset_for,
        "diverging": Log.diverging,
        "read": Log.read,
        "flush": Log.flush,
        "reopen": Log.reopen,
        "snapshot": Log.snapshot,
        "snapshot_instead": Log.snapshot_instead,
        "truncate_to_snapshot": Log.truncate_to_snapshot,
        "delete_before": Log.delete_before,
        "has_snapshot": Log.has_snapshot,
    },
    observe=Log.observe,
)
ACCUMULATOR: Final = Kind(
    begin=Accumulator,
    ops={
        "append": Accumulator.append,
        "leader_change": Accumulator.leader_change,
        "drain": Accumulator.drain,
        "sleep": Accumulator.sleep,
        "show": Accumulator.show,
    },
    observe=Accumulator.observe,
)
REQUESTS: Final = Kind(
    begin=Requests,
    ops={
        "send": Requests.send,
        "result": Requests.result,
        "reset_all": Requests.reset_all,
        "is_ready": Requests.is_ready,
        "is_expected": Requests.is_expected,
        "has_timed_out": Requests.has_timed_out,
        "has_any_inflight": Requests.has_any_inflight,
        "find_bootstrap": Requests.find_bootstrap,
        "bootstrap_ms": Requests.bootstrap_ms,
        "sleep": Requests.sleep,
    },
)
ELECTION: Final = Kind(
    begin=Election,
    ops={"vote": Election.vote, "voter": Election.voter, "show": Election.show},
    observe=Election.observe,
)
PURGATORY: Final = Kind(
    begin=Purgatory,
    ops={
        "wait": Purgatory.wait,
        "appended": Purgatory.appended,
        "take_all": Purgatory.take_all,
        "sleep": Purgatory.sleep,
    },
    observe=Purgatory.observe,
)
DEFERRED: Final = Kind(
    begin=Deferred,
    ops={"add": Deferred.add, "complete": Deferred.complete, "fail_all": Deferred.fail_all},
    observe=Deferred.observe,
)
