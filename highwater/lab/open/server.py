"""The web server: loopback only, read only, and for pages of this address only."""

from __future__ import annotations

import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.open.site import FAILED, Answer, refused

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
_NAMES: Final = (HOST, "localhost")
FORBIDDEN: Final = 403
METHOD_NOT_ALLOWED: Final = 405
_NOT_IMPLEMENTED: Final = 501
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TIMEOUT_S: Final = 30
"""Seconds after which a connection without a request is closed."""


class LoopbackServer(ThreadingHTTPServer):
    """Serves answers on 127.0.0.1; a context manager.

    Args:
        answer: called with the path and the query of an address, in a thread of its own.
        port: the port; 0: any that is free.
        verbose: whether tracebacks of errors go to stderr.

    Raises:
        OSError: the port cannot be had.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Callable[[str, str], Answer], port: int = 0, *, verbose: bool = False) -> None:
        self.answer = answer
        self.verbose = verbose
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer
    timeout = TIMEOUT_S
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self) -> Answer:
        if not self._is_meant():
            return refused(FORBIDDEN, "this address is not the one that was asked for")
        path, _, query = self.path.partition("?")
        try:
            return self.server.answer(path, query)
        except Exception as error:
            if self.server.verbose:
                traceback.print_exc()
            return refused(FAILED, f"{type(error).__name__}: {error}")

    def _is_meant(self) -> bool:
        """Whether a request is for this server, and not from a page of another site.

        A site may let its own name point at 127.0.0.1 (DNS rebinding): then the browser names that in Host.
        """
        hosts = self.headers.get_all("Host", [])
        names = [f"{name}:{self.server.server_port}" for name in _NAMES]
        names += _NAMES if self.server.server_port == 80 else ()  # A browser leaves this port out.
        return len(hosts) == 1 and hosts[0].lower() in names and self.headers.get("Sec-Fetch-Site") != "cross-site"

    def send_error(self, code: int, *_: Any, **_named: Any) -> None:
        """Answer a request that is none, or has another method than GET and HEAD."""
        code = METHOD_NOT_ALLOWED if code == _NOT_IMPLEMENTED else code
        self.close_connection = True
        self._send(
            refused(code, "only GET and HEAD are answered" if code == METHOD_NOT_ALLOWED else "this is no request")
        )

    def _send(self, answer: Answer) -> None:
        body = answer.text.encode(errors="replace")
        self.send_response(answer.status)
        kind = "text/plain" if answer.file else "text/html"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if answer.file:
            self.send_header("Content-Disposition", f'attachment; filename="{answer.file}"')
        self.send_header("Content-Length", str(len(body)))
        rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        self.send_header("Content-Security-Policy", f"{answer.policy}; {rest}")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if answer.location:
            self.send_header("Location", answer.location)
        if answer.status == METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "Highwater"

    def log_message(self, *_: Any, **_named: Any) -> None:
        return
