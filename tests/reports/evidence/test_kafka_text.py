from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.evidence import kafka_text
from reports.evidence.kafka_text import DumpedBatch, Topic

NUMBERS = st.integers(0, 2**62)
BROKERS = st.lists(st.integers(1, 9), unique=True).map(tuple)


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


@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_leader_epoch_checkpoint_reads_back(entries: list[tuple[int, int]]) -> None:
    assert kafka_text.read_leader_epoch_checkpoint(kafka_text.leader_epoch_checkpoint(entries)) == entries


@given(st.dictionaries(st.tuples(st.from_regex(r"[a-zA-Z0-9._-]+", fullmatch=True), NUMBERS), NUMBERS))
def test_offset_checkpoint_reads_back(offsets: dict[tuple[str, int], int]) -> None:
    assert kafka_text.read_offset_checkpoint(kafka_text.offset_checkpoint(offsets)) == offsets


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n1 1\n", "0\n1\n1 1 1\n"])
def test_other_checkpoints_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        kafka_text.read_leader_epoch_checkpoint(text)


def test_dump_log_keeps_kafkas_labels() -> None:
    assert kafka_text.dump_log("broker-1/orders-0/0.log", 5, [(5, 6, 3, 70)]) == (
        "Dumping broker-1/orders-0/0.log\n"
        "Log starting offset: 5\n"
        "baseOffset: 5 lastOffset: 6 count: 2 partitionLeaderEpoch: 3\n"
        "| offset: 5 payload: 70\n"
        "| offset: 6 payload: 71\n"
    )


@given(logs())
def test_dump_log_reads_back(log: tuple[int, list[DumpedBatch]]) -> None:
    start, batches = log
    assert kafka_text.read_dump_log(kafka_text.dump_log("x.log", start, batches)) == (start, batches)


def test_a_torn_dump_is_refused() -> None:
    text = kafka_text.dump_log("x.log", 0, [(0, 1, 0, 0)])
    with pytest.raises(ValueError, match="dumped log"):
        kafka_text.read_dump_log(text.rsplit("|", 1)[0])


def test_describe_is_kafkas_and_the_epochs() -> None:
    topic = Topic("orders", 2, (1, 2, 3), (2, 3), {"min.insync.replicas": "2", "flush.messages": "1"}, 4, 7, 1)
    assert kafka_text.describe(topic) == (
        "Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,flush.messages=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: 2\tReplicas: 1,2,3\tIsr: 2,3\tElr: N/A\tLastKnownElr: N/A"
        "\tLeaderEpoch: 4\tPartitionEpoch: 7\tControllerEpoch: 1\n"
    )


def test_describe_tells_no_elr_from_an_empty_one() -> None:
    text = kafka_text.describe(Topic("orders", None, (1, 2, 3), (), elr=(3,), last_known_elr=()))
    assert "\tIsr: \tElr: 3\tLastKnownElr: \t" in text


def test_describe_says_none_where_nobody_leads() -> None:
    assert "\tLeader: none\t" in kafka_text.describe(Topic("orders", None, (1,), ()))


@given(
    st.builds(
        Topic,
        name=st.from_regex(r"[a-z]+", fullmatch=True),
        leader=st.none() | st.integers(1, 9),
        replicas=BROKERS,
        isr=BROKERS,
        configs=st.dictionaries(st.from_regex(r"[a-z.]+", fullmatch=True), st.from_regex(r"[a-z0-9]*", fullmatch=True)),
        leader_epoch=st.integers(-1, 99),
        partition_epoch=st.integers(-1, 99),
        controller_epoch=st.integers(0, 9),
        elr=st.none() | BROKERS,
        last_known_elr=st.none() | BROKERS,
    )
)
def test_describe_reads_back(topic: Topic) -> None:
    assert kafka_text.read_describe(kafka_text.describe(topic)) == topic


def test_a_description_without_a_field_is_refused() -> None:
    with pytest.raises(ValueError, match="'Leader'"):
        kafka_text.read_describe("Topic: orders\n\tTopic: orders\tPartition: 0\n")
