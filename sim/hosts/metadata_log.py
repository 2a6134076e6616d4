"""The metadata log: kept by the active controller, which sends it to brokers.

In Kafka brokers fetch the log; here each transaction is sent to every registered broker whose requests reach the
controller. Lost records are sent again when the broker's fetch would have timed out and been repeated.

A broker has one fetch at a time (RequestManager#hasAnyInflightRequest), so a paused one is sent nothing: when it
resumes it fetches, and one response has all records that were committed meanwhile (`MetadataLog.fetch`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from sim.environment.elision import ElidingBroker
from sim.environment.network import Node
from sim.hosts.control_plane import CONTROL
from sim.kernel.scheduler import Event, Gate, Kernel
from sim.protocol.kraft.metadata import Record
from sim.protocol.kraft.quorum_messages import MetadataRecords, subject_of

FETCH_TIMEOUT_US: Final = 2_000_000
"""``controller.quorum.request.timeout.ms``: after this time a broker repeats its fetch of the metadata log."""


class _FetchTimeout(Event):
    """Checks whether a broker has to fetch the metadata log again."""

    __slots__ = ("_broker", "_log")
    elision_safe = True

    def __init__(self, log: MetadataLog, broker: int) -> None:
        self._log = log
        self._broker = broker

    def happen(self, _: Gate) -> None:
        self._log.resend_lost(self._broker)


class MetadataLog:
    """The metadata log of all committed records; see the module."""

    def __init__(self, controller: Node, kernel: Kernel) -> None:
        self._controller = controller
        self._kernel = kernel
        self.records: list[Record] = []
        self._sent_us: list[int] = []
        self._delays_us: dict[int, int] = {}
        self._resend_scheduled: set[int] = set()

    def append(self, record: Record) -> None:
        """Commit a record."""
        self.records.append(record)
        self._sent_us.append(self._kernel.now_us)

    def send_to_all(self, first: int, brokers: Iterable[int]) -> None:
        """Send the log from a record on to all registered brokers."""
        for broker in brokers:
            self.send(broker, first)

    def send(self, broker: int, first: int) -> None:
        """Send the log from a record on to a broker; a no-op if the broker's requests do not arrive."""
        end = len(self.records)
        if first == end:
            return
        self._schedule_resend(broker)
        if not self._controller.network.is_cut(broker, CONTROL):
            message = MetadataRecords(first, end, subject_of(self.records[first]))
            late_us = self._delays_us.get(broker, 0)
            if late_us:
                at_us = self._kernel.now_us + late_us
                self._kernel.call_at(at_us, self._controller.life, self._send_delayed, (broker, message))
            else:
                self._send_delayed((broker, message))

    def _send_delayed(self, entry: tuple[int, MetadataRecords]) -> None:
        """Send delayed records; a broker that has received them meanwhile ignores them. A paused one fetches them when
        it resumes.
        """
        broker, message = entry
        channel = self._controller.out.get(broker) or self._controller.reach(broker)
        if channel is not None and not channel.target.frozen:
            channel.send(message)

    def fetch(self, broker: int, first: int) -> None:
        """Answer the fetch of a broker that has resumed with one message: the log from a position on, except records
        whose delay is not over.

        The broker applies them together: KafkaRaftClient#updateListenersProgress reads up to the high watermark.
        Kafka: KafkaRaftClient#tryCompleteFetchRequest (3.9-4.4), MetadataLoader#handleCommit (3.9-4.4).
        """
        if first >= len(self.records):
            return
        self._schedule_resend(broker)
        late_us = self._delays_us.get(broker, 0)
        end = bisect_right(self._sent_us, self._kernel.now_us - late_us) if late_us else len(self.records)
        if first < end and not self._controller.network.is_cut(broker, CONTROL):
            self._send_delayed((broker, MetadataRecords(first, end, subject_of(self.records[first]))))

    def _schedule_resend(self, broker: int) -> None:
        """Schedule a check that resends lost records to a broker."""
        if broker not in self._resend_scheduled:
            self._resend_scheduled.add(broker)
            due_us = self._kernel.now_us + FETCH_TIMEOUT_US + self._delays_us.get(broker, 0)
            self._kernel.schedule(due_us, self._controller.life, _FetchTimeout(self, broker))

    def resend_lost(self, broker: int) -> None:
        """Resend records that a broker was sent long ago and has not replayed, unless it is paused: it fetches then."""
        self._resend_scheduled.discard(broker)
        node = self._controller.network.nodes.get(broker)
        if node is None:
            return
        assert isinstance(node, ElidingBroker)
        replayed = node.metadata_offset
        if node.frozen or replayed >= len(self.records):
            return
        lost_us = FETCH_TIMEOUT_US + self._delays_us.get(broker, 0)
        if self._sent_us[replayed] + lost_us > self._kernel.now_us:
            self._schedule_resend(broker)
        else:
            self.send(broker, replayed)

    def delay(self, broker: int, by_us: int) -> None:
        """See `ControlPlane.delay`."""
        self._delays_us[broker] = self._delays_us.get(broker, 0) + by_us

    def keeps_up(self, broker: int, replayed: int) -> bool:
        """Whether a broker that has replayed `replayed` records has all of them and gets later ones in time."""
        return replayed == len(self.records) and not self._delays_us.get(broker)
