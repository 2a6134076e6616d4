"""An elected controller's state: brokers and partition."""

from __future__ import annotations

from typing import Final

from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import NO_LEADER

NO_STATE: Final = LeaderAndIsr("", NO_LEADER, -1, (), -1, ())
"""The partition's state before a controller has read any."""


class ControllerContext:
    """A controller's state. Kafka: ControllerContext.

    Attributes:
        epoch: its controller epoch, -1 while it is not elected.
        live: registered brokers with their broker epochs.
        shutting_down: live brokers in controlled shutdown.
        state: the cached state of the partition; leader epoch -1 before the topic exists.
        target: the requested reassignment, () without one.
        is_offline: whether the partition waits for an election (OfflinePartition).
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.live: dict[int, int] = {}
        self.shutting_down: dict[int, None] = {}
        self.state = NO_STATE
        self.target: tuple[int, ...] = ()
        self.is_offline = False

    def reset(self) -> None:
        """Reset, because the controller resigned.

        Kafka: ControllerContext#resetContext (2.0-3.9), KafkaController#resetControllerContext (1.1).
        """
        self.epoch = -1
        self.live.clear()
        self.shutting_down.clear()
        self.state = NO_STATE
        self.target = ()
        self.is_offline = False

    @property
    def exists(self) -> bool:
        """Whether the partition exists."""
        return self.state.leader_epoch >= 0

    @property
    def is_new(self) -> bool:
        """Whether the topic exists and none of its replicas has been live so far. Kafka: NewPartition."""
        return self.state.partition_epoch >= 0 > self.state.leader_epoch

    def willing(self) -> list[int]:
        """Live brokers that are not shutting down. Kafka: ControllerContext#liveBrokerIds."""
        return [broker for broker in self.live if broker not in self.shutting_down]

    def replicas(self) -> list[int]:
        """Live replicas, including those that shut down. Kafka: ControllerContext#liveOrShuttingDownBrokerIds."""
        return [broker for broker in self.state.replicas if broker in self.live]
