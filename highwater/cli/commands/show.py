"""``highwater show``: one run as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli import options
from highwater.cli.options import PATH, Command, one_run_options
from reports import starts
from scenarios import own_files

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from highwater.requests import RunRequest


@click.command("show", cls=Command)
@one_run_options
@click.option("--against", metavar="MODE|RULE=VALUE", help="Show the same seed in another mode, or with another rule.")
@click.option("--kind", metavar="KIND", help="The violation to explain; by default the first.")
@click.option("--all", "everything", is_flag=True, help="All sentences of the story, not only the most important.")
@click.option("--budget", metavar="TIME", default="10s", show_default=True, help="For the point of no return.")
@click.option("--output", metavar="FILE", type=PATH, help="[default: SCENARIO-MODE-SEED.html here]")
@click.pass_obj
def command(
    ui: Ui,
    asked: RunRequest,
    against: str | None,
    kind: str | None,
    everything: bool,
    budget: str,
    output: Path | None,
) -> None:
    """Write one run as an HTML page: every step with logs, ISR, ELR and messages in flight, and the story beside it."""
    from reports.evidence import narrative
    from reports.film.film import compared, of_cases
    from reports.film.page import page
    from scenarios.shrinking.case import Case

    limit = options.duration("--budget", budget)
    run, chosen = asked.one()
    ui.caution(run.warnings)
    cases = compared(Case(run.scenario, chosen, run.seed, run.rules), against)
    file = output or Path(f"{run.name(chosen)}.html")
    starts.check_file("--output", file, starts.FILM)
    films = of_cases(cases, kind, None if everything else narrative.SENTENCES, limit)
    for one in films:
        options.check_shown(run.scenario, one.observed.result)
    own_files.write(file, page(films), starts.FILM)
    for one in films:
        ui.line(next(one.heads))
    ui.line(f"Open {file} in a browser")
