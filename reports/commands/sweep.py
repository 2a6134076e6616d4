"""``highwater sweep``: many seeds of some scenarios, in some modes, on this machine or on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reports import exits, options
from reports.console import percent
from reports.options import json_option, rule_option, set_option, strict_option, ui_options
from sim.errors import InputError

if TYPE_CHECKING:
    from reports.console import Ui
    from scenarios.scenario import Scenario
    from scenarios.sweep import Backend
    from sim.config import Value

LOCAL_TASK_SECONDS: Final = 3.0
CLUSTER_TASK_SECONDS: Final = 30.0
SHOWN_FAILURES: Final = 10
"""Replay lines that the text result shows; rows hold them all."""


@click.command("sweep")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--modes", metavar="A,B", help="Modes to run; those of each scenario's [expect] when not given.")
@options.all_modes_option
@click.option("--seeds", metavar="A..B", required=True, help="Seeds from A, without B; decimal or 0x.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Folder of the results.")
@click.option("--local", metavar="N", type=click.IntRange(min=1), help="Use N processes of this machine, no Spark.")
@click.option("--master", metavar="URL", help="Spark master; local[*] or the session's own when not given.")
@click.option("--conf", metavar="KEY=VALUE", multiple=True, help="Spark setting.")
@click.option(
    "--chunks", metavar="N", type=click.IntRange(min=1), help="Tasks of each wave; calibrated when not given."
)
@click.option(
    "--task-seconds",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Length of a task when calibrating: 3 here, 30 on a cluster.",
)
@rule_option
@set_option
@strict_option
@json_option
@ui_options
@click.pass_obj
def command(
    ui: Ui,
    scenarios: tuple[str, ...],
    modes: str | None,
    all_modes: bool,
    seeds: str,
    output: Path,
    local: int | None,
    master: str | None,
    conf: tuple[str, ...],
    chunks: int | None,
    task_seconds: float | None,
    rules: dict[str, str],
    settings: dict[str, Value],
    strict: bool,
    as_json: bool,
) -> int:
    """Run a range of seeds of each SCENARIO; the same command goes on with a sweep that was stopped."""
    from reports.progress import SweepProgress
    from scenarios.rows import SCHEMA_VERSION
    from scenarios.sweep import GO_ON, Interrupted, Sweep, run_sweep

    first, end = options.seed_range(seeds)
    chosen = _scenarios(scenarios, settings, strict=strict)
    named = modes.split(",") if modes else ()
    by_scenario = {scenario.name: options.modes(scenario, named, everyone=all_modes) for scenario in chosen}
    backend = _backend(local, master, _conf(conf))
    length = task_seconds or (LOCAL_TASK_SECONDS if _is_local(master) else CLUSTER_TASK_SECONDS)
    sweep = Sweep(chosen, by_scenario, first, end, rules)
    try:
        with SweepProgress(ui) as progress:
            summary = run_sweep(sweep, output, backend, chunks=chunks, task_seconds=length, report=progress)
    except Interrupted:
        ui.warn(f"interrupted: {GO_ON}")
        return exits.INTERRUPTED
    if as_json:
        ui.json({"schema_version": SCHEMA_VERSION, **summary})
    else:
        _show(ui, output, summary)
    return int(summary["exit_code"])


def _scenarios(names: tuple[str, ...], settings: dict[str, Value], *, strict: bool) -> tuple[Scenario, ...]:
    chosen = tuple(options.scenario(name, settings, strict=strict) for name in dict.fromkeys(names))
    found = [scenario.name for scenario in chosen]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise InputError(f"two scenarios are called {twice[0]!r}; rows could not tell them apart")
    return chosen


def _conf(pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--conf {pair.split('.')[0]!r}... is not of the form KEY=VALUE")
    return dict(pair.split("=", 1) for pair in pairs)


def _backend(local: int | None, master: str | None, conf: dict[str, str]) -> Backend:
    if local is None:
        from scenarios.spark import SparkBackend

        return SparkBackend(master, conf)
    if master is not None or conf:
        raise InputError("--local uses no Spark: it excludes --master and --conf")
    from scenarios.local import LocalBackend

    return LocalBackend(local)


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _show(ui: Ui, output: Path, summary: dict[str, Any]) -> None:
    headers = [
        "scenario",
        "mode",
        "runs",
        "inside",
        "ok",
        "violation",
        "stalled",
        "error",
        "vacuous",
        "expected",
        "met",
    ]
    ui.table(headers, map(_counts, summary["results"]), numbers=headers[2:9])
    kinds = [row for result in summary["results"] for row in _kinds(result)]
    if kinds:
        headers = ["scenario", "mode", "kind", "runs", "inside the promise"]
        ui.line()
        ui.table(headers, kinds, numbers=headers[3:])
    warnings = [row for result in summary["results"] for row in _warnings(result)]
    if warnings:
        headers = ["scenario", "mode", "early warning", "runs"]
        ui.line()
        ui.table(headers, warnings, numbers=headers[3:])
    rounds = [row for result in summary["results"] for row in _rounds(result)]
    if rounds:
        headers = ["scenario", "mode", "truncations in one round", "in two", "in more"]
        ui.line()
        ui.table(headers, rounds, numbers=headers[2:])
    if summary["failing"]:
        _show_failing(ui, output / "violations.jsonl", summary["failing"])


def _show_failing(ui: Ui, file: Path, count: int) -> None:
    """One run of each sort of failure: those violated inside the promise first."""
    with file.open(encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    runs.sort(key=lambda run: not run["kinds_inside"])
    sorts = {
        (run["scenario"], run["mode"], run["verdict"], *run["kinds_inside"], "/", *run["kinds"]): run
        for run in reversed(runs)
    }
    ui.line()
    ui.line(f"{count} runs violated, stalled or failed: {file} replays each. Some of them:")
    for run in list(reversed(sorts.values()))[:SHOWN_FAILURES]:
        said = [f"{kind} (inside)" if kind in run["kinds_inside"] else kind for kind in run["kinds"]]
        ui.line()
        ui.line(f"  # {', '.join(said) or run['verdict']}", style="dim")
        ui.line(f"  {run['replay']}")


def _counts(result: dict[str, Any]) -> tuple[object, ...]:
    verdicts = result["verdicts"]
    return (
        result["scenario"],
        result["mode"],
        result["runs"],
        percent(result["inside_share"]),
        *(verdicts[verdict] for verdict in ("ok", "violation", "stalled", "error")),
        result["vacuous"],
        result["expectation"],
        "yes" if result["met"] else "NO",
    )


def _kinds(result: dict[str, Any]) -> list[tuple[object, ...]]:
    key = result["scenario"], result["mode"]
    return [(*key, kind, counts["n"], counts["inside"]) for kind, counts in result["kinds"].items()]


def _warnings(result: dict[str, Any]) -> list[tuple[object, ...]]:
    return [(result["scenario"], result["mode"], kind, runs) for kind, runs in result["warnings"].items()]


def _rounds(result: dict[str, Any]) -> list[tuple[object, ...]]:
    """One row, none where no follower asked for an epoch's end."""
    rounds = result["rounds"].values()
    return [(result["scenario"], result["mode"], *rounds)] if any(rounds) else []
