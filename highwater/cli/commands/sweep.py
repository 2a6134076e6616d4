"""``highwater sweep``: many seeds of some scenarios, in some modes, on this machine or on Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from highwater import values
from highwater.cli.campaign import PROCESSES_MAX, read_conf
from highwater.cli.cluster import tell
from highwater.cli.options import Command, takes
from highwater.option import Option
from highwater.requests import AsJson, SweepRequest, seed_option
from reports.document.blocks import Line, Table, Text
from reports.formatting import percent
from scenarios import plugged
from sim import exit_codes
from sim.config import shown
from sim.errors import InputError
from sim.plurals import counted, listed

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from scenarios.sweep.driver import Backend
    from scenarios.sweep.folder import Folder

LOCAL_TASK_SECONDS: Final = 3.0
CLUSTER_TASK_SECONDS: Final = 10.0
TASK_SECONDS_MAX: Final = 86_400
CHUNKS_MAX: Final = 1_000_000
ANSWERED_MOST: Final = 200_000
"""Largest number of runs to compare at the end of a sweep; reading more rows takes seconds."""
MAY_VIOLATE: Final = "may-violate"
"""The expectation that any verdict meets."""
CHANGED: Final = "runs that it changes"
MET: Final = {True: "yes", False: "NO", None: "open"}
SHOWN_FAILURES: Final = 10
UNMET_MOST: Final = 5
"""Replay commands to show, at most; rows hold all of them."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions(SweepRequest):
    """The options of the command."""

    seed: Annotated[int | None, seed_option("This seed alone.", before="output")] = None
    local: Annotated[
        int | None,
        Option(
            metavar="N",
            type=click.IntRange(1, PROCESSES_MAX),
            before="blows",
            help="Use N processes of this machine, no Spark.",
        ),
    ] = None
    master: Annotated[
        str | None,
        Option(metavar="URL", before="blows", help="Spark master; by default that of the session, or local[*]."),
    ] = None
    conf: Annotated[
        Sequence[str], Option(metavar="KEY=VALUE", multiple=True, before="blows", help="Spark setting.")
    ] = ()
    table: Annotated[
        str | None,
        Option(
            metavar="FORMAT:NAME",
            before="blows",
            help="Append the rows to this table of Spark's, too: delta:NAME, delta:/a/path or iceberg:NAME.",
        ),
    ] = None
    chunks: Annotated[
        int | None,
        Option(
            metavar="N",
            type=click.IntRange(1, CHUNKS_MAX),
            before="blows",
            help="Tasks of each wave; by default calibrated.",
        ),
    ] = None
    task_seconds: Annotated[
        float | None,
        Option(
            metavar="S",
            type=float,
            before="blows",
            help="Target seconds of a task: by default 3 here, 10 on a cluster.",
        ),
    ] = None
    no_reuse: Annotated[
        bool, Option(before="reuse", help="Do not copy rows between modes whose runs cannot differ.")
    ] = False
    mixed_builds: Annotated[
        bool, Option(before="rules", help="Allow Spark workers with another build (plain or compiled).")
    ] = False
    brief: Annotated[bool, Option(help="Print only the comparison of the modes.")] = False
    as_json: AsJson = False


@click.command("sweep", cls=Command)
@takes(SweepOptions)
@click.pass_obj
def command(ui: Ui, asked: SweepOptions) -> int:
    """Run a range of seeds of each SCENARIO; the same command resumes a sweep that was stopped.

    Where --set or --rule names several values (--set min.insync.replicas=1,2), each seed runs at every combination of
    them. A mode with a changed rule is a mode of its own: kip320+isr_lag=time, wherever a mode is named.
    """
    from highwater.cli.progress import sweep_progress
    from scenarios.single.rows import ROWS_VERSION
    from scenarios.sweep.driver import Interrupted, run_sweep
    from scenarios.sweep.folder import open_folder
    from scenarios.sweep.store import Store

    if (asked.seeds is None) == (asked.seed is None):
        raise InputError("a sweep needs --seeds, as in --seeds 0..1000 or --seeds 1000, or one --seed")
    if asked.seed is not None:
        asked = replace(asked, seeds=range(asked.seed, asked.seed + 1))
    elif ".." not in str(asked.seeds):
        count = len(values.seed_range(asked.seeds))
        ui.note(f"--seeds {asked.seeds}: {counted(count, 'seed')}, 0..{count}; --seed {asked.seeds} is that seed alone")
    rules_to_stop = asked.stop_rules()
    if asked.no_reuse:
        if asked.reuse is not True:
            raise InputError("--reuse and --no-reuse exclude each other")
        asked = replace(asked, reuse=False)
    sweep = asked.sweep()
    modes = [mode for modes_of in sweep.modes.values() for mode in modes_of]
    given = {key: found[0] for key, found in values.setting_lists(asked.settings).items()}
    for place, cluster in enumerate(asked.clusters):
        about = replace(cluster, files=()) if place else cluster
        tell(ui, about, given, sweep.scenarios, modes, chosen=bool(asked.modes) or asked.all_modes)
    conf = read_conf(asked.conf)
    backend = _backend(asked, conf, sweep.title)
    cores = os.cpu_count()
    if asked.local is not None and cores is not None and asked.local > cores:
        ui.note(
            f"--local {asked.local}: this machine has {cores} cores, and more processes than that make a sweep slower"
        )
    source = None if isinstance(asked.reuse, bool) else Store(open_folder(str(asked.reuse), conf))
    folder = open_folder(str(asked.output), conf)
    length = _task_seconds(asked.task_seconds, asked.master)
    try:
        with sweep_progress(ui) as progress:
            summary = run_sweep(
                sweep,
                folder,
                backend,
                chunks=asked.chunks,
                task_seconds=length,
                report=progress,
                note=ui.note,
                reuse=source,
                until=rules_to_stop,
            )
    except Interrupted as interrupted:
        ui.warn(f"interrupted: {interrupted}")
        return exit_codes.INTERRUPTED
    code = int(summary["exit_code"])
    if asked.as_json:
        ui.json({"schema_version": ROWS_VERSION, **summary})
    else:
        drawn = any(scenario.drawn for scenario in sweep.scenarios)
        rest = map(Line, _errors(summary)) if asked.brief else _blocks(folder, summary, drawn=drawn)
        ui.show([*map(Text, _answer(ui, folder, summary)), *rest])
        ui.verdict(_verdict(summary, code), code)
    if "stopped" in summary:
        ui.note(f"stopped after {summary['runs']:,} runs: {summary['stopped']}")
    for reason in summary["inconclusive"]:
        ui.warn(f"highwater: inconclusive: {reason}")
    return code


def _verdict(summary: dict[str, Any], code: int) -> str:
    """Whether the runs are as the scenarios expect, as far as they expect anything."""
    runs = _runs(summary["runs"])
    if code == exit_codes.EXPECTED:
        return f"{runs}, {_checked(summary['results'])}"
    if code == exit_codes.INCONCLUSIVE:
        return f"{runs}, inconclusive"
    if code == exit_codes.INTERNAL:
        return f"{runs}, some with an internal error"
    unmet = [f"{result['scenario']} in {result['mode']}" for result in summary["results"] if result["met"] is False]
    return f"{runs}, NOT as expected: {listed(unmet, UNMET_MOST, 'of them')}"


def _checked(results: Sequence[dict[str, Any]]) -> str:
    """What a sweep without surprises has shown, and what its scenarios would not call a surprise."""
    unchecked = [result for result in results if result["expectation"] == MAY_VIOLATE]
    said = "as expected"
    if len(unchecked) == len(results):
        said = "none with an error; no particular verdict is expected of them"
    elif unchecked:
        several = len({result["scenario"] for result in results}) > 1
        names = dict.fromkeys(
            f"{result['scenario']} in {result['mode']}" if several else result["mode"] for result in unchecked
        )
        said += f"; no particular verdict is expected of {listed(names, UNMET_MOST, 'of them')}"
    inside = [
        f"{kind} in {_runs(counts['inside'])} of {result['mode']}"
        for result in results
        if not result["expectation"].startswith("violates")
        for kind, counts in result["kinds"].items()
        if counts["inside"]
    ]
    if inside:
        said += f"; inside the promise: {listed(inside, UNMET_MOST, 'sorts of violation')}"
    return said


def _runs(count: int) -> str:
    return f"{count:,} {'run' if count == 1 else 'runs'}"


def _task_seconds(given: float | None, master: str | None) -> float:
    if given is None:
        is_local = master is None or master.startswith("local")
        return LOCAL_TASK_SECONDS if is_local else CLUSTER_TASK_SECONDS
    if not 0 < given <= TASK_SECONDS_MAX:  # Values that are not numbers have no order.
        raise InputError(f"--task-seconds {given} is not valid: more than 0 and at most {TASK_SECONDS_MAX} are needed")
    return given


def _backend(asked: SweepOptions, conf: dict[str, str], title: str) -> Backend:
    if asked.local is None:
        from scenarios.sweep import tables
        from scenarios.sweep.spark import SparkBackend

        table = None if asked.table is None else tables.parse(asked.table)
        return SparkBackend(asked.master, conf, mixed_builds=asked.mixed_builds, title=title, table=table)
    if asked.master is not None or conf or asked.mixed_builds or asked.table is not None:
        raise InputError("--local excludes Spark's options --master, --conf, --table and --mixed-builds")
    from scenarios.sweep.local import LocalBackend

    return LocalBackend(asked.local)


def _answer(ui: Ui, folder: Folder, summary: dict[str, Any]) -> Iterator[str]:
    """How the modes compare, in a sentence for each scenario."""
    from reports.analysis import compare, sentences
    from scenarios.sweep.store import Store

    if summary["runs"] > ANSWERED_MOST:
        yield f"{plugged.command(['compare', folder.shown])} compares the modes"
        return
    try:
        for comparison in compare.of_store(Store(folder)):
            yield sentences.first(comparison)
    except InputError as error:
        ui.note(f"not compared: {error}")


def _blocks(folder: Folder, summary: dict[str, Any], *, drawn: bool) -> Iterator[Block]:
    results = summary["results"]
    key = ["scenario", "mode", *results[0]["settings"]]
    verdicts = ["runs", "tolerated", "ok", "violation", "stalled", "exhausted", "error", "vacuous"]
    yield Table([*key, *verdicts, "expected", "met"], [*map(_counts, results)], verdicts)
    if reused := sum(result.get("reused", 0) for result in results):
        yield Line(
            f"{reused:,} of {summary['runs']:,} runs were taken over from another mode with the same history "
            "(--no-reuse runs them)"
        )
    if any(result["expectation"] == "clean" for result in results):
        yield Line(
            "clean: nothing inside the promise, or none of the kinds that [expect] names; everything else is omitted"
        )
    tables: list[tuple[str | None, list[str], Any]] = [
        ("kind", ["runs", "rate", "inside the promise"], _kinds),
        (None, ["tolerated by unclean ends", "by lossy ends", "runs"], _by_damage),
        ("early warning", ["runs"], _warnings),
        (None, ["truncations in one round", "in two", "in more"], _rounds),
        ("blows after", ["runs", "of which violate", "violating runs", "inside the promise"], _blows),
    ]
    for label, columns, rows in tables:
        shown_rows = [row for result in results for row in rows(result)]
        if shown_rows:
            yield Table([*key, *filter(None, [label]), *columns], shown_rows, columns)
    yield from _decided(key, results)
    if errors := list(_errors(summary)):
        yield from map(Line, ("", *errors))
    if summary["failing"]:
        yield from _failing(folder, summary["failing"])
    if drawn and summary["failing"] > sum(result["verdicts"]["error"] for result in results):
        line = plugged.command(["triage", folder.shown])
        yield Line("")
        yield Line(f"Why: {line} puts them in buckets by cause, and highwater explain explains one")


def _decided(key: list[str], results: list[dict[str, Any]]) -> Iterator[Block]:
    """In how many runs the rule values of plug-ins decided something."""
    rows = [
        (*_key(result), f"{one['rule']}={one['value']}", "yes" if one["in_force"] else "no", one["runs"])
        for result in results
        for one in result.get("decided", ())
    ]
    if rows:
        yield Table([*key, "rule value of a plug-in", "in force", CHANGED], rows, [CHANGED])
        yield Line(f"{CHANGED}: the value answered otherwise than the one that it is like; not in force, it would have")


def _errors(summary: dict[str, Any]) -> Iterator[str]:
    from scenarios.sweep.error_groups import ErrorGroup, told

    return told([ErrorGroup(**group) for group in summary.get("errors", ())])


def _failing(folder: Folder, count: int) -> Iterator[Block]:
    """One run of each sort of failure, violations inside the promise first."""
    file = f"{folder.shown}/violations.jsonl"
    runs = [json.loads(line) for line in folder.read("violations.jsonl").splitlines()]
    runs.sort(key=lambda run: not run["kinds_inside"])
    sorts = {
        (run["scenario"], run["mode"], run["verdict"], *run["kinds_inside"], "/", *run["kinds"]): run
        for run in reversed(runs)
        if run["verdict"] != "error"  # These are grouped by their errors.
    }
    if not sorts:
        return
    yield Line("")
    yield Line(
        f"{count} runs violated, stalled, failed or were exhausted; {file} has a replay command for each. Some of them:"
    )
    shown_runs = list(reversed(sorts.values()))[:SHOWN_FAILURES]
    for run in sorted(shown_runs, key=lambda run: (run["scenario"], run["seed"])):
        said = [f"{kind} (inside)" if kind in run["kinds_inside"] else kind for kind in run["kinds"]]
        yield Line("")
        yield Line(f"  # {', '.join(said) or run['verdict']}", "dim")
        yield Line(f"  {run['replay']}")


def _counts(result: dict[str, Any]) -> tuple[object, ...]:
    verdicts = result["verdicts"]
    return (
        *_key(result),
        result["runs"],
        percent(result["inside_share"]),
        *(verdicts[verdict] for verdict in ("ok", "violation", "stalled", "exhausted", "error")),
        result["vacuous"],
        "any verdict" if result["expectation"] == MAY_VIOLATE else result["expectation"],
        "-" if result["expectation"] == MAY_VIOLATE and result["met"] else MET[result["met"]],
    )


def _key(result: dict[str, Any]) -> tuple[object, ...]:
    return result["scenario"], result["mode"], *map(shown, result["settings"].values())


def _kinds(result: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (*_key(result), kind, counts["n"], percent(counts["rate"]), counts["inside"])
        for kind, counts in result["kinds"].items()
    ]


def _by_damage(result: dict[str, Any]) -> list[tuple[object, ...]]:
    unclean, lossy = result["inside_unclean"], result["inside_lossy"]
    decided = result["runs"] - result["verdicts"]["error"]
    return [] if unclean is None else [(*_key(result), unclean, lossy, decided)]


def _warnings(result: dict[str, Any]) -> list[tuple[object, ...]]:
    return [(*_key(result), kind, runs) for kind, runs in result["warnings"].items()]


def _blows(result: dict[str, Any]) -> list[tuple[object, ...]]:
    """Runs with blows; those of a seed are in none of these numbers."""
    after = result.get("blows", {"after": {}})["after"]
    return [
        (*_key(result), warning, counts["runs"], kind, found["n"], found["inside"])
        for warning, counts in after.items()
        for kind, found in (counts["kinds"] or {"": {"n": 0, "inside": 0}}).items()
    ]


def _rounds(result: dict[str, Any]) -> list[tuple[object, ...]]:
    """One row; none if no follower requested an epoch's end offset."""
    rounds = result["rounds"].values()
    return [(*_key(result), *rounds)] if any(rounds) else []
