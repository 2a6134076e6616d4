"""The command: its address, its port, and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from highwater.lab.open import server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


@pytest.mark.world
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_traceback(swept: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "highwater", "open", str(swept), "--no-browser"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    with urllib.request.urlopen(address) as page:  # noqa: S310 - its own address
        assert "power" in page.read().decode()
        film = f"{page.url}0-0-0/film"
    with urllib.request.urlopen(film) as page:  # noqa: S310 - starts a worker process
        assert page.status == 200
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert err.split() == ["Ctrl-C", "ends", "it."]


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends before it serves, as by Ctrl-C."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server.LoopbackServer, "serve_forever", stop)


@pytest.mark.usefixtures("stopped")
def test_a_port_is_taken_or_is_free(highwater: Callable[..., Call], swept: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        call = highwater("open", swept, "--port", port, "--no-browser")
        assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
        assert f"--port {port} cannot be used: Address already in use" in call.err
    call = highwater("open", swept, "--port", port, "--no-browser")
    assert (call.code, call.out) == (0, f"http://127.0.0.1:{port}/\n")
    call = highwater("open", swept, "--port", 65_536)
    assert call.code == 2


@pytest.mark.usefixtures("stopped")
def test_a_browser_opens_where_there_is_a_display(
    highwater: Callable[..., Call], swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert highwater("open", swept).code == 0
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    assert highwater("open", swept, "--no-browser").code == 0
    assert opened == []
    call = highwater("open", swept)
    assert opened == [call.out.strip()]


def test_nothing_is_written(highwater: Callable[..., Call], swept: Path, stopped: None) -> None:
    before = sorted(os.walk(swept))
    assert highwater("open", swept, "--no-browser").code == 0
    assert sorted(os.walk(swept)) == before
