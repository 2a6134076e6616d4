"""A fetch session leaves out the partitions that have not changed, and no history shows it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import pytest

from scenarios.format import catalogue
from scenarios.single.run import run_row
from sim.hosts.kafka_apis import SESSION_PLACES, KafkaApis
from sim.hosts.topics import TopicPartition
from sim.protocol.messages import NOT_LEADER_OR_FOLLOWER
from sim.protocol.modes import MODES
from sim.protocol.replica.fetch_session import FetchSession
from sim.protocol.replica.followers import Followers
from tests.sim.hosts.test_hosted_replica import OTHER, one_leader, several, two
from tests.verification.bench.partitions import scenario

if TYPE_CHECKING:
    from sim.protocol.messages import FetchRequest, FetchResult

ELR = MODES["elr-4.3"]


@pytest.fixture(autouse=True)
def sessions_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of two partitions begins a session, too."""
    monkeypatch.setattr("sim.hosts.kafka_apis.SESSION_PLACES", 2)


def no_fetch_continues(self: FetchSession, request: FetchRequest) -> bool:
    return False


def count_visits(patch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The number of partitions that each fetch visits, and that it names."""
    counts: list[tuple[int, int]] = []
    begin_fetch = FetchSession.begin_fetch

    def counted(self: FetchSession, request: FetchRequest, now_us: int) -> list[int]:
        visited = begin_fetch(self, request, now_us)
        counts.append((len(visited), len(request.positions)))
        return visited

    patch.setattr(FetchSession, "begin_fetch", counted)
    return counts


@pytest.mark.parametrize("name", ["topics", "disks"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_runs_are_the_same_if_each_fetch_begins_a_session(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run_row(catalogue.load(name), ELR, seed)
    monkeypatch.setattr(FetchSession, "is_continued_by", no_fetch_continues)
    assert run_row(catalogue.load(name), ELR, seed) == row


@pytest.mark.parametrize("idle", [True, False])
def test_many_partitions_are_the_same_if_each_fetch_begins_a_session(
    idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run_row(scenario(12, idle=idle), ELR, 1)
    monkeypatch.setattr(FetchSession, "is_continued_by", no_fetch_continues)
    assert run_row(scenario(12, idle=idle), ELR, 1) == row


def test_a_change_that_is_not_noted_shows_in_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    row = run_row(scenario(12, idle=False), ELR, 1)
    monkeypatch.setattr(Followers, "note_change", lambda _: None)
    assert run_row(scenario(12, idle=False), ELR, 1)["digest"] != row["digest"]


def test_a_fetch_visits_the_partitions_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_visits(monkeypatch)
    run_row(scenario(60, idle=True), ELR, 0)
    visited, named = (sum(numbers) for numbers in zip(*counts, strict=True))
    assert named > 1_000
    assert visited < named / 2


def test_a_fetch_of_few_partitions_begins_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_visits(monkeypatch)
    row = run_row(scenario(12, idle=False), ELR, 1)
    assert max(named for _, named in counts) < SESSION_PLACES
    counts.clear()
    monkeypatch.setattr("sim.hosts.kafka_apis.SESSION_PLACES", SESSION_PLACES)
    assert run_row(scenario(12, idle=False), ELR, 1) == row
    assert counts == []


def test_a_change_updates_the_fetch_times_of_an_idle_partition() -> None:
    world = one_leader(two(elision=False)).run(20)
    process = world.cluster.running[2]
    partition = process.replicas[OTHER].partition
    states = list(partition.followers.states.values())
    assert len(partition.followers.cached) == len(states) == 2
    before = [state.fetch_us for state in states]
    partition.followers.note_change()
    now_us, longest_us = world.cluster.kernel.now_us, 2 * process.settings.fetch_wait_us
    assert all(now_us - state.fetch_us < longest_us for state in states)
    assert all(state.caught_up_us == state.fetch_us for state in states)
    assert before < [state.fetch_us for state in states]


@pytest.mark.parametrize(("rules", "refused"), [({}, 0), ({"newer_fetch": "refused"}, 2)])
def test_an_idle_fetch_from_a_later_registration_is_counted_or_refused(
    rules: dict[str, str], refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = one_leader(several(TopicPartition(OTHER, 3), elision=False, mode="elr-4.3", rules=rules))
    leader = world.cluster.running[2]
    answered: list[dict[int, FetchResult]] = []
    fetches: list[FetchRequest] = []
    handle = KafkaApis._on_fetch_of_several

    def noted(self: KafkaApis, fetch: FetchRequest) -> None:
        fetches.append(fetch)
        handle(self, fetch)

    monkeypatch.setattr(KafkaApis, "_on_fetch_of_several", noted)
    world.run(5)
    monkeypatch.setattr(KafkaApis, "_reply_fetches", lambda _self, _delayed, found: answered.append(found))
    fetch = copy(next(fetch for fetch in fetches if fetch.replica == 3 and len(fetch.positions) == 2))
    object.__setattr__(fetch, "broker_epoch", fetch.broker_epoch + 1)
    handle(leader.apis, fetch)
    errors = [result[1] for found in answered for result in found.values()]
    assert errors == [NOT_LEADER_OR_FOLLOWER] * refused
