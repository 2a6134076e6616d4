"""Driver of kind ``hw_checkpoint``: the file that a machine keeps its HW in (replication-offset-checkpoint)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.config import resolve
from sim.hosts.settings import broker_settings
from sim.protocol.decisions import Decisions
from sim.protocol.replica.replica import Replica
from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.world import RecordingHost, make_cache, make_log, make_storage

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

INTERVAL_US = broker_settings(resolve()).storage.hw_checkpoint_us
CLAMPED = "current HW (clamped to LEO)"


class Checkpoints(RecordingHost):
    """The state of a case: a replica, the disk that it is on, and the time."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        super().__init__()
        given.get("replicas")  # The file is the same, whoever else has a replica.
        if given["log"] != "empty at first":
            raise TableError(f"a log that is {given['log']!r} is not understood")
        self.now_us = 0
        self.storage = make_storage()
        self.storage.begin_hw_checkpoints(0, 0)
        self.replica = Replica("0", make_log([]), make_cache([]), 0, Decisions(rules), self)

    def hw_moved(self, replica: Replica, previous: int) -> None:
        """See `PartitionHost`."""
        self.storage.hw_file.catch_up(previous, self.now_us)

    def checkpoint(self, _: Fields) -> Seen:
        """Wait until the file is written."""
        self.now_us += INTERVAL_US
        self.storage.catch_up(self.replica.hw, self.now_us)
        content = self.storage.hw_file.content
        current = self.replica.hw
        return Seen(
            checkpointed_hw=Matching(
                content, lambda expected: content == (current if expected == CLAMPED else expected)
            )
        )

    def update_hw(self, op: Fields) -> Seen:
        """Set a HW beyond the log."""
        self.replica.set_hw(op["to"])
        return Seen()


KIND = Kind(begin=Checkpoints, ops={"checkpoint": Checkpoints.checkpoint, "update_hw": Checkpoints.update_hw})
