from __future__ import annotations

import pytest

from sim.protocol.kraft.local_replica_change import (
    AWAITS,
    FOLLOWS,
    FOLLOWS_ON,
    LEADS,
    LEADS_ON,
    OUTDATED,
    local_replica_change,
)
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.modes import MODES
from tests.sim.protocol.recording import Recorder, filled


def state(leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...] = (1, 2)) -> PartitionRegistration:
    return PartitionRegistration("t-0", leader, leader_epoch, isr, partition_epoch, (1, 2, 3))


@pytest.mark.parametrize(
    ("new", "shutting_down", "change"),
    [
        (state(1, 5, 6), False, OUTDATED),
        (state(1, 6, 8), False, LEADS),
        (state(1, 5, 7), False, LEADS_ON),
        (state(0, 6, 8), False, AWAITS),
        (state(2, 6, 8), False, FOLLOWS),
        (state(2, 6, 8), True, FOLLOWS),
        (state(2, 6, 8, isr=(2,)), True, AWAITS),
        (state(2, 5, 8), False, FOLLOWS_ON),
    ],
)
def test_what_a_new_state_makes_of_a_replica(new: PartitionRegistration, shutting_down: bool, change: int) -> None:
    one = filled(Recorder(), {0: 1}, MODES["elr-4.3"].rules)
    one.become_leader(state(1, 5, 7), 0)
    assert local_replica_change(1, one, new, shutting_down=shutting_down) == change
