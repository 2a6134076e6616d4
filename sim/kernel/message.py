"""What nodes send to each other, as far as the machine has to know: what a message is about.

The latency of a message is a function of the seed, the link and what the message is about
(`sim.environment.network.Channel`), so that it stays as it is when other messages are sent or left out.
"""

from __future__ import annotations

from typing import Final

from sim.kernel.scheduler import Event, Gate
from sim.kernel.values import parts

ABOUT: Final = 24
"""Bits of each of the two numbers that a message may be about."""
KIND: Final = 2 * ABOUT
"""Bits below the kind of a message, a number below 128."""
REPLY: Final = 1 << (KIND + 7)
"""What tells a reply from its request."""
ALIKE: Final = 1 << (KIND + 8)
"""Of what is asked over and over while nothing changes: one like the other, such messages are not counted, and all of
one link that are about the same take the same time.
"""


class Message(Event):
    """Something that one node sends to another one: a value, which is never changed, and holds ids and data only."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and parts(self) == parts(other)

    def happen(self, gate: Gate) -> None:
        """See `Event.happen`: it arrives."""
        gate.receive(self)

    def about(self) -> int:
        """What it is and what it is about, as one number: its kind, and what tells it from others of that kind between
        the same two nodes (a batch, an offset, an epoch). Two that are about the same are told apart by counting them,
        unless they are `ALIKE`.
        """
        raise NotImplementedError

    def again(self) -> Message | None:
        """What its sender sends once more if no answer comes, though it may have arrived; None: nothing.

        A producer resends its batches, and a controller its requests; other clients build a new request instead.
        Kafka: Sender, RequestSendThread (0.10.2-3.9).
        """
        return None
