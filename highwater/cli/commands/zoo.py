"""``highwater zoo``: mutants of the protocol, and how many seeds random runs need to find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli.options import SuggestingGroup, duration, json_option, read_rules, set_option
from highwater.cli.tables import Markdown, Terminal
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.zoo.census import Census
    from scenarios.zoo.hunt import Hunt, Summary, Target
    from sim.config import Value
    from sim.protocol.mutants import Mutant

PROCESSES_MAX: Final = 1_024
RANGES_MAX: Final = 1_000
BLOWS_MAX: Final = 100


@click.group("zoo", cls=SuggestingGroup)
def command() -> None:
    """List mutants of the protocol, show one, hunt them with random runs, or count where they would act."""


@command.command("list")
@json_option
@click.pass_obj
def list_mutants(ui: Ui, as_json: bool) -> None:
    """List the mutants."""
    from sim.protocol.mutants import MUTANTS

    if as_json:
        ui.json({"mutants": [_as_json(mutant) for mutant in MUTANTS.values()]})
    else:
        rows = [(one.name, one.tier, one.scenario, one.mode, one.sentence) for one in MUTANTS.values()]
        ui.table(["mutant", "tier", "scenario", "mode", "what it does"], rows, numbers=["tier"])


@command.command("show")
@click.argument("mutant")
@json_option
@click.pass_obj
def show(ui: Ui, mutant: str, as_json: bool) -> None:
    """Show a mutant: what it does, its source, the place in Kafka's code, and where it is hunted."""
    from sim.protocol.mutants import named

    chosen = named(mutant)
    if as_json:
        ui.json(_as_json(chosen))
        return
    ui.line(chosen.sentence, style="bold")
    ui.line(f"Source: {chosen.source}")
    ui.line(f"Place: {chosen.place}")
    ui.line(f"Tier {chosen.tier}: to be found within {chosen.budget:,} seeds of {chosen.scenario} in {chosen.mode}")
    ui.line(f"Run: highwater run {chosen.scenario} --mode {chosen.mode} --seed 0 --rule mutant={chosen.name}")


@command.command("hunt")
@click.argument("mutants", metavar="[MUTANT]...", nargs=-1)
@click.option("--all", "hunts_all", is_flag=True, help="Hunt all mutants.")
@click.option(
    "--seeds", metavar="A..B", default="0..10000", show_default=True, help="Seeds from A to B, B excluded, in order."
)
@click.option("--scenario", metavar="NAME", default="", help="Hunt in another random scenario than the mutant's own.")
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
    callback=read_rules,
    help="Hunt what this value of a rule repairs in --mode, in place of a mutant.",
)
@click.option("--mode", metavar="NAME", default="", help="The mode that --repair repairs.")
@set_option
@click.option("--seconds", metavar="TIME", help="End each range after this CPU time, such as 60s or 2m.")
@click.option(
    "--local",
    metavar="N",
    type=click.IntRange(1, PROCESSES_MAX),
    default=1,
    help="Use N processes, each of which hunts in one range at a time.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="The table as text, or Markdown."
)
@json_option
@click.pass_obj
def hunt(
    ui: Ui,
    mutants: tuple[str, ...],
    hunts_all: bool,
    seeds: str,
    scenario: str,
    ranges: int,
    blows: int,
    at_difference: int,
    repairs: dict[str, str],
    mode: str,
    settings: dict[str, Value],
    seconds: str | None,
    local: int,
    form: str,
    as_json: bool,
) -> int:
    """Run seeds of each MUTANT's scenario until one finds it: a violation that the same plan lacks without the mutant.

    Nothing is stored. The violation has to be inside the promise of the mode. With --repair, the counterparts are runs
    with that value of a rule.

    With --blows-at-difference, a run goes on where it differs from its counterpart. The author of a change knows this
    place; plain random runs, and TLC's random simulation, do not. So do not compare their figures with those of such a
    hunt.

    Exit 0 when each mutant was found within the budget of its tier, 1 when one was not, 3 when too few seeds were run.
    """
    from highwater.requests import seed_range
    from scenarios.zoo.hunt import hunts, replay

    targets = _targets(mutants, scenario, mode, repairs, settings, hunts_all=hunts_all)
    chosen = seed_range(seeds)
    if len(chosen) < ranges:
        raise InputError(f"--seeds {seeds!r} has too few seeds for --ranges {ranges}")
    limit = None if seconds is None else duration("--seconds", seconds)
    summaries: list[Summary] = []
    interrupted = False
    try:
        for summary in hunts(targets, chosen, ranges, limit, blows, at_difference, local):
            summaries.append(summary)
            name = summary.target.name
            ui.note(f"{len(summaries)} of {len(targets)}: {name} found in {summary.found} of {ranges} ranges")
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        ui.json({"mutants": [_summary_as_json(summary) for summary in summaries]})
    else:
        _show_hunts(Markdown(ui) if form == "markdown" else Terminal(ui), summaries, ranges)
        for summary in summaries:
            if summary.first_find is not None:
                ui.line(f"    {replay(summary.first_find)}")
    if interrupted:
        ui.warn(f"interrupted: {len(targets) - len(summaries)} targets were not hunted to the end")
        return exit_codes.INTERRUPTED
    answers = [summary.within_budget for summary in summaries]
    if False in answers:
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if None in answers else exit_codes.EXPECTED


@command.command("count")
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1)
@click.option(
    "--seeds", metavar="A..B", default="0..1000", show_default=True, help="Seeds from A to B, B excluded, in order."
)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="The table as text, or Markdown."
)
@json_option
@click.pass_obj
def count(ui: Ui, scenarios: tuple[str, ...], seeds: str, form: str, as_json: bool) -> None:
    """Count the runs of each SCENARIO in which a mutant would decide otherwise; without one, of those hunted in.

    The runs are without mutants and without their settings, in the modes in which mutants are hunted. A mutant that
    would never decide otherwise cannot be found there.
    """
    from highwater.requests import seed_range
    from scenarios.format.catalogue import load
    from scenarios.zoo.census import census
    from scenarios.zoo.census import scenarios as hunted_in
    from sim.protocol.mutants import MUTANTS

    names = list(dict.fromkeys(scenarios)) or hunted_in()
    chosen = seed_range(seeds)
    for name in names:
        _check_random(name, load(name))
    found = []
    for name in names:
        for one in census(name, chosen):
            found.append(one)
            ui.note(f"{name}, mode {one.mode}: {one.runs:,} runs")
    if as_json:
        ui.json({"runs": len(chosen), "counts": [_census_as_json(one) for one in found]})
        return
    shown = Markdown(ui) if form == "markdown" else Terminal(ui)
    rows = []
    for mutant in MUTANTS.values():
        counts = [one for one in found if one.mode == mutant.mode]
        cells = [f"{one.differed[mutant.name]:,}" if one.took[mutant.name] else "-" for one in counts]
        rows.append((mutant.name, mutant.mode, *cells))
    shown.table("", ["mutant", "mode", *names], rows, numbers=names)
    shown.text(
        f"Runs of {len(chosen):,} in which the mutant would decide otherwise; '-': its place was never executed."
    )


def _check_random(name: str, scenario: Scenario) -> None:
    if not scenario.drawn:
        raise InputError(f"{name}: a scripted scenario is the same at every seed")


def _census_as_json(one: Census) -> dict[str, Any]:
    from sim.protocol.mutants import MUTANTS

    mutants = [name for name, mutant in MUTANTS.items() if mutant.mode == one.mode]
    counts = {name: {"took": one.took[name], "differed": one.differed[name]} for name in mutants}
    return {"scenario": one.scenario, "mode": one.mode, "mutants": counts}


def _targets(
    mutants: tuple[str, ...],
    scenario: str,
    mode: str,
    repairs: dict[str, str],
    settings: dict[str, Value],
    *,
    hunts_all: bool,
) -> list[Target]:
    """What to hunt: mutants, or what a rule value repairs."""
    from scenarios.format.catalogue import load
    from scenarios.format.catalogue import mode as mode_named
    from scenarios.zoo.hunt import mutant, repaired
    from sim.protocol.mutants import MUTANTS, named

    if scenario:
        _check_random(f"--scenario {scenario}", load(scenario))
    if repairs:
        if mutants or hunts_all or len(repairs) > 1 or not scenario or not mode:
            raise InputError("--repair takes one rule, with --mode and --scenario, and no mutants")
        ((rule, value),) = repairs.items()
        mode_named(mode)
        return [repaired(mode, rule, value, scenario, settings)]
    if mode or settings:
        raise InputError("--mode and --set go with --repair: a mutant has a mode and settings of its own")
    if bool(mutants) == hunts_all:
        raise InputError("give mutants to hunt, or --all ('highwater zoo list' lists them)")
    return [mutant(name, scenario) for name in dict.fromkeys(named(name).name for name in mutants) or MUTANTS]


def _show_hunts(shown: Terminal, summaries: list[Summary], ranges: int) -> None:
    numbers = ["tier", "seeds", "CPU time", "runs", "continued", "took the place", "decided otherwise", "errors"]
    headers = ["mutant", "tier", "found", *numbers[1:], "violations"]
    shown.table("", headers, [_row(summary, ranges) for summary in summaries], numbers=numbers)
    if ranges > 1:
        shown.text(
            "Seeds and CPU time are medians over the ranges; '-' if half of them or more did not find the mutant."
        )


def _row(summary: Summary, ranges: int) -> tuple[object, ...]:
    from reports.formatting import percent
    from sim.protocol.mutants import named

    seeds, seconds = summary.seeds, summary.seconds
    target = summary.target
    return (
        target.name,
        named(target.name).tier if target.budget else "-",
        f"{summary.found} of {ranges}",
        "-" if seeds is None else f"{seeds:,.0f}",
        "-" if seconds is None else f"{seconds:.2f} s",
        f"{summary.runs:,}",
        f"{summary.continued:,}",
        percent(summary.took / summary.runs),
        percent(summary.differed / summary.runs),
        summary.errors,
        ", ".join(summary.kinds),
    )


def _summary_as_json(summary: Summary) -> dict[str, Any]:
    return {
        "mutant": summary.target.name,
        "found": summary.found,
        "median_seeds": summary.seeds,
        "median_seconds": summary.seconds,
        "within_budget": summary.within_budget,
        "ranges": [_hunt_as_json(one) for one in summary.hunts],
    }


def _hunt_as_json(one: Hunt) -> dict[str, Any]:
    from dataclasses import asdict

    plain = asdict(one)
    del plain["target"]
    return {"mutant": one.target.name, "scenario": one.target.scenario, **plain}


def _as_json(mutant: Mutant) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(mutant), "budget": mutant.budget}
