"""Consumers that commit to a partition, and their coordinator."""

from __future__ import annotations

import pytest

from sim.hosts.topics import TopicPartition
from sim.protocol.group.group_messages import OFFSETS
from tests.sim.world import World


def world(mode: str = "kip320", **config: int | str | bool) -> World:
    """Two partitions: one is read, the other, whose leader is broker 2, has what was committed."""
    return World(
        mode,
        config={"min.insync.replicas": 2, "auto.offset.reset": "earliest", **config},
        further=[TopicPartition(OFFSETS, 3, idle=True)],
    ).ready()


def told(one: World) -> list[int]:
    return [step["committed"] for step in one.of("offsets-answer")]


@pytest.mark.parametrize("mode", ["kip320", "kraft", "elr-4.3"])
def test_a_new_process_goes_on_from_what_was_committed(mode: str) -> None:
    one = world(mode)
    one.write(3)
    one.cluster.consumer.commit()
    one.run()
    assert [step["offset"] for step in one.of("commit")] == [3]
    one.write(2)
    one.cluster.consumer.restart()
    one.run()
    assert told(one) == [3]
    assert one.cluster.consumer.cursor.offset == 5
    assert [step["offset"] for step in one.of("read")] == [0, 3, 3]


def test_without_a_commit_the_policy_decides() -> None:
    one = world()
    one.write(3)
    one.cluster.consumer.restart()
    one.run()
    assert told(one) == [-1]
    assert [step["offset"] for step in one.of("reset")] == [0]


def test_a_coordinator_that_fails_is_replaced() -> None:
    one = world("kraft")
    one.write()
    one.cluster.consumer.commit()
    one.run()
    one.cluster.kill(2)
    one.cluster.consumer.restart()
    one.run(0.5)
    assert told(one) == []
    one.run(15)
    assert told(one) == [1]
    one.write()
    one.cluster.consumer.commit()
    one.run()
    assert [step["offset"] for step in one.of("commit")] == [1, 2]


def test_a_commit_is_retried_until_enough_replicas_are_there() -> None:
    one = world("kraft", **{"replica.lag.time.max.ms": 2_000})
    one.write()
    for broker in (1, 3):
        one.cluster.kill(broker)
    one.run(12)
    one.cluster.consumer.commit()
    one.run(3)
    assert one.of("commit") == []
    one.cluster.start(3)
    one.run(20)
    assert [step["offset"] for step in one.of("commit")] == [1]


def test_automatic_commits_stop_when_the_application_reads_no_further() -> None:
    one = world()
    consumer = one.cluster.consumer
    consumer.settings.auto_commit_us = 1_000_000
    consumer.commit_regularly_from(one.cluster.kernel.now_us)
    one.run(3.5)
    assert len(one.of("commit")) == 4
    consumer.pause()
    one.run(3)
    assert len(one.of("commit")) == 4
