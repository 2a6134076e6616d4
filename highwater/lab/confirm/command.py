"""``highwater confirm``: a scripted scenario on real brokers, beside the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli.options import Command, takes
from highwater.lab.confirm.request import ConfirmRequest, outcome_text
from highwater.requests import AsJson
from reports import exits
from reports.document.blocks import Table
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from highwater.cli.console import Ui
    from highwater.lab.confirm.request import Confirmation

CONFIRM_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class ConfirmOptions(ConfirmRequest):
    """The options of the command."""

    as_json: AsJson = False


@click.command("confirm", cls=Command)
@takes(ConfirmOptions)
@click.pass_obj
def command(ui: Ui, asked: ConfirmOptions) -> int:
    """Run SCENARIO (a name or a .toml file) on real brokers, and compare with the simulation.

    Exit 0 when both agree, 1 when two attempts show the same difference, 3 when the expected steps did not occur or
    the attempts disagree.
    """
    confirmation = asked.prepare(ui.note)
    runs = []
    for number in range(1, asked.repeat + 1):
        runs.append(confirmation.run(number))
        if not asked.as_json:
            _show(ui, confirmation, runs[-1], number)
    code = exits.worst(run["exit_code"] for run in runs)
    if asked.as_json:
        found = confirmation.found
        told = {"scenario": confirmation.scenario.name, "scenario_hash": confirmation.scenario.scenario_hash()}
        told |= {"kafka": found.name, "source": found.source, "mode": confirmation.mode.name}
        ui.json({"schema_version": CONFIRM_VERSION, **told, "runs": runs, "exit_code": code})
    return code


def _show(ui: Ui, asked: Confirmation, run: Mapping[str, Any], number: int) -> None:
    kafka, repeat = asked.found.name, asked.request.repeat
    which = f" (run {number} of {repeat})" if repeat > 1 else ""
    where = f"{asked.scenario.name}, Kafka {kafka}, mode {asked.mode.name}{which}"
    for place, attempt in enumerate(run["before"], start=1):
        ui.line(f"attempt {place}: {outcome_text(attempt)}")
    words = {exit_codes.EXPECTED: "confirmed", exit_codes.UNEXPECTED: "NOT confirmed"}
    undecided = outcome_text(run) if run["failed"] else "undecided: the brokers did not do the same in each attempt"
    if run["rows"]:
        cells = [(row["what"], row["simulated"], row["real"], _word(row)) for row in run["rows"]]
        ui.show([Table(["what", "simulation", f"Kafka {kafka}", ""], cells)])
        ui.lines(["", *_remarks(run, kafka)])
        ui.line(", ".join(f"{name} {seconds} s" for name, seconds in run["seconds"].items()))
    ui.verdict(f"{where}: {words.get(run['exit_code'], undecided)}, {run['seconds']['all']} s", run["exit_code"])


def _word(row: Mapping[str, Any]) -> str:
    if not row["compared"]:
        return "not compared"
    if not row["agrees"]:
        return "DIFFERS"
    return f"agrees: {row['why']}" if row["why"] else "="


def _remarks(run: Mapping[str, Any], kafka: str) -> Iterator[str]:
    """What the table does not show, or shows otherwise."""
    of_partitions = run.get("leader_epochs_of", {"": run["leader_epochs"]})
    simulated, real = (
        ", ".join(
            f"{name and name + ': '}{' '.join(map(str, epochs[which])) or '-'}"
            for name, epochs in of_partitions.items()
        )
        for which in ("simulated", "real")
    )
    yield (
        "Leader epochs are compared by their order: the table numbers them from 0 in the partition's states, in logs "
        f"and in each epoch cache. The epochs were {simulated} in the simulation, and {real} on Kafka {kafka}."
    )
    if any("HW checkpoint" in row["what"] for row in run["rows"]):
        yield "HW checkpoints are not compared: both runs end at other phases of the interval between two writes."
