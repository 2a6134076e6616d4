"""``highwater compare``: the modes of a sweep, or the values of a setting, each and in pairs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from highwater.cli.options import Command, takes
from highwater.cli.progress import READS, noted
from highwater.option import Argument, Option
from highwater.requests import AsJson, CompareRequest, Form
from reports.analysis import compare, paired, sentences
from reports.analysis.sentences import RATE, difference_cells, in_order, rate_cells
from reports.document.blocks import Commands, Heading, Items, Table, Text
from reports.formatting import number, percent
from scenarios.sweep import error_groups
from sim import exit_codes
from sim.config import shown
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from highwater.cli.console import Ui
    from reports.analysis.compare import Comparison, Group, Pair
    from reports.document.blocks import Block
    from scenarios.sweep.error_groups import ErrorGroup
    from scenarios.sweep.store import Store

NAMES: Final = 14
"""Column title of two groups."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions(CompareRequest):
    """The options of the command."""

    other: Annotated[str | None, Argument(metavar="[DIR]", required=False, before="by")] = None
    brief: Annotated[bool, Option(help="Print only the answer and the rates.")] = False
    form: Annotated[Form, Option("--format", help="Tables as text, or as Markdown.")] = "text"
    as_json: AsJson = False


@click.command("compare", cls=Command)
@takes(CompareOptions)
@click.pass_obj
def command(ui: Ui, asked: CompareOptions) -> int:
    """Compare the modes of a sweep, or the values of a setting: rates with 95 % intervals, and paired tables.

    With two folders, compare the second with the first on their common seeds: --mode A,B names a mode of each.
    """
    if asked.other is not None:
        if asked.by != compare.MODE:
            raise InputError(
                f"--by {asked.by!r} compares the values of one folder; with two folders, modes are compared"
            )
        return _two(ui, asked, asked.other)
    kinds = None if asked.kind is None else [sentences.check_kind(asked.kind)]
    store = asked.store()
    store.tell = noted(ui, READS, 1)
    comparisons = compare.of_store(store, asked.by, kinds)
    errors = error_groups.of_store(store)
    shortcomings = store.shortcomings()
    ui.caution(shortcomings)
    said = [sentences.first(comparison, asked.kind) for comparison in comparisons]
    if asked.as_json:
        data = compare.as_json(comparisons)
        for comparison, sentence in zip(data["comparisons"], said, strict=True):
            comparison["said"] = sentence
        blows = {"blows": _blows(store)} if store.sweep.blows else {}
        ui.json({**data, **blows, "errors": [group.to_json() for group in errors], "shortcomings": shortcomings})
    else:
        ui.show(_of_one(store, zip(comparisons, said, strict=True), errors, brief=asked.brief), asked.form)
    inconclusive = _cautioned(ui, comparisons)
    is_empty = not any(group.runs for comparison in comparisons for group in comparison.groups)
    return exit_codes.INCONCLUSIVE if shortcomings or inconclusive or is_empty else exit_codes.EXPECTED


def _of_one(
    store: Store, found: Iterable[tuple[Comparison, str]], errors: Sequence[ErrorGroup], *, brief: bool
) -> Iterator[Block]:
    for comparison, sentence in found:
        yield from _compared(comparison, sentence, brief=brief)
    if store.sweep.blows and not brief:
        headers = ["scenario", "mode", "early warning", "violation", "runs after it", "of which violate", "inside"]
        rows = [
            (*(blow[name] for name in ("scenario", "mode", "warning", "kind", "runs", "n", "inside")),)
            for blow in _blows(store)
        ]
        yield Heading("Runs with blows, which are in no rate above")
        yield Table(headers, rows, headers[4:])
    yield from _end(errors, brief=brief)


def _two(ui: Ui, asked: CompareOptions, other: str) -> int:
    """Compare two folders: the answer first, then where to look, then tables."""
    if asked.kind is not None:
        sentences.check_kind(asked.kind)
    stores, modes = asked.pair(other)
    answers = paired.of_stores(stores, asked.kind, modes)
    errors = [group for store in stores for group in error_groups.of_store(store)]
    shortcomings = [problem for store in stores for problem in store.shortcomings()]
    ui.caution(shortcomings)
    if asked.as_json:
        data = compare.as_json([answer.comparison for answer in answers])
        for comparison, answer in zip(data["comparisons"], answers, strict=True):
            comparison["said"] = answer.said
            comparison["differs"] = list(answer.differs)
            comparison["examples"] = [asdict(example) for example in answer.examples]
        ui.json({**data, "errors": [group.to_json() for group in errors], "shortcomings": shortcomings})
    else:
        ui.show(_of_two(answers, errors, brief=asked.brief), asked.form)
    inconclusive = _cautioned(ui, [answer.comparison for answer in answers])
    return exit_codes.INCONCLUSIVE if shortcomings or inconclusive else exit_codes.EXPECTED


def _cautioned(ui: Ui, comparisons: Sequence[Comparison]) -> bool:
    """Print why the runs are inconclusive; whether they are."""
    reasons = compare.inconclusive(comparisons)
    ui.caution(f"inconclusive: {reason}" for reason in reasons)
    return bool(reasons)


def _of_two(answers: Iterable[paired.Answer], errors: Sequence[ErrorGroup], *, brief: bool) -> Iterator[Block]:
    for answer in answers:
        yield from _answer(answer)
        if not brief:
            groups = answer.comparison.groups
            yield from _rates("mode", groups)
            yield from _runs("mode", groups)
            yield from _availability("mode", groups)
            for pair in answer.comparison.pairs:
                yield from _pair("mode", pair)
    yield from _end(errors, brief=brief)


def _end(errors: Sequence[ErrorGroup], *, brief: bool) -> Iterator[Block]:
    """Why runs ended with an error, with one run of each sort, and how to read the tables."""
    if errors:
        yield Heading("Errors")
        first, *rest = error_groups.told(errors)
        yield Text(first)
        yield Commands([line.strip() for line in rest])
    if not brief:
        yield Heading("How to read it")
        yield Items(sentences.LEGEND)


def _answer(answer: paired.Answer) -> Iterator[Block]:
    """The answer to a paired question, and the smallest seeds that only one side shows."""
    yield from map(Text, (answer.said, *answer.differs))
    for example in answer.examples:
        yield Text(f"The smallest seed on which only {example.side} {sentences.does(answer.kind)} is {example.seed}:")
        yield Commands([line for line in (example.replay, example.show) if line])


def _blows(store: Store) -> list[dict[str, Any]]:
    from scenarios.sweep.store import StoredRuns
    from scenarios.sweep.summary import blow_counts

    store.runs = StoredRuns.BLOWS
    return blow_counts(store)


def _compared(comparison: Comparison, said: str, *, brief: bool) -> Iterator[Block]:
    fixed = [f"{name} = {shown(value)}" for name, value in comparison.fixed.items()]
    heading = ", ".join([comparison.scenario, *fixed])
    yield Heading(heading if comparison.by == "mode" else f"{heading}: by {comparison.by}")
    yield Text(said)
    by, groups = "mode" if comparison.by == "mode" else "value", tuple(in_order(comparison))
    yield from _rates(by, groups)
    if brief:
        return
    yield from _runs(by, groups)
    yield from _availability(by, groups)
    for pair in comparison.pairs:
        yield from _pair(comparison.by, pair)


def _rates(by: str, groups: tuple[Group, ...]) -> Iterator[Block]:
    """One table for each kind, so that it fits."""
    for place, rate in enumerate(groups[0].rates):
        rows = [(group.name, *rate_cells(group.rates[place])) for group in groups]
        yield Table([by, *RATE], rows, RATE, rate.kind)


def _runs(by: str, groups: tuple[Group, ...]) -> Iterator[Block]:
    rows = [
        (
            group.name,
            group.runs,
            group.errors,
            group.exhausted,
            group.stalled,
            group.vacuous,
            _clean(group),
            percent(group.share_inside),
        )
        for group in groups
    ]
    headers = [by, "runs", "errors", "exhausted", "stalled", "vacuous", "clean", "tolerated"]
    yield Table(headers, rows, headers[1:], "runs")
    for group in groups:
        if group.errors:
            yield Text(
                f"{group.name}: {group.errors} runs that ended with an error are in no n; nothing is known of them"
            )
        if group.exhausted:
            yield Text(
                f"{group.name}: {group.exhausted} of {group.runs} runs were given up (exhausted) and may have shown "
                "more"
            )
    by_damage = [
        (group.name, group.inside_unclean, group.inside_lossy, group.runs)
        for group in groups
        if group.inside_unclean is not None
    ]
    if by_damage:
        headers = [by, "by unclean ends", "by lossy ends", "runs"]
        yield Table(headers, by_damage, headers[1:], "faults tolerated, if damage is what ends do")
    if any(sum(group.rounds) for group in groups):
        headers = [by, "in one round", "in two", "in more"]
        yield Table(headers, [(group.name, *group.rounds) for group in groups], headers[1:], "truncations")
    warnings = sorted((kind, group.name, runs) for group in groups for kind, runs in group.warnings.items())
    if warnings:
        headers = ["early warning", by, "runs"]
        yield Table(headers, warnings, headers[2:], "early warnings, which are no violations")


def _clean(group: Group) -> str:
    """Runs without any violation; not told if only one kind is compared."""
    known = any(rate.kind == "any" for rate in group.rates)
    return str(group.clean) if known else "-"


def _availability(by: str, groups: tuple[Group, ...]) -> Iterator[Block]:
    levels = [
        (level.measure, group.name, number(level.median), number(level.mean), level.highest)
        for place in range(max(len(group.availability) for group in groups))
        for group in groups
        for level in group.availability[place : place + 1]
    ]
    if levels:
        headers = ["measure of a run", by, "median", "mean", "highest"]
        yield Table(headers, levels, headers[2:], "availability, of which less is better")


def _pair(by: str, pair: Pair) -> Iterator[Block]:
    what = "" if by == "mode" else f"{by} = "
    yield Heading(f"{what}{pair.a} against {pair.b} on {pair.n:,} common seeds")
    yield Text(f"Faults as realised were equal in {percent(pair.share_equal_faults)} of them.")
    # Long names would not fit; the title names the groups in this order.
    first, second = (pair.a, pair.b) if len(pair.a + pair.b) <= NAMES else ("first", "second")
    headers = ["kind", "both", f"only {first}", f"only {second}", "neither", "p"]
    rows = [(kind.kind, kind.both, kind.only_a, kind.only_b, kind.neither, f"{kind.p:.3g}") for kind in pair.kinds]
    yield Table(headers, rows, headers[1:])
    if pair.availability:
        headers = ["mean of a run", first, second, "difference (95 %)"]
        caption = f"means of a run, and their difference: {second} minus {first}"
        yield Table(headers, [*map(difference_cells, pair.availability)], headers[1:], caption)
