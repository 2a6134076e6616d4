"""``highwater coverage``: which steps of the protocol a sweep has reached, and which it has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from highwater.cli.options import Command, json_option, store_options
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.cli.console import Ui
    from highwater.requests import StoreRequest
    from reports.analysis.coverage_table import CoverageReport, ProbeGroup


@click.command("coverage", cls=Command)
@store_options
@json_option
@click.pass_obj
def command(ui: Ui, asked: StoreRequest, as_json: bool) -> int:
    """Show the coverage of a sweep: transitions, rule branches, and transitions after each kind of fault."""
    from reports.analysis import coverage_table as coverage

    report = coverage.read(asked.store())
    ui.caution(report.shortcomings)
    if as_json:
        ui.json(coverage.as_json(report))
    else:
        _show(ui, report)
    return exit_codes.INCONCLUSIVE if report.shortcomings else exit_codes.EXPECTED


def _show(ui: Ui, report: CoverageReport) -> None:
    modes = list(report.runs)
    runs = [(mode, number, report.exhausted.get(mode, 0)) for mode, number in report.runs.items()]
    ui.table(["mode", "runs", "exhausted"], runs, numbers=["runs", "exhausted"])
    for group in report.groups:
        _show_group(ui, group, modes)
    _show_wakes(ui, report, modes)


def _show_group(ui: Ui, group: ProbeGroup, modes: list[str]) -> None:
    reached = [(probe, runs) for probe, runs in group.probes.items() if runs]
    ui.line()
    ui.line(f"{group.name}: {len(reached)} of {len(group.probes) - len(group.foreign)} reached", style="bold")
    headers = [group.name, "runs", *modes]
    ui.table(headers, [(probe, *_counts(runs, modes)) for probe, runs in reached], numbers=headers[1:])
    for probe in group.never:
        meaning = group.meaning(probe)
        ui.line(f"never: {probe}" + (f" ({meaning})" if meaning else ""))
    if group.foreign:
        ui.line(f"of no mode here: {_listed(group.foreign)}", style="dim")


def _show_wakes(ui: Ui, report: CoverageReport, modes: list[str]) -> None:
    ui.line()
    ui.line("transitions after each kind of fault", style="bold")
    headers = ["fault", "transitions", "never", "runs", *modes]
    rows = [(wake.kind, len(wake.reached), len(wake.never), *_counts(wake.runs, modes)) for wake in report.wakes]
    ui.table(headers, rows, numbers=headers[1:])
    if report.missing:
        ui.line(f"never after any of them: {_listed(report.missing)}")
    for wake in report.wakes:
        never = [name for name in wake.never if name not in report.missing]
        if never:
            ui.line(f"never after {wake.kind}: {_listed(never)}")
    for kind in report.idle:
        ui.line(f"never: {kind} took effect in no run")
    if report.undrawn:
        ui.line(f"not drawn here: {_listed(report.undrawn)}", style="dim")


def _counts(runs: dict[str, int], modes: list[str]) -> Sequence[int]:
    return [sum(runs.values()), *(runs.get(mode, 0) for mode in modes)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
