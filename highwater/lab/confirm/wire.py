"""Single requests to brokers, with the messages that kafka-python makes and reads."""

from __future__ import annotations

import socket
import struct
import warnings
from contextlib import closing, suppress
from importlib import import_module
from typing import Any, Final

CLIENT: Final = "highwater"
_SIZE: Final = struct.Struct(">i")
RETRIABLE: Final = (OSError, EOFError)


def load() -> None:
    """Import the modules that threads use: threads must not import them concurrently."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in ("protocol.admin", "protocol.consumer", "protocol.producer", "record"):
            import_module(f"kafka.{name}")


class Connection:
    """A connection to a broker on loopback; sends one request at a time, and waits for its response so many seconds."""

    def __init__(self, port: int, seconds: float, client: str = CLIENT) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self._client = client
        self._id = 0

    def close(self) -> None:
        """Close the connection, also for a thread that waits for a response."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._file.close()

    def wait_for_ever(self) -> None:
        """Wait for responses without a limit."""
        self._socket.settimeout(None)

    def ask(self, request: Any) -> Any:
        """Send a kafka-python request and return its response; None if there is none (acks=0).

        Raises:
            OSError: the request timed out.
            EOFError: the broker closed the connection.
        """
        self.send(request)
        return self.answer_to(request)

    def send(self, request: Any) -> None:
        """Send a kafka-python request, and do not wait for its response."""
        self._id += 1
        request.with_header(correlation_id=self._id, client_id=self._client)
        self._socket.sendall(bytes(request.encode(header=True, framed=True)))

    def answer_to(self, request: Any) -> Any:
        """The response to a request that was sent; see `ask`. Responses come in the order of requests."""
        if not request.expect_response():
            return None
        answer = self.receive()
        kind = request.header.get_response_class()
        return kind.decode(answer, version=request.API_VERSION, header=True)

    def exchange(self, key: int, version: int, body: bytes) -> bytes:
        """Send an encoded request (not a flexible version), and return the body of its response."""
        self._id += 1
        client = self._client.encode()
        head = struct.pack(">hhih", key, version, self._id, len(client)) + client
        self._socket.sendall(_SIZE.pack(len(head) + len(body)) + head + body)
        return self.receive()[_SIZE.size :]

    def receive(self) -> bytes:
        """Receive the next frame."""
        return self._read(_SIZE.unpack(self._read(_SIZE.size))[0])

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError("the broker closed the connection")
        return data


def ask(port: int, request: Any, seconds: float) -> Any:
    """Send one request on a new connection; see `Connection.ask`."""
    with closing(Connection(port, seconds)) as connection:
        return connection.ask(request)
