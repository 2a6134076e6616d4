"""The active controller's state of brokers' heartbeats, and the state changes that heartbeats cause.

None of it is in the metadata log: each active controller starts with an empty state.
"""

from __future__ import annotations

from typing import Final

from sim.protocol.kraft.metadata import BrokerRegistration, MetadataImage
from sim.protocol.messages import NONE

FENCED: Final = "fenced"
UNFENCED: Final = "unfenced"
CONTROLLED_SHUTDOWN: Final = "controlled shutdown"
SHUTDOWN_NOW: Final = "shutdown now"
UNKNOWN_OFFSET: Final = -1
_LARGEST_OFFSET: Final = 1 << 62


class BrokerHeartbeatReply:
    """Answer to a heartbeat. Kafka: metadata.BrokerHeartbeatReply.

    Attributes:
        error: `NONE` or `sim.protocol.messages.STALE_BROKER_EPOCH`.
        is_caught_up: whether the broker has read the record of its own registration.
        is_fenced: whether it is fenced now.
        should_shut_down: whether it may stop.
    """

    __slots__ = ("error", "is_caught_up", "is_fenced", "should_shut_down")

    def __init__(self, error: str, *, is_caught_up: bool, is_fenced: bool, should_shut_down: bool) -> None:
        self.error: Final = error
        self.is_caught_up: Final = is_caught_up
        self.is_fenced: Final = is_fenced
        self.should_shut_down: Final = should_shut_down


class BrokerHeartbeatManager:
    """The metadata offsets of brokers, and their controlled shutdowns. Kafka: BrokerHeartbeatManager."""

    __slots__ = ("_image", "_metadata_offsets", "_shutdown_offsets")

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._metadata_offsets: dict[int, int] = {}
        self._shutdown_offsets: dict[int, int] = {}
        """Metadata offset that all other brokers must have reached before a broker in shutdown may stop."""

    def registered(self, broker: int) -> None:
        """Forget a broker's state, because a new incarnation registered. Kafka: BrokerHeartbeatManager#register."""
        self._metadata_offsets.pop(broker, None)
        self._shutdown_offsets.pop(broker, None)

    def unregistered(self, broker: int) -> None:
        """Forget an unregistered broker. Kafka: BrokerHeartbeatManager#remove."""
        self.registered(broker)

    def fenced(self, broker: int) -> None:
        """Note a fenced broker, which ends its controlled shutdown. Kafka: BrokerHeartbeatManager#fence."""
        self._shutdown_offsets.pop(broker, None)

    def state(self, known: BrokerRegistration) -> str:
        """The state of a broker. Kafka: BrokerHeartbeatManager#currentBrokerState."""
        if self._shutdown_offsets and known.broker in self._shutdown_offsets:
            return CONTROLLED_SHUTDOWN
        return FENCED if known.fenced else UNFENCED

    def next_state(
        self, known: BrokerRegistration, *, caught_up: bool, leads: bool, want_fence: bool, want_shut_down: bool
    ) -> str:
        """A broker's next state after a heartbeat. Kafka: BrokerHeartbeatManager#calculateNextBrokerState."""
        state = self.state(known)
        if state == CONTROLLED_SHUTDOWN:
            waits = leads or self._shutdown_offsets[known.broker] > self._lowest_active_offset()
            return CONTROLLED_SHUTDOWN if waits else SHUTDOWN_NOW
        if want_shut_down:
            return CONTROLLED_SHUTDOWN if leads and state == UNFENCED and not want_fence else SHUTDOWN_NOW
        if want_fence or (state == FENCED and not caught_up):
            return FENCED
        return UNFENCED

    def note_metadata_offset(self, broker: int, metadata_offset: int) -> None:
        """Note the metadata offset from elided heartbeats."""
        self._metadata_offsets[broker] = max(self._metadata_offsets.get(broker, UNKNOWN_OFFSET), metadata_offset)

    def touch(self, broker: int, metadata_offset: int, state: str, *, changed: bool) -> None:
        """Note a processed heartbeat, whose records are committed; `state` is the broker's new state.

        If its registration was `changed`, because it was unfenced or reported a failed log directory, the metadata
        offset counts from its next heartbeat on: replaying the record has cleared the one in this heartbeat.
        Kafka: BrokerHeartbeatManager#touch, BrokerHeartbeatManager#register,
        BrokerHeartbeatManager#maybeUpdateControlledShutdownOffset.
        """
        self._metadata_offsets[broker] = UNKNOWN_OFFSET if changed else metadata_offset
        if state == CONTROLLED_SHUTDOWN:
            self._shutdown_offsets.setdefault(broker, self._image.offset)
        elif state != UNFENCED:
            self.fenced(broker)

    def _lowest_active_offset(self) -> int:
        """Metadata offset of the slowest active broker; a new controller does not know which brokers are shutting down.

        Kafka: BrokerHeartbeatManager#lowestActiveOffset.
        """
        brokers = self._image.brokers
        active = (one for one, known in brokers.items() if not known.fenced and one not in self._shutdown_offsets)
        return min((self._metadata_offsets.get(one, UNKNOWN_OFFSET) for one in active), default=_LARGEST_OFFSET)


def heartbeat_reply(state: str, *, caught_up: bool) -> BrokerHeartbeatReply:
    """The response to a heartbeat that led to this state. Kafka: ReplicationControlManager#processBrokerHeartbeat."""
    stops = state == SHUTDOWN_NOW
    return BrokerHeartbeatReply(
        NONE, is_caught_up=caught_up, is_fenced=stops or state == FENCED, should_shut_down=stops
    )
