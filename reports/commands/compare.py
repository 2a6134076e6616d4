"""``highwater compare``: what the modes of a sweep have done, each and in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reports.console import percent
from reports.options import json_option, ui_options
from sim.errors import InputError

if TYPE_CHECKING:
    from reports.compare import Comparison, ModeCounts, Pair, Rate
    from reports.console import Ui


@click.command("compare")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@ui_options
@click.pass_obj
def command(ui: Ui, folder: Path, as_json: bool) -> int:
    """Compare the modes of a sweep: rates with 95 % intervals, and paired tables."""
    from reports import compare
    from scenarios.store import read_rows

    comparisons = compare.compare(read_rows(folder, compare.COLUMNS))
    if not comparisons:
        raise InputError(f"{folder} holds no rows yet: no wave of its sweep is done")
    if as_json:
        ui.json(compare.as_json(comparisons))
    else:
        for comparison in comparisons:
            _show(ui, comparison)
    return 0


def _show(ui: Ui, comparison: Comparison) -> None:
    ui.line(comparison.scenario, style="bold")
    _show_modes(ui, comparison.modes)
    for pair in comparison.pairs:
        _show_pair(ui, pair)
    ui.line()


def _show_modes(ui: Ui, modes: tuple[ModeCounts, ...]) -> None:
    rows = [
        (mode.mode, mode.runs, percent(mode.share_inside), mode.vacuous, mode.stalled, mode.errors, *mode.rounds)
        for mode in modes
    ]
    headers = ["mode", "runs", "runs inside", "vacuous", "stalled", "errors"]
    headers += ["truncations in one round", "in two", "in more"]
    ui.table(headers, rows, numbers=headers[1:])
    ui.line()
    headers = ["kind", "mode", "k/n", "rate", "95 % interval", "inside", "outside"]
    ui.table(headers, [_rate_row(mode.mode, rate) for rate, mode in _by_kind(modes)], numbers=headers[2:])
    warnings = sorted((kind, mode.mode, runs) for mode in modes for kind, runs in mode.warnings.items())
    if warnings:
        headers = ["early warning", "mode", "runs"]
        ui.line()
        ui.table(headers, warnings, numbers=headers[2:])


def _by_kind(modes: tuple[ModeCounts, ...]) -> list[tuple[Rate, ModeCounts]]:
    return [(mode.rates[index], mode) for index in range(len(modes[0].rates)) for mode in modes]


def _rate_row(mode: str, rate: Rate) -> tuple[object, ...]:
    interval = f"{percent(rate.low)} .. {percent(rate.high)}" if rate.k else f"<= {percent(rate.high)}"
    return rate.kind, mode, f"{rate.k}/{rate.n}", percent(rate.rate), interval, rate.inside, rate.outside


def _show_pair(ui: Ui, pair: Pair) -> None:
    ui.line()
    ui.line(
        f"{pair.a} against {pair.b} on {pair.n} common seeds; "
        f"faults as realised were equal in {percent(pair.share_equal_faults)}"
    )
    headers = ["kind", "both", f"only {pair.a}", f"only {pair.b}", "neither", "McNemar p"]
    rows = [(kind.kind, kind.both, kind.only_a, kind.only_b, kind.neither, f"{kind.p:.3g}") for kind in pair.kinds]
    ui.table(headers, rows, numbers=headers[1:])
