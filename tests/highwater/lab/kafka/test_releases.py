"""What is pinned, and what is said where it cannot be had; nothing is fetched."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from highwater.lab.kafka import releases
from highwater.lab.kafka.releases import Jar
from scenarios.own_files import Workspace
from sim.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_every_jar_is_pinned_by_its_content() -> None:
    pins = releases._pins()
    jars = [jar for lines in (*pins["releases"].values(), *pins["tools"].values()) for jar in releases._jars(lines)]
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)
    by_name = {(jar.file_name, jar.sha256) for jar in jars}
    assert len(by_name) == len({name for name, _ in by_name}), "a jar of a version has one content"
    for release in releases.releases():
        assert any(jar.artifact.startswith("kafka_2.") and jar.version == release for jar in jars)


def test_a_release_that_is_not_pinned() -> None:
    with pytest.raises(InputError, match=r"^release '4\.2' of Kafka is not pinned; did you mean '4\.2\.2'\?$"):
        releases.class_path("4.2")


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jar:
    """One that the cache holds, with other content than was pinned."""
    found = Jar("g", "a", "1", hashlib.sha256(b"right").hexdigest())
    (tmp_path / found.file_name).write_bytes(b"wrong")
    monkeypatch.setattr(releases, "jar_folder", lambda: tmp_path)
    return found


def test_a_jar_of_other_content_is_not_used(jar: Jar) -> None:
    with pytest.raises(InputError, match=r"g__a__1\.jar is not the jar that was pinned: SHA-256 .*; delete it$"):
        releases._present("Kafka", [jar])


def test_a_jar_of_the_right_content_is(jar: Jar, tmp_path: Path) -> None:
    (tmp_path / jar.file_name).write_bytes(b"right")
    assert releases._present("Kafka", [jar]) == [tmp_path / jar.file_name]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Server access error: PKIX path building failed: x", "this Java does not know the certificate .* JAVA_TOOL"),
        ("Host repository.example not found. url=x", r"no network \(Host repository\.example not found\)$"),
        ("\t\t:: g#a;1: not found\n", "g#a;1: not found$"),
        ("something else", "set HIGHWATER_IVY_SETTINGS if another repository"),
    ],
)
def test_why_a_jar_could_not_be_fetched(
    said: str, reason: str, jar: Jar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / jar.file_name).unlink()
    monkeypatch.setattr(releases, "_run_ivy", lambda what, work, module: said)
    with pytest.raises(UnavailableError, match=f"^Kafka 9 could not be fetched: {reason}"):
        releases._present("Kafka 9", [jar])


def test_settings_of_ivy_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.SETTINGS, str(tmp_path / "none.xml"))
    monkeypatch.setattr(releases, "java_command", lambda: tmp_path)
    with pytest.raises(InputError, match=r"HIGHWATER_IVY_SETTINGS: there is no file .*none\.xml"):
        releases._run_ivy("Kafka", Workspace(tmp_path / "work"), "")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a repository that has Kafka 4.9.1 with one other jar."""
    monkeypatch.setattr(releases, "cache_folder", lambda: tmp_path)

    def run_ivy(what: str, space: Workspace, module: str) -> str:
        work = space.root
        (work / "jars").mkdir()
        if 'rev="4.9.1"' in module or 'rev="latest.release"' in module:
            (work / "jars" / "org.apache.kafka__kafka_2.13__4.9.1.jar").write_bytes(b"core")
        if 'transitive="true"' in module and 'rev="4.9.1"' in module:
            (work / "jars" / "g__a__1.jar").write_bytes(b"a")
        return f":: {what}: not found"

    monkeypatch.setattr(releases, "_run_ivy", run_ivy)
    return tmp_path


def test_a_release_that_is_not_pinned_is_resolved_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert releases.newest() == "4.9.1"
    releases.fetch_unpinned("4.9.1")
    assert releases.known() == (*releases.releases(), "4.9.1")
    assert releases.is_fetched("4.9.1")
    assert not releases.is_pinned("4.9.1")
    monkeypatch.setattr(releases, "_run_ivy", lambda what, work: pytest.fail("asked twice"))
    releases.fetch_unpinned("4.9.1")
    found = releases.class_path("4.9.1")
    assert [path.name for path in found] == ["g__a__1.jar", "org.apache.kafka__kafka_2.13__4.9.1.jar"]
    (cache / "kafka" / "jars" / "g__a__1.jar").write_bytes(b"other")
    with pytest.raises(InputError, match="is not the jar that was pinned"):
        releases.class_path("4.9.1")


@pytest.mark.usefixtures("cache")
def test_a_release_that_there_is_not_is_not_resolved() -> None:
    with pytest.raises(UnavailableError, match=r"^Kafka 4\.9\.2 could not be fetched: "):
        releases.fetch_unpinned("4.9.2")
    with pytest.raises(InputError, match=r"'trunk' of Kafka is not a version such as "):
        releases.fetch_unpinned("trunk")
    assert releases.known() == releases.releases()


def test_a_fetch_says_which_release_it_fetches(monkeypatch: pytest.MonkeyPatch, highwater: Callable[..., Call]) -> None:
    def refused(what: str, _jars: object) -> list[Path]:
        raise UnavailableError(f"{what} could not be fetched: no network")

    monkeypatch.setattr(releases, "is_fetched", lambda name: name == "3.9.0")
    monkeypatch.setattr(releases, "_present", refused)
    call = highwater("kafka", "fetch", "4.4.0", "3.9.0")
    assert call.err.startswith("fetching Kafka 4.4.0, 1 of 2: 15 to 50 MB\n")
    assert "could not be fetched: no network" in call.err
