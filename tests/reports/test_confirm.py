"""``highwater confirm`` and ``highwater kafka``: what is refused, before anything starts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from reports.commands import confirm
from reports.kafka import releases
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.reports.conftest import Call


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(confirm, "_check_library", lambda: None)
    monkeypatch.setattr(releases, "logging", lambda: tmp_path / "logging.jar")
    monkeypatch.setattr(releases, "class_path", lambda _: [tmp_path / "kafka.jar"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["canary", "--kafka", "4.1.1"], "release '4.1.1' of Kafka is not pinned; did you mean '4."),
        (["canary", "--kafka", "/nowhere/kafka"], "--kafka /nowhere/kafka: there is no such folder"),
        (["chaos", "--kafka", "4.1.0"], "chaos has no script: drawn scenarios cannot be acted out"),
        (["canery", "--kafka", "4.1.0"], "canary"),
        (["canary"], "Missing option '--kafka'"),
        (["canary", "--kafka", "4.1.0", "--mode", "hw"], "different control planes"),
        (["kip101-scenario-1", "--kafka", "3.9.0"], "control = scripted has no counterpart in 3.9.0"),
        (["mixed-versions", "--kafka", "1.1.1"], "brokers of several releases"),
        (["canary", "--kafka", "4.1.0", "--repeat", "0"], "--repeat"),
        (["canary", "--kafka", "4.1.0", "--rule", "elr=maybe"], "elr"),
    ],
)
def test_bad_input_is_one_line(highwater: Callable[..., Call], words: list[str], told: str) -> None:
    call = highwater("confirm", *words)
    assert call.code == 2
    lines = [line for line in call.err.splitlines() if "expects nothing" not in line]
    assert told in " ".join(lines)
    assert "Traceback" not in call.err


def test_a_folder_to_keep_that_holds_something(highwater: Callable[..., Call], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    call = highwater("confirm", "canary", "--kafka", "4.1.0", "--keep", tmp_path)
    assert call.code == 2
    assert "choose another folder" in call.err


def test_no_java(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise UnavailableError("Kafka needs Java 17 or later (there is none)")

    monkeypatch.setattr(releases, "java_command", nowhere)
    call = highwater("confirm", "canary", "--kafka", "4.1.0")
    assert call.code == 69
    assert call.err.splitlines()[-1] == "highwater: Kafka needs Java 17 or later (there is none)"


@pytest.mark.skipif(find_spec("kafka") is not None, reason="kafka-python is installed")
def test_without_the_library(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    call = highwater("confirm", "canary", "--kafka", "4.1.0")
    assert call.code == 69
    assert "pip install '.[kafka]'" in call.err


def test_releases_are_listed_with_their_modes(highwater: Callable[..., Call]) -> None:
    rows = highwater("kafka", "list", "--json").json["releases"]
    assert [row["release"] for row in rows] == list(releases.releases())
    assert rows[0]["mode"] == "hw"
    assert "nearest: " in highwater("kafka", "list").out


def test_a_release_to_fetch_that_is_not_pinned(highwater: Callable[..., Call]) -> None:
    call = highwater("kafka", "fetch", "9.9.9")
    assert call.code == 2
    assert "'9.9.9' of Kafka is not pinned" in call.err
