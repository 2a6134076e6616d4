"""``highwater show``: one run as a page for a browser."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from highwater.cli import options
from highwater.cli.options import Command, takes
from highwater.option import Option
from highwater.requests import ShownRequest, budget, kind_option
from reports import starts
from scenarios import own_files

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@dataclass(frozen=True, kw_only=True)
class ShowOptions(ShownRequest):
    """The options of the command."""

    against: Annotated[
        str | None,
        Option(
            metavar="MODE|RULE=VALUE",
            help="Show the same seed in another mode, or with another rule.",
            completes="modes",
        ),
    ] = None
    kind: Annotated[str | None, kind_option("The violation to explain; by default the worst.")] = None
    everything: Annotated[bool, Option("--all", help="All sentences of the story, not only the most important.")] = (
        False
    )
    budget_s: Annotated[float, budget("10s", "For the point of no return.")] = 10
    output: Annotated[
        Path | None, Option(metavar="FILE", help="[default: SCENARIO-MODE-SEED[-against-OTHER].html here]")
    ] = None


@click.command("show", cls=Command)
@takes(ShowOptions)
@click.pass_obj
def command(ui: Ui, asked: ShowOptions) -> None:
    """Write one run as an HTML page: every step with logs, ISR, ELR and messages in flight, and the story beside it."""
    from reports.evidence import narrative
    from reports.film.film import compared, of_cases
    from reports.film.page import page
    from scenarios.shrinking.case import Case

    run, chosen = asked.one()
    ui.caution(run.warnings)
    cases = compared(Case(run.scenario, chosen, run.seed, run.rules), asked.against)
    against = "" if asked.against is None else re.sub(r"[^\w.-]+", "-", f"-against-{asked.against}")
    file = asked.output or Path(f"{run.name(chosen)}{against}.html")
    starts.check_file("--output" if asked.output else "", file, starts.FILM)
    films = of_cases(cases, asked.kind, None if asked.everything else narrative.SENTENCES, asked.budget_s)
    for film in films:
        options.check_shown(run.scenario, film.observed.result)
    own_files.write(file, page(films), starts.FILM)
    for film in films:
        ui.line(next(film.heads))
    ui.written(f"Open {file} in a browser")
