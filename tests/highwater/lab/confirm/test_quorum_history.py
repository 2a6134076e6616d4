"""What several controllers wrote down, of which a majority decides: pieces of the metadata log of real brokers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from highwater.lab.confirm.files import frames
from highwater.lab.confirm.history import MetadataLogReads
from highwater.lab.confirm.partitions import FIRST
from highwater.lab.confirm.quorum_history import QuorumLogReads
from tests.highwater.lab.confirm.test_history import BROKERS, schemas, states_told

pytest.importorskip("kafka")

__all__ = ["schemas"]

LOG = (BROKERS / "metadata-4.1.0.log").read_bytes()
BATCHES = [LOG[start:end] for start, end, _ in frames(LOG)]
EPOCH_AT = 12


class Quorum:
    """Three controllers with logs, and their history."""

    def __init__(self, folder: Path, jars: list[Path]) -> None:
        self.folders = {controller: folder / str(controller) for controller in (100, 101, 102)}
        for one in self.folders.values():
            one.mkdir()
        self.history = QuorumLogReads(self.folders, [FIRST], jars)
        (folder / "whole").mkdir()
        self.whole = MetadataLogReads(folder / "whole", [FIRST], jars)
        (folder / "whole" / f"{0:020}.log").write_bytes(LOG)
        self.steps = self.whole.poll()

    def write(self, controller: int, *batches: bytes) -> None:
        (self.folders[controller] / f"{0:020}.log").write_bytes(b"".join(batches))


@pytest.fixture
def quorum(tmp_path: Path, schemas: list[Path]) -> Quorum:
    return Quorum(tmp_path, schemas)


def in_epoch(batch: bytes, epoch: int) -> bytes:
    """A batch as the leader of another epoch appends it; its checksum is not about that."""
    return batch[:EPOCH_AT] + struct.pack(">i", epoch) + batch[EPOCH_AT + 4 :]


def epoch_of(batch: bytes) -> int:
    (epoch,) = struct.unpack_from(">i", batch, EPOCH_AT)
    return int(epoch)


def test_what_two_of_three_controllers_have_is_committed_and_as_one_alone_tells_it(quorum: Quorum) -> None:
    quorum.write(100, *BATCHES)
    assert quorum.history.poll() == []
    assert quorum.history.states == []
    quorum.write(102, *BATCHES)
    steps = [step for step in quorum.history.poll() if step["step"] != "raft-leader"]
    assert steps == quorum.steps
    assert quorum.history.states == quorum.whole.states
    assert quorum.history.poll() == []


def test_the_last_committed_batch_about_it_says_who_leads(quorum: Quorum) -> None:
    assert quorum.history.leader == 0
    for controller in (100, 101):
        quorum.write(controller, *BATCHES)
    led = [step for step in quorum.history.poll() if step["step"] == "raft-leader"]
    assert led[-1]["node"] == quorum.history.leader
    assert led[-1]["raft_epoch"] == epoch_of(BATCHES[-1])


def test_a_batch_that_the_leader_of_a_newer_epoch_may_replace_is_not_committed(quorum: Quorum) -> None:
    half = BATCHES[: len(BATCHES) // 2]
    for controller in (100, 101):
        quorum.write(controller, *half)
    newer = epoch_of(half[-1]) + 1
    quorum.write(102, *half[:-1], in_epoch(half[-1], newer))
    assert quorum.history.poll() == []
    quorum.write(101, *half[:-1], in_epoch(half[-1], newer))
    quorum.history.poll()
    assert quorum.history.states


def test_where_a_majority_has_another_batch_metadata_is_lost_and_states_go_back(quorum: Quorum) -> None:
    for controller in (100, 101):
        quorum.write(controller, *BATCHES)
    quorum.history.poll()
    told = states_told(quorum.history, FIRST)
    changes = [place for place, batch in enumerate(BATCHES) if b"partition" in batch]  # The topic is made.
    kept = BATCHES[: changes[0] + 1]
    other = in_epoch(BATCHES[changes[0] + 1], epoch_of(BATCHES[-1]) + 1)
    for controller in (101, 102):
        quorum.write(controller, *kept, other)
    steps = quorum.history.poll()
    (offset,) = struct.unpack_from(">q", other)
    assert steps[0] == {"step": "metadata-lost", "broker": 0, "offset": offset}
    assert states_told(quorum.history, FIRST) == [*told, told[0]]
