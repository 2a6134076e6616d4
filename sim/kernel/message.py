"""Messages between nodes, and their subjects.

The latency of a message is a function of the seed, the link and the message's subject
(`sim.environment.network.Channel`). So it does not change when other messages are added or elided.
"""

from __future__ import annotations

from typing import Final

from sim.kernel.build import COMPILED
from sim.kernel.scheduler import Event, Gate
from sim.kernel.values import parts

ABOUT: Final = 24
"""Number of bits of each of the two numbers in a subject."""
NUMBER: Final = (1 << ABOUT) - 1
"""The bits of such a number."""
KIND: Final = 2 * ABOUT
"""Shift of a message's kind in its subject; kinds are below 128."""
REPLY: Final = 1 << (KIND + 7)
"""Set in the subjects of replies, so that they differ from those of their requests."""
ALIKE: Final = 1 << (KIND + 8)
"""Set in the subjects of messages that repeat while nothing changes, such as pings. Repeats are not counted: on one
link all of them have the same latency.
"""


class Message(Event):
    """Something one node sends to another: an immutable value of ids and data."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and parts(self) == parts(other)

    def happen(self, gate: Gate) -> None:
        """Arrive; see `Event.happen`."""
        receiver = gate.receiver
        if not COMPILED:  # Tests of types in `receive` are slow in plain Python.
            handler = receiver.handlers.get(type(self))
            if handler is not None:
                handler(receiver, self)
                return
        receiver.receive(self)

    def about(self) -> int:
        """The message's subject as one number: its kind, and what distinguishes it from others of that kind between the
        same two nodes (a batch, an offset, an epoch). If several messages with one subject are sent, each has its own
        latency, unless they are `ALIKE`.
        """
        raise NotImplementedError

    def again(self) -> Message | None:
        """The message that the sender resends after a timeout, so that both may arrive; None if it does not resend it.

        A producer resends its batches, and a controller its requests; other clients build a new request instead.
        Kafka: Sender, RequestSendThread (0.10.2-3.9).
        """
        return None
