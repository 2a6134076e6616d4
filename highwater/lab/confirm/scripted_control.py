"""The script as controller of a ZooKeeper release: it holds the controller znode, writes the partition's state, and
sends brokers the controller's requests.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import wire
from highwater.lab.confirm.history import NOBODY
from highwater.lab.confirm.proxy import CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from highwater.lab.confirm.cluster import KafkaCluster

CONTROLLER: Final = 999
"""Broker id of the script as controller."""
_EPOCH: Final = 1
_LEADER_AND_ISR: Final = (4, 0)
_UPDATE_METADATA: Final = (6, 3)
"""API keys and versions, supported by all ZooKeeper releases here."""
_NO_VERSION: Final = 1 << 30
"""A version that the partition's znode never has, so that the leader's ISR writes fail and only the script changes it.
"""
_HOST: Final = "127.0.0.1"
_SESSION_S: Final = 60.0
_ANSWER_S: Final = 5.0


def wait_for_zookeeper(port: int, seconds: float) -> bool:
    """Wait until ZooKeeper is healthy; return False on timeout."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1) as one:
            one.sendall(b"ruok")
            if one.recv(4) == b"imok":
                return True
        time.sleep(0.05)
    return False


def client(port: int) -> Any:
    """A connected ZooKeeper client."""
    from kazoo.client import KazooClient

    one = KazooClient(hosts=f"{_HOST}:{port}", timeout=_SESSION_S)
    one.start(timeout=_SESSION_S)
    return one


class ScriptedControl:
    """Lets the script make all decisions about a topic's partition 0 until `release`, from before any broker starts."""

    def __init__(self, cluster: KafkaCluster, topic: str, replicas: Sequence[int]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._replicas = list(replicas)
        self._client = client(cluster.control.port)
        self._path = f"/brokers/topics/{topic}/partitions/0/state"
        self._state: tuple[int, int, tuple[int, ...]] | None = None
        self._registered: set[int] = set()
        self._untold: set[int] = set()
        self._writable = False
        seat = {"version": 1, "brokerid": CONTROLLER, "timestamp": "0"}
        self._client.create("/controller", json.dumps(seat).encode(), ephemeral=True)
        self._client.create("/controller_epoch", str(_EPOCH).encode())
        assignment = {"version": 1, "partitions": {"0": self._replicas}}
        self._client.create(f"/brokers/topics/{topic}", json.dumps(assignment).encode(), makepath=True)
        self._client.ensure_path(f"/brokers/topics/{topic}/partitions/0")

    def close(self) -> None:
        """Close the session, which frees the controller znode."""
        with contextlib.suppress(Exception):
            self._client.stop()
            self._client.close()

    def release(self) -> None:
        """Let a broker become controller, and allow the leader's ISR writes again."""
        if self._state is not None and self._cluster.brokers.get(self._state[0], self._cluster.control).alive:
            self._writable = True
            self.decide(self._state[0], self._state[2])
        self.close()

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """Start a new leader epoch, and send it to all registered brokers."""
        leader = leader or NOBODY
        epoch = -1 if self._state is None else self._state[1]
        told = {"controller_epoch": _EPOCH, "leader": leader, "version": 1, "leader_epoch": epoch + 1, "isr": list(isr)}
        text = json.dumps(told).encode()
        if self._state is None:
            self._client.create(self._path, text)
        else:
            self._client.set(self._path, text)
        self._state = (leader, epoch + 1, isr)
        for broker in sorted(self._registered, key=lambda one: one != leader):  # It must lead before others follow.
            self.tell(broker)

    def tell(self, broker: int) -> None:
        """Send a newly registered broker the state; later if it is unreachable."""
        self._registered.add(broker)
        node = self._cluster.node(broker)
        if self._state is None or not node.alive or broker not in self._replicas:
            return
        proxies = self._cluster.proxies
        if proxies.link(CONTROL, broker).cut or proxies.link(broker, CONTROL).cut:
            self._untold.add(broker)
            return
        self._untold.discard(broker)
        with (
            contextlib.suppress(*wire.RETRIABLE),
            contextlib.closing(wire.Connection(node.port, _ANSWER_S, str(CONTROLLER))) as connection,
        ):
            connection.exchange(*_UPDATE_METADATA, self._update_metadata())
            connection.exchange(*_LEADER_AND_ISR, self._leader_and_isr())

    def tell_again(self) -> None:
        """After links are healed, send the state to brokers that were unreachable."""
        for broker in sorted(self._untold):
            self.tell(broker)

    def end_session(self, broker: int) -> None:
        """Remove a broker's old session: the script does not wait for its expiry, and it would block registration."""
        from kazoo.exceptions import NoNodeError

        with contextlib.suppress(NoNodeError):
            self._client.delete(f"/brokers/ids/{broker}")

    def gone(self, broker: int) -> None:
        """Handle the end of a broker's session."""
        self._registered.discard(broker)

    def _partition(self) -> bytes:
        assert self._state is not None
        leader, epoch, isr = self._state
        head = _string(self._topic) + struct.pack(">iiii", 0, _EPOCH, leader, epoch)
        version = self._client.get(self._path)[1].version if self._writable else _NO_VERSION
        return head + _numbers(isr) + struct.pack(">i", version) + _numbers(self._replicas)

    def _leader_and_isr(self) -> bytes:
        brokers = [self._cluster.brokers[broker] for broker in self._replicas]
        live = b"".join(
            struct.pack(">i", node.id) + _string(_HOST) + struct.pack(">i", node.proxy_port) for node in brokers
        )
        one = struct.pack(">iii", CONTROLLER, _EPOCH, 1) + self._partition()
        return one + struct.pack(">i", len(brokers)) + live

    def _update_metadata(self) -> bytes:
        brokers = [self._cluster.brokers[broker] for broker in sorted(self._registered)]
        live = b""
        for node in brokers:
            live += struct.pack(">ii", node.id, 2)
            for port, name in ((node.proxy_port, "PEERS"), (node.client_port, "CLIENTS")):
                live += struct.pack(">i", port) + _string(_HOST) + _string(name) + struct.pack(">h", 0)
            live += struct.pack(">h", -1)
        one = struct.pack(">iii", CONTROLLER, _EPOCH, 1) + self._partition()
        return one + struct.pack(">i", len(brokers)) + live


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _numbers(values: Iterable[int]) -> bytes:
    values = list(values)
    return struct.pack(f">i{len(values)}i", len(values), *values)
