from __future__ import annotations

import pytest

from tests.sim.world import World


def shown(world: World) -> list[tuple[int, int]]:
    return [(step["record"], step["offset"]) for step in world.of("read")]


def test_it_is_shown_what_lies_below_the_high_watermark_and_no_more() -> None:
    world = World(config={"replica.socket.timeout.ms": 2_000}).ready()
    world.write(2)
    world.cluster.cut(2, 1)
    world.write(3)
    assert shown(world) == [(0, 0)]
    world.cluster.heal_links()
    world.run(5)
    assert shown(world) == [(0, 0), (2, 2)]
    assert world.cluster.consumer.position == 5


def test_it_follows_the_leader_and_repeats_nothing() -> None:
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


def test_from_inside_a_batch_it_shows_the_rest_of_it() -> None:
    world = World().ready()
    world.cluster.consumer.pause()
    world.write(4)
    world.cluster.consumer.position = 2
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


def test_it_asks_for_the_end_offset_at_intervals() -> None:
    world = World(config={"sim.end.offsets.interval.ms": 2_000}).ready()
    world.write(3)
    world.cluster.consumer.ask_regularly()
    world.run(5)
    answers = world.of("end-offset")
    assert [(step["offset"], step["leader_epoch"]) for step in answers] == [(3, 0)] * 3
    assert all(0 < step["t"] - step["asked_at"] < 10_000 for step in answers)


def test_an_end_offset_that_goes_back_is_seen() -> None:
    world = World("hw").ready()
    cluster = world.cluster
    world.write(seconds=0)
    world.until("ack")
    cluster.consumer.ask_end_offset()
    world.until("end-offset", offset=1)
    assert cluster.journal.ledger.violations == []
    cluster.cut(3, 2)  # Broker 2 has heard of no high watermark, and none of its followers will fetch.
    cluster.kill(1)
    world.run(25)
    cluster.consumer.ask_end_offset()
    world.until("end-offset", offset=0)
    assert [violation.kind for violation in cluster.journal.ledger.violations] == ["hw-regression"]
