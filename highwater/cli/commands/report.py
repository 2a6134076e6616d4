"""``highwater report``: a sweep as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.commands.triage import SHRINKS, progress
from highwater.cli.options import PATH, Command, kind_option, store_options
from reports import starts
from scenarios import own_files
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from highwater.requests import StoreRequest


@click.command("report", cls=Command)
@store_options
@kind_option
@click.option("-o", "--output", metavar="FILE", type=PATH, default=Path("report.html"), show_default=True)
@click.option(
    "--triage",
    "most",
    metavar="N",
    type=click.IntRange(0),
    help="Examine N failures: group them by cause, and tell a small run of each group.  [default: as many as two "
    "minutes allow]",
)
@click.option("--local", metavar="N", type=click.IntRange(1, 64), help="Processes for --triage; by default 1.")
@click.pass_obj
def command(ui: Ui, asked: StoreRequest, kind: str | None, output: Path, most: int | None, local: int | None) -> int:
    """Write a sweep's report: one HTML file without network access or scripts.

    The answer in sentences, rates with intervals inside and outside the promise, modes in pairs, failures and their
    causes as stories, the guarantee map, safety against availability, what was never reached, and how to reproduce it.
    """
    from reports.analysis.sentences import check_kind
    from reports.evidence.triage import for_report
    from reports.page.build import page

    if local is not None and most == 0:
        raise InputError("--local needs --triage: nothing else uses processes")
    starts.check_file("--output", output, starts.REPORT)
    if kind is not None:
        check_kind(kind)
    store = asked.store()
    found = for_report(store, most, local or 1, progress(ui), progress(ui, SHRINKS), kind)
    text = page(store, found, kind)
    shortcomings = store.shortcomings()
    ui.caution(shortcomings)
    own_files.write(output, text, starts.REPORT)
    if found is not None:
        ui.line(found.looked)
    ui.line(f"written to {output}")
    return exit_codes.INCONCLUSIVE if shortcomings else exit_codes.EXPECTED
