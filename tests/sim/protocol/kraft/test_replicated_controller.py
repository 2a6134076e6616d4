"""Controllers over Raft: QuorumController's decisions, in a quorum whose members fail."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from sim.protocol.kraft.metadata import NO_OP, MetadataImage
from sim.protocol.kraft.replicated_controller import NO_EPOCH, ReplicatedController, ReplicatedControllerHost
from sim.protocol.messages import NONE, NOT_CONTROLLER
from sim.protocol.raft.epoch_states import ResignedState
from tests.sim.protocol.raft.quorum import RELEASES, SECOND, Member, Quorum, ViolationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.protocol.kraft.quorum_controller import QuorumController
    from sim.protocol.raft.kafka_raft_client import LeaderAndEpoch
    from sim.protocol.raft.raft_log import RaftBatch

TOPIC = "t-0"


class Process(ReplicatedControllerHost):
    """Callbacks of a controller that no test needs."""

    def claimed(self, epoch: int) -> None:
        """See `ReplicatedControllerHost`."""

    def renounced(self) -> None:
        """See `ReplicatedControllerHost`."""

    def has_session(self, broker: int) -> bool:
        return False

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicatedControllerHost`."""

    def reached(self, probe: int) -> None:
        """See `ReplicatedControllerHost`."""


class Controller(Member):
    """A machine with a controller, if its process runs."""

    def __init__(self, quorum: Quorum, number: int) -> None:
        super().__init__(quorum, number)
        self.controller = self.new()

    def new(self) -> ReplicatedController:
        return ReplicatedController(
            self.number,
            self.quorum.decide,
            {"min.insync.replicas": 2, "eligible.leader.replicas.version": 0},
            Process(),
        )

    def begin(self) -> None:
        super().begin()
        self.controller = self.new()

    def handle_commit(self, batches: Sequence[RaftBatch]) -> None:
        super().handle_commit(batches)
        self.controller.handle_commit(batches)

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        super().handle_leader_change(leader)
        assert self.client is not None or leader.leader != self.number
        if self.client is not None:
            self.controller.client = self.client
            self.controller.handle_leader_change(leader)


class Controllers(Quorum):
    """A quorum of controllers, with requests of brokers.

    Attributes:
        answers: what requests were answered, by the word for the request.
    """

    def __init__(self, release: str = "4.3", voters: int = 3, **kwargs: Any) -> None:
        self.answers: dict[str, tuple[str, object]] = {}
        super().__init__(release, voters, member=Controller, **kwargs)

    def at(self, number: int) -> ReplicatedController:
        member = self.members[number]
        assert isinstance(member, Controller)
        return member.controller

    def start_all(self) -> None:
        for number in self.voters:
            if self.members[number].client is None:
                self.start(number)

    def active(self) -> list[int]:
        """Controllers that take themselves for active."""
        running = [number for number in self.voters if self.members[number].client is not None]
        return [number for number in running if self.at(number).active is not None]

    def request(self, word: str, number: int, operation: Any) -> None:
        """Send a request to a controller."""
        if self.members[number].client is None:
            return

        def answered(error: str, result: object) -> None:
            self.answers[word] = error, result

        self.at(number).run(operation, answered, self.now_us)
        self._act(number, None)

    def elected(self) -> int:
        """Wait until one controller is active."""
        for _ in range(40):
            if len(self.active()) == 1 and self.active()[0] == self.leader():
                return self.active()[0]
            self.run(SECOND)
        raise AssertionError("no active controller")

    def prepared(self) -> int:
        """Three brokers and a partition that all are in sync with; returns the active controller."""
        number = self.elected()
        for broker in (1, 2, 3):
            self.request(f"register {broker}", number, lambda active, broker=broker: register(active, broker))
        self.run(SECOND)
        for broker in (1, 2, 3):
            self.request(f"unfence {broker}", number, lambda active, broker=broker: unfence(active, broker))
        self.request("create", number, lambda active: active.create_partition(TOPIC, (1, 2, 3)))
        self.run(2 * SECOND)
        assert self.answers["create"][0] == NONE
        return number

    def isr(self, number: int) -> tuple[int, ...]:
        return self.at(number).image.partitions[TOPIC].isr


def register(active: QuorumController, broker: int) -> object:
    return active.register(broker, 100 + broker, -1)


def unfence(active: QuorumController, broker: int) -> object:
    return active.heartbeat(broker, active.image.brokers[broker].broker_epoch, active.image.offset)


def fence(broker: int) -> Any:
    return lambda active: active.fence(broker)


def committed_image(controller: ReplicatedController) -> MetadataImage:
    """What the log of a controller comes to, up to what it knows to be committed."""
    image = MetadataImage()
    for batch in controller.client.log.read(0, controller.stable_offset):
        for record in batch.records:
            if record != NO_OP:
                image.replay(record)  # type: ignore[arg-type]
        image.offset = batch.end_offset
    return image


def same(one: MetadataImage, other: MetadataImage) -> bool:
    return (one.offset, one.brokers, one.partitions, one.settings) == (
        other.offset,
        other.brokers,
        other.partitions,
        other.settings,
    )


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("voters", [1, 3, 5])
def test_a_decision_is_answered_once_it_is_committed_and_reaches_all_controllers(release: str, voters: int) -> None:
    quorum = Controllers(release, voters)
    number = quorum.prepared()
    quorum.request("fence", number, fence(3))
    assert "fence" not in quorum.answers
    assert quorum.isr(number) == (1, 2)
    quorum.run(2 * SECOND)
    assert quorum.answers["fence"][0] == NONE
    assert {quorum.isr(member) for member in quorum.voters} == {(1, 2)}


def test_broker_epochs_are_offsets_of_the_replicated_log() -> None:
    quorum = Controllers()
    number = quorum.prepared()
    image = quorum.at(number).image
    assert len({entry.broker_epoch for entry in image.brokers.values()}) == 3
    for entry in image.brokers.values():
        (batch,) = [
            batch
            for batch in quorum.client(number).log.batches
            if batch.base_offset < entry.broker_epoch <= batch.end_offset
        ]
        assert batch.records[entry.broker_epoch - 1 - batch.base_offset].broker == entry.broker  # type: ignore[attr-defined]


def test_a_standby_answers_not_controller() -> None:
    quorum = Controllers()
    number = quorum.prepared()
    standby = next(voter for voter in quorum.voters if voter != number)
    quorum.request("fence", standby, fence(3))
    assert quorum.answers["fence"] == (NOT_CONTROLLER, None)


def test_a_read_is_answered_at_once_unless_something_is_pending() -> None:
    quorum = Controllers()
    number = quorum.prepared()
    quorum.request("read", number, lambda active: active.image.offset)
    assert quorum.answers["read"][0] == NONE
    quorum.request("fence", number, fence(3))
    quorum.request("late read", number, lambda active: active.image.partitions[TOPIC].isr)
    assert "late read" not in quorum.answers
    quorum.run(SECOND)
    assert quorum.answers["late read"] == (NONE, (1, 2))


def test_an_isolated_controller_decides_tentatively_and_forgets_it() -> None:
    """Two are active until the former one learns of the other. Its decision is never answered with success."""
    quorum = Controllers()
    former = quorum.prepared()
    quorum.cut = {former}
    quorum.request("fence 3", former, fence(3))
    quorum.run(2_500_000)
    assert "fence 3" not in quorum.answers
    assert quorum.isr(former) == (1, 2)
    latter = next(number for number in quorum.voters if number != former and quorum.at(number).active is not None)
    assert sorted(quorum.active()) == sorted([former, latter])
    quorum.request("fence 2", latter, fence(2))
    quorum.run(700_000)
    # 3 s without fetches have made Raft resign; the controller learns it by its next append.
    assert isinstance(quorum.client(former).quorum.state, ResignedState)
    assert quorum.at(former).active is not None
    quorum.at(former).append_no_op(quorum.now_us)
    assert quorum.answers["fence 3"] == (NOT_CONTROLLER, None)
    assert quorum.at(former).active is None
    assert quorum.isr(former) == (1, 2, 3)
    quorum.cut.clear()
    quorum.run(5 * SECOND)
    assert quorum.answers["fence 2"][0] == NONE
    assert {quorum.isr(member) for member in quorum.voters} == {(1, 3)}


def test_a_leader_that_another_one_deposes_renounces() -> None:
    quorum = Controllers()
    former = quorum.prepared()
    quorum.cut = {former}
    quorum.request("fence 3", former, fence(3))
    quorum.run(2_900_000)
    quorum.cut.clear()
    quorum.run(5 * SECOND)
    assert quorum.answers["fence 3"] == (NOT_CONTROLLER, None)
    assert quorum.at(former).claim_epoch == NO_EPOCH or former in quorum.active()
    assert {quorum.isr(member) for member in quorum.voters} == {(1, 2, 3)}


def strike_or_set(quorum: Controllers, draw: random.Random, key: str) -> None:
    """A controller fails or is cut off, all recover, or a controller that takes itself for active sets a key."""
    what = draw.choice(("kill", "power", "cut", "heal", "set", "set", "set"))
    number = draw.choice(quorum.voters)
    if what == "set" and quorum.active():
        quorum.request(key, draw.choice(quorum.active()), lambda active: active.set(key, 1))
    elif what == "cut":
        quorum.cut ^= {number}
    elif what == "heal":
        quorum.cut.clear()
        quorum.start_all()
    elif what in ("kill", "power") and quorum.members[number].client is not None:
        quorum.stop(number, power=what == "power")


@pytest.mark.parametrize("seed", range(12))
def test_answers_hold_and_images_follow_the_log_under_faults(seed: int) -> None:
    """Each answered decision is in every image at the end; a standby's image is what its committed log comes to."""
    quorum = Controllers(["3.9", "4.1", "4.3"][seed % 3], 3 + seed % 2 * 2, seed=seed, most_delay_us=20_000)
    quorum.prepared()
    draw = random.Random(seed)
    for number in range(40):
        strike_or_set(quorum, draw, f"key{number}")
        quorum.run(draw.choice([5_000, 300_000, 2_000_000]))
        for member in quorum.voters:
            controller = quorum.at(member)
            if quorum.members[member].client is not None and controller.active is None and controller.stable_offset:
                assert same(controller.image, committed_image(controller))
    quorum.cut.clear()
    quorum.start_all()
    quorum.run(20 * SECOND)
    quorum.request("last", quorum.elected(), lambda active: active.set("last", 1))
    quorum.run(3 * SECOND)
    answered = {
        word for word, (error, _) in quorum.answers.items() if word.startswith(("key", "last")) and error == NONE
    }
    assert "last" in answered
    for member in quorum.voters:
        assert answered <= set(quorum.at(member).image.settings)
    assert quorum.ended == []


# Stories: each with what differs and does no harm.


@pytest.mark.parametrize(("voters", "is_kept"), [(1, False), (3, True)])
def test_one_controller_answers_before_its_fsync_and_three_do_not(voters: int, is_kept: bool) -> None:
    """The controller loses power in the fsync of a decision that it has answered."""
    quorum = Controllers("4.3", voters)
    number = quorum.prepared()
    quorum.request("fence", number, fence(3))
    quorum.members[number].loses_power_in = 0
    quorum.run(100_000)
    assert quorum.members[number].client is None
    assert ("fence" in quorum.answers) == (voters == 1)
    quorum._committed.clear()  # What is lost is no violation of this test.
    quorum.members[number].told = []
    quorum.start(number)
    quorum.run(20 * SECOND)
    survivor = quorum.elected()
    assert quorum.isr(survivor) == ((1, 2) if is_kept else (1, 2, 3))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("empty", [True, False])
def test_a_voter_restarted_empty_rolls_committed_metadata_back(release: str, empty: bool) -> None:
    """A static quorum of three: one voter is cut off, the others commit a smaller ISR, and one of these starts empty.

    With the voter that lacks the decision it elects a leader without it, and the ISR goes back. Restarted with its
    disk, it refuses, and the two wait for the third.
    """
    quorum = Controllers(release)
    active = quorum.prepared()
    behind, other = [number for number in quorum.voters if number != active]
    quorum.cut = {behind}
    quorum.request("fence", active, fence(3))
    quorum.run(SECOND)
    assert quorum.answers["fence"][0] == NONE
    quorum.stop(active, power=False)
    if empty:
        quorum.replace_disk(other)
    else:
        quorum.stop(other)
    quorum.cut.clear()
    quorum.start(other)
    if empty:
        with pytest.raises(ViolationError, match=r"LeaderCompleteness|ConsistentCommittedData|MonotonicHighWatermark"):
            quorum.run(30 * SECOND)
        quorum._committed.clear()
        quorum._high_watermark = 0
        quorum.run(30 * SECOND)
        assert quorum.isr(behind) == (1, 2, 3)
    else:
        quorum.run(30 * SECOND)
        assert quorum.leader() == other
        assert {quorum.isr(behind), quorum.isr(other)} == {(1, 2)}


@pytest.mark.parametrize("lost", [True, False])
def test_a_voter_that_lost_only_quorum_state_votes_twice_in_an_epoch(lost: bool) -> None:
    """Two controllers are active in one epoch, and both assign broker epochs."""
    quorum = Controllers("3.9")
    quorum.now_us = 3 * SECOND
    for candidate in (1, 2):
        quorum._act(candidate, None)
    requests = {message.source: message for _, _, node, message in quorum._queue if message is not None and node == 3}
    quorum._queue.clear()
    quorum._act(3, requests[1])
    (granted,) = [message for _, _, _, message in quorum._queue if message is not None]
    quorum.stop(3)
    if lost:
        quorum.members[3].stored = None
        quorum._epochs.clear()
    quorum.start(3)
    quorum._queue.clear()
    quorum._act(3, requests[2])
    (second,) = [message for _, _, node, message in quorum._queue if message is not None and node == 2]
    quorum._act(1, granted)
    assert quorum.client(1).is_leader
    if lost:
        with pytest.raises(ViolationError, match="SingleLeader"):
            quorum._act(2, second)
        assert quorum.client(2).is_leader
        assert quorum.client(1).quorum.epoch == quorum.client(2).quorum.epoch
    else:
        quorum._act(2, second)
        assert not quorum.client(2).is_leader
