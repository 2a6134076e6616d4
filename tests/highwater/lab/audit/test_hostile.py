"""Logs, dumps and texts that are damaged or hostile: one line that names the place, soon, whatever they hold."""

from __future__ import annotations

import gzip
import json
import os
import signal
import struct
from typing import TYPE_CHECKING, Any

import pytest
from google_crc32c import value as crc32c

from highwater.lab.audit.audit import audit
from highwater.lab.audit.broker_logs import read_broker_logs
from highwater.lab.audit.distance import AuditDistances
from highwater.lab.audit.records import MEMBERS_MOST
from highwater.lab.audit.results import when
from sim import exit_codes
from tests.highwater.lab.audit.logs import Written, begun, change, config, partition, zigzag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Call

SECONDS = 20
"""Each case takes well below one."""
BATCH = (
    "baseOffset: 20 lastOffset: 20 count: 1 partitionLeaderEpoch: 1 isControl: false CreateTime: 1 "
    "compresscodec: none\n"
)
LONG = 165_000


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A case that does not end is a failure, also within a regular expression."""

    def late(_signal: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def segment(folder: Path, data: bytes) -> Path:
    place = folder / "__cluster_metadata-0"
    place.mkdir(parents=True)
    (place / f"{0:020}.log").write_bytes(data)
    return place


def raw(records: bytes, count: int) -> bytes:
    """A batch of these bytes, with a valid checksum."""
    body = struct.pack(">hiqqqhii", 0, count - 1, 0, 0, -1, -1, -1, count) + records
    header = struct.pack(">ibI", 1, 2, crc32c(body))
    return struct.pack(">qi", 0, len(header) + len(body)) + header + body


def dumped(payload: str) -> str:
    return f"Dumping x\n{BATCH}| offset: 20 payload: {payload}\n"


def record(kind: str, **data: Any) -> str:
    return dumped(json.dumps({"type": kind, "version": 0, "data": data}))


def described(replicas: str, *, head: str = "min.insync.replicas=2", leader: str = "1") -> str:
    return (
        f"Topic: a\tPartitionCount: 1\tConfigs: {head}\n"
        f"\tTopic: a\tPartition: 0\tLeader: {leader}\tReplicas: {replicas}\tIsr: {replicas}\n"
    )


PARTITION = dict(partition([1, 2, 3])[1])
MANY = list(range(100_000))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"Topic: a\tPartition: 0\t{'Leader: 1 A' * (LONG // 11)}", "line 1: no description of a topic or partition"),
        (f"Topic: a\t{'A' * LONG}", "line 1: no description of a topic or partition: no field 'PartitionCount'"),
        (f"baseOffset: 1 {BATCH.strip().partition(' ')[2] * (LONG // 100)}", "line 1"),
        ("baseOffset: " * (LONG // 12), "line 1: baseOffset: 'baseOffset:' is no number"),
        (f"baseOffset: {'9' * 5_000} lastOffset: 0 count: 1", "line 1: baseOffset: '99"),
        (BATCH.replace("count: 1", "count: 2147483647"), "line 1: the batch is corrupt: 2147483647 records"),
        (f"{BATCH}{'| payload: {}'}\n| payload: {{}}\n", "line 2: no metadata record: record 20 has no type"),
        (described(",".join(map(str, MANY))), "line 2: no description of a topic or partition: more than 250 replicas"),
        (described(""), "line 2: no description of a topic or partition: it has no replicas"),
        (
            described("1,2", head="min.insync.replicas=abc"),
            "line 1: no description of a topic or partition: min.",
        ),
        (described("1,2", head=f"min.insync.replicas={'9' * 5_000}"), "is no value of min.insync.replicas"),
        (described("1,2", leader="9" * 5_000), "line 2: no description of a topic or partition: '99"),
        (described("-1"), "line 2: no description of a topic or partition: '-1' is no number"),
        (
            described("1").replace("PartitionCount: 1", f"PartitionCount: {'9' * 9}"),
            "line 1: PartitionCount of 'a' is 9999",
        ),
        (
            dumped('{"a":' + "[" * 200_000 + "]" * 200_000 + "}"),
            "line 3: no metadata record: tables or lists are",
        ),
        (dumped('{"type":"NO_OP_RECORD","version":' + "9" * 5_000 + "}"), "line 3: no metadata record: it is not JSON"),
        (dumped('{"type":[],"version":0,"data":{}}'), "line 3: no metadata record: record 20 has no type"),
        (dumped('{"type":"NO_OP_RECORD","version":-1,"data":{}}'), "line 3: no metadata record: record 20 has no type"),
        (record("PARTITION_RECORD", **{**PARTITION, "partitionId": "x"}), "record 20: partitionId = 'x' is no int32"),
        (record("PARTITION_RECORD", **{**PARTITION, "isr": None}), "record 20: isr = None is no []int32"),
        (record("PARTITION_RECORD", **{**PARTITION, "leader": True}), "record 20: leader = True is no int32"),
        (record("PARTITION_RECORD", **{**PARTITION, "topicId": "x"}), "record 20: topicId = 'x' is no uuid"),
        (record("PARTITION_RECORD", **{**PARTITION, "replicas": []}), "record 20 has no replicas"),
        (record("PARTITION_RECORD", **{**PARTITION, "replicas": MANY}), "is no []int32, or more than 250"),
        (
            record(*config("min.insync.replicas", "abc")[:1], **config("min.insync.replicas", "abc")[1]),
            "'abc' is no value",
        ),
    ],
)
def test_texts_that_are_damaged(text: str, problem: str, tmp_path: Path, highwater: Callable[..., Call]) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    call = highwater("audit", tmp_path / "text.txt", "--distance")
    assert call.code in (exit_codes.BAD_INPUT, exit_codes.UNREADABLE)
    assert problem in call.err
    assert (call.out, len(call.err.splitlines())) == ("", 1)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            raw(zigzag(-3) + bytes(8), (1 << 31) - 1),
            "offset 0 holds no metadata records: a field is longer",
        ),
        (
            raw(zigzag(6) + bytes(8), (1 << 31) - 1),
            "offset 0 holds no metadata records: a number of",
        ),
        (raw(b"", 0), "the batch at offset 0 is corrupt: 0 records"),
        (raw(zigzag(5) + bytes(2) + zigzag(5) + zigzag(-1) + zigzag(0), 1), "record 0 has offset 5"),
        (struct.pack(">qi", 0, 1 << 30) + bytes(100), "no log of Kafka's: it does not begin with a batch of records"),
    ],
)
def test_segments_that_are_damaged(data: bytes, problem: str, tmp_path: Path, highwater: Callable[..., Call]) -> None:
    call = highwater("audit", segment(tmp_path, data))
    assert call.code in (exit_codes.BAD_INPUT, exit_codes.UNREADABLE)
    assert problem in call.err
    assert (call.out, len(call.err.splitlines())) == ("", 1)


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([partition(MANY, 1)], "record 11: replicas = ["),
        ([change(replicas=[])], "record 11 has no replicas"),
        ([change(isr=list(range(MEMBERS_MOST + 1)))], "record 11: isr = ["),
        ([config("min.insync.replicas", "abc")], "record 11: min.insync.replicas = 'abc' is no value of it"),
        ([config("min.insync.replicas", "0")], "record 11: min.insync.replicas = '0' is no value of it"),
        ([config("min.insync.replicas", "9" * 5_000)], "record 11: min.insync.replicas = '99"),
    ],
)
def test_records_that_no_controller_writes(
    records: list[Any], problem: str, tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    log = begun()
    log.add(*records)
    for place in (log.segment(tmp_path), log.dump(tmp_path / "dump.txt")):
        call = highwater("audit", place, "--distance")
        assert call.code in (exit_codes.BAD_INPUT, exit_codes.UNREADABLE)
        assert problem in call.err
        assert (call.out, len(call.err.splitlines())) == ("", 1)


def test_a_flipped_byte_in_a_compressed_dump(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    whole = gzip.compress(begun().dump(tmp_path / "dump.txt").read_bytes())
    for place in (*range(12), *range(12, len(whole), 50)):
        data = bytearray(whole)
        data[place] ^= 0xFF
        (tmp_path / "dump.gz").write_bytes(data)
        call = highwater("audit", tmp_path / "dump.gz", "--no-explain")
        assert call.code in (exit_codes.EXPECTED, exit_codes.BAD_INPUT, exit_codes.UNREADABLE), place
        if call.code != exit_codes.EXPECTED:  # Some bytes of the header, as its time, mean nothing.
            assert call.err.startswith(f"highwater: {tmp_path / 'dump.gz'}"), place


@pytest.mark.parametrize("name", [f"{0:020}.log", f"{0:020}-{0:010}.checkpoint"])
@pytest.mark.parametrize("aim", [None, "/dev/zero", "/dev/urandom"])
def test_pipes_and_devices_in_a_folder(
    name: str, aim: str | None, tmp_path: Path, highwater: Callable[..., Call]
) -> None:
    place = tmp_path / "__cluster_metadata-0"
    place.mkdir()
    if aim is None:
        os.mkfifo(place / name)
    else:
        (place / name).symlink_to(aim)
    call = highwater("audit", place)
    assert (call.code, call.err) == (exit_codes.BAD_INPUT, f"highwater: {place / name}: it is no regular file\n")


@pytest.mark.parametrize("aim", [None, "/dev/zero"])
def test_pipes_and_devices_beside_a_file(aim: str | None, tmp_path: Path, highwater: Callable[..., Call]) -> None:
    """Their cluster is unknown, as without ``meta.properties``."""
    place = begun().segment(tmp_path)
    if aim is None:
        os.mkfifo(place / "meta.properties")
    else:
        (place / "meta.properties").symlink_to(aim)
    assert highwater("audit", place / f"{0:020}.log").code == exit_codes.EXPECTED
    call = highwater("audit", place, "--broker-log", place / "meta.properties")
    assert call.code == exit_codes.BAD_INPUT
    assert "meta.properties: it is no regular file" in call.err


@pytest.mark.parametrize(
    "line",
    [
        "kafka " + "[Partition a-0 broker=1] Shrinking ISR from " * (LONG // 44),
        f"kafka Truncating a-0 to offset {'9' * 5_000} below high watermark 5",
        "kafka " + "Leader a with topic id b starts at leader epoch 1 from offset " * (LONG // 62),
    ],
)
def test_lines_of_brokers_logs_that_do_not_end(line: str, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(f"{line}\n")
    assert read_broker_logs([tmp_path / "server.log"]).lost == []


@pytest.mark.parametrize("value", ["9" * 5_000, "²", "-1", "0"])
def test_static_values_that_are_none(value: str, tmp_path: Path, highwater: Callable[..., Call]) -> None:
    call = highwater("audit", begun().segment(tmp_path), "--static", f"min.insync.replicas={value}")
    assert call.code == exit_codes.BAD_INPUT
    assert "this is no value of min.insync.replicas" in call.err


@pytest.mark.world
def test_a_partition_with_many_replicas_takes_no_longer(tmp_path: Path) -> None:
    brokers = ",".join(map(str, range(MEMBERS_MOST)))
    (tmp_path / "topics.txt").write_text(described(brokers))
    found = audit([tmp_path / "topics.txt"])
    (distance,) = (AuditDistances(found).now(key) for key in found.image.partitions)
    assert distance.within < 4, "what was not looked at is not claimed"


def test_times_that_no_calendar_has(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    log = begun()
    log.add(change(isr=[1]))
    file = log.dump(tmp_path / "dump.txt")
    file.write_text(file.read_text().replace("CreateTime: 17", f"CreateTime: {(1 << 62) // 10**13}"))
    assert highwater("audit", file).code == exit_codes.UNEXPECTED, "an unexplained record"
    assert when(1 << 62) == f"{1 << 62} ms"


def test_removed_topics_take_their_own_partitions_only(tmp_path: Path) -> None:
    log = Written()
    log.add(*begun().batches[0])
    topics = [f"{0:021}{end}" for end in "AQg"]
    for topic in topics:
        log.add(("TOPIC_RECORD", {"name": topic, "topicId": topic}))
        log.add(*(partition([1], number, topicId=topic) for number in range(4)))
    log.add(("REMOVE_TOPIC_RECORD", {"topicId": topics[1]}))
    found = audit([log.segment(tmp_path)], explain=False)
    assert {key[0] for key in found.image.partitions} == {topics[0], topics[2]}
    assert found.facts.keys() == found.image.partitions.keys()
