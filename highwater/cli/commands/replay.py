"""``highwater replay``: one seed again, with its digest checked and everything about it written down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater.cli import options, outcome
from highwater.cli.options import Command, evidence_options
from highwater.requests import RunRequest
from reports import exits
from reports.evidence import folder as evidence

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from reports.evidence.replay import Origin, Replayed
    from sim.config import Value

SCHEMA_VERSION: Final = 1


@click.command("replay", cls=Command)
@click.argument("source", metavar="DIR|SCENARIO|PLAN")
@click.option(
    "--seed", "--seeds", metavar="N", callback=options.read_seed, help="Seed, decimal or 0x; a plan has its own."
)
@click.option("--mode", "--modes", metavar="A,B", help="Modes; all of the sweep's, or of [expect], when not given.")
@click.option("--scenario", metavar="NAME", help="Which scenario of a sweep that has several.")
@click.option("--expect-digest", metavar="HEX", help="Exit 4 when the digest differs; DIR knows its digests itself.")
@click.option("--all", "everything", is_flag=True, help="history.txt holds what did not lead to violations, too.")
@evidence_options("seeds")
@click.pass_obj
def command(
    ui: Ui,
    source: str,
    seed: int | None,
    mode: str | None,
    scenario: str | None,
    expect_digest: str | None,
    everything: bool,
    rules: dict[str, str],
    settings: dict[str, Value],
    strict: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Run one seed of a sweep in DIR, of SCENARIO, or a PLAN, again: check its digest, write down all that happened."""
    from reports.drawing.observed import observe
    from reports.drawing.past import past
    from reports.evidence import replay
    from scenarios.format import selection

    origin = RunRequest(source, seed, scenario, rules, settings, strict).origin()
    number = origin.seed
    names = [one.name for one in origin.modes] if mode is None else mode.split(",")
    modes = selection.modes(origin.scenario, names, own=origin.modes)
    expected = replay.expected_digests(origin, [one.name for one in modes], expect_digest)
    for warning in origin.warnings:
        ui.warn(f"highwater: {warning}")
    options.tell_idle(ui, origin.scenario, modes, rules, settings)
    places = [origin.place(output, number, one.name) for one in modes]
    for place in places:
        evidence.prepare(place)
    done = []
    for one, place in zip(modes, places, strict=True):
        observed = observe(origin.scenario, one, number, origin.rules, trace=True)
        evidence.write(place, origin.scenario, observed.result, past(observed), everything=everything)
        done.append(replay.Replayed(observed.result, place.path, expected.get(one.name)))
    code = exits.worst(replayed.exit_code for replayed in done)
    if as_json:
        ui.json(
            {"schema_version": SCHEMA_VERSION, "replays": [replayed.as_json() for replayed in done], "exit_code": code}
        )
    else:
        for replayed in done:
            _show(ui, origin, replayed)
    return code


def _show(ui: Ui, origin: Origin, replayed: Replayed) -> None:
    outcome.show(ui, origin.scenario, replayed.result)
    ui.line()
    ui.line(replayed.said)
    ui.line(f"written to {replayed.folder}")
