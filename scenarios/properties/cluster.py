"""A real cluster: the settings of its files, and its release."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scenarios.properties import classify, releases
from scenarios.properties.classify import ClassifiedFiles
from scenarios.properties.releases import Release
from sim.config import Value


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of a real cluster, from files, and its release, if the user names one."""

    files: tuple[str, ...]
    found: ClassifiedFiles
    release: Release | None

    @classmethod
    def of(cls, files: Iterable[str | Path], release: str | None) -> ClusterSettings:
        """Read the files, and find the release.

        Raises:
            InputError: a file is missing or not valid, or the release is unknown.
            StorageError: a file cannot be read.
        """
        names = tuple(map(str, files))
        found = classify.read(map(Path, names))
        return cls(names, found, None if release is None else releases.find(release, found.control_plane))

    def settings(self, given: Collection[str], options: Mapping[str, str] | None = None) -> dict[str, Value]:
        """The settings of the files, without those that the user gives.

        Args:
            given: settings that the user gives.
            options: setting -> the option of the command that gives it; None: the command has ``--set``.

        Raises:
            InputError: a config provider inserts the value of a modelled key, and the user does not give it.
        """
        self.found.not_given(given, options)
        return {key: value for key, value in self.found.settings.items() if key not in given}

    def modes(self, named: str | None) -> str | None:
        """The named modes; without any, the release's."""
        return self.release.mode.name if named is None and self.release is not None else named

    def notes(self, given: Mapping[str, Value]) -> list[str]:
        """What the release's mode does not model, and which defaults differ from Highwater's, of keys that neither the
        files nor the user set.
        """
        if self.release is None:
            return []
        differences = self.release.differences({**self.found.settings, **given})
        lines = list(self.release.notes)
        if differences:
            lines.append(f"defaults of Kafka {self.release.name} that differ: {differences}")
        return lines
