from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.partition_backlog import PartitionBacklog
from sim.kernel.scheduler import Gate, Receiver
from sim.protocol.messages import (
    ControllerRequestBatch,
    FetchRequest,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    MetadataRequest,
    MetadataResponse,
    UpdateMetadataRequest,
)
from tests.sim.world import World

if TYPE_CHECKING:
    from sim.kernel.message import Message
    from sim.kernel.scheduler import Event

STATE = LeaderAndIsr("p", 1, 0, (1,), 0, (1,))
QUESTION = MetadataRequest(1_001, "p")


def batch(*, leads: bool) -> ControllerRequestBatch:
    metadata = UpdateMetadataRequest(1, 1, (STATE,), {1: 1}, 1)
    return ControllerRequestBatch(1, [metadata, LeaderAndIsrRequest(1, 1, (STATE,))] if leads else [metadata])


class Taking(Receiver):
    """Notes what arrives."""

    def __init__(self) -> None:
        self.taken: list[object] = []

    def receive(self, message: Event) -> None:
        self.taken.append(message)


@pytest.mark.parametrize(
    ("message", "unregistered", "registered"),
    [
        (FetchRequest(1_001, 1, -1, -1, [("p", 0, 0, -1)], []), True, True),
        (QUESTION, True, False),
        (batch(leads=True), True, True),
        (batch(leads=False), True, False),
        (MetadataResponse(QUESTION, 1, 0), False, False),
    ],
)
def test_only_messages_that_need_the_partition_wait(message: Message, unregistered: bool, registered: bool) -> None:
    broker = World().ready().cluster.running[1]
    for epoch, waits in ((-1, unregistered), (7, registered)):
        backlog, gate, node = PartitionBacklog(broker, broker.replica_manager), Gate(1), Taking()
        gate.receiver = node
        broker.broker_epoch = epoch
        backlog.put(gate, message)
        assert (len(backlog.events), len(node.taken)) == (waits, not waits)
