"""``highwater draw``: one run as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import click

from highwater.cli import options
from highwater.cli.options import Command, takes
from highwater.option import Option
from highwater.requests import ShownRequest
from reports import starts
from scenarios import own_files
from sim.plurals import counted

if TYPE_CHECKING:
    from highwater.cli.console import Ui

FORMATS: Final = {"svg": (".svg", starts.PICTURE), "perfetto": (".json", starts.PERFETTO)}
"""Format -> file suffix, and the beginning of its files."""


@dataclass(frozen=True, kw_only=True)
class DrawOptions(ShownRequest):
    """The options of the command."""

    everything: Annotated[
        bool, Option("--all", help="All steps and messages, not only those that violations may follow from.")
    ] = False
    form: Annotated[Literal["svg", "perfetto"], Option("--format", help="SVG, or a trace for Perfetto.")] = "svg"
    output: Annotated[Path | None, Option(metavar="FILE", help="[default: SCENARIO-MODE-SEED.svg]")] = None


@click.command("draw", cls=Command)
@takes(DrawOptions)
@click.pass_obj
def command(ui: Ui, asked: DrawOptions) -> None:
    """Draw one run: lanes for brokers, controller and clients, messages between them, leaders and ISR, and logs.

    A sweep's DIR, a SCENARIO, or the PLAN of a run (plan.json of a replay). Drawn is what a violation comes from: steps
    of the control plane, of processes and links, those of the first record concerned, and what messages led to them.
    """
    from reports.drawing.observed_run import observe
    from reports.drawing.perfetto import to_perfetto
    from reports.drawing.picture import picture
    from reports.drawing.svg import to_svg
    from reports.evidence.story import heading

    run, chosen = asked.one()
    ui.caution(run.warnings)
    suffix, start = FORMATS[asked.form]
    file = asked.output or Path(f"{run.name(chosen)}{suffix}")
    starts.check_file("--output" if asked.output else "", file, start)
    observed = observe(run.scenario, chosen, run.seed, run.rules)
    options.check_shown(run.scenario, observed.result)
    shown = picture(observed, list(heading(observed.result)), everything=asked.everything)
    own_files.write(file, to_svg(shown) if asked.form == "svg" else to_perfetto(shown), start)
    ui.line(f"{shown.title[0]}")
    ui.written(f"{counted(len(shown.rows), 'step')} and {counted(len(shown.arrows), 'message')}: {file}")
