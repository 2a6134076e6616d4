"""Writes with acks=all that wait for the high watermark."""

from __future__ import annotations

from bisect import insort
from operator import itemgetter

from sim.protocol import probes
from sim.protocol.messages import NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER, ProduceRequest
from sim.protocol.replica.partition_host import PartitionHost


class DelayedProduces:
    """The writes of one partition that wait for its HW. Kafka: DelayedOperationPurgatory, DelayedProduce.

    Attributes:
        waiting: (HW needed, request, base offset), by HW needed.
    """

    __slots__ = ("_host", "waiting")

    def __init__(self, host: PartitionHost) -> None:
        self._host = host
        self.waiting: list[tuple[int, ProduceRequest, int]] = []

    def add(self, hw: int, request: ProduceRequest, base_offset: int) -> None:
        """Answer a write once the HW reaches it. Duplicates of a batch may need a lower HW than earlier writes.

        Kafka: DelayedOperationPurgatory#tryCompleteElseWatch.
        """
        waiting = self.waiting
        if waiting and waiting[-1][0] > hw:
            insort(waiting, (hw, request, base_offset), key=itemgetter(0))
        else:
            waiting.append((hw, request, base_offset))

    def complete(self, hw: int, *, enough: bool) -> None:
        """Answer all writes below the HW; `enough` is whether the ISR currently has ``min.insync.replicas`` members.
        Kafka: DelayedProduce#tryComplete, Partition#checkEnoughReplicasReachOffset.
        """
        waiting = self.waiting
        while waiting and waiting[0][0] <= hw:
            _, request, base_offset = waiting.pop(0)
            if enough:
                self._host.answer_produce(request, NONE, base_offset)
            else:
                self._host.answer_produce(request, NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)

    def expire(self, request: ProduceRequest) -> None:
        """End the wait of a write. Kafka: DelayedProduce#onExpiration."""
        self.waiting = [entry for entry in self.waiting if entry[1] is not request]

    def take(self) -> list[tuple[int, ProduceRequest, int]]:
        """Wait no longer for these writes, without an answer; returns them."""
        taken, self.waiting = self.waiting, []
        return taken

    def refuse(self) -> None:
        """Refuse waiting writes, because the broker lost leadership; their records may or may not survive.

        Kafka: ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader (4.1-4.4),
        ReplicaManager#completeDelayedFetchOrProduceRequests (2.6-3.9).
        """
        self._host.reached(probes.WRITES_DROPPED)
        for _, request, _ in self.take():
            self._host.answer_produce(request, NOT_LEADER_OR_FOLLOWER, -1)
