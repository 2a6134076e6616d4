"""Reading: segments, snapshots, dumps, descriptions, and what is none of these."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.audit.audit import audit
from highwater.lab.audit.files import LONGEST
from highwater.lab.audit.records import BY_TYPE, CorruptRecordError, decode, from_json
from highwater.lab.audit.results import summary
from sim.errors import InputError, StorageError
from tests.highwater.lab.audit.logs import batch, begun, change, encoded, fenced, registered, varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.lab.audit.image import ClusterImage
    from tests.highwater.lab.audit.logs import Written


def story() -> Written:
    log = begun()
    log.add(change(isr=[1, 2]), fenced(3, 5))
    log.add(change(isr=[1], eligibleLeaderReplicas=[2]), fenced(2, 4))
    return log


def state(image: ClusterImage) -> object:
    return image.topics, image.partitions, image.brokers, image.settings, image.features, image.next_offset


def test_decoded_fields_are_those_that_were_encoded() -> None:
    kind, data = registered(2, 77)
    record = decode(9, encoded(kind, {**data, "logDirs": ["iVGv3gcXQjK_76RwGjsS7A"]}))
    assert (record.offset, record.type, record.version, record.is_known) == (9, kind, 4, True)
    assert record.fields["brokerEpoch"] == 77
    assert record.fields["logDirs"] == ["iVGv3gcXQjK_76RwGjsS7A"]
    for version in range(BY_TYPE["PARTITION_CHANGE_RECORD"].newest + 1):
        fields = decode(0, encoded(*change(isr=[3, 1], eligibleLeaderReplicas=[2]), version)).fields
        assert (fields["isr"], fields["leader"]) == ([3, 1], -2)
        assert fields["eligibleLeaderReplicas"] == ([2] if version == 2 else None)


@pytest.mark.parametrize("data", [b"", b"\x02\x05\x00", encoded(*change(isr=[1, 2]))[:-3], b"\x01\x05\x02\xff"])
def test_what_is_no_record(data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decode(0, data)
    with pytest.raises(CorruptRecordError, match="record 4 has no field topicId"):
        from_json(4, {"type": "PARTITION_CHANGE_RECORD", "version": 2, "data": {"partitionId": 0}})


def test_records_that_are_not_modelled_are_counted_by_name(tmp_path: Path) -> None:
    newer = b"\x01" + varint(5) + varint(9)
    unheard = b"\x01" + varint(99) + varint(1)
    quota = b"\x01" + varint(14) + varint(0)
    log = begun()
    place = log.segment(tmp_path)
    file = next(place.iterdir())
    file.write_bytes(file.read_bytes() + batch(log.offset, [newer, unheard, unheard, quota]))
    assert audit([place]).notes == [
        "1 record of PARTITION_CHANGE_RECORD, version 9, is not modelled and was not applied",
        "2 records of type 99, version 1, are not modelled and were not applied",
    ]


def test_a_batch_with_another_checksum_is_corrupt(tmp_path: Path) -> None:
    place = story().segment(tmp_path)
    file = next(place.iterdir())
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(StorageError, match="is corrupt: its checksum"):
        audit([place])
    dump = story().dump(tmp_path / "dump.txt")
    dump.write_text(dump.read_text().replace("isvalid: true", "isvalid: false", 1))
    with pytest.raises(StorageError, match=r"line 3: the batch is corrupt, says Kafka"):
        audit([dump])


def test_files_of_several_clusters_are_refused(tmp_path: Path) -> None:
    files = []
    for cluster in ("one", "other"):
        files.append(next(story().segment(tmp_path / cluster).iterdir()))
        (tmp_path / cluster / "meta.properties").write_text(f"version=1\ncluster.id={cluster}-id\n")
    with pytest.raises(InputError, match=r"is of cluster other-id, .* of cluster one-id"):
        audit(files)


def test_a_controller_epoch_that_goes_back_is_noted(tmp_path: Path) -> None:
    place = story().segment(tmp_path)
    file = next(place.iterdir())
    file.write_bytes(file.read_bytes() + batch(story().offset, [encoded(*change(isr=[1, 2]))], epoch=0))
    note = f"{file}: at record {story().offset} the controller epoch goes back from 1 to 0"
    assert audit([place]).notes == [f"{note}: these are parts of different logs"]


def test_all_forms_give_the_same_state(tmp_path: Path) -> None:
    log = story()
    whole = audit([log.segment(tmp_path / "whole")])
    dump = audit([log.dump(tmp_path / "dump.txt")])
    assert (dump.risks, dump.explained) == (whole.risks, whole.explained)
    assert state(dump.image) == state(whole.image)
    packed: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
    }
    for end, pack in packed.items():
        file = tmp_path / f"dump.{end}"
        file.write_bytes(pack((tmp_path / "dump.txt").read_bytes()))
        assert state(audit([file]).image) == state(whole.image)


def test_a_snapshot_and_the_segments_after_it(tmp_path: Path) -> None:
    log = story()
    whole = audit([log.segment(tmp_path / "whole")])
    first = log.offset - 2
    place = log.segment(tmp_path / "tail", first)
    earlier = batch(0, [encoded(*record) for records in log.batches[:-1] for record in records])
    (place / f"{first:020}-0000000001.checkpoint").write_bytes(earlier)
    tail = audit([place])
    (note,) = tail.notes
    assert note.startswith(f"history begins at the snapshot before record {first}: which replicas had left")
    assert (state(tail.image), tail.risks) == (state(whole.image), whole.risks)
    (place / f"{first:020}.log").unlink()
    alone = audit([place])
    assert alone.notes == ["there are no segments: only the state of the newest snapshot is known"]
    assert [partition.offset for partition in alone.image.partitions.values()] == [-1], "the snapshot does not hold it"
    ((_, facts),) = alone.facts.items()
    assert (facts.behind, facts.complete) == ({}, frozenset({1, 2}))


def test_an_elr_that_a_snapshot_shows_beside_a_large_isr_is_behind(tmp_path: Path) -> None:
    log = begun()
    log.add(change(isr=[1, 2], eligibleLeaderReplicas=[3]))
    place = log.segment(tmp_path, log.offset)
    earlier = batch(0, [encoded(*record) for records in log.batches for record in records])
    (place / f"{log.offset:020}-0000000001.checkpoint").write_bytes(earlier)
    (risks,) = audit([place]).risks.values()
    assert [(risk.kind, risk.since) for risk in risks] == [("elr-behind", -1)]


def test_gaps_and_torn_ends_are_reported(tmp_path: Path) -> None:
    log = story()
    place = log.segment(tmp_path)
    file = next(place.iterdir())
    file.write_bytes(file.read_bytes()[:-5])
    assert audit([place]).image.next_offset == log.offset - 2
    first, last = log.batches[0], log.batches[-1]
    ends = ((0, first), (log.offset - 2, last))
    file.write_bytes(b"".join(batch(base, [encoded(*record) for record in records]) for base, records in ends))
    (note,) = audit([place]).notes
    assert f"records 3 to {log.offset - 3} are missing" in note


def test_lines_that_are_missing_in_a_dump_are_reported(tmp_path: Path) -> None:
    file = story().dump(tmp_path / "dump.txt")
    lines = file.read_text().splitlines()
    del lines[-1]
    file.write_text("\n".join(lines) + "\n| offset: 3 Error at 3, skipping. boom\n")
    first, second = audit([file]).notes
    assert "could not decode record 3" in first
    assert "1 of 2 records of the batch at offset" in second


DESCRIPTION = """\
Topic: orders\tTopicId: zgf6HJciR8eg93g0qO1O6Q\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: 4\tLastKnownElr:
"""


def test_a_description_shows_one_moment(tmp_path: Path) -> None:
    file = tmp_path / "topics.txt"
    file.write_text(DESCRIPTION)
    found = audit([file])
    assert {found.image.name(key): [risk.kind for risk in risks] for key, risks in found.risks.items()} == {
        "orders-1": ["elr-outside-assignment", "nobody-can-lead"]
    }
    assert found.image.elr_enabled
    assert "since the text names no release" in " ".join(summary(found))
    assert list(found.image.partitions) == sorted(found.image.partitions, key=found.image.order)
    file.write_text(DESCRIPTION.replace("Leader: 1", "Leader: one"))
    with pytest.raises(InputError, match="line 2: no description of a topic or partition: 'one' is no number"):
        audit([file])


def zookeeper(folder: Path) -> Path:
    (folder / "version-2").mkdir()
    return folder


def other_topic(folder: Path) -> Path:
    (folder / f"{0:020}.log").write_bytes(batch(0, [b"hello"]))
    return folder


def packed(folder: Path) -> Path:
    place = folder / "__cluster_metadata-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(batch(0, [encoded(*change(isr=[1]))], attributes=2))
    return place


def text(folder: Path) -> Path:
    (folder / "notes.txt").write_text("nothing of Kafka\n")
    return folder / "notes.txt"


def endless(folder: Path) -> Path:
    (folder / "zeros").write_bytes(bytes(LONGEST + 1))
    return folder / "zeros"


def device(_: Path) -> Path:
    return Path("/dev/zero")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, "no segments and no snapshots"),
        (lambda folder: folder / "no", "no such file or folder"),
        (zookeeper, "this is ZooKeeper's transaction log"),
        (other_topic, "this is the log of another topic"),
        (packed, r"is compressed \(snappy\); Kafka does not compress"),
        (endless, "longer than 4,194,304 bytes; this is no text"),
        (device, "/dev/zero: neither a file nor a folder"),
        (text, "a text, but neither of kafka-dump-log.sh"),
    ],
)
def test_what_is_no_metadata_log(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        audit([make(tmp_path)])


def test_a_batch_that_is_damaged(tmp_path: Path) -> None:
    log = story()
    place = log.segment(tmp_path)
    file = next(place.iterdir())
    data = bytearray(file.read_bytes())
    data[-90:] = b"\xff" * 90
    file.write_bytes(data)
    with pytest.raises((StorageError, InputError)) as problem:
        audit([place])
    assert str(file) in str(problem.value)


def test_a_compressed_dump_without_its_end(tmp_path: Path) -> None:
    file = tmp_path / "dump.xz"
    file.write_bytes(lzma.compress(story().dump(tmp_path / "dump.txt").read_bytes())[:-40])
    with pytest.raises(StorageError, match="ended before the end-of-stream marker"):
        audit([file])


def test_one_log_at_a_time(tmp_path: Path) -> None:
    one, other = (story().segment(tmp_path / name) for name in ("one", "other"))
    with pytest.raises(InputError, match="or only log directories of controllers"):
        audit([one, other])


def test_nothing_is_written(tmp_path: Path) -> None:
    place = story().segment(tmp_path)
    (place / "other.txt").write_text("mine")

    def contents() -> dict[str, Any]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in place.iterdir()}

    before = contents()
    audit([place])
    assert contents() == before
