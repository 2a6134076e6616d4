"""``highwater replay``: run one seed again, check its digest, and write all evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from highwater.cli import options, outcome
from highwater.cli.options import Command, takes
from highwater.option import Option
from highwater.requests import AsJson, Partition, RunRequest, evidence_folder, mode_option
from reports import exits
from reports.evidence import folder as evidence

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from reports.evidence.replay import Origin, Replayed

REPLAY_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(RunRequest):
    """The options of the command."""

    mode: Annotated[
        str | None, mode_option("Modes; all of the sweep's, or of [expect], when not given.", before="scenario")
    ] = field(default=None, kw_only=False)
    expect_digest: Annotated[
        str | None,
        Option(
            metavar="HEX",
            before="partition",
            help="Exit 4 if the digest differs; a sweep in DIR has its own digests.",
        ),
    ] = None
    everything: Annotated[
        bool,
        Option(
            "--all",
            before="partition",
            help="history.txt contains all steps, not only those before violations.",
        ),
    ] = False
    partition: Partition = None
    output: Annotated[Path | None, evidence_folder("seeds")] = None
    as_json: AsJson = False


@click.command("replay", cls=Command)
@takes(ReplayOptions)
@click.pass_obj
def command(ui: Ui, asked: ReplayOptions) -> int:
    """Run one seed of a sweep in DIR, of SCENARIO, or a PLAN again: check its digest, and write all evidence."""
    from reports.drawing.causal_past import past
    from reports.drawing.observed_run import observe
    from reports.evidence import replay
    from scenarios.format import selection

    origin = asked.origin()
    number = origin.seed
    names = [mode.name for mode in origin.modes] if asked.mode is None else asked.mode.split(",")
    modes = selection.modes(origin.scenario, names, own=origin.modes)
    expected = replay.expected_digests(origin, [mode.name for mode in modes], asked.expect_digest)
    ui.caution(origin.warnings)
    options.tell_idle(ui, origin.scenario, modes, asked.rules, asked.settings)
    places = [origin.place(asked.output, number, mode.name) for mode in modes]
    for place in places:
        evidence.prepare(place)
    done = []
    for mode, place in zip(modes, places, strict=True):
        observed = observe(origin.scenario, mode, number, origin.rules, trace=True)
        options.check_shown(origin.scenario, observed.result)
        evidence.write(place, origin.scenario, observed.result, past(observed), everything=asked.everything)
        done.append(replay.Replayed(observed.result, place.path, expected.get(mode.name)))
    code = exits.worst(replayed.exit_code for replayed in done)
    if asked.as_json:
        ui.json(
            {"schema_version": REPLAY_VERSION, "replays": [replayed.as_json() for replayed in done], "exit_code": code}
        )
    else:
        for replayed in done:
            _show(ui, origin, replayed)
    return code


def _show(ui: Ui, origin: Origin, replayed: Replayed) -> None:
    outcome.show(ui, origin.scenario, replayed.result)
    ui.written(f"\nwritten to {replayed.folder}")
    ui.verdict(replayed.said, replayed.exit_code)
