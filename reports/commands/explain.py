"""``highwater explain``: a failed run, made small, told in sentences, with what would have kept the data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from reports import exits, options
from reports.commands.shrink import progress
from reports.console import pairs, seconds
from reports.evidence import folder as evidence
from reports.options import Command, json_option, rule_option, set_option, strict_option, ui_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reports.console import Ui
    from reports.evidence.telling import Sentence
    from scenarios.shrinking.case import Case
    from scenarios.shrinking.remedies import Remedy
    from sim.config import Value

SCHEMA_VERSION: Final = 1


@click.command("explain", cls=Command)
@click.argument("source", metavar="DIR|SCENARIO", required=False)
@click.option(
    "--plan", metavar="FILE", type=click.Path(path_type=Path), help="Explain a recorded run, what replay writes."
)
@click.option("--seed", "--seeds", metavar="N", help="Seed, decimal or 0x; a recorded run brings its own.")
@click.option("--mode", "--modes", metavar="MODE", help="Mode; needed when the sweep or [expect] has several.")
@click.option("--scenario", metavar="NAME", help="Which scenario of a sweep that has several.")
@click.option("--kind", metavar="KIND", help="The violation; the first inside the promise when not given.")
@click.option("--budget", metavar="TIME", default="30s", show_default=True, help="How long shrinking may take.")
@rule_option
@set_option
@strict_option
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Gets shrunk/<seed>-<mode>/.")
@json_option
@ui_options
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
    from reports.evidence import small, telling
    from scenarios.shrinking.keeping import Trials
    from scenarios.shrinking.remedies import remedies

    limit = options.duration("--budget", budget)
    origin, chosen = small.find(source, plan, seed, mode, scenario, rules, settings, strict=strict)
    for warning in origin.warnings:
        ui.warn(f"highwater: {warning}")
    place = origin.place(output, origin.seed, chosen.name, small.PART)
    found, took = small.shrunk(small.failed_run(origin, chosen), kind, limit, progress(ui))
    evidence.prepare(place)
    case = small.as_found(found, place.path / evidence.PLAN)
    result = case.run(trace=True)
    evidence.write(place, case.scenario, result)
    tried = remedies(case, found.symptom, Trials())
    story = telling.story(result)
    if as_json:
        ui.json(
            {
                "schema_version": SCHEMA_VERSION,
                **small.as_json(found),
                "story": [asdict(sentence) for sentence in story],
                "remedies": [asdict(remedy) for remedy in tried],
                "folder": str(place.path),
                "exit_code": exits.EXPECTED,
            }
        )
        return exits.EXPECTED
    side = "inside" if found.symptom.inside else "outside"
    ui.line(
        f"{case.scenario.name}, mode {chosen.name}, seed {origin.seed}: {found.symptom.kind}, {side} the promise",
        "bold",
    )
    ui.line(small.said(found, took))
    _show_story(ui, story)
    _show_necessary(ui, case, whole=found.whole)
    _show_remedies(ui, tried)
    ui.line()
    ui.line(f"written to {place.path}")
    return exits.EXPECTED


def _show_story(ui: Ui, story: list[Sentence]) -> None:
    ui.line()
    ui.line("Story", style="bold")
    rows = [(seconds(sentence.at_us), sentence.line or None, sentence.text) for sentence in story]
    ui.table(["at", "line", "what happened"], rows, numbers=["line"])


def _show_necessary(ui: Ui, case: Case, *, whole: bool) -> None:
    """What is left, in order of time."""
    ui.line()
    ui.line("Necessary" if whole else "Left when the budget was used up", style="bold")
    ui.table(["at", "what", ""], [(seconds(at_us), what, more) for at_us, what, more in sorted(_necessary(case))])


def _necessary(case: Case) -> Iterator[tuple[int, str, str]]:
    for fault in case.faults:
        trigger = "" if fault.trigger is None else f" waits for {fault.trigger.moment}"
        yield (
            fault.at_us,
            fault.kind,
            pairs({"targets": fault.targets, "lasts_us": None if fault.lasts_us < 0 else fault.lasts_us}) + trigger,
        )
    for first_id, records, acks, due_us in case.sends:
        yield due_us, "batch", pairs({"record": first_id, "records": records, "acks": "all" if acks == -1 else acks})


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
