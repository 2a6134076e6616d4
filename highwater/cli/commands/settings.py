"""``highwater settings``: what a simulation makes of a real cluster's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from highwater.cli import completion
from highwater.cli.options import PATH, Command, json_option
from reports.document.blocks import Line, Table
from sim.config import shown
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from scenarios.properties.classify import ClassifiedFiles, ClassifiedKey
    from scenarios.properties.cluster import ClusterSettings
    from sim.protocol.modes import Mode


@click.command("settings", cls=Command)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=PATH)
@click.option(
    "--mode",
    "--modes",
    metavar="A,B",
    shell_complete=completion.of("modes"),
    help="Modes; by default the release's, or the newest one that fits.",
)
@click.option("--release", metavar="R", help="Kafka's release, such as 3.9: picks the mode, and its own defaults.")
@json_option
@click.pass_obj
def command(ui: Ui, files: tuple[Path, ...], mode: str | None, release: str | None, as_json: bool) -> None:
    """Tell of each key of FILE whether a simulation uses it, and if not, why.

    FILE is a server.properties, a file of topic or producer settings, or what kafka-configs.sh --describe or
    kafka-topics.sh --describe prints about one topic or broker. Values are shown of modelled keys only.
    """
    from scenarios.properties.cluster import ClusterSettings

    if not files and release is None:
        raise InputError("name a file, or --release")
    cluster = ClusterSettings.of(files, release)
    modes = _modes(cluster, mode)
    found = cluster.found.in_modes(modes)
    if as_json:
        ui.json(_as_json(cluster, modes, found.findings))
        return
    ui.show(_blocks(cluster, modes, found))


def _blocks(cluster: ClusterSettings, modes: list[Mode], found: ClassifiedFiles) -> Iterator[Block]:
    yield Line(f"In {', '.join(f'{mode.name} (Kafka {mode.release})' for mode in modes)}")
    yield from map(Line, (*found.notes, *cluster.notes({})))
    if cluster.files:
        headers = ["line", "key", "in a simulation", "value", "why"]
        yield Table(headers, [*map(_row, _sorted(found.findings))], numbers=["line"])


def _modes(cluster: ClusterSettings, named: str | None) -> list[Mode]:
    from scenarios.format import catalogue
    from sim.protocol.modes import MODES, NO_RELEASE

    if names := cluster.modes(named):
        return [catalogue.mode(name) for name in names.split(",")]
    plane = cluster.found.control_plane or "kraft"
    fitting = [mode for mode in MODES.values() if mode.rules.control_plane == plane and mode.release != NO_RELEASE]
    return [max(fitting, key=lambda mode: mode.place)]


def _sorted(findings: tuple[ClassifiedKey, ...]) -> list[ClassifiedKey]:
    from scenarios.properties.classify import Status

    return sorted(findings, key=lambda finding: ([*Status].index(finding.status), finding.file, finding.line))


def _row(found: ClassifiedKey) -> tuple[object, ...]:
    value = "" if found.value is None else shown(found.value)
    return found.line, found.key or "(not shown)", found.status.value, value, found.why


def _as_json(cluster: ClusterSettings, modes: list[Mode], findings: tuple[ClassifiedKey, ...]) -> dict[str, Any]:
    keys = [
        {
            **{name: getattr(finding, name) for name in ("file", "line", "key", "why", "name", "value")},
            "status": finding.status.value,
        }
        for finding in findings
    ]
    release = cluster.release
    return {
        "schema_version": 1,
        "modes": [mode.name for mode in modes],
        "keys": keys,
        "settings": dict(cluster.found.settings),
        "notes": [*cluster.found.notes, *cluster.notes({})],
        "defaults": {} if release is None else dict(release.defaults),
    }
