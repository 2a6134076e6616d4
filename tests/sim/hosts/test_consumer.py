from __future__ import annotations

import pytest

from sim.config import Value
from sim.environment.topology import Topology
from sim.protocol.batch import Batch
from sim.protocol.client.consumer_position import AWAIT_VALIDATION, FETCHING, FetchPosition
from sim.protocol.messages import (
    AGREES,
    OFFSET_OUT_OF_RANGE,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
)
from tests.sim.world import World


def shown(world: World) -> list[tuple[int, int]]:
    return [(step["record"], step["offset"]) for step in world.of("read")]


def test_consumer_is_shown_what_lies_below_the_high_watermark_and_no_more() -> None:
    world = World(config={"replica.socket.timeout.ms": 2_000}).ready()
    world.write(2)
    world.cluster.links.cut(2, 1)
    world.write(3)
    assert shown(world) == [(0, 0)]
    world.cluster.links.heal_all()
    world.run(5)
    assert shown(world) == [(0, 0), (2, 2)]
    assert world.cluster.consumer.cursor.offset == 5


def test_consumer_follows_the_leader_and_repeats_nothing() -> None:
    world = World().ready()
    world.write()
    world.cluster.kill(1)
    world.run(30)
    world.write()
    assert shown(world) == [(0, 0), (1, 1)]


def test_a_pause_is_made_up_for() -> None:
    world = World().ready()
    world.cluster.consumer.pause()
    world.write()
    world.write()
    assert shown(world) == []
    world.cluster.consumer.resume()
    world.run()
    assert shown(world) == [(0, 0), (1, 1)]


def test_a_consumer_that_waits_for_nothing_is_stuck() -> None:
    world = World().ready()
    consumer = world.cluster.consumer
    assert not consumer.is_stuck  # Its fetch waits at the leader.
    consumer._fetch = None
    assert consumer.is_stuck
    consumer.pause()
    assert not consumer.is_stuck
    consumer.paused, consumer.has_error = False, True
    assert not consumer.is_stuck
    consumer.has_error = False
    consumer._validation = OffsetsForLeaderEpochRequest(consumer.node, [], [], with_epoch=True), 0
    consumer._prepared_us = consumer.kernel.now_us
    assert not consumer.is_stuck
    consumer._prepared_us -= consumer.timeout_us
    assert not consumer.is_stuck  # It times out now.
    consumer._prepared_us -= 1
    assert consumer.is_stuck
    consumer.retry_later()
    assert not consumer.is_stuck


def test_a_metadata_request_that_ends_with_its_connection_is_sent_again() -> None:
    world = World().ready()
    consumer = world.cluster.consumer
    consumer.connection_lost()
    consumer.forget_leader()
    consumer.refresh()
    assert consumer._asked is not None
    consumer.disconnected(3)
    assert consumer._asked is None
    world.run(1)
    assert consumer.leader == 1
    assert not consumer.is_stuck


def test_a_lost_metadata_request_times_out_also_if_end_offsets_are_asked_for_more_often() -> None:
    world = World(config={"request.timeout.ms": 10_000}).ready()
    consumer = world.cluster.consumer
    world.cluster.links.cut(1, consumer.node)
    world.cluster.links.cut(2, consumer.node)
    world.cluster.links.cut(3, consumer.node)
    consumer.refresh()
    lost = consumer._asked
    assert lost is not None
    for _ in range(3):
        world.run(4)
        consumer.ask_end_offset()
    assert consumer._asked is not lost


def test_a_fetch_ends_with_its_connection_also_while_no_leader_is_known() -> None:
    world = World().ready()
    consumer = world.cluster.consumer
    assert consumer._fetch is not None
    consumer.forget_leader()
    consumer.disconnected(1)
    assert consumer._fetch is None
    world.run(1)
    world.write()
    assert shown(world) == [(0, 0)]


def test_a_request_that_is_lost_ends_the_wait_after_an_answer_without_an_offset() -> None:
    consumer = World().ready().cluster.consumer
    consumer._reset.from_us = later = consumer.kernel.now_us + consumer.timeout_us
    consumer.connection_lost()
    assert consumer._reset.from_us == later  # No request was under way.
    request = OffsetsForLeaderEpochRequest(consumer.node, [], [], with_epoch=True)
    consumer._validations.append((request, FetchPosition(0)))
    consumer.connection_lost()
    assert consumer._reset.from_us == 0


def test_consumer_inside_a_batch_shows_the_rest_of_it() -> None:
    world = World().ready()
    world.cluster.consumer.pause()
    world.write(4)
    world.cluster.consumer.seek(2)
    world.cluster.consumer.resume()
    world.run()
    assert [(step["record"], step["offset"], step["last"]) for step in world.of("read")] == [(2, 2, 3)]


@pytest.mark.parametrize(("policy", "after"), [("earliest", [(2, 2), (3, 3)]), ("latest", [(3, 3)]), ("none", [])])
def test_out_of_range_is_reported_and_reset_as_configured(policy: str, after: list[tuple[int, int]]) -> None:
    world = World(config={"auto.offset.reset": policy}).ready()
    world.cluster.consumer.pause()
    for _ in range(3):
        world.write()
    leader = world.cluster.running[1].partition
    assert leader is not None
    leader.advance_log_start(2)
    world.cluster.consumer.resume()
    world.run()
    world.write()
    assert [step["offset"] for step in world.of("out-of-range")] == [0]
    assert shown(world) == after


def test_consumer_asks_for_the_end_offset_at_intervals() -> None:
    world = World(config={"sim.end.offsets.interval.ms": 2_000}).ready()
    world.write(3)
    world.cluster.consumer.ask_regularly_from(world.cluster.kernel.now_us)
    world.run(5)
    answers = world.of("end-offset")
    assert [(step["offset"], step["leader_epoch"]) for step in answers] == [(3, 0)] * 3
    assert all(0 < step["t"] - step["asked_at"] < 10_000 for step in answers)


def test_an_end_offset_that_goes_back_is_seen() -> None:
    world = World("hw", first=2).ready()  # The controller: broker 3 could not tell broker 2 anything.
    cluster = world.cluster
    world.write(seconds=0)
    world.until("ack")
    cluster.consumer.ask_end_offset()
    world.until("end-offset", offset=1)
    assert cluster.recorder.history.findings.violations == []
    cluster.links.cut(3, 2)  # Broker 2 has heard of no high watermark, and none of its followers will fetch.
    cluster.kill(1)
    world.run(25)
    cluster.consumer.ask_end_offset()
    world.until("end-offset", offset=0)
    assert [violation.kind for violation in cluster.recorder.history.findings.violations] == ["hw-regression"]


CUT: dict[str, int | str] = {
    "unclean.leader.election.enable": True,
    "replica.lag.time.max.ms": 2_000,
    "auto.offset.reset": "earliest",
}


def truncated(mode: str, policy: str, *, refill: int = 3) -> World:
    """Records 0 and 1 were read; 1 was on broker 1 only. Broker 2 is elected without it, and written to."""
    world = World(mode, brokers=2, config={**CUT, "auto.offset.reset": policy}).ready()
    world.write()
    world.cluster.links.cut(2, 1)
    world.run(10)
    world.write()
    assert shown(world) == [(0, 0), (1, 1)]
    world.cluster.consumer.pause()
    world.cluster.kill(1)
    world.run(30)
    for _ in range(refill):
        world.write()
    world.cluster.links.heal_all()
    world.cluster.consumer.resume()
    world.run(5)
    return world


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_consumer_goes_back_to_where_the_logs_part(policy: str) -> None:
    world = truncated("kip320", policy)
    assert [(step["position"], step["offset"]) for step in world.of("rewind")] == [(2, 1)]
    assert shown(world) == [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3)]


def test_without_validation_a_consumer_skips_replaced_records() -> None:
    world = truncated("kip279", "earliest")
    assert not world.of("rewind")
    assert shown(world) == [(0, 0), (1, 1), (3, 2), (4, 3)]


def test_without_a_reset_policy_the_application_seeks_to_the_divergence() -> None:
    world = truncated("kip320", "none")
    (told,) = world.of("truncation-detected")
    assert (told["offset"], told["divergent_offset"], told["leader_epoch"]) == (2, 1, 0)
    assert shown(world) == [(0, 0), (1, 1)]
    world.cluster.consumer.seek(told["divergent_offset"], told["leader_epoch"])
    world.run()
    assert shown(world)[2:] == [(2, 1), (3, 2), (4, 3)]
    assert len(world.of("truncation-detected")) == 1


def test_a_shorter_leader_is_out_of_range_without_validation() -> None:
    world = truncated("kip279", "earliest", refill=0)
    assert [step["offset"] for step in world.of("out-of-range")] == [2]
    assert [step["offset"] for step in world.of("reset")] == [0]
    assert shown(world) == [(0, 0), (1, 1), (0, 0)]


def test_consumer_with_validation_is_not_put_out_of_range() -> None:
    world = truncated("kip320", "latest", refill=0)
    assert not world.of("out-of-range")
    assert world.cluster.consumer.cursor.offset == 1


def test_a_consumer_restarts_at_and_validates_its_committed_offset() -> None:
    world = World("kip320", config={"auto.offset.reset": "none"}).ready()
    consumer = world.cluster.consumer
    world.write(2)
    consumer.commit()
    world.write()
    consumer.restart()
    world.run()
    assert [(step["offset"], step["leader_epoch"]) for step in world.of("commit")] == [(2, 0)]
    assert [step["offset"] for step in world.of("restart-consumer")] == [2]
    assert shown(world) == [(0, 0), (2, 2), (2, 2)]


@pytest.mark.parametrize(("policy", "after"), [("earliest", [(0, 0)]), ("latest", []), ("none", [])])
def test_consumer_without_a_committed_offset_restarts_by_the_policy(policy: str, after: list[tuple[int, int]]) -> None:
    world = World("kip320", config={"auto.offset.reset": policy}).ready()
    world.write()
    world.cluster.consumer.restart()
    world.run()
    assert shown(world)[1:] == after
    assert world.cluster.consumer.has_error == (policy == "none")


@pytest.mark.parametrize(
    ("policy", "rule", "seen"),
    [
        ("earliest", "policy", [(0, 0), (1, 1)]),
        ("latest", "policy", [(1, 1)]),
        ("latest", "earliest", [(0, 0), (1, 1)]),
        ("none", "earliest", []),
    ],
)
def test_a_consumer_begins_a_partition_that_was_added_by_the_policy(
    policy: str, rule: str, seen: list[tuple[int, int]]
) -> None:
    world = World("kip320", config={"auto.offset.reset": policy}, rules={"new_partition_reset": rule}).ready()
    consumer = world.cluster.consumer
    consumer.pause()
    world.write()
    consumer.paused = False
    consumer.discover()
    world.run()
    world.write()
    assert [step["offset"] for step in world.of("discovery")] == [0]
    assert shown(world) == seen
    assert consumer.has_error == (policy == "none")


@pytest.mark.parametrize(
    ("policy", "age_s", "seen"),
    [
        ("by_duration:PT10S", 5, [(0, 0), (1, 1)]),
        ("by_duration:PT3S", 5, [(1, 1)]),
        ("by_duration:P1D", 50, [(0, 0), (1, 1)]),
    ],
)
def test_by_duration_begins_at_the_first_record_as_new_as_that(
    policy: str, age_s: int, seen: list[tuple[int, int]]
) -> None:
    world = World("elr-4.3", config={"auto.offset.reset": policy}).ready()
    consumer = world.cluster.consumer
    consumer.pause()
    world.write()
    world.run(age_s)
    world.write(seconds=0.1)
    consumer.paused = False
    consumer.discover()
    world.run()
    assert shown(world) == seen
    assert [step["offset"] for step in world.of("reset")] == [seen[0][1]]


@pytest.mark.parametrize(("rule", "seen"), [("retries", [(2, 2)]), ("latest", [(1, 1), (2, 2)])])
def test_without_a_record_as_new_as_that_it_asks_again_after_the_request_timeout(
    rule: str, seen: list[tuple[int, int]]
) -> None:
    config: dict[str, Value] = {"auto.offset.reset": "by_duration:PT3S", "request.timeout.ms": 20_000}
    world = World("elr-4.3", config=config, rules={"duration_reset": rule}).ready()
    consumer = world.cluster.consumer
    consumer.pause()
    world.write()
    world.run(5)
    consumer.paused = False
    consumer.discover()
    world.run(1)
    assert len(world.of("no-record-in-time")) == 1
    assert not consumer.is_stuck
    world.write()
    world.run(16)
    assert shown(world) == seen[:-1]
    world.write()
    world.run(5)
    assert shown(world) == seen
    assert not world.cluster.recorder.history.findings.violations


def test_a_seek_ends_the_wait_for_a_record_as_new_as_that() -> None:
    world = World("elr-4.3", config={"auto.offset.reset": "by_duration:PT3S"}).ready()
    consumer = world.cluster.consumer
    consumer.discover()
    world.run()
    assert world.of("no-record-in-time")
    consumer.seek(0)
    world.write()
    assert shown(world) == [(0, 0)]


def test_a_seek_to_an_epoch_ahead_of_the_metadata_waits_for_it() -> None:
    world = World("kip320").ready()
    consumer = world.cluster.consumer
    world.write()
    before = consumer.leader_epoch
    consumer.seek(1, before + 1)
    world.run(3)
    assert consumer.leader == 0
    world.cluster.kill(1)
    world.run(30)
    world.write()
    assert consumer.leader_epoch > before
    assert shown(world) == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("rule", "kept"), [("newest-epoch", (2, 5)), ("latest-received", (1, 4))])
def test_metadata_that_is_kept(rule: str, kept: tuple[int, int]) -> None:
    consumer = World("kip320", rules={"client_metadata": rule}).ready().cluster.consumer
    for leader, epoch in ((2, 5), (1, 4)):
        consumer._asked = MetadataRequest(consumer.node, consumer.topic)
        consumer.on_metadata_reply(MetadataResponse(consumer._asked, leader, epoch))
    assert (consumer.leader, consumer.leader_epoch) == kept


@pytest.mark.parametrize(("mode", "carried"), [("kip320", 0), ("kip279", -1)])
def test_leader_epoch_is_carried_by_whose_requests(mode: str, carried: int) -> None:
    world = World(mode).ready()
    fetch = world.cluster.consumer._fetch
    assert fetch is not None
    assert fetch.positions[0][2] == carried


@pytest.mark.parametrize(("version", "state"), [(3, AWAIT_VALIDATION), (2, FETCHING)])
def test_a_leader_of_an_older_release_is_not_asked(version: int, state: str) -> None:
    world = World("kip320").ready()
    consumer = world.cluster.consumer
    for broker in world.cluster.running.values():
        broker.epoch_end_version = version
    world.write()
    consumer.seek(0, 0)
    assert consumer.cursor.state == state
    world.run()
    assert shown(world) == [(0, 0), (0, 0)]


def test_the_offset_for_a_time() -> None:
    world = World("kip320").ready()
    world.write(3)
    world.write(3)
    for record in (0, 4, 9):
        world.cluster.consumer.offset_for_time(record)
        world.run()
    assert [(step["record"], step["offset"]) for step in world.of("offset-for-time")] == [(0, 0), (4, 4), (9, -1)]


RACKS = Topology(racks={"a": (1,), "b": (2,), "c": (3,)})
NEAR_2: dict[str, int | str] = {"sim.client.rack": 2, "metadata.max.age.ms": 10_000, "replica.lag.time.max.ms": 5_000}


def near_2(mode: str = "kraft", rule: str = "") -> World:
    """Broker 1 leads, and the consumer is in the rack of broker 2."""
    rules = {"read_replica": rule} if rule else {}
    world = World(mode, config=NEAR_2, topology=RACKS, rules=rules).ready()
    world.write()
    return world


def read_at(world: World) -> int:
    """The broker at which the consumer's fetch waits."""
    running = world.cluster.running
    (broker,) = [node for node in running if any(replica.consumers for replica in running[node].replicas.values())]
    return broker


@pytest.mark.parametrize(("mode", "broker"), [("kip320-2.1", 1), ("kip320", 2), ("kraft", 2)])
def test_a_consumer_reads_from_the_follower_in_its_rack(mode: str, broker: int) -> None:
    world = near_2(mode)
    world.write()
    assert shown(world) == [(0, 0), (1, 1)]
    assert read_at(world) == broker
    assert [step["read_replica"] for step in world.of("preferred-replica")] == ([] if broker == 1 else [2])


def test_a_consumer_stays_at_a_leader_in_its_rack_or_without_one_there() -> None:
    for rack in (0, 1, 4):
        world = World("kraft", config={"sim.client.rack": rack}, topology=RACKS).ready()
        world.write()
        assert (read_at(world), shown(world)) == (1, [(0, 0)])


def test_a_consumer_whose_fetch_is_late_reads_from_the_leader_when_its_preference_ends() -> None:
    world = near_2()
    consumer = world.cluster.consumer
    world.cluster.pause(2)
    world.run(6)  # Broker 2 has left the ISR.
    world.write()
    consumer._leave_fetch()
    consumer._preferred_until_us = consumer.kernel.now_us + 1_000_000
    consumer.fetch()
    assert (consumer._fetch, shown(world)) == (None, [(0, 0)])
    world.run(1.1)
    assert shown(world) == [(0, 0), (1, 1)]


def test_a_follower_serves_up_to_its_own_high_watermark() -> None:
    world = near_2()
    world.write()
    known_us = {step["broker"]: step["t"] for step in world.of("hw") if step["offset"] == 2}
    read_us = world.of("read")[-1]["t"]
    assert known_us[1] < known_us[2] < read_us < known_us[2] + 10_000


@pytest.mark.parametrize(("rule", "read"), [("any", 1), ("in-sync", 2)])
def test_a_lagging_follower_is_named_again_until_it_must_be_in_sync(rule: str, read: int) -> None:
    """KAFKA-14372."""
    world = near_2("kip320", rule)
    world.cluster.links.cut(1, 2)
    world.run(6)
    world.write()
    assert shown(world) == [(0, 0)]
    world.run(30)
    assert len(shown(world)) == read


def test_a_consumer_leaves_a_follower_that_is_down_and_comes_back() -> None:
    world = near_2()
    world.cluster.kill(2)
    world.run(15)
    world.write()
    assert (shown(world), read_at(world)) == ([(0, 0), (1, 1)], 1)
    world.cluster.start(2)
    world.run(5)
    world.write()
    assert (shown(world), read_at(world)) == ([(0, 0), (1, 1), (2, 2)], 2)


def test_a_follower_cannot_put_a_consumer_out_of_range() -> None:
    world = near_2()
    consumer = world.cluster.consumer
    request = consumer._fetch
    assert request is not None
    assert request.leader == 2
    consumer.on_fetch_reply(FetchResponse(request, [(consumer.topic, OFFSET_OUT_OF_RANGE, (), -1, -1, -1, None)]))
    world.run()
    world.write()
    assert shown(world) == [(0, 0), (1, 1)]
    assert world.of("out-of-range") == []


def test_a_change_of_leaders_ends_the_choice() -> None:
    world = near_2()
    world.cluster.kill(1)
    world.run(20)
    world.write()
    assert shown(world) == [(0, 0), (1, 1)]
    assert read_at(world) == 2


def test_a_late_response_to_a_fetch_counts_if_it_begins_at_the_position() -> None:
    world = World("elr").ready()
    consumer = world.cluster.consumer
    fetch = consumer._fetch
    assert fetch is not None
    consumer.leader, consumer.leader_epoch = 2, 1
    consumer.leader_known()
    assert consumer._fetch is not None
    assert consumer._fetch.leader == 2
    result = (consumer.topic, "", [Batch(0, 0, 0, 0)], 0, 0, 0, AGREES)
    consumer.on_fetch_reply(FetchResponse(fetch, [result]))
    assert (consumer.cursor.offset, consumer.cursor.leader) == (1, 2)
    consumer.on_fetch_reply(FetchResponse(consumer._fetch, [result]))  # It began at 0.
    assert consumer.cursor.offset == 1


def test_a_broker_gets_no_second_fetch_before_it_answers_or_times_out() -> None:
    world = World("elr").ready()
    consumer = world.cluster.consumer
    world.cluster.pause(1)
    fetch = consumer._fetch
    consumer.seek(0)
    world.run(29)
    assert (consumer._fetch, consumer.is_stuck) == (None, False)
    world.run(2)
    assert consumer._fetch is not None
    assert consumer._fetch is not fetch


def test_while_metadata_names_no_leader_a_consumer_fetches_from_that_of_its_position() -> None:
    world = World("elr").ready()
    consumer = world.cluster.consumer
    consumer._fetch = None
    consumer.forget_leader()
    consumer.leader_unknown()
    assert consumer._fetch is not None
    assert (consumer._fetch.leader, consumer._fetch.positions[0][2]) == (1, 0)
    older = World("kip279").ready().cluster.consumer  # Up to 2.2 metadata alone names the leader.
    older._fetch = None
    older.forget_leader()
    older.leader_unknown()
    assert older._fetch is None


def test_a_position_that_changes_is_validated_at_once() -> None:
    world = World("elr").ready()
    world.write()
    consumer = world.cluster.consumer
    consumer.seek(0, 0)
    consumer.seek(1, 0)
    assert [position.offset for _, position in consumer._validations] == [0, 1]
    world.run()
    assert consumer.cursor.state == FETCHING
    assert not consumer._validations
