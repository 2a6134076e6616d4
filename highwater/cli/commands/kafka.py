"""``highwater kafka``: list and fetch the Kafka releases that can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from highwater.cli.options import SuggestingGroup, json_option

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.group("kafka", cls=SuggestingGroup)
def command() -> None:
    """List or fetch the pinned releases of Kafka."""


@command.command("list")
@json_option
@click.pass_obj
def list_releases(ui: Ui, as_json: bool) -> None:
    """List the releases and their modes."""
    from reports.brokers.confirm.release import Release, mode_of
    from reports.brokers.kafka import releases

    rows: list[dict[str, Any]] = []
    for name in releases.releases():
        mode, exact = mode_of(Release(name, ()))
        rows.append({"release": name, "mode": mode.name, "exact": exact, "fetched": releases.is_fetched(name)})
    if as_json:
        ui.json({"releases": rows})
        return
    yes = {True: "yes", False: "no"}
    told = [
        (row["release"], f"{'' if row['exact'] else 'nearest: '}{row['mode']}", yes[row["fetched"]]) for row in rows
    ]
    ui.table(["release", "mode", "fetched"], told)


@command.command("fetch")
@click.argument("release", nargs=-1, required=True)
@click.pass_obj
def fetch(ui: Ui, release: tuple[str, ...]) -> None:
    """Fetch releases into the user's cache: 15 to 50 MB each, checked against pinned checksums."""
    from reports.brokers.kafka import releases

    for name in release:
        releases.check_release(name)
    for name in release:
        jars = [releases.tool("logging"), *releases.class_path(name)]
        size = sum(jar.stat().st_size for jar in jars)
        ui.line(f"Kafka {name}: {len(jars)} jars, {size / 1e6:.0f} MB")
