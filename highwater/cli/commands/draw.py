"""``highwater draw``: one run as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli.options import Command, one_run_options, ui_options
from highwater.requests import RunRequest
from reports import exits, starts
from scenarios import paths

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from sim.config import Value

FORMATS: Final = {"svg": (".svg", starts.PICTURE), "perfetto": (".json", starts.PERFETTO)}
"""Format -> suffix of its files, and how they begin."""


@click.command("draw", cls=Command)
@one_run_options
@click.option("--all", "everything", is_flag=True, help="All steps and messages, not only what violations come from.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="svg", help="SVG, or a trace for Perfetto.")
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path), help="SCENARIO-MODE-SEED.svg when not given."
)
@ui_options
@click.pass_obj
def command(
    ui: Ui,
    source: str,
    seed: int | None,
    mode: str | None,
    scenario: str | None,
    rules: dict[str, str],
    settings: dict[str, Value],
    strict: bool,
    everything: bool,
    form: str,
    output: Path | None,
) -> int:
    """Draw one run: lanes for brokers, controller and clients, messages between them, leaders and ISR, and logs.

    A sweep's DIR, a SCENARIO, or the PLAN of a run (plan.json of a replay). Drawn is what a violation comes from: steps
    of the control plane, of processes and links, those of the first record concerned, and what messages led to them.
    """
    from reports.drawing.observed import observe
    from reports.drawing.perfetto import to_perfetto
    from reports.drawing.picture import picture
    from reports.drawing.svg import to_svg
    from reports.evidence.story import head

    run = RunRequest(source, seed, scenario, rules, settings, strict).origin()
    chosen = run.only_mode(mode)
    for warning in run.warnings:
        ui.warn(f"highwater: {warning}")
    suffix, start = FORMATS[form]
    file = output or Path(f"{run.scenario.name}-{chosen.name}-{run.seed}{suffix}")
    starts.check_file("--output", file, start)
    observed = observe(run.scenario, chosen, run.seed, run.rules)
    shown = picture(observed, list(head(observed.result.row)), everything=everything)
    paths.write(file, to_svg(shown) if form == "svg" else to_perfetto(shown), start)
    ui.line(f"{shown.title[0]}")
    ui.line(f"{len(shown.rows)} steps and {len(shown.arrows)} messages drawn in {file}")
    return exits.EXPECTED
