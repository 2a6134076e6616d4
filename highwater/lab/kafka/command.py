"""``highwater kafka``: list and fetch the Kafka releases that can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from highwater.cli.options import SuggestingGroup, json_option
from reports.document.blocks import Table

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.group("kafka", cls=SuggestingGroup)
def command() -> None:
    """List or fetch the pinned releases of Kafka."""


@command.command("list")
@click.option("--newer", is_flag=True, help="Ask the repository whether there is a release that is newer than these.")
@json_option
@click.pass_obj
def list_releases(ui: Ui, newer: bool, as_json: bool) -> None:
    """List the releases and their modes.

    A release without a mode of its own runs beside the nearest earlier one. One that is not pinned was fetched with
    --unpinned, or is the newest in the repository.
    """
    from highwater.lab.confirm.release import InstalledRelease, mode_of
    from highwater.lab.kafka import releases

    names = list(releases.known())
    if newer and (newest := releases.newest()) not in names:
        names.append(newest)
    rows: list[dict[str, Any]] = []
    for name in names:
        mode, exact = mode_of(InstalledRelease(name, ()))
        fetched = name in releases.known() and releases.is_fetched(name)
        pinned = releases.is_pinned(name)
        rows.append({"release": name, "mode": mode.name, "exact": exact, "fetched": fetched, "pinned": pinned})
    if as_json:
        ui.json({"releases": rows})
        return
    yes = {True: "yes", False: "no"}
    told = []
    for row in rows:
        mode_name = row["mode"] if row["exact"] else f"nearest: {row['mode']}"
        told.append((row["release"], mode_name, yes[row["fetched"]], yes[row["pinned"]]))
    ui.show([Table(["release", "mode", "fetched", "pinned"], told, apart=False)])
    for name in (row["release"] for row in rows if not row["pinned"] and not row["fetched"]):
        ui.line(f"Kafka {name} is newer than this Highwater: highwater kafka fetch {name} --unpinned")


@command.command("fetch")
@click.argument("release", nargs=-1, required=True)
@click.option("--unpinned", is_flag=True, help="Also releases that this Highwater does not know; checksums are kept.")
@click.pass_obj
def fetch(ui: Ui, release: tuple[str, ...], unpinned: bool) -> None:
    """Fetch releases into the user's cache: 15 to 50 MB each, checked against pinned checksums."""
    from highwater.lab.confirm.release import InstalledRelease, mode_of
    from highwater.lab.kafka import releases

    for name in release:
        if not unpinned:
            releases.check_release(name)
    for number, name in enumerate(release, 1):
        if name not in releases.known() or not releases.is_fetched(name):
            ui.note(f"fetching Kafka {name}, {number} of {len(release)}: 15 to 50 MB")
        if unpinned and not releases.is_pinned(name):
            releases.fetch_unpinned(name)
            mode, _ = mode_of(InstalledRelease(name, ()))
            ui.note(f"Kafka {name} is not pinned: nobody has checked its jars; the nearest mode is {mode.name}")
        jars = [releases.tool("logging"), *releases.class_path(name)]
        size = sum(jar.stat().st_size for jar in jars)
        ui.line(f"Kafka {name}: {len(jars)} jars, {size / 1e6:.0f} MB")
