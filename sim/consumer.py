"""A consumer: reads below the high watermark from a position on, and asks for the end offset now and then.

Kafka classes: Fetcher, OffsetFetcher (without the truncation detection of 2.3). An empty fetch that expires could tell
it nothing but to fetch again, so its fetches wait at the leader until something ends them.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.client import Access, Client
from sim.protocol.batch import Batch
from sim.protocol.messages import (
    EARLIEST,
    LATEST,
    NO_EPOCH,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
)


class Consumer(Client):
    """Reads one partition.

    Args:
        node: see `Client`.
        access: see `Client`.
        position: first offset to read.
        shows: called with the batches of each read, if given.

    Attributes:
        position: next offset to read.
        paused: whether it has stopped reading.
    """

    def __init__(
        self, node: int, access: Access, *, position: int = 0, shows: Callable[[list[Batch]], None] | None = None
    ) -> None:
        super().__init__(node, access)
        self.position = position
        self.paused = False
        self._shows = shows
        self._fetch: FetchRequest | None = None
        self._reset: ListOffsetsRequest | None = None
        self._ask: ListOffsetsRequest | None = None
        self._known: dict[int, int] = {}
        self._asked_us = 0

    # Reading.

    def fetch(self) -> None:
        """Fetch from the position on, unless a fetch is under way."""
        channel = self.channel()
        if self._fetch is not None or self.paused:
            return
        if channel is None:
            self.retry_later()
            return
        if self._reset is not None:
            self._send_reset()
            return
        self._fetch = FetchRequest(self.node, self.leader, -1, 0, [(self.topic, self.position, NO_EPOCH, NO_EPOCH)], [])
        if self.network.loss:
            self.kernel.call_at(self.kernel.now_us + self.timeout_us, self.life, self._time_out, self._fetch)
        channel.send(channel.target.on_fetch, self._fetch)  # type: ignore[attr-defined]

    def _time_out(self, fetch: FetchRequest) -> None:
        """Fetch anew: where messages are lost, a fetch that waits cannot be told from one that is gone."""
        if fetch is self._fetch:
            self.connection_lost()
            self.retry_later(always=True)

    def pause(self) -> None:
        """Stop reading; what is under way is dropped."""
        self.paused = True
        self._fetch = None

    def resume(self) -> None:
        """Read on."""
        self.paused = False
        self.fetch()

    def on_fetch_reply(self, reply: FetchReply) -> None:
        """A leader answered."""
        if reply.request is not self._fetch:
            return
        self._fetch = None
        _, error, batches, _, _, leader_epoch = reply.results[0]
        if error == OFFSET_OUT_OF_RANGE:
            self._out_of_range()
        elif error:
            self.retry_later()
        else:
            self.succeeded()
            if batches:
                self.journal.read(batches, self.position, leader_epoch)
                self.position = batches[-1].last_offset + 1
                if self._shows is not None:
                    self._shows(batches)
            self.fetch()

    def _out_of_range(self) -> None:
        """Reset as ``auto.offset.reset`` says; the application hears of it."""
        self.journal.out_of_range(self.position)
        policy = self.settings.offset_reset
        if policy == "none":
            self.paused = True
            return
        timestamp = EARLIEST if policy == "earliest" else LATEST
        self._reset = ListOffsetsRequest(self.node, -1, self.topic, timestamp, NO_EPOCH)
        self._send_reset()

    def _send_reset(self) -> None:
        channel = self.channel()
        if channel is None or self._reset is None:
            self.retry_later()
        else:
            channel.send(channel.target.on_list_offsets, self._reset)  # type: ignore[attr-defined]

    # End offsets.

    def ask_end_offset(self, _: object = None) -> None:
        """Ask ListOffsets(latest) now; an earlier unanswered question is forgotten."""
        channel = self.channel()
        if channel is not None:
            self._ask = ListOffsetsRequest(self.node, -1, self.topic, LATEST, NO_EPOCH)
            self._known = dict(self.journal.ledger.exposed)
            self._asked_us = self.kernel.now_us
            channel.send(channel.target.on_list_offsets, self._ask)  # type: ignore[attr-defined]

    def ask_regularly(self, _: object = None) -> None:
        """Ask now and after each ``sim.end.offsets.interval.ms``."""
        self.ask_end_offset()
        self.kernel.call_at(self.kernel.now_us + self.settings.end_offsets_us, self.life, self.ask_regularly, None)

    def on_list_offsets_reply(self, reply: ListOffsetsReply) -> None:
        """A leader answered: an end offset for the application, or where to go on reading."""
        if reply.request is self._ask:
            self._ask = None
            if not reply.error:
                self.journal.end_offset(self._known, self._asked_us, reply.offset, reply.leader_epoch)
            elif reply.error != OFFSET_NOT_AVAILABLE:
                self.retry_later()
        elif reply.request is self._reset:
            if reply.error:
                self.retry_later(always=True)
            else:
                self._reset = None
                self.position = reply.offset
                self.fetch()

    # Connections.

    def leader_known(self) -> None:
        """See `Client.leader_known`."""
        self.fetch()

    def connection_lost(self) -> None:
        """See `Client.connection_lost`."""
        self._fetch = None
