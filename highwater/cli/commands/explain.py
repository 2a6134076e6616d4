"""``highwater explain``: a failed run, made small, told in sentences, with what would have kept the data."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli import options
from highwater.cli.commands.shrink import progress
from highwater.cli.options import Command, evidence_options, failed_run_options
from reports import exits
from reports.evidence import folder as evidence
from reports.formatting import seconds

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from reports.evidence.telling import Sentence
    from scenarios.shrinking.necessity import Necessary
    from scenarios.shrinking.no_return import Curve
    from scenarios.shrinking.prevention import Remedy
    from sim.config import Value

SCHEMA_VERSION: Final = 1


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
    seed: int | None,
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
    from reports.drawing import said
    from reports.drawing.explained import explain
    from reports.drawing.past import past
    from reports.evidence import small, telling
    from reports.evidence.waiting import waits_for
    from scenarios.shrinking.criterion import Trials

    begin, limit = time.monotonic(), options.duration("--budget", budget)
    origin, chosen = small.find(source, plan, seed, mode, scenario, rules, settings, strict=strict)
    for warning in origin.warnings:
        ui.warn(f"highwater: {warning}")
    place = origin.place(output, origin.seed, chosen.name, small.PART)
    evidence.check(place)
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
                "necessary": said.necessary_as_json(explained.necessary),
                "no_return": said.curve_as_json(explained.curve),
                "remedies": [asdict(remedy) for remedy in explained.remedies],
                "folder": str(place.path),
                "exit_code": exits.EXPECTED,
            }
        )
        return exits.EXPECTED
    ui.line(f"{case.scenario.name}, mode {chosen.name}, seed {origin.seed}: {small.kept(found)}", "bold")
    ui.line(small.said(found, took))
    if not found.whole:
        ui.line(small.unfinished(found))
    for sentence in waits_for(result):
        ui.line(sentence)
    _show_story(ui, explained.story)
    _show_necessary(ui, explained.necessary, whole=found.whole)
    _show_curve(ui, explained.curve, found.symptom.kind)
    _show_remedies(ui, explained.remedies)
    ui.line()
    ui.line(f"Replay: {result.row['replay']}")
    ui.line(f"Picture: highwater draw {shlex.quote(str(place.path / evidence.PLAN))} --output run.svg")
    ui.line(f"written to {place.path}")
    return exits.EXPECTED


def _show_story(ui: Ui, story: list[Sentence]) -> None:
    ui.line()
    ui.line("Story", style="bold")
    rows = [(seconds(sentence.at_us), sentence.line or None, sentence.text) for sentence in story]
    ui.table(["at", "line", "what happened"], rows, numbers=["line"])


def _show_necessary(ui: Ui, takes: Necessary, *, whole: bool) -> None:
    """Faults, batches and messages in order of time, which is that of causes, and how far they are enough."""
    from reports.drawing import said

    ui.line()
    ui.line("Necessary" if whole else "Left when the budget was used up", style="bold")
    rows, hidden = said.rows(takes, said.MOST)
    ui.table(["at", "what", ""], rows)
    for line in said.tried(takes, hidden):
        ui.line(line)


def _show_curve(ui: Ui, shares: Curve, kind: str) -> None:
    from reports.drawing import said

    ui.line()
    ui.line("Point of no return", style="bold")
    for line in said.turn(shares, kind):
        ui.line(line)
    rows = said.shares(shares)
    if rows:
        ui.table(said.SHARES, rows, numbers=["violates", "continuations"])


def _show_remedies(ui: Ui, tried: list[Remedy]) -> None:
    ui.line()
    ui.line("What would have prevented it, each by itself, under the same plan", style="bold")
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
