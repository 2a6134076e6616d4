"""Options for the settings of a real cluster, and what is told about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from highwater.cli.options import PATH, together
from sim.config import KEYS, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.properties.classify import Settings
    from scenarios.properties.releases import Release
    from sim.config import Value
    from sim.protocol.modes import Mode

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The settings of a real cluster, from files, and its release."""

    files: tuple[str, ...]
    found: Settings
    release: Release | None

    @classmethod
    def of(cls, files: Iterable[Path], release: str | None) -> Cluster:
        """Read the files, and find the release.

        Raises:
            InputError: a file is missing or not valid, or the release is unknown.
        """
        from scenarios.properties import classify, releases

        names = tuple(map(str, files))
        found = classify.read(files)
        return cls(names, found, None if release is None else releases.find(release, found.control_plane))

    def settings(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """The settings of the files, with those of --set over them.

        Raises:
            InputError: a config provider inserts the value of a modelled key, and --set does not give it.
        """
        self.found.not_given(given)
        return {**self.found.settings, **given}

    def modes(self, named: str | None) -> str | None:
        """The named modes; without any, the release's."""
        return self.release.mode.name if named is None and self.release is not None else named

    def tell(self, ui: Ui, scenarios: Iterable[Scenario], modes: Iterable[Mode]) -> None:
        """Report on stderr what comes of the files and the release."""
        if self.files:
            self._tell_files(ui, [*scenarios], list({mode.name: mode for mode in modes}.values()))
        if self.release is not None:
            ui.note(f"--release {self.release.name}: mode {self.release.mode.name}")
            for line in told(self.release):
                ui.note(line)

    def _tell_files(self, ui: Ui, scenarios: list[Scenario], modes: list[Mode]) -> None:
        from scenarios.properties.classify import Status

        found = self.found.in_modes(modes)
        count = {status: [one for one in found.findings if one.status is status] for status in Status}
        used = ", ".join(f"{key} = {shown(value)}" for key, value in self.found.settings.items())
        ui.note(
            f"{', '.join(self.files)}: {len(count[Status.USED])} keys are used, {len(count[Status.INERT])} have no "
            f"effect, {len(count[Status.NOT_MODELLED])} are not modelled, {len(count[Status.UNKNOWN])} are unknown "
            "(highwater settings tells of each)"
        )
        if used:
            ui.note(f"from the files: {used}")
        for note in found.notes:
            ui.note(note)
        for one in count[Status.UNKNOWN]:
            ui.note(f"{one.file}, line {one.line}: {one.key or 'a key'}: {one.why}")
        for scenario in scenarios:
            if own := self._own(scenario):
                ui.note(f"not in the files, and set by {scenario.name}: {own}")

    def _own(self, scenario: Scenario) -> str:
        """Broker settings of a scenario that the files leave to Kafka's default, which is another one."""
        from scenarios.properties.modelled import NAMES

        brokers = NAMES["broker"].values()
        return ", ".join(
            f"{key} = {shown(value)}"
            for key, value in scenario.config.items()
            if key in brokers and key not in self.found.settings and value != KEYS[key].default
        )


def told(release: Release) -> list[str]:
    """What a mode does not model of a release, and which defaults differ from those of Highwater."""
    differences = release.differences()
    lines = list(release.notes)
    if differences:
        lines.append(f"defaults of Kafka {release.name} that differ: {differences}")
    return lines


def cluster_options(command: F) -> F:
    """--server-properties and --release; the command receives them as `cluster`, a `Cluster`."""

    @wraps(command)
    def with_cluster(server_properties: tuple[Path, ...], release: str | None, **given: Any) -> Any:
        return command(cluster=Cluster.of(server_properties, release), **given)

    return cast("F", _options(with_cluster))


_options = together(
    click.option(
        "--server-properties",
        metavar="FILE",
        multiple=True,
        type=PATH,
        help="Settings of your brokers and topic: server.properties, or what kafka-configs.sh --describe prints.",
    ),
    click.option("--release", metavar="R", help="Kafka's release, such as 3.9: picks the mode, and its own defaults."),
)
