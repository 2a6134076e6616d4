"""Links between brokers and to the control plane: proxies that parse frames and identify their senders.

Other brokers connect to a broker through its own proxy; it connects to the control plane through another one. A link
is directed, from one node to another, as in scripts (0 is the control plane): requests travel on one, responses on the
reverse. A cut link drops frames silently, as a network does: connections stay open until it is healed, and then break.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import metadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable, Iterator

CONTROL: Final = 0
FETCH: Final = 1
EPOCH_END: Final = 23
API_VERSIONS: Final = 18
HEARTBEAT: Final = 63
EVERYTHING: Final = -1
_LIFE: Final = (HEARTBEAT, API_VERSIONS)
"""Requests that pass at once while slow links are frozen, so that sessions continue: heartbeats, and the first requests
of their connections.
"""
_SIZE: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">hhih")
_FETCHER: Final = re.compile(r"broker-(\d+)-fetcher-\d+|broker-(\d+)-.*|raft-client-(\d+)|(\d+)")
_SHORT_HEAD: Final = 15
"""From this version on, a fetch request carries its replica id in a tagged field."""

_LOOK_S: Final = 0.02
EMPTY_S: Final = 0.5
"""Maximum time for which a controller, and a lagging one here, holds a fetch without having anything for it."""
UNSEEN_S: Final = 2.0
"""Maximum time for which a delayed frame is held until its cause has been observed."""
PULSE_S: Final = 0.3
LINGER_S: Final = 60.0
_ZOOKEEPER_PING: Final = struct.pack(">ii", -2, 11)
_ZOOKEEPER_CLOSE: Final = struct.pack(">i", -11)

Observed = Mapping[tuple[Any, int], dict[str, str]]
"""See `Proxies.observed`."""
OnMessage = Callable[[str, int, int, dict[str, Any]], None]
"""Called with each message: its kind, source, target and contents."""
Due = tuple["ProxyLink | None", float, "int | None", Callable[[], None] | None]
"""A frame's treatment: its link, its delay, the number of polls before the event that it waits for (None: no wait), and
a callback for when it passes; None if the frame is dropped.
"""


@dataclass(slots=True)
class ProxyLink:
    """A directed link.

    Attributes:
        cut: whether all frames are dropped.
        delay_s: delay of each frame.
        lost: APIs whose requests are dropped even after healing; `EVERYTHING` for all.
        stale: connections that lost frames; they break when the link is healed.
    """

    cut: bool = False
    delay_s: float = 0.0
    lost: frozenset[int] = frozenset()
    stale: set[_Connection] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ProxyDelay:
    """How late a broker receives records of the metadata log.

    Attributes:
        since_ms: time stamp up to which records are not late.
        seconds: the delay of later ones.
    """

    since_ms: int
    seconds: float


@dataclass(slots=True)
class ProxiedRequest:
    """Header of a request, and the number of polls begun when it was forwarded, if its response waits for more."""

    key: int
    version: int
    correlation: int
    client: str
    body: bytes
    looks: int | None = None


def head_of(frame: bytes) -> ProxiedRequest | None:
    """Parse the header of a request's frame (without its size); None if it is not a Kafka request."""
    if len(frame) < _HEAD.size:
        return None
    key, version, correlation, length = _HEAD.unpack_from(frame)
    end = _HEAD.size + max(length, 0)
    if end > len(frame):
        return None
    return ProxiedRequest(key, version, correlation, frame[_HEAD.size : end].decode(errors="replace"), frame[end:])


def source_of(request: ProxiedRequest) -> int | None:
    """The broker that sent a request, if known."""
    if request.key == FETCH and request.version < _SHORT_HEAD:
        (replica,) = struct.unpack_from(">i", request.body, 1 if request.version >= 12 else 0)
        return int(replica) if replica >= 0 else None
    if found := _FETCHER.fullmatch(request.client):
        return int(next(group for group in found.groups() if group))
    return None


class Proxies:
    """All links of a cluster, in a thread of their own.

    Args:
        on_message: called with each fetch, in that thread.
        beat_s: delay of each fetch of a follower, so that its effect can be observed before the next fetch.

    Attributes:
        kept: brokers whose sessions are kept alive though their processes have ended.
        frozen: whether frames on slow links are held; heartbeats pass at once.
        looks: number of polls begun by the observer; None if there is no observer.
        lags: broker -> its metadata lag.
        stalled: brokers whose disks stall: fetch responses with records arrive, but are not acted on.
        observed: topic, or its id, and number of a partition -> the tag of its steps; empty if brokers fetch only one.
        controllers: the nodes of the control plane.
    """

    def __init__(self, on_message: OnMessage, beat_s: float) -> None:
        self.on_message = on_message
        self.beat_s = beat_s
        self.kept: frozenset[int] = frozenset()
        self.frozen = False
        self.looks: int | None = None
        self.lags: dict[int, ProxyDelay] = {}
        self.stalled: frozenset[int] = frozenset()
        self.observed: Observed = {}
        self.controllers: tuple[int, ...] = (CONTROL,)
        self._links: dict[tuple[int, int], ProxyLink] = {}
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.AbstractServer] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="proxies")
        self._thread.start()

    def listen(self, port: int, target_port: int, *, source: int | None, target: int, kafka: bool) -> None:
        """Open a proxy at a port for the links between the node that connects to it and the target.

        Without a `source` its requests identify it. `kafka` says whether frames are Kafka's.
        """

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await _Connection(self, reader, writer, source, target, kafka=kafka).carry(target_port)

        async def start() -> None:
            self._servers.append(await asyncio.start_server(accept, "127.0.0.1", port, limit=1 << 26))

        self._run(start())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def link(self, source: int, target: int) -> ProxyLink:
        """A directed link."""
        return self._links.setdefault((source, target), ProxyLink())

    def cut(self, source: int, target: int) -> None:
        """Cut a link: drop all of its frames."""
        self._change([(source, target)], cut=True)

    def slow(self, source: int, target: int, seconds: float) -> None:
        """Delay every frame of a link."""
        self._change([(source, target)], delay_s=seconds)

    def heal(self, source: int, target: int) -> None:
        """Restore a link; break the connections that lost frames."""
        self._change([(source, target)], breaks=True, cut=False, delay_s=0.0)

    def silence(self, broker: int, keys: Iterable[int]) -> None:
        """Drop a broker's requests of some APIs to the control plane until this is called again, even if its link is
        healed. `EVERYTHING` drops responses as well.
        """
        lost = frozenset(keys)
        links = [link for node in self.controllers for link in ((broker, node), (node, broker))]
        self._change(links, breaks=not lost, lost=lost)

    def _change(self, links: Iterable[tuple[int, int]], *, breaks: bool = False, **values: Any) -> None:
        """Set attributes of links, and break connections that lost frames."""

        async def change() -> None:
            for link in (self.link(*ends) for ends in links):
                for name, value in values.items():
                    setattr(link, name, value)
                if breaks:
                    for connection in list(link.stale):
                        connection.close()
                    link.stale.clear()

        self._run(change())

    def lag(self, broker: int, seconds: float) -> None:
        """Delay records of the metadata log that are appended from now on, on their way to a broker; 0 ends the delay.

        Only its fetches from the controller are concerned. They pass a slow link at once, whose delay is added to that
        of the records.
        """

        async def change() -> None:
            self.lags.pop(broker, None)
            if seconds:
                self.lags[broker] = ProxyDelay(int(time.time() * 1000), seconds)

        self._run(change())

    def stall(self, broker: int, *, stalled: bool) -> None:
        """Hold fetch responses with records that arrive at a broker, as if it could not append; or release them."""

        async def change() -> None:
            self.stalled = self.stalled | {broker} if stalled else self.stalled - {broker}

        self._run(change())

    def links(self) -> list[tuple[int, int]]:
        """All links that were used or changed."""
        return list(self._links)

    def close(self) -> None:
        """Close all connections, and end the thread."""

        async def stop() -> None:
            for server in self._servers:
                server.close()
            for connection in list(self._connections):
                connection.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        with contextlib.suppress(Exception):
            self._run(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._loop.is_running():
            self._loop.close()


class _Connection:
    """Forwards frames between a client and the proxy's target."""

    def __init__(
        self,
        proxies: Proxies,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: int | None,
        target: int,
        *,
        kafka: bool,
    ) -> None:
        self._proxies = proxies
        self._near = (reader, writer)
        self._far: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._source = source
        self._target = target
        self._kafka = kafka
        self._asked: deque[ProxiedRequest] = deque()
        self._closed = False
        self._pulse = b""

    def close(self) -> None:
        """Break the connection."""
        self._closed = True
        self._proxies._connections.discard(self)  # noqa: SLF001
        for _, writer in filter(None, (self._near, self._far)):
            with contextlib.suppress(Exception):
                writer.transport.abort()

    async def carry(self, port: int) -> None:
        """Forward frames in both directions until one side closes."""
        self._proxies._connections.add(self)  # noqa: SLF001
        try:
            self._far = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        except OSError:
            self.close()
            return
        there = asyncio.ensure_future(self._pump(self._near[0], self._far[1], self._request, None))
        back = asyncio.ensure_future(self._pump(self._far[0], self._near[1], self._answer, self._arrive))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            while not self._closed and self._source is not None and self._is_cut():
                await asyncio.sleep(0.05)  # The peer is not notified that the other side is gone.
            if self._pulse and not self._closed and there.done():
                back.cancel()
                await asyncio.wait((back,))
                await self._linger()
        finally:
            self.close()
            for task in (there, back):
                task.cancel()

    def _beat(self) -> None:
        """Send the control plane a heartbeat of the broker."""
        if self._far is not None and self._source is not None and self._reaches_control:
            self._far[1].write(_SIZE.pack(len(self._pulse)) + self._pulse)

    @property
    def _reaches_control(self) -> bool:
        return self._target in self._proxies.controllers

    async def _linger(self) -> None:
        """After the process ended: keep its session alive as long as required, then let it expire as usual."""
        assert self._far is not None
        reader, writer = self._far
        until = time.monotonic() + LINGER_S
        with contextlib.suppress(OSError):
            while time.monotonic() < until and not self._closed and not reader.at_eof():
                if self._source in self._proxies.kept:
                    self._beat()
                    await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1 << 16), PULSE_S)
                await asyncio.sleep(PULSE_S)

    def _is_cut(self) -> bool:
        assert self._source is not None
        links = (self._proxies.link(self._source, self._target), self._proxies.link(self._target, self._source))
        return any(link.cut or EVERYTHING in link.lost for link in links)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        look: Callable[[bytes], Due],
        arrive: Callable[[bytes], Awaitable[bytes]] | None,
    ) -> None:
        try:
            while True:
                frame = await reader.readexactly(_SIZE.unpack(await reader.readexactly(_SIZE.size))[0])
                link, delay_s, looks, pass_on = look(frame)
                due = time.monotonic() + delay_s
                pulse_s = time.monotonic() + PULSE_S
                last_s = time.monotonic() + UNSEEN_S
                while (
                    not (link and link.cut)
                    and not (self._proxies.frozen and frame is self._pulse)
                    and (time.monotonic() < due or (self._is_unseen(looks) and time.monotonic() < last_s))
                ):
                    if self._proxies.frozen and link is not None and link.delay_s:
                        due += _LOOK_S
                        if self._pulse == _ZOOKEEPER_PING and time.monotonic() > pulse_s:
                            pulse_s += PULSE_S  # Pings would queue behind frozen frames.
                            self._beat()
                    left_s = due - time.monotonic()
                    await asyncio.sleep(min(_LOOK_S, left_s) if left_s > 0 else _LOOK_S / 4)
                if link is not None and (link.cut or pass_on is None):
                    link.stale.add(self)
                    continue
                if arrive is not None:
                    frame = await arrive(frame)
                writer.write(_SIZE.pack(len(frame)) + frame)
                if pass_on is not None:
                    pass_on()
                await writer.drain()
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return

    def _is_unseen(self, looks: int | None) -> bool:
        """Whether an event before the given poll may be still unobserved or not acted on: the first poll after it may
        observe it, and by the second the reaction is complete.
        """
        now = self._proxies.looks
        return looks is not None and now is not None and now < looks + 2

    async def _arrive(self, frame: bytes) -> bytes:
        """Hold a fetch response with records that has passed its link while its receiver's disk stalls. Remove records
        of the metadata log that are not due yet: the broker fetches them again.
        """
        request, source = self._answered, self._source
        if request is None or request.key != FETCH or source is None:
            return frame
        proxies = self._proxies
        if not self._reaches_control:
            while source in proxies.stalled and metadata.may_append(frame, request.version) and not self._closed:
                await asyncio.sleep(_LOOK_S)
            return frame
        first_ms = metadata.first_ms(frame, request.version) if source in proxies.lags else None
        if first_ms is None:
            return frame
        until_s = time.monotonic() + EMPTY_S
        while first_ms > (last_ms := self._due_ms(source)) and time.monotonic() < until_s:
            await asyncio.sleep(_LOOK_S)
        return metadata.until(frame, request.version, last_ms)

    def _due_ms(self, source: int) -> int:
        """Time stamp up to which records of the metadata log are due at a broker."""
        lag, now_ms = self._proxies.lags.get(source), int(time.time() * 1000)
        if lag is None:
            return now_ms
        late_s = lag.seconds + self._proxies.link(self._target, source).delay_s
        return max(lag.since_ms, now_ms - int(late_s * 1000))

    def _request(self, frame: bytes) -> Due:
        request = head_of(frame) if self._kafka else None
        if request is not None and self._source is None:
            self._source = source_of(request)
        if self._source is None:
            return None, 0.0, None, lambda: None
        link = self._proxies.link(self._source, self._target)
        if EVERYTHING in link.lost:
            return link, 0.0, None, None
        if request is None:
            self._pulse = b"" if frame[4:8] == _ZOOKEEPER_CLOSE else _ZOOKEEPER_PING
            return link, link.delay_s, None, lambda: None
        if request.key == HEARTBEAT:
            self._pulse = frame
        self._asked.append(request)
        if request.key in link.lost:
            self._asked.pop()
            return link, 0.0, None, None
        if self._proxies.frozen and request.key in _LIFE:
            return link, 0.0, None, lambda: None
        source = self._source
        if self._is_late_metadata(request, source):
            return link, 0.0, None, lambda: None
        beat_s = self._proxies.beat_s if request.key == FETCH and not self._reaches_control else 0.0
        if beat_s:
            self._proxies.on_message("fetching", source, self._target, {})
        looks = self._proxies.looks if beat_s else None
        return link, link.delay_s + beat_s, looks, lambda: self._tell_request(source, request)

    def _answer(self, frame: bytes) -> Due:
        if self._source is None:
            return None, 0.0, None, lambda: None
        link = self._proxies.link(self._target, self._source)
        if EVERYTHING in link.lost:
            return link, 0.0, None, None
        (correlation,) = struct.unpack_from(">i", frame)
        request = None
        while self._kafka and self._asked and request is None:
            first = self._asked.popleft()
            request = first if first.correlation == correlation else None
        self._answered = request
        if request is not None and self._is_late_metadata(request, self._source):
            return link, 0.0, None, lambda: None
        if request is not None and request.key == EPOCH_END and not (link.cut or link.delay_s):
            # Before the follower can log its reaction.
            self._tell_answer(request, frame)
            return link, 0.0, None, lambda: None
        looks = request.looks if request is not None else None
        return link, link.delay_s, looks, lambda: self._tell_answer(request, frame)

    def _is_late_metadata(self, request: ProxiedRequest, source: int) -> bool:
        """Whether a request is for the metadata log, by a broker that receives it late."""
        return request.key == FETCH and self._reaches_control and source in self._proxies.lags

    def _tell_request(self, source: int, request: ProxiedRequest) -> None:
        if self._reaches_control or request.key != FETCH:
            return
        offsets = list(_fetch_offsets(request, self._proxies.observed))
        request.looks = self._proxies.looks
        for tag, offset in offsets:
            self._proxies.on_message("fetch", source, self._target, {"offset": offset, **tag})
        if not offsets:
            self._proxies.on_message("fetch", source, self._target, {})

    def _tell_answer(self, request: ProxiedRequest | None, frame: bytes) -> None:
        if request is None or self._reaches_control or self._source is None:
            return
        if request.key == EPOCH_END:
            for tag in _answered(request, frame, self._proxies.observed):
                self._proxies.on_message("epoch-end", self._source, self._target, tag)
        if request.key != FETCH:
            return
        for tag, hw in _high_watermarks(request, frame, self._proxies.observed):
            self._proxies.on_message("fetched", self._source, self._target, {"hw": hw, **tag})


def _of_partitions(topics: Iterable[Any], number: str, observed: Observed) -> Iterator[tuple[dict[str, str], Any]]:
    """The observed partitions in a request or response, with their tags; `number` is the field with their number."""
    for topic in topics:
        for partition in topic.partitions:
            names = [getattr(topic, field, None) for field in ("topic_id", "topic", "name")]
            places = [(name, getattr(partition, number)) for name in names if name]
            tag = next((observed[place] for place in places if place in observed), None)
            if not observed:
                yield {}, partition
                return
            if tag is not None:
                yield tag, partition


def _fetch_offsets(request: ProxiedRequest, observed: Observed) -> Iterator[tuple[dict[str, str], int]]:
    """Fetch offsets in a follower's request, without those that are unchanged."""
    from kafka.protocol.consumer import FetchRequest

    body = request.body[1:] if request.version >= 12 else request.body
    with contextlib.suppress(Exception):
        decoded = FetchRequest.decode(body, version=request.version)
        for tag, partition in _of_partitions(decoded.topics, "partition", observed):
            yield tag, int(partition.fetch_offset)


def _answered(request: ProxiedRequest, frame: bytes, observed: Observed) -> Iterator[dict[str, str]]:
    """The partitions for which a request for an epoch's end offset got a response, whatever its contents."""
    from kafka.protocol.consumer import OffsetForLeaderEpochResponse

    with contextlib.suppress(Exception):
        decoded = OffsetForLeaderEpochResponse.decode(frame, version=request.version, header=True)
        for tag, partition in _of_partitions(decoded.topics, "partition", observed):
            if partition.error_code == 0:
                yield tag


def _high_watermarks(request: ProxiedRequest, frame: bytes, observed: Observed) -> Iterator[tuple[dict[str, str], int]]:
    """The high watermarks in a response to a follower's fetch."""
    from kafka.protocol.consumer import FetchResponse

    with contextlib.suppress(Exception):
        decoded = FetchResponse.decode(frame, version=request.version, header=True)
        for tag, partition in _of_partitions(decoded.responses, "partition_index", observed):
            if partition.error_code == 0:
                yield tag, int(partition.high_watermark)
