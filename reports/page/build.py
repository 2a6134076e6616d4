"""A sweep's report: its contents, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reports.analysis import compare, coverage_table, guarantees, sentences
from reports.analysis.compare import ANY, Comparison, Group, Level, Rate, release_order
from reports.analysis.guarantees import Map
from reports.analysis.statistics import interval
from reports.document.page import style
from reports.drawing.explanation import told
from reports.drawing.observed_run import observe
from reports.drawing.picture import picture
from reports.drawing.svg import to_svg
from reports.evidence import triage
from reports.evidence.narrative import Sentence
from reports.evidence.story import heading
from reports.evidence.triage import Bucket
from reports.formatting import LEAST, number, part_of, percent, plain, seconds, share
from reports.page import plots
from reports.versions import version
from scenarios import plugged
from scenarios.sweep.store import Store, read_json
from sim.config import shown
from sim.plurals import counted

POINTS: Final = 12
"""Maximum number of grid points with their own part; larger grids are shown in the maps only."""
PICTURES: Final = 12
"""Maximum number of pictures; of further causes, only the sentences are on the page."""
STRUCK: Final = {True: "Lost records", False: "Other violations"}


@dataclass(frozen=True, slots=True)
class Panel:
    """The rates of some kinds of violation on one side of the promise.

    Attributes:
        title: whether records are lost.
        plot: as SVG; "" if there are too few runs.
        rows: kind -> group, k of n, share, and interval, of each group.
    """

    title: str
    plot: str
    rows: dict[str, list[tuple[str, str, str, str]]]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """The part of the report about one scenario at one point of a grid.

    Attributes:
        name: name for links.
        title: scenario and settings.
        said: the result in sentences.
        comparison: the figures.
        groups: its groups in display order.
        sides: violations inside the promise, and outside it.
        levels: what availability measures -> mean of each group.
    """

    name: str
    title: str
    said: str
    comparison: Comparison
    groups: list[Group]
    sides: dict[str, list[Panel]]
    levels: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class About:
    """The part of the report about one scenario at all points of a grid: maps, and safety against availability.

    Attributes:
        name: name for links.
        title: the scenario.
        maps: its maps.
        loses: what the rates measure.
        trades: side of the promise -> plot.
        points: of each point of the plots, its name, seconds without a leader, and k of n on both sides.
    """

    name: str
    title: str
    maps: list[Map]
    loses: str
    trades: dict[str, str]
    points: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Cause:
    """A bucket of failures, and the story of its smallest seed if that was shrunk.

    Attributes:
        name: name for links.
        bucket: the bucket.
        explains: the command that tells the same story.
        story: what happened; empty if the seed was not shrunk.
        picture: as SVG, or "".
    """

    name: str
    bucket: Bucket
    explains: str
    story: Sequence[Sentence] = ()
    picture: str = ""


def page(store: Store, triaged: triage.Triage | None = None, kind: str | None = None) -> str:
    """The report of a sweep, as the text of one HTML file.

    Args:
        store: the sweep.
        triaged: its failures by cause, if they were examined.
        kind: show only this kind of violation.

    Raises:
        InputError: there are no rows.
    """
    comparisons: dict[str, list[Comparison]] = {}
    maps: dict[str, list[Map]] = {}
    names = sorted(store.scenarios)
    for name in names:
        frame = compare.read(store, [*compare.COLUMNS, *guarantees.NEEDS, *store.grid], name)
        if found := compare.compare(frame, store.grid, kinds=kind and [ANY, kind]):
            comparisons[name], maps[name] = found, guarantees.maps(store, frame)
    if not comparisons:
        raise store.no_rows()
    shown_parts = [one for found in comparisons.values() for one in found[:POINTS]]
    # Panels are compared across the page: all have the same axis.
    lowest = min(plots.decade(one.groups, _kinds(one), inside=side) for one in shown_parts for side in (True, False))
    parts = [_part(f"part-{place}", one, lowest) for place, one in enumerate(shown_parts)]
    text: str = (
        jinja_environment("reports.page")
        .get_template("report.html")
        .render(
            title=f"{', '.join(names)} in {', '.join(_modes(store))}",
            question=_question(store, names),
            parts=parts,
            abouts=[_about(f"about-{place}", name, maps[name], comparisons[name]) for place, name in enumerate(maps)],
            left_out=max(0, len(store.sweep.variants) - len(parts)),
            shortcomings=store.shortcomings(),
            triage=triaged,
            causes=_causes(triaged, store) if triaged else {},
            coverage=_coverage(store),
            reproduce=_reproduce(store),
            run=store.run,
            seeds=_seeds(store),
            version=version(),
            style=plots.STYLE + style(),
            terms=sentences.TERMS,
            legend=sentences.LEGEND,
        )
    )
    return text


def _causes(found: triage.Triage, store: Store) -> dict[tuple[str, bool], list[Cause]]:
    """Kind of violation and side of the promise -> its causes: lost records first, modes in order of release."""
    kinds = [*sentences.LOSSES, *sorted(bucket.kind for bucket in found.buckets)]
    buckets = sorted(
        enumerate(found.buckets),
        key=lambda one: (not one[1].inside, kinds.index(one[1].kind), release_order(one[1].mode), one[0]),
    )
    causes: dict[tuple[str, bool], list[Cause]] = {}
    several = len(store.sweep.scenarios) > 1
    for place, (_, bucket) in enumerate(buckets):
        case = found.cases.get(triage.key(bucket))
        explains = triage.explains(bucket, store.folder.shown, several=several)
        cause = Cause(f"cause-{place}", bucket, explains)
        if case is not None:
            observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
            drawn = picture(observed, list(heading(observed.result)), everything=False)
            svg = to_svg(drawn, f"run-{place}") if place < PICTURES else ""
            cause = replace(cause, story=told(observed, bucket.kind), picture=svg)
        causes.setdefault((bucket.kind, bucket.inside), []).append(cause)
    return causes


def jinja_environment(package: str) -> Any:
    """The environment of the templates in a package's folder, which escapes all text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A number and its unit stay together.
        finalize=lambda value: (
            plain(value).replace(" %", "\xa0%").replace("<= ", "<=\xa0") if type(value) is str else value
        ),
    )
    environment.filters |= {"n": "{:,}".format, "p": _p, "seconds": seconds}
    environment.globals |= {
        "counted": counted,
        "does": sentences.does,
        "measured": sentences.measured,
        "part_of": part_of,
        "percent": percent,
        "LEAST": LEAST,
        "share": lambda k, n: share(k, n) if n else "-",
    }
    return environment


def _modes(store: Store) -> list[str]:
    return sorted(store.modes, key=release_order)


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


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "<0.001"


def _kinds(comparison: Comparison) -> list[str]:
    """The kinds of violation that occurred: lost records first."""
    found = [rate.kind for rate in comparison.groups[0].rates if rate.kind != ANY]
    return sorted(found, key=lambda kind: (kind not in sentences.LOSSES, kind))


def _part(name: str, comparison: Comparison, lowest: int) -> ReportSection:
    groups = sentences.in_order(comparison)
    fixed = [f"{key} = {shown(value)}" for key, value in comparison.fixed.items()]
    levels = [sentences.measured(one[0].measure, [level.mean for level in one]) for one in _availability(groups)]
    return ReportSection(
        name,
        ", ".join([comparison.scenario, *fixed]),
        sentences.first(comparison),
        comparison,
        groups,
        {side: list(_panels(groups, _kinds(comparison), lowest, side)) for side in ("inside", "outside")},
        dict(levels),
    )


def _availability(groups: Iterable[Group]) -> Iterator[tuple[Level, ...]]:
    """Each measure of availability, of all groups; none if a group has no run that ended."""
    return zip(*(group.availability for group in groups), strict=False)


def _panels(groups: list[Group], kinds: list[str], lowest: int, side: str) -> Iterator[Panel]:
    """The panels of one side of the promise: lost records apart from other violations."""
    occurred = [kind for kind in kinds if any(getattr(_rate(group, kind), side) for group in groups)]
    for loses, title in STRUCK.items():
        if those := [kind for kind in occurred if (kind in sentences.LOSSES) == loses]:
            enough = all(group.runs >= LEAST for group in groups)
            plot = plots.rates(groups, those, inside=side == "inside", lowest=lowest) if enough else ""
            yield Panel(title, plot, {kind: [_row(group, kind, side) for group in groups] for kind in those})


def _row(group: Group, kind: str, side: str) -> tuple[str, str, str, str]:
    rate = _rate(group, kind)
    k, n = getattr(rate, side), rate.n
    low, high = interval(k, n)
    if n < LEAST:
        return group.name, f"{k:,} of {n:,}", "-", "-"
    bounds = f"{percent(low)} to {percent(high)}" if k else f"at most {percent(high)}"
    return group.name, f"{k:,} of {n:,}", percent(k / n), bounds


def _rate(group: Group, kind: str) -> Rate:
    return next(rate for rate in group.rates if rate.kind == kind)


def _about(name: str, title: str, maps: list[Map], comparisons: list[Comparison]) -> About:
    """Maps, and the rates of the first kind of violation against the time without a leader."""
    kinds = {rate.kind for one in comparisons for group in one.groups for rate in group.rates if rate.k}
    kind = next((kind for kind in sentences.FIRST if kind in kinds), ANY)
    points, rates = [], []
    for comparison in comparisons:
        for group in sentences.in_order(comparison):
            wait = next((level for level in group.availability if level.measure == "leaderless_ms"), None)
            if wait is None or group.runs < LEAST:
                continue
            fixed = ", ".join(f"{key} = {shown(value)}" for key, value in comparison.fixed.items())
            rate = next((rate for rate in group.rates if rate.kind == kind), None)
            ks = (rate.inside, rate.outside) if rate else (0, 0)
            label = f"{group.name} ({fixed})" if fixed else group.name
            points.append((label, number(wait.mean / 1_000), *(part_of(k, group.runs) for k in ks)))
            rates.append((wait.mean / 1_000, [(k, group.runs, *interval(k, group.runs)) for k in ks]))
    trades = {}
    most = (
        max((wait_s for wait_s, _ in rates), default=0),
        max((side[3] for _, both in rates for side in both), default=0),
    )
    for place, side in enumerate(("inside", "outside")):
        if any(both[place][0] for _, both in rates):
            trades[side] = plots.trade([(wait_s, both[place]) for wait_s, both in rates], inside=not place, most=most)
    return About(name, title, maps, sentences.does(kind), trades, points)


def _coverage(store: Store) -> coverage_table.CoverageReport | None:
    """The sweep's coverage; None if its rows lack it."""
    summary = read_json(store.folder, "summary.json")
    if summary.get("coverage") is None:
        return None
    return coverage_table.read(store)


def _reproduce(store: Store) -> Iterator[tuple[str, str]]:
    """Commands that reproduce the sweep, and what each gives."""
    run, here = store.run, store.folder.shown
    scenarios = store.sweep.scenarios
    words = ["sweep", *(scenario.source or scenario.name for scenario in scenarios)]
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
        yield plugged.command([*words, "--seeds", seeds, "--output", here]), said
    yield plugged.command(["compare", here]), "every rate, interval and p"
    for key in store.grid:
        yield plugged.command(["compare", here, "--by", key]), f"the values of {key} on the same seeds"
    yield plugged.command(["coverage", here]), "what was reached"
    yield plugged.command(["triage", here]), "more causes of failures"
    yield plugged.command(["report", here, "-o", "report.html", "--triage", "N"]), "this page, of N failures"
