from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from highwater.lab.audit.broker_logs import UNKNOWN, read_broker_logs
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.lab.audit.broker_logs import BrokerLogs

LED = (
    "00:10:03.246 INFO state.change.logger - [Broker id=3] Leader partition-0 with topic id "
    "Some(RwgxTeTRQqqb_Gf-WihQ-w) starts at leader epoch 1 from offset 2 "
    "with partition epoch 3, high watermark 2, ISR [3], adding replicas [] and "
    "removing replicas [] . Previous leader Some(1) and previous leader epoch was 0."
)
FOLLOWED = (
    "00:10:19.267 INFO state.change.logger - [Broker id=2] Follower partition-0 starts at leader epoch 2 from offset 2 "
    "with partition epoch 5 and high watermark 2. Current leader is 1. Previous leader None and previous leader epoch "
    "was -1."
)
TRUNCATED = (
    "00:10:20.313 WARN org.apache.kafka.storage.internals.log.UnifiedLog - [UnifiedLog partition=partition-0, "
    "dir=/var/lib/kafka] Truncating partition-0 to offset 0 below high watermark 2"
)
LED_AGAIN = (
    "00:10:05.772 INFO state.change.logger - [Broker id=1] Leader partition-0 with topic id "
    "Some(RwgxTeTRQqqb_Gf-WihQ-w) starts at leader epoch 2 from offset 0 "
    "with partition epoch 5, high watermark 0, ISR [1], adding replicas [1] and "
    "removing replicas [3] . Previous leader Some(3) and previous leader epoch was 1."
)
"""Lines of brokers of 4.3.1 that acted out `reassignment-back`."""
SHRUNK = (
    "[2026-11-25 10:00:00,123] INFO [Partition partition-0 broker=3] Shrinking ISR from 3,1 to 3. Leader: "
    "(highWatermark: 7, endOffset: 9). Out of sync replicas: (brokerId: 1, endOffset: 7, lastCaughtUpTimeMs: 1). "
    "(kafka.cluster.Partition)"
)
TRUNCATED_39 = (
    "[2026-11-25 10:00:01,000] WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition-0 to "
    "offset 0 below high watermark 2 (kafka.server.ReplicaFetcherThread)"
)


def found(folder: Path, *files: tuple[str, ...]) -> BrokerLogs:
    folder.mkdir(exist_ok=True)
    paths = []
    for number, texts in enumerate(files):
        paths.append(folder / f"{number}.log")
        paths[-1].write_text("\n".join(("started (kafka.server.KafkaRaftServer)", *texts, "")))
    return read_broker_logs(paths)


def test_a_loss_that_real_brokers_wrote_down(tmp_path: Path) -> None:
    logs = found(tmp_path, (LED,), (FOLLOWED, TRUNCATED), (LED_AGAIN,))
    assert [(lost.first, lost.end, lost.broker, lost.time) for lost in logs.lost] == [
        (0, 2, 1, "00:10:05.772"),
        (0, 2, 2, "00:10:20.313"),
    ]
    assert logs.lost[0].text.startswith("broker 1 leads from offset 0 in leader epoch 2, below high watermark 2")
    assert logs.high_watermarks == {"partition-0": 2}
    assert not logs.notes


def test_the_truncation_of_older_releases(tmp_path: Path) -> None:
    (lost,) = found(tmp_path, (TRUNCATED_39,)).lost
    assert (lost.first, lost.end, lost.broker, lost.time) == (0, 2, UNKNOWN, "2026-11-25 10:00:01,000")


def test_no_loss_is_claimed_without_a_line_that_shows_it(tmp_path: Path) -> None:
    assert not found(tmp_path / "one", (LED_AGAIN,)).lost
    same = LED.replace("epoch 1 from offset 2", "epoch 5 from offset 2")
    assert not found(tmp_path / "two", (LED,), (FOLLOWED,), (same,)).lost
    later = FOLLOWED.replace("leader epoch 2", "leader epoch 3")
    assert not found(tmp_path / "three", (LED_AGAIN,), (later,)).lost, "the watermark is of epoch 2, as is the leader"


def test_a_watermark_of_a_shrinking_isr_counts_in_its_epoch(tmp_path: Path) -> None:
    logs = found(tmp_path, (LED, SHRUNK), (LED_AGAIN,))
    assert [(lost.first, lost.end) for lost in logs.lost] == [(0, 7)]
    assert logs.high_watermarks == {"partition-0": 7}
    assert not found(tmp_path, (SHRUNK,), (LED_AGAIN,)).lost, "without a leader epoch before it, nothing is known"


def test_a_follower_that_has_just_started_knows_the_watermark_of_its_epoch(tmp_path: Path) -> None:
    """It was in this leader epoch before it stopped: 40 records are no loss of an election that had come before."""
    led = LED.replace("epoch 1 from offset 2", "epoch 2 from offset 10").replace("watermark 2", "watermark 10")
    back = FOLLOWED.replace("from offset 2", "from offset 50").replace("watermark 2", "watermark 50")
    assert not found(tmp_path / "started", (led,), (back,)).lost
    running = back.replace("leader epoch was -1", "leader epoch was 1")
    assert [(one.first, one.end) for one in found(tmp_path / "running", (led,), (running,)).lost] == [(10, 50)]


def test_server_log_and_state_change_log_of_one_broker_belong_together(tmp_path: Path) -> None:
    day = "[2026-11-25 "
    leader = LED.replace("00:10:03.246", f"{day}09:59:00,000]")
    again = LED_AGAIN.replace("00:10:05.772", f"{day}10:01:00,000]")
    logs = found(tmp_path / "both", (SHRUNK,), (leader,), (again,))
    assert [(lost.first, lost.end) for lost in logs.lost] == [(0, 7)]
    assert not logs.notes
    later = leader.replace("09:59", "10:02")
    assert [(lost.first, lost.end) for lost in found(tmp_path / "later", (SHRUNK,), (later,), (again,)).lost] == [
        (0, 2)
    ]
    other = leader.replace("Broker id=3", "Broker id=2")
    assert [(lost.first, lost.end) for lost in found(tmp_path / "other", (SHRUNK,), (other,), (again,)).lost] == [
        (0, 2)
    ]


def test_a_topic_that_was_created_again(tmp_path: Path) -> None:
    other = LED_AGAIN.replace("RwgxTeTRQqqb_Gf-WihQ-w", "AAAAAAAAQqqb_Gf-WihQ-w")
    logs = found(tmp_path, (LED,), (other,))
    assert not logs.lost
    assert logs.notes == ["partition-0: its topic was created again, so leaders are not compared"]


def test_files_of_other_kinds(tmp_path: Path) -> None:
    logs = found(tmp_path, ())
    assert logs.notes == ["no leader is in these logs: brokers log their leaders in state-change.log"]
    (tmp_path / "text").write_text("nothing of interest\n")
    assert read_broker_logs([tmp_path / "text"]).notes[0] == f"{tmp_path / 'text'}: this is no log of a Kafka broker"
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(TRUNCATED.encode()))
    assert len(read_broker_logs([packed]).lost) == 1
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(StorageError, match=r"server\.log\.gz"):
        read_broker_logs([packed])
    with pytest.raises(StorageError, match="nothing"):
        read_broker_logs([tmp_path / "nothing"])
    binary = tmp_path / "binary"
    binary.write_bytes(b"x" * (1 << 24))
    with pytest.raises(InputError, match="no text"):
        read_broker_logs([binary])
