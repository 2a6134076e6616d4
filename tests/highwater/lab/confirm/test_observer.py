"""What the observer makes of what a broker says and has on its disk, where both are read at the same look."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm.observer import Observer, PartitionObserver
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
from tests.places import FIXTURES

pytest.importorskip("kafka")

SEGMENT = (FIXTURES / "brokers" / "segment-0.10.2.2.log").read_bytes()
ENDS = (100, 200, 308)
"""Of its three batches, at offsets 0, 1 and 2."""
FOLLOW = "Added fetcher to broker 1 for partition [partition,0] with initOffset 3\n"
TRUNCATE = "Truncating log partition-0 to offset {}.\n"


class World:
    """Broker 2 of a release that asks once, without its process."""

    def __init__(self, folder: Path) -> None:
        log = folder / "partition-0"
        log.mkdir()
        self.segment = log / f"{0:020}.log"
        self.segment.write_bytes(SEGMENT)
        self.output = folder / "broker.log"
        self.output.touch()
        process = SimpleNamespace(poll=lambda: None)
        node = SimpleNamespace(
            id=2,
            folder_of=lambda _: log,
            output=self.output,
            alive=True,
            incarnation=1,
            process=process,
            stopped=False,
            failed={},
        )
        states = [SimpleNamespace(leader_epoch=1)]
        cluster: Any = SimpleNamespace(
            brokers={2: node},
            partitions=[FIRST],
            history=SimpleNamespace(
                poll=lambda: [self.decided.pop(0)] if self.decided else [], states_of=lambda _: states
            ),
            node=lambda _: node,
            release=SimpleNamespace(number=(1, 1, 1), kraft=False),
            look_at_disks=lambda _: None,
            time_s=0.0,
            is_quorum=False,
        )
        self.decided: list[Any] = []
        self.node: Any = node
        self.observer = Observer(cluster, lambda _: None)
        self.observer.poll()

    def says(self, *lines: str) -> None:
        with self.output.open("a", encoding="utf-8") as file:
            file.writelines(lines)

    def looks(self) -> list[tuple[Any, Any]]:
        return [
            (step["step"], step.get("offset", step.get("rounds", -1)))
            for step in self.observer.poll()
            if step["step"] in ("truncate", "settled")
        ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_finished_truncation_has_the_offset_that_was_logged(world: World) -> None:
    world.says(TRUNCATE.format(2))
    world.segment.write_bytes(SEGMENT[: ENDS[0]])  # A batch goes as a whole.
    assert world.looks() == [("truncate", 2)]


def test_a_truncation_beyond_the_end_ends_there(world: World) -> None:
    world.says(TRUNCATE.format(7))
    assert world.looks() == [("truncate", 3)]


def test_a_response_counts_if_observed_with_or_after_its_request(world: World) -> None:
    world.says(FOLLOW)
    assert world.looks() == []
    world.observer.on_message("epoch-end", 2, 1, {})
    world.says(TRUNCATE.format(2))
    assert world.looks() == [("truncate", 2), ("settled", 1)]
    world.observer.on_message("epoch-end", 2, 1, {})
    world.says(FOLLOW, TRUNCATE.format(1))
    assert world.looks() == [("truncate", 1), ("settled", 1)]


def test_an_answer_that_nobody_waited_for_counts_for_nothing(world: World) -> None:
    world.observer.on_message("epoch-end", 2, 1, {})
    assert world.looks() == []
    world.says(FOLLOW, TRUNCATE.format(1))
    assert world.looks() == [("truncate", 1), ("settled", 0)]


def test_the_first_process_within_an_open_session_is_back_early(world: World) -> None:
    registered, over = {"step": "registered", "broker": 2}, {"step": "session-end", "broker": 2}
    assert not world.observer.is_back_early(world.node)
    world.decided.append(registered)
    world.observer.poll()
    assert not world.observer.is_back_early(world.node)
    world.node.incarnation = 2
    assert world.observer.is_back_early(world.node)
    world.node.alive = False
    assert not world.observer.is_back_early(world.node)
    world.node.alive, world.node.incarnation = True, 3
    assert not world.observer.is_back_early(world.node)
    world.node.incarnation = 2
    world.decided.append(over)
    world.observer.poll()
    assert not world.observer.is_back_early(world.node)


LOG_LINES = """\
Leader orders-1 with topic id Some(x) starts at leader epoch 3 from offset 7 with partition epoch 5
Follower orders-10 starts at leader epoch 4 from offset 2 with high watermark 1
[UnifiedLog partition=orders-1, dir=/tmp/broker-2/data] Truncating to offset 5
Completed load of Log(dir=/tmp/data/orders-10, topic=orders, partition=10, logEndOffset=2)
Follower partition-1 starts at leader epoch 8 from offset 9 with high watermark 1
"""


def test_a_line_of_the_log_is_about_the_partition_that_it_names(tmp_path: Path) -> None:
    """Not about one whose name or number only begins like it."""
    partitions = [KafkaPartition(), *(KafkaPartition(f"orders-{place}", place, "orders", place) for place in (1, 10))]
    log = tmp_path / "log"
    log.mkdir()
    node: Any = SimpleNamespace(id=2, incarnation=1, folder_of=lambda _: log)
    cluster: Any = SimpleNamespace(
        partitions=partitions,
        release=SimpleNamespace(number=(4, 4, 0), kraft=True),
        history=SimpleNamespace(states_of=lambda _: []),
    )
    found = [PartitionObserver(cluster, partition) for partition in partitions]
    seen = [step for line in LOG_LINES.splitlines() for observer in found for step in observer.line(node, line)]
    assert [(step["step"], step["offset"], step["partition"]) for step in seen] == [
        ("lead", 7, "orders-1"),
        ("follow", 2, "orders-10"),
        ("truncate", 0, "orders-1"),  # Its log is empty here.
        ("recovered", 2, "orders-10"),
    ]


LOG_STARTS = """\
[UnifiedLog partition=orders-1, dir=/data] Incremented log start offset to 4 due to client delete records request
[UnifiedLog partition=orders-10, dir=/data] Incremented log start offset to 9 due to leader offset increment
[Log partition=orders-1, dir=/data] Incrementing log start offset of partition orders-1 to 5 in dir /data
[LogLoader partition=orders-1, dir=/data] Truncating to offset 6
"""
LOADED = "Completed load of Log(dir=/data/{}, topic=orders, partition=1, logStartOffset=3, logEndOffset=7)"


def test_the_log_start_is_what_the_broker_logged_last(tmp_path: Path) -> None:
    node: Any = SimpleNamespace(id=2, incarnation=1, folder_of=lambda _: tmp_path)
    cluster: Any = SimpleNamespace(
        release=SimpleNamespace(number=(4, 4, 0), kraft=True), history=SimpleNamespace(states_of=lambda _: [])
    )
    observer = PartitionObserver(cluster, KafkaPartition("orders-1", 0, "orders", 1))
    for line in LOG_STARTS.splitlines():
        observer.line(node, line)
    assert observer.log_starts == {2: 5}
    (step,) = observer.line(node, LOADED.format("orders-1"))
    assert (observer.log_starts, step["step"], step["offset"]) == ({2: 3}, "recovered", 7)


def test_a_stray_log_leaves_an_empty_one(tmp_path: Path) -> None:
    node: Any = SimpleNamespace(id=2, incarnation=1, folder_of=lambda _: tmp_path)
    cluster: Any = SimpleNamespace(release=SimpleNamespace(number=(4, 4, 0), kraft=True))
    observer = PartitionObserver(cluster, KafkaPartition("orders-1", 0, "orders", 1))
    (step,) = observer.line(node, LOADED.format("orders-1.4af3-stray"))
    assert (step["step"], step["offset"], observer.log_starts) == ("recovered", 0, {2: 0})


def test_a_follower_of_several_partitions_has_settled_in_those_that_it_fetches(tmp_path: Path) -> None:
    """In releases that truncate before they fetch."""
    partitions = [KafkaPartition(), KafkaPartition("audit-0", 1, "audit", 0)]
    node: Any = SimpleNamespace(id=2, folder_of=lambda _: tmp_path, alive=True, paused=False)
    cluster: Any = SimpleNamespace(
        partitions=partitions,
        brokers={},
        release=SimpleNamespace(number=(2, 6, 0), kraft=False),
        history=SimpleNamespace(states_of=lambda _: [SimpleNamespace(leader_epoch=1)], poll=list),
        is_quorum=False,
        look_at_disks=lambda _: None,
        time_s=0.0,
    )
    observer = Observer(cluster, lambda _: None)
    first, audit = observer.partitions
    for name, partition in (("partition", first), ("audit", audit)):
        assert partition.line(
            node, f"Added fetcher to broker 1 for partitions Map({name}-0 -> (offset=3, leaderEpoch=1))"
        )
    observer.on_message("fetching", 2, 1, {})
    observer.on_message("fetch", 2, 1, {"offset": 3, "partition": "audit-0"})
    steps = [(step["step"], step.get("partition")) for step in observer.poll()]
    assert steps == [("settled", "audit-0"), ("replicated", "audit-0")]
    assert (first.is_settled(node), audit.is_settled(node)) == (False, True)


@pytest.mark.parametrize(("has_log", "steps"), [(True, ["recovered"]), (False, [])])
def test_a_broker_without_a_log_of_a_partition_has_loaded_all_the_same(
    tmp_path: Path, *, has_log: bool, steps: list[str]
) -> None:
    audit = KafkaPartition("audit-0", 1, "audit", 0)
    node: Any = SimpleNamespace(id=2, incarnation=4, folder_of=lambda _: tmp_path if has_log else tmp_path / "none")
    cluster: Any = SimpleNamespace(
        partitions=[KafkaPartition(), audit], release=SimpleNamespace(number=(4, 4, 0), kraft=True)
    )
    observer = PartitionObserver(cluster, audit)
    assert not observer.has_recovered(node)
    line = "LogManager - Loaded 2 logs in 20ms (unclean log dirs = [/tmp/audit/broker-2/data])"
    assert [step["step"] for step in observer.line(node, line)] == steps
    assert observer.has_recovered(node)
