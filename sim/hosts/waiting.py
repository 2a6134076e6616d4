"""What a broker has to leave until its partition can be used again: as long as the broker is not registered, the ISR is
being written to ZooKeeper (the writer holds leaderIsrUpdateLock), or the disk does not answer.

Everything else goes on: sessions, the controller in the same process, metadata. A paused process does none of this; see
`sim.environment.network.Node.freeze`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.kernel.scheduler import Backlog, Handler

if TYPE_CHECKING:
    from sim.hosts.serving import Serving

NEEDS_PARTITION: Final = frozenset(
    {
        "on_produce",
        "on_fetch",
        "on_epoch_end",
        "on_list_offsets",
        "on_fetch_reply",
        "on_epoch_end_reply",
        "on_list_offsets_reply",
        "on_script",
        "on_alter_partition_reply",
        "on_get_replica_log_info",
        "_expire_fetch",
        "_step_fetcher",
        "_shrink_isr",
    }
)
"""Handlers of messages and timers that read or change the partition."""
MAY_NEED: Final = frozenset({"on_metadata", "on_control"})
"""Those of which `Serving.has_to_wait` says whether they have to wait."""


class PartitionBacklog(Backlog):
    """Holds back what needs the partition, and lets the rest happen.

    Args:
        broker: whose partition.
    """

    __slots__ = ("_broker",)

    def __init__(self, broker: Serving) -> None:
        super().__init__()
        self._broker = broker

    def put(self, handler: Handler, argument: Any) -> None:
        """See `Backlog.put`."""
        name = getattr(handler, "__name__", "")
        if name in NEEDS_PARTITION or (name in MAY_NEED and self._broker.has_to_wait(argument)):
            self.calls.append((handler, argument))
        else:
            handler(argument)
