"""``highwater run``: one seed of one scenario, in detail."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli import last_failed as remembered
from highwater.cli import options, outcome
from highwater.cli.cluster import cluster_options, tell
from highwater.cli.options import PATH, Command, json_option, rule_option, set_option, strict_option, without_option
from reports import exits, starts
from reports.evidence import folder as evidence
from reports.evidence import outcome as single
from scenarios import own_files, plugged
from sim.errors import InputError, UserError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario
    from scenarios.properties.cluster import Cluster
    from scenarios.properties.releases import Release
    from scenarios.shrinking.case import Case
    from scenarios.single.recording import Recording
    from scenarios.single.result import RunResult
    from scenarios.single.rows import Row
    from sim.config import Value
    from sim.protocol.modes import Mode

RUN_VERSION: Final = 1


@click.command("run", cls=Command)
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option(
    "--plan",
    metavar="FILE",
    type=PATH,
    help="Run a recorded run, the plan.json of replay, instead of drawing one.",
)
@click.option("--mode", "--modes", metavar="A,B", help="Modes to run; by default those of the scenario's [expect].")
@options.all_modes_option
@click.option(
    "--seed",
    metavar="N",
    callback=options.read_seed,
    help="Seed, decimal or 0x; by default 0 for scripted scenarios, otherwise a random one.",
)
@options.no_seeds_option
@rule_option
@set_option
@without_option
@cluster_options
@strict_option
@options.partition_option
@click.option(
    "--last-failed", is_flag=True, help="Run again what was not as expected last time (of SCENARIO, if given)."
)
@click.option("--junit-xml", metavar="FILE", type=PATH, help="Write a test case for each scenario and mode, too.")
@click.option("--trace", metavar="FILE", type=PATH, help="Write the trace as JSON lines.")
@click.option("--show", metavar="FILE", type=PATH, help="Write the run as an HTML page, too.")
@json_option
@click.pass_obj
def command(
    ui: Ui,
    names: tuple[str, ...],
    plan: Path | None,
    mode: str | None,
    all_modes: bool,
    seed: int | None,
    rules: dict[str, str],
    settings: dict[str, Value],
    without_faults: tuple[str, ...],
    cluster: Cluster,
    strict: bool,
    partition: str | None,
    last_failed: bool,
    junit_xml: Path | None,
    trace: Path | None,
    show: Path | None,
    as_json: bool,
) -> int:
    """Run one seed of each SCENARIO (a name or a .toml file) in each mode; exit 1 if a verdict is not as expected.

    A recorded run (--plan) brings its scenario, mode, seed and rules along, and is expected to violate what it did.
    """
    single_run = {"--plan": plan, "--trace": trace, "--show": show}
    for option in (option for option, file in single_run.items() if file and len(names) > 1):
        raise InputError(f"{option} is for one run; choose one scenario: {', '.join(names)}")
    if junit_xml is not None:
        starts.check_file("--junit-xml", junit_xml, starts.JUNIT)
    if cluster.release is not None and plan is not None:
        raise InputError("--release chooses mode and defaults, which a recorded run has: it goes without --plan")
    if last_failed:
        own = (
            mode,
            all_modes,
            rules,
            settings,
            without_faults,
            cluster.files,
            cluster.release,
            strict,
            partition,
            *single_run.values(),
        )
        if seed is not None or any(own):
            raise InputError("--last-failed brings modes, seeds, rules and settings along; it goes with SCENARIO alone")
        jobs = _last_failed(ui, names)
    else:
        given = settings
        settings = {**cluster.settings(given), **given}
        mode = mode if all_modes else cluster.modes(mode)
        jobs = [
            _Job.of(
                name,
                plan,
                mode,
                seed,
                rules,
                settings,
                all_modes=all_modes,
                strict=strict,
                release=cluster.release,
                without=without_faults,
                partition=partition,
            )
            for name in names or (None,)
        ]
        tell(ui, cluster, given, (job.origin.scenario for job in jobs), (one for job in jobs for one in job.modes))
    chosen = [(job.origin, job.modes) for job in jobs]
    board = None
    if len(chosen) > 1 and not (as_json or ui.verbose):
        board = outcome.Board(
            ui, [origin.scenario.name for origin, _ in chosen], _columns(modes for _, modes in chosen)
        )
    runs: list[RunResult] = []
    ran: dict[remembered.Words, bool] = {}
    for job in jobs:
        found = _run(ui, job, trace, show, shows=not as_json and board is None)
        runs += found
        ran |= {words: bool(result.row["expected"]) for result in found if (words := job.words(result.row))}
        if board is not None:
            board.line(job.origin.scenario.name, found)
            _show_unexpected(ui, job.origin.scenario, found)
    if board is not None:
        board.legend()
    _keep(ui, runs, ran, junit_xml)
    code = exits.worst(exits.of_row(result.row) for result in runs)
    if as_json:
        shown = [single.as_json(result) for result in runs]
        ui.json({"schema_version": RUN_VERSION, "runs": shown, "exit_code": code})
    return code


@dataclass(frozen=True, slots=True)
class _Job:
    """A scenario or recorded run with the modes in which it runs; `word` is its name or file, None with --plan."""

    word: str | None
    origin: Recording
    modes: Sequence[Mode]
    seed: int | None
    rules: dict[str, str]
    settings: dict[str, Value]
    strict: bool

    @classmethod
    def of(
        cls,
        word: str | None,
        plan: Path | None,
        mode: str | None,
        seed: int | None,
        rules: dict[str, str],
        settings: dict[str, Value],
        *,
        all_modes: bool = False,
        strict: bool,
        release: Release | None = None,
        without: tuple[str, ...] = (),
        partition: str | None = None,
    ) -> _Job:
        """Read the scenario or recorded run, and check the modes."""
        from scenarios.format import selection

        origin = _origin(word, plan, settings, strict=strict, release=release, without=without)
        origin = replace(origin, scenario=selection.showing(origin.scenario, partition))
        names = mode.split(",") if mode is not None else ()
        own = [origin.mode] if origin.mode is not None else ()
        modes = selection.modes(origin.scenario, names, everyone=all_modes, own=own)
        return cls(None if plan else word, origin, modes, seed, rules, settings, strict)

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
            job = _Job.of(
                words[0],
                None,
                *(given[name] for name in ("mode", "seed", "rules", "settings")),
                strict=given["strict"],
                without=given["without_faults"],
            )
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
    names = tuple(one.name for one in modes)
    if trace is not None:
        _check_one("--trace", trace, names, starts.TRACE)
    if page is not None:
        _check_one("--show", page, names, starts.FILM)
    number = _seed(ui, chosen, origin.seed if job.seed is None else job.seed)
    options.tell_idle(ui, chosen, modes, job.rules, job.settings)
    results: list[RunResult] = []
    for one in modes:
        results.append(run(chosen, one, number, rules, trace=trace is not None))
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


def _origin(
    word: str | None,
    plan: Path | None,
    settings: dict[str, Value],
    *,
    strict: bool,
    release: Release | None,
    without: tuple[str, ...],
) -> Recording:
    """The scenario or recorded run, with settings overridden."""
    from scenarios.format import selection
    from scenarios.single import recording

    if without and plan is not None:
        raise InputError("a recorded run has its own faults: --without-fault goes without --plan")
    if plan is None:
        if word is None:
            raise InputError("name a scenario, or a recorded run: --plan FILE")
        scenario = selection.scenario(word, settings, strict=strict, release=release, without=without)
        return recording.Recording(scenario)
    named = None if word is None else selection.scenario(word, settings, strict=strict)
    found = recording.read(plan, named)
    if found.mode is None:
        return found
    selection.check_settings(found.scenario, settings)
    scenario = found.scenario.with_settings(settings)
    return replace(found, scenario=replace(scenario, strict=scenario.strict or strict))


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
