"""Events held back while a broker's partition is unusable: as long as the broker is not registered, the ISR is being
written to ZooKeeper (the writer holds leaderIsrUpdateLock), or the disk does not answer. While a log directory alone
does not answer, only what writes to it is held back; while the ISR of one of several partitions is being written, only
what needs that partition.

Other events still happen: sessions, the controller in the same process, metadata. In a paused process nothing happens;
see `sim.environment.network.Node.freeze`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.kernel.scheduler import Backlog

if TYPE_CHECKING:
    from sim.hosts.serving import Serving
    from sim.kernel.scheduler import Event, Gate


class PartitionBacklog(Backlog):
    """Holds back events that need a broker's partition (`Event.has_to_wait`, of several `Event.needs`), or write to a
    log directory that does not answer (`Event.writes_to`); others happen at once.
    """

    __slots__ = ("_broker",)

    def __init__(self, broker: Serving) -> None:
        super().__init__()
        self._broker = broker

    def put(self, gate: Gate, event: Event) -> None:
        broker = self._broker
        if broker.stalled and not broker.is_blocked:
            waits = any(event.writes_to(stall.directory.storages) for stall in broker.stalled)
        elif len(broker.replicas) > 1 and not broker.is_blocked and (locked := broker.locked):
            waits = event.needs(locked)
        else:
            waits = event.has_to_wait(registered=broker.broker_epoch >= 0)
        if waits:
            self.events.append((gate, event))
        else:
            event.happen(gate)
