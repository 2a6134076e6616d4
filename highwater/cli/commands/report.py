"""``highwater report``: a sweep as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.options import Command, takes
from highwater.cli.progress import READS, SHRINKS, noted
from highwater.films import check_films, write_films
from highwater.requests import ReportRequest
from reports import starts
from scenarios import own_files
from sim import exit_codes
from sim.errors import InputError
from sim.plurals import counted

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("report", cls=Command)
@takes(ReportRequest)
@click.pass_obj
def command(ui: Ui, asked: ReportRequest) -> int:
    """Write a sweep's report: one HTML file without network access or scripts.

    The answer in sentences, rates with intervals inside and outside the promise, modes in pairs, failures and their
    causes as stories, the guarantee map, safety against availability, what was never reached, and how to reproduce it.
    """
    from reports.analysis import coverage_table
    from reports.analysis.sentences import check_kind
    from reports.evidence.triage import LIMIT_S, LOOKING, for_report
    from reports.page.build import page

    if asked.processes is not None and asked.most == 0:
        raise InputError("--local needs --triage: nothing else uses processes")
    output = Path(asked.file)
    starts.check_file("--output", output, starts.REPORT)
    check_films("--films", output, asked.films)
    if asked.kind is not None:
        check_kind(asked.kind)
    store = asked.store()
    store.tell = noted(ui, READS, 1)
    coverage_table.check(store)  # Before minutes are spent on causes.
    limit = LIMIT_S if asked.most is None else None
    tell = noted(ui, limit=None if limit is None else LOOKING * limit)
    found = for_report(store, asked.most, asked.processes or 1, tell, noted(ui, SHRINKS, limit=limit), asked.kind)
    films = write_films(store, output, asked.films, asked.kind)
    text = page(store, found, asked.kind, films)
    shortcomings = store.shortcomings()
    ui.caution(shortcomings)
    own_files.write(output, text, starts.REPORT)
    if found is not None:
        ui.written(found.looked)
    beside = f", with {counted(len(films), 'film')} beside it" if films else ""
    ui.written(f"written to {output}{beside}")
    return exit_codes.INCONCLUSIVE if shortcomings else exit_codes.EXPECTED
