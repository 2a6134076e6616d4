"""A sweep's report: its contents, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import quote

from reports.analysis import compare, coverage_table, guarantees, sentences
from reports.analysis.compare import ANY, Comparison, Group, Pair, Rate, release_order
from reports.analysis.guarantees import Map
from reports.analysis.statistics import interval
from reports.document.blocks import (
    Block,
    Cell,
    Commands,
    Contents,
    Document,
    Figures,
    Fold,
    Heading,
    Items,
    Link,
    Table,
    Terms,
    Text,
)
from reports.document.page import to_html
from reports.drawing.explanation import told
from reports.drawing.observed_run import observe
from reports.drawing.picture import picture
from reports.drawing.svg import to_svg
from reports.evidence import triage
from reports.evidence.story import heading
from reports.evidence.triage import Bucket, Failure
from reports.formatting import LEAST, moment, number, part_of, percent, share, side_of_promise
from reports.page import plots
from reports.versions import version
from scenarios import plugged
from scenarios.shrinking.advice import in_words
from scenarios.sweep.store import Store, read_json
from sim.config import shown
from sim.plurals import counted

POINTS: Final = 12
"""Maximum number of grid points with their own part; larger grids are shown in the maps only."""
PICTURES: Final = 12
"""Maximum number of pictures; of further causes, only the sentences are on the page."""
FIRST: Final = 3
"""Answers at the top; a part of the page repeats its own if there are more."""
MAPS: Final = 4
"""Maps of a scenario that are not folded."""
UNFOLDED: Final = 12
"""Longest list that is not folded."""


STRUCK: Final = {True: "Lost records", False: "Other violations"}


def page(
    store: Store,
    triaged: triage.Triage | None = None,
    kind: str | None = None,
    films: Sequence[tuple[Failure, str]] = (),
) -> str:
    """The report of a sweep, as the text of one HTML file.

    Args:
        store: the sweep.
        triaged: its failures by cause, if they were examined.
        kind: show only this kind of violation.
        films: failures, each with the name of the file beside the report that has its film.

    Raises:
        InputError: there are no rows.
    """
    return to_html(document(store, list(_blocks(store, triaged, kind, films))))


def document(store: Store, blocks: Sequence[Block], refresh_s: int = 0) -> Document:
    """A page about a sweep; `refresh_s` as in `Document`."""
    title = f"{', '.join(sorted(store.scenarios))} in {', '.join(_modes(store))}"
    return Document(title, blocks, "Highwater report", f"Highwater: {title}", plots.STYLE, refresh_s)


def _blocks(
    store: Store, triaged: triage.Triage | None, kind: str | None, films: Sequence[tuple[Failure, str]]
) -> Iterator[Block]:
    comparisons: dict[str, list[Comparison]] = {}
    maps: dict[str, list[Map]] = {}
    names = sorted(store.scenarios)
    for name in names:
        frame = compare.read(store, [*compare.COLUMNS, *guarantees.NEEDS, *store.grid], name)
        if found := compare.compare(frame, store.grid, kinds=kind and [ANY, kind]):
            comparisons[name], maps[name] = found, guarantees.maps(store, frame)
    if not comparisons:
        raise store.no_rows()
    parts = [comparison for found in comparisons.values() for comparison in found[:POINTS]]
    yield question(store)
    answers = [sentences.first(part) for part in parts]
    yield from (Text(said, "answer") for said in answers[:FIRST])
    if len(parts) > FIRST:
        yield Text(f"{counted(len(parts) - FIRST, 'more answer')} below.", "note")
    problems = [*store.shortcomings(), *compare.inconclusive(part for found in comparisons.values() for part in found)]
    yield from (Text(problem, "warning") for problem in problems)
    yield Terms(sentences.TERMS)
    yield origin(store)
    yield Contents()
    yield from rates(parts, answers if len(parts) > FIRST else [""] * len(parts))
    if left_out := max(0, len(store.sweep.variants) - len(parts)):
        yield Text(f"{counted(left_out, 'more point')} of the grid: see the maps below, and highwater compare.", "note")
    if triaged:
        yield from causes(triaged, store)
    if films:
        yield from _films(films)
    for place, name in enumerate(maps):
        yield from _about(f"about-{place}", name, maps[name], comparisons[name])
    yield from _coverage(store)
    yield Heading("How to reproduce it", name="reproduce")
    code = store.run["code_version"]
    yield Text(f"A run is a pure function of scenario, mode and seed. With code {code}:")
    yield Terms(dict(_reproduce(store)), are_commands=True)
    yield Heading("How to read it", name="legend")
    yield Items(sentences.LEGEND)


def question(store: Store) -> Text:
    """What a sweep asks."""
    return Text(_question(store, sorted(store.scenarios)), "question")


def origin(store: Store) -> Text:
    """What to read rates against, and where they come from."""
    return Text(
        "The scenario's faults are far denser than those of a data centre: compare the rates with each other, and do "
        f"not read them as losses per year. Seeds {_seeds(store)}, simulated with code {store.run['code_version']}; "
        f"report by Highwater {version()}.",
        "note",
    )


def rates(parts: Sequence[Comparison], answers: Sequence[str]) -> Iterator[Block]:
    """Rates with intervals of scenarios at points of a grid, each under its answer, if that is not empty."""
    # Panels are compared across the page: all have the same axis.
    lowest = min(plots.decade(part.groups, _kinds(part), inside=side) for part in parts for side in (True, False))
    for place, (comparison, said) in enumerate(zip(parts, answers, strict=True)):
        yield from _part(f"part-{place}", comparison, said, lowest)


def _films(films: Sequence[tuple[Failure, str]]) -> Iterator[Block]:
    """Links to films beside the report."""
    yield Heading("Films of failures", name="films")
    rows = [
        (
            failure.scenario,
            failure.mode,
            Link(str(failure.seed), f"./{quote(file)}"),
            failure.kind,
            side_of_promise(failure.inside),
        )
        for failure, file in films
    ]
    yield Table(
        ["scenario", "mode", "seed", "violated", "side"],
        rows,
        ["seed"],
        "A sample with equal parts of each kind. A seed leads to its film: every step of the run, to step through.",
    )


def causes(found: triage.Triage, store: Store) -> Iterator[Block]:
    """Failures by cause: violations inside the promise first, lost records first, modes in order of release."""
    yield Heading("Failures and their causes", name="causes")
    yield Text(
        f"Highwater {found.looked}. The cause of a failure is the one rule or setting whose change alone, with the "
        "same plan of faults, prevents it. Under each cause one run, shrunk to what the failure needs, is told in "
        "sentences."
    )
    if found.inside_looked + found.outside_looked < found.inside + found.outside:
        yield Text(
            'Kinds of violation and sides of the promise take turns in this sample: "3 of 5" counts what was looked '
            'at, and a share "of all there" weights it by how often each kind occurs.',
            "note",
        )
    kinds = [*sentences.LOSSES, *sorted(bucket.kind for bucket in found.buckets)]
    buckets = sorted(found.buckets, key=lambda one: (not one.inside, kinds.index(one.kind), release_order(one.mode)))
    several = len(store.sweep.scenarios) > 1
    numbers = {id(bucket): number for number, bucket in enumerate(buckets)}
    for (kind, inside), group in groupby(buckets, key=lambda one: (one.kind, one.inside)):
        these = list(group)
        count = sum(bucket.count for bucket in these)
        yield Heading(f"{kind}, {side_of_promise(inside)}", level=3)
        yield Text(_looked(found, kind, these, count, inside=inside))
        for place, bucket in enumerate(these):
            number = numbers[id(bucket)]
            yield Fold(
                _cause(found, bucket),
                list(_told(found, bucket, store, number, several=several)),
                more=f"; {'all of these' if bucket.count == count else part_of(bucket.count, count)}",
                name=f"cause-{number}",
                is_open=not place,
            )
    if found.unexplained:
        yield Fold(f"{counted(len(found.unexplained), 'failure')} could not be examined", [Items(found.unexplained)])


def _looked(found: triage.Triage, kind: str, buckets: list[Bucket], count: int, *, inside: bool) -> str:
    """How many of the failures that were looked at are of a kind."""
    looked, there = (found.inside_looked, found.inside) if inside else (found.outside_looked, found.outside)
    share_there = sum(bucket.share for bucket in buckets)
    estimated = f", {percent(share_there)} of all there" if LEAST <= looked < there else ""
    excuse = "" if inside else ", whose faults Kafka never promised to survive"
    return (
        f"A run {sentences.does(kind)}: {count:,} of {looked:,} looked at {side_of_promise(inside)}{estimated}{excuse}."
    )


def _cause(found: triage.Triage, bucket: Bucket) -> str:
    cause = f"{triage.bug_of(bucket)}. " if bucket.bug else ""
    cure = (
        in_words(bucket.repair, bucket.advice, is_bug=bool(bucket.bug))
        if bucket.repair
        else "No single rule or setting prevents it"
    )
    return f"{f'{bucket.scenario}, ' if found.several else ''}{bucket.mode}: {cause}{cure}"


def _told(found: triage.Triage, bucket: Bucket, store: Store, number: int, *, several: bool) -> Iterator[Block]:
    """The smallest run of a bucket, as a story and a picture if it was shrunk."""
    if bucket.others:
        yield Text(f"Each of these prevents all of them, too: {', '.join(bucket.others)}.")
    if code := triage.code_of(bucket):
        yield Text(f"In Kafka: {code}.")
    seed = bucket.smallest.seed
    case, small = found.cases.get(triage.key(bucket)), bucket.small
    if case is None or small is None:
        yield Text(f"Seed {seed} is its smallest; it was not shrunk here.")
    else:
        observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
        point = f" with {bucket.smallest.point}" if bucket.smallest.point else ""
        faults = f"{counted(len(small.faults), 'fault')} ({', '.join(small.faults)})"
        unfinished = "" if small.whole else " when its number of runs was used up"
        yield Text(
            f"Seed {seed}{point}, shrunk to {counted(small.batches, 'batch', 'batches')} and {faults}{unfinished}:"
        )
        yield Table(
            ["at", "what happened"],
            [(moment(sentence.at_us), sentence.text) for sentence in told(observed, bucket.kind)],
        )
        if number < PICTURES:
            drawn = picture(observed, list(heading(observed.result)), everything=False)
            caption = "Time runs downwards. The steps that the violation comes from; a narrow screen scrolls sideways."
            figures = Figures([(to_svg(drawn, f"run-{number}"), caption)], is_wide=True)
            yield Fold("Picture of this run", [figures])
    yield Text("To have it told again, with what would have prevented it; and the run before it was shrunk:")
    yield Commands([triage.explains(bucket, store.folder.shown, several=several), bucket.smallest.replay])


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


def _kinds(comparison: Comparison) -> list[str]:
    """The kinds of violation that occurred: lost records first."""
    found = [rate.kind for rate in comparison.groups[0].rates if rate.kind != ANY]
    return sorted(found, key=lambda kind: (kind not in sentences.LOSSES, kind))


def _part(name: str, comparison: Comparison, said: str, lowest: int) -> Iterator[Block]:
    """One scenario at one point of a grid."""
    groups = sentences.in_order(comparison)
    fixed = [f"{key} = {shown(value)}" for key, value in comparison.fixed.items()]
    yield Heading(f"{', '.join([comparison.scenario, *fixed])}: rates", name=name)
    if said:
        yield Text(said, "answer")
    kinds = _kinds(comparison)
    for side in ("inside", "outside"):
        yield Heading(f"{side.capitalize()} the promise", level=3)
        yield Text(sentences.TERMS[f"{side} the promise"])
        panels = list(_panels(comparison.by, groups, kinds, lowest, side))
        none = "; ".join(f"{group.name} in 0 of {group.runs:,} runs" for group in groups)
        yield from panels or [Text(f"No run violated anything {side} the promise: {none}.", "none")]
    yield Heading("Runs, and what they cost", level=3)
    yield _runs(groups)
    if comparison.pairs:
        yield Heading(f"{'Modes' if comparison.by == 'mode' else 'Values'} in pairs, on the same seeds", level=3)
        yield Text(
            "The same seed gives both the same plan of faults. p: how often so uneven a split would occur if the two "
            "did not differ (exact McNemar test). Below 0.05 counts; one comparison in twenty gets there by chance."
        )
    for place, pair in enumerate(comparison.pairs):
        equal = part_of(pair.equal_faults, pair.n)
        title = f"{pair.a} and {pair.b} on {pair.n:,} common seeds; in {equal} exactly the same faults struck in both"
        yield Fold(title, _pair(pair), is_open=not place)


def _panels(by: str, groups: list[Group], kinds: list[str], lowest: int, side: str) -> Iterator[Block]:
    """The rates on one side of the promise: lost records apart from other violations."""
    occurred = [kind for kind in kinds if any(getattr(_rate(group, kind), side) for group in groups)]
    for loses, title in STRUCK.items():
        if not (those := [kind for kind in occurred if (kind in sentences.LOSSES) == loses]):
            continue
        yield Heading(f"{title}, {side} the promise", level=4)
        rows = [row for kind in those for row in ((kind,), *(_row(group, kind, side) for group in groups))]
        headers = [by, "runs", "share", "95 % interval"]
        table = Table(headers, rows, headers[1:], f"{title} in figures.")
        if any(group.runs < LEAST for group in groups):
            yield Text(f"Fewer than {LEAST} runs have no share that would mean anything.", "note")
            yield table
            continue
        caption = (
            "95 % intervals; an open triangle is the upper bound where no run showed it. All plots of rates on this "
            "page have the same axis."
        )
        yield Figures([(plots.rates(groups, those, inside=side == "inside", lowest=lowest), caption)])
        yield Fold("The same in figures", [table])


def _row(group: Group, kind: str, side: str) -> tuple[str, str, str, str]:
    rate = _rate(group, kind)
    k, n = getattr(rate, side), rate.n
    low, high = interval(k, n)
    if n < LEAST:
        return group.name, f"{k:,} of {n:,}", "-", "-"
    bounds = f"{percent(low)} to {percent(high)}" if k else f"at most {percent(high)}"
    return group.name, f"{k:,} of {n:,}", percent(k / n), bounds


def _runs(groups: list[Group]) -> Table:
    rows: list[tuple[object, ...]] = [
        ("all that count", *(f"{group.runs:,}" for group in groups)),
        ("tolerated", *(share(group.runs_inside, group.runs) if group.runs else "-" for group in groups)),
        ("stalled: an operator has to act", *(f"{group.stalled:,}" for group in groups)),
        ("vacuous: few batches, faults or elections", *(f"{group.vacuous:,}" for group in groups)),
        ("exhausted: stopped at the event limit", *(f"{group.exhausted:,}" for group in groups)),
        ("errors, which do not count", *(f"{group.errors:,}" for group in groups)),
    ]
    # No measure, if a group has no run that ended.
    levels = list(zip(*(group.availability for group in groups), strict=False))
    if levels:
        rows.append(("mean of a run",))
    for one in levels:
        measure, means = sentences.measured(one[0].measure, [level.mean for level in one])
        rows.append((measure, *means))
    names = [group.name for group in groups]
    return Table(["runs", *names], rows, names, "Runs by outcome, and means of a run, of which less is better.")


def _pair(pair: Pair) -> list[Block]:
    headers = ["kind", "both", f"only {pair.a}", f"only {pair.b}", "p"]
    kinds = [
        (
            kind.kind,
            f"{kind.both:,}",
            f"{kind.only_a:,}",
            f"{kind.only_b:,}",
            f"{kind.p:.2g}" if kind.p >= 0.001 else "<0.001",
        )
        for kind in pair.kinds
    ]
    means = [sentences.difference_cells(difference) for difference in pair.availability]
    columns = ["mean of a run", pair.a, pair.b, "difference (95 % interval)"]
    more = f"Means of a run, and their difference: {pair.b} minus {pair.a}."
    return [
        Table(headers, kinds, headers[1:], "Seeds by which of the two violates it, inside or outside the promise."),
        Table(columns, means, columns[1:], more),
    ]


def _rate(group: Group, kind: str) -> Rate:
    return next(rate for rate in group.rates if rate.kind == kind)


def _about(name: str, title: str, maps: list[Map], comparisons: list[Comparison]) -> Iterator[Block]:
    """One scenario at all points of a grid: maps, and safety against availability."""
    yield Heading(f"{title}: guarantee map", name=name)
    yield Text(
        "Each cell counts runs: kept (nothing violated), violated inside the promise, or violated only outside it. "
        "Where all of n runs kept everything, the upper bound of the rate stands beside it. A run with "
        "three kinds of fault counts in three rows: coincidence, not cause."
    )
    tables = [
        Table(
            [one.rows_are, *one.columns],
            [(row, *(Cell(cell.said, f"map {cell.worst}") for cell in cells)) for row, cells in one.rows.items()],
            caption=one.title,
        )
        for one in maps
    ]
    yield from tables[:MAPS]
    if tables[MAPS:]:
        yield Fold(counted(len(tables) - MAPS, "more map"), tables[MAPS:])
    yield from _trades(comparisons)


def _trades(comparisons: list[Comparison]) -> Iterator[Block]:
    """The rates of the first kind of violation against the time without a leader."""
    kinds = {rate.kind for one in comparisons for group in one.groups for rate in group.rates if rate.k}
    kind = next((kind for kind in sentences.FIRST if kind in kinds), ANY)
    points: list[tuple[object, ...]] = []
    rates = []
    for comparison in comparisons:
        for group in sentences.in_order(comparison):
            wait = next((level for level in group.availability if level.measure == "leaderless_ms"), None)
            if wait is None or group.runs < LEAST:
                continue
            fixed = ", ".join(f"{key} = {shown(value)}" for key, value in comparison.fixed.items())
            rate = next((rate for rate in group.rates if rate.kind == kind), None)
            ks = (rate.inside, rate.outside) if rate else (0, 0)
            label = f"{group.name} ({fixed})" if fixed else group.name
            cells = (label, number(wait.mean / 1_000), *(part_of(k, group.runs) for k in ks))
            points.append((len(points) + 1, *cells))
            rates.append((wait.mean / 1_000, [(k, group.runs, *interval(k, group.runs)) for k in ks]))
    most = (
        max((wait_s for wait_s, _ in rates), default=0),
        max((side[3] for _, both in rates for side in both), default=0),
    )
    trades = [
        (
            plots.trade([(wait_s, both[place]) for wait_s, both in rates], inside=not place, most=most),
            f"{side.capitalize()} the promise, with 95 % intervals. Numbers are those of the table.",
        )
        for place, side in enumerate(("inside", "outside"))
        if any(both[place][0] for _, both in rates)
    ]
    if trades:
        loses = sentences.does(kind)
        yield Heading("Safety against availability", level=3)
        yield Text(
            f"How many runs a mode {loses}, against how long a run is without a leader on average. Lower and further "
            "left is better."
        )
        yield Figures(trades)
        headers = ["number", "mode", "without a leader, s", "inside", "outside"]
        yield Table(headers, points, ["number", *headers[2:]], f"Runs in which a mode {loses}.")


def _coverage(store: Store) -> Iterator[Block]:
    """What the sweep never reached; nothing if its rows lack coverage."""
    if read_json(store.folder, "summary.json").get("coverage") is None:
        return
    found = coverage_table.read(store)
    yield Heading("What was never reached", name="reached")
    yield Text("A clean sweep says nothing of steps that its faults never led to.")
    for group in found.groups:
        if never := group.never:
            reachable = len(group.probes) - len(group.foreign)
            yield Heading(f"{group.name}: {len(never)} of {reachable} never", level=3)
            texts = [f"{probe}: {group.meaning(probe)}" if group.meaning(probe) else probe for probe in never]
            title = f"{len(never)} that no run reached"
            yield Fold(title, [Items(texts)], is_open=len(never) <= UNFOLDED)
    if found.idle:
        yield Text(f"Drawn, and took effect in no run: {', '.join(found.idle)}.")
    if found.undrawn:
        yield Text(f"Kinds of fault that these scenarios do not draw: {', '.join(found.undrawn)}.")


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
