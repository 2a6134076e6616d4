"""Settings of brokers, and what their disks hold, without brokers."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.brokers.confirm.cluster import KafkaCluster
from reports.brokers.confirm.files import Disk
from reports.brokers.confirm.release import Release
from sim.config import resolve
from tests.places import FIXTURES

pytest.importorskip("kafka")

BROKERS = FIXTURES / "brokers"
HW, LAG = "replica.high.watermark.checkpoint.interval.ms", "replica.lag.time.max.ms"


@pytest.mark.parametrize(
    ("release", "key", "pace", "ms"),
    [
        ("0.10.2.2", HW, 1, 20_000),
        ("0.10.2.2", HW, 5, 16_000),
        ("0.10.2.2", LAG, 5, 2_000),
        ("1.1.1", HW, 5, 1_000),
        ("4.1.0", HW, 5, 1_000),
    ],
)
def test_where_hw_files_decide_none_is_written_while_a_process_starts(
    release: str, key: str, pace: int, ms: int
) -> None:
    cluster: Any = SimpleNamespace(release=Release(release, ()), paced_ms=lambda value: value // pace)
    assert KafkaCluster._time_ms(cluster, resolve({}, {"replica.lag.time.max.ms": 10_000}), key) == ms


@pytest.mark.parametrize(("entry", "hw"), [("", 0), ("partition 0 2\n", 2), ("partition 0 9\n", 3)])
def test_a_disk_holds_a_log_and_the_hw_that_a_process_takes_from_it(tmp_path: Path, entry: str, hw: int) -> None:
    (tmp_path / "partition-0").mkdir()
    shutil.copy(BROKERS / "segment-0.10.2.2.log", tmp_path / "partition-0" / f"{0:020}.log")
    (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\n{entry}")
    cluster: Any = KafkaCluster.__new__(KafkaCluster)
    cluster.brokers = {2: SimpleNamespace(data=tmp_path, log_folder=tmp_path / "partition-0")}
    assert cluster.disk(2) == Disk(3, hw)
