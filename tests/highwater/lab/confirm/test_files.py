"""Parsers, on what brokers wrote (tests/fixtures/brokers)."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from highwater.lab.confirm import files
from sim.history.records import VALIDATION_IDS
from tests.places import FIXTURES

pytest.importorskip("kafka")

BROKERS = FIXTURES / "brokers"


def batches(name: str) -> list[tuple[int, int, int, str, int]]:
    found = files.batches_in((BROKERS / name).read_bytes())
    return [(batch.base_offset, batch.last_offset, batch.leader_epoch, batch.name, batch.first_id) for batch in found]


def test_a_segment_without_leader_epochs() -> None:
    assert batches("segment-0.10.2.2.log") == [
        (0, 0, -1, "m1", 0),
        (1, 1, -1, "m2", 1),
        (2, 2, -1, "validation", VALIDATION_IDS),
    ]


def test_a_segment_with_leader_epochs() -> None:
    assert batches("segment-2.0.0.log") == [(0, 4, 1, "m1", 0), (5, 5, 4, "validation", VALIDATION_IDS)]


@pytest.mark.parametrize("kept", range(0, 308, 7))
def test_a_segment_that_was_cut_anywhere_holds_whole_batches_only(kept: int) -> None:
    data = (BROKERS / "segment-0.10.2.2.log").read_bytes()[:kept]
    assert len(files.batches_in(data)) == sum(end <= kept for end in (100, 200, 308))
    assert files.boundaries(data) == [end for end in (100, 200, 308) if end <= kept]


def test_a_batch_that_is_not_sound_ends_a_log() -> None:
    data = bytearray((BROKERS / "segment-2.0.0.log").read_bytes())
    data[436 + 17] ^= 0xFF
    assert [batch.name for batch in files.batches_in(bytes(data))] == ["m1"]


def test_nonsense_is_an_empty_log() -> None:
    assert files.batches_in(struct.pack(">qi", 0, -5) + b"x" * 40) == []
    assert files.batches_in(b"\0" * 100) == []


def test_a_log_is_its_segments_in_order(tmp_path: Path) -> None:
    whole = (BROKERS / "segment-2.0.0.log").read_bytes()
    (tmp_path / "00000000000000000005.log").write_bytes(whole[436:])
    (tmp_path / "00000000000000000000.log").write_bytes(whole[:436])
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert files.read_log(tmp_path) == [
        *files.batches_in(whole[:436]),
        *files.batches_in(whole[436:]),
    ]
    assert files.read_log(tmp_path / "none") == []


def test_checkpoints() -> None:
    assert files.epochs_in_checkpoint(BROKERS / "leader-epoch-checkpoint") == [(1, 0), (4, 5)]
    assert files.offset_in_checkpoint(BROKERS / "replication-offset-checkpoint", "partition") == 5
    assert files.offset_in_checkpoint(BROKERS / "replication-offset-checkpoint", "other") is None
    assert files.offset_in_checkpoint(BROKERS / "none", "partition") is None
    assert files.epochs_in_checkpoint(BROKERS / "none") == []


def test_properties_are_written_as_they_are_read(tmp_path: Path) -> None:
    lines = [line for line in (BROKERS / "meta.properties").read_text().splitlines() if not line.startswith("#")]
    told = dict(line.split("=", 1) for line in lines)
    assert told["version"] == "1"
    assert told["node.id"] == "1000"
    (tmp_path / "copy").write_text(files.properties(told), encoding="utf-8")
    assert (tmp_path / "copy").read_text().splitlines() == lines


def test_a_log_ends_after_its_last_record_or_at_its_empty_segment(tmp_path: Path) -> None:
    assert files.log_end(tmp_path) == 0
    shutil.copy(BROKERS / "segment-0.10.2.2.log", tmp_path / f"{0:020}.log")
    assert files.log_end(tmp_path) == 3
    (tmp_path / f"{7:020}.log").write_bytes(b"")
    assert files.log_end(tmp_path) == 7


def test_a_log_that_is_deleted_meanwhile_has_no_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deleted(*_: object) -> list[Path]:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "glob", deleted)
    assert files.segments(tmp_path) == []
    assert files.read_log(tmp_path) == []
