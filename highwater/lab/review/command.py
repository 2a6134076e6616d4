"""``highwater review``: a mode against another one, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.options import PATH, Command
from highwater.values import duration
from sim import exit_codes

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("review", cls=Command)
@click.argument("mode", metavar="MODE")
@click.option("--against", metavar="BASE", required=True, help="The mode to compare it with.")
@click.option("--claim", metavar="TEXT", default="", help="What is claimed of it; quoted on the page.")
@click.option(
    "--claim-kind",
    metavar="KIND",
    default="",
    help="The kind of violation or early warning that contradicts the claim.",
)
@click.option(
    "--budget",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="Time of the whole review: as many seeds of random scenarios as it allows.",
)
@click.option("--seeds", metavar="N", type=click.IntRange(1, 1_000_000), help="Seeds of each, in place of --budget.")
@click.option("--scenarios", metavar="A,B", help="Only these random scenarios; by default all that fit.")
@click.option("--local", metavar="N", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--output", metavar="DIR", type=PATH, required=True, help="Gets review.md, review.html and the sweeps.")
@click.pass_obj
def command(
    ui: Ui,
    mode: str,
    against: str,
    claim: str,
    claim_kind: str,
    budget: str,
    seeds: int | None,
    scenarios: str | None,
    local: int,
    output: Path,
) -> int:
    """Review MODE (a name or a .toml file) against a base: what a KIP's author wants to know before the vote.

    Rules that differ, scripted scenarios and Kafka's own tests that end otherwise, violations on the same seeds of all
    random scenarios, upgrade and downgrade, liveness, availability, early warnings, and the commands that repeat each
    part. Exit code 1: it breaks its promise where the base does not, or more often; 3: inconclusive.
    """
    from highwater.lab.review import page
    from highwater.lab.review.result import UNPROVEN, UNTESTED
    from highwater.lab.review.review import check, review
    from scenarios.format import catalogue

    limit_s = duration("--budget", budget)
    chosen, base = catalogue.mode(mode), catalogue.mode(against)
    named = [] if scenarios is None else scenarios.split(",")
    for name in named:
        catalogue.load(name)
    check(chosen, base, claim_kind, named)
    page.check_files("--output", output)
    found = review(
        chosen,
        base,
        output,
        claim=claim,
        claim_kind=claim_kind,
        budget_s=limit_s,
        seeds=seeds,
        processes=local,
        scenarios=named,
        tell=ui.note,
    )
    page.write(found, output)
    for line in page.answer(found):
        ui.line(line)
    ui.line(f"written to {output / page.MARKDOWN} and {output / page.HTML}")
    if found.is_worse:
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if found.verdict in (UNPROVEN, UNTESTED) else exit_codes.EXPECTED
