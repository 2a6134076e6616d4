"""``highwater shrink``: the smallest run that fails in the same way for the same cause."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from highwater.cli import outcome
from highwater.cli.options import Command, takes
from highwater.requests import AsJson, ShrinkRequest, evidence_folder
from reports.evidence import folder as evidence
from reports.evidence import outcome as single
from sim import exit_codes
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.cli.console import Ui
    from scenarios.shrinking.case import Case

SHRINK_VERSION: Final = 1
NOTE_SECONDS: Final = 2
"""Seconds between two progress notes."""


@dataclass(frozen=True, kw_only=True)
class ShrinkOptions(ShrinkRequest):
    """The options of the command."""

    output: Annotated[Path | None, evidence_folder("shrunk")] = None
    as_json: AsJson = False


@click.command("shrink", cls=Command)
@takes(ShrinkOptions)
@click.pass_obj
def command(ui: Ui, asked: ShrinkOptions) -> None:
    """Shrink a failed run: one seed of a sweep in DIR, of SCENARIO, or a recorded run (PLAN).

    Removes faults, batches, settings and brokers that are not needed, and rounds times, while the run still fails for
    the same reason (same violation, same repairs). What is left is written as replay writes it.
    """
    from reports.evidence import shrunk_run

    origin, chosen = asked.one()
    ui.caution(origin.warnings)
    place = origin.place(asked.output, origin.seed, chosen.name, shrunk_run.PART)
    evidence.check(place)
    found, took = shrunk_run.shrunk(
        shrunk_run.failed_run(origin, chosen, keeps_cluster=asked.keeps_cluster),
        asked.kind,
        asked.budget_s,
        progress(ui),
    )
    evidence.prepare(place)
    case = shrunk_run.as_found(found, place.path / evidence.PLAN)
    result = case.run(trace=True)
    script, unscripted = shrunk_run.script(found)
    evidence.write(place, case.scenario, result, script=script)
    if asked.as_json:
        head = {"schema_version": SHRINK_VERSION, **shrunk_run.as_json(found), "folder": str(place.path)}
        ui.json({**head, "scenario": script or None, **single.as_json(result), "exit_code": exit_codes.EXPECTED})
        return
    outcome.show(ui, case.scenario, result)
    ui.line()
    ui.line(shrunk_run.summary(found, took), style="bold")
    ui.line(f"Kept: {shrunk_run.kept(found)}. {shrunk_run.cause(found)}")
    if not found.whole:
        ui.line(shrunk_run.unfinished(found))
    ui.line(f"No script: {unscripted}" if unscripted else f"As a script: {place.path / evidence.SCENARIO}")
    ui.written(f"written to {place.path}")


def progress(ui: Ui) -> Callable[[Case, int], None]:
    """Note progress from time to time."""
    last = time.monotonic()

    def tell(case: Case, runs: int) -> None:
        nonlocal last
        if time.monotonic() - last >= NOTE_SECONDS:
            last = time.monotonic()
            size = f"{counted(len(case.faults), 'fault')}, {counted(len(case.sends), 'batch', 'batches')}"
            ui.note(f"{size} after {counted(runs, 'run')}")

    return tell
