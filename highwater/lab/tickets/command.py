"""``highwater ticket``: a story that fails on real brokers, written for Kafka's developers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli import completion
from highwater.cli.options import PATH, Command

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("ticket", cls=Command)
@click.argument("story", shell_complete=completion.of("scenarios"))
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
    from highwater.lab.tickets.ticket import read_confirmed, ticket
    from reports.starts import TICKET
    from scenarios import own_files

    written = ticket(story, read_confirmed(confirmed) if confirmed else None)
    for note in written.notes:
        ui.note(note)
    if output is None:
        ui.text(next(iter(written.files.values())))
        return
    with own_files.os_errors(output):
        own_files.make_folder(output)
    for name in written.files:
        own_files.check_own(output / name, TICKET)
    for name, text in written.files.items():
        own_files.write(output / name, text, TICKET, executable=name.endswith(".sh"))
        ui.line(str(output / name))
