"""A Kafka release to run: its jars, its properties, and the mode that models it."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from highwater.lab.kafka import releases
from sim.errors import InputError
from sim.protocol.modes import MODES, NO_RELEASE, SINCE_4_1_1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.protocol.modes import Mode

_VERSION_FILE: Final = "kafka/kafka-version.properties"
_FIRST_KRAFT_ONLY: Final = (3, 9)
"""First release that runs with KRaft here; older ones use ZooKeeper."""
_FIRST_WITH_EPOCHS: Final = (0, 11)
"""First release whose records have leader epochs, by which followers truncate (KIP-101)."""


@dataclass(frozen=True, slots=True)
class InstalledRelease:
    """A release, or a build: its version, its jars in the order of the class path, ``released`` or its folder."""

    name: str
    jars: tuple[Path, ...]
    source: str = "released"

    @property
    def number(self) -> tuple[int, ...]:
        """The numbers of its version."""
        return tuple(int(part) for part in re.findall(r"\d+", self.name.partition("-")[0]))

    @property
    def kraft(self) -> bool:
        """Whether its control plane is KRaft."""
        return self.number >= _FIRST_KRAFT_ONLY

    @property
    def truncates_to_hw(self) -> bool:
        """Whether a follower, lacking leader epochs, truncates to the high watermark that it read at its start."""
        return self.number < _FIRST_WITH_EPOCHS

    @property
    def class_path(self) -> str:
        """The class path for Java."""
        return ":".join(map(str, self.jars))


def find(word: str) -> InstalledRelease:
    """Find the release that the user named, or the folder with an unpacked distribution or a build's libraries.

    Raises:
        InputError: no such release is pinned, or there is no Kafka in the folder.
        UnavailableError: it has to be fetched and cannot be.
    """
    folder = Path(word)
    if "/" in word or (folder.is_dir() and word not in releases.releases()):
        return _in_folder(folder)
    releases.check_release(word)
    return InstalledRelease(word, (releases.tool("logging"), *releases.class_path(word)))


def _in_folder(folder: Path) -> InstalledRelease:
    places = (folder / "libs", folder)
    found = next((jars for place in places if (jars := sorted(place.glob("*.jar")))), [])
    clients = [jar for jar in found if jar.name.startswith("kafka-clients-") and "-test" not in jar.name]
    if not clients or not any(jar.name.startswith("kafka_") for jar in found):
        libraries = "no Kafka in it: kafka-clients-*.jar and kafka_*.jar, in it or in libs"
        what = libraries if folder.is_dir() else "no such folder"
        raise InputError(f"--kafka {folder}: there is {what}")
    try:
        with zipfile.ZipFile(clients[0]) as jar:
            text = jar.read(_VERSION_FILE).decode()
    except (zipfile.BadZipFile, KeyError, OSError):
        raise InputError(f"--kafka {folder}: {clients[0].name} is no library of Kafka's") from None
    version = next((line.partition("=")[2] for line in text.splitlines() if line.startswith("version=")), "")
    if not re.match(r"\d+\.\d+", version):
        raise InputError(f"--kafka {folder}: {clients[0].name} does not say its version")
    return InstalledRelease(version, (releases.tool("logging"), *found), source=str(folder))


def mode_of(release: InstalledRelease) -> tuple[Mode, bool]:
    """The mode of a release, and whether it models exactly this release rather than an earlier one."""
    numbers = release.number
    older = [(_number(mode.release), mode) for mode in MODES.values() if mode.release != NO_RELEASE]
    fitting = [(number, mode) for number, mode in older if number <= numbers] or [min(older, key=lambda one: one[0])]
    number, mode = max(fitting, key=lambda one: one[0])
    return mode, numbers[: len(number)] == number


def other_values(release: InstalledRelease) -> Mapping[str, str]:
    """The rule values in which a release differs from its mode."""
    return SINCE_4_1_1 if (4, 1, 1) <= release.number < (4, 3) else {}


def _number(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
