"""The commands as Python functions; parameters have the names and values of the command line's options."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from highwater import requests
from highwater.requests import RunRequest, StoreRequest
from highwater.results import Comparisons, Drawing, Explanation, Run, Shrunk, Swept
from reports import starts
from scenarios import own_files, plugged
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from reports.evidence.replay import Origin
    from scenarios.shrinking.case import Case
    from sim.protocol.modes import Mode

if plugged.are_installed():  # As every command does.
    from scenarios.format.plugins import load_installed

    load_installed()


def run(
    source: str | Path,
    mode: str | None = None,
    seed: int | None = None,
    *,
    scenario: str | None = None,
    rules: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
) -> Run:
    """Run one seed and keep its trace.

    Args:
        source: a scenario's name or file, a sweep's folder, or the ``plan.json`` of a run.
        mode: mode to run; None if there is only one.
        seed: seed of a random scenario; scripts and plans need none.
        scenario: scenario of a sweep with several.
        rules: rules to override.
        settings: settings to override; for a sweep over a grid, the point to run.
        strict: treat early warnings as violations.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.shrinking.case import Case

    origin, chosen = _origin(source, mode, seed, scenario, rules, settings, strict=strict)
    case = Case(origin.scenario, chosen, origin.seed, origin.rules)
    return Run(case, case.run(trace=True))


def sweep(
    scenarios: str | Sequence[str],
    seeds: str | range,
    output: str | Path,
    *,
    modes: str | Iterable[str] = (),
    rules: Mapping[str, str | Sequence[str]] | None = None,
    settings: Mapping[str, object] | None = None,
    release: str | None = None,
    server_properties: str | Path | Sequence[str | Path] = (),
    without_faults: Sequence[str] = (),
    processes: int = 1,
    blows: int = 0,
    reuse: bool | str | Path = True,
    until: str | Iterable[str] = (),
) -> Swept:
    """Run a sweep on this machine, without Spark; the same call resumes an interrupted sweep.

    Args:
        scenarios: names or files.
        seeds: a range without gaps, or text: ``0..100``, or ``100`` for the same.
        output: the sweep's folder.
        modes: modes, as a list or as ``hw,kip101``; by default those of each scenario's ``[expect]``.
        rules: rules to override; lists or tuples of values are swept in every combination, as modes of their own.
        settings: settings to override; lists or tuples of values are swept in every combination.
        release: Kafka's release, such as ``3.9``: its mode, if no modes are given, and its own defaults.
        server_properties: files with the settings of your brokers and topic, below `settings`.
        without_faults: kinds of fault that do not strike.
        processes: number of worker processes.
        blows: blows after early warnings; their runs have rows of their own.
        reuse: take a row over from an earlier mode in which the seed has the same history, instead of running it again;
            a sweep's folder: also from its modes.
        until: rules by which the sweep stops before its last seed, as ``["committed-loss=20", "8h"]``; the first one
            that is met counts.

    Raises:
        UserError: what the command line would refuse.
        KeyboardInterrupt: interrupted by a signal; finished waves are kept.
    """
    from scenarios.sweep.driver import RESUME, Interrupted, run_sweep
    from scenarios.sweep.folder import open_folder
    from scenarios.sweep.local import LocalBackend
    from scenarios.sweep.stop_rules import parse
    from scenarios.sweep.store import Store

    check_number("processes", processes)
    asked = requests.sweep_request(
        scenarios,
        modes,
        seeds,
        rules=rules,
        settings=settings,
        release=release,
        server_properties=server_properties,
        without_faults=without_faults,
        blows=blows,
        reuse=reuse is not False,
    )
    source = None if isinstance(reuse, bool) else Store(os.fspath(reuse))
    rules_to_stop = parse(until.split(",") if isinstance(until, str) else until) if until else None
    backend, folder = LocalBackend(processes), open_folder(str(output))
    try:
        summary = run_sweep(asked.sweep(), folder, backend, reuse=source, until=rules_to_stop)
    except Interrupted:
        raise KeyboardInterrupt(RESUME) from None
    return Swept(str(output), dict(summary))


def rows(
    folder: str | Path,
    columns: Sequence[str] | None = None,
    scenario: str | None = None,
    mode: str | None = None,
    *,
    blows: bool = False,
) -> pa.Table:
    """The rows of a sweep in key order, as an Arrow table (``.to_pandas()`` gives a data frame).

    Args:
        folder: the sweep's folder.
        columns: columns to read (``highwater columns`` lists them); None: all.
        scenario: only rows of this scenario.
        mode: only rows of these modes, as ``hw,kip101``.
        blows: the rows of runs with blows, in place of those of seeds.

    Raises:
        UserError: the folder holds no sweep, or there is no such column, scenario or mode.
    """
    from scenarios.single.rows import names
    from scenarios.sweep.store import Runs

    store = StoreRequest(os.fspath(folder), scenario, mode).store()
    there = names(store.grid)
    for column in columns or ():
        if column not in there:
            raise InputError(f"unknown column {column!r}{did_you_mean(column, there)}")
    store.runs = Runs.BLOWS if blows else Runs.SEEDS
    found = store.table(columns)
    _warn(store.shortcomings())
    return found


def compare(
    folder: str | Path,
    by: str = "mode",
    kind: str | None = None,
    *,
    scenario: str | None = None,
    mode: str | None = None,
) -> Comparisons:
    """Rates with confidence intervals, and paired comparisons, as in ``highwater compare``.

    Args:
        folder: the sweep's folder.
        by: ``mode``, or a setting that the sweep varied or the seed decided.
        kind: only this kind of violation.
        scenario: only this scenario.
        mode: only these modes, as ``hw,kip101``.

    Raises:
        UserError: what the command line would refuse.
    """
    from reports.analysis import compare as comparing
    from reports.analysis import sentences

    kinds = None if kind is None else [sentences.check_kind(kind)]
    store = StoreRequest(os.fspath(folder), scenario, mode).store()
    found = tuple(comparing.of_store(store, by, kinds))
    _warn(store.shortcomings())
    return Comparisons(found, tuple(sentences.first(one, kind) for one in found))


def report(folder: str | Path, file: str | Path, most: int | None = None, processes: int = 1) -> None:
    """Write the report of a sweep, as ``highwater report`` does.

    Args:
        folder: the sweep's folder.
        file: HTML file to write.
        most: number of failures to group by cause; None: as many as two minutes allow.
        processes: number of worker processes.

    Raises:
        UserError: what the command line would refuse.
    """
    from reports.evidence.triage import for_report
    from reports.page.build import page
    from scenarios.sweep.store import Store

    starts.check_file("file", Path(file), starts.REPORT)
    check_number("most", most or 0, 0)
    check_number("processes", processes)
    store = Store(os.fspath(folder))
    text = page(store, for_report(store, most, processes))
    _warn(store.shortcomings())
    own_files.write(Path(file), text, starts.REPORT)


def shrink(
    source: str | Path,
    mode: str | None = None,
    seed: int | None = None,
    *,
    kind: str | None = None,
    budget_s: float = 30,
    scenario: str | None = None,
    rules: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
) -> Shrunk:
    """Find the smallest run that fails in the same way for the same cause; write no files.

    `kind` is the violation to keep, by default the first inside the promise, and `budget_s` the time limit in seconds.
    Other arguments and errors are those of `run`.
    """
    from reports.evidence import shrunk_run

    origin, chosen = _origin(source, mode, seed, scenario, rules, settings, strict=strict)
    found, _ = shrunk_run.shrunk(shrunk_run.failed_run(origin, chosen), kind, budget_s, lambda _case, _runs: None)
    return Shrunk(found, Run(found.case, found.case.run(trace=True)))


def explain(
    source: str | Path,
    mode: str | None = None,
    seed: int | None = None,
    *,
    kind: str | None = None,
    budget_s: float = 60,
    scenario: str | None = None,
    rules: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
) -> Explanation:
    """Explain a failed run: its course, necessary events, point of no return, and what would have prevented the loss.

    Arguments and errors are those of `shrink`, which gets half of the time limit.
    """
    from reports.drawing import explanation
    from scenarios.shrinking.criterion import Trials

    begin = time.monotonic()
    small = shrink(
        source,
        mode,
        seed,
        kind=kind,
        budget_s=budget_s / 2,
        scenario=scenario,
        rules=rules,
        settings=settings,
        strict=strict,
    )
    trials = Trials(lambda: time.monotonic() - begin > budget_s)
    found = explanation.explain(small.run.case, small.found.symptom, trials)
    return Explanation(small, tuple(found.story), tuple(found.remedies), found.curve, found.necessary)


def draw(found: Run | Shrunk | Explanation, *, everything: bool = False) -> Drawing:
    """Draw a run, or a result of `shrink` or `explain`: the steps that led to the violation, or everything."""
    from reports.drawing.observed_run import observe
    from reports.drawing.picture import picture
    from reports.drawing.svg import to_svg
    from reports.evidence.story import heading

    case = _case(found)
    observed = observe(case.scenario, case.mode, case.seed, case.rules)
    return Drawing(to_svg(picture(observed, list(heading(observed.result)), everything=everything), "run"))


def show(found: Run | Shrunk | Explanation, file: str | Path, against: str | None = None) -> None:
    """Write a run as an HTML page, as ``highwater show`` does but without the point of no return.

    Args:
        found: a run, or a result of `shrink` or `explain`.
        file: HTML file to write.
        against: another mode, or ``RULE=VALUE``, to show the same seed beside the run.

    Raises:
        UserError: what the command line would refuse.
    """
    from reports.evidence.narrative import SENTENCES
    from reports.film import film
    from reports.film.page import page

    starts.check_file("file", Path(file), starts.FILM)
    cases = film.compared(_case(found), against)
    own_files.write(Path(file), page([film.film(case, most=SENTENCES) for case in cases]), starts.FILM)


def _case(found: Run | Shrunk | Explanation) -> Case:
    if isinstance(found, Explanation):
        found = found.shrunk
    return found.run.case if isinstance(found, Shrunk) else found.case


def _origin(
    source: str | Path,
    mode: str | None,
    seed: int | None,
    scenario: str | None,
    rules: Mapping[str, str] | None,
    settings: Mapping[str, object] | None,
    *,
    strict: bool,
) -> tuple[Origin, Mode]:
    laid = requests.rules(rules), requests.settings(settings)
    if seed is not None:
        requests.seed(seed)
    asked = RunRequest(os.fspath(source), None, seed, mode, scenario, *laid, strict=strict)
    origin, chosen = asked.one()
    _warn(origin.warnings)
    return origin, chosen


def _warn(texts: Iterable[str]) -> None:
    """Issue as Python warnings what the command line prints on stderr."""
    for text in texts:
        warnings.warn(text, stacklevel=3)


def check_number(name: str, number: int, least: int = 1) -> None:
    """Raise InputError if a parameter is too small."""
    if number < least:
        raise InputError(f"{name} = {number} is not valid: at least {least} is needed")
