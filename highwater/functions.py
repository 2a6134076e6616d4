"""The commands as Python functions.

Their parameters are the fields of requests (`highwater.requests`), which declare the command line's options, too.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from highwater.option import as_function
from highwater.requests import (
    CompareRequest,
    ExplainRequest,
    ReportRequest,
    RowsRequest,
    RunRequest,
    ShrinkRequest,
    StoredRowsRequest,
    SweepRequest,
)
from highwater.results import Comparisons, Drawing, Explanation, Run, Shrunk, Swept
from reports import starts
from scenarios import own_files, plugged
from sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from reports.evidence.replay import Origin
    from scenarios.shrinking.case import Case
    from sim.protocol.modes import Mode

if plugged.are_installed():  # As every command does.
    from scenarios.format.plugins import load_installed

    load_installed()


@as_function(RunRequest)
def run(asked: RunRequest) -> Run:
    """Run one seed and keep its trace.

    Raises:
        UserError: what the command line would refuse.
    """
    from scenarios.shrinking.case import Case

    origin, chosen = _origin(asked)
    case = Case(origin.scenario, chosen, origin.seed, origin.rules)
    return Run(case, case.run(trace=True))


@as_function(SweepRequest)
def sweep(asked: SweepRequest) -> Swept:
    """Run a sweep on this machine, without Spark; the same call resumes an interrupted sweep.

    Raises:
        UserError: what the command line would refuse.
        KeyboardInterrupt: interrupted by a signal; finished waves are kept.
    """
    from scenarios.sweep.driver import Interrupted, run_sweep
    from scenarios.sweep.folder import open_folder
    from scenarios.sweep.local import LocalBackend
    from scenarios.sweep.store import Store

    check_number("processes", asked.processes)
    chosen = asked.sweep()
    source = None if isinstance(asked.reuse, bool) else Store(os.fspath(asked.reuse))
    rules_to_stop = asked.stop_rules()
    backend, folder = LocalBackend(asked.processes), open_folder(str(asked.output))
    try:
        summary = run_sweep(chosen, folder, backend, reuse=source, until=rules_to_stop)
    except Interrupted as interrupted:
        raise KeyboardInterrupt(str(interrupted)) from None
    return Swept(str(asked.output), dict(summary))


@as_function(StoredRowsRequest)
def rows(asked: StoredRowsRequest) -> pa.Table:
    """The rows of a sweep in key order, as an Arrow table (``.to_pandas()`` gives a data frame).

    Raises:
        UserError: the folder holds no sweep, or there is no such column, scenario or mode.
    """
    from scenarios.single.rows import names
    from scenarios.sweep.store import StoredRuns

    store = asked.store()
    there = names(store.grid)
    for column in asked.columns or ():
        if column not in there:
            raise InputError(f"unknown column {column!r}{did_you_mean(column, there)}")
    store.runs = StoredRuns.BLOWS if asked.blows else StoredRuns.SEEDS
    found = store.table(asked.columns)
    _warn(store.shortcomings(), 4)
    return found


@as_function(RowsRequest)
def runs(asked: RowsRequest) -> pa.Table:
    """The rows of some seeds, which are run in this process and kept nowhere.

    `highwater.spark.runs` gives the same rows as a DataFrame: its arguments are those of this function, after the
    session.

    Raises:
        UserError: what the command line would refuse.
    """
    import pyarrow as pa

    from scenarios.sweep import parts
    from scenarios.sweep.units import grid_of, rows_of

    sweep = asked.sweep()
    text = sweep.to_text()
    return pa.Table.from_pylist(list(rows_of(text, sweep.extent().pieces())), parts.schema(grid_of(text)))


def examples() -> pa.Table:
    """40 rows of a sweep, to try columns and queries on: 20 seeds of ``power`` in two modes, of which some fail."""
    return runs("power", "hw,kip101", "0..20")


@as_function(CompareRequest)
def compare(asked: CompareRequest) -> Comparisons:
    """Rates with confidence intervals, and paired comparisons, as in ``highwater compare``.

    Raises:
        UserError: what the command line would refuse.
    """
    from reports.analysis import compare as comparing
    from reports.analysis import sentences

    kinds = None if asked.kind is None else [sentences.check_kind(asked.kind)]
    store = asked.store()
    found = tuple(comparing.of_store(store, asked.by, kinds))
    _warn([*store.shortcomings(), *comparing.inconclusive(found)])
    return Comparisons(found, tuple(sentences.first(comparison, asked.kind) for comparison in found))


@as_function(ReportRequest)
def report(asked: ReportRequest) -> None:
    """Write the report of a sweep, as ``highwater report`` does.

    Raises:
        UserError: what the command line would refuse.
    """
    from highwater.films import check_films, write_films
    from reports.analysis import coverage_table
    from reports.analysis.sentences import check_kind
    from reports.evidence.triage import for_report
    from reports.page.build import page

    file, processes = Path(asked.file), 1 if asked.processes is None else asked.processes
    starts.check_file("file", file, starts.REPORT)
    check_number("most", asked.most or 0, 0)
    check_number("processes", processes)
    check_number("films", asked.films, 0)
    check_films("films", file, asked.films)
    if asked.kind is not None:
        check_kind(asked.kind)
    store = asked.store()
    coverage_table.check(store)  # Before minutes are spent on causes.
    found = for_report(store, asked.most, processes, kind=asked.kind)
    text = page(store, found, asked.kind, write_films(store, file, asked.films, asked.kind))
    _warn(store.shortcomings())
    own_files.write(file, text, starts.REPORT)


@as_function(ShrinkRequest)
def shrink(asked: ShrinkRequest) -> Shrunk:
    """Find the smallest run that fails in the same way for the same cause; write no files.

    Raises:
        UserError: what the command line would refuse.
    """
    return _shrunk(asked, asked.budget_s)


def _shrunk(asked: ShrinkRequest, budget_s: float) -> Shrunk:
    from reports.evidence import shrunk_run

    origin, chosen = _origin(asked)
    failed = shrunk_run.failed_run(origin, chosen, keeps_cluster=asked.keeps_cluster)
    found, _ = shrunk_run.shrunk(failed, asked.kind, budget_s, lambda _case, _runs: None)
    return Shrunk(found, Run(found.case, found.case.run(trace=True)))


@as_function(ExplainRequest)
def explain(asked: ExplainRequest) -> Explanation:
    """Explain a failed run: its course, necessary events, point of no return, and what would have prevented the loss.

    Raises:
        UserError: what the command line would refuse.
    """
    from reports.drawing import explanation
    from scenarios.shrinking.criterion import Trials

    begin = time.monotonic()
    small = _shrunk(asked, asked.budget_s / 2)
    trials = Trials(lambda: time.monotonic() - begin > asked.budget_s)
    found = explanation.explain(small.found, small.run.case, trials)
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
    if not isinstance(found, Run | Shrunk):  # What type checkers do not see.
        raise InputError(f"{found!r:.60} is no run: give the result of run, shrink or explain")
    return found.run.case if isinstance(found, Shrunk) else found.case


def _origin(asked: RunRequest) -> tuple[Origin, Mode]:
    origin, chosen = asked.one()
    _warn(origin.warnings, 5)
    return origin, chosen


def _warn(texts: Iterable[str], level: int = 4) -> None:
    """Issue as Python warnings what the command line prints on stderr; the caller is so many calls above."""
    for text in texts:
        warnings.warn(text, stacklevel=level)


def check_number(name: str, number: int, least: int = 1) -> None:
    """Raise InputError if a parameter is too small."""
    if number < least:
        raise InputError(f"{name} = {number} is not valid: at least {least} is needed")
