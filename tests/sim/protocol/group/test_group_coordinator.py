from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.protocol.decisions import Decisions
from sim.protocol.group.group_coordinator import (
    ACTIVE,
    FAILED,
    INITIAL,
    NO_EPOCH_GIVEN,
    CoordinatorHost,
    GroupCoordinator,
    GroupRequest,
)
from sim.protocol.group.group_messages import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    UNSTABLE_OFFSET_COMMIT,
    CommittedOffsets,
    OffsetCommit,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from sim.protocol.messages import NONE, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER
from sim.protocol.modes import MODES
from tests.sim.protocol.recording import Recorder, decision, partition

if TYPE_CHECKING:
    from collections.abc import Callable

CACHED = {"group_coordinator": "cached"}
STABLE = {"group_coordinator": "refuses-unstable"}
REPLAYED = {"group_coordinator": "replayed", "stopped_load": "fails"}


class Host(CoordinatorHost):
    """A broker with a log, whose tasks run when the test says so.

    Attributes:
        answers: what was answered: the error, or the offset that is committed (-1: none).
    """

    def __init__(self, rules: dict[str, str]) -> None:
        self.rules = MODES["elr-4.3"].rules.override(rules)
        self.offsets = CommittedOffsets()
        self.replica = partition(Recorder(), self.rules)
        self.coordinator = GroupCoordinator(Decisions(self.rules), self, self.offsets)
        self.tasks: list[tuple[Callable[[int], None], int]] = []
        self.answers: list[str | int] = []
        self.appended: list[tuple[int, bool]] = []
        self.awaited: list[GroupRequest] = []
        self.forgotten: list[int] = []
        self.states: list[str] = []

    def append(self, record: int, *, waits: bool) -> None:
        self.appended.append((record, waits))

    def await_commit(self, request: GroupRequest) -> None:
        self.awaited.append(request)

    def forget_append(self, record: int) -> None:
        self.forgotten.append(record)

    def answer_commit(self, request: OffsetCommitRequest, error: str, base_offset: int) -> None:
        self.answers.append(error or f"committed at {base_offset}")

    def answer_fetch(self, request: OffsetFetchRequest, error: str, commit: OffsetCommit | None) -> None:
        self.answers.append(error or (-1 if commit is None else commit.offset))

    def run_later(self, task: Callable[[int], None], epoch: int) -> None:
        self.tasks.append((task, epoch))

    def partition(self) -> object:  # type: ignore[override]
        return self.replica

    def reached(self, probe: int) -> None:
        pass

    def state_changed(self, state: str) -> None:
        self.states.append(state)

    # What the test does.

    def run_tasks(self) -> None:
        tasks, self.tasks = self.tasks, []
        for task, epoch in tasks:
            task(epoch)

    def lead(self, epoch: int = 1) -> Host:
        self.replica.become_leader(decision(epoch=epoch), 0)
        self.coordinator.elected(epoch)
        return self

    def ready(self) -> Host:
        self.lead().run_tasks()
        return self

    def store(self, offset: int) -> int:
        """A record in the log."""
        record = next(self.offsets.ids)
        self.offsets.records[record] = OffsetCommit(record, "orders-0", offset)
        self.replica.append_new(record, 1, 1)
        return record

    def commit(self, offset: int) -> OffsetCommitRequest:
        request = OffsetCommitRequest(1002, OffsetCommit(next(self.offsets.ids), "orders-0", offset))
        self.coordinator.commit(request)
        return request

    def fetch(self) -> OffsetFetchRequest:
        request = OffsetFetchRequest(1002, "orders-0", 1)
        self.coordinator.fetch(request)
        return request


@pytest.mark.parametrize("rules", [CACHED, STABLE])
def test_a_commit_is_answered_and_seen_once_it_is_replicated(rules: dict[str, str]) -> None:
    host = Host(rules).ready()
    request = host.commit(7)
    record = request.commit.record
    assert host.appended == [(record, True)]
    assert host.coordinator.waiting_for(record) is request
    host.fetch()
    host.coordinator.appended(record, NONE, 3)
    host.fetch()
    assert host.answers == [-1 if rules is CACHED else UNSTABLE_OFFSET_COMMIT, "committed at 3", 7]


def test_from_4_0_on_commits_and_fetches_wait_for_the_high_watermark() -> None:
    host = Host(REPLAYED).ready()
    request = host.commit(7)
    assert host.appended == [(request.commit.record, False)]
    host.coordinator.appended(request.commit.record, NONE, 0)
    waits = host.fetch()
    assert host.answers == []
    assert host.awaited == [request, waits]
    host.coordinator.hw_moved(1, leads=True)
    assert host.answers == ["committed at 0", 7]
    host.fetch()
    assert host.answers[2:] == [7]


@pytest.mark.parametrize(("rule", "answers"), [("any-replica", ["committed at 0"]), ("leader", [])])
def test_the_high_watermark_of_a_follower_commits_what_it_has_truncated(rule: str, answers: list[str]) -> None:
    """KAFKA-20634."""
    host = Host({**REPLAYED, "coordinator_hw": rule}).ready()
    request = host.commit(7)
    host.coordinator.appended(request.commit.record, NONE, 0)
    host.coordinator.hw_moved(2, leads=False)  # Beyond what it wrote: Kafka throws.
    assert host.answers == []
    host.coordinator.hw_moved(1, leads=False)
    assert host.answers == answers
    host.coordinator.resigned(2)
    host.run_tasks()
    assert host.answers == answers or host.answers == [NOT_COORDINATOR]


def test_a_load_reads_beyond_the_high_watermark() -> None:
    for rules, before in ((CACHED, [5]), (STABLE, [5]), (REPLAYED, [])):
        host = Host(rules)
        host.store(4)
        host.store(5)
        host.lead()
        host.replica.hw = 1
        host.fetch()
        # To 3.9, a coordinator whose load waits for others is none.
        assert host.answers == [COORDINATOR_LOAD_IN_PROGRESS if rules is REPLAYED else NOT_COORDINATOR]
        host.run_tasks()
        host.fetch()
        assert host.answers[1:] == before
        host.coordinator.hw_moved(2, leads=True)
        assert host.answers[1:] == [5]


@pytest.mark.parametrize(("rule", "state", "answer"), [("empty", ACTIVE, -1), ("fails", FAILED, NOT_COORDINATOR)])
def test_a_load_that_begins_after_the_leadership(rule: str, state: str, answer: int | str) -> None:
    host = Host({**STABLE, "stopped_load": rule})
    host.store(4)
    host.lead()
    host.replica.become_follower(decision(2, epoch=2))
    host.coordinator.resigned(2)
    tasks, host.tasks = host.tasks, []
    tasks[0][0](tasks[0][1])
    assert host.coordinator.state == state
    host.fetch()
    assert host.answers == [answer]
    tasks[1][0](tasks[1][1])
    assert host.coordinator.state == INITIAL
    host.fetch()
    assert host.answers == [answer, NOT_COORDINATOR]


@pytest.mark.parametrize("rules", [STABLE, REPLAYED])
def test_a_fetch_that_a_record_confirms(rules: dict[str, str]) -> None:
    host = Host({**rules, "offset_fetch": "confirmed"})
    host.store(4)
    host.ready().fetch()
    (record, _), answers = host.appended[0], host.answers
    assert answers == []
    host.coordinator.appended(record, NOT_LEADER_OR_FOLLOWER, -1)
    assert answers == [NOT_COORDINATOR]
    host.fetch()
    host.coordinator.appended(host.appended[1][0], NONE, 1)
    host.coordinator.hw_moved(2, leads=True)
    assert answers == [NOT_COORDINATOR, 4]


def test_refusals_of_the_append_and_timeouts() -> None:
    host = Host(STABLE).ready()
    host.coordinator.appended(host.commit(7).commit.record, NOT_ENOUGH_REPLICAS, -1)
    late = host.commit(8)
    host.coordinator.expire(late)
    assert host.forgotten == [late.commit.record]
    host.coordinator.appended(late.commit.record, NONE, 0)  # It is answered once.
    host.fetch()
    assert host.answers == [COORDINATOR_NOT_AVAILABLE, "REQUEST_TIMED_OUT", -1]
    host = Host(REPLAYED).ready()
    late = host.commit(8)
    host.coordinator.appended(late.commit.record, NONE, 0)
    waits = host.fetch()
    host.coordinator.expire(late)
    host.coordinator.expire(waits)
    assert host.answers == [COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR]


def test_tasks_of_earlier_epochs_change_nothing() -> None:
    host = Host(STABLE)
    host.store(4)
    host.lead(3).run_tasks()
    host.coordinator.load(2)
    host.coordinator.unload(2)
    assert host.states == [ACTIVE]
    host.coordinator.resigned(NO_EPOCH_GIVEN)  # The replica is gone.
    host.run_tasks()
    assert host.states == [ACTIVE, INITIAL]


@pytest.mark.parametrize(("rule", "answers"), [("any-replica", ["committed at 0"]), ("leader", [])])
def test_a_leader_that_has_followed_since_may_have_lost_what_it_wrote(rule: str, answers: list[str]) -> None:
    host = Host({**REPLAYED, "coordinator_hw": rule}).ready()
    request = host.commit(7)
    host.coordinator.appended(request.commit.record, NONE, 0)
    host.coordinator.resigned(2)
    host.lead(3)
    host.coordinator.hw_moved(1, leads=True)
    assert host.answers == answers
    host.run_tasks()
    assert host.states == [ACTIVE, INITIAL, ACTIVE]


def test_a_memory_that_is_not_that_of_the_log_is_loaded_again() -> None:
    host = Host(REPLAYED).ready()
    first, second = host.commit(7), host.commit(8)
    host.coordinator.appended(first.commit.record, NONE, 0)
    host.coordinator.appended(second.commit.record, NONE, 3)
    assert host.answers == [NOT_COORDINATOR] * 2
    host.fetch()
    assert host.answers[2:] == [COORDINATOR_LOAD_IN_PROGRESS]
    host.run_tasks()
    assert host.coordinator.state == ACTIVE
