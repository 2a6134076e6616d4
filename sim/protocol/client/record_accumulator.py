"""Which batches of a producer's partitions its next request to a broker has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.protocol.client.sender import ProducerBatch, Sender
from sim.protocol.decisions import Decisions

NONE_STOPS: Final = -1
_ENDS: Final = {"stays": "stay", "begins-behind": "behind", "begins-there": "there", "passed-over": ""}
"""Value of the rule ``stopped_partition`` -> where the next round begins; "": the round goes on."""


class Drained:
    """The batches of a request.

    Attributes:
        batches: (index of the partition, its batch), at most one of each.
        stopped: index of the first partition whose batch has to wait for others in flight; `NONE_STOPS`: there is none.
    """

    __slots__ = ("batches", "stopped")

    def __init__(self) -> None:
        self.batches: list[tuple[int, ProducerBatch]] = []
        self.stopped = NONE_STOPS


class RecordAccumulator:
    """Collects batches broker by broker, and begins with another partition each time. Kafka: RecordAccumulator.

    Args:
        decide: rule ``stopped_partition`` decides what a partition that has to wait means for the others.
    """

    __slots__ = ("_decide", "_drain_index", "_is_shared", "_moves_first")

    def __init__(self, decide: Decisions) -> None:
        self._decide = decide
        value = decide.rules.stopped_partition
        self._is_shared = value in ("stays", "begins-behind")
        """Whether all brokers have one index (to 3.2)."""
        self._moves_first = value == "begins-behind"
        """Whether the index moves on before a partition is looked at."""
        self._drain_index: dict[int, int] = {}

    def drain(self, broker: int, senders: Sequence[Sender], is_ready: Sequence[bool]) -> Drained:
        """Take at most one batch of each partition that a broker leads. If one has to wait, those behind it may have to
        wait, too.

        Args:
            broker: the leader.
            senders: of all its partitions, in the order of the cluster's metadata.
            is_ready: for each, whether it has a batch that does not wait for a back-off.

        Kafka: RecordAccumulator#drainBatchesForOneNode (2.6-4.4), RecordAccumulator#drain.
        """
        drained = Drained()
        batches = drained.batches
        key = 0 if self._is_shared else broker
        start = index = self._drain_index.get(key, 0) % len(senders)
        while True:
            place, sender = index, senders[index]
            index = (index + 1) % len(senders)
            self._drain_index[key] = index if self._moves_first else place
            # The acks of a producer are the same for all its batches; here they may be drawn.
            fits = not batches or not sender.queue or batches[0][1].acks == sender.queue[0].acks
            if is_ready[place] and not sender.muted and fits:
                batch = sender.take()
                if batch is not None:
                    batches.append((place, batch))
                else:
                    drained.stopped = place
                    if self._decide.stopped_partition.pick(_ENDS):
                        break
            if index == start:
                if self._is_shared:
                    self._drain_index[key] = index
                break
        return drained
