"""What control planes wrote down (tests/fixtures/brokers), read back."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from highwater.lab.confirm.history import MetadataLogReads, PartitionSnapshot, ZooKeeperHistory
from tests.places import FIXTURES

pytest.importorskip("kafka")

BROKERS = FIXTURES / "brokers"


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
    history = ZooKeeperHistory(tmp_path, "partition")
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
    whole = ZooKeeperHistory(tmp_path, "partition")
    told = whole.poll()
    pieces = ZooKeeperHistory(tmp_path, "partition")
    steps = []
    for end in (*range(16, len(data), 501), len(data)):
        (tmp_path / "log.1").write_bytes(data[:end] + b"\0" * 40)
        steps += pieces.poll()
    assert steps == told
    assert [step["broker"] for step in told if step["step"] == "controller"] == [1, 2]
    assert pieces.states == whole.states


def test_kraft_tells_every_change_of_isr_and_elr(tmp_path: Path, schemas: list[Path]) -> None:
    shutil.copy(BROKERS / "metadata-4.1.0.log", tmp_path / "00000000000000000000.log")
    history = MetadataLogReads(tmp_path, "partition", schemas)
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
