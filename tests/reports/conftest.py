"""A command line to call, and runs to show without running anything."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from reports.cli import main
from scenarios.sweep import local
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Call:
    """What a call of the command line left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> dict[str, Any]:
        """stdout as one object."""
        data: dict[str, Any] = json.loads(self.out)
        return data


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's terminal reaches a test."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def highwater(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Call]]:
    """Calls ``highwater`` with words."""
    before = signal.getsignal(signal.SIGTERM)

    def call(*words: object) -> Call:
        code = main([str(word) for word in words])
        return Call(code, *capfd.readouterr())

    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def sweeps_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps with --local are done in this process: for tests of what comes of them."""
    monkeypatch.setattr(local, "LocalBackend", lambda _: Here())


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small sweep of two scenarios."""
    folder = tmp_path_factory.mktemp("sweep") / "out"
    words = ["sweep", "power", "canary", "--seeds", "0..20", "--output", str(folder), "--local", "1", "-q", "--json"]
    assert main(words) == 0
    return folder
