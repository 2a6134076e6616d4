from __future__ import annotations

from sim.checkers.metadata_matching import MetadataMatching
from sim.history import steps
from sim.history.history import History
from sim.protocol.kraft.metadata import BrokerRegistration, ConfigRecord, PartitionRegistration
from tests.sim.checkers.histories import warnings

FIRST, SECOND = BrokerRegistration(1, 1, 1), ConfigRecord("min.insync.replicas", 2)
THIRD = PartitionRegistration("t-0", 1, 0, (1,), 0, (1,))


class World:
    """Three records are committed."""

    def __init__(self) -> None:
        self.history = History()
        self.checker = MetadataMatching(self.history)
        self.checker.on_metadata(steps.Metadata(steps.COMMITTED_METADATA, 0, 0, [FIRST]))
        self.checker.on_metadata(steps.Metadata(steps.COMMITTED_METADATA, 0, 1, [SECOND, THIRD]))

    def replay(
        self, broker: int, offset: int, *records: BrokerRegistration | ConfigRecord | PartitionRegistration
    ) -> str:
        step = steps.Metadata(steps.REPLAYED_METADATA, broker, offset, records)
        step.at_us = 5
        self.checker.on_metadata(step)
        return ",".join(warnings(self.history))


def test_prefixes_in_any_portions_and_once_more_after_a_restart() -> None:
    world = World()
    assert not world.replay(1, 0, FIRST)
    assert not world.replay(1, 1, SECOND, THIRD)
    assert not world.replay(2, 0, FIRST, SECOND)
    assert not world.replay(1, 0, FIRST, SECOND, THIRD)


def test_a_record_that_is_left_out_or_replayed_twice() -> None:
    world = World()
    assert world.replay(1, 0, SECOND) == "metadata-mismatch"
    assert "broker 1 replayed a ConfigRecord at offset 0, where the quorum has a BrokerRegistration" in (
        world.history.findings.warnings[0].detail
    )
    assert world.replay(2, 0, FIRST, FIRST) == "metadata-mismatch,metadata-mismatch"
    assert world.replay(2, 0, FIRST, FIRST) == "metadata-mismatch,metadata-mismatch"


def test_a_record_that_was_never_committed() -> None:
    world = World()
    assert world.replay(1, 3, THIRD) == "metadata-mismatch"
    assert "where the quorum has nothing" in world.history.findings.warnings[0].detail
