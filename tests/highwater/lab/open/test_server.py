"""The server answers this machine's browser, and nothing else."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

import pytest

from highwater.lab.open.server import LoopbackServer
from highwater.lab.open.site import Answer
from tests.highwater.lab.open.served import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.highwater.lab.open.served import Served


@pytest.fixture(scope="module")
def site(swept: Path) -> Iterator[Served]:
    with served(swept) as found:
        yield found


def test_it_listens_on_loopback_only(site: Served) -> None:
    assert site.server.socket.getsockname()[0] == "127.0.0.1"
    assert site.server.address == f"http://127.0.0.1:{site.server.server_port}/"


def test_every_answer_forbids_scripts_frames_and_guessing_of_types(site: Served) -> None:
    for path, status in (("/", 302), (site.home, 200), ("/nothing", 404), (f"{site.home}failing?mode=x", 404)):
        got = site.ask(path)
        assert got.status == status
        policy = got.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} <= {*policy}
        assert not [word for word in policy if word.startswith("script-src")]
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["X-Frame-Options"] == "DENY"
        assert got.headers["Referrer-Policy"] == "no-referrer"
        assert got.headers["Cache-Control"] == "no-store"
        assert got.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "host",
    ["example.org", "127.0.0.1", "127.0.0.1.example.org:{port}", "localhost:1", "[::1]:{port}", "0.0.0.0:{port}", ""],
)
def test_another_name_of_the_host_is_refused(site: Served, host: str) -> None:
    got = site.ask(site.home, headers={"Host": host.format(port=site.server.server_port)})
    assert got.status == 403
    assert "power" not in got.text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_its_own_names_are_answered(site: Served, host: str) -> None:
    assert site.ask(site.home, headers={"Host": host.format(port=site.server.server_port)}).status == 200


@pytest.mark.parametrize(("asker", "status"), [("cross-site", 403), ("same-origin", 200), ("none", 200)])
def test_pages_of_other_sites_get_nothing(site: Served, asker: str, status: int) -> None:
    assert site.ask(site.home, headers={"Sec-Fetch-Site": asker}).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "X<SCRIPT>"])
def test_other_methods_are_refused(site: Served, method: str) -> None:
    got = site.ask(site.home, method)
    assert (got.status, got.headers["Allow"]) == (405, "GET, HEAD")
    assert "<SCRIPT>" not in got.text


def test_head_has_the_headers_of_the_page_and_no_page(site: Served) -> None:
    head, page = site.ask(site.home, "HEAD"), site.ask(site.home)
    assert (head.status, head.text) == (200, "")
    assert head.headers["Content-Length"] == page.headers["Content-Length"]


def test_what_is_no_request_is_answered_with_a_page(site: Served) -> None:
    with socket.create_connection(("127.0.0.1", site.server.server_port)) as connection:
        connection.sendall(b"<script>alert(1)</script>\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert b"alert" not in answer
    assert b"this is no request" in answer


def test_an_error_of_a_page_is_a_page() -> None:
    from http.client import HTTPConnection
    from threading import Thread

    def fail(_path: str, _query: str) -> Answer:
        raise ValueError("<script>")

    server = LoopbackServer(fail)
    Thread(target=server.handle_request, daemon=True).start()
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 500
    assert b"ValueError: &lt;script&gt;" in answer.read()
    connection.close()
    server.server_close()


def test_a_browser_that_went_away_is_no_error(site: Served, capfd: pytest.CaptureFixture[str]) -> None:
    connection = socket.create_connection(("127.0.0.1", site.server.server_port))
    # Closed with a reset, before the answer.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sendall(f"GET {site.home} HTTP/1.1\r\nHost: localhost:{site.server.server_port}\r\n\r\n".encode())
    connection.close()
    assert site.get().status == 200
    assert capfd.readouterr().err == ""
