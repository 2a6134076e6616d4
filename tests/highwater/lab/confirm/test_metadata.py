"""Fetch responses of a controller are cut where a kafka-python client reads them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

pytest.importorskip("kafka")
from kafka.protocol.consumer import FetchResponse
from kafka.record import MemoryRecordsBuilder

from highwater.lab.confirm import metadata

VERSIONS = (12, 13, 17, 18)


def batch(stamp_ms: int, size: int = 10) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    builder.append(timestamp=stamp_ms, key=None, value=b"x" * size, headers=[])
    builder.close()
    return bytes(builder.buffer())


def response(version: int, records: bytes, aborted: int = 0, partitions: int = 1) -> bytes:
    topic: Any = FetchResponse.FetchableTopicResponse
    data = [
        topic.PartitionData(
            partition_index=number,
            error_code=0,
            high_watermark=9,
            last_stable_offset=9,
            log_start_offset=0,
            aborted_transactions=[topic.PartitionData.AbortedTransaction(producer_id=1, first_offset=2)] * aborted,
            preferred_read_replica=-1,
            records=records,
        )
        for number in range(partitions)
    ]
    one = topic(topic="__cluster_metadata", topic_id=uuid.UUID(int=1), partitions=data)
    told = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=[one])
    return b"\0\0\0\7\0" + bytes(told.encode(version=version))


def records_of(frame: bytes, version: int) -> bytes:
    told: Any = FetchResponse.decode(frame[5:], version=version)
    (partition,) = told.responses[0].partitions
    assert partition.high_watermark == 9
    return bytes(partition.records)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("aborted", [0, 2])
def test_a_response_ends_before_the_first_batch_that_is_not_due(version: int, aborted: int) -> None:
    first, second, third = batch(1_000), batch(2_000, 300), batch(3_000)
    frame = response(version, first + second + third, aborted)
    assert metadata.first_ms(frame, version) == 1_000
    assert records_of(metadata.until(frame, version, 999), version) == b""
    assert records_of(metadata.until(frame, version, 1_000), version) == first
    assert records_of(metadata.until(frame, version, 2_999), version) == first + second
    assert metadata.until(frame, version, 3_000) == frame


def test_an_older_batch_behind_a_later_one_waits_for_it() -> None:
    frame = response(17, batch(2_000) + batch(1_000))
    assert records_of(metadata.until(frame, 17, 1_500), 17) == b""


def test_what_holds_no_records_or_those_of_several_partitions_is_not_cut() -> None:
    for frame in (response(17, b""), response(17, batch(1_000), partitions=2), b"\0\0\0\7"):
        assert metadata.first_ms(frame, 17) is None
        assert metadata.until(frame, 17, 0) == frame
    assert metadata.first_ms(response(17, batch(1_000)), 11) is None
