"""A broker reads one request of a producer's connection at a time."""

from __future__ import annotations

import pytest

from sim.history import steps
from sim.hosts.socket_server import ProduceHandler, SocketServer
from sim.kernel.scheduler import Gate, Kernel
from sim.protocol.messages import ProduceRequest
from tests.sim.world import World

ALL, ONE = -1, 1
TIMEOUT_US = 30_000_000
CONFIG = {"auto.leader.rebalance.enable": False, "min.insync.replicas": 2, "replica.lag.time.max.ms": 300_000}


def cut_off(*, idempotent: bool = True) -> World:
    """Broker 1 leads, and followers do not fetch."""
    world = World("kraft", config={**CONFIG, "enable.idempotence": idempotent}).ready()
    assert world.write() == 0
    for follower in (2, 3):
        world.cluster.links.cut(follower, 1)
    return world


@pytest.mark.parametrize("mode", ["kip320", "kraft"])
@pytest.mark.parametrize("elision", [True, False])
def test_the_next_batch_is_appended_once_the_one_before_is_acknowledged(mode: str, elision: bool) -> None:
    world = World(mode, config={**CONFIG, "enable.idempotence": True, "sim.elision": elision}).ready()
    for follower in (2, 3):
        world.cluster.links.worsen(steps.SLOW, follower, 1, 200_000)
    for _ in range(3):
        world.write(seconds=0)
    world.run(2)
    assert world.logs == [[0, 1, 2]] * 3
    appended = [step["t"] for step in world.of("append", broker=1)]
    acknowledged = [step["t"] for step in world.of("acknowledges", broker=1)]
    assert appended[1:] == acknowledged[:-1]


def test_a_batch_that_waits_for_no_follower_holds_up_none() -> None:
    world = cut_off(idempotent=False)
    for _ in range(3):
        world.write(acks=1, seconds=0)
    world.run()
    assert world.logs[0] == [0, 1, 2, 3]


def test_the_producer_gives_up_and_the_broker_reads_one_more_request() -> None:
    """The retries come on another connection, and do not wait for the old one."""
    world = cut_off()
    for _ in range(3):
        world.write(seconds=0)
    begin = world.until("append", broker=1, record=1)["t"]
    world.run(29.9)
    assert world.logs[0] == [0, 1]
    world.run(0.2)
    assert world.logs[0] == [0, 1, 2]
    assert world.of("append", broker=1, record=2)[0]["t"] == begin + TIMEOUT_US
    world.run(20)
    assert world.logs[0] == [0, 1, 2]
    world.cluster.links.heal_all()
    world.run(60)
    assert world.logs == [[0, 1, 2, 3]] * 3
    assert [step["record"] for step in world.of("ack")] == [0, 1, 2, 3]


def test_nothing_is_answered_after_the_timeout() -> None:
    world = cut_off()
    world.write(seconds=31)
    world.cluster.links.heal_all()
    world.run(60)
    assert len(world.of("acknowledges", record=1)) == 1  # The retry.
    assert len(world.of("ack", record=1)) == 1


def test_a_leader_that_resigns_answers_all() -> None:
    world = cut_off()
    for _ in range(2):
        world.write(seconds=0)
    world.run()
    world.cluster.links.cut(1, 0)
    world.cluster.links.cut(0, 1)
    world.run(20)
    assert world.cluster.control.state.leader != 1
    world.cluster.links.heal_all()
    world.run(10)
    assert world.logs == [[0, 1, 2]] * 3


class Handler(ProduceHandler):
    """Notes what it is given."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.expired: list[int] = []

    def on_produce(self, request: ProduceRequest) -> None:
        self.read.append(request.first_id)

    def expire_produce(self, request: ProduceRequest) -> None:
        self.expired.append(request.first_id)


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def server(kernel: Kernel, handler: Handler) -> SocketServer:
    one = SocketServer(kernel, Gate(1))
    one.serve(handler)
    return one


def request(first_id: int, *, acks: int = ALL, connection: int = 0, client: int = 1001) -> ProduceRequest:
    return ProduceRequest(client, "t-0", first_id, 1, acks, connection=connection)


def test_requests_of_a_connection_are_read_in_order(kernel: Kernel, handler: Handler, server: SocketServer) -> None:
    first = request(1)
    for one in (first, request(2, acks=ONE), request(3), request(4)):
        server.receive(one)
    assert handler.read == [1]
    server.answered(first)
    server.receive(request(5, acks=ONE))  # It comes between the answer and the next request.
    assert handler.read == [1]
    kernel.run_until(0)
    assert handler.read == [1, 2, 3]


def test_other_connections_are_read(handler: Handler, server: SocketServer) -> None:
    for one in (request(1), request(2, connection=1), request(3, client=1004), request(4)):
        server.receive(one)
    assert handler.read == [1, 2, 3]


def test_an_answer_to_another_request_changes_nothing(kernel: Kernel, handler: Handler, server: SocketServer) -> None:
    first, second = request(1), request(2)
    server.receive(first)
    server.receive(second)
    server.answered(second)
    server.answered(request(9, client=1004))
    kernel.run_until(0)
    assert handler.read == [1]


@pytest.mark.parametrize(("arrives_us", "expires_us"), [(5, TIMEOUT_US), (TIMEOUT_US + 7, TIMEOUT_US + 7)])
def test_a_wait_ends_if_others_wait_behind_it(
    kernel: Kernel, handler: Handler, server: SocketServer, arrives_us: int, expires_us: int
) -> None:
    first = request(1)
    server.receive(first)
    kernel.run_until(arrives_us)
    assert server.is_late(first) == (arrives_us >= TIMEOUT_US)
    for one in (request(2), request(3), request(4)):
        server.receive(one)
    kernel.run_until(max(arrives_us, expires_us - 1))
    assert handler.expired == ([] if arrives_us < expires_us else [1])
    kernel.run_until(expires_us)
    assert (handler.expired, handler.read) == ([1], [1, 2])
    kernel.run_until(10 * TIMEOUT_US)
    assert (handler.expired, handler.read) == ([1], [1, 2])  # The connection is closed.


def test_an_answer_in_time_ends_no_wait(kernel: Kernel, handler: Handler, server: SocketServer) -> None:
    first, second = request(1), request(2)
    server.receive(first)
    server.receive(second)
    kernel.run_until(TIMEOUT_US - 1)
    server.answered(first)
    kernel.run_until(TIMEOUT_US)
    server.answered(second)
    kernel.run_until(10 * TIMEOUT_US)
    assert (handler.expired, handler.read) == ([], [1, 2])
    assert not server.is_late(first)
