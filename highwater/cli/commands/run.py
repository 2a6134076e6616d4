"""``highwater run``: one seed of one scenario, in detail."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from highwater import values
from highwater.cli import last_failed as remembered
from highwater.cli import options, outcome
from highwater.cli.cluster import tell
from highwater.cli.options import Command, request_of, takes
from highwater.option import Argument, Option
from highwater.requests import (
    AllModes,
    AsJson,
    ClusterRequest,
    Partition,
    Rules,
    Settings,
    Strict,
    WithoutFaults,
    mode_option,
    plan_option,
    seed_option,
)
from reports import exits, starts
from reports.evidence import folder as evidence
from reports.evidence import outcome as single
from scenarios import own_files, plugged
from sim.errors import InputError, UserError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    import re

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.shrinking.case import Case
    from scenarios.single.recording import Recording
    from scenarios.single.result import RunResult
    from scenarios.single.rows import Row
    from sim.config import Value
    from sim.protocol.modes import Mode

RUN_VERSION: Final = 1
TABLE_MOST: Final = 8
"""Scenarios whose runs are a table by default; of more there is a summary."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(ClusterRequest):
    """The options of the command."""

    names: Annotated[
        Sequence[str], Argument(metavar="[SCENARIO|PLAN]...", nargs=-1, required=False, completes="scenarios")
    ] = ()
    plan: Annotated[
        Path | None, plan_option("Run a recorded run, the plan.json of replay, instead of drawing one.")
    ] = None
    mode: Annotated[str | None, mode_option("Modes to run; by default those of the scenario's [expect].")] = None
    all_modes: AllModes = False
    all_scenarios: Annotated[bool, Option(help="Run every scripted scenario.")] = False
    seed: Annotated[
        int | None, seed_option("Seed, decimal or 0x; by default 0 for scripted scenarios, otherwise a random one.")
    ] = None
    rules: Rules = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    without_faults: WithoutFaults = ()
    strict: Strict = False
    partition: Partition = None
    last_failed: Annotated[
        bool, Option(help="Run again what was not as expected last time (of SCENARIO, if given).")
    ] = False
    table: Annotated[
        bool, Option(help=f"Print a letter for each run, as by default for 2 to {TABLE_MOST} scenarios.")
    ] = False
    junit_xml: Annotated[
        Path | None, Option(metavar="FILE", help="Write a test case for each scenario and mode, too.")
    ] = None
    trace: Annotated[Path | None, Option(metavar="FILE", help="Write the trace as JSON lines.")] = None
    show: Annotated[Path | None, Option(metavar="FILE", help="Write the run as an HTML page, too.")] = None
    as_json: AsJson = False


@click.command("run", cls=Command)
@takes(RunOptions)
@click.pass_obj
def command(ui: Ui, asked: RunOptions) -> int:
    """Run one seed of each SCENARIO (a name or a .toml file) in each mode; exit 1 if a verdict is not as expected.

    A recorded run (PLAN, the plan.json of replay) brings its scenario, mode, seed and rules along, and is expected to
    violate what it did.
    """
    asked = _checked(asked)
    if asked.last_failed:
        rest = RunOptions(
            names=asked.names, junit_xml=asked.junit_xml, as_json=asked.as_json, table=asked.table, last_failed=True
        )
        if asked != rest:
            raise InputError("--last-failed brings modes, seeds, rules and settings along; it goes with SCENARIO alone")
        jobs = _last_failed(ui, asked.names)
    else:
        jobs = [_Job.of(word, asked) for word in _words(asked)]
        scenarios = (job.origin.scenario for job in jobs)
        modes = (mode for job in jobs for mode in job.modes)
        named = asked.mode is not None or asked.all_modes
        tell(ui, asked.cluster, values.settings(asked.settings), scenarios, modes, chosen=named)
    chosen = [(job.origin, job.modes) for job in jobs]
    in_full = ui.verbose or (len(jobs) == 1 and not asked.table)
    board = None
    if jobs and not (asked.as_json or in_full) and (asked.table or len(jobs) <= TABLE_MOST):
        board = outcome.Board(
            ui, [origin.scenario.name for origin, _ in chosen], _columns(modes for _, modes in chosen)
        )
    runs: list[RunResult] = []
    ran: dict[remembered.Words, bool] = {}
    for job in jobs:
        found = _run(ui, job, asked.trace, asked.show, shows=not asked.as_json and in_full)
        runs += found
        ran |= {words: bool(result.row["expected"]) for result in found if (words := job.words(result.row))}
        if board is not None:
            board.line(job.origin.scenario.name, found)
        if not (asked.as_json or in_full):
            _show_unexpected(ui, job.origin.scenario, found)
    _keep(ui, runs, ran, asked.junit_xml)
    code = exits.worst(exits.of_row(result.row) for result in runs)
    if asked.as_json:
        shown = [single.as_json(result) for result in runs]
        ui.json({"schema_version": RUN_VERSION, "runs": shown, "exit_code": code})
    elif runs:
        table = plugged.command(["run", "--all-scenarios", "--table"]) if asked.all_scenarios else "--table"
        hint = "" if in_full or board else f"; {table} lists them"
        ui.verdict(f"{outcome.verdict([result.row for result in runs])}{hint}", code)
    return code


def _checked(asked: RunOptions) -> RunOptions:
    """The options, with a recorded run that is given in place of a scenario; raises InputError if they do not fit."""
    if asked.plan is None and len(asked.names) == 1 and asked.names[0].endswith(".json"):
        asked = replace(asked, names=(), plan=Path(asked.names[0]))
    single_run = {"--plan": asked.plan, "--trace": asked.trace, "--show": asked.show}
    for option in (option for option, file in single_run.items() if file and len(asked.names) > 1):
        raise InputError(f"{option} is for one run; choose one scenario: {', '.join(asked.names)}")
    if asked.junit_xml is not None:
        starts.check_file("--junit-xml", asked.junit_xml, starts.JUNIT)
    if asked.release is not None and asked.plan is not None:
        raise InputError("--release chooses mode and defaults, which a recorded run has: it goes without --plan")
    return asked


def _words(asked: RunOptions) -> Sequence[str | None]:
    """The scenarios to run; None stands for a recorded run."""
    if not asked.all_scenarios:
        return asked.names or (None,)
    if asked.names or asked.plan is not None:
        raise InputError("--all-scenarios runs every scripted scenario: it goes without SCENARIO and --plan")
    from scenarios.format import catalogue

    return [name for name in catalogue.names() if not catalogue.load(name).drawn]


@dataclass(frozen=True, slots=True)
class _Job:
    """A scenario or recorded run with the modes in which it runs; `word` is its name or file, None with --plan."""

    word: str | None
    origin: Recording
    modes: Sequence[Mode]
    seed: int | None
    rules: Mapping[str, str]
    settings: Mapping[str, Value]
    strict: bool

    @classmethod
    def of(cls, word: str | None, asked: RunOptions) -> _Job:
        """Read the scenario or recorded run, and check the modes."""
        from scenarios.format import selection

        given = values.settings(asked.settings)
        settings = {**asked.cluster.settings(given), **given}
        origin = _origin(word, asked, settings)
        origin = replace(origin, scenario=selection.showing(origin.scenario, asked.partition))
        mode = asked.mode if asked.all_modes else asked.cluster.modes(asked.mode)
        names = mode.split(",") if mode is not None else ()
        own = [origin.mode] if origin.mode is not None else ()
        modes = selection.modes(origin.scenario, names, everyone=asked.all_modes, own=own)
        return cls(None if asked.plan else word, origin, modes, asked.seed, asked.rules, settings, asked.strict)

    def words(self, row: Row) -> remembered.Words:
        """One of its runs as words for --last-failed; empty for a recorded run."""
        from scenarios.format import catalogue

        if self.word is None:
            return ()
        word = self.word if self.word in catalogue.names() else str(Path(self.word).absolute())
        pairs = [("--rule", f"{name}={value}") for name, value in self.rules.items()]
        pairs += [("--set", word) for word in self.origin.scenario.overrides]
        pairs += [("--without-fault", kind) for kind in self.origin.scenario.without_faults]
        options = (word for pair in pairs for word in pair)
        rest = (*options, *plugged.remembered(), *(["--strict"] if self.strict else []))
        return word, "--mode", row["mode"], "--seed", str(row["seed"]), *rest


def _last_failed(ui: Ui, names: Sequence[str]) -> list[_Job]:
    """The runs that were not as expected last time; those that differ in nothing but the mode, together."""
    jobs: dict[object, _Job] = {}
    for words in remembered.read():
        try:
            given = command.make_context("run", list(words), obj=ui).params
            job = _Job.of(words[0], request_of(RunOptions, given))
        except (UserError, click.ClickException) as error:
            ui.note(f"not run again: {shlex.join(words)}: {error}")
            continue
        word = words[0]
        if names and word not in names and word not in {str(Path(name).absolute()) for name in names}:
            continue
        key = (word, *words[3:])
        jobs[key] = replace(jobs[key], modes=[*jobs[key].modes, *job.modes]) if key in jobs else job
    if not jobs:
        ui.note("all runs were as expected last time")
    return list(jobs.values())


def _keep(ui: Ui, runs: Sequence[RunResult], ran: dict[remembered.Words, bool], junit_xml: Path | None) -> None:
    """Write what the next call and build servers read."""
    from reports.evidence import junit

    if junit_xml is not None:
        own_files.write(junit_xml, junit.junit_xml(result.row for result in runs), starts.JUNIT)
    try:
        remembered.remember(ran)
    except UserError as error:
        ui.note(f"not remembered for --last-failed: {error.problems[0]}")


def _columns(chosen: Iterable[Sequence[Mode]]) -> list[str]:
    """Names of all modes that run, in the order in which `highwater modes list` has them."""
    names = {mode.name for modes in chosen for mode in modes}
    return [name for name in MODES if name in names]


def _show_unexpected(ui: Ui, scenario: Scenario, found: Sequence[RunResult]) -> None:
    """Print unexpected results in full, below the scenario's line."""
    for result in found:
        if not result.row["expected"]:
            outcome.show(ui, scenario, result)
            ui.line()


def _run(ui: Ui, job: _Job, trace: Path | None, page: Path | None, *, shows: bool) -> list[RunResult]:
    """Run one scenario or recorded run in each of the modes."""
    from scenarios.shrinking.case import Case
    from scenarios.single.run import run

    origin, modes = job.origin, job.modes
    chosen, rules = origin.scenario, {**(origin.rules or {}), **job.rules}
    names = tuple(mode.name for mode in modes)
    if trace is not None:
        _check_one("--trace", trace, names, starts.TRACE)
    if page is not None:
        _check_one("--show", page, names, starts.FILM)
    number = _seed(ui, chosen, origin.seed if job.seed is None else job.seed)
    options.tell_idle(ui, chosen, modes, job.rules, job.settings)
    results: list[RunResult] = []
    for mode in modes:
        results.append(run(chosen, mode, number, rules, trace=trace is not None))
        options.check_shown(chosen, results[-1])
        _show(ui, chosen, results, trace, shows=shows)
    if page is not None:
        _write_page(ui, page, Case(chosen, modes[0], number, rules))
    if origin.digest is not None and not job.settings and (names, number, rules) == _as_recorded(origin):
        same = results[0].row["digest"] == origin.digest
        ui.note(
            "digest as recorded" if same else "not the recorded digest: the plan was edited, or other code ran then"
        )
    return results


def _write_page(ui: Ui, file: Path, case: Case) -> None:
    from reports.evidence import narrative
    from reports.film.film import film
    from reports.film.page import page

    own_files.write(file, page([film(case, most=narrative.SENTENCES)]), starts.FILM)
    ui.note(f"Open {file} in a browser")


def _origin(word: str | None, asked: RunOptions, settings: Mapping[str, Value]) -> Recording:
    """The scenario or recorded run, with settings overridden."""
    from scenarios.format import selection
    from scenarios.single import recording

    if asked.without_faults and asked.plan is not None:
        raise InputError("a recorded run has its own faults: --without-fault goes without --plan")
    if asked.plan is None:
        if word is None:
            raise InputError("name a scenario, or a recorded run: --plan FILE")
        release, without = asked.cluster.release, asked.without_faults
        scenario = selection.scenario(word, settings, strict=asked.strict, release=release, without=without)
        return recording.Recording(scenario)
    named = None if word is None else selection.scenario(word, settings, strict=asked.strict)
    found = recording.read(asked.plan, named)
    if found.mode is None:
        return found
    selection.check_settings(found.scenario, settings)
    scenario = found.scenario.with_settings(settings)
    return replace(found, scenario=replace(scenario, strict=scenario.strict or asked.strict))


def _as_recorded(origin: Recording) -> tuple[object, ...]:
    return (origin.mode and origin.mode.name,), origin.seed, origin.rules


def _check_one(option: str, file: Path, modes: tuple[str, ...], start: re.Pattern[bytes]) -> None:
    if len(modes) != 1:
        raise InputError(f"{option} writes one run; choose one with --mode: {', '.join(modes)}")
    starts.check_file(option, file, start)


def _seed(ui: Ui, scenario: Scenario, seed: int | None) -> int:
    if seed is not None:
        return seed
    if not scenario.drawn:
        return 0
    number = secrets.randbits(32)
    ui.note(f"seed {number} (drawn)")
    return number


def _show(ui: Ui, scenario: Scenario, results: list[RunResult], trace: Path | None, *, shows: bool) -> None:
    """Show the newest result at once: the next run may take a while."""
    if trace is not None:
        evidence.write_trace(trace, results[-1])
    if shows:
        outcome.show(ui, scenario, results[-1])
