"""``highwater confirm`` and ``highwater kafka``: what is refused, before anything starts."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pytest

from highwater.lab.confirm import class_archive, request
from highwater.lab.confirm.comparison import ComparedItem
from highwater.lab.kafka import releases
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(request, "check_library", lambda: None)
    monkeypatch.setattr(releases, "tool", lambda name: tmp_path / f"{name}.jar")
    monkeypatch.setattr(releases, "class_path", lambda _: [tmp_path / "kafka.jar"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["canary", "--kafka", "4.1.1"], "release '4.1.1' of Kafka is not pinned; did you mean '4."),
        (["canary", "--kafka", "/nowhere/kafka"], "--kafka /nowhere/kafka: there is no such folder"),
        (["chaos", "--kafka", "4.1.0"], "chaos has no script: drawn scenarios cannot be acted out"),
        (["canery", "--kafka", "4.1.0"], "canary"),
        (["canary"], "--kafka is missing"),
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


def of_attempts(monkeypatch: pytest.MonkeyPatch, *rows: list[dict[str, Any]] | str) -> list[tuple[Path | None, int]]:
    """Let attempts have these rows, or fail with these words; returns the folders and paces that they are given."""
    given: list[tuple[Path | None, int]] = []

    def attempt(_: Any, keep: Path | None, pace: int) -> dict[str, Any]:
        given.append((keep, pace))
        told = rows[len(given) - 1]
        failed = told if isinstance(told, str) else ""
        found = [] if isinstance(told, str) else told
        agrees = not failed and all(row["agrees"] for row in found)
        epochs = {"simulated": [0, 2], "real": [0, 1]}
        return {"agrees": agrees, "failed": failed, "rows": found, "seconds": {"all": 1.0}, "leader_epochs": epochs}

    monkeypatch.setattr(request.Confirmation, "attempt", attempt)
    monkeypatch.setattr(class_archive, "make_archive", lambda *_: None)
    return given


def row(
    real: str, what: str = "log of broker 1", *, compared: bool = True, equal: bool | None = None
) -> dict[str, Any]:
    return ComparedItem(what, "0:m1", real, compared, equal, "as far as both read").as_json()


CANARY: Final = ("confirm", "canary", "--kafka", "0.10.2.2")


def test_a_story_that_was_not_brought_about_begins_again(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = of_attempts(monkeypatch, "line 3 waited", [row("-")], "line 3 waited", [row("-")])
    call = highwater(*CANARY, "--attempts", "4")
    assert [pace for _, pace in given] == [5, 2, 2, 1]
    assert call.code == 1
    given = of_attempts(monkeypatch, "line 3 waited", [row("0:m1")])
    call = highwater(*CANARY, "--keep", tmp_path / "kept")
    assert call.code == 0
    assert "attempt 1: not brought to the story: line 3 waited" in call.out
    assert "canary, Kafka 0.10.2.2, mode hw: confirmed" in call.out
    assert given == [(tmp_path / "kept", 5), (tmp_path / "kept" / "attempt-2", 2)]


def test_a_difference_that_comes_again(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    of_attempts(monkeypatch, [row("-")], [row("-")])
    call = highwater(*CANARY)
    assert call.code == 1
    assert "attempt 1: differs in log of broker 1" in call.out
    assert "NOT confirmed" in call.out


def test_the_table_says_what_is_equal_and_what_is_not_compared(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        row("0:m1"),
        row("0:m1 1:m2", "consumer read", equal=True),
        row("9", "HW checkpoint of broker 1", compared=False),
    ]
    of_attempts(monkeypatch, rows)
    lines = highwater(*CANARY).out.splitlines()
    ends = {cells[0]: cells[-1] for line in lines if len(cells := re.split(r"  +", line.strip())) == 4}
    assert ends == {
        "log of broker 1": "=",
        "consumer read": "agrees: as far as both",  # "read" is on the next line.
        "HW checkpoint of broker 1": "not compared",
    }
    assert any("The epochs were 0 2 in the simulation, and 0 1 on Kafka 0.10.2.2." in line for line in lines)
    assert any(line.startswith("HW checkpoints are not compared") for line in lines)


def test_a_difference_that_does_not_come_again(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    of_attempts(monkeypatch, [row("-")], [row("0:m1")])
    told = highwater(*CANARY, "--json")
    assert (told.code, told.json["exit_code"]) == (3, 3)
    (run,) = told.json["runs"]
    assert [one["real"] for one in run["before"][0]["rows"]] == ["-"]
    of_attempts(monkeypatch, [row("-")], [row("0:m1")])
    assert "undecided: the brokers did not do the same in each attempt" in highwater(*CANARY).out


def test_as_many_attempts_as_are_asked_for(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    given = of_attempts(monkeypatch, *["line 3 waited"] * 4)
    call = highwater(*CANARY, "--attempts", "2")
    assert call.code == 3
    assert len(given) == 2
    assert "mode hw: not brought to the story: line 3 waited" in call.out


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
    assert "not installed: kafka-python, kazoo; pip install 'kafka-python>=" in call.err


def test_releases_are_listed_with_their_modes(highwater: Callable[..., Call]) -> None:
    rows = highwater("kafka", "list", "--json").json["releases"]
    assert [row["release"] for row in rows] == list(releases.known())
    assert rows[0]["mode"] == "hw"
    assert "nearest: " in highwater("kafka", "list").out


def test_a_newer_release_is_listed_with_the_nearest_mode(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "newest", lambda: "4.9.1")
    call = highwater("kafka", "list", "--newer", "--json")
    row = call.json["releases"][-1]
    assert row == {"release": "4.9.1", "mode": "elr-4.3", "exact": False, "fetched": False, "pinned": False}
    said = highwater("kafka", "list", "--newer").out
    assert "Kafka 4.9.1 is newer than this Highwater: highwater kafka fetch 4.9.1 --unpinned" in said


def test_a_release_to_fetch_that_is_not_pinned(highwater: Callable[..., Call]) -> None:
    call = highwater("kafka", "fetch", "9.9.9")
    assert call.code == 2
    assert "'9.9.9' of Kafka is not pinned" in call.err
