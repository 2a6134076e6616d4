"""``highwater draw``: one run as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli import options
from highwater.cli.options import PATH, Command, one_run_options
from reports import starts
from scenarios import own_files
from sim.plurals import counted

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from highwater.requests import RunRequest

FORMATS: Final = {"svg": (".svg", starts.PICTURE), "perfetto": (".json", starts.PERFETTO)}
"""Format -> file suffix, and the beginning of its files."""


@click.command("draw", cls=Command)
@one_run_options
@click.option(
    "--all", "everything", is_flag=True, help="All steps and messages, not only those that violations may follow from."
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="svg", help="SVG, or a trace for Perfetto.")
@click.option("--output", metavar="FILE", type=PATH, help="[default: SCENARIO-MODE-SEED.svg]")
@click.pass_obj
def command(
    ui: Ui,
    asked: RunRequest,
    everything: bool,
    form: str,
    output: Path | None,
) -> None:
    """Draw one run: lanes for brokers, controller and clients, messages between them, leaders and ISR, and logs.

    A sweep's DIR, a SCENARIO, or the PLAN of a run (plan.json of a replay). Drawn is what a violation comes from: steps
    of the control plane, of processes and links, those of the first record concerned, and what messages led to them.
    """
    from reports.drawing.observed_run import observe
    from reports.drawing.perfetto import to_perfetto
    from reports.drawing.picture import picture
    from reports.drawing.svg import to_svg
    from reports.evidence.story import head

    run, chosen = asked.one()
    ui.caution(run.warnings)
    suffix, start = FORMATS[form]
    file = output or Path(f"{run.name(chosen)}{suffix}")
    starts.check_file("--output", file, start)
    observed = observe(run.scenario, chosen, run.seed, run.rules)
    options.check_shown(run.scenario, observed.result)
    shown = picture(observed, list(head(observed.result.row)), everything=everything)
    own_files.write(file, to_svg(shown) if form == "svg" else to_perfetto(shown), start)
    ui.line(f"{shown.title[0]}")
    ui.line(f"{counted(len(shown.rows), 'step')} and {counted(len(shown.arrows), 'message')}: {file}")
