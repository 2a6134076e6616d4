"""``highwater zoo``: mutants and bugs of Kafka, and how many seeds random runs or walks need to find them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import completion
from highwater.cli.campaign import campaign_options
from highwater.cli.options import SuggestingGroup, json_option, option_of
from highwater.requests import Settings
from highwater.values import duration, rule_words
from reports.document.blocks import Heading, Line, Table, Text
from sim import exit_codes
from sim.config import shown
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.cli.campaign import CampaignPlace
    from highwater.cli.console import Ui
    from highwater.lab.zoo.census import Census
    from highwater.lab.zoo.hunt import TargetHunt, TargetSummary
    from highwater.lab.zoo.targets import Target
    from reports.document.blocks import Block
    from scenarios.format.scenario import Scenario
    from sim.config import Value

RANGES_MAX: Final = 1_000
BLOWS_MAX: Final = 100


def _names() -> list[str]:
    from highwater.lab.zoo.targets import names

    return names()


@click.group("zoo", cls=SuggestingGroup)
def command() -> None:
    """List mutants and bugs of Kafka, show one, hunt them with random runs and walks, or count where mutants act."""


@command.command("list")
@json_option
@click.pass_obj
def list_targets(ui: Ui, as_json: bool) -> None:
    """List the mutants and the bugs."""
    from highwater.lab.zoo.targets import names, target

    targets = [target(name) for name in names()]
    if as_json:
        ui.json({"targets": [_as_json(one) for one in targets]})
    else:
        rows = [(one.name, one.tier, _where(one, walks=one.walks is not None)[0], one.sentence) for one in targets]
        ui.show([Table(["mutant or bug", "tier", "hunted in", "what it does"], rows, ["tier"], apart=False)])


@command.command("show")
@click.argument("name", metavar="MUTANT|BUG", shell_complete=completion.of(_names))
@json_option
@click.pass_obj
def show(ui: Ui, name: str, as_json: bool) -> None:
    """Show a mutant or a bug."""
    from highwater.lab.zoo.targets import target

    chosen = target(name)
    if as_json:
        ui.json(_as_json(chosen))
        return
    ui.show(_target(chosen))


def _target(chosen: Target) -> Iterator[Block]:
    yield Heading(chosen.sentence)
    yield Line(f"Source: {chosen.source}")
    if chosen.place:
        yield Line(f"Place: {chosen.place}")
    runs, walks = chosen.runs, chosen.walks
    for label, rules in (("Repair", runs.right), ("Also cured by each of", runs.also_by), ("Not by", runs.not_by)):
        if rules:
            yield Line(f"{label}: {', '.join(f'{rule}={value}' for rule, value in rules)}")
    if runs.kinds:
        yield Line(f"Violations: {', '.join(runs.kinds)}{'' if runs.is_promised else ', outside the promise'}")
    of_walks = "" if walks is None else f", or walks in {walks.mode}"
    yield Line(
        f"Tier {chosen.tier}: to be found within {chosen.budget:,} seeds of {runs.scenario} in {runs.base}{of_walks}"
    )
    if chosen.mark is not None:
        tlc = f"; TLC's random simulation needs {chosen.mark.tlc}" if chosen.mark.tlc else ""
        yield Line(f"Mark: {chosen.mark.seconds:g} CPU s{tlc}")
    yield Line(f"Hunt: highwater zoo hunt {chosen.name}")
    if walks is not None:
        yield Line(f"Walk: {walks.command(1000, 0)}")


@command.command("hunt")
@click.argument("chosen", metavar="[MUTANT|BUG]...", nargs=-1, shell_complete=completion.of(_names))
@click.option("--all", "hunts_all", is_flag=True, help="Hunt all mutants and bugs.")
@click.option(
    "--seeds",
    metavar="A..B|N",
    default="0..10000",
    show_default=True,
    help="Seeds from A to B, B excluded, or N seeds from 0 on.",
)
@click.option(
    "--method",
    type=click.Choice(["runs", "walks"]),
    help="Hunt with random runs of a scenario only, or only with random walks, as 'explore --walks' does.  [default: "
    "with walks what they find sooner]",
)
@click.option(
    "--scenario",
    metavar="NAME",
    default="",
    shell_complete=completion.of("scenarios"),
    help="Hunt with runs of this random scenario.",
)
@click.option(
    "--ranges",
    metavar="N",
    type=click.IntRange(1, RANGES_MAX),
    default=1,
    help="Divide the seeds into N ranges, hunt in each, and show medians.",
)
@click.option(
    "--blows",
    metavar="N",
    type=click.IntRange(0, BLOWS_MAX),
    default=0,
    help="Continue runs with each of N blows after their early warnings, as 'sweep --blows' does.",
)
@click.option(
    "--blows-at-difference",
    "at_difference",
    metavar="N",
    type=click.IntRange(0, BLOWS_MAX),
    default=0,
    help="Continue runs with N blows where they differ from their counterparts. Such a hunt knows where the bug is.",
)
@click.option(
    "--repair",
    "repairs",
    metavar="RULE=VALUE",
    multiple=True,
    callback=lambda _ctx, _param, pairs: rule_words(pairs),
    help="Hunt what this value of a rule repairs in --mode, with runs.",
)
@click.option(
    "--mode", metavar="NAME", default="", shell_complete=completion.of("modes"), help="The mode that --repair repairs."
)
@option_of("settings", Settings)
@click.option("--budget", "seconds", metavar="TIME", help="End each range after this CPU time, such as 60s or 2m.")
@campaign_options("Keep the results of ranges, so that the same command resumes.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="The table as text, or Markdown."
)
@json_option
@click.pass_obj
def hunt(
    ui: Ui,
    /,
    chosen: tuple[str, ...],
    hunts_all: bool,
    seeds: str,
    method: str | None,
    scenario: str,
    ranges: int,
    blows: int,
    at_difference: int,
    repairs: dict[str, str],
    mode: str,
    settings: dict[str, Value],
    seconds: str | None,
    form: str,
    as_json: bool,
    place: CampaignPlace,
) -> int:
    """Hunt mutants and bugs.

    Each MUTANT or BUG is hunted until a seed finds it: a violation that does not occur with the same faults without the
    mutant, or with the repair of the bug. The violation has to be inside the promise of the mode, except for bugs that
    no promise covers. A process hunts in one range at a time.

    Random walks begin with the first seed of a range, and each counts as a seed. An early warning counts as a
    violation there, as TLC's invariants do.

    With --blows-at-difference, a run goes on where it differs from its counterpart. The author of a change knows this
    place; plain random runs, and TLC's random simulation, do not. So do not compare their figures with those of such a
    hunt.

    Exit 0 when each one was found within the budget of its tier, 1 when one was not, 3 when too few seeds were run. A
    missed mark does not change the exit code.
    """
    from highwater.lab.zoo.hunt import hunts, replay
    from highwater.values import seed_range

    needs_runs = bool(scenario or repairs or blows or at_difference)
    if method == "walks" and needs_runs:
        raise InputError("--method walks: --scenario, --repair and blows are for runs")
    targets = _targets(chosen, scenario, mode, repairs, settings, hunts_all=hunts_all)
    ways = _ways(ui, targets, "runs" if needs_runs else method, hunts_all=hunts_all)
    numbers = seed_range(seeds)
    if len(numbers) < ranges:
        raise InputError(f"--seeds {seeds!r} has too few seeds for --ranges {ranges}")
    limit = None if seconds is None else duration("--budget", seconds)
    summaries: list[TargetSummary] = []
    interrupted = False
    how = limit, blows, at_difference
    about = {
        "how": how,
        "scenario": scenario,
        "mode": mode,
        "settings": {key: shown(one) for key, one in settings.items()},
    }
    try:
        with place.begin("zoo-hunt", about) as (runner, record):
            for summary in hunts(ways, numbers, runner, record, ranges, *how):
                summaries.append(summary)
                name = summary.target.name
                ui.note(f"{len(summaries)} of {len(ways)}: {name} found in {summary.found} of {ranges} ranges")
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        ui.json({"targets": [_summary_as_json(summary) for summary in summaries], "interrupted": interrupted})
    elif summaries:
        ui.show(_hunts(summaries, ranges), form)
        for summary in summaries:
            if summary.first_find is not None:
                ui.line(f"    {replay(summary.first_find)}")
    if interrupted:
        ui.warn(f"interrupted: {len(ways) - len(summaries)} mutants and bugs were not hunted to the end")
        return exit_codes.INTERRUPTED
    answers = [summary.within_budget for summary in summaries]
    if False in answers:
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if None in answers else exit_codes.EXPECTED


@command.command("count")
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1, shell_complete=completion.of("scenarios"))
@click.option(
    "--seeds",
    metavar="A..B|N",
    default="0..1000",
    show_default=True,
    help="Seeds from A to B, B excluded, or N seeds from 0 on.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="The table as text, or Markdown."
)
@campaign_options("Keep the counts of runs, so that the same command resumes.")
@json_option
@click.pass_obj
def count(ui: Ui, /, scenarios: tuple[str, ...], seeds: str, form: str, as_json: bool, place: CampaignPlace) -> None:
    """Count where mutants would act.

    Counts the runs of each SCENARIO in which a mutant would decide otherwise; without one, of those hunted in. The runs
    are without mutants and without their settings, in the modes in which mutants are hunted. A mutant that would never
    decide otherwise cannot be found there.
    """
    from highwater.lab.zoo.census import census
    from highwater.lab.zoo.census import scenarios as hunted_in
    from highwater.values import seed_range
    from scenarios.format.catalogue import load
    from sim.protocol.mutants import MUTANTS

    names = list(dict.fromkeys(scenarios)) or hunted_in()
    chosen = seed_range(seeds)
    for name in names:
        _check_random(name, load(name))
    found = []
    with place.begin("zoo-count", {}) as (runner, record):
        for one in census(names, chosen, runner, record):
            found.append(one)
            ui.note(f"{one.scenario}, mode {one.mode}: {one.runs:,} runs")
    if as_json:
        ui.json({"runs": len(chosen), "counts": [_census_as_json(one) for one in found]})
        return
    rows = []
    for mutant in MUTANTS.values():
        counts = [one for one in found if one.mode == mutant.mode]
        cells = [f"{one.differed[mutant.name]:,}" if one.took[mutant.name] else "-" for one in counts]
        rows.append((mutant.name, mutant.mode, *cells))
    note = f"Runs of {len(chosen):,} in which the mutant would decide otherwise; '-': its place was never executed."
    ui.show([Table(["mutant", "mode", *names], rows, names), Text(note)], form)


def _check_random(name: str, scenario: Scenario) -> None:
    if not scenario.drawn:
        raise InputError(f"{name}: a scripted scenario is the same at every seed")


def _census_as_json(one: Census) -> dict[str, Any]:
    from sim.protocol.mutants import MUTANTS

    mutants = [name for name, mutant in MUTANTS.items() if mutant.mode == one.mode]
    counts = {name: {"took": one.took[name], "differed": one.differed[name]} for name in mutants}
    return {"scenario": one.scenario, "mode": one.mode, "mutants": counts}


def _targets(
    chosen: tuple[str, ...],
    scenario: str,
    mode: str,
    repairs: dict[str, str],
    settings: dict[str, Value],
    *,
    hunts_all: bool,
) -> list[Target]:
    """What to hunt: mutants and bugs, or what a rule value repairs."""
    from highwater.lab.zoo.targets import names, repaired, target
    from scenarios.format.catalogue import load
    from scenarios.format.catalogue import mode as mode_named

    if scenario:
        _check_random(f"--scenario {scenario}", load(scenario))
    if repairs:
        if chosen or hunts_all or len(repairs) > 1 or not scenario or not mode:
            raise InputError("--repair takes one rule, with --mode and --scenario, and no mutants or bugs")
        ((rule, value),) = repairs.items()
        mode_named(mode)
        return [repaired(mode, rule, value, scenario, settings)]
    if mode or settings:
        raise InputError("--mode and --set go with --repair: a mutant or bug has a mode and settings of its own")
    if bool(chosen) == hunts_all:
        raise InputError("give mutants or bugs to hunt, or --all ('highwater zoo list' lists them)")
    targets = [target(name) for name in dict.fromkeys(chosen) or names()]
    return [replace(one, runs=replace(one.runs, scenario=scenario)) for one in targets] if scenario else targets


def _ways(ui: Ui, targets: list[Target], method: str | None, *, hunts_all: bool) -> list[tuple[Target, bool]]:
    """The targets, and whether each is hunted with walks; with `method` "walks", of all only those that walks hunt."""
    walked = [one for one in targets if one.walks is not None]
    if method == "walks":
        others = [one.name for one in targets if one.walks is None]
        if others and not hunts_all:
            raise InputError(f"--method walks: walks are not known to find {', '.join(others)}")
        if others:
            ui.note(f"walks are not known to find {len(others)} of {len(targets)}, which are not hunted")
        return [(one, True) for one in walked]
    return [(one, method is None and one.walks is not None) for one in targets]


def _where(target: Target, *, walks: bool) -> tuple[str, str]:
    """What a target is hunted in, and the mode."""
    if walks and target.walks is not None:
        return "walks", target.walks.mode
    return target.runs.scenario, target.runs.base


def _hunts(summaries: list[TargetSummary], ranges: int) -> Iterator[Block]:
    all_cells = [_cells(summary, ranges) for summary in summaries]
    columns = [
        column
        for column in _COLUMNS
        if column not in _IF_ANY or any(cells[column] not in ("", "-", "0") for cells in all_cells)
    ]
    rows = [[cells[column] for column in columns] for cells in all_cells]
    yield Table(columns, rows, [one for one in columns if one in _NUMBERS])
    if ranges > 1:
        yield Text("Seeds and CPU time are medians over the ranges; '-' if half of them or more found nothing.")


_COLUMNS: Final = (
    "mutant or bug",
    "tier",
    "hunted in",
    "found",
    "seeds",
    "CPU time",
    "mark",
    "TLC, CPU s",
    "tried",
    "continued",
    "took the place",
    "decided otherwise",
    "errors",
    "violations",
)
_IF_ANY: Final = ("mark", "TLC, CPU s", "continued", "took the place", "decided otherwise", "errors")
"""Columns that are shown if one of their cells is not empty and not 0."""
_NUMBERS: Final = {*_COLUMNS} - {"mutant or bug", "hunted in", "found", "mark", "TLC, CPU s", "violations"}


def _cells(summary: TargetSummary, ranges: int) -> dict[str, str]:
    """Column -> what the table shows of a target there."""
    from reports.formatting import percent

    seeds, seconds = summary.seeds, summary.seconds
    target = summary.target
    mark = target.mark
    kept = {True: "kept", False: "missed", None: "open"}[summary.keeps_mark]
    has_place = bool(summary.took or (target.place and not summary.walked))
    return {
        "mutant or bug": target.name,
        "tier": str(target.tier or "-"),
        "hunted in": ", ".join(_where(target, walks=summary.walked)),
        "found": f"{summary.found} of {ranges}",
        "seeds": "-" if seeds is None else f"{seeds:,.0f}",
        "CPU time": "-" if seconds is None else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s",
        "mark": "" if mark is None else f"{mark.seconds:g} s: {kept}",
        "TLC, CPU s": "" if mark is None else mark.tlc,
        "tried": f"{summary.runs:,}",
        "continued": f"{summary.continued:,}",
        "took the place": percent(summary.took / summary.runs) if has_place else "-",
        "decided otherwise": percent(summary.differed / summary.runs) if has_place else "-",
        "errors": f"{summary.errors:,}",
        "violations": ", ".join(summary.kinds),
    }


def _summary_as_json(summary: TargetSummary) -> dict[str, Any]:
    return {
        "target": summary.target.name,
        "walked": summary.walked,
        "found": summary.found,
        "median_seeds": summary.seeds,
        "median_seconds": summary.seconds,
        "within_budget": summary.within_budget,
        "keeps_mark": summary.keeps_mark,
        "ranges": [_hunt_as_json(one) for one in summary.hunts],
    }


def _hunt_as_json(one: TargetHunt) -> dict[str, Any]:
    from dataclasses import asdict

    plain = asdict(one)
    del plain["target"]
    where, mode = _where(one.target, walks=one.walked)
    return {"target": one.target.name, "scenario": where, "mode": mode, **plain}


def _as_json(target: Target) -> dict[str, Any]:
    from dataclasses import asdict

    mark = target.mark
    return {**asdict(target), "budget": target.budget, "mark": None if mark is None else asdict(mark)}
