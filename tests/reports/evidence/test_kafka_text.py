from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from highwater.lab.confirm import files
from reports.evidence import kafka_text
from reports.evidence.kafka_text import DumpedBatch
from scenarios.single.result import PartitionView

if TYPE_CHECKING:
    import pytest

NUMBERS = st.integers(0, 2**62)
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) partitionLeaderEpoch: (\d+)$", re.MULTILINE)
RECORD = re.compile(r"^\| offset: (\d+) payload: (\d+)$", re.MULTILINE)


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, list[DumpedBatch]]:
    start = offset = draw(st.integers(0, 1000))
    batches = []
    for count in draw(st.lists(st.integers(1, 5), max_size=6)):
        batches.append((offset, offset + count - 1, draw(st.integers(0, 50)), draw(st.integers(0, 10**6))))
        offset += count
    return start, batches


def test_leader_epoch_checkpoint_is_kafkas() -> None:
    assert kafka_text.leader_epoch_checkpoint([(0, 0), (3, 17)]) == "0\n2\n0 0\n3 17\n"


def test_offset_checkpoint_is_kafkas() -> None:
    assert kafka_text.offset_checkpoint({("orders", 0): 42}) == "0\n1\norders 0 42\n"


def test_empty_checkpoint_is_kafkas() -> None:
    assert kafka_text.offset_checkpoint({}) == "0\n0\n"


@given(entries=st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_leader_epoch_checkpoint_reads_back_as_a_brokers(
    entries: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "leader-epoch-checkpoint"
    path.write_text(kafka_text.leader_epoch_checkpoint(entries))
    assert files.epochs_in_checkpoint(path) == entries


@given(offset=NUMBERS, topic=st.from_regex(r"[a-zA-Z0-9._-]+", fullmatch=True))
def test_offset_checkpoint_reads_back_as_a_brokers(
    offset: int, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "replication-offset-checkpoint"
    path.write_text(kafka_text.offset_checkpoint({(f"{topic}2", 0): 7, (topic, 1): 8, (topic, 0): offset}))
    assert files.offset_in_checkpoint(path, topic) == offset


def test_dump_log_keeps_kafkas_labels() -> None:
    assert kafka_text.dump_log("broker-1/orders-0/0.log", 5, [(5, 6, 3, 70)]) == (
        "Dumping broker-1/orders-0/0.log\n"
        "Log starting offset: 5\n"
        "baseOffset: 5 lastOffset: 6 count: 2 partitionLeaderEpoch: 3\n"
        "| offset: 5 payload: 70\n"
        "| offset: 6 payload: 71\n"
    )


@given(logs())
def test_dump_log_has_every_batch_and_record(log: tuple[int, list[DumpedBatch]]) -> None:
    start, batches = log
    dumped = kafka_text.dump_log("x.log", start, batches)
    heads = [tuple(map(int, head)) for head in BATCH.findall(dumped)]
    assert heads == [(base, last, last - base + 1, epoch) for base, last, epoch, _ in batches]
    records = [(base + place, first + place) for base, last, _, first in batches for place in range(last - base + 1)]
    assert [tuple(map(int, record)) for record in RECORD.findall(dumped)] == records
    assert len(dumped.splitlines()) == 2 + len(batches) + len(records)


def test_describe_is_kafkas_and_the_epochs() -> None:
    state = PartitionView(2, 4, (2, 3), 7, 1, (1, 2, 3))
    configs = {"min.insync.replicas": "2", "flush.messages": "1"}
    assert kafka_text.describe("orders", state, configs) == (
        "Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,flush.messages=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: 2\tReplicas: 1,2,3\tIsr: 2,3\tElr: N/A\tLastKnownElr: N/A"
        "\tLeaderEpoch: 4\tPartitionEpoch: 7\tControllerEpoch: 1\n"
    )


def test_describe_tells_no_elr_from_an_empty_one() -> None:
    text = kafka_text.describe("orders", PartitionView(0, 0, (), 0, 0, (1, 2, 3), elr=(3,), last_known_elr=()), {})
    assert "\tIsr: \tElr: 3\tLastKnownElr: \t" in text


def test_describe_says_none_where_nobody_leads() -> None:
    assert "\tLeader: none\t" in kafka_text.describe("orders", PartitionView(0, 0, (), 0, 0, (1,)), {})
