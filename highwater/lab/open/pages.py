"""The pages that are made from counts: a folder's results, a sweep, its failing runs, a scenario."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from highwater.cli.progress import duration
from highwater.lab.open.made_page import page
from highwater.lab.open.results import title_of
from highwater.lab.open.tasks import WHATS
from reports.analysis import sentences
from reports.document.blocks import Cell, Contents, Heading, Link, Links, Table, Terms, Text
from reports.document.page import to_html
from reports.page import build
from scenarios.format import findings
from scenarios.format.grid import words
from sim.plurals import counted
from sim.protocol.modes import NO_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from highwater.lab.open.open_sweep import SweepProgress
    from highwater.lab.open.results import Result
    from reports.analysis.tally import FailingRun, SweepTally
    from reports.document.blocks import Block
    from reports.evidence.replay import Origin
    from scenarios.format.scenario import Expectation
    from scenarios.sweep.store import Store
    from sim.protocol.modes import Mode

ON_PAGE: Final = 50
"""Failing runs on a page."""
LAST: Final = 10
"""Failing runs that the page of a sweep at work shows."""
_SHORT: Final = {"explanation": "why"}
REFRESH_S: Final = 5
WAIT_REFRESH_S: Final = 2


def index(folder: str, found: Iterable[Result], waits: bool) -> str:
    """The results of a folder."""
    rows = [
        (
            Link(result.name or "this folder", f"/{result.key}/"),
            result.what,
            title_of(result) or None,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(result.written)),
        )
        for result in found
    ]
    blocks: list[Block] = [Text(f"{counted(len(rows), 'result')} in {folder}.")]
    if waits:
        blocks.append(Text("A sweep begins here: its first runs show how long it takes.", "note"))
    if rows:
        blocks.append(Table(["name", "what", "title", "written"], rows, caption="Results, each leads to its page."))
    return page("Results", blocks, REFRESH_S if waits else 0)


def sweep(store: Store, tally: SweepTally, progress: SweepProgress, others: int) -> str:
    """A sweep: how far it is, its rates, and its failing runs by mode and kind."""
    return to_html(
        build.document(
            store,
            list(_sweep(store, tally, progress, others)),
            REFRESH_S if progress.drivers and _left(progress) else 0,
        )
    )


def _left(progress: SweepProgress) -> int:
    return progress.asked - progress.done


def _sweep(store: Store, tally: SweepTally, progress: SweepProgress, others: int) -> Iterator[Block]:
    links: list[Link | str] = [Link("All results of this folder", "/?all=1")] if others else []
    if progress.done:
        links += [Link("Failing runs", "failing"), Link("Causes of failures", "causes"), Link("Whole report", "report")]
    if links:
        yield Links(links)
    yield build.question(store)
    yield from _progress(store, progress)
    comparisons = tally.comparisons()[: build.POINTS]
    if not comparisons:
        yield Text("No wave is finished yet.", "note")
        return
    answers = [sentences.first(comparison) for comparison in comparisons]
    yield from (Text(said, "answer") for said in answers[: build.FIRST])
    yield Terms(sentences.TERMS)
    yield build.origin(store)
    yield Contents()
    yield Heading("Failing runs", name="failing")
    yield from _matrix(tally)
    if progress.drivers and _left(progress):
        failing = tally.failing()
        last = list(failing.rows(max(0, len(failing) - LAST), len(failing)))
        if last:
            yield _runs(tally, last[::-1], f"The {len(last)} failing runs with the highest seeds so far.")
    yield from build.rates(comparisons, answers if len(comparisons) > build.FIRST else [""] * len(comparisons))
    if len(store.sweep.variants) > len(comparisons):
        more = counted(len(store.sweep.variants) - len(comparisons), "more point")
        yield Text(f"{more} of the grid: the whole report has maps of them.", "note")


def _progress(store: Store, progress: SweepProgress) -> Iterator[Block]:
    if not _left(progress):
        yield from (Text(line, "warning") for line in store.shortcomings())
        return
    done = f"{progress.done:,} of {progress.asked:,} runs are done"
    if progress.drivers:
        rate = "" if progress.rate is None else f", {progress.rate:,.0f} runs/s"
        left = "" if progress.left_s is None else f", {duration(progress.left_s)} left"
        yield Text(f"This sweep is running: {done}{rate}{left}. The page follows it.", "answer")
        yield Text(f"At work: {'; '.join(progress.drivers)}. Runs count when their wave is finished.", "note")
    else:
        yield from (Text(line, "warning") for line in store.shortcomings())
        yield Text(f"Nothing runs here now; {done}. The same sweep command resumes.", "note")


def _matrix(tally: SweepTally) -> Iterator[Block]:
    """The numbers of failing runs by mode and kind; each leads to its runs."""
    totals: dict[tuple[str, str], int] = {}
    for kind, count in tally.counts().items():
        for name in kind.shown if kind.verdict != "ok" else ():
            mode = tally.mode_of(kind)
            totals[name, mode] = totals.get((name, mode), 0) + count
    if not totals:
        yield Text("No run failed.", "none")
        return
    kinds, modes = sorted({kind for kind, _ in totals}), tally.modes
    rows = [
        (
            Link(kind, f"failing?{urlencode({'kind': kind})}"),
            *(
                Link(f"{totals[kind, mode]:,}", f"failing?{urlencode({'kind': kind, 'mode': mode})}")
                if (kind, mode) in totals
                else Cell("0", "none")
                for mode in modes
            ),
        )
        for kind in kinds
    ]
    yield Table(["violated", *modes], rows, modes, "Failing runs by mode and kind; a number leads to them.")


def failing(store: Store, tally: SweepTally, mode: str | None, kind: str | None, number: int) -> str | None:
    """A page of failing runs, of a mode and kind if they are given; None if there is no such page."""
    found = tally.failing(mode, kind)
    pages = max(1, -(-len(found) // ON_PAGE))
    if not 1 <= number <= pages:
        return None
    first = (number - 1) * ON_PAGE
    rows = list(found.rows(first, first + ON_PAGE))
    of = [*([f"mode {mode}"] if mode else []), *([kind] if kind else [])]
    title = ", ".join(["Failing runs", *of])
    shown = (
        f"{first + 1:,} to {first + len(rows):,} of {counted(len(found), 'failing run')}" if rows else "No run failed"
    )
    blocks: list[Block] = [
        Links([Link("Back to the sweep", "./")]),
        Links([*_filters("mode", tally.modes, mode, {"kind": kind})], "Modes"),
        Links([*_filters("kind", tally.shown_kinds, kind, {"mode": mode})], "Kinds"),
        Text(f"{shown} in {store.folder.shown}."),
    ]
    if rows:
        caption = "By seed. A film and an explanation are made when they are asked for."
        blocks.append(_runs(tally, rows, caption))
    if pages > 1:
        blocks.append(Links([*_pager(number, pages, {"mode": mode, "kind": kind})], "Further runs"))
    return page(title, blocks)


def _address(chosen: Mapping[str, str | int | None]) -> str:
    query = urlencode({name: value for name, value in chosen.items() if value is not None})
    return f"failing?{query}" if query else "failing"


def _filters(
    name: str, values: Iterable[str], chosen: str | None, rest: Mapping[str, str | None]
) -> Iterator[Link | str]:
    yield f"{name}:"
    yield "all" if chosen is None else Link("all", _address(rest))
    for value in values:
        yield value if value == chosen else Link(value, _address({**rest, name: value}))


def _pager(number: int, pages: int, rest: Mapping[str, str | None]) -> Iterator[Link | str]:
    if number > 1:
        yield Link("first", _address({**rest, "page": 1}))
        yield Link("previous", _address({**rest, "page": number - 1}))
    yield f"page {number:,} of {pages:,}"
    if number < pages:
        yield Link("next", _address({**rest, "page": number + 1}))
        yield Link("last", _address({**rest, "page": pages}))


def _runs(tally: SweepTally, rows: Sequence[FailingRun], caption: str) -> Table:
    several = len(tally.sweep.scenarios) > 1
    tickets = {kind for kinds in findings.documented().values() for kind in kinds}
    cells = []
    for run in rows:
        variant = tally.sweep.variants[run.kind.variant]
        outside = [kind for kind in run.kind.shown if kind not in run.kind.broken]
        place = f"{run.kind.variant}-{run.kind.mode}-{run.seed}"
        cells.append(
            (
                run.seed,
                tally.mode_of(run.kind),
                # Before the long cells: a narrow window shows them without scrolling.
                Link("film", f"{place}/film"),
                Link("why", f"{place}/explanation"),
                Link("ticket", f"{place}/ticket") if tickets.intersection(run.kind.shown) else None,
                *([variant.name] if several else []),
                *([words(tally.point(variant))] if tally.sweep.grid else []),
                "; ".join(
                    f"{side} the promise: {', '.join(kinds)}"
                    for side, kinds in (("inside", run.kind.broken), ("outside", outside))
                    if kinds
                ),
            )
        )
    settings = [*(["scenario"] if several else []), *(["settings"] if tally.sweep.grid else [])]
    headers = ["seed", "mode", "film", "why", "ticket", *settings, "violations"]
    return Table(headers, cells, ["seed"], caption)


def runs_of(origin: Origin, modes: Sequence[Mode], others: int) -> str:
    """A scenario or a recorded run: its modes, each with film and explanation."""
    scenario, seed = origin.scenario, origin.seed
    rows = [
        (
            mode.name,
            *(Link(_SHORT.get(what, what), f"0-{number}-{seed}/{what}") for what in WHATS),
            None if mode.release == NO_RELEASE else mode.release,
            _expected(scenario.expect[mode.name]) if mode.name in scenario.expect else None,
        )
        for number, mode in enumerate(modes)
    ]
    blocks: list[Block] = [Links([Link("All results of this folder", "/?all=1")])] if others else []
    blocks += [Text(scenario.title, "question"), Text(scenario.description)]
    if scenario.drawn and not origin.digests:
        seeds: list[Link | str] = [Link(f"seed {seed - 1}", f"?seed={seed - 1}")] if seed else []
        blocks.append(Links([*seeds, f"seed {seed}", Link(f"seed {seed + 1}", f"?seed={seed + 1}")], "Seeds"))
    caption = "A run in each mode; film and explanation are made when they are asked for."
    blocks.append(Table(["mode", "film", "why", "ticket", "release", "expected"], rows, caption=caption))
    return page(f"{scenario.name}, seed {seed}", blocks)


def _expected(expectation: Expectation) -> str:
    return " ".join(filter(None, (expectation.verdict, ", ".join(expectation.kinds))))


def waiting(what: str) -> str:
    """A page in place of one that is being made."""
    return page(what, [Text("This is being made; the page comes by itself.", "note")], WAIT_REFRESH_S)
