"""``highwater ticket``: a story that fails on real brokers, written for Kafka's developers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.options import PATH, Command

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("ticket", cls=Command)
@click.argument("story")
@click.option(
    "--confirmed", metavar="FILE", type=PATH, help="Output of 'highwater confirm STORY --json', for its transcript."
)
@click.option("--output", metavar="DIR", type=PATH, help="Write STORY.md and STORY.sh; otherwise print the Markdown.")
@click.pass_obj
def command(ui: Ui, story: str, confirmed: Path | None, output: Path | None) -> None:
    """Write STORY, a scenario that was performed on real brokers, as a ticket for Kafka's developers.

    Affected releases are those whose brokers were tried. The shell script repeats the story with Kafka's own tools on
    a fresh cluster on loopback, where they suffice. The tickets of recreated-topic and min-isr-of-first-partition are
    written by hand.
    """
    from reports.brokers.tickets.ticket import read_confirmed, ticket
    from reports.starts import TICKET
    from scenarios import paths

    written = ticket(story, read_confirmed(confirmed) if confirmed else None)
    for note in written.notes:
        ui.note(note)
    if output is None:
        ui.text(next(iter(written.files.values())))
        return
    output.mkdir(parents=True, exist_ok=True)
    for name, text in written.files.items():
        paths.write(output / name, text, TICKET)
        if name.endswith(".sh"):
            (output / name).chmod(0o755)
        ui.line(str(output / name))
