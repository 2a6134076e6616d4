"""A sweep's report: its contents, and the page that shows them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from reports.analysis import compare, coverage_table, guarantees, sentences
from reports.analysis.compare import ANY
from reports.drawing.observed import observe
from reports.drawing.picture import picture
from reports.drawing.svg import to_svg
from reports.evidence import triage
from reports.evidence.story import head
from reports.formatting import number, percent, plain
from reports.page import plots
from reports.versions import version
from scenarios.sweep.store import read_json
from sim.config import shown
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reports.analysis.compare import Comparison, Group
    from reports.analysis.guarantees import Map
    from scenarios.sweep.store import Store

POINTS: Final = 12
"""Maximum number of grid points with their own part; larger grids are shown in the maps only."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the report about one scenario at one point of a grid.

    Attributes:
        name: name for links.
        title: scenario and settings.
        said: the result in sentences.
        comparison: the figures.
        groups: its groups in display order.
        kinds: kinds of violations that occurred, inside and outside.
        inside: plot of the rates inside the promise, "" without any.
        outside: plot of the rates outside the promise, "" without any.
    """

    name: str
    title: str
    said: str
    comparison: Comparison
    groups: list[Group]
    kinds: tuple[str, ...]
    inside: str
    outside: str


@dataclass(frozen=True, slots=True)
class About:
    """The part of the report about one scenario at all points of a grid: maps, and safety against availability."""

    name: str
    title: str
    maps: list[Map]
    trade: str


def page(store: Store, found: triage.Triage | None = None) -> str:
    """The report of a sweep, as the text of one HTML file.

    Args:
        store: the sweep.
        found: its failures by cause, if they were examined.

    Raises:
        InputError: there are no rows, or a library is missing.
    """
    parts: list[Part] = []
    abouts: list[About] = []
    names = sorted(scenario.name for scenario in store.sweep.scenarios)
    for name in names:
        columns = [*compare.COLUMNS, *guarantees.NEEDS, *store.grid]
        frame = compare.read(store, columns, name)
        comparisons = compare.compare(frame, store.grid)
        first = len(parts)
        parts += [_part(f"part-{first + place}", one) for place, one in enumerate(comparisons[:POINTS])]
        if comparisons:
            abouts.append(About(f"about-{len(abouts)}", name, guarantees.maps(store, frame), _trade(comparisons)))
    if not parts:
        raise store.no_rows()
    points = len(store.sweep.variants)
    text: str = (
        _environment()
        .get_template("report.html")
        .render(
            title=f"{', '.join(names)} in {', '.join(_modes(store))}",
            question=_question(store, names),
            parts=parts,
            abouts=abouts,
            left_out=max(0, points - len(parts)),
            shortcomings=store.shortcomings(),
            triage=found,
            pictures=_pictures(found) if found else {},
            coverage=_coverage(store),
            reproduce=_reproduce(store),
            run=store.run,
            seeds=_seeds(store),
            version=version(),
            style=resources.files("reports.page").joinpath("report.css").read_text(encoding="utf-8"),
            legend=sentences.LEGEND,
            does=sentences.does,
        )
    )
    return text


def _pictures(found: triage.Triage) -> dict[int, str]:
    """Bucket number -> its smallest run, shrunk, as SVG."""
    drawn = {}
    for place, bucket in enumerate(found.buckets):
        case = found.cases.get(triage.key(bucket))
        if case is not None:
            observed = observe(case.scenario, case.mode, case.seed, case.rules)
            shown_run = picture(observed, list(head(observed.result.row)), everything=False)
            drawn[place] = to_svg(shown_run, f"run-{place}")
    return drawn


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise InputError("a report needs jinja2: pip install 'highwater[report]'") from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports.page", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    environment.filters |= {"percent": percent, "number": number, "shown": shown, "signed": lambda x: number(x, "+")}
    return environment


def _modes(store: Store) -> list[str]:
    names = {mode.name for modes in store.sweep.modes.values() for mode in modes}
    return sorted(names, key=lambda name: (sentences.place_of(name), name))


def _question(store: Store, names: list[str]) -> str:
    modes = sentences.joined(_modes(store), "and")
    settings = [f"{key} = {' or '.join(map(shown, values))}" for key, values in store.grid.items()]
    given = f", with {sentences.joined(settings, 'and')}" if settings else ""
    plural = "s" if len(names) > 1 else ""
    return (
        f"What do {modes} keep under the faults that the scenario{plural} {sentences.joined(names, 'and')} "
        f"draw{'' if plural else 's'}{given}?"
    )


def _seeds(store: Store) -> str:
    ranges = store.run["seeds"]
    pairs = ranges if ranges and isinstance(ranges[0], list) else [ranges]
    return ", ".join(f"{first}..{end}" for first, end in pairs)


def _part(name: str, comparison: Comparison) -> Part:
    groups = sentences.in_order(comparison)
    fixed = [f"{key} = {shown(value)}" for key, value in comparison.fixed.items()]
    kinds = tuple(rate.kind for rate in groups[0].rates if rate.kind != ANY)
    inside = [kind for kind in kinds if any(_rate(group, kind).inside for group in groups)]
    outside = [kind for kind in kinds if any(_rate(group, kind).outside for group in groups)]
    return Part(
        name,
        ", ".join([comparison.scenario, *fixed]),
        sentences.first(comparison),
        comparison,
        groups,
        kinds,
        plots.rates(groups, inside, inside=True) if inside else "",
        plots.rates(groups, outside, inside=False) if outside else "",
    )


def _rate(group: Group, kind: str) -> Any:
    return next(rate for rate in group.rates if rate.kind == kind)


def _trade(comparisons: list[Comparison]) -> str:
    points = []
    for comparison in comparisons:
        for group in sentences.in_order(comparison):
            wait = next((level for level in group.availability if level.measure == "leaderless_ms"), None)
            rate = _rate(group, ANY)
            if wait is None or rate.rate is None:
                continue
            fixed = ", ".join(shown(value) for value in comparison.fixed.values())
            name = f"{group.name} ({fixed})" if fixed else group.name
            figures = {"rate": rate.rate, "low": rate.low, "high": rate.high, "wait_s": wait.mean / 1_000}
            points.append({"name": name, "group": group.name, **figures})
    return plots.trade(points, "any violation") if points else ""


def _coverage(store: Store) -> coverage_table.CoverageReport | None:
    """The sweep's coverage; None if its rows lack it."""
    summary = read_json(store.folder, "summary.json")
    if summary.get("coverage") is None:
        return None
    return coverage_table.read(store.folder.shown)


def _reproduce(store: Store) -> Iterator[tuple[str, str]]:
    """Commands that reproduce the sweep, and what each gives."""
    run, here = store.run, shlex.quote(store.folder.shown)
    scenarios = store.sweep.scenarios
    words = ["highwater", "sweep", *(scenario.source or scenario.name for scenario in scenarios)]
    if (
        len({tuple(store.sweep.names(scenario)) for scenario in scenarios}) == 1
    ):  # Otherwise they are those of [expect].
        words += ["--modes", ",".join(_modes(store))]
    for rule, value in run["rules"].items():
        words += ["--rule", f"{rule}={value}"]
    for word in dict.fromkeys(word for one in scenarios for word in one.overrides):
        words += ["--set", word]
    for key, values in store.grid.items():
        words += ["--set", f"{key}={','.join(map(shown, values))}"]
    words += ["--strict"] if any(scenario.strict for scenario in scenarios) else []
    for seeds in _seeds(store).split(", "):
        said = f"every row of these seeds, on any machine, with code {run['code_version']}"
        yield f"{shlex.join([*words, '--seeds', seeds])} --output {here}", said
    yield f"highwater compare {here}", "every rate, interval and p"
    for key in store.grid:
        yield f"highwater compare {here} --by {key}", f"the values of {key} on the same seeds"
    yield f"highwater coverage {here}", "what was reached"
    yield f"highwater triage {here}", "the buckets"
    yield f"highwater report {here} -o report.html", "this page"
