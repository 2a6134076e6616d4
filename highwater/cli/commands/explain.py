"""``highwater explain``: a failed run, shrunk, in sentences, with what would have prevented it."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import options
from highwater.cli.commands.shrink import progress
from highwater.cli.options import (
    Command,
    evidence_options,
    failed_run_options,
    keep_cluster_option,
    partition_option,
)
from reports.evidence import folder as evidence
from reports.formatting import seconds
from scenarios import plugged
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from highwater.requests import RunRequest
    from reports.evidence.narrative import Sentence
    from reports.evidence.replay import Origin
    from scenarios.shrinking.necessity import Necessity
    from scenarios.shrinking.no_return import Curve
    from scenarios.shrinking.prevention import Remedy
    from sim.protocol.modes import Mode

EXPLAIN_VERSION: Final = 1


@click.command("explain", cls=Command)
@failed_run_options("Explain")
@click.option("--kind", metavar="KIND", help="The violation; by default the first inside the promise.")
@click.option(
    "--budget", metavar="TIME", default="60s", show_default=True, help="Total time; shrinking gets half of it."
)
@click.option("--most", metavar="N", type=click.IntRange(min=1), help="Most sentences.  [default: 12]")
@click.option("--brief", is_flag=True, help="Only the story, a line each.")
@click.option("--all", "everything", is_flag=True, help="All sentences; history.txt contains all steps.")
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="Text or Markdown.")
@keep_cluster_option
@partition_option
@evidence_options("shrunk")
@click.pass_obj
def command(
    ui: Ui,
    asked: RunRequest,
    kind: str | None,
    budget: str,
    most: int | None,
    brief: bool,
    everything: bool,
    form: str,
    keeps_cluster: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Explain a failed run: one seed of a sweep in DIR, of SCENARIO, or a recorded run (--plan).

    It is shrunk first, as by 'highwater shrink', and written to the same folder. Then it is told in sentences, with the
    line of trace.jsonl that each is about, and one rule, setting or newer mode at a time is tried on the same plan.
    A scripted scenario is told as it is, and tried in newer modes.
    """
    from reports.drawing import explanation_text
    from reports.drawing.causal_past import past
    from reports.drawing.explanation import explain
    from reports.evidence import narrative, shrunk_run
    from reports.evidence.markdown import story_as_markdown
    from reports.evidence.outcome import waits_for
    from scenarios.shrinking.criterion import Trials

    if everything and most is not None:
        raise InputError("--all and --most exclude each other")
    sentences = None if everything else most or narrative.SENTENCES
    begin, limit = time.monotonic(), options.duration("--budget", budget)
    origin, chosen = asked.one()
    ui.caution(origin.warnings)
    if not origin.scenario.drawn:
        _tell_script(ui, origin, chosen, kind, sentences, form=form, brief=brief, as_json=as_json)
        return
    place = origin.place(output, origin.seed, chosen.name, shrunk_run.PART)
    evidence.check(place)
    found, took = shrunk_run.shrunk(
        shrunk_run.failed_run(origin, chosen, keeps_cluster=keeps_cluster), kind, limit / 2, progress(ui)
    )
    evidence.prepare(place)
    case = shrunk_run.as_found(found, place.path / evidence.PLAN)
    trials = Trials(lambda: time.monotonic() - begin > limit)
    explained = explain(case, found.symptom, trials, sentences)
    result = explained.observed.result
    options.check_shown(case.scenario, result)
    evidence.write(place, case.scenario, result, past(explained.observed), everything=everything)
    if as_json:
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
    elif form == "markdown":
        ui.lines(story_as_markdown(result, explained.story, explained.remedies).splitlines())
    else:
        ui.line(f"{case.scenario.name}, mode {chosen.name}, seed {origin.seed}: {shrunk_run.kept(found)}", "bold")
        if brief:
            _show_lines(ui, explained.story)
            return
        ui.line(shrunk_run.summary(found, took))
        if not found.whole:
            ui.line(shrunk_run.unfinished(found))
        ui.lines(waits_for(result))
        _show_story(ui, explained.story)
        _show_necessary(ui, explained.necessary, whole=found.whole)
        _show_curve(ui, explained.curve, found.symptom.kind)
        _show_remedies(ui, explained.remedies)
        ui.line()
        ui.line(f"Replay: {result.row['replay']}")
        ui.line(f"Picture: {plugged.command(['draw', str(place.path / evidence.PLAN), '--output', 'run.svg'])}")
        ui.line(f"written to {place.path}")


def _tell_script(
    ui: Ui,
    origin: Origin,
    mode: Mode,
    kind: str | None,
    most: int | None,
    *,
    form: str,
    brief: bool,
    as_json: bool,
) -> None:
    """Explain a scripted scenario, and which newer modes keep the records that it loses."""
    from reports.drawing.explanation import told
    from reports.drawing.observed_run import observe
    from reports.evidence.markdown import story_as_markdown
    from reports.evidence.story import outcome
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.criterion import symptom
    from scenarios.shrinking.prevention import newer_modes

    case = Case(origin.scenario, mode, origin.seed, origin.rules)
    observed = observe(case.scenario, mode, case.seed, case.rules, trace=True)
    result = observed.result
    options.check_shown(case.scenario, result)
    fails = bool(result.row["violations"]) or kind is not None
    tried = newer_modes(case, symptom(result.row, kind)) if fails else []
    story = told(observed, kind or "", most)
    if as_json:
        _json(ui, {"story": [asdict(sentence) for sentence in story], "remedies": [asdict(remedy) for remedy in tried]})
    elif form == "markdown":
        ui.lines(story_as_markdown(result, story, tried).splitlines())
    else:
        ui.line(f"{case.scenario.name}, mode {mode.name}: {outcome(result.row)}", "bold")
        if brief:
            _show_lines(ui, story)
            return
        _show_story(ui, story)
        keep = [remedy.change for remedy in tried if remedy.keeps]
        if fails:
            ui.line(f"Prevented in newer modes: {', '.join(keep)}" if keep else "No newer mode prevents it")


def _json(ui: Ui, told: dict[str, Any]) -> None:
    ui.json({"schema_version": EXPLAIN_VERSION, **told, "exit_code": exit_codes.EXPECTED})


def _show_lines(ui: Ui, story: list[Sentence]) -> None:
    ui.lines(f"  {seconds(sentence.at_us):>12}  {sentence.text}" for sentence in story)


def _show_story(ui: Ui, story: list[Sentence]) -> None:
    ui.section("Story")
    rows = [(seconds(sentence.at_us), sentence.line or None, sentence.text) for sentence in story]
    ui.table(["at", "line", "what happened"], rows, numbers=["line"])


def _show_necessary(ui: Ui, takes: Necessity, *, whole: bool) -> None:
    """Necessary faults, batches and messages in order of time, and whether they suffice."""
    from reports.drawing import explanation_text

    ui.section("Necessary" if whole else "Remaining when the budget was used up")
    rows, hidden = explanation_text.rows(takes, explanation_text.MOST)
    ui.table(["at", "what", ""], rows)
    ui.lines(explanation_text.tried(takes, hidden))


def _show_curve(ui: Ui, shares: Curve, kind: str) -> None:
    from reports.drawing import explanation_text

    ui.section("Point of no return")
    ui.lines(explanation_text.turn(shares, kind))
    rows = explanation_text.shares(shares)
    if rows:
        ui.table(explanation_text.SHARES, rows, numbers=["violates", "continuations"])


def _show_remedies(ui: Ui, tried: list[Remedy]) -> None:
    ui.section("What would have prevented it, each by itself, with the same plan")
    kept = [one.told for one in tried if one.keeps]
    if kept:
        ui.table(["what", "change", "what to do"], kept)
    else:
        ui.line("none of the tried changes")
    others = [one.change for one in tried if not one.keeps and one.decides]
    idle = sum(not one.keeps and not one.decides for one in tried)
    if others:
        ui.line(f"Would not have helped: {', '.join(others)}")
    if idle:
        ui.line(f"{idle} more have no effect here")
