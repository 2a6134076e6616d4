"""What control planes wrote down (tests/fixtures/brokers), read back."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from highwater.lab.confirm.history import (
    ControlPlaneHistory,
    MetadataLogReads,
    PartitionSnapshot,
    ZooKeeperHistory,
)
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
from sim.history.trace import Shown
from tests.places import FIXTURES

pytest.importorskip("kafka")

BROKERS = FIXTURES / "brokers"
AUDIT = KafkaPartition("audit-0", 1, "audit", 0)


def field(name: str, kind: str, tag: int | None = None, **more: str) -> dict[str, Any]:
    tagged = {} if tag is None else {"tag": tag, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null"}
    return {"name": name, "type": kind, "versions": "0+", **tagged, **more}


REPLICAS = (
    *(field("Replicas", "[]int32"), field("Isr", "[]int32"), field("RemovingReplicas", "[]int32")),
    *(field("AddingReplicas", "[]int32"), field("Leader", "int32")),
    field("LeaderRecoveryState", "int8", 0) | {"nullableVersions": "none", "default": "0"},
    *(field("LeaderEpoch", "int32"), field("PartitionEpoch", "int32")),
    field("Directories", "[]uuid", versions="1+"),
    *(field("EligibleLeaderReplicas", "[]int32", 1), field("LastKnownElr", "[]int32", 2)),
)
NUMBER = {"nullableVersions": "none"}
RECORDS: dict[str, tuple[int, tuple[dict[str, Any], ...]]] = {
    "UnfenceBrokerRecord": (7, (field("Id", "int32"), field("Epoch", "int64"))),
    "TopicRecord": (2, (field("Name", "string"), field("TopicId", "uuid"))),
    "PartitionRecord": (3, (field("PartitionId", "int32"), field("TopicId", "uuid"), *REPLICAS)),
    "PartitionChangeRecord": (
        5,
        (
            *(field("PartitionId", "int32"), field("TopicId", "uuid"), field("Isr", "[]int32", 0)),
            field("Leader", "int32", 1) | NUMBER | {"default": "-2"},
            *(field("Replicas", "[]int32", 2), field("RemovingReplicas", "[]int32", 3)),
            field("AddingReplicas", "[]int32", 4),
            field("LeaderRecoveryState", "int8", 5) | NUMBER | {"default": "-1"},
            *(field("EligibleLeaderReplicas", "[]int32", 6), field("LastKnownElr", "[]int32", 7)),
            field("Directories", "[]uuid", 8),
        ),
    ),
    "BrokerRegistrationChangeRecord": (
        17,
        (
            *(field("BrokerId", "int32"), field("BrokerEpoch", "int64")),
            field("Fenced", "int8", 0) | NUMBER | {"default": "0"},
            field("InControlledShutdown", "int8", 1) | NUMBER | {"default": "0"},
            field("LogDirs", "[]uuid", 2) | NUMBER | {"default": ""},
        ),
    ),
    "ClearElrRecord": (28, (field("TopicName", "string"),)),
}
"""Records that are looked at, and their numbers."""


def states_told(history: ControlPlaneHistory, partition: KafkaPartition) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(state.leader, state.leader_epoch, state.isr) for state in history.states_of(partition)]


def elected(steps: list[Shown]) -> list[tuple[str | None, int]]:
    """The partition and the broker of each election."""
    return [(step.get("partition"), step["broker"]) for step in steps if step["step"] == "elected"]


@pytest.fixture
def schemas(tmp_path: Path) -> list[Path]:
    """A jar with schemas, as Kafka's own have them."""
    jar = tmp_path / "schemas.jar"
    with zipfile.ZipFile(jar, "w") as opened:
        for name, (key, fields) in RECORDS.items():
            schema = {"apiKey": key, "type": "metadata", "name": name, "validVersions": "0-2", "flexibleVersions": "0+"}
            text = "// A comment.\n" + json.dumps({**schema, "fields": list(fields)}, indent=1)
            opened.writestr(f"common/metadata/{name}.json", text)
    return [jar]


def test_zookeeper_tells_every_change_of_the_isr(tmp_path: Path) -> None:
    shutil.copy(BROKERS / "zookeeper-2.0.0.log", tmp_path / "log.1")
    history = ZooKeeperHistory(tmp_path, [FIRST])
    steps = history.poll()
    assert [(state.leader, state.leader_epoch, state.isr) for state in history.states] == [
        (1, 0, (1, 2, 3)),
        (2, 1, (2, 3)),
        (2, 1, (1, 2, 3)),
        (2, 1, (1, 2)),
        (1, 2, (1, 2)),
        (1, 2, (1, 2, 3)),
        (1, 3, (1, 3)),
        (3, 4, (3,)),
        (3, 4, (2, 3)),
        (3, 4, (1, 2, 3)),
    ]
    assert history.states[-1].replicas == (1, 2, 3)
    assert history.controller == 4
    registered = [step["broker"] for step in steps if step["step"] == "registered"]
    assert registered == [4, 1, 2, 3, 1, 2, 1]
    assert [step["broker"] for step in steps if step["step"] == "session-end"] == [1, 2, 1]
    assert history.poll() == []


def test_zookeeper_is_read_on_where_the_last_look_ended(tmp_path: Path) -> None:
    data = (BROKERS / "zookeeper-0.10.2.2.log").read_bytes()
    (tmp_path / "log.1").write_bytes(data)
    whole = ZooKeeperHistory(tmp_path, [FIRST])
    told = whole.poll()
    pieces = ZooKeeperHistory(tmp_path, [FIRST])
    steps = []
    for end in (*range(16, len(data), 501), len(data)):
        (tmp_path / "log.1").write_bytes(data[:end] + b"\0" * 40)
        steps += pieces.poll()
    assert steps == told
    assert [step["broker"] for step in told if step["step"] == "controller"] == [1, 2]
    assert pieces.states == whole.states


def test_kraft_tells_every_change_of_isr_and_elr(tmp_path: Path, schemas: list[Path]) -> None:
    shutil.copy(BROKERS / "metadata-4.1.0.log", tmp_path / "00000000000000000000.log")
    history = MetadataLogReads(tmp_path, [FIRST], schemas)
    steps = history.poll()
    told = [(state.leader, state.leader_epoch, state.isr, state.elr, state.last_known_elr) for state in history.states]
    assert told == [
        (1, 0, (1, 2, 3), (), ()),
        (1, 0, (1, 2), (), ()),
        (1, 0, (1,), (2,), ()),
        (1, 0, (1,), (), ()),
        (-1, 1, (), (1,), (1,)),
        (-1, 1, (), (), (1,)),
        (1, 2, (1,), (), ()),
        (1, 2, (1, 2), (), ()),
        (1, 2, (1, 2, 3), (), ()),
    ]
    fencing = [(step["step"], step["broker"]) for step in steps if step["step"] in ("unfenced", "session-end")]
    assert fencing[:4] == [("unfenced", 3), ("unfenced", 2), ("unfenced", 1), ("session-end", 3)]
    assert history.poll() == []


def test_a_change_is_shown_as_a_trace_shows_it() -> None:
    before = PartitionSnapshot(1, 0, (1, 2), (), (), (1, 2))
    after = PartitionSnapshot(-1, 1, (), (1,), (1,), (1, 2))
    assert after.steps_from(before) == [
        {"step": "elected", "broker": 0, "leader_epoch": 1},
        {"step": "isr", "isr": [], "leader_epoch": 1},
        {"step": "elr", "elr": [1], "last_known_elr": [1], "leader_epoch": 1},
    ]
    assert before.steps_from(None) == [{"step": "elected", "broker": 1, "leader_epoch": 0}]
    assert before.steps_from(before) == []


def test_kraft_tells_every_change_of_each_partition(tmp_path: Path, schemas: list[Path]) -> None:
    shutil.copy(BROKERS / "metadata-4.4.0-two-topics.log", tmp_path / "00000000000000000000.log")
    history = MetadataLogReads(tmp_path, [FIRST, AUDIT], schemas)
    steps = history.poll()
    told = {partition: states_told(history, partition) for partition in (FIRST, AUDIT)}
    assert told == {
        FIRST: [(1, 0, (1, 2, 3)), (2, 1, (2, 3)), (2, 1, (1, 2, 3)), (1, 2, (1, 3)), (1, 2, (1, 2, 3))],
        AUDIT: [(2, 0, (1, 2, 3)), (2, 0, (2, 3)), (2, 0, (1, 2, 3)), (3, 1, (1, 3)), (3, 1, (1, 2, 3))],
    }
    assert history.states == history.states_of(FIRST)
    assert elected(steps) == [(None, 1), ("audit-0", 2), (None, 2), ("audit-0", 3), (None, 1)]
    assert set(history.topic_ids) == {"partition", "audit"}
    alone = MetadataLogReads(tmp_path, [FIRST], schemas)
    assert alone.poll() == [step for step in steps if "partition" not in step]


def test_zookeeper_tells_every_change_of_each_partition(tmp_path: Path) -> None:
    shutil.copy(BROKERS / "zookeeper-2.6.0-two-topics.log", tmp_path / "log.1")
    history = ZooKeeperHistory(tmp_path, [FIRST, AUDIT])
    steps = history.poll()
    assert states_told(history, FIRST)[-2:] == [(1, 2, (1, 3)), (1, 2, (1, 2, 3))]
    assert states_told(history, AUDIT)[-2:] == [(3, 2, (1, 3)), (3, 2, (1, 2, 3))]
    assert [history.states_of(partition)[-1].replicas for partition in (FIRST, AUDIT)] == [(1, 2, 3), (2, 3, 1)]
    assert elected(steps) == [(None, 1), ("audit-0", 2), (None, 2), ("audit-0", 3), (None, 1)]


def test_an_elr_is_cleared_in_the_partitions_of_a_topic_or_in_all(tmp_path: Path, schemas: list[Path]) -> None:
    for topic, cleared in (("audit", [False, True]), ("", [True, True])):
        history = MetadataLogReads(tmp_path, [FIRST, AUDIT], schemas)
        for partition in (FIRST, AUDIT):
            history.states_of(partition).append(PartitionSnapshot(1, 0, (1,), (2,)))
        steps = history._without_elr(topic)
        assert [history.states_of(partition)[-1].elr == () for partition in (FIRST, AUDIT)] == cleared
        assert [(step["step"], step.get("partition")) for step in steps][-1] == ("elr", "audit-0")
        assert len(steps) == sum(cleared)
