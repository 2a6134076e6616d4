"""``highwater settings``: what a simulation makes of a real cluster's settings."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import completion
from highwater.cli.options import PATH, Command, json_option
from reports.document.blocks import Line, Table
from sim.config import shown
from sim.errors import InputError
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from scenarios.properties.classify import ClassifiedFiles, ClassifiedKey
    from scenarios.properties.cluster import ClusterSettings
    from sim.protocol.modes import Mode

HEADERS: Final = ("key", "line", "value", "why")
KEY_COLUMNS: Final = 2
"""Columns of every table; the others are there if a row has something in them."""


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
    found = _with_findings(cluster.found.in_modes(modes), modes)
    if as_json:
        ui.json(_as_json(cluster, modes, found.findings))
        return
    ui.show(_blocks(cluster, modes, found))


def _blocks(cluster: ClusterSettings, modes: list[Mode], found: ClassifiedFiles) -> Iterator[Block]:
    yield Line(f"In {', '.join(f'{mode.name} (Kafka {mode.release})' for mode in modes)}")
    yield from map(Line, (*found.notes, *cluster.notes({})))
    yield from _tables(found.findings)


def _tables(findings: Sequence[ClassifiedKey]) -> Iterator[Table]:
    """A table for each status, so that keys and reasons have room; unknown keys first, which may be misspelt."""
    from scenarios.properties.classify import Status

    for status in dict.fromkeys([Status.UNKNOWN, *Status]):
        rows = [_row(found) for found in sorted(findings, key=_place) if found.status is status]
        if rows:
            places = [place for place in range(len(HEADERS)) if place < KEY_COLUMNS or any(row[place] for row in rows)]
            yield Table(
                [HEADERS[place] for place in places],
                [tuple(row[place] for place in places) for row in rows],
                numbers=["line"],
                caption=f"{status.value.capitalize()}: {counted(len(rows), 'key')}",
            )


def _place(found: ClassifiedKey) -> tuple[str, int]:
    return found.file, found.line


def _with_findings(found: ClassifiedFiles, modes: Sequence[Mode]) -> ClassifiedFiles:
    """Say of each used key with which value it would avoid a finding that one of the modes shows."""
    from scenarios.format.findings import all_findings

    advice = [
        (finding.name, clause.strip())
        for finding in all_findings().values()
        if any(finding.expect.get(mode.name, "").startswith("violates") for mode in modes)
        for clause in finding.table.avoid.split(";")
    ]
    return replace(found, findings=tuple(_with_advice(key, advice) for key in found.findings))


def _with_advice(found: ClassifiedKey, advice: Sequence[tuple[str, str]]) -> ClassifiedKey:
    from scenarios.properties.classify import Status

    if found.status is not Status.USED or found.value is None:
        return found
    pattern = re.compile(rf"(?<![\w.]){re.escape(found.name)}=([\w-]+)")
    avoids = [
        f"to avoid finding {name}: {clause}"
        for name, clause in advice
        if any(value != shown(found.value) for value in pattern.findall(clause))
    ]
    return replace(found, why="; ".join(filter(None, [found.why, *avoids])))


def _modes(cluster: ClusterSettings, named: str | None) -> list[Mode]:
    from scenarios.format import catalogue
    from sim.protocol.modes import MODES, NO_RELEASE

    if names := cluster.modes(named):
        return [catalogue.mode(name) for name in names.split(",")]
    plane = cluster.found.control_plane or "kraft"
    fitting = [mode for mode in MODES.values() if mode.rules.control_plane == plane and mode.release != NO_RELEASE]
    return [max(fitting, key=lambda mode: mode.place)]


def _row(found: ClassifiedKey) -> tuple[object, ...]:
    value = "" if found.value is None else shown(found.value)
    return found.key or "(not shown)", found.line, value, found.why


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
