"""The clients' view of a run: acknowledgements, records shown to consumers, exposed end offsets."""

from __future__ import annotations

from sim.history import steps
from sim.history.steps import Exposed
from sim.protocol.batch import Batch


class Shown:
    """Records of a batch, from an offset on, that a consumer's application received."""

    __slots__ = ("at_us", "batch", "consumer", "from_offset")

    def __init__(self, batch: Batch, from_offset: int, at_us: int, consumer: int = 0) -> None:
        self.batch = batch
        self.from_offset = from_offset
        self.at_us = at_us
        self.consumer = consumer


class Clients(steps.Listener):
    """The clients' view of one run: successes in order of arrival, records shown, and end offsets exposed by reads and
    ListOffsets responses.

    Attributes:
        acks: successes that a producer received.
        shown: batches that consumers were shown.
        exposed: end offsets exposed by the newest leader epoch, and by older ones before it.
    """

    def __init__(self) -> None:
        self.acks: list[steps.Ack] = []
        self.shown: list[Shown] = []
        self.exposed: Exposed | None = None

    def on_ack(self, step: steps.Ack) -> None:
        self.acks.append(step)

    def on_read(self, step: steps.Read) -> None:
        for batch in step.batches:
            self.shown.append(Shown(batch, max(step.position, batch.base_offset), step.at_us, step.consumer))
        self.expose(step.leader_epoch, step.end)

    def on_end_offset(self, step: steps.EndOffset) -> None:
        self.expose(step.epoch, step.offset)

    def expose(self, leader_epoch: int, end_offset: int) -> None:
        """Note that records below an offset were exposed to clients as committed."""
        known = self.exposed
        if known is not None and known.epoch == leader_epoch:
            if end_offset > known.end:
                self.exposed = Exposed(leader_epoch, end_offset, known.before)
            return
        newer: list[Exposed] = []
        while known is not None and known.epoch > leader_epoch:
            newer.append(known)
            known = known.before
        if known is not None:
            if known.end >= end_offset:
                return
            if known.epoch == leader_epoch:
                known = known.before
        known = Exposed(leader_epoch, end_offset, known)
        for one in reversed(newer):
            if one.end > end_offset:
                known = Exposed(one.epoch, one.end, known)
        self.exposed = known
