"""The metadata log as the active controller keeps and spreads it.

Brokers fetch the log in Kafka; here each transaction is sent to every registered broker that can ask for it, and what
got lost on its way is sent again when a heartbeat shows that it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sim.environment.network import Channel, Node
from sim.hosts.control_plane import CONTROL
from sim.hosts.peers import Heartbeating
from sim.kernel.scheduler import Kernel
from sim.protocol.kraft.metadata import Record
from sim.protocol.kraft.quorum_messages import MetadataRecords

LOST_US: Final = 1_000_000
"""Records that a broker has not replayed so long after they were sent were lost on their way."""


class MetadataLog:
    """See the module.

    Args:
        controller: the node that sends it.
        kernel: time and timers.

    Attributes:
        records: the log.
    """

    def __init__(self, controller: Node, kernel: Kernel) -> None:
        self._controller = controller
        self._kernel = kernel
        self.records: list[Record] = []
        self._sent_us: list[int] = []
        self._late_us: dict[int, int] = {}

    def append(self, record: Record) -> None:
        """Commit a record."""
        self.records.append(record)
        self._sent_us.append(self._kernel.now_us)

    def spread(self, first: int, brokers: Iterable[int]) -> None:
        """Let brokers have the log from a record on."""
        for broker in brokers:
            self.send(broker, first)

    def send(self, broker: int, first: int) -> None:
        """Send the log from a record on; a broker whose requests do not arrive gets nothing."""
        if first < len(self.records) and not self._controller.network.link(broker, CONTROL).cuts:
            message = MetadataRecords(first, self.records[first:])
            late_us = self._late_us.get(broker, 0)
            if late_us:
                at_us = self._kernel.now_us + late_us
                self._kernel.call_at(at_us, self._controller.life, self._arrive, (broker, message))
            else:
                self._arrive((broker, message))

    def _arrive(self, entry: tuple[int, MetadataRecords]) -> None:
        """What was late is sent; who has had it since, by heartbeats, drops it."""
        broker, message = entry
        channel: Channel[Heartbeating] | None = self._controller.out.get(broker) or self._controller.reach(broker)
        if channel is not None:
            channel.send(channel.target.on_metadata_records, message)

    def send_again(self, broker: int, replayed: int) -> None:
        """A broker has replayed so many records: send what was lost on its way."""
        lost_us = LOST_US + self._late_us.get(broker, 0)
        if replayed < len(self.records) and self._sent_us[replayed] < self._kernel.now_us - lost_us:
            self.send(broker, replayed)

    def lag(self, broker: int, by_us: int) -> None:
        """See `ControlPlane.lag`."""
        self._late_us[broker] = self._late_us.get(broker, 0) + by_us

    def reaches(self, broker: int, replayed: int) -> bool:
        """Whether a broker that has replayed so many records has all, and gets in time what is appended later."""
        return replayed == len(self.records) and not self._late_us.get(broker)
