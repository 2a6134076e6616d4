"""``highwater explain``: a failed run, shrunk, in sentences, with what would have prevented it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from highwater.cli import options
from highwater.cli.commands.shrink import progress
from highwater.cli.options import Command, takes
from highwater.option import Option
from highwater.requests import AsJson, ExplainRequest, Form, evidence_folder
from reports.document.blocks import Heading, Line, Table, Text
from reports.evidence import folder as evidence
from reports.formatting import moment
from scenarios import plugged
from scenarios.shrinking.kafka_code import in_kafka
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from reports.drawing.explanation import RunExplanation
    from reports.evidence.narrative import Sentence
    from reports.evidence.replay import Origin
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.necessity import Necessity
    from scenarios.shrinking.no_return import Curve
    from scenarios.shrinking.prevention import Remedy
    from scenarios.shrinking.shrink import ShrunkCase
    from scenarios.single.result import RunResult
    from sim.protocol.modes import Mode

EXPLAIN_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ExplainRequest):
    """The options of the command."""

    most: Annotated[
        int | None,
        Option(metavar="N", type=click.IntRange(min=1), before="keeps_cluster", help="Most sentences.  [default: 12]"),
    ] = None
    brief: Annotated[bool, Option(before="keeps_cluster", help="Only the story, a line each.")] = False
    everything: Annotated[
        bool, Option("--all", before="keeps_cluster", help="All sentences; history.txt contains all steps.")
    ] = False
    form: Annotated[Form, Option("--format", before="keeps_cluster", help="Text or Markdown.")] = "text"
    output: Annotated[Path | None, evidence_folder("shrunk")] = None
    as_json: AsJson = False


@click.command("explain", cls=Command)
@takes(ExplainOptions)
@click.pass_obj
def command(ui: Ui, asked: ExplainOptions) -> None:
    """Explain a failed run: one seed of a sweep in DIR, of SCENARIO, or a recorded run (PLAN).

    It is shrunk first, as by 'highwater shrink', and written to the same folder. Then it is told in sentences, with the
    line of trace.jsonl that each is about, and one rule, setting or newer mode at a time is tried on the same plan.
    A scripted scenario is told as it is, and tried in the modes of newer releases and with its declared repairs.
    """
    from reports.drawing import explanation_text
    from reports.drawing.causal_past import past
    from reports.drawing.explanation import explain
    from reports.evidence import narrative, shrunk_run
    from reports.evidence.outcome import waits_for
    from reports.evidence.run_document import story_blocks
    from scenarios.shrinking.criterion import Trials

    if asked.everything and asked.most is not None:
        raise InputError("--all and --most exclude each other")
    sentences = None if asked.everything else asked.most or narrative.SENTENCES
    begin, limit = time.monotonic(), asked.budget_s
    origin, chosen = asked.one()
    ui.caution(origin.warnings)
    if not origin.scenario.drawn:
        _tell_script(ui, asked, origin, chosen, sentences)
        return
    place = origin.place(asked.output, origin.seed, chosen.name, shrunk_run.PART)
    evidence.check(place)
    found, took = shrunk_run.shrunk(
        shrunk_run.failed_run(origin, chosen, keeps_cluster=asked.keeps_cluster),
        asked.kind,
        limit / 2,
        progress(ui),
    )
    evidence.prepare(place)
    case = shrunk_run.as_found(found, place.path / evidence.PLAN)
    trials = Trials(lambda: time.monotonic() - begin > limit)
    explained = explain(found, case, trials, sentences)
    result = explained.observed.result
    options.check_shown(case.scenario, result)
    evidence.write(place, case.scenario, result, past(explained.observed), everything=asked.everything)
    if asked.as_json:
        told = {
            **shrunk_run.as_json(found),
            "waits_for": waits_for(result),
            "story": [asdict(sentence) for sentence in explained.story],
            "necessary": explanation_text.necessary_as_json(explained.necessary),
            "no_return": explanation_text.curve_as_json(explained.curve),
            "remedies": [asdict(remedy) for remedy in explained.remedies],
            "folder": str(place.path),
        }
        _json(ui, told)
    elif asked.form == "markdown":
        ui.show(story_blocks(result, explained.story, explained.remedies), asked.form)
    else:
        head = f"{case.scenario.name}, mode {chosen.name}, seed {origin.seed}: {shrunk_run.kept(found)}"
        ui.show([Heading(head), *(_brief(explained.story) if asked.brief else blocks(found, took, explained))])
        if not asked.brief:
            ui.show(_written(result, place.path))
            ui.written(f"written to {place.path}")


def blocks(found: ShrunkCase, took: float, explained: RunExplanation) -> Iterator[Block]:
    """A run that was shrunk, in sentences, with what would have prevented it."""
    from reports.evidence import shrunk_run
    from reports.evidence.outcome import waits_for

    result = explained.observed.result
    yield Line(shrunk_run.summary(found, took))
    if not found.whole:
        yield Line(shrunk_run.unfinished(found))
    yield from map(Line, waits_for(result))
    yield _story(explained.story, result.shown)
    yield from _necessary(explained.necessary, whole=found.whole)
    yield from _curve(explained.curve, found.symptom.kind)
    yield from _remedies(explained.remedies)


def _written(result: RunResult, place: Path) -> Iterator[Block]:
    yield Line("")
    yield Line(f"Replay: {result.row['replay']}")
    yield Line(f"Picture: {plugged.command(['draw', str(place / evidence.PLAN), '--output', 'run.svg'])}")


def _tell_script(ui: Ui, asked: ExplainOptions, origin: Origin, mode: Mode, most: int | None) -> None:
    """Explain a scripted scenario, and which newer modes or declared repairs keep the records that it loses."""
    from reports.evidence.run_document import story_blocks
    from reports.evidence.story import outcome
    from scenarios.shrinking.case import Case

    case = Case(origin.scenario, mode, origin.seed, origin.rules)
    result, story, tried = explain_script(case, asked.kind, most)
    options.check_shown(case.scenario, result)
    if asked.as_json:
        remedies = [asdict(remedy) for remedy in tried or ()]
        _json(ui, {"story": [asdict(sentence) for sentence in story], "remedies": remedies})
    elif asked.form == "markdown":
        ui.show(story_blocks(result, story, tried or ()), asked.form)
    else:
        head = f"{case.scenario.name}, mode {mode.name}: {outcome(result.row)}"
        if asked.brief:
            ui.show([Text(head), *_brief(story)])
            return
        ui.show([Heading(head), *script_blocks(result, story, tried)])


def explain_script(
    case: Case, kind: str | None, most: int | None
) -> tuple[RunResult, list[Sentence], list[Remedy] | None]:
    """Run a scripted scenario: its result, its story, and the newer modes and declared repairs that were tried; None
    if it does not fail.
    """
    from reports.drawing.explanation import told
    from reports.drawing.observed_run import observe
    from scenarios.shrinking.criterion import symptom
    from scenarios.shrinking.prevention import declared_repairs, newer_modes

    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
    row = observed.result.row
    tried = None
    if row["violations"] or kind is not None:
        found = symptom(row, kind)
        tried = [*newer_modes(case, found), *declared_repairs(case, found)]
    return observed.result, told(observed, kind or "", most), tried


def script_blocks(result: RunResult, story: Iterable[Sentence], tried: Sequence[Remedy] | None) -> Iterator[Block]:
    """A scripted scenario in sentences, with what prevents its violation; see `explain_script`."""
    yield _story(story, result.shown)
    if result.row["error"]:
        yield Text(result.row["error"].splitlines()[0])
    if tried is not None:
        yield Line(_prevented(tried))


def _prevented(tried: Iterable[Remedy]) -> str:
    """The newer releases' modes that prevent a violation; if there are none, the declared repairs that do."""
    from scenarios.shrinking.advice import NO_RELEASE_YET

    keep = [remedy for remedy in tried if remedy.keeps]
    released = [remedy.change for remedy in keep if remedy.what == "mode" and remedy.advice != NO_RELEASE_YET]
    if released:
        return f"Prevented in newer modes: {', '.join(released)}"
    rules = " or ".join(remedy.change for remedy in keep if remedy.what == "rule")
    modes = " or ".join(remedy.change for remedy in keep if remedy.what == "mode")
    if not rules:
        return f"No newer release prevents it; mode {modes} does" if modes else "No newer release prevents it"
    return f"No newer release prevents it; rule {rules}{f' (mode {modes})' if modes else ''} does"


def _json(ui: Ui, told: dict[str, Any]) -> None:
    ui.json({"schema_version": EXPLAIN_VERSION, **told, "exit_code": exit_codes.EXPECTED})


def _brief(story: Iterable[Sentence]) -> Iterator[Block]:
    indent = " " * 12
    for sentence in story:
        yield from map(Line, wrap(f"{moment(sentence.at_us):>10}  {sentence.text}", 80, subsequent_indent=indent))


def _story(story: Iterable[Sentence], partition: str) -> Block:
    """The story; of several partitions, the heading names the one that it is about."""
    rows = [(moment(sentence.at_us), sentence.line or None, sentence.text) for sentence in story]
    return Table(["at", "line", "what happened"], rows, ["line"], f"Story of {partition}" if partition else "Story")


def _necessary(takes: Necessity, *, whole: bool) -> Iterator[Block]:
    """Necessary faults, batches and messages in order of time, and whether they suffice."""
    from reports.drawing import explanation_text

    rows, hidden = explanation_text.rows(takes, explanation_text.MOST)
    caption = "Necessary" if whole else "Remaining when the budget was used up"
    yield Table(["at", "what", ""], rows, caption=caption)
    yield from map(Line, explanation_text.tried(takes, hidden))


def _curve(shares: Curve, kind: str) -> Iterator[Block]:
    from reports.drawing import explanation_text

    yield Heading("Point of no return")
    yield from map(Line, explanation_text.turn(shares, kind))
    rows = explanation_text.shares(shares)
    if rows:
        yield Table(explanation_text.SHARES, rows, ["violates", "continuations"], apart=False)


def _remedies(tried: Iterable[Remedy]) -> Iterator[Block]:
    caption = "What would have prevented it, each by itself, with the same plan"
    kept = [remedy.told for remedy in tried if remedy.keeps]
    if kept:
        yield Table(["what", "change", "what to do"], kept, caption=caption)
        for repair in (remedy.change for remedy in tried if remedy.keeps and remedy.what == "rule"):
            name, _, value = repair.partition("=")
            if code := in_kafka(name, value):
                yield Text(f"The rule {name} in Kafka: {code}")
    else:
        yield from (Heading(caption), Line("none of the tried changes"))
    others = [remedy.change for remedy in tried if not remedy.keeps and remedy.decides]
    idle = sum(not remedy.keeps and not remedy.decides for remedy in tried)
    if others:
        yield Line(f"Would not have helped: {', '.join(others)}")
    if idle:
        yield Line(f"{idle} more have no effect here")
