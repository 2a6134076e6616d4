"""``highwater review``: a mode against another one, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.options import Command, takes
from highwater.lab.review import page
from highwater.lab.review.request import ReviewRequest
from highwater.lab.review.result import UNPROVEN, UNTESTED
from sim import exit_codes

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("review", cls=Command)
@takes(ReviewRequest)
@click.pass_obj
def command(ui: Ui, asked: ReviewRequest) -> int:
    """Review MODE (a name or a .toml file) against a base: what a KIP's author wants to know before the vote.

    Rules that differ, scripted scenarios and Kafka's own tests that end otherwise, violations on the same seeds of all
    random scenarios, upgrade and downgrade, liveness, availability, early warnings, and the commands that repeat each
    part. Exit code 1: it breaks its promise where the base does not, or more often; 3: inconclusive.
    """
    found = asked.review("--output", ui.note)
    verdict, *more = page.answer(found)
    for line in more:
        ui.line(line)
    folder = Path(asked.output)
    ui.written(f"written to {folder / page.MARKDOWN} and {folder / page.HTML}")
    code = exit_codes.INCONCLUSIVE if found.verdict in (UNPROVEN, UNTESTED) else exit_codes.EXPECTED
    code = exit_codes.UNEXPECTED if found.is_worse else code
    ui.verdict(verdict, code)
    return code
