"""A build's classes beside the mode, without Java: the program that compares them is another one here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from highwater.lab.hunt import build
from highwater.lab.hunt import state as states
from highwater.lab.hunt.request import HuntRequest
from sim.errors import InputError, UnavailableError
from tests.verification.oracle.test_build import folder_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def printing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that the program prints."""
    monkeypatch.setattr(build, "PROGRAM", "json.tool")
    return tmp_path / "told.json"


def test_what_the_program_prints_is_the_comparison(printing: Path) -> None:
    printing.write_text(json.dumps({"differ": 3}), encoding="utf-8")
    assert build._run(str(printing)) == {"differ": 3}


def test_a_program_that_fails_is_told_by_its_last_line(printing: Path) -> None:
    printing.write_text("no JSON", encoding="utf-8")
    with pytest.raises(UnavailableError, match=r"the oracle could not be run: Expecting value"):
        build._run(str(printing))


def test_a_subject_that_cannot_be_compared_is_told(printing: Path) -> None:
    found = build.compared(str(printing), "--indent=x")
    assert (found["subject"], found["cases"], found["differ"]) == ("--indent=x", 0, 0)
    assert found["problem"].startswith("the oracle could not be run: ")


def test_an_installed_package_compares_nothing(printing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highwater.lab.kafka.releases.java_command", lambda: printing)
    assert build.subjects("./build") == []


def test_a_build_without_java_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Path:
        raise UnavailableError("Kafka needs Java 17 or later")

    monkeypatch.setattr("highwater.lab.kafka.releases.java_command", no_java)
    monkeypatch.setattr("highwater.lab.kafka.releases.tool", lambda _: tmp_path / "logging.jar")
    (tmp_path / "logging.jar").write_bytes(b"")
    asked = HuntRequest(str(folder_of(tmp_path / "build", "4.3.1")), tmp_path / "hunt", repeat=0)
    with pytest.raises(InputError) as caught, asked.prepare(lambda _: None):
        pass
    assert len(caught.value.problems) == 1
    assert "classes are compared with the mode first: Kafka needs Java 17" in caught.value.problems[0]
    assert not (tmp_path / "hunt").exists()


def test_a_build_is_known_by_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highwater.lab.kafka.releases.java_command", lambda: tmp_path)
    monkeypatch.setattr("highwater.lab.kafka.releases.tool", lambda _: tmp_path / "logging.jar")
    monkeypatch.setattr(build, "PROGRAM", "none")
    (tmp_path / "logging.jar").write_bytes(b"")
    folder = folder_of(tmp_path / "build", "4.3.1")
    (folder / "kafka_2.13-4.3.1.jar").write_bytes(b"y")
    asked = HuntRequest(str(folder), tmp_path / "hunt", repeat=0)
    with asked.prepare(lambda _: None) as hunt:
        assert (hunt.state.about["kafka"], hunt.state.about["mode"]) == ("4.3.1", "elr-4.3")
        states.save(hunt.folder, hunt.state)
    (folder / "kafka_2.13-4.3.1.jar").write_bytes(b"x")
    with pytest.raises(InputError, match="holds another hunt: build is"), asked.prepare(lambda _: None):
        pass
