"""Events held back while a broker's partition is unusable: as long as the broker is not registered, the ISR is being
written to ZooKeeper (the writer holds leaderIsrUpdateLock), or the disk does not answer.

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
    """Holds back events that need a broker's partition (`Event.has_to_wait`); others happen at once."""

    __slots__ = ("_broker",)

    def __init__(self, broker: Serving) -> None:
        super().__init__()
        self._broker = broker

    def put(self, gate: Gate, event: Event) -> None:
        if event.has_to_wait(registered=self._broker.broker_epoch >= 0):
            self.events.append((gate, event))
        else:
            event.happen(gate)
