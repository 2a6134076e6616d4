"""``highwater coverage``: which steps of the protocol a sweep has reached, and which it has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from highwater.cli.options import Command, takes
from highwater.cli.progress import READS, noted
from highwater.requests import AsJson, StoreRequest
from reports.document.blocks import Line, Table
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from highwater.cli.console import Ui
    from reports.analysis.coverage_table import CoverageReport, ProbeGroup
    from reports.document.blocks import Block


@dataclass(frozen=True, kw_only=True)
class CoverageOptions(StoreRequest):
    """The options of the command."""

    as_json: AsJson = False


@click.command("coverage", cls=Command)
@takes(CoverageOptions)
@click.pass_obj
def command(ui: Ui, asked: CoverageOptions) -> int:
    """Show the coverage of a sweep: transitions, rule branches, and transitions after each kind of fault."""
    from reports.analysis import coverage_table as coverage

    store = asked.store()
    store.tell = noted(ui, READS, 1)
    report = coverage.read(store)
    ui.caution(report.shortcomings)
    if asked.as_json:
        ui.json(coverage.as_json(report))
    else:
        ui.show(_blocks(report))
    return exit_codes.INCONCLUSIVE if report.shortcomings else exit_codes.EXPECTED


def _blocks(report: CoverageReport) -> Iterator[Block]:
    modes = list(report.runs)
    runs = [(mode, number, report.exhausted.get(mode, 0)) for mode, number in report.runs.items()]
    yield Table(["mode", "runs", "exhausted"], runs, numbers=["runs", "exhausted"], apart=False)
    for group in report.groups:
        yield from _group(group, modes)
    yield from _wakes(report, modes)


def _group(group: ProbeGroup, modes: list[str]) -> Iterator[Block]:
    reached = [(probe, runs) for probe, runs in group.probes.items() if runs]
    caption = f"{group.name}: {len(reached)} of {len(group.probes) - len(group.foreign)} reached"
    headers = [group.name, "runs", *modes]
    yield Table(headers, [(probe, *_counts(runs, modes)) for probe, runs in reached], headers[1:], caption)
    for probe in group.never:
        meaning = group.meaning(probe)
        yield Line(f"never: {probe}" + (f" ({meaning})" if meaning else ""))
    if group.foreign:
        yield Line(f"of no mode here: {_listed(group.foreign)}", "dim")


def _wakes(report: CoverageReport, modes: list[str]) -> Iterator[Block]:
    headers = ["fault", "transitions", "never", "runs", *modes]
    rows = [(wake.kind, len(wake.reached), len(wake.never), *_counts(wake.runs, modes)) for wake in report.wakes]
    yield Table(headers, rows, headers[1:], "transitions after each kind of fault")
    if report.missing:
        yield Line(f"never after any of them: {_listed(report.missing)}")
    for wake in report.wakes:
        never = [name for name in wake.never if name not in report.missing]
        if never:
            yield Line(f"never after {wake.kind}: {_listed(never)}")
    for kind in report.idle:
        yield Line(f"never: {kind} took effect in no run")
    if report.undrawn:
        yield Line(f"not drawn here: {_listed(report.undrawn)}", "dim")


def _counts(runs: dict[str, int], modes: list[str]) -> Sequence[int]:
    return [sum(runs.values()), *(runs.get(mode, 0) for mode in modes)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
