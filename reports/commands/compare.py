"""``highwater compare``: what the modes of a sweep, or the values of a setting, have done, each and in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reports import exits
from reports.console import number, percent
from reports.options import Command, json_option, ui_options
from sim.config import shown

if TYPE_CHECKING:
    from reports.analysis.compare import Comparison, Difference, Group, Pair, Rate
    from reports.console import Ui


@click.command("compare", cls=Command)
@click.argument("folder", metavar="DIR")
@click.option(
    "--by", metavar="mode|KEY", default="mode", help="What to compare: modes, or a setting that varied or was drawn."
)
@json_option
@ui_options
@click.pass_obj
def command(ui: Ui, folder: str, by: str, as_json: bool) -> int:
    """Compare the modes of a sweep, or the values of a setting: rates with 95 % intervals, and paired tables."""
    from reports.analysis import compare
    from scenarios.sweep.store import Store

    store = Store(folder)
    comparisons = compare.of_store(store, by)
    shortcomings = store.shortcomings()
    for shortcoming in shortcomings:
        ui.warn(f"highwater: {shortcoming}")
    if as_json:
        ui.json({**compare.as_json(comparisons), "shortcomings": shortcomings})
    else:
        for comparison in comparisons:
            _show(ui, comparison)
    return exits.INCONCLUSIVE if shortcomings else exits.EXPECTED


def _show(ui: Ui, comparison: Comparison) -> None:
    fixed = [f"{name} = {shown(value)}" for name, value in comparison.fixed.items()]
    ui.line(", ".join([comparison.scenario, *fixed]), style="bold")
    _show_groups(ui, comparison.by, comparison.groups)
    for pair in comparison.pairs:
        _show_pair(ui, comparison.by, pair)
    ui.line()


def _show_groups(ui: Ui, by: str, groups: tuple[Group, ...]) -> None:
    rows = [
        (
            one.name,
            one.runs,
            one.errors,
            one.exhausted,
            percent(one.share_inside),
            one.vacuous,
            one.stalled,
            *one.rounds,
        )
        for one in groups
    ]
    headers = [by, "runs", "errors", "exhausted", "runs inside", "vacuous", "stalled"]
    headers += ["truncations in one round", "in two", "in more"]
    ui.table(headers, rows, numbers=headers[1:])
    for one in groups:
        if one.errors:
            ui.line(f"{one.name}: {one.errors} runs that ended with an error are in no n; nothing is known of them")
        if one.exhausted:
            ui.line(f"{one.name}: {one.exhausted} of {one.runs} runs were given up (exhausted) and may have shown more")
    by_damage = [
        (one.name, one.inside_unclean, one.inside_lossy, one.runs) for one in groups if one.inside_unclean is not None
    ]
    if by_damage:
        headers = [by, "runs inside by unclean ends", "by lossy ends", "runs"]
        ui.line()
        ui.table(headers, by_damage, numbers=headers[1:])
    ui.line()
    headers = ["kind", by, "k/n", "rate", "95 % interval", "inside", "outside", "runs inside"]
    ui.table(headers, [_rate_row(one.name, rate) for rate, one in _by_kind(groups)], numbers=headers[2:])
    warnings = sorted((kind, one.name, runs) for one in groups for kind, runs in one.warnings.items())
    if warnings:
        headers = ["early warning", by, "runs"]
        ui.line()
        ui.table(headers, warnings, numbers=headers[2:])
    levels = [
        (level.measure, one.name, number(level.median), number(level.mean), level.highest)
        for place in range(max(len(one.availability) for one in groups))
        for one in groups
        for level in one.availability[place : place + 1]
    ]
    if levels:
        headers = ["availability", by, "median", "mean", "highest"]
        ui.line()
        ui.table(headers, levels, numbers=headers[2:])


def _by_kind(groups: tuple[Group, ...]) -> list[tuple[Rate, Group]]:
    return [(one.rates[index], one) for index in range(len(groups[0].rates)) for one in groups]


def _rate_row(name: str, rate: Rate) -> tuple[object, ...]:
    interval = f"{percent(rate.low)} .. {percent(rate.high)}" if rate.k else f"<= {percent(rate.high)}"
    share = percent(rate.share_inside)
    return rate.kind, name, f"{rate.k}/{rate.n}", percent(rate.rate), interval, rate.inside, rate.outside, share


def _show_pair(ui: Ui, by: str, pair: Pair) -> None:
    ui.line()
    what = "" if by == "mode" else f"{by} = "
    ui.line(
        f"{what}{pair.a} against {pair.b} on {pair.n} common seeds; "
        f"faults as realised were equal in {percent(pair.share_equal_faults)}"
    )
    headers = ["kind", "both", f"only {pair.a}", f"only {pair.b}", "neither", "McNemar p"]
    rows = [(kind.kind, kind.both, kind.only_a, kind.only_b, kind.neither, f"{kind.p:.3g}") for kind in pair.kinds]
    ui.table(headers, rows, numbers=headers[1:])
    if pair.availability:
        headers = ["availability", f"mean {pair.a}", f"mean {pair.b}", "mean difference", "95 % interval"]
        ui.line()
        ui.table(headers, map(_difference, pair.availability), numbers=headers[1:])


def _difference(found: Difference) -> tuple[object, ...]:
    interval = (
        None if found.low is None or found.high is None else f"{number(found.low, '+')} .. {number(found.high, '+')}"
    )
    return found.measure, number(found.mean_a), number(found.mean_b), number(found.mean, "+"), interval
