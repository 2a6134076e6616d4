"""``highwater explain``: a failed run, made small, told in sentences, with what would have kept the data."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reports import exits, options
from reports.commands.shrink import progress
from reports.console import pairs, percent, seconds
from reports.evidence import folder as evidence
from reports.options import Command, evidence_options, failed_run_options
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reports.console import Ui
    from reports.evidence.telling import Sentence
    from scenarios.shrinking.necessary import Necessary, Sent
    from scenarios.shrinking.no_return import Curve, Share
    from scenarios.shrinking.remedies import Remedy
    from sim.config import Value

SCHEMA_VERSION: Final = 1
NECESSARY_MOST: Final = 20
"""Messages that are shown, the last ones, and"""
SHOWN_TIMES: Final = 4
"""times of alternatives."""


@click.command("explain", cls=Command)
@failed_run_options("Explain")
@click.option("--kind", metavar="KIND", help="The violation; the first inside the promise when not given.")
@click.option("--budget", metavar="TIME", default="60s", show_default=True, help="For all; half for shrinking.")
@click.option("--all", "everything", is_flag=True, help="All sentences; history.txt holds what led to nothing, too.")
@evidence_options("shrunk")
@click.pass_obj
def command(
    ui: Ui,
    source: str | None,
    plan: Path | None,
    seed: str | None,
    mode: str | None,
    scenario: str | None,
    kind: str | None,
    budget: str,
    everything: bool,
    rules: dict[str, str],
    settings: dict[str, Value],
    strict: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Say how a failed run came about: one seed of a sweep in DIR, of SCENARIO, or a recorded run (--plan).

    It is shrunk first, as by 'highwater shrink', and written to the same folder. Then it is told in sentences, with the
    line of trace.jsonl that each is about, and one rule, setting or newer mode at a time is tried on the same plan.
    """
    from reports.drawing.explained import explain
    from reports.drawing.past import past
    from reports.evidence import small, telling
    from reports.evidence.waiting import waits_for
    from scenarios.shrinking.keeping import Trials

    begin, limit = time.monotonic(), options.duration("--budget", budget)
    origin, chosen = small.find(source, plan, seed, mode, scenario, rules, settings, strict=strict)
    for warning in origin.warnings:
        ui.warn(f"highwater: {warning}")
    place = origin.place(output, origin.seed, chosen.name, small.PART)
    found, took = small.shrunk(small.failed_run(origin, chosen), kind, limit / 2, progress(ui))
    evidence.prepare(place)
    case = small.as_found(found, place.path / evidence.PLAN)
    trials = Trials(lambda: time.monotonic() - begin > limit)
    explained = explain(case, found.symptom, trials, None if everything else telling.SENTENCES)
    result = explained.observed.result
    evidence.write(place, case.scenario, result, past(explained.observed), everything=everything)
    if as_json:
        ui.json(
            {
                "schema_version": SCHEMA_VERSION,
                **small.as_json(found),
                "waits_for": waits_for(result),
                "story": [asdict(sentence) for sentence in explained.story],
                "necessary": _necessary_as_json(explained.necessary),
                "no_return": _curve_as_json(explained.curve),
                "remedies": [asdict(remedy) for remedy in explained.remedies],
                "folder": str(place.path),
                "exit_code": exits.EXPECTED,
            }
        )
        return exits.EXPECTED
    ui.line(f"{case.scenario.name}, mode {chosen.name}, seed {origin.seed}: {small.kept(found)}", "bold")
    ui.line(small.said(found, took))
    for sentence in waits_for(result):
        ui.line(sentence)
    _show_story(ui, explained.story)
    _show_necessary(ui, explained.necessary, whole=found.whole)
    _show_curve(ui, explained.curve, found.symptom.kind)
    _show_remedies(ui, explained.remedies)
    ui.line()
    ui.line(f"Replay: {result.row['replay']}")
    ui.line(f"written to {place.path}")
    return exits.EXPECTED


def _show_story(ui: Ui, story: list[Sentence]) -> None:
    ui.line()
    ui.line("Story", style="bold")
    rows = [(seconds(sentence.at_us), sentence.line or None, sentence.text) for sentence in story]
    ui.table(["at", "line", "what happened"], rows, numbers=["line"])


def _show_necessary(ui: Ui, takes: Necessary, *, whole: bool) -> None:
    """Faults, batches and messages in order of time, which is that of causes, and how far they are enough."""
    ui.line()
    ui.line("Necessary" if whole else "Left when the budget was used up", style="bold")
    rows = sorted([*_parts(takes), *_messages(takes.messages)], key=lambda row: row[0])
    shown = rows if len(rows) <= NECESSARY_MOST else [*_parts(takes), *_messages(takes.messages[-NECESSARY_MOST:])]
    shown.sort(key=lambda row: row[0])
    ui.table(["at", "what", ""], [(seconds(at_us), what, more) for at_us, what, more in shown])
    if len(shown) < len(rows):
        ui.line(f"{len(rows) - len(shown)} earlier messages are necessary, too: --json names them")
    for line in _said(takes):
        ui.line(line)


def _said(takes: Necessary) -> Iterator[str]:
    """What was tried of messages, and what came of it."""
    for one in takes.alternatives:
        what, more = _message(one.messages[0])
        times = ", ".join(seconds(sent.arrives_us) for sent in one.messages[:SHOWN_TIMES])
        rest = ", ..." if len(one.messages) > SHOWN_TIMES else ""
        which = f"{len(one.messages)} {what}, {more.partition(',')[0]} ({times}{rest})"
        yield f"Alternatives: any of {which} will do; without all of them the violation is gone"
    if takes.asked < takes.of:
        yield f"{takes.asked} of {takes.of} messages were left out, each by itself, nearest to the point of no return"
    if takes.tries:
        kept = (
            f"With this order kept and other latencies of all messages it stays in {takes.stays} of {takes.tries} runs"
        )
        yield f"{kept}: {'that is enough' if takes.is_enough else 'it has other causes, too'}"
    if not takes.whole:
        yield "The budget is used up: not all messages were tried"


def _parts(takes: Necessary) -> Iterator[tuple[int, str, str]]:
    for fault, goes in takes.faults:
        trigger = "" if fault.trigger is None else f" waits for {fault.trigger.moment}"
        fields: dict[str, Any] = {"targets": fault.targets, "lasts_us": None if fault.lasts_us < 0 else fault.lasts_us}
        yield fault.at_us, fault.kind, pairs(fields) + trigger + _but(goes=goes)
    for (first_id, records, acks, due_us), goes in takes.sends:
        batch = {"record": first_id, "records": records, "acks": "all" if acks == -1 else acks}
        yield due_us, "batch", pairs(batch) + _but(goes=goes)


def _but(*, goes: bool) -> str:
    return "" if goes else " (without it the violation stays, with another cause or outside the promise)"


def _messages(sent: Iterable[Sent]) -> Iterator[tuple[int, str, str]]:
    for one in sent:
        yield one.arrives_us, *_message(one)


def _message(sent: Sent) -> tuple[str, str]:
    """What it is called; from whom to whom, and what it says."""
    from reports.evidence import messages

    way = f"{messages.node(sent.name.source)} -> {messages.node(sent.name.target)}"
    more = pairs(messages.about(sent.message))
    return messages.name_of(sent.handler, sent.message), f"{way}, {more}" if more else way


def _necessary_as_json(takes: Necessary) -> dict[str, Any]:
    return {
        "faults": [{**asdict(fault), "gone_without": goes} for fault, goes in takes.faults],
        "batches": [
            {"first_id": first_id, "records": records, "acks": acks, "due_us": due_us, "gone_without": goes}
            for (first_id, records, acks, due_us), goes in takes.sends
        ],
        "messages": [_sent_as_json(sent) for sent in takes.messages],
        "alternatives": [[_sent_as_json(sent) for sent in one.messages] for one in takes.alternatives],
        "asked": takes.asked,
        "of": takes.of,
        "stays": takes.stays,
        "tries": takes.tries,
        "is_enough": takes.is_enough,
        "whole": takes.whole,
    }


def _sent_as_json(sent: Sent) -> dict[str, Any]:
    from reports.evidence import messages

    return {
        "what": messages.name_of(sent.handler, sent.message),
        "source": sent.name.source,
        "target": sent.name.target,
        "sent_us": sent.sent_us,
        "arrives_us": sent.arrives_us,
        "about": messages.about(sent.message),
    }


def _curve_as_json(shares: Curve) -> dict[str, Any]:
    """Times are -1 where nothing was as in the run."""
    return {
        "shares": [{**asdict(share), "interval": _interval(share)} for share in shares.shares],
        "step_us": None if shares.step is None else [share.after_us for share in shares.step],
        "whole": shares.whole,
    }


def _show_curve(ui: Ui, shares: Curve, kind: str) -> None:
    ui.line()
    ui.line("Point of no return", style="bold")
    if shares.step is not None:
        ui.line(_step(shares.step, kind))
    elif shares.whole:
        ui.line(f"there is none: {kind} becomes more likely little by little, or was certain from the beginning on")
    if not shares.whole:
        ui.line("The budget is used up: fewer continuations than usual, and perhaps not at the times that matter")
    rows = [(_when(share), percent(share.rate), _bounds(share), share.runs) for share in shares.shares]
    if rows:
        ui.table(["as it was until", "violates", "95 %", "continuations"], rows, numbers=["violates", "continuations"])


def _step(ends: tuple[Share, Share], kind: str) -> str:
    """The step in one sentence."""
    sooner, later = ends
    return (
        f"{seconds(later.after_us)}: continued under other latencies and without later faults, {later.violating} of "
        f"{later.runs} runs come to {kind}; continued from {_when(sooner)} on, {sooner.violating} of {sooner.runs}."
    )


def _when(share: Share) -> str:
    return "the beginning" if share.after_us < 0 else seconds(share.after_us)


def _interval(share: Share) -> tuple[float, float] | None:
    """95 % for a share; None where scipy is missing."""
    from reports.analysis.statistics import interval

    try:
        return interval(share.violating, share.runs)
    except InputError:
        return None


def _bounds(share: Share) -> str:
    found = _interval(share)
    return "" if found is None else f"{percent(found[0])} to {percent(found[1])}"


def _show_remedies(ui: Ui, tried: list[Remedy]) -> None:
    ui.line()
    ui.line("What would have kept it, each by itself, under the same plan", style="bold")
    kept = [(one.what, one.change) for one in tried if one.keeps]
    if kept:
        ui.table(["what", "change"], kept)
    else:
        ui.line("nothing that was tried")
    others = [one.change for one in tried if not one.keeps and one.decides]
    idle = sum(not one.keeps and not one.decides for one in tried)
    if others:
        ui.line(f"Would not have helped: {', '.join(others)}")
    if idle:
        ui.line(f"{idle} more decide nothing here")
