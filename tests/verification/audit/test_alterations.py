"""Alterations of a log, without Kafka."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from highwater.lab.audit.audit import audit
from highwater.lab.audit.segments import read_batches
from tests.highwater.lab.audit.logs import begun, change, fenced
from tests.verification.audit.alterations import DROPPED, ELR, EPOCH, ISR, REPLICA, altered, follows, has_effect
from tests.verification.audit.histories import dump

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.lab.audit.records import MetadataBatch


@pytest.fixture
def batches(tmp_path: Path) -> list[MetadataBatch]:
    log = begun([1, 2])
    log.add(change(isr=[1], eligibleLeaderReplicas=[2]), fenced(2, 4))
    return list(read_batches(next(log.segment(tmp_path).iterdir())))


def test_a_dump_is_read_as_its_segment(batches: list[MetadataBatch], tmp_path: Path) -> None:
    file = tmp_path / "dump.txt"
    file.write_text(dump(batches))
    found = audit([file])
    assert (found.unexplained, found.explained) == ([], {"one event": 1, "several events": 1})


@pytest.mark.parametrize("kind", [ISR, ELR, REPLICA, EPOCH, DROPPED])
def test_an_alteration_changes_one_record(batches: list[MetadataBatch], kind: str) -> None:
    for seed in range(20):
        after = altered(batches, kind, Random(seed))
        assert after is not None
        changed, (number, place) = after
        assert changed[number].records[place] != batches[number].records[place]
        pairs = zip(batches, changed, strict=True)
        different = [
            record
            for old, new in pairs
            for record, other in zip(old.records, new.records, strict=True)
            if record != other
        ]
        assert different == [batches[number].records[place]]
        assert has_effect(batches, changed) or kind in (EPOCH, DROPPED)


def test_what_follows_is_of_the_same_partition(batches: list[MetadataBatch]) -> None:
    created = next((number, 1) for number, batch in enumerate(batches) if batch.records[0].type == "TOPIC_RECORD")
    assert follows(batches, created)
    assert not follows(batches, (len(batches) - 1, 0))
