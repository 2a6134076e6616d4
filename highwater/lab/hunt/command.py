"""``highwater hunt``: random runs over a release of Kafka or a build, through the night."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import click

from highwater.cli.options import Command, takes
from highwater.lab.hunt import page
from highwater.lab.hunt.hunter import as_json as hunt_as_json
from highwater.lab.hunt.hunter import defects, new_causes
from highwater.lab.hunt.request import HuntRequest
from highwater.option import Option
from highwater.requests import AsJson
from highwater.values import duration
from sim import exit_codes
from sim.plurals import counted

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@dataclass(frozen=True, kw_only=True)
class HuntOptions(HuntRequest):
    """The options of the command."""

    limit_s: Annotated[
        float,
        Option(
            "--budget",
            metavar="TIME",
            default="8h",
            show_default=True,
            read=partial(duration, "--budget"),
            before="output",
            help="Time of the whole hunt.",
        ),
    ] = 8 * 3600
    as_json: AsJson = False


@click.command("hunt", cls=Command)
@takes(HuntOptions)
@click.pass_obj
def command(ui: Ui, asked: HuntOptions) -> int:
    """Hunt for failures in the mode of a release: run random scenarios, shrink failures, drop known ones,
    and replay the rest on real brokers.

    It may be killed at any moment; the same command goes on. Known findings are recognised and counted. What is new is
    written to DIR/findings, and run on real brokers if Kafka is here. Of a build, classes are compared with the mode
    first. DIR/hunt.md and hunt.html tell what was done, found and confirmed, and how likely something new is.

    Exit 0 when nothing new was found, 1 when something was, or a control arm failed, or a build's classes differ.
    """
    with asked.prepare(ui.note) as hunt:
        whole = hunt.run(asked.limit_s)
    told = page.answer(hunt)
    if asked.as_json:
        ui.json({**hunt_as_json(hunt), "answer": told})
    else:
        ui.lines(told)
        ui.written(f"written to {asked.output}")
    if not whole:
        ui.warn("interrupted; the same command goes on")
        return exit_codes.INTERRUPTED
    differs = any(one["differ"] for one in hunt.state.oracle)
    news = new_causes(hunt.state)
    code = exit_codes.UNEXPECTED if news or defects(hunt.state) or differs else exit_codes.EXPECTED
    if not asked.as_json:
        ui.verdict(_verdict(len(news), code), code)
    return code


def _verdict(news: int, code: int) -> str:
    if code == exit_codes.EXPECTED:
        return "nothing new was found"
    return f"{counted(news, 'new cause')} of failures" if news else "a control arm failed, or classes differ"
