"""Links that are cut, slow, or lose some requests, between ends that are not Kafka."""

from __future__ import annotations

import socket
import struct
import threading
import time
import uuid
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.confirm import proxy, wire
from highwater.lab.confirm.proxy import API_VERSIONS, CONTROL, EPOCH_END, EVERYTHING, FETCH, HEARTBEAT, Proxies
from tests.highwater.lab.confirm.test_metadata import batch, records_of, response

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("kafka")
from kafka.protocol.consumer import FetchRequest, FetchResponse, OffsetForLeaderEpochResponse

METADATA = 3
PATIENCE_S = 10.0
SOON_S = 0.3


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def request(
    key: int, correlation: int = 7, client: str = "broker-2-fetcher-0", body: bytes = b"", version: int = 0
) -> bytes:
    """A request's frame, without its size."""
    return struct.pack(">hhih", key, version, correlation, len(client)) + client.encode() + body


class Server:
    """Answers every frame with its correlation id, and remembers it."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with closing(one), suppress(OSError, EOFError):
            while True:
                frame = receive(one)
                self.frames.append(frame)
                send(one, self.answer(frame))

    def answer(self, frame: bytes) -> bytes:
        return frame[4:8]

    def has(self, count: int) -> bool:
        """Whether so many frames came, in good time."""
        return wait(lambda: len(self.frames) >= count)


def send(one: socket.socket, frame: bytes) -> None:
    one.sendall(struct.pack(">i", len(frame)) + frame)


def receive(one: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
        part = one.recv(1 << 16)
        if not part:
            raise EOFError
        data += part
    return data[4:]


def wait(holds: Any) -> bool:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        if holds():
            return True
        time.sleep(0.01)
    return False


def is_silent(one: socket.socket) -> bool:
    one.settimeout(SOON_S)
    try:
        return one.recv(1) == b"?"
    except TimeoutError:
        return True
    finally:
        one.settimeout(PATIENCE_S)


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.socket.close()


class World:
    """Broker 2 connects to broker 1, and to the control plane, through proxies."""

    def __init__(self, server: Server) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.proxies = Proxies(lambda what, source, target, _: self.told.append((what, source, target)), 0.0)
        self.peer, self.control = free_port(), free_port()
        self.proxies.listen(self.peer, server.port, source=None, target=1, kafka=True)
        self.proxies.listen(self.control, server.port, source=2, target=CONTROL, kafka=True)

    def connect(self, *, control: bool = False) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.control if control else self.peer), timeout=PATIENCE_S)


@pytest.fixture
def world(server: Server) -> Iterator[World]:
    wire.load()
    one = World(server)
    yield one
    one.proxies.close()


def test_frames_pass_both_ways(server: Server, world: World) -> None:
    with world.connect() as one:
        send(one, request(METADATA, 5))
        assert receive(one) == struct.pack(">i", 5)
    assert server.frames == [request(METADATA, 5)]


def test_a_cut_link_is_silent_and_breaks_when_it_is_healed(server: Server, world: World) -> None:
    with world.connect() as one:
        send(one, request(METADATA))
        receive(one)
        world.proxies.cut(2, 1)
        send(one, request(METADATA))
        assert is_silent(one)
        assert len(server.frames) == 1
        world.proxies.heal(2, 1)
        with pytest.raises((EOFError, ConnectionError)):
            receive(one)
    with world.connect() as again:
        send(again, request(METADATA, 9))
        assert receive(again) == struct.pack(">i", 9)


def test_a_link_that_is_cut_one_way_still_brings_requests(server: Server, world: World) -> None:
    world.proxies.cut(1, 2)
    with world.connect() as one:
        send(one, request(METADATA))
        assert server.has(1)
        assert is_silent(one)


def test_a_cut_concerns_one_pair_of_brokers_only(server: Server, world: World) -> None:
    world.proxies.cut(3, 1)
    with world.connect() as one:
        send(one, request(METADATA, client="broker-2-fetcher-0"))
        receive(one)
    with world.connect() as other:
        send(other, request(METADATA, client="broker-3-fetcher-0"))
        assert is_silent(other)
    assert len(server.frames) == 1


def test_a_slow_link_takes_longer(world: World) -> None:
    world.proxies.slow(2, 1, SOON_S)
    with world.connect() as one:
        begin_s = time.monotonic()
        send(one, request(METADATA))
        receive(one)
        assert time.monotonic() - begin_s >= SOON_S


def test_heartbeats_pass_a_slow_link_at_once_while_no_time_passes_for_it(server: Server, world: World) -> None:
    world.proxies.slow(2, CONTROL, SOON_S)
    with world.connect(control=True) as slow, world.connect(control=True) as one:
        send(slow, request(METADATA, 1))
        world.proxies.frozen = True
        send(one, request(API_VERSIONS, 2))
        assert receive(one) == struct.pack(">i", 2)
        send(one, request(HEARTBEAT, 3))
        assert receive(one) == struct.pack(">i", 3)
        assert is_silent(slow)
        world.proxies.frozen = False
        assert receive(slow) == struct.pack(">i", 1)


def test_a_heartbeat_that_is_on_its_way_when_time_stops_arrives(world: World) -> None:
    world.proxies.slow(2, CONTROL, 2 * PATIENCE_S)
    with world.connect(control=True) as one:
        send(one, request(HEARTBEAT, 1))
        assert is_silent(one)
        world.proxies.frozen = True
        assert receive(one) == struct.pack(">i", 1)


def test_a_zombie_loses_only_heartbeats_and_healing_links_does_not_help(server: Server, world: World) -> None:
    world.proxies.silence(2, [HEARTBEAT])
    with world.connect(control=True) as one:
        send(one, request(HEARTBEAT, 1))
        send(one, request(METADATA, 2))
        assert receive(one) == struct.pack(">i", 2)
    world.proxies.heal(2, CONTROL)
    with world.connect(control=True) as one:
        send(one, request(HEARTBEAT, 3))
        send(one, request(METADATA, 4))
        assert receive(one) == struct.pack(">i", 4)
    assert server.frames == [request(METADATA, 2), request(METADATA, 4)]
    world.proxies.silence(2, [EVERYTHING])
    with world.connect(control=True) as one:
        send(one, request(METADATA, 5))
        assert is_silent(one)
    world.proxies.silence(2, ())
    with world.connect(control=True) as one:
        send(one, request(HEARTBEAT, 6))
        assert receive(one) == struct.pack(">i", 6)


def test_heartbeats_of_an_ended_process_continue_with_its_session(server: Server, world: World) -> None:
    with world.connect(control=True) as one:
        send(one, request(HEARTBEAT, 1))
        receive(one)
        world.proxies.kept = frozenset({2})
    assert server.has(3)
    assert set(server.frames) == {request(HEARTBEAT, 1)}
    world.proxies.kept = frozenset()
    time.sleep(2 * proxy.PULSE_S)
    count = len(server.frames)
    time.sleep(2 * proxy.PULSE_S)
    assert len(server.frames) == count


def test_a_fetch_waits_until_what_came_before_was_seen_and_acted_on(server: Server, world: World) -> None:
    world.proxies.beat_s = 0.01
    world.proxies.looks = 4
    with world.connect() as one:
        send(one, request(FETCH, body=struct.pack(">i", 2)))
        assert is_silent(one)
        world.proxies.looks = 5
        assert is_silent(one)
        world.proxies.looks = 6
        receive(one)


def test_a_fetch_response_waits_until_the_fetch_took_effect(server: Server, world: World) -> None:
    world.proxies.looks = 4
    with world.connect() as one:
        send(one, request(FETCH, body=struct.pack(">i", 2)))
        assert wait(lambda: world.told)
        assert is_silent(one)
        world.proxies.looks = 5
        assert is_silent(one)
        world.proxies.cut(1, 2)
        world.proxies.looks = 6
        assert is_silent(one)
        world.proxies.heal(1, 2)
    with world.connect() as one:
        send(one, request(FETCH, body=struct.pack(">i", 2)))
        assert is_silent(one)
        world.proxies.looks = 8
        receive(one)


def test_a_stalled_disk_holds_fetch_responses_that_have_arrived_even_if_the_link_is_cut_meanwhile(world: World) -> None:
    world.proxies.stall(2, stalled=True)
    with world.connect() as one, world.connect() as other:
        send(one, request(FETCH, body=struct.pack(">i", 2)))
        send(other, request(METADATA))
        receive(other)
        assert is_silent(one)
        world.proxies.cut(1, 2)
        world.proxies.stall(2, stalled=False)
        receive(one)


def test_a_stalled_disk_does_not_hold_a_response_without_records() -> None:
    controller = Controller(b"")
    world = World(controller)
    try:
        world.proxies.stall(2, stalled=True)
        with world.connect() as one:
            send(one, request(FETCH, version=17))
            assert records_of(receive(one), 17) == b""
    finally:
        world.proxies.close()
        controller.socket.close()


class Controller(Server):
    """Answers fetches with these records, or with a batch of now; see `metadata`."""

    def __init__(self, records: bytes | None = None) -> None:
        self._records = records
        super().__init__()

    def answer(self, frame: bytes) -> bytes:
        key, version, correlation = struct.unpack_from(">hhi", frame)
        head = struct.pack(">i", correlation)
        records = batch(int(time.time() * 1000)) if self._records is None else self._records
        return head + response(version, records)[4:] if key == FETCH else head


def test_a_lagging_broker_gets_no_record_of_the_metadata_log_before_it_is_due() -> None:
    controller = Controller()
    world = World(controller)
    try:
        fetch = request(FETCH, version=17)
        with world.connect(control=True) as one:
            send(one, fetch)
            assert records_of(receive(one), 17)
            world.proxies.lag(2, 2 * proxy.EMPTY_S)
            world.proxies.slow(2, CONTROL, PATIENCE_S)  # Metadata is not sent for.
            time.sleep(0.01)
            begin_s = time.monotonic()
            send(one, fetch)
            assert records_of(receive(one), 17) == b""
            assert time.monotonic() - begin_s >= proxy.EMPTY_S
            world.proxies.lag(2, SOON_S)
            world.proxies.slow(CONTROL, 2, 0.1)
            time.sleep(0.01)
            begin_s = time.monotonic()
            send(one, fetch)
            assert records_of(receive(one), 17)
            assert time.monotonic() - begin_s >= SOON_S + 0.1
            world.proxies.slow(2, CONTROL, 0.0)
            world.proxies.lag(2, PATIENCE_S)
            send(one, request(METADATA))
            receive(one)
            world.proxies.lag(2, 0.0)
            send(one, fetch)
            assert records_of(receive(one), 17)
    finally:
        world.proxies.close()
        controller.socket.close()


def test_fetches_are_told_when_they_pass(server: Server, world: World) -> None:
    with world.connect() as one:
        send(one, request(FETCH, client="ReplicaFetcherThread-0-1", body=struct.pack(">i", 3)))
        receive(one)
        assert wait(lambda: world.told)
    assert world.told[0] == ("fetch", 3, 1)


@pytest.mark.parametrize(
    ("client", "source"),
    [("broker-12-fetcher-0", 12), ("3", 3), ("broker-4-to-controller", 4), ("highwater", None), ("", None)],
)
def test_who_sent_a_request(client: str, source: int | None) -> None:
    head = proxy.head_of(request(METADATA, client=client))
    assert head is not None
    assert proxy.source_of(head) == source


def test_a_frame_that_is_too_short_is_no_request() -> None:
    assert proxy.head_of(b"\0\1") is None
    assert proxy.head_of(struct.pack(">hhih", 1, 0, 0, 50) + b"x") is None


def test_a_connection_to_nobody_ends(world: World) -> None:
    port = free_port()
    world.proxies.listen(port, free_port(), source=None, target=1, kafka=True)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as one, suppress(ConnectionError):
        assert one.recv(1) == b""


AUDIT = {"partition": "audit-0"}
BY_NAME: proxy.Observed = {("partition", 0): {}, ("audit", 0): AUDIT}
BY_ID: proxy.Observed = {(uuid.UUID(int=1), 0): {}, (uuid.UUID(int=2), 0): AUDIT}


@pytest.mark.parametrize(("version", "observed"), [(11, BY_NAME), (13, BY_ID)])
def test_what_is_fetched_is_told_of_its_partition(version: int, observed: proxy.Observed) -> None:
    topics = [
        FetchRequest.FetchTopic(
            topic=name,
            topic_id=uuid.UUID(int=number),
            partitions=[FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=offset)],
        )
        for number, name, offset in ((2, "audit", 5), (3, "other", 7), (1, "partition", 9))
    ]
    asked = FetchRequest(version=version, topics=topics, replica_id=2)
    body = bytes(asked.encode(version=version))
    head = proxy.ProxiedRequest(FETCH, version, 7, "2", b"\0" * (version >= 12) + body)
    assert list(proxy._fetch_offsets(head, observed)) == [(AUDIT, 5), ({}, 9)]
    assert list(proxy._fetch_offsets(head, {})) == [({}, 5)], "there is only one partition"


@pytest.mark.parametrize(("version", "observed"), [(11, BY_NAME), (13, BY_ID)])
def test_high_watermarks_are_told_of_their_partitions(version: int, observed: proxy.Observed) -> None:
    kind = FetchResponse.FetchableTopicResponse
    data = [
        kind(
            topic=name,
            topic_id=uuid.UUID(int=number),
            partitions=[kind.PartitionData(partition_index=0, high_watermark=hw, error_code=error)],
        )
        for number, name, hw, error in ((2, "audit", 5, 0), (1, "partition", 9, 6))
    ]
    answer = FetchResponse(version=version, responses=data)
    answer.with_header(correlation_id=7)
    frame = bytes(answer.encode(header=True))
    head = proxy.ProxiedRequest(FETCH, version, 7, "2", b"")
    assert list(proxy._high_watermarks(head, frame, observed)) == [(AUDIT, 5)], "the other one has an error"


def test_the_answer_for_an_epoch_is_told_of_its_partition() -> None:
    kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = [
        kind(topic=name, partitions=[kind.EpochEndOffset(partition=number, error_code=error)])
        for name, number, error in (("audit", 0, 0), ("partition", 0, 6), ("partition", 1, 0))
    ]
    answer = OffsetForLeaderEpochResponse(version=3, topics=topics)
    answer.with_header(correlation_id=7)
    head = proxy.ProxiedRequest(EPOCH_END, 3, 7, "2", b"")
    frame = bytes(answer.encode(header=True))
    assert list(proxy._answered(head, frame, BY_NAME)) == [AUDIT]


@pytest.mark.parametrize(
    ("client", "source"), [("raft-client-101", 101), ("2", 2), ("broker-3-fetcher-0", 3), ("x", None)]
)
def test_a_request_to_a_controller_says_who_sends_it(client: str, source: int | None) -> None:
    found = proxy.head_of(request(FETCH, client=client, version=17))
    assert found is not None
    assert proxy.source_of(found) == source
