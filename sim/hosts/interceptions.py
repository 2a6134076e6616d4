"""Types of messages of which a fault can strike a single one: lose it, hold it back, or deliver it twice.

A broker exchanges them with the control plane, with other brokers, or with the producers of all partitions. Controllers
that are processes exchange those of Raft with one another and with brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sim.hosts.control_plane import CONTROL
from sim.kernel.message import Message
from sim.protocol import messages
from sim.protocol.kraft import quorum_messages
from sim.protocol.raft import raft_messages

_BROKERS: Final = -1
_PRODUCERS: Final = -2


class Interceptable:
    """A type of message that brokers send or receive.

    Attributes:
        type: its class.
        is_sent: whether a broker sends it to its peer; otherwise it receives it.
        is_resent: whether its sender may send it twice (`Message.again`).
    """

    __slots__ = ("_peer", "is_resent", "is_sent", "type")

    def __init__(self, kind: type[Message], peer: int, *, is_sent: bool, is_resent: bool = False) -> None:
        self.type = kind
        self._peer = peer
        self.is_sent = is_sent
        self.is_resent = is_resent

    def links(self, broker: int, brokers: Iterable[int], producers: Iterable[int]) -> list[tuple[int, int]]:
        """The directed links on which the broker sends or receives it; `brokers` and `producers` are all of them."""
        if self._peer == _BROKERS:
            peers = [other for other in brokers if other != broker]
        else:
            peers = list(producers) if self._peer == _PRODUCERS else [self._peer]
        return [(broker, peer) if self.is_sent else (peer, broker) for peer in peers]


MESSAGES: Final[dict[str, Interceptable]] = {
    one.type.__name__: one
    for one in (
        Interceptable(quorum_messages.AlterPartitionRequest, CONTROL, is_sent=True, is_resent=True),
        Interceptable(quorum_messages.AlterPartitionResponse, CONTROL, is_sent=False),
        Interceptable(messages.FetchRequest, _BROKERS, is_sent=True),
        Interceptable(messages.FetchResponse, _BROKERS, is_sent=False),
        Interceptable(quorum_messages.MetadataRecords, CONTROL, is_sent=False),
        Interceptable(quorum_messages.BrokerHeartbeatRequest, CONTROL, is_sent=True),
        Interceptable(quorum_messages.BrokerHeartbeatResponse, CONTROL, is_sent=False),
        Interceptable(quorum_messages.BrokerRegistrationRequest, CONTROL, is_sent=True, is_resent=True),
        Interceptable(quorum_messages.BrokerRegistrationResponse, CONTROL, is_sent=False),
        Interceptable(messages.ProduceRequest, _PRODUCERS, is_sent=False, is_resent=True),
        Interceptable(messages.ProduceResponse, _PRODUCERS, is_sent=True),
        Interceptable(messages.ControllerRequestBatch, _BROKERS, is_sent=False, is_resent=True),
        Interceptable(messages.ControlResponse, _BROKERS, is_sent=True),
        Interceptable(messages.OffsetsForLeaderEpochRequest, _BROKERS, is_sent=True),
        Interceptable(messages.OffsetsForLeaderEpochResponse, _BROKERS, is_sent=False),
        Interceptable(messages.ListOffsetsRequest, _BROKERS, is_sent=True),
        Interceptable(messages.ListOffsetsResponse, _BROKERS, is_sent=False),
        Interceptable(raft_messages.VoteRequest, CONTROL, is_sent=True),
        Interceptable(raft_messages.VoteResponse, CONTROL, is_sent=False),
        Interceptable(raft_messages.BeginQuorumEpochRequest, CONTROL, is_sent=True),
        Interceptable(raft_messages.RaftFetchRequest, CONTROL, is_sent=True),
        Interceptable(raft_messages.RaftFetchResponse, CONTROL, is_sent=False),
    )
}
"""Name -> type of message. Plans store the numbers of these lines, from 1: add a new one at the end."""
DRAWN: Final = list(MESSAGES)[:17]
"""The messages that random plans strike: not those of controllers that are processes."""
NAMES: Final = ("", *MESSAGES)
"""Name at the number."""
