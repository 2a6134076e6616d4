"""Which Kafka is run, and which mode stands for it."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from highwater.lab.confirm import release
from highwater.lab.confirm.release import InstalledRelease
from highwater.lab.kafka import releases
from sim.errors import InputError
from sim.protocol.modes import SINCE_4_1_1

if TYPE_CHECKING:
    from pathlib import Path


def test_every_pinned_release_has_a_mode() -> None:
    told = {name: release.mode_of(InstalledRelease(name, ())) for name in releases.releases()}
    assert {name: mode.name for name, (mode, exact) in told.items() if exact} == {
        "0.10.2.2": "hw",
        "1.1.1": "kip101",
        "2.0.0": "kip279",
        "2.6.0": "kip320",
        "3.9.0": "kraft",
        "4.1.0": "elr",
        "4.3.1": "elr-4.3",
    }
    assert {name: mode.name for name, (mode, exact) in told.items() if not exact} == {
        "4.1.2": "elr",
        "4.2.1": "elr",
        "4.2.2": "elr",
        "4.4.0": "elr-4.3",
    }


def test_a_release_before_all_modes_has_the_oldest() -> None:
    mode, exact = release.mode_of(InstalledRelease("0.9.0", ()))
    assert (mode.name, exact) == ("hw", False)


@pytest.mark.parametrize(("name", "kraft"), [("2.6.0", False), ("3.9.0", True), ("4.4.0-SNAPSHOT", True)])
def test_the_control_plane(name: str, kraft: bool) -> None:
    assert InstalledRelease(name, ()).kraft == kraft


@pytest.mark.parametrize(("name", "to_hw"), [("0.10.2.2", True), ("0.11.0.0", False), ("1.1.1", False)])
def test_the_releases_that_truncate_to_their_hw_files(name: str, to_hw: bool) -> None:
    assert InstalledRelease(name, ()).truncates_to_hw == to_hw


def libraries(folder: Path, version: str = "4.5.0-SNAPSHOT") -> Path:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "kafka-clients-x.jar", "w") as jar:
        jar.writestr("kafka/kafka-version.properties", f"commitId=1\nversion={version}\n")
    (folder / "kafka_2.13-x.jar").write_bytes(b"")
    return folder


def test_a_folder_of_libraries_says_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "tool", lambda name: tmp_path / f"{name}.jar")
    for folder in (libraries(tmp_path / "build"), libraries(tmp_path / "kafka" / "libs").parent):
        found = release.find(str(folder))
        assert found.name == "4.5.0-SNAPSHOT"
        assert found.number == (4, 5, 0)
        assert found.source == str(folder)
        assert [jar.name for jar in found.jars] == ["logging.jar", "kafka-clients-x.jar", "kafka_2.13-x.jar"]


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda _: None, "there is no such folder"),
        (lambda folder: folder.mkdir(), "there is no Kafka in it"),
        (lambda folder: (libraries(folder) / "kafka_2.13-x.jar").unlink(), "there is no Kafka in it"),
        (lambda folder: (libraries(folder) / "kafka-clients-x.jar").write_bytes(b"x"), "is no library of Kafka's"),
        (lambda folder: libraries(folder, "unknown"), "does not say its version"),
    ],
)
def test_a_folder_without_kafka(tmp_path: Path, build: object, told: str) -> None:
    assert callable(build)
    build(tmp_path / "folder")
    with pytest.raises(InputError, match=told):
        release.find(str(tmp_path / "folder"))


@pytest.mark.parametrize(
    ("name", "values"),
    [("4.1.0", {}), ("4.1.2", SINCE_4_1_1), ("4.2.2", SINCE_4_1_1), ("4.3.1", {}), ("3.9.0", {})],
)
def test_rules_of_a_release_that_has_no_mode_of_its_own(name: str, values: dict[str, str]) -> None:
    assert release.other_values(InstalledRelease(name, ())) == values
