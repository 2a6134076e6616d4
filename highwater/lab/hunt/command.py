"""``highwater hunt``: random runs over a release of Kafka or a build, through the night."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from highwater.cli.options import PATH, Command, json_option
from highwater.values import duration
from sim import exit_codes

if TYPE_CHECKING:
    from highwater.cli.console import Ui


@click.command("hunt", cls=Command)
@click.option("--kafka", metavar="RELEASE|DIR", required=True, help="A release, or a folder with a build's libraries.")
@click.option("--for", "limit", metavar="TIME", default="8h", show_default=True, help="Time of the whole hunt.")
@click.option("--output", metavar="DIR", type=PATH, required=True, help="The hunt's folder; it goes on from there.")
@click.option("--hide", metavar="NAME", multiple=True, help="Take a known finding off the list; repeatable.")
@click.option("--scenarios", metavar="A,B", help="Only these random scenarios; by default all that fit.")
@click.option("--seed", metavar="N", type=click.IntRange(0, 10**15), default=10**9, help="First seed of each arm.")
@click.option(
    "--confirm",
    "repeat",
    metavar="N",
    type=click.IntRange(0, 20),
    default=3,
    show_default=True,
    help="Runs on real brokers of each new cause; 0: none.",
)
@click.option("--local", metavar="N", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@json_option
@click.pass_obj
def command(
    ui: Ui,
    kafka: str,
    limit: str,
    output: Path,
    hide: tuple[str, ...],
    scenarios: str | None,
    seed: int,
    repeat: int,
    local: int,
    as_json: bool,
) -> int:
    """Hunt for failures in the mode of a release: run random scenarios, shrink what fails, and act out what is new.

    It may be killed at any moment; the same command goes on. Known findings are recognised and counted. What is new is
    written to DIR/findings, and run on real brokers if Kafka is here. Of a build, classes are compared with the mode
    first. DIR/hunt.md and hunt.html tell what was done, found and confirmed, and how likely something new is.

    Exit 0 when nothing new was found, 1 when something was, or a control arm failed, or a build's classes differ.
    """
    from highwater.lab.hunt import page, request
    from highwater.lab.hunt.hunter import as_json as hunt_as_json
    from highwater.lab.hunt.hunter import defects, new_causes

    limit_s = duration("--for", limit)
    chosen = [] if scenarios is None else scenarios.split(",")
    asked = request.HuntRequest(kafka, output, hide, chosen, seed, repeat, local)
    with asked.prepare(ui.note) as hunt:
        whole = hunt.run(limit_s)
    told = page.answer(hunt)
    if as_json:
        ui.json({**hunt_as_json(hunt), "answer": told})
    else:
        ui.lines(told)
        ui.line(f"written to {output}")
    if not whole:
        ui.warn("interrupted; the same command goes on")
        return exit_codes.INTERRUPTED
    differs = any(one["differ"] for one in hunt.state.oracle)
    return exit_codes.UNEXPECTED if new_causes(hunt.state) or defects(hunt.state) or differs else exit_codes.EXPECTED
