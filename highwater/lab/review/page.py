"""A review as a page: first the answer, then each part with the commands that repeat it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from highwater.lab.review.result import (
    BREAKS_UPGRADE,
    COSTS,
    HARMLESS,
    LIVENESS,
    LOSES,
    OFTENER,
    UNANSWERED,
    UNPROVEN,
    UNTESTED,
    WAITS,
    summed,
)
from highwater.lab.review.review import command, word
from reports import starts
from reports.analysis import sentences
from reports.analysis.sentences import LOSSES, MEASURES
from reports.document.blocks import Commands, Document, Heading, Items, Table, Text
from reports.document.markdown import to_markdown
from reports.document.page import to_html
from reports.formatting import number
from reports.versions import version
from scenarios import own_files
from sim.plurals import counted
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from highwater.lab.review.result import Review, SeedCounts, StoryEnd, SweptScenario
    from reports.analysis.compare import AvailabilityDifference
    from reports.document.blocks import Block

MARKDOWN: Final = "review.md"
HTML: Final = "review.html"
OWN_SCENARIOS: Final = ("back.toml", "*-upgrade.toml", "*-downgrade.toml")
"""Files of the upgrades and downgrades that a review tries."""
SHOWN: Final = 12
"""Largest number of test cases that the page lists."""
NAME_MAX: Final = 24
"""Length of a mode's name above which the page, below its title, says `PROPOSAL` instead."""
PROPOSAL: Final = "the proposal"
TESTED: Final = "What was tested, and what was not"
VERDICTS: Final = {
    LOSES: "{mode} breaks its promise where {base} keeps it.",
    BREAKS_UPGRADE: "{mode} keeps its promise, but not while brokers are upgraded to it from {base}, or back.",
    OFTENER: "{mode} breaks its promise on more seeds than {base}, and in no way that {base} does not.",
    UNPROVEN: "Inconclusive: {mode} shows violations that {base} does not, on so few seeds that it may be chance.",
    UNTESTED: "Inconclusive: {mode} and {base} have the same history on each seed, so nothing was tested.",
    COSTS: "{mode} keeps its promise where {base} does, and costs availability.",
    WAITS: "{mode} keeps its promise where {base} does, and leaves a partition waiting for an operator more often.",
    UNANSWERED: "{mode} keeps its promise where {base} does, and does not answer clients in scripted scenarios.",
    HARMLESS: "No violation of {mode} was found that {base} does not have, and no loss of availability.",
}


def label(review: Review) -> str:
    """The mode's name on the page."""
    return review.mode.name if len(review.mode.name) <= NAME_MAX else PROPOSAL


def check_files(option: str, folder: Path) -> None:
    """Check before anything runs that the pages can be written; create the folder.

    Raises:
        InputError: other files have their names.
    """
    with own_files.os_errors(folder):
        own_files.make_folder(folder)
    starts.check_file(option, folder / MARKDOWN, starts.REVIEW)
    starts.check_file(option, folder / HTML, starts.REVIEW_PAGE)
    for pattern in OWN_SCENARIOS:
        for path in folder.glob(pattern):
            own_files.check_own(path, starts.REVIEWED)


def write(review: Review, folder: Path) -> None:
    """Write the page as Markdown and as HTML."""
    page = document(review)
    own_files.write(folder / MARKDOWN, to_markdown(page), starts.REVIEW)
    own_files.write(folder / HTML, to_html(page), starts.REVIEW_PAGE)


def document(review: Review) -> Document:
    """The page."""
    return Document(
        f"Review of {review.mode.name} against {review.base.name}", list(blocks(review)), "Highwater review"
    )


def blocks(review: Review) -> Iterator[Block]:
    """The parts of the page, in order."""
    if review.claim:
        yield Text(review.claim, "quoted")
    yield Items(list(answer(review)))
    yield from _rules(review)
    yield from _claim(review)
    yield from _scripted(review)
    yield from _conformance(review)
    yield from _violations(review)
    yield from _losses(review)
    yield from _upgrades(review)
    yield from _liveness(review)
    yield from _availability(review)
    yield from _warnings(review)
    yield from _tested(review)
    yield from _repeats(review)


def answer(review: Review) -> Iterator[str]:
    """The answer in sentences, the most serious first."""
    mode, base = label(review), review.base.name
    yield _capitalised(VERDICTS[review.verdict].format(mode=mode, base=base))
    if review.claim_kind:
        yield _claim_holds(review)
    if review.lost:
        yield (
            f"Inside the promise, in random scenarios: {_kinds_on_seeds(review.lost)} of {review.seeds:,} with {mode}, "
            f"and not with {base}."
        )
    for kind, counts in review.oftener.items():
        yield _more_often(review, kind, counts)
    if review.broken:
        seeds = sum(scenario.pair.n for scenario in review.moved)
        yield (
            f"While brokers are upgraded or downgraded one after the other: {_kinds_on_seeds(review.broken)} of "
            f"{seeds:,}, and not with {base} alone."
        )
    if worse := [story.scenario for story in review.stories if story.worse]:
        yield f"Scripted scenarios that end worse: {sentences.joined(worse, 'and')}."
    if better := [story.scenario for story in review.stories if story.better]:
        yield f"Scripted scenarios that end better: {sentences.joined(better, 'and')}."
    yield from _other_ends(review)
    for kind, counts in review.unproven.items():
        yield _unproven(review, kind, counts)
    if not review.is_worse and not review.unproven:
        bound = f" (with 95 % confidence, fewer than one in {review.seeds // 3:,})" if review.seeds >= 30 else ""
        yield f"On {review.seeds:,} seeds of random scenarios, no violation inside the promise is new{bound}."
    if review.saved:
        saved = _kinds_on_seeds(review.saved)
        yield f"Inside the promise, in random scenarios: {saved} with {base}, and not with {mode}."
    yield from _availability_costs(review)
    yield from _extent(review)
    if not isinstance(review.conformance, str) and review.conformance.changes:
        yield f"Results of Kafka's own tests, and recorded answers, that would change: {review.conformance.changes}."


def _other_ends(review: Review) -> Iterator[str]:
    """Scripted scenarios whose outcomes differ, but not in violations inside the promise."""
    mode, base = label(review), review.base.name
    others = [story for story in review.stories if not (story.worse or story.better)]
    if review.unanswered:
        yield (
            f"Scripted scenarios in which a write or read that {base} answers has no answer with {mode}: "
            f"{_names(review.unanswered)}."
        )
    if stopped := [story for story in others if story.lacks_step and not story.unanswered]:
        gone = [story for story in stopped if story.gone]
        rest = (
            f"; {base} breaks its promise in {len(gone)} of them: that {mode} prevents this is not shown"
            if gone
            else ""
        )
        yield (
            f"{counted(len(stopped), 'scripted scenario does', 'scripted scenarios do')} not play to the end with "
            f"{mode} (see the table){rest}."
        )
    fine = [story for story in others if story.base == "ok"]
    if outside := [story for story in fine if not story.lacks_step]:
        yield f"Scripted scenarios in which only {mode} violates something, outside its promise: {_names(outside)}."


def _names(stories: Iterable[StoryEnd]) -> str:
    return sentences.joined([story.scenario for story in stories], "and")


def _extent(review: Review) -> Iterator[str]:
    """How often the proposal had an effect, and what was not tried."""
    changed = sum(scenario.changed for scenario in review.swept)
    touched = sum(scenario.touched for scenario in review.swept)
    yield (
        f"In random scenarios, the changed rules would have decided otherwise on {touched:,} of {review.seeds:,} "
        f"seeds, and changed what happened on {changed:,}; the other runs are identical."
    )
    if review.skipped:
        yield f"Not everything was tried: see {TESTED!r}."
    if review.claim and not review.claim_kind:
        yield "The claim was not tested: --claim-kind names the kind of violation that would contradict it."


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(PROPOSAL) else text


def _kinds_on_seeds(found: Mapping[str, SeedCounts]) -> str:
    return sentences.joined([f"{kind} on {counted(counts.only_mode, 'seed')}" for kind, counts in found.items()], "and")


def _claim_holds(review: Review) -> str:
    kind, mode = review.claim_kind, label(review)
    runs = summed(scenario.claim for scenario in review.swept)
    where = [f"{runs.only_mode:,} seeds of random scenarios"] if runs.only_mode else []
    where += [f"scripted scenario {name}" for name in review.claim_stories]
    if where:
        return f"The claim does not hold: {mode} shows {kind} where {review.base.name} does not ({', '.join(where)})."
    shown = runs.both + runs.only_base
    rest = f", except where {review.base.name} does so, too" if shown else ""
    return f"No run of {review.seeds:,} contradicts the claim: none with {mode} shows {kind}{rest}."


def _more_often(review: Review, kind: str, one: SeedCounts) -> str:
    assert one.known is not None
    repair, prevented = one.known
    base = review.base.name
    return (
        f"Inside the promise, {kind} on {counted(one.only_mode, 'seed')} only with {label(review)}, "
        f"on {one.only_base} only with {base} and on {one.both} with both. The cause is in {base} as well: {repair} "
        f"prevents it with {base}, and on {prevented} of these {one.only_mode} seeds."
    )


def _unproven(review: Review, kind: str, one: SeedCounts) -> str:
    text = f"{kind} on {counted(one.only_mode, 'seed')} only with {label(review)}"
    if one.again is None:
        return f"{text}."
    base, mode, n = one.again
    return (
        f"{text}. Of {n} runs with the faults of the first of them and other latencies, {mode} show it with "
        f"{label(review)}, {base} with {review.base.name}."
    )


def _availability_costs(review: Review) -> Iterator[str]:
    mode = label(review)
    largest: dict[str, tuple[float, str]] = {}
    better = set()
    for scenario in review.swept:
        for cost in scenario.costs:
            what, scale, unit = MEASURES.get(cost.measure, (cost.measure, 1, ""))
            more = review.more(scenario, cost) / scale
            if more < 0:
                better.add(scenario.name)
            elif more > largest.get(scenario.name, (0.0, ""))[0]:
                largest[scenario.name] = more, f"{scenario.name} ({number(more, '+')} {unit} a run: {what})"
    if largest:
        yield f"{mode} costs availability in {sentences.joined([text for _, text in largest.values()], 'and')}."
    if better:
        yield f"{mode} gains availability in {sentences.joined(sorted(better), 'and')}."
    if review.waits.is_sure:
        waits = counted(review.waits.only_mode, "seed")
        yield f"Only with {mode} the partition ends without a leader until an operator acts: on {waits}."
    if not largest and not better:
        rest = " before the end" if review.waits.is_sure else ""
        changed = sum(scenario.changed for scenario in review.swept)
        yield f"No measure of availability{rest} differs beyond chance, on the {counted(changed, 'seed')} that changed."


def _rules(review: Review) -> Iterator[Block]:
    yield Heading("What is proposed")
    yield Text(f"{review.mode.summary}.")
    rows = [
        (name, before, after, re.split(r"(?:; [a-z0-9-]+)?: |[.] ", RULES[name].meaning)[0], RULES[name].source)
        for name, before, after in review.rules
    ]
    yield Table(["rule", review.base.name, label(review), "what it decides", "source"], rows)
    for name, _, after in review.rules:
        if told := RULES[name].meaning.partition(f"; {after}: ")[2]:  # A plug-in's own words.
            yield Text(f"{name}={after}: {told}")
    yield Commands([command("modes", "show", word(review.mode))])


def _claim(review: Review) -> Iterator[Block]:
    if not review.claim_kind:
        return
    yield Heading("The claim")
    yield Text(f"{review.claim_kind} would contradict it. {_claim_holds(review)}")
    rows = [
        (scenario.name, scenario.pair.n, scenario.claim.both, scenario.claim.only_base, scenario.claim.only_mode)
        for scenario in review.swept
        if scenario.claim.both or scenario.claim.only_base or scenario.claim.only_mode
    ]
    if rows:
        yield Table(["scenario", "seeds", "both", f"only {review.base.name}", f"only {label(review)}"], rows)
    lines = [scenario.claim.replay for scenario in review.swept if scenario.claim.replay]
    lines += [command("run", name, "--mode", word(review.mode)) for name in review.claim_stories]
    if lines:
        yield Commands(lines)


def _scripted(review: Review) -> Iterator[Block]:
    yield Heading("Scripted scenarios with another outcome")
    others = review.story_count - len(review.stories)
    if not review.stories:
        yield Text(f"None of {review.story_count}: each shows the same violations in both modes, or none.")
        return
    rows = [(story.scenario, story.base, story.mode) for story in review.stories]
    yield Table(["scenario", review.base.name, label(review)], rows)
    yield Text(
        f"{others} others have the same outcome in both modes. If a step did not occur, the script does not fit the "
        "changed protocol: what the run violates counts all the same. Each command shows both runs side by side, and "
        "marks the first step that differs."
    )
    yield Commands([story.command for story in review.stories])


def _conformance(review: Review) -> Iterator[Block]:
    yield Heading("Kafka's own tests, and answers of its classes")
    found = review.conformance
    if isinstance(found, str):
        yield Text(f"Not tried: {found}.")
        return
    answers = sum(one.run for one in found.answers)
    if not found.case_count + answers:
        yield Text(
            "None says anything about this change: each is of a release whose rules differ from those of "
            f"{review.base.name} where the modes differ."
        )
        return
    releases = sentences.joined(sorted({one.release for one in found.answers}), "and")
    yield Text(
        f"{found.case_count:,} cases of Kafka's unit tests and {answers:,} recorded answers of its classes (of "
        f"{releases}) say something about this change, because the rules of their release agree with "
        f"{review.base.name} where the modes differ. With {label(review)}, {len(found.cases)} of the cases and "
        f"{found.changes - len(found.cases)} of the answers are different."
    )
    if found.cases:
        rows = [(case.source or "-", case.id, case.told) for case in found.cases[:SHOWN]]
        yield Table(["test", "case", f"with {label(review)}"], rows)
        if len(found.cases) > SHOWN:
            yield Text(f"And {len(found.cases) - SHOWN} more.")
    changed = [one for one in found.answers if one.changed]
    if changed:
        counts = [(one.subject, one.release, one.run, one.changed) for one in changed]
        yield Table(["class", "release", "recorded", "changed"], counts)
        first = min(changed, key=lambda one: len(one.case))
        yield Text(
            f"The shortest one ({first.subject}, {first.release}): the operations, the state that Kafka has after the "
            f"last one, and that of {label(review)}. tests/verification/oracle explains the fields."
        )
        yield Commands([first.case, first.kafka, first.mode], "json")


def _violations(review: Review) -> Iterator[Block]:
    yield Heading("Violations inside the promise, in random scenarios")
    rows = [
        (scenario.name, kind, scenario.pair.n, counts.both, counts.only_base, counts.only_mode)
        for scenario in review.swept
        for kind, counts in scenario.inside.items()
        if counts.only_base or counts.only_mode
    ]
    if not rows:
        yield Text("Both modes show the same violations on the same seeds, or none.")
        return
    yield Table(["scenario", "kind", "seeds", "both", f"only {review.base.name}", f"only {label(review)}"], rows)
    yield Text(
        "A rule that changes when messages arrive moves some violations to other seeds. A kind counts if the base "
        "never shows it, or if the last two columns differ so much that chance would do it in fewer than one of a "
        "hundred cases."
    )
    every = [counts for scenario in review.swept for counts in scenario.inside.values() if counts.only_mode]
    lines = [line for counts in every for line in (counts.replay, counts.explain) if line]
    if lines:
        yield Text(f"The first seed of each kind that only {label(review)} shows, replayed and explained:")
        yield Commands([*dict.fromkeys(lines)])


def _losses(review: Review) -> Iterator[Block]:
    yield Heading("Lost records, inside and outside the promise")
    mode, base = label(review), review.base.name
    rows = []
    for scenario in review.swept:
        for kind in scenario.pair.kinds:
            if kind.kind in LOSSES and (kind.only_a or kind.only_b):
                of = {scenario.pair.a: kind.only_a, scenario.pair.b: kind.only_b}
                only = of[base], of[review.mode.name]
                rows.append((scenario.name, kind.kind, scenario.pair.n, kind.both, *only, f"{kind.p:.2g}"))
    if not rows:
        yield Text("On each seed, both modes lose records or neither does.")
        return
    yield Table(["scenario", "kind", "seeds", "both", f"only {base}", f"only {mode}", "p"], rows)
    yield Text(
        "A p below 0.05 in one of many rows may be chance. In scenarios that are not listed, both modes lose records "
        "on the same seeds."
    )
    for scenario in review.swept:
        for example in scenario.answer.examples:
            side = mode if example.side == review.mode.name else example.side
            yield Text(f"{scenario.name}: the smallest seed on which only {side} loses records is {example.seed}:")
            yield Commands([line for line in (example.replay, example.show) if line])


def _upgrades(review: Review) -> Iterator[Block]:
    if not review.moved:
        return
    yield Heading("Upgrade and downgrade, with both versions running")
    yield Text(
        "Brokers begin in one mode and, while faults strike, restart one by one in the other. A violation counts if it "
        f"is inside the promise, and a cluster of {review.base.name} alone does not show it on the same seed."
    )
    rows = [
        (
            scenario.name,
            scenario.pair.n,
            scenario.touched,
            ", ".join(f"{kind}: {counts.only_mode}" for kind, counts in scenario.inside.items() if counts.only_mode)
            or "none",
            ", ".join(f"{kind}: {counts.only_base}" for kind, counts in scenario.inside.items() if counts.only_base)
            or "none",
        )
        for scenario in review.moved
    ]
    yield Table(
        ["scenario", "seeds", "rules had an effect on", "only with both versions", f"only {review.base.name}"], rows
    )
    if not any(scenario.touched for scenario in review.moved):
        yield Text("The rules had no effect in any of these runs: mixed versions were not tested.")
    lines = [counts.replay for scenario in review.moved for counts in scenario.inside.values() if counts.replay]
    if lines:
        yield Commands([*dict.fromkeys(lines)])


def _liveness(review: Review) -> Iterator[Block]:
    yield Heading("Liveness")
    mode, base = review.mode.name, review.base.name
    rows: list[tuple[object, ...]] = []
    for scenario in review.swept:
        sides = scenario.groups[base], scenario.groups[mode]
        if any(side.stalled for side in sides):
            rows.append((scenario.name, "stalled (an operator has to act)", *(side.stalled for side in sides)))
        for kind in LIVENESS:
            counts = [sum(rate.k for rate in side.rates if rate.kind == kind) for side in sides]
            if any(counts):
                rows.append((scenario.name, kind, *counts))
    if rows:
        yield Table(["scenario", "outcome", f"runs of {base}", f"of {label(review)}"], rows)
    else:
        yield Text("In both modes, every run accepted writes again after its faults were undone.")


def _availability(review: Review) -> Iterator[Block]:
    yield Heading("Availability")
    rows = [_cost(review, scenario, cost) for scenario in review.swept for cost in scenario.costs]
    if rows:
        yield Table(["scenario", "mean over runs", f"{label(review)} - {review.base.name}, 95 % interval"], rows)
    else:
        yield Text(
            "No mean difference exceeds 1.8 times its 95 % interval; among so many, a smaller one may be chance."
        )


def _cost(review: Review, one: SweptScenario, cost: AvailabilityDifference) -> tuple[str, str, str]:
    what, scale, unit = MEASURES.get(cost.measure, (cost.measure, 1, ""))
    assert cost.low is not None
    assert cost.high is not None
    more = review.more(one, cost) / scale
    half = (cost.high - cost.low) / 2 / scale
    return one.name, f"{what}, {unit}", f"{number(more, '+')} (+- {number(half)})"


def _warnings(review: Review) -> Iterator[Block]:
    yield Heading("Early warnings")
    rows = []
    for scenario in review.swept:
        counts = [scenario.groups[mode.name].warnings for mode in (review.base, review.mode)]
        for kind in sorted({*counts[0], *counts[1]}):
            pair = counts[0].get(kind, 0), counts[1].get(kind, 0)
            if pair[0] != pair[1]:
                rows.append((scenario.name, kind, *pair))
    if rows:
        yield Table(["scenario", "early warning", f"runs of {review.base.name}", f"of {label(review)}"], rows)
    else:
        yield Text("Both modes raise the same early warnings in the same number of runs.")


def _tested(review: Review) -> Iterator[Block]:
    yield Heading(TESTED)
    names = [name for name, *_ in review.rules]
    every = [*review.swept, *review.moved]
    rows = [(scenario.name, scenario.pair.n, *(scenario.effects[name] for name in names)) for scenario in every]
    yield Text("Runs in which the rule decided otherwise than the base would have:")
    yield Table(["scenario", f"runs of {review.base.name}", *names], rows)
    never = [name for name in names if not any(scenario.effects[name] for scenario in every)]
    if never:
        rest = "only the scripted scenarios above test them" if review.stories else "nothing here tests them"
        yield Text(f"Rules without an effect in random scenarios: {', '.join(never)}; {rest}.")
    if idle := _idle(every):
        yield Text(
            f"Checks that never met a case in which their property could fail: {', '.join(idle)}. That they found "
            "nothing says nothing about this proposal."
        )
    else:
        yield Text("Every check met a case in which its property could fail.")
    if review.skipped:
        yield Items(review.skipped)
    yield Text(
        "Not part of a review: real brokers (highwater confirm plays a scripted scenario on them), and what Highwater "
        "does not model. A clean review bounds how often violations occur under random faults, and proves nothing."
    )


def _idle(swept: Iterable[SweptScenario]) -> list[str]:
    counts: dict[str, int] = {}
    for scenario in swept:
        for check, runs in scenario.checks.items():
            counts[check] = counts.get(check, 0) + runs
    return sorted(check for check, runs in counts.items() if not runs)


def _repeats(review: Review) -> Iterator[Block]:
    yield Heading("To repeat the sweeps")
    yield Commands([scenario.command for scenario in [*review.swept, *review.moved]])
    yield Text("highwater compare, triage and explain read the folders of these sweeps.")
    yield Text(f"Highwater {version()}. The review took {review.seconds:.0f} s.")
