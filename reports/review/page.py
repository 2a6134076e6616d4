"""A review as a page: the answer first, then each part with the commands that repeat it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from reports.analysis import sentences
from reports.analysis.sentences import LOSSES, MEASURES
from reports.formatting import number, share
from reports.review.document import Block, Commands, Heading, Items, Table, Text
from reports.review.review import LIVENESS
from sim.plurals import counted
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reports.analysis.compare import Difference
    from reports.review.review import Review, Swept
    from sim.protocol.modes import Mode

CONFORMANCE: Final = (
    "Cases of Kafka's unit tests and recorded vectors are in the source tree, not in the installed package, and run "
    "with the rules of their releases. In a checkout, put the changed rules into the release's mode in "
    "sim/protocol/modes.py; each case that fails then is one that the proposal changes."
)


def title(review: Review) -> str:
    """The title."""
    return f"Review of {review.mode.name} against {review.base.name}"


def blocks(review: Review) -> Iterator[Block]:
    """The page."""
    if review.claim:
        yield Text(review.claim, quoted=True)
    yield Items(list(answer(review)))
    yield from _rules(review)
    yield from _stories(review)
    yield from _losses(review)
    yield from _moved(review)
    yield from _liveness(review)
    yield from _availability(review)
    yield from _warnings(review)
    yield from _effects(review)
    yield Heading("Conformance with Kafka's own tests")
    yield Text(CONFORMANCE)
    yield Commands([".venv/bin/python -m pytest -q tests/verification/conformance"])
    if review.skipped:
        yield Heading("What was not done")
        yield Items(review.skipped)


def answer(review: Review) -> Iterator[str]:
    """The answer in sentences, the most serious first."""
    mode, base = review.mode.name, review.base.name
    seeds = sum(one.pair.n for one in review.swept)
    if review.lost:
        told = sentences.joined([f"{kind} on {counted(n, 'seed')}" for kind, n in review.lost.items()], "and")
        yield f"{mode} breaks its promise where {base} does not: {told}, of {seeds:,} in random scenarios."
    if review.broken:
        told = sentences.joined([f"{kind} on {counted(n, 'seed')}" for kind, n in review.broken.items()], "and")
        yield f"A rolling upgrade or downgrade breaks the promise where {base} alone does not: {told}."
    if worse := [story.scenario for story in review.stories if story.worse]:
        yield f"Scripted scenarios that end worse: {sentences.joined(worse, 'and')}."
    if better := [story.scenario for story in review.stories if story.better]:
        yield f"Scripted scenarios that end better: {sentences.joined(better, 'and')}."
    if not review.is_worse:
        bound = f" (with 95 % confidence, fewer than one in {seeds // 3:,})" if seeds >= 30 else ""
        yield f"No violation inside the promise is new, on {seeds:,} seeds of random scenarios{bound}."
    if saved := _only_base(review):
        told = sentences.joined([f"{kind} on {counted(n, 'seed')}" for kind, n in saved.items()], "and")
        yield f"{base} breaks its promise where {mode} does not: {told}."
    costs = [(one, cost) for one in review.swept for cost in one.costs]
    if costs:
        worse_in = sorted({one.name for one, cost in costs if _more(one, cost, review.mode) > 0})
        better_in = sorted({one.name for one, cost in costs if _more(one, cost, review.mode) < 0})
        if worse_in:
            yield f"{mode} costs availability in {sentences.joined(worse_in, 'and')}."
        if better_in:
            yield f"{mode} gains availability in {sentences.joined(better_in, 'and')}."
    else:
        yield "Availability does not differ beyond chance."
    touched = sum(one.touched for one in review.swept)
    yield (
        f"The rules that differ had an effect in {share(touched, seeds)} of these runs; in all others both modes have "
        "the same history."
    )


def _only_base(review: Review) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in review.swept:
        for kind, n in one.only_base.items():
            found[kind] = found.get(kind, 0) + n
    return dict(sorted(found.items()))


def _more(one: Swept, cost: Difference, mode: Mode) -> float:
    """By how much a measure is higher in the mode."""
    return -cost.mean if one.pair.a != mode.name else cost.mean


def _word(mode: Mode) -> str:
    return mode.source or mode.name


def _rules(review: Review) -> Iterator[Block]:
    yield Heading("Rules that differ")
    rows = [
        (name, before, after, RULES[name].meaning.split(": ")[0].split(". ")[0], RULES[name].source)
        for name, before, after in review.rules
    ]
    yield Table(["rule", review.base.name, review.mode.name, "what it decides", "source"], rows)
    yield Commands([shlex.join(["highwater", "modes", "show", _word(review.mode)])])


def _stories(review: Review) -> Iterator[Block]:
    yield Heading("Scripted scenarios that end otherwise")
    others = review.story_count - len(review.stories)
    if not review.stories:
        yield Text(f"None of {review.story_count}: each violates the same in both modes, or nothing.")
        return
    rows = [(one.scenario, one.base, one.mode) for one in review.stories]
    yield Table(["scenario", review.base.name, review.mode.name], rows)
    yield Text(
        f"{others} others end alike. A step that did not occur means that the script does not fit the changed protocol."
    )
    yield Commands([line for one in review.stories for line in one.commands])


def _losses(review: Review) -> Iterator[Block]:
    yield Heading("Losses on the same seeds of random scenarios")
    mode, base = review.mode.name, review.base.name
    rows = []
    for one in review.swept:
        for kind in one.pair.kinds:
            if kind.kind in LOSSES and (kind.both or kind.only_a or kind.only_b):
                of = {one.pair.a: kind.only_a, one.pair.b: kind.only_b}
                rows.append((one.name, kind.kind, one.pair.n, kind.both, of[base], of[mode], f"{kind.p:.2g}"))
    if rows:
        yield Table(["scenario", "kind", "seeds", "both", f"only {base}", f"only {mode}", "p"], rows)
        yield Text("Inside and outside the promise together: a p below 0.05 in one of many rows may be chance.")
    else:
        yield Text("No run lost a record in either mode.")
    inside = [
        (one.name, kind, one.only_base.get(kind, 0), one.only_mode.get(kind, 0))
        for one in review.swept
        for kind in sorted({*one.only_base, *one.only_mode})
    ]
    if inside:
        yield Text("Violations inside the promise, on seeds on which only one mode has them:")
        yield Table(["scenario", "kind", f"only {base}", f"only {mode}"], inside)
    for one in review.swept:
        for example in one.answer.examples:
            yield Text(f"{one.name}: the smallest seed on which only {example.side} loses records is {example.seed}:")
            yield Commands([line for line in (example.replay, example.show) if line])
    yield Text("To repeat the sweeps:")
    yield Commands([line for one in review.swept for line in one.commands])


def _moved(review: Review) -> Iterator[Block]:
    if not review.moved:
        return
    yield Heading("Upgrade and downgrade, with both versions running")
    yield Text(
        "Brokers begin in one mode and restart, one after the other, in the other, among faults. Only violations "
        "inside the promise count "
        f"that {review.base.name} alone does not have on this seed."
    )
    rows = [
        (one.name, one.pair.n, ", ".join(f"{kind}: {n}" for kind, n in sorted(one.only_mode.items())) or "none")
        for one in review.moved
    ]
    yield Table(["scenario", "seeds", "new violations inside the promise"], rows)
    yield Commands([line for one in review.moved for line in one.commands])


def _liveness(review: Review) -> Iterator[Block]:
    yield Heading("Liveness")
    mode, base = review.mode.name, review.base.name
    rows: list[tuple[object, ...]] = []
    for one in review.swept:
        sides = one.groups[base], one.groups[mode]
        if any(side.stalled for side in sides):
            rows.append((one.name, "stalled (waits for an operator)", *(side.stalled for side in sides)))
        for kind in LIVENESS:
            counts = [sum(rate.k for rate in side.rates if rate.kind == kind) for side in sides]
            if any(counts):
                rows.append((one.name, kind, *counts))
    if rows:
        yield Table(["scenario", "outcome", f"runs of {base}", f"of {mode}"], rows)
    else:
        yield Text("Every run took writes again after its faults were healed, in both modes.")


def _availability(review: Review) -> Iterator[Block]:
    yield Heading("Availability")
    rows = []
    for one in review.swept:
        for cost in one.costs:
            what, scale, unit = MEASURES.get(cost.measure, (cost.measure, 1, ""))
            assert cost.low is not None
            assert cost.high is not None
            more = _more(one, cost, review.mode) / scale
            half = (cost.high - cost.low) / 2 / scale
            rows.append((one.name, f"{what}, {unit}", f"{number(more, '+')} (+- {number(half)})"))
    if rows:
        yield Table(["scenario", "mean of a run", f"{review.mode.name} - {review.base.name}, 95 % interval"], rows)
    else:
        yield Text("No measure differs by more than 1.8 times its 95 % interval, the bound for so many comparisons.")


def _warnings(review: Review) -> Iterator[Block]:
    yield Heading("Early warnings")
    rows = []
    for one in review.swept:
        counts = [one.groups[mode.name].warnings for mode in (review.base, review.mode)]
        for kind in sorted({*counts[0], *counts[1]}):
            pair = counts[0].get(kind, 0), counts[1].get(kind, 0)
            if pair[0] != pair[1]:
                rows.append((one.name, kind, *pair))
    if rows:
        yield Table(["scenario", "early warning", f"runs of {review.base.name}", f"of {review.mode.name}"], rows)
    else:
        yield Text("Both modes raise the same early warnings in the same number of runs.")


def _effects(review: Review) -> Iterator[Block]:
    yield Heading("Where the rules had an effect")
    names = [name for name, *_ in review.rules]
    rows = [(one.name, one.pair.n, *(one.effects[name] for name in names)) for one in [*review.swept, *review.moved]]
    yield Table(["scenario", f"runs of {review.base.name}", *names], rows)
    never = [name for name in names if not any(one.effects[name] for one in [*review.swept, *review.moved])]
    if never:
        yield Text(f"Never asked where the modes differ: {', '.join(never)}. Nothing here tests these.")
